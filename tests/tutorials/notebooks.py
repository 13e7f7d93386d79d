"""The tutorials as notebooks: `./run notebooks [NAME ...]` writes them beside their scripts, executed.

The script, in jupytext's percent format, is the source. Assignments are written as they are, with their exercises open.
"""

import base64
import io
import sys
from pathlib import Path

import jupytext

FOLDER = Path(__file__).parents[2] / "tutorials"
SCRIPTS = [
    path
    for path in sorted(FOLDER.rglob("*.py"))
    if path.parent.name != "solutions" and path.read_text().startswith("# %% [markdown]")
]
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def is_exercise(script):
    return script.parent.name == "assignments"


def read(script):
    """The notebook of a script, without outputs; the same whenever it is read."""
    notebook = jupytext.read(script)
    notebook.metadata = type(notebook.metadata)(kernelspec=KERNEL, language_info={"name": "python"})
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
    return notebook


def execute(notebook, folder, **options):
    """Run the cells as Jupyter does; an error in one of them raises. Keeps no progress bars, nor when each cell ran,
    nor in how many pieces it printed."""
    from nbclient import NotebookClient

    limits = {"timeout": 900, "startup_timeout": 300}  # a kernel is some seconds of a core that is not busy
    kept = {"record_timing": False, "coalesce_streams": True}
    client = NotebookClient(notebook, resources={"metadata": {"path": str(folder)}}, **kept, **limits, **options)
    client.execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]


def lighten(notebook):
    """Pictures with 128 colours: a quarter of the bytes, so that the repository stays small."""
    from PIL import Image

    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if picture := output.get("data", {}).get("image/png"):
                small = io.BytesIO()
                Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB").quantize(128).save(
                    small, "PNG", optimize=True
                )
                output["data"]["image/png"] = base64.b64encode(small.getvalue()).decode()


def main(names):
    for script in SCRIPTS:
        if not names or script.stem in names:
            notebook = read(script)
            if not is_exercise(script):
                execute(notebook, script.parent)
                lighten(notebook)
            jupytext.write(notebook, script.with_suffix(".ipynb"))
            print(script.with_suffix(".ipynb").relative_to(FOLDER.parent))


if __name__ == "__main__":
    main(sys.argv[1:])
