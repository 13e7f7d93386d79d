"""Fields on a grid, step after step: each new value from its neighbours."""

import numpy as np


def jacobi_1d(A, B, steps):
    for _ in range(steps):
        B[1:-1] = (A[:-2] + A[1:-1] + A[2:]) / 3
        A[1:-1] = (B[:-2] + B[1:-1] + B[2:]) / 3
    return A, B


def jacobi_2d(A, B, steps):
    for _ in range(steps):
        B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
        A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])
    return A, B


def heat_3d_half(A, B):
    middle = A[1:-1, 1:-1, 1:-1]
    B[1:-1, 1:-1, 1:-1] = (
        0.125 * (A[2:, 1:-1, 1:-1] - 2 * middle + A[:-2, 1:-1, 1:-1])
        + 0.125 * (A[1:-1, 2:, 1:-1] - 2 * middle + A[1:-1, :-2, 1:-1])
        + 0.125 * (A[1:-1, 1:-1, 2:] - 2 * middle + A[1:-1, 1:-1, :-2])
        + middle
    )


def heat_3d(A, B, steps):
    for _ in range(steps):
        heat_3d_half(A, B)
        heat_3d_half(B, A)
    return A, B


def seidel_2d(A, steps):
    n, m = A.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
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


def fdtd_2d(ex, ey, hz, source):
    for now in source:
        ey[0, :] = now
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return ex, ey, hz


def adi(u, steps):
    """Peaceman and Rachford: implicit along one axis, explicit along the other, by turns (v is transposed).

    The border of u is ones.
    """
    n = len(u)
    half = (n - 1) ** 2 / steps / 2
    a, b = -half, 1 + 2 * half
    v = np.ones((n, n))
    p, q = np.zeros((n, n)), np.zeros((n, n))
    for _ in range(steps):
        for new, old in ((v, u), (u, v)):
            new[:, 0] = 1.0
            p[:, 0] = 0.0
            q[:, 0] = 1.0
            for j in range(1, n - 1):
                known = old[j, 1:-1] + half * (old[j, :-2] - 2 * old[j, 1:-1] + old[j, 2:])
                scale = a * p[1:-1, j - 1] + b
                p[1:-1, j] = -a / scale
                q[1:-1, j] = (known - a * q[1:-1, j - 1]) / scale
            new[:, n - 1] = 1.0
            for j in range(n - 2, 0, -1):
                new[1:-1, j] = p[1:-1, j] * new[1:-1, j + 1] + q[1:-1, j]
    return u


def deriche(image, alpha):
    """Recursive smoothing, forwards and backwards, along rows and then along columns."""
    decay = np.exp(-alpha)
    k = (1 - decay) ** 2 / (1 + 2 * alpha * decay - decay**2)
    a1, a2, a3, a4 = k, k * decay * (alpha - 1), k * decay * (alpha + 1), -k * decay**2
    b1, b2 = 2 * decay, -(decay**2)
    w, h = image.shape
    y1, y2 = np.zeros((w, h)), np.zeros((w, h))
    for j in range(h):
        y1[:, j] = a1 * image[:, j]
        if j >= 1:
            y1[:, j] += a2 * image[:, j - 1] + b1 * y1[:, j - 1]
        if j >= 2:
            y1[:, j] += b2 * y1[:, j - 2]
    for j in range(h - 2, -1, -1):
        y2[:, j] = a3 * image[:, j + 1] + b1 * y2[:, j + 1]
        if j < h - 2:
            y2[:, j] += a4 * image[:, j + 2] + b2 * y2[:, j + 2]
    out = y1 + y2
    y1[:], y2[:] = 0.0, 0.0
    for i in range(w):
        y1[i] = a1 * out[i]
        if i >= 1:
            y1[i] += a2 * out[i - 1] + b1 * y1[i - 1]
        if i >= 2:
            y1[i] += b2 * y1[i - 2]
    for i in range(w - 2, -1, -1):
        y2[i] = a3 * out[i + 1] + b1 * y2[i + 1]
        if i < w - 2:
            y2[i] += a4 * out[i + 2] + b2 * y2[i + 2]
    return y1 + y2


def pressure_source(u, v, rho, dt, dx, dy):
    b = np.zeros_like(u)
    du_dx = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)
    dv_dy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy)
    du_dy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dy)
    dv_dx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx)
    b[1:-1, 1:-1] = rho * ((du_dx + dv_dy) / dt - du_dx**2 - 2 * du_dy * dv_dx - dv_dy**2)
    return b


def cavity_flow(u, v, p, steps, sweeps, dt, rho, nu):
    """A box of fluid whose lid moves: the pressure by Jacobi sweeps, then the momentum."""
    ny, nx = p.shape
    dx, dy = 2 / (nx - 1), 2 / (ny - 1)
    for _ in range(steps):
        b = pressure_source(u, v, rho, dt, dx, dy)
        for _ in range(sweeps):
            old = p.copy()
            p[1:-1, 1:-1] = (
                (old[1:-1, 2:] + old[1:-1, :-2]) * dy**2
                + (old[2:, 1:-1] + old[:-2, 1:-1]) * dx**2
                - dx**2 * dy**2 * b[1:-1, 1:-1]
            ) / (2 * (dx**2 + dy**2))
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0
        un, vn = u.copy(), v.copy()
        across, down = un[1:-1, 1:-1], vn[1:-1, 1:-1]
        for new, old, slope in (
            (u, un, (p[1:-1, 2:] - p[1:-1, :-2]) / (2 * rho * dx)),
            (v, vn, (p[2:, 1:-1] - p[:-2, 1:-1]) / (2 * rho * dy)),
        ):
            here = old[1:-1, 1:-1]
            new[1:-1, 1:-1] = (
                here
                - dt * (across * (here - old[1:-1, :-2]) / dx + down * (here - old[:-2, 1:-1]) / dy + slope)
                + nu * dt * (old[1:-1, 2:] - 2 * here + old[1:-1, :-2]) / dx**2
                + nu * dt * (old[2:, 1:-1] - 2 * here + old[:-2, 1:-1]) / dy**2
            )
        u[0, :] = u[:, 0] = u[:, -1] = 0
        u[-1, :] = 1
        v[0, :] = v[-1, :] = v[:, 0] = v[:, -1] = 0
    return u, v, p


def channel_flow(u, force, dt, nu, tolerance):
    """Fluid between two walls, periodic along them, pushed until the flow is steady."""
    ny, nx = u.shape
    dx, dy = 2 / nx, 2 / (ny - 1)
    change, steps = 1.0, 0
    while change > tolerance:
        old = u.copy()
        left = np.concatenate((old[1:-1, -1:], old[1:-1, :-1]), axis=1)
        right = np.concatenate((old[1:-1, 1:], old[1:-1, :1]), axis=1)
        here = old[1:-1]
        u[1:-1] = (
            here
            - dt * here * (here - left) / dx
            + nu * dt * ((right - 2 * here + left) / dx**2 + (old[2:] - 2 * here + old[:-2]) / dy**2)
            + force * dt
        )
        u[0, :] = 0
        u[-1, :] = 0
        change = np.sum(np.abs(u - old)) / np.sum(np.abs(u))
        steps += 1
    return u, steps


def vertical_advection(stage, position, tendency, wind, dt):
    """An implicit step up the columns of a grid of shape (i, j, k): one tridiagonal system in each."""
    ni, nj, nk = stage.shape
    upper, right = np.zeros((ni, nj, nk)), np.zeros((ni, nj, nk))
    weight = 0.25 * (wind[1:, :, :] + wind[:-1, :, :])
    for k in range(nk):
        low, high, change = np.zeros((ni, nj)), np.zeros((ni, nj)), np.zeros((ni, nj))
        if k > 0:
            low = -weight[:, :, k]
            change += weight[:, :, k] * (stage[:, :, k] - stage[:, :, k - 1])
        if k < nk - 1:
            high = weight[:, :, k + 1]
            change -= weight[:, :, k + 1] * (stage[:, :, k + 1] - stage[:, :, k])
        diagonal = 1 / dt - low - high
        known = position[:, :, k] / dt + tendency[:, :, k] + change
        if k == 0:
            upper[:, :, k] = high / diagonal
            right[:, :, k] = known / diagonal
        else:
            scale = 1 / (diagonal - upper[:, :, k - 1] * low)
            upper[:, :, k] = high * scale
            right[:, :, k] = (known - right[:, :, k - 1] * low) * scale
    out = np.empty((ni, nj, nk))
    ahead = right[:, :, nk - 1]
    out[:, :, nk - 1] = ahead
    for k in range(nk - 2, -1, -1):
        ahead = right[:, :, k] - upper[:, :, k] * ahead
        out[:, :, k] = ahead
    return (out - position) / dt


def horizontal_diffusion(field, coefficient):
    """The Laplacian of the Laplacian, with fluxes that would sharpen a gradient left out."""
    lap = 4 * field[1:-1, 1:-1] - (field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2])
    along = lap[1:, 1:-1] - lap[:-1, 1:-1]
    along = np.where(along * (field[2:-1, 2:-2] - field[1:-2, 2:-2]) > 0, 0, along)
    across = lap[1:-1, 1:] - lap[1:-1, :-1]
    across = np.where(across * (field[2:-2, 2:-1] - field[2:-2, 1:-2]) > 0, 0, across)
    return field[2:-2, 2:-2] - coefficient * (along[1:] - along[:-1] + across[:, 1:] - across[:, :-1])


def game_of_life(board, generations):
    rows, columns = board.shape
    for _ in range(generations):
        old = board.copy()
        for i in range(rows):
            for j in range(columns):
                alive = 0
                for di in (-1, 0, 1):
                    for dj in (-1, 0, 1):
                        if di != 0 or dj != 0:
                            alive += old[(i + di) % rows, (j + dj) % columns]
                if alive == 3 or (alive == 2 and old[i, j] == 1):
                    board[i, j] = 1
                else:
                    board[i, j] = 0
    return board
