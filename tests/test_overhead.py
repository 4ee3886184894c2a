"""What a micro-batch takes beside its matchers: simulated durations, and files that are not whole."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from acep_approx.budget.budget import Budget
from acep_approx.shedding.timing import LEAST_SHARE, Overhead
from acep_approx.spark.streaming.driver import FORECASTS, Driver
from acep_approx.spark.worker.spending import Spending
from tests.cases import FULL
from tests.patience import ended
from tests.spark_driving import job_of, stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BUDGET, ROWS = 2.0, 300_000
Beside = Callable[[int, int], float]


def simulated(beside: Beside, batches: int = 400, rate: float = ROWS / BUDGET) -> np.ndarray:
    """Seconds of micro-batches: one that takes long has the next one get more rows."""
    known, took, rows = Overhead(), [], ROWS
    for batch in range(batches):
        matchers = known.granted(Budget(BUDGET * 1e3, "ms/batch"), rows, rows // 2).amount / 1e3
        spark = beside(batch, rows)
        took.append(spark + matchers)
        known = known.observe(batch, rows, spark)
        rows = int(rate * max(took[-1], BUDGET))
    return np.array(took)


def noisy(batch: int, rows: int) -> float:
    """A tenth more or less."""
    return (0.4 + rows * 2e-6) * float(np.random.default_rng(batch).lognormal(0, 0.1))


@pytest.mark.parametrize(
    "beside",
    [
        pytest.param(lambda _, __: 0.7, id="constant"),
        pytest.param(lambda _, rows: 0.3 + rows * 2e-6, id="grows with the rows"),
        pytest.param(noisy, id="noise"),
        pytest.param(lambda n, rows: noisy(n, rows) + (0.3 if n >= 200 else 0.0), id="sudden change"),
        pytest.param(lambda n, rows: noisy(n, rows) + (5.0 if n == 200 else 0.0), id="one slow micro-batch"),
    ],
)
def test_nineteen_of_twenty_micro_batches_stay_within_the_budget(beside):
    took = simulated(beside)[5:]
    assert np.percentile(took, 95) <= BUDGET
    assert np.median(took) >= 0.8 * BUDGET  # and what there is, is used


def test_one_slow_micro_batch_does_not_starve_those_after_it():
    took = simulated(lambda n, _: 5.0 if n == 50 else 0.7, 100)
    assert np.median(took[60:]) >= 0.8 * BUDGET


def test_the_slow_start_of_a_job_is_forgotten_at_once():
    took = simulated(lambda n, rows: (13.0, 7.0, 4.0)[n] if n < 3 else 0.3 + rows * 2e-6, 30)
    assert took[8:].max() <= BUDGET
    assert np.median(took[8:]) >= 0.8 * BUDGET


def test_rows_that_were_never_as_many_are_forecast_from_those_before():
    known = Overhead()
    for batch in range(30):
        rows = 100_000 + 10_000 * (batch % 7)
        known = known.observe(batch, rows, 0.5 + 2e-6 * rows)
    assert known.seconds(400_000) == pytest.approx(1.3, rel=0.1)


def test_a_micro_batch_that_is_told_twice_counts_once():
    known = Overhead().observe(3, 1000, 0.5)
    assert known.observe(3, 1000, 9.0) is known
    assert known.observe(2, 1000, 9.0) is known


@pytest.mark.parametrize("budget", ["2000 ms/batch", "1000 events/s"])
def test_something_is_left_to_matchers_however_slow_the_rest_is(budget):
    whole = Budget.parse(budget)
    given = Overhead(100.0, batch=3).granted(whole, 2000, 1000)
    least = given.amount / whole.amount if whole.unit == "ms/batch" else whole.amount / given.amount
    assert least == pytest.approx(LEAST_SHARE)


def test_what_was_measured_is_gone_on_with(tmp_path: Path):
    known = Overhead().observe(0, 1000, 0.5).observe(1, 2000, 0.7)
    known.save(tmp_path)
    assert Overhead.load(tmp_path) == known
    assert Overhead.load(tmp_path / "none") == Overhead()


@pytest.mark.parametrize(
    "wrong",
    [
        {"base": -1.0}, {"per_row": float("nan")}, {"margin": None}, {"products": [1.0]},
        {"answers": [float("inf"), 0]}, {"of_shards": [-1.0]}, {"of_shards": 3},
    ],
)
def test_a_file_that_cannot_be_one_tells_nothing(tmp_path: Path, wrong):
    known = Overhead().observe(0, 1000, 0.5)
    known.save(tmp_path)
    place = tmp_path / Overhead.FILE
    place.write_text(json.dumps({**json.loads(place.read_text()), **wrong}))
    assert Overhead.load(tmp_path) == Overhead()
    for content in (b"", b"{", b"[3]", b"\xff\xfe"):
        place.write_bytes(content)
        assert Overhead.load(tmp_path) == Overhead()


def driver_of(control: Path, budget: str) -> Driver:
    """Of a job of three shards on two cores."""
    spending = Spending(Budget.parse(budget), None, str(control), 2)
    return Driver(replace(job_of(stream(1), control), spending=spending), control)


def row(shard: int, spent: float, granted: float = 0.0, events: int = 1000) -> SimpleNamespace:
    """Metrics of a shard."""
    return SimpleNamespace(
        shard=shard, events=events, weight=1.0, steps=10, bound=10, price=0.0, spent=spent, granted=granted, payload=b""
    )


def test_time_of_a_core_adds_up_and_what_was_not_granted_does_not_count(tmp_path: Path):
    driver = driver_of(tmp_path, "2 s/batch")
    for batch in range(2):
        driver.process([row(0, 0.5, 0.4), row(1, 0.4, 0.4), row(2, 0.4, 0.4)], batch)
        driver.measured(batch, 3000, 1.6)
    known = Overhead.load(tmp_path)
    assert known.batch == 1  # the first one loads kernels
    assert known.answers[0] == pytest.approx(1.0)


def test_a_shard_with_few_of_the_events_knows_how_many_there_are_in_all(tmp_path: Path):
    """By what part of them it got before: were its own rows those of a shard of the mean, it would be granted more."""
    driver, granted = driver_of(tmp_path, "2 s/batch"), []
    for batch in range(20):
        of_shards = [100_000, 200_000, 600_000]
        metrics = [row(shard, 0.4, 0.4, events) for shard, events in enumerate(of_shards)]
        driver.process(metrics, batch)
        driver.measured(batch, 900_000, 1.0 + batch % 2 * 0.01)
        granted = [driver.job.granted(shard, 2 * own, own).amount for shard, own in enumerate(of_shards)]
    assert max(granted) < 1.01 * min(granted)


def test_it_is_said_once_that_spark_alone_takes_longer_than_the_budget(tmp_path: Path, caplog):
    driver = driver_of(tmp_path, "100 ms/batch")
    for batch in range(3 * FORECASTS):
        driver.process([row(0, 0.01)], batch)
        driver.measured(batch, 1000, 3.0)
    assert caplog.text.count("Spark alone takes") == 1
    assert "larger budget, fewer shards" in caplog.text


@pytest.mark.xdist_group("spark")
def test_spark_tells_how_long_micro_batches_take(spark: SparkSession, tmp_path: Path):
    import pyarrow.parquet as pq

    from acep_approx.spark import start
    from tests.spark_driving import BATCH, QUERY

    batches = 5 if FULL else 3
    events, arrived = stream(batches), tmp_path / "arrived"
    arrived.mkdir()
    for number in range(batches):
        file = arrived / f"{number}.parquet"
        pq.write_table(events.slice(number * BATCH, BATCH), file)
        os.utime(file, (10**9 + number,) * 2)  # Spark reads the oldest first
    schema = spark.read.parquet(str(arrived)).schema
    read = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(arrived))
    load = {"budget": "1500 ms/batch", "policy": "random"}
    matcher = QUERY.spark(time="ts", id="id", output="points", shards=2, watermark="1 millisecond", **load)
    places = {"to": tmp_path / "found", "checkpoint": tmp_path / "checkpoint"}
    ended(start(matcher, read, **places, until_done=True))
    control = tmp_path / "checkpoint" / "acep"
    known = Overhead.load(control)
    assert known.batch > 0
    granted = known.granted(Budget.parse("1500 ms/batch"), 2 * BATCH, BATCH)
    assert 0 < granted.amount < 1500
