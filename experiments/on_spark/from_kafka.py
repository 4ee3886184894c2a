"""Throughput from a topic of Kafka, against jobs without a matcher that read the same topic.

One only reads messages as events; the other also does all that the matcher's plan does but match, as in ``throughput``.
The broker is a real one, started for this, on the same machine.
"""

from __future__ import annotations

import shutil
import statistics
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from acep_approx.events.writing.tables import json_lines
from acep_approx.spark import read_topics
from experiments.on_spark.plans import CORES, Place, drained, rates, steady
from experiments.on_spark.throughput import KEPT, KEYS, MATCHER, RATES, events, in_lines, matcher, streaming
from experiments.report import Report
from tests.kafka_broker import Broker, NoBroker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

READS = "reads only"
PLANS = (MATCHER, READS, KEPT)
TOPIC = "events"
WANTED = 0.7
SENT = 50_000


def from_kafka(report: Report, where: Place, each: int, repeats: int, batches: int, seed: int) -> None:
    """Events per second from a topic; the arguments of ``throughput``."""
    folder = Path(mkdtemp(prefix="broker-"))
    try:
        broker = Broker(folder)
    except NoBroker as error:
        report.console.print(f"from a topic of Kafka: not measured, as there is no broker: {error}")
    else:
        try:
            sent(broker, each * batches, seed)
            _table(report, where, broker.address(TOPIC), each, repeats)
        finally:
            broker.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sent(broker: Broker, number: int, seed: int) -> None:
    """Send the events of a stream, in turns to the partitions: as many as there are cores."""
    broker.topic(TOPIC, CORES)
    table = events(0, number, seed)
    lines = bytes(json_lines(table.set_column(0, "ts", table.column("ts").cast("int64")))).splitlines()
    for first in range(0, number, SENT):  # a client holds so many at a time
        for partition in range(CORES):
            broker.send(TOPIC, lines[first + partition : first + SENT : CORES], partition)


def _table(report: Report, where: Place, address: str, each: int, repeats: int) -> None:
    found: dict[str, list[float]] = {plan: [] for plan in PLANS}
    for turn in range(repeats):
        for plan in PLANS[turn % 3 :] + PLANS[: turn % 3]:
            read = read_topics(where.spark, address, time="ts", unit="us", at_once=each)
            done = steady(drained(_stream(read, plan), where.new("checkpoint")))
            found[plan].append(statistics.median(rates(done)))
    lines = in_lines("from a topic", each, found, wanted=WANTED)
    note = f"medians of runs in turns; {CORES} partitions; reads only: messages as events, and no more"
    report.table("from_kafka", f"from a topic of Kafka, {KEYS:,} keys, local[{CORES}]", lines, RATES, note)


def _stream(read: DataFrame, plan: str) -> DataFrame:
    return read if plan == READS else streaming(matcher("us").flow(read), plan)
