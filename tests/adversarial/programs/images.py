"""Images: warps, resampling, filters, morphology, components, integral images, edges, colour."""

from collections import deque

import numpy as np

from tests.adversarial.program import program


def bilinear(image, y, x):
    h, w = image.shape
    y0 = np.clip(np.floor(y).astype(int), 0, h - 2)
    x0 = np.clip(np.floor(x).astype(int), 0, w - 2)
    dy, dx = y - y0, x - x0
    top = image[y0, x0] * (1 - dx) + image[y0, x0 + 1] * dx
    low = image[y0 + 1, x0] * (1 - dx) + image[y0 + 1, x0 + 1] * dx
    return top * (1 - dy) + low * dy


@program(lambda r: (r.normal(size=(6, 7)), r.uniform(0.1, 0.4)))
def rotated(image, angle):
    yy, xx = np.mgrid[:6, :7] - np.array([2.5, 3.0])[:, None, None]
    c, s = np.cos(angle), np.sin(angle)
    y = np.clip(c * yy - s * xx + 2.5, 0.01, 4.99)
    x = np.clip(s * yy + c * xx + 3.0, 0.01, 5.99)
    return bilinear(image, y, x)


@program(lambda r: (r.normal(size=(5, 5)), r.uniform(-0.4, 0.4, (2, 5, 5))))
def warped_by_a_flow(image, flow):
    grid = np.indices((5, 5)) + 0.5
    y, x = np.clip(grid + flow, 0, 4)
    return bilinear(image, y, x) - image


@program(lambda r: (r.normal(size=(4, 6)),))
def resampled_up_and_down(image):
    up = bilinear(image, *np.meshgrid(np.linspace(0, 3, 7), np.linspace(0, 5, 9), indexing="ij"))
    down = image.reshape(2, 2, 3, 2).mean(axis=(1, 3))
    nearest = image[::2, ::3].repeat(2, axis=0).repeat(3, axis=1)
    return up, down, nearest


@program(lambda r: (r.normal(size=(5, 6)),))
def integral_image_box_filter(image):
    s = np.zeros((6, 7))
    s[1:, 1:] = image.cumsum(0).cumsum(1)
    k = 3
    box = s[k:, k:] - s[:-k, k:] - s[k:, :-k] + s[:-k, :-k]
    return box / k**2, s[-1, -1] - image.sum()


@program(lambda r: (r.normal(size=(6, 6)),))
def median_filter(image):
    padded = np.pad(image, 1, mode="edge")
    stack = np.array([padded[i : i + 6, j : j + 6] for i in range(3) for j in range(3)])
    return np.median(stack, axis=0)


@program(lambda r: (r.normal(size=(5, 7)),))
def erosion_then_dilation(image):
    def over(f, a, fill):
        p = np.pad(a, 1, constant_values=fill)
        out = p[1:-1, 1:-1]
        for dy, dx in [(0, 1), (2, 1), (1, 0), (1, 2)]:
            out = f(out, p[dy : dy + a.shape[0], dx : dx + a.shape[1]])
        return out

    opened = over(np.maximum, over(np.minimum, image, np.inf), -np.inf)
    return opened, image - opened


@program(lambda r: (r.normal(size=(6, 7)),))
def component_sums(image):
    mask = image > 0
    label = np.zeros(image.shape, dtype=int)
    count = 0
    for start in zip(*np.nonzero(mask)):
        if label[start]:
            continue
        count += 1
        queue = deque([start])
        label[start] = count
        while queue:
            y, x = queue.popleft()
            for v, u in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)):
                if 0 <= v < 6 and 0 <= u < 7 and mask[v, u] and not label[v, u]:
                    label[v, u] = count
                    queue.append((v, u))
    sums = np.bincount(label.ravel(), weights=image.ravel(), minlength=12)[:12]
    return sums, image / (1 + np.abs(sums[np.minimum(label, 11)]))


@program(lambda r: (r.integers(0, 2, (6, 6)),), order=0, nums=False)
def labels_by_union_find(mask):
    parent = np.arange(36)

    def find(a):
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        return a

    for y in range(6):
        for x in range(6):
            if mask[y, x]:
                if y and mask[y - 1, x]:
                    parent[find(6 * y + x)] = find(6 * (y - 1) + x)
                if x and mask[y, x - 1]:
                    parent[find(6 * y + x)] = find(6 * y + x - 1)
    roots = np.array([find(k) for k in range(36)]).reshape(6, 6)
    return np.where(mask == 1, roots, -1), len(np.unique(roots[mask == 1]))


@program(lambda r: (r.normal(size=(6, 6)),))
def sobel_magnitude(image):
    gx = image[:-2, 2:] + 2 * image[1:-1, 2:] + image[2:, 2:]
    gx -= image[:-2, :-2] + 2 * image[1:-1, :-2] + image[2:, :-2]
    gy = (image[2:] - image[:-2])[:, [0, 1, 2, 3]] + 2 * (image[2:] - image[:-2])[:, 1:5]
    gy += (image[2:] - image[:-2])[:, 2:]
    return np.sqrt(gx**2 + gy**2 + 1e-2), np.arctan2(gy, gx)


@program(lambda r: (r.normal(size=(7, 7)), 0.8))
def separable_gaussian(image, sigma):
    t = np.arange(-2, 3)
    k = np.exp(-0.5 * (t / sigma) ** 2)
    k /= k.sum()
    rows = np.array([np.convolve(row, k, mode="same") for row in image])
    return np.apply_along_axis(np.convolve, 0, rows, k, "same")


@program(lambda r: (r.uniform(0.05, 0.95, (4, 4, 3)),))
def grey_and_hue(rgb):
    grey = rgb @ [0.299, 0.587, 0.114]
    hi, lo = rgb.max(-1), rgb.min(-1)
    k = rgb.argmax(-1)
    diff = np.roll(rgb, -1, axis=-1) - np.roll(rgb, -2, axis=-1)
    hue = np.take_along_axis(diff, k[..., None], -1)[..., 0] / (hi - lo + 1e-2) + 2 * k
    return grey, hue, (hi - lo) / (hi + lo)


@program(lambda r: (r.integers(0, 256, (5, 6), dtype=np.uint8),), order=0, nums=False)
def equalised_bytes(image):
    h = np.bincount(image.ravel(), minlength=256)
    cdf = h.cumsum()
    lut = ((cdf - cdf.min()) * 255 // (image.size - cdf.min())).astype(np.uint8)
    out = lut[image]
    out[out > 128] -= 100
    return out, out.sum(), out + np.uint8(200)


@program(lambda r: (r.normal(size=(6, 8)),))
def laplacian_pyramid(image):
    levels = []
    while min(image.shape) > 2:
        small = (image[::2, ::2] + image[1::2, ::2] + image[::2, 1::2] + image[1::2, 1::2]) / 4
        big = np.kron(small, np.ones((2, 2)))
        levels.append(image - big)
        image = small[: small.shape[0] // 2 * 2]
    return [np.abs(level).sum() for level in levels], image


@program(lambda r: (r.normal(size=(5, 5)),))
def flips_and_quarter_turns(a):
    b = np.rot90(a, 3)
    c = np.flipud(b) * np.fliplr(a)
    d = a.copy()
    d[::-1, ::-1] += np.rot90(d)
    return b, c, d, np.flip(a, (0, 1)).T[0]


@program(lambda r: (r.normal(size=(6, 6)),))
def threshold_by_local_mean(image):
    w = np.lib.stride_tricks.sliding_window_view(np.pad(image, 1, mode="reflect"), (3, 3))
    m, s = w.mean((-1, -2)), w.std(axis=(2, 3))
    out = image.copy()
    out[image < m - 0.2 * s] = 0
    return out, np.where(image > m, s, m)


@program(lambda r: (r.normal(size=(8, 8)),))
def image_moments_of_a_mask(a):
    mask = a**2
    y, x = np.mgrid[0:8, 0:8]
    m00 = mask.sum()
    cy, cx = (y * mask).sum() / m00, (x * mask).sum() / m00
    cov = np.array([[((y - cy) ** 2 * mask).sum(), ((y - cy) * (x - cx) * mask).sum()], [0, 0]]) / m00
    cov[1] = cov[0, 1], ((x - cx) ** 2 * mask).sum() / m00
    return cov, cy, cx


@program(lambda r: (r.normal(size=(5, 5)),))
def error_diffusion(image):
    out = np.zeros((5, 5))
    work = np.zeros((6, 7))
    work[:5, 1:6] = image
    for y in range(5):
        for x in range(1, 6):
            old = work[y, x]
            out[y, x - 1] = 1.0 if old > 0 else -1.0
            e = old - out[y, x - 1]
            work[y, x + 1] += e * 7 / 16
            work[y + 1, x - 1 : x + 2] += e * np.array([3, 5, 1]) / 16
    return out, work


@program(lambda r: (r.normal(size=(6, 6)),))
def bilateral_filter(image):
    out = np.zeros_like(image)
    weight = np.zeros_like(image)
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            moved = np.roll(image, (dy, dx), axis=(0, 1))
            w = np.exp(-(dy * dy + dx * dx) / 2 - (moved - image) ** 2)
            out += w * moved
            weight += w
    return out / weight


@program(lambda r: (r.normal(size=(3, 3)), r.normal(size=(4, 2))))
def homography_of_points(h, p):
    h[2] *= 0.1
    h[2, 2] = 1.5
    q = np.c_[p, np.ones(len(p))] @ h.T
    return q[:, :2] / q[:, 2:]


@program(lambda r: (r.normal(size=(6, 6)),))
def total_variation_descent(u):
    f = u.copy()
    for _ in range(6):
        gx = np.diff(u, axis=1, append=u[:, -1:])
        gy = np.diff(u, axis=0, append=u[-1:])
        n = np.sqrt(gx**2 + gy**2 + 0.1)
        px, py = gx / n, gy / n
        div = np.diff(px, axis=1, prepend=0) + np.diff(py, axis=0, prepend=0)
        u += 0.1 * (div - (u - f))
    return u


@program(lambda r: (r.normal(size=(8, 8)),))
def local_maxima_suppressed(a):
    c = a[1:-1, 1:-1]
    peak = np.ones(c.shape, bool)
    for i in range(3):
        for j in range(3):
            if i != 1 or j != 1:
                peak &= c >= a[i : i + 6, j : j + 6]
    c[~peak] = 0.1 * c[~peak]
    return a, np.transpose(np.nonzero(peak)).sum(0)
