"""MXNet's data iterators work without it, and give its batches."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp.backends import installed
from minnp.nn import readers
from minnp.nn.datasets import DataFileError
from minnp.nn.io import NDArrayIter

pytestmark = pytest.mark.either("about files and batches")


@pytest.fixture
def files(tmp_path: Any) -> Any:
    onp.savetxt(tmp_path / "x.csv", onp.arange(30).reshape(5, 6), delimiter=",", fmt="%g")
    onp.savetxt(tmp_path / "y.csv", onp.arange(10).reshape(5, 2) + 10, delimiter=",", fmt="%g")
    (tmp_path / "s.txt").write_text("1 0:0.5 2:1.5\n2 1:2\n3 0:1 1:2 2:3\n")
    images, labels = onp.arange(5 * 6, dtype="u1").reshape(5, 2, 3), onp.arange(5, dtype="u1")
    (tmp_path / "images").write_bytes(struct.pack(">IIII", 2051, 5, 2, 3) + images.tobytes())
    (tmp_path / "labels").write_bytes(struct.pack(">II", 2049, 5) + labels.tobytes())
    return tmp_path


def record(content: bytes, labels: list[float], part: int = 0) -> bytes:
    head = struct.pack("<IfQQ", 0, labels[0], 0, 0) if len(labels) == 1 else struct.pack("<IfQQ", len(labels), 0, 0, 0)
    more = struct.pack(f"<{len(labels)}f", *labels) if len(labels) > 1 else b""
    return framed(head + more + content)


def framed(content: bytes, part: int = 0) -> bytes:
    return struct.pack("<II", readers.MAGIC, part << 29 | len(content)) + content + b"\0" * (-len(content) % 4)


def png(pixels: onp.ndarray) -> bytes:
    image = pytest.importorskip("PIL.Image", reason="images are made with Pillow")
    out = io.BytesIO()
    image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


PIXELS = onp.arange(4 * 5 * 6 * 3, dtype="u1").reshape(4, 5, 6, 3)


@pytest.fixture
def images(tmp_path: Any) -> Any:
    path = tmp_path / "images.rec"
    path.write_bytes(b"".join(record(png(p), [k + 0.5]) for k, p in enumerate(PIXELS)))
    return path


MAKERS = {
    "CSVIter": lambda m, d: m.CSVIter(
        data_csv=str(d / "x.csv"), data_shape=(2, 3), label_csv=str(d / "y.csv"), label_shape=(2,), batch_size=2
    ),
    "CSVIter without labels": lambda m, d: m.CSVIter(
        data_csv=str(d / "x.csv"), data_shape=(6,), batch_size=2, round_batch=False
    ),
    "LibSVMIter": lambda m, d: m.LibSVMIter(data_libsvm=str(d / "s.txt"), data_shape=(3,), batch_size=2),
    "MNISTIter": lambda m, d: m.MNISTIter(
        image=str(d / "images"), label=str(d / "labels"), batch_size=2, shuffle=False, silent=True
    ),
    "MNISTIter flat": lambda m, d: m.MNISTIter(
        image=str(d / "images"), label=str(d / "labels"), batch_size=2, shuffle=False, flat=True, silent=True
    ),
}


def batches(it: Any) -> list:
    host = lambda a: onp.asarray(a.asnumpy() if hasattr(a, "asnumpy") else a)
    return [([*map(host, b.data)], [*map(host, b.label)], b.pad) for b in it]


def same(ours: list, theirs: list, pads: bool = True) -> None:
    assert len(ours) == len(theirs)
    for (x, y, pad), (v, w, theirs_pad) in zip(ours, theirs, strict=True):
        assert pad == theirs_pad or not pads
        for a, b in zip([*x, *y], [*v, *w], strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            onp.testing.assert_array_equal(a, b)


def mxnet_io() -> Any:
    if "mxnet" not in installed():
        pytest.skip("mxnet is not installed")
    import mxnet

    return mxnet.io


def nd(x: onp.ndarray) -> Any:
    import mxnet

    return mxnet.nd.array(x)


@pytest.mark.parametrize("name", MAKERS)
def test_iterators_over_files_give_mxnets_batches(name: str, files: Any) -> None:
    theirs, ours = MAKERS[name](mxnet_io(), files), MAKERS[name](readers, files)
    first = [batches(theirs), theirs.reset(), batches(theirs)]
    same(batches(ours), first[0])
    ours.reset()
    same(batches(ours), first[2])
    assert [tuple(d[1]) for d in ours.provide_data] == [tuple(d.shape) for d in theirs.provide_data]
    assert [tuple(d[1]) for d in ours.provide_label] == [tuple(d.shape) for d in theirs.provide_label]


@pytest.mark.filterwarnings("ignore:Please import `csr_matrix`:DeprecationWarning")  # MXNet's
@pytest.mark.parametrize("reset_internal", [True, False])
def test_resized_iterators_give_mxnets_batches(reset_internal: bool) -> None:
    theirs = mxnet_io()
    a, b = onp.arange(4.0, dtype="f4"), onp.arange(4.0, dtype="f4") + 10
    one = theirs.ResizeIter(theirs.NDArrayIter(nd(a), nd(b), 2), 3, reset_internal)
    other = readers.ResizeIter(NDArrayIter(a, b, 2), 3, reset_internal)
    for _ in range(3):
        same(batches(other), batches(one))
        one.reset()
        other.reset()


def test_several_iterators_are_read_side_by_side_by_a_thread() -> None:
    a, b = onp.arange(4.0, dtype="f4"), onp.arange(4.0, dtype="f4") + 10
    with readers.PrefetchingIter([NDArrayIter(a, b, 2), NDArrayIter(b, a, 2)], [{"data": "x"}, {"data": "y"}]) as it:
        assert [name for name, _ in it.provide_data] == ["x", "y"] and len(it) == 2
        for _ in range(2):
            want = [([a[k : k + 2], b[k : k + 2]], [b[k : k + 2], a[k : k + 2]], 0) for k in (0, 2)]
            same(batches(it), want)
            it.reset()


@pytest.mark.filterwarnings("ignore:Please import `csr_matrix`:DeprecationWarning")  # MXNet's
@pytest.mark.parametrize("count", [5, 7])
def test_roll_over_gives_mxnets_batches(count: int) -> None:
    a = onp.arange(float(count), dtype="f4")
    one = mxnet_io().NDArrayIter(nd(a), nd(a), 3, last_batch_handle="roll_over")
    other = NDArrayIter(a, a, 3, last_batch_handle="roll_over")
    for _ in range(4):  # MXNet calls what is left over of the epoch before padding, of which there is none
        same(batches(other), batches(one), pads=False)
        one.reset()
        other.reset()


def test_without_mxnet_files_are_read_in_rounds(files: Any) -> None:
    it = MAKERS["CSVIter"](readers, files)
    first = [[int(r[0, 0]) for r in x[0]] for x, _, _ in batches(it)]
    it.reset()
    assert first == [[0, 6], [12, 18], [24, 0]]
    assert [[int(r[0, 0]) for r in x[0]] for x, _, _ in batches(it)] == [[6, 12], [18, 24]]
    assert len(MAKERS["MNISTIter"](readers, files)) == 2
    dense = batches(MAKERS["LibSVMIter"](readers, files))
    assert dense[0][0][0].tolist() == [[0.5, 0, 1.5], [0, 2, 0]] and dense[1][2] == 1


def test_images_of_a_record_file_are_decoded_cropped_and_scaled(images: Any) -> None:
    whole = readers.ImageRecordIter(path_imgrec=images, data_shape=(3, 5, 6), batch_size=2)
    x = onp.concatenate([x[0] for x, _, _ in batches(whole)])
    onp.testing.assert_array_equal(x, PIXELS.transpose(0, 3, 1, 2))
    part = readers.ImageRecordIter(images, (3, 3, 4), 4, mean_r=1.0, std_g=2.0, scale=0.5)
    got = batches(part)[0]
    want = PIXELS[:, 1:4, 1:5].transpose(0, 3, 1, 2).astype("f4") - onp.float32([1, 0, 0]).reshape(-1, 1, 1)
    onp.testing.assert_allclose(got[0][0], want / onp.float32([1, 2, 1]).reshape(-1, 1, 1) * 0.5)
    assert got[1][0].tolist() == [0.5, 1.5, 2.5, 3.5]
    drawn = readers.ImageRecordIter(images, (1, 8, 8), 4, rand_crop=True, rand_mirror=True, resize=9, shuffle=True)
    assert batches(drawn)[0][0][0].shape == (4, 1, 8, 8)


def test_images_of_a_record_file_are_mxnets(images: Any) -> None:
    options = {"path_imgrec": str(images), "data_shape": (3, 5, 6), "batch_size": 2, "mean_r": 3.0, "scale": 0.25}
    theirs = mxnet_io().ImageRecordIter(**options)
    same(batches(readers.ImageRecordIter(**options)), batches(theirs))


def test_a_record_of_several_parts_is_put_together(tmp_path: Any) -> None:
    path = tmp_path / "parts"
    path.write_bytes(framed(b"ab", 1) + framed(b"cd", 2) + framed(b"e", 3) + framed(b"whole"))
    between = struct.pack("<I", readers.MAGIC)
    assert readers.records(path) == [b"ab" + between + b"cd" + between + b"e", b"whole"]


@pytest.mark.parametrize("content", [b"no records", framed(b"x")[:-3], framed(b"ab", 1), b"\0" * 16])
def test_a_damaged_record_file_is_refused(content: bytes, tmp_path: Any) -> None:
    (tmp_path / "r").write_bytes(content)
    with pytest.raises(DataFileError):
        readers.ImageRecordIter(tmp_path / "r", (3, 2, 2))


def test_files_that_do_not_fit_are_refused(files: Any) -> None:
    with pytest.raises(DataFileError, match="6 numbers in a line"):
        readers.CSVIter(files / "x.csv", (5,))
    with pytest.raises(DataFileError, match="line 1: place 2 of 2"):
        readers.LibSVMIter(files / "s.txt", 2)
    with pytest.raises(ValueError, match="batch_size must be between 1 and the 5"):
        readers.MNISTIter(files / "images", files / "labels", 6)
    onp.savetxt(files / "three.csv", [1, 2, 3])
    with pytest.raises(ValueError, match="5 examples and 3 labels"):
        readers.CSVIter(files / "x.csv", (6,), files / "three.csv")
    with pytest.raises(TypeError, match="round_batch"):
        readers.CSVIter(files / "x.csv", (6,), roundbatch=True)


def test_a_training_over_rolled_over_batches_is_resumed() -> None:
    it = NDArrayIter(np.arange(5.0), batch_size=2, shuffle=True, last_batch_handle="roll_over", seed=1)
    batches(it)
    it.reset()
    it.next()
    state = it.state()
    rest = batches(it)
    again = NDArrayIter(np.arange(5.0), batch_size=2, shuffle=True, last_batch_handle="roll_over", seed=9)
    again.restore(state)
    same(batches(again), rest)
