"""Elements chosen by arrays: x[mask] and x[i, j] with arrays of integers, read and written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .arrays import LONGEST, Arrays, Lazy, Masked, elsewhere
from .ir import INT, Array, Assign, E, If, Store, const


class Chosen(Arrays):
    """Emits what is done with elements that arrays choose."""

    def choice(self, base: Array, parts: list) -> tuple[list, int, list[Lazy], Lazy | None]:
        """(the parts, one for each axis, where those that are arrays begin, these as arrays of integers, or a mask of
        the first axes alone)."""
        first = parts[0]
        rest = parts[1:]
        if (
            isinstance(first, (Array, Lazy))
            and first.kind.letter == "b"
            and all(p == EVERY for p in rest if p is not ...)
        ):
            mask = self.evaluated(first)
            if mask.ndim > base.ndim:
                raise self.fail("too many indices")
            for a, b in zip(mask.dims, base.dims):
                self.alike(a, b)
            return [], 0, [], mask
        if any(p is None for p in parts):
            raise self.fail("np.newaxis in an index of arrays")
        given = sum(p is not ... for p in parts)
        at = parts.index(...) if ... in parts else len(parts)
        parts = [*parts[:at], *[EVERY] * (base.ndim - given), *parts[at + 1 :]]
        if len(parts) != base.ndim or any(
            isinstance(p, (Array, Lazy)) and p.kind.letter == "b" and p.ndim > 1 for p in parts
        ):
            raise self.fail("an index of arrays")
        numbers = [k for k, p in enumerate(parts) if not isinstance(p, tuple)]
        if numbers != list(range(numbers[0], numbers[-1] + 1)):
            raise self.fail("an index of arrays on both sides of a slice")
        which = []
        for k in numbers:
            p = parts[k]
            if isinstance(p, (Array, Lazy)) and p.kind.letter == "b":
                self.alike(p.dims[0], base.dims[k])
                p = self.places(self.evaluated(p))
            p = self.evaluated(p) if isinstance(p, (Array, Lazy)) else self.lazy(self.frozen(p))
            if p.kind.letter not in "iu" or p.kind.code == "u8":
                raise self.fail(f"an index that is a {p.kind}")
            which.append(p)
        for k, p in zip(numbers, which):  # before anything is read or written
            self.over(p.dims, lambda index, p=p, k=k: self.inside(p.at(index), base, k))
        return parts, numbers[0], which, None

    def inside(self, i: E, base: Array, axis: int) -> None:
        self.place(i, base, axis)

    def evaluated(self, x: Any) -> Lazy:
        """An array, computed once."""
        return self.lazy(x if isinstance(x, Array) else self.materialised(x))

    def how_many(self, mask: Lazy) -> E:
        """How many elements of a mask hold."""
        name = self.fresh("count")
        self.program.kinds[name] = INT
        count = E("var", (name,), INT, 0, LONGEST)
        self.emit(Assign(name, const(0)))
        self.over(mask.dims, lambda index: self.emit(Assign(name, self.more(count, self.truth(mask.at(index))))))
        some = self.some[0] == self.state_of(mask.reads[0]) and self.some[1] is self.out
        return E("var", (name,), INT, int(some), LONGEST)

    def state_of(self, a: Array) -> tuple:
        """What an array is called that has the same elements where it is called so again."""
        return a.name, self.versions.get(a.name, 0), self.writes

    def more(self, count: E, chosen: E) -> E:
        return E("add", (count, E("cast", (chosen,), INT, 0, 1)), INT, 0, LONGEST)

    def each(self, mask: Lazy, body: Callable[[list[E], E], None]) -> None:
        """body(index, how many before it) for every element that holds, in order."""
        name = self.fresh("count")
        self.program.kinds[name] = INT
        here = E("var", (name,), INT, 0, LONGEST)
        self.emit(Assign(name, const(0)))

        def one(index: list[E]) -> None:
            test = self.truth(mask.at(index))
            with self.into([]) as chosen:
                body(index, here)
                self.emit(Assign(name, E("add", (here, const(1)), INT, 0, LONGEST)))
            self.emit(If(test, chosen, []))

        self.over(mask.dims, one)

    def places(self, mask: Lazy) -> Array:
        """np.nonzero(mask)[0] of one axis."""
        found = self.new([self.how_many(mask)], INT._replace(python=False), False)
        self.each(mask, lambda index, k: self.emit(Store(found.name, (k,), self.cast(index[0], found.kind))))
        return found

    # -------------------------------------------------------------- reading
    def gathered(self, base: Array, parts: list) -> Array | Lazy:
        """base[parts]"""
        parts, first, which, mask = self.choice(base, parts)
        if mask is not None:
            count = self.how_many(mask)
            if mask.ndim == base.ndim:
                reads = [base, *mask.reads]
                at = lambda index: self.element(self.instead.get(base.name, base), index)
                return Masked(count, base.kind, at, reads, mask.reads[0], self.writes)
            out = self.new([count, *base.dims[mask.ndim :]], base.kind, False)

            def copy(index: list[E], k: E) -> None:
                rest = out.dims[1:]
                store = lambda more: self.emit(Store(out.name, (k, *more), self.element(base, [*index, *more])))
                self.over(rest, store)

            self.each(mask, copy)
            return out
        dims, place = self.chosen(base, parts, first, which)
        reads = elsewhere([base, *(r for w in which for r in w.reads)])
        return Lazy(dims, base.kind, lambda index: self.element(base, place(index)), reads)

    def chosen(self, base: Array, parts: list, first: int, which: list[Lazy]) -> tuple[list[E], Callable]:
        """(the lengths of what is chosen, an index of it -> the place in base)."""
        common = self.broadcast(which)
        cuts = [p if not isinstance(p, tuple) else self.section(p, base, k) for k, p in enumerate(parts)]
        before = cuts[:first]
        after = cuts[first + len(which) :]
        dims = [*(c[1] for c in before), *common, *(c[1] for c in after)]

        def place(index: list[E]) -> list[E]:
            own = index[len(before) : len(before) + len(common)]
            rest = [*index[: len(before)], *index[len(before) + len(common) :]]
            at = lambda cut, i: self.binary("add", cut[0], self.binary("mul", i, cut[2]))
            found = [at(c, i) for c, i in zip([*before, *after], rest)]
            found = [E("copy", (f,), INT, 0, LONGEST) if f.op != "const" else f for f in found]
            middle = []
            for k, w in enumerate(which):
                i = self.cast(w.at(self.within(w, own)), INT)
                middle.append(E("wrap", (i, base.dims[first + k]), INT, 0, LONGEST))
            return [*found[: len(before)], *middle, *found[len(before) :]]

        return dims, place

    # -------------------------------------------------------------- writing
    def scatter(self, base: Array, parts: list, value: Any, op: Callable | None) -> None:
        """base[parts] = value, or what op(old element, value) gives."""
        parts, first, which, mask = self.choice(base, parts)
        if isinstance(value, E):
            value = self.frozen(value if op is not None else self.stored(value, base.kind))
        elif not isinstance(value, (Array, Lazy)):
            raise self.fail("something assigned to chosen elements")
        if mask is not None and isinstance(value, Masked) and self.directly(base, mask, value, op):
            return None
        lazy = self.lazy(value)
        if lazy.kind.letter == "c" and base.kind.letter != "c":
            raise self.fail("complex numbers written to real ones")
        if mask is not None:
            return self.masked(base, mask, lazy, op)
        dims, place = self.chosen(base, parts, first, which)
        for d, t in zip(reversed(lazy.dims), reversed(dims)):
            if not (d.op == "const" and d.args[0] == 1):
                self.alike(d, t)
        if lazy.ndim > len(dims):
            raise self.fail("more axes than where they are written")
        reads = [*lazy.reads, *(r for w in which for r in w.reads)]
        if op is not None:  # all are read before one is written: an element that is named twice is changed once
            given, old = lazy, self.element
            combine = lambda index: op(old(base, place(index)), given.at(self.within(given, index)))
            lazy = self.lazy(self.materialised(Lazy(dims, self.kind_of(combine, dims), combine, reads)))
        elif any(self.may_overlap(r, base) or r.name == base.name for r in reads):
            if any(self.may_overlap(r, base) or r.name == base.name for w in which for r in w.reads):
                raise self.fail("an index that shows what is written")
            lazy = self.lazy(self.materialised(lazy))

        def one(index: list[E]) -> None:
            e = self.unsafe(lazy.at(self.within(lazy, index)), base.kind)
            self.emit(Store(base.name, tuple(place(index)), e))

        self.over(dims, one)
        self.written(base)

    def kind_of(self, element: Callable, dims: list[E]) -> Any:
        with self.into([]):
            return element([const(0)] * len(dims)).kind

    def directly(self, base: Array, mask: Lazy, value: Masked, op: Callable | None) -> bool:
        """base[mask] = value where the same mask chose it: element by element, unless one may show another."""
        same = mask.reads[0] is value.mask and value.when == self.writes and mask.ndim == base.ndim
        apart = lambda r: r.name == base.name or not self.may_overlap(r, base)
        if not same or not all(map(apart, value.reads)) or value.mask.name == base.name:
            return False
        if value.kind.letter == "c" and base.kind.letter != "c":
            return False

        def one(index: list[E], e: E) -> None:
            if op is not None:
                e = op(self.element(base, index), e)
            self.emit(Store(base.name, tuple(index), self.unsafe(e, base.kind)))

        floats = [r for r in value.reads if r.kind.letter == "f" and r.ndim == mask.ndim]
        self.instead |= {r.name: self.or_ones(r, value.mask) for r in floats if base.kind.letter == "f"}
        try:
            self.under(value, one, base if base.kind.letter in "fc" else None)
        finally:
            self.instead.clear()
        self.written(base)
        return True

    def masked(self, base: Array, mask: Lazy, lazy: Lazy, op: Callable | None) -> None:
        rest = base.dims[mask.ndim :]
        if lazy.ndim > 1 + len(rest):
            raise self.fail("more axes than where they are written")
        if any(self.may_overlap(r, base) or r.name == base.name for r in lazy.reads):
            lazy = self.lazy(self.materialised(lazy))
        if any(self.may_overlap(r, base) or r.name == base.name for r in mask.reads):
            mask = self.lazy(self.materialised(mask))
        for d, t in zip(reversed(lazy.dims), [*reversed(rest), self.how_many(mask)] if lazy.ndim else []):
            if not (d.op == "const" and d.args[0] == 1):
                self.alike(d, t)

        def body(index: list[E], k: E) -> None:
            def one(more: list[E]) -> None:
                e = lazy.at(self.within(lazy, [k, *more]))
                if op is not None:
                    e = op(self.element(base, [*index, *more]), e)
                self.emit(Store(base.name, (*index, *more), self.unsafe(e, base.kind)))

            self.over(rest, one)

        self.each(mask, body)
        self.written(base)


EVERY = (None, None, None)
