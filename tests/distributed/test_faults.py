"""A rank that is killed, stopped, or goes another way is named within a stated time (cases/faults.py)."""

import os
import shutil
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.once("what happens between processes is Python and torch.distributed")


@pytest.mark.parametrize("size", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", ["killed", "connecting"])
def test_a_killed_rank_is_named(faulty, size, case):
    assert faulty(size, f"faults.{case}") == {1: "rank 1 died"}


@pytest.mark.parametrize(
    "case", ["ended", "elsewhere", "busy", "another_size", pytest.param("stopped", marks=pytest.mark.slow)]
)
def test_a_rank_that_does_not_come_is_named(faulty, case):
    assert faulty(2, f"faults.{case}").get(0) is None


def test_ranks_that_go_different_ways_have_both_lines(faulty):
    assert faulty(2, "faults.different_ways") == {}


WAITING = """
import sys, time
import minnp
mesh = minnp.distributed.init(timeout=2)
mesh.barrier()
time.sleep(10 * mesh.rank)
mesh.barrier()
"""


@pytest.mark.slow
def test_the_timeout_is_ours(job, tmp_path):
    """What gloo says at its own timeout names no rank."""
    (tmp_path / "program.py").write_text(WAITING)
    said = job(2, [tmp_path / "program.py"])[0][2]
    assert "which is the timeout. The others said last: rank 1: computes, after barrier" in said, said


def test_a_full_disk(on_ranks):
    on_ranks(2, "faults.full_disk")


TALKING = """
import sys, time
import minnp, minnp.numpy as np
mesh = minnp.distributed.init(timeout=60, patience=3, interface=sys.argv[1])
x = np.ones(100_000)
print("connected", flush=True)
while True:
    x = mesh.all_reduce(x, "mean")
    time.sleep(0.01)
"""


@pytest.fixture
def two_machines():
    """Two network namespaces with a cable between them: [(the words before a command that runs there, interface)]."""
    ip = shutil.which("ip")
    if ip is None or os.geteuid() != 0:
        pytest.skip("network namespaces need root and ip")
    names = [f"minnp{os.getpid()}{k}" for k in "ab"]
    inside = [[ip, "netns", "exec", name] for name in names]
    run = lambda *command: subprocess.run(command, check=True, capture_output=True)
    try:
        try:
            for name in names:
                run(ip, "netns", "add", name)
            cable = ("type", "veth", "peer", "name", "mesh1", "netns", names[1])
            run(ip, "link", "add", "mesh0", "netns", names[0], *cable)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespaces here: {error.stderr.decode().strip()}")
        for k, words in enumerate(inside):
            run(*words, ip, "addr", "add", f"10.99.0.{k + 1}/24", "dev", f"mesh{k}")
            run(*words, ip, "link", "set", f"mesh{k}", "up")
            run(*words, ip, "link", "set", "lo", "up")
        yield [(words, f"mesh{k}") for k, words in enumerate(inside)]
    finally:
        for name in names:
            subprocess.run([ip, "netns", "del", name], check=False, capture_output=True)


@pytest.mark.slow
def test_a_lost_connection(two_machines):
    """Nothing breaks, no packet comes any more: both ranks end within a stated time, the one without the store too."""
    pytest.importorskip("torch")
    common = os.environ | {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "10.99.0.1"}
    common["MASTER_PORT"] = "29577"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    program = [sys.executable, "-c", TALKING]
    job = [
        subprocess.Popen([*words, *program, name], env=common | {"RANK": str(k)}, **pipes)
        for k, (words, name) in enumerate(two_machines)
    ]
    try:
        assert [p.stdout.readline() for p in job] == ["connected\n"] * 2
        time.sleep(0.5)
        words, name = two_machines[1]
        subprocess.run([*words, "ip", "link", "set", name, "down"], check=True)
        said = [p.communicate(timeout=180)[1] for p in job]
    finally:
        for p in job:
            p.kill()
            p.communicate()
    assert "rank 1 has given no sign of life for 3 s" in said[0] or "connection broke" in said[0], said[0]
    assert "the store of the job cannot be reached" in said[1], said[1]
