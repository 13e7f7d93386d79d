"""A torch callable or nn.Module as a program of arrays: what `minnp.Function` runs and differentiates.

torch's autograd is used here and nowhere else: inside one call of the module, between its arguments and its results.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as onp
import torch

from ...errors import BackendUnsupportedError, NotDifferentiableError, SymbolError
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
    again       gradients have gradients: torch keeps what they were computed from

    A parameter or buffer "layer.0.weight" is the argument layer_0_weight.
    """

    keeps = again = True

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
            kept = {  # a call has all floats in one dtype
                n: torch.empty_like(t, dtype=torch.float32 if is_float(t) else t.dtype, device="meta")
                for n, t in (*self.parameters.items(), *self.buffers.items())
            }
            try:
                with torch.no_grad():
                    found = results_of(self._run(inputs, kept, False))
            except NotImplementedError:
                return {}  # shapes that depend on the data
            except (RuntimeError, ValueError, IndexError, TypeError) as error:
                if "meta tensor" in str(error):
                    return {}
                reasons.append(str(error).splitlines()[0])
                continue
            self.outputs = ["output"] if len(found) == 1 else [f"output{i}" for i in range(len(found))]
            return {n: tuple(y.shape) for n, y in zip(self.outputs, found, strict=True)}
        raise SymbolError(reasons[0])

    def _run(self, inputs: Sequence[Tensor], kept: Mapping[str, Tensor], training: bool) -> Any:
        if self.module is None:
            return self.symbol(*inputs)
        before = {m: m.training for m in self.module.modules()}
        if training != self.module.training:  # else parts of it may be in another mode, as their owner left them
            self.module.train(training)
        try:
            return torch.func.functional_call(self.module, {self.paths[n]: t for n, t in kept.items()}, tuple(inputs))
        finally:
            for m, mode in before.items():
                m.training = mode

    # -------------------------------------------------------------- running
    def forward(
        self, arrays: Sequence[Any], dtype: Any, states: Sequence[Any], training: bool, wanted: Sequence[int]
    ) -> tuple[Any, ...]:
        """The results, and a ticket: while it lives, `backward` can compute the gradients of this call.

        wanted   for each array, how often it will be differentiated with respect to it
        """
        target = TO_TORCH.get(onp.dtype(dtype))
        if target is None:
            raise BackendUnsupportedError(f"torch has no dtype {dtype}")
        tensors = [self._tensor(a, target, any(wanted)) for a in arrays]
        leaves = [t.detach().requires_grad_() if w else t for t, w in zip(tensors, wanted, strict=True)]
        buffers = [  # copies, which the module changes
            (s.clone() if type(s) is Tensor else from_host(onp.asarray(s), CPU)).to(target if is_float(b) else b.dtype)
            for s, b in zip(states, self.buffers.values(), strict=True)
        ]
        n = len(self.inputs)
        kept = {**dict(zip(self.parameters, leaves[n:], strict=True)), **dict(zip(self.buffers, buffers, strict=True))}
        try:
            with torch.set_grad_enabled(any(wanted)), self._kernels(max(wanted, default=0)):
                results = results_of(self._run(leaves[:n], kept, training))
        except (RuntimeError, IndexError) as error:
            raise SymbolError(str(error).splitlines()[0]) from error
        call = Call(results, leaves, wanted, buffers, training) if any(wanted) else None
        if max(wanted, default=0) > 2:
            call.twice = normalisation(results)
        # copies: a module may return its argument, or change in place what it returned before
        return (*[self._array(y.detach().clone()) for y in results], self._ticket(call))

    def _kernels(self, orders: int) -> Any:
        """The context in which to run what will be differentiated so often: torch's fused attention and cuDNN's
        recurrent layers have one derivative, what they are made of has all."""
        context = contextlib.ExitStack()
        if orders > 1:
            context.enter_context(torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH))
            if self.module is not None and any(isinstance(m, torch.nn.RNNBase) for m in self.module.modules()):
                context.enter_context(torch.backends.cudnn.flags(enabled=False))
        return context

    def _ticket(self, call: Call | None) -> Any:
        number = next(self.tickets)
        ticket = torch.tensor(number) if self.device is not None else onp.array(number)
        if call is not None:
            self.calls[number] = call
            weakref.finalize(ticket, self.calls.pop, number, None)
        return ticket

    def _tensor(self, a: Any, dtype: torch.dtype, kept: bool) -> Tensor:
        """An array for torch; what its graph keeps is no memory that the program writes to."""
        t = a if type(a) is Tensor else borrowed(a) if self.device is None and not kept else a
        if type(t) is not Tensor:
            t = from_host(onp.asarray(a), CPU if self.device is None else self.device)
        return t.to(dtype) if t.dtype.is_floating_point else t

    def _array(self, t: Tensor) -> Any:
        t = t.resolve_conj()
        return returned(t) if self.device is None else t

    def backward(
        self, ticket: Any, heads: Sequence[Any], states: list[Any], wanted: Sequence[int]
    ) -> tuple[list[Any], Any]:
        """(gradients of the call's arguments, None where they were not wanted; a ticket), given the cotangents of its
        results. The states become those after the call: arrays are written to, tensors replaced in the list.

        wanted   how often this will be differentiated with respect to each cotangent given, the ticket (never) and the
                 call's arguments: it is a call itself, of which these are the arguments
        """
        call, again = self.calls[int(ticket)], any(wanted)
        if call.order > 1 and call.twice and any(call.wanted[-len(self.arguments) :]):
            raise self._refused(call, f"its second derivative of {call.twice} takes the statistics for constants.")
        given = [
            (y, self._tensor(g, y.dtype, again)) for y, g in zip(call.results, heads, strict=True) if g is not None
        ]
        cotangents = [g.detach().requires_grad_() if w else g for (_, g), w in zip(given, wanted, strict=False)]
        pairs = [(y, conjugate(g)) for (y, _), g in zip(given, cotangents, strict=True) if y.requires_grad]
        asked = [t for t, w in zip(call.leaves, call.wanted, strict=True) if w]
        grads: Sequence[Any] = [None] * len(asked)
        if pairs and asked:
            ys, gs = zip(*pairs, strict=True)
            try:
                with self._kernels(1 + max(wanted)):
                    grads = torch.autograd.grad(ys, asked, gs, retain_graph=True, create_graph=again, allow_unused=True)
            except torch.cuda.OutOfMemoryError:
                raise
            except RuntimeError as error:
                raise self._refused(call, str(error).splitlines()[0]) from error
        found = iter([torch.zeros_like(t) if g is None else conjugate(g) for t, g in zip(asked, grads, strict=True)])
        results = [next(found) if w else None for w in call.wanted]
        if call.fresh:
            call.fresh = False
            for i, state in enumerate(call.buffers):
                if type(states[i]) is Tensor:
                    states[i] = state.detach().to(states[i].dtype)
                else:
                    states[i][...] = state.detach().numpy()
        kept = Call(results, [*cotangents, None, *call.leaves], wanted, (), False, call) if again else None
        # copies of what torch's graph holds
        out = [t if t is None else self._array(t.detach().clone() if again else t.detach()) for t in results]
        return out, self._ticket(kept)

    def _refused(self, call: Call, reason: str) -> NotDifferentiableError:
        name = type(self.module).__name__ if self.module is not None else getattr(self.symbol, "__name__", "a callable")
        times = ("once", "twice")[call.order] if call.order < 2 else f"{call.order + 1} times"
        return NotDifferentiableError(
            f"torch does not differentiate {name} {times}: {reason} Write that part with minnp.numpy and minnp.npx, "
            "which differentiate to any order, or stop its gradient: np.stop_gradient"
        )


class Call:
    """What the gradients of one call need.

    results   tensors, or None
    leaves    its arguments: tensors, or None; torch differentiates with respect to those `wanted`
    buffers   the module's, as they are after the call; `fresh` until somebody was told
    order     how often it differentiates itself: the module's own calls do not
    twice     a layer in it that torch differentiates right only twice, or ""
    """

    def __init__(
        self,
        results: Sequence[Any],
        leaves: Sequence[Any],
        wanted: Sequence[int],
        buffers: Sequence[Tensor],
        fresh: bool,
        of: Call | None = None,
    ) -> None:
        self.results, self.leaves, self.wanted, self.buffers, self.fresh = results, leaves, wanted, buffers, fresh
        self.order, self.twice = (0, "") if of is None else (of.order + 1, of.twice)


def normalisation(results: Sequence[Tensor]) -> str:
    """The name of a normalisation by statistics of the data that the results were computed with, or ""."""
    seen = {y.grad_fn for y in results if y.grad_fn is not None}
    todo = list(seen)
    while todo:
        step = todo.pop()
        of_data = getattr(step, "_saved_training", True)
        if of_data and step.name().removesuffix("0").endswith(("BatchNormBackward", "LayerNormBackward")):
            return step.name().removesuffix("Backward0")
        found = {inner for inner, _ in step.next_functions if inner is not None} - seen
        seen |= found
        todo += found
    return ""


def conjugate(t: Tensor) -> Tensor:
    """A gradient as torch has it, or as we have it."""
    return t.conj() if t.dtype.is_complex else t


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
    """The tensors a callable returned, in order; None is none."""
    if isinstance(out, Tensor):
        return (out,)
    if out is None:
        return ()
    if isinstance(out, Mapping):
        out = tuple(out.values())
    if isinstance(out, (tuple, list)):
        return tuple(t for part in out for t in results_of(part))
    raise SymbolError(f"a torch callable in Function returns tensors, not a {type(out).__name__}")
