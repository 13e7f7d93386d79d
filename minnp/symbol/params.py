"""Parameters in files: the `.params` files of MXNet, which hold lists of arrays, or arrays and their names.

A file, all of it little endian:

    u64 0x112, u64 0
    u64 number of arrays, the arrays
    u64 number of names (that of the arrays, or 0), the names: u64 length, UTF-8

An array begins with a number that says how the rest is written:

    V0   u32 number of dimensions, each u32; context, type, elements
    V1   u32 0xF993FAC8; shape, context, type, elements
    V2   u32 0xF993FAC9; i32 storage, of sparse ones the shape of their elements; shape, context, type, of sparse ones
         the type and shape of each index array; elements, index arrays
    V3   u32 0xF993FACA; as V2

where a shape is an i32 number of dimensions, each i64, and a context two i32 (a kind of device and its number, of no
use here). V2 is what MXNet writes, and V3 what it writes where shapes mean what they do in NumPy. Of V0 to V2 an array
of no dimensions is one that was never given a value, and has nothing after its shape; of V3 it is a number, and -1
dimensions say that there is no value.

Every size is compared with what is left of the file before memory is taken for it.
"""

from __future__ import annotations

import contextlib
import math
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn

import numpy as onp

LIST = 0x112
V1, V2, V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
MOST_DIMENSIONS = 32  # of NumPy 1's arrays
LONGEST = 24 + 8 * MOST_DIMENSIONS  # what is before the elements of a dense array
AHEAD = 2**18  # bytes that are read ahead: they stay in the cache

# MXNet's numbers of types. 8 to 11 came with MXNet 2; NumPy has no bfloat16 (12).
BFLOAT16 = 12
TYPES = dict(
    enumerate(map(onp.dtype, ["<f4", "<f8", "<f2", "u1", "<i4", "i1", "<i8", "?", "<i2", "<u2", "<u4", "<u8"]))
)
NUMBERS = {dtype: number for number, dtype in TYPES.items()}

_U32, _U64, _I32 = struct.Struct("<I"), struct.Struct("<Q"), struct.Struct("<i")
_TWO, _THREE = struct.Struct("<ii"), struct.Struct("<iii")
_DIMENSIONS = [struct.Struct(f"<{n}q") for n in range(MOST_DIMENSIONS + 1)]


@dataclass(eq=False)
class RowSparse:
    """An array of which some rows are given, and the others are zero: MXNet's row_sparse.

    shape     of the whole array
    values    [rows, ...] the rows
    indices   int64[rows] which they are, ascending

    >>> sym.params.RowSparse((3, 2), numpy.ones((1, 2)), numpy.array([1])).shape
    (3, 2)
    """

    shape: tuple[int, ...]
    values: onp.ndarray
    indices: onp.ndarray

    def dense(self) -> onp.ndarray:
        """The array, zeros included."""
        out = onp.zeros(self.shape, self.values.dtype)
        out[self.indices] = self.values
        return out

    def check(self) -> None:
        """Raise ValueError where this is no array."""
        rows = len(self.indices) if self.indices.ndim == 1 else -1
        if not self.shape or self.values.shape != (rows, *self.shape[1:]):
            raise ValueError(
                f"a row_sparse array {list(self.shape)} has values {list(self.values.shape)} and indices "
                f"{list(self.indices.shape)}: expected n indices, and as values n rows of that shape"
            )
        _check_ascending(self.indices, self.shape[0], "row_sparse")

    def parts(self) -> list[onp.ndarray]:
        """The index arrays, in the order in which files have them."""
        return [self.indices]


@dataclass(eq=False)
class CSR:
    """A matrix of which some elements are given, row after row, and the others are zero: MXNet's csr.

    shape     (rows, columns)
    values    [n] the elements
    indptr    int64[rows + 1] where in `values` each row begins and ends
    indices   int64[n] the columns they stand in

    >>> sym.params.CSR((2, 3), numpy.array([5.0]), numpy.array([0, 1, 1]), numpy.array([2])).shape
    (2, 3)
    """

    shape: tuple[int, ...]
    values: onp.ndarray
    indptr: onp.ndarray
    indices: onp.ndarray

    def dense(self) -> onp.ndarray:
        """The matrix, zeros included."""
        out = onp.zeros(self.shape, self.values.dtype)
        out[onp.repeat(onp.arange(self.shape[0]), onp.diff(self.indptr)), self.indices] = self.values
        return out

    def check(self) -> None:
        """Raise ValueError where this is no matrix."""
        n = len(self.values) if self.values.ndim == 1 else -1
        rows = self.shape[0] if len(self.shape) == 2 else -1
        if self.indices.shape != (n,) or self.indptr.shape != (rows + 1,) or rows < 0:
            raise ValueError(
                f"a csr array {list(self.shape)} has values {list(self.values.shape)}, indices "
                f"{list(self.indices.shape)} and indptr {list(self.indptr.shape)}: expected a matrix, n values, n "
                "indices and one indptr more than rows"
            )
        if self.indptr[0] != 0 or self.indptr[-1] != n or (self.indptr[1:] < self.indptr[:-1]).any():
            raise ValueError(f"the indptr of a csr array of {n} values should ascend from 0 to {n}")
        _check_ascending(self.indices, self.shape[1], "csr", self.indptr[1:-1])

    def parts(self) -> list[onp.ndarray]:
        """The index arrays, in the order in which files have them."""
        return [self.indptr, self.indices]


def _check_ascending(indices: onp.ndarray, end: int, kind: str, begins: Sequence[int] | onp.ndarray = ()) -> None:
    """Whether indices are from 0 to `end` and ascend, but where a row begins."""
    wrong = (indices < 0) | (indices >= end)
    if wrong.any():
        raise ValueError(f"index {indices[wrong][0]} of a {kind} array should be at least 0 and less than {end}")
    falls = onp.flatnonzero(indices[1:] <= indices[:-1]) + 1
    falls = falls[~onp.isin(falls, begins)]
    if len(falls):
        at = int(falls[0])
        raise ValueError(f"the indices of a {kind} array should ascend; found {indices[at]} after {indices[at - 1]}")


Array = onp.ndarray | RowSparse | CSR
STORAGE = {0: None, 1: RowSparse, 2: CSR}


# ------------------------------------------------------------------ models
def load_params(fname: str | os.PathLike | BinaryIO, dense_limit: int = 2**30) -> tuple[dict, dict]:
    """(arguments, auxiliary states) of a model, NumPy arrays by name, from a file whose names begin with arg: or aux:.

    fname         a path, or a file open for reading bytes
    dense_limit   the most bytes that a sparse array may take as the dense one that it becomes

    Raises ValueError where the file is none, or a name begins with neither: `load` gives the arrays of every file.

    >>> sym.save_params("net.params", {"w": np.ones(2)}, {"mean": np.zeros(3)})
    >>> arguments, states = sym.load_params("net.params")
    >>> list(arguments), list(states)
    (['w'], ['mean'])
    """
    found = load(fname)
    if isinstance(found, list) and found:
        raise ValueError(f"{_called(fname)} has {len(found)} arrays and no names; minnp.symbol.params.load reads it")
    out: dict[str, dict[str, onp.ndarray]] = {"arg": {}, "aux": {}}
    for name, array in dict(found).items():
        kind, colon, own = name.partition(":")
        if not colon or kind not in out:
            raise ValueError(
                f"{_called(fname)} has an array {name!r}; expected 'arg:' or 'aux:' before each name. "
                "minnp.symbol.params.load reads files with other names"
            )
        if array is None:
            raise ValueError(f"{_called(fname)}: the array {name!r} was never given a value")
        if not isinstance(array, onp.ndarray):
            size = math.prod(array.shape) * array.values.itemsize
            if size > dense_limit:
                raise ValueError(
                    f"{_called(fname)}: {name!r} is sparse and would take {size} bytes as a dense array, more than "
                    f"dense_limit, {dense_limit}; minnp.symbol.params.load keeps it sparse"
                )
            array = array.dense()
        out[kind][own] = array
    return out["arg"], out["aux"]


def save_params(fname: str | os.PathLike | BinaryIO, arg_params: Mapping, aux_params: Mapping | None = None,
                np_shape: bool | None = None) -> None:  # fmt: skip
    """Write the arguments and auxiliary states of a model, arrays by name, as MXNet does.

    fname                    a path, or a file open for writing bytes
    arg_params, aux_params   arguments and auxiliary states, arrays by name
    np_shape                 see `save`

    >>> sym.save_params("net.params", {"w": np.ones(2)})
    >>> sym.load_params("net.params")[0]["w"].shape
    (2,)
    """
    named = {f"arg:{name}": array for name, array in arg_params.items()}
    save(fname, named | {f"aux:{name}": array for name, array in (aux_params or {}).items()}, np_shape)


# ------------------------------------------------------------------ reading
def load(fname: str | os.PathLike | BinaryIO) -> list[Array | None] | dict[str, Array | None]:
    """The arrays of a `.params` file, by name if they have names: NumPy arrays, `RowSparse` and `CSR` ones.

    fname   a path, or a file open for reading bytes that can be sought

    bfloat16 is read as float32, and None stands for an array that was never given a value. Which device an array was on
    is not read. Raises ValueError, which says what is wrong and where, if this is no such file.

    >>> sym.params.save("w.params", [np.ones(2)])
    >>> sym.params.load("w.params")
    [array([1., 1.])]
    """
    with contextlib.ExitStack() as stack:
        if hasattr(fname, "read"):
            file = fname
        else:
            file = stack.enter_context(open(fname, "rb", buffering=0))
        begin = file.tell()
        size = file.seek(0, os.SEEK_END)
        file.seek(begin)
        return _Reader(file, size, size - begin, _called(fname)).arrays()


def _called(fname: Any) -> str:
    return repr(os.fspath(fname)) if isinstance(fname, (str, os.PathLike)) else f"the file {fname!r}"


class _Reader:
    """What is left of a file: the bytes that were read ahead, and those that were not."""

    def __init__(self, file: BinaryIO, size: int, left: int, name: str) -> None:
        self.file, self.size, self.left, self.name = file, size, left, name
        self.ahead, self.at = b"", 0  # `left` counts from `at`
        self.block = onp.empty(0, onp.uint8)  # what small arrays lie in, from `free` on not yet
        self.free = 0

    def refuse(self, fact: str, back: int = 0) -> NoReturn:
        """Raise ValueError at the place that is `back` bytes before this one."""
        raise ValueError(f"{self.name} is no list of MXNet's arrays: {fact} at byte {self.size - self.left - back}")

    def look(self, size: int, what: str) -> None:
        """Have at least `size` bytes, of those that are left, ahead."""
        if len(self.ahead) - self.at >= size:
            return
        rest = self.ahead[self.at :]
        while len(rest) < size:
            given = self.file.read(min(max(size, AHEAD), self.left) - len(rest))
            if not given:
                self.refuse(f"the file became shorter while it was read, {what} is missing")
            rest += given
        self.ahead, self.at = rest, 0

    def read(self, form: struct.Struct, what: str) -> tuple[Any, ...]:
        if form.size > self.left:
            self.refuse(f"expected {form.size} bytes of {what}, found {self.left}")
        if len(self.ahead) - self.at < form.size:
            self.look(form.size, what)
        given = form.unpack_from(self.ahead, self.at)
        self.at += form.size
        self.left -= form.size
        return given

    def arrays(self) -> list[Array | None] | dict[str, Array | None]:
        magic, _ = self.read(struct.Struct("<QQ"), "the head of the file")
        if magic != LIST:
            zipped = " (a zip file: numpy.load reads those of MXNet 2)" if magic & 0xFFFF == 0x4B50 else ""
            self.refuse(f"expected {LIST:#x}, found {magic:#x}{zipped}", 16)
        count, arrays = self.count("arrays", 4), []
        while len(arrays) < count:
            arrays += self.next(f"array {len(arrays)}", count - len(arrays))
        names = self.names(self.count("names", 8))
        if names and len(names) != count:
            self.refuse(f"expected {count} names, one for each array, or none; found {len(names)} names")
        if self.left:
            self.refuse(f"expected the end of the file after the names, found {self.left} bytes")
        out = dict(zip(names, arrays))
        if len(out) < len(names):
            seen: set[str] = set()
            twice = next(name for name in names if name in seen or seen.add(name))
            self.refuse(f"the name {twice!r:.80} stands for two arrays,")
        return out if names else arrays

    def count(self, what: str, least: int) -> int:
        """How many there are of what takes at least so many bytes each."""
        (count,) = self.read(_U64, f"the number of {what}")
        if count * least > self.left:
            self.refuse(f"expected the number of {what}, at most {self.left // least}; found {count}", 8)
        return count

    def names(self, count: int) -> list[str]:
        self.look(self.left, "what names there are")
        given, at, names = self.ahead, self.at, []
        for i in range(count):
            begin = at + 8
            end = begin + int.from_bytes(given[at:begin], "little")
            if begin > len(given) or end > len(given):
                self.skip(at - self.at)
                (length,) = self.read(_U64, f"the length of name {i}")
                self.refuse(f"expected the length of name {i}, at most {self.left}; found {length}", 8)
            try:
                names.append(given[begin:end].decode())
            except UnicodeDecodeError:
                self.skip(begin - self.at)
                self.refuse(f"expected name {i} in UTF-8, found {given[begin : begin + 20]!r}")
            at = end
        self.skip(at - self.at)
        return names

    def skip(self, size: int) -> None:
        self.at += size
        self.left -= size

    def next(self, what: str, most: int) -> list[Array | None]:
        """The next array, and those of at most so many that are like it and were read ahead with it."""
        self.look(min(LONGEST, self.left), what)
        begin = self.at
        (magic,) = self.read(_U32, what)
        kind = None
        if magic in (V2, V3):
            storage, n = self.read(_TWO, f"the storage and shape of {what}")
            if storage not in STORAGE:
                self.refuse(f"expected the storage of {what}, 0 (dense), 1 (row_sparse) or 2 (csr); found {storage}", 8)
            kind = STORAGE[storage]
            inner = ()
            if kind is not None:
                inner = self.shape(n, f"the elements of {what}")
                (n,) = self.read(_I32, f"the shape of {what}")
            if n == (0 if magic == V2 else -1):
                return [None]
            shape = self.shape(n, what)
        elif magic == V1:
            (n,) = self.read(_I32, f"the shape of {what}")
            if n == 0:
                return [None]
            shape = self.shape(n, what)
        elif magic <= MOST_DIMENSIONS:
            if magic == 0:
                return [None]
            shape = self.read(struct.Struct(f"<{magic}I"), f"the shape of {what}")
        else:
            self.refuse(
                f"expected {what}, which begins with {V1:#x}, {V2:#x}, {V3:#x} or, before these, at most "
                f"{MOST_DIMENSIONS} dimensions; found {magic:#x}",
                4,
            )
        *_, number = self.read(_THREE, f"the context and type of {what}")
        dtype = self.dtype(number, what)
        if kind is None:
            head = self.ahead[begin : self.at]
            plain = dtype is not None and dtype.kind != "b" and all(shape) and 0 < len(shape) < MOST_DIMENSIONS
            if plain and self.ahead.startswith(head, self.at + math.prod(shape) * dtype.itemsize):
                return self.alike(head, shape, dtype, most)
            return [self.elements(shape, dtype, what)]
        heads = []
        for part in ("indices",) if kind is RowSparse else ("indptr", "indices"):
            number, n = self.read(_TWO, f"the type and shape of the {part} of {what}")
            heads.append((self.shape(n, f"the {part} of {what}"), self.dtype(number, what), f"the {part} of {what}"))
        begin = self.left
        values = self.elements(inner, dtype, what)
        parts = [self.elements(*head) for head in heads]
        if any(part.dtype.kind not in "iu" for part in parts):
            self.refuse(f"expected whole numbers as indices of {what}, found {', '.join(str(p.dtype) for p in parts)}")
        array = kind(shape, values, *(part.astype(onp.int64, copy=False) for part in parts))
        try:
            array.check()
        except ValueError as error:
            self.refuse(f"{what}: {error};", begin - self.left)
        return [array]

    def shape(self, n: int, what: str) -> tuple[int, ...]:
        """A shape of `n` dimensions."""
        if not 0 <= n <= MOST_DIMENSIONS:
            self.refuse(f"expected the number of dimensions of {what}, 0 to {MOST_DIMENSIONS}; found {n}", 4)
        shape = self.read(_DIMENSIONS[n], f"the shape of {what}")
        if n and min(shape) < 0:
            self.refuse(f"expected the shape of {what}, found {list(shape)}", 8 * n)
        return shape

    def dtype(self, number: int, what: str) -> onp.dtype | None:
        """The type with a number; None of bfloat16."""
        if number not in TYPES and number != BFLOAT16:
            self.refuse(f"expected the type of {what}, 0 to {BFLOAT16}; found {number}", 4)
        return TYPES.get(number)

    def elements(self, shape: tuple[int, ...], dtype: onp.dtype | None, what: str) -> onp.ndarray:
        """The next elements of the file, of a shape."""
        if dtype is None:  # bfloat16 is the upper half of float32
            bits = self.elements(shape, onp.dtype("<u2"), what).astype("<u4")
            return (bits << 16).view("<f4")
        size = math.prod(shape) * dtype.itemsize
        if size > self.left:
            self.refuse(f"expected the {size} bytes of {what}, {dtype}{list(shape)}, found {self.left}")
        if size == 0 and math.prod(d or 1 for d in shape) * dtype.itemsize >= 2**63:
            self.refuse(f"expected a shape of {what} that an array can have, found {list(shape)}")
        out = self.memory(shape, dtype, size)
        if size == 0:
            return out
        into = out.reshape(-1).view(onp.uint8)
        have = min(size, len(self.ahead) - self.at)
        into[:have] = onp.frombuffer(self.ahead, onp.uint8, have, self.at)
        self.at += have
        while have < size:
            given = self.file.readinto(into[have:])
            if not given:
                self.refuse(f"the file became shorter while it was read, {what} has {have} of its {size} bytes")
            have += given
        self.left -= size
        if dtype.kind == "b":
            onp.not_equal(into, 0, out=out.reshape(-1))  # memory that NumPy takes for a bool holds 0 or 1
        return out

    def alike(self, head: bytes, shape: tuple[int, ...], dtype: onp.dtype, most: int) -> list[onp.ndarray]:
        """The arrays of a shape, at most so many, that lie ahead one after the other, each after the same head.

        The first one's head was read. Together they cost what one does: a model has thousands of small arrays.
        """
        size, first = math.prod(shape) * dtype.itemsize, self.at - len(head)
        step, apart = len(head) + size, -(-size // 64) * 64
        most = min(most, (len(self.ahead) - first) // step)
        records = onp.frombuffer(self.ahead, onp.uint8, most * step, first).reshape(most, step)
        same = (records[:, : len(head)] == onp.frombuffer(head, onp.uint8)).all(1)
        n = most if same.all() else int(same.argmin())
        memory = self.memory((n, apart), onp.dtype("u1"), n * apart)
        memory[:, :size] = records[:n, len(head) :]
        self.skip(n * step - len(head))
        strides = onp.ndarray(shape, dtype, memory).strides
        return list(onp.ndarray((n, *shape), dtype, memory, 0, (apart, *strides)))

    def memory(self, shape: tuple[int, ...], dtype: onp.dtype, size: int) -> onp.ndarray:
        """An array whose elements are not set. Those of less than 4 MB share blocks.

        NumPy asks for huge pages from 4 MB on, and these are there several times sooner than those of 4 KB.
        """
        if size >= 2**22 or size == 0:
            return onp.empty(shape, dtype)
        if self.free + size > len(self.block):
            self.block = onp.empty(max(min(2**24, self.left), size) + 64, onp.uint8)
            self.free = -self.block.__array_interface__["data"][0] % 64
        out = onp.ndarray(shape, dtype, self.block, self.free)
        self.free += -(-size // 64) * 64
        return out


# ------------------------------------------------------------------ writing
def save(fname: str | os.PathLike | BinaryIO, data: Any, np_shape: bool | None = None) -> None:
    """Write a list or dict of arrays, or one array, as a `.params` file, which MXNet reads: `mx.nd.load(fname)`.

    data       arrays, `RowSparse` and `CSR` ones among them
    np_shape   whether to write the arrays as V3, which MXNet reads only under `mx.util.np_shape`. By default they are
               where one of them has no dimensions or no elements, which V2 cannot say

    Raises TypeError for a dtype that MXNet lacks, before the file is touched. Of those written, int16, uint16, uint32
    and uint64 are read by MXNet 2 alone.

    Raises ValueError for arrays that no one version of the format has.

    >>> sym.params.save("w.params", {"w": np.ones(2)})
    >>> sym.params.load("w.params")
    {'w': array([1., 1.])}
    """
    if not isinstance(data, (Mapping, list, tuple)):
        data = [data]
    names = [str(name) for name in data] if isinstance(data, Mapping) else []
    given = data.values() if isinstance(data, Mapping) else data
    arrays = [array if isinstance(array, (RowSparse, CSR)) else onp.asarray(array) for array in given]
    labels = names or [f"array {i}" for i in range(len(arrays))]
    numbers = [_number(array, label) for array, label in zip(arrays, labels)]
    if np_shape is None:
        np_shape = any(isinstance(array, onp.ndarray) and array.size * array.ndim == 0 for array in arrays)
    for array, label in zip(arrays, labels):
        if isinstance(array, (RowSparse, CSR)):
            array.check()
            if np_shape:
                raise ValueError(
                    f"{label!r} is sparse, and another array has no dimensions or no elements, or np_shape=True: MXNet "
                    "has no file for both. Write them into two, or the dense form (`dense()`)"
                )
        elif isinstance(array, onp.ndarray) and not np_shape and array.ndim == 0:
            raise ValueError(f"{label!r} has no dimensions, which a file can say with np_shape=True only")
    with contextlib.ExitStack() as stack:
        file = fname if hasattr(fname, "write") else stack.enter_context(open(fname, "wb", buffering=2**16))
        file.write(struct.pack("<QQQ", LIST, 0, len(arrays)))
        for array, number in zip(arrays, numbers):
            _write(file, array, number, V3 if np_shape else V2)
        file.write(_U64.pack(len(names)))
        for name in names:
            text = name.encode()
            file.write(_U64.pack(len(text)) + text)


def _number(array: Array, label: str) -> int:
    """MXNet's number of an array's type."""
    dtype = (array if isinstance(array, onp.ndarray) else array.values).dtype
    number = NUMBERS[dtype] if dtype in NUMBERS else NUMBERS.get(dtype.newbyteorder("<"))
    if number is None and dtype.name == "bfloat16":
        return BFLOAT16
    if number is None:
        raise TypeError(f"{label!r} is {dtype}, which MXNet has no type for; expected {', '.join(map(str, NUMBERS))}")
    return number


def _write(file: BinaryIO, array: Array, number: int, version: int) -> None:
    dense = isinstance(array, onp.ndarray)
    values = array if dense else array.values
    if number == BFLOAT16:
        values = values.view("u2")  # of which NumPy knows the bytes
    parts = [] if dense else [onp.asarray(part, "<i8") for part in array.parts()]
    head = struct.pack("<Ii", version, 0 if dense else 1 + isinstance(array, CSR))
    if not dense:
        head += _shape(values.shape)
    head += _shape(array.shape) + struct.pack("<iii", 1, 0, number)  # 1, 0: the processor
    for part in parts:
        head += struct.pack("<i", NUMBERS[part.dtype]) + _shape(part.shape)
    file.write(head)
    for part in (values, *parts):
        if part.dtype.byteorder == ">":
            part = part.astype(part.dtype.newbyteorder("<"))
        file.write(part if part.flags.c_contiguous else onp.ascontiguousarray(part))


def _shape(shape: tuple[int, ...]) -> bytes:
    return struct.pack(f"<i{len(shape)}q", len(shape), *shape)
