"""How long compiling one part of a function may take, and what the gradient of a loop may keep."""

from __future__ import annotations

import numbers
import os
import time

seconds = float(os.environ.get("MINNP_COMPILE_BUDGET", "2"))
kept = int(os.environ.get("MINNP_GRADIENT_BUDGET", 1 << 31))  # bytes


def set_compile_budget(limit: float) -> float:
    """Let `jit` spend up to `limit` seconds of the processor's time on compiling one loop; the limit until now.

    A loop that would take longer is Python's, and `minnp.report()` says so; one that would take more than half of it
    is compiled with less optimisation. A function whose Python does more than 2,500 things, and takes more than half of
    it to record (what they compute is not counted), runs as it is, and so does one whose loops stay Python and do more
    than 1,000 things with small arrays. Unrolled loops whose machine code would take a quarter of it are NumPy's. The
    default is 2, or the environment's MINNP_COMPILE_BUDGET.

    Raises ValueError unless the limit is positive.

    >>> before = set_compile_budget(0.5)
    >>> set_compile_budget(before)
    0.5
    """
    global seconds
    if not isinstance(limit, numbers.Real) or not limit > 0:
        raise ValueError(f"set_compile_budget: more than 0 seconds, got {limit!r}")
    before, seconds = seconds, limit
    return before


def set_gradient_budget(limit: int) -> int:
    """Let the gradient of one compiled loop keep up to `limit` bytes for its way back; the limit until now.

    Where a loop over a range would keep more, it runs in parts, about as many as each has iterations: what changes in
    the loop is kept as it was before each part, and the numbers of one part at a time, which are computed again on the
    way back. That takes the time of about one more run forwards. What still keeps more, and a `while` loop, raises
    MemoryError, which names the loop; `minnp.checkpoint` of a function that runs a part of the iterations keeps less.
    The default is 2 GiB, or the environment's MINNP_GRADIENT_BUDGET.

    Raises ValueError unless there is room for one number, 8 bytes.

    >>> before = set_gradient_budget(10**6)
    >>> set_gradient_budget(before)
    1000000
    """
    global kept
    if not isinstance(limit, numbers.Real) or not limit >= 8:
        raise ValueError(f"set_gradient_budget: at least 8 bytes, got {limit!r}")
    before, kept = kept, int(limit)
    return before


class Deadline:
    """When this thread has used up what it may use from now on."""

    __slots__ = ("end",)

    def __init__(self) -> None:
        self.end = time.thread_time() + seconds

    def leave_out(self, begin: float) -> float:
        """Not count the time since then, by `time.thread_time`; the seconds."""
        took = time.thread_time() - begin
        self.end += took
        return took

    def passed(self, share: float = 1.0) -> bool:
        """Whether this share of the time is used up."""
        return self.left() < (1 - share) * seconds

    def left(self) -> float:
        """Seconds."""
        return self.end - time.thread_time()
