"""Tables, sequences, sets and bits: integers, comparisons and indices that depend on data."""

import numpy as np


def floyd_warshall(path):
    for k in range(len(path)):
        path[:] = np.minimum(path, path[:, k : k + 1] + path[k, :])
    return path


def nussinov(seq):
    """The most pairs (bases whose numbers sum to 3) that a folded sequence can have."""
    n = len(seq)
    table = np.zeros((n, n), dtype=np.int64)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            best = max(table[i, j - 1], table[i + 1, j])
            if i < j - 1:
                best = max(best, table[i + 1, j - 1] + (seq[i] + seq[j] == 3))
            for k in range(i + 1, j):
                best = max(best, table[i, k] + table[k + 1, j])
            table[i, j] = best
    return table


def crc16(data):
    """CRC-16 of bytes, polynomial 0x1021, first bit first, from 0xFFFF."""
    crc = 0xFFFF
    for byte in data:
        crc ^= int(byte) << 8
        for _ in range(8):
            if crc & 0x8000:
                crc = (crc << 1) ^ 0x1021
            else:
                crc = crc << 1
        crc &= 0xFFFF
    return crc


def viterbi(start, move, emit):
    """The likeliest path of hidden states; emit[t, s] is how likely the observation at t is in s; all in logarithms."""
    steps, states = emit.shape
    score = np.empty((steps, states))
    back = np.zeros((steps, states), dtype=np.int64)
    for s in range(states):
        score[0, s] = start[s] + emit[0, s]
    for t in range(1, steps):
        for s in range(states):
            best, at = score[t - 1, 0] + move[0, s], 0
            for r in range(1, states):
                other = score[t - 1, r] + move[r, s]
                if other > best:
                    best, at = other, r
            score[t, s] = best + emit[t, s]
            back[t, s] = at
    path = np.empty(steps, dtype=np.int64)
    path[-1] = np.argmax(score[-1])
    for t in range(steps - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return path, np.max(score[-1])


def smith_waterman(a, b, match, mismatch, gap):
    """The best local alignment: its table of scores, and the pairs of positions on its path."""
    n, m = len(a), len(b)
    table = np.zeros((n + 1, m + 1), dtype=np.int64)
    best, bi, bj = 0, 0, 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            same = match if a[i - 1] == b[j - 1] else mismatch
            here = max(0, table[i - 1, j - 1] + same, table[i - 1, j] - gap, table[i, j - 1] - gap)
            table[i, j] = here
            if here > best:
                best, bi, bj = here, i, j
    pairs = np.empty((min(n, m), 2), dtype=np.int64)
    count = 0
    while table[bi, bj] > 0:
        same = match if a[bi - 1] == b[bj - 1] else mismatch
        if table[bi, bj] == table[bi - 1, bj - 1] + same:
            bi, bj = bi - 1, bj - 1
            pairs[count, 0], pairs[count, 1] = bi, bj
            count += 1
        elif table[bi, bj] == table[bi - 1, bj] - gap:
            bi -= 1
        else:
            bj -= 1
    return table, pairs[:count][::-1]


def quicksort(a):
    """In place, by hand: an explicit stack, the middle as pivot, short parts by insertion."""
    low, high = np.empty(128, dtype=np.int64), np.empty(128, dtype=np.int64)
    low[0], high[0], top = 0, len(a) - 1, 1
    while top > 0:
        top -= 1
        lo, hi = low[top], high[top]
        if hi - lo < 8:
            for i in range(lo + 1, hi + 1):
                item, j = a[i], i - 1
                while j >= lo and a[j] > item:
                    a[j + 1] = a[j]
                    j -= 1
                a[j + 1] = item
            continue
        pivot, i, j = a[(lo + hi) // 2], lo, hi
        while i <= j:
            while a[i] < pivot:
                i += 1
            while a[j] > pivot:
                j -= 1
            if i <= j:
                a[i], a[j] = a[j], a[i]
                i += 1
                j -= 1
        # the longer part first: then the shorter is done first, and the stack stays short
        if j - lo < hi - i:
            low[top], high[top] = i, hi
            low[top + 1], high[top + 1] = lo, j
        else:
            low[top], high[top] = lo, j
            low[top + 1], high[top + 1] = i, hi
        top += 2
    return a


def sort_part(a, lo, hi):
    if lo < hi:
        i = lo
        for j in range(lo, hi):
            if a[j] < a[hi]:
                a[i], a[j] = a[j], a[i]
                i += 1
        a[i], a[hi] = a[hi], a[i]
        sort_part(a, lo, i - 1)
        sort_part(a, i + 1, hi)


def quicksort_recursive(a):
    sort_part(a, 0, len(a) - 1)
    return a


def sieve(n):
    prime = np.ones(n + 1, dtype=np.bool_)
    prime[:2] = False
    p = 2
    while p * p <= n:
        if prime[p]:
            prime[p * p :: p] = False
        p += 1
    return np.nonzero(prime)[0]


def find(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


def union_find(n, pairs):
    """For each node the least node it is connected with, and the number of components."""
    parent = np.arange(n)
    components = n
    for a, b in pairs:
        a, b = find(parent, a), find(parent, b)
        if a != b:
            parent[max(a, b)] = min(a, b)
            components -= 1
    for i in range(n):
        parent[i] = find(parent, i)
    return parent, components
