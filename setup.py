"""Everything is declared in pyproject.toml but the extension modules, which are optional: without a compiler at hand
minnp is installed without them, and its Python code does the same work."""

import os
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy
from setuptools import Extension, setup

COMPILED = Path("minnp/core/compiled")
SOURCES = sorted(path for path in COMPILED.iterdir() if path.suffix in (".c", ".h", ".cpp", ".hpp"))
# how minnp/core/compiled/__init__.py knows a library of other code
CHECKSUM = zlib.crc32(b"".join(path.read_bytes() for path in SOURCES))


def extension(source: str, *flags: str, include: Sequence[str] = ()) -> Extension:
    """minnp.core.compiled._NAME of NAME.c or NAME.cpp"""
    return Extension(
        f"minnp.core.compiled._{Path(source).stem}",
        [str(COMPILED / source)],
        depends=[str(path) for path in SOURCES],
        define_macros=[("SOURCE", str(CHECKSUM))],
        include_dirs=list(include),
        extra_compile_args=list(flags),
        optional=True,
    )


WINDOWS = sys.platform == "win32"
# Python's own flags ask for what a debugger needs, three quarters of a library: whoever wants that says -g
SMALL = () if WINDOWS or "-g" in os.environ.get("CFLAGS", "").split() else ("-g0",)
VECTORS = () if WINDOWS else ("-O3", "-fno-math-errno", "-fno-trapping-math", "-pthread")
setup(
    ext_modules=[
        extension(
            "fastpath.cpp",
            *(["/std:c++17"] if WINDOWS else ["-std=c++17", "-fvisibility=hidden", *SMALL]),
            include=[numpy.get_include()],
        ),
        extension("team.c", *VECTORS, *SMALL),
    ]
)
