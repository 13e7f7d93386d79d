"""How many references there are to an object.

What an interpreter itself refers to while it asks is its own business: from CPython 3.14 on the operands of an
expression may be borrowed from the names they are kept in. So the object is fetched by a call, which hands over a
reference in every interpreter, and what the asking adds is counted once, on an object that is known."""

from __future__ import annotations

import operator
from collections.abc import Callable
from sys import getrefcount
from typing import Any


def references(read: Callable, *where: Any) -> int:
    """The number of references to read(*where); `read` is a function written in C that returns what is kept there."""
    return getrefcount(read(*where)) - ASKING


ASKING = 0
ASKING = references(operator.getitem, [object()], 0) - 1
