"""What `./run python` installs is enough for every tutorial and notebook, and none of them fetches anything."""

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "tutorials").rglob("*.py"))
PACKAGES = {"sklearn": "scikit-learn"}  # where the name to import is not the name to install


def installed(extras):
    """Names of the packages that these extras of minnp bring."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted, found = list(project["dependencies"]), set()
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    while wanted:
        requirement = wanted.pop()
        if inner := re.match(r"minnp\[(.+)\]", requirement):
            for extra in inner[1].split(","):
                wanted += project["optional-dependencies"][extra]
        else:
            found.add(re.match(r"[\w-]+", requirement)[0])
    return found


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.partition(".")[0]


def test_the_environment_of_run_python_has_what_the_tutorials_import():
    extras = re.search(r"prepare job -e '\.\[(.+)\]'", (ROOT / "run").read_text())[1].split(",")
    there = {*installed(extras), "minnp", *sys.stdlib_module_names, *(path.stem for path in TUTORIALS)}
    missing = {
        (path.name, name) for path in TUTORIALS for name in imports(path) if PACKAGES.get(name, name) not in there
    }
    assert not missing


def test_no_tutorial_downloads():
    for path in TUTORIALS:
        assert not {"urllib", "requests", "http", "socket"} & set(imports(path)), path
