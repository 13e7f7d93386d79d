"""Poisson's equation by conjugate gradients, the matrix applied as a stencil."""

SMALL, MODERATE = 16, 300


def run(np, size):
    def apply(v):
        out = 4.0 * v
        out[1:] -= v[:-1]
        out[:-1] -= v[1:]
        out[:, 1:] -= v[:, :-1]
        out[:, :-1] -= v[:, 1:]
        return out

    y, x = np.meshgrid(np.linspace(0, 1, size), np.linspace(0, 1, size), indexing="ij")
    b = np.sin(3 * np.pi * x) * y / size**2
    v = np.zeros((size, size))
    r = b - apply(v)
    p = r.copy()
    rr = np.vdot(r, r)
    residuals = [rr]
    while rr > 1e-16 and len(residuals) < 150:
        ap = apply(p)
        alpha = rr / np.vdot(p, ap)
        v += alpha * p
        r -= alpha * ap
        new = np.vdot(r, r)
        p = r + (new / rr) * p
        rr = new
        residuals.append(rr)
    return v, np.array(residuals), len(residuals)
