"""Files of parameters: every record MXNet ever wrote is read, what is malformed is refused, and MXNet reads ours."""

from __future__ import annotations

import io
import math
import struct
import tracemalloc
from typing import Any

import numpy as onp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minnp.numpy as np
import minnp.symbol as sym
from minnp.symbol.json_format import parse_json
from minnp.symbol.params import CSR, TYPES, RowSparse, load, load_params, save, save_params

pytestmark = [
    pytest.mark.host("about files"),
    pytest.mark.either("about files"),
    pytest.mark.filterwarnings("ignore:Please import `csr_matrix`:DeprecationWarning"),  # mx.nd.array asks for it
]

ONE_TWO = "00 00 80 3f 00 00 00 40"
# each one array, float32 [1, 2], on gpu(3), as MXNet wrote it
V0 = "01 00 00 00  02 00 00 00                                02 00 00 00 03 00 00 00 00 00 00 00 " + ONE_TWO
V1 = "c8 fa 93 f9  01 00 00 00 02 00 00 00 00 00 00 00        02 00 00 00 03 00 00 00 00 00 00 00 " + ONE_TWO
V2 = "c9 fa 93 f9 00 00 00 00  01 00 00 00 02 00 00 00 00 00 00 00 02 00 00 00 03 00 00 00 00 00 00 00 " + ONE_TWO
V3 = "ca fa 93 f9 00 00 00 00  01 00 00 00 02 00 00 00 00 00 00 00 02 00 00 00 03 00 00 00 00 00 00 00 " + ONE_TWO
NUMBER = "ca fa 93 f9 00 00 00 00  00 00 00 00  01 00 00 00 00 00 00 00 00 00 00 00 00 00 40 40"
EMPTY = (
    "ca fa 93 f9 00 00 00 00  02 00 00 00 00 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00"
    "01 00 00 00 00 00 00 00 04 00 00 00"
)
# [[0, 0], [0, 2]] float32: the rows' shape, the shape, context, type; of the indices type and shape; elements, indices
ROWS = (
    "c9 fa 93 f9 01 00 00 00  02 00 00 00 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00"
    "02 00 00 00 02 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00  01 00 00 00 00 00 00 00  00 00 00 00"
    "06 00 00 00 01 00 00 00 01 00 00 00 00 00 00 00  00 00 00 00 00 00 00 40  01 00 00 00 00 00 00 00"
)
# the same; of indptr and of the indices type and shape; elements, indptr, indices
MATRIX = (
    "c9 fa 93 f9 02 00 00 00  01 00 00 00 01 00 00 00 00 00 00 00"
    "02 00 00 00 02 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00  01 00 00 00 00 00 00 00  00 00 00 00"
    "06 00 00 00 01 00 00 00 03 00 00 00 00 00 00 00  06 00 00 00 01 00 00 00 01 00 00 00 00 00 00 00"
    "00 00 00 40  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00  01 00 00 00 00 00 00 00"
)


def file(*arrays: str | bytes, names: tuple[str, ...] = (), count: int | None = None) -> io.BytesIO:
    """The arrays, each the bytes of its record, as a file."""
    records = [bytes.fromhex(a) if isinstance(a, str) else a for a in arrays]
    text = struct.pack("<QQQ", 0x112, 0, len(records) if count is None else count) + b"".join(records)
    text += struct.pack("<Q", len(names))
    for name in names:
        text += struct.pack("<Q", len(name.encode())) + name.encode()
    return io.BytesIO(text)


def written(data: Any, **options: Any) -> io.BytesIO:
    out = io.BytesIO()
    save(out, data, **options)
    out.seek(0)
    return out


def same(a: Any, b: Any) -> bool:
    if isinstance(a, onp.ndarray):
        return isinstance(b, onp.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and a.shape == b.shape and all(map(same, [a.values, *a.parts()], [b.values, *b.parts()]))


# ------------------------------------------------------------------ what is read
@pytest.mark.parametrize("record", [V0, V1, V2, V3], ids=["V0", "V1", "V2", "V3"])
def test_each_version_of_a_record_is_read(record):
    arrays = load(file(record, record))
    assert len(arrays) == 2
    for array in arrays:
        assert array.dtype == onp.float32 and array.tolist() == [1.0, 2.0]
        assert array.flags.writeable and array.flags.c_contiguous and array.__array_interface__["data"][0] % 64 == 0


def test_names_make_a_dictionary_and_their_prefixes_two():
    names = ("arg:w", "aux:läuft:mean")
    assert list(load(file(V2, V0, names=names))) == list(names)
    arguments, states = load_params(file(V2, V0, names=names))
    assert list(arguments) == ["w"] and list(states) == ["läuft:mean"]
    assert load(file()) == [] and load_params(file()) == ({}, {})


def test_numbers_and_empty_arrays_and_those_without_values():
    number, empty = load(file(NUMBER, EMPTY))
    assert number.shape == () and number == 3.0 and number.dtype == onp.float32
    assert empty.shape == (0, 3) and empty.dtype == onp.int32
    no_values = ["00 00 00 00", "c8 fa 93 f9 00 00 00 00", "c9 fa 93 f9 00 00 00 00 00 00 00 00",
                 "ca fa 93 f9 00 00 00 00 ff ff ff ff"]  # fmt: skip
    assert load(file(*no_values)) == [None] * 4
    with pytest.raises(ValueError, match="'arg:w' was never given a value"):
        load_params(file(no_values[0], names=("arg:w",)))


@pytest.mark.parametrize("number", [*TYPES, 12])
def test_every_type_is_read_and_written(number):
    if number == 12:  # 1 and 2.5 as bfloat16
        elements, expected = bytes.fromhex("80 3f 20 40"), onp.array([1, 2.5], onp.float32)
    else:
        expected = onp.array([1, 0], TYPES[number])
        elements = expected.tobytes()
        assert written([expected]).getvalue() == written([expected.astype(expected.dtype.newbyteorder(">"))]).getvalue()
    record = struct.pack("<IiIqiii", 0xF993FAC9, 0, 1, 2, 1, 0, number) + elements
    (found,) = load(file(record))
    assert same(found, expected)
    if number != 12:
        assert written([expected]).getvalue() == file(record).getvalue()


def test_bfloat16_is_written_as_such_and_read_as_float32():
    bfloat16 = pytest.importorskip("ml_dtypes", reason="it gives NumPy the type").bfloat16
    for array in (onp.array([1, 2.5], bfloat16), onp.asfortranarray(onp.array([[1, -3], [0.5, 2]], bfloat16))):
        (found,) = load(written([array]))
        assert found.dtype == onp.float32 and found.tolist() == array.astype(float).tolist()
    assert b"\x0c\0\0\0\x80\x3f\x20\x40" in written([onp.array([1, 2.5], bfloat16)]).getvalue()


def test_arrays_lie_in_memory_of_their_own_whatever_order_they_came_in():
    arrays = [onp.arange(n, dtype=t) for n in (0, 1, 63, 0, 64, 5000, 2**20 + 1, 0, 3) for t in ("f4", "u1")]
    arrays += [onp.arange(12).reshape(3, 4).T, onp.arange(10)[::2], onp.arange(4, dtype=">i4")]
    found = load(written(arrays))
    for i, (a, b) in enumerate(zip(found, arrays, strict=True)):
        assert a.tolist() == b.tolist() and a.shape == b.shape
        assert not any(onp.shares_memory(a, other) for other in found[:i])
        a[...] = 7  # and no later array has changed


def test_memory_read_as_bool_holds_only_zeros_and_ones():
    record = struct.pack("<IiIqiii", 0xF993FAC9, 0, 1, 3, 1, 0, 7) + b"\x00\x01\xff"
    assert load(file(record))[0].view(onp.uint8).tolist() == [0, 1, 1]


def test_sparse_arrays_are_read_as_such_and_of_models_as_dense_ones():
    rows, matrix = load(file(ROWS, MATRIX))
    assert isinstance(rows, RowSparse) and isinstance(matrix, CSR)
    assert rows.dense().tolist() == matrix.dense().tolist() == [[0, 0], [0, 2]]
    assert rows.indices.tolist() == [1] and matrix.indptr.tolist() == [0, 0, 1] and matrix.indices.tolist() == [1]
    arguments, _ = load_params(file(ROWS, MATRIX, names=("arg:rows", "arg:matrix")))
    assert [a.tolist() for a in arguments.values()] == [[[0, 0], [0, 2]]] * 2
    assert written([rows, matrix]).getvalue() == file(ROWS, MATRIX).getvalue()
    with pytest.raises(ValueError, match="16 bytes as a dense array, more than dense_limit, 15"):
        load_params(file(ROWS, names=("arg:rows",)), dense_limit=15)


def test_a_model_is_saved_and_loaded(tmp_path):
    net = sym.FullyConnected(sym.Variable("data"), num_hidden=3, name="fc")
    arguments = {"fc_weight": np.ones((3, 2), "f4"), "fc_bias": onp.arange(3.0)}
    sym.save_checkpoint(str(tmp_path / "model"), 7, net, arguments, {"mean": onp.float16(2) * onp.ones(2, "f2")})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model-0007.params", "model-symbol.json"]
    back, found, states = sym.load_checkpoint(str(tmp_path / "model"), 7)
    assert back.tojson() == net.tojson()
    assert same(found["fc_weight"], onp.ones((3, 2), "f4")) and same(found["fc_bias"], onp.arange(3.0))
    assert same(states["mean"], onp.full(2, 2, "f2"))
    save_params(tmp_path / "more.params", found)
    assert load_params(tmp_path / "more.params")[1] == {}


# ------------------------------------------------------------------ what is refused
def v2(*dimensions: int, number: int = 0, ndim: int | None = None, storage: int = 0, rest: bytes = b"") -> bytes:
    n = len(dimensions)
    return (
        struct.pack(f"<Iii{n}qiii", 0xF993FAC9, storage, n if ndim is None else ndim, *dimensions, 1, 0, number) + rest
    )


def changed(record: str, at: int, byte: int) -> bytes:
    out = bytearray.fromhex(record)
    out[at] = byte
    return bytes(out)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (io.BytesIO(), "is no list of MXNet's arrays: expected 16 bytes of the head of the file, found 0 at byte 0"),
        (io.BytesIO(b"PK\x03\x04" + bytes(40)), r"expected 0x112, found 0x4034b50 \(a zip file.* at byte 0"),
        (io.BytesIO(struct.pack("<QQ", 0x112, 0)), "expected 8 bytes of the number of arrays, found 0 at byte 16"),
        (file(count=2**63), "the number of arrays, at most 2; found 9223372036854775808 at byte 16"),
        (file(V2, count=2), "expected 8 bytes of the number of names, found 4"),
        (file("ff fa 93 f9"), r"expected array 0, which begins with .* found 0xf993faff at byte 24"),
        (file("21 00 00 00"), "at most 32 dimensions; found 0x21 at byte 24"),
        (file(v2(3)), "expected the 12 bytes of array 0, float32.3., found 8 at byte 56"),
        (file(v2(2**62, 2**62)), "expected the [0-9]+ bytes of array 0"),
        (file(v2(0, 2**62, 2**62)), "a shape of array 0 that an array can have"),
        (file(v2(-1)), r"expected the shape of array 0, found \[-1\] at byte 36"),
        (file(v2(ndim=33)), "the number of dimensions of array 0, 0 to 32; found 33 at byte 32"),
        (file(v2(ndim=-1)), "the number of dimensions of array 0, 0 to 32; found -1 at byte 32"),
        (file(v2(1, number=13)), "expected the type of array 0, 0 to 12; found 13 at byte 52"),
        (file(v2(1, storage=3)), r"expected the storage of array 0, 0 \(dense\), .* found 3 at byte 28"),
        (file(V2, names=("a", "b")), "expected 1 names, one for each array, or none; found 2 names"),
        (file(V2, V2, names=("a", "a")), "the name 'a' stands for two arrays"),
        (io.BytesIO(file(V2).getvalue() + b"x"), "expected the end of the file after the names, found 1 bytes"),
        (io.BytesIO(file(V2, names=("ab",)).getvalue()[:-2] + b"\xff\xff"), "expected name 0 in UTF-8"),
        (io.BytesIO(file(V2, names=("ab",)).getvalue()[:-1]), "the length of name 0, at most 1; found 2"),
        (file(changed(ROWS, 84, 2)), "index 2 of a row_sparse array should be at least 0 and less than 2"),
        (file(changed(ROWS, 40, 3)), "a row_sparse array .* has values"),
        (file(changed(ROWS, 60, 0)), "whole numbers as indices of array 0, found float32"),
        (file(changed(MATRIX, 104, 2)), "indptr of a csr array of 1 values should ascend from 0 to 1"),
        (file(changed(MATRIX, 112, 9)), "index 9 of a csr array should be at least 0 and less than 2"),
        (file(changed(MATRIX, 24, 3)), "a csr array .* has values"),
    ],
)  # fmt: skip
def test_what_is_malformed_is_refused_and_the_error_says_where(given, message):
    with pytest.raises(ValueError, match=message):
        load(given)


def test_sparse_indices_ascend():
    values, indices = onp.ones((2, 1)), onp.array([1, 0])
    with pytest.raises(ValueError, match="the indices of a row_sparse array should ascend; found 0 after 1"):
        written([RowSparse((3, 1), values, indices)])
    with pytest.raises(ValueError, match="the indices of a csr array should ascend; found 0 after 1"):
        written([CSR((1, 2), onp.ones(2), onp.array([0, 2]), indices)])
    two_rows = CSR((2, 2), onp.ones(2), onp.array([0, 1, 2]), indices)
    assert load(written([two_rows]))[0].dense().tolist() == [[0, 1], [1, 0]]


def test_a_model_needs_names_and_their_prefixes():
    with pytest.raises(ValueError, match="has 1 arrays and no names"):
        load_params(file(V2))
    with pytest.raises(ValueError, match="has an array 'w'; expected 'arg:' or 'aux:' before each name"):
        load_params(file(V2, names=("w",)))
    with pytest.raises(ValueError, match="has an array 'x:w'"):
        load_params(file(V2, names=("x:w",)))


def test_what_cannot_be_written_is_refused_before_the_file_is_touched(tmp_path):
    path = tmp_path / "kept.params"
    save(path, onp.ones(2))
    before = path.read_bytes()
    with pytest.raises(TypeError, match="'w' is complex128, which MXNet has no type for; expected float32"):
        save(path, {"v": onp.ones(2), "w": onp.ones(2, complex)})
    with pytest.raises(ValueError, match="'array 1' is sparse, and another array has no dimensions"):
        save(path, [onp.float32(3), load(file(ROWS))[0]])
    with pytest.raises(ValueError, match="'array 0' has no dimensions, which a file can say with np_shape=True only"):
        save(path, [onp.float32(3)], np_shape=False)
    assert path.read_bytes() == before
    assert load(path)[0].tolist() == [1, 1]


# ------------------------------------------------------------------ round trips and damage
shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)
dense = st.builds(
    lambda dtype, shape, seed: onp.random.default_rng(seed).integers(0, 2, shape).astype(dtype),
    st.sampled_from(list(TYPES.values())), shapes, st.integers(0, 9),
)  # fmt: skip
SPARSE = load(file(ROWS, MATRIX))


@given(st.lists(dense, max_size=4), st.booleans())
def test_what_was_written_is_read(arrays, named):
    data = {f"arg:{i}": a for i, a in enumerate(arrays)} if named else arrays
    found = load(written(data))
    if named and arrays:
        assert list(found) == list(data)
        found = list(found.values())
    assert len(found) == len(arrays) and all(map(same, found, arrays))


FILES = [
    file(V0, V1, V2, NUMBER, EMPTY, V3, names=("arg:a", "aux:b", "c", "d", "e", "f")).getvalue(),
    file(ROWS, MATRIX, V2).getvalue(),
    file(
        *(v2(2, number=n, rest=bytes(2 * t.itemsize)) for n, t in TYPES.items()), v2(1, number=12, rest=b"12")
    ).getvalue(),
]
places = st.integers(0, 10_000)
damage = st.one_of(
    st.tuples(st.just("flip"), places, st.integers(0, 7)),
    st.tuples(st.just("put"), places, st.sampled_from([0, 1, 2, 3, 32, 33, 127, 128, 255])),
    st.tuples(st.just("fill"), places, st.sampled_from([b"\xff" * 8, bytes(8), b"\x7f" + b"\xff" * 7, b"\1" * 16])),
    st.tuples(st.just("cut"), places, places),
)


def damaged(text: bytes, changes: list) -> bytes:
    out = bytearray(text)
    for kind, at, what in changes:
        if not out:
            break
        at %= len(out)
        if kind == "flip":
            out[at] ^= 1 << what
        elif kind == "put":
            out[at] = what
        elif kind == "fill":
            out[at : at + len(what)] = what
        elif what % 2:
            del out[at:]
        else:
            del out[at : at + what % 32]
    return bytes(out)


@pytest.mark.long
@settings(max_examples=1500)
@given(st.sampled_from(FILES), st.lists(damage, min_size=1, max_size=3))
def test_whatever_is_damaged_arrays_are_read_or_a_value_error_raised(text, changes):
    given = damaged(text, changes)
    tracemalloc.start()
    try:
        found = load(io.BytesIO(given))
    except ValueError as error:
        assert "is no list of MXNet's arrays" in str(error) and len(str(error)) < 600
        found = None
    finally:
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert most < 300_000 + 8 * len(given), "memory is taken for what the file holds, not for what it says"
    for array in found.values() if isinstance(found, dict) else found or ():
        if isinstance(array, onp.ndarray):
            assert array.nbytes <= 2 * len(given)
        elif array is not None and math.prod(array.shape) < 2**16:
            assert array.dense().shape == array.shape


@settings(max_examples=300)
@given(st.binary(max_size=80))
def test_whatever_follows_the_head_arrays_are_read_or_a_value_error_raised(rest):
    try:
        load(io.BytesIO(struct.pack("<QQ", 0x112, 0) + rest))
    except ValueError as error:
        assert "is no list of MXNet's arrays" in str(error)


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        (20, "the number of arrays is missing at byte 16"),
        (40, "array 0 is missing at byte 24"),
        (60, "array 0 is missing at byte 24"),
        (2**20, "array 0 has 1048520 of its 4000000 bytes at byte 56"),
        (4_000_060, "the number of names is missing at byte 4000056"),
        (4_000_080, "what names there are is missing at byte 4000064"),
    ],
)
def test_a_file_that_becomes_shorter_while_it_is_read_is_refused(kept, message):
    whole = written({"a long name": onp.zeros(1_000_000, "f4")}).getvalue()

    class Shrinking(io.BytesIO):
        def seek(self, at: int, whence: int = 0) -> int:
            return super().seek(at, whence) if whence == 0 else len(whole)

    with pytest.raises(ValueError, match=message):
        load(Shrinking(whole[:kept]))


def test_arrays_of_one_shape_in_a_row_are_those_that_were_written():
    runs = [("f4", (3,), 5000), ("u1", (1, 2), 3), ("?", (5,), 3), ("f4", (2, 2, 2), 2), ("i8", (), 3)]
    runs += [("f8", (40_000,), 4), ("f2", (0, 3), 3), ("f4", (3,), 1)]

    def arrays() -> Any:
        for dtype, shape, many in runs:
            for i in range(many):
                yield onp.asarray(onp.arange(math.prod(shape)).reshape(shape) + i, dtype)

    data = {f"arg:{i}": array for i, array in enumerate(arrays())}
    found = load(written(data))
    assert list(found) == list(data) and all(map(same, found.values(), data.values()))
    for array in found.values():
        assert array.flags.c_contiguous and array.flags.writeable and array.flags.aligned
    found["arg:1"][...] = 7
    assert same(found["arg:0"], data["arg:0"]) and same(found["arg:2"], data["arg:2"])


# ------------------------------------------------------------------ against MXNet
@pytest.fixture
def mx():
    return pytest.importorskip("mxnet", reason="MXNet's own files are what is read and written")


OF_19 = ["float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool"]


def test_we_read_what_mxnet_writes(mx, tmp_path):
    path = str(tmp_path / "theirs.params")
    arrays = {f"arg:{d}": mx.nd.array(onp.arange(6).reshape(2, 3) % 5, dtype=d) for d in OF_19}
    mx.nd.save(path, arrays)
    found = load(path)
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert same(found[name], array.asnumpy()), name
    mx.nd.save(path, list(arrays.values()))
    assert all(same(a, b.asnumpy()) for a, b in zip(load(path), arrays.values(), strict=True))
    (tmp_path / "old.params").write_bytes(file(V0, V1, V2).getvalue())
    for a, b in zip(load(tmp_path / "old.params"), mx.nd.load(str(tmp_path / "old.params")), strict=True):
        assert same(a, b.asnumpy())
    mx.nd.save(path, [mx.nd.cast(mx.nd.array([1, -2.5]), "bfloat16")])
    assert load(path)[0].tolist() == [1, -2.5]


def test_mxnet_reads_what_we_write(mx, tmp_path):
    path = str(tmp_path / "ours.params")
    arrays = {f"aux:{d}": (onp.arange(6).reshape(2, 3) % 5).astype(d) for d in OF_19}
    save(path, arrays)
    found = mx.nd.load(path)
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert same(found[name].asnumpy(), array), name
    again = str(tmp_path / "again.params")
    mx.nd.save(again, found)
    assert (tmp_path / "again.params").read_bytes() == (tmp_path / "ours.params").read_bytes()
    save(path, list(arrays.values()))
    assert all(same(a.asnumpy(), b) for a, b in zip(mx.nd.load(path), arrays.values(), strict=True))


def test_sparse_arrays_go_to_mxnet_and_back(mx, tmp_path):
    path, again = str(tmp_path / "theirs.params"), tmp_path / "ours.params"
    dense = onp.zeros((4, 3), "f4")
    dense[1, 2], dense[3, 0], dense[3, 1] = 2, 3, 4
    theirs = [
        mx.nd.sparse.csr_matrix(dense),
        mx.nd.sparse.row_sparse_array(dense),
        mx.nd.sparse.zeros("csr", (2, 5)),
        mx.nd.sparse.zeros("row_sparse", (2, 5, 3), dtype="float64"),
    ]
    for array in theirs:
        array.wait_to_read()  # MXNet writes how many rows there are before it knows
    mx.nd.save(path, theirs)
    ours = load(path)
    assert all(same(a.dense(), b.asnumpy()) for a, b in zip(ours, theirs, strict=True))
    save(again, ours)
    assert again.read_bytes() == (tmp_path / "theirs.params").read_bytes()
    for a, b in zip(mx.nd.load(str(again)), theirs, strict=True):
        assert a.stype == b.stype and same(a.asnumpy(), b.asnumpy())


def test_numpy_shapes_go_to_mxnet_and_back(mx, tmp_path):
    path, again = str(tmp_path / "theirs.params"), tmp_path / "ours.params"
    with mx.util.np_shape(True), mx.util.np_array(True):
        theirs = {"n": mx.np.array(3.0), "e": mx.np.zeros((0, 3)), "a": mx.np.array([[1, 2]], dtype="int8")}
        mx.npx.save(path, theirs)
        ours = load(path)
        assert all(same(ours[name], theirs[name].asnumpy()) for name in theirs)
        save(again, ours)
        assert again.read_bytes() == (tmp_path / "theirs.params").read_bytes()
        assert all(same(a.asnumpy(), ours[name]) for name, a in mx.npx.load(str(again)).items())


def test_a_model_goes_to_mxnet_and_back(mx, tmp_path):
    data = mx.sym.Variable("data")
    net = mx.sym.BatchNorm(mx.sym.FullyConnected(data, num_hidden=3, name="fc"), name="bn")
    draw = onp.random.default_rng(0)
    arguments = {n: draw.normal(size=s).astype("f4") for n, s in [("fc_weight", (3, 2)), ("fc_bias", 3)]}
    states = {"bn_moving_mean": draw.normal(size=3).astype("f4")}
    wrapped = [{n: mx.nd.array(a) for n, a in group.items()} for group in (arguments, states)]
    mx.model.save_checkpoint(str(tmp_path / "theirs"), 3, net, *wrapped)
    symbol, *found = sym.load_checkpoint(str(tmp_path / "theirs"), 3)
    assert symbol.list_arguments() == net.list_arguments()
    assert all(
        same(a, b) for group, own in zip(found, (arguments, states)) for a, b in zip(group.values(), own.values())
    )
    sym.save_checkpoint(str(tmp_path / "ours"), 3, symbol, *found)
    back, *groups = mx.model.load_checkpoint(str(tmp_path / "ours"), 3)
    assert parse_json(back.tojson()) == parse_json(net.tojson())
    for group, own in zip(groups, (arguments, states)):
        assert list(group) == list(own) and all(same(a.asnumpy(), own[n]) for n, a in group.items())
