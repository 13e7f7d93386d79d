"""The exceptions that a loop raises, as Python and NumPy raise them."""

from __future__ import annotations

RAISED = dict.fromkeys(("index", "list", "item"), IndexError)  # by the first word of an error
RAISED |= dict.fromkeys(("div", "floordiv", "mod"), ZeroDivisionError)
NUMBERS = {"i": 1, "u": 1, "b": True, "f": 1.0, "c": 1j}


def failure(error: str, operands: list) -> Exception | None:
    """The exception for an error of a program; None where Python has to say it itself."""
    if error == "index":
        i, axis, size = operands
        return IndexError(f"index {i} is out of bounds for axis {axis} with size {size}")
    operator, _, letters = error.partition(" ")
    if operator == "item":
        return IndexError(f"{letters} index out of range")
    if operator in ("div", "floordiv", "mod") and len(letters) == 2:
        a, zero = NUMBERS[letters[0]], type(NUMBERS[letters[1]])(0)
        try:
            {"div": lambda: a / zero, "floordiv": lambda: a // zero, "mod": lambda: a % zero}[operator]()
        except ZeroDivisionError as raised:
            return ZeroDivisionError(*raised.args)
    return None
