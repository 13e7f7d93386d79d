"""Tensors, and programs that are nasty but legal: writes between uses, kept views, mixed owners, odd axes."""

import copy
import itertools

import numpy as np

from tests.adversarial.program import program


@program(lambda r: (r.normal(size=(2, 3, 4)), r.normal(size=(4, 3)), r.normal(size=(2, 2))))
def contractions(t, a, b):
    return (
        np.einsum("bij,jk->bik", t, a),
        np.einsum("bij,ji->b", t, a),
        np.einsum("bij,cij,bc->", t, t, b),
        np.einsum(t, [0, 1, 2], b, [0, 3], [3, 2]),
        np.tensordot(t, a, axes=([2, 1], [0, 1])),
        np.tensordot(b, t, 1).sum(-1),
        np.einsum("...i,...i", t[0], a.T),
        np.einsum("ii", b) * np.einsum("i...->...", t),
    )


@program(lambda r: (r.normal(size=(3, 3, 3)),))
def alternating_least_squares_step(t):
    a, b, c = t[0] + 2 * np.eye(3), t[1].copy(), t[:, :, 2]
    for _ in range(2):
        kr = np.einsum("ir,jr->ijr", b, c).reshape(9, 3)
        gram = (b.T @ b) * (c.T @ c) + np.eye(3)
        a = np.linalg.solve(gram, (t.reshape(3, 9) @ kr).T).T
        b, c, a = c, a, b
    return a, np.einsum("ir,jr,kr->ijk", a, b, c)[0]


@program(lambda r: (r.normal(size=(2, 2, 2, 2)),))
def partial_traces_and_axes(t):
    a = np.trace(t, axis1=0, axis2=2)
    b = t.diagonal(axis1=1, axis2=3)
    c = np.moveaxis(t, [0, 1], [-1, -2]).reshape(4, 4)
    d = t.transpose(3, 0, 2, 1)
    d[0, 0] = d[1, 1].T
    return a, b, c, t, np.roll(t, (1, 1), axis=(0, 3))[0]


@program(lambda r: (r.normal(size=8),))
def a_view_outlives_its_name(x):
    def window():
        local = x * 1
        return local[2:5], local

    v, whole = window()
    whole[3] = 0
    del whole
    x[:] = 0
    return v, v.sum()


@program(lambda r: (r.normal(size=6),))
def value_used_before_and_after_a_write(x):
    a = np.sin(x)
    x[2] = a[0] * x[2]
    b = np.sin(x)
    x *= b
    c = x @ a
    x[:3] = x[3:] = c
    return a, b, c, x


@program(lambda r: (r.normal(size=(3, 4)), r.normal(size=4)))
def argument_is_a_row_of_the_other(a, v):
    def mix(m, row):
        m -= row
        return m * row

    return mix(a, a[0]), mix(a, v), mix(a[:, ::-1], a[1])


@program(lambda r: (r.normal(size=5),))
def copies_deep_and_shallow(x):
    box = {"x": x, "parts": [x[:2], x[2:]]}
    shallow, deep = copy.copy(box), copy.deepcopy(box)
    shallow["parts"][0] += 1
    deep["parts"][1] *= 2
    deep["x"] -= x
    return x, deep["x"], deep["parts"][1], shallow["x"] is x


@program(lambda r: (r.normal(size=(4, 4)),))
def in_place_while_iterating_views(a):
    for i, j in itertools.combinations(range(4), 2):
        ri, rj = a[i], a[j]
        t = ri - rj
        rj += 0.5 * t
        ri -= t[::-1] * 0.25
        a[:, i], a[:, j] = a[:, j].copy(), a[:, i].copy()
    return a


@program(lambda r: (r.normal(size=7), r.integers(0, 7, 4)))
def index_array_is_written_by_what_it_reads(x, i):
    y = x[i]
    i[:] = i[::-1]
    x[i] = y
    i[0] = i[i[1] % 4]
    v = x[i]
    i[...] = 0
    x[i] += v
    return x, y, v, i


@program(lambda r: (r.normal(size=6),))
def mask_kept_from_before_the_write(x):
    mask = x > 0
    x[mask] = -x[mask]
    x[mask] -= 1
    again = x > 0
    kept = [mask, again]
    mask[:] = True
    return x, x[kept[0]].sum(), x[~again].prod()


@program(lambda r: (r.normal(size=4),))
def numbers_taken_out_and_put_back(x):
    items = list(x)
    items[1] += 2
    as_list = x.tolist()
    x[0] = items[1] * as_list[2]
    x[3] = sum(items) / len(as_list)
    y = np.array(items)
    y[-1] = x.item(0) + x.sum()
    return x, y


@program(lambda r: (r.normal(size=(2, 3)),))
def shape_set_and_names_rebound(x):
    y = x.copy()
    y.shape = (3, 2)
    y[0] = x[1, :2]
    z = y.reshape(-1)
    z.resize(6, refcheck=False)
    x, y = y, x
    x[1:] *= 2
    return x, y, z


@program(lambda r: (r.normal(size=5), r.normal(size=5)))
def conditional_aliases(x, y):
    big, small = (x, y) if x.sum() > y.sum() else (y, x)
    big -= small
    target = [x, y][int(x[0] > y[0])]
    target[1:] += target[:-1].copy()
    return x, y, big * small


@program(lambda r: (r.normal(size=(3, 4)),))
def swapped_buffers_inside_a_tuple(x):
    state = (x, np.zeros_like(x), [x[0], x[1]])
    for k in range(4):
        a, b, rows = state
        b[...] = a * 0.5 + 1
        rows[k % 2] += 1
        state = (b, a, rows[::-1])
    return state[0], state[1], x


@program(lambda r: (r.normal(size=10),))
def strided_writes_cross(x):
    even, odd, thirds = x[::2], x[1::2], x[::3]
    even += odd
    odd -= thirds[0]
    thirds *= even[:4]
    x[::-2] = even
    return x, thirds, even @ odd


@program(lambda r: (r.normal(size=(3, 3)),))
def transposed_onto_itself(a):
    a += a.T
    a[:] = a.T[::-1]
    a[1:] = a[:-1]
    a[:, 1:] += a[:, :-1].T[:2].T[:, :2]
    np.add(a, a[0], out=a.T)
    return a


@program(lambda r: (r.normal(size=(2, 4)),))
def scalars_that_look_like_arrays(x):
    s = x[0, 0]
    t = x[1, 1:2].sum()
    x[0, 0] = 3
    s2 = s * 2
    u = np.asarray(s)
    w = np.maximum(s, t)
    s += 1
    return s, s2, u, w, float(t) + x.sum(), x.shape[1] * t


@program(lambda r: (r.normal(size=6),))
def lambda_late_binding(x):
    scale = 2.0
    fs = [lambda v, k=k: v * k + scale for k in range(3)]
    scale = x[0]
    x[0] = 10
    return [f(x) for f in fs], scale


@program(lambda r: (r.normal(size=4), r.normal(size=4)))
def try_a_wrong_shape_then_go_on(x, y):
    x *= 2
    try:
        x[:3] += y
    except ValueError:
        y[0] = 7
    try:
        x[9] = y[0]
    except IndexError:
        x[3] = y[0] * x[1]
    return x, y


@program(lambda r: (r.normal(size=12),))
def structure_of_views_rebuilt_each_step(x):
    for k in (2, 3, 4, 6):
        m = x.reshape(k, -1)
        m -= m.mean(axis=0) * 0.5
        m[0], m[-1] = m[-1].copy(), m[0].copy()
        x = m.T.reshape(-1)
    return x


@program(lambda r: (r.normal(size=5),))
def self_assignment_through_every_spelling(x):
    x[:] = x
    x[...] = x[:] + 0
    x[np.arange(5)] = x[[4, 3, 2, 1, 0]]
    x[np.ones(5, bool)] = x
    x.flat = x[::-1] * 2
    x[None, :, None][0, 1] = x[2]
    x.itemset(0, 1) if hasattr(x, "itemset") else x.__setitem__(0, 1)
    return x


@program(lambda r: (r.normal(size=(3, 2)), r.normal(size=2)))
def loops_that_end_early_or_never_start(a, v):
    for row in a[:0]:
        v += row
    for k, row in enumerate(a):  # noqa: B007
        if row.sum() > v.sum() + 5:
            break
        v = v + row
    else:
        v = v * 2
    while k < 2:
        k += 1
    return v, k, a[k]


@program(lambda r: (r.normal(size=6),))
def global_like_registry(x):
    registry = {}

    def register(name, value):
        registry[name] = value
        return value

    a = register("a", x[:3])
    b = register("b", a)
    b *= 2
    registry["a"] = registry["a"] + x[3:]
    registry["b"] -= registry["a"]
    return x, registry["a"], a


@program(lambda r: (r.normal(size=(2, 3)), 2.5))
def augmented_operators_on_scalars(x, s):
    t = s
    t **= 2
    s -= x[0, 0]
    y = x
    y **= 2
    y //= 0.4
    x += s
    x %= 3.7
    s *= x[1]
    s += t
    return x, s, t
