"""Large matrix products of traced and compiled code: each BLAS there is, against NumPy's product."""

from __future__ import annotations

import itertools
import warnings
from contextlib import nullcontext
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import fx, grad, jit, nn, num_threads, policy, set_num_threads
from minnp.core.cpu import contraction, products
from minnp.core.jit import specialisation

RNG = onp.random.default_rng(0)


@pytest.fixture
def blas(library: Any, monkeypatch: Any) -> list:
    """The products that run on the library."""
    calls: list = []
    gemm = products.Blas.gemm
    monkeypatch.setattr(products.Blas, "gemm", lambda *args: calls.append(args) or gemm(*args))
    return calls


def draw(shape: tuple, kind: str) -> onp.ndarray:
    return RNG.standard_normal(shape).astype(kind)


@pytest.mark.long
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        *(("f4", sizes) for sizes in [(70, 130, 90), (300, 330, 1100), (611, 45, 259), (60, 1300, 70)]),
        *(("f8", sizes) for sizes in [(70, 130, 90), (300, 330, 1100), (611, 45, 259), (60, 1300, 70)]),
    ],
    ids=str,
)
def test_every_layout(blas: list, kind: str, sizes: tuple, threads: int) -> None:
    before = set_num_threads(threads)
    try:
        m, k, n = sizes
        lefts = [
            draw((m, k), kind),
            draw((k, m), kind).T,
            draw((m, 2 * k), kind)[:, ::2],
            draw((m, k + 3), kind)[::-1, 3:],
        ]
        rights = [draw((k, n), kind), draw((n, k), kind).T, draw((k, n), kind)[:, ::-1], draw((2 * k, n), kind)[::2]]
        for a in lefts:
            for b in rights:
                got = products.matmul(a, b)
                onp.testing.assert_allclose(got, onp.matmul(a, b), rtol=0, atol=1e-3 if kind == "f4" else 1e-11)
                assert (got.dtype, got.shape, got.flags.c_contiguous) == (onp.dtype(kind), (m, n), True)
                c = draw((m, n), kind)
                wanted = c - 0.5 * (a @ b)
                got = products.update(c, a, b, scale=0.5, sign=-1.0)
                onp.testing.assert_allclose(got, wanted, rtol=0, atol=1e-3)
                got = products.update(None, a, b, a, b, scale=0.5)
                onp.testing.assert_allclose(got, a @ b, rtol=0, atol=1e-3)
        stack = draw((2, 35, k), kind)
        onp.testing.assert_allclose(products.matmul(stack, rights[1]), stack @ rights[1], rtol=0, atol=1e-3)
    finally:
        set_num_threads(before)
    assert len(blas) >= 33
    assert num_threads() == before


@pytest.mark.skipif(products.team is None, reason="without the C part a BLAS makes all products")
@pytest.mark.parametrize("old", [True, False])
def test_products_beside_a_blas_for_older_processors(library: Any, old: bool) -> None:
    try:
        products.team.keep_to_avx2(old)
        for kind, (m, k, n) in itertools.product(("f4", "f8"), [(18, 1100, 40), (75, 64, 64), (200, 17, 331)]):
            a, b = draw((m, k), kind), draw((k, n), kind)
            onp.testing.assert_allclose(products.matmul(a, b), a @ b, rtol=0, atol=1e-3 if kind == "f4" else 1e-12)
    finally:
        products.team.keep_to_avx2(products.half_used(products.openblas()))


def test_bits_depend_neither_on_the_number_of_threads_nor_on_the_call(blas: list) -> None:
    before = num_threads()
    try:
        shapes = [(196, 2872, 275), (128, 784, 512), (40, 3000, 233), (674, 1200, 146), (9, 60000, 20), (31, 640, 288)]
        for (m, k, n), kind in itertools.product(shapes, ("f4", "f8")):
            a, b = draw((m, k), kind), draw((n, k), kind).T
            found = set()
            for threads in (1, 2, 3, 2, 1):
                set_num_threads(threads)
                found.add(products.matmul(a, b).tobytes())
            assert len(found) == 1, (m, k, n, kind)
    finally:
        set_num_threads(before)


@pytest.mark.parametrize(
    "of", [lambda v: onp.broadcast_to(v[0], v.shape), lambda v: v[::-1]], ids=["equal", "reversed"]
)
def test_vectors_that_blas_cannot_read_are_copied_for_it(of: Any) -> None:
    a, v = draw((600, 600), "f8"), of(draw((600,), "f8"))
    dense = v.copy()
    onp.testing.assert_array_equal(products.matmul(a, v), onp.matmul(a, dense))
    onp.testing.assert_array_equal(products.matmul(v, a), onp.matmul(dense, a))
    onp.testing.assert_array_equal(products.matmul(v, v), onp.matmul(dense, dense))
    onp.testing.assert_array_equal(products.matmul(a[::2, ::2], v[::2]), onp.matmul(a[::2, ::2].copy(), dense[::2]))


def unaligned(values: onp.ndarray) -> onp.ndarray:
    out = onp.empty(values.nbytes + 1, "u1")[1:].view(values.dtype).reshape(values.shape)
    out[...] = values
    return out


@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("shapes", [((100, 200), (200, 32)), ((600, 600), (600,)), ((6, 3, 70, 64), (64, 65))], ids=str)
def test_what_begins_between_two_numbers_is_copied_for_blas(library: Any, kind: str, shapes: tuple) -> None:
    a, b = (draw(shape, kind) for shape in shapes)
    for x, y in itertools.product((a, unaligned(a)), (b, unaligned(b))):
        onp.testing.assert_allclose(products.matmul(x, y), onp.matmul(a, b), rtol=0, atol=1e-3)


def test_what_is_not_plain_is_numpys(blas: list) -> None:
    a = draw((100, 200), "f4")
    for x, y in [
        (a, a.T),  # NumPy computes half of it, exactly symmetric
        (a, a.T.astype("f8")),
        (a.astype("c8"), a.T),
        (a, draw((3, 200, 50), "f4")),
        (a, draw((200,), "f4")),
        (a, draw((200, 2), "f4")),
        (a.astype(int), a.T.astype(int)),
    ]:
        onp.testing.assert_array_equal(products.matmul(x, y), onp.matmul(x, y))
    with pytest.raises(ValueError, match="mismatch"):
        products.matmul(draw((900, 100), "f4"), draw((90, 900), "f4"))
    assert not blas


def test_large_stacks_are_the_librarys_bits_on_any_threads(library: Any) -> None:
    before = num_threads()
    try:
        for kind, rows in itertools.product(("f4", "f8"), (12, 70)):
            a, b = draw((20, 3, rows, 64), kind), draw((20, 65, 3, 64), kind).transpose(0, 2, 3, 1)
            with products.single_thread() or nullcontext():
                wanted = a @ b
            found = []
            for threads in (1, 2, 3):
                set_num_threads(threads)
                found.append(products.matmul(a, b))
            onp.testing.assert_allclose(found[0], wanted, rtol=0, atol=1e-4 if kind == "f4" else 1e-12)
            numpys = library is products.openblas() and rows < 16  # C makes no products of so few rows itself
            assert len({x.tobytes() for x in ([*found, wanted] if numpys else found)}) == 1
            with pytest.warns(RuntimeWarning, match="overflow encountered in matmul"):
                products.matmul(onp.full_like(a, onp.finfo(kind).max), abs(b))
    finally:
        set_num_threads(before)


class Single:
    """What stands for the switch of NumPy's BLAS, and counts its uses."""

    used = 0

    def __enter__(self) -> None:
        Single.used += 1

    def __exit__(self, *exc: Any) -> None: ...


def used(multiply: Any, *args: Any) -> tuple:
    """(the product, how often it kept NumPy's BLAS to one thread)"""
    Single.used = 0
    return onp.asarray(multiply(*args)), Single.used


@pytest.mark.host("a backend's products are not NumPy's")
def test_compiled_functions_leave_products_with_vectors_to_the_threads_of_numpys_blas(monkeypatch: Any) -> None:
    monkeypatch.setattr(specialisation, "single_thread", Single)
    a, v = np.array(draw((600, 500), "f8")), np.array(draw((500,), "f8"))
    for f, alone in [
        (lambda a, v: a @ v, 0),
        (lambda a, v: 2 * (v @ a.T) + 1, 0),
        (lambda a, v: a * 2 @ v, 1),  # our threads multiply by 2
        (lambda a, v: a @ v + a.sum(), 1),
    ]:
        compiled = jit(f)
        onp.testing.assert_allclose(compiled(a, v), f(onp.asarray(a), onp.asarray(v)), rtol=0, atol=1e-10)
        assert used(compiled, a, v)[1] == alone


@pytest.mark.host("where torch is preferred, its kernels multiply")
@pytest.mark.parametrize("crowded", [True, False])
def test_brief_products_leave_the_cores_to_another_librarys_threads(monkeypatch: Any, crowded: bool) -> None:
    monkeypatch.setattr(products, "single_thread", Single)
    monkeypatch.setattr(products, "crowded", crowded)
    x, many, w = (np.array(draw(shape, "f4")) for shape in ((1, 2048), (64, 2048), (2048, 256)))
    layer = nn.Linear(2048, 256, bias=False).init(0)
    layer.params["w"] = w
    dot, row = (lambda x: np.dot(x, w)), (lambda x: np.rows["matmul"](x, w))
    for multiply in (dot, row, layer, fx.capture(lambda x: x @ w, x)):
        y, alone = used(multiply, x)
        onp.testing.assert_allclose(y, onp.asarray(x) @ onp.asarray(w), rtol=0, atol=1e-3)
        assert alone == crowded
    y, alone = used(dot, many)  # takes long enough to be shared
    onp.testing.assert_allclose(y, onp.asarray(many) @ onp.asarray(w), rtol=0, atol=1e-3)
    assert not alone
    out = np.zeros((1, 256), "f4")
    y, alone = used(lambda: np.dot(x, w, out=out))
    assert not alone and y.tobytes() == onp.asarray(out).tobytes() and y.any()
    assert np.dot(np.ones((1, 0)), np.ones((0, 200000))).shape == (1, 200000)
    with pytest.raises(ValueError, match="not aligned"):
        np.dot(w, w)


def test_warnings_are_numpys(blas: list) -> None:
    a, b = onp.full((90, 90), 1e30, "f4"), onp.full((90, 90), 1e30, "f4")
    with pytest.warns(RuntimeWarning, match="overflow encountered in matmul"):
        assert onp.isinf(products.matmul(a, b)).all()
    with onp.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        products.matmul(a, b)
    a[3] = onp.nan  # what was there before warns nobody
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert onp.isnan(products.matmul(a, b * 0)[3]).all()
    assert blas


@pytest.mark.host("where torch is preferred, its kernels multiply")
def test_traced_and_compiled_code_uses_it_and_plain_code_does_not(blas: list) -> None:
    a, b = np.array(draw((90, 110), "f4")), np.array(draw((110, 70), "f4"))
    f = lambda a, b: np.sum(np.tanh(a @ b))
    f(a, b)
    with policy("only_numpy"):
        f(a, b)
        wanted = grad(f)(a, b)
    jit(f, compiler="numpy")(a, b)
    assert not blas
    got = grad(f)(a, b)
    assert blas
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-4)
    run = jit(f)
    run(a, b)
    blas.clear()
    np.testing.assert_allclose(run(a, b), f(a, b), rtol=1e-4)
    assert blas


# ------------------------------------------------------------------ einsum
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_einsum_in_matrix_products(kind: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(contraction, "LEAST", 0)
    monkeypatch.setattr(contraction, "NARROW", 2)
    contraction.planned.cache_clear()
    rng, planned = onp.random.default_rng(0), 0
    for _ in range(150):
        terms = ["".join(rng.permutation(list("abcde"))[: rng.integers(1, 5)]) for _ in range(rng.integers(2, 4))]
        found = sorted(set("".join(terms)))
        lone = [c for c in found if sum(c in t for t in terms) == 1]
        out = "".join(dict.fromkeys([*lone, *rng.permutation(found)[: rng.integers(0, len(found) + 1)]]))
        shapes = [tuple("abcde".index(c) + 3 for c in t) for t in terms]
        arrays = [rng.standard_normal(s[::-1]).astype(kind).T for s in shapes]
        subscripts = f"{','.join(terms)}->{out}"
        planned += contraction.planned(subscripts, tuple(shapes)) is not None
        got, want = contraction.einsum(*arrays, subscripts=subscripts), onp.einsum(subscripts, *arrays)
        assert got.dtype == want.dtype and got.shape == want.shape
        onp.testing.assert_allclose(got, want, rtol=0, atol=(2e-4 if kind == "f4" else 1e-10), err_msg=subscripts)
    contraction.planned.cache_clear()
    assert planned > 30


def test_einsum_under_a_trace_agrees_with_numpy() -> None:
    q, k = draw((4, 30, 3, 16), "f4"), draw((4, 20, 3, 16), "f4")
    f = lambda q, k: np.sum(np.einsum("blhd,bmhd->bhlm", q, k) ** 2)
    score = onp.einsum("blhd,bmhd->bhlm", q, k)
    assert contraction.planned("...ij,...jk", ((5, 40, 30), (5, 30, 20))) is not None
    for gradient in (grad(f, (0, 1)), jit(grad(f, (0, 1)))):
        dq, dk = gradient(np.array(q), np.array(k))
        onp.testing.assert_allclose(dq, 2 * onp.einsum("bhlm,bmhd->blhd", score, k), rtol=1e-3, atol=1e-3)
        onp.testing.assert_allclose(dk, 2 * onp.einsum("bhlm,blhd->bmhd", score, q), rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match="more dimensions than subscripts"):
        grad(lambda a: np.einsum("ij,jk->ik", a, onp.ones((200, 3))).sum())(np.ones((100, 200, 2)))
