"""Functions said in other functions that run wholly on torch's kernels: nothing of theirs is copied to the host.

python -m tests.backends.torch_composed              the names, and what keeps the others from it
python -m tests.backends.torch_composed --write      and renew minnp/backends/torch/composed.json

A case is a call as NumPy's users write it. It is run on arrays of a place, compared with NumPy's result (type, shape,
dtype, values within a few units in the last place of the largest), and the copies to the host are counted.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as onp

from minnp.backends.torch import verify as differential

words = str.split
FILE = Path(differential.__file__).with_name("composed.json")
DTYPES = "fdDl"
ULPS = 16
# x, m, t, q: arrays of 2, 2 (square), 3 and 4 dimensions; c: of 5 vectors in space; v, w: vectors; n: x with NaNs
CASES = words("""
average(x) average(x,0) cov(x) corrcoef(x) ptp(x) ptp(x,axis=0) dot(m,m) dot(x,w) inner(x,x) outer(v,v) vdot(v,v)
trace(m) trace(t,1) tensordot(x,x,((1,),(1,))) cross(c,c) trapezoid(v) ediff1d(v) vander(v) unwrap(v)
nansum(n) nansum(n,axis=0) nanprod(n) nancumsum(n) nancumprod(n,1) nanmean(n) nanmean(n,0) nanmean(n,1,keepdims=True)
nanvar(n) nanvar(n,0,ddof=1) nanvar(n[:,:1],0,ddof=3) nanstd(n,1) nanmax(n) nanmax(n,1) nanmin(n,0) median(x)
median(x,1) median(n) median(n,0,keepdims=True) polyval(v,x) polyadd(v,w) polysub(v,w) polyder(v) polyint(v)
hstack([x,x]) vstack([x,x]) dstack([x,x]) column_stack([v,v]) row_stack([v,v]) block([[m,m],[m,m]]) append(v,v)
append(x,x,0) flipud(x) fliplr(x) moveaxis(t,0,2) rollaxis(t,2) atleast_1d(v) atleast_2d(v) atleast_3d(v)
ravel(x) ravel(x.T) split(v,2) array_split(v,4) array_split(x,[1,2],1) hsplit(x,2) vsplit(x,3) dsplit(t,2) tile(v,2)
tile(x,(2,2)) diag(v) diag(m,1) diagflat(v) delete(v,1) resize(v,(3,3)) pad(x,1) pad(x,((1,2),(0,1))) unstack(x)
extract(v>0,v) compress([True,False,True],x,0) select([v>0,v<0],[v,-v]) piecewise(v,[v<0,v>=0],[-1,1])
apply_along_axis(twice,0,x) apply_over_axes(sum,t,[0,1]) correlate(v,w,'full') angle(x) iscomplex(x) isreal(x)
isposinf(n) isneginf(n) broadcast_arrays(x,w) meshgrid(v,w) full_like(x,2) amax(x,1) amin(x,0) around(x,1) i0(v)
real_if_close(x) cumulative_sum(v) cumulative_prod(v) matvec(m,w) vecmat(w,m) vecdot(x,x) matrix_transpose(x)
fill_diagonal(m,0) put(x,[0,5],2) copyto(x,x+1) putmask(x,x>0,2) place(x,x>0,2)
ix_((v>0).astype('i8'),(w>0).astype('i8')) tril_indices_from(m) triu_indices_from(x,1) cross(c[0],c)
percentile(x,30) percentile(x,[10.,90.],axis=0,keepdims=True) percentile(t,[[0,50],[7,100]],axis=(0,2)) quantile(n,.3,0)
quantile(x,[.1,1.0],method='nearest') quantile(v,.4,method='hazen') quantile(v,.4,method='lower')
nanquantile(n,.3) nanquantile(n,[.2,.9],axis=1,keepdims=True) nanpercentile(n,30,0)
nanpercentile(t,[7,100.],(0,2))
histogram(v,4,(-1,1)) histogram(v,[-2,0.,1,3]) histogram(v,3,(-2,2),weights=v*v) histogram(n,5,(-2.,2.),density=True)
bincount((v>0).astype('i8')) bincount((v>0).astype('i8'),minlength=5)
unique(v) unique(n,return_index=True) unique(x,return_inverse=True) unique(x,return_counts=True) unique_counts(v)
unique(round(x),axis=0) unique(round(t),axis=1) unique(x[[0,1,0]],axis=0,return_index=True,return_inverse=True)
unique(n[[2,0,2]],axis=0,return_counts=True) unique_all(x) unique_inverse(v)
union1d(v,w) intersect1d(v,w) setdiff1d(v,w) setxor1d(v,w)
gradient(v) gradient(x,2.0) gradient(x,axis=1) gradient(v,edge_order=2) kron(x,m) kron(v,m) kron(t,w) rot90(x)
rot90(t,-1,(1,2)) rot90(x,2) lexsort((v,v>0)) lexsort(x) lexsort((x,x>0),axis=0) polymul(v,w) polymul(v*(v>0),w)
empty_like(v,dtype='i8')*0 choose((x>0).astype('i8'),[x,x+1]) choose((x>0).astype('i8')+7,[w,2],mode='wrap')
ndarray.choose((v>0).astype('i8'),[v,3])
linalg.matrix_power(m,3) linalg.multi_dot([m,m,x.T]) linalg.cond(m) linalg.tensorinv(q) linalg.tensorsolve(q,m[:2,:2])
linalg.trace(m) linalg.diagonal(m) linalg.outer(v,v) linalg.cross(c,c) linalg.vecdot(x,x) linalg.matmul(m,m)
linalg.matrix_norm(m) linalg.vector_norm(v) linalg.matrix_transpose(m) linalg.tensordot(x,x,axes=((1,),(1,)))
fft.fftshift(x) fft.ifftshift(v)
ndarray.dot(m,m) ndarray.flatten(x) ndarray.ravel(x) ndarray.trace(m) ndarray.fill(x,1)
ndarray.compress(x,[True,False,True],axis=0) ndarray.put(x,[0],2)
""")


def data(char: str) -> dict[str, onp.ndarray]:
    """The arrays of the cases in one dtype."""
    x, m = differential.some((3, 4), char), differential.some((4, 4), char, 1)
    n = x.copy()
    if n.dtype.kind in "fc":
        n[0, 1] = n[2, 3] = onp.nan
    return {
        "x": x, "m": m + 4 * onp.eye(4, dtype=char), "n": n, "t": differential.some((2, 3, 4), char, 2),
        "v": differential.some((6,), char, 3), "w": differential.some((4,), char, 4),
        "c": differential.some((5, 3), char, 5), "q": differential.some((2, 2, 2, 2), char, 6),
    }  # fmt: skip


def listed() -> dict[str, list[str]]:
    return {name: loops.split(", ") for name, loops in json.loads(FILE.read_text()).items()}


def name_of(case: str) -> str:
    return case.partition("(")[0]


def result(case: str, np: Any, arrays: dict) -> Any:
    """A call, and the arrays it may have written to."""
    names = {**arrays, "np": np, "sum": np.sum, "round": np.round, "twice": lambda row: row * 2}
    y = eval(f"np.{case}", {"__builtins__": {"__import__": __import__}}, names)  # compiled code imports by its caller's
    return [y, arrays["x"], arrays["m"]] if y is None else y


def hosted(y: Any) -> Any:
    return [hosted(e) for e in y] if isinstance(y, (list, tuple)) else onp.asarray(y)


def disagreement(case: str, char: str, device: str = "cpu") -> str:
    """Why a call does not run wholly on the device as NumPy would have it: empty if it does."""
    import minnp
    import minnp.numpy as np

    arrays = data(char)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            want = hosted(result(case, onp, {k: v.copy() for k, v in arrays.items()}))
        except (TypeError, ValueError) as error:
            return f"NumPy refuses it: {error}"
        with minnp.Context("cpu" if device == "cpu" else "gpu", 0, "torch"):
            given = {k: np.array(v) for k, v in arrays.items()}
            minnp.reset_report()
            try:
                got = result(case, np, given)
            except (TypeError, ValueError, AttributeError) as error:
                return f"{type(error).__name__}: {error}"
        moved = [r for r in minnp.report() if r["moved"] and r["function"] != "copy to device"]
    if case.startswith("linalg."):  # a GPU is asked whether a matrix is singular, of which torch answers in four bytes
        moved = [r for r in moved if r["function"] != "copy to host" or r["moved"] != 4 * r["calls"]]
    if moved:
        return "leaves the device: " + "; ".join(sorted({r["why"] or r["function"] for r in moved}))
    flat = [e for e in (want if isinstance(want, list) else [want]) if e.size]
    scale = max([float(differential.largest(e)) for e in flat if e.dtype.kind in "fciu"], default=1.0)
    return differential.disagreement(hosted(got), want, ULPS, signs=False, scale=scale)


def known(case: str) -> bool:
    """Whether this NumPy has the function."""
    where: Any = onp
    for part in name_of(case).split("."):
        where = getattr(where, part, None)
    return where is not None


def survey() -> tuple[dict[str, list[str]], list[str]]:
    """({name: the dtypes in which all its calls agree, a real floating one among them}, what the others lack)."""
    found: dict[str, list[str]] = {}
    lacks = []
    for case in filter(known, CASES):
        agree = found.setdefault(name_of(case), list(DTYPES))
        for char in DTYPES:
            why = disagreement(case, char)
            if why:
                lacks.append(f"{case:40} {char} {why}")
                agree[:] = [c for c in agree if c != char]
    return {n: [onp.dtype(c).str[1:] for c in cs] for n, cs in found.items() if {"f", "d"} & {*cs}}, lacks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    found, lacks = survey()
    print("\n".join(lacks))
    print(f"{len(found)} functions: {' '.join(sorted(found))}")
    if options.write:
        FILE.write_text(json.dumps({n: ", ".join(sorted(found[n])) for n in sorted(found)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
