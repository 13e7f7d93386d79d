"""A NumPy program as users write it: a type checker finds nothing to say."""

from collections.abc import Sequence

from numpy.typing import ArrayLike, NDArray

import minnp.numpy as np


def standardize(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(axis=0)) / x.std(axis=0, keepdims=True)


def k_means(points: np.ndarray, k: int, steps: int = 10) -> tuple[np.ndarray, np.ndarray]:
    centres = points[:k].copy()
    nearest = np.zeros(len(points), dtype=np.int64)
    for _ in range(steps):
        distance = np.linalg.norm(points[:, None, :] - centres[None, :, :], axis=-1)
        nearest = np.argmin(distance, axis=1)
        for j in range(k):
            if np.any(nearest == j):
                centres[j] = points[nearest == j].mean(axis=0)
    return centres, nearest


def losses(w: np.ndarray, batches: Sequence[np.ndarray]) -> list[float]:
    return [float(np.sum(np.tanh(b @ w) ** 2)) for b in batches]


def from_numpy(x: NDArray[np.float64], y: ArrayLike) -> np.ndarray:
    return np.concatenate([np.asarray(x), np.asarray(y, dtype=np.float64)])


x = np.linspace(0, 1, 5).reshape(5, 1)
mask = (x > 0.5) & ~np.isnan(x)
x[mask] = -1.0
x[0, 0] += 2
total: float = float(x.sum())
shape: tuple[int, ...] = x.shape
print(x.T.astype(np.float32).dtype, np.where(mask, x, 0.0).ndim, total, shape, np.pi, np.float32(3).itemsize)
host = np.exp(x).asnumpy()
host.tofile
np.add(x, 1).wait_to_read()
np.add.reduce(x, axis=0)
print(np.ones((2, 2)).context, x.device, np.random.default_rng(0).normal(size=3).mean(), np.fft.fft(x).shape)
for row in x:
    print(row)
k_means(standardize(np.asarray(np.random.rand(30, 2))), 3)
with np.errstate(divide="ignore"):
    print(1.0 / x, 2**x, -x, abs(x), [1.0] + x, x @ x.T)


def whitened(points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    values, vectors = np.linalg.eigh(np.cov(points.T))
    noise: np.ndarray = rng.normal(0.0, 1e-3, points.shape)
    factor: np.ndarray = np.linalg.qr(points + noise).R
    u, s, vh = np.linalg.svd(factor)
    lone: np.ndarray = np.linalg.svd(factor, compute_uv=False)
    spectrum: np.ndarray = np.fft.rfft(points, axis=0)
    one: float = rng.uniform()
    print(one, lone.device, spectrum.device, u.device, s @ vh, np.linalg.lstsq(points, noise, rcond=None)[0].device)
    return np.linalg.solve(np.diag(values), vectors.T) @ np.linalg.inv(np.eye(2))


rng = np.random.default_rng(0)
whitened(rng.random((5, 2)), rng)
whitened(np.random.randn(5, 2), rng.spawn(1)[0])
state = np.random.RandomState(3)
drawn: np.ndarray = state.choice(5, size=(2, 2), replace=True)
drawn = np.random.normal(size=3)
drawn = np.random.randint(0, 5, 3)
rng.shuffle(drawn)
drawn = state.gamma(2.0, size=4)
records = np.zeros(3, dtype=[("a", "i4")]).view(np.recarray)
print(records.a, drawn.view("i8").device, np.array([object()]), np.genfromtxt("data.txt", dtype=None))
