"""What a loop reads that is no variable of its function: globals, closures, attributes of objects, items of containers.

A *source* says where something is found: (how, the source of its holder or None, name). A program holds while what is
found there is as it was: arrays of the same type, the same number, a function of the same code. Numbers that were seen
to change, and what the loop itself binds, are inputs.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import FunctionType, MemberDescriptorType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as onp

from . import matrices
from .operations import NotUnderstood

Source = tuple[str, Any, Any]
NUMBERS = (int, float, bool, complex)
LISTED = 16  # items of a list that are looked at one by one
GONE = (LookupError, AttributeError, ValueError)  # of a source where nothing is any more


def found_at(how: str, holder: Any, name: Any) -> Any:
    """What lies there. Raises one of GONE."""
    if how == "matrices":
        return getattr(matrices, name)
    if how == "attribute":
        return vars(holder)[name] if hasattr(holder, "__dict__") and name in vars(holder) else getattr(holder, name)
    if how == "item":
        return holder[name]
    if how == "class":
        if isinstance(holder, type):
            return in_class(holder, name)
        if name in getattr(holder, "__dict__", ()):
            raise LookupError(name)
        return in_class(type(holder), name)
    if how == "cell":
        return holder.__closure__[holder.__code__.co_freevars.index(name)].cell_contents
    if how == "global":
        return holder.__globals__[name]
    if how == "default":
        return (holder.__kwdefaults__ or {})[name] if isinstance(name, str) else holder.__defaults__[name]
    return getattr(holder, {"self": "__self__", "function": "__func__", "getter": "fget"}[how])


def in_class(cls: type, name: str) -> Any:
    """An attribute of a class as it is written there."""
    for c in cls.__mro__:
        if name in vars(c):
            return vars(c)[name]
    raise AttributeError(name)


def is_plain_object(x: Any) -> bool:
    """Whether an object's attributes are what lies in it, or in its class, and nothing else."""
    cls = type(x)
    if cls is SimpleNamespace:
        return True
    if cls.__module__ in ("builtins", "numpy") or isinstance(x, (type, ModuleType)):
        return False
    return cls.__getattribute__ is object.__getattribute__ and not hasattr(cls, "__getattr__")


def lies_in(x: Any, name: str) -> bool:
    """Whether an attribute lies in a plain object itself."""
    try:
        found = in_class(type(x), name)
    except AttributeError:
        return hasattr(x, "__dict__") and name in vars(x)
    if type(found) is MemberDescriptorType:
        return hasattr(x, name)
    return not hasattr(type(found), "__set__") and hasattr(x, "__dict__") and name in vars(x)


def compares_by_type(x: Any) -> bool:
    """Whether what an object is says how it compares, and whether it is true."""
    return type(x) in (str, bytes, type(None), FunctionType) or isinstance(x, (type, onp.dtype, ModuleType))


def sort_of(x: Any) -> tuple:
    """What an object is for a program that goes through it to others, or uses it as it is."""
    if type(x) is FunctionType:
        return "code", x.__code__
    if type(x) is MethodType:
        return "method", sort_of(x.__func__)
    if type(x) in (tuple, list) and len(x) <= LISTED:
        return "length", type(x), len(x)
    # other containers cannot be referred to weakly, and must not be kept alive, with all that the program puts in
    if isinstance(x, (dict, list, tuple, range)) or is_plain_object(x):
        return "type", weakref.ref(type(x))
    if type(x) in (str, bytes, type(None)):
        return "value", x
    return "same", id(x)


def weakly(x: Any) -> Callable[[], Any]:
    """What returns x, as long as somebody else refers to it, or x is nothing that can be referred to so."""
    try:
        return weakref.ref(x)
    except TypeError:
        return lambda: x


class Outside:
    """What one program found.

    resolve   (a name outside the function) -> object; raises NameError
    names     the function's variables
    shared    those of them that the loop binds and inner functions, or others, see
    describe  an array or number -> its type as `translate` takes it, or None
    varied    sources of numbers that were seen to change
    seen      source -> (what was found, what it has to be)
    inputs    source -> the program's variable
    stored    sources that the loop binds
    same      sources that are another one: of a variable of several functions, which the loop binds
    """

    def __init__(
        self, resolve: Callable, names: dict, shared: set[str], describe: Callable, varied: set[Source]
    ) -> None:
        self.resolve, self.names, self.shared, self.describe, self.varied = resolve, names, shared, describe, varied
        self.seen: dict[Source, tuple[Any, tuple]] = {}
        self.inputs: dict[Source, str] = {}
        self.stored: set[Source] = set()
        self.same: dict[Source, Source] = {}

    def look(self, source: Source) -> Any:
        """What lies at a source. Raises NotUnderstood."""
        if source in self.seen:
            return self.seen[source][0]
        how, holder, name = source
        if how in ("cell", "global") and name in self.shared:
            raise NotUnderstood(f"{name}, which the loop binds and a function that it calls reads")
        try:
            if how == "outside":
                x = self.resolve(name)
            else:
                x = self.names[name] if how == "variable" else found_at(how, holder and self.look(holder), name)
        except (*GONE, NameError):
            raise NotUnderstood(f"{name} is not bound") from None
        if (type(x) in NUMBERS or issubclass(type(x), onp.generic)) and source not in self.varied:
            what: tuple = ("constant", type(x), x)
        else:
            what = self.describe(x) or sort_of(x)
        self.seen[source] = x, what
        return x

    def is_variable(self, source: Source) -> bool:
        """Whether a variable that an inner function shares with the loop's own lies there."""
        how, holder, name = source
        if how != "cell" or name in self.shared or name not in self.names:
            return False
        try:
            x = found_at(how, self.look(holder), name)
        except GONE:
            return False
        if x is self.names[name]:
            self.seen[source] = x, ("variable", name)
        return self.seen.get(source, (None, ("", "")))[1][0] == "variable"

    def variable_at(self, source: Source, resolve: Any, at: Callable[[Source], Any]) -> Any:
        """Which variable of a function's, or of a module's, a source is; None of what is none."""
        how, holder, name = source
        if how == "cell":
            f = at(holder)
            return id(f.__closure__[f.__code__.co_freevars.index(name)])
        if how == "outside" and name in resolve.cells:
            return id(resolve.cells[name])
        if how not in ("global", "outside"):
            return None
        names = resolve.globals if how == "outside" else at(holder).__globals__
        return (id(names), name) if name in names else None

    def bound(self) -> set[Source]:
        """Sources that the loop binds, or of which it assigns items."""
        return self.stored | {holder for how, holder, _ in self.stored if how == "item"}

    def of_all(self, source: Source) -> Source:
        """The source by which a variable is known that the loop binds: other functions have others for it."""
        if not self.stored or source[0] not in ("cell", "global", "outside"):
            return source
        which = self.variable_at(source, self.resolve, self.look)
        for known in self.bound():
            if which is not None and known != source and self.variable_at(known, self.resolve, self.look) == which:
                self.same[source] = known
                return known
        return source

    def are_as_they_were(self, resolve: Any, found: dict[Source, Any]) -> bool:
        """Whether variables that the loop binds are those of the same functions, and of no others."""
        bound = self.bound()
        which = {s: self.variable_at(s, resolve, found.__getitem__) for s in {*self.seen, *self.same, *bound}}
        taken = {which[s]: s for s in bound}
        return all(w is None or taken.get(w) in (None, self.same.get(s, s)) for s, w in which.items()) and all(
            which[s] == which[other] for s, other in self.same.items()
        )

    def input_at(self, source: Source) -> tuple[str, tuple]:
        """(the variable, its type) for an array or a number that is given."""
        if source not in self.inputs:
            text = "".join(c if c.isalnum() else "_" for c in str(source[2]))
            self.inputs[source] = f"{text}^{len(self.inputs)}"
        x, _ = self.seen[source]
        described = self.describe(x)
        if described is None:
            raise NotUnderstood(f"{source[2]}, which holds what no compiled loop takes")
        self.seen[source] = x, described
        return self.inputs[source], described

    def settle(self) -> None:
        """Let go of what was found. A site lives as long as the code of its function, which what it refers to (a
        helper's module) may keep alive: what is told by its identity is referred to weakly."""
        kept = lambda x, what: x if what[0] == "constant" else weakly(x) if what[0] == "same" else None
        self.seen = {s: (kept(x, what), what) for s, (x, what) in self.seen.items()}
        self.names, self.resolve = {}, None

    def now(self, resolve: Callable, names: dict) -> dict[Source, Any] | None:
        """What lies at every source now; None where the program does not hold. Adds to `varied`."""
        found: dict[Source, Any] = {}
        for source, (was, what) in self.seen.items():
            how, holder, name = source
            try:
                if how == "outside":
                    x = resolve(name)
                else:
                    x = names[name] if how == "variable" else found_at(how, holder and found[holder], name)
            except (*GONE, NameError):
                return None
            found[source] = x
            if what[0] == "constant":
                if type(x) is not what[1] or not (x is was or (x == was and str(x) == str(was))):
                    if type(x) is what[1] and type(x) is not bool:
                        self.varied.add(source)
                    return None
            elif what[0] == "same":
                if was() is not x:
                    return None
            elif what[0] == "variable":
                if x is not names.get(what[1], found):
                    return None
            elif what[0] in ("number", "array", "items"):
                if self.describe(x) != what:
                    return None
            elif sort_of(x) != what:
                return None
        return found if not self.stored or self.are_as_they_were(resolve, found) else None
