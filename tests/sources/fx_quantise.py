"""The torch.fx article, 6.2.1: quantisation after training: observe, show it batches, convert to integers."""

import copy

import minnp.numpy as np
from minnp import fx, nn

rng = np.random.default_rng(0)
net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 4)).init(seed=0)
batches = [rng.standard_normal((32, 20)).astype(np.float32) for _ in range(4)]
traced = fx.capture(lambda x: net(x), batches[0])

observed = fx.observe(copy.deepcopy(traced))
fx.calibrate(observed.graph, batches)
quantised = fx.convert(observed)
print([n.target.name for n in quantised.graph.nodes if "quantized" in getattr(n.target, "name", "")])
error = np.max(np.abs(quantised(batches[0]) - traced(batches[0]))) / np.max(np.abs(traced(batches[0])))
print("within 3 %:", bool(error < 0.03))
at_once = fx.quantize(copy.deepcopy(traced), batches)
print(np.array_equal(at_once(batches[0]), quantised(batches[0])))
