"""MinPy's policy classes; `minnp.policy("prefer_mxnet")` is the short way to say the same."""

from __future__ import annotations

from ..core.rows.policy import Policy, wrap_policy
from ..core.rows.policy import policy as create

__all__ = [
    "AutoBlacklistPolicy",
    "AutoPolicy",
    "OnlyMXNetPolicy",
    "OnlyNumPyPolicy",
    "Policy",
    "PreferMXNetPolicy",
    "create",
    "wrap_policy",
]


def AutoPolicy() -> Policy:
    """The policy "auto": NumPy, and another backend's kernel where it is verified and worth it at this size.

    >>> minnp.dispatch.policy.AutoPolicy()
    Policy('auto')
    """
    return Policy("auto")


def PreferMXNetPolicy() -> Policy:
    """The policy "prefer_mxnet": every verified kernel of MXNet, NumPy for the rest.

    >>> minnp.PreferMXNetPolicy()
    Policy('prefer_mxnet')
    """
    return Policy("prefer_mxnet")


def AutoBlacklistPolicy(gen_rule: bool = False, append_rule: bool = True, loc: str | None = None) -> Policy:
    """The policy "prefer_mxnet", under MinPy's name.

    MinPy's learnt from exceptions which functions MXNet refuses, and kept the list in a file: gen_rule, append_rule and
    loc said how. Here kernels say by the arguments of each call whether they take it, and the three change nothing.

    >>> minnp.AutoBlacklistPolicy()
    Policy('prefer_mxnet')
    """
    return Policy("prefer_mxnet")


def OnlyNumPyPolicy() -> Policy:
    """The policy "only_numpy": NumPy's kernels alone.

    >>> with minnp.policy(minnp.OnlyNumPyPolicy()):
    ...     print(np.ones(2))
    [1. 1.]
    """
    return Policy("only_numpy")


def OnlyMXNetPolicy() -> Policy:
    """The policy "only_mxnet": MXNet's kernels alone; a call without one raises FallbackError.

    >>> minnp.OnlyMXNetPolicy()
    Policy('only_mxnet')
    """
    return Policy("only_mxnet")
