"""minnp.testing.check_grads on a wrong rule says which row, argument and order, where, and both numbers."""

import re

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import custom_jvp, custom_vjp
from minnp.core.rows.primitive import TABLE, Primitive
from minnp.primitive import customop
from minnp.testing import check_grads

A, B = onp.random.default_rng(0).uniform(0.5, 1.0, (2, 2, 3))
sin, cos = TABLE["sin"], TABLE["cos"]  # rules are written in rows
# the cosine, with another derivative
half_cos = Primitive("half_cos", onp.cos, vjp=[lambda g, y, x: -0.5 * g * sin(x)], jvp="elementwise", saves="in")
FIRST = lambda g, z, x, y: g * sin(y)
RIGHT = lambda g, z, x, y: g * x * cos(y)


def refused(second, jvp=None, modes=("rev",), **options):
    """What check_grads says of a program with the row x sin(y), whose second rule is given."""
    row = Primitive("planted", lambda x, y: x * onp.sin(y), vjp=[FIRST, second], jvp=jvp, saves="in")

    def program(a, b):
        return np.sum(np.tanh(row(np.tanh(a), 2 * b)))

    line = program.__code__.co_firstlineno + 1
    with pytest.raises((AssertionError, ValueError)) as caught:
        check_grads(program, (A, B), modes=modes, **options)
    said = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert f"the row to blame is planted, called at {__file__}:{line}:" in said
    return said


def numbers(said, pattern):
    """The pairs (derivative, difference) in a message."""
    return [(float(a), float(b)) for a, b in re.findall(pattern.replace("NUMBER", r"(-?[\d.]+(?:e-?\d+)?)"), said)]


PAIRS = "NUMBER where central differences give NUMBER at"
ALONG = "NUMBER along a random direction where central differences give NUMBER"


def test_a_wrong_value():
    said = refused(lambda *a: 1.5 * RIGHT(*a))
    assert "the gradient of program for argument 1 (b: float64[2, 3]), order 1, is" in said
    assert "the gradient of planted for argument 1 (float64[2, 3]), order 1, is" in said
    whole, row = numbers(said, PAIRS)
    assert whole[0] == pytest.approx(1.5 * whole[1], rel=1e-5) and row[0] == pytest.approx(1.5 * row[1], rel=1e-5)
    for along in numbers(said, ALONG):
        assert along[0] == pytest.approx(1.5 * along[1], rel=1e-5)


def test_a_wrong_sign():
    said = refused(lambda *a: -RIGHT(*a))
    pairs = numbers(said, PAIRS)
    assert len(pairs) == 2 and all(a == pytest.approx(-b, rel=1e-5) for a, b in pairs)


def test_one_wrong_element_is_where_it_is_said_to_be():
    def rule(*args):
        return RIGHT(*args) * onp.array([[1, 1, 1], [1, 1, 1.25]])

    said = refused(rule)
    assert all("at [1, 2] of the argument" in line for line in said.splitlines()) and len(numbers(said, PAIRS)) == 2


@pytest.mark.parametrize(
    "rule, shape",
    [(lambda *a: RIGHT(*a).T, "(3, 2)"), (lambda *a: RIGHT(*a).ravel(), "(6,)"), (lambda *a: RIGHT(*a).sum(), "()")],
    ids=["transposed", "flat", "summed"],
)
def test_a_wrong_shape(rule, shape):
    said = refused(rule)
    assert f"its rule for argument 1 (float64[2, 3]) gives an array of shape {shape}" in said


def test_a_rule_that_is_wrong_at_second_order_only():
    rule = lambda g, z, x, y: g * x * half_cos(y)
    said = refused(rule)
    assert "order 2" in said and "order 1" not in said
    assert re.search(r"the gradient of grad\(program\) for argument \d \(\w: float64\[2, 3\]\), order 2, is", said)
    assert "the gradient of grad(planted) for argument 1 (float64[2, 3]), order 2, is" in said
    assert "order 2" in refused(rule, modes=("rev", "fwd"), jvp="elementwise")
    check_one = Primitive("planted", lambda x, y: x * onp.sin(y), vjp=[FIRST, rule], saves="in")
    check_grads(lambda a, b: np.sum(check_one(a, b)), (A, B), order=1, modes=("rev",))


def test_a_wrong_rule_of_forward_mode():
    tangents = [FIRST, lambda *args: 3 * RIGHT(*args)]
    said = refused(RIGHT, jvp=tangents, modes=("rev", "fwd"))
    assert "the forward derivative of program for argument 1 (b: float64[2, 3]), order 1, is" in said
    assert "the forward derivative of planted for argument 1 (float64[2, 3]), order 1, is" in said
    whole, row = numbers(said, "is NUMBER where central differences give NUMBER")
    assert whole[0] == pytest.approx(3 * whole[1], rel=1e-5) and row[0] == pytest.approx(3 * row[1], rel=1e-5)


def test_the_first_of_two_arguments():
    row = Primitive("planted", lambda x, y: x * onp.sin(y), vjp=[lambda *a: 2 * FIRST(*a), RIGHT], saves="in")
    with pytest.raises(AssertionError, match=r"for argument 0 \(p_0: .*\n.*planted for argument 0 \("):
        check_grads(lambda p: np.sum(row(p["a"], p["b"])), ({"a": A, "b": B},), modes=("rev",))


def doubled(x):
    return x * x


def wrong_vjp():
    f = custom_vjp(doubled)
    return f.defvjp(lambda x: (x * x, x), lambda x, g: (3 * x * g,))


def wrong_jvp():
    f = custom_jvp(doubled)
    return f.defjvp(lambda primals, tangents: (f(*primals), 3 * primals[0] * tangents[0]))


def wrong_op():
    return customop("numpy")(doubled).def_grad(lambda y, x: lambda g: 3 * x * g)


@pytest.mark.parametrize("make", [wrong_vjp, wrong_jvp, wrong_op])
def test_a_users_own_rule(make):
    f = make()
    with pytest.raises(AssertionError, match=rf"the row to blame is doubled, called at {__file__}:\d+") as caught:
        check_grads(lambda x: np.sum(np.exp(f(x))), (A,), modes=("rev",), order=1)
    _, row = numbers(str(caught.value), PAIRS)
    assert row[0] == pytest.approx(1.5 * row[1], rel=1e-5)


def test_complex_numbers_are_said_in_full():
    row = Primitive("planted", lambda x: x * x, vjp=[lambda g, y, x: g * x], saves="in")
    with pytest.raises(
        AssertionError, match=r"\+0?[\d.]+j where central differences give .*j at \[\d\] of the argument"
    ):
        check_grads(
            lambda z: np.real(np.sum(row(z) * (1 + 1j))), (onp.array([1 + 2j, 2 - 1j]),), order=1, modes=("rev",)
        )


def test_an_error_of_the_program_itself_is_its_own():
    def program(x):
        raise ValueError("of the program")

    with pytest.raises(ValueError, match=r"^of the program$") as caught:
        check_grads(program, (A,))
    assert not getattr(caught.value, "__notes__", ())


def test_where_no_row_is_wrong_none_is_blamed():
    """The function is not differentiable as a whole: its branch depends on what moves."""
    with pytest.raises(AssertionError) as caught:
        check_grads(lambda x: x * 2 if x > 1 else x - 1, (1.0,), order=1)
    assert "the row to blame" not in str(caught.value)
    assert re.search(r"order 1, is [\d.]+ where central differences give [\d.]+", str(caught.value))
