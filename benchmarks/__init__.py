"""Benchmarks: each file is a program that says what it measures."""
