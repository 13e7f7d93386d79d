"""Assignment 3's rnn_layers.py and rnn.py: recurrent nets that describe pictures, forward and backward by hand."""

import numpy as np

from .gradient_check import eval_numerical_gradient_array, rel_error


def rnn_step_forward(x, prev_h, Wx, Wh, b):
    next_h = np.tanh(x.dot(Wx) + prev_h.dot(Wh) + b)
    return next_h, (x, prev_h, Wx, Wh, next_h)


def rnn_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, next_h = cache
    dforward = (1 - next_h**2) * dnext_h
    dx = dforward.dot(Wx.T)
    dWx = x.T.dot(dforward)
    dprev_h = dforward.dot(Wh.T)
    dWh = prev_h.T.dot(dforward)
    db = np.sum(dforward, axis=0)
    return dx, dprev_h, dWx, dWh, db


def rnn_forward(x, h0, Wx, Wh, b):
    N, T, D = x.shape
    _, H = h0.shape
    h = np.zeros((N, T, H))
    cache = []
    prev_h = h0
    for t in range(T):
        prev_h, step = rnn_step_forward(x[:, t, :], prev_h, Wx, Wh, b)
        h[:, t, :] = prev_h
        cache.append(step)
    return h, cache


def rnn_backward(dh, cache):
    N, T, H = dh.shape
    D = cache[0][0].shape[1]
    dx, dprev_h = np.zeros((N, T, D)), np.zeros((N, H))
    dWx, dWh, db = np.zeros((D, H)), np.zeros((H, H)), np.zeros((H,))
    for t in reversed(range(T)):
        dx[:, t, :], dprev_h, dWx_t, dWh_t, db_t = rnn_step_backward(dh[:, t, :] + dprev_h, cache[t])
        dWx += dWx_t
        dWh += dWh_t
        db += db_t
    return dx, dprev_h, dWx, dWh, db


def sigmoid(x):
    """A numerically stable version of the logistic sigmoid function."""
    pos_mask = x >= 0
    neg_mask = x < 0
    z = np.zeros_like(x)
    z[pos_mask] = np.exp(-x[pos_mask])
    z[neg_mask] = np.exp(x[neg_mask])
    top = np.ones_like(x)
    top[neg_mask] = z[neg_mask]
    return top / (1 + z)


def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    H = prev_h.shape[1]
    a = x.dot(Wx) + prev_h.dot(Wh) + b
    ai, af, ao, ag = np.split(a, 4, axis=1)
    i, f, o, g = sigmoid(ai), sigmoid(af), sigmoid(ao), np.tanh(ag)
    next_c = f * prev_c + i * g
    next_h = o * np.tanh(next_c)
    assert next_h.shape == (x.shape[0], H)
    return next_h, next_c, (x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c)


def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c = cache
    tanh_c = np.tanh(next_c)
    dc = dnext_c + o * (1 - tanh_c**2) * dnext_h
    da = np.hstack([
        i * (1 - i) * g * dc,
        f * (1 - f) * prev_c * dc,
        o * (1 - o) * tanh_c * dnext_h,
        (1 - g**2) * i * dc,
    ])  # fmt: skip
    return da.dot(Wx.T), da.dot(Wh.T), f * dc, x.T.dot(da), prev_h.T.dot(da), da.sum(axis=0)


def lstm_forward(x, h0, Wx, Wh, b):
    N, T, D = x.shape
    H = int(b.shape[0] / 4)
    h, cache = np.zeros([N, T, H]), {}
    prev_h, prev_c = h0, np.zeros(h0.shape)
    for t in range(T):
        h[:, t], prev_c, cache[t] = lstm_step_forward(x[:, t], prev_h, prev_c, Wx, Wh, b)
        prev_h = h[:, t]
    return h, cache


def lstm_backward(dh, cache):
    N, T, H = dh.shape
    x, Wx, Wh = cache[0][0], cache[0][3], cache[0][4]
    dx = np.empty((N, T, x.shape[1]))
    dWx, dWh, db = np.zeros_like(Wx), np.zeros_like(Wh), np.zeros(4 * H)
    dprev_h, dprev_c = np.zeros((N, H)), np.zeros((N, H))
    for t in range(T - 1, -1, -1):
        dx[:, t], dprev_h, dprev_c, *rest = lstm_step_backward(dh[:, t] + dprev_h, dprev_c, cache[t])
        for total, part in zip((dWx, dWh, db), rest):
            total += part
    return dx, dprev_h, dWx, dWh, db


def attention_forward(x, A, Wx, Wh, Wattn, b):
    """An LSTM that looks at the 4 x 4 places of a picture's features A [N, H, 4, 4] (the course since 2021)."""
    N, H, D_a, _ = A.shape
    h0 = A.mean(axis=(2, 3))
    prev_h, prev_c = h0, h0
    h = np.zeros((N, x.shape[1], H))
    for t in range(x.shape[1]):
        weights = prev_h.reshape(N, 1, H) @ A.reshape(N, H, -1) / np.sqrt(H)
        weights = np.exp(weights - weights.max(axis=2, keepdims=True))
        weights /= weights.sum(axis=2, keepdims=True)
        attn = np.squeeze(A.reshape(N, H, D_a**2) @ weights.reshape(N, D_a**2, 1), axis=2)
        a = x[:, t].dot(Wx) + prev_h.dot(Wh) + attn.dot(Wattn) + b
        i, f, o = (sigmoid(a[:, k * H : (k + 1) * H]) for k in range(3))
        prev_c = f * prev_c + i * np.tanh(a[:, 3 * H :])
        prev_h = o * np.tanh(prev_c)
        h[:, t, :] = prev_h
    return h


def word_embedding_forward(x, W):
    out = W[x, :]
    return out, (x, W)


def word_embedding_backward(dout, cache):
    x, W = cache
    dW = np.zeros_like(W)
    np.add.at(dW, x, dout)
    return dW


def temporal_affine_forward(x, w, b):
    N, T, D = x.shape
    M = b.shape[0]
    out = x.reshape(N * T, D).dot(w).reshape(N, T, M) + b
    return out, (x, w, b, out)


def temporal_affine_backward(dout, cache):
    x, w, b, out = cache
    N, T, D = x.shape
    M = b.shape[0]
    dx = dout.reshape(N * T, M).dot(w.T).reshape(N, T, D)
    dw = dout.reshape(N * T, M).T.dot(x.reshape(N * T, D)).T
    db = dout.sum(axis=(0, 1))
    return dx, dw, db


def temporal_softmax_loss(x, y, mask):
    N, T, V = x.shape
    x_flat = x.reshape(N * T, V)
    y_flat = y.reshape(N * T)
    mask_flat = mask.reshape(N * T)
    probs = np.exp(x_flat - np.max(x_flat, axis=1, keepdims=True))
    probs /= np.sum(probs, axis=1, keepdims=True)
    loss = -np.sum(mask_flat * np.log(probs[np.arange(N * T), y_flat])) / N
    dx_flat = probs.copy()
    dx_flat[np.arange(N * T), y_flat] -= 1
    dx_flat /= N
    dx_flat *= mask_flat[:, None]
    return loss, dx_flat.reshape(N, T, V)


class CaptioningRNN(object):
    def __init__(self, word_to_idx, input_dim=512, wordvec_dim=128, hidden_dim=128, cell_type="rnn", dtype=np.float32):
        if cell_type not in {"rnn", "lstm"}:
            raise ValueError('Invalid cell_type "%s"' % cell_type)
        self.cell_type = cell_type
        self.dtype = dtype
        self.idx_to_word = {i: w for w, i in word_to_idx.items()}
        self.params = {}
        vocab_size = len(word_to_idx)
        self._null = word_to_idx["<NULL>"]
        self._start = word_to_idx.get("<START>", None)
        self.params["W_embed"] = np.random.randn(vocab_size, wordvec_dim)
        self.params["W_embed"] /= 100
        self.params["W_proj"] = np.random.randn(input_dim, hidden_dim)
        self.params["W_proj"] /= np.sqrt(input_dim)
        self.params["b_proj"] = np.zeros(hidden_dim)
        dim_mul = {"lstm": 4, "rnn": 1}[cell_type]
        self.params["Wx"] = np.random.randn(wordvec_dim, dim_mul * hidden_dim)
        self.params["Wx"] /= np.sqrt(wordvec_dim)
        self.params["Wh"] = np.random.randn(hidden_dim, dim_mul * hidden_dim)
        self.params["Wh"] /= np.sqrt(hidden_dim)
        self.params["b"] = np.zeros(dim_mul * hidden_dim)
        self.params["W_vocab"] = np.random.randn(hidden_dim, vocab_size)
        self.params["W_vocab"] /= np.sqrt(hidden_dim)
        self.params["b_vocab"] = np.zeros(vocab_size)
        for k, v in self.params.items():
            self.params[k] = v.astype(self.dtype)

    def loss(self, features, captions):
        captions_in = captions[:, :-1]
        captions_out = captions[:, 1:]
        mask = captions_out != self._null
        p, grads = self.params, {}
        forward, backward = (rnn_forward, rnn_backward) if self.cell_type == "rnn" else (lstm_forward, lstm_backward)
        h0 = features.dot(p["W_proj"]) + p["b_proj"]
        words, embed_cache = word_embedding_forward(captions_in, p["W_embed"])
        h, cache = forward(words, h0, p["Wx"], p["Wh"], p["b"])
        scores, affine_cache = temporal_affine_forward(h, p["W_vocab"], p["b_vocab"])
        loss, dscores = temporal_softmax_loss(scores, captions_out, mask)
        dh, grads["W_vocab"], grads["b_vocab"] = temporal_affine_backward(dscores, affine_cache)
        dwords, dh0, grads["Wx"], grads["Wh"], grads["b"] = backward(dh, cache)
        grads["W_embed"] = word_embedding_backward(dwords, embed_cache)
        grads["W_proj"] = features.T.dot(dh0)
        grads["b_proj"] = dh0.sum(axis=0)
        return loss, grads

    def sample(self, features, max_length=30):
        N = features.shape[0]
        captions = self._null * np.ones((N, max_length), dtype=np.int32)
        p = self.params
        h = features.dot(p["W_proj"]) + p["b_proj"]
        c = np.zeros_like(h)
        captions[:, 0] = self._start
        word = np.repeat(self._start, N)
        for t in range(1, max_length):
            x = p["W_embed"][word]
            if self.cell_type == "rnn":
                h, _ = rnn_step_forward(x, h, p["Wx"], p["Wh"], p["b"])
            else:
                h, c, _ = lstm_step_forward(x, h, c, p["Wx"], p["Wh"], p["b"])
            word = np.argmax(h.dot(p["W_vocab"]) + p["b_vocab"], axis=1)
            captions[:, t] = word
        return captions


def decode_captions(captions, idx_to_word):
    singleton = False
    if captions.ndim == 1:
        singleton = True
        captions = captions[None]
    decoded = []
    N, T = captions.shape
    for i in range(N):
        words = []
        for t in range(T):
            word = idx_to_word[captions[i, t]]
            if word != "<NULL>":
                words.append(word)
            if word == "<END>":
                break
        decoded.append(" ".join(words))
    return decoded[0] if singleton else decoded


def main():
    np.random.seed(231)
    results = {}
    N, D, T, H = 2, 3, 4, 5
    for name, forward, backward, k in (("rnn", rnn_forward, rnn_backward, 1), ("lstm", lstm_forward, lstm_backward, 4)):
        x, h0 = np.random.randn(N, T, D), np.random.randn(N, H)
        Wx, Wh, b = np.random.randn(D, k * H), np.random.randn(H, k * H), np.random.randn(k * H)
        out, cache = forward(x, h0, Wx, Wh, b)
        dout = np.random.randn(*out.shape)
        grads = backward(dout, cache)
        numeric = eval_numerical_gradient_array(lambda Wh: forward(x, h0, Wx, Wh, b)[0], Wh, dout)
        assert rel_error(numeric, grads[3]) < 1e-5
        numeric = eval_numerical_gradient_array(lambda h0: forward(x, h0, Wx, Wh, b)[0], h0, dout)
        assert rel_error(numeric, grads[1]) < 1e-5
        results[name] = out, grads
    A, Wattn = np.random.randn(N, H, 4, 4), np.random.randn(H, 4 * H)
    results["attention"] = attention_forward(x, A, Wx, Wh, Wattn, b)

    x = np.asarray([[0, 3, 1, 2], [2, 1, 0, 3]])
    W = np.linspace(0, 1, num=5 * 3).reshape(5, 3)
    out, cache = word_embedding_forward(x, W)
    results["embedding"] = out, word_embedding_backward(np.random.randn(*out.shape), cache)
    mask = np.random.rand(4, 6) > 0.3
    scores, labels = np.random.randn(4, 6, 7), np.random.randint(7, size=(4, 6))
    results["temporal softmax"] = temporal_softmax_loss(scores, labels, mask)

    word_to_idx = {"<NULL>": 0, "<START>": 1, "<END>": 2, "cat": 3, "dog": 4, "runs": 5, "sleeps": 6}
    features = np.random.randn(12, 8)
    captions = np.zeros((12, 5), dtype=np.int32)
    captions[:, 0] = 1
    captions[:, 1] = np.where(features[:, 0] > 0, 3, 4)
    captions[:, 2] = np.where(features[:, 1] > 0, 5, 6)
    captions[:, 3] = 2
    for cell, dtype in (("rnn", np.float64), ("lstm", np.float32)):
        model = CaptioningRNN(word_to_idx, 8, 10, 12, cell, dtype)
        losses, state = [], {}
        for _ in range(25):
            batch = np.random.choice(12, 6, replace=False)
            loss, grads = model.loss(features[batch], captions[batch])
            losses.append(loss)
            for name, grad in grads.items():
                moment = state.setdefault(name, np.zeros_like(grad))
                moment *= 0.9
                moment += grad
                model.params[name] -= 0.05 * moment
        sampled = model.sample(features, 5)
        results["captions, " + cell] = losses, model.params, sampled, decode_captions(sampled, model.idx_to_word)
        results["one caption, " + cell] = decode_captions(captions[0], model.idx_to_word)
    return results
