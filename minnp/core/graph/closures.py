"""What a function reads that is not among its arguments: closures, globals, attributes of objects, items of containers.

A graph holds arrays made outside by reference and numbers as they were. So jit remembers their bindings, and compiled
code looks at them first: an array that was bound anew is read from then on, if it lies as the old one did; with another
number the function is captured anew, a specialisation of its own if that makes another graph.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import dis
import enum
import functools
import gc
import inspect
import itertools
import logging
import operator
import os
import queue
import random
import sys
import sysconfig
import weakref
from array import array
from collections import ChainMap, OrderedDict, UserDict, UserList, UserString, deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from types import (
    BuiltinFunctionType,
    BuiltinMethodType,
    CellType,
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    GeneratorType,
    MappingProxyType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    SimpleNamespace,
    WrapperDescriptorType,
)
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

import numpy as onp

from ..arrays.array import ARRAY_TYPES, ARRAYS, read
from ..arrays.saved import same_bytes
from ..rows import state
from ..rows.pytree import CONSTANTS, attribute, attributes
from ..rows.references import references
from ..rows.report import PACKAGE
from ..rows.value import STREAMS, Buffer, Host
from .effects import Diverged
from .graph import Graph
from .operands import UNNAMED, followed
from .scalars import kinds_asked, typed_variables
from .signature import identity


class Absent(enum.Enum):
    """What is held under a name that nothing is bound to: a global that hides no builtin yet, an empty slot."""

    ABSENT = 0


ABSENT = Absent.ABSENT
NOT_OF_USERS = CONSTANTS | {Absent}  # classes of which none is the user's
NUMBERS = (int, float, complex, str, bytes, type(None), onp.generic, onp.dtype, enum.Enum)
CONTAINERS = (list, dict, set, deque)
BOUND = (BuiltinMethodType, MethodWrapperType)  # methods of objects of builtin classes, as list.append; and functions
UNBOUND = (LookupError, ValueError, TypeError)  # what a binding raises that holds nothing any more
MOST, LONGEST = 10_000, 1_000  # objects that are looked into, and items of one of them
NAMESPACES = (SimpleNamespace, argparse.Namespace)  # of libraries, with the user's values
HOLDERS = (UserDict, UserList, UserString, ChainMap, onp.poly1d)
HOLDERS += (type(os.environ),)
WEAK = (WeakValueDictionary, WeakKeyDictionary, WeakSet)
BUFFERS = (bytearray, array)
VIEWS = (MappingProxyType, type({}.keys()), type({}.values()), type({}.items()))
# Objects of the standard library whose contents are looked at, or stay
FOLLOWED = (*CONTAINERS, frozenset, tuple, *HOLDERS, *NAMESPACES, *BUFFERS, *VIEWS, *weakref.ProxyTypes)
FOLLOWED += (
    memoryview,
    ContextVar,
    ModuleType,
    slice,
    range,
    type(...),
    type(NotImplemented),
    logging.Logger,
    *NUMBERS,
)
CACHE = type(functools.cache(len))
UNKNOWN = {"eval", "exec", "globals", "__import__"}  # what they lead to is not in the code
DEFAULTS = ("__defaults__", "__kwdefaults__")
# Methods that Python calls without their names being in the code: where an object or a subclass is made, where a text
# is made of one, and (all the others) anywhere
MAKING = {"__new__", "__init__", "__post_init__", "__init_subclass__", "__set_name__", "__prepare__", "_missing_"}
MAKERS = {"type", "__class__", "replace"}  # what code says that makes another object of the class of one
SHOWING = {"__repr__", "__str__", "__format__"}
ANNOTATING = {"__annotate__", "__annotate_func__"}  # which read all that the class has, for who asks for annotations
SHOWERS = {"repr", "str", "print", "format", "ascii"}
# Functions and methods in C that the rest of the program, or its user, sees something of; and what code says for them
OUTPUTS = {"print", "write", "writelines", "writerow", "writerows", "warn", "warn_explicit", "displayhook"}
WRITING = OUTPUTS | {"pprint", "pp", "dump", "log", "debug", "info", "warning", "error", "critical", "exception"}
WRITING |= {"print_exc"}
FIELDS = {"asdict", "astuple", "fields"}  # functions of dataclasses that read all fields
COMPILED = (WrapperDescriptorType, MethodDescriptorType, ClassMethodDescriptorType, BuiltinFunctionType)  # read nothing
METHODS = (classmethod, property, functools.cached_property)
COMPARING = {"index", "count", "remove"}  # methods that compare objects, as == and `in` do
GLOBALS = {"LOAD_GLOBAL", "STORE_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}  # LOAD_NAME in the body of a class
LITERALS = {"LOAD_CONST", "LOAD_COMMON_CONSTANT", "LOAD_SMALL_INT"}
# What code says that asks whether an attribute is there
ASKING = {"hasattr", "getattr", "vars", "__dict__", "AttributeError", "Exception"}
# What code does or says that goes through a dict in its order, or gives it another one
ITERATING = {"GET_ITER", "UNPACK_SEQUENCE", "UNPACK_EX", "LIST_EXTEND"}
ITERATING |= {"DICT_UPDATE", "DICT_MERGE", "CALL_FUNCTION_EX", "DELETE_SUBSCR"}
CATCHING = {"CHECK_EXC_MATCH", "CHECK_EG_MATCH"}
ORDERED = {"list", "tuple", "iter", "next", "sum", "map", "zip", "enumerate", "reduce", "reversed", "dict", "join"}
ORDERED |= {"keys", "values", "items", "pop", "popitem", "move_to_end", "dumps", *SHOWERS}
UNDEFINED = {"NameError", "Exception", "BaseException"}
# What code says that draws, reads or sets the state of a stream of random numbers, or makes another, and that no graph
# tells of
DRAWING, OF_STREAMS = {"rvs", "resample"}, {"random_raw", "spawn", "jumped", "advance"}
DRAWING |= {"uuid1", "uuid4", "urandom", "token_bytes", "token_hex", "token_urlsafe", "randbelow", "mkdtemp", "mkstemp"}
OF_TORCH = {"rand", "randn", "randint", "randperm", "rand_like", "randn_like", "normal", "bernoulli", "multinomial"}
OF_STREAMS |= {"get_state", "set_state", "bit_generator", "_rand"}
# What code says that decides what becomes of NumPy's warnings and floating-point errors, but np.errstate
OF_WARNINGS = {"catch_warnings", "simplefilter", "filterwarnings", "resetwarnings"}
OF_WARNINGS |= {"seterrcall", "geterrcall", "seterr"}
BUILTINS = frozenset(vars(builtins))
SPACES = (dict, MappingProxyType)  # of names: what modules and classes hold
LISTED = 32  # items of a list whose numbers are looked at
OURS = ("minnp.core", "minnp.numpy", "minnp.backends")
ARRAY_LIBRARIES = {"minnp", "numpy", "torch", "mxnet"}  # of whose modules nobody sets the numbers
# Of whose objects it is known what a graph reads, or that they do not change
KNOWN_LIBRARIES = {"numpy", "jax", "jaxlib", "builtins"}
KNOWN_PARTS = (*OURS, "minnp.scipy")
PARTS = 1_000  # objects that one of a library's may be made of
LIBRARIES = tuple({sysconfig.get_paths()[k] for k in ("stdlib", "platstdlib", "purelib", "platlib")}) + (PACKAGE,)


class Binding:
    """Where a value is held: in a cell, or under a key of a dict or list, that `via` led to."""

    __slots__ = (
        "asked",
        "counted",
        "foreign",
        "holder",
        "item",
        "key",
        "name",
        "ordered",
        "unseen",
        "value",
        "via",
        "was",
    )

    def __init__(self, holder: Any, key: Any, value: Any, item: bool = False, name: str | None = None) -> None:
        self.holder, self.key, self.value = holder, key, value
        self.name = key if name is None else name  # in the code
        self.item = item  # whether it is one of a container's, which code reaches without naming it
        self.was: Any = None  # a copy of what Python may have read of it unseen: a long list, an array of NumPy's own
        self.via: Binding | None = None
        self.foreign = False  # whether a library's object holds it, or something that it holds
        self.asked = True  # whether code may ask of an array what no graph says, as its shape
        self.unseen = False  # whether compiled code looks at the elements of an array although the graph reads them
        self.counted = False  # whether only how many items the container that it holds has was asked of it
        self.ordered = False  # whether it holds a dict whose keys are looked at, in their order

    def now(self) -> Any:
        """What it holds now. Raises LookupError or ValueError for nothing."""
        return value_at(self.holder, self.key, self.value)

    def look(self) -> None:
        """Keep a copy of what its value is now, or its length."""
        if self.ordered:
            self.was = order(self.value)
        elif self.counted:
            self.was = len(self.value)
        else:
            self.was = self.value[:] if type(self.value) in BUFFERS else unwrapped(self.value).copy()

    def restore(self) -> None:
        """Make a variable hold what it held."""
        if type(self.holder) is CellType:
            self.holder.cell_contents = self.value
        elif type(self.holder) is dict and "__name__" in self.holder:  # a module's
            if self.value is ABSENT:
                self.holder.pop(self.key, None)
            else:
                self.holder[self.key] = self.value

    def stays(self) -> bool:
        """Whether it still holds what it held."""
        try:
            return self.now() is self.value and (self.was is None or unchanged(self.value, self.was))
        except UNBOUND:
            return False


class Before:
    """Lists, dicts, sets and the attributes of objects as they are before a function runs: what each holds, or, of long
    ones, how much."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, Any, Any]] = []
        self.types = False  # whether a function that it calls may ask the type of a number
        self.kinds = False  # whether it may ask whether one has a length
        self.draws = False  # whether the function may take from an iterator, or from Python's random numbers
        self.caches: list[tuple[Any, list]] = []  # functions that keep their results, and the objects among these
        self.missing: list[str] = []  # modules that are not imported yet
        self.unknown = ""  # what is not known from the code, as "eval() leads to", or ""
        self.catches = False  # whether it may catch exceptions
        self.writes = False  # whether it may print, log, warn or write to a file

    def add(self, container: Any) -> None:
        parts = dict(container) if isinstance(container, dict) else list(container)
        self.seen.append((container, self.contents(container), parts if len(container) <= LONGEST else None))

    def contents(self, container: Any) -> Any:
        if len(container) > LONGEST:
            return len(container)
        parts = (*container, *container.values()) if isinstance(container, dict) else container
        return list(map(id, parts))

    def stays(self) -> bool:
        if self.draws or not sys.modules.keys().isdisjoint(self.missing):
            return False
        same = lambda xs, ys: len(xs) == len(ys) and all(map(operator.is_, xs, ys))
        return all(self.contents(x) == held for x, held, _ in self.seen) and all(
            same(_cached(f), objects) for f, objects in self.caches
        )

    def restore(self) -> None:
        """Make them what they were: the function is run again."""
        for x, held, parts in self.seen:
            if self.contents(x) == held:
                continue
            if isinstance(x, list):
                x[:] = x[:held] if parts is None else parts
            elif parts is not None:
                x.clear()
                x.extend(parts) if isinstance(x, deque) else x.update(parts)


class Slots:
    """The attributes of an object that has no dict, by name; ABSENT for one that is not there."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self.owner, name)
        except (AttributeError, *UNBOUND):  # what a __getattr__ raises that looks in a dict
            return ABSENT


class Access:
    """The class of buffers that may be written as an array may: bytearray, or bytes."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __getitem__(self, key: None) -> type:
        return bytearray if self.owner.flags.writeable else bytes


class Asked:
    """What a variable of a context is; of a weak reference, which is for one object, itself or None."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __getitem__(self, _: Any) -> Any:
        if isinstance(self.owner, ContextVar):
            return self.owner.get(ABSENT)
        return None if self.owner() is None else self.owner  # nothing that lasts holds the object


def value_at(holder: Any, key: Any, value: Any) -> Any:
    """What a cell, dict, list or Slots holds where it held `value`. Raises UNBOUND for nothing."""
    if type(holder) is CellType:
        return holder.cell_contents
    if makes_items(holder) and dict.get(holder, key, ABSENT) is ABSENT:
        raise LookupError
    return holder.get(key, ABSENT) if value is ABSENT and type(holder) in SPACES else holder[key]


def makes_items(holder: Any) -> bool:
    """Whether asking for an item may make it, as a defaultdict does."""
    return isinstance(holder, dict) and hasattr(type(holder), "__missing__")


def drawn_from(x: Any) -> bool:
    """Whether each use of an object gives something else: an iterator of Python's, its random numbers, or NumPy's."""
    if isinstance(x, (*BOUND, MethodType)):
        x = x.__self__
    if isinstance(x, STREAMS) and module_of(type(x)).startswith("numpy."):
        return True
    if x is random or isinstance(x, (random.Random, queue.SimpleQueue)):
        return True
    return isinstance(x, GeneratorType) or (hasattr(type(x), "__next__") and not _own(_file(type(x)) or PACKAGE))


def is_root(x: Any) -> bool:
    """Whether an argument may hold what a function reads besides its arguments."""
    return not isinstance(x, ARRAYS) and (holds(x) or not isinstance(x, NUMBERS))


def unfollowed(x: Any) -> bool:
    """Whether an argument may be another thing at the next call that nothing looks at: an iterator, an object of the
    standard library's that is more than its attributes."""
    if isinstance(x, (*STREAMS, *FOLLOWED)) or type(x) is object:
        return False
    t = type(x)
    if drawn_from(x):
        return True
    library = of_python(x)
    if is_of_library(x) and not library:
        return not plain_parts(x)
    return library and not callable(x) and (t.__hash__ is None or t.__eq__ is object.__eq__)


def of_python(x: Any) -> bool:
    """Whether an object is of a class of the standard library's."""
    return module_of(type(x)).partition(".")[0] in sys.stdlib_module_names


class Uses:
    """What code that a function may run uses.

    names    attributes and strings in it; None, the key of a cell, is always named
    classes  those whose methods Python may call, and whether objects of them may be made
    """

    def __init__(self) -> None:
        self.names: set[Any] = {None}
        self.classes: dict[type, bool] = {}
        self.reached: set[type] = set()  # those of them in which members are looked for first
        self.shows = False  # whether texts may be made of objects
        self.catches = False  # whether exceptions may be caught
        self.compares = False  # whether objects may be compared by == or `in`
        self.orders = False  # whether the order of a dict may matter, or be changed
        self.modules: set[str] = set()  # that are imported in functions
        self.libraries: dict[str, ModuleType] = {}
        self.unknown = ""  # what is not known from the code, as "eval() leads to"
        self.plain: set[int] = set()  # objects of libraries, all of whose attributes are looked at
        self.called: dict[type, set[str]] = {}  # of the user's classes: what their bases in libraries may call

    def add_class(self, c: type, made: bool) -> None:
        self.reached.add(c)
        for base in c.__mro__:
            if base is not object and base is not type:
                self.classes[base] = made or self.classes.get(base, False)
                if base not in self.called and _own(_file(base)):
                    self.called[base] = set().union(*[_names(b) for b in base.__mro__ if not _own(_file(b))])

    def members(self) -> list[tuple[type, str, Any]]:
        """(class, name, member) of those that the code names or Python may call without."""
        self.shows |= not SHOWERS.isdisjoint(self.names)
        self.compares |= not COMPARING.isdisjoint(self.names)
        fields = not FIELDS.isdisjoint(self.names)
        for c in self.classes if fields or self.compares or self.shows else ():
            if fields or (self.compares and _generated(c, "__eq__")) or (self.shows and _generated(c, "__repr__")):
                self.names.update(vars(c).get("__dataclass_fields__", ()))
        made = not MAKERS.isdisjoint(self.names) or any(
            isinstance(m, classmethod) and n in self.names for c in self.classes for n, m in vars(c).items()
        )
        return [
            (c, n, m)
            for c, own in self.classes.items()
            for n, m in vars(c).items()
            if n in self.names or (c in self.called and self._runs(c, n, m, made or own))
        ]

    def set_in_libraries(self) -> list[Binding]:
        """What libraries' modules hold under names that are in the code, if it may be the user's: numbers, texts,
        lists, the environment, objects of the user's."""
        return [Binding(vars(m), n, v, True) for m, n, v in self.in_libraries() if _set_by_user(v)]

    def in_libraries(self) -> Iterator[tuple[ModuleType, str, Any]]:
        """(module, name, what it holds) of libraries' modules, for the names that are in the code."""
        for m in list(self.libraries.values()):
            yield from [(m, n, vars(m)[n]) for n in self.names & vars(m).keys() if not dunder(n)]

    def hiding(self, found: Iterable[tuple[type, str, Any]]) -> Iterator[tuple[type, str]]:
        """(class, name) where a member of such a name would hide one that is found in a class after it."""
        of: dict[type, set[str]] = {}
        for c, n, _ in found:
            of.setdefault(c, set()).add(n)
        pairs: dict[tuple[type, str], None] = {}
        for c in self.reached:
            after: set[str] = set()
            for base in reversed(c.__mro__):
                if base in self.called:  # the user's
                    pairs |= dict.fromkeys([(base, n) for n in after if n not in vars(base)])
                after |= of.get(base, set())
        yield from pairs

    def _runs(self, c: type, name: str, member: Any, made: bool) -> bool:
        if not dunder(name):
            return name in self.called[c] and (callable(member) or isinstance(member, METHODS))
        if type(member) in COMPILED or not (callable(member) or isinstance(member, classmethod)):
            return False
        if name in MAKING:
            return made
        if name in ANNOTATING:
            return False
        return not _generated(c, name) and (self.shows or name not in SHOWING)


def _set_by_user(x: Any) -> bool:
    if isinstance(x, (*NUMBERS, list, type(os.environ))) or x is os.getenv:
        return True
    if isinstance(x, ModuleType):
        return not _own(_file_of(x))
    return bool(module_of(type(x)) != "builtins" and _file(type(x))) and _users(x)


def dunder(name: str) -> bool:
    """Whether a member has a name under which Python itself calls it."""
    return name in MAKING or (name[:2] == name[-2:] == "__")


@functools.lru_cache(1_000)
def _names(c: type) -> frozenset[str]:
    """The members of a class, and what the code of its methods names."""
    functions = [f for n, m in vars(c).items() for f in members(m, c, n) if isinstance(f, FunctionType)]
    return frozenset(vars(c)).union(*[code.co_names for f in functions for code in _nested(f.__code__)])


def _generated(c: type, name: str) -> bool:
    """Whether a method of a class is one that dataclass wrote."""
    m = vars(c).get(name)
    if not dunder(name) or type(m) is not FunctionType or "__dataclass_fields__" not in vars(c):
        return False
    code = getattr(inspect.unwrap(m), "__code__", None)
    return code is not None and code.co_filename == "<string>"


def members(m: Any, c: type, name: str) -> Iterator[Any]:
    """The functions and objects in a member of a class."""
    if callable(m) and _generated(c, name):  # its code names all fields; it may call their default factories
        f = inspect.unwrap(m)
        yield from (f.__defaults__, f.__kwdefaults__, *[x.cell_contents for x in f.__closure__ or ()])
    elif isinstance(m, functools.singledispatchmethod):
        yield from (m.func, *m.dispatcher.registry.values())
    elif isinstance(m, functools.partialmethod):
        yield from (m.func, *m.args, *m.keywords.values())
    elif isinstance(m, (classmethod, staticmethod)):
        yield m.__func__
    elif isinstance(m, property):
        yield from [f for f in (m.fget, m.fset) if f is not None]
    elif isinstance(m, functools.cached_property):
        yield m.func
    else:
        yield m


def holds(x: Any) -> bool:
    """Whether an object may hold something in attributes."""
    return attributes(x) is not None or hasattr(type(x), "__slots__")


def bindings(function: Any, roots: tuple, before: Before, classes: Iterable[type] = ()) -> list[Binding]:
    """The arrays that a function and objects can reach, and whatever else there is that the user's code names or that
    a container holds. `classes`: those of other objects that it is given."""
    found: list[Binding] = []
    others: list[Binding] = []
    drawn: list[Binding] = []
    opaque: list[tuple[Any, Binding | None]] = []  # objects of libraries of which nothing tells what they hold
    objects: list[tuple[Any, Binding | None]] = []  # with attributes, and what led to them
    uses = Uses()
    names = uses.names
    seen: dict[int, Any] = {}
    own: list[tuple] = []  # what the classes of objects hold for them all
    pending: list[tuple[Any, Binding | None]] = [(x, None) for x in (function, roots)]
    codes: list[CodeType] = []
    looked: set[tuple[int, str]] = set()  # of libraries' modules
    draws = False
    for c in classes:
        uses.add_class(c, False)
    while pending and len(seen) < MOST:
        x, via = pending.pop()
        if id(x) not in seen:
            seen[id(x)] = x
            if isinstance(x, FunctionType) and _own(x.__code__.co_filename):
                codes += _nested(x.__code__)
                draws |= any(_draws(code, x.__globals__) for code in _nested(x.__code__))
            if (via is None or not via.foreign) and is_of_library(x):
                parts, ours = plain_parts(x), module_of(type(x)).partition(".")[0] == "minnp"
                # a layer of ours has arrays, of which graphs tell
                uses.plain |= set() if ours and any(isinstance(p, ARRAYS) for p in parts.values()) else parts.keys()
                if not parts and not ours and (not of_python(x) or unfollowed(x)):
                    opaque.append((x, via))
            # what a library holds, its containers too, but for the user's functions and objects
            shared = type(x) is not FunctionType and module_of(type(x)) == "builtins"
            foreign = via is not None and via.foreign and (shared or not _users(x))
            if isinstance(x, CONTAINERS) and not foreign:
                before.add(x)
            for default in (
                (x.__defaults__ or ()) if isinstance(x, FunctionType) and _own(x.__code__.co_filename) else ()
            ):
                if isinstance(default, CONTAINERS):
                    before.add(default)
            if isinstance(x, CACHE) and _users(inspect.unwrap(x)):
                before.caches.append((x, _cached(x)))
            for binding in _inside(x, uses):
                if type(binding) is not Binding:
                    pending.append((binding, via))
                    continue
                binding.via = via
                binding.foreign |= foreign
                drawn += [] if binding.foreign or not drawn_from(binding.value) else [binding]
                if isinstance(binding.value, ARRAYS):
                    found.append(binding)
                elif not binding.foreign and many_numbers(binding.value):
                    others.append(binding)
                    binding.look()
                elif isinstance(binding.value, NUMBERS):
                    others += [] if binding.foreign else [binding]
                    if type(binding.value) not in NOT_OF_USERS and _users(binding.value):  # a class of the user's
                        pending.append((binding.value, binding))
                else:
                    if not binding.foreign and type(binding.value) in CONTAINERS:
                        others.append(counted(binding.holder, binding.key, binding.value, via))
                    elif not binding.foreign and not isinstance(binding.value, ModuleType):
                        others.append(binding)
                    pending.append((binding.value, binding))
            if not foreign and (_users(x) or id(x) in uses.plain) and isinstance(held := attributes(x), dict):
                objects.append((x, via))
                if not isinstance(x, ModuleType):
                    before.add(held)
        if not pending:
            pending = [(p, None) for p in uses.set_in_libraries() if (id(p.holder), p.key) not in looked]
            looked.update((id(p.holder), p.key) for p, _ in pending)
        if not pending:
            own = uses.members()
            parts = [(m, None) for c, n, x in own if not isinstance(x, CONTAINERS) for m in members(x, c, n)]
            parts += [(x, Binding(vars(c), n, x)) for c, n, x in own if isinstance(x, CONTAINERS)]
            pending = [(x, via) for x, via in parts if id(x) not in seen and not isinstance(x, (*ARRAYS, *NUMBERS))]
    for c, n, v in own:
        member = counted(vars(c), n, v, None) if type(v) in CONTAINERS else Binding(vars(c), n, v, True)
        (found if isinstance(v, ARRAYS) else others).append(member)
    spaces: dict[type, Any] = {}
    for c, n in uses.hiding(own):
        others.append(Binding(spaces.setdefault(c, vars(c)), n, ABSENT, True))
    if not names.isdisjoint(ASKING):
        asked = [n for n in names if type(n) is str and n.isidentifier()]
        users = {c for reached in uses.reached for c in reached.__mro__} & uses.called.keys()
        absent = [(c, n) for c in users for n in asked if n not in vars(c)]
        others += [Binding(spaces.setdefault(c, vars(c)), n, ABSENT, True) for c, n in absent]
        names.update(p.key for p in found + others)
    # what an object's own attribute would hide
    hides = {c for c, n, _ in own if not dunder(n)}
    for x, via in objects:
        if not names.isdisjoint(ASKING) or not hides.isdisjoint(type(x).__mro__):
            others.append(counted([vars(x)], 0, vars(x), via))
    reached = lambda p: p.item or p.key in names or type(p.key) is int
    streams = "random" in names or any(isinstance(x, STREAMS) for x in seen.values())
    draws |= any(map(reached, drawn)) or not DRAWING.isdisjoint(names)
    draws |= not OF_TORCH.isdisjoint(names) and id(sys.modules.get("torch", seen)) in seen
    before.draws = draws or (streams and not OF_STREAMS.isdisjoint(names))
    before.missing = [name for name in uses.modules if name not in sys.modules]
    if "as_tensor" in names and id(sys.modules.get("torch", seen)) in seen:
        uses.unknown = "as_tensor(), whose memory is its argument's, leads to"
    for x in (*seen.values(), *[v for _, _, v in uses.in_libraries()]):
        if type(x).__name__ == "fortran":  # of LAPACK or BLAS: what is no array of NumPy's is not copied for it
            uses.unknown = "a routine of Fortran's leads to"
    before.unknown = uses.unknown or next(
        (f"a {type(x).__name__} holds" for x, via in opaque if led_to(via, reached)), ""
    )
    before.writes = not WRITING.isdisjoint(names)
    before.catches = uses.catches or "suppress" in names
    itself = getattr(inspect.unwrap(function), "__code__", None)
    before.kinds = any(map(kinds_asked, codes))
    arguments = set() if itself is None else set(itself.co_varnames[: itself.co_argcount + itself.co_kwonlyargcount])
    for code in codes:
        asked = typed_variables(code)
        before.types |= any("." in name for name in asked) or bool(asked - (arguments if code is itself else {"self"}))
    by_libraries = uses.shows or reads_memory(names, seen.values())
    functions = [x for x in seen.values() if isinstance(x, FunctionType) and _own(x.__code__.co_filename)]
    keys = {p.name for p in found if isinstance(p.name, str)}
    unnamed = not all(UNNAMED.isdisjoint(f.__code__.co_names) for f in functions)
    whole = getattr(inspect.unwrap(function), "__func__", inspect.unwrap(function))
    known: list | None = None  # the functions, once there is an array to look for
    for p in found:
        p.asked = reached(p) and not p.foreign
        array = unwrapped(p.value) if p.asked else None
        if type(array) is Host and array.size and (by_libraries or array is p.value):
            if known is None:
                known = followed(functions, whole, keys)
            reads = [read for f in known for read in f.reads(p.name)]
            if array is p.value:  # NumPy's own, whose operators tell nobody
                p.unseen = by_libraries or unnamed or not reads or not all(reads)
                p.look()
            elif unnamed or not reads or not all(reads):
                p.unseen = True
                p.look()
        if array is not None and "flags" in names:
            others.append(flag := Binding(access := Access(p.value), None, access[None], True))
            flag.via = p
    others = [p for p in others if reached(p)]
    if uses.orders or uses.shows or not names.isdisjoint(ORDERED):
        for p in list(others):
            if isinstance(p.value, dict) and not p.foreign and 1 < len(p.value) <= LONGEST:
                if type(p.was) is dict:  # its numbers are looked at
                    others.append(p := counted(p.holder, p.key, p.value, p.via))
                p.ordered = True
                p.look()
    return found + others


# Functions of NumPy's that read the memory of what they are given and ask no method of it, or make arrays that a
# program writes it into; and functions of Python's that do
READERS = {"array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "asfarray", "require", "frombuffer"}
READERS |= {"fromiter", "ndarray", "matrix", "asmatrix", "asarray_chkfinite"}
READERS |= {"zeros", "empty", "ones", "full", "arange"}
PYTHONS_READERS = {"memoryview", "deepcopy", "__deepcopy__", "dumps", "nditer", "data", "ctypes", *SHOWERS - {"print"}}


def reads_memory(names: Iterable[str], reached: Iterable[Any]) -> bool:
    """Whether code calls libraries that may read the memory of arrays, of which no graph tells."""
    if not PYTHONS_READERS.isdisjoint(names):
        return True
    readers = READERS.intersection(names)
    for x in reached:
        if isinstance(x, ModuleType):
            module = x.__name__
            if module == "scipy" or module.startswith("scipy.special"):  # ufuncs, which ask
                continue
        elif isinstance(x, (FunctionType, BuiltinFunctionType)):
            module = module_of(x)
        else:
            continue
        top = module.partition(".")[0]
        if top == "numpy" and (readers if isinstance(x, ModuleType) else x.__name__ in READERS):
            return True
        file = getattr(sys.modules.get(module), "__file__", None)
        if top not in ("minnp", "numpy") and top not in sys.stdlib_module_names and file and not _own(file):
            return True
    return False


def counted(holder: Any, key: Any, value: Any, via: Binding | None) -> Binding:
    """What holds a container, of which only the length is looked at."""
    binding = Binding(holder, key, value)
    binding.via, binding.counted = via, True
    binding.look()
    return binding


def order(x: dict) -> tuple:
    """The keys of a dict in their order, which an OrderedDict has on its own."""
    return tuple(OrderedDict.__iter__(x) if isinstance(x, OrderedDict) else dict.__iter__(x))


def _inside(x: Any, uses: Uses) -> Iterator[Any]:
    """The bindings in one object, and objects it is made of for good; adds to what code uses."""
    if type(x) in weakref.ProxyTypes:  # which isinstance does not tell from what it stands for
        yield x.__dir__.__self__
    elif type(x) is Binding:  # without the object that has it
        yield x
    elif x is os.getenv:
        yield Binding(vars(os), "environ", os.environ, True)
    elif isinstance(x, FunctionType):
        own, named = _own(x.__code__.co_filename), set()
        for code in _nested(x.__code__):
            uses.names.update(c for c in code.co_consts if type(c) is str)
            if own:
                named |= _scan(code, uses)
        uses.names |= named
        if own and "import_module" in uses.names:
            uses.unknown = "import_module() leads to"
        for name in (named & UNKNOWN) - x.__globals__.keys():  # the builtins themselves
            uses.unknown = f"{name}() leads to"
        for name in ((uses.names | named) & OF_WARNINGS) if own else ():
            uses.unknown = f"{name}() leads to"
        package = x.__globals__.get("__package__") or ""
        for name in uses.modules if own else ():
            for full in (name, f"{package}.{name}"):
                parts = full.split(".")
                yield from [m for i in range(len(parts)) if (m := sys.modules.get(".".join(parts[: i + 1])))]
        for name, cell in zip(x.__code__.co_freevars, x.__closure__ or ()):
            try:
                value = cell.cell_contents
            except ValueError:  # empty
                continue
            yield Binding(cell, None, value, name=name) if own else value  # a library's own names are not bound anew
        for name in named & x.__globals__.keys():
            yield Binding(x.__globals__, name, x.__globals__[name])
        unbound = (
            named if not named.isdisjoint(UNDEFINED) else named & BUILTINS
        )  # one that is not defined may be caught
        for name in unbound - x.__globals__.keys():
            yield Binding(x.__globals__, name, ABSENT)
        yield from [Binding(x.__dict__, k, v) for k, v in x.__dict__.items()] if own else ()
        uses.names.update(DEFAULTS)
        for kept in DEFAULTS if own else ():
            if getattr(x, kept):
                yield Binding(Slots(x), kept, getattr(x, kept))
    elif isinstance(x, MethodType):
        yield from (x.__func__, x.__self__)
    elif isinstance(x, BOUND):  # which reads and changes what it is bound to
        uses.names.add(x.__name__)
        if not isinstance(x.__self__, (ModuleType, *NUMBERS)):
            yield Binding((x.__self__,), 0, x.__self__, True)
    elif isinstance(x, functools.partial):
        yield x.func
        yield from [Binding(x.args, i, v, True) for i, v in enumerate(x.args)]
        yield Binding((x.keywords,), 0, x.keywords, True)
    elif isinstance(x, logging.Logger):
        yield Binding(vars(x.manager), "_disable", x.manager.disable, True)
        at: Any = x
        while at is not None:  # each asks the one above it
            yield from [Binding(vars(at), k, vars(at)[k], True) for k in ("level", "disabled")]
            at = at.parent
    elif isinstance(x, ModuleType):
        if _own(_file_of(x)):
            yield from [Binding(vars(x), k, v) for k, v in vars(x).items() if not isinstance(v, ModuleType)]
        elif x.__name__.partition(".")[0] not in ARRAY_LIBRARIES:
            uses.libraries[x.__name__] = x
    elif isinstance(x, type):
        if _own(_file(x)):
            uses.add_class(x, True)
        if _own(_file(type(x))):
            uses.add_class(type(x), False)
    elif isinstance(x, VIEWS):
        yield from [Binding((d,), 0, d, True) for d in gc.get_referents(x)]
    elif isinstance(x, memoryview):
        yield Binding(Slots(x), "obj", x.obj, True)
    elif isinstance(x, weakref.ref):
        yield Binding(Asked(x), None, Asked(x)[None], True)
        yield x()
    elif isinstance(x, ContextVar):
        yield Binding(Asked(x), None, x.get(ABSENT), True)
        if x.get(ABSENT) is ABSENT:  # it may have a default
            with contextlib.suppress(LookupError):
                yield x.get()
    elif isinstance(x, (operator.attrgetter, operator.methodcaller)):
        uses.names.update(*[name.split(".") for name in x.__reduce__()[1] if type(name) is str])
    elif isinstance(x, onp.ufunc):
        yield from [f for f in gc.get_referents(x) if type(f) is FunctionType]  # of frompyfunc
    else:
        if isinstance(x, (dict, list, tuple, deque)) and len(x) <= LONGEST and not many_numbers(x):
            yield from [Binding(x, k, v, True) for k, v in (x.items() if isinstance(x, dict) else enumerate(x))]
        if isinstance(x, (set, frozenset)) and len(x) <= LONGEST:
            yield from x
        if isinstance(x, CACHE) and _users(inspect.unwrap(x)):
            yield from _kept_results(x, uses)
        members = attributes(x) or {}
        for name in ("__wrapped__", "pyfunc"):
            if name in members:
                yield members[name]
                return
        if holds(x) and (_holder(type(x)) or not module_of(type(x)).startswith(OURS)):
            yield from _attributes(x, uses)


def _cache(f: Any) -> dict:
    """What a function that keeps its results keeps them in: the results, or, if it keeps so many of them, places."""
    return next((x for x in reversed(gc.get_referents(f)) if type(x) is dict and x is not vars(f)), {})


def _cached(f: Any) -> list:
    """The arrays, and the objects that may change, among the results (and arguments) that a function keeps."""
    kept = _cache(f)
    found = kept.values() if f.cache_parameters()["maxsize"] is None else gc.get_referents(f)
    found = [x for x in found if x is not kept and x is not vars(f) and not isinstance(x, type)]
    changing = (*CONTAINERS, *ARRAYS)
    return [x for x in found if isinstance(x, changing) or (module_of(type(x)) != "builtins" and _users(x))]


def _kept_results(f: Any, uses: Uses) -> Iterator[Any]:
    """The places where a function keeps objects that it returned, and these."""
    results, size, kept = _cached(f), f.cache_parameters()["maxsize"], _cache(f)
    objects = [x for x in results if not isinstance(x, ARRAYS)]
    if len(kept) > LISTED or (size is not None and size <= LISTED):  # where results change places
        uses.unknown = f"{f.__name__}() leads to" if objects else uses.unknown
    elif results:
        yield from [Binding(kept, k, v, True) for k, v in kept.items()]
        yield from objects if size is not None else ()


def _scan(code: CodeType, uses: Uses) -> set[str]:
    """The globals that code names; adds the attributes that it names, and what else it does, to `uses`."""
    if not state.CODE_IS_KNOWN:
        uses.names.update(code.co_names)
        uses.modules.update(code.co_names)
        uses.shows = uses.compares = uses.orders = uses.catches = True
        return set(code.co_names)
    named, before = set(), ""
    for i in dis.get_instructions(code):
        if i.opname in GLOBALS:
            named.add(i.argval)
        elif i.opname == "IMPORT_NAME":
            uses.modules.add(i.argval)
        elif i.opcode in dis.hasname:
            uses.names.add(i.argval)
            if i.opname == "STORE_ATTR" and i.argval == "__class__":
                uses.unknown = "x.__class__ = y leads to"
        elif i.opname == "CONTAINS_OP" or (i.opname == "COMPARE_OP" and "=" in i.argrepr and before not in LITERALS):
            uses.compares |= i.opname == "CONTAINS_OP" or i.argrepr.strip("bol()") in ("==", "!=")
        elif i.opname.startswith("FORMAT_") or (i.opname == "BINARY_OP" and i.argrepr == "%"):  # "%s" % x
            uses.shows |= i.opname != "BINARY_OP" or any(type(c) is str and "%" in c for c in code.co_consts)
        uses.catches |= i.opname in CATCHING or (before, i.opname) == ("PUSH_EXC_INFO", "POP_TOP")
        uses.orders |= i.opname in ITERATING
        before = i.opname
    return named


def _attributes(x: Any, uses: Uses) -> Iterator[Binding]:
    """The bindings in the attributes of an object."""
    plain = id(x) in uses.plain
    own, item = plain or _users(x), plain or _holder(type(x))
    members = attributes(x) or {}
    for key, value in members.items():
        binding = Binding(members, key, value, item)
        binding.foreign = not own
        yield binding
    for c in type(x).__mro__ if own else ():
        slots = Slots(x)
        named = vars(c).get("__slots__", ())
        yield from [Binding(slots, n, slots[n]) for n in ((named,) if type(named) is str else named)]
    if own and not plain:
        uses.add_class(type(x), False)


def is_of_library(x: Any) -> bool:
    """Whether an object may hold values of which no graph tells and that a library's code reads: a table of pandas, a
    model of scikit-learn, a tensor of torch."""
    if isinstance(x, (type, ModuleType, FunctionType, *BOUND, *FOLLOWED)):
        return False
    if any(module_of(c) == "_ctypes" for c in type(x).__mro__):
        return True
    name, t = module_of(type(x)), type(x)
    if name.partition(".")[0] in sys.stdlib_module_names and t.__hash__ is not None and t.__eq__ is not object.__eq__:
        return False  # a value that stays, as a Decimal
    known = name.partition(".")[0] in KNOWN_LIBRARIES or name.startswith(KNOWN_PARTS)
    known |= name.startswith("scipy.stats.") and t.__name__.endswith("_gen")  # a family of distributions
    return not known and bool(name) and (of_python(x) or not _own(_file(type(x))))


class _Plain:
    pass


def plain_parts(x: Any) -> dict[int, Any]:
    """An object of a library's and those that it is made of, by id, where they hold all that they are in attributes and
    containers; nothing where they do not, or are too many."""
    found: dict[int, Any] = {}
    pending = [x]
    while pending:
        v = pending.pop()
        if id(v) in found or isinstance(v, (*NUMBERS, type, ModuleType, FunctionType, *COMPILED)):
            continue
        found[id(v)] = v
        if len(found) > PARTS or drawn_from(v) or isinstance(v, WEAK):
            return {}
        if isinstance(v, onp.ndarray) and v.dtype.hasobject:
            if not all(isinstance(one, NUMBERS) for one in v.flat):  # as the lists of a sparse matrix's rows
                return {}
        elif isinstance(v, ARRAYS):
            continue
        elif type(v) is MethodType:
            pending += (v.__self__, v.__func__)
        elif type(v) in (dict, MappingProxyType):
            pending += (*v, *v.values())
        elif type(v) in (list, tuple, set, frozenset, deque):
            pending += v
        elif v is x or not (
            isinstance(v, STREAMS) or (of_python(v) and not unfollowed(v))
        ):  # as a path, a date, a logger
            alike = [(t.__basicsize__, t.__itemsize__, t.__dictoffset__) for t in (type(v), _Plain)]
            if alike[0] != alike[1] or (held := attributes(v)) is None:
                return {}
            pending += held.values()
    return found


def led_to(via: Binding | None, reached: Callable[[Binding], bool]) -> bool:
    """Whether code may reach what bindings lead to."""
    while via is not None and reached(via):
        via = via.via
    return via is None


def many_numbers(x: Any) -> bool:
    """Whether a container holds numbers alone that are looked at together: those of a set, of a record, or more than
    are looked at one by one."""
    if type(x) in BUFFERS or (isinstance(x, onp.void) and x.dtype.names):
        return True
    if type(x) is set:
        return len(x) <= LISTED and all(isinstance(v, NUMBERS) for v in x)
    if type(x) not in (list, dict) or not LISTED < len(x) <= LONGEST:
        return False
    return all(isinstance(v, NUMBERS) for v in (x if type(x) is list else x.values()))


def unchanged(x: Any, was: Any) -> bool:
    """Whether a container or an array is what it was, or a container as long."""
    if type(was) is int:
        return hasattr(x, "__len__") and len(x) == was
    if type(was) in (list, dict, set):
        return type(x) is type(was) and x == was
    if type(was) is tuple:
        return isinstance(x, dict) and order(x) == was
    if type(was) in BUFFERS:
        return type(x) is type(was) and bytes(x) == bytes(was)
    if isinstance(was, onp.void):
        same = (lambda: x == was) if was.dtype.hasobject else lambda: x.tobytes() == was.tobytes()
        return type(x) is type(was) and x.dtype == was.dtype and bool(same())
    x = unwrapped(x)
    return type(x) is Host and same_bytes(x, was)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for c in code.co_consts:
        if isinstance(c, CodeType):
            yield from _nested(c)


def _draws(code: CodeType, names: dict) -> bool:
    """Whether code uses the random numbers of NumPy's own module, of which each call takes some."""
    if "random" not in code.co_names and not any(names.get(name) is onp.random for name in code.co_names):
        return False
    if not state.CODE_IS_KNOWN:
        return any(names.get(name) is module for name in code.co_names for module in (onp, onp.random))
    steps = [i for i in dis.get_instructions(code) if i.opname.startswith("LOAD_")]
    found = [(names.get(a.argval), b.argval) for a, b in itertools.pairwise(steps) if a.opname == "LOAD_GLOBAL"]
    return any(module is onp.random or (module is onp and name == "random") for module, name in found)


def _own(file: str | None) -> bool:
    """Whether a file is the user's, no library's."""
    return file is not None and not file.startswith(LIBRARIES)


def _users(x: Any) -> bool:
    """Whether an object is of a class of the user's, or has the user's values alone; whether a function is."""
    if type(x) is FunctionType:
        return _own(x.__code__.co_filename)
    return isinstance(x, NAMESPACES) or _holder(type(x)) or _own(_file(type(x)))


@functools.lru_cache(1_000)
def _holder(c: type) -> bool:
    """Whether objects of a class of a library's have the user's values, in attributes that the user's code does not
    name."""
    return issubclass(c, HOLDERS) or any(module_of(b).startswith("numpy.polynomial") for b in c.__mro__)


def _file_of(m: ModuleType) -> str | None:
    held = object.__getattribute__(m, "__dict__")  # nothing that would load it
    return held.get("__file__", "" if held.get("__spec__") is None else None)


def module_of(c: type) -> str:
    """The name of a class's module; "" for one that was made without (by type, in code without __name__)."""
    name = getattr(c, "__module__", "")
    return name if type(name) is str else ""


def _file(c: type) -> str | None:
    return getattr(sys.modules.get(module_of(c)), "__file__", "")


def raised_by(error: BaseException | None) -> str:
    """The library, neither NumPy nor minnp, in whose Python code an exception was raised, or of whose class it is; ""
    for others."""
    at = error and error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    found = [] if _own(_file(type(error))) else [module_of(type(error))]
    if at is not None and not _own(at.tb_frame.f_code.co_filename):
        found.append(at.tb_frame.f_globals.get("__name__", ""))
    names = [name.partition(".")[0] for name in found]
    return next((name for name in names if name not in ("", "builtins", "numpy", "minnp")), "")


def goes_on(part: Any) -> bool:
    """Whether a part of a result computes when it is used: a generator, or a function made inside."""
    return isinstance(part, GeneratorType) or (isinstance(part, FunctionType) and part.__closure__ is not None)


class Environment:
    """The bindings that one specialisation depends on, and those that lead to them.

    found      (binding, the name of its array in the code, or None)
    arrays     those of the specialisation, by name
    names      what the names in the code stand for
    kept       the arrays of what a backend compiled, by name, or None
    """

    def __init__(self, found: list[tuple[Binding, str | None]], arrays: dict) -> None:
        watched = {id(binding): (binding, name) for binding, name in found}
        for binding, _ in found:
            while (binding := binding.via) is not None:
                watched.setdefault(id(binding), (binding, None))
        self.found, self.arrays = list(watched.values()), arrays
        self.names: dict[str, Any] = {}
        self.kept: dict[str, Any] | None = None
        self.lookups: dict[str, Callable] = {}  # names in the code, and what they stand for
        # names in the code of how many names modules and classes have, some of which hide others
        self.grows: dict[str, Any] = {}
        self.cells: dict[str, CellType] = {}  # variables of the code that are the user's own

    def lines(self, hold: Callable[[str, Any], str]) -> list[str]:
        """Code that raises Diverged unless each binding is what it was; hold(name, object) names an object."""
        terms = []
        values: dict[tuple, str] = {}  # what is held in one place is looked at once
        for i, (binding, _) in enumerate(self.found):
            named = type(binding.holder) in (Slots, Asked)
            place = id(binding.holder.owner if named else binding.holder), binding.key
            looked = place in values
            value = values[place] if looked else hold(f"value_{i}", binding.value)
            if not looked:
                values[place] = value
                self.lookups[value] = functools.partial(getattr, binding, "value")
            holder = hold(f"holder_{i}", binding.holder)
            if looked or type(binding.holder) is tuple:  # which holds what it held
                pass
            elif type(binding.holder) is CellType:
                self.cells[holder] = binding.holder
                terms.append(f"{holder} is {value}")
            elif binding.value is ABSENT and type(binding.holder) in SPACES:  # to ask for each name would take long
                if all(x is not binding.holder for x in self.grows.values()):
                    size = hold(f"size_{i}", len(binding.holder))
                    self.grows[size] = binding.holder
                    terms.append(f"len({holder}) == {size}")
            elif type(binding.holder) is Slots and binding.key in DEFAULTS:
                terms.append(f"{hold(f'owner_{i}', binding.holder.owner)}.{binding.key} is {value}")
            else:
                self.lookups[holder] = functools.partial(getattr, binding, "holder")
                key = repr(binding.key) if type(binding.key) in (str, int) else hold("key", binding.key)
                item = f"{holder}[{key}]"
                if makes_items(binding.holder):
                    item = f"{hold('get', dict.get)}({holder}, {key}, {hold('absent', ABSENT)})"
                terms.append(f"{item} is {value}")
            if binding.ordered and type(binding.value) is dict:
                was = hold(f"was_{i}", binding.was)
                self.lookups[was] = functools.partial(getattr, binding, "was")
                terms.append(f"(*{value},) == {was}")
            elif isinstance(binding.value, (dict, list)):  # a loop over it may have one turn more
                terms.append(f"len({value}) == {len(binding.value)}")
            asked = type(binding.value) is not dict if binding.ordered else not binding.counted
            if binding.was is not None and (asked or not isinstance(binding.value, (dict, list))):
                was = hold(f"was_{i}", binding.was)
                self.lookups[was] = functools.partial(getattr, binding, "was")
                terms.append(f"{hold('unchanged', unchanged)}({value}, {was})")
        if not terms:
            return []
        diverged, gone = hold("Diverged", Diverged), hold("gone", UNBOUND)
        checks = [f"        if not ({' and '.join(terms)}):", f"            raise {diverged}"]
        return ["    try:", *checks, f"    except {gone}:", f"        raise {diverged} from None"]

    def present(self) -> dict[str, Any]:
        """The arrays that would be read now, by name; None where nothing is any more."""
        now: dict[str, Any] = {}
        for binding, name in self.found:
            if name is not None:
                try:
                    now[name] = unwrapped(_now(binding)[1])
                except UNBOUND:
                    now[name] = None
        return now

    def follow(self, numbers: bool = False) -> bool | None:
        """Whether the specialisation may run once more: bound anew were arrays that lie alike, which it then reads,
        numbers that are equal (or any, if `numbers`), and containers with the same keys on the way to them. None if it
        may not; False if nothing was bound anew."""
        moved: dict[str, Any] = {}
        ways = {id(binding.via) for binding, _ in self.found}
        looked: list[tuple] = []
        try:
            states = [_now(binding) for binding, _ in self.found]
        except UNBOUND:
            return None
        leads = {id(binding.value): new for (binding, _), (_, new) in zip(self.found, states) if id(binding) in ways}
        for (binding, name), (_, new) in zip(self.found, states):
            if leads.get(id(binding.value), new) is not new:  # two held one object, through one of which it was read
                return None
            if name is not None:
                array = unwrapped(new)
                if not _lie_alike(array, self.names.get(name)) or moved.setdefault(name, array) is not array:
                    return None
                if binding.was is not None and not unchanged(new, binding.was):
                    return None
            elif binding.was is not None and numbers and type(new) is type(binding.value):
                looked.append((binding, new))
            elif binding.was is not None and not unchanged(new, binding.was):
                return None
            elif type(binding.was) in (list, dict, set) and identity(new) != identity(binding.was):
                return None  # equal numbers of other types
            elif new is binding.value or (numbers and changing(binding.value) and changing(new)):
                continue
            elif _kind(new) != _kind(binding.value):
                return None
        for binding, new in looked:
            binding.value = new
            binding.look()
        before = [(binding.holder, binding.value) for binding, _ in self.found]
        self.arrays.update(moved)
        self.names.update(moved)
        for (binding, name), (holder, new) in zip(self.found, states):
            binding.holder, binding.value = holder, new
            if name in moved and self.kept is not None:
                self.kept[name] = new  # an array has the present buffer
        for name, what in self.lookups.items():
            self.names[name] = what()
        grown = {name: len(x) for name, x in self.grows.items() if self.names[name] != len(x)}
        self.names.update(grown)
        return bool(looked or grown) or any(a is not c or b is not d for (a, b), (c, d) in zip(before, states))


def changing(x: Any) -> bool:
    """Whether it is a number, in whose place another one may serve."""
    return isinstance(x, NUMBERS) and x is not ABSENT


def _now(binding: Binding) -> tuple[Any, Any]:
    """(the holder, what it holds) of a device now, where what leads to it was bound anew. Raises UNBOUND."""
    holder, via = binding.holder, binding.via
    found = None if via is None else _now(via)[1]
    if via is not None and found is not via.value and not _same_method(found, via.value):
        if holder is not via.value and holder is not attributes(via.value):
            raise LookupError
        holder = found if holder is via.value else attributes(found)
    return holder, value_at(holder, binding.key, binding.value)


def _same_method(a: Any, b: Any) -> bool:
    """Whether both are one method bound to one object, which is another object wherever it is asked for."""
    return type(a) is type(b) and isinstance(a, BOUND) and bool(a == b)


def _kind(x: Any) -> Any:
    """What two things must have in common for one of them to serve: numbers all; containers and objects the keys."""
    if isinstance(x, NUMBERS):
        return identity(x)
    if callable(x) and attribute(x, "__name__") is not None:
        return type(x), x
    if hasattr(type(x), "__get__"):  # a member of a class, of which its attributes do not tell what it runs
        return type(x), id(x)
    if isinstance(x, functools.partial):
        return type(x), id(x)
    if isinstance(x, (list, tuple)):
        return type(x), len(x)
    if isinstance(x, ARRAYS):
        return type(x), x.shape, x.dtype, getattr(x, "strides", None)
    if isinstance(x, STREAMS):  # the graph holds it
        return id(x)
    if isinstance(x, dict):
        return type(x), list(map(identity, x))
    members = attributes(x)
    unfollowed = members is None or module_of(type(x)).partition(".")[0] in KNOWN_LIBRARIES  # as np.finfo("f4")
    return type(x), [id(x)] if unfollowed else list(members)


class Checked:
    """What a backend compiled, run where the bindings hold what they held."""

    def __init__(self, run: Any, environment: Environment) -> None:
        self.run = run
        environment.kept = getattr(run, "constants", None)
        if environment.kept is not None:
            environment.names |= {
                name: unwrapped(binding.value) for binding, name in environment.found if name is not None
            }
        lines = ["def check():", *(environment.lines(functools.partial(hold, environment.names)) or ["    pass"])]
        self.check = define(lines, "<minnp jit check>", environment.names, environment.cells)

    def __call__(self, *given: Any) -> Any:
        self.check()
        return self.run(*given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.run, name)


def define(lines: list[str], file: str, names: dict[str, Any], cells: dict[str, CellType]) -> FunctionType:
    """The function that lines of Python say, whose variables named in `cells` are these cells."""
    if not cells:
        exec(compile("\n".join(lines), file, "exec"), names)
        return names[lines[0][len("def ") : lines[0].index("(")]]
    made = compile(f"def outer({', '.join(cells)}):\n " + "\n ".join(lines), file, "exec").co_consts[0].co_consts
    (code,) = [c for c in made if isinstance(c, CodeType)]
    closure = tuple([cells[name] for name in code.co_freevars])
    return FunctionType(code.replace(co_firstlineno=1), names, code.co_name, None, closure)


def hold(names: dict[str, Any], name: str, value: Any) -> str:
    """A name for an object in generated code, that stands for nothing else there."""
    while name in names and names[name] is not value:
        name += "_"
    names[name] = value
    return name


def unwrapped(x: Any) -> Any:
    """What an array of ours holds; anything else itself."""
    return read(x) if type(x) in ARRAY_TYPES else x


def _lie_alike(a: Any, b: Any) -> bool:
    """Whether code for one array serves for the other. That of an array without axes may hold its number."""
    if a is b:
        return True
    if type(a) is type(b) is Buffer:
        lies = lambda x: (x.backend, x.shape, x.dtype, x.backend.strides(x.data))
        return lies(a) == lies(b) and a.ndim > 0
    same = type(a) is type(b) is Host and (a.shape, a.dtype, a.strides) == (b.shape, b.dtype, b.strides)
    flags = lambda x: (x.flags.aligned, x.flags.writeable)
    return same and a.ndim > 0 and flags(a) == flags(b)


def seal(graph: Graph, constants: dict[str, Any]) -> None:
    """Mark the constants of a capture that the function made itself and nobody holds any more: they cannot change. A
    number repeated along axes shows the memory of a number of NumPy's, which does not change either."""
    if not state.CODE_IS_KNOWN:
        return
    for node in graph.find_nodes(op="get_attr"):
        alone = references(operator.getitem, constants, node.target) == 3  # all the capture's own
        value = constants[node.target]
        if alone and type(value) is Host and (value.flags.owndata or isinstance(value.base, onp.generic)):
            node.meta["sealed"] = True
