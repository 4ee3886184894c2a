"""Results of runs here as messages of a topic: all of them, whatever happens in between."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from acep_approx.errors import EXIT_TEMPORARY, DataError
from acep_approx.events.live import kafka_writer
from acep_approx.events.live.kafka_address import parse_target
from acep_approx.events.live.kafka_rows import match_id
from acep_approx.events.live.kafka_writer import TopicWriter
from tests.command_line import acep
from tests.kafka_runs import ACEP, QUERY, killed, messages, rows, sending
from tests.patience import until
from tests.processes import ended

pytestmark = pytest.mark.xdist_group("kafka")
NUMBERS = count()
RATE = 1500
"""Messages that are sent in a second while runs are killed."""


@pytest.fixture
def topic(broker):
    """A topic for the results of a test."""
    name = f"o{next(NUMBERS)}"
    broker.topic(name)
    return name


@pytest.fixture
def events(tmp_path, monkeypatch):
    """Some events as messages, and in a file."""
    monkeypatch.chdir(tmp_path)
    values = messages(400)
    (tmp_path / "events.jsonl").write_bytes(b"\n".join(values) + b"\n")
    return values


def test_messages_are_the_lines_of_jsonl(broker, topic, events):
    words = ("run", QUERY, "events.jsonl", "--bind", "n", "-q")
    listed = acep(*words, "--format", "jsonl").stdout
    done = acep(*words, "-o", broker.address(topic), "--kafka-option", "linger.ms=1")
    assert done.stdout == ""
    found = broker.read(topic)
    assert rows("\n".join(message.value().decode() for message in found)) == rows(listed)
    assert len(found) > 100
    for message in found:
        assert message.key() == str(json.loads(message.value())["box"]).encode()
        assert message.headers() == [("acep_match", match_id(message.value()).encode())]


def test_a_set_of_queries_puts_all_results_into_one_topic(broker, topic, events, tmp_path):
    (tmp_path / "q").mkdir()
    (tmp_path / "q" / "one.acep").write_text(QUERY, encoding="utf-8")
    words = ("run", "--queries", "q", "events.jsonl", "--bind", "n", "-q")
    acep(*words, "-o", broker.address(topic))
    there = "\n".join(message.value().decode() for message in broker.read(topic))
    assert rows(there) == rows(acep(*words, "--format", "jsonl").stdout)


def test_a_run_that_is_killed_sends_each_result_at_least_once(broker, topic, tmp_path):
    values, source = messages(6_000), f"{topic}-in"
    broker.topic(source)
    command = [*ACEP, "run", QUERY, broker.address(source), "--bind", "n", "-o", broker.address(topic), "--quiet"]
    command += ["--checkpoint", str(tmp_path / "cp"), "--checkpoint-every", "200 ms"]
    checkpoint = tmp_path / "cp" / "checkpoint"
    with sending(broker, source, values, 1, RATE):
        killed(command, 3, Random(5), lambda: checkpoint.exists() and checkpoint.stat().st_mtime_ns)
    done = ended(*command, "--until-idle", "0 s", "--finish")
    assert (done.returncode, done.stderr) == (0, b"")
    (tmp_path / "all.jsonl").write_bytes(b"\n".join(values) + b"\n")
    whole = acep("run", QUERY, str(tmp_path / "all.jsonl"), "--bind", "n", "--format", "jsonl", "-q").stdout
    assert {message.value().decode() for message in broker.read(topic)} == set(whole.splitlines())


def test_a_message_that_the_broker_refuses_is_an_error(broker, events):
    name = f"o{next(NUMBERS)}"
    broker.topic(name, **{"max.message.bytes": "100"})
    told = acep("run", QUERY, "events.jsonl", "--bind", "n", "-o", broker.address(name), code=4).stderr
    assert f"ACEP-D173: results cannot be sent to the topic {name!r}: " in told
    assert "too large" in told


def test_an_outage_is_waited_for_or_passes(broker, topic, caplog):
    """A writer waits until the broker is there again; one with less patience says that it may go well later."""
    address, rows = parse_target(broker.address(topic)), pa.table({"n": range(5)})
    with TopicWriter(address, {}) as patient, TopicWriter(address, {"message.timeout.ms": "1000"}) as hasty:
        patient.write(rows.slice(0, 2))
        broker.kill()
        try:
            with pytest.raises(DataError, match="ACEP-D173") as told:
                hasty.write(rows)
            assert told.value.is_temporary
            with ThreadPoolExecutor(1) as pool:
                rest = pool.submit(patient.write, rows.slice(2))
                until(lambda: any("answers; trying again" in line for line in caplog.messages))
                assert not rest.done()
                broker.start()
                rest.result()
        except BaseException:
            broker.kill()
            broker.start()  # other tests need it
            raise
    assert [json.loads(message.value())["n"] for message in broker.read(topic)] == [0, 1, 2, 3, 4]


def test_a_wrong_target_is_told_before_anything_is_read(broker, topic, events, monkeypatch):
    told = acep("run", QUERY, "no-such-file.jsonl", "-o", broker.address("nowhere"), code=4).stderr
    assert "ACEP-D058: the topic 'nowhere' cannot be written" in told
    monkeypatch.setattr(kafka_writer, "ANSWER", 0.5)
    told = acep("run", QUERY, "no-such-file.jsonl", "-o", "kafka://127.0.0.1:9/found", code=EXIT_TEMPORARY).stderr
    assert "ACEP-D058: no broker of 127.0.0.1:9 answers" in told
    assert acep("run", QUERY, "events.jsonl", "-o", broker.address(topic), "--kafka-option", "no.such=1", code=2)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("-o kafka://b:9/t --format csv", "ACEP-U014"),
        ("-o kafka://b:9/t --output compressed", "ACEP-U019"),
        ("-o kafka://b:9/t?from=end", "ACEP-U136"),
        ("-o kafka://b:9", "ACEP-U136"),
        ("--late kafka://b:9/t --on-late skip", "ACEP-U170"),
        ("-o dbfs://bucket/found", "ACEP-U170"),
    ],
)
def test_what_does_not_go_to_a_topic(events, words, code):
    assert code in acep("run", QUERY, "events.jsonl", *words.split(), code=2).stderr


RULE = f"RULE r ON {QUERY} DO CALL seen(l.box) END"


@pytest.mark.parametrize("failing", [2, 3])
def test_rules_with_a_store_send_each_match_and_call_at_least_once(broker, topic, events, monkeypatch, failing):
    """The brokers refuse a message; the next run sends what they have not got."""
    calls = f"{topic}-calls"
    broker.topic(calls)
    Path("rules.acep").write_text(RULE, encoding="utf-8")
    words = ("run", "rules.acep", "events.jsonl", "--bind", "n", "--checkpoint-every", "100", "-q")
    whole = acep(*words, "--store", "whole.db", "--calls", "calls.jsonl").stdout
    write, tries = TopicWriter.write, iter(range(100_000))

    def refused(self: TopicWriter, *given: Any) -> None:
        if next(tries) == failing:
            raise DataError("a message was refused", code="ACEP-D173")
        write(self, *given)

    monkeypatch.setattr(TopicWriter, "write", refused)
    kept = (*words, "--store", "rules.db", "-o", broker.address(topic), "--calls", broker.address(calls))
    assert "ACEP-D173" in acep(*kept, code=4).stderr
    acep(*kept)
    assert {message.value().decode() for message in broker.read(topic)} == set(whole.splitlines())
    called = Path("calls.jsonl").read_text(encoding="utf-8").splitlines()
    assert {message.value().decode() for message in broker.read(calls)} == set(called)


def test_a_topic_that_is_read(events):
    told = acep("run", QUERY, "kafka://b:9/t?from=end", "-o", "kafka://b:9/t", code=2).stderr
    assert "ACEP-U013: results would go to the topic 't', which is one of the inputs" in told
