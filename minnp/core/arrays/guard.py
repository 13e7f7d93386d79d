"""What other libraries' code sees of a host array: its memory or, while a trace follows the array, a guard.

A host array is a numpy.ndarray, so C code reads its fields (data, shape, strides, dtype) and asks nobody. While the
array holds a traced value, those fields are another array's: read-only, of objects, every element the same `Guard`,
which raises TracedValueError when anything is asked of it. So foreign code gets an error, never numbers without their
gradient. Fields are exchanged whole, so NumPy frees each with the array that has it last.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as onp

from ... import errors
from ..compiled import fastpath

_plain, _BYTE = onp.ndarray.view, onp.dtype("u1")


class Guard:
    """The element of an array that a trace follows: asked for anything, it raises TracedValueError."""

    __slots__ = ()

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise errors.TracedValueError(
            "an array that was written with traced values was about to leave minnp, where the gradient would be lost. "
            "Use minnp.numpy functions on it, or np.stop_gradient(x) to cut the gradient on purpose"
        )

    __hash__ = _refuse

    def __getattr__(self, name: str) -> Any:  # NumPy calls x.exp() of an object for np.exp, and x.dtype of a scalar
        if name.startswith("__"):  # what is asked to see whether it exists
            raise AttributeError(name)
        return self._refuse()


_ARITHMETIC = "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or"
_OTHERS = "neg pos abs invert lt le eq ne gt ge bool int float complex index round call"
_OTHERS += " str repr format bytes reduce reduce_ex copy deepcopy array"
for _name in [p + n for n in _ARITHMETIC.split() for p in ("", "r", "i")] + _OTHERS.split():
    setattr(Guard, f"__{_name}__", Guard._refuse)


# ------------------------------------------------------------------ the fields of numpy.ndarray
# PyArrayObject_fields of numpy/ndarraytypes.h, after the head of every object: data to flags, the list of weak
# references, the description of exported buffers and who allocated. These two lists stay where they are, the object's.
_HEAD, _WORD = object.__basicsize__, ctypes.sizeof(ctypes.c_void_p)
_PARTS = [(_HEAD, ctypes.c_char * (7 * _WORD)), (_HEAD + 9 * _WORD, ctypes.c_char * _WORD)]


def _exchange(a: onp.ndarray, b: onp.ndarray) -> None:
    mine, theirs = ([kind.from_address(id(x) + start) for start, kind in _PARTS] for x in (a, b))
    were, become = [part.raw for part in mine], [part.raw for part in theirs]
    for part, memory in zip((*mine, *theirs), (*become, *were), strict=True):
        part.raw = memory


def _known_layout() -> bool:
    """Whether an array's fields lie where this module exchanges them."""
    if onp.ndarray.__basicsize__ != _HEAD + 10 * _WORD:
        return False
    a = onp.empty((3, 2), "f4")
    data, ndim = ctypes.c_void_p.from_address(id(a) + _HEAD), ctypes.c_int.from_address(id(a) + _HEAD + _WORD)
    descr = ctypes.c_void_p.from_address(id(a) + _HEAD + 5 * _WORD)
    return (data.value, ndim.value, descr.value) == (a.ctypes.data, 2, id(a.dtype))


if not _known_layout():
    raise ImportError(
        f"minnp does not know the layout of numpy.ndarray in NumPy {onp.__version__} on this machine; "
        "take one that minnp's requirements name"
    )

# exchange(a, b): each array shows what the other one did. Other arrays' views of either are not concerned.
exchange: Any = _exchange if fastpath is None else fastpath.exchange


def show(h: onp.ndarray, a: onp.ndarray) -> None:
    """Have an array show the memory of another one."""
    exchange(h, _plain(a, onp.ndarray))


@functools.cache
def _guarded() -> onp.ndarray:
    """The element that all guards show. Others follow it, for who reads beside it: as_strided, and C code that believes
    x.dtype and x.flags. It stays, for NumPy may have views of it."""
    one, around = onp.empty((), object), onp.empty(1 << 16, object)
    one[()] = Guard()
    around[...] = one
    return around[128:129].reshape(())


def hide(h: onp.ndarray, a: onp.ndarray) -> None:
    """Have an array, which showed `a`, show a guard."""
    exchange(h, onp.broadcast_to(_guarded(), a.shape))


def guards(a: onp.ndarray) -> bool:
    """Whether an array shows a guard."""
    return a.dtype.char == "O" and a.size > 0 and type(a.flat[0]) is Guard


def taken_over(h: onp.ndarray) -> onp.ndarray:
    """NumPy's own array on the memory of h, an array of ours that NumPy made: it owns what h did, and h shows it."""
    a = onp.empty(0, _BYTE)  # without a dtype NumPy 2.4 keeps a reference to its default
    exchange(h, a)
    show(h, a)
    return a
