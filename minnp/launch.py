"""Starts a program on MXNet's parameter server: `python -m minnp.launch -n 2 -s 1 program.py [arguments]`.

-n workers run the program, each with a rank of `minnp.kvstore.create("dist_sync")` or "dist_async"; -s servers hold
the values. All are processes of this machine, and listen on its loopback interface alone. With -s 0 there are no
servers, and mxnet is not needed: the workers are the ranks of a mesh, as under torchrun.

A process that fails stops the others; its number, and what it ended with, are told. The workers share the cores: where
OMP_NUM_THREADS is not set, each has as many threads as there are cores for it.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence

from minnp.core.cpu.threads import default_threads

POLL = 0.1  # seconds between two looks at the processes
GRACE = 5.0  # seconds from SIGTERM to SIGKILL


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; returns what the first process that failed ended with, or 0."""
    parser = argparse.ArgumentParser(prog="python -m minnp.launch", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("-n", "--num-workers", type=count, required=True, help="processes that run the program")
    parser.add_argument("-s", "--num-servers", type=int, default=None, help="parameter servers; as many as workers")
    parser.add_argument("program", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's own")
    given = parser.parse_args(arguments)
    workers, servers = given.num_workers, given.num_workers if given.num_servers is None else given.num_servers
    command = [sys.executable, *(f"-W{option}" for option in sys.warnoptions), given.program, *given.arguments]
    port = str(free_port())
    threads = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(max(default_threads() // workers, 1)))}
    if servers < 1:
        common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(workers)}
        common["LOCAL_WORLD_SIZE"] = str(workers)
        worker = lambda r: start(command, common | threads | {"RANK": str(r), "LOCAL_RANK": str(r)})
        return watch({f"worker {r}": worker(r) for r in range(workers)}, {})
    if importlib.util.find_spec("mxnet") is None:
        parser.error("MXNet's parameter server needs mxnet: pip install mxnet==1.9.1, with numpy<2; or give -s 0")
    common = {
        "DMLC_PS_ROOT_URI": "127.0.0.1",
        "DMLC_PS_ROOT_PORT": port,
        "DMLC_NODE_HOST": "127.0.0.1",
        "DMLC_NUM_WORKER": str(workers),
        "DMLC_NUM_SERVER": str(servers),
    } | threads
    serve = [sys.executable, "-c", "import minnp, mxnet"]  # which does not return where DMLC_ROLE says so
    beside = {"the scheduler": start(serve, common | {"DMLC_ROLE": "scheduler"})}
    beside |= {f"server {i}": start(serve, common | {"DMLC_ROLE": "server"}) for i in range(servers)}
    worker = lambda r: start(command, common | {"DMLC_ROLE": "worker", "DMLC_WORKER_ID": str(r)})
    return watch({f"worker {r}": worker(r) for r in range(workers)}, beside)


def count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"at least one worker, got {number}")
    return number


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(command: list[str], variables: dict[str, str]) -> subprocess.Popen:
    return subprocess.Popen(command, env=os.environ | variables)


def watch(workers: dict[str, subprocess.Popen], beside: dict[str, subprocess.Popen]) -> int:
    """Wait until all workers have ended; stop everything where a process fails before."""
    everyone = workers | beside
    try:
        while any(p.poll() is None for p in workers.values()):
            for name, p in everyone.items():
                if p.poll():
                    print(f"minnp.launch: {name} (process {p.pid}) ended with {p.returncode}; stopping the others",
                          file=sys.stderr)  # fmt: skip
                    return p.returncode if p.returncode > 0 else 128 - p.returncode
            time.sleep(POLL)
        return next((p.returncode for p in workers.values() if p.returncode), 0)
    finally:
        stop(everyone.values())


def stop(processes: object) -> None:
    """Terminate what still runs, and kill what does not listen."""
    running = [p for p in processes if p.poll() is None]  # type: ignore[attr-defined]
    for p in running:
        p.terminate()
    deadline = time.monotonic() + GRACE
    for p in running:
        try:
            p.wait(max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()


if __name__ == "__main__":
    sys.exit(main())
