"""The operators behind mx.np and mx.npx against MXNet's own: shapes, dtypes, values, gradients."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.symbol as sym
from minnp import backends
from minnp.symbol.operator import OPERATORS

sys.path.insert(0, str(Path(__file__).parent))
from cases import NUMPYS, case, distinct, normal, whole, within

pytestmark = [
    pytest.mark.host("MXNet computes on the host"),
    pytest.mark.either("each operator once, whose C parts have tests of their own"),
    pytest.mark.filterwarnings("ignore:Please import `csr_matrix`:DeprecationWarning"),
]
CASES: dict[str, list[tuple[list, dict]]] = {}


def add(names: str, *cases: tuple[list, dict]) -> None:
    for name in names.split():
        CASES.setdefault(name, []).extend(cases)


INTS = whole(-4, 5, 3, 4).astype(onp.int32)
add("""_npi_cos _npi_sin _npi_arctan _npi_arcsinh _npi_cbrt _npi_cosh _npi_degrees _npi_exp _npi_expm1 _npi_radians
    _npi_sinh _npi_tan _npi_tanh _npi_absolute _npi_ceil _npi_fix _npi_floor _npi_negative _npi_sign _npi_square
    _npi_trunc _npi_rint _npx_relu _npx_sigmoid _np_copy _npi_isfinite _npi_isinf _npi_isnan _npi_isneginf _npi_isposinf
    _npi_logical_not _npi_nan_to_num""", case((3, 4)), case(()))  # fmt: skip
add("_npi_cos _npi_exp _npi_arctan _npi_tanh _npi_absolute _npi_negative _npi_sign _npi_square", case(INTS))
add("_npi_log _npi_log10 _npi_log1p _npi_log2 _npi_sqrt _npi_reciprocal", case(within(0.2, 4, 3, 4)))
add("_npi_arccos _npi_arcsin _npi_arctanh", case(within(-0.9, 0.9, 3, 4)))
add("_npi_arccosh", case(within(1.1, 4, 3, 4)))
add("_npi_around", case((3, 4), decimals=1), case((3, 4)))
add("_npi_bitwise_not", case(INTS))
WIDE = [case((3, 4), (1, 4)), case((2, 1, 3), (5, 1)), case((3,), ())]
add("_npi_add _npi_subtract _npi_multiply _npi_arctan2 _npi_hypot _npi_copysign _npi_ldexp _npi_true_divide", *WIDE)
add("_npi_add _npi_subtract _npi_multiply", case(INTS, (1, 4)), case(INTS, INTS))
add("_npi_true_divide", case(INTS, within(1, 3, 4)), case(INTS, whole(1, 4, 4).astype(onp.int32)))
add("_npi_power _npi_mod", case(within(0.5, 3, 3, 4), within(0.5, 2, 4, seed=1)))
add("_npi_equal _npi_not_equal _npi_greater _npi_greater_equal _npi_less _npi_less_equal",
    case(whole(0, 3, 3, 4), whole(0, 3, 4, seed=1)), case(INTS, INTS))  # fmt: skip
add("_npi_bitwise_and _npi_bitwise_or _npi_bitwise_xor", case(INTS, INTS[:1]))
add("_npi_lcm", case(whole(1, 9, 3, 4).astype(onp.int32), whole(1, 9, 4, seed=1).astype(onp.int32)))
NUMBERS = [case((3, 4), scalar=2.0, is_int=False), case((3, 4), scalar=3, is_int=True)]
add("_npi_add_scalar _npi_subtract_scalar _npi_rsubtract_scalar _npi_multiply_scalar _npi_true_divide_scalar", *NUMBERS,
    case(INTS, scalar=3, is_int=True), case(INTS, scalar=1.5, is_int=False))  # fmt: skip
add("_npi_arctan2_scalar _npi_rarctan2_scalar _npi_copysign_scalar _npi_rcopysign_scalar", *NUMBERS)
add("_npi_ldexp_scalar _npi_rldexp_scalar", *NUMBERS)
add("_npi_power_scalar _npi_rpower_scalar _npi_mod_scalar _npi_rmod_scalar _npi_rtrue_divide_scalar",
    case(within(0.5, 3, 3, 4), scalar=1.7, is_int=False))  # fmt: skip
add(
    "_npi_equal_scalar _npi_not_equal_scalar _npi_greater_scalar _npi_greater_equal_scalar _npi_less_scalar "
    "_npi_less_equal_scalar",
    case(whole(0, 3, 3, 4), scalar=1.0, is_int=True),
    case(INTS, scalar=0.5, is_int=False),
)
add("_npi_bitwise_and_scalar _npi_bitwise_or_scalar _npi_bitwise_xor_scalar", case(INTS, scalar=3, is_int=True))
add("_npi_lcm_scalar", case(whole(1, 9, 3, 4).astype(onp.int32), scalar=6, is_int=True))
add("_npi_where", case(whole(0, 2, 3, 4), (3, 4), (4,)), case(whole(0, 2, 3, 1).astype(onp.int32), (3, 4), (3, 4)))
add("_npi_where_lscalar _npi_where_rscalar", case(whole(0, 2, 3, 4), (3, 4), scalar=0.5))
add("_npi_where_scalar2", case(whole(0, 2, 3, 4), x=0.5, y=2.0))
REDUCED = [case((2, 3, 4)), case((2, 3, 4), axis=(1,)), case((2, 3, 4), axis=(0, -1), keepdims=True)]
add("_np_sum _npi_mean _npi_std _npi_var", *REDUCED)
add("_np_prod", *REDUCED, case((2, 3), axis=(0,), dtype="float64"))
add("_np_sum", case(INTS, axis=(0,)), case((2, 3), dtype="float64"))
add("_np_max _np_min", case(distinct(2, 3, 4)), case(distinct(2, 3, 4), axis=(1,), keepdims=True))
add("_np_all _np_any", case(whole(0, 2, 3, 4)), case(whole(0, 2, 3, 4), axis=(1,)))
add(
    "_npi_argmax _npi_argmin",
    case(distinct(3, 4)),
    case(distinct(3, 4), axis=1),
    case(distinct(3, 4), axis=0, keepdims=True),
)
add("_npi_var _npi_std", case((3, 4), axis=(0,), ddof=1))
add("_np_reshape", case((3, 4), newshape=(2, -1)), case((2, 3), newshape=(6,)))
add("_npx_reshape", case((2, 3, 8), newshape=(-2, -2, 2, -1)), case((8, 3, 3, 3, 4, 4), newshape=(-6, 2, -1, -4)),
    case((8, 3, 3, 3, 4, 4), newshape=(-5, -4)), case((8, 1, 2, 3), newshape=(-2, -3, -1)),
    case((8, 3, 2), newshape=(-1, -2), reverse=True),
    case((2, 3, 8), newshape=(-2, -2, 2, -1, -6), reverse=True))  # fmt: skip
add("_np_transpose", case((2, 3, 4)), case((2, 3, 4), axes=(1, 0, 2)))
add("_np_squeeze", case((2, 1, 3, 1)), case((2, 1, 3, 1), axis=(1,)))
add("_np_moveaxis", case((2, 3, 4), source=(0,), destination=(2,)))
add("_np_roll", case((3, 4), shift=(2,)), case((3, 4), shift=(1,), axis=(1,)), case((3, 4), shift=(1, 2), axis=(0, 1)))
add("_npi_flip", case((3, 4), axis=(0,)), case((2, 3, 4), axis=(0, 2)))
add("_npi_rot90", case((3, 4), k=1, axes=(0, 1)))
add("_npi_tril", case((3, 4)), case((2, 3, 4), k=-1))
add("_np_diag", case((4,)), case((3, 4), k=1))
add("_np_diagflat", case((2, 2)))
add("_np_diagonal", case((3, 4)), case((2, 3, 4), offset=1, axis1=1, axis2=2))
add("_np_cumsum", case((3, 4)), case((3, 4), axis=1), case(INTS, axis=0, dtype="float64"))
add("_np_trace", case((3, 4)), case((2, 3, 4), offset=1, axis1=1, axis2=2))
add("_npi_diff", case((3, 5)), case((3, 5), n=2, axis=0))
add("_npi_broadcast_to", case((3, 1), shape=(2, 3, 4)))
add("_npi_stack", case((2, 3), (2, 3), axis=1, num_args=2))
add("_npi_hstack _npi_vstack _npi_dstack _npi_column_stack", case((2, 3), (2, 3), num_args=2))
add("_npi_concatenate", case((2, 3), (2, 4), num_args=2, axis=1), case((2, 3), (1, 3), num_args=2, axis=0))
add("_np_atleast_1d _np_atleast_2d _np_atleast_3d", case((3,), num_args=1), case((3,), (2, 2), num_args=2))
add("_npi_hsplit", case((4, 6), indices=(0, 2), axis=1, sections=2), case((4, 6), indices=(0, 2), axis=1))
add("_npi_dsplit", case((2, 3, 4), indices=(0, 2), axis=2, sections=2))
add("_np_dot", case((3, 4), (4, 2)), case((3,), (3,)), case((2, 3, 4), (4,)))
add("_npi_matmul", case((2, 3, 4), (4, 2)), case((2, 3, 4), (2, 4, 3)))
add("_npi_tensordot", case((2, 3, 4), (4, 3, 2), a_axes_summed=(1, 2), b_axes_summed=(1, 0)))
add("_npi_tensordot_int_axes", case((2, 3, 4), (4, 5), axes=1), case((2, 3), (2, 3), axes=2))
add(
    "_npi_einsum",
    case((2, 3), (3, 4), subscripts="ij,jk->ik", num_args=2),
    case((2, 3, 3), subscripts="aii->a", num_args=1),
)
add("_npi_polyval", case((3,), (2, 4)))
SYMMETRIC = normal(3, 3) @ normal(3, 3).T + 3 * onp.eye(3, dtype=onp.float32)
add("_npi_cholesky _npi_eigvalsh", case(SYMMETRIC))
add("_npi_det _npi_slogdet", case(SYMMETRIC), case((2, 3, 3)))
add("_npi_solve", case(SYMMETRIC, (3, 2)))
add("_npi_pinv_scalar_rcond", case(SYMMETRIC, rcond=1e-6))
add("_npi_tensorinv", case(normal(4, 2, 2) + onp.eye(4, dtype=onp.float32).reshape(4, 2, 2), ind=1))
add("_npi_tensorsolve", case(normal(4, 2, 2) + onp.eye(4, dtype=onp.float32).reshape(4, 2, 2), (4,)))
add("_npi_zeros _npi_ones", case(shape=(2, 3)), case(shape=(), dtype="int32"))
add("_npi_identity", case(shape=(3, 3)))
WEIGHTS = within(0.2, 2, 3, 4)
add("_npi_average", case((3, 4), axis=(0,), weighted=False), case((3, 4), WEIGHTS), case((3, 4), WEIGHTS, axis=(0, 1)),
    case((3, 4), WEIGHTS[:, 0], axis=(0,)))  # fmt: skip
add("_npi_percentile", case((3, 4), axis=(0,), q_scalar=40.0), case((3, 4), q_scalar=30.0, keepdims=True),
    case((3, 4), onp.array([10, 50], "f4"), axis=(1,), interpolation="lower", keepdims=True),
    case(INTS, axis=(1,), q_scalar=20.0))  # fmt: skip
add("_npi_ediff1d", case((3, 4)), case((4,), to_begin_scalar=1.0, to_end_scalar=2.0),
    case((3, 4), (3,), to_end_arr_given=True, to_begin_scalar=1.0),
    case((3,), (2,), (4,), to_begin_arr_given=True, to_end_arr_given=True))  # fmt: skip
add(
    "_npi_pad",
    case((3, 4), pad_width=((1, 1), (2, 0)), constant_value=2.0),
    *[case((3, 4), pad_width=((1, 1), (2, 0)), mode=m) for m in ("edge", "reflect", "symmetric", "maximum", "minimum")],
)
add("_npi_diag_indices_from", case((3, 3)))
add("_npi_norm", case((2, 3, 4), flag=-2), case((3, 4), flag=-2, keepdims=True), case((3, 4), axis=(-1,), flag=1),
    case((3, 4), axis=(1,), ord=1, keepdims=True), case((2, 3, 4), axis=(1, 2), flag=1),
    case((3, 4), axis=(0, 1), flag=2), case((3, 4), axis=(1,), ord=3))  # fmt: skip
add("_npi_pinv", case(normal(3, 3), onp.array(1e-6, "f4")))
add("_npi_eye", case(N=3), case(N=3, M=4, k=1, dtype="float64"))
add("_npi_arange", case(start=0, stop=5), case(start=1, stop=4, step=0.5), case(start=4))
add("_npi_logspace", case(start=0, stop=2, num=5), case(start=0, stop=2, num=5, endpoint=False, base=2))
add("_npi_indices", case(dimensions=(2, 3)))
add("_npi_blackman _npi_hamming _npi_hanning", case(M=7))
add("_npi_full_like", case((2, 3), fill_value=1.5))
add("_npx_constraint_check", case(onp.ones((2, 2), bool)))
add("_npi_eigvals", case(SYMMETRIC))
# MXNet has no gradient, or another than that of its result, for these.
WITHOUT = {
    "_npi_eigvals": "it has none",
    "_npi_eigvalsh": "its gradient is 0",
    "_npi_rarctan2_scalar": "its gradient is another function's",
    "_npi_rot90": "its gradient is turned the same way again",
    "_npi_copysign_scalar": "its gradient raises",
    "_npi_rcopysign_scalar": "the same",
    "_npi_pinv_scalar_rcond": "it has none",
    "_npi_pinv": "the same",
    **dict.fromkeys(("_npi_pad", "_npi_percentile"), "it has none, of most"),
    "_npi_std": "its gradient is 0",
    "_npi_var": "the same",
    "_npi_where_lscalar": "its gradient is that of the elements that the number took the place of",
    "_npi_where_rscalar": "the same",
    **{f"_np_atleast_{n}d": "its gradient is 0" for n in (1, 2, 3)},
}
# As symbols MXNet cannot infer shapes of these.
SHAPELESS = {"_npi_hstack": onp.hstack, "_npi_dstack": onp.dstack}
# Tested below: singular vectors may point either way, and MXNet's executors give nothing of sizes that depend on data.
BELOW = {
    "_npi_insert_scalar",
    "_npi_insert_slice",
    "_npi_insert_tensor",
    "_npi_delete",
    "_npi_eig",
    "_npi_boolean_mask_assign_scalar",
    "_npi_boolean_mask_assign_tensor",
    "_npi_svd",
    "_npi_eigh",
    "_npi_unique",
    "_npx_nonzero",
    "_npi_bincount",
}
NUMPYS_ROWS = [r for r in OPERATORS.values() if r.name.startswith(NUMPYS)]
NAMES = sorted({r.name for r in NUMPYS_ROWS if not r.drawn} - BELOW)


def test_every_operator_has_a_case() -> None:
    assert sorted(CASES) == NAMES


def values(symbol: Any, library: Any, arguments: dict, backward: bool) -> tuple[list, dict]:
    """(results, gradients)."""
    if library is sym:
        given = {n: minnp.numpy.array(a) for n, a in arguments.items()}
        empty = {n: minnp.numpy.zeros_like(a) for n, a in given.items()}
        context = None
    else:
        given = {n: library.np.array(a, dtype=a.dtype).as_nd_ndarray() for n, a in arguments.items()}
        empty = {n: library.nd.array(onp.zeros_like(a), dtype=a.dtype) for n, a in arguments.items()}
        context = library.cpu()
    empty = {n: empty[n] for n, a in arguments.items() if a.dtype.kind == "f"} if backward else {}
    bound = symbol.bind(context, given, empty, "write" if empty else "null")
    results = bound.forward(is_train=bool(empty))
    host = lambda a: onp.asarray(a) if library is sym else a.asnumpy()
    found = [host(y).copy() for y in results]
    if empty:
        heads = [onp.random.default_rng(1).normal(size=y.shape).astype(y.dtype) for y in found]
        bound.backward([minnp.numpy.array(h) if library is sym else library.nd.array(h, dtype=h.dtype) for h in heads])
    return found, {n: host(bound.grad_dict[n]) for n in empty}


@pytest.mark.skipif(
    "mxnet" not in backends.installed(), reason="MXNet's own operators are what these are compared with"
)
@pytest.mark.parametrize("name", [n for n in NAMES if n not in SHAPELESS])
def test_an_operator_is_mxnets(name: str) -> None:
    import mxnet as mx

    row = OPERATORS[name]
    for inputs, parameters in CASES[name]:
        what = f"{name} {parameters} {[getattr(x, 'shape', x) for x in inputs]}"
        ours = getattr(sym.op, name)(*[sym.Variable(f"x{i}") for i in range(len(inputs))], name="y", **parameters)
        arguments = {f"x{i}": normal(*x, seed=i) if isinstance(x, tuple) else x for i, x in enumerate(inputs)}
        arguments = {n: onp.asarray(a, getattr(a, "dtype", "f4")) for n, a in arguments.items()}
        with mx.util.np_shape(True):
            theirs = mx.sym.load_json(ours.tojson())
            assert ours.list_arguments() == theirs.list_arguments() and ours.list_outputs() == theirs.list_outputs(), (
                what
            )
            shapes = {n: a.shape for n, a in arguments.items()}
            assert ours.infer_shape(**shapes) == tuple(list(map(tuple, s)) for s in theirs.infer_shape(**shapes)), what
            types = {n: a.dtype for n, a in arguments.items()}
            assert ours.infer_type(**types)[1] == list(theirs.infer_type(**types)[1]), what
            backward = not row.loss and name not in WITHOUT
            (mine, slopes), (other, expected) = (
                values(s, library, arguments, backward) for s, library in ((ours, sym), (theirs, mx))
            )
        for a, b in zip(mine, other, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype), what
            onp.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5, err_msg=what)
        for n in slopes:
            onp.testing.assert_allclose(slopes[n], expected[n], rtol=5e-4, atol=5e-5, err_msg=f"{what}: of {n}")


@pytest.mark.parametrize("name", SHAPELESS)
def test_an_operator_is_numpys(name: str) -> None:
    ((shapes, parameters),) = CASES[name]
    given = [normal(*s, seed=i) for i, s in enumerate(shapes)]
    symbol = getattr(sym.op, name)(*[sym.Variable(f"x{i}") for i in range(len(given))], **parameters)
    (y,), slopes = values(symbol, sym, {f"x{i}": a for i, a in enumerate(given)}, True)
    onp.testing.assert_array_equal(y, SHAPELESS[name](given))
    assert symbol.infer_shape(*shapes)[1] == [y.shape] and all(g.any() for g in slopes.values())


def test_singular_vectors_and_eigenvectors_make_up_the_matrix() -> None:
    for a in (normal(2, 3), normal(2, 3, 3)):
        (u, s, v), slopes = values(sym.op._npi_svd(sym.Variable("x")), sym, {"x": a}, True)
        onp.testing.assert_allclose(u @ (s[..., None] * v), a, atol=1e-5)
        assert onp.isfinite(slopes["x"]).all()
    (w, v), _ = values(sym.op._npi_eigh(sym.Variable("x")), sym, {"x": SYMMETRIC}, False)
    onp.testing.assert_allclose(v * w @ v.T, SYMMETRIC, atol=1e-5)
    (w, v), _ = values(sym.op._npi_eig(sym.Variable("x")), sym, {"x": SYMMETRIC}, False)
    onp.testing.assert_allclose(SYMMETRIC @ v, v * w, atol=1e-5)
    with pytest.raises(ValueError, match="complex eigenvalues"):
        values(sym.op._npi_eigvals(sym.Variable("x")), sym, {"x": onp.array([[0, 1], [-1, 0]], "f4")}, False)


def test_what_writes_has_gradients_and_what_checks_raises() -> None:
    x, y, n = sym.Variable("x"), sym.Variable("y"), sym.Variable("n")
    given = {"x": normal(5), "y": normal(2, seed=1), "n": onp.array([1, 3])}
    (z,), slopes = values(sym.op._npi_insert_tensor(x, y, n), sym, given, True)
    onp.testing.assert_array_equal(z, onp.insert(given["x"], given["n"], given["y"]))
    assert slopes["x"].all() and slopes["y"].all()
    (z,), slopes = values(sym.op._npi_delete(x, n), sym, {k: given[k] for k in "xn"}, True)
    onp.testing.assert_array_equal(z, onp.delete(given["x"], given["n"]))
    assert (slopes["x"] != 0).tolist() == [True, False, True, False, True]
    a, rows = normal(3, 4), normal(1, 4, seed=1)
    for op, options, expected in (
        ("insert_scalar", {"int_ind": 1, "axis": 0}, onp.insert(a, 1, rows, 0)),
        ("insert_slice", {"start": 0, "stop": 3, "step": 2, "axis": 0}, onp.insert(a, slice(0, 3, 2), rows, 0)),
    ):
        (z,), slopes = values(getattr(sym.op, f"_npi_{op}")(x, y, **options), sym, {"x": a, "y": rows}, True)
        onp.testing.assert_array_equal(z, expected)
        assert slopes["x"].all() and slopes["y"].all()
        (z,), _ = values(getattr(sym.op, f"_npi_{op}")(x, val=2.5, **options), sym, {"x": a}, True)
        assert z.shape == expected.shape and z[1 if op == "insert_scalar" else 0].tolist() == [2.5] * 4
    for options, where in (
        ({"int_ind": 1, "axis": 1}, 1),
        ({"start": 0, "stop": 3, "step": 2, "axis": 1}, slice(0, 3, 2)),
    ):
        deleted = sym.op._npi_delete(x, **options)
        onp.testing.assert_array_equal(values(deleted, sym, {"x": a}, True)[0][0], onp.delete(a, where, 1))
        assert deleted.infer_shape(x=(3, 4))[1] == [onp.delete(a, where, 1).shape]
    mask = whole(0, 2, 3, 4).astype(bool)
    for m, start, value in ((mask, 0, normal(int(mask.sum()), seed=2)), (mask, 0, normal(1)), (mask[0], 1, normal(1))):
        (z,), slopes = values(sym.op._npi_boolean_mask_assign_tensor(x, y, n, start_axis=start), sym,
                              {"x": a, "y": m, "n": value}, True)  # fmt: skip
        expected = a.copy()
        expected[(slice(None),) * start + (m,)] = value
        onp.testing.assert_array_equal(z, expected)
        assert ((slopes["x"] == 0) == onp.broadcast_to(m, a.shape)).all() and slopes["n"].all()
    masked = sym.op._npi_boolean_mask_assign_scalar(x, y, value=1.5)
    onp.testing.assert_array_equal(values(masked, sym, {"x": a, "y": mask}, True)[0][0], onp.where(mask, 1.5, a))
    given["n"] = onp.array([[4, 2]])
    (z,), slopes = values(sym.op._scatter_set_nd(x, y, n, shape=(5,)), sym, given, True)
    assert z[[4, 2]].tolist() == given["y"].tolist() and z[0] == given["x"][0]
    assert (slopes["x"] != 0).tolist() == [True, True, False, True, False] and slopes["y"].all()
    with pytest.raises(ValueError, match="positive"):
        sym.op._npx_constraint_check(x > 0, msg="positive").eval(x=minnp.numpy.array([-1.0]))
    counts = sym.op._npi_multinomial(n=20, pvals=(0.25, 0.75), size=(3,)).eval()[0]
    assert counts.shape == (3, 2) and counts.sum(1).tolist() == [20] * 3 and counts.dtype == onp.int64


def test_what_mxnet_has_another_gradient_of() -> None:
    """Norms of matrices, whose gradients are multiplied twice by what flows in, and the sum of weights, of none."""
    x, w = sym.Variable("x"), sym.Variable("w")
    given = {"x": normal(3, 4), "w": WEIGHTS[:, 0]}
    largest = sym.op._npi_norm(x, axis=(0, 1), flag=0, ord=2)
    (y,), slopes = values(largest, sym, {"x": given["x"]}, True)
    u, s, v = onp.linalg.svd(given["x"])
    head = onp.random.default_rng(1).normal()
    onp.testing.assert_allclose(y, s[0], rtol=1e-5)
    onp.testing.assert_allclose(slopes["x"], head * onp.outer(u[:, 0], v[0]), atol=1e-5)
    average = sym.op._npi_average(x, w, axis=(0,), returned=True)
    (y, total), _ = values(average, sym, given, True)
    assert average.infer_shape(**{n: a.shape for n, a in given.items()})[1] == [(4,), ()] == [y.shape, total.shape]
    onp.testing.assert_allclose(y, onp.average(given["x"], 0, given["w"]), rtol=1e-5)
    onp.testing.assert_allclose(total, given["w"].sum(), rtol=1e-5)


def test_a_determinant_is_a_number_in_models_of_mx_np() -> None:
    older = sym.linalg.det(sym.Variable("x"))
    assert older.eval(x=SYMMETRIC)[0].shape == (1,) == older.infer_shape(x=(3, 3))[1][0]
    text = older.tojson().replace('"attrs": {', '"attrs": {"is_np_shape": ["int", 1], ')
    loaded = sym.load_json(text)
    assert loaded.eval(x=SYMMETRIC)[0].shape == () == loaded.infer_shape(x=(3, 3))[1][0]


def test_sizes_that_depend_on_data() -> None:
    x = onp.array([3, 1, 1, 2], "f4")
    everything = dict.fromkeys(("return_index", "return_inverse", "return_counts"), True)
    found, _ = values(sym.op._npi_unique(sym.Variable("x"), **everything), sym, {"x": x}, False)
    for a, b in zip(found, onp.unique(x, **everything), strict=True):
        onp.testing.assert_array_equal(a, b)
    (found,), _ = values(sym.op._npx_nonzero(sym.Variable("x")), sym, {"x": x[1:] - 1}, False)
    assert found.tolist() == [[2]] and found.dtype == onp.int64
    count = sym.op._npi_bincount(sym.Variable("x"), sym.Variable("w"), has_weights=True, minlength=5)
    (found,), _ = values(count, sym, {"x": x.astype("i4"), "w": onp.ones(4, "f4")}, False)
    assert found.tolist() == [0, 2, 1, 1, 0] and found.dtype == onp.float32


@pytest.mark.parametrize(
    "name", ["normal", "uniform", "exponential", "gumbel", "logistic", "pareto", "rayleigh", "weibull"]
)
def test_gradients_flow_through_noise_to_the_parameters(name: str) -> None:
    row = OPERATORS[f"_npi_{name}"]
    names = [n for n in row.parameters if n not in ("size", "ctx", "dtype")]
    inputs = [sym.Variable(n) for n in names]
    net = getattr(sym.op, f"_npi_{name}")(*inputs, size=(3, 2, 4), **dict.fromkeys(names))
    given = {n: within(0.5, 2, 2, 4, seed=i) for i, n in enumerate(names)}
    assert net.infer_shape(**{n: a.shape for n, a in given.items()})[1] == [(3, 2, 4)]

    def total(arguments: dict) -> Any:
        minnp.numpy.random.seed(0)
        return minnp.numpy.sum(net.eval(**arguments)[0] * normal(3, 2, 4))

    slopes = minnp.grad(total)({n: minnp.numpy.array(a) for n, a in given.items()})
    for n in names:
        up, down = (float(total(given | {n: given[n] + e})) for e in (onp.float32(0.01), onp.float32(-0.01)))
        onp.testing.assert_allclose(slopes[n].sum(), (up - down) / 0.02, rtol=0.03, atol=0.03)


@pytest.mark.skipif("mxnet" not in backends.installed(), reason="gluon exports the model")
@pytest.mark.filterwarnings("ignore:Cannot decide type:UserWarning")  # gluon of its own import
def test_a_model_of_mx_np_predicts_the_same_and_goes_back(tmp_path: Path) -> None:
    import mxnet as mx
    from mxnet.gluon import HybridBlock, SymbolBlock, nn

    class Net(HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            with self.name_scope():
                self.conv, self.norm = nn.Conv2D(4, 3, padding=1, in_channels=3), nn.BatchNorm(in_channels=4)
                self.dense, self.layer = nn.Dense(5, in_units=4, flatten=False), nn.LayerNorm(in_channels=5)
                self.embedded = nn.Embedding(7, 4)

        def hybrid_forward(self, F: Any, x: Any, words: Any) -> tuple:
            y = F.npx.relu(self.norm(self.conv(x)))
            y = F.npx.pooling(y, kernel=(2, 2), stride=(2, 2), pool_type="max")
            y, z = F.np.reshape(F.np.transpose(y, (0, 2, 3, 1)), (2, -1, 4)), self.embedded(words)
            y = y + F.np.matmul(F.npx.softmax(F.np.matmul(y, F.np.swapaxes(z, 1, 2)) / 2.0, axis=-1), z)
            y = self.layer(self.dense(y))
            y = F.np.where(y > F.np.mean(y, axis=1, keepdims=True), y, 0.1 * y) - F.np.max(y, axis=-1, keepdims=True)
            y = F.np.concatenate([y, F.np.sqrt(F.np.abs(y) + 1e-3)], axis=2)
            return F.np.sum(y), F.np.tanh(y)[:, 0:2], F.np.stack([F.npx.sigmoid(y), y * y])

    draw = onp.random.default_rng(0)
    x, words = draw.normal(size=(2, 3, 8, 8)).astype("f4"), draw.integers(0, 7, (2, 5)).astype("f4")
    there, here = str(tmp_path / "there"), str(tmp_path / "here")
    with mx.util.np_shape(True), mx.util.np_array(True):
        net = Net()
        net.initialize(mx.init.Xavier())
        net.hybridize()
        expected = [y.asnumpy() for y in net(mx.np.array(x), mx.np.array(words))]
        net.export(there, epoch=0)
        model = minnp.load_mxnet(there, 0)
        model.save(here, 0)
        back = SymbolBlock.imports(f"{here}-symbol.json", ["data0", "data1"], f"{here}-0000.params")
        again = [y.asnumpy() for y in back(mx.np.array(x), mx.np.array(words))]
    for ours, theirs, y in zip(model(x, words), again, expected, strict=True):
        assert ours.shape == y.shape
        onp.testing.assert_allclose(ours, y, rtol=1e-4, atol=1e-5)
        onp.testing.assert_array_equal(theirs, y)
    slopes = minnp.grad(lambda p: model(x, words, params=p)[0])(model.params)
    assert all(onp.isfinite(g).all() for g in slopes.values())
