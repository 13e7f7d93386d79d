"""SciPy's namespaces on our arrays: `from minnp.scipy import special, stats, optimize` (needs SciPy)."""
