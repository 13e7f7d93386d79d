"""Assignment 1, as students hand it in: k-nearest neighbours, SVM and softmax with loops and without, a linear classifier."""

from collections import Counter

import numpy as np


class KNearestNeighbor(object):
    def train(self, X, y):
        self.X_train = X
        self.y_train = y

    def predict(self, X, k=1, num_loops=0):
        if num_loops == 0:
            dists = self.compute_distances_no_loops(X)
        elif num_loops == 1:
            dists = self.compute_distances_one_loop(X)
        elif num_loops == 2:
            dists = self.compute_distances_two_loops(X)
        else:
            raise ValueError("Invalid value %d for num_loops" % num_loops)
        return self.predict_labels(dists, k=k)

    def compute_distances_two_loops(self, X):
        num_test = X.shape[0]
        num_train = self.X_train.shape[0]
        dists = np.zeros((num_test, num_train))
        for i in range(num_test):
            for j in range(num_train):
                dists[i, j] = np.sqrt(np.sum(np.square(X[i, :] - self.X_train[j, :])))
        return dists

    def compute_distances_one_loop(self, X):
        num_test = X.shape[0]
        dists = np.zeros((num_test, self.X_train.shape[0]))
        for i in range(num_test):
            dists[i, :] = np.linalg.norm(self.X_train - X[i, :], axis=1)
        return dists

    def compute_distances_no_loops(self, X):
        test_sum = np.sum(np.square(X), axis=1).reshape(-1, 1)
        train_sum = np.sum(np.square(self.X_train), axis=1)
        inner_product = X.dot(self.X_train.T)
        return np.sqrt(np.maximum(-2 * inner_product + test_sum + train_sum, 0))

    def predict_labels(self, dists, k=1):
        num_test = dists.shape[0]
        y_pred = np.zeros(num_test)
        for i in range(num_test):
            closest_y = self.y_train[np.argsort(dists[i])[:k]]
            y_pred[i] = np.argmax(np.bincount(closest_y))
        return y_pred

    def predict_by_counter(self, dists, k):
        """The same vote, the way those who like the standard library do it."""
        y_pred = []
        for row in dists:
            nearest = [int(self.y_train[j]) for j in row.argsort()[:k]]
            count = Counter(nearest)
            most = max(count.values())
            y_pred.append(min(c for c in count if count[c] == most))
        return np.array(y_pred)


def svm_loss_naive(W, X, y, reg):
    dW = np.zeros(W.shape)
    num_classes = W.shape[1]
    num_train = X.shape[0]
    loss = 0.0
    for i in range(num_train):
        scores = X[i].dot(W)
        correct_class_score = scores[y[i]]
        for j in range(num_classes):
            if j == y[i]:
                continue
            margin = scores[j] - correct_class_score + 1
            if margin > 0:
                loss += margin
                dW[:, j] += X[i, :].T
                dW[:, y[i]] -= X[i]
    loss /= num_train
    dW /= num_train
    loss += reg * np.sum(W * W)
    dW += 2 * reg * W
    return loss, dW


def svm_loss_vectorized(W, X, y, reg):
    num_train = X.shape[0]
    scores = np.dot(X, W)
    correct = scores[range(num_train), list(y)].reshape(-1, 1)
    margins = np.maximum(0, scores - correct + 1)
    margins[range(num_train), list(y)] = 0
    loss = np.sum(margins) / num_train + reg * np.sum(W * W)

    coeff_mat = np.zeros((num_train, W.shape[1]))
    coeff_mat[margins > 0] = 1
    coeff_mat[range(num_train), list(y)] = 0
    coeff_mat[range(num_train), list(y)] = -np.sum(coeff_mat, axis=1)
    dW = (X.T).dot(coeff_mat) / num_train + 2 * reg * W
    return loss, dW


def svm_loss_masked(W, X, y, reg):
    """Another hand: the margins become their own mask in place."""
    N = len(y)
    scores = X @ W
    margins = scores - scores[np.arange(N), y][:, np.newaxis] + 1.0
    margins[margins < 0] = 0
    margins[np.arange(N), y] = 0
    loss = margins.sum() / N + reg * (W**2).sum()
    margins[margins > 0] = 1
    row_sum = margins.sum(axis=1)
    margins[np.arange(N), y] = -row_sum.T
    return loss, X.T.dot(margins) / N + 2 * reg * W


def softmax_loss_naive(W, X, y, reg):
    loss = 0.0
    dW = np.zeros_like(W)
    num_train, dim = X.shape
    num_classes = W.shape[1]
    for i in range(num_train):
        f_i = X[i].dot(W)
        f_i -= np.max(f_i)
        sum_j = np.sum(np.exp(f_i))
        p = lambda k: np.exp(f_i[k]) / sum_j
        loss += -np.log(p(y[i]))
        for k in range(num_classes):
            p_k = p(k)
            dW[:, k] += (p_k - (k == y[i])) * X[i]
    loss /= num_train
    loss += reg * np.sum(W * W)
    dW /= num_train
    dW += 2 * reg * W
    return loss, dW


def softmax_loss_vectorized(W, X, y, reg):
    num_train = X.shape[0]
    f = X.dot(W)
    f -= np.max(f, axis=1, keepdims=True)
    sum_f = np.sum(np.exp(f), axis=1, keepdims=True)
    p = np.exp(f) / sum_f
    loss = np.sum(-np.log(p[np.arange(num_train), y]))
    ind = np.zeros_like(p)
    ind[np.arange(num_train), y] = 1
    dW = X.T.dot(p - ind)
    return loss / num_train + reg * np.sum(W * W), dW / num_train + 2 * reg * W


class LinearClassifier(object):
    def __init__(self):
        self.W = None

    def train(self, X, y, learning_rate=1e-3, reg=1e-5, num_iters=100, batch_size=200):
        num_train, dim = X.shape
        num_classes = np.max(y) + 1  # assume y takes values 0...K-1 where K is number of classes
        if self.W is None:
            self.W = 0.001 * np.random.randn(dim, num_classes)
        loss_history = []
        for it in range(num_iters):
            indices = np.random.choice(num_train, batch_size, replace=True)
            loss, grad = self.loss(X[indices], y[indices], reg)
            loss_history.append(loss)
            self.W -= learning_rate * grad
            if it % 100 == 0:
                assert "iteration %d / %d: loss %f" % (it, num_iters, loss)
        return loss_history

    def predict(self, X):
        return np.argmax(X.dot(self.W), axis=1)


class LinearSVM(LinearClassifier):
    def loss(self, X_batch, y_batch, reg):
        return svm_loss_vectorized(self.W, X_batch, y_batch, reg)


class Softmax(LinearClassifier):
    def loss(self, X_batch, y_batch, reg):
        return softmax_loss_vectorized(self.W, X_batch, y_batch, reg)


class TwoLayerNet(object):
    """The net of the first years of the course, on one page."""

    def __init__(self, input_size, hidden_size, output_size, std=1e-1):
        self.params = {}
        self.params["W1"] = std * np.random.randn(input_size, hidden_size)
        self.params["b1"] = np.zeros(hidden_size)
        self.params["W2"] = std * np.random.randn(hidden_size, output_size)
        self.params["b2"] = np.zeros(output_size)

    def loss(self, X, y=None, reg=0.0):
        W1, b1 = self.params["W1"], self.params["b1"]
        W2, b2 = self.params["W2"], self.params["b2"]
        N, D = X.shape
        h_output = np.maximum(0, X.dot(W1) + b1)
        scores = h_output.dot(W2) + b2
        if y is None:
            return scores
        shift_scores = scores - np.max(scores, axis=1).reshape(-1, 1)
        softmax_output = np.exp(shift_scores) / np.sum(np.exp(shift_scores), axis=1).reshape(-1, 1)
        loss = -np.sum(np.log(softmax_output[range(N), list(y)]))
        loss /= N
        loss += reg * (np.sum(W1 * W1) + np.sum(W2 * W2))
        grads = {}
        dscores = softmax_output.copy()
        dscores[range(N), list(y)] -= 1
        dscores /= N
        grads["W2"] = h_output.T.dot(dscores) + 2 * reg * W2
        grads["b2"] = np.sum(dscores, axis=0)
        dh = dscores.dot(W2.T)
        dh_ReLu = (h_output > 0) * dh
        grads["W1"] = X.T.dot(dh_ReLu) + 2 * reg * W1
        grads["b1"] = np.sum(dh_ReLu, axis=0)
        return loss, grads

    def train(self, X, y, X_val, y_val, learning_rate=1e-1, learning_rate_decay=0.95, reg=5e-6, num_iters=100,
              batch_size=20):  # fmt: skip
        num_train = X.shape[0]
        iterations_per_epoch = max(num_train / batch_size, 1)
        loss_history, val_acc_history = [], []
        for it in range(num_iters):
            idx = np.random.choice(np.arange(num_train), batch_size)
            loss, grads = self.loss(X[idx], y=y[idx], reg=reg)
            loss_history.append(loss)
            for param in self.params:
                self.params[param] -= learning_rate * grads[param]
            if it % iterations_per_epoch == 0:
                val_acc_history.append((self.predict(X_val) == y_val).mean())
                learning_rate *= learning_rate_decay
        return {"loss_history": loss_history, "val_acc_history": val_acc_history}

    def predict(self, X):
        return np.argmax(self.loss(X), axis=1)


def cross_validation(X_train, y_train):
    num_folds = 4
    k_choices = [1, 3, 5]
    X_train_folds = np.array_split(X_train, num_folds)
    y_train_folds = np.array_split(y_train, num_folds)
    k_to_accuracies = {}
    for k in k_choices:
        k_to_accuracies.setdefault(k, [])
        for i in range(num_folds):
            classifier = KNearestNeighbor()
            classifier.train(
                np.vstack(X_train_folds[0:i] + X_train_folds[i + 1 :]),
                np.hstack(y_train_folds[0:i] + y_train_folds[i + 1 :]),
            )
            y_pred = classifier.predict(X_train_folds[i], k=k)
            num_correct = np.sum(y_pred == y_train_folds[i])
            k_to_accuracies[k].append(float(num_correct) / len(y_train_folds[i]))
    means = np.array([np.mean(v) for k, v in sorted(k_to_accuracies.items())])
    stds = np.array([np.std(v) for k, v in sorted(k_to_accuracies.items())])
    return k_to_accuracies, means, stds, k_choices[np.argmax(means)]


def clusters(num, dim, classes):
    """Pictures like CIFAR-10's: small integers in float arrays, classes in any order."""
    y = np.random.randint(classes, size=num)
    centers = np.random.randint(60, 190, size=(classes, dim))
    X = np.clip(centers[y] + np.random.normal(0, 40, (num, dim)), 0, 255).astype("uint8").astype("float")
    return X, y


def main():
    np.random.seed(231)
    X, y = clusters(90, 27, 4)
    mask = list(range(70))
    X_train, y_train = X[mask], y[mask]
    mask = range(70, 90)
    X_test, y_test = X[mask], y[mask]
    results = {}

    knn = KNearestNeighbor()
    knn.train(X_train, y_train)
    dists = knn.compute_distances_two_loops(X_test)
    for other in (knn.compute_distances_one_loop(X_test), knn.compute_distances_no_loops(X_test)):
        difference = np.linalg.norm(dists - other, ord="fro")
        assert difference < 0.001
    y_test_pred = knn.predict_labels(dists, k=5)
    assert (knn.predict_by_counter(dists, 5) == y_test_pred).all()
    num_correct = np.sum(y_test_pred == y_test)
    results["knn"] = dists, y_test_pred, num_correct, "accuracy: %f" % (float(num_correct) / len(y_test))
    results["cross-validation"] = cross_validation(X_train, y_train)

    # the pictures of each class that the notebook shows
    results["samples"] = [
        np.random.choice(np.flatnonzero(y_train == cls), 3, replace=False) for cls in np.unique(y_train)
    ]

    mean_image = np.mean(X_train, axis=0)
    X_train -= mean_image
    X_test -= mean_image
    X_train /= 100
    X_test /= 100
    X_train = np.hstack([X_train, np.ones((X_train.shape[0], 1))])
    X_test = np.hstack([X_test, np.ones((X_test.shape[0], 1))])
    W = np.random.randn(28, 4) * 0.01
    results["svm"] = svm_loss_naive(W, X_train, y_train, 0.05), svm_loss_vectorized(W, X_train, y_train, 0.05)
    results["svm, masked"] = svm_loss_masked(W, X_train, y_train, 0.05)
    results["softmax"] = softmax_loss_naive(W, X_train, y_train, 0.05), softmax_loss_vectorized(W, X_train, y_train, 0)
    tuned = {}
    for lr in [1e-2, 1e-1]:
        for reg in [1e-3, 1e-1]:
            for kind in (LinearSVM, Softmax):
                model = kind()
                history = model.train(X_train, y_train, learning_rate=lr, reg=reg, num_iters=30, batch_size=20)
                train_accuracy = np.mean(y_train == model.predict(X_train))
                tuned[(kind.__name__, lr, reg)] = (train_accuracy, np.mean(y_test == model.predict(X_test)), history)
    best = max(tuned, key=lambda setting: tuned[setting][1])
    results["tuned"], results["best"] = list(tuned.values()), best

    net = TwoLayerNet(28, 16, 4)
    results["two layers"] = net.train(X_train, y_train, X_test, y_test), net.params, net.predict(X_test)
    W1 = net.params["W1"][:-1].reshape(3, 3, 3, -1).transpose(3, 0, 1, 2)
    low, high = np.min(W1), np.max(W1)
    results["pictures of weights"] = (255.0 * (W1 - low) / (high - low)).astype("uint8")
    return results
