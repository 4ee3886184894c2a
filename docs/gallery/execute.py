"""Runs the notebooks of the gallery, and writes their outputs anew: ``python docs/gallery/execute.py [NAME ...]``.

What a cell shows besides text and pictures, counts of executions, and names of kernels are left out: the same run gives
the same file.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

GALLERY = Path(__file__).parent
KEPT = ("text/plain", "text/html")


def executed(path: Path, folder: Path) -> NotebookNode:
    """A notebook with the outputs of a fresh kernel.

    Parameters
    ----------
    path : Path
    folder : Path
        Where it runs: files that it writes are there.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        A cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    for cell in notebook.cells:
        cell.metadata.clear()
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = _joined([_plain(output) for output in cell.outputs])
    notebook.metadata = NotebookNode(
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python"},
    )
    return notebook


def _joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Outputs with what is printed in a row as one: a kernel sends it in pieces."""
    joined: list[NotebookNode] = []
    for output in outputs:
        if joined and output.output_type == "stream" and output.get("name") == joined[-1].get("name"):
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def _plain(output: NotebookNode) -> NotebookNode:
    """An output with what can be shown without a script."""
    if output.output_type in ("execute_result", "display_data"):
        output.data = NotebookNode({kind: output.data[kind] for kind in KEPT if kind in output.data})
        output.metadata = NotebookNode()
    if output.output_type == "execute_result":
        output.execution_count = None
    return output


if __name__ == "__main__":
    for book in [GALLERY / f"{name}.ipynb" for name in sys.argv[1:]] or sorted(GALLERY.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as place:
            nbformat.write(executed(book, Path(place)), book)
