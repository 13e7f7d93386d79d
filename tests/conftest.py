"""What every test runs under: one thread per numerical library, and the same hypothesis examples each time."""

import importlib.util
import os
import sys

# Before NumPy is imported: the tests run side by side on few cores, where a second thread per worker only waits.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import hypothesis

hypothesis.settings.register_profile("minnp", derandomize=True, deadline=None, database=None, print_blob=True)
hypothesis.settings.load_profile("minnp")

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all", action="store_true", help="all programs of tests/adversarial, not the part of this setting"
    )
    parser.addoption("--accelerator", action="store_true", help="the GPU is the one of tests/accelerator, if it builds")


@pytest.hookimpl(trylast=True)  # after pytest's handler of faults
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--accelerator"):
        from tests import accelerator

        if not accelerator.missing():
            accelerator.watch()


@pytest.fixture(autouse=True)
def accelerated(request):
    """With --accelerator: no test reaches into the memory of the device, not even where the error is caught."""
    accelerator = sys.modules.get("tests.accelerator")
    if accelerator is None or not accelerator.loaded():
        yield
        return
    before = accelerator.counted()["fault"]
    yield
    assert request.node.get_closest_marker("faults") or accelerator.counted()["fault"] == before, "see HostAccess"


@pytest.fixture(autouse=True)
def on_the_host(request, monkeypatch):
    """Tests marked `host`, and programs they start, run under the default policy whatever MINNP_BACKEND says."""
    import minnp

    if request.node.get_closest_marker("host") is None or minnp.get_global_policy().name == "auto":
        yield
        return
    monkeypatch.delenv("MINNP_BACKEND", raising=False)
    before = minnp.get_global_policy()
    minnp.set_global_policy("auto")
    yield
    minnp.set_global_policy(before)


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
