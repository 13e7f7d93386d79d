"""NumPy's functions that make arrays of numbers and of other arrays, and those that show an array otherwise.

Each is a method np_NAME(args, kwargs); `frontend.py` looks for it by the function's name.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as onp

from .arrays import LONGEST, Lazy
from .chosen import EVERY, Chosen
from .ir import BOOL, F8, INT, WORD, Array, Assign, E, For, If, Kind, Reshape, Store, While, const, kind_of
from .operations import OLD, place, result_kind, sample


class Tup:
    """A tuple, or a list that nobody changes: as an index, a list is not its items. `source`: where one was found."""

    source: Any = None

    def __init__(self, items: list, listed: bool = False) -> None:
        self.items, self.listed = items, listed


class Static:
    """An object outside, known now: a module, a function, None, a string. `source`: where it was found, if what it
    holds may be others at the next call."""

    def __init__(self, value: Any, source: Any = None) -> None:
        self.value, self.source = value, source


SORTED = 1000  # items: NumPy sorts more of them in less time


class InColumns:
    """A list, or a dict, that is kept in columns: frontend.Growing. `axes`: of the arrays in it; 0 of numbers"""

    axes: int


def listed(*items: Any) -> onp.ndarray:
    return onp.array([x if onp.ndim(x) == 0 else x[0] for x in items])


class Building(Chosen):
    """Emits what makes arrays."""

    def arguments(self, names: str, args: list, kwargs: dict) -> list:
        """The values of these arguments; None for one that is not given, or None."""
        wanted = names.split()
        found = dict(zip(wanted, args), **kwargs)
        if len(args) > len(wanted) or not found.keys() <= {*wanted}:
            raise self.fail("these arguments of NumPy's")
        values = [found.get(n) for n in wanted]
        return [None if isinstance(v, Static) and v.value is None else v for v in values]

    def an_array(self, x: Any) -> Array:
        if isinstance(x, (Tup, InColumns)):
            return self.np_array([x], {})
        if not isinstance(x, (Array, Lazy)):
            raise self.fail("a number where an array was expected")
        return x if isinstance(x, Array) else self.materialised(x)

    def whole_number(self, x: Any, least: int | None = None) -> int:
        if not isinstance(x, E) or x.op != "const" or type(x.args[0]) is not int:
            raise self.fail("an axis, or a count, that is not in the source")
        return x.args[0]

    def dtype_of(self, x: Any) -> Kind:
        try:
            kind = kind_of(onp.empty(0, x.value if isinstance(x, Static) else object))
        except TypeError:
            kind = None
        if kind is None:
            raise self.fail("this dtype")
        return kind

    def np_result_type(self, args: list, kwargs: dict) -> Static:
        """np.result_type(...) of numbers, arrays and dtypes."""
        if kwargs or any(isinstance(x, E) and (len(x.kinds) > 1 or x.kind == WORD) for x in args):
            raise self.fail("np.result_type of these")
        if OLD and any(isinstance(x, E) or (isinstance(x, (Array, Lazy)) and not x.ndim) for x in args):
            raise self.fail("NumPy 1 promotes numbers by their values")
        found = []
        for x in args:
            if isinstance(x, (E, Array, Lazy)):
                found.append(sample(x.kind) if x.kind.python else x.kind.dtype)
            else:
                found.append(self.dtype_of(x).dtype)
        return Static(onp.result_type(*found))

    def length(self, x: Any) -> E:
        if not isinstance(x, E) or x.kind.letter not in "iu" or len(x.kinds) > 1:
            raise self.fail("a length that is no integer")
        return self.frozen(x if x.kind.python else self.as_python(x))

    # -------------------------------------------------------------- of numbers and arrays
    def np_array(self, args: list, kwargs: dict) -> Array:
        x, dtype = self.arguments("object dtype", args, kwargs)
        if type(x).__name__ == "Turns":
            return self.filled(x, dtype)
        if isinstance(x, InColumns):
            return self.array_of_list(x, dtype)
        if isinstance(x, (Array, Lazy)):
            if dtype is None:
                return self.materialised(self.lazy(x))
            return self.np_astype([x, dtype], {})
        if not isinstance(x, Tup) or not x.items:
            raise self.fail("np.array of this")
        if all(isinstance(i, Tup) for i in x.items):
            x = Tup([self.np_array([i], {}) for i in x.items])
        if all(isinstance(i, E) for i in x.items):
            each = [sorted(i.kinds, key=place) for i in x.items]
            kinds = {result_kind(listed, found) for found in itertools.product(*each)} if dtype is None else set()
            if len(kinds) > 1:
                raise self.fail("np.array of a number that is of several types")
            kind = next(iter(kinds)) if dtype is None else self.dtype_of(dtype)
            values = [self.frozen(self.stored(i, kind)) for i in x.items]
            out = self.new([const(len(values))], kind, False)
            for k, v in enumerate(values):
                self.emit(Store(out.name, (const(k),), v))
            return out
        return self.np_stack([x], {} if dtype is None else {"dtype": dtype})

    np_asarray = np_array

    def np_astype(self, args: list, kwargs: dict) -> Array:
        x, dtype = self.arguments("x dtype", args, kwargs)
        lazy, kind = self.lazy(x), self.dtype_of(dtype)
        if lazy.kind.letter == "c" and kind.letter != "c":
            raise self.fail("complex numbers made real")
        return self.materialised(Lazy(lazy.dims, kind, lambda index: self.unsafe(lazy.at(index), kind), lazy.reads))

    def arrays_of(self, x: Any) -> list[Array]:
        if not isinstance(x, Tup) or not x.items:
            raise self.fail("arrays joined that are no tuple")
        return [self.an_array(i) for i in x.items]

    def stack_of_list(self, x: Any, axis: Any, dtype: Any, end_to_end: bool) -> Array:
        """np.stack of a list of arrays that is kept in columns, or np.concatenate."""
        if not x.axes or (axis is not None and self.whole_number(axis)):
            raise self.fail("a list joined along another axis than the first")
        out = self.stacked(x, end_to_end)
        return out if dtype is None else self.np_astype([out, dtype], {})

    def np_stack(self, args: list, kwargs: dict) -> Array:
        x, axis, dtype = self.arguments("arrays axis dtype", args, kwargs)
        if isinstance(x, InColumns):
            return self.stack_of_list(x, axis, dtype, False)
        parts = self.arrays_of(x)
        at = 0 if axis is None else self.whole_number(axis) % (parts[0].ndim + 1)
        spread = [self.as_array(self.index(p, [*[EVERY] * at, None, ...])) for p in parts]
        return self.joined(spread, at, dtype)

    def np_concatenate(self, args: list, kwargs: dict) -> Array:
        x, axis, dtype = self.arguments("arrays axis dtype", args, kwargs)
        if isinstance(x, InColumns):
            return self.stack_of_list(x, axis, dtype, True)
        parts = self.arrays_of(x)
        return self.joined(parts, 0 if axis is None else self.whole_number(axis) % parts[0].ndim, dtype)

    np_concat = np_concatenate

    def np_hstack(self, args: list, kwargs: dict) -> Array:
        parts = self.arrays_of(*self.arguments("arrays", args, kwargs))
        return self.joined(parts, min(1, parts[0].ndim - 1), None)

    def np_vstack(self, args: list, kwargs: dict) -> Array:
        (x,) = self.arguments("arrays", args, kwargs)
        if isinstance(x, InColumns):
            return self.stack_of_list(x, None, None, x.axes != 1)
        parts = self.arrays_of(x)
        rows = [self.as_array(self.index(p, [None, ...])) if p.ndim == 1 else p for p in parts]
        return self.joined(rows, 0, None)

    def as_array(self, x: Any) -> Array:
        assert isinstance(x, Array)
        return x

    def joined(self, parts: list[Array], axis: int, dtype: Any) -> Array:
        if len({p.ndim for p in parts}) > 1 or not parts[0].ndim:
            raise self.fail("arrays joined that have other numbers of axes")
        kind = result_kind(listed, tuple(p.kind for p in parts), (True,) * len(parts))
        kind = kind if dtype is None else self.dtype_of(dtype)
        ends = [const(0)]
        for p in parts:
            ends.append(self.temporary(self.binary("add", ends[-1], p.dims[axis])))
            for k, (a, b) in enumerate(zip(p.dims, parts[0].dims)):
                if k != axis:
                    self.alike(a, b)
        out = self.new([ends[-1] if k == axis else d for k, d in enumerate(parts[0].dims)], kind, False)
        for p, start, stop in zip(parts, ends, ends[1:]):
            self.fill(self.as_array(self.index(out, [*[EVERY] * axis, (start, stop, None), ...])), p)
        return out

    def np_append(self, args: list, kwargs: dict) -> Array:
        x, more, axis = self.arguments("arr values axis", args, kwargs)
        if axis is not None:
            return self.np_concatenate([Tup([x, more]), axis], {})
        flat = lambda a: self.np_array([Tup([a])], {}) if isinstance(a, E) else self.np_ravel([a], {})
        return self.np_concatenate([Tup([flat(x), flat(more)])], {})

    def np_diff(self, args: list, kwargs: dict) -> Any:
        (x,) = self.arguments("x", args, kwargs)
        x = self.an_array(x)
        if x.ndim != 1 or x.kind.letter not in "iuf":
            raise self.fail("np.diff of this")
        a, b = (self.as_array(self.index(x, [part])) for part in ((const(1), None, None), (None, const(-1), None)))
        return self.elementwise(onp.subtract, lambda v: self.binary("sub", v[0], v[1]), [a, b])

    # -------------------------------------------------------------- of numbers
    def np_ndarray(self, args: list, kwargs: dict) -> Array:
        return self.made("empty", args, kwargs)

    def np_arange(self, args: list, kwargs: dict) -> Array:
        if kwargs or not 1 <= len(args) <= 3:
            raise self.fail("np.arange of these arguments")
        kinds = [a.kind.code if isinstance(a, E) and len(a.kinds) == 1 else "" for a in args]
        if "f8" in kinds and {*kinds} <= {"f8", "i8"}:
            return self.arange_of_floats(args)
        ends = [self.length(a) for a in args]
        start, stop, step = {1: [const(0), *ends, const(1)], 2: [*ends, const(1)], 3: ends}[len(ends)]
        by = self.whole_number(step)
        if by <= 0:
            raise self.fail("np.arange with this step")
        span = self.binary("floordiv", self.binary("add", self.binary("sub", stop, start), const(by - 1)), const(by))
        out = self.new([self.greatest(self.temporary(span), const(0))], Kind("i8"), False)

        def one(index: list[E]) -> None:
            value = self.binary("add", start, self.binary("mul", index[0], step))
            self.emit(Store(out.name, (index[0],), self.cast(value, Kind("i8"))))

        self.over(out.dims, one)
        return out

    def arange_of_floats(self, args: list[E]) -> Array:
        """np.arange of ends of which one is a float: its second number is start + step, and the rest are apart by that
        less start."""
        kind = Kind("f8")
        zero, one = const(0.0, kind), const(1.0, kind)
        ends = [self.frozen(self.cast(a, kind)) for a in args]
        start, stop, step = {1: [zero, *ends, one], 2: [*ends, one], 3: ends}[len(ends)]
        self.check(E("ne", (step, zero), BOOL, 0, 1))
        count = E("ceil", (E("div", (E("sub", (stop, start), kind), step), kind),), kind)
        count = self.temporary(count)
        self.check(E("within", (count, const(-(2.0**40), kind), const(2.0**40, kind)), BOOL))
        count = self.greatest(self.temporary(E("cast", (count,), INT, -(2**40), 2**40)), const(0))
        out = self.new([self.frozen(count)], kind, False)
        second = self.temporary(E("add", (start, step), kind))
        apart = self.temporary(E("sub", (second, start), kind))

        def put(index: list[E]) -> None:
            far = E("add", (start, E("mul", (self.cast(index[0], kind), apart), kind)), kind)
            at = E("select", (E("eq", (index[0], const(1)), BOOL, 0, 1), second, far), kind)
            self.emit(Store(out.name, (index[0],), at))

        self.over(out.dims, put)
        return out

    def np_linspace(self, args: list, kwargs: dict) -> Array:
        start, stop, num, endpoint = self.arguments("start stop num endpoint", args, kwargs)
        ends = [start, stop]
        plain = all(isinstance(e, E) and len(e.kinds) == 1 and e.kind.code in ("f8", "i8") for e in ends)
        if not plain or (endpoint is None and "endpoint" in kwargs) or repr(endpoint) not in ("None", "True", "False"):
            raise self.fail("np.linspace of these arguments")
        kind, whole = Kind("f8"), repr(endpoint) != "False"
        count = self.length(const(50) if num is None else num)
        start, stop = (self.frozen(self.cast(e, kind)) for e in ends)
        parts = self.binary("sub", count, const(1)) if whole else count
        parts = self.temporary(self.cast(self.greatest(self.temporary(parts), const(1)), kind))
        delta = self.temporary(E("sub", (stop, start), kind))
        step = self.temporary(E("div", (delta, parts), kind))
        none = self.temporary(E("eq", (step, const(0.0, kind)), BOOL, 0, 1))  # where it underflows
        out = self.new([count], kind, False)

        def one(index: list[E]) -> None:
            k = self.temporary(self.cast(index[0], kind))
            fine = E("mul", (E("div", (k, parts), kind), delta), kind)
            far = E("select", (none, fine, E("mul", (k, step), kind)), kind)
            self.emit(Store(out.name, tuple(index), E("add", (far, start), kind)))

        self.over(out.dims, one)
        if whole:
            last = Store(out.name, (self.binary("sub", count, const(1)),), stop)
            self.emit(If(E("gt", (count, const(1)), BOOL, 0, 1), [last], []))
        return out

    def np_eye(self, args: list, kwargs: dict) -> Array:
        n, m = self.arguments("n m", args, kwargs)
        rows = self.length(n)
        columns = rows if m is None else self.length(m)
        out = self.new([rows, columns], Kind("f8"), True)
        one = lambda index: self.emit(Store(out.name, (index[0], index[0]), const(1.0, Kind("f8"))))
        self.over([self.least(rows, columns)], one)
        return out

    def np_identity(self, args: list, kwargs: dict) -> Array:
        return self.np_eye(self.arguments("n", args, kwargs), {})

    # -------------------------------------------------------------- products
    def outer(self, function: Any, compute: Any, a: Any, b: Any) -> E | Lazy:
        """function.outer(a, b)"""
        a, b = self.evaluated(a), self.evaluated(b)
        column = Lazy([*a.dims, *[const(1)] * b.ndim], a.kind, lambda index: a.at(index[: a.ndim]), a.reads)
        return self.elementwise(function, compute, [column, b])

    def np_outer(self, args: list, kwargs: dict) -> Any:
        a, b = (self.np_ravel([x], {}) for x in self.arguments("a b", args, kwargs))
        return self.outer(onp.multiply, lambda v: self.binary("mul", v[0], v[1]), a, b)

    def np_cross(self, args: list, kwargs: dict) -> Array:
        a, b = (self.an_array(x) for x in self.arguments("a b", args, kwargs))
        kind = result_kind(onp.multiply, (a.kind, b.kind), (True, True))
        if a.ndim != 1 or b.ndim != 1 or kind.letter not in "fc":
            raise self.fail("np.cross of other arrays than two vectors of floats")
        for x in (a, b):
            self.alike(x.dims[0], const(3))
        u, v = ([self.temporary(self.cast(self.element(x, [const(k)]), kind)) for k in range(3)] for x in (a, b))
        out = self.new([const(3)], kind, False)
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            products = E("mul", (u[i], v[j]), kind), E("mul", (u[j], v[i]), kind)
            self.emit(Store(out.name, (const(k),), E("sub", products, kind)))
        return out

    def np_inner(self, args: list, kwargs: dict) -> Any:
        a, b = (self.lazy(x) for x in self.arguments("a b", args, kwargs))
        if a.ndim != 1 or b.ndim != 1:
            raise self.fail("np.inner of other arrays than vectors")
        return self.dot(a, b)

    def np_vdot(self, args: list, kwargs: dict) -> Any:
        a, b = (self.np_ravel([x], {}) for x in self.arguments("a b", args, kwargs))
        return self.dot(self.unary_function("conj", a) if a.kind.letter == "c" else a, b)

    def product(self, a: Any, b: Any, kind: Kind) -> Array:
        """a @ b of two matrices, row by row; expressions, and numbers of other types, are computed once."""
        a, b = (self.lazy(x if isinstance(x, Array) and x.kind == kind else self.of_kind(x, kind)) for x in (a, b))
        self.alike(a.dims[1], b.dims[0])
        if repr(b.dims[1]) == "1":  # one sum for each row
            made = self.new([a.dims[0], const(1)], kind, False)

            def row(index: list[E]) -> None:
                (i,) = index
                inner = Lazy([a.dims[1]], a.kind, lambda k: a.at([i, *k]), a.reads)
                column = Lazy([b.dims[0]], b.kind, lambda k: b.at([*k, const(0)]), b.reads)
                self.emit(Store(made.name, (i, const(0)), self.cast(self.number(self.dot(inner, column)), kind)))

            self.over([a.dims[0]], row)
            return made
        made = self.new([a.dims[0], b.dims[1]], kind, True)

        def add(index: list[E]) -> None:
            i, k = index
            x = self.temporary(self.cast(a.at([i, k]), kind))

            def one(j: list[E]) -> None:
                more = E("mul", (x, self.cast(b.at([k, *j]), kind)), kind)
                self.emit(Store(made.name, (i, *j), E("add", (self.element(made, [i, *j]), more), kind)))

            self.over([b.dims[1]], one, exact=False)

        self.over([a.dims[0], a.dims[1]], add, exact=False)
        return made

    def of_kind(self, x: Any, kind: Kind) -> Array:
        """New memory that holds an array expression as numbers of this type."""
        x = self.lazy(x)
        return self.materialised(Lazy(x.dims, kind, lambda index: self.cast(x.at(index), kind), x.reads))

    # -------------------------------------------------------------- shown otherwise
    def np_reshape(self, args: list, kwargs: dict) -> Array:
        if kwargs or len(args) < 2:
            raise self.fail("np.reshape of these arguments")
        x = self.an_array(args[0])
        sizes = args[1].items if len(args) == 2 and isinstance(args[1], Tup) else args[1:]
        lengths = [const(-1) if repr(s) == "-1" else self.length(s) for s in sizes]
        size: E = const(1)
        for d in x.dims:
            size = self.temporary(self.binary("mul", size, d))
        given: E = const(1)
        for n in lengths:
            given = given if repr(n) == "-1" else self.temporary(self.binary("mul", given, n))
        if any(n.low < 0 and repr(n) != "-1" for n in lengths):
            for n in lengths:
                self.check(E("ge", (n, const(0)), BOOL, 0, 1)) if repr(n) != "-1" else None
        free = [k for k, n in enumerate(lengths) if repr(n) == "-1"]
        if len(free) > 1:
            raise self.fail("np.reshape with two lengths that are -1")
        if free:
            self.check(E("gt", (given, const(0)), BOOL, 0, 1))
            given = E("copy", (given,), INT, 1, max(given.high, 1))
            lengths[free[0]] = self.temporary(self.binary("floordiv", size, self.temporary(given)))
            given = self.temporary(self.binary("mul", given, lengths[free[0]]))
        self.check(E("eq", (given, size), BOOL, 0, 1))
        self.check(E("dense", (x.name,), BOOL, 0, 1))  # else it is a copy, at times
        out = self.array(x.kind, len(lengths), x.root)
        for k, n in enumerate(lengths):
            if n.op == "const":
                out.dims[k] = n
        self.emit(Reshape(out.name, x.name, tuple(lengths)))
        return out

    def np_ravel(self, args: list, kwargs: dict) -> Array:
        (x,) = self.arguments("x", args, kwargs)
        x = self.an_array(x)
        return x if x.ndim == 1 else self.np_reshape([x, const(-1)], {})

    def np_flip(self, args: list, kwargs: dict) -> Array:
        x, axis = self.arguments("x axis", args, kwargs)
        x = self.an_array(x)
        axes = range(x.ndim) if axis is None else [self.whole_number(axis) % x.ndim]
        return self.as_array(self.index(x, [(None, None, const(-1)) if k in axes else EVERY for k in range(x.ndim)]))

    def np_transpose(self, args: list, kwargs: dict) -> Array:
        if kwargs:
            raise self.fail("np.transpose with keywords")
        x = self.an_array(args[0])
        axes = args[1].items if len(args) == 2 and isinstance(args[1], Tup) else args[1:]
        return self.transposed(x, tuple(self.whole_number(a) % x.ndim for a in axes) or None)

    def np_roll(self, args: list, kwargs: dict) -> Array:
        x, shift, axis = self.arguments("x shift axis", args, kwargs)
        x = self.an_array(x)
        if axis is None and x.ndim != 1:
            raise self.fail("np.roll of all axes")
        at = 0 if axis is None else self.whole_number(axis) % x.ndim
        size = x.dims[at]
        self.check(E("gt", (size, const(0)), BOOL, 0, 1))
        size = self.temporary(E("copy", (size,), INT, 1, LONGEST))
        by = self.temporary(self.binary("mod", self.length(shift), size))
        rest = self.temporary(self.binary("sub", size, by))
        out = self.new(x.dims, x.kind, False)
        part = lambda a, start, stop: self.as_array(self.index(a, [*[EVERY] * at, (start, stop, None), ...]))
        self.fill(part(out, by, None), part(x, None, rest))
        self.fill(part(out, None, by), part(x, rest, None))
        return out

    # -------------------------------------------------------------- in order
    def sort(self, a: Array) -> None:
        """Sort an array with one axis in place: Shell's method, with gaps that are halved (D. L. Shell, 1959)."""
        if a.ndim != 1 or a.kind.letter not in "iuf":
            raise self.fail("a sort of this")
        self.program.vectors = True
        self.check(E("le", (self.temporary(a.dims[0]), const(SORTED)), BOOL, 0, 1))
        if a.kind.letter == "f":  # NaN is behind all others
            self.over(a.dims, lambda k: self.check(E("eq", (x := self.element(a, k), x), BOOL, 0, 1)))

        def variable(value: E) -> tuple[str, E]:
            name = self.fresh("at")
            self.program.kinds[name] = INT
            self.emit(Assign(name, value))
            return name, E("var", (name,), INT, 0, LONGEST)

        half = lambda e: self.temporary(self.binary("floordiv", e, const(2)))
        count = self.temporary(a.dims[0])
        gap_name, gap = variable(half(count))
        turn = self.fresh("turn")
        self.program.kinds[turn] = INT
        with self.into([]) as insert:
            i = E("var", (turn,), INT, 0, LONGEST)
            x = self.element(a, [i])
            at_name, at = variable(i)
            before = lambda: E("sub", (at, gap), INT, 0, LONGEST)
            with self.into([]) as test:
                greater = lambda: E("gt", (self.element(a, [before()]), x), BOOL, 0, 1)
                condition = self.both("and", E("ge", (at, gap), BOOL, 0, 1), greater)
            with self.into([]) as move:
                self.emit(Store(a.name, (at,), self.element(a, [before()])))
                self.emit(Assign(at_name, before()))
            self.emit(While(test, condition, move))
            self.emit(Store(a.name, (at,), x))
        with self.into([]) as body:
            self.emit(For(turn, gap, count, 1, insert))
            self.emit(Assign(gap_name, half(gap)))
        self.emit(While([], E("gt", (gap, const(0)), BOOL, 0, 1), body))
        self.program.elements = True
        self.written(a)

    def np_sort(self, args: list, kwargs: dict) -> Array:
        (x,) = self.arguments("a", args, kwargs)
        made = self.materialised(self.lazy(self.an_array(x)))
        self.sort(made)
        return made

    def np_median(self, args: list, kwargs: dict) -> E:
        (x,) = self.arguments("a", args, kwargs)
        lazy = self.lazy(self.an_array(x))
        if lazy.kind.code not in ("f8", "f4") and lazy.kind.letter not in "iu":
            raise self.fail(f"np.median of {lazy.kind}")
        kind = Kind(lazy.kind.code if lazy.kind.letter == "f" else "f8")
        floats = Lazy(lazy.dims, kind, lambda k: self.temporary(self.cast(lazy.at(k), kind)), lazy.reads)
        a = self.np_ravel([self.materialised(floats)], {})
        self.check(E("gt", (a.dims[0], const(0)), BOOL, 0, 1))
        self.sort(a)
        middle = self.temporary(self.binary("floordiv", a.dims[0], const(2)))
        name = self.fresh("median")
        self.program.kinds[name] = kind
        odd = E("eq", (self.binary("mod", a.dims[0], const(2)), const(1)), BOOL, 0, 1)
        with self.into([]) as one:
            self.emit(Assign(name, self.element(a, [middle])))
        with self.into([]) as two:
            below = E("sub", (middle, const(1)), INT, 0, LONGEST)
            total = self.temporary(E("add", (self.element(a, [below]), self.element(a, [middle])), kind))
            self.emit(Assign(name, E("div", (total, const(2.0, kind)), kind)))
        self.emit(If(odd, one, two))
        return E("var", (name,), kind)

    def np_percentile(self, args: list, kwargs: dict) -> E:
        x, q = self.arguments("a q", args, kwargs)
        return self.quantile(x, q, 100.0)

    def np_quantile(self, args: list, kwargs: dict) -> E:
        x, q = self.arguments("a q", args, kwargs)
        if isinstance(q, E) and q.kind.letter != "f" and self.lazy(self.an_array(x)).kind.letter != "f":
            raise self.fail("the first or last of integers, which is one")
        return self.quantile(x, q, 1.0)

    def quantile(self, x: Any, q: Any, whole: float) -> E:
        """The number of which a part q / whole of an array's numbers are no greater; between two of them as NumPy's
        linear method has it."""
        lazy, kind = self.lazy(self.an_array(x)), F8
        one = isinstance(q, E) and len(q.kinds) == 1 and q.kind.code in ("f8", "i8")
        if not one or lazy.kind.code not in ("f8", "i8"):
            raise self.fail("a quantile of numbers of fewer bits, or several quantiles")
        part = self.temporary(E("div", (self.cast(q, kind), const(whole, kind)), kind))
        fine = E("and", (E("ge", (part, const(0.0, kind)), BOOL), E("le", (part, const(1.0, kind)), BOOL)), BOOL, 0, 1)
        self.check(fine)
        a = self.np_ravel([self.materialised(lazy)], {})
        self.check(E("gt", (a.dims[0], const(0)), BOOL, 0, 1))
        self.sort(a)
        last = self.temporary(E("sub", (a.dims[0], const(1)), INT, 0, LONGEST))
        at = self.temporary(E("mul", (E("cast", (last,), kind), part), kind))
        below = self.temporary(E("cast", (E("floor", (at,), kind),), INT, 0, LONGEST))
        above = self.temporary(E("min", (E("add", (below, const(1)), INT, 0, LONGEST), last), INT, 0, LONGEST))
        ends = []
        for k in (below, above):
            e = self.element(a, [k])
            if lazy.kind.letter == "i":  # which NumPy subtracts before they are floats
                e = self.temporary(e)
                self.check(E("within", (e, const(-(2**52), e.kind), const(2**52, e.kind)), BOOL))
            ends.append(self.temporary(self.cast(e, kind)))
        low, high = ends
        gap = self.temporary(E("sub", (high, low), kind))
        t = self.temporary(E("sub", (at, E("cast", (below,), kind)), kind))
        first = E("add", (low, E("mul", (gap, t), kind)), kind)
        second = E("sub", (high, E("mul", (gap, E("sub", (const(1.0, kind), t), kind)), kind)), kind)
        found = self.temporary(E("select", (E("ge", (t, const(0.5, kind)), BOOL), second, first), kind))
        if lazy.kind.letter == "i":
            return found
        end = self.temporary(self.element(a, [last]))  # NaN is sorted to the end
        return self.temporary(E("select", (E("ne", (end, end), BOOL, 0, 1), end, found), kind))

    def np_round(self, args: list, kwargs: dict) -> Any:
        """To so many decimals, of two as near the even one: a product, a rounded one, a quotient."""
        x, decimals = self.arguments("a decimals", args, kwargs)
        places = 0 if decimals is None else self.whole_number(decimals)
        by = const(10.0 ** abs(places))

        def near(v: list[E]) -> E:
            if v[0].kind.code != "f8" or len(v[0].kinds) > 1:
                raise self.fail(f"np.round of {v[0].kind}")
            there, back = ("mul", "div") if places >= 0 else ("div", "mul")
            scaled = self.temporary(E(there, (v[0], by), F8)) if places else v[0]
            whole = self.temporary(E("rint", (scaled,), F8))
            return self.temporary(E(back, (whole, by), F8)) if places else whole

        with self.saying(None):
            return self.elementwise(onp.round, near, self.of_numpy([x]))

    np_around = np_round

    # -------------------------------------------------------------- sums on the way
    def np_cumsum(self, args: list, kwargs: dict) -> Array:
        (x,) = self.arguments("x", args, kwargs)
        lazy = self.lazy(x)
        if lazy.ndim != 1:
            raise self.fail("np.cumsum of several axes")
        kind = result_kind(onp.cumsum, (lazy.kind,), (True,))
        out, name = self.new(lazy.dims, kind, False), self.fresh("acc")
        self.program.kinds[name] = kind
        acc = E("var", (name,), kind)
        self.emit(Assign(name, const(kind.dtype.type(0).item(), kind)))

        def one(index: list[E]) -> None:
            self.emit(Assign(name, E("add", (acc, self.cast(lazy.at(index), kind)), kind)))
            self.emit(Store(out.name, tuple(index), acc))

        self.over(out.dims, one)
        return out

    def np_nonzero(self, args: list, kwargs: dict) -> Tup:
        (x,) = self.arguments("x", args, kwargs)
        mask = self.evaluated(x)
        if mask.ndim != 1:
            raise self.fail("np.nonzero of several axes")
        return Tup([self.places(mask)])

    def np_count_nonzero(self, args: list, kwargs: dict) -> E:
        (x,) = self.arguments("x", args, kwargs)
        count = self.how_many(self.evaluated(x))
        return count if type(onp.count_nonzero(onp.ones(1))) is int else self.cast(count, Kind("i8"))

    def triangle(self, x: Any, k: Any, lower: bool) -> Lazy:
        lazy = self.evaluated(x)
        if lazy.ndim != 2:
            raise self.fail("a triangle of what is no matrix")
        by = self.length(const(0) if k is None else k)
        zero = const(lazy.kind.dtype.type(0).item(), lazy.kind)

        def at(index: list[E]) -> E:
            edge = self.binary("add", index[0], by)
            kept = E("le" if lower else "ge", (index[1], edge), BOOL, 0, 1)
            x = lazy.at(index)
            return self.temporary(E("select", (kept, x, zero), lazy.kind, min(0, x.low), max(0, x.high)))

        return Lazy(lazy.dims, lazy.kind, at, lazy.reads)

    def np_tril(self, args: list, kwargs: dict) -> Lazy:
        return self.triangle(*self.arguments("x k", args, kwargs), True)

    def np_triu(self, args: list, kwargs: dict) -> Lazy:
        return self.triangle(*self.arguments("x k", args, kwargs), False)

    # -------------------------------------------------------------- zeros and the like
    def made(self, name: str, args: list, kwargs: dict) -> Array:
        """np.zeros, empty, ones, full and their like."""
        like = name.endswith("_like")
        base = name.removesuffix("_like")
        names = "shape fill_value dtype" if base == "full" else "shape dtype"
        if like:
            kwargs = {{"a": "shape", "prototype": "shape"}.get(k, k): v for k, v in kwargs.items()}
        shape, *value, dtype = self.arguments(names, args, kwargs)
        if shape is None or value == [None] or (like and not isinstance(shape, (Array, Lazy))):
            raise self.fail(f"np.{name} with these arguments")
        if dtype is not None:
            kind = self.dtype_of(dtype)
        elif like:
            kind = shape.kind
        elif base == "full":
            if not isinstance(value[0], E) or len(value[0].kinds) > 1:
                raise self.fail("np.full")
            kind = Kind(value[0].kind.code)
        else:
            kind = Kind("f8")
        lengths: Sequence[E] = shape.dims if like else shape.items if isinstance(shape, Tup) else [shape]
        lengths = lengths if like else [self.length(d) for d in lengths]
        out = self.new([self.frozen(d) for d in lengths], kind, base in ("zeros", "empty"))
        if base == "ones":
            self.fill(out, const(1, Kind("i8", True)))
        elif base == "full":
            self.fill(out, value[0])
        return out
