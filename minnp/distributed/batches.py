"""A batch that several ranks hold in shares: what a layer or a loss asks when it needs the whole of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import minnp.numpy as np
from minnp.core.rows import state


class Share:
    """This rank's share of a batch, while a function of it is differentiated.

    mesh     the processes of which each has a share
    weight   how much this rank's result counts in the whole batch's: its number of examples, unless the loss divides
             by something else and says so
    counts   False where the share is empty, and the rank computes on an example that does not count

    >>> mesh = distributed.init()
    >>> with distributed.sharing(distributed.Share(mesh, weight=4)) as share:
    ...     print(share.sum(np.array(2.0)), share.weight)
    2.0 4
    >>> distributed.leave()
    """

    def __init__(self, mesh: Any, weight: Any, counts: bool = True) -> None:
        self.mesh, self.weight, self.counts = mesh, weight, counts

    def sum(self, x: Any) -> Any:
        """The sum of x over all ranks whose shares count; with its gradient."""
        return self.mesh.all_reduce(x if self.counts else np.where(False, x, 0 * np.ones_like(x)))


def share() -> Share | None:
    """The share that is being computed on; None where a batch is all there is.

    >>> distributed.share() is None
    True
    """
    return state.share.get()


@contextmanager
def sharing(of: Share | None) -> Iterator[Share | None]:
    """Within it, `share()` is `of`.

    >>> mesh = distributed.init()
    >>> with distributed.sharing(distributed.Share(mesh, weight=4)):
    ...     print(distributed.share().weight)
    4
    >>> distributed.leave()
    """
    token = state.share.set(of)
    try:
        yield of
    finally:
        state.share.reset(token)
