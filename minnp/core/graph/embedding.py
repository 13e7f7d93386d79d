"""Function: a symbol (minnp.symbol, an `mx.sym`, a torch module) as one differentiable operator in a NumPy program."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as onp

from ... import backends, errors
from ..arrays.array import ARRAY_TYPES, ARRAYS, array_of, ndarray, numpys_own, read
from ..rows.primitive import Joint, Meta, Primitive
from ..rows.value import Buffer, Host, Tracer, concrete
from ..transforms.jvp import JvpTrace

Shape = tuple[int, ...]
Shapes = dict[str, Shape]
COUNT = itertools.count()


class Function:
    """A symbol, called with its inputs and parameters by keyword.

        net = mx.sym.Convolution(mx.sym.Variable("x"), name="conv", kernel=(3, 3), num_filter=32)
        conv = Function(net, input_shapes={"x": (8, 3, 10, 10)})
        y = conv(x=x, conv_weight=w, conv_bias=b)

    symbol        a symbol of minnp.symbol; an `mx.sym`, bound once for each combination of shapes and reused; a torch
                  nn.Module, or a Python function of tensors (then library="torch" says of which). A module's
                  parameters "layer.0.weight" are arguments too, layer_0_weight; those not given are the module's own,
                  held fixed (get_values() has them, to start training from)
    input_shapes  of the inputs: what follows for the parameters and results is known before the first call. Later calls
                  may have other shapes (another batch size) as long as they fit the symbol
    name          in error messages and in the dispatch report

    It computes in the floating dtype NumPy would choose for its arguments. A symbol of minnp.symbol runs as the NumPy
    functions that its operators are, and is differentiable as often as you like, a torch module as often as torch's
    own operators are, an MXNet symbol once; a derivative that is not there raises. A symbol that ends in a loss
    layer (SoftmaxOutput, ...) has its gradient built in and ignores the cotangent of its result.

    Raises TypeError for input_shapes that are no dict; a call raises SymbolError for names and shapes that do not fit.
    """

    def __init__(
        self, symbol: Any, input_shapes: Shapes | None = None, name: str | None = None, library: str | None = None
    ) -> None:
        self.symbol = symbol
        kind = "symbol" if hasattr(symbol, "list_arguments") else getattr(symbol, "__name__", type(symbol).__name__)
        self.name = name or f"{kind}{next(COUNT)}"
        own = hasattr(type(symbol), "__minnp_program__")  # a symbol of minnp.symbol: no backend computes it
        found = None if own else backends.of_library(symbol) if library is None else backends.get(library)
        self._backend = found
        self._programs: dict[int, Any] = {}  # by backend: the one whose kernels share our memory, and its devices
        self._program = symbol.__minnp_program__() if own else self._program_on(found)
        shapes = input_shapes.values() if isinstance(input_shapes, Mapping) else () if input_shapes is None else (None,)
        if not all(isinstance(s, (tuple, list)) for s in shapes):
            example = {self._program.arguments[0]: (8, 3, 10, 10)}
            raise TypeError(
                f"{self.name}: input_shapes is a dict of names and shapes, for example {example}, got {input_shapes!r}"
            )
        self._inputs = {n: tuple(s) for n, s in (input_shapes or {}).items()}
        self._states: list[ndarray] | None = None
        self._known: tuple[Shapes, Shapes, Shapes] | None = None
        if input_shapes is not None:
            self._check_names(self._inputs, complete=False)
            self._learn(self._inputs)
        if own:
            return
        # The rule reads only the ticket, but the gradient depends on the arguments: a second derivative must see them.
        facts = {"saves": "both", "shape": self._metas, "worth": lambda backend, *_: backend == self._backend.name}
        self._row = Primitive(
            self.name, self._kernel(self._backend), vjp=Joint(self._rule), kernels=self._kernels(self._kernel), **facts
        )
        self._back = Primitive(
            f"{self.name} (backward)",
            self._backward_kernel(self._backend),
            vjp=Joint(self._again),
            kernels=self._kernels(self._backward_kernel),
            worth=facts["worth"],
        )

    def __repr__(self) -> str:
        return f"Function({self.name!r}: {', '.join(self._program.arguments)} -> {', '.join(self._program.outputs)})"

    def __getstate__(self) -> tuple:
        states = None if self._states is None else [concrete(read(h)) for h in self._states]
        kept = states and [v.host() if type(v) is Buffer else v for v in states]
        library = None if self._backend is None else self._backend.name
        return self.symbol, self._inputs or None, self.name, library, self._known, kept

    def __setstate__(self, state: tuple) -> None:
        *given, known, kept = state
        self.__init__(*given)
        self._known = known
        self._states = kept and [array_of(onp.array(a)) for a in kept]

    def __call__(self, *args: Any, is_train: bool | None = None, **inputs: Any) -> Any:
        """The result, or a tuple of several, in the symbol's order.

        is_train    whether layers behave as in training (Dropout, BatchNorm); by default, whether a gradient is being
                    taken, and False for a torch module in eval(). A torch module has gradients in either case, an MXNet
                    symbol in training alone. Auxiliary states are updated when the gradients of a training call are
                    computed, those of a symbol of minnp.symbol by the call
        args        the symbol's first arguments, in the order of its list_arguments()
        inputs      the others by name: arrays, numbers, or what np.asarray takes. Where all are given, arrays by other
                    names are left out: `conv(X=x, **model.params)` has those of the whole model. Of a symbol of
                    minnp.symbol also auxiliary states, in the place of its own: training writes to these arrays (which
                    compiled code, `jit`, can do to its arguments alone)

        Raises SymbolError for wrong names and shapes, saying what the symbol expects.
        """
        if args:
            inputs = self._by_name(args, inputs)
        written: dict = {}
        if self._backend is None:
            written = {n: inputs.pop(n) for n in self._program.auxiliary if n in inputs}
        self._check_names(inputs, complete=True)
        inputs = {n: x for n, x in inputs.items() if n in self._program.arguments}
        known = {n: read(x) if type(x) in ARRAY_TYPES else onp.asarray(numpys_own(x)) for n, x in inputs.items()}
        device = next((v.backend for v in map(concrete, known.values()) if type(v) is Buffer), None)
        known = {**self._defaults(device), **known}
        values = [known[n] for n in self._program.arguments]
        given = {n: v.shape for n, v in zip(self._program.arguments, values, strict=True)}
        if self._known is None or self._known[0] != given:
            self._check_shapes(given)
        wanted = tuple(map(orders, values))
        if is_train is None:
            is_train = any(wanted) and self._program.trains
        arrays = [array_of(v) for v in values]
        if self._backend is None:
            shapes = self._shapes()[2]
            own = dict(zip(shapes, self._states_of(shapes), strict=True))
            states = [self._state(n, x, shapes[n]) for n, x in (own | written).items()]
            results, after = self._program(arrays, states, bool(is_train))
            for state, value in zip(states, after, strict=True):
                if value is not state:
                    state[...] = value
        else:
            *results, _ = self._row(*arrays, training=bool(is_train), wanted=wanted)
        return results[0] if len(results) == 1 else tuple(results)

    def _state(self, name: str, x: Any, shape: Shape) -> ndarray:
        """An auxiliary state as an array that is written to."""
        if not isinstance(x, ARRAYS) or x.shape != shape:
            raise errors.SymbolError(
                f"{self.name}: the auxiliary state {name!r} is an array {shape} of minnp.numpy, which training writes "
                f"to; got {f'one of shape {x.shape}' if isinstance(x, ARRAYS) else repr(x)[:60]}"
            )
        return x

    # -------------------------------------------------------------- what the symbol knows
    @property
    def arguments(self) -> list[str]:
        """The names of everything it is called with, in the symbol's order."""
        return list(self._program.arguments)

    @property
    def inputs(self) -> list[str]:
        """Those that are no parameters: the names in input_shapes, or else the first argument."""
        return list(self._inputs) or self.arguments[:1]

    def get_params(self) -> dict[str, dict[str, Shape]]:
        """name -> {"shape": shape} of every argument that is not in input_shapes: the parameters to make and train."""
        return {n: {"shape": s} for n, s in self._shapes()[0].items() if n not in self._inputs}

    def get_values(self) -> dict[str, ndarray]:
        """name -> array of every parameter the symbol brings its own value for: copies, to train from."""
        return {n: array_of(onp.array(v)) for n, v in self._defaults().items()}

    def _defaults(self, device: Any = None) -> dict[str, Any]:
        """The symbol's own values of its parameters, on a device of its library."""
        if device is None or self._backend is None or device.name != self._backend.name:
            return getattr(self._program, "defaults", {})
        return {n: Buffer(v, device) for n, v in getattr(self._program_on(device), "defaults", {}).items()}

    def get_output_shapes(self) -> Shapes:
        """name -> shape of every result."""
        return dict(self._shapes()[1])

    def get_one_output_shape(self) -> Shape:
        """The shape of the only result. Raises SymbolError where there are several."""
        shapes = self._shapes()[1]
        if len(shapes) != 1:
            raise errors.SymbolError(f"{self.name} has {len(shapes)} results ({', '.join(shapes)}), not one")
        return next(iter(shapes.values()))

    def get_aux_states(self) -> dict[str, ndarray]:
        """name -> array of every auxiliary state: the arrays in use, so writing to them sets the state."""
        shapes = self._shapes()[2]
        return dict(zip(shapes, self._states_of(shapes), strict=True))

    def get_own_states(self) -> dict[str, ndarray]:
        """name -> array of every auxiliary state that a call may be given in the place of this one's: copies, to begin
        with. None of a symbol that its library keeps the states of."""
        given = self._backend is None and self._known is not None
        return {n: array_of(onp.array(read(x))) for n, x in self.get_aux_states().items()} if given else {}

    def _shapes(self) -> tuple[Shapes, Shapes, Shapes]:
        if self._known is None:
            raise errors.SymbolError(
                f"{self.name} knows no shapes yet: pass input_shapes=, for example "
                f"input_shapes={{{self._program.arguments[0]!r}: (8, 3, 10, 10)}}, or call it first"
            )
        return self._known

    # -------------------------------------------------------------- checks
    def _by_name(self, args: tuple, inputs: dict) -> dict:
        expected = self._program.arguments
        if len(args) > len(expected):
            raise errors.SymbolError(f"{self.name} got {len(args)} arguments; it expects {self._expected(inputs)}")
        given = dict(zip(expected, args, strict=False))
        if twice := [n for n in given if n in inputs]:
            raise errors.SymbolError(
                f"{self.name} got {', '.join(map(repr, twice))} twice, by position and by name; it expects "
                f"{self._expected(inputs)}, in this order"
            )
        return given | inputs

    def _check_names(self, given: dict, complete: bool) -> None:
        expected = self._program.arguments
        unknown = [n for n in given if n not in expected]
        missing = [n for n in expected if n not in given and n not in self._defaults()] if complete else []
        if complete and all(n in given for n in expected) and all(isinstance(given[n], ARRAYS) for n in unknown):
            return  # no name of the symbol can have been meant by these
        if unknown or missing:
            parts = [f"has no argument {', '.join(map(repr, unknown))}"] if unknown else []
            parts += [f"lacks {', '.join(map(repr, missing))}"] if missing else []
            raise errors.SymbolError(f"{self.name} {' and '.join(parts)}; it expects {self._expected(given)}")

    def _check_shapes(self, given: Shapes) -> None:
        try:
            arguments, *others = self._program.shapes(given)
        except errors.SymbolError as reason:
            shown = ", ".join(f"{n} {s}" for n, s in given.items())
            raise errors.SymbolError(
                f"{self.name} cannot run on {shown} ({reason}); it expects {self._expected(given)}"
            ) from None
        if self._known is None:
            self._known = arguments, *others

    def _expected(self, given: dict) -> str:
        """What the symbol expects, with the shapes that follow from the inputs alone."""
        shapes = self._known[0] if self._known else {}
        if not shapes:
            first = self._program.arguments[0]
            size = given.get(first)
            try:
                size = tuple(size) if isinstance(size, tuple) else onp.shape(size) if size is not None else ()
                shapes = self._program.shapes({first: size}, partial=True)[0] if size else {}
            except (errors.SymbolError, TypeError):
                shapes = {}
        return ", ".join(f"{n} {shapes[n]}" if shapes.get(n) else n for n in self._program.arguments)

    def _learn(self, given: Shapes) -> None:
        try:
            self._known = self._program.shapes(given)
        except errors.SymbolError as reason:
            shown = ", ".join(f"{n} {s}" for n, s in given.items())
            raise errors.SymbolError(
                f"{self.name}: input_shapes {shown} do not fit the symbol ({reason}); it expects {self._expected({})}"
            ) from None

    # -------------------------------------------------------------- rows
    def _program_on(self, backend: Any) -> Any:
        if id(backend) not in self._programs:
            self._programs[id(backend)] = backend.program(self.symbol)
        return self._programs[id(backend)]

    def _kernels(self, kernel: Callable) -> dict[str, Callable]:
        return {self._backend.name: kernel}

    def _kernel(self, backend: Any) -> Callable:
        """(*arrays, training, wanted) -> (*results, ticket of this call for the backward)."""
        program = self._program_on(backend)

        def run(*arrays: Any, training: bool, wanted: tuple[int, ...]) -> tuple:
            dtypes = [a.dtype if isinstance(a, (onp.ndarray, onp.generic)) else backend.meta(a)[1] for a in arrays]
            dtypes = [d for d in dtypes if d.kind == "f"]
            dtype = onp.result_type(*dtypes) if dtypes else onp.dtype(onp.float32)
            states = self._states_at(backend, self._shapes()[2])
            kept = wanted if training or program.keeps else (0,) * len(wanted)
            return program.forward(arrays, dtype, states, training, kept)

        return run

    def _backward_kernel(self, backend: Any) -> Callable:
        """(*cotangents, ticket, *arguments, flows, wanted) -> (*a gradient for each argument, or None, ticket)."""
        program = self._program_on(backend)

        def run(*values: Any, flows: tuple[bool, ...], wanted: tuple[int, ...]) -> tuple:
            cotangents = iter(values)
            heads = [next(cotangents) if flow else None for flow in flows]
            ticket = next(cotangents)
            states = self._states_at(backend, self._shapes()[2])
            grads, ticket = program.backward(ticket, heads, states, wanted)
            for h, v in zip(self._states or (), states, strict=False):
                if h._host is None and v is not h._value.data:
                    h._value = Buffer(v, backend)
            return (*grads, ticket)

        return run

    def _states_at(self, backend: Any, shapes: Shapes) -> list:
        """The states where the backend computes, host arrays or a device's data; they stay until a call elsewhere, so
        that a training loop copies none."""
        states = self._states_of(shapes)
        here = None if backend.shares_host or not hasattr(self._program_on(backend), "initial") else backend
        for i, value in enumerate(map(read, states)):
            if type(value) is Buffer and value.backend is not here:
                value = states[i] = array_of(value.host().copy())
                value = read(value)
            if type(value) is Host and here is not None:
                states[i] = array_of(Buffer(here.from_host(value), here))
        return [h._host if h._host is not None else h._value.data for h in states]

    def _states_of(self, shapes: Shapes) -> list[ndarray]:
        """The states: variances begin as ones, all else as zeros, as MXNet's own modules have it.

        In float64, so that nothing is lost whichever dtype a call computes in.
        """
        if self._states is None:
            own = getattr(self._program, "initial", None)
            made = (
                [(onp.ones if n.endswith("var") else onp.zeros)(s) for n, s in shapes.items()] if own is None else own()
            )
            self._states = [array_of(a) for a in made]
        return self._states

    def _rule(self, _: Any, g: Sequence[Any], y: Sequence[Any], *arrays: Any, training: bool, **params: Any) -> Any:
        if not training and not self._program.keeps:
            raise errors.NotDifferentiableError(
                f"a gradient flowed into {self.name}, which was called with is_train=False: nothing was kept for the "
                "backward; call it with is_train=True"
            )
        return self._pulled(g, y, arrays)

    def _again(self, _: Any, g: Sequence[Any], y: Sequence[Any], *arrays: Any, **params: Any) -> Any:
        """The rule of a gradient, which is a call with a ticket as any other."""
        if not self._program.again:
            raise errors.NotDifferentiableError(
                f"{self.name} has no second derivative: {self._backend.name} differentiates a symbol once. As a graph "
                "of minnp it has them of any order: call fx.GraphModule({}, fx.from_mxnet(symbol)), after `from minnp "
                "import fx`, with the same arguments by name; or stop its gradient: np.stop_gradient"
            )
        return self._pulled(g, y, arrays)

    def _pulled(self, g: Sequence[Any], y: Sequence[Any], arrays: Sequence[Any]) -> Any:
        given = [cotangent for cotangent in g[:-1] if cotangent is not None]
        flows = tuple(cotangent is not None for cotangent in g[:-1])
        values = (*given, y[-1], *arrays)
        return self._back(*values, flows=flows, wanted=tuple(map(orders, values)))[:-1]

    def _metas(self, metas: Sequence[Meta], params: dict) -> tuple[Meta, ...]:
        given = {n: m.shape for n, m in zip(self._program.arguments, metas, strict=True)}
        dtypes = [m.dtype for m in metas if m.dtype.kind == "f"]
        dtype = onp.result_type(*dtypes) if dtypes else onp.dtype(onp.float32)
        results = self._program.shapes(given)[1]
        return (*(Meta(s, dtype) for s in results.values()), Meta((), onp.dtype(onp.int64)))


def orders(value: Any) -> int:
    """How many reverse passes the live transformations that watch a value will make through it: forward mode two, whose
    rule is the reverse one's transposed."""
    count = 0
    while type(value) is Tracer:
        if value.trace.alive and value.trace.batched:
            value.trace.concretize(value, bool)  # a call is kept by one ticket: vmap goes example by example
        if value.trace.alive and value.trace.differentiable and value.dtype.kind in "fc":
            count += 2 if type(value.trace) is JvpTrace else 1
        value = value.value
    return count
