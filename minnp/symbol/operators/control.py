"""Control flow, whose bodies are symbols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import minnp.numpy as np

from ..operator import Shape, operator


def _run(body: Any, values: Sequence[Any], training: bool) -> list:
    """The results of a body (a Symbol) for values of its variables, in the order of list_inputs()."""
    program = body.__minnp_program__()
    given = dict(zip(body.list_inputs(), values, strict=True))
    results, _ = program([given[n] for n in program.arguments], [given[n] for n in program.auxiliary], training)
    return results


def _number(p: dict) -> list[str]:
    return [f"output{i}" for i in range(p["num_outputs"])] if p["num_outputs"] > 1 else ["output"]


# ------------------------------------------------------------------ loops and branches
def foreach(
    *inputs: Any, num_outputs: int, num_out_data: int, in_state_locs: Shape, in_data_locs: Shape, remain_locs: Shape,
    training: bool = False,
) -> Any:  # fmt: skip
    """The body for every place along the first axis of the data: its results side by side, and the last states.

    Inputs are data, states and what the body reads besides; ..._locs: which variables of the body they are.
    """
    *inputs, body = inputs
    data, states = inputs[: len(in_data_locs)], list(inputs[len(in_data_locs) :][: len(in_state_locs)])
    rest = inputs[len(data) + len(states) :]
    values: list[Any] = [None] * len(inputs)
    collected: list[list] = [[] for _ in range(num_out_data)]
    for i in range(data[0].shape[0]):
        for at, x in zip((*in_data_locs, *in_state_locs, *remain_locs), (*(d[i] for d in data), *states, *rest)):
            values[at] = x
        results = _run(body, values, training)
        for parts, y in zip(collected, results):
            parts.append(y)
        states = results[num_out_data:]
    out = (*(np.stack(parts, axis=0) for parts in collected), *states)
    return out if num_outputs > 1 else out[0]


def while_loop(
    *inputs: Any, num_outputs: int, num_out_data: int, max_iterations: int, cond_input_locs: Shape,
    func_input_locs: Shape, func_var_locs: Shape, training: bool = False,
) -> Any:  # fmt: skip
    """The body as long as the condition holds: its results side by side, zeros after the last, and the last variables.

    func_var_locs   which inputs of the body are the variables that it renews
    """
    *inputs, condition, body = inputs
    values = list(inputs)
    collected: list[list] = [[] for _ in range(num_out_data)]
    renewed = [func_input_locs[at] for at in func_var_locs]
    for _ in range(max_iterations):
        if not _run(condition, [values[at] for at in cond_input_locs], training)[0].reshape(-1)[0]:
            break
        results = _run(body, [values[at] for at in func_input_locs], training)
        for parts, y in zip(collected, results):
            parts.append(y)
        for at, y in zip(renewed, results[num_out_data:], strict=True):
            values[at] = y
    out = []
    for parts in collected:
        if not parts:
            raise ValueError("while_loop ended before its first step: it has no results")
        missing = [np.zeros_like(parts[0])] * (max_iterations - len(parts))
        out.append(np.stack([*parts, *missing], axis=0))
    out += [values[at] for at in renewed]
    return tuple(out) if num_outputs > 1 else out[0]


def cond(
    *inputs: Any, num_outputs: int, cond_input_locs: Shape, then_input_locs: Shape, else_input_locs: Shape,
    training: bool = False,
) -> Any:  # fmt: skip
    """The results of one body or the other, as the condition says."""
    *inputs, condition, then, other = inputs
    chosen = _run(condition, [inputs[at] for at in cond_input_locs], training)[0].reshape(-1)[0]
    body, places = (then, then_input_locs) if chosen else (other, else_input_locs)
    results = _run(body, [inputs[at] for at in places], training)
    return tuple(results) if num_outputs > 1 else results[0]


def _body_shapes(body: Any, values: Sequence[Any]) -> tuple[list, list]:
    """(shapes of the variables, shapes of the results) of a body, from those of some variables."""
    names = body.list_inputs()
    found = body._all_shapes({n: s for n, s in zip(names, values, strict=True) if s is not None})
    known = dict(zip((*body.list_arguments(), *body.list_auxiliary_states()), (*found[0], *found[2]), strict=True))
    return [known[n] for n in names], found[1]


def _foreach_shapes(p: dict, bodies: Sequence, ins: list) -> tuple[list, list]:
    places = (*p["in_data_locs"], *p["in_state_locs"], *p["remain_locs"])
    values: list = [None] * len(ins)
    count = len(p["in_data_locs"])
    length = None if ins[0] is None else ins[0][0]
    for i, (at, s) in enumerate(zip(places, ins, strict=True)):
        values[at] = s if i >= count or s is None else s[1:]
    known, results = _body_shapes(bodies[0], values)
    found = [s if i < count else known[at] for i, (at, s) in enumerate(zip(places, ins, strict=True))]
    outs = [s if i >= p["num_out_data"] or s is None or length is None else (length, *s) for i, s in enumerate(results)]
    return found, outs


def _while_shapes(p: dict, bodies: Sequence, ins: list) -> tuple[list, list]:
    known, results = _body_shapes(bodies[1], [ins[at] for at in p["func_input_locs"]])
    found = list(ins)
    for at, s in zip(p["func_input_locs"], known, strict=True):
        found[at] = found[at] or s
    n = p["num_out_data"]
    return found, [(p["max_iterations"], *s) if i < n and s is not None else s for i, s in enumerate(results)]


def _cond_shapes(p: dict, bodies: Sequence, ins: list) -> tuple[list, list]:
    found, outs = list(ins), []
    for body, places in ((bodies[1], p["then_input_locs"]), (bodies[2], p["else_input_locs"])):
        known, results = _body_shapes(body, [found[at] for at in places])
        for at, s in zip(places, known, strict=True):
            found[at] = found[at] or s
        outs = [a or b for a, b in zip(outs or results, results, strict=True)]
    return found, outs


_COUNTS = "num_args:~int num_outputs:int"
operator("_foreach", foreach, None,
         f"{_COUNTS} num_out_data:int in_state_locs:shape in_data_locs:shape remain_locs:shape", count="num_args",
         outputs=_number, training=True, bodies=_foreach_shapes)  # fmt: skip
operator("_while_loop", while_loop, None,
         f"{_COUNTS} num_out_data:int max_iterations:int cond_input_locs:shape func_input_locs:shape "
         "func_var_locs:shape", count="num_args", outputs=_number, training=True, bodies=_while_shapes)  # fmt: skip
operator("_cond", cond, None,
         f"{_COUNTS} cond_input_locs:shape then_input_locs:shape else_input_locs:shape", count="num_args",
         outputs=_number, training=True, bodies=_cond_shapes)  # fmt: skip
