"""The table of MXNet's operators, by family; importing this package enters them all in OPERATORS."""

from ..operator import OPERATORS
from . import (
    algebra,
    boxes,
    contributed,
    control,
    custom,
    elementwise,
    images,
    layers,
    losses,
    normalisation,
    numpy_customs,
    numpy_randoms,
    numpys,
    quantised,
    randoms,
    reductions,
    regions,
    sequences,
    shaping,
    spatial,
    updates,
)

# Results that change with their inputs in steps, or not at all: as of losses, nobody need say what flows into them.
_PAIRS = ("equal", "not_equal", "greater", "lesser", "greater_equal", "lesser_equal", "logical_and",
          "logical_or", "logical_xor")  # fmt: skip
for _name in (
    "BlockGrad", "zeros_like", "ones_like", "ceil", "floor", "fix", "trunc", "rint", "round", "sign", "logical_not",
    "argmax", "argmin", "argmax_channel", "argsort", "one_hot", "shape_array", "size_array",
    "_contrib_MultiBoxPrior", "_contrib_MultiBoxTarget", "_contrib_MultiBoxDetection", "_contrib_Proposal",
    "_contrib_MultiProposal",
    *(f"{_start}_{_pair}{_end}" for _pair in _PAIRS for _start, _end in (("broadcast", ""), ("", ""), ("", "_scalar"))),
):  # fmt: skip
    OPERATORS[_name].loss = True
for _name, _older in numpys.OTHER_NAMES.items():
    OPERATORS[_name] = OPERATORS[_older]
