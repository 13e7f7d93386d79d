"""Arguments on which a kernel must agree with NumPy before it is listed: shapes, layouts, edge values, parameters.

cases(name, dtype) yields (values, params) for a row and the dtype of its arrays.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as onp

from . import elementwise, neural_cases
from .samples import Case, edges, layouts, spread


# ------------------------------------------------------------------ families
def unary(dtype: str) -> Iterator[Case]:
    yield (edges(dtype),), {}
    for shape in ((), (1,), (7,), (3, 4), (2, 1, 3), (1, 2, 1, 2, 1, 2, 3), (33, 65)):
        yield (spread(dtype, *shape),), {}
    for x in layouts(spread(dtype, 4, 6)):
        yield (x,), {}


def activation(dtype: str) -> Iterator[Case]:
    yield from ((values, params) for values, params in unary(dtype) if values[0].ndim)


def binary(dtype: str) -> Iterator[Case]:
    kind = onp.dtype(dtype).kind
    e = edges(dtype)
    yield (e[:, None], e[None, :]), {}
    shapes = [
        ((), ()), ((7,), (7,)), ((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((), (3,)), ((2, 1, 3), (4, 1)),
        ((2, 3, 1, 5, 1), (3, 4, 1, 6)), ((2, 1, 2, 1, 2, 1, 2), (1, 2, 1, 2, 1, 2, 1)), ((1, 1), (1,)),
    ]  # fmt: skip
    for a, b in shapes:
        yield (spread(dtype, *a), spread(dtype, *b, seed=1)), {}
    x, y = spread(dtype, 4, 4), spread(dtype, 4, 4, seed=1)
    for a, b in zip(layouts(x), layouts(y), strict=True):
        yield (a, y), {}
        yield (x, b), {}
    numbers = {"f": (2.5, 3, 1e300, 0.1), "i": (2, 300, True), "u": (2, 300), "b": (True,)}[kind]
    for number in numbers:
        yield (x, number), {}
        yield (number, x), {}
    yield (x, onp.dtype(dtype).type(2)), {}
    yield (x, onp.array(2, dtype)), {}
    yield (x, onp.float64(0.3)), {}
    for other in ("float64", "int32", "bool"):
        yield (x, spread(other, 4, 4, seed=2)), {}


def choice(dtype: str) -> Iterator[Case]:
    e = edges(dtype)
    yield (onp.arange(e.size) % 2 == 0, e, e[::-1].copy()), {}
    for c, a, b in (((3, 4), (3, 4), (3, 4)), ((3, 1), (4,), ()), ((), (3,), (3,)), ((2, 1, 3), (2, 1), (1,))):
        yield (spread("bool", *c), spread(dtype, *a), spread(dtype, *b, seed=1)), {}
    yield (spread("bool", 3, 4), spread(dtype, 3, 4), 2), {}
    yield (spread("int32", 3), spread(dtype, 3), spread(dtype, 3, seed=1)), {}


def with_attributes(name: str, dtype: str) -> Iterator[Case]:
    settings = {
        "round": [{}, {"decimals": 2}, {"decimals": -1}],
        "nan_to_num": [{}, {"nan": 3.0}, {"posinf": 7.0, "neginf": -7.0}],
        "npx.leaky_relu": [{}, {"slope": 0.1}],
        "npx.elu": [{}, {"alpha": 0.7}],
        "npx.smooth_l1": [{}, {"scalar": 0.8}, {"scalar": 2.0}],
    }.get(name, [{}])
    for params in settings:
        yield from ((values, params) for values, _ in (activation if name.startswith("npx.") else unary)(dtype))


def moments(dtype: str) -> Iterator[Case]:
    # equal values have the variance 0 in MXNet, and NumPy's rounding error in NumPy
    yield from ((values, params) for values, params in reductions(dtype) if values[0].shape != (2, 200_000))
    yield from (((spread(dtype, 4, 5),), {"axis": axis, "ddof": ddof}) for axis in (None, 0) for ddof in (1, 2))
    yield (spread(dtype, 1, 5),), {"axis": 0, "ddof": 1}  # no degree of freedom left
    yield (spread(dtype, 1000) + onp.ones((), dtype),), {}


def differences(dtype: str) -> Iterator[Case]:
    for shape, params in (((5,), {}), ((3, 4), {"axis": 0}), ((3, 4), {"n": 2}), ((2, 3, 5), {"n": 3, "axis": -1})):
        yield (spread(dtype, *shape),), params
    yield (edges(dtype),), {}
    yield (spread(dtype, 3),), {"n": 4}


def sums_of_products(dtype: str) -> Iterator[Case]:
    for subscripts, *shapes_ in (
        ("ij,jk->ik", (2, 3), (3, 4)), ("ij->ji", (2, 3)), ("ij->i", (2, 3)), ("ii->i", (3, 3)), ("i,i->", (3,), (3,)),
        ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("i,j->ij", (3,), (4,)), ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
        ("ab,abc->c", (2, 3), (2, 3, 4)), ("...i,i->...", (2, 3), (3,)), ("i j, j k -> k i", (2, 3), (3, 4)),
    ):  # fmt: skip
        yield tuple(spread(dtype, *shape, seed=i) for i, shape in enumerate(shapes_)), {"subscripts": subscripts}


def systems(dtype: str) -> Iterator[Case]:
    for a, b in (
        ((3, 3), (3,)),
        ((2, 3, 3), (2, 3, 2)),
        ((3, 3), (3, 2)),
        ((3, 3), (2, 3, 2)),
        ((1, 1), (1,)),
        ((9, 9), (9, 4)),
    ):
        matrix = (spread("float64", *a) + 5 * onp.eye(a[-1])).astype(dtype)
        yield (matrix, spread(dtype, *b)), {}
    yield (onp.zeros((2, 2), dtype), spread(dtype, 2)), {}


AXES = ({}, {"axis": 0}, {"axis": -1}, {"axis": 1, "keepdims": True}, {"keepdims": True})


def reductions(dtype: str, several: bool = True) -> Iterator[Case]:
    for params in AXES + (({"axis": (0, 2)}, {"axis": (-1, 0), "keepdims": True}) if several else ()):
        yield (spread(dtype, 2, 3, 4),), params
        yield (spread(dtype, 1, 3, 1),), params
        for x in layouts(spread(dtype, 2, 3, 4)):
            yield (x,), params
    for shape, params in (((5,), {"axis": 0}), ((), {}), ((1,), {}), ((3, 2, 3, 2, 3, 2, 2), {"axis": 3})):
        yield (spread(dtype, *shape),), params
    rows = onp.stack([onp.roll(edges(dtype), i) for i in range(edges(dtype).size)])
    yield (onp.tril(rows),), {"axis": 1}  # every edge value among every other, and long runs of zeros
    yield (rows[:, :3],), {"axis": 1}
    yield (onp.full((2, 200_000), 0.1).astype(dtype),), {"axis": 1}  # accumulated error
    yield (spread(dtype, 300_001),), {}


def scans(dtype: str) -> Iterator[Case]:
    yield from ((values, params) for values, params in reductions(dtype, False) if "keepdims" not in params)


def shapes(name: str) -> list[tuple[tuple[int, ...], dict]]:
    """(shape, params) for the functions that move elements."""
    return {
        "copy": [((2, 3), {}), ((), {}), ((1,), {})],
        "reshape": [
            ((2, 6), {"shape": (3, -1)}), ((2, 3, 2), {"shape": 12}), ((1,), {"shape": ()}), ((), {"shape": (1, 1)}),
        ],
        "transpose": [((2, 3), {}), ((2, 3, 4), {"axes": (1, -1, 0)}), ((3,), {}), ((2, 1, 2, 3, 2), {})],
        "swapaxes": [((2, 3, 4), {"axis1": 0, "axis2": -1}), ((2, 3), {"axis1": 1, "axis2": 1})],
        "expand_dims": [((2, 3), {"axis": 1}), ((2, 3), {"axis": (0, -1)}), ((), {"axis": 0})],
        "squeeze": [((1, 3, 1), {}), ((1, 3, 1), {"axis": -1}), ((1, 1), {})],
        "broadcast_to": [((3, 1), {"shape": (2, 3, 4)}), ((), {"shape": (3,)}), ((3,), {"shape": (3,)})],
        "flip": [((2, 3), {}), ((2, 3), {"axis": 1}), ((2, 3, 4), {"axis": (0, -1)})],
        "repeat": [((2, 3), {"repeats": 2}), ((2, 3), {"repeats": 3, "axis": 1}), ((3,), {"repeats": 1})],
        "roll": [
            ((2, 3), {"shift": 2}), ((2, 3), {"shift": (1, -1), "axis": (0, 1)}), ((5,), {"shift": -7}),
            ((2, 3), {"shift": 4, "axis": 1}), ((2, 3), {"shift": 1, "axis": (0, 1)}), ((2, 3), {"shift": 0}),
        ],
        "tril": [((4, 4), {}), ((3, 5), {"k": 1}), ((2, 3, 3), {"k": -1}), ((5, 3), {"k": 9}), ((3, 3), {"k": -9})],
        "triu": [((4, 4), {}), ((3, 5), {"k": 1}), ((2, 3, 3), {"k": -1})],
        "astype": [((2, 3), {"dtype": onp.dtype(d)}) for d in ("float32", "float64", "int32")],
        "sum_to": [
            ((2, 3), {"shape": (3,)}), ((4, 2, 3), {"shape": (2, 1)}), ((2, 3), {"shape": ()}),
            ((2, 3), {"shape": (2, 3)}), ((2, 3), {"shape": (1, 1)}), ((5,), {"shape": ()}),
        ],
    }.get(name, [])  # fmt: skip


def moved(name: str, dtype: str) -> Iterator[Case]:
    for shape, params in shapes(name):
        yield (spread(dtype, *shape),), params
        e = edges(dtype)
        yield (onp.resize(e, shape),), params
        if len(shape) > 1 and shape[0] == shape[1]:
            for x in layouts(spread(dtype, *shape)):
                yield (x,), params


def joined(name: str, dtype: str) -> Iterator[Case]:
    for shape, axis in (((2, 3), 0), ((2, 3), -1), ((4,), 0), ((2, 1, 3), 1)):
        yield tuple(spread(dtype, *shape, seed=i) for i in range(3)), {"axis": axis}
    yield (edges(dtype),), {}
    yield tuple(layouts(spread(dtype, 3, 3))), {}
    yield (spread(dtype, 2, 3), spread("float64", 2, 3)), {}
    if name == "concatenate":
        yield (spread(dtype, 2, 3), spread(dtype, 2, 1)), {"axis": 1}
        yield (spread(dtype, 2, 3), spread(dtype, 1, 4)), {"axis": 1}  # an error, of NumPy's own type
    else:
        yield (1.5, spread(dtype)), {}


def products(dtype: str) -> Iterator[Case]:
    pairs = [
        ((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((3,), (4, 3, 2)), ((4, 2, 3), (3,)),
        ((4, 2, 3), (3, 2)), ((2, 3), (4, 3, 2)), ((5, 1, 2, 3), (4, 3, 2)), ((1, 1), (1, 1)), ((65, 33), (33, 17)),
        ((2, 3), (2, 3)), ((), (3,)),
    ]  # fmt: skip
    for a, b in pairs:
        yield (spread(dtype, *a), spread(dtype, *b, seed=1)), {}
    for x in layouts(spread(dtype, 4, 4)):
        yield (x, spread(dtype, 4, 4, seed=1)), {}
        yield (spread(dtype, 4, 4, seed=1), x), {}
    yield (spread(dtype, 4, 3), spread("float64", 3, 2)), {}
    if onp.dtype(dtype).kind == "f":
        x = spread(dtype, 3, 3)
        x[1, 1] = onp.nan
        yield (x, spread(dtype, 3, 3, seed=1)), {}


def matrices(dtype: str) -> Iterator[Case]:
    for shape in ((1, 1), (3, 3), (2, 3, 3), (20, 20), (2, 2, 4, 4), (2, 3)):
        x = (spread("float64", *shape) + 5 * onp.eye(*shape[-2:])).astype(dtype)  # well away from singular
        yield (x,), {}
        if shape[-1] == shape[-2]:
            positive = (x @ x.swapaxes(-1, -2) + onp.eye(shape[-1])).astype(dtype)
            yield (positive,), {}
            yield from (((view,), {}) for view in layouts(positive))
    yield (onp.zeros((3, 3), dtype),), {}  # singular: NumPy raises
    yield ((-onp.eye(3)).astype(dtype),), {}  # not positive definite


FAMILIES = {
    **dict.fromkeys(elementwise.UNARY, unary),
    **{name: activation for name in elementwise.UNARY if name.startswith("npx.")},
    **dict.fromkeys(elementwise.BINARY, binary),
    **dict.fromkeys(("sum", "mean", "prod", "max", "min", "any", "all"), reductions),
    **dict.fromkeys(("argmax", "argmin"), lambda dtype: reductions(dtype, several=False)),
    **dict.fromkeys(("linalg.inv", "linalg.det", "linalg.cholesky"), matrices),
    **dict.fromkeys(("var", "std"), moments),
    "diff": differences,
    "einsum": sums_of_products,
    "linalg.solve": systems,
    "where": choice,
    "cumsum": scans,
    "matmul": products,
}
NAMED_FAMILIES = {
    **dict.fromkeys(("round", "nan_to_num"), with_attributes),
    **{f"npx.{n}": with_attributes for n in ("leaky_relu", "elu", "gelu", "softplus", "smooth_l1")},
    **dict.fromkeys(("concatenate", "stack"), joined),
}


def cases(name: str, dtype: str) -> Iterator[Case]:
    """Every (values, params) on which the row's kernel must agree with NumPy for arrays of this dtype."""
    if name in neural_cases.FAMILIES:
        return neural_cases.FAMILIES[name](name, dtype)
    if name in FAMILIES:
        return FAMILIES[name](dtype)
    return NAMED_FAMILIES.get(name, moved)(name, dtype)
