"""linalg and fft through the public functions: what the row tests leave out."""

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import grad, hessian, hvp, jit, jvp, value_and_grad, vjp
from minnp.testing import check_grads


def draw(*shape, seed=0, dtype=float):
    r = onp.random.RandomState(seed).standard_normal
    return r(shape) + 1j * r(shape) if dtype is complex else r(shape)


def hermitian(a):
    return a + np.conj(np.swapaxes(a, -1, -2))


def weights(*shape):
    return onp.cos(onp.arange(onp.prod(shape)).reshape(shape))


# ------------------------------------------------------------------ factors that are free
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5), (2, 4, 3)])
def test_svd_of_every_shape(shape, full, dtype):
    k = min(shape[-2:])

    def f(a):
        """Functions that no choice of phases, signs and null-space bases changes."""
        u, s, vh = np.linalg.svd(a, full_matrices=full)
        left = u[..., :k] * weights(k) @ np.conj(np.swapaxes(u[..., :k], -1, -2))
        right = np.conj(np.swapaxes(vh[..., :k, :], -1, -2)) * weights(k) @ vh[..., :k, :]
        both = u[..., :k] * (s**2)[..., None, :] @ vh[..., :k, :]
        parts = [np.sin(s), *(np.abs(m - 0.3) ** 2 for m in (left, right, both))]
        if full:
            null_u, null_v = u[..., k:], vh[..., k:, :]
            parts.append(np.abs(null_u @ np.conj(np.swapaxes(null_u, -1, -2)) - 0.3) ** 2)
            parts.append(np.abs(np.conj(np.swapaxes(null_v, -1, -2)) @ null_v - 0.3) ** 2)
        return sum(np.sum(p * weights(*p.shape)) for p in parts)

    check_grads(f, (draw(*shape, dtype=dtype),))


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("dtype", [float, complex])
def test_eigh_reads_one_triangle(dtype, uplo):
    def f(a):
        w, v = np.linalg.eigh(a, uplo)
        p = v * weights(4) @ np.conj(np.swapaxes(v, -1, -2))
        return np.sum(np.sin(w)) + np.sum(np.abs(p - 0.3) ** 2 * weights(*p.shape))

    a = draw(2, 4, 4, dtype=dtype)
    check_grads(f, (a,))
    unread = onp.triu(onp.ones((4, 4)), 1) if uplo == "L" else onp.tril(onp.ones((4, 4)), -1)
    assert not (onp.asarray(grad(f)(np.array(a))) * unread).any()
    check_grads(lambda a: np.linalg.eigvalsh(a, uplo), (a,))


def test_repeated_values_have_finite_gradients_of_what_is_well_defined():
    a = onp.diag([2.0, 2.0, 5.0])
    for f in (
        lambda a: np.sum(np.linalg.eigh(a)[0] ** 2),
        lambda a: np.sum(np.linalg.eigvalsh(a) ** 2),
        lambda a: np.sum(np.linalg.svd(a)[1] ** 2),
        lambda a: np.sum(np.linalg.svd(a, compute_uv=False) ** 2),
        lambda a: np.sum(np.real(np.linalg.eig(a)[0]) ** 2),
        lambda a: np.sum(np.real(np.linalg.eigvals(a)) ** 2),
    ):
        onp.testing.assert_allclose(onp.asarray(grad(f)(np.array(a))), 2 * a, atol=1e-12)
    # a function of the space of the repeated value, not of the basis LAPACK chose for it
    projector = lambda a: np.sum((lambda v: v @ v.T)(np.linalg.eigh(a)[1][:, :2]) * weights(3, 3))
    shifted = lambda b: projector(hermitian(b) + onp.diag([0.0, 0.0, 9.0]))
    check_grads(shifted, (onp.diag([1.0, 1.0, 1.0]),), order=1, modes=("rev",))
    singular = onp.array([[1.0, 2.0], [2.0, 4.0]])
    assert onp.isfinite(onp.asarray(grad(lambda a: np.sum(np.linalg.svd(a)[1]))(np.array(singular)))).all()


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3)])
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_qr_of_every_shape(shape, mode, dtype):
    def f(a):
        out = np.linalg.qr(a, mode)
        q, r = (None, out) if mode == "r" else out
        total = np.sum(np.abs(r - 0.3) ** 2 * weights(*r.shape))
        if q is not None:
            k = min(shape[-2:])
            total = total + np.sum(np.abs(q[..., :k] - 0.3) ** 2 * weights(*q[..., :k].shape))
            null = q[..., k:]
            p = null @ np.conj(np.swapaxes(null, -1, -2))
            total = total + np.sum(np.abs(p - 0.3) ** 2 * weights(*p.shape))
        return total

    check_grads(f, (draw(*shape, dtype=dtype),))


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5)])
def test_pinv_and_lstsq_turn_with_the_singular_values_that_a_cutoff_leaves_out(shape, dtype):
    a, b = draw(*shape, dtype=dtype), draw(shape[0], 2, seed=1)
    part = lambda y: np.sum(np.abs(y - 0.3) ** 2 * weights(*y.shape))
    assert onp.linalg.matrix_rank(onp.linalg.pinv(a, 0.6)) < min(shape)
    check_grads(lambda a: part(np.linalg.pinv(a, 0.6)), (a,))
    check_grads(lambda a, b: part(np.linalg.lstsq(a, b, rcond=0.6)[0]), (a, b))


def test_qr_raw_is_a_plain_tuple_as_numpys():
    raw = lambda a: np.linalg.qr(a, "raw")
    assert type(jit(raw)(np.eye(2))) is type(raw(np.eye(2))) is tuple


def test_qr_raw_has_no_gradient_and_says_so():
    with pytest.raises(NotImplementedError, match="'raw'"):
        grad(lambda a: np.sum(np.linalg.qr(a, "raw")[0]))(np.array(draw(3, 3)))


@pytest.mark.parametrize("dtype", [float, complex])
def test_svd_and_pinv_of_a_hermitian_matrix(dtype):
    a = draw(3, 3, dtype=dtype)

    def f(a):
        u, s, vh = np.linalg.svd(hermitian(a), hermitian=True)
        return np.sum(np.sin(s)) + np.sum(np.abs(u * s**2 @ vh) ** 2 * weights(3, 3))

    check_grads(f, (a,))
    check_grads(lambda a: np.linalg.svd(hermitian(a), compute_uv=False, hermitian=True), (a,))
    check_grads(lambda a: np.linalg.pinv(hermitian(a), hermitian=True), (a,))
    u, s, vh = onp.linalg.svd(a + a.conj().T, hermitian=True)
    value = vjp(lambda a: np.linalg.svd(a, hermitian=True), np.array(a + a.conj().T))[0]
    for ours, theirs in zip(value, (u, s, vh), strict=True):
        onp.testing.assert_allclose(onp.asarray(ours), theirs, atol=1e-12)
    assert type(value).__name__ == "SVDResult"


# ------------------------------------------------------------------ norms
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("ord", [None, 0, 1, 2, 3, 0.5, -1, -2.5, onp.inf, -onp.inf])
def test_vector_norm(ord, keepdims, dtype):
    x = draw(2, 3, 4, dtype=dtype)
    for axis in (1, -1, (0,)):
        f = lambda x, axis=axis: np.linalg.norm(x, ord, axis, keepdims)
        value, _ = vjp(f, np.array(x))
        onp.testing.assert_allclose(onp.asarray(value), onp.linalg.norm(x, ord, axis, keepdims), rtol=1e-12)
        if ord != 0:
            check_grads(f, (x,))
    flat = x.ravel()
    onp.testing.assert_allclose(onp.asarray(vjp(lambda x: np.linalg.norm(x, ord), np.array(flat))[0]),
                                onp.linalg.norm(flat, ord), rtol=1e-12)  # fmt: skip


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("ord", [None, "fro", "nuc", 1, -1, 2, -2, onp.inf, -onp.inf])
def test_matrix_norm(ord, keepdims, dtype):
    x = draw(2, 3, 4, dtype=dtype)
    for axis in ((1, 2), (2, 0), (-1, 1)):
        f = lambda x, axis=axis: np.linalg.norm(x, ord, axis, keepdims)
        value, _ = vjp(f, np.array(x))
        onp.testing.assert_allclose(onp.asarray(value), onp.linalg.norm(x, ord, axis, keepdims), rtol=1e-12)
        check_grads(f, (x,))


def test_norm_at_zero_has_gradient_zero():
    for shape, ord in [((3,), None), ((3,), 1), ((3,), 2), ((3,), 3), ((3,), 0.5), ((3,), -2), ((3,), onp.inf),
                       ((2, 3), None), ((2, 3), "fro"), ((2, 3), "nuc"), ((2, 3), 2)]:  # fmt: skip
        for x in (onp.zeros(shape), onp.zeros(shape, complex)):
            g = onp.asarray(grad(lambda x, o=ord: np.real(np.linalg.norm(x, o)))(np.array(x)))
            assert not onp.isnan(g).any()
            if ord not in ("nuc", 2) or x.ndim == 1:
                assert not g.any()
    half = np.array([0.0, 3.0, 4.0])
    onp.testing.assert_allclose(onp.asarray(grad(np.linalg.norm)(half)), [0, 0.6, 0.8])
    assert onp.isfinite(onp.asarray(grad(lambda x: np.linalg.norm(x, 1.5))(half))).all()


def test_norm_refuses_what_numpy_refuses():
    x = np.array(draw(2, 3, 4))
    for args in [(x, 2), (x, "fro", 1), (x, "bad", (0, 1)), (x, 3, (0, 1)), (x, None, (0, 0)), (x, None, 5)]:
        with pytest.raises(Exception) as theirs:
            onp.linalg.norm(onp.asarray(args[0]), *args[1:])
        with pytest.raises(theirs.type):
            grad(lambda x, a=args: np.sum(np.linalg.norm(x, *a[1:])))(x)


# ------------------------------------------------------------------ the rest of the namespace
COMPOSITES = {
    "matrix_power": lambda a: [np.linalg.matrix_power(a, n) for n in (0, 1, 2, 3, 5, -1, -3)][2:],
    "multi_dot": lambda a: np.linalg.multi_dot([a[0], a, a[:, :2], a[:2, 1]]),
    "cond": lambda a: [np.linalg.cond(a, p) for p in (None, 2, -2, 1, "fro", onp.inf)],
    "tensorinv": lambda a: np.linalg.tensorinv(np.reshape(np.kron(a, a + 1), (3, 3, 9)), 2),
    "tensorsolve": lambda a: np.linalg.tensorsolve(np.reshape(np.kron(a, a + 1), (3, 3, 3, 3)), a),
    "outer": lambda a: np.outer(a[0], a[1]),
    "cross": lambda a: np.cross(a[0], a[1]),
    "trace": lambda a: np.trace(a, 1),
    "det": lambda a: np.linalg.det(np.stack([a, a @ a])),
    "inv": lambda a: np.linalg.inv(np.stack([a, a @ a])),
}


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("name", COMPOSITES)
def test_composite(name, dtype):
    a = draw(3, 3, dtype=dtype) + 3 * onp.eye(3)
    if name == "cond" and dtype is complex:
        a = a + onp.triu(onp.ones((3, 3)))
    check_grads(COMPOSITES[name], (a,))


@pytest.mark.skipif(not hasattr(onp.linalg, "vector_norm"), reason="NumPy 2")
def test_names_of_numpy_2():
    a = draw(2, 3, 3) + 2 * onp.eye(3)
    check_grads(lambda a: np.linalg.vector_norm(a, axis=(0, 2), ord=3, keepdims=True), (a,))
    check_grads(lambda a: np.linalg.vector_norm(a), (a,))
    check_grads(lambda a: np.linalg.matrix_norm(a, ord="nuc"), (a,))
    check_grads(lambda a: np.linalg.svdvals(a), (a,))
    check_grads(lambda a: np.linalg.matrix_transpose(a) @ np.linalg.diagonal(a)[..., None], (a,))
    check_grads(lambda a: np.linalg.trace(a), (a,))
    check_grads(lambda a: np.linalg.vecdot(a, a + 1), (a,))
    check_grads(lambda a: np.linalg.outer(a[0, 0], a[1, 1]), (a,))
    check_grads(lambda a: np.linalg.cross(a, a[::-1]), (a,))
    check_grads(lambda a: np.linalg.tensordot(a, a, axes=([1], [2])), (a,))
    check_grads(lambda a: np.linalg.cholesky(a @ np.swapaxes(a, -1, -2), upper=True), (a,))
    check_grads(lambda a: np.linalg.pinv(a, rtol=1e-8), (a,))


def test_det_of_a_singular_matrix():
    a = onp.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.5, -1.0, 2.0]])
    check_grads(np.linalg.det, (a,), order=1)
    onp.testing.assert_allclose(onp.asarray(grad(np.linalg.det)(np.zeros((3, 3)))), onp.zeros((3, 3)))


def minors(a):
    """The gradient of det by its definition."""
    n = range(len(a))
    without = lambda i, j: onp.delete(onp.delete(a, i, 0), j, 1)
    return onp.array([[(-1) ** (i + j) * onp.linalg.det(without(i, j)) for j in n] for i in n])


@pytest.mark.parametrize("rank", [0, 1, 2, 3, 4])
def test_second_derivatives_of_det_hold_for_singular_matrices(rank):
    """det is a polynomial of degree one in each element, so differences of any step are its derivatives."""
    a = draw(4, rank) @ draw(rank, 4, seed=1)
    onp.testing.assert_allclose(onp.asarray(grad(np.linalg.det)(a)), minors(a), atol=1e-12)
    got = onp.asarray(hessian(np.linalg.det)(a))
    for i, j in onp.ndindex(4, 4):
        step = onp.zeros((4, 4))
        step[i, j] = 1
        onp.testing.assert_allclose(got[:, :, i, j], (minors(a + step) - minors(a - step)) / 2, atol=1e-11)
    v = draw(4, 4, seed=2)
    for f in (
        hvp(np.linalg.det),
        jit(hvp(np.linalg.det)),
        lambda a, v: grad(lambda a: (grad(np.linalg.det)(a) * v).sum())(a),
    ):
        onp.testing.assert_allclose(onp.asarray(f(a, v)), onp.tensordot(got, v), atol=1e-12)


def test_third_derivatives_of_det():
    a, v = draw(3, 3) + onp.eye(3), draw(3, 3, seed=1)
    check_grads(lambda a: (hvp(np.linalg.det)(a, v) * v).sum(), (a,), order=2)


def test_lstsq_and_solve_answer_as_numpy_does():
    a, b = draw(5, 3), draw(5, 2, seed=1)
    ours, _ = vjp(lambda a, b: np.linalg.lstsq(a, b, rcond=None)[:2], a, b)
    for x, y in zip(ours, onp.linalg.lstsq(a, b, rcond=None)[:2], strict=True):
        onp.testing.assert_allclose(onp.asarray(x), y)
    check_grads(lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0], (a, b))
    check_grads(lambda a: np.linalg.lstsq(a, b, rcond=None)[3], (a,))
    check_grads(lambda a, b: np.linalg.solve(a, b), (draw(3, 3) + 3 * onp.eye(3), draw(3, seed=2)))


def test_a_program_in_float32_stays_in_float32():
    a = np.array(draw(4, 4).astype("f4") + 4 * onp.eye(4, dtype="f4"))
    for f in (np.linalg.inv, np.linalg.det, lambda a: np.linalg.slogdet(a)[1], lambda a: np.linalg.svd(a)[0],
              lambda a: np.linalg.qr(a)[1], lambda a: np.linalg.cholesky(a @ a.T), lambda a: np.linalg.eigh(a)[1],
              np.linalg.norm, lambda a: np.linalg.norm(a, 3, axis=0), lambda a: np.linalg.solve(a, a[0])):  # fmt: skip
        y, pullback = vjp(f, a)
        assert y.dtype == onp.float32
        (g,) = pullback(np.ones(y.shape, "f4"))
        assert g.dtype == onp.float32


# ------------------------------------------------------------------ fft
ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
MANY = ["fft2", "ifft2", "fftn", "ifftn", "rfft2", "irfft2", "rfftn", "irfftn"]


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ONE)
def test_transform_of_one_axis(name, norm):
    f = getattr(np.fft, name)
    for dtype in (float, complex) if name not in ("rfft", "ihfft") else (float,):
        x = draw(3, 5, dtype=dtype)
        for n in (None, 3, 4, 5, 7, 8):
            for axis in (0, -1):
                check_grads(lambda x, n=n, axis=axis: f(x, n, axis, norm), (x,), order=1)
    check_grads(lambda x: f(x, 6, norm=norm), (draw(4),))


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("name", MANY)
def test_transform_of_several_axes(name, norm):
    f = getattr(np.fft, name)
    for dtype in (float, complex) if not name.startswith("rfft") else (float,):
        x = draw(3, 4, 5, dtype=dtype)
        for options in ({}, {"s": (4, 3), "axes": (0, 2)}, {"s": (2, 6), "axes": (-1, 0)}, {"axes": (2, 1)}):
            check_grads(lambda x, o=options: f(x, **o, norm=norm), (x,), order=1)


def test_helpers_of_fft():
    check_grads(lambda x: np.fft.fftshift(x, axes=0) * np.fft.ifftshift(x), (draw(3, 4),))
    onp.testing.assert_array_equal(onp.asarray(np.fft.fftfreq(5)), onp.fft.fftfreq(5))
    spectrum = lambda x: np.abs(np.fft.rfft(x * np.fft.fftshift(np.fft.fftfreq(6)))) ** 2
    check_grads(spectrum, (draw(6),))


# ------------------------------------------------------------------ what is empty, and what is not finite
def has_singular_values(a):
    try:
        return onp.linalg.svd(a, compute_uv=False) is not None
    except onp.linalg.LinAlgError:
        return False


def test_gradients_of_matrices_that_are_not_finite_are_nan():
    """LAPACK raises of NaN, and of this matrix with inf it never comes back, or in NumPy 2.5 raises, too."""
    whole = onp.array([[4.0, 1, 0], [1, 3, 1], [0, 2, 5]])
    with onp.errstate(all="ignore"):
        x = onp.array([1e200, -1e-200, 710])
        bad = onp.stack([onp.outer(x, x) + onp.eye(3), whole])
        norm = lambda a: np.linalg.svd(a, compute_uv=False).sum(-1)
        for f in (np.linalg.det, norm):
            if f is norm and not has_singular_values(bad):
                with pytest.raises(onp.linalg.LinAlgError, match="SVD did not converge"):
                    grad(lambda a: norm(a).sum())(bad)
                continue
            g = onp.asarray(grad(lambda a, f=f: f(a).sum())(bad))
            assert onp.isnan(g[0]).all()
            onp.testing.assert_allclose(g[1], grad(lambda a, f=f: f(a).sum())(whole))
        assert onp.isnan(onp.asarray(grad(np.linalg.det)(onp.where(whole == 0, onp.nan, whole)))).all()


def test_the_gradient_of_the_determinant_of_an_empty_matrix():
    assert grad(np.linalg.det)(np.zeros((0, 0))).shape == (0, 0)
    assert grad(lambda a: np.linalg.det(a).sum())(np.zeros((2, 0, 0))).shape == (2, 0, 0)


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("ord", [None, 0, 1, 2, 3, -1, onp.inf, "fro", "nuc"])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_norms_of_no_elements_have_gradients(ord, shape):
    try:
        want = onp.linalg.norm(onp.zeros(shape), ord)
    except ValueError:  # such a norm it has not
        with pytest.raises(ValueError):
            grad(lambda x: np.linalg.norm(x, ord))(np.zeros(shape))
        return
    value, slope = value_and_grad(lambda x: np.linalg.norm(x, ord))(np.zeros(shape))
    assert value == want
    assert slope.shape == shape


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("p", [None, -2, 1, "fro"])
@pytest.mark.parametrize("a", [[[0, 0], [0, 0]], [[1, 1], [1, 1]], [[onp.inf, 1], [1, 2]], [[3, 1], [1, 2]]])
def test_cond_of_singular_matrices_is_infinite(a, p):
    a = onp.array(a, float)
    f, want = jit(lambda a: np.linalg.cond(a, p)), onp.linalg.cond(a, p)
    for _ in range(2):
        onp.testing.assert_allclose(f(np.array(a)), want, rtol=1e-12)
        assert onp.isscalar(f(np.array(a)))


# ------------------------------------------------------------------ transforms
@pytest.mark.parametrize("s", [None, (6, 2), (3, 7)])
@pytest.mark.parametrize("axes", [(-1, 0), (0, 0), (1, 0, 0)])
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "irfft2"])
def test_a_transform_may_repeat_an_axis(name, axes, s):
    x = draw(*[4, 5][: max(axes) + 1])
    s = None if s is None else (*s, 4)[: len(axes)]
    want = getattr(onp.fft, name)(x, s=s, axes=axes)
    f = lambda x: getattr(np.fft, name)(x, s=s, axes=axes)
    onp.testing.assert_allclose(jit(f)(np.array(x)), want, atol=1e-12)
    check_grads(lambda x: np.sum(np.abs(f(x) - 0.3) ** 2 * weights(*want.shape)), (x,))


def _exp_by_eigh(a):
    w, v = np.linalg.eigh(a + np.swapaxes(a, -1, -2))
    return (v * np.exp(w)) @ np.swapaxes(v, -1, -2)


def _exp_by_eig(a):
    w, v = np.linalg.eig(a)
    return np.real((v * np.exp(w)) @ np.linalg.inv(v))


def _cube_by_svd(a):
    u, s, vh = np.linalg.svd(a)
    return (u * s**3) @ vh


@pytest.mark.parametrize("matrix", [_exp_by_eigh, _exp_by_eig, _cube_by_svd])
def test_what_vectors_of_equal_values_do_together_with_them_is_not_known(matrix):
    """These are smooth there, but their slopes are not in the gradients of the factors: NaN, and no other number."""
    f = lambda a: np.sum(matrix(a) * weights(3, 3))
    turn = onp.linalg.qr(draw(3, 3, seed=1))[0]
    for a in (onp.diag([1.0, 1.0, 2.0]), turn @ onp.diag([1.0, 1.0, 2.0]) @ turn.T):
        for g in (grad(f), jit(grad(f))):
            assert onp.isnan(onp.asarray(g(np.array(a)))).any()
        assert onp.isnan(jvp(f, (np.array(a),), (np.array(draw(3, 3, seed=2)),))[1])
    check_grads(f, (onp.diag([1.0, 1.5, 2.0]),))


def test_the_polar_factor_of_equal_singular_values_has_a_gradient():
    def polar(a):
        u, _, vh = np.linalg.svd(a)
        return np.sum(u @ vh * weights(3, 3))

    for a in (onp.eye(3), onp.diag([2.0, 2.0, 3.0]), onp.linalg.qr(draw(3, 3))[0]):
        check_grads(polar, (a,), order=1, modes=("rev",))


def test_a_cutoff_that_leaves_nothing_out_takes_nothing_from_second_derivatives():
    for a in (2 * onp.eye(3), onp.diag([1.0, 1.0, 2.0]), onp.eye(3, 4)):
        check_grads(lambda x: np.sum(np.linalg.pinv(x, rcond=0.1) * weights(*x.shape[::-1])), (a,))
