"""Runs a program of the corpus in every way that minnp offers, beside NumPy and beside central differences.

    MINNP_DEVICE=torch python -m tests.adversarial.ways [FILE | FILE::PROGRAM ...]

prints what differs (all programs without an argument; with MINNP_DEVICE=torch their arrays live on torch's CPU device).
"""

from __future__ import annotations

import functools
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as onp

import minnp
import minnp.numpy as np
from minnp.errors import MinnpError
from tests.adversarial.program import Program

FOLDER = Path(__file__).parent / "programs"
THEMES = sorted(path.stem for path in FOLDER.glob("[!_]*.py"))
SEEDS = (11, 12)
WAYS = (
    "value",
    "grad",
    "value_and_grad",
    "jit",
    "jit numpy",
    "jit strided",
    "jit(grad)",
    "grad(jit)",
    "grad(checkpoint)",
    "jvp",
    "vmap",
    "vmap(grad)",
    "jit(vmap(grad))",
    "grad(grad)",
    "hvp",
    "jit(hvp)",
)


# ------------------------------------------------------------------ programs
def load(theme: str, namespace: str) -> dict[str, Program]:
    """The programs of a file by name, written against numpy or minnp.numpy."""
    source = (FOLDER / f"{theme}.py").read_text()
    assert source.count("import numpy as np\n") == 1, f"{theme}.py does not import numpy as np, once"
    module = types.ModuleType(f"{theme}_on_{namespace.replace('.', '_')}")
    sys.modules[module.__name__] = module  # dataclasses look their module up
    source = source.replace("import numpy as np\n", f"import {namespace} as np\n")
    exec(compile(source, str(FOLDER / f"{theme}.py"), "exec"), module.__dict__)
    return {name: p for name, p in vars(module).items() if isinstance(p, Program)}


def arguments(program: Program, seed: int) -> tuple:
    return tuple(program.arguments(onp.random.default_rng(seed)))


def on_device(x: onp.ndarray) -> Any:
    """Ours, in memory of its own, in the same memory order; on the device that MINNP_DEVICE names."""
    if library := os.environ.get("MINNP_DEVICE"):
        with minnp.Context("cpu", 0, library):
            return like(x)
    return like(x)


def like(x: onp.ndarray) -> Any:
    """Ours, with x's strides where these are not those of a copy."""
    copy = np.array(x, order="K")
    if x.strides == copy.strides:
        return copy
    order = memory_order(x)
    room = np.zeros((*(x.shape[k] for k in order), 2), x.dtype)
    room[..., 0] = x.transpose(order)
    return room[..., 0].transpose(*onp.argsort(order).tolist())


def ours(args: tuple) -> tuple:
    return tuple(on_device(a) if isinstance(a, onp.ndarray) else a for a in args)


def strided(args: tuple) -> tuple:
    """The same numbers in the same order, in every second place of memory twice as large."""

    def spread(a: onp.ndarray) -> onp.ndarray:
        order = memory_order(a)
        room = onp.zeros((*(a.shape[k] for k in order), 2), a.dtype)
        room[..., 0] = a.transpose(order)
        return room[..., 0].transpose(onp.argsort(order))

    return tuple(spread(a) if isinstance(a, onp.ndarray) else a for a in args)


def memory_order(a: onp.ndarray) -> list[int]:
    """The axes from the longest steps in memory to the shortest."""
    return sorted(range(a.ndim), key=lambda k: -abs(a.strides[k]))


def stack(a: onp.ndarray, b: onp.ndarray) -> onp.ndarray:
    """Both along a new first axis, each in the memory order that it had."""
    order = memory_order(a)
    back = [1 + k for k in onp.argsort(order)]
    return onp.stack([a.transpose(order), b.transpose(order)]).transpose(0, *back)


def inexact(x: Any) -> bool:
    return isinstance(x, (float, complex, onp.inexact)) or (isinstance(x, onp.ndarray) and x.dtype.kind in "fc")


def leaves(out: Any) -> list:
    """The arrays and numbers of a result."""
    if isinstance(out, dict):
        return [leaf for value in out.values() for leaf in leaves(value)]
    return [leaf for part in out for leaf in leaves(part)] if isinstance(out, (tuple, list)) else [out]


def plain(x: Any) -> Any:
    return onp.asarray(x)


# ------------------------------------------------------------------ comparison
def close(got: Any, want: Any, what: str, rtol: float = 0.0, limit: float = 0.0) -> None:
    """Equal in shape, and in value within `limit`, or rtol of the largest number (rounding errors are of its size)."""
    got, want = plain(got), plain(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, not {want.shape}"
    if want.dtype.kind not in "fc":
        assert onp.array_equal(got, want), f"{what}: {got!r}, not {want!r}"
        return
    finite = onp.abs(want[onp.isfinite(want)])
    scale = float(finite.max()) if finite.size else 1.0
    limit = max(limit, rtol * max(scale, 1e-3))
    with onp.errstate(invalid="ignore"):
        fine = (onp.abs(got - want) <= limit) | (got == want) | (onp.isnan(got) & onp.isnan(want))
    assert fine.all(), f"{what}: {got!r}, not {want!r}"


def same(got: Any, want: Any, what: str, rtol: float) -> None:
    """Equal results of a program: structure, dtypes, shapes and values."""
    got, want = leaves(got), leaves(want)
    assert len(got) == len(want), f"{what}: {len(got)} results, not {len(want)}"
    for k, (a, b) in enumerate(zip(got, want)):
        assert plain(a).dtype == plain(b).dtype, f"{what}, result {k}: {plain(a).dtype}, not {plain(b).dtype}"
        close(a, b, f"{what}, result {k}", rtol)


def weights(x: Any) -> onp.ndarray:
    """Fixed numbers of x's shape, in its precision, by which a result is made one number."""
    shape = x.shape if hasattr(x, "shape") else ()
    dtype = onp.dtype(x.dtype) if hasattr(x, "dtype") else onp.dtype(float)
    real = onp.zeros((), dtype).real.dtype
    return (1.2 + onp.cos(onp.arange(onp.prod(shape, dtype=int)))).reshape(shape).astype(real)


def total(out: Any, namespace: Any) -> Any:
    """One number of all floating-point results."""
    parts = [x for x in leaves(out) if getattr(getattr(x, "dtype", None), "kind", "f") in "fc" and x is not None]
    parts = [x for x in parts if hasattr(x, "dtype") or isinstance(x, (float, complex))]
    return sum(namespace.sum(namespace.real(x) * weights(x)) for x in parts)


# ------------------------------------------------------------------ references
class Case:
    """A program on one choice of arguments: NumPy's results, and what its derivatives are measured by."""

    def __init__(self, name: str, real: Program, mine: Program, seed: int, layout: Callable[[tuple], tuple] = tuple):
        self.name, self.real, self.mine, self.seed = name, real, mine, seed
        self.args = layout(arguments(real, seed))
        self.left = layout(arguments(real, seed))
        self.want = real.f(*self.left)
        self.places = [k for k, a in enumerate(self.args) if inexact(a)] if real.order and real.nums else []
        draw = onp.random.default_rng(seed + 1000)
        self.directions = [direction(self.args[k], draw) for k in self.places]
        single = any(plain(x).dtype.char in "efF" for x in [*self.args, *leaves(self.want)])
        self.rtol = max(real.rtol, 2e-3 if single else 0.0)

    def scalar(self, *moved: Any) -> Any:
        """Ours: the program's results as one number, of the arguments that are differentiated."""
        args = list(ours(self.args))
        for k, x in zip(self.places, moved):
            args[k] = x
        return total(self.mine.f(*args), np)

    def start(self) -> list:
        return list(ours(tuple(self.args[k] for k in self.places)))

    def tangents(self) -> tuple:
        return ours(tuple(self.directions))

    def gradient(self, *at: Any) -> list:
        """Ours, of every argument that is differentiated."""
        return several(minnp.grad(self.scalar, argnum=list(range(len(self.places))))(*at))

    @functools.cached_property
    def gradients(self) -> list:
        """The eager ones: grad compares them with differences, the other ways compare with them."""
        return [plain(g) for g in self.gradient(*self.start())]

    def slope(self) -> float:
        """NumPy's derivative along the directions, by central differences of fourth order in double precision."""

        def at(step: float) -> float:
            args = [wide(a) for a in self.args]
            for k, t in zip(self.places, self.directions):
                args[k] = moved(args[k], step, t)
            return float(total(self.real.f(*args), onp))

        rough = lambda h: (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
        coarse, fine = rough(3e-5), rough(1e-5)
        doubt = abs(coarse - fine)
        assert doubt <= 30 * self.rtol * max(abs(fine), 1e-3) + 1e-7, f"{self.name} is not smooth: {coarse}, {fine}"
        return fine

    @functools.cached_property
    def curvatures(self) -> tuple[list, list]:
        """Hessian times the directions, by differences of gradients: with a larger step, then the one that counts."""

        def at(h: float) -> list:
            args = tuple(moved(self.args[k], h, t) for k, t in zip(self.places, self.directions))
            return [plain(g) for g in self.gradient(*ours(args))]

        rough = lambda h: [(8 * (a - b) - (c - d)) / (12 * h) for a, b, c, d in zip(*map(at, (h, -h, 2 * h, -2 * h)))]
        return rough(3e-4), rough(1e-4)

    def along(self, gradients: list) -> float:
        """The derivative along the directions that gradients say."""
        return sum(float(onp.real(onp.sum(plain(g) * plain(t)))) for g, t in zip(gradients, self.directions))


def direction(x: Any, draw: onp.random.Generator) -> Any:
    t = draw.uniform(0.2, 1.0, onp.shape(x)) * draw.choice([-1.0, 1.0], onp.shape(x))
    if plain(x).dtype.kind == "c":
        t = t + 1j * draw.uniform(-1.0, 1.0, onp.shape(x))
    return onp.asarray(t, plain(x).dtype) if isinstance(x, onp.ndarray) else type(x)(t)


def wide(a: Any) -> Any:
    """A copy in double precision."""
    if not isinstance(a, onp.ndarray):
        return a
    return a.astype({"f": "f8", "c": "c16"}.get(a.dtype.kind, a.dtype), order="K", copy=True)


def moved(x: Any, step: float, t: Any) -> Any:
    """x and a step along t, in double precision and in x's memory order."""
    x = wide(x)
    x += step * wide(t)
    return x


def several(g: Any) -> list:
    return list(g) if isinstance(g, (list, tuple)) else [g]


def largest(gradients: list) -> float:
    return max((float(onp.abs(plain(g)).max(initial=0)) for g in gradients), default=0.0)


# ------------------------------------------------------------------ ways
def check(case: Case, other: Case, way: str) -> None:
    """Raises AssertionError where a program differs in this way; other is the program on other values."""
    if way == "value":
        run(case, case.mine.f, ours(case.args), way)
    elif way in ("jit", "jit numpy", "jit strided"):
        if way == "jit strided":
            try:
                case, other = (Case(one.name, one.real, one.mine, one.seed, strided) for one in (case, other))
            except ValueError:  # of NumPy: not every memory layout has every view
                return
        compiled = minnp.jit(case.mine.f, compiler="numpy" if way == "jit numpy" else "auto")
        for n, one in enumerate((case, other, case)):
            run(one, compiled, ours(one.args), f"{way}, call {n}")
    elif "vmap" in way:
        if batch := stacked(case, other):
            mapped(case, other, way, *batch)
    elif case.places and way in ("grad(grad)", "hvp", "jit(hvp)"):
        if case.real.order > 1:
            second(case, way)
    elif case.places:
        first(case, other, way)


def run(case: Case, f: Callable, args: tuple, way: str) -> None:
    """The results, and what was left in the arguments."""
    same(f(*args), case.want, f"{case.name}, {way}", case.rtol)
    for k, (a, b) in enumerate(zip(args, case.left)):
        if isinstance(b, onp.ndarray):
            close(a, b, f"{case.name}, {way}: what it left in argument {k}", case.rtol)


def near(case: Case, got: Any, what: str) -> None:
    """Gradients that equal the eager ones."""
    limit = 10 * case.rtol * largest(case.gradients) + 1e-9
    for k, g, want in zip(case.places, several(got), case.gradients):
        close(g, want, f"{case.name}, {what}: gradient of argument {k}", limit=limit)


def first(case: Case, other: Case, way: str) -> None:
    what, rtol, numbers = f"{case.name}, {way}", case.rtol, list(range(len(case.places)))
    scalar = lambda *args: total(case.mine.f(*args), np)
    if way == "grad":
        for one in (case, other):
            slope, got = one.slope(), one.along(one.gradients)
            limit = 100 * rtol * max(abs(slope), largest(one.gradients), 1e-3)
            assert abs(got - slope) <= limit, f"{what}: {got} along a line, not {slope}"
    elif way == "value_and_grad":
        value, got = minnp.value_and_grad(case.scalar, argnum=numbers)(*case.start())
        close(value, total(case.want, onp), f"{what}: value", 10 * rtol)
        near(case, got, way)
    elif way == "grad(checkpoint)":
        kept = minnp.checkpoint(case.mine.f)
        near(case, minnp.grad(lambda *args: total(kept(*args), np), argnum=case.places)(*ours(case.args)), way)
    elif way == "jvp":
        value, tangent = minnp.jvp(case.scalar, tuple(case.start()), case.tangents())
        close(value, total(case.want, onp), f"{what}: value", 10 * rtol)
        got, want = float(plain(tangent)), case.along(case.gradients)
        assert abs(got - want) <= 100 * rtol * max(largest(case.gradients), 1e-3), f"{what}: {got}, not {want}"
    else:
        inside = way == "jit(grad)"
        f = minnp.grad(scalar if inside else minnp.jit(scalar), argnum=case.places)
        f = minnp.jit(f) if inside else f
        for n, one in enumerate((case, other, case)):
            near(one, f(*ours(one.args)), f"{way}, call {n}")


def second(case: Case, way: str) -> None:
    """Hessian times the directions, against differences of gradients."""
    if way == "grad(grad)":

        def slope(*at: Any) -> Any:
            return sum(np.sum(np.real(g * t)) for g, t in zip(case.gradient(*at), case.tangents()))

        got = several(minnp.grad(slope, argnum=list(range(len(case.places))))(*case.start()))
    else:
        product = lambda *at: minnp.jvp(lambda *x: case.gradient(*x), at, case.tangents())[1]
        got = several((minnp.jit(product) if way == "jit(hvp)" else product)(*case.start()))
    coarse, want = case.curvatures
    limit = 100 * case.rtol * max(largest(want), largest(case.gradients), 1e-2)
    for k, g, w, c in zip(case.places, got, want, coarse):
        assert onp.abs(w - c).max(initial=0) <= limit, f"{case.name} is not smooth: second order, argument {k}"
        close(g, w, f"{case.name}, {way}: argument {k}", limit=limit)


def stacked(case: Case, other: Case) -> tuple[tuple, tuple] | None:
    """(both choices of arguments stacked, in_axes), unless the program gives other shapes for other values."""
    pairs = [(a, b, isinstance(a, onp.ndarray)) for a, b in zip(case.args, other.args)]
    shapes = [[onp.shape(x) for x in leaves(one.want)] for one in (case, other)]
    if not any(batched for *_, batched in pairs) or shapes[0] != shapes[1]:
        return None
    if any(
        not batched and a is not b and not (type(a) in (int, float, str, bool) and a == b) for a, b, batched in pairs
    ):
        return None
    args = tuple(stack(a, b) if batched else a for a, b, batched in pairs)
    return args, tuple(0 if batched else None for *_, batched in pairs)


def mapped(case: Case, other: Case, way: str, args: tuple, axes: tuple) -> None:
    what, rtol = f"{case.name}, {way}", case.rtol
    if way == "vmap":
        got = leaves(minnp.vmap(case.mine.f, in_axes=axes)(*ours(args)))
        for k, (a, x, y) in enumerate(zip(got, leaves(case.want), leaves(other.want))):
            close(a, onp.stack([plain(x), plain(y)]), f"{what}, result {k}", rtol)
        return
    moved = [k for k in case.places if axes[k] == 0]
    if not moved:
        return
    f = minnp.vmap(minnp.grad(lambda *args: total(case.mine.f(*args), np), argnum=moved), in_axes=axes)
    f = minnp.jit(f) if way.startswith("jit") else f
    limit = 10 * rtol * max(largest(case.gradients), largest(other.gradients)) + 1e-9
    for _ in range(2):
        for k, g in zip(moved, several(f(*ours(args)))):
            want = onp.stack([one.gradients[case.places.index(k)] for one in (case, other)])
            close(g, want, f"{what}: gradient of argument {k}", limit=limit)


# ------------------------------------------------------------------ running
def cases(theme: str) -> Iterator[tuple[str, Callable[[], tuple[Case, Case]]]]:
    real, mine = load(theme, "numpy"), load(theme, "minnp.numpy")
    for name in real:
        yield name, lambda name=name: tuple(Case(name, real[name], mine[name], seed) for seed in SEEDS)


def outcome(case: Case, other: Case, way: str) -> str:
    """ "fine", "refused: ...", "wrong: ..." or "crash: ..." """
    try:
        with warnings.catch_warnings(), onp.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            check(case, other, way)
    except AssertionError as error:
        return f"wrong: {error}"
    except MinnpError as error:
        return f"refused: {type(error).__name__}: {error}"
    except Exception as error:  # whatever a program meets is the outcome
        return f"crash: {type(error).__name__}: {error}"
    return "fine"


def main(wanted: list[str]) -> None:
    counts: dict[str, int] = {}
    for theme in THEMES:
        picked = [w for w in wanted if w.split("::")[0] in (theme, f"{theme}.py")]
        if wanted and not picked:
            continue
        names = {w.split("::")[1] for w in picked if "::" in w}
        for name, make in cases(theme):
            if names and name not in names:
                continue
            with warnings.catch_warnings(), onp.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                case, other = make()
            for way in WAYS:
                said = outcome(case, other, way)
                kind = said.split(":")[0]
                counts[kind] = counts.get(kind, 0) + 1
                if kind != "fine":
                    print(f"{theme}::{name} | {way} | {' '.join(said.split())[:300]}", flush=True)
    print(counts)


if __name__ == "__main__":
    main(sys.argv[1:])
