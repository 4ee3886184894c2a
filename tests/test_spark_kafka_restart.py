"""Jobs from Kafka to Parquet and to Kafka, killed at random moments: ``ACEP_SPARK_KILLS=20`` for ten kills."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep_approx import compile_query
from tests.kafka_runs import QUERY, messages
from tests.spark_kafka_application import AT_ONCE, DELAY, FOLDER, TOPIC
from tests.spark_kills import KILLS, Killed

pytestmark = [
    pytest.mark.xdist_group("kafka"),
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not KILLS, reason="takes minutes: ACEP_SPARK_KILLS=20"),
]

HERE = max(KILLS // 2, 1)
NUMBER = AT_ONCE * (6 + 4 * HERE)


def plain(row: dict[str, Any]) -> str:
    """A match by what identifies it."""
    return json.dumps([row[name] for name in ("box", "errors", "p", "s", "l")])


@pytest.fixture(scope="module")
def values() -> list[bytes]:
    """Messages out of order, and one in the far future, which closes all windows."""
    last = {"ts": 10**9, "n": NUMBER, "type": "Seen", "box": 0}
    return [*messages(NUMBER, jitter=DELAY // 2), json.dumps(last).encode()]


@pytest.fixture(scope="module")
def killed(broker, tmp_path_factory, values) -> Killed:
    """Both jobs, killed some times and then run to their end."""
    broker.topic("killed", 1)
    broker.topic("found", 1)
    broker.send("killed", values)
    words = [broker.address("killed"), broker.address("found")]
    job = Killed("tests.spark_kafka_application", tmp_path_factory.mktemp("kafka"), (FOLDER, TOPIC), words)
    job.run(HERE)
    assert job.kills == job.at_work(FOLDER) == job.at_work(TOPIC) == HERE
    return job


@pytest.fixture(scope="module")
def expected(values) -> Counter[str]:
    """What a run here finds."""
    events = pa.Table.from_pylist([json.loads(value) for value in values]).sort_by("ts")
    found = compile_query(QUERY).match(events, bind="n").to_arrow()
    return Counter(map(plain, found.to_pylist()))


def test_from_kafka_to_parquet_exactly_once(killed, expected):
    assert Counter(map(plain, pq.read_table(killed.folder / FOLDER).to_pylist())) == expected
    assert expected.total() > 100


def test_from_kafka_to_kafka_nothing_is_lost_and_what_comes_twice_says_so(killed, broker, expected):
    found = broker.read("found")
    ids = {tuple(value for _, value in message.headers()): message.value() for message in found}
    assert Counter(plain(json.loads(value)) for value in ids.values()) == expected
    assert {(message.value(), *(value for _, value in message.headers())) for message in found} == {
        (value, *id_) for id_, value in ids.items()
    }
