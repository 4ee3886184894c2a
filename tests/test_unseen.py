"""A type that never occurs is told of: once per query and input, and only where a whole input was matched."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from acep_approx import UnseenTypeWarning, compile_query
from acep_approx.automaton import letters
from acep_approx.cli.main import app

EVENTS = [{"ts": t, "type": ["Packed", "Delivered", "Lost"][t % 3], "x": t} for t in range(9)]


def warned(query: str, events: Any, output: str = "to_arrow", budget: str | None = None) -> list[str]:
    """The warnings of a query on a whole input."""
    compiled = compile_query(query)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        matches = compiled.match(events) if budget is None else compiled.match_within(events, budget)
        getattr(matches, output)()
    assert {one.category for one in caught} <= {UnseenTypeWarning}
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("output", ["to_arrow", "points", "counts", "partial", "compressed", "bundles", "__len__"])
@pytest.mark.parametrize("where", ["", "WHERE d.x > p.x"])
def test_a_type_that_never_occurs_is_told_of(output: str, where: str) -> None:
    expected = (
        "no event has the type 'Delivrd' (did you mean 'Delivered'?); types seen: 'Delivered', 'Lost', 'Packed'"
    )
    assert warned(f"PATTERN SEQ(Packed p, Delivrd d) {where} WITHIN 5", EVENTS, output) == [expected]
    assert warned(f"PATTERN SEQ(Packed p, Delivered d) {where} WITHIN 5", EVENTS, output) == []


def test_it_is_told_inside_a_budget() -> None:
    query = "PATTERN SEQ(Packed p, Delivrd d) WHERE d.x > p.x WITHIN 5"
    assert len(warned(query, EVENTS, budget="10 runs")) == 1


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("PATTERN SEQ(Packed p, Sold d) WITHIN 5", "'Sold';"),
        ("PATTERN SEQ(PACKED p, Sold d) WITHIN 5", "'PACKED' (did you mean 'Packed'?), 'Sold';"),
        ("PATTERN SEQ(Packed p, Sold? s) WITHIN 5", "'Sold';"),
        ("pb WITHIN 5", "'p', 'b';"),
        # proposed is only what the query does not name
        ("PATTERN SEQ(Packed p, Pack q) WITHIN 5", "'Pack';"),
        # that a negated type does not occur is as it should be, unless it is misspelled
        ("PATTERN SEQ(Packed p, ~(Sold n), Delivered d) WITHIN 5", None),
        ("PATTERN SEQ(Packed p, ~(Lots n), Delivered d) WITHIN 5", None),
        ("PATTERN SEQ(Packed p, ~(lost n), Delivered d) WITHIN 5", "'lost' (did you mean 'Lost'?);"),
        ("PATTERN SEQ(Packed p, ~(Sold n), Sold s) WITHIN 5", "'Sold';"),
        ("PATTERN SEQ(ANY a, ANY b) WITHIN 5", None),
        ("ab DEFINE a AS x > 3, b AS x > 4 WITHIN 5", None),
    ],
)
def test_which_types_are_told_of(query: str, told: str | None) -> None:
    expected = [] if told is None else [f"no event has the type {told} types seen: 'Delivered', 'Lost', 'Packed'"]
    assert warned(query, EVENTS) == expected


def test_an_empty_input_does_not_warn() -> None:
    query = "PATTERN SEQ(Packed p, Delivrd d) WITHIN 5"
    assert warned(query, pa.table({"ts": pa.array([], pa.int64()), "type": pa.array([], pa.string())})) == []
    assert warned(query, []) == []


def test_events_without_type() -> None:
    events = pa.table({"ts": [1, 2], "type": pa.array([None, None], pa.string())})
    assert warned("PATTERN A a WITHIN 5", events) == ["no event has the type 'A'; types seen: none"]


def test_words_of_a_dictionary_that_no_event_has_are_not_seen() -> None:
    types = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1]), pa.array(["A", "B", "C"]))
    (text,) = warned("PATTERN SEQ(A a, C c) WITHIN 5", pa.table({"ts": [1, 2, 3], "type": types}))
    assert text == "no event has the type 'C'; types seen: 'A', 'B'"


def test_many_types_are_neither_kept_nor_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "MOST_SEEN", 20)
    events = [{"ts": t, "type": f"type {t}"} for t in range(400_000)]
    (text,) = warned("PATTERN SEQ('type 399999' a, Delivrd d) WITHIN 5", events)
    assert "'Delivrd'; types seen: 'type 0', " in text
    assert "more" in text
    assert "399999" not in text.partition(";")[0]


def test_told_once_and_only_at_the_end() -> None:
    query = compile_query("PATTERN SEQ(Packed p, Delivrd d) WITHIN 5")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnseenTypeWarning)
        matcher = query.matcher()
        matcher.push(EVENTS)  # more events may come
        matcher.finish()
        compile_query("PATTERN SEQ(Packed p) WITHIN 5").match(EVENTS, limit=1).to_arrow()  # cut: not the whole input
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        matches = query.match(EVENTS)
        matches.points()
        matches.to_arrow()
    assert len(caught) == 1


@pytest.mark.parametrize(
    "options", [(), ("--quiet",), ("--output", "count"), ("--output", "points", "-q"), ("--budget", "10 runs")]
)
def test_the_command_line_warns_on_stderr(tmp_path: Path, options: tuple[str, ...]) -> None:
    events = tmp_path / "events.csv"
    events.write_text("ts,type,x\n1,Packed,3\n2,Delivered,4\n")
    query = "PATTERN SEQ(Packed p, Delivrd d) WHERE d.x > p.x WITHIN 5"
    done = CliRunner().invoke(app, ["run", query, str(events), *options])
    assert done.exit_code == 0
    told = "warning no event has the type 'Delivrd' (did you mean 'Delivered'?); types seen: 'Delivered', 'Packed'\n"
    assert done.stderr.count(told) == 1
    assert "warning" not in done.stdout


def test_each_type_is_told_of_once_for_a_query() -> None:
    """However many groups of a frame it is asked of."""
    query = compile_query("PATTERN SEQ(Packed p, Delivrd d, Sold s) WITHIN 5")
    sold = [{"ts": 20, "type": "Sold", "x": 1}]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for first in range(5):
            query.match([*EVENTS[first:], *sold]).to_arrow()
        told = [str(one.message).partition(";")[0] for one in caught]
        assert told == ["no event has the type 'Delivrd' (did you mean 'Delivered'?)"]
        query.match(EVENTS).to_arrow()
        assert str(caught[-1].message).startswith("no event has the type 'Sold';")
        assert len(warned(str(query), EVENTS)) == 1, "another one, if it is written alike"


def test_check_looks_at_the_types(tmp_path: Path) -> None:
    events = tmp_path / "events.csv"
    events.write_text("ts,type\n1,Packed\n2,Delivered\n")
    wrong = CliRunner().invoke(app, ["check", "PATTERN SEQ(Packed p, Delivrd d) WITHIN 5", "--input", str(events)])
    right = CliRunner().invoke(app, ["check", "PATTERN SEQ(Packed p, Delivered d) WITHIN 5", "--input", str(events)])
    assert (wrong.exit_code, right.exit_code) == (0, 0)
    assert "did you mean 'Delivered'?" in wrong.stderr
    assert right.stderr == ""
