"""minprof: times of functions and blocks of user code.

    @minprof                      def step(x): ...
    with minprof("data loading"): ...
    minprof.print_stats()

For which kernels ran where, and why a call fell back, see `minnp.report()`.
"""

from __future__ import annotations

import functools
import pickle
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple, TextIO

ENABLED = True  # read when a function is decorated and when a block is entered


class Place(NamedTuple):
    """A timed piece of code."""

    filename: str
    line: int
    name: str


class Times:
    """What one place took: calls, seconds inside it (recursive calls counted once), and how deep it is running now."""

    __slots__ = ("calls", "depth", "seconds", "started")

    def __init__(self) -> None:
        self.calls, self.seconds, self.depth, self.started = 0, 0.0, 0, 0.0

    def __enter__(self) -> Times:
        if self.depth == 0:
            self.started = perf_counter()
        self.depth += 1
        return self

    def __exit__(self, *exc: Any) -> None:
        self.depth -= 1
        self.calls += 1
        if self.depth == 0:
            self.seconds += perf_counter() - self.started


class Profiler:
    """A decorator for functions and, called without one, a context manager for blocks."""

    def __init__(self) -> None:
        self.times: dict[Place, Times] = {}

    def __call__(self, subject: Callable | str | None = None) -> Any:
        if not callable(subject):
            frame = sys._getframe(1)
            place = Place(frame.f_code.co_filename, frame.f_lineno, subject or "block")
            return self._at(place) if ENABLED else Times()
        if not ENABLED:
            return subject
        code = getattr(subject, "__code__", None)
        name = getattr(subject, "__qualname__", repr(subject))
        times = self._at(Place(code.co_filename, code.co_firstlineno, name) if code else Place("", 0, name))

        @functools.wraps(subject)
        def timed(*args: Any, **kwargs: Any) -> Any:
            with times:
                return subject(*args, **kwargs)

        return timed

    def _at(self, place: Place) -> Times:
        return self.times.setdefault(place, Times())

    def get_stats(self) -> dict[tuple[str, int, str], tuple[int, float]]:
        """(file, line, name) -> (calls, seconds) of every place that ran."""
        return {place: (t.calls, t.seconds) for place, t in self.times.items() if t.calls}

    def print_stats(self, stream: TextIO | None = None) -> None:
        """Print calls, total and mean milliseconds per place, slowest first."""
        stream = stream or sys.stdout
        print(f"{'calls':>8} {'total ms':>12} {'each ms':>12}  where", file=stream)
        for place, (calls, seconds) in sorted(self.get_stats().items(), key=lambda item: -item[1][1]):
            where = f"{place[0]}:{place[1]} {place[2]}"
            print(f"{calls:8} {1e3 * seconds:12.3f} {1e3 * seconds / calls:12.3f}  {where}", file=stream)

    def dump_stats(self, filename: str) -> None:
        """Pickle get_stats() into a file."""
        with open(filename, "wb") as file:
            pickle.dump({tuple(place): times for place, times in self.get_stats().items()}, file)

    def clear(self) -> None:
        """Forget every time."""
        for times in self.times.values():
            times.calls, times.seconds = 0, 0.0


minprof = Profiler()
