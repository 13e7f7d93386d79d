"""Recycled memory for large results: `empty(shape, dtype)` without the page faults.

Half the time of `a + b` on 1e7 elements is the system handing out zeroed pages. A block whose last array died is
therefore kept, and handed to the next result of about its size. An array made here is an ordinary ndarray whose base is
a Lease; views and aliases of it hold the lease too, so the block comes back only when nobody can see it any more.

Idle blocks are bounded by `limit` bytes, oldest out first, and all are dropped when the system runs short of memory or
an allocation fails. Nothing here waits for a lock: `__del__` may run inside any allocation, on any thread.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as onp

LEAST = 1 << 20  # bytes from which a block is worth keeping: malloc itself recycles what is smaller


class Block(onp.ndarray):
    """Raw memory. Its own class, for NumPy lets an array skip a base of type ndarray and hold that one's base."""


returned: deque[Block] = deque()  # blocks whose lease died; deque.append is all that happens in __del__ if locked


class Lease(onp.ndarray):
    """A block in use: the base of the array that was handed out."""

    def __del__(self, returned: deque = returned) -> None:
        block = self.base
        if block is not None:  # a Lease NumPy derived from another one, which never happens to ours
            returned.append(block)
            collect()


def system_memory() -> int:
    """Bytes of memory in this machine; 8 GiB where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 << 30


def available_memory() -> int | None:
    """Bytes the system could still give out, or None where it does not say (only Linux does)."""
    try:
        with open("/proc/meminfo", "rb") as file:
            for line in file:
                if line.startswith(b"MemAvailable:"):
                    return int(line.split()[1]) << 10
    except OSError:
        pass
    return None


TOTAL = system_memory()


class State:
    """What the pool holds and has done."""

    def __init__(self) -> None:
        self.enabled = os.environ.get("MINNP_POOL", "1").lower() not in ("0", "off", "false", "no")
        self.limit = TOTAL // 4
        self.idle: dict[int, list[Block]] = {}  # by size, the class used last at the end
        self.idle_bytes = 0
        self.hits = self.misses = self.reused_bytes = self.evicted = 0
        self.next_look = 0.0  # when to ask the system again how much memory is left
        self.lock = allocate_lock()


state = State()


def size_class(n: int) -> int:
    """n rounded up by at most an eighth, so that blocks of nearly the same size replace each other."""
    step = 1 << max(n.bit_length() - 4, 12)
    return -(-n // step) * step


def empty(shape: Sequence[int], dtype: Any, order: str = "C") -> onp.ndarray:
    """An array [shape] of dtype with any content, as `onp.empty`, on recycled memory where it is large enough."""
    dtype = onp.dtype(dtype)
    n = dtype.itemsize
    for d in shape:
        n *= d
    if n < LEAST or not state.enabled or dtype.hasobject or not state.lock.acquire(False):
        return onp.empty(shape, dtype, order)
    size = size_class(n)
    try:
        settle()
        blocks = state.idle.get(size)
        if blocks:
            block = blocks.pop()
            state.idle_bytes -= size
            state.hits += 1
            state.reused_bytes += n
        else:
            state.misses += 1
            block = None
    finally:
        state.lock.release()
    if block is None:
        block = new_block(size)
    return onp.ndarray(shape, dtype, block.view(Lease), order=order)


def new_block(size: int) -> Block:
    try:
        return onp.empty(size, onp.uint8).view(Block)
    except MemoryError:
        release()
        return onp.empty(size, onp.uint8).view(Block)


def collect() -> None:
    """Take in the returned blocks, unless somebody is at it: then they do it, or the next call."""
    if state.lock.acquire(False):
        try:
            settle()
        finally:
            state.lock.release()


def settle() -> None:
    """Move the returned blocks to the idle ones and keep those within bounds. Call with the lock held."""
    while returned:
        block = returned.popleft()
        size = block.nbytes
        blocks = state.idle.pop(size, None)
        if blocks is None:
            blocks = []
        state.idle[size] = blocks  # again at the end: used last
        blocks.append(block)
        state.idle_bytes += size
    limit = state.limit if state.enabled else 0
    if state.idle_bytes > limit >> 2 and time.monotonic() >= state.next_look:
        state.next_look = time.monotonic() + 0.5
        left = available_memory()
        if left is not None and left < TOTAL >> 4:
            limit = 0
    while state.idle_bytes > limit:
        size, blocks = next(iter(state.idle.items()))
        if blocks:
            blocks.pop(0)
            state.idle_bytes -= size
            state.evicted += 1
        if not blocks:
            del state.idle[size]


def release() -> int:
    """Give every idle block back to the system; the bytes given back."""
    if not state.lock.acquire(False):
        return 0
    try:
        blocks, state.idle, given = state.idle, {}, state.idle_bytes
        state.idle_bytes = 0
    finally:
        state.lock.release()
    del blocks
    return given


def memory_reuse(enabled: bool | None = None, *, limit: int | None = None) -> bool:
    """Switch the reuse of large buffers on or off, and set the most idle bytes it may keep; whether it was on.

    Without arguments only asks. Also off with the environment variable MINNP_POOL=0."""
    before = state.enabled
    if limit is not None:
        if limit < 0:
            raise ValueError(f"memory_reuse: limit must not be negative, got {limit}")
        state.limit = int(limit)
    if enabled is not None:
        state.enabled = bool(enabled)
    collect()
    return before


def statistics() -> dict[str, int]:
    """Counts since the start: results on reused and on new memory, bytes reused, bytes idle now, blocks dropped."""
    return {
        "reused": state.hits,
        "new": state.misses,
        "reused_bytes": state.reused_bytes,
        "idle_bytes": state.idle_bytes,
        "limit_bytes": state.limit,
        "dropped": state.evicted,
    }


def owned(a: onp.ndarray) -> bool:
    """Whether `a` is a whole result rather than a view of another array: what `a.base is None` says elsewhere."""
    base = a.base
    return base is None or type(base) is Lease


def renew_lock() -> None:
    state.lock = allocate_lock()  # another thread may have held it when the process forked


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=renew_lock)
