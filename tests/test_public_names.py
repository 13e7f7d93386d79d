"""Every public name works where it is the first thing of minnp that a program imports."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from alone import run_alone, run_forked

import minnp
import minnp.core
import minnp.numpy as np

pytestmark = [
    pytest.mark.host("a backend that the environment chooses imports minnp.numpy itself"),
    pytest.mark.once("which module imports which, in Python: no version and no C part decides it"),
]
# what follows `from minnp import NAME`
USES = {
    "AutoBlacklistPolicy": "assert AutoBlacklistPolicy(gen_rule=True).name == 'prefer_mxnet'",
    "Context": "with Context('cpu'): pass",
    "Function": "Function.__init__",
    "OnlyMXNetPolicy": "assert OnlyMXNetPolicy().name == 'only_mxnet'",
    "OnlyNumPyPolicy": "with OnlyNumPyPolicy(): pass",
    "PreferMXNetPolicy": "assert PreferMXNetPolicy().name == 'prefer_mxnet'",
    "Variable": """
from minnp import compile
assert compile(Variable("a") * 2 + 1)(a=3.0) == 7""",
    "checkpoint": "assert checkpoint(lambda x: x * x + 1)(3.0) == 10",
    "cpu": "with cpu(): pass",
    "current_context": "assert str(current_context()) == 'cpu(0)'",
    "custom_jvp": """
f = custom_jvp(lambda x: x * x)
f.defjvp(lambda primals, tangents: (primals[0] * primals[0], 2 * primals[0] * tangents[0]))
assert f(3.0) == 9""",
    "custom_vjp": """
f = custom_vjp(lambda x: x * x)
f.defvjp(lambda x: (x * x, x), lambda x, g: (2 * x * g,))
assert f(3.0) == 9""",
    "elementwise_grad": "assert elementwise_grad(lambda x: x * x)(3.0) == 6",
    "get_global_policy": "get_global_policy().name",
    "gpu": "gpu(0)",
    "grad": """
def absolute(x):
    if x >= 0:
        return x
    return -2 * x

assert grad(lambda x: x * x)(3.0) == 6
assert (grad(absolute)(3), grad(absolute)(-1)) == (1, -2)
assert grad(grad(lambda x: 1 / x - (x - 1) ** 2 % 7 + abs(-x)))(2.0) == -1.75
assert grad(lambda xs: xs[0] * xs[1] + sum(xs))([2.0, 3.0]) == [4, 3]""",
    "grad_and_loss": "assert grad_and_loss(lambda x: x * x)(3.0) == (6, 9)",
    "hessian": "assert hessian(lambda x: x * x * x)(3.0) == 18",
    "hvp": "assert hvp(lambda x: x * x * x)(3.0, 2.0) == 36",
    "jacobian": "assert jacobian(lambda x: x * x)(3.0) == 6",
    "jit": "assert jit(lambda x: -x * x + 1 if x > 0 else x)(3.0) == -8",
    "jvp": "assert jvp(lambda x: x * x, (3.0,), (1.0,)) == (9, 6)",
    "load_mxnet": "load_mxnet.__doc__",
    "make_ggnvp": "make_ggnvp(lambda x: x * x)",
    "memory_reuse": "memory_reuse(True)",
    "num_threads": "assert num_threads() >= 1",
    "policy": "with policy('only_numpy'): pass",
    "report": "report()",
    "reset_report": "reset_report()",
    "set_backend": "set_backend('numpy')",
    "prange": "assert list(prange(1, 6, 2)) == [1, 3, 5]",
    "set_context": "set_context(__import__('minnp').cpu())",
    "set_global_policy": "set_global_policy('auto')",
    "set_compile_budget": "assert set_compile_budget(1.0) == 2.0",
    "set_gradient_budget": "assert set_gradient_budget(set_gradient_budget(8)) == 8",
    "set_num_threads": "set_num_threads(1)",
    "stop_gradient": "assert stop_gradient(3.0) == 3",
    "value_and_grad": "assert value_and_grad(lambda x: x * x)(3.0) == (9, 6)",
    "vjp": "y, pull = vjp(lambda x: x * x, 3.0); assert (y, *pull(1.0)) == (9, 6)",
    "vmap": "import numpy; assert (vmap(lambda x: x * x + 1)(numpy.arange(3.0)) == [1, 2, 5]).all()",
    "wrap_policy": "assert wrap_policy('only_numpy')(lambda: 3)() == 3",
}
# the same of minnp.core, where MinPy's programs import them from
CORE = {
    "Function": USES["Function"],
    "convert_args": "assert convert_args(lambda x: x + 1)(3.0) == 4",
    "grad": USES["grad"],
    "grad_and_loss": USES["grad_and_loss"],
    "minpy_to_numpy": "import minnp.numpy as np; minpy_to_numpy(np.ones(2))",
    "numpy_to_minpy": "import numpy; assert ((numpy_to_minpy(numpy.ones(2)) + 1) * 2 == 4).all()",
    "return_numpy": "import numpy; assert type(return_numpy(lambda x: x + 1)(numpy.ones(2))) is numpy.ndarray",
}
# other modules, and a use of each
MODULES = {
    "minnp.backends": "minnp.backends.installed()",
    "minnp.context": "assert str(minnp.context.cpu()) == 'cpu(0)'",
    "minnp.core.arrays.array": "import numpy; assert minnp.core.arrays.array.array_of(numpy.ones(2)).sum() == 2",
    "minnp.dispatch.policy": "minnp.dispatch.policy.PreferMXNetPolicy()",
    "minnp.errors": "minnp.errors.MinnpError",
    "minnp.fx": "assert minnp.fx.symbolic_trace(lambda x: x * x + 1)(3.0) == 10",
    "minnp.nn": "assert minnp.nn.Sequential(minnp.nn.ReLU())([[1.0, -2.0]])[0, 1] == 0",
    "minnp.nn.init": "assert minnp.nn.init.constant((2,), {'value': 3.0})[0] == 3",
    "minnp.nn.layers": "assert minnp.nn.layers.relu([-1.0, 1.0])[1] == 1",
    "minnp.nn.losses": "import numpy; assert minnp.nn.losses.l2_loss(numpy.ones((1, 1)), numpy.zeros(1)) > 0",
    "minnp.nn.metrics": "minnp.nn.metrics",
    "minnp.nn.model": "minnp.nn.model.ModelBase()",
    "minnp.nn.optim": "minnp.nn.optim.sgd",
    "minnp.nn.solver": "minnp.nn.solver.Solver",
    "minnp.nn.io": "len(list(minnp.nn.io.NDArrayIter([[1.0], [2.0]], batch_size=1)))",
    "minnp.npx": "assert minnp.npx.relu(-1.0) == 0",
    "minnp.numpy": "assert minnp.numpy.ones(3).sum() == 3",
    "minnp.numpy.fft": "assert minnp.numpy.fft.fft([1.0, 1.0])[0] == 2",
    "minnp.numpy.linalg": "assert minnp.numpy.linalg.norm([3.0, 4.0]) == 5",
    "minnp.numpy.random": "assert minnp.numpy.random.rand(3).shape == (3,)",
    "minnp.numpy.polynomial": "assert minnp.numpy.polynomial.Polynomial([1.0, 2.0])(2.0) == 5",
    "minnp.numpy.ma": "assert minnp.numpy.ma.array([1.0, 2.0], mask=[0, 1]).sum() == 1",
    "minnp.numpy.testing": "minnp.numpy.testing.assert_allclose([1.0], [1.0])",
    "minnp.scipy.linalg": "assert minnp.scipy.linalg.det([[2.0]]) == 2",
    "minnp.scipy.stats": "assert minnp.scipy.stats.norm.cdf(0.0) == 0.5",
    "minnp.primitive": "assert minnp.primitive.customop()(lambda x: x + 1)(3.0) == 4",
    "minnp.scipy.special": "assert minnp.scipy.special.expit(0.0) == 0.5",
    "minnp.table": "assert minnp.table.table()",
    "minnp.testing": "minnp.testing.check_grads(lambda x: x * x, (3.0,))",
    "minnp.utils.gradient_checker": "minnp.utils.gradient_checker",
    "minnp.utils.minprof": "minnp.utils.minprof",
}


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(minnp.__all__))
def test_a_name_of_minnp_works_after_importing_it_alone(name):
    run_forked(f"from minnp import {name}\n{USES[name]}")


@pytest.mark.parametrize("name", sorted(minnp.core.__all__))
def test_a_name_of_minnp_core_works_after_importing_it_alone(name):
    run_forked(f"from minnp.core import {name}\n{CORE[name]}")


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_works_after_importing_it_alone(name):
    if "scipy" in name:
        pytest.importorskip("scipy")
    run_forked(f"import {name}\n{MODULES[name]}")


def test_an_array_is_whole_where_it_is_unpickled():
    pickled = pickle.dumps(np.arange(3.0))
    run_alone(f"import pickle; a = pickle.loads({pickled!r}); assert ((a * a)[1:] - 1 == [0, 3]).all()")


FORKS = """
import importlib, json, os, sys, traceback
import minnp                # which is imported before every module of it

wrong = {}
for name in json.loads(sys.argv[1]):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        said = ""
        try:
            importlib.import_module(name)
        except BaseException:
            said = traceback.format_exc()
        os.write(write, said.encode()[-4000:])
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        said = file.read()
    os.waitpid(child, 0)
    if said:
        wrong[name] = said
print(json.dumps(wrong))
"""


@pytest.mark.exhaustive
def test_every_module_can_be_the_first_that_is_imported():
    package = Path(minnp.__file__).parent
    names = [".".join(p.relative_to(package.parent).with_suffix("").parts) for p in package.rglob("*.py")]
    optional = ("minnp.scipy", "minnp.backends.mxnet", "minnp.backends.torch", "minnp.core.llvm")  # need a library
    names = [n.removesuffix(".__init__") for n in names if not n.startswith(optional) and "__main__" not in n]
    if not hasattr(np, "strings"):  # NumPy 1
        names.remove("minnp.numpy.strings")
    assert len(names) > 100
    assert json.loads(run_alone(FORKS, json.dumps(names))) == {}


def test_an_alias_has_the_name_of_what_it_stands_for():
    code = (
        "import minnp.numpy as np; np.{}; print(np.transpose.__name__, np.concatenate.__name__, np.absolute.__name__)"
    )
    for first in ("permute_dims, np.concat, np.abs", "transpose, np.concatenate, np.absolute"):
        done = subprocess.run([sys.executable, "-c", code.format(first)], capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["transpose", "concatenate", "absolute"]
