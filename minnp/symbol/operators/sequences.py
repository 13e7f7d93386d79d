"""Recurrent layers with packed parameters, and masks over time."""

from __future__ import annotations

from typing import Any

import numpy as onp

import minnp.numpy as np
from minnp import npx

from ..operator import Shape, operator

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def rnn(
    data: Any, parameters: Any, state: Any, *rest: Any, state_size: int, num_layers: int, mode: str,
    bidirectional: bool = False, p: float = 0.0, state_outputs: bool = False, projection_size: int | None = None,
    lstm_state_clip_min: float | None = None, lstm_state_clip_max: float | None = None,
    lstm_state_clip_nan: bool = False, use_sequence_length: bool = False, training: bool = False,
) -> Any:  # fmt: skip
    """npx.rnn: the output, and with state_outputs the last states."""
    if projection_size is not None or lstm_state_clip_min is not None or lstm_state_clip_max is not None:
        raise ValueError("RNN with projection_size or lstm_state_clip: MXNet has them on NVIDIA's kernels alone")
    cell = rest[0] if mode == "lstm" else None
    y = npx.rnn(
        data, parameters, state, cell, rest[-1] if use_sequence_length else None, mode, state_size, num_layers,
        bidirectional, True, p if training else 0.0, use_sequence_length,
    )  # fmt: skip
    return tuple(y) if state_outputs else y[0]


def _arguments(p: dict) -> list[str]:
    cell, length = p["mode"] == "lstm", p["use_sequence_length"]
    return ["data", "parameters", "state", *["state_cell"] * bool(cell), *["sequence_length"] * bool(length)]


def _outputs(p: dict) -> list[str]:
    if not p["state_outputs"]:
        return ["output"]
    return ["output", "state_output", *(["statecell_output"] if p["mode"] == "lstm" else [])]


def parameter_count(mode: str, inputs: int, hidden: int, layers: int, ways: int) -> int:
    """How many numbers the packed parameters are."""
    first = inputs + hidden + 2
    other = hidden * ways + hidden + 2
    return GATES[mode] * hidden * ways * (first + (layers - 1) * other)


def _fill(p: dict, shapes: list) -> list:
    data = shapes[0]
    if data is not None:
        ways = 2 if p["bidirectional"] else 1
        count = parameter_count(p["mode"], data[2], p["state_size"], p["num_layers"], ways)
        state = (p["num_layers"] * ways, data[1], p["state_size"])
        found = [data, (count,), state, *([state] if p["mode"] == "lstm" else [])]
        return [*found, *[(data[1],)] * (len(shapes) - len(found))]
    return shapes


def _result(p: dict, data: Shape, parameters: Shape, *states: Shape) -> list[Shape]:
    output = (*data[:2], p["state_size"] * (2 if p["bidirectional"] else 1))
    return [output, *[states[0]] * (len(_outputs(p)) - 1)]


operator("RNN", rnn, _arguments,
         "state_size:int num_layers:int bidirectional:bool=0 mode:gru|lstm|rnn_relu|rnn_tanh p:float=0 "
         "state_outputs:bool=0 projection_size:int=None lstm_state_clip_min:float=None lstm_state_clip_max:float=None "
         "lstm_state_clip_nan:bool=0 use_sequence_length:bool=0", outputs=_outputs, training=True,
         drawn="training", fill=_fill, result=_result)  # fmt: skip

# ------------------------------------------------------------------ masks
_LENGTHS = lambda p: ["data", *(["sequence_length"] if p["use_sequence_length"] else [])]
_USED = "use_sequence_length:bool=0"


def _lengths_fill(p: dict, shapes: list) -> list:
    if shapes[0] is not None:
        return [shapes[0], *[(shapes[0][1 - p["axis"]],)] * (len(shapes) - 1)]
    return shapes


def _first_type(p: dict, ins: list) -> tuple[list, list]:
    return [ins[0], *(t or ins[0] for t in ins[1:])], [ins[0]]


def sequence_mask(data: Any, sequence_length: Any = None, use_sequence_length: bool = False, value: float = 0.0,
                  axis: int = 0) -> Any:  # fmt: skip
    """npx.sequence_mask."""
    return npx.sequence_mask(data, sequence_length, use_sequence_length, value, axis)


def sequence_reverse(data: Any, sequence_length: Any = None, use_sequence_length: bool = False, axis: int = 0) -> Any:
    """npx.sequence_reverse."""
    return npx.sequence_reverse(data, sequence_length, use_sequence_length, axis)


def _last_shape(p: dict, data: Shape, *length: Shape) -> list[Shape]:
    return [data[1:] if p["axis"] == 0 else (data[0], *data[2:])]


def _data_shape(p: dict, data: Shape, *length: Shape) -> list[Shape]:
    return [data]


operator("SequenceMask", sequence_mask, _LENGTHS, f"{_USED} value:float=0 axis:int=0", fill=_lengths_fill,
         result=_data_shape, dtypes=_first_type)  # fmt: skip
operator("SequenceLast", npx.sequence_last, _LENGTHS, f"{_USED} axis:int=0", fill=_lengths_fill, result=_last_shape,
         dtypes=_first_type)  # fmt: skip
operator("SequenceReverse", sequence_reverse, _LENGTHS, f"{_USED} axis:int=0", fill=_lengths_fill, result=_data_shape,
         dtypes=_first_type)  # fmt: skip


# ------------------------------------------------------------------ connectionist temporal classification
def ctc_loss(
    data: Any, label: Any, *lengths: Any, use_data_lengths: bool = False, use_label_lengths: bool = False,
    blank_label: str = "first",
) -> Any:  # fmt: skip
    """-log of the probability that data's classes, with repetitions and blanks left out, are the label (Graves 2006).

    data    [T, N, C] before the softmax; label [N, L], which ends before the first 0 (blank first) or -1 (blank last),
            unless lengths are given; gives [N]
    """
    steps, batch, classes = data.shape
    given = list(lengths)
    times = given.pop(0).astype(onp.int64) if use_data_lengths else onp.full(batch, steps)
    labels = label.astype(onp.int64)
    padding = 0 if blank_label == "first" else -1
    blank = 0 if blank_label == "first" else classes - 1
    before_end = np.cumprod(np.not_equal(labels, padding).astype(onp.int64), axis=1)
    counts = given.pop(0).astype(onp.int64) if use_label_lengths else np.sum(before_end, axis=1)
    width = label.shape[1]
    states = np.full((batch, 2 * width + 1), blank)
    states[:, 1::2] = np.clip(labels, 0, classes - 1)
    skips = np.zeros((batch, 2 * width + 1), bool)
    skips[:, 3::2] = states[:, 3::2] != states[:, 1:-2:2]
    log = npx.log_softmax(data, axis=-1)
    lowest = -1e30
    emitted = np.take_along_axis(log, np.broadcast_to(states[None], (steps, *states.shape)), axis=2)
    at = onp.arange(2 * width + 1)
    alpha = np.where(at[None, :] < 2, emitted[0], lowest)
    for t in range(1, steps):
        one = np.concatenate([np.full((batch, 1), lowest, data.dtype), alpha[:, :-1]], axis=1)
        two = np.concatenate([np.full((batch, 2), lowest, data.dtype), alpha[:, :-2]], axis=1)
        total = np.logaddexp(np.logaddexp(alpha, one), np.where(skips, two, lowest)) + emitted[t]
        alpha = np.where((t < times)[:, None], total, alpha)
    last = np.take_along_axis(alpha, (2 * counts)[:, None], axis=1)
    before = np.take_along_axis(alpha, np.maximum(2 * counts - 1, 0)[:, None], axis=1)
    before = np.where((counts > 0)[:, None], before, lowest)
    return -np.logaddexp(last, before)[:, 0]


def _ctc_arguments(p: dict) -> list[str]:
    more = ["data_lengths"] * bool(p["use_data_lengths"]) + ["label_lengths"] * bool(p["use_label_lengths"])
    return ["data", "label", *more]


operator("CTCLoss", ctc_loss, _ctc_arguments,
         "use_data_lengths:bool=0 use_label_lengths:bool=0 blank_label:first|last=first",
         aliases=("ctc_loss", "_contrib_CTCLoss", "_contrib_ctc_loss"),
         outputs=("output0",),
         fill=lambda p, s: s if s[0] is None else [*s[:2], *[(s[0][1],)] * (len(s) - 2)],
         result=lambda p, data, *rest: [(data[1],)], dtypes=_first_type)  # fmt: skip
