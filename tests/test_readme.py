"""README.md tells the truth: its Python runs, the values in comments come out, files and commands exist."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from minnp.backends import installed

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
# ```python, or ```python NAME for a block that needs a library which is not always installed
BLOCKS = re.findall(r"^```python *(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def run(block, names):
    """Execute a block statement by statement; an expression followed by `# text` must print as that text."""
    lines = block.splitlines()
    for statement in ast.parse(block).body:
        source = ast.get_source_segment(block, statement)
        if not isinstance(statement, ast.Expr):
            # not the source, which for a function leaves out its decorators
            exec(compile(ast.Module([statement], []), "README.md", "exec"), names)
            continue
        value = eval(source, names)
        after = lines[statement.end_lineno - 1][statement.end_col_offset :]
        said = after.partition("#")[2].strip()
        if said and value is not None:
            assert repr(value) == said or str(value) == said, f"{source} is {value!r}, README.md says {said}"


@pytest.mark.host("the page prints what the default policy gives")
def test_python_blocks_run():
    names = {}
    assert BLOCKS
    for needs, block in BLOCKS:
        if needs in ("", *installed()):
            run(block, names)


@pytest.mark.parametrize("library", sorted({needs for needs, _ in BLOCKS} - {""}))
def test_blocks_for_a_library_are_tried_where_it_is_installed(library):
    if library not in installed():
        pytest.skip(f"{library} is not installed, so its blocks in README.md did not run")


def test_commands_exist():
    commands = re.findall(r"^\./run (\w+)", README, re.MULTILINE)
    assert commands[:2] == ["job", "test"]
    script = (ROOT / "run").read_text()
    for command in commands:
        assert re.search(rf"^(\w+ \| )*{command}( \| \w+)*\)$", script, re.MULTILINE), f"./run has no {command}"
    assert re.search(r"^\./run test --all$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)


def test_links_point_to_files():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if "://" not in target:
            assert (ROOT / target).exists(), f"README.md links to {target}"


def test_run_explains_itself_and_refuses_what_it_does_not_know():
    def run_script(*words):
        return subprocess.run(["bash", str(ROOT / "run"), *words], capture_output=True, text=True, check=False)

    assert run_script().returncode == 0
    assert "./run test" in run_script("help").stdout
    assert run_script("dance").returncode != 0
