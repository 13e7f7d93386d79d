"""The emulated accelerator finds what it is for: host code in its memory, copies, waits, operands in two memories."""

import ctypes

import numpy as onp
import pytest

from tests.backends.devices import EMULATED, torch

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not EMULATED, reason="without --accelerator, or no C++ compiler")]

import minnp
import minnp.numpy as np
from minnp import Context, grad
from tests import accelerator

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
