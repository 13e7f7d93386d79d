"""Split arrays against NumPy: rows on every split, views and writes, gradients, and random programs of them."""

import contextlib
import itertools
import os
import tempfile

import numpy as onp
import pytest

import minnp
import minnp.npx  # fills the table
import minnp.numpy as np
from minnp import distributed
from minnp.backends.mesh import chains, own
from minnp.backends.mesh.parts import cut
from minnp.core.arrays.array import ARRAY_TYPES, read
from minnp.core.rows.primitive import TABLE
from minnp.core.rows.value import Buffer
from minnp.errors import FallbackError, MeshError


def layouts(mesh):
    """The splits to try: of a mesh of one axis, and of two where there are four processes."""
    grid = distributed.init((2, -1)) if mesh.size % 2 == 0 and mesh.size > 2 else None
    out = [mesh.split(0), mesh.split(1), mesh.replicate()]
    return out if grid is None else [*out, grid.split(0, 1), grid.split(1, 0), grid.split(None, 0)]


def numbers(shape, dtype="f8", seed=0):
    rng = onp.random.default_rng([seed, len(shape), sum(shape)])
    return (rng.standard_normal(shape) * 3).astype(dtype)


def same(got, expected, what="", rtol=1e-6):
    if isinstance(expected, (tuple, list)):
        assert len(got) == len(expected), what
        for g, e in zip(got, expected):
            same(g, e, what, rtol)
        return
    if isinstance(expected, bool) or type(got) is int:  # in which NumPy 1.26 counts
        assert (type(got), got) == (type(expected), expected), what
        return
    got, dtype, shape = onp.asarray(got), got.dtype, got.shape
    expected = onp.asarray(expected)
    assert (dtype, shape) == (expected.dtype, expected.shape), (
        f"{what}: {dtype}{shape} for {expected.dtype}{expected.shape}"
    )
    if dtype.kind in "fc":
        onp.testing.assert_allclose(got, expected, rtol=1e-4 if dtype.itemsize < 8 else rtol, atol=1e-5, err_msg=what)
    else:
        onp.testing.assert_array_equal(got, expected, err_msg=what)


def same_here(got, expected, what):
    """The same of this rank's part alone: nothing travels."""
    value = read(got) if type(got) in ARRAY_TYPES else None
    if type(value) is not Buffer:
        return same(got, expected, what)
    part = value.data
    assert part.shape == expected.shape, what
    same(part.local, cut(part.mesh, expected, part.on), what)


MASK = numbers((7, 5), seed=9) > 0
FUNCTIONS = {  # of x [7, 5]
    "arithmetic": lambda np, x: x * 2 + np.exp(x / 9) - x[0] * x[:, :1],
    "comparison": lambda np, x: np.where(x > 0.5, x, -x) + (x == x),
    "several": lambda np, x: np.divmod(x, 1.5),
    "clip": lambda np, x: np.clip(x, -1, 1),
    "host array": lambda np, x: x + onp.arange(5.0) * onp.arange(7.0)[:, None],
    "sums": lambda np, x: [np.sum(x), np.sum(x, 0), np.sum(x, 1, keepdims=True), np.sum(x, (0, 1)), x.sum(-1)],
    "extremes": lambda np, x: [np.max(x), np.min(x, 0), np.max(x, 1), np.argmax(x), np.argmin(x, 0), np.argmax(x, 1)],
    "moments": lambda np, x: [np.mean(x), np.mean(x, 0), np.var(x, 1, ddof=1), np.std(x, 0), np.var(x)],
    "counts": lambda np, x: [np.any(x > 2), np.all(x > -99, 0), np.count_nonzero(x > 0), np.prod(x[:2], 0)],
    "norms": lambda np, x: [np.linalg.norm(x), np.linalg.norm(x, axis=1)],
    "scans": lambda np, x: [np.cumsum(x, 0), np.cumsum(x, 1), np.cumprod(x, 0), np.cumsum(x)],
    "products": lambda np, x: [x @ x.T, x.T @ x, x @ onp.ones(5), onp.ones(7) @ x, x @ x.T @ x, np.dot(x.T, x)],
    "shapes": lambda np, x: [x.T, x.reshape(35), x.reshape(5, 7), x.reshape(7, 1, 5)],
    "more shapes": lambda np, x: [x[None].squeeze(0), x.T.reshape(-1), x[:, None] + x[None]],
    "broadcast": lambda np, x: np.broadcast_to(x[:, :1], (7, 4)) + np.broadcast_to(x[0], (3, 5))[:1, :4],
    "flips": lambda np, x: [np.flip(x), np.flip(x, 0), np.roll(x, 2, 0)],
    "rolls": lambda np, x: [np.roll(x, -1, 1), np.roll(x, 3), np.diff(x, axis=0)],
    "triangles": lambda np, x: [np.tril(x), np.triu(x, 1), np.diff(x, n=2)],
    "slices": lambda np, x: [x[2:], x[::2], x[::-1], x[5:1:-2], x[1:4, 2:]],
    "numbers": lambda np, x: [x[3], x[:, 2], x[-1, 1:3], x[..., None, 1], x[2:2], x[4, 4]],
    "masks": lambda np, x: [x[x > 0], x[MASK[:, 0]], x[MASK]],
    "integers": lambda np, x: [x[[0, 6, 3, 3, -1]], x[onp.array([5, 1])], np.take(x, [1, 2], axis=0)],
    "joins": lambda np, x: [np.concatenate([x, x[:3]]), np.concatenate([x, x], 1)],
    "stacks": lambda np, x: [np.stack([x, 2 * x]), np.vstack([x, x[:1]])],
    "sorts": lambda np, x: [np.sort(x, 0), np.argsort(x, 1), np.sort(x)],
    "transforms": lambda np, x: [np.fft.fft(x), np.fft.rfft(x, axis=0), np.fft.ifft(x, axis=0).real],
    "without a rule": lambda np, x: [np.linalg.svd(x, compute_uv=False), np.unique(np.round(x)), np.median(x)],
    "copies": lambda np, x: [x.copy(), x.astype("f4"), np.zeros_like(x), np.ones_like(x), x.astype(int) // 2],
    "stencil": lambda np, x: x[1:-1, 1:-1] * 4 - x[2:, 1:-1] - x[:-2, 1:-1] - x[1:-1, 2:] - x[1:-1, :-2],
    "pad": lambda np, x: np.pad(x, 1),
}


AT, PICK = onp.array([6, 0, 3, 3, -1, 2]), onp.array([[4, 0, -2], [1, 1, 3]])
SQUARE = numbers((7, 7), seed=4) + 8 * onp.eye(7)


def log_softmax(np, x, axis):
    return x - np.log(np.sum(np.exp(x), axis, keepdims=True)) if np is onp else minnp.npx.log_softmax(x, axis=axis)


def softmax(np, x, axis):
    return onp.exp(log_softmax(onp, x, axis)) if np is onp else minnp.npx.softmax(x, axis=axis)


def rebuilt(np, factors):
    u, s, vh = factors
    return [s, (u * s) @ vh, np.abs(u)]


def spectral(np, w, v):
    """Of eigenvectors what their signs do not change."""
    return [w, (v * np.exp(-w * w / 50)) @ v.T, np.abs(v)]


RULES = {  # name: (shape, function)
    "rows by a split index": ((7, 5), lambda np, x: [x[np.argsort(x[:, 0])], np.take(x, np.argsort(x[:, 1]), axis=0)]),
    "two indices": ((7, 5), lambda np, x: [x[AT, AT % 5], x[AT[:, None], PICK[0]], x[2, AT % 5], x[AT, 3]]),
    "an index and slices": ((7, 5), lambda np, x: [x[AT, 1:4], x[::-2, AT % 5], x[1:6, PICK], x[AT[:3], None, 2:]]),
    "apart": ((4, 5, 3), lambda np, x: [x[AT % 4, :, AT % 3], x[:, AT % 5, 1], x[..., AT % 3], x[AT % 4, ..., 0]]),
    "masks among others": ((7, 5), lambda np, x: [x[:, MASK[0]], x[MASK[:, 0], 2], x[MASK[:, 1], 1:3], x[2, MASK[1]]]),
    "takes": ((7, 5), lambda np, x: [np.take(x, PICK), np.take(x, AT % 5, 1), np.take(x, AT + 9, 0, mode="clip")]),
    "along an axis": ((7, 5), lambda np, x: [np.take_along_axis(x, np.argsort(x, k), k) for k in (0, 1)]),
    "partitions": ((7, 5), lambda np, x: [np.partition(x, 2, 0)[2], np.partition(x, -2)[:, -2:].max(1)]),
    "a sorted line": (
        (23,),
        lambda np, x: [np.sort(x), x[np.argsort(x)], np.partition(x, 5)[5], np.sort(x[:, None], 0)],
    ),
    "repeats": ((7, 5), lambda np, x: [np.repeat(x, 2, 0), np.repeat(x, [0, 2, 1, 3, 0, 1, 1], 0), np.repeat(x, 2)]),
    "diagonals": ((7, 5), lambda np, x: [np.diagonal(x), np.diag(x, -2), np.trace(x), np.diag(x[:, 1], 1)]),
    "einsum": ((7, 5), lambda np, x: [np.einsum("ij,kj->ik", x, x), np.einsum("ij->j", x), np.einsum("ij,ij", x, x)]),
    "more einsum": ((7, 5), lambda np, x: [np.einsum("ij,jk,kl->il", x, x.T, x), np.einsum("...i,i->...", x, x[0])]),
    "einsum over an axis of one": (
        (7, 1),
        lambda np, x: [np.einsum("i...,i...->...", x, x) * 2, np.einsum("ij->j", x)],
    ),
    "indices of nothing": ((7, 5), lambda np, x: [x[AT, 2:2], x[3:3, AT % 5], x[AT[:0]], x[AT[:0], 1:]]),
    "einsum with an implied result": (
        (5, 5),
        lambda np, x: [np.einsum("ii", x), np.einsum("ji", x), np.einsum("ij,jk", x, x), np.einsum("...i,i", x, x[0])],
    ),
    "scans of a dtype": ((7, 5), lambda np, x: [np.cumsum(x, 0, "f4"), np.cumprod(x / 3, 1, dtype="f4")]),
    "rolls of several axes": (
        (7, 5),
        lambda np, x: [np.roll(x, (2, -1), (0, 1)), np.roll(x, 1, (0, 1)), np.roll(x, (1, 2), 0), np.roll(x, (1, 2))],
    ),
    "einsum of a diagonal": ((5, 5, 3), lambda np, x: [np.einsum("iij->j", x), np.einsum("ijk,jik->k", x, x)]),
    "stacks of products": ((7, 4, 4), lambda np, x: [x @ x, x @ x[0, :, 0], x[0] @ x, np.matmul(x, x[:1])]),
    "convolutions": ((23,), lambda np, x: [np.convolve(x, x[:4], m) for m in ("full", "same", "valid")]),
    "interpolation": ((7, 5), lambda np, x: np.interp(x, onp.arange(-3.0, 3), onp.arange(6.0) ** 2)),
    "transforms of a line": ((24,), lambda np, x: [np.fft.fft(x), np.fft.ifft(x * 1j, norm="ortho"), np.fft.rfft(x)]),
    "of another length": ((24,), lambda np, x: [np.fft.rfft(x, 30, norm="forward"), np.fft.fft(x, 20), np.fft.hfft(x)]),
    "back from half": ((13,), lambda np, x: [np.fft.irfft(x), np.fft.irfft(x * (1 + 1j), 25), np.fft.ihfft(x, 12)]),
    "several transforms": (
        (6, 5),
        lambda np, x: [np.fft.fft2(x), np.fft.rfft2(x), np.fft.irfft2(x), np.fft.fftn(x, (4,), (0,))],
    ),
    "of a prime length": (
        (23,),
        lambda np, x: [
            np.fft.fft(x),
            np.fft.ifft(x * 1j, norm="ortho"),
            np.fft.rfft(x, norm="forward"),
            np.fft.irfft(x, 31),
        ],
    ),
    "shifts": ((7, 5), lambda np, x: [np.fft.fftshift(x), np.fft.ifftshift(x, 0)]),
    "softmax": ((7, 5), lambda np, x: [f(np, x, k) for f in (softmax, log_softmax) for k in (0, 1)]),
    "logsumexp": ((7, 5), lambda np, x: np.logaddexp.reduce(x, 0)),
    "qr": ((31, 4), lambda np, x: [*np.linalg.qr(x), np.linalg.qr(x, "r")]),
    "svd": (
        (31, 4),
        lambda np, x: [*rebuilt(np, np.linalg.svd(x, full_matrices=False)), np.linalg.svd(x, compute_uv=False)],
    ),
    "a square qr": (
        (7, 7),
        lambda np, x: [*np.linalg.qr(x), *np.linalg.qr(x[:5]), np.linalg.qr(x[:, :5], "complete")[1]],
    ),
    "a square svd": (
        (7, 7),
        lambda np, x: [*rebuilt(np, np.linalg.svd(x)), *rebuilt(np, np.linalg.svd(x[:, :5], full_matrices=False))],
    ),
    "eigenvalues": ((7, 7), lambda np, x: [*spectral(np, *np.linalg.eigh(x)), np.linalg.eigvalsh(x, "U")]),
    "equal eigenvalues": (
        (7, 2),
        lambda np, x: [np.linalg.eigvalsh(x @ x.T), np.linalg.svd(x @ x.T, compute_uv=False)[:2]],
    ),
    "wide svd": ((3, 20), lambda np, x: rebuilt(np, np.linalg.svd(x, full_matrices=False))),
    "least squares": (
        (31, 4),
        lambda np, x: [
            *np.linalg.lstsq(x, x[:, :2] * 2 + 1, rcond=None)[:2],
            np.linalg.lstsq(x, x[:, 0] + 1, rcond=None)[0],
        ],
    ),
    "pinv": ((31, 4), lambda np, x: [np.linalg.pinv(x), np.linalg.pinv(x.T)]),
    "solve": (
        (7, 7),
        lambda np, x: [np.linalg.solve(x + SQUARE, x), np.linalg.solve(x + SQUARE, x[0]), np.linalg.solve(SQUARE, x)],
    ),
    "inverse": ((7, 7), lambda np, x: [np.linalg.inv(x + SQUARE), *np.linalg.slogdet(x - SQUARE)]),
    "determinant": ((7, 7), lambda np, x: np.linalg.det(x)),
    "cholesky": ((7, 7), lambda np, x: np.linalg.cholesky(x @ x.T + onp.eye(7))),
    "stacks": (
        (7, 3, 3),
        lambda np, x: [np.linalg.inv(x), np.linalg.solve(x, x[:, 0, :, None]), np.linalg.eigvalsh(x), np.linalg.det(x)],
    ),
}
COUNTS = {  # without gradients
    "products of truth values": (
        (11, 4),
        lambda np, x: [
            np.dot((x > 0).T, x > 0),
            (x > 0) @ (x[0] > 0),
            *[np.einsum(s, x > 0, x > 0) for s in ("ij,ik->jk", "ij,kj->ik", "ij,ij")],
        ],
    ),
    "sums in small integers": (
        (11, 4),
        lambda np, x: [
            f((x * 40).astype("i1"), k, dtype)
            for f in (np.sum, np.prod)
            for k in (None, 0, 1)
            for dtype in ("i1", "u2", "?", None)
        ],
    ),
    "unique": (
        (23,),
        lambda np, x: [
            np.unique(np.round(x)),
            *np.unique(np.round(x), return_counts=True, return_index=True, return_inverse=True),
        ],
    ),
    "unique of a matrix": ((7, 5), lambda np, x: [np.unique(np.round(x)), np.unique(np.round(x[:, 0]) % 2)]),
    "histograms": ((7, 5), lambda np, x: [*np.histogram(x), *np.histogram(x, 4, (-2, 3), density=True)]),
    "quantiles": (
        (7, 5),
        lambda np, x: [np.median(x), np.quantile(x, [0.1, 0.5], axis=0), np.percentile(x, 30, axis=1)],
    ),
    "positions": (
        (7, 5),
        lambda np, x: [*np.nonzero(x > 0), np.flatnonzero(x > 1), np.argwhere(x < 0), *np.where(x[:, 0] > 0)],
    ),
    "searching": (
        (23,),
        lambda np, x: [
            np.searchsorted(np.sort(x), [-1.0, 0, 9]),
            np.searchsorted(onp.arange(3.0), x),
            np.digitize(x, [0.0, 1.0]),
        ],
    ),
    "in both": ((23,), lambda np, x: [np.isin(np.round(x), [0.0, 2.0]), np.searchsorted(np.sort(x), x[:5])]),
    "bincount": ((23,), lambda np, x: [np.bincount(np.abs(x).astype(int)), np.bincount(np.abs(x).astype(int), x, 12)]),
    "bincount of a few": ((2,), lambda np, x: np.bincount(np.abs(x).astype(int))),
    "agreement": ((7, 5), lambda np, x: [np.allclose(x, x + 1e-12), np.array_equal(x, x[::-1]), np.allclose(x, 0)]),
    "order of equal ones": (
        (40,),
        lambda np, x: [np.argsort(np.round(x / 3), kind="stable"), np.argsort(-np.round(x / 3), kind="stable")],
    ),
    "missing numbers": (
        (23,),
        lambda np, x: [np.sort(np.where(x > 1, np.nan, x)), np.sort(x > 0), np.sort(x.astype("i4"))],
    ),
    "rank": ((31, 4), lambda np, x: np.linalg.matrix_rank(x)),
}


# whose values NumPy leaves open: the order beside the kth, the signs of vectors
UNDEFINED = {"empty_like", "partition", "argpartition", "linalg.svd", "linalg.eigh", "linalg.eig"}


def rules(mesh):
    """What works in parts alone, and its gradients, against NumPy's."""
    for layout in layouts(mesh):
        for name, (shape, f) in (RULES | COUNTS).items():
            host = numbers(shape)
            if len(shape) < len(layout.on):
                continue
            x = np.asarray(host, device=layout)
            with minnp.policy("only_split" if len(mesh.ranks) < 4 else "auto"):  # on two axes not all is done in parts
                same(f(np, x), f(onp, host), f"{name} on {layout}")
                if name in RULES and layout == mesh.split(0):
                    g = lambda x, f=f: total(np, f(np, x))
                    same(minnp.grad(g)(x), minnp.grad(g)(host), f"gradient of {name} on {layout}", 1e-5)


def every_row(mesh):
    """Every row of the table on its own samples, its arrays split all together and one at a time."""
    for name in sorted(TABLE.keys() - UNDEFINED):
        row = TABLE[name]
        for arrays, params in row.samples():
            expected = row(*arrays, **params)
            expected = onp.bool_(expected) if isinstance(expected, bool) else expected
            for layout in layouts(mesh):
                fits = [
                    i for i, a in enumerate(arrays) if isinstance(a, onp.ndarray) and a.ndim >= max(len(layout.on), 1)
                ]
                for chosen in [fits, *([i] for i in fits if len(fits) > 1)] if fits else []:
                    args = [np.asarray(a, device=layout) if i in chosen else a for i, a in enumerate(arrays)]
                    same(row(*args, **params), expected, f"{name}({params}) with {chosen} on {layout}")


def in_parts(mesh, layout, name=""):
    """Within it nothing gathers an array that is split along one axis, but for what has no rule."""
    one = layout in (mesh.split(0), mesh.split(1))
    return minnp.policy("only_split" if one and name != "without a rule" else "auto")


def functions(mesh):
    host = numbers((7, 5))
    for layout in layouts(mesh):
        for name, f in FUNCTIONS.items():
            x = np.asarray(host, device=layout)
            assert x.device == repr(layout)
            with in_parts(mesh, layout, name):
                out = f(np, x)
            same(out, f(onp, host), f"{name} on {layout}")
    for shape in [(1, 3), (2, 2), (0, 4), (50, 2)]:  # fewer than ranks, none, and more
        host = numbers(shape)
        for layout in layouts(mesh):
            for name in ("arithmetic" if shape[0] else "clip", "shapes" if shape == (7, 5) else "copies", "counts"):
                if name != "counts" or shape[0] > 1:
                    x = np.asarray(host, device=layout)
                    f = {"arithmetic": lambda np, x: x * 2 + x[:, :1]}.get(name, FUNCTIONS[name])
                    same(f(np, x), f(onp, host), f"{name} of {shape} on {layout}")


WRITES = {
    "slice": lambda x: x.__setitem__(slice(2, 5), 1.0),
    "row": lambda x: x.__setitem__(3, x[0] * 2),
    "column": lambda x: x.__setitem__((slice(None), 1), x[:, 0] + 1),
    "steps": lambda x: x.__setitem__((slice(None, None, 2), slice(None, None, -2)), onp.arange(12.0).reshape(4, 3)),
    "reversed": lambda x: x.__setitem__(slice(None, None, -1), x.copy()),
    "shifted": lambda x: x.__setitem__(slice(1, None), x[:-1].copy()),
    "mask": lambda x: x.__setitem__(x > 0, 0.5),
    "rows of a mask": lambda x: x.__setitem__(MASK[:, 0], x[MASK[:, 0]] * 3),
    "integers": lambda x: x.__setitem__([5, 0, 5], x[:3] + 1),
    "view": lambda x: x[1:6].__setitem__((slice(1, 3), 0), -4.0),
    "view of a view": lambda x: x[1:6][::2].__setitem__(1, onp.arange(5.0)),
    "transposed": lambda x: x.T.__setitem__(2, 9.0),
    "a view with new axes": lambda x: (
        x.T[1:4, None].swapaxes(0, 2).__setitem__((slice(2, 6), 0), onp.arange(4.0)[:, None])
    ),
    "columns": lambda x: x.__setitem__((slice(1, 6), [3, 0]), x[2:, :2] * 2),
    "pairs": lambda x: x.__setitem__((AT, AT % 5), onp.arange(6.0)),
    "rows and slices": lambda x: x[1:].__setitem__(([0, 2, 5], slice(1, 4)), x[:3, :3] + 1),
    "split indices": lambda x: x.__setitem__(abs(x[:, 0]).astype(int) % 7, x * 2),
    "columns of a mask": lambda x: x.__setitem__((slice(None), MASK[0]), -1.0),
    "several of a mask": lambda x: x.__setitem__(MASK, onp.arange(MASK.sum()) / 3),
    "through a transpose": lambda x: x.T.__setitem__(([1, 4], slice(1, 3)), onp.ones((2, 1))),
    "flat": lambda x: x.reshape(-1).__setitem__(slice(3, 20, 2), 1.0),
    "ravel": lambda x: x.ravel().__setitem__([1, 30, 3], [1.0, 2.0, 3.0]),
    "copies": lambda x: [y.__setitem__(slice(3, 9), 1.0) for y in (x.T.ravel(), x.flatten(), x[:, :3].ravel())],
    "part of a reshape": lambda x: x.reshape(7, 5, 1)[1:, 1].__setitem__((slice(None), 0), onp.arange(6.0)),
    "reshape of a part": lambda x: x[1:5].reshape(-1).__setitem__(slice(0, 7), onp.arange(7.0)),
    "reshapes": lambda x: x.reshape(5, 7).T[2:].reshape(5, 5, 1)[0].__iadd__(3),
    "in place": lambda x: x.__iadd__(x[::-1]),
    "part in place": lambda x: x[2:4].__imul__(10),
    "element": lambda x: x.__setitem__((6, 4), x[0, 0]),
    "all": lambda x: x.__setitem__(..., onp.ones((7, 5))),
}


LAID = {  # arrays that NumPy lays out otherwise than in C order, or not
    "sum": lambda np, x: x.T + 1,
    "sum of two": lambda np, x: x.T + x.T.copy("C"),
    "broadcast sum": lambda np, x: (x[:, :, None] + x[0]).transpose(2, 0, 1) * 2,
    "backwards": lambda np, x: np.exp(x.T[::-1]),
    "copies": lambda np, x: np.concatenate([np.copy(x.T), x.T.copy()]),
    "converted": lambda np, x: np.zeros_like(x.T) + x.T.astype("f4"),
    "columns by numbers": lambda np, x: x[:, [3, 1]],
    "of a host array": lambda np, x: x + onp.asfortranarray(numbers((7, 5), seed=1)),
    "sorted": lambda np, x: np.diff(np.sort(x.T, 0), axis=0),
    "scanned": lambda np, x: np.cumsum(np.roll(x.T, 1, 0), 1)[None].mean(0),
    "filled": lambda np, x: np.full_like(x.T, 3.0) - np.pad(x.T[1:], ((1, 0), (0, 0))),
    "in Fortran's order": lambda np, x: np.asfortranarray(x) * 2,
    "reshaped": lambda np, x: x.T.reshape(1, 5, 7) + 1,
    "product": lambda np, x: x.T @ x,
    "without an axis": lambda np, x: (x.T[None] + 1).squeeze(),
    "real": lambda np, x: (x.T * 1j).imag * 1,
    "positions": lambda np, x: np.argwhere(x > 0) * 2,
    "transformed": lambda np, x: np.fft.fft(x.T, axis=0),
}
SEEN = {  # views of them, and copies
    "in a line": lambda np, y: y.reshape(-1),
    "ravel": lambda np, y: y.ravel(),
    "in Fortran's order": lambda np, y: y.ravel(order="F"),
    "transposed": lambda np, y: y.T.reshape(-1),
    "a part": lambda np, y: y[1:].reshape(-1),
    "of two axes": lambda np, y: y.reshape(y.shape[-1], -1),
    "contiguous": lambda np, y: np.ascontiguousarray(y),
    "squeezed": lambda np, y: np.squeeze(y[:1]),
    "columns": lambda np, y: np.array_split(y.swapaxes(0, 1), 2)[1],
    "real": lambda np, y: y.real,
}


def layouts_in_memory(mesh):
    """What is a view in NumPy is a view, and what is a copy a copy: a write says which."""
    for layout in layouts(mesh)[:2]:
        for (name, f), (seen, view) in itertools.product(LAID.items(), SEEN.items()):
            both = [(np, np.asarray(numbers((7, 5)), device=layout)), (onp, numbers((7, 5)))]
            results = []
            for module, x in both:
                y = f(module, x)
                v = view(module, y)
                v[...] = 7
                results.append([x, y, v])
            same(*results, f"{seen} of {name} on {layout}")


def writes(mesh):
    for layout in layouts(mesh):
        for name, write in WRITES.items():
            host = numbers((7, 5))
            x = np.asarray(host, device=layout)
            view, before = x[1:4], x + 0
            write(host)
            with in_parts(mesh, layout):
                write(x)
            same(x, host, f"{name} on {layout}")
            same(view, host[1:4], f"a view after {name} on {layout}")
            same(before, numbers((7, 5)), f"what was computed before {name}")
        z, there = host * (1 + 2j), np.asarray(host * (1 + 2j), device=layout)
        for a in (z, there):
            a.real[1:, 2] = 4.0
            a.reshape(-1).imag[5:9] = 3.0
        same(there, z, f"real and imaginary parts on {layout}")
        with pytest.raises(ValueError, match="could not broadcast"):
            x[1:3] = onp.ones(4)
        with pytest.raises(IndexError):
            x[9]


SMOOTH = ["arithmetic", "comparison", "clip", "sums", "moments", "norms", "scans", "products", "shapes", "broadcast"]
SMOOTH += ["flips", "rolls", "triangles", "slices", "numbers", "masks", "integers", "joins", "stacks", "more shapes"]
SMOOTH += ["stencil", "host array", "without a rule", "pad"]


def total(np, out):
    out = out if isinstance(out, (list, tuple)) else [out]
    parts = [y for y in out if y.dtype.kind == "f"] + [z for y in out if y.dtype.kind == "c" for z in (y.real, y.imag)]
    return sum(np.sum(np.sin(y)) for y in parts)


def gradients(mesh):
    host = numbers((7, 5))
    for layout in layouts(mesh):
        x = np.asarray(host, device=layout)
        for name in SMOOTH:
            f = lambda x, f=FUNCTIONS[name]: total(np, f(np, x))
            with in_parts(mesh, layout, name):
                value, g = minnp.value_and_grad(f)(x)
            expected, e = minnp.value_and_grad(f)(host)
            same(value, expected, f"{name} on {layout}")
            same(g, e, f"gradient of {name} on {layout}")
        for name, write in WRITES.items():

            def f(x, write=write):
                y = x * 1.5
                write(y)
                return np.sum(np.sin(y) * np.cos(x))

            same(minnp.grad(f)(x), minnp.grad(f)(host), f"gradient of {name} on {layout}")
        h = lambda x: np.sum(minnp.grad(lambda x: np.sum(np.sin(x[1:] * x[:-1])))(x) ** 2)
        same(minnp.grad(h)(x), minnp.grad(h)(host), f"second order on {layout}")
        f = lambda x: np.mean(np.tanh(x @ x.T) ** 2, 0)
        same(minnp.jvp(f, (x,), (x * 0 + 1,)), minnp.jvp(f, (host,), (host * 0 + 1,)), f"jvp on {layout}")
        same(minnp.vmap(lambda r: np.sum(r * r))(x), (host * host).sum(1), f"vmap on {layout}")


def compiled(mesh):
    host = numbers((7, 5))
    f = lambda x: np.sum(np.exp(-(x[1:] ** 2)) * x[:-1]) + np.mean(x @ x.T)
    for layout in layouts(mesh):
        x = np.asarray(host, device=layout)
        for g in (minnp.jit(f), minnp.jit(minnp.grad(f))):
            reference = f if g.__wrapped__ is f else minnp.grad(f)
            for k in range(3):
                same(g(x + k), reference(host + k), f"jit on {layout}")
        same(minnp.jit(lambda x: np.pad(x, 1) * 2)(x), onp.pad(host, 1) * 2, f"jit of new arrays on {layout}")


def matrices_on_a_grid(mesh):
    """A matrix that is split along both axes: the ranks of each column of the mesh share the work."""
    layout = distributed.init((2, -1) if mesh.size % 2 == 0 else (1, -1)).split(0, 1)
    host = SQUARE + 5 * onp.eye(7)
    x = np.asarray(host, device=layout)
    la = onp.linalg
    with minnp.policy("only_split"):
        for name in ("inv", "det", "slogdet", "qr", "svdvals", "eigvalsh"):
            same(getattr(np.linalg, name)(x), getattr(np.linalg, name)(host), name)
        assert np.linalg.inv(x).device == x.device == repr(layout)
        same(np.linalg.solve(x, x[0]), la.solve(host, host[0]), "solve")
        same(np.linalg.cholesky(x @ x.T), la.cholesky(host @ host.T), "cholesky")
        stack = np.asarray(numbers((7, 3, 3)), device=layout)
        same(np.linalg.inv(stack), la.inv(numbers((7, 3, 3))), "a stack")
        same(minnp.grad(lambda x: np.sum(np.linalg.inv(x)))(x), minnp.grad(lambda x: np.sum(np.linalg.inv(x)))(host))


def two_meshes(mesh):
    """Arrays over two arrangements of the same processes: what every rank has meets both, the rest is gathered."""
    grid, again = distributed.init((1, -1)), distributed.init()
    if mesh.size % 2 == 0:
        grid = distributed.init((2, -1))
    host, at = numbers((7, 5)), onp.arange(14, 0, -2) % 7
    new = lambda layout: np.asarray(host, device=layout) + 0
    x, y = new(mesh.split(0)), new(grid.split(0, 1))
    assert mesh.split(0) == again.split(0) != grid.split(0)
    same(x + new(again.split(1)), host * 2)
    pairs = [
        (lambda: x + y, host * 2),
        (lambda: np.concatenate([y, x]), onp.concatenate([host, host])),
        (lambda: x @ y.T, host @ host.T),
        (lambda: x[(y[:, 0] * 0).astype(int) + at], host[at]),
        (lambda: x.__setitem__(..., y) or x, host),
        (lambda: x.__setitem__(y > 0, y[y > 0]) or x, host),
    ]
    for k, (f, expected) in enumerate(pairs):
        same(f(), expected, f"{k}")
        with minnp.policy("only_split"), pytest.raises(FallbackError, match="processes has no rule"):
            f()
    assert x.context == mesh.split(0) and y.context == grid.split(0, 1)
    for z, layout in ((y, mesh.split(1)), (x, grid.split(1, 0)), (y, mesh.replicate())):
        z = z.to_device(layout)
        assert z.context == layout and z.local.shape == new(layout).local.shape
        same(z + new(layout), host * 2)
    whole, total = new(mesh.replicate()), x.sum()
    with minnp.policy("only_split"):
        same(y * total + whole, host * host.sum() + host)
        same(np.where(whole > 0, y, total), onp.where(host > 0, host, host.sum()))
        same(y[whole > 0], host[host > 0])
        same(np.concatenate([whole, y]), onp.concatenate([host, host]))
    f = lambda np, x, y: np.sum(np.sin(x.to_device(grid.split(0, 1)) if np is not onp else x) * y) * np.sum(x)
    slope = minnp.grad(lambda x: f(np, x, y))(x)
    assert slope.context == mesh.split(0)
    same(slope, onp.cos(host) * host * host.sum() + (onp.sin(host) * host).sum())


def written_where_they_lie(mesh):
    """A write leaves every rank the part it had, wherever the new elements lie."""
    grid = distributed.init((1, -1))
    for other in (mesh.split(1), mesh.replicate(), grid.split(0, 1)):
        for k, write in enumerate((
            lambda x, y: x.__setitem__(..., y),
            lambda x, y: x.__iadd__(y),
            lambda x, y: x.__setitem__(slice(1, 3), y[:2]),
            lambda x, y: x.__setitem__(x > 0, y[y > 0]),
            lambda x, y: x.T.__setitem__(..., y.T),
            lambda x, y: type(np.add(x, y, out=x)) and None,
            lambda x, y: np.copyto(x, y),
            lambda x, y: x.sort(0),
            lambda x, y: x.sort(axis=1),
        )):  # fmt: skip
            x, y, mine = np.asarray(numbers((7, 5)), device=mesh.split(0)) + 0, numbers((7, 5)), numbers((7, 5))
            write(x, np.asarray(y, device=other) + 0), write(mine, y)
            assert x.context == mesh.split(0) and len(x.local) == len(mine[mesh.part(7)]), (k, other)
            same(x, mine, f"write {k} from {other}")


def branches(mesh):
    """What Python asks is the same on every rank."""
    x = np.asarray(numbers((9, 2)), device=mesh.split(0))
    while x.sum() < 100:
        x = x + abs(float(x.max())) + 1
    steps = int(x[0, 0])
    assert mesh.all_reduce(steps, "max") == mesh.all_reduce(steps, "min")
    assert [float(v) for v in x.reshape(-1)] == onp.asarray(x).reshape(-1).tolist()


def where_it_is(mesh):
    x = np.asarray(onp.arange(10.0), device=mesh.split(0))
    mine = mesh.part(10)
    assert x.local.tolist() == list(range(mine.start, mine.stop))
    assert mesh.layout(x)[mesh.rank] == (mine,) and len(mesh.layout(x)) == mesh.size
    y = x + 1
    str(y)
    x.local[...] = -1.0  # ours to write
    assert onp.asarray(x).tolist() == [-1] * 10 and onp.asarray(y).tolist() == list(range(1, 11))
    x.local[...] += mesh.rank
    assert float(x[-1]) == mesh.size - 2
    with mesh.split(1):
        z = np.zeros((3, 11), "f4")
        assert z.device == "mesh.split(1)" and z.local.shape == (3, len(range(11)[mesh.part(11)])) and z.dtype == "f4"
        assert np.full((2, 2), 7).sum() == 28 and np.arange(5).sum() == 10
        np.random.seed(3)
        drawn = np.random.random((4, 5))
    assert drawn.device == "mesh.split(1)"
    same(drawn, onp.random.RandomState(3).random_sample((4, 5)))  # one process's stream
    there = z.to_device(mesh.split(0))
    assert there.device == "mesh.split(0)" and there.to_device("cpu").device == "cpu"
    assert repr(mesh.split(0)) == "mesh.split(0)" and mesh.split(0) == mesh.split(0) != mesh.split(1)
    for make in (lambda d: np.zeros(5, device=d), lambda d: np.asarray([1.0], device=d), lambda d: z[0].to_device(d)):
        with pytest.raises(ValueError, match=r"mesh.split\(1\) of an array of shape .* no axis 1"):
            make(mesh.split(1))
    for wrong in ((0, 0), (-1,), (0, 1, 2), ("x",)):
        with pytest.raises(ValueError):
            mesh.split(*wrong)


def told(mesh):
    """What gathers says so; only_split raises instead."""
    x = np.asarray(numbers((8, 3)), device=mesh.split(0))
    minnp.reset_report()
    np.linalg.svd(x)
    (row,) = [r for r in minnp.report() if r["function"] == "linalg.svd"]
    assert row["backend"] == "numpy" and "not done in parts" in row["why"] and row["moved"] == 8 * 3 * 8
    assert "split.py:" in row["where"]
    minnp.reset_report()
    np.poly(x[:3])  # whose eigenvalues NumPy's code asks for
    (row,) = [r for r in minnp.report() if r["function"] == "linalg.eigvals"]
    assert "split.py:" in row["where"]
    with minnp.policy("only_split"):
        same(np.sum(x * 2, 0), numbers((8, 3)).sum(0) * 2)
        with pytest.raises(FallbackError, match=r"linalg\.svd of split arrays"):
            np.linalg.svd(x)
        assert np.linalg.svd(numbers((3, 3))).S.shape == (3,)  # a host array is nobody's matter
    with minnp.policy("prefer_torch"):  # no other backend has the whole of it
        x[2:] *= 2
        assert x.device == (x + x).device == "mesh.split(0)"
        same(x[1:] + 1, numbers((8, 3))[1:] * onp.where(onp.arange(1, 8) < 2, 1, 2)[:, None] + 1)
    with minnp.policy("only_torch"), pytest.raises(FallbackError, match="only_torch"):
        x * 2


def files(mesh):
    """One .npy that each rank writes its part of; read again with other splits, and by NumPy."""
    path = os.path.join(tempfile.gettempdir(), f"minnp-split-{os.getppid()}-{mesh.size}.npy")
    for shape, dtype in [((7, 5), "f8"), ((2, 3, 4), "i2"), ((0, 3), "f4"), ((), "c16")]:
        host = numbers(shape, "f8").astype(dtype) if shape else onp.array(2 + 1j)
        for layout in layouts(mesh):
            x = np.asarray(host, device=layout)
            distributed.save(path, x)
            assert not os.path.exists(path + ".tmp")
            for other in layouts(mesh):
                y = distributed.load(path, other)
                assert y.device == (repr(other) if shape else "mesh.replicate()")
                same(y, host)
            if mesh.first:
                same(onp.load(path), host)
            mesh.barrier()
    with pytest.raises(TypeError, match=r"np\.save"):
        distributed.save(path, np.ones(3))
    with pytest.raises(TypeError, match="layout"):
        distributed.load(path, "cpu")
    with pytest.raises((OSError, MeshError)):
        distributed.save("/nowhere/x.npy", x)
    with pytest.raises(OSError):
        distributed.load("/nowhere/x.npy", layout)
    mesh.barrier()
    if mesh.first:
        onp.save(path, numbers((7, 5)))  # of one process
    mesh.barrier()
    same(distributed.load(path, mesh.split(1)), numbers((7, 5)))
    mesh.barrier()
    if mesh.first:
        onp.save(path, onp.array([None]), allow_pickle=True)
    mesh.barrier()
    with pytest.raises(ValueError):
        distributed.load(path, layout)
    mesh.barrier()
    if mesh.first:
        os.remove(path)


def dtensors(mesh):
    """To torch's DTensor and back: what each rank has there, and torch's own arithmetic on it."""
    if mesh.size == 1:
        with pytest.raises(ValueError, match="process group"):
            distributed.to_dtensor(np.zeros(3, device=mesh.split(0)))
        return
    import torch
    from torch.distributed.tensor import Shard, distribute_tensor

    for shape in [(7, 5), (2, 3), (12, 4), (1, 6)]:
        host = numbers(shape, "f4")
        for layout in layouts(mesh):
            x = np.asarray(host, device=layout)
            there = distributed.to_dtensor(x)
            theirs = distribute_tensor(torch.from_numpy(host), there.device_mesh, there.placements)
            assert there.shape == theirs.shape and torch.equal(there.to_local(), theirs.to_local())
            same(onp.asarray((there * 2).full_tensor()), host * 2)
            back = distributed.from_dtensor(there + 1, where := x.context.mesh)
            assert back.device == x.device
            same(back, host + 1)
            total = distributed.from_dtensor(there.sum(0), where)  # partial sums
            same(total, host.sum(0))
    with pytest.raises(TypeError, match="lives on a mesh"):
        distributed.to_dtensor(host)
    with pytest.raises(ValueError, match="not the same processes"):
        distributed.from_dtensor(there, distributed.init((1, -1)))
    twice = distribute_tensor(torch.zeros(4, 4), there.device_mesh, [Shard(0)] * len(there.placements))
    if len(there.placements) > 1:
        with pytest.raises(ValueError, match="sharded over two"):
            distributed.from_dtensor(twice, where)


@contextlib.contextmanager
def waiting(least=0, block=64):
    """Within it, small arrays wait too, are computed in many blocks, and by what is meant for large ones (own.py)."""
    before = chains.LEAST, chains.BLOCK, own.LARGE, own.CAST
    chains.LEAST, chains.BLOCK, own.LARGE, own.CAST = least, block, 1, 8
    try:
        yield
    finally:
        chains.LEAST, chains.BLOCK, own.LARGE, own.CAST = before


def chained(mesh):
    """Elementwise rows that wait: what they read may be written, lent or thrown away meanwhile."""
    with waiting():
        host = numbers((13, 6))
        for layout in layouts(mesh):
            x = np.asarray(host, device=layout)
            y = x * 2 + x[:, :1] - np.abs(x[::-1])
            kept = y * y
            z = np.maximum(kept - y, 0.5) / 3  # a division runs at once, and its operands with it
            x[2:5] = 7.0
            x.local[...] = -1.0
            expected = host * 2 + host[:, :1] - abs(host[::-1])
            same(z, np.maximum(expected**2 - expected, 0.5) / 3, f"on {layout}")
            same(kept, expected**2, f"on {layout}")
            same(y[1:] - y[:-1], expected[1:] - expected[:-1], f"neighbours of what waited on {layout}")
            same(x + 1, onp.zeros((13, 6)), "lent memory")
            after = x + 1
            x.local[...] = 5.0
            same(after, onp.zeros((13, 6)), "lent memory is read at once")
            z[3] *= 2
            with onp.errstate(over="ignore"):
                huge = (z + 1e308) * 10  # and is computed outside
            assert not onp.isfinite(onp.asarray(huge)).any()
            with onp.errstate(over="raise"), pytest.raises(FloatingPointError):
                np.asarray(onp.full((13, 6), 1e308), device=layout) * 10
        whole, row = numbers((13, 4, 6)), numbers((13, 1, 6))  # blocks along an axis that an operand has not
        x, y = (np.asarray(h, device=mesh.split(0)) for h in (whole, row))
        same(x + y * 2, whole + row * 2, "a chain of a chain that is broadcast")
        for seed in range(20):
            rng = onp.random.default_rng(seed)
            pairs = [(np.asarray(h, device=mesh.split(0)), h) for h in (numbers((9, 4), k) for k in ("f4", "f8", "i4"))]
            for _ in range(25):
                name = str(rng.choice(["add", "subtract", "multiply", "less", "maximum", "square", "exp", "copysign"]))
                chosen = [pairs[int(k)] for k in rng.integers(len(pairs), size=getattr(onp, name).nin)]
                if rng.random() < 0.3:
                    k = int(rng.integers(5))
                    chosen = [(a[k:], b[k:]) if b.ndim > 1 and len(b) > k else (a, b) for a, b in chosen]
                if rng.random() < 0.3:
                    chosen[0] = chosen[0][0][:, -1:], chosen[0][1][:, -1:]
                if rng.random() < 0.2 and len(chosen) == 2:
                    chosen[-1] = (2, 2)
                with onp.errstate(all="ignore"):
                    try:
                        expected = getattr(onp, name)(*[b for _, b in chosen])
                    except (TypeError, ValueError):
                        continue
                    pairs.append((getattr(np, name)(*[a for a, _ in chosen]), expected))
                if rng.random() < 0.3:
                    del pairs[int(rng.integers(len(pairs)))]
            for a, b in pairs:
                same(a, b, f"chain {seed}")


def own_kernels(mesh):
    """Sums by BLAS, also of products that wait, products of two dtypes, and torch's kernels: what is meant for large
    arrays, on small ones."""
    with waiting():
        pairs = [("f4", "f8"), ("f8", "f4"), ("c16", "?"), ("f4", "f4")]
        for layout, kinds in itertools.product(layouts(mesh)[:3], pairs):
            host, weights = numbers((12, 5), kinds[0]), numbers((12, 1), kinds[1], 1)
            x, w = np.asarray(host, device=layout), np.asarray(weights, device=layout)
            for axis, keepdims in ((0, False), (1, True), (-1, False), (None, True), ((0, 1), False)):
                about = f"{kinds} along {axis} on {layout}"
                same(np.sum(x, axis, keepdims=keepdims), np.sum(host, axis, keepdims=keepdims), about)
                y = w * x
                same(np.sum(y, axis, keepdims=keepdims), np.sum(weights * host, axis, keepdims=keepdims), about)
                same(y, weights * host, f"the product itself, {about}")
                same(np.sum((x * 2) * (w + 1)[:, :1], axis), np.sum((host * 2) * (weights + 1), axis), about)
                same(np.mean(x.T, axis), np.mean(host.T, axis), f"of the transpose, {about}")
            same(np.sum(x[:1] * x, 1), np.sum(host[:1] * host, 1), f"weights of columns, {about}")
            right = numbers((5, 3), kinds[1], 2)
            same(x @ right, host @ right, f"product, {about}")
            same(x @ right[:, 0], host @ right[:, 0], f"product with a vector, {about}")
        for layout in (mesh.split(0), mesh.split(1)):
            deep = numbers((6, 4, 3))
            x = np.asarray(deep, device=layout)
            for axis in (0, (0, 1), (1, 2), 2, (0, 2), 1):
                same(np.sum(x, axis), np.sum(deep, axis), f"three axes, {axis} on {layout}")
                same(
                    np.sum(x * x[:, :1, :1], axis),
                    np.sum(deep * deep[:, :1, :1], axis),
                    f"weighted, {axis} on {layout}",
                )
            tall = numbers((40, 4))
            for f in (
                lambda np, x: np.linalg.qr(x),
                lambda np, x: np.linalg.qr(x, "r"),
                lambda np, x: [np.abs(y) for y in np.linalg.svd(x, full_matrices=False)],
                lambda np, x: np.linalg.pinv(x),
                lambda np, x: np.linalg.lstsq(x, x[:, 0] + 1, rcond=None)[:2],
                lambda np, x: np.fft.irfft(np.fft.rfft(x, axis=0)[:-1], axis=1),
            ):
                same(f(np, np.asarray(tall, device=layout)), f(onp, tall), f"on {layout}")
            square = np.asarray(tall[:4], device=layout)
            same(np.linalg.qr(square), np.linalg.qr(tall[:4]), f"square on {layout}")
            with pytest.raises(ValueError, match="data points"):
                np.fft.irfft(square[:, :1])
        huge = np.asarray(onp.full((12, 4), 1e308), device=mesh.split(1))
        with pytest.warns(RuntimeWarning, match="overflow encountered in reduce"):
            np.sum(huge, axis=0)
        with onp.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow encountered in reduce"):
            np.sum(huge, axis=0)
        odd = onp.array([[onp.inf, 1.0, onp.nan], [1.0, 2.0, 3.0]] * 3)
        same(np.sum(np.asarray(odd, device=mesh.split(0)), 0), np.sum(odd, 0), "NaNs and infinities")


# A thousand programs: each mesh has its own
SEEDS = {1: range(500), 2: range(500, 800), 3: range(800, 900), 4: range(900, 1000)}


def programs(mesh):
    """Random programs of views, writes and reductions; in every other one small arrays wait too."""
    for seed in SEEDS[mesh.size]:
        with waiting() if seed % 2 else contextlib.nullcontext():
            program(mesh, seed)


def program(mesh, seed):
    rng = onp.random.default_rng(seed)
    shape = tuple(rng.integers(1, 9, rng.integers(1, 4)).tolist())
    host = numbers(shape, seed=seed)
    layout = mesh.split(int(rng.integers(len(shape))))
    x = np.asarray(host, device=layout)
    said = [f"{seed}: {shape} on {layout}"]
    pairs = [(x, host)]
    for _ in range(8):
        i = int(rng.integers(len(pairs)))
        a, b = pairs[i]
        kind = rng.choice(["view", "view", "write", "reduce", "combine", "shape", "mask"])
        if not b.ndim:
            continue
        index = []
        for n in b.shape:
            start, stop = sorted(rng.integers(0, n + 1, 2).tolist())
            step = int(rng.choice([1, 1, 2, -1]))
            choice = rng.random()
            if choice < 0.15 and n:
                index.append(int(rng.integers(n)))
            elif choice < 0.5:
                index.append(slice(None))
            else:
                index.append(slice(start, stop, step) if step > 0 else slice(None, None, -1))
        index = tuple(index[: rng.integers(1, len(index) + 1)])
        said.append(f"{kind} {i} {index}")
        if kind == "view":
            pairs.append((a[index], b[index]))
        elif kind == "write":
            value = numbers(b[index].shape, seed=seed)
            if rng.random() < 0.5:
                a[index], b[index] = value, value
            else:
                a[index], b[index] = (
                    np.asarray(value, device=layout if value.ndim >= len(layout.on) else mesh.replicate()) * 2,
                    value * 2,
                )
        elif kind == "reduce":
            axis = int(rng.integers(b.ndim))
            if b.size:
                pairs.append((np.sum(a, axis), np.sum(b, axis)))
                same(np.max(a), np.max(b), "\n".join(said))
        elif kind == "combine":
            c, d = pairs[int(rng.integers(len(pairs)))]
            try:
                onp.broadcast_shapes(b.shape, onp.shape(d))
            except ValueError:
                continue
            pairs.append((a * 0.5 + c, b * 0.5 + d))
        elif kind == "shape":
            pairs.append((a.reshape(-1), b.reshape(-1)) if rng.random() < 0.5 else (a.T, b.T))
        else:
            a[a > 1] = 0.25
            b[b > 1] = 0.25
        for (a, b), k in zip(pairs, itertools.count()):
            same_here(a, onp.asarray(b), "\n".join([*said, f"array {k}"]))
    for a, b in pairs:
        same(a, onp.asarray(b), "\n".join(said))
