"""The source of functions, as syntax trees that compile to the code that the functions have."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
import threading
import weakref
from collections.abc import Sequence
from functools import lru_cache
from types import CodeType, ModuleType
from typing import Any

GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_TREES: weakref.WeakKeyDictionary[CodeType, Any] = weakref.WeakKeyDictionary()


def tree_of(f: Any) -> ast.FunctionDef | ast.Lambda | None:
    """The syntax tree of a Python function, or None where its source is not to be had, or is another one."""
    code = f.__code__
    if code in _TREES:
        return _TREES[code]
    _TREES[code] = found = _tree(f)
    return found


def _tree(f: Any) -> ast.FunctionDef | None:
    code = f.__code__
    if code.co_flags & GENERATORS:
        return None
    # how CPython compiles np.f(x), in comprehensions too, depends on whether its module imports np
    names = [n for n in sorted(set(_names(code))) if n.isidentifier()]
    bound = [n for n in names if n in f.__globals__]
    modules = [n for n in bound if isinstance(f.__globals__[n], ModuleType)]
    for found in _written(f):
        for imported in (names, [], bound, modules):
            again = compiled(found, code, [], imported)
            if again is not None and same(again, code):
                return found
    return None


PARSING = threading.RLock()


def parse(text: str, mode: str = "exec") -> Any:
    """ast.parse. One thread at a time: CPython before 3.11.8 and 3.12.2 counts the depth of all threads' trees as one,
    and raises SystemError where they mix."""
    with PARSING:
        return ast.parse(text, mode=mode)


def copied(tree: Any) -> Any:
    """A copy of a tree, or of a list in one; copy.deepcopy takes ten times as long."""
    if type(tree) is list:
        return [copied(x) for x in tree]
    if not isinstance(tree, ast.AST) or not vars(tree):  # of which there is one, as ast.Load()
        return tree
    new = type(tree).__new__(type(tree))
    vars(new).update({name: copied(x) for name, x in vars(tree).items()})
    return new


def _names(code: CodeType) -> list[str]:
    """The names in a code, and in those of its comprehensions and functions."""
    found = [*code.co_names, *code.co_varnames, *code.co_freevars]
    for inner in code.co_consts:
        found += _names(inner) if isinstance(inner, CodeType) else []
    return found


def _written(f: Any) -> list[ast.FunctionDef]:
    """What the source has where a function begins: a def, or lambdas, as functions that return."""
    code = f.__code__
    first = code.co_firstlineno
    lines = linecache.getlines(code.co_filename, f.__globals__)
    try:
        if code.co_name == "<lambda>":
            return [_named(copied(n)) for n in _lambdas("".join(lines)) if n.lineno == first]
        tree = parse(textwrap.dedent("".join(inspect.getblock(lines[first - 1 :]))))
    except (SyntaxError, ValueError):
        return []
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef):
        return []
    tree.body[0].decorator_list = []
    ast.increment_lineno(tree.body[0], first - 1)
    return [tree.body[0]]


@lru_cache(maxsize=4)  # a file is often asked for again: for its next lambda
def _lambdas(text: str) -> list[ast.Lambda]:
    return [n for n in ast.walk(parse(text)) if isinstance(n, ast.Lambda)]


def _named(node: ast.Lambda) -> ast.FunctionDef:
    """A lambda as a function of that name."""
    out = ast.copy_location(ast.Return(value=node.body), node)
    made = parse("def f(): pass").body[0]
    assert isinstance(made, ast.FunctionDef)
    made.name, made.args, made.body = "<lambda>", node.args, [out]
    return ast.copy_location(made, node)


def same(a: CodeType, b: CodeType) -> bool:
    """Whether two codes do the same."""
    fields = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars")
    if any(getattr(a, x) != getattr(b, x) for x in fields) or len(a.co_consts) != len(b.co_consts):
        return False
    # lambdas of one line may differ in their constants alone
    return all(map(same_constant, a.co_consts, b.co_consts))


def same_constant(x: Any, y: Any) -> bool:
    if isinstance(x, CodeType) and isinstance(y, CodeType):
        return same(x, y)
    return type(x) is type(y) and (repr(x) == repr(y) or (isinstance(x, frozenset) and x == y))


def compiled(tree: ast.FunctionDef, code: CodeType, more: list[str], imported: Sequence[str] = ()) -> CodeType | None:
    """The code of a function's tree, in which the names of `more` are variables of an enclosing function, too, and
    those of `imported` modules' that its module imports. The nodes of the tree have their lines."""
    free = [*code.co_freevars, *more]
    new = parse("def outer(): pass")
    outer = new.body[0]
    assert isinstance(outer, ast.FunctionDef)
    own = ast.FunctionDef(
        name=FUNCTION,  # in the place of its own name, by which it may call itself
        args=_without_defaults(tree.args),
        body=[],
        decorator_list=[],
        returns=None,
        type_comment=None,
        type_params=[],
    )
    outer.args.args = [ast.arg(arg=name) for name in free]
    outer.body = [ast.copy_location(own, tree)]
    new.body += [ast.Import(names=[ast.alias(name=name)]) for name in imported]
    ast.fix_missing_locations(new)
    own.body = tree.body
    flags = code.co_flags & 0x1FE0000  # of `from __future__`
    try:
        made = compile(new, code.co_filename, "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    (middle,) = [c for c in made.co_consts if isinstance(c, CodeType)]
    (inner,) = [c for c in middle.co_consts if isinstance(c, CodeType) and c.co_name == FUNCTION]
    return inner.replace(co_name=code.co_name)


def _without_defaults(args: ast.arguments) -> ast.arguments:
    plain = lambda a: None if a is None else ast.arg(arg=a.arg)
    nothing = ast.Constant(value=None)
    return ast.arguments(
        posonlyargs=[plain(a) for a in args.posonlyargs],
        args=[plain(a) for a in args.args],
        vararg=plain(args.vararg),
        kwonlyargs=[plain(a) for a in args.kwonlyargs],
        kw_defaults=[nothing if d is not None else None for d in args.kw_defaults],
        kwarg=plain(args.kwarg),
        defaults=[nothing for _ in args.defaults],
    )


FUNCTION = "<function>"
