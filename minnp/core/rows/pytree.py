"""Nested tuples, lists, dicts, namedtuples and dataclasses of arrays."""

from __future__ import annotations

import copy
import dataclasses
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable
from types import MappingProxyType, NoneType
from typing import Any

LEAVES = {int, float, complex}  # the commonest types of leaves, known at once; array.py adds ours


def tree_map(f: Callable, tree: Any, *rest: Any) -> Any:
    """A tree of the same structure with f(leaf, *leaves of rest) at every leaf.

    Containers: tuple, list, dict, namedtuple, dataclass instances, and None (which has no leaves).
    Raises ValueError where a tree of `rest` has another structure.
    """
    children, rebuild = _open(tree)
    if children is None:
        return f(tree, *rest)
    others = []
    for other in rest:
        theirs, _ = _open(other)
        if theirs is None or len(theirs) != len(children):
            raise ValueError(f"trees differ in structure: {type(tree).__name__} of {len(children)} and {other!r}")
        others.append(theirs)
    return rebuild([tree_map(f, *group) for group in zip(children, *others, strict=True)])


def tree_leaves(tree: Any) -> list:
    """The leaves of a tree, in order."""
    children, _ = _open(tree)
    if children is None:
        return [tree]
    leaves: list = []
    for child in children:
        if type(child) in LEAVES:
            leaves.append(child)
        else:
            leaves += tree_leaves(child)
    return leaves


TEXTS = {str}
CONSTANTS = {int, float, complex, bool, str, bytes, type(None)}  # whose text says all of them
CONTAINERS = {list, tuple, dict}
NOTHING: dict[str, Any] = {}
DEEPEST = 64  # axes that an array of NumPy's can have: containers farther in are objects to it


def replaced(x: Any, leaf: Callable, copies: bool = False, met: dict | None = None, depth: int = 0) -> Any:
    """A list, tuple or dict with leaf(e) for all that it and the containers in it hold; x itself if each leaf(e) is e.

    NumPy's arrays of objects hold the very containers they are given, so no other is handed on without need, unless
    `copies` asks for one that its owner cannot change. One that holds itself is in there as it was.
    """
    t = type(x)
    if t not in CONTAINERS:
        return leaf(x)
    met = {} if met is None else met
    if id(x) in met:
        return met[id(x)]
    if depth > DEEPEST:
        return x
    met[id(x)] = x
    old = list(x.values() if t is dict else x)
    new = [replaced(e, leaf, copies, met, depth + 1) if type(e) in CONTAINERS else leaf(e) for e in old]
    if copies or not all(map(operator.is_, old, new)):
        met[id(x)] = dict(zip(x, new, strict=True)) if t is dict else t(new)
    return met[id(x)]


def inside(x: Any) -> list:
    """x, or what lists, tuples and dicts in it hold, in order; each container is looked into once."""
    found: list = []
    met, left = set(), [x]
    while left:
        e = left.pop()
        if type(e) not in CONTAINERS:
            found.append(e)
        elif id(e) not in met:
            met.add(id(e))
            left += [*(e.values() if type(e) is dict else e)][::-1]
    return found


def children(tree: Any) -> list | None:
    """What a container holds, in order; None for a leaf."""
    return _open(tree)[0]


def rebuilt(tree: Any, new: list) -> Any:
    """A container like this one of other children."""
    rebuild = _open(tree)[1]
    assert rebuild is not None
    return rebuild(new)


def tree_flatten(tree: Any) -> tuple[list, Callable]:
    """(leaves, rebuild) with rebuild(leaves) a tree of the same structure."""
    leaves = tree_leaves(tree)

    def rebuild(new: Any) -> Any:
        new = iter(new)
        return tree_map(lambda _: next(new), tree)

    return leaves, rebuild


def open_tree(tree: Any, leaves: list) -> Any:
    """A hashable description of a tree's structure, the same for trees that differ in leaves only; the leaves are
    appended to `leaves`."""
    children, _ = _open(tree)
    if children is None:
        leaves.append(tree)
        return "*"
    names = None
    if isinstance(tree, dict):
        names = tuple(tree) if TEXTS.issuperset(map(type, tree)) else distinct_keys(tree)
    if type(tree) not in CONTAINERS and tree is not None and (more := besides(tree)):
        names = names, *[(k, (type(v), repr(v)) if type(v) in CONSTANTS else Itself(v)) for k, v in more.items()]
    parts = []
    for child in children:
        if type(child) in LEAVES:
            leaves.append(child)
            parts.append("*")
        else:
            parts.append(open_tree(child, leaves))
    return type(tree), names, tuple(parts)


def of_containers(structure: Any) -> bool:
    """Whether open_tree describes no other containers than lists, tuples, dicts whose keys are texts, and None."""
    if structure == "*":
        return True
    kind, names, parts = structure
    plain = kind is NoneType or (kind in CONTAINERS and TEXTS.issuperset(map(type, names or ())))
    return plain and all(map(of_containers, parts))


class Itself:
    """An object by its identity; the reference keeps its id from being used again."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: Any) -> bool:
        return type(other) is Itself and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


LACKING = (AttributeError, LookupError, TypeError, ValueError, RuntimeError)  # what __getattr__ raises for what is not


def attribute(x: Any, name: str) -> Any:
    """An attribute of an object; None for one that it lacks, whatever its __getattr__ raises then."""
    try:
        return getattr(x, name)
    except LACKING:
        return None


def attributes(x: Any) -> Any:
    """The dict of an object's attributes; None for one that has none."""
    try:
        found = x.__dict__
    except LACKING:
        return None
    return found if isinstance(found, (dict, MappingProxyType)) else None


def besides(tree: Any) -> dict[str, Any]:
    """What a container holds besides its children: attributes that are no fields, what makes a defaultdict's items."""
    t = type(tree)
    held = attributes(tree) if t.__dictoffset__ else None
    if t is defaultdict or isinstance(tree, defaultdict):
        return {**(held or {}), "default_factory": tree.default_factory}
    if not held or held is tree:  # the latter a dict whose items are its attributes
        return NOTHING
    fields = NOTHING if isinstance(tree, (tuple, dict)) else getattr(t, "__dataclass_fields__", None)
    if fields is None:  # a leaf with attributes: an array of a subclass
        return NOTHING
    if len(held) == len(fields) and held.keys() == fields.keys():
        return NOTHING
    return {k: v for k, v in held.items() if k not in fields}


def all_besides(tree: Any) -> tuple[list, list[type]]:
    """(what containers in a tree hold besides their children, the classes of those that are objects)."""
    found: list = []
    classes: list[type] = []
    left = [tree]
    while left:
        inside = children(x := left.pop())
        if inside is None or x is None:
            continue
        left += inside
        if isinstance(x, dict):
            found += [k for k in x if type(k) not in CONSTANTS]
        if type(x) not in CONTAINERS:
            found += besides(x).values()
            classes.append(type(x))
    return found, classes


def distinct_keys(keys: Iterable) -> tuple:
    """Keys, and what tells them from equal ones: 1, 1.0 and True."""
    return tuple([(k, repr(k) if type(k) in (float, tuple) else type(k)) for k in keys])


def named(old: tuple, new: list) -> tuple:
    """A tuple with names, of old's class and with what else old remembers: results of SciPy's tests do."""
    out = tuple.__new__(type(old), new)
    if memory := getattr(old, "__dict__", None):
        same = {id(o): n for o, n in zip(old, out, strict=True)}
        vars(out).update({k: same.get(id(v), v) for k, v in memory.items()})
    return out


def _open(tree: Any) -> tuple[list | None, Callable | None]:
    """(children, rebuild from children) of a container; (None, None) for a leaf."""
    t = type(tree)
    if t in LEAVES:
        return None, None
    if t is tuple or t is list:
        return list(tree), t
    if t is dict:
        keys = list(tree)
        return list(tree.values()), lambda new: dict(zip(keys, new, strict=True))
    if tree is None:
        return [], lambda new: None
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return list(tree), lambda new: named(tree, new)
    if isinstance(tree, dict):
        keys = list(tree)
        return list(tree.values()), lambda new: _filled(tree, keys, new)
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        names = [field.name for field in dataclasses.fields(tree)]
        return [getattr(tree, n) for n in names], lambda new: _with_fields(tree, names, new)
    return None, None


def _with_fields(tree: Any, names: list[str], values: list) -> Any:
    """A copy of a dataclass's instance with these fields: no __post_init__ computes them anew."""
    made = copy.copy(tree)
    for name, value in zip(names, values, strict=True):
        object.__setattr__(made, name, value)
    return made


def _filled(like: dict, keys: list, values: list) -> dict:
    made = copy.copy(like)
    for key, value in zip(keys, values, strict=True):
        made[key] = value
    if attributes(like) is like:  # its items are its attributes
        made.__dict__ = made
    return made
