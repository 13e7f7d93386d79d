"""Between real NumPy arrays and minnp's, for whole argument lists (MinPy's names)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..rows.pytree import tree_map
from ..rows.value import Host
from .array import ARRAY_TYPES, array_of


def numpy_to_minpy(x: Any) -> Any:
    """x with every numpy.ndarray in it (containers included) as a minnp array on the same memory.

    >>> type(minnp.core.numpy_to_minpy([numpy.ones(2)])[0]) is np.ndarray
    True
    """
    return tree_map(lambda leaf: array_of(leaf) if isinstance(leaf, Host) else leaf, x)


def minpy_to_numpy(x: Any) -> Any:
    """x with every minnp array in it (containers included) as a numpy.ndarray of its own.

    >>> type(minnp.core.minpy_to_numpy({"a": np.ones(2)})["a"]) is numpy.ndarray
    True
    """
    return tree_map(lambda leaf: leaf.asnumpy() if type(leaf) in ARRAY_TYPES else leaf, x)


def convert_args(f: Callable) -> Callable:
    """Decorator: NumPy arrays in the arguments reach f as minnp arrays, so that `a + b` in it is ours.

    >>> first = minnp.core.convert_args(lambda x: type(x) is np.ndarray)
    >>> first(numpy.ones(2))
    True
    """

    @functools.wraps(f)
    def converted(*args: Any, **kwargs: Any) -> Any:
        return f(*numpy_to_minpy(args), **numpy_to_minpy(kwargs))

    return converted


def return_numpy(f: Callable) -> Callable:
    """Decorator: minnp arrays in the result of f come back as numpy.ndarrays.

    >>> double = minnp.core.return_numpy(lambda x: x * 2)
    >>> type(double(np.ones(2))) is numpy.ndarray
    True
    """

    @functools.wraps(f)
    def converted(*args: Any, **kwargs: Any) -> Any:
        return minpy_to_numpy(f(*args, **kwargs))

    return converted
