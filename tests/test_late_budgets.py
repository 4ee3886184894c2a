"""Corrections inside a load budget: after every step what is out is part of the exact answer, and it is paid for.

``late_budgets`` says what is held against what. Variants that are known to be wrong must be noticed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import compile_query
from acep_approx.api.budgeted_revisions import BudgetedRevisedMatcher
from acep_approx.engines.engine import Engine
from acep_approx.engines.runs.price_notes import PriceNotes
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.errors import AcepError
from acep_approx.pages.budget.page import report_html
from acep_approx.revisions import within_budget
from acep_approx.revisions.changelog import Changelog
from acep_approx.revisions.price_log import PriceLog
from acep_approx.revisions.replay import Replay
from acep_approx.revisions.within_budget import ReplayWithinBudget
from acep_approx.shedding.shedder import Shedder
from tests.cases import cases
from tests.hasty import hasty
from tests.late_budgets import Case
from tests.revised_mutants import rewritten
from tests.revised_small import small

pytestmark = pytest.mark.usefixtures("one_reading")

CHUNKS = 8
def changed_line(owner: Any, name: str, old: str, new: str) -> Any:
    """A function with one of its lines changed."""
    ((_, function),) = rewritten(owner, name, old, new)
    return function


REPEAT = "repeat it: tests.late_budgets.Case.of({}, {!r}, learns={}).check()"


def check(seed: int, budget: str | None = None, *, learns: bool = False) -> Counter[str]:
    try:
        return Case.of(seed, budget, learns=learns).check()
    except Exception as error:
        error.add_note(f"{Case.of(seed, budget, learns=learns)}\n{REPEAT.format(seed, budget, learns)}")
        raise


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_what_is_out_is_part_of_the_exact_answer_and_paid_for(chunk: int) -> None:
    """Random queries, streams, disorder, changes, watermarks, splits, restarts and budgets; after every step."""
    seen: Counter[str] = Counter()
    for seed in range(cases(2000, 64))[chunk::CHUNKS]:
        seen += check(seed)
    assert min(seen["found"], seen["missing"]) > 0
    assert seen["restart"] > 0
    assert seen["taken back"] > 0


@pytest.mark.parametrize("chunk", range(CHUNKS // 2))
def test_so_it_is_while_it_learns(chunk: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(cases(1000, 24))[chunk :: CHUNKS // 2]:
        seen += check(seed, learns=True)
    assert min(seen["found"], seen["missing"], seen["rescored"]) > 0


@pytest.mark.parametrize("chunk", range(CHUNKS // 2))
def test_all_of_the_work_is_the_exact_run(chunk: int) -> None:
    """The same rows in the same order, from every step."""
    for seed in range(cases(500, 16))[chunk :: CHUNKS // 2]:
        check(seed, "100%")


# --- a stream with bursts ---------------------------------------------------------------------------------------------

TEXT = "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN 40"
BURST = 60
Row = dict[str, Any]


@cache
def rows_of(seed: int, events: int = 240) -> tuple[Row, ...]:
    """Events in order of time: many at a time, then few, and so on."""
    rng = np.random.default_rng(seed)
    is_burst = (np.arange(events) // BURST) % 2 == 0
    ts = np.cumsum(np.where(is_burst, rng.integers(0, 3, events), rng.integers(1, 9, events))).tolist()
    kinds, x = rng.choice(list("AABC"), events).tolist(), rng.integers(0, 20, events).tolist()
    columns = zip(range(events), ts, kinds, x, strict=True)
    return tuple({"id": number, "ts": at, "type": kind, "x": value, "op": "+I"} for number, at, kind, value in columns)


def started(seed: int = 0, **how: Any) -> Any:
    how = {"budget": "40%", "full_work": 6.0, "policy": "random", "seed": seed} | how
    return compile_query(TEXT, engine="runs").matcher(**{"emit": "early", "id": "id", "op": "op"} | how)


def put_out(net: Counter[Any], table: pa.Table) -> None:
    for row in table.to_pylist():
        net[row["a"], row["b"], row["c"]] += 1 if row["op"] == "+I" else -1


def pushed(matcher: Any, rows: Sequence[Row], size: int = 20) -> Counter[Any]:
    net: Counter[Any] = Counter()
    for first in range(0, len(rows), size):
        put_out(net, matcher.push(list(rows[first : first + size])))
    return net


def shed_the_same(gone: Sequence[int] = (180, 188, 196), **how: Any) -> tuple[int, int]:
    """Events go and come back, with run-steps enough to run all again: how many matches there were; that changed."""
    found = changed = 0
    for seed in range(4):
        matcher, rows = started(seed, **how), rows_of(seed)
        net = pushed(matcher, rows)
        # from here on the budget would keep more
        matcher.shedder.arena.grant(50_000)
        calm = [{"ts": rows[-1]["ts"] + i, "type": "C", "x": -1, "id": 1000 + i, "op": "+I"} for i in range(1, 6)]
        put_out(net, matcher.push(calm))
        before = +net
        assert matcher.record().shed_runs > 50
        for at in gone:
            put_out(net, matcher.push([rows[at] | {"op": "-D"}]))
            put_out(net, matcher.push([rows[at]]))
        found += before.total()
        changed += (before - net).total() + (net - before).total()
    return found, changed


def test_a_replay_sheds_the_same_runs() -> None:
    found, changed = shed_the_same()
    assert found > 200
    assert changed == 0


def learned_the_same() -> tuple[int, int]:
    """The same where runs are scored otherwise from time to time, also while the events that go were there."""
    with hasty():
        return shed_the_same((150, 158, 166, 178), policy=None, learn=True)


def test_a_replay_sheds_the_same_runs_whatever_was_learned_since() -> None:
    found, changed = learned_the_same()
    assert found > 50
    assert changed == 0


def points_counted() -> None:
    """Match points are counted once, when they are first found."""
    matcher, rows = started(budget="100%"), rows_of(1)
    late = [row for row in rows if row["id"] % 5 == 0]
    net = pushed(matcher, [row for row in rows if row["id"] % 5] + late)
    ends = {c for _, _, c in net}
    assert matcher.record().found == len(ends) > 20
    for row in (rows[200], rows[201]):
        put_out(net, matcher.push([row | {"op": "-D"}]))
        put_out(net, matcher.push([row]))
    assert len(ends) <= matcher.record().found <= len(ends) + 2


def test_match_points_are_counted_once() -> None:
    points_counted()


def late_are_granted_for() -> None:
    """Each event is granted for once, however it comes, and none that is taken back or run again."""
    matcher, rows = started(budget="3 steps/event"), rows_of(2)
    pushed(matcher, [*rows[:100:2], *rows[1:100:2]])
    matcher.push([rows[30] | {"op": "-D"}])
    assert matcher.shedder.granted == pytest.approx(100 * 3)
    assert matcher.record().events == 100
    assert matcher.record().work <= matcher.record().allowed


def test_late_events_are_granted_for_once() -> None:
    late_are_granted_for()


@pytest.mark.parametrize("budget", ["100%", "9 runs", "50 steps/event"])
def test_the_first_event_that_is_tested_may_be_late(budget: str) -> None:
    """Nothing was granted for any event before."""
    matcher = started(budget=budget, policy="most-advanced", full_work=1.0)
    matcher.push([{"ts": 9, "type": "N", "x": 1, "id": 0, "op": "+I"}])
    late = [{"ts": ts, "type": kind, "x": ts, "id": ts, "op": "+I"} for ts, kind in enumerate("ABC", 1)]
    assert matcher.push(late).num_rows == 1


def test_a_push_is_one_batch_to_a_budget_of_time() -> None:
    """However many segments it begins, and whatever is run once more."""
    begun: list[Any] = []
    with small(), patch.object(Shedding, "take_back", lambda arena: begun.append(arena)):
        matcher, rows = started(budget="5 ms/batch"), rows_of(1)
        pushed(matcher, [*rows[:60:2], *rows[1:60:2]], 30)
        assert len(matcher.stream.run.tail.segments) > 3
    assert len(begun) == 2


def little_is_lost() -> None:
    """Where the budget does not cover a replay, what was put out stays as far as it is sure to hold."""
    matcher, rows = started(budget="1 steps/event"), rows_of(3)
    net = pushed(matcher, rows)
    held = +net
    assert held.total() > 20
    # an event that no match can bind, and one that some do
    put_out(net, matcher.push([{"ts": rows[200]["ts"], "type": "B", "x": -5, "id": 5000, "op": "+I"}]))
    assert not held - net
    gone = max(Counter(c for _, _, c in held).items(), key=lambda item: item[1])[0]
    put_out(net, matcher.push([rows[gone] | {"op": "-D"}]))
    assert not [match for match in +net if gone in match]
    assert held - net == Counter({match: 1 for match in held if gone in match})


def test_what_is_sure_to_hold_is_not_taken_back() -> None:
    little_is_lost()


def places_run_out() -> None:
    """Where events get other places, what was put out is still known, whatever is found when they are run once more."""
    with small():
        matcher, rows = started(budget="2 steps/event"), rows_of(3)
        net = pushed(matcher, rows)
        held = +net
        late = {"ts": rows[200]["ts"], "type": "B", "x": -5, "op": "+I"}
        for number in range(8):
            put_out(net, matcher.push([late | {"id": 5000 + number}]))
        assert not held - net
        bound = sorted({event for match in held for event in match})
        put_out(net, matcher.push([rows[event] | {"op": "-D"} for event in bound]))
    assert not held & net


def test_what_is_out_is_known_where_places_run_out() -> None:
    moved: list[int] = []
    move = ReplayWithinBudget._move

    def noted(self: ReplayWithinBudget, segment: Any, places: Any) -> None:
        moved.append(len(places))
        move(self, segment, places)

    with patch.object(ReplayWithinBudget, "_move", noted):
        places_run_out()
    assert sum(moved) > 20


def test_the_same_run_sheds_the_same() -> None:
    """Also over restarts, as far as runs go."""
    for seed in range(3):
        rows = [*rows_of(seed)[::3], *rows_of(seed)[1::3], *rows_of(seed)[2::3]]
        assert pushed(started(seed), rows) == pushed(started(seed), rows)


# --- final results ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", ["40%", "2 steps/event", "12 runs"])
def test_final_results_are_those_of_the_events_in_order(budget: str) -> None:
    """The audit is the same, too."""
    for seed in range(3):
        rows = [{name: row[name] for name in ("ts", "type", "x")} for row in rows_of(seed)]
        late = sorted(rows, key=lambda row: row["ts"] + 7 * (row["x"] % 3))
        order = sorted(range(len(late)), key=lambda at: late[at]["ts"])
        how: dict[str, Any] = {"budget": budget, "policy": "random", "seed": seed, "audit": 0.3}
        how |= {"full_work": 6.0} if budget.endswith("%") else {}
        query = compile_query(TEXT, engine="runs")
        revised, plain = query.matcher(watermark=10**6, **how), query.matcher(**how)
        found = pa.concat_tables([revised.push(late), revised.finish()])
        wanted = plain.push([late[at] for at in order])
        plain.finish()
        at = {variable: [order[row] for row in wanted[variable].to_pylist()] for variable in "abc"}
        assert len(found) > 0
        assert {variable: found[variable].to_pylist() for variable in "abc"} == at
        ours, theirs = revised.record(), plain.record()
        for name in ("work", "allowed", "found", "events", "shed", "recall"):
            assert getattr(ours, name) == getattr(theirs, name), name
        within = query.match_within(late, watermark=10**6, **how)
        assert within.to_arrow().select(list("abc")).equals(found.select(list("abc")))
        assert within.record().work == ours.work


@pytest.mark.parametrize("more", [{"watermark": 50}, {"emit": "early"}, {"watermark": 50, "emit": 5}], ids=str)
def test_it_learns_on_its_way(more: dict[str, Any], tmp_path: Path) -> None:
    query = compile_query(TEXT, engine="runs")
    matcher = query.matcher(budget="3 steps/event", learn=True, **more)
    rows = [{name: row[name] for name in ("ts", "type", "x")} for row in rows_of(1, 2000)]
    matcher.push(rows)
    matcher.finish()
    known = matcher.refreshed(query)
    assert known is not None
    assert matcher.record().events == known.events_ == 2000
    known.save(tmp_path / "known")
    within = query.match_within(rows, "3 steps/event", learn=True, history=tmp_path / "known", **more)
    assert within.to_arrow().num_rows > 0
    assert within.refreshed(query).version_ == 1


@pytest.mark.parametrize(
    "more", [{"emit": "early"}, {"watermark": 5, "emit": 3}, {"watermark": 9, "changelog": True}], ids=str
)
def test_a_finite_input_has_a_changelog(more: dict[str, Any], tmp_path: Path) -> None:
    """That of the same rows when they are pushed; its sum is part of the exact answer."""
    query, rows = compile_query(TEXT, engine="runs"), rows_of(2)
    rows = sorted(rows, key=lambda row: row["ts"] + 7 * (row["x"] % 3))
    how: dict[str, Any] = {"seed": 3, "policy": "random"} | more
    for output in ("matches", "points"):
        matcher = query.matcher(budget="2 steps/event", output=output, **how)
        wanted = pa.concat_tables([matcher.push(rows), matcher.finish()])
        out = query.match_within(rows, "2 steps/event", **how)
        assert (out.to_arrow() if output == "matches" else out.points()).equals(wanted)
        assert len(wanted) > 0
        assert out.record().work == matcher.record().work
    out.report(tmp_path / "report.html")
    net: Counter[str] = Counter()
    for row in query.match_within(rows, "100%", **more, full_work=1).to_arrow().to_pylist():
        net[str([row[name] for name in "abc"])] += 1 if row["op"] == "+I" else -1
    remaining = query.match_within(rows, "100%", full_work=1, watermark=more.get("watermark", 10**6)).to_arrow()
    assert +net == Counter(str([row[name] for name in "abc"]) for row in remaining.to_pylist())
    for other in ({"sort": True}, {"limit": 3}, {"log_shed": True}):
        with pytest.raises(AcepError) as caught:
            query.match_within(rows, "3 steps/event", **more | other)
        assert caught.value.code == "ACEP-U055"


# --- what it says -----------------------------------------------------------------------------------------------------


def test_it_says_what_it_did_and_what_it_does_not_know() -> None:
    matcher = started(audit=0.2)
    assert isinstance(matcher, BudgetedRevisedMatcher)
    pushed(matcher, rows_of(1))
    matcher.push([{"ts": 3, "type": "A", "x": 1, "id": 9000, "op": "+I"}])  # nothing is late without a watermark
    record = matcher.record()
    assert record.work <= record.allowed
    assert record.events == 241
    assert record.recall is not None
    assert "taken back" in record.recall.reason
    assert "there is no audit where results may be taken back" in report_html(record)


def test_where_the_cells_answer_nothing_is_shed() -> None:
    easy = compile_query("PATTERN SEQ(A a, B b) WITHIN 30")
    matcher, exact = (easy.matcher(emit="early", **how) for how in ({"budget": "5%"}, {}))
    for row in ({"ts": 3, "type": "A"}, {"ts": 9, "type": "B"}, {"ts": 1, "type": "A"}):
        assert matcher.push([row]).equals(exact.push([row]))
    assert "sheds nothing" in matcher.record().bound
    assert easy.from_state(matcher.state_bytes()).push([]).num_rows == 0


def test_a_state_knows_its_budget() -> None:
    matcher = started(budget="3 steps/event")
    net = pushed(matcher, rows_of(1)[:120])
    again = compile_query(TEXT, engine="runs").from_state(matcher.state_bytes())
    ours, theirs = again.record(), matcher.record()
    for name in ("work", "allowed", "found", "events", "budget", "policy", "seed"):
        assert getattr(ours, name) == getattr(theirs, name), name
    for row in rows_of(1)[120:140]:
        put_out(net, again.push([row]))
    assert all(count >= 0 for count in net.values())


def test_the_last_segment_may_have_lost_all_its_events() -> None:
    """A restart knows where it began: what comes before that is late."""
    check(1188)


# --- variants that are wrong ------------------------------------------------------------------------------------------

RUN_SEGMENT, LOAD = ReplayWithinBudget._run_segment, ReplayWithinBudget.load


def free(self: ReplayWithinBudget, number: int, events: Any) -> list[pa.Table]:
    with self.pipeline.engine.unpaid():
        return RUN_SEGMENT(self, number, events)


def found_anew(self: ReplayWithinBudget, scope: Any) -> None:
    LOAD(self, scope)
    segments, results, waiting = self._saved
    self._saved = [[*one[:3], 0] for one in segments], results.slice(0, 0), waiting.slice(0, 0)


def differs() -> None:
    assert shed_the_same()[1] == 0


def learned_otherwise() -> None:
    assert learned_the_same()[1] == 0


Wrong = tuple[Any, str, Any]
"""A class or module, the name of a function, and what stands in its place."""

NOTICED: dict[str, tuple[Wrong, Callable[[], None]]] = {
    "the price is not logged": ((PriceLog, "prices", lambda _, at, now: np.full(len(at), now)), differs),
    "runs are worth what they are now": (
        (PriceLog, "versions", lambda _, at, now=0: np.full(len(at), now)),
        learned_otherwise,
    ),
    "match points are counted once more": (
        (PriceNotes, "first_completed", lambda _, events, rows: np.ones(len(events), np.bool_)),
        points_counted,
    ),
    "late events are not granted for": ((Shedder, "grant_late", lambda *_: None), late_are_granted_for),
    "events that are run once more are granted for": (
        (Shedding, "record", changed_line(Shedding, "record", "self.notes.again is not None", "0")),
        late_are_granted_for,
    ),
    "what a replay does not find is taken back": (
        (ReplayWithinBudget, "_holds", lambda _, results: np.zeros(results.num_rows, np.bool_)),
        little_is_lost,
    ),
    "what was out is found anew where places are given anew": (
        (ReplayWithinBudget, "_place_anew", Replay._place_anew),
        places_run_out,
    ),
}
"""What is wrong, and who notices it."""

AT_RANDOM: dict[str, tuple[Wrong, int]] = {
    "replays are free of charge": ((ReplayWithinBudget, "_run_segment", free), 1),
    "the tail is charged once more after a restart": ((Runs, "unpaid", Engine.unpaid), 1),
    "what was out is looked for once more after a restart": ((ReplayWithinBudget, "load", found_anew), 1),
    "matches of an event that has gone stay": (
        (ReplayWithinBudget, "_binds_none", lambda _, results, __: np.ones(results.num_rows, np.bool_)),
        1,
    ),
    "further events take nothing away": ((within_budget, "_is_monotone", lambda _: True), 54),
    "a change reaches no further than itself": (
        (ReplayWithinBudget, "_holds", changed_line(ReplayWithinBudget, "_holds", "= self.pipeline.window", "= 0")),
        219,
    ),
    "what a replay finds again is out twice": ((Changelog, "not_among", lambda _, results, __: results), 1),
}
"""What is wrong, and the seed of a random case that notices it."""


@pytest.mark.parametrize("name", NOTICED)
def test_a_variant_that_is_wrong_is_noticed(name: str) -> None:
    (owner, function, wrong), noticing = NOTICED[name]
    with patch.object(owner, function, wrong), pytest.raises(AssertionError):
        noticing()


@pytest.mark.parametrize("name", AT_RANDOM)
def test_random_cases_notice_what_is_wrong(name: str) -> None:
    (owner, function, wrong), seed = AT_RANDOM[name]
    Case.of(seed).check()
    with patch.object(owner, function, wrong), pytest.raises((AssertionError, AcepError)):
        Case.of(seed).check()
