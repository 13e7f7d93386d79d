"""MinPy's policy classes; `minnp.policy("prefer_mxnet")` is the short way to say the same."""

from __future__ import annotations

from ..core.policy import Policy, wrap_policy
from ..core.policy import policy as create

__all__ = ["AutoPolicy", "OnlyMXNetPolicy", "OnlyNumPyPolicy", "Policy", "PreferMXNetPolicy", "create", "wrap_policy"]


def AutoPolicy() -> Policy:
    return Policy("auto")


def PreferMXNetPolicy() -> Policy:
    return Policy("prefer_mxnet")


def OnlyNumPyPolicy() -> Policy:
    return Policy("only_numpy")


def OnlyMXNetPolicy() -> Policy:
    return Policy("only_mxnet")
