"""Streams long enough for runs to leave the window from large pools: merging and sweeps must not change the results."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from acep_approx import Matches, compile_query

MERGES = ("equal,pareto,chain", "equal", "chain", "pareto")
QUERIES = (
    "PATTERN SEQ(A a, B b, C c) WHERE c.x > a.x WITHIN 150",
    "PATTERN SEQ(A a, A b, B c) WHERE a.x <> b.x AND b.y < c.y WITHIN 150 ERRORS 1",
    "PATTERN SEQ(A a, B b, C c) WHERE b.x = a.x AND c.y = b.y WITHIN 200",
    "PATTERN SEQ(A a, B b, C c) WHERE [g] AND b.x > a.x AND c.x > b.x WITHIN 400",
    "PATTERN SEQ(A a, ~(B n), C c) WHERE c.x > a.x AND a.y = c.y WITHIN 120",
    "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { [g] AND a[i].x > min(a[..i-1].x) } WITHIN 300 events",
    "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match { b.x > a.x AND c.y > a.y } WITHIN 200 ERRORS 1",
    "PATTERN SEQ(A a, ANY b, ANY c) WHERE c.x >= a.x AND c.y = 1 AND b.y = 2 WITHIN 90 events",
)


def stream(seed: int, events: int) -> pa.Table:
    """Random events of three types, with few values."""
    dice = Random(seed)
    rows = [
        {"ts": i, "type": dice.choice("ABC"), "x": dice.randrange(40), "y": dice.randrange(5), "g": dice.choice("uvw")}
        for i in range(events)
    ]
    return pa.Table.from_pylist(rows)


def listed(query: str, events: pa.Table, merge: str) -> list[str]:
    """All matches, as texts in order."""
    tables = compile_query(query, engine="runs").match(events, merge=merge).tables()
    return sorted(repr(row) for table in tables for row in table.to_pylist())


@pytest.mark.parametrize("query", QUERIES)
def test_merging_changes_nothing_on_long_streams(query: str) -> None:
    """Lists and points are the same with every merging as with none, in the same order."""
    compiled, events = compile_query(query, engine="runs"), stream(1, 2500)
    expected, points = (get(compiled.match(events, merge="none")) for get in (Matches.to_arrow, Matches.points))
    assert len(expected) > 0
    for merge in MERGES:
        assert compiled.match(events, merge=merge).to_arrow().equals(expected), merge
        assert compiled.match(events, merge=merge).points().equals(points), merge


def test_no_run_joins_one_that_has_left_the_window() -> None:
    """Values come again just after the run that had them is too old, and before it is swept out."""
    dice = Random(3)
    rows = [{"ts": i, "type": "AC"[i % 2], "x": i // 2 % 52 if i % 2 == 0 else dice.randrange(52)} for i in range(2000)]
    events, query = pa.Table.from_pylist(rows), "PATTERN SEQ(A a, C c) WHERE c.x > a.x WITHIN 100"
    assert listed(query, events, "equal") == listed(query, events, "none")


def test_cells_and_runs_agree_on_long_streams() -> None:
    """Without conditions across events both engines can answer."""
    events, query = stream(2, 4000), "PATTERN SEQ(A a, B b, C c) WHERE [g] AND a.y = 1 WITHIN 60 ERRORS 1"
    cells = compile_query(query, engine="cells").match(events).to_arrow().to_pylist()
    assert listed(query, events, "equal") == sorted(map(repr, cells))


@pytest.mark.parametrize("key", ["", "[g] AND "])
def test_runs_stay_in_the_index_while_another_pool_grows(key: str) -> None:
    """A pool was indexed anew only up to where it ended before its own last event; what this had brought was lost."""
    first = [("A", 1), ("B", 1)]
    rows = [("A", x) for x in range(2, 300)]
    events = pa.Table.from_pylist(
        [{"ts": i, "type": t, "x": x, "g": "u"} for i, (t, x) in enumerate([*first, *rows, ("C", 1)])]
    )
    query = compile_query(f"PATTERN SEQ(A a, B b, C c) WHERE {key}b.x = a.x AND c.x = b.x WITHIN 400")
    assert [(m["a"], m["b"], m["c"]) for m in query.match(events).to_arrow().to_pylist()] == [(0, 1, 300)]


def test_an_index_that_finds_runs_is_kept_while_merging_rests() -> None:
    """With ``merge="equal"`` alone an index found runs, too, and was let go of where merging was not worth it."""
    rows = [{"ts": i, "type": "A", "x": i} for i in range(5000)] + [{"ts": 5000, "type": "C", "x": 4990}]
    query = compile_query("PATTERN SEQ(A a, C c) WHERE c.x = a.x WITHIN 100000")
    for merge in ("none", "equal", "equal,chain"):
        assert query.match(pa.Table.from_pylist(rows), merge=merge).to_arrow()["a"].to_pylist() == [4990], merge


def events_of(text: str) -> pa.Table:
    """Events like ``60 A 2 1``: tick, type, x and y."""
    rows = (event.split() for event in text.split(","))
    return pa.Table.from_pylist([{"ts": int(t), "type": kind, "x": int(x), "y": int(y)} for t, kind, x, y in rows])


def test_a_front_keeps_the_runs_behind_its_head() -> None:
    """Runs too old were taken out in front of the head, which then stood behind live ones: match points were lost."""
    events = events_of(
        "0 A 56 3937, 26 A 43 1, 29 A 56 247220, 30 A 44 3576, 38 A 29 3470, 38 A 71 1, 167 A 5 247220, 232 A 64 3282, "
        "233 A 36 3470, 262 A 89 355599, 374 A 32 1, 377 B 71 3464, 394 C 27 3676, 409 D 91 3282"
    )
    matches = compile_query(
        "PATTERN SEQ(A a, A b, B c, C d, D e) "
        "WHERE a.y <> b.y AND c.y <> a.y AND d.x > a.x AND e.x > b.x AND e.y = b.y WITHIN 300"
    ).match(events)
    assert matches.to_arrow()["e"].to_pylist() == [13]
    assert matches.points()["row"].to_pylist() == [13]


def test_a_front_knows_its_oldest_run() -> None:
    """The first child of the event at 111 is older than all runs there were; the second takes their place."""
    text = "PATTERN SEQ(A a, B b, C c) WHERE b.y <> a.y AND c.x > a.x AND c.x > b.x WITHIN 60"
    matches = compile_query(text).match(events_of("60 A 2 1, 100 A 5 2, 110 B 9 1, 111 B 3 3, 125 C 4 0"))
    assert len(matches) == 0
    assert matches.points().num_rows == 0
