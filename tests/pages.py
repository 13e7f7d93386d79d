"""The Python blocks of a page, and a way to run each as a reader would who pastes it into a new process.

`python tests/pages.py PAGE` runs them. An expression followed by `# text` must print as that text.
"""

import ast
import importlib.util
import os
import re
import sys
import textwrap
import types
from pathlib import Path
from typing import NamedTuple

from alone import ask, forked, serve

# ```python, or ```python NAME for a block that needs a library which is not always installed
BLOCK = re.compile(r"^( *)```python *(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A block of a page: its first line there, the library it needs or "", its text."""

    page: Path
    line: int
    needs: str
    text: str

    def __str__(self):
        return f"{self.page.name}:{self.line}"


def blocks(page):
    text = page.read_text()
    return [Block(page, text.count("\n", 0, m.start(3)) + 1, m[2], textwrap.dedent(m[3])) for m in BLOCK.finditer(text)]


def run(block):
    """Execute a block statement by statement, as the program `__main__`."""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    lines = block.text.splitlines()
    for statement in ast.parse(block.text).body:
        ast.increment_lineno(statement, block.line - 1)
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), str(block.page), "exec"), vars(main))
            continue
        value = eval(compile(ast.Expression(statement.value), str(block.page), "eval"), vars(main))
        after = lines[statement.end_lineno - block.line].encode()[statement.end_col_offset :].decode()
        said = after.partition("#")[2].strip()
        if said and value is not None:
            source = ast.unparse(statement)
            assert repr(value) == said or str(value) == said, f"{source} is {value!r}, {block} says {said}"


def run_page(page, *library):
    """Run each block of a page in a process of its own, where the library it needs is installed; or those that need
    the `library` alone. They begin with minnp imported, which is most of a block's time."""
    ask(Path(__file__), str(page), *library)


def main(page, *library):
    """A child for each block, which begins with minnp imported. Those that need a library come last."""
    page = Path(page)
    todo = [b for b in blocks(page) if b.needs in library] if library else blocks(page)
    todo = [b for b in todo if not b.needs or importlib.util.find_spec(b.needs)]
    if sum("io.digits" in b.text for b in todo) > 1:
        importlib.import_module("sklearn.datasets")
    for block in sorted(todo, key=lambda b: b.needs):
        if block.needs in ("torch", "mxnet"):
            importlib.import_module(block.needs)
        if child := forked():
            if os.waitpid(child, 0)[1]:
                print(f"{page}:{block.line} failed", file=sys.stderr)
                return 1
            continue
        run(block)
        return 0
    return 0


if __name__ == "__main__":
    for module in ("minnp.fx", "minnp.nn", "minnp.symbol"):  # so that not every block waits for them
        importlib.import_module(module)
    sys.exit(main(sys.argv[1]) if len(sys.argv) > 1 else serve(main))
