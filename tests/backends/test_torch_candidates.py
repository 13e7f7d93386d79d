"""jit(compiler="torch"): which way to run a function of tensors is measured, and every way gives the same."""

from contextlib import nullcontext, suppress
from functools import partial

import numpy as onp
import pytest

torch = pytest.importorskip("torch", reason="the torch backend needs torch: pip install torch")

import minnp
import minnp.numpy as np
from minnp import Context, grad, jit, npx
from minnp.backends.torch import candidates
from minnp.backends.torch.candidates import Choice, compiled, disagreement, replayed
from tests.backends.devices import ON_A_CPU, on_there
from tests.backends.devices import THERE as PLACE

pytestmark = on_there
X = onp.random.default_rng(0).standard_normal((4, 3)).astype("f4")


def plain(x):
    return torch.tanh(x) * 2, x.sum()


def as_it_is(run, data):
    return lambda *given: run(*given)


@pytest.mark.parametrize("took, chosen", [(0.5, "other"), (0.99, "plain"), (1.5, "plain")])
def test_the_faster_way_is_kept_if_it_is_clearly_faster(monkeypatch, took, chosen):
    monkeypatch.setattr(candidates, "seconds", lambda run, data: 1.0 if run is plain else took)
    choice = Choice(plain, {"other": as_it_is})
    x = torch.from_numpy(X)
    for _ in range(3):
        assert disagreement(choice(x), plain(x)) == ""
    assert choice.chosen == chosen and choice.seconds == {"plain": 1.0, "other": took}
    assert (choice.best is plain) == (chosen == "plain")


@pytest.mark.parametrize(
    "wrong, why",
    [
        (lambda x: (torch.tanh(x) * 2.1, x.sum()), "differs by"),
        (lambda x: (torch.tanh(x).double() * 2, x.sum()), "another type"),
        (lambda x: (torch.tanh(x) * 2,), "1 outputs, not 2"),
        (lambda x: (torch.tanh(x) * torch.nan, x.sum()), "differs by"),
        (lambda x: x.nonsense, "AttributeError"),
        (lambda x: torch.ones(2) @ torch.ones(3), "RuntimeError"),
    ],
)
def test_a_way_that_fails_or_gives_something_else_is_dropped_with_the_reason(wrong, why):
    choice = Choice(plain, {"wrong": lambda run, data: wrong})
    x = torch.from_numpy(X)
    assert choice(x)[0].shape == (4, 3)
    assert choice.chosen == "plain" and why in choice.dropped["wrong"] and choice.best is plain
    assert any(r["backend"] == "torch: wrong" and why in r["why"] for r in minnp.report())


def test_outputs_agree_in_everything():
    a, n = torch.tensor([1.0, torch.nan, torch.inf]), torch.tensor([1, 2])
    assert disagreement((a, n, 3), (a.clone(), n.clone(), 3)) == ""
    assert disagreement((a, n + 1), (a, n)) and disagreement((3,), (4,)) and disagreement((a[:2],), (a,))
    assert disagreement((torch.zeros(0),), (torch.zeros(0),)) == ""


def recorder(run):
    """What a CUDA graph does, on the CPU: the outputs of a replay lie where those of the recording lay."""
    outputs = run()

    def replay():
        for to, t in zip(outputs, run(), strict=True):
            to.copy_(t)

    return replay, outputs


def test_a_replay_reads_its_arguments_anew_and_leaves_earlier_results_alone():
    x = torch.from_numpy(X.copy())
    call = replayed(plain, [x], recorder)
    first, second = call(x), call(x * 3)
    assert disagreement(first, plain(x)) == "" and disagreement(second, plain(x * 3)) == ""
    x += 1
    assert disagreement(call(x), plain(x)) == ""
    with pytest.raises(TypeError, match="no tensor"):
        replayed(plain, [x, "text"], recorder)
    choice = Choice(lambda: (x * 2,), {"replayed": replayed})  # of constants alone: no argument has a device
    assert torch.equal(choice()[0], x * 2) and choice.dropped == {"replayed": "TypeError: no argument is a tensor"}


def test_a_number_is_recorded_and_another_one_computed_with():
    x = torch.from_numpy(X.copy())
    call = replayed(lambda x, rate: (x * rate, x), [x, 0.5], recorder)
    for rate in (0.5, 0.25, 0.5, 2):
        scaled, same = call(x, rate)
        assert torch.equal(scaled, x * rate) and torch.equal(same, x) and same is not call(x, 0.5)[1]


@pytest.fixture
def recorded(monkeypatch):
    """jit on the place of the CPU replays what a stand-in for CUDA graphs recorded: a list of how often it did."""
    replays = []

    def record(run):
        replay, outputs = recorder(run)
        return lambda: (replays.append(1), replay()), outputs

    graphs = lambda backend, graph, compiler, stream: {"CUDA graph": partial(replayed, record=record, stream=stream)}
    monkeypatch.setattr(candidates, "candidates", graphs)
    monkeypatch.setattr(candidates, "seconds", lambda run, data: 1.0 if run.__name__ == "run" else 0.5)
    return replays


def test_replays_of_a_training_step_are_eagers(recorded):
    def loss(w, x, y):
        h = np.tanh(x @ w)
        h[0] *= 2
        return np.mean((h - y) ** 2) + np.sum(np.ones((2, 2)) * w[:2, :2])

    def train(step, w, x, y):
        kept = []
        for i in range(8):
            g, value = step(w, x * (i + 1), y)
            kept.append((g, value))
            w -= 0.1 * g
        return [onp.asarray(a) for pair in kept for a in (*pair, w)]

    with PLACE:
        w, v, x, y = np.array(X.T.copy()), np.array(X.T.copy()), np.array(X), np.array(X[:, :1])
    step = jit(minnp.grad_and_loss(loss))
    got, want = train(step, w, x, y), train(minnp.grad_and_loss(loss), v, x, y)
    assert all(onp.allclose(a, b, rtol=1e-5) for a, b in zip(got, want, strict=True))
    assert step.measured() == [{"CUDA graph": 0.5, "plain": 1.0}] and len(recorded) == 1 + 8 - 3
    minnp.reset_report()
    step(w, x, y)
    assert not [r for r in minnp.report() if "copy" in r["function"]] and len(recorded) == 7
    step(w, x[:2], y[:2]), step(w, x[:2], y[:2]), step(w, x[:2], y[:2]), step(w, x[:2], y[:2])
    assert len(step.measured()) == 2  # of other shapes, another recording


@pytest.mark.parametrize("inside", [True, False])
def test_draws_are_eagers_at_every_call(inside, recorded):
    """Drawn where they live, anew in every replay, and the same again from the same seed."""

    def f(x):
        noise = npx.dropout(x, 0.5)
        return noise + (np.random.normal(size=x.shape) if inside else 0), np.zeros(3)

    with PLACE:
        x = np.array(X)

    def drawn(f):
        np.random.seed(3)
        with PLACE if inside else nullcontext():
            return [onp.asarray(f(x)[0]) for _ in range(6)]

    compiled, want = jit(f), drawn(f)
    for _ in range(2):
        assert all(onp.array_equal(a, b) for a, b in zip(drawn(compiled), want, strict=True))
    assert not any(onp.array_equal(want[0], b) for b in want[1:])
    assert compiled.measured() == [{"CUDA graph": 0.5, "plain": 1.0}] and recorded
    minnp.reset_report()
    drawn(compiled)
    assert not [r for r in minnp.report() if "copy to device" in r["function"]]


def test_draws_before_a_branch_that_goes_another_way_are_drawn_again():
    f = lambda x: x * 2 if np.random.uniform(size=3).sum() > 1.5 else x * 3
    with PLACE:
        x = np.array(X)
        found = []
        for g in (f, jit(f)):
            np.random.seed(0)
            found.append([float(g(x)[0, 0]) for _ in range(12)])
    assert found[0] == found[1] and len(set(found[0])) == 2


def test_a_capture_that_fails_leaves_the_calls_and_says_why(monkeypatch):
    def refused(run, device, stream):
        raise RuntimeError("operation not permitted when stream is capturing")

    graphs = lambda backend, graph, compiler, stream: {"CUDA graph": partial(replayed, stream=stream)}
    monkeypatch.setattr(candidates, "candidates", graphs)
    monkeypatch.setattr(candidates, "cuda_graph", refused)
    with PLACE:
        x = np.array(X)
    minnp.reset_report()
    f = jit(lambda x: np.exp(x) * 2)
    for _ in range(4):
        assert onp.allclose(f(x), onp.exp(X) * 2)
    (row,) = [r for r in minnp.report() if r["backend"] == "torch: CUDA graph"]
    assert row["function"] == "jit" and row["calls"] == 1 and "stream is capturing" in row["why"]


@pytest.mark.long
@ON_A_CPU
def test_the_generated_function_is_one_torch_compile_takes_whole():
    with PLACE:
        x = np.array(X)
    f = jit(lambda x: np.tanh(x @ x.T)[1:] + x[0, 0])
    f(x), f(x)
    ((path,),) = f.paths.values()
    data, run = [x._value.data], path.run.run.plain
    assert disagreement(compiled(run, data, backend="eager")(*data), run(*data)) == ""


@ON_A_CPU
def test_what_takes_seconds_to_make_is_tried_only_where_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(candidates, "compiled", as_it_is)
    monkeypatch.setattr(candidates, "seconds", lambda run, data: {"run": 1.0, "call": 0.5}.get(run.__name__, 0.1))
    with PLACE:
        x = np.array(X)
    for array, others in ((x, {"host": 0.5, "plain": 1.0}), (np.array(X), {"plain": 1.0})):
        f, g = jit(lambda x: np.exp(x) * 2, compiler="torch"), jit(lambda x: np.exp(x) * 2)
        for _ in range(4):
            assert onp.allclose(f(array), onp.exp(X) * 2) and onp.allclose(g(array), onp.exp(X) * 2)
        assert f.measured() == [{"torch.compile": 0.1, **others}]
        assert g.measured() in ([[others]] if array is x else ([], [{}]))
    guarded = jit(lambda x: x * 2 if x.sum() > 1e3 else x, compiler="torch")
    for _ in range(4):
        guarded(x)
    assert guarded.measured() == [{}]  # a guard is asked in Python


@pytest.fixture
def on_the_host(monkeypatch):
    """jit on a place of the CPU runs NumPy's code, however long it takes."""
    monkeypatch.setattr(candidates, "seconds", lambda run, data: 1.0 if run.__name__ == "run" else 0.5)


@ON_A_CPU
def test_on_a_cpu_jit_may_run_numpys_code_in_the_tensors_memory(on_the_host):
    def loss(w, x):
        h = np.tanh(x @ w)
        h[0] = OUTSIDE[0]
        return np.mean(h**2) + np.sum(np.log(x[1:] ** 2) * 0.1)

    with PLACE:
        x, w, OUTSIDE = np.array(X), np.array(X.T.copy()), np.array(X[:, :1] @ X[:1, :1])
    f, eager = jit(minnp.grad_and_loss(loss, argnum=[0, 1])), minnp.grad_and_loss(loss, argnum=[0, 1])
    for i in range(5):
        OUTSIDE[0] = i  # read anew
        minnp.reset_report()
        (gw, gx), value = f(w, x)
        assert not [r for r in minnp.report() if "copy" in r["function"] and "device" in r["function"]]
        (ew, ex), expected = eager(w, x)
        assert f.measured() == ([{"host": 0.5, "plain": 1.0}] if i > 1 else [{}])
        for a, b in ((gw, ew), (gx, ex), (value, expected)):
            assert a.device == b.device and a.dtype == b.dtype and a.shape == b.shape
            assert onp.allclose(onp.asarray(a), onp.asarray(b), rtol=1e-4)
        x *= 1.5
    assert any(r["backend"] == "torch: host" and r["function"] == "matmul" for r in minnp.report())


@ON_A_CPU
@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x, x[1:], x * 2),
        lambda x: (x * 2).reshape(-1)[::-1],
        lambda x: [(y := x * 2), y, y[1:], y.T],
        lambda x: (np.broadcast_to(x[:1] + 1, (4, 3)), np.ones_like(x), x.sum(), x[0, 0]),
        lambda x: (x.real, np.sort(x).reshape(3, 4), x > 0, x.astype("i8"), np.argmax(x)),
    ],
)
def test_results_of_numpys_code_share_no_memory(f, on_the_host):
    """A write into one, in place where nobody else has its tensor, is seen where it is when torch's calls made it."""
    with PLACE:
        x, y = np.array(X), np.array(X)
    compiled, plain = jit(f), jit(f, compiler="numpy")
    for _ in range(4):
        got, want = compiled(x), plain(y)
        (got, want) = ((got,), (want,)) if isinstance(got, np.ndarray) else (got, want)
        for a, b in zip(got, want, strict=True):
            assert a.dtype == b.dtype and onp.allclose(onp.asarray(a), onp.asarray(b), rtol=1e-5)
        for i, (a, b) in enumerate(zip(got, want, strict=True)):
            for array in (a, b) if a.ndim else ():
                with suppress(ValueError):  # a broadcast view is read-only
                    array[...] = i
        for a, b in zip((*got, x), (*want, y), strict=True):
            assert onp.allclose(onp.asarray(a), onp.asarray(b), rtol=1e-5)
        for a in (x, y):
            a[...] = X
    assert compiled.measured() == [{"host": 0.5, "plain": 1.0}] and plain.measured() == [{}]


def test_a_compiler_is_a_backend_that_can_be_had():
    with pytest.raises(ValueError, match="torch"):
        jit(lambda x: x, compiler="nonsense")
    if "mxnet" not in minnp.backends.installed():
        with pytest.raises(minnp.errors.BackendMissingError):
            jit(lambda x: x, compiler="mxnet")


@pytest.mark.gpu
def test_a_cuda_graph_replays_what_jit_captured():
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    with Context("gpu", 0, "torch"):
        x = np.array(X)
    f = jit(grad(lambda x: np.sum(np.tanh(x @ x.T)[1:] ** 2)))
    f(x), f(x)
    ((path,),) = f.paths.values()
    data = [x._value.data]
    call = replayed(path.run.run, data)
    for _ in range(3):
        assert disagreement(call(*data), path.run.run(*data)) == ""
        data = [data[0] * 0.5]
