"""Steps of optimisers: the new weight, of a weight, its gradient and what the optimiser keeps, which are states.

States move at every call. The `mp_` operators take half-precision weights, with the same in float32 as a state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

import minnp.numpy as np

from ..operator import operator

FLOAT = onp.dtype("float32")


def clipped(x: Any, bound: float) -> Any:
    """x between -bound and bound; a negative bound is none."""
    return np.clip(x, -bound, bound) if bound >= 0 else x


def decayed(weight: Any, grad: Any, wd: float, rescale_grad: float, clip_gradient: float) -> Any:
    """The gradient, scaled and clipped, and that of the weight decay."""
    return clipped(rescale_grad * grad, clip_gradient) + wd * weight


def within(weight: Any, grad: Any, wd: float, rescale_grad: float, clip_gradient: float) -> Any:
    """The same, clipped when it is added up."""
    return clipped(rescale_grad * grad + wd * weight, clip_gradient)


# ------------------------------------------------------------------ descent, with and without momentum
def sgd(weight: Any, grad: Any, lr: float, **options: float) -> Any:
    """weight - lr g."""
    return weight - lr * decayed(weight, grad, **options)


def sgd_mom(weight: Any, grad: Any, mom: Any, lr: float, momentum: float, **options: float) -> tuple:
    """mom = momentum mom - lr g; weight + mom."""
    mom = momentum * mom - lr * decayed(weight, grad, **options)
    return weight + mom, mom


def nag_mom(weight: Any, grad: Any, mom: Any, lr: float, momentum: float, **options: float) -> tuple:
    """Nesterov's: mom = momentum mom - lr g; weight + momentum mom - lr g."""
    step = lr * decayed(weight, grad, **options)
    mom = momentum * mom - step
    return weight + momentum * mom - step, mom


def signsgd(weight: Any, grad: Any, lr: float, wd: float, rescale_grad: float, clip_gradient: float) -> Any:
    """Bernstein et al. 2018, algorithm 1; of a sign neither the scale nor the bound changes anything."""
    return (1 - lr * wd) * weight - lr * np.sign(grad)


def signum(weight: Any, grad: Any, mom: Any, lr: float, momentum: float, wd_lh: float, **options: float) -> tuple:
    """Bernstein et al. 2018, algorithm 3."""
    mom = momentum * mom - (1 - momentum) * decayed(weight, grad, **options)
    return (1 - lr * wd_lh) * weight + lr * np.sign(mom), mom


# ------------------------------------------------------------------ steps of a size for each element
def moments(g: Any, mean: Any, var: Any, beta1: float, beta2: float) -> tuple:
    """Moving averages of g and of its square."""
    return beta1 * mean + (1 - beta1) * g, beta2 * var + (1 - beta2) * np.square(g)


def adam(weight: Any, grad: Any, mean: Any, var: Any, lr: float, beta1: float, beta2: float, epsilon: float,
         **options: float) -> tuple:  # fmt: skip
    """Kingma and Ba 2015, without the correction of the bias, which lr may have."""
    mean, var = moments(within(weight, grad, **options), mean, var, beta1, beta2)
    return weight - lr * mean / (np.sqrt(var) + epsilon), mean, var


def adamw(weight: Any, grad: Any, mean: Any, var: Any, rescale_grad: Any, lr: float, eta: float, beta1: float,
          beta2: float, epsilon: float, wd: float, clip_gradient: float) -> tuple:  # fmt: skip
    """Loshchilov and Hutter 2019; nothing moves where the scale of the gradient is 0 or no finite number."""
    scale = np.reshape(rescale_grad, ())
    moves = np.logical_and(np.isfinite(scale), scale != 0)
    g = clipped(np.where(moves, scale, 0) * grad, clip_gradient)
    after = moments(g, mean, var, beta1, beta2)
    step = eta * (lr * after[0] / (np.sqrt(after[1]) + epsilon) + wd * weight)
    return np.where(moves, weight - step, weight), *(np.where(moves, a, b) for a, b in zip(after, (mean, var)))


def rmsprop(weight: Any, grad: Any, n: Any, lr: float, gamma1: float, epsilon: float, clip_weights: float,
            **options: float) -> tuple:  # fmt: skip
    """Tieleman and Hinton 2012."""
    g = within(weight, grad, **options)
    n = gamma1 * n + (1 - gamma1) * np.square(g)
    return clipped(weight - lr * g / np.sqrt(n + epsilon), clip_weights), n


def rmspropalex(weight: Any, grad: Any, n: Any, g: Any, delta: Any, lr: float, gamma1: float, gamma2: float,
                epsilon: float, clip_weights: float, **options: float) -> tuple:  # fmt: skip
    """Graves 2013, equations 38 to 45."""
    now = within(weight, grad, **options)
    g, n = moments(now, g, n, gamma1, gamma1)
    delta = gamma2 * delta - lr * now / np.sqrt(n - np.square(g) + epsilon)
    return clipped(weight + delta, clip_weights), n, g, delta


def ftrl(weight: Any, grad: Any, z: Any, n: Any, lr: float, lamda1: float, beta: float, wd: float,
         **options: float) -> tuple:  # fmt: skip
    """McMahan et al. 2013, algorithm 1."""
    g = decayed(weight, grad, 0, **options)
    after = n + np.square(g)
    z = z + g - (np.sqrt(after) - np.sqrt(n)) * weight / lr
    kept = (np.sign(z) * lamda1 - z) / ((beta + np.sqrt(after)) / lr + wd)
    return np.where(np.abs(z) > lamda1, kept, 0), z, after


def ftml(weight: Any, grad: Any, d: Any, v: Any, z: Any, lr: float, beta1: float, beta2: float, epsilon: float, t: int,
         clip_grad: float, **options: float) -> tuple:  # fmt: skip
    """Zheng and Kwok 2017, algorithm 1."""
    g = within(weight, grad, clip_gradient=clip_grad, **options)
    v = beta2 * v + (1 - beta2) * np.square(g)
    after = (1 - beta1**t) / lr * (np.sqrt(v / (1 - beta2**t)) + epsilon)
    z = beta1 * z + (1 - beta1) * g - (after - beta1 * d) * weight
    return -z / after, after, v, z


def lamb_phase1(weight: Any, grad: Any, mean: Any, var: Any, beta1: float, beta2: float, epsilon: float, t: int,
                bias_correction: bool, wd: float, **options: float) -> tuple:  # fmt: skip
    """The direction of You et al. 2020, algorithm 2."""
    mean, var = moments(decayed(weight, grad, 0, **options), mean, var, beta1, beta2)
    first, second = (mean / (1 - beta1**t), var / (1 - beta2**t)) if bias_correction else (mean, var)
    return first / (np.sqrt(second) + epsilon) + wd * weight, mean, var


def lamb_phase2(weight: Any, g: Any, r1: Any, r2: Any, lr: float, lower_bound: float, upper_bound: float) -> Any:
    """The step along it, of the norms r1 of the weight and r2 of the direction."""
    r1 = r1 if lower_bound < 0 else np.maximum(r1, lower_bound)
    r1 = r1 if upper_bound < 0 else np.minimum(r1, upper_bound)
    ratio = np.where(np.logical_or(r1 == 0, r2 == 0), 1, r1 / np.where(r2 == 0, 1, r2))
    return weight - lr * ratio * g


def lamb(weight: Any, grad: Any, mean: Any, var: Any, lr: float, lower_bound: float, upper_bound: float,
         **options: Any) -> tuple:  # fmt: skip
    """Both, of You et al. 2020, algorithm 2."""
    g, mean, var = lamb_phase1(weight, grad, mean, var, **options)
    norms = (np.sqrt(np.sum(np.square(a))) for a in (weight, g))
    return lamb_phase2(weight, g, *norms, lr, lower_bound, upper_bound), mean, var


def adagrad(weight: Any, grad: Any, history: Any, lr: float, epsilon: float, wd: float, **options: float) -> tuple:
    """Duchi et al. 2011: history + g^2; weight - lr g / sqrt(history)."""
    g = decayed(weight, grad, wd, **options)
    history = history + np.square(g)
    return weight - lr * g / np.sqrt(history + epsilon), history


def group_adagrad(weight: Any, grad: Any, history: Any, lr: float, epsilon: float, **options: float) -> tuple:
    """The same with one step for each row: of the mean of g^2."""
    g = decayed(weight, grad, 0, **options)
    history = history + np.mean(np.square(g), axis=tuple(range(1, g.ndim)), keepdims=True)
    return weight - lr * g / np.sqrt(history + epsilon), history


def multi_lars(lrs: Any, weights_sum_sq: Any, grads_sum_sq: Any, wds: Any, eta: float, eps: float,
               rescale_grad: float) -> Any:  # fmt: skip
    """The rates of You et al. 2017, of several layers."""
    weights, grads = np.sqrt(weights_sum_sq), np.sqrt(grads_sum_sq) * rescale_grad
    moves = np.logical_and(weights_sum_sq > 0, grads_sum_sq > 0)
    return np.where(moves, lrs * eta * weights / (grads + wds * weights + eps), lrs)


# ------------------------------------------------------------------ the table
def in_float32(step: Callable) -> Callable:
    """A step of a weight in half precision, computed with that in float32, which comes last."""

    def half(weight: Any, grad: Any, *rest: Any, **options: Any) -> tuple:
        *kept, weight32 = rest
        found = step(weight32, grad.astype(FLOAT), *kept, **options)
        after, *states = found if isinstance(found, tuple) else (found,)
        return after.astype(weight.dtype), *states, after

    return half


def adamw_in_float32(*inputs: Any, **options: Any) -> tuple:
    """The step of AdamW."""
    *rest, weight32, scale = inputs
    return in_float32(lambda *given, **p: adamw(*given, scale, **p))(*rest, weight32, **options)


def direction_in_float32(weight: Any, grad: Any, mean: Any, var: Any, weight32: Any, **options: Any) -> tuple:
    """The direction of LAMB, which is float32; the weight in float32 stays."""
    return *lamb_phase1(weight32, grad.astype(FLOAT), mean, var, **options), weight32


def step_in_float32(weight: Any, g: Any, r1: Any, r2: Any, weight32: Any, **options: Any) -> tuple:
    """The step of LAMB."""
    after = lamb_phase2(weight32, g, r1, r2, **options)
    return after.astype(weight.dtype), after


def of_several(step: Callable, width: int, count: str, per: dict[str, str], shared: Sequence[str] = ()) -> Callable:
    """A step of several weights: (inputs of the first, of the second, ..., those that all share).

    width    how many inputs each weight has, itself among them
    per      names of tuples and arrays with a number for each weight -> how `step` calls that
    shared   the names of the last inputs: that of one in `per`, or of an input of every step
    """

    def steps(*inputs: Any, **options: Any) -> tuple:
        n, own = options.pop(count), len(inputs) - len(shared)
        options |= dict(zip(shared, inputs[own:]))
        each = {called: options.pop(name) for name, called in per.items()}
        if own != n * width or any(len(numbers) != n for numbers in each.values()):
            found = {name: len(each[called]) for name, called in per.items()}
            raise ValueError(f"{count}={n} takes {n * width} arrays and {n} numbers, not {own} arrays and {found}")
        results, states = [], []
        for i in range(n):
            found = step(*inputs[i * width : (i + 1) * width], **options, **{k: v[i] for k, v in each.items()})
            y, *kept = found if isinstance(found, tuple) else (found,)
            results.append(y)
            states += kept
        return (*results, *states)

    return steps


def adamw_of_scale(*inputs: Any, rescale_grad: Any, **options: Any) -> tuple:
    """The step of AdamW, with the scale by name."""
    return adamw(*inputs, rescale_grad, **options)


def _one_shape(p: dict, shapes: list) -> list:
    known = next((s for s in shapes if s is not None), None)
    return [s or known for s in shapes]


def _half_types(given: int, wide: bool) -> Callable:
    """The dtypes of an mp_ operator, whose first `given` inputs are in half precision; wide: the result is not."""

    def types(p: dict, ins: list) -> tuple[list, list]:
        one = next((t for t in ins[:given] if t is not None), None)
        return [*(t or one for t in ins[:given]), *[FLOAT] * (len(ins) - given)], [FLOAT if wide else one]

    return types


_SCALED = "rescale_grad:float=1 clip_gradient:float=-1"
_PLAIN = f"wd:float=0 {_SCALED}"
_BETAS = "beta1:float=0.9 beta2:float=0.999 epsilon:float=1e-8"
_GAMMA = "gamma1:float=0.95"
_LAMB = f"beta1:float=0.9 beta2:float=0.999 epsilon:float=1e-6 t:int bias_correction:bool=1 wd:float {_SCALED}"
_BOUNDS = "lr:float lower_bound:float=-1 upper_bound:float=-1"
_RATIO = ("weight", "g", "r1", "r2")
_LAZY = "lazy_update:~bool=1"
_MOMENTUM = f"lr:float momentum:float=0 {_PLAIN}"
# name -> (step, its states, its parameters)
_STEPS: dict[str, tuple[Callable, tuple[str, ...], str]] = {
    "sgd_update": (sgd, (), f"lr:float {_PLAIN} {_LAZY}"),
    "sgd_mom_update": (sgd_mom, ("mom",), f"{_MOMENTUM} {_LAZY}"),
    "nag_mom_update": (nag_mom, ("mom",), _MOMENTUM),
    "signsgd_update": (signsgd, (), f"lr:float {_PLAIN}"),
    "signum_update": (signum, ("mom",), f"{_MOMENTUM} wd_lh:float=0"),
    "adam_update": (adam, ("mean", "var"), f"lr:float {_BETAS} {_PLAIN} {_LAZY}"),
    "rmsprop_update": (rmsprop, ("n",), f"lr:float {_GAMMA} epsilon:float=1e-8 {_PLAIN} clip_weights:float=-1"),
    "rmspropalex_update": (rmspropalex, ("n", "g", "delta"),
                           f"lr:float {_GAMMA} gamma2:float=0.9 epsilon:float=1e-8 {_PLAIN} clip_weights:float=-1"),
    "ftrl_update": (ftrl, ("z", "n"), f"lr:float lamda1:float=0.01 beta:float=1 {_PLAIN}"),
    "ftml_update": (ftml, ("d", "v", "z"), "lr:float beta1:float=0.6 beta2:float=0.999 epsilon:float=1e-8 t:int "
                    "wd:float=0 rescale_grad:float=1 clip_grad:float=-1"),
    "lamb_update_phase1": (lamb_phase1, ("mean", "var"), _LAMB),
    "_sparse_adagrad_update": (adagrad, ("history",), f"lr:float epsilon:float=1e-7 {_PLAIN}"),
}  # fmt: skip
for _name, (_step, _kept, _parameters) in _STEPS.items():
    operator(_name, _step, ("weight", "grad", *_kept), _parameters, states=_kept, always=bool(_kept), same=True)
operator("lamb_update_phase2", lamb_phase2, _RATIO, _BOUNDS, result=lambda p, weight, *rest: [weight])
operator("multi_lars", multi_lars, ("lrs", "weights_sum_sq", "grads_sum_sq", "wds"),
         "eta:float eps:float rescale_grad:float=1", same=True)  # fmt: skip
for _name in ("sgd_update", "sgd_mom_update", "nag_mom_update"):
    _step, _kept, _parameters = _STEPS[_name]
    _kept = (*_kept, "weight32")
    operator(f"mp_{_name}", in_float32(_step), ("weight", "grad", *_kept), _parameters, states=_kept, always=True,
             fill=_one_shape, result=lambda p, weight, *rest: [weight], dtypes=_half_types(2, False))  # fmt: skip
operator("mp_lamb_update_phase1", direction_in_float32, ("weight", "grad", "mean", "var", "weight32"), _LAMB,
         states=("mean", "var", "weight32"), always=True, fill=_one_shape,
         result=lambda p, weight, *rest: [weight], dtypes=_half_types(2, True))  # fmt: skip
operator("mp_lamb_update_phase2", step_in_float32, (*_RATIO, "weight32"), _BOUNDS, states=("weight32",), always=True,
         fill=lambda p, s: [*s[:4], s[4] or s[0]], result=lambda p, weight, *rest: [weight],
         dtypes=_half_types(1, False))  # fmt: skip
_KEPT = ("mean", "var")
_RATE = f"lr:float {_BETAS} wd:float=0 eta:float clip_gradient:float=-1"
operator("_adamw_update", adamw, ("weight", "grad", *_KEPT, "rescale_grad"), _RATE, states=_KEPT, always=True,
         fill=lambda p, s: [*_one_shape(p, s[:4]), s[4]], result=lambda p, weight, *rest: [weight])  # fmt: skip
operator("_mp_adamw_update", adamw_in_float32, ("weight", "grad", *_KEPT, "weight32", "rescale_grad"), _RATE,
         states=(*_KEPT, "weight32"), always=True, fill=lambda p, s: [*_one_shape(p, s[:5]), s[5]],
         result=lambda p, weight, *rest: [weight], dtypes=_half_types(2, False))  # fmt: skip
operator("_contrib_group_adagrad_update", group_adagrad, ("weight", "grad", "history"),
         f"lr:float {_SCALED} epsilon:float=1e-5", states=("history",), always=True,
         fill=lambda p, s: [*_one_shape(p, s[:2]), s[2] or (s[0] and (s[0][0], *[1] * (len(s[0]) - 1)))],
         result=lambda p, weight, *rest: [weight])  # fmt: skip


# ------------------------------------------------------------------ steps of several weights
def _enter_several(name: str, step: Callable, kept: Sequence[str], parameters: str, count: str, per: dict[str, str],
                   shared: Sequence[str] = ()) -> None:  # fmt: skip
    """The operator whose inputs are weight_0, grad_0, the states of the first weight, weight_1, ..., and `shared`."""
    each = ("weight", "grad", *kept)
    numbered = lambda p, names: [f"{n}_{i}" for i in range(p[count]) for n in names]
    half = "weight32" in kept

    def groups(p: dict, known: list) -> list[list]:
        return [known[i * len(each) : (i + 1) * len(each)] for i in range(p[count])]

    def fill(p: dict, shapes: list) -> list:
        found = [s for group in groups(p, shapes) for s in _one_shape(p, group)]
        ends = shapes[len(found) :]
        return [*found, *(s or ((p[count],) if n in per else None) for n, s in zip(shared, ends, strict=True))]

    def types(p: dict, ins: list) -> tuple[list, list]:
        found, results = [], []
        for group in groups(p, ins):
            one = next((t for t in group[: 2 if half else None] if t is not None), None)
            found += [*[t or one for t in group[:2]], *[t or (FLOAT if half else one) for t in group[2:]]]
            results.append(one)
        return [*found, *[t or FLOAT for t in ins[len(found) :]]], results

    operator(name, of_several(in_float32(step) if half else step, len(each), count, per, shared),
             lambda p: [*numbered(p, each), *shared], f"{parameters} {count}:int=1", states=lambda p: numbered(p, kept),
             always=bool(kept), outputs=lambda p: [f"output{i}" for i in range(p[count])], fill=fill,
             result=lambda p, *shapes: [group[0] for group in groups(p, shapes)], variadic=True,
             dtypes=types)  # fmt: skip


_RATES = {"lrs": "lr", "wds": "wd"}
for _step, _name, _kept, _more in (
    (sgd, "sgd_update", (), ""),
    (sgd_mom, "sgd_mom_update", ("mom",), "momentum:float=0 "),
):
    for _half, _states in (("", _kept), ("mp_", (*_kept, "weight32"))):
        _enter_several(f"multi_{_half}{_name}", _step, _states, f"lrs:floats wds:floats {_more}{_SCALED}",
                       "num_weights", _RATES)  # fmt: skip
        _enter_several(f"preloaded_multi_{_half}{_name}", _step, _states, f"{_more}{_SCALED}", "num_weights", _RATES,
                       ("lrs", "wds"))  # fmt: skip
for _half, _states in (("", _KEPT), ("mp_", (*_KEPT, "weight32"))):
    _enter_several(f"_multi_{_half}adamw_update", adamw_of_scale, _states,
                   f"lrs:floats {_BETAS} wds:floats etas:floats clip_gradient:float=-1", "num_weights",
                   _RATES | {"etas": "eta"}, ("rescale_grad",))  # fmt: skip
    _enter_several(f"_multi_{_half}lamb_update", lamb, _states,
                   "learning_rates:floats beta1:float=0.9 beta2:float=0.999 epsilon:float=1e-6 wds:floats "
                   "rescale_grad:float=1 lower_bound:float=-1 upper_bound:float=-1 clip_gradient:float=-1 "
                   "bias_correction:bool=1 step_count:shape", "num_tensors",
                   {"learning_rates": "lr", "wds": "wd", "step_count": "t"})  # fmt: skip
