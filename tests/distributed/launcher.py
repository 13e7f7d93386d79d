"""Runs cases in groups of processes, for the tests: one process imports torch, and forks the ranks of each group once.

Reads a line {"size": 3, "case": "collectives.sums"} at a time, and answers with a line [error of rank 0 or null, ...].
"""

import importlib
import json
import os
import select
import signal
import sys
import tempfile
import time
import traceback

import torch.distributed  # noqa: F401  (here, so that each rank has it)

import minnp.nn

LIMIT = 120  # seconds for one case
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


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        ask = json.loads(line)
        answers.write(json.dumps(run(ask["size"], ask["case"], ask["fresh"])) + "\n")
        answers.flush()
