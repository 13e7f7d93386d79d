"""Geometry and graphs: polygons, rotations, hulls, distances, shortest paths, ranks, spanning trees, flows."""

import heapq

import numpy as np

from tests.adversarial.program import program


@program(lambda r: (r.normal(size=(6, 2)),))
def polygon_area_and_centroid(p):
    q = np.roll(p, -1, axis=0)
    cross = p[:, 0] * q[:, 1] - q[:, 0] * p[:, 1]
    area = cross.sum() / 2
    length = np.hypot(*(q - p).T).sum()
    return area, ((p + q) * cross[:, None]).sum(0) / 6, length


def quaternion_product(a, b):
    w, x, y, z = a
    m = np.array([[w, -x, -y, -z], [x, w, -z, y], [y, z, w, -x], [z, -y, x, w]])
    return m @ b


@program(lambda r: (r.normal(size=4), r.normal(size=3)))
def quaternion_rotation(q, v):
    q = q / np.linalg.norm(q)
    conj = q * [1, -1, -1, -1]
    out = quaternion_product(quaternion_product(q, np.concatenate([[0], v])), conj)
    return out[1:], out[0], out[1:] @ out[1:] - v @ v


@program(lambda r: (r.normal(size=3), r.normal(size=(4, 3))))
def rodrigues(w, p):
    angle = np.sqrt(w @ w)
    x, y, z = w / angle
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    rot = np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k
    return p @ rot.T, np.trace(rot), np.linalg.det(rot)


@program(lambda r: (r.normal(size=(10, 2)),))
def convex_hull(p):
    pts = p[np.lexsort((p[:, 1], p[:, 0]))]

    def half(points):
        h = []
        for q in points:
            while len(h) > 1:
                a, b = h[-2], h[-1]
                if (b[0] - a[0]) * (q[1] - a[1]) - (b[1] - a[1]) * (q[0] - a[0]) > 0:
                    break
                h.pop()
            h.append(q)
        return h[:-1]

    hull = np.array(half(pts) + half(pts[::-1]))
    x, y = hull.T
    return 0.5 * abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))), hull.sum(axis=0)


@program(lambda r: (r.normal(size=(5, 2)), r.normal(size=(8, 2))), order=0)
def points_in_polygon(poly, p):
    inside = np.zeros(len(p), dtype=bool)
    j = len(poly) - 1
    for i in range(len(poly)):
        (xi, yi), (xj, yj) = poly[i], poly[j]
        crosses = (yi > p[:, 1]) != (yj > p[:, 1])
        at = (xj - xi) * (p[:, 1] - yi) / (yj - yi) + xi
        inside ^= crosses & (p[:, 0] < at)
        j = i
    return inside, inside.sum()


@program(lambda r: (r.uniform(-2, 2, (8, 2)), 0.6))
def clipped_polygon(p, edge):
    angle = np.arange(8) * np.pi / 4
    p = np.c_[np.cos(angle), np.sin(angle)] + 0.05 * p
    out = []
    for a, b in zip(p, np.roll(p, -1, 0)):
        if a[0] <= edge:
            out.append(a)
        if (a[0] <= edge) != (b[0] <= edge):
            t = (edge - a[0]) / (b[0] - a[0])
            out.append(a + t * (b - a))
    q = np.array(out)
    return 0.5 * (q[:, 0] * np.roll(q[:, 1], -1) - np.roll(q[:, 0], -1) * q[:, 1]).sum()


@program(lambda r: (r.normal(size=(5, 3)), r.normal(size=3)))
def rays_against_spheres(centres, d):
    d = d / np.linalg.norm(d)
    o = centres.mean(0) - 5 * d
    oc = o - centres
    b = oc @ d
    disc = b**2 - ((oc**2).sum(1) - 1.3)
    hit = disc > 0
    t = np.full(5, 20.0)
    t[hit] = -b[hit] - np.sqrt(disc[hit])
    k = t.argmin()
    normal = o + t[k] * d - centres[k]
    return t.min(), normal @ d, k if hit.any() else -1


@program(lambda r: (r.normal(size=(4, 3)), r.normal(size=(4, 3))))
def rigid_registration(a, b):
    ca, cb = a.mean(0), b.mean(0)
    u, _, vt = np.linalg.svd((a - ca).T @ (b - cb) + np.diag([3.0, 2.0, 1.0]))
    d = np.diag([1, 1, np.sign(np.linalg.det(u @ vt))])
    rot = vt.T @ d @ u.T
    return (a - ca) @ rot.T + cb - b


@program(lambda r: (r.normal(size=(4, 2)), 0.3))
def bezier_by_de_casteljau(p, t):
    track = []
    for u in (t, 0.5, 1 - t):
        q = p
        while len(q) > 1:
            q = (1 - u) * q[:-1] + u * q[1:]
        track.append(q[0])
    return np.array(track)


@program(lambda r: (r.normal(size=(3, 2)), r.normal(size=(5, 2))))
def barycentric_coordinates(tri, p):
    m = np.vstack([tri.T, np.ones(3)])
    lam = np.linalg.solve(m, np.vstack([p.T, np.ones(5)]))
    inside = (lam > 0).all(axis=0)
    return lam, np.where(inside, lam.min(0), -1)


@program(lambda r: (r.normal(size=(6, 2)), r.normal(size=(5, 2))))
def hausdorff_and_nearest(a, b):
    d = np.sqrt(((a[:, np.newaxis] - b[np.newaxis]) ** 2).sum(axis=2))
    near = d.argmin(axis=1)
    return max(d.min(0).max(), d.min(1).max()), b[near] - a, (d.min(1) < 0.5).sum()


@program(lambda r: (r.uniform(0.1, 1, (6, 6)),))
def floyd_warshall(d):
    np.fill_diagonal(d, 0)
    for k in range(6):
        np.minimum(d, d[:, k, None] + d[k], out=d)
    return d, d.max()


@program(lambda r: (r.uniform(0.1, 1, (7, 7)), r.random((7, 7)) < 0.5))
def dijkstra_with_a_heap(w, edge):
    edge[np.arange(6), np.arange(1, 7)] = True
    dist = np.full(7, np.inf)
    dist[0] = 0
    heap, done = [(0.0, 0)], set()
    while heap:
        d, u = heapq.heappop(heap)
        if u in done:
            continue
        done.add(u)
        for v in np.flatnonzero(edge[u]):
            new = d + w[u, v]
            if new < dist[v]:
                dist[v] = new
                heapq.heappush(heap, (new, int(v)))
    return dist


@program(lambda r: (r.normal(size=12) + 1.2, r.integers(0, 6, 12), r.integers(0, 6, 12)))
def bellman_ford_on_edges(w, a, b):
    d = np.full(6, 10.0)
    d[0] = 0.0
    before = np.full(6, -1)
    a[:3] = 0
    w = np.abs(w)
    for _ in range(5):
        for u, v, c in zip(a, b, w):
            if d[u] + c < d[v]:
                d[v] = d[u] + c
                before[v] = u
    return d, before


@program(lambda r: (r.random((5, 5)), 0.85))
def page_rank(links, damping):
    m = links / links.sum(0)
    rank = np.full(5, 0.2)
    for _ in range(20):
        rank = damping * m @ rank + (1 - damping) / 5
    return rank, np.argsort(rank)


@program(lambda r: (r.uniform(0, 1, 15),))
def minimum_spanning_tree(w):
    i, j = np.triu_indices(6, 1)
    parent = list(range(6))

    def find(a):
        return a if parent[a] == a else find(parent[a])

    total, picked = 0.0, []
    for k in np.argsort(w):
        a, b = find(int(i[k])), find(int(j[k]))
        if a != b:
            parent[a] = b
            total += w[k]
            picked.append(w[k])
    return total, np.array(picked), max(picked)


@program(lambda r: (r.uniform(0.1, 1, (6, 6)),))
def maximum_flow(cap):
    flow = np.zeros_like(cap)
    total = 0.0
    for _ in range(12):
        prev = np.full(6, -1)
        prev[0] = 0
        queue = [0]
        for u in queue:
            free = np.flatnonzero((cap[u] - flow[u] > 1e-9) & (prev < 0))
            prev[free] = u
            queue.extend(free.tolist())
        if prev[5] < 0:
            break
        path, v = [], 5
        while v:
            path.append((int(prev[v]), v))
            v = int(prev[v])
        push = min(cap[e] - flow[e] for e in path)
        for u, v in path:
            flow[u, v] += push
            flow[v, u] -= push
        total = total + push
    return total


@program(lambda r: (r.normal(size=(6, 6)), r.integers(0, 2, (6, 6))))
def laplacian_spectrum(w, mask):
    a = np.triu(w**2 * (mask + 0.1), 1)
    a += a.T
    lap = np.diag(a.sum(1)) - a
    values, vectors = np.linalg.eigh(lap)
    return values, vectors[:, 1] ** 2, a.sum(0) @ values


@program(lambda r: (r.integers(0, 6, 9), r.integers(0, 6, 9)), order=0, nums=False)
def topological_levels(a, b):
    adjacency = np.zeros((6, 6), dtype=bool)
    adjacency[np.minimum(a, b), np.maximum(a, b)] = True
    np.fill_diagonal(adjacency, False)
    level = np.zeros(6, int)
    for u in range(6):
        level[adjacency[u]] = np.maximum(level[adjacency[u]], level[u] + 1)
    closure = adjacency.copy()
    for _ in range(3):
        closure |= closure @ closure
    return level, closure, np.linalg.matrix_power(adjacency.astype(int), 2)


@program(lambda r: (r.uniform(0.1, 1, (4, 4)), r.random((6, 5))))
def random_walk_by_inverse_cdf(w, u):
    p = w / w.sum(1, keepdims=True)
    cdf = p.cumsum(1)
    node = np.zeros(5, dtype=int)
    logp = np.zeros(5)
    for row in u:
        new = (cdf[node] < row[:, None]).sum(1).clip(max=3)
        logp += np.log(p[node, new])
        node = new
    return logp, node


@program(lambda r: (r.uniform(0, 1, (4, 4)),))
def assignment_by_permutations(cost):
    import itertools

    best = min(itertools.permutations(range(4)), key=lambda p: cost[range(4), p].sum())
    return cost[np.arange(4), best].sum(), np.array(best)


@program(lambda r: (r.normal(size=(12, 2)),))
def nearest_pair_by_division(p):
    def closest(q):
        if len(q) <= 3:
            return min(np.hypot(*(a - b)) for i, a in enumerate(q) for b in q[:i])
        m = len(q) // 2
        d = min(closest(q[:m]), closest(q[m:]))
        strip = q[np.abs(q[:, 0] - q[m, 0]) < d]
        strip = strip[strip[:, 1].argsort()]
        for i in range(len(strip)):
            for b in strip[i + 1 : i + 7]:
                d = min(d, np.sqrt(((b - strip[i]) ** 2).sum()))
        return d

    return closest(p[p[:, 0].argsort()])


@program(lambda r: (r.uniform(-0.4, 0.4, 3), r.uniform(0.5, 1, 3)))
def forward_kinematics(angle, length):
    t = np.eye(3)
    ends = []
    for a, l in zip(angle, length):
        t = t @ np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])
        t = t @ np.array([[1, 0, l], [0, 1, 0], [0, 0, 1]])
        ends.append(t[:2, 2])
    jac = np.array([[-(ends[-1] - e)[1], (ends[-1] - e)[0]] for e in [np.zeros(2), *ends[:-1]]]).T
    return ends[-1], np.linalg.pinv(jac) @ (np.array([1.0, 1.0]) - ends[-1])
