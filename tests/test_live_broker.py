"""Topics of a real broker of Kafka: topics that are deleted or grow while they are read, partitions without events."""

from __future__ import annotations

import json
import logging
import time
from itertools import count

import pytest

from acep_approx import compile_query
from acep_approx.errors import DataError, UsageError
from acep_approx.events.live import kafka
from tests.command_line import acep
from tests.live_steps import lines

pytestmark = pytest.mark.xdist_group("kafka")

TEXT = "PATTERN SEQ(A a, B b) WITHIN 5"
QUERY = compile_query(TEXT)
NUMBERS = count()
SOON = {"fetch.wait.max.ms": 50}
"""The broker soon says that there is nothing more."""
LIMIT = 120
"""Seconds after which what a followed run is to find is taken never to come."""


@pytest.fixture
def topic(broker):
    name = f"t{next(NUMBERS)}"
    broker.topic(name)
    return name


@pytest.fixture
def said(caplog):
    """The lines that were logged so far."""
    caplog.set_level(logging.WARNING, "acep_approx.live")
    return lambda: caplog.messages


def event(ts, kind, **more):
    return json.dumps({"ts": ts, "type": kind, **more}).encode()


def pairs(*times):
    """For each time an A, and a B one later."""
    return [event(ts + late, kind) for ts in times for late, kind in enumerate("AB")]


def found(broker, topic, query=QUERY, partition=None, **more):
    address = broker.address(topic) if partition is None else broker.address(topic, partition=partition)
    return lines(list(query.follow(address, **{"until_idle": 0, "kafka": SOON, **more})))


def followed(broker, topic, *steps, **more):
    """The rows of a run that follows a topic; each step tells whether it was done."""
    results = []
    follow_into(results, broker, topic, *steps, **more)
    return results


def follow_into(results, broker, topic, *steps, **more):
    """Take down the rows of a run that follows a topic, which may end in an error."""
    run = QUERY.follow(broker.address(topic), kafka=SOON, **more)
    left, last = list(steps), time.monotonic() + LIMIT

    def border():
        assert time.monotonic() < last, "what is awaited does not come"
        if left and left[0](run, len(results)):
            left.pop(0)
        elif not left:
            run.stop()

    run.on_border = border
    for table in run:
        results += table.to_pylist()


def when(rows, step):
    """A step that is done as soon as there are this many results."""

    def ready(run, results):
        if results >= rows:
            step()
        return results >= rows

    return ready


def test_messages_are_events(broker, topic):
    broker.send(topic, [event(1, "A"), event(2, "B"), event(9, "B")])
    assert [(row["a"], row["b"]) for row in found(broker, topic)] == [(0, 1)]


# --- a topic that is deleted, and created again -------------------------------------------------------------------


def test_a_topic_of_the_same_name_is_not_gone_on_with(broker, topic, tmp_path):
    options = {"checkpoint": tmp_path / "cp"}
    broker.send(topic, pairs(1, 11))
    assert len(found(broker, topic, **options)) == 2
    broker.delete(topic)
    broker.topic(topic)
    for values in (pairs(1, 11, 21), []):
        with pytest.raises(DataError, match="another one than it was") as caught:
            found(broker, topic, **options)
        assert caught.value.code == "ACEP-D171"
        broker.send(topic, values)
    assert len(found(broker, topic, checkpoint=tmp_path / "other")) == 3


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_topic_of_the_same_name_is_noticed_while_it_is_followed(broker, topic, tmp_path, is_kept):
    """No message of the new one is taken for the next one of the old."""

    def anew():
        broker.delete(topic)
        broker.topic(topic)
        broker.send(topic, pairs(1, 11, 21, 31))

    broker.send(topic, pairs(1, 11))
    more = {"checkpoint": tmp_path / "cp", "checkpoint_every": 0} if is_kept else {}
    results = []
    with pytest.raises(DataError, match="another one than it was") as caught:
        follow_into(results, broker, topic, when(2, anew), lambda *_: False, **more)
    assert caught.value.code == "ACEP-D171"
    assert [row["start"] for row in results] == [1, 11]


def test_a_group_does_not_take_over_offsets_of_a_deleted_topic(broker, topic):
    def anew():
        broker.delete(topic)
        broker.topic(topic)
        broker.send(topic, pairs(1))

    broker.send(topic, pairs(1, 11))
    grouped = f"{topic}?group=of-{topic}"
    with pytest.raises(DataError, match="another one than it was"):
        followed(broker, grouped, when(2, anew), lambda *_: False)
    assert len(found(broker, grouped)) == 1


def test_a_checkpoint_without_an_id_of_the_topic_goes_on(broker, topic, tmp_path, monkeypatch):
    """As one of an earlier version, or of a broker that gives none."""
    broker.send(topic, pairs(1))
    monkeypatch.setattr(kafka.TopicWatch, "first", lambda _: None)
    monkeypatch.setattr(kafka.TopicWatch, "look", lambda *_, **__: None)
    assert len(found(broker, topic, checkpoint=tmp_path / "cp")) == 1
    monkeypatch.undo()
    broker.send(topic, pairs(11))
    assert len(found(broker, topic, checkpoint=tmp_path / "cp")) == 1


def test_a_topic_that_is_deleted_ends_the_run(broker, topic, said, monkeypatch):
    monkeypatch.setattr(kafka, "GONE", 0.2)
    broker.send(topic, pairs(1))
    with pytest.raises(DataError, match="was deleted") as caught:
        followed(broker, topic, when(1, lambda: broker.delete(topic)), lambda *_: False, until_idle="1 h")
    assert caught.value.code == "ACEP-D172"
    assert said() == [f"Kafka: the topic '{topic}' is not there"]


# --- partitions that are added ------------------------------------------------------------------------------------


def test_a_partition_that_is_added_is_read(broker, topic, said, tmp_path):
    broker.send(topic, pairs(1, 11, 21))
    options = {"watermark": 2, "checkpoint": tmp_path / "cp"}

    def send():
        broker.send(topic, pairs(31, 41), 1)
        broker.send(topic, pairs(51, 61, 71), 0)
        broker.send(topic, pairs(71), 1)

    steps = [when(2, lambda: broker.grow(topic, 2)), lambda *_: len(said()) > 0, when(2, send), when(7, lambda: None)]
    rows = followed(broker, topic, *steps, **options)
    assert said() == [f"Kafka: partition 1 was added to the topic '{topic}'; it is read, too"]
    assert sorted(row["start"] for row in rows) == [1, 11, 21, 31, 41, 51, 61]
    broker.send(topic, pairs(91), 0)
    broker.send(topic, pairs(91), 1)
    rows = found(broker, topic, **options, finish=True)
    assert {row["start"] for row in rows} == {71, 91}


def test_a_partition_that_is_added_between_runs_is_waited_for(broker, topic, said, tmp_path):
    """The messages of the first one, which are there too, and come first, do not make those of the new one late."""
    options = {"watermark": 2, "checkpoint": tmp_path / "cp"}
    broker.send(topic, pairs(1, 11))
    found(broker, topic, **options)
    broker.grow(topic, 2)
    broker.send(topic, pairs(*range(51, 501, 10)))
    broker.send(topic, pairs(21, 31), 1)
    rows = found(broker, topic, **options, finish=True)
    assert sorted(row["start"] for row in rows)[:4] == [11, 21, 31, 51]
    assert said() == [f"Kafka: partition 1 was added to the topic '{topic}'; it is read, too"]


def test_where_order_counts_an_added_partition_stops_the_run(broker, topic, tmp_path):
    options = {"checkpoint": tmp_path / "cp"}
    broker.send(topic, pairs(1))
    assert len(found(broker, topic, **options)) == 1
    broker.send(topic, pairs(11))
    with pytest.raises(UsageError, match="2 partitions") as caught:
        followed(broker, topic, when(1, lambda: broker.grow(topic, 2)), lambda *_: False, **options)
    assert caught.value.code == "ACEP-U141"
    with pytest.raises(UsageError, match="2 partitions") as caught:
        found(broker, topic, **options)
    assert caught.value.code == "ACEP-U141"
    assert "go on without the others: ?partition=0" in str(caught.value)
    broker.send(topic, pairs(21))
    for _ in range(2):  # the repair, and the same command once more
        rows = found(broker, topic, partition=0, **options)
        broker.send(topic, pairs(31))
    assert [row["start"] for row in rows] == [31]
    with pytest.raises(DataError, match="of another run") as caught:
        found(broker, topic, partition=1, **options)
    assert caught.value.code == "ACEP-D064"


# --- partitions without events ------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["tombstones", "malformed", "no time", "aborted"])
@pytest.mark.parametrize("idle", [None, 1000])
def test_a_partition_without_events_holds_nothing_back(broker, what, idle, tmp_path):
    name = f"t{next(NUMBERS)}"
    broker.topic(name, 3)
    values = {"tombstones": None, "malformed": b"garbage", "no time": b'{"type": "A"}', "aborted": event(1, "A")}
    if what == "aborted":
        producer = broker.producer(**{"transactional.id": name})
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce(name, values[what], partition=1)
        producer.flush()
        producer.abort_transaction()
    else:
        broker.send(name, [values[what]] * 3, 1)
    broker.send(name, pairs(*range(1, 101, 10)))
    options = {"watermark": 2, "on_malformed": "skip", "checkpoint": tmp_path / "cp"}
    if idle is not None:
        options["idle"] = idle
    rows = found(broker, name, **options)
    assert [row["start"] for row in rows] == [*range(1, 91, 10)]
    broker.send(name, pairs(101), 0)
    broker.send(name, pairs(101), 1)  # from its first event on it counts
    broker.send(name, pairs(111), 0)
    rows = found(broker, name, **options)
    assert [row["start"] for row in rows] == [91]


def test_two_partitions_of_which_one_is_read_first(broker):
    """Also where sources that are silent are not waited for."""
    name = f"t{next(NUMBERS)}"
    broker.topic(name, 2)
    broker.send(name, pairs(*range(1, 3000, 10)), 0)
    broker.send(name, pairs(*range(1, 3000, 10)), 1)
    for more in ({}, {"idle": 50_000}):
        rows = found(broker, name, watermark=2, **more)
        assert len(rows) == 4 * 300


def test_the_page_of_a_topic_shows_what_was_found(broker, tmp_path):
    name = f"t{next(NUMBERS)}"
    broker.topic(name, 3)
    broker.send(name, [None, b"garbage"], 1)
    broker.send(name, pairs(1, 11, 21))
    (tmp_path / "q.acep").write_text(TEXT, encoding="utf-8")
    page = tmp_path / "out.html"
    acep("run", str(tmp_path / "q.acep"), broker.address(name), "--until-idle", "0 s", "--watermark", "5",
         "-o", str(tmp_path / "out.jsonl"), "--on-malformed", "skip", "--page", str(page))  # fmt: skip
    assert f"3 matches in the topic {name}" in page.read_text(encoding="utf-8")


# --- how far it was read ------------------------------------------------------------------------------------------


def test_marks_of_transactions_are_no_messages_to_be_read(broker, topic, tmp_path):
    producer = broker.producer(**{"transactional.id": topic})
    producer.init_transactions()
    for ending in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        producer.produce(topic, event(1, "A"), partition=0)
        producer.flush()
        ending()
    producer.begin_transaction()
    for value in pairs(1):
        producer.produce(topic, value, partition=0)
    producer.flush()
    producer.abort_transaction()
    lags = []
    run = QUERY.follow(broker.address(topic), until_idle=0, checkpoint=tmp_path / "cp")
    run.on_border = lambda: lags.append(run.source.lag)
    list(run)
    assert lags[-1] == (0, "message")
    place = run.source.place()["place"]
    assert place["offsets"] == {"0": 9}
    assert run.source.given == 2
