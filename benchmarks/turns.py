"""Contestants of one process in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

SETTLE = 0.06  # seconds: the threads of OpenBLAS, OpenMP and XLA wait for work at full speed for up to 30 milliseconds


def take_turns(
    runs: Mapping[str, Callable[[], Any]],
    rounds: int,
    inner: int | Mapping[str, int] = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds a call of each takes in every round, of `inner` calls in a row.

    Before each turn the others' threads get time to fall asleep, and one call that is not timed brings the contestant's
    own data and threads back, as in a loop of it alone.
    """
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            time.sleep(SETTLE)
            run()
            n = inner if isinstance(inner, int) else inner[name]
            start = clock()
            for _ in range(n):
                run()
            taken[name].append((clock() - start) / n)
    return taken
