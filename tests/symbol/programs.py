"""Programs as users of MXNet wrote them, from its documentation and examples: they give the same in minnp.symbol.

Each takes a library: L.sym, arrays (L.array, L.zeros, L.np to NumPy's), L.ctx, files, names, and custom operators.
"""

from __future__ import annotations

import json
import re
import tempfile
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

PROGRAMS: dict[str, Callable] = {}


def program(f: Callable) -> Callable:
    PROGRAMS[f.__name__] = f
    return f


def R(seed: int = 0) -> onp.random.Generator:
    return onp.random.default_rng(seed)


def init(L: Any, ex: Any, seed: int = 0, skip: Sequence[str] = (), scale: float = 0.1) -> None:
    """Random numbers for the arguments of an executor."""
    r = R(seed)
    for n, a in ex.arg_dict.items():
        if n not in skip:
            a[:] = L.array(r.normal(0, scale, a.shape).astype("f4"))
    for n, a in ex.aux_dict.items():
        a[:] = 1.0 if n.endswith("var") else 0.0


def grads(L: Any, ex: Any) -> dict:
    return {n: L.np(g) for n, g in ex.grad_dict.items() if g is not None}


@program
def bind_basics(L: Any) -> list:
    a, b = (L.sym.Variable("a"), L.sym.Variable("b"))
    c = 2 * a + b * b - a / 3 + 1
    ex = c.bind(
        L.ctx,
        args={"a": L.array(onp.ones((2, 3), "f4")), "b": L.array(onp.full((2, 3), 2, "f4"))},
        args_grad={"a": L.zeros((2, 3)), "b": L.zeros((2, 3))},
    )
    y = ex.forward(is_train=True)
    ex.backward(L.array(onp.ones((2, 3), "f4")))
    return [L.np(y[0]), L.np(ex.outputs[0]), grads(L, ex), c.list_arguments(), ex.output_dict.keys()]


@program
def bind_by_list_and_grad_add(L: Any) -> list:
    x, w = (L.sym.var("x"), L.sym.var("w"))
    y = L.sym.dot(x, w)
    gx, gw = (L.zeros((2, 3)), L.zeros((3, 4)))
    ex = y.bind(
        L.ctx,
        [L.array(onp.arange(6, dtype="f4").reshape(2, 3)), L.array(onp.ones((3, 4), "f4"))],
        [gx, gw],
        ["null", "add"],
    )
    for _ in range(3):
        ex.forward(is_train=True)
        ex.backward([L.array(onp.ones((2, 4), "f4"))])
    return [L.np(gx), L.np(gw)]


@program
def grad_req_dict(L: Any) -> list:
    x, w = (L.sym.var("x"), L.sym.var("w"))
    y = L.sym.FullyConnected(x, w, num_hidden=2, no_bias=True, name="fc")
    ex = y.simple_bind(L.ctx, grad_req={"x": "null", "w": "write"}, x=(2, 3))
    init(L, ex)
    ex.forward(is_train=True)
    ex.backward(L.array(onp.ones((2, 2), "f4")))
    return [ex.grad_dict["x"] is None, L.np(ex.grad_dict["w"]), [g is None for g in ex.grad_arrays]]


def mlp(L: Any) -> Any:
    net = L.sym.Variable("data")
    net = L.sym.FullyConnected(data=net, name="fc1", num_hidden=16)
    net = L.sym.Activation(data=net, name="relu1", act_type="relu")
    net = L.sym.FullyConnected(data=net, name="fc2", num_hidden=4)
    return L.sym.SoftmaxOutput(data=net, name="softmax")


@program
def mlp_training(L: Any) -> list:
    net = mlp(L)
    ex = net.simple_bind(ctx=L.ctx, data=(8, 10), grad_req="write")
    init(L, ex, skip=("softmax_label",), scale=0.3)
    r = R(5)
    X = r.normal(size=(8, 10)).astype("f4")
    Y = (X[:, 0] > 0) + 2 * (X[:, 1] > 0)
    for _ in range(20):
        ex.forward(is_train=True, data=L.array(X), softmax_label=L.array(Y.astype("f4")))
        ex.backward()
        for n in net.list_arguments():
            if n not in ("data", "softmax_label"):
                ex.arg_dict[n][:] = ex.arg_dict[n] - 0.1 * ex.grad_dict[n]
    return [L.np(ex.outputs[0]), {n: L.np(a) for n, a in ex.arg_dict.items()}]


@program
def infer_shapes_and_types(L: Any) -> list:
    net = mlp(L)
    s = net.infer_shape(data=(8, 10))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        none = net.infer_shape()
    p = net.infer_shape_partial()
    return [
        s,
        none,
        tuple(p[0][0]),
        [onp.dtype(t).name for t in net.infer_type(data=onp.float64)[0]],
        [onp.dtype(t).name for t in net.infer_type(data=onp.float16)[1]],
    ]


@program
def lenet(L: Any) -> list:
    S = L.sym
    data = S.Variable("data")
    x = S.Pooling(
        S.Activation(S.Convolution(data=data, kernel=(5, 5), num_filter=6), act_type="tanh"),
        pool_type="max",
        kernel=(2, 2),
        stride=(2, 2),
    )
    x = S.Pooling(
        S.Activation(S.Convolution(data=x, kernel=(3, 3), num_filter=8), act_type="tanh"),
        pool_type="avg",
        kernel=(2, 2),
        stride=(2, 2),
    )
    x = S.Flatten(data=x)
    x = S.Activation(S.FullyConnected(x, num_hidden=20), act_type="tanh")
    net = S.SoftmaxOutput(S.FullyConnected(x, num_hidden=3), name="softmax", normalization="batch")
    ex = net.simple_bind(L.ctx, data=(4, 1, 20, 20))
    init(L, ex, skip=("softmax_label",))
    ex.arg_dict["softmax_label"][:] = L.array(onp.array([0, 1, 2, 1], "f4"))
    ex.forward(is_train=True)
    ex.backward()

    strip = lambda n: re.sub("\\d+", "#", n)
    return [
        L.np(ex.outputs[0]),
        [L.np(g) for g in ex.grad_arrays if g is not None],
        [strip(n) for n in net.list_arguments()],
    ]


@program
def batchnorm_moves(L: Any) -> list:
    S = L.sym
    net = S.BatchNorm(S.Variable("x"), name="bn", fix_gamma=False, momentum=0.8)
    ex = net.simple_bind(L.ctx, x=(6, 3, 4, 4))
    init(L, ex, scale=1)
    out = []
    for i in range(3):
        ex.arg_dict["x"][:] = L.array(R(i).normal(2, 3, (6, 3, 4, 4)).astype("f4"))
        ex.forward(is_train=True)
        ex.backward(L.array(R(9).normal(size=(6, 3, 4, 4)).astype("f4")))
        out += [
            L.np(ex.outputs[0]),
            L.np(ex.aux_dict["bn_moving_mean"]),
            L.np(ex.aux_dict["bn_moving_var"]),
            grads(L, ex),
        ]
    ex.forward(is_train=False)
    return [*out, L.np(ex.outputs[0]), [L.np(a) for a in ex.aux_arrays]]


@program
def fix_gamma(L: Any) -> list:
    ex = L.sym.BatchNorm(L.sym.Variable("x"), name="bn").simple_bind(L.ctx, x=(6, 3))
    init(L, ex, scale=1)
    ex.forward(is_train=True)
    ex.backward(L.array(onp.ones((6, 3), "f4")))
    return [L.np(ex.outputs[0]), grads(L, ex)]


@program
def unrolled_lstm(L: Any) -> list:
    S = L.sym
    T, H = (4, 5)
    params = {n: S.Variable(n) for n in ("i2h_w", "i2h_b", "h2h_w", "h2h_b", "cls_w", "cls_b", "embed")}
    c, h = (S.Variable("init_c"), S.Variable("init_h"))
    data, label = (S.Variable("data"), S.Variable("softmax_label"))
    emb = S.Embedding(data=data, weight=params["embed"], input_dim=7, output_dim=3, name="emb")
    steps = S.SliceChannel(data=emb, num_outputs=T, axis=1, squeeze_axis=1)
    hs = []
    for t in range(T):
        i2h = S.FullyConnected(
            data=steps[t], weight=params["i2h_w"], bias=params["i2h_b"], num_hidden=4 * H, name=f"t{t}_i2h"
        )
        h2h = S.FullyConnected(data=h, weight=params["h2h_w"], bias=params["h2h_b"], num_hidden=4 * H, name=f"t{t}_h2h")
        g = S.SliceChannel(i2h + h2h, num_outputs=4, name=f"t{t}_slice")
        i, j, f, o = (
            S.Activation(g[0], act_type="sigmoid"),
            S.Activation(g[1], act_type="tanh"),
            S.Activation(g[2], act_type="sigmoid"),
            S.Activation(g[3], act_type="sigmoid"),
        )
        c = f * c + i * j
        h = o * S.Activation(c, act_type="tanh")
        hs.append(h)
    hidden = S.Concat(*hs, dim=0)
    pred = S.FullyConnected(data=hidden, num_hidden=7, weight=params["cls_w"], bias=params["cls_b"], name="pred")
    lab = S.Reshape(S.transpose(label), shape=(-1,))
    sm = S.SoftmaxOutput(data=pred, label=lab, name="softmax")
    net = S.Group([sm, S.BlockGrad(c, name="last_c"), S.BlockGrad(h, name="last_h")])
    ex = net.simple_bind(
        L.ctx,
        grad_req={n: "null" if n in ("data", "softmax_label") else "write" for n in net.list_arguments()},
        data=(2, T),
        softmax_label=(2, T),
        init_c=(2, H),
        init_h=(2, H),
    )
    init(L, ex, skip=("data", "softmax_label"), scale=0.4)
    d = R(3).integers(0, 7, (2, T)).astype("f4")
    ex.forward(is_train=True, data=L.array(d), softmax_label=L.array(onp.roll(d, -1, 1)))
    ex.backward()
    return [[L.np(o) for o in ex.outputs], grads(L, ex), net.list_outputs(), net.list_arguments()]


@program
def fused_rnn_language_model(L: Any) -> list:
    S = L.sym
    T, N, V, E, H = (6, 3, 11, 5, 8)
    data = S.Variable("data")
    emb = S.Embedding(data, input_dim=V, output_dim=E, name="embed")
    out = S.RNN(
        data=S.swapaxes(emb, dim1=0, dim2=1),
        state_size=H,
        num_layers=2,
        mode="lstm",
        name="lstm",
        state_outputs=True,
        p=0.0,
    )
    pred = S.FullyConnected(S.Reshape(out[0], shape=(-3, 0)), num_hidden=V, name="pred")
    label = S.Reshape(S.swapaxes(S.Variable("softmax_label"), dim1=0, dim2=1), shape=(-1,))
    net = S.Group(
        [
            S.SoftmaxOutput(pred, label, name="softmax", use_ignore=True, ignore_label=0, normalization="valid"),
            S.BlockGrad(out[1]),
            S.BlockGrad(out[2]),
        ]
    )
    ex = net.simple_bind(
        L.ctx,
        grad_req={n: "null" if n in ("data", "softmax_label") else "write" for n in net.list_arguments()},
        data=(N, T),
        softmax_label=(N, T),
    )
    init(L, ex, skip=("data", "softmax_label"), scale=0.3)
    d = R(3).integers(0, V, (N, T)).astype("f4")
    res = []
    for _ in range(4):
        ex.forward(is_train=True, data=L.array(d), softmax_label=L.array(onp.roll(d, -1, 1)))
        ex.backward()
        for n in ("embed_weight", "lstm_parameters", "pred_weight", "pred_bias"):
            ex.arg_dict[n][:] = ex.arg_dict[n] - 0.5 * ex.grad_dict[n]
        ex.arg_dict["lstm_state"][:] = ex.outputs[1]
        ex.arg_dict["lstm_state_cell"][:] = ex.outputs[2]
        res += [[L.np(o) for o in ex.outputs], grads(L, ex)]
    return res + [net.list_arguments(), net.list_outputs(), net.infer_shape(data=(N, T), softmax_label=(N, T))]


@program
def fine_tune(L: Any) -> list:
    net = mlp(L)
    ex = net.simple_bind(L.ctx, data=(8, 10))
    init(L, ex, skip=("softmax_label",))
    args = {n: a for n, a in ex.arg_dict.items() if n not in ("data", "softmax_label")}
    d = tempfile.mkdtemp()
    L.save_checkpoint(d + "/m", 3, net, args, {})
    loaded, a2, x2 = L.load_checkpoint(d + "/m", 3)
    all_layers = loaded.get_internals()
    feat = all_layers["relu1_output"]
    new = L.sym.SoftmaxOutput(L.sym.FullyConnected(data=feat, num_hidden=2, name="new_fc"), name="softmax")
    ex2 = new.simple_bind(L.ctx, data=(8, 10))
    init(L, ex2, 4, skip=("softmax_label",))
    ex2.copy_params_from(dict(a2), x2, allow_extra_params=True)
    ex2.forward(
        is_train=True,
        data=L.array(R(1).normal(size=(8, 10)).astype("f4")),
        softmax_label=L.array(onp.arange(8).astype("f4") % 2),
    )
    ex2.backward()
    return [
        all_layers.list_outputs(),
        new.list_arguments(),
        L.np(ex2.outputs[0]),
        grads(L, ex2),
        sorted(a2),
        json.loads(loaded.tojson())["nodes"],
    ]


@program
def internals_and_indexing(L: Any) -> list:
    net = mlp(L)
    i = net.get_internals()
    g = L.sym.Group([net, i["fc1_output"], i[2]])
    return [
        i.list_outputs(),
        g.list_outputs(),
        len(g),
        g[1].list_outputs(),
        [s.name for s in g],
        net.name,
        net.get_children().list_outputs(),
        L.sym.Variable("x").get_children() is None,
        g["fc1_output"].list_arguments(),
    ]


@program
def attributes(L: Any) -> list:
    with L.sym_attr(ctx_group="stage1", __lr_mult__="2"):
        a = L.sym.Variable("a", lr_mult=3.0, shape=(2, 2), init='["zero", {}]')
        b = L.sym.FullyConnected(a, num_hidden=2, name="fc", attr={"__mood__": "good"})
    return [
        a.attr("__lr_mult__"),
        a.attr("ctx_group"),
        b.attr("__mood__"),
        b.attr_dict(),
        b.list_attr(),
        a.list_attr(),
        b.attr("num_hidden"),
    ]


@program
def composition(L: Any) -> list:
    S = L.sym
    a = S.FullyConnected(S.Variable("data"), name="fc1", num_hidden=3)
    b = S.FullyConnected(S.Variable("data2"), name="fc2", num_hidden=4)
    c = b(data2=a, name="composed")
    return [c.list_arguments(), c.list_outputs(), c.infer_shape(data=(2, 5)), b.list_arguments(), c.name]


@program
def arithmetic(L: Any) -> list:
    S = L.sym
    x, y = (S.Variable("x"), S.Variable("y"))
    e = [
        x + y,
        x - y,
        x * y,
        x / y,
        x**y,
        x % y,
        x > y,
        x >= y,
        x < y,
        x <= y,
        x == y,
        x != y,
        -x,
        abs(x),
        1 + x,
        1 - x,
        2 / x,
        2**x,
        3 % x,
        x > 1,
        x == 2,
        S.maximum(x, y),
        S.minimum(x, 2),
        S.hypot(x, y),
        S.power(2, x),
        S.pow(x, 3),
    ]
    a, b = (onp.array([[1, 2], [3, 4]], "f4"), onp.array([[2, 2], [1.5, 4]], "f4"))
    return [
        [L.np(v) for v in s.eval(ctx=L.ctx, **{n: L.array({"x": a, "y": b}[n]) for n in s.list_arguments()})] for s in e
    ]


@program
def methods(L: Any) -> list:
    S = L.sym
    x = S.Variable("x")
    a = R().normal(size=(2, 3, 4)).astype("f4")
    e = [
        x.reshape((2, -1)),
        x.reshape(shape=(-1, 4)),
        x.transpose(),
        x.transpose((1, 0, 2)),
        x.sum(axis=1),
        x.mean(),
        x.max(axis=(0, 2)),
        x.exp(),
        x.slice_axis(axis=1, begin=0, end=2),
        x.expand_dims(axis=0),
        x.flatten(),
        x.swapaxes(0, 1),
        x.astype("float64"),
        x.clip(-0.5, 0.5),
        x.square().sqrt(),
        x.norm(),
        x.softmax(axis=1),
        x.log_softmax(),
        x.argmax(axis=2),
        x.topk(k=2),
        x.tile((1, 2, 1)),
        x.broadcast_to((2, 3, 4)),
        x.slice(begin=(0, 1), end=(2, 3)),
        x.take(S.Variable("i")),
        x.one_hot(depth=3),
        x.sign(),
        x.split(num_outputs=3, axis=1),
        x.relu(),
        x.flip(axis=1),
        x.repeat(repeats=2, axis=0),
        x.sort(axis=1),
        x.round(),
        x.zeros_like(),
        x.sigmoid(),
        x.diag(),
        x.squeeze(),
    ]
    out = []
    for s in e:
        given = {"x": L.array(a)}
        if "i" in s.list_arguments():
            given["i"] = L.array(onp.array([1, 0, 1], "f4"))
        out.append([L.np(v) for v in s.eval(ctx=L.ctx, **given)])
    return out


@program
def neural_style(L: Any) -> list:
    S = L.sym
    img = S.Variable("img")
    f = S.Activation(S.Convolution(img, num_filter=4, kernel=(3, 3), pad=(1, 1), name="conv"), act_type="relu")
    flat = S.Reshape(f, shape=(4, -1))
    gram = S.FullyConnected(flat, flat, no_bias=True, num_hidden=4)
    loss = S.sum(S.square(gram - S.Variable("target"))) + 0.1 * S.sum(S.square(f - S.Variable("content")))
    net = S.MakeLoss(loss)
    ex = net.simple_bind(L.ctx, img=(1, 3, 8, 8), target=(4, 4), content=(1, 4, 8, 8))
    init(L, ex, scale=0.5)
    out = []
    for _ in range(5):
        ex.forward(is_train=True)
        ex.backward()
        out.append(L.np(ex.outputs[0]))
        ex.arg_dict["img"][:] = ex.arg_dict["img"] - 0.0001 * ex.grad_dict["img"]
    return [out, grads(L, ex)]


@program
def dcgan(L: Any) -> list:
    S = L.sym
    z = S.Variable("rand")
    g = S.Deconvolution(z, name="g1", kernel=(4, 4), num_filter=8, no_bias=True)
    g = S.Activation(S.BatchNorm(g, name="gbn", fix_gamma=True, eps=1e-05), act_type="relu")
    g = S.Activation(
        S.Deconvolution(g, name="g2", kernel=(4, 4), stride=(2, 2), pad=(1, 1), num_filter=3, no_bias=True),
        act_type="tanh",
    )
    d = S.LeakyReLU(
        S.Convolution(
            S.Variable("data"), name="d1", kernel=(4, 4), stride=(2, 2), pad=(1, 1), num_filter=6, no_bias=True
        ),
        act_type="leaky",
        slope=0.2,
    )
    d = S.LogisticRegressionOutput(
        S.FullyConnected(S.Flatten(d), num_hidden=1, name="d2"), S.Variable("label"), name="dloss"
    )
    G = g.simple_bind(L.ctx, rand=(4, 5, 1, 1))
    D = d.simple_bind(L.ctx, data=(4, 3, 8, 8), label=(4, 1))
    init(L, G, 1, scale=0.5)
    init(L, D, 2, skip=("label",), scale=0.5)
    G.forward(is_train=True)
    D.arg_dict["label"][:] = 1
    D.forward(is_train=True, data=G.outputs[0])
    D.backward()
    G.backward([D.grad_dict["data"]])
    return [
        L.np(G.outputs[0]),
        L.np(D.outputs[0]),
        grads(L, G),
        grads(L, D),
        {n: L.np(a) for n, a in G.aux_dict.items()},
    ]


@program
def text_cnn(L: Any) -> list:
    S = L.sym
    N, T, V, E = (3, 9, 20, 6)
    x = S.Reshape(S.Embedding(S.Variable("data"), input_dim=V, output_dim=E, name="vocab"), shape=(-1, 1, T, E))
    pools = []
    for k in (2, 3, 4):
        c = S.Activation(S.Convolution(x, kernel=(k, E), num_filter=4, name=f"c{k}"), act_type="relu")
        pools.append(S.Pooling(c, pool_type="max", kernel=(T - k + 1, 1), stride=(1, 1)))
    h = S.Dropout(S.Reshape(S.Concat(*pools, dim=1), shape=(-1, 12)), p=0.0)
    net = S.SoftmaxOutput(S.FullyConnected(h, num_hidden=2, name="cls"), S.Variable("softmax_label"), name="softmax")
    ex = net.simple_bind(
        L.ctx,
        grad_req={n: "null" if n in ("data", "softmax_label") else "write" for n in net.list_arguments()},
        data=(N, T),
    )
    init(L, ex, skip=("data", "softmax_label"), scale=0.5)
    ex.forward(
        is_train=True,
        data=L.array(R(1).integers(0, V, (N, T)).astype("f4")),
        softmax_label=L.array(onp.array([0, 1, 1], "f4")),
    )
    ex.backward()
    return [L.np(ex.outputs[0]), grads(L, ex)]


@program
def nce_word2vec(L: Any) -> list:
    S = L.sym
    w = S.Variable("embed_weight")
    ctxs = S.SliceChannel(S.Embedding(S.Variable("data"), weight=w, input_dim=15, output_dim=4), num_outputs=3, axis=1)
    hidden = S.broadcast_axis(S.Reshape(ctxs[0] + ctxs[1] + ctxs[2], shape=(-1, 1, 4)) / 3, axis=1, size=5)
    lab = S.Embedding(S.Variable("label"), weight=w, input_dim=15, output_dim=4)
    pred = S.sum(hidden * lab, axis=2)
    net = S.LogisticRegressionOutput(pred, S.Variable("label_weight"), name="nce")
    ex = net.simple_bind(L.ctx, grad_req={"embed_weight": "write"}, data=(6, 3), label=(6, 5), label_weight=(6, 5))
    r = R(2)
    ex.arg_dict["embed_weight"][:] = L.array(r.normal(size=(15, 4)).astype("f4"))
    ex.forward(
        is_train=True,
        data=L.array(r.integers(0, 15, (6, 3)).astype("f4")),
        label=L.array(r.integers(0, 15, (6, 5)).astype("f4")),
        label_weight=L.array((onp.arange(30).reshape(6, 5) % 5 == 0).astype("f4")),
    )
    ex.backward()
    return [L.np(ex.outputs[0]), L.np(ex.grad_dict["embed_weight"])]


@program
def matrix_factorization(L: Any) -> list:
    S = L.sym
    u = S.Embedding(S.Variable("user"), input_dim=8, output_dim=4, name="u")
    i = S.Embedding(S.Variable("item"), input_dim=9, output_dim=4, name="i")
    p = S.Flatten(S.sum(S.Flatten(u) * S.Flatten(i), axis=1))
    net = S.LinearRegressionOutput(p, S.Variable("score"), name="lro")
    ex = net.simple_bind(L.ctx, grad_req={"u_weight": "write", "i_weight": "add"}, user=(5,), item=(5,), score=(5,))
    r = R(4)
    init(L, ex, skip=("user", "item", "score"), scale=1)
    ex.forward(
        is_train=True,
        user=L.array(r.integers(0, 8, 5).astype("f4")),
        item=L.array(r.integers(0, 9, 5).astype("f4")),
        score=L.array(r.normal(size=5).astype("f4")),
    )
    ex.backward()
    return [
        L.np(ex.outputs[0]),
        {n: g for n, g in grads(L, ex).items() if n.endswith("weight")},
        net.infer_shape(user=(5,), item=(5,), score=(5,)),
    ]


@program
def fcn_crop(L: Any) -> list:
    S = L.sym
    x = S.Variable("data")
    c = S.Convolution(x, kernel=(3, 3), num_filter=4, pad=(4, 4), name="c")
    p = S.Pooling(c, kernel=(2, 2), stride=(2, 2), pool_type="max", pooling_convention="full")
    s = S.Convolution(p, kernel=(1, 1), num_filter=3, name="score")
    up = S.Deconvolution(s, kernel=(4, 4), stride=(2, 2), num_filter=3, adj=(1, 1), no_bias=True, name="big")
    net = S.SoftmaxOutput(
        S.Crop(up, x, offset=(2, 2), name="crop"), multi_output=True, use_ignore=True, ignore_label=255, name="softmax"
    )
    ex = net.simple_bind(L.ctx, data=(2, 3, 9, 11))
    init(L, ex, skip=("softmax_label",), scale=0.4)
    lab = R(1).integers(0, 3, (2, 9, 11)).astype("f4")
    lab[:, 0] = 255
    ex.arg_dict["softmax_label"][:] = L.array(lab.reshape(ex.arg_dict["softmax_label"].shape))
    ex.forward(is_train=True)
    ex.backward()
    return [L.np(ex.outputs[0]), grads(L, ex), net.infer_shape(data=(2, 3, 9, 11))]


@program
def monitor(L: Any) -> list:
    net = mlp(L)
    ex = net.simple_bind(L.ctx, data=(4, 10))
    init(L, ex, skip=("softmax_label",))
    seen = []
    L.monitor(ex, lambda n, a: seen.append((n if isinstance(n, str) else n.decode(), L.np(a))))
    ex.forward(is_train=False)
    L.np(ex.outputs[0])
    return [seen]


@program
def executor_reshape(L: Any) -> list:
    net = mlp(L)
    ex = net.simple_bind(L.ctx, data=(4, 10))
    init(L, ex, skip=("softmax_label",))
    ex2 = ex.reshape(data=(2, 10), partial_shaping=True, softmax_label=(2,))
    ex2.forward(data=L.array(R(1).normal(size=(2, 10)).astype("f4")))
    w = ex2.arg_dict["fc1_weight"]
    ex.arg_dict["fc1_weight"][:] = 2.0
    return [L.np(ex2.outputs[0]), [a.shape for a in ex2.arg_arrays], L.np(w)]


@program
def losses_with_scale(L: Any) -> list:
    S = L.sym
    out = []
    for net in (
        S.SVMOutput(S.Variable("x"), S.Variable("l"), use_linear=True),
        S.MAERegressionOutput(S.Variable("x"), S.Variable("l"), grad_scale=2),
        S.MakeLoss(S.smooth_l1(S.Variable("x") - S.Variable("l"), scalar=2), grad_scale=0.5),
        S.make_loss(S.square(S.Variable("x") * S.Variable("l"))),
        S.softmax_cross_entropy(S.Variable("x"), S.Variable("l")),
    ):
        shape = (4,) if "svm" in net.name or "cross" in net.name else (4, 3)
        ex = net.simple_bind(L.ctx, x=(4, 3), l=shape, grad_req={"x": "write"})
        ex.arg_dict["x"][:] = L.array(R(1).normal(size=(4, 3)).astype("f4"))
        ex.arg_dict["l"][:] = L.array(R(2).integers(0, 3, shape).astype("f4"))
        ex.forward(is_train=True)
        ex.backward(L.array(onp.ones(1, "f4")) if "cross" in net.name else None)
        out.append([L.np(ex.outputs[0]), L.np(ex.grad_dict["x"])])
    return out


@program
def ctc(L: Any) -> list:
    S = L.sym
    loss = S.MakeLoss(
        S.ctc_loss(S.Variable("data"), S.Variable("label"))
        if hasattr(S, "ctc_loss")
        else S.contrib.ctc_loss(S.Variable("data"), S.Variable("label"))
    )
    ex = loss.simple_bind(L.ctx, data=(8, 2, 5), label=(2, 3))
    ex.arg_dict["data"][:] = L.array(R(0).normal(size=(8, 2, 5)).astype("f4"))
    ex.arg_dict["label"][:] = L.array(onp.array([[1, 2, 3], [2, 2, 0]], "f4"))
    ex.forward(is_train=True)
    ex.backward()
    return [L.np(ex.outputs[0]), L.np(ex.grad_dict["data"])]


@program
def foreach_rnn(L: Any) -> list:
    S = L.sym
    w = S.Variable("w")
    step = lambda x, s: (lambda h: (h, [h]))(S.tanh(S.dot(x, w) + s[0]))
    outs, last = S.contrib.foreach(step, S.Variable("data"), [S.Variable("s0")])
    net = S.Group([outs, last[0]])
    ex = net.simple_bind(L.ctx, data=(5, 2, 3), s0=(2, 3), w=(3, 3))
    init(L, ex, scale=0.5)
    ex.forward(is_train=True)
    ex.backward([L.array(onp.ones((5, 2, 3), "f4")), L.array(onp.ones((2, 3), "f4"))])
    return [[L.np(o) for o in ex.outputs], grads(L, ex)]


@program
def sequence_attention(L: Any) -> list:
    S = L.sym
    x, n = (S.Variable("x"), S.Variable("n"))
    m = S.SequenceMask(x, n, use_sequence_length=True, value=-1000.0)
    a = S.softmax(S.mean(m, axis=2), axis=0)
    y = S.sum(S.broadcast_mul(x, S.expand_dims(a, axis=2)), axis=0)
    last = S.SequenceLast(x, n, use_sequence_length=True)
    rev = S.SequenceReverse(x, n, use_sequence_length=True)
    net = S.MakeLoss(S.sum(y * last) + S.sum(rev * x))
    ex = net.simple_bind(L.ctx, x=(5, 3, 4), n=(3,), grad_req={"x": "write"})
    ex.arg_dict["x"][:] = L.array(R(1).normal(size=(5, 3, 4)).astype("f4"))
    ex.arg_dict["n"][:] = L.array(onp.array([2, 5, 3], "f4"))
    ex.forward(is_train=True)
    ex.backward()
    return [L.np(ex.outputs[0]), L.np(ex.grad_dict["x"])]


@program
def rcnn_head(L: Any) -> list:
    S = L.sym
    feat = S.Variable("feat")
    cls = S.Convolution(feat, kernel=(1, 1), num_filter=12, name="rpn_cls")
    box = S.Convolution(feat, kernel=(1, 1), num_filter=24, name="rpn_box")
    prob = S.Reshape(S.SoftmaxActivation(S.Reshape(cls, shape=(0, 2, -1, 0)), mode="channel"), shape=(0, 12, -1, 0))
    rois = S.contrib.Proposal(
        prob,
        box,
        S.Variable("im_info"),
        name="rois",
        feature_stride=8,
        scales=(1, 2),
        ratios=(0.5, 1, 2),
        rpn_pre_nms_top_n=40,
        rpn_post_nms_top_n=6,
        rpn_min_size=2,
        threshold=0.7,
    )
    pooled = S.ROIPooling(feat, rois, pooled_size=(3, 3), spatial_scale=1 / 8.0)
    net = S.Group(
        [
            S.SoftmaxOutput(
                S.FullyConnected(S.Flatten(pooled), num_hidden=4, name="cls"), S.Variable("label"), name="sm"
            ),
            S.BlockGrad(rois),
        ]
    )
    ex = net.simple_bind(L.ctx, feat=(1, 5, 7, 7), im_info=(1, 3), label=(6,))
    init(L, ex, skip=("im_info", "label"), scale=0.5)
    ex.arg_dict["im_info"][:] = L.array(onp.array([[56, 56, 1]], "f4"))
    ex.arg_dict["label"][:] = L.array(onp.arange(6).astype("f4") % 4)
    ex.forward(is_train=True)
    ex.backward()
    return [[L.np(o) for o in ex.outputs], grads(L, ex), net.list_outputs()]


@program
def stn(L: Any) -> list:
    S = L.sym
    x = S.Variable("x")
    loc = S.FullyConnected(S.Flatten(x), num_hidden=6, name="loc")
    y = S.SpatialTransformer(x, loc, target_shape=(5, 5), transform_type="affine", sampler_type="bilinear")
    net = S.MakeLoss(S.sum(S.square(y)))
    ex = net.simple_bind(L.ctx, x=(2, 1, 6, 6))
    init(L, ex, scale=0.02)
    ex.arg_dict["x"][:] = L.array(R(1).normal(size=(2, 1, 6, 6)).astype("f4"))
    ex.arg_dict["loc_bias"][:] = L.array(onp.array([0.5, 0, 0, 0, 0.5, 0], "f4"))
    ex.forward(is_train=True)
    ex.backward()
    return [L.np(ex.outputs[0]), grads(L, ex)]


@program
def data_nets_with_states(L: Any) -> list:
    S = L.sym

    def unit(x, f, s, name):
        a = S.Activation(S.BatchNorm(x, fix_gamma=False, eps=2e-05, momentum=0.9, name=name + "_bn1"), act_type="relu")
        c = S.Convolution(a, num_filter=f, kernel=(3, 3), stride=s, pad=(1, 1), no_bias=True, name=name + "_c1")
        sc = S.Convolution(a, num_filter=f, kernel=(1, 1), stride=s, no_bias=True, name=name + "_sc")
        return c + sc

    x = S.BatchNorm(S.Variable("data"), fix_gamma=True, name="bn_data")
    x = unit(unit(x, 4, (1, 1), "u1"), 6, (2, 2), "u2")
    x = S.Flatten(S.Pooling(x, global_pool=True, kernel=(7, 7), pool_type="avg"))
    net = S.SoftmaxOutput(S.FullyConnected(x, num_hidden=3, name="fc1"), name="softmax")
    ex = net.simple_bind(L.ctx, data=(4, 3, 8, 8))
    init(L, ex, skip=("softmax_label",), scale=0.5)
    out = []
    for i in range(3):
        ex.forward(
            is_train=True,
            data=L.array(R(i).normal(size=(4, 3, 8, 8)).astype("f4")),
            softmax_label=L.array(onp.array([0, 1, 2, 0], "f4")),
        )
        ex.backward()
        for n in net.list_arguments():
            if n not in ("data", "softmax_label"):
                ex.arg_dict[n][:] = ex.arg_dict[n] - 0.05 * ex.grad_dict[n]
        out += [L.np(ex.outputs[0]), grads(L, ex), {n: L.np(a) for n, a in ex.aux_dict.items()}]
    ex.forward(is_train=False)
    return [*out, L.np(ex.outputs[0])]


@program
def params_files(L: Any) -> list:
    d = tempfile.mkdtemp()
    a = {"w": L.array(R().normal(size=(3, 2)).astype("f4")), "b": L.array(onp.arange(3, dtype="f4"))}
    L.nd_save(d + "/x.params", a)
    L.nd_save(d + "/l.params", [a["w"], a["b"]])
    return [
        {n: L.np(v) for n, v in L.nd_load(d + "/x.params").items()},
        [L.np(v) for v in L.nd_load(d + "/l.params")],
        open(d + "/x.params", "rb").read(),
        open(d + "/l.params", "rb").read(),
    ]


@program
def json_text(L: Any) -> list:
    return [
        json.loads(t)
        for t in [
            mlp(L).tojson(),
            L.sym.load_json(mlp(L).tojson()).tojson(),
            L.sym.Group([mlp(L), L.sym.Variable("q", shape=(2,))]).tojson(),
        ]
    ]


@program
def names(L: Any) -> list:
    with L.prefix("net_"):
        a = L.sym.FullyConnected(L.sym.Variable("x"), num_hidden=2, name="fc")
        b = L.sym.Activation(a, act_type="relu", name="r")
    c = L.sym.Convolution(L.sym.Variable("x"), kernel=(1, 1), num_filter=1, name="c")
    s = L.sym.SliceChannel(L.sym.Variable("x"), num_outputs=2, name="sl")
    r = L.sym.RNN(L.sym.Variable("x"), mode="lstm", state_size=2, num_layers=1, state_outputs=True, name="r")
    return [
        b.list_arguments(),
        b.list_outputs(),
        c.list_arguments(),
        s.list_outputs(),
        r.list_outputs(),
        r.list_arguments(),
        L.sym.BatchNorm(c, name="b", output_mean_var=True).list_outputs(),
        L.sym.topk(c, ret_typ="both", name="t").list_outputs(),
        L.sym.LayerNorm(c, name="ln").list_outputs(),
        L.sym.Dropout(c, name="d").list_outputs(),
        L.sym.split_v2(c, 2, axis=0).list_outputs()[0][-8:],
        L.sym.LeakyReLU(c, act_type="prelu", name="p").list_arguments(),
    ]


@program
def dtype64_and_16(L: Any) -> list:
    net = L.sym.FullyConnected(L.sym.Variable("x"), num_hidden=3, name="fc")
    out = []
    for t in ("float64",):
        ex = net.simple_bind(L.ctx, x=(2, 4), type_dict={"x": t})
        out.append([onp.dtype(a.dtype).name for a in ex.arg_arrays])
        for i, a in enumerate(ex.arg_arrays):
            a[:] = L.array(R(i).normal(size=a.shape).astype(t))
        ex.forward(is_train=True)
        ex.backward(L.array(onp.ones((2, 3), t)))
        out += [L.np(ex.outputs[0]).astype("f8").round(2), L.np(ex.grad_dict["fc_weight"]).astype("f8").round(2)]
    return out


@program
def zeros_ones_arange(L: Any) -> list:
    S = L.sym
    return [
        [L.np(v) for v in s.eval(ctx=L.ctx)]
        for s in (
            S.zeros((2, 3)),
            S.ones((2,), dtype="int32"),
            S.arange(0, 5),
            S.arange(2, 8, 2, repeat=2),
            S.full((2, 2), 3.5),
            S.eye(3),
            S.linspace(0, 1, 5),
        )
    ]


@program
def eval_and_call_errors(L: Any) -> list:
    S = L.sym
    out = []
    for f in (
        lambda: S.FullyConnected(S.Variable("x")),
        lambda: S.FullyConnected(S.Variable("x"), num_hidden=3, wrong=1),
        lambda: mlp(L).infer_shape(data=(2, 3), softmax_label=(5,)),
        lambda: mlp(L).simple_bind(L.ctx),
        lambda: mlp(L)["nothing"],
        lambda: S.Variable(3),
        lambda: S.Group([]),
        lambda: S.load_json("{"),
        lambda: S.Activation(S.Variable("x"), act_type="wrong"),
        lambda: mlp(L).eval(ctx=L.ctx, data=L.array(onp.ones((2, 3), "f4"))),
    ):
        try:
            f()
            out.append("fine")
        except Exception:
            out.append("raises")
    return out


@program
def infer_backwards(L: Any) -> list:
    S = L.sym
    x = S.Variable("x")
    y = S.Variable("y")
    n = x + y
    out = [n.infer_shape(y=(2, 3))]
    f = S.FullyConnected(S.Variable("d"), S.Variable("w"), no_bias=True, num_hidden=3)
    out.append([tuple(s) for s in f.infer_shape_partial(d=(5, 7))[0]])
    v = S.Variable("v", shape=(4, 5))
    out.append(S.exp(v).infer_shape())
    out.append(S.dot(v, S.Variable("w", shape=(5, 2))).infer_shape())
    c = S.Concat(S.Variable("a"), S.Variable("b"), dim=1)
    out.append(c.infer_shape(a=(2, 3), b=(2, 4)))
    e = S.elemwise_add(S.Variable("p"), S.Variable("q", shape=(0, 3)))
    out.append(e.infer_shape(p=(2, 3)))
    for axis in (0, 1, -1):
        for keepdims in (False, True):
            out.append(S.pick(x, S.Variable("i"), axis=axis, keepdims=keepdims).infer_shape(x=(4, 5, 3)))
    return out


@program
def infer_types(L: Any) -> list:
    S = L.sym
    out = []
    for s, g in (
        (S.Cast(S.Variable("x"), dtype="int32"), {"x": onp.float32}),
        (S.Variable("a") + S.Variable("b"), {"b": onp.float64}),
        (S.argmax(S.Variable("x"), axis=1), {"x": onp.float32}),
        (S.Embedding(S.Variable("x"), input_dim=3, output_dim=2), {"x": onp.float32}),
        (S.one_hot(S.Variable("x"), depth=2, dtype="float64"), {"x": onp.int32}),
        (S.BatchNorm(S.Variable("x")), {"x": onp.float64}),
        (S.SoftmaxOutput(S.Variable("x"), S.Variable("l")), {"x": onp.float32}),
    ):
        out.append([[onp.dtype(t).name for t in part] for part in s.infer_type(**g)])
    return out


@program
def while_and_cond(L: Any) -> list:
    S = L.sym
    out = []
    outs, last = S.contrib.while_loop(
        cond=lambda i, s: i <= 4,
        func=lambda i, s: ([s * 2], [i + 1, s + i]),
        loop_vars=[S.Variable("i"), S.Variable("s")],
        max_iterations=7,
    )
    ex = S.Group([outs[0], last[0], last[1]]).bind(
        L.ctx,
        {"i": L.array(onp.array([1], "f4")), "s": L.array(onp.array([0.5], "f4"))},
        args_grad={"s": L.zeros((1,)), "i": L.zeros((1,))},
    )
    ys = ex.forward(is_train=True)
    out.append([L.np(ys[1]), L.np(ys[2]), L.np(ys[0])[:4]])
    a, b = (S.Variable("a"), S.Variable("b"))
    c = S.contrib.cond(a < b, lambda: a * b, lambda: a - b)
    for v in (1.0, 5.0):
        ex = c.bind(
            L.ctx,
            {"a": L.array(onp.array([v], "f4")), "b": L.array(onp.array([3], "f4"))},
            args_grad={"a": L.zeros((1,)), "b": L.zeros((1,))},
        )
        ex.forward(is_train=True)
        ex.backward(L.array(onp.ones(1, "f4")))
        out.append([L.np(ex.outputs[0]), grads(L, ex)])
    return out


@program
def custom_softmax(L: Any) -> list:

    class Softmax(L.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            x = L.np(in_data[0])
            y = onp.exp(x - x.max(axis=1).reshape((x.shape[0], 1)))
            y /= y.sum(axis=1).reshape((x.shape[0], 1))
            self.assign(out_data[0], req[0], L.array(y))

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            l = L.np(in_data[1]).ravel().astype(int)
            y = L.np(out_data[0])
            y[onp.arange(l.shape[0]), l] -= 1.0
            self.assign(in_grad[0], req[0], L.array(y))

    @L.register("softmax_of_progs")
    class SoftmaxProp(L.CustomOpProp):
        def __init__(self):
            super().__init__(need_top_grad=False)

        def list_arguments(self):
            return ["data", "label"]

        def list_outputs(self):
            return ["output"]

        def infer_shape(self, in_shape):
            return ([in_shape[0], (in_shape[0][0],)], [in_shape[0]], [])

        def create_operator(self, ctx, shapes, dtypes):
            return Softmax()

    net = L.sym.Custom(
        data=L.sym.FullyConnected(L.sym.Variable("data"), num_hidden=3, name="fc"),
        name="softmax",
        op_type="softmax_of_progs",
    )
    ex = net.simple_bind(
        L.ctx,
        data=(4, 5),
        grad_req={"data": "write", "fc_weight": "write", "fc_bias": "write", "softmax_label": "null"},
    )
    init(L, ex, skip=("softmax_label",))
    ex.arg_dict["softmax_label"][:] = L.array(onp.array([0, 1, 2, 1], "f4"))
    ex.forward(is_train=True)
    ex.backward()
    return [L.np(ex.outputs[0]), grads(L, ex), net.list_arguments(), net.list_outputs()]


@program
def group_with_weights_shared(L: Any) -> list:
    S = L.sym
    w, alike = S.Variable("w"), S.Variable("same")
    a = S.FullyConnected(S.Variable("a"), w, no_bias=True, num_hidden=3, name="fa")
    b = S.FullyConnected(S.Variable("b"), w, no_bias=True, num_hidden=3, name="fb")
    d = S.sqrt(S.sum(S.square(a - b), axis=1) + 1e-06)
    net = S.MakeLoss(S.mean(alike * S.square(d) + (1 - alike) * S.square(S.Activation(1 - d, act_type="relu"))))
    ex = net.simple_bind(L.ctx, grad_req={"a": "write", "b": "write", "w": "write"}, a=(4, 5), b=(4, 5), same=(4,))
    init(L, ex, scale=0.5)
    ex.arg_dict["same"][:] = L.array(onp.array([0, 1, 0, 1], "f4"))
    ex.forward(is_train=True)
    ex.backward()
    return [L.np(ex.outputs[0]), grads(L, ex)]


@program
def slices_and_indexing_operators(L: Any) -> list:
    S = L.sym
    x = S.Variable("x")
    i = S.Variable("i")
    out = []
    a = R().normal(size=(4, 5)).astype("f4")
    ix = onp.array([3, 0, 2], "f4")
    for s in (
        S.slice(x, begin=(1, None), end=(None, -1)),
        S.slice_axis(x, axis=-1, begin=-3, end=None),
        S.take(x, i, axis=0),
        S.take(x, i, axis=1, mode="wrap"),
        S.gather_nd(x, S.stack(i, i, axis=0)),
        S.pick(x, S.Variable("p"), axis=1),
        S.where(x > 0, x, -x),
        S.reverse(x, axis=0),
        S.SwapAxis(x, dim1=0, dim2=1),
        S.expand_dims(x, axis=-1),
        S.batch_take(x, S.Cast(S.Variable("p"), dtype="int32")),
        S.argsort(x, axis=1),
        S.sort(x, axis=0, is_ascend=False),
        S.topk(x, k=2, ret_typ="value"),
        S.scatter_nd(S.Variable("p"), S.expand_dims(S.Variable("q"), axis=0), shape=(6,)),
        S.depth_to_space(S.reshape(x, shape=(1, 4, 1, 5)), block_size=2),
        S.broadcast_greater(x, S.mean(x, axis=1, keepdims=True)),
        S.L2Normalization(x),
        S.norm(x, axis=1),
        S.smooth_l1(x, scalar=2.0),
        S.Pad(S.reshape(x, shape=(1, 1, 4, 5)), mode="reflect", pad_width=(0, 0, 0, 0, 1, 1, 2, 2)),
        S.linalg.gemm2(x, x, transpose_b=True),
        S.linalg.syrk(x),
        S.khatri_rao(x, x),
        S.batch_dot(S.expand_dims(x, axis=0), S.expand_dims(x, axis=0), transpose_b=True),
        S.Reshape(x, shape=(-4, 2, 2, -2)),
        S.reshape_like(x, S.ones((5, 4))),
        S.shape_array(x),
        S.size_array(x),
        S.squeeze(S.expand_dims(x, axis=1)),
        S.UpSampling(S.reshape(x, shape=(1, 4, 1, 5)), scale=2, sample_type="nearest"),
        S.add_n(x, x, x),
        S.square(x).sum(),
        S.stack(x, x, axis=1),
        S.cumsum(x, axis=1) if hasattr(S, "cumsum") else x,
    ):
        given = {
            n: L.array({"x": a, "i": ix, "p": onp.array([0, 4, 2, 1], "f4"), "q": onp.array([5, 0, 1, 3], "f4")}[n])
            for n in s.list_arguments()
        }
        out.append([L.np(v) for v in s.eval(ctx=L.ctx, **given)])
    return out


@program
def checkpoint_in_the_other_library(L: Any) -> list:
    net = mlp(L)
    d = tempfile.mkdtemp()
    r = R(7)
    s = dict(zip(net.list_arguments(), net.infer_shape(data=(3, 10))[0]))
    a = {n: L.array(r.normal(size=v).astype("f4")) for n, v in s.items() if n not in ("data", "softmax_label")}
    L.save_checkpoint(d + "/m", 12, net, a, {})
    O = L.other
    s2, a2, x2 = O.load_checkpoint(d + "/m", 12)
    ex = s2.simple_bind(O.ctx, data=(3, 10))
    ex.copy_params_from(a2, x2)
    ex.forward(data=O.array(R(1).normal(size=(3, 10)).astype("f4")))
    return [O.np(ex.outputs[0]), s2.list_arguments()]


@program
def deep_supervision_two_losses(L: Any) -> list:
    S = L.sym
    x = S.FullyConnected(S.Variable("data"), num_hidden=6, name="f1")
    a = S.SoftmaxOutput(S.FullyConnected(x, num_hidden=3, name="f2"), S.Variable("l1"), name="s1", grad_scale=0.3)
    b = S.LinearRegressionOutput(
        S.FullyConnected(S.Activation(x, act_type="softrelu"), num_hidden=2, name="f3"), S.Variable("l2"), name="s2"
    )
    net = S.Group([a, b])
    ex = net.simple_bind(L.ctx, data=(5, 4), l1=(5,), l2=(5, 2))
    init(L, ex, skip=("l1",), scale=0.5)
    ex.arg_dict["l1"][:] = L.array(onp.array([0, 1, 2, 0, 1], "f4"))
    ex.forward(is_train=True)
    ex.backward()
    return [[L.np(o) for o in ex.outputs], grads(L, ex), net.list_outputs()]


@program
def saved_executor_arrays(L: Any) -> list:
    net = mlp(L)
    ex = net.simple_bind(L.ctx, data=(2, 10))
    init(L, ex, skip=("softmax_label",))
    ex.arg_arrays[1][:] = 0.25
    ex.arg_dict["fc2_bias"][1:3] = 3.0
    y1 = L.np(ex.forward()[0])
    ex.arg_dict["fc1_bias"][:] += 1
    y2 = L.np(ex.forward()[0])
    return [y1, y2, [a.shape for a in ex.arg_arrays], ex.outputs[0].shape, len(ex.outputs), sorted(ex.output_dict)]


@program
def group_norms(L: Any) -> list:
    S = L.sym
    out = []
    for s in (
        S.LayerNorm(S.Variable("x"), name="n"),
        S.InstanceNorm(S.Variable("x"), name="n"),
        S.GroupNorm(S.Variable("x"), num_groups=2, name="n"),
        S.LRN(S.Variable("x"), nsize=3),
        S.L2Normalization(S.Variable("x"), mode="channel"),
    ):
        ex = s.simple_bind(L.ctx, x=(2, 4, 3, 5))
        init(L, ex, scale=1)
        ex.forward(is_train=True)
        ex.backward(L.array(R(3).normal(size=(2, 4, 3, 5)).astype("f4")))
        out.append([L.np(ex.outputs[0]), grads(L, ex)])
    return out


@program
def bidirectional_gru(L: Any) -> list:
    S = L.sym
    y = S.RNN(S.Variable("x"), state_size=4, num_layers=2, bidirectional=True, mode="gru", state_outputs=True, name="r")
    net = S.MakeLoss(S.sum(y[0]) + S.sum(S.square(y[1])))
    ex = net.simple_bind(L.ctx, x=(5, 2, 3))
    init(L, ex, scale=0.4)
    ex.forward(is_train=True)
    ex.backward()
    return [L.np(ex.outputs[0]), grads(L, ex), net.list_arguments()]


@program
def multi_gpu_like_groups(L: Any) -> list:
    S = L.sym
    with L.sym_attr(ctx_group="dev1"):
        a = S.FullyConnected(S.Variable("data"), num_hidden=4, name="fc1")
    with L.sym_attr(ctx_group="dev2"):
        b = S.SoftmaxOutput(S.FullyConnected(a, num_hidden=3, name="fc2"), name="softmax")
    ex = b.simple_bind(L.ctx, group2ctx={"dev1": L.ctx, "dev2": L.ctx} if L.ctx is not None else None, data=(2, 5))
    init(L, ex, skip=("softmax_label",))
    ex.forward(is_train=True)
    ex.backward()
    return [L.np(ex.outputs[0]), grads(L, ex), b.attr_dict()]


@program
def scalar_and_broadcast_gradients(L: Any) -> list:
    S = L.sym
    x, b = (S.Variable("x"), S.Variable("b"))
    net = S.MakeLoss(S.broadcast_mul(S.broadcast_add(x, b), b) ** 2 / (1 + S.exp(-x)) - S.broadcast_maximum(x, b))
    ex = net.simple_bind(L.ctx, x=(3, 4), b=(1, 4))
    init(L, ex, scale=1)
    ex.forward(is_train=True)
    ex.backward()
    return [L.np(ex.outputs[0]), grads(L, ex)]


@program
def ssd_heads(L: Any) -> list:
    S = L.sym
    x = S.Variable("data")
    x = S.Activation(S.Convolution(x, name="c1", num_filter=8, kernel=(3, 3), pad=(1, 1)), act_type="relu")
    small = S.Activation(
        S.Convolution(x, name="c2", num_filter=8, kernel=(3, 3), stride=(2, 2), pad=(1, 1)), act_type="relu"
    )
    classes, places, anchors = [], [], []
    for i, (layer, sizes) in enumerate(((x, (0.2, 0.3)), (small, (0.5, 0.7)))):
        c = S.Convolution(layer, name=f"cls{i}", num_filter=9, kernel=(3, 3), pad=(1, 1))
        b = S.Convolution(layer, name=f"loc{i}", num_filter=12, kernel=(3, 3), pad=(1, 1))
        classes.append(S.Flatten(S.transpose(c, axes=(0, 2, 3, 1))))
        places.append(S.Flatten(S.transpose(b, axes=(0, 2, 3, 1))))
        anchors.append(S.contrib.MultiBoxPrior(layer, sizes=sizes, ratios=(1, 2), clip=True, name=f"anchors{i}"))
    cls = S.transpose(S.Reshape(S.Concat(*classes, dim=1), shape=(0, -1, 3)), axes=(0, 2, 1), name="cls_preds")
    loc, anchor = S.Concat(*places, dim=1, name="loc_preds"), S.Concat(*anchors, dim=1, name="anchors")
    target = S.contrib.MultiBoxTarget(
        anchor,
        S.Variable("label"),
        cls,
        overlap_threshold=0.5,
        ignore_label=-1,
        negative_mining_ratio=3,
        negative_mining_thresh=0.5,
    )
    cls_loss = S.SoftmaxOutput(
        cls, target[2], ignore_label=-1, use_ignore=True, multi_output=True, normalization="valid", name="cls_prob"
    )
    loc_loss = S.MakeLoss(
        S.smooth_l1(target[1] * (loc - target[0]), scalar=1.0), grad_scale=1.0, normalization="valid", name="loc_loss"
    )
    det = S.contrib.MultiBoxDetection(S.BlockGrad(cls_loss), S.BlockGrad(loc), anchor, nms_threshold=0.5, name="det")
    net = S.Group([cls_loss, loc_loss, S.BlockGrad(target[2]), S.BlockGrad(det)])
    ex = net.simple_bind(L.ctx, data=(2, 3, 8, 8), label=(2, 2, 5), grad_req="write")
    init(L, ex, skip=("label",), scale=0.3)
    ex.arg_dict["label"][:] = L.array(
        onp.array(
            [[[0, 0.1, 0.1, 0.4, 0.5], [1, 0.5, 0.5, 0.9, 0.9]], [[1, 0.2, 0.3, 0.7, 0.8], [-1, -1, -1, -1, -1]]], "f4"
        )
    )
    outs = [L.np(y) for y in ex.forward(is_train=True)]
    ex.backward()
    g = grads(L, ex)
    g.pop("label")
    return [outs, g, net.list_outputs(), net.get_internals().list_outputs()[-4:]]


@program
def tied_autoencoder(L: Any) -> list:
    S = L.sym
    x, w = S.Variable("data"), S.Variable("w")
    h = S.Activation(S.FullyConnected(x, weight=w, num_hidden=4, no_bias=True, name="enc"), act_type="tanh")
    y = S.FullyConnected(h, weight=S.transpose(w), num_hidden=6, name="dec")
    net = S.LinearRegressionOutput(y, S.Variable("label"), name="out")
    ex = net.simple_bind(L.ctx, data=(5, 6), label=(5, 6), grad_req={"w": "write", "dec_bias": "write"})
    init(L, ex)
    ex.arg_dict["label"][:] = ex.arg_dict["data"]
    out = []
    for _ in range(4):
        ex.forward(is_train=True)
        ex.backward()
        for n in ("w", "dec_bias"):
            ex.arg_dict[n][:] = ex.arg_dict[n] - 0.5 * ex.grad_dict[n]
        out.append(L.np(ex.outputs[0]))
    return [out, L.np(ex.arg_dict["w"]), [n for n, g in ex.grad_dict.items() if g is not None]]


@program
def bucketing_lstm_with_shared_arrays(L: Any) -> list:
    S = L.sym

    def unrolled(length: int) -> Any:
        embed = S.Embedding(S.Variable("data"), input_dim=7, output_dim=3, name="embed")
        steps = S.SliceChannel(embed, num_outputs=length, axis=1, squeeze_axis=True)
        h, c = S.Variable("h0"), S.Variable("c0")
        named = {n: S.Variable(n) for n in ("iw", "ib", "hw", "hb")}
        hidden = []
        for t in range(length):
            i2h = S.FullyConnected(steps[t], weight=named["iw"], bias=named["ib"], num_hidden=16, name=f"t{t}_i2h")
            h2h = S.FullyConnected(h, weight=named["hw"], bias=named["hb"], num_hidden=16, name=f"t{t}_h2h")
            gates = S.SliceChannel(i2h + h2h, num_outputs=4, name=f"t{t}_gates")
            i, f, o = (S.Activation(gates[k], act_type="sigmoid") for k in (0, 2, 3))
            c = f * c + i * S.Activation(gates[1], act_type="tanh")
            h = o * S.Activation(c, act_type="tanh")
            hidden.append(h)
        flat = S.Reshape(S.Concat(*[S.expand_dims(x, axis=1) for x in hidden], dim=1), shape=(-1, 4))
        pred = S.FullyConnected(flat, num_hidden=7, name="pred")
        return S.SoftmaxOutput(
            pred, S.Reshape(S.Variable("softmax_label"), shape=(-1,)), name="softmax", use_ignore=True, ignore_label=0
        )

    big = unrolled(5).simple_bind(L.ctx, data=(2, 5), softmax_label=(2, 5), h0=(2, 4), c0=(2, 4))
    init(L, big, skip=("data", "softmax_label"), scale=0.5)
    params = {n: a for n, a in big.arg_dict.items() if n not in ("data", "softmax_label")}
    slopes = {n: big.grad_dict[n] for n in params}
    out = []
    for length in (5, 3, 2, 5):
        net = unrolled(length)
        words = R(length).integers(0, 7, (2, length)).astype("f4")
        extra = {"data": L.array(words), "softmax_label": L.array(onp.roll(words, 1, axis=1))}
        ex = net.bind(
            L.ctx, args={**params, **extra}, args_grad=slopes, grad_req=dict.fromkeys(params, "write"), aux_states={}
        )
        ex.forward(is_train=True)
        ex.backward()
        for n, a in params.items():
            if n not in ("h0", "c0"):
                a[:] = a - 0.2 * slopes[n]
        out.append(L.np(ex.outputs[0]))
    return [out, {n: L.np(a) for n, a in params.items()}]


@program
def features_from_internals(L: Any) -> list:
    S = L.sym
    x = S.Variable("data")
    for i in range(3):
        x = S.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=4, name=f"conv{i}")
        x = S.Activation(S.BatchNorm(x, name=f"bn{i}", fix_gamma=False), act_type="relu", name=f"relu{i}")
        x = S.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max", name=f"pool{i}")
    net = S.SoftmaxOutput(S.FullyConnected(S.Flatten(x, name="flatten"), num_hidden=3, name="fc"), name="softmax")
    inside = net.get_internals()
    picked = S.Group([inside[n] for n in ("relu0_output", "pool1_output", "flatten_output", "fc_output")])
    ex = picked.simple_bind(L.ctx, grad_req="null", data=(2, 3, 16, 16))
    init(L, ex, scale=0.4)
    outs = [L.np(y) for y in ex.forward(is_train=False, data=L.array(R(3).normal(size=(2, 3, 16, 16)).astype("f4")))]
    return [
        outs,
        picked.list_arguments(),
        picked.list_auxiliary_states(),
        inside.list_outputs(),
        [s.name for s in picked],
        len(inside.list_outputs()),
        inside["fc_output"].get_children().list_outputs(),
    ]


@program
def fixed_parameters_and_momentum(L: Any) -> list:
    S = L.sym
    body = S.Activation(S.FullyConnected(S.Variable("data"), num_hidden=5, name="fixed1"), act_type="relu")
    head = S.FullyConnected(body, num_hidden=3, name="new")
    net = S.SoftmaxOutput(head, name="softmax")
    requests = {n: "null" if n.startswith(("fixed", "data", "softmax")) else "write" for n in net.list_arguments()}
    ex = net.simple_bind(L.ctx, grad_req=requests, data=(6, 4), softmax_label=(6,))
    init(L, ex, scale=0.5)
    x, y = R(1).normal(size=(6, 4)).astype("f4"), R(2).integers(0, 3, 6).astype("f4")
    speed = {n: onp.zeros(a.shape, "f4") for n, a in ex.arg_dict.items() if requests[n] == "write"}
    before = L.np(ex.arg_dict["fixed1_weight"])
    losses = []
    for _ in range(5):
        p = L.np(ex.forward(is_train=True, data=L.array(x), softmax_label=L.array(y))[0])
        losses.append(-onp.log(p[onp.arange(6), y.astype(int)]).mean())
        ex.backward()
        for n, v in speed.items():
            v *= 0.9
            v -= 0.1 * L.np(ex.grad_dict[n])
            ex.arg_dict[n][:] = ex.arg_dict[n] + L.array(v)
    return [onp.array(losses), (before == L.np(ex.arg_dict["fixed1_weight"])).all(), speed]


@program
def siamese_contrastive(L: Any) -> list:
    S = L.sym
    w, b = S.Variable("shared_weight"), S.Variable("shared_bias")
    tower = lambda n: S.Activation(S.FullyConnected(S.Variable(n), weight=w, bias=b, num_hidden=4), act_type="tanh")
    left, right, same = tower("left"), tower("right"), S.Variable("same")
    d2 = S.sum(S.square(left - right), axis=1)
    far = S.maximum(1.0 - S.sqrt(d2 + 1e-6), 0)
    net = S.MakeLoss(S.mean(same * d2 + (1 - same) * S.square(far)), name="loss")
    ex = net.simple_bind(L.ctx, left=(5, 3), right=(5, 3), same=(5,))
    init(L, ex, scale=0.7)
    ex.arg_dict["same"][:] = L.array(onp.array([1, 0, 1, 0, 1], "f4"))
    y = L.np(ex.forward(is_train=True)[0])
    ex.backward()
    return [y, grads(L, ex), net.list_arguments()]


@program
def highway_and_maxout(L: Any) -> list:
    S = L.sym
    x = S.Variable("data")
    for i in range(3):
        t = S.Activation(S.FullyConnected(x, num_hidden=6, name=f"t{i}"), act_type="sigmoid")
        h = S.LeakyReLU(S.FullyConnected(x, num_hidden=6, name=f"h{i}"), act_type="leaky", slope=0.2)
        x = t * h + (1 - t) * x
    x = S.max(S.Reshape(x, shape=(0, 3, 2)), axis=2)
    net = S.LogisticRegressionOutput(x, name="out")
    ex = net.simple_bind(L.ctx, data=(4, 6), out_label=(4, 3))
    init(L, ex, scale=0.6)
    y = L.np(ex.forward(is_train=True)[0])
    ex.backward()
    return [y, grads(L, ex)]


@program
def variational_autoencoder(L: Any) -> list:
    S = L.sym
    x, noise = S.Variable("data"), S.Variable("noise")
    h = S.Activation(S.FullyConnected(x, num_hidden=8, name="e1"), act_type="softrelu")
    mu, logvar = S.FullyConnected(h, num_hidden=2, name="mu"), S.FullyConnected(h, num_hidden=2, name="logvar")
    z = mu + S.broadcast_mul(S.exp(0.5 * logvar), noise)
    y = S.sigmoid(
        S.FullyConnected(
            S.Activation(S.FullyConnected(z, num_hidden=8, name="d1"), act_type="tanh"), num_hidden=5, name="d2"
        )
    )
    kl = -0.5 * S.sum(1 + logvar - S.pow(mu, 2) - S.exp(logvar), axis=1)
    rec = -S.sum(x * S.log(y + 1e-8) + (1 - x) * S.log(1 - y + 1e-8), axis=1)
    net = S.Group([S.MakeLoss(S.mean(kl + rec), name="loss"), S.BlockGrad(y, name="decoded")])
    ex = net.simple_bind(L.ctx, data=(4, 5), noise=(4, 2))
    init(L, ex, scale=0.5)
    ex.arg_dict["data"][:] = L.array(R(5).random((4, 5)).astype("f4"))
    outs = [L.np(y) for y in ex.forward(is_train=True)]
    ex.backward()
    return [outs, grads(L, ex), net.list_outputs()]


@program
def policy_gradient_with_out_grads(L: Any) -> list:
    S = L.sym
    h = S.Activation(S.FullyConnected(S.Variable("data"), num_hidden=6, name="fc1"), act_type="relu")
    policy = S.SoftmaxActivation(S.FullyConnected(h, num_hidden=3, name="policy"), name="prob")
    value = S.FullyConnected(h, num_hidden=1, name="value")
    net = S.Group([S.log(policy), value])
    ex = net.simple_bind(L.ctx, data=(4, 5))
    init(L, ex, scale=0.5)
    log, v = (L.np(y) for y in ex.forward(is_train=True))
    chosen = onp.zeros((4, 3), "f4")
    chosen[onp.arange(4), [0, 2, 1, 1]] = -1
    reward = onp.array([[1], [0], [2], [-1]], "f4")
    ex.backward([L.array(chosen * (reward - v)), L.array(v - reward)])
    return [log, v, grads(L, ex)]


@program
def dense_blocks_and_global_pooling(L: Any) -> list:
    S = L.sym
    x = S.Convolution(S.Variable("data"), kernel=(3, 3), pad=(1, 1), num_filter=4, no_bias=True, name="stem")
    for i in range(3):
        y = S.Activation(S.BatchNorm(x, fix_gamma=True, eps=2e-5, momentum=0.9, name=f"bn{i}"), act_type="relu")
        y = S.Convolution(y, kernel=(3, 3), pad=(1, 1), num_filter=2, no_bias=True, name=f"conv{i}")
        x = S.Concat(x, S.Dropout(y, p=0.0), dim=1, name=f"concat{i}")
    x = S.Pooling(x, global_pool=True, kernel=(7, 7), pool_type="avg")
    net = S.SoftmaxOutput(
        S.FullyConnected(S.Flatten(x), num_hidden=3, name="fc"), name="softmax", grad_scale=0.5, normalization="batch"
    )
    ex = net.simple_bind(L.ctx, data=(2, 3, 8, 8))
    init(L, ex, skip=("softmax_label",), scale=0.5)
    out = []
    for _ in range(3):
        out.append(L.np(ex.forward(is_train=True)[0]))
        ex.backward()
    out.append(L.np(ex.forward(is_train=False)[0]))
    return [
        out,
        {n: g for n, g in grads(L, ex).items() if not n.endswith(("gamma", "label"))},
        {n: L.np(a) for n, a in ex.aux_dict.items()},
    ]


@program
def grouped_and_dilated_convolutions(L: Any) -> list:
    S = L.sym
    x = S.Convolution(S.Variable("data"), num_filter=6, kernel=(3, 3), dilate=(2, 2), pad=(2, 2), num_group=3, name="a")
    x = S.Deconvolution(x, num_filter=4, kernel=(4, 4), stride=(2, 2), pad=(1, 1), num_group=2, no_bias=False, name="b")
    x = S.LRN(x, nsize=3, alpha=1e-2)
    x = S.UpSampling(x, scale=2, sample_type="nearest", num_args=1)
    x = S.Pooling(
        x, kernel=(3, 3), stride=(2, 2), pool_type="avg", pooling_convention="full", count_include_pad=False, pad=(1, 1)
    )
    net = S.mean(S.square(x), name="y")
    ex = net.simple_bind(L.ctx, data=(2, 3, 7, 7))
    init(L, ex, scale=0.5)
    y = L.np(ex.forward(is_train=True)[0])
    ex.backward(L.array(onp.ones(y.shape, "f4")))
    return [y, grads(L, ex), net.infer_shape(data=(1, 3, 9, 9))[0]]


@program
def attention_with_masks(L: Any) -> list:
    S = L.sym
    q, k, n = S.Variable("q"), S.Variable("k"), S.Variable("lengths")
    keys = S.FullyConnected(k, num_hidden=4, flatten=False, name="keys")
    scores = S.batch_dot(q, keys, transpose_b=True) / 2
    swapped = S.SequenceMask(
        S.transpose(scores, axes=(2, 0, 1)), sequence_length=n, use_sequence_length=True, value=-1e9
    )
    weights = S.softmax(S.transpose(swapped, axes=(1, 2, 0)), axis=-1)
    y = S.LayerNorm(S.batch_dot(weights, keys), name="ln")
    net = S.Group([S.SequenceLast(S.SwapAxis(y, dim1=0, dim2=1)), S.BlockGrad(weights)])
    ex = net.simple_bind(L.ctx, q=(2, 3, 4), k=(2, 5, 6), lengths=(2,))
    init(L, ex, scale=0.8)
    ex.arg_dict["lengths"][:] = L.array(onp.array([5, 2], "f4"))
    outs = [L.np(y) for y in ex.forward(is_train=True)]
    ex.backward([L.array(onp.ones(outs[0].shape, "f4")), L.array(onp.ones(outs[1].shape, "f4"))])
    g = grads(L, ex)
    g.pop("lengths")
    return [outs, g]


@program
def forward_in_turns_with_two_executors(L: Any) -> list:
    """A GAN's way: one network's gradient of its data flows into the other."""
    S = L.sym
    gen = S.Activation(S.FullyConnected(S.Variable("z"), num_hidden=4, name="g"), act_type="tanh")
    dis = S.LogisticRegressionOutput(S.FullyConnected(S.Variable("data"), num_hidden=1, name="d"), S.Variable("label"))
    g = gen.simple_bind(L.ctx, z=(3, 2), grad_req="write")
    d = dis.simple_bind(L.ctx, data=(3, 4), label=(3, 1), grad_req="add")
    init(L, g, scale=0.7)
    init(L, d, seed=1, scale=0.7)
    out = []
    for step in range(3):
        fake = g.forward(is_train=True, z=L.array(R(step).normal(size=(3, 2)).astype("f4")))[0]
        for a in d.grad_arrays:
            a[:] = 0
        for data, label in ((fake, 0.0), (L.array(R(9).normal(size=(3, 4)).astype("f4")), 1.0)):
            d.forward(is_train=True, data=data, label=L.array(onp.full((3, 1), label, "f4")))
            d.backward()
        for n in ("d_weight", "d_bias"):
            d.arg_dict[n][:] = d.arg_dict[n] - 0.1 * d.grad_dict[n]
        d.grad_dict["data"][:] = 0
        d.forward(is_train=True, data=fake, label=L.array(onp.ones((3, 1), "f4")))
        d.backward()
        g.backward([d.grad_dict["data"]])
        for n in ("g_weight", "g_bias"):
            g.arg_dict[n][:] = g.arg_dict[n] - 0.1 * g.grad_dict[n]
        out += [L.np(fake), L.np(d.outputs[0]), grads(L, g)]
    return [out, grads(L, d)]


@program
def ranking_and_top_results(L: Any) -> list:
    S = L.sym
    x = S.Variable("x")
    both = S.topk(x, k=2, ret_typ="both", axis=1)
    net = S.Group([both[0], both[1], S.sort(x, is_ascend=False), S.argsort(x, axis=0), S.argmax(x, axis=1),
                   S.pick(x, S.argmin(x, axis=1)), S.one_hot(S.argmax(x, axis=1), depth=4, on_value=2.0),
                   S.gather_nd(x, S.Variable("at")), S.take(x, S.Variable("rows"), mode="wrap"),
                   S.where(S.broadcast_greater(x, S.mean(x, axis=1, keepdims=True)), x, S.zeros_like(x))])  # fmt: skip
    ex = net.simple_bind(L.ctx, grad_req="null", x=(3, 4), at=(2, 2), rows=(5,))
    ex.arg_dict["x"][:] = L.array(R(0).permutation(12).reshape(3, 4).astype("f4"))
    ex.arg_dict["at"][:] = L.array(onp.array([[0, 2], [1, 3]], "f4"))
    ex.arg_dict["rows"][:] = L.array(onp.array([0, 2, 4, -1, 1], "f4"))
    return [[L.np(y) for y in ex.forward()], net.infer_shape(x=(3, 4), at=(2, 2), rows=(5,))[1], len(net)]
