"""Boxes of object detection: priors, targets, what is detected, suppression, overlaps, proposals.

A box is (left, top, right, bottom) or, with format "center", (x, y, width, height). What chooses among boxes has no
gradient; box_nms hands on that of the boxes it keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

import minnp.numpy as np
from minnp import stop_gradient

from ...core.api.namespace import wrapped
from ..operator import Shape, operator

FORMATS = "center|corner=corner"
VARIANCES = "variances:floats=(0.1,0.1,0.2,0.2)"


def constant(choose: Callable) -> Callable:
    """A function of NumPy arrays as one of any arrays, without a gradient: one node of traces and graphs."""
    public = wrapped("symbol", choose.__name__, choose)
    return lambda *arrays, **options: public(*map(stop_gradient, arrays), **options)


# ------------------------------------------------------------------ geometry
def corners(boxes: Any) -> Any:
    """Boxes of format "center" as (left, top, right, bottom)."""
    middle, half = boxes[..., :2], boxes[..., 2:] / 2
    return np.concatenate([middle - half, middle + half], axis=-1)


def centers(boxes: Any) -> Any:
    """(left, top, right, bottom) as boxes of format "center"."""
    low, high = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([(low + high) / 2, high - low], axis=-1)


def areas(boxes: Any) -> Any:
    """Of (left, top, right, bottom); 0 where a side is negative."""
    width, height = boxes[..., 2] - boxes[..., 0], boxes[..., 3] - boxes[..., 1]
    return onp.where((width < 0) | (height < 0), 0, width * height)


def overlaps(a: Any, b: Any) -> Any:
    """Intersection over union [A, B] of boxes [A, 4] and [B, 4]; 0 where the union is 0."""
    low, high = onp.maximum(a[:, None, :2], b[None, :, :2]), onp.minimum(a[:, None, 2:], b[None, :, 2:])
    shared = onp.prod(onp.maximum(high - low, 0), axis=-1)
    union = areas(a)[:, None] + areas(b)[None] - shared
    return onp.divide(shared, union, out=onp.zeros_like(shared), where=union > 0)


def suppressed(boxes: Any, classes: Any, too_much: Callable) -> onp.ndarray:
    """Which of some boxes, best first, a better one that is kept covers; with classes, one of its own class.

    too_much   of an overlap, whether it is
    """
    gone = onp.zeros(len(boxes), bool)
    for i in range(len(boxes) - 1):
        if not gone[i]:
            rest = too_much(overlaps(boxes[i : i + 1], boxes[i + 1 :])[0])
            gone[i + 1 :] |= rest if classes is None else rest & (classes[i + 1 :] == classes[i])
    return gone


# ------------------------------------------------------------------ single-shot detectors (Liu et al. 2016)
def multibox_prior(
    data: Any, sizes: Sequence[float] = (1.0,), ratios: Sequence[float] = (1.0,), clip: bool = False,
    steps: Sequence[float] = (-1.0, -1.0), offsets: Sequence[float] = (0.5, 0.5),
) -> Any:  # fmt: skip
    """Boxes [1, H W (S + R - 1), 4] around each place of data [N, C, H, W], as parts of the image.

    sizes, ratios    each size with the first ratio, then each other ratio with the first size
    steps, offsets   along (y, x): from place to place, by default the image in equal parts; and of the first, in steps
    """
    height, width = data.shape[2:]
    f4 = onp.float32
    step = [f4(s) if s > 0 else f4(1) / f4(n) for s, n in zip(steps, (height, width), strict=True)]
    y = (onp.arange(height, dtype=f4) + f4(offsets[0])) * step[0]
    x = (onp.arange(width, dtype=f4) + f4(offsets[1])) * step[1]
    pairs = [(s, ratios[0]) for s in sizes] + [(sizes[0], r) for r in ratios[1:]]
    size, root = onp.array([s for s, _ in pairs], f4), onp.sqrt(onp.array([r for _, r in pairs], f4))
    w, h = size * f4(height) / f4(width) * root / 2, size / root / 2
    x, y = x[None, :, None], y[:, None, None]
    sides = onp.broadcast_arrays(x - w, y - h, x + w, y + h)
    boxes = onp.stack(sides, axis=-1).reshape(1, -1, 4)
    return np.asarray((boxes.clip(0, 1) if clip else boxes).astype(data.dtype))


def _prior_shape(p: dict, data: Shape) -> list[Shape]:
    if min(*p["sizes"], *p["ratios"]) <= 0:
        raise ValueError(f"sizes {p['sizes']} and ratios {p['ratios']} should be positive")
    return [(1, data[2] * data[3] * (len(p["sizes"]) + len(p["ratios"]) - 1), 4)]


def _matched(overlap: onp.ndarray, threshold: float) -> tuple[onp.ndarray, onp.ndarray, onp.ndarray]:
    """(by anchor: its best overlap, the object of that, whether it is a positive one) of overlaps [A, G].

    Each object first gets the anchor that covers it best; then anchors are matched that cover one more than threshold.
    """
    left = overlap.copy()
    best, found = onp.full(len(overlap), -1, overlap.dtype), onp.full(len(overlap), -1)
    for _ in range(overlap.shape[1]):
        anchor, thing = onp.unravel_index(onp.argmax(left), left.shape)
        if not left[anchor, thing] > 1e-6:
            break
        best[anchor], found[anchor] = left[anchor, thing], thing
        left[anchor], left[:, thing] = -1, -1
    positive = found >= 0
    rest = ~positive
    best[rest], found[rest] = overlap[rest].max(axis=1), overlap[rest].argmax(axis=1)
    if threshold > 0:
        positive |= rest & (best > threshold)
    return best, found, positive


def _targets(
    anchor: onp.ndarray, label: onp.ndarray, cls_pred: onp.ndarray, overlap_threshold: float, ignore_label: float,
    negative_mining_ratio: float, negative_mining_thresh: float, minimum_negative_samples: int,
    variances: Sequence[float],
) -> tuple:  # fmt: skip
    anchors, scale = anchor.reshape(-1, 4), onp.array(variances, anchor.dtype)
    n, (batch, count) = len(anchors), (label.shape[0], anchor.shape[1])
    boxes, mask = onp.zeros((2, batch, count, 4), anchor.dtype)
    classes = onp.full((batch, count), ignore_label, anchor.dtype)
    for i in range(batch):
        absent = onp.flatnonzero(label[i, :, 0] == -1)
        things = label[i, : absent[0] if len(absent) else None]
        if not len(things):
            continue
        overlap = overlaps(anchors, things[:, 1:5])
        best, found, positive = _matched(overlap, overlap_threshold)
        negative = ~positive
        if negative_mining_ratio > 0:
            wanted = min(max(int(positive.sum() * negative_mining_ratio), minimum_negative_samples), n - positive.sum())
            e = onp.exp(cls_pred[i] - cls_pred[i].max(axis=0))
            background = e[0] / e.sum(axis=0)
            open_ = onp.flatnonzero(negative & (best < negative_mining_thresh))
            if len(open_) < wanted:
                raise ValueError(
                    f"MultiBoxTarget wants {wanted} negative anchors, and {len(open_)} overlap objects by less than "
                    f"negative_mining_thresh, {negative_mining_thresh}"
                )
            negative = onp.zeros(n, bool)
            negative[open_[onp.argsort(background[open_], kind="stable")[:wanted]]] = True
        classes[i, negative] = 0
        chosen = things[found[positive]]
        classes[i, positive] = chosen[:, 0] + 1
        mask[i, positive] = 1
        low, high = anchors[positive, :2], anchors[positive, 2:]
        middle, size = (low + high) / 2, high - low
        theirs = (chosen[:, 1:3] + chosen[:, 3:5]) / 2, chosen[:, 3:5] - chosen[:, 1:3]
        boxes[i, positive, :2] = (theirs[0] - middle) / size / scale[:2]
        boxes[i, positive, 2:] = onp.log(theirs[1] / size) / scale[2:]
    return boxes.reshape(batch, -1), mask.reshape(batch, -1), classes


_targets_of = constant(_targets)


def multibox_target(anchor: Any, label: Any, cls_pred: Any, **options: Any) -> tuple:
    """What a detector should say: (offsets of boxes [N, 4 A], where they count [N, 4 A], classes [N, A]).

    anchor, label   boxes [1, A, 4]; (class, left, top, right, bottom) [N, G, 5] of objects, -1 where there is none
    cls_pred        [N, classes + 1, A]: what is said of the background chooses negatives
    classes         0: background; ignore_label: neither, where so many negatives for each positive are taken
    """
    return _targets_of(anchor, label, cls_pred, **options)


def _target_shape(p: dict, anchor: Shape, label: Shape, cls_pred: Shape) -> list[Shape]:
    if len(label) != 3 or label[2] < 5:
        raise ValueError(f"the labels are {label}, and should be [N, objects, 5]")
    every = (label[0], 4 * anchor[1])
    return [every, every, (label[0], anchor[1])]


def _detected(
    cls_prob: onp.ndarray, loc_pred: onp.ndarray, anchor: onp.ndarray, clip: bool, threshold: float, background_id: int,
    nms_threshold: float, force_suppress: bool, variances: Sequence[float], nms_topk: int,
) -> onp.ndarray:  # fmt: skip
    anchors = anchor.reshape(-1, 4)
    n, count = len(cls_prob), len(anchors)
    out = onp.full((n, count, 6), -1, cls_prob.dtype)
    size, middle = anchors[:, 2:] - anchors[:, :2], (anchors[:, :2] + anchors[:, 2:]) / 2
    scale = onp.array(variances, cls_prob.dtype)
    things = onp.delete(cls_prob, background_id, axis=1)
    for i in range(n):
        score, named = things[i].max(axis=0), things[i].argmax(axis=0)
        valid = onp.flatnonzero(score >= threshold)
        offset = loc_pred[i].reshape(-1, 4)
        at, half = offset[:, :2] * scale[:2] * size + middle, onp.exp(offset[:, 2:] * scale[2:]) * size / 2
        boxes = onp.concatenate([at - half, at + half], axis=1)
        boxes = boxes.clip(0, 1) if clip else boxes
        found = onp.concatenate([named[:, None], score[:, None], boxes], axis=1).astype(out.dtype)[valid]
        if 0 < nms_threshold <= 1:
            found = found[onp.argsort(-found[:, 1], kind="stable")]
            found = found[:nms_topk] if nms_topk > 0 else found
            gone = suppressed(found[:, 2:], None if force_suppress else found[:, 0], lambda v: v >= nms_threshold)
            found[gone, 0] = -1
        out[i, : len(found)] = found
    return out


_detections = constant(_detected)


def multibox_detection(cls_prob: Any, loc_pred: Any, anchor: Any, **options: Any) -> Any:
    """What is detected [N, A, 6]: (class, score, left, top, right, bottom), best first; class -1 is none.

    cls_prob, loc_pred, anchor   probabilities [N, classes + 1, A], offsets of boxes [N, 4 A], boxes [1, A, 4]
    """
    return _detections(cls_prob, loc_pred, anchor, **options)


operator("_contrib_MultiBoxPrior", multibox_prior, ("data",),
         "sizes:floats=(1,) ratios:floats=(1,) clip:bool=0 steps:floats=(-1,-1) offsets:floats=(0.5,0.5)",
         result=_prior_shape)  # fmt: skip
operator("_contrib_MultiBoxTarget", multibox_target, ("anchor", "label", "cls_pred"),
         "overlap_threshold:float=0.5 ignore_label:float=-1 negative_mining_ratio:float=-1 "
         f"negative_mining_thresh:float=0.5 minimum_negative_samples:int=0 {VARIANCES}",
         outputs=("loc_target", "loc_mask", "cls_target"), result=_target_shape)  # fmt: skip
operator("_contrib_MultiBoxDetection", multibox_detection, ("cls_prob", "loc_pred", "anchor"),
         "clip:bool=1 threshold:float=0.01 background_id:int=0 nms_threshold:float=0.5 force_suppress:bool=0 "
         f"{VARIANCES} nms_topk:int=-1", result=lambda p, c, loc, a: [(c[0], a[1], 6)])  # fmt: skip


# ------------------------------------------------------------------ boxes in general
def box_iou(lhs: Any, rhs: Any, format: str = "corner") -> Any:
    """Intersection over union [*S, *T] of each of lhs [*S, 4] with each of rhs [*T, 4]; it has no gradient."""
    a, b = (np.reshape(stop_gradient(x), (-1, 4)) for x in (lhs, rhs))
    if format == "center":
        a, b = corners(a), corners(b)
    return np.reshape(_overlaps_of(a, b), (*lhs.shape[:-1], *rhs.shape[:-1]))


_overlaps_of = constant(overlaps)


def _kept(
    data: onp.ndarray, overlap_thresh: float, valid_thresh: float, topk: int, coord_start: int, score_index: int,
    id_index: int, background_id: int, force_suppress: bool, in_format: str,
) -> onp.ndarray:  # fmt: skip
    """By place in the result, which row of data [N, B, W] it is, or -1."""
    out = onp.full(data.shape[:2], -1)
    for i, rows in enumerate(data):
        score = rows[:, score_index]
        valid = score > valid_thresh
        if id_index >= 0:
            valid &= rows[:, id_index] != background_id
        order = onp.flatnonzero(valid)
        order = order[onp.argsort(-score[order], kind="stable")]
        order = order[:topk] if topk > 0 else order
        boxes = rows[order, coord_start : coord_start + 4]
        if in_format == "center":
            half = boxes[:, 2:] / 2
            boxes = onp.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], axis=1)
        classes = None if force_suppress or id_index < 0 else rows[order, id_index]
        order = order[~suppressed(boxes, classes, lambda v: v > overlap_thresh)]
        out[i, : len(order)] = order
    return out


_kept_of = constant(_kept)


def box_nms(
    data: Any, overlap_thresh: float = 0.5, valid_thresh: float = 0.0, topk: int = -1, coord_start: int = 2,
    score_index: int = 1, id_index: int = -1, background_id: int = -1, force_suppress: bool = False,
    in_format: str = "corner", out_format: str = "corner",
) -> tuple:  # fmt: skip
    """The rows of data [..., B, W] that no better one overlaps, best first, -1 after them; and which they were.

    id_index   where the class is, if boxes of other classes are no matter
    """
    rows = np.reshape(data, (-1, *data.shape[-2:]))
    if topk == 0:
        return data, np.reshape(np.arange(rows.shape[0] * rows.shape[1]), (*data.shape[:-1], 1)).astype(data.dtype)
    options = overlap_thresh, valid_thresh, topk, coord_start, score_index, id_index, background_id, force_suppress
    at = _kept_of(rows, *options, in_format)
    found = np.take_along_axis(rows, np.maximum(at, 0)[:, :, None], axis=1)
    if in_format != out_format:
        boxes = found[:, :, coord_start : coord_start + 4]
        turned = centers(boxes) if out_format == "center" else corners(boxes)
        turned = np.where(boxes[:, :, :1] < 0, boxes, turned)  # as MXNet has it: what begins before 0 is none
        found = np.concatenate([found[:, :, :coord_start], turned, found[:, :, coord_start + 4 :]], axis=2)
    found = np.where((at >= 0)[:, :, None], found, -1.0).astype(data.dtype)
    record = np.where(at >= 0, at + rows.shape[1] * np.arange(rows.shape[0])[:, None], -1)
    return np.reshape(found, data.shape), np.reshape(record, (*data.shape[:-1], 1)).astype(data.dtype)


def _pairs(data: onp.ndarray, threshold: float, is_ascend: bool, topk: int) -> tuple:
    n, rows, columns = data.shape
    out = onp.full((n, rows), -1, data.dtype), onp.full((n, columns), -1, data.dtype)
    for i in range(n):
        flat = data[i].ravel()
        order = onp.argsort(flat if is_ascend else -flat, kind="stable")
        good = flat[order] < threshold if is_ascend else flat[order] > threshold
        found = 0
        for at in order[good]:
            row, column = divmod(int(at), columns)
            if out[0][i, row] == -1 and out[1][i, column] == -1:
                out[0][i, row], out[1][i, column] = column, row
                found += 1
                if found == topk:
                    break
    return out


_pairs_of = constant(_pairs)


def bipartite_matching(data: Any, threshold: float, is_ascend: bool = False, topk: int = -1) -> tuple:
    """(by row the column, by column the row) that are matched, -1 for none, of scores [..., R, C], best first."""
    by_row, by_column = _pairs_of(np.reshape(data, (-1, *data.shape[-2:])), threshold, is_ascend, topk)
    return np.reshape(by_row, data.shape[:-1]), np.reshape(by_column, (*data.shape[:-2], data.shape[-1]))


def box_encode(samples: Any, matches: Any, anchors: Any, refs: Any, means: Any, stds: Any) -> tuple:
    """(offsets [B, N, 4], where they count): of anchors [B, N, 4] from the refs [B, M, 4] that they are matched with.

    samples, matches   [B, N]: 1 for a positive one; the number of its ref
    """
    samples, matches, anchors, refs, means, stds = map(stop_gradient, (samples, matches, anchors, refs, means, stds))
    index = np.broadcast_to(matches.astype(onp.int64)[:, :, None], (*matches.shape, 4))
    own, theirs = centers(anchors), centers(np.take_along_axis(refs, index, axis=1))
    moved = (theirs[..., :2] - own[..., :2]) / own[..., 2:]
    offsets = (np.concatenate([moved, np.log(theirs[..., 2:] / own[..., 2:])], axis=-1) - means) / stds
    mask = np.broadcast_to((samples > 0.5)[:, :, None], offsets.shape)
    return np.where(mask, offsets, 0.0).astype(anchors.dtype), mask.astype(anchors.dtype)


def box_decode(data: Any, anchors: Any, std0: float = 1.0, std1: float = 1.0, std2: float = 1.0, std3: float = 1.0,
               clip: float = -1.0, format: str = "center") -> Any:  # fmt: skip
    """Boxes [B, N, 4] (corners) from offsets and anchors [1, N, 4]; logarithms of sizes up to `clip`, if it is > 0."""
    data, anchors = stop_gradient(data), stop_gradient(anchors)
    anchors = centers(anchors) if format == "corner" else anchors
    scale = onp.array([std0, std1, std2, std3], data.dtype)
    offset = data * scale
    size = np.minimum(offset[..., 2:], clip) if clip > 0 else offset[..., 2:]
    middle = offset[..., :2] * anchors[..., 2:] + anchors[..., :2]
    half = np.exp(size) * anchors[..., 2:] / 2
    return np.concatenate([middle - half, middle + half], axis=-1)


operator("_contrib_box_iou", box_iou, ("lhs", "rhs"), f"format:{FORMATS}",
         result=lambda p, a, b: [(*a[:-1], *b[:-1])])  # fmt: skip
operator("_contrib_box_nms", box_nms, ("data",),
         "overlap_thresh:float=0.5 valid_thresh:float=0 topk:int=-1 coord_start:int=2 score_index:int=1 "
         "id_index:int=-1 background_id:int=-1 force_suppress:bool=0 "
         f"in_format:{FORMATS} out_format:{FORMATS}", aliases=("_contrib_box_non_maximum_suppression",),
         outputs=("output0", "output1"), visible=1, result=lambda p, s: [s, (*s[:-1], 1)])  # fmt: skip
operator("_contrib_bipartite_matching", bipartite_matching, ("data",), "is_ascend:bool=0 threshold:float topk:int=-1",
         outputs=("output0", "output1"), result=lambda p, s: [s[:-1], (*s[:-2], s[-1])])  # fmt: skip
operator("_contrib_box_encode", box_encode, ("samples", "matches", "anchors", "refs", "means", "stds"),
         outputs=("output0", "output1"), result=lambda p, samples, matches, anchors, *rest: [anchors] * 2)  # fmt: skip
operator("_contrib_box_decode", box_decode, ("data", "anchors"),
         "std0:float=1 std1:float=1 std2:float=1 std3:float=1 clip:float=-1 format:center|corner=center",
         result=lambda p, data, anchors: [data])  # fmt: skip


# ------------------------------------------------------------------ region proposals (Ren et al. 2015)
def base_anchors(stride: int, ratios: Sequence[float], scales: Sequence[float]) -> onp.ndarray:
    """Boxes [R S, 4], in pixels, around the first place of a map with this stride."""
    middle = 0.5 * (stride - 1)
    out = []
    for ratio in ratios:
        width = onp.floor(onp.sqrt(onp.floor(stride * stride / ratio)) + 0.5)
        height = onp.floor(width * ratio + 0.5)
        for scale in scales:
            half = (width * scale - 1) / 2, (height * scale - 1) / 2
            out.append([middle - half[0], middle - half[1], middle + half[0], middle + half[1]])
    return onp.array(out, onp.float32)


def _proposed(
    cls_prob: onp.ndarray, bbox_pred: onp.ndarray, im_info: onp.ndarray, rpn_pre_nms_top_n: int,
    rpn_post_nms_top_n: int, threshold: float, rpn_min_size: int, scales: Sequence[float], ratios: Sequence[float],
    feature_stride: int, iou_loss: bool,
) -> tuple:  # fmt: skip
    n, channels, height, width = cls_prob.shape
    anchors = channels // 2
    f4 = onp.float32
    y, x = onp.mgrid[:height, :width].astype(f4) * feature_stride
    shifts = onp.stack([x, y, x, y], axis=-1)[:, :, None]
    base = (shifts + base_anchors(feature_stride, ratios, scales)).reshape(-1, 4)
    rois = onp.zeros((n, rpn_post_nms_top_n, 5), f4)
    scores = onp.zeros((n, rpn_post_nms_top_n, 1), f4)
    for i, (tall, wide, scale) in enumerate(im_info[:, :3]):
        delta = bbox_pred[i].reshape(anchors, 4, height, width).transpose(2, 3, 0, 1).reshape(-1, 4)
        score = cls_prob[i, anchors:].transpose(1, 2, 0).ravel().copy()
        if iou_loss:
            boxes = base + delta
        else:
            size = base[:, 2:] - base[:, :2] + 1
            middle = delta[:, :2] * size + base[:, :2] + 0.5 * (size - 1)
            half = 0.5 * (onp.exp(delta[:, 2:]) * size - 1)
            boxes = onp.concatenate([middle - half, middle + half], axis=1)
        boxes = boxes.clip(0, onp.array([wide - 1, tall - 1] * 2, f4)).astype(f4)
        row, column = onp.divmod(onp.arange(len(base)) // anchors, width)
        score[(row >= int(tall / feature_stride)) | (column >= int(wide / feature_stride))] = -1
        least = rpn_min_size * scale
        small = ((boxes[:, 2:] - boxes[:, :2] + 1) < least).any(axis=1)
        boxes[small] += onp.array([-1, -1, 1, 1], f4) * (least / 2)
        score[small] = -1
        order = onp.argsort(-score, kind="stable")
        order = order[:rpn_pre_nms_top_n] if rpn_pre_nms_top_n > 0 else order
        sides = boxes[order] + onp.array([0, 0, 1, 1], f4)  # the pixels that a box ends with belong to it
        kept = order[~suppressed(sides, None, lambda v: v > threshold)][:rpn_post_nms_top_n]
        kept = onp.resize(kept, rpn_post_nms_top_n)
        rois[i, :, 0], rois[i, :, 1:], scores[i, :, 0] = i, boxes[kept], score[kept]
    return rois.reshape(-1, 5), scores.reshape(-1, 1)


_proposals = constant(_proposed)


def proposal(cls_prob: Any, bbox_pred: Any, im_info: Any, output_score: bool = False, **options: Any) -> tuple:
    """(regions [N P, 5]: number of the image, left, top, right, bottom in pixels; their scores [N P, 1]).

    cls_prob, bbox_pred, im_info   [N, 2 A, H, W], [N, 4 A, H, W], and (height, width, scale) of each image
    """
    return _proposals(cls_prob, bbox_pred, im_info, **options)


def _proposal_shape(p: dict, cls_prob: Shape, bbox_pred: Shape, im_info: Shape) -> list[Shape]:
    anchors = len(p["scales"]) * len(p["ratios"])
    if cls_prob[1] != 2 * anchors or bbox_pred[1] != 4 * anchors:
        raise ValueError(f"{len(p['scales'])} scales and {len(p['ratios'])} ratios are {anchors} anchors")
    n = cls_prob[0] * p["rpn_post_nms_top_n"]
    return [(n, 5), (n, 1)]


for _name in ("Proposal", "MultiProposal"):
    operator(f"_contrib_{_name}", proposal, ("cls_prob", "bbox_pred", "im_info"),
             "rpn_pre_nms_top_n:int=6000 rpn_post_nms_top_n:int=300 threshold:float=0.7 rpn_min_size:int=16 "
             "scales:floats=(4,8,16,32) ratios:floats=(0.5,1,2) feature_stride:int=16 output_score:bool=0 "
             "iou_loss:bool=0", outputs=("output", "score"), visible=lambda p: 1 + p["output_score"],
             fill=lambda p, s: [s[0], s[1] or (s[0] and (s[0][0], 2 * s[0][1], *s[0][2:])),
                                s[2] or (s[0] and (s[0][0], 3))],
             result=_proposal_shape)  # fmt: skip
