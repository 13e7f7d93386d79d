"""Calls of compiled functions that the C part serves, and those that it leaves to Python."""

import gc
import threading
import weakref

import numpy
import pytest

import minnp
import minnp.numpy as np
from minnp import jit
from minnp.core.compiled import fastpath
from minnp.core.llvm import engine

pytestmark = pytest.mark.host("about calls on NumPy's memory")


def served(f, *args):
    """The result of a call, and whether Python's `general` was left out."""
    asked, general = [], type(f).general
    try:
        type(f).general = lambda self, *given: asked.append(1) or general(self, *given)
        return f(*args), not asked
    finally:
        type(f).general = general


def ready(f, *args):
    """A compiled function after the calls that compile it."""
    f = jit(f)
    for _ in range(2):
        f(*[x.copy() if isinstance(x, np.ndarray) else x for x in args])
    return f


def fast(expected):
    return expected and fastpath is not None


def test_arrays_and_numbers_alone_need_no_python():
    f = ready(lambda x, s: (np.sin(x) * s, x.sum()), np.ones(4), 2.0)
    (y, total), was = served(f, np.arange(4.0), 3.0)
    numpy.testing.assert_allclose(y, numpy.sin(numpy.arange(4.0)) * 3)
    assert was == fast(True) and type(y) is np.ndarray and type(total) is numpy.float64 and f.calls == 3


def test_arrays_in_containers_need_no_python():
    def f(tree, xs, nothing):
        return {"sum": (tree["a"] * xs[0]).sum(), "rest": [tree["b"] + xs[1], None]}, (xs[0],)

    given = lambda: ({"a": np.arange(3.0), "b": np.ones(3)}, [np.ones(3), 2.0], None)
    compiled, args = ready(f, *given()), given()
    compiled(*args)
    (found, (x,)), was = served(compiled, *args)
    assert was == fast(True) and x is args[1][0]
    assert repr(found) == repr(f(*args)[0]) and list(found) == ["sum", "rest"]


class Sub(dict):
    pass


@pytest.mark.parametrize(
    "other",
    [{"b": 2.0, "a": 1.0}, {"a": 1.0}, {"a": 1.0, "c": 2.0}, Sub(a=1.0, b=2.0), [1.0, 2.0]],
)
def test_containers_of_another_structure_are_general(other):
    f = lambda tree: list(tree.items()) if isinstance(tree, dict) else tree
    arrays = lambda tree: {k: np.full(2, v) for k, v in tree.items()} if type(tree) is dict else tree
    compiled = ready(f, arrays({"a": 1.0, "b": 2.0}))
    compiled(arrays({"a": 1.0, "b": 2.0}))
    assert served(compiled, arrays({"a": 1.0, "b": 2.0}))[1] == fast(True)
    out, was = served(compiled, arrays(other))
    assert not was and repr(out) == repr(f(arrays(other)))


def test_containers_and_the_arrays_in_them_are_changed():
    def f(tree, x):
        tree["w"] -= x
        tree["m"] = tree["w"] * 2
        return tree

    given = lambda: {"w": np.full(3, 5.0), "m": np.zeros(3)}
    compiled = jit(f)
    for _ in range(4):
        tree = given()
        w, (out, was) = tree["w"], served(compiled, tree, np.ones(3))
        assert out is tree and tree["w"] is w and w.tolist() == [4, 4, 4] and tree["m"].tolist() == [8, 8, 8]
    assert was == fast(True)


@pytest.mark.parametrize(
    "other", [numpy.ones(4, "f4"), numpy.ones(5), numpy.ones((2, 2)), numpy.ma.ones(4), 2.0, [1.0, 2.0]]
)
def test_other_arguments_are_general(other):
    f = ready(lambda x: x * 2, np.ones(4))
    out, was = served(f, other)
    assert not was and repr(numpy.asarray(out)) == repr(numpy.asarray(other * 2))


def test_numbers_that_python_read_are_those_that_were_read():
    def f(x, n, name, s):
        for _ in range(n):
            x = x + (1 if name == "one" else 2)
        return x * float(s).hex().count("-") if s == 0 else x

    compiled = ready(f, np.ones(3), 2, "one", 0.0)
    for n, name, s in ((2, "one", 0.0), (2, "one", -0.0), (3, "one", 0.0), (2, "two", 0.0), (True, "one", 0.0)):
        for _ in range(3):
            got = compiled(np.ones(3), n, name, s)
            assert got.tolist() == f(np.ones(3), n, name, s).tolist()


@pytest.mark.parametrize("how", ["apart", "same", "overlapping", "read-only", "reversed"])
def test_arguments_that_are_written(how):
    def f(x, y):
        x[...] = y + 1
        y *= 2
        return x, y.sum()

    def given(np):
        memory = np.arange(8.0)
        x, y = memory[:4], memory[4:]
        if how == "same":
            y = x
        elif how == "overlapping":
            y = memory[2:6]
        elif how == "reversed":
            x = x[::-1]
        elif how == "read-only":
            x.flags.writeable = False
        return memory, x, y

    compiled = ready(f, np.arange(4.0), np.arange(4.0))
    (plain, *a), (ours, *b) = given(numpy), given(np)
    if how == "read-only":
        with pytest.raises(ValueError, match="read-only"):
            compiled(*b)
        return
    expected, (found, was) = f(*a), served(compiled, *b)
    assert was == fast(how == "apart" or (how == "reversed" and engine.available()))  # others overwrite arguments
    assert found[0] is b[0] and found[1] == expected[1]
    numpy.testing.assert_array_equal(ours, plain)


def test_arrays_made_outside_count_among_those_that_are_read():
    table = np.arange(6.0)

    def f(x):
        x += table[:3]
        return x

    compiled = ready(f, np.ones(3))
    assert compiled(np.ones(3)).tolist() == [1, 2, 3]
    compiled(table[1:4])
    assert table.tolist() == [0, 1, 3, 5, 4, 5]


def test_a_tape_sees_what_is_written():
    def double(x):
        x *= 2
        return None

    double = ready(double, np.ones(3))

    def loss(p):
        c = np.arange(3.0)
        y = p * c
        double(c)
        return np.sum(y * c)

    numpy.testing.assert_allclose(minnp.grad(loss)(np.ones(3)), [0, 2, 8])


def test_a_guard_that_fails_fails_once_and_the_next_path_is_tried():
    f = lambda x: x * 2 if x.sum() > 0 else x[int(x[0])]
    compiled = ready(f, np.ones(3))
    for _ in range(2):
        assert compiled(np.array([-1.0, -2.0, -3.0])) == -3
        assert compiled(np.ones(3)).tolist() == [2, 2, 2]
    before = compiled.guard_failures
    assert compiled(np.array([-1.0, -2.0, -3.0])) == -3 and compiled.guard_failures == before + 1
    assert compiled.calls == 7
    with pytest.raises(IndexError):
        compiled(np.array([-7.0, 0.0, 0.0]))


def test_results_in_every_form():
    forms = {
        "one": lambda x: x * 2,
        "number": lambda x: x.max(),
        "tuple": lambda x: (x + 1, x.min(), x),
        "list": lambda x: [x + 1, x],
        "nested": lambda x: {"a": (x + 1, [x.min()])},
        "none": lambda x: None,
        "twice": lambda x: (x, x),
        "view": lambda x: x[1:],
    }
    for name, f in forms.items():
        x, compiled = np.arange(3.0), ready(f, np.ones(3))
        got, want = served(compiled, x)[0], f(x)
        assert repr(got) == repr(want), name
        if name == "twice":
            assert got[0] is got[1] is x


def test_several_threads_and_calls_within_calls():
    g = ready(lambda x, s: np.tanh(x) * s, np.ones(50), 1.0)
    wrong = []

    def work(k):
        x = np.full(50, float(k))
        for _ in range(200):
            if not numpy.allclose(g(x, 2.0), numpy.tanh(float(k)) * 2):
                wrong.append(k)
            if k % 3 == 0:
                g.forget()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_compiled_function_goes_with_what_it_compiled():
    class Held:
        pass

    def made():
        held = Held()
        f = ready(lambda x: (x * 2, held)[0], np.ones(3))
        f.held, held.f = held, f
        return weakref.ref(held)

    alive = made()
    gc.collect()
    assert alive() is None


def test_arguments_that_contain_themselves():
    def weighed(tree, x):
        return sum(child["w"] * x.sum() for child in tree["children"] if child["parent"] is tree)

    tree = {"children": []}
    tree["children"] += [{"parent": tree, "w": 2.0}, {"parent": None, "w": 5.0}]
    endless = [1.0]
    endless.append(endless)
    for _ in range(3):
        assert jit(weighed)(tree, np.ones(3)) == 6.0
        assert jit(lambda items, x: items[1][1][0] * x.sum())(endless, np.ones(3)) == 3.0
