"""Folders of queries with versions: what ``acep queries`` writes, and who reads it."""

from __future__ import annotations

import json
import threading

import pytest

from acep_approx.errors import DataError, UsageError
from acep_approx.subscriptions import versions
from acep_approx.subscriptions.versions import KeptQuery, change, read_version
from tests.command_line import acep

PAIR = """-- id: up
PATTERN SEQ(Stock a, Stock b) WHERE [name] AND b.price > a.price WITHIN 5 RETURN b.price AS price PUBLISH Up;
-- id: high
PATTERN Up u WHERE u.price > 3 WITHIN 5 RETURN u.price AS price
"""
LOW = "PATTERN Stock a WHERE a.price < 3 WITHIN 5"
TICKS = "ts,type,name,price\n0,Stock,X,2\n1,Stock,X,4\n"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder to work in, with files of queries and events."""
    monkeypatch.chdir(tmp_path)
    for name, text in {"pair.acep": PAIR, "low.acep": LOW, "ticks.csv": TICKS}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def listed(*options):
    """The queries of the folder, as ``list`` has them."""
    done = acep("queries", "list", "desk", "--format", "jsonl", *options)
    return [(one["version"], one["id"], one["since"]) for one in map(json.loads, done.stdout.splitlines())]


def test_each_change_is_a_version(place):
    assert "version 1 of desk: 2 queries, added up, high" in acep("queries", "add", "desk", "pair.acep").stderr
    acep("queries", "add", "desk", "low.acep")
    assert "version 3 of desk: 2 queries, removed low" in acep("queries", "remove", "desk", "low").stderr
    assert listed() == [(3, "up", 1), (3, "high", 1)]
    assert listed("--version", "2") == [(2, "up", 1), (2, "high", 1), (2, "low", 2)]
    shown = acep("queries", "list", "desk", "--version", "2").stdout
    assert "version 2: 3 queries" in shown
    assert LOW in shown
    unknown = acep("queries", "list", "desk", "--version", "9", code=2).stderr
    assert "ACEP-U231: 'desk' has no version 9: it has 1, 2, 3" in unknown


def test_a_run_takes_the_newest_version(place):
    acep("queries", "add", "desk", "pair.acep")
    acep("queries", "add", "desk", "low.acep", "--id", "cheap")
    run = acep("run", "--queries", "desk", "ticks.csv", "--format", "csv")
    assert [row.partition(",")[0] for row in run.stdout.splitlines()[1:]] == ["cheap", "up", "high"]
    assert "level 1: high" in acep("explain", "--queries", "desk").stdout
    assert "3 queries are right" in acep("check", "--queries", "desk", "ticks.csv").stdout


def test_a_wrong_query_is_told_with_its_place_and_nothing_is_written(place):
    acep("queries", "add", "desk", "pair.acep")
    (place / "bad.acep").write_text(LOW + ";\nPATTERN SEQ(Stock a WERE")
    done = acep("queries", "add", "desk", "bad.acep", code=3)
    assert "bad.acep: ACEP-Q001: unexpected `WERE`" in done.stderr
    assert "(line 2, column 21)\n  PATTERN SEQ(Stock a WERE\n                      ^^^^" in done.stderr
    assert listed() == [(1, "up", 1), (1, "high", 1)]


def test_an_id_that_is_there_is_refused_or_replaced(place):
    acep("queries", "add", "desk", "low.acep", "pair.acep")
    done = acep("queries", "add", "desk", "low.acep", code=2)
    assert "ACEP-U060" in done.stderr
    assert "acep queries add desk low.acep --replace" in done.stderr
    acep("queries", "add", "desk", "low.acep", "--replace")
    assert listed() == [(2, "up", 1), (2, "high", 1), (2, "low", 2)]


def test_a_publisher_goes_with_its_readers_only(place):
    acep("queries", "add", "desk", "pair.acep")
    done = acep("queries", "remove", "desk", "up", code=2)
    assert "ACEP-U063" in done.stderr
    assert "acep queries remove desk up high" in done.stderr
    acep("queries", "remove", "desk", "up", "high")
    assert listed() == []


def test_a_template_is_a_query_for_each_row(place):
    (place / "least.acep").write_text("-- weight: much\nPATTERN Stock a WHERE a.price >= :least WITHIN 5")
    (place / "least.csv").write_text("least,much\n3,1\n4,2.5\n")
    acep("queries", "add", "desk", "least.acep")
    assert listed() == [(1, "least[0]", 1), (1, "least[1]", 1)]
    texts = [one.text for one in read_version(place / "desk").queries]
    assert [" ".join(text.split()) for text in texts] == [
        "PATTERN Stock a WHERE a.price >= 3 WITHIN 5",
        "-- weight: 2.5 PATTERN Stock a WHERE a.price >= 4 WITHIN 5",
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["add", "desk"], "ACEP-U230: there are no files to add"),
        (["remove", "desk"], "ACEP-U230: there are no ids"),
        (["remove", "desk", "nix"], "ACEP-U231: 'desk' has no versions"),
        (["list", "desk", "more"], "ACEP-U230: list takes one folder"),
        (["list", "desk", "--replace"], "ACEP-U230: --replace goes with acep queries add only"),
        (["add", "desk", "low.acep", "--version", "1"], "ACEP-U230: --version goes with acep queries list only"),
        (["add", "desk", "pair.acep", "--id", "x"], "ACEP-U230: --id x is the id of one query"),
        (["add", "desk", "none.acep"], "ACEP-U010"),
        (["add", "low.acep", "low.acep"], "ACEP-U231: 'low.acep' is a file"),
        (["add", "plain", "low.acep"], "acep queries add plain-versions plain/*.acep"),
    ],
)
def test_what_makes_no_sense_is_refused(place, words, told):
    (place / "plain").mkdir()
    (place / "plain" / "a.acep").write_text(LOW)
    assert told in acep("queries", *words, code=2).stderr
    assert not (place / "desk").exists()


def test_the_files_of_a_plain_folder_are_version_1(place):
    (place / "desk").mkdir()
    (place / "desk" / "pair.acep").write_text(PAIR)
    assert listed() == [(1, "up", 1), (1, "high", 1)]


def test_of_two_writers_at_once_none_loses_a_change(place):
    home = place / "desk"

    def adds(id_):
        return lambda before: [*before.queries, KeptQuery(id_, before.number + 1, LOW)]

    writers = [threading.Thread(target=change, args=(home, adds(f"q{n}"))) for n in range(8)]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    newest = read_version(home)
    assert sorted(one.id for one in newest.queries) == [f"q{n}" for n in range(8)]
    assert sorted(one.since for one in newest.queries) == [*range(1, 9)]
    assert newest.number == 8


def test_a_writer_killed_before_it_pointed_to_its_version_has_written_it(place, monkeypatch):
    home = place / "desk"
    change(home, lambda _: [KeptQuery("a", 1, LOW)])
    with monkeypatch.context() as patched:
        patched.setattr(versions, "_point", lambda _: None)
        change(home, lambda before: [*before.queries, KeptQuery("b", 2, LOW)])
    assert read_version(home).number == 1
    assert change(home, lambda before: [*before.queries, KeptQuery("c", 3, LOW)]).number == 3
    assert [one.id for one in read_version(home).queries] == ["a", "b", "c"]


@pytest.mark.parametrize("damage", ["cut", "changed", "gone", "format", "pointer"])
def test_a_damaged_version_is_refused(place, damage):
    home = place / "desk"
    change(home, lambda _: [KeptQuery("a", 1, LOW)])
    file = home / "v0001" / "queries.json"
    text = file.read_text()
    if damage == "gone":
        file.unlink()
    elif damage == "pointer":
        (home / "LATEST").write_text("newest")
    else:
        changed = {"cut": text[:40], "changed": text.replace("Stock", "Stack"), "format": text.replace("1", "9", 1)}
        file.write_text(changed[damage])
    with pytest.raises(DataError, match="ACEP-D210"):
        read_version(home)
    if damage != "pointer":  # which the next version puts right
        with pytest.raises(DataError, match="ACEP-D210"):
            change(home, lambda before: [*before.queries, KeptQuery("b", 2, LOW)])


def test_a_history_is_no_folder_of_queries(place):
    (place / "desk" / "v0001").mkdir(parents=True)
    (place / "desk" / "LATEST").write_text("v0001\n")
    with pytest.raises(DataError, match="ACEP-D210"):
        read_version(place / "desk")
    with pytest.raises(UsageError, match="ACEP-U231"):
        read_version(place)
