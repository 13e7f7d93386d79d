"""What can be seen of a model and its training: the summary, TensorBoard's graph and histograms, a timeline."""

import json
import threading

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import nn
from minnp.utils import minprof as module
from minnp.utils.minprof import Profiler, minprof

X = onp.random.default_rng(0).standard_normal((20, 1, 8, 8)).astype("f")
Y = onp.arange(20) % 2


def net():
    steps = nn.Conv2D(1, 4), nn.BatchNorm(4), nn.ReLU(), nn.Residual(nn.Conv2D(4, 4, padding=1)), nn.Dropout()
    return nn.Sequential(*steps, nn.Flatten(), nn.Linear(144, 2))


# ------------------------------------------------------------------ summary
def test_a_summary_has_each_layer_its_output_its_parameters_and_its_operations():
    model = net()
    table = model.summary((2, 1, 8, 8))
    assert not model.initialised, "the model stays as it is"
    lines = {line.name: line for line in table}
    assert [(line.name, line.kind) for line in table] == [
        ("", "Sequential"), ("0", "Conv2D"), ("1", "BatchNorm"), ("2", "ReLU"), ("3", "Residual"),
        ("3.inner", "Conv2D"), ("4", "Dropout"), ("5", "Flatten"), ("6", "Linear"),
    ]  # fmt: skip
    assert lines["0"].output == lines["3.inner"].output == (2, 4, 6, 6) and lines["6"].output == (2, 2)
    assert lines["0"].parameters == 4 * 9 + 4 and lines["1"].parameters == 8 and lines["2"].parameters == 0
    assert table.parameters == lines[""].parameters == 40 + 8 + 148 + 290 == model.init().size
    # a multiplication and an addition for each weight and place, and an addition for each bias
    assert lines["0"].flops == 2 * 9 * 2 * 4 * 36 + 2 * 4 * 36 and lines["6"].flops == 2 * 144 * 2 * 2 + 2 * 2
    assert lines["3"].flops == lines["3.inner"].flops + 2 * 4 * 36
    assert table.flops == sum(line.flops for line in table if line.name in "0123456" and line.name)
    assert model.summary(X[:2]) == table
    text = str(table).splitlines()
    assert text[0].split() == ["layer", "output", "shape", "parameters", "flops"]
    assert text[2].split() == ["Sequential", "(2,", "2)", "486", f"{table.flops:,}"]
    assert text[7].startswith("    3.inner: Conv2D  (2, 4, 6, 6)") and repr(table) == str(table)


def test_a_summary_of_sequences_and_of_models_of_ones_own():
    model = nn.Sequential(nn.Embedding(9, 4), nn.LSTM(4, 8, 2, bidirectional=True, last=True), nn.Linear(16, 2))
    lines = model.summary(onp.zeros((3, 5), int))
    assert [line.output for line in lines] == [(3, 2), (3, 5, 4), (3, 16), (3, 2)]
    assert lines[2].parameters == sum(2 * (d * 32 + 8 * 32 + 32) for d in (4, 16)) and lines[2].flops > 0

    class Own(nn.ModelBase):
        def __init__(self):
            self.shared, self.unused = nn.Linear(4, 4), nn.Linear(2, 2)

        def forward(self, x, z, mode):
            total = self.shared(self.shared(x)) + z
            return (total, float(np.sum(total)) > 0)

    lines = {line.name: line for line in Own().summary((3, 4), onp.ones((3, 4)))}
    assert lines[""].output == ((3, 4), "bool")
    assert lines["shared"].flops == 2 * (2 * 4 * 4 * 3 + 12) and lines["shared"].parameters == 20
    assert lines["unused"].output is None and "not called" in str(Own().summary((3, 4), onp.ones((3, 4))))


def test_a_summary_leaves_no_trace():
    """The running averages, the random numbers of training, and what watches the layers."""
    model = net().init(0)
    before = {name: onp.asarray(value).copy() for name, value in model.aux_tree().items()}
    model.summary(X, mode="train")
    for name, value in model.aux_tree().items():
        assert onp.array_equal(onp.asarray(value), before[name])
    assert nn.model.WATCHERS == []
    with pytest.raises(ValueError):
        model.summary((2, 1, 3))
    assert nn.model.WATCHERS == []
    with pytest.raises(TypeError, match="summary has no argument 'input_size'"):
        model.summary(input_size=(2, 1, 8, 8))


# ------------------------------------------------------------------ TensorBoard
def logs_of(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    logs = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    logs.Reload()
    return logs


def test_tensorboard_shows_histograms_of_parameters_and_gradients(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.util import tensor_util

    board = nn.callbacks.TensorBoard(tmp_path, histograms=2)
    model = net()
    model.fit(X, Y, epochs=4, callbacks=[board], verbose=False, batch_size=10)
    logs = logs_of(tmp_path)
    tags = set(logs.Tags()["tensors"])
    assert {f"{kind}/{name}" for kind in ("parameters", "gradients") for name in model.tree()} <= tags
    assert {"step/loss", "epoch/loss"} <= tags and not logs.Tags()["graph"]
    events = logs.Tensors("parameters/0.w")
    assert [event.step for event in events] == [2, 4], "every second epoch"
    buckets = tensor_util.make_ndarray(events[-1].tensor_proto)
    w = onp.asarray(model.tree()["0.w"])
    assert buckets[:, 2].sum() == w.size
    assert buckets[0, 0] == pytest.approx(w.min()) and buckets[-1, 1] == pytest.approx(w.max())


def test_tensorboard_shows_the_graph_of_the_model(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    net().fit(X, Y, epochs=1, callbacks=[nn.callbacks.TensorBoard(tmp_path, graph=True)], verbose=False, batch_size=10)
    graph = GraphDef.FromString(logs_of(tmp_path).Graph().SerializeToString())
    nodes = {node.name: node for node in graph.node}
    assert list(nodes["0/Conv2D"].input) == ["x"] and nodes["3/inner/Conv2D"].op == "Conv2D"
    assert sorted(nodes["add"].input) == ["2/ReLU", "3/inner/Conv2D"]
    sizes = nodes["6/Linear"].attr["_output_shapes"].list.shape[0]
    assert [dim.size for dim in sizes.dim] == [10, 2]
    for node in graph.node:
        assert all(name in nodes for name in node.input)


def test_tensorboard_shows_the_rows_of_a_model_that_looks_at_its_data(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    class Looking(nn.Sequential):
        def forward(self, x, mode=None):
            x = super().forward(x, mode)
            return x if np.sum(x) > -1e9 else -x

    model = Looking(nn.Flatten(), nn.Linear(64, 2))
    model.fit(X, Y, epochs=1, callbacks=[nn.callbacks.TensorBoard(tmp_path, graph=True)], verbose=False, batch_size=10)
    graph = GraphDef.FromString(logs_of(tmp_path).Graph().SerializeToString())
    assert {"matmul", "reshape"} & {node.op for node in graph.node}


def test_gradients_are_kept_where_a_callback_reads_them_and_nowhere_else():
    solver = nn.Solver(net(), nn.io.NDArrayIter(X, Y, 10), num_epochs=1, verbose=False)
    solver.train()
    assert solver.gradients == {}

    class Reading(nn.callbacks.Callback):
        reads_gradients = True

        def on_batch_end(self, solver):
            assert set(solver.gradients) == set(solver.model.tree()) and solver.batch.data[0].shape == (10, 1, 8, 8)

    nn.Solver(net(), nn.io.NDArrayIter(X, Y, 10), num_epochs=1, verbose=False, callbacks=[Reading()]).train()


# ------------------------------------------------------------------ the timeline
def test_a_timeline_is_written_as_chromes_trace_events(tmp_path):
    @minprof
    def prepared(x):
        with minprof("halves"):
            return x / 2

    with minprof.timeline(tmp_path / "trace.json") as timeline:
        net().fit(prepared(X), Y, epochs=2, verbose=False, batch_size=10, checkpoint=tmp_path / "a")
    trace = json.loads((tmp_path / "trace.json").read_text())
    events = trace["traceEvents"]
    assert len(events) == len(timeline.spans) and {event["ph"] for event in events} == {"X"}
    for event in events:
        assert event["ts"] >= 0 and event["dur"] >= 0 and {"name", "cat", "pid", "tid", "args"} <= set(event)
    count = lambda category, name: sum(e["cat"] == category and e["name"] == name for e in events)
    assert count("training", "loss and gradients") == count("training", "update") == 4
    assert count("training", "batch") == 2 * 3 and count("training", "checkpoint") == 2
    assert count("training", "measure") == 2 and count("layer", "Linear") == 4
    inner = next(e for e in events if e["name"] == "halves")
    outer = next(e for e in events if e["name"].endswith("prepared"))
    assert outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]
    assert __file__ in inner["args"]["where"]
    convolution = next(e for e in events if e["name"] == "Conv2D")
    assert convolution["args"]["given"] == "float32[10, 1, 8, 8]"
    step = next(e for e in events if e["name"] == "loss and gradients")
    assert step["ts"] <= convolution["ts"] and convolution["ts"] + convolution["dur"] <= step["ts"] + step["dur"]


def test_no_timeline_is_recorded_unless_asked():
    profile = Profiler()
    with profile.timeline() as first, profile.timeline() as second, profile("both"):
        pass
    with profile("none"):
        net().init(0)(X, mode="test")
    assert [span.name for span in first.spans] == [span.name for span in second.spans] == ["both"]
    assert module.TIMELINES == [] and nn.model.WATCHERS == []
    assert {name: calls for (_, _, name), (calls, _) in profile.get_stats().items()} == {"both": 1, "none": 1}
    with pytest.raises(ZeroDivisionError), profile.timeline() as timeline, profile("failing"):
        1 / 0
    assert [span.name for span in timeline.spans] == ["failing"] and module.TIMELINES == []


def test_threads_have_lines_of_their_own_on_a_timeline():
    profile = Profiler()

    @profile
    def work():
        barrier.wait()

    barrier = threading.Barrier(2)
    with profile.timeline() as timeline:
        threads = [threading.Thread(target=work) for _ in range(2)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    assert len({span.thread for span in timeline.spans}) == len(timeline.spans) == 2
    assert all(span.duration >= 0 for span in timeline.spans)


def test_the_layers_of_a_compiled_step_are_seen_while_it_is_captured():
    model = net().init(0)
    step = minnp.jit(lambda x: model(x, mode="test"))
    with minprof.timeline() as timeline:
        step(np.array(X))
    assert any(span.name == "Conv2D" for span in timeline.spans)
