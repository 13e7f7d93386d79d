"""A net that reads handwritten digits, trained by several processes, one of which is killed on the way.

    torchrun --nproc-per-node 2 --max-restarts 1 tutorials/processes/digits.py --kill 3
    python tutorials/processes/digits.py                    # the same program alone: the same curve

Every process runs all of this program and computes on its share of each batch; gradients are averaged while they are
computed, so the step is that of one process with the whole batch. After epoch 3 process 1 kills itself as a crash or a
lost machine would. torchrun sees it, stops the others and starts the program again, which goes on from the checkpoint.
"""

import argparse
import os
import signal
import tempfile

import minnp
from minnp import nn

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--kill", type=int, metavar="EPOCH", help="kill process 1 after this epoch, once")
parser.add_argument("--checkpoint", help="where the state of the training is kept")
arguments = parser.parse_args()

mesh = minnp.distributed.init()
first_attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"


class Accident(nn.callbacks.Callback):
    def on_epoch_end(self, solver):
        if first_attempt and solver.epoch == arguments.kill and mesh.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)


data = nn.io.digits()
net = nn.Sequential(nn.Flatten(), nn.Linear(64, 100), nn.BatchNorm(100), nn.ReLU(), nn.Linear(100, 10))
with tempfile.TemporaryDirectory() as folder:
    history = net.fit(
        *(data.x_train, data.y_train),
        epochs=arguments.epochs,
        batch_size=100,
        learning_rate=0.01,
        verbose=False,
        mesh=mesh,
        checkpoint=arguments.checkpoint or f"{folder}/digits",
        resume=arguments.checkpoint is not None,
        callbacks=[Accident()],
    )
accuracy = net.evaluate(data.x_test, data.y_test)["accuracy"]
if mesh.first:
    attempt = "" if first_attempt else ", after a restart"
    print(f"{mesh.size} processes{attempt}: {len(history['loss'])} epochs, loss {history['loss'][-1]:.3f}")
    print(f"test accuracy {100 * accuracy:.1f}%")
