"""The history that a learner leaves behind: kept, loaded, used, learned on from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import Query, compile_query
from acep_approx.learning.judging import Tally
from acep_approx.learning.learner import Learner
from acep_approx.results.budgeted import BudgetedMatches
from acep_approx.results.shed_replay import in_words
from acep_approx.training.history_graph import HistoryGraph
from acep_approx.training.policies import RANDOM_SPREAD
from history import store, tables
from tests.cases import cases

pytestmark = pytest.mark.usefixtures("one_reading")

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE [id] AND (c.x - a.x) * (c.x - a.x) < 40 WITHIN 200"
EVENTS = 8000
DENSE = ("visits", "reached", "led")
PAIRED = [name for names in tables.PAIRS.values() for name in names]


def stream(seed: int, *, events: int = EVENTS, first: int = 0, least: int = 10) -> pa.Table:
    """One event a tick, ten keys; x of C lies from ``least`` to 5 above, of the others from 0 to 99."""
    rng = np.random.default_rng(seed)
    letter, x = rng.choice(3, events, p=[0.4, 0.4, 0.2]), rng.integers(0, 100, events)
    x[letter == 2] = least + rng.integers(0, 6, (letter == 2).sum())
    ticks, key = np.arange(first, first + events), rng.integers(0, 10, events)
    return pa.table({"ts": ticks, "type": np.array(list("ABC"))[letter], "x": x, "id": key})


@pytest.fixture(scope="module")
def query() -> Query:
    return compile_query(QUERY, engine="runs")


@pytest.fixture(scope="module")
def work(query: Query) -> float:
    """Run-steps per event of the exact run."""
    exact = query.match(stream(9))
    exact.to_arrow()
    return float(exact.work.steps / EVENTS)


@pytest.fixture(scope="module")
def trained(query: Query) -> HistoryGraph:
    known = HistoryGraph(query).fit(stream(1))
    known.search_ = None  # partial matches are followed
    return known


def ran(query: Query, table: pa.Table, work: float | None, budget: str = "20%", **more: Any) -> BudgetedMatches:
    """A run that learns, to its end."""
    some = query.match_within(table, budget, learn=True, full_work=work, **more)
    some.to_arrow()
    return some


def refreshed(some: BudgetedMatches, query: Query) -> HistoryGraph:
    """What it has learned."""
    known = some.refreshed(query)
    assert known is not None
    return known


def learner_of(some: BudgetedMatches) -> Learner:
    """The learner of a run."""
    assert some.shedder is not None
    assert some.shedder.online is not None
    return some.shedder.online.learner


def taken_up(learner: Learner) -> None:
    """Have what was learned rank the runs, whether it is better or not."""
    if learner.known is not None:
        learner.tally = Tally(gained=100)
        assert learner.learn()


def points(matches: Any) -> set[int]:
    """Rows of the match points."""
    return set(matches.to_arrow()["c"].to_pylist())


@pytest.fixture(scope="module")
def fresh(query: Query, work: float) -> HistoryGraph:
    """Learned from nothing."""
    return refreshed(ran(query, stream(2), work, audit=0.3), query)


# --- kept and used --------------------------------------------------------------------------------------------------


def test_saved_and_loaded_it_ranks_as_before(query: Query, fresh: HistoryGraph, tmp_path: Path) -> None:
    first = fresh.save(tmp_path / "one")
    again = HistoryGraph.load(tmp_path / "one", query)
    assert (first / store.LEARNED).exists()
    assert again.learned_ is not None
    for name in ("gain", "cost", "chance"):
        assert getattr(again.values(), name).tolist() == getattr(fresh.values(), name).tolist()
    for policy in ("history", "scores"):
        for name in ("gain", "cost", "overlap"):
            assert getattr(again.worth(policy), name).tolist() == getattr(fresh.worth(policy), name).tolist()
        assert again.worth(policy).features == fresh.worth(policy).features
    second = again.save(tmp_path / "two")
    for file in sorted(path.name for path in first.iterdir()):
        assert (first / file).read_bytes() == (second / file).read_bytes(), file
    test = stream(3, events=3000)
    ours, theirs = (query.match_within(test, "10%", history=one).to_arrow() for one in (fresh, again))
    assert ours.equals(theirs)
    assert len(ours) > 0


def test_what_is_learned_is_what_ranks(query: Query, fresh: HistoryGraph) -> None:
    """The worth is that of the values; a history that was counted has another."""
    assert fresh.learned_ is not None
    assert fresh.values() is fresh.learned_
    gain = fresh.worth().gain
    assert np.allclose(gain[gain > gain.min()], fresh.learned_.gain[gain > gain.min()])
    assert fresh.worth().overlap.tolist() == fresh.learned_overlap_.tolist()
    assert {feature.name for place in fresh.graph_.scheme.places for feature in place.features} >= {"x of a"}


def test_a_history_that_was_only_counted_is_kept_and_loaded_as_ever(
    query: Query, trained: HistoryGraph, tmp_path: Path
) -> None:
    where = trained.save(tmp_path / "counted")
    assert not (where / store.LEARNED).exists()
    known = HistoryGraph.load(tmp_path / "counted", query)
    assert known.learned_ is None
    assert known.values().gain.tolist() == trained.values().gain.tolist()
    some = ran(query, stream(2), None, history=known)
    taken_up(learner_of(some))
    refreshed(some, query).save(tmp_path / "counted", new_version=True)
    assert HistoryGraph.load(tmp_path / "counted", query).learned_ is not None
    assert HistoryGraph.load(tmp_path / "counted", query, version=1).learned_ is None


@pytest.mark.parametrize("share", ["5%", "20%"])
def test_frozen_it_finds_more_of_later_events_than_chance(query: Query, work: float, share: str) -> None:
    """Of some streams, twice as much on average; the price is that of its own, so all of the budget is used."""
    ours, chance, used = [], [], []
    for seed in range(cases(3, 1)):
        known = refreshed(ran(query, stream(10 + seed), work, audit=0.2), query)
        later = stream(20 + seed, first=EVENTS)
        exact = points(query.match(later))
        frozen = query.match_within(later, share, history=known, audit=0)
        ours.append(len(points(frozen)) / len(exact))
        by_lot = query.match_within(later, share, policy="random", full_work=work, audit=0)
        chance.append(len(points(by_lot)) / len(exact))
        used.append(frozen.record().work / frozen.record().allowed)
    assert np.mean(ours) > 2 * np.mean(chance)
    assert 0.5 < np.mean(used) <= 1


def test_nothing_is_refreshed_before_anything_is_learned(query: Query) -> None:
    few = query.match_within(stream(4, events=50), "2 steps/event", learn=True)
    assert few.refreshed(query) is None
    few.to_arrow()
    assert few.refreshed(query) is None
    plain = query.match_within(stream(4), "2 steps/event")
    plain.to_arrow()
    assert plain.refreshed(query) is None


# --- with what was known before -------------------------------------------------------------------------------------


def snapshot(known: HistoryGraph) -> dict[str, Any]:
    """All that was counted."""
    counts = {name: getattr(known.graph_.counts, name) for name in (*tables.DENSE, *PAIRED)}
    bundles = vars(known.graph_.counts.bundles)
    maps = {vertex: bits.to01() for vertex, bits in known.graph_.counts.maps.items()}
    arrays = {name: column.tolist() for name, column in (counts | bundles).items()}
    return arrays | {"maps": maps, "events": known.events_, "points": known.points_, "learned": known.learned_ is None}


def test_the_graph_of_a_history_goes_on_and_the_cohort_is_added(query: Query) -> None:
    """While the history ranks the runs: what it had, less what has faded, and what the cohort showed."""
    known = HistoryGraph(query).fit(stream(1))
    before = snapshot(known)
    some = ran(query, stream(2, first=EVENTS).slice(0, 1500), None, "30%", history=known, audit=0.9)
    learner = learner_of(some)
    assert learner.known is not None, "the history was given up"
    assert learner.live.visits > 100
    now = refreshed(some, query)
    assert snapshot(known) == before
    assert now.learned_ is None
    counts, old = now.graph_.counts, known.graph_.counts
    assert now.graph_.scheme == known.graph_.scheme
    assert 0.5 * old.visits.sum() < counts.visits.sum() - learner.live.visits < old.visits.sum()
    assert len(counts.bundles) > len(old.bundles) + 10
    assert set(old.maps) <= set(counts.maps)
    assert counts.moves.sum() > 0.5 * old.moves.sum()
    assert len(counts.ends) > len(old.ends)
    assert now.events_ == EVENTS + 1500
    assert now.points_ == known.points_ + len(points(some))
    assert [one.price for one in now.prices_.replays] == [one.price for one in known.prices_.replays]


def test_where_features_change_vertices_are_mapped(query: Query, trained: HistoryGraph, work: float) -> None:
    """What was learned takes over, with features of its own; the past stays a part of the graph."""
    some = ran(query, stream(2, first=EVENTS), work, "60%", history=trained, audit=0.9)
    learner = learner_of(some)
    taken_up(learner)
    now = refreshed(some, query)
    assert now.learned_ is not None
    assert now.graph_.scheme == learner.scheme != trained.graph_.scheme
    counts, old = now.graph_.counts, trained.graph_.counts
    assert 0.1 * old.visits.sum() < counts.visits.sum() - learner.live.visits < old.visits.sum()
    assert len(counts.source) > 100
    assert len(counts.bundles) > len(old.bundles)
    assert len(counts.maps) > 50
    paths = now.graph_.strongest_paths(3)
    assert len(paths) == 3
    mine, theirs = (
        counted.reached.sum() / counted.visits.sum() for counted in (counts, old)
    )
    assert mine == pytest.approx(theirs, rel=0.3)


def test_what_no_longer_holds_is_forgotten(query: Query, trained: HistoryGraph, work: float) -> None:
    """The stream changes, and the history with it: bundles from before are gone, and little else is left of them."""
    change = 3000
    table = pa.concat_tables([stream(5, events=change), stream(6, events=2 * EVENTS, first=change, least=80)])
    some = ran(query, table, work, history=trained, audit=0.3)
    learner = learner_of(some)
    assert learner.known is None
    assert learner.alarms
    now = refreshed(some, query)
    assert now.graph_.scheme == learner.scheme
    assert now.graph_.counts.bundles.last.min() >= change
    assert len(now.graph_.counts.source) > 0
    assert now.graph_.counts.visits.sum() < 0.3 * trained.graph_.counts.visits.sum() + learner.live.visits
    assert now.events_ == EVENTS + len(table)
    later = stream(7, first=change + 2 * EVENTS, least=80)
    exact = points(query.match(later))
    new, old = (points(query.match_within(later, "20%", history=one, full_work=work)) for one in (now, trained))
    assert len(new) > len(old) + 0.1 * len(exact)


def test_a_history_of_which_nothing_holds_keeps_runs_at_random(
    query: Query, trained: HistoryGraph, work: float, tmp_path: Path
) -> None:
    """A run that ends just after a change leaves it behind: its graph stays, and who goes on with it begins anew."""
    change = 3000
    table = pa.concat_tables([stream(5, events=change), stream(6, events=2 * EVENTS, first=change, least=80)])
    for end in range(change, len(table), 250):
        some = ran(query, table.slice(0, end), work, "10%", history=trained, audit=0)
        if learner_of(some).is_random:
            break
    now = refreshed(some, query)
    assert now.says_nothing
    now.save(tmp_path / "now")
    again = HistoryGraph.load(tmp_path / "now", query)
    assert again.worth().spread == again.worth("scores").spread == RANDOM_SPREAD
    later = stream(7, first=change + 2 * EVENTS, least=80)
    kept = query.match_within(later, "20%", history=again, audit=0, full_work=work)
    by_lot = query.match_within(later, "20%", policy="random", audit=0, full_work=work)
    frozen = query.match_within(later, "20%", history=trained, audit=0, full_work=work)
    assert len(points(kept)) > 0.5 * len(points(by_lot)) > len(points(frozen))
    assert 0.5 < kept.record().work / kept.record().allowed <= 1
    assert learner_of(ran(query, later, work, history=again)).known is None


@pytest.mark.parametrize("history", [False, True])
def test_more_past_is_added_to_what_was_refreshed(
    query: Query, trained: HistoryGraph, work: float, history: bool
) -> None:
    """It is counted, and what was learned goes on; what it was made of stays as it was."""
    before = snapshot(trained)
    some = ran(query, stream(2, first=EVENTS), work, "60%", history=trained if history else None, audit=0.3)
    known = refreshed(some, query)
    counted, events, found, learned = snapshot(known), known.events_, known.points_, known.learned_
    more = stream(3, first=2 * EVENTS)
    later = stream(4, first=3 * EVENTS)
    had = len(points(query.match_within(later, "5%", history=known, audit=0, full_work=work)))
    known.partial_fit(more)
    assert (known.learned_ is None) == (learned is None)
    assert known.events_ == events + EVENTS
    assert known.points_ == found + len(points(query.match(more)))
    exact = HistoryGraph(query)
    exact.graph_ = type(known.graph_)(known.graph_.scheme, known.graph_.gap)
    exact.take_window(200)
    exact.partial_fit(more)
    for name in DENSE:
        total = np.array(counted[name]) + getattr(exact.graph_.counts, name)
        assert getattr(known.graph_.counts, name).tolist() == total.tolist()
    assert snapshot(trained) == before
    if learned is not None and known.learned_ is not None:
        often = np.argsort(exact.graph_.counts.visits)[-20:]
        seen = exact.graph_.counts.reached[often] / exact.graph_.counts.visits[often]
        assert np.abs(known.learned_.gain[often] - seen).mean() < np.abs(learned.gain[often] - seen).mean()
    assert len(points(query.match_within(later, "5%", history=known, audit=0, full_work=work))) > 0.75 * had


# --- the full work --------------------------------------------------------------------------------------------------


def test_the_full_work_that_was_given_is_kept(query: Query, trained: HistoryGraph) -> None:
    assert refreshed(ran(query, stream(2), 7.5), query).steps_per_event_ == 7.5
    some = ran(query, stream(2), None, history=trained)
    assert refreshed(some, query).steps_per_event_ == trained.steps_per_event_


@pytest.mark.parametrize(("audit", "factor"), [(0.6, 1.3), (0.0, 3.0)])
def test_the_full_work_is_estimated_where_nobody_knows_it(
    query: Query, work: float, audit: float, factor: float
) -> None:
    """With a large cohort to a third, without one by what is learned; the geometric mean of some streams."""
    budget = f"{work / 2:.3f} steps/event"
    found = [
        refreshed(ran(query, stream(30 + seed), None, budget, audit=audit, seed=seed), query)
        for seed in range(cases(6, 2))
    ]
    mean = np.exp(np.mean(np.log([known.steps_per_event_ for known in found])))
    assert work / factor < mean < work * factor


# --- what was shed meanwhile ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("history", [False, True])
def test_what_was_shed_is_told_by_what_runs_were_worth_then(
    query: Query, trained: HistoryGraph, work: float, history: bool
) -> None:
    """Values and features change while the run learns; the terms of each score are those that it was made of."""
    change = 4000
    table = pa.concat_tables([stream(2, events=change), stream(6, events=EVENTS, first=change, least=80)])
    some = ran(query, table, work, history=trained if history else None, log_shed=True)
    shed = some.shed().to_pandas()
    assert shed["rescored"].nunique() > 3
    weighed = shed[shed["score"].notna()]
    score = (weighed["gain"] - weighed["covered"]) / weighed["cost"] * weighed["coin"]
    assert len(weighed) > 1000
    np.testing.assert_allclose(weighed["score"], score, rtol=1e-6, atol=1e-9)
    assert some.shedder is not None
    arena = some.shedder.arena
    runs = shed[shed["vertex"] >= 0]
    for number, vertex, state in zip(runs["rescored"], runs["vertex"], runs["state"], strict=True):
        assert (*arena.earlier, arena.worth)[number].scheme.describe(vertex)["state"] == state
    for run in some.shed().to_pylist()[:: len(shed) // 50]:
        assert ("known as" in dict(in_words(run, some))) == (run["vertex"] >= 0)
