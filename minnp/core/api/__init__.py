"""The public functions, ufuncs, operators and methods: NumPy's on host arrays, definitions in rows elsewhere.

functions.py what a call means; public.py the functions and ufuncs users see; operators.py; methods.py; attributes.py;
fallback.py calls without a definition; protocols.py what other libraries ask, NEP 13 and 18 among it;
namespace.py NumPy's names; install.py the compiled fast path.
May import: transforms, arrays, rows, cpu, compiled.
"""
