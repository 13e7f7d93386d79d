"""What verified.json says of torch's kernels holds on this machine, with this torch and this NumPy."""

import json
import warnings

import numpy as onp
import pytest

torch = pytest.importorskip("torch", reason="the torch backend needs torch: pip install torch")

from alone import ROOT

from minnp.__main__ import main
from minnp.backends.torch import kernels, registry
from minnp.backends.torch import verify as differential
from minnp.errors import BackendUnsupportedError
from minnp.table import own_kernels
from tests.backends import torch_composed as composed
from tests.backends.devices import EMULATED, GPU, needs_gpu

differential.load_rows()


def check(name: str, device: str) -> None:
    if differential.subject(name) is None and not differential.is_ufunc(name):
        return  # a function of a newer NumPy
    run = differential.runner(device)
    agree = differential.agree_ufunc if differential.is_ufunc(name) else differential.agree_row
    subject = name if differential.is_ufunc(name) else differential.subject(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's warnings about the edge values
        for chars in differential.loops(name):
            if differential.loop_name(chars) in registry.VERIFIED[name]:
                found = agree(run, subject, chars)
                assert not found, f"{name} in {chars}: {found}"


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(registry.VERIFIED))
def test_verified_kernels_agree_with_numpy(name):
    check(name, "cpu")


@pytest.mark.gpu
@needs_gpu
def test_verified_kernels_agree_with_numpy_on_the_gpu():
    for name in sorted(registry.VERIFIED):
        check(name, GPU)


def test_every_verified_name_has_a_kernel():
    known = {
        n for n in registry.VERIFIED if differential.subject(n) or hasattr(onp, n)
    }  # the others are a newer NumPy's
    assert known <= set(kernels.KERNELS)


def test_a_dtype_that_is_not_verified_is_refused_before_anything_runs():
    kernel = kernels.KERNELS["sort"]
    with pytest.raises(BackendUnsupportedError, match="not verified for c16"):
        kernel(torch.zeros(3, dtype=torch.complex128))


def composes(case: str, device: str, chars: str = composed.DTYPES) -> None:
    listed = composed.listed()[composed.name_of(case)]
    for char in chars:
        if char == "D" and "c16" not in registry.VERIFIED["divide"]:  # an older torch's, which is NumPy's to do
            continue
        if onp.dtype(char).str[1:] in listed:
            assert composed.disagreement(case, char, device) == "", case


@pytest.mark.long
@pytest.mark.parametrize("case", list(filter(composed.known, composed.CASES)))
def test_compositions_agree_with_numpy_and_leave_nothing_to_the_host(case):
    composes(case, "cpu")


@pytest.mark.gpu
@needs_gpu
def test_compositions_agree_with_numpy_on_the_gpu():
    for case in filter(composed.known, composed.CASES):
        composes(case, GPU, composed.DTYPES if EMULATED else "f")


def test_three_hundred_functions_and_methods_run_on_the_device_operators_not_counted():
    assert {*map(composed.name_of, composed.CASES)} >= composed.listed().keys()
    kinds = own_kernels("torch")
    names = {name for kind in ("functions", "creation", "composed") for name in kinds[kind]}
    methods = {*kinds["methods"]}
    newer = onp.lib.NumpyVersion(onp.__version__) >= "2.0.0"  # which has more names
    assert len({n for n in names if not n.startswith("npx.")}) + len(methods) >= (330 if newer else 300)


@pytest.mark.skipif(not onp.__version__.startswith("2.4."), reason="the guide counts the names of NumPy 2.4")
def test_the_guide_counts_what_runs_on_the_device_and_what_is_composed():
    guide = (ROOT / "docs" / "guide" / "backends.md").read_text()
    count = sum(map(len, own_kernels("torch").values()))
    assert f"With NumPy 2.4, {count} functions" in guide and f"{len(composed.listed())} of these" in guide


def test_the_list_is_renewed_by_python_m_minnp_verify_torch(tmp_path, monkeypatch, capsys):
    stored = dict(registry.VERIFIED)
    monkeypatch.setattr(registry, "VERIFIED_FILE", tmp_path / "verified.json")
    monkeypatch.delitem(registry.VERIFIED, "sort")
    monkeypatch.setitem(registry.VERIFIED, "sqrt", [*stored["sqrt"], "i8"])  # of integers it has no loop
    assert main(["verify", "torch", "sqrt", "exp", "--check"]) == 1
    assert "sqrt: [" in capsys.readouterr().out
    assert not registry.VERIFIED_FILE.exists()
    assert main(["verify", "torch", "exp", "--check"]) == 0
    assert main(["verify", "torch", "sqrt", "sort", "npx.quantized_conv"]) == 0
    listed = {name: loops.split(", ") for name, loops in json.loads(registry.VERIFIED_FILE.read_text()).items()}
    assert listed == {name: sorted(loops) for name, loops in stored.items()}
    capsys.readouterr()
    for ask, said in (["verify", "--help"], "{mxnet,torch}"), (["verify", "torch", "--help"], "--narrow"):
        with pytest.raises(SystemExit, match=r"^0$"):
            main(ask)
        assert said in capsys.readouterr().out


def test_verify_takes_kernels_that_there_are(capsys):
    said_of = {("torch", "nonsense"): "torch has no kernel for nonsense", ("jax",): "invalid choice: 'jax'"}
    for wrong, said in said_of.items():
        with pytest.raises(SystemExit):
            main(["verify", *wrong])
        assert said in capsys.readouterr().err
