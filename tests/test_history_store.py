"""A history on disk comes back as it was, is never overwritten, and is refused where it is not what was asked for."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest

import history
from history import Graph, HistoryError, load, save
from history.errors import EXIT_DATA
from history.versions import LEFT_OVER
from tests.counted_histories import assert_same, learned
from tests.naive_history import SCHEME, random_trace

FILES = ("manifest.json", "vertices.parquet", "edges.parquet", "overlaps.parquet", "bundles.parquet", "maps.npz")


def some_graph(gap: int = -1, most: int = 9) -> Graph:
    return learned([random_trace(1, births=60), random_trace(2, row=1000)], gap, most)


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def refused(code: str, call, *words: str) -> None:
    with pytest.raises(HistoryError) as caught:
        call()
    assert caught.value.code == code
    assert caught.value.exit_code == EXIT_DATA
    for word in words:
        assert word in str(caught.value)


# --- there and back -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", [some_graph(), some_graph(gap=40, most=1000), Graph(SCHEME)])
def test_save_load_save_is_the_same_byte_for_byte(graph, tmp_path):
    folder = save(graph, tmp_path / "one", "q1", notes={"seed": 3, "who": "Zoë"})
    assert set(content(folder)) == set(FILES)
    stored = load(tmp_path / "one", "q1")
    assert (stored.fingerprint, stored.version, stored.notes) == ("q1", 1, {"seed": 3, "who": "Zoë"})
    assert (stored.graph.scheme, stored.graph.gap, stored.graph.most_bundles) == (SCHEME, graph.gap, graph.most_bundles)
    assert_same(stored.graph.counts, graph.counts)
    again = save(stored.graph, tmp_path / "two", "q1", notes=stored.notes)
    assert content(again) == content(folder)


def test_a_loaded_history_goes_on_learning(tmp_path):
    save(some_graph(), tmp_path, "q")
    more = random_trace(3, row=2000)
    graph, loaded = some_graph(), load(tmp_path).graph
    graph.observe(more)
    loaded.observe(more)
    assert_same(loaded.counts, graph.counts)


def test_the_manifest_can_be_read_by_people(tmp_path):
    folder = save(some_graph(), tmp_path, "q1")
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    assert (manifest["format"], manifest["fingerprint"], manifest["visits"]) == (2, "q1", 270)
    assert manifest["scheme"]["places"][0]["features"][0]["name"] == "x"


# --- versions -----------------------------------------------------------------------------------------------


def test_a_new_version_is_added_and_the_old_one_stays(tmp_path):
    first = save(some_graph(), tmp_path, "q")
    before = content(first)
    second = save(Graph(SCHEME), tmp_path, "q", new_version=True)
    assert (first.name, second.name) == ("v0001", "v0002")
    assert content(first) == before
    assert load(tmp_path).version == 2
    assert_same(load(tmp_path, version=1).graph.counts, some_graph().counts)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["LATEST", "v0001", "v0002"]
    refused("ACEP-H001", lambda: load(tmp_path, version=3), "no version 3", "1, 2")


def test_nothing_is_overwritten(tmp_path):
    folder = save(some_graph(), tmp_path, "q")
    before = content(folder)
    refused("ACEP-H005", lambda: save(Graph(SCHEME), tmp_path, "q"), str(tmp_path))
    assert content(folder) == before


def test_a_new_version_can_be_the_first(tmp_path):
    assert save(some_graph(), tmp_path / "deep" / "past", "q", new_version=True).name == "v0001"


def test_a_save_that_fails_leaves_the_version_before(tmp_path, monkeypatch):
    save(some_graph(), tmp_path, "q")
    monkeypatch.setattr("numpy.savez_compressed", lambda *_, **__: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        save(Graph(SCHEME), tmp_path, "q", new_version=True)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["LATEST", "v0001"]
    assert_same(load(tmp_path).graph.counts, some_graph().counts)


# --- refusals -----------------------------------------------------------------------------------------------


def test_where_nothing_is_there_is_no_history(tmp_path):
    refused("ACEP-H001", lambda: load(tmp_path), str(tmp_path))
    refused("ACEP-H001", lambda: load(tmp_path / "nowhere"))


def test_a_history_of_another_query_is_refused_with_both_fingerprints(tmp_path):
    save(some_graph(), tmp_path, "abc123")
    refused("ACEP-H002", lambda: load(tmp_path, "def456"), "abc123", "def456")
    refused("ACEP-H002", lambda: save(some_graph(), tmp_path, "def456", new_version=True), "abc123", "def456")


def test_another_format_is_refused(tmp_path):
    file = save(some_graph(), tmp_path, "q") / "manifest.json"
    file.write_text(file.read_text("utf-8").replace('"format": 2', '"format": 99'), "utf-8")
    refused("ACEP-H003", lambda: load(tmp_path), "99", "format 2")


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("harm", ["gone", "short", "empty", "changed", "folder"])
def test_a_torn_version_is_refused(file, harm, tmp_path):
    path = save(some_graph(), tmp_path, "q") / file
    whole = path.read_bytes()
    path.unlink()
    if harm == "folder":
        path.mkdir()
    elif harm != "gone":
        changed = b"\x00" + whole[1:]
        path.write_bytes({"short": whole[:-9], "empty": b"", "changed": changed}[harm])
    refused("ACEP-H004", lambda: load(tmp_path), str(tmp_path))


@pytest.mark.parametrize("text", [None, "", "v1", "../v0001", "v0007"])
def test_a_wrong_pointer_is_refused(text, tmp_path):
    save(some_graph(), tmp_path, "q")
    (tmp_path / "LATEST").unlink()
    if text is not None:
        (tmp_path / "LATEST").write_text(text, "utf-8")
    refused("ACEP-H004", lambda: load(tmp_path))
    refused("ACEP-H004", lambda: save(some_graph(), tmp_path, "q", new_version=True))
    assert load(tmp_path, version=1).version == 1


def test_files_that_go_together_but_not_with_the_scheme_are_refused(tmp_path):
    folder = save(some_graph(), tmp_path, "q")
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    manifest["scheme"]["places"] = manifest["scheme"]["places"][1:2]
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    refused("ACEP-H004", lambda: load(tmp_path))


def test_other_things_are_not_written_into(tmp_path):
    (tmp_path / "notes.txt").write_text("mine", "utf-8")
    refused("ACEP-H006", lambda: save(some_graph(), tmp_path, "q"))
    refused("ACEP-H006", lambda: save(some_graph(), tmp_path / "notes.txt", "q", new_version=True))
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.txt"]


def test_what_a_killed_writer_left_is_no_hindrance_and_is_cleared_away(tmp_path):
    for name in (".draft-old", ".draft-young"):
        (tmp_path / name).mkdir()
    (tmp_path / ".LATEST-7").write_text("v00", "utf-8")
    for name in (".draft-old", ".LATEST-7"):
        os.utime(tmp_path / name, (time.time() - 2 * LEFT_OVER,) * 2)
    save(Graph(SCHEME), tmp_path, "x")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".draft-young", "LATEST", "v0001"]


def test_a_version_without_a_pointer_is_not_overwritten(tmp_path):
    save(some_graph(), tmp_path, "q")
    shutil.move(tmp_path / "LATEST", tmp_path / "elsewhere")
    refused("ACEP-H005", lambda: save(Graph(SCHEME), tmp_path, "q"))


# --- the package --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", history.__all__)
def test_every_exported_name_is_there_and_says_what_it_is(name):
    assert (getattr(history, name).__doc__ or "").strip()
    assert name in dir(history)


def test_other_names_are_not_there():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = history.nonsense
