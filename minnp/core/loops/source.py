"""Functions with their loops handed over.

A function with loops is compiled again from its tree, each loop preceded by the question whether it runs compiled; if
not, the loop is Python's as it was: LOOP(number) is a dict of what it binds, or None, or False where LOOP(~number) is
to say that Python is through with it.
"""

from __future__ import annotations

import ast
import dis
import weakref
from collections.abc import Iterator
from statistics import median
from time import perf_counter
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as onp

from ..graph.syntax import FUNCTION, GENERATORS, compiled, copied, parse, tree_of
from ..rows.report import record


def has_loops(code: CodeType) -> bool:
    """Whether a function that is no generator goes over something, or back."""
    jumps = [i for i in dis.get_instructions(code) if i.opname == "FOR_ITER" or "JUMP_BACKWARD" in i.opname]
    return bool(jumps) and not code.co_flags & GENERATORS


LOOP, CALL = "__loop__", "__called__"


OF_CONTAINERS = {"append", "extend", "get", "items", "keys", "setdefault", "values"}  # methods that have no loops


OF_LISTS = {"append", "extend", "pop", "clear"}
FLOATS = {"float16", "float32", "float64", "half", "single", "double"}


class Site:
    """A loop in a function's source.

    reads    names that it reads
    stores   names that it binds
    wanted   those of them that are read after it
    shared   names that it binds and other functions see
    first    those that it binds before it reads them
    appended names that it uses in statements NAME.append(x) alone
    changed  other names whose items it appends, pops or assigns
    keyed    names that may be dicts whose keys are numbers
    set      those of them whose items it sets
    branches whether it has branches: a graph would hold one way through them
    steps    how many operations it has, about
    caught   whether the function may go on after what it raises
    refused  how often in a row Python had to run it
    rest     how often it is not to be looked at
    pace     whether compiled code is faster
    optional whether it is a whole function, whose loops run compiled as well where it is no program
    """

    def __init__(self, tree: ast.stmt, wanted: set[str], local: set[str], shared: set[str], caught: bool) -> None:
        self.tree, self.wanted, self.local = tree, wanted, local
        nodes = list(ast.walk(tree))
        names = [n for n in nodes if isinstance(n, ast.Name)]
        self.reads = {n.id for n in names if isinstance(n.ctx, ast.Load)}
        self.stores = {n.id for n in names if isinstance(n.ctx, ast.Store)}
        self.names = sorted(self.reads | self.stores)
        self.shared = self.stores & shared
        self.first = bound_first(tree) - self.shared if isinstance(tree, (ast.For, ast.While)) else set()
        self.caught = caught or bool(self.shared)  # who sees its names may go on as well
        calls = [n.value for n in nodes if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call)]
        used = [
            n.func.value.id
            for n in calls
            if isinstance(n.func, ast.Attribute) and n.func.attr == "append" and isinstance(n.func.value, ast.Name)
        ]
        every = [n.id for n in names]
        few = isinstance(tree, ast.For) and isinstance(tree.iter, (ast.Tuple, ast.List))  # Python is as fast
        alone = {n for n in used if used.count(n) == every.count(n) and n in local and n not in shared}
        self.appended = set() if few else alone
        methods = [n.value for n in nodes if isinstance(n, ast.Attribute) and n.attr in OF_LISTS]
        displays = ast.List, ast.Tuple
        methods += [n.target for n in nodes if isinstance(n, ast.AugAssign) and isinstance(n.value, displays)]
        assigned = [n.value for n in nodes if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
        changed = {n.id for n in (*methods, *assigned) if isinstance(n, ast.Name)}
        self.changed = {n for n in changed - self.appended if n in local and n not in shared}
        self.keyed = {n for n in keyed(nodes) - self.appended if n in local and n not in shared}
        calls = [n.func for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
        changed |= {n.value.id for n in calls if n.attr == "setdefault" and isinstance(n.value, ast.Name)}
        self.set = changed & self.keyed
        self.steps = max(1, sum(isinstance(n, (ast.Call, ast.BinOp, ast.UnaryOp, ast.AugAssign)) for n in nodes))
        self.branches = any(isinstance(n, (ast.If, ast.IfExp, ast.BoolOp)) for n in nodes)
        self.programs: dict[Any, Any] = {}
        self.compiled = self.refused = self.rest = 0
        self.pace = Pace()
        self.optional = False


OF_DICTS = {"get", "items", "keys", "values", "setdefault"}


def keyed(nodes: list[ast.AST]) -> set[str]:
    """Names that may be dicts whose keys are numbers: by all that is done with them."""
    every = [n.id for n in nodes if isinstance(n, ast.Name)]
    used = []
    for n in nodes:
        match n:
            case ast.Subscript(ast.Name(name), index) if not isinstance(index, (ast.Slice, ast.Constant)):
                used.append(name)
            case ast.Call(ast.Attribute(ast.Name(name), method)) if method in OF_DICTS:
                used.append(name)
            case ast.Compare(_, [ast.In() | ast.NotIn()], [ast.Name(name)]) | ast.For(_, ast.Name(name)):
                used.append(name)
            case ast.Call(ast.Name("len"), [ast.Name(name)]) | ast.Assign([ast.Name(name)], ast.Dict([])):
                used.append(name)
    return {name for name in used if used.count(name) == every.count(name)}


class Pace:
    """Which is faster, compiled code or Python. To look at the variables takes some microseconds, in which Python is
    through with a loop of a few turns; and it takes longer to make a list of what was appended than to append it.

    Where compiled code spends most of its time so, or Python may be faster for what the loop does, it is measured by
    turns with Python, whose time is bounded then.
    """

    SAMPLES, FIRST, LONGEST = 4, 8, 1 << 12

    def __init__(self) -> None:
        self.machine = 0.0  # seconds of the last call of machine code alone
        self.doubtful = False  # whether it multiplies matrices, or appends little to lists
        self.compiled: list[float] = []
        self.python: list[float] = []
        self.asked = False  # whether Python is to be measured
        self.began = 0.0
        self.patience = self.FIRST  # how many turns an answer holds
        self.turns_left = self.rest = 0  # turns that compiled code is to have, and Python
        self.usual = 0.0  # what Python takes where it is faster

    def took(self, seconds: float) -> bool:
        """A run by compiled code did. Whether it was worth it, as far as is known."""
        if 4 * self.machine > seconds and not self.doubtful:
            self.patience, self.usual, self.asked = self.FIRST, 0.0, False
            self.compiled.clear()
        elif self.turns_left:
            self.turns_left -= 1
        else:
            self.compiled.append(seconds)
            self.asked = len(self.compiled) > self.SAMPLES
            return not self.usual
        return True

    def pythons(self) -> bool | None:
        """What a loop is told that is Python's to run: False, to say when it ends, or None."""
        if self.rest:
            self.rest -= 1
            if self.rest & 3:  # the fourth is watched
                return None
        nested, self.began = self.began, 0.0
        if nested:  # it runs in itself: nobody knows its time
            return None
        self.began = perf_counter()
        return False

    def end(self) -> None:
        """Python's run ended."""
        began, self.began = self.began, 0.0
        seconds = perf_counter() - began
        if not began:
            return
        if not self.asked:
            if self.usual and seconds > 32 * self.usual + 1e-5:  # another number of turns
                self.rest, self.patience, self.usual = 0, self.FIRST, 0.0
            return
        self.python.append(seconds)  # the first one may have had more to do, as compiled code's
        compiled = median(self.compiled[1:])
        if len(self.python) <= self.SAMPLES and seconds < (8 if len(self.python) > 1 else 64) * compiled:
            return
        usual = median(self.python[1:] or self.python)
        if usual < compiled:
            self.rest, self.usual = self.patience, usual
        else:
            self.turns_left, self.usual = self.patience, 0.0
        self.patience = min(2 * self.patience, self.LONGEST)
        self.asked = False
        self.compiled, self.python = [], []


PLACES = {"argsort", "argpartition", "argwhere", "flatnonzero", "lexsort", "unique"}  # that a loop goes over


class Rewriter(ast.NodeTransformer):
    """Puts the question before every outermost loop, and before what may be a call of a function with loops."""

    def __init__(self, function: Any, tree: ast.FunctionDef) -> None:
        self.function, self.tree = function, tree
        self.sites: list[Site] = []
        self.refused: list[tuple[int, str]] = []  # lines of loops that no site stands for, and why
        self.changed = False
        code = function.__code__
        self.local = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
        self.depth = self.caught = 0
        nodes = list(ast.walk(tree))
        said = [n for n in nodes if isinstance(n, (ast.Global, ast.Nonlocal))]
        self.others = {name for n in said for name in n.names}  # variables of others
        self.loads = [n for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Store)]
        self.shared = {*code.co_cellvars, *code.co_freevars} | self.others
        self.handed = sorted(written_inside(tree) & {*code.co_cellvars})  # what functions made inside may write to

    def visit_Try(self, node: Any) -> Any:
        self.caught += 1
        node = self.generic_visit(node)
        self.caught -= 1
        return node

    visit_TryStar = visit_With = visit_Try  # contextlib.suppress

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node  # functions made inside are rewritten when they are called

    visit_Lambda = visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def comprehension(self, node: Any) -> Any:
        outside = self.local
        targets = [n for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)]
        self.local = outside | {n.id for n in targets}
        node = self.generic_visit(node)
        self.local = outside
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension

    def loop(self, node: ast.For | ast.While) -> Any:
        nodes = list(ast.walk(node))
        inside, anew = {id(n) for n in nodes}, bound_first(node) if self.depth else set()
        loads = [n.id for n in self.loads if id(n) not in inside or (self.depth and n.id not in anew)]
        nested = [
            n
            for n in nodes
            if isinstance(
                n, (ast.FunctionDef, ast.Lambda, ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal, ast.Await)
            )
        ]
        stores = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        returns = any(isinstance(n, ast.Return) for n in nodes)
        writes = returns or any(isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) for n in nodes)
        kept = copied(node)
        self.depth += 1
        inner = self.generic_visit(node)
        self.depth -= 1
        if nested:
            what = {ast.FunctionDef: "makes a function", ast.Lambda: "makes a function"}.get(type(nested[0]))
            self.refused.append((node.lineno, what or f"has {type(nested[0]).__name__.lower()} in it"))
        if nested or not (stores or writes):
            return inner
        self.changed = True
        number = len(self.sites)
        before: list[ast.stmt] = []
        if isinstance(inner, ast.For) and not self.depth and self.finds_places(inner.iter):
            name = f"__over{number}__"
            before = [ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=inner.iter)]
            self.local.add(name)
            for loop in (inner, kept):
                loop.iter = ast.copy_location(ast.Name(id=name, ctx=ast.Load()), loop.iter)
        wanted = stores & (set(loads) | self.others)
        self.sites.append(Site(kept, wanted, self.local, self.shared, self.caught > 0))
        found = f"__found{number}__"
        cells = f", lambda: ({', '.join(self.handed)},)" if self.handed else ""
        ask = parse(f"{found} = {LOOP}({number}{cells})").body[0]
        answers: list[ast.stmt] = []
        for name in sorted(wanted):
            answers += parse(f"if {name!r} in {found}: {name} = {found}[{name!r}]").body
        if returns:
            answers += _inside_function(f"if '<return>' in {found}: return {found}['<return>']")
        test = parse(f"not {found}", mode="eval").body
        measured = parse(f"if {found} is False: {LOOP}({~number})").body[0]
        choice = ast.If(test=test, body=[inner, measured], orelse=answers or [ast.Pass()])
        out = [*before, ask, choice]
        for n in [ask, *[m for a in [test, measured, *answers] for m in ast.walk(a)], *ast.walk(ask)]:
            if isinstance(n, (ast.stmt, ast.expr)):
                n.lineno = n.end_lineno = node.lineno
                n.col_offset = n.end_col_offset = node.col_offset
        return [ast.copy_location(s, node) for s in out]

    visit_For = visit_While = loop

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in (
            "super",
            "locals",
            "globals",
            "vars",
            "eval",
            "exec",
            "dir",
        ):
            return node
        if isinstance(node.func, ast.Attribute) and node.func.attr in OF_CONTAINERS:
            return node
        if self.may_loop(node.func) or self.converts(node.func):
            self.changed = True
            name = ast.copy_location(ast.Name(id=CALL, ctx=ast.Load()), node)
            node.func = ast.copy_location(ast.Call(func=name, args=[node.func], keywords=[]), node)
        return node

    def finds_places(self, node: ast.expr) -> bool:
        """Whether a loop goes over an array that NumPy makes before it, which is no matter of the loop's program."""
        match node:
            case ast.Call(ast.Attribute(ast.Name(module), name)) if name in PLACES and module not in self.local:
                return getattr(self.function.__globals__.get(module), "__name__", "") in ("numpy", "minnp.numpy")
        return False

    def converts(self, node: ast.expr) -> bool:
        """Whether a callee is a type of NumPy's floats: np.float32(x) of what is followed is x.astype(np.float32)."""
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        at = node.value if isinstance(node, ast.Attribute) else node
        if name not in FLOATS or not isinstance(at, ast.Name) or at.id in self.local:
            return False
        found = self.function.__globals__.get(at.id)
        return (getattr(found, name, None) if at is not node else found) is getattr(onp, name)

    def may_loop(self, node: ast.expr) -> bool:
        """Whether a callee may be a function of the user's."""
        at: ast.expr = node
        while isinstance(at, (ast.Attribute, ast.Subscript, ast.Call)):  # methods, tables of functions, what makes one
            at = at.func if isinstance(at, ast.Call) else at.value
        if not isinstance(at, ast.Name):
            return isinstance(at, (ast.IfExp, ast.BoolOp, ast.NamedExpr))
        if at.id in self.local or at.id == CALL:
            return True
        found = self.function.__globals__.get(at.id)
        name = getattr(found, "__module__", None) or getattr(found, "__name__", "")
        return found is not None and str(name).split(".")[0] not in ("numpy", "minnp", "math", "builtins")


def recursive(f: Any) -> list[FunctionType]:
    """The functions of the user's that call themselves and assign items, which f calls or is: a graph would have every
    call's steps one after the other."""
    return [g for g, others in calls_of(f) if assigns_items(g) and any(other is g for other in others)]


def calls_of(f: Any) -> Iterator[tuple[FunctionType, list[FunctionType]]]:
    """A function of the user's, and those of its module that it may call, each with the ones that it names."""
    seen: set[Any] = set()
    pending = [f.__func__ if isinstance(f, MethodType) else f]
    while pending:
        g = pending.pop()
        if type(g) is not FunctionType or g.__code__ in seen or len(seen) > 64:
            continue
        seen.add(g.__code__)
        cells, others = dict(zip(g.__code__.co_freevars, g.__closure__ or ())), []
        for name in {
            i.argval for i in dis.get_instructions(g) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF")
        }:
            try:
                other = cells[name].cell_contents if name in cells else g.__globals__.get(name)
            except ValueError:
                continue
            if type(other) is FunctionType and other.__module__ == g.__module__:
                others.append(other)
        pending += others
        yield g, others


def assigns_items(f: FunctionType) -> bool:
    return any(i.opname == "STORE_SUBSCR" for i in dis.get_instructions(f))


def keeps_in_loops(f: Any) -> bool:
    """Whether a function of the user's, or one that it calls, fills lists or writes to arrays of names that it binds
    anew: then it is one program under a gradient, where it can be one."""
    inner = f.__func__ if isinstance(f, MethodType) else f
    if type(inner) is not FunctionType:
        return False
    found = _KEEPS.get(inner.__code__)
    if found is None:
        found = _KEEPS[inner.__code__] = any(
            fills_lists(g) or writes_rebound(g) or shares_variables(g) for g, _ in calls_of(inner)
        )
    return found


_KEEPS: weakref.WeakKeyDictionary[CodeType, bool] = weakref.WeakKeyDictionary()


def fills_lists(f: Any) -> bool:
    """Whether a function of the user's fills lists in loops, or in comprehensions."""
    inner = f.__func__ if isinstance(f, MethodType) else f
    if type(inner) is not FunctionType:
        return False
    found = _FILLS.get(inner.__code__)
    if found is None:
        tree = tree_of(inner)
        nodes = [] if tree is None else [*ast.walk(tree)]
        loops = [n for n in nodes if isinstance(n, (ast.For, ast.While))]
        appends = (isinstance(n, ast.Attribute) and n.attr in OF_LISTS for loop in loops for n in ast.walk(loop))
        repeated = lambda n: isinstance(n, ast.BinOp) and any(isinstance(x, ast.List) for x in (n.left, n.right))
        made = (isinstance(n, (ast.ListComp, ast.GeneratorExp)) or (loops and repeated(n)) for n in nodes)
        found = _FILLS[inner.__code__] = any(appends) or any(made)
    return found


def written_inside(tree: ast.AST) -> set[str]:
    """The names that functions made inside may bind or assign items of."""
    inner = [n for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and f is not tree for n in ast.walk(f)]
    bound = {name for n in inner if isinstance(n, ast.Nonlocal) for name in n.names}
    stores = [n.value for n in inner if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
    return bound | {n.id for n in stores if isinstance(n, ast.Name)}


def shares_variables(f: FunctionType) -> bool:
    """Whether functions that a function of the user's makes inside write to its variables, and it has loops."""
    tree = tree_of(f) if f.__code__.co_cellvars and has_loops(f.__code__) else None
    return tree is not None and bool(written_inside(tree) & {*f.__code__.co_cellvars})


def writes_rebound(f: Any) -> bool:
    """Whether a function of the user's writes in place to what a name stands for from turn to turn of a loop, which
    binds it to other arrays, too: whose array that is before the loop only the function tells."""
    inner = f.__func__ if isinstance(f, MethodType) else f
    if type(inner) is not FunctionType:
        return False
    found = _WRITES.get(inner.__code__)
    if found is None:
        tree = tree_of(inner)
        loops = [] if tree is None else [n for n in ast.walk(tree) if isinstance(n, (ast.For, ast.While))]
        found = _WRITES[inner.__code__] = any(writes_what_it_binds(loop) for loop in loops)
    return found


def writes_what_it_binds(loop: ast.For | ast.While) -> bool:
    nodes = [*ast.walk(loop)]
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    stores = [n.value for n in nodes if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
    return bool(bound & {n.id for n in stores if isinstance(n, ast.Name)} - bound_first(loop))


_WRITES: weakref.WeakKeyDictionary[CodeType, bool] = weakref.WeakKeyDictionary()
_FILLS: weakref.WeakKeyDictionary[CodeType, bool] = weakref.WeakKeyDictionary()


def calls_itself(f: FunctionType) -> bool:
    """Whether a function reads its own name, which is its own."""
    code = f.__code__
    if f.__name__ in code.co_freevars:
        try:
            return f.__closure__[code.co_freevars.index(f.__name__)].cell_contents is f  # type: ignore[index]
        except ValueError:
            return False
    if f.__name__ not in code.co_names or f.__globals__.get(f.__name__) is not f:
        return False
    # which may be an attribute of that name, as in `def exp(x): return np.exp(x)`
    return any(i.argval == f.__name__ for i in dis.get_instructions(f) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"))


def call_of(f: FunctionType) -> Site:
    """The return of a call of a function, whose arguments are variables: <>, <#>, <##>, ..."""
    names = [f"<{'#' * k}>" for k in range(f.__code__.co_argcount)]
    call = ast.Call(func=ast.Name(FUNCTION, ast.Load()), args=[ast.Name(n, ast.Load()) for n in names], keywords=[])
    tree = ast.Return(value=call)
    for n in ast.walk(tree):
        n.lineno, n.col_offset = f.__code__.co_firstlineno, 0  # type: ignore[attr-defined]
    return Site(tree, set(), {FUNCTION, *names}, set(), False)


def bound_first(loop: ast.For | ast.While) -> set[str]:
    """The names that a loop, when it is come to again, binds before it reads them."""
    names = lambda tree, how: {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, how)}
    found: set[str] = set()
    read = names(loop.test, ast.Load) if isinstance(loop, ast.While) else names(loop.iter, ast.Load)
    read |= {name for s in loop.orelse for name in names(s, ast.Load)}
    if isinstance(loop, ast.For):
        found |= names(loop.target, ast.Store) - read
    for s in loop.body:
        read |= names(s.value if isinstance(s, ast.Assign) else s, (ast.Load, ast.Del)) - found
        if isinstance(s, ast.AugAssign):
            read |= names(s.target, ast.Store)
        if isinstance(s, ast.Assign):
            for target in s.targets:
                read |= names(target, ast.Load) - found
                found |= names(target, ast.Store) - read
    return found


def _inside_function(text: str) -> list[ast.stmt]:
    return parse(f"def f():\n    {text}").body[0].body  # type: ignore[attr-defined]


def say(f: Any, line: int, why: str, where: str = "python") -> None:
    """Report that Python runs a loop, or one thread."""
    record(f"loop in {f.__qualname__}", where, 0.0, (), f"{why} ({f.__code__.co_filename}:{line})")


def rewritten(f: Any, make: Any) -> Any:
    """The function with its loops handed over, or itself where there is nothing to hand over.

    make   (sites, f) -> (what is asked before a loop, what is asked of a callee; its `forget` lets go of these)

    One that has a `forget` may be kept, if that is called whenever it ran.
    """
    if isinstance(f, MethodType):
        inner = rewritten(f.__func__, make)
        return f if inner is f.__func__ else MethodType(inner, f.__self__)
    if type(f) is not FunctionType:
        return f
    tree, code = tree_of(f), _REWRITTEN.get(f.__code__)
    if code is None and tree is None:
        why = [(f.__code__.co_firstlineno, "is that of a function whose source is in no file")]
        code = _REWRITTEN[f.__code__] = (None, [], why if has_loops(f.__code__) else [])
    elif code is None:
        rewriter = Rewriter(f, copied(tree))
        body = [rewriter.visit(s) for s in rewriter.tree.body]
        flat = [t for s in body for t in (s if isinstance(s, list) else [s])]
        new = None
        if rewriter.changed:
            changed = ast.FunctionDef(
                **{k: getattr(tree, k, None) for k in ("name", "args", "returns", "type_comment")},
                body=flat,
                decorator_list=[],
                type_params=[],
            )
            changed = ast.fix_missing_locations(ast.copy_location(changed, tree))
            new = compiled(changed, f.__code__, [LOOP, CALL])
        code = _REWRITTEN[f.__code__] = (new, rewriter.sites, rewriter.refused)
    new, sites, refused = code
    for line, why in refused:
        say(f, line, f"the loop {why}")
    if new is None:
        return f
    ask, called = make(sites, f)
    cells = dict(zip(f.__code__.co_freevars, f.__closure__ or ()))
    cells |= {LOOP: CellType(ask), CALL: CellType(called)}
    out = FunctionType(new, f.__globals__, f.__name__, f.__defaults__, tuple([cells[n] for n in new.co_freevars]))
    out.__kwdefaults__, out.__qualname__, out.__module__ = f.__kwdefaults__, f.__qualname__, f.__module__
    if not refused:  # which are reported whenever it is made
        out.forget = getattr(called, "forget", None)  # type: ignore[attr-defined]
    return out


_REWRITTEN: weakref.WeakKeyDictionary[CodeType, tuple] = weakref.WeakKeyDictionary()
