"""Some fifty more libraries with compiled code (C, C++, Cython, Rust, SWIG, cffi) on our arrays, beside NumPy's.

Of each: a little program gives on our arrays what it gives on NumPy's, writes into our memory included; and one call
refuses an array that a trace follows, whose numbers would lose their gradient.
"""

import contextlib
import importlib.util
import io
import shutil
import subprocess
import sys
import sysconfig
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import grad
from minnp.core.arrays.array import VirtualArray
from minnp.core.rows import references
from minnp.errors import LostGradientWarning, NotDifferentiableError, TracedValueError


class Case(NamedTuple):
    modules: str  # what it needs, the library first
    program: Callable  # (library, np, array) -> what is compared
    call: Callable  # (library, array): one thing that reads the array
    array: onp.ndarray


CASES: list[Case] = []
RNG = onp.random.default_rng(0)
PLANE, LINE = RNG.random((12, 16)), RNG.random(64)


def case(modules: str, call: Callable, array: onp.ndarray = PLANE) -> Callable:
    """Decorator of a library's program."""
    return lambda program: CASES.append(Case(modules, program, call, array))


# ------------------------------------------------------------------ compilers for Python
@case("numba", lambda numba, x: numba.njit(lambda a: a.sum())(x))
def numba(numba, np, a):
    @numba.njit
    def smooth(a, out):
        for i in range(1, len(a) - 1):
            out[i] = (a[i - 1] + a[i] + a[i + 1]) / 3
        return out

    @numba.vectorize(["f8(f8, f8)"])
    def clipped(x, y):
        return min(x, y)

    @numba.guvectorize(["f8[:], f8[:]"], "(n)->(n)")
    def running(x, out):
        total = 0.0
        for i in range(len(x)):
            total += x[i]
            out[i] = total

    out, product = np.zeros_like(a), numba.njit(lambda a, b: a @ b)
    given = smooth(a, out)
    assert given is out
    return out, clipped(a, 0.5), running(a, np.empty_like(a)), product(a, a.T.copy())


# ------------------------------------------------------------------ C and the C API of NumPy
@case("bottleneck", lambda bn, x: bn.move_sum(x, 2))
def bottleneck(bn, np, a):
    b = a.copy()
    bn.replace(b, a[0, 0], 7.0)
    return b, bn.move_mean(a, 3), bn.nanmedian(a, axis=0), bn.rankdata(a, axis=1), bn.partition(a, 2), bn.nanmax(a)


@case("fast_histogram", lambda lib, x: lib.histogram1d(x, 4, (0, 1)), LINE)
def fast_histogram(lib, np, a):
    return lib.histogram1d(a, 8, (0, 1)), lib.histogram2d(a, a[::-1], 4, ((0, 1), (0, 1)), weights=np.ones(64))


@case("shapely", lambda shapely, x: shapely.length(shapely.linestrings(x)), RNG.random((20, 2)))
def shapely(shapely, np, a):
    hull, points, areas = shapely.MultiPoint(a).convex_hull, shapely.points(a), np.zeros(2)
    shapely.area(np.array([hull, hull.buffer(1)], dtype=object), out=areas)
    inside = shapely.contains_xy(hull, a[:, 0], a[:, 1])
    return areas, inside, shapely.distance(points, points[0]), shapely.get_coordinates(hull), [shapely.Polygon(a).area]


@case("erfa", lambda erfa, x: erfa.s2c(x, x), LINE)
def erfa(erfa, np, a):
    out = erfa.s2c(a, a)
    return out, *erfa.c2s(out), erfa.rxp(np.eye(3), out), erfa.gmst06(2.4e6, a, 2.4e6, a)


@case("astropy.convolution", lambda lib, x: lib.convolve(x, [0.2, 0.6, 0.2]), LINE)
def astropy(convolution, np, a):
    from astropy import stats, units
    from astropy.coordinates import SkyCoord
    from astropy.io import fits
    from astropy.table import Table

    memory = io.BytesIO()
    fits.PrimaryHDU(a).writeto(memory)
    sky, speed = SkyCoord(a, a, unit="deg"), a * units.m / units.s
    table = Table({"a": a, "b": np.arange(64)}).group_by("b")
    read = fits.open(io.BytesIO(memory.getvalue()))[0].data.astype("f8")
    return (
        *(read, convolution.convolve(a, np.ones(3)), stats.sigma_clip(a, 2).filled(0), sky.galactic.l.value),
        *(speed.to("km/h").value, np.sqrt(speed * speed).value, table["a"].data),
    )


@case("igraph", lambda lib, x: lib.Graph.Weighted_Adjacency(x), PLANE[:, :12])
def igraph(igraph, np, a):
    graph = igraph.Graph.Weighted_Adjacency(a @ a.T)
    ring = igraph.Graph(np.array([[0, 1], [1, 2], [2, 0]]))
    ring.es["weight"] = np.arange(1.0, 4)
    return [graph.ecount(), *graph.es["weight"]], ring.get_edgelist(), ring.pagerank(weights="weight")


@case("scs", lambda scs, x: scs.SCS({"A": _sparse(x), "b": x[:, 0], "c": x[0]}, {"z": len(x)}, verbose=False))
def scs(scs, np, a):
    data = {"A": _sparse(-np.eye(3)), "b": np.zeros(3), "c": np.array([1.0, 2, 3]), "P": _sparse(np.eye(3))}
    found = scs.SCS(data, {"l": 3}, verbose=False).solve()
    return found["x"], found["y"]


def _sparse(x):
    from scipy import sparse

    return sparse.csc_matrix(x)


# ------------------------------------------------------------------ Cython
@case("pywt", lambda pywt, x: pywt.dwt(x, "db2"))
def wavelets(pywt, np, a):
    levels = pywt.wavedec2(a, "haar", level=2)
    return pywt.waverec2(levels, "haar"), *pywt.dwt(a, "db2"), pywt.threshold(a, 0.5), pywt.cwt(a[0], [1, 2], "mexh")[0]


@case("statsmodels.api", lambda sm, x: sm.tsa.SARIMAX(x, order=(1, 0, 0)).loglike([0.5, 1.0]), LINE)
def statsmodels(sm, np, a):
    from statsmodels.nonparametric.smoothers_lowess import lowess
    from statsmodels.tsa.holtwinters import SimpleExpSmoothing

    fit = sm.OLS(a, sm.add_constant(np.arange(64.0))).fit()
    smooth = (
        SimpleExpSmoothing(a, initialization_method="heuristic").fit(smoothing_level=0.5, optimized=False).fittedvalues
    )
    model = sm.tsa.SARIMAX(a, order=(1, 0, 0))
    return fit.params, fit.bse, lowess(a, np.arange(64.0), frac=0.3), smooth, [model.loglike(np.array([0.5, 1.0]))]


@case("pyfftw", lambda lib, x: lib.interfaces.numpy_fft.rfft(x), LINE)
def pyfftw(pyfftw, np, a):
    given, found = np.zeros(64), np.zeros(33, "c16")
    plan = pyfftw.FFTW(given, found, flags=("FFTW_ESTIMATE",))
    given[:] = a
    plan()  # reads and writes where they lie
    return found, pyfftw.interfaces.numpy_fft.fft(a)


@case("pyproj", lambda lib, x: lib.Transformer.from_crs(4326, 3857).transform(x, x), LINE)
def pyproj(pyproj, np, a):
    x, y = a.copy(), a.copy()
    pyproj.Transformer.from_crs(4326, 32631, always_xy=True).transform(x, y, inplace=True)
    return x, y, *pyproj.Geod(ellps="WGS84").inv(a, a, a[::-1], a), pyproj.Proj("EPSG:3857")(a, a)[1]


@case("tables", lambda tables, x: _stored(tables, x))
def pytables(tables, np, a):
    with tables.open_file("memory.h5", "w", driver="H5FD_CORE", driver_core_backing_store=0) as file:
        stored = file.create_carray("/", "a", obj=a)
        stored[1:3] = np.zeros((2, 16))
        stored[:, np.array([0, 2])] = np.ones((12, 2))
        rows = np.zeros(3, [("x", "f8"), ("n", "i4")])
        rows["x"] = a[0, :3]
        table = file.create_table("/", "t", obj=rows)
        grown = file.create_earray("/", "e", obj=a[:2])
        grown.append(a[2:4])
        out = np.empty((12, 16))
        stored.read(out=out)
        return out, table.read_where("x > 0.3")["x"], grown[:], stored[np.array([1, 5]), :]


def _stored(tables, x):
    with tables.open_file("memory.h5", "w", driver="H5FD_CORE", driver_core_backing_store=0) as file:
        return file.create_array("/", "a", obj=x)[:]


@case("blosc2", lambda blosc2, x: blosc2.asarray(x)[:])
def blosc2(blosc2, np, a):
    stored = blosc2.asarray(a, chunks=(4, 4))
    stored[0] = np.zeros(16)
    packed = blosc2.unpack_array2(blosc2.pack_array2(a))
    return stored[:4, 1:3], packed, blosc2.sum(stored, axis=0), np.frombuffer(blosc2.decompress2(blosc2.compress2(a)))


@case("numcodecs", lambda lib, x: lib.Zstd().encode(x))
def numcodecs(numcodecs, np, a):
    out, scale = np.empty_like(a), numcodecs.FixedScaleOffset(offset=0, scale=100, dtype="f8", astype="u1")
    numcodecs.Blosc("zstd").decode(numcodecs.Blosc("zstd").encode(a), out=out)
    return out, scale.encode(a), numcodecs.Delta("f8").encode(a), [numcodecs.LZ4().encode(a)]


@case("zarr", lambda zarr, x: zarr.array(x)[:])
def zarr(zarr, np, a):
    stored = zarr.create_array({}, data=a, chunks=(5, 5))
    stored[2:4, 3] = np.array([8.0, 9.0])
    stored.oindex[np.array([0, 1]), np.array([2, 5])] = np.zeros((2, 2))
    stored.attrs["steps"] = [1, 2]
    return stored[:], stored.vindex[np.array([1, 2]), np.array([3, 4])]


@case("fpzip", lambda fpzip, x: fpzip.compress(x))
def fpzip(fpzip, np, a):
    return fpzip.decompress(fpzip.compress(a)), [fpzip.compress(a, precision=16)]


@case("imagecodecs", lambda lib, x: lib.lzf_encode(x), PLANE.astype("f4"))
def imagecodecs(lib, np, a):
    out = np.zeros_like(a)
    lib.tiff_decode(lib.tiff_encode(a), out=out)
    b = (255 * a).astype("u1")
    return out, lib.jpeg_decode(lib.jpeg8_encode(b)), lib.png_decode(lib.png_encode(b)), lib.floatpred_encode(a)


@case("fastparquet", lambda lib, x: _parquet(lib, x), LINE)
def fastparquet(lib, np, a):
    found = lib.ParquetFile(_parquet(lib, a)).to_pandas()
    return found["a"].to_numpy(), [found["a"].sum()]


def _parquet(lib, a):
    import pandas

    lib.write("a.parquet", pandas.DataFrame({"a": a}))
    return "a.parquet"


@case("pycocotools.mask", lambda lib, x: lib.iou(x, x, [0, 0]), onp.array([[0.0, 0, 3, 3], [1, 1, 4, 4]]))
def pycocotools(lib, np, a):
    runs = lib.encode(np.asfortranarray(PLANE > 0.5, "u1"))
    return lib.decode(runs), lib.area(runs), lib.toBbox(runs), lib.iou(a, a[:1], [0])


@case("blis.py", lambda blis, x: blis.gemm(x, x), PLANE[:, :12].copy())
def blis(blis, np, a):
    out = np.zeros((12, 12))
    blis.gemm(a, a, out=out)
    return out, blis.einsum("ab,bc->ac", a, a)


@case("thinc.api", lambda thinc, x: thinc.Relu(2, 16).initialize().predict(x), PLANE.astype("f4"))
def thinc(thinc, np, a):
    thinc.fix_random_seed(0)
    ops, model = thinc.NumpyOps(), thinc.chain(thinc.Relu(8), thinc.Softmax())
    model.initialize(a, a)
    found, back = model(a, is_train=True)
    return found, back(found - a), ops.seq2col(a, 1), ops.maxout(a.reshape(12, 8, 2))[0], ops.mish(a)


@case("rasterio.features", lambda lib, x: list(lib.shapes(x)), (PLANE > 0.5).astype("f4"))
def rasterio(features, np, a):
    import rasterio
    from rasterio.io import MemoryFile
    from rasterio.warp import Resampling, reproject

    turn, out = rasterio.Affine(1, 0, 0, 0, -1, 12), np.zeros((6, 8), "f4")
    kind = {"crs": "EPSG:3857", "transform": turn}
    with MemoryFile() as memory:
        with memory.open(driver="GTiff", height=12, width=16, count=1, dtype="f4", **kind) as file:
            file.write(a, 1)
        with memory.open() as file:
            read = file.read(1, out=np.zeros((12, 16), "f4"))
    half = rasterio.Affine(2, 0, 0, 0, -2, 12)
    ends = {"src_transform": turn, "dst_transform": half, "src_crs": "EPSG:3857", "dst_crs": "EPSG:3857"}
    reproject(a, out, resampling=Resampling.nearest, **ends)
    burnt = features.rasterize([({"type": "Point", "coordinates": (3, 3)}, 7)], out=np.zeros((12, 16), "u1"))
    return read, out, burnt, features.sieve(a.astype("u1"), 3), [str(list(features.shapes(a)))]


# ------------------------------------------------------------------ C++ by pybind11 and nanobind
@case("contourpy", lambda lib, x: lib.contour_generator(z=x).lines(0.5))
def contourpy(lib, np, a):
    made = lib.contour_generator(np.arange(16.0), np.arange(12.0), a)
    return [*made.lines(0.5), *made.filled(0.2, 0.6)[1]]


@case("osqp", lambda lib, x: lib.OSQP().setup(_sparse(onp.eye(64)), x, _sparse(onp.eye(64)), x, x, verbose=False), LINE)
def osqp(osqp, np, a):
    eye = _sparse(np.eye(64))
    solver = osqp.OSQP()
    solver.setup(eye, -a, eye, np.zeros(64), np.full(64, 0.5), verbose=False, eps_abs=1e-9, eps_rel=1e-9)
    first = solver.solve().x.copy()
    solver.update(q=a)
    return first, solver.solve().x


@case("highspy", lambda lib, x: lib.Highs().addCols(64, x, x, x, 0, [], [], []), LINE)
def highspy(highspy, np, a):
    solver = highspy.Highs()
    solver.silent()
    no = np.array([], "i4")
    solver.addCols(64, a, np.zeros(64), np.ones(64), 0, no, no, np.array([]))
    solver.addRow(3.0, 99.0, 64, np.arange(64, dtype="i4"), np.ones(64))
    solver.run()
    return np.array(solver.getSolution().col_value), [solver.getInfo().objective_function_value]


@case("ducc0", lambda lib, x: lib.fft.r2c(x))
def ducc0(ducc0, np, a):
    out = np.empty((12, 9), "c16")
    ducc0.fft.r2c(a, out=out)
    return out, ducc0.fft.dct(a, 2), ducc0.misc.GL_weights(4, 5), [ducc0.misc.vdot(a, a)]


@case("mapbox_earcut", lambda lib, x: lib.triangulate_float64(x, onp.array([4], "u4")), onp.eye(4)[:, :2] * 3.0)
def mapbox_earcut(lib, np, a):
    corners = np.array([[0.0, 0], [4, 0], [4, 4], [0, 4]])
    return [lib.triangulate_float64(corners, np.array([4], "u4"))]


@case("samplerate", lambda lib, x: lib.resample(x, 2.0), LINE.astype("f4"))
def samplerate(lib, np, a):
    return lib.resample(a, 2.0, "sinc_fastest"), lib.Resampler("linear").process(a, 0.5, end_of_input=True)


@case("healpy", lambda lib, x: lib.anafast(x, lmax=4, iter=0), onp.arange(192.0))
def healpy(healpy, np, a):
    a = a.copy()
    waves = healpy.map2alm(a, lmax=8, iter=1)
    return (
        *(waves, healpy.alm2map(waves, 4), healpy.ang2pix(4, np.arange(3.0), np.arange(3.0))),
        *(healpy.ud_grade(a, 2), healpy.anafast(a, lmax=4), healpy.query_disc(4, np.array([1.0, 0, 0]), 0.5)),
    )


# ------------------------------------------------------------------ SWIG, cffi, ctypes
@case("faiss", lambda lib, x: lib.IndexFlatL2(16).add(x), PLANE.astype("f4"))
def faiss(faiss, np, a):
    index = faiss.IndexFlatL2(16)
    index.add(a)
    near, which = np.empty((12, 3), "f4"), np.empty((12, 3), "i8")
    index.search(a, 3, D=near, I=which)
    unit = a.copy()
    faiss.normalize_L2(unit)  # in place
    return near, which, unit, index.reconstruct(2), faiss.kmin(a, 2)[0]


@case("SimpleITK", lambda lib, x: lib.GetImageFromArray(x))
def simpleitk(lib, np, a):
    image = lib.GetImageFromArray(a)
    return lib.GetArrayFromImage(lib.SmoothingRecursiveGaussian(image, 2.0)), [image.GetPixel(3, 2), *image.GetSize()]


@case("soundfile", lambda lib, x: lib.write(io.BytesIO(), x, 8000, format="WAV"), LINE)
def soundfile(lib, np, a):
    memory = io.BytesIO()
    lib.write(memory, a, 8000, format="WAV", subtype="DOUBLE")
    out = np.zeros(64)
    lib.read(io.BytesIO(memory.getvalue()), out=out)
    return out, np.frombuffer(memory.getvalue()[-64:])


@case("rtree.index", lambda lib, x: lib.Index().insert(0, x), onp.array([0.0, 0, 1, 1]))
def rtree(lib, np, a):
    low = np.linspace(0, 1, 20).reshape(10, 2)
    tree = lib.Index((np.arange(10), low, low + 0.2))
    tree.insert(10, a)
    return sorted(tree.intersection(a)), *tree.intersection_v(low[:2], low[:2] + 0.3)


# ------------------------------------------------------------------ Rust
@case("orjson", lambda lib, x: lib.dumps(x, option=lib.OPT_SERIALIZE_NUMPY))
def orjson(lib, np, a):
    return [lib.dumps({"a": a, "n": np.arange(3), "f": np.float32(2)}, option=lib.OPT_SERIALIZE_NUMPY)]


@case(
    "clarabel",
    lambda lib, x: lib.DefaultSolver(
        _sparse(onp.eye(64)), x, _sparse(onp.eye(64)), x, [lib.NonnegativeConeT(64)], lib.DefaultSettings()
    ),
    LINE,
)
def clarabel(lib, np, a):
    settings = lib.DefaultSettings()
    settings.verbose = False
    eye = _sparse(np.eye(64))
    found = lib.DefaultSolver(eye, -a, eye, np.full(64, 0.5), [lib.NonnegativeConeT(64)], settings).solve()
    return found.x, found.z


@case("safetensors.numpy", lambda lib, x: lib.save({"a": x}))
def safetensors(lib, np, a):
    return lib.load(lib.save({"a": a, "n": np.arange(3)}))["a"], [lib.save({"a": a})]


@case("rapidfuzz.distance", lambda lib, x: lib.Levenshtein.distance(x, x), onp.array([1.0, 2, 3, 2]))
def rapidfuzz(distance, np, a):
    from rapidfuzz import process

    words = np.array(["minus", "minimum", "mint"])
    found = process.cdist(words.tolist(), ["min"], dtype=np.float32)
    return found, [distance.Levenshtein.distance(a, a[::-1]), distance.Hamming.distance(a, np.array([1.0, 2, 3, 3]))]


# ------------------------------------------------------------------ pictures, texts and shapes in C behind Python
@case("PIL.Image", lambda lib, x: lib.fromarray(x), PLANE.astype("f4"))
def pillow(lib, np, a):
    image, b = lib.fromarray(a), (255 * a).astype("u1")
    image.putpixel((0, 0), 3)
    palette, shared = lib.fromarray(np.stack([b, b, b], axis=-1)).quantize(4), lib.frombuffer("L", (16, 12), b)
    b[0, 0] = 9
    return np.asarray(image.resize((8, 6))), np.asarray(palette), [shared.getpixel((0, 0))]


@case("msgpack_numpy, msgpack", lambda lib, x: lib.packb(x))
def msgpack(lib, np, a):
    return lib.unpackb(lib.packb(a)), [lib.packb({"a": a, "f": np.float32(1)})]


@case("sparse", lambda lib, x: lib.COO.from_numpy(x))
def sparse(lib, np, a):
    found = lib.COO.from_numpy(np.where(a > 0.5, a, 0.0))
    return (
        found.todense(),
        (found @ a.T),
        lib.COO(np.array([[0, 1], [1, 2]]), np.ones(2), shape=(3, 3)).sum(0).todense(),
    )


@case("trimesh", lambda lib, x: lib.Trimesh(x, [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]).area, onp.eye(4, 3))
def trimesh(lib, np, a):
    mesh = lib.Trimesh(a, np.array([[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]))
    mesh.apply_transform(np.diag(np.array([2.0, 1, 1, 1])))
    return mesh.vertices, mesh.face_normals, [mesh.area, mesh.volume], mesh.bounds


@case("pymupdf", lambda lib, x: lib.Matrix(*x), onp.arange(6.0))
def pymupdf(lib, np, a):
    page = lib.open().new_page(width=30, height=20)
    page.draw_polyline(np.array([[2.0, 2], [9, 9], [2, 9]]).tolist(), fill=(1, 0, 0))
    drawn = page.get_pixmap()
    return np.frombuffer(drawn.samples, "u1"), [tuple(lib.Matrix(*a))]


@case("edt", lambda edt, x: edt.edt(x), (PLANE > 0.5).astype("f4"))
def distances(edt, np, a):
    return edt.edt(a), edt.edt(a, anisotropy=np.array([1.0, 2.0]))


@case("cc3d", lambda lib, x: lib.connected_components(x, delta=0.1), PLANE.astype("f4"))
def components(cc3d, np, a):
    labels = cc3d.connected_components((a > 0.5).astype("u4"), connectivity=4)
    return labels, cc3d.statistics(labels)["centroids"]


@case("jenkspy", lambda lib, x: lib.jenks_breaks(x, 3), LINE)
def jenkspy(lib, np, a):
    return lib.jenks_breaks(a, n_classes=3), lib.JenksNaturalBreaks(3).fit(a) or []


@case("bitshuffle", lambda lib, x: lib.bitshuffle(x), PLANE)
def bitshuffle(lib, np, a):
    return lib.bitunshuffle(lib.bitshuffle(a)), lib.compress_lz4(a)


@case("ruptures", lambda lib, x: lib.KernelCPD("rbf").fit_predict(x, n_bkps=1), LINE)
def ruptures(lib, np, a):
    return lib.KernelCPD("linear").fit_predict(a, n_bkps=2), lib.Pelt("l2").fit_predict(a, pen=1)


@case("hdbscan", lambda lib, x: lib.HDBSCAN(3).fit(x))
def hdbscan(lib, np, a):
    return lib.HDBSCAN(3).fit(a).labels_, lib.HDBSCAN(2, algorithm="generic").fit(a).probabilities_


# ------------------------------------------------------------------ the tests
def check(program: Callable, library: Any, a: onp.ndarray) -> None:
    """The program gives on our arrays what it gives on NumPy's, in value and dtype."""
    theirs, ours = program(library, onp, a.copy("K")), program(library, np, np.array(a, copy=True, order="K"))
    for x, y in zip(theirs, ours, strict=True):
        x, y = onp.asarray(x), onp.asarray(y)
        assert x.dtype == y.dtype
        onp.testing.assert_array_equal(x, y)


def imported(case: Case) -> Any:
    """The library of a case; the test is skipped where it, or what it needs, is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library, *_ = [pytest.importorskip(name) for name in case.modules.split(", ")]
        return library


# Code that asks for NumPy's very class: numpy.asarray(x) is what it takes.
_EXACT = "asks for numpy.ndarray itself, no subclass"
NOT_YET = dict.fromkeys(("orjson", "pycocotools"), (_EXACT, "same _given _written _viewed"))
# Frees its result twice where NumPy refuses it the array, as one of objects: the process may die of its next error.
ALONE = ("fast_histogram",)


def _marked(case: Case, *what: Any) -> Any:
    """The parameters of a test of a case, expected to fail where NOT_YET says so."""
    name = case.program.__name__
    reason, of = NOT_YET.get(name, ("", ""))
    failing = (what[0].__name__ if what else "same") in of.split()
    marks = [pytest.mark.xfail(reason=reason)] if failing else []
    return pytest.param(case, *what, id="-".join([name, *(x.__name__.strip("_") for x in what)]), marks=marks)


@pytest.mark.parametrize("case", [_marked(case) for case in CASES])
def test_a_library_computes_with_our_arrays_as_with_numpys(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    library = imported(case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the libraries' own
        check(case.program, library, case.array)


def _given(p, a):
    return p.astype(a.dtype)


def _written(p, a):
    x = np.array(a, copy=True, order="K")
    x.reshape(-1, order="A")[:1] = p.ravel()[:1]
    return x


def _viewed(p, a):
    both = np.array([a, a])
    x = both[0]
    both[0] = p  # after the view was taken
    return x


TRACED = (_given, _written, _viewed)


@pytest.mark.parametrize("case, traced", [_marked(case, traced) for case in CASES for traced in TRACED])
def test_no_library_gives_numbers_without_their_gradient(case, traced, tmp_path, monkeypatch):
    """It raises; or, where all it does is NumPy's, its result is traced."""
    monkeypatch.chdir(tmp_path)
    library, given = imported(case), []
    if case.program.__name__ in ALONE and traced is not _given:
        return alone(case, traced)

    def f(p):
        given.append(case.call(library, traced(p, case.array)))
        return np.sum(given[0])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case.call(library, np.array(case.array, copy=True, order="K"))  # it is the trace that it refuses
        with pytest.raises(Exception):
            grad(f)(np.array(case.array, "f8"))
    assert all(type(y) is VirtualArray for y in given), given


def alone(case: Case, traced: Callable) -> None:
    """The same in a process of its own, which ends as soon as the library has raised."""
    program = f"""
import importlib, os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from minnp import grad
from test_more_libraries import {traced.__name__} as traced, CASES, np
case, = [c for c in CASES if c.program.__name__ == {case.program.__name__!r}]
def f(p):
    try:
        case.call(importlib.import_module({case.modules!r}), traced(p, case.array))
    except Exception:
        os._exit(7)
grad(f)(np.array(case.array))
"""
    assert subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parent.parent).returncode == 7


@pytest.mark.parametrize("codec", ["bitorder", "delta", "floatpred", "lzf", "tiff", "xor", "zlib", "zstd"])
@pytest.mark.parametrize("traced", TRACED)
def test_no_codec_reads_what_a_trace_follows(codec, traced):
    codecs = pytest.importorskip("imagecodecs")
    encode, raised = getattr(codecs, f"{codec}_encode"), []

    def f(p):
        with pytest.raises(Exception) as found:
            encode(traced(p, PLANE.astype("f4")))
        raised.append(found.value)
        return p.sum()

    encode(np.array(PLANE, "f4"))
    grad(f)(np.array(PLANE))
    assert raised


@pytest.mark.parametrize("name", ["flags", "strides", "ctypes", "data", "__array_interface__", "__array_struct__"])
@pytest.mark.parametrize("traced", [_written, _viewed])
def test_nobody_is_told_how_the_memory_of_a_followed_array_lies(name, traced):
    def f(p):
        x = traced(p, PLANE)
        with pytest.raises(AttributeError if name.startswith("__") else TracedValueError):
            getattr(x, name)
        assert getattr(np.stop_gradient(x), name) is not None
        assert (x.shape, x.ndim, x.size, x.dtype, x.itemsize, x.nbytes) == (PLANE.shape, 2, 192, float, 8, 1536)
        kept.append(x)
        return x.sum()

    kept = []
    grad(f)(np.array(PLANE))
    assert getattr(kept[0], name) is not None


def geometries(shapely):
    return {
        "one": lambda x: shapely.linestrings(x).length,
        "ufunc of many": lambda x: shapely.length(shapely.linestrings(onp.stack([x, x]))).sum(),
        "coordinates": lambda x: shapely.get_coordinates(shapely.points(x)).sum(),
        "elements": lambda x: sum(point.x for point in shapely.points(x)),
        "list": lambda x: sum(point.x for point in shapely.points(x).tolist()),
        "item": lambda x: shapely.points(x)[0].x,
    }


@pytest.mark.parametrize("how", geometries(None))
@pytest.mark.parametrize("traced", TRACED)
def test_no_geometry_hides_a_traced_number(how, traced):
    shapely = pytest.importorskip("shapely")
    array, call = onp.array([[3.0, 1], [2, 5]]), geometries(shapely)[how]
    assert call(np.array(array)) > 0
    with pytest.raises((TracedValueError, NotDifferentiableError)):
        grad(lambda p: call(traced(p, array)))(np.array(array))


# ------------------------------------------------------------------ modules of one's own
CYTHON = """
# cython: language_level=3
cimport numpy as cnp
cnp.import_array()

def by_view(const double[:, :] a, double[:, ::1] out):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = 2 * a[i, j]

def by_class(cnp.ndarray[double, ndim=2] a, cnp.ndarray[double, ndim=2] out):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = a[i, j] + 1

def total(const double[:, :] a):
    cdef double found = 0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            found += a[i, j]
    return found

def total_of_class(cnp.ndarray[double, ndim=2] a):
    cdef double found = 0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            found += a[i, j]
    return found
"""

PYBIND = """
#include <pybind11/numpy.h>
namespace py = pybind11;
using Doubles = py::array_t<double>;
using Any = py::array_t<double, py::array::c_style | py::array::forcecast>;

PYBIND11_MODULE(ours_pybind, m) {
    m.def("scale", [](Doubles a, double by) {  // where it lies
        auto x = a.mutable_unchecked<2>();
        for (py::ssize_t i = 0; i < x.shape(0); i++)
            for (py::ssize_t j = 0; j < x.shape(1); j++) x(i, j) *= by;
        return a;
    }, py::arg().noconvert(), py::arg());
    m.def("total", [](Doubles a) {
        auto x = a.unchecked<2>();
        double sum = 0;
        for (py::ssize_t i = 0; i < x.shape(0); i++)
            for (py::ssize_t j = 0; j < x.shape(1); j++) sum += x(i, j);
        return sum;
    });
    m.def("doubled", py::vectorize([](double x) { return 2 * x; }));
    m.def("corner", [](Any a) { return *a.data(); });
}
"""

C = """
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>

static PyObject *total(PyObject *self, PyObject *args) {
    PyArrayObject *a;
    if (!PyArg_ParseTuple(args, "O!", &PyArray_Type, &a)) return NULL;
    if (PyArray_TYPE(a) != NPY_DOUBLE || PyArray_NDIM(a) != 2) {
        PyErr_SetString(PyExc_TypeError, "float64[n, m] is needed");
        return NULL;
    }
    double sum = 0;
    for (npy_intp i = 0; i < PyArray_DIM(a, 0); i++)
        for (npy_intp j = 0; j < PyArray_DIM(a, 1); j++) sum += *(double *)PyArray_GETPTR2(a, i, j);
    return PyFloat_FromDouble(sum);
}

static PyObject *fill(PyObject *self, PyObject *args) {
    PyArrayObject *a;
    double value;
    if (!PyArg_ParseTuple(args, "O!d", &PyArray_Type, &a, &value)) return NULL;
    if (PyArray_TYPE(a) != NPY_DOUBLE || PyArray_FailUnlessWriteable(a, "a") < 0) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "float64 is needed");
        return NULL;
    }
    for (npy_intp i = 0; i < PyArray_DIM(a, 0); i++)
        for (npy_intp j = 0; j < PyArray_DIM(a, 1); j++) *(double *)PyArray_GETPTR2(a, i, j) = value;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"total", total, METH_VARARGS}, {"fill", fill, METH_VARARGS}, {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "ours_c", NULL, -1, methods};
PyMODINIT_FUNC PyInit_ours_c(void) { import_array(); return PyModule_Create(&module); }
"""


def built(name: str, source: Path, *includes: str) -> Any:
    """The module of a C or C++ file, compiled beside it; the test is skipped without a compiler or Python's headers."""
    compiler = shutil.which("g++" if source.suffix == ".cpp" else "gcc")
    headers = sysconfig.get_path("include")
    if compiler is None or not Path(headers, "Python.h").exists():
        pytest.skip("needs gcc and Python's headers")
    to = source.with_name(name + sysconfig.get_config_var("EXT_SUFFIX"))
    folders = [f"-I{folder}" for folder in (headers, onp.get_include(), *includes)]
    command = [compiler, "-w", "-O1", "-shared", "-fPIC", *folders, str(source), "-o", str(to)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    spec = importlib.util.spec_from_file_location(name, to)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def refuses(call: Callable, a: onp.ndarray) -> None:
    """The call raises whichever way a trace follows the array."""
    for traced in TRACED:
        raised = []

        def f(p, traced=traced, raised=raised):
            with pytest.raises(Exception) as found:
                call(traced(p, a))
            raised.append(found.value)
            return p.sum()

        call(np.array(a))
        grad(f)(np.array(a))
        assert raised


def test_a_cython_module_reads_and_writes_our_arrays(tmp_path):
    build = pytest.importorskip("Cython.Build.Dependencies")
    source = tmp_path / "ours_cython.pyx"
    source.write_text(CYTHON)
    build.cythonize([str(source)], quiet=True)
    module = built("ours_cython", source.with_suffix(".c"))

    def program(module, np, a):
        one, two = np.zeros(a.shape), np.zeros(a.shape)
        module.by_view(a, one)
        module.by_class(a, two)
        transposed = np.zeros((16, 12))
        module.by_view(a.T, transposed)
        return one, two, transposed, [module.total(a[::2, 1:]), module.total_of_class(a[::2, 1:]), module.total(one)]

    check(program, module, PLANE)
    for call in (module.total, module.total_of_class, lambda x: module.by_view(onp.zeros(x.shape), x)):
        refuses(call, PLANE)


def test_a_buffer_that_is_held_outlives_a_trace():
    x = np.ones(3)
    held = memoryview(x)

    def f(p):
        with pytest.warns(LostGradientWarning) if references.COUNTED else contextlib.nullcontext():
            x[:] = p
        return x.sum()

    grad(f)(np.array([4.0, 5.0, 6.0]))
    others = [memoryview(onp.zeros(3, "i4")) for _ in range(20)]  # where the description of x was, if it was freed
    assert held.format == "d" and held.tolist() == [4, 5, 6] and len(others) == 20


def test_a_pybind11_module_reads_and_writes_our_arrays(tmp_path):
    pybind11 = pytest.importorskip("pybind11")
    source = tmp_path / "ours_pybind.cpp"
    source.write_text(PYBIND)
    module = built("ours_pybind", source, pybind11.get_include())

    def program(module, np, a):
        back = module.scale(a, 3.0)  # wrote where a lies
        assert np.shares_memory(back, a)
        return a, back, module.doubled(a), [module.total(a.T), module.corner(a.astype("i4"))]

    check(program, module, PLANE)
    for call in (module.total, module.doubled, module.corner, lambda x: module.scale(x, 2.0)):
        refuses(call, PLANE)


def test_a_c_extension_reads_and_writes_our_arrays(tmp_path):
    source = tmp_path / "ours_c.c"
    source.write_text(C)
    module = built("ours_c", source)

    def program(module, np, a):
        out = np.empty((3, 4))
        module.fill(out, 7.0)
        module.fill(a[2:4], 0.5)  # a view
        return out, a, [module.total(a), module.total(a.T)]

    check(program, module, PLANE)
    refuses(module.total, PLANE)
    refuses(lambda x: module.fill(x, 1.0), PLANE)
