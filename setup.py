"""Everything is declared in pyproject.toml but the extension modules, which are optional: without a C compiler at hand
minnp is installed without them, and its Python code does the same work."""

import sys
import zlib
from pathlib import Path

from setuptools import Extension, setup


def extension(name: str, *flags: str) -> Extension:
    """minnp.core.NAME; the checksum is how minnp/core/counting.py knows a library of other code."""
    source = f"minnp/core/{name}.c"
    macros = [("SOURCE", str(zlib.crc32(Path(source).read_bytes())))]
    return Extension(
        f"minnp.core.{name}", [source], define_macros=macros, extra_compile_args=list(flags), optional=True
    )


VECTORS = () if sys.platform == "win32" else ("-O3", "-fno-math-errno", "-fno-trapping-math", "-pthread")
setup(ext_modules=[extension("_quick"), extension("_team", *VECTORS)])
