"""What minnp adds to MXNet's own calls, and what MXNet's kernels are worth: alternating in one process.

    python benchmarks/mxnet_calls.py [--repeat 25] [--cases small convolution layers]

small         `a + b` and relatives on 10 float32 under prefer_mxnet, beside MXNet's imperative call waited for
convolution   conv2d of 64x3x32x32 with 32 filters 3x3 under auto, beside MXNet's operator called directly: until its
              result is computed (in a blocked layout that no other library can read), and until NumPy can read it;
              and forward with backward beside MXNet's autograd
layers        rows under auto, beside only_numpy

Printed are medians, quartiles, and the ratio (or, for small calls, the difference) of the paired medians.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import time
from collections.abc import Callable

import numpy as onp

import minnp
import minnp.numpy as np
from minnp import npx

mx = minnp.backends.get("mxnet").mx


def seconds(f: Callable[[], object], loops: int) -> float:
    start = time.perf_counter()
    for _ in range(loops):
        f()
    return (time.perf_counter() - start) / loops


def compare(ours: Callable, theirs: Callable, repeat: int) -> tuple[list[float], list[float]]:
    """Paired seconds per call."""
    ours(), theirs()
    loops = max(1, int(2e-3 / seconds(theirs, 3)))
    pairs = [(seconds(ours, loops), seconds(theirs, loops)) for _ in range(repeat)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def show(name: str, ours: list[float], theirs: list[float], difference: bool = False) -> None:
    def spread(times: list[float]) -> str:
        low, middle, high = (1e6 * t for t in statistics.quantiles(times, n=4))
        return f"{middle:9.1f} ({low:.1f} - {high:.1f})"

    a, b = statistics.median(ours), statistics.median(theirs)
    last = f"{1e6 * (a - b):+8.1f} us" if difference else f"{a / b:8.2f}x"
    print(f"{name:46} {spread(ours):>30} {spread(theirs):>30} {last}", flush=True)


def small(repeat: int) -> None:
    a, b = (onp.random.rand(10).astype("f4") for _ in range(2))
    x, y = np.array(a), np.array(b)
    p, q = mx.nd.from_numpy(a.copy()), mx.nd.from_numpy(b.copy())
    cases = {
        "a + b": (lambda: x + y, lambda: (p + q).wait_to_read()),
        "exp(a)": (lambda: np.exp(x), lambda: mx.nd.exp(p).wait_to_read()),
        "maximum(a, b)": (lambda: np.maximum(x, y), lambda: mx.nd.maximum(p, q).wait_to_read()),
        "sum(a)": (lambda: np.sum(x), lambda: mx.nd.sum(p).wait_to_read()),
    }
    with minnp.policy("prefer_mxnet"):
        for name, (ours, theirs) in cases.items():
            show(f"{name}, 10 float32", *compare(ours, theirs, repeat), difference=True)


def readable(array: object) -> None:
    """Wait for an NDArray, and have it put in C order."""
    array.wait_to_read()
    mx.base._LIB.MXNDArrayGetData(array.array_of, ctypes.byref(ctypes.c_void_p()))


def convolution(repeat: int) -> None:
    r = onp.random.default_rng(0)
    x, w, g = (r.normal(size=s).astype("f4") for s in ((64, 3, 32, 32), (32, 3, 3, 3), (64, 32, 32, 32)))
    nx, nw, ng = map(np.array, (x, w, g))
    px, pw, pg = (mx.nd.from_numpy(a.copy()) for a in (x, w, g))
    ours = lambda: npx.convolution(nx, nw, kernel=(3, 3), pad=(1, 1), num_filter=32)
    theirs = lambda: mx.nd.Convolution(px, pw, kernel=(3, 3), pad=(1, 1), num_filter=32, no_bias=True)
    show("conv2d | MXNet, unread", *compare(ours, lambda: theirs().wait_to_read(), repeat))
    show("conv2d | MXNet, readable", *compare(ours, lambda: readable(theirs()), repeat))
    show("conv2d | MXNet, asnumpy", *compare(ours, lambda: theirs().asnumpy(), repeat))

    def our_step() -> None:
        _, back = minnp.vjp(lambda a, b: npx.convolution(a, b, pad=(1, 1)), nx, nw)
        back(ng)

    px.attach_grad(), pw.attach_grad()

    def their_step() -> None:
        with mx.autograd.record():
            y = theirs()
        y.backward(pg)
        readable(px.grad), readable(pw.grad)

    show("conv2d forward + backward | MXNet's autograd", *compare(our_step, their_step, repeat))


def layers(repeat: int) -> None:
    r = onp.random.default_rng(0)
    array = lambda *shape: np.array(r.normal(size=shape).astype("f4"))
    a, b, c, d = array(64, 3, 32, 32), array(32, 3, 3, 3), array(32, 32, 16, 16), array(64, 32, 3, 3)
    e, f = array(64, 64, 32, 32), array(1024, 1000)
    cases = {
        "conv2d 64x3x32x32, 32 filters 3x3": lambda: npx.convolution(a, b, pad=(1, 1)),
        "conv2d 32x32x16x16, 64 filters 3x3": lambda: npx.convolution(c, d, pad=(1, 1)),
        "deconvolution 32x32x16x16, 3x3": lambda: npx.deconvolution(c, array(32, 16, 3, 3), pad=(1, 1)),
        "max pooling 64x64x32x32, 3x3": lambda: npx.pooling(e, kernel=(3, 3), stride=(2, 2), pad=(1, 1)),
        "softmax 1024x1000": lambda: npx.softmax(f),
        "log_softmax 1024x1000": lambda: npx.log_softmax(f),
    }
    for name, call in cases.items():
        plain = minnp.policy("only_numpy")(call)
        show(f"{name} | only_numpy", *compare(call, plain, max(3, repeat // 3)))


CASES = {"small": small, "convolution": convolution, "layers": layers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=25)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    options = parser.parse_args()
    print(f"{'us per call: median (quartiles)':46} {'minnp':>30} {'beside':>30}")
    for name in options.cases:
        CASES[name](options.repeat)


if __name__ == "__main__":
    main()
