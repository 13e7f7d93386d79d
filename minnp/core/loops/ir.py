"""The typed programs that loops become: scalars, elements of arrays, loops. No array expression is left in them.

A value is of a `Kind`: a dtype, and whether it is a number of Python's (whose integers do not wrap, whose division by
zero raises) or of NumPy's. Integers carry bounds, by which checks of overflow and of indices are left out where they
cannot fail. Control leaves a `Block` by its label: break, continue and return are all that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as onp


class Kind(NamedTuple):
    """A dtype ("f8") and whether the number is Python's."""

    code: str
    python: bool = False

    @property
    def letter(self) -> str:
        return self.code[0]

    @property
    def dtype(self) -> onp.dtype:
        return onp.dtype(self.code)

    def __str__(self) -> str:
        return "None" if self == NONE else PYTHONS[self.letter] if self.python else self.dtype.name


PYTHONS = {"i": "int", "u": "int", "f": "float", "b": "bool", "c": "complex"}


INT, FLOAT, BOOL, COMPLEX = (Kind(code, True) for code in ("i8", "f8", "b1", "c16"))
F8, I8, B1, C16 = (Kind(code) for code in ("f8", "i8", "b1", "c16"))
CODES = ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16"]
WORD = Kind("u8", True)  # Python's integers from 0 to 2**64 - 1, which masks leave; what else is done makes them INT
NONE = Kind("i1", True)  # None, of a variable that is a number on other ways: nothing but `is None` asks for it
KINDS = [INT, FLOAT, BOOL, COMPLEX, *map(Kind, CODES), WORD, NONE]
LEAST, MOST = -(2**63), 2**63 - 1


def kind_of(x: Any) -> Kind | None:
    """The kind of a number, or of an array's elements; None for what is neither."""
    if type(x) in (int, float, bool, complex):
        return {int: INT, float: FLOAT, bool: BOOL, complex: COMPLEX}[type(x)]
    dtype = getattr(x, "dtype", None)
    return BY_DTYPE.get(dtype) if isinstance(dtype, onp.dtype) else None


BY_DTYPE = {onp.dtype(code): Kind(code) for code in CODES}


class E:
    """An expression: `op` of `args` (expressions, but for "const", "var", "load" and "dim"), of this kind.

    kinds       the kinds that the program would have here, more than one where it depends on the way it took
    tag         of several kinds: the expression that says which one, a place in KINDS
    low, high   bounds of an integer
    """

    __slots__ = ("args", "high", "kind", "kinds", "low", "op", "parts", "read", "tag")

    def __init__(
        self,
        op: str,
        args: tuple,
        kind: Kind,
        low: int | None = None,
        high: int | None = None,
        kinds: frozenset | None = None,
        tag: E | None = None,
    ) -> None:
        self.op, self.args, self.kind, self.tag = op, args, kind, tag
        least, most = limits(kind)
        self.low, self.high = least if low is None else low, most if high is None else high
        self.kinds = kinds or frozenset((kind,))
        self.parts: tuple[E, ...] = ()  # what `walk` and `variables` found: an expression does not change
        self.read: frozenset[str] | None = None

    def over(self, one: Callable[[E], E]) -> E:
        """The same operator of other expressions: one(x) for each x among its arguments."""
        args = tuple([one(a) if isinstance(a, E) else a for a in self.args])
        return E(self.op, args, self.kind, self.low, self.high, self.kinds, self.tag)

    def __reduce__(self) -> tuple:
        return E, (self.op, self.args, self.kind, self.low, self.high, self.kinds, self.tag)

    def __str__(self) -> str:
        return expression(self, identifier)

    def __repr__(self) -> str:
        """The same for expressions that are the same, and no others: with names that Python's cannot be."""
        return expression(self, str)


@cache
def limits(kind: Kind) -> tuple[int, int]:
    if kind.letter == "b":
        return 0, 1
    if kind.letter in "iu":
        found = onp.iinfo(kind.dtype)
        return int(found.min), int(found.max)
    return LEAST, MOST


def const(value: Any, kind: Kind | None = None) -> E:
    kind = kind or kind_of(value)
    assert kind is not None
    whole = kind.letter in "iub"
    return E("const", (value,), kind, int(value) if whole else None, int(value) if whole else None)


def constant(e: E) -> Any:
    """The number that an expression is wherever it is computed; None for others."""
    while e.op == "copy":
        e = e.args[0]
    return e.args[0] if e.op == "const" else None


class Array:
    """An array in a program: a root, a view, or one made inside.

    root      the name of the root whose memory it shows
    dims      what is known of its axes' lengths (expressions that do not change while it is bound), or None each
    where     of a view: (base, spec), by which two views of one root are told to be the same
    """

    __slots__ = ("dims", "kind", "name", "ndim", "root", "where")

    def __init__(self, name: str, kind: Kind, ndim: int, root: str, where: Any = None) -> None:
        self.name, self.kind, self.ndim, self.root, self.where = name, kind, ndim, root, where
        self.dims = [E("dim", (name, axis), INT, 0, 2**40) for axis in range(ndim)]


# ------------------------------------------------------------------ statements
class Assign(NamedTuple):
    name: str
    value: E


class Store(NamedTuple):
    array: str
    index: tuple
    value: E


class View(NamedTuple):
    """name = base[spec]: each part ("index", i), ("slice", start, length, step) or ("new",); all within bounds."""

    name: str
    base: str
    spec: tuple


class Permute(NamedTuple):
    """name = base with its axes in this order."""

    name: str
    base: str
    axes: tuple


class Reshape(NamedTuple):
    """name = base with these lengths, where base lies in C order."""

    name: str
    base: str
    dims: tuple


class Bind(NamedTuple):
    """name = source: a variable that stands for one array and then for another."""

    name: str
    source: str


class Alloc(NamedTuple):
    """name = new memory for an array of these lengths, all zero if `zero`; taken again when it runs again.

    needed   whether the program fails where there is none; else the array is not "held"
    """

    name: str
    dims: tuple
    zero: bool
    needed: bool = True


class For(NamedTuple):
    """for var in range(start, stop, step): body, where `body` leaves by labels; var is not assigned elsewhere."""

    var: str
    start: E
    stop: E
    step: int | E
    body: list
    exact: bool = True  # False: the order of additions in it is free (sums and products of NumPy's)
    lanes: int = 0  # so many turns are one vector, or several; -1: they are independent of each other
    asked: bool = False  # whether its turns may run at the same time: prange


class While(NamedTuple):
    """Runs `test`, then, while `condition`, the body."""

    test: list
    condition: E
    body: list


class If(NamedTuple):
    condition: E
    then: list
    orelse: list


class Block(NamedTuple):
    label: str
    body: list


class Leave(NamedTuple):
    label: str


# functions that NumPy computes several numbers at a time of, and compiled code one
SCALAR = {"sin", "cos", "tan", "sinh", "cosh", "arcsin", "arccos", "arctan", "atan2", "arcsinh", "arccosh", "arctanh"}
SCALAR |= {"cbrt", "hypot", "fmod"}
VECTOR = 128  # numbers in an array from which on that may matter
ROOM = ("full", "crowded")  # errors of a tape, and of lists, that are too short
TAPE = "<tape>"  # which no variable of a program is called
DEPTH = 2000  # of calls of functions in themselves, at most: Python's own limit is less, mostly
CAPACITY = "<capacity>"  # how many items lists have room for, in programs that have derivatives


class Check(NamedTuple):
    """Ends the program with this error unless the condition holds.

    error     "again": Python has to run it; one of ROOM: it runs again with more; else what `errors.py` makes of the
              operands
    bounds    of an index: (the index, the length of its axis), by which loops prove it in advance
    """

    condition: E
    error: str
    operands: tuple = ()
    bounds: Any = None


class Input(NamedTuple):
    """What a program is given: a number (`ndim` None) or an array.

    like    of what is made for it, and not given: the array whose shape such zeros have, TAPE, or CAPACITY
    """

    name: str
    kind: Kind
    ndim: int | None
    written: bool
    like: str = ""


class Define(NamedTuple):
    """A function of the program's own, which may call itself. Its variables are its own; inputs are everybody's.

    given     the variables, and the moving ones of arrays, that a call gives a value
    returned  the variables that it returns
    """

    name: str
    given: tuple
    returned: tuple
    body: list


class Call(NamedTuple):
    """Runs a function with what its given variables are here; then its returned ones are here what they were there."""

    function: str


class Product(NamedTuple):
    """to += left @ right, all of them elements that loops read. `loops`: those over the rows of `to`, over what is
    summed, and over its columns."""

    to: E
    left: E
    right: E
    loops: tuple[For, For, For]


class Multiply(NamedTuple):
    """name = whether BLAS takes this product, which is then added."""

    name: str
    product: Product


class Program:
    """A loop with types.

    inputs    in the order they are given
    outputs   [(variable, the kinds it may have, the variable that says which one, or "", the one that says whether it
              is bound, or "")]
    arrays    name -> Array
    kinds     variable -> Kind in which it is kept
    moving    variables that are bound to arrays anew (Bind) -> the roots of all these
    stored    outputs that the loop binds outside its function: globals, attributes, items
    results   [(name, moving variable)] of arrays that come out, besides those that are inputs
    returned  of each `return` of the function's: (its number, as `<returned>` has it, what it returns)
    tuples    names that stand for tuples after it
    rebound   inputs whose copy is written where a name is bound anew
    lengths   inputs whose copy has more than what the name stands for -> the outputs that are its lengths
    shown     results that are such copies -> {an output: (which array it says that it is, whether an input)}
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.inputs: list[Input] = []
        self.outputs: list[tuple[str, list, str, str]] = []
        self.scratch: set[str] = set()  # arrays that are written, and are no results
        self.body: list = []
        self.arrays: dict[str, Array] = {}
        self.kinds: dict[str, Kind] = {}
        self.moving: dict[str, frozenset[str]] = {}
        self.stored: set[str] = set()
        self.results: list[tuple[str, str]] = []
        self.rebound: set[str] = set()
        self.shown: dict[str, dict[str, tuple[str, bool]]] = {}
        self.lengths: dict[str, list[str]] = {}
        self.returned: dict[Any, tuple[int, Any]] = {}
        self.tuples: dict[str, Any] = {}
        self.lists: dict[str, Any] = {}  # lists that are appended to, by name (frontend.Growing)
        self.reductions: dict[str, Any] = {}  # of a piece of a loop: what its variables are reduced by (threaded.py)
        # where a stream lies, its class, a method ("": of its bits) -> the inputs that are addresses (draws.py)
        self.draws: dict[tuple, list[str]] = {}
        self.notes: list = []  # what the last outputs say of NumPy's warnings (warned.py)
        self.beginning: tuple | None = None  # as runtime.turns found it
        self.file, self.line = "", 0
        self.mark = "~"  # behind the names of cotangents, with the order of the derivative
        self.vectors = False  # whether it sorts, solves or looks for extremes, for which NumPy has vector code
        self.loops: set[str] = set()  # the variables of loops of the source's, beside those over elements of arrays
        self.nested = False  # whether it is a loop of loops
        self.elements = False  # whether it reads or writes single elements, or runs until something holds

    def __repr__(self) -> str:
        from .printing import text_of

        return "\n".join(text_of(self, self.name))

    @property
    def written(self) -> list[int]:
        """The inputs that are results, too."""
        return [k for k, i in enumerate(self.inputs) if i.written and i.name not in self.scratch]

    @property
    def given(self) -> list[Input]:
        """The inputs that it is given."""
        return [i for i in self.inputs if not i.like]


def statements(body: list) -> list:
    """Every statement, inner ones after those that hold them."""
    found: list = []
    for s in body:
        found.append(s)
        for inner in parts(s):
            found += statements(inner)
    return found


def left_from(s: Any) -> list[str]:
    """The labels that a statement leaves, and does not hold."""
    if type(s) is Leave:
        return [s.label]
    inner = [x for body in parts(s) for t in body for x in left_from(t)]
    if type(s) is Block:
        inner = [x for x in inner if x != s.label]
    return list(dict.fromkeys(inner))


def defined(found: list) -> dict[Any, E]:
    """What statements make variables, and the lengths of arrays, of: what they make again is not known."""
    known: dict[Any, E] = {}
    for s in found:
        if type(s) is Assign:
            told = s.name not in known and all(n in known or n.endswith(".in") for n in variables(s.value))
            known[s.name] = s.value if told else E("again", (), INT)
        elif type(s) in (Alloc, View):
            dims = (
                s.dims if type(s) is Alloc else [const(1) if p[0] == "new" else p[2] for p in s.spec if p[0] != "index"]
            )
            known |= {(s.name, axis): d for axis, d in enumerate(dims)}
    return known


def mapped(body: list, one: Callable[[E], E], last: Callable = lambda s: s) -> list:
    """Statements with one(e) in the place of each of their expressions; then last(s), a statement or a list of some, in
    that of each statement."""
    out: list = []
    for s in body:
        changed: dict[str, Any] = {}
        for field, value in zip(s._fields, s):
            if type(value) is list:
                changed[field] = mapped(value, one, last)
            elif isinstance(value, E):
                changed[field] = one(value)
            elif type(value) is tuple:
                changed[field] = tuple([one(x) if isinstance(x, E) else x for x in value])
        found = last(s._replace(**changed))
        out += found if type(found) is list else [found]
    return out


def multiplies(program: Program) -> bool:
    """Whether matrices are multiplied, which BLAS does in less time than loops: three loops of sums in any order."""
    return products_in(program.body)


def rivalled(program: Program) -> bool:
    """Whether NumPy may be faster at what a program does with whole arrays."""
    if program.vectors or multiplies(program):
        return True
    loops = [s for s in statements(program.body) if type(s) is For and s.var not in program.loops]
    inside = (e for loop in loops for s in statements(loop.body) for e in expressions(s))
    return any(x.op in SCALAR for e in inside for x in walk(e))


def products_in(body: list, within: int = 0) -> bool:
    for s in body:
        depth = within + 1 if type(s) is For and not s.exact else 0
        if depth == 3 or any(products_in(part, depth) for part in parts(s)):
            return True
    return False


def parts(s: Any) -> tuple:
    """The lists of statements in one."""
    sort = type(s)
    if sort is Assign or sort is Store:
        return ()
    if sort is If:
        return s.then, s.orelse
    if sort is While:
        return s.test, s.body
    return (s.body,) if sort in (For, Block, Define) else ()


def expressions(s: Any) -> Sequence[E]:
    """The expressions that a statement itself holds."""
    sort = type(s)
    if sort is Assign:
        return (s.value,)
    if sort is Store:
        return *s.index, s.value
    if sort is View:
        return [p for part in s.spec for p in part[1:] if isinstance(p, E)]
    if sort in (Alloc, Reshape):
        return s.dims
    if sort is For:
        return [x for x in (s.start, s.stop, s.step) if isinstance(x, E)]
    if sort in (While, If):
        return (s.condition,)
    if sort is Check:
        return s.condition, *s.operands
    if sort is Multiply:
        return [*s.product[:3], *(e for loop in s.product.loops for e in (loop.start, loop.stop))]
    return ()


def walk(e: E) -> tuple[E, ...]:
    """An expression, and those in it, each before its arguments."""
    if not e.parts:
        found, left = [], [e]
        while left:
            x = left.pop()
            found.append(x)
            left += [a for a in reversed(x.args) if type(a) is E]
        e.parts = tuple(found)
    return e.parts


def variables(e: E) -> frozenset[str]:
    """The variables that an expression reads."""
    if e.read is None:
        e.read = frozenset([x.args[0] for x in walk(e) if x.op == "var"])
    return e.read


def places(s: Any, written: bool = False) -> list[tuple[str, tuple]]:
    """(array, index) of the elements that a statement itself reads or writes, or of the one that it writes."""
    found = [(s.array, s.index)] if type(s) is Store else []
    if written:
        return found
    return found + [(x.args[0], x.args[1:]) for e in expressions(s) for x in walk(e) if x.op == "load"]


def read_times(body: list) -> dict[str, int]:
    """How many expressions of statements read each variable."""
    found: dict[str, int] = {}
    for s in statements(body):
        for e in expressions(s):
            for name in variables(e):
                found[name] = found.get(name, 0) + 1
    return found


# ------------------------------------------------------------------ as Python
SIGNS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
    "and": "&",
    "or": "|",
    "xor": "^",
    "shl": "<<",
    "shr": ">>",
}


def expression(e: E, named: Callable[[str], str]) -> str:
    """An expression as Python, with these names of variables."""
    if e.op == "const":
        return repr(e.args[0]) if type(e.args[0]) in (int, float, bool, complex) else repr(e.args[0].item())
    if e.op == "var":
        return named(e.args[0])
    if e.op == "load":
        return f"{named(e.args[0])}[{', '.join(expression(a, named) for a in e.args[1:]) or '()'}]"
    if e.op == "dim":
        return f"{named(e.args[0])}.shape[{e.args[1]}]"
    if e.op in ("apart", "held", "dense"):
        return f"{e.op}({', '.join(map(named, e.args))})"
    shown = [expression(a, named) for a in e.args]
    if e.op in SIGNS:
        return f"({shown[0]} {SIGNS[e.op]} {shown[1]})"
    if e.op == "select":
        return f"({shown[1]} if {shown[0]} else {shown[2]})"
    if e.op == "neg":
        return f"(-{shown[0]})"
    if e.op == "not":
        return f"(not {shown[0]})"
    if e.op == "cast":
        return f"{e.kind if e.kind.python else f'np.{e.kind.dtype.name}'}({shown[0]})"
    return f"{e.op}({', '.join(shown)})"


def identifier(name: str) -> str:
    return name.replace(".", "_").replace("?", "_bound").replace("#", "_kind").replace("@", "_array")
