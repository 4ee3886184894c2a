"""``acep why`` and ``Query.why``: what is there, what came instead of what was awaited, and what would have helped."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import DataError, UsageError, compile_query
from acep_approx.events.source import open_source
from acep_approx.why.answer import explain_all
from tests.cases import examples
from tests.command_line import acep
from tests.rich_worlds import RichWorld, rich_worlds
from tests.runs_engine import compiled
from tests.smaller_worlds import holds_for
from tests.streams import rows_of

LOST = "PATTERN SEQ(Packed p, Loaded l, Delivered d) WHERE [key] WITHIN 1 h"


def why(query: str, text: str, around: int, **options: Any) -> Any:
    """The answer for events from a line like ``0 A 5, 1 B``."""
    return compile_query(query).why(rows_of(text), around=around, **options)


@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from("ABC"), st.integers(0, 2), st.integers(0, 5)),
                min_size=3, max_size=40), st.lists(st.integers(0, 40), min_size=1, max_size=3),
       st.sampled_from(["WITHIN 6", "WITHIN 4 events"]))  # fmt: skip
@examples(5)
def test_many_places_at_once_are_answered_as_one_by_one(rows, times, window):
    """Whatever the keys, and wherever the batches end."""
    rows = sorted(rows)
    keys = [row[2] for row in rows]
    times_, types, _, xs = zip(*rows, strict=True)
    events = pa.table({"ts": times_, "type": types, "key": keys, "x": xs})
    query = compile_query(f"PATTERN SEQ(A a, B b, C c) WHERE [key] AND b.x > a.x {window}")
    asked = [(min(max(at, rows[0][0]), rows[-1][0]), keys[at % len(keys)]) for at in times]
    one_by_one = [query.why(events, around=at, key=key) for at, key in asked]
    pieces = pa.Table.from_batches(events.to_batches(max_chunksize=7))
    assert explain_all(query.plan, open_source(pieces), asked, {}) == one_by_one


# --- answers ----------------------------------------------------------------------------------------------------------


def test_a_match_that_is_there():
    answer = why("PATTERN SEQ(A a, B b, C c) WITHIN 9 ERRORS 1", "0 A, 1 B, 4 C", 2)
    assert answer.matched
    assert [(e["variable"], e["row"]) for e in answer.events] == [("a", 0), ("b", 1), ("c", 2)]
    assert answer.headline == "there is a match at 2, with 0 errors"
    answer = why("PATTERN SEQ(A a, B b, C c) WITHIN 9 ERRORS 1", "0 A, 4 C", 2)
    assert (answer.errors, answer.missing) == (1, ("b",))
    assert "with 1 error, without b" in str(answer)


def test_a_condition_that_fails_and_by_how_much():
    answer = why("PATTERN SEQ(A a, B b) WHERE b.x > a.x AND b.x != 3 WITHIN 5", "0 A 5, 1 B 1, 2 B 3, 9 A", 1)
    assert not answer.matched
    assert answer.why == "window closed"
    (one,) = answer.awaited
    assert (one["variable"], one["came"], one["late"]) == ("b", 2, None)
    assert one["failed"] == [
        {"condition": "b.x > a.x", "events": 2, "nearest": "3 > 5", "row": 2},
        {"condition": "b.x != 3", "events": 1, "nearest": "3 != 3", "row": 2},
    ]
    assert answer.helps == ("no condition b.x > a.x",)
    assert "  2 fail b.x > a.x; nearest: 3 > 5 (row 2, 2)" in answer.lines


def test_a_condition_on_each_event_and_on_all():
    query = "PATTERN SEQ(A+ a[], B b) WHERE partition_contiguity { b.x > sum(a[].x) AND a[i].x > a[i-1].x } WITHIN 9"
    answer = why(query, "0 A 1, 1 A 2, 2 B 2", 1)
    failed = {one["variable"]: one["failed"] for one in answer.awaited}
    assert [f["nearest"] for f in failed["b"]] == ["2 > 3"]
    query = "PATTERN SEQ(A+ a[], B b) WHERE b.x > a[i].x WITHIN 9"
    answer = why(query, "0 A 5, 2 B 4", 1)
    assert answer.awaited[1]["failed"][0]["nearest"] == "4 > 5"
    answer = why("PATTERN SEQ(A a, B b) WHERE b.x + a.x < 3 OR b.x IS NULL WITHIN 9", "0 A 5, 2 B 4", 1)
    assert answer.awaited[0]["failed"][0]["nearest"] == "b.x is 4, a.x is 5"


def test_an_event_that_comes_too_late():
    answer = why("PATTERN SEQ(A a, B b) WITHIN 5", "0 A, 8 B, 30 A", 4)
    assert answer.awaited[0]["late"] == {"by": "3", "row": 1}
    assert answer.helps == ("WITHIN 8",)
    answer = why("PATTERN SEQ(A a, B b) WITHIN 2 events", "0 A, 1 C, 2 C, 3 B", 1)
    assert answer.awaited[0]["late"] == {"by": "1 events", "row": 3}
    assert answer.helps == ("WITHIN 3 events",)


def test_an_event_that_is_missing():
    answer = why("PATTERN SEQ(A a, B b, C c) WITHIN 5", "0 A, 3 C, 9 A", 1)
    assert answer.awaited[0]["came"] == 0
    assert answer.helps == ("ERRORS 1 (without b)",)
    answer = why("PATTERN SEQ(A a, B b, C c) WITHIN 5", "0 A, 1 C, 2 B, 9 A", 1)
    assert "  1 came before the last event of the partial match" in answer.lines


def test_a_negation():
    answer = why("PATTERN SEQ(A a, ~(N n), B b) WITHIN 5", "0 A, 1 N, 2 B, 9 A", 1)
    assert answer.awaited[0]["cut"] == {"row": 2, "by": 1, "variable": "n"}
    assert answer.helps == ("no ~(N n)",)
    answer = why("PATTERN SEQ(A a, B b, ~(N n)) WHERE n.x > a.x WITHIN 5", "0 A 1, 1 B, 2 N 1, 3 N 2, 9 A", 1)
    assert answer.why == "refused"
    assert [line for line in answer.lines if "must not" in line] == ["  n came, which must not happen (row 3, 3)"]


def test_a_condition_on_the_whole_match():
    answer = why("PATTERN SEQ(A+ a[]) WHERE sum(a[].x) > 9 WITHIN 5", "0 A 4, 1 A 4, 8 C", 1)
    assert answer.why == "refused"
    assert "  sum(a[].x) > 9 does not hold: 8 > 9" in answer.lines


@pytest.mark.parametrize("strategy", ["partition_contiguity", "strict_contiguity"])
def test_a_neighbour_in_the_way(strategy):
    answer = why(f"PATTERN SEQ(A a, B b) WHERE {strategy} WITHIN 5", "0 A, 1 C, 2 B, 9 A", 1)
    assert answer.why == "broken"
    assert answer.awaited[0]["cut"] == {"row": 2, "by": 1, "variable": None}
    assert answer.helps == ("skip_till_any_match (a row 0, b row 2)",)


def test_skip_till_next_match_took_another_event():
    query = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match { c.x > b.x } WITHIN 5"
    answer = why(query, "0 A, 1 B 9, 2 B 3, 3 C 5, 9 A", 1)
    assert answer.awaited[0]["failed"][0]["nearest"] == "5 > 9"
    assert "skip_till_any_match (a row 0, b row 2, c row 3)" in answer.helps


def test_nothing_began():
    answer = why("PATTERN SEQ(A a, B b) WHERE a.x > 3 WITHIN 5", "0 A 2, 1 B, 9 C", 1)
    assert answer.headline == "no match at 1: no event there could begin one"
    assert answer.awaited[0]["failed"][0]["nearest"] == "2 > 3"
    assert answer.helps == ("no condition a.x > 3",)
    assert "no event came" in why("PATTERN SEQ(A a, B b) WITHIN 5", "0 A, 50 B", 25).headline


def test_a_bare_regular_expression():
    answer = why("a(b|c)d WITHIN 5", "0 a, 1 b, 2 c, 9 a", 1)
    assert [one["variable"] for one in answer.awaited] == ["d"]
    answer = why("xd WITHIN 5 DEFINE x AS x > 3", "0 a 1, 1 b 2, 9 d", 1)
    assert answer.awaited[0]["failed"][0]["nearest"] == "2 > 3"


def test_events_at_one_time_where_they_cannot_follow_one_another():
    answer = why("PATTERN SEQ(A a, B b) WITHIN 5 SIMULTANEOUS", "0 A, 0 B, 9 A", 0)
    assert not answer.matched
    assert [(one["variable"], one["came"]) for one in answer.awaited] == [("b", 0)]
    assert answer.helps == ("no SIMULTANEOUS",)
    text = "PATTERN SEQ(A a, ~(N n), B b) WITHIN 5 SIMULTANEOUS"
    assert why(text, "0 A, 0 N, 2 N, 2 B, 9 A", 1).matched
    assert why(text, "0 A, 0 N, 1 N, 2 B, 9 A", 1).awaited[0]["cut"] == {"row": 3, "by": 2, "variable": "n"}
    contiguous = "PATTERN SEQ(A a, B b) WHERE strict_contiguity WITHIN 5 SIMULTANEOUS"
    answer = why(contiguous, "0 A, 0 Z, 1 Z, 2 B, 9 A", 1)
    assert "the next event (row 2, 1) did not fit, and it cannot be skipped" in answer.lines
    assert answer.awaited[0]["cut"] == {"row": 3, "by": 2, "variable": None}


@pytest.mark.parametrize(
    ("clauses", "said"),
    [
        ("NON OVERLAP", ["NON OVERLAP leaves it out if a match that is reported before overlaps it"]),
        ("MAXIMAL", ["MAXIMAL leaves it out if another match has all its events, and more"]),
        (
            "FIRST MATCH AFTER MATCH SKIP TO LAST b CONSUME EVERY 3",
            [
                "FIRST MATCH leaves it out if a match that is reported before begins with the same event",
                (
                    "AFTER MATCH SKIP TO LAST b leaves it out "
                    "if it starts too early behind the match that is reported before it"
                ),
                "CONSUME leaves it out if a match that is reported before has one of its events",
                "EVERY leaves it out if it ends too soon behind the match that is reported before it",
            ],
        ),
        ("", []),
    ],
)
def test_clauses_that_may_leave_it_out_are_said(clauses, said):
    assert list(why(f"PATTERN SEQ(A a, B b) WITHIN 5 {clauses}", "0 A, 1 B", 1).lines) == said


def test_too_many_partial_matches():
    text = ", ".join(f"{i} A {i % 7}" for i in range(60))
    answer = why("PATTERN SEQ(A+ a[], B b) WHERE a[i].x != b.x AND a[i].x != a[1].x + 9 WITHIN 90", text, 30)
    assert answer.headline == "no match at 30; too many partial matches to look through"


def test_keys_and_times():
    rows = [{"ts": datetime(2024, 5, 1, 8, i, tzinfo=UTC), "u": i % 2, "v": "w", "type": "AABB"[i]} for i in range(4)]
    query = compile_query("PATTERN SEQ(A a, B b) WHERE [u] AND [v] WITHIN 90 s")
    for key in (["u=1", "v=w"], {"u": 1, "v": "w"}):
        answer = query.why(rows, key=key, around="2024-05-01T08:02:00Z")
        assert answer.key == {"u": 1, "v": "w"}
        assert answer.awaited[0]["late"] == {"by": "30 s", "row": 3}
        assert answer.helps == ("WITHIN 2 min",)
        assert query.why(rows, key=key, around=rows[2]["ts"]) == answer


# --- what cannot be asked ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"around": 1}, "ACEP-U111"),
        ({"around": 1, "key": ["x=1", "u"]}, "ACEP-U111"),
        ({"around": 1, "key": {"k": "u"}}, "ACEP-U111"),
        ({"around": 1, "key": "nobody"}, "ACEP-D050"),
        ({"around": 99, "key": "u"}, "ACEP-D051"),
        ({"around": "soon", "key": "u"}, "ACEP-U112"),
        ({"around": None, "key": "nobody"}, "ACEP-D050"),
        ({"around": None, "key": ["x=1", "u"]}, "ACEP-U111"),
    ],
)
def test_what_cannot_be_asked(options, code):
    rows = [{"ts": i, "key": "u", "type": "A"} for i in range(3)]
    with pytest.raises((UsageError, DataError), match=code):
        compile_query("PATTERN SEQ(A a, B b) WHERE [key] WITHIN 5").why(rows, **options)


def test_a_key_of_a_query_without_and_of_another_type():
    with pytest.raises(UsageError, match="leave the key out"):
        why("PATTERN SEQ(A a, B b) WITHIN 5", "0 A", 0, key="u")
    with pytest.raises(UsageError, match="cannot be a value of x, which is int64"):
        why("PATTERN SEQ(A a, B b) WHERE [x] WITHIN 5", "0 A 1", 0, key="u")


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_the_command_shows_it():
    shown = acep("why", LOST, "events.csv", "--key", "box 1", "--around", "2024-05-01T08:06:00Z").stdout
    assert shown.startswith("no match of box 1 at 2024-05-01T08:06:00Z; the furthest partial match has 2 events\n")
    assert "│ l        │ 2   │ 2024-05-01T08:06:00Z │ Loaded │" in shown
    assert "  one that fits came too late, by 30 min (row 3, 2024-05-01T09:30:00Z)\n" in shown
    assert shown.endswith("it would match with\n  WITHIN 90 min\n  ERRORS 1 (without d)\n")


@pytest.mark.usefixtures("folder")
def test_the_command_gives_data_and_takes_options():
    around = ("--key", "key=box 1", "--around", "2024-05-01T08:06:00Z", "--format", "json")
    found = json.loads(acep("why", LOST, "events.csv", *around, "--within", "2 h").stdout)
    assert found["matched"]
    assert [event["row"] for event in found["events"]] == [0, 2, 3]
    found = json.loads(acep("why", LOST, "events.csv", *around, "-k", "1").stdout)
    assert (found["matched"], found["missing"]) == (True, ["d"])


@pytest.mark.usefixtures("folder")
def test_the_command_refuses():
    result = acep("why", LOST, "events.csv", "--key", "box 7", "--around", "2024-05-01T08:06:00Z", code=4)
    assert "did you mean box" in result.stderr
    assert "ACEP-U112" in acep("why", LOST, "events.csv", "--key", "box 1", "--around", "soon", code=2).stderr


# --- by brute force ---------------------------------------------------------------------------------------------------


def test_of_several_events_at_the_time_the_last_one_counts_for_what_comes_after() -> None:
    """The window of a match that the last of them begins reaches further than that of the first."""
    rows = [{"ts": 1, "type": "B"}, {"ts": 1, "type": "A"}, {"ts": 1, "type": "B"}, {"ts": 5, "type": "A"}]
    query = compile_query("PATTERN SEQ(B b, ~(ANY n)) WHERE skip_till_next_match WITHIN 1 events")
    assert not query.why(rows, around="1").matched


@examples(300, shrink=False)
@given(rich_worlds(), st.integers(0, 7))
def test_a_match_is_there_where_brute_force_finds_one(world: RichWorld, which: int) -> None:
    """And every question gets an answer."""

    def check(world: RichWorld) -> None:
        query = compiled(world)
        rows, names = world.rows, [e.name for e in world.query.equivalences]
        if query is None or not rows:
            return
        row = rows[which % len(rows)]
        key = {name: row[name] for name in names}
        if any(value is None or (isinstance(value, float) and math.isnan(value)) for value in key.values()):
            return
        covering = [
            bound
            for bound in world.expected()
            if rows[bound[0][0]]["ts"] <= row["ts"] <= rows[bound[-1][0]]["ts"]
            and all(rows[bound[0][0]][name] == value for name, value in key.items())
        ]
        answer = query.why(world.table(), around=row["ts"], key=key if names else None)
        assert answer.matched == bool(covering)
        assert answer.text()

    holds_for(world, check)
