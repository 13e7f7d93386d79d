"""Every operator of minnp.symbol against MXNet's own: names, shapes, values, gradients, states, JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as onp
import pytest

import minnp.symbol as sym

sys.path.insert(0, str(Path(__file__).parent))
from cases import CASES, NAMES, WITHOUT, WRONG, arrays, make

mx = pytest.importorskip("mxnet", reason="MXNet's own operators are what these are compared with")
pytestmark = [
    pytest.mark.host("MXNet computes on the host"),
    pytest.mark.filterwarnings("ignore:Please import `csr_matrix`:DeprecationWarning"),  # mx.nd.array asks for it
]


def numpy_of(array: Any) -> onp.ndarray:
    return array.asnumpy() if hasattr(array, "asnumpy") and not isinstance(array, onp.ndarray) else onp.asarray(array)


def same(ours: Any, theirs: Any, what: str, rtol: float = 2e-4) -> None:
    ours, theirs = numpy_of(ours), numpy_of(theirs)
    assert ours.shape == theirs.shape, f"{what}: {ours.shape} and {theirs.shape}"
    assert ours.dtype == theirs.dtype, f"{what}: {ours.dtype} and {theirs.dtype}"
    onp.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol * 0.1, err_msg=what)


def run(
    symbol: Any, library: Any, arguments: dict, states: dict, heads: list, constant: set
) -> tuple[list, list, dict, dict]:
    """(results outside training, in training, gradients, states after it)."""
    array = onp.array if library is sym else mx.nd.array
    make = lambda a: array(a, dtype=a.dtype)
    context = None if library is sym else mx.cpu()
    given = {n: make(a) for n, a in arguments.items()}
    gradients = {n: make(onp.zeros_like(a)) for n, a in arguments.items() if a.dtype.kind == "f" and n not in constant}
    kept = {n: make(a) for n, a in states.items()}
    bound = symbol.bind(context, given, gradients, "write" if gradients else "null", kept)
    outside = [numpy_of(y).copy() for y in bound.forward(is_train=False)]
    inside = [numpy_of(y).copy() for y in bound.forward(is_train=True)]
    if gradients:
        seeds = [make(h.astype(y.dtype)) for h, y in zip(heads, inside, strict=True)]
        bound.backward(seeds)
    return outside, inside, {n: bound.grad_dict[n] for n in gradients}, bound.aux_dict


@pytest.mark.parametrize("name", NAMES)
def test_an_operator_is_mxnets(name: str) -> None:
    assert CASES.get(name), f"tests/symbol/cases.py has no case of {name}"
    for inputs, parameters in CASES[name]:
        what = f"{name} {parameters}"
        ours, theirs = (make(library, name, parameters, len(inputs)) for library in (sym, mx.sym))
        for names in ("list_arguments", "list_outputs", "list_auxiliary_states"):
            assert getattr(ours, names)() == getattr(theirs, names)(), what
        given = {f"x{i}": x if isinstance(x, tuple) else x.shape for i, x in enumerate(inputs)}
        found = ours.infer_shape(**given)
        assert found == tuple(list(map(tuple, s)) for s in theirs.infer_shape(**given)), what
        arguments, states = arrays(ours, inputs, name)
        rng = onp.random.default_rng(1)
        heads = [rng.normal(size=s).astype(onp.float32) for s in found[1]]
        wrong = any(name == n and some.items() <= parameters.items() for n, some, _ in WRONG)
        constant = set(arguments) if wrong else WITHOUT.get(name, set())
        mine = run(ours, sym, arguments, states, heads, constant)
        other = run(theirs, mx.sym, arguments, states, heads, constant)
        for when, a, b in zip(("outside training", "in training"), mine, other):
            for y, z in zip(a, b, strict=True):
                same(y, z, f"{what} {when}")
        for n in mine[2]:
            same(mine[2][n], other[2][n], f"{what}: the gradient of {n}")
        for n in mine[3]:
            same(mine[3][n], other[3][n], f"{what}: the state {n}")
        back = sym.load_json(theirs.tojson())
        assert back.list_outputs() == ours.list_outputs() and back.list_arguments() == ours.list_arguments(), what
        there = mx.sym.load_json(ours.tojson())
        assert there.list_outputs() == theirs.list_outputs() and there.infer_shape(**given) == theirs.infer_shape(
            **given
        )
