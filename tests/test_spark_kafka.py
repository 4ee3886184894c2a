"""Topics of Kafka as source and sink of jobs on Spark: the same matches as here, whatever is in the topic."""

from __future__ import annotations

import json
from collections import Counter
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from acep_approx import compile_query
from acep_approx.cli.main import app
from acep_approx.cli.on_spark.batch import OnSpark
from acep_approx.errors import EXIT_TEMPORARY, AcepError, DataError
from acep_approx.events.live import kafka
from acep_approx.events.live.kafka_messages import as_line
from acep_approx.events.live.kafka_rows import match_id
from acep_approx.events.reading.layout import Layout
from acep_approx.spark import read_topics, start
from acep_approx.spark.setup import connectors
from acep_approx.spark.setup.java_client import java_settings
from acep_approx.spark.sources.messages import MessageReader
from acep_approx.spark.streaming.sinks import messages_of
from tests.kafka_runs import QUERY, messages, rows

if TYPE_CHECKING:
    from click.testing import Result

kafka_test = pytest.mark.xdist_group("kafka")
NUMBERS = count()
NUMBER = 400
"""Messages that most tests send."""
DELAY = 1000
"""Ticks that events are late by at most."""
STREAM = ("--spark", "--stream", "--until-done", "--id", "n", "--shards", "2", "--watermark", f"{DELAY} ms")


def acep(*words: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, list(words))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """A folder to be in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_spark(monkeypatch):
    """Let a test fail where Spark is started."""

    def started(*_: Any, **__: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(OnSpark, "session", started)


def new_topic(broker, partitions: int = 1) -> str:
    """A topic of its own for a test."""
    name = f"s{next(NUMBERS)}"
    broker.topic(name, partitions)
    return name


def run(source: str, to: str, *more: str) -> Result:
    """Match a stream of messages on Spark."""
    return acep("run", QUERY, source, *STREAM, "--bind", "n", "--checkpoint", "state", "-o", to, *more)


def here(values: list[bytes]) -> Counter[str]:
    """The matches that a run here finds, of events that a watermark behind the last one has passed."""
    last = max(json.loads(value)["ts"] for value in values) - DELAY
    passed = [value for value in values if json.loads(value)["ts"] < last]
    Path("all.jsonl").write_bytes(b"\n".join(passed) + b"\n")
    done = acep("run", QUERY, "all.jsonl", "--bind", "n", "--format", "jsonl", "-q", "--open-end", "--sort")
    assert done.exit_code == 0, done.output
    return Counter(map(plain, map(json.loads, done.stdout.splitlines())))


def plain(row: dict[str, Any]) -> str:
    """A match by what identifies it."""
    return json.dumps([row[name] for name in ("box", "errors", "p.n", "s.n", "l.n")])


def in_folder(folder: str = "out") -> Counter[str]:
    """The matches that a stream has written as Parquet."""
    return Counter(map(plain, pq.read_table(folder).to_pylist()))


# --- without a broker ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        ("kafka://b:9/t --spark --follow", "ACEP-S072", "--follow"),
        ("kafka://b:9/t?from=end --spark", "ACEP-S081", "from=end"),
        ("kafka://b:9/t?group=g --spark", "ACEP-S081", "group=g"),
        ("kafka://b:9/t events.jsonl --spark", "ACEP-S070", "from both"),
        ("kafka://b:9/t --spark --checkpoint c", "ACEP-S071", "--checkpoint"),
        ("kafka://b:9/t --spark --stream --follow", "ACEP-S072", "--follow"),
        ("kafka://b:9/t?group=g --spark --stream -o out --checkpoint c", "ACEP-S081", "group=g"),
        ("kafka://b:9/t kafka://c:9/u --spark --stream -o out --checkpoint c", "ACEP-S081", "different brokers"),
        ("kafka://b:9/t kafka://b:9/t --spark --stream -o out --checkpoint c", "ACEP-S081", "named twice"),
        ("kafka://b:9/t folder --spark --stream -o out --checkpoint c", "ACEP-S070", "from topics"),
        ("kafka://b:9/t --spark --stream -o kafka://b:9/t --checkpoint c", "ACEP-U013", "one of the inputs"),
        ("kafka://b:9/t --spark --stream -o kafka://b:9/u?from=end --checkpoint c", "ACEP-U136", "about reading"),
        ("kafka://b:9/t --spark --stream -o out --checkpoint c --input-format csv", "ACEP-U121", "csv"),
        ("kafka://b:9/t --spark --stream -o out --checkpoint c --kafka-option sasl.oauthbearer.config=x", "ACEP-U137",
         "oauthbearer"),
        ("events.jsonl --spark -o jdbc:postgresql://b/u?table=t", "ACEP-S071", "--stream"),
        ("events.jsonl --schema x.parquet", "ACEP-U139", "--schema"),
        ("events.jsonl --spark --schema x.parquet", "ACEP-S072", "--schema"),
        (". --spark --stream -o out --checkpoint c --schema x.parquet", "ACEP-S072", "--schema"),
        (". --spark --stream -o out --checkpoint c --kafka-option a=b", "ACEP-U139", "--kafka-option"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together(no_spark, words, code, named):
    refused = acep("run", QUERY, *words.split())
    assert refused.exit_code == 2, refused.output
    assert code in refused.output
    assert named in " ".join(refused.output.split())


@pytest.mark.usefixtures("no_spark")
def test_without_a_broker_it_may_go_well_later(monkeypatch):
    monkeypatch.setattr(kafka, "ANSWER", 0.5)
    done = run("kafka://127.0.0.1:9/topic", "out")
    assert (done.exit_code, "ACEP-D058" in done.stderr) == (EXIT_TEMPORARY, True), done.output


def given(values: list[bytes | None], reader: MessageReader) -> pa.RecordBatch:
    """Messages as Spark gives them."""
    number = len(values)
    beside = {name: pa.nulls(number, reader.given.field(name).type) for name in reader.given.names[4:]}
    columns = {"value": pa.array(values, pa.binary()), "topic": ["t"] * number, "partition": [3] * number}
    columns |= {"offset": list(range(number)), **beside}
    return pa.RecordBatch.from_pydict(columns)


SEEN = [b'{"ts": 10, "type": "Seen", "box": 5, "of": {"who": "a"}}', b'{"ts": 11, "type": "Seen", "box": 5}']
LINES = b"".join(as_line(row, value) for row, value in enumerate(SEEN))
POISONED: list[tuple[bytes | None, str]] = [
    (b"hello", "not a JSON object"),
    (b"[1, 2]", "not a JSON object"),
    (b"", "not a JSON object"),
    (b"\xff\xfe", "not a JSON object"),
    (b'{"ts": 12, "box": "seven"}', "Column(/box) changed from number to string"),
    (b'{"ts": 12, "box": 7.5}', "column 'box' is int64, and this value is not"),
    (b'{"ts": 12, "box": 99999999999999999999}', "column 'box' is int64, and this value is not"),
    (b'{"box": 7}', "the event has no time (null or NaN)"),
    (b'{"ts": 12, "box": 7} trailing', ""),
    (b'{"ts": 12, ', ""),
]


@pytest.mark.parametrize(("value", "reason"), POISONED)
def test_a_poisoned_message_is_told_with_its_place_or_left_out_with_it(value, reason):
    values = [SEEN[0], None, value, SEEN[1]]
    reader = MessageReader.of_lines(["t"], [], LINES, Layout())
    with pytest.raises(DataError, match=r"t\[3\], offset 2: .*") as refused:
        reader.read(given(values, reader))
    assert reason in str(refused.value)
    assert "--late FOLDER" in str(refused.value)
    skipping = MessageReader.of_lines(["t"], [], LINES, Layout(), skips=True)
    *good, bad = skipping.read(given(values, skipping)).to_pylist()
    assert [(row["ts"], row["kafka_offset"], row["_acep_reason"]) for row in good] == [(10, 0, None), (11, 3, None)]
    assert (bad["ts"], bad["kafka_partition"], bad["kafka_offset"]) == (None, 3, 2)
    assert reason in bad["_acep_reason"]
    assert bad["kafka_message"] == value.decode(errors="backslashreplace")


def test_values_that_the_query_does_not_read_are_not_looked_at():
    reader = MessageReader.of_lines(["t"], [], LINES, Layout()).select(["type", "of.who"])
    values: list[bytes | None] = [b'{"ts": 12, "box": "seven", "of": {"who": "b"}}']
    assert reader.read(given(values, reader)).to_pylist() == [{"ts": 12, "type": None, "of.who": "b"}]


def test_times_of_text_become_timestamps():
    lines = as_line(0, b'{"at": "2024-05-01T08:00:00Z", "day": "31.01.2024 10:00", "type": "A"}')
    reader = MessageReader.of_lines(["t"], ["tr"], lines, Layout(), time="at")
    times = [str(reader.schema.field(name).type) for name in ("at", "day", "kafka_time")]
    assert times == ["timestamp[us, tz=UTC]"] * 3
    assert reader.schema.names[-1] == "kafka_header_tr"
    with pytest.raises(DataError, match=r"t\[3\], offset 0: 'soon' is not"):
        reader.read(given([b'{"at": "soon"}'], reader))


def test_columns_of_a_file():
    nested = pa.array([{"who": "a"}], pa.struct([("who", pa.string())]))
    stamps = pa.array([0], pa.timestamp("ns"))
    pq.write_table(pa.table({"ts": stamps, "seen": stamps, "type": ["A"], "of": nested}), "some.parquet")
    reader = MessageReader.of_file(["t"], [], "some.parquet", Layout(), skips=True)
    values: list[bytes | None] = [
        b'{"ts": "2024-05-01T08:00:00Z", "seen": "2024-05-01T08:00:00.5Z", "of": {"who": "b"}, "more": 1}',
        b'{"ts": "2024-05-01T08:00:00Z", "seen": "later"}',
    ]
    good, bad = reader.read(given(values, reader)).to_pylist()
    assert (good["ts"].isoformat(), good["seen"].microsecond) == ("2024-05-01T08:00:00+00:00", 500_000)
    assert (good["of.who"], good["type"], "more" in good) == ("b", None, False)
    assert bad["_acep_reason"] == "column 'seen' holds times, and this value is none"
    Path("some.jsonl").write_text('{"ts": "31.05.2024 08:00:00"}', encoding="utf-8")
    reader = MessageReader.of_file(["t"], [], "some.jsonl", Layout())
    (found,) = reader.read(given([b'{"ts": "01.05.2024 08:00:00"}'], reader)).to_pylist()
    assert found["ts"].isoformat() == "2024-05-01T08:00:00+00:00"


def test_a_micro_batch_that_is_written_again_has_the_same_messages():
    table = pa.RecordBatch.from_pydict({"_0": ["a", "b", "a"], "_1": [1, None, 1]})

    def sent(batch: int) -> list[Any]:
        return next(messages_of(["key", "p.n"], ["key"], batch)(iter([table]))).to_pylist()

    assert sent(3) == sent(3)
    ids = [tuple(header["value"] for header in row["headers"]) for row in sent(3)]
    assert len(set(ids)) == 3
    assert [one for _, one in ids] == [row["headers"][1]["value"] for row in sent(4)]
    assert {batch for batch, _ in ids} == {b"3"}


def test_settings_of_files_and_logins_in_javas_words(folder):
    Path("ca.pem").write_text("CA", encoding="utf-8")
    said = {"security.protocol": "SASL_SSL", "ssl.ca.location": "ca.pem", "sasl.mechanisms": "SCRAM-SHA-256"}
    ours, theirs = java_settings({**said, "sasl.username": "ann", "sasl.password": "secret", "kafka.group.id": "g"})
    assert ours == {**said, "sasl.username": "ann", "sasl.password": "secret"}
    login = theirs.pop("sasl.jaas.config")
    assert login.endswith('.ScramLoginModule required username="ann" password="secret";')
    assert theirs == {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.certificates": "CA",
        "ssl.truststore.type": "PEM",
        "sasl.mechanism": "SCRAM-SHA-256",
        "group.id": "g",
    }
    with pytest.raises(AcepError, match="ACEP-U137"):
        java_settings({"ssl.ca.location": "none.pem"})


# --- a broker, before Spark starts ----------------------------------------------------------------------------------


@kafka_test
@pytest.mark.usefixtures("no_spark")
def test_what_is_wrong_is_told_before_spark_starts(broker):
    none, empty, other, full = "none", *(new_topic(broker) for _ in range(3))
    broker.send(other, [None, b"hello"])
    broker.send(full, [b'{"ts": 1, "n": 1, "type": "Seen"}'])
    for topic, code, named in (
        (none, "ACEP-D058", none),
        (empty, "ACEP-S082", "--schema"),
        (other, "ACEP-S082", "no message that is a JSON object"),
        (full, "ACEP-Q060", "box"),
    ):
        done = run(broker.address(topic), "out")
        wanted = 3 if code == "ACEP-Q060" else 4
        assert (done.exit_code, code in done.stderr, named in done.stderr) == (wanted, True, True), done.output
    done = run(broker.address(full), broker.address(none))
    assert (done.exit_code, "'none' cannot be written" in done.stderr) == (4, True), done.output
    done = run(broker.address(full, partition=7), "out")
    assert (done.exit_code, "no partition 7" in done.stderr) == (4, True), done.output


# --- batches --------------------------------------------------------------------------------------------------------


def whole(values: list[bytes], *words: str) -> str:
    """What a run here finds in all messages, as JSON lines."""
    Path("whole.jsonl").write_bytes(b"\n".join(values) + b"\n")
    done = acep("run", QUERY, "whole.jsonl", "--format", "jsonl", "-q", "--sort", *words)
    assert done.exit_code == 0, done.output
    return done.stdout


@kafka_test
def test_a_batch_of_what_topics_hold_now(spark, broker):
    """Of two topics, out of order; into topics, a row as a message: matches, and counts.

    The broker asks who reads and writes, by TLS: a file of settings is enough for that, here and on Spark.
    """
    values = messages(NUMBER, jitter=DELAY)
    topic, other, target = new_topic(broker, 2), new_topic(broker), new_topic(broker)
    for partition in (0, 1):
        broker.send(topic, values[partition : NUMBER - 100 : 2], partition)
    broker.send(topic, [None, b'{"ts": 1, "n": "?"}'], 1)
    broker.send(other, values[-100:])
    Path("secrets.properties").write_text(broker.client, encoding="utf-8")
    one, two, out = (f"kafka://{broker.guarded}/{name}" for name in (topic, other, target))
    told = ("--on-malformed", "skip", "--kafka-option", "@secrets.properties")
    batch = ("run", QUERY, one, two, "--spark", "--id", "n", *told)
    done = acep(*batch, "--bind", "n", "-o", out)
    assert done.exit_code == 0, done.output
    for line in (f"{NUMBER} events read", "1 message left out: malformed", "1 message left out: no value (tombstones)"):
        assert line in done.stderr
    found = broker.read(target)
    listed = whole(values, "--bind", "n")
    assert Counter(plain(json.loads(message.value())) for message in found) == Counter(
        map(plain, map(json.loads, listed.splitlines()))
    )
    assert len(found) > 100
    for message in found:
        assert message.key() == str(json.loads(message.value())["box"]).encode()
        assert message.headers() == [("acep_match", match_id(message.value()).encode())]
    counted = acep(*batch, "--output", "count", "-q", "-o", out)
    assert (counted.exit_code, counted.output) == (0, "")
    counts = sorted(message.value().decode() for message in broker.read(target)[len(found) :])
    assert counts == whole(values, "--output", "count").splitlines()
    here = acep("run", QUERY, one, "-o", out, "--until-idle", "0s", "--watermark", f"{DELAY}", "-q", *told)
    assert (here.exit_code, here.output) == (0, "")
    assert len(broker.read(target)) > len(found) + len(counts)


@kafka_test
def test_a_batch_from_python_has_the_messages_of_when_it_was_opened(spark, broker):
    """Also of those that are committed later: nobody waits for them."""
    topic = new_topic(broker)
    broker.send(topic, messages(20))
    late = broker.producer(**{"transactional.id": topic})
    late.init_transactions(60)
    late.begin_transaction()
    late.produce(topic, messages(21)[-1])
    late.flush(60)
    events = read_topics(spark, broker.address(topic), is_stream=False)
    late.commit_transaction(60)
    assert not events.isStreaming
    assert sorted(row.n for row in events.collect()) == [*range(20)]
    assert read_topics(spark, broker.address(topic), is_stream=False).count() == 21


RULES = """
TABLE seen (box int, number int DEFAULT 0, KEY (box))
RULE counted ON PATTERN Seen s WITHIN 1 DO UPDATE seen SET number = old.number + 1 AT (s.box) END
RULE loaded ON PATTERN SEQ(Seen s, Loaded l) WHERE [box] AND store.seen[l.box].number > 2 WITHIN 3000
    DO CALL report(l.box, l.n) END
"""


@kafka_test
def test_rules_send_matches_and_calls_to_topics(spark, broker):
    """Here and on Spark the same; the key of a match is its box, that of a call what is called."""
    values, sent = messages(NUMBER // 2), []
    Path("in.jsonl").write_bytes(b"\n".join(values) + b"\n")
    Path("rules.acep").write_text(RULES, encoding="utf-8")
    for words in ((), ("--spark", "--id", "n")):
        found, called = new_topic(broker), new_topic(broker)
        topics = ("-o", broker.address(found), "--calls", broker.address(called), "--kafka-option", "linger.ms=1")
        done = acep("run", "rules.acep", "in.jsonl", "--bind", "n", *topics, "-q", *words)
        assert (done.exit_code, done.output) == (0, "")
        calls = broker.read(called)
        matches = [(message.key(), json.loads(message.value())) for message in broker.read(found)]
        assert {key for key, row in matches if row["rule"] == "loaded"} == {
            str(row["box"]).encode() for _, row in matches if row["rule"] == "loaded"
        }
        shown = Counter((row["rule"], row["s.n"], row.get("l.n")) for _, row in matches)
        assert {call.key() for call in calls} == {b"report"}
        ids = {json.loads(call.value())["id"] for call in calls}
        assert len(ids) == len(calls) > 0
        sent.append((shown, Counter(json.loads(call.value())["arguments"] for call in calls)))
    assert sent[0] == sent[1]


# --- jobs -----------------------------------------------------------------------------------------------------------


@kafka_test
def test_a_job_that_goes_on_loses_and_doubles_nothing(spark, broker):
    """Two partitions, a tombstone and a poisoned message; a header and the offset are read."""
    values, topic = messages(NUMBER, jitter=DELAY // 2), new_topic(broker, 2)
    half = NUMBER // 2
    for partition in (0, 1):
        broker.send(topic, values[partition:half:2], partition, headers=[("tr", b"x")])
    broker.send(topic, [None, b'{"ts": 1, "n": "?"}'], 1)
    address = broker.address(topic, headers="tr")
    words = ("--on-malformed", "skip", "--late", "late", "--bind", "kafka_header_tr", "--bind", "kafka_offset")
    first = run(address, "out", *words)
    assert first.exit_code == 0, first.output
    assert "1 message left out: malformed" in first.stderr
    assert "1 message left out: no value (tombstones)" in first.stderr
    before = in_folder()
    for partition in (0, 1):
        broker.send(topic, values[half + partition :: 2], partition, headers=[("tr", b"x")])
    second = run(address, "out", *words)
    assert second.exit_code == 0, second.output
    assert in_folder() == here(values)
    assert sum(before.values()) > 0
    assert not before - in_folder()
    table = pq.read_table("out")
    assert set(table["s.kafka_header_tr"].drop_null().to_pylist()) == {"x"}
    (left_out,) = pq.read_table("late").to_pylist()
    assert (left_out["kafka_partition"], left_out["kafka_offset"]) == (1, half // 2 + 1)
    assert left_out["kafka_message"] == '{"ts": 1, "n": "?"}'
    assert left_out["reason"] == "Column(/n) changed from number to string"


@kafka_test
def test_from_topic_to_topic_at_least_once(spark, broker):
    values, topic, target = messages(NUMBER), new_topic(broker), new_topic(broker)
    aborted = broker.producer(**{"transactional.id": topic})
    aborted.init_transactions(60)
    aborted.begin_transaction()
    aborted.produce(topic, b"no object, and never committed")
    aborted.flush(60)
    aborted.abort_transaction(60)
    broker.send(topic, values)
    address, to = broker.address(topic), broker.address(target)
    assert run(address, to).exit_code == 0
    found = broker.read(target)
    assert Counter(plain(json.loads(message.value())) for message in found) == here(values)
    assert {message.key() == str(json.loads(message.value())["box"]).encode() for message in found} == {True}
    listed = acep("run", QUERY, "all.jsonl", "--bind", "n", "--format", "jsonl", "-q", "--open-end").stdout
    assert Counter(message.value().decode() for message in found) == rows(listed)
    for file in Path("state/commits").glob("*1*"):  # as if the job had been killed right before it wrote that
        file.unlink()
    second = run(address, to)
    assert second.exit_code == 0, second.output
    again = broker.read(target)
    assert len(again) > len(found)
    ids = {(message.value(), *(value for _, value in message.headers())) for message in again}
    assert len(ids) == len(found)


@kafka_test
def test_a_poisoned_message_ends_a_job(spark, broker):
    topic = new_topic(broker)
    broker.send(topic, [*messages(20), b"hello"])
    done = run(broker.address(topic), "out")
    assert done.exit_code == 4, done.output
    assert f"ACEP-D020: {topic}[0], offset 20: not a JSON object: 'hello'" in done.stderr


@kafka_test
def test_from_a_folder_to_a_topic_and_back_with_columns_of_a_file(spark, broker):
    """The second job begins when nothing is in its topic; two topics are read from different ends."""
    values, topic, other = messages(NUMBER // 2), new_topic(broker), new_topic(broker)
    Path("in").mkdir()
    Path("in/events.jsonl").write_bytes(b"\n".join(values) + b"\n")
    broker.send(other, [b"no object, which is not read"])
    address = [broker.address(topic), broker.address(other, **{"from": "end"})]
    words = ("--schema", "in/events.jsonl", "--checkpoint", "state", "-o", "out", "--bind", "n")
    first = acep("run", QUERY, *address, *STREAM, *words)
    assert first.exit_code == 0, first.output
    broker.send(topic, values[::2])
    broker.send(other, values[1::2])
    second = acep("run", QUERY, *address, *STREAM, *words)
    assert second.exit_code == 0, second.output
    assert in_folder() == here(values)
    target = new_topic(broker)
    sent = acep(
        *("run", QUERY, "in", *STREAM, "--bind", "n", "--checkpoint", "sent", "-o", broker.address(target)),
        *("--kafka-option", "linger.ms=5"),
    )
    assert sent.exit_code == 0, sent.output
    assert Counter(plain(json.loads(message.value())) for message in broker.read(target)) == here(values)


@kafka_test
def test_messages_that_are_gone_and_a_topic_that_is_another_one(spark, broker):
    topic = new_topic(broker)
    broker.send(topic, messages(20))
    assert run(broker.address(topic), "out").exit_code == 0
    broker.send(topic, messages(20))
    broker.forget(topic, 30)
    gone = run(broker.address(topic), "out")
    assert (gone.exit_code, f"ACEP-D057: messages of {topic}-0 " in gone.stderr) == (4, True), gone.output
    broker.delete(topic)
    broker.topic(topic)
    broker.send(topic, messages(30))
    done = run(broker.address(topic), "out")
    assert (done.exit_code, "ACEP-D171" in done.stderr) == (4, True), done.output


@kafka_test
def test_from_python_by_what_kafka_knows_of_messages(spark, broker):
    """The time and the key are those of the broker; the objects have neither."""
    topic, target = new_topic(broker), new_topic(broker)
    for second, kind in enumerate("ABAB"):
        broker.send(topic, [json.dumps({"type": kind}).encode()], key=b"k", timestamp=1_700_000_000_000 + 1000 * second)
    query = compile_query("PATTERN SEQ(A a, B b) WHERE [kafka_key] WITHIN 1 s")
    matcher = query.spark(time="kafka_time", id="kafka_offset", watermark="0 s", shards=1)
    events = read_topics(spark, broker.address(topic), time="kafka_time", at_once=2)
    start(matcher, events, to=broker.address(target), checkpoint="state", until_done=True).awaitTermination()
    (found,) = broker.read(target)  # the last event waits
    assert (found.key(), json.loads(found.value())["b"]) == (b"k", 1)


@kafka_test
def test_a_connector_that_cannot_be_fetched(spark, monkeypatch):
    monkeypatch.setattr(connectors, "PROVIDER", "no.such.Class")
    monkeypatch.setattr(connectors, "LAST", "0.0.0")
    with pytest.raises(AcepError, match=r"ACEP-S080: .*:0\.0\.0, and it cannot be fetched: ") as told:
        connectors.add_kafka(spark)
    assert "spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:0.0.0" in str(told.value)
