"""Eigenvalues and singular values of one split matrix, by one-sided Jacobi rotations of blocks of columns.

Each rank holds two blocks, makes their columns orthogonal to each other, and hands blocks on, so that after 2 P - 1
rounds each block has met every other one; after some sweeps all columns are orthogonal (Becka, Oksa and Vajtersic,
"Dynamic ordering for a parallel block-Jacobi SVD algorithm", 2002). Their lengths are the singular values. A Hermitian
matrix is shifted until it is positive definite: there these are the eigenvalues, to the rounding of its norm.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as onp

from ...core.rows.primitive import TABLE
from ...distributed import collectives
from ...distributed.collectives import part, raw
from .kernels import elementwise, reduce, transpose, triangle
from .parts import Part, delivered, fetched, moved, ranges

SWEEPS = 40
la = onp.linalg


class Columns:
    """The columns of a matrix, in blocks, of which each rank holds two at a time.

    numbers   which columns this rank holds; rows: these columns, as rows, each with the same column of the rotations
    """

    def __init__(self, x: Part, rotations: bool) -> None:
        self.m = x.on[1] if x.on[1] is not None else x.on[0]
        self.line, (self.high, self.n) = x.mesh.axis(self.m), x.shape
        self.size = 2 * self.line.size
        self.blocks = [range(self.n)[part(self.n, self.size, b)] for b in range(self.size)]
        self.ends, self.round = ranges(self.n, self.line), 0
        a, b = self.ends[self.line.rank]
        rows = moved(x, (None, self.m)).local.T
        if rotations:
            rows = onp.concatenate([rows, onp.eye(self.n, dtype=x.dtype)[a:b]], axis=1)
        self.numbers = self.held(0)
        self.rows = fetched(self.line, onp.ascontiguousarray(rows), self.ends, self.numbers)

    def pairs(self, turn: int) -> list[tuple[int, int]]:
        """The blocks that each rank holds in a round, of a tournament in which each meets each."""
        k, last = turn % (self.size - 1), self.size - 1
        out = [(last, k), *[((k + i) % last, (k - i) % last) for i in range(1, self.line.size)]]
        return [(min(p), max(p)) for p in out]

    def held(self, turn: int) -> onp.ndarray:
        return onp.array([c for b in self.pairs(turn)[self.line.rank] for c in self.blocks[b]], onp.int64)

    def hand_on(self) -> None:
        """Give the blocks to the ranks that hold them in the next round."""
        now, after, me = self.pairs(self.round), self.pairs(self.round + 1), self.line.rank
        self.round += 1
        if self.line.size == 1:
            return
        owner = {b: r for r, pair in enumerate(after) for b in pair}
        first = len(self.blocks[now[me][0]])
        mine = dict(zip(now[me], (self.rows[:first], self.rows[first:])))
        sent = sorted(now[me], key=owner.__getitem__)
        coming = [[b for b in sorted(pair, key=owner.__getitem__) if owner[b] == me] for pair in now]
        each = self.rows.shape[1] * self.rows.dtype.itemsize
        counts = [sum(len(self.blocks[b]) for b in sent if owner[b] == r) * each for r in range(self.line.size)]
        bytes_ = [sum(len(self.blocks[b]) for b in got) * each for got in coming]
        out = onp.concatenate([raw(onp.ascontiguousarray(mine[b])) for b in sent])
        came = self.line.group().exchange(out, counts, bytes_, "blocks of columns")
        came, at, found = came.view(self.rows.dtype).reshape(-1, self.rows.shape[1]), 0, {}
        for b in [b for got in coming for b in got]:
            found[b] = came[at : at + len(self.blocks[b])]
            at += len(self.blocks[b])
        self.rows = onp.concatenate([found[b] for b in after[me]])
        self.numbers = self.held(self.round)

    def rotate(self, least: float, definite: bool) -> float:
        """Make this rank's columns orthogonal, the longest in front; how far from it they were.

        definite   their lengths are alike: their products, of which eigenvectors cost less, tell enough
        """
        w = self.rows[:, : self.high]
        products = w.conj() @ w.T
        gram = abs(products)
        length = onp.sqrt(gram.diagonal())
        longer = onp.maximum.outer(length, length)
        onp.fill_diagonal(gram, 0)
        far = float((gram / onp.where(longer > 0, longer, 1)).max(initial=0))
        if far > least:
            turn = la.eigh(products)[1].T[::-1] if definite else la.svd(la.qr(w.T, "r"))[2].conj()
            self.rows = turn @ self.rows
        return far

    def in_order(self, order: onp.ndarray, rows: onp.ndarray) -> onp.ndarray:
        """Of these columns (as rows) those that this rank has of a split matrix, which begins with column order[0]."""
        at = onp.empty(self.n, onp.int64)
        at[order] = onp.arange(self.n)
        places, rows = delivered(self.line, self.ends, at[self.numbers], onp.ascontiguousarray(rows))
        out = onp.empty_like(rows)
        out[places - self.ends[self.line.rank][0]] = rows
        return out.T


def orthogonal(x: Part, what: str, rotations: bool = True, definite: bool = False) -> tuple[Columns, onp.ndarray]:
    """(the columns of x v for a unitary v, which are orthogonal, and v's; their lengths). At least as high as wide."""
    with onp.errstate(all="ignore"):
        norm = float(onp.sqrt(reduce(None, x.like(abs(x.local).astype("f8") ** 2), _row="sum").local))
    if not onp.isfinite(norm):
        raise la.LinAlgError(f"{what} did not converge")
    columns = Columns(x, rotations)
    everywhere = lambda v, op: collectives._all_reduce(onp.asarray(v), mesh=columns.line, op=op)
    least = (8 + 2 * math.sqrt(x.shape[1])) * onp.finfo(x.dtype).eps * norm  # what rounding leaves
    for _ in range(SWEEPS):
        far = 0.0
        for _ in range(columns.size - 1):
            far = max(far, columns.rotate(least, definite))
            columns.hand_on()
        if everywhere(far, "max") <= least:
            lengths = onp.zeros(columns.n, onp.zeros(0, x.dtype).real.dtype)
            lengths[columns.numbers] = la.norm(columns.rows[:, : columns.high], axis=1)
            return columns, everywhere(lengths, "sum")
    raise la.LinAlgError(f"{what} did not converge")


def known(x: Part, y: Any) -> Part:
    return Part(x.mesh, onp.shape(y), (None,) * onp.ndim(y), y)


def hermitian(x: Part, uplo: str) -> Part:
    """The Hermitian matrix that one triangle of x says, whose diagonal's imaginary parts are not read."""
    below = triangle(None, x, k=-1 if uplo == "L" else 1, _row="tril" if uplo == "L" else "triu")
    above = transpose(None, below)
    middle = triangle(None, triangle(None, x, _row="tril"), _row="triu")
    both = elementwise(TABLE["add"], None, below, above.like(above.local.conj()))
    return elementwise(TABLE["add"], None, both, middle.like(middle.local.real.astype(x.dtype)))


def eigenvalues(x: Part, UPLO: str, vectors: bool) -> tuple[onp.ndarray, Part | None]:
    a = hermitian(x, UPLO.upper())
    shift = float(reduce(None, reduce(None, a.like(abs(a.local)), 1, _row="sum"), _row="max").local) * 1.5
    m = a.on[0] if a.on[0] is not None else a.on[1]
    a = moved(a, (None, m))
    start, stop = ranges(a.shape[1], a.mesh.axis(m))[a.mesh.axis(m).rank]
    local = onp.array(a.local)
    local[onp.arange(start, stop), onp.arange(stop - start)] += shift
    columns, lengths = orthogonal(a.like(local), "Eigenvalues", vectors, definite=True)
    order = onp.argsort(lengths, kind="stable")
    w = lengths[order] - lengths.dtype.type(shift)
    if not vectors:
        return w, None
    v = columns.in_order(order, columns.rows[:, columns.high :])
    return w, moved(Part(x.mesh, x.shape, (None, columns.m), v), x.on)


def eigh(place: Any, x: Part, UPLO: str = "L") -> tuple[Part, Part]:
    w, v = eigenvalues(x, UPLO, True)
    return known(x, w), v


def eigvalsh(place: Any, x: Part, UPLO: str = "L") -> Part:
    return known(x, eigenvalues(x, UPLO, False)[0])
