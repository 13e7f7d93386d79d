# %% [markdown]
# # 1.1 Nearest neighbours
#
# The simplest classifier remembers every training image; a new image gets the label of those closest to it. It needs no
# training at all, and every prediction needs a distance to every training image, so we write distances well.

# %%
from course import check, check_at_least, todo

import minnp.numpy as np
from minnp.nn import io

data = io.digits()
x_train, x_test = data.x_train.reshape(-1, 64), data.x_test.reshape(-1, 64)
y_train, y_test = data.y_train, data.y_test
print(x_train.shape, x_test.shape)

# %% [markdown]
# ## Distances with loops
# The plain way, to compare with: `d[i, j] = |test[i] - train[j]|^2`.


# %%
def distances_with_loops(test, train):
    d = np.zeros((len(test), len(train)))
    for i in range(len(test)):
        for j in range(len(train)):
            d[i, j] = np.sum((test[i] - train[j]) ** 2)
    return d


small = distances_with_loops(x_test[:5], x_train[:7])

# %% [markdown]
# ## Exercise: distances without loops
# Fill in `distances(test, train)`, [N, D] and [M, D] -> [N, M], with no loop and no array of N * M * D numbers.


# %% exercise: distances
def distances(test, train):
    """d[i, j] = |test[i] - train[j]|^2."""
    return todo()


# %%
hint = "|a - b|^2 = |a|^2 - 2 a.b + |b|^2; one matrix product gives every a.b, and broadcasting adds the rest"
check("distances", distances(x_test[:5], x_train[:7]), small, hint, 1e-4)

# %% [markdown]
# ## Exercise: voting
# `vote(d, labels, k)`: for each row of d, the label that is most frequent among the k nearest; the smaller one in a tie.


# %% exercise: vote
def vote(d, labels, k):
    """[N] labels from distances d [N, M] and the training labels [M]."""
    return todo()


# %%
d = np.array([[3.0, 1.0, 2.0, 9.0], [0.0, 5.0, 4.0, 1.0]])
hint = "np.argsort(d, axis=1)[:, :k] are the neighbours; np.bincount(...).argmax() counts the votes of one row"
check("vote with k=1", vote(d, np.array([7, 2, 5, 2]), 1), [2, 7], hint)
check("vote with k=3", vote(d, np.array([7, 2, 7, 2]), 3), [7, 7], hint)
check("vote in a tie", vote(d, np.array([7, 2, 5, 3]), 2), [2, 3], "in a tie the smaller label wins; argmax does that")

# %% [markdown]
# ## Exercise: choosing k by cross-validation
# The test set is for the very end. To choose k, split the *training* set in folds; each in turn is judged by the others.


# %% exercise: cross_validate
def cross_validate(x, y, k, folds=5):
    """The mean accuracy over the folds; fold i is np.array_split(..., folds)[i]."""
    return todo()


# %%
accuracies = {k: float(cross_validate(x_train[:600], y_train[:600], k)) for k in (1, 3, 5, 9, 25)}
for k, accuracy in accuracies.items():
    print(f"k = {k:2}: {accuracy:.4f}")
hint = "concatenate all folds but one, predict that one, and average over the choices of the one"
check("cross-validation of k=3", cross_validate(x_train[:50], y_train[:50], 3), 0.7, hint, 1e-9)

# %%
best = max(accuracies, key=accuracies.get)
accuracy = float(np.mean(vote(distances(x_test, x_train), y_train, best) == y_test))
check_at_least(f"test accuracy with k={best}", accuracy, 0.97)
