"""Kernels by row name, and which dtypes of each are verified.

A kernel is entered with `ufunc_kernel` (one of NumPy's ufuncs: its loop dtypes are NumPy's) or with `kernel` (any other
row). Either refuses, before computing, dtypes that the differential test has not seen agree with NumPy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as onp
import torch

from .dtypes import (
    COMPLEX,
    EMPTY,
    FLOATS,
    LEGACY,
    PYTHON,
    SIGNED,
    TO_NUMPY,
    TO_TORCH,
    TOKEN,
    Tensor,
    cast,
    device_of,
    from_host,
    like_numpy,
    refuse,
    scalar,
    to_torch,
    weak_in_numpy_1,
)

KERNELS: dict[str, Callable] = {}
VERIFIED_FILE = Path(__file__).with_name("verified.json")
# row name -> the loops (operand dtypes, "f4" or "f4 i4") that agree with NumPy; written by the differential test
VERIFIED: dict[str, set[str]] = {
    name: set(loops.split(", ")) for name, loops in json.loads(VERIFIED_FILE.read_text()).items()
}
# loops of which torch 2.4 computes infinities, signs of zeros or the ends of the range otherwise, and some later one as
# NumPy: there they go to NumPy
OLDER = {name: {"c8", "c16"} for name in ("divide", "true_divide", "exp", "exp2", "arctan")}
OLDER |= {"power": {"f8"}, "float_power": {"f8"}, "log1p": {"f4", "f8"}}
if tuple(int(n) for n in torch.__version__.split(".")[:2]) < (2, 13):
    VERIFIED |= {name: VERIFIED[name] - loops for name, loops in OLDER.items()}
# what ufuncs run where their operands' dtypes are the result's: the same, written into the first operand
INTO: dict[Callable, Callable] = {
    torch.add: Tensor.add_, torch.sub: Tensor.sub_, torch.mul: Tensor.mul_, torch.div: Tensor.div_,
}  # fmt: skip
# ufuncs of which NumPy 1 takes the loop of the common dtype, where others' is the first that holds a number's value
UNIFORM = {"add", "subtract", "multiply", "divide", "true_divide", "maximum", "minimum", "fmax", "fmin"}
UNIFORM |= {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}
_forget: list[Callable] = []  # empties the prepared calls of each kernel
_trusting = False
QUICK = {*TO_NUMPY, *PYTHON}  # kinds that are their own key under NEP 50


@contextmanager
def unverified() -> Any:
    """Inside, every kernel runs whether or not it is on the verified list: for the test that writes the list."""
    global _trusting
    _trusting = True
    try:
        for clear in _forget:
            clear()
        yield
    finally:
        _trusting = False
        for clear in _forget:
            clear()


def loop_name(dtypes: Sequence[torch.dtype]) -> str:
    """ "f4" where all operands have one dtype, else "f4 i8"."""
    tokens = [TOKEN[d] for d in dtypes]
    return tokens[0] if len(set(tokens)) == 1 else " ".join(tokens)


def check_verified(name: str, dtypes: Sequence[torch.dtype]) -> None:
    if any(d not in TOKEN for d in dtypes):  # a NumPy scalar or 0-d array, which no tensor is made of
        refuse(f"torch's {name} takes arrays, not scalars")
    if not _trusting and loop_name(dtypes) not in VERIFIED.get(name, ()):
        refuse(f"torch's {name} is not verified for {loop_name(dtypes)}")


# ------------------------------------------------------------------ ufuncs
def ufunc_kernel(name: str, op: Callable, ufunc: onp.ufunc | None = None) -> None:
    """Enter `op(*tensors)` as the kernel of a NumPy ufunc.

    op gets tensors of the loop dtype NumPy chooses; its result is cast to the loop's result dtype where they differ.
    """
    ufunc = ufunc or getattr(onp, name, None)
    if ufunc is None:  # a newer NumPy's
        return
    plans: dict[tuple, Callable] = {}
    _forget.append(plans.clear)
    nin, nout = ufunc.nin, ufunc.nout

    def loop(kinds: tuple) -> tuple[Callable, tuple, list | None]:
        """(the function, the dtypes it takes, the dtypes its results are cast to or None) for operand kinds."""
        asked = [TO_NUMPY.get(k, k) for k in kinds]
        if LEGACY and name == "ldexp":
            asked = [onp.dtype(int) if k is int else k for k in asked]
        try:
            loop = ufunc.resolve_dtypes((*asked, *(None,) * nout))
            dtypes = [TO_TORCH[d] for d in loop]
        except (TypeError, KeyError):
            return refuse(f"{name} has no loop in torch for {', '.join(map(str, asked))}")
        ins, outs = tuple(dtypes[:nin]), dtypes[nin:]
        check_verified(name, ins)
        prepared = op.for_dtype(ins[0]) if hasattr(op, "for_dtype") else op
        ones = [torch.ones((1, 1), dtype=d) for d in ins]
        probe = prepared.by_number(ones[0], 2) if hasattr(prepared, "by_number") else prepared(*ones)
        results = probe if isinstance(probe, tuple) else (probe,)
        after = None if [r.dtype for r in results] == outs else outs
        return prepared, ins, after

    def remember(kinds: tuple) -> Callable:
        """The prepared call for operand kinds: torch dtypes, or Python's scalar types."""
        function, ins, after = loop(kinds)
        plans[kinds] = made = _prepared(function, kinds, ins, after)
        return made

    if nin == 1:

        def kernel(x: Any) -> Any:
            kind = (x.dtype,)
            try:
                return (plans.get(kind) or remember(kind))(x)
            except FAILURES as error:
                return failed(name, error)

    elif nin == 2:

        def kernel(x: Any, y: Any) -> Any:
            a = x.dtype if type(x) is Tensor else type(x)
            b = y.dtype if type(y) is Tensor else type(y)
            if a is not b and ((LEGACY and not _by_type(x, y)) or a not in QUICK or b not in QUICK):
                if LEGACY and name not in UNIFORM and not _small(x, y):
                    refuse(f"NumPy 1 looks for a loop of {name} by the number")
                a, b = kinds_of(x, y)
            kind = (a, b)
            try:
                return (plans.get(kind) or remember(kind))(x, y)
            except FAILURES as error:
                return failed(name, error)

    else:
        raise TypeError(f"{name}: a ufunc of {nin} arguments")

    kernel.loop = lambda *values: loop(kinds_of(*values))
    offer(kernel, lambda *values: plans.get(k := kinds_of(*values)) or remember(k), exact=not LEGACY)
    kernel.into = INTO
    KERNELS[name] = kernel


def offer(kernel: Callable, plan: Callable, exact: bool = True, short: Callable | None = None) -> None:
    """What lets a device skip some of a kernel's steps: see minnp.backends.Backend.kernel."""
    kernel.plan, kernel.short, kernel.exact, kernel.prepared = plan, short or plan, exact, {}
    _forget.append(kernel.prepared.clear)


def _prepared(op: Callable, kinds: tuple, ins: tuple, outs: list | None) -> Callable:
    """op with its operands cast to `ins` and its results to `outs`; op itself where nothing is to be cast."""
    if outs is None and (kinds == ins or (op is torch.mul and kinds == (ins[0], torch.bool))):
        return op  # a gradient times a mask: torch's kernels on a GPU convert it as they read it
    if outs is None and len(ins) == 2:
        first, second = ins
        if kinds[0] is first and kinds[1] in PYTHON:
            if kinds[1] in (int, float) and hasattr(op, "by_number"):
                return lambda x, y: (
                    op.by_number(x, y)
                    if type(y) in (int, float) and 1 <= y < 128
                    else op(x, scalar(y, second, x.device))
                )
            by_number = lambda x, y: op(x, scalar(y, second, x.device))
            if (into := INTO.get(op)) is not None:
                INTO[by_number] = lambda x, y: into(x, scalar(y, second, x.device))
            return by_number
        if kinds[1] is second and kinds[0] in PYTHON:
            return lambda x, y: op(scalar(x, first, y.device), y)

    def call(*values: Any) -> Any:
        device = device_of(values)
        y = op(*[cast(v, d, device) for v, d in zip(values, ins, strict=True)])
        if outs is None:
            return y
        if isinstance(y, tuple):
            return tuple([v.to(d) for v, d in zip(y, outs, strict=True)])
        return y.to(outs[0])

    return call


def kinds_of(*values: Any) -> tuple:
    """What the loop dtype depends on, per value: its torch dtype, the Python type of a weak scalar, or the NumPy dtype
    of a strong one (which is not a tensor yet, so its plan must cast it)."""
    if LEGACY and len({v.dtype if type(v) is Tensor else type(v) for v in values}) > 1:
        return legacy_kinds(values)
    return tuple([v.dtype if type(v) is Tensor else kind_of_scalar(v) for v in values])


def kind_of_scalar(v: Any) -> Any:
    if type(v) in PYTHON:
        return type(v)
    if isinstance(v, (onp.generic, onp.ndarray, bool)) and not getattr(v, "ndim", 0):  # no array of a user's class
        found = onp.asarray(v).dtype
        if found in TO_TORCH:
            return found
    return refuse(f"torch cannot hold a {type(v).__name__}")


def legacy_kinds(values: Sequence[Any]) -> tuple:
    """NumPy 1: scalars and 0-d arrays beside arrays promote by value, so all operands take the common dtype."""
    if all(v.ndim if type(v) is Tensor else weak_in_numpy_1(v) for v in values):
        return tuple([v.dtype if type(v) is Tensor else type(v) for v in values])
    for v in values:
        if type(v) is not Tensor and kind_of_scalar(v) is int and abs(v) >= 2**63:
            refuse("a Python integer beyond 64 bits")
    if any(v.ndim for v in values if type(v) is Tensor):
        found = onp.result_type(*map(like_numpy, values))
    else:  # of numbers alone only the dtypes count, and no device is waited for
        found = onp.result_type(*[EMPTY[v.dtype] if type(v) is Tensor else onp.asarray(v).dtype for v in values])
    if found not in TO_TORCH:
        refuse(f"torch has no dtype {found}")
    return (found,) * len(values)


def _small(x: Any, y: Any) -> bool:
    """Whether a number beside an array is such that NumPy 1 takes the loop of the common dtype: it looks for one by the
    number beside integers."""
    v, other = (x, y) if type(x) is int else (y, x)
    dtype = getattr(other, "dtype", None)
    return type(v) is not int or dtype in (*FLOATS, *COMPLEX) or (v <= 127 and (v >= 0 or dtype not in SIGNED))


def _by_type(x: Any, y: Any) -> bool:
    """Whether NumPy 1 promotes an array and a number as NumPy 2 does, by their types."""
    return x.ndim > 0 and weak_in_numpy_1(y) if type(x) is Tensor else y.ndim > 0 and weak_in_numpy_1(x)


# ------------------------------------------------------------------ every other row
def kernel(
    *names: str,
    dtypes_of: Callable | None = None,
    bits: bool = False,
    alike: Callable | None = None,
    direct: dict[torch.dtype, Callable] | None = None,
    listed: Callable | None = None,
) -> Callable:
    """Enter the decorated function, f(*values, **params), as the kernel of these rows.

    It is verified per dtype of its first argument (or of `dtypes_of(*values)`, a tuple of torch dtypes). `bits`: it
    moves elements without looking at them, so it runs unsigned integers as signed ones of the same width.
    alike(*values) is what runs instead of f where all values are tensors of one dtype torch computes in (a mask apart).
    direct: by dtype, what does f's work in a short call, where `axis` is a number or a tuple of some; or raises.
    listed(values, axis) does it where alike(*values) would, and no value is 0-d.
    """

    def enter(function: Callable) -> Callable:
        for name in names:
            KERNELS[name] = _guarded(name, function, dtypes_of, bits, alike, direct or {}, listed)
        return function

    return enter


def _guarded(
    name: str,
    function: Callable,
    dtypes_of: Callable | None,
    bits: bool,
    alike: Callable | None,
    direct: dict,
    listed: Callable | None,
) -> Callable:
    plans: dict[Any, Callable] = {}
    _forget.append(plans.clear)

    def prepare(dtypes: tuple) -> Callable:
        check_verified(name, dtypes)
        signed = SIGNED.get(dtypes[0]) if bits else None
        if signed is None or signed is torch.int8:
            return function
        as_bits = _as_signed if name == "write_view" else (lambda v, *_: v)  # what follows others' x are no elements
        return lambda x, *rest, **params: _unsigned(
            function(x.view(signed), *[as_bits(v, dtypes[0], signed) for v in rest], **params), signed, dtypes[0]
        )

    if dtypes_of is None:

        def kernel(x: Any, *rest: Any, **params: Any) -> Any:
            if type(x) is not Tensor:  # a number where NumPy takes an array
                x = from_host(onp.asarray(x), device_of(rest))
            try:
                run = plans.get(x.dtype)
                if run is None:
                    run = plans[x.dtype] = prepare((x.dtype,))
                return run(x, *rest, **params)
            except FAILURES as error:
                return failed(name, error)

        def plan(x: Any, *rest: Any, **params: Any) -> Callable:
            dtype = x.dtype if type(x) is Tensor else to_torch(onp.asarray(x).dtype)
            return plans.get(dtype) or prepare((dtype,))

        offer(kernel, plan, short=lambda x, *rest: direct.get(x.dtype, plan(x)) if type(x) is Tensor else plan(x))
    else:

        def kernel(*values: Any, **params: Any) -> Any:
            try:
                dtypes = dtypes_of(*values)
                run = plans.get(dtypes)
                if run is None:
                    run = plans[dtypes] = prepare(dtypes)
                return run(*values, **params)
            except FAILURES as error:
                return failed(name, error)

        def plan(*values: Any, **params: Any) -> Callable:
            run = prepare(dtypes := dtypes_of(*values))
            return alike(*values) if alike is not None and _are_alike(values, dtypes) else run

        def short(*values: Any) -> Callable:
            run = plan(*values)
            return listed if listed is not None and _are_alike(values, dtypes_of(*values)) else run

        offer(kernel, plan, short=short)
        kernel.basic = listed
    return kernel


def _are_alike(values: Sequence[Any], dtypes: tuple) -> bool:
    """Whether all values are tensors of one dtype torch computes in, or masks in the first place."""
    kinds = [v.dtype if type(v) is Tensor else None for v in values]
    rest = kinds[1:] if kinds[0] is torch.bool and len(kinds) == 3 else kinds
    return set(rest) == set(dtypes) and (dtypes[0] not in SIGNED or dtypes[0] is torch.uint8)


def _as_signed(v: Any, dtype: torch.dtype, signed: torch.dtype) -> Any:
    """Numbers to be written among unsigned ones, as those of the same bits; or NumPy's exception."""
    if type(v) is Tensor:
        return v if v.dtype not in FLOATS else v.to(dtype).view(signed)
    return onp.array(v, TO_NUMPY[dtype]).view(TO_NUMPY[signed])[()]


def _unsigned(y: Any, signed: torch.dtype, dtype: torch.dtype) -> Any:
    return y.view(dtype) if y.dtype is signed else y


# ------------------------------------------------------------------ what torch refuses
FAILURES = (RuntimeError, IndexError)
_DEVICE_ERRORS = tuple(getattr(torch, n) for n in ("OutOfMemoryError", "AcceleratorError") if hasattr(torch, n))


def failed(name: str, error: Exception) -> Any:
    """What a torch call's exception means: a failing device is reported as it is; arguments that torch will not take
    (shapes that do not fit, an index out of range) go to NumPy, whose exception or result is the reference. Kernels
    never write to their arguments, so nothing is half done."""
    if _trusting or isinstance(error, _DEVICE_ERRORS) or "CUDA" in str(error):
        raise error
    return refuse(f"torch's {name}: {str(error).splitlines()[0]}")
