"""Readers of the real files, on small files written in their formats, whole and broken."""

import collections
import gzip
import os
import pickle
import struct

import numpy as onp
import pytest

from minnp.nn import datasets

RNG = onp.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (6, 3072), dtype=onp.uint8)
LABELS = [3, 1, 4, 1, 5, 9]


def test_digits():
    data = datasets.digits()
    assert data.x_train.shape == (1438, 1, 8, 8) and data.x_test.shape == (359, 1, 8, 8)
    assert data.x_train.dtype == onp.float32 and data.y_train.dtype == onp.int64
    assert float(data.x_train.min()) == 0.0 and float(data.x_train.max()) == 1.0
    assert data.classes == tuple("0123456789")
    again = datasets.digits()
    assert onp.array_equal(onp.asarray(data.x_test), onp.asarray(again.x_test))


# ------------------------------------------------------------------ CIFAR-10


def write_python(folder, name, content, protocol=2):
    os.makedirs(folder, exist_ok=True)
    with open(folder / name, "wb") as file:
        pickle.dump(content, file, protocol=protocol)


def python_batch(pixels=PIXELS, labels=LABELS):
    return {b"batch_label": b"training batch 1 of 5", b"labels": labels, b"data": pixels, b"filenames": [b"a.png"] * 6}


def write_binary(folder, name, pixels=PIXELS, labels=LABELS):
    os.makedirs(folder, exist_ok=True)
    (folder / name).write_bytes(b"".join(bytes([label]) + row.tobytes() for label, row in zip(labels, pixels)))


def check_cifar(data, batches):
    assert data.x_train.shape == (6 * batches, 3, 32, 32) and data.x_test.shape == (6, 3, 32, 32)
    expected = PIXELS.reshape(6, 3, 32, 32).astype(onp.float32) / 255
    assert onp.array_equal(onp.asarray(data.x_train[:6]), expected)
    assert onp.asarray(data.y_test).tolist() == LABELS
    assert data.classes[3] == "cat"


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_cifar_python_version(tmp_path, protocol):
    folder = tmp_path / "cifar-10-batches-py"
    for name in ("data_batch_1", "data_batch_2", "test_batch"):
        write_python(folder, name, python_batch(), protocol)
    check_cifar(datasets.cifar10(tmp_path), 2)
    check_cifar(datasets.cifar10(folder), 2)


def test_cifar_python_version_as_python_2_wrote_it(tmp_path):
    # The bytes of cPickle.dump({'labels': [7], 'data': <uint8[1, 3072]>}, f, 2) under Python 2 and NumPy 1.
    row = PIXELS[0].tobytes()
    content = (
        b"\x80\x02}q\x01(U\x06labelsq\x02]q\x03K\x07aU\x04dataq\x04cnumpy.core.multiarray\n_reconstruct\nq\x05"
        b"cnumpy\nndarray\nq\x06K\x00\x85U\x01b\x87Rq\x07(K\x01K\x01M\x00\x0c\x86cnumpy\ndtype\nq\x08U\x02u1K\x00K\x01\x87R"
        b"q\x09(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T" + struct.pack("<i", 3072) + row + b"tbu."
    )
    for name in ("data_batch_1", "test_batch"):
        (tmp_path / name).write_bytes(content)
    data = datasets.cifar10(tmp_path)
    assert onp.array_equal(onp.asarray(data.x_train[0]).ravel(), PIXELS[0].astype(onp.float32) / 255)
    assert onp.asarray(data.y_train).tolist() == [7]


def test_cifar_binary_version(tmp_path):
    for name in ("data_batch_1.bin", "data_batch_3.bin", "test_batch.bin"):
        write_binary(tmp_path / "cifar-10-batches-bin", name)
    check_cifar(datasets.cifar10(tmp_path), 2)


def test_cifar_absent(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no CIFAR-10 batches .* download cifar-10-python.tar.gz .*kriz/cifar"):
        datasets.cifar10(tmp_path)
    write_binary(tmp_path, "data_batch_1.bin")
    with pytest.raises(FileNotFoundError, match="test_batch"):
        datasets.cifar10(tmp_path)


class Attack:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize(
    ("function", "arguments"),
    [(os.system, ("touch owned",)), (eval, ("open('owned', 'w')",)), (collections.OrderedDict, ())],
    ids=["os.system", "eval", "OrderedDict"],
)
def test_cifar_python_version_runs_nothing(tmp_path, monkeypatch, function, arguments, protocol):
    monkeypatch.chdir(tmp_path)
    for name in ("data_batch_1", "test_batch"):
        write_python(tmp_path, name, {**python_batch(), b"extra": Attack(function, *arguments)}, protocol)
    with pytest.raises(datasets.DataFileError, match="which a file of arrays has no use for"):
        datasets.cifar10(tmp_path)
    assert not os.path.exists("owned")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps([1, 2]), "holds a list, not the dict"),
        (pickle.dumps({b"labels": LABELS}), "has no data; a CIFAR-10 python batch has data and labels"),
        (pickle.dumps(python_batch(labels=LABELS[:5])), r"labels \[5\]; expected uint8\[N, 3072\]"),
        (pickle.dumps(python_batch(pixels=PIXELS[:, :100])), r"data uint8\[6, 100\]"),
        (pickle.dumps(python_batch(labels=[3, 1, 4, 1, 5, 19])), "labels from 1 to 19; expected 0 to 9"),
        (pickle.dumps(python_batch())[:1000], "is not a CIFAR-10 python batch"),
        (b"", "is not a CIFAR-10 python batch"),
        (b"<html>404</html>", "is not a CIFAR-10 python batch"),
    ],
)
def test_cifar_python_version_malformed(tmp_path, content, message):
    write_python(tmp_path, "test_batch", python_batch())
    (tmp_path / "data_batch_1").write_bytes(content)
    with pytest.raises(datasets.DataFileError, match=message):
        datasets.cifar10(tmp_path)


def test_cifar_binary_version_malformed(tmp_path):
    write_binary(tmp_path, "test_batch.bin")
    (tmp_path / "data_batch_1.bin").write_bytes(bytes(3072))
    with pytest.raises(datasets.DataFileError, match="3072 bytes, not a multiple of the 3,073"):
        datasets.cifar10(tmp_path)
    write_binary(tmp_path, "data_batch_1.bin", labels=[3, 1, 4, 1, 5, 10])
    with pytest.raises(datasets.DataFileError, match="labels from 1 to 10"):
        datasets.cifar10(tmp_path)


# ------------------------------------------------------------------ MNIST
IMAGES = RNG.integers(0, 256, (6, 28, 28), dtype=onp.uint8)


def idx(array):
    head = struct.pack(f">BBBB{array.ndim}i", 0, 0, 8, array.ndim, *array.shape)
    return head + array.astype(onp.uint8).tobytes()


def write_idx(folder, replaced=None, compressed=False):
    contents = dict(zip(datasets.IDX_FILES, (idx(IMAGES), idx(onp.array(LABELS))) * 2)) | (replaced or {})
    for name, content in contents.items():
        if content is not None:
            if compressed:
                (folder / f"{name}.gz").write_bytes(gzip.compress(content))
            else:
                (folder / name).write_bytes(content)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("read", [datasets.mnist, datasets.fashion_mnist])
def test_idx_files(tmp_path, read, compressed):
    write_idx(tmp_path, compressed=compressed)
    data = read(tmp_path)
    assert data.x_train.shape == data.x_test.shape == (6, 1, 28, 28)
    assert onp.array_equal(onp.asarray(data.x_train[:, 0]), IMAGES.astype(onp.float32) / 255)
    assert onp.asarray(data.y_train).tolist() == LABELS
    assert data.classes[9] == ("9" if read is datasets.mnist else "Ankle boot")


def test_idx_absent(tmp_path):
    write_idx(tmp_path, {"t10k-labels-idx1-ubyte": None})
    with pytest.raises(
        FileNotFoundError, match=r"MNIST is not complete .* t10k-labels-idx1-ubyte \(or .gz\) missing; download"
    ):
        datasets.mnist(tmp_path)
    with pytest.raises(FileNotFoundError, match="zalandoresearch/fashion-mnist"):
        datasets.fashion_mnist(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an idx file: it starts with b''"),
        (b"<html>", "not an idx file"),
        (b"\0\0\x07\x03" + bytes(12), "not an idx file"),
        (idx(IMAGES)[:-1], "4,?720 bytes; it has 4,?719"),
        (idx(IMAGES) + b"x", "it has 4,?721"),
        (idx(IMAGES)[:9], "it has 9"),
        (idx(IMAGES[:5]), r"\[5, 28, 28\] and .* \[6\]"),
        (idx(onp.array(LABELS)), r"\[6\] and"),
    ],
)
def test_idx_malformed(tmp_path, content, message):
    write_idx(tmp_path, {"train-images-idx3-ubyte": content})
    with pytest.raises(datasets.DataFileError, match=message):
        datasets.mnist(tmp_path)


def test_idx_labels_out_of_range(tmp_path):
    write_idx(tmp_path, {"t10k-labels-idx1-ubyte": idx(onp.array([0, 1, 2, 3, 4, 10]))})
    with pytest.raises(datasets.DataFileError, match="labels from 0 to 10"):
        datasets.mnist(tmp_path)


@pytest.mark.parametrize("cut", [0, 5, -4])
def test_idx_broken_gzip(tmp_path, cut):
    write_idx(tmp_path, compressed=True)
    file = tmp_path / "train-images-idx3-ubyte.gz"
    file.write_bytes(file.read_bytes()[:cut] if cut else b"not gzip")
    with pytest.raises(datasets.DataFileError, match="not a whole gzip file"):
        datasets.mnist(tmp_path)


# ------------------------------------------------------------------ files that somebody else made
def calls(function, *arguments):
    """A batch with one more entry, which a call gives."""
    return pickle.dumps({**python_batch(), b"extra": Attack(function, *arguments)}, 2)


class State:
    """An array, unpickled with a state of somebody's choice."""

    def __init__(self, state, made=(onp.ndarray, (0,), b"b")):
        self.state, self.made = state, made

    def __reduce__(self):
        return onp.zeros(0).__reduce__()[0], self.made, self.state


@pytest.mark.parametrize(
    "content",
    [
        calls(onp.ndarray, (2,), onp.dtype("u1")),
        calls(onp.ndarray, (1 << 40,), onp.dtype("u1")),
        calls(onp.dtype, "O"),
        calls(onp.dtype, "V8"),
        calls(onp.dtype, [("a", "O")]),
        pickle.dumps({b"data": onp.array([{}]), b"labels": [1]}),
        pickle.dumps({b"data": State((1, (1 << 40, 3072), onp.dtype("u1"), False, b"")), b"labels": []}),
        pickle.dumps({b"data": State((1, (0, 1 << 62), onp.dtype("u1"), False, b"")), b"labels": []}),
        pickle.dumps({b"data": State((1, (1,), onp.dtype("O"), False, [1])), b"labels": [1]}),
        pickle.dumps({b"data": State((1, (1,), onp.dtype("u1"), False, b"x"), (onp.ndarray, (9,), b"b"))}),
        pickle.dumps({b"data": PIXELS, b"labels": [[3] * 6] * 6}),
        pickle.dumps({b"data": PIXELS, b"labels": [1 << 80] * 6}),
        b"\x80\x02}r\xff\xff\xff\x7f.",  # a memo of 2 ** 31 entries
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x0f.",  # bytes without end
        b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x0f.",  # a frame without end
        b"\x80\x02cnumpy\nndarray\n}b.",  # changes what it names
        b"\x80\x02cnumpy\nndarray\n)\x81.",
    ],
)
def test_a_batch_makes_arrays_of_numbers_in_its_own_bytes_alone(tmp_path, content):
    write_python(tmp_path, "test_batch", python_batch())
    (tmp_path / "data_batch_1").write_bytes(content)
    with pytest.raises(datasets.DataFileError):
        datasets.cifar10(tmp_path)


@pytest.mark.parametrize(
    "head",
    [
        struct.pack(">BBBB3I", 0, 0, 8, 3, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF),
        struct.pack(">BBBB3I", 0, 0, 8, 3, 0, 0xFFFFFFFF, 0xFFFFFFFF),
        struct.pack(">BBBB200I", 0, 0, 8, 200, 0, *[1] * 199),
        struct.pack(">BBBB", 0, 0, 8, 255),
    ],
)
def test_idx_of_a_huge_shape(tmp_path, head):
    write_idx(tmp_path, {"train-images-idx3-ubyte": head})
    with pytest.raises(datasets.DataFileError):
        datasets.mnist(tmp_path)


def test_idx_labels_that_are_no_integers(tmp_path):
    labels = struct.pack(">BBBBi6f", 0, 0, 13, 1, 6, *[float("nan")] * 6)
    write_idx(tmp_path, {"t10k-labels-idx1-ubyte": labels})
    with pytest.raises(datasets.DataFileError, match="expected integers"):
        datasets.mnist(tmp_path)


def damaged(rng, content):
    """The bytes with some changed, cut out, repeated or put in, mostly near the start, where what is told lies."""
    content = bytearray(content)
    for _ in range(rng.integers(1, 6)):
        reach = min(len(content), int(10 ** rng.uniform(1, 4)))
        at, n = int(rng.integers(reach)), int(rng.integers(1, 9))
        way = rng.integers(5)
        if way < 2:
            content[at] = rng.integers(256)
        elif way == 2:
            del content[at : at + n]
        elif way == 3:
            content[at:at] = content[at : at + n]
        else:
            content[at : at + n] = rng.bytes(n)
    return bytes(content) if rng.integers(8) else bytes(content[: rng.integers(len(content))])


@pytest.mark.parametrize("times", [300, pytest.param(10_000, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("kind", ["pickle 0", "pickle 2", "pickle 4", "pickle 5", "binary", "idx", "idx.gz"])
def test_a_damaged_file_is_read_or_refused(tmp_path, kind, times):
    rng = onp.random.default_rng(1)
    if kind.startswith("pickle"):
        whole, read = pickle.dumps(python_batch(), int(kind[-1])), datasets.read_cifar_python
    elif kind == "binary":
        whole = b"".join(bytes([label]) + row.tobytes() for label, row in zip(LABELS, PIXELS))
        read = datasets.read_cifar_binary
    else:
        whole, read = idx(IMAGES), datasets.read_idx
    file, refused = tmp_path / ("file.gz" if kind == "idx.gz" else "file"), 0
    if kind == "idx.gz":
        whole = gzip.compress(whole)
    for _ in range(times):
        file.unlink(missing_ok=True)  # a file that is cut short and written again waits for the disk
        file.write_bytes(damaged(rng, whole))
        try:
            read(file)
        except datasets.DataFileError:
            refused += 1
    assert refused > times // 10
