"""Random numbers that a loop draws one by one, of NumPy's own streams and in their order.

Uniform numbers and integers are made of what compiled code asks of the bit generator itself, by the functions that
NumPy publishes for compilers (`BitGenerator.ctypes`); all else NumPy's method computes, which compiled code calls. A
draw is an expression ("double" and "word" of a function and a state, "drawn" of a method and its arguments) that stands
alone in an assignment, and no pass but the lowering sees a program that has one. Where Python has to run the loop after
all, the streams are set back.

A loop that is differentiated runs once to draw (`recording`); what is differentiated is the program that is given these
numbers (`replaying`).
"""

from __future__ import annotations

import copy
import ctypes
import functools
import platform
import sys
import threading
from time import perf_counter
from typing import Any

import numpy as onp

from ..graph.streams import Legacy
from .building import Tup
from .ir import (
    BOOL,
    F8,
    FLOAT,
    I8,
    INT,
    Array,
    Assign,
    Check,
    E,
    For,
    If,
    Input,
    Kind,
    Program,
    Store,
    While,
    const,
    mapped,
)
from .operations import NotUnderstood

# The methods that draw a number, and their parameters: what is among the last ones may be left out.
UNIFORM = ("rand", "random", "random_sample", "ranf", "sample")
PARAMETERS = {
    **dict.fromkeys((*UNIFORM, "randn", "standard_normal", "standard_exponential", "standard_cauchy"), ""),
    **dict.fromkeys(("normal", "laplace", "logistic", "gumbel"), "loc scale"),
    **dict.fromkeys(("exponential", "rayleigh"), "scale"),
    **dict.fromkeys(("weibull", "pareto", "power", "zipf"), "a"),
    **dict.fromkeys(("chisquare", "standard_t"), "df"),
    **dict.fromkeys(("geometric", "logseries"), "p"),
    **dict.fromkeys(("binomial", "negative_binomial"), "n p"),
    **dict.fromkeys(("randint", "integers"), "low high"),
    "uniform": "low high",
    "lognormal": "mean sigma",
    "gamma": "shape scale",
    "standard_gamma": "shape",
    "beta": "a b",
    "f": "dfnum dfden",
    "triangular": "left mode right",
    "vonmises": "mu kappa",
    "wald": "mean scale",
    "poisson": "lam",
}
WHOLE = ("randint", "integers", "binomial", "negative_binomial", "geometric", "logseries", "poisson", "zipf")
BY_ANOTHER = {"randn": "standard_normal"}
SCALED = {"normal": "standard_normal", "exponential": "standard_exponential"}
# Methods of RandomState that keep no normal number for the next one, which is a part of its state besides its bits.
KEEPING_NO_NORMAL = {
    "randint",
    "uniform",
    "exponential",
    "standard_exponential",
    "poisson",
    "rayleigh",
    *UNIFORM,
    "",
    "word",
}
BASES = (onp.random.Generator, onp.random.RandomState)
# Compiled code draws while it holds the stream's lock, which NumPy's methods take again (NumPy 1.26 lets nobody).
DIRECT = isinstance(onp.random.PCG64(0).lock, type(threading.RLock()))
# NumPy's uniform may be one instruction elsewhere: a multiplication and an addition that round once.
ROUNDS_TWICE = platform.machine() in ("x86_64", "AMD64")
STREAM = onp.random.mtrand._rand  # of the functions of numpy.random


def base_of(x: Any) -> type | None:
    """NumPy's class of a stream, whose methods nobody replaced; None for anything else."""
    cls = type(x)
    if cls.__module__ == "minnp.numpy.random":
        cls = cls.__mro__[1]
    return cls if cls in BASES else None


def function_of(f: Any) -> str | None:
    """The name of a function of numpy.random, or of ours, that draws numbers; None for another one."""
    name = getattr(f, "__name__", "")
    if name not in PARAMETERS and name != "ranf":
        return None
    ours = getattr(sys.modules.get("minnp.numpy"), "random", None)
    for module in (onp.random, ours):
        if module is not None and getattr(module, name, None) is f:
            return name
    return None


def drawn(t: Any, source: Any, base: type, name: str, args: list, kwargs: dict) -> E | Array:
    """A number, or an array of some, drawn of the stream at `source` (None: NumPy's own), as the translator t emits it.
    Raises NotUnderstood."""
    if name not in PARAMETERS or not hasattr(base, name):
        raise t.fail(f"the method {name} of a random stream")
    if name in ("rand", "randn"):
        args, kwargs = [], {**kwargs, **({"size": Tup(args)} if args else {})}
    *given, size = t.arguments(f"{PARAMETERS[name]} size", args, kwargs)
    while given and given[-1] is None:
        given.pop()
    if not all(isinstance(x, E) and len(x.kinds) == 1 and x.kind.letter in "if" for x in given):
        raise t.fail(f"{name} of a random stream with these arguments")
    given = [t.frozen(x) for x in given]
    if size is not None:
        return _array(t, source, base, name, given, size.items if isinstance(size, Tup) else [size])
    if DIRECT and (name in UNIFORM or (name == "uniform" and moves(name))):
        x = t.temporary(E("double", tuple(_inputs(t, source, base, "")), FLOAT))
        if name in UNIFORM:
            return x
        return _moved(t, _moving(t, base, name, given), x)
    if name in ("randint", "integers") and DIRECT and integers_are_known():
        below = _below(t, source, base, given)
        if below is not None:
            return E("copy", (below,), Kind("i8"), below.low, below.high) if name == "integers" else below
    if given and name in SCALED and moves(name):
        x = t.temporary(E("drawn", tuple(_inputs(t, source, base, SCALED[name])), FLOAT))
        return _moved(t, _moving(t, base, name, given), x)
    whole = name in WHOLE
    kind = FLOAT if not whole else Kind("i8") if name == "integers" else INT
    low = high = None
    if name in ("randint", "integers") and given:
        low = given[0].low if len(given) > 1 else 0
        high = max(given[-1].high - 1, low)
    given = [t.cast(x, F8 if x.kind.letter == "f" else I8) for x in given]
    (method,) = _inputs(t, source, base, name)
    return t.temporary(E("drawn", (method, *given), kind, low, high))


WORD = 2**32 - 1


def moves(name: str) -> bool:
    """Whether compiled code moves what a method without parameters draws as NumPy does, to the bit."""
    return name == "exponential" or ROUNDS_TWICE


def _moving(t: Any, base: type, name: str, given: list[E]) -> tuple[E | None, E]:
    """What is added to numbers of a method without parameters, and before that multiplied with them; what NumPy refuses
    is Python's."""
    given = [t.temporary(t.cast(x, F8)) for x in given]
    if name == "uniform":
        low, high = *given, *[const(0.0), const(1.0)][len(given) :]
        width = t.temporary(E("sub", (high, low), FLOAT))
        t.check(E("finite", (width,), BOOL, 0, 1))
        if base is onp.random.Generator:
            _not_negative(t, width)
        return low, width
    place, scale = (None, *given) if name == "exponential" else (*given, *[const(1.0)][len(given) - 1 :])
    _not_negative(t, scale)
    return place, scale


def _not_negative(t: Any, x: E) -> None:
    """NumPy refuses -0.0, too."""
    sign = t.temporary(E("copysign", (const(1.0), x), FLOAT))
    t.check(E("gt", (sign, const(0.0)), BOOL, 0, 1))


def _moved(t: Any, by: tuple[E | None, E], x: E) -> E:
    place, scale = by
    x = t.temporary(E("mul", (scale, x), FLOAT))
    return x if place is None else t.temporary(E("add", (place, x), FLOAT))


def _array(t: Any, source: Any, base: type, name: str, given: list[E], size: list) -> Array:
    """An array [*size] of numbers, drawn by NumPy's method at once."""
    if not size:
        raise t.fail("an array without axes that is drawn")
    lengths, whole, by = [t.length(n) for n in size], name in WHOLE, None
    if (name == "uniform" or (given and name in SCALED)) and moves(name):
        by = _moving(t, base, name, given)
        name, given = SCALED.get(name, "random_sample"), []
    out = t.new(lengths, I8 if whole else F8, False)
    count = const(1)
    for n in lengths:
        count = t.temporary(E("mul", (count, n), INT, 0, 2**40))
    given = [t.temporary(t.cast(x, F8 if x.kind.letter == "f" else I8)) for x in given]
    (method,) = _inputs(t, source, base, f"{name}[]")
    t.temporary(E("filled", (method, out.name, count, *given), INT))
    t.written(out)
    if by is not None:
        move = lambda index: Store(out.name, tuple(index), _moved(t, by, t.element(out, index)))
        t.over(out.dims, lambda index: t.emit(move(index)))
    return out


def _below(t: Any, source: Any, base: type, given: list[E]) -> E | None:
    """An integer from low to high - 1, of words of 32 bits; None where the range is larger, or nothing known of it.

    A Generator multiplies a word by the size of the range and takes the upper half, unless too many words lead to one
    number (Lemire, Fast random integer generation in an interval, 2019); a RandomState takes the bits that the largest
    number has, until they make none that is larger.
    """
    if not given or not all(x.kind.code == "i8" for x in given):
        return None
    low, high = [t.temporary(t.cast(x, INT)) for x in (const(0), *given)[-2:]]
    if high.low - low.high > WORD or max(abs(low.low), abs(low.high), abs(high.low), abs(high.high)) > 2**62:
        return None
    most = t.temporary(E("sub", (t.temporary(E("sub", (high, low), INT)), const(1)), INT))
    t.check(E("within", (most, const(0), const(WORD - 1)), BOOL))
    most = t.temporary(E("copy", (most,), INT, 0, WORD - 1))
    word = E("word", tuple(_inputs(t, source, base, "word")), INT, 0, WORD)
    name = t.fresh("below")
    t.program.kinds[name] = INT
    found = E("var", (name,), INT, 0, WORD)
    t.emit(Assign(name, const(0)))
    with t.into([]) as body:
        (_multiplied if base is onp.random.Generator else _masked)(t, name, found, most, word)
    t.emit(If(E("gt", (most, const(0)), BOOL, 0, 1), body, []))
    return t.temporary(E("add", (low, found), INT, low.low, max(high.high - 1, low.low)))


def _masked(t: Any, name: str, found: E, most: E, word: E) -> None:
    mask = most
    for by in (1, 2, 4, 8, 16):
        mask = t.temporary(E("or", (mask, t.temporary(E("shr", (mask, const(by)), INT, 0, WORD))), INT, 0, WORD))
    t.program.elements = True
    draw = lambda: t.emit(Assign(name, E("and", (t.temporary(word), mask), INT, 0, WORD)))
    draw()
    with t.into([]) as again:
        draw()
    t.emit(While([], E("gt", (found, most), BOOL, 0, 1), again))


def _multiplied(t: Any, name: str, found: E, most: E, word: E) -> None:
    wide = Kind("u8")  # a product of two words
    size = t.temporary(E("add", (most, const(1)), INT, 1, WORD))
    product = t.fresh("product")
    t.program.kinds[product] = wide
    whole = E("var", (product,), wide)
    rest = E("cast", (E("and", (whole, const(WORD, wide)), wide),), INT, 0, WORD)

    def draw() -> None:
        factors = [t.temporary(E("cast", (x,), wide)) for x in (t.temporary(word), size)]
        t.emit(Assign(product, E("mul", tuple(factors), wide)))

    draw()
    with t.into([]) as few:
        least = t.temporary(E("sub", (const(WORD), most), INT, 0, WORD))
        least = t.temporary(E("mod", (least, size), INT, 0, WORD))
        with t.into([]) as again:
            draw()
        t.emit(While([], E("lt", (rest, least), BOOL, 0, 1), again))
    t.emit(If(E("lt", (rest, size), BOOL, 0, 1), few, []))
    t.emit(Assign(name, E("cast", (E("shr", (whole, const(32, wide)), wide),), INT, 0, WORD)))


@functools.cache
def integers_are_known() -> bool:
    """Whether this NumPy's integers are made so: those of a Generator may become others."""
    for base, bits in ((onp.random.Generator, onp.random.PCG64), (onp.random.RandomState, onp.random.MT19937)):
        for size in (2, 3, 10, 2**31 + 5):
            words, stream = bits(size), base(bits(size))
            draw = lambda words=words: words.ctypes.next_uint32(words.ctypes.state)
            method = stream.integers if base is onp.random.Generator else stream.randint
            made = multiplied if base is onp.random.Generator else masked
            if [int(method(size)) for _ in range(20)] != [made(draw, size) for _ in range(20)]:
                return False
    return True


def masked(word: Any, size: int) -> int:
    """A number below size, as a RandomState makes it of words."""
    mask = (1 << (size - 1).bit_length()) - 1
    while (found := word() & mask) >= size:
        pass
    return found


def multiplied(word: Any, size: int) -> int:
    """A number below size, as a Generator makes it of words."""
    product = word() * size
    while product & WORD < (WORD + 1 - size) % size:
        product = word() * size
    return product >> 32


def _inputs(t: Any, source: Any, base: type, method: str) -> list[E]:
    """The addresses of a stream's method; with none, of the function and the state that give a double."""
    names = t.program.draws.get((source, base, method))
    if names is None:
        count = len(t.program.draws)
        names = [f"<draw{count}>", f"<state{count}>"][: 2 if method in ("", "word") else 1]
        t.program.draws[source, base, method] = names
        for name in names:
            t.program.inputs.append(Input(f"{name}.in", INT, None, False))
            t.program.kinds[f"{name}.in"] = INT
    return [E("var", (f"{name}.in",), INT) for name in names]


# ------------------------------------------------------------------ numbers drawn before
REALS, WHOLES, COUNTS = "<reals>", "<wholes>", "<counts>"  # what was drawn, and how many of each


def recording(program: Program) -> Program:
    """The program that writes what it draws to arrays that it is given, REALS and WHOLES, and to COUNTS how many. It
    fails as "full" where they are too short."""
    return _beside(program, True)


def replaying(program: Program) -> Program:
    """The program that draws nothing: it reads these arrays. Raises NotUnderstood where what is drawn may have a
    derivative in a parameter."""
    addresses = {f"{name}.in" for names in program.draws.values() for name in names}
    out = _beside(program, False)
    out.inputs = [i for i in out.inputs if i.name not in addresses]
    out.draws = {}
    return out


def _beside(program: Program, records: bool) -> Program:
    out = copy.copy(program)
    out.arrays, out.kinds, out.elements = {**program.arrays}, {**program.kinds}, True
    out.beginning = None
    given = [(REALS, F8), (WHOLES, I8), *[(COUNTS, I8)][: int(records)]]
    out.inputs = [*program.inputs, *(Input(name, kind, 1, records) for name, kind in given)]
    for name, kind in given:
        out.arrays[name] = Array(name, kind, 1, name)
    places = {name: E("var", (f"{name}.at",), INT, 0, 2**40) for name, _ in given[:2]}
    out.kinds |= {f"{name}.at": INT for name in places}

    def one(s: Any) -> Any:
        if type(s) is not Assign or s.value.op not in ("double", "word", "drawn", "filled"):
            return s
        whole = (program.arrays[s.value.args[1]] if s.value.op == "filled" else s.value).kind.letter != "f"
        name, kind = given[whole]
        at, add = places[name], lambda x, y: E("add", (x, y), INT, 0, 2**40)
        if s.value.op == "filled":
            _, array, count, *parameters = s.value.args
            index, flat = [], const(0)
            for axis, d in enumerate(program.arrays[array].dims):
                index.append(E("var", (f"{s.name}.{axis}",), INT, 0, 2**40))
                out.kinds[index[-1].args[0]] = INT
                flat = add(E("mul", (flat, d), INT, 0, 2**40), index[-1]) if axis else index[-1]
            store = Store(array, tuple(index), E("load", (name, add(at, flat)), kind))
            if records:
                store = Store(name, (add(at, flat),), E("load", (array, *index), kind))
            for k, d in reversed([*zip(index, program.arrays[array].dims)]):
                store = For(k.args[0], const(0), d, 1, [store])
            moved: list = [s, store] if records else [store]
        else:
            count, parameters = const(1), s.value.args[1:] if s.value.op == "drawn" else ()
            drawn, read = E("var", (s.name,), s.value.kind), E("load", (name, at), kind)
            moved = [s, Store(name, (at,), E("cast", (drawn,), I8) if whole else drawn)]
            if not records:
                moved = [Assign(s.name, E("copy", (read,), s.value.kind, s.value.low, s.value.high))]
        if not (records or whole) and any(x.op != "const" and x.kind.letter == "f" for x in parameters):
            raise NotUnderstood("the derivative of a random number in the parameters of its distribution", program.line)
        room = E("le", (add(at, count), out.arrays[name].dims[0]), BOOL, 0, 1)
        return [Check(room, "full" if records else "again"), *moved, Assign(f"{name}.at", add(at, count))]

    out.body = [*(Assign(f"{name}.at", const(0)) for name in places), *mapped(program.body, lambda e: e, one)]
    if records:
        out.body += [Store(COUNTS, (const(k),), at) for k, at in enumerate(places.values())]
    return out


class Words:
    """The state of an MT19937, by its memory: NumPy takes 0.1 ms to make a dict of its 624 words."""

    __slots__ = ("bits",)
    SIZE = 4 * 625

    def __init__(self, bits: onp.random.MT19937) -> None:
        self.bits = bits

    @property
    def state(self) -> Any:
        return ctypes.string_at(self.bits.ctypes.state_address, self.SIZE)

    @state.setter
    def state(self, state: Any) -> None:
        ctypes.memmove(self.bits.ctypes.state_address, state, self.SIZE)


@functools.cache
def words_lie_first() -> bool:
    """Whether the memory of an MT19937 is its words and its position, as far as NumPy itself says."""
    bits = onp.random.MT19937(0)
    onp.random.Generator(bits).random()
    held = bits.state["state"]
    return (
        ctypes.string_at(bits.ctypes.state_address, Words.SIZE)
        == held["key"].tobytes() + onp.int32(held["pos"]).tobytes()
    )


def fill(drawn: Any, address: int, count: int, *given: Any) -> None:
    """Numbers that a method draws at once, to an address. Raises ValueError where they are no numbers of 8 bytes."""
    x = drawn(*given, size=count)
    if x.dtype.itemsize != 8:
        raise ValueError(x.dtype)
    ctypes.memmove(address, x.ctypes.data, x.nbytes)


class Streams:
    """The streams of one run of a program, and what it is given for them.

    there    what lies at the sources of what the program reads
    seconds  what compiled code took
    known    whether they are NumPy's, with NumPy's methods: else Python runs the loop
    """

    def __init__(self, program: Program, there: dict) -> None:
        self.values: dict[str, int] = {}
        self.methods: list[Any] = []  # alive as long as compiled code may call them
        self.states: dict[int, Any] = {}
        self.locks: dict[int, Any] = {}
        self.before: list[tuple[Any, Any]] = []
        self.seconds, self.known = 0.0, True
        for (source, base, method), names in program.draws.items():
            stream = STREAM if source is None else there[source]
            legacy = base is onp.random.RandomState
            bits = stream._bit_generator if legacy else stream.bit_generator
            method, many = method.removesuffix("[]"), method.endswith("[]")
            replaced = not PARAMETERS.keys().isdisjoint(getattr(stream, "__dict__", ()))
            if replaced or not isinstance(bits, onp.random.BitGenerator):
                self.known = False
                return
            if legacy and method not in KEEPING_NO_NORMAL:
                self.states[id(stream)] = Legacy(stream)
            words = isinstance(bits, onp.random.MT19937) and words_lie_first()
            self.states[id(bits)] = Words(bits) if words else bits
            self.locks[id(bits)] = bits.lock
            if method in ("", "word"):
                function = bits.ctypes.next_uint32 if method else bits.ctypes.next_double
                function = ctypes.cast(function, ctypes.c_void_p).value
                self.values |= dict(zip(names, (function, bits.ctypes.state_address)))
                continue
            uniform = "random_sample" if legacy else "random"
            name = uniform if method in UNIFORM else BY_ANOTHER.get(method, method)
            drawn = getattr(base, name).__get__(stream)
            self.methods.append(functools.partial(fill, drawn) if many else drawn)
            self.values[names[0]] = id(self.methods[-1])

    def __enter__(self) -> None:
        for lock in self.locks.values() if DIRECT else ():
            lock.acquire()
        self.before = [(x, x.state) for x in self.states.values()]
        self.seconds = perf_counter()

    def __exit__(self, *_: Any) -> None:
        self.seconds = perf_counter() - self.seconds
        for lock in self.locks.values() if DIRECT else ():
            lock.release()

    def restore(self) -> None:
        """Set the streams back to where they were when the run began: what was drawn is drawn again."""
        for x, was in self.before:
            x.state = was
