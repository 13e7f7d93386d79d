"""Functions that NumPy writes in Python: differentiable as they stand, once their code runs on our functions.

Everything here is `rebound` unless rows say it better. A function that is a row, or that another file of this package
defines, is not in these lists.
"""

from __future__ import annotations

import numpy as onp

from ..core.dispatch import DEFINITIONS, defines
from .rebound import rebound

REBOUND = """
    angle append apply_along_axis apply_over_axes array_equiv array_split atleast_1d atleast_2d atleast_3d average
    block broadcast_arrays column_stack corrcoef cov cross delete diagflat dsplit dstack ediff1d extract fliplr flipud
    geomspace gradient hsplit hstack i0 in1d insert intersect1d iscomplex isneginf isposinf isreal kron linspace
    logspace median meshgrid moveaxis nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin
    nanpercentile nanprod nanquantile nanstd nansum nanvar outer pad percentile piecewise poly polyadd polyder polydiv polyfit polyint
    polymul polysub polyval quantile real_if_close resize rollaxis roots rot90 row_stack select setdiff1d setxor1d
    sort_complex split tile trapezoid trapz trim_zeros union1d unwrap vander vsplit vstack
    cumulative_sum cumulative_prod matrix_transpose unstack unique_all unique_counts unique_inverse unique_values
"""

for _name in REBOUND.split():  # names of both NumPy 1 and 2
    if hasattr(onp, _name) and getattr(onp, _name) not in DEFINITIONS:
        defines(getattr(onp, _name))(rebound(getattr(onp, _name)))
