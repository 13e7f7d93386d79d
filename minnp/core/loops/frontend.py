"""From the syntax tree of a loop, and the types of what it reads, to a typed program."""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import functools
import inspect
import itertools
import math
import operator
import sys
import weakref
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as onp

from ..api.functions import PUBLIC
from ..cpu.threads import prange
from ..graph.syntax import copied, parse, tree_of
from ..rows import budget
from . import matrices
from .arrays import LONGEST, ONE, Lazy, Masked
from .arrays import whole as is_whole
from .building import Building, InColumns, Static, Tup, listed
from .chosen import EVERY
from .draws import base_of, drawn, function_of
from .ir import (
    BOOL,
    CAPACITY,
    FLOAT,
    I8,
    INT,
    KINDS,
    MOST,
    NONE,
    WORD,
    Alloc,
    Array,
    Assign,
    Bind,
    Block,
    Call,
    Check,
    Define,
    E,
    For,
    If,
    Input,
    Kind,
    Leave,
    Program,
    Store,
    View,
    While,
    const,
    constant,
    defined,
    kind_of,
    statements,
)
from .numbers import Known, number
from .operations import (
    BINARY,
    MATH,
    MATH_OF_TWO,
    NUMPYS,
    OPERATORS,
    UNARY,
    NotUnderstood,
    Unknown,
    join,
    place,
    result_kind,
)
from .outside import LISTED, Outside, Source, compares_by_type, is_plain_object, lies_in
from .products import plain as without_copies

AST_OPERATORS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "shr",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.USub: "neg",
    ast.UAdd: "pos",
    ast.Invert: "invert",
}
WRAPPING = (ast.Add, ast.Sub, ast.Mult, ast.BitAnd, ast.BitOr, ast.BitXor)  # whose last bits those of operands decide
ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
PASSES = 20
REDUCTIONS = ("sum", "prod", "min", "max", "mean", "any", "all", "argmin", "argmax", "var", "std")
DEPTH = 8  # of calls of Python functions in one another
ALIASES = {"absolute": "abs", "conjugate": "conj", "concatenate": "concat", "true_divide": "divide"}
MAKERS = {"copy", "array", "where", "dot", "matmul", "exp", "log", "sin", "cos", "tanh", "sqrt", "maximum", "minimum"}
LINALG = ("norm", "solve", "inv", "det", "cholesky")
ANGLES = {"degrees": True, "rad2deg": True, "radians": False, "deg2rad": False}  # whether degrees come out
with onp.errstate(all="ignore"):
    POWERS_ARE_ROOTS = bool(onp.isnan(onp.power(-onp.inf, 0.5)))  # from NumPy 2.3 on, of one exponent
UNROLLED = 32  # items of a tuple that a loop goes over


class Range:
    def __init__(self, start: E, stop: E, step: E) -> None:
        self.start, self.stop, self.step, self.asked = start, stop, step, False

    @property
    def items(self) -> list[E]:
        return [self.start, self.stop, self.step]


class Cut:
    """slice(start, stop, step)"""

    def __init__(self, ends: tuple) -> None:
        self.ends = ends


class Zip:
    """zip(items...), enumerate(items[0], start)."""

    def __init__(self, items: list, count: E | None = None) -> None:
        self.items, self.count = items, count


class Grid:
    """np.ndindex(*dims), np.ndenumerate(array)."""

    def __init__(self, dims: list[E], array: Array | None = None) -> None:
        self.dims, self.array = dims, array


class Turns:
    """A comprehension, before something goes over it. Its names are its own: `mark` is behind them."""

    def __init__(self, node: ast.GeneratorExp | ast.ListComp) -> None:
        self.node, self.mark = node, f"{node.lineno}.{node.col_offset}"
        self.names = stored_names(ast.Tuple(elts=[g.target for g in node.generators], ctx=ast.Store()))
        self.read: tuple | None = None  # of one that a name is bound to: what it reads, as it was

    def own(self, tree: Any) -> Any:
        """A part of it in which its names are marked."""
        tree = copied(tree)
        for n in ast.walk(tree):
            if isinstance(n, ast.Name) and n.id in self.names:
                n.id = f"{n.id}.{self.mark}"
        return tree


class Do(ast.stmt):
    """A statement that is no Python: what is called emits it."""

    def __init__(self, call: Callable[[], None]) -> None:
        super().__init__()
        self.call = call


class Scalar(str):
    """A name of Python's that stands for the variable of this name in the program."""


class Parts(NamedTuple):
    """A name of Python's that stands for a tuple, a list or a range, whose items are variables: NAME[0], ..."""

    count: int
    type: type


class Growing(InColumns):
    """A list of Python's of numbers, or of tuples of numbers; or of new arrays, if they are only appended to it.

    sort   "tuple" or "list" of its items, "" of numbers; "dict": it is a dict, whose items are pairs, by integers
    kinds  of each column: the kinds that its numbers may have
    given  those of the list that is given; None if the loop makes it, or only appends to it
    own    whether the loop makes it
    fixed  whether nothing in the loop changes it
    default  of a dict: what makes the values that it lacks (defaultdict), or None
    axes   of the arrays; 0 of numbers
    rebound  whether the name of the one that is given is bound to others, too
    mates  the names of lists that may be one, as a name was bound to another's: each list has a number then
    roots  those that are given of which it may be one
    changed  of one that is given: whether its items change
    """

    def __init__(self, name: str, own: bool = False, given: tuple | None = None, sort: str = "") -> None:
        self.name, self.own, self.sort, self.fixed, self.default = name, own, sort, False, None
        self.axes = self.place = 0
        self.rebound = self.changed = False
        self.mates, self.roots = {name}, set() if own else {name}
        self.kinds: list[frozenset[Kind]] = []
        self.given: list[frozenset[Kind]] | None = None
        if given is not None:
            _, self.sort, columns, self.fixed, *default = given
            self.default = default[0] if default else None
            self.given = [frozenset(KINDS[k] for k in places) for places in columns]
            self.kinds = list(self.given)

    @property
    def count(self) -> str:
        return f"{self.name}<count>"

    @property
    def number(self) -> str:
        """Which list it is, of several: the place of one that is given, or FRESH and more."""
        return f"{self.name}<number>"

    @property
    def several(self) -> bool:
        """Whether the name may stand for several lists, or a list have several names."""
        return self.rebound or len(self.mates) > 1

    @property
    def slots(self) -> str:
        """Of a dict: the places of its items, by the hashes of their keys (0: none, else one more)."""
        return f"{self.name}<slots>"

    def columns(self, each: list[frozenset[Kind]] | None = None) -> list[tuple[str, Kind]]:
        """(variable, kind) of the arrays in which it is kept: the numbers, and behind them which kinds they have."""
        each = self.kinds if each is None else each
        values = [(f"{self.name}<{k}>", join(kinds)) for k, kinds in enumerate(each)]
        return [*values, *[(f"{self.name}<{k}>#", Kind("i1")) for k, kinds in enumerate(each) if len(kinds) > 1]]


class Part(NamedTuple):
    """of[start:stop] of a list, with ends inside of it."""

    of: Growing
    start: E
    stop: E


EMPTY = object()  # {}
OTHER_LENGTHS, LONGER = "other lengths of ", "more room than there is for "  # which names have that stand for arrays
WRITTEN = "the derivative of a name that stands for several arrays, of which one is written in place"
PART, FRESH = "a part", 1 << 20  # no root's name; the number of the first array made in a loop


class Moving:
    """What is known of a name that stands for one array and then for another: their dtype, number of axes and roots.

    found   the roots, in this pass; PART among them: it may be a part of an array
    ones    axes that have length 1 whatever it stands for
    """

    def __init__(self) -> None:
        self.kind: Kind | None = None
        self.ndim = 0
        self.roots: frozenset[str] = frozenset()
        self.found: frozenset[str] = frozenset()
        self.ones: frozenset[int] = frozenset(range(64))


class Columns(NotUnderstood):
    """A list that is given is to be kept in columns, as another one becomes that of its name."""

    def __init__(self, name: str, line: int) -> None:
        super().__init__(f"{name}, a list, bound to another", line)
        self.name = name


class Unread(NotUnderstood):
    """What a list holds that was not seen to hold anything: the next pass knows, by what is appended to it."""


class Anew(Exception):
    """A pass found a name that stands for one array and then for another: the next pass knows."""


class Lost:
    """What a name stands for depends on the way, which nothing here can hold."""


class Recursive:
    """A function that calls itself, which is one of the program's, too.

    fixed    parameters that are the same in every call: (an array that is an input, or an object)
    result   what it returns: "none", "scalar", "array", or a tuple of such; None if no call was seen to return
    guessed  whether calls are taken to return a number where nothing is known of that
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.fixed: dict[str, Any] = {}
        self.result: Any = None
        self.guessed = False


class Closure:
    """A function that is made inside: its tree, the scope that makes it, what its parameters are without arguments."""

    def __init__(self, tree: ast.FunctionDef, scope: Scope, defaults: dict[str, Any]) -> None:
        self.tree, self.scope, self.defaults = tree, scope, defaults


class End(NamedTuple):
    """Where a break or a continue goes. `ways`: (what is bound, what names stand for) where one leaves."""

    label: str
    ways: list[tuple[set[str], dict]]


class Scope:
    """The names of one function. `inlined`: whether it is run where it is called; `parent`: that of the function that
    it was made in, if that is being run."""

    def __init__(self, names: dict, function: Static | None, prefix: str, ends: str, inlined: bool = True) -> None:
        self.names, self.function, self.prefix, self.ends, self.inlined = names, function, prefix, ends, inlined
        self.local: set[str] = set(names)
        self.outer: set[str] = set()  # names that it binds, and that are variables of others
        self.parent: Scope | None = None
        self.tree: Any = None  # of a function that is made inside
        self.assigned = self.rebound = frozenset()  # what its statements bind, and what its expressions do
        self.breaks: list[End] = []
        self.continues: list[End] = []
        self.result: Any = None


class Translator(Building):
    """One pass over a loop."""

    def __init__(self, program: Program, known: dict[str, Known], rounds: int, found: Outside) -> None:
        super().__init__(program, known, rounds)
        self.found = found
        self.scopes: list[Scope] = []
        self.varying: frozenset[str] = frozenset()  # names of arrays, if they are so, whose lengths vary
        self.by_value = False  # whether names that stand for several arrays are arrays that are written
        # of lists, then: the shapes of what is appended; of arrays made at the start: of what they are bound to
        self.columns: dict[str, list[list[E]]] = {}
        self.early: set[str] = set()  # names whose own arrays are made there
        self.fields: dict[str, Any] = {}  # what is found outside, by the variable that it is
        self.exchanged: set[str] = set()  # names whose arrays others are bound to
        self.copies: dict[str, tuple[str, frozenset[str], E]] = {}  # of what name's array, its roots, which it was
        self.numbers: dict[str, E] = {}  # which of them arrays made in the loop are
        self.earlier: dict[str, Any] = {}  # what variables stand for that the turn before bound: as they were read
        self.unbound: set[str] = set()  # names that have an array before the loop binds them
        self.own: set[str] = set()  # names bound to arrays in loops alone, which are the program's own arrays
        self.shown: set[str] = set()  # inputs that these have copies of
        # of this statement, by their text: (the mask, how many writes came before, where it is computed)
        self.masks: dict[str, tuple[Array, int, list]] = {}
        self.taken: dict[str, str] = {}  # arrays made in the loop that names are bound to
        self.recent: set[str] = set()  # arrays made since the last branch or loop began or ended
        self.latest: dict[str, tuple[str, int]] = {}  # of names bound to one of them: (which, the version of the name)
        self.listed: dict[str, set[str]] = {}  # of lists: arrays that were appended to them, and those read from them
        self.touched: set[str] = set()  # roots that are written in place
        self.rebinds = 0  # how often names were bound to other arrays, so far in the text
        self.calls = itertools.count()  # of functions, in the order of the text: their variables keep their names
        self.times: dict[str, int] = {}  # how often names were bound so far in the text
        self.aliased: set[str] = set()  # names bound to the lists of others, which are kept item by item
        self.gone_through: list[str] = []  # lists that the loops around go over
        self.tables: dict[str, Array] = {}  # of tuples of numbers that are the same throughout, by their text

    @property
    def scope(self) -> Scope:
        return self.scopes[-1]

    origin: tuple[str, str] | None = None

    def location(self) -> tuple[str, str, int]:
        inner = self.scope.function
        file, module = (inner.value.__code__.co_filename, inner.value.__module__) if inner else self.origin or ("", "")
        return file, module, self.line

    # -------------------------------------------------------------- statements
    def body(self, statements: list[ast.stmt]) -> None:
        for s in statements:
            self.line, self.masks = s.lineno, {}
            if self.deadline.passed():
                raise self.fail(f"more than {budget.seconds} s of compiling")
            try:
                getattr(self, f"do_{type(s).__name__}", self.refuse)(s)
            except Unread:
                if self.rounds:
                    raise
                self.moved = True
            if type(s) in (ast.Break, ast.Continue, ast.Return):
                break

    def refuse(self, node: ast.AST) -> Any:
        name = type(node).__name__.lower()
        raise self.fail(f"{'an' if name[0] in 'aeiou' else 'a'} {name} in a loop")

    def do_Do(self, s: Do) -> None:
        s.call()

    def do_Pass(self, s: ast.Pass) -> None: ...

    def do_Nonlocal(self, s: ast.Nonlocal | ast.Global) -> None:
        if len(self.scopes) < 2:
            self.refuse(s)
        self.scope.outer.update(s.names)

    do_Global = do_Nonlocal

    def do_FunctionDef(self, s: ast.FunctionDef) -> None:
        if s.decorator_list:
            raise self.fail(f"{s.name}, a function with a decorator")
        self.scope.names[s.name] = self.made_inside(s)
        self.scope.local.add(s.name)

    def of_Lambda(self, node: ast.Lambda) -> Static:
        back = ast.copy_location(ast.Return(value=node.body), node)
        tree = _LAMBDAS.get(node)
        if tree is None:
            tree = _LAMBDAS[node] = ast.copy_location(parse("def f(): pass").body[0], node)  # type: ignore[assignment]
            tree.name, tree.args, tree.body = "lambda", node.args, [back]
        return self.made_inside(tree)

    def made_inside(self, tree: ast.FunctionDef) -> Static:
        args = tree.args
        more = [n for n in ast.walk(tree) if isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await))]
        if more or args.vararg or args.kwarg:
            raise self.fail(f"{tree.name}, a generator, or a function of any number of arguments")
        names = [a.arg for a in (*args.posonlyargs, *args.args)]
        given = dict(zip(names[len(names) - len(args.defaults) :], args.defaults))
        given |= {a.arg: d for a, d in zip(args.kwonlyargs, args.kw_defaults) if d is not None}
        return Static(Closure(tree, self.scope, {n: self.now(self.value(d)) for n, d in given.items()}))

    def enclosed(self, closure: Closure, args: list, kwargs: dict) -> Any:
        """What a function returns that is made inside."""
        tree = closure.tree
        if closure.scope not in self.scopes:
            raise self.fail(f"{tree.name}, called behind the function that it was made in")
        if len(self.scopes) > DEPTH or any(s.tree is tree for s in self.scopes):
            raise self.fail(f"{tree.name}, a function made inside, calls itself")
        places = [a.arg for a in (*tree.args.posonlyargs, *tree.args.args)]
        keywords = {a.arg for a in (*tree.args.args, *tree.args.kwonlyargs)}
        names = dict(zip(places, args))
        every = closure.defaults | names | kwargs
        if len(args) > len(places) or names.keys() & kwargs.keys() or not kwargs.keys() <= keywords:
            raise self.fail(f"the arguments of {tree.name}")
        if every.keys() != {*places, *keywords}:
            raise self.fail(f"the arguments of {tree.name}")
        number = next(self.calls)
        scope = Scope({}, closure.scope.function, f"{tree.name}.{number}.", f"return.{number}")
        scope.parent, scope.tree = closure.scope, tree
        given = {n: self.list_of_turns(x) if isinstance(x, Turns) else x for n, x in every.items()}
        return self.run(tree, scope, {n: given[n] for n in (*places, *keywords)})

    def do_Expr(self, s: ast.Expr) -> None:
        if isinstance(s.value, ast.Constant):
            return
        if not isinstance(s.value, ast.Call):
            raise self.fail("an expression whose value is not used")
        self.value(s.value)

    def add(self, growing: Growing, node: ast.expr, value: Any) -> None:
        """growing.append(value), which is that of an expression."""
        x = self.array_for(growing, node, value)
        self.grow(growing, value) if x is None else self.append_array(growing, x)

    def grow(self, growing: Growing, value: Any) -> None:
        items = self.fitting_items(growing, value)
        count = self.length_of(growing)
        tags = [self.tag(x) for x, kinds in zip(items, growing.kinds) if len(kinds) > 1]
        for (variable, kind), x in zip(growing.columns(), [*items, *tags]):
            x = self.frozen(self.cast(x, kind))
            held = self.stands_for(variable)
            self.make_room(variable, kind, count, [])
            self.emit(Store(held.name, (count,), x))
        self.emit(Assign(growing.count, E("add", (count, const(1)), INT, 0, 2**40)))

    def make_room(self, variable: str, kind: Kind, count: E, dims: list[E]) -> None:
        """Room for one item more, of this shape, in a column."""
        held = self.stands_for(variable)
        if self.by_value:
            self.columns.setdefault(variable, []).append(dims)
            return self.emit(Check(E("lt", (count, held.dims[0]), BOOL, 0, 1), "crowded"))
        with self.into([]) as grow:
            room = self.greatest(self.temporary(self.binary("mul", count, const(2))), const(16))
            more = self.new([room, *dims], kind, False)
            self.over([count, *dims], lambda k: self.emit(Store(more.name, tuple(k), self.load(held, k))))
            self.rebind(variable, more)
        self.emit(If(E("eq", (count, held.dims[0]), BOOL, 0, 1), grow, []))

    def append_array(self, growing: Growing, x: Array) -> None:
        """growing.append(x) of an array: the list has its numbers, and nobody can tell that they lie elsewhere."""
        if growing.given is not None:
            raise self.fail("an array appended to a list that is not only appended to")
        if not growing.kinds:
            growing.kinds, growing.axes = [frozenset((x.kind,))], x.ndim
            raise Anew
        if growing.axes != x.ndim or growing.kinds != [frozenset((x.kind,))]:
            raise self.fail("things of several types appended to a list")
        ((variable, kind),) = growing.columns()
        held, count, dims = self.stands_for(variable), self.length_of(growing), [*map(self.temporary, x.dims)]
        for n, d in zip(dims, held.dims[1:]):
            first = const(False) if self.by_value else E("eq", (count, const(0)), BOOL, 0, 1)
            self.check(E("or", (first, E("eq", (n, d), BOOL, 0, 1)), BOOL, 0, 1))
        self.make_room(variable, kind, count, dims)
        held = self.stands_for(variable)
        self.over(dims, lambda k: self.emit(Store(held.name, (count, *k), self.load(x, k))))
        self.emit(Assign(growing.count, E("add", (count, const(1)), INT, 0, 2**40)))

    def array_for(self, growing: Growing, node: ast.expr, value: Any) -> Array | None:
        """The array that a value is which is appended to a list, if the list may have a copy of it: nobody else has it,
        and nobody writes to it from here on; or the loop makes the list, and nothing there writes to the array."""
        if isinstance(value, Lazy) and makes_array(node):
            return self.materialised(value)
        if not isinstance(value, Array) or not value.ndim:
            return None
        root, version = self.latest.pop(value.name, (value.name, self.versions.get(value.name)))
        new = root in self.recent and version == self.versions.get(value.name) and value.name == value.root
        if not (new or growing.own):
            return None
        self.recent.discard(root)
        self.listed.setdefault(growing.name, set()).update((root,) if new else self.roots(value))
        return value

    def fitting_items(self, growing: Growing, value: Any) -> list[E]:
        """The numbers of what becomes an item of a list, in its columns."""
        items = value.items if isinstance(value, Tup) else [value]
        if not items or not all(isinstance(x, E) for x in items):
            raise self.fail("an array, or an object, appended to a list")
        sort = "" if not isinstance(value, Tup) else "list" if value.listed else "tuple"
        if not growing.kinds:
            growing.sort, growing.kinds = growing.sort or sort, [frozenset() for _ in items]
        if growing.sort == "dict":
            if sort != "tuple" or not is_whole(items[0]) or len(items[0].kinds) > 1:
                raise self.fail("a key that is no integer")
            if growing.kinds and growing.kinds[0] and growing.kinds[0] != items[0].kinds:
                raise self.fail("keys of several types")
        elif growing.sort != sort:
            raise self.fail("things of several lengths appended to a list")
        if len(growing.kinds) != len(items):
            raise self.fail("things of several lengths appended to a list")
        own = growing.given is None and growing.sort != "dict"
        items = [x if own else self.narrow(x) for x in items]
        items = [self.as_word(x) if x.kind == INT and WORD in kinds else x for x, kinds in zip(items, growing.kinds)]
        items = [self.frozen(x) for x in items]
        if any(not x.kinds <= kinds for x, kinds in zip(items, growing.kinds)):
            growing.kinds = [kinds | x.kinds for x, kinds in zip(items, growing.kinds)]
            growing.kinds = [frozenset((WORD,)) if kinds == {INT, WORD} else kinds for kinds in growing.kinds]
            for variable, _ in growing.columns():
                self.moving.pop(variable, None)
            raise Anew
        return items

    def begin(self, growing: Growing) -> None:
        """Room for a list, and what it holds."""
        self.program.kinds[growing.count] = INT
        length: E = const(-1 if growing.own else 0)
        for variable, kind in growing.columns(growing.given or []):
            source = f"{variable}.in"
            self.program.arrays[source] = array = Array(source, kind, 1, source)
            self.program.inputs.append(Input(source, kind, 1, False))
            length = array.dims[0]
        self.emit(Assign(growing.count, length))
        if growing.fixed:
            return self.make_slots(growing, length) if growing.sort == "dict" else None
        if self.by_value:
            return self.begin_by_value(growing)
        if not growing.own:
            growing.place = len(self.program.lists)
            self.program.lists[growing.name] = growing
        if growing.several:
            self.program.kinds[growing.number] = INT
            self.emit(Assign(growing.number, const(-1 if growing.own else growing.place)))
        count = self.length_of(growing)
        for variable, kind in growing.columns():
            self.moving.setdefault(variable, Moving())
            room = self.greatest(self.temporary(self.binary("mul", count, const(2))), const(64))
            dims = [const(0)] * (1 + growing.axes) if growing.axes else [room if growing.given else const(64)]
            made = self.new(dims, kind, False)
            self.rebind(variable, made)
            if growing.given:
                held = self.first_of(growing, variable, kind)
                self.over([count], lambda k: self.emit(Store(made.name, tuple(k), held(k))))  # noqa: B023
        if growing.sort == "dict":
            self.make_slots(growing, count)

    def begin_by_value(self, growing: Growing) -> None:
        """Columns that stay where they are: `translate` makes them, at the start of the program."""
        if growing.sort == "dict" or growing.several:
            what = "a dict" if growing.sort == "dict" else f"{growing.name}, a list of several names"
            raise self.fail(f"the derivative of {what}")
        for variable, kind in growing.columns():
            self.program.arrays[variable] = Array(variable, kind, 1 + growing.axes, variable)

    def first_of(self, growing: Growing, variable: str, kind: Kind) -> Callable[[list[E]], E]:
        """What a column of a list that is given holds at a place at first."""
        assert growing.given is not None
        kinds = growing.given[int(variable.rpartition("<")[2].rstrip("#>"))]
        if variable.endswith("#") and len(kinds) == 1:
            return lambda k: const(place(next(iter(kinds))), kind)
        array = self.program.arrays[f"{variable}.in"]
        return lambda k: self.cast(self.load(array, k), kind)

    # -------------------------------------------------------------- lists of numbers
    def list_of(self, node: ast.expr, changed: bool = False) -> Growing | None:
        """The list that a name stands for; None of anything else. A list that the source has is one from the next pass
        on, if it is changed."""
        if not isinstance(node, ast.Name):
            return None
        if self.scope.parent is not None and self.is_parents(node.id):
            return self.in_parent(lambda: self.list_of(node, changed))
        variable = self.scope.prefix + node.id
        found = self.scope.names.get(node.id, self.lists.get(variable))
        if isinstance(found, Turns):
            raise self.another_list(variable)
        if isinstance(found, Growing):
            if changed and found.fixed:
                raise self.fail("a list changed in a function that is given it")
            return self.bound_list(found)
        if changed and type_of(found) is list:
            if variable in self.displayed:
                raise self.another_list(variable)
            if self.initial.get(variable, " ")[0] == "list":
                raise Columns(variable, self.line)
        return None

    def bound_list(self, growing: Growing) -> Growing:
        """The list of a name, where it has one."""
        name, what = growing.name, self.initial.get(growing.name)
        if growing.own and name not in self.bound:
            if growing.sort != "dict" and what is not None:  # it may be the one that is given
                if what[0] != "items" or what[3]:
                    raise Columns(name, self.line)
                raise self.another_list(name, what)
            self.check(E("ge", (E("var", (growing.count,), INT), const(0)), BOOL, 0, 1))
        return growing

    def another_list(self, name: str, given: tuple | None = None) -> type[Anew]:
        """From the next pass on a name stands for lists that are made here, and for the one that is given, if any."""
        before, self.lists[name] = self.lists.get(name), Growing(name, own=given is None, given=given)
        now = self.lists[name]
        now.rebound = given is not None
        if before is not None:
            now.mates = before.mates
            for variable, _ in before.columns():
                self.moving.pop(variable, None)
        return Anew

    # -------------------------------------------------------------- lists that several names stand for
    def share(self, name: str, source: Growing) -> None:
        """name = source: another name of a list, or the only one of what an expression made."""
        target = self.lists.get(name)
        if target is source:
            return
        if source.fixed and source.name in self.initial and source.sort != "dict":
            raise Columns(source.name, self.line)
        whole = source.own or source.given is not None
        if "dict" in (source.sort, target and target.sort) or source.axes or source.fixed or not whole:
            raise self.fail(f"{source.name}, a list, used as a whole")
        if target is None or not (target.own or target.rebound):
            raise self.another_list(name)
        if self.by_value:
            if self.is_name(source.name, self.scope):
                raise self.fail(f"the derivative of {name}, another name of a list")
            self.fill_list(target, source)
            self.times[name] = self.times.get(name, 0) + 1
            return
        if target.mates is not source.mates:
            both = target.mates | source.mates
            for mate in both:
                self.lists[mate].mates = both
            raise Anew
        self.of_one_type(target, source)
        if not source.roots <= target.roots:
            target.roots |= source.roots
            self.moved = True
        for (variable, _), (other, _) in zip(target.columns(), source.columns()):
            self.rebind(variable, self.stands_for(other))
        self.emit(Assign(target.count, E("copy", (self.length_of(source),), INT, 0, 2**40)))
        self.emit(Assign(target.number, E("copy", (self.number_of(source),), INT, -1, 2**42)))
        self.bound.add(name)
        self.times[name] = self.times.get(name, 0) + 1

    def may_wait(self, what: Turns) -> bool:
        """Whether nobody can tell when a comprehension is computed, or how often, if what it reads stays as it is."""
        calls = [n.func for n in ast.walk(what.node) if isinstance(n, ast.Call)]
        plain = lambda f: (
            isinstance(f, ast.Name) and f.id not in self.scope.names and known_function(getattr(builtins, f.id, None))
        )
        return isinstance(what.node, ast.ListComp) and all(map(plain, calls))

    def reads_of(self, what: Turns) -> tuple:
        """What tells whether anything that a comprehension reads has changed since, in the order of the text."""
        names = {self.scope.prefix + n.id for n in ast.walk(what.node) if isinstance(n, ast.Name)}
        return self.writes, [(name, self.times.get(name)) for name in sorted(names)]

    def waiting(self, node: ast.expr) -> Turns | None:
        """The comprehension that a name is bound to, where it may be computed now."""
        found = self.scope.names.get(node.id) if isinstance(node, ast.Name) else None
        return found if isinstance(found, Turns) and found.read == self.reads_of(found) else None

    def told_apart(self, names: set[str]) -> None:
        """Of names that come out, those that may stand for one list keep it in columns, which says so."""
        found = [self.scope.prefix + name for name in sorted(names) if type_of(self.scope.names.get(name)) is list]
        found = [variable for variable in found if variable in self.aliased]
        if len(found) > 1:
            raise self.another_list(found[0])

    def of_one_type(self, a: Growing, b: Growing) -> None:
        """Lists of which a name may stand for the one or the other."""
        if (a.sort, a.kinds) == (b.sort, b.kinds):
            return
        if a.kinds and b.kinds:
            if a.sort != b.sort or len(a.kinds) != len(b.kinds):
                raise self.fail("a name of lists of several types")
            kinds = [x | y for x, y in zip(a.kinds, b.kinds)]
            kinds = [frozenset((WORD,)) if each == {INT, WORD} else each for each in kinds]
        else:
            kinds = a.kinds or b.kinds
        for growing in (a, b):
            growing.sort, growing.kinds = (a if a.kinds else b).sort, list(kinds)
            for variable, _ in growing.columns():
                self.moving.pop(variable, None)
        raise Anew

    def number_of(self, growing: Growing) -> E:
        return E("var", (growing.number,), INT, -1, 2**42)

    def changes(self, growing: Growing, longer: bool = True) -> None:
        """Before a list is changed. Names of one list share its items, but no other that may be read has its new
        length, or what is behind it."""
        self.writes += 1
        for name in growing.roots & self.lists.keys():
            self.lists[name].changed = True
        for name in sorted(growing.mates - {growing.name}) if longer else ():
            if name in self.gone_through or any(self.is_name(name, scope) for scope in self.scopes):
                other = self.number_of(self.lists[name])
                self.check(E("ne", (self.number_of(growing), other), BOOL, 0, 1))

    def is_name(self, variable: str, scope: Scope) -> bool:
        """Whether a list is that of a name of a function, and none that an expression makes."""
        return variable.startswith(scope.prefix) and variable.removeprefix(scope.prefix).isidentifier()

    def renewed(self, growing: Growing, room: E | None = None) -> Growing:
        """Another list, which is empty."""
        self.emit(Assign(growing.count, const(0)))
        for variable, kind in growing.columns():
            if not self.by_value:
                self.rebind(variable, self.new([const(16) if room is None else room], kind, False))
            elif room is not None:
                self.columns.setdefault(variable, []).append([])
                self.emit(Check(E("le", (room, self.stands_for(variable).dims[0]), BOOL, 0, 1), "crowded"))
        if growing.several:
            number = E("var", ("<lists>",), INT, FRESH, 2**42)
            self.emit(Assign(growing.number, E("copy", (number,), INT, FRESH, 2**42)))
            self.emit(Assign("<lists>", E("add", (number, const(1)), INT, FRESH, 2**42)))
        self.bound.add(growing.name)
        return growing

    def list_at(self, node: ast.AST, sort: str = "list") -> Growing:
        """The list of an expression, which is to be filled."""
        places = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        name = f"{self.scope.prefix}{sort}.{'.'.join(map(str, places))}"
        if name not in self.lists:
            raise self.another_list(name)
        return self.lists[name]

    def list_from(self, node: ast.AST, *parts: Any) -> Growing:
        """A new list of the items of these."""
        return self.fill_list(self.list_at(node), *parts)

    def fill_list(self, growing: Growing, *parts: Any) -> Growing:
        """growing = a new list of the items of these."""
        self.renewed(growing)
        for x in parts:
            self.every_item(x, lambda item: self.grow(growing, item))
        return growing

    def extend(self, growing: Growing, x: Any) -> None:
        """growing.extend(x)"""
        if isinstance(x, Turns):
            x = self.list_of_turns(x)
        self.changes(growing)
        self.every_item(x, lambda item: self.grow(growing, item))

    def every_item(self, x: Any, body: Callable[[Any], None]) -> None:
        """body(item) for every item of something."""
        if isinstance(x, Turns):
            return self.gone_over(x, body)
        if isinstance(x, Tup):
            for item in x.items:
                body(item)
            return
        if isinstance(x, (Growing, Part)) and (x if isinstance(x, Growing) else x.of).sort == "list":
            raise self.fail("lists that are in several others")
        if isinstance(x, Part):
            count = self.greatest(self.temporary(self.binary("sub", x.stop, x.start)), const(0))
            at = lambda k: self.temporary(self.binary("add", k[0], x.start))
            return self.over([self.frozen(count)], lambda k: body(self.item(x.of, at(k))))
        if not isinstance(x, (Growing, Array, Range, Zip)):
            raise self.fail("the items of an object")
        self.over([self.frozen(self.turns(x))], lambda k: body(self.part(x, k[0])))

    def repeated(self, node: ast.BinOp, items: Any, times: Any) -> Any:
        """[...] * times"""
        times = times if isinstance(times, E) else None
        if not isinstance(items, Tup) or times is None or times.kinds != {INT}:
            raise self.fail("an operator on lists")
        if any(type_of(x) is list for x in items.items):
            raise self.fail("one list several times in another")
        if times.op == "const" and times.args[0] * len(items.items) <= UNROLLED:
            return Tup(items.items * times.args[0], items.listed)
        if not items.listed:
            raise self.fail("an operator on tuples")
        growing, times = self.list_at(node), self.frozen(self.greatest(self.temporary(times), const(0)))
        rows = [self.fitting_items(growing, x) for x in items.items]
        self.renewed(growing, self.frozen(self.binary("mul", times, const(len(rows)))))

        def put(k: list[E]) -> None:
            for j, row in enumerate(rows):
                at = self.temporary(self.binary("add", self.binary("mul", k[0], const(len(rows))), const(j)))
                self.put_columns(growing, at, row)

        self.over([times], put)
        self.emit(Assign(growing.count, E("mul", (times, const(len(rows))), INT, 0, 2**40)))
        return growing

    def dict_of(self, node: ast.expr) -> Growing | None:
        """The dict of numbers that a name stands for."""
        if self.scope.parent is not None and isinstance(node, ast.Name) and self.is_parents(node.id):
            return self.in_parent(lambda: self.dict_of(node))
        found = self.scope.names.get(node.id) if isinstance(node, ast.Name) else None
        return found if isinstance(found, Growing) and found.sort == "dict" else None

    def length_of(self, growing: Growing) -> E:
        return E("var", (growing.count,), INT, 0, 2**40)

    def restart(self, growing: Growing, value: Any, source: ast.expr | None) -> None:
        """growing = [...]"""
        if growing.sort == "dict" and value is EMPTY:
            if not growing.own:
                self.lists[growing.name] = Growing(growing.name, own=True, sort="dict")
                raise Anew
            self.emit(Assign(growing.count, const(0)))
            self.bound.add(growing.name)
            self.make_slots(growing, const(0))
            self.scope.names[growing.name.removeprefix(self.scope.prefix)] = growing
            return
        if not (makes_list(source) and isinstance(value, Tup) and value.listed):
            raise self.fail(f"{growing.name}, a list, bound to something else")
        if not (growing.own or growing.rebound):  # what was given is another list
            raise self.another_list(growing.name)
        if growing.several:
            self.renewed(growing)
        self.emit(Assign(growing.count, const(0)))
        self.bound.add(growing.name)
        nodes = source.elts if isinstance(source, ast.List) else [source] * len(value.items)
        for node, item in zip(nodes, value.items):
            self.add(growing, node, item)
        self.scope.names[growing.name.removeprefix(self.scope.prefix)] = growing

    def item(self, growing: Growing, at: E) -> Any:
        """What a list holds at a place inside."""
        if not growing.kinds:
            raise Unread("an item of a list that is empty", self.line)
        if growing.axes:  # a copy: the list may have another one in its place before this is read
            row = self.part(self.stands_for(f"{growing.name}<0>"), at)
            made = self.materialised(self.lazy(row))
            self.listed.setdefault(growing.name, set()).add(made.name)
            return made
        values = []
        for k, kinds in enumerate(growing.kinds):
            variable = f"{growing.name}<{k}>"
            column = lambda v: self.program.arrays[f"{v}.in"] if growing.fixed else self.stands_for(v)
            e = self.load(column(variable), [at])
            tag = self.load(column(f"{variable}#"), [at]) if len(kinds) > 1 else None
            tag = tag if tag is None else self.temporary(self.cast(tag, INT))
            low, high = (0, 1) if e.kind.letter == "b" else (None, None)
            values.append(self.temporary(E("copy", (e,), join(kinds), low, high, kinds, tag)))
        return Tup(values, growing.sort == "list") if growing.sort else values[0]

    # -------------------------------------------------------------- dicts of numbers by integers
    def make_slots(self, growing: Growing, count: E) -> None:
        """Slots for so many items of a dict, four for each: a power of two."""
        self.moving.setdefault(growing.slots, Moving())
        self.program.elements = True
        name = self.fresh("size")
        self.program.kinds[name] = INT
        now = E("var", (name,), INT, 0, 2**42)
        self.emit(Assign(name, const(64)))
        size = self.frozen(self.binary("mul", self.temporary(count), const(4)))
        twice = Assign(name, E("mul", (now, const(2)), INT, 0, 2**42))
        self.emit(While([], E("lt", (now, size), BOOL, 0, 1), [twice]))
        slots = self.rebind(growing.slots, self.new([now], Kind("i8"), True))
        if growing.kinds:
            keys = self.keys_of(growing)

            def put(index: list[E]) -> None:
                slot, _ = self.slot_of(growing, self.load(keys, index))
                number = E("add", (index[0], const(1)), INT, 1, 2**40)
                self.emit(Store(slots.name, (slot,), self.cast(number, Kind("i8"))))

            self.over([self.frozen(self.length_of(growing))], put)

    def slot_of(self, growing: Growing, key: E) -> tuple[E, E]:
        """(the slot of a key, or the free one for it; one more than its place among the items, 0 if it has none)."""
        kind, slots = Kind("i8"), self.stands_for(growing.slots)
        key = self.frozen(self.cast(key, kind))
        keys = self.keys_of(growing) if growing.kinds else None
        mask = self.temporary(E("sub", (slots.dims[0], const(1)), INT, 0, 2**42))
        mixed = E("mul", (key, const(-7046029254386353131, kind)), kind)  # by 2**64 / the golden ratio (Knuth)
        name = self.fresh("slot")
        self.program.kinds[name] = INT
        slot = E("var", (name,), INT, 0, 2**42)
        high = self.temporary(E("cast", (E("shr", (self.temporary(mixed), const(32, kind)), kind),), INT))
        self.emit(Assign(name, E("and", (high, mask), INT, 0, 2**42)))
        with self.into([]) as test:
            number = self.temporary(self.cast(self.load(slots, [slot]), INT))
            taken = E("gt", (number, const(0)), BOOL, 0, 1)
            condition: E = const(False)
            if keys is not None:
                at = E("sub", (number, const(1)), INT, 0, 2**40)
                other = lambda: E("ne", (self.cast(self.load(keys, [at]), kind), key), BOOL, 0, 1)
                condition = self.both("and", taken, other)
        following = E("and", (E("add", (slot, const(1)), INT, 0, 2**42), mask), INT, 0, 2**42)
        self.emit(While(test, condition, [Assign(name, following)]))
        found = self.temporary(self.cast(self.load(slots, [slot]), INT))
        return self.frozen(slot), E("copy", (found,), INT, 0, 2**40)

    def keys_of(self, growing: Growing) -> Array:
        name = f"{growing.name}<0>"
        return self.program.arrays[f"{name}.in"] if growing.fixed else self.stands_for(name)

    def key_of(self, growing: Growing, value: Any) -> E:
        key = self.frozen(self.number(value))
        if not is_whole(key) or len(key.kinds) > 1:
            raise self.fail("a key that is no integer")
        if growing.kinds and growing.kinds[0] and growing.kinds[0] != key.kinds:
            raise self.fail("keys of several types")
        return key

    def entry_of(self, growing: Growing, key: E) -> E:
        """The place of a key's item. Python raises the KeyError."""
        if growing.default is not None:
            with self.into([]) as add:
                self.put_entry(growing, key, const(growing.default()))
            missing = E("eq", (self.temporary(self.slot_of(growing, key)[1]), const(0)), BOOL, 0, 1)
            self.emit(If(missing, add, []))
        _, number = self.slot_of(growing, key)
        number = self.temporary(number)
        self.check(E("gt", (number, const(0)), BOOL, 0, 1))
        return self.temporary(E("sub", (number, const(1)), INT, 0, 2**40))

    def put_entry(self, growing: Growing, key: E, value: Any) -> None:
        """growing[key] = value"""
        value = self.frozen(self.number(value))
        self.fitting_items(growing, Tup([key, value]))
        slot, number = self.slot_of(growing, key)
        number = self.temporary(number)
        with self.into([]) as change:
            place = self.temporary(E("sub", (number, const(1)), INT, 0, 2**40))
            first = self.temporary(self.item(growing, place).items[0])
            self.put_item(growing, place, Tup([first, value]))
        with self.into([]) as add:
            self.changes(growing)
            self.grow(growing, Tup([key, value]))
            count, slots = self.temporary(self.length_of(growing)), self.stands_for(growing.slots)
            self.emit(Store(slots.name, (slot,), self.cast(count, Kind("i8"))))
            with self.into([]) as more:
                self.make_slots(growing, count)
            full = E("gt", (E("mul", (count, const(2)), INT, 0, 2**42), slots.dims[0]), BOOL, 0, 1)
            self.emit(If(full, more, []))
        self.emit(If(E("gt", (number, const(0)), BOOL, 0, 1), change, add))

    def method_of_dict(self, growing: Growing, name: str, args: list) -> Any:
        """growing.get(key, default), growing.setdefault(key, default)"""
        if name not in ("get", "setdefault") or len(args) != 2:
            raise self.fail(f"the method {name} of a dict")
        key, default = self.key_of(growing, args[0]), self.frozen(self.number(args[1]))
        if name == "setdefault":
            if growing.fixed:
                raise self.fail("a dict changed in a function that is given it")
            _, number = self.slot_of(growing, key)
            with self.into([]) as add:
                self.put_entry(growing, key, default)
            self.emit(If(E("eq", (self.temporary(number), const(0)), BOOL, 0, 1), add, []))
            return self.item(growing, self.entry_of(growing, key)).items[1]
        if not growing.kinds:
            return default
        _, number = self.slot_of(growing, key)
        number = self.temporary(number)
        place = E("sub", (number, const(1)), INT, 0, 2**40)
        there = lambda: self.item(growing, self.temporary(place)).items[1]
        return self.choose(E("gt", (number, const(0)), BOOL, 0, 1), there, lambda: default)

    # -------------------------------------------------------------- places in lists
    def place_in(self, growing: Growing, node: ast.expr) -> E:
        """An index as the place in a list that it means; Python raises what is to be raised."""
        i = self.value(node)
        i = self.number(i) if isinstance(i, Array) else i
        if not isinstance(i, E) or not is_whole(i):
            raise self.fail("an index of a list that is no integer")
        i, count = self.temporary(self.cast(i, INT)), self.temporary(self.length_of(growing))
        count = self.frozen(count)
        self.check(E("inside", (i, count), BOOL), "list")
        return i if i.low >= 0 else self.frozen(E("wrap", (i, count), INT, 0, 2**40))

    def item_in(self, growing: Growing, node: ast.Subscript) -> Any:
        """growing[i] or growing[start:stop]"""
        if not isinstance(node.slice, ast.Slice):
            return self.item(growing, self.place_in(growing, node.slice))
        if node.slice.step is not None:
            raise self.fail("a slice of a list with a step")
        count = self.frozen(self.length_of(growing))
        ends = [(node.slice.lower, const(0)), (node.slice.upper, count)]
        start, stop = (otherwise if end is None else self.end_of(end, count) for end, otherwise in ends)
        return self.list_from(node, Part(growing, start, stop))

    def end_of(self, node: ast.expr, count: E) -> E:
        """An end of a slice, inside of the list."""
        end = self.number(self.value(node))
        if not is_whole(end):
            raise self.fail("a slice of a list whose ends are no integers")
        end = self.temporary(self.cast(end, INT))
        if end.low < -(2**62) or end.high > 2**62:
            self.check(E("within", (end, const(-(2**62)), const(2**62)), BOOL))
            end = E("copy", (end,), INT, max(end.low, -(2**62)), min(end.high, 2**62))
        if end.low < 0:
            behind = self.temporary(self.binary("add", end, count))
            end = E("select", (E("lt", (end, const(0)), BOOL, 0, 1), behind, end), INT, -(2**62), 2**62)
        return self.frozen(self.least(self.temporary(self.greatest(self.temporary(end), const(0))), count))

    def put_item(self, growing: Growing, at: E, value: Any) -> None:
        """growing[at] = value"""
        self.changes(growing, False)
        self.put_columns(growing, at, self.fitting_items(growing, value))

    def put_columns(self, growing: Growing, at: E, items: list[E]) -> None:
        tags = [self.tag(x) for x, kinds in zip(items, growing.kinds) if len(kinds) > 1]
        for (variable, kind), x in zip(growing.columns(), [*items, *tags]):
            x = self.frozen(self.cast(x, kind))
            self.emit(Store(self.stands_for(variable).name, (at,), x))

    def method_of(self, growing: Growing, name: str, nodes: list[ast.expr]) -> Any:
        """growing.append(x), growing.extend(y), growing.pop(), growing.pop(0), growing.clear()"""
        count = self.length_of(growing)
        if name == "append" and len(nodes) == 1 and not isinstance(nodes[0], ast.Starred):
            self.changes(growing)
            self.add(growing, nodes[0], self.wide(nodes[0]))
            return Static(None)
        if name == "extend" and len(nodes) == 1 and growing.sort != "dict":
            self.extend(growing, self.value(nodes[0]))
            return Static(None)
        if name == "clear" and not nodes:
            self.changes(growing)
            self.emit(Assign(growing.count, const(0)))
            return Static(None)
        which = ast.unparse(nodes[0]) if len(nodes) == 1 else "-1" if not nodes else ""
        if name != "pop" or which not in ("-1", "0"):
            raise self.fail(f"the method {name} of a list")
        self.changes(growing)
        self.check(E("gt", (count, const(0)), BOOL, 0, 1), "list")
        less = Assign(growing.count, E("sub", (count, const(1)), INT, 0, 2**40))
        if which == "-1":
            self.emit(less)
            return self.item(growing, self.frozen(count))
        found = self.item(growing, const(0))
        self.emit(less)
        for variable, _ in growing.columns():
            held = self.stands_for(variable)

            def shift(k: list[E], held: Array = held) -> None:
                behind = E("add", (k[0], const(1)), INT, 1, 2**40)
                self.emit(Store(held.name, tuple(k), self.load(held, [behind])))

            self.over([self.frozen(count)], shift)
        return found

    def do_Assert(self, s: ast.Assert) -> None:
        self.check(self.condition(s.test))

    def do_Raise(self, s: ast.Raise) -> None:
        self.check(const(False), "raise")

    def do_Assign(self, s: ast.Assign) -> None:
        one = len(s.targets) == 1 and isinstance(s.targets[0], ast.Name)
        value = self.or_none(s.value) if one else self.value(s.value)
        if len(s.targets) > 1:
            value = self.now(value)
        for target in s.targets:
            self.bind(target, value, s.value if len(s.targets) == 1 else None)

    def do_AnnAssign(self, s: ast.AnnAssign) -> None:
        if s.value is not None:
            self.bind(s.target, self.value(s.value), s.value)

    def bind(self, target: ast.expr, value: Any, source: ast.expr | None = None) -> None:
        if isinstance(target, ast.Name):
            variable = self.scope.prefix + target.id
            if target.id in self.scope.outer:
                return self.name(target.id, value)
            if value is EMPTY and variable not in self.lists:
                self.lists[variable] = Growing(variable, own=True, sort="dict")
                raise Anew
            if isinstance(value, Turns) and variable not in self.lists and self.may_wait(value):
                value.read = self.reads_of(value)
                self.name(target.id, value)
                self.displayed.add(variable)
                return
            if isinstance(value, Turns):
                value = self.list_of_turns(value)
            if isinstance(value, Growing):
                self.share(variable, value)
                self.scope.names[target.id] = self.lists[variable]
                self.scope.local.add(target.id)
                return
            if variable in self.lists:
                return self.restart(self.lists[variable], value, source)
            if type_of(value) is list and source is not None and not makes_list(source):
                read = {self.scope.prefix + n.id for n in ast.walk(source) if isinstance(n, ast.Name)}
                self.aliased |= {variable, *read}
            self.name(target.id, value)
            new = makes_list(source) and type_of(value) is list
            (self.displayed.add if new else self.displayed.discard)(variable)
        elif isinstance(target, (ast.Tuple, ast.List)):
            items = self.items(value, len(target.elts))
            if any(isinstance(t, ast.Starred) for t in target.elts):
                raise self.fail("a starred target")
            items = [self.frozen(x) if isinstance(x, E) else x for x in items]
            parts = source.elts if isinstance(source, ast.Tuple) else [None] * len(items)
            for t, x, part in zip(target.elts, items, parts):
                self.bind(t, x, part)
        elif isinstance(target, ast.Subscript) and (growing := self.list_of(target.value, True)) is not None:
            if growing.sort == "dict":
                return self.put_entry(growing, self.key_of(growing, self.value(target.slice)), value)
            self.put_item(growing, self.frozen(self.place_in(growing, target.slice)), value)
        elif isinstance(target, (ast.Subscript, ast.Attribute)):
            base = self.base_of_target(target.value)
            source = self.source_of_target(base, target)
            if source is not None:
                self.store_field(source, value)
            else:
                self.put(base, self.parts(target.slice), value)
        else:
            self.refuse(target)

    def source_of_target(self, base: Any, target: ast.Subscript | ast.Attribute) -> Source | None:
        """Where an attribute, or an item of a dict, that is bound lies; None of an item of an array."""
        if isinstance(target, ast.Attribute):
            held = isinstance(base, Static) and base.source is not None and is_plain_object(base.value)
            if not held or not lies_in(base.value, target.attr):
                raise self.fail(f"the attribute {target.attr} of an object bound")
            if type(base.value).__setattr__ not in (object.__setattr__, SimpleNamespace.__setattr__):
                raise self.fail(f"an attribute bound of an object that says how ({type(base.value).__name__})")
            return "attribute", base.source, target.attr
        if isinstance(base, Static) and type(base.value) in (dict, list) and base.source is not None:
            return self.entry(base, target.slice)
        return None

    def base_of_target(self, node: ast.expr) -> Any:
        """What holds the attribute, or the item, that is bound: a list outside as an object."""
        name = node.id if isinstance(node, ast.Name) else ""
        parents = self.scope.parent is not None and self.is_parents(name)
        if name and not parents and name not in self.scope.names and name not in self.scope.local:
            source = self.source_of(name)
            with contextlib.suppress(NotUnderstood):
                x = self.look(source)
                if type(x) is list and len(x) <= LISTED:
                    return Static(x, source)
        base = self.value(node)
        if isinstance(base, Tup) and base.listed and base.source is not None:
            return Static(self.look(base.source), base.source)
        return base

    def name(self, name: str, value: Any) -> None:
        """name = value"""
        if name in self.scope.outer:
            own = self.scope.parent is not None and self.is_parents(name)
            return self.bind_parents(name, value) if own else self.store_field(self.source_of(name), value)
        if self.scope.prefix + name in self.lists:
            raise self.fail(f"{name}, a list, bound to something else")
        self.masks = {}
        self.times[self.scope.prefix + name] = self.times.get(self.scope.prefix + name, 0) + 1
        if isinstance(value, Tup) and any(isinstance(x, (Growing, Turns)) for x in value.items):
            raise self.fail("a list in a tuple, or in a list")
        if type_of(value) and all(isinstance(x, (E, Array, Lazy, Tup)) for x in value.items):
            variable = self.scope.prefix + name
            self.tuples.setdefault(variable, False)
            if self.tuples[variable]:
                for k, x in enumerate(value.items):
                    self.name(f"{name}[{k}]", x)
                self.scope.names[name] = Parts(len(value.items), type_of(value))
                self.scope.local.add(name)
                return
        if isinstance(value, Lazy):
            value = self.materialised(value)
        if isinstance(value, Static) and value.value is None:
            self.nones.add(self.scope.prefix + name)
            if self.scope.prefix + name in self.maybe:
                value = E("const", (0,), NONE, 0, 0)
        if isinstance(value, E):
            variable = self.scope.prefix + name
            self.assign(variable, value)
            self.scope.names[name] = Scalar(variable)
        elif isinstance(value, Array) and self.scope.prefix + name in self.moving:
            self.scope.names[name] = self.rebind(self.scope.prefix + name, value)
        else:
            self.scope.names[name] = self.now(value)
        self.scope.local.add(name)

    # -------------------------------------------------------------- names that stand for several arrays
    def rebind(self, variable: str, array: Array) -> Array:
        """variable = array, where it may have been another one."""
        info = self.moving[variable]
        if info.kind is None:
            info.kind, info.ndim = array.kind, array.ndim
        if (info.kind, info.ndim) != (array.kind, array.ndim):
            raise self.fail(f"{variable.rpartition('.')[2]}, which is of another dtype, or has other axes, at times")
        self.rebinds += 1
        if self.by_value:
            self.bound.add(variable)
            return self.copied_to(variable, array, self.scope.names.get(variable.removeprefix(self.scope.prefix)))
        info.found |= self.roots(array)
        ones = {axis for axis, d in enumerate(array.dims) if d.op == "const" and d.args[0] == 1}
        if not info.ones & frozenset(range(array.ndim)) <= ones:
            info.ones &= ones
            self.moved = True
        moving = self.stands_for(variable)
        self.emit(Bind(moving.name, array.name))
        self.versions[moving.name] = next(self.counts)
        if array.name in self.recent:
            self.latest[moving.name] = array.name, self.versions[moving.name]
        self.bound.add(moving.name)
        return moving

    def copied_to(self, variable: str, array: Array, bound: Any) -> Array:
        """variable = array, where nobody can tell a name bound anew from an array that is written: as derivatives have
        it. The array is the input's copy; where there is none, one that is made where the loop binds the name first.

        bound   what the name stands for so far
        """
        target = self.program.arrays.get(variable)
        if target is array:
            if f"{variable}!" not in self.program.kinds:
                self.shows(variable, frozenset((variable,)), self.numbered(variable))
                self.has_lengths(variable, target.dims)
            return target
        if array.root in self.moving:
            array = self.now(array)
        first = target is None
        # what else stands for the same array, or shows it, would tell
        given = next((i for i in self.program.inputs if i.name == array.root), None)
        made = array.name == array.root and given is None
        shown = given is not None and not given.written
        if not (made or shown):
            raise self.fail(f"the derivative of {variable}, which is another name of an array")
        if made and self.taken.setdefault(array.root, variable) != variable:
            raise self.fail(f"the derivative of {variable}, which is another name of an array")
        if shown:
            self.shown.add(array.root)
        if first and variable in self.early:
            self.own.add(variable)
            target = self.program.arrays[variable] = Array(variable, array.kind, array.ndim, variable)
            self.columns[variable] = [list(array.dims)]
        elif first:
            self.own.add(variable)
            target = self.new(array.dims, array.kind, False, variable)
        elif variable not in self.own:
            self.program.rebound.add(variable)
        elif variable in self.early:
            self.columns[variable].append(list(array.dims))
        elif bound is not target:  # on some ways it is not there: it is made at the start of the program
            self.early.add(variable)
            raise Anew
        lazy, op, dims = self.lazy(array), "eq", target.dims
        if variable in self.varying:
            op, dims = "le", [self.frozen(d) for d in array.dims]
        for a, b in zip(array.dims, target.dims):
            if repr(a) != repr(b):
                self.check(E(op, (a, b), BOOL, 0, 1), f"exit {OTHER_LENGTHS if op == 'eq' else LONGER}{variable}")
        self.over(dims, lambda index: self.emit(Store(target.name, tuple(index), lazy.at(index))))
        self.has_lengths(variable, dims)
        super().written(target)
        if array.name in self.copies:
            source, roots, number = self.copies[array.name]
            if source not in self.exchanged:
                self.exchanged.add(source)
                self.moved = True
        elif array.name != array.root:
            roots, number = frozenset((PART,)), const(-1)
        else:
            roots, number = frozenset((array.root,)), self.numbered(array.root)
        self.shows(variable, roots, number)
        return target

    def has_lengths(self, variable: str, dims: Sequence[E]) -> None:
        """Says, of an array of a name whose lengths vary, how much of it the name stands for."""
        for axis, d in enumerate(dims if variable in self.varying else ()):
            self.program.kinds[length_of(variable, axis)] = INT
            self.emit(Assign(length_of(variable, axis), E("copy", (d,), INT, 0, 2**40)))

    def as_long_as_it_is(self, value: Any) -> Any:
        """What a name stands for whose lengths vary: that much of its array."""
        if not (self.by_value and isinstance(value, Array) and value.name in self.varying):
            return value
        lengths = [E("var", (length_of(value.name, k),), INT, 0, 2**40) for k in range(value.ndim)]
        spec = tuple(("slice", const(0), self.frozen(n), const(1)) for n in lengths)
        shown = self.array(value.kind, value.ndim, value.root, where=(value.name, next(self.counts)))
        self.emit(View(shown.name, value.name, spec))
        return shown

    def numbered(self, root: str) -> E:
        """Which array a root is: an input's place, or the number of one made in the loop. Where no name is bound to
        another's, it is enough to know that this is no input."""
        place = next((k for k, i in enumerate(self.program.inputs) if i.name == root), None)
        return self.numbers.get(root, const(-1)) if place is None else const(place)

    def shows(self, variable: str, roots: frozenset[str], number: E) -> None:
        """Says which array a name that has one of its own stands for, as of two that stand for one a write to the one
        is to be seen by the other after the loop."""
        self.moving[variable].found |= roots
        self.program.kinds[f"{variable}!"] = INT
        self.emit(Assign(f"{variable}!", number))

    def new(self, dims: Sequence[E], kind: Kind, zero: bool, name: str = "") -> Array:
        made = super().new(dims, kind, zero, name)
        self.recent.add(made.name)
        if self.exchanged and not name:
            number = E("var", ("<made>",), INT, FRESH, 2**42)
            self.emit(Assign("<made>", E("add", (number, const(1)), INT, FRESH, 2**42)))
            self.numbers[made.name] = self.frozen(number)
        return made

    def written(self, array: Array) -> None:
        root = array.root
        if self.by_value and root in self.moving:
            self.stands_alone(root)
        elif self.by_value and (root in self.copies or root in self.taken or root in self.shown):
            raise self.fail(WRITTEN)
        self.touched |= self.roots(array)
        super().written(array)

    def stands_alone(self, variable: str) -> None:
        """Before what a name stands for is written in place, where it has an array of its own: nobody else may have the
        one that it stands for. Of inputs a check says that it is none of them."""
        roots = self.moving[variable].roots | self.moving[variable].found
        held = [x for scope in self.scopes for n, x in scope.names.items() if scope.prefix + n != variable]
        while held:
            x = held.pop()
            held += x.items if isinstance(x, Tup) else []
            if isinstance(x, Array) and self.taken.get(x.root) == variable:
                raise self.fail(WRITTEN)
        if PART in roots or any(source == variable for source, _, _ in self.copies.values()):
            raise self.fail(WRITTEN)
        for k, i in enumerate(self.program.inputs):
            if i.name in roots:
                number = E("var", (f"{variable}!",), INT, -1, 2**42)
                self.check(E("ne", (number, const(k)), BOOL, 0, 1))

    def stands_for(self, variable: str) -> Array:
        """The array that a variable stands for now."""
        if self.by_value:
            if variable in self.own or variable not in self.program.arrays:
                raise self.fail(f"the derivative of {variable}, an array that is read before it is bound")
            return self.as_long_as_it_is(self.program.arrays[variable])
        name, info = f"{variable}@", self.moving[variable]
        found = self.program.arrays.get(name)
        if found is None:
            assert info.kind is not None
            found = self.program.arrays[name] = Array(name, info.kind, info.ndim, name)
            self.program.moving[name] = info.roots
            for axis in info.ones & frozenset(range(info.ndim)):
                found.dims[axis] = const(1)
        return found

    def now(self, value: Any) -> Any:
        """A value as it is, whatever becomes of the names, and of the arrays' elements, that it was read from."""
        if isinstance(value, E):
            return self.frozen(value)
        if isinstance(value, Lazy):
            return self.materialised(value)
        if isinstance(value, Array) and self.by_value and value.root in self.moving:
            copy = self.materialised(self.lazy(value))
            roots, number = frozenset((PART,)), const(-1)
            if value.name == value.root:
                roots, number = self.moving[value.root].roots, E("var", (f"{value.root}!",), INT, -1, 2**42)
            self.copies[copy.name] = value.root, roots, self.frozen(number)
            return copy
        if isinstance(value, Array) and value.name in self.program.moving:
            return self.index(value, [Ellipsis])
        return value

    def lost(self, name: str) -> None:
        """A name that stands for several arrays, or for None or a number, is read: what it stands for is kept, from the
        next pass on."""
        variable = self.scope.prefix + name
        if variable in self.nones and variable not in self.maybe:
            self.maybe.add(variable)
            raise Anew
        if self.tuples.get(variable) is False:
            self.tuples[variable] = True
            raise Anew
        given = variable in self.tuples and self.initial.get(variable, " ")[0] == "list"
        if variable not in self.lists and (given or variable in self.displayed):
            raise self.another_list(variable)
        if variable in self.moving or variable in self.tuples:
            raise self.fail(f"{name}, which stands for another array from turn to turn")
        self.moving[variable] = Moving()
        raise Anew

    def items(self, value: Any, count: int) -> list:
        if isinstance(value, Tup):
            if len(value.items) != count:
                raise self.fail("a tuple of another length")
            return value.items
        if isinstance(value, Array):
            self.check(E("eq", (value.dims[0], const(count)), BOOL, 0, 1))
            return [self.index(value, [const(k)]) for k in range(count)]
        raise self.fail("something unpacked that is no tuple")

    def put(self, base: Any, parts: list, value: Any) -> None:
        """base[parts] = value"""
        if not isinstance(base, Array):
            raise self.fail("an item assigned to what is no array")
        if any(isinstance(p, (Array, Lazy)) for p in parts):
            return self.scatter(base, parts, value, None)
        whole = sum(isinstance(p, E) for p in parts)
        if whole == base.ndim and all(isinstance(p, E) for p in parts):
            if isinstance(value, (Array, Lazy)) and value.ndim:
                raise self.fail("an array stored in an element")
            value = self.frozen(self.number(value))
            index = [self.place(p, base, axis) for axis, p in enumerate(parts)]
            self.store(base, index, value)
            return
        target = self.index(base, parts)
        assert isinstance(target, Array)
        if isinstance(value, Tup):
            return self.put_row(target, value.items)
        self.fill(target, value)

    def put_row(self, target: Array, items: list) -> None:
        """target[...] = item, item, ..."""
        if target.ndim != 1 or len(items) < 2 or not all(isinstance(x, E) for x in items):
            raise self.fail("a tuple written to an array")
        self.alike(target.dims[0], const(len(items)))
        for k, x in enumerate([self.frozen(self.stored(x, target.kind)) for x in items]):
            self.store(target, [const(k)], x)

    def do_AugAssign(self, s: ast.AugAssign) -> None:
        op = AST_OPERATORS.get(type(s.op))
        if op is None:
            raise self.fail("@=")
        if isinstance(s.target, ast.Name):
            if op == "add" and (growing := self.list_of(s.target, True)) is not None:
                self.method_of(growing, "extend", [s.value])
                return
            old = self.operand(s.target, read := [], lambda target: self.read_now(target.id))
            if isinstance(old, E):
                new = self.wide(s.value)
                new = self.apply(op, [old, new])
                if not isinstance(new, E):
                    raise self.fail("a number that becomes an array")
                self.name(s.target.id, new)
                return
            if not isinstance(old, Array):
                raise self.fail("an operator in place of what is no array")
            self.update(old, op, self.operand(s.value, read))
            return
        if not isinstance(s.target, (ast.Subscript, ast.Attribute)):
            self.refuse(s.target)
        if isinstance(s.target, ast.Subscript) and (growing := self.list_of(s.target.value, True)) is not None:
            if growing.sort == "dict":
                key = self.key_of(growing, self.value(s.target.slice))
                old = self.item(growing, self.entry_of(growing, key)).items[1]
                return self.put_entry(growing, key, self.apply(op, [old, self.value(s.value)]))
            at = self.frozen(self.place_in(growing, s.target.slice))
            old, count = self.item(growing, at), self.frozen(self.length_of(growing))
            new = self.apply(op, [old, self.value(s.value)])
            self.check(E("eq", (self.length_of(growing), count), BOOL, 0, 1))
            return self.put_item(growing, at, new)
        base = self.base_of_target(s.target.value)
        source = self.source_of_target(base, s.target)
        if source is not None:
            old = self.operand(s.target, read := [], lambda target: self.outside(source))
            value = self.operand(s.value, read)
            if isinstance(old, Array):
                return self.update(old, op, value)
            return self.store_field(source, self.apply(op, [old, value]))
        parts = self.parts(s.target.slice)
        if not isinstance(base, Array):
            raise self.fail("an item assigned to what is no array")
        if any(isinstance(p, (Array, Lazy)) for p in parts):

            def combined(a: E, b: E) -> E:
                with self.saying(""):
                    return self.binary(op, a, b)

            return self.scatter(base, parts, self.value(s.value), combined)
        if all(isinstance(p, E) for p in parts) and len(parts) == base.ndim:
            index = [self.frozen(self.place(p, base, axis)) for axis, p in enumerate(parts)]
            old = self.load(base, index)
            value = self.apply(op, [old, self.value(s.value)])
            if not isinstance(value, E):
                raise self.fail("an array added to an element")
            self.store(base, index, value)
            return
        target = self.index(base, parts)
        assert isinstance(target, Array)
        self.update(target, op, self.value(s.value))

    def update(self, target: Array, op: str, value: Any) -> None:
        """target op= value, element by element."""
        value = self.lazy(value) if not isinstance(value, E) else value
        kind = result_kind(OPERATORS[op], (target.kind, value.kind), (True, not isinstance(value, E)))
        if not onp.can_cast(kind.dtype, target.kind.dtype, "same_kind"):
            raise self.fail(f"{kind} added in place to {target.kind}")
        if isinstance(value, E):
            self.in_range(value, kind)
            value = self.cast(value, kind if kind.letter != "b" else value.kind)
            value = self.frozen(E("copy", (value,), Kind(value.kind.code), value.low, value.high))

        def combine(old: E, new: E) -> E:
            with self.saying(""):
                return self.cast(self.binary(op, old, new), target.kind)

        self.fill(target, value, combine)

    def do_If(self, s: ast.If) -> None:
        test = self.condition(s.test)
        if test.op == "const":
            self.body(s.body if test.args[0] else s.orelse)
            return
        bound, names = set(self.bound), dict(self.scope.names)
        then, no = self.way(s.body, self.any_of[1] if repr(without_copies(test)) == self.any_of[0] else ())
        after_then, names_then = self.bound, self.scope.names
        self.bound, self.scope.names = set(bound), dict(names)
        orelse, other = self.way(s.orelse)
        if no is not None and other is not None:
            raise no
        self.meet([(after_then, names_then)] * (not leaves(then)) + self.going_on(orelse))
        while then and orelse and type(then[0]) is Check and repr(then[0]) == repr(orelse[0]):
            self.emit(then.pop(0))  # ways without checks become selections, which nobody has to predict
            orelse.pop(0)
        self.emit(If(test, then, orelse))

    def do_Match(self, s: ast.Match) -> None:
        """A match with numbers and texts, as the branches that it means."""
        name = f"match.{s.lineno}.{s.col_offset}"
        self.bind(ast.Name(name, ast.Store()), self.value(s.subject))
        rest: list[ast.stmt] = []
        for case in reversed(s.cases):
            tests = [t for t in (self.matches(case.pattern, name), case.guard) if t is not None]
            if not tests:
                rest = case.body
                continue
            test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
            branch = ast.If(test=test, body=case.body, orelse=rest)
            rest = [ast.fix_missing_locations(ast.copy_location(branch, case.pattern))]
        self.body(rest)

    def matches(self, pattern: ast.pattern, name: str) -> ast.expr | None:
        """The condition under which a name's value matches; None if it always does."""
        match pattern:
            case ast.MatchValue(value):
                return ast.Compare(ast.Name(name, ast.Load()), [ast.Eq()], [value])
            case ast.MatchAs(None, None):
                return None
            case ast.MatchOr(patterns):
                tests = [self.matches(p, name) for p in patterns]
                return None if None in tests else ast.BoolOp(ast.Or(), [t for t in tests if t is not None])
        raise self.fail("a match with other patterns than numbers and texts")

    def do_Try(self, s: ast.Try) -> None:
        """What the checks of its body find leads to the first handler of such exceptions; what Python finds out itself
        is Python's to run."""
        if s.finalbody:
            return self.finally_(s)
        if any(h.name for h in s.handlers):
            raise self.fail("an exception that is bound")
        number = next(self.counts)
        labels = [f"except.{number}.{k}" for k in range(len(s.handlers))]
        which = [(label, self.exceptions(h.type)) for label, h in zip(labels, s.handlers)]
        bound, names = set(self.bound), dict(self.scope.names)
        ends: list[tuple[set[str], dict]] = []  # what is bound where a way goes on

        def ended(body: list) -> list:
            ends.extend(self.going_on(body))
            return [*body, Leave(f"try.{number}")]

        before, self.handlers = self.handlers, [*self.handlers, *reversed(which)]
        try:
            with self.into([]) as body:
                self.body(s.body)
        finally:
            self.handlers = before
        assigned = self.with_items({n for t in s.body for n in stored_names(t)})
        found = {n: self.scope.names.get(n) for n in assigned}
        with self.into(body):
            self.body(s.orelse)
        body = ended(body)
        for label, handler in zip(labels, s.handlers):
            alike = lambda n, x: (self.kept(x) and names[n] in (x,)) if n in names else self.outlives(x)
            perhaps = {n: x if alike(n, x) else Lost for n, x in found.items()}
            self.bound, self.scope.names = set(bound), {**names, **perhaps}
            self.moves(assigned)
            with self.into([]) as inner:
                self.body(handler.body)
            body = [Block(label, body), *ended(inner)]
        self.meet(ends)
        self.emit(Block(f"try.{number}", body))

    def finally_(self, s: ast.Try) -> None:
        """try: ... finally: ...; Python runs what raises there."""
        inside = [n for t in (*s.body, *s.handlers, *s.orelse) for n in ast.walk(t)]
        if any(isinstance(n, (ast.Break, ast.Continue, ast.Return)) for n in inside):
            raise self.fail("a way out of a try with finally")
        inner = ast.copy_location(ast.Try(body=s.body, handlers=s.handlers, orelse=s.orelse, finalbody=[]), s)
        before, self.handlers = self.handlers, [*self.handlers, ("", (BaseException,))]
        try:
            self.body([inner] if s.handlers else s.body)
        finally:
            self.handlers = before
        self.body(s.finalbody)

    def exceptions(self, node: ast.expr | None) -> tuple[type, ...]:
        """The classes of exceptions that a handler is for."""
        if node is None:
            return (BaseException,)
        found = self.value(node)
        each = [x.value if isinstance(x, Static) else x for x in (found.items if isinstance(found, Tup) else [found])]
        if not all(isinstance(x, type) and issubclass(x, BaseException) for x in each):
            raise self.fail("a handler of what is no exception")
        return tuple(each)

    def way(self, statements: list[ast.stmt], some: tuple = ()) -> tuple[list, NotUnderstood | None]:
        """(one way of a branch, why it is not understood): Python runs the loop again that comes there. `some`: the
        state of an array of which some elements hold then."""
        scopes, line, nested, fields = len(self.scopes), self.line, self.nested, dict(self.fields)
        ends = [(each, len(each)) for scope in self.scopes for each in (scope.breaks, scope.continues)]
        ends += [(end.ways, len(end.ways)) for each, _ in ends for end in each]
        try:
            with self.into([]) as out:
                self.some = some, out
                self.body(statements)
            return out, None
        except NotUnderstood as no:
            if self.deadline.passed() or isinstance(no, Columns):
                raise
            del self.scopes[scopes:]
            for each, count in ends:
                del each[count:]
            self.line, self.nested, self.fields = line, nested, self.fields or fields
            return [Check(const(False), f"exit {no.why} (line {no.line})"), Leave("return")], no

    def going_on(self, body: list) -> list[tuple[set[str], dict]]:
        """The way that these statements are, if what follows them may run."""
        return [] if leaves(body) else [(self.bound, self.scope.names)]

    def meet(self, ways: list[tuple[set[str], dict]]) -> None:
        """What is bound, and what names stand for, where these ways go on together."""
        self.recent.clear()
        for k, (bound, names) in enumerate(ways):
            self.bound = set(bound) if not k else self.bound & bound
            self.scope.names = dict(names) if not k else self.merged(self.scope.names, names)

    def one_variable(self, x: Any, y: Any) -> bool:
        """Whether a name that is x on one way, and y on another one, stands for one variable of the program."""
        return x is y or (isinstance(x, (Scalar, Parts)) and type(x) is type(y) and x == y)

    def merged(self, a: dict, b: dict) -> dict:
        out = dict(a)
        for name, x in b.items():
            if name not in a or not self.one_variable(x, a[name]):
                out[name] = x if name not in a and self.outlives(x) else Lost
        for name, y in a.items():
            if name not in b:
                out[name] = y if self.outlives(y) else Lost
        return out

    def kept(self, value: Any) -> bool:
        """Whether a name with this value is a variable of the program."""
        if self.by_value and isinstance(value, Array):
            return value.name in self.moving
        if isinstance(value, (Scalar, Parts, Growing)):
            return True
        return isinstance(value, Array) and value.name in self.program.moving

    def outlives(self, value: Any) -> bool:
        """Whether a name bound on one way alone, or in a loop, is a variable of the program behind it, too."""
        return self.kept(value) and not (isinstance(value, Array) and value.name in self.own)

    def do_Break(self, s: ast.Break) -> None:
        self.program.elements = True
        self.leave(self.scope.breaks)

    def do_Continue(self, s: ast.Continue) -> None:
        self.leave(self.scope.continues)

    def leave(self, ends: list[End]) -> None:
        if not ends:
            raise self.fail("a break or continue of the loop around it")
        self.emit(Leave(ends[-1].label))
        ends[-1].ways.append((set(self.bound), dict(self.scope.names)))

    def do_Return(self, s: ast.Return) -> None:
        value = self.or_none(s.value)
        value = self.list_of_turns(value) if isinstance(value, Turns) else value
        scope = self.scope
        if s.value is not None:
            self.told_apart({n.id for n in ast.walk(s.value) if isinstance(n, ast.Name)})
        if len(self.scopes) == 1:
            at = s.lineno, s.col_offset
            number = self.program.returned.setdefault(at, (len(self.program.returned) + 1, None))[0]
            self.program.returned[at] = number, self.given_back(f"<return>{number}", value)
            self.assign("<returned>", const(number))
        elif not scope.inlined and not (isinstance(value, Static) and value.value is None):
            self.return_to_caller(scope, value)
        elif isinstance(value, E):
            if scope.result not in (None, "scalar"):
                raise self.fail("a function that returns an array or a number")
            scope.result = "scalar"
            self.assign(scope.prefix + "<return>", value)
        elif scope.result is None and not self.scope.breaks and not self.nested and scope.inlined:
            scope.result = (self.materialised(value) if isinstance(value, Lazy) else value,)
        elif isinstance(value, Tup) and all(isinstance(x, E) for x in value.items):
            if scope.result not in (None, len(value.items)):
                raise self.fail("a function that returns tuples of several lengths")
            scope.result = len(value.items)
            for k, x in enumerate([self.frozen(x) for x in value.items]):
                self.assign(f"{scope.prefix}<return>{k}", x)
        elif isinstance(value, Static) and value.value is None and scope.result in (None, "none"):
            scope.result = (value,) if scope.inlined else "none"
        else:
            raise self.fail("a return of arrays from within a branch")
        self.emit(Leave(scope.ends))

    def return_to_caller(self, scope: Scope, value: Any) -> None:
        """What a function of the program's own returns: a number, an array, or a tuple of such."""
        items = value.items if isinstance(value, Tup) else [value]
        items = [self.materialised(x) if isinstance(x, Lazy) else x for x in items]
        if not all(isinstance(x, (E, Array)) for x in items) or (isinstance(value, Tup) and value.listed):
            raise self.fail("something returned that is no number, no array, and no tuple of such")
        sorts = tuple("scalar" if isinstance(x, E) else "array" for x in items)
        result = sorts if isinstance(value, Tup) else sorts[0]
        if scope.result not in (None, result):
            raise self.fail("a function that returns things of several types")
        scope.result = result
        names = returned_names(scope.prefix, result)
        for name, x in zip(names, [self.frozen(x) if isinstance(x, E) else x for x in items]):
            if isinstance(x, E):
                self.assign(name, x)
            elif name in self.moving:
                self.rebind(name, x)
            else:
                self.moving[name] = Moving()
                raise Anew

    def given_back(self, variable: str, value: Any) -> Any:
        """Binds what the function returns; its variable, or a tuple of such, or what is no variable."""
        if isinstance(value, Tup):
            parts = [self.given_back(f"{variable}[{k}]", x) for k, x in enumerate(value.items)]
            return parts if value.listed else tuple(parts)
        if isinstance(value, Static) and (value.value is None or type(value.value) is str):
            return value
        if isinstance(value, Growing):
            self.share(variable, value)
            return Scalar(variable)
        if isinstance(value, Lazy):
            value = self.materialised(value)
        if isinstance(value, Array):
            if variable not in self.moving:
                self.moving[variable] = Moving()
                raise Anew
            self.rebind(variable, value)
        elif isinstance(value, E):
            self.assign(variable, value)
            self.bound -= {variable}
        else:
            raise self.fail("something returned from within a loop that is no number and no array")
        return Scalar(variable)

    nested = 0

    # -------------------------------------------------------------- loops
    def do_While(self, s: ast.While) -> None:
        self.program.elements = True

        def run(body: list, test: list) -> None:
            with self.into(test):
                condition = self.condition(s.test)
            with self.into(body):
                self.turn(s.body)
            self.emit(While(test, condition, body))

        self.loop(s, lambda: run([], []))

    def do_For(self, s: ast.For) -> None:
        s = converting(s)
        growing, which = self.list_of(s.iter), None
        match s.iter:
            case ast.Call(ast.Attribute(node, "items" | "keys" | "values" as method), [], []):
                growing = self.dict_of(node)
                which = {"items": None, "keys": 0, "values": 1}[method]
            case _ if growing is not None and growing.sort == "dict":
                which = 0
        over = growing or self.now(self.value(s.iter))
        if isinstance(over, Growing) and which is None:
            over = self.held_by_loop(over, s, 0)
        if isinstance(over, Zip):
            over.items = [self.held_by_loop(x, s, k) for k, x in enumerate(over.items)]
        if isinstance(over, Tup):
            self.unrolled(s, over)
            return
        if isinstance(over, Grid):
            self.loop(s, lambda: self.through(s, over))
            return
        lists = [g for g in (over, *(over.items if isinstance(over, Zip) else ())) if isinstance(g, Growing)]
        lists = [(g, self.frozen(self.length_of(g))) for g in lists if not g.fixed]
        asked = isinstance(over, Range) and over.asked
        over = self.counted(over)

        def run() -> None:
            start, stop, step, items = over
            var = self.fresh("turn")
            self.program.kinds[var] = INT
            self.program.loops.add(var)
            down = step.high < 0
            low, high = (start.low, stop.high - 1) if not down else (stop.low + 1, start.high)
            turn = E("var", (var,), INT, low, max(low, high))
            body: list = []
            with self.into(body):
                item = items(turn)
                self.bind(s.target, item if which is None else item.items[which])
                self.turn(s.body)
                for g, count in lists:
                    self.check(E("eq", (self.length_of(g), count), BOOL, 0, 1))  # else the loop ends elsewhere
            by = step.args[0] if step.op == "const" else step
            self.emit(For(var, start, stop, by, body, asked=asked and not lists))

        before, self.gone_through = self.gone_through, [*self.gone_through, *[g.name for g, _ in lists]]
        try:
            self.loop(s, run)
        finally:
            self.gone_through = before

    def held_by_loop(self, x: Any, s: ast.For, k: int) -> Any:
        """The list that a loop goes over, whatever its name stands for after a turn."""
        if not isinstance(x, Growing) or x.name.removeprefix(self.scope.prefix) not in stored_names(s, False):
            return x
        held = self.list_at(s.iter, f"over{k}")
        self.share(held.name, x)
        return held

    def loop(self, s: ast.For | ast.While, run: Callable) -> None:
        """Emits a loop with its else, and says which names it leaves behind."""
        end = End(f"break.{next(self.counts)}", [])
        self.scope.breaks.append(end)
        bound, names = set(self.bound), dict(self.scope.names)
        assigned = self.with_items(stored_names(s))
        place = {n: (self.scope.prefix + n, self.scope.prefix + n in self.moving, s.lineno) for n in assigned}
        bound_anew = self.with_items(stored_names(s, False))
        for name in assigned - {v.removeprefix(self.scope.prefix) for v in self.lists}:
            perhaps = name in bound_anew or not isinstance(names.get(name), Array)
            if place[name] in self.unsettled or (name in names and perhaps and not self.kept(names[name])):
                self.scope.names[name] = Lost  # as the turn before left it
        first = dict(self.scope.names)
        self.moves(assigned)
        self.writes += 1
        outer: list = []
        self.program.nested |= self.nested > 0
        self.nested += 1
        self.recent.clear()
        with self.into(outer):
            run()
        self.nested -= 1
        self.scope.breaks.pop()
        inner = self.scope.names
        for name in assigned:  # a turn begins with what the one before left
            variable = self.scope.prefix + name
            before = first.get(name, self.earlier.get(variable))
            if before is not None and before is not Lost and not self.one_variable(before, inner.get(name, before)):
                self.unsettled.add(place[name])
                raise Anew
        self.bound = bound
        self.writes += 1
        self.scope.names = self.merged(names, {n: x for n, x in inner.items() if n in assigned or n in names})
        self.moves(assigned)
        with self.into(outer):
            self.body(s.orelse)
        self.meet(self.going_on(outer) + end.ways)
        self.emit(Block(end.label, outer))

    def through(self, s: ast.For, grid: Grid) -> None:
        """A loop over the indices of an array: one in another for each axis."""

        def one(index: list[E]) -> None:
            at = Tup([*index])
            self.program.loops |= {i.args[0] for i in index}
            self.bind(s.target, at if grid.array is None else Tup([at, self.element(grid.array, index)]))
            self.turn(s.body)

        self.over(grid.dims, one)

    def np_ndindex(self, args: list, kwargs: dict) -> Grid:
        lengths = args[0].items if len(args) == 1 and isinstance(args[0], Tup) else args
        if kwargs or not lengths:
            raise self.fail("np.ndindex of these arguments")
        dims = [self.temporary(self.length(n)) for n in lengths]
        for n in dims:
            if n.low < 0:
                self.check(E("ge", (n, const(0)), BOOL, 0, 1))
        return Grid(dims)

    def np_ndenumerate(self, args: list, kwargs: dict) -> Grid:
        (x,) = self.arguments("arr", args, kwargs)
        x = self.now(self.an_array(x))
        return Grid([self.temporary(d) for d in x.dims], x)

    def with_items(self, assigned: set[str]) -> set[str]:
        """Names, and those of the items of what is bound to them."""
        more = {k for k in self.scope.names for name in assigned if k.startswith(f"{name}[")}
        known = {v.removeprefix(self.scope.prefix) for v, yes in self.tuples.items() if yes}
        more |= {f"{name}[{k}]" for name in assigned & known for k in range(UNROLLED)}
        return assigned | more

    def moves(self, assigned: set[str]) -> None:
        """Views that were taken of these names are not told to be those that are taken from here on."""
        for name in assigned:
            self.versions[f"{self.scope.prefix}{name}@"] = next(self.counts)

    def turn(self, statements: list[ast.stmt]) -> None:
        """The body of a loop, once."""
        end = End(f"continue.{next(self.counts)}", [])
        self.scope.continues.append(end)
        with self.into([]) as body:
            self.body(statements)
        self.scope.continues.pop()
        self.meet(self.going_on(body) + end.ways)
        self.emit(Block(end.label, body))

    def unrolled(self, s: ast.For, over: Tup) -> None:
        """A loop over a few things that are known: one after the other."""
        if len(over.items) > UNROLLED:
            raise self.fail("a loop over a long tuple")
        end = End(f"break.{next(self.counts)}", [])
        self.scope.breaks.append(end)
        outer: list = []
        with self.into(outer):
            for item in over.items:
                self.bind(s.target, item)
                self.turn(s.body)
            self.scope.breaks.pop()
            self.body(s.orelse)
        self.meet(self.going_on(outer) + end.ways)
        self.emit(Block(end.label, outer))

    def counted(self, over: Any) -> tuple[E, E, E, Callable]:
        """(start, stop, step, what the turn's number stands for) of a loop."""
        if isinstance(over, Range):
            if over.step.low > 0 or over.step.high < 0:
                return over.start, over.stop, over.step, lambda i: i
            return const(0), self.turns(over), const(1), lambda i: self.part(over, i)
        if isinstance(over, Lazy):
            over = self.materialised(over)
        if isinstance(over, Array):
            if not over.ndim:
                raise self.fail("a loop over an array without axes")
            length = self.temporary(over.dims[0])
            # what is read lies inside
            return const(0), length, const(1), lambda i: self.part(over, i)
        if isinstance(over, Growing):
            return const(0), self.frozen(self.length_of(over)), const(1), lambda i: self.item(over, i)
        if isinstance(over, Zip):
            counts = [self.turns(x) for x in over.items]
            length = counts[0]
            for c in counts[1:]:
                length = self.least(length, c)
            return const(0), length, const(1), lambda i: self.together(over, i)
        raise self.fail("a loop over what is no range and no array")

    def turns(self, x: Any) -> E:
        if isinstance(x, Growing):
            return self.frozen(self.length_of(x))
        if isinstance(x, Tup):
            return const(len(x.items))
        if isinstance(x, Array):
            return self.temporary(x.dims[0])
        if isinstance(x, Range):
            span = self.binary("sub", x.stop, x.start)
            if x.step.op != "const":
                up = E("select", (E("gt", (x.step, const(0)), BOOL, 0, 1), const(1), const(-1)), INT, -1, 1)
                span = self.binary("sub", self.binary("add", span, x.step), self.temporary(up))
                span = self.binary("floordiv", span, x.step)
            elif (by := x.step.args[0]) != 1:
                span = self.binary("sub", const(0), span) if by < 0 else span
                span = self.binary("floordiv", self.binary("add", span, const(abs(by) - 1)), const(abs(by)))
            return self.greatest(self.temporary(span), const(0))
        if isinstance(x, Zip):
            counts = [self.turns(y) for y in x.items]
            length = counts[0]
            for c in counts[1:]:
                length = self.least(length, c)
            return length
        raise self.fail("a zip of what is no range and no array")

    def part(self, x: Any, i: E) -> Any:
        """Item i of something that a loop goes over."""
        if isinstance(x, Growing):
            return self.item(x, i)
        if isinstance(x, Tup):
            return self.one_of(x.items, i)
        if isinstance(x, Array):
            if x.ndim == 1:
                return self.element(x, [i])
            from .ir import View

            spec = (("index", i), *[("slice", const(0), x.dims[k], const(1)) for k in range(1, x.ndim)])
            view = self.array(x.kind, x.ndim - 1, x.root, where=(x.name, repr(i)))
            self.emit(View(view.name, x.name, spec))
            return view
        if isinstance(x, Range):
            return self.temporary(self.binary("add", x.start, self.binary("mul", i, x.step)))
        return self.together(x, i)

    def together(self, x: Zip, i: E) -> Tup:
        items = [self.part(y, i) for y in x.items]
        if x.count is not None:
            items = [self.binary("add", i, x.count), *items]
        return Tup(items)

    # -------------------------------------------------------------- expressions
    def condition(self, node: ast.expr) -> E:
        if isinstance(node, ast.BoolOp):
            op = "and" if isinstance(node.op, ast.And) else "or"
            found = self.condition(node.values[0])
            for more in node.values[1:]:
                found = self.both(op, found, lambda more=more: self.condition(more))
            return found
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            return self.settled_now(self.truth(self.number(self.of_Compare(node, asked=True))))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            found = self.condition(node.operand)
            return const(not found.args[0]) if found.op == "const" else E("not", (found,), BOOL, 0, 1)
        if (growing := self.list_of(node)) is not None:
            return E("gt", (self.length_of(growing), const(0)), BOOL, 0, 1)
        value = self.value(node)
        if isinstance(value, Growing):
            return E("gt", (self.length_of(value), const(0)), BOOL, 0, 1)
        if isinstance(value, Static):
            cls = type(value.value)
            if not compares_by_type(value.value) and (hasattr(cls, "__bool__") or hasattr(cls, "__len__")):
                raise self.fail("an object as a condition")
            return const(bool(value.value))
        if isinstance(value, Tup):
            return const(bool(value.items))
        return self.settled_now(self.truth(self.number(value)))

    def number(self, value: Any) -> E:
        if isinstance(value, (Array, Lazy)) and value.ndim == 0:
            return self.lazy(value).at([])
        if not isinstance(value, E):
            raise self.fail("an array, or an object, where a number was expected")
        return value

    def as_it_is(self, value: Any) -> E:
        """A number that is one of several: an array without axes would be that array, which may be written later."""
        if isinstance(value, Array):
            raise self.fail("one of several numbers that is an array")
        return self.number(value)

    def value(self, node: ast.expr) -> Any:
        """What an expression stands for; its integers are INT."""
        found = self.wide(node)
        return self.narrow(found) if isinstance(found, E) else found

    def wide(self, node: ast.expr) -> Any:
        """The same, where integers of 64 bits may be WORD."""
        line = getattr(node, "lineno", self.line)
        found = getattr(self, f"of_{type(node).__name__}", self.refuse)(node)
        self.line = line
        return found

    def of_Constant(self, node: ast.Constant) -> Any:
        found = number(node.value)
        return Static(node.value) if found is None else found

    def of_Name(self, node: ast.Name) -> Any:
        return self.read_now(node.id)

    def read_now(self, name: str) -> Any:
        """What a name stands for, whatever the rest of the expression binds."""
        found = self.load_name(name)
        return self.frozen(found) if isinstance(found, E) and name in self.scope.rebound else found

    def load_name(self, name: str) -> Any:
        scope = self.scope
        if scope.parent is not None and self.is_parents(name):
            return self.in_parent(lambda: self.read_now(name))
        if name in scope.outer or (self.found.stored and (scope.function is None or name not in scope.local)):
            source = self.source_of(name)
            if name in scope.outer or source in self.found.bound():
                return self.outside(source)
        if name in scope.names:
            found = scope.names[name]
            if found is Lost:
                self.lost(name)
            if isinstance(found, Turns):
                raise self.another_list(scope.prefix + name)
            if isinstance(found, Growing):
                return self.bound_list(found)
            if isinstance(found, Parts):
                return remade(found.type, [self.now(self.load_name(f"{name}[{k}]")) for k in range(found.count)])
            if not isinstance(found, Scalar):
                if self.kept(found) and found.name not in self.bound:
                    if not self.by_value:
                        self.check(E("held", (found.name,), BOOL, 0, 1))
                    elif found.name in self.unbound:  # while it has what it was given
                        which = E("var", (f"{found.name}!",), INT, -1, 2**42)
                        self.check(E("ne", (which, self.numbered(found.name)), BOOL, 0, 1))
                return self.as_long_as_it_is(found)
            variable = str(found)
            if variable not in self.bound:
                if variable not in self.known or not self.known[variable].kinds:
                    if self.rounds > 2:
                        raise self.fail(f"{name} is read before it is bound")
                    self.moved = True
                    return const(0)  # the next pass knows
                self.check(self.flag(variable))
            return self.not_none(self.variable(variable))
        variable = scope.prefix + name
        if variable in self.lists:
            return self.bound_list(self.lists[variable])
        if variable in self.moving and self.moving[variable].kind is not None:
            found = self.earlier[variable] = self.stands_for(variable)
            self.check(E("held", (found.name,), BOOL, 0, 1))
            return found
        if name in scope.local or name in self.assigned_in_scope():
            if variable not in self.known or not self.known[variable].kinds:
                if self.rounds > 2:
                    raise self.fail(f"{name} is read before it is bound")
                self.moved = True
                return const(0)  # the next pass knows
            self.earlier[variable] = Scalar(variable)
            self.check(self.flag(variable))
            return self.not_none(self.variable(variable))
        source = self.source_of(name)
        if len(self.scopes) > 1 and name in self.scopes[0].names and self.found.is_variable(source):
            scopes, self.scopes = self.scopes, self.scopes[:1]
            try:
                return self.load_name(name)
            finally:
                self.scopes = scopes
        return self.outside(source)

    def is_parents(self, name: str) -> bool:
        """Whether a name is a variable of the function that this one was made in."""
        scope: Scope | None = self.scope
        if name in scope.names or (name not in scope.outer and (name in scope.local or name in scope.assigned)):
            return False
        while (scope := scope.parent) is not None:
            if name in scope.names or name in scope.local or name in scope.assigned:
                return True
        return False

    def in_parent(self, call: Callable[[], Any]) -> Any:
        """call() as a statement of the function that this one was made in would."""
        assert self.scope.parent is not None
        scopes = self.scopes
        try:
            self.scopes = scopes[: scopes.index(self.scope.parent) + 1]
            return call()
        finally:
            self.scopes = scopes

    def bind_parents(self, name: str, value: Any) -> None:
        """name = value of a number that is a variable of the function that this one was made in."""
        parent = self.scope.parent
        assert parent is not None
        if parent.parent is not None and name not in parent.names and name not in parent.assigned | parent.outer:
            return self.in_parent(lambda: self.bind_parents(name, value))
        if name not in parent.outer and not isinstance(parent.names.get(name), Scalar):
            raise self.fail(f"{name}, which a function binds that is made inside, and which is no number before that")
        if not isinstance(value, E) or (name not in parent.outer and parent.names[name] not in self.bound):
            raise self.fail(f"{name}, which a function binds that is made inside, to what is no number")
        self.in_parent(lambda: self.name(name, value))

    def not_none(self, e: E) -> E:
        """A number that is not None, as which Python has to read it."""
        kinds = e.kinds - {NONE}
        if len(kinds) == len(e.kinds):
            return e
        if not kinds:
            if self.rounds > 2:
                raise self.fail("None where a number was expected")
            self.moved = True
            return const(0)  # the next pass knows
        self.check(E("ne", (self.tag(e), const(place(NONE))), BOOL, 0, 1))
        return E(e.op, e.args, e.kind, e.low, e.high, kinds, e.tag if len(kinds) > 1 else None)

    def perhaps_none(self, node: ast.expr | None) -> E | None:
        """The variable that a name is, if it may be None."""
        found = self.scope.names.get(node.id) if isinstance(node, ast.Name) else None
        if isinstance(found, Scalar) and found in self.bound and NONE in self.info(found).kinds:
            return self.variable(str(found))
        return None

    def or_none(self, node: ast.expr | None) -> Any:
        """What a name is bound to, or what is returned."""
        if node is None:
            return Static(None)
        if isinstance(node, ast.Tuple) and any(map(self.perhaps_none, node.elts)):
            return Tup([self.or_none(x) for x in node.elts])
        found = self.perhaps_none(node)
        return self.wide(node) if found is None else found

    def assigned_in_scope(self) -> frozenset[str]:
        return self.scope.assigned

    def flag(self, variable: str) -> E:
        """Whether a variable is bound, as it says when it is assigned."""
        self.flags.add(variable)
        self.program.kinds[f"{variable}?"] = BOOL
        return E("var", (f"{variable}?",), BOOL, 0, 1)

    deadline: budget.Deadline
    flags: set[str]
    lists: dict[str, Growing]
    initial: dict[str, Any]  # the types of what is given, as `translate` has them
    displayed: set[str]  # variables that were bound to lists in the source
    nones: set[str]  # variables that were bound to None in this pass
    maybe: set[str]  # those of them that are numbers on other ways
    moving: dict[str, Moving]
    recursive: dict[Any, Recursive]
    defined: dict[str, Define | None]
    early_reads: set[tuple]  # where expressions are whose arrays what follows in the statement changes
    unsettled: set[tuple]  # (variable, whether it is moving, line of a loop) of which a turn leaves something else
    tuples: dict[str, bool]  # variables that were bound to tuples -> whether their items are variables

    def assign(self, name: str, e: E) -> None:
        super().assign(name, e)
        if name in self.flags:
            from .ir import Assign

            self.program.kinds[f"{name}?"] = BOOL
            self.emit(Assign(f"{name}?", const(True)))

    def source_of(self, name: str) -> Source:
        """Where a name is found that is no variable."""
        f = self.scope.function
        source: Source = ("outside", None, name)
        if f is not None and name in f.value.__code__.co_freevars:
            source = "cell", f.source, name
        elif f is not None and name in f.value.__globals__:
            source = "global", f.source, name
        return self.found.of_all(source)

    def look(self, source: Source) -> Any:
        try:
            return self.found.look(source)
        except NotUnderstood as no:
            raise self.fail(no.why) from None

    def outside(self, source: Source) -> Any:
        """What lies at a source: a number, an array, a tuple of them, or something to call or to look into."""
        x = self.look(source)
        if source in self.found.stored:
            return self.field(source)
        found = number(x) if source not in self.found.varied else None
        if found is not None:
            return found
        if self.found.describe(x) is not None:
            return self.given(source)
        if type(x) is range:
            return Range(*[self.outside(("attribute", source, end)) for end in ("start", "stop", "step")])
        if type(x) in (tuple, list) and len(x) <= LISTED and source not in self.found.bound():
            made = Tup([self.outside(("item", source, k)) for k in range(len(x))], type(x) is list)
            made.source = source
            return made
        return Static(x, source)

    def given(self, source: Source) -> Any:
        """An array, a number or a long list of numbers that is found outside, as an input."""
        variable, what = self.given_type(source)
        if what[0] == "items" and not all(scope.inlined for scope in self.scopes):
            raise self.fail("a long list in a function that calls itself")
        if variable not in self.fields:
            with self.into(self.program.body):
                self.fields[variable] = _entry(self, variable, what, set())
        return self.fields[variable]

    def field(self, source: Source) -> Any:
        """What the loop bound an attribute, or an item of a dict, to."""
        variable = self.found.inputs[source]
        if variable in self.moving:
            return self.stands_for(variable)
        return self.frozen(self.variable(variable))  # what follows in the expression may bind it

    def store_field(self, source: Source, value: Any) -> None:
        """holder.name = value"""
        self.look(source)
        variable, given = self.given_type(source)
        value = self.materialised(value) if isinstance(value, Lazy) else value
        if isinstance(value, E) != (given[0] == "number"):
            raise self.fail(f"{source[2]}, which is bound to something of another kind")
        if source not in self.found.stored:
            self.found.stored.add(source)
            self.moved = True
            if isinstance(value, Array):
                self.moving[variable] = Moving()
            raise Anew
        if isinstance(value, E) and variable not in self.moving:
            self.assign(variable, value)
        elif isinstance(value, Array) and variable in self.moving:
            self.rebind(variable, value)
        else:
            raise self.fail(f"{source[2]}, which is bound to something of another kind")

    def given_type(self, source: Source) -> tuple:
        try:
            return self.found.input_at(source)
        except NotUnderstood as no:
            raise self.fail(no.why) from None

    def of_Tuple(self, node: ast.Tuple | ast.List | ast.Set) -> Tup:
        return Tup([self.as_part(e) for e in node.elts], isinstance(node, ast.List))

    def as_part(self, node: ast.expr) -> Any:
        """What a part of a tuple stands for, whatever becomes of the names in it."""
        found = self.now(self.value(node))
        if not isinstance(found, Growing) or found.fixed:
            return found
        held = self.list_at(node, "part")
        self.share(held.name, found)
        return held

    of_List = of_Tuple

    def of_Dict(self, node: ast.Dict) -> Any:
        if node.keys:
            raise self.fail("a dict with items in a loop")
        return EMPTY

    def of_NamedExpr(self, node: ast.NamedExpr) -> Any:
        self.bind(node.target, self.value(node.value))
        return self.load_name(node.target.id)

    def of_GeneratorExp(self, node: ast.GeneratorExp | ast.ListComp) -> Turns:
        return Turns(node)

    def of_ListComp(self, node: ast.ListComp) -> Any:
        """A list of a few items, one after the other; else what a function goes over."""
        (first, *more), found = node.generators, []
        inner = Turns(node)
        items = None if more or first.ifs else self.few(inner.own(first.iter))
        if items is None:
            return inner
        for item in items:
            self.bind(inner.own(first.target), item)
            found.append(self.now(self.value(inner.own(node.elt))))
        if any(isinstance(x, (Growing, Turns)) for x in found):
            raise self.fail("a list of lists")
        return Tup(found, True)

    def list_of_turns(self, what: Turns) -> Growing:
        """What a comprehension makes."""
        if not isinstance(what.node, ast.ListComp):
            raise self.fail("a generator that is kept")
        return self.list_from(what.node, what)

    def few(self, over: ast.expr) -> list | None:
        """The items of a tuple, or of a range whose ends are in the source; None of anything else."""
        found = self.value(over)
        if isinstance(found, Tup) and len(found.items) <= UNROLLED:
            return found.items
        if not isinstance(found, Range):
            return None
        ends = [x.args[0] for x in (found.start, found.stop, found.step) if x.op == "const"]
        if len(ends) < 3 or len(range(*ends)) > UNROLLED:
            return None
        return [const(k) for k in range(*ends)]

    def gone_over(self, what: Turns, body: Callable[[Any], None]) -> None:
        """body(item) for every item of a comprehension."""
        inner: list[ast.stmt] = [Do(lambda: body(self.value(what.own(what.node.elt))))]
        for g in reversed(what.node.generators):
            for test in reversed(g.ifs):
                inner = [ast.If(test=what.own(test), body=inner, orelse=[])]
            inner = [ast.For(target=what.own(g.target), iter=what.own(g.iter), body=inner, orelse=[])]
        for s in ast.walk(inner[0]):
            if isinstance(s, ast.stmt):
                ast.copy_location(s, what.node)
        self.body(inner)

    def consumed(self, name: str, what: Turns | Growing) -> Any:
        """sum, any, all, min or max of a comprehension, or of a list."""
        at = f"{self.scope.prefix}{name}.{what.name if isinstance(what, Growing) else what.mark}"
        if name == "sum":
            self.assign(at, const(0))
            self.every_item(what, lambda x: self.assign(at, self.binary("add", self.variable(at), self.number(x))))
            return self.variable(at)
        if name in ("any", "all"):
            end = f"{name}.{next(self.counts)}"

            def test(x: Any) -> None:
                found = self.truth(self.number(x))
                if name == "all":
                    found = const(not found.args[0]) if found.op == "const" else E("not", (found,), BOOL, 0, 1)
                with self.into([]) as then:
                    self.assign(at, const(name == "any"))
                    self.emit(Leave(end))
                self.emit(If(found, then, []))

            with self.into([]) as outer:
                self.assign(at, const(name == "all"))
                self.every_item(what, test)
            self.emit(Block(end, outer))
            self.bound.add(at)
            return self.variable(at)
        first = f"{at}.first"

        def better(x: Any) -> None:
            x = self.frozen(self.number(x))
            with self.into([]) as begin:
                self.assign(at, x)
                self.assign(first, const(False))
            with self.into([]) as go_on:
                test = self.truth(self.compare("lt" if name == "min" else "gt", x, self.variable(at)))
                with self.into([]) as then:
                    self.assign(at, x)
                self.emit(If(test, then, []))
            self.emit(If(self.variable(first), begin, go_on))

        self.assign(first, const(True))
        self.every_item(what, better)
        if not self.info(at).kinds:
            raise self.fail(f"{name} of nothing")
        self.check(E("not", (self.variable(first),), BOOL, 0, 1))
        self.bound.add(at)
        return self.variable(at)

    def filled(self, what: Turns, dtype: Any) -> Array:
        """np.array([... for ... in ...]) of numbers."""
        (g, *more) = what.node.generators
        if more or g.ifs:
            raise self.fail("an array of a comprehension with conditions, or of several")
        over = self.now(self.value(what.own(g.iter)))
        length = self.frozen(self.turns(over))

        def item(k: E) -> E:
            self.bind(what.own(g.target), self.part(over, k))
            return self.number(self.value(what.own(what.node.elt)))

        bound, names = set(self.bound), dict(self.scope.names)
        with self.into([]):
            found = item(const(0))
        if len(found.kinds) > 1:
            raise self.fail("np.array of a number that is of several types")
        kind = Kind(found.kind.code) if dtype is None else self.dtype_of(dtype)
        out = self.new([length], kind, False)
        self.over(out.dims, lambda k: self.emit(Store(out.name, tuple(k), self.stored(item(k[0]), kind))))
        self.bound, self.scope.names = bound, names
        return out

    def array_of_list(self, x: Growing, dtype: Any) -> Array:
        """np.array(list)"""
        if not x.kinds:
            raise self.fail("np.array of this list")
        if x.axes:
            stacked = self.stacked(x)
            return stacked if dtype is None else self.np_astype([stacked, dtype], {})
        each = list(itertools.product(*[sorted(kinds, key=place) for kinds in x.kinds]))
        found = {result_kind(listed, kinds) for kinds in each} if dtype is None else {self.dtype_of(dtype)}
        count = self.frozen(self.length_of(x))
        if dtype is None and any(len(kinds) > 1 for kinds in x.kinds):
            if x.sort or not {kind.code for kind in x.kinds[0]} <= {"i8", "f8"}:
                raise self.fail("np.array of a number that is of several types")
            self.check(E("gt", (self.floats_in(x, count), const(0)), BOOL, 0, 1))  # else it is one of integers
            found = {Kind("f8")}
        (kind,) = found
        if x.sort or (dtype is None and kind.code != "f8"):  # without items it is another array
            self.check(E("gt", (count, const(0)), BOOL, 0, 1))
        out = self.new([count, *[const(len(x.kinds))] * bool(x.sort)], kind, False)

        def put(k: list[E]) -> None:
            items = self.item(x, k[0])
            for j, item in enumerate(items.items if x.sort else [items]):
                at = (k[0], const(j)) if x.sort else (k[0],)
                self.emit(Store(out.name, at, self.stored(item, kind)))

        self.over([count], put)
        return out

    def floats_in(self, x: Growing, count: E) -> E:
        """How many numbers in a list are floats."""
        floats, found = [place(kind) for kind in x.kinds[0] if kind.letter == "f"], self.fresh("floats")
        self.program.kinds[found] = INT
        self.emit(Assign(found, const(0)))
        so_far = E("var", (found,), INT, 0, 2**40)

        def more(k: list[E]) -> None:
            tag: E = self.tag(self.item(x, k[0]))
            one = functools.reduce(
                lambda a, b: E("or", (a, b), BOOL, 0, 1), [E("eq", (tag, const(t)), BOOL, 0, 1) for t in floats]
            )
            self.emit(Assign(found, E("add", (so_far, E("cast", (one,), INT, 0, 1)), INT, 0, 2**40)))

        self.over([count], more)
        return so_far

    def stacked(self, x: Growing, end_to_end: bool = False) -> Array:
        """The arrays of a list, one upon the other; or one behind the other, along their first axis."""
        column, count = self.stands_for(f"{x.name}<0>"), self.frozen(self.length_of(x))
        self.check(E("gt", (count, const(0)), BOOL, 0, 1))
        first, *rest = [self.temporary(d) for d in column.dims[1:]]
        total = self.temporary(self.binary("mul", count, first))
        out = self.new([total, *rest] if end_to_end else [count, first, *rest], column.kind, False)

        def put(k: list[E]) -> None:
            at = k
            if end_to_end:
                at = [self.temporary(self.binary("add", self.binary("mul", k[0], first), k[1])), *k[2:]]
            self.emit(Store(out.name, tuple(at), self.load(column, k)))

        self.over([count, first, *rest], put)
        return out

    def of_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return self.condition(node)
        return self.apply(AST_OPERATORS[type(node.op)], [self.value(node.operand)])

    def of_BinOp(self, node: ast.BinOp) -> Any:
        if type(node.op) in (ast.BitAnd, ast.Mod) and (bits := self.bits_of(node)) is not None:
            return bits
        if type(node.op) is ast.Pow and (whole := self.literal(node)) is not None:
            return number(whole) or Static(whole)
        read: list = []
        left, right = (self.operand(x, read, self.wide) for x in (node.left, node.right))
        if isinstance(node.op, ast.MatMult):
            return self.dot(left, right)
        parts = [self.list_of_turns(x) if isinstance(x, Turns) else x for x in (left, right)]
        which = [isinstance(x, (Tup, Growing)) for x in parts]
        if any(which):
            if isinstance(node.op, ast.Mult) and not all(which):
                return self.repeated(node, *parts[:: -1 if which[1] else 1])
            if not isinstance(node.op, ast.Add) or not all(which):
                raise self.fail("an operator on tuples")
            if all(isinstance(x, Tup) for x in parts) and parts[0].listed == parts[1].listed:
                return Tup([*parts[0].items, *parts[1].items], parts[0].listed)
            if any(isinstance(x, Tup) and not x.listed for x in parts):
                raise self.fail("an operator on tuples")
            return self.list_from(node, *parts)
        return self.apply(AST_OPERATORS[type(node.op)], [left, right])

    def literal(self, node: ast.expr) -> int | None:
        """The integer of Python's that an expression of such, and of names outside of such, is; None of any other."""
        if isinstance(node, ast.Constant):
            return node.value if type(node.value) is int else None
        if isinstance(node, ast.Name) and node.id not in self.scope.names and node.id not in self.scope.local:
            if self.scope.prefix + node.id in self.moving or node.id in self.assigned_in_scope():
                return None
            value = self.load_name(node.id)
            found = value.value if isinstance(value, Static) else value.args[0] if isinstance(value, E) else None
            fixed = isinstance(value, Static) or (
                isinstance(value, E) and value.op == "const" and value.kinds <= {INT, WORD}
            )
            return found if fixed and type(found) is int else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self.literal(node.operand)
            return None if value is None else -value
        if isinstance(node, ast.BinOp) and type(node.op) in (ast.Pow, ast.LShift, ast.Sub, ast.Add, ast.Mult):
            a, b = self.literal(node.left), self.literal(node.right)
            if a is None or b is None or abs(a) > 2**64 or abs(b) > 2**64:
                return None
            if type(node.op) in (ast.Pow, ast.LShift) and not 0 <= b <= 64:
                return None
            return OPERATORS[AST_OPERATORS[type(node.op)]](a, b)
        return None

    def bits_of(self, node: ast.BinOp) -> Any:
        """x & mask, or x % 2**k, of Python's integers, of which x may be beyond 64 bits: its last ones decide. None of
        anything else."""
        inner, other = node.left, self.literal(node.right)
        if other is None and type(node.op) is ast.BitAnd:
            inner, other = node.right, self.literal(node.left)
        mask = other
        if other is not None and type(node.op) is ast.Mod:
            mask = other - 1 if other > 0 and not other & (other - 1) else None
        if mask is None or not 0 <= mask < 2**64 or type(inner) is not ast.BinOp:
            return None
        if type(inner.op) not in (*WRAPPING, ast.LShift):
            return None

        def leaves(tree: ast.expr) -> Any:
            """The operands that are no such operators, in the order in which Python takes them."""
            if type(tree) is ast.BinOp and type(tree.op) in WRAPPING:
                found = [leaves(tree.left)]
                return [type(tree.op), *found, leaves(tree.right)]
            if type(tree) is ast.BinOp and type(tree.op) is ast.LShift:
                by = self.literal(tree.right)
                if by is not None and 0 <= by < 64:
                    return [ast.Mult, leaves(tree.left), 2**by]
            whole = self.literal(tree)
            value = self.wide(tree) if whole is None else whole
            first = value
            while isinstance(first, E) and first.op == "copy":
                first = first.args[0]
            if isinstance(first, E) and value.kinds == {INT} and not first.kind.python:
                return self.temporary(E("cast", (first,), INT, value.low, value.high))  # which prints as int(first)
            return self.frozen(value) if isinstance(value, E) else value

        def last_bits(tree: Any) -> E:
            if type(tree) is int:
                return const((tree + 2**63) % 2**64 - 2**63)
            if isinstance(tree, E):
                return tree
            op, *operands = tree
            return E(AST_OPERATORS[op], tuple(map(last_bits, operands)), Kind("i8"))  # which wraps around

        def plain(tree: Any) -> Any:
            if type(tree) is list:
                return self.apply(AST_OPERATORS[tree[0]], [plain(x) for x in tree[1:]])
            return tree if type(tree) is not int else number(tree) or Static(tree)

        tree = leaves(inner)
        whole = lambda x: type(x) is int or (isinstance(x, E) and x.kinds in ({INT}, {WORD}))
        if type(tree) is list and all(map(whole, flat(tree))):
            if mask > MOST:
                return E("and", (E("cast", (last_bits(tree),), WORD), const(mask, WORD)), WORD, 0, mask)
            return E("and", (last_bits(tree), const(mask)), INT, 0, mask)
        return self.apply(AST_OPERATORS[type(node.op)], [plain(tree), plain(other)])

    def apply(self, op: str, given: list) -> Any:
        if any(not isinstance(g, (E, Array, Lazy)) for g in given):
            raise self.fail(f"{op} of an object")
        one = len(given) == 1
        if op == "pow" and isinstance(given[0], (Array, Lazy)) and (simple := simple_power(*given)):
            return self.call_np(simple, given[:1], {}, getattr(onp, simple))
        compute = (lambda v: self.unary(op, v[0])) if one else (lambda v: self.binary(op, v[0], v[1]))
        return self.elementwise(OPERATORS[op], compute, given)

    def operand(self, node: ast.expr, read: list, how: Callable | None = None) -> Any:
        """What an expression stands for that follows others (`read`: their nodes, what they stand for). If it changes
        an array that one of these reads, that one is computed first, from the next pass on."""
        writes, rebinds = self.writes, self.rebinds
        found = (how or self.value)(node)
        if (writes, rebinds) != (self.writes, self.rebinds):
            for other, x in read:
                anew = rebinds < self.rebinds and isinstance(x, Array)
                anew = anew and (x.root in self.moving if self.by_value else x.name in self.program.moving)
                if anew or isinstance(x, Lazy):
                    self.early_reads.add(self.position(other))
                    raise Anew
        found = self.settled(node, found)
        read.append((node, found))
        return found

    def settled(self, node: ast.expr, x: Any) -> Any:
        """What an expression stands for, whatever the ones behind it change."""
        if self.position(node) not in self.early_reads:
            return x
        if self.by_value and isinstance(x, Array):
            raise self.fail("the derivative of an array whose name what follows in the expression binds anew")
        return self.now(x)

    def position(self, node: ast.expr) -> tuple:
        return self.scope.prefix, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset

    def of_BoolOp(self, node: ast.BoolOp) -> Any:
        op = isinstance(node.op, ast.And)

        def rest(values: list) -> E:
            first = self.as_it_is(self.value(values[0]))
            if len(values) == 1:
                return first
            first = self.frozen(first)
            return self.choose(self.truth(first), *((lambda: rest(values[1:]), lambda: first)[:: 1 if op else -1]))

        return rest(node.values)

    def of_Compare(self, node: ast.Compare, asked: bool = False) -> Any:
        """A comparison, or a chain of them; `asked`: whether it is true, and no more."""
        match node:
            case ast.Compare(ast.Name(), [ast.Is() | ast.IsNot() as op], [ast.Constant(None)]):
                if (found := self.perhaps_none(node.left)) is not None:
                    which = "eq" if isinstance(op, ast.Is) else "ne"
                    return E(which, (self.tag(found), const(place(NONE))), BOOL, 0, 1)
        read: list = []
        left = self.operand(node.left, read, self.wide)
        out: Any = None
        for k, (op, right) in enumerate(zip(node.ops, node.comparators)):

            def link(left: Any = left, op: ast.cmpop = op, right: ast.expr = right) -> tuple[Any, Any]:
                number = isinstance(op, ORDERS)
                left = self.narrow(left) if isinstance(left, E) and not number else left
                if isinstance(op, (ast.In, ast.NotIn)) and (growing := self.dict_of(right)) is not None:
                    if not growing.kinds:
                        return const(isinstance(op, ast.NotIn)), right
                    number = self.temporary(self.slot_of(growing, self.key_of(growing, left))[1])
                    return E("gt" if isinstance(op, ast.In) else "eq", (number, const(0)), BOOL, 0, 1), right
                # a set keeps each item once, in an order of its own: `in` alone does not ask
                asks = isinstance(op, (ast.In, ast.NotIn)) and right is node.comparators[-1]
                second = self.of_Tuple(right) if asks and isinstance(right, ast.Set) else None
                if second is None:
                    second = self.operand(right, read, self.wide if number else self.value)
                if isinstance(op, (ast.Is, ast.IsNot)):
                    one = [x.value if isinstance(x, Static) else x for x in (left, second)]
                    if not any(x is None for x in one):
                        raise self.fail("is")
                    return const((one[0] is one[1]) == isinstance(op, ast.Is)), second
                if isinstance(op, (ast.In, ast.NotIn)):
                    found: E = self.inside_of(left, second) if not isinstance(second, Tup) else const(False)
                    for item in second.items if isinstance(second, Tup) else ():
                        if isinstance(left, Static) and isinstance(item, Static):
                            if not (compares_by_type(left.value) and compares_by_type(item.value)):
                                raise self.fail("a comparison of objects")
                            if left.value == item.value:
                                return const(isinstance(op, ast.In)), second
                            continue
                        if isinstance(left, Tup) and isinstance(item, Tup):
                            if left.listed != item.listed or len(left.items) != len(item.items):
                                continue
                            same = self.in_order("eq", left, item)
                        else:
                            one, other = self.number(left), self.number(item)
                            if one.kind.letter in "fc" and other.kind.letter in "fc":  # a NaN may be itself
                                one = self.frozen(one)
                                self.check(E("eq", (one, one), BOOL, 0, 1))
                            same = self.truth(self.binary("eq", one, other))
                        found = (
                            same if found.op == "const" and not found.args[0] else E("or", (found, same), BOOL, 0, 1)
                        )
                    if found.op == "const":
                        return const(bool(found.args[0]) is isinstance(op, ast.In)), second
                    return (found if isinstance(op, ast.In) else E("not", (found,), BOOL, 0, 1)), second
                if isinstance(left, Static) and isinstance(second, Static):
                    if not (compares_by_type(left.value) and compares_by_type(second.value)):
                        raise self.fail("a comparison of objects")
                    return const(bool(OPERATORS[AST_OPERATORS[type(op)]](left.value, second.value))), second
                if isinstance(left, Tup) and isinstance(second, Tup):
                    return self.in_order(AST_OPERATORS[type(op)], left, second), second
                if asked:  # whether it is NumPy's bool or Python's does not matter
                    pair = [self.as_float(x) for x in (left, second)]
                    return self.apply(AST_OPERATORS[type(op)], pair), second
                return self.apply(AST_OPERATORS[type(op)], [left, second]), second

            if k == 0:
                out, left = link()
                if len(node.ops) > 1 and isinstance(left, E):
                    left = self.frozen(left)
            else:
                if not isinstance(out, E):
                    raise self.fail("a chain of comparisons of arrays")
                if asked:
                    out = self.both("and", self.truth(out), lambda: self.truth(self.number(link()[0])))
                else:  # the comparison that decides, a bool of Python's or of NumPy's
                    first = self.frozen(out)
                    out = self.choose(self.truth(first), lambda: self.number(link()[0]), lambda first=first: first)
                left = self.value(right) if k < len(node.ops) - 1 else None
        return out

    def as_float(self, x: Any) -> Any:
        """A number that may be an integer or a float, Python's or NumPy's, as NumPy's float64; else x itself."""
        several = isinstance(x, E) and len(x.kinds) > 1 and {k.code for k in x.kinds} <= {"i8", "f8"}
        return E("copy", (x,), Kind("f8")) if several and x.kind.code == "f8" else x

    def in_order(self, op: str, a: Tup, b: Tup) -> E:
        """A comparison of tuples of numbers: that of the first items that differ."""
        if a.listed != b.listed or not all(isinstance(x, E) for x in (*a.items, *b.items)):
            raise self.fail("a comparison of tuples")
        if len(a.items) != len(b.items):
            raise self.fail("a comparison of tuples of several lengths")

        def rest(pairs: list) -> E:
            if not pairs:
                return const(op in ("eq", "le", "ge"))
            x, y = map(self.frozen, pairs[0])
            for e in (x, y):
                if e.kind.letter in "fc":  # one NaN is itself, in tuples
                    self.check(E("eq", (e, e), BOOL, 0, 1))
            same = self.truth(self.compare("eq", x, y))
            differ = lambda: const(op == "ne") if op in ("eq", "ne") else self.compare(op, x, y)
            return self.choose(same, lambda: rest(pairs[1:]), differ)

        return rest(list(zip(a.items, b.items)))

    def inside_of(self, x: Any, over: Any) -> E:
        """x in over, of a range or an array."""
        x = self.frozen(self.number(x))
        if isinstance(over, (Array, Lazy)):
            over = self.lazy(over)
            same = lambda v: E("copy", (self.truth(self.compare("eq", v[0], v[1])),), Kind("b1"), 0, 1)
            return self.truth(self.number(self.reduce("any", self.lazy(self.elementwise(onp.equal, same, [over, x])))))
        if not isinstance(over, Range) or over.step.op != "const" or over.step.args[0] < 0 or not is_whole(x):
            raise self.fail("in")
        x = self.temporary(self.cast(x, INT))
        least, most = self.compare("le", over.start, x), self.compare("lt", x, over.stop)
        found = self.both("and", least, lambda: most)
        if over.step.args[0] == 1:
            return found
        off = lambda: self.compare("eq", self.binary("mod", self.binary("sub", x, over.start), over.step), const(0))
        return self.both("and", found, off)

    def of_IfExp(self, node: ast.IfExp) -> Any:
        test = self.condition(node.test)
        if test.op == "const":
            return self.value(node.body if test.args[0] else node.orelse)
        with self.into([]) as then:
            first = self.attempt(lambda: self.value(node.body))
        if isinstance(first, (Array, Lazy)):
            return self.either(test, then, first, node)
        if isinstance(first, (Tup, Range)) and all(isinstance(x, E) for x in first.items):
            return self.one_of_two(test, then, first, node)
        return self.choose(test, *[lambda x=x: self.as_it_is(self.value(x)) for x in (node.body, node.orelse)])

    def one_of_two(self, test: E, then: list, first: Tup | Range, node: ast.IfExp) -> Tup | Range:
        """One tuple of numbers, or one range, or another one."""
        names, before = [self.fresh("choice") for _ in first.items], set(self.bound)
        with self.into([]) as orelse:
            second = self.value(node.orelse)
            if not type_of(first) or type_of(second) is not type_of(first) or len(second.items) != len(names):
                raise self.fail("one of two things of several types or lengths")
        for out, found in ((then, first), (orelse, second)):
            with self.into(out):
                for name, x in zip(names, found.items):
                    self.assign(name, self.number(x))
        self.bound = before | {*names}
        self.emit(If(test, then, orelse))
        return remade(type_of(first), [self.variable(name) for name in names])

    def either(self, test: E, then: list, first: Array | Lazy, node: ast.IfExp) -> Array:
        """One array or another one."""
        variable = f"{self.scope.prefix}if.{node.lineno}.{node.col_offset}"
        self.moving.setdefault(variable, Moving())
        with self.into(then):
            found = self.rebind(variable, self.materialised(first) if isinstance(first, Lazy) else first)
        with self.into([]) as orelse:
            second = self.value(node.orelse)
            if not isinstance(second, (Array, Lazy)):
                raise self.fail("an array or a number")
            self.rebind(variable, self.materialised(second) if isinstance(second, Lazy) else second)
        self.emit(If(test, then, orelse))
        return self.now(found)

    def of_Subscript(self, node: ast.Subscript) -> Any:
        if (growing := self.list_of(node.value)) is not None:
            if growing.sort == "dict":
                key = self.key_of(growing, self.value(node.slice))
                return self.item(growing, self.entry_of(growing, key)).items[1]
            return self.item_in(growing, node)
        base = self.value(node.value)
        if isinstance(base, Tup):
            return self.item_of(base, self.value(node.slice))
        if isinstance(base, Growing):
            return self.item_in(base, node)
        if isinstance(base, Static) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            raise self.fail("a shape")
        if isinstance(base, Static) and type(base.value) in (dict, list) and base.source is not None:
            return self.outside(self.entry(base, node.slice))
        if isinstance(base, Lazy):
            base = self.materialised(base)
        if not isinstance(base, Array):
            raise self.fail("an item of what is no array")
        parts = self.parts(node.slice)
        if any(isinstance(p, (Array, Lazy)) for p in parts):
            return self.gathered(base, parts)
        return self.index(base, parts)

    def item_of(self, base: Tup, i: Any) -> Any:
        """base[i] of a tuple, or of a list that nobody changes."""
        i = self.number(i) if isinstance(i, Array) else i
        if isinstance(i, E) and i.op == "const" and type(i.args[0]) is int:
            try:
                return base.items[i.args[0]]
            except IndexError:
                raise self.fail("an item that a tuple does not have") from None
        if not isinstance(i, E) or not (is_whole(i) or i.kinds == {BOOL}):
            raise self.fail("an index of a tuple that is no integer")
        if base.listed and not base.items:
            raise Unread("an item of a list that is empty", self.line)
        i, count = self.temporary(self.cast(i, INT)), const(len(base.items))
        self.check(E("inside", (i, count), BOOL), "item list" if base.listed else "item tuple")
        at = i if i.low >= 0 else self.temporary(E("wrap", (i, count), INT, 0, len(base.items)))
        return self.one_of(base.items, at)

    def one_of(self, items: list, at: E) -> Any:
        """The number, or the tuple of numbers, at a place inside."""
        first = items[0] if items else None
        if isinstance(first, Tup):
            shapes = {(x.listed, len(x.items)) if isinstance(x, Tup) else None for x in items}
            if len(shapes) == 1:
                columns = zip(*(x.items for x in items))
                return Tup([self.one_of(list(column), at) for column in columns], first.listed)
        if not items or not all(isinstance(x, E) for x in items):
            raise self.fail("an item that is no number, of a tuple, whose place is not in the source")
        kinds = frozenset(kind for x in items for kind in x.kinds)
        kind, tag = join(kinds), None
        if len(kinds) > 1:
            for x in items:
                if kind.letter in "fc" and x.kind.letter == "i":
                    self.exact(x)
            tag = self.load(self.table([self.tag(x) for x in items], INT), [at])
        e = self.load(self.table(items, kind), [at])
        whole = kind.letter in "iub"
        low, high = (min(x.low for x in items), max(x.high for x in items)) if whole else (None, None)
        return self.temporary(E("copy", (e,), kind, low, high, kinds, tag))

    def table(self, items: list[E], kind: Kind) -> Array:
        """An array of numbers: made once, before the loop, where they are the same throughout."""
        given = lambda x: x.op == "const" or (x.op == "var" and x.args[0].endswith(".in"))
        fixed = all(map(given, items)) and all(scope.inlined for scope in self.scopes)
        key = f"{kind!r} {items!r}"
        if fixed and key in self.tables:
            return self.tables[key]
        with self.into(self.program.body if fixed else self.out):
            made = self.new([const(len(items))], kind, False)
            for k, x in enumerate(items):
                self.emit(Store(made.name, (const(k),), self.cast(x, kind)))
        if fixed:
            self.tables[key] = made
        return made

    def entry(self, base: Static, node: ast.expr) -> Source:
        """Where an item of a dict, or of a list, lies."""
        key = self.value(node)
        key = key.value if isinstance(key, Static) else key.args[0] if isinstance(key, E) and key.op == "const" else key
        if type(base.value) is list:
            if type(key) is not int or not -len(base.value) <= key < len(base.value):
                raise self.fail("a list outside, written at a place that is not in the source")
            return "item", base.source, key % len(base.value)
        if type(key) not in (str, int):
            raise self.fail("an item of a dict whose key is not in the source")
        return "item", base.source, key

    def parts(self, node: ast.expr) -> list:
        """An index as a list of its parts."""
        nodes = node.elts if isinstance(node, ast.Tuple) else [node]
        out: list = []
        for n in nodes:
            if isinstance(n, ast.Slice):
                if one_item(n):
                    out.append((self.frozen(self.as_python(self.number(self.value(n.lower)))), ONE, None))
                    continue
                ends = [None if e is None else self.value(e) for e in (n.lower, n.upper, n.step)]
                ends = [None if isinstance(e, Static) and e.value is None else e for e in ends]
                if any(e is not None and not isinstance(e, E) for e in ends):
                    raise self.fail("a slice")
                out.append(tuple(self.frozen(e) if isinstance(e, E) else e for e in ends))
                continue
            x = self.mask(n) if isinstance(n, ast.Compare) else self.value(n)
            if isinstance(x, Cut):
                out.append(x.ends)
            elif isinstance(x, Static) and (x.value is None or x.value is Ellipsis or x.value is onp.newaxis):
                out.append(x.value)
            elif isinstance(x, Tup) and x.listed and x.items and all(isinstance(y, E) for y in x.items):
                out.append(self.np_array([x], {}))
            elif isinstance(x, Tup) and not isinstance(node, ast.Tuple):
                if x.listed or any(isinstance(y, Tup) for y in x.items):
                    raise self.fail("a list as an index")
                out += [self.frozen(y) if isinstance(y, E) else y for y in x.items]
            elif isinstance(x, Array) and not x.ndim:
                out.append(self.number(x))
            elif isinstance(x, (Array, Lazy)):
                out.append(x)
            elif isinstance(x, E):
                if x.kind.letter == "b":
                    raise self.fail("an index that is a truth value")
                out.append(self.frozen(x))
            else:
                raise self.fail("an index")
        return out

    def mask(self, node: ast.Compare) -> Any:
        """The value of a comparison that is an index: in x[x > 0] = f(x[x > 0]) the one chosen before."""
        text = ast.dump(node)
        found = self.masks.get(text)
        if found is not None and found[1] == self.writes and found[2] is self.out:
            return found[0]
        x = self.value(node)
        if not isinstance(x, Lazy) or any(isinstance(n, (ast.Call, ast.NamedExpr)) for n in ast.walk(node)):
            return x
        x = self.materialised(x)
        self.masks[text] = x, self.writes, self.out
        return x

    def of_Attribute(self, node: ast.Attribute) -> Any:
        base = self.value(node.value)
        if isinstance(base, (Array, Lazy)):
            if node.attr == "shape":
                return Tup([self.frozen(d) for d in base.dims])
            if node.attr == "size":
                out = const(1)
                for d in base.dims:
                    out = self.binary("mul", out, self.temporary(d))
                return self.temporary(out)
            if node.attr == "ndim":
                return const(base.ndim)
            if node.attr == "dtype":
                return Static(base.kind.dtype)
            if node.attr == "T" and isinstance(base, Array):
                return self.transposed(base)
            return Static(Method(base, node.attr))
        if isinstance(base, E):
            if node.attr in ("real", "imag"):
                if base.kind.letter != "c":
                    return base if node.attr == "real" else self.binary("mul", base, const(0))
                kind = Kind("f8" if base.kind.code == "c16" else "f4", base.kind.python)
                return E(node.attr, (self.temporary(base),), kind)
            return Static(Method(base, node.attr))
        if isinstance(base, Static):
            return self.attribute(base, node.attr)
        raise self.fail(f"the attribute {node.attr} of an object")

    def attribute(self, base: Static, name: str) -> Any:
        x = base.value
        if isinstance(x, Method):
            raise self.fail(f".{name}")
        if isinstance(x, ModuleType):
            if base.source is not None and not library(x):
                return self.outside(("attribute", base.source, name))
            try:
                return self.constant(getattr(x, name))
            except AttributeError:
                raise self.fail(f"{x.__name__}.{name}") from None
        found = known_function(x)
        if name == "outer" and found is not None and found[0] == "np":
            return Static(Method(base, "outer"))
        if isinstance(x, (onp.finfo, onp.iinfo)):
            return self.constant(getattr(x, name))
        if base.source is not None and base_of(x) is not None:
            return Static(Method(base, name))
        if base.source is None or not (is_plain_object(x) or isinstance(x, type)):
            raise self.fail(f"the attribute {name} of an object")
        if isinstance(x, tuple) and name in getattr(type(x), "_fields", ()):
            return self.outside(("item", base.source, type(x)._fields.index(name)))  # type: ignore[attr-defined]
        if not isinstance(x, type) and lies_in(x, name):
            return self.outside(("attribute", base.source, name))
        source = ("class", base.source, name)
        written = self.look(source)
        if type(written) is FunctionType and not isinstance(x, type):
            return Static(MethodType(written, x), ("bound", base.source, name))
        if type(written) is property:
            return self.inlined(self.function(("getter", source, "")), [base], {})
        if type(written) is staticmethod:
            return self.function(("function", source, ""))
        return self.outside(source)

    def function(self, source: Source) -> Static:
        found = self.outside(source)
        if not isinstance(found, Static) or type(found.value) is not FunctionType:
            raise self.fail("a call of what is no function")
        return found

    def constant(self, x: Any) -> Any:
        """An object of a library's: a number, or something to call."""
        found = number(x)
        return Static(x) if found is None else found

    def of_JoinedStr(self, node: ast.AST) -> Any:
        raise self.fail("a text")

    # -------------------------------------------------------------- calls
    def of_Call(self, node: ast.Call) -> Any:
        f = node.func
        if isinstance(f, ast.Attribute) and not node.keywords and (growing := self.dict_of(f.value)) is not None:
            return self.method_of_dict(growing, f.attr, [self.value(a) for a in node.args])
        if isinstance(f, ast.Attribute) and f.attr == "copy" and (growing := self.list_of(f.value)) is not None:
            if node.args or node.keywords or growing.sort == "dict":
                raise self.fail("a copy of a dict")
            return self.list_from(node, growing)
        method = isinstance(f, ast.Attribute) and f.attr in ("append", "extend", "pop", "clear") and not node.keywords
        if method and (growing := self.list_of(f.value, True)) is not None:
            return self.method_of(growing, f.attr, node.args)
        function = self.value(node.func)
        if not isinstance(function, Static):
            raise self.fail("a call of what is no function")
        if isinstance(function.value, Method):
            function = Static(Method(self.settled(node.func, function.value.base), function.value.name))
        if any(k.arg is None for k in node.keywords):
            raise self.fail("a call with starred arguments")
        f = function.value
        args, read = [], [(node.func, f.base if isinstance(f, Method) else None)]
        if f is len and len(node.args) == 1 and (growing := self.list_of(node.args[0])) is not None:
            return self.frozen(self.length_of(growing))
        waits = f in (sum, min, max, any, all) or (known_function(f) or "")[:2] in (("np", "array"), ("np", "asarray"))
        for a in node.args:
            if waits and (turns := self.waiting(a)) is not None:
                args.append(turns)
            elif f in (enumerate, zip) and (growing := self.list_of(a)) is not None:
                args.append(growing)
            elif isinstance(a, ast.Starred):
                args += self.spread_out(self.operand(a.value, read))
            else:
                args.append(self.operand(a, read))
        kwargs = {k.arg: self.operand(k.value, read) for k in node.keywords}
        args = [self.frozen(a) if isinstance(a, E) else a for a in args]
        if isinstance(f, Closure):
            return self.enclosed(f, args, kwargs)
        if isinstance(f, Method):
            with self.saying(None):
                return self.method(f, args, kwargs)
        if isinstance(f, (FunctionType, MethodType)) and (not library(f) or f.__module__ == matrices.__name__):
            return self.inlined(function, args, kwargs)
        if function.source is not None and is_plain_object(f) and not library(type(f)):
            written = self.look(("class", function.source, "__call__"))
            if type(written) is FunctionType:
                return self.inlined(
                    Static(MethodType(written, f), ("bound", function.source, "__call__")), args, kwargs
                )
        if (name := function_of(f)) is not None:
            return drawn(self, None, onp.random.RandomState, name, args, kwargs)
        if f is prange:
            over = self.call_builtins("range", args, kwargs, f)
            over.asked = True
            return over
        found = known_function(f)
        if found is None:
            raise self.fail(f"a call of {getattr(f, '__name__', f)!s}")
        where, name = found
        spoken, named = self.spoken, name if name in ("square", "float_power", "reciprocal") else None
        if where == "np":
            spoken = "" if name in NUMPYS or name in UNARY or name in BINARY or named else None
        with self.saying(None if name == "divmod" else spoken, named):
            if f is list and len(args) == 1 and not kwargs and not isinstance(args[0], Tup):
                return self.list_from(node, *args)
            return getattr(self, f"call_{where}")(name, args, kwargs, f)

    def spread_out(self, x: Any) -> list:
        """The items of a starred argument."""
        if isinstance(x, Lazy):
            x = self.materialised(x)
        if isinstance(x, Array) and x.ndim and x.dims[0].op == "const" and x.dims[0].args[0] <= UNROLLED:
            return [self.index(x, [const(k)]) for k in range(x.dims[0].args[0])]
        if not isinstance(x, Tup):
            raise self.fail("a starred argument that is no tuple")
        return list(x.items)

    def method(self, m: Any, args: list, kwargs: dict) -> Any:
        x, name = m.base, m.name
        if isinstance(x, Static) and (base := base_of(x.value)) is not None:
            return drawn(self, x.source, base, name, args, kwargs)
        if name == "outer" and isinstance(x, Static) and len(args) == 2 and not kwargs:
            op = NUMPYS.get(known_function(x.value)[1])
            if op is None or any(not isinstance(a, (Array, Lazy)) for a in args):
                raise self.fail("this outer product")
            return self.outer(OPERATORS[op], lambda v: self.binary(op, v[0], v[1]), *args)
        if name in REDUCTIONS:
            return self.reduced(name, [x, *args], kwargs)
        if isinstance(x, (Array, Lazy)):
            if name == "dot" and len(args) == 1:
                return self.dot(x, args[0])
            if name == "copy" and not args and not kwargs:
                return self.materialised(self.lazy(x))
            if name == "item" and not args and x.ndim == 0:
                return self.as_python(self.number(x))
            if name == "sort" and not args and not kwargs and isinstance(x, Array):
                self.sort(x)
                return Static(None)
            if name == "fill" and len(args) == 1 and isinstance(x, Array):
                self.fill(x, args[0])
                return Static(None)
            if name in ("reshape", "ravel", "transpose", "cumsum", "nonzero", "astype", "searchsorted", "round"):
                return getattr(self, f"np_{name}")([x, *args], kwargs)
            if name == "flatten" and not args and not kwargs:
                return self.np_ravel([self.materialised(self.lazy(x))], {})
        elif name == "item" and not args:
            return self.as_python(x)
        elif name in ("conjugate", "conj") and not args:
            if x.kinds == {Kind("b1")}:  # a bool, where np.conj has an int8
                return x
            found = self.unary_function("conj", x)
            return self.as_python(found) if x.kind.python and len(x.kinds) == 1 else found
        raise self.fail(f"the method {name}")

    def as_python(self, e: E) -> E:
        kind = {"f": FLOAT, "i": INT, "u": INT, "b": BOOL, "c": Kind("c16", True)}[e.kind.letter]
        if e.kind.code == "u8":
            raise self.fail("uint64 as a number of Python's")
        if e.kinds == {kind}:
            return e
        return self.cast(e, kind) if e.kind.code != kind.code else E("copy", (e,), kind, e.low, e.high)

    def inlined(self, called: Static, args: list, kwargs: dict) -> Any:
        f, source = called.value, called.source
        if isinstance(f, MethodType):
            if source is not None and source[0] == "bound":
                own, source = Static(f.__self__, source[1]), ("class", source[1], source[2])
            else:
                own = self.outside(("self", source, "")) if source is not None else Static(f.__self__)
                source = None if source is None else ("function", source, "")
            args, f = [own, *args], f.__func__
        if source is None:
            raise self.fail(f"a call of {f.__name__}")
        if len(self.scopes) > DEPTH:
            raise self.fail(f"{f.__name__} is called by more than {DEPTH} functions, one in another")
        if f not in self.recursive and any(s.function is not None and s.function.value is f for s in self.scopes):
            self.recursive[f] = Recursive(f"{f.__name__}.r{len(self.recursive)}".replace("<", "").replace(">", ""))
            raise Anew
        tree = tree_of(f)
        if tree is None:
            raise self.fail(f"{f.__name__}, whose source is not to be had")
        try:
            given = inspect.signature(f).bind(*args, **kwargs)
        except TypeError as error:
            raise self.fail(str(error)) from None
        places = [p.name for p in inspect.signature(f).parameters.values() if p.kind <= p.POSITIONAL_OR_KEYWORD]
        first = len(places) - len(f.__defaults__ or ())
        for name, p in inspect.signature(f).parameters.items():
            if name not in given.arguments and p.default is not p.empty:
                place = places.index(name) - first if name in places else name
                given.arguments[name] = self.outside(("default", source, place))
        number = next(self.calls)
        names = {}
        for name, x in given.arguments.items():
            parameter = inspect.signature(f).parameters[name]
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise self.fail(f"{f.__name__} takes any number of arguments")
            names[name] = self.list_of_turns(x) if isinstance(x, Turns) else x
        if f in self.recursive:
            return self.called(self.recursive[f], Static(f, source), tree, names)
        prefix, end = f"{f.__name__}.{number}.".replace("<", "").replace(">", ""), f"return.{number}"
        return self.run(tree, Scope({}, Static(f, source), prefix, end), names)

    def run(self, tree: ast.FunctionDef | ast.Lambda, scope: Scope, names: dict[str, Any]) -> Any:
        """What a function returns, whose statements stand where it is called."""
        prefix, end = scope.prefix, scope.ends
        scope.assigned, scope.rebound = stored_names(tree), bound_by_expressions(tree)
        line, nested, self.nested = self.line, self.nested, 0
        outer: list = []
        with self.into(outer):
            self.scopes.append(scope)
            for name, x in names.items():
                # a number that is the same in every call stays a constant, by which branches are decided
                if name not in scope.assigned and (isinstance(x, Growing) or (isinstance(x, E) and x.op == "const")):
                    scope.names[name] = x
                    scope.local.add(name)
                    continue
                self.bind(ast.Name(name, ast.Store()), x)
            self.body(tree.body)
            self.scopes.pop()
        self.nested, self.line = nested, line
        self.emit(Block(end, outer))
        if scope.result is None:
            return Static(None)
        if scope.result == "scalar":
            if not leaves(outer):
                raise self.fail(f"{tree.name} may return None")
            self.bound.add(prefix + "<return>")
            return self.variable(prefix + "<return>")
        if isinstance(scope.result, int):
            if not leaves(outer):
                raise self.fail(f"{tree.name} may return None")
            return Tup([self.variable(f"{prefix}<return>{k}") for k in range(scope.result)])
        return scope.result[0]

    def called(self, what: Recursive, f: Static, tree: ast.FunctionDef | ast.Lambda, names: dict[str, Any]) -> Any:
        """What a function returns that calls itself. Numbers are given to it, and views of arrays; what is the same in
        every call is known where it is defined."""
        name = f.value.__name__
        if self.by_value or self.notes is not None or self.found.stored or self.handlers:
            raise self.fail(f"{name} calls itself")
        given: list[str] = []
        entered: dict[str, Any] = {}
        for parameter, x in names.items():
            variable = f"{what.name}.{parameter}.given"
            x = self.materialised(x) if isinstance(x, Lazy) else x
            if isinstance(x, E):
                self.assign(variable, x)
            elif isinstance(x, Array):
                if variable not in self.moving:
                    if what.fixed.setdefault(parameter, x.name) == x.name and self.is_input(x):
                        entered[parameter] = x
                        continue
                    self.moving[variable] = Moving()
                    raise Anew
                given.append(self.rebind(variable, x).name)
            elif isinstance(x, Static):
                if what.fixed.setdefault(parameter, x.value) is not x.value:
                    raise self.fail(f"{name} calls itself with another {parameter}")
                entered[parameter] = x
            else:
                raise self.fail(f"{name} calls itself with {parameter}, which is no number and no array")
        numbers = [f"{what.name}.{p}.given" for p, x in names.items() if isinstance(x, E)]
        if what.name not in self.defined:
            self.defined[what.name] = None  # calls from here on are its own
            before = self.scopes, self.bound, self.line, self.nested
            try:
                self.defined[what.name] = self.define(what, f, tree, names, entered)
            finally:
                self.scopes, self.bound, self.line, self.nested = before
                if self.defined[what.name] is None:
                    del self.defined[what.name]
        elif any(v not in self.known for v in numbers):
            raise self.fail(f"{name} calls itself with numbers and arrays in one place")
        self.emit(Call(what.name))
        self.program.elements = True
        if what.result is None:
            self.moved = True
            if not self.rounds and not what.guessed:
                what.guessed = self.defined[what.name] is not None  # no call returns before it calls
                if what.guessed:
                    raise Anew
                raise Unknown("what a call returns that is not known yet", self.line)
            return const(0)
        if what.result == "none":
            return Static(None)
        values = [
            self.now(self.stands_for(v)) if v in self.moving else self.frozen(self.variable(v))
            for v in returned_names(f"{what.name}.", what.result)
        ]
        return Tup(values) if isinstance(what.result, tuple) else values[0]

    def is_input(self, array: Array) -> bool:
        return array.name == array.root and any(i.name == array.name for i in self.program.inputs)

    def tagged(self, variables: list[str]) -> list[str]:
        """Variables, and those that say which kind they have."""
        return [w for v in variables for w in (v, f"{v}#") if w == v or len(self.info(v).kinds) > 1]

    def define(
        self, what: Recursive, f: Static, tree: ast.FunctionDef | ast.Lambda, names: dict, entered: dict
    ) -> Define:
        """The function, once."""
        prefix, end = f"{what.name}.", f"return.{what.name}"
        scope = Scope({}, f, prefix, end, inlined=False)
        scope.assigned, scope.rebound = stored_names(tree), bound_by_expressions(tree)
        numbers = [n for n, x in names.items() if isinstance(x, E)]
        arrays = [n for n, x in names.items() if n not in numbers and n not in entered]
        self.scopes, self.bound, self.nested = [Scope({}, None, "", ""), scope], set(), 0
        finished = False
        with self.into([]) as body:
            for n in numbers:
                self.name(n, self.variable(f"{prefix}{n}.given"))
            for n in arrays:
                self.name(n, self.stands_for(f"{prefix}{n}.given"))
            for n, x in entered.items():
                scope.names[n] = x
                scope.local.add(n)
            with contextlib.suppress(Unknown):
                self.body(tree.body)
                finished = True
        result = scope.result or ("none" if finished else None)
        if finished and result != "none" and not leaves(body):
            raise self.fail(f"{f.value.__name__} may return None")
        if None not in (what.result, result) and what.result != result:
            raise self.fail(f"{f.value.__name__} returns things of several types")
        self.moved |= what.result != result
        before, what.result = what.result, result
        if what.guessed and before is None and result is not None:  # what was made of the guess is found again
            known = {v: info for v, info in self.known.items() if v in returned_names(prefix, result)}
            self.known.clear()
            self.known.update(known)
            raise Anew
        given = [
            *self.tagged([f"{prefix}{n}.given" for n in numbers]),
            *[self.stands_for(f"{prefix}{n}.given").name for n in arrays],
        ]
        names_out = returned_names(prefix, what.result)
        returned = self.tagged([v for v in names_out if v not in self.moving])
        returned += [self.stands_for(v).name for v in names_out if v in self.moving]
        body = [Block(end, body)]
        return Define(what.name, tuple(given), tuple(returned), body)

    def call_math(self, name: str, args: list, kwargs: dict, f: Any) -> Any:
        if kwargs or not args:
            raise self.fail(f"math.{name}")
        if name == "gcd":
            return functools.reduce(self.common_divisor, map(self.number, args), const(0))
        x = self.number(args[0])
        if name == "trunc" and not x.kind.python and x.kind.code != "f8":
            raise self.fail(f"math.trunc of {x.kind}, which Python refuses")
        x = self.temporary(self.cast(x, FLOAT))
        x = E("copy", (x,), FLOAT) if x.kind != FLOAT else x
        if name in ("floor", "ceil", "trunc"):
            out = self.temporary(E(name, (x,), FLOAT))
            self.check(E("within", (out, const(-(2.0**62)), const(2.0**62)), BOOL))
            return E("cast", (out,), INT, -(2**62), 2**62)
        if name in ("isnan", "isinf", "isfinite"):
            return self.truth(self.call_np(name, args, kwargs, getattr(onp, name)))
        if name in ("degrees", "radians") and len(args) == 1:
            out = self.temporary(E("mul", (x, const(180 / math.pi if name == "degrees" else math.pi / 180)), FLOAT))
        elif name in MATH_OF_TWO and len(args) == 2:
            y = self.temporary(self.cast(self.number(args[1]), FLOAT))
            y = E("copy", (y,), FLOAT) if y.kind != FLOAT else y
            if name == "log":
                x, y = (self.temporary(E("log", (v,), FLOAT)) for v in (x, y))
                self.check(E("ne", (y, const(0.0)), BOOL, 0, 1))
            out = self.temporary(E("div" if name == "log" else name, (x, y), FLOAT))
        elif (name in UNARY or name in MATH) and len(args) == 1:
            out = self.temporary(E(MATH.get(name, name), (x,), FLOAT))
        else:
            raise self.fail(f"math.{name} of {len(args)} arguments")
        self.check(E("finite", (out,), BOOL))  # else Python raises, or x was none already
        return out

    def common_divisor(self, a: E, b: E) -> E:
        """The greatest common divisor of two integers (Euclid)."""
        if not (is_whole(a) and is_whole(b)):
            raise self.fail("math.gcd of what are no integers")
        a, b = (self.unary("abs", self.as_python(x)) for x in (a, b))
        if a.op == "const" and a.args[0] == 0:
            return self.frozen(b)
        first, second, rest = (self.fresh("divisor") for _ in range(3))
        for name, x in ((first, a), (second, b), (rest, const(0))):
            self.program.kinds[name] = INT
            self.emit(Assign(name, x))
        x, y, r = (E("var", (name,), INT, 0, MOST) for name in (first, second, rest))
        turn = [Assign(rest, E("mod", (x, y), INT, 0, MOST)), Assign(first, E("copy", (y,), INT, 0, MOST))]
        turn.append(Assign(second, E("copy", (r,), INT, 0, MOST)))
        self.program.elements = True
        self.emit(While([], E("ne", (y, const(0)), BOOL, 0, 1), turn))
        return self.frozen(x)

    def linalg_norm(self, args: list, kwargs: dict) -> E:
        (x,) = self.arguments("x", args, kwargs)
        lazy = self.lazy(x)
        if lazy.kind.letter != "f":
            raise self.fail("np.linalg.norm of what are no floats")
        squares = self.elementwise(onp.multiply, lambda v: self.binary("mul", v[0], v[1]), [self.evaluated(x)] * 2)
        total = self.temporary(self.reduce("sum", squares))
        root, zero = E("sqrt", (total,), lazy.kind), const(0.0, lazy.kind)
        # of zeros it has the slope zero
        return self.temporary(E("select", (E("eq", (total, zero), BOOL, 0, 1), zero, root), lazy.kind))

    def matrix_function(self, name: str, a: Array, b: Array) -> Any:
        """One of matrices.py of these arrays, which it may write to: a matrix, and one with as many rows."""
        kind, self.program.vectors = a.kind, True
        self.alike(a.dims[0], a.dims[1])
        self.alike(a.dims[0], b.dims[0])
        self.check(E("le", (a.dims[0], const(matrices.MOST)), BOOL, 0, 1))
        return self.written_out(name, [a, b, const(float(onp.finfo(kind.dtype).eps))])

    def written_out(self, name: str, args: list) -> Any:
        """What a function of matrices.py returns."""
        called = Static(getattr(matrices, name), ("matrices", None, name))
        self.look(called.source)
        try:
            with self.saying(None):
                return self.inlined(called, args, {})
        except NotUnderstood as no:
            raise no if isinstance(no, Unknown) else self.fail(no.why) from None

    def of_floats(self, *arrays: Any) -> list[Array]:
        """New arrays with what these hold, of the type in which LAPACK would compute."""
        lazy = [self.lazy(x) for x in arrays]
        if lazy[0].ndim != 2 or any(x.ndim not in (1, 2) for x in lazy):
            raise self.fail("np.linalg of what is no matrix")
        floats = [x.kind.dtype if x.kind.letter in "fc" else onp.dtype(float) for x in lazy]
        kind = Kind(onp.result_type(*floats).str[1:])
        return [self.of_kind(x, kind) for x in lazy]

    def linalg_solve(self, args: list, kwargs: dict) -> Array:
        a, b = self.of_floats(*[self.an_array(x) for x in self.arguments("a b", args, kwargs)])
        if b.ndim == 2:
            self.matrix_function("solve", a, b)
            return b
        column = self.new([b.dims[0], const(1)], b.kind, False)
        shown = self.as_array(self.index(column, [EVERY, const(0)]))
        self.fill(shown, b)
        self.matrix_function("solve", a, column)
        return shown

    def linalg_inv(self, args: list, kwargs: dict) -> Array:
        (a,) = self.of_floats(self.an_array(*self.arguments("a", args, kwargs)))
        out = self.new(a.dims, a.kind, True)
        one = const(a.kind.dtype.type(1).item(), a.kind)
        self.over([a.dims[0]], lambda index: self.emit(Store(out.name, (index[0], index[0]), one)))
        self.matrix_function("solve", a, out)
        return out

    def linalg_det(self, args: list, kwargs: dict) -> Any:
        (a,) = self.of_floats(self.an_array(*self.arguments("a", args, kwargs)))
        found = self.matrix_function("det", a, self.new([a.dims[0], const(0)], a.kind, True))
        return self.as_numpy(found, a.kind)

    def linalg_cholesky(self, args: list, kwargs: dict) -> Array:
        (a,) = self.of_floats(self.an_array(*self.arguments("a", args, kwargs)))
        if a.kind.letter != "f":
            raise self.fail("np.linalg.cholesky of complex numbers")
        out = self.new(a.dims, a.kind, True)
        self.matrix_function("cholesky", a, out)
        return out

    def np_searchsorted(self, args: list, kwargs: dict) -> E:
        a, v, side = self.arguments("a v side", args, kwargs)
        a, v = self.an_array(a), self.frozen(self.number(v))
        side = "left" if side is None else side.value if isinstance(side, Static) else None
        if a.ndim != 1 or a.kind.letter == "c" or v.kind.letter == "c" or side not in ("left", "right"):
            raise self.fail("np.searchsorted of these")
        return self.as_numpy(self.written_out(side, [a, v]), I8)

    def np_interp(self, args: list, kwargs: dict) -> E:
        v, xp, fp = self.arguments("x xp fp", args, kwargs)
        kind, xp, fp = Kind("f8"), self.an_array(xp), self.an_array(fp)
        v = self.number(v)
        if xp.ndim != 1 or fp.ndim != 1 or xp.kind.code != "f8" or fp.kind.code != "f8" or v.kind.letter not in "iuf":
            raise self.fail("np.interp of these")
        self.alike(xp.dims[0], fp.dims[0])
        self.check(E("gt", (self.temporary(xp.dims[0]), const(0)), BOOL, 0, 1))
        return self.as_numpy(self.written_out("interp", [self.frozen(self.cast(v, kind)), xp, fp]), kind)

    def np_polyval(self, args: list, kwargs: dict) -> E:
        p, x = self.arguments("p x", args, kwargs)
        kind, p, x = Kind("f8"), self.an_array(p), self.number(x)
        if p.ndim != 1 or p.kind.code != "f8" or x.kind.code not in ("f8", "i8"):
            raise self.fail("np.polyval of these")
        self.check(E("gt", (self.temporary(p.dims[0]), const(0)), BOOL, 0, 1))
        return self.as_numpy(self.written_out("polyval", [p, self.frozen(self.cast(x, kind))]), kind)

    def call_linalg(self, name: str, args: list, kwargs: dict, f: Any) -> Any:
        return getattr(self, f"linalg_{name}")(args, kwargs)

    def call_builtins(self, name: str, args: list, kwargs: dict, f: Any) -> Any:
        if kwargs:
            if name == "enumerate" and set(kwargs) == {"start"}:
                args = [*args, kwargs["start"]]
            else:
                raise self.fail(f"{name} with keywords")
        if name == "range":
            whole = [self.number(a) for a in args]
            if not whole or not all(map(is_whole, whole)):
                raise self.fail("a range of what are no integers")
            whole = [self.frozen(self.as_python(a)) for a in whole]
            start, stop, step = {1: [const(0), *whole, const(1)], 2: [*whole, const(1)], 3: whole}[len(whole)]
            if step.op != "const":
                if not (step.low > 0 or step.high < 0):
                    self.check(E("gt", (step, const(0)), BOOL, 0, 1))
                    step = E("copy", (step,), INT, 1, step.high)
                    step = self.temporary(step)
            elif step.args[0] == 0:
                raise self.fail("a step of zero")
            # the number after the last turn has to fit, too
            for e in (start, stop):
                if e.low < -(2**62) or e.high > 2**62:
                    self.check(E("within", (e, const(-(2**62)), const(2**62)), BOOL))
            start, stop = (
                E("copy", (e,), INT, max(e.low, -(2**62)), min(e.high, 2**62)) if e.op != "const" else e
                for e in (start, stop)
            )
            return Range(self.temporary(start), self.temporary(stop), step)
        if name == "len":
            if isinstance(args[0], Growing):
                return self.frozen(self.length_of(args[0]))
            if isinstance(args[0], Tup):
                return const(len(args[0].items))
            if isinstance(args[0], (Array, Lazy)) and args[0].ndim:
                return self.frozen(args[0].dims[0])
        args = [self.now(a) for a in args] if name in ("enumerate", "zip") else args
        if name == "enumerate":
            start = self.number(args[1]) if len(args) > 1 else const(0)
            if isinstance(args[0], Tup):
                return Tup([Tup([self.binary("add", const(k), start), x]) for k, x in enumerate(args[0].items)])
            return Zip([args[0]], start)
        if name == "zip":
            if args and all(isinstance(a, Tup) for a in args):
                return Tup([Tup([*items]) for items in zip(*(a.items for a in args))])
            return Zip(args)
        if name == "reversed" and isinstance(args[0], Range):
            r = args[0]
            if r.step.op == "const":
                by, count = r.step, self.turns(r)
                back = self.temporary(self.binary("mul", self.binary("sub", count, const(1)), by))
                last = self.temporary(self.binary("add", r.start, back))
                return Range(last, self.temporary(self.binary("sub", r.start, by)), const(-by.args[0]))
            raise self.fail("reversed")
        if name == "reversed" and isinstance(args[0], Tup):
            return Tup(args[0].items[::-1])
        if name == "reversed" and isinstance(args[0], (Array, Lazy)) and args[0].ndim:
            return self.np_flip([args[0], const(0)], {})
        if name == "abs":
            return self.apply("abs", args)
        if name in ("min", "max"):
            items = args[0].items if len(args) == 1 and isinstance(args[0], Tup) else args
            if len(args) == 1 and isinstance(args[0], (Turns, Growing)):
                return self.consumed(name, args[0])
            if len(args) == 1 and isinstance(args[0], (Array, Lazy)):
                return self.one_by_one(name, args[0])
            if len(items) > 1 and all(isinstance(x, Tup) for x in items):
                return self.first_of_tuples("lt" if name == "min" else "gt", items)
            if not items:  # of a list that is not known yet, or Python raises
                raise Unread(f"{name} of nothing", self.line)
            best = self.as_it_is(items[0])
            for x in items[1:]:
                x, best = self.frozen(self.as_it_is(x)), self.frozen(best)
                better = self.truth(self.compare("lt" if name == "min" else "gt", x, best))
                best = self.choose(better, lambda x=x: x, lambda best=best: best)
            return best
        if name == "float" and len(args) == 1 and isinstance(args[0], Static) and type(args[0].value) is str:
            try:
                return const(float(args[0].value))
            except ValueError:
                raise self.fail("float of a text") from None
        if name in ("int", "float", "bool", "complex") and len(args) == 1:
            return self.converted(name, self.number(args[0]))
        if name == "complex" and len(args) == 2:
            a, b = (self.cast(self.number(x), Kind("f8")) for x in args)
            if any(x.kind.letter == "c" for x in args):
                raise self.fail("complex of complex numbers")
            return E("complex", (a, b), Kind("c16", True))
        if name == "slice":
            ends = [None if isinstance(a, Static) and a.value is None else self.number(a) for a in args]
            ends = [None, *ends, None] if len(ends) == 1 else [*ends, None][:3]
            return Cut(tuple(None if e is None else self.frozen(self.as_python(e)) for e in ends))
        if name == "divmod":
            a, b = map(self.number, args)
            return Tup([self.frozen(self.binary("floordiv", a, b)), self.frozen(self.binary("mod", a, b))])
        if name == "pow" and len(args) == 2:
            return self.apply("pow", args)
        if len(args) == 1 and isinstance(args[0], (Turns, Growing)) and name in ("sum", "any", "all"):
            return self.consumed(name, args[0])
        if name in ("tuple", "list") and len(args) == 1 and isinstance(args[0], Tup):
            return Tup(args[0].items, name == "list")
        if name == "round" and 1 <= len(args) <= 2:
            return self.rounded(*args)
        if name in ("any", "all") and len(args) == 1 and isinstance(args[0], Tup):
            found = const(name == "all")
            for x in args[0].items:
                found = self.both("and" if name == "all" else "or", found, lambda x=x: self.truth(self.number(x)))
            return found
        if name == "sum" and len(args) == 1 and isinstance(args[0], Tup):
            total: Any = const(0)
            for x in args[0].items:
                total = self.binary("add", total, self.number(x))
            return total
        if name == "sum" and len(args) == 1 and isinstance(args[0], (Array, Lazy)):
            return self.one_by_one(name, args[0])
        raise self.fail(f"a call of {name}")

    def one_by_one(self, name: str, x: Any) -> E:
        """Python's sum, min or max of an array: of the NumPy numbers that it hands out, in their order."""
        x = self.an_array(x)
        if x.ndim != 1:
            raise self.fail(f"{name} of an array of several axes")
        self.check(E("gt", (x.dims[0], const(0)), BOOL, 0, 1))  # Python's own 0, or an error
        first = self.element(x, [const(0)])
        first = self.binary("add", const(0), first) if name == "sum" else first
        out, at = self.fresh("acc"), self.fresh("k")
        self.program.kinds |= {out: Kind(first.kind.code), at: INT}
        self.emit(Assign(out, self.temporary(first)))
        found = E("var", (out,), Kind(first.kind.code))
        with self.into([]) as body:
            y = self.element(x, [E("var", (at,), INT, 0, LONGEST)])
            if name == "sum":
                more = self.binary("add", found, y)
                if more.kind != found.kind:
                    raise self.fail(f"sum of an array of {x.kind}")
                self.emit(Assign(out, more))
            else:
                y = self.temporary(y)
                better = self.truth(self.compare("lt" if name == "min" else "gt", y, found))
                self.emit(If(better, [Assign(out, y)], []))
        self.emit(For(at, const(1), x.dims[0], 1, body))
        return self.temporary(found)

    def first_of_tuples(self, op: str, given: list[Tup]) -> Tup:
        """min or max of tuples of numbers."""
        best = given[0]
        for x in given[1:]:
            better = self.frozen(self.truth(self.in_order(op, x, best)))
            pairs = [(self.frozen(a), self.frozen(b)) for a, b in zip(x.items, best.items)]
            chosen = [self.frozen(self.choose(better, lambda a=a: a, lambda b=b: b)) for a, b in pairs]
            best = Tup(chosen, best.listed)
        return best

    def rounded(self, x: Any, digits: Any = None) -> E:
        """round(x): to the nearest integer, the even one of two."""
        x = self.temporary(self.number(x))
        if digits is not None or x.kind.letter != "f" or x.kind.code != "f8" or len(x.kinds) > 1:
            if x.kind.python and digits is None and is_whole(x):
                return x
            raise self.fail("round of this")
        below = self.temporary(E("floor", (x,), x.kind))
        off = self.temporary(E("sub", (x, below), x.kind))
        half = self.temporary(E("mul", (below, const(0.5, x.kind)), x.kind))
        odd = E("ne", (self.temporary(E("floor", (half,), x.kind)), half), BOOL, 0, 1)
        tie = E("and", (E("eq", (off, const(0.5, x.kind)), BOOL, 0, 1), odd), BOOL, 0, 1)
        up = E("or", (E("gt", (off, const(0.5, x.kind)), BOOL, 0, 1), tie), BOOL, 0, 1)
        return self.converted("int", E("select", (up, E("add", (below, const(1.0, x.kind)), x.kind), below), x.kind))

    def converted(self, name: str, e: E) -> E:
        if name == "bool":
            return self.truth(e)
        if e.kind.letter == "c":
            if name == "complex":
                return self.as_python(e)
            raise self.fail(f"{name} of a complex number")
        if name == "complex":
            return E("copy", (self.cast(e, Kind("c16")),), Kind("c16", True))
        if name == "float":
            return self.temporary(E("copy", (self.cast(e, Kind("f8", True)),), FLOAT))
        if e.kind.letter == "f":
            e = self.temporary(e)
            bound = 2.0**62
            self.check(E("within", (e, const(-bound, e.kind), const(bound, e.kind)), BOOL))
            return self.temporary(E("cast", (e,), INT, -(2**62), 2**62))
        return self.cast(e, INT) if e.kind.letter == "b" else self.as_python(e)

    def unary_function(self, name: str, x: Any) -> Any:
        function = getattr(onp, name)

        def compute(v: list[E]) -> E:
            kind = result_kind(function, (v[0].kind,))
            if kind.letter == "c" and name not in ("conj", "exp"):
                raise self.fail(f"np.{name} of a complex number")
            if len(v[0].kinds) > 1:
                kinds = {result_kind(function, (k,)) for k in v[0].kinds}
                if len(kinds) > 1:
                    raise self.fail(f"np.{name} of a number that is of several types")
            if kind.letter in "iub":
                return self.as_numpy(v[0], kind)
            return self.temporary(E("abs" if name == "fabs" else name, (self.cast(v[0], kind),), kind))

        return self.elementwise(function, compute, [x])

    def as_numpy(self, e: E, kind: Kind) -> E:
        return self.cast(e, kind) if e.kind.code != kind.code else E("copy", (e,), kind, e.low, e.high)

    def call_np(self, name: str, args: list, kwargs: dict, f: Any) -> Any:
        if isinstance(f, type) and issubclass(f, onp.generic) and len(args) == 1 and not kwargs:
            kind = kind_of(f(0))
            e = self.number(args[0])
            if kind is None or (e.kind.letter == "c") > (kind.letter == "c") or len(e.kinds) > 1:
                raise self.fail(f"np.{name}")
            if (e.kind.letter == "f" and kind.letter in "iu") or (e.kind.python and kind.letter in "iu"):
                e = self.stored(e, kind)
            return self.as_numpy(self.truth(e) if kind.letter == "b" else e, kind)
        if name in REDUCTIONS or name in ("amin", "amax"):
            return self.reduced({"amin": "min", "amax": "max"}.get(name, name), args, kwargs)
        if name in ("dot", "matmul") and len(args) == 2 and not kwargs:
            return self.dot(*args)
        if name == "ndarray" and len(args) <= 2 and kwargs.keys() <= {"shape", "dtype"}:
            name = "empty"
        if name in ("zeros", "empty", "ones", "full") or name.endswith("_like"):
            return self.made(name, args, kwargs)
        build = getattr(self, f"np_{name}", None)
        if build is not None and not (name == "asarray" and isinstance(args[0], (Array, Lazy))):
            return build(args, kwargs)
        if name == "copy" and len(args) == 1 and not kwargs and isinstance(args[0], (Array, Lazy)):
            return self.materialised(self.lazy(args[0]))
        if kwargs:
            raise self.fail(f"np.{name} with keywords")
        if any(not isinstance(a, (E, Array, Lazy)) for a in args):
            raise self.fail(f"np.{name} of an object")
        if isinstance(ufunc := getattr(onp, name, None), onp.ufunc) and len(args) != ufunc.nin:
            raise self.fail(f"np.{name} with an output")
        if name in NUMPYS:
            op = NUMPYS[name]
            args = self.of_numpy(args)
            if op == "pow" and POWERS_ARE_ROOTS and isinstance(args[1], E):
                return self.elementwise(f, self.power_or_root, args)
            return self.elementwise(
                f, lambda v: self.unary(op, v[0]) if len(v) == 1 else self.binary(op, v[0], v[1]), args
            )
        if name in ("minimum", "maximum", "fmin", "fmax"):
            return self.elementwise(getattr(onp, name), lambda v: self.extremum(name, v[0], v[1]), args)
        if name in ("isnan", "isinf", "isfinite"):

            def test(v: list[E]) -> E:
                x = self.cast(v[0], Kind("f8")) if v[0].kind.letter != "f" else v[0]
                return E(name if name != "isfinite" else "finite", (self.temporary(x),), Kind("b1"), 0, 1)

            return self.elementwise(getattr(onp, name), test, args)
        if name == "where" and len(args) == 1:
            return self.np_nonzero(args, kwargs)
        if name == "clip" and len(args) == 3 and not any(isinstance(a, Static) for a in args):
            lower = self.elementwise(onp.maximum, lambda v: self.extremum("maximum", v[0], v[1], True), args[:2])
            return self.elementwise(onp.minimum, lambda v: self.extremum("minimum", v[0], v[1], True), [lower, args[2]])
        if name == "where" and len(args) == 3:

            def pick(v: list[E]) -> E:
                kind = result_kind(operator.add, (v[1].kind, v[2].kind))
                a, b = self.cast(v[1], kind), self.cast(v[2], kind)
                return self.temporary(
                    E("select", (self.truth(v[0]), a, b), Kind(kind.code), min(a.low, b.low), max(a.high, b.high))
                )

            if all(isinstance(a, E) for a in args):
                if any(len(a.kinds) > 1 for a in args[1:]):
                    raise self.fail("np.where of a number that is of several types")
                kind = result_kind(onp.where, tuple(a.kind for a in args))
                chosen = self.frozen(self.as_numpy(pick(args), kind))
                return Lazy([], kind, lambda index: chosen, [])  # an array without axes
            return self.elementwise(onp.where, pick, args)
        if name == "square":
            return self.elementwise(
                onp.square,
                lambda v: self.binary(
                    "mul", x := self.temporary(self.cast(v[0], result_kind(onp.square, (v[0].kind,)))), x
                ),
                self.of_numpy(args),
            )
        if name in ("logical_and", "logical_or", "logical_xor"):
            op = name[8:]
            return self.elementwise(
                getattr(onp, name), lambda v: E(op, (self.truth(v[0]), self.truth(v[1])), Kind("b1"), 0, 1), args
            )
        if name == "logical_not":
            return self.elementwise(onp.logical_not, lambda v: E("not", (self.truth(v[0]),), Kind("b1"), 0, 1), args)
        if name == "sign":

            def sign(v: list[E]) -> E:
                x = self.temporary(v[0])
                zero = const(0 if x.kind.letter in "iu" else 0.0, x.kind)
                one = const(1 if x.kind.letter in "iu" else 1.0, x.kind)
                minus = const(-1 if x.kind.letter in "iu" else -1.0, x.kind)
                if x.kind.letter not in "if" or len({k.code for k in x.kinds}) > 1:
                    raise self.fail("np.sign of such a number")
                neither = x if x.kind.letter in "iu" else E("sub", (x, x), x.kind)  # zero, or NaN, without a slope
                out = E(
                    "select",
                    (
                        E("lt", (x, zero), BOOL, 0, 1),
                        minus,
                        E("select", (E("gt", (x, zero), BOOL, 0, 1), one, neither), x.kind),
                    ),
                    x.kind,
                )
                return self.as_numpy(out, Kind(x.kind.code))

            return self.elementwise(onp.sign, sign, args)
        if name == "heaviside":

            def step(v: list[E]) -> E:
                kind = self.together_as("np.heaviside", onp.heaviside, v[0], v[1])
                x, half = self.temporary(self.cast(v[0], kind)), self.temporary(self.cast(v[1], kind))
                test = lambda op, y: E(op, (x, y), BOOL, 0, 1)
                zero, one = const(0.0, kind), const(1.0, kind)
                side = E("select", (test("lt", zero), zero, one), kind)
                out = E("select", (test("eq", zero), half, side), kind)
                return self.temporary(E("select", (test("ne", x), const(math.nan, kind), out), kind))

            return self.elementwise(onp.heaviside, step, args)
        if name in ("real", "imag") and len(args) == 1 and isinstance(args[0], E) and args[0].kind.letter == "c":
            return E(name, (self.temporary(args[0]),), Kind("f8" if args[0].kind.code == "c16" else "f4"))
        if name in (*UNARY, "conj", "conjugate", "fabs"):
            return self.unary_function("conj" if name.startswith("conj") else name, args[0])
        if name == "reciprocal":

            def inverse(v: list[E]) -> E:
                if v[0].kind.letter != "f" or len(v[0].kinds) > 1:
                    raise self.fail("np.reciprocal of what is no float")
                return self.binary("div", const(1.0, Kind(v[0].kind.code)), v[0])

            return self.elementwise(onp.reciprocal, inverse, self.of_numpy(args))
        if name in ANGLES:

            def turned(v: list[E]) -> E:
                kind = result_kind(getattr(onp, name), (v[0].kind,))
                if kind.letter != "f" or len(v[0].kinds) > 1:
                    raise self.fail(f"np.{name} of {v[0].kind}")
                whole, pi = kind.dtype.type(180), kind.dtype.type(onp.pi)
                by = whole / pi if ANGLES[name] else pi / whole
                return self.binary("mul", self.cast(v[0], kind), const(float(by), kind))

            return self.elementwise(getattr(onp, name), turned, self.of_numpy(args))
        if name in BINARY:

            def two(v: list[E]) -> E:
                kind = result_kind(getattr(onp, name), (v[0].kind, v[1].kind))
                several = itertools.product(v[0].kinds, v[1].kinds)
                if kind.letter != "f" or {result_kind(getattr(onp, name), kinds) for kinds in several} != {kind}:
                    raise self.fail(f"np.{name} of {kind}, or of numbers that are of several types")
                return self.temporary(E(BINARY[name], (self.cast(v[0], kind), self.cast(v[1], kind)), kind))

            return self.elementwise(getattr(onp, name), two, args)
        raise self.fail(f"a call of np.{name}")

    def power_or_root(self, v: list[E]) -> E:
        """np.power of one exponent, of which 0.5 is a root."""
        x, y = self.temporary(v[0]), self.temporary(v[1])
        found, known = self.binary("pow", x, y), constant(y)
        if found.kind.letter != "f" or y.kind.letter != "f" or known not in (None, 0.5):
            return found
        root = self.temporary(E("sqrt", (self.cast(x, found.kind),), found.kind))
        if known is not None:
            return root
        return self.temporary(E("select", (E("eq", (y, const(0.5, y.kind)), BOOL, 0, 1), root, found), found.kind))

    def reduced(self, name: str, args: list, kwargs: dict) -> Any:
        """np.sum and its like with its arguments."""
        x, axis, keep = self.arguments("a axis keepdims", args, kwargs)
        if isinstance(x, E) or (isinstance(x, (Array, Lazy)) and not x.ndim):
            raise self.fail(f"np.{name} of a number")
        x = self.an_array(x) if isinstance(x, (Tup, Growing)) else x
        if not isinstance(x, (Array, Lazy)):
            raise self.fail(f"np.{name} of an object")
        axes = axis.items if isinstance(axis, Tup) else None if axis is None else [axis]
        which = sorted(range(x.ndim) if axes is None else {self.whole_number(a) % x.ndim for a in axes})
        if name.startswith("arg") and len(which) > 1:
            x, which = self.np_ravel([x], {}), [0]
        out = self.reduce(name, x if isinstance(x, Masked) else self.lazy(x), which)
        if name == "any" and isinstance(x, Array) and isinstance(out, E):
            self.any_of = repr(without_copies(out)), self.state_of(x)
        if keep is None or repr(keep) == "False":
            return out
        if repr(keep) != "True":
            raise self.fail("keepdims that is not in the source")
        lazy = self.lazy(out)
        dims = [const(1) if k in which else d for k, d in enumerate(self.lazy(x).dims)]
        kept = lambda index: lazy.at([i for k, i in enumerate(index) if k not in which])
        return Lazy(dims, Kind(lazy.kind.code), kept, lazy.reads)

    def of_numpy(self, args: list) -> list:
        """Numbers as NumPy's functions take them: those of Python alone are NumPy's; beside NumPy's they decide no
        dtype."""
        alone = all(isinstance(a, E) and any(k.python for k in a.kinds) for a in args)
        return [self.scalar_of_numpy(a) for a in args] if alone else args

    def scalar_of_numpy(self, a: Any) -> Any:
        """A number as NumPy's functions take it: their result is NumPy's."""
        if isinstance(a, E) and any(k.python for k in a.kinds):
            if len({k.code for k in a.kinds}) > 1:
                raise self.fail("a number that is of several types in a call of NumPy's")
            return (
                E("copy", (a,), Kind(a.kind.code), a.low, a.high)
                if a.op != "const"
                else E("const", a.args, Kind(a.kind.code), a.low, a.high)
            )
        return a

    def extremum(self, name: str, a: E, b: E, clips: bool = False) -> E:
        found = {result_kind(getattr(onp, name), kinds) for kinds in itertools.product(a.kinds, b.kinds)}
        if len(found) > 1:
            raise self.fail(f"np.{name} of a number that is of several types")
        (kind,) = found
        if kind.letter not in "iufb":
            raise self.fail(f"np.{name} of {kind}")
        for x in (a, b):
            self.in_range(x, kind)
        a, b = self.temporary(self.cast(a, kind)), self.temporary(self.cast(b, kind))
        first = E("lt" if name.endswith(("min", "imum")) and "min" in name else "gt", (a, b), BOOL, 0, 1)
        if kind.letter == "f":
            nan = E("ne", (a, a), BOOL, 0, 1) if name in ("minimum", "maximum") else E("ne", (b, b), BOOL, 0, 1)
            first = E("or", (nan, first) if clips else (first, nan), BOOL, 0, 1)  # derivatives tell them apart
        low, high = (min(a.low, b.low), max(a.high, b.high)) if kind.letter in "iu" else (None, None)
        return self.temporary(E("select", (first, a, b), Kind(kind.code), low, high))


def simple_power(a: Array | Lazy, b: Any) -> str:
    """The function that NumPy takes for a ** b of an array: its root of -inf is NaN, its power inf. "" for np.power."""
    simple = a.ndim and a.kind.letter == "f" and isinstance(b, E) and b.op == "const" and b.kind.python
    return {0.5: "sqrt", -1: "reciprocal"}.get(b.args[0], "") if simple else ""


def type_of(x: Any) -> type | None:
    """tuple, list or range, of what stands for one; None of anything else."""
    if isinstance(x, Parts):
        return x.type
    return (list if x.listed else tuple) if isinstance(x, Tup) else range if type(x) is Range and not x.asked else None


def remade(kind: type, items: list) -> Tup | Range:
    """What stands for a tuple, a list or a range of these items."""
    return Range(*items) if kind is range else Tup(items, kind is list)


class Method:
    """A method of an array or a number, before it is called."""

    def __init__(self, base: Any, name: str) -> None:
        self.base, self.name = base, name


def flat(tree: Any) -> list:
    """The operands in a tree of lists [operator, tree, tree]."""
    return [x for part in tree[1:] for x in flat(part)] if type(tree) is list else [tree]


def leaves(body: list) -> bool:
    """Whether nothing that is emitted after these statements can run."""
    if not body:
        return False
    last = body[-1]
    if type(last) is Leave:
        return True
    if type(last) is If:
        return leaves(last.then) and leaves(last.orelse)
    if type(last) is Block:
        return leaves(last.body) and not any(type(s) is Leave and s.label == last.label for s in _all(last.body))
    return False


def _all(body: list) -> Any:
    from .ir import statements

    return statements(body)


def one_item(cut: ast.Slice) -> bool:
    """Whether a slice is x : x + 1."""
    a, b = cut.lower, cut.upper
    if cut.step is not None or a is None or b is None or any(isinstance(n, ast.Call) for n in ast.walk(a)):
        return False
    if isinstance(a, ast.Constant) and isinstance(b, ast.Constant):
        return type(a.value) is type(b.value) is int and a.value >= 0 and b.value == a.value + 1
    if not isinstance(b, ast.BinOp) or not isinstance(b.op, ast.Add):
        return False
    return ast.dump(b.left) == ast.dump(a) and ast.dump(b.right) == "Constant(value=1)"


def converting(s: ast.For) -> ast.For:
    """`for x in y: x = int(x); ...`, where two variables have x's two types."""
    if s not in _CONVERTED:
        _CONVERTED[s] = _converted(s)
    return _CONVERTED[s] or s


def _converted(s: ast.For) -> ast.For | None:
    found: dict[str, int] = {}
    for x in stored_names(s.target):
        names = lambda tree, x=x: [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == x]
        first = next((k for k, line in enumerate(s.body) if names(line)), None)
        match s.body[first] if first is not None else None:
            case ast.Assign([ast.Name(y)], ast.Call(ast.Name("int" | "float" | "bool"), [ast.Name(z)], [])):
                if x == y == z:
                    found[x] = first  # type: ignore[assignment]
    if not found:
        return None
    s = copy.copy(s)
    s.target, s.body = copied(s.target), list(s.body)
    for x, k in found.items():
        s.body[k] = copied(s.body[k])
        for n in (*ast.walk(s.target), *ast.walk(s.body[k].value)):  # type: ignore[attr-defined]
            if isinstance(n, ast.Name) and n.id == x:
                n.id = f"{x}<item>"
    return s


def makes_array(node: ast.expr) -> bool:
    """Whether an expression of arrays is always a new one."""
    return isinstance(node, (ast.BinOp, ast.UnaryOp)) or (isinstance(node, ast.Call) and ends_in(node.func) in MAKERS)


def ends_in(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def makes_list(node: ast.expr | None) -> bool:
    """Whether a list that an expression stands for is a new one."""
    new = isinstance(node, (ast.List, ast.ListComp, ast.BinOp))
    return new or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "list")


def length_of(variable: str, axis: int) -> str:
    """The variable that says how much of its array a name stands for."""
    return f"{variable}.length{axis}!"


def returned_names(prefix: str, result: Any) -> list[str]:
    """The variables that a function of the program's own returns."""
    each = range(len(result)) if isinstance(result, tuple) else [""] if result in ("scalar", "array") else []
    return [f"{prefix}<return>{k}" for k in each]


def stored_names(tree: ast.AST, augmented: bool = True) -> frozenset[str]:
    """The names that statements bind. `augmented`: those of `x += y`, too, which leaves an array bound as it was."""
    found = _STORED.get(tree)
    if found is None:
        nodes = own_nodes(tree)
        targets = {n.target for n in nodes if isinstance(n, ast.AugAssign)}
        stored = [n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del))]
        both = stored, [n for n in stored if n not in targets]
        inner = [n for n in nodes if isinstance(n, ast.FunctionDef) and n is not tree]
        own = {n.id for n in stored} | {n.arg for n in nodes if isinstance(n, ast.arg)}
        more = {n.name for n in inner} | {name for n in inner for name in nonlocals(n) if name in own}
        found = _STORED[tree] = tuple(frozenset([n.id for n in names]) | more for names in both)
    return found[not augmented]


def own_nodes(tree: ast.AST) -> list[ast.AST]:
    """The nodes of a tree, without the statements of functions that are made in it."""
    found, pending = [], [tree]
    while pending:
        node = pending.pop()
        found.append(node)
        if node is tree or not isinstance(node, ast.FunctionDef):
            pending += ast.iter_child_nodes(node)
    return found


def nonlocals(tree: ast.AST) -> set[str]:
    return {name for n in ast.walk(tree) if isinstance(n, ast.Nonlocal) for name in n.names}


def bound_by_expressions(tree: ast.AST) -> frozenset[str]:
    """The names that are bound within expressions: by :=, or by functions that are made inside and called."""
    found = _REBOUND.get(tree)
    if found is None:
        named = {n.target.id for n in ast.walk(tree) if isinstance(n, ast.NamedExpr)}
        inner = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n is not tree]
        found = _REBOUND[tree] = frozenset(named.union(*map(nonlocals, inner)))
    return found


# of trees that every pass over a loop asks for again
_LAMBDAS: weakref.WeakKeyDictionary[ast.Lambda, ast.FunctionDef] = weakref.WeakKeyDictionary()
_REBOUND: weakref.WeakKeyDictionary[ast.AST, frozenset[str]] = weakref.WeakKeyDictionary()
_STORED: weakref.WeakKeyDictionary[ast.AST, tuple[frozenset[str], ...]] = weakref.WeakKeyDictionary()
_CONVERTED: weakref.WeakKeyDictionary[ast.For, ast.For | None] = weakref.WeakKeyDictionary()


def library(f: Any) -> bool:
    module = (f.__name__ if isinstance(f, ModuleType) else getattr(f, "__module__", None)) or ""
    return module.split(".")[0] in ("numpy", "minnp", "math", "scipy", "builtins")


def known_function(f: Any) -> tuple[str, str] | None:
    """("np", "math" or "builtins", its name there) of a function that is read here."""
    name = getattr(f, "__name__", "")
    if not isinstance(name, str):
        return None
    if getattr(math, name, None) is f:
        return "math", name
    ours = sys.modules.get("minnp.numpy")
    if name in LINALG and f in (getattr(onp.linalg, name), getattr(getattr(ours, "linalg", None), name, None)):
        return "linalg", name
    # without __getattr__, by which NumPy warns of names that it once had
    for called in (name, ALIASES.get(name, name)):
        host = vars(onp).get(called)
        if host is f or (ours is not None and vars(ours).get(called) is f):
            return "np", name
        if isinstance(host, onp.ufunc) and PUBLIC.get(host) is f:  # ours may have been asked for an alias of it alone
            return "np", name
    if getattr(builtins, name, None) is f:
        return "builtins", name
    if isinstance(f, type) and issubclass(f, onp.generic):
        return "np", name
    return None


def translate(
    tree: ast.stmt,
    name: str,
    given: dict[str, Any],
    found: Outside,
    wanted: set[str],
    by_value: bool = False,
    noted: tuple[str, str] | None = None,
    varying: frozenset[str] = frozenset(),
) -> Program:
    """The program of a loop.

    given    what its variables are before it: ("number", Kind), ("array", Kind, ndim, axes of length 1), ("held", ) for
             what is looked for outside, or ("unbound", Kind, ndim, axes of length 1) of a name that the loop binds,
             with `by_value`: it is given an array for what it will be bound to
    found    gets what is read besides
    wanted   variables that are read after it
    noted    (file, module) of the loop, for the program that says of which numbers NumPy warns
    by_value  whether names that stand for several arrays are arrays that are written, of which there is a derivative
    varying   those of these names whose lengths vary: their arrays are as long as they are at first
    Raises NotUnderstood.
    """
    known: dict[str, Known] = {}
    flags: set[str] = set()
    unbound = {variable for variable, what in given.items() if what[0] == "unbound"}
    moving = {variable: Moving() for variable in unbound}
    tuples: dict[str, bool] = {}
    unsettled: set[tuple] = set()
    early_reads: set[tuple] = set()
    recursive: dict[Any, Recursive] = {}
    lists = {name: Growing(name) for name, what in given.items() if what == ("appended",)}
    lists |= {name: Growing(name, given=what) for name, what in given.items() if what[0] == "items"}
    displayed: set[str] = set()
    maybe: set[str] = set()
    exchanged: set[str] = set()
    early: set[str] = set()
    if any(not g.fixed for g in lists.values()) and by_value:
        raise NotUnderstood("the derivative of a list", tree.lineno)
    deadline = budget.Deadline()
    assigned = stored_names(tree)
    rounds = 0
    while rounds < PASSES:
        program = Program(name)
        t = Translator(program, known, rounds, found)
        t.flags, t.moving, t.tuples, t.by_value, t.deadline = flags, moving, tuples, by_value, deadline
        t.unsettled, t.exchanged, t.unbound, t.early = unsettled, exchanged, unbound, early
        t.early_reads, t.varying = early_reads, varying
        t.recursive, t.defined, t.lists, t.displayed, t.initial = recursive, {}, lists, displayed, given
        t.nones, t.maybe = set(), maybe
        t.notes, t.origin = None if noted is None else {}, noted
        count = len(flags)
        t.line = tree.lineno
        top = Scope({}, None, "", "return")
        top.assigned, top.rebound = assigned, bound_by_expressions(tree)
        t.scopes.append(top)
        try:
            if exchanged:
                program.kinds["<made>"] = INT
                t.emit(Assign("<made>", const(FRESH)))
            if any(growing.several for growing in lists.values()):
                program.kinds["<lists>"] = INT
                t.emit(Assign("<lists>", const(FRESH)))
            for growing in lists.values():
                t.begin(growing)
            stored = {found.inputs[source] for source in found.stored}
            for source, variable in found.inputs.items():
                t.fields[variable] = _entry(t, variable, found.input_at(source)[1], stored)
            for variable, what in given.items():
                if variable in lists:
                    if not lists[variable].own:
                        top.names[variable] = lists[variable]
                    continue
                top.names[variable] = found_first = _entry(t, variable, what, assigned)
                none = isinstance(found_first, Static) and found_first.value is None
                if (none or type_of(found_first)) and variable in assigned:
                    t.name(variable, found_first)
            t.bound -= unbound
            top.local = set(top.names)
            for flag in sorted(flags):
                if flag not in given:
                    t.emit_flag(flag)
            if "<returned>" in known:
                t.assign("<returned>", const(0))
            body: list = []
            with t.into(body):
                t.body([tree])
            program.body.append(Block("return", body))
            program.body[:0] = [d for d in t.defined.values() if d is not None]
            for info in moving.values():
                roots = info.found if rounds < PASSES // 2 else info.found | info.roots
                t.moved |= roots != info.roots
                info.roots, info.found = roots, frozenset()
            if not t.moved and len(flags) == count:
                _outputs(t, program, given, wanted & assigned)
                if len(flags) == count:
                    _apart(t, program)
                    _make_columns(t, program)
                    if t.notes is not None:
                        program.notes = list(t.notes)
                        program.outputs += [(v.args[0], [INT], "", "") for v in t.notes.values()]
                    return program
        except Anew:  # once for each name
            for info in moving.values():
                info.found = frozenset()
            continue
        rounds += 1
    raise NotUnderstood("the types of its variables do not settle", tree.lineno)


def _entry(t: Translator, variable: str, what: Any, assigned: set[str]) -> Any:
    """What a variable stands for at the start."""
    sort = what[0] if isinstance(what, tuple) and what else ""
    if sort == "number":
        kind = what[1]
        source = f"{variable}.in"
        t.program.inputs.append(Input(source, kind, None, False))
        t.program.kinds[source] = kind
        low, high = (-LIMIT, LIMIT) if kind == INT else (None, None)
        given = E("var", (source,), kind, low, high)
        if variable not in assigned:
            return given
        t.assign(variable, given)
        return Scalar(variable)
    if sort in ("array", "unbound"):
        _, kind, ndim, ones = what
        array = Array(variable, kind, ndim, variable)
        for axis in ones:
            array.dims[axis] = const(1)
        t.program.arrays[variable] = array
        t.program.inputs.append(Input(variable, kind, ndim, False))
        return t.rebind(variable, array) if variable in t.moving else array
    if sort == "items":
        growing = Growing(variable, given=what)
        t.begin(growing)
        return growing
    if sort in ("tuple", "list"):
        return Tup([_entry(t, f"{variable}[{k}]", x, set()) for k, x in enumerate(what[1])], sort == "list")
    return t.outside(("variable", None, variable))


LIMIT = 2**40  # of Python's integers that are given


def _outputs(t: Translator, program: Program, given: dict, wanted: set[str], items: bool = False) -> None:
    names, by_value = t.scope.names, t.by_value
    t.told_apart(wanted)
    for variable in sorted(wanted):
        if isinstance(names.get(variable), Turns):
            raise t.another_list(variable)
    for variable in sorted(wanted):
        what = names.get(variable)
        if what is None:
            continue
        if isinstance(what, Growing):
            if what.own:
                program.lists[variable] = what
            continue
        if isinstance(what, Parts):
            _outputs(t, program, given, {f"{variable}[{k}]" for k in range(what.count)}, True)
            program.tuples[variable] = what
            continue
        if by_value and isinstance(what, Array) and variable in t.moving and what.name == variable:
            _which(t, program, variable)
            continue
        if isinstance(what, Array) and what is program.arrays.get(variable) and variable in given:
            continue  # the array that it was bound to before
        if isinstance(what, Array) and what.name in program.moving:
            program.results.append((variable, what.name))
            continue
        if what is Lost or isinstance(what, Array):
            t.lost(variable)
        if not isinstance(what, Scalar):
            raise NotUnderstood(f"{variable}, which the loop makes, is read after it", t.line)
        _output(t, program, variable, variable not in t.bound)
    if items:
        return
    returned = _returned(program)
    for what in returned:
        if what in t.lists:
            program.lists[str(what)] = t.lists[what]
    for growing in [g for g in program.lists.values() if g.rebound and g.changed]:
        held: E = const(False)
        for name in sorted(growing.mates):  # what it holds at the end is what one of its names stands for
            if t.is_name(name, t.scope) and growing.name in t.lists[name].roots:
                program.lists[name] = t.lists[name]
                one = E("eq", (t.number_of(t.lists[name]), const(growing.place)), BOOL, 0, 1)
                held = one if held.op == "const" else E("or", (held, one), BOOL, 0, 1)
        t.check(held)
    for growing in program.lists.values():
        program.results += [(variable, t.stands_for(variable).name) for variable, _ in growing.columns()]
        program.outputs.append((growing.count, [INT], "", ""))
        if growing.several:
            program.outputs.append((growing.number, [INT], "", ""))
    for source in sorted(t.found.stored, key=t.found.inputs.__getitem__):
        variable = t.found.inputs[source]
        program.stored.add(variable)
        if variable not in t.moving:
            _output(t, program, variable, False)
        elif by_value:
            _which(t, program, variable)
        else:
            program.results.append((variable, t.stands_for(variable).name))
    if "<returned>" in t.known and t.known["<returned>"].kinds:
        _output(t, program, "<returned>", False)
        for what in returned:
            if what in t.lists:
                continue
            if what in t.moving:
                if by_value:
                    raise NotUnderstood("the derivative of an array that is returned from within a loop", t.line)
                program.results.append((str(what), t.stands_for(what).name))
            else:
                _output(t, program, str(what), False)


def _returned(program: Program) -> list[Scalar]:
    """The variables in what returns within a loop return."""
    found, pending = [], [what for _, what in program.returned.values()]
    while pending:
        what = pending.pop()
        pending += what if type(what) in (tuple, list) else []
        found += [what] if isinstance(what, Scalar) else []
    return found


def _apart(t: Translator, program: Program) -> None:
    """Raises NotUnderstood if somebody could tell a list's arrays from those that were appended."""
    columns = {variable for growing in program.lists.values() for variable, _ in growing.columns()}
    read = [program.moving.get(array, (array,)) for name, array in program.results if name not in columns]
    out = {growing.name for growing in program.lists.values()}
    for name, arrays in t.listed.items():
        seen = t.touched.union(*read) if name in out else t.touched
        if not (seen & arrays or PART in seen):
            continue
        raise NotUnderstood("an array appended to a list that is also written in place, or read after the loop", t.line)


def _make_columns(t: Translator, program: Program) -> None:
    """Allocates the columns of lists that stay where they are, and the arrays of names that are bound first at several
    places. Raises NotUnderstood where their shapes are not known by then."""
    known, inputs = defined(statements(program.body)), {i.name for i in program.inputs}

    def before(e: E) -> E:
        """The same of what the program is given."""
        if e.op == "var" and not e.args[0].endswith(".in"):
            return before(known[e.args[0]])
        if e.op == "dim" and (e.args in known or e.args[0] not in inputs):
            return before(known[e.args])
        if e.op in ("load", "again"):
            raise LookupError(e)
        return E(e.op, tuple([before(a) if isinstance(a, E) else a for a in e.args]), e.kind, e.low, e.high)

    def known_before(shape: list[E]) -> list[E] | None:
        try:
            return [before(d) for d in shape]
        except LookupError:
            return None

    capacity = f"{CAPACITY}.in"
    if t.columns.keys() - t.early:
        program.kinds[capacity] = INT
        program.inputs.append(Input(capacity, INT, None, False, CAPACITY))
    for variable, shapes in t.columns.items():
        dims = next((dims for shape in shapes if (dims := known_before(shape)) is not None), None)
        if dims is None:
            what = f"{variable}, an array of" if variable in t.early else "a list of arrays of"
            raise NotUnderstood(f"the derivative of {what} a shape that the loop finds", t.line)
        room = () if variable in t.early else (E("var", (capacity,), INT, 1, 2**40),)
        program.body.insert(0, Alloc(variable, (*room, *dims), False))


def _which(t: Translator, program: Program, variable: str) -> None:
    """Says, of a name that has an array of its own, which input or earlier result it stands for."""
    roots, inputs = t.moving[variable].roots, {i.name for i in program.inputs}
    if PART in roots:
        raise NotUnderstood(f"the derivative of {variable}, which may be a part of another array", t.line)
    if variable in t.own:
        raise NotUnderstood(f"the derivative of {variable}, an array that the loop makes", t.line)
    number = lambda name: E("var", (f"{name}!",), INT, -1, 2**42)
    others = [(name, True, t.numbered(name)) for name in sorted(roots & inputs)]
    others += [(name, False, number(name)) for name in program.shown if roots & t.moving[name].roots - inputs]
    program.shown[variable] = {}
    if variable in t.varying:
        ndim = t.program.arrays[variable].ndim
        program.lengths[variable] = [length_of(variable, axis) for axis in range(ndim)]
        program.outputs += [(n, [INT], "", "") for n in program.lengths[variable]]
    for name, given, other in others:
        flag = f"{variable}.{name}.{'given' if given else 'left'}!"
        program.shown[variable][flag] = name, given
        program.kinds[flag] = BOOL
        t.emit(Assign(flag, E("eq", (number(variable), other), BOOL, 0, 1)))
        program.outputs.append((flag, [BOOL], "", ""))


def _output(t: Translator, program: Program, variable: str, maybe: bool) -> None:
    kinds = sorted(t.known[variable].kinds, key=place)
    flag = ""
    if maybe:
        t.flag(variable)
        flag = f"{variable}?"
    program.outputs.append((variable, kinds, f"{variable}#" if len(kinds) > 1 else "", flag))


def _emit_flag(self: Translator, variable: str) -> None:
    from .ir import Assign

    self.program.kinds[f"{variable}?"] = BOOL
    self.emit(Assign(f"{variable}?", const(False)))


Translator.emit_flag = _emit_flag  # type: ignore[attr-defined]
