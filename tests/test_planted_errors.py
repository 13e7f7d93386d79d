"""check_grads and quick_grad_check find an error of 1e-4 planted in any gradient rule of the table, and only that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as onp
import pytest
from derivatives import inexact

import minnp.npx
import minnp.numpy
from minnp import vjp
from minnp.core.rows.primitive import CONSTANT, TABLE, Joint, Primitive
from minnp.testing import check_grads
from minnp.utils.gradient_checker import quick_grad_check

if find_spec("scipy"):
    import minnp.scipy.fft
    import minnp.scipy.linalg
    import minnp.scipy.signal
    import minnp.scipy.special

WRONG = 1 + 1e-4


def times(x: Any, factor: float) -> Any:
    return tuple(v * factor for v in x) if isinstance(x, (tuple, list)) else x * factor


@contextmanager
def planted(row: Primitive, fact: str, i: int) -> Iterator[None]:
    """Argument i's rule in row.vjp, row.jvp or row.accumulate, off by one part in ten thousand."""
    right = getattr(row, fact)
    if fact == "accumulate":
        wrong: Any = lambda buffer, g, *arrays, **params: right(buffer, g * WRONG, *arrays, **params)
    elif isinstance(right, list):
        rule, wrong = right[i], list(right)
        wrong[i] = lambda *args, **params: times(rule(*args, **params), WRONG)
    elif isinstance(right, Joint):

        def joint(*args: Any, **params: Any) -> list:
            parts = list(right.rule(*args, **params))
            return [p if k != i or p is None else p * WRONG for k, p in enumerate(parts)]

        wrong = Joint(joint)
    else:
        wrong = lambda k, *args, **params: times(right(k, *args, **params), WRONG if k == i else 1)
    setattr(row, fact, wrong)
    try:
        yield
    finally:
        setattr(row, fact, right)


def functions(name: str, i: int) -> list[tuple[Callable, Any]]:
    """The row as functions of its argument i alone, and where to check them: one for each sample."""
    row, out = TABLE[name], []
    for arrays, params in row.samples():
        if i >= len(arrays) or not inexact(arrays[i]) or row.rule(i) in (None, CONSTANT):
            continue
        x = onp.asarray(arrays[i])
        x = x.astype(complex if x.dtype.kind == "c" else float)

        def f(x: Any, arrays: Any = arrays, params: Any = params) -> Any:
            return row(*arrays[:i], x, *arrays[i + 1 :], **params)

        out.append((f, x))
    return out


def found_by_check(f: Callable, x: Any, **options: Any) -> bool:
    try:
        check_grads(f, (x,), **options)
    except AssertionError:
        return True
    return False


def found_by_quick(f: Callable, x: Any) -> bool:
    def whole(x: Any) -> Any:
        """All results that a gradient flows through, in one vector."""
        y = f(x)
        parts = [v for v in (y if isinstance(y, (tuple, list)) else [y]) if v.dtype.kind in "fc"]
        return minnp.numpy.concatenate([minnp.numpy.ravel(v) for v in parts])

    return not quick_grad_check(whole, x, verbose=False, rs=onp.random.RandomState(0))


def rules(fact: str) -> list[tuple[str, int]]:
    """Every (row, argument) with a rule of its own."""
    out = []
    for name, row in TABLE.items():
        if row.vjp is None or row.vjp is CONSTANT or (fact == "jvp" and not isinstance(row.jvp, list)):
            continue
        width = max(len(arrays) for arrays, _ in row.samples())
        at = [i for i in range(width) if functions(name, i)]
        if fact == "jvp":
            at = [i for i in at if i < len(row.jvp) and callable(row.jvp[i])]
        out += [(name, i) for i in at]
    return sorted(out)


# An array's cotangent is added to in place, or written over, where that is cheaper: there the rule itself is run only
# when the gradient is differentiated; and of rows that read a part of one array, only when that is done forwards.
IN_PLACE = {name for name, row in TABLE.items() if row.accumulate is not None} | {"write_view"}
READING = {n for n in IN_PLACE if all(len(arrays) == 1 for arrays, _ in TABLE[n].samples())}


@pytest.mark.dealt
@pytest.mark.parametrize(("name", "i"), rules("vjp"))
def test_an_error_in_a_reverse_rule_is_found(name: str, i: int) -> None:
    row, cases, how = TABLE[name], functions(name, i), {"order": 1, "modes": ("rev",)}
    if name in IN_PLACE and i == 0:
        cases, how = [(lambda x, f=f: f(x) * f(x), x) for f, x in cases], {"order": 2, "modes": ("rev", "fwd")}
    for f, x in cases:
        assert not found_by_check(f, x, **how)
    with planted(row, "vjp", i):
        assert any(found_by_check(f, x, **how) for f, x in cases)


@pytest.mark.parametrize(("name", "i"), rules("jvp"))
def test_an_error_in_a_forward_rule_is_found(name: str, i: int) -> None:
    cases = functions(name, i)
    for f, x in cases:
        assert not found_by_check(f, x, order=1, modes=("fwd",))
    with planted(TABLE[name], "jvp", i):
        assert any(found_by_check(f, x, order=1, modes=("fwd",)) for f, x in cases)


@pytest.mark.parametrize("name", sorted(IN_PLACE - {"write_view"}))
def test_an_error_in_place_is_found(name: str) -> None:
    cases = functions(name, 0)
    with planted(TABLE[name], "accumulate", 0):
        assert any(found_by_check(f, x, order=1, modes=("rev",)) for f, x in cases)
        assert any(found_by_quick(f, x) for f, x in cases)


@pytest.mark.dealt
@pytest.mark.parametrize(("name", "i"), [(name, i) for name, i in rules("vjp") if name not in READING])
def test_quick_grad_check_finds_it_too(name: str, i: int) -> None:
    cases = functions(name, i)
    if name in IN_PLACE and i == 0:
        cases = [(lambda x, f=f: vjp(f, x)[1](f(x))[0], x) for f, x in cases]
    for f, x in cases:
        assert not found_by_quick(f, x)
    with planted(TABLE[name], "vjp", i):
        assert any(found_by_quick(f, x) for f, x in cases)


def test_an_error_of_one_argument_does_not_hide_behind_another() -> None:
    f = lambda x, y: minnp.numpy.tanh(x) + 1e2 * y**2
    check_grads(f, (onp.ones(3), onp.ones(3)))
    with planted(TABLE["tanh"], "vjp", 0), pytest.raises(AssertionError, match="argument 0"):
        check_grads(f, (onp.ones(3), onp.ones(3)))
