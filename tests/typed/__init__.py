"""minnp.numpy as type checkers see it."""
