"""A traced value that would leave our world: what is a constant by mathematics may, a derivative may not be lost."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import checkpoint, grad, hessian, jacobian, jit, jvp, npx, value_and_grad, vjp, vmap
from minnp.errors import NotDifferentiableError, TracedValueError
from minnp.testing import check_grads


def held_before(x: Any, leave: Any) -> Any:
    """What leaves a view of an array that is written after the view was made."""
    buffer = np.zeros(2)
    view = buffer[1:].reshape(())
    buffer[1] = x.sum()
    return leave(view)


LEAVES = {
    "float of a view": lambda x: held_before(x, float) * x,
    "complex of a view": lambda x: held_before(x, complex) * x,
    "math of a view": lambda x: held_before(x, math.exp) * x,
    "tolist of a view": lambda x: held_before(x, lambda v: v.tolist()) * x,
    "float": lambda x: float(x.sum()) * x,
    "complex": lambda x: complex(x.sum()) * x,
    "math": lambda x: math.exp(x.sum()) * x,
    "item": lambda x: x.sum().item() * x,
    "item of many": lambda x: x.item(1) * x,
    "tolist": lambda x: onp.array(x.tolist()) * 2,
    "numpy": lambda x: onp.asarray(x) * 2,
    "bytes": lambda x: onp.frombuffer(x.tobytes()) * x,
    "pickled bytes": lambda x: pickle.loads(x.dumps()) * x,
    "percent": lambda x: len("%f" % x.sum()) * x,  # noqa: UP031
    "nan_to_num": lambda x: np.nan_to_num(x, nan=x.sum()),
    "dropout": lambda x: npx.dropout(x, 0.5, mask=x),
}
TRANSFORMS = {
    "grad": lambda f, x: grad(f)(x),
    "value_and_grad": lambda f, x: value_and_grad(f)(x),
    "vjp": lambda f, x: vjp(f, x),
    "jvp": lambda f, x: jvp(f, (x,), (x,)),
    "jacobian": lambda f, x: jacobian(f)(x),
    "forward": lambda f, x: jacobian(f, mode="forward")(x),
    "hessian": lambda f, x: hessian(lambda x: f(x).sum())(x),
    "grad of jit": lambda f, x: grad(jit(f))(x),
    "jit of grad": lambda f, x: jit(grad(f))(x),
    "grad of vmap": lambda f, x: grad(lambda x: vmap(f)(x[None]))(x),
    "vmap of grad": lambda f, x: vmap(grad(f))(x[None]),
    "checkpoint": lambda f, x: grad(lambda x: checkpoint(f)(x))(x),
}


@pytest.mark.parametrize("how", sorted(TRANSFORMS))
@pytest.mark.parametrize("leave", sorted(LEAVES))
def test_a_number_with_a_derivative_does_not_leave(leave: str, how: str) -> None:
    with pytest.raises(TracedValueError, match="stop_gradient"):
        TRANSFORMS[how](LEAVES[leave], onp.array([0.2, 0.4]))


def test_the_message_names_the_value_and_the_ways_out() -> None:
    with pytest.raises(TracedValueError) as caught:
        grad(lambda x: math.sin(x.sum()))(onp.ones(3, "f4"))
    words = str(caught.value)
    for part in ("float32[]", "Python float", "np.exp for math.exp", "np.stop_gradient", "custom_vjp"):
        assert part in words


def test_what_is_locally_constant_may_be_asked() -> None:
    def f(x: Any, n: Any) -> Any:
        if x.sum() > 1 and x[0]:
            x = x * 2
        for _ in range(int(n)):
            x = x * x
        k = int(x.sum())  # truncated: a constant wherever it has a derivative
        assert (x > 0).tolist() == [True, True] and np.argmax(x).item() == 1
        return x.sum() * k + float(np.stop_gradient(x.sum())) + np.stop_gradient(x).sum().item()

    x = onp.array([1.0, 1.5])
    expected = 2 * 4 * x * int(((2 * x) ** 2).sum())
    onp.testing.assert_allclose(grad(f)(x, 1), expected)
    onp.testing.assert_allclose(grad(lambda n, x: f(x, n), 1)(onp.array(1), x), expected)


def test_texts_of_numbers_are_no_constants() -> None:
    back = lambda x: x.astype("U32").astype(float).sum()
    for f in (grad(back), lambda x: jvp(back, (x,), (x,)), grad(lambda x: len(bytes(x.data)) * x)):
        with pytest.raises((NotDifferentiableError, TracedValueError)):
            f(onp.ones(2))
    assert grad(lambda x: (x * x).sum() * len(x.astype("U32")))(onp.ones(2)).tolist() == [4, 4]


def test_outside_the_tape_numbers_leave() -> None:
    loss, g = value_and_grad(lambda x: (x**2).sum())(onp.ones(2))
    assert float(loss) == loss.item() == 2.0 and g.tolist() == [2.0, 2.0]
    (value, aux), _ = value_and_grad(lambda x: (x.sum(), x * 2), has_aux=True)(onp.ones(2))
    assert float(value) == 2.0 and aux.tolist() == [2.0, 2.0]
    assert math.sqrt(jvp(np.sum, (onp.ones(4),), (onp.ones(4),))[1]) == 2.0


def test_under_capture_alone_a_float_is_a_guard() -> None:
    f = jit(lambda x: x * float(x.sum()))
    for a in (1.0, 2.0, 1.0):
        onp.testing.assert_allclose(f(np.full(2, a)), onp.full(2, 2 * a * a))


def test_arguments_that_were_taken_for_constants() -> None:
    xs = onp.array([-1.0, 0.3, 2.2, 9.0])
    grid, values = onp.array([0.0, 1.0, 2.5]), onp.array([1.0, -1.0, 3.0])
    check_grads(lambda a, b: np.interp(xs, grid, values, left=a, right=b), (1.5, 2.5))
    check_grads(lambda t: npx.softmax(xs, temperature=t), (1.0,))
    check_grads(lambda t: npx.log_softmax(xs, temperature=t), (1.0,))
