"""SciPy's namespaces on our arrays, differentiable: `from minnp.scipy import special, stats, linalg` (needs SciPy)."""
