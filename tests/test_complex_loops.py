"""Derivatives of compiled loops of complex numbers: those of the same function without jit, and of differences."""

from __future__ import annotations

import linecache
import math
import random

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import checkpoint, grad, jacobian, jit, jvp, vmap
from minnp.core.llvm import engine
from tests.derivatives import check_derivatives

pytestmark = [
    pytest.mark.host("about compiled code on NumPy's memory"),
    pytest.mark.skipif(not engine.available(), reason="without llvmlite loops stay Python"),
]


# ------------------------------------------------------------------ programs
def transfer_matrix(n, d, k):
    """The reflectance of layers of refractive indices n and thicknesses d."""
    m00, m01, m10, m11 = 1 + 0j, 0j, 0j, 1 + 0j
    for j in range(len(n)):
        phase = k * n[j] * d[j]
        c, s = np.cos(phase), 1j * np.sin(phase)
        m00, m01, m10, m11 = (
            m00 * c + m01 * s * n[j],
            m00 * s / n[j] + m01 * c,
            m10 * c + m11 * s * n[j],
            m10 * s / n[j] + m11 * c,
        )
    return np.abs((m00 + m01 - m10 - m11) / (m00 + m01 + m10 + m11)) ** 2


def transfer_of_matrices(n, d, k):
    total = np.array([[1, 0], [0, 1]], dtype=complex)
    for j in range(len(n)):
        phase = k * n[j] * d[j]
        layer = np.zeros((2, 2), complex)
        layer[0, 0] = layer[1, 1] = np.cos(phase)
        layer[0, 1] = 1j * np.sin(phase) / n[j]
        layer[1, 0] = 1j * np.sin(phase) * n[j]
        total = total @ layer
    return np.abs(total[1, 0] / total[0, 0]) ** 2


def crank_nicolson(psi, v, dt):
    """<x> of a wave function in a potential: Thomas' algorithm."""
    n, r = len(psi), 0.5j * dt
    psi, c, d = psi.copy(), np.zeros(len(psi), complex), np.zeros(len(psi), complex)
    for _ in range(3):
        for i in range(n):
            left = psi[i - 1] if i > 0 else 0j
            right = psi[i + 1] if i < n - 1 else 0j
            right_hand = psi[i] - r * ((2 + v[i]) * psi[i] - left - right)
            pivot = 1 + r * (2 + v[i])
            if i > 0:
                pivot = pivot + r * c[i - 1]
                right_hand = right_hand + r * d[i - 1]
            c[i] = -r / pivot
            d[i] = right_hand / pivot
        psi[n - 1] = d[n - 1]
        for i in range(n - 2, -1, -1):
            psi[i] = d[i] - c[i] * psi[i + 1]
    return np.sum(np.real(psi * np.conj(psi)) * np.arange(n))


def split_step(psi, g, j):
    """A nonlinear Schroedinger equation on a lattice: a phase at each site, then a rotation of each bond."""
    psi, c, s = psi.copy(), np.cos(j), -1j * np.sin(j)
    for _ in range(3):
        for i in range(len(psi)):
            psi[i] *= np.exp(-1j * g * abs(psi[i]) ** 2)
        for first in range(2):
            for i in range(first, len(psi) - 1, 2):
                a, b = psi[i], psi[i + 1]
                psi[i] = c * a + s * b
                psi[i + 1] = s * a + c * b
    return np.sum(np.abs(psi) ** 2 * np.arange(len(psi)))


def phasor(y, q, w):
    z = 0j
    for v in y:
        z = z * np.exp(0.1j * q) + v * w
    return abs(z) ** 2


def iterated(c, z, scale):
    """A Mandelbrot-like iteration with an escape."""
    total = 0.0
    for k in range(len(c)):
        x, n = z, 0
        while abs(x) < 2 and n < 6:
            x = x * x + scale * c[k]
            n += 1
        total = total + np.log(abs(x) + 1) * n
    return total


def fourier(x, y, w):
    n = len(x)
    out = np.zeros(n, complex)
    for k in range(n):
        for j in range(n):
            out[k] += x[j] * np.exp(-2j * np.pi * k * j / n) * (w + y[j])
    return np.sum(np.abs(out) * np.arange(n))


def newton(roots, z, step):
    """Newton's iteration for the cubic with these roots."""
    total = 0.0
    for k in range(len(roots)):
        x = z + roots[k] * 0.1
        for _ in range(4):
            x = x - step * (x**3 - roots[k]) / (3 * x**2)
        total = total + np.real(x) * np.imag(x)
    return total


def ladder(r, c, omega):
    """The impedance of a ladder of resistors and capacitors."""
    z = 50.0 + 0j
    for k in range(len(r)):
        shunt = 1 / (1j * omega * c[k])
        z = r[k] + z * shunt / (z + shunt)
    return np.abs(z) + np.imag(z) ** 2


def written_parts(a, x, q):
    """Writes in place, to what is read and to what is written elsewhere."""
    b = np.ones(len(a), a.dtype)
    for i in range(1, len(a)):
        b[i] += a[i] * np.conj(b[i - 1])
        b[i] *= q
        if np.real(b[i]) > 0.3:
            b[i - 1] = x[i] / (b[i] + 2j)
        elif b[i] == 0:
            b[i] = 1j
    return np.sum(np.real(b) * np.imag(b) + np.abs(b))


def parts_as_views(a, x, q):
    re, im = a.real, a.imag
    total = 0.0
    for i in range(len(x)):
        total = total * 0.9 + re[i] * im[i - 1] * x[i] + abs(a[i] * q)
    return total


def real_beside(a, x, q):
    """The result depends on a complex array of constants, and not on another one that is written beside."""
    beside, table = np.zeros(3, complex), np.exp(1j * np.arange(len(x)))
    total = 0.0
    for i in range(len(x)):
        beside[0] += 0.1 * x[i]
        total = total * np.sin(x[i]) + np.real(table[i] * a[i]) * q
    return total


def of_angles(a, x, q):
    total = 0.0
    for i in range(len(a)):
        z = a[i] * q + 2
        total += np.arctan2(z.imag, z.real) ** 2 * x[i]
    return total


def numbers(n, dtype=complex, seed=0):
    rng = onp.random.default_rng(seed)
    return (0.7 * (rng.standard_normal(n) + 1j * rng.standard_normal(n))).astype(dtype)


def positive(n, seed=1):
    return 0.5 + onp.random.default_rng(seed).random(n)


GIVEN = {
    transfer_matrix: (positive(6), positive(6, 2), 1.3),
    transfer_of_matrices: (positive(6), positive(6, 2), 1.3),
    crank_nicolson: (numbers(7), positive(7), 0.4),
    split_step: (numbers(7), 0.3, 0.4),
    phasor: (positive(12), 0.7, 0.3 - 0.4j),
    iterated: (numbers(8), 0.1 + 0.2j, 0.4),
    fourier: (numbers(6), positive(6), 0.3 - 0.4j),
    newton: (numbers(5), 0.8 + 0.3j, 0.9),
    ladder: (positive(9), positive(9, 2), 1.2),
    written_parts: (numbers(9), positive(9), 0.6 + 0.3j),
    parts_as_views: (numbers(9), positive(9), 0.6),
    real_beside: (numbers(9), positive(9), 0.6),
    of_angles: (numbers(9), positive(9), 0.6),
}
SLOW = {crank_nicolson, newton}  # to compile
PROGRAMS = pytest.mark.parametrize(
    "f", [pytest.param(f, id=f.__name__, marks=[pytest.mark.long] if f in SLOW else []) for f in GIVEN]
)


def ours(args):
    return [np.array(x) if isinstance(x, onp.ndarray) else x for x in args]


def directions(args, seed=5):
    rng = onp.random.default_rng(seed)
    parts = [rng.standard_normal((2, *onp.shape(x))) for x in args]
    return [a + 1j * b if onp.iscomplexobj(x) else a for x, (a, b) in zip(args, parts)]


def slope(f, args, along, h=1e-5):
    """The derivative by central differences."""
    at = lambda t: f(*ours([x + t * d for x, d in zip(args, along)]))
    return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)


def in_python():
    return [r["why"] for r in minnp.report() if r["function"].startswith("loop in")]


# ------------------------------------------------------------------ what holds
@PROGRAMS
def test_gradients_are_those_without_jit_and_of_differences(f):
    args, along = GIVEN[f], directions(GIVEN[f])
    minnp.report(reset=True)
    flows = 0.0
    for k, d in enumerate(along):
        want = grad(f, k)(*ours(args))
        inside = jit(grad(f, k))
        for got in (inside(*ours(args)), inside(*ours(args)), grad(jit(f), k)(*ours(args))):
            assert got.dtype == want.dtype and got.shape == want.shape
            onp.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)
        flows += onp.sum(onp.real(onp.asarray(got) * d))
    assert math.isclose(flows, slope(f, args, along), rel_tol=1e-6)
    assert in_python() == []


@PROGRAMS
def test_tangents_are_those_without_jit(f):
    args, along = ours(GIVEN[f]), directions(GIVEN[f])
    minnp.report(reset=True)
    tangent = jit(lambda *given: jvp(f, given[: len(args)], given[len(args) :]))
    for _ in range(2):
        y, t = tangent(*args, *along)
        assert math.isclose(y, f(*args), rel_tol=1e-12)
        assert math.isclose(t, slope(f, GIVEN[f], along), rel_tol=1e-6)
    assert in_python() == []


@pytest.mark.long
@pytest.mark.parametrize("f", [phasor, ladder, split_step, newton], ids=lambda f: f.__name__)
def test_second_derivatives_are_those_of_differences(f):
    args, along = GIVEN[f], directions(GIVEN[f])
    minnp.report(reset=True)
    first = lambda *given: np.sum(np.real(grad(f)(*given) * along[0]))
    flows = sum(onp.sum(onp.real(jit(grad(first, k))(*ours(args)) * d)) for k, d in enumerate(along))
    assert math.isclose(flows, slope(first, args, along), rel_tol=1e-5)
    assert in_python() == []


@pytest.mark.parametrize("f", [fourier, written_parts, crank_nicolson], ids=lambda f: f.__name__)
def test_half_as_wide_numbers_keep_their_dtype(f):
    narrow = lambda x: x.astype({"c": "c8", "f": "f4"}[x.dtype.kind]) if isinstance(x, onp.ndarray) else x
    args = [narrow(x) for x in GIVEN[f]]
    for k in range(2):
        want = grad(f, k)(*ours(args))
        for got in (jit(grad(f, k))(*ours(args)), grad(jit(f), k)(*ours(args))):
            assert got.dtype == want.dtype == args[k].dtype
            onp.testing.assert_allclose(got, want, rtol=2e-3, atol=1e-3 * abs(want).max())


@pytest.mark.parametrize("f", [phasor, written_parts, ladder], ids=lambda f: f.__name__)
def test_batches_of_gradients_are_one_program(f):
    first, *rest = ours(GIVEN[f])
    batch = np.stack([first, first * 0.5, first + 0.1])
    minnp.report(reset=True)
    got = jit(vmap(grad(f), (0, None, None)))(batch, *rest)
    onp.testing.assert_allclose(got, [grad(f)(x, *rest) for x in batch], rtol=1e-9)
    got = grad(lambda b: np.sum(vmap(jit(f), (0, None, None))(b, *rest)))(batch)
    onp.testing.assert_allclose(got, [grad(f)(x, *rest) for x in batch], rtol=1e-9)
    assert in_python() == []


def test_complex_results_have_complex_jacobians():
    def spiral(x, q):
        z, out = 1 + 0j, np.zeros(len(x), complex)
        for k in range(len(x)):
            z = z * np.exp(1j * x[k]) / (q + 0.1)
            out[k] = z
        return out

    x = np.array(positive(4))
    minnp.report(reset=True)
    onp.testing.assert_allclose(jit(jacobian(spiral))(x, 1.1), jacobian(spiral)(x, 1.1), rtol=1e-12)
    assert in_python() == []


def test_a_holomorphic_function_has_its_derivative():
    def power(z):
        for _ in range(3):
            z = z * z
        return z

    z = 0.6 + 0.8j
    assert abs(complex(jit(grad(power))(z)) - 8 * z**7) < 1e-12


def test_pythons_complex_numbers_carry_gradients():
    """1j * x is Python's complex number of a float64 x; so is abs of it a float of Python's."""

    def f(x):
        z, size = 1j, 0.0
        for k in range(len(x)):
            z = z * x[k]
            size = abs(1j * x[k]) * 3
        return np.real(z * z) + size

    x = np.array([0.5, 2.0, -3.0])
    want = grad(f)(x)
    assert abs(want[2] - (-2 * 9 * x[2] / 9 - 3)) < 1e-12  # d (-(x0 x1 x2)^2) / dx2 with x0 x1 = 1, and of 3 |x2|
    for g in (jit(grad(f)), grad(jit(f)), grad(checkpoint(jit(f)))):
        onp.testing.assert_allclose(g(x), want, rtol=1e-12)


def test_what_is_not_chosen_has_no_gradient_where_it_is_infinite():
    def f(a, x):
        total = 0.0
        for i in range(len(a)):
            z = 1 / a[i] if abs(a[i]) > 0 else 2 * a[i]
            total = total + np.real(z) + abs(a[i] * 0) * x[i]
        return total

    def masked(a, x):
        total = 0.0
        for i in range(len(a)):
            total = total + np.real(np.where(abs(a[i]) > 0, x[i] / a[i], 0.0))
        return total

    a, x = np.array([0j, 1j, 2.0]), np.array([1.0, 2.0, 3.0])
    with onp.errstate(all="ignore"):
        for loss in (f, masked):
            want = grad(loss)(a, x)
            assert onp.isfinite(want).all()
            onp.testing.assert_allclose(jit(grad(loss))(a, x), want, rtol=1e-12)


def test_the_side_of_a_branch_cut_is_numpys():
    def f(x, factor):
        total = 0.0
        for k in range(len(x)):
            z = complex(1.0, 0.0) * x[k] * factor
            total = total + np.arctan2(z.imag, z.real) * x[k]
        return total

    x = np.array([1.0, -2.0, 3.0])
    for factor in (-2.0, -(2 + 0j), 1j * 1j):
        want = grad(f)(x, factor)
        assert abs(abs(want[0]) - math.pi) < 1e-12
        onp.testing.assert_allclose(jit(grad(f))(x, factor), want, rtol=1e-12)


# ------------------------------------------------------------------ random programs
def weighted(x, n):
    """Numbers of a loop that depend on the weights alone are no traced ones: Python may ask for them."""
    weights, total, result = onp.array([0.5, 1.5, 0.25]), onp.float64(0.0), 0.0
    for i in range(len(x)):
        total += weights[i] * 0.5
        result += x[i] ** 2 * total
    return result * float(total)


def turning(x, n):
    """The same beside complex numbers of Python's, of which some depend on x."""
    weights, total, phase, result = onp.array([0.5, 1.5, 0.25]), onp.float64(0.0), 1j, 0.0
    for i in range(len(x)):
        total += weights[i] * 0.5
        phase = phase * 1j * total
        result += x[i] ** 2 * total + (1j * x[i] ** 3 * phase).real
    return result * float(total) + complex(total, phase.real).imag


@pytest.mark.parametrize("f", [weighted, turning])
def test_numbers_that_depend_on_nothing_differentiated_are_numbers(f):
    check_derivatives(f, onp.array([0.3, 0.2, 0.5]))


def test_an_outer_derivative_along_numbers_that_become_pythons():
    def f(x, w):
        total = 0.0
        for i in range(len(x)):
            total += x[i] ** 2 * float(w[i])
        return total

    x, w = onp.array([0.3, 0.2, 0.5]), onp.array([1.0, 2.0, 3.0])
    outer = grad(lambda w: np.sum(grad(jit(f))(np.array(x), w)))
    onp.testing.assert_allclose(outer(np.array(w)), 2 * x)


class Writer:
    """Writes a function of an array of complex numbers, one of real numbers, a real and a complex number."""

    def __init__(self, seed):
        self.random, self.lines = random.Random(seed), []

    def atom(self, i):
        names = ["z", "w", "u", f"a[{i}]", f"b[{i}]", f"b[{i} - 1]", f"x[{i}]", "q", "c", "1j", "0.7", f"m[{i} % 2, 1]"]
        return self.random.choice(["z", "w", *names])

    def expression(self, i, depth=2):
        inner = lambda: self.expression(i, depth - 1)
        forms = (
            "({} * {})", "({} + {})", "({} - {})", "({} / ({} + 4.0))", "np.conj({})", "np.exp(0.1 * {})",
            "({} * abs({}) / 3)", "(z.imag + {})", "(-{})", "np.real(w) * {}", "z ** 2 * {}", "(w ** 3 + {})",
        )  # fmt: skip
        if not depth or self.random.random() < 0.2:
            return self.atom(i)
        form = self.random.choice(forms)
        return form.format(*(inner() for _ in range(form.count("{}"))))

    def statement(self, indent, i, depth):
        put = lambda line: self.lines.append("    " * indent + line)
        choose, e = self.random.choice, f"0.2 * {self.expression(i)}"
        sort = self.random.randrange(12)
        if sort < 3:
            put(choose([f"z = {e} + 0.5 * z", f"z += {e}", f"w = {e}"]))
        elif sort < 7:
            put(choose([f"b[{i}] = {e}", f"b[{i}] += {e}", f"b[{i}] *= {e}", f"m[{i} % 2, 0] += {e}"]))
        elif sort < 8:
            put(f"u = {e} + 0.3 * u")
        elif sort < 9 or not depth:
            put(f"t += abs({self.expression(i, 1)}) ** 2 * 0.1")
        elif sort < 10:
            put(f"if {choose(['abs(z) > 0.8', 'z.real > w.imag', f'{i} % 2 == 0', f'x[{i}] > 0.1'])}:")
            self.statement(indent + 1, i, depth - 1)
            put("else:")
            self.statement(indent + 1, i, depth - 1)
        elif sort < 11:
            j = "jk"[depth - 1]
            put(f"for {j} in range({choose(['1, len(a)', '2, 5', '4, 0, -1'])}):")
            self.statement(indent + 1, j, depth - 1)
            self.statement(indent + 1, choose([i, j]), depth - 1)
        else:
            put(f"n{depth} = 0")
            put(f"while n{depth} < 3 and abs(z) < 1.5:")
            self.statement(indent + 1, i, depth - 1)
            self.lines.append("    " * (indent + 1) + f"n{depth} += 1")

    def source(self):
        choose = self.random.choice
        self.lines = [
            "import minnp.numpy as np",
            "def f(a, x, q, c):",
            f"    b = {choose(['a * 1.0', 'np.zeros(len(a), a.dtype)'])}",
            f"    m = {choose(['np.zeros((2, 2), a.dtype)', 'np.ones((2, 2)) * a[0]'])}",
            f"    z = {choose(['0j', 'a[0]', 'c + 0.1', '1j * q'])}",
            f"    w, u, t = {choose(['1.0 + 0j', 'a[1]', '0.2j * c'])}, {choose(['0.1j', 'c'])}, 0.0",
            f"    for i in range({choose(['1, len(a)', '1, 6', 'len(a) - 1, 0, -1'])}):",
        ]
        for _ in range(self.random.randrange(2, 6)):
            self.statement(2, "i", 2)
        losses = "t + abs(z) ** 2 + np.real(w * (0.4 - 0.1j)) + np.imag(u) + np.sum(np.abs(b * b)) + np.imag(m[0, 1])"
        return "\n".join([*self.lines, f"    return {losses} + np.real(m[0, 0] * m[1, 0])", ""])


@pytest.mark.long
@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed):
    source, name, names = Writer(seed).source(), f"<complex program {seed}>", {}
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    exec(compile(source, name, "exec"), names)
    f = names["f"]
    args = numbers(7, seed=seed), onp.random.default_rng(seed).standard_normal(7), 0.6, 0.3 + 0.4j
    along = directions(args)
    with onp.errstate(all="ignore"):
        for k in range(len(args)):
            want = grad(f, k)(*ours(args))
            close = {"rtol": 1e-9, "atol": 1e-9 * max(1, onp.max(abs(onp.asarray(want))))}
            onp.testing.assert_allclose(jit(grad(f, k))(*ours(args)), want, **close)
            onp.testing.assert_allclose(grad(jit(f), k)(*ours(args)), want, **close)
        _, want = jvp(f, tuple(ours(args)), tuple(along))
        _, got = jit(lambda *given: jvp(f, given[:4], given[4:]))(*ours(args), *along)
        onp.testing.assert_allclose(got, want, rtol=1e-9)
