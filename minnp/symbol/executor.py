"""A symbol run on arrays: Program walks its nodes, Executor is MXNet's interface to that."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as onp

import minnp.numpy as np
from minnp import Context, stop_gradient, vjp

from ..core.arrays.array import read
from ..errors import SymbolError
from . import compiled
from .inference import infer_shapes, made_shape
from .operator import Shape
from .symbol import Symbol


class Program:
    """A symbol as a function of arrays: its nodes' definitions, called one after the other.

    arguments, auxiliary, outputs   names, in the symbol's order
    keeps, trains, again            as minnp.Function asks: it has gradients in and outside training, of any order
    """

    keeps, trains, again = True, True, True

    def __init__(self, symbol: Symbol) -> None:
        self.symbol = symbol
        arguments, states = symbol._variables()
        self.arguments, self.auxiliary = [n.name for n in arguments], [n.name for n in states]
        self.outputs = symbol.list_outputs()
        self.variables = [*arguments, *states]
        self.steps = [n for n in symbol.nodes if n.operator is not None]
        self.heads = symbol._heads
        always = {id(child) for n in self.steps if n.operator.always for child, _ in n.states}
        self.always = [i for i, n in enumerate(states) if id(n) in always]  # places of states that move at every call
        self.unsized = [n for n in self.steps if 0 in (made_shape(n) or ())]
        self.sized: tuple[dict | None, dict] = None, {}  # the shapes of the last call, and what followed from them
        last: dict[int, int] = {}  # by id of a node: the step after which nobody needs its results
        for at, node in enumerate(self.steps):
            last.update({id(child): at for child, _ in node.inputs})
        kept = {id(n) for n, _ in self.heads}
        self.done: list[list[int]] = [[] for _ in self.steps]
        for key, at in last.items():
            if key not in kept:
                self.done[at].append(key)

    def __reduce__(self) -> tuple:
        return type(self), (self.symbol,)  # of a copy the nodes are others

    def __call__(
        self, arguments: Sequence[Any], states: Sequence[Any], training: bool = False, watch: Callable | None = None
    ) -> tuple[list, list]:
        """(results, the states as they are afterwards).

        training   layers behave as in training: dropout drops, batch norm takes its batch's statistics
        watch      is called with the name and the array of every result inside
        An error of an operator has a note that names the node.
        """
        values: dict[int, Sequence[Any]] = {
            id(n): (v,) for n, v in zip(self.variables, (*arguments, *states), strict=True)
        }
        moved: dict[int, Any] = {}
        sizes = self._sizes((*arguments, *states)) if self.unsized else {}
        for node, done in zip(self.steps, self.done, strict=True):
            row = node.operator
            options = row.keywords(node.parameters)
            if row.training:
                options["training"] = training
            if id(node) in sizes:
                options["shape"] = sizes[id(node)]
            inputs = [values[id(child)][i] for child, i in node.inputs]
            try:
                results = row.definition(*inputs, *node.subgraphs, **options)
            except Exception as error:
                error.add_note(f"in node {node.name!r} ({row.name}) of the symbol")
                raise
            results = list(results) if isinstance(results, (tuple, list)) else [results]
            count = len(node.outputs)
            if len(results) > count:
                moved |= {id(n): stop_gradient(v) for (n, _), v in zip(node.states, results[count:], strict=True)}
            values[id(node)] = results[:count]
            if watch is not None:
                for i in range(node.visible):
                    watch(node.result(i), results[i])
            for key in done:
                del values[key]
        held = self.variables[len(self.arguments) :]
        after = [moved.get(id(n), s) for n, s in zip(held, states, strict=True)]
        return [values[id(n)][i] for n, i in self.heads], after

    def _sizes(self, values: Sequence[Any]) -> dict[int, Shape]:
        """By id of the nodes that make arrays of unknown sizes: their shapes, which follow from those of the values."""
        shapes = {n.name: tuple(v.shape) for n, v in zip(self.variables, values, strict=True)}
        if self.sized[0] == shapes:
            return self.sized[1]
        found = infer_shapes(self.symbol.nodes, shapes)
        for node in self.unsized:
            if 0 in found[id(node)][0]:
                raise SymbolError(
                    f"{node.operator.name} {node.name!r} makes an array {made_shape(node)}, where 0 is a size that "
                    "should follow from other shapes, and does not"
                )
        self.sized = shapes, {id(n): found[id(n)][0] for n in self.unsized}
        return self.sized[1]

    def shapes(self, given: dict[str, Any], partial: bool = False) -> tuple[dict, dict, dict]:
        """Shapes of (arguments, results, states) that follow from those given; () for results whose shapes depend on
        data, and, if partial, for what does not follow."""
        found = self.symbol._all_shapes({n: tuple(s) for n, s in given.items()})
        if not partial and any(s is None or 0 in s for s in (*found[0], *found[2])):
            raise SymbolError("the shapes given do not determine the others")
        names = (self.arguments, self.outputs, self.auxiliary)
        return tuple({n: s or () for n, s in zip(keys, shapes)} for keys, shapes in zip(names, found, strict=True))


# ------------------------------------------------------------------ binding
def _by_order(given: Any, names: Sequence[str], what: str, partial: bool = False) -> list[Any]:
    """Arrays in the order of names, from a list or a dict. Raises ValueError for a wrong number or a missing name."""
    if given is None:
        given = {}
    if isinstance(given, Mapping):
        missing = [n for n in names if given.get(n) is None]
        if missing and not partial:
            raise ValueError(f"{what} lacks {', '.join(missing)}; it needs {', '.join(names)}")
        given = [given.get(n) for n in names]
    given = list(given)
    if len(given) != len(names):
        raise ValueError(f"{what} has {len(given)} arrays; it needs {len(names)}: {', '.join(names)}")
    if not partial and any(a is None for a in given):
        raise ValueError(f"{what} lacks {', '.join(n for n, a in zip(names, given) if a is None)}")
    return [None if a is None else np.asarray(a) for a in given]


def _requests(grad_req: Any, names: Sequence[str]) -> list[str]:
    if isinstance(grad_req, str):
        grad_req = [grad_req] * len(names)
    elif isinstance(grad_req, Mapping):
        if unknown := [n for n in grad_req if n not in names]:
            raise ValueError(f"grad_req names {', '.join(unknown)}; the arguments are {', '.join(names)}")
        grad_req = [grad_req.get(n, "null") for n in names]
    if len(grad_req) != len(names) or not all(r in ("write", "add", "null") for r in grad_req):
        raise ValueError(f"grad_req={grad_req!r}: one of 'write', 'add', 'null' for each of {', '.join(names)}")
    return list(grad_req)


def bind(symbol: Symbol, ctx: Any, args: Any, args_grad: Any, grad_req: Any, aux_states: Any) -> Executor:
    """See Symbol.bind."""
    names = symbol.list_arguments()
    with _placed(ctx):
        arguments = _by_order(args, names, "args")
        states = _by_order(aux_states, symbol.list_auxiliary_states(), "aux_states")
        gradients = _by_order([None] * len(names) if args_grad is None else args_grad, names, "args_grad", True)
    requests = [r if g is not None else "null" for r, g in zip(_requests(grad_req, names), gradients, strict=True)]
    symbol.infer_shape_partial(**{n: a.shape for n, a in zip(names, arguments, strict=True) if a.shape})
    return Executor(symbol, arguments, gradients, requests, states, ctx)


def simple_bind(symbol: Symbol, ctx: Any, grad_req: Any, type_dict: Any, shapes: dict) -> Executor:
    """See Symbol.simple_bind."""
    names, auxiliary = symbol.list_arguments(), symbol.list_auxiliary_states()
    found = symbol._shapes((), shapes)
    unknown = [n for n, s in zip((*names, *auxiliary), (*found[0], *found[2])) if s is None or 0 in s]
    if unknown:
        raise SymbolError(f"simple_bind: the shapes of {', '.join(unknown)} do not follow from those given: {shapes}")
    types = symbol._types((), dict(type_dict or {}))
    make = lambda shape, dtype: np.zeros(shape, onp.float32 if dtype is None else dtype)
    with _placed(ctx):
        arguments = [make(s, t) for s, t in zip(found[0], types[0], strict=True)]
        states = [make(s, t) for s, t in zip(found[2], types[2], strict=True)]
        requests = _requests(grad_req, names)
        gradients = [np.zeros_like(a) if r != "null" else None for a, r in zip(arguments, requests, strict=True)]
    return Executor(symbol, arguments, gradients, requests, states, ctx)


def _placed(ctx: Any) -> Any:
    if ctx is None:
        return contextlib.nullcontext()
    if not isinstance(ctx, Context):
        raise TypeError(f"ctx={ctx!r}: expected a minnp.Context, such as minnp.cpu(), or None")
    return ctx


class Named(Mapping):
    """Arrays by name, which enters into `exposed` the places of those that it gives out."""

    def __init__(self, names: Sequence[str], arrays: Sequence[Any], exposed: set[int], first: int = 0) -> None:
        self._places, self._arrays = {n: i for i, n in enumerate(names)}, arrays
        self._exposed, self._first = exposed, first

    def __getitem__(self, name: str) -> Any:
        try:
            at = self._places[name]
        except KeyError:
            raise KeyError(f"{name!r}; there are {', '.join(self._places)}") from None
        self._exposed.add(self._first + at)
        return self._arrays[at]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __or__(self, other: Mapping) -> dict[str, Any]:
        return {**self, **other}

    def __ror__(self, other: Mapping) -> dict[str, Any]:
        return {**other, **self}

    def copy(self) -> dict[str, Any]:
        """The same as a dict."""
        return dict(self)

    def __repr__(self) -> str:
        return repr(dict(self))


class Executor:
    """A symbol bound to arrays, which it computes with; writing into them is how it is given new numbers.

    arguments, gradients, states   arrays in the symbol's order; requests: "write", "add" or "null" for each gradient.
                                   `bind` and `simple_bind` make them
    ctx                            the device where it computes

    arg_arrays, grad_arrays (None where there is no gradient), aux_arrays, outputs: lists, in the symbol's order;
    arg_dict, grad_dict, aux_dict, output_dict: the same by name.

    >>> h = sym.FullyConnected(sym.Variable("x"), num_hidden=2, name="fc")
    >>> run = h.simple_bind(x=(1, 3))
    >>> run.forward(x=np.ones((1, 3)))[0].shape
    (1, 2)
    """

    def __init__(
        self, symbol: Symbol, arguments: list, gradients: list, requests: list[str], states: list, ctx: Any = None
    ) -> None:
        self._symbol, self._program, self._ctx = symbol, Program(symbol), ctx
        self._arguments, self.grad_arrays, self._states = list(arguments), list(gradients), list(states)
        self._exchangeable = compiled.Exchangeable(self.grad_arrays)
        self._exposed: set[int] = set()  # places of arguments and states that were given out since the last prediction
        self._requests = requests
        self._outputs: list | None = None
        self._pullback: Any = None
        self._after: list | None = None
        self._watch: Callable | None = None
        self._apart = False
        self._compiled: dict[bool, tuple[Any, Callable | None]] = {}  # by is_train: what runs from the second call on

    def __repr__(self) -> str:
        return f"<Executor of {self._symbol!r}: {', '.join(self._program.arguments)}>"

    # -------------------------------------------------------------- arrays
    @property
    def arg_arrays(self) -> list:
        return list(self.arg_dict.values())

    @property
    def aux_arrays(self) -> list:
        return list(self.aux_dict.values())

    @property
    def arg_dict(self) -> Mapping[str, Any]:
        return Named(self._program.arguments, self._arguments, self._exposed)

    @property
    def grad_dict(self) -> dict[str, Any]:
        return dict(zip(self._program.arguments, self.grad_arrays, strict=True))

    @property
    def aux_dict(self) -> Mapping[str, Any]:
        return Named(self._program.auxiliary, self._states, self._exposed, len(self._arguments))

    @property
    def outputs(self) -> list:
        """The results of the last forward; zeros before the first."""
        if self._outputs is None:
            given = {n: a.shape for n, a in self.arg_dict.items() if a.shape}
            return [np.zeros(s, onp.float32) for s in self._symbol.infer_shape(**given)[1]]
        return self._outputs

    @property
    def output_dict(self) -> dict[str, Any]:
        return dict(zip(self._program.outputs, self.outputs, strict=True))

    def copy_params_from(self, arg_params: Mapping, aux_params: Mapping | None = None,
                         allow_extra_params: bool = False) -> None:  # fmt: skip
        """Write arrays by name into those it computes with. ValueError for a name it lacks, unless that is allowed."""
        for given, own, what in ((arg_params, self.arg_dict, "argument"), (aux_params, self.aux_dict, "state")):
            for name, array in (given or {}).items():
                if name in own:
                    own[name][...] = np.asarray(array).astype(own[name].dtype)
                elif not allow_extra_params:
                    raise ValueError(f"no {what} is named {name!r}; there are {', '.join(own)}")

    def debug_str(self) -> str:
        """The symbol, a line for each node."""
        return self._symbol.debug_str()

    def get_optimized_symbol(self) -> Symbol:
        """The symbol that it runs."""
        return self._symbol

    def set_monitor_callback(self, callback: Callable | None, monitor_all: bool = False) -> None:
        """callback(name, array) for every result inside, while forward runs."""
        self._watch = callback

    # -------------------------------------------------------------- running
    def forward(self, is_train: bool = False, **kwargs: Any) -> list:
        """Compute the results; keyword arguments are written into the arguments of their names first.

        is_train   layers behave as in training, and what `backward` needs is kept
        Raises ValueError for a name or a shape that is not an argument's.
        """
        own = self.arg_dict
        for name, array in kwargs.items():
            if name not in own:
                raise ValueError(f"forward: no argument is named {name!r}; there are {', '.join(own)}")
            array = np.asarray(array)
            if array.shape != own[name].shape:
                raise ValueError(f"forward: {name} has shape {array.shape}; it was bound with {own[name].shape}")
            own[name][...] = array
        wanted = [i for i, r in enumerate(self._requests) if is_train and r != "null"]
        self._pullback = self._after = None
        self._wanted = wanted

        program = self._compiled_for(is_train)
        self._apart = program is not None  # whether gradients lie in memory that nobody else has
        if program is None:  # results may be views of arguments
            self._exposed.update(range(len(self._arguments) + len(self._states)))
            program = partial(self._program, training=is_train, watch=self._watch)

        def run(*values: Any) -> tuple:
            arguments = list(self._arguments)
            for i, value in zip(wanted, values, strict=True):
                arguments[i] = value
            results, after = program(arguments, self._states)
            return tuple(np.asarray(r) for r in results), tuple(after)

        if wanted:
            (results, after), self._pullback = vjp(run, *[self._arguments[i] for i in wanted])
        else:
            results, after = run()
        self._outputs, after = list(results), list(after)
        for i in self._program.always:
            self._states[i][...] = after[i]
            after[i] = self._states[i]
        self._after = after if is_train else None
        return self._outputs

    def _compiled_for(self, is_train: bool) -> Callable | None:
        """What computes the results and states in the program's place, of a call like one before this."""
        values = [read(a) for arrays in (self._arguments, self._states) for a in arrays]
        if self._watch is not None or self._outputs is None or not compiled.compilable(self._program, values):
            return None
        key = [(v.shape, v.dtype) for v in values]
        del values  # `referenced` counts
        if self._compiled.get(is_train, (None,))[0] != key:
            given = self._program, self._wanted, self._arguments, self._states, self._outputs
            program = compiled.training(*given) if self._wanted else compiled.forward(self._program, is_train)
            self._compiled[is_train] = key, program
        program = self._compiled[is_train][1]
        if program is None or is_train:
            return program
        referenced = compiled.referenced((self._arguments, self._states))
        exposed = self._exposed | referenced
        self._exposed.clear()
        self._exposed.update(referenced)
        return partial(program, exposed=exposed)

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        """Write, or add, the gradients of the arguments, given those of the results, and move the auxiliary states.

        out_grads   an array, or a list of one for each result; loss layers need none
        Raises SymbolError where there was no forward(is_train=True) before, or a gradient is missing.
        """
        if self._after is None:
            raise SymbolError("backward needs forward(is_train=True) before it: nothing was kept")
        if out_grads is not None and not isinstance(out_grads, (list, tuple)):
            out_grads = [out_grads]
        heads = self._program.heads
        given = [None] * len(heads) if out_grads is None else list(out_grads)
        if len(given) != len(heads):
            raise SymbolError(f"backward got {len(given)} gradients, and there are {len(heads)} results")
        seeds = []
        for (node, i), g, y in zip(heads, given, self._outputs, strict=True):
            if g is None and not (node.operator is not None and node.operator.loss):
                raise SymbolError(f"backward: {node.result(i)} is no loss, so out_grads must have its gradient")
            seeds.append(np.ones_like(y) if g is None else np.asarray(g).astype(y.dtype))
        if self._pullback is not None:
            given = *seeds, *map(np.zeros_like, self._after)
            places: set[int] = set()
            if self._apart:
                gradients, places = self._pullback.values(given), self._exchangeable.places()
            else:
                gradients = self._pullback((given[: len(seeds)], given[len(seeds) :]))
            for i, g in zip(self._wanted, gradients, strict=True):
                if self._requests[i] == "add":
                    self.grad_arrays[i][...] += 0 if g is None else g
                elif i not in places or not self._exchangeable.exchange(i, g):
                    self.grad_arrays[i][...] = 0 if g is None else g
        for state, value in zip(self.aux_dict.values(), self._after, strict=True):
            state[...] = value

    def reshape(self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs: Any) -> Executor:
        """An executor for other shapes of some arguments; arrays whose shapes stay are shared."""
        found = self._symbol._shapes((), kwargs)
        if any(s is None for s in (*found[0], *found[2])):
            raise SymbolError(f"reshape: the other shapes do not follow from {kwargs}")
        fit = lambda a, s: a if a is None or a.shape == s else np.zeros(s, a.dtype)
        with _placed(self._ctx):
            lists = (self.arg_arrays, self.grad_arrays), (found[0], found[0])
            arguments, gradients = [[fit(a, s) for a, s in zip(x, y, strict=True)] for x, y in zip(*lists)]
            states = [fit(a, s) for a, s in zip(self.aux_arrays, found[2], strict=True)]
        return Executor(self._symbol, arguments, gradients, self._requests, states, self._ctx)
