"""The public functions, ufuncs, operators and methods: NumPy's on host arrays, definitions in rows elsewhere.

functions.py public functions; ufuncs.py; operators.py; methods.py; attributes.py; fallback.py calls without a
definition; numpy_protocols.py NEP 13 and 18; protocols.py other libraries' protocols; namespace.py NumPy's names.
quick.py, short.py and install.py are the short ways of small calls.
May import: transforms, arrays, rows, cpu, compiled.
"""
