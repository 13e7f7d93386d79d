"""Machine code for jit, through LLVM where llvmlite is installed; program.py says what is compiled.

May import: graph, api, transforms, arrays, rows, cpu, compiled.
"""
