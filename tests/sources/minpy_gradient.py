"""MinPy's announcement (2017), its first gradient: of a function with a branch on data. Nothing else is imported."""

from minnp.core import grad


def foo(x):
    if x >= 0:
        return x
    else:
        return 2 * x


foo_grad = grad(foo)
print(foo_grad(3))
print(foo_grad(-1))
