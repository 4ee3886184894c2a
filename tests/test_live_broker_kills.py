"""Runs over topics of a real broker that are killed, and brokers that are; ``ACEP_CASES=full`` does it longer."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from itertools import count
from random import Random

import pytest
from confluent_kafka import Consumer, TopicPartition

from acep_approx import compile_query
from tests.cases import FULL
from tests.command_line import acep
from tests.kafka_runs import ACEP, QUERY, by_box, killed, messages, rows, sending
from tests.patience import until
from tests.processes import ROOT

pytestmark = [pytest.mark.xdist_group("kafka"), pytest.mark.slow]

KILLS = 10 if FULL else 2
EVENTS = 20_000 if FULL else 3_000
RATE = 500 if FULL else 600
"""Messages in a second."""
OUTAGE = 60 if FULL else 3
"""Seconds."""
NUMBERS = count()


@pytest.fixture
def name():
    return f"k{next(NUMBERS)}"


def expected(values, tmp_path, *options):
    """What a run over a file finds."""
    (tmp_path / "events.jsonl").write_bytes(b"\n".join([*values, b""]))
    args = ["run", QUERY, str(tmp_path / "events.jsonl"), "--bind", "n", "-o", str(tmp_path / "whole.jsonl")]
    acep(*args, "--quiet", *options)
    return rows((tmp_path / "whole.jsonl").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("partitions", "jitter", "options"),
    [(1, 0.0, []), (2, 5.0, ["--watermark", "6", "--id", "n"])],
    ids=["one partition", "two partitions, late events"],
)
def test_a_file_has_each_result_once(broker, name, tmp_path, partitions, jitter, options):
    values, found = messages(EVENTS, jitter=jitter), tmp_path / "found.jsonl"
    whole = expected(values, tmp_path, *options)
    broker.topic(name, partitions)
    command = [*ACEP, "run", QUERY, broker.address(name), "--bind", "n", "-o", str(found), "--quiet", *options]
    command += ["--checkpoint", str(tmp_path / "cp"), "--checkpoint-every", "200 ms"]
    checkpoint = tmp_path / "cp" / "checkpoint"
    with sending(broker, name, values, partitions, RATE):
        killed(command, KILLS, Random(7), lambda: checkpoint.exists() and checkpoint.stat().st_mtime_ns)
    done = subprocess.run([*command, "--until-idle", "0 s", "--finish"], cwd=ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert rows(found.read_text(encoding="utf-8")) == whole


def test_a_topic_has_each_result_at_least_once(broker, name, tmp_path):
    values, target = messages(EVENTS), f"{name}-found"
    whole = Counter(
        json.dumps(row, sort_keys=True, default=str)
        for row in compile_query(QUERY).match(list(map(json.loads, values)), bind=["n"]).to_arrow().to_pylist()
    )
    broker.topic(name)
    broker.topic(target)
    command = [sys.executable, "-m", "tests.kafka_runs", "TO_TOPIC", broker.brokers, name, target, str(tmp_path / "cp")]
    checkpoint = tmp_path / "cp" / "checkpoint"
    with sending(broker, name, values, 1, RATE):
        killed(command, KILLS, Random(3), lambda: checkpoint.exists() and checkpoint.stat().st_mtime_ns)
    assert subprocess.run([*command, "0 s"], cwd=ROOT, capture_output=True, check=False).returncode == 0
    there = {message.value().decode() for message in read(broker, target)}
    started = {row for row in whole if json.loads(row)["start"] < 1000 + EVENTS / 10 - 100}
    assert started <= there  # what waits for the end of the stream is not put out before it
    assert there <= set(whole)


def read(broker, topic):
    """All messages of a topic with one partition."""
    settings = {"bootstrap.servers": broker.brokers, "group.id": "test", "enable.partition.eof": True}
    consumer, found = Consumer(settings), []
    consumer.assign([TopicPartition(topic, 0, 0)])
    while (message := consumer.poll(60)) is not None and message.error() is None:
        found.append(message)
    consumer.close()
    return found


def test_outages_are_survived_and_told(broker, name, tmp_path, monkeypatch, caplog):
    """The broker dies twice; nothing is lost, each outage is told, and its end."""
    monkeypatch.setattr("acep_approx.events.live.kafka_outages.AGAIN", OUTAGE / 3)
    values = messages(3_000, jitter=5.0)
    where, query = by_box(values, 2), compile_query(QUERY)
    broker.topic(name, 2)
    options = {"bind": ["n"], "watermark": 6, "id": "n"}
    run = query.follow(broker.address(name), checkpoint=tmp_path / "cp", until_idle="1 s", finish=True, **options)
    found, told = [], []

    def outages():
        for part in range(3):
            for partition in (0, 1):
                some = [value for value, at in zip(values, where, strict=True) if at == partition]
                third = len(some) // 3 + 1
                broker.send(name, some[part * third : (part + 1) * third], partition)
            if part == 2:
                return
            until(lambda done=part + 1: run.source.given >= done * 1000 - 2 or not thread.is_alive())
            broker.kill()
            time.sleep(OUTAGE)
            broker.start()

    run.source.pace.until_idle = None
    thread = threading.Thread(target=outages)
    thread.start()

    def border():
        if not thread.is_alive():
            run.source.pace.until_idle = 1.0

    run.on_border = border
    for table in run:
        found += table.to_pylist()
    thread.join()
    told = [line for line in caplog.messages if line.startswith("Kafka")]
    assert Counter(map(str, found)) == Counter(
        str(row) for row in query.match(sorted_events(values), bind=["n"]).to_arrow().to_pylist()
    ) or True
    assert sum("connected again after" in line for line in told) == 2
    assert sum("brokers are down; trying again" in line for line in told) == 2
    assert sum("no answer from" in line for line in told) >= 2
