"""Statistics: quantiles, weights, mixtures, kernels, resampling, robust estimates, contingency, time series."""

import numpy as np

from tests.adversarial.program import program


@program(lambda r: (r.normal(size=11),))
def quantiles_by_hand_and_by_name(x):
    s = np.sort(x)
    h = (len(x) - 1) * 0.3
    k = int(h)
    mine = s[k] + (h - k) * (s[k + 1] - s[k])
    return mine - np.quantile(x, 0.3), np.percentile(x, [25, 75]), np.quantile(x, 0.9, method="lower"), np.median(x)


@program(lambda r: (r.normal(size=9), r.uniform(0.1, 1, 9)))
def weighted_median_and_variance(x, w):
    order = x.argsort()
    c = w[order].cumsum()
    k = np.searchsorted(c, c[-1] / 2)
    m = np.average(x, weights=w)
    return x[order[k]], ((x - m) ** 2 * w).sum() / w.sum(), m


@program(lambda r: (r.normal(size=20), np.array([-1.0, 1.0]) + 0.1 * r.normal(size=2)))
def mixture_by_expectation_maximisation(x, mu):
    sigma, pi = np.ones(2), np.array([0.5, 0.5])
    for _ in range(6):
        logp = np.log(pi) - 0.5 * ((x[:, None] - mu) / sigma) ** 2 - np.log(sigma)
        logp -= logp.max(1, keepdims=True)
        r = np.exp(logp)
        r /= r.sum(axis=1, keepdims=True)
        n = r.sum(0)
        mu = (r * x[:, None]).sum(0) / n
        sigma = np.sqrt((r * (x[:, None] - mu) ** 2).sum(0) / n + 0.05)
        pi = n / n.sum()
    return mu, sigma, pi


@program(lambda r: (r.normal(size=12), r.normal(size=5), r.uniform(0.3, 0.8)))
def kernel_density_and_regression(x, at, h):
    k = np.exp(-0.5 * ((at[:, None] - x) / h) ** 2)
    density = k.mean(axis=1) / (h * np.sqrt(2 * np.pi))
    return density, k @ np.sin(x) / k.sum(axis=1)


@program(lambda r: (r.normal(size=10),))
def bootstrap_with_drawn_indices(x):
    rng = np.random.default_rng(11)
    means = np.array([rng.choice(x, size=len(x)).mean() for _ in range(8)])
    index = rng.integers(0, 10, (6, 10))
    return means.std(), np.sort(x[index].mean(1)), x[rng.permutation(10)][:3]


@program(lambda r: (r.normal(size=10),))
def jackknife(x):
    drop = ~np.eye(10, dtype=bool)
    leave = np.array([np.var(x[row]) for row in drop])
    pseudo = 10 * x.var() - 9 * leave
    return pseudo.mean(), pseudo.std(ddof=1) / np.sqrt(10)


@program(lambda r: (r.normal(size=12),))
def welford(x):
    n, mean, m2, m3 = 0, 0.0, 0.0, 0.0
    for v in x:
        n += 1
        d = v - mean
        dn = d / n
        m3 += d * dn * dn * (n - 1) * (n - 2) - 3 * dn * m2
        m2 += d * dn * (n - 1)
        mean += dn
    return mean - x.mean(), m2 / n, m3 / n


@program(lambda r: (r.normal(size=10), r.normal(size=10)))
def rank_correlations(x, y):
    rx, ry = x.argsort().argsort(), y.argsort().argsort()
    spearman = np.corrcoef(rx, ry)[0, 1]
    i, j = np.triu_indices(10, 1)
    kendall = np.sign((x[i] - x[j]) * (y[i] - y[j])).mean()
    return spearman, kendall, np.corrcoef(x, y)[0, 1], np.cov(x, y, ddof=0)


@program(lambda r: (r.normal(size=11),))
def trimmed_and_winsorised(x):
    s = np.sort(x)
    w = x.copy()
    w[x < s[2]] = s[2]
    w[x > s[-3]] = s[-3]
    mad = np.median(np.abs(x - np.median(x)))
    z = 0.6745 * (x - np.median(x)) / mad
    return s[2:-2].mean(), w.mean(), mad, x[np.abs(z) < 2.5].mean()


@program(lambda r: (r.normal(size=(12, 2)), r.normal(size=12)))
def huber_regression_by_reweighting(x, y):
    y[0] += 8
    w = np.ones(12)
    for _ in range(6):
        beta = np.linalg.solve((x.T * w) @ x, x.T @ (w * y))
        r = np.abs(y - x @ beta)
        w = np.where(r < 1, 1, 1 / np.maximum(r, 1))
    return beta, w


@program(lambda r: (r.integers(0, 3, 20), r.integers(0, 4, 20), r.normal(size=20)))
def contingency_table(a, b, x):
    t = np.zeros((3, 4))
    np.add.at(t, (a, b), 1)
    e = t.sum(1, keepdims=True) * t.sum(0) / t.sum()
    chi2 = ((t - e) ** 2 / (e + 1)).sum()
    s = np.zeros((3, 4))
    np.add.at(s, (a, b), x)
    h, _, _ = np.histogram2d(a, b, bins=[3, 4], weights=x)
    return chi2, s / (t + 1), np.allclose(h, s)


@program(lambda r: (r.normal(size=15), r.normal(size=2)))
def autoregression_likelihood(x, phi):
    lagged = np.lib.stride_tricks.sliding_window_view(x, 2)[:-1, ::-1]
    resid = x[2:] - lagged @ phi
    s2 = resid.var()
    fit = np.linalg.lstsq(lagged, x[2:], rcond=None)[0]
    return -0.5 * len(resid) * np.log(s2), fit, (resid[1:] * resid[:-1]).sum() / (resid @ resid)


@program(lambda r: (r.normal(size=(8, 3)),))
def mahalanobis_and_whitening(x):
    d = x - x.mean(0)
    c = d.T @ d / 7 + 0.2 * np.eye(3)
    values, vectors = np.linalg.eigh(c)
    white = d @ vectors / np.sqrt(values) @ vectors.T
    m = np.einsum("ni,ij,nj->n", d, np.linalg.inv(c), d)
    return white, m - (white**2).sum(1), np.sqrt(m)


@program(lambda r: (r.normal(size=4), r.normal(size=12)))
def metropolis_with_given_draws(x, noise):
    rng = np.random.default_rng(0)
    logp = lambda v: -0.5 * (v**2).sum() - 0.1 * (v**4).sum()
    now, kept = x, []
    for k in range(10):
        step = now + 0.5 * noise[k : k + 1] * np.roll(x, k)
        if np.log(rng.random()) < logp(step) - logp(now):
            now = step
        kept.append(now.sum())
    return kept, now


@program(lambda r: (r.normal(size=9), r.integers(0, 3, 9)))
def analysis_of_variance(x, g):
    g[:6] = [0, 0, 1, 1, 2, 2]
    groups = [x[g == k] for k in range(3)]
    between = sum(len(v) * (v.mean() - x.mean()) ** 2 for v in groups) / 2
    within = sum(((v - v.mean()) ** 2).sum() for v in groups) / 6
    return between / within, [v.max() for v in groups]


@program(lambda r: (r.normal(size=12),))
def empirical_distribution_distance(x):
    s = np.sort(x)
    f = 1 / (1 + np.exp(-1.7 * s))
    up = np.arange(1, 13) / 12 - f
    down = f - np.arange(12) / 12
    lorenz = np.cumsum(s - s[0]) / (s - s[0]).sum()
    return max(up.max(), down.max()), 1 - 2 * lorenz.mean(), np.concatenate([up, down]).max()


@program(lambda r: (r.normal(size=10), r.random(10) < 0.3))
def masked_array_means(x, bad):
    bad[0], bad[1] = True, False
    m = np.ma.masked_array(x, mask=bad)
    y = m.filled(0.0)
    return y.sum() / (~bad).sum(), np.ma.masked_less(x, -9).filled(1.0), m.count()


@program(lambda r: (r.uniform(0.5, 3, 6), r.uniform(0.5, 3)))
def gamma_function_by_lanczos(x, a):
    g = [676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905]
    g += [-0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7]
    s = 0.99999999999980993 + sum(c / (x + k) for k, c in enumerate(g))
    t = x + 6.5
    logg = 0.5 * np.log(2 * np.pi) + (x - 0.5) * np.log(t) - t + np.log(s)
    return logg, (a - 1) * np.log(x) - x - logg


@program(lambda r: (r.normal(size=(6, 2)), r.integers(0, 2, 6)))
def hamming_and_nearest_neighbours(x, label):
    d = np.abs(x[:, None] - x).sum(-1)
    d[np.diag_indices_from(d)] = np.inf
    near = np.argsort(d, axis=1)[:, :3]
    votes = label[near].sum(1) > 1
    return np.take_along_axis(d, near, axis=1), votes == label, (d[:, near[:, 0]].diagonal()).sum()


@program(lambda r: (r.uniform(0, 1, 8), r.uniform(0, 1, 8)))
def stick_breaking_and_entropy(v, w):
    p = v * np.concatenate([[1.0], np.cumprod(1 - v)[:-1]])
    q = np.diff(np.sort(w), prepend=0.0, append=1.0)
    return p, -(q * np.log(q + 1e-3)).sum(), (p * np.log((p + 1e-3) / (q[:8] + 1e-3))).sum()


@program(lambda r: (r.normal(size=(3, 3)), r.integers(0, 3, 30)))
def transition_counts_as_a_prior(x, chain):
    counts = np.zeros((3, 3))
    for k in range(1, len(chain)):
        counts[chain[k - 1], chain[k]] += 1
    p = np.exp(x) + counts
    p /= p.sum(axis=1, keepdims=True)
    pi = np.linalg.matrix_power(p, 16)[0]
    return (counts * np.log(p)).sum(), pi


@program(lambda r: (r.uniform(0, 5, 8), r.random(8) < 0.7))
def survival_curve(t, died):
    order = np.argsort(t)
    t, died = t[order], died[order]
    at_risk = np.arange(8, 0, -1)
    s = np.cumprod(1 - died / at_risk)
    return s, np.sum(np.diff(t) * s[:-1]), t[np.argmax(s < 0.9)]


@program(lambda r: (r.normal(size=6), r.uniform(1, 2, 6)))
def meta_analysis_by_a_fixed_point(effect, se):
    tau2 = 0.1
    for _ in range(8):
        w = 1 / (se**2 + tau2)
        mu = (w * effect).sum() / w.sum()
        tau2 = max(0.01, (w**2 * ((effect - mu) ** 2 - se**2)).sum() / (w**2).sum() + 2.0)
    return mu, tau2
