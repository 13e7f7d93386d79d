"""Arrays: the classes of arrays, writes to their memory, and devices.

array.py `ndarray`, reading and wrapping; writing.py writes; devices.py `with gpu(0):`; saved.py the copies that traces
keep; guard.py what other libraries see of a traced host array; flags.py `x.flags`; hooks.py hooks of users' classes.
May import: rows, cpu, compiled.
"""
