"""Everything is declared in pyproject.toml but the extension modules, which are optional: without a C compiler at hand
minnp is installed without them, and its Python code does the same work."""

import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy
from setuptools import Extension, setup

C = Path("minnp/core/compiled")
HEADERS = [str(path) for path in sorted(C.glob("*.h"))]
# how minnp/core/compiled/__init__.py knows a library of other code
CHECKSUM = zlib.crc32(b"".join(path.read_bytes() for path in sorted(C.glob("*.[ch]"))))


def extension(name: str, *flags: str, include: Sequence[str] = ()) -> Extension:
    """minnp.core.compiled._NAME"""
    return Extension(
        f"minnp.core.compiled._{name}",
        [str(C / f"{name}.c")],
        depends=HEADERS,
        define_macros=[("SOURCE", str(CHECKSUM))],
        include_dirs=list(include),
        extra_compile_args=list(flags),
        optional=True,
    )


VECTORS = () if sys.platform == "win32" else ("-O3", "-fno-math-errno", "-fno-trapping-math", "-pthread")
setup(ext_modules=[extension("quick", include=[numpy.get_include()]), extension("team", *VECTORS)])
