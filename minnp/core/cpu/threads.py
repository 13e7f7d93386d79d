"""A few threads that share one large operation: `run(work, n)` calls work(0) ... work(n - 1).

NumPy lets go of the interpreter inside its loops, so Python threads really run side by side. Indices are handed out one
by one: on a busy machine the free core does more. What an index computes never depends on the thread or on how many
there are. The caller works too, and waits only for threads that have started.

Floating point errors are collected and reported once, as one NumPy call would, under the caller's `np.errstate`.
"""

from __future__ import annotations

import ctypes
import operator
import os
import sys
import threading
import warnings
from _thread import allocate_lock
from collections.abc import Callable
from queue import SimpleQueue
from time import perf_counter, thread_time
from typing import Any

import numpy as onp

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
# what numpy calls each kind, in the order in which it reports them
PATIENCE = 3e-4  # seconds
KINDS = {
    "divide by zero": ("divide", 1),
    "overflow": ("over", 2),
    "underflow": ("under", 4),
    "invalid value": ("invalid", 8),
}


def default_threads() -> int:
    """MINNP_NUM_THREADS, else OMP_NUM_THREADS, else the cores this process may use."""
    for name in ("MINNP_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(name, "")
        if text.isdigit() and int(text) > 0:
            return int(text)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Patience:
    """Helpers that come late, because others need the cores, are not asked for a while.

    The while is a multiple of what was lost, which doubles each time they are late again: a machine that stays busy
    costs little, and one that was busy for a moment is soon used again."""

    def __init__(self) -> None:
        self.until = 0.0
        self.factor = 0

    def resting(self) -> bool:
        return perf_counter() < self.until

    def note(self, lost: float) -> None:
        """Seconds an operation took longer because it was shared; 0: the helpers came in time."""
        self.factor = min(2 * self.factor or 4, 256) if lost else self.factor // 2
        self.until = perf_counter() + self.factor * lost if lost else 0.0


class Team:
    """The worker threads of this process; a new team after fork, for threads do not survive it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.started = 0
        self.queue: SimpleQueue[Job] = SimpleQueue()
        self.busy = allocate_lock()  # one operation at a time: a second caller works alone
        self.patience = Patience()

    def start(self) -> None:
        while self.started < self.size - 1:
            self.started += 1
            threading.Thread(target=worker, args=(self.queue,), name=f"minnp-{self.started}", daemon=True).start()


class Job:
    """One operation: the work, the indices left, and a ticket (a locked lock) for each helper that may join.

    A helper takes a ticket and unlocks it when it is done; the caller withdraws those left and waits for the rest."""

    __slots__ = ("failures", "flags", "indices", "issued", "tickets", "waited", "work", "worked")

    def __init__(self, work: Callable[[int], Any], n: int, helpers: int) -> None:
        self.work = work
        self.indices = iter(range(n))
        self.failures: list[tuple[int, BaseException]] = []
        self.flags: set[str] = set()
        self.issued = tuple(allocate_lock() for _ in range(helpers))
        for ticket in self.issued:
            ticket.acquire()
        self.tickets = list(self.issued)

    def drain(self, helping: bool) -> None:
        """Work on the indices nobody has taken. A failure is noted, raised in the caller, and ends the job."""
        i = -1
        try:
            for i in self.indices:
                self.work(i)
        except BaseException as failure:
            self.failures.append((i, failure))
            self.indices = iter(())
            if not helping:
                raise


def worker(queue: SimpleQueue[Job]) -> None:
    flags: set[str] = set()
    onp.seterr(all="call")
    onp.seterrcall(lambda kind, bits: flags.add(kind))
    while True:
        job = queue.get()
        try:
            ticket = job.tickets.pop()
        except IndexError:  # the caller was done before this thread woke up
            continue
        job.drain(helping=True)
        job.flags |= flags
        flags.clear()
        ticket.release()
        del job, ticket  # a waiting thread must not keep the arrays of the last job alive


team = Team(default_threads())
count = ctypes.c_int64(team.size)  # its size, for compiled code


def num_threads() -> int:
    """The number of threads one large host operation uses, the caller's included.

    >>> num_threads() >= 1
    True
    """
    return team.size


def set_num_threads(n: int) -> int:
    """Use n threads for large host operations from now on; the number until now. No result depends on it.

    Raises ValueError for less than one.

    >>> before = set_num_threads(1)
    >>> set_num_threads(before)
    1
    """
    global team
    n = operator.index(n)
    if n < 1:
        raise ValueError(f"set_num_threads: at least 1, got {n}")
    before = team.size
    if n < team.started + 1:
        team = Team(n)  # the old threads idle on their own queue
    team.size = count.value = n
    return before


def prange(*args: int) -> range:
    """range(*args), whose loop runs on several threads under `jit`.

    args   as those of `range`
    No iteration of the loop may write an element of an array that another one reads or writes. A number that iterations
    add to, or of which they keep the greatest or the least, is reduced: sums of floats are rounded in another order.

    >>> prange(2, 8, 3)
    range(2, 8, 3)
    """
    return range(*args)


def alone() -> bool:
    """Whether there are no helpers, or they came late and are not asked for now."""
    return team.size == 1 or team.patience.resting()


def run(work: Callable[[int], Any], n: int, name: str) -> None:
    """Call work(i) for i in range(n) on all threads, and report floating point errors as the ufunc `name` would."""
    report(collect(work, n), name)


def collect(work: Callable[[int], Any], n: int) -> set[str]:
    """Call work(i) for i in range(n) on all threads; the kinds of floating point errors met.

    The failure with the lowest index is raised again. Works alone when there is nothing to share, or the team is busy
    (another thread's operation, or an operation inside an operation)."""
    mine = team
    helpers = min(mine.size, n) - 1
    if helpers <= 0 or not mine.busy.acquire(False):
        return finish(Job(work, n, 0))
    try:
        if mine.patience.resting():
            return finish(Job(work, n, 0))
        mine.start()
        job = Job(work, n, helpers)
        for _ in range(helpers):
            mine.queue.put(job)
        flags = finish(job)
        # Waiting (for a helper, or for the interpreter) more than working means that others need the cores.
        late = job.waited > PATIENCE and job.waited > 0.5 * job.worked
        mine.patience.note(job.waited if late else 0.0)
        return flags
    finally:
        mine.busy.release()


def finish(job: Job) -> set[str]:
    """Take part in the job, and wait for the helpers that have started."""
    begin, busy = perf_counter(), thread_time()
    with noting(job.flags):
        try:
            job.drain(helping=False)
        finally:
            withdrawn = set()
            while job.tickets:
                try:
                    withdrawn.add(job.tickets.pop())
                except IndexError:  # a helper took it since the test
                    break
            for ticket in job.issued:
                if ticket not in withdrawn:
                    ticket.acquire()
            job.worked = thread_time() - busy
            job.waited = perf_counter() - begin - job.worked
            job.work = None  # the queue may hold the job for a while yet, but not the arrays
            if job.failures:
                raise min(job.failures, key=lambda failure: failure[0])[1] from None
    return job.flags


def noting(flags: set[str]) -> onp.errstate:
    """A context in which floating point errors go to `flags`."""
    return onp.errstate(all="call", call=lambda kind, bits: flags.add(kind))


def report(flags: set[str], name: str) -> None:
    """Treat the floating point errors of one operation as the caller's `np.errstate` says."""
    modes = onp.geterr()
    for kind, (key, bit) in KINDS.items():
        if kind not in flags:
            continue
        mode = modes[key]
        message = f"{kind} encountered in {name}"
        if mode == "warn":
            warnings.warn(message, RuntimeWarning, stacklevel=user_level())
        elif mode == "raise":
            raise FloatingPointError(message)
        elif mode == "print":
            print(f"Warning: {message}", file=sys.stderr)
        elif mode == "call":
            onp.geterrcall()(kind, bit)
        elif mode == "log":
            onp.geterrcall().write(f"Warning: {message}\n")


def user_level() -> int:
    """The stacklevel, for the function that called this one, of the nearest frame outside this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


def renew_team() -> None:
    global team
    team = Team(team.size)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=renew_team)
