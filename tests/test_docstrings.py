"""Docstrings of public names are complete: a summary in one line, every parameter, what is raised, examples."""

import ast
import doctest
import inspect
import math
import re
import textwrap

import numpy as onp
import pytest
from public import public

import minnp
import minnp.backends
import minnp.distributed
import minnp.errors
import minnp.fx
import minnp.nn
import minnp.numpy as np
import minnp.symbol

pytestmark = [
    pytest.mark.host("docstrings are text, and their examples print what the default policy gives"),
    pytest.mark.either("docstrings are text"),
]
PUBLIC = public()
SHORT = {}
for full, thing in PUBLIC.items():
    SHORT.setdefault(full.rpartition(".")[2], []).append(thing)


def text(thing, seen=frozenset()):
    """The docstring, and those that it refers to: "as in Conv2D", "layers.conv2d"."""
    own = inspect.getdoc(thing) or ""
    names = re.findall(r"\b(?:[Aa]s in|as|see|of|are|is) `?([A-Za-z_]\w*)|layers\.(\w+)", own)
    others = {a or b for a, b in names} & SHORT.keys() - seen
    referred = [other for name in others for other in SHORT[name] if other is not thing]
    return "\n".join([own, *(text(other, seen | others) for other in referred)])


def summary_of(thing):
    lines = ((inspect.getdoc(thing) if thing.__doc__ else None) or "").splitlines() or [""]
    if len(lines) > 1 and lines[1].strip():
        return "goes on in its second line"
    return "" if lines[0].endswith((".", ":")) else f"ends in {lines[0][-10:]!r}"


def parameters_of(thing):
    try:
        names = inspect.signature(thing).parameters
    except (TypeError, ValueError):  # an exception's, or a class of C's
        return []
    said = text(thing)
    return [n for n in names if n not in ("args", "kwargs", "name") and not re.search(rf"\b{n}\b", said)]


def raised_by(thing):
    """The names of the exceptions that its own code raises, as far as they are written there."""
    function = inspect.unwrap(thing.__init__ if inspect.isclass(thing) else thing)
    if not inspect.isfunction(function) or function.__code__.co_filename.startswith("<"):  # a named tuple's
        return []
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    calls = [n.exc.func for n in ast.walk(tree) if isinstance(n, ast.Raise) and isinstance(n.exc, ast.Call)]
    return [call.id for call in calls if isinstance(call, ast.Name)]


def test_the_first_line_says_it_all():
    assert {name: wrong for name, value in PUBLIC.items() if (wrong := summary_of(value))} == {}


def test_every_parameter_is_explained():
    assert {name: wrong for name, value in PUBLIC.items() if (wrong := parameters_of(value))} == {}


def test_what_is_raised_is_said():
    silent = {n: [e for e in raised_by(value) if e not in text(value)] for n, value in PUBLIC.items()}
    assert {name: wrong for name, wrong in silent.items() if wrong} == {}


def test_every_name_has_an_example():
    assert [
        n for n, value in PUBLIC.items() if not re.search(r">>>|^    \S", inspect.getdoc(value), re.MULTILINE)
    ] == []


def test_code_does_not_stand_among_the_prose():
    """The pages of the reference would set it as prose: it is indented, or an example."""
    code = re.compile(r"^(from \w[\w.]* import|import \w|with \w[^`]*:$|@\w|class \w+.*:$|minnp\.\w+)", re.MULTILINE)
    assert [n for n, value in PUBLIC.items() if code.search(inspect.getdoc(value))] == []


NEEDS = {"minnp.fx.to_onnx": "onnx", "minnp.nn.datasets.digits": "sklearn", "minnp.nn.datasets.Dataset": "sklearn"}
NN = minnp.nn
SCOPE = {n: getattr(minnp, n) for n in {*minnp.__all__, "compile"}}
SCOPE |= {"np": np, "numpy": onp, "minnp": minnp, "nn": NN, "npx": minnp.npx, "fx": minnp.fx, "sym": minnp.symbol}
SCOPE |= {"layers": NN.layers, "optim": NN.optim, "init": NN.init, "distributed": minnp.distributed}


RUN = [
    n for n, value in PUBLIC.items() if ">>>" in (value.__doc__ or "") and "+SKIP" not in value.__doc__
]  # files, mxnet


@pytest.mark.parametrize("name", RUN)
def test_examples_print_what_they_say(name, tmp_path, monkeypatch):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(PUBLIC[name]), dict(SCOPE), name, None, 0)
    threads, said = minnp.num_threads(), []
    failed, ran = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    minnp.set_num_threads(threads)
    assert ran and not failed, "".join(said)


def test_functions_of_numpy_have_numpys_docstrings():
    """They say nothing of their own: NumPy's reference is theirs."""
    import numpy

    for name in ("sum", "exp", "linspace", "einsum", "concatenate"):
        assert inspect.getdoc(getattr(np, name)) == inspect.getdoc(getattr(numpy, name)), name


CLASSES = [x for x in vars(minnp.errors).values() if isinstance(x, type) and x.__module__ == "minnp.errors"]
ELSEWHERE = {  # where the library, the program or the other process that an example needs is missing
    "DrawingError": "tests/test_drawing.py: Graphviz may be installed",
    "MeshError": "tests/distributed: two processes",
    "MinnpError": "a doctest",
    "SymbolError": "a doctest",
}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_the_example_of_an_error_raises_it(kind):
    """Each statement of the indented block, but for assignments."""
    if kind.__name__ in ELSEWHERE:
        pytest.skip(ELSEWHERE[kind.__name__])
    if kind.__name__ == "FallbackError" and "torch" not in minnp.backends.installed():
        pytest.skip("torch is not installed")
    if kind.__name__ == "BackendMissingError" and "mxnet" in minnp.backends.installed():
        pytest.skip("mxnet is installed")
    scipy = pytest.importorskip("scipy")
    pytest.importorskip("scipy.ndimage")
    block = textwrap.dedent("\n".join(line for line in inspect.getdoc(kind).splitlines() if line.startswith(" " * 4)))
    scope = {"a": np.ones((3, 3)), "numpy": onp, "np": np, "minnp": minnp, "math": math, "scipy": scipy}
    scope |= {"fx": minnp.fx, "grad": minnp.grad, "jit": minnp.jit, "BackendUnsupportedError": kind}
    failing = 0
    for statement in ast.parse(block).body:
        run = compile(ast.Module([statement], []), "example.py", "exec")
        if isinstance(statement, ast.Assign):
            exec(run, scope)
            continue
        failing += 1
        with pytest.raises(kind):
            exec(run, scope)
    assert failing
