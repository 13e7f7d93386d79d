"""The table of MXNet's operators, by family; importing this package enters them all in OPERATORS."""

from . import (
    algebra,
    control,
    custom,
    elementwise,
    layers,
    losses,
    normalisation,
    randoms,
    reductions,
    sequences,
    shaping,
    spatial,
)
