"""Kernels of numpy.linalg: LAPACK's on the CPU, the device's solvers elsewhere; stacks of matrices, real or complex.

Integers are factorised in float64. A matrix that cannot be factorised raises inside torch; the call then goes to NumPy,
whose LinAlgError the user sees.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as onp
import torch

from ...core.rows import report
from .dtypes import device_of, from_host, known, promote, refuse
from .reductions import INTEGRAL, dims
from .registry import kernel

Tensor = torch.Tensor
la = torch.linalg
SOLVED = (torch.float32, torch.float64)
EPS = {dtype: torch.finfo(dtype).eps for dtype in (*SOLVED, torch.complex64, torch.complex128)}
NUMPY_2 = int(onp.__version__.split(".")[0]) >= 2
REAL = onp.linalg.eigvals(onp.eye(1)).dtype.kind == "f"  # NumPy 2.5 gives complex numbers for all eigenvalues


def inexact(x: Tensor) -> Tensor:
    """x in the dtype NumPy factorises it in."""
    if x.dtype in INTEGRAL:
        return x.double()
    return x if x.dtype is not torch.float16 else refuse("linalg of float16")  # NumPy raises TypeError


def matrix(run: Callable) -> Callable:
    """The kernel of a function of square or rectangular matrices; its results are in C order, not LAPACK's."""

    def call(x: Tensor, *args: Any, **params: Any) -> Any:
        if x.ndim < 2 or not x.numel():
            refuse("a factorisation of an empty array, or of fewer than two dimensions")
        out = run(inexact(x), *args, **params)
        return tuple([y.contiguous() for y in out]) if type(out) is tuple else out.contiguous()

    return call


def asked(run: Callable) -> Callable:
    """torch's function that raises where a matrix is singular: it asks the device, a copy to the host, and counted."""

    def call(x: Tensor, *args: Any, **params: Any) -> Any:
        if not x.is_cpu:
            report.copied("copy to host", "torch", 4)
        return run(x, *args, **params)

    return call


inverse, solution, lower = asked(la.inv), asked(la.solve), asked(la.cholesky)


def _inv(x: Tensor) -> Tensor:
    return inverse(x).contiguous() if x.ndim == 2 and x.numel() else inv(x)


inv = matrix(inverse)
kernel("linalg.inv", direct=dict.fromkeys(SOLVED, _inv))(inv)
kernel("linalg.det")(matrix(la.det))
kernel("linalg.slogdet")(matrix(lambda x: tuple(la.slogdet(x))))
kernel("linalg.cholesky")(matrix(lambda x, upper=False: lower(x, upper=bool(upper))))
kernel("linalg.eigh")(matrix(lambda x, UPLO="L": tuple(la.eigh(x, UPLO.upper()))))
kernel("linalg.eigvalsh")(matrix(lambda x, UPLO="L": la.eigvalsh(x, UPLO.upper())))
kernel("linalg.svd")(matrix(lambda x, full_matrices=True: tuple(la.svd(x, full_matrices))))
kernel("linalg.svdvals")(matrix(la.svdvals))


def _qr(x: Tensor, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r"):
        refuse(f"qr in mode {mode!r}")
    q, r = la.qr(x, mode)
    return r if mode == "r" else (q, r)


kernel("linalg.qr")(matrix(_qr))


def _cofactor(x: Tensor) -> Tensor:
    """The gradient of det; for singular matrices from the singular values, whose products leave one out."""
    u, s, vh = la.svd(x)
    n = s.shape[-1]
    rest = torch.stack([torch.cat([s[..., :i], s[..., i + 1 :]], -1).prod(-1) for i in range(n)], -1)
    phase = la.det(u) * la.det(vh)
    return ((u.conj() * (phase.unsqueeze(-1) * rest).unsqueeze(-2)) @ vh.conj()).resolve_conj()


kernel("linalg.cofactor")(matrix(_cofactor))


def _real_if_all_real(w: Tensor, x: Tensor) -> bool:
    """Whether NumPy answers in real numbers: before 2.5 where every eigenvalue is one."""
    return REAL and not x.dtype.is_complex and not known((w.imag != 0).any())


def _finite(x: Tensor) -> Tensor:
    """x, if it is finite: NumPy raises LinAlgError, and LAPACK may crash."""
    return x if known(torch.isfinite(x).all()) else refuse("eigenvalues of infs or NaNs")


@kernel("linalg.eig")
@matrix
def eig(x: Tensor) -> tuple:
    x = _finite(x)
    w, v = la.eig(x)
    return (w.real, v.real) if _real_if_all_real(w, x) else (w, v)


@kernel("linalg.eigvals")
@matrix
def eigvals(x: Tensor) -> Tensor:
    w = la.eigvals(_finite(x))
    return w.real if _real_if_all_real(w, x) else w


def _alike(*values: Any) -> list[Tensor]:
    """The values in one dtype, that of what each is factorised in: float64 for integers beside float32."""
    device = device_of(values)
    found = [inexact(v if type(v) is Tensor else from_host(onp.asarray(v), device)) for v in values]
    dtype = promote(*found)
    return [x.to(dtype) for x in found]


def _solve(a: Tensor, b: Tensor) -> Tensor:
    if a.ndim != 2 or not 1 <= b.ndim <= 2 or not b.numel() or a.dtype not in SOLVED:
        return solve(a, b)
    return solution(a, b).contiguous()


@kernel("linalg.solve", dtypes_of=lambda a, b: (promote(a, b),), alike=lambda a, b: _solve)
def solve(a: Any, b: Any) -> Tensor:
    a, b = _alike(a, b)
    if a.ndim < 2 or not a.numel() or not b.numel():
        refuse("a system of fewer than two dimensions, or an empty one")
    vector = b.ndim == 1 if NUMPY_2 else b.ndim == a.ndim - 1
    if not vector and b.ndim < 2:
        refuse("a stack of systems with one vector")
    if not vector and b.shape[-2] != a.shape[-1]:
        refuse("right hand sides of another length")  # which torch may take for a stack of vectors
    return solution(a, b.unsqueeze(-1)).squeeze(-1) if vector else solution(a, b).contiguous()


@kernel("linalg.norm", direct=dict.fromkeys(SOLVED, la.vector_norm))
def norm(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The root of the sum of squares (2-norm of vectors, Frobenius norm of matrices)."""
    return la.vector_norm(inexact(x), dim=dims(axis, x.ndim), keepdim=keepdims)


@kernel("linalg.pinv")
@matrix
def pinv(x: Tensor, rcond: Any = None, hermitian: bool = False, **cutoff: Any) -> Tensor:
    if cutoff or not (rcond is None or isinstance(rcond, float)):
        refuse("pinv with rtol, or with rcond as an array")
    rcond = rcond if rcond is not None else 1e-15  # NumPy's default, whatever the dtype
    return la.pinv(x, rtol=rcond, atol=0.0, hermitian=hermitian)


@kernel("linalg.matrix_rank")
def matrix_rank(x: Tensor, **params: Any) -> Tensor:
    if x.ndim < 2 or not x.numel() or any(v is not None and v is not False for v in params.values()):
        refuse("matrix_rank with these arguments")
    return la.matrix_rank(inexact(x))


def gelsd(a: Tensor, b: Tensor, rcond: float | None) -> tuple:
    """NumPy's own routine; rcond: the part of the greatest singular value below which one is 0, as there: None stands
    for eps * max(M, N), a negative number for eps."""
    x, residuals, rank, s = la.lstsq(a, b, rcond=rcond, driver="gelsd")
    return x.contiguous(), residuals, _rank(rank.item()), s


@functools.lru_cache(256)
def _rank(n: int) -> Tensor:
    """A rank in NumPy's dtype: torch takes longer to convert its own."""
    return torch.tensor(n, dtype=torch.int32)


@kernel("linalg.lstsq", dtypes_of=lambda a, b: (promote(a, b),))
def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple:
    """Solution, residuals, rank and singular values, from the singular value decomposition as LAPACK's gelsd."""
    a, b = _alike(a, b)
    if (
        a.ndim != 2
        or b.ndim not in (1, 2)
        or not (a.numel() and b.numel())
        or a.shape[0] != b.shape[0]
        or not (rcond is None or isinstance(rcond, (float, onp.floating)))
    ):
        refuse("lstsq of these arguments")
    if a.device.type == "cpu":
        return gelsd(a, b, rcond if rcond is None else float(rcond))
    columns = b.unsqueeze(-1) if b.ndim == 1 else b
    m, n = a.shape
    if rcond is None or rcond < 0:
        rcond = EPS[a.dtype] * (max(m, n) if rcond is None else 1)
    u, s, vh = la.svd(a, full_matrices=False)
    keep = s > rcond * s[0]
    x = (vh.mH @ (torch.where(keep, 1 / s, 0).unsqueeze(-1) * (u.mH @ columns))).resolve_conj()
    rank = keep.sum()
    residuals = torch.sum(torch.abs(columns - a @ x) ** 2, 0)
    if m <= n or known(rank) < n:
        residuals = residuals[:0]
    return x.squeeze(-1) if b.ndim == 1 else x, residuals, rank.to(torch.int32), s
