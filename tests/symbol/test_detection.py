"""Operators of detectors: what they choose, gradients of what they keep, under jit, in batches; and a whole head."""

from __future__ import annotations

from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
import minnp.symbol as sym
from minnp import Function, errors, grad, jit, vmap

R = onp.random.default_rng(0)
X, Y, Z = map(sym.Variable, "xyz")
ROWS = onp.array(
    [[0, 0.5, 0.1, 0.1, 0.2, 0.2], [1, 0.4, 0.1, 0.1, 0.2, 0.2], [0, 0.3, 0.1, 0.1, 0.14, 0.14],
     [2, 0.6, 0.5, 0.5, 0.7, 0.8]], "f4",
)  # fmt: skip


def value(symbol: sym.Symbol, *arrays: Any) -> list:
    return [onp.asarray(y) for y in symbol.eval(**dict(zip("xyz", arrays)))]


def boxes(*shape: int) -> onp.ndarray:
    low = R.uniform(0, 0.6, (*shape, 2))
    return onp.concatenate([low, low + R.uniform(0.1, 0.4, (*shape, 2))], -1).astype("f4")


def test_boxes_that_better_ones_overlap_are_suppressed() -> None:
    (y,) = value(sym.contrib.box_nms(X, overlap_thresh=0.1, coord_start=2, score_index=1, id_index=0), ROWS)
    assert y[:, 0].tolist() == [2, 0, 1, -1] and (y[3] == -1).all()
    (y,) = value(sym.contrib.box_nms(X, overlap_thresh=0.1, force_suppress=True, id_index=0), ROWS)
    assert y[:, 0].tolist() == [2, 0, -1, -1]
    (y,) = value(sym.contrib.box_nms(X, overlap_thresh=0.1, id_index=0, topk=1), ROWS)
    assert y[:, 0].tolist() == [2, -1, -1, -1]


def test_suppression_hands_on_the_gradient_of_what_it_keeps_under_jit_too() -> None:
    f = Function(sym.contrib.box_nms(X, overlap_thresh=0.1, id_index=0))
    weight = R.normal(size=ROWS.shape)
    loss = lambda x: np.sum(f(x=x) * weight)
    expected = onp.zeros_like(ROWS)
    expected[[3, 0, 1]] = weight[:3]
    compiled = jit(grad(loss))
    for way in (grad(loss), compiled, compiled):
        onp.testing.assert_allclose(onp.asarray(way(np.array(ROWS))), expected, rtol=1e-6)
    other = ROWS[::-1].copy()
    assert np.array_equal(compiled(np.array(other)), grad(loss)(np.array(other)))  # it chooses anew at every call
    several = np.array(onp.stack([ROWS, other]))
    assert np.array_equal(vmap(lambda x: f(x=x))(several), np.stack([f(x=several[0]), f(x=several[1])]))


def test_what_mxnet_says_of_topk_and_negatives_holds_though_its_kernels_differ() -> None:
    scores = onp.array([[0.9, 0.8, 0.1], [0.7, 0.6, 0.5], [0.3, 0.2, 0.4]], "f4")
    rows, columns = value(sym.contrib.bipartite_matching(X, threshold=0.05, topk=2), scores)
    assert rows.tolist() == [0, 1, -1] and columns.tolist() == [0, 1, -1]
    probable, offsets = R.uniform(size=(1, 3, 20)).astype("f4"), onp.zeros((1, 80), "f4")
    (y,) = value(sym.contrib.MultiBoxDetection(X, Y, Z, nms_topk=4), probable, offsets, boxes(1, 20))
    assert (y[0, 4:] == -1).all() and sorted(y[0, :4, 1].tolist(), reverse=True) == y[0, :4, 1].tolist()
    labels = onp.array([[[1, 0.1, 0.1, 0.5, 0.5]]], "f4")
    options = {"negative_mining_ratio": 1.0, "minimum_negative_samples": 6}
    *_, classes = value(sym.contrib.MultiBoxTarget(X, Y, Z, **options), boxes(1, 20), labels, probable)
    assert (classes == 0).sum() == 6 and (classes == 2).sum() >= 1 and (classes == -1).any()


def test_too_few_negatives_and_other_errors() -> None:
    anchors = onp.tile(onp.array([[0.1, 0.1, 0.5, 0.5]], "f4"), (1, 5, 1))
    labels = onp.array([[[1, 0.1, 0.1, 0.5, 0.5]]], "f4")
    target = sym.contrib.MultiBoxTarget(X, Y, Z, overlap_threshold=2, negative_mining_ratio=3.0)
    with pytest.raises(ValueError, match="wants 3 negative anchors, and 0 overlap"):
        value(target, anchors, labels, onp.ones((1, 3, 5), "f4"))
    with pytest.raises(errors.SymbolError, match="should be positive"):
        sym.contrib.MultiBoxPrior(X, sizes=(-1,)).infer_shape(x=(1, 1, 2, 2))
    with pytest.raises(errors.SymbolError, match=r"the labels are \(1, 5\)"):
        target.infer_shape(x=(1, 5, 4), y=(1, 5), z=(1, 3, 5))
    with pytest.raises(errors.SymbolError, match="are 1 anchors"):
        sym.contrib.Proposal(X, Y, Z, scales=(8,), ratios=(1,)).infer_shape(x=(1, 4, 3, 3), y=(1, 8, 3, 3), z=(1, 3))
    with pytest.raises(errors.SymbolError, match="larger than the images"):
        sym.Correlation(X, Y, max_displacement=9).infer_shape(x=(1, 1, 4, 4))


def test_masks_choose_as_many_places_as_they_say() -> None:
    chosen = sym.contrib.boolean_mask(X, Y)
    data, index = onp.arange(6.0).reshape(3, 2), onp.array([1.0, 0, 1])
    assert value(chosen, data, index)[0].tolist() == [[0, 1], [4, 5]]
    f = Function(chosen)
    assert grad(lambda x: np.sum(f(x=x, y=index)))(np.array(data)).tolist() == [[1, 1], [0, 0], [1, 1]]
    assert chosen.infer_shape_partial(x=(3, 2), y=(3,))[1] == [()]
    compiled = jit(lambda x, y: f(x=x, y=y) * 2)
    for y in (index, [0.0, 0, 1], [1.0, 1, 1]):
        assert np.array_equal(compiled(data, np.array(y)), 2 * f(x=data, y=np.array(y)))


def test_closeness() -> None:
    near = sym.contrib.allclose(X, Y)
    assert value(near, onp.ones(3), onp.ones(3) + 1e-9)[0].tolist() == [1]
    assert value(near, onp.ones(3), onp.ones(3) + 1e-3)[0].tolist() == [0]


def test_regions_of_images_are_pooled_on_their_own() -> None:
    images, rois = R.normal(size=(2, 3, 9, 8)), onp.array([[0, 0, 0, 5, 5], [1, 2, 2, 7, 8]], float)
    for pooled in (
        sym.ROIPooling(X, Y, pooled_size=(2, 2), spatial_scale=1.0),
        sym.contrib.ROIAlign(X, Y, pooled_size=(2, 2), spatial_scale=1.0),
    ):
        f = Function(pooled)
        g = onp.asarray(grad(lambda x, f=f: np.sum(f(x=x, y=rois)[0]))(np.array(images)))
        assert g[0, :, :6, :6].any() and not g[0, :, 7:].any() and not g[1].any()
        compiled = jit(lambda x, r, f=f: f(x=x, y=r))
        for moved in (rois, rois + onp.array([0, 1, 1, 0, -2])):
            assert np.allclose(compiled(images, moved), f(x=images, y=moved))


def head() -> sym.Symbol:
    """A small single-shot detector with its losses, as MXNet's example of SSD writes it."""
    data, label = sym.Variable("data"), sym.Variable("label")
    priors, classes, places = [], [], []
    for i, size in enumerate((0.3, 0.6)):
        data = sym.Convolution(data, kernel=(3, 3), pad=(1, 1), stride=(2, 2), num_filter=8, name=f"conv{i}")
        data = sym.Activation(data, act_type="relu")
        priors.append(sym.contrib.MultiBoxPrior(data, sizes=(size, size * 1.2), ratios=(1, 2), clip=True))
        for kind, count, into in (("cls", 3 * 3, classes), ("loc", 3 * 4, places)):
            x = sym.Convolution(data, kernel=(3, 3), pad=(1, 1), num_filter=count, name=f"{kind}{i}")
            into.append(sym.Flatten(sym.transpose(x, axes=(0, 2, 3, 1))))
    anchors = sym.Concat(*priors, dim=1)
    said = sym.transpose(sym.Reshape(sym.Concat(*classes, dim=1), shape=(0, -1, 3)), axes=(0, 2, 1), name="said")
    moved = sym.Concat(*places, dim=1, name="moved")
    target, mask, wanted = sym.contrib.MultiBoxTarget(
        anchors, label, said, overlap_threshold=0.5, ignore_label=-1, negative_mining_ratio=3,
        negative_mining_thresh=0.5, variances=(0.1, 0.1, 0.2, 0.2), name="target",
    )  # fmt: skip
    probable = sym.SoftmaxOutput(said, wanted, multi_output=True, use_ignore=True, ignore_label=-1,
                                 normalization="valid", name="probable")  # fmt: skip
    distance = sym.smooth_l1(mask * (moved - target), scalar=1.0)
    distance = sym.MakeLoss(distance, normalization="valid", name="distance")
    found = sym.contrib.MultiBoxDetection(probable, moved, anchors, name="found", nms_threshold=0.5)
    return sym.Group([probable, distance, sym.BlockGrad(wanted), sym.BlockGrad(found)])


@pytest.mark.long
def test_a_detector_learns_where_things_are() -> None:
    net = head()
    executor = net.simple_bind(None, data=(2, 3, 16, 16), label=(2, 1, 5))
    draws = onp.random.default_rng(1)  # its own: what others drew before decides what is learnt
    for array in executor.arg_arrays:
        array[...] = draws.normal(0, 0.1, array.shape)
    image, label = onp.zeros((2, 3, 16, 16)), onp.array([[[0, 0.05, 0.1, 0.4, 0.5]], [[1, 0.5, 0.5, 0.95, 0.9]]])
    image[0, 0, 1:8, 1:7], image[1, 1, 8:15, 8:15] = 1, 1
    losses = []
    for _ in range(60):
        _, distance, _, found = executor.forward(is_train=True, data=image, label=label)
        executor.backward()
        for name in set(net.list_arguments()) - {"data", "label"}:
            executor.arg_dict[name][...] -= 0.1 * executor.grad_dict[name]
        losses.append(float(distance.sum()))
    assert losses[-1] < 0.7 * losses[0]
    assert onp.asarray(found)[:, 0, 0].tolist() == [0, 1]  # the best detection of each image is its thing
