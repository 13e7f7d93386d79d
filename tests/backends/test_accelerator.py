"""The emulated accelerator finds what it is for: host code in its memory, copies, waits, operands in two memories."""

import ctypes
from contextlib import nullcontext
from typing import Any

import numpy as onp
import pytest

from tests.backends.devices import EMULATED, torch

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not EMULATED, reason="without --accelerator, or no C++ compiler")]

import minnp
import minnp.numpy as np
from minnp import Context, grad
from tests import accelerator
from tests.backends import torch_composed as composed

THERE = Context("gpu", 0, "torch")


def placed(x: onp.ndarray, context: Context = THERE) -> np.ndarray:
    with context:
        return np.array(x)


def numpys(t: torch.Tensor) -> onp.ndarray:
    """What code that takes any pointer for the host's would make of a tensor: an array on its memory."""
    return onp.ctypeslib.as_array((ctypes.c_double * t.numel()).from_address(t.data_ptr()))


@pytest.mark.faults
def test_host_code_that_reads_or_writes_an_array_there_is_told_so():
    x = torch.arange(3.0, dtype=torch.float64, device=accelerator.NAME)
    before = accelerator.counted()["fault"]
    for reach in (lambda: numpys(x).sum(), lambda: numpys(x).fill(2.0), lambda: numpys(x).sum()):
        torch.exp(x)  # a kernel closes what a fault has opened
        with pytest.raises(accelerator.HostAccess):
            reach(), id(x)
    assert accelerator.counted()["fault"] == before + 3


def test_copies_and_waits_are_counted():
    before = accelerator.counted()
    x = placed(onp.arange(6.0).reshape(2, 3))
    y = np.sum(np.exp(x) @ x.T)
    then = accelerator.counted()
    assert {k: then[k] - before[k] for k in before if k != "kernel"} == {
        "to device": 1, "to host": 0, "wait": 0, "fault": 0,
    }  # fmt: skip
    assert float(y) == pytest.approx(
        float((onp.exp(onp.arange(6.0)).reshape(2, 3) @ onp.arange(6.0).reshape(2, 3).T).sum())
    )
    assert {k: accelerator.counted()[k] - then[k] for k in ("to host", "wait")} == {"to host": 1, "wait": 1}


def test_copies_that_are_forbidden_raise_also_where_somebody_catches_it():
    x = placed(onp.arange(3.0))
    with accelerator.forbidden():
        grad(lambda x: np.sum(np.sin(x) * x[0]))(x)
    for event, words, call in (
        ("to host", "a copy to the host", lambda: float(x[0])),
        ("wait", "a wait", lambda: torch.accelerator.synchronize()),
        ("to device", "a copy to the device", lambda: placed(onp.ones(3))),
    ):
        caught = pytest.raises(RuntimeError, match=f"forbidden {words}")
        said = pytest.raises(AssertionError, match=f"{event}, at\n(?s:.*)in <lambda>")
        with said, accelerator.forbidden(event), caught:
            call()


def test_operands_in_two_memories_are_refused_by_torch_and_moved_by_minnp():
    x = torch.ones(3, device=accelerator.NAME)
    for other in (torch.ones(3), torch.ones(3, device=f"{accelerator.NAME}:1")):
        with pytest.raises(RuntimeError, match="same device"):
            x + other
    y = placed(onp.ones(3)) + np.arange(3.0)
    assert y.context == THERE and onp.asarray(y).tolist() == [1, 2, 3]
    z = y.to_device(minnp.gpu(1))
    assert z.context == Context("gpu", 1, "torch") and onp.asarray(z * 2).tolist() == [2, 4, 6]
    with pytest.raises(minnp.errors.BackendMissingError, match="sees 2 GPU"):
        y.to_device(minnp.gpu(2))


def test_memory_that_nobody_wrote_to_is_nan_and_what_is_freed_is_used_again():
    x = torch.empty(1000, dtype=torch.float64, device=accelerator.NAME)
    assert x.isnan().all()
    before, at = accelerator.allocated(), x.data_ptr()
    x.fill_(1.0)
    del x
    y = torch.empty(1000, dtype=torch.float64, device=accelerator.NAME)
    assert accelerator.allocated() == before and y.data_ptr() == at and y.isnan().all()


def test_results_may_be_views_resized_or_shared_as_on_the_cpu():
    x = torch.arange(6.0, device=accelerator.NAME)
    out = torch.empty(0, device=accelerator.NAME)
    assert torch.add(x, 1, out=out).data_ptr() == out.data_ptr() and out.tolist() == [1, 2, 3, 4, 5, 6]
    x.view(2, 3).t()[1:].mul_(10)
    assert x.tolist() == [0, 10, 20, 3, 40, 50]
    assert torch.view_as_real(torch.complex(x, x)).sum().item() == 246


HOST_MASK = onp.array([True, False, True])
# of x (3 x 4), i: one position, r: two, m: a mask of rows, b: of x, v: as many numbers as x has columns
WITHOUT_WAITING = """
x[i]
x[i, i], x[:, i], x[None, i, 1:], x[i, :, None], x[..., i], x[1, i], x[i - 2]
x[np.argmax(x[:, 0])]
x[i, r], x[None][:, i, r], x[:, None][r, :, i]
x[HOST_MASK], x[HOST_MASK, 1:], x[:, [True, False, True, True]], x[HOST_MASK, [0, 2]]
np.take(x, i, axis=0), np.take(x, 1, axis=1), np.take(x, i - 1), np.take(x, i + 7, mode="wrap")
x[i] = 1.0
x[i] = x[0]
x[:, i] = v[:3]; x[i, i] *= 2
x[i, r] = v[:2]; x[HOST_MASK] = 1.0; x[HOST_MASK] += x[:2]
x[m] = 1.0; x[m, 1:] = 0.5
x[b] = 0
np.putmask(x, b, x * 2); np.putmask(x, b, v)
np.place(x, b, v)
np.put_along_axis(x, np.argsort(x, 1), v[None] + x, 1); np.put_along_axis(x, np.argsort(x, 1) - 4, 1.0, 1)
np.put(x, r, 9.0); np.put(x, [1, -2], 2.5)
np.fill_diagonal(x, v[:3])
np.cov(x), np.corrcoef(x), np.percentile(x, 30, axis=0), np.quantile(x, 0.4, method="hazen"), np.median(x)
np.linalg.multi_dot([x, x.T, x[:, :2]])
np.pad(x, 1), np.pad(x.T, ((0, 1), (2, 0))), np.full_like(x, 2, dtype="i4"), np.full_like(x.T, 0.5)
np.stack([row * 2 for row in x]), sum(v), np.polyval(v, x), *x
grad(lambda x: np.sum(x[i] ** 2) + np.sum(np.take(x, i, axis=1)) + np.sum(x[HOST_MASK] ** 3))(x)
""".strip().splitlines()


def variables(n: Any) -> dict[str, Any]:
    rng = onp.random.default_rng(0)
    x, v = rng.permutation(onp.arange(12.0)).reshape(3, 4), rng.standard_normal(4)
    arrays = {"x": x, "v": v, "i": onp.array(1), "r": onp.array([2, 0]), "m": HOST_MASK, "b": x > 5}
    return {"np": n, "HOST_MASK": HOST_MASK, "grad": grad, **{name: n.array(a) for name, a in arrays.items()}}


def run(program: str, names: dict[str, Any]) -> list[Any]:
    """x and the value, after statements, or an expression."""
    try:
        out = eval(program, names)
    except SyntaxError:
        out = exec(program, names)
    return [names["x"], *(out if isinstance(out, tuple) else () if out is None else (out,))]


@pytest.mark.parametrize("program", WITHOUT_WAITING, ids=range(len(WITHOUT_WAITING)))
def test_nothing_is_copied_or_waited_for_and_results_live_where_their_arguments_do(program):
    want = run(program, variables(np))
    for inside in (False, True):
        with THERE:
            names = variables(np)
        with THERE if inside else nullcontext(), accelerator.forbidden():
            got = run(program, names)
        for g, w in zip(got, want, strict=True):
            assert g.context == THERE and g.dtype == w.dtype
            onp.testing.assert_allclose(onp.asarray(g), onp.asarray(w), rtol=1e-12)


@pytest.mark.parametrize("f", [
    np.linalg.inv, np.linalg.cholesky, lambda x: np.linalg.solve(x, x), np.linalg.eigvals, lambda x: float(x[0, 0]),
    lambda x: np.linalg.lstsq(x[:, :2], x, rcond=None), lambda x: np.linalg.solve(x, x[0]), np.linalg.tensorinv,
])  # fmt: skip
def test_what_is_asked_of_the_device_is_in_the_report(f):
    x = placed(onp.eye(4) * 3 + 0.1 if f is not np.linalg.tensorinv else onp.eye(4).reshape(2, 2, 2, 2) + 0.1)
    before = accelerator.counted()["to host"]
    minnp.reset_report()
    f(x)
    said = sum(r["calls"] for r in minnp.report() if r["function"] == "copy to host")
    assert said == accelerator.counted()["to host"] - before > 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_results_of_compositions_live_where_their_arguments_do():
    def arrays(y: Any) -> list[Any]:
        return (
            [a for e in y for a in arrays(e)] if isinstance(y, (tuple, list)) else [y] if getattr(y, "ndim", 0) else []
        )

    for case in filter(composed.known, composed.CASES):
        with THERE:
            given = {name: np.array(a) for name, a in composed.data("f").items()}
        assert all(a.context == THERE for a in arrays(composed.result(case, np, given)) if a.size), case
