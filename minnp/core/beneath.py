"""What runs beneath a capture that records: rows on the values under its tracers, calls that make new arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import context, policy
from .across import made_at
from .dispatch import bind
from .host import combine
from .primitive import Primitive
from .state import capture
from .value import Buffer, Tracer

LOWER = {Buffer, Tracer}


def bind_below(row: Primitive, raw: list, params: dict, fast: bool) -> Any:
    """Run a row beneath the capture that is recording it; `fast` as the capture has it."""
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
        return made_at(context.home(), function, args, kwargs)
    finally:
        capture.reset(token)
