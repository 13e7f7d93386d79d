"""Functions that a place does in one call give what NumPy gives: values, dtypes, forms, exceptions."""

import operator
import os
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
    t: its least singular value is twice the dtype's eps; b, l: many elements; u: bytes."""
    x, s = differential.some((3, 4), char), onp.sort(differential.some((8,), char, 1))
    n, f = x.copy(), x.copy()
    n[:, 1], n[1], n[0, 0] = NAN, NAN, 0
    f[0] = [INF, -INF, 0.0, -0.0]
    y = onp.array([NAN, INF, -INF, 0.0, -0.0, s[2], s[-1], s[0], 9, -9], char)
    o = onp.array([*s, s[-1], NAN, NAN], char)
    return {
        "x": x, "n": n, "f": f, "v": differential.some((7,), char, 2), "s": s, "o": o, "y": y,
        "e": x[:0], "z": onp.array(2.5, char), "i": onp.array([2, 0, 2]),
        "u": onp.array([[7, 0], [250, 7]], "u1"), "j": onp.argsort(x, 1), "onp": onp,
        "b": onp.tile(x, (60, 60)), "l": differential.some((42000,), char, 3),
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
pad(x.T,1) pad(x.T,((1,0),(0,2)),mode='wrap') pad(x[:,::2],1) pad(x[:,::2],2,mode='edge') pad(x,(5,0),mode='reflect')
pad(v,1,'edge',0) pad(v,1,mode='edge',constant_values=0) pad(x,1,'constant',2) pad(x,((1,1.0),(1,1))) pad(x,(1,True))
pad(x,((1,),(2,))) pad(x,((1,2),(1,2,3))) pad(x,[]) pad(x,'1') pad(i,(1,2),constant_values=5)
pad(i,1,constant_values=5.5) pad(x,1,constant_values=2**60+1) pad(x>0,1) pad(x>0,1,constant_values=1)
pad(x>0,1,constant_values=2) pad(e,1,'edge') pad(b,((0,3),(2,1)),mode='reflect') pad(b,2,mode='edge')
pad(x,((1,1),),constant_values=-0.0) pad(l,50000,mode='wrap') pad(l,1,mode='symmetric') pad(l,0,mode='wrap')
pad(e,1,mode='edge') pad(x,((1,1),),mode='edge') pad(i,1,mode='edge') pad(v,1,mode='edge',constant_values=2) inner(v,v)
inner(x,x) inner(z,v) inner(x,x[0]) inner(v,2.0) inner(x,v[:4]) tensordot(x,x,axes=([1],[1]))
tensordot(x,x,((0,1),(0,1))) tensordot(x,x,(1,-1)) tensordot(x,x,0) tensordot(x,x,((),())) tensordot(x,x,((0,0),(0,0)))
tensordot(x,x,3) kron(x,x) kron(v,x) kron(z,x) cross(x[:,:3],x[:,:3]) cross(v[:3],x[:,:3]) cross(v[:2],v[:2])
cross(v,v) searchsorted(s,y) searchsorted(o,y) searchsorted(o,y,'right') searchsorted(s,y,side='right')
searchsorted(s,0.1) searchsorted(s,float(s[2]),side='right') searchsorted(s,s,sorter=[0]) searchsorted(s,x)
searchsorted(x,v) searchsorted(s,v,'nope') searchsorted(e,v) searchsorted(v[:0],v) s.searchsorted(v) digitize(y,s)
digitize(y,s[::-1]) digitize(y,s,right=True) digitize(y,s[::-1],True) digitize(v,v) digitize(y,o) digitize(0.3,s)
digitize(v,s[:1]) digitize(v,s[:0]) digitize(y,o[::-1]) interp(v,s,s*2) interp(y,s,s**2) interp(x,s,s) interp(0.3,s,s)
interp(v,s,s,left=7.0) interp(y,s,s,-1,2) interp(v,s,s,right=3) interp(v,s,v) interp(v,s[:1],s[:1])
interp(v,s,s,period=2.0) interp(y,s[:2],s[:2]) interp(v,[0.0,1.0],[1.0,2.0]) take_along_axis(x,j,1)
take_along_axis(x,j-4,axis=-1) take_along_axis(x,j+1,1) take_along_axis(x,j[:,:1],1) take_along_axis(x,j[:1],1)
take_along_axis(x,j[:2],1) take_along_axis(x,j%3,0) take_along_axis(x,j,None) take_along_axis(x,x,1)
linalg.lstsq(x,x[:,0],rcond=None) linalg.lstsq(x.T,x.T[:,:2],rcond=None) linalg.lstsq(x.T,v[:4],rcond=0.5)
linalg.lstsq(x,v,rcond=None) linalg.lstsq(x*0,x,rcond=None) linalg.lstsq(x.T[:,[0,0,1]],v[:4],rcond=None)
linalg.lstsq(t,v[:3],rcond=-1.0) linalg.lstsq(x,x[:,:0],rcond=None) linalg.lstsq(x,z,rcond=None) add.at(x,i,1.0)
add.at(x,[0,1,0],2) add.at(x,0,1.5) add.at(x,(i,i),1.0) add.at(x,5,1.0) add.at(x,i,x) add.at(x,i,x[0]) add.at(x,[],1.0)
add.at(x,x>0,1.0) add.at(x,i-3,1.0) subtract.at(x,i,x) add.at(x[0],i,1.0) add.at(x,i,1j) add.at(x,True,1.0)
put(x,[0,5],2) put(x,i,2.5) put(x,99,1.0) put(x,[],1.0) put(x,[1,2],[3,4.0]) x.put([0,1],9) put(x.T,[1],5.0)
putmask(x,x>0,2) putmask(x,x>0,x*2) place(x,x>0,2) place(x,x>0,[1,2]) putmask(x,x,1.0) putmask(x[0],x[0]>0,1.0)
putmask(x,x>0,1j) put_along_axis(x,j,x*2,1) put_along_axis(x,j[:,:1],9.0,axis=1) put_along_axis(x,j-4,1.0,1)
put_along_axis(x,j+4,1.0,1) put_along_axis(x,j*0,x*2,1) put_along_axis(x,j,x[0],1) put_along_axis(x,j,1.0,5)
put_along_axis(x,j,10**30,1) put_along_axis(x,j,1.0,None) put_along_axis(x,j>1,1.0,1) put_along_axis(x,j,1.0,1.0)
put_along_axis(x,j[:0],1.0,0) put_along_axis(i,i%3,5,0) put_along_axis(i,i%3,5.5,0) put_along_axis(x>0,j,1,1)
put_along_axis(x,j[:,:2],x,1) put_along_axis(x,j.ravel()[:3],2.0,None) take_along_axis(x,j[:0],0)
take_along_axis(x,j[:0,:1],0) take_along_axis(i.astype('u4'),i*1.0,0) take_along_axis(x>0,j,1)
take_along_axis(e,j[:0],1) take_along_axis(i,i%3,-1) fill_diagonal(x,3.0) fill_diagonal(x,[1,2,3.0])
fill_diagonal(x.T,2) fill_diagonal(x,3,True) fill_diagonal(v,3) vander(v) vander(v,3) vander(v,0) vander(v,2,True)
vander(x) polyfit(s,s,1) full_like(x,2) full_like(x,2.5) full_like(x,v) full_like(x,1j) full_like(x,2,dtype='i4')
vdot(v,v) vdot(x,x) vdot(v,s) vdot(z,z) vdot(i,i) trace(x) trace(x[:2,:2]) trace(x,1) trace(v) trace(u) x.trace()
x.trace(1) append(v,s) append(x,v) append(x,x,0) append(x,x,axis=1) append(x.T,x.T,1) append(x,v,0) append(v,1.0)
append(i,v) append(i,i) append(e,x,0) append(x,x,5) append(u,u) append(u,u,-1) column_stack([v,v]) column_stack((v,s))
column_stack([x,x]) column_stack([i,i,i]) column_stack(x) column_stack([v,i]) column_stack([])
column_stack([u[0],u[1]]) average(x) average(x,0) average(x,axis=(0,1)) average(x,axis=()) average(n) average(e)
average(v,weights=v) average(i) average(x,5) average(x,keepdims=True) count_nonzero(x) count_nonzero(n,0)
count_nonzero(f,axis=(0,1)) count_nonzero(x,()) count_nonzero(u,axis=1) count_nonzero(i) count_nonzero(x>0)
count_nonzero(z) count_nonzero(e) count_nonzero(x,keepdims=True) count_nonzero(x,7) ptp(x) ptp(n,0) ptp(f)
ptp(x,axis=(0,1),keepdims=True) ptp(u) ptp(i) ptp(e) ptp(x,()) ptp(x,9) isin(v,v[:2]) isin(i,i[:1]) isin(n,n) isin(u,u)
isin(x,v,invert=True) isin(x>0,x>0) isin(i,v) isin(i,[2,3]) union1d(v,s) union1d(n,n) union1d(i,i) union1d(u,u)
union1d(i,v) union1d(e,v) unique(u) unique(x>0) unique(f) unique(-i) bincount(i) bincount(i,weights=v[:3])
bincount(i,v) bincount(i,minlength=5) bincount(-i) bincount(u[0]) bincount(v) bincount(i,[1.0,2,3]) bincount(i,i)
bincount(j) searchsorted(s,i) searchsorted(onp.arange(4),3) tile(i,2) tile(x,(2,1,2)) tile(x,1) tile(x.T,(1,1))
tile(x.T,2) tile(u,(0,2)) tile(x,-1) tile(x,2.0) tile(x,[2,2]) tile(x,()) outer(i,i) outer(u,u) outer(u[0],u[1])
outer(x>0,v) diag(i) diag(u[0],1) diag(x[0]>0) full_like(i,3) full_like(i,3.5) full_like(u,300) full_like(u,7)
full_like(x>0,1) full_like(x>0,2) full_like(i,-1) meshgrid(i,i) meshgrid(i,v) meshgrid(u[0],u[1]) fill_diagonal(u,9)
fill_diagonal(u,300) fill_diagonal(u,2.5) put(u,[0,3],9) put(u,[0,3],300) put(u.T,[1],5) put(i,i,7) putmask(u,u>7,1)
putmask(i,i>0,5) putmask(i,i>0,2.5) putmask(u,u>7,-1) place(x,x>0,[2.5]) place(u,u>7,[3]) place(x,x>9,[])
roll(x,1,axis=0) roll(x,-5,1) roll(x,1,axis=-1) roll(x,(1,2),axis=(0,1)) roll(x,1,axis=(0,1)) roll(x,1,2)
roll(u,1,axis=0) roll(x,1.5,axis=0) roll(z,1) roll(z,1,axis=0) repeat(x,2,axis=0) repeat(x,2,axis=-1) repeat(x,2,3)
repeat(x,-1,axis=0) repeat(x,[1,2,3],axis=0) repeat(u,3,axis=1) repeat(z,2,axis=0) diff(x,axis=0) diff(x,2,axis=0)
diff(x,n=0,axis=0) diff(x,axis=5) diff(x,-1,axis=0) diff(u,axis=0) diff(x,prepend=v[:3,None]) diff(x>0,axis=1)
diff(e,axis=0) diff(z,axis=0) dstack([x,x]) dstack([v,v]) dstack((v,x)) dstack([i,i]) dstack(x) dstack([u,u,u])
dstack([x,i]) dstack([x.T,x.T]) partition(s,0,axis=0) partition(x,4) partition(x,-5) partition(x,2,5) partition(e,0)
partition(z,0) partition(s,7) partition(s,(0,3)) partition(s,-1) partition(s[None],0,0)
""")
if hasattr(onp, "cumulative_sum"):
    CASES += str.split("""
    linalg.trace(x) cumulative_sum(v) cumulative_sum(x) cumulative_sum(x,axis=0) cumulative_sum(i) linalg.vector_norm(x)
    linalg.vector_norm(n,axis=0) linalg.vector_norm(x,axis=(0,1),keepdims=True) linalg.vector_norm(x,ord=1)
    linalg.vector_norm(i) linalg.vector_norm(x,axis=()) linalg.vector_norm(x,axis=4)
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
        elsewhere = {"einsum", "linalg.outer", "linalg.tensordot", "linalg.cross"}
        if not hasattr(onp, "cumulative_sum"):
            elsewhere |= {"cumulative_sum", "linalg.trace", "linalg.vector_norm"}
        if "MINNP_BACKEND" in os.environ:  # lists of arrays are then Python's
            elsewhere |= {"column_stack", "dstack"}
        if EMULATED:  # what looks at data, which no other device's can be without waiting
            elsewhere |= {"ndarray.searchsorted", "histogram"}
        assert {n for n, calls in reach.items() if not calls} == elsewhere


def test_what_is_said_to_be_one_call_is():
    if install.fastpath is not None:
        for name in WHOLE:
            operator.attrgetter(name)(np)  # which makes its entry, if this NumPy has such a function
        forms = {name: install.row_of(HOST_CALLS[name])[-1] for name in WHOLE if name in HOST_CALLS}
        assert set(forms.values()) == {install.fastpath.WHOLE}, forms


@pytest.mark.parametrize(
    "write",
    [
        lambda np, x: np.put(x, [1, 5], 7.0),
        lambda np, x: np.putmask(x, x > 0, 7.0),
        lambda np, x: np.fill_diagonal(x, 7.0),
        lambda np, x: np.put_along_axis(x, np.argsort(x, 1), 7.0, 1),
        lambda np, x: np.add.at(x, np.array([0, 1]), 7.0),
    ],
)
def test_what_is_written_in_one_call_keeps_its_memory_order(write):
    like = onp.asfortranarray(differential.some((3, 4), "f"))
    with THERE:
        x = np.array(like, order="K")
    write(np, x)
    write(onp, like)
    assert x.strides == like.strides and onp.array_equal(onp.asarray(x), like)


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


# ------------------------------------------------------------------ many random calls
DTYPES = [*"ffffddddqiI?BHbFDe"]


def drawn(rng, shape, dtype, order="C"):
    """An array with a few NaNs and zeros of either sign, in this dtype and order."""
    x = onp.where(rng.random(shape) < 0.1, -0.0, rng.standard_normal(shape) * 3)
    if dtype in "fdFD":  # of half precision a NaN's bits may become others
        x = onp.where(rng.random(shape) < 0.03, NAN, x)
    return onp.asarray(x.astype("i8") if dtype in "BHIqib?" else x).astype(dtype, order=order)


def drawn_pad(rng):
    ndim = int(rng.integers(0, 5))
    x = drawn(
        rng,
        rng.choice([0, 1, 2, 3, 4, 5], ndim, p=[0.05, 0.2, 0.2, 0.2, 0.2, 0.15]),
        rng.choice(DTYPES),
        rng.choice([*"CCCF"]),
    )
    n = lambda: int(rng.choice([0, 1, 2, 3, 7]))
    pairs = tuple([(n(), n()) for _ in range(ndim)])
    usual = [n(), (n(), n()), [n(), n()], (n(),), pairs, [*pairs], [[*p] for p in pairs], (pairs[:1] or 1)]
    odd = [
        -1,
        (1, -1),
        1.0,
        True,
        (1, 1.0),
        ((1, True),) * ndim,
        (),
        (1, 2, 3),
        "1",
        ((1, 2, 3),) * ndim,
        (*pairs, (1, 1)),
    ]
    odd += [tuple([(n(),) for _ in range(ndim)]), onp.int64(1), onp.array([[1, 2]] * ndim), None]
    mode = str(rng.choice(["constant", "edge", "reflect", "symmetric", "wrap"]))
    given = {"mode": mode}
    if rng.random() < (0.6 if mode == "constant" else 0.03):
        given["constant_values"] = [0, 1, 2.5, -0.0, 127, 1j, (1, 2), onp.float32(2), None][rng.integers(9)]
        if x.dtype.kind not in "fc":
            given["constant_values"] = int(rng.integers(0, 128))
    if rng.random() < 0.03:
        given["mode"] = "nope"
    few = rng.random() < 0.1
    width = (odd if few else usual)[rng.integers(len(odd if few else usual))]
    return [x], lambda np, x: np.pad(x, width, **given), f"pad(x, {width!r}, **{given}) of {x.dtype}{x.shape}"


def drawn_along_axis(rng):
    ndim = int(rng.integers(1, 4))
    shape = rng.choice([0, 1, 2, 3, 4], ndim, p=[0.04, 0.16, 0.25, 0.3, 0.25])
    x, axis = drawn(rng, shape, rng.choice(DTYPES), rng.choice([*"CCCF"])), int(rng.integers(-ndim, ndim))
    i = onp.argsort(rng.random(shape), axis)
    if rng.random() < 0.4:
        i = i.take(range(i.shape[axis] // 2), axis)
    if rng.random() < 0.1:
        i = i - i.shape[axis]
    if rng.random() < 0.05:
        i = [i + 1, i.astype("f8"), i > 0, i.ravel(), i.astype("i4"), i[..., None], i[:1]][rng.integers(7)]
    axis = axis if rng.random() < 0.95 else [5, -5, 1.0, "0"][rng.integers(4)]
    if rng.random() < 0.4:
        return (
            [x, i],
            lambda np, x, i: np.take_along_axis(x, i, axis),
            f"take_along_axis(x, {i!r}, {axis}) of {x.dtype}{shape}",
        )
    v = drawn(rng, i.shape, x.dtype.char) if rng.random() < 0.6 else int(rng.integers(0, 2))
    if rng.random() < 0.1:
        v = [v[:1] if onp.ndim(v) else 1, onp.ones((9, 9), x.dtype), 2.5 if x.dtype.kind == "f" else 1][rng.integers(3)]
    run = lambda np, x, i, *v: np.put_along_axis(x, i, *v, axis)
    given = [x, i, v] if onp.ndim(v) else [x, i]
    return (
        given,
        run if onp.ndim(v) else lambda np, x, i: run(np, x, i, v),
        f"put_along_axis(x, {i!r}, {v!r}, {axis}) of {x.dtype}{shape}",
    )


def drawn_lstsq(rng):
    """Systems whose rank no rounding decides."""
    m, n, k = rng.integers(0 if rng.random() < 0.1 else 1, 7, 3)
    dtype = str(rng.choice([*"ffddFDq"]))
    a = (onp.eye(m, n) * 8 + rng.standard_normal((m, n))) * (1 + 1j * (dtype in "FD"))
    b = rng.standard_normal([(m,), (m, k), (m + 1,), (m, k, 1), ()][rng.choice(5, p=[0.45, 0.45, 0.05, 0.025, 0.025])])
    if n > 1 and rng.random() < 0.2:
        a[:, 1] = 0
    a = (a if dtype in "FD" else a.real).astype(dtype, order=rng.choice([*"CF"]))
    b = b.astype(dtype if rng.random() < 0.9 else "d")
    given = [{}, {"rcond": None}, {"rcond": 0.01}, {"rcond": 1e-3}, {"rcond": 1}, {"rcond": "x"}][
        rng.choice(6, p=[0.2, 0.4, 0.2, 0.1, 0.05, 0.05])
    ]
    return [a, b], lambda np, a, b: np.linalg.lstsq(a, b, **given), f"lstsq of {a!r}, {b!r}, {given}"


def result_of(run, np, arrays):
    """What a call gives and makes of its first argument, or its exception."""
    given = [np.array(a, order="K") for a in arrays]
    with warnings.catch_warnings(), onp.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            y = run(np, *given)
        except Exception as error:
            return type(error), []
    return type(y) if type(y) in (tuple, type(None)) else None, [*(y if type(y) is tuple else [y]), given[0]]


def steps(x):
    return [s for s, n in zip(x.strides, x.shape, strict=True) if n > 1]


@pytest.mark.long
@pytest.mark.parametrize("draw, bits", [(drawn_pad, True), (drawn_along_axis, True), (drawn_lstsq, False)])
def test_random_calls_agree_with_numpy(draw, bits):
    for seed in range(1500):
        arrays, run, text = draw(onp.random.default_rng(seed))
        wanted, want = result_of(run, onp, arrays)
        with THERE:
            form, got = result_of(run, np, arrays)
        assert form is wanted or (type(form) is type and issubclass(form, wanted)), (seed, text, form, wanted)
        for g, w in zip(got, want, strict=True):
            if w is None:
                continue
            g, w = onp.asarray(g), onp.asarray(w)
            assert (g.dtype, g.shape) == (w.dtype, w.shape), (seed, text, g.dtype, g.shape)
            if bits:
                assert g.tobytes() == w.tobytes(), (seed, text, g, w)
                assert not w.size or steps(g) == steps(w), (seed, text)
            else:
                part = 1e-3 if w.dtype.char in "fF" else 1e-9  # of the largest
                assert onp.allclose(g, w, part, part * (1 + onp.abs(w).max(initial=0))), (seed, text, g, w)
