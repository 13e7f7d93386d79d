"""Arrays: the handle users hold, the one way memory is written, and the devices arrays live on.

array.py `ndarray`, reading and wrapping; writing.py writes; devices.py `with gpu(0):`; saved.py what traces keep of a
call; flags.py, hooks.py what NumPy and Python ask of an array.
May import: rows, cpu, compiled.
"""
