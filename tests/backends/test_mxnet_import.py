"""MXNet is imported under today's NumPy, by us or by the user, and changes nobody else's NumPy."""

import subprocess
import sys

import pytest

from minnp import backends

pytestmark = [
    pytest.mark.skipif("mxnet" not in backends.installed(), reason="mxnet is not installed"),
    pytest.mark.either("how a library is imported"),
]


def run_python(program, *options):
    done = subprocess.run(
        [sys.executable, *options, "-c", program], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_users_import_works_after_minnp_and_leaves_numpy_alone():
    program = """
import sys
import numpy
before = set(vars(numpy))
import minnp.numpy as np
assert "mxnet" not in sys.modules
import mxnet as mx
assert sys.modules["numpy"] is numpy
added = {name for name in set(vars(numpy)) - before if not hasattr(vars(numpy)[name], "__path__")}
assert not [name for name in added if "numpy." + name not in sys.modules], added
assert mx.nd.ones((2, 3)).asnumpy().sum() == 6
assert mx.np.arange(3).asnumpy().sum() == 3
print(mx.__version__)
"""
    assert run_python(program, "-W", "error::DeprecationWarning:__main__") == "1.9.1"


def test_numpy_scalars_are_operator_parameters():
    program = """
import sys
sys.modules |= {"sklearn": None, "scipy.stats": None}  # which MXNet imports, for as long as all else takes
import minnp, numpy, mxnet as mx
x = mx.nd.transpose(mx.nd.ones((2, 3)), axes=(numpy.int64(1), numpy.int64(0)))
net = mx.sym.transpose(mx.sym.Variable("x"), axes=(numpy.int64(1), numpy.int64(0)))
print(x.shape, net.infer_shape(x=(2, 3))[1])
"""
    assert run_python(program) == "(3, 2) [(3, 2)]"


def test_an_import_that_failed_before_minnp_can_be_repeated():
    program = """
try:
    import mxnet
except AttributeError:            # what NumPy 1.24 and later answer
    pass
import minnp
import mxnet as mx
print(mx.nd.ones(2).asnumpy())
"""
    assert run_python(program, "-W", "ignore") == "[1. 1.]"


def test_settings_that_keep_small_calls_fast_are_defaults_only():
    program = """
import os, sys
sys.modules |= {"sklearn": None, "scipy.stats": None}
os.environ["OMP_WAIT_POLICY"] = "active"
import minnp.backends
minnp.backends.get("mxnet")
print(os.environ["OMP_WAIT_POLICY"], os.environ["MXNET_SUBGRAPH_VERBOSE"])
"""
    assert run_python(program) == "active 0"


def test_nothing_else_is_found_by_our_finder():
    assert backends._MXNetFinder.find_spec("json") is None
    assert backends._MXNetFinder.find_spec("mxnet_something_else") is None
