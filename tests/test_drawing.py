"""Pictures of graphs: what they show, and what is said where Graphviz is missing."""

from __future__ import annotations

import builtins
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import fx, jit, nn, npx
from minnp.core.graph.graph import Graph
from minnp.core.passes import draw, fuse_elementwise
from minnp.errors import DrawingError

needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz's program dot")


def f(x: Any, w: Any) -> Any:
    y = np.tanh(x @ w)
    if np.sum(y) > -1e9:
        y = y * 2.0
    q, r = np.divmod(y, 0.5)
    return np.sum(q, axis=0) - r


def graph() -> Graph:
    return jit(f).lower(onp.ones((4, 3)), onp.ones((3, 5))).graph


def texts(svg: bytes) -> list[str]:
    return [t.text or "" for t in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


@needs_dot
def test_every_node_is_in_the_picture_with_its_shape(tmp_path: Path) -> None:
    drawn = texts(draw(graph(), tmp_path / "f.svg"))
    assert drawn == texts((tmp_path / "f.svg").read_bytes())
    for word in ("x", "w", "matmul", "tanh", "divmod", "output", "float64[4, 5]", "axis=0", "2.0"):
        assert any(word in t for t in drawn), (word, drawn)
    assert "0" in drawn and "1" in drawn, "which of divmod's results an arrow carries"


@needs_dot
def test_other_formats_by_the_ending_of_the_file(tmp_path: Path) -> None:
    assert draw(graph(), tmp_path / "f.png").startswith(b"\x89PNG")
    assert draw(graph(), format="pdf").startswith(b"%PDF")


def test_the_description_needs_no_program(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    text = draw(graph(), tmp_path / "f.dot").decode()
    assert "matmul -> tanh" in text and "tooltip" in text and "test_drawing.py" in text


def test_a_fused_call_says_what_it_stands_for() -> None:
    x = onp.ones(1 << 16)
    fused = fuse_elementwise(jit(lambda x: np.exp(x) * np.tanh(x)).lower(x).graph.copy())
    assert "exp, tanh, multiply" in draw(fused, format="dot").decode()


def test_boxes_say_everything_in_lines_that_fit_and_name_the_layers() -> None:
    w = np.ones((4, 3, 3, 3))
    conv = fx.capture(lambda x: npx.convolution(x, w, pad=1) * 0.1234567891, onp.ones((1, 3, 6, 6)))
    text = draw(conv.graph, format="dot").decode()
    assert "stride=(1, 1), pad=(1, 1), dilate=(1, 1)\ngroups=1\nfloat64[1, 4, 6, 6]" in text
    assert "0.123457" in text and 'style="filled,rounded"' in text and "…" not in text
    model = fx.symbolic_trace(nn.Sequential(nn.Linear(4, 8), nn.ReLU()).init(0))
    assert "= Linear (0)" in draw(model.graph, format="dot").decode()


def test_without_dot_the_error_says_what_to_install(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DrawingError, match=r"program `dot`.*apt-get install graphviz"):
        draw(graph())


def test_without_the_package_the_error_says_what_to_install(monkeypatch: Any) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name == "graphviz":
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(DrawingError, match="pip install graphviz"):
        draw(graph())
