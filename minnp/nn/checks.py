"""What arguments must be: said before anything runs, in one wording for each kind of mistake."""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any


def count(name: str, value: Any, least: int = 0) -> int:
    """value as an int of at least `least`."""
    try:
        number = operator.index(value)
    except TypeError as error:
        raise TypeError(f"{name} is a whole number, got {value!r}") from error
    if number < least:
        raise ValueError(f"{name} is at least {least}, got {number}")
    return number


def number(name: str, value: Any, above: float = -math.inf) -> Any:
    """value, a finite number of at least 0 (more than `above`, where given)."""
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} is a number, got {value!r}")
    if not 0 <= float(value) < math.inf or not float(value) > above:
        raise ValueError(f"{name} is a finite number {'above' if above == 0 else 'of at least'} 0, got {value}")
    return value


def shape(name: str, value: Any) -> tuple[int, ...]:
    """value as a shape; a single number is a shape of one axis, as in NumPy."""
    sizes = value if hasattr(value, "__iter__") and not isinstance(value, str) else (value,)
    return tuple(count(f"each size of {name}", size) for size in sizes)


def one_of(kind: str, name: str, known: dict[str, Callable], signature: str) -> Callable:
    """The function called `name`, or `name` itself when it is a function."""
    if callable(name):
        return name
    if name not in known:
        near = difflib.get_close_matches(str(name).lower(), known, 1)
        meant = f"; do you mean {near[0]!r}?" if near else ""
        raise ValueError(f"unknown {kind} {name!r}; known: {', '.join(known)}, or any function {signature}{meant}")
    return known[name]


def options(name: str, given: Iterable[str], takers: Iterable[Callable], hints: dict[str, str]) -> None:
    """TypeError for a keyword that has a hint or that none of the functions takes, with the hint or the nearest one."""
    known = [key for taker in takers for key in inspect.signature(taker).parameters]
    for key in given:
        if key in hints or key not in known:
            near = difflib.get_close_matches(key, known, 1)
            meant = hints.get(key) or (f"do you mean {near[0]!r}?" if near else f"known: {', '.join(known)}")
            raise TypeError(f"{name} has no option {key!r}; {meant}")


def of_arrays(values: dict[str, Any]) -> str:
    """The dtypes and shapes of those values that are arrays, for a message."""
    parts = [f"{k} {v.dtype}{list(v.shape)}" for k, v in values.items() if hasattr(v, "shape") and hasattr(v, "dtype")]
    return ", ".join(parts)


def formula(thing: Any) -> str:
    """The first paragraph of a docstring, in one line."""
    return " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())


MISTAKES = (ValueError, TypeError, IndexError)  # what arrays of the wrong shape or type raise


def explain(error: Exception, where: str, what: Any) -> None:
    """Add to an error, once, which layer raised it, on what shapes, and the layer's formula."""
    if not hasattr(error, "__notes__"):
        error.add_note(f"in {where}: {formula(what)}")


def explained(function: Callable) -> Callable:
    """The function, whose errors about shapes and types carry its arguments' shapes and its formula as a note."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except MISTAKES as error:
            given = dict(zip(inspect.signature(function).parameters, args)) | options
            explain(error, f"{function.__name__}({of_arrays(given)})", function)
            raise

    return call
