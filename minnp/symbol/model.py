"""Models in MXNet's files: a symbol and its parameters, to predict with, differentiate, train further and save."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import minnp.numpy as np

from ..errors import SymbolError
from .checkpoint import load_checkpoint, save_checkpoint
from .executor import Program
from .symbol import Symbol


class Model:
    """A symbol with values for its parameters.

        model = minnp.load_mxnet("resnet-18", 0)
        y = model(x)
        gradients = grad(lambda p: loss(model(x, params=p, is_train=True)))(model.params)

    params, states   name -> array: parameters, and what training moves by itself
    inputs           the names of the other arguments, the data and labels

    Raises SymbolError where auxiliary states are missing.
    """

    def __init__(self, symbol: Symbol, params: Mapping[str, Any], states: Mapping[str, Any] | None = None) -> None:
        self.symbol, self._program = symbol, Program(symbol)
        own = lambda given, names: {n: np.array(given[n]) for n in names if n in given}
        self.params = own(params, self._program.arguments)
        self.states = own(states or {}, self._program.auxiliary)
        if missing := [n for n in self._program.auxiliary if n not in self.states]:
            raise SymbolError(f"the model lacks its auxiliary states {', '.join(missing)}")
        self.inputs = [n for n in self._program.arguments if n not in self.params]

    def __repr__(self) -> str:
        return f"Model({', '.join(self.inputs)} -> {', '.join(self._program.outputs)}; {len(self.params)} parameters)"

    def __call__(self, *args: Any, params: Mapping[str, Any] | None = None, is_train: bool = False,
                 **inputs: Any) -> Any:  # fmt: skip
        """The result, or a tuple of several.

        args, inputs   the inputs, in their order or by name; a label that is not given is zeros
        params         values for some of the parameters, in the place of the model's own
        is_train       layers behave as in training: dropout drops, and states move
        Raises SymbolError for an input that is missing or unknown, and for parameters that the model does not have.
        """
        if unknown := [n for n in params or {} if n not in self.params]:
            raise SymbolError(f"the model has no parameters {', '.join(unknown)}; it has {', '.join(self.params)}")
        given = dict(zip(self.inputs, args)) | inputs
        if len(given) != len(args) + len(inputs) or (unknown := [n for n in inputs if n not in self.inputs]):
            wrong = f"no {', '.join(unknown)}" if len(given) == len(args) + len(inputs) else "no more inputs"
            raise SymbolError(f"the model has {wrong}; its inputs are {', '.join(self.inputs)}")
        values = {**self.params, **(params or {})}
        values |= {n: x if hasattr(x, "dtype") else np.asarray(x) for n, x in given.items()}
        if missing := [n for n in self.inputs if n not in given]:
            shapes = self._program.shapes({n: x.shape for n, x in values.items()}, partial=True)[0]
            if lacking := [n for n in missing if not n.endswith("label") or not shapes[n]]:
                raise SymbolError(f"the model lacks {', '.join(lacking)}; its inputs are {', '.join(self.inputs)}")
            values |= {n: np.zeros(shapes[n], "float32") for n in missing}
        states = [self.states[n] for n in self._program.auxiliary]
        results, after = self._program([values[n] for n in self._program.arguments], states, is_train)
        for state, value in zip(states, after, strict=True):
            if value is not state:
                state[...] = value
        return results[0] if len(results) == 1 else tuple(results)

    def freeze(self, *args: Any, **inputs: Any) -> Any:
        """A module (minnp.fx.GraphModule) that predicts as the model does now, from inputs like these, and faster.

        Batch norms, sums and relus are taken into the convolutions before them (minnp.fx.fold_convolutions), and
        backends prepare weights once. Later changes of the parameters do not show. args, inputs: as of a call; what is
        given is what the module takes, in this order. Called with arrays of other shapes, or that take another way
        through control flow, it raises.
        """
        from ..fx import fold_convolutions
        from ..fx.capturing import captured_for

        names, model = [*self.inputs[: len(args)], *inputs], Model(self.symbol, self.params, self.states)
        given = [x if hasattr(x, "dtype") else np.asarray(x) for x in (*args, *inputs.values())]
        module = captured_for(lambda *arrays: model(**dict(zip(names, arrays, strict=True))), *given)
        inputs = module.graph.find_nodes(op="placeholder")
        module.shapes = {n.target: x.shape for n, x in zip(inputs, given, strict=True)}
        return fold_convolutions(module)

    def save(self, prefix: str, epoch: int) -> None:
        """Write PREFIX-symbol.json and PREFIX-0000.params, which MXNet reads."""
        host = lambda arrays: {n: np.asarray(a) for n, a in arrays.items()}
        save_checkpoint(prefix, epoch, self.symbol, host(self.params), host(self.states))


def load_mxnet(prefix: str, epoch: int = 0) -> Model:
    """The model in PREFIX-symbol.json and PREFIX-0000.params (for epoch 0), of any version of MXNet since 0.8.

    prefix, epoch   the files' names without -symbol.json, and the number in that of the parameters

    Raises SymbolError, or ValueError, where the files are not what they should be; OSError where they are not there.

        model = minnp.load_mxnet("resnet-18", 0)    # resnet-18-symbol.json and resnet-18-0000.params
        model(data=images)
    """
    return Model(*load_checkpoint(prefix, epoch))
