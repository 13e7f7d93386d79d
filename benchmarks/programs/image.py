"""Image processing: grey levels, separable blur, Sobel edges, histogram equalisation, Otsu's threshold."""

SMALL, MODERATE = 32, 512


def run(np, size):
    rng = np.random.default_rng(9)
    y, x = np.ogrid[:size, :size]
    disc = (x - size / 2) ** 2 + (y - size / 3) ** 2 < (size / 4) ** 2
    rgb = (rng.integers(0, 60, (size, size, 3)) + 150 * disc[..., None]).astype(np.uint8)
    grey = rgb @ np.array([0.299, 0.587, 0.114], dtype=np.float32)
    kernel = np.exp(-(np.arange(-4, 5, dtype=np.float32) ** 2) / 8)
    kernel /= kernel.sum()
    edge = np.pad(grey, 4, mode="reflect")
    blurred = sum(k * edge[i : i + size] for i, k in enumerate(kernel))
    blurred = sum(k * blurred[:, i : i + size] for i, k in enumerate(kernel))
    gy, gx = np.gradient(blurred)
    magnitude = np.hypot(gx, gy)
    direction = np.digitize(np.arctan2(gy, gx), np.linspace(-np.pi, np.pi, 9)) % 8
    levels = np.clip(np.rint(blurred), 0, 255).astype(np.uint8)
    histogram = np.bincount(levels.ravel(), minlength=256)
    cdf = histogram.cumsum() / levels.size
    equalised = (255 * cdf).astype(np.uint8)[levels]
    moment = (np.arange(256) * histogram).cumsum() / levels.size
    with np.errstate(divide="ignore", invalid="ignore"):
        between = np.nan_to_num((moment[-1] * cdf - moment) ** 2 / (cdf * (1 - cdf)))
    threshold = between.argmax()
    return magnitude, direction, equalised, threshold, (levels > threshold).mean()
