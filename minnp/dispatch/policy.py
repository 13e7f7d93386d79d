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
    return Policy("auto")


def PreferMXNetPolicy() -> Policy:
    return Policy("prefer_mxnet")


def AutoBlacklistPolicy(gen_rule: bool = False, append_rule: bool = True, loc: str | None = None) -> Policy:
    """PreferMXNetPolicy: kernels say by the arguments of each call whether they take it.

    MinPy's learnt from exceptions which functions MXNet refuses, and kept the list in a file; its arguments say how.
    """
    return Policy("prefer_mxnet")


def OnlyNumPyPolicy() -> Policy:
    return Policy("only_numpy")


def OnlyMXNetPolicy() -> Policy:
    return Policy("only_mxnet")
