"""A torch callable or nn.Module as a program of arrays: what `minnp.Function` runs and differentiates.

torch's autograd is used here and nowhere else: inside one call of the module, between its arguments and its results.
"""

from __future__ import annotations

import inspect
import itertools
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as onp
import torch

from ...errors import BackendUnsupportedError, SymbolError
from .dtypes import CPU, TO_TORCH, borrowed, from_host, returned

Tensor = torch.Tensor
Shapes = dict[str, tuple[int, ...]]


class Program:
    """A torch callable as a function of arrays.

    arguments   names of its inputs (those of its signature without a default), then of its parameters
    auxiliary   names of its buffers, which training updates (BatchNorm's running averages)
    defaults    the module's own parameters by name, for calls that do not give them
    device      None: arrays are NumPy's; else tensors on that device
    keeps       calls outside training have gradients too: a pretrained part's, say, whose statistics stay as they are

    A parameter or buffer "layer.0.weight" is the argument layer_0_weight.
    """

    keeps = True

    def __init__(self, symbol: Any, device: torch.device | None) -> None:
        self.symbol, self.device = symbol, device
        module = symbol if isinstance(symbol, torch.nn.Module) else None
        self.module = module
        self.inputs = signature_of(module.forward if module is not None else symbol)
        self.parameters = dict(named(module.named_parameters())) if module is not None else {}
        self.buffers = dict(named(module.named_buffers())) if module is not None else {}
        pairs = () if module is None else (*module.named_parameters(), *module.named_buffers())
        self.paths = {flat(n): n for n, _ in pairs}
        self.arguments = [*self.inputs, *self.parameters]
        self.auxiliary = [*self.buffers]
        self.outputs = ["output"]
        self.defaults = {
            n: p.detach().cpu().numpy() if device is None else p.detach().to(device) for n, p in self.parameters.items()
        }
        self.calls: dict[int, Call] = {}  # by ticket, those whose gradients may still be asked for
        self.tickets = itertools.count(1)

    @property
    def trains(self) -> bool:
        """Whether a gradient alone means training: not of a module that was put into eval()."""
        return self.module is None or self.module.training

    def initial(self) -> list[onp.ndarray]:
        """The buffers' values to begin with: the module's own."""
        return [b.detach().cpu().numpy().copy() for b in self.buffers.values()]

    def shapes(self, given: Shapes, partial: bool = False) -> tuple[Shapes, Shapes, Shapes]:
        """Shapes of (arguments, results, states) that follow from those given. SymbolError has torch's reason."""
        known = {n: tuple(p.shape) for n, p in self.parameters.items()}
        for name, shape in known.items():
            if given.get(name, shape) != shape:
                raise SymbolError(f"{name} has shape {shape}, not {given[name]}")
        known = {**{n: given[n] for n in self.inputs if n in given}, **known}
        results: Shapes = {}
        if all(n in given for n in self.inputs):
            results = self._traced(given)
        elif not partial:
            raise SymbolError(f"the shape of {', '.join(n for n in self.inputs if n not in given)} is not given")
        return known, results, {n: tuple(b.shape) for n, b in self.buffers.items()}

    def _traced(self, given: Shapes) -> Shapes:
        """The results' shapes, by running on tensors without data: with inputs of floats, else of positions."""
        reasons = []
        for dtype in (torch.float32, torch.int64):
            inputs = [torch.empty(given[n], dtype=dtype, device="meta") for n in self.inputs]
            kept = {n: torch.empty_like(t, device="meta") for n, t in (*self.parameters.items(), *self.buffers.items())}
            try:
                with torch.no_grad():
                    found = results_of(self._run(inputs, kept, False))
            except NotImplementedError:
                return {}  # shapes that depend on the data
            except (RuntimeError, ValueError, IndexError, TypeError) as error:
                reasons.append(str(error).splitlines()[0])
                continue
            self.outputs = ["output"] if len(found) == 1 else [f"output{i}" for i in range(len(found))]
            return {n: tuple(y.shape) for n, y in zip(self.outputs, found, strict=True)}
        raise SymbolError(reasons[0])

    def _run(self, inputs: Sequence[Tensor], kept: Mapping[str, Tensor], training: bool) -> Any:
        if self.module is None:
            return self.symbol(*inputs)
        before = {m: m.training for m in self.module.modules()}
        self.module.train(training)
        try:
            return torch.func.functional_call(self.module, {self.paths[n]: t for n, t in kept.items()}, tuple(inputs))
        finally:
            for m, mode in before.items():
                m.training = mode

    # -------------------------------------------------------------- running
    def forward(
        self, arrays: Sequence[Any], dtype: Any, states: Sequence[Any], training: bool, wanted: Sequence[bool]
    ) -> tuple[Any, ...]:
        """The results, and a ticket: while it lives, `backward` can compute the gradients of this call."""
        target = TO_TORCH.get(onp.dtype(dtype))
        if target is None:
            raise BackendUnsupportedError(f"torch has no dtype {dtype}")
        tensors = [self._tensor(a, target) for a in arrays]
        leaves = [t.detach().requires_grad_() if w else t for t, w in zip(tensors, wanted, strict=True)]
        buffers = [  # copies, which the module changes
            (s.clone() if type(s) is Tensor else from_host(onp.asarray(s), CPU)).to(target if is_float(b) else b.dtype)
            for s, b in zip(states, self.buffers.values(), strict=True)
        ]
        n = len(self.inputs)
        kept = {**dict(zip(self.parameters, leaves[n:], strict=True)), **dict(zip(self.buffers, buffers, strict=True))}
        try:
            with torch.set_grad_enabled(any(wanted)):
                results = results_of(self._run(leaves[:n], kept, training))
        except (RuntimeError, IndexError) as error:
            raise SymbolError(str(error).splitlines()[0]) from error
        number = next(self.tickets)
        ticket = torch.tensor(number) if self.device is not None else onp.array(number)
        if any(wanted):
            self.calls[number] = Call(results, leaves, wanted, buffers, training)
            weakref.finalize(ticket, self.calls.pop, number, None)
        # copies: a module may return its argument, or change in place what it returned before
        return (*[self._array(y.detach().clone()) for y in results], ticket)

    def _tensor(self, a: Any, dtype: torch.dtype) -> Tensor:
        t = a if type(a) is Tensor else borrowed(a) if self.device is None else a
        if type(t) is not Tensor:
            t = from_host(onp.asarray(a), torch.device("cpu") if self.device is None else self.device)
        return t.to(dtype) if t.dtype.is_floating_point else t

    def _array(self, t: Tensor) -> Any:
        return returned(t) if self.device is None else t

    def backward(self, ticket: Any, heads: Sequence[Any], states: list[Any]) -> list[Any]:
        """Gradients of the arguments (None where they were not wanted), given the cotangents of the results. The states
        become those after the call: arrays are written to, tensors replaced in the list."""
        call = self.calls[int(ticket)]
        pairs = [
            (y, self._tensor(g, y.dtype))
            for y, g in zip(call.results, heads, strict=True)
            if g is not None and y.requires_grad
        ]
        asked = [t for t, w in zip(call.leaves, call.wanted, strict=True) if w]
        grads = [None] * len(asked)
        if pairs and asked:
            ys, gs = zip(*pairs, strict=True)
            grads = torch.autograd.grad(ys, asked, gs, retain_graph=True, allow_unused=True)
        found = iter([torch.zeros_like(t) if g is None else g for t, g in zip(asked, grads, strict=True)])
        if call.fresh:
            call.fresh = False
            for i, state in enumerate(call.buffers):
                if type(states[i]) is Tensor:
                    states[i] = state.detach().to(states[i].dtype)
                else:
                    states[i][...] = state.detach().numpy()
        return [self._array(next(found).detach()) if w else None for w in call.wanted]


class Call:
    """What the gradients of one call need."""

    def __init__(
        self, results: Sequence[Tensor], leaves: Sequence[Tensor], wanted: Sequence[bool], buffers: Any, training: bool
    ) -> None:
        self.results, self.leaves, self.wanted, self.buffers = results, leaves, wanted, buffers
        self.fresh = training  # the module's buffers moved, and nobody was told


def is_float(t: Tensor) -> bool:
    return t.dtype.is_floating_point


def flat(name: str) -> str:
    return name.replace(".", "_")


def named(pairs: Any) -> list[tuple[str, Tensor]]:
    return [(flat(n), t) for n, t in pairs]


def signature_of(function: Any) -> list[str]:
    """The names of a callable's arguments that have no default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        name = getattr(function, "__name__", "f")
        raise SymbolError(
            f"{function!r} does not say the names of its arguments; "
            f'wrap it: Function(lambda x: {name}(x), library="torch")'
        ) from None
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL and p.default is p.empty:
            raise SymbolError(f"{function!r} takes any number of arguments; wrap it in a function with names for them")
    return [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]


def results_of(out: Any) -> tuple[Tensor, ...]:
    """The tensors a callable returned, in order."""
    if isinstance(out, Tensor):
        return (out,)
    if isinstance(out, Mapping):
        out = tuple(out.values())
    if isinstance(out, (tuple, list)):
        return tuple(t for part in out for t in results_of(part))
    raise SymbolError(f"a torch callable in Function returns tensors, not a {type(out).__name__}")
