"""Key-value stores on MXNet's own parameter server, and its optimizers on ours."""

import numpy as onp
import pytest
from test_kvstore import PROGRAM, launch

import minnp.numpy as np
from minnp import kvstore

mx = pytest.importorskip("mxnet")

pytestmark = pytest.mark.either("what stores do is Python and MXNet's")


@pytest.mark.filterwarnings("ignore:Please import:DeprecationWarning")  # of SciPy's modules, which MXNet imports
def test_an_optimizer_of_mxnets_moves_our_values():
    kv, theirs = kvstore.create("local"), mx.kv.create("local")
    start = onp.arange(3, dtype="f4")
    kv.init(0, start), theirs.init(0, mx.nd.array(start))
    for store in (kv, theirs):
        store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, momentum=0.9))
    for _ in range(3):
        kv.push(0, np.ones(3, "f4")), theirs.push(0, mx.nd.ones(3))
    kv.pull(0, ours := np.zeros(3, "f4")), theirs.pull(0, other := mx.nd.zeros(3))
    onp.testing.assert_allclose(ours, other.asnumpy(), rtol=1e-6)
    kv.pull(0, other)
    onp.testing.assert_allclose(ours, other.asnumpy())


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [(["dist_sync", "sgd"], "[-2.0, -2.0, -2.0]"), (["dist_async", "sgd"], "[-2.0, -2.0, -2.0]")],
)
def test_mxnets_parameter_server(tmp_path, arguments, shown):
    program = "import sys; sys.modules |= {'sklearn': None, 'scipy.stats': None}  # seconds, for MXNet\n" + PROGRAM
    done = launch(tmp_path, "-n", "2", "-s", "1", "program.py", *arguments, program=program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{arguments[0]} 2 {shown}"] * 2
