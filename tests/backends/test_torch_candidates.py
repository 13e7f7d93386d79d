"""jit(compiler="torch"): which way to run a function of tensors is measured, and every way gives the same."""

import numpy as onp
import pytest

torch = pytest.importorskip("torch", reason="the torch backend needs torch: pip install 'minnp[torch]'")

import minnp
import minnp.numpy as np
from minnp import Context, grad, jit
from minnp.backends.torch import candidates
from minnp.backends.torch.candidates import Choice, compiled, disagreement, replayed

PLACE = Context("cpu", 0, "torch")
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
        replayed(plain, [2.0], recorder)
    choice = Choice(lambda: (x * 2,), {"replayed": replayed})  # of constants alone: no argument has a device
    assert torch.equal(choice()[0], x * 2) and choice.dropped == {"replayed": "TypeError: no argument is a tensor"}


def test_the_generated_function_is_one_torch_compile_takes_whole():
    with PLACE:
        x = np.array(X)
    f = jit(lambda x: np.tanh(x @ x.T)[1:] + x[0, 0])
    f(x), f(x)
    ((path,),) = f.paths.values()
    data = [x._value.data]
    assert disagreement(compiled(path.run.run, data, backend="eager")(*data), path.run.run(*data)) == ""


def test_jit_measures_only_where_it_is_asked_to(monkeypatch):
    monkeypatch.setattr(candidates, "compiled", as_it_is)
    monkeypatch.setattr(candidates, "seconds", lambda run, data: 1.0 if run.__name__ == "run" else 0.1)
    with PLACE:
        x = np.array(X)
    for array in (x, np.array(X)):
        f, g = jit(lambda x: np.exp(x) * 2, compiler="torch"), jit(lambda x: np.exp(x) * 2)
        for _ in range(4):
            assert onp.allclose(f(array), onp.exp(X) * 2) and onp.allclose(g(array), onp.exp(X) * 2)
        assert f.measured() == [{"torch.compile": 0.1, "plain": 1.0}]
        assert g.measured() in ([], [{}])
    guarded = jit(lambda x: x * 2 if x.sum() > 1e3 else x, compiler="torch")
    for _ in range(4):
        guarded(x)
    assert guarded.measured() == [{}]  # a guard is asked in Python


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
