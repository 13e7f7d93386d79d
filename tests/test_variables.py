"""Theano's way: Variable and compile."""

import collections
import gc
import pickle

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import Variable, compile, errors, fx, grad, jit, npx, vmap
from minnp.core.graph.node import Node

close = lambda got, want: onp.shape(got) == onp.shape(want) and onp.allclose(onp.asarray(got), want)
X = onp.array([[1.0, 2.0], [3.0, 5.0]])


def test_an_expression_of_variables_is_a_function_of_their_names():
    A, B = Variable("A"), Variable("B")
    f = compile(A * B + 1)
    assert f(A=2, B=3) == 7
    assert f(2, B=3) == f(2, 3) == 7
    assert f(B=np.array([1.0, 2.0]), A=3.0).tolist() == [4.0, 7.0]
    assert f([1, 2], 2).tolist() == [3, 5]  # a list is an array, and no list that is repeated


FUNCTIONS = {
    "exp": lambda np, A, B: np.exp(A),
    "sum": lambda np, A, B: np.sum(A, axis=0),
    "matmul": lambda np, A, B: A @ B,
    "item": lambda np, A, B: A[0],
    "slices": lambda np, A, B: A[::-1, 1:] - B[B > 2].sum(),
    "T": lambda np, A, B: A.T,
    "method": lambda np, A, B: A.reshape(-1).cumsum(axis=0),
    "stacked": lambda np, A, B: np.array([A, B, A + B]),
    "shape": lambda np, A, B: np.zeros(A.shape) + np.full((2,), B[0, 0]),
    "constant": lambda np, A, B: np.array([1.0, 3.0]) * A + np.float64(2) * B,
    "reflected": lambda np, A, B: 2 - A**2 / (1 + abs(B)),
    "where": lambda np, A, B: np.where(A > B, A, -B),
    "linalg": lambda np, A, B: np.linalg.inv(A) + np.einsum("ij,jk->ik", A, B),
    "unpacked": lambda np, A, B: _unpacked(np, A, B),
    "written": lambda np, A, B: _written(np, A, B),
}


def _unpacked(np, A, B):
    x, y = np.meshgrid(A[0], B[0])
    return x * y


def _written(np, A, B):
    x = A * 2
    row = x[0]
    row += B[1]
    x[:, 1] = 0
    return x + row


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numpys_functions_operators_methods_and_indices_of_variables_are_recorded(name):
    f = compile(FUNCTIONS[name](np, A := Variable("A"), B := Variable("B")), inputs=[A, B])
    f.graph.lint()
    other = X[::-1] + 0.5
    wanted = FUNCTIONS[name](onp, X, other)
    assert close(f(A=np.array(X), B=np.array(other)), wanted)
    assert close(jit(f)(np.array(X), np.array(other)), wanted)


def test_several_results_come_in_the_nesting_they_were_given_in():
    Pair = collections.namedtuple("Pair", "p q")
    A, B = Variable("A"), Variable("B")
    f = compile({"sums": [A + B, (A - B,)], "pair": Pair(A, A * B), "k": 3})
    assert f(A=5, B=2) == {"sums": [7, (3,)], "pair": Pair(5, 10), "k": 3}


def test_a_compiled_expression_is_a_graph_module():
    A, B, unused = Variable("A"), Variable("B"), Variable("unused")
    np.exp(A) + unused  # no part of it
    f = compile(np.tanh(A) * B)
    assert isinstance(f, fx.GraphModule)
    assert f.code.startswith("def forward(self, A, B):\n    tanh = np.tanh(A)\n    mul = tanh * B\n")
    assert close(grad(f)(0.5, 3.0), 3 * (1 - onp.tanh(0.5) ** 2))
    assert close(grad(lambda b: f(A=0.5, B=b))(3.0), onp.tanh(0.5))
    assert close(grad(grad(f))(0.5, 1.0), -2 * onp.tanh(0.5) * (1 - onp.tanh(0.5) ** 2))
    assert close(vmap(f)(np.array(X), np.array(X)), onp.tanh(X) * X)
    assert close(pickle.loads(pickle.dumps(f))(B=2.0, A=1.0), 2 * onp.tanh(1.0))
    assert close(fx.symbolic_trace(f)(1.0, 2.0), 2 * onp.tanh(1.0))
    with pytest.raises(TypeError, match="lacks 'B'; it wants A, B"):
        pickle.loads(pickle.dumps(f))(A=1.0)


def test_wrong_names_raise_a_type_error_that_names_those_wanted():
    f = compile(Variable("A") * Variable("B"))
    for args, kwargs, said in [
        ((), {"A": 1}, "lacks 'B'"),
        ((), {"A": 1, "C": 2}, "has no argument 'C' and lacks 'B'"),
        ((1, 2), {"C": 2}, "has no argument 'C'"),
        ((1,), {"A": 2}, "lacks 'B' and got 'A' by position and by name"),
        ((1, 2, 3), {}, "got 3 arguments by position"),
    ]:
        with pytest.raises(TypeError, match=f"{said}; it wants A, B"):
            f(*args, **kwargs)


def test_shapes_and_dtypes_of_variables_are_known_and_checked():
    A, B = Variable("A", shape=(2, 3), dtype="f4"), Variable("B", (None, 2), np.float64)
    assert (A.shape, A.ndim, A.size, A.dtype, len(A), B.ndim) == ((2, 3), 2, 6, onp.dtype("f4"), 2, 2)
    f = compile(sum(row for row in A) + B.sum())
    assert f(A=np.ones((2, 3), "f4"), B=np.ones((5, 2))).tolist() == [12.0, 12.0, 12.0]
    with pytest.raises(ValueError, match=r"A has shape \(3, 2\); its Variable has \(2, 3\)"):
        f(A=np.ones((3, 2), "f4"), B=np.ones((5, 2)))
    with pytest.raises(TypeError, match="B is int64; its Variable has dtype float64"):
        f(A=np.ones((2, 3), "f4"), B=np.ones((5, 2), "i8"))
    count = compile(Variable("n", (), int) * 2)
    assert count(n=3) == 6
    with pytest.raises(TypeError, match=r"n is 2\.5; its Variable has dtype int64"):
        count(n=2.5)


def test_what_python_asks_of_an_expression_raises_as_in_symbolic_tracing():
    A = Variable("A")
    for ask in (lambda: 1 if A > 0 else 2, lambda: float(A), lambda: len(A), lambda: list(A), lambda: range(A)):
        with pytest.raises(errors.CaptureError, match=r"test_variables.py:.* needs its value, and there is none"):
            ask()
    with pytest.raises(errors.CaptureError, match="writes to the variable A; copy it first"):
        A[0] = 1
    with pytest.raises(errors.CaptureError, match="the shape of the variable A was assigned"):
        A.shape = (2, 3)
    with pytest.raises(errors.CaptureError, match="meets an array that a transformation watches"):
        grad(lambda x: np.sum(A * x))(np.ones(2))
    with pytest.raises(errors.CaptureError, match=r"compile the expression first \(minnp.compile\)"):
        fx.symbolic_trace(lambda x: x * A)
    assert compile(A + 1)(A=2) == 3  # and A is what it was


def test_names_that_are_no_arguments_and_two_variables_of_one_name_raise():
    for name in ("", "a b", "class", "np", "self", "sum", 3):
        with pytest.raises(ValueError, match="an argument cannot have this name"):
            Variable(name)
    A = Variable("A")
    with pytest.raises(ValueError, match="two variables are named A"):
        compile(A + Variable("A"))
    with pytest.raises(ValueError, match="the expression needs B, which inputs= lacks"):
        compile(A * Variable("B"), inputs=[A])
    with pytest.raises(TypeError, match="inputs= are Variables"):
        compile(A * 2, inputs=["A"])


def test_a_wrapped_function_of_a_variable_is_kept_whole():
    A = Variable("A")
    f = compile(fx.wrap(npx.softmax)(A) * 2)
    assert close(f(np.array(X)), 2 * onp.exp(X) / onp.exp(X).sum(axis=-1, keepdims=True))
    relu = fx.wrap(lambda x: x if x > 0 else 0 * x)
    assert (compile(relu(A) + 1)(A=-3.0), compile(relu(A) + 1)(A=3.0)) == (1, 4)


def test_expressions_that_nobody_holds_are_forgotten():
    A = Variable("A")

    def count():
        gc.collect()
        return sum(type(o) is Node for o in gc.get_objects())

    kept = compile(A * np.ones(3))
    before = count()
    for i in range(50):
        compile(np.exp(A * i) + np.ones(3))
    assert count() <= before
    assert kept(A=2.0).tolist() == [2.0, 2.0, 2.0]
