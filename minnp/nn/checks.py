"""What arguments must be: said before anything runs, in one wording for each kind of mistake."""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy

F = TypeVar("F", bound=Callable[..., Any])


def count(name: str, value: Any, least: int = 0) -> int:
    """value as an int of at least `least`."""
    try:
        number = operator.index(value)
    except TypeError as error:
        raise TypeError(f"{name} is a whole number, got {value!r}") from error
    if number < least:
        raise ValueError(f"{name} is at least {least}, got {number}")
    return number


class Text(str):
    """What a KeyError says: it shows the repr of what it is given, of a str in quotes and with backslashes."""

    __repr__ = str.__str__


def number(name: str, value: Any, above: float = -math.inf) -> Any:
    """value, a finite number of at least 0 (more than `above`, where given)."""
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} is a number, got {value!r}")
    if not 0 <= float(value) < math.inf or not float(value) > above:
        raise ValueError(f"{name} is a finite number {'above' if above == 0 else 'of at least'} 0, got {value}")
    return value


def flag(name: str, value: Any) -> bool:
    """value as True or False; 0 and 1 will do."""
    if not isinstance(value, bool) and value not in (0, 1):
        raise TypeError(f"{name} is True or False, got {value!r}")
    return bool(value)


def choice(name: str, value: Any, known: Iterable[str]) -> Any:
    """value, one of those known."""
    if value not in known:
        raise ValueError(f"{name}={value!r}: choose from {', '.join(known)}")
    return value


def shape(name: str, value: Any) -> tuple[int, ...]:
    """value as a shape; a single number is a shape of one axis, as in NumPy."""
    sizes = value if hasattr(value, "__iter__") and not isinstance(value, str) else (value,)
    return tuple(count(f"each size of {name}", size) for size in sizes)


def one_of(kind: str, name: str, known: dict[str, Callable], signature: str) -> Callable:
    """The function called `name`, or `name` itself when it is a function."""
    if callable(name):
        return name
    if name not in known:
        near = difflib.get_close_matches(str(name).lower(), known, 1)
        meant = f"; do you mean {near[0]!r}?" if near else ""
        raise ValueError(f"unknown {kind} {name!r}; known: {', '.join(known)}, or any function {signature}{meant}")
    return known[name]


def rows(x: Any, w: Any) -> None:
    """IndexError for a negative row of w in a host array x. What is traced or on a device is not looked at."""
    known = isinstance(x, numpy.ndarray) and x.dtype.kind == "i" and x.size > 0
    if known and (least := x.min()) < 0:
        raise IndexError(f"index {least} of {len(w)} rows: an index is 0 to {len(w) - 1}")


# ------------------------------------------------------------------ names of arguments
# What other libraries call an argument, where it is too far from our names to be found by its letters.
ELSEWHERE = {
    "alpha": ("slope",),
    "batch": ("batch_size",),
    "dilation_rate": ("dilation",),
    "eps": ("epsilon",),
    "epsilon": ("eps",),
    "filters": ("out_channels",),
    "in_units": ("in_features",),
    "kernel": ("kernel_size",),
    "kernel_initializer": ("init_rule",),
    "lr": ("learning_rate",),
    "num_filter": ("out_channels",),
    "num_group": ("groups",),
    "optimizer": ("update_rule",),
    "pos_weight": ("weight",),
    "pool_size": ("kernel_size",),
    "rate": ("p", "prob"),
    "return_sequences": ("last",),
    "sigma": ("stdvar",),
    "std": ("stdvar",),
    "units": ("out_features", "hidden_size"),
    "use_bias": ("bias",),
    "wd": ("weight_decay",),
    "weight_init": ("init_rule",),
    "weight_initializer": ("init_rule",),
}
# Arguments of theirs that say something else here.
SAID = {
    "activation": "an activation is a step of its own, such as nn.ReLU()",
    "batch_first": "sequences are [examples, steps, numbers] here, as with batch_first=True",
    "ceil_mode": "npx.pooling has pooling_convention='full'",
    "inplace": "nothing is written in place here",
    "return_state": "forward takes states=True",
}
IN_CONFIG = ("lr", "learning_rate", "weight_decay", "momentum", "beta1", "beta2")


def unknown(who: str, name: str, known: Iterable[str], kind: str = "argument", others: Iterable[str] = ()) -> TypeError:
    """The error that says that `who` has no argument `name`, and which is the nearest of those known.

    others: further names, which are looked at for being near but not listed
    """
    known, others = list(known), list(others)
    elsewhere = [own for own in ELSEWHERE.get(name, ()) if own in known]
    if name in SAID:
        meant = SAID[name]
    elif elsewhere:
        meant = f"do you mean {elsewhere[0]!r}?"
    elif name in IN_CONFIG and "optim_config" in known:
        meant = f"it is a setting of the optimiser: optim_config={{{ELSEWHERE.get(name, (name,))[0]!r}: ...}}"
    else:
        near = difflib.get_close_matches(name, [*known, *others], 1)
        meant = f"do you mean {near[0]!r}?" if near else f"known: {', '.join(known)}" if known else "it takes none"
    return TypeError(f"{who} has no {kind} {name!r}; {meant}")


def options(name: str, given: Iterable[str], takers: Iterable[Callable], hints: dict[str, str]) -> None:
    """TypeError for a keyword that has a hint or that none of the functions takes, with the hint or the nearest one."""
    known = [key for taker in takers for key in inspect.signature(taker).parameters]
    for key in given:
        if key in hints:
            raise TypeError(f"{name} has no option {key!r}; {hints[key]}")
        if key not in known:
            raise unknown(name, key, known, "option")


def named(**others: str) -> Callable[[F], F]:
    """A decorator: TypeError, with the nearest name, for arguments that the function does not have.

    others: {another library's name of an argument: our own}, which the function then takes as well
    """

    def decorate(function: F) -> F:
        names = takes(function)

        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            if options and not options.keys() <= names:
                who = type(args[0]).__name__ if function.__name__ == "__init__" else function.__name__
                options = respelt(who, function, options, names, others)
            return function(*args, **options)

        return call

    return decorate


def takes(function: Callable) -> frozenset[str]:
    """The names that the function's arguments can be given by."""
    by_name = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    return frozenset(p.name for p in inspect.signature(function).parameters.values() if p.kind in by_name)


def respelt(
    who: str, function: Callable, given: dict[str, Any], names: frozenset[str], others: dict[str, str]
) -> dict[str, Any]:
    """The arguments `given` by our names of them."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        own = others.get(name, name)
        if own not in names or own == "self":
            known = [n for n in inspect.signature(function).parameters if n in names and n != "self"]
            raise unknown(who, name, known, others=others)
        if own in found or (own != name and own in given):
            raise TypeError(f"{who} is given {own!r} twice: {name!r} is another name for it")
        found[own] = value
    return found


def misspelt(who: str, function: Callable, given: Iterable[str]) -> None:
    """TypeError for a name in `given` that is none of the function's arguments."""
    parameters = inspect.signature(function).parameters
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        for name in given:
            if name not in parameters:
                raise unknown(who, name, parameters)


def with_defaults(who: str, config: dict, given: dict, defaults: dict[str, Any], known: frozenset[str]) -> dict:
    """config with `given` and, for what neither sets, the defaults; TypeError for a setting that is not known."""
    if not isinstance(config, dict):
        raise TypeError(f"the settings of {who} are a dict, such as {{'learning_rate': 0.01}}; got {config!r:.60}")
    if given:
        config.update(given)
    if config.keys() == known:  # as in every step but the first
        return config
    if not config.keys() <= known:
        wrong = next(name for name in config if name not in known)
        raise unknown(who, wrong, defaults, "setting")
    for name, value in defaults.items():
        config.setdefault(name, value)
    if isinstance(rate := config.get("learning_rate"), (int, float)):
        number(f"learning_rate of {who}", rate)
    return config


def shows_settings(function: Callable, defaults: dict[str, Any], meaning: dict[str, str]) -> None:
    """Let signature and docstring of function(..., config=None, **settings) name the settings.

    meaning   what each argument and setting is
    """
    keyword = inspect.Parameter.KEYWORD_ONLY
    settings = [inspect.Parameter(name, keyword, default=value) for name, value in defaults.items()]
    own = [p for p in inspect.signature(function, follow_wrapped=False).parameters.values() if p.kind != p.VAR_KEYWORD]
    function.__signature__ = inspect.Signature([*own, *settings])
    text, _, examples = (inspect.getdoc(function) or "").partition("\n>>>")
    described = [(p.name, meaning[p.name]) for p in (*own, *settings) if p.name in meaning]
    width = max(len(name) for name, _ in described) + 3
    function.__doc__ = "\n".join([text.rstrip(), "", *(name.ljust(width) + what for name, what in described)])
    function.__doc__ += f"\n\n>>>{examples}" if examples else ""


def of_arrays(values: dict[str, Any]) -> str:
    """The dtypes and shapes of those values that are arrays, for a message."""
    parts = [f"{k} {v.dtype}{list(v.shape)}" for k, v in values.items() if hasattr(v, "shape") and hasattr(v, "dtype")]
    return ", ".join(parts)


def formula(thing: Any) -> str:
    """The first paragraph of a docstring, in one line."""
    return " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())


MISTAKES = (ValueError, TypeError, IndexError)  # what arrays of the wrong shape or type raise


def explain(error: Exception, where: str, what: Any) -> None:
    """Add to an error, once, which layer raised it, on what shapes, and the layer's formula."""
    if not hasattr(error, "__notes__"):
        error.add_note(f"in {where}: {formula(what)}")


def explained(**others: str) -> Callable[[F], F]:
    """As `named`; and errors about shapes and types carry the arguments' shapes and the formula as a note."""

    def decorate(function: F) -> F:
        names = takes(function)

        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            if options and not options.keys() <= names:
                options = respelt(function.__name__, function, options, names, others)
            try:
                return function(*args, **options)
            except MISTAKES as error:
                given = dict(zip(inspect.signature(function).parameters, args)) | options
                explain(error, f"{function.__name__}({of_arrays(given)})", function)
                raise

        return call

    return decorate
