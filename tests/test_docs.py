"""The pages in docs/: every Python block runs, values in comments come out, and the site builds without a warning."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_readme import run

from minnp.backends import installed

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
BLOCK = re.compile(r"^```python *(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.host("the pages print what the default policy gives")
@pytest.mark.parametrize("page", [p for p in PAGES if BLOCK.search(p.read_text())], ids=lambda p: p.stem)
def test_blocks_run(page):
    names = {}
    for needs, block in BLOCK.findall(page.read_text()):
        if needs in ("", *installed()):
            run(block, names)


def test_links_point_to_files():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), f"{page} links to {target}"


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    pytest.importorskip("furo")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", ROOT / "docs", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "guide" / "autodiff.html").exists() and "softmax_loss" in (tmp_path / "api.html").read_text()
