"""What MXNet does to programs that trust it, and what minnp's users get instead, with its kernels preferred.

Every test is a small program that goes wrong, crashes or kills the process in MXNet 1.9.1 itself, or when its operators
are handed NumPy's memory without care.
"""

import subprocess
import sys

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import backends, grad, npx

if "mxnet" not in backends.installed():
    pytest.skip("mxnet is not installed", allow_module_level=True)


@pytest.fixture(autouse=True)
def prefer_mxnet():
    with minnp.policy("prefer_mxnet"):
        yield


def random(*shape, seed=0, dtype="f4"):
    return onp.random.default_rng(seed).normal(size=shape).astype(dtype)


# ------------------------------------------------------------------ memory
def test_an_argument_may_be_overwritten_as_soon_as_the_call_returns():
    """MXNet reads it later."""
    for seed in range(20):
        x = np.array(random(300_000, seed=seed))
        expected = onp.exp(onp.asarray(x))
        y = np.exp(x)
        x[:] = 0.0
        onp.testing.assert_allclose(onp.asarray(y), expected, rtol=1e-6)


def test_a_result_can_be_read_as_soon_as_the_call_returns():
    """MXNet writes it later."""
    x = random(300_000)
    for _ in range(20):
        assert float(onp.asarray(np.square(x))[-1]) == x[-1] * x[-1]


@pytest.mark.parametrize("channels", [8, 16, 32])
def test_results_of_convolutions_are_in_c_order(channels):
    """MXNet leaves them in blocks of 8 or 16 channels, in NumPy's memory too."""
    x, w = random(2, channels, 9, 9), random(channels, channels, 3, 3, seed=1)
    f = lambda x, w: np.sum(npx.convolution(x, w, pad=(1, 1)) ** 2)
    y = npx.convolution(x, w, pad=(1, 1))
    gx, gw = grad(f, argnum=(0, 1))(x, w)
    with minnp.policy("only_numpy"):
        expected = npx.convolution(x, w, pad=(1, 1))
        ex, ew = grad(f, argnum=(0, 1))(x, w)
    for a, b in ((y, expected), (gx, ex), (gw, ew)):
        assert onp.asarray(a).flags.c_contiguous
        onp.testing.assert_allclose(onp.asarray(a), onp.asarray(b), rtol=1e-3, atol=1e-2)


def test_a_weight_is_neither_rearranged_nor_written_to():
    """MXNet re-lays it inside the caller's memory, and crashes where that is read-only."""
    x, w = random(2, 16, 9, 9), random(16, 16, 3, 3)
    before = w.copy()
    first = onp.asarray(npx.convolution(x, w))
    w.flags.writeable = False
    for _ in range(3):
        assert onp.array_equal(onp.asarray(npx.convolution(x, w)), first)
    assert onp.array_equal(w, before)


def test_softmax_straight_after_a_convolution():
    """MXNet segfaults."""
    y = onp.asarray(npx.softmax(npx.convolution(random(2, 3, 8, 8), random(16, 3, 3, 3)), axis=-1))
    onp.testing.assert_allclose(y.sum(axis=-1), 1, rtol=1e-5)


def test_read_only_strided_and_unaligned_arguments():
    x = random(6, 6)
    x.flags.writeable = False
    raw = onp.zeros(4 * 36 + 1, "u1")[1:].view("f4").reshape(6, 6)
    raw[...] = x
    for view in (x, x.T, x[::-1], x[:, ::2], raw):
        onp.testing.assert_allclose(onp.asarray(np.exp(view)), onp.exp(view), rtol=1e-6)


def test_views_stay_views():
    """In MXNet `T`, `reshape` and strided slices are silent copies."""
    x = np.array(random(4, 6))
    for view in (x.T, x.reshape(3, 8), x[::2, ::-1], x[1], np.swapaxes(x, 0, 1), x.ravel()):
        assert np.shares_memory(view, x)
    x.T[0] = 5.0
    assert x[:, 0].tolist() == [5, 5, 5, 5]


def test_indices_are_checked_and_never_reach_other_memory():
    """MXNet writes outside the buffer."""
    around = np.zeros(12)
    x = around[4:8]
    x[[-1, 0]] = 7.0
    with pytest.raises(IndexError):
        x[[5]] = 1.0
    with pytest.raises(IndexError):
        x[[-9]]
    assert around.tolist() == [0, 0, 0, 0, 7, 0, 0, 7, 0, 0, 0, 0]


def test_masks_and_inner_products_of_nothing_and_of_numbers():
    """MXNet aborts the process."""
    x = np.zeros((0, 3))
    assert x[x > 0].shape == (0,)
    x[x > 0] = 1.0
    assert np.inner(2.0, np.ones(3)).tolist() == [2, 2, 2]


def test_gamma_is_not_overwritten_and_its_length_is_checked():
    """MXNet's fix_gamma, its default, writes ones into gamma; a gamma that is too short is read beyond its end."""
    gamma, zero, one = np.full(3, 2.0), np.zeros(3), np.ones(3)
    npx.batch_norm(random(4, 3, 2, 2, dtype="f8"), gamma, zero, zero, one)
    assert gamma.tolist() == [2, 2, 2]
    with pytest.raises(ValueError):
        npx.batch_norm(random(4, 3, 2, 2, dtype="f8"), np.ones(2), zero, zero, one, fix_gamma=False)


def test_the_process_may_fork_after_a_kernel_has_run():
    program = """
import multiprocessing
import minnp, minnp.numpy as np
def work(n):
    with minnp.policy("only_numpy"):
        return float(np.exp(np.zeros(n)).sum())
with minnp.policy("prefer_mxnet"):
    np.exp(np.zeros(3))
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(pool.map(work, [2, 3]))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout.strip() == "[2.0, 3.0]", done.stderr


# ------------------------------------------------------------------ dtypes and numbers
CALLS = {
    "int32 + 2.5 is not truncated": lambda np: np.array([1, 2], "i4") + 2.5,
    "integers beyond 2**53 are exact": lambda np: np.array([2**53 + 1, 2**62 + 1]) + 1,
    "a sum of integers does not wrap": lambda np: np.sum(np.full(3, 2**31 - 1, "i4")),
    "a sum of bytes does not wrap": lambda np: np.sum(np.full(300, 255, "u1")),
    "integers divide to float64": lambda np: np.array([1, 2, 3]) / np.array([3, 3, 3]),
    "the default dtype is float64": lambda np: np.exp(np.ones(3)),
    "float32 stays float32": lambda np: np.exp(np.ones(3, "f4")) * 2,
    "complex": lambda np: np.exp(np.array([1j, 2 + 1j])),
    "int16": lambda np: np.array([300, 2], "i2") * np.array([2, 3], "i2"),
    "uint32": lambda np: np.array([2**32 - 1], "u4") + np.array([1], "u4"),
    "uint64": lambda np: np.array([2**64 - 1], "u8") // 3,
    "rint rounds half to even": lambda np: np.rint(np.array([0.5, 1.5, 2.5, -0.5])),
    "sort puts NaN last": lambda np: np.sort(np.array([3.0, np.nan, 1.0])),
    "sign of NaN": lambda np: np.sign(np.array([np.nan, -2.0])),
    "maximum passes NaN on": lambda np: np.maximum(np.array([np.nan, 1.0]), np.array([1.0, np.nan])),
    "fmax does not": lambda np: np.fmax(np.array([np.nan, 1.0]), np.array([1.0, np.nan])),
    "remainder of infinities": lambda np: np.remainder(np.array([1.0, -1.0, -1.0]), np.array([np.inf, np.inf, 3.0])),
    "the product of nothing is 1": lambda np: np.prod(np.array([])),
    "degrees has 16 digits": lambda np: np.degrees(np.array([1.0, 2.0])),
    "copysign of zero": lambda np: np.signbit(np.copysign(np.array([0.0]), np.array([-0.0]))),
    "order F": lambda np: np.array([[1.0, 2.0], [3.0, 4.0]], order="F").ravel(order="K"),
    "exp in order F": lambda np: np.exp(np.array([[1.0, 2.0], [3.0, 4.0]], order="F")).ravel(order="K"),
    "shape ()": lambda np: np.exp(np.array(1.0)),
    "a number alone": lambda np: np.exp(1.0),
    "seven axes": lambda np: np.ones((1, 2, 1, 2, 1, 2, 3)) + np.ones((2, 1, 2, 1, 2, 1, 1)),
    "an object array": lambda np: np.array([1, "a"], dtype=object) * 2,
    "bool arithmetic": lambda np: np.array([True, False]) + np.array([True, True]),
    "masks": lambda np: np.array([1.0, -2.0, 3.0])[np.array([1.0, -2.0, 3.0]) > 0],
    "a float64 number beside float32": lambda np: np.ones(2, "f4") * 1e-3 + 1.0,
    "many small floats add up": lambda np: np.sum(np.full(1_000_000, 0.1, "f4")),
}


@pytest.mark.parametrize("name", CALLS)
def test_values_and_dtypes_are_numpys(name):
    ours, theirs = CALLS[name](np), CALLS[name](onp)
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    if theirs.dtype == object:
        assert ours.tolist() == theirs.tolist()
    else:
        onp.testing.assert_allclose(onp.asarray(ours), theirs, rtol=1e-6 if theirs.dtype == "f4" else 1e-14)


@pytest.mark.parametrize(
    "call",
    [
        lambda np: np.linalg.cholesky(np.array([[1.0, 0.0], [0.0, -1.0]])),
        lambda np: np.linalg.inv(np.zeros((2, 2))),
        lambda np: np.ones(2) + np.ones(3),
        lambda np: np.ones((2, 3)) @ np.ones((2, 3)),
        lambda np: np.sum(np.ones(3), axis=1),
        lambda np: np.concatenate([np.ones((2, 2)), np.ones((3, 3))]),
        lambda np: np.array([1, 2]) ** -1,
    ],
)
def test_errors_are_numpys_and_come_at_the_call(call):
    """MXNet's come at the first read, or not at all."""
    with pytest.raises(Exception) as theirs:
        call(onp)
    with pytest.raises(theirs.type):
        call(np)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(np.einsum("ij,kj->ik", x, x) ** 2),
        lambda x: np.sum(np.pad(x, ((1, 2), (3, 1))) ** 2),
        lambda x: np.sum(np.concatenate([x, x * 2]) ** 2),
        lambda x: np.sum(np.stack([x, x * 2]) ** 2),
        lambda x: np.sum(np.where(x > 0, x, x * x)),
        lambda x: np.max(x) + np.sum(np.max(x, axis=0)),
    ],
    ids=["einsum", "pad", "concatenate", "stack", "where", "max"],
)
def test_gradients_are_right(f):
    """MXNet's own were wrong for some of these; ours use its kernels, never its derivatives."""
    x = random(3, 4, dtype="f8")
    found = onp.asarray(grad(f)(x))
    for i in onp.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i] += 1e-6
        down[i] -= 1e-6
        assert abs(float(f(up)) - float(f(down)) - 2e-6 * found[i]) < 1e-8
