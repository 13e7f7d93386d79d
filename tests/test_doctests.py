"""The examples in NumPy's own docstrings, run with `import minnp.numpy as np`: what passes on NumPy passes on ours."""

import contextlib
import doctest
import functools
import warnings

import numpy as onp
import pytest

import minnp.numpy as np
from minnp.core import compiled

pytestmark = [
    pytest.mark.host("the examples print what NumPy's own kernels give, digit for digit"),
    pytest.mark.either("the examples are NumPy's, as the suite's tests are"),
]
POLYNOMIALS = [f"polynomial.{n}" for n in ("polynomial", "chebyshev", "hermite", "hermite_e", "laguerre", "legendre")]
MODULES = ("", "linalg", "fft", "random", *POLYNOMIALS, "ma", "lib.stride_tricks", "char", "strings")
CLASSES = {"ndarray": onp.ndarray, "Generator": onp.random.Generator, "RandomState": onp.random.RandomState}
TOUCHES_FILES = {"memmap", "fromfile", "savetxt", "loadtxt", "save", "savez", "load", "DataSource", "test"}
DIFFERENT = {
    "flatiter": "prints the class, which is minnp.numpy's",
    "ndarray.flat": "prints the class, which is minnp.numpy's",
}
if compiled.fastpath is not None:
    DIFFERENT["set_numeric_ops"] = "sets NumPy's own operators, which the C part's arithmetic of small arrays is not"


class _Output(doctest.OutputChecker):
    """Without white space; examples that say their output varies pass."""

    def check_output(self, want, got, optionflags):
        if super().check_output(want, got, optionflags):
            return True
        return "".join(want.split()) == "".join(got.split()) or "random" in want or "may vary" in want or "#" in want


class _Runner(doctest.DocTestRunner):
    def __init__(self):
        super().__init__(_Output(), verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        self.failed = {}

    def report_failure(self, out, test, example, got):
        self.failed[test.name, example.lineno] = f"{example.source}expected {example.want}got {got}"

    def report_unexpected_exception(self, out, test, example, exc_info):
        self.failed[test.name, example.lineno] = f"{example.source}raised {exc_info[1]!r}"


def _documented(group):
    """(name, docstring) of what a namespace or class of NumPy documents with examples."""
    if group in CLASSES:
        home, prefix = CLASSES[group], f"{group}."
    elif group == "strings" and onp.__version__ < "2":
        return []
    else:
        home, prefix = functools.reduce(getattr, filter(None, group.split(".")), onp), f"{group}.".lstrip(".")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated names
        members = [(n, getattr(home, n, None)) for n in sorted(dir(home)) if n[0] != "_" and n not in TOUCHES_FILES]
    docs = [(prefix + n, getattr(x, "__doc__", None)) for n, x in members if callable(x) or group in CLASSES]
    return [(n, doc) for n, doc in docs if isinstance(doc, str) and ">>>" in doc and "plt." not in doc]


def _failures(namespace, name, doc):
    if namespace is np:
        doc = doc.replace("import numpy as np", "import minnp.numpy as np").replace("from numpy", "from minnp.numpy")
    try:
        test = doctest.DocTestParser().get_doctest(doc, {"np": namespace, "__name__": name}, name, None, 0)
    except ValueError:  # not a well-formed doctest
        return 0, {}
    runner = _Runner()
    with _settings():
        namespace.random.seed(0)
        runner.run(test, out=lambda text: None)
    return len(test.examples), runner.failed


@contextlib.contextmanager
def _settings():
    """NumPy's settings, which examples change, as they were."""
    buffer, on_error, stream = onp.getbufsize(), onp.geterrcall(), onp.random.get_state()
    try:
        with warnings.catch_warnings(), onp.errstate(), onp.printoptions():
            warnings.simplefilter("ignore")
            yield
    finally:
        onp.setbufsize(buffer)
        onp.seterrcall(on_error)
        onp.random.set_state(stream)
        if hasattr(onp, "set_string_function"):  # until NumPy 2
            onp.set_string_function(None, repr=False)
            onp.set_string_function(None, repr=True)


@pytest.mark.long
@pytest.mark.parametrize("group", [*MODULES, *CLASSES])
def test_examples_that_pass_on_numpy_pass_on_ours(group, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    documented = _documented(group)
    if not documented:
        assert group == "strings"
        assert onp.__version__ < "2"
        return
    ran, worse = 0, {}
    for name, doc in documented:
        examples, ours = _failures(np, name, doc)
        ran += examples
        if ours and name not in DIFFERENT:
            _, theirs = _failures(onp, name, doc)
            worse |= {where: text for where, text in ours.items() if where not in theirs}
    assert ran >= 5
    assert not worse, "\n\n".join(f"{name}, line {line}: {text}" for (name, line), text in worse.items())


def test_what_is_listed_as_different_still_is():
    listed = {name for group in ("", "ndarray") for name, doc in _documented(group) if name in DIFFERENT}
    same = [
        n for group in ("", "ndarray") for n, doc in _documented(group) if n in listed and not _failures(np, n, doc)[1]
    ]
    assert same == []
