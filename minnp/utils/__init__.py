"""Helpers MinPy programs import: gradient_checker and minprof."""
