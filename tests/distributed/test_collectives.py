"""Collectives on meshes of 1, 2 and 3 processes (cases/collectives.py)."""

import sys

import pytest

from minnp import distributed

pytestmark = pytest.mark.once("what a collective does is Python and torch.distributed")
CASES = ["reductions", "gathers", "exchanges", "numbers", "memory", "transposes", "nonlinear", "zero_products"]
CASES += ["under_jit_and_vmap", "disagreements", "arguments", "axes"]


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("case", CASES)
def test_collectives(on_ranks, size, case):
    on_ranks(size, f"collectives.{case}")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nothing_listens_beyond_this_machine(on_ranks):
    on_ranks(2, "collectives.listening")


@pytest.mark.host("without torch there is no policy that prefers it")
def test_a_mesh_of_one_needs_no_torch():
    import subprocess

    code = (
        "import sys; sys.modules['torch'] = None; import minnp; mesh = minnp.distributed.init();"
        "import minnp.numpy as np; print(mesh, mesh.all_reduce(np.ones(2)), minnp.grad(mesh.all_reduce)(3.0));"
        "x = np.asarray(2 * np.eye(3), device=mesh.split(0));"
        "y = np.linalg.solve(x, np.linalg.cholesky(x)) + np.linalg.inv(x);"
        "print(y.device, round(float(np.linalg.det(x)), 9), round(float(y[0, 0] ** -2), 9))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "Mesh(0=1; rank 0 of 1) [1. 1.] 1.0\nmesh.split(0) 8.0 0.686291501\n"


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"RANK": "3", "WORLD_SIZE": "2"}, "RANK is 3 in a job of WORLD_SIZE 2"),
        ({"WORLD_SIZE": "2"}, "RANK is not set"),
    ],
)
def test_wrong_variables(monkeypatch, variables, said):
    monkeypatch.setattr(distributed.mesh, "_JOB", [])
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(distributed.MeshError, match=said):
        distributed.init()


def test_a_store_that_is_not_there(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(distributed.mesh, "_JOB", [])
    given = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(
        distributed.MeshError, match=r"rank 1 of 2 did not reach the store at 127\.0\.0\.1:1, which rank 0"
    ):
        distributed.init(timeout=1)
