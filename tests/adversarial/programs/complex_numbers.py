"""Complex numbers: roots, transforms by hand, conformal maps, quantum gates, impedance, phases."""

import cmath

import numpy as np

from tests.adversarial.program import program


def cplx(r, *shape):
    return r.normal(size=shape) + 1j * r.normal(size=shape)


@program(lambda r: (cplx(r, 4),))
def durand_kerner(c):
    z = (0.4 + 0.9j) ** np.arange(4)
    for _ in range(25):
        p = np.polyval(np.concatenate([[1], c]), z)
        for i in range(4):
            others = np.delete(z, i)
            z[i] = z[i] - p[i] / np.prod(z[i] - others)
    return np.sort(np.abs(z)), z.sum() + c[0]


@program(lambda r: (cplx(r, 6),))
def dft_matrix(x):
    k = np.arange(6)
    w = np.exp(-2j * np.pi / 6 * np.outer(k, k))
    y = w @ x
    back = w.conj().T @ y / 6
    return y, np.abs(back - x).max() < 1e-10, np.linalg.norm(y) ** 2 / 6


@program(lambda r: (cplx(r, 8),))
def iterative_fft_in_place(x):
    rev = [int(f"{k:03b}"[::-1], 2) for k in range(8)]
    x[:] = x[rev]
    size = 2
    while size <= 8:
        w = np.exp(-2j * np.pi * np.arange(size // 2) / size)
        m = x.reshape(-1, size)
        half = size // 2
        t = w * m[:, half:]
        m[:, half:] = m[:, :half] - t
        m[:, :half] += t
        size *= 2
    return x


@program(lambda r: (cplx(r, 4), cplx(r, 5)))
def moebius(coefficients, z):
    a, b, c, d = coefficients
    w = (a * z + b) / (c * z + d + 2)
    inverse = ((d + 2) * w - b) / (-c * w + a)
    return w, inverse - z


@program(lambda r: (r.uniform(0.2, 1, 10), r.uniform(0, 6, 10)))
def joukowski(radius, angle):
    z = (1.2 + radius) * np.exp(1j * angle) + (-0.1 + 0.1j)
    w = z + 1 / z
    return w.real, w.imag, np.angle(w), (1 - z**-2).conj() * z


GATES = {
    "h": np.array([[1, 1], [1, -1]]) / np.sqrt(2),
    "s": np.diag([1, 1j]),
    "y": np.array([[0, -1j], [1j, 0]]),
}


@program(lambda r: (r.uniform(0, 3, 4),))
def quantum_circuit(theta):
    psi = np.zeros((2, 2, 2), dtype=complex)
    psi[0, 0, 0] = 1

    def apply(psi, g, q):
        return np.moveaxis(np.tensordot(g, psi, (1, q)), 0, q)

    for q, t in enumerate(theta[:3]):
        c, s = np.cos(t / 2), np.sin(t / 2)
        psi = apply(psi, np.array([[c, -s], [s, c]]), q)
    for q, name in enumerate("hsy"):
        psi = apply(psi, GATES[name], q)
    psi[1, :, :] = psi[1, ::-1, :].copy()
    psi = psi * np.exp(1j * theta[3] * np.arange(8).reshape(2, 2, 2))
    p = np.abs(psi) ** 2
    return p.sum(axis=(1, 2)), psi, (psi.conj() * np.flip(psi)).sum()


@program(lambda r: (r.uniform(1, 2, 3),))
def resonant_impedance(rlc):
    res, ind, cap = rlc
    w = np.linspace(0.3, 2, 7)
    z = res + 1j * w * ind + 1 / (1j * w * cap)
    par = 1 / (1 / z + 1 / res)
    return np.abs(z), np.angle(par, deg=True), 20 * np.log10(np.abs(par))


@program(lambda r: (r.normal(size=3) + 1.5, r.normal(size=3)))
def complex_square_roots_and_logs(a, b):
    z = a + 1j * b
    root = np.sqrt(z)
    return root, np.log(z) + np.exp(-z), z ** (0.5 + 0.2j), np.abs(root**2 - z) < 1e-12


@program(lambda r: (complex(r.normal(), r.normal()),))
def mandelbrot_orbit(c):
    z = 0j
    orbit = []
    for _ in range(8):
        z = z * z + 0.5 * c
        if abs(z) > 2:
            break
        orbit.append(abs(z))
    return z, sum(orbit)


@program(lambda r: (cplx(r, 3, 3),))
def hermitian_parts(a):
    h = (a + a.conj().T) / 2
    k = a - h
    e = np.linalg.eigvalsh(h)
    h[0, 1] = 0
    h[1, 0] = h[0, 1].conjugate()
    return e, k.imag.trace(), h, np.vdot(a, k), np.linalg.norm(a)


@program(lambda r: (r.normal(size=9),))
def hilbert_envelope(x):
    n = len(x)
    f = np.fft.fft(x)
    f[1 : (n + 1) // 2] *= 2
    f[(n + 1) // 2 :] = 0
    z = np.fft.ifft(f)
    return np.abs(z), np.unwrap(np.angle(z)).sum(), z.real - x


@program(lambda r: (r.normal(size=(4, 6)),))
def two_dimensional_spectrum(x):
    f = np.fft.rfft2(x)
    f[0, 0] = 0
    y = np.fft.irfft2(f, s=x.shape)
    p = np.fft.fftshift(np.abs(np.fft.fft2(x)) ** 2)
    return y - x, p[1:, ::2], np.fft.fftfreq(6) @ x[0]


@program(lambda r: (cplx(r, 5), cplx(r, 5)))
def real_array_assigned_from_complex_parts(a, b):
    out = np.zeros(5)
    out[:] = a.real * b.imag
    out[1] = (a @ b).real
    z = np.zeros(5, dtype=complex)
    z.real = out
    z.imag[1:] = out[:-1]
    z *= b
    return out, z


@program(lambda r: (r.normal(size=(3, 2)),))
def polar_and_rectangular(p):
    z = [complex(*q) for q in p]
    w = [cmath.exp(1j * k) for k in range(3)]
    return np.array(z) * np.array(w), sum(abs(u * v) for u, v in zip(z, w)), np.prod(z).imag


@program(lambda r: (cplx(r, 6),))
def conjugate_symmetric_extension(x):
    full = np.concatenate([x.real[:1], x[1:], x[:0:-1].conj()])
    y = np.fft.ifft(full)
    assert np.abs(y.imag).max() < 1e-12
    return y.real, full[::2], np.iscomplexobj(full)


@program(lambda r: (cplx(r, 4, 4),))
def unitary_by_gram_schmidt(a):
    q = np.zeros_like(a)
    for j in range(4):
        v = a[:, j] - q[:, :j] @ (q[:, :j].conj().T @ a[:, j])
        q[:, j] = v / np.sqrt(np.vdot(v, v).real)
    return q, np.abs(np.linalg.det(q))


@program(lambda r: (r.normal(size=(2, 3)), r.normal(size=2)))
def complex_plus_real_scalars(x, s):
    z = 1j * x
    z += x[0]
    z[1] -= s[0]
    z /= 2 - 1j * s[1]
    return z, z * z.conj(), (z.real > 0).sum(), z.dtype == np.complex128


@program(lambda r: (r.normal(size=5) + 0.2,))
def contour_integral(c):
    t = np.arange(16) * 2 * np.pi / 16
    z = 2 * np.exp(1j * t)
    dz = 1j * z * (2 * np.pi / 16)
    f = sum(ck / (z - 0.1 * k) for k, ck in enumerate(c))
    return (f * dz).sum() / (2j * np.pi) - c.sum(), (f * np.conj(f)).real.mean()


@program(lambda r: (r.normal(size=3), r.normal(size=3)))
def sort_and_compare_complex(a, b):
    z = a + 1j * b
    s = np.sort(z)
    k = np.argmax(np.abs(z))
    return s, z[k], np.sort_complex(z[::-1]) - s, z == s[0], np.real_if_close(z * z.conj())


@program(lambda r: (cplx(r, 8),))
def window_and_shift_phase(x):
    k = np.fft.fftfreq(8) * 8
    f = np.fft.fft(x) * np.exp(-2j * np.pi * k * 0.3 / 8)
    y = np.fft.ifft(f, norm="backward")
    return y, np.fft.ifftshift(y)[:3], np.fft.hfft(x[:3], 4)


@program(lambda r: (r.uniform(0.5, 1, 3), r.uniform(-1, 1, 3)))
def two_port_cascade(mag, phase):
    t = np.eye(2, dtype=complex)
    for m, p in zip(mag, phase):
        z = m * np.exp(1j * p)
        t = t @ np.array([[1, z], [0, 1]]) @ np.array([[1, 0], [1 / (z + 1), 1]])
    s11 = (t[0, 0] + t[0, 1] - t[1, 0] - t[1, 1]) / t.sum()
    return abs(s11) ** 2, t
