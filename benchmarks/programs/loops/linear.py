"""Products, factorisations and solvers: linear algebra whose bounds move from one iteration to the next."""

import numpy as np


def mm2(alpha, beta, A, B, C, D):
    D *= beta
    D += alpha * A @ B @ C
    return D


def mm3(A, B, C, D):
    return (A @ B) @ (C @ D)


def gemm(alpha, beta, A, B, C):
    C *= beta
    C += alpha * A @ B
    return C


def gemver(alpha, beta, A, u, v, r, s, y, z, x, w):
    A += np.outer(u, v) + np.outer(r, s)
    x += beta * (y @ A) + z
    w += alpha * (A @ x)
    return A, x, w


def gesummv(alpha, beta, A, B, x):
    return alpha * (A @ x) + beta * (B @ x)


def symm(alpha, beta, A, B, C):
    """Only the lower triangle of A is read."""
    rows, columns = C.shape
    for i in range(rows):
        for j in range(columns):
            above = 0.0
            for k in range(i):
                C[k, j] += alpha * B[i, j] * A[i, k]
                above += B[k, j] * A[i, k]
            C[i, j] = beta * C[i, j] + alpha * B[i, j] * A[i, i] + alpha * above
    return C


def syrk(alpha, beta, A, C):
    for i in range(len(C)):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += alpha * A[i, k] * A[: i + 1, k]
    return C


def syr2k(alpha, beta, A, B, C):
    for i in range(len(C)):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += alpha * (B[i, k] * A[: i + 1, k] + A[i, k] * B[: i + 1, k])
    return C


def trmm(alpha, A, B):
    """The diagonal of the lower triangle A counts as ones."""
    rows, columns = B.shape
    for i in range(rows):
        for j in range(columns):
            B[i, j] += np.dot(A[i + 1 :, i], B[i + 1 :, j])
    B *= alpha
    return B


def atax(A, x):
    return (A @ x) @ A


def bicg(A, p, r):
    return r @ A, A @ p


def mvt(A, x, y, p, q):
    x += A @ p
    y += q @ A
    return x, y


def doitgen(A, C):
    for r in range(A.shape[0]):
        for q in range(A.shape[1]):
            A[r, q, :] = A[r, q, :] @ C
    return A


def trisolv(L, b):
    x = np.zeros_like(b)
    for i in range(len(b)):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]
    return x


def cholesky(A):
    for i in range(len(A)):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[j, :j]
            A[i, j] /= A[j, j]
        A[i, i] = np.sqrt(A[i, i] - A[i, :i] @ A[i, :i])
    return A


def lu(A):
    n = len(A)
    for i in range(n):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, n):
            A[i, j] -= A[i, :i] @ A[:i, j]
    return A


def ludcmp(A, b):
    n = len(b)
    for i in range(n):
        for j in range(n):
            m = min(i, j)
            s = A[i, j]
            for k in range(m):
                s -= A[i, k] * A[k, j]
            if j < i:
                s /= A[j, j]
            A[i, j] = s
    y = np.zeros(n)
    for i in range(n):
        y[i] = b[i] - A[i, :i] @ y[:i]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (y[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x


def durbin(r):
    n = len(r)
    y = np.zeros(n)
    y[0] = -r[0]
    alpha, beta = -r[0], 1.0
    for k in range(1, n):
        beta *= 1 - alpha * alpha
        alpha = -(r[k] + r[:k][::-1] @ y[:k]) / beta
        y[:k] += alpha * y[:k][::-1]
        y[k] = alpha
    return y


def gramschmidt(A):
    m, n = A.shape
    Q, R = np.zeros((m, n)), np.zeros((n, n))
    for k in range(n):
        R[k, k] = np.sqrt(A[:, k] @ A[:, k])
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, n):
            R[k, j] = Q[:, k] @ A[:, j]
            A[:, j] -= Q[:, k] * R[k, j]
    return Q, R


def covariance(data):
    n, m = data.shape
    data -= data.sum(axis=0) / n
    result = np.zeros((m, m))
    for i in range(m):
        result[i, i:] = data[:, i] @ data[:, i:] / (n - 1)
        result[i:, i] = result[i, i:]
    return result


def correlation(data):
    n, m = data.shape
    data -= data.sum(axis=0) / n
    deviation = np.sqrt((data * data).sum(axis=0) / n)
    deviation[deviation <= 0.1] = 1.0
    data /= np.sqrt(n) * deviation
    result = np.eye(m)
    for i in range(m - 1):
        result[i, i + 1 :] = data[:, i] @ data[:, i + 1 :]
        result[i + 1 :, i] = result[i, i + 1 :]
    return result


def spmv(start, column, value, x):
    y = np.zeros(len(start) - 1)
    for i in range(len(y)):
        here = slice(start[i], start[i + 1])
        y[i] = value[here] @ x[column[here]]
    return y


def spmv_scalars(start, column, value, x):
    y = np.zeros(len(start) - 1)
    for i in range(len(y)):
        total = 0.0
        for k in range(start[i], start[i + 1]):
            total += value[k] * x[column[k]]
        y[i] = total
    return y


def contour_integral(coefficients, Y, centre, radius, points):
    """The first two moments of the inverse of a matrix polynomial on a circle."""
    P0, P1 = np.zeros_like(Y), np.zeros_like(Y)
    for k in range(points):
        step = radius * np.exp(2j * np.pi * (k + 0.5) / points)
        z = centre + step
        T = np.zeros_like(coefficients[0])
        for c in coefficients[::-1]:
            T = T * z + c
        X = np.linalg.solve(T, Y) * (step / points)
        P0 += X
        P1 += z * X
    return P0, P1


def go_fast(a):
    trace = 0.0
    for i in range(a.shape[0]):
        trace += np.tanh(a[i, i])
    return a + trace
