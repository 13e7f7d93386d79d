"""The greatest and the least elements of arrays in programs that are differentiated: all that are equal to one have the
same share of its slope, as in eager gradients. Loops that look for one keep the first that they find."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator

from .ir import BOOL, INT, Assign, E, For, If, Kind, Program, const, statements
from .simplified import replaced

BEST = "best."  # what the variables are called that hold an extreme (arrays.py)


def shared(program: Program) -> Program:
    """The same program with what is equal to an extreme counted, and the extreme the mean of that to its derivative."""
    if not any(name.startswith(BEST) and kind.letter == "f" for name, kind in program.kinds.items()):
        return program
    out = copy.copy(program)
    out.kinds = dict(program.kinds)
    counts = itertools.count()
    out.body = list(_shared(out, program.body, counts))
    return out


def _shared(program: Program, body: list, counts: Iterator[int]) -> Iterator:
    for s in body:
        best = found_by(s)
        if best is not None and program.kinds[best].letter == "f":
            yield from _equal_ones(program, s, best, next(counts))
        else:
            inner = {field: list(_shared(program, v, counts)) for field, v in zip(s._fields, s) if type(v) is list}
            yield s._replace(**inner) if inner else s


def found_by(s: object) -> str | None:
    """The variable of the extreme that loops look for, if they do nothing else, not even note where it is."""
    while type(s) is For:
        *before, s = s.body
        if any(type(x) is not Assign for x in before):
            return None
        if type(s) is If and not s.orelse and len(s.then) == 1 and type(s.then[0]) is Assign:
            name = s.then[0].name
            return name if name.startswith(BEST) else None
    return None


def _equal_ones(program: Program, loop: For, best: str, number: int) -> Iterator:
    kind = program.kinds[best]

    def made(what: str, kind: Kind) -> E:
        name = f"{what}.{best}.{number}"
        program.kinds[name] = kind
        return E("var", (name,), kind, *((0, 2**40) if kind == INT else ()))

    first, count, weight, total = made("first", kind), made("count", INT), made("weight", kind), made("total", kind)
    extreme = E("var", (best,), kind)
    name = first.args[0]

    def again(what: str, last: object) -> For:
        """The loops, with variables of their own, and last(element) for what they do with each."""
        inside = [loop, *statements(loop.body)]
        own = {s.var if type(s) is For else s.name for s in inside if type(s) in (For, Assign)} - {best}
        known = {n: E("var", (made(f"{what}.{n}", program.kinds[n]).args[0],), program.kinds[n]) for n in own}
        known[best] = first

        def copied(s: object) -> object:
            if type(s) is For:
                start, stop = (replaced(e, known, True) for e in (s.start, s.stop))
                inner = [copied(x) for x in s.body]
                return s._replace(var=known[s.var].args[0], start=start, stop=stop, body=inner, exact=what == "look")
            if type(s) is If:
                return last(replaced(s.then[0].value, known, True), replaced(s.condition, known, True))
            return Assign(known[s.name].args[0], replaced(s.value, known, True))

        return copied(loop)

    both = lambda op, x, y: E(op, (x, y), BOOL, 0, 1)
    nan = lambda e: both("and", both("ne", e, e), both("ne", first, first))
    equal = lambda e: both("or", both("eq", e, first), nan(e))
    found = lambda e, better: If(better, [Assign(name, E("still", (e,), kind))], [])
    counted = lambda e, _: Assign(
        count.args[0], E("add", (count, E("select", (equal(e), const(1), const(0)), INT, 0, 1)), INT, 0, 2**40)
    )
    share = lambda e: E("select", (equal(e), E("mul", (e, weight), kind), const(0.0, kind)), kind)
    added = lambda e, _: Assign(total.args[0], E("add", (total, share(e)), kind))
    yield Assign(name, E("still", (extreme,), kind))
    yield again("look", found)
    yield Assign(count.args[0], const(0))
    yield again("count", counted)
    yield Assign(weight.args[0], E("div", (const(1.0, kind), E("cast", (count,), kind)), kind))
    yield Assign(total.args[0], const(0.0, kind))
    yield again("share", added)
    yield Assign(best, E("valued", (total, first), kind))
