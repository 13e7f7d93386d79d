"""Trains a small network in processes that are killed again and again, and compares the end with an undisturbed run.

    python crash.py FOLDER TIMES

Half of the processes die at a random moment (SIGKILL); half at a random byte of a checkpoint: the kernel ends a process
whose file outgrows RLIMIT_FSIZE. The last line printed is a JSON report. Run as a script, because it forks.
"""

import json
import os
import random
import resource
import signal
import sys
import time
from pathlib import Path

import minnp.numpy as np
from minnp import nn

STEPS = 8  # batches per epoch


def train(path: str, epochs: int, at_byte: int | None = None, pause: float = 0.0) -> None:
    """Train to the end of `epochs`, resuming from `path`; die at `at_byte` of a checkpoint's file."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 6)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(np.int64)
    data = nn.io.NDArrayIter(
        x, y, 8, shuffle=True, seed=1, transform=lambda x, rng: x + 0.01 * rng.normal(size=x.shape)
    )
    net = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))
    if at_byte is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it, and the write would only fail
        resource.setrlimit(resource.RLIMIT_FSIZE, (at_byte, at_byte))

    class Slower(nn.callbacks.Callback):
        def on_batch_end(self, solver):
            time.sleep(pause)

    solver = nn.Solver(net, data, nn.io.NDArrayIter(x, y, 16), update_rule="adam", num_epochs=epochs, verbose=False,
                       seed=3, lr_decay=0.9, lr_schedule=nn.optim.cosine(200), clip_norm=1.0, callbacks=[Slower()],
                       checkpoint=path, checkpoint_every=1, resume=True, restore_best=False)  # fmt: skip
    solver.train()


def in_child(work) -> int:
    """Run work() in a forked process; its wait status."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    return child


def main(folder: Path, times: int) -> None:
    dice = random.Random(times)
    path, whole = str(folder / "disturbed"), str(folder / "undisturbed")
    killed = {"moment": 0, "byte": 0}
    steps = []
    begun = time.perf_counter()
    while sum(killed.values()) < times:
        if sum(killed.values()) % 2:
            size = os.path.getsize(path) if os.path.exists(path) else 10_000
            byte = dice.randrange(size)
            child = in_child(lambda byte=byte: train(path, 10**6, at_byte=byte))
            kind = "byte"
        else:
            child = in_child(lambda: train(path, 10**6, pause=0.002))
            time.sleep(dice.uniform(0.01, 0.25))
            os.kill(child, signal.SIGKILL)
            kind = "moment"
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"a child ended by itself with status {status}"
        assert os.WTERMSIG(status) == (signal.SIGKILL if kind == "moment" else signal.SIGXFSZ)
        killed[kind] += 1
        if nn.checkpoint.exists(path):
            _, facts = nn.checkpoint.load_latest(path)
            steps.append(facts["step"])
    assert steps == sorted(steps), "a checkpoint went back in time"
    epochs = steps[-1] // STEPS + 2 if steps else 2
    for name in (path, whole):
        _, status = os.waitpid(in_child(lambda name=name: train(name, epochs)), 0)
        assert status == 0
    (disturbed, facts), (undisturbed, other) = nn.checkpoint.load(path), nn.checkpoint.load(whole)
    equal = facts == other and list(disturbed) == list(undisturbed)
    equal = equal and all(disturbed[n].tobytes() == undisturbed[n].tobytes() for n in undisturbed)
    print(json.dumps({"killed": times, **killed, "steps": facts["step"], "equal": equal,
                      "seconds": round(time.perf_counter() - begun, 1)}))  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
