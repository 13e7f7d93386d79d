"""What ran where: calls, seconds, bytes moved, and why a call fell back."""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from collections.abc import Iterable
from typing import Any

import numpy

from ..cpu import statistics
from .primitive import TABLE

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
# NumPy's code calls rows, too, and a function of ours that is decorated by a context is called by contextlib
NOT_THE_USERS = (PACKAGE, os.path.dirname(os.path.abspath(numpy.__file__)) + os.sep, contextlib.__file__)
_COUNTS: dict[tuple[str, str, str], list] = {}
HOST_CALLS: dict[str, Any] = {}  # public functions that count their own calls on the fast path: name -> entry
DEVICES: list = []  # backends whose buffers have been computed with: each counts its calls in its `slots`
COMPILED: weakref.WeakSet = weakref.WeakSet()  # of backends: the `way` they run, `rows` ({name: how many}), `calls`
FIELDS = ("function", "backend", "calls", "seconds", "bytes", "moved", "why", "where")


def record(name: str, backend: str, seconds: float, values: Any, why: str, moved: int = 0) -> None:
    """Count one call that left the fast path."""
    row = _COUNTS.get((name, backend, why))
    if row is None:
        row = _COUNTS[name, backend, why] = [0, 0.0, 0, 0, user_line()]
    row[0] += 1
    row[1] += seconds
    for v in values:
        row[2] += getattr(v, "nbytes", 0)
    row[3] += moved


def copied(name: str, backend: str, nbytes: int) -> None:
    """Count a copy between the host and a device: what makes one wait for the other."""
    record(name, backend, 0.0, (), "", nbytes)


def user_line() -> str:
    """file:line of the innermost frame outside this package and NumPy."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(NOT_THE_USERS):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""


class Report(list):
    """Rows of the dispatch report (dicts with FIELDS); prints as a table.

    memory   how often large results on the host found recycled memory: see core.cpu.statistics"""

    def __init__(self, rows: Iterable = ()) -> None:
        super().__init__(rows)
        self.memory = statistics()

    def __str__(self) -> str:
        head = ("function", "backend", "calls", "ms", "MB", "MB moved", "fell back because", "first at")
        lines = [head]
        for r in self:
            ms = f"{1e3 * r['seconds']:.1f}" if r["seconds"] else ""
            mb, moved = (f"{r[k] / 1e6:.2f}" if r[k] else "" for k in ("bytes", "moved"))
            lines.append((r["function"], r["backend"], str(r["calls"]), ms, mb, moved, r["why"], r["where"]))
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        show = [
            "  ".join(
                c.rjust(w) if 2 <= i <= 5 else c.ljust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        m = self.memory
        memory = (
            f"large host results: {m['reused']} on recycled memory ({m['reused_bytes'] / 1e6:.0f} MB), "
            f"{m['new']} on new; {m['idle_bytes'] / 1e6:.0f} MB idle of at most {m['limit_bytes'] / 1e6:.0f}; "
            f"{m['threads']} threads"
        )
        return "\n".join([show[0], "-" * len(show[0]), *show[1:], memory])


def report(reset: bool = False) -> Report:
    """The dispatch report: one row per function, backend and reason since the last reset.

    seconds and bytes are measured for calls that a policy or a backend decided; plain NumPy calls on the host are
    only counted, so that counting costs nothing.

    >>> reset_report()
    >>> y = np.exp(np.ones(3))
    >>> [row["calls"] for row in report() if row["function"] == "exp"]
    [1]
    """
    rows = [
        dict(zip(FIELDS, (name, backend, *counts[:4], why, counts[4]), strict=True))
        for (name, backend, why), counts in _COUNTS.items()
    ]
    for backend in DEVICES:
        for row, (_, calls, *_) in backend.slots.items():
            if calls:
                rows.append(dict(zip(FIELDS, (row.name, backend.name, calls, 0.0, 0, 0, "", ""), strict=True)))
    ran: dict[tuple[str, str], int] = {}
    for graph in COMPILED:
        for name, n in graph.rows.items() if graph.calls else ():
            ran[name, graph.way] = ran.get((name, graph.way), 0) + n * graph.calls
    rows += [dict(zip(FIELDS, (*key, n, 0.0, 0, 0, "", ""), strict=True)) for key, n in ran.items()]
    counted: dict[str, int] = {}
    for source in (*TABLE.values(), *HOST_CALLS.values()):
        if source.calls:
            counted[source.name] = counted.get(source.name, 0) + source.calls
    rows += [dict(zip(FIELDS, (name, "numpy", n, 0.0, 0, 0, "", ""), strict=True)) for name, n in counted.items()]
    out = Report(sorted(rows, key=lambda r: (-r["calls"], r["function"])))
    if reset:
        reset_report()
    return out


def reset_report() -> None:
    """Forget every count.

    >>> reset_report()
    >>> len(report())
    0
    """
    _COUNTS.clear()
    for backend in DEVICES:
        for slot in backend.slots.values():
            slot[1] = 0
    for source in (*TABLE.values(), *HOST_CALLS.values(), *COMPILED):
        source.calls = 0


# ------------------------------------------------------------------ MinPy's names
def record_op_stat() -> None:
    """Start counting anew for `show_op_stat`."""
    reset_report()


def show_op_stat() -> None:
    """Print how often each function ran on each backend since the last `record_op_stat`."""
    counts: dict[str, dict[str, int]] = {}
    for r in report():
        calls = counts.setdefault(r["backend"], {})
        calls[r["function"]] = calls.get(r["function"], 0) + r["calls"]
    total = sum(sum(calls.values()) for calls in counts.values())
    for backend, calls in sorted(counts.items()):
        print(f"{backend}: {sum(calls.values()) / total:.1%} of {total} calls")
        for name, n in calls.items():
            print(f"  {name}: {n}")
