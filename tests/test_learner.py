"""Learning inside the engine: it keeps the promises of shedding, finds out what decides, and notices a change."""

from __future__ import annotations

import re
from functools import cache
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import Budget, Query, compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.learning import learner, training_sample
from acep_approx.learning.sampling import SampleReader
from acep_approx.learning.training_sample import SampledTests
from acep_approx.results.budgeted import BudgetedMatches
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import Shedder
from acep_approx.training.history_graph import HistoryGraph
from rl.records import Events, Lineages
from rl.updater import Updater
from tests.cases import FULL, cases, examples
from tests.hasty import hasty
from tests.match_tables import bindings
from tests.naive import Binding
from tests.rich_worlds import COLUMNS, RichWorld, rich_world, rich_worlds
from tests.runs_engine import compiled
from tests.smaller_worlds import holds_for

Ints = npt.NDArray[np.int64]

CLOSE = "PATTERN SEQ(A a, B b, C c) WHERE [id] AND (c.x - a.x) * (c.x - a.x) < 40 WITHIN 400"
SUMS = "PATTERN SEQ(A a, B b, C c) WHERE [id] AND a.x + b.x < c.x WITHIN 400"
FREE = "PATTERN SEQ(A a, B b, C c) WHERE a.x + b.x < c.x WITHIN 100"
LOW, HIGH = 10, 80
KEYS = 20
HALF = 12_000
SEEDS = range(4)


def stream(events: int, seed: int, *, least: int = LOW, width: int = 6, first: int = 0, keys: int = KEYS) -> pa.Table:
    """One event a tick; x of C lies from ``least`` on, of the others from 0 to 99."""
    rng = np.random.default_rng(seed)
    letter, x = rng.choice(3, events, p=[0.4, 0.4, 0.2]), rng.integers(0, 100, events)
    key = rng.integers(0, keys, events)
    x[letter == 2] = least + rng.integers(0, width, (letter == 2).sum())
    ticks = np.arange(first, first + events)
    return pa.table({"ts": ticks, "type": np.array(list("ABC"))[letter], "x": x, "id": key})


def halves(seed: int, *, changes: bool) -> pa.Table:
    """Low x tell until half way; then, if it changes, high ones."""
    later = stream(HALF, 100 + seed, least=HIGH if changes else LOW, first=HALF)
    return pa.concat_tables([stream(HALF, seed), later])


@cache
def whole(seed: int, *, changes: bool) -> tuple[pa.Table, float, Ints]:
    """Halves, with the run-steps per event of the exact run and its match points."""
    table = halves(seed, changes=changes)
    return table, *full_work(compile_query(CLOSE, engine="runs"), table)


@cache
def frozen_recall(seed: int) -> float:
    """What the history alone finds after the change."""
    table, work, exact = whole(seed, changes=True)
    some = compile_query(CLOSE, engine="runs").match_within(table, "10%", history=of_low(), full_work=work, seed=seed)
    return recall(points(some), exact, HALF)


@cache
def of_low() -> HistoryGraph:
    """A history of a past in which low x tell."""
    known = HistoryGraph(compile_query(CLOSE, engine="runs")).fit(stream(HALF, 200))
    known.search_ = None  # partial matches are followed
    return known


def points(matches: Any) -> Ints:
    """Rows of the match points, by listing matches."""
    return np.unique(matches.to_arrow()["c"].to_numpy())


def full_work(query: Query, table: pa.Table) -> tuple[float, Ints]:
    """Run-steps per event of the exact run, and its match points."""
    exact = query.match(table)
    rows = points(exact)
    return exact.work.steps / len(table), rows


def recall(found: Ints, exact: Ints, first: int) -> float:
    """Of the match points from a row on."""
    return float(np.isin(exact[exact >= first], found).mean())


# --- what is promised -----------------------------------------------------------------------------------------------

TILES, APART = 30, 30


def tiled(world: RichWorld) -> tuple[pa.Table, dict[Binding, int]]:
    """A world many times over, further apart than any window, with all of its matches by brute force."""
    one, size = world.expected(), len(world.rows)
    rows = [{**row, "ts": row["ts"] + tile * APART} for tile in range(TILES) for row in world.rows]
    table = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in COLUMNS.items()})
    every = {
        tuple((row + tile * size, name) for row, name in bound): errors
        for bound, errors in one.items()
        for tile in range(TILES)
    }
    return table, every


def is_kept(query: Query, table: pa.Table, load: Load, batch: int) -> tuple[pa.Table, Shedder]:
    """Push a table in batches; whatever happens, no piece did more than was granted."""
    shedder = Shedder(query.plan, load)
    matcher = Matcher(query.plan, shedding=shedder)
    found = [matcher.push(table.slice(first, batch)) for first in range(0, len(table), batch)]
    found.append(matcher.finish())
    shedder.finish()
    budget = load.budget
    share = {"%": budget.amount / 100 * (load.full_work or 0), "steps/event": budget.amount}.get(budget.unit)
    for piece in shedder.metrics.pieces:
        assert piece.work <= piece.bound
        if share is not None:
            assert piece.bound <= share * piece.events + 1e-6
        else:
            assert piece.live <= budget.amount
    return pa.concat_tables(found, promote_options="permissive"), shedder


def learns_and_keeps(world: RichWorld, seed: int) -> bool:
    """Check what a learner finds in a world, many times over; gives whether it revalued runs and missed a match."""
    query = compiled(world)
    window = world.query.window
    if query is None or not world.rows or window.unit == "events" or window.amount == 0:
        return False
    if re.search(r"\bts\b", world.text):  # then not all tiles are alike
        return False
    random = Random(seed)
    table, expected = tiled(world)
    text = random.choice(("3%", "20%", "0.3 steps/event", "2 steps/event", "2 runs"))
    load = Load(Budget.parse(text), audit=random.choice((0, 0.05, 0.5)), seed=seed, learns=True, full_work=3.0)
    with hasty():
        found, shedder = is_kept(query, table, load, random.choice((1, 7, 1000)))
    matches = bindings(found, world.query) if len(found) else {}
    assert all(errors >= expected[bound] for bound, errors in matches.items())
    return bool(shedder.online is not None and shedder.online.learner.refreshes and len(matches) < len(expected))


@examples(50, shrink=False)
@given(rich_worlds(), st.integers(0, 2**20))
def test_every_match_is_true_and_the_bound_holds_whatever_is_learned(world: RichWorld, seed: int) -> None:
    """Over the whole language, in any batches; errors may be more than the least, as that way may have been shed."""

    def check(world: RichWorld) -> None:
        learns_and_keeps(world, seed)

    holds_for(world, check)


def test_such_worlds_are_learned_from() -> None:
    """Or the test before would say nothing."""
    assert sum(learns_and_keeps(rich_world(Random(seed), chooses=False), seed) for seed in range(cases(40))) > 0


@pytest.mark.parametrize("window", ["0", "3 events"])
@pytest.mark.parametrize("budget", ["2 steps/event", "30 runs"])
def test_windows_of_one_moment_or_of_events_are_learned_from_too(window: str, budget: str) -> None:
    query = compile_query(f"PATTERN SEQ(A a, B b, C c) WHERE c.x > a.x WITHIN {window}", engine="runs")
    table = stream(3000, 5)
    table = table.set_column(0, "ts", pa.array(np.arange(3000) // 20))
    every = {str(match) for match in query.match(table).to_arrow().to_pylist()}
    with hasty():
        some = query.match_within(table, budget, learn=True)
        assert {str(match) for match in some.to_arrow().to_pylist()} <= every
    assert (some.record().learning is not None) == (window != "0")  # nothing is known before a moment is over


@pytest.mark.parametrize("history", [False, True])
def test_all_of_the_work_is_the_exact_answer(history: bool) -> None:
    query, table = compile_query(CLOSE, engine="runs"), stream(3000, 1)
    known = HistoryGraph(query).fit(stream(3000, 2)) if history else None
    some = query.match_within(table, "100%", learn=True, history=known)
    assert some.to_arrow().equals(query.match(table).to_arrow())
    assert some.shedder is not None
    assert some.shedder.arena.counts.sum() == 0


@pytest.mark.parametrize("text", [CLOSE, FREE])
@pytest.mark.parametrize("budget", ["10%", "2 steps/event", "30 runs"])
def test_the_same_seed_learns_and_finds_the_same(text: str, budget: str) -> None:
    query, table = compile_query(text, engine="runs"), stream(6000, 3)
    work, _ = full_work(query, table)

    def found(seed: int) -> tuple[pa.Table, list[Any]]:
        some = query.match_within(table, budget, learn=True, full_work=work, seed=seed)
        matches = some.to_arrow()
        assert some.shedder is not None
        assert some.shedder.online is not None
        values = some.shedder.online.learner.values
        assert values is not None
        return matches, [values.gain.tolist(), values.cost.tolist(), some.shedder.online.learner.refreshes]

    first, again, other = found(1), found(1), found(2)
    assert first[0].equals(again[0])
    assert first[1] == again[1]
    assert not first[0].equals(other[0])


@pytest.mark.parametrize("text", [CLOSE, FREE])
def test_in_other_batches_the_matches_are_true_and_no_fewer(text: str) -> None:
    """Pieces end elsewhere, so what is learned may differ a little; of the match points about as many are found."""
    query, table = compile_query(text, engine="runs"), stream(8000, 4)
    work, exact = full_work(query, table)
    every = {str(match) for match in query.match(table).to_arrow().to_pylist()}
    load = Load(Budget.parse("10%"), learns=True, full_work=work)
    shares = []
    for batch in (100_000, 999, 100):
        some, shedder = is_kept(query, table, load, batch)
        assert {str(match) for match in some.to_pylist()} <= every
        shares.append(recall(shedder.metrics.points.row, exact, 0))
    assert min(shares) > 0.6 * max(shares) > 0.2


# --- what is learned ------------------------------------------------------------------------------------------------


def learned(query: Query, table: pa.Table, work: float, seed: int, **more: Any) -> tuple[Ints, BudgetedMatches]:
    """Match points that a learner finds with a tenth of the work."""
    some = query.match_within(table, "10%", learn=True, full_work=work, seed=seed, **more)
    return points(some), some


@pytest.mark.parametrize(
    ("text", "told", "width"),
    [(CLOSE, [set(), {"x of a"}, {"x of a"}, set()], 6), (SUMS, [set(), {"x of a"}, {"x of a", "x of b"}, set()], 15)],
)
def test_a_cold_learner_finds_out_what_decides_and_twice_what_chance_does(
    text: str, told: list[set[str]], width: int
) -> None:
    """Means over seeds, of the second half."""
    query = compile_query(text, engine="runs")
    ours, chance, features = [], [], []
    for seed in SEEDS:
        table = stream(HALF, seed, width=width)
        work, exact = full_work(query, table)
        found, some = learned(query, table, work, seed)
        ours.append(recall(found, exact, HALF // 2))
        by_lot = query.match_within(table, "10%", policy="random", full_work=work, seed=seed)
        chance.append(recall(points(by_lot), exact, HALF // 2))
        assert some.shedder is not None
        assert some.shedder.online is not None
        places = some.shedder.online.learner.scheme.places
        features.append([{feature.name for feature in place.features} for place in places])
    assert np.mean(ours) > 2 * np.mean(chance)
    assert min(ours) > np.mean(chance)
    assert np.mean([all(want <= have for want, have in zip(told, seen, strict=True)) for seen in features]) >= 0.75


def alarms(some: BudgetedMatches) -> list[int]:
    """When there was one."""
    assert some.shedder is not None
    assert some.shedder.online is not None
    return [alarm.tick for alarm in some.shedder.online.learner.alarms]


@pytest.mark.parametrize("history", [False, True])
def test_a_change_is_noticed_and_learned_and_where_there_is_none_there_is_no_alarm(history: bool) -> None:
    """Within eight windows; and more is found than with what was known before.

    Where a history ranks, it is its promise that is broken. A learner that
    has just found out what tells runs apart may take itself for a change, in a third of the streams.
    """
    query = compile_query(CLOSE, engine="runs")
    noticed, false, ours, frozen = [], [], [], []
    for seed in range(12 if FULL else 6):
        for changes in (True, False):
            table, work, exact = whole(seed, changes=changes)
            found, some = learned(query, table, work, seed, history=of_low() if history else None)
            if not changes:
                false.append(bool(alarms(some)))
                continue
            noticed.append(any(HALF <= tick < HALF + 8 * 400 for tick in alarms(some)))
            ours.append(recall(found, exact, HALF))
            frozen.append(frozen_recall(seed))
    assert np.mean(noticed) > 0.8
    assert np.mean(false) <= 1 / 3
    assert np.mean(ours) > np.mean(frozen) + 0.1


# --- what it sees ---------------------------------------------------------------------------------------------------


def test_only_runs_that_are_still_there_are_seen() -> None:
    """With one event a tick, what a run has bound first and last says which it is."""
    query, table = compile_query(CLOSE, engine="runs"), stream(6000, 6)
    work, _ = full_work(query, table)
    seen: list[tuple[int, int, int, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        look = SampleReader.read

        def read(self: SampleReader, *given: Any) -> SampledTests:
            rows = look(self, *given)
            of_runs = rows[rows.source > 0]
            columns = (of_runs.source, of_runs.start, of_runs.last, of_runs.tick)
            seen.extend(zip(*(column.tolist() for column in columns), strict=True))
            return rows

        patch.setattr(SampleReader, "read", read)
        some = query.match_within(table, "10%", learn=True, full_work=work, log_shed=True, merge="none")
        some.to_arrow()
    shed = some.shed()
    names = {"a": 1, "b": 2}
    gone = {
        (names[state], start, last): at
        for state, start, last, at in zip(
            *(shed[name].to_pylist() for name in ("state", "start", "last", "at")), strict=True
        )
    }
    assert len(gone) > 1000
    assert len(seen) > 1000
    assert all(tick <= gone.get((place, start, last), tick) for place, start, last, tick in seen)
    letters = np.array(table["type"].to_pylist())
    assert {letters[start] for _, start, _, _ in seen} == {"A"}
    assert {letters[last] for place, _, last, _ in seen if place == 2} == {"B"}


@pytest.mark.parametrize("budget", ["10%", "60%"])
def test_tests_that_are_shown_are_run_steps(budget: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, when all events are looked at: no more, and no fewer but for runs whose window is over."""
    shown = []
    observe = Updater.observe

    def counted(self: Updater, events: Events, tests: Any, lineages: Lineages) -> None:
        shown.append((float(tests.tested.sum()), float(events.total)))
        observe(self, events, tests, lineages)

    monkeypatch.setattr(Updater, "observe", counted)
    adapt = lambda self, sample, *_: setattr(self, "rows", self.rows + len(sample.tests))  # noqa: E731
    monkeypatch.setattr(training_sample.SampleSize, "adapt", adapt)
    monkeypatch.setattr(learner.Learner, "is_due", lambda _: False)
    query, table = compile_query(CLOSE, engine="runs"), stream(4096 + 64, 7)
    work, _ = full_work(query, table)
    some = query.match_within(table, budget, learn=True, full_work=work, audit=0)
    some.to_arrow()
    assert some.shedder is not None
    tested, events = map(sum, zip(*shown, strict=True))
    assert events > 0.9 * len(table)
    steps = some.shedder.metrics.pieces[-1].work - int(some.shedder.arena.on_passes)
    assert 0.8 * steps < tested <= steps
