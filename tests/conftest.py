"""What every test runs under: one thread per numerical library, and the same hypothesis examples each time."""

import gc
import importlib.util
import os
import sys
from collections.abc import Generator

# Before NumPy is imported: the tests run side by side on few cores, where a second thread per worker only waits.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import hypothesis

hypothesis.settings.register_profile("minnp", derandomize=True, deadline=None, database=None, print_blob=True)
hypothesis.settings.load_profile("minnp")

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all", action="store_true", help="the programs of tests/adversarial that are in no other setting's part, too"
    )
    parser.addoption("--accelerator", action="store_true", help="the GPU is the one of tests/accelerator, if it builds")


@pytest.hookimpl(trylast=True)  # after pytest's handler of faults
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--accelerator"):
        from tests import accelerator

        if not accelerator.missing():
            accelerator.watch()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """The 750,000 objects that the collection made live to the end: no later search for garbage goes through them."""
    gc.collect()
    gc.freeze()


UNDER = pytest.StashKey[dict]()


# As hooks, not as fixtures, which would cost each of the many short tests more than it takes.
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests marked `host`, and programs they start, run under the default policy whatever MINNP_BACKEND says."""
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
