"""Views of views and writes through them: slices, transposes, diagonals, parts, flat, aliases, written arguments."""

import numpy as np

from tests.adversarial.program import program


@program(lambda r: (r.normal(size=(6, 8)),))
def slice_of_a_slice_of_a_transpose(x):
    v = x[1:].T[::2][:, ::-1]
    w = v[1:3, 1:]
    w *= 2
    x[3] += v[0].sum()
    return x, w, v


@program(lambda r: (r.normal(size=12),))
def reshape_then_write_rows(x):
    m = x.reshape(3, 4)
    m[1] = m[0] * m[2]
    m.T[2] += x[:3]
    return x


@program(lambda r: (r.normal(size=(3, 4)),))
def ravel_of_a_transpose_is_a_copy(x):
    a = x.T.ravel()
    a[:] = a**2
    b = x.ravel()
    b[::5] = 0
    return a, b, x


@program(lambda r: (r.normal(size=(4, 4)),))
def diagonal_views(a):
    d = np.einsum("ii->i", a)
    d += 3
    np.fill_diagonal(a[:, ::-1], 7.0)
    off = a.reshape(-1)[1:].reshape(3, 5)[:, :-1]
    off *= 0.5
    return a, a.diagonal(1).sum(), np.trace(a, offset=-1)


@program(lambda r: (r.normal(size=6) + 1j * r.normal(size=6),))
def real_and_imaginary_parts(z):
    z.real[::2] *= 3
    z.imag = z.real**2
    z[1:3].imag += 1.5
    w = z.real[1:]
    w[-1] = 10
    return z, w.sum(), abs(z[-1])


@program(lambda r: (r.normal(size=(3, 4)),))
def flat_reads_and_writes(x):
    x.flat[3] = x.flat[-1] ** 2
    x.T.flat[[1, 2, 5]] = x.flat[:3]
    s = sum(v * k for k, v in enumerate(x.flat))
    return x, s


@program(lambda r: (r.normal(size=10),))
def parts_of_a_split(x):
    a, b, c = np.split(x, [3, 7])
    a -= c
    b[1:3] = a[:2] * c[0]
    return x, b


@program(lambda r: (r.normal(size=(4, 6)),))
def parts_of_hsplit_and_vsplit(x):
    left, right = np.hsplit(x, 2)
    top = np.vsplit(left, 2)[0]
    top[:] = right[2:] * right[:2]
    right.T[:] = left.T + 1
    return x


@program(lambda r: (r.normal(size=8),))
def reversal_onto_itself(x):
    x[:] = x[::-1]
    x[::-1][:3] *= 2
    y = x[::-1]
    y += x
    return x, y


@program(lambda r: (r.normal(size=9),))
def overlapping_shift(x):
    x[1:] = x[:-1]
    x[:-2] += x[2:]
    np.multiply(x[:-1], x[1:], out=x[1:])
    return x


@program(lambda r: (r.normal(size=(3, 1, 4)),))
def new_axes_and_squeezes(x):
    y = x.squeeze(1)[:, None, :, None]
    y[0] = 1.0
    z = np.expand_dims(x[..., 0], -1)
    z[-1, 0, 0] *= x[1, 0, 3]
    return x, y.shape[1] * y.sum(), np.atleast_3d(z)


def same(a, b):
    a += 1
    return a * b


@program(lambda r: (r.normal(size=5),))
def one_array_as_two_arguments(x):
    return same(x, x), same(x[1:], x[:-1]), x


@program(lambda r: (r.normal(size=4),))
def one_array_twice_in_a_list(x):
    rows = [x, x, x.copy()]
    rows[0] *= 2
    rows[2] += rows[1]
    out = np.array(rows)
    rows[1][0] = 0
    return out, np.stack(rows)


@program(lambda r: (r.normal(size=(4, 3)),))
def swap_rows_through_views(a):
    r0, r1 = a[0], a[1]
    a[0], a[1] = r1, r0
    a[[2, 3]] = a[[3, 2]]
    b, c = a[2].copy(), a[3].copy()
    a[2], a[3] = c, b * 2
    return a


@program(lambda r: (r.normal(size=(2, 3, 4)),))
def moved_axes_share_memory(x):
    y = np.moveaxis(x, -1, 0)
    y[0, :, 1] = y[1, :, 2]
    z = np.swapaxes(y, 0, 2)[1:, :, ::3]
    z -= z.mean()
    return x, y.ravel()[::5], np.rollaxis(x, 2).shape[0]


@program(lambda r: (r.normal(size=(5, 5)),))
def triangle_written_from_the_other(a):
    i, j = np.triu_indices(5, 1)
    a[j, i] = a[i, j]
    low = np.tril(a)
    low[0] = -1
    return a, low


@program(lambda r: (r.normal(size=(4, 4)),))
def quadrants(a):
    tl, tr, bl, br = a[:2, :2], a[:2, 2:], a[2:, :2], a[2:, 2:]
    tl += br
    br[...] = tl @ tr
    bl[:] = 0
    np.copyto(bl, tr.T, where=tr > 0)
    return a


@program(lambda r: (r.normal(size=7),))
def a_list_of_windows(x):
    windows = [x[k : k + 3] for k in range(5)]
    for k, w in enumerate(windows):
        w += 0.1 * k
    return np.array([w.prod() for w in windows]), x


@program(lambda r: (r.normal(size=12),))
def sliding_window_view(x):
    w = np.lib.stride_tricks.sliding_window_view(x, 4)
    before = w.copy()
    x[5] = 3
    return w.mean(axis=-1), before[::3], w[::2, ::-1] @ x[:4]


@program(lambda r: (r.normal(size=(3, 3)),))
def rows_as_iterated(a):
    for k, row in enumerate(a):
        row[k] = 0
        row /= np.abs(row).sum()
    for col in a.T:
        col -= col.mean()
    return a


@program(lambda r: (r.normal(size=6), r.normal(size=6)))
def dictionary_of_views(x, y):
    params = {"w": x[:4].reshape(2, 2), "b": x[4:]}
    grads = {"w": y[:4].reshape(2, 2), "b": y[4:]}
    for name in params:
        params[name] -= 0.1 * grads[name] ** 2
    return x


@program(lambda r: (r.normal(size=5),))
def element_kept_before_a_write(x):
    first = x[0]
    part = x[0:1]
    zero = x[0, ...]
    x[0] = 9
    return first, part, zero, first * part[0]


@program(lambda r: (r.normal(size=5),))
def zero_dimensional_view_written(x):
    v = x[2, ...]
    v[...] = v * x[1]
    v += 1
    w = np.asarray(x[3])
    w[()] = 0
    return x, v, w


@program(lambda r: (r.normal(size=(3, 4)),))
def arguments_written_and_returned(x):
    y = x
    y -= y.mean(0)
    y = y / y.std(0)
    y[0] = 0
    return x, y, x is y


@program(lambda r: (np.asfortranarray(r.normal(size=(3, 4))), r.normal(size=(4, 3)).T))
def fortran_and_transposed_inputs(f, t):
    f *= t
    k = f.ravel(order="K")
    k[0] = 5
    a = f.reshape(-1, order="F")
    a[1] = 6
    return f, t.copy(), k, np.ascontiguousarray(t).flat[4], f.reshape(2, 6), t.flags.f_contiguous


@program(lambda r: (r.normal(size=(4, 5)),))
def ellipsis_none_and_slices(x):
    y = x[None, ..., ::2, None]
    y[0, 1:, -1] += 2
    x[..., -1] *= y[0, :, 0, 0]
    return y[..., 0], x[slice(None, None, -2), slice(1, -1)]


@program(lambda r: (r.normal(size=(6,)),))
def broadcast_view_read_after_write(x):
    b = np.broadcast_to(x, (3, 6))
    c = np.broadcast_arrays(x[:, None], x)[0]
    x[1] = 4
    return b.sum(0), c @ x, b[1:, ::2]


@program(lambda r: (r.normal(size=8),))
def viewed_as_complex_and_back(x):
    z = x.view(complex)
    z *= 1j
    z[0] = z[1].conjugate()
    return x, z, z.view(float)[1::2]


@program(lambda r: (r.normal(size=(2, 6)),))
def a_chain_of_six_views(x):
    v = x.T[1:].reshape(5, 2)[::-1].T[:, 1:].T[..., :1]
    v[1:-1] = v[:-2] * v[2:]
    return x, v.base is not None


@program(lambda r: (r.normal(size=(3, 3)),))
def augmented_on_a_name_and_on_an_item(a):
    b = a[1]
    b = b + 1
    c = a[2]
    c += 1
    a[0] += c
    d = [a[0], a[1]]
    d[1] *= b
    return a, b
