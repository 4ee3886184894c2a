"""What is public stands in the face of a package: it loads nothing heavy, and old paths lead to it with a warning."""

from __future__ import annotations

import ast
import importlib
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import HEAVY, imported

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FACES = [
    ".".join(path.relative_to(ROOT).parent.parts)
    for package in ("acep_approx", "history", "rl")
    for path in sorted((ROOT / package).rglob("__init__.py"))
    if "lazy(" in path.read_text(encoding="utf-8")
]
BEFORE = {
    "acep_approx.report.summary": ("summary", "acep_approx.pages"),
    "acep_approx.spark.blobs": ("describe", "acep_approx.spark"),
    "acep_approx.spark.growing": ("read_growing", "acep_approx.spark"),
    "acep_approx.spark.metrics": ("Progress", "acep_approx.spark"),
    "acep_approx.spark.prometheus": ("Exporter", "acep_approx.spark"),
    "acep_approx.spark.replay": ("Replay", "acep_approx.spark"),
    "acep_approx.spark.session": ("session", "acep_approx.spark"),
    "acep_approx.spark.sql": ("register", "acep_approx.spark"),
    "acep_approx.spark.stream": ("start", "acep_approx.spark"),
    "acep_approx.spark.training": ("train_history", "acep_approx.spark"),
    "history.proxy": ("proxies", "history.coverage"),
    "history.selection": ("lazy_greedy", "history.coverage"),
    "history.sketch": ("FoldedMap", "history.coverage"),
}
"""Modules that the documentation named and that are gone, each with a name of it and where that is now."""
ONWARD = {
    "acep_approx.events.source": "open_source",
    "acep_approx.query.builder": "seq",
    "acep_approx.query.printer": "to_text",
    "acep_approx.timeline": "svg",
    "history.values": "fit_values",
    "history.vectors": "Place",
    "experiments.learning.baselines": "Moves",
    "rl.chart": "Chart",
    "rl.drift": "Detectors",
    "rl.exploration": "CohortCounts",
    "rl.records": "Events",
    "rl.residual": "residual",
}
"""Documented paths that are still what they were."""


@pytest.fixture
def afresh(monkeypatch):
    """Imports a module as if it had not been imported before."""

    def load(name: str) -> object:
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    return load


@pytest.mark.parametrize("face", FACES)
def test_every_name_of_a_face_is_there_and_in_its_list(face):
    module = importlib.import_module(face)
    assert sorted(module.__all__) == module.__all__
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert getattr(module, name).__name__ == name
    with pytest.raises(AttributeError, match=f"module '{face}' has no attribute 'nonsense'"):
        module.nonsense  # noqa: B018


@pytest.mark.parametrize("face", FACES)
def test_a_face_lists_all_that_it_loads(face):
    """What type checkers are told, what is loaded, and ``__all__`` are the same names."""
    tree = ast.parse((ROOT / face.replace(".", "/") / "__init__.py").read_text(encoding="utf-8"))
    (branch,) = (node for node in tree.body if isinstance(node, ast.If))
    told = {alias.name: node.module for node in branch.body for alias in node.names}
    table, *_gone = (node for node in ast.walk(tree) if isinstance(node, ast.Dict))
    loaded = {name: home for home, names in ast.literal_eval(table).items() for name in names.split()}
    assert told == loaded
    assert set(told) == set(importlib.import_module(face).__all__)


@pytest.mark.parametrize("face", FACES)
def test_no_name_of_a_face_is_that_of_a_file_in_its_folder(face):
    """Else ``from face import name`` would give the file where that was imported before."""
    files = {path.stem for path in (ROOT / face.replace(".", "/")).iterdir()}
    assert not files & set(importlib.import_module(face).__all__)


def test_faces_load_nothing_heavy():
    assert not imported("\n".join(f"import {face}; dir({face})" for face in FACES)) & HEAVY


# --- old paths --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("old", BEFORE)
def test_old_paths_work_and_name_the_new_one(old, afresh):
    name, face = BEFORE[old]
    new = getattr(importlib.import_module(face), name)
    with pytest.warns(DeprecationWarning, match=f"{old} is deprecated: import its names from {face}$") as warned:
        module = afresh(old)
    assert getattr(module, name) is new
    assert getattr(importlib.import_module(face), name) is new, "the face still has the name, and not the old module"
    assert len(warned) == 1


def test_a_package_and_a_name_that_are_gone_lead_to_where_they_are_now():
    import acep_approx.report

    vars(acep_approx.report).pop("summary", None)  # left there by who imported the module of this name
    with pytest.warns(DeprecationWarning, match="report.summary is deprecated: import it from acep_approx.pages"):
        from acep_approx.report import summary
    with pytest.warns(DeprecationWarning, match="timeline.timeline_html is deprecated: import it from acep_approx"):
        from acep_approx.timeline import timeline_html
    pages = importlib.import_module("acep_approx.pages")
    assert (summary, timeline_html) == (pages.summary, pages.timeline_html)
    with pytest.raises(AttributeError, match=r"module 'acep_approx.report' has no attribute 'nonsense'"):
        acep_approx.report.nonsense  # noqa: B018


@pytest.mark.parametrize("old", ONWARD)
def test_other_documented_paths_are_what_they_were(old):
    assert getattr(importlib.import_module(old), ONWARD[old])


def test_the_warning_shows_the_line_of_the_import(tmp_path, monkeypatch):
    script = tmp_path / "script.py"
    script.write_text("\nfrom history.sketch import FoldedMap\n", encoding="utf-8")
    monkeypatch.delitem(sys.modules, "history.sketch", raising=False)
    with pytest.warns(DeprecationWarning, match="sketch") as warned:
        runpy.run_path(str(script))
    assert (warned[0].filename, warned[0].lineno) == (str(script), 2)


def test_what_never_was_is_not_found(afresh):
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("acep_approx.spark.nonsense")
    with pytest.warns(DeprecationWarning, match="sketch"):
        old = afresh("history.sketch")
    with pytest.raises(AttributeError, match="nonsense"):
        old.nonsense  # noqa: B018


# --- the documentation ------------------------------------------------------------------------------------


def documented(path: Path) -> Iterator[str]:
    """Modules of ours that the examples of a page import from, or of a module's docstrings."""
    lines = path.read_text(encoding="utf-8").splitlines()
    start = r"" if path.suffix == ".md" else r"\s*>>> "
    for line in lines:
        if found := re.match(start + r"(?:from|import) ((?:acep_approx|history|rl)\b[\w.]*)", line):
            yield found[1]


def test_what_is_documented_is_at_most_two_levels_deep():
    sources = [path for package in ("acep_approx", "history", "rl") for path in (ROOT / package).rglob("*.py")]
    named = {path.relative_to(ROOT).as_posix(): list(documented(path)) for path in [*PAGES, *sources]}
    assert sum(map(len, named.values())) > 30
    assert {path: deep for path, names in named.items() if (deep := [n for n in names if n.count(".") > 1])} == {}
