"""Assignment 2's layers.py and fast_layers.py, as students hand them in: forward and backward of every layer, by hand."""

import numpy as np


def affine_forward(x, w, b):
    out = x.reshape(x.shape[0], -1).dot(w) + b
    cache = (x, w, b)
    return out, cache


def affine_backward(dout, cache):
    x, w, b = cache
    dx = np.dot(dout, w.T).reshape(x.shape)
    dw = np.dot(x.reshape(x.shape[0], np.prod(x.shape[1:])).T, dout)
    db = np.sum(dout, axis=0)
    return dx, dw, db


def relu_forward(x):
    out = x * (x > 0)
    return out, x


def relu_backward(dout, cache):
    x = cache
    dx = np.array(dout, copy=True)
    dx[x <= 0] = 0
    return dx


def batchnorm_forward(x, gamma, beta, bn_param):
    mode = bn_param["mode"]
    eps = bn_param.get("eps", 1e-5)
    momentum = bn_param.get("momentum", 0.9)
    N, D = x.shape
    running_mean = bn_param.get("running_mean", np.zeros(D, dtype=x.dtype))
    running_var = bn_param.get("running_var", np.zeros(D, dtype=x.dtype))
    out, cache = None, None
    if mode == "train":
        mu = 1.0 / N * np.sum(x, axis=0)
        xmu = x - mu
        sq = xmu**2
        var = 1.0 / N * np.sum(sq, axis=0)
        sqrtvar = np.sqrt(var + eps)
        ivar = 1.0 / sqrtvar
        xhat = xmu * ivar
        out = gamma * xhat + beta
        cache = (xhat, gamma, xmu, ivar, sqrtvar, var, eps)
        running_mean = momentum * running_mean + (1 - momentum) * mu
        running_var = momentum * running_var + (1 - momentum) * var
    elif mode == "test":
        out = gamma * ((x - running_mean) / np.sqrt(running_var + eps)) + beta
    else:
        raise ValueError('Invalid forward batchnorm mode "%s"' % mode)
    bn_param["running_mean"] = running_mean
    bn_param["running_var"] = running_var
    return out, cache


def batchnorm_backward(dout, cache):
    xhat, gamma, xmu, ivar, sqrtvar, var, eps = cache
    N, D = dout.shape
    dbeta = np.sum(dout, axis=0)
    dgamma = np.sum(dout * xhat, axis=0)
    dxhat = dout * gamma
    divar = np.sum(dxhat * xmu, axis=0)
    dxmu1 = dxhat * ivar
    dsqrtvar = -1.0 / (sqrtvar**2) * divar
    dvar = 0.5 * 1.0 / np.sqrt(var + eps) * dsqrtvar
    dsq = 1.0 / N * np.ones((N, D)) * dvar
    dxmu2 = 2 * xmu * dsq
    dx1 = dxmu1 + dxmu2
    dmu = -1 * np.sum(dx1, axis=0)
    dx2 = 1.0 / N * np.ones((N, D)) * dmu
    return dx1 + dx2, dgamma, dbeta


def batchnorm_backward_alt(dout, cache):
    xhat, gamma, xmu, ivar, *_ = cache
    N = dout.shape[0]
    dgamma = np.einsum("ij,ij->j", dout, xhat)
    dbeta = dout.sum(0)
    dx = (gamma * ivar / N) * (N * dout - xhat * dgamma - dbeta)
    return dx, dgamma, dbeta


def layernorm_forward(x, gamma, beta, ln_param):
    eps = ln_param.get("eps", 1e-5)
    x_T = x.T
    mu = np.mean(x_T, axis=0)
    std = np.sqrt(np.var(x_T, axis=0) + eps)
    x_norm = ((x_T - mu) / std).T
    return gamma * x_norm + beta, {"gamma": gamma, "x_norm": x_norm, "std": std}


def layernorm_backward(dout, cache):
    x_norm, std = cache["x_norm"], cache["std"]
    D = dout.shape[1]
    dxhat = dout * cache["gamma"]
    dx = 1.0 / (D * std[:, None]) * (
        D * dxhat - np.sum(dxhat, axis=1, keepdims=True) - x_norm * np.sum(dxhat * x_norm, axis=1, keepdims=True)
    )  # fmt: skip
    return dx, np.sum(dout * x_norm, axis=0), np.sum(dout, axis=0)


def dropout_forward(x, dropout_param):
    p, mode = dropout_param["p"], dropout_param["mode"]
    if "seed" in dropout_param:
        np.random.seed(dropout_param["seed"])
    mask = None
    out = None
    if mode == "train":
        mask = (np.random.rand(*x.shape) < p) / p
        out = x * mask
    elif mode == "test":
        out = x
    cache = (dropout_param, mask)
    out = out.astype(x.dtype, copy=False)
    return out, cache


def dropout_backward(dout, cache):
    dropout_param, mask = cache
    return dout * mask if dropout_param["mode"] == "train" else dout


def conv_forward_naive(x, w, b, conv_param):
    stride, pad = conv_param["stride"], conv_param["pad"]
    N, C, H, W = x.shape
    F, C, HH, WW = w.shape
    x_pad = np.pad(x, ((0,), (0,), (pad,), (pad,)), "constant")
    Hout = 1 + (H + 2 * pad - HH) // stride
    Wout = int(1 + (W + 2 * pad - WW) / stride)
    out = np.zeros((N, F, Hout, Wout))
    for n in range(N):
        for f in range(F):
            for i in range(Hout):
                for j in range(Wout):
                    window = x_pad[n, :, i * stride : i * stride + HH, j * stride : j * stride + WW]
                    out[n, f, i, j] = np.sum(window * w[f, :]) + b[f]
    return out, (x, w, b, conv_param)


def conv_backward_naive(dout, cache):
    x, w, b, conv_param = cache
    stride, pad = conv_param["stride"], conv_param["pad"]
    N, F, Hout, Wout = dout.shape
    HH, WW = w.shape[2:]
    x_pad = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)], mode="constant", constant_values=0)
    dx_pad = np.zeros_like(x_pad)
    dw = np.zeros_like(w)
    db = np.zeros_like(b)
    for n in range(N):
        for f in range(F):
            db[f] += np.sum(dout[n, f])
            for i in range(Hout):
                for j in range(Wout):
                    rows, cols = slice(i * stride, i * stride + HH), slice(j * stride, j * stride + WW)
                    dw[f] += x_pad[n, :, rows, cols] * dout[n, f, i, j]
                    dx_pad[n, :, rows, cols] += w[f] * dout[n, f, i, j]
    dx = dx_pad[:, :, pad : pad + x.shape[2], pad : pad + x.shape[3]]
    return dx, dw, db


def max_pool_forward_naive(x, pool_param):
    HH, WW, stride = (pool_param[k] for k in ("pool_height", "pool_width", "stride"))
    N, C, H, W = x.shape
    H_out, W_out = (H - HH) // stride + 1, (W - WW) // stride + 1
    out = np.empty([N, C, H_out, W_out])
    for i in range(H_out):
        for j in range(W_out):
            patch = x[:, :, i * stride : i * stride + HH, j * stride : j * stride + WW]
            out[:, :, i, j] = np.max(patch, axis=(2, 3))
    return out, (x, pool_param)


def max_pool_backward_naive(dout, cache):
    x, pool_param = cache
    HH, WW, stride = (pool_param[k] for k in ("pool_height", "pool_width", "stride"))
    N, C, H_out, W_out = dout.shape
    dx = np.zeros_like(x)
    for n in range(N):
        for c in range(C):
            for i in range(H_out):
                for j in range(W_out):
                    patch = x[n, c, i * stride : i * stride + HH, j * stride : j * stride + WW]
                    r, s = np.unravel_index(np.argmax(patch, axis=None), patch.shape)
                    dx[n, c, i * stride + r, j * stride + s] += dout[n, c, i, j]
    return dx


def max_pool_forward_reshape(x, pool_param):
    N, C, H, W = x.shape
    pool_height, pool_width = pool_param["pool_height"], pool_param["pool_width"]
    assert H % pool_height == 0 and W % pool_height == 0
    x_reshaped = x.reshape(N, C, H // pool_height, pool_height, W // pool_width, pool_width)
    out = x_reshaped.max(axis=3).max(axis=4)
    return out, (x, x_reshaped, out)


def max_pool_backward_reshape(dout, cache):
    x, x_reshaped, out = cache
    dx_reshaped = np.zeros_like(x_reshaped)
    out_newaxis = out[:, :, :, np.newaxis, :, np.newaxis]
    mask = x_reshaped == out_newaxis
    dout_newaxis = dout[:, :, :, np.newaxis, :, np.newaxis]
    dout_broadcast, _ = np.broadcast_arrays(dout_newaxis, dx_reshaped)
    dx_reshaped[mask] = dout_broadcast[mask]
    dx_reshaped /= np.sum(mask, axis=(3, 5), keepdims=True)
    return dx_reshaped.reshape(x.shape)


# ------------------------------------------------------------------ im2col: indices, strides
def get_im2col_indices(x_shape, field_height, field_width, padding=1, stride=1):
    N, C, H, W = x_shape
    assert (H + 2 * padding - field_height) % stride == 0
    assert (W + 2 * padding - field_width) % stride == 0
    out_height = (H + 2 * padding - field_height) // stride + 1
    out_width = (W + 2 * padding - field_width) // stride + 1
    i0 = np.repeat(np.arange(field_height), field_width)
    i0 = np.tile(i0, C)
    i1 = stride * np.repeat(np.arange(out_height), out_width)
    j0 = np.tile(np.arange(field_width), field_height * C)
    j1 = stride * np.tile(np.arange(out_width), out_height)
    i = i0.reshape(-1, 1) + i1.reshape(1, -1)
    j = j0.reshape(-1, 1) + j1.reshape(1, -1)
    k = np.repeat(np.arange(C), field_height * field_width).reshape(-1, 1)
    return (k, i, j)


def im2col_indices(x, field_height, field_width, padding=1, stride=1):
    p = padding
    x_padded = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)), mode="constant")
    k, i, j = get_im2col_indices(x.shape, field_height, field_width, padding, stride)
    cols = x_padded[:, k, i, j]
    C = x.shape[1]
    return cols.transpose(1, 2, 0).reshape(field_height * field_width * C, -1)


def col2im_indices(cols, x_shape, field_height=3, field_width=3, padding=1, stride=1):
    N, C, H, W = x_shape
    H_padded, W_padded = H + 2 * padding, W + 2 * padding
    x_padded = np.zeros((N, C, H_padded, W_padded), dtype=cols.dtype)
    k, i, j = get_im2col_indices(x_shape, field_height, field_width, padding, stride)
    cols_reshaped = cols.reshape(C * field_height * field_width, -1, N)
    cols_reshaped = cols_reshaped.transpose(2, 0, 1)
    np.add.at(x_padded, (slice(None), k, i, j), cols_reshaped)
    if padding == 0:
        return x_padded
    return x_padded[:, :, padding:-padding, padding:-padding]


def conv_forward_im2col(x, w, b, conv_param):
    N, C, H, W = x.shape
    num_filters, _, filter_height, filter_width = w.shape
    stride, pad = conv_param["stride"], conv_param["pad"]
    out_height = (H + 2 * pad - filter_height) // stride + 1
    out_width = (W + 2 * pad - filter_width) // stride + 1
    out = np.zeros((N, num_filters, out_height, out_width), dtype=x.dtype)
    x_cols = im2col_indices(x, w.shape[2], w.shape[3], pad, stride)
    res = w.reshape((w.shape[0], -1)).dot(x_cols) + b.reshape(-1, 1)
    out = res.reshape(w.shape[0], out.shape[2], out.shape[3], x.shape[0])
    out = out.transpose(3, 0, 1, 2)
    return out, (x, w, b, conv_param, x_cols)


def conv_backward_im2col(dout, cache):
    x, w, b, conv_param, x_cols = cache
    stride, pad = conv_param["stride"], conv_param["pad"]
    db = np.sum(dout, axis=(0, 2, 3))
    num_filters, _, filter_height, filter_width = w.shape
    dout_reshaped = dout.transpose(1, 2, 3, 0).reshape(num_filters, -1)
    dw = dout_reshaped.dot(x_cols.T).reshape(w.shape)
    dx_cols = w.reshape(num_filters, -1).T.dot(dout_reshaped)
    return col2im_indices(dx_cols, x.shape, filter_height, filter_width, pad, stride), dw, db


def conv_forward_strides(x, w, b, conv_param):
    N, C, H, W = x.shape
    F, _, HH, WW = w.shape
    stride, pad = conv_param["stride"], conv_param["pad"]
    p = pad
    x_padded = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)), mode="constant")
    H += 2 * pad
    W += 2 * pad
    out_h = (H - HH) // stride + 1
    out_w = (W - WW) // stride + 1
    shape = (C, HH, WW, N, out_h, out_w)
    strides = (H * W, W, 1, C * H * W, stride * W, stride)
    strides = x.itemsize * np.array(strides)
    x_stride = np.lib.stride_tricks.as_strided(x_padded, shape=shape, strides=strides)
    x_cols = np.ascontiguousarray(x_stride)
    x_cols.shape = (C * HH * WW, N * out_h * out_w)
    res = w.reshape(F, -1).dot(x_cols) + b.reshape(-1, 1)
    res.shape = (F, N, out_h, out_w)
    out = res.transpose(1, 0, 2, 3)
    # a contiguous array is what the next layer wants
    out = np.ascontiguousarray(out)
    return out, (x, w, b, conv_param)


# ------------------------------------------------------------------ normalisation of images
def spatial_batchnorm_forward(x, gamma, beta, bn_param):
    N, C, H, W = x.shape
    out, cache = batchnorm_forward(x.transpose(0, 2, 3, 1).reshape(N * H * W, C), gamma, beta, bn_param)
    return out.reshape(N, H, W, C).transpose(0, 3, 1, 2), cache


def spatial_batchnorm_backward(dout, cache):
    N, C, H, W = dout.shape
    dx, dgamma, dbeta = batchnorm_backward_alt(np.moveaxis(dout, 1, -1).reshape(-1, C), cache)
    return np.moveaxis(dx.reshape(N, H, W, C), -1, 1), dgamma, dbeta


def spatial_groupnorm_forward(x, gamma, beta, G, gn_param):
    eps = gn_param.get("eps", 1e-5)
    N, C, H, W = x.shape
    x_group = np.reshape(x, (N, G, C // G, H, W))
    mean = np.mean(x_group, axis=(2, 3, 4), keepdims=True)
    var = np.var(x_group, axis=(2, 3, 4), keepdims=True)
    x_norm = ((x_group - mean) / np.sqrt(var + eps)).reshape(N, C, H, W)
    return x_norm * gamma + beta, (G, x_norm, var, eps, gamma)


def spatial_groupnorm_backward(dout, cache):
    G, x_norm, var, eps, gamma = cache
    N, C, H, W = dout.shape
    dgamma = np.sum(dout * x_norm, axis=(0, 2, 3), keepdims=True)
    dbeta = np.sum(dout, axis=(0, 2, 3), keepdims=True)
    dxhat, xhat = ((t).reshape(N, G, C // G, H, W) for t in (dout * gamma, x_norm))
    M = C // G * H * W
    across = dict(axis=(2, 3, 4), keepdims=True)
    dx = (dxhat - dxhat.sum(**across) / M - xhat * (dxhat * xhat).sum(**across) / M) / np.sqrt(var + eps)
    return dx.reshape((N, C, H, W)), dgamma, dbeta


# ------------------------------------------------------------------ losses
def svm_loss(x, y):
    N = x.shape[0]
    correct_class_scores = x[np.arange(N), y]
    margins = np.maximum(0, x - correct_class_scores[:, np.newaxis] + 1.0)
    margins[np.arange(N), y] = 0
    loss = np.sum(margins) / N
    num_pos = np.sum(margins > 0, axis=1)
    dx = np.zeros_like(x)
    dx[margins > 0] = 1
    dx[np.arange(N), y] -= num_pos
    dx /= N
    return loss, dx


def softmax_loss(x, y):
    shifted_logits = x - np.max(x, axis=1, keepdims=True)
    Z = np.sum(np.exp(shifted_logits), axis=1, keepdims=True)
    log_probs = shifted_logits - np.log(Z)
    probs = np.exp(log_probs)
    N = x.shape[0]
    loss = -np.sum(log_probs[np.arange(N), y]) / N
    dx = probs.copy()
    dx[np.arange(N), y] -= 1
    dx /= N
    return loss, dx
