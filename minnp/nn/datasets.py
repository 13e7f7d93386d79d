"""Data sets: scikit-learn's bundled digits, and readers for the real files of CIFAR-10, MNIST and Fashion-MNIST.

Each reader takes the folder the files are in and returns a Dataset: images [N, C, H, W] float32 in [0, 1], labels [N]
int64. Nothing is downloaded: where a file is missing, the error says what to download and from where.
"""

from __future__ import annotations

import gzip
import io
import math
import os
import pickle
import pickletools
import re
import warnings
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import minnp.numpy as np

from .checks import named

__all__ = ["DataFileError", "Dataset", "cifar10", "digits", "fashion_mnist", "mnist"]

PathLike = str | os.PathLike


class Dataset(NamedTuple):
    """Images [N, C, H, W], labels [N], and the classes' names, for training and for testing.

    x_train, y_train, x_test, y_test   images and labels
    classes                            the names, by label

    >>> data = nn.io.digits()
    >>> data.x_test.shape[0] == data.y_test.shape[0]
    True
    """

    x_train: Any
    y_train: Any
    x_test: Any
    y_test: Any
    classes: tuple[str, ...]


class DataFileError(ValueError):
    """A data file that is not what its name says: too short, too long, or with the wrong numbers in it.

    >>> data = nn.io.mnist("a-folder-with-a-file-cut-short")  # doctest: +SKIP
    """


@named()
def digits(test: float = 0.2, seed: int = 0) -> Dataset:
    """1,797 handwritten digits of 8 x 8 pixels, bundled with scikit-learn; a fraction `test` is kept for testing.

    seed   of the order in which they are dealt out

    Raises ImportError without scikit-learn.

    >>> data = nn.io.digits()
    >>> data.x_train.shape[1:], len(data.classes)
    ((1, 8, 8), 10)
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError("the digits come with scikit-learn: pip install scikit-learn") from error
    bunch = load_digits()
    images = np.asarray(bunch.images).astype(np.float32)[:, None] / np.float32(16)
    labels = np.asarray(bunch.target).astype(np.int64)
    order = np.random.default_rng(seed).permutation(labels.shape[0])
    cut = round(labels.shape[0] * test)
    held, kept = order[:cut], order[cut:]
    return Dataset(images[kept], labels[kept], images[held], labels[held], tuple("0123456789"))


# ------------------------------------------------------------------ CIFAR-10
CIFAR_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CIFAR_HELP = (
    "download cifar-10-python.tar.gz or cifar-10-binary.tar.gz from https://www.cs.toronto.edu/~kriz/cifar.html, "
    "unpack it, and give the folder"
)


@named()
def cifar10(path: PathLike) -> Dataset:
    """CIFAR-10 from the folder of its python or binary version (or the folder above): 3 x 32 x 32, 10 classes.

    path   the folder

    The training batches that are there are read, in order; at least one, and the test batch, must be.

    Raises FileNotFoundError, saying where to get them, where the files are not there, DataFileError where they are
    damaged.

        data = nn.io.cifar10("cifar-10-batches-py")
        data.x_train.shape    # (50000, 3, 32, 32)
    """
    for folder in (path, os.path.join(path, "cifar-10-batches-py"), os.path.join(path, "cifar-10-batches-bin")):
        for suffix, read in (("", read_cifar_python), (".bin", read_cifar_binary)):
            names = [f"data_batch_{i}{suffix}" for i in range(1, 6)]
            found = [os.path.join(folder, name) for name in names if os.path.isfile(os.path.join(folder, name))]
            test = os.path.join(folder, f"test_batch{suffix}")
            if found and os.path.isfile(test):
                train = [read(name) for name in found]
                images, labels = (np.concatenate(parts) for parts in zip(*train))
                return Dataset(images, labels, *read(test), CIFAR_CLASSES)
    raise FileNotFoundError(f"no CIFAR-10 batches (data_batch_1 .. 5, test_batch) in {os.fspath(path)}: {CIFAR_HELP}")


def read_cifar_binary(path: PathLike) -> tuple[Any, Any]:
    """(images, labels) of one .bin file: records of 1 label byte and 3072 pixel bytes."""
    content = read_bytes(path)
    if not content or len(content) % 3073:
        raise DataFileError(f"{path} has {len(content)} bytes, not a multiple of the 3,073 of a CIFAR-10 record")
    records = np.frombuffer(content, np.uint8).reshape(-1, 3073)
    return cifar_images(path, records[:, 1:], records[:, 0])


DAMAGED = (
    *(pickle.UnpicklingError, EOFError, ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError),
    *(MemoryError, RecursionError),
)


def read_cifar_python(path: PathLike) -> tuple[Any, Any]:
    """(images, labels) of one pickled batch, which may hold numbers, strings, lists and arrays, but can run nothing."""
    content = read_bytes(path)
    try:
        check_opcodes(content)
        batch = ArraysOnly(io.BytesIO(content), encoding="bytes").load()
    except DAMAGED as error:
        raise DataFileError(f"{path} is not a CIFAR-10 python batch: {error}") from error
    if not isinstance(batch, dict):
        raise DataFileError(f"{path} holds a {type(batch).__name__}, not the dict of a CIFAR-10 python batch")
    batch = {text(key) if isinstance(key, bytes) else key: value for key, value in batch.items()}
    missing = [key for key in ("data", "labels") if key not in batch]
    if missing:
        raise DataFileError(f"{path} has no {' and no '.join(missing)}; a CIFAR-10 python batch has data and labels")
    data, labels = (x.array if type(x) is PickledArray else x for x in (batch["data"], batch["labels"]))
    if type(labels) is list and all(type(n) is int and 0 <= n <= 255 for n in labels):
        labels = np.array(labels, np.int64)
    if not (type(data) is type(labels) is np.ndarray):
        raise DataFileError(f"{path} has data and labels that are no arrays of numbers: {labels!r:.60}")
    if data.ndim != 2 or data.shape[1] != 3072 or data.dtype != np.uint8 or labels.shape != (data.shape[0],):
        raise DataFileError(
            f"{path} has data {data.dtype}{list(data.shape)} and labels {list(labels.shape)}; "
            "expected uint8[N, 3072] and [N]"
        )
    return cifar_images(path, data, labels)


def cifar_images(path: PathLike, pixels: Any, labels: Any) -> tuple[Any, Any]:
    check_labels(path, labels)
    return pixels.reshape(-1, 3, 32, 32).astype(np.float32) / np.float32(255), labels.astype(np.int64)


# What a pickle of a dict of numbers, strings, lists and arrays is made of: nothing that makes an object of a class.
OPCODES = """PROTO FRAME STOP MARK POP POP_MARK DUP MEMOIZE PUT BINPUT LONG_BINPUT GET BINGET LONG_BINGET NONE NEWTRUE
    NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING UNICODE
    SHORT_BINUNICODE BINUNICODE BINUNICODE8 SHORT_BINBYTES BINBYTES BINBYTES8 BYTEARRAY8 EMPTY_TUPLE TUPLE TUPLE1 TUPLE2
    TUPLE3 EMPTY_LIST LIST APPEND APPENDS EMPTY_DICT DICT SETITEM SETITEMS GLOBAL STACK_GLOBAL REDUCE BUILD"""
OPCODES = frozenset(OPCODES.split())


def check_opcodes(content: bytes) -> None:
    """Raise unless a pickle has these opcodes alone, and none makes room for more than the file holds."""
    with warnings.catch_warnings():  # of escapes in its texts that Python does not know
        warnings.simplefilter("ignore", DeprecationWarning)
        opcodes = list(pickletools.genops(content))
    for opcode, number, _ in opcodes:
        if opcode.name not in OPCODES:
            raise pickle.UnpicklingError(f"it has a {opcode.name}, which a file of arrays has no use for")
        if opcode.name in ("FRAME", "PUT", "BINPUT", "LONG_BINPUT") and not 0 <= int(number) <= len(content):
            raise pickle.UnpicklingError(f"its {opcode.name} says {number}, more than the {len(content)} bytes it has")


class Callee:
    """What a pickle may call: one of the functions below. It takes no state, so a file cannot change it."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("it changes a function")


class PickledDtype:
    """A dtype of numbers, as a pickle says it: a name, then the byte order."""

    __slots__ = ("name", "order")

    def __init__(self, name: Any, align: Any = False, copy: Any = True) -> None:
        name = text(name)
        if re.fullmatch("b1|[iu][1248]|f[248]", name) is None or align not in (0, 1) or copy not in (0, 1):
            raise pickle.UnpicklingError(f"it has an array of {name!r:.40}, not of numbers")
        self.name, self.order = name, "|"

    def __setstate__(self, state: Any) -> None:
        if (
            type(state) is not tuple
            or len(state) < 5
            or state[2:5] != (None, None, None)
            or text(state[1]) not in "<>|="
        ):
            raise pickle.UnpicklingError("it has a dtype of another form than NumPy writes for numbers")
        self.order = text(state[1])


class PickledArray:
    """An array, as a pickle says it: of nothing, then its state."""

    __slots__ = ("array",)

    def __init__(self, kind: Any, shape: Any, letter: Any) -> None:
        if kind is not NDARRAY or shape != (0,) or letter not in ("b", b"b"):
            raise pickle.UnpicklingError("it makes an array in another way than NumPy's pickles do")
        self.array: Any = None

    def __setstate__(self, state: Any) -> None:
        if type(state) is not tuple or len(state) != 5 or state[0] != 1:
            raise pickle.UnpicklingError("it has an array of another form than NumPy writes")
        _, shape, dtype, fortran, raw = state
        self.array = array_of(raw, dtype, shape, "F" if fortran else "C")


def array_of(raw: Any, dtype: Any, shape: Any, order: Any) -> Any:
    if type(dtype) is not PickledDtype or type(raw) not in (bytes, bytearray) or order not in ("C", "F"):
        raise pickle.UnpicklingError("it has an array of another form than NumPy writes for numbers")
    if type(shape) is not tuple or not all(type(n) is int and 0 <= n <= len(raw) for n in shape) or len(shape) > 8:
        raise pickle.UnpicklingError(f"it has an array of shape {shape!r:.60} in {len(raw)} bytes")
    dtype = np.dtype(dtype.order + dtype.name)
    if math.prod(shape) * dtype.itemsize != len(raw):
        raise pickle.UnpicklingError(f"it has an array {dtype}{list(shape)} in {len(raw)} bytes")
    return np.frombuffer(raw, dtype).reshape(shape, order=order)


def of_buffer(raw: Any, dtype: Any, shape: Any, order: Any) -> PickledArray:
    """How pickle protocol 5 gives an array."""
    made = PickledArray(NDARRAY, (0,), "b")
    made.array = array_of(raw, dtype, shape, order)
    return made


def latin1(text: Any, encoding: Any) -> bytes:
    """How Python 3 writes bytes in the old protocols."""
    if encoding not in ("latin1", b"latin1") or type(text) is not str:
        raise pickle.UnpicklingError(f"it encodes bytes as {encoding!r:.40}")
    return text.encode("latin1")


def text(x: Any) -> str:
    return x.decode("latin1") if type(x) is bytes else str(x)


def refuse(*args: Any) -> None:
    raise pickle.UnpicklingError("it makes an array out of memory of its own choice")


NDARRAY = Callee(refuse)
CALLEES = {
    ("numpy", "ndarray"): NDARRAY,
    ("numpy", "dtype"): Callee(PickledDtype),
    ("numpy._core.multiarray", "_reconstruct"): Callee(PickledArray),
    ("numpy._core.numeric", "_frombuffer"): Callee(of_buffer),
    ("_codecs", "encode"): Callee(latin1),
}


class ArraysOnly(pickle.Unpickler):
    """An unpickler that can build arrays of numbers, and has nothing else to call."""

    def find_class(self, module: str, name: str) -> Any:
        # NumPy 1 writes numpy.core, which NumPy 2 calls numpy._core.
        found = CALLEES.get((module.replace("numpy.core.", "numpy._core."), name))
        if found is None:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which a file of arrays has no use for")
        return found


# ------------------------------------------------------------------ MNIST and Fashion-MNIST
FASHION_CLASSES = ("T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
IDX_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


@named()
def mnist(path: PathLike) -> Dataset:
    """MNIST from the folder of its four idx files, gzipped or not: 1 x 28 x 28, 10 digits.

    path   the folder

    Raises FileNotFoundError, saying where to get them, where the files are not there, DataFileError where they are
    damaged.

        data = nn.io.mnist("mnist")
        data.x_train.shape    # (60000, 1, 28, 28)
    """
    return idx_dataset(path, "MNIST", "https://ossci-datasets.s3.amazonaws.com/mnist/", tuple("0123456789"))


@named()
def fashion_mnist(path: PathLike) -> Dataset:
    """Fashion-MNIST, in the same files as MNIST: 1 x 28 x 28, 10 kinds of clothes.

    path   the folder

        data = nn.io.fashion_mnist("fashion-mnist")
        data.classes[0]    # T-shirt/top
    """
    return idx_dataset(path, "Fashion-MNIST", "https://github.com/zalandoresearch/fashion-mnist", FASHION_CLASSES)


def idx_dataset(path: PathLike, name: str, source: str, classes: tuple[str, ...]) -> Dataset:
    files = [find_idx(path, file) for file in IDX_FILES]
    if None in files:
        missing = [file for file, found in zip(IDX_FILES, files) if found is None]
        raise FileNotFoundError(
            f"{name} is not complete in {os.fspath(path)}: {', '.join(missing)} (or .gz) missing; "
            f"download them from {source}"
        )
    parts = []
    for images_file, labels_file in (files[:2], files[2:]):
        images, labels = read_idx(images_file), read_idx(labels_file)
        if images.ndim != 3 or labels.ndim != 1 or images.shape[0] != labels.shape[0]:
            raise DataFileError(
                f"{images_file} holds {list(images.shape)} and {labels_file} {list(labels.shape)}; "
                "expected [N, H, W] and [N]"
            )
        check_labels(labels_file, labels)
        parts += [images[:, None].astype(np.float32) / np.float32(255), labels.astype(np.int64)]
    return Dataset(*parts, classes)


def find_idx(path: PathLike, file: str) -> str | None:
    # Some mirrors write train-images.idx3-ubyte.
    for name in (file, f"{file}.gz", file.replace("-idx", ".idx"), file.replace("-idx", ".idx") + ".gz"):
        if os.path.isfile(os.path.join(path, name)):
            return os.path.join(path, name)
    return None


IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: PathLike) -> Any:
    """The array in an idx file: two zero bytes, type, number of axes, big-endian int32 sizes, elements."""
    content = read_bytes(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in IDX_TYPES:
        raise DataFileError(f"{path} is not an idx file: it starts with {content[:4]!r}")
    dtype, ndim = np.dtype(IDX_TYPES[content[2]]), content[3]
    start = 4 + 4 * ndim
    shape = tuple(int.from_bytes(content[i : i + 4], "big") for i in range(4, start, 4))
    size = dtype.itemsize
    for length in shape:
        size *= length
    if len(content) != start + size:
        raise DataFileError(f"{path} says it holds {dtype}{list(shape)}, {start + size} bytes; it has {len(content)}")
    if ndim > 8 or math.prod(max(length, 1) for length in shape) > max(len(content), 1 << 20):
        raise DataFileError(f"{path} says it holds {dtype}{list(shape)}, which no array of {len(content)} bytes is")
    return np.frombuffer(content[start:], dtype).reshape(shape)


def read_bytes(path: PathLike) -> bytes:
    """The file's bytes, unpacked if its name ends in .gz."""
    if not os.fspath(path).endswith(".gz"):
        with open(path, "rb") as file:
            return file.read()
    try:
        with gzip.open(path, "rb") as file:
            return file.read()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataFileError(f"{path} is not a whole gzip file: {error}") from error


def check_labels(path: PathLike, labels: Any) -> None:
    if labels.dtype.kind not in "iu":
        raise DataFileError(f"{path} has labels of dtype {labels.dtype}; expected integers")
    if labels.shape[0] and not 0 <= int(np.min(labels)) <= int(np.max(labels)) < 10:
        raise DataFileError(f"{path} has labels from {np.min(labels)} to {np.max(labels)}; expected 0 to 9")
