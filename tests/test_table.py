"""`python -m minnp table` and `info`: every public name has one line, and the lines tell the truth."""

import numpy
import pytest

import minnp
import minnp.numpy as np
from minnp import backends, table
from minnp.__main__ import main
from minnp.core.llvm import engine
from minnp.core.rows.primitive import TABLE


@pytest.fixture(scope="module")
def lines():
    return {line.name: line for line in table.table()}


def test_every_public_name_of_numpy_has_a_line(lines):
    for prefix, module in [("", numpy), ("linalg.", numpy.linalg), ("fft.", numpy.fft), ("random.", numpy.random)]:
        missing = [n for n in module.__all__ if not n.startswith("_") and prefix + n not in lines]
        assert missing == []
    assert {n for n in np.__all__ if not n.startswith("_")} <= lines.keys()


def test_modules_made_of_numpys_have_one_line(lines):
    assert lines["ma"].made == "module" and not any(name.startswith(("ma.", "typing.", "matlib.")) for name in lines)


def test_a_line_says_what_a_function_is_made_of(lines):
    assert lines["exp"][:3] == ("exp", "row", "yes")
    assert lines["floor"].gradient == "constant"
    assert lines["where"].gradient == "arguments 1, 2"
    assert lines["average"].made == "composition"
    assert lines["random.beta"].made == "fallback"
    assert lines["random.beta"].gradient.startswith("no: raises: a draw")
    assert lines["eye"].gradient == "constant: no array goes in"
    assert lines["float64"].made == "class"
    assert lines["pi"].made == "value"
    assert lines["linalg"].made == "module"
    assert lines["seterr"].made == "numpy's own"
    assert lines["true_divide"][1:3] == ("row", "yes")
    assert lines["npx.softmax"].made in ("row", "composition")


def test_a_fallback_raises_as_its_line_says(lines):
    assert lines["random.gamma"].gradient.startswith("no: raises")
    with pytest.raises(minnp.errors.NotDifferentiableError, match=r"np.random.gamma has no gradient for argument 0"):
        minnp.grad(lambda x: np.sum(np.random.gamma(x)))(np.ones(3))


def test_what_minnp_scipy_differentiates_has_lines():
    pytest.importorskip("scipy")
    lines = {line.name: line for line in table.table(scipy=True) if line.name.startswith("scipy.")}
    assert lines["scipy.special.gammaln"][1:3] == ("row", "yes")
    assert lines["scipy.special.kv"].gradient == "arguments 1"
    assert lines["scipy.special.logsumexp"].made == lines["scipy.stats.norm.logpdf"].made == "composition"
    assert "scipy.special.kolmogorov" not in lines  # values alone
    assert lines["scipy.stats.norm.ppf"].made == lines["scipy.stats.skew"].made == "composition"
    assert len(lines) > 900


def test_rows_in_the_namespace_carry_the_facts_of_the_table(lines):
    rows = [line for line in lines.values() if line.made == "row" and line.name in TABLE]
    assert len(rows) > 100
    for line in rows:
        row = TABLE[line.name]
        assert line.shape == (row.shape is not None)
        assert line.flops == (row.flops is not None)


def test_table_as_text_and_markdown(capsys):
    assert main(["table", "exp", "linalg.i*"]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[2].split()[:3] == ["exp", "row", "yes"]
    assert "linalg.inv" in text
    assert "tanh" not in text
    for backend in backends.installed():
        assert backend in text.splitlines()[2]
    assert main(["table", "--markdown", "exp"]) == 0
    assert "| exp | row | yes | numpy" in capsys.readouterr().out


def test_a_backends_own_kernels_are_counted(capsys):
    if "torch" not in backends.installed():
        pytest.skip("torch is not installed")
    assert main(["table", "--backend", "torch"]) == 0
    kinds = table.own_kernels("torch")
    assert {"exp", "sum", "linalg.inv", "fft.fft", "sort"} <= {*kinds["functions"]}
    assert "random.normal" in kinds["creation"] and "cumsum" in kinds["methods"] and "__matmul__" in kinds["operators"]
    total = sum(map(len, kinds.values()))
    assert capsys.readouterr().out.splitlines()[-1] == f"{total} in all"
    assert total >= (312 if numpy.lib.NumpyVersion(numpy.__version__) >= "2.0.0" else 307)  # NumPy 2 has more names


def test_info_says_what_runs_here(capsys):
    assert main(["info"]) == 0
    facts = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert facts["numpy"] == numpy.__version__
    assert facts["minnp"] == minnp.__version__
    assert facts["backends"].split(", ") == ["numpy", *backends.installed()]
    assert facts["policy"] == minnp.get_global_policy().name
    assert ("import minnp before mxnet" in facts["mxnet"]) == ("mxnet" in backends.installed())


def test_every_function_without_a_gradient_has_a_reason(lines):
    """A new NumPy's function fails here: give it a row, a definition, or a reason in minnp.numpy.undifferentiated."""
    fallbacks = {name: line.gradient for name, line in lines.items() if line.made == "fallback"}
    assert [name for name, words in fallbacks.items() if ": " not in words.removeprefix("no: raises")] == []


def test_a_name_that_is_nowhere_is_an_error(capsys):
    with pytest.raises(SystemExit):
        main(["table", "nowhere.*"])
    assert "no public name is nowhere.*" in capsys.readouterr().err


def test_info_says_whether_jit_makes_machine_code(capsys):
    assert main(["info"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("llvmlite"))
    assert ("Python runs the loops" in line) != engine.available()
