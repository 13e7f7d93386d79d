"""Rows: operators (each a `Primitive` in TABLE), the values they are called on, and how a call finds its kernel.

primitive.py the table; value.py tracers and device buffers; dispatch.py `bind`, and the facts of NumPy's functions;
on_device.py rows on buffers; policy.py the choice of a backend; report.py what ran where; pytree.py nested containers;
state.py the state of threads and contexts.
May import: cpu, compiled.
"""
