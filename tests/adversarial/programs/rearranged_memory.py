"""Rearranged memory: strided windows, views of parts, out= into views, where=, buffers lent, returned and reused."""

import numpy as np

from tests.adversarial.program import program


@program(lambda r: (r.normal(size=9),))
def toeplitz_rows_by_as_strided(x):
    s = x.strides[0]
    rows = np.lib.stride_tricks.as_strided(x[4:], shape=(5, 5), strides=(s, -s))
    t = rows.copy()
    x[4] = 10
    return t @ x[:5], rows.trace(), rows[:, 0]


@program(lambda r: (r.normal(size=(5, 6)), r.normal(size=(2, 3))))
def patches_times_a_kernel(image, kernel):
    w = np.lib.stride_tricks.sliding_window_view(image, (2, 3))
    y = np.einsum("ijkl,kl->ij", w, kernel)
    image[1:3, 1:4] -= y[:2, :3]
    z = np.tensordot(w[::2, ::-1], kernel, 2)
    return y, z, w.max(axis=(2, 3))


@program(lambda r: (r.normal(size=(4, 4)),))
def sums_out_into_a_border(a):
    room = np.zeros((5, 5))
    room[:4, :4] = a
    np.sum(room[:4, :4], axis=0, out=room[4, :4])
    np.sum(room[:, :4], axis=1, out=room[:, 4])
    np.cumsum(room[0], out=room[0])
    np.maximum.accumulate(room[::-1, 1], out=room[::-1, 2])
    return room, room[-1, -1]


@program(lambda r: (r.normal(size=(3, 5)),))
def masked_operators_into_the_operand(x):
    m = x > 0
    np.negative(x, out=x, where=~m)
    np.log(x, out=x, where=m)
    np.add(x[:, 1:], x[:, :-1], out=x[:, :-1], where=m[:, 1:])
    s = np.add.reduce(x, axis=1, where=m, initial=1.0)
    return x, s, np.mean(x, axis=0, where=m | (np.arange(3) == 1)[:, None]), np.max(x, where=m, initial=-5.0)


@program(lambda r: (r.normal(size=(2, 3, 4)),))
def axes_shuffled_and_written(t):
    a = np.rollaxis(t, 2)
    a[1] = a[0] * a[3]
    b = np.moveaxis(t, (0, 2), (2, 0))
    b[..., 0] += b[::-1, ::-1, 1]
    c = np.swapaxes(b, 0, 1).reshape(3, -1)
    c[0] = 0
    return t, c, np.ascontiguousarray(a).ravel()[3::7]


@program(lambda r: (r.normal(size=10),))
def even_and_odd_lists_in_place(x):
    even, odd = x[::2], x[1::2]
    for _ in range(3):
        even[1:] += 0.5 * odd[:-1]
        odd -= 0.25 * even
        even, odd = odd[::-1], even[::-1]
    return x, even @ odd


@program(lambda r: (r.normal(size=(4, 6)),))
def blocks_through_a_four_dimensional_view(a):
    b = a.reshape(2, 2, 3, 2).swapaxes(1, 2)
    b -= b.mean(axis=(2, 3), keepdims=True)
    b[0, 1].T[...] = b[1, 0].T ** 2
    return a, b[1, :, 0]


def filled(out=None, n=4):
    out = np.empty(n) if out is None else out
    out.fill(0.5)
    out[::2] = -1
    return out


@program(lambda r: (r.normal(size=8),))
def buffer_is_lent_and_comes_back(x):
    a = filled()
    b = filled(x[2:6])
    a *= x[:4]
    c = filled(out=a[1:3], n=99)
    return x, a, b + a, c


@program(lambda r: (r.normal(size=(3, 4)), r.normal(size=4)))
def matmul_into_parts_of_its_operand(a, v):
    np.matmul(a, v, out=a[:, 0])
    np.dot(a[:, :3], a[:3, 1], out=v[:3])
    np.multiply(v, a, out=a)
    np.einsum("ij,ij->j", a, a, out=v)
    np.matmul(a.T[:3], a[:, :3].copy(), out=a[:, 1:])
    return a, v


@program(lambda r: (r.normal(size=(4, 5)), r.integers(0, 5, (4, 1))))
def put_along_an_axis_and_take_back(a, k):
    top = np.take_along_axis(a, k, axis=1)
    np.put_along_axis(a, k, 2 * top - 1, axis=1)
    order = np.argsort(a, axis=1)
    s = np.take_along_axis(a, order[:, ::-1], 1)
    np.put_along_axis(s, order[:, :2], 0.0, 1)
    np.put_along_axis(s.T, k.T % 4, s.T[:1] + 3, 0)
    return a, s, top.squeeze(1)


@program(lambda r: (r.normal(size=(5, 5)),))
def open_meshes_of_masks_and_numbers(a):
    i = np.ix_([3, 0], [1, 4, 2])
    a[i] *= 2
    b = a[np.ix_(a[:, 0] > a[:, 0].mean(), [0, -1])]
    a[np.ix_([True, False, True, False, False], range(2))] += b.sum()
    j = np.ix_(np.arange(2), np.array([2, 2]))
    a[j] = a[j] + 1
    return a, b.sum(0), a[i].T


@program(lambda r: (r.normal(size=(3, 3)),))
def columns_swapped_by_tuple_and_by_index(a):
    a[:, 0], a[:, 2] = a[:, 2], a[:, 0].copy()
    a[:, [0, 1]] = a[:, [1, 0]]
    a.T[[1, 2]] = a.T[[2, 1]] * 2
    (a[0, 0], a[1, 1]), a[2, 2] = (a[1, 1], a[0, 0]), a[0, 0] + a[1, 1]
    return a


@program(lambda r: (r.normal(size=6), r.normal(size=6)))
def same_memory_as_input_and_accumulator(x, y):
    np.add(x[1:], y[:-1], out=x[1:])
    np.multiply.accumulate(x, out=x)
    np.subtract.accumulate(y[::-1], out=y)
    np.copyto(x[:3], x[3:])
    np.copyto(y, x, where=y > x)
    np.clip(x, -1, None, x)
    np.minimum(y[::-1], y, y)
    return x, y


@program(lambda r: (r.normal(size=(2, 2)), r.normal(size=(2, 3)), r.normal(size=3)))
def block_matrix_and_its_pieces(a, b, c):
    m = np.block([[a, b], [b.T, np.diag(c)]])
    m[2:, :2] *= -1
    a[0, 0] = 100
    b += m[:2, 2:]
    n = np.block([[m[0], 1.0, c[:2]], [np.tile(c, 2), c[1:]]])
    return m, n, a.sum() * b


@program(lambda r: (r.normal(size=12),))
def views_made_in_a_comprehension(x):
    pairs = [(x[k : k + 2], x[k + 2 : k + 4]) for k in range(0, 9, 4)]
    for a, b in pairs:
        a[:], b[:] = b * 2, a + 1
    tail, *_ = [b for _, b in pairs][::-1]
    tail *= pairs[0][0]
    flat = [v for pair in pairs for part in pair for v in part]
    return x, np.array(flat).reshape(3, 4).T


@program(lambda r: (r.normal(size=(3, 4)),))
def nditer_with_writes_and_positions(x):
    with np.nditer(x, flags=["multi_index"], op_flags=["readwrite"]) as it:
        for v in it:
            i, j = it.multi_index
            v[...] = v * (i - j) if i != j else v**2
    total = 0.0
    for (i, j), v in np.ndenumerate(x.T):
        total = total + i * v - j
    for index in np.ndindex(2, 2):
        x[index] += total
    return x, total


@program(lambda r: (r.normal(size=(4, 3)),))
def insertion_of_rows_into_a_growing_array(a):
    kept = np.empty((0, 3))
    for row in a:
        at = np.searchsorted(kept[:, 0], row[0])
        kept = np.insert(kept, at, row, axis=0)
    kept[1:] -= kept[:-1]
    a[:] = 0
    shorter = np.delete(kept, [0, 2], 0)
    return kept, np.append(shorter, kept[:1] ** 2, axis=0), kept.size
