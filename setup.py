"""Everything is declared in pyproject.toml but the extension module, which is optional: without a C compiler at hand
minnp is installed without it, and its Python code does the same work."""

import zlib
from pathlib import Path

from setuptools import Extension, setup

source = "minnp/core/_quick.c"
checksum = zlib.crc32(Path(source).read_bytes())  # by which minnp/core/compiled.py knows a library of other code
setup(ext_modules=[Extension("minnp.core._quick", [source], define_macros=[("SOURCE", str(checksum))], optional=True)])
