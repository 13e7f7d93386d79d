"""Renew the list of kernels that agree with NumPy: `python -m minnp verify torch [name ...] [--check] [--narrow]`.

The differential test of torch's kernels: edge values, dtypes, shapes and layouts against NumPy. A kernel is listed for
a dtype when no result differs, with this torch, this NumPy and on this processor (or --device cuda).
"""

from __future__ import annotations

import argparse
import importlib
import json
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as onp

words = str.split
DTYPES = "?bhilBHILefdFD"
NAMESPACES = words("numpy numpy.linalg numpy.fft npx")
# Rows of quantised arrays: the dtypes of these, and of nothing else among the arguments.
QUANTISED = {"npx.quantize": "fd", "npx.dequantize": "bB", "npx.quantized_linear": "B", "npx.quantized_conv": "B"}


# ------------------------------------------------------------------ values
def edges(dtype: Any) -> onp.ndarray:
    """The values of a dtype where implementations part: zeros, ends of the range, halves, infinities, NaN."""
    dtype = onp.dtype(dtype)
    if dtype.kind == "b":
        return onp.array([False, True])
    if dtype.kind in "iu":
        info = onp.iinfo(dtype)
        near = [0, 1, 2, 3, 5, 7, 8, 15, 31, 63, 64, 100, info.max - 1, info.max]
        below = [-1, -2, -3, -7, info.min + 1, info.min] if dtype.kind == "i" else []
        return onp.array([v for v in near + below if v <= info.max], dtype)
    if dtype.kind == "f":
        info = onp.finfo(dtype)
        plain = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 7.0, 10.0, 0.1, 1e-3, 100.5, onp.pi, 1e4]
        ends = [float(info.max), float(info.tiny), float(info.smallest_subnormal), float(info.eps), onp.inf, onp.nan]
        both = onp.array(plain + ends, dtype)
        return onp.concatenate([both, -both])
    part = onp.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, 30.0, onp.inf, -onp.inf, onp.nan])
    grid = onp.empty((part.size, part.size), dtype)
    grid.real, grid.imag = part[:, None], part[None, :]
    return grid.ravel()


def some(shape: tuple, dtype: Any, seed: int = 0) -> onp.ndarray:
    """Seeded values without surprises, small enough for every dtype."""
    dtype, rng = onp.dtype(dtype), onp.random.RandomState(seed)
    if dtype.kind == "b":
        return rng.rand(*shape) > 0.5
    if dtype.kind in "iu":
        return onp.asarray(rng.randint(0 if dtype.kind == "u" else -9, 9, shape)).astype(dtype)
    x = onp.asarray(rng.uniform(-3, 3, shape))
    return (x + 1j * rng.uniform(-3, 3, shape)).astype(dtype) if dtype.kind == "c" else x.astype(dtype)


def layouts(x: onp.ndarray) -> Iterator[onp.ndarray]:
    """The same values contiguous, transposed, strided, reversed, empty, broadcast and 0-d."""
    yield from (x, x.T, x[::2, 1:], x[::-1], x[:0], onp.broadcast_to(x[:1], x.shape), onp.array(x[1, 1]))


def retyped(x: Any, dtype: onp.dtype) -> Any:
    """A row's sample argument in another dtype: inexact arrays change, indices and masks stay."""
    if not isinstance(x, onp.ndarray) or x.dtype.kind not in "fc":
        return x
    if dtype.kind == "c":
        return x.astype(dtype)
    real = x.real
    if dtype.kind in "iu":
        real = onp.round(real * 3)
        return (abs(real) if dtype.kind == "u" else real).astype(dtype)
    return (real > 0) if dtype.kind == "b" else real.astype(dtype)


# ------------------------------------------------------------------ comparison
def disagreement(got: Any, want: Any, ulps: float = 0, signs: bool = True, scale: Any = None) -> str:
    """Empty if got is want in type, shape, dtype and value, else the first difference in words.

    ulps    how many units in the last place (of `scale`, by default of each value) may lie between them
    signs   whether the signs of zeros count
    """
    if isinstance(want, (tuple, list)):
        if not isinstance(got, (tuple, list)) or len(got) != len(want):
            return f"{len(want)} results expected, not {got!r}"
        return next((d for g, w in zip(got, want, strict=True) if (d := disagreement(g, w, ulps, signs, scale))), "")
    want = onp.asarray(want)
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)} where NumPy has {want.dtype}{list(want.shape)}"
    if want.dtype.kind == "c":
        scale = onp.abs(want) if scale is None else scale
        return disagreement(got.real, want.real, ulps, signs, scale) or disagreement(
            got.imag, want.imag, ulps, signs, scale
        )
    with onp.errstate(all="ignore"):
        bad = onp.asarray(got != want)
        if want.dtype.kind == "f":
            bad = bad & ~(onp.isnan(got) & onp.isnan(want))
            size = onp.abs(want if scale is None else scale).astype(want.dtype)
            unit = onp.spacing(onp.where(onp.isfinite(size), size, want.dtype.type(1)).astype(want.dtype))
            near = onp.isfinite(got) & onp.isfinite(want) & (onp.abs(got - want) <= ulps * unit)
            bad = bad & ~near
            if signs:
                bad = bad | ((want == 0) & (got == 0) & (onp.signbit(got) != onp.signbit(want)))
    if not bad.any():
        return ""
    at = tuple(int(i[0]) for i in onp.nonzero(bad)) if bad.ndim else ()
    return f"{got[at]!r} where NumPy has {want[at]!r}, at {at} ({int(bad.sum())} of {bad.size})"


def largest(x: Any) -> Any:
    finite = onp.abs(onp.asarray(x))
    finite = finite[onp.isfinite(finite)]
    return finite.max() if finite.size else 1


# ------------------------------------------------------------------ ufuncs
ROUNDED = set(
    words(
        "exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan sinh cosh tanh "
        "arcsin arccos arctan arcsinh arccosh arctanh arctan2 hypot logaddexp logaddexp2 power float_power "
        "degrees rad2deg radians deg2rad"
    )
)  # the others are exact; NumPy's own functions are off by up to 4 units in the last place
# the signs of zero results depend on NumPy's CPU kernels
UNSIGNED_ZEROS = set(words("maximum minimum fmax fmin matmul vecdot matvec vecmat"))
SCALARS = {"b": (True,), "i": (1, 3, -2), "u": (1, 3), "f": (0.25, 2.0, -1.0), "c": (1j, 2, 3.0)}


def ufunc_cases(name: str, chars: str) -> Iterator[tuple]:
    """Argument tuples for one loop of a ufunc."""
    if name in ("matmul", "vecdot", "matvec", "vecmat"):
        yield from product_cases(name, chars)
        return
    values = [edges(c) for c in chars]
    if len(chars) == 1:
        yield (values[0],)
        yield from ((x,) for x in layouts(some((5, 6), chars)))
        return
    yield onp.repeat(values[0], values[1].size), onp.tile(values[1], values[0].size)
    yield from zip(layouts(some((5, 6), chars[0])), layouts(some((5, 6), chars[1], 1)), strict=True)
    yield some((5, 1), chars[0]), some((6,), chars[1])
    yield some((3, 2), chars[0]), some((1,), chars[1])[0]
    for v in SCALARS[onp.dtype(chars[1]).kind]:
        yield values[0], v
        yield v, values[1]


def product_cases(name: str, chars: str) -> Iterator[tuple]:
    shapes = {
        "matmul": [
            ((2, 3), (3, 4)),
            ((3,), (3,)),
            ((3,), (4, 3, 2)),
            ((4, 2, 3), (3,)),
            ((5, 1, 2, 3), (4, 3, 2)),
            ((2, 0), (0, 3)),
            ((64, 300), (300, 7)),
        ],
        "vecdot": [((3,), (3,)), ((4, 3), (3,)), ((2, 1, 5), (4, 5))],
        "matvec": [((2, 3), (3,)), ((4, 2, 3), (4, 3))],
        "vecmat": [((3,), (3, 2)), ((4, 3), (4, 3, 2))],
    }[name]
    for i, (a, b) in enumerate(shapes):
        yield some(a, chars[0], i), some(b, chars[1], i + 20)
    yield some((3, 4), chars[0]).T, some((3, 5), chars[1], 1)[:, ::-1] if name == "matmul" else some((3,), chars[1])


def agree_ufunc(run: Callable, name: str, chars: str) -> str:
    ufunc = getattr(onp, name)
    rounded = name in ROUNDED or chars[0] in "FD"
    for args in ufunc_cases(name, chars):
        with onp.errstate(all="ignore"):
            try:
                want = ufunc(*args)
            except (TypeError, ValueError, OverflowError):
                continue
        got = run(name, args, {})
        if got is None:
            continue
        product = ufunc.signature is not None
        scale = 8 * largest(want) if product and onp.size(want) else None
        difference = disagreement(got, want, 4 if rounded or product else 0, name not in UNSIGNED_ZEROS, scale)
        if difference:
            return difference
    return ""


# ------------------------------------------------------------------ every other row
def close(ulps: float) -> Callable:
    """Values within that many units in the last place of the largest of them: sums in another order."""
    return lambda got, want, args: (
        disagreement(got, want, ulps, False, None if isinstance(want, (tuple, list)) else largest(want))
        if not isinstance(want, (tuple, list))
        else next((d for g, w in zip(got, want, strict=True) if (d := disagreement(g, w, ulps, False, largest(w)))), "")
    )


def exact(got: Any, want: Any, args: Any) -> str:
    return disagreement(got, want)


def _dot(*factors: Any) -> onp.ndarray:
    out = factors[0]
    for f in factors[1:]:
        out = out @ f
    return out


def factors(rebuild: Callable) -> Callable:
    """Factorisations are free in signs and phases: shapes and dtypes must agree, and the factors multiply to x."""

    def check(got: Any, want: Any, args: Any) -> str:
        got, want = (v if isinstance(v, (tuple, list)) else (v,) for v in (got, want))
        for g, w in zip(got, want, strict=True):
            if g.dtype != w.dtype or g.shape != w.shape:
                return f"{g.dtype}{list(g.shape)} where NumPy has {w.dtype}{list(w.shape)}"
        return close(5000)(rebuild(*got, args[0]), rebuild(*want, args[0]), args)

    return check


def _rebuilt_svd(u: Any, s: Any, vh: Any, x: Any) -> Any:
    k = s.shape[-1]
    return (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]


def _power_sums(w: Any, x: Any) -> Any:
    return onp.stack([(w**k).sum(-1) for k in (1, 2, 3)], -1)


CHECKS: dict[str, Callable] = {
    "sort": close(0),  # the order of 0.0 and -0.0 is left open
    "argpartition": lambda got, want, args: disagreement(
        *(onp.take_along_axis(args[0], i, -1)[..., 2] for i in (got, want))
    ),
    "partition": lambda got, want, args: exact(onp.sort(got, None), onp.sort(want, None), args),
    "linalg.eigh": factors(lambda w, v, x: (v * w[..., None, :]) @ v.conj().swapaxes(-1, -2)),
    "linalg.eig": factors(lambda w, v, x: 1 + x @ v - v * w[..., None, :]),
    "linalg.eigvals": factors(_power_sums),
    "linalg.svd": factors(_rebuilt_svd),
    "linalg.qr": factors(lambda *v: abs(v[0]) if len(v) == 2 else v[0] @ v[1]),
    **{
        f"linalg.{n}": close(3000)
        for n in words("inv det slogdet cholesky eigvalsh svdvals cofactor solve norm pinv lstsq")
    },
    **{n: close(16) for n in words("sum mean var std cumsum cumprod prod logsumexp einsum convolve sinc sum_to i0")},
    **{n: close(16) for n in words("index_add take_add add_along_axis strided_add nan_to_num angle")},
}
for _n in words("fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn"):
    CHECKS[f"fft.{_n}"] = close(32)


def _folds(dtype: Any) -> list:
    x = some((4, 5, 3), dtype)
    cases = [{}, {"axis": 1}, {"axis": -1}, {"axis": (0, 2), "keepdims": True}, {"axis": ()}]
    out = [((a,), p) for a in (x, x.T, x[::2, ::-1]) for p in cases]
    e = edges(dtype)
    out += [((e[:1],), {}), ((onp.array(e[1]),), {}), ((x[:0],), {}), ((x[:0],), {"axis": 1})]
    return out + (
        [((onp.array([1, onp.nan, 3, onp.nan], dtype),), {})] if onp.dtype(dtype).kind in "fc" else [((e,), {})]
    )


def _ordered(dtype: Any) -> list:
    e = edges(dtype)
    e = e[onp.random.RandomState(3).permutation(e.size)]
    x = some((4, 7), dtype)
    return [((a,), {"axis": d}) for a in (e, x, x.T, x[:, ::-2], x[:0]) for d in (0, -1, None)]


def _moves(dtype: Any) -> list:
    return [((a,), {}) for a in layouts(some((5, 6), dtype))]


def _indices(dtype: Any) -> list:
    x = some((5, 4, 3), dtype)
    rows, mask = onp.array([0, -1, 2, 2]), onp.arange(5) % 2 == 0
    whole, back = slice(None), slice(None, None, -1)
    indices = [
        0, -1, back, slice(4, 0, -3), (slice(0, 0),), ..., None, (..., 1), (1, ..., None, slice(None, None, -2)),
        (slice(3, 1),), rows, rows[::2].astype("u1"), rows.tolist(), [], mask, mask.tolist(), (rows, 1),
        (0, whole, onp.array([1, 2])), (rows[:, None], onp.array([0, 1])), (whole, rows[:2], back),
        (rows, whole, onp.array([0, 1, 2, 0])), (mask, back, 1), x.real > 0 if x.dtype.kind == "c" else x > 0,
        (whole, onp.array([[True] * 3] * 4)), (onp.int64(2), onp.array(1)), (None, rows, None),
        (slice(-100, 100, 2), slice(-2, None)), onp.zeros((0, 5, 4, 3), int)[..., 0, 0],
        (back, rows[:3], onp.array([0, 1, 1])), (..., onp.array([2, 0])),
    ]  # fmt: skip
    return [((a,), {"index": i}) for i in indices for a in (x, x[::-1])]


def _writes(dtype: Any) -> list:
    cases = []
    for (x,), params in _indices(dtype):
        shape = x[params["index"]].shape
        cases += [((x, some(shape, dtype, 5)), params), ((x, 1), params)]
    return cases


def _scatters(dtype: Any) -> list:
    out = []
    for (x,), params in _indices(dtype):
        out.append(((some(x[params["index"]].shape, dtype, 4),), {"shape": x.shape, "index": params["index"]}))
    return out


def _takes(dtype: Any) -> list:
    x = some((5, 4, 3), dtype)
    idx = onp.array([[0, 2], [-1, 1]])
    out = [((x, idx), {"axis": a}) for a in (0, 1, -1, None)] + [((x, onp.array(1)), {"axis": 1}), ((x, [0, 1]), {})]
    return out + [((x, idx * 5), {"axis": 0, "mode": m}) for m in ("wrap", "clip")]


def _values_of(dtype: Any) -> list:
    return [((edges(dtype),), {})] + _moves(dtype)


def _where(dtype: Any) -> list:
    e = edges(dtype)
    return [
        ((onp.arange(e.size) % 2 == 0, e, e[::-1]), {}),
        ((some((5, 1), "?"), some((3,), dtype), some((5, 3), dtype)), {}),
        ((some((4,), "?"), e[0], some((4,), dtype)), {}),
    ]


def _clip(dtype: Any) -> list:
    e, (low, high) = edges(dtype), some((2,), dtype)
    return [
        ((e, 1, 3), {}),
        ((e, low, high), {}),
        ((e, None, 3), {}),
        ((some((3, 4), dtype), some((4,), dtype), some((4,), dtype, 2)), {}),
    ]


def _pairs(dtype: Any) -> list:
    e = edges(dtype)
    return [
        ((e, e), {}),
        ((e, e[::-1]), {}),
        ((e, e), {"equal_nan": True}),
        ((some((3, 4), dtype), some((4,), dtype)), {}),
    ]


def _search(dtype: Any) -> list:
    a = onp.sort(edges(dtype))
    return [((a, edges(dtype)), {"side": s}) for s in ("left", "right")]


def _digitize(dtype: Any) -> list:
    x, bins = some((20,), dtype), onp.sort(some((6,), dtype, 1))
    return [((x, b), {"right": r}) for b in (bins, bins[::-1]) for r in (False, True)]


def _astype(dtype: Any) -> list:
    x = some((4, 3), dtype)
    x = abs(x) if x.dtype.kind in "if" else x
    return [((x,), {"dtype": onp.dtype(c)}) for c in DTYPES if not (x.dtype.kind == "c" and c not in "FD")]


def _joins(dtype: Any) -> list:
    a, b = some((3, 4), dtype), some((3, 4), dtype, 1)
    return [((a, b), {"axis": x}) for x in (0, 1, -1)] + [
        ((a.T, b.T[::-1]), {}),
        ((a, some((3, 4), "f")), {}),
        ((a, some((3, 4), "i")), {"axis": 1}),
    ]


CASES: dict[str, Callable] = {
    **dict.fromkeys(words("sum prod mean var std max min all any count_nonzero logsumexp ptp argmax argmin"), _folds),
    **dict.fromkeys(["sort", "argsort", "cumsum", "cumprod"], _ordered),
    **dict.fromkeys(words("transpose flip copy squeeze diagonal tril triu diff"), _moves),
    **dict.fromkeys(words("nan_to_num real imag angle round fix sinc nonzero flatnonzero argwhere"), _values_of),
    "getitem": _indices,
    "write_view": _writes,
    "index_add": _scatters,
    "take": _takes,
    "where": _where,
    "clip": _clip,
    "isclose": _pairs,
    "array_equal": _pairs,
    "searchsorted": _search,
    "digitize": _digitize,
    "astype": _astype,
    "concatenate": _joins,
    "stack": _joins,
}  # fmt: skip
STABLE = {"argsort": {"kind": "stable"}}
AXIS_ONLY_POSITIONS = ("argmax", "argmin")


def row_cases(row: Any, char: str) -> Iterator[tuple]:
    """(arrays, params) of one row in one dtype: the row's own samples retyped, and the cases of this file."""
    dtype = onp.dtype(char)
    for arrays, params in row.samples() if row.samples is not None else ():
        same = row.name in QUANTISED and dtype.kind != "f"
        yield tuple(a if same else retyped(a, dtype) for a in arrays), {**params, **STABLE.get(row.name, {})}
    for arrays, params in CASES[row.name](dtype) if row.name in CASES else ():
        if row.name in AXIS_ONLY_POSITIONS and isinstance(params.get("axis"), tuple):
            continue
        yield arrays, {**params, **STABLE.get(row.name, {})}


def subject(name: str) -> Any:
    """The row a kernel serves: of the table, or the gradient row of a fused one."""
    from minnp.core.rows.primitive import TABLE, Primitive

    if not name.endswith("_back"):
        return TABLE.get(name)
    forward = TABLE[name.removesuffix("_back")]
    cells = [c.cell_contents for c in forward.vjp.rule.__closure__]
    back = next(c for c in cells if isinstance(c, Primitive))
    main = next(c for c in cells if isinstance(c, int))

    def samples() -> list:
        cases = []
        for arrays, params in forward.samples():
            y = tuple(forward.numpy(*arrays, **params))
            for some_flow in [(True,) * main, (True, *(False,) * (main - 1))]:
                g = [onp.cos(3 * v) for v, flow in zip(y, some_flow) if flow]
                cases += [
                    (
                        (*g, *y, *arrays),
                        {**params, "layout": (some_flow, len(y), (first, *(True,) * (len(arrays) - 1)))},
                    )
                    for first in (True, False)
                ]
        return cases

    return Primitive(name, back.numpy, samples=samples)


def agree_row(run: Callable, row: Any, char: str) -> str:
    check, tried = CHECKS.get(row.name, close(64) if row.name.startswith("npx.") else exact), 0
    for arrays, params in row_cases(row, char):
        with onp.errstate(all="ignore"):
            try:
                want = row.numpy(*arrays, **params)
            except (TypeError, ValueError, IndexError, OverflowError, onp.linalg.LinAlgError, AttributeError):
                continue
            got = run(row.name, arrays, params)
            if got is None:
                continue
            tried += 1
            if isinstance(want, (tuple, list)):  # a gradient that is not wanted is None, or anything
                got = [g for g, w in zip(got, want, strict=True) if w is not None]
                want = [onp.asarray(w) for w in want if w is not None]
            else:
                want = onp.asarray(want)
            difference = check(got, want, arrays)
        if difference:
            shown = ", ".join(f"{onp.asarray(a).dtype}{list(onp.shape(a))}" for a in arrays)
            return f"({shown}; {params}): {difference}"
    return "" if tried else "nothing to compare"


# ------------------------------------------------------------------ the whole list
def runner(device: str) -> Callable:
    """run(name, values, params): the kernel's results as NumPy arrays, or None where it refuses."""
    import torch

    from minnp.errors import BackendUnsupportedError

    from . import dtypes, registry

    place = torch.device(device)

    def run(name: str, values: Any, params: dict) -> Any:
        if name not in registry.KERNELS:  # a ufunc of a newer NumPy
            return None
        data = [dtypes.from_host(v, place) if isinstance(v, onp.ndarray) else v for v in values]
        if not any(isinstance(v, torch.Tensor) for v in data):
            return None
        before = [v.clone() if isinstance(v, torch.Tensor) else None for v in data]
        try:
            out = registry.KERNELS[name](*data, **params)
        except BackendUnsupportedError:
            return None
        for v, b in zip(data, before, strict=True):
            assert b is None or same_bits(v, b), f"{name} wrote to its argument"
        if isinstance(out, (tuple, list)):
            return tuple([None if y is None else dtypes.to_host(y) for y in out])
        return dtypes.to_host(out)

    return run


def same_bits(a: Any, b: Any) -> bool:
    import torch

    return torch.equal(a.contiguous().view(-1).view(torch.uint8), b.contiguous().view(-1).view(torch.uint8))


def is_ufunc(name: str) -> bool:
    return isinstance(getattr(onp, name, None), onp.ufunc)


def loops(name: str) -> list[str]:
    """The operand dtypes to try for a kernel: a ufunc's own loops, or every dtype."""
    if not is_ufunc(name):
        return list(QUANTISED.get(name, DTYPES))
    chars = [t.split("->")[0].replace("q", "l").replace("Q", "L") for t in getattr(onp, name).types]
    return [c for c in dict.fromkeys(chars) if all(k in DTYPES for k in c)]


def loop_name(chars: str) -> str:
    tokens = [onp.dtype(c).str[1:] for c in chars]
    return tokens[0] if len(set(tokens)) == 1 else " ".join(tokens)


def survey(device: str, only: Any = None) -> Iterator[tuple[str, str, str]]:
    """(kernel, loop, disagreement or "") for every kernel and dtype."""
    from . import registry

    load_rows()
    from . import kernels  # noqa: F401

    run = runner(device)
    with registry.unverified(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in registry.KERNELS:
            if only and name not in only:
                continue
            if not is_ufunc(name) and subject(name) is None:
                continue
            for chars in loops(name):
                try:
                    found = agree_ufunc(run, name, chars) if is_ufunc(name) else agree_row(run, subject(name), chars)
                except (RuntimeError, IndexError) as error:  # what the dispatcher takes for a refusal
                    found = f"{type(error).__name__}: {str(error).splitlines()[0]}"
                yield name, loop_name(chars), found


def load_rows() -> None:
    for name in NAMESPACES:
        importlib.import_module(f"minnp.{name}")


def main(argv: list[str] | None = None) -> int:
    from . import registry

    parser = argparse.ArgumentParser(
        prog="python -m minnp verify torch", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="*", help="kernels to examine; all without")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the list would change")
    parser.add_argument("--narrow", action="store_true", help="take from the list what differs here; add nothing")
    parser.add_argument("--device", default="cpu", help="where the kernels run: cpu, cuda, ...")
    options = parser.parse_args(argv)
    load_rows()
    if unknown := [name for name in options.name if name not in registry.KERNELS]:
        parser.error(f"torch has no kernel for {', '.join(unknown)}")
    found: dict[str, list[str]] = {}
    for name, loop, wrong in survey(options.device, options.name):
        listed = found.setdefault(name, [])
        if wrong:
            print(f"{name:18} {loop:8} {wrong}")
        elif not options.narrow or loop in registry.VERIFIED.get(name, ()):
            listed.append(loop)
    stored = {name: sorted(loops) for name, loops in registry.VERIFIED.items()}
    # what was not examined stays: it may be another NumPy's
    renewed = {name: sorted(loops) for name, loops in sorted({**stored, **found}.items()) if loops}
    changed = [name for name in sorted({*stored, *renewed}) if stored.get(name) != renewed.get(name)]
    for name in changed:
        print(f"{name}: {stored.get(name, 'not listed')} -> {renewed.get(name, 'not listed')}")
    print(f"{len(found)} kernels examined, {len(renewed)} listed, {len(changed)} changed")
    if options.check:
        return int(bool(changed))
    lines = {name: ", ".join(loops) for name, loops in renewed.items()}
    registry.VERIFIED_FILE.write_text(json.dumps(lines, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
