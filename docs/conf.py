"""Sphinx: `./run docs` builds the pages; every warning is an error."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import minnp

project = "minnp"
author = "The minnp authors"
release = version = minnp.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "minnp"
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"


def keep_lines(app, what, name, obj, options, lines):
    """Docstrings are plain text, laid out by hand: show them as they are."""
    if any(lines):
        lines[:] = ["::", "", *("    " + line for line in lines), ""]


def setup(app):
    app.connect("autodoc-process-docstring", keep_lines)
