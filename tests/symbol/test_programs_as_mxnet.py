"""Programs as users of MXNet wrote them give with minnp.symbol what they give with MXNet."""

from __future__ import annotations

import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
import minnp.symbol as sym

sys.path.insert(0, str(Path(__file__).parent))
from programs import PROGRAMS

mx = pytest.importorskip("mxnet", reason="MXNet's own results are what ours are compared with")
pytestmark = [
    pytest.mark.host("MXNet computes on the host"),
    pytest.mark.filterwarnings("ignore:Please import `csr_matrix`:DeprecationWarning"),  # mx.nd.array asks for it
]


class Theirs:
    sym, ctx, sym_attr, prefix, names = mx.sym, mx.cpu(), mx.AttrScope, mx.name.Prefix, mx.name.NameManager
    CustomOp, CustomOpProp, register = (
        mx.operator.CustomOp,
        mx.operator.CustomOpProp,
        staticmethod(mx.operator.register),
    )
    zeros, nd_save, nd_load = map(staticmethod, (mx.nd.zeros, mx.nd.save, mx.nd.load))
    save_checkpoint, load_checkpoint = map(staticmethod, (mx.model.save_checkpoint, mx.model.load_checkpoint))

    @staticmethod
    def array(a: onp.ndarray) -> Any:
        return mx.nd.array(a, dtype=a.dtype)

    @staticmethod
    def np(a: Any) -> onp.ndarray:
        if threading.current_thread() is threading.main_thread():  # custom operators run in the engine's own
            mx.nd.waitall()  # which does not know that a backward pass writes auxiliary states
        return a.asnumpy().copy()

    @staticmethod
    def monitor(executor: Any, see: Any) -> None:
        executor.set_monitor_callback(lambda n, a: see(n, mx.nd.NDArray(mx.base.NDArrayHandle(a))))


class Ours:
    sym, ctx, sym_attr, prefix, names = sym, None, sym.AttrScope, sym.Prefix, sym.NameManager
    CustomOp, CustomOpProp, register = sym.CustomOp, sym.CustomOpProp, staticmethod(sym.register)
    nd_save, nd_load = map(staticmethod, (sym.params.save, sym.params.load))
    save_checkpoint, load_checkpoint = map(staticmethod, (sym.save_checkpoint, sym.load_checkpoint))
    array, np = map(staticmethod, (np.array, onp.array))
    other = Theirs

    @staticmethod
    def zeros(shape: tuple) -> Any:
        return np.zeros(shape, "f4")

    @staticmethod
    def monitor(executor: Any, see: Any) -> None:
        executor.set_monitor_callback(see)


Theirs.other = Ours


def compare(ours: Any, theirs: Any, where: str = "") -> None:
    if isinstance(ours, onp.ndarray):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), where
        onp.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4, err_msg=where)
    elif isinstance(ours, dict):
        assert sorted(ours) == sorted(theirs), where
        for key, value in ours.items():
            compare(value, theirs[key], f"{where}.{key}")
    elif isinstance(ours, (list, tuple)):
        assert len(ours) == len(theirs), where
        for i, (a, b) in enumerate(zip(ours, theirs)):
            compare(a, b, f"{where}[{i}]")
    else:
        assert ours == theirs, where


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_program_does_what_it_does_with_mxnet(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # shapes that do not follow are warned of
        results = []
        for library in (Ours, Theirs):
            with library.names():  # which count from 0
                results.append(PROGRAMS[name](library))
    compare(*results)
