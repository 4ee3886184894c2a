"""Windows of negations and of parts: random worlds against brute force, when results come, and the language."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import Query, compile_query, compile_rules
from acep_approx.errors import QueryError
from acep_approx.query.builder import absent, event, seq
from acep_approx.query.parser import parse
from acep_approx.query.printer import to_text
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Absent, Window
from tests.absence_worlds import own_world
from tests.cases import cases
from tests.rich_worlds import Dice, stream
from tests.runs_engine import MERGES, agrees, agrees_in_any_split, chooses_as_brute_force


@pytest.mark.parametrize("part", range(4))
def test_negations_as_by_brute_force(part: int) -> None:
    """Listed in order, counted and detected; in any split, over restarts."""
    tried = 0
    for seed in range(part, cases(12_000, 277), 4):
        world = own_world(seed)
        if world is not None:
            agrees(world)
            agrees_in_any_split(world, MERGES[seed % len(MERGES)], Random(seed))
            tried += 1
    assert tried > 2


def test_negations_beside_clauses_that_choose() -> None:
    """They go by the order in which matches are known; MAXIMAL waits for the window of the query."""
    tried = 0
    for seed in range(cases(4000, 158)):
        world = own_world(seed, chooses=True)
        if world is not None:
            chooses_as_brute_force(world, MERGES[seed % len(MERGES)], Random(seed))
            tried += 1
    assert tried > 3


# --- parts ------------------------------------------------------------------------------------------------------------

PARTS = (
    ("SEQ(A a, (B b, C c) WITHIN {d}, A e)", "bc"),
    ("SEQ((A a, B? b, C c) WITHIN {d}, A e)", "abc"),
    ("SEQ((A a, (B b | C c)) WITHIN {d}, A+ e[])", "abc"),
    ("SEQ((A+ a[]) WITHIN {d}, B b)", "a"),
    ("SEQ((A+ a[], B+ b[]) WITHIN {d}, C c)", "ab"),
    ("SEQ(A e, (A a, ~(C n), B b)+ WITHIN {d})", "ab"),
    ("SEQ(A e, ALL(B b, A+ a[]) WITHIN {d})", "ab"),
    ("SEQ((A a, B b) WITHIN {d}, (A c, B e) WITHIN 1)", "ab"),
)


@pytest.mark.parametrize(("pattern", "names"), PARTS)
@pytest.mark.parametrize("errors", [0, 1])
def test_parts_bind_events_that_lie_close_together(pattern: str, names: str, errors: int) -> None:
    """Of the matches of the query with a part that may last long, those whose events in the part lie so close."""
    found = 0
    for seed in range(cases(200, 28)):
        dice = Random(seed)
        rows = [{"ts": row["ts"], "type": row["type"]} for row in (*stream(Dice(dice)), *stream(Dice(dice)))]
        rows, length = sorted(rows, key=lambda row: row["ts"])[:9], dice.choice((0, 1, 2, 3))
        if not rows:
            continue
        table = pa.Table.from_pylist(rows)
        clauses = f"WITHIN 9 ERRORS {errors}"

        def listed(asked: int, clauses: str = clauses, table: pa.Table = table) -> list[Any]:
            query = compile_query(f"PATTERN {pattern.format(d=asked)} {clauses}")
            return [(match.values, match.errors) for match in query.match(table)]

        def lasts(values: dict[str, Any], rows: Any = rows) -> int:
            bound = [values.get(name) for name in names]
            flat = [row for one in bound if one is not None for row in (one if isinstance(one, list) else [one])]
            ticks = [rows[row]["ts"] for row in flat]
            return max(ticks, default=0) - min(ticks, default=0)

        expected = [one for one in listed(100) if lasts(one[0]) <= length]
        assert sorted(map(str, listed(length))) == sorted(map(str, expected))
        found += len(expected)
    assert found


# --- when results come ------------------------------------------------------------------------------------------------


def pushed(query: Query, *events: tuple[int, str]) -> list[int]:
    """How many matches come with each event."""
    matcher = query.matcher()
    return [matcher.push([{"ts": ts, "type": type_}]).num_rows for ts, type_ in events]


def test_a_match_comes_when_the_window_of_its_negation_has_closed() -> None:
    """Not when that of the query has; the shorter one counts."""
    events = (0, "A"), (3, "X"), (8, "X"), (9, "X"), (101, "X")
    assert pushed(compile_query("PATTERN SEQ(A a, ~(B b) WITHIN 8) WITHIN 100"), *events) == [0, 0, 0, 1, 0]
    assert pushed(compile_query("PATTERN SEQ(A a, ~(B b) WITHIN 800) WITHIN 100"), *events) == [0, 0, 0, 0, 1]
    assert pushed(compile_query("PATTERN SEQ(A a, ~(B b)) WITHIN 100"), *events) == [0, 0, 0, 0, 1]
    assert pushed(compile_query("PATTERN SEQ(A a, ~(B b) WITHIN 8) WITHIN 100 MAXIMAL"), *events) == [0, 0, 0, 0, 1]


def test_a_live_run_knows_when_to_look() -> None:
    """The tick that time must pass for the next match that waits."""
    matcher = compile_query("PATTERN SEQ(A a, ~(B b) WITHIN 8) WITHIN 100").matcher()
    matcher.push([{"ts": 5, "type": "A"}])
    assert matcher.pipeline.waits_until == 14
    assert matcher.pass_time(13).num_rows == 0
    assert matcher.pass_time(14).num_rows == 1


def test_early_results_are_taken_back() -> None:
    """With late events, what stays is what the events in order give."""
    query = compile_query("PATTERN SEQ(A a, ~(B b) WITHIN 2) WITHIN 50")
    for seed in range(cases(100, 15)):
        dice = Random(seed)
        events = [{"ts": dice.randrange(30), "type": dice.choice("AAB"), "id": number} for number in range(12)]
        in_order = sorted(events, key=lambda one: (one["ts"], one["id"]))
        expected = sorted(match.start for match in query.match([{**one} for one in in_order]))
        matcher, left = query.matcher(emit="early", id="id", watermark=40), {}
        for one in [*events, None]:
            found = matcher.finish() if one is None else matcher.push([one])
            for row in found.to_pylist():
                if row["op"] == "+I":
                    left[row["match_id"]] = row["start"]
                else:
                    left.pop(row["match_id"])
        assert sorted(left.values()) == expected


def test_rules_fire_when_the_window_of_the_negation_has_closed() -> None:
    """As of the tick at which it did: what comes later sees it, and what came before did not."""
    rules = compile_rules(
        """
        TABLE late (name text, at int, KEY (name))
        RULE r ON PATTERN SEQ(A a, ~(B b) WITHIN 5) WITHIN 100 FOR EACH MATCH DO
          UPSERT late SET at = a.ts AT (a.name)
        END
        RULE seen ON PATTERN C c WHERE EXISTS store.late[c.name] WITHIN 0
        """
    )
    events = [{"ts": ts, "type": type_, "name": "u"} for ts, type_ in ((1, "A"), (5, "C"), (7, "C"), (9, "X"))]
    for size in (1, 4):
        run = rules.start()
        found = [run.push(events[at : at + size])["seen"].to_pylist() for at in range(0, 4, size)]
        assert [match["end"] for some in found for match in some] == [7]


def test_why_names_only_events_in_the_window_of_the_negation() -> None:
    """Another one after it has nothing to do with it."""
    query = compile_query("PATTERN SEQ(~(B m) WITHIN 1, A a, ~(B b) WITHIN 2, C c, ~(B n) WITHIN 2) WITHIN 20")
    events = [{"ts": ts, "type": type_} for ts, type_ in ((0, "B"), (3, "A"), (5, "B"), (6, "B"), (7, "C"), (30, "B"))]
    answer = str(query.why(events, around=7))
    assert "b came, which must not happen (row 2, 5)" in answer
    assert answer.count("which must not happen") == 1


# --- the language -----------------------------------------------------------------------------------------------------


def test_within_brackets_it_is_the_window_of_the_part() -> None:
    """And outside of them that of the query, whatever stands before."""
    inside = parse("PATTERN SEQ(A a, ~(B b) WITHIN 5 min, C c) WITHIN 1 h")
    (negation,) = (part for part in walk(inside.pattern) if isinstance(part, Absent))
    assert negation.within == Window(5, "min")
    assert parse(to_text(inside)) == inside
    outside = parse("PATTERN A a, ~(B b) WITHIN 5")
    assert outside.window == Window(5, "ticks")
    assert not any(isinstance(part, Absent) and part.within for part in walk(outside.pattern))
    with pytest.raises(QueryError, match="ACEP-Q006"):
        parse("PATTERN A a, ~(B b) WITHIN 5 WITHIN 9")


def test_a_part_is_its_conditions() -> None:
    """A query with one is that with the conditions."""
    query = parse("PATTERN SEQ(A x, (B b, C+ c[]) WITHIN 5 min) WHERE b.v > 1 WITHIN 1 h")
    assert query == parse(to_text(query))
    assert query == parse(
        "PATTERN SEQ(A x, B b, C+ c[]) "
        "WHERE b.v > 1 AND c[i].ts - b.ts <= 5 min AND c[i].ts - c[1].ts <= 5 min WITHIN 1 h"
    )


def test_the_builder() -> None:
    """The same from Python."""
    built = seq(event("A", "a"), absent(event("B", "b"), within=timedelta(minutes=5))).within("1 h").syntax()
    assert to_text(built) == "PATTERN SEQ(A a, ~(B b) WITHIN 5 min)\nWITHIN 1 h"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SEQ(A a, ~(B b) WITHIN 3 events, C c) WITHIN 5", "ACEP-Q089"),
        ("SEQ(A a, ~(B b) WITHIN 3, C c) WITHIN 5 events", "ACEP-Q089"),
        ("SEQ(A a, (B b, C c) WITHIN 3 events) WITHIN 5", "ACEP-Q089"),
        ("SEQ(A a, ((B b, C c) WITHIN 3, D d)+) WITHIN 5", "ACEP-Q090"),
        ("SEQ(A a, ~(B b) WITHIN -1, C c) WITHIN 5", "ACEP-Q045"),
        ("SEQ(A a, ~(B b) WITHIN 3 furlongs, C c) WITHIN 5", "ACEP-Q007"),
        ("SEQ(A a WITHIN 3, C c) WITHIN 5", "ACEP-Q001"),
    ],
)
def test_what_is_refused(text: str, code: str) -> None:
    """With a code."""
    with pytest.raises(QueryError) as caught:
        compile_query(f"PATTERN {text}")
    assert caught.value.code == code
