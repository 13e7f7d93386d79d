"""Renew the list of kernels that agree with NumPy: `python -m minnp verify mxnet [name ...] [--check]`.

For every row MXNet has an operator for, and every dtype, the kernel is run beside the row's NumPy kernel on the
arguments of cases.py. It is listed for a dtype when no result differs in value, dtype, shape or type, and no exception
in kind, and when it ran at least once: a kernel that refuses (and so leaves the call to NumPy) is right, but no use.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as onp

import minnp.npx
import minnp.numpy  # noqa: F401  (both fill the table)

from ...core.rows.primitive import TABLE
from ...errors import BackendUnsupportedError
from . import VERIFIED, MXNetBackend, cases
from .samples import DTYPES

# Sums and products may round differently; elementwise functions only in the last bits, and never in the sign of zero.
LAST_BITS, ROUNDING = 8, 64
ROUNDS = ("sum", "mean", "prod", "cumsum", "sum_to", "diff", "var", "std", "einsum", "matmul", "linalg.", "npx.")

ANY_ZERO = ("max", "min")  # which of 0.0 and -0.0 is the smaller, NumPy leaves to the processor


def rounds(name: str) -> bool:
    return name.startswith(ROUNDS)


def difference(name: str, expected: Any, got: Any) -> str:
    """What differs between NumPy's result and a kernel's, or an empty text."""
    if isinstance(expected, tuple):
        if not isinstance(got, tuple) or len(got) != len(expected):
            return f"{type(got).__name__}, expected {len(expected)} results"
        return next(filter(None, (difference(name, e, g) for e, g in zip(expected, got, strict=True))), "")
    if isinstance(expected, onp.ndarray) != isinstance(got, onp.ndarray):
        return f"a {type(got).__name__}, expected a {type(expected).__name__}"
    if onp.shape(got) != onp.shape(expected):
        return f"shape {onp.shape(got)}, expected {onp.shape(expected)}"
    if got.dtype != expected.dtype:
        return f"dtype {got.dtype}, expected {expected.dtype}"
    if expected.dtype.kind != "f":
        same = got == expected
    else:
        eps = onp.finfo(expected.dtype).eps
        ulps = ROUNDING if rounds(name) else LAST_BITS
        # a sum is as wrong as its largest result allows, a logarithm of one as wrong as 1 is
        largest = onp.max(onp.abs(expected), initial=name == "npx.log_softmax", where=onp.isfinite(expected))
        slack = ulps * eps * float(largest) * rounds(name)
        same = onp.isclose(got, expected, rtol=ulps * eps, atol=slack, equal_nan=True)
        if not rounds(name) and name not in ANY_ZERO:
            same &= (onp.signbit(got) == onp.signbit(expected)) | onp.isnan(expected)
    if onp.all(same):
        return ""
    at = tuple(int(i[0]) for i in onp.nonzero(~onp.atleast_1d(same)))
    return f"{onp.atleast_1d(got)[at]!r}, expected {onp.atleast_1d(expected)[at]!r} at {at}"


def outcome(function: Any, values: tuple, params: dict) -> tuple[Any, BaseException | None]:
    """(result, None) or (None, exception)."""
    try:
        with warnings.catch_warnings(), onp.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return function(*values, **params), None
    except (ValueError, TypeError, ArithmeticError, LookupError, BackendUnsupportedError) as error:
        return None, error


def described(values: tuple, params: dict) -> str:
    shown = [f"{v.dtype}{list(v.shape)}" if isinstance(v, onp.ndarray) else f"{type(v).__name__} {v}" for v in values]
    return f"({', '.join(shown + [f'{k}={v}' for k, v in params.items()])})"


def examine(name: str, kernel: Any, dtype: str) -> tuple[str, int]:
    """(the first disagreement or an empty text, how many cases the kernel ran)."""
    ran = 0
    reference = TABLE[name].numpy
    for values, params in cases.cases(name, dtype):
        before = [v.copy() if isinstance(v, onp.ndarray) else v for v in values]
        got, refused = outcome(kernel, values, params)
        for value, copy in zip(values, before, strict=True):
            if isinstance(value, onp.ndarray) and not onp.array_equal(value, copy, equal_nan=copy.dtype.kind == "f"):
                return f"{described(values, params)}: an argument was written to", ran
        if refused is not None and not str(refused).startswith("MXNet:"):
            continue
        expected, error = outcome(reference, values, params)
        if refused is not None and error is not None:
            continue
        if refused is not None:  # by the operator itself, of which a device hears after the results are used
            return f"{described(values, params)}: {refused}", ran
        if error is not None:
            return f"{described(values, params)}: NumPy raises {type(error).__name__}", ran
        with onp.errstate(all="ignore"):
            wrong = difference(name, expected, got)
        if wrong:
            return f"{described(values, params)}: {wrong}", ran
        ran += 1
    return "", ran


def verify(names: Iterable[str] | None = None) -> tuple[dict[str, list[str]], dict[str, str]]:
    """(row name -> dtypes that agree, "name dtype" -> the first disagreement)."""
    backend = MXNetBackend()
    listed: dict[str, list[str]] = {}
    wrong: dict[str, str] = {}
    for name in sorted(names or backend.lowerings()):
        if name not in TABLE:
            continue
        for dtype in DTYPES:
            found, ran = examine(name, backend.unverified(name, [dtype]), dtype)
            if found:
                wrong[f"{name} {dtype}"] = found
            elif ran:
                listed.setdefault(name, []).append(dtype)
    return listed, wrong


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m minnp verify mxnet", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="*", help="rows to examine; all without")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the list would change")
    arguments = parser.parse_args(argv)
    stored = json.loads(VERIFIED.read_text()) if VERIFIED.exists() else {}
    listed, wrong = verify(arguments.name)
    for case, found in wrong.items():
        print(f"{case:28} {found}")
    kept = {name: dtypes for name, dtypes in stored.items() if arguments.name and name not in arguments.name}
    renewed = dict(sorted({**kept, **listed}.items()))
    changed = [name for name in sorted({*stored, *renewed}) if stored.get(name) != renewed.get(name)]
    for name in changed:
        print(f"{name}: {stored.get(name, 'not listed')} -> {renewed.get(name, 'not listed')}")
    print(f"{len(renewed)} rows listed, {len(changed)} changed")
    if arguments.check:
        return int(bool(changed))
    VERIFIED.write_text("{\n" + ",\n".join(f"  {json.dumps(n)}: {json.dumps(d)}" for n, d in renewed.items()) + "\n}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
