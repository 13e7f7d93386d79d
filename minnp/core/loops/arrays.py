"""Arrays in loops: elements and views of them, and expressions of whole arrays, which become inner loops."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from .ir import (
    BOOL,
    INT,
    Alloc,
    Array,
    Assign,
    Check,
    E,
    For,
    If,
    Kind,
    Permute,
    Store,
    View,
    const,
    expressions,
    statements,
    walk,
)
from .operations import OLD, place, result_kind
from .warned import Noting, risky

LONGEST = 2**40
BLOCK = 512  # elements of a mask, one of which may settle what is asked of all
ONE = const(1)  # in the place of a slice's end: one item
ELSEWHERE = object()  # the `where` of an array of which an element is computed from others than that in its place


class Lazy:
    """An array expression [dims]: `at(index)` is an element, and emits what computes it. `reads`: the arrays in it."""

    def __init__(self, dims: Sequence[E], kind: Kind, at: Callable[[list[E]], E], reads: list[Array]) -> None:
        self.dims, self.kind, self.at, self.reads = list(dims), kind, at, reads

    @property
    def ndim(self) -> int:
        return len(self.dims)


class Masked(Lazy):
    """base[mask] and functions of such, as yet in no memory: `at(index)` is the element that the mask chooses there.

    when   how many writes came before it: it must be used before the next one
    """

    def __init__(self, count: E, kind: Kind, at: Callable, reads: list[Array], mask: Array, when: int) -> None:
        super().__init__([count], kind, at, reads)
        self.mask, self.when = mask, when


def elsewhere(reads: list[Array]) -> list[Array]:
    """These arrays as what a sum over an axis, or a product, reads: an element needs others than that in its place."""
    found = [copy.copy(r) for r in reads]
    for r in found:
        r.where = ELSEWHERE
    return found


def whole(e: E) -> bool:
    """Whether a number is an integer, whichever way the program took."""
    return e.kind.letter in "iu" and e.kind.code != "u8" and all(k.letter in "iu" for k in e.kinds)


class Arrays(Noting):
    """Emits what is done with arrays."""

    def array(self, kind: Kind, ndim: int, root: str, what: str = "v", where: Any = None) -> Array:
        found = Array(self.fresh(what), kind, ndim, root, where)
        self.program.arrays[found.name] = found
        return found

    # -------------------------------------------------------------- indices
    def place(self, i: E, array: Array, axis: int) -> E:
        """An index as the place that it means; checked."""
        if not whole(i):
            raise self.fail(f"an index that is a {i.kind}")
        i, dim = self.temporary(self.cast(i, INT)), array.dims[axis]
        if dim.op == "const" and i.low >= 0 and i.high < dim.low:
            return i
        self.check(E("inside", (i, dim), BOOL), "index", (i, const(axis), dim), (i, dim))
        return i if i.low >= 0 else E("wrap", (i, dim), INT, 0, LONGEST)

    def section(self, s: tuple, array: Array, axis: int) -> tuple[E, E, E]:
        """(start, length, step) of start:stop:step, as Python clips them."""
        start, stop, step = s
        if stop is ONE:
            dim, start = array.dims[axis], self.temporary(self.cast(start, INT))
            if not whole(start):
                raise self.fail(f"a slice from a {start.kind}")
            if start.low < 0:
                self.check(E("ge", (start, const(0)), BOOL, 0, 1))
            self.check(E("lt", (start, dim), BOOL, 0, 1))
            return E("copy", (start,), INT, 0, LONGEST), const(1), const(1)
        step = const(1) if step is None else self.frozen(self.cast(step, INT))
        if step.low <= 0 and (step.op != "const" or step.args[0] == 0):
            self.check(E("gt", (step, const(0)), BOOL, 0, 1))
            step = self.temporary(E("copy", (step,), INT, 1, max(step.high, 1)))
        dim = array.dims[axis]
        by = step.args[0] if step.op == "const" else step.low
        least, most = (const(0), dim) if by > 0 else (const(-1), self.binary("sub", dim, const(1)))
        ends = []
        for end, default in ((start, least if by > 0 else most), (stop, most if by > 0 else least)):
            if end is None:
                ends.append(default)
                continue
            if not whole(end):
                raise self.fail(f"a slice up to a {end.kind}")
            end = self.temporary(self.cast(end, INT))
            if end.low < 0:
                behind = self.binary("add", self.clip(end, const(-LONGEST), const(LONGEST)), dim)
                end = self.temporary(
                    E(
                        "select",
                        (E("lt", (end, const(0)), BOOL, 0, 1), behind, end),
                        INT,
                        min(behind.low, 0),
                        max(behind.high, end.high),
                    )
                )
            ends.append(self.clip(end, least, most))
        a, b = ends
        span = self.binary("sub", b, a) if by > 0 else self.binary("sub", a, b)
        size = step if step.op != "const" else const(abs(by))
        if repr(size) != "1":
            more = self.binary("add", span, self.binary("sub", size, const(1)))
            span = self.binary("floordiv", self.temporary(more), size)
        length = self.greatest(self.temporary(span), const(0))
        if length.high == 1 and length.op != "const":  # one, or none, which Python does
            self.check(E("eq", (length, const(1)), BOOL, 0, 1))
            length = const(1)
        return a, length, step

    def index(self, array: Array, parts: list) -> E | Array | Lazy:
        """array[parts]: each an integer, a (start, stop, step) tuple, None, or Ellipsis."""
        spec, dims = self.spec(array, parts)
        if not dims and Ellipsis not in parts:
            self.program.elements = True
            return self.load(array, [p[1] for p in spec])
        where = (array.name, self.versions.get(array.name, 0), tuple(map(repr, spec)))
        view = self.array(array.kind, len(dims), array.root, where=where)
        for axis, d in enumerate(dims):
            if d is not None and d.op == "const":
                view.dims[axis] = d
        self.emit(View(view.name, array.name, spec))
        return view

    def spec(self, array: Array, parts: list) -> tuple[tuple, list]:
        """(what a View of the array has for an index, the lengths of its axes where they are known)."""
        given = sum(p is not None and p is not Ellipsis for p in parts)
        if given > array.ndim:
            raise self.fail("too many indices")
        if Ellipsis not in parts:
            parts = [*parts, Ellipsis]
        k = parts.index(Ellipsis)
        parts = [*parts[:k], *[(None, None, None)] * (array.ndim - given), *parts[k + 1 :]]
        spec, dims, axis = [], [], 0
        for p in parts:
            if p is None:
                spec.append(("new",))
                dims.append(const(1))
                continue
            if isinstance(p, E):
                spec.append(("index", self.place(p, array, axis)))
            else:
                whole = p == (None, None, None)
                start, length, step = (const(0), array.dims[axis], const(1)) if whole else self.section(p, array, axis)
                spec.append(("slice", start, length, step))
                dims.append(length)
            axis += 1
        return tuple(spec), dims

    def load(self, array: Array, index: list[E]) -> E:
        kind = array.kind
        return self.temporary(E("load", (array.name, *index), kind))

    def element(self, array: Array, index: list[E]) -> E:
        """An element at places that lie inside."""
        return self.load(array, index)

    def store(self, array: Array, index: list[E], value: E) -> None:
        self.program.elements = True
        self.emit(Store(array.name, tuple(index), self.stored(value, array.kind)))
        self.written(array)

    def stored(self, value: E, kind: Kind) -> E:
        """A number as an element of an array: NumPy's cast, and what it refuses."""
        whole = kind.letter in "iu" and all(k.letter in "iub" for k in value.kinds)
        if len(value.kinds) > 1 and kind.letter not in "fcb" and not whole:
            raise self.fail(f"a number of several types stored in an array of {kind}")
        if value.kind.letter == "c" and kind.letter != "c":
            raise self.fail("a complex number stored in an array of real ones")
        if value.kind.letter == "f" and kind.letter in "iu":
            value = self.temporary(value)
            # those that are cut off to what the dtype holds
            make, found, most = value.kind.dtype.type, onp.iinfo(kind.dtype), onp.finfo(value.kind.dtype)
            low, high = max(make(found.min), most.min), onp.nextafter(make(float(found.max) + 1), make(0))
            self.check(E("within", (value, const(low, value.kind), const(high, value.kind)), BOOL))
        if (value.kind.python or len(value.kinds) > 1) and value.kind.letter in "iu" and kind.letter in "iu":
            found = onp.iinfo(kind.dtype)
            if value.low < found.min or value.high > found.max:
                value = self.temporary(value)
                self.check(E("within", (value, const(int(found.min)), const(min(int(found.max), 2**63 - 1))), BOOL))
        elif not OLD and value.kind.letter in "iu" and kind.letter == "i":  # NumPy's own into unsigned ones wrap
            found = onp.iinfo(kind.dtype)
            if value.low < found.min or value.high > found.max:
                value = self.temporary(value)
                low = int(found.min) if value.kind.letter == "i" else 0
                ends = const(low, value.kind), const(int(found.max), value.kind)
                self.check(E("within", (value, *ends), BOOL))
        if kind.letter == "b":
            return self.truth(value)
        return self.cast(value, kind)

    def written(self, array: Array) -> None:
        self.writes += 1
        roots = self.roots(array)
        for i, given in enumerate(self.program.inputs):
            if given.name in roots:
                self.program.inputs[i] = given._replace(written=True)

    # -------------------------------------------------------------- array expressions
    def lazy(self, x: Any) -> Lazy:
        if isinstance(x, Masked):
            x = self.packed(x)
        if isinstance(x, Lazy):
            return x
        if isinstance(x, Array):
            return Lazy(x.dims, x.kind, lambda index, x=x: self.element(x, index), [x])
        if not isinstance(x, E):
            raise self.fail("an object where an array, or a number, was expected")
        return Lazy([], x.kind, lambda index: x, [])

    def broadcast(self, given: list[Lazy]) -> list[E]:
        """The lengths that arrays have together. What is not seen to be 1 is taken to be alike, and checked."""
        ndim = max(g.ndim for g in given)
        dims: list[E] = []
        for axis in range(-ndim, 0):
            here = [g.dims[axis] for g in given if g.ndim >= -axis]
            long = [d for d in here if not (d.op == "const" and d.args[0] == 1)]
            dims.append(long[0] if long else const(1))
            for d in long[1:]:
                self.alike(long[0], d)
        return dims

    def alike(self, a: E, b: E) -> None:
        if repr(a) != repr(b):
            self.check(E("eq", (a, b), BOOL, 0, 1))

    def within(self, g: Lazy, index: list[E]) -> list[E]:
        """The index of an operand, for one of the whole."""
        index = index[len(index) - g.ndim :] if g.ndim else []
        return [const(0) if d.op == "const" and d.args[0] == 1 else i for d, i in zip(g.dims, index)]

    def elementwise(self, function: Any, compute: Callable[[list[E]], E], given: list) -> E | Lazy:
        """A function of numbers, of arrays element by element. `function`: NumPy's, by which the dtype is told. Arrays
        without axes are numbers here: their result is one."""
        given = [self.lazy(g).at([]) if isinstance(g, (Array, Lazy)) and not g.ndim else g for g in given]
        if all(isinstance(g, E) for g in given):
            return compute(given)
        given = [g if not isinstance(g, E) else self.frozen(g) for g in given]
        masks = [g for g in given if not isinstance(g, E)]
        masked = masks[0] if all(self.same_mask(g, masks[0]) for g in masks) else None
        lazies = [self.lazy(g) if masked is None or isinstance(g, E) else g for g in given]
        arrays = tuple(not isinstance(g, E) for g in given)
        each = [sorted(g.kinds, key=place) if isinstance(g, E) else [g.kind] for g in given]
        found = {result_kind(function, kinds, arrays) for kinds in itertools.product(*each)}
        if len(found) > 1:
            raise self.fail("an array and a number that is of several types")
        (kind,) = found
        for g in given:
            if isinstance(g, E) and g.kind.letter in "iu":
                self.in_range(g, kind)
        dims = self.broadcast(lazies) if masked is None else masked.dims
        # numbers take part as NumPy's: no check of Python's is theirs
        operand = [
            self.cast(g, Kind(kind.code if kind.letter != "b" else g.kind.code)) if isinstance(g, E) else None
            for g in given
        ]

        named, here = self.named, self.here()

        def at(index: list[E]) -> E:
            values = []
            for lazy, fixed in zip(lazies, operand):
                place = index if masked is not None else self.within(lazy, index)
                values.append(lazy.at(place) if fixed is None else fixed)
            with self.saying("", named, here):
                out = compute(values)
                if out.kind.code != kind.code:
                    out = self.cast(out, kind)
                return self.temporary(out if out.kind == kind else E("copy", (out,), kind, out.low, out.high))

        reads = [r for g in lazies for r in g.reads]
        if masked is not None:
            return Masked(masked.dims[0], kind, at, reads, masked.mask, masked.when)
        return Lazy(dims, kind, at, reads)

    # -------------------------------------------------------------- under a mask
    def or_ones(self, base: Array, mask: Array) -> Array:
        """What a mask chooses, and ones elsewhere, of which NumPy has nothing to say: in memory of its own, since LLVM
        sees that nobody reads the ones."""
        made = self.new(mask.dims, base.kind, False)

        def one(index: list[E]) -> None:
            chosen = (self.truth(self.element(mask, index)), self.element(base, index), const(1.0, base.kind))
            self.emit(Store(made.name, tuple(index), E("select", chosen, base.kind)))

        self.over(mask.dims, one)
        return made

    def under(self, x: Masked, body: Callable[[list[E], E], None], base: Array | None = None) -> None:
        """body(index, element) for every element that is chosen, in order. `base`: what body writes by vector
        instructions: it is written as it was where nothing is chosen."""

        def one(index: list[E]) -> None:
            test = self.temporary(self.truth(self.element(x.mask, index)))
            with self.into([]) as chosen:
                body(index, x.at(index))
            if base is not None and all(type(s) is Assign for s in chosen[:-1]):
                self.out.extend(chosen[:-1])
                place, value = chosen[-1].index, chosen[-1].value
                either = E("select", (test, value, self.element(base, index)), base.kind)
                self.emit(Store(base.name, place, either))
                return
            self.emit(If(test, chosen, []))

        self.over(x.mask.dims, one)

    def packed(self, x: Masked) -> Array:
        """The elements that a mask chooses, one after the other."""
        if x.when != self.writes:
            raise self.fail("elements that a mask chose, used after a write")
        made, name = self.new(x.dims, x.kind, False), self.fresh("count")
        self.program.kinds[name] = INT
        here = E("var", (name,), INT, 0, LONGEST)
        self.emit(Assign(name, const(0)))

        def keep(index: list[E], e: E) -> None:
            self.emit(Store(made.name, (here,), e))
            self.emit(Assign(name, E("add", (here, const(1)), INT, 0, LONGEST)))

        self.under(x, keep)
        return made

    def sum_under(self, x: Masked, acc: E) -> None:
        """acc += each element that is chosen, of floats, by vector instructions where nothing in it may fail."""

        def one(index: list[E]) -> None:
            test = self.temporary(self.truth(self.element(x.mask, index)))
            with self.into([]) as inner:
                e = self.temporary(self.cast(x.at(index), acc.kind))
            fine = all(type(s) is Assign for s in inner)
            if fine:
                self.out.extend(inner)
                e = E("select", (test, e, const(0.0, acc.kind)), acc.kind)
            add = Assign(acc.args[0], E("add", (acc, e), acc.kind))
            self.emit(add if fine else If(test, [*inner, add], []))

        self.over(x.mask.dims, one, exact=False)

    def same_mask(self, a: Any, b: Any) -> bool:
        """Whether one mask chooses both, and nothing was written since."""
        if not isinstance(a, Masked) or not isinstance(b, Masked):
            return False
        return a.mask is b.mask and a.when == b.when == self.writes

    def over(self, dims: list[E], body: Callable[[list[E]], None], exact: bool = True) -> None:
        """Loops over all indices, the last axis innermost."""
        if not dims:
            return body([])

        def nest(rest: list[E], index: list[E]) -> None:
            if not rest:
                body(index)
                return
            name = self.fresh("k")
            self.program.kinds[name] = INT
            inner: list = []
            at = E("var", (name,), INT, 0, LONGEST)
            with self.into(inner):
                nest(rest[1:], [*index, at])
            self.emit(For(name, const(0), rest[0], 1, inner, exact))

        nest([self.temporary(d) for d in dims], [])

    def search(self, dims: list[E], body: Callable[[list[E]], None], over: E) -> None:
        """`over`, but for blocks of the last axis that come when it is over: nobody can tell whether they were looked
        at, or all are looked at."""

        def row(index: list[E]) -> None:
            first, name = self.fresh("k"), self.fresh("k")
            self.program.kinds |= dict.fromkeys((first, name), INT)
            begin, at = (E("var", (k,), INT, 0, LONGEST) for k in (first, name))
            with self.into([]) as inner:
                body([*index, at])
            met = [x for s in statements(inner) for e in expressions(s) for x in walk(e)]
            if any(type(s) is Check for s in statements(inner)) or any(map(risky, met)):
                self.emit(For(name, const(0), last, 1, inner, False))
                return
            with self.into([]) as block:
                end = self.temporary(E("add", (begin, const(BLOCK)), INT, 0, LONGEST))
                self.emit(For(name, begin, self.least(end, last), 1, inner, False))
            self.emit(For(first, const(0), last, BLOCK, [If(over, [], block)], False))

        last = self.temporary(dims[-1])
        self.over(dims[:-1], row)

    def fill(self, target: Array, value: Any, combine: Callable[[E, E], E] | None = None) -> None:
        """target[...] = value, or what combine(old element, new one) gives."""
        if isinstance(value, E):
            value = self.frozen(value)
            if combine is None:
                value = self.frozen(self.stored(value, target.kind))
        lazy = self.lazy(value)
        if lazy.ndim > target.ndim:
            raise self.fail("more axes than where they are written")
        for d, t in zip(reversed(lazy.dims), reversed(target.dims)):
            if not (d.op == "const" and d.args[0] == 1):
                self.alike(d, t)
        if lazy.kind.letter == "c" and target.kind.letter != "c":
            raise self.fail("complex numbers written to real ones")
        read = [r for r in lazy.reads if self.may_overlap(r, target)]
        if any(r.root == target.root for r in read):
            lazy, read = self.lazy(self.materialised(lazy)), []

        def body(lazy: Lazy, index: list[E]) -> None:
            e = lazy.at(self.within(lazy, index))
            if combine is not None:
                e = combine(self.element(target, index), e)
            self.emit(Store(target.name, tuple(index), self.unsafe(e, target.kind)))

        self.written(target)
        if not read:
            return self.over(target.dims, lambda index: body(lazy, index))
        apart: E = const(True)  # what variables stand for is told when it runs
        for name in dict.fromkeys(r.name for r in read):
            one = E("apart", (target.name, name), BOOL, 0, 1)
            apart = one if apart.op == "const" else E("and", (apart, one), BOOL, 0, 1)
        with self.into([]) as direct:
            self.over(target.dims, lambda index: body(lazy, index))
        with self.into([]) as by_copy:
            made = self.lazy(self.materialised(lazy))
            self.over(target.dims, lambda index: body(made, index))
        self.emit(If(apart, direct, by_copy))

    def may_overlap(self, read: Array, target: Array) -> bool:
        """Whether an array may show memory of another one otherwise than element by element alike."""
        if read.where is ELSEWHERE:
            return bool(self.roots(read) & self.roots(target))
        if read.name == target.name:
            return False
        if read.root == target.root and read.where is not None and read.where == target.where:
            return read.ndim != target.ndim
        return bool(self.roots(read) & self.roots(target))

    def roots(self, array: Array) -> frozenset[str]:
        """The roots of all arrays that one may be."""
        return self.program.moving.get(array.root, frozenset((array.root,)))

    def unsafe(self, e: E, kind: Kind) -> E:
        """The cast of array elements, which refuses nothing."""
        if kind.letter == "b":
            return self.truth(e)
        if e.kind.letter == "f" and kind.letter in "iu":
            raise self.fail("floats written to integers")
        return self.cast(e, kind)

    def materialised(self, x: Lazy, zero: bool = False) -> Array:
        """New memory that holds an array expression."""
        if isinstance(x, Masked):
            return self.packed(x)
        made = self.new(x.dims, x.kind, zero)

        def body(index: list[E]) -> None:
            self.emit(Store(made.name, tuple(index), x.at(index)))

        self.over(made.dims, body)
        return made

    def new(self, dims: Sequence[E], kind: Kind, zero: bool, name: str = "") -> Array:
        if not name:  # after its line: what is known of roots holds from pass to pass
            self.news[self.line] = number = self.news.get(self.line, 0) + 1
            name = f"new.{self.line}.{number}"
        made = self.program.arrays[name] = Array(name, kind, len(dims), name)
        dims = tuple(self.temporary(d) for d in dims)
        for axis, d in enumerate(dims):
            if d.low < 0:
                self.check(E("ge", (d, const(0)), BOOL, 0, 1))
            if d.op == "const":
                made.dims[axis] = d
        self.emit(Alloc(made.name, dims, zero))
        return made

    def transposed(self, x: Array, axes: tuple | None = None) -> Array:
        axes = tuple(reversed(range(x.ndim))) if axes is None else axes
        out = self.array(x.kind, x.ndim, x.root, where=(x.name, self.versions.get(x.name, 0), axes))
        for k, axis in enumerate(axes):
            if x.dims[axis].op == "const":
                out.dims[k] = x.dims[axis]
        self.emit(Permute(out.name, x.name, axes))
        return out

    # -------------------------------------------------------------- sums and products
    def reduce(self, name: str, x: Lazy, axes: Sequence[int] | None = None) -> E | Lazy:
        """np.sum and its like, over these axes, or all."""
        with self.saying(None):
            return self.reduction(name, x, axes)

    def reduction(self, name: str, x: Lazy, axes: Sequence[int] | None) -> E | Lazy:
        axes = list(range(x.ndim)) if axes is None else list(axes)
        if isinstance(x, Masked) and (x.kind.letter != "f" or name not in ("sum", "mean") or x.when != self.writes):
            x = self.lazy(x)
        if name in ("var", "std"):
            return self.spread(name, x, axes)
        kind = result_kind(getattr(onp, name), (x.kind,), (True,))
        if len(axes) < x.ndim:
            source = x if len(x.reads) <= 1 else self.lazy(self.materialised(x))
            if axes[0] == 0 and name in ("sum", "mean", "prod") and kind.letter in "iufc":
                return self.by_rows(name, source, axes, kind)
            left = [k for k in range(x.ndim) if k not in axes]

            def at(index: list[E]) -> E:
                fixed = dict(zip(left, index))

                def element(inner: list[E]) -> E:
                    own = {**fixed, **dict(zip(axes, inner))}
                    return source.at([own[k] for k in range(x.ndim)])

                return self.reduce(name, Lazy([source.dims[k] for k in axes], source.kind, element, []))

            return Lazy([x.dims[k] for k in left], kind, at, elsewhere(x.reads))
        out = self.fresh("acc")
        count: Any = None
        if name == "mean":
            count = self.count_of(x, axes)
        if name in ("min", "max", "argmin", "argmax"):
            if x.kind.letter not in "iuf" or (name.startswith("arg") and x.ndim > 1):
                raise self.fail(f"np.{name} of {x.kind}")
            return self.extreme(name, x, kind)
        if name in ("any", "all"):
            start = const(name == "all")
            op = "and" if name == "all" else "or"
            kind = Kind("b1")
            start = E("const", (name == "all",), kind, int(name == "all"), int(name == "all"))
        else:
            start = const(kind.dtype.type(name == "prod").item(), kind)
            op = "mul" if name == "prod" else "add"
        self.program.kinds[out] = kind
        self.emit(Assign(out, start))
        acc = E("var", (out,), kind)

        def body(index: list[E]) -> None:
            e = x.at(index)
            e = E("copy", (self.truth(e),), kind) if kind.letter == "b" else self.cast(e, kind)
            self.emit(Assign(out, E(op, (acc, e), kind)))

        if isinstance(x, Masked):
            self.sum_under(x, acc)
        elif name in ("any", "all") and x.dims:
            self.search(x.dims, body, acc if name == "any" else E("not", (acc,), BOOL, 0, 1))
        else:
            self.over(x.dims, body, exact=False)
        if count is not None:
            return self.temporary(E("div", (acc, self.cast(count, kind)), kind))
        return acc

    def count_of(self, x: Lazy, axes: Sequence[int]) -> E:
        """How many numbers a mean is of: some."""
        if x.kind.letter != "f":
            raise self.fail("a mean of what are no floats")
        count: E = const(1)
        for k in axes:
            count = self.temporary(self.binary("mul", count, x.dims[k]))
        if count.low < 1:
            self.check(E("gt", (count, const(0)), BOOL, 0, 1))
        return count

    def by_rows(self, name: str, x: Lazy, axes: list[int], kind: Kind) -> Lazy:
        """A sum over the first axis: row by row, as they lie in memory."""
        count = self.count_of(x, axes) if name == "mean" else None
        left = [k for k in range(x.ndim) if k not in axes]
        made = self.new([x.dims[k] for k in left], kind, name != "prod")
        if name == "prod":
            self.fill(made, const(1, Kind("i8", True)))

        def add(index: list[E]) -> None:
            place = tuple(index[k] for k in left)
            more = (self.element(made, list(place)), self.cast(x.at(index), kind))
            self.emit(Store(made.name, place, E("mul" if name == "prod" else "add", more, kind)))

        self.over(x.dims, add)
        if count is not None:
            done = self.lazy(made)
            by = self.frozen(self.cast(count, kind))

            def each(index: list[E]) -> E:
                with self.saying(None):
                    return self.temporary(E("div", (done.at(index), by), kind))

            return Lazy(made.dims, kind, each, [made])
        return self.lazy(made)

    def spread(self, name: str, x: Lazy, axes: list[int]) -> E | Lazy:
        """np.var and np.std."""
        if x.kind.letter != "f":
            raise self.fail(f"np.{name} of what are no floats")
        x = self.lazy(self.materialised(x)) if len(x.reads) != 1 else x
        mean = self.reduce("mean", x, axes)
        mean = self.frozen(mean) if isinstance(mean, E) else self.lazy(self.materialised(mean))
        left = [k for k in range(x.ndim) if k not in axes]

        def square(index: list[E]) -> E:
            middle = mean if isinstance(mean, E) else mean.at([index[k] for k in left])
            with self.saying(None):
                off = self.temporary(E("sub", (x.at(index), middle), x.kind))
                return self.temporary(E("mul", (off, off), x.kind))

        found = self.reduce("mean", Lazy(x.dims, x.kind, square, [*x.reads, *x.reads]), axes)
        if name == "var":
            return found

        def root(e: E) -> E:
            with self.saying(None):
                return self.temporary(E("sqrt", (self.temporary(e),), x.kind))

        if isinstance(found, E):
            return root(found)
        found = self.lazy(self.materialised(found))
        return Lazy(found.dims, x.kind, lambda index: root(found.at(index)), found.reads)

    def extreme(self, name: str, x: Lazy, kind: Kind) -> E:
        out, at = self.fresh("best"), self.fresh("at")
        self.program.vectors = True
        self.program.kinds[out], self.program.kinds[at] = x.kind, INT
        for d in x.dims:
            self.check(E("gt", (self.temporary(d), const(0)), BOOL, 0, 1))
        best, where = E("var", (out,), x.kind), E("var", (at,), I := Kind("i8"), 0, LONGEST)
        self.program.kinds[at] = I
        self.emit(Assign(out, x.at([const(0)] * x.ndim)))
        self.emit(Assign(at, E("const", (0,), I, 0, 0)))

        def body(index: list[E]) -> None:
            e = self.temporary(x.at(index))
            better = E("lt" if name.endswith("min") else "gt", (e, best), BOOL, 0, 1)
            if x.kind.letter == "f":  # a nan is the least and the most, and the first of them is found
                nan = E("and", (E("ne", (e, e), BOOL, 0, 1), E("eq", (best, best), BOOL, 0, 1)), BOOL, 0, 1)
                better = E("or", (better, nan), BOOL, 0, 1)
            then: list = [Assign(out, e)]
            if name.startswith("arg"):
                then.append(Assign(at, E("copy", (index[0],), I, 0, LONGEST)))
            self.emit(If(better, then, []))

        self.over(x.dims, body)
        return where if name.startswith("arg") else best

    def dot(self, a: Any, b: Any) -> E | Lazy:
        """a @ b of vectors, or of a matrix and a vector."""
        with self.saying(None):
            return self.product_of(a, b)

    def product_of(self, a: Any, b: Any) -> E | Lazy:
        given = a, b
        a, b = self.lazy(a), self.lazy(b)
        if (a.ndim, b.ndim) not in ((1, 1), (2, 1), (1, 2), (2, 2)):
            raise self.fail(f"a product of arrays of {a.ndim} and {b.ndim} axes")
        kind = result_kind(onp.matmul, (a.kind, b.kind), (True, True))
        if kind.letter not in "fc":
            raise self.fail("a product of integers")
        if a.ndim == b.ndim == 2:
            return self.lazy(self.product(*given, kind))
        if a.ndim + b.ndim > 2:
            line = lambda k, x, before, after: Lazy(
                [x.dims[1 if before else 0]], x.kind, lambda at: x.at([*before, *at, *after]), x.reads
            )
            # a vector that is an expression is computed once, not for every row
            a, b = (self.lazy(self.materialised(x)) if x.ndim == 1 and len(x.reads) != 1 else x for x in (a, b))
            self.alike(a.dims[-1], b.dims[0])
            if a.ndim == 2:
                reads = elsewhere([*a.reads, *b.reads])
                return Lazy([a.dims[0]], kind, lambda i: self.dot(line(0, a, i, []), b), reads)
            made = self.new([b.dims[1]], kind, True)  # row by row, as they lie in memory

            def add(index: list[E]) -> None:
                k, j = index
                x, y = self.cast(a.at([k]), kind), self.cast(b.at([k, j]), kind)
                more = E("add", (self.element(made, [j]), E("mul", (x, y), kind)), kind)
                self.emit(Store(made.name, (j,), more))

            self.over([a.dims[0], b.dims[1]], add, exact=False)
            return self.lazy(made)
        self.alike(a.dims[0], b.dims[0])
        out = self.fresh("acc")
        self.program.kinds[out] = kind
        self.emit(Assign(out, const(kind.dtype.type(0).item(), kind)))
        acc = E("var", (out,), kind)

        def body(index: list[E]) -> None:
            x, y = self.cast(a.at(index), kind), self.cast(b.at(index), kind)
            self.emit(Assign(out, E("add", (acc, E("mul", (x, y), kind)), kind)))

        self.over([a.dims[0]], body, exact=False)
        return acc
