"""The stored list of verified kernels is what the differential test finds today, and what it finds is not empty."""

import json

import numpy as onp
import pytest

from minnp import backends

if "mxnet" not in backends.installed():
    pytest.skip("mxnet is not installed", allow_module_level=True)

from minnp.backends.mxnet import VERIFIED, cases, verify
from minnp.backends.mxnet.samples import DTYPES
from minnp.core.rows.primitive import TABLE


def test_the_list_renewed_is_the_list_stored():
    listed, _ = verify.verify()
    stored = json.loads(VERIFIED.read_text())
    changed = {n: (stored.get(n), listed.get(n)) for n in {*stored, *listed} if stored.get(n) != listed.get(n)}
    assert not changed


def test_at_least_what_users_come_for_is_listed():
    stored = json.loads(VERIFIED.read_text())
    for name in ("add", "exp", "sum", "matmul", "npx.conv", "npx.conv_transpose", "npx.conv_weight_grad"):
        assert {"float32", "float64"} <= {*stored[name]}, name


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("add", lambda a, b: onp.asarray(a + b) + onp.asarray(a).dtype.type(1)),  # value
        ("add", lambda a, b: onp.asarray(onp.add(a, b), "f4")),  # dtype (of float64)
        ("sum", lambda a, **k: onp.atleast_1d(onp.sum(a, **k))),  # shape, type
        ("absolute", lambda a: +a),  # the sign of zero, and of everything
        ("negative", lambda a: onp.negative(a, out=a) if a.flags.writeable else -a),  # writes to its argument
    ],
)
def test_a_wrong_kernel_is_found(name, broken):
    found, _ = verify.examine(name, broken, "float64")
    assert found


def test_a_kernel_that_refuses_everything_is_not_listed():
    def refuses(*values, **params):
        raise verify.BackendUnsupportedError("no")

    assert verify.examine("add", refuses, "float32") == ("", 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_case_is_one_numpy_takes_or_refuses(dtype):
    for name in json.loads(VERIFIED.read_text()):
        for values, params in cases.cases(name, dtype):
            verify.outcome(TABLE[name].numpy, values, params)
