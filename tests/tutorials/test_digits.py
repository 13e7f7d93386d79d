"""The main job and its convolutional sibling, run as a user runs them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from minnp.backends import installed

pytestmark = pytest.mark.either("whole programs, in processes of their own")
TUTORIALS = Path(__file__).parents[2] / "tutorials"
needs_mxnet = pytest.mark.skipif("mxnet" not in installed(), reason="mxnet is not installed: pip install mxnet==1.9.1")


def run(script, picture, *options):
    """(test accuracy, output) of a tutorial that writes its curves to `picture`."""
    command = [sys.executable, str(TUTORIALS / script), "--picture", str(picture), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "100%" in done.stderr, "there is no progress bar"
    assert picture.read_bytes().startswith(b"\x89PNG")
    return float(re.search(r"test accuracy ([\d.]+)%", done.stdout)[1]), done.stdout


def backends_of(report, function):
    """The backends that ran a function, as the printed report has them."""
    return set(re.findall(rf"^{re.escape(function)} +(\w+) ", report, re.MULTILINE))


@pytest.mark.long
@pytest.mark.host("the script names its backend")
def test_two_layer_net_on_numpy(tmp_path):
    accuracy, out = run("two_layer_net.py", tmp_path / "curves.png")
    assert accuracy >= 97
    assert backends_of(out, "matmul") == {"numpy"}


@needs_mxnet
def test_two_layer_net_on_mxnet_gives_the_same_net(tmp_path):
    accuracy, out = run("two_layer_net.py", tmp_path / "curves.png", "--backend", "mxnet")
    assert accuracy >= 97
    assert backends_of(out, "matmul") == backends_of(out, "exp") == {"mxnet"}
    assert backends_of(out, "random.randn") == {"numpy"}
    assert "mxnet has no verified kernel" in out


@needs_mxnet
def test_convolutional_net_around_a_symbol(tmp_path):
    accuracy, out = run("convnet_symbol.py", tmp_path / "curves.png")
    assert accuracy >= 98
    assert backends_of(out, "convolutions") == {"mxnet"}


@pytest.mark.long
@pytest.mark.host("the script names its backend")
@pytest.mark.skipif("mxnet" in installed(), reason="mxnet is installed")
def test_without_mxnet_the_error_says_how_to_install_it():
    script = TUTORIALS / "two_layer_net.py"
    command = [sys.executable, str(script), "--backend", "mxnet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode != 0
    assert "pip install mxnet==1.9.1" in done.stderr
