"""Algorithms: tables filled by loops, searches, automata, parsers of bytes and lines, games, little solvers."""

import re
from collections import defaultdict

import numpy as np

from tests.adversarial.program import program


@program(lambda r: (r.random(6), r.random(7)))
def longest_common_subsequence_of_soft_matches(a, b):
    t = np.zeros((7, 8))
    score = np.exp(-10 * (a[:, None] - b) ** 2)
    for i in range(1, 7):
        for j in range(1, 8):
            t[i, j] = max(t[i - 1, j], t[i, j - 1], t[i - 1, j - 1] + score[i - 1, j - 1])
    return t[-1, -1], t[1:, 1:].diagonal()


@program(lambda r: (r.uniform(1, 3, 5), r.uniform(0, 1, 5)))
def optimal_binary_bracketing_with_memory(p, q):
    seen = {}

    def cost(i, j):
        if i >= j:
            return q[i] if i == j else 0.0
        if (i, j) not in seen:
            seen[i, j] = min(cost(i, k) + cost(k + 1, j) + p[i] * p[k] * p[j] for k in range(i, j))
        return seen[i, j]

    return cost(0, 4), seen[1, 3], len(seen)


@program(lambda r: (r.uniform(1, 2, (4, 5)),))
def grid_paths_with_diagonal_wavefronts(w):
    best = np.full((5, 6), np.inf)
    best[0, 0] = 0
    for d in range(4 + 5 - 1):
        i = np.arange(max(0, d - 4), min(4, d + 1))
        j = d - i
        best[i + 1, j + 1] = w[i, j] + np.minimum(np.minimum(best[i, j + 1], best[i + 1, j]), best[i, j])
    best[0, 0] = 0
    count = np.ones((4, 5), int)
    for i in range(1, 4):
        count[i, 1:] = count[i - 1, 1:]
        count[i] = count[i].cumsum()
    return best[1:, 1:], count


@program(lambda r: (r.normal(size=8),))
def heap_sort_in_place(x):
    def sift(a, lo, hi):
        while (child := 2 * lo + 1) < hi:
            if child + 1 < hi and a[child] < a[child + 1]:
                child += 1
            if a[lo] >= a[child]:
                return
            a[lo], a[child] = a[child], a[lo]
            lo = child

    n = len(x)
    for k in reversed(range(n // 2)):
        sift(x, k, n)
    for end in range(n - 1, 0, -1):
        x[0], x[end] = x[end], x[0]
        sift(x, 0, end)
    return x, np.sort(x) @ np.arange(8)


@program(lambda r: (r.normal(size=7),))
def insertion_shell_and_counting_sorts(x):
    a = x.copy()
    for k in range(1, 7):
        v, j = a[k], k
        while j > 0 and a[j - 1] > v:
            a[j] = a[j - 1]
            j -= 1
        a[j] = v
    for gap in (3, 1):
        for k in range(gap, 7):
            j = k
            while j >= gap and x[j - gap] < x[j]:
                x[[j, j - gap]] = x[[j - gap, j]]
                j -= gap
    keys = np.digitize(a, [-1, 0, 1])
    place = np.r_[0, np.bincount(keys, minlength=4).cumsum()[:-1]]
    out = np.empty(7)
    for key, v in zip(keys, a):
        out[place[key]] = v * (1 + key)
        place[key] += 1
    return a, x, out


@program(lambda r: (r.normal(size=(3, 4)),))
def simplex_tableau_pivots(a):
    t = np.zeros((4, 8))
    t[:3, :4] = np.abs(a) + 0.5
    t[:3, 4:7] = np.eye(3)
    t[:3, 7] = [4, 5, 6]
    t[3, :4] = [-3, -2, -4, -1]
    steps = 0
    while (t[3, :-1] < -1e-9).any() and steps < 10:
        j = t[3, :-1].argmin()
        with np.errstate(divide="ignore"):
            ratio = np.where(t[:3, j] > 1e-9, t[:3, -1] / t[:3, j], np.inf)
        i = ratio.argmin()
        t[i] /= t[i, j]
        for k in range(4):
            if k != i:
                t[k] -= t[k, j] * t[i]
        steps += 1
    return t[3, -1], t[:, -1], steps


@program(lambda r: (r.uniform(0.2, 1, 4), r.normal(size=6)))
def regular_expression_as_a_weighted_automaton(w, x):
    arcs = defaultdict(lambda: np.zeros((3, 3)))
    arcs["a"][0, 1] = w[0]
    arcs["b"][1, 1] = w[1]
    arcs["b"][1, 2] = w[2]
    arcs["c"][2, 0] = w[3]
    state = np.eye(3)[0]
    out = []
    for letter, bonus in zip("abbcab", x):
        state = state @ arcs[letter] * (1 + bonus**2)
        out.append(state.sum())
    return np.array(out), state, sorted(arcs)[0] == "a"


@program(lambda r: (r.normal(size=(2, 3)), r.normal(size=3)))
def assignments_read_line_by_line(w, x):
    source = """
    h = w @ x        # hidden
    h += 0.5
    y = tanh(h) * 2
    w[0] = y[1] * x
    z = h @ y - w.sum()
    x[1:] *= y
    """
    names = {"w": w, "x": x}
    scope = {"__builtins__": {}, "tanh": np.tanh}
    for line in source.strip().splitlines():
        exec(re.sub(r"#.*", "", line).strip(), scope, names)
    return names["h"], names["y"], names["z"], w, x


@program(lambda r: (r.normal(size=10),))
def records_packed_into_one_line(x):
    layout = {"gain": (0, 1), "taps": (1, 4), "state": (4, 10)}
    part = {name: x[lo:hi] for name, (lo, hi) in layout.items()}
    text = "filter x4; scale 0.5; filter x1; reset; filter x2"
    for verb, argument in re.findall(r"(\w+)\s*([\w.]*)", text):
        if verb == "filter":
            for _ in range(int(argument[1:])):
                part["state"][1:] = part["state"][:-1]
                part["state"][0] = np.tanh(part["taps"] @ part["state"][1:4] * part["gain"][0])
        elif verb == "scale":
            part["taps"] *= float(argument)
        elif verb == "reset":
            part["state"][::2] = part["gain"]
    return x


@program(lambda r: (r.uniform(0, 1, 9),))
def tic_tac_toe_valued_by_minimax(worth):
    lines = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]

    def value(board, player):
        for line in lines:
            if (s := sum(board[k] for k in line)) in (3, -3):
                return np.sign(s) * (1 + sum(worth[k] for k in line))
        free = [k for k in range(9) if not board[k]]
        if not free:
            return 0.0
        results = [value(board[:k] + (player,) + board[k + 1 :], -player) for k in free]
        return max(results) if player == 1 else min(results)

    return value((1, -1, 1, 0, -1, 0, 0, 0, 0), 1), value((1, -1, 0, -1, 1, 0, 0, 0, -1), 1)


@program(lambda r: (r.normal(size=(5, 5)),))
def reachability_and_strongest_paths(a):
    s = np.exp(-np.abs(a))
    np.fill_diagonal(s, 1)
    for k in range(5):
        np.maximum(s, np.outer(s[:, k], s[k]), out=s)
    reach = np.eye(5, dtype=bool) | (a > 0.3)
    for _ in range(3):
        reach = reach @ reach
    group = np.array([np.flatnonzero(row & col)[0] for row, col in zip(reach, reach.T)])
    return s, reach, np.bincount(group, weights=a.diagonal(), minlength=5)


@program(lambda r: (r.uniform(0.5, 1.5, 12),))
def elevator_simulation_with_queues(demand):
    floor, going, load, served = 0, 1, 0.0, np.zeros(4)
    waiting = demand.reshape(3, 4).sum(0)
    log = []
    for t in range(9):
        if waiting[floor] > 0.2:
            taken = min(waiting[floor], 1.3)
            waiting[floor] -= taken
            load = load + taken
        if floor == 3 or t % 4 == 3:
            served[floor] += load
            load *= 0
        log.append(load + waiting.sum())
        going = -going if not 0 <= floor + going < 4 else going
        floor += going
    return np.array(log), served, waiting


@program(lambda r: (r.normal(size=6), r.normal(size=(6, 6))))
def biconjugate_gradients_that_stop_early(b, a):
    a = a + 8 * np.eye(6)
    x, r = np.zeros(6), b.copy()
    shadow, p = r.copy(), r.copy()
    for _ in range(3):
        ap = a @ p
        alpha = (shadow @ r) / (shadow @ ap)
        s = r - alpha * ap
        if (s @ s) ** 0.5 < 1e-8:
            x += alpha * p
            break
        t = a @ s
        omega = (t @ s) / (t @ t)
        x += alpha * p + omega * s
        new = s - omega * t
        p = new + (shadow @ new) / (shadow @ r) * alpha / omega * (p - omega * ap)
        r[:] = new
    return x, b - a @ x


@program(lambda r: (r.normal(size=16) + 1j * r.normal(size=16),))
def bluestein_and_bit_reversal(x):
    n = 16
    w = np.exp(-1j * np.pi * np.arange(n) ** 2 / n)
    chirp = np.concatenate([w.conj(), [0], w[:0:-1].conj()])
    b = w * np.fft.ifft(np.fft.fft(x * w, 2 * n) * np.fft.fft(chirp))[:n]
    reverse = np.array([int(f"{k:04b}"[::-1], 2) for k in range(n)])
    y = x[reverse]
    size = 2
    while size <= n:
        v = y.reshape(-1, size)
        odd = v[:, size // 2 :] * np.exp(-2j * np.pi * np.arange(size // 2) / size)
        even = v[:, : size // 2].copy()
        v[:, : size // 2] = even + odd
        v[:, size // 2 :] = even - odd
        size *= 2
    return b - np.fft.fft(x), y


@program(lambda r: (r.uniform(0, 4, (7, 2)),))
def tree_of_points_searched(points):
    def build(rows, depth=0):
        if len(rows) == 0:
            return None
        rows = rows[np.argsort(rows[:, depth % 2])]
        m = len(rows) // 2
        return rows[m], build(rows[:m], depth + 1), build(rows[m + 1 :], depth + 1)

    def nearest(node, q, depth=0, best=None):
        if node is None:
            return best
        point, left, right = node
        d = ((point - q) ** 2).sum()
        best = d if best is None or d < best else best
        gap = q[depth % 2] - point[depth % 2]
        near, far = (left, right) if gap < 0 else (right, left)
        best = nearest(near, q, depth + 1, best)
        return nearest(far, q, depth + 1, best) if gap**2 < best else best

    root = build(points[1:])
    return nearest(root, points[0]), root[0], nearest(root, np.array([2.0, 2.0]))


@program(lambda r: (r.normal(size=6), r.uniform(1, 2, 2)))
def pendulum_with_event_and_early_return(x, p):
    def swing(theta, omega, length):
        for step in range(40):
            omega = omega - 0.05 * 9.8 / length * np.sin(theta)
            before, theta = theta, theta + 0.05 * omega
            if before * theta < 0:
                t = before / (before - theta)
                return step, step + t, omega
        return -1, theta, omega

    a = [swing(1 + 0.1 * v, 0.0, p[0])[1:] for v in x[:2]]
    b = swing(-1.2, x[2] * 0.1, length=p[1])
    return np.array(a), b[0], b[2]


@program(lambda r: (r.normal(size=(4, 4)), r.uniform(0.1, 0.9, 4)))
def hidden_states_smoothed_in_log_space(a, p):
    logs = a - np.log(np.exp(a).sum(1, keepdims=True))
    alpha = np.log(p / p.sum())
    rows = [alpha]
    for obs in (0, 2, 1):
        alpha = np.logaddexp.reduce(alpha[:, None] + logs, axis=0) + logs[:, obs]
        rows.append(alpha)
    path = [rows[-1].argmax()]
    for row in rows[-2::-1]:
        path.insert(0, (row + logs[:, path[0]]).argmax())
    return np.stack(rows), path, np.logaddexp.reduce(alpha)


@program(lambda r: (r.normal(size=(4, 4)), r.normal(size=4)))
def newton_on_a_system_with_a_broyden_update(a, b):
    f = lambda x: a @ np.tanh(x) + 4 * x - b
    x = np.zeros(4)
    jacobian = a + 4 * np.eye(4)
    residual = f(x)
    for _ in range(2):
        step = np.linalg.solve(jacobian, -residual)
        x = x + step
        if np.linalg.norm(step) < 1e-12:
            return x, jacobian
        new = f(x)
        jacobian += np.outer(new - residual - jacobian @ step, step) / (step @ step)
        residual = new
    return x, jacobian
