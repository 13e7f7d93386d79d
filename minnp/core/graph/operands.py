"""Whether a function reads an array outside only together with traced ones: then nobody but the graph reads it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from types import FunctionType, ModuleType
from typing import Any

import numpy as onp

from .syntax import tree_of

# What gives out the items of a container without their names
UNNAMED = {"values", "items", "get", "pop", "popitem", "copy", "deepcopy", "update", "vars", "__dict__", "getattr"}
# Functions that make arrays of anything; functions and methods whose results Python computes with
CREATION = {"zeros", "ones", "empty", "full", "eye", "identity", "arange", "linspace", "array", "asarray"}
FOR_PYTHON = {"size", "ndim", "shape", "isscalar", "iterable", "result_type", "issubdtype", "item", "tolist", "tobytes"}
FOR_PYTHON |= {
    "allclose",
    "array_equal",
    "array_equiv",
    "count_nonzero",
    "can_cast",
    "shares_memory",
    "may_share_memory",
}
METHODS = {*dir(onp.ndarray)} - FOR_PYTHON


def followed(functions: Sequence[FunctionType], itself: Any, outside: Collection) -> list[Function]:
    """The functions with what is traced in them; empty where the source of one is not known.

    functions  all of the user's that may run
    itself     the one of them whose arguments are traced
    outside    the names of all arrays outside"""
    trees = [tree_of(f) for f in functions]
    if not all(isinstance(t, ast.FunctionDef) for t in trees):
        return []
    known = [Function(t, f, outside) for t, f in zip(trees, functions)]
    while any(f.is_called_otherwise(known, f.function is itself) for f in known):
        pass
    return known


class Function:
    """The tree of one function.

    given   its parameters that are traced in all calls, as far as is known
    traced  these, and its variables, that hold traced values or arrays of minnp's at all times"""

    def __init__(self, tree: Any, function: FunctionType, outside: Collection) -> None:
        self.function, self.names, self.outside = function, function.__globals__, outside
        self.nodes = [n for part in tree.body for n in ast.walk(part)]
        self.parents = {child: n for n in (tree, *self.nodes) for child in ast.iter_child_nodes(n)}
        self.parameters = [a.arg for a in (*tree.args.posonlyargs, *tree.args.args)]
        attributes = [n for n in self.nodes if isinstance(n, ast.Attribute) and n.attr not in METHODS | FOR_PYTHON]
        objects = {"self", "cls", *(n.value.id for n in attributes if isinstance(n.value, ast.Name))}
        self.given = {*self.parameters, *(a.arg for a in tree.args.kwonlyargs)} - objects
        self.bound: dict[str, list] = {}
        self.hidden: set[str] = set()
        for n in self.nodes:
            match n:
                case ast.Name(name, ast.Store() | ast.Del()):
                    at = self.parents[n]
                    value = at.value if isinstance(at, ast.Assign) else n if isinstance(at, ast.AugAssign) else None
                    self.bound.setdefault(name, []).append(value)  # None: by a loop, an import, as a part of a tuple
                case ast.FunctionDef() | ast.Lambda():
                    self.hidden |= {a.arg for a in ast.walk(n.args) if isinstance(a, ast.arg)}
                case ast.Global() | ast.Nonlocal():
                    self.hidden |= {*n.names}
        self.follow()

    def follow(self) -> None:
        self.traced = (self.given | self.bound.keys()) - self.hidden
        values = lambda n: self.bound.get(n, ()) if n in self.given else self.bound[n]
        while wrong := [n for n in self.traced if not all(v is not None and self.is_traced(v) for v in values(n))]:
            self.traced.difference_update(wrong)

    def is_called_otherwise(self, known: Sequence[Function], is_itself: bool) -> bool:
        """Whether one of `known` calls this function with what is not traced: that is not given, then."""
        own, before = self.function.__name__, len(self.given)
        calls = 0
        for f in known:
            for n in f.nodes:
                if not isinstance(n, ast.expr) or _name(n) != own:
                    continue
                call = f.parents[n]
                if (
                    not isinstance(call, ast.Call)
                    or call.func is not n
                    or any(map(_is_open, [*call.args, *call.keywords]))
                ):
                    self.given.clear()
                    continue
                calls += 1
                skipped = isinstance(n, ast.Attribute) and self.parameters[:1] in (["self"], ["cls"])
                given = dict(zip(self.parameters[skipped:], call.args)) | {k.arg: k.value for k in call.keywords}
                self.given &= {p for p, value in given.items() if f.is_traced(value)}
        if not calls and not is_itself:
            self.given.clear()
        if len(self.given) == before:
            return False
        self.follow()
        return True

    def is_traced(self, n: ast.AST) -> bool:
        match n:
            case ast.Name(name):
                return name in self.traced
            case ast.Call(ast.Attribute(of, name) as func) if name not in FOR_PYTHON:
                if not self.is_ours(func):
                    return name in METHODS and self.is_traced(of)
                arguments = _flat([*n.args, *(k.value for k in n.keywords)])
                return name in CREATION or any(self.is_traced(a) or _name(a) in self.outside for a in arguments)
            case ast.BinOp(a, _, b):
                return self.is_traced(a) or self.is_traced(b)
            case ast.UnaryOp(ast.USub(), a) | ast.Subscript(a) | ast.Attribute(a, "T"):
                return self.is_traced(a)
        return False

    def is_ours(self, f: ast.expr) -> bool:
        """Whether what is called is a function of a module of minnp's."""
        path = []
        while isinstance(f, ast.Attribute):
            path.append(f.attr)
            f = f.value
        found = self.names.get(f.id) if isinstance(f, ast.Name) else None
        if not isinstance(found, ModuleType) or found.__name__.partition(".")[0] != "minnp":
            return False
        for name in reversed(path):
            found = getattr(found, name, None)
        return callable(found) and not isinstance(found, type)

    def reads(self, name: Any) -> list[bool]:
        """Of each place that has this name or key, whether it is read as an argument of a function of minnp's, or as an
        operand whose other operand is traced."""
        named = [n for n in self.nodes if isinstance(name, str) and isinstance(n, ast.expr) and _name(n) == name]
        return [isinstance(n.ctx, ast.Load) and self.is_beside(n) for n in named]  # type: ignore[attr-defined]

    def is_beside(self, n: ast.expr) -> bool:
        at = self.parents[n]
        while isinstance(at, (ast.keyword, ast.List, ast.Tuple)):
            at = self.parents[at]
        match at:
            case ast.BinOp(a, _, b) | ast.Compare(a, _, [b]):
                return self.is_traced(b if a is n else a)
            case ast.AugAssign(target, _, value):
                return value is n and self.is_traced(target)
            case ast.Call(func):
                return func is not n and (self.is_ours(func) or self.is_traced(at))
        return False


def _is_open(n: ast.AST) -> bool:
    return isinstance(n, ast.Starred) or (isinstance(n, ast.keyword) and n.arg is None)


def _name(n: ast.expr) -> Any:
    """The name of a variable or attribute, or the key of an item."""
    match n:
        case ast.Name(x) | ast.Attribute(_, x) | ast.Subscript(_, ast.Constant(x)):
            return x
    return None


def _flat(nodes: Sequence[ast.expr]) -> Iterator[ast.expr]:
    for n in nodes:
        yield from _flat(n.elts) if isinstance(n, (ast.List, ast.Tuple)) else (n,)
