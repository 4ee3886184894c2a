"""Runs over a topic in processes of their own, which are killed and go on; and the messages that they read.

``python -m tests.kafka_runs TO_TOPIC BROKERS FROM TO CHECKPOINT [IDLE]`` puts the results of one topic into another.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from tests.patience import until
from tests.processes import ROOT, as_started

QUERY = "PATTERN SEQ(Packed p, Seen s, Loaded l) WHERE [box] WITHIN 60000 ERRORS 1 WEIGHTS (p = 2, l = 2)"
ACEP = [sys.executable, "-m", "acep_approx.cli.main"]


def messages(number: int, seed: int = 1, jitter: int = 0) -> list[bytes]:
    """Events of 50 boxes, one each 100 ticks; with jitter their times are up to so many ticks too early."""
    dice, found = Random(seed), []
    for n in range(number):
        ts, kind = 100 * n - (dice.randrange(jitter) if jitter else 0), dice.choice(["Packed", "Loaded", "Seen"])
        event = {"ts": ts, "n": n, "type": kind, "box": dice.randrange(50)}
        found.append(json.dumps(event).encode())
    return found


def send(broker: Any, topic: str, values: list[bytes], partitions: int, rate: float) -> None:
    """Send messages, so many in a second."""
    producer, begun = broker.producer(**{"linger.ms": 5}), time.monotonic()
    for n, value in enumerate(values):
        producer.produce(topic, value, partition=json.loads(value)["box"] % partitions)
        if n % 50 == 0:
            producer.poll(0)
            time.sleep(max(0.0, begun + n / rate - time.monotonic()))
    assert producer.flush(60) == 0


@contextmanager
def sending(*args: Any) -> Iterator[None]:
    """Send messages while something else is done; all have been sent in the end."""
    thread = threading.Thread(target=send, args=args)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def killed(command: list[str], kills: int, dice: Random, has_begun: Any) -> None:
    """Run a command again and again, and kill it some time after it has begun to do something."""
    for _ in range(kills):
        process = subprocess.Popen(
            command, cwd=ROOT, env=as_started(), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        before = has_begun()
        try:
            until(lambda old=before, its=process: has_begun() != old or its.poll() is not None)
            time.sleep(dice.uniform(0, 0.5))
        finally:
            process.kill()
        assert process.wait() == -9, "it does not end by itself"


def rows(text: str) -> Counter[str]:
    """Lines of JSON, in any order."""
    return Counter(text.splitlines())


def to_topic(brokers: str, source: str, target: str, checkpoint: str, idle: str | None = None) -> None:
    """Put the results of a topic into another one, each at least once."""
    from confluent_kafka import Producer

    from acep_approx import compile_query

    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 5})
    more = {} if idle is None else {"until_idle": idle, "finish": True}
    address = f"kafka://{brokers}/{source}"
    for table in compile_query(QUERY).follow(
        address, checkpoint=checkpoint, checkpoint_every="200 ms", bind=["n"], **more
    ):
        for row in table.to_pylist():
            producer.produce(target, json.dumps(row, sort_keys=True, default=str).encode())
        producer.flush()


if __name__ == "__main__":
    assert sys.argv[1] == "TO_TOPIC"
    to_topic(*sys.argv[2:])
