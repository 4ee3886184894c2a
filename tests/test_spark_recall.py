"""The recall of a job on Spark: the sums of its shards say what a run on one machine says. No JVM is needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import compile_query
from acep_approx.budget.audit import AuditSample, Members
from acep_approx.engines.runs.worth import REASONS
from acep_approx.pages.budget.lines import recall_words
from acep_approx.spark.streaming.audit import JobAudit
from acep_approx.spark.worker.audited import BY_ENDS, CELLS, GROUPS
from acep_approx.spark.worker.shard import Shard, ShardMetrics
from tests.cases import cases

QUERY = compile_query(
    "PATTERN SEQ(A a, B b, C c) WHERE [user] AND b.x > a.x + 10 AND c.x > b.x + 10 WITHIN 5 min ERRORS 1", engine="runs"
)
BUDGET = {"budget": "2 steps/event", "policy": "random"}
SHARDS = 2


@cache
def events(seed: int, number: int = 8000, users: int = 12) -> pa.Table:
    dice = np.random.default_rng(seed)
    ticks = np.cumsum(dice.exponential(1.0, number)).astype(np.int64) * 10**6
    return pa.table(
        {
            "ts": pa.array(ticks, pa.timestamp("us", "UTC")),
            "user": dice.integers(0, users, number),
            "type": dice.choice(["A", "B", "C"], number),
            "x": dice.integers(0, 50, number),
            "event": np.arange(number),
        }
    )


def summed(metrics: Sequence[ShardMetrics]) -> JobAudit:
    """What Spark adds up, read as it is read."""
    sums: Counter[str] = Counter()
    names = {"audited_in": "audited", "kept_in": "kept"}
    for one in metrics:
        for name, value in vars(one).items():
            if isinstance(value, tuple):
                sums.update({f"{names.get(name, name)}_{place}": part for place, part in enumerate(value)})
            elif name != "audit":
                sums[name] += value
    return JobAudit.of({**sums, "audit": max(one.audit for one in metrics)})


def job_audit(table: pa.Table, seed: int, pieces: int, *, is_stream: bool) -> JobAudit:
    """The audit of a job: a batch, or a stream whose shards are saved after each micro-batch."""
    job = QUERY.spark(id="event", seed=seed, **BUDGET).job(table.schema, is_stream=is_stream, shards=SHARDS)
    metrics = []
    for number in range(SHARDS):
        mine = table.filter(pa.array(table["user"].to_numpy() % SHARDS == number)).select(job.schema.names)
        shard, size = Shard(job, number), -(-len(mine) // pieces)
        for first in range(0, len(mine), size):
            metrics.append(shard.process_sorted(mine.slice(first, size)).metrics)
            shard = Shard(job, number, shard.to_bytes()) if is_stream else shard
        if not is_stream:
            metrics.append(shard.finish().metrics)
    return summed(metrics)


@pytest.mark.parametrize(("is_stream", "number", "most_wide"), [(False, 8000, 1.25), (True, 20_000, 1.5)])
def test_the_interval_is_that_of_a_run_on_one_machine_and_holds_the_truth(is_stream, number, most_wide):
    held, widths, here = 0, [], []
    seeds = range(cases(120, 10))
    for seed in seeds:
        table = events(seed, number)
        audit = job_audit(table, seed, 5, is_stream=is_stream)
        estimate, true = audit.recall(), QUERY.match(table).points().num_rows
        assert audit.how == BY_ENDS
        assert estimate.recall is not None, estimate.reason
        held += estimate.low <= audit.found / true <= estimate.high
        widths.append(estimate.high - estimate.low)
        run = QUERY.match_within(table, seed=seed, **BUDGET)
        run.to_arrow()
        alone = run.record().recall
        here.append(alone.high - alone.low)
    assert held >= 0.9 * len(seeds)
    assert np.mean(widths) < most_wide * np.mean(here)


def test_where_nothing_was_looked_at_there_is_no_number():
    audit = job_audit(events(1, 1000), 1, 1, is_stream=True)
    assert not audit.ends.tried
    estimate = audit.recall()
    assert estimate.recall is None
    assert recall_words(estimate).startswith("too little is known for a number: a larger audit")
    assert estimate.low == pytest.approx(audit.found / (audit.found + audit.ends.open))
    assert estimate.high == 1
    assert recall_words(JobAudit().recall()).startswith("unknown: no match point")


def test_micro_batches_add_up_in_any_order():
    parts = [job_audit(events(seed, 6000), seed, 2, is_stream=False) for seed in (1, 2, 3)]
    one = parts[0].combine(parts[1]).combine(parts[2])
    other = parts[2].combine(parts[0].combine(parts[1]))
    assert (one.found, one.audited, one.cells) == (other.found, other.audited, other.cells)
    assert one.ends.tried == other.ends.tried > 0
    assert one.recall().low == pytest.approx(other.recall().low)


def test_shards_that_shed_nothing_are_not_audited():
    assert summed([ShardMetrics(events=5, shed=(0,) * len(REASONS))]).how == 0


@pytest.mark.parametrize("number", [12, 60, 400])
def test_groups_of_cells_hold_the_truth_as_cells_do(number):
    """Cells of different sizes, whose match points share much of their fate; the share that is found is known."""
    dice, held, by_cells = np.random.default_rng(number), 0, 0
    widths = np.zeros(2)
    tries = cases(2400, 400)
    for _ in range(tries):
        points = dice.geometric(0.2, number)
        found = dice.binomial(points, dice.beta(2.4, 0.6, number))
        ids = np.sort(dice.choice(2**40, number, replace=False))
        cells = AuditSample(ids, found, points)
        of_group = np.array([np.bincount(ids % GROUPS, column, GROUPS) for column in (points, found)], np.int64)
        of_cells = Members(number, int(points @ points))
        grouped = JobAudit(audited=tuple(of_group[0]), kept=tuple(of_group[1]), cells=of_cells, how=CELLS)
        intervals = [cells.estimate(), grouped.recall()]
        by_cells += intervals[0].low <= 0.8 <= intervals[0].high
        held += intervals[1].low <= 0.8 <= intervals[1].high
        widths += [one.high - one.low for one in intervals]
        assert intervals[0].recall == pytest.approx(intervals[1].recall)
        assert intervals[1].cells == number
    assert held > 0.94 * tries
    assert by_cells > 0.94 * tries
    assert widths[1] < 1.25 * widths[0]
