"""Without mxnet: everything else works, and asking for it says how to install it."""

import subprocess
import sys

HIDE = """
import importlib.machinery, sys
found = importlib.machinery.PathFinder.find_spec
importlib.machinery.PathFinder.find_spec = lambda name, *a: None if name.startswith("mxnet") else found(name, *a)
"""


def run_python(program):
    done = subprocess.run([sys.executable, "-c", HIDE + program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_asking_for_the_backend_says_how_to_install_it():
    program = """
import minnp
try:
    minnp.set_backend("mxnet")
except minnp.errors.BackendMissingError as error:
    print(error)
"""
    assert "pip install mxnet==1.9.1" in run_python(program)


def test_the_loader_says_so_too():
    program = """
from minnp.backends.mxnet.loader import load
from minnp.errors import BackendMissingError
try:
    load()
except BackendMissingError as error:
    print(error)
"""
    assert "pip install mxnet==1.9.1" in run_python(program)


def test_numpy_goes_on_working():
    assert run_python("import minnp.numpy as np; print(np.arange(3).sum())") == "3"
