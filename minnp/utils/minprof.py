"""minprof: times of functions and blocks of user code.

    @minprof                      def step(x): ...
    with minprof("data loading"): ...
    minprof.print_stats()

When they ran, with the layers of minnp.nn and the parts of a Solver's steps, for chrome://tracing or ui.perfetto.dev:

    with minprof.timeline("trace.json"):
        net.fit(x, y)

For which kernels ran where, and why a call fell back, see `minnp.report()`.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from time import perf_counter, perf_counter_ns
from typing import Any, NamedTuple, TextIO

ENABLED = True  # read when a function is decorated and when a block is entered


class Place(NamedTuple):
    """A timed piece of code."""

    filename: str
    line: int
    name: str


class Span(NamedTuple):
    """Something that ran: nanoseconds from the timeline's beginning, and the thread it ran in."""

    name: str
    category: str
    start: int
    duration: int
    thread: int
    details: dict[str, Any]


class Timeline:
    """What ran when: `spans`, in the order in which they ended.

    Times are those of the calls, which on a GPU return before their results are there. What jit compiles is seen while
    it is captured, and as part of what calls it from then on.
    """

    def __init__(self) -> None:
        self.began, self.spans = perf_counter_ns(), []

    def save(self, path: str | os.PathLike) -> None:
        """Write the spans as Chrome's trace events (JSON)."""
        events: list[dict] = [
            {
                "name": s.name,
                "cat": s.category,
                "ph": "X",  # a complete event: it has a beginning and a duration, in microseconds
                "ts": s.start / 1e3,
                "dur": s.duration / 1e3,
                "pid": os.getpid(),
                "tid": s.thread,
                "args": s.details,
            }
            for s in self.spans
        ]
        with open(path, "w") as file:
            json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, file)


TIMELINES: list[Timeline] = []  # those being recorded


def ended(name: str, category: str, start: int, details: dict[str, Any]) -> None:
    """Put what began at `start` and ends now on every timeline."""
    now, thread = perf_counter_ns(), threading.get_ident()
    for timeline in TIMELINES:
        timeline.spans.append(Span(name, category, start - timeline.began, now - start, thread, details))


@contextlib.contextmanager
def recorded(name: str, category: str) -> Iterator[None]:
    start = perf_counter_ns()
    try:
        yield
    finally:
        ended(name, category, start, {})


def watch_layer(layer: Any, forward: Callable) -> Callable:
    """forward, whose calls are put on the timelines (see minnp.nn.model.WATCHERS)."""

    def run(*inputs: Any, **options: Any) -> Any:
        start = perf_counter_ns()
        try:
            return forward(*inputs, **options)
        finally:
            given = [f"{x.dtype}{list(x.shape)}" for x in inputs if hasattr(x, "shape") and hasattr(x, "dtype")]
            ended(type(layer).__name__, "layer", start, {"given": ", ".join(given)})

    return run


NOTHING = contextlib.nullcontext()


def span(name: str, category: str = "training") -> Any:
    """A context manager: its block is on the timelines, if one is recorded; it is in no statistics."""
    return recorded(name, category) if TIMELINES else NOTHING


class Times:
    """What one place took: calls, seconds inside it (recursive calls counted once), and how deep it is running now."""

    __slots__ = ("calls", "depth", "place", "seconds", "spans", "started")

    def __init__(self, place: Place | None = None) -> None:
        self.calls, self.seconds, self.depth, self.started = 0, 0.0, 0, 0.0
        self.place: Place | None = place
        self.spans: dict[int, list[int]] = {}  # by thread: when what runs now began, if a timeline is recorded

    def __enter__(self) -> Times:
        if TIMELINES:
            self.spans.setdefault(threading.get_ident(), []).append(perf_counter_ns())
        if self.depth == 0:
            self.started = perf_counter()
        self.depth += 1
        return self

    def __exit__(self, *exc: Any) -> None:
        self.depth -= 1
        self.calls += 1
        if self.depth == 0:
            self.seconds += perf_counter() - self.started
        if self.spans:
            starts = self.spans.get(threading.get_ident())
            if starts and self.place is not None:
                where = f"{self.place.filename}:{self.place.line}"
                ended(self.place.name, "code", starts.pop(), {"where": where})


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
        times = self.times.get(place)
        if times is None:
            times = self.times[place] = Times(place)
        return times

    @contextlib.contextmanager
    def timeline(self, path: str | os.PathLike | None = None) -> Iterator[Timeline]:
        """Record a Timeline in the with block, and write it to `path` at its end, as Chrome's trace events.

        On it are the functions and blocks that a Profiler times, calls of layers of minnp.nn, with the shapes they were
        given, and what a Solver does: waiting for a batch, loss and gradients, the optimiser's update, measuring,
        callbacks, checkpoints.
        """
        from minnp.nn.model import WATCHERS

        timeline = Timeline()
        TIMELINES.append(timeline)
        if len(TIMELINES) == 1:  # one watcher serves all
            WATCHERS.append(watch_layer)
        try:
            yield timeline
        finally:
            TIMELINES.remove(timeline)
            if not TIMELINES:
                WATCHERS.remove(watch_layer)
            if path is not None:
                timeline.save(path)

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
