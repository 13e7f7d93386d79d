"""Programs as users write them, run through minnp in every way it has and compared with NumPy."""
