"""Rows of products: matmul and einsum; dot, inner, outer, tensordot, kron and their kin are expressed in these."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from ..core.arrays.array import ndarray, read, wrap
from ..core.cpu import contraction
from ..core.cpu import products as host_products
from ..core.cpu.contraction import LETTERS, explicit
from ..core.rows.dispatch import defines
from ..core.rows.primitive import Meta, primitive
from ..core.rows.state import state
from ..core.rows.value import Host
from .arguments import as_array, number_of, on_host
from .calls import along
from .facts import axes_of, count_of, sampled, spread
from .indexing import index_add
from .shaping import astype, broadcast_to, flip, reshape, swapaxes, transpose
from .ufuncs import conjugate, multiply


# ------------------------------------------------------------------ matmul
def _multiplied(a: Any, b: Any) -> Any:
    """a @ b of values, as the row computes it; a policy or a capture wants NumPy's."""
    return host_products.matmul(a, b) if type(a) is Host is type(b) and not state.busy else a @ b


def _matmul_left(g: Any, y: Any, a: Any, b: Any) -> Any:
    if b.ndim == 2:
        return _multiplied(b, g) if a.ndim == 1 else _multiplied(g, b.T)
    if b.ndim == 1:
        return g * b if a.ndim == 1 else g[..., None] * b
    if a.ndim == 1:
        return reshape(b @ g[..., None], shape=b.shape[:-1])
    b = swapaxes(b, axis1=-1, axis2=-2)
    # BLAS takes twice the time for many rows times a small transposed matrix
    small = type(b) is Host and b.shape[-2] * b.shape[-1] <= 1024 <= g.shape[-2]
    return _multiplied(g, onp.ascontiguousarray(b) if small else b)


def _matmul_right(g: Any, y: Any, a: Any, b: Any) -> Any:
    if a.ndim == 2:
        return _multiplied(g, a) if b.ndim == 1 else _multiplied(a.T, g)
    if a.ndim == 1:
        return g * a if b.ndim == 1 else a[:, None] * g[..., None, :]
    if b.ndim == 1:
        return reshape(swapaxes(a, axis1=-1, axis2=-2) @ g[..., None], shape=(*a.shape[:-2], a.shape[-1]))
    if b.ndim == 2:  # one product over all batches, not one per batch and a sum
        a, g = reshape(a, shape=(-1, a.shape[-1])), reshape(g, shape=(-1, g.shape[-1]))
        return _multiplied(a.T, g)
    return _multiplied(swapaxes(a, axis1=-1, axis2=-2), g)


def _matmul_meta(metas: Sequence[Meta], params: dict) -> Meta:
    a, b = metas
    batch = onp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*batch, *(a.shape[-2:-1]), *(b.shape[-1:] if b.ndim > 1 else ()))
    return Meta(shape, onp.result_type(a.dtype, b.dtype))


matmul = primitive(
    "matmul",
    numpy=onp.matmul,
    fast=host_products.matmul,
    vjp=[_matmul_left, _matmul_right],
    jvp="multilinear",
    saves="in",
    shape=_matmul_meta,
    flops=lambda metas, params, out: 2 * out.size * metas[0].shape[-1],
    batch="matmul",
    samples=sampled(
        *(
            ((spread(*a), spread(*b, seed=1)), {})
            for a, b in [
                ((2, 3), (3, 4)),
                ((3,), (3,)),
                ((2, 3), (3,)),
                ((3,), (3, 2)),
                ((3,), (4, 3, 2)),
                ((4, 2, 3), (3,)),
                ((4, 2, 3), (3, 2)),
                ((2, 3), (4, 3, 2)),
                ((5, 1, 2, 3), (4, 3, 2)),
            ]
        )
    ),
)


# ------------------------------------------------------------------ einsum
def _einsum_part(i: int, g: Any, y: Any, *operands: Any, subscripts: str, **params: Any) -> Any:
    """The cotangent of operand i: the einsum of g and the other operands, with i's term as the result."""
    x = operands[i]
    terms, output = explicit(subscripts, tuple(a.ndim for a in operands))
    others = [a for k, a in enumerate(operands) if k != i]
    inputs = [output, *(t for k, t in enumerate(terms) if k != i)]
    # a letter that occurs twice in the term (a diagonal) comes back through an identity matrix
    term, spare = "", iter([c for c in LETTERS if c not in "".join(terms)])
    for c, n in zip(terms[i], x.shape):
        if c in term:
            others.append(onp.eye(n, dtype=x.dtype))
            inputs.append(c + next(spare))
        term += c if c not in term else inputs[-1][1]
    # an axis that NumPy broadcast from length 1, or that was summed alone, comes back by broadcasting
    sizes: dict[str, int] = {}
    for a, t in zip((y, *others), inputs):
        for c, n in zip(t, a.shape):
            sizes[c] = max(n, sizes.get(c, n))
    present = [c in sizes and (n != 1 or sizes[c] == 1) for c, n in zip(term, x.shape)]
    target = "".join(c for c, p in zip(term, present) if p)
    result = [sizes[c] if p else 1 for c, p in zip(term, present)]
    values = (g, *others)
    contract = contraction.einsum if all(type(x) is Host for x in values) and not state.busy else einsum
    back = contract(*values, subscripts=f"{','.join(inputs)}->{target}", **params)
    return broadcast_to(reshape(back, shape=result), shape=x.shape)


def _einsum_meta(metas: Sequence[Meta], params: dict) -> Meta:
    terms, output = explicit(params["subscripts"], tuple(m.ndim for m in metas))
    sizes: dict[str, int] = {}
    for m, t in zip(metas, terms):
        for c, n in zip(t, m.shape):
            sizes[c] = max(n, sizes.get(c, 1)) if n else 0
    return Meta([sizes[c] for c in output], onp.result_type(*(m.dtype for m in metas)))


def _einsum_flops(metas: Sequence[Meta], params: dict, out: Meta) -> int:
    terms, _ = explicit(params["subscripts"], tuple(m.ndim for m in metas))
    sizes = {c: n for m, t in zip(metas, terms) for c, n in zip(t, m.shape) if n != 1}
    return len(metas) * int(onp.prod(list(sizes.values()), dtype=object))


def _einsum_case(subscripts: str, *shapes: tuple) -> tuple:
    return tuple(spread(*s, seed=i) for i, s in enumerate(shapes)), {"subscripts": subscripts}


einsum = primitive(
    "einsum",
    numpy=lambda *operands, subscripts, **params: onp.einsum(subscripts, *operands, **params),
    fast=contraction.einsum,
    vjp=_einsum_part,
    jvp="multilinear",
    saves="in",
    view=True,  # of a single operand of which nothing is summed
    shape=_einsum_meta,
    flops=_einsum_flops,
    samples=sampled(
        _einsum_case("ij,jk->ik", (2, 3), (3, 4)),
        _einsum_case("ij->", (2, 3)),
        _einsum_case("ij->ji", (2, 3)),
        _einsum_case("ii", (3, 3)),
        _einsum_case("iij->ij", (3, 3, 2)),
        _einsum_case("iii->i", (3, 3, 3)),
        _einsum_case("ij,j", (2, 3), (3,)),
        _einsum_case("...ij,...jk->...ik", (4, 2, 3), (3, 2)),
        _einsum_case("b...,b...", (2, 3, 4), (2, 1, 4)),
        _einsum_case("ij,ij->i", (2, 3), (2, 1)),
        _einsum_case("i,j,k->kij", (2,), (3,), (4,)),
        _einsum_case("ijk,jl->il", (2, 3, 4), (3, 2)),
    ),
)


# ------------------------------------------------------------------ convolution of two sequences
def _convolve_part(i: int, g: Any, y: Any, a: Any, v: Any, mode: str = "full") -> Any:
    """The cotangent of one sequence: g, padded to the full convolution, correlated with the other one."""
    n, m = a.shape[0], v.shape[0]
    start = {"full": 0, "same": (min(n, m) - 1) // 2, "valid": min(n, m) - 1}[mode]
    g = index_add(g, shape=(n + m - 1,), index=slice(start, start + g.shape[0]))
    return convolve(g, flip(v if i == 0 else a), mode="valid")


convolve = primitive(
    "convolve",
    numpy=onp.convolve,
    vjp=_convolve_part,
    jvp="multilinear",
    saves="in",
    flops=lambda metas, params, out: 2 * out.size * min(metas[0].size, metas[1].size),
    takes=("arrays", 2),
    samples=sampled(
        *(
            ((spread(n), spread(m, seed=1)), {"mode": mode})
            for mode in ("full", "same", "valid")
            for n, m in [(5, 3), (5, 2), (2, 6), (4, 4)]
        )
    ),
)


# ------------------------------------------------------------------ definitions
defines(onp.matmul)(along(onp.matmul, matmul))


@defines(onp.dot, takes=("matrices", "matmul"))
def _dot(a: Any, b: Any) -> Any:
    a, b = as_array(a), as_array(b)
    if not a.ndim or not b.ndim:
        return _scaled(onp.dot, a, b)
    if b.ndim <= 2:
        return matmul(a, b)
    return tensordot(a, b, axes=((-1,), (-2,)))


def _scaled(product: Callable, a: ndarray, b: ndarray) -> Any:
    """a * b of an array and a number, in the common dtype of the two, whatever the number's value."""
    if on_host(a, b):
        return wrap(product(read(a), read(b)))
    dtype = onp.promote_types(a.dtype, b.dtype)
    return multiply(*[x if x.dtype == dtype else astype(x, dtype=dtype) for x in (a, b)])


@defines(onp.inner)
def _inner(a: Any, b: Any) -> Any:
    a, b = as_array(a), as_array(b)
    return _scaled(onp.inner, a, b) if not a.ndim or not b.ndim else number_of(tensordot(a, b, axes=((-1,), (-1,))))


@defines(onp.vdot)
def _vdot(a: Any, b: Any) -> Any:
    a, b = as_array(a), as_array(b)
    return matmul(_conjugate(reshape(a, shape=(a.size,))), reshape(b, shape=(b.size,)))


def _conjugate(x: Any) -> Any:
    """The conjugate, for a product: the ufunc's makes small integers of truth values."""
    return conjugate(x) if x.dtype.kind == "c" else x


@defines(onp.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """The sum of products over pairs of axes: both arrays as matrices, and one matrix product."""
    a, b = as_array(a), as_array(b)
    if isinstance(axes, (int, onp.integer)) or getattr(axes, "shape", None) == ():
        n = operator.index(axes)
        axes = (tuple(range(a.ndim - n, a.ndim)), tuple(range(n)))
    over_a, over_b = (
        axes_of(x if isinstance(x, (int, onp.integer)) else tuple(x), m.ndim) for x, m in zip(axes, (a, b))
    )
    if [a.shape[i] for i in over_a] != [b.shape[i] for i in over_b]:
        raise ValueError("shape-mismatch for sum")
    free_a, free_b = ([i for i in range(m.ndim) if i not in over] for m, over in ((a, over_a), (b, over_b)))
    n = count_of(a.shape, over_a)
    left = reshape(transpose(a, axes=(*free_a, *over_a)), shape=(count_of(a.shape, tuple(free_a)), n))
    right = reshape(transpose(b, axes=(*over_b, *free_b)), shape=(n, count_of(b.shape, tuple(free_b))))
    return reshape(matmul(left, right), shape=(*(a.shape[i] for i in free_a), *(b.shape[i] for i in free_b)))


def moveaxis(x: Any, source: Any, destination: Any) -> Any:
    source, destination = axes_of(source, x.ndim), axes_of(destination, x.ndim)
    order = [i for i in range(x.ndim) if i not in source]
    for to, frm in sorted(zip(destination, source)):
        order.insert(to, frm)
    return transpose(x, axes=tuple(order))


@defines(onp.einsum, view="perhaps")
def _einsum(*operands: Any, optimize: Any = False, dtype: Any = None, order: str = "K", casting: str = "safe") -> Any:
    subscripts, *arrays = operands
    if not isinstance(subscripts, str):  # operand, axes, operand, axes, ..., [result axes]
        *pairs, last = operands if len(operands) % 2 else (*operands, None)
        spell = lambda axes: "".join("..." if i is Ellipsis else LETTERS[i] for i in axes)
        subscripts = ",".join(map(spell, pairs[1::2])) + ("" if last is None else "->" + spell(last))
        arrays = pairs[::2]
    arrays = [as_array(a) for a in arrays]
    if dtype is not None:
        like = [onp.zeros((0,) * a.ndim, a.dtype) for a in arrays]
        dtype = onp.einsum(subscripts, *like, dtype=dtype, casting=casting).dtype  # a view keeps its own
        arrays = [astype(a, dtype=dtype) if a.dtype != dtype else a for a in arrays]
    return einsum(*arrays, subscripts=subscripts, optimize=optimize)


@defines(onp.convolve)
def _convolve(a: Any, v: Any, mode: str = "full") -> Any:
    a, v = [x if x.ndim else x.reshape(1) for x in map(as_array, (a, v))]
    return convolve(a, v, mode=mode)


@defines(onp.correlate)
def _correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    a, v = as_array(a), as_array(v)
    if not a.ndim or not v.ndim:
        raise ValueError("object of too small depth for desired array")
    onp.correlate([0], [0], mode)  # or NumPy's exception
    full = convolve(a, _conjugate(flip(v)))
    n, m = a.size, v.size
    short, long = min(n, m), max(n, m)
    start = {"full": 0, "same": (short - 1) // 2 if n >= m else short // 2, "valid": short - 1}[mode]
    return full[start : start + {"full": n + m - 1, "same": long, "valid": long - short + 1}[mode]]


if hasattr(onp, "vecdot"):  # NumPy 2

    def _vecdot(a: Any, b: Any) -> Any:
        if not a.ndim or not b.ndim:
            onp.vecdot(onp.empty(a.shape), onp.empty(b.shape))  # raises
        return number_of(matmul(_conjugate(a)[..., None, :], b[..., None])[..., 0, 0])

    def _matvec(a: Any, x: Any) -> Any:
        if a.ndim < 2 or x.ndim < 1:
            onp.matvec(onp.empty(a.shape), onp.empty(x.shape))  # raises
        return matmul(a, x[..., None])[..., 0]

    def _vecmat(x: Any, a: Any) -> Any:
        if a.ndim < 2 or x.ndim < 1:
            onp.vecmat(onp.empty(x.shape), onp.empty(a.shape))  # raises
        return matmul(_conjugate(x)[..., None, :], a)[..., 0, :]

    for _ufunc, _compute in ((onp.vecdot, _vecdot), (onp.matvec, _matvec), (onp.vecmat, _vecmat)):
        defines(_ufunc)(along(_ufunc, _compute))
