"""Linear algebra on split arrays.

Stacks of matrices are each rank's own. A tall matrix, split by rows, becomes q r by the ranks' own q r and one of their
r's (Demmel et al., "Communication-optimal parallel and sequential QR and LU factorizations", 2012); singular values and
least squares follow from r. Any other is dealt out in blocks of columns, as on a round table: whoever has the next
block factors it (LAPACK's, by torch), all others see it and update what they have: LU with partial pivoting, Cholesky,
QR. Eigenvalues and singular values of such matrices: spectra.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as onp

from ...core.rows import policy
from ...core.rows.primitive import TABLE
from ...distributed import collectives
from .indices import diagonal, getitem
from .kernels import kernel, reduce, refuse, transpose
from .own import qr as own_qr
from .parts import Part, bounds, delivered, fetched, moved, ranges, whole_of
from .spectra import eigh, eigvalsh, known, orthogonal

SLOW = ("linalg.svd", "linalg.svdvals", "linalg.eigh", "linalg.eigvalsh")  # in blocks
GATHERED = 1 << 25  # elements of a matrix up to which they gather it, if they may
BY_TORCH = [f"linalg.{name}" for name in ("solve", "inv", "det", "slogdet", "cofactor", "cholesky")]  # but for one rank
BLOCK = 64  # columns that are factored at a time
la = onp.linalg

STACKS = "inv det slogdet solve eigh eigvalsh eig eigvals svd svdvals cholesky qr pinv matrix_rank cofactor"


@kernel(*[f"linalg.{name}" for name in (*STACKS.split(), "cofactor_change", "lstsq")])
def stacked(place: Any, *xs: Any, _row: Any = None, **params: Any) -> Any:
    first = next(x for x in xs if type(x) is Part)
    mesh = first.mesh
    parts = [x if type(x) is Part else Part(mesh, onp.shape(x), (None,) * onp.ndim(x), x) for x in xs]
    parts = [in_stack(x) if x.ndim > 2 else x for x in parts]
    first = max(parts, key=lambda x: x.ndim)
    alone = all(mesh.axis(m).size == 1 for x in parts for m in x.on if m is not None)
    if any(m is not None for x in parts for m in x.on[-2:]) and not (alone and _row in BY_TORCH):
        run = BY_BLOCKS.get(_row)
        if run is None or any(x.ndim > 2 for x in parts) or any(x.dtype.char not in "?bhilqpBHILQPfdFD" for x in parts):
            refuse(f"{_row} of a matrix that is split")
        on, parts = first.on, [x if len(x.split) < 2 else moved(x, (x.on[0], None)) for x in parts]
        first = max(parts, key=lambda x: x.ndim)
        small = _row in SLOW and first.size <= GATHERED and not (is_tall(first) or is_tall(transpose(None, first)))
        if small and policy.current().name != "only_split":
            refuse(f"{_row} of a matrix small enough that gathering it is faster")
        out = run(place, *[x if x.dtype.kind in "fc" else x.like(x.local.astype(float)) for x in parts], **params)
        back = lambda y: moved(y, on) if None not in on and y.shape == first.shape else y
        return tuple(map(back, out)) if type(out) is tuple else back(out)
    on = first.on[:-2]
    shape = first.shape[:-2]
    if any(x.shape[:-2] != shape for x in parts if x.ndim > 2 or shape):
        refuse(f"{_row} of stacks of other shapes")
    out = TABLE[_row].numpy(*[moved(x, (*on, *[None] * (x.ndim - len(on)))).local for x in parts], **params)

    def wrap(y: Any) -> Part:
        whole = (*shape, *onp.shape(y)[len(on) :])
        axes = first.on[-2:] if whole == first.shape else [None] * (onp.ndim(y) - len(on))  # of one rank each
        return Part(mesh, whole, (*on, *axes), y)

    return tuple(map(wrap, out)) if type(out) is tuple else wrap(out)


def in_stack(x: Part) -> Part:
    """A stack whose matrices are whole, split along another axis if one is free."""
    on = list(x.on)
    for i in (x.ndim - 2, x.ndim - 1):
        free = next((k for k in range(x.ndim - 2) if on[k] is None and x.shape[k] > 1), None)
        if on[i] is not None and free is not None:
            on[free], on[i] = on[i], None
    if any(m is not None for m in on[:-2]):  # the ranks along another axis of the mesh have the same matrices
        on[-2:] = None, None
    return moved(x, on)


@kernel("linalg.norm")
def norm(place: Any, x: Part, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Part:
    if ord not in (None, 2) or (ord == 2 and (x.ndim != 1 if axis is None else isinstance(axis, tuple))):
        refuse("a norm of this order")
    if x.dtype.kind not in "fc":
        x = x.like(x.local.astype("f8"))
    squares = x.like((x.local * x.local.conj()).real)
    y = reduce(place, squares, axis, keepdims, _row="sum")
    return y.like(onp.sqrt(y.local))


# ------------------------------------------------------------------ tall matrices
def is_tall(x: Part) -> bool:
    """Whether each rank's part can have as many rows as there are columns in all."""
    line = x.mesh.axis(x.on[0] if x.on[0] is not None else x.on[1])
    return x.shape[0] >= x.shape[1] * line.size > 0


def tall(x: Part) -> tuple[Part, onp.ndarray, onp.ndarray]:
    """(q, split by rows, and on every rank t and r) such that the matrix is (q t) r, where it is long enough for that:
    q t has the signs that LAPACK gives it."""
    m = x.on[0] if x.on[0] is not None else x.on[1]
    line, (rows, n) = x.mesh.axis(m), x.shape
    if not is_tall(x):
        refuse(f"a factorisation of a {rows} x {n} matrix over {line.size} ranks, which is not tall enough,")
    x = moved(x, (m, None))
    q, r = own_qr(x.local)
    if line.size == 1:
        return x.like(q), onp.eye(n, dtype=r.dtype), r
    every = collectives._all_gather(onp.concatenate([r, q[:n]]), mesh=line, axis=0).reshape(line.size, 2, n, n)
    t, r = la.qr(every[:, 0].reshape(-1, n))
    signs = householder(every[0, 1] @ t[:n])
    return Part(x.mesh, (rows, n), (m, None), q), t[line.rank * n :][:n] * signs, signs[:, None] * r


def householder(top: onp.ndarray) -> onp.ndarray:
    """The signs that the columns of q have where Householder's reflections made it, from its first rows (Ballard et
    al., "Reconstructing Householder vectors from tall-skinny QR", 2014, algorithm 5)."""
    a = top.copy()
    signs = onp.ones(len(a), a.real.dtype)
    for k in range(len(a)):
        signs[k] = -1 if a[k, k].real >= 0 else 1
        a[k, k] -= signs[k]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k, None] * a[k, k + 1 :]
    return signs


def adjoint(x: Part) -> Part:
    y = transpose(None, x)
    return y.like(y.local.conj())


def qr(place: Any, x: Part, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "r", "complete") or not x.size:
        refuse(f"qr in mode {mode!r}")
    if is_tall(x) and mode != "complete":
        q, t, r = tall(x)
        alone = q.mesh.axis(q.on[0]).size == 1
        return known(x, r) if mode == "r" else (q if alone else q.like(q.local @ t), known(x, r))
    return reflected(place, x, mode)


def svd(place: Any, x: Part, full_matrices: bool = True) -> tuple:
    if (full_matrices and x.shape[0] != x.shape[1]) or not x.size:
        refuse("svd with full_matrices, whose u is a square,")
    if x.shape[0] < x.shape[1]:
        u, s, vh = svd(place, adjoint(x), False)
        return adjoint(vh), s, adjoint(u)
    if is_tall(x):
        q, t, r = tall(x)
        u, s, vh = la.svd(r, full_matrices=False)
        return q.like(q.local @ (t @ u)), known(x, s), known(x, vh)
    columns, s = orthogonal(x, "SVD")
    order = onp.argsort(-s, kind="stable")
    us = Part(x.mesh, x.shape, (None, columns.m), columns.in_order(order, columns.rows[:, : columns.high]))
    v = columns.in_order(order, columns.rows[:, columns.high :])
    u, r = reflected(place, us, "reduced")  # which has unit columns where s is 0, too
    along = whole_of(diagonal(place, r))
    phase = onp.where(along != 0, along / onp.where(along != 0, abs(along), 1), 1).astype(x.dtype)
    a, b = bounds(x.shape[1], columns.line)
    u = moved(u, (None, columns.m))
    u = moved(u.like(u.local * phase[a:b]), x.on)
    vh = adjoint(Part(x.mesh, (x.shape[1],) * 2, (None, columns.m), v))
    return u, known(x, s[order]), moved(vh, x.on)


def svdvals(place: Any, x: Part) -> Part:
    x = x if x.shape[0] >= x.shape[1] else adjoint(x)
    if not x.size:
        refuse("svd of nothing")
    if not is_tall(x):
        return known(x, -onp.sort(-orthogonal(x, "SVD", rotations=False)[1]))
    _, _, r = tall(x)
    return known(x, la.svd(r, compute_uv=False))


def pinv(place: Any, x: Part, hermitian: bool = False, **cutoff: Any) -> Part:
    if hermitian or any(not isinstance(v, float) for v in cutoff.values()):
        refuse("pinv with these arguments")
    if x.shape[0] < x.shape[1]:
        return adjoint(pinv(place, adjoint(x), **cutoff))
    q, t, r = tall(x)
    return Part(x.mesh, x.shape[::-1], (None, q.on[0]), la.pinv(r, **cutoff) @ t.conj().T @ q.local.conj().T)


def lstsq(place: Any, a: Part, b: Part, rcond: Any = None) -> tuple:
    if a.ndim != 2 or b.ndim not in (1, 2) or a.shape[0] != b.shape[0] or rcond in ("warn", -1):
        refuse("lstsq of these arguments")
    q, t, r = tall(a)
    b = moved(b, (q.on[0], *[None] * (b.ndim - 1)))
    line = a.mesh.axis(q.on[0])
    right = collectives._all_reduce(t.conj().T @ (q.local.conj().T @ b.local), mesh=line, op="sum")
    rcond = onp.finfo(r.dtype).eps * max(a.shape) if rcond is None else rcond
    x, _, rank, s = la.lstsq(r, right, rcond=rcond)
    error = b.local - (q.local @ (t @ (r @ x)))
    squares = (error * error.conj()).real.sum(0).reshape(b.shape[1] if b.ndim > 1 else 1)
    squares = collectives._all_reduce(squares, mesh=line, op="sum")
    if rank < a.shape[1] or a.shape[0] <= a.shape[1]:
        squares = squares[:0]
    return known(a, x), known(a, squares), known(a, onp.int32(rank)), known(a, s)


def matrix_rank(place: Any, x: Part, **params: Any) -> Part:
    if any(v is not None and v is not False for v in params.values()):
        refuse("matrix_rank with these arguments")
    s = svdvals(place, x).local
    return known(x, onp.count_nonzero(s > s.max() * max(x.shape) * onp.finfo(s.dtype).eps))


# ------------------------------------------------------------------ others, in blocks of columns
class Blocks:
    """A matrix whose blocks of columns are dealt out to the ranks, in turn.

    high, n  its shape
    local    this rank's columns, side by side; columns: their numbers
    """

    def __init__(self, x: Part, square: bool = True) -> None:
        if x.ndim != 2 or (square and x.shape[0] != x.shape[1]):
            refuse("linear algebra of a matrix that is not square")
        self.x, self.m, (self.high, self.n) = x, x.on[0] if x.on[0] is not None else x.on[1], x.shape
        self.line = x.mesh.axis(self.m)
        self.width = max(min(BLOCK, -(-self.n // self.line.size)), 1)
        starts = range(0, self.n, self.width)
        self.blocks = [(a, min(a + self.width, self.n)) for a in starts]
        mine = self.blocks[self.line.rank :: self.line.size]
        self.columns = onp.array([c for a, b in mine for c in range(a, b)], onp.int64)
        self.ends = ranges(self.n, self.line)
        columns = moved(x, (None, self.m)).local
        self.local = fetched(self.line, onp.ascontiguousarray(columns.T), self.ends, self.columns).T.copy()

    def owner(self, k: int) -> bool:
        return k % self.line.size == self.line.rank

    def before(self, column: int) -> int:
        """How many of this rank's columns come before that one."""
        return int(onp.searchsorted(self.columns, column))

    def seen(self, k: int, block: onp.ndarray | None, rows: int, width: int | None = None) -> onp.ndarray:
        """A block of columns [rows, width] that one rank has, on every rank."""
        a, b = self.blocks[k]
        width = b - a if width is None else width
        block = onp.empty((rows, width), self.local.dtype) if block is None else onp.ascontiguousarray(block)
        return onp.asarray(collectives._broadcast(block, mesh=self.line, root=k % self.line.size))

    def given_back(self) -> Part:
        """The matrix as x was split."""
        columns, rows = delivered(self.line, self.ends, self.columns, onp.ascontiguousarray(self.local.T))
        a, b = self.ends[self.line.rank]
        out = onp.empty((self.high, b - a), self.local.dtype)
        out[:, columns - a] = rows.T
        return moved(Part(self.x.mesh, self.x.shape, (None, self.m), out), self.x.on)


def triangular(a: onp.ndarray, b: onp.ndarray, **kind: bool) -> onp.ndarray:
    """The solution of a x = b for a triangular a; left=False: of x a = b."""
    import torch

    if not b.size:
        return b
    a, b = (torch.from_numpy(onp.ascontiguousarray(v)) for v in (a, b))
    return torch.linalg.solve_triangular(a, b, **kind).numpy()


def eliminated(x: Part, b: onp.ndarray) -> tuple[Blocks, onp.ndarray, onp.ndarray, int]:
    """(u in blocks, inv(l) p b, the diagonal of u, the sign of p) where p x = l u; b [n, k] is each rank's own."""
    import torch

    a, b, sign, diagonal = Blocks(x), b.copy(), 1, []
    for k, (start, stop) in enumerate(a.blocks):
        panel, width = None, stop - start
        here = slice(a.before(start), a.before(stop))
        if a.owner(k):
            lu, pivots, _ = torch.linalg.lu_factor_ex(torch.from_numpy(onp.ascontiguousarray(a.local[start:, here])))
            panel = onp.concatenate([pivots.numpy()[None].astype(a.local.dtype), lu.numpy()])
        panel = a.seen(k, panel, 1 + a.n - start)
        pivots, lu = panel[0].real.astype(int) - 1, panel[1:]
        order = onp.arange(a.n - start)
        for i, p in enumerate(pivots):
            order[[i, p]] = order[[p, i]]
            sign = -sign if p != i else sign
        swapped = onp.flatnonzero(order != onp.arange(len(order)))
        diagonal.append(lu.diagonal().copy())
        if a.owner(k):
            a.local[start:stop, here] = onp.triu(lu[:width])
        for rest in (a.local[start:, a.before(stop) :], b[start:]):  # what has not been eliminated yet
            rest[swapped] = rest[order[swapped]]
            rest[:width] = triangular(lu[:width], rest[:width], upper=False, unitriangular=True)
            if rest.shape[1]:
                rest[width:] -= lu[width:] @ rest[:width]
    return a, b, onp.concatenate(diagonal) if diagonal else onp.ones(0, a.local.dtype), sign


def reflected(place: Any, x: Part, mode: str) -> Any:
    """q and r by reflections I - v t v^H, of a block of columns at a time (Schreiber and Van Loan, 1989)."""
    a, few, blocks = Blocks(x, square=False), min(x.shape), []
    for k, (start, stop) in enumerate(a.blocks):
        if start >= few:
            break
        panel, here = None, slice(a.before(start), a.before(stop))
        if a.owner(k):
            h, tau = la.qr(a.local[start:, here], "raw")
            panel = onp.tril(h.T[:, : len(tau)], -1)
            panel[onp.arange(len(tau)), onp.arange(len(tau))] = tau  # in the place of ones
            a.local[start:, here] = onp.triu(h.T)
        panel = a.seen(k, panel, a.high - start, min(stop, few) - start)
        blocks.append(panel if a.owner(k) else None)
        v, t = reflections(panel)
        rest = a.local[start:, a.before(stop) :]
        rest -= v @ (t.conj().T @ (v.conj().T @ rest))
    r = getitem(place, a.given_back(), slice(0, a.high if mode == "complete" else few))
    if mode == "r":
        return r
    m = a.m
    wide = a.high if mode == "complete" else few
    start, stop = bounds(wide, a.line)
    q = Part(x.mesh, (a.high, wide), (None, m), onp.eye(a.high, stop - start, -start, x.dtype))
    q = Blocks(q, square=False) if wide else q
    for k in range(len(blocks) - 1, -1, -1):
        start, stop = a.blocks[k]
        v, t = reflections(a.seen(k, blocks[k], a.high - start, min(stop, few) - start))
        rest = q.local[start:, q.before(start) :]
        rest -= v @ (t @ (v.conj().T @ rest))
    return moved(q.given_back(), x.on), r


def reflections(panel: onp.ndarray) -> tuple[onp.ndarray, onp.ndarray]:
    """(v, t) such that I - v t v^H are a block's reflections; panel: v with LAPACK's tau on its diagonal."""
    tau, v = panel.diagonal().copy(), panel.copy()
    n = len(tau)
    v[onp.arange(n), onp.arange(n)] = 1
    gram, t = v.conj().T @ v, onp.zeros((n, n), v.dtype)
    for i in range(n):
        t[:i, i] = -tau[i] * (t[:i, :i] @ gram[:i, i])
        t[i, i] = tau[i]
    return v, t


def solved(x: Part, b: onp.ndarray) -> onp.ndarray:
    a, b, diagonal, _ = eliminated(x, b)
    if not diagonal.all():
        raise la.LinAlgError("Singular matrix")
    for k in range(len(a.blocks) - 1, -1, -1):
        start, stop = a.blocks[k]
        mine = a.local[:stop, a.before(start) : a.before(stop)] if a.owner(k) else None
        block = a.seen(k, mine, stop)
        b[start:stop] = triangular(block[start:], b[start:stop], upper=True)
        b[:start] -= block[:start] @ b[start:stop]
    return b


def solve(place: Any, a: Part, b: Part) -> Part:
    if b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        refuse("solve of these shapes")
    dtype = onp.result_type(a.dtype, b.dtype)
    a, b = (x.like(x.local.astype(dtype, copy=False)) for x in (a, b))
    m = next((m for m in a.on if m is not None), None)
    columns = moved(b, (None, *[m if m is not None else b.on[-1]] * (b.ndim - 1)))
    rows = columns.local.reshape(a.shape[0], -1)
    y = la.solve(a.local, rows) if m is None else solved(a, rows)
    return moved(columns.like(y.reshape(columns.local.shape)), b.on)


def inv(place: Any, x: Part) -> Part:
    blocks_of = x.on[0] if x.on[0] is not None else x.on[1]
    a, b = bounds(x.shape[0], x.mesh.axis(blocks_of))
    y = solved(x, onp.eye(x.shape[0], dtype=x.dtype)[:, a:b])
    return moved(Part(x.mesh, x.shape, (None, blocks_of), y), x.on)


def det(place: Any, x: Part) -> Part:
    _, _, diagonal, sign = eliminated(x, onp.empty((x.shape[0], 0), x.dtype))
    return known(x, x.dtype.type(sign * diagonal.prod()))


def cofactor(place: Any, x: Part) -> Part:
    """The gradient of det, where x has an inverse."""
    try:
        y = transpose(None, inv(place, x))
    except la.LinAlgError:
        refuse("cofactors of a singular matrix")
    return y.like(y.local * det(place, x).local)


def slogdet(place: Any, x: Part) -> tuple[Part, Part]:
    _, _, diagonal, sign = eliminated(x, onp.empty((x.shape[0], 0), x.dtype))
    size = abs(diagonal)
    if not size.all():
        return known(x, x.dtype.type(0)), known(x, size.dtype.type(-math.inf))
    return known(x, x.dtype.type(sign * (diagonal / size).prod())), known(x, onp.log(size).sum())


def cholesky(place: Any, x: Part, upper: bool = False) -> Part:
    import torch

    if upper:
        return adjoint(cholesky(place, adjoint(x)))
    a = Blocks(x)
    for k, (start, stop) in enumerate(a.blocks):
        panel, width = None, stop - start
        here = slice(a.before(start), a.before(stop))
        if a.owner(k):
            panel = a.local[start:, here]
            top, wrong = torch.linalg.cholesky_ex(torch.from_numpy(onp.ascontiguousarray(panel[:width])))
            panel[:width] = onp.nan if int(wrong) else top.numpy()
            panel[width:] = triangular(panel[:width].conj().T, panel[width:], upper=True, left=False)
            a.local[:start, here] = 0
        panel = a.seen(k, panel, a.n - start)
        if not onp.isfinite(panel[:width].diagonal()).all():
            raise la.LinAlgError("Matrix is not positive definite")
        later = a.columns[a.before(stop) :]
        if later.size:
            a.local[stop:, a.before(stop) :] -= panel[width:] @ panel[later - start].conj().T
    return a.given_back()


BY_BLOCKS = {f"linalg.{run.__name__}": run for run in (
    qr, svd, svdvals, eigh, eigvalsh, pinv, lstsq, matrix_rank, solve, inv, det, cofactor, slogdet, cholesky
)}  # fmt: skip
