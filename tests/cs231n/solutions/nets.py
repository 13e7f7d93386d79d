"""Assignment 2's nets, optim.py, solver.py and data_utils.py: fully connected and convolutional nets, trained by hand."""

import os
import pickle
import tempfile

import numpy as np

from . import layers as L


# ------------------------------------------------------------------ optim.py
def sgd(w, dw, config=None):
    if config is None:
        config = {}
    config.setdefault("learning_rate", 1e-2)
    w -= config["learning_rate"] * dw
    return w, config


def sgd_momentum(w, dw, config=None):
    if config is None:
        config = {}
    config.setdefault("learning_rate", 1e-2)
    config.setdefault("momentum", 0.9)
    v = config.get("velocity", np.zeros_like(w))
    v = config["momentum"] * v - config["learning_rate"] * dw
    next_w = w + v
    config["velocity"] = v
    return next_w, config


def rmsprop(w, dw, config=None):
    if config is None:
        config = {}
    config.setdefault("learning_rate", 1e-2)
    config.setdefault("decay_rate", 0.99)
    config.setdefault("epsilon", 1e-8)
    config.setdefault("cache", np.zeros_like(w))
    config["cache"] = config["decay_rate"] * config["cache"] + (1 - config["decay_rate"]) * (dw**2)
    next_w = w - config["learning_rate"] * dw / (np.sqrt(config["cache"]) + config["epsilon"])
    return next_w, config


def adam(w, dw, config=None):
    if config is None:
        config = {}
    for name, value in (("learning_rate", 1e-3), ("beta1", 0.9), ("beta2", 0.999), ("epsilon", 1e-8), ("t", 0)):
        config.setdefault(name, value)
    config.setdefault("m", np.zeros_like(w))
    config.setdefault("v", np.zeros_like(w))
    config["t"] += 1
    config["m"] = config["beta1"] * config["m"] + (1 - config["beta1"]) * dw
    config["v"] = config["beta2"] * config["v"] + (1 - config["beta2"]) * np.power(dw, 2)
    mb = config["m"] / (1 - config["beta1"] ** config["t"])
    vb = config["v"] / (1 - config["beta2"] ** config["t"])
    w += -config["learning_rate"] * mb / (np.sqrt(vb) + config["epsilon"])
    return w, config


# ------------------------------------------------------------------ fc_net.py, cnn.py
class FullyConnectedNet(object):
    def __init__(self, hidden_dims, input_dim=3 * 32 * 32, num_classes=10, dropout=1, normalization=None, reg=0.0,
                 weight_scale=1e-2, dtype=np.float32, seed=None):  # fmt: skip
        self.normalization = normalization
        self.use_dropout = dropout != 1
        self.reg = reg
        self.num_layers = 1 + len(hidden_dims)
        self.dtype = dtype
        self.params = {}
        dims = np.hstack((input_dim, hidden_dims, num_classes))
        for i in range(self.num_layers):
            self.params["W%d" % (i + 1)] = np.random.normal(0, weight_scale, (dims[i], dims[i + 1]))
            self.params["b%d" % (i + 1)] = np.zeros(dims[i + 1])
            if normalization and i < self.num_layers - 1:
                self.params["gamma%d" % (i + 1)] = np.ones(dims[i + 1])
                self.params["beta%d" % (i + 1)] = np.zeros(dims[i + 1])
        self.dropout_param = {}
        if self.use_dropout:
            self.dropout_param = {"mode": "train", "p": dropout}
            if seed is not None:
                self.dropout_param["seed"] = seed
        self.bn_params = []
        if self.normalization == "batchnorm":
            self.bn_params = [{"mode": "train"} for i in range(self.num_layers - 1)]
        if self.normalization == "layernorm":
            self.bn_params = [{} for i in range(self.num_layers - 1)]
        for k, v in self.params.items():
            self.params[k] = v.astype(dtype)

    def loss(self, X, y=None):
        X = X.astype(self.dtype)
        mode = "test" if y is None else "train"
        if self.use_dropout:
            self.dropout_param["mode"] = mode
        if self.normalization == "batchnorm":
            for bn_param in self.bn_params:
                bn_param["mode"] = mode
        norms = {"batchnorm": L.batchnorm_forward, "layernorm": L.layernorm_forward}
        backs = {"batchnorm": L.batchnorm_backward, "layernorm": L.layernorm_backward}
        p, caches, out = self.params, [], X
        for i in range(1, self.num_layers):
            steps = {}
            out, steps["fc"] = L.affine_forward(out, p[f"W{i}"], p[f"b{i}"])
            if self.normalization:
                out, steps["norm"] = norms[self.normalization](
                    out, p[f"gamma{i}"], p[f"beta{i}"], self.bn_params[i - 1]
                )
            out, steps["relu"] = L.relu_forward(out)
            if self.use_dropout:
                out, steps["drop"] = L.dropout_forward(out, self.dropout_param)
            caches.append(steps)
        last = str(self.num_layers)
        scores, cache = L.affine_forward(out, p["W" + last], p["b" + last])
        if mode == "test":
            return scores
        loss, dout = L.softmax_loss(scores, y)
        loss += 0.5 * self.reg * sum(np.sum(p[f"W{i + 1}"] ** 2) for i in range(self.num_layers))
        grads = {}
        dout, grads["W" + last], grads["b" + last] = L.affine_backward(dout, cache)
        for i in range(self.num_layers - 1, 0, -1):
            steps = caches[i - 1]
            if self.use_dropout:
                dout = L.dropout_backward(dout, steps["drop"])
            dout = L.relu_backward(dout, steps["relu"])
            if self.normalization:
                dout, grads[f"gamma{i}"], grads[f"beta{i}"] = backs[self.normalization](dout, steps["norm"])
            dout, grads[f"W{i}"], grads[f"b{i}"] = L.affine_backward(dout, steps["fc"])
        for i in range(1, self.num_layers + 1):
            grads[f"W{i}"] += self.reg * p[f"W{i}"]
        return loss, grads


class ThreeLayerConvNet(object):
    """conv - relu - 2x2 max pool - affine - relu - affine - softmax"""

    def __init__(self, input_dim=(3, 32, 32), num_filters=32, filter_size=7, hidden_dim=100, num_classes=10,
                 weight_scale=1e-3, reg=0.0, dtype=np.float32):  # fmt: skip
        self.params = {}
        self.reg = reg
        self.dtype = dtype
        C, H, W = input_dim
        self.params["W1"] = weight_scale * np.random.randn(num_filters, C, filter_size, filter_size)
        self.params["b1"] = np.zeros(num_filters)
        self.params["W2"] = weight_scale * np.random.randn(num_filters * H * W // 4, hidden_dim)
        self.params["b2"] = np.zeros(hidden_dim)
        self.params["W3"] = weight_scale * np.random.randn(hidden_dim, num_classes)
        self.params["b3"] = np.zeros(num_classes)
        for k, v in self.params.items():
            self.params[k] = v.astype(dtype)

    def loss(self, X, y=None):
        W1, b1, W2, b2, W3, b3 = [self.params[k] for k in ("W1", "b1", "W2", "b2", "W3", "b3")]
        conv_param = {"stride": 1, "pad": (W1.shape[2] - 1) // 2}
        pool_param = {"pool_height": 2, "pool_width": 2, "stride": 2}
        a, conv_cache = L.conv_forward_im2col(X, W1, b1, conv_param)
        s, relu_cache = L.relu_forward(a)
        out, pool_cache = L.max_pool_forward_reshape(s, pool_param)
        hidden, fc_cache = L.affine_forward(out, W2, b2)
        hidden, hidden_cache = L.relu_forward(hidden)
        scores, last_cache = L.affine_forward(hidden, W3, b3)
        if y is None:
            return scores
        grads = {}
        loss, dout = L.softmax_loss(scores, y)
        loss += 0.5 * self.reg * (np.sum(W1**2) + np.sum(W2**2) + np.sum(W3**2))
        dout, grads["W3"], grads["b3"] = L.affine_backward(dout, last_cache)
        dout = L.relu_backward(dout, hidden_cache)
        dout, grads["W2"], grads["b2"] = L.affine_backward(dout, fc_cache)
        dout = L.max_pool_backward_reshape(dout, pool_cache)
        dout = L.relu_backward(dout, relu_cache)
        dx, grads["W1"], grads["b1"] = L.conv_backward_im2col(dout, conv_cache)
        for name in ("W1", "W2", "W3"):
            grads[name] += self.reg * self.params[name]
        return loss, grads


# ------------------------------------------------------------------ solver.py
class Solver(object):
    def __init__(self, model, data, **kwargs):
        self.model = model
        self.X_train, self.y_train = data["X_train"], data["y_train"]
        self.X_val, self.y_val = data["X_val"], data["y_val"]
        self.update_rule = globals()[kwargs.pop("update_rule", "sgd")]
        self.optim_config = kwargs.pop("optim_config", {})
        self.lr_decay = kwargs.pop("lr_decay", 1.0)
        self.batch_size = kwargs.pop("batch_size", 100)
        self.num_epochs = kwargs.pop("num_epochs", 10)
        if len(kwargs) > 0:
            raise ValueError("Unrecognized arguments %s" % ", ".join('"%s"' % k for k in kwargs))
        self.best_val_acc, self.best_params = 0, {}
        self.loss_history, self.train_acc_history, self.val_acc_history = [], [], []
        self.optim_configs = {p: {k: v for k, v in self.optim_config.items()} for p in self.model.params}

    def _step(self):
        num_train = self.X_train.shape[0]
        batch_mask = np.random.choice(num_train, self.batch_size)
        loss, grads = self.model.loss(self.X_train[batch_mask], self.y_train[batch_mask])
        self.loss_history.append(loss)
        for p, w in self.model.params.items():
            next_w, next_config = self.update_rule(w, grads[p], self.optim_configs[p])
            self.model.params[p] = next_w
            self.optim_configs[p] = next_config

    def check_accuracy(self, X, y, num_samples=None, batch_size=100):
        N = X.shape[0]
        if num_samples is not None and N > num_samples:
            mask = np.random.choice(N, num_samples)
            N, X, y = num_samples, X[mask], y[mask]
        num_batches = N // batch_size
        if N % batch_size != 0:
            num_batches += 1
        y_pred = []
        for i in range(num_batches):
            y_pred.append(np.argmax(self.model.loss(X[i * batch_size : (i + 1) * batch_size]), axis=1))
        y_pred = np.hstack(y_pred)
        return np.mean(y_pred == y)

    def train(self):
        iterations_per_epoch = max(self.X_train.shape[0] // self.batch_size, 1)
        for t in range(self.num_epochs * iterations_per_epoch):
            self._step()
            if (t + 1) % iterations_per_epoch == 0:
                for k in self.optim_configs:
                    self.optim_configs[k]["learning_rate"] *= self.lr_decay
                train_acc = self.check_accuracy(self.X_train, self.y_train, num_samples=40)
                val_acc = self.check_accuracy(self.X_val, self.y_val)
                self.train_acc_history.append(train_acc)
                self.val_acc_history.append(val_acc)
                if val_acc > self.best_val_acc:
                    self.best_val_acc = val_acc
                    self.best_params = {k: v.copy() for k, v in self.model.params.items()}
        self.model.params = self.best_params
        return self.loss_history, self.train_acc_history, self.val_acc_history


# ------------------------------------------------------------------ data_utils.py
def load_pickle(f):
    return pickle.load(f, encoding="latin1")


def load_CIFAR_batch(filename):
    with open(filename, "rb") as f:
        datadict = load_pickle(f)
        X = datadict["data"]
        Y = datadict["labels"]
        X = X.reshape(len(Y), 3, 8, 8).transpose(0, 2, 3, 1).astype("float")
        Y = np.array(Y)
        return X, Y


def get_data(folder):
    xs, ys = [], []
    for b in range(1, 4):
        X, Y = load_CIFAR_batch(os.path.join(folder, "data_batch_%d" % (b,)))
        xs.append(X)
        ys.append(Y)
    X_train, y_train = np.concatenate(xs), np.concatenate(ys)
    del X, Y
    mask = list(range(40, 60))
    X_val, y_val = X_train[mask], y_train[mask]
    mask = list(range(40))
    X_train, y_train = X_train[mask], y_train[mask]
    mean_image = np.mean(X_train, axis=0)
    X_train -= mean_image
    X_val -= mean_image
    X_train = X_train.transpose(0, 3, 1, 2).copy()
    X_val = X_val.transpose(0, 3, 1, 2).copy()
    return {"X_train": X_train / 64, "y_train": y_train, "X_val": X_val / 64, "y_val": y_val}


def write_batches(folder):
    """Files as CIFAR-10's are, with small pictures."""
    for b in range(1, 4):
        pictures = np.random.randint(0, 256, (20, 3 * 8 * 8)).astype(np.uint8)
        labels = [int(row[:64].mean() > row[64:128].mean()) for row in pictures]
        with open(os.path.join(folder, "data_batch_%d" % b), "wb") as f:
            pickle.dump({"data": pictures, "labels": labels}, f)


def main():
    np.random.seed(231)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        write_batches(folder)
        data = get_data(folder)
    results["data"] = data
    runs = [
        ("sgd", {"learning_rate": 1e-2}, None, 1, np.float32),
        ("sgd_momentum", {"learning_rate": 1e-2}, "batchnorm", 1, np.float64),
        ("rmsprop", {"learning_rate": 1e-3}, "layernorm", 1, np.float32),
        ("adam", {"learning_rate": 1e-3}, "batchnorm", 0.75, np.float32),
        ("adam", {"learning_rate": 1e-3}, None, 0.5, np.float64),
    ]
    for rule, config, normalization, dropout, dtype in runs:
        model = FullyConnectedNet([20, 15], 192, 2, dropout, normalization, 1e-2, 5e-2, dtype, seed=123)
        solver = Solver(model, data, update_rule=rule, optim_config=config, lr_decay=0.95, num_epochs=3, batch_size=10)
        name = f"{rule}, {normalization}, {dropout}, {dtype.__name__}"
        results[name] = solver.train(), solver.best_params, model.loss(data["X_val"])
    conv = ThreeLayerConvNet((3, 8, 8), 4, 3, 10, 2, 0.1, 1e-3, np.float64)
    solver = Solver(conv, data, update_rule="adam", optim_config={"learning_rate": 1e-3}, num_epochs=2, batch_size=10)
    results["convnet"] = solver.train(), solver.best_params
    return results
