"""Learning a history on Spark, against the same plans without a matcher, on the flights over and over again.

The pass-through reads the events as often, looks for the end of the past in the same way, and moves and sorts the same
columns; identity in Python stands for the exact runs. The driver tries readings on the end of the past; the time of
that does not grow with the past, so it is told apart.
"""

from __future__ import annotations

import logging
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import from_arrow_schema
from rich.markup import escape

from acep_approx import AcepError, compile_query
from acep_approx.events import flights
from acep_approx.spark import train_history
from acep_approx.spark.past.training import _Training, check_past, log
from acep_approx.spark.plan.columns import arrow_schema
from acep_approx.training.past import portions
from experiments.on_spark.plans import Place, spread
from experiments.on_spark.throughput import identity
from experiments.report import Column, Report
from experiments.report import Row as Line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUERY = "PATTERN SEQ(DEP a, ARR b, DEP c) WHERE [key] AND a.delay_min >= 30 AND c.delay_min > a.delay_min WITHIN 24 h"
WANTED = 0.6
MEGA = 1e6


@dataclass(frozen=True)
class Learned:
    """One run of the job: its time, the time until the driver had tried readings, and the most memory of a worker."""

    seconds: float
    trying: float
    memory: int


class _Memory(logging.Handler):
    """Hears how much memory the workers took."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.peak = 0

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg.startswith("peak memory") and isinstance(record.args, tuple):
            self.peak = max(self.peak, int(str(record.args[0])))


def training(report: Report, where: Place, number: int, repeats: int) -> None:
    """Events per second of the job and of its pass-through, and the memory of its workers.

    Parameters
    ----------
    report : Report
    where : Place
    number : int
        Events: of the first flights, or of whole repetitions of all of them, so there may be some more.
    repeats : int
        How often each plan is run, in turns.
    """
    try:
        past = _repeated(where, number)
    except AcepError as missing:
        report.console.print(f"training is left out: {missing}")
        return
    size = past.count()
    ours: list[Learned] = []
    theirs: list[float] = []
    _learn(past)  # loads the kernels
    for turn in range(repeats):
        if turn % 2:
            theirs.append(_pass(past))
        ours.append(_learn(past))
        if not turn % 2:
            theirs.append(_pass(past))
    ratios = [other / one.seconds for one, other in zip(ours, theirs, strict=True)]
    line: Line = {"plan": "train_history", "events": size, **spread([size / one.seconds for one in ours])}
    line["seconds"] = statistics.median(one.seconds for one in ours)
    line["trying"] = statistics.median(one.trying for one in ours)
    line |= {"ratio": statistics.median(ratios), "wanted": WANTED, "memory": max(one.memory for one in ours) / MEGA}
    passed: Line = {"plan": "pass-through", "events": size, **spread([size / one for one in theirs])}
    passed |= {**dict.fromkeys(("trying", "ratio", "wanted", "memory")), "seconds": statistics.median(theirs)}
    columns = [
        Column("plan", "plan"),
        Column("events", "events", ",d"),
        Column("seconds", "seconds", ",.1f"),
        Column("trying", "of these readings", ",.1f"),
        Column("median", "events/s", ",.0f"),
        Column("least", "least", ",.0f"),
        Column("most", "most", ",.0f"),
        Column("ratio", "ratio", ".2f"),
        Column("wanted", "wanted", ".1f"),
        Column("memory", "worker MB", ",.0f"),
    ]
    note = f"{escape(QUERY)}; readings: tried on the driver, on the end of the past; ratio: median of runs in turns"
    report.table("training", "learning a history from the flights, repeated", [line, passed], columns, note)


def _repeated(where: Place, number: int) -> DataFrame:
    """The flights one after the other, aircraft others each time, in a file of their own."""
    table = flights().slice(0, number)
    file = where.written("flights", table.select(["ts", "key", "type", "delay_min"]))
    path = str(where.new("past"))
    options = {"path": str(file), "time": "ts", "repeat": str(-(-number // len(table))), "shift_keys": "key"}
    where.spark.read.format("acep_replay").options(**options).load().write.parquet(path)
    return where.spark.read.parquet(path)


def _learn(past: DataFrame) -> Learned:
    heard, before = _Memory(), log.level
    log.addHandler(heard)
    log.setLevel(logging.DEBUG)
    told: list[tuple[str, float]] = []
    begun = time.perf_counter()
    try:
        train_history(
            past, compile_query(QUERY), time="ts", on_progress=lambda what, _: told.append((what, time.perf_counter()))
        )
    finally:
        log.setLevel(before)
        log.removeHandler(heard)
    trying = [when for what, when in told if what == told[1][0]] if len(told) > 1 else [begun]
    return Learned(time.perf_counter() - begun, trying[-1] - trying[0], heard.peak)


def _pass(past: DataFrame) -> float:
    query = compile_query(QUERY)
    plan = query.plan
    begun = time.perf_counter()
    roles, columns = check_past(arrow_schema(past.schema), query, time="ts")
    job = _Training.of(past, plan, roles, columns, None)
    _, total = job.end()
    kept = job.in_portions(portions(plan, total))
    passed = kept.mapInArrow(identity, from_arrow_schema(arrow_schema(kept.schema)))
    passed.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begun
