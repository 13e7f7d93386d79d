"""Programs with loops, as a NumPy user writes them, from their mathematics. `np` is set by whoever loads this file.

Each has make_NAME(n): its arguments, from the seed. Sizes: SIZES[name] = (small, large).
"""

import math

np = None
SIZES = {}


def sizes(small, large):
    def note(f):
        SIZES[f.__name__] = (small, large)
        return f

    return note


def _random(*shape):
    return np.random.default_rng(1).random(shape)


# ------------------------------------------------------------------ linear algebra
@sizes(40, 160)
def gemm(alpha, beta, C, A, B):
    C[:] = alpha * A @ B + beta * C
    return C


def make_gemm(n):
    return 1.5, 1.2, _random(n, n), _random(n, n), _random(n, n)


@sizes(40, 160)
def cholesky(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[j, :j]
            A[i, j] /= A[j, j]
        A[i, i] -= A[i, :i] @ A[i, :i]
        A[i, i] = np.sqrt(A[i, i])
    return A


def make_cholesky(n):
    a = _random(n, n)
    return (a @ a.T + n * np.eye(n),)


@sizes(30, 120)
def cholesky_scalar(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
            A[i, j] /= A[j, j]
        for k in range(i):
            A[i, i] -= A[i, k] * A[i, k]
        A[i, i] = np.sqrt(A[i, i])
    return A


make_cholesky_scalar = make_cholesky


@sizes(40, 160)
def lu(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, n):
            A[i, j] -= A[i, :i] @ A[:i, j]
    return A


make_lu = make_cholesky


@sizes(40, 160)
def ludcmp(A, b):
    n = A.shape[0]
    x = np.zeros(n)
    y = np.zeros(n)
    for i in range(n):
        for j in range(i):
            w = A[i, j] - A[i, :j] @ A[:j, j]
            A[i, j] = w / A[j, j]
        for j in range(i, n):
            A[i, j] -= A[i, :i] @ A[:i, j]
    for i in range(n):
        y[i] = b[i] - A[i, :i] @ y[:i]
    for i in range(n - 1, -1, -1):
        x[i] = (y[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x


def make_ludcmp(n):
    return *make_cholesky(n), _random(n)


@sizes(200, 1000)
def trisolv(L, x, b):
    for i in range(x.shape[0]):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]
    return x


def make_trisolv(n):
    return _random(n, n) + n * np.eye(n), np.zeros(n), _random(n)


@sizes(30, 120)
def trmm(alpha, A, B):
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            B[i, j] += A[i + 1 :, i] @ B[i + 1 :, j]
    B *= alpha
    return B


def make_trmm(n):
    return 1.5, _random(n, n), _random(n, n)


@sizes(40, 160)
def syrk(alpha, beta, C, A):
    for i in range(A.shape[0]):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += alpha * A[i, k] * A[: i + 1, k]
    return C


def make_syrk(n):
    return 1.5, 1.2, _random(n, n), _random(n, n)


@sizes(40, 120)
def syr2k(alpha, beta, C, A, B):
    for i in range(A.shape[0]):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += A[: i + 1, k] * alpha * B[i, k] + B[: i + 1, k] * alpha * A[i, k]
    return C


def make_syr2k(n):
    return 1.5, 1.2, _random(n, n), _random(n, n), _random(n, n)


@sizes(30, 120)
def symm(alpha, beta, C, A, B):
    temp2 = np.empty(C.shape[1])
    C *= beta
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            C[:i, j] += alpha * B[i, j] * A[i, :i]
            temp2[j] = B[:i, j] @ A[i, :i]
        C[i, :] += alpha * B[i, :] * A[i, i] + alpha * temp2
    return C


make_symm = make_syr2k


@sizes(30, 100)
def gramschmidt(A):
    n = A.shape[1]
    Q = np.zeros_like(A)
    R = np.zeros((n, n))
    for k in range(n):
        nrm = np.dot(A[:, k], A[:, k])
        R[k, k] = np.sqrt(nrm)
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, n):
            R[k, j] = np.dot(Q[:, k], A[:, j])
            A[:, j] -= Q[:, k] * R[k, j]
    return Q, R


def make_gramschmidt(n):
    return (_random(n + n // 2, n) + 0.1,)


@sizes(100, 400)
def durbin(r):
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def make_durbin(n):
    return (_random(n) / n,)


@sizes(30, 100)
def covariance(data):
    m = data.shape[1]
    mean = np.mean(data, axis=0)
    data -= mean
    cov = np.zeros((m, m))
    for i in range(m):
        cov[i:m, i] = data[:, i] @ data[:, i:m] / (data.shape[0] - 1.0)
        cov[i, i:m] = cov[i:m, i]
    return cov


def make_covariance(n):
    return (_random(2 * n, n),)


@sizes(20, 40)
def doitgen(A, C4):
    for r in range(A.shape[0]):
        for q in range(A.shape[1]):
            A[r, q, :] = A[r, q, :] @ C4
    return A


def make_doitgen(n):
    return _random(n, n, n), _random(n, n)


# ------------------------------------------------------------------ stencils
@sizes(40, 120)
def seidel(T, A):
    n = A.shape[0]
    for _ in range(T):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                A[i, j] = (
                    A[i - 1, j - 1]
                    + A[i - 1, j]
                    + A[i - 1, j + 1]
                    + A[i, j - 1]
                    + A[i, j]
                    + A[i, j + 1]
                    + A[i + 1, j - 1]
                    + A[i + 1, j]
                    + A[i + 1, j + 1]
                ) / 9.0
    return A


def make_seidel(n):
    return 5, _random(n, n)


@sizes(40, 120)
def seidel_rows(T, A):
    n = A.shape[0]
    for _ in range(T):
        for i in range(1, n - 1):
            A[i, 1:-1] += (
                A[i - 1, :-2] + A[i - 1, 1:-1] + A[i - 1, 2:] + A[i, 2:] + A[i + 1, :-2] + A[i + 1, 1:-1] + A[i + 1, 2:]
            )
            for j in range(1, n - 1):
                A[i, j] += A[i, j - 1]
                A[i, j] /= 9.0
    return A


make_seidel_rows = make_seidel


@sizes(400, 4000)
def jacobi_1d(T, A, B):
    for _ in range(1, T):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])
    return A


def make_jacobi_1d(n):
    return 200, _random(n), _random(n)


@sizes(40, 150)
def jacobi_2d(T, A, B):
    for _ in range(1, T):
        B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
        A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])
    return A


def make_jacobi_2d(n):
    return 100, _random(n, n), _random(n, n)


@sizes(40, 150)
def fdtd(T, ex, ey, hz, fict):
    for t in range(T):
        ey[0, :] = fict[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return hz


def make_fdtd(n):
    return 60, _random(n, n), _random(n, n), _random(n, n), _random(60)


@sizes(40, 100)
def adi(T, u):
    n = u.shape[0]
    v = np.zeros((n, n))
    p = np.zeros((n, n))
    q = np.zeros((n, n))
    dx = 1.0 / n
    dt = 1.0 / T
    mul1 = 2.0 * dt / (dx * dx)
    mul2 = 1.0 * dt / (dx * dx)
    a = -mul1 / 2.0
    b = 1.0 + mul1
    c = a
    d = -mul2 / 2.0
    e = 1.0 + mul2
    f = d
    for _ in range(1, T + 1):
        v[0, 1 : n - 1] = 1.0
        p[1 : n - 1, 0] = 0.0
        q[1 : n - 1, 0] = v[0, 1 : n - 1]
        for j in range(1, n - 1):
            p[1 : n - 1, j] = -c / (a * p[1 : n - 1, j - 1] + b)
            q[1 : n - 1, j] = (
                -d * u[j, 0 : n - 2] + (1.0 + 2.0 * d) * u[j, 1 : n - 1] - f * u[j, 2:n] - a * q[1 : n - 1, j - 1]
            ) / (a * p[1 : n - 1, j - 1] + b)
        v[n - 1, 1 : n - 1] = 1.0
        for j in range(n - 2, 0, -1):
            v[j, 1 : n - 1] = p[1 : n - 1, j] * v[j + 1, 1 : n - 1] + q[1 : n - 1, j]
        u[1 : n - 1, 0] = 1.0
        p[1 : n - 1, 0] = 0.0
        q[1 : n - 1, 0] = u[1 : n - 1, 0]
        for j in range(1, n - 1):
            p[1 : n - 1, j] = -f / (d * p[1 : n - 1, j - 1] + e)
            q[1 : n - 1, j] = (
                -a * v[0 : n - 2, j] + (1.0 + 2.0 * a) * v[1 : n - 1, j] - c * v[2:n, j] - d * q[1 : n - 1, j - 1]
            ) / (d * p[1 : n - 1, j - 1] + e)
        u[1 : n - 1, n - 1] = 1.0
        for j in range(n - 2, 0, -1):
            u[1 : n - 1, j] = p[1 : n - 1, j] * u[1 : n - 1, j + 1] + q[1 : n - 1, j]
    return u


def make_adi(n):
    return 10, _random(n, n)


@sizes(64, 256)
def deriche(alpha, x):
    k = (1.0 - np.exp(-alpha)) * (1.0 - np.exp(-alpha)) / (1.0 + alpha * np.exp(-alpha) - np.exp(2.0 * alpha))
    a1 = k
    a2 = k * np.exp(-alpha) * (alpha - 1.0)
    a3 = k * np.exp(-alpha) * (alpha + 1.0)
    a4 = -k * np.exp(-2.0 * alpha)
    b1 = 2.0 ** (-alpha)
    b2 = -np.exp(-2.0 * alpha)
    y1 = np.empty_like(x)
    y2 = np.empty_like(x)
    y1[:, 0] = a1 * x[:, 0]
    y1[:, 1] = a1 * x[:, 1] + a2 * x[:, 0] + b1 * y1[:, 0]
    for j in range(2, x.shape[1]):
        y1[:, j] = a1 * x[:, j] + a2 * x[:, j - 1] + b1 * y1[:, j - 1] + b2 * y1[:, j - 2]
    y2[:, -1] = 0.0
    y2[:, -2] = a3 * x[:, -1]
    for j in range(x.shape[1] - 3, -1, -1):
        y2[:, j] = a3 * x[:, j + 1] + a4 * x[:, j + 2] + b1 * y2[:, j + 1] + b2 * y2[:, j + 2]
    return y1 + y2


def make_deriche(n):
    return 0.25, _random(n, n)


@sizes(10, 24)
def vadv(utens, wcon, u):
    ni, nj, nk = u.shape
    ccol = np.zeros((ni, nj, nk))
    dcol = np.zeros((ni, nj, nk))
    for k in range(1, nk - 1):
        gav = -0.25 * wcon[:, :, k]
        gcv = 0.25 * wcon[:, :, k + 1]
        bs = gav * 0.7
        cs = gcv * 0.7
        acol = gav * 0.3
        ccol[:, :, k] = gcv * 0.3
        bcol = 2.0 - acol - ccol[:, :, k]
        correction = -bs * (u[:, :, k - 1] - u[:, :, k]) - cs * (u[:, :, k + 1] - u[:, :, k])
        dcol[:, :, k] = 2.0 * u[:, :, k] + utens[:, :, k] + correction
        divided = 1.0 / (bcol - ccol[:, :, k - 1] * acol)
        ccol[:, :, k] = ccol[:, :, k] * divided
        dcol[:, :, k] = (dcol[:, :, k] - dcol[:, :, k - 1] * acol) * divided
    for k in range(nk - 3, -1, -1):
        dcol[:, :, k] = dcol[:, :, k] - ccol[:, :, k] * dcol[:, :, k + 1]
    return dcol


def make_vadv(n):
    return _random(n, n, 40), _random(n, n, 40), _random(n, n, 40)


@sizes(20, 60)
def cavity(T, u, v, p):
    n = u.shape[0]
    dx = 2.0 / (n - 1)
    dt, rho, nu = 0.001, 1.0, 0.1
    for _ in range(T):
        un = u.copy()
        vn = v.copy()
        ux = (un[1:-1, 2:] - un[1:-1, :-2]) / (2 * dx)
        vy = (vn[2:, 1:-1] - vn[:-2, 1:-1]) / (2 * dx)
        b = rho * ((ux + vy) / dt - ux**2 - vy**2)
        for _ in range(10):
            pn = p.copy()
            p[1:-1, 1:-1] = ((pn[1:-1, 2:] + pn[1:-1, :-2] + pn[2:, 1:-1] + pn[:-2, 1:-1]) * dx**2 - dx**4 * b) / (
                4 * dx**2
            )
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, :-2])
            - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, :-2])
            + nu * dt / dx**2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, :-2])
        )
        v[1:-1, 1:-1] = (
            vn[1:-1, 1:-1]
            - vn[1:-1, 1:-1] * dt / dx * (vn[1:-1, 1:-1] - vn[:-2, 1:-1])
            - dt / (2 * rho * dx) * (p[2:, 1:-1] - p[:-2, 1:-1])
            + nu * dt / dx**2 * (vn[2:, 1:-1] - 2 * vn[1:-1, 1:-1] + vn[:-2, 1:-1])
        )
        u[-1, :] = 1
    return u


def make_cavity(n):
    return 20, np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))


# ------------------------------------------------------------------ dynamic programmes, graphs, texts
@sizes(40, 150)
def floyd_warshall(path):
    for k in range(path.shape[0]):
        path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))
    return path


def make_floyd_warshall(n):
    return ((np.random.default_rng(1).random((n, n)) * 100).astype(np.int64),)


@sizes(30, 100)
def floyd_warshall_scalar(path):
    n = path.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if path[i, k] + path[k, j] < path[i, j]:
                    path[i, j] = path[i, k] + path[k, j]
    return path


make_floyd_warshall_scalar = make_floyd_warshall


def match(b1, b2):
    if b1 + b2 == 3:
        return 1
    else:
        return 0


@sizes(40, 150)
def nussinov(seq):
    n = seq.shape[0]
    table = np.zeros((n, n), np.int64)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            if j - 1 >= 0:
                table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < n:
                table[i, j] = max(table[i, j], table[i + 1, j])
            if j - 1 >= 0 and i + 1 < n:
                if i < j - 1:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1] + match(seq[i], seq[j]))
                else:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


def make_nussinov(n):
    return (np.random.default_rng(1).integers(0, 4, n),)


@sizes(60, 300)
def smith_waterman(a, b):
    n, m = a.shape[0], b.shape[0]
    H = np.zeros((n + 1, m + 1))
    best = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            s = 2.0 if a[i - 1] == b[j - 1] else -1.0
            H[i, j] = max(0.0, H[i - 1, j - 1] + s, H[i - 1, j] - 1.0, H[i, j - 1] - 1.0)
            if H[i, j] > best:
                best = H[i, j]
    return H, best


def make_smith_waterman(n):
    rng = np.random.default_rng(1)
    return rng.integers(0, 4, n), rng.integers(0, 4, n)


@sizes(60, 300)
def viterbi(logp, trans, emit, obs):
    T, S = obs.shape[0], logp.shape[0]
    V = np.zeros((T, S))
    back = np.zeros((T, S), np.int64)
    for s in range(S):
        V[0, s] = logp[s] + emit[s, obs[0]]
    for t in range(1, T):
        for s in range(S):
            best = -1e300
            arg = 0
            for r in range(S):
                w = V[t - 1, r] + trans[r, s]
                if w > best:
                    best = w
                    arg = r
            V[t, s] = best + emit[s, obs[t]]
            back[t, s] = arg
    path = np.zeros(T, np.int64)
    path[T - 1] = np.argmax(V[T - 1])
    for t in range(T - 2, -1, -1):
        path[t] = back[t + 1, path[t + 1]]
    return path


def make_viterbi(n):
    rng = np.random.default_rng(1)
    return np.log(rng.random(12)), np.log(rng.random((12, 12))), np.log(rng.random((12, 5))), rng.integers(0, 5, n)


@sizes(1000, 20000)
def crc16(data, poly):
    crc = 0xFFFF
    for b in data:
        cur_byte = 0xFF & b
        for _ in range(8):
            if (crc & 0x0001) ^ (cur_byte & 0x0001):
                crc = (crc >> 1) ^ poly
            else:
                crc >>= 1
            cur_byte >>= 1
    crc = ~crc & 0xFFFF
    crc = (crc << 8) | ((crc >> 8) & 0xFF)
    return crc & 0xFFFF


def make_crc16(n):
    return np.random.default_rng(1).integers(0, 256, n), 0x8408


@sizes(400, 4000)
def spmv(rows, cols, vals, x):
    y = np.empty(rows.size - 1, vals.dtype)
    for i in range(rows.size - 1):
        c = cols[rows[i] : rows[i + 1]]
        v = vals[rows[i] : rows[i + 1]]
        y[i] = v @ x[c]
    return y


def make_spmv(n):
    rng = np.random.default_rng(1)
    each = 8
    return np.arange(0, each * n + 1, each), rng.integers(0, n, each * n), rng.random(each * n), rng.random(n)


@sizes(400, 4000)
def spmv_scalar(rows, cols, vals, x):
    y = np.zeros(rows.size - 1)
    for i in range(rows.size - 1):
        s = 0.0
        for k in range(rows[i], rows[i + 1]):
            s += vals[k] * x[cols[k]]
        y[i] = s
    return y


make_spmv_scalar = make_spmv


@sizes(2000, 50000)
def sieve(n):
    is_prime = np.ones(n + 1, np.bool_)
    is_prime[0] = False
    is_prime[1] = False
    i = 2
    while i * i <= n:
        if is_prime[i]:
            for j in range(i * i, n + 1, i):
                is_prime[j] = False
        i += 1
    return is_prime


def make_sieve(n):
    return (n,)


@sizes(500, 10000)
def quicksort(a):
    stack = np.empty(2 * a.shape[0] + 2, np.int64)
    stack[0] = 0
    stack[1] = a.shape[0] - 1
    top = 2
    while top > 0:
        top -= 2
        lo = stack[top]
        hi = stack[top + 1]
        if lo >= hi:
            continue
        pivot = a[(lo + hi) // 2]
        i = lo
        j = hi
        while i <= j:
            while a[i] < pivot:
                i += 1
            while a[j] > pivot:
                j -= 1
            if i <= j:
                a[i], a[j] = a[j], a[i]
                i += 1
                j -= 1
        stack[top] = lo
        stack[top + 1] = j
        stack[top + 2] = i
        stack[top + 3] = hi
        top += 4
    return a


def make_quicksort(n):
    return (_random(n),)


def find(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@sizes(500, 10000)
def union_find(n, edges):
    parent = np.arange(n)
    count = n
    for k in range(edges.shape[0]):
        a = find(parent, edges[k, 0])
        b = find(parent, edges[k, 1])
        if a != b:
            parent[a] = b
            count -= 1
    return count


def make_union_find(n):
    return n, np.random.default_rng(1).integers(0, n, (n, 2))


@sizes(40, 150)
def game_of_life(T, grid):
    n, m = grid.shape
    for _ in range(T):
        new = np.zeros_like(grid)
        for i in range(n):
            for j in range(m):
                count = 0
                for di in (-1, 0, 1):
                    for dj in (-1, 0, 1):
                        if di != 0 or dj != 0:
                            count += grid[(i + di) % n, (j + dj) % m]
                if count == 3 or (count == 2 and grid[i, j] == 1):
                    new[i, j] = 1
        grid[:] = new
    return grid


def make_game_of_life(n):
    return 3, np.random.default_rng(1).integers(0, 2, (n, n))


# ------------------------------------------------------------------ physics, statistics
@sizes(60, 300)
def mandelbrot(n, maxiter):
    out = np.zeros((n, n), np.int64)
    for i in range(n):
        for j in range(n):
            c = complex(-2.0 + 3.0 * j / n, -1.5 + 3.0 * i / n)
            z = 0j
            for k in range(maxiter):
                z = z * z + c
                if z.real * z.real + z.imag * z.imag > 4.0:
                    out[i, j] = k
                    break
    return out


def make_mandelbrot(n):
    return n, 30


@sizes(60, 300)
def mandelbrot_masks(n, maxiter):
    x = np.linspace(-2.0, 0.5, n)
    y = np.linspace(-1.25, 1.25, n)
    C = x + y[:, None] * 1j
    N = np.zeros(C.shape, dtype=np.int64)
    Z = np.zeros(C.shape, dtype=np.complex128)
    for k in range(maxiter):
        inside = np.less(abs(Z), 2.0)
        N[inside] = k
        Z[inside] = Z[inside] ** 2 + C[inside]
    N[maxiter - 1 == N] = 0
    return Z, N


make_mandelbrot_masks = make_mandelbrot


@sizes(20, 60)
def nbody(steps, pos, vel, mass):
    n = pos.shape[0]
    for _ in range(steps):
        for i in range(n):
            ax = 0.0
            ay = 0.0
            az = 0.0
            for j in range(n):
                dx = pos[j, 0] - pos[i, 0]
                dy = pos[j, 1] - pos[i, 1]
                dz = pos[j, 2] - pos[i, 2]
                d2 = dx * dx + dy * dy + dz * dz + 0.01
                w = mass[j] / (d2 * np.sqrt(d2))
                ax += dx * w
                ay += dy * w
                az += dz * w
            vel[i, 0] += 0.01 * ax
            vel[i, 1] += 0.01 * ay
            vel[i, 2] += 0.01 * az
        for i in range(n):
            for c in range(3):
                pos[i, c] += 0.01 * vel[i, c]
    return pos


def make_nbody(n):
    return 20, _random(n, 3), np.zeros((n, 3)), _random(n)


@sizes(500, 5000)
def go_fast(a):
    trace = 0.0
    for i in range(a.shape[0]):
        trace += np.tanh(a[i, i])
    return a + trace


def make_go_fast(n):
    return (_random(n, n) if n <= 500 else _random(1500, 1500),)


@sizes(1000, 30000)
def azimuthal(x, y, bins):
    hist = np.zeros(bins)
    for i in range(x.shape[0]):
        r = np.sqrt(x[i] * x[i] + y[i] * y[i])
        k = int(r * bins / 1.5)
        if 0 <= k < bins:
            hist[k] += x[i]
    return hist


def make_azimuthal(n):
    return _random(n), _random(n)[::-1].copy(), 50


def rate(x):
    return -2.0 * x + np.sin(3.0 * x)


@sizes(200, 4000)
def runge_kutta(x0, t1, tol, most):
    t = 0.0
    x = x0
    h = 0.01
    steps = 0
    while t < t1 and steps < most:
        if t + h > t1:
            h = t1 - t
        k1 = rate(x)
        k2 = rate(x + 0.5 * h * k1)
        k3 = rate(x + 0.75 * h * k2)
        new = x + h * (2.0 * k1 + 3.0 * k2 + 4.0 * k3) / 9.0
        k4 = rate(new)
        err = abs(h * (-5.0 * k1 / 72.0 + k2 / 12.0 + k3 / 9.0 - k4 / 8.0))
        if err < tol:
            t += h
            x = new
        h *= min(2.0, max(0.2, 0.9 * (tol / (err + 1e-15)) ** (1.0 / 3.0)))
        steps += 1
    return x


def make_runge_kutta(n):
    return 1.0, 10.0, 1e-9, n


@sizes(1000, 20000)
def gillespie(state, u):
    t = 0.0
    a, b = 100, 0
    for i in range(u.shape[0]):
        r1 = 1.0 * a
        r2 = 0.5 * b
        total = r1 + r2
        t -= math.log(u[i, 0]) / total
        if u[i, 1] * total < r1:
            a -= 1
            b += 1
        else:
            a += 1
            b -= 1
        state[i] = a
    return t, state


def make_gillespie(n):
    return np.zeros(n, np.int64), 1.0 - _random(n, 2)


@sizes(1000, 30000)
def metropolis(x0, steps, u):
    out = np.empty(steps.shape[0])
    x = x0
    accepted = 0
    for i in range(steps.shape[0]):
        y = x + steps[i]
        if u[i] < np.exp(-0.5 * (y * y - x * x)):
            x = y
            accepted += 1
        out[i] = x
    return out, accepted


def make_metropolis(n):
    return 0.5, _random(n) - 0.5, _random(n)


@sizes(200, 3000)
def kmeans(x, centers, rounds):
    n, d = x.shape
    k = centers.shape[0]
    label = np.zeros(n, np.int64)
    for _ in range(rounds):
        for i in range(n):
            best = np.inf
            for c in range(k):
                s = 0.0
                for q in range(d):
                    s += (x[i, q] - centers[c, q]) ** 2
                if s < best:
                    best = s
                    label[i] = c
        count = np.zeros(k)
        centers[:] = 0.0
        for i in range(n):
            count[label[i]] += 1
            for q in range(d):
                centers[label[i], q] += x[i, q]
        for c in range(k):
            if count[c] > 0:
                for q in range(d):
                    centers[c, q] /= count[c]
    return centers, label


def make_kmeans(n):
    return _random(n, 3), _random(8, 3), 3


@sizes(30, 200)
def lstm(x, h, c, W, U, b):
    n = h.shape[0]
    for t in range(x.shape[0]):
        z = W @ x[t] + U @ h + b
        i = 1.0 / (1.0 + np.exp(-z[:n]))
        f = 1.0 / (1.0 + np.exp(-z[n : 2 * n]))
        o = 1.0 / (1.0 + np.exp(-z[2 * n : 3 * n]))
        g = np.tanh(z[3 * n :])
        c[:] = f * c + i * g
        h[:] = o * np.tanh(c)
    return h


def make_lstm(n):
    return _random(n, 8), np.zeros(16), np.zeros(16), _random(64, 8) - 0.5, _random(64, 16) - 0.5, np.zeros(64)


@sizes(100, 2000)
def converge(x, tol):
    n = x.shape[0]
    y = np.ones(n)
    it = 0
    while True:
        change = 0.0
        for i in range(1, n - 1):
            new = 0.5 * (y[i - 1] + y[i + 1]) * x[i]
            change += abs(new - y[i])
            y[i] = new
        it += 1
        if change < tol or it >= 100:
            break
    return y, it


def make_converge(n):
    return _random(n), 1e-6
