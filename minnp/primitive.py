"""Your own operators: `customop` makes one from a function and its derivative, as in MinPy.

    @customop("numpy")
    def softplus(x):
        return numpy.log1p(numpy.exp(x))

    softplus.def_grad(lambda y, x: lambda g: g / (1 + numpy.exp(-x)))

The function and its derivatives see real NumPy arrays (or MXNet NDArrays), never traced ones: they may call anything.
For an operator written with minnp.numpy, `minnp.custom_vjp` is simpler, and differentiable again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as onp

from . import backends
from .core.api.fallback import Leaf, fill, freeze
from .core.arrays.array import unwrap, wrap
from .core.rows.dispatch import bind
from .core.rows.primitive import CONSTANT, TABLE, Meta, Primitive, primitive
from .errors import NotDifferentiableError

__all__ = ["CONSTANT", "TABLE", "CustomOp", "Meta", "Primitive", "customop", "primitive"]


class CustomOp:
    """A function with derivatives of its own; made by `customop`.

    A derivative is written `rule(y, *args, **kwargs) -> (g -> cotangent of its argument)`, where y is what the function
    returned. An argument without one is not differentiable: a gradient that reaches it raises NotDifferentiableError.
    """

    def __init__(self, function: Callable, backend: str) -> None:
        functools.update_wrapper(self, function)
        self.function, self.backend = function, backend
        self.rules: dict[int | str, tuple[Callable, int | None]] = {}  # argument -> (rule, which of its results)
        self.row = Primitive(self.__name__, self._forward, vjp=self._vjp)
        # The derivative runs on concrete arrays at every level of tracing. All that is known of it is that it is linear
        # in the cotangent, which is what forward mode needs.
        self.derivative = Primitive(f"{self.__name__}.derivative", self._backward, vjp=[self._transposed])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        sources: list = []
        leaves: list = []
        arguments = freeze((unwrap(args, sources), unwrap(kwargs, sources)), leaves)
        return wrap(bind(self.row, leaves, {"arguments": arguments}))

    def def_grad(self, func: Callable, argnum: int = 0) -> CustomOp:
        """Give argument `argnum` its derivative, func(y, *args, **kwargs)(g). Returns the operator."""
        self.rules[argnum] = func, None
        return self

    def def_grad_kw(self, func: Callable, key: str) -> CustomOp:
        """Give the keyword argument `key` its derivative."""
        self.rules[key] = func, None
        return self

    def def_grad_zero(self, argnum: int = 0) -> CustomOp:
        """Declare that the result does not depend on argument `argnum`, as far as gradients go."""
        return self.def_grad(lambda *args, **kwargs: lambda g: g * 0, argnum)

    def def_multiple_grad(self, func: Callable, argnums: tuple[int, ...]) -> CustomOp:
        """Give several arguments one derivative, whose result is a tuple in the order of `argnums`."""
        if len(set(argnums)) != len(argnums):
            raise ValueError(f"def_multiple_grad got the same argument twice: {argnums}")
        for place, argnum in enumerate(argnums):
            self.rules[argnum] = func, place
        return self

    def _forward(self, *leaves: Any, arguments: Any) -> Any:
        args, kwargs = fill(arguments, self._lend(leaves))
        return self._take(self.function(*args, **kwargs))

    def _vjp(self, i: int, g: Any, y: Any, *leaves: Any, arguments: Any) -> Any:
        key = _key_of(i, arguments)
        if key not in self.rules:
            raise NotDifferentiableError(
                f"{self.__name__} has no gradient for argument {key!r}; give it one with "
                f"{self.__name__}.def_grad(rule, argnum={key!r})"
                if isinstance(key, int)
                else f"{self.__name__} has no gradient for argument {key!r}; give it one with "
                f"{self.__name__}.def_grad_kw(rule, {key!r})"
            )
        return bind(self.derivative, (g, y, *leaves), {"key": key, "arguments": arguments})

    def _transposed(self, h: Any, _: Any, g: Any, y: Any, *leaves: Any, **params: Any) -> Any:
        """The derivative transposed, element by element of the result: one call of the rule for each."""
        shape, dtype = g.shape, g.dtype
        units = onp.eye(g.size, dtype=dtype).reshape(g.size, *shape)
        parts = [(h * bind(self.derivative, (e, y, *leaves), params)).sum() for e in units]
        return bind(TABLE["reshape"], (bind(TABLE["stack"], parts, {"axis": 0}),), {"shape": shape})

    def _backward(self, g: Any, y: Any, *leaves: Any, key: int | str, arguments: Any) -> Any:
        rule, place = self.rules[key]
        g, y, *leaves = self._lend((g, y, *leaves))
        args, kwargs = fill(arguments, leaves)
        out = rule(y, *args, **kwargs)(g)
        return self._take(out if place is None else out[place])

    def _lend(self, arrays: Any) -> Any:
        return arrays if self.backend == "numpy" else [backends.get(self.backend).from_host(a) for a in arrays]

    def _take(self, out: Any) -> Any:
        if isinstance(out, (tuple, list)):
            return tuple(map(self._take, out))
        return out if self.backend == "numpy" else backends.get(self.backend).to_host(out)


def _key_of(i: int, arguments: Any) -> int | str:
    """Where leaf i stands in a call: the argument's position or keyword."""
    args, kwargs = arguments
    places = [*enumerate(args), *kwargs.items()]
    return next(key for key, a in places if _holds(a, i))


def _holds(argument: Any, i: int) -> bool:
    if isinstance(argument, (tuple, list)):
        return any(_holds(a, i) for a in argument)
    return isinstance(argument, Leaf) and argument.i == i


def customop(backend: str = "numpy") -> Callable[[Callable], CustomOp]:
    """Decorator: the function, written for real NumPy arrays ("numpy") or NDArrays ("mxnet"), becomes an operator."""
    if backend not in ("numpy", *backends.names()):
        raise ValueError(f"customop({backend!r}): the arrays it works on are 'numpy' or {backends.names()}")
    return lambda function: CustomOp(function, backend)
