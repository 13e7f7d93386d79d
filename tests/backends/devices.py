"""The torch devices that tests run on: the CPU as one, and the GPU, with --accelerator the emulated one."""

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the torch backend needs torch: pip install torch")

import minnp
from minnp import Context
from minnp.backends.torch import accelerator
from tests import accelerator as emulated

GPU = accelerator(torch)  # torch's name for it, or None
EMULATED = GPU == emulated.NAME
needs_gpu = pytest.mark.skipif(GPU is None, reason="torch sees no GPU")
DEVICES = ["cpu", pytest.param("gpu", marks=[pytest.mark.gpu, needs_gpu])]
# One device for whole modules: with --accelerator their tests are GPU-marked ones. `pytestmark = on_there`.
THERE = Context("gpu" if EMULATED else "cpu", 0, "torch")
on_there: Any = [pytest.mark.gpu] if EMULATED else []
_before: dict[str, int] = {}


def reset() -> None:
    """Begin to count the copies to the host anew."""
    minnp.reset_report()
    if EMULATED:
        _before.update(emulated.counted())


def copies() -> int:
    """How often arrays were copied to the host, by the report or the emulated device, which also counts waits."""
    said = sum(r["calls"] for r in minnp.report() if r["function"] == "copy to host")
    if not EMULATED:
        return said
    now = emulated.counted()
    return max(said, *(now[event] - _before[event] for event in ("to host", "wait")))


ON_A_CPU = pytest.mark.skipif(EMULATED, reason="about torch's CPU device")
