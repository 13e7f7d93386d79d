"""Every operator of minnp.symbol against MXNet's own: names, shapes, values, gradients, states, JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
import minnp.symbol as sym
from minnp.symbol import OPERATORS

sys.path.insert(0, str(Path(__file__).parent))
from cases import CASES, NAMES, WITHOUT, WRONG, arrays, make

mx = pytest.importorskip("mxnet", reason="MXNet's own operators are what these are compared with")
pytestmark = [
    pytest.mark.host("MXNet computes on the host"),
    pytest.mark.filterwarnings("ignore:Please import `csr_matrix`:DeprecationWarning"),  # mx.nd.array asks for it
]


def numpy_of(array: Any) -> onp.ndarray:
    return array.asnumpy() if hasattr(array, "asnumpy") and not isinstance(array, onp.ndarray) else onp.asarray(array)


def same(ours: Any, theirs: Any, what: str, rtol: float = 2e-4) -> None:
    ours, theirs = numpy_of(ours), numpy_of(theirs)
    assert ours.shape == theirs.shape, f"{what}: {ours.shape} and {theirs.shape}"
    assert ours.dtype == theirs.dtype, f"{what}: {ours.dtype} and {theirs.dtype}"
    onp.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol * 0.1, err_msg=what)


def run(
    symbol: Any, library: Any, arguments: dict, states: dict, heads: list, constant: set
) -> tuple[list, list, dict, dict]:
    """(results outside training, in training, gradients, states after it)."""
    array = onp.array if library is sym else mx.nd.array
    make = lambda a: array(a, dtype=a.dtype)
    context = None if library is sym else mx.cpu()
    given = {n: make(a) for n, a in arguments.items()}
    gradients = {n: make(onp.zeros_like(a)) for n, a in arguments.items() if a.dtype.kind == "f" and n not in constant}
    kept = {n: make(a) for n, a in states.items()}
    bound = symbol.bind(context, given, gradients, "write" if gradients else "null", kept)
    outside = [numpy_of(y).copy() for y in bound.forward(is_train=False)]
    inside = [numpy_of(y).copy() for y in bound.forward(is_train=True)]
    if gradients:
        seeds = [make(h.astype(y.dtype)) for h, y in zip(heads, inside, strict=True)]
        bound.backward(seeds)
    return outside, inside, {n: bound.grad_dict[n] for n in gradients}, bound.aux_dict


@pytest.mark.parametrize("name", NAMES)
def test_an_operator_is_mxnets(name: str) -> None:
    assert CASES.get(name), f"tests/symbol/cases.py has no case of {name}"
    for inputs, parameters in CASES[name]:
        what = f"{name} {parameters}"
        ours, theirs = (make(library, name, parameters, len(inputs)) for library in (sym, mx.sym))
        for names in ("list_arguments", "list_outputs", "list_auxiliary_states"):
            assert getattr(ours, names)() == getattr(theirs, names)(), what
        given = {f"x{i}": x if isinstance(x, tuple) else x.shape for i, x in enumerate(inputs)}
        found = ours.infer_shape(**given)
        assert found == tuple(list(map(tuple, s)) for s in theirs.infer_shape(**given)), what
        arguments, states = arrays(ours, inputs, name)
        rng = onp.random.default_rng(1)
        heads = [rng.normal(size=s).astype(onp.float32) for s in found[1]]
        wrong = any(name == n and some.items() <= parameters.items() for n, some, _ in WRONG)
        constant = set(arguments) if wrong else WITHOUT.get(name, set())
        mine = run(ours, sym, arguments, states, heads, constant)
        other = run(theirs, mx.sym, arguments, states, heads, constant)
        for when, a, b in zip(("outside training", "in training"), mine, other):
            for y, z in zip(a, b, strict=True):
                same(y, z, f"{what} {when}")
        for n in mine[2]:
            same(mine[2][n], other[2][n], f"{what}: the gradient of {n}")
        for n in mine[3]:
            same(mine[3][n], other[3][n], f"{what}: the state {n}")
        if name != "UpSampling":  # where MXNet says that the second image is a bilinear kernel
            initial, there = ({n: a["__init__"] for n, a in net.attr_dict().items() if "__init__" in a}
                              for net in (ours, theirs))  # fmt: skip
            assert initial == there, what
        back = sym.load_json(theirs.tojson())
        assert back.list_outputs() == ours.list_outputs() and back.list_arguments() == ours.list_arguments(), what
        there = mx.sym.load_json(ours.tojson())
        assert there.list_outputs() == theirs.list_outputs() and there.infer_shape(**given) == theirs.infer_shape(
            **given
        )


def test_the_likelihood_of_a_hawkes_process_has_mxnets_gradient() -> None:
    ((inputs, parameters),) = CASES["_contrib_hawkesll"]
    found = {}
    weights = onp.array([0.7, -1.3], onp.float32)
    for library, array in ((sym, np.array), (mx.sym, lambda a: mx.nd.array(a, dtype=a.dtype))):
        net = make(library, "_contrib_hawkesll", parameters, len(inputs))
        given = {f"x{i}": array(x) for i, x in enumerate(inputs)}
        gradients = {f"x{i}": array(onp.zeros_like(inputs[i])) for i in range(3)}
        bound = net.bind(None if library is sym else mx.cpu(), given, gradients)
        bound.forward(is_train=True)
        bound.backward([array(weights), array(onp.zeros_like(inputs[0]))])
        found[library] = gradients
    for n in found[sym]:
        same(found[sym][n], found[mx.sym][n], n)


def test_shapes_in_part_follow_from_those_of_variables() -> None:
    found = []
    for library, names in ((sym, sym.NameManager), (mx.sym, mx.name.NameManager)):
        with names():
            x = library.Variable("data", shape=(0, 3))
            y = library.FullyConnected(library.FullyConnected(x, num_hidden=4, name="a"), num_hidden=2, name="b")
            net = library.SoftmaxOutput(2**y, name="softmax")
        found.append((net.get_internals().list_outputs(), [list(map(tuple, s)) for s in net.infer_shape_partial()]))
    assert found[0] == found[1] and found[0][1][1] == [(0, 2)]


SPACES = {"": "", "_linalg_": "linalg", "_contrib_": "contrib", "_image_": "image"}


@pytest.mark.parametrize("name", [n for n in NAMES if n != "_CrossDeviceCopy"])
def test_a_symbol_without_a_name_gets_mxnets(name: str) -> None:
    inputs, parameters = CASES[name][0]
    for each in (name, *OPERATORS[name].aliases):
        for prefix, space in SPACES.items():
            places = [getattr(library, space) if space else library for library in (sym, mx.sym)]
            short = each.removeprefix(prefix)
            if not (each.startswith(prefix) and hasattr(places[1], short)):
                continue
            found = []
            for library, place, names in zip((sym, mx.sym), places, (sym.NameManager, mx.name.NameManager)):
                with names():
                    variables = [library.Variable(f"x{i}") for i in range(len(inputs))]
                    if name.startswith("_random_pdf"):
                        net = getattr(place, short)(**dict(zip(OPERATORS[name].arguments({}), variables)), **parameters)
                    else:
                        net = getattr(place, short)(*variables, **parameters)
                found.append((net.name, net.list_inputs(), net.list_outputs()))
            assert found[0] == found[1], (space, short)


# What mx.sym has and minnp.symbol has not, and why.
ABSENT = {
    "": "reset_arrays fill_element_0index",
    "contrib": "fft ifft count_sketch quantized_rnn quantize_asym calibrate_entropy getnnz edge_id dgl_adjacency "
    "dgl_csr_neighbor_non_uniform_sample dgl_csr_neighbor_uniform_sample dgl_graph_compact dgl_subgraph "
    "adamw_update mp_adamw_update",
    "sparse": "retain adagrad_update",
    "np": "shares_memory may_share_memory",
}


@pytest.mark.parametrize("space", ["", "contrib", "linalg", "random", "image", "sparse", "op", "np", "npx",
                                   "np.linalg", "np.random", "npx.random", "npx.image"])  # fmt: skip
def test_every_public_name_of_mxnet_is_here(space: str) -> None:
    ours, theirs = sym, mx.sym
    for part in filter(None, space.split(".")):
        ours, theirs = getattr(ours, part), getattr(theirs, part)
    public = {
        n for n in dir(theirs)
        if not n.startswith(("_", "gen_", "backward_")) and callable(getattr(theirs, n))
        and not isinstance(getattr(theirs, n), type) and n not in ("check_call", "current_context", "uniform")
    }  # fmt: skip
    absent = {n for n in public if not hasattr(ours, n)}
    assert absent == set(ABSENT.get("" if space == "op" else space, "").split())


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("name", ["brightness", "contrast", "saturation", "hue"])
def test_changes_of_colours_by_a_factor_from_a_range_of_one_are_mxnets(name: str, dtype: str) -> None:
    pixels = onp.random.default_rng(0).integers(0, 256, (5, 6, 3)).astype(dtype)
    pixels[0, 0], pixels[1, 1] = 7, (255, 0, 0)
    if name == "saturation":  # of which MXNet takes a part of the blue for the gray
        pixels[..., :2] = 0
    for factor in (0.0, 0.2, 0.6, 1.4):
        expected = getattr(mx.nd.image, f"random_{name}")(mx.nd.array(pixels, dtype=dtype), factor, factor).asnumpy()
        net = getattr(sym.image, f"random_{name}")(sym.Variable("x"), min_factor=factor, max_factor=factor)
        off = net.eval(x=np.array(pixels))[0].astype(float) - expected
        assert abs(off).max() <= (1 if dtype == "uint8" else 1e-3), factor  # of bytes, what is rounded down


def detector(library: Any) -> Any:
    """A small detector as SSD is built: three scales, targets, two losses, detections."""
    x, label = library.Variable("data"), library.Variable("label")

    def block(x: Any, name: str, filters: int, stride: int) -> Any:
        x = library.Convolution(x, kernel=(3, 3), pad=(1, 1), stride=(stride, stride), num_filter=filters, name=name)
        return library.Activation(library.BatchNorm(x, fix_gamma=False, name=f"{name}_bn"), act_type="relu")

    x = library.Pooling(block(x, "c1", 8, 1), kernel=(2, 2), stride=(2, 2), pool_type="max")
    classes, places, anchors = [], [], []
    for i in range(3):
        x = block(x, f"c{i + 2}", 16, 2)
        sizes, ratios = (0.2 + 0.2 * i, 0.3 + 0.2 * i), (1, 2, 0.5)
        for found, name in ((classes, "class"), (places, "place")):
            y = library.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=16, name=f"{name}{i}")
            found.append(library.Flatten(library.transpose(y, axes=(0, 2, 3, 1))))
        anchors.append(library.Flatten(library.contrib.MultiBoxPrior(x, sizes=sizes, ratios=ratios, clip=True)))
    scores = library.transpose(library.Reshape(library.Concat(*classes, dim=1), shape=(0, -1, 4)), axes=(0, 2, 1))
    place = library.Concat(*places, dim=1)
    anchor = library.Reshape(library.Concat(*anchors, dim=1), shape=(0, -1, 4))
    wanted = library.contrib.MultiBoxTarget(anchor, label, scores, overlap_threshold=0.5, negative_mining_ratio=3,
                                            negative_mining_thresh=0.5)  # fmt: skip
    options = {"ignore_label": -1, "use_ignore": True, "multi_output": True, "normalization": "valid"}
    chances = library.SoftmaxOutput(scores, wanted[2], name="chances", **options)
    off = library.smooth_l1(wanted[1] * (place - wanted[0]), scalar=1.0)
    found = library.contrib.MultiBoxDetection(chances, place, anchor, nms_threshold=0.5)
    return library.Group([chances, library.MakeLoss(off, normalization="valid"), library.BlockGrad(found)])


def test_a_detector_is_mxnets() -> None:
    ours, theirs = detector(sym), detector(mx.sym)
    shapes = {"data": (2, 3, 32, 32), "label": (2, 2, 5)}
    found = ours.infer_shape(**shapes)
    assert found == tuple(list(map(tuple, s)) for s in theirs.infer_shape(**shapes))
    draw = onp.random.default_rng(0)
    arguments = {n: draw.normal(0, 0.3, s).astype("f4") for n, s in zip(ours.list_arguments(), found[0], strict=True)}
    arguments["label"] = onp.array([[[0, 0.1, 0.1, 0.45, 0.5], [2, 0.5, 0.4, 0.9, 0.95]],
                                    [[1, 0.2, 0.3, 0.6, 0.8], [-1, -1, -1, -1, -1]]], "f4")  # fmt: skip
    states = {
        n: onp.full(s, n.endswith("var"), "f4") for n, s in zip(ours.list_auxiliary_states(), found[2], strict=True)
    }
    results = []
    for symbol, array, context in ((ours, onp.array, None), (theirs, mx.nd.array, mx.cpu())):
        given, kept = ({n: array(a) for n, a in arrays.items()} for arrays in (arguments, states))
        empty = {n: array(onp.zeros_like(a)) for n, a in arguments.items() if n != "label"}
        bound = symbol.bind(context, given, empty, dict.fromkeys(empty, "write"), kept)
        outputs = [numpy_of(y).copy() for y in bound.forward(is_train=True)]
        bound.backward()
        results.append((outputs, {n: numpy_of(bound.grad_dict[n]) for n in empty}))
    (mine, slopes), (other, expected) = results
    for y, z in zip(mine, other, strict=True):
        same(y, z, "a result")
    most = max(onp.linalg.norm(g) for g in expected.values())
    for n, g in expected.items():
        assert onp.linalg.norm(slopes[n] - g) <= 1e-4 * onp.linalg.norm(g) + 1e-6 * most, n
