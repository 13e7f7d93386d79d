"""Passes over programs: copies are followed, what nobody reads is left out, loops that scatter are taken apart.

They are for derivatives, whose sums may be rounded in any order. A way back adds to neighbouring elements in every
turn (`a[i - 1] += g; a[i] += g`), which has to be done one number at a time; a loop for each of these sums does several
at once (loop distribution with scalar expansion: Allen and Kennedy, Optimizing Compilers for Modern Architectures,
2001, chapter 5).
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from .ir import (
    BOOL,
    INT,
    Alloc,
    Array,
    Assign,
    Block,
    Call,
    Check,
    E,
    For,
    If,
    Leave,
    Permute,
    Program,
    Reshape,
    Store,
    View,
    While,
    const,
    expressions,
    parts,
    statements,
    variables,
    walk,
)


# ------------------------------------------------------------------ copies and zeros
def propagated(body: list, known: dict[str, E] | None = None, kept: bool = False) -> list:
    """The same with variables that are copies of others, or numbers, replaced where they are read; 0.0 + x is x.

    kept    of a program that is to be run backwards: conditions, bounds and lengths stay the variables that have what
            these were when what is read there has changed, and 0.0 + x stays
    """
    known = {} if known is None else known
    out: list = []
    for s in body:
        if type(s) is Assign:
            value = replaced(s.value, known, kept)
            forget(known, {s.name})
            plain = value.args[0] if value.op == "copy" else value
            if plain.op == "const" or (plain.op == "var" and plain.args[0] != s.name):
                known[s.name] = plain
            out.append(Assign(s.name, value))
        elif type(s) is Store:
            index = tuple([replaced(i, known, kept) for i in s.index])
            out.append(Store(s.array, index, replaced(s.value, known, kept)))
        elif type(s) is Alloc:
            out.append(s if kept else Alloc(s.name, tuple([replaced(d, known) for d in s.dims]), s.zero))
        elif type(s) is Check:
            operands = tuple([replaced(e, known, kept) for e in s.operands])
            out.append(Check(replaced(s.condition, known, kept), s.error, operands, s.bounds))
        elif type(s) is If:
            condition = s.condition if kept else replaced(s.condition, known)
            out.append(If(condition, propagated(s.then, dict(known), kept), propagated(s.orelse, dict(known), kept)))
            forget(known, bound([s]))
        elif type(s) is For:
            start, stop, step = (replaced(e, known) if isinstance(e, E) and not kept else e for e in s[1:4])
            forget(known, bound([s]))
            out.append(For(s.var, start, stop, step, propagated(s.body, dict(known), kept), s.exact))
        elif type(s) is While:
            forget(known, bound([s]))
            inside = dict(known)
            test = propagated(s.test, inside, kept)
            out.append(While(test, replaced(s.condition, inside, kept), propagated(s.body, inside, kept)))
        else:
            raise TypeError(s)
    return out


def forget(known: dict[str, E], names: set[str]) -> None:
    for name in [n for n, e in known.items() if n in names or (e.op == "var" and e.args[0] in names)]:
        del known[name]


def bound(body: list) -> set[str]:
    """The variables that statements assign."""
    return {s.name if type(s) is Assign else s.var for s in statements(body) if type(s) in (Assign, For)}


def replaced(e: E, known: dict[str, E], kept: bool = False) -> E:
    if e.op == "var":
        found = known.get(e.args[0])
        if found is None or found.kind.code != e.kind.code:
            return e
        return found if found.kind == e.kind else E("copy", (found,), e.kind, e.low, e.high)
    if not any(isinstance(a, E) for a in e.args):
        return e
    args = tuple([replaced(a, known, kept) if isinstance(a, E) else a for a in e.args])
    if not kept and e.op == "add" and e.kind.letter == "f":
        for a, other in (args, args[::-1]):
            if a.op == "const" and a.args[0] == 0 and other.kind == e.kind:
                return other
    return E(e.op, args, e.kind, e.low, e.high, e.kinds, e.tag)


def forwarded(body: list, arrays: set[str]) -> list:
    """The same where what is read of these arrays, at a place that was just written, is the variable that was."""
    out: list = []
    stored: dict[str, tuple[E, E]] = {}  # elements -> (what reads one, the variable that is there)
    for s in body:
        if type(s) is Assign:
            found = stored.get(repr(s.value)) if s.value.op == "load" else None
            if found is not None and found[1].kind.code == s.value.kind.code:
                s = Assign(s.name, E("copy", (found[1],), s.value.kind))
            stored = {n: x for n, x in stored.items() if not any(s.name in variables(e) for e in x)}
        elif type(s) is Store:
            stored = {n: x for n, x in stored.items() if x[0].args[0] != s.array}
            load = E("load", (s.array, *s.index), s.value.kind)
            if s.array in arrays and s.value.op == "var" and not any(map(loads_any, s.index)):
                stored[repr(load)] = load, s.value
        else:
            names = ("then", "orelse") if type(s) is If else ("test", "body") if type(s) is While else ("body",)
            s = s._replace(**{name: forwarded(getattr(s, name), arrays) for name in names if parts(s)})
            stored = {}
        out.append(s)
    return out


# ------------------------------------------------------------------ indices
def from_zero(body: list) -> list:
    """Statements whose checks hold, with indices that are no negative numbers as they are."""
    times = Counter(s.name for s in statements(body) if type(s) is Assign)
    return _from_zero(body, {}, {name for name, count in times.items() if count == 1})


def _from_zero(body: list, known: dict[str, float], once: set[str]) -> list:
    """`known`: the least numbers that variables have; `once`: those that are bound at one place."""

    def low(e: E) -> float:
        if e.op == "copy":
            return low(e.args[0])
        if e.op == "var":
            return max(known.get(e.args[0], -math.inf), e.low)
        if e.op in ("add", "max"):
            return (max if e.op == "max" else operator.add)(*map(low, e.args))
        if e.op == "sub" and e.args[1].op == "const":
            return low(e.args[0]) - e.args[1].args[0]
        return e.args[0] if e.op == "const" else 0 if e.op == "dim" else -math.inf

    def one(e: E) -> E:
        if e.op == "wrap" and low(e.args[0]) >= 0:
            return one(e.args[0])
        if not any(x.op == "wrap" for x in walk(e)):
            return e
        return e.over(one)

    out: list = []
    for s in body:
        inside = known
        if type(s) is For and s.step in (1, -1):
            inside = {**known, s.var: low(s.start) if s.step == 1 else low(s.stop) + 1}
        changed: dict[str, Any] = {}
        for field, value in zip(s._fields, s):
            if type(value) is list:
                changed[field] = _from_zero(value, inside, once)
            elif isinstance(value, E):
                changed[field] = one(value)
            elif field == "index":
                changed[field] = tuple(map(one, value))
        out.append(s._replace(**changed))
        if type(s) is Assign and s.name in once and s.value.kind.code == INT.code:
            known = {**known, s.name: low(s.value)}
    return out


# ------------------------------------------------------------------ what is read
def exposed(body: list) -> set[str]:
    """The variables that statements may read as they were before."""
    found: set[str] = set()
    exposed_in(body, set(), found)
    return found


def exposed_in(body: list, known: set[str], found: set[str]) -> None:
    """Adds to `found` the variables that statements read, but for those that are bound before (`known`)."""
    for s in body:
        if type(s) is While:
            exposed_in(s.test, inside := set(known), found)
            found |= variables(s.condition) - inside
            exposed_in(s.body, inside, found)
            continue
        found |= {n for e in expressions(s) for n in variables(e)} - known
        if type(s) is Assign:
            known.add(s.name)
        elif type(s) is If:
            ways = set(known), set(known)
            for way, part in zip(ways, parts(s)):
                exposed_in(part, way, found)
            known |= ways[0] & ways[1]
        elif type(s) is For:
            exposed_in(s.body, known | {s.var}, found)
        elif type(s) is Block:
            exposed_in(s.body, set(known), found)


# ------------------------------------------------------------------ sums of elements
def combined(body: list, reads: dict[str, int]) -> list:
    """The same with `t = a[i]; a[i] = t + x` as `a[i] = a[i] + x`, where t is read there alone.

    reads   how many expressions read each variable (ir.read_times)
    """
    out: list = []
    loaded: dict[str, E] = {}
    for s in body:
        if type(s) is Store:
            old = s.value.args[0] if s.value.op in ("add", "sub") else None
            found = loaded.get(old.args[0]) if isinstance(old, E) and old.op == "var" else None
            again = found is not None and old.args[0] in variables(s.value.args[1])
            if found is not None and not again and found.args[0] == s.array and repr(found.args[1:]) == repr(s.index):
                out = [x for x in out if type(x) is not Assign or x.name != old.args[0]]
                value = E(s.value.op, (found, *s.value.args[1:]), s.value.kind, s.value.low, s.value.high)
                s = Store(s.array, s.index, value)
            loaded = {}
        elif type(s) is Assign:
            loaded = {name: e for name, e in loaded.items() if s.name not in variables(e)}
            if s.value.op == "load" and reads.get(s.name, 0) == 1:
                loaded[s.name] = s.value
        elif type(s) is If:
            s = If(s.condition, combined(s.then, reads), combined(s.orelse, reads))
            loaded = {}
        elif type(s) is For:
            s = For(s.var, s.start, s.stop, s.step, combined(s.body, reads), s.exact)
            loaded = {}
        elif type(s) is While:
            s = While(combined(s.test, reads), s.condition, combined(s.body, reads))
            loaded = {}
        elif type(s) is Block:
            s = Block(s.label, combined(s.body, reads))
            loaded = {}
        elif type(s) is not Check:  # arrays are others now
            loaded = {}
        out.append(s)
    return out


# ------------------------------------------------------------------ what nobody reads
def without_dead(program: Program) -> list:
    """The body of a program without views, but for what its results depend on."""
    names = {n for o in program.outputs for n in (o[0], *o[2:]) if n}
    arrays = {i.name for i in program.inputs if i.written and i.name not in program.scratch}

    def reads(s: object) -> None:
        for e in expressions(s):
            for x in walk(e):
                if x.op == "var":
                    names.add(x.args[0])
                elif x.op == "load":
                    arrays.add(x.args[0])

    def needed(body: list) -> bool:
        """Whether any of these statements is; what they read then is, too."""
        found = False
        for s in reversed(body):
            if parts(s):
                here = sum([needed(inner) for inner in parts(s)]) > 0  # every one is looked at
            elif type(s) is Assign:
                here = s.name in names
            elif type(s) is Check:
                here = s.error != "full" or any(x.op == "dim" and x.args[0] in arrays for x in walk(s.condition))
            else:
                here = (s.array if type(s) is Store else s.name) in arrays
            if here:
                reads(s)
            found = found or here
        return found

    def kept(body: list) -> Iterator[object]:
        for s in body:
            if type(s) is If:
                then, orelse = list(kept(s.then)), list(kept(s.orelse))
                if then or orelse:
                    yield If(s.condition, then, orelse)
            elif type(s) is For:
                inner = list(kept(s.body))
                if inner:
                    yield For(s.var, s.start, s.stop, s.step, inner, s.exact)
            elif type(s) is While:
                test, inner = list(kept(s.test)), list(kept(s.body))
                if test or inner:
                    yield While(test, s.condition, inner)
            elif needed([s]):
                yield s

    size = -1
    while size != len(names) + len(arrays):
        size = len(names) + len(arrays)
        needed(program.body)
    return list(kept(program.body))


def sliced_to(program: Program, kept: frozenset[str] = frozenset()) -> Program | None:
    """The program of what may fail in another one, and of the results that are kept: its checks, and what they and
    these depend on. None where that is as long as the whole."""
    if program.moving or program.results or any(type(s) is Call for s in statements(program.body)):
        return None
    roots = {name: a.root for name, a in program.arrays.items()}
    outputs = [o for o in program.outputs if o[0] in kept]
    names = {n for o in outputs for n in (o[0], *o[2:]) if n}  # variables that are read
    used = {i.name for i in program.inputs if i.written and i.name in kept}  # arrays whose lengths or places are
    loaded = set(used)  # roots whose elements are

    def reads(s: Any) -> None:
        for e in (*expressions(s), *(s.bounds or () if type(s) is Check else ())):
            for x in walk(e):
                if x.op == "var":
                    names.add(x.args[0])
                elif x.op in ("load", "dim"):
                    used.add(x.args[0])
                    if x.op == "load":
                        loaded.add(roots[x.args[0]])
                elif x.op in ("apart", "held", "dense"):
                    used.update(x.args)

    def stays(s: Any) -> bool:
        """Whether a statement without others in it does, by what is known to be read."""
        if type(s) is Assign:
            return s.name in names
        if type(s) is Store:
            return roots[s.array] in loaded
        return type(s) in (Check, Leave) or s.name in used

    def sliced(body: list) -> list:
        out: list = []
        for s in reversed(body):
            inner = [sliced(b) for b in reversed(parts(s))][::-1]
            if inner and any(inner):
                out.append({If: _if, For: _for, While: _while, Block: _block}[type(s)](s, *inner))
            elif inner or not stays(s):
                continue
            else:
                out.append(s)
            reads(s)
            if type(s) is Store:
                used.add(s.array)
            elif type(s) in (View, Permute, Reshape):
                used.add(s.base)
        return out[::-1]

    _if = lambda s, then, orelse: If(s.condition, then, orelse)
    _for = lambda s, body: For(s.var, s.start, s.stop, s.step, body, s.exact)
    _while = lambda s, test, body: While(test, s.condition, body)
    _block = lambda s, body: Block(s.label, body)
    size, body = -1, []
    while size != len(names) + len(used) + len(loaded):
        size = len(names) + len(used) + len(loaded)
        body = sliced(program.body)
    stores = lambda body: sum(type(s) is Store for s in statements(body))
    if (stores(body) and stores(body) >= stores(program.body)) or work(body) == work(program.body):
        return None
    out = Program(f"{program.name}_part" if kept else f"{program.name}_checks")
    out.file, out.line, out.elements = program.file, program.line, program.elements
    out.kinds, out.arrays, out.body = dict(program.kinds), dict(program.arrays), body
    stored = {roots[s.array] for s in statements(body) if type(s) is Store}
    out.inputs = [i._replace(written=i.name in stored) for i in program.inputs if i.name in (used | loaded | names)]
    out.scratch = {i.name for i in out.inputs if i.written and i.name not in kept}
    out.outputs = outputs
    return out


def work(body: list) -> int:
    """How much there is to do in statements, where copies of numbers are for nothing."""
    operations = lambda s: sum(x.op not in ("var", "const", "copy") for e in expressions(s) for x in walk(e))
    return sum((type(s) is not Assign) + operations(s) for s in statements(body))


def seen(program: Program) -> set[str]:
    """The inputs of which more than their lengths matter."""
    roots = {name: a.root for name, a in program.arrays.items()}
    found = {i.name for i in program.inputs if i.ndim is None or i.written or program.moving}
    for s in statements(program.body):
        found.update([roots[s.array]] if type(s) is Store else [roots[s.base]] if type(s) is Reshape else [])
        for e in expressions(s):
            for x in walk(e):
                if x.op in ("load", "apart", "held", "dense"):
                    found.update(roots[a] for a in x.args if isinstance(a, str))
    return found


# ------------------------------------------------------------------ loops that scatter
def distributed(program: Program, body: list, fresh: Callable[[str], str]) -> list:
    """A body with a loop for every sum, where a loop adds to several elements of one array.

    fresh   makes names of new variables and arrays
    """
    out: list = []
    for s in body:
        if type(s) is If:
            out.append(If(s.condition, distributed(program, s.then, fresh), distributed(program, s.orelse, fresh)))
        elif type(s) is While:
            out.append(While(s.test, s.condition, distributed(program, s.body, fresh)))
        elif type(s) is For and any(map(parts, s.body)):
            inner = distributed(program, s.body, fresh)
            out.append(For(s.var, s.start, s.stop, s.step, inner, s.exact))
        elif type(s) is For:
            out += taken_apart(program, s, fresh)
        else:
            out.append(s)
    return out


def taken_apart(program: Program, s: For, fresh: Callable[[str], str]) -> list:
    """A loop without loops, upwards and in parts, if its turns do not depend on each other but for sums."""
    if s.exact or s.step not in (1, -1) or not independent(s):
        return [s]
    start, stop = s.start, s.stop
    if s.step == -1:
        start, stop = (E("add", (e, const(1)), INT, -(2**62), 2**62) for e in (s.stop, s.start))
    s = s._replace(body=added_once(program, s.body, fresh))
    sums = sums_of(s.body)
    one = [x for x in sums if not any(s.var in variables(i) or loads_any(i) for i in x.index)]  # for all turns
    sums = [x for x in sums if not any(x is y for y in one)]
    later = [x for k, x in enumerate(sums) if any(y.array == x.array for y in sums[:k])]
    if not later and not one:
        return [For(s.var, start, stop, 1, s.body, s.exact)]
    first, last, turns = fresh("first"), fresh("last"), fresh("turns")
    program.kinds |= dict.fromkeys((first, last, turns), INT)
    begin, end = E("var", (first,), INT, start.low, start.high), E("var", (last,), INT, stop.low, stop.high)
    span = E("max", (E("sub", (end, begin), INT), const(0)), INT, 0, 2**40)
    before: list = [Assign(first, start), Assign(last, stop), Assign(turns, span)]
    k = E("sub", (E("var", (s.var,), INT), begin), INT, 0, 2**40)
    values: dict[str, str] = {}  # what is added -> the array that keeps it
    pieces: list[list] = [[]]
    after: list = []
    for x in s.body:
        if any(x is y for y in one):
            name, (old, more) = fresh("sum"), x.value.args
            program.kinds[name] = kind = x.value.kind
            total = E("var", (name,), kind)
            before.append(Assign(name, const(0.0, kind)))
            pieces[0].append(Assign(name, E("add", (total, more), kind)))
            after.append(Store(x.array, x.index, E(x.value.op, (old, total), kind)))
            continue
        if not any(x is y for y in later):
            pieces[0].append(x)
            continue
        old, more = x.value.args
        key = repr(more) if more.op == "var" else f"{len(values)}"
        if key not in values:
            values[key] = name = fresh("sums")
            program.arrays[name] = Array(name, more.kind, 1, name)
            before.append(Alloc(name, (E("var", (turns,), INT, 0, 2**40),), False))
            pieces[0].append(Store(name, (k,), more))
        add = Store(x.array, x.index, E(x.value.op, (old, E("load", (values[key], k), more.kind)), x.value.kind))
        place = next((p for p in pieces[1:] if all(y.array != x.array for y in p)), None)
        if place is None:
            pieces.append(place := [])
        place.append(add)
    some = E("gt", (E("var", (turns,), INT, 0, 2**40), const(0)), BOOL, 0, 1)  # else no place need be there
    behind = [If(some, after, [])] if after else []
    return [*before, *(For(s.var, begin, end, 1, p, s.exact) for p in pieces), *behind]


def sums_of(body: list) -> list[Store]:
    """The stores that add to arrays with which nothing else is done, at places that are known before the turn."""
    inside = bound(body)
    stores = [x for x in body if type(x) is Store and not any(variables(i) & inside for i in x.index)]
    return [x for x in stores if summed(body, x.array)]


def added_once(program: Program, body: list, fresh: Callable[[str], str]) -> list:
    """Statements with one store for all that a turn adds to an element."""
    place = lambda x: (x.array, repr(x.index))
    found: dict[tuple[str, str], list[Store]] = {}
    for x in sums_of(body):
        found.setdefault(place(x), []).append(x)
    totals = {key: E("var", (fresh("sum"),), x[0].value.kind) for key, x in found.items() if len(x) > 1}
    program.kinds |= {e.args[0]: e.kind for e in totals.values()}
    out: list = []
    for x in body:
        total = totals.get(place(x)) if type(x) is Store else None
        if total is None:
            out.append(x)
            continue
        stores, (old, more) = found[place(x)], x.value.args
        if x is not stores[0]:
            more = E(x.value.op, (total, more), total.kind)
        elif x.value.op == "sub":
            more = E("neg", (more,), total.kind)
        out.append(Assign(total.args[0], more))
        if x is stores[-1]:
            out.append(Store(x.array, x.index, E("add", (old, total), total.kind)))
    return out


def independent(s: For) -> bool:
    """Whether the turns of a loop may run in any order, where sums may be rounded in any."""
    if any(type(x) not in (Assign, Store) for x in s.body):
        return False
    inside = bound(s.body)
    for name in {x.array for x in s.body if type(x) is Store}:
        stores = [x.index for x in s.body if type(x) is Store and x.array == name]
        places = {repr(i) for i in stores}
        places |= {repr(x.args[1:]) for t in s.body for e in expressions(t) for x in walk(e) if loads(x, name)}
        if not (len(places) == 1 and moves(stores[0], s.var, inside)) and not summed(s.body, name):
            return False
    unset = {name for name in inside if not counts(s.body, name)}
    for x in s.body:
        if any(variables(e) & unset for e in expressions(x)):  # what an earlier turn left
            return False
        if type(x) is Assign:
            unset.discard(x.name)
    return True


def counts(body: list, name: str) -> bool:
    """Whether statements do nothing with a variable but add to it."""
    own = [s.value for s in body if type(s) is Assign and s.name == name]
    reads = sum(name in variables(e) for s in body for e in expressions(s))
    to = lambda e: e.op == "add" and e.args[0].op == "var" and e.args[0].args[0] == name
    return reads == len(own) and all(to(e) and name not in variables(e.args[1]) for e in own)


def adds(s: Store) -> bool:
    """Whether a store adds to an element, or subtracts from it."""
    old = s.value.args[0] if s.value.op in ("add", "sub") else None
    return isinstance(old, E) and loads(old, s.array) and repr(old.args[1:]) == repr(s.index)


def loads_any(e: E) -> bool:
    return any(x.op == "load" for x in walk(e))


def loads(e: E, array: str) -> bool:
    return e.op == "load" and e.args[0] == array


def summed(body: list, array: str) -> bool:
    """Whether statements do nothing with an array but add to its elements."""
    for s in body:
        allowed = 1 if type(s) is Store and s.array == array else 0
        if allowed and not adds(s):
            return False
        if sum(loads(x, array) for e in expressions(s) for x in walk(e)) != allowed:
            return False
    return True


def moves(index: tuple, var: str, inside: set[str]) -> bool:
    """Whether an index is another one in every turn: on some axis the turn's number, or that plus what stays."""
    for i in index:
        fixed = not variables(i) & inside and not loads_any(i)
        if fixed and (is_var(i, var) or (i.op in ("add", "sub") and is_var(i.args[0], var) != is_var(i.args[1], var))):
            other = [a for a in i.args if isinstance(a, E) and not is_var(a, var)]
            if is_var(i, var) or all(var not in variables(a) for a in other):
                return True
    return False


def is_var(e: E, var: str) -> bool:
    while e.op == "copy":
        e = e.args[0]
    return e.op == "var" and e.args[0] == var
