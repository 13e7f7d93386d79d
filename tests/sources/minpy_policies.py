"""MinPy's tutorial of transparent fallback: policies for a block, a function and the whole program."""

import minnp
import minnp.numpy as np

x = np.zeros((10, 20))
y = np.cosh(x)
z = np.log(y)
print(float(z.sum()))

with minnp.OnlyNumPyPolicy():
    print(float(np.exp(x).sum()), minnp.get_global_policy().name)


@minnp.wrap_policy(minnp.OnlyNumPyPolicy())
def wrapped(x):
    return np.tanh(x).sum()


print(float(wrapped(x)))


def gaussian_cluster_generator(num_samples, num_features, num_classes):
    """Draws with arrays as mean and deviation, which MXNet's function does not take."""
    mu, sigma = np.random.rand(num_classes, num_features), np.ones((num_classes, num_features)) * 0.1
    each = num_samples // num_classes
    x, y = np.zeros((num_samples, num_features)), np.zeros((num_samples, num_classes))
    for i in range(num_classes):
        x[i * each : (i + 1) * each] = np.random.normal(mu[i, :], sigma[i, :], (each, num_features))
        y[i * each : (i + 1) * each, i] = 1
    return x, y


p = minnp.AutoBlacklistPolicy(gen_rule=True, append_rule=True)
minnp.set_global_policy(p)
with p:
    x, y = gaussian_cluster_generator(1000, 50, 5)
print(x.shape, float(y.sum()), minnp.get_global_policy().name)
