"""SciPy's and scikit-learn's own tests of their array API mode, with minnp.numpy as the namespace."""
