"""Index arrays and masks: repeats, changes between uses, scatter and gather, ix_, take_along_axis, unique, lexsort."""

import numpy as np

from tests.adversarial.program import program


@program(lambda r: (r.normal(size=(4, 5)), r.integers(0, 4, 6)))
def gather_and_decay(x, i):
    y = x[i]
    i[::2] = 0
    y[1:] += 0.5 * x[i[1:]]
    return y * np.exp(-0.1 * i)[:, None]


@program(lambda r: (r.normal(size=8), r.integers(0, 8, 5)))
def index_array_changed_in_a_loop(x, i):
    out = np.zeros(5)
    for k in range(6):
        out += x[i] * (k + 1)
        i += 1
        i %= 8
        x[i] *= 0.9
    return out, x, i


@program(lambda r: (r.normal(size=10),))
def mask_changed_in_a_loop(x):
    mask = np.ones(10, dtype=bool)
    total = np.zeros(10)
    for k in range(2, 6):
        mask[::k] ^= True
        total[mask] += x[mask] ** 2
        x[~mask] *= 0.5
    return total, x, mask.sum()


@program(lambda r: (r.normal(size=6), r.normal(size=9), r.integers(0, 6, 9)))
def plain_add_loses_repeats(y, v, i):
    z = y.copy()
    y[i] += v
    np.add.at(z, i, v)
    return y, z, (z - y).sum()


@program(lambda r: (r.normal(size=6), r.normal(size=9), r.integers(0, 6, 9)))
def assignment_keeps_the_last_repeat(y, v, i):
    y[i] = v
    y[i[::-1]] *= 2
    return y


@program(lambda r: (r.normal(size=5), r.normal(size=12), r.integers(0, 5, 12)))
def maxima_and_minima_at(y, v, i):
    hi, lo = y.copy(), y.copy()
    np.maximum.at(hi, i, v)
    np.minimum.at(lo, i, v)
    np.multiply.at(y, i[:4], hi[i[:4]])
    np.subtract.at(y, [0, 0, 1], 0.5)
    return hi - lo, y


@program(lambda r: (r.normal(size=(4, 5)), r.integers(0, 4, 7), r.integers(0, 5, 7)))
def paired_indices_with_repeats(x, i, j):
    g = x[i, j]
    h = np.zeros_like(x)
    np.add.at(h, (i, j), g**2)
    x[i, j] = g + 1
    x[i, j] += g
    return x, h, np.ravel_multi_index((i, j), x.shape)


@program(lambda r: (r.normal(size=(5, 6)),))
def open_mesh(x):
    rows, cols = [0, 2, 3], np.array([True, False, True, False, False, True])
    block = x[np.ix_(rows, cols)]
    x[np.ix_([1, 4], [0, 0, 5])] = 7
    x[np.ix_(rows, cols)] = block.T
    return block @ block, x


@program(lambda r: (r.normal(size=(4, 6)),))
def along_an_axis(x):
    order = np.argsort(x, axis=1)
    s = np.take_along_axis(x, order, axis=1)
    y = np.zeros_like(x)
    np.put_along_axis(y, order[:, :2], s[:, -2:] ** 2, axis=1)
    top = np.take_along_axis(x, x.argmax(0)[None], 0)
    return s.cumsum(1), y, top.squeeze()


@program(lambda r: (r.integers(0, 4, 12), r.normal(size=12)))
def group_means(keys, x):
    _, first, inverse, counts = np.unique(keys // 2, return_index=True, return_inverse=True, return_counts=True)
    sums = np.zeros(2)
    np.add.at(sums, np.minimum(inverse, 1), x)
    means = sums / counts.sum()
    return x - means[np.minimum(inverse, 1)], x[first[0]]


@program(lambda r: (r.integers(0, 3, 9), r.integers(0, 3, 9), r.normal(size=9)))
def order_by_several_keys(a, b, x):
    order = np.lexsort((x, b, a))
    rank = np.empty_like(order)
    rank[order] = np.arange(9)
    return x[order] * np.arange(9), rank, np.diff(a[order]) >= 0


@program(lambda r: (r.normal(size=(3, 4, 5)), r.integers(0, 4, 3)))
def advanced_and_basic_indices_mixed(x, i):
    a = x[np.arange(3), i]
    b = x[:, i, 1:3]
    c = x[0, :, [1, 1, 3]]
    d = x[i % 3, ..., i]
    x[:, i, 0] = -1
    return a, b, c, d, x


@program(lambda r: (r.normal(size=(4, 4)),))
def boolean_matrix_index(x):
    big = x > 0.3
    v = x[big]
    x[big] = v[::-1]
    x[x < -0.5] **= 2
    rows = big.any(axis=1)
    return np.array([v.sum(), x.prod()]), x[rows].sum(0), np.count_nonzero(big)


@program(lambda r: (r.normal(size=7), r.integers(-7, 7, 5)))
def negative_indices_alias_positive_ones(x, i):
    x[i] += 1
    x[i % 7] += 1
    x[-1] = x[6] + x[-7]
    return x, x.take(i), x.take(i + 20, mode="wrap"), x.take([9, -9, 3], mode="clip")


@program(lambda r: (r.normal(size=9),))
def put_place_and_copyto(x):
    np.put(x, [0, 0, -1], [1.0, x[3], x[4]])
    np.place(x, x > 0.5, x[[1, 2]] / 2)
    np.putmask(x, np.arange(9) % 3 == 2, x * 3)
    np.copyto(x, 0, where=np.abs(x) < 0.05)
    return x


@program(lambda r: (r.normal(size=9), np.sort(r.normal(size=6))))
def sorted_positions(x, knots):
    k = np.clip(np.searchsorted(knots, x), 1, 5)
    w = (x - knots[k - 1]) / (knots[k] - knots[k - 1] + 1)
    return w * knots[k] + (1 - w) * knots[k - 1]


@program(lambda r: (r.normal(size=(6, 3)), r.integers(0, 6, (4, 2))))
def embedding_lookup_of_pairs(table, pairs):
    left, right = table[pairs.T]
    s = (left * right).sum(-1)
    table[pairs[:, 0]] -= 0.1 * s[:, None] * right
    return table, s


@program(lambda r: (r.normal(size=10), r.permutation(10)))
def permutation_and_its_inverse(x, p):
    y = x[p]
    q = np.argsort(p)
    assert np.array_equal(y[q], x)
    y[p] = y[q].copy() * 2
    cycle, k = [], 0
    while k not in cycle:
        cycle.append(k)
        k = int(p[k])
    return y, x[cycle].prod()


@program(lambda r: (r.normal(size=12), r.random(12) < 0.4))
def compress_extract_where(x, mask):
    mask[:2] = True, False
    where = np.flatnonzero(mask)
    s = np.cumsum(mask) - 1
    filled = x[where][np.maximum(s, 0)]
    return filled, np.compress(mask, x).sum(), np.extract(~mask, x).mean(), np.argwhere(mask)[0]


@program(lambda r: (r.normal(size=(3, 4)), r.normal(size=(3, 4))))
def where_with_three_and_one(a, b):
    i, j = np.where(a > b)
    c = np.zeros_like(a)
    c[i, j] = (a - b)[i, j]
    c[np.where(a <= b)] = -1
    return c, np.where(c > 0, a**2, b)


@program(lambda r: (r.normal(size=5),))
def empty_selections_do_nothing(x):
    none = np.array([], dtype=int)
    x[none] = 100
    x[x > 1e9] -= 1
    x[3:3] = 5
    y = x[none]
    np.add.at(x, none, y)
    return x, y, y.sum() + np.concatenate([y, x[:2]]).sum()


@program(lambda r: (r.normal(size=(2, 3)),))
def scalars_tuples_lists_as_indices(x):
    i = np.int64(1)
    where = (i, slice(None))
    x[where] += 1
    x[[0, 1], 2] *= 2
    x[np.array(0), np.uint8(1)] = x[i][i]
    x[(1,)] = x[True][0, 1]
    return x, x[..., [True, False, True]], x[(0, 1)]


@program(lambda r: (r.normal(size=8), r.integers(0, 3, 8)))
def one_hot_and_back(x, k):
    hot = np.zeros((8, 3))
    hot[np.arange(8), k] = x
    hard = np.eye(3)[k]
    return hot.sum(0), (hot * hard).max(1), hard.argmax(1) == k, hot[:, k].diagonal()


@program(lambda r: (r.normal(size=(4, 3)), r.integers(0, 4, 10)))
def segment_sums_three_ways(x, i):
    i = np.sort(i)
    i[0], i[-1] = 0, 3
    v = x[i] ** 2
    a = np.zeros((4, 3))
    np.add.at(a, i, v)
    b = np.stack([np.bincount(i, weights=v[:, c], minlength=4) for c in range(3)], axis=1)
    c = (i == np.arange(4)[:, None]) @ v
    assert np.allclose(a, b)
    return a - b + c


@program(lambda r: (r.normal(size=6), r.integers(0, 6, 6)))
def pointer_chasing(x, jump):
    total = np.zeros_like(x)
    for _ in range(5):
        total += x[jump]
        jump = jump[jump]
        x[jump[0]] = total[jump[1]]
    return total, x, jump


@program(lambda r: (r.normal(size=(5, 5)), r.permutation(5)))
def rows_and_columns_permuted_in_place(a, p):
    a[:] = a[p][:, p]
    a[p] = a.T
    a[:, p[:2]] = a[:, p[1::-1]]
    return a


@program(lambda r: (r.normal(size=10),))
def index_made_from_data(x):
    i = (np.abs(x) * 20).astype(int) % 10
    y = x.copy()
    y[i] -= x
    j = np.round(y * 3).astype(np.int8) % 10
    return x[j] * y, i


@program(lambda r: (r.normal(size=7), r.normal(size=3)))
def delete_insert_append(x, y):
    a = np.delete(x, [1, -1])
    b = np.insert(a, [0, 2, 2], y)
    c = np.append(b, b[::3] ** 2)
    d = np.delete(c, np.s_[::4])
    return d, np.insert(x[:6].reshape(2, 3), 1, y[:2], axis=1), np.resize(y, 7) * x


@program(lambda r: (r.normal(size=(3, 5)),))
def choose_per_row_then_mask_out(x):
    picked = []
    alive = np.ones(5, bool)
    for row in x:
        scores = np.where(alive, row, -np.inf)
        k = scores.argmax()
        picked.append(row[k])
        alive[k] = False
    return np.array(picked), x[:, alive].sum(1)
