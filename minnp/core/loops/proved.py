"""Loops that do nothing but check do not run where their first and last turns show that no check fails.

What is left of a loop forwards, of which only the gradient is wanted, are its checks, and what their ways depend on. An
index that moves evenly with the turns is within an axis in all turns if it is so in the first and the last one,
whichever of them come to it.
"""

from __future__ import annotations

from collections import Counter

from .ir import (
    BOOL,
    INT,
    Alloc,
    Assign,
    Block,
    Check,
    E,
    For,
    If,
    Leave,
    Store,
    const,
    expressions,
    statements,
    variables,
    walk,
)
from .products import evenly
from .simplified import bound, exposed, replaced

CONVEX = ("lt", "le", "gt", "ge", "inside", "within")
LIMITS = -(2**62), 2**62


def proved(body: list, later: list | None = None) -> list:
    """Statements that only check, in which such loops run where it has to be seen turn by turn. `later`: what follows
    them."""
    out: list = []
    later = later or []
    for s in reversed(body):
        made = s
        if type(s) is Block:
            made = Block(s.label, proved(s.body, later))
        fine = holds(s, later) if type(s) is For else None
        if fine is not None:
            some = E("lt" if s.step == 1 else "gt", (s.start, s.stop), BOOL, 0, 1)
            made = If(some, [If(fine, [], [s])], [])
        out.insert(0, made)
        later = [s, *later]
    return out


def holds(s: For, later: list) -> E | None:
    """What shows that no check in a loop of some turns fails; None if it does more than to check, or has other
    checks."""
    inside = statements(s.body)
    changed = bound([s])
    labels = {x.label for x in inside if type(x) is Block}
    if (
        s.step not in (1, -1)
        or changed & exposed(later)
        or any(type(x) is Leave and x.label not in labels for x in inside)
    ):
        return None
    made = {x.name: x for x in inside if type(x) is Alloc}
    if any(type(x) not in (Alloc, Assign, Block, Check, For, If, Leave, Store) for x in inside):
        return None
    # it fills only arrays of its own, which nobody meets behind it
    if not {x.array for x in inside if type(x) is Store} <= made.keys() or made.keys() & met(later):
        return None

    counts = Counter(x.name if type(x) is Assign else x.var for x in inside if type(x) in (Assign, For))
    earlier = exposed(s.body)  # variables that may be those of the turn before
    values = {x.name: x.value for x in inside if type(x) is Assign and counts[x.name] == 1 and x.name not in earlier}

    def known(e: E) -> E | None:
        """An expression by what is the same in all turns, and the loop's variable."""
        if e.op == "var" and e.args[0] in values:
            return known(values[e.args[0]])
        if e.op == "dim" and e.args[0] in made:
            return known(made[e.args[0]].dims[e.args[1]])
        if e.op not in ("const", "var", "dim", "add", "sub", "mul", "neg", "copy") or e.kind.letter != "i":
            return None
        if e.op == "var" and e.args[0] in changed - {s.var}:
            return None
        args = [known(a) if isinstance(a, E) else a for a in e.args]
        return None if any(a is None for a in args) else E(e.op, tuple(args), e.kind, e.low, e.high, e.kinds, e.tag)

    last = E("sub", (s.stop, const(s.step)), INT, *LIMITS)

    def shown(c: E) -> E | None:
        if c.op == "const":
            return c if c.args[0] else None
        sides = [shown(a) if c.op == "and" else known(a) for a in c.args]
        if c.op not in ("and", "eq", *CONVEX) or any(a is None for a in sides):
            return None
        c = E(c.op, tuple(sides), BOOL, 0, 1)
        if c.op == "and" or s.var not in variables(c):
            return c
        if c.op == "eq" or not all(evenly(a, {s.var}) for a in sides):
            return None
        return E("and", tuple([replaced(c, {s.var: end}, True) for end in (s.start, last)]), BOOL, 0, 1)

    fine: E = const(True)
    for x in inside:
        if type(x) is Check:
            more = shown(x.condition)
            if more is None:
                return None
            fine = E("and", (fine, more), BOOL, 0, 1)
    return fine


def met(body: list) -> set[str]:
    """The arrays that statements name."""
    every = statements(body)
    named = {a for x in every for e in expressions(x) for y in walk(e) for a in y.args if isinstance(a, str)}
    return named | {field for x in every for field in x if isinstance(field, str)}
