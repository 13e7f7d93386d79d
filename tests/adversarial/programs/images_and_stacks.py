"""Images and stacks: warps, pyramids, stacked linear algebra, contractions with ellipses, spectra of several axes."""

import numpy as np

from tests.adversarial.program import program


def bilinear(image, y, x):
    h, w = image.shape[:2]
    y0 = np.clip(np.floor(y).astype(int), 0, h - 2)
    x0 = np.clip(np.floor(x).astype(int), 0, w - 2)
    fy, fx = (y - y0)[..., None], (x - x0)[..., None]
    top = image[y0, x0] * (1 - fx) + image[y0, x0 + 1] * fx
    low = image[y0 + 1, x0] * (1 - fx) + image[y0 + 1, x0 + 1] * fx
    return top * (1 - fy) + low * fy


@program(lambda r: (r.random((5, 6, 3)), r.normal(size=4) * 0.3))
def warped_by_polynomial_and_swirl(image, p):
    y, x = np.mgrid[0:5, 0:6] * 1.0
    cy, cx = (y - 2.1) / 5, (x - 2.6) / 6
    rr = cy**2 + cx**2
    angle = p[0] * np.exp(-rr / 0.1)
    c, s = np.cos(angle), np.sin(angle)
    scale = 1 + p[1] * rr + p[2] * rr**2
    sy = np.clip(2.13 + 4 * (s * cx + c * cy) * scale + p[3] * 0.1, 0.01, 3.98)
    sx = np.clip(2.57 + 4 * (c * cx - s * cy) * scale, 0.01, 4.97)
    return bilinear(image, sy, sx).mean(axis=2)


@program(lambda r: (r.random((6, 6)),))
def seams_carved_from_an_image(image):
    for _ in range(2):
        h, w = image.shape
        energy = np.abs(np.gradient(image, axis=0)) + np.abs(np.gradient(image, axis=1))
        cost = energy.copy()
        back = np.zeros((h, w), dtype=int)
        for i in range(1, h):
            padded = np.pad(cost[i - 1], 1, constant_values=np.inf)
            near = np.stack([padded[:-2], padded[1:-1], padded[2:]])
            back[i] = near.argmin(0) - 1
            cost[i] += near.min(0)
        j = cost[-1].argmin()
        keep = np.ones((h, w), dtype=bool)
        for i in reversed(range(h)):
            keep[i, j] = False
            j += back[i, j]
        image = image[keep].reshape(h, w - 1)
    return image


@program(lambda r: (r.random((4, 6)),))
def channels_pooled_and_upsampled(a):
    mean = a.reshape(2, 2, 3, 2).mean(axis=(1, 3))
    up = np.kron(mean, np.ones((2, 2)))
    nearest = mean.repeat(2, axis=0).repeat(2, axis=1)
    most = a.reshape(2, 2, 3, 2).transpose(0, 2, 1, 3).reshape(2, 3, 4)
    first = most.argmax(-1)
    unpooled = np.zeros((2, 3, 4))
    np.put_along_axis(unpooled, first[..., None], most.max(-1, keepdims=True), -1)
    unpooled = unpooled.reshape(2, 3, 2, 2).swapaxes(1, 2).reshape(4, 6)
    return a - up, nearest, unpooled, np.roll(unpooled, (1, -2), (0, 1)) * a


@program(lambda r: (r.random((6, 7)), r.normal(size=(3, 3))))
def convolved_in_space_and_in_frequency(image, k):
    full = np.zeros((8, 9))
    for i, j in np.ndindex(3, 3):
        full[i : i + 6, j : j + 7] += k[i, j] * image
    f = np.fft.irfft2(np.fft.rfft2(image, s=(8, 9)) * np.fft.rfft2(k, s=(8, 9)), s=(8, 9))
    wiener = np.fft.fft2(image)
    wiener = wiener * np.abs(wiener) ** 2 / (np.abs(wiener) ** 2 + 0.1)
    return full, f - full, np.fft.ifft2(wiener).real, np.fft.fftshift(np.abs(wiener))[2:4, 3]


@program(lambda r: (r.normal(size=(2, 3, 3)), r.normal(size=(2, 3))))
def solved_inverted_and_factored_in_stacks(a, b):
    s = a @ np.swapaxes(a, -1, -2) + 3 * np.eye(3)
    x = np.linalg.solve(s, b[..., None])[..., 0]
    low = np.linalg.cholesky(s)
    sign, log = np.linalg.slogdet(s)
    w, v = np.linalg.eigh(s)
    rebuilt = np.einsum("...ij,...j,...kj->...ik", v, np.sqrt(w), v)
    return x, low, log + np.log(sign), rebuilt, np.linalg.inv(s)[0], np.linalg.matrix_power(a, 3), np.linalg.det(a)


@program(lambda r: (r.normal(size=(3, 5, 2)),))
def stacked_singular_values_and_pseudo_inverse(a):
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    best = u[..., :1] * s[:, None, :1] @ vt[:, :1]
    p = np.linalg.pinv(a)
    q, t = np.linalg.qr(a[0])
    return (
        best,
        p @ a[..., 0][..., None],
        s,
        np.abs(q @ t),
        np.linalg.norm(a, axis=(1, 2)),
        np.linalg.norm(a, ord=1, axis=0),
    )


@program(lambda r: (r.normal(size=(2, 2, 3, 4)), r.normal(size=(4, 3)), r.normal(size=(3, 3))))
def contractions_with_ellipses(t, a, m):
    return (
        np.einsum("...ij,jk->...ik", t, a),
        np.einsum("...ij,ji->...", t, a),
        np.einsum("i...j,...->...ij", t[0], np.ones(3)),
        np.einsum("...ii->...", np.einsum("...ij,jk", t, a) @ m),
        np.einsum("ab...,cb...->ac", t, t[:, ::-1], optimize=True),
        np.tensordot(t, t, axes=[(0, 2), (1, 2)]).sum((0, 2)),
        np.inner(t[0, 0], a.T) - np.vdot(a, t[0, 1].T),
        np.einsum("ij,kl,jl->ik", a, a, m),
    )


@program(lambda r: (r.random((4, 4, 3)), r.normal(size=(3, 3))))
def colours_mixed_and_alpha_blended(image, m):
    rgb = image @ (m + 3 * np.eye(3)).T
    alpha = image.max(axis=-1, keepdims=True)
    over = rgb * alpha + 0.5 * (1 - alpha)
    lo, hi = over.min((0, 1)), over.max((0, 1))
    over -= lo
    over /= hi - lo
    r, g, b = np.moveaxis(over, -1, 0)
    g[::2] = b[::2] ** 2
    order = np.argsort(over.sum(-1), axis=None)
    return over, np.dstack([r, b])[..., ::-1].sum((0, 1)), over.reshape(-1, 3)[order[:3]]


@program(lambda r: (r.random((5, 5)),))
def labels_grown_from_seeds(a):
    label = np.zeros((5, 5), int)
    label[0, 0], label[4, 4] = 1, 2
    cost = np.where(label > 0, 0.0, np.inf)
    for _ in range(8):
        for axis, step in ((0, 1), (0, -1), (1, 1), (1, -1)):
            c, l = np.roll(cost, step, axis), np.roll(label, step, axis)
            edge = [slice(None)] * 2
            edge[axis] = 0 if step == 1 else -1
            c[tuple(edge)] = np.inf
            better = c + a < cost
            cost = np.where(better, c + a, cost)
            label[better] = l[better]
    return cost, label, np.bincount(label.ravel(), weights=a.ravel(), minlength=3)


@program(lambda r: (r.normal(size=(3, 8)),))
def spectra_of_stacked_signals(x):
    f = np.fft.rfft(x * np.hanning(8), axis=-1)
    power = np.abs(f) ** 2
    cross = f[:1] * f[1:].conj()
    delay = np.fft.irfft(cross / (np.abs(cross) + 0.1), 8)
    shifted = np.fft.irfft(f * np.exp(-2j * np.pi * np.fft.rfftfreq(8) * 1.5), n=8)
    both = np.fft.fftn(x, axes=(0,))
    return power.sum(0), delay, shifted, both.real[1], np.fft.hfft(f[0]), np.fft.ihfft(x[1]).imag, np.angle(cross[0, 1])


@program(lambda r: (r.normal(size=(4, 4)), r.normal(size=4)))
def least_squares_and_condition(a, b):
    a = a + 4 * np.eye(4)
    x, residual, rank, s = np.linalg.lstsq(a[:, :2], b, rcond=None)
    return (
        x,
        residual,
        rank,
        s,
        np.linalg.cond(a),
        np.linalg.norm(b, 3),
        np.linalg.norm(a, 2),
        np.linalg.multi_dot([b, a, a, b]),
    )


@program(lambda r: (r.normal(size=(2, 3, 2, 2)),))
def transfer_matrices_chained(t):
    left = np.eye(2)
    for k in range(3):
        left = left @ t[0, k]
        left /= np.linalg.norm(left)
    right = np.linalg.multi_dot(list(t[1]))
    w = t[0, 0]
    for m in t[1:, :, ::-1].reshape(-1, 2, 2):
        w = np.matmul(m.T, w) + m
    return left, right.trace(), w, np.trace(t, axis1=-2, axis2=-1), np.linalg.det(t).prod()


@program(lambda r: (r.random((6, 8)),))
def radon_like_sums(a):
    main = [np.trace(a, offset=k) for k in range(-5, 8)]
    anti = np.array([np.fliplr(a).diagonal(k).sum() for k in range(-2, 3)])
    spin = [np.rot90(a, k)[0, :6].sum() for k in range(4)]
    shear = np.stack([np.roll(row, k) for k, row in enumerate(a)])
    return np.array(main) / 2, anti, spin, shear.sum(0), np.tri(6, 8, 1) * a, np.flipud(a)[1:3].mean()


@program(lambda r: (r.random((3, 4, 5)),))
def volume_reduced_along_every_pair(v):
    s = {pair: v.sum(axis=pair) for pair in ((0, 1), (0, 2), (1, 2))}
    p = np.prod(v, axis=(0, -1), keepdims=True)
    z = (v - v.mean((1, 2), keepdims=True)) / v.std((1, 2), keepdims=True)
    i = np.unravel_index(v.argmax(), v.shape)
    v[i] = 0
    j = np.ravel_multi_index(np.unravel_index([3, 17, 50], (3, 4, 5)), v.shape)
    return s, p, z, v.ravel()[j], v.cumsum(1)[:, -1], v.max((0, 1)), np.apply_over_axes(np.sum, v, [0, 2])


@program(lambda r: (r.normal(size=(4, 3)), r.normal(size=(5, 3))))
def distances_and_soft_assignments(a, b):
    d2 = ((a[:, None] - b[None]) ** 2).sum(-1)
    gram = (a**2).sum(1)[:, None] - 2 * a @ b.T + np.einsum("ij,ij->i", b, b)
    soft = np.exp(-d2 + d2.min(1, keepdims=True))
    soft /= soft.sum(axis=1, keepdims=True)
    near = d2.argmin(1)
    return (
        gram - d2,
        soft @ b,
        np.sqrt(d2)[np.arange(4), near],
        np.bincount(near, minlength=5),
        np.linalg.norm(a - b[near], axis=1),
    )
