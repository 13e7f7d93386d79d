"""What an MXNet operator is: one row with its names, arguments, parameters, shapes, and its definition in minnp.

`OPERATORS` has the rows by name and alias; the modules operators_*.py enter them.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from ..errors import SymbolError

Shape = tuple[int, ...]
Names = Sequence[str] | Callable[[dict], Sequence[str]]
REQUIRED = object()
# What counts inputs or results, each of which gets a name: a file may say any number.
COUNTS = ("num_args", "num_outputs", "num_arrays", "num_weights", "num_tensors", "sections")
MOST = 1 << 16


# ------------------------------------------------------------------ parameters
def _integer(text: str) -> int:
    return int(text.rstrip("L"))


def _truth(text: str) -> bool:
    if text not in ("True", "true", "1", "False", "false", "0"):
        raise ValueError(text)
    return text in ("True", "true", "1")


def _tuple(text: str) -> tuple:
    value = ast.literal_eval(text.replace("L", ""))
    return tuple(None if n is None else int(n) for n in (value if isinstance(value, (tuple, list)) else (value,)))


def _pairs(text: str) -> tuple[tuple[int, int], ...]:
    value = ast.literal_eval(text.replace("L", ""))
    return tuple((int(a), int(b)) for a, b in value)


def _numbers(text: str) -> tuple[float, ...]:
    value = ast.literal_eval(text.replace("L", ""))
    return tuple(float(x) for x in (value if isinstance(value, (tuple, list)) else (value,)))


def _dtype(text: str) -> onp.dtype:
    if not text.isidentifier():  # of what else NumPy reads, MXNet has nothing
        raise ValueError(text)
    try:
        return onp.dtype(text)
    except TypeError:
        raise ValueError(text) from None


TYPES: dict[str, Callable[[str], Any]] = {
    "int": _integer, "float": float, "bool": _truth, "shape": _tuple, "pairs": _pairs, "floats": _numbers,
    "dtype": _dtype, "str": str,
}  # fmt: skip


class Parameter:
    """One parameter: how its text is read, and what it is where nothing is said.

    hint   it says how MXNet computes, not what: it is read, and not handed to the definition
    """

    __slots__ = ("choices", "default", "hint", "name", "type")

    def __init__(self, spec: str) -> None:
        head, _, default = spec.partition("=")
        self.name, _, kind = head.partition(":")
        self.hint = kind.startswith("~")
        kind = kind.removeprefix("~")
        self.choices = tuple(kind.split("|")) if kind not in TYPES else ()
        self.type = kind
        self.default: Any = REQUIRED if "=" not in spec else self.read(default)

    def read(self, text: str) -> Any:
        """The value of a text, as MXNet writes it. Raises ValueError."""
        if text == "None" and not self.choices:
            return None
        if self.choices:
            if text not in self.choices:
                raise ValueError(text)
            return None if text == "None" else text
        try:
            value = TYPES[self.type](text.strip())
        except (SyntaxError, TypeError, OverflowError, MemoryError, RecursionError):
            raise ValueError(text) from None
        numbers = value if isinstance(value, tuple) else (value,)
        most = MOST if self.name in COUNTS else 1 << 63
        if any(isinstance(n, int) and abs(n) >= most for n in numbers):
            raise ValueError(text)
        return value

    def __str__(self) -> str:
        kind = "one of " + ", ".join(self.choices) if self.choices else self.type
        return f"{self.name} ({kind}, {'required' if self.default is REQUIRED else f'default {self.default}'})"


# ------------------------------------------------------------------ operators
class Operator:
    """A row of the table.

    name         MXNet's; `aliases` are others it has for the same
    arguments    names of its inputs, states last, or a function of the parameters that gives them; None: arg0, arg1, ..
    count        the parameter that counts the inputs, where any number of them is taken
    variadic     any number of them is taken by position
    states       those of them that are auxiliary states, or a function of the parameters that gives them
    always       whether these move at every call, in and outside training; else in training
    parameters   name -> Parameter
    outputs      names of its results, or a function of the parameters that gives them
    visible      how many of them `Symbol` shows; a number or a function of the parameters; None: all
    definition   (*inputs, **parameters) -> the result, or a tuple of several; new states, where they move, come after
    training     the definition takes training=
    fill         (parameters, shapes of the inputs, None where unknown) -> the shapes with what follows from the others
    result       (parameters, *shapes of the inputs) -> shapes of the results; None: the definition is run on stand-ins
    same         all inputs and results have one shape
    batch        the first input and the first result have the same first axis
    dtypes       (parameters, dtypes of the inputs, None where unknown) -> (those of the inputs, those of the results);
                 None: all have one
    loss         its gradient is its own, whatever flows into its result
    bodies       of control flow: (parameters, bodies, shapes of the inputs) -> (shapes of the inputs, of the results)
    drawn        whether its result is random; "training": in training
    initial      name of an input -> what MXNet's initialisers do with a variable there, its attribute __init__
    """

    def __init__(
        self,
        name: str,
        definition: Callable,
        arguments: Names | None = ("data",),
        parameters: str = "",
        aliases: Sequence[str] = (),
        states: Names = (),
        always: bool = False,
        outputs: Names = ("output",),
        visible: int | Callable[[dict], int] | None = None,
        training: bool = False,
        fill: Callable | None = None,
        result: Callable | None = None,
        same: bool = False,
        batch: bool = False,
        dtypes: Callable | None = None,
        count: str | None = None,
        variadic: bool = False,
        loss: bool = False,
        drawn: bool | str = False,
        bodies: Callable | None = None,
        initial: dict[str, str] | None = None,
    ) -> None:
        self.name, self.definition, self.aliases = name, definition, tuple(aliases)
        self._arguments, self._states, self._outputs, self._visible = arguments, states, outputs, visible
        self.parameters = {p.name: p for p in map(Parameter, parameters.split())}
        self.training, self.fill, self.result, self.same, self.dtypes = training, fill, result, same, dtypes
        self.count, self.loss = count, loss
        self.variadic = variadic or arguments is None or count is not None
        self.drawn, self.bodies, self.batch, self.always = drawn, bodies, batch, always
        self.initial = initial or {}

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    def read(self, attributes: dict[str, str], where: str = "") -> dict[str, Any]:
        """Every parameter's value, from the texts of those that are given.

        Raises SymbolError for an unknown one, a value that cannot be read, or a required one that is missing.
        """
        out = {}
        for name, parameter in self.parameters.items():
            text = attributes.get(name)
            if text is None:
                if parameter.default is REQUIRED:
                    raise SymbolError(f"{where or self.name} lacks the parameter {parameter}")
                out[name] = parameter.default
                continue
            try:
                out[name] = parameter.read(text)
            except ValueError:
                raise SymbolError(f"{where or self.name}: {name}={text!r}; expected {parameter}") from None
        return out

    def check(self, names: Sequence[str]) -> None:
        """Raise SymbolError, with the nearest name, for what is no parameter."""
        for name in names:
            if name not in self.parameters:
                near = difflib.get_close_matches(name, self.parameters, 1)
                known = ", ".join(map(str, self.parameters.values())) or "none"
                meant = f"do you mean {near[0]!r}?" if near else f"its parameters: {known}"
                raise SymbolError(f"{self.name} has no parameter {name!r}; {meant}")

    def keywords(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """What the definition is called with."""
        return {n: v for n, v in parameters.items() if not self.parameters[n].hint}

    def arguments(self, parameters: dict[str, Any], given: int = 0) -> Sequence[str]:
        """The names of the inputs; `given` of them where any number is taken and none is said."""
        if self._arguments is None:
            number = parameters.get(self.count) if self.count and self.bodies is None else None
            return [f"arg{i}" for i in range(given if number is None else number)]
        return self._arguments(parameters) if callable(self._arguments) else self._arguments

    def outputs(self, parameters: dict[str, Any]) -> Sequence[str]:
        return self._outputs(parameters) if callable(self._outputs) else self._outputs

    def states(self, parameters: dict[str, Any]) -> Sequence[str]:
        """The names of the inputs that are auxiliary states."""
        return self._states(parameters) if callable(self._states) else self._states

    def visible(self, parameters: dict[str, Any]) -> int:
        """How many of the results are there for others."""
        if self._visible is None:
            return len(self.outputs(parameters))
        return self._visible(parameters) if callable(self._visible) else self._visible


OPERATORS: dict[str, Operator] = {}


def operator(name: str, definition: Callable, *args: Any, **facts: Any) -> Operator:
    """Enter an operator; see Operator for the facts."""
    return enter(Operator(name, definition, *args, **facts))


def enter(row: Operator) -> Operator:
    """Put a row into the table."""
    for each in (row.name, *row.aliases):
        if each in OPERATORS:
            raise ValueError(f"the operator {each!r} is already in the table")
        OPERATORS[each] = row
    return row


def lookup(name: str) -> Operator:
    """The operator of a name. Raises SymbolError, with the nearest names, where there is none."""
    if name not in OPERATORS and name.removeprefix("_sparse_") in OPERATORS:  # MXNet's other names, of sparse arrays
        name = name.removeprefix("_sparse_")
    if name not in OPERATORS:
        near = difflib.get_close_matches(name, OPERATORS, 3)
        raise SymbolError(f"there is no operator {name!r} here{'; near it: ' + ', '.join(near) if near else ''}")
    return OPERATORS[name]
