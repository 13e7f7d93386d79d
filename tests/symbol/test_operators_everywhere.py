"""Every operator of minnp.symbol does on a device, under jit and as a graph what it does on the host."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
import minnp.symbol as sym
from minnp import Context, Function, fx, grad, jit

sys.path.insert(0, str(Path(__file__).parent))
from cases import CASES, NAMES, arrays, make

pytestmark = [
    pytest.mark.host("the host's results are what others are compared with"),
    pytest.mark.either("each operator once in each way, whose C parts have tests of their own"),
]


class Call:
    """The first case of an operator: its symbol, arguments, states, and gradients that flow into it."""

    def __init__(self, name: str) -> None:
        inputs, parameters = CASES[name][0]
        self.symbol = make(sym, name, parameters, len(inputs))
        self.arguments, self.states = arrays(self.symbol, inputs, name)
        shapes = {n: a.shape for n, a in self.arguments.items()}
        results = self.symbol.infer_shape(**shapes)[1]
        self.heads = [onp.random.default_rng(1).normal(size=s).astype(onp.float32) for s in results]
        self.floats = [n for n, a in self.arguments.items() if a.dtype.kind == "f"]

    def bound(self, context: Any) -> list:
        """Results outside training, in training, gradients, states."""
        make = lambda given: {n: np.array(a) for n, a in given.items()}
        with context or Context("cpu"):
            arguments, states = make(self.arguments), make(self.states)
            gradients = {n: np.zeros_like(arguments[n]) for n in self.floats}
        executor = self.symbol.bind(context, arguments, gradients, "write" if gradients else "null", states)
        outside, inside = list(executor.forward()), list(executor.forward(is_train=True))
        if gradients:
            executor.backward([np.asarray(h).astype(y.dtype) for h, y in zip(self.heads, inside, strict=True)])
        return [*outside, *inside, *(executor.grad_dict[n] for n in self.floats), *executor.aux_arrays]

    def results(self) -> int:
        return len(self.symbol)


def same(ours: list, expected: list) -> None:
    for a, b in zip(map(onp.asarray, ours), map(onp.asarray, expected), strict=True):
        assert a.dtype == b.dtype
        onp.testing.assert_allclose(a, b, rtol=2e-3, atol=1e-4)


@pytest.mark.long
@pytest.mark.dealt
@pytest.mark.parametrize("name", NAMES)
def test_an_operator_everywhere(name: str) -> None:
    call = Call(name)
    expected = call.bound(None)
    count = call.results()
    if importlib.util.find_spec("torch"):
        same(call.bound(Context("cpu", 0, "torch")), expected)
    for training, results in ((False, expected[:count]), (True, expected[count : 2 * count])):
        module = fx.GraphModule({}, call.symbol.to_graph(training))
        module.graph.lint()
        given = call.arguments | {n: np.array(a) for n, a in call.states.items()}
        y = module(*[given[n] for n in call.symbol.list_inputs()])
        same(list(y) if isinstance(y, tuple) else [y], results)
    f = Function(call.symbol, input_shapes={n: a.shape for n, a in call.arguments.items()})
    rest = {n: a for n, a in call.arguments.items() if n not in call.floats}

    def loss(values: list, states: dict) -> Any:
        y = f(**rest, **dict(zip(call.floats, values, strict=True)), **states)
        return sum(np.sum(a * h) for a, h in zip(y if isinstance(y, tuple) else (y,), call.heads, strict=True))

    if call.floats:
        copies = lambda: {n: np.array(a) for n, a in call.states.items()}
        values = [np.array(call.arguments[n]) for n in call.floats]
        compiled = jit(grad(loss))
        for _ in range(2):
            same(compiled(values, copies()), grad(loss)(values, copies()))
