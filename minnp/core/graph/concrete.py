"""What a capture runs on concrete values: rows, and calls that make new arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..arrays import devices
from ..cpu import combine
from ..rows import policy
from ..rows.dispatch import bind
from ..rows.primitive import Primitive
from ..rows.state import capture
from ..rows.value import Buffer, Tracer
from .placement import made_at

LOWER = {Buffer, Tracer}


def bind_below(row: Primitive, raw: list, params: dict, fast: bool) -> Any:
    """Run a row on concrete values, for the capture that records it; `fast` as the capture has it."""
    token = capture.set(None)
    try:
        if fast and row.worth is None and policy.current().plain and LOWER.isdisjoint(map(type, raw)):
            return combine(row.fast, *raw) if row.elementwise and not params else row.fast(*raw, **params)
        return bind(row, raw, params)
    finally:
        capture.reset(token)


def made_below(function: Callable, args: tuple, kwargs: dict) -> Any:
    """What a public function makes out of no arrays, where new arrays live."""
    token = capture.set(None)
    try:
        return made_at(devices.default_device(), function, args, kwargs)
    finally:
        capture.reset(token)
