"""Flags and shapes, as NumPy sets them in place, of arrays on a device: there is no array of NumPy's to keep them.

Both are steps of a view. A root whose shape or flags are set becomes a view too, of a root that nobody else has.
"""

from __future__ import annotations

import gc
from typing import Any

from ..rows.dispatch import bind
from ..rows.on_device import laid_out
from ..rows.primitive import TABLE
from ..rows.state import capture, state
from ..rows.value import Buffer, example
from .array import VirtualArray, ndarray, read, show_again, virtual

NO_VIEW = "Incompatible shape for in-place modification. Use `.reshape()` to make a copy with the desired shape."


def lower(h: ndarray, alone: bool = False) -> None:
    """Make a root one more view of what it holds: it, and its views, are views of a new root from then on. alone: it
    has no views; looking for them takes as long as there are objects."""
    root = virtual(h._value)
    for view in () if alone else gc.get_referrers(h):
        if type(view) is VirtualArray and view._root is h:
            view._root = root
    h._root, h._steps, h._seen = root, (), h._value


def set_shape(h: ndarray, value: Buffer, shape: Any) -> None:
    step = (TABLE["reshape"], {"shape": shape})
    shaped = bind(step[0], (value,), step[1])
    if shaped is not value and shaped.view is None:
        raise AttributeError(NO_VIEW)
    if h._root is None:
        lower(h)
    h._steps, h._value = (*h._steps, step), shaped


def is_writeable(h: ndarray) -> bool:
    return h._root is None or all(row.writes for row, _ in h._steps)


def set_writeable(h: ndarray, writeable: bool, alone: bool = False) -> None:
    """A read-only array is a view that shows all of itself as broadcast."""
    step = (TABLE["broadcast_to"], {"shape": h.shape})
    if not writeable and is_writeable(h):
        if h._root is None:
            lower(h, alone)
        h._steps = (*h._steps, step)
    elif writeable and not is_writeable(h):
        if h._steps[-1] != step or not all(row.writes for row, _ in h._steps[:-1]):
            raise ValueError("cannot set WRITEABLE flag to True of this array")
        h._steps = h._steps[:-1]
    h._value = h._seen = None  # read anew when next asked for


def _leave(h: Any) -> Any:
    """What a traced array holds where its flags are set, which no graph does: a capture ends."""
    if state.busy and (watching := capture.get()) is not None:
        watching.ends("the function sets an array's flags")
    return example(read(h))


class HostFlags:
    """x.flags of a host or traced array: those of the array whose memory it shows, which is shown anew where set."""

    __slots__ = ("_array", "_theirs")
    __hash__ = None

    def __init__(self, array: ndarray, theirs: Any) -> None:
        object.__setattr__(self, "_array", array)
        object.__setattr__(self, "_theirs", theirs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._theirs, name)

    def _own(self) -> Any:
        return self._theirs if type(self._array) is ndarray else _leave(self._array).flags

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._own(), name, value)
        show_again(self._array)

    def __getitem__(self, key: str) -> Any:
        return self._theirs[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._own()[key] = value
        show_again(self._array)

    def __repr__(self) -> str:
        return repr(self._theirs)

    def __eq__(self, other: object) -> bool:
        return self._theirs == (other._theirs if isinstance(other, (HostFlags, Flags)) else other)


HostFlags.__name__ = HostFlags.__qualname__ = "flagsobj"


class Flags:
    """x.flags of an array on a device."""

    __slots__ = ("_array", "_theirs")

    def __init__(self, array: ndarray, value: Buffer) -> None:
        object.__setattr__(self, "_array", array)
        object.__setattr__(self, "_theirs", laid_out(value).flags)

    def __getattr__(self, name: str) -> Any:
        return is_writeable(self._array) if name == "writeable" else getattr(self._theirs, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "writeable":
            _leave(self._array)
            set_writeable(self._array, bool(value))
            object.__setattr__(self, "_theirs", laid_out(example(read(self._array))).flags)
        else:
            setattr(self._theirs, name, value)

    def __getitem__(self, key: str) -> Any:
        return self._theirs[key]

    def __setitem__(self, key: str, value: Any) -> None:
        if key in ("W", "WRITEABLE"):
            self.writeable = value
        else:
            self._theirs[key] = value

    def __repr__(self) -> str:
        return repr(self._theirs)

    def __eq__(self, other: object) -> bool:
        return self._theirs == (other._theirs if isinstance(other, (HostFlags, Flags)) else other)

    __hash__ = None
