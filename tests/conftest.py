"""What every test runs under: one thread per numerical library, and the same hypothesis examples each time."""

import functools
import gc
import importlib.util
import inspect
import itertools
import os
import re
import sys
import tempfile
import zlib
from collections.abc import Callable, Generator
from types import ModuleType

# Before NumPy is imported: the tests run side by side on few cores, where a second thread per worker only waits.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import hypothesis
import numpy

hypothesis.settings.register_profile("minnp", derandomize=True, deadline=None, database=None, print_blob=True)
hypothesis.settings.load_profile("minnp")

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--dealt", action="store_true", help="of tests marked `dealt`, the part that this pass takes")
    parser.addoption(
        "--exhaustive", action="store_true", help="with --dealt, what no pass takes, too; all the model zoo"
    )
    parser.addoption("--accelerator", action="store_true", help="the GPU is the one of tests/accelerator, if it builds")


@pytest.hookimpl(trylast=True)  # after pytest's handler of faults
def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # which the workers of xdist have
        keep_temporary_files_together(config)
    if config.getoption("--accelerator"):
        from tests import accelerator

        if not accelerator.missing():
            accelerator.watch()


def keep_temporary_files_together(config: pytest.Config) -> None:
    """Temporary files of a run lie in one folder, which is removed at its end: libraries, and processes that are
    killed, leave some behind. pytest's own folders are where they always are."""
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    folder = tempfile.TemporaryDirectory(prefix="minnp-tests-", ignore_cleanup_errors=True)
    config.add_cleanup(folder.cleanup)
    tempfile.tempdir = os.environ["TMPDIR"] = folder.name


def pytest_sessionstart(session: pytest.Session) -> None:
    """Of a test that passes a worker sends one report, not those of its setup and its end, too, which nobody reads: to
    pack, send and unpack three takes longer than most tests."""
    workers = [p for p in session.config.pluginmanager.get_plugins() if type(p).__name__ == "WorkerInteractor"]
    for worker, send in [(w, w.sendevent) for w in workers]:  # of xdist, in each of its processes one

        def sendevent(name: str, send: Callable = send, **what: dict) -> None:
            report = what["data"] if name == "testreport" else {}
            if report.get("outcome") != "passed" or report["when"] == "call":
                send(name, **what)

        worker.sendevent = sendevent


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Hardly anything that a collection makes is garbage, and to look for some takes a third of the time where the
    files are compiled."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Second runs of loops are of code that is compiled well, or tests would hardly meet it. The 750,000 objects that
    the collection made live to the end: no later search for garbage goes through them.

    Hypothesis makes a generator at its first test, and warns where such a search finds nobody who holds it."""
    from minnp.core.loops import compiled

    compiled.TRIED = compiled.RUNS = 0
    hypothesis.given(hypothesis.strategies.none())(lambda nothing: None)()
    gc.collect()
    gc.freeze()


AGAIN, done = 300, itertools.count(1)


def pytest_runtest_logfinish() -> None:
    """Nor through what tests leave behind: libraries that they import, and what functions of modules have compiled."""
    if next(done) % AGAIN == 0:
        gc.collect()
        gc.freeze()


# Cases of which the name says that only one of the two NumPys has the function.
ONLY_NUMPY_2 = re.compile(r"\[(matvec|vecmat|trapezoid|sign_of_complex)-|# NumPy 2\]")
ONLY_NUMPY_1 = re.compile(r"\[(\.itemset|\.ptp|asfarray|cumproduct|msort|product|round_|trapz)-")
# The passes of ./run test --all: on the newest NumPy, on NumPy 1.26, there without the C part, on torch's kernels.
PASSES = {
    "newest": lambda name, marks: not ONLY_NUMPY_1.search(name),
    "old": lambda name, marks: not (ONLY_NUMPY_2.search(name) or marks & {"slow", "once"}),
    "python": lambda name, marks: PASSES["old"](name, marks) and "either" not in marks,
    "torch": lambda name, marks: PASSES["newest"](name, marks) and not marks & {"slow", "once", "host"},
}


def which() -> str:
    """The one of PASSES that this process may be of."""
    if numpy.__version__ < "2":
        return "python" if os.environ.get("MINNP_COMPILED") == "0" else "old"
    return "torch" if "MINNP_BACKEND" in os.environ else "newest"


def dealt(item: pytest.Item) -> bool:
    """Whether this pass takes a case with --dealt.

    Of `@pytest.mark.dealt` tests each pass of `./run test --all` that runs them takes one part, so that each case runs
    once; of `dealt(parts=8)` an eighth, and nobody the rest; `dealt("newest", "torch")` says who takes part, and with
    `dealt(each=True)` each of them takes all. All other tests run on the newest NumPy, and three of sixteen that are
    not long in another setting, too: one on torch's kernels, one on NumPy 1.26, one there without the C part; of files
    about MXNet, for NumPy 1.26, all there.
    With --exhaustive the newest NumPy takes parts that nobody has, and every pass all others. Which part a case is in
    depends on its name and nothing else: what passed yesterday fails today only where minnp changed."""
    mark, here, number = item.get_closest_marker("dealt"), which(), zlib.crc32(item.nodeid.encode())
    marks, exhaustive = {m.name for m in item.iter_markers()}, item.config.getoption("--exhaustive")
    takers = [p for p in (mark and mark.args) or PASSES if PASSES[p](item.nodeid, marks)]
    if "exhaustive" in marks:
        return exhaustive and here == "newest"
    if mark is not None and mark.kwargs.get("each"):
        return here in takers
    if mark is not None:
        part = number % mark.kwargs.get("parts", len(takers))
        return takers[part] == here if part < len(takers) else exhaustive and here == "newest"
    if here not in takers or "long" in marks:
        return here in takers and here == "newest"
    if here == "newest" or exhaustive:
        return True
    if here == "torch":
        return number % 16 == 3
    old = [p for p in takers if p in ("old", "python")]
    return old[number % len(old)] == here and (number % 16 < 2 or "newest" not in takers or about_mxnet(item.module))


@functools.cache
def about_mxnet(module: ModuleType) -> bool:
    return "mxnet" in inspect.getsource(module).lower()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--dealt"):
        parts: dict[bool, list] = {True: [], False: []}
        for item in items:
            parts[dealt(item)].append(item)
        items[:] = parts[True]
        config.hook.pytest_deselected(items=parts[False])
    rank = {"slow": 0, "long": 1}  # the longest first, so that no core waits for one at the end
    items.sort(key=lambda item: min((rank.get(mark.name, 2) for mark in item.iter_markers()), default=2))


@functools.cache
def generators(module: ModuleType) -> list:
    """Those of random numbers that the tests of a module share."""
    return [g for g in vars(module).values() if isinstance(g, (numpy.random.Generator, numpy.random.RandomState))]


UNDER = pytest.StashKey[dict]()


# As hooks, not as fixtures, which would cost each of the many short tests more than it takes.
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """What a test draws depends on its name, not on which ran before it. Tests marked `host`, and programs they start,
    run under the default policy whatever MINNP_BACKEND says."""
    for drawing in generators(item.module):
        draws, number = drawing._bit_generator, zlib.crc32(item.nodeid.encode())
        draws.state = type(draws)(number).state
    under = item.stash[UNDER] = {}
    accelerator = sys.modules.get("tests.accelerator")
    if accelerator is not None and accelerator.loaded():
        under["faults"] = accelerator.counted()["fault"]
    if item.get_closest_marker("host") is not None:
        import minnp

        under["policy"] = minnp.get_global_policy()
        under["backend"] = os.environ.pop("MINNP_BACKEND", None)
        minnp.set_global_policy("auto")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """With --accelerator: no test reaches into the memory of the device, not even where the error is caught."""
    try:
        result = yield
    finally:
        under = item.stash[UNDER]
        if "policy" in under:
            import minnp

            minnp.set_global_policy(under["policy"])
            if under["backend"] is not None:
                os.environ["MINNP_BACKEND"] = under["backend"]
    if "faults" in under and item.get_closest_marker("faults") is None:
        assert sys.modules["tests.accelerator"].counted()["fault"] == under["faults"], "see HostAccess"
    return result


@pytest.fixture(params=["openblas", "mkl"])
def library(request, monkeypatch):
    """Each BLAS that there is, as the one that large products of traced and compiled code run on."""
    from minnp.core.cpu import products

    if request.param == "mkl" and importlib.util.find_spec("torch"):
        importlib.import_module("torch")
    found = getattr(products, request.param)()
    if found is None:
        pytest.skip(f"no {request.param} in this environment")
    monkeypatch.setattr(products, "best", lambda: found)
    return found
