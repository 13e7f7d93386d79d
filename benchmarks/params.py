"""How fast files of parameters are read and written, beside their bare bytes and beside MXNet.

    python benchmarks/params.py [--rounds 30] [--folder /dev/shm]

Three files of about 100 MB in the page cache: the 267 arrays of a ResNet-50, one array, 20,000 small arrays. In turns:

read       the bytes of the file, into memory that is new: `open(path, "rb", buffering=0).read()`
read warm  the same into memory that was there before
load       minnp.symbol.params.load
mxnet      mx.nd.load, waited for, where mxnet is installed

and the same for writing (`write`: the bytes of the file in one call). Printed are medians in milliseconds, and how
fast the others are beside `read` (or `write`): the median and quartiles of the ratios of the rounds. 0.8 is 80 % of its
speed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as onp

sys.path.insert(0, str(Path(__file__).parent.parent))

import minnp
from benchmarks.turns import take_turns
from minnp.symbol import params


def resnet50() -> dict[str, tuple[int, ...]]:
    """The shapes of a ResNet-50's parameters."""
    shapes: dict[str, tuple[int, ...]] = {}

    def convolution(name: str, out: int, into: int, size: int) -> None:
        shapes[f"arg:{name}_weight"] = (out, into, size, size)
        for kind, part in ("arg", "gamma"), ("arg", "beta"), ("aux", "moving_mean"), ("aux", "moving_var"):
            shapes[f"{kind}:{name}_bn_{part}"] = (out,)

    convolution("conv0", 64, 3, 7)
    into = 64
    for stage, (units, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
        for unit in range(units):
            name = f"stage{stage}_unit{unit}"
            convolution(f"{name}_conv1", width, into, 1)
            convolution(f"{name}_conv2", width, width, 3)
            convolution(f"{name}_conv3", 4 * width, width, 1)
            if unit == 0:
                convolution(f"{name}_shortcut", 4 * width, into, 1)
            into = 4 * width
    return shapes | {"arg:fc_weight": (1000, 2048), "arg:fc_bias": (1000,)}


FILES = {
    "resnet50": resnet50(),
    "one array": {"arg:w": (25_000_000,)},
    "20,000 arrays": {f"arg:{i}": (1250,) for i in range(20_000)},
}


def reading(path: Path, mx: Any) -> dict[str, Callable[[], Any]]:
    warm = onp.zeros(path.stat().st_size, onp.uint8)

    def read() -> bytes:
        with open(path, "rb", buffering=0) as file:
            return file.read()

    def read_warm() -> int:
        with open(path, "rb", buffering=0) as file:
            return file.readinto(warm)

    runs = {"read": read, "read warm": read_warm, "load": lambda: params.load(path)}

    def mxnet() -> None:
        mx.nd.load(str(path))
        mx.nd.waitall()

    return runs | ({"mxnet": mxnet} if mx else {})


def writing(path: Path, mx: Any) -> dict[str, Callable[[], Any]]:
    text, arrays = path.read_bytes(), params.load(path)
    out = path.with_suffix(".out")
    theirs = {name: mx.nd.array(a) for name, a in arrays.items()} if mx else {}

    def write() -> None:
        with open(out, "wb", buffering=0) as file:
            file.write(text)

    runs = {"write": write, "save": lambda: params.save(out, arrays)}
    return runs | ({"mxnet": lambda: mx.nd.save(str(out), theirs)} if mx else {})


def report(what: str, runs: dict[str, Callable[[], Any]], rounds: int) -> None:
    taken = take_turns(runs, rounds)
    first = next(iter(runs))
    for name, seconds in taken.items():
        low, ratio, high = statistics.quantiles([a / b for a, b in zip(taken[first], seconds)], n=4)
        print(
            f"{what:24}{name:10}{1e3 * statistics.median(seconds):8.1f} ms {ratio:6.2f} ({low:.2f}-{high:.2f})",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--folder", help="where the files are; by default the system's folder for temporary ones")
    given = parser.parse_args()
    mx = minnp.backends.get("mxnet").mx if "mxnet" in minnp.backends.installed() else None
    draw = onp.random.default_rng(0)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        path = Path(folder) / "model.params"
        for name, shapes in FILES.items():
            params.save(path, {n: draw.standard_normal(s, onp.float32) for n, s in shapes.items()})
            size = path.stat().st_size / 1e6
            report(f"{name}, {size:.0f} MB", reading(path, mx), given.rounds)
            report(f"{name}, {size:.0f} MB", writing(path, mx), given.rounds)


if __name__ == "__main__":
    main()
