"""The program of a batch: a loop over the examples around a program, as vmap has it.

What is batched has one axis more, the first. A number that comes out becomes an array that is written. What does not
lie in arrays (which way the program returned, whether a variable is bound, of which kind its number is) has to be the
same for all examples; else the program ends with "again".
"""

from __future__ import annotations

from .ir import (
    BOOL,
    INT,
    WORD,
    Array,
    Assign,
    Block,
    Check,
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
    expressions,
    statements,
    variables,
)
from .iterative import iterative
from .operations import NotUnderstood

MARK = "&"  # behind the names of batches
EVERY = ":"  # behind those of what all examples share


class Batched(Program):
    """A program of a batch.

    batches    the inputs of the other program that are batched, by name
    collected  its outputs that are arrays here, by name: the last inputs
    shared     what all examples share -> the place of its output
    """

    batches: frozenset[str]
    collected: list[str]
    shared: dict[str, int]


def batched(program: Program, given: set[str]) -> Batched:
    """The program of a batch of those of a program's inputs that are given so, by name, and of the arrays that are
    written. Raises NotUnderstood."""
    program = iterative(program)
    if WORD in program.kinds.values():
        raise NotUnderstood("a batch of integers of 64 bits", program.line)
    if program.moving:
        raise NotUnderstood("a batch of names that stand for several arrays", program.line)
    arrays: set[str] = set()  # but for tapes, and their cotangents: what an example puts there it takes, too
    for i in program.inputs:
        if i.ndim is not None and (not i.like or i.like in arrays):
            arrays.add(i.name)
    batches = {i.name for i in program.inputs if i.name in given or (i.written and i.name in arrays)}
    batches |= {i.like for i in program.inputs if i.like in arrays and i.name in batches}
    out = Batched(f"{program.name}_batch")
    out.file, out.line, out.mark, out.nested, out.elements = program.file, program.line, program.mark, True, True
    out.kinds, out.batches = dict(program.kinds), frozenset(batches)
    out.arrays = {n: _rooted(a, f"{a.root}{MARK}") if a.root in batches else a for n, a in program.arrays.items()}
    number = next(k for k in range(len(out.kinds) + 1) if f"example.{k}" not in out.kinds)
    turn = f"example.{number}"
    out.kinds[turn] = INT
    at = E("var", (turn,), INT, 0, 2**40)

    def batch(name: str, kind: Kind, ndim: int) -> str:
        name += MARK
        out.arrays[name] = Array(name, kind, ndim, name)
        return name

    body: list = []
    for i in program.inputs:
        if i.name not in batches:
            out.inputs.append(i)
            continue
        name = batch(i.name, i.kind, 1 + (i.ndim or 0))
        like = f"{i.like}{MARK}" if i.like in batches else i.like
        out.inputs.append(Input(name, i.kind, 1 + (i.ndim or 0), i.written, like))
        if i.name in program.scratch:
            out.scratch.add(name)
        if i.ndim is None:
            body.append(Assign(i.name, E("load", (name, at), i.kind, *_bounds(i.kind))))
        else:
            rest = [("slice", const(0), E("dim", (name, k + 1), INT, 0, 2**40), const(1)) for k in range(i.ndim)]
            body.append(View(i.name, name, (("index", at), *rest)))
    out.scratch |= {n for n in program.scratch if n not in batches}
    results = [v for name, _, tag, flag in program.outputs for v in (name, tag, flag) if v]
    bound = {i.name for i in program.inputs if i.ndim is None}
    exposed: set[str] = set()
    read_first(program.body, bound, exposed)
    for name in sorted(exposed | {v for v in results if v not in bound}):
        body.append(Assign(name, const(False if program.kinds[name].letter == "b" else 0, program.kinds[name])))
    body += program.body
    shared = [v for name, _, tag, flag in program.outputs for v in ((name, tag, flag) if same(name) else (tag, flag))]
    shared = list(dict.fromkeys(v for v in shared if v))
    out.collected = [name for name, *_ in program.outputs if not same(name)]
    for name in out.collected:
        kind = program.kinds[name]
        array = batch(name, kind, 1)
        out.inputs.append(Input(array, kind, 1, True))
        body.append(Store(array, (at,), E("var", (name,), kind)))
    for name in shared:
        kind, every = program.kinds[name], name + EVERY
        out.kinds[every] = kind
        alike = E("eq", (E("var", (name,), kind), E("var", (every,), kind)), BOOL, 0, 1)
        body.append(Check(E("or", (E("eq", (at, const(0)), BOOL, 0, 1), alike), BOOL, 0, 1), "again"))
        body.append(Assign(every, E("var", (name,), kind)))
        out.outputs.append((every, [kind], "", ""))
    out.shared = {name: k for k, name in enumerate(shared)}
    first = next(i.name for i in out.inputs if i.name.removesuffix(MARK) in batches)
    apart = not shared and arrays == {i.name for i in program.inputs if i.ndim is not None}
    out.body = [For(turn, const(0), E("dim", (first, 0), INT, 0, 2**40), 1, body, asked=apart)]
    return out


def same(name: str) -> bool:
    """Whether an output of a program says which way it went, and is no number of the user's."""
    return name == "<returned>" or name.endswith(("!", EVERY))


def _rooted(a: Array, root: str) -> Array:
    made = Array(a.name, a.kind, a.ndim, root, a.where)
    made.dims = a.dims
    return made


def _bounds(kind: Kind) -> tuple:
    return (0, 1) if kind.letter == "b" else (None, None)


def read_first(body: list, bound: set[str], found: set[str]) -> None:
    """Finds the variables that statements may read before they assign them; `bound` gets what they have assigned."""
    for s in body:
        for e in expressions(s):
            if type(s) is not While:
                found |= variables(e) - bound
        if type(s) is Assign:
            bound.add(s.name)
        elif type(s) is If:
            then, orelse = set(bound), set(bound)
            read_first(s.then, then, found)
            read_first(s.orelse, orelse, found)
            bound |= then & orelse
        elif type(s) is For:
            read_first(s.body, bound | {s.var}, found)
        elif type(s) is While:
            read_first(s.test, bound, found)
            found |= variables(s.condition) - bound
            read_first(s.body, set(bound), found)
        elif type(s) is Block:
            left = any(type(x) is Leave and x.label == s.label for x in statements(s.body))
            read_first(s.body, set(bound) if left else bound, found)
