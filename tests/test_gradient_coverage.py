"""Every public function of the table, every method and operator: its derivatives are checked to second order in both
modes, or it is known to be constant, or it raises. What has no status here fails, as a new NumPy's function will."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import grad, npx, table
from minnp.errors import NotDifferentiableError, TracedValueError
from minnp.testing import check_grads


def draw(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 0) -> onp.ndarray:
    return onp.random.RandomState(seed).uniform(low, high, shape)


POINTS = {
    "x": draw(3, 4),
    "y": draw(3, 4, seed=1),
    "p": draw(3, 4, low=0.5, high=2.0, seed=2),  # positive
    "q": draw(3, 4, low=2.1, high=3.0, seed=3),  # larger than any p
    "u": draw(3, 4, low=-0.9, high=0.9, seed=4),  # what a sine may be
    "v": draw(5, seed=5),
    "w": draw(5, low=0.3, high=1.9, seed=6),
    "s": onp.array(0.7),
    "m": draw(3, 3, seed=7) + 3 * onp.eye(3),  # invertible
    "k": draw(2, 3, 3, seed=8) + 3 * onp.eye(3),
    "t": draw(2, 3, 4, seed=9),
    "z": draw(3, 4, seed=10) + 1j * draw(3, 4, seed=11),
    "c": draw(2, 3, 3, seed=12) + 1j * draw(2, 3, 3, seed=13) + 3 * onp.eye(3),
}
HOLES, MASK = draw(3, 4, seed=14) > 1, draw(3, 4, seed=15) > 0
BASES = {
    "poly": "polynomial",
    "cheb": "chebyshev",
    "leg": "legendre",
    "lag": "laguerre",
    "herm": "hermite",
    "herme": "hermite_e",
}


def after(write: Callable, a: Any, *args: Any) -> Any:
    """An array like a, once it was written."""
    a = a * 1.0
    out = write(a, *args)
    return a if out is None or out is a else a * 1.0


def lines() -> Iterator[tuple[list[str], list[str]]]:
    text = (pathlib.Path(__file__).parent / "gradient_programs.txt").read_text()
    for line in filter(None, (line.partition("#")[0].strip() for line in text.splitlines())):
        names, _, programs = line.partition(" : ")
        for prefix, module in BASES.items() if "BASIS" in line else [("", "")]:
            said = [f"polynomial.{module}.{n}" if module else n for n in names.split()]
            yield (
                [n.replace("BASIS", prefix) for n in said],
                [p.strip().replace("basis.", f"np.polynomial.{module}.").replace("BASIS", prefix)
                 for p in programs.split(";")],
            )  # fmt: skip


PROGRAMS: dict[str, list[str]] = {}
for _names, _programs in lines():
    for _name in _names:
        PROGRAMS.setdefault(_name, []).extend(_programs)


def function(name: str) -> Callable | None:
    """What a name of gradient_programs.txt is; None where this NumPy has no such thing."""
    if name.startswith("."):
        attribute = getattr(np.ndarray, name[1:], None)
        if callable(attribute) or attribute is None:
            return attribute
        return lambda a: getattr(a, name[1:])
    x: Any = npx if name.startswith("npx.") else np
    for part in name.removeprefix("npx.").split("."):
        x = getattr(x, part, None)
    return x


def compiled(name: str, program: str) -> tuple[Callable, list[str]]:
    """A program as a function of the arguments whose letters it has."""
    code = compile(program, f"<{name}>", "eval")
    inner = {n for c in code.co_consts if hasattr(c, "co_varnames") for n in c.co_varnames}
    letters = [n for n in POINTS if re.search(rf"\b{n}\b", program) and (n in code.co_names or n not in inner)]
    scope = {"np": np, "onp": onp, "f": function(name), "after": after, "MASK": MASK, "HOLES": HOLES}

    def run(*arrays: Any) -> Any:
        np.random.seed(0)
        return eval(code, {**scope, **dict(zip(letters, arrays, strict=True))})

    run.__name__ = f"{name} in `{program}`"
    return run, letters


CASES = [(name, program) for name in PROGRAMS if function(name) is not None for program in PROGRAMS[name]]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # NumPy means to take some of them back
@pytest.mark.dealt
@pytest.mark.parametrize(("name", "program"), CASES, ids=lambda text: text)
def test_derivatives_to_second_order_in_both_modes(name: str, program: str) -> None:
    run, letters = compiled(name, program)
    check_grads(run, [POINTS[letter] for letter in letters], order=2, modes=("rev", "fwd"))


# ------------------------------------------------------------------ nothing is left out
words = str.split
INTEGERS_ONLY = words("""
    bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor
    gcd invert isnat lcm left_shift right_shift""")
ELSEWHERE = {
    "empty_like": "its numbers mean nothing",
    "stop_gradient": "test_transforms.py: it cuts on purpose",
    "softmax_output": "below: its gradient is that of a loss it does not return, as in MXNet",
}
ATTRIBUTES = {
    "of integers and truths": """
        __and__ __rand__ __iand__ __or__ __ror__ __ior__ __xor__ __rxor__ __ixor__ __invert__ __lshift__ __rlshift__
        __ilshift__ __rshift__ __rrshift__ __irshift__""",
    "steps, flat between jumps": """
        __floordiv__ __rfloordiv__ __ifloordiv__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __contains__ all any argmax
        argmin argpartition argsort nonzero searchsorted __bool__ __int__ __index__ __len__ __round__ round""",
    "facts about memory, places and types": """
        base context ctypes data device dtype flags itemsize local nbytes ndim setflags shape size strides wait_to_read
        newbyteorder""",
    "Python's and NumPy's protocols": """
        __array__ __array_finalize__ __array_function__ __array_interface__ __array_namespace__ __array_prepare__
        __array_priority__ __array_struct__ __array_ufunc__ __array_wrap__ __class_getitem__ __delitem__ __dlpack__
        __buffer__ __dlpack_device__ __firstlineno__ __getattr__ __module__ __setstate__ __slots__ __static_attributes__
        __weakref__""",
    "leave minnp, and raise (test_leaving.py)": """
        __float__ __complex__ item tolist tobytes tostring tofile dump dumps asnumpy""",
    "look at bytes, and raise (below)": "byteswap getfield setfield resize",
}


def test_every_public_function_has_a_status_that_is_checked() -> None:
    unknown = []
    for line in table.table():
        checked = line.name in PROGRAMS or line.name in ELSEWHERE or line.name in INTEGERS_ONLY
        reason = line.gradient.startswith(("constant: ", "no: raises: "))
        if line.made in ("row", "composition", "fallback") and not (checked or reason):
            unknown.append(f"{line.name}: {line.gradient}")
    assert unknown == []


def test_every_method_and_operator_has_a_status() -> None:
    known = {n for names in ATTRIBUTES.values() for n in names.split()} | {n[1:] for n in PROGRAMS if n[0] == "."}
    names = {n for n in dir(np.ndarray) if not n.startswith("_") or n.startswith("__")} - set(dir(object))
    assert names - known == set()


RAISING = {
    **dict.fromkeys(("random.beta", "random.f", "random.wald"), "f(w, w)"),
    **dict.fromkeys(
        words("""random.chisquare random.lognormal random.pareto random.power random.standard_gamma random.standard_t
        random.weibull"""),
        "f(w)",
    ),
    **dict.fromkeys(("random.gamma", "random.noncentral_chisquare", "random.vonmises"), "f(w, w)"),
    "random.dirichlet": "f(w)",
    "random.multivariate_normal": "f(v[:3], m @ m.T)",
    "random.triangular": "f(-9.0, v, 9.0)",
    "asmatrix": "f(x)",
    ".getfield": "f(x, float)",
    ".setfield": "after(f, x, y, float)",
    ".byteswap": "after(lambda a: f(a, True), x)",
    ".resize": "after(lambda a: f(a, (2, 7), refcheck=False), x)",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize(("name", "program"), [c for c in RAISING.items() if function(c[0])], ids=lambda text: text)
def test_what_is_not_differentiable_says_so_and_names_the_way_out(name: str, program: str) -> None:
    run, letters = compiled(name, program)
    points = [np.array(POINTS[letter]) for letter in letters]
    last = name.rpartition(".")[2]
    for i in range(len(points)):
        with pytest.raises((NotDifferentiableError, TracedValueError), match=last) as said:
            grad(lambda x: np.sum(run(*points[:i], x, *points[i + 1 :])))(points[i])  # noqa: B023
        assert "np.stop_gradient" in str(said.value) or "x[...] = v" in str(said.value)


def test_softmax_output_has_the_gradient_of_its_loss() -> None:
    labels = onp.array([1, 0, 3])
    got = grad(lambda x: np.sum(np.softmax_output(x, labels)))(POINTS["x"])
    e = onp.exp(POINTS["x"])
    onp.testing.assert_allclose(onp.asarray(got), e / e.sum(1, keepdims=True) - onp.eye(4)[labels], rtol=1e-12)
