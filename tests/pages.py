"""The Python blocks of a page, and a way to run one as a reader would who pastes it into a new process.

`python tests/pages.py PAGE NUMBER` runs one block. An expression followed by `# text` must print as that text.
"""

import ast
import importlib.util
import re
import sys
import types
from pathlib import Path
from typing import NamedTuple

from alone import run_alone

# ```python, or ```python NAME for a block that needs a library which is not always installed
BLOCK = re.compile(r"^```python *(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A block of a page: its place among them, its first line there, the library it needs or "", its text."""

    page: Path
    number: int
    line: int
    needs: str
    text: str

    def __str__(self):
        return f"{self.page.name}:{self.line}"


def blocks(page):
    text = page.read_text()
    return [
        Block(page, n, text.count("\n", 0, m.start(2)) + 1, *m.groups()) for n, m in enumerate(BLOCK.finditer(text))
    ]


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


def run_block(block):
    """Run a block in a process of its own, where the library it needs is installed."""
    import pytest  # the new process runs without

    if block.needs and importlib.util.find_spec(block.needs) is None:
        pytest.skip(f"{block.needs} is not installed")
    run_alone(Path(__file__), block.page, block.number)


if __name__ == "__main__":
    run(blocks(Path(sys.argv[1]))[int(sys.argv[2])])
