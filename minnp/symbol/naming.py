"""Names and attributes that symbols are given while they are made: NameManager, Prefix, AttrScope, as in MXNet."""

from __future__ import annotations

import threading
from typing import Any

from .json_format import HIDDEN


class _Local(threading.local):
    def __init__(self) -> None:
        self.names: list[NameManager] = [NameManager()]
        self.attributes: list[dict[str, str]] = [{}]


class NameManager:
    """Gives names to symbols that have none, inside a with block: the operator's and a number, fullyconnected0.

    >>> with sym.NameManager():
    ...     h = sym.FullyConnected(sym.Variable("x"), num_hidden=3)
    >>> h.name
    'fullyconnected0'
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def get(self, name: str | None, hint: str) -> str:
        """`name`, or the next one that begins with hint."""
        if name:
            return name
        number = self._counts.get(hint, 0)
        self._counts[hint] = number + 1
        return f"{hint}{number}"

    def __enter__(self) -> NameManager:
        LOCAL.names.append(self)
        return self

    def __exit__(self, *exc: Any) -> None:
        LOCAL.names.remove(self)


class Prefix(NameManager):
    """A NameManager that puts `prefix` before every name, also those that were given.

    >>> with sym.Prefix("left_"):
    ...     h = sym.FullyConnected(sym.Variable("x"), num_hidden=3, name="fc")
    >>> h.list_arguments()
    ['x', 'left_fc_weight', 'left_fc_bias']
    """

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        return self._prefix + super().get(name, hint)


LOCAL = _Local()


class AttrScope:
    """Attributes of every symbol made inside a with block: AttrScope(ctx_group="dev1", __init__="zero").

    attributes   names and their texts

    Raises ValueError where a value is not text.

    >>> with sym.AttrScope(group="encoder"):
    ...     x = sym.Variable("x")
    >>> x.attr("group")
    'encoder'
    """

    def __init__(self, **attributes: str) -> None:
        for name, value in attributes.items():
            if not isinstance(value, str):
                raise ValueError(f"the attribute {name}={value!r}: attributes are texts")
        self._attributes = {hidden(n): v for n, v in attributes.items()}

    def __enter__(self) -> AttrScope:
        LOCAL.attributes.append(LOCAL.attributes[-1] | self._attributes)
        return self

    def __exit__(self, *exc: Any) -> None:
        LOCAL.attributes.pop()


def hidden(name: str) -> str:
    """An attribute's name as symbols keep it."""
    return f"__{name}__" if name in HIDDEN else name


def attributes(given: dict[str, str] | None) -> dict[str, str]:
    """What a new symbol gets: the scope's attributes and those that are given. ValueError where one is not text."""
    for name, value in (given or {}).items():
        if not isinstance(value, str):
            raise ValueError(f"the attribute {name}={value!r}: attributes are texts")
    return LOCAL.attributes[-1] | {hidden(n): v for n, v in (given or {}).items()}
