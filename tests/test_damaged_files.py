"""Files that were damaged, or made to do harm: each is read or refused with the loader's own error, and runs nothing.

`python tests/test_damaged_files.py 100000` damages as many of each kind, and says how many were read and how many
refused.
"""

import hashlib
import io
import os
import pickle
import struct
import sys
import tempfile
import tokenize
import warnings
import zipfile
import zlib
from collections import Counter
from pathlib import Path

import numpy
import pytest

import minnp
import minnp.numpy as np
from minnp import symbol as sym
from minnp.errors import SymbolError
from minnp.nn import checkpoint, datasets

pytestmark = pytest.mark.either("files, which Python reads")
UNPICKLED = []
sys.addaudithook(lambda event, about: UNPICKLED.append(about) if event == "pickle.find_class" else None)


def whole(kind, folder):
    """The bytes of a good file."""
    path = folder / "whole"
    x = np.arange(6.0).reshape(2, 3)
    if kind.startswith("checkpoint"):
        checkpoint.save(path, {"w": x, "b": np.ones(2, "f4")}, {"epoch": 3})
        return path.read_bytes()
    if kind == ".params":
        sym.params.save(str(path), {"arg:w": numpy.asarray(x), "aux:m": numpy.ones(3, "f2")})
        return path.read_bytes()
    if kind == "-symbol.json":
        net = sym.Activation(sym.FullyConnected(sym.Variable("x"), name="fc", num_hidden=3), act_type="relu")
        return sym.SoftmaxOutput(sym.BatchNorm(net), name="softmax").tojson().encode()
    if kind == "CIFAR-10 batch":
        pixels = numpy.arange(2 * 3072).reshape(2, 3072).astype(numpy.uint8)
        return pickle.dumps({b"data": pixels, b"labels": [3, 4], b"batch_label": b"one"}, protocol=2)
    if kind == "idx":
        return b"\0\0\x0d\2" + struct.pack(">II", 2, 3) + numpy.arange(6, dtype=">f4").tobytes()
    file = io.BytesIO()
    if kind == ".npz":
        np.savez(file, w=x, b=np.ones(2))
    else:
        np.save(file, x)
    return file.getvalue()


def read_archive(path):
    with np.load(path) as archive:
        return {name: archive[name] for name in archive}


def read_symbol(path):
    net = sym.load(str(path))
    return net.list_arguments(), net.tojson()


def read_signed(path):
    """As one who means harm damages a checkpoint: with the checksum of what it holds now."""
    content, signed = path.read_bytes()[:-32], path.with_name("signed")
    signed.unlink(missing_ok=True)
    signed.write_bytes(content + hashlib.sha256(content).digest())
    return checkpoint.load(signed)


def read_split(path):
    return minnp.distributed.load(path, minnp.distributed.init().split(0))


# How each kind is read, and what its reader may raise. NumPy's readers raise what zipfile and its own parser do.
NUMPYS = (ValueError, OSError, EOFError, KeyError, SyntaxError, NotImplementedError, RuntimeError, TypeError)
NUMPYS += (MemoryError, zipfile.BadZipFile, tokenize.TokenError, zlib.error, struct.error)
READERS = {
    "checkpoint": (checkpoint.load, (checkpoint.CheckpointError,)),
    "checkpoint with a checksum": (read_signed, (checkpoint.CheckpointError,)),
    ".params": (lambda path: sym.params.load(str(path)), (ValueError,)),
    "-symbol.json": (read_symbol, (SymbolError,)),
    ".npz": (read_archive, NUMPYS),
    ".npy": (np.load, NUMPYS),
    "split array": (read_split, (ValueError, OSError)),
    "CIFAR-10 batch": (datasets.read_cifar_python, (datasets.DataFileError,)),
    "idx": (datasets.read_idx, (datasets.DataFileError,)),
}


def damaged(rng, content):
    """The bytes with some changed, cut out, repeated or put in, mostly near the start, where what is told lies."""
    content = bytearray(content)
    for _ in range(rng.integers(1, 6)):
        reach = min(len(content), int(10 ** rng.uniform(1, 4)))
        at, n = int(rng.integers(max(reach, 1))), int(rng.integers(1, 9))
        way = rng.integers(5)
        if way < 2 and content:
            content[at] = rng.integers(32, 127) if rng.integers(2) else rng.integers(256)
        elif way == 2:
            del content[at : at + n]
        elif way == 3:
            content[at:at] = content[at : at + n]
        else:
            content[at : at + n] = rng.bytes(n)
    return bytes(content) if rng.integers(8) else bytes(content[: rng.integers(len(content) + 1)])


def outcomes(kind, times, folder, seed=0):
    """How many damaged files were read and refused; anything else raises here, and says which file it was."""
    read, refusals = READERS[kind]
    good, rng, found = whole(kind, folder), numpy.random.default_rng(seed), Counter()
    path = folder / "damaged"
    read_before = len(UNPICKLED)
    for i in range(times):
        path.unlink(missing_ok=True)  # a file that is cut short and written again waits for the disk
        path.write_bytes(damaged(rng, good))
        try:
            read(path)
            found["read"] += 1
        except refusals as error:
            assert str(error) or type(error) in (EOFError, MemoryError, KeyError), f"{kind}, file {i}: {error!r}"
            found["refused"] += 1
    assert len(UNPICKLED) == read_before, UNPICKLED[read_before:]
    return found


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning", "ignore::SyntaxWarning")
@pytest.mark.parametrize("kind", READERS)
def test_a_damaged_file_is_read_or_refused_and_nothing_is_unpickled(kind, tmp_path):
    found = outcomes(kind, 150, tmp_path)
    assert found["refused"] > 15


class Harm:
    """An object whose pickle runs a program where it is read."""

    def __reduce__(self):
        return exec, ("import os; os.environ['MINNP_HARM'] = 'done'",)


@pytest.mark.parametrize("kind", [*READERS, "a model's parameters"])
def test_a_pickle_in_the_place_of_a_file_is_refused_and_not_read(kind, tmp_path, monkeypatch):
    monkeypatch.delenv("MINNP_HARM", raising=False)
    path = tmp_path / "data_batch_1"
    path.write_bytes(pickle.dumps(Harm()))
    before = len(UNPICKLED)
    if kind in READERS:
        read, refusals = READERS[kind]
    else:
        path = path.rename(tmp_path / "model.params")
        read, refusals = (
            (lambda path: minnp.nn.Sequential(minnp.nn.Linear(2, 2)).load(str(tmp_path / "model"))),
            (checkpoint.CheckpointError,),
        )
    with pytest.raises(refusals):
        read(path)
    assert "MINNP_HARM" not in os.environ
    assert len(UNPICKLED) == before or kind == "CIFAR-10 batch"  # whose reader names what it refuses


def test_what_is_no_split_array_is_refused(tmp_path):
    path = tmp_path / "several.npz"
    numpy.savez(path, x=numpy.ones(2))
    with pytest.raises(ValueError, match=r"several.npz is an archive of several arrays, which np.load reads"):
        read_split(path)
    spoilt = whole(".npy", tmp_path).replace(b": (2, 3)", b"\xbb`2, 3)")  # which most of Python's tokenizers refuse
    path.write_bytes(spoilt)
    with pytest.raises(ValueError, match=r"several.npz is not a whole .npy file: |Cannot parse header"):
        read_split(path)


def test_an_object_in_an_archive_is_unpickled_only_when_that_is_asked_for(tmp_path):
    path = tmp_path / "objects.npz"
    numpy.savez(path, x=numpy.array([{}, None], dtype=object))
    before = len(UNPICKLED)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        read_archive(path)
    assert len(UNPICKLED) == before
    with np.load(path, allow_pickle=True) as archive:
        assert archive["x"].tolist() == [{}, None]


def main(times):
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        for kind in READERS:
            print(kind, dict(outcomes(kind, times, Path(folder), seed=1)), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
