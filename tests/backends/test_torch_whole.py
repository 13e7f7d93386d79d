"""Functions that a place does in one call give what NumPy gives: values, dtypes, forms, exceptions."""

import operator
import warnings

import numpy as onp
import pytest

torch = pytest.importorskip("torch", reason="the torch backend needs torch: pip install torch")

import minnp
import minnp.numpy as np
from minnp.backends.torch import verify as differential
from minnp.backends.torch.statistics import WHOLE
from minnp.core.api import install
from minnp.core.rows.report import HOST_CALLS
from tests.backends.devices import EMULATED, THERE, on_there

pytestmark = on_there
NAN, INF = onp.nan, onp.inf


def arrays(char):
    """x, n: 3 x 4 without and with NaNs; f: infinities; v: 7; s: ascending, o: and NaNs; e: no elements; z: no axis;
    t: its least singular value is twice the dtype's eps."""
    x, s = differential.some((3, 4), char), onp.sort(differential.some((8,), char, 1))
    n, f = x.copy(), x.copy()
    n[:, 1], n[1], n[0, 0] = NAN, NAN, 0
    f[0] = [INF, -INF, 0.0, -0.0]
    y = onp.array([NAN, INF, -INF, 0.0, -0.0, s[2], s[-1], s[0], 9, -9], char)
    o = onp.array([*s, s[-1], NAN, NAN], char)
    return {
        "x": x, "n": n, "f": f, "v": differential.some((7,), char, 2), "s": s, "o": o, "y": y,
        "e": x[:0], "z": onp.array(2.5, char), "i": onp.array([2, 0, 2]), "j": onp.argsort(x, 1), "onp": onp,
        "t": onp.diag(onp.array([1, 1, 2 * onp.finfo(char).eps], char)),
    }  # fmt: skip


CASES = str.split("""
median(x) median(n,0) median(f) median(f,axis=-1,keepdims=True) median(x,keepdims=True) median(x,(0,1)) median(e)
median(z) median(x,5) median(v) median(y) percentile(x,30) percentile(n,30.0,0) percentile(f,[0,50.0,100],1)
percentile(x,101) percentile(v,100) percentile(x,(10,20.0),axis=0,keepdims=True) percentile(e,3) percentile(z,3)
quantile(x,1) quantile(x,1.5) quantile(v,[.1,.9]) quantile(v,.3,method='lower') quantile(x,.25,1,keepdims=True)
quantile(v,onp.float64(.3)) unique(v) unique(n) unique(y) unique(x,return_inverse=True) unique(e) unique(z) unique(i)
histogram(v) histogram(v,4,(-1,1)) histogram(v,5,(0.0,1.0)) histogram(v,4,(1,-1)) histogram(v,0) histogram(y,3,(-2,2))
histogram(n,4) histogram(v*0,4) histogram(v,4,density=True) histogram(v,[-1,0,1]) histogram(x,4,(0,0)) histogram(s,8)
histogram(e,4) histogram(v,'auto') histogram(v,3,(0,onp.inf)) histogram(v,-1) nansum(n) nansum(n,0) nansum(x,(0,1))
nansum(x,axis=1,keepdims=True) nansum(e,0) nansum(n,4) nansum(n,dtype='f8') nanmean(n,1,keepdims=True) nanmean(n)
nanmax(n,1) nanmax(f,0) nanmin(n,0,keepdims=True) nanmin(e) nanvar(n) nanvar(n,1,ddof=1) nanstd(n,axis=0,ddof=1.5)
nanvar(n[:,:1],0,ddof=3) cov(x) cov(v) cov(n) cov(x,rowvar=False) cov(x[:1]) corrcoef(x) corrcoef(v) gradient(v)
gradient(x) gradient(v,2.0) gradient(x,0.5,axis=1) gradient(x,axis=(0,1)) gradient(x,2,3) gradient(v,edge_order=2)
gradient(v[:1]) gradient(x,axis=5) meshgrid(v,s) meshgrid(v,s,indexing='ij') meshgrid(v) meshgrid(v,s,indexing='q')
meshgrid(z,v) meshgrid(v,x) pad(x,1) pad(x,(1,2)) pad(x,((1,2),(0,3))) pad(v,2,mode='edge') pad(x,1,mode='edge')
pad(x,((1,0),(0,3)),mode='reflect') pad(x,1,'symmetric') pad(x,(2,1),mode='wrap') pad(v,6,mode='reflect')
pad(v,9,mode='reflect') pad(v,20,mode='edge') pad(x,0) pad(x,0,mode='edge') pad(x,0,'nope') pad(x,-1) pad(x,(1,2,3))
pad(e,1) pad(x,1,constant_values=2.5) pad(x,1,constant_values=(1,2)) pad(x,1,mode='mean') pad(x,1,mode='nope')
pad(x.T,1) pad(e,1,mode='edge') pad(x,((1,1),),mode='edge') pad(i,1,mode='edge') pad(v,1,mode='edge',constant_values=2)
inner(v,v) inner(x,x) inner(z,v) inner(x,x[0]) inner(v,2.0) inner(x,v[:4]) tensordot(x,x,axes=([1],[1]))
tensordot(x,x,((0,1),(0,1))) tensordot(x,x,(1,-1)) tensordot(x,x,0) tensordot(x,x,((),())) tensordot(x,x,((0,0),(0,0)))
tensordot(x,x,3) kron(x,x) kron(v,x) kron(z,x) cross(x[:,:3],x[:,:3]) cross(v[:3],x[:,:3]) cross(v[:2],v[:2])
cross(v,v) searchsorted(s,y) searchsorted(o,y) searchsorted(o,y,'right') searchsorted(s,y,side='right')
searchsorted(s,0.1) searchsorted(s,float(s[2]),side='right') searchsorted(s,s,sorter=[0]) searchsorted(s,x)
searchsorted(x,v) searchsorted(s,v,'nope') searchsorted(e,v) searchsorted(v[:0],v) s.searchsorted(v) digitize(y,s)
digitize(y,s[::-1]) digitize(y,s,right=True) digitize(y,s[::-1],True) digitize(v,v) digitize(y,o) digitize(0.3,s)
digitize(v,s[:1]) digitize(v,s[:0]) digitize(y,o[::-1]) interp(v,s,s*2) interp(y,s,s**2) interp(x,s,s)
interp(0.3,s,s) interp(v,s,s,left=7.0) interp(y,s,s,-1,2) interp(v,s,s,right=3) interp(v,s,v) interp(v,s[:1],s[:1])
interp(v,s,s,period=2.0) interp(y,s[:2],s[:2]) interp(v,[0.0,1.0],[1.0,2.0]) take_along_axis(x,j,1)
take_along_axis(x,j-4,axis=-1) take_along_axis(x,j+1,1) take_along_axis(x,j[:,:1],1) take_along_axis(x,j[:1],1)
take_along_axis(x,j[:2],1) take_along_axis(x,j%3,0) take_along_axis(x,j,None) take_along_axis(x,x,1)
linalg.lstsq(x,x[:,0],rcond=None) linalg.lstsq(x.T,x.T[:,:2],rcond=None) linalg.lstsq(x.T,v[:4],rcond=0.5)
linalg.lstsq(x,v,rcond=None) linalg.lstsq(x*0,x,rcond=None) linalg.lstsq(x.T[:,[0,0,1]],v[:4],rcond=None)
linalg.lstsq(t,v[:3],rcond=-1.0) linalg.lstsq(x,x[:,:0],rcond=None) linalg.lstsq(x,z,rcond=None)
add.at(x,i,1.0) add.at(x,[0,1,0],2) add.at(x,0,1.5) add.at(x,(i,i),1.0) add.at(x,5,1.0) add.at(x,i,x) add.at(x,i,x[0])
add.at(x,[],1.0) add.at(x,x>0,1.0) add.at(x,i-3,1.0) subtract.at(x,i,x) add.at(x[0],i,1.0) add.at(x,i,1j)
add.at(x,True,1.0) put(x,[0,5],2) put(x,i,2.5) put(x,99,1.0) put(x,[],1.0) put(x,[1,2],[3,4.0]) x.put([0,1],9)
put(x.T,[1],5.0) putmask(x,x>0,2) putmask(x,x>0,x*2) place(x,x>0,2) place(x,x>0,[1,2]) putmask(x,x,1.0)
putmask(x[0],x[0]>0,1.0) putmask(x,x>0,1j) put_along_axis(x,j,x*2,1) put_along_axis(x,j[:,:1],9.0,axis=1)
put_along_axis(x,j-4,1.0,1) put_along_axis(x,j+4,1.0,1) put_along_axis(x,j*0,x*2,1) put_along_axis(x,j,x[0],1)
put_along_axis(x,j,1.0,5) fill_diagonal(x,3.0) fill_diagonal(x,[1,2,3.0]) fill_diagonal(x.T,2) fill_diagonal(x,3,True)
fill_diagonal(v,3) vander(v) vander(v,3) vander(v,0) vander(v,2,True) vander(x) polyfit(s,s,1)
full_like(x,2) full_like(x,2.5) full_like(x,v) full_like(x,1j) full_like(x,2,dtype='i4')
""")


def outcome(case, np, given):
    """A call's result as host arrays, and x; or its exception."""
    with warnings.catch_warnings(), onp.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            y = eval(case if case[:2] in ("x.", "s.") else f"np.{case}", {**given, "np": np})
        except Exception as error:
            return type(error), []
    several = type(y) in (tuple, list) or hasattr(y, "_fields")
    results = [*y] if several else [] if y is None else [y]
    return (list if type(y) is list else tuple if several else None), [*map(onp.asarray, [*results, given["x"]])]


@pytest.mark.long
@pytest.mark.parametrize("char", "fd")
def test_functions_in_one_call_agree_with_numpy(char):
    like = arrays(char)
    reach = dict.fromkeys(WHOLE, 0)
    for case in CASES:
        with THERE:
            given = {k: np.array(v) if isinstance(v, onp.ndarray) else v for k, v in like.items()}
        minnp.report(reset=True)
        form, got = outcome(case, np, given)
        for row in minnp.report():
            if row["backend"] == "torch" and row["function"] in reach:
                reach[row["function"]] += row["calls"]
        wanted, want = outcome(case, onp, {k: v.copy() if isinstance(v, onp.ndarray) else v for k, v in like.items()})
        assert form == wanted or (type(form) is type and issubclass(form, wanted)), (case, form, wanted)
        for g, w in zip(got, want, strict=True):
            scale = onp.maximum(differential.largest(w), 1) if w.dtype.kind == "f" else None
            assert not (why := differential.disagreement(g, w, 64, False, scale)), (case, why)
    if install.fastpath is not None:
        elsewhere = {"einsum", "outer", "diag", "tile", "linalg.outer", "linalg.tensordot", "linalg.cross"}
        if EMULATED:  # what looks at data, which no other device's can be without waiting
            elsewhere |= {"ndarray.searchsorted", "histogram"}
        assert {n for n, calls in reach.items() if not calls} == elsewhere


def test_what_is_said_to_be_one_call_is():
    if install.fastpath is not None:
        for name in WHOLE:
            operator.attrgetter(name)(np)  # which makes its entry, if this NumPy has such a function
        forms = {name: install.row_of(HOST_CALLS[name])[-1] for name in WHOLE if name in HOST_CALLS}
        assert set(forms.values()) == {install.fastpath.WHOLE}, forms


def test_what_is_written_in_one_call_is_seen_by_views_and_not_by_copies():
    with THERE:
        x = np.array(onp.zeros((3, 3), "f4"))
    row, copy, whole = x[1], x.copy(), x
    np.add.at(x, np.array([1, 1]), 2.0)
    assert row.tolist() == [4.0, 4.0, 4.0]
    np.fill_diagonal(x, 7.0)
    assert (row.tolist(), copy.sum(), whole[0, 0]) == ([4.0, 7.0, 4.0], 0.0, 7.0)
    before = float(x.sum())

    def loss(y):
        z = x * y
        np.add.at(x, np.array([0]), 1.0)  # the tape keeps what x was
        return z.sum()

    with THERE:
        assert float(minnp.grad(loss)(np.array(2.0, dtype="f4"))) == before != float(x.sum())
