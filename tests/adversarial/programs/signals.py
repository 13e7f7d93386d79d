"""Signals: filters, spectra, resampling, recursion in time, detection, coding."""

import numpy as np

from tests.adversarial.program import program


@program(lambda r: (r.normal(size=20), r.normal(size=3), r.uniform(-0.3, 0.3, 2)))
def recursive_filter(x, b, a):
    y = np.zeros_like(x)
    for n in range(len(x)):
        y[n] = sum(b[k] * x[n - k] for k in range(3) if n >= k)
        y[n] -= sum(a[k - 1] * y[n - k] for k in (1, 2) if n >= k)
    return y


class Biquad:
    def __init__(self, f, q):
        w = 2 * np.pi * f
        alpha = np.sin(w) / (2 * q)
        self.b = np.array([1 - np.cos(w), 2 * (1 - np.cos(w)), 1 - np.cos(w)]) / 2 / (1 + alpha)
        self.a = np.array([-2 * np.cos(w), 1 - alpha]) / (1 + alpha)
        self.z = np.zeros(2)

    def __call__(self, v):
        out = self.b[0] * v + self.z[0]
        self.z[0] = self.b[1] * v - self.a[0] * out + self.z[1]
        self.z[1] = self.b[2] * v - self.a[1] * out
        return out


@program(lambda r: (r.normal(size=16), r.uniform(0.05, 0.2), r.uniform(0.6, 0.8)))
def biquads_in_series(x, f, q):
    chain = [Biquad(f, q), Biquad(2 * f, q)]
    out = []
    for v in x:
        for section in chain:
            v = section(v)
        out.append(v)
    return np.array(out), chain[1].z


@program(lambda r: (r.normal(size=16), 0.2))
def goertzel(x, f):
    c = 2 * np.cos(2 * np.pi * f)
    s1 = s2 = 0.0
    for v in x:
        s1, s2 = v + c * s1 - s2, s1
    return s1**2 + s2**2 - c * s1 * s2


@program(lambda r: (r.normal(size=14),))
def autocorrelation_two_ways(x):
    n = len(x)
    direct = np.array([x[: n - k] @ x[k:] for k in range(n)])
    f = np.fft.rfft(x, 2 * n)
    fast = np.fft.irfft(f * f.conj())[:n]
    return direct, fast - direct, direct[1:] / direct[0]


@program(lambda r: (r.normal(size=20), r.normal(size=4)))
def overlap_add(x, h):
    block, n = 5, 8
    y = np.zeros(len(x) + 3)
    hf = np.fft.rfft(h, n)
    for k in range(0, len(x), block):
        y[k : k + n] += np.fft.irfft(np.fft.rfft(x[k : k + block], n) * hf, n)[: len(y) - k]
    return y, np.allclose(y, np.convolve(x, h))


@program(lambda r: (r.normal(size=24),))
def short_time_spectrum_and_back(x):
    w = np.sqrt(np.hanning(9)[:8])
    frames = np.stack([x[k : k + 8] * w for k in range(0, 17, 4)])
    s = np.fft.rfft(frames, axis=1)
    s[:, -2:] = 0
    y = np.zeros(24)
    for k, f in enumerate(np.fft.irfft(s)):
        y[4 * k : 4 * k + 8] += f * w
    return y, np.abs(s).T


@program(lambda r: (r.normal(size=15), r.normal(size=4)))
def least_mean_squares(x, target):
    w = np.zeros(4)
    err = []
    for n in range(3, 15):
        u = x[n - 3 : n + 1][::-1]
        e = target @ u - w @ u
        w += 0.05 * e * u
        err.append(e**2)
    return w, err


@program(lambda r: (r.normal(size=10),))
def levinson_durbin(x):
    r = np.correlate(x, x, "full")[9:14] / 10
    a = np.array([1.0])
    e = r[0]
    for k in range(1, 5):
        reflection = -(a @ r[k:0:-1]) / e
        a = np.append(a, 0.0)
        a = a + reflection * a[::-1]
        e *= 1 - reflection**2
    return a, e


@program(lambda r: (r.normal(size=3), r.normal(size=(8, 2))))
def kalman_filter(s, z):
    f = np.array([[1, 0.1], [0, 1]])
    x, p = s[:2], np.eye(2) * (1 + s[2] ** 2)
    out = []
    for m in z:
        x, p = f @ x, f @ p @ f.T + 0.01 * np.eye(2)
        gain = p @ np.linalg.inv(p + 0.5 * np.eye(2))
        x = x + gain @ (m - x)
        p = (np.eye(2) - gain) @ p
        out.append(x)
    return np.array(out), p


@program(lambda r: (r.normal(size=12),))
def polyphase_resampling(x):
    up = np.zeros(36)
    up[::3] = x
    h = np.sinc(np.arange(-6, 7) / 3) * np.hamming(13)
    y = np.convolve(up, h, mode="same")[::2]
    branches = h[: 13 // 3 * 3].reshape(-1, 3).T
    return y, branches.sum(1) * x[:3]


@program(lambda r: (r.normal(size=16),))
def zero_crossings_and_peaks(x):
    i = np.flatnonzero(np.signbit(x[:-1]) != np.signbit(x[1:]))
    t = i + x[i] / (x[i] - x[i + 1])
    peak = np.flatnonzero((x[1:-1] > x[:-2]) & (x[1:-1] > x[2:])) + 1
    a, b, c = x[peak - 1], x[peak], x[peak + 1]
    return t.sum(), (b - 0.125 * (c - a) ** 2 / (a - 2 * b + c)).sum(), len(i) >= 0


@program(lambda r: (r.normal(size=16), 0.5))
def lifting_wavelet(x, threshold):
    s, d = x[::2].copy(), x[1::2].copy()
    d -= (s + np.roll(s, -1)) / 2
    s += (d + np.roll(d, 1)) / 4
    d = np.sign(d) * np.maximum(np.abs(d) - threshold, 0)
    s -= (d + np.roll(d, 1)) / 4
    d += (s + np.roll(s, -1)) / 2
    out = np.empty(16)
    out[::2], out[1::2] = s, d
    return out


@program(lambda r: (r.normal(size=9),))
def cosine_transform(x):
    n = len(x)
    k = np.arange(n)
    basis = np.cos(np.pi / n * (k[None, :] + 0.5) * k[:, None])
    basis[0] *= np.sqrt(0.5)
    y = basis @ x * np.sqrt(2 / n)
    y[5:] = 0
    return y, basis.T @ y * np.sqrt(2 / n)


@program(lambda r: (r.normal(size=12),))
def running_median_of_five(x):
    p = np.concatenate([x[2:0:-1], x, x[-2:-4:-1]])
    window = sorted(p[:5])
    out = [window[2]]
    for old, new in zip(p, p[5:]):
        window.remove(old)
        window.append(new)
        window.sort()
        out.append(window[2])
    return np.array(out)


@program(lambda r: (r.normal(size=10), r.uniform(0.1, 0.9)))
def exponential_average_three_ways(x, a):
    y = np.empty_like(x)
    y[0] = x[0]
    for n in range(1, 10):
        y[n] = a * x[n] + (1 - a) * y[n - 1]
    k = np.arange(10)
    w = np.where(k[:, None] >= k, (1 - a) ** np.abs(k[:, None] - k), 0)
    w[:, 1:] *= a
    return y, w @ x - y, (x * w[-1]).sum()


@program(lambda r: (r.uniform(-1, 1, 12),), order=0)
def quantised_with_feedback(x):
    out = np.zeros(12, dtype=np.int8)
    err = 0.0
    for k, v in enumerate(x):
        q = np.rint((v + err) * 7)
        err = v + err - q / 7
        out[k] = q
    return out, np.cumsum(out, dtype=np.int64)


@program(lambda r: (r.integers(0, 2, 12),), order=0, nums=False)
def convolutional_code(bits):
    state = np.zeros(3, dtype=int)
    out = []
    for b in bits:
        state = np.roll(state, 1)
        state[0] = b
        out += [state.sum() % 2, state[0] ^ state[2]]
    return np.array(out), np.packbits(out), np.unpackbits(np.packbits(out))[:24]


@program(lambda r: (r.uniform(0.1, 0.3), r.normal(size=16)))
def phase_locked_loop(gain, noise):
    phase, freq = 0.0, 0.9
    track = np.zeros(16)
    for n in range(16):
        e = np.sin(1.0 * n + 0.1 * noise[n] - phase)
        freq += 0.1 * gain * e
        phase += freq + gain * e
        track[n] = e
    return track, phase


@program(lambda r: (r.normal(size=(3, 10)), r.normal(size=3)))
def delay_and_sum(x, w):
    y = np.zeros(12)
    for channel, delay, g in zip(x, [0, 1, 2], w):
        y[delay : delay + 10] += g * channel
    return y / np.abs(w).sum(), np.einsum("ct,dt->cd", x, x)[np.triu_indices(3)]


@program(lambda r: (r.normal(size=8),))
def cubic_hermite_upsampling(y):
    m = np.gradient(y)
    t = np.linspace(0, 6.9, 15)
    k = np.floor(t).astype(np.intp)
    u = t - k
    h = np.array([2 * u**3 - 3 * u**2 + 1, u**3 - 2 * u**2 + u, -2 * u**3 + 3 * u**2, u**3 - u**2])
    return (h * [y[k], m[k], y[k + 1], m[k + 1]]).sum(axis=0)


@program(lambda r: (r.normal(size=10),))
def window_functions(x):
    ws = [np.bartlett(10), np.blackman(10), np.hamming(10), np.hanning(10), np.kaiser(10, 5.0)]
    return np.array([w @ x for w in ws]), np.prod([1 + w * x for w in ws], axis=0)
