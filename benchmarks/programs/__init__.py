"""Real NumPy programs from many domains; compare.py runs each with NumPy and with minnp.

A program is one file with `run(np, size) -> results`, SMALL and MODERATE (sizes for a test and for a measurement).
It uses nothing but the module it is given.
"""
