"""Which matches are listed, beyond random worlds: ties in time, automata, keys that go, times, wrong variants."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from acep_approx import Afa, QueryError, QuerySet, compile_query, compile_rules
from acep_approx.matching import stream_side
from acep_approx.matching.outputs.completed import Finder
from acep_approx.matching.outputs.selection import ListedBefore, MarkedEvents
from acep_approx.query.parser import parse
from acep_approx.query.syntax import Selection
from tests.cases import cases
from tests.revised_mutants import Change, changed
from tests.rich_worlds import COLUMNS, rich_world, world_of
from tests.runs_engine import MERGES, chooses_as_brute_force
from tests.smaller_worlds import holds_for
from tests.tied_worlds import tied_world


def test_maximal_with_simultaneous() -> None:
    """What is contained has nothing to do with the order of events at one time."""
    for seed in range(cases(300, 30)):
        tied = tied_world(Random(seed))
        world = world_of(replace(tied.query, selection=Selection(maximal=True)), tied.rows)
        holds_for(world, lambda world, seed=seed: chooses_as_brute_force(world, MERGES[seed % 3], Random(seed)))


# --- automata ---------------------------------------------------------------------------------------------------------


def test_maximal_matches_of_an_automaton() -> None:
    """Those of all its matches that no other one contains; events without a variable play no role."""
    shown = Afa({"n": 0}).arc("q", "r", "A", "a").arc("r", "r", "B", "b", then={"n": "n + 1"}).final("r")
    hidden = Afa().arc("q", "r", "A", "a").arc("r", "r", "X").arc("r", "s", "B", "b").arc("s", "s", "B", "b").final("s")
    for afa in (shown, hidden):
        for seed in range(20):
            dice = Random(seed)
            rows = [{"ts": i, "type": dice.choice("AABBX")} for i in range(8)]
            every, found = (events_of(query, rows) for query in (afa.within(5), afa.within(5).maximal()))
            assert set(found) == {one for one in every if not any(one < other for other in every)}


def events_of(query: Any, rows: list[dict[str, Any]]) -> list[frozenset[int]]:
    """The sets of events of the matches of a query with the variables ``a`` and ``b[]``."""
    table = compile_query(query).match(rows).to_arrow()
    return [frozenset([row["a"], *(row["b"] or ())]) for row in table.to_pylist()]


# --- time and keys ----------------------------------------------------------------------------------------------------


def test_every_is_a_length_of_time() -> None:
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    rows = [{"ts": begin + timedelta(minutes=10 * i), "type": "AB"[i % 2]} for i in range(12)]
    for window in ("15 min", "2 events"):
        listed = compile_query(f"PATTERN SEQ(A a, B b) WITHIN {window} EVERY 1 h").match(rows).to_arrow()
        assert listed.column("end").to_pylist() == [begin + timedelta(minutes=minutes) for minutes in (10, 70)]


@pytest.mark.parametrize(
    ("every", "code"), [("5", "ACEP-Q907"), ("1 h", "ACEP-Q908"), ("300000000 d", "ACEP-Q909")]
)
def test_a_length_that_does_not_go_with_the_times(every: str, code: str) -> None:
    text = f"PATTERN A a WITHIN 3 events EVERY {every}"
    tick = 1 if code == "ACEP-Q908" else datetime(2024, 1, 1, tzinfo=UTC)
    with pytest.raises(QueryError, match=code) as caught:
        compile_query(text).match([{"ts": tick, "type": "A"}]).to_arrow()
    assert text[caught.value.start : caught.value.end] == every


def stream(dice: Random, events: int) -> list[dict[str, Any]]:
    """Some keys that come back, and others that do not."""
    tick, rows = 0, []
    for i in range(events):
        tick += dice.choice((0, 1, 2))
        key = dice.choice(["p", "q", "r", f"new {i // 10}"])
        rows.append({"ts": tick, "type": dice.choice("AB"), "g": key})
    return rows


def test_every_holds_for_keys_that_were_silent_for_longer_than_the_window() -> None:
    """Their slots are kept as long as it matters, and no longer."""
    query, rows = compile_query("PATTERN SEQ(A a, ANY b) WHERE [g] WITHIN 3 EVERY 40"), stream(Random(1), 400)
    whole = query.match(rows).to_arrow().to_pylist()
    with patch.object(stream_side, "SWEEP", 2):
        matcher = query.matcher()
        found = [row for event in rows for row in matcher.push([event]).to_pylist()]
    assert found + matcher.finish().to_pylist() == whole
    assert matcher.pipeline.key_slots.slots < 20 < len({row["g"] for row in rows})


def test_events_of_listed_matches_are_forgotten() -> None:
    query = compile_query("PATTERN SEQ(A a, B b) WHERE [g] WITHIN 5 FIRST MATCH CONSUME")
    matcher = query.matcher()
    matcher.push(stream(Random(1), 1000))
    matcher.push([{"ts": 3000, "type": "A", "g": "p"}])
    before = matcher.pipeline.results.finder.before
    assert not len(before.used.row)
    assert not len(before.begins.row)


def test_maximal_in_a_rule_is_refused() -> None:
    """The other clauses are run by the random worlds of rules."""
    text = "TABLE t (k text, n int, KEY (k)) RULE r ON PATTERN A a WITHIN 5 MAXIMAL DO UPDATE t SET n = 1 AT (a.k) END"
    with pytest.raises(QueryError, match="ACEP-Q900") as caught:
        compile_rules(text)
    assert text[caught.value.start : caught.value.end] == "MAXIMAL"


# --- wrong variants ---------------------------------------------------------------------------------------------------

MUTANTS: dict[str, tuple[Change, ...]] = {
    "all matches wait": ((Finder, "found", "self._can_be_followed(events, waiting.take(left))", "True"),),
    "no match waits": ((Finder, "found", "| self._can_be_followed(events, waiting.take(left))", ""),),
    "new matches contain only one another": (
        (Finder, "found", "new = np.arange(len(self.waiting), len(waiting))", "new = np.arange(0)"),
    ),
    "what a negation excludes contains others": (
        (Finder, "_closing", "closing.take(np.flatnonzero(~self._ends_badly(closing)))", "closing"),
    ),
    "maximal matches that wait for a negation are not compared": (
        (Finder, "_closing", "if self.selection.maximal and len(closing):", "if False:"),
    ),
    "a match is listed once for each way to read it": (
        (Finder, "_freed", "np.flatnonzero(~decided)", "np.flatnonzero(~at_once)"),
    ),
    "points do not wait for the other matches of their event": (
        (Finder, "closed", "if not self.by_event or", "if True or"),
    ),
    "events of listed matches are forgotten while they count": (
        (MarkedEvents, "forget", "self.keep(self.tick >= (", "self.keep(self.tick >= 3 + ("),
    ),
    "skip to the first is skip to the last": ((ListedBefore, "_next_rows", 'if skip.to == "first":', "if False:"),),
    "skip to a variable that is not bound goes nowhere": (
        (ListedBefore, "_next_rows", "row[found.offset[:-1]] + 1", "row[found.offset[:-1]] * 0"),
    ),
    "every counts events": ((ListedBefore, "chosen", "if is_count else found.tick", "if False else found.tick"),),
}


SHOWN_BY: dict[str, int | tuple[str, str]] = {
    "all matches wait": 7,
    "no match waits": 7,
    "new matches contain only one another": 7,
    "what a negation excludes contains others": 141,
    "maximal matches that wait for a negation are not compared": 23,
    "a match is listed once for each way to read it": ("PATTERN (A a[], ~(N n)){2} WITHIN 3 ERRORS 1 EVERY 0", "AA"),
    "points do not wait for the other matches of their event": ("PATTERN SEQ(A a, B b, C? c) WITHIN 5 MAXIMAL", "AAB"),
    "events of listed matches are forgotten while they count": 30,
    "skip to the first is skip to the last": ("PATTERN A{3} a[] WITHIN 9 AFTER MATCH SKIP TO FIRST a", "AAAA"),
    "skip to a variable that is not bound goes nowhere": 39,
    "every counts events": 157,
}
"""A random world, or a query and the types of its events."""


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_noticed(mutant: str) -> None:
    shown = SHOWN_BY[mutant]
    if isinstance(shown, int):
        seed, world = shown, rich_world(Random(shown), chooses=True)
    else:
        rows = [{**dict.fromkeys(COLUMNS), "ts": number, "type": kind} for number, kind in enumerate(shown[1])]
        seed, world = 0, world_of(parse(shown[0]), rows)
    chooses_as_brute_force(world, MERGES[seed % len(MERGES)], Random(seed))
    with changed(MUTANTS[mutant]), pytest.raises(Exception):  # noqa: B017, PT011  a wrong variant may also crash
        chooses_as_brute_force(world, MERGES[seed % len(MERGES)], Random(seed))


# --- budgets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clauses", ["MAXIMAL", "MAXIMAL CONSUME", "FIRST MATCH", "EVERY 4"])
def test_within_a_budget_a_match_is_one_of_the_query_without_the_clauses(clauses: str) -> None:
    dice = Random(2)
    rows = [{"ts": i, "type": dice.choice("ABC"), "x": dice.randrange(9)} for i in range(400)]
    text = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 20 ERRORS 1"
    every = set(sets_of(compile_query(text).match(rows)))
    query = compile_query(f"{text} {clauses}")
    for budget in ("3 steps/event", "30 steps/event"):
        found = sets_of(query.match_within(rows, budget, policy="random"))
        assert found
        assert set(found) <= every
        assert "MAXIMAL" not in clauses or not any(one < other for one in found for other in found)


def sets_of(matches: Any) -> list[frozenset[int]]:
    """The sets of events of the matches of a query with the variables ``a``, ``b`` and ``c``."""
    rows = matches.to_arrow().to_pylist()
    return [frozenset({row["a"], row["b"], row["c"]} - {None}) for row in rows]


def test_results_that_wait_are_not_published() -> None:
    desk = QuerySet()
    with pytest.raises(QueryError, match=r"ACEP-Q930: it cannot PUBLISH P: MAXIMAL makes matches wait"):
        desk.add("PATTERN SEQ(A a, B b) WITHIN 5 ERRORS 1 MAXIMAL PUBLISH P")
