"""The notebooks of the gallery run, and print what is written in them; they hold nothing that changes with each run."""

from __future__ import annotations

import json
import re
import runpy
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

ROOT = Path(__file__).parent.parent
GALLERY = ROOT / "docs" / "gallery"
BOOKS = sorted(GALLERY.glob("*.ipynb"))
TIMES = re.compile(r"\b\d[\d,.]* (?:s|ms|µs)\b")
"""How long something took."""


def printed(book: Any) -> Iterator[tuple[str, str]]:
    """What the cells print, and the texts of what they show; a picture is a text, too, for those who do not see it."""
    for cell in book.cells:
        for output in cell.get("outputs", ()):
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            yield cell.id, TIMES.sub("...", text)


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_is_written_in_it(path, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    executed = runpy.run_path(str(GALLERY / "execute.py"))["executed"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the kernel's libraries are not ours
        made = executed(path, tmp_path)
    kept = nbformat.read(path, as_version=4)
    told = "if it should print this: python docs/gallery/execute.py " + path.stem
    assert list(printed(made)) == list(printed(kept)), told
    outputs = [output for cell in made.cells for output in cell.get("outputs", ())]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    pictures = [shown for output in outputs if (shown := output.get("data", {}).get("text/html"))]
    assert len(pictures) >= 4
    assert not [shown for shown in pictures if "cannot be drawn" in shown]


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_as_one_wants_it(path):
    """Short, with names for its cells, and without what changes with each run."""
    book = json.loads(path.read_text(encoding="utf-8"))
    cells = book["cells"]
    assert 10 <= len(cells) <= 16
    assert [cell["id"] for cell in cells] == [f"{path.stem}-{number:02}" for number in range(len(cells))]
    assert cells[0]["cell_type"] == "markdown"
    assert all(cell["metadata"] == {} for cell in cells)
    assert {cell.get("execution_count") for cell in cells} == {None}
    assert set(book["metadata"]) == {"kernelspec", "language_info"}
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert sum(bool(cell["outputs"]) for cell in code) >= 6
    for output in (output for cell in code for output in cell["outputs"]):
        assert set(output.get("data", {})) <= {"text/plain", "text/html"}
        assert "<script" not in "".join(output.get("data", {}).get("text/html", ""))
    lines = [line for cell in cells for line in "".join(cell["source"]).splitlines()]
    assert max(map(len, lines)) <= 130


def test_the_index_has_every_notebook():
    page = (GALLERY / "index.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\((\w+)\.ipynb\)", page)) == {path.stem for path in BOOKS}


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_links_of_a_notebook_lead_to_pages(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    links = [link for text in texts for link in re.findall(r"\]\(([^)#]+)", text)]
    assert links
    assert [link for link in links if not (GALLERY / link).is_file()] == []
