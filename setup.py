"""Everything is declared in pyproject.toml but the extension module, which is optional: without a C compiler at hand
minnp is installed without it, and its Python code does the same work."""

from setuptools import Extension, setup

setup(ext_modules=[Extension("minnp.core._quick", ["minnp/core/_quick.c"], optional=True)])
