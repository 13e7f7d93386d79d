"""Linear algebra by hand: factorisations with pivots, eliminations in place, iterations, rotations, blocks."""

import numpy as np

from tests.adversarial.program import program


def well(r, n):
    return r.normal(size=(n, n)) + n * np.eye(n)


def positive(r, n):
    a = r.normal(size=(n, n))
    return a @ a.T + np.eye(n)


@program(lambda r: (r.normal(size=(4, 4)), r.normal(size=4)))
def lu_with_pivoting(a, b):
    n = len(a)
    p = np.arange(n)
    for k in range(n - 1):
        m = k + np.argmax(np.abs(a[k:, k]))
        if m != k:
            a[[k, m]] = a[[m, k]]
            p[[k, m]] = p[[m, k]]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    x = b[p]
    for i in range(n):
        x[i] -= a[i, :i] @ x[:i]
    for i in range(n - 1, -1, -1):
        x[i] = (x[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x, a, p


@program(lambda r: (positive(r, 4),))
def cholesky_by_columns(a):
    n = a.shape[0]
    low = np.zeros_like(a)
    for j in range(n):
        low[j, j] = np.sqrt(a[j, j] - low[j, :j] @ low[j, :j])
        low[j + 1 :, j] = (a[j + 1 :, j] - low[j + 1 :, :j] @ low[j, :j]) / low[j, j]
    return low, 2 * np.log(np.diagonal(low)).sum()


@program(lambda r: (positive(r, 4),))
def cholesky_in_place(a):
    for k in range(len(a)):
        a[k, k] **= 0.5
        a[k + 1 :, k] /= a[k, k]
        for j in range(k + 1, len(a)):
            a[j:, j] -= a[j:, k] * a[j, k]
    return np.tril(a)


@program(lambda r: (r.normal(size=(5, 3)),))
def householder(a):
    m, n = a.shape
    q, r = np.eye(m), a.copy()
    for k in range(n):
        x = r[k:, k].copy()
        x[0] += np.copysign(np.linalg.norm(x), x[0])
        x /= np.sqrt(x @ x)
        r[k:, k:] -= 2 * np.outer(x, x @ r[k:, k:])
        q[:, k:] -= 2 * np.outer(q[:, k:] @ x, x)
    return q, r, np.allclose(q @ r, a)


@program(lambda r: (r.normal(size=(4, 4)),))
def givens(a):
    q = np.eye(len(a))
    for j in range(a.shape[1] - 1):
        for i in range(len(a) - 1, j, -1):
            c, s = a[[i - 1, i], [j, j]] / np.hypot(a[i - 1, j], a[i, j])
            g = np.array([[c, s], [-s, c]])
            a[i - 1 : i + 1] = g @ a[i - 1 : i + 1]
            q[i - 1 : i + 1] = g @ q[i - 1 : i + 1]
    return a, q.T


@program(lambda r: (r.normal(size=(5, 4)),))
def modified_gram_schmidt(a):
    q, norms = a.copy(), []
    for j in range(q.shape[1]):
        for i in range(j):
            q[:, j] -= (q[:, i] @ q[:, j]) * q[:, i]
        norms.append(np.linalg.norm(q[:, j]))
        q[:, j] /= norms[-1]
    return q, np.prod(norms)


@program(lambda r: (positive(r, 4), r.normal(size=4)))
def power_iteration(a, v):
    for _ in range(25):
        w = a @ v
        v = w / np.linalg.norm(w)
    return v @ a @ v, v


@program(lambda r: (positive(r, 5), r.normal(size=5)))
def conjugate_gradients(a, b):
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rs = r @ r
    for _ in range(3):
        ap = a @ p
        alpha = rs / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        if np.sqrt(new) < 1e-10:
            break
        p *= new / rs
        p += r
        rs = new
    return x, r


@program(lambda r: (well(r, 4), r.normal(size=4)))
def gauss_seidel(a, b):
    x = np.zeros(4)
    for _ in range(12):
        for i in range(4):
            x[i] = (b[i] - a[i, :i] @ x[:i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


@program(lambda r: (r.normal(size=(5, 6)), r.uniform(1.1, 1.5)))
def over_relaxation_red_black(f, omega):
    u = np.zeros((7, 8))
    i, j = np.ogrid[1:6, 1:7]
    for sweep in range(8):
        colour = (i + j) % 2 == sweep % 2
        near = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        inner = u[1:-1, 1:-1]
        inner[colour] += omega * ((near + f) / 4 - inner)[colour]
    return u


@program(lambda r: (r.uniform(3, 4, 6), r.normal(size=5), r.normal(size=5), r.normal(size=6)))
def thomas(diagonal, lower, upper, rhs):
    c, d = np.empty(5), np.empty(6)
    c[0] = upper[0] / diagonal[0]
    d[0] = rhs[0] / diagonal[0]
    for i in range(1, 6):
        m = diagonal[i] - lower[i - 1] * c[i - 1]
        if i < 5:
            c[i] = upper[i] / m
        d[i] = (rhs[i] - lower[i - 1] * d[i - 1]) / m
    for i in range(4, -1, -1):
        d[i] -= c[i] * d[i + 1]
    return d


@program(lambda r: (positive(r, 3),))
def jacobi_eigenvalues(a):
    v = np.identity(3)
    for _ in range(4):
        for p, q in [(0, 1), (0, 2), (1, 2)]:
            theta = 0.5 * np.arctan2(2 * a[p, q], a[q, q] - a[p, p])
            c, s = np.cos(theta), np.sin(theta)
            rot = np.eye(3)
            rot[p, p] = rot[q, q] = c
            rot[p, q], rot[q, p] = s, -s
            a = rot.T @ a @ rot
            v = v @ rot
    return np.sort(np.diag(a)), np.abs(v).sum(0)


@program(lambda r: (positive(r, 5), r.normal(size=(5, 2))))
def schur_complement(m, y):
    a, b, d = m[:2, :2], m[:2, 2:], m[2:, 2:]
    s = a - b @ np.linalg.solve(d, b.T)
    top = np.linalg.solve(s, y[:2] - b @ np.linalg.solve(d, y[2:]))
    low = np.linalg.solve(d, y[2:] - b.T @ top)
    return np.concatenate([top, low]), np.linalg.slogdet(s)[1] + np.linalg.slogdet(d)[1]


@program(lambda r: (r.normal(size=(3, 5)),))
def null_space_by_elimination(a):
    a = a.copy()
    pivots = []
    for i in range(3):
        j = int(np.argmax(np.abs(a[i])))
        pivots.append(j)
        a[i] /= a[i, j]
        others = np.arange(3) != i
        a[others] -= np.outer(a[others, j], a[i])
    free = np.setdiff1d(np.arange(5), pivots)
    basis = np.zeros((5, 2))
    basis[free, np.arange(2)] = 1
    basis[pivots] = -a[:, free]
    return basis, free


@program(lambda r: (r.normal(size=(2, 3)), r.normal(size=(3, 2)), r.normal(size=(3, 3))))
def kronecker_identity(a, b, x):
    k = np.kron(b.T, a)
    return k @ x.T.ravel() - (a @ x @ b).ravel(order="F"), k.trace(), np.kron(a, np.eye(2))[::2, 1::2]


@program(lambda r: (well(r, 3),))
def inverse_by_newton_schulz(a):
    x = a.T / (np.abs(a).sum(0).max() * np.abs(a).sum(1).max())
    for _ in range(10):
        x = x @ (2 * np.eye(3) - a @ x)
    return x


@program(lambda r: (well(r, 4),))
def gauss_jordan(a):
    w = np.hstack([a, np.eye(4)])
    for i in range(4):
        w[i] /= w[i, i]
        for j in range(4):
            if j != i:
                w[j] -= w[j, i] * w[i]
    return w[:, 4:]


@program(lambda r: (r.normal(size=(4, 4)),))
def determinant_by_minors(a):
    def det(m):
        if m.shape == (1, 1):
            return m[0, 0]
        return sum((-1) ** j * m[0, j] * det(np.delete(m[1:], j, axis=1)) for j in range(m.shape[1]))

    return det(a), det(a[1:, 1:]) * det(a[:1, :1])


@program(lambda r: (r.normal(size=(3, 3)),))
def characteristic_polynomial(a):
    c = np.zeros(4)
    c[0] = 1
    m = np.zeros_like(a)
    for k in range(1, 4):
        m = a @ m + c[k - 1] * np.eye(3)
        c[k] = -np.trace(a @ m) / k
    return c, -m / c[-1] if abs(c[-1]) > 1e-3 else m


@program(lambda r: (r.normal(size=(4, 4)) / 4,))
def exponential_by_squaring(a):
    b = a / 8
    e = np.eye(4) + b @ (np.eye(4) + b @ (np.eye(4) + b / 3) / 2)
    for _ in range(3):
        e = e @ e
    return e


@program(lambda r: (positive(r, 4), r.normal(size=4)))
def lanczos(a, start):
    q = np.zeros((4, 4))
    alpha, beta = np.zeros(3), np.zeros(4)
    q[1] = start / np.sqrt((start**2).sum())
    for k in range(1, 4):
        w = a @ q[k] - beta[k - 1] * q[k - 1]
        alpha[k - 1] = w @ q[k]
        w -= alpha[k - 1] * q[k]
        if k < 3:
            beta[k] = np.linalg.norm(w)
            q[k + 1] = w / beta[k]
    return np.diag(alpha) + np.diag(beta[1:3], 1) + np.diag(beta[1:3], -1)


@program(lambda r: (r.normal(size=(4, 4)),))
def hessenberg(a):
    for k in range(2):
        x = a[k + 1 :, k].copy()
        x[0] += np.sign(x[0]) * np.sqrt(x @ x)
        u = (x / np.sqrt(x.dot(x)))[:, None]
        a[k + 1 :, k:] -= 2 * u @ (u.T @ a[k + 1 :, k:])
        a[:, k + 1 :] -= 2 * (a[:, k + 1 :] @ u) @ u.T
    return np.triu(a, -1)


@program(lambda r: (r.normal(size=(6, 3)), r.normal(size=6), 0.1))
def ridge_through_augmented_rows(x, y, lam):
    big = np.r_[x, np.sqrt(lam) * np.eye(3)]
    rhs = np.r_[y, np.zeros(3)]
    w, *_ = np.linalg.lstsq(big, rhs, rcond=None)
    return w, np.linalg.norm(x @ w - y)


@program(lambda r: (well(r, 4), r.normal(size=4), r.normal(size=4), r.normal(size=4)))
def sherman_morrison(a, u, v, b):
    inverse = np.linalg.inv(a)
    inverse -= np.outer(inverse @ u, v @ inverse) / (1 + v @ inverse @ u)
    return inverse @ b - np.linalg.solve(a + u[:, None] * v, b), inverse


@program(lambda r: (r.normal(size=(4, 3)),))
def polar_by_averaging(a):
    x = a[:3] + 3 * np.eye(3)
    for _ in range(6):
        x = 0.5 * (x + np.linalg.inv(x).T)
    return x, x.T @ x


@program(lambda r: (r.normal(size=5), r.normal(size=5)))
def toeplitz_by_index(c, v):
    k = np.arange(5)
    t = c[np.abs(k[:, None] - k)]
    t[np.diag_indices(5)] += 4
    return np.linalg.solve(t, v), t.flat[::6].sum()


@program(lambda r: (positive(r, 4), r.normal(size=4)))
def rank_one_update_of_a_factor(a, x):
    low = np.linalg.cholesky(a)
    for k in range(4):
        rr = np.hypot(low[k, k], x[k])
        c, s = rr / low[k, k], x[k] / low[k, k]
        low[k, k] = rr
        low[k + 1 :, k] = (low[k + 1 :, k] + s * x[k + 1 :]) / c
        x[k + 1 :] = c * x[k + 1 :] - s * low[k + 1 :, k]
    return low


@program(lambda r: (r.normal(size=(3, 4, 4)), r.normal(size=(3, 4))))
def batched_solves_with_one_slogdet(a, b):
    a = a + 4 * np.eye(4)
    x = np.linalg.solve(a, b[..., None])[..., 0]
    sign, logdet = np.linalg.slogdet(a.swapaxes(-1, -2))
    return x, sign, logdet, np.einsum("bij,bj->bi", a, x) - b
