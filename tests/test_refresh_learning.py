"""Learning over shards and batches: what shards write down, the learner that takes it, and versions that it makes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from acep_approx import compile_query
from acep_approx.api import Query
from acep_approx.api.matcher import Matcher
from acep_approx.budget.budget import Budget
from acep_approx.learning import cohort
from acep_approx.learning.online import MOST_TESTS, Observer
from acep_approx.learning.training_sample import SampledTests, Shares, samples_from_bytes
from acep_approx.shedding import load as load_module
from acep_approx.shedding import refresher
from acep_approx.shedding.load import Load
from acep_approx.shedding.refresher import Refresher
from acep_approx.shedding.shedder import Shedder
from acep_approx.shedding.splitting import shard_budget
from acep_approx.training.history_graph import HistoryGraph, newest
from tests.cases import cases

Ints = npt.NDArray[np.int64]
QUERY = "PATTERN SEQ(A a, B b, C c) WHERE [id] AND (c.x - a.x) * (c.x - a.x) < 40 WITHIN 400"
KEYS, SHARDS, BATCH, HALF = 20, 3, 2000, 12_000
LOW, HIGH = 10, 80


def stream(events: int, seed: int, *, least: int = LOW, first: int = 0) -> pa.Table:
    """One event a tick; x of C lies from ``least`` on, of the others from 0 to 99."""
    rng = np.random.default_rng(seed)
    letter, x = rng.choice(3, events, p=[0.4, 0.4, 0.2]), rng.integers(0, 100, events)
    x[letter == 2] = least + rng.integers(0, 6, (letter == 2).sum())
    key = np.char.add("k", rng.integers(0, KEYS, events).astype(str))
    return pa.table({"ts": np.arange(first, first + events), "type": np.array(list("ABC"))[letter], "x": x, "id": key})


def halves(seed: int) -> pa.Table:
    """Low x tell until half way, then high ones."""
    return pa.concat_tables([stream(HALF, seed), stream(HALF, 100 + seed, least=HIGH, first=HALF)])


def parts(table: pa.Table, shards: int) -> list[pa.Table]:
    """By key."""
    of = np.array([int(key[1:]) % shards for key in table["id"].to_pylist()])
    return [table.filter(pa.array(of == shard)) for shard in range(shards)]


@pytest.fixture(scope="module")
def query() -> Query:
    return compile_query(QUERY, engine="runs")


@pytest.fixture(scope="module")
def work(query: Query) -> float:
    table = stream(HALF, 1)
    exact = query.match(table)
    exact.to_arrow()
    return exact.work.steps / len(table)


@pytest.fixture(scope="module")
def known(query: Query) -> HistoryGraph:
    return HistoryGraph(query).fit(stream(HALF, 200))


def a_refresher(query: Query, load: Load) -> Refresher:
    table = stream(10, 0)
    pipeline = Matcher(query.plan).bind(table.schema)
    return Refresher(query, table.schema, pipeline.roles, load)


@dataclass
class Job:
    """Some shards that match batch by batch, each with a new shedder, as workers do."""

    query: Query
    load: Load
    home: Path
    shards: int = SHARDS
    state: dict[int, bytes] = field(default_factory=dict)
    ticks: list[Ints] = field(default_factory=list)
    works: list[list[tuple[int, int]]] = field(default_factory=list)

    def run(self, table: pa.Table, shares: Shares | None, *, observes: bool = True) -> list[bytes]:
        """One batch; what was seen of it."""
        known = newest(self.home, self.query) if self.home.exists() else None
        seen = []
        for shard, events in enumerate(parts(table, self.shards)):
            budget = shard_budget(self.load.budget, 1.0, self.shards)
            load = Load(budget, known, audit=self.load.audit, seed=self.load.seed, full_work=self.load.full_work)
            plan = self.query.plan
            shedder = Shedder(plan, load, Observer(shares, self.shards) if observes else None)
            if shard in self.state:
                matcher = Matcher.from_state(plan, self.state[shard], shedder)
            else:
                matcher = Matcher(plan, shedding=shedder)
            matcher.push(events)
            self.ticks.append(shedder.metrics.points.tick)
            self.works.append([(piece.work, piece.bound) for piece in shedder.metrics.pieces])
            if observes:
                seen.append(shedder.training_sample())
            self.state[shard] = matcher.state_bytes()
        return seen

    def recall(self, table: pa.Table, first: int) -> float:
        """Of the match points from a tick on."""
        exact = np.unique(self.query.match(table).to_arrow()["c"].to_numpy())
        return float(np.isin(exact[exact >= first], np.concatenate(self.ticks)).mean())


def learns(job: Job, learner: Refresher, table: pa.Table, first: int = 0) -> int:
    """Run all batches; gives how many versions were made."""
    made = 0
    for number, at in enumerate(range(0, len(table), BATCH), first):
        learner.process(number, job.run(table.slice(at, BATCH), learner.shares))
        if learner.is_due():
            learner.refreshed().save(job.home, new_version=True)
            made += 1
    return made


# --- what shards see ------------------------------------------------------------------------------------------------


def all_rows(raw: Sequence[bytes]) -> list[tuple[Any, ...]]:
    """Tests as plain values, texts as texts, in an order of their own."""
    found = []
    for one in [sample for part in raw for sample in samples_from_bytes(part)]:
        rows = one.tests
        keys = [one.texts[code] for code in rows.key]
        plain = [getattr(rows, column.name) for column in fields(SampledTests)]
        flat = [column for column in plain if column.ndim == 1] + [row for column in plain[-2:] for row in column]
        columns = [np.nan_to_num(column, nan=-9.0).tolist() for column in flat if column is not rows.key]
        found += list(zip(keys, *columns, strict=True))
    return sorted(found)


def test_shards_together_see_what_one_matcher_sees(
    query: Query, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All tests, where all events are looked at and nothing is shed."""
    monkeypatch.setattr(load_module, "first_price", lambda *_: 0.0)
    table, everything = stream(1500, 3), Shares(1.0, (1.0,) * 4)
    seen = []
    for shards in (1, SHARDS):
        job = Job(query, Load(Budget.parse("100000 steps/event")), tmp_path / "none", shards)
        seen.append([raw for at in (0, 750) for raw in job.run(table.slice(at, 750), everything)])
    one, several = map(all_rows, seen)
    assert len(one) > 1000
    assert one == several
    totals = [
        [sum(getattr(one.events, of) for raw in some for one in samples_from_bytes(raw)) for of in ("total", "counts")]
        for some in seen
    ]
    assert totals[0][0] == totals[1][0] > 0
    assert totals[0][1].tolist() == totals[1][1].tolist()


def test_few_tests_are_written_down_however_much_comes(query: Query, work: float, tmp_path: Path) -> None:
    """From the first batch on, of which nothing is known; and a few bytes."""
    load = Load(Budget.parse("10%"), full_work=work)
    learner, job = a_refresher(query, load), Job(query, load, tmp_path / "none")
    for number, size in enumerate((20_000, 20_000, 20_000)):
        raw = job.run(stream(size, number, first=size * number), learner.shares)
        assert 100 < sum(len(one.tests) for part in raw for one in samples_from_bytes(part)) < 1.3 * MOST_TESTS
        assert sum(map(len, raw)) < 65 * MOST_TESTS
        learner.process(number, raw)


def test_shares_are_whole_or_none(tmp_path: Path) -> None:
    assert Shares.load(tmp_path) is None
    Shares(0.5, (0.5, 1.0)).save(tmp_path)
    assert Shares.load(tmp_path) == Shares(0.5, (0.5, 1.0))
    values = ('0, "passed": []}', '0.5, "passed": [NaN]}', '2, "passed": []}', '[], "passed": 3}')
    for text in ('{"share": 0.5', "[" * 9999, "\xff", *(f'{{"share": {value}' for value in values)):
        (tmp_path / "shares.json").write_text(text, "latin-1")
        assert Shares.load(tmp_path) is None


@pytest.mark.parametrize("budget", ["100%", "10%"])
def test_an_observer_sheds_as_a_shedder_does(budget: str, query: Query, known: HistoryGraph, tmp_path: Path) -> None:
    """To look changes nothing."""
    known.save(tmp_path / "past")
    load, table, ticks = Load(Budget.parse(budget), seed=3, audit=0), stream(6000, 4), []
    for observes in (True, False):
        job = Job(query, load, tmp_path / "past")
        for at in range(0, len(table), BATCH):
            job.run(table.slice(at, BATCH), None, observes=observes)
        ticks.append(np.concatenate(job.ticks).tolist())
    assert ticks[0] == ticks[1]


# --- what is made of it ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def seen(query: Query, work: float, tmp_path_factory: pytest.TempPathFactory) -> tuple[Load, list[list[bytes]]]:
    """What shards saw in six batches, by lot."""
    load = Load(Budget.parse("10%"), full_work=work)
    job, table = Job(query, load, tmp_path_factory.mktemp("seen") / "none"), stream(6 * BATCH, 5)
    return load, [job.run(table.slice(at, BATCH), None) for at in range(0, len(table), BATCH)]


def test_neither_the_order_of_shards_nor_a_batch_run_twice_changes_what_is_learned(
    query: Query, seen: tuple[Load, list[list[bytes]]]
) -> None:
    load, batches = seen
    learners = [a_refresher(query, load) for _ in range(2)]
    for number, batch in enumerate(batches):
        learners[0].process(number, batch)
        learners[1].process(number, batch[::-1])
        learners[1].process(number, batch)
        learners[1].process(max(number - 1, 0), batch)
    values = [learner.refreshed().values() for learner in learners]
    assert values[0].gain.tobytes() == values[1].gain.tobytes()
    assert values[0].cost.tobytes() == values[1].cost.tobytes()
    assert learners[0].to_bytes() == learners[1].to_bytes()


def test_a_learner_goes_on_after_a_restart_as_if_there_had_been_none(
    query: Query, seen: tuple[Load, list[list[bytes]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    load, batches = seen
    whole, broken = a_refresher(query, load), a_refresher(query, load)
    for number, batch in enumerate(batches):
        if number == 3:  # texts that nobody points to are forgotten by one of them, and by the restart
            monkeypatch.setattr(refresher, "MOST_TEXTS", 1)
        for learner in (whole, broken):
            learner.process(number, batch)
            if number in (1, 4):
                learner.refreshed()
        raw, broken = broken.to_bytes(), a_refresher(query, load)
        broken.restore(raw)
        assert broken.batch == whole.batch == number
        assert (broken.events, broken.points, broken.shares) == (whole.events, whole.points, whole.shares)
        assert broken.is_due() == whole.is_due()
    ours, theirs = whole.refreshed(), broken.refreshed()
    assert ours.graph_.scheme == theirs.graph_.scheme
    assert any(place.features for place in ours.graph_.scheme.places)
    np.testing.assert_allclose(ours.values().gain, theirs.values().gain, rtol=1e-9)
    assert ours.prices_ == theirs.prices_


@pytest.mark.parametrize("raw", [b"", b"PK", b"x" * 100])
def test_other_bytes_are_refused(raw: bytes, query: Query, seen: tuple[Load, list[list[bytes]]]) -> None:
    with pytest.raises(ValueError, match=r"bytes|pickled|file"):
        a_refresher(query, seen[0]).restore(raw)


def test_where_there_is_nothing_to_learn_nothing_happens(query: Query, seen: tuple[Load, list[list[bytes]]]) -> None:
    learner = a_refresher(query, Load(Budget.parse("100%")))
    learner.process(0, seen[1][0])
    assert not learner.is_due()
    again = a_refresher(query, Load(Budget.parse("100%")))
    again.restore(learner.to_bytes())
    assert again.batch == 0
    with pytest.raises(ValueError, match="another query"):
        a_refresher(query, seen[0]).restore(learner.to_bytes())


# --- does it help? --------------------------------------------------------------------------------------------------


def test_after_a_change_the_refreshed_job_recovers_and_the_frozen_one_does_not(
    query: Query, work: float, known: HistoryGraph, tmp_path: Path
) -> None:
    """Means over some streams, later than five windows after the change."""
    frozen, ours = [], []
    for seed in range(cases(2, 1)):
        table, later = halves(seed), HALF + 5 * 400
        load = Load(Budget.parse("10%"), known, seed=seed, full_work=work)
        for is_refreshed, shares in ((False, frozen), (True, ours)):
            home = tmp_path / f"{seed}-{is_refreshed}"
            known.save(home)
            job, learner = Job(query, load, home), a_refresher(query, load)
            if is_refreshed:
                assert learns(job, learner, table) > 3
                assert newest(home, query).version_ > 3
            else:
                for at in range(0, len(table), BATCH):
                    job.run(table.slice(at, BATCH), None, observes=False)
            shares.append(job.recall(table, later))
    assert np.mean(ours) > np.mean(frozen) + 0.2
    assert np.mean(ours) > 1.5 * np.mean(frozen)


def test_a_job_without_a_history_makes_one(query: Query, work: float, tmp_path: Path) -> None:
    """Twice what chance finds, in the second half."""
    load, table = Load(Budget.parse("10%"), full_work=work), stream(HALF, 7)
    job, learner = Job(query, load, tmp_path / "new"), a_refresher(query, load)
    assert learns(job, learner, table) > 1
    by_lot = query.match_within(table, "10%", policy="random", full_work=work).to_arrow()["c"].to_numpy()
    chance = Job(query, load, tmp_path / "none", ticks=[by_lot]).recall(table, HALF // 2)
    assert job.recall(table, HALF // 2) > 2 * chance


# --- the cohort of a shard ------------------------------------------------------------------------------------------


def test_shards_have_a_cohort_of_their_own_inside_the_budget(
    query: Query, known: HistoryGraph, work: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What became of it goes into the graph of the next version: edges, bundles, ends, maps, with those of before."""
    monkeypatch.setattr(cohort, "LOOK_BACK", 64)
    load, table = Load(Budget.parse("80%"), known, audit=0.6, full_work=work), stream(HALF, 8, first=HALF)
    known.save(tmp_path / "history")
    job, learner = Job(query, load, tmp_path / "history"), a_refresher(query, load)
    assert learns(job, learner, table) > 1
    assert learner.learner is not None
    assert learner.learner.live.visits > 200
    assert all(done <= bound for works in job.works for done, bound in works)
    made = newest(job.home, query)
    counts, before = made.graph_.counts, known.graph_.counts
    late = counts.bundles.last >= HALF
    assert 5 < late.sum() < len(late)
    assert len(before.bundles) - 5 < (~late).sum()
    reached = np.array([bits.tolist() for bits in counts.maps.values()]).any(axis=0)
    assert reached[late].sum() > 5
    assert late[counts.ends_bundle].any()
    assert counts.visits.sum() >= 0.95 * before.visits.sum()
    assert len(made.graph_.strongest_paths(2)) == 2


def test_without_a_cohort_the_graph_stays_what_it_was(
    query: Query, known: HistoryGraph, work: float, tmp_path: Path
) -> None:
    load, table = Load(Budget.parse("20%"), known, audit=0, full_work=work), stream(HALF, 8, first=HALF)
    known.save(tmp_path / "history")
    job, learner = Job(query, load, tmp_path / "history"), a_refresher(query, load)
    assert learns(job, learner, table) > 1
    counts, before = newest(job.home, query).graph_.counts, known.graph_.counts
    assert counts.visits.sum() == before.visits.sum()
    assert len(counts.bundles) == len(before.bundles)
    assert counts.moves.sum() == before.moves.sum()


def test_a_cohort_is_the_same_however_often_a_shard_is_put_away(query: Query, work: float, tmp_path: Path) -> None:
    """Its open windows are in the state of the shard; each run is told of once."""
    load, table = Load(Budget.parse("20%"), audit=0.9, full_work=work), stream(8000, 9)
    found = []
    for size in (500, 8000):
        job = Job(query, load, tmp_path / "none", 1)
        told = [raw for at in range(0, len(table), size) for raw in job.run(table.slice(at, size), None)]
        found.append(
            Counter(
                (int(tick), int(start), trace.slots[slot], int(place))
                for raw in told
                for sample in samples_from_bytes(raw)
                for trace in sample.outcomes.traces
                for tick, start, slot, place in zip(trace.tick, trace.start, trace.slot, trace.place, strict=True)
                if 1600 <= start < 4800  # at first there is little to spend
            )
        )
    assert sum(found[0].values()) > 100
    assert found[0] == found[1]
