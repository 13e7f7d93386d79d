"""Runs cases in groups of processes, for the tests: one process imports torch, and forks the ranks of each group once.

Reads a line {"size": 3, "case": "collectives.sums"} at a time, and answers with a line [error of rank 0 or null, ...];
or {"size": 2, "program": [file, argument, ...], "folder": ..., "kill": [rank, seconds] or null, "within": seconds}, a
job of its own as torchrun would start it, and answers [[exit status, stdout, stderr] of rank 0, ...].
"""

import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

import torch.distributed  # noqa: F401  (here, so that each rank has it)

import minnp.nn

LIMIT = 300  # seconds for one case, of which the longest take 30 where nothing else runs
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the ranks
groups: dict[int, list] = {}


def rank_of_a_group(rank: int, size: int, file: str, todo: int, done: int) -> None:
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), LOCAL_WORLD_SIZE=str(size), MINNP_MESH_FILE=file)
    mesh = minnp.distributed.init(timeout=60)
    with os.fdopen(todo) as cases, os.fdopen(done, "w") as answers:
        for line in cases:
            module, name = line.strip().rsplit(".", 1)
            error = None
            try:
                getattr(importlib.import_module(f"cases.{module}"), name)(mesh)
            except BaseException:
                error = traceback.format_exc()
            answers.write(json.dumps(error) + "\n")
            answers.flush()


def start(size: int) -> list:
    file = tempfile.mktemp(prefix="minnp-mesh-")
    ranks = []
    for rank in range(size):
        (todo, give), (take, done) = os.pipe(), os.pipe()
        if not os.fork():
            for _, write, read in [r for group in groups.values() for r in group] + ranks:
                write.close(), read.close()
            os.close(give), os.close(take)
            devnull = os.open(os.devnull, os.O_RDWR)
            os.dup2(devnull, 0), os.dup2(2, 1)
            try:
                rank_of_a_group(rank, size, file, todo, done)
            except BaseException:
                traceback.print_exc()
            minnp.distributed.leave()
            os._exit(0)
        os.close(todo), os.close(done)
        ranks.append((rank, os.fdopen(give, "w"), os.fdopen(take)))
    return ranks


def run(size: int, case: str, fresh: bool) -> list:
    if fresh:
        group = start(size)
    else:
        group = groups[size] = groups.get(size) or start(size)
    for _, write, _ in group:
        write.write(case + "\n")
        write.flush()
    deadline, out = time.monotonic() + LIMIT, []
    for rank, _, read in group:
        ready, _, _ = select.select([read], [], [], max(deadline - time.monotonic(), 0))
        line = read.readline() if ready else ""
        out.append(json.loads(line) if line else f"rank {rank} {'died' if ready else 'did not end'}")
    if any(out) or fresh:  # nobody knows where its ranks are: the next case has others
        for _, write, read in group:
            write.close(), read.close()
        if not fresh:
            del groups[size]
    return out


def job(size: int, program: list, folder: str, kill: list | None, within: float) -> list:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # how each rank ended is asked for
    meeting = tempfile.mktemp(prefix="minnp-mesh-")
    said = Path(tempfile.mkdtemp(prefix="minnp-mesh-"))
    start, running, out = time.monotonic(), {}, [None] * size
    for rank in range(size):
        files = [os.open(said / f"{rank}.{k}", os.O_WRONLY | os.O_CREAT) for k in (1, 2)]
        running[rank] = os.fork()
        if not running[rank]:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(files[0], 1), os.dup2(files[1], 2)
            os.chdir(folder)
            sys.argv = program
            variables = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "MINNP_MESH_FILE": meeting}
            os.environ.update({name: str(v) for name, v in variables.items()})
            runpy.run_path(program[0], run_name="__main__")
            sys.exit()
        for file in files:
            os.close(file)
    awaited(running, out, start, kill, within)
    for rank, ended in enumerate(out):
        ended += [(said / f"{rank}.{k}").read_text() for k in (1, 2)]
    shutil.rmtree(said)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    return out


def awaited(running: dict, out: list, start: float, kill: list | None, within: float) -> None:
    """out[rank] = [exit status] of the processes in `running`, one of which is killed at its moment."""
    while running and time.monotonic() < start + within:
        if kill and time.monotonic() > start + kill[1]:
            if kill[0] in running:
                os.kill(running[kill[0]], signal.SIGKILL)
            kill = None
        for rank, pid in list(running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del running[rank]
                out[rank] = [os.waitstatus_to_exitcode(status)]
        time.sleep(0.01)
    for rank, pid in running.items():
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        out[rank] = ["did not end"]


if __name__ == "__main__":
    gc.freeze()  # no rank looks for garbage in what there is already
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        ask = json.loads(line)
        answers.write(json.dumps(job(**ask) if "program" in ask else run(**ask)) + "\n")
        answers.flush()
