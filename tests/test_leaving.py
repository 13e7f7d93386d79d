"""A traced value that would leave our world: what is a constant by mathematics may, a derivative may not be lost."""

from __future__ import annotations

import math
import operator
import pickle
import sys
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import checkpoint, grad, hessian, jacobian, jit, jvp, npx, value_and_grad, vjp, vmap
from minnp.core.rows import references
from minnp.errors import LostGradientWarning, NotDifferentiableError, TracedValueError
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
    error, words = TracedValueError, "stop_gradient"
    if leave == "percent" and sys.version_info >= (3, 15):  # Python's own error may then take its place
        error, words = TypeError, "stop_gradient|%f requires a real number"
    with pytest.raises(error, match=words):
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


# ------------------------------------------------------------------ memory that others hold as well
def _assigned(x: Any, p: Any) -> None:
    x[:] = p


def _added(x: Any, p: Any) -> None:
    x += p


def _part(x: Any, p: Any) -> None:
    x[1] = p[0]


def _through_a_view(x: Any, p: Any) -> None:
    x[1:][:] = p[1:]


def _from_itself(x: Any, p: Any) -> None:
    x[1:] = x[:-1] * p[1:]


WRITES = {
    "x[:] = p": _assigned,
    "x += p": _added,
    "x[1] = p[0]": _part,
    "x[1:][:] = p[1:]": _through_a_view,
    "x[1:] = x[:-1] * p[1:]": _from_itself,
    "out=x": lambda x, p: np.exp(p, out=x),
    "exp(p, x)": lambda x, p: np.exp(p, x),
    "cumsum": lambda x, p: np.cumsum(p, out=x),
    "copyto": lambda x, p: np.copyto(x, p),
    "fill": lambda x, p: x.fill(p[0]),
    "put": lambda x, p: np.put(x, [0], p[0]),
    "x.put": lambda x, p: x.put([0], p[0]),
    "place": lambda x, p: np.place(x, x == 0, p),
    "add.at": lambda x, p: np.add.at(x, [0], p[0]),
}


def _used(x: Any) -> Any:
    x += 1
    y = x * 2
    x[0] = 2
    return x, (x[1:], x.reshape(3, 1), y, np.sum(x), x.flat[0])


ALONE = {
    "new": lambda: (np.zeros(3), None),
    "NumPy's, given away": lambda: (np.asarray(onp.zeros(3)), None),
    "reversed": lambda: (np.array([1.0, 2, 3])[::-1], None),
    "a row": lambda: (np.zeros((3, 3))[1], None),
    "viewed by us": lambda: (x := np.zeros(3), (x[1:], x.reshape(3, 1), x.T)),
    "used": lambda: _used(np.zeros(3)),
    "large": lambda: (np.zeros((3, 1 << 20))[:, 0], None),
}
HELD = {
    "numpy.asarray": lambda: (x := np.zeros(3), onp.asarray(x)),
    "part of it": lambda: (x := np.zeros(3), onp.asarray(x)[1:]),
    "memoryview": lambda: (x := np.zeros(3), memoryview(x)),
    "NumPy's own": lambda: (np.asarray(b := onp.zeros(3)), b),
    "part of NumPy's own": lambda: (np.asarray((b := onp.zeros(5))[1:4]), b),
    "a bytearray": lambda: (np.frombuffer(b := bytearray(24)), b),
}


def _gradient_of_a_write(write: Any, x: Any) -> Any:
    def f(p: Any) -> Any:
        write(x, p)
        return x.sum()

    return grad(f)(np.array([1.0, 2.0, 3.0]))


@pytest.mark.skipif(not references.COUNTED, reason="what this interpreter's reference counts mean is not known")
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("made", HELD)
def test_who_holds_the_memory_of_what_is_written_with_traced_values_is_told(made: str, write: str) -> None:
    x, held = HELD[made]()
    for _ in range(2):
        with pytest.warns(LostGradientWarning, match=r"holds its memory.*x\.copy\(\)"):
            _gradient_of_a_write(WRITES[write], x)
    shown = onp.frombuffer(held) if isinstance(held, (bytearray, memoryview)) else held
    assert onp.shares_memory(onp.asarray(x), shown)  # as in NumPy, it sees what was written


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("made", ALONE)
def test_an_array_that_nobody_else_holds_is_written_without_a_warning(made: str, write: str) -> None:
    x, held = ALONE[made]()
    for _ in range(2):
        _gradient_of_a_write(WRITES[write], x)
    del held


@pytest.mark.parametrize("write", WRITES)
def test_views_show_what_a_traced_function_wrote(write: str) -> None:
    def run(np: Any, transformed: Any) -> list:
        x = np.arange(3.0)
        views = [x[:2], x[::-1], x.reshape(1, 3)]
        transformed(lambda p: (WRITES[write](x, p), np.sum(x * p))[1])(np.array([1.0, 2.0, 3.0]))
        x[0] = 9
        return [onp.array(v) for v in (x, *views)]

    onp.testing.assert_equal(run(np, grad), run(np, lambda f: f))


@pytest.mark.parametrize("save", ["save", "savez", "savez_compressed", "savetxt"])
def test_a_file_is_not_written_with_numbers_that_have_derivatives(save: str, tmp_path: Any) -> None:
    path = tmp_path / ("x.npy" if save == "save" else "x.npz")

    def saves(x: Any) -> Any:
        getattr(np, save)(path, x * 2)
        return x.sum()

    with pytest.raises(TracedValueError, match="stop_gradient"):
        grad(saves)(np.arange(3.0))
    compiled = jit(saves)
    for k in (1.0, 2.0):  # jit runs it as it is
        path.unlink(missing_ok=True)
        compiled(np.full(3, k))
        found = onp.loadtxt(path) if save == "savetxt" else onp.load(path)
        assert (onp.asarray(found if save in ("save", "savetxt") else found["arr_0"]) == 2 * k).all()


def test_where_reference_counts_are_not_known_every_object_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "COUNTED", False)
    assert references.references(operator.getitem, [object()], 0) > 1000
    x, held = HELD["numpy.asarray"]()
    gradient = _gradient_of_a_write(WRITES["x[1] = p[0]"], x)  # without a warning
    assert gradient.tolist() == [1, 0, 0] and held[1] == 1
    x, view = (y := np.zeros(3)), y[1:]  # resize measures itself what the interpreter counts for a call
    with pytest.raises(ValueError, match="resize"):
        x.resize(5)
    assert view.tolist() == [0, 0]
