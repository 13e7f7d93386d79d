"""A noisy signal: spectrum, low-pass filter in the frequency domain, spectrogram by strided windows."""

SMALL, MODERATE = 512, 1 << 18


def run(np, size):
    rng = np.random.default_rng(5)
    t = np.arange(size) / 1000.0
    clean = np.sin(2 * np.pi * 5 * t) + 0.5 * np.sin(2 * np.pi * 40 * t)
    noisy = clean + 0.8 * rng.standard_normal(size)
    spectrum = np.fft.rfft(noisy)
    frequency = np.fft.rfftfreq(size, 1 / 1000.0)
    spectrum[frequency > 60] = 0
    filtered = np.fft.irfft(spectrum, size)
    windows = np.lib.stride_tricks.sliding_window_view(filtered, 256)[::64] * np.hanning(256)
    power = np.abs(np.fft.rfft(windows, axis=-1)) ** 2
    level = 10 * np.log10(power + 1e-12)
    rms = np.sqrt(np.mean((filtered - clean) ** 2))
    return filtered, level.max(axis=1), frequency[power.mean(axis=0).argmax()], rms
