"""Rows: what an operator is (one `Primitive` in TABLE), the values it is called on, and how a call finds its kernel.

primitive.py the table; value.py tracers and device buffers; dispatch.py `bind`; on_device.py rows on buffers; policy.py
which backend; report.py what ran where; pytree.py nested containers; state.py what is per thread.
May import: cpu, compiled.
"""
