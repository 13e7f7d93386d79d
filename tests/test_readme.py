"""README.md tells the truth: its Python runs, the values in comments come out, files and commands exist."""

import importlib.util
import re
import subprocess

import pytest
from alone import ROOT
from pages import blocks, run_page

README = (ROOT / "README.md").read_text()
BLOCKS = blocks(ROOT / "README.md")


@pytest.mark.long
@pytest.mark.once("whole programs, of functions that other tests call in every setting")
def test_each_block_runs_in_a_new_process():
    run_page(ROOT / "README.md")


@pytest.mark.long
@pytest.mark.dealt("old")
@pytest.mark.host("the page prints what the default policy gives")
@pytest.mark.skipif(importlib.util.find_spec("mxnet") is None, reason="mxnet is not installed")
def test_each_block_for_mxnet_runs_in_a_new_process():
    run_page(ROOT / "README.md", "mxnet")


def test_blocks_are_found():
    assert len(BLOCKS) >= 9 and {block.needs for block in BLOCKS} == {"", "mxnet"}


def test_commands_exist():
    commands = re.findall(r"^\./run (\w+)", README, re.MULTILINE)
    assert commands[:2] == ["job", "test"]
    script = (ROOT / "run").read_text()
    for command in commands:
        assert re.search(rf"^(\w+ \| )*{command}( \| \w+)*\)$", script, re.MULTILINE), f"./run has no {command}"
    assert re.search(r"^\./run test --all$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)


def test_workflows_call_commands_and_tests_that_exist():
    script = (ROOT / "run").read_text()
    files = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    text = "".join(file.read_text() for file in files)
    commands = set(re.findall(r"run: \./run ([\w-]+)", text))
    assert commands >= {"lint", "test", "sanitize", "wheel", "docs"}
    for command in commands:
        assert re.search(rf"^(\w+ \| )*{command}( \| \w+)*\)$", script, re.MULTILINE), f"./run has no {command}"
    assert [path for path in re.findall(r"tests/\w+(?:\.py)?", text) if not (ROOT / path).exists()] == []


def test_workflows_are_yaml_with_jobs_of_steps():
    yaml = pytest.importorskip("yaml")
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        for job in yaml.safe_load(file.read_text())["jobs"].values():
            assert job["runs-on"] and all("run" in step or "uses" in step for step in job["steps"]), file


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
