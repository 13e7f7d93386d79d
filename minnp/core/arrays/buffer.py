"""The buffer protocol of arrays, `memoryview(x)`: on Python 3.11 a base class made for it, since 3.12 `__buffer__`.

A class can export a buffer since PEP 688. Before, only a type made in C can: PyType_FromSpec, reached through ctypes,
makes one whose only slot passes the request on to the NumPy array underneath. An exception cannot leave that slot, so
where NumPy refuses (a strided array asked for flat bytes), 3.11 reports a SystemError; c/conversions.h, where it was
built, reports NumPy's own error.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Callable
from typing import Any

_BF_GETBUFFER = 1  # Py_bf_getbuffer
_DEFAULT, _BASETYPE = 1 << 18, 1 << 10  # Py_TPFLAGS_DEFAULT (its version tag bit), Py_TPFLAGS_BASETYPE


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    )


_GET_BUFFER = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
_ALIVE: list = []  # what the C side points to


def exporter(memory: Callable[[Any, int], Any]) -> type:
    """A base class whose instances export the buffer of `memory(instance, what is asked for)`."""
    if sys.version_info >= (3, 12):
        give = lambda x, flags: memory(x, flags).__buffer__(flags)
        return type("Exporter", (), {"__slots__": (), "__buffer__": give})
    get_buffer = _GET_BUFFER(("PyObject_GetBuffer", ctypes.pythonapi))

    def export(x: Any, view: int, flags: int) -> int:
        status = -1
        with contextlib.suppress(BaseException):  # an exception ends here: C code called us
            status = get_buffer(memory(x, flags), view, flags)
        return status

    function = _GET_BUFFER(export)
    slots = (_Slot * 2)(_Slot(_BF_GETBUFFER, ctypes.cast(function, ctypes.c_void_p)), _Slot(0, None))
    spec = _Spec(b"minnp.core.arrays.buffer.Exporter", 0, 0, _DEFAULT | _BASETYPE, slots)
    _ALIVE.extend((function, slots, spec))
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_Spec))(("PyType_FromSpec", ctypes.pythonapi))
    return make(spec)
