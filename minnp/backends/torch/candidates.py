"""Ways to run one generated function of tensors, and the choice among them by measurement.

The plain function is always one of them. On a CPU another is what jit makes of the same graph for NumPy, whose memory
this is. Where jit was asked to compile for torch (`jit(f, compiler="torch")`) others are torch.compile's code, which
takes seconds to make, and on CUDA its calls replayed as a CUDA graph, which keeps its copies of arguments and results.
A candidate is dropped, and minnp.report() has the reason, if it cannot be made or does not compute what the plain
function computes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from threading import Lock
from typing import Any

import numpy as onp
import torch

from ...core.graph.graph import Graph
from ...core.jit.executor import compile_host
from ...core.jit.specialisation import alone, lowered
from ...core.rows import report
from ...core.rows.value import Host
from .dtypes import PYTHON, TO_NUMPY, TO_TORCH, device_of, kept_scalars, wait_for

Tensor = torch.Tensor
ROUNDS = 5  # each way is timed so often, and counts with its shortest time
ENOUGH = 1.0  # seconds of timing after which no further round begins
GAIN = 0.97  # of the plain function's time: what another way may take at most
# of a library that lacks something, a compiler, or NumPy's kernels where torch's gave a result
UNMADE = (RuntimeError, ImportError, TypeError, AttributeError, ValueError, LookupError, ArithmeticError, OSError)


class Choice:
    """The fastest of several functions of tensors that compute the same; found at the first call.

    others    by name, what makes another of (the plain one, its arguments)
    stream    what they draw from: each draws the same numbers while they are compared, as if one had run
    chosen    its name, once it was found
    seconds   the shortest time of each, by name
    dropped   why others were left out, by name
    """

    def __init__(self, plain: Callable, others: dict[str, Callable], stream: Any = None) -> None:
        self.plain, self.others, self.stream = plain, others, stream
        self.best, self.chosen = plain, ""
        self.seconds: dict[str, float] = {}
        self.dropped: dict[str, str] = {}

    def __call__(self, *data: Any) -> tuple:
        return self.best(*data) if self.chosen else self._measured(data)

    def _measured(self, data: Sequence[Any]) -> tuple:
        before = self.stream and self.stream.get_state()
        out = self.plain(*data)
        after = self.stream and self.stream.get_state()
        runs = {"plain": self.plain}
        for name, make in self.others.items():
            try:
                run = make(self.plain, data)
                if self.stream:
                    self.stream.set_state(before)
                different = disagreement(run(*data), out)
            except UNMADE as error:
                different = f"{type(error).__name__}: {error}"
            if different:
                self.dropped[name] = different
                report.record("jit", f"torch: {name}", 0.0, (), different)
            else:
                runs[name] = run
        start = time.perf_counter()
        for _ in range(ROUNDS if len(runs) > 1 else 0):
            for name, run in runs.items():  # in turns: whatever slows the machine slows them alike
                self.seconds[name] = min(self.seconds.get(name, float("inf")), seconds(run, data))
            if time.perf_counter() - start > ENOUGH:
                break
        if self.stream:
            self.stream.set_state(after)
        fastest = min(self.seconds, key=self.seconds.__getitem__, default="plain")
        wins = fastest != "plain" and self.seconds[fastest] <= GAIN * self.seconds["plain"]
        self.best, self.chosen = (runs[fastest], fastest) if wins else (self.plain, "plain")
        return out


def seconds(run: Callable, data: Sequence[Any]) -> float:
    wait(data)
    start = time.perf_counter()
    run(*data)
    wait(data)
    return time.perf_counter() - start


def wait(data: Sequence[Any]) -> None:
    """Until the devices of these tensors have computed all they were given."""
    for device in {t.device for t in data if type(t) is Tensor}:
        wait_for(device)


def disagreement(got: Any, want: Any) -> str:
    """How outputs differ from the plain function's: in type, shape, dtype, or by more than rounding."""
    if len(got) != len(want):
        return f"{len(got)} outputs, not {len(want)}"
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        if type(w) is not Tensor:
            if type(g) is not type(w) or g != w:
                return f"output {i} is {g!r}, not {w!r}"
            continue
        if type(g) is not Tensor or g.shape != w.shape or g.dtype is not w.dtype or g.device != w.device:
            return f"output {i} is of another type, shape or dtype"
        if not (w.dtype.is_floating_point or w.dtype.is_complex):
            if not torch.equal(g, w):
                return f"output {i} has other elements"
            continue
        error = torch.where((g == w) | (g.isnan() & w.isnan()), 0, (g - w).abs())
        largest = torch.where(w.isfinite(), w.abs(), 0).max() if w.numel() else 0
        if w.numel() and not bool(error.max() <= 1e4 * torch.finfo(w.dtype).eps * largest):
            return f"output {i} differs by {float(error.max()):.3g}, where the largest number is {float(largest):.3g}"
    return ""


# ------------------------------------------------------------------ the candidates
def only_tensors(data: Sequence[Any]) -> None:
    """Raises TypeError where a candidate would be made for a number that may be another one at the next call, or no
    argument says on which device."""
    if not data:
        raise TypeError("no argument is a tensor")
    if not all(type(t) is Tensor for t in data):
        raise TypeError("an argument that is no tensor would be taken for the number it is now")


def compiled(run: Callable, data: Sequence[Any], backend: str = "inductor") -> Callable:
    """torch.compile's code of the generated function, for the shapes it has."""
    only_tensors(data)
    return torch.compile(run, fullgraph=True, dynamic=False, backend=backend)


def replayed(run: Callable, data: Sequence[Any], record: Callable | None = None, stream: Any = None) -> Callable:
    """The calls of torch recorded once on copies of the arguments, and replayed: one launch for all kernels.

    record    (function of no arguments) -> (replay, its outputs); by default as a CUDA graph
    stream    the generator that the calls draw from: every replay draws from where it stands

    Arguments are copied to where the recording reads, results from where it writes: the next replay writes there again.
    Numbers are recorded as they are; with others the calls are made one by one.
    """
    only_tensors([t for t in data if type(t) not in PYTHON])
    inputs = [t.clone() if type(t) is Tensor else t for t in data]
    turn = Lock()  # of the threads that call: there is one place for arguments and one for results
    replay, outputs = (record or partial(cuda_graph, device=device_of(inputs), stream=stream))(lambda: run(*inputs))

    def call(*given: Tensor) -> tuple:
        with turn:
            for to, t in zip(inputs, given, strict=True):
                if type(t) is Tensor:
                    to.copy_(t)
                elif type(t) is not type(to) or repr(t) != repr(to):  # 0.0 is not -0.0
                    return run(*given)
            replay()
            return tuple([t.clone() if type(t) is Tensor else t for t in outputs])

    return call


def cuda_graph(run: Callable, device: torch.device, stream: Any = None) -> tuple[Callable, tuple]:
    """(what replays the kernels that `run` launches, the tensors it returned), after runs that let libraries settle.
    On that device: streams, and so what a capture sees, are of the current one."""
    with torch.cuda.device(device):
        return _recorded(run, device, stream)


def _recorded(run: Callable, device: torch.device, stream: Any) -> tuple[Callable, tuple]:
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    if stream is not None:
        graph.register_generator_state(stream)
    with torch.cuda.graph(graph):
        outputs = run()

    read = kept_scalars()  # kernels know them by address, besides the arguments and the graph's own memory

    def replay(keep: Any = read) -> None:
        with torch.cuda.device(device):
            graph.replay()

    return replay, outputs


class Hosted:
    """A graph as jit compiles it for NumPy, on the memory of a CPU's tensors: a way to run it, made as the others are.

    Arguments come in the order of the generated function: placeholders, then the arrays made outside."""

    def __init__(self, graph: Graph, compiler: str) -> None:
        self.graph, self.compiler = graph, compiler

    def __call__(self, run: Callable, data: Sequence[Any]) -> Callable:
        graph = self.graph.copy()
        parts = [graph.find_nodes(op=op) for op in ("placeholder", "get_attr")]
        for node in parts[1]:
            node.op = "placeholder"
        graph.reorder([*parts[0], *parts[1], *[n for n in graph.nodes if n.op != "placeholder"]])
        quiet = alone(graph) or nullcontext()
        compute = compile_host(lowered(graph, self.compiler), {}, keeps=True)

        def call(*given: Any) -> tuple:
            arrays = [t.numpy() if type(t) is Tensor else t for t in given]
            with quiet, onp.errstate(all="ignore"):  # as torch, which tells of none
                out = compute(*arrays)
            known = {id(a): t for a, t in zip(arrays, given, strict=True)}
            return tuple([placed(y, known) for y in out])

        return call


def placed(y: Any, known: dict[int, Any]) -> Any:
    """A result as a tensor of its own memory. known: the tensors that have some memory, by the array that shows all of
    it; this one is added."""
    if not isinstance(y, (Host, onp.generic)):
        return y
    if id(y) in known:
        return known[id(y)]
    whole = y.base if type(y.base) is Host else y
    if not y.ndim or id(whole) in known or not y.flags.writeable or min(y.strides) < 0:
        y = whole = onp.array(y)
    known[id(whole)] = tensor = torch.from_numpy(y.view(TO_NUMPY[TO_TORCH[y.dtype]]) if y.dtype.char in "qQ" else y)
    return tensor


def candidates(backend: Any, graph: Graph, compiler: str, stream: Any = None) -> dict[str, Callable]:
    """The ways besides the plain one to run a graph on its device, by name. compiler: as jit was told. stream: what it
    draws from here, which NumPy's code and torch.compile's do not."""
    found: dict[str, Callable] = {}
    if backend.where.type == "cpu" and not backend.shares_host and compiler != "numpy" and stream is None:
        found["host"] = Hosted(graph, compiler)
    if compiler == "torch":
        if stream is None:
            found["torch.compile"] = compiled
        if backend.where.type == "cuda":
            found["CUDA graph"] = partial(replayed, stream=stream)
            if stream is None:  # what torch calls mode="reduce-overhead", with results that the next call leaves alone
                found["torch.compile, CUDA graph"] = lambda run, data: replayed(compiled(run, data), data)
    return found
