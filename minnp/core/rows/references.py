"""How many references there are to an object.

What an interpreter itself refers to while it asks is its own business: from CPython 3.14 on the operands of an
expression may be borrowed from the names they are kept in. So the object is fetched by a call, which hands over a
reference in every interpreter, and what the asking adds is counted once, on an object that is known.

Where counts mean something else (a newer interpreter than those that were looked at, one without the global lock), many
refer to every object: nothing is then written in place, and no warning says that others refer to an array."""

from __future__ import annotations

import operator
import sysconfig
from collections.abc import Callable
from sys import getrefcount
from typing import Any

from .state import CODE_IS_KNOWN

MANY = 1 << 30
COUNTED = CODE_IS_KNOWN and not sysconfig.get_config_var("Py_GIL_DISABLED")


def references(read: Callable, *where: Any) -> int:
    """The number of references to read(*where), or MANY; `read` is a function written in C that returns what is kept
    there."""
    return getrefcount(read(*where)) - ASKING if COUNTED else MANY


ASKING = 0
ASKING = references(operator.getitem, [object()], 0) - 1 if COUNTED else 0
