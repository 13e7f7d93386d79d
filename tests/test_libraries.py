"""Libraries with compiled code that looks at an array's class, on our arrays, beside the same calls on NumPy's."""

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import grad
from minnp.core.compiled import fastpath


def same(program, *arrays):
    """The program gives on our arrays what it gives on NumPy's; returns its result on ours."""
    theirs, ours = program(onp, *[a.copy() for a in arrays]), program(np, *[np.array(a) for a in arrays])
    for a, b in zip(theirs, ours, strict=True):
        assert onp.asarray(a).dtype == onp.asarray(b).dtype
        onp.testing.assert_array_equal(onp.asarray(a), onp.asarray(b))
    return ours


def test_opencv():
    cv2 = pytest.importorskip("cv2")
    rng = onp.random.default_rng(0)
    image, plane = rng.integers(0, 255, (40, 50, 3)).astype("u1"), rng.random((40, 50)).astype("f4")

    def program(np, image, plane):
        drawn = image.copy()
        cv2.circle(drawn, (10, 10), 5, (255, 0, 0), -1)  # written where it lies
        cv2.fillPoly(drawn, [np.array([[1, 1], [30, 1], [30, 20]])], (0, 255, 0))
        turned = cv2.warpAffine(plane, np.float32([[1, 0, 2], [0, 1, 3]]), (50, 40))
        histogram = cv2.calcHist([image], [0], None, [16], [0, 256])
        _, features = cv2.SIFT_create().detectAndCompute(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), None)
        blurred = cv2.GaussianBlur(plane, (5, 5), 0) + np.ones_like(plane)
        cv2.KalmanFilter(4, 2).correct(np.ones((2, 1), "f4"))
        return drawn, turned, histogram, features, blurred, cv2.dnn.blobFromImage(image)

    same(program, image, plane)
    with pytest.raises(cv2.error, match="not a numpy array"):
        grad(lambda x: cv2.blur(x, (3, 3)).sum())(np.asarray(plane))


def test_scikit_image():
    filters, transform, measure = (pytest.importorskip(f"skimage.{x}") for x in ("filters", "transform", "measure"))
    plane = onp.random.default_rng(1).random((30, 40))

    def program(np, plane):
        lines, angles, _ = transform.hough_line(plane > 0.8)  # compiled for numpy.ndarray alone
        areas = [region.area for region in measure.regionprops(measure.label(plane > 0.6))]
        smaller = measure.block_reduce(plane, (2, 2), np.mean)
        return lines, angles, areas, smaller, filters.sobel(plane), transform.rotate(plane, 30)

    same(program, plane)


def test_h5py(tmp_path):
    h5py = pytest.importorskip("h5py")

    def program(np, a):
        with h5py.File(tmp_path / f"{np.__name__}.h5", "w") as file:
            data = file.create_dataset("a", data=a, compression="gzip")
            data[0] = np.zeros(4)
            data[:, np.array([1, 3])] = np.ones((3, 2))
            file.attrs["steps"] = np.arange(3)
            read = np.empty((3, 4))
            data.read_direct(read)
            return read, data[1, a[1] > 6], file.attrs["steps"]

    same(program, onp.arange(12.0).reshape(3, 4))


def test_polars():
    polars = pytest.importorskip("polars")

    def program(np, a):
        frame = polars.DataFrame({"a": a, "b": np.arange(3)}).with_columns(c=polars.lit(a))
        return frame["a"].to_numpy(), frame["c"].to_numpy(), polars.from_numpy(np.ones((2, 2))).to_numpy(), [len(frame)]

    same(program, onp.arange(3.0))


needs_c = pytest.mark.skipif(fastpath is None, reason="classes in C are told of ours by the C part")


@pytest.mark.either("about the C part")
@needs_c
def test_pyarrow():
    pyarrow = pytest.importorskip("pyarrow")
    compute = pytest.importorskip("pyarrow.compute")

    def program(np, a):
        column, sparse = pyarrow.array(a[0], mask=a[0] > 1), pyarrow.SparseCSRMatrix.from_dense_numpy(a)
        columns = [
            *(compute.add(column, a[0]), compute.sum(a[0]), pyarrow.array([a[0], a[1]]).flatten()),
            *(column.take(np.array([2, 0])), column.filter(np.array([True, False, True]))),
        ]
        tensors = [pyarrow.Tensor.from_numpy(a).to_numpy(), sparse.to_tensor().to_numpy()]
        return [*tensors, [str(column) for column in columns]]

    same(program, onp.arange(6.0).reshape(2, 3))
    x = np.arange(6.0)
    x[0] = 7
    assert pyarrow.Tensor.from_numpy(x).to_numpy()[0] == 7
    with pytest.raises(TypeError, match="argument type"):
        grad(lambda x: compute.sum(x).as_py())(x)


@pytest.mark.either("about the C part")
@needs_c
def test_netcdf4(tmp_path):
    netcdf = pytest.importorskip("netCDF4")

    def program(np, a):
        with netcdf.Dataset(tmp_path / f"{np.__name__}.nc", "w") as file:
            file.createDimension("x", 3)
            file.createDimension("t", None)
            wind = file.createVariable("wind", "f8", ("t", "x"))
            wind[:] = a
            wind[1, np.array([0, 2])] = -a[0, :2]
            wind[np.array([True, False]), :] = 2 * a[:1]
            file.steps = np.arange(3)
            return wind[:].filled(), wind[np.array([0, 1]), np.array([True, False, True])].filled(), file.steps

    same(program, onp.arange(6.0).reshape(2, 3))


@pytest.mark.either("about the C part")
@needs_c
def test_numexpr():
    numexpr = pytest.importorskip("numexpr")

    def program(np, a):
        out = np.zeros((2, 3))
        numexpr.evaluate("2 * a + 1", out=out)
        return out, numexpr.evaluate("where(a > out, a, sin(out))"), numexpr.re_evaluate()

    same(program, onp.arange(6.0).reshape(2, 3))


def test_gymnasium():
    spaces = pytest.importorskip("gymnasium.spaces")

    def program(np, low):
        box = spaces.Box(low=low, high=low + 1, dtype=np.float64, seed=1)
        kinds = spaces.MultiDiscrete(np.array([2, 3]), seed=1)
        assert box.contains(low) and kinds.contains(np.array([1, 2])) and spaces.Discrete(3).contains(np.int64(2))
        return box.low, box.sample(), kinds.sample(), spaces.Discrete(3, seed=1).sample(np.array([0, 1, 0], dtype="i1"))

    same(program, onp.arange(3.0))
