"""Loops that stay loops: read from the source of the function that jit runs, typed by the values they meet, compiled.

`source.py` finds them and hands them over, `runtime.py` decides at run time, `frontend.py` (with `numbers.py`,
`arrays.py`, `chosen.py` and `building.py`) makes typed programs of them (`ir.py`),
`lowering.py` LLVM's instructions of these.

May import: llvm, graph, api, transforms, arrays, rows, cpu, compiled.
"""

from .ir import VECTOR
from .runtime import CLOSURES, LISTS, RAN, followed, staged, unrolled, whole
from .source import fills_lists

__all__ = ["CLOSURES", "LISTS", "RAN", "VECTOR", "fills_lists", "followed", "staged", "unrolled", "whole"]
