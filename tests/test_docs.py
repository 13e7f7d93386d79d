"""The pages in docs/: every Python block runs, values in comments come out, and the site builds without a warning."""

import importlib.util
import re
import subprocess
import sys

import pytest
from alone import ROOT
from pages import blocks, run_page
from public import public

PAGES = sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.long
@pytest.mark.once("whole programs, of functions that other tests call in every setting")
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_each_block_runs_in_a_new_process(page):
    run_page(page)


@pytest.mark.long
@pytest.mark.dealt("old")
@pytest.mark.host("the pages print what the default policy gives")
@pytest.mark.skipif(importlib.util.find_spec("mxnet") is None, reason="mxnet is not installed")
@pytest.mark.parametrize("page", [p for p in PAGES if any(b.needs == "mxnet" for b in blocks(p))], ids=lambda p: p.stem)
def test_each_block_for_mxnet_runs_in_a_new_process(page):
    run_page(page, "mxnet")


def test_links_point_to_files():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), f"{page} links to {target}"


def test_a_build_does_not_read_what_the_one_before_it_wrote():
    """./run docs twice: the second one found pages in the folder of myst_nb that no page lists."""
    excluded = re.search(r"^exclude_patterns = (\[.*?\])", (ROOT / "docs" / "conf.py").read_text(), re.MULTILINE)[1]
    written = re.findall(r"^/docs/(\w+)/$", (ROOT / ".gitignore").read_text(), re.MULTILINE)
    assert {"_build", "jupyter_execute"} <= set(written)
    assert [name for name in written if name not in excluded] == ["tutorials"]  # the notebooks, which are pages


def test_pictures_name_no_folder_of_who_drew_them():
    for picture in (ROOT / "docs" / "pictures").glob("*.svg"):
        assert not re.search(r'"/\w', picture.read_text()), picture


@pytest.mark.slow
@pytest.mark.host("the pages are text")
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_nb")
    pytest.importorskip("furo")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", ROOT / "docs", tmp_path]
    command += ["-D", "toc_object_entries=0"]  # a page's list of its names: a sixth of the time
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "guide" / "autodiff.html").exists()
    for page in tmp_path.rglob("*.html"):
        for link in re.findall(r'(?:href|src)="([^"#?]+)', page.read_text()):
            assert link.startswith("https://") or (page.parent / link).exists(), f"{page} links to {link}"
    formulas = (tmp_path / "tutorials" / "autodiff" / "pendulum.html").read_text()
    assert "<math" in formulas and "https://cdn" not in formulas  # which are drawn without the network
    pages = "".join(page.read_text() for page in (tmp_path / "reference").glob("*.html"))
    assert "<li></li>" not in pages  # what a "-" alone is in reStructuredText
    shown = {name.rpartition(".")[2] for name in re.findall(r'id="(minnp\.[\w.]+)"', pages)}
    assert [name for name in public() if name.rpartition(".")[2] not in shown] == []
    source = set(re.findall(r'href="\.\./_modules/[\w/]+\.html#([\w.]+)"', pages))
    assert source >= {"grad", "jit", "custom_vjp.defvjp", "Context", "Linear", "GraphModule", "Mesh.split"}


def test_the_tables_of_correspondences_name_what_exists():
    """Every dotted name in the column of minnp in the tables."""
    import minnp
    import minnp.numpy as np
    import minnp.scipy.special
    import minnp.testing
    from minnp import fx, nn, npx

    scope = {"minnp": minnp, "np": np, "nn": nn, "npx": npx, "fx": fx, "optim": nn.optim, "io": nn.io}
    values = {"x": np.ones((2, 2)), "model": nn.Sequential(), "net": nn.Sequential()}
    found = 0
    for page in sorted((ROOT / "docs" / "coming_from").glob("*.md")):
        rows = re.findall(r"^\| (\S.*) \|$", page.read_text(), re.MULTILINE)
        for row in rows:
            cell = re.split(r" \| ", row)[0 if page.stem == "index" else -1]
            for name in re.findall(r"`([A-Za-z_][\w.]*)", cell):
                first, *rest = name.split(".")
                known = scope | values | vars(minnp)
                if first not in known or not rest or rest[0] in nn.io.FROM_MXNET:
                    continue
                value = known[first]
                for part in rest:
                    assert hasattr(value, part), f"{name}: {value!r} has no {part}"
                    value = getattr(value, part)
                found += 1
    assert found >= 40


def test_what_is_advised_to_install_is_on_an_index():
    """minnp is not, so nothing may say `pip install 'minnp[torch]'`."""
    for path in [*ROOT.glob("minnp/**/*.py"), *ROOT.glob("tutorials/**/*.py"), *PAGES, ROOT / "README.md"]:
        assert not re.search(r"""pip install ['"]?minnp|extra .?minnp\[""", path.read_text()), path
