"""Runs over topics of a real broker that are killed, and brokers that are; ``ACEP_CASES=full`` does it longer."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from random import Random

import pytest

from acep_approx import compile_query
from tests.cases import FULL
from tests.command_line import acep
from tests.kafka_runs import ACEP, QUERY, killed, messages, rows, send, sending
from tests.patience import until
from tests.processes import ended

pytestmark = [pytest.mark.xdist_group("kafka"), pytest.mark.slow]

KILLS = 10 if FULL else 2
EVENTS = 20_000 if FULL else 3_000
RATE = 500 if FULL else 1_000
"""Messages in a second."""
OUTAGE = 60 if FULL else 3
"""Seconds."""
IDLE = 3
"""Seconds after which a run ends; an outage, which takes longer until the broker is there, does not end it."""
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
    [(1, 0, []), (2, 5000, ["--watermark", "6000", "--id", "n"])],
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
    done = ended(*command, "--until-idle", "0 s", "--finish")
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
    assert ended(*command, "0 s").returncode == 0
    there = {message.value().decode() for message in broker.read(target)}
    assert there == set(whole)


def test_outages_are_survived_and_told(broker, name, tmp_path, monkeypatch, caplog):
    """The broker dies twice; nothing is lost, each outage is told, and its end."""
    monkeypatch.setattr("acep_approx.events.live.kafka.AGAIN", OUTAGE / 3)
    options = {"watermark": 6000, "id": "n"}
    values = messages(3_000, jitter=5000)
    whole = [json.loads(row) for row in expected(values, tmp_path, "--watermark", "6000", "--id", "n")]
    broker.topic(name, 2)
    send(broker, name, values[:1000], 2, 1e9)
    run = compile_query(QUERY).follow(
        broker.address(name), checkpoint=tmp_path / "cp", finish=True, bind=["n"], until_idle=IDLE, **options
    )

    def outages():
        for first in (1000, 2000):
            until(lambda there=first: run.source.given >= there)
            broker.kill()
            time.sleep(OUTAGE)
            broker.start()
            send(broker, name, values[first : first + 1000], 2, 1e9)

    with ThreadPoolExecutor(1) as pool:
        during = pool.submit(outages)
        during.add_done_callback(lambda done: done.exception() and run.stop())  # nothing would end an outage
        found = [row for table in run for row in table.to_pylist()]
        during.result()
    assert Counter((row["p"], row["s"], row["l"]) for row in found) == Counter(
        (row["p.n"], row["s.n"], row["l.n"]) for row in whole
    )
    told = [line for line in caplog.messages if line.startswith("Kafka")]
    for words, times in ((" answers; trying again", 2), ("connected again after", 2)):
        assert sum(words in line for line in told) == times, told
    assert sum("has answered for" in line for line in told) >= 2 * 2
