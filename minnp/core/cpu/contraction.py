"""einsum of traced and compiled code: products of two operands that sum over an axis are matrix products.

NumPy's own einsum multiplies and adds element by element, at a tenth of BLAS's speed. What needs no BLAS (a diagonal,
an axis of length 1 against a longer one, nothing summed, small operands) is NumPy's here too.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as onp

from .products import matmul

LEAST = 1 << 14  # multiplications from which a matrix product repays its preparation
NARROW = 4  # columns below which NumPy's einsum is as fast
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@lru_cache(maxsize=1024)
def explicit(subscripts: str, ndims: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
    """The terms of the operands and of the result, one letter per axis: no ellipsis, no implied result."""
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    free = [c for c in LETTERS if c not in subscripts]
    hidden = [n - len(t.replace("...", "")) if "..." in t else 0 for t, n in zip(terms, ndims)]
    dots = "".join(free[: max(hidden)])  # the broadcast axes, aligned at their right end
    if not arrow:
        letters = inputs.replace("...", "").replace(",", "")
        output = "..." * ("..." in inputs) + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    terms = [t.replace("...", dots[len(dots) - n :]) for t, n in zip(terms, hidden)]
    return tuple(terms), output.replace("...", dots)


def einsum(*operands: Any, subscripts: str, optimize: Any = False, **params: Any) -> Any:
    """np.einsum; of float arrays of one dtype in matrix products, so rounded in another order."""
    plan = None
    if len(operands) > 1 and not params and all(type(x) is onp.ndarray for x in operands):
        dtype = operands[0].dtype
        if dtype.char in "fd" and all(x.dtype is dtype for x in operands):
            plan = planned(subscripts, tuple(x.shape for x in operands))
    if plan is None:
        return onp.einsum(subscripts, *operands, optimize=optimize, **params)
    left = list(operands)
    for chosen, step in plan:
        taken = [left.pop(i) for i in chosen]
        left.append(onp.einsum(step, *taken) if isinstance(step, str) else step(*taken))
    return left[0]


@lru_cache(maxsize=1024)
def planned(subscripts: str, shapes: tuple[tuple[int, ...], ...]) -> list | None:
    """The steps of an einsum of these shapes: (which of the operands left are taken, a Product or NumPy's subscripts),
    whose result comes last among those left. None: NumPy's einsum as a whole."""
    if subscripts.replace(" ", "").split("->")[0].count(",") != len(shapes) - 1:
        return None
    found, out = explicit(subscripts, tuple(map(len, shapes)))
    terms = list(found)
    if any(len(set(t)) != len(t) or len(t) != len(s) for t, s in zip(terms, shapes)):  # a diagonal; a mistake
        return None
    sizes: dict[str, int] = {}
    for c, n in ((c, n) for t, s in zip(terms, shapes) for c, n in zip(t, s)):
        if sizes.setdefault(c, n) != n:
            return None
    if math.prod(sizes.values()) < LEAST or not sizes.keys() >= set(out) or len(set(out)) != len(out):
        return None
    path, steps = [(0, 1)], []
    if len(terms) > 2:
        empty = [onp.broadcast_to(onp.float32(0), s) for s in shapes]
        path = onp.einsum_path(f"{','.join(terms)}->{out}", *empty, optimize="greedy")[0][1:]
    for chosen in (sorted(p, reverse=True) for p in path):
        taken = [terms.pop(i) for i in chosen]
        kept = {*out, *"".join(terms)}
        result = "".join(dict.fromkeys(c for t in taken for c in t if c in kept)) if terms else out
        steps.append((chosen, Product.of(taken, result, sizes) or f"{','.join(taken)}->{result}"))
        terms.append(result)
    return steps if any(isinstance(step, Product) for _, step in steps) else None


class Product:
    """(a, b) -> their einsum, as a matrix product of stacks [*batch, rows, inner] and [*batch, inner, columns]."""

    def __init__(self, a: str, b: str, out: str, sizes: dict[str, int], turned: bool = False) -> None:
        if turned:
            a, b = b, a
        batch = [c for c in a if c in b and c in out]
        rows, columns = [c for c in a if c not in b], [c for c in b if c not in a]
        inner = [c for c in a if c in b and c not in out]
        lead = tuple(sizes[c] for c in batch)
        self.m, self.k, self.n = (math.prod(sizes[c] for c in group) for group in (rows, inner, columns))
        self.of_a = tuple(map(a.index, batch + rows + inner)), (*lead, self.m, self.k)
        self.of_b = tuple(map(b.index, batch + inner + columns)), (*lead, self.k, self.n)
        found = batch + rows + columns
        self.shape, self.order = tuple(sizes[c] for c in found), tuple(map(found.index, out))
        self.turned = turned
        self.ordered = self.order == tuple(range(len(out)))

    @classmethod
    def of(cls, taken: list[str], out: str, sizes: dict[str, int]) -> Product | None:
        """The product of two terms; None where NumPy's einsum is as fast, or a letter stands in one term alone."""
        if len(taken) != 2 or not all(c in out or all(c in t for t in taken) for t in taken for c in t):
            return None
        found, turned = cls(*taken, out, sizes), cls(*taken, out, sizes, turned=True)
        if min(found.m, found.n) < NARROW or found.k < NARROW:
            return None
        return turned if turned.ordered and not found.ordered else found

    def __call__(self, a: Any, b: Any) -> Any:
        if self.turned:
            a, b = b, a
        out = matmul(
            _dense(a.transpose(self.of_a[0]).reshape(self.of_a[1])),
            _dense(b.transpose(self.of_b[0]).reshape(self.of_b[1])),
        )
        out = out.reshape(self.shape)
        return out if self.ordered else onp.ascontiguousarray(out.transpose(self.order))


def _dense(x: Any) -> Any:
    """x with its rows or its columns dense, as BLAS wants them."""
    return x if x.itemsize in x.strides[-2:] else onp.ascontiguousarray(x)
