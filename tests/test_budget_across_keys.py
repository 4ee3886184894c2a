"""A budget is one for all keys, pieces and shards: however a stream is cut, it finds as much of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from acep_approx import HistoryGraph, compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.budget.budget import Budget
from acep_approx.events.roles import Roles
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import GROUPED_AT_ONCE, Shedder
from acep_approx.spark.streaming.driver import Driver
from acep_approx.spark.worker.job import Job, Spending
from experiments.learning.drifts import swapped
from tests.spark_driving import micro_batches

Ints = npt.NDArray[np.int64]
HALF, BUDGET, MICRO_BATCH = 60_000, "10%", 2_000
LONG, LARGE = 100_000, 50_000
STREAM = swapped(2, HALF)
QUERY = compile_query(STREAM.query, engine="runs")


def ends(found: pa.Table) -> Ints:
    """Ticks at which there is a match point."""
    return np.unique(found.column("end").to_numpy())


def recall(exact: Ints, found: Ints, first: int, end: int) -> float:
    """Of the match points from a tick on, before another."""
    wanted = exact[(exact >= first) & (exact < end)]
    return float(np.isin(wanted, found).mean())


@pytest.fixture(scope="module")
def whole() -> tuple[pa.Table, Ints, float]:
    """All events, each with a number, the ticks of the match points, and run-steps per event of the exact run."""
    events = pa.concat_tables([STREAM.before, STREAM.after]).combine_chunks()
    events = events.append_column("number", pa.array(np.arange(len(events))))
    matches = QUERY.match(events, bind="number")
    return events, ends(matches.points()), matches.work.steps / len(events)


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history of what was before the change."""
    home = tmp_path_factory.mktemp("old") / "history"
    HistoryGraph(QUERY).fit(STREAM.before).save(home)
    return home


def test_a_budget_finds_as_much_in_a_large_piece_as_in_small_ones(whole: tuple[pa.Table, Ints, float], old: Path):
    """Only a quarter of the keys leads to matches; in a piece the events of a key come together."""
    _, exact, full = whole
    shares = []
    for size in (GROUPED_AT_ONCE, HALF):
        shedder = Shedder(QUERY.plan, Load(Budget.parse(BUDGET), HistoryGraph.load(old, QUERY), full_work=full))
        matcher = Matcher(QUERY.plan, shedding=shedder)
        for first in range(0, HALF, size):
            matcher.push(STREAM.before.slice(first, size))
        shares.append(recall(exact, shedder.metrics.points.joined("tick"), 0, HALF))
    small, large = shares
    assert small > 0.8
    assert large > small - 0.05


def in_shards(
    events: pa.Table, shards: int, size: int, full: float, old: Path, place: Path
) -> tuple[Ints, list[SimpleNamespace]]:
    """Ticks of the match points that a job on Spark finds, which learns, and its metrics; without Spark."""
    control, history = place / "control", place / "history"
    control.mkdir(parents=True)
    shutil.copytree(old, history)
    load = Spending(Budget.parse(BUDGET), str(history), str(control), full_work=full, learns=True)
    job = Job(QUERY, events.schema, Roles("ts", None, "type", None), ("number",), "number", "points", shards, load)
    driver, found, rows = Driver(job, control), list[Ints](), list[SimpleNamespace]()
    steps = micro_batches(job, events, {}, key="id", size=size, finds=lambda results: found.append(ends(results)))
    for batch, metrics in enumerate(steps):
        driver.process(metrics, batch)
        rows += metrics
    return np.unique(np.concatenate(found)), rows


@pytest.mark.parametrize("shards", [1, 4])
def test_many_shards_that_learn_find_what_one_process_finds(
    shards: int, whole: tuple[pa.Table, Ints, float], old: Path, tmp_path: Path
):
    """Before the stream changes, and after it (means over three streams), in micro-batches of 2,000 events."""
    events, exact, full = whole
    known = HistoryGraph.load(old, QUERY)
    here, there = in_one(events, known, full), in_shards(events, shards, MICRO_BATCH, full, old, tmp_path / "one")[0]
    before = recall(exact, there, 0, HALF)
    assert before > recall(exact, here, 0, HALF) - 0.15  # at first each shard must come to a price of its own
    one, many = after_changes(shards, MICRO_BATCH, tmp_path, HALF)
    assert many > one - 0.1
    assert many > frozen_recall(whole, known) + 0.4


def in_one(events: pa.Table, known: HistoryGraph, full: float) -> Ints:
    """Ticks of the match points that a run in one process finds, which learns."""
    return ends(QUERY.match_within(events, BUDGET, history=known, learn=True, bind="number", full_work=full).points())


def test_one_shard_learns_within_a_large_micro_batch_as_one_process_does(tmp_path: Path):
    """After a change, in micro-batches of 50,000 events: means over three streams; learning in time, and in budget."""
    here, there = after_changes(1, LARGE, tmp_path)
    assert there > here - 0.05


@pytest.mark.slow
@pytest.mark.parametrize("size", [MICRO_BATCH, LARGE])
def test_four_shards_learn_in_large_micro_batches_too(size: int, tmp_path: Path):
    """Of few keys that matter, which lie in one or two shards: these learn alone until the micro-batch ends.

    They are asked for less, also because the budget of a shard changes from one micro-batch to the next only.
    """
    here, there = after_changes(4, size, tmp_path)
    assert there > here - (0.05 if size == MICRO_BATCH else 0.3)


def after_changes(shards: int, size: int, place: Path, half: int = LONG) -> tuple[float, float]:
    """Recall after a change, the means over three streams: of one process that learns, and of shards.

    The bound of each large micro-batch is held to where there is one shard; else what was saved may be spent.
    """
    here, there = [], []
    for seed in range(1, 4):
        events, before, exact, full = changed(seed, half)
        home = place / f"old {seed}"
        HistoryGraph(QUERY).fit(before).save(home)
        here.append(recall(exact, in_one(events, HistoryGraph.load(home, QUERY), full), half, 2 * half))
        found, rows = in_shards(events, shards, size, full, home, place / str(seed))
        there.append(recall(exact, found, half, 2 * half))
        if shards == 1 and size == LARGE:
            assert all(row.steps <= row.bound for row in rows)
    return float(np.mean(here)), float(np.mean(there))


def changed(seed: int, half: int) -> tuple[pa.Table, pa.Table, Ints, float]:
    """A stream that changes after some events, what comes before that, the ticks of its match points, full work."""
    stream = swapped(seed, half)
    events = pa.concat_tables([stream.before, stream.after]).combine_chunks()
    events = events.append_column("number", pa.array(np.arange(len(events))))
    matches = QUERY.match(events, bind="number")
    return events, stream.before, ends(matches.points()), matches.work.steps / len(events)


def frozen_recall(whole: tuple[pa.Table, Ints, float], known: HistoryGraph) -> float:
    """Recall after the change of a history that does not learn."""
    events, exact, full = whole
    found = QUERY.match_within(events, BUDGET, history=known, bind="number", full_work=full).points()
    return recall(exact, ends(found), HALF, 2 * HALF)
