"""Models as MXNet keeps them: PREFIX-symbol.json, and PREFIX-EPOCH.params for the parameters after each epoch."""

from __future__ import annotations

from collections.abc import Mapping

from .params import load_params, save_params
from .saving import load
from .symbol import Symbol


def load_checkpoint(prefix: str, epoch: int) -> tuple[Symbol, dict, dict]:
    """(symbol, arguments, auxiliary states) of PREFIX-symbol.json and PREFIX-0007.params, say; arrays are NumPy's.

    prefix, epoch   the files' names without -symbol.json, and the number in that of the parameters

    Raises ValueError where one of the files cannot be read as such.

    >>> h = sym.FullyConnected(sym.Variable("x"), num_hidden=2, name="fc")
    >>> sym.save_checkpoint("net", 1, h, {"fc_weight": np.ones((2, 3)), "fc_bias": np.zeros(2)})
    >>> h, arguments, states = sym.load_checkpoint("net", 1)
    >>> list(arguments)
    ['fc_weight', 'fc_bias']
    """
    return load(f"{prefix}-symbol.json"), *load_params(f"{prefix}-{epoch:04d}.params")


def save_checkpoint(
    prefix: str, epoch: int, symbol: Symbol | None, arg_params: Mapping, aux_params: Mapping | None = None
) -> None:
    """Write PREFIX-symbol.json, unless symbol is None, and PREFIX-0007.params, say, as MXNet does.

    prefix, epoch            the files' names without -symbol.json, and the number in that of the parameters
    arg_params, aux_params   arguments and auxiliary states, arrays by name

    >>> sym.save_checkpoint("net", 1, sym.exp(sym.Variable("x")), {})
    """
    if symbol is not None:
        symbol.save(f"{prefix}-symbol.json")
    np_shape = True if symbol is not None and symbol.of_numpy else None
    save_params(f"{prefix}-{epoch:04d}.params", arg_params, aux_params, np_shape)
