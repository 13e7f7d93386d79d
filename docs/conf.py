"""Sphinx: `./run docs` builds the pages; every warning is an error."""

import gc
import re
import shutil
import sys
import textwrap
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).parents[1]))

import minnp
from minnp import table

gc.disable()  # pages are kept to the end: to look for garbage among them takes a fifth of the time

ROOT = Path(__file__).parents[1]
project = "minnp"
author = "The minnp authors"
project_copyright = "the minnp authors, Apache License 2.0"
release = version = minnp.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
exclude_patterns = ["_build", "jupyter_execute"]  # what a build writes, the second for myst_nb
nb_execution_mode = "off"  # what `./run notebooks` wrote is shown
nb_merge_streams = True
html_theme = "furo"
html_title = "minnp"
html_static_path = ["static"]
html_css_files = ["pages.css"]
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
html_math_renderer = "mathml"
autodoc_member_order = "bysource"
autodoc_typehints = "none"

# `name, other   what they are`, as docstrings list parameters
PARAMETER = re.compile(r"(\*{0,2}[A-Za-z_][\w.()]*(?:, (?:\*{0,2}[A-Za-z_][\w.()]*|\.\.\.))*) {2,}(\S.*)")


def as_rst(lines):
    """A docstring of ours as reStructuredText: prose, lists of parameters, examples, and code that is indented."""
    out, rest = [], list(lines)

    def take(belongs):
        taken = [rest.pop(0)]
        while rest and belongs(rest[0]):
            taken.append(rest.pop(0))
        return taken

    while rest:
        line = rest[0]
        if not line.strip():
            rest.pop(0)
        elif line.startswith(">>>"):
            out += [".. code-block:: python", "", *("   " + text for text in take(str.strip))]
        elif line.startswith(" "):
            block = textwrap.dedent("\n".join(take(lambda text: text[:1] in ("", " ")))).splitlines()
            is_list = PARAMETER.fullmatch(block[0])
            out += as_rst(block) if is_list else [".. code-block:: python", "", *("   " + text for text in block)]
        elif found := PARAMETER.fullmatch(line):
            text = " ".join([found[2], *map(str.strip, take(lambda text: text.startswith(" "))[1:])])
            out += [", ".join(f"``{name}``" for name in found[1].split(", ")), "   " + prose(text)]
        else:
            plain = lambda text: text[:1] not in ("", " ", ">") and not PARAMETER.fullmatch(text)
            out.append(prose(" ".join(take(plain))))
        out.append("")
    return out


def prose(text):
    """Text with `code` as code, and nothing else that reStructuredText would read as markup."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(f"`{p}`" if p[:1] == "`" and len(p) > 1 else re.sub(r"([*|_\\`])", r"\\\1", p) for p in parts)


class NamesTable(SphinxDirective):
    """`names-table:: numpy`: the public names of a namespace and their gradients."""

    required_arguments = 1

    def run(self):
        prefix = {"numpy": "", "npx": "npx.", "scipy": "scipy."}[self.arguments[0]]
        rows = []
        for line in table.table(scipy=prefix == "scipy."):
            mine = not line.name.startswith(("npx.", "scipy.")) if prefix == "" else line.name.startswith(prefix)
            if mine and line.made not in ("value", "module"):
                gradient, _ = self.parse_inline(prose(line.gradient.replace("no: raises", "no")) or "-")
                rows.append(row([nodes.literal(line.name, line.name)], gradient))
        head = row(*[[nodes.Text(title)] for title in ("name", "gradient")])
        columns = [nodes.colspec(colwidth=50) for _ in range(2)]
        group = nodes.tgroup("", *columns, nodes.thead("", head), nodes.tbody("", *rows), cols=2)
        return [nodes.table("", group)]


def row(*cells):
    return nodes.row("", *[nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells])


def visit_math(page, node):
    """A formula as MathML, which browsers draw without MathJax's scripts from the network."""
    page.body.append(tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block)))
    raise nodes.SkipNode


def rewrite(app, what, name, obj, options, lines):
    lines[:] = as_rst(lines)


def copy_notebooks(app):
    """The notebooks of tutorials/ as pages of this site, since Sphinx reads nothing outside its folder."""
    shutil.rmtree(ROOT / "docs" / "tutorials", ignore_errors=True)
    for source in (ROOT / "tutorials").rglob("*"):
        if source.suffix in (".ipynb", ".md") and ".ipynb_checkpoints" not in source.parts:
            page = ROOT / "docs" / source.relative_to(ROOT)
            page.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, page)


def link_to_notebooks(app, name, source):
    """Links to ../tutorials/NAME.ipynb, which a forge follows, lead to the page of the notebook here."""
    source[0] = re.sub(r"\]\((?:\.\./)+(tutorials/(?:\w+/)?\w+\.(?:ipynb|md))\)", r"](/\1)", source[0])


def setup(app):
    app.connect("builder-inited", copy_notebooks)
    app.connect("source-read", link_to_notebooks)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
    app.add_directive("names-table", NamesTable)
    app.connect("autodoc-process-docstring", rewrite)
