"""The public functions, ufuncs, operators and methods: NumPy's on host arrays, definitions in rows elsewhere.

functions.py what a call does; public.py the public functions and ufuncs; operators.py; methods.py; attributes.py;
fallback.py calls without a definition; protocols.py NumPy's and Python's protocols, NEP 13 and 18 among them;
namespace.py NumPy's names; install.py installs the compiled fast path.
May import: transforms, arrays, rows, cpu, compiled.
"""
