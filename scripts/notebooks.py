"""Runs the notebooks of docs/notebooks and writes them with their outputs.

python -m scripts.notebooks              # all
python -m scripts.notebooks 01_your_own_model

A notebook runs in an empty folder, with the data that the library contains.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
LONGEST = 600  # seconds for one cell
# where a warning comes from: a file of one run on one machine, and the line of code below it
PLACE = re.compile(r"^\S*ipykernel_\S*?:\d+: |^\S+\.py:\d+: (?=\w*Warning)", re.M)


def notebooks() -> list[Path]:
    """Return the notebooks in their order."""
    return sorted(FOLDER.glob("*.ipynb"))


def run(path: Path) -> NotebookNode:
    """Return a notebook after all its cells ran; an error in a cell is raised."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(
            notebook,
            timeout=LONGEST,
            kernel_name="python3",
            record_timing=False,
            resources={"metadata": {"path": folder}},
        ).execute()
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "name": "python3"}}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            _without_places(output)
    return notebook


def _without_places(output: NotebookNode) -> None:
    """Remove from a warning the place that it comes from."""
    if output.output_type == "stream" and output.name == "stderr":
        output.text = re.sub(r"\n  .*$", "", PLACE.sub("", output.text), flags=re.M)


def pictures(notebook: NotebookNode) -> int:
    """Return how many pictures the outputs of a notebook show."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return sum("image/png" in output.get("data", {}) for output in outputs)


def main(names: list[str]) -> None:
    chosen = [path for path in notebooks() if not names or path.stem in names]
    if not chosen:
        raise SystemExit(f"no such notebook; choose from {[path.stem for path in notebooks()]}")
    for path in chosen:
        done = run(path)
        nbformat.write(done, path)
        print(f"{path.name}: {pictures(done)} pictures, {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
