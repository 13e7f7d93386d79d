"""What goes in as our array comes out as our array, in NumPy and SciPy; what does not is listed, with its reason."""

from __future__ import annotations

import importlib
import pickle
import types
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np

V, M, I, B = np.arange(1.0, 9.0), np.eye(4) + 0.1, np.array([1, 2, 3, 0]), np.arange(8) > 3
ARGUMENTS = [
    (V,), (M,), (V, V), (M, M), (M, M[0]), (V, 1), (M, 0), (I,), (B,), (V + 1j,), (V, 2, 0.5), (V, V, V), (I, V),
    (V, I), (1, V), (M, I, I), (B, V, V), (V, 3, 2), (lambda x: (x**2).sum(), V),
    (lambda x: x - 1.0, V), (lambda t, y: -y, (0, 1), V),
]  # fmt: skip

pytestmark = pytest.mark.host("classes of arrays in NumPy's memory")

# NumPy's functions that are called as NumPy's own
BASE_CLASS = "makes an array of NumPy's class of every subclass, which NumPy does not ask"
ELEMENTS = "NumPy asks the elements of a single array, which are scalars; minnp.numpy's gives ours"
OTHER_ARGUMENT = "NumPy asks another argument only, which is no array here"
NUMPYS = {
    **dict.fromkeys(["array", "asarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray"], BASE_CLASS),
    **dict.fromkeys(["from_dlpack", "frombuffer", "fromstring"], "reads memory: NumPy makes the array"),
    **dict.fromkeys(["column_stack", "dstack", "hstack", "vstack", "row_stack", "stack"], ELEMENTS),
    **dict.fromkeys(["poly", "roots", "select"], ELEMENTS),
    **dict.fromkeys(["in1d", "isin"], OTHER_ARGUMENT),
    **dict.fromkeys(["histogram_bin_edges", "piecewise", "polyint", "real_if_close", "roll"], OTHER_ARGUMENT),
    **dict.fromkeys(["empty", "indices", "ones", "zeros"], "the array is a shape"),
}  # fmt: skip
WRITING = ["copyto", "place", "put", "putmask", "fill_diagonal", "save", "savetxt", "savez", "savez_compressed"]
SKIPPED = [*WRITING, "test", "info", "source", "lookfor", "who", "disp", "show_config"]

SCIPY = """
special.expit(V) special.logsumexp(M, axis=0) special.legendre_p(2, V) special.sph_harm_y_all(2, 2, V, V)
special.softmax(V) special.jn_zeros(1, 3) special.lqn(2, 0.5)
linalg.inv(M) linalg.svd(M) linalg.lu(M) linalg.qr(M) linalg.eigh(M) linalg.expm(M) linalg.solve(M, M[0])
linalg.lstsq(M, M[0]) linalg.cho_factor(M) linalg.lu_factor(M) linalg.toeplitz(V) linalg.block_diag(M, M)
fft.fft(V) fft.rfftn(M) fft.dct(V) fft.fftshift(V) fft.fftfreq(8) fftpack.fft(V)
signal.lfilter([1.0], [1.0, 0.5], V) signal.convolve(V, V) signal.detrend(V) signal.welch(V, nperseg=4)
signal.find_peaks(-abs(V-4), height=-2) signal.butter(2, 0.2) signal.sosfilt(signal.butter(2, 0.2, output="sos"), V)
signal.windows.hann(5) signal.resample(V, 5) signal.tf2zpk(V, V)
ndimage.gaussian_filter(V, 1) ndimage.label(B) ndimage.value_indices(I) ndimage.zoom(M, 2)
ndimage.distance_transform_edt(B) ndimage.center_of_mass(M) ndimage.sum_labels(V, B, [0, 1])
stats.zscore(V) stats.rankdata(V) stats.ttest_1samp(M, 0) stats.norm.pdf(V) stats.spearmanr(M)
stats.describe(M) stats.binned_statistic(V, V) stats.norm.rvs(size=3) stats.linregress(V, V)
stats.bootstrap((V,), np.mean, n_resamples=9)
integrate.trapezoid(M) integrate.cumulative_trapezoid(V) integrate.quad_vec(lambda x: x * V, 0, 1)
integrate.solve_ivp(lambda t, y: -y, (0, 1), V) integrate.odeint(lambda y, t: -y, V, V)
optimize.minimize(lambda p: (p**2).sum(), V) optimize.least_squares(lambda p: p - 1, V)
optimize.root(lambda p: p - 1, V)
optimize.linprog(V) optimize.curve_fit(lambda x, a: a * x, V, V) optimize.fsolve(lambda p: p - 1, V, full_output=True)
optimize.linear_sum_assignment(M) optimize.nnls(M, M[0]) optimize.basinhopping(lambda p: (p**2).sum(), V, niter=1)
cluster.vq.whiten(M) cluster.vq.kmeans2(M, 2, seed=0) cluster.hierarchy.linkage(M)
cluster.hierarchy.fcluster(cluster.hierarchy.linkage(M), 2) spatial.distance.pdist(M) spatial.distance.cdist(M, M)
spatial.procrustes(M, M) interpolate.griddata(M[:, :2], M[0], M[:, :2], "nearest") interpolate.splrep(V, V)
sparse.csgraph.dijkstra(M) sparse.csgraph.connected_components(M) sparse.linalg.spsolve(M, M[0])
sparse.linalg.cg(M, M[0])
"""
OBJECTS = "an object of SciPy's class, whose methods give NumPy's arrays: minnp's functions take them"
SCIPYS = {
    "interpolate.CubicSpline(M[0].cumsum(), V[:4])(V)": OBJECTS,
    "interpolate.interp1d(V, V)(V)": OBJECTS,
    "spatial.cKDTree(M).query(M)": OBJECTS,
    "stats.gaussian_kde(V)(V)": OBJECTS,
    "stats.ttest_1samp(M, 0).confidence_interval()": OBJECTS,
}


def calls(text: str) -> Iterator[str]:
    """The calls in a text, which end where all their brackets are closed."""
    call = ""
    for part in text.split():
        call += " " * bool(call) + part
        if call.count("(") == call.count(")"):
            yield call
            call = ""


def arrays(x: Any) -> Iterator[onp.ndarray]:
    """The arrays in a result."""
    if isinstance(x, onp.ndarray):
        yield x
    elif isinstance(x, (tuple, list, dict)):
        for e in x.values() if isinstance(x, dict) else x:
            yield from arrays(e)


def foreign(x: Any) -> list[type]:
    """The classes of arrays in a result that are NumPy's."""
    return [type(a) for a in arrays(x) if type(a) is onp.ndarray]


def functions(module: types.ModuleType) -> dict[str, Any]:
    names = [n for n in dir(module) if not n.startswith("_") and n not in SKIPPED]
    found = {n: getattr(module, n) for n in names if not hasattr(np, n) or callable(getattr(np, n))}
    return {n: f for n, f in found.items() if callable(f) and not isinstance(f, type)}


def results(f: Any) -> Iterator[Any]:
    """What f returns for those of ARGUMENTS it takes that have an array of ours."""
    for args in ARGUMENTS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                yield f(*(a.copy() if isinstance(a, onp.ndarray) else a for a in args))
            except Exception:  # f takes other arguments
                continue


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", [onp, onp.linalg, onp.fft, np, np.linalg, np.fft], ids=lambda m: m.__name__)
def test_functions_of_numpy(module: types.ModuleType) -> None:
    leaking = {n for n, f in functions(module).items() for r in results(f) if foreign(r)}
    wanted = set(NUMPYS) if module is onp else set()
    assert not leaking - wanted


@pytest.fixture
def names() -> dict[str, Any]:
    pytest.importorskip("scipy")
    listed = "special linalg fft fftpack signal ndimage stats integrate optimize cluster spatial interpolate sparse"
    found = {n: importlib.import_module(f"minnp.scipy.{n}") for n in listed.split()}
    for part in (
        "cluster.vq",
        "cluster.hierarchy",
        "spatial.distance",
        "signal.windows",
        "sparse.csgraph",
        "sparse.linalg",
    ):
        importlib.import_module(f"minnp.scipy.{part}")
    return {**found, "np": np, "V": V, "M": M @ M.T, "I": I, "B": B}


@pytest.mark.filterwarnings("ignore")
def test_functions_of_scipy_under_our_name(names: dict[str, Any]) -> None:
    made = {call: eval(call, names) for call in calls(SCIPY)}
    assert {call: foreign(r) for call, r in made.items() if foreign(r)} == {}


@pytest.mark.parametrize("call", SCIPYS)
def test_what_gives_numpys_arrays_has_a_reason(call: str, names: dict[str, Any]) -> None:
    assert SCIPYS[call]
    assert foreign(eval(call, names))  # else it belongs in the table above


@pytest.mark.filterwarnings("ignore")
def test_ufuncs_of_scipy_itself(names: dict[str, Any]) -> None:
    scipy = pytest.importorskip("scipy")
    for name, f in vars(scipy.special).items():
        if isinstance(f, onp.ufunc) and f.signature is None and f.nin == 1:
            assert not foreign(f(V)), name


def test_functions_of_scipy_are_pickled(names: dict[str, Any]) -> None:
    listed = (
        "special.expit special.logsumexp linalg.inv fft.fft sparse.csgraph.dijkstra optimize.minimize signal.lfilter"
    )
    for f in (eval(name, names) for name in listed.split()):
        assert pickle.loads(pickle.dumps(f)) == f and f.__module__.startswith("minnp.scipy.")


def test_a_dictionary_among_elements_stays_what_it_is() -> None:
    held = {"a": onp.ones(2)}
    x = np.array([held, held], dtype=object)
    assert x[0] is held and x.item(0) is held and np.take(x, 0) is held and type(held["a"]) is onp.ndarray
