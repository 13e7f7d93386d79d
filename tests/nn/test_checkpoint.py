"""The checkpoint file: what it holds, what it refuses, and that it is whole or not there, wherever the process dies."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as onp
import pytest

import minnp.numpy as np
from minnp.nn import checkpoint

ARRAYS = {
    "w": onp.arange(6, dtype=onp.float32).reshape(2, 3),
    "empty": onp.zeros((0, 4)),
    "scalar": onp.array(3, onp.int64),
    "mask": onp.array([True, False]),
    "complex": onp.array([1 + 2j]),
    "big endian": onp.array([1.5], ">f8"),
    "fortran": onp.asfortranarray(onp.arange(6.0).reshape(2, 3)),
}
FACTS = {"epoch": 3, "name": "é", "rates": [0.1, 1e-300], "nested": {"none": None}}


def same(loaded):
    assert list(loaded) == list(ARRAYS)
    for name, value in ARRAYS.items():
        assert onp.asarray(loaded[name]).tobytes() == value.tobytes()
        assert loaded[name].shape == value.shape and loaded[name].dtype == value.dtype


def test_round_trip(tmp_path):
    checkpoint.save(tmp_path / "a", {name: np.array(value) for name, value in ARRAYS.items()}, FACTS)
    arrays, facts = checkpoint.load(tmp_path / "a")
    same(arrays)
    assert facts == FACTS
    arrays["w"][0, 0] = 7  # writable
    assert os.listdir(tmp_path) == ["a"]


def test_the_previous_one_is_kept(tmp_path):
    path = tmp_path / "a"
    for i in range(3):
        checkpoint.save(path, {}, i)
    assert checkpoint.load(path)[1] == 2
    assert checkpoint.load(checkpoint.previous(path))[1] == 1


def put(path, content):
    """Write a file anew: one that is cut short and written again waits for the disk."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def test_every_changed_byte_and_every_length_is_noticed(tmp_path):
    path = tmp_path / "a"
    checkpoint.save(path, {"w": onp.arange(3.0)}, "facts")
    content = path.read_bytes()
    for i in range(len(content)):
        put(path, content[:i] + bytes([content[i] ^ 1]) + content[i + 1 :])
        with pytest.raises(checkpoint.CheckpointError, match=r"is damaged|is not a checkpoint"):
            checkpoint.load(path)
        put(path, content[:i])
        with pytest.raises(checkpoint.CheckpointError, match=r"is damaged|is not a checkpoint"):
            checkpoint.load(path)
    put(path, content + b"\0")
    with pytest.raises(checkpoint.CheckpointError, match="is damaged"):
        checkpoint.load(path)


def test_a_damaged_one_falls_back_to_the_previous_with_a_warning(tmp_path):
    path = tmp_path / "a"
    checkpoint.save(path, {}, 1)
    with pytest.raises(checkpoint.CheckpointError, match="there is no checkpoint at"):
        checkpoint.load_latest(tmp_path / "b")
    checkpoint.save(path, {}, 2)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.warns(RuntimeWarning, match=r"a is damaged: .*; continuing from .*a.previous"):
        assert checkpoint.load_latest(path)[1] == 1
    path.unlink()
    assert checkpoint.exists(path)
    assert checkpoint.load_latest(path)[1] == 1


def test_a_failed_save_leaves_the_old_one(tmp_path):
    path = tmp_path / "a"
    checkpoint.save(path, ARRAYS, 1)
    with pytest.raises(TypeError, match="'o' has dtype object"):
        checkpoint.save(path, {"o": onp.array([None])}, 2)
    with pytest.raises(TypeError, match="not JSON serializable"):
        checkpoint.save(path, {}, {1, 2})
    assert checkpoint.load(path)[1] == 1
    assert os.listdir(tmp_path) == ["a"]


def test_nothing_in_it_is_executed(tmp_path):
    source = Path(checkpoint.__file__).read_text()
    assert "import pickle" not in source and "eval(" not in source


# ------------------------------------------------------------------ killed while training
CRASH = Path(__file__).with_name("crash.py")


def crash(tmp_path, times):
    done = subprocess.run(
        [sys.executable, CRASH, tmp_path, str(times)], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="kills with POSIX signals and file size limits")
def test_killed_20_times_the_training_ends_bit_for_bit_as_if_never_stopped(tmp_path):
    report = crash(tmp_path, 20)
    assert report["killed"] == 20 and report["equal"]


@pytest.mark.exhaustive
@pytest.mark.host("what is killed is the writing of files")
@pytest.mark.skipif(os.name != "posix", reason="kills with POSIX signals and file size limits")
def test_killed_200_times(tmp_path):
    report = crash(tmp_path, 200)
    assert report["killed"] == 200 and report["equal"]


def with_header(path, header):
    """A checkpoint with this header, and a checksum that is right."""
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    content = checkpoint.MAGIC + len(header).to_bytes(8, "little") + header + bytes(64)
    put(path, content + hashlib.sha256(content).digest())
    return path


ENTRY = {"name": "w", "dtype": "<f8", "shape": [2], "at": 200, "size": 16}


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"\xff",
        b"[" * 100_000,
        3,
        [],
        {},
        {"arrays": []},
        {"arrays": 3, "facts": 0},
        {"arrays": [3], "facts": 0},
        *(
            {"arrays": [{**ENTRY, **wrong}], "facts": 0}
            for wrong in (
                {"dtype": "O"},
                {"dtype": "V8"},
                {"dtype": "what"},
                {"dtype": 7},
                {"shape": [3]},
                {"shape": [-2]},
                {"shape": 2},
                {"shape": [1 << 62, 1 << 62]},
                {"shape": [0, 1 << 62], "size": 0},
                {"shape": [2.0]},
                {"at": -8},
                {"at": 1 << 70},
                {"at": "x"},
                {"size": -1},
                {"name": []},
                {"shape": [1] * 200, "size": 8},
            )
        ),
        {"arrays": [{"name": "w"}], "facts": 0},
    ],
)
def test_a_bad_header_under_a_right_checksum(tmp_path, header):
    with pytest.raises(checkpoint.CheckpointError, match="has a header that"):
        checkpoint.load(with_header(tmp_path / "c", header))


@pytest.mark.parametrize("times", [300, pytest.param(10_000, marks=pytest.mark.exhaustive)])
def test_a_damaged_header_is_read_or_refused(tmp_path, times):
    rng, refused = onp.random.default_rng(2), 0
    whole = json.dumps({"arrays": [ENTRY, {**ENTRY, "name": "v", "shape": [1, 2]}], "facts": {"epoch": 3}}).encode()
    for _ in range(times):
        header = bytearray(whole)
        for _ in range(rng.integers(1, 4)):
            header[rng.integers(len(header))] = rng.integers(32, 127) if rng.integers(4) else rng.integers(256)
        try:
            checkpoint.load(with_header(tmp_path / "c", bytes(header)))
        except checkpoint.CheckpointError:
            refused += 1
    assert refused > times // 10
