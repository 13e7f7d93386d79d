"""Who may import whom, what `import minnp` costs, and a few habits that a reader would otherwise have to check."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

pytestmark = pytest.mark.once("about files")
ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "minnp"
FILES = sorted(PACKAGE.rglob("*.py"))

# Part of the package -> the parts it may import. A part is the longest matching prefix; `minnp` itself is the public
# package (minnp/__init__.py); `minnp.backends` is the registry, which names no backend's module.
MAY_IMPORT = {
    "minnp.errors": set(),
    "minnp.core": {"minnp.core", "minnp.errors", "minnp.backends"},
    "minnp.numpy": {"minnp.numpy", "minnp.core", "minnp.errors"},
    "minnp.npx": {"minnp.npx", "minnp.numpy", "minnp.core", "minnp.errors"},  # its rules are written in NumPy's rows
    "minnp.scipy": {"minnp.scipy", "minnp.npx", "minnp.numpy", "minnp.core", "minnp.errors"},
    "minnp.nn": {"minnp.nn", "minnp", "minnp.numpy", "minnp.npx", "minnp.distributed"},
    "minnp.distributed": {
        *("minnp.distributed", "minnp", "minnp.core", "minnp.errors", "minnp.backends", "minnp.backends.mesh"),
        "minnp.numpy",
    },
    # graphs of models: above both
    "minnp.fx": {"minnp.fx", "minnp", "minnp.core", "minnp.errors", "minnp.nn", "minnp.numpy", "minnp.npx"},
    # MXNet's models, which fx's passes freeze
    "minnp.symbol": {
        "minnp.symbol",
        "minnp",
        "minnp.errors",
        "minnp.core",
        "minnp.backends",
        "minnp.numpy",
        "minnp.npx",
        "minnp.scipy",
        "minnp.fx",
    },
}
# minnp/core's packages from the lowest up: each imports those before it, inside functions too.
ROOMS = ["compiled", "cpu", "rows", "arrays", "transforms", "api", "graph", "llvm", "loops", "passes", "jit"]
# Never imported at `import minnp`: each takes longer to import than minnp itself, or may not be installed.
HEAVY = ["mxnet", "torch", "llvmlite", "jax", "autograd", "scipy", "matplotlib", "sklearn", "pandas", "tqdm", "IPython"]


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path):
    """(line, absolute name) of everything a file imports, inside functions too; `from .a import b` gives ...a.b."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def part(name):
    """minnp.core.transforms.tape.grad -> minnp.core; a backend's own module keeps its name; minnp.grad -> minnp."""
    words = name.split(".")
    if words[:2] == ["minnp", "backends"]:
        own = [p for p in PACKAGE.glob("backends/*") if p.stem in words[2:3] and p.stem != "__init__"]
        return ".".join(words[:3]) if own else "minnp.backends"
    return ".".join(words[:2]) if ".".join(words[:2]) in MAY_IMPORT else "minnp"


@pytest.mark.long
def test_each_part_imports_only_what_is_below_it():
    wrong = []
    for path in FILES:
        allowed = MAY_IMPORT.get(part(module_name(path)))
        if allowed is None:
            continue
        for line, name in imports(path):
            if name.split(".")[0] == "minnp" and part(name) not in allowed:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    assert not wrong, "\n".join(wrong)


def room(name):
    """minnp.core.rows.value -> rows"""
    return name.split(".")[2]


@pytest.mark.long
def test_each_package_of_core_imports_only_those_below_it():
    assert {p.parent.name for p in PACKAGE.glob("core/*/*.py")} == set(ROOMS)
    assert [p.name for p in PACKAGE.glob("core/*.py")] == ["__init__.py"]
    wrong = []
    for path in PACKAGE.glob("core/*/*.py"):
        above = ROOMS[ROOMS.index(room(module_name(path) + ".")) + 1 :]
        for line, name in imports(path):
            if name.startswith("minnp.core.") and room(name) in above:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_each_package_of_core_says_what_it_is_for_and_what_it_may_import():
    for at, name in enumerate(ROOMS):
        text = ast.get_docstring(ast.parse((PACKAGE / "core" / name / "__init__.py").read_text()))
        last = text.splitlines()[-1]
        assert last == f"May import: {', '.join(ROOMS[:at][::-1]) or 'nothing'}.", (
            f"minnp/core/{name} ends with {last!r}"
        )


def run_python(code):
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.host("a backend chosen by the environment is imported at once")
def test_importing_minnp_imports_no_backend_and_nothing_heavy():
    loaded = run_python("import sys, minnp, minnp.numpy; print(*sys.modules)").split()
    assert [name for name in HEAVY if name in loaded] == []
    assert [name for name in loaded if part(name).startswith("minnp.backends.")] == []
    assert "minnp.nn" not in loaded


def test_importing_minnp_leaves_numpy_as_it_was():
    code = (
        "import numpy, sys; names = dict(vars(numpy)); settings = numpy.geterr(), numpy.get_printoptions();"
        "import minnp.numpy; print([n for n in names if vars(numpy)[n] is not names[n]]);"
        "print(settings == (numpy.geterr(), numpy.get_printoptions()), sys.modules['numpy'] is numpy)"
    )
    assert run_python(code).split() == ["[]", "True", "True"]


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_file_keeps_the_habits(path):
    text = path.read_text()
    tree = ast.parse(text)
    name = str(path.relative_to(ROOT))
    if len(tree.body):
        assert ast.get_docstring(tree), f"{name} does not say what it is in its first line"
    for node in ast.walk(tree):
        where = f"{name}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.ExceptHandler):
            caught = ast.unparse(node.type) if node.type else "everything"
            # raised again, or handed on to be (from a worker thread to the caller)
            kept = any(
                isinstance(x, ast.Raise) or (isinstance(x, ast.Name) and x.id == node.name) for x in ast.walk(node)
            )
            assert kept or caught not in ("everything", "Exception", "BaseException"), f"{where} catches {caught}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "globals", f"{where} injects names through globals()"


def test_no_module_of_ours_hides_a_function_of_numpys():
    hidden = [p.stem for p in PACKAGE.glob("numpy/[!_]*") if callable(getattr(numpy, p.stem, None))]
    assert hidden == []


def test_what_needs_mxnet_runs_where_mxnet_is():
    """Tests marked slow, once or exhaustive run on the newest NumPy alone, where mxnet cannot be installed."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text()
        if path != Path(__file__) and any(f"mark.{m}" in text for m in ("slow", "once", "exhaustive")):
            assert 'importorskip("mxnet' not in text and "needs_mxnet" not in text, path


def test_package_is_typed():
    assert (PACKAGE / "py.typed").exists()


def test_what_dir_names_is_there_after_import_minnp_alone():
    code = "import minnp; print([n for n in dir(minnp) if not hasattr(minnp, n)], minnp.fx.Graph)"
    run = [sys.executable, "-c", code]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout.startswith("[] <class")
