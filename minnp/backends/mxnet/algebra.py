"""Lowerings of matrix products and linear algebra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .lowering import MOST_AXES, Argument, Lowered, Lowering, Meta, merged, only, refuse

TABLE: dict[str, Lowering] = {}


# ------------------------------------------------------------------ products and linear algebra
def _matmul(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    only(params)
    (a, b) = (meta.shape for meta in metas)
    if not a or not b:
        raise refuse("matmul of shape ()")
    left = a if len(a) > 1 else (1, *a)
    right = b if len(b) > 1 else (*b, 1)
    if left[-1] != right[-2]:
        raise refuse(f"matmul of {a} and {b}")
    batch, _ = merged([left[:-2], right[:-2]])
    if len(batch) > MOST_AXES - 2:
        raise refuse(f"matmul over more than {MOST_AXES - 2} batch axes")
    result = (*batch, *left[-2:-1][: len(a) > 1], *right[-1:][: len(b) > 1])
    arguments = (Argument(0, left, metas[0].dtype), Argument(1, right, metas[1].dtype))
    if len(left) == len(right) == 2:
        return Lowered("dot", {}, arguments, result)
    return Lowered("_npi_matmul", {}, arguments, result)


def of_matrix(operator: str, vector: bool = False, **attributes: str) -> Lowering:
    """A function of the square matrices in the last two axes."""

    def lower(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
        only(params)
        shape = metas[0].shape
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise refuse(f"the last two axes of {shape} are not a square matrix")
        result = shape[:-2] if vector else shape
        return Lowered(operator, attributes, (Argument(0, shape, metas[0].dtype),), result)

    return lower


def _solve(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    only(params)
    a, b = (meta.shape for meta in metas)
    right = (*b, 1) if len(b) == 1 else b
    if len(a) < 2 or a[-1] != a[-2] or a[:-1] != right[:-1]:
        raise refuse(f"solve of {a} and {b}")
    return Lowered("_npi_solve", {}, (Argument(0, a, metas[0].dtype), Argument(1, right, metas[1].dtype)), b)


def _einsum(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    (subscripts,) = only({**params, "optimize": None}, subscripts="")
    arguments = tuple(Argument(i, meta.shape, meta.dtype) for i, meta in enumerate(metas))
    inputs, arrow, result = subscripts.replace(" ", "").partition("->")
    if not arrow or not result or "." in subscripts or any(not meta.shape for meta in metas):
        raise refuse(f"einsum of {subscripts!r}")
    sizes: dict[str, int] = {}
    terms = inputs.split(",")
    if len(terms) != len(metas) or any(len(t) != len(meta.shape) for t, meta in zip(terms, metas, strict=False)):
        raise refuse(f"einsum of {subscripts!r}")
    for letter, n in [pair for t, meta in zip(terms, metas, strict=True) for pair in zip(t, meta.shape, strict=True)]:
        if sizes.setdefault(letter, n) != n:
            raise refuse(f"axes of different lengths in einsum of {subscripts!r}")
    return Lowered("_npi_einsum", {"subscripts": f"{inputs}->{result}", "optimize": "1"}, arguments)


TABLE.update(
    {
        "matmul": _matmul,
        "einsum": _einsum,
        "linalg.solve": _solve,
        "linalg.inv": of_matrix("_linalg_inverse"),
        "linalg.det": of_matrix("_linalg_det", vector=True),
        "linalg.cholesky": of_matrix("_linalg_potrf"),
    }
)
