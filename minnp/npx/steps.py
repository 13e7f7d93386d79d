"""What layers over time share: products of few rows with one matrix at every step, and sequences cut over the batch.

A sequence is independent of the others in its batch, so each thread takes some of them through all steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as onp

from ..core.compiled import team
from ..core.cpu import products, threads
from ..core.cpu.memory import empty
from ..core.rows.primitive import Meta
from ..numpy.facts import spread

SMALL = 1_000_000  # multiplications of one product up to which OpenBLAS uses its operands as they lie
LARGE = 1 << 23  # and of products that the best BLAS does faster than tiles
SHARED = 1 << 13  # elements of a state from which threads share its batch


class Repeated:
    """w [k, m], for many products a @ w with few rows [n, k]; `blocks` of the columns may lie apart in the results.

    BLAS copies both operands into an order of its own before it multiplies. For few rows that costs as much as the
    multiplication, and for small products OpenBLAS leaves it out: so w is kept in tiles of some columns, which meet
    some rows at a time. Large products are the best BLAS's (core/cpu/products.py). `rows` is how many belong
    together: a batch may be cut at its multiples without changing a bit.
    """

    def __init__(self, w: onp.ndarray, n: int, blocks: int = 1) -> None:
        k, m = w.shape[0], w.shape[1] // blocks
        self.rows, self.tiles, self.blas = max(n, 1), None, None
        self.parts = [w[:, i * m : (i + 1) * m] for i in range(blocks)]
        if n * m * k * blocks >= LARGE and w.dtype.char in "fd" and n % 16 == 0:
            self.blas = products.best()
        if self.blas is not None:
            self.rows, self.parts = 16, [onp.ascontiguousarray(part) for part in self.parts]
            return
        columns = next((c for c in (64, 32, 16) if m % c == 0), 0)
        fits = [r for r in (32, 16, 8) if columns and n % r == 0 and r * columns * k <= SMALL]
        if fits and n * m * k * blocks > SMALL // 2:
            self.rows = next((r for r in fits if 2 * r <= n), fits[0])
            tiles = w.reshape(k, blocks, m // columns, 1, columns).transpose(1, 2, 3, 0, 4)
            self.tiles = onp.ascontiguousarray(tiles)

    def into(self, out: onp.ndarray, a: onp.ndarray) -> None:
        """out = a @ w, for out [blocks, n, m / blocks] and a [n, k], in C order but that blocks may lie apart."""
        if self.tiles is not None:
            many, columns = self.tiles.shape[1], self.tiles.shape[-1]
            tiled = out.reshape(len(out), -1, self.rows, many, columns).transpose(0, 3, 1, 2, 4)
            onp.matmul(a.reshape(-1, self.rows, a.shape[1]), self.tiles, out=tiled)
            return
        for part, target in zip(self.parts, out, strict=True):
            if self.blas is not None and not self.blas.gemm(a, part, target, 1.0, 0.0):
                continue
            onp.matmul(a, part, out=target)


class Summed:
    """w [blocks, k, m], for many sums of products a[i] @ w[i] with few rows, a [blocks, n, k]; `rows` as in Repeated.

    BLAS adds each product to the result, so that what is multiplied may lie in blocks, as elementwise operations like.
    """

    def __init__(self, w: onp.ndarray, n: int) -> None:
        self.w, self.rows = w, 16 if n % 16 == 0 else max(n, 1)
        self.blas = products.best() if w.dtype.char in "fd" else None

    def into(self, out: onp.ndarray, a: onp.ndarray) -> None:
        """out [n, m] = the sum of a[i] @ w[i]."""
        if self.blas is not None and out.size:
            errors = [self.blas.gemm(a[i], w, out, 1.0, float(i > 0)) for i, w in enumerate(self.w)]
            if not any(errors):
                return
        onp.add.reduce(onp.matmul(a, self.w), axis=0, out=out)


def over_batch(work: Callable[[slice], None], shape: Sequence[int], weight: Repeated | Summed, name: str) -> None:
    """Call work(part of the batch) for all of the batch of states of this shape [N, H], on all threads."""
    n = shape[0]
    units = n // weight.rows
    count = min(threads.team.size, units) if n * shape[1] >= SHARED else 1
    parts = [slice(i * units // count * weight.rows, (i + 1) * units // count * weight.rows) for i in range(count)]
    with products.single_thread() or nullcontext():  # a BLAS's own threads would meet at every step
        threads.run(lambda i: work(parts[i]), count, name)


def compiled(*arrays: onp.ndarray) -> bool:
    """Whether the C part runs a layer on these arrays."""
    return team is not None and all(a.dtype.char == "f" and a.size for a in arrays)


def call(x: onp.ndarray, hs: onp.ndarray) -> tuple:
    """How the C part is called for inputs [T, N, I] and states of all steps [T, N, H].

    The batch is cut as its size says, so that no bit depends on the number of threads. The last number: from row to row
    of what is multiplied transposed (rows 2^k apart would fall on the same lines of the cache)."""
    steps, n, hidden = hs.shape
    pieces = 1 << sum(n >= k for k in (16, 128, 256)) if hs.size >= SHARED else 1
    return threads.team.size, pieces, steps, n, x.shape[-1], hidden, 4 * hidden + 16


def dense(a: onp.ndarray) -> onp.ndarray:
    """An array in C order, as the C part takes it."""
    return a if a.flags.c_contiguous and a.flags.aligned else onp.array(a, order="C")


def kept(shape: Sequence[int], dtype: onp.dtype) -> onp.ndarray:
    """An array for all steps of a sequence, with any content, on recycled memory: training asks for the same again."""
    return empty(shape, dtype, least=1 << 19)


def product(a: onp.ndarray, b: onp.ndarray) -> onp.ndarray:
    """The matrix product of two large matrices."""
    return products.matmul(a, b)


def project(x: onp.ndarray, w: onp.ndarray, b: onp.ndarray) -> onp.ndarray:
    """x W^T + b for all steps at once."""
    out = product(x.reshape(-1, x.shape[-1]), w.T)
    out += b
    return out.reshape(*x.shape[:-1], len(w))


def beside(x: onp.ndarray, h0: onp.ndarray, hs: onp.ndarray) -> onp.ndarray:
    """[x, the state before, 1] of every step [T, N, I + H + 1]: what the weights and the bias were multiplied with."""
    (steps, n, inputs), hidden = x.shape, h0.shape[-1]
    out = kept((steps, n, inputs + hidden + 1), hs.dtype)
    out[..., :inputs], out[..., -1] = x, 1
    out[0, :, inputs:-1], out[1:, :, inputs:-1] = h0, hs[:-1]
    return out


def check(name: str, gates: int, x: onp.ndarray, states: Sequence, w_x: onp.ndarray, w_h: onp.ndarray, *b: Any) -> None:
    """Raise ValueError for arrays of which no layer can be made; the C part reads them as they should be."""
    hidden = w_h.shape[-1] if w_h.ndim else 0
    n, inputs = x.shape[1:] if x.ndim == 3 else (0, 0)
    wanted = [(n, hidden)] * len(states) + [(gates * hidden, inputs), (gates * hidden, hidden)]
    found = [tuple(a.shape) for a in (*states, w_x, w_h, *b)]
    if x.ndim != 3 or found != wanted + [(gates * hidden,)] * len(b):
        times = f"{gates} H" if gates > 1 else "H"
        raise ValueError(
            f"npx.{name} of x {tuple(x.shape)} and {', '.join(map(str, found))}: x is [T, N, I], and then follow the "
            f"states [N, H], the weights [{times}, I] and [{times}, H], and biases [{times}]"
        )


def split(a: onp.ndarray, n: int) -> list[onp.ndarray]:
    """The n equal parts of the last axis, as views."""
    size = a.shape[-1] // n
    return [a[..., k * size : (k + 1) * size] for k in range(n)]


def slope_of_sigmoid(a: onp.ndarray, out: onp.ndarray) -> None:
    onp.subtract(1, a, out=out)
    out *= a


def slope_of_tanh(a: onp.ndarray, out: onp.ndarray) -> None:
    onp.multiply(a, a, out=out)
    onp.subtract(1, out, out=out)


def layer_facts(gates: int, returns: Callable, states: int, biases: int, *cases: dict) -> dict:
    """Shape, cost and samples of a layer with so many gates; `returns` (T, N, H) gives the shapes of all it returns."""

    def shape(metas: Sequence[Meta], params: dict) -> tuple[Meta, ...]:
        (steps, n, _), hidden = metas[0].shape, metas[1].shape[-1]
        dtype = onp.result_type(*(m.dtype for m in metas))
        return tuple(Meta(shape, dtype) for shape in returns(steps, n, hidden))

    def flops(metas: Sequence[Meta], params: dict, out: Meta) -> int:
        (steps, n, inputs), hidden = metas[0].shape, metas[1].shape[-1]
        return 2 * steps * n * gates * hidden * (inputs + hidden)

    def samples() -> list:
        steps, n, inputs, hidden = 3, 2, 4, 3
        shapes = [(steps, n, inputs), *[(n, hidden)] * states, (gates * hidden, inputs), (gates * hidden, hidden)]
        shapes += [(gates * hidden,)] * biases
        return [(tuple(spread(*s, low=-1, high=1, seed=i) for i, s in enumerate(shapes)), case) for case in cases]

    return {"shape": shape, "flops": flops, "samples": samples}
