"""Recycled memory for large results: `empty(shape, dtype)` without the page faults.

Half the time of `a + b` on 1e7 elements is the system handing out zeroed pages. A block whose last array died is
therefore kept, and handed to the next result of about its size. An array made here is an ordinary ndarray whose base is
a Lease; views and aliases of it hold the lease too, so the block comes back only when nobody can see it any more.

Idle blocks are bounded by `limit` bytes, and all are dropped when the system runs short of memory or an allocation
fails. Nothing here takes a lock: `__del__` may run inside any allocation, on any thread.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import numpy as onp

# Bytes from which a block is kept. What is smaller malloc itself recycles, and NumPy's own temporaries lie there:
# results elsewhere would only share the cache with them (a stencil of 1.3 MB arrays: a fifth of its time).
LEAST = 4 << 20


# Bytes of a huge page, of which Linux hands out one where NumPy asks for them (from 4 MB on) and a whole one fits: a
# block's first use then takes 0.3 ms and not 2. They begin on cache lines too, which vector stores want.
PAGE = 2 << 20


class Block(onp.ndarray):
    """Raw memory. Its own class, for NumPy lets an array skip a base of type ndarray and hold that one's base."""

    __slots__ = ()


class Lease(onp.ndarray):
    """A block in use: the base of the array that was handed out."""

    __slots__ = ()

    def __del__(self) -> None:
        block = self.base
        if block is not None:
            give(block)


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


class Pool:
    """The idle blocks, and what has been done with them.

    One step of every list and dict is atomic, so no lock is needed: a block is in one list, or in use. Counts may miss
    a step that two threads take at once; `shrink` counts the bytes anew.
    """

    __slots__ = (
        *("dropped", "enabled", "idle", "idle_bytes", "limit", "new", "next_look", "reused", "reused_bytes"),
        *("sizes", "wanted"),
    )

    def __init__(self) -> None:
        self.enabled = os.environ.get("MINNP_POOL", "1").lower() not in ("0", "off", "false", "no")
        self.limit = TOTAL // 4
        self.idle: dict[int, list[Block]] = {}  # by size
        self.idle_bytes = 0
        self.wanted: set[int] = set()  # the sizes asked for since blocks were last dropped
        self.sizes: dict[int, int] = {}  # the sizes of blocks for the numbers of bytes asked for so far
        self.reused = self.new = self.reused_bytes = self.dropped = 0
        self.next_look = 0.0  # when to ask the system again how much memory is left


pool = Pool()


def block_size(n: int) -> int:
    """n rounded up by at most an eighth, so that blocks of nearly the same size replace each other."""
    step = 1 << max(n.bit_length() - 4, 12)
    if len(pool.sizes) > 4096:
        pool.sizes.clear()
    size = pool.sizes[n] = -(-n // step) * step
    return size


def lease(n: int) -> Lease:
    """At least n bytes, on a block that was used before if there is one."""
    size = pool.sizes.get(n) or block_size(n)
    pool.wanted.add(size)
    blocks = pool.idle.get(size)
    if not blocks:
        return new_lease(size)
    try:
        block = blocks.pop()
    except IndexError:  # another thread took it
        return new_lease(size)
    pool.idle_bytes -= size
    pool.reused += 1
    pool.reused_bytes += n
    return block.view(Lease)


def new_lease(size: int) -> Lease:
    pool.new += 1
    return new_block(size).view(Lease)


def new_block(size: int) -> Block:
    """`size` bytes that begin on a huge page."""
    try:
        raw = Block(size + PAGE, onp.uint8)
    except MemoryError:
        release()
        raw = Block(size + PAGE, onp.uint8)
    start = -raw.__array_interface__["data"][0] % PAGE
    return raw[start : start + size]


def give(block: Block) -> None:
    """Take back a block nobody uses any more."""
    size = block.nbytes
    blocks = pool.idle.get(size)
    if blocks is None:
        blocks = pool.idle.setdefault(size, [])
    blocks.append(block)
    pool.idle_bytes += size
    if pool.idle_bytes > pool.limit >> 2 or not pool.enabled:
        shrink()


def shrink() -> None:
    """Keep the idle blocks within bounds: first those go whose size nobody has asked for lately."""
    limit = pool.limit if pool.enabled else 0
    if time.monotonic() >= pool.next_look:
        pool.next_look = time.monotonic() + 0.5
        left = available_memory()
        if left is not None and left < TOTAL >> 4:
            limit = 0
    if pool.idle_bytes <= limit:
        return
    total = sum(size * len(blocks) for size, blocks in list(pool.idle.items()))
    for size in sorted(pool.idle, key=lambda size: (size in pool.wanted, -size)):
        blocks = pool.idle[size]
        while blocks and total > limit:
            try:
                blocks.pop()
            except IndexError:  # another thread took it
                break
            total -= size
            pool.dropped += 1
    pool.idle_bytes = total
    pool.wanted.clear()


def empty(shape: Sequence[int], dtype: onp.dtype, order: str = "C", least: int = LEAST) -> onp.ndarray:
    """An array [shape] of dtype with any content, as `onp.empty`, on recycled memory from `least` bytes on."""
    n = dtype.itemsize
    for d in shape:
        n *= d
    if n < least or not pool.enabled or dtype.hasobject:
        return onp.empty(shape, dtype, order)
    return onp.ndarray(shape, dtype, lease(n), 0, None, order)


def release() -> int:
    """Give every idle block back to the system; the bytes given back."""
    given, pool.idle, pool.idle_bytes = pool.idle_bytes, {}, 0
    return given


def memory_reuse(enabled: bool | None = None, *, limit: int | None = None) -> bool:
    """Switch the reuse of large buffers on or off, and set the most idle bytes it may keep; whether it was on.

    enabled   on or off; None leaves it as it is
    limit     bytes; None leaves it as it is

    Without arguments only asks. Also off with the environment variable MINNP_POOL=0.

    Raises ValueError for a negative limit.

    >>> memory_reuse() in (True, False)
    True
    """
    before = pool.enabled
    if limit is not None:
        if limit < 0:
            raise ValueError(f"memory_reuse: limit must not be negative, got {limit}")
        pool.limit = int(limit)
    if enabled is not None:
        pool.enabled = bool(enabled)
    shrink()
    return before


def statistics() -> dict[str, int]:
    """Counts since the start: results on reused and on new memory, bytes reused, bytes idle now, blocks dropped."""
    return {
        "reused": pool.reused,
        "new": pool.new,
        "reused_bytes": pool.reused_bytes,
        "idle_bytes": pool.idle_bytes,
        "limit_bytes": pool.limit,
        "dropped": pool.dropped,
    }


def owned(a: onp.ndarray) -> bool:
    """Whether `a` is a whole result rather than a view of another array: what `a.base is None` says elsewhere."""
    base = a.base
    return base is None or type(base) is Lease
