"""Topics of a real broker of Kafka: kills, outages, topics that change while they are read."""

from __future__ import annotations

import json
from itertools import count

import pytest

from acep_approx import compile_query
from tests.live_steps import lines

pytestmark = pytest.mark.xdist_group("kafka")

QUERY = compile_query("PATTERN SEQ(A a, B b) WITHIN 5")
NUMBERS = count()


@pytest.fixture
def topic(broker):
    name = f"t{next(NUMBERS)}"
    broker.topic(name)
    return name


def event(ts, kind, **more):
    return json.dumps({"ts": ts, "type": kind, **more}).encode()


def found(broker, topic, query=QUERY, **more):
    return lines(list(query.follow(broker.address(topic), until_idle=0, **more)))


def test_messages_are_events(broker, topic):
    broker.send(topic, [event(1, "A"), event(2, "B"), event(9, "B")])
    assert [(row["a"], row["b"]) for row in found(broker, topic)] == [(0, 1)]
