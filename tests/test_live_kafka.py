"""Topics of Kafka, against the mock cluster of the client: it speaks the protocol over TCP, and is no broker."""

from __future__ import annotations

import json
import logging
import subprocess
import sys

import pytest

from acep_approx import compile_query
from acep_approx.errors import DataError, QueryError, UsageError
from acep_approx.events import follow
from acep_approx.events.live.kafka import Topic, TopicPlace
from acep_approx.events.live.kafka_address import KafkaAddress, parse_address, settings
from acep_approx.events.live.kafka_messages import place_in
from acep_approx.events.live.text import Resumed
from tests.command_line import acep
from tests.live_steps import lines, rows
from tests.patience import PATIENCE
from tests.processes import ROOT

QUERY = compile_query("PATTERN SEQ(A a, B b) WITHIN 5")


def event(ts, kind, **more):
    return json.dumps({"ts": ts, "type": kind, **more}).encode()


def found(cluster, topic, query=QUERY, *, partition: int | None = 0, **more):
    said = {} if partition is None else {"partition": partition}
    return lines(list(query.follow(cluster.address(topic, **said), until_idle=0, **more)))


def test_messages_are_events(cluster, topic):
    cluster.send(topic, [event(1, "A"), event(2, "B"), event(9, "B")])
    assert [(row["a"], row["b"]) for row in found(cluster, topic)] == [(0, 1)]


def test_what_kafka_knows_of_a_message_are_columns(cluster, topic):
    cluster.send(topic, [event(1, "A")], key=b"k\xff", timestamp=1_700_000_000_000)
    cluster.send(topic, [event(2, "B", x={"y": [1]})], key="ö", timestamp=1_700_000_000_001)
    cluster.send(topic, [b'{"ts": 3,\n "type": "C"}', b" {} "], timestamp=1_700_000_000_002)
    source = follow(cluster.address(topic, partition=0), until_idle=0)
    read = rows(source)
    assert [row["kafka_key"] for row in read] == ["k\\xff", "ö", None, None]
    assert [row["kafka_offset"] for row in read] == [0, 1, 2, 3]
    assert {row["kafka_partition"] for row in read} == {0}
    assert [row["kafka_time"].microsecond for row in read] == [0, 1000, 2000, 2000]
    assert [row["type"] for row in read] == ["A", "B", "C", None]
    assert source.schema.names[-4:] == ["kafka_key", "kafka_time", "kafka_partition", "kafka_offset"]


def test_the_time_of_kafka_may_be_the_time(cluster, topic):
    cluster.send(topic, [b'{"type": "A"}'], timestamp=1_700_000_000_000)
    cluster.send(topic, [b'{"type": "B"}'], timestamp=1_700_000_003_000)
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 5 s")
    (match,) = found(cluster, topic, query, time="kafka_time", bind="kafka_offset")
    assert (match["a"], match["b"], match["end"].second) == (0, 1, 23)


def test_malformed_messages_and_tombstones_are_counted(cluster, topic, tmp_path):
    rejects = tmp_path / "rejects.jsonl"
    bad = [b"[1]", b"", b"\xff", b'{"ts": "x", "type": "A"}', b"null", b'{"ts": 1}}', b'{"ts": 1']
    cluster.send(topic, [event(1, "A"), None, *bad, None, event(2, "B")], partition=2)
    source = follow(cluster.address(topic, partition=2), until_idle=0, on_malformed="skip", rejects=rejects)
    assert [row["kafka_offset"] for row in rows(source)] == [0, 10]
    assert (source.malformed.count, source.tombstones, source.given) == (7, 2, 2)
    told = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert {line["file"] for line in told} == {f"{topic}[2]"}
    assert sorted(line["offset"] for line in told) == [*range(2, 9)]
    with pytest.raises(DataError, match=r"offset 2: not a JSON object") as caught:
        found(cluster, topic, partition=2)
    assert caught.value.code == "ACEP-D020"


@pytest.mark.parametrize("watermark", [None, 3])
def test_messages_without_a_time_are_malformed(cluster, topic, tmp_path, watermark):
    """Each restart goes past them; the error names partition and offset."""
    query, rejects = compile_query("PATTERN SEQ(A a, B b) WITHIN 3"), tmp_path / "rejects.jsonl"
    options = {} if watermark is None else {"watermark": watermark}
    pieces = [[event(1, "A"), event(None, "A")], [event(1.5, "B")], [event(3, "B"), event(9e300, "A")], [b"{}"]]
    values = []
    for number, piece in enumerate(pieces):
        cluster.send(topic, piece, partition=1)
        is_last = number == len(pieces) - 1
        where = {"until_idle": 0, "checkpoint": tmp_path / "where", "finish": is_last}
        live = query.follow(
            cluster.address(topic, partition=1), **where, on_malformed="skip", rejects=rejects, **options
        )
        values += [(row["a"], row["b"]) for table in live for row in table.to_pylist()]
        assert live.source.malformed.count == [1, 2, 3, 4][number]
    assert values == [(0, 1)]
    told = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert [(row["file"], row["offset"]) for row in told] == [(f"{topic}[1]", offset) for offset in (1, 2, 4, 5)]
    with pytest.raises(DataError, match=r"t\d+\[1\], offset 1: the event has no time"):
        list(query.follow(cluster.address(topic, partition=1), until_idle=0, **options))


def test_partitions_have_no_order_among_them(cluster, topic):
    cluster.send(topic, [event(5, "B")], partition=0)
    cluster.send(topic, [event(1, "A")], partition=1)
    with pytest.raises(UsageError, match="4 partitions") as caught:
        found(cluster, topic, partition=None)
    assert caught.value.code == "ACEP-U141"
    cluster.send(topic, [event(20, "A")], partition=0)
    cluster.send(topic, [event(20, "A")], partition=1)
    (match,) = found(cluster, topic, partition=None, watermark=0, bind="kafka_partition")
    assert (match["a"], match["b"]) == (1, 0)


def test_a_set_waits_for_all_partitions(cluster, topic, tmp_path):
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "pair.acep").write_text("PATTERN SEQ(A a, B b) WITHIN 5")
    cluster.send(topic, [event(5, "B"), event(20, "A")], partition=0)
    cluster.send(topic, [event(1, "A"), event(21, "A")], partition=1)
    args = ("run", "--queries", str(tmp_path / "queries"), cluster.address(topic), "--until-idle", "0s")
    assert "ACEP-U141" in acep(*args, code=2).stderr
    for more in (("--watermark", "0"), ("--reorder", "0"), ("--watermark", "0", "--source", "kafka_partition")):
        done = acep(*args, *more)
        (row,) = map(json.loads, done.stdout.splitlines())
        assert (row["start"], row["end"]) == (1, 5)
        assert "late" not in done.stderr
    kept = ("--watermark", "0", "--checkpoint", str(tmp_path / "cp"), "-o", str(tmp_path / "found.jsonl"))
    acep(*args, *kept)
    cluster.send(topic, [event(24, "B")], partition=2)
    acep(*args, *kept, "--finish")
    ends = [json.loads(line)["end"] for line in (tmp_path / "found.jsonl").read_text().splitlines()]
    assert sorted(ends) == [5, 24, 24]


def test_a_run_goes_on_with_the_next_messages(cluster, topic, tmp_path):
    cluster.send(topic, [event(1, "A"), event(2, "B")])
    assert len(found(cluster, topic, checkpoint=tmp_path / "cp")) == 1
    cluster.send(topic, [event(3, "A"), event(4, "B")])
    again = [(row["a"], row["b"]) for row in found(cluster, topic, checkpoint=tmp_path / "cp")]
    assert sorted(again) == [(0, 3), (2, 3)]
    assert found(cluster, topic, checkpoint=tmp_path / "cp") == []


def test_where_to_begin(cluster, topic):
    cluster.send(topic, [event(1, "A")])
    assert rows(follow(cluster.address(topic, partition=0, **{"from": "end"}), until_idle=0)) == []
    source = follow(cluster.address(topic, partition=0, **{"from": "end"}))
    cluster.send(topic, [event(2, "B")])
    source.pace.on_border = lambda: source.given and source.stop()
    assert [row["ts"] for row in rows(source)] == [2]


def test_a_group_knows_where_it_was(cluster, topic):
    address = cluster.address(topic, group=f"of-{topic}", partition=0)
    cluster.send(topic, [event(1, "A")])
    assert len(rows(follow(address, until_idle=0))) == 1
    cluster.send(topic, [event(2, "B")])
    assert [row["ts"] for row in rows(follow(address, until_idle=0))] == [2]
    assert [row["ts"] for row in rows(follow(cluster.address(topic, partition=0), until_idle=0))] == [1, 2]


def test_messages_that_are_not_there_are_told(cluster, topic):
    for offsets in ({0: 7},):
        with pytest.raises(DataError, match="are not there") as caught:
            Topic(KafkaAddress(cluster.brokers, topic), {}, TopicPlace(offsets))
        assert caught.value.code == "ACEP-D057"
    with pytest.raises(DataError, match="no partition 9") as caught:
        follow(cluster.address(topic, partition=9))
    assert caught.value.code == "ACEP-D058"


def test_a_broker_that_does_not_answer(monkeypatch, caplog):
    monkeypatch.setattr("acep_approx.events.live.kafka.ANSWER", 0.3)
    caplog.set_level(logging.WARNING, "acep_approx.live")
    with pytest.raises(DataError, match="no broker of localhost:9 answers") as caught:
        follow("kafka://localhost:9/topic")
    assert caught.value.code == "ACEP-D058"


def test_a_field_with_the_name_of_a_column_is_refused(cluster, topic):
    cluster.send(topic, [event(1, "A", kafka_key="x")])
    source = follow(cluster.address(topic, partition=0), until_idle=0)
    with pytest.raises(DataError) as caught:
        rows(source)
    assert caught.value.code == "ACEP-D059"
    source.close()


def test_how_much_is_still_to_be_read(cluster, topic):
    cluster.send(topic, [event(1, "A"), event(2, "B")])
    source = follow(cluster.address(topic, partition=0), until_idle=0)
    lags = []
    source.pace.on_border = lambda: lags.append(source.lag)
    rows(source)
    assert lags[-1] == (0, "message")
    assert source.lag is None


@pytest.mark.parametrize(
    "address",
    [
        "kafka://",
        "kafka://broker",
        "kafka:///topic",
        "kafka://user:secret@broker/topic",
        "kafka://broker/a/b",
        "kafka://broker/topic?from=middle",
        "kafka://broker/topic?start=end",
        "kafka://broker/topic?group=",
        "kafka://broker/topic?group=a&group=b",
        "kafka://broker/topic?partition=1,x",
        "kafka://broker/topic?partition=1,1",
        "kafka://broker/topic#end",
    ],
)
def test_what_is_no_address(address):
    with pytest.raises(UsageError) as caught:
        parse_address(address)
    assert caught.value.code == "ACEP-U136"


def test_settings_of_the_client(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("# of the test\n\nsasl.username = me\nsasl.password=a=b\n")
    given = settings([f"@{file}", "security.protocol=SSL"])
    assert given == {"sasl.username": "me", "sasl.password": "a=b", "security.protocol": "SSL"}
    assert settings({"fetch.wait.max.ms": 10}) == {"fetch.wait.max.ms": "10"}
    for wrong in (["x"], ["=x"], ["group.id=a"], ["a=1", "a=2"], ["@no-such-file"]):
        with pytest.raises(UsageError) as caught:
            settings(wrong)
        assert caught.value.code == "ACEP-U137"
    with pytest.raises(UsageError, match="refuses its settings") as caught:
        follow("kafka://localhost:9/topic", kafka=["no.such.setting=1"])
    assert caught.value.code == "ACEP-U137"


def test_without_the_client_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(UsageError, match="not installed") as caught:
        follow("kafka://localhost:9/topic")
    assert caught.value.code == "ACEP-U135"
    assert "acep-approx[kafka]" in str(caught.value)


@pytest.mark.parametrize(
    "place",
    [
        {"kind": "file"},
        {"kind": "kafka", "topic": "other", "offsets": {}},
        {"kind": "kafka", "topic": "t", "offsets": {"x": 1}},
        {"kind": "kafka", "topic": "t", "offsets": {"0": -1}},
        {"kind": "kafka", "topic": "t", "offsets": [1]},
        {"kind": "kafka", "topic": "t", "offsets": {"0": 1}, "id": 7},
        {"kind": "kafka", "topic": "t", "offsets": {"0": 1}, "id": "no id"},
    ],
)
def test_a_place_that_is_none_is_refused(place):
    with pytest.raises(ValueError, match="not"):
        place_in(Resumed(QUERY.match([]).to_arrow().schema, place, b""), "t")


def test_the_command_line_reads_a_topic(cluster, topic, tmp_path):
    cluster.send(topic, [event(1, "A", box=7), event(2, "B", box=7)], partition=3)
    address = cluster.address(topic, partition=3)
    args = ["run", "PATTERN SEQ(A a, B b) WHERE [box] WITHIN 5", address, "--until-idle", "0 s"]
    result = acep(*args, "--checkpoint", str(tmp_path / "cp"), "--kafka-option", "fetch.wait.max.ms=10")
    assert '"box": 7' in result.stdout
    assert "2 events read" in result.stderr
    text = ["run", "PATTERN SEQ(A a, B b) WITHIN 5", cluster.address(topic), "--until-idle", "0 s"]
    assert "ACEP-U141" in acep(*text, code=2).stderr
    assert "1 match" in acep(*text, "--watermark", "5").stderr
    assert "ACEP-U140" in acep("why", "PATTERN SEQ(A a, B b) WITHIN 5", address, "--around", "1", code=2).stderr


def test_the_page_of_a_run_over_a_topic(cluster, topic, tmp_path):
    cluster.send(topic, [event(1, "A"), event(30, "A")], partition=0)
    cluster.send(topic, [event(3, "B"), event(33, "B")], partition=1)
    (tmp_path / "q.acep").write_text("PATTERN SEQ(A a, B b) WITHIN 5", encoding="utf-8")
    page = tmp_path / "out.html"
    acep("run", str(tmp_path / "q.acep"), cluster.address(topic), "--until-idle", "0 s", "--watermark", "5",
         "-o", str(tmp_path / "out.jsonl"), "--page", str(page))  # fmt: skip
    text = page.read_text(encoding="utf-8")
    assert f"2 matches in the topic {topic}" in text
    assert "acep why" not in text


def test_rules_keep_no_store_of_a_topic(cluster, topic, tmp_path):
    rules = "RULE r ON PATTERN SEQ(A a, B b) WITHIN 5"
    cluster.send(topic, [event(1, "A"), event(2, "B")])
    args = ["run", rules, cluster.address(topic, partition=0), "--until-idle", "0 s"]
    told = acep(*args, "--store", str(tmp_path / "store.db"), code=2).stderr
    assert "ACEP-U138: --store does not go with kafka://" in told
    assert not (tmp_path / "store.db").exists()
    assert "1 match" in acep(*args).stderr


def test_another_process_reads_the_same_cluster(cluster, topic):
    cluster.send(topic, [event(1, "A"), event(2, "B")])
    command = [sys.executable, "-m", "acep_approx.cli.main", "run", "PATTERN SEQ(A a, B b) WITHIN 5"]
    command += [cluster.address(topic, partition=0), "--until-idle", "0 s", "--quiet"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.stderr == ""
    assert json.loads(done.stdout)["b.ts"] == 2


# --- columns of a file --------------------------------------------------------------------------------------------


@pytest.fixture
def columns(tmp_path):
    """A file of events: a number, a time in another format than ISO-8601, a field of an object."""
    row = {"ts": "31.05.2024 08:00:00", "type": "A", "x": 1.5, "of": {"who": "a"}}
    (tmp_path / "columns.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    return tmp_path / "columns.jsonl"


def at(second, kind, **more):
    return event(f"31.05.2024 08:00:{second:02}", kind, **more)


def test_columns_of_a_file_do_not_hang_on_the_first_messages(cluster, topic, columns, tmp_path):
    """The first message lacks a column, in the next one it is a whole number, and later one with a fraction."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x AND b.of.who = 'b' WITHIN 5 s")
    address = cluster.address(topic, partition=0)
    with pytest.raises(QueryError, match="ACEP-Q060"):
        list(compile_query("PATTERN A a WHERE a.y = 1 WITHIN 5 s").follow(address, schema=columns))  # nothing came yet
    cluster.send(topic, [at(0, "A"), at(1, "A", x=1), at(2, "B", x=2.5, of={"who": "b"}), at(3, "B", x="?")])
    bad, kept = tmp_path / "bad.jsonl", {"until_idle": 0, "schema": columns, "checkpoint": tmp_path / "cp"}
    kept |= {"on_malformed": "skip", "rejects": bad}
    tables = list(query.follow(address, bind="kafka_offset", **kept))
    assert [(row["a"], row["b"]) for table in tables for row in table.to_pylist()] == [(1, 2)]
    assert "changed from number to string" in bad.read_text()
    cluster.send(topic, [at(4, "B", x=9, of={"who": "b"})])
    again = [row for table in query.follow(address, bind="kafka_offset", **kept) for row in table.to_pylist()]
    assert [(row["a"], row["b"]) for row in again] == [(1, 4)]
    with pytest.raises(UsageError, match="had the columns of a file") as caught:
        query.follow(address, bind="kafka_offset", **{**kept, "schema": None})
    assert caught.value.code == "ACEP-U208"


def test_schema_on_the_command_line(cluster, topic, columns, tmp_path):
    cluster.send(topic, [at(0, "A"), at(1, "B")])
    args = ("run", "PATTERN SEQ(A a, B b) WHERE a.x IS NULL WITHIN 5 s", cluster.address(topic, partition=0))
    done = acep(*args, "--until-idle", "0s", "--schema", str(columns), "-q")
    assert len(done.stdout.splitlines()) == 1
    for place, more in ((columns, ()), (columns, ("--follow",))):
        refused = acep("run", "PATTERN A a WITHIN 5", str(place), *more, "--schema", str(columns), code=2)
        assert "ACEP-U139" in refused.stderr


# --- results ------------------------------------------------------------------------------------------------------


def test_a_file_that_is_followed_into_a_topic(cluster, topic, tmp_path):
    file = tmp_path / "events.jsonl"
    file.write_bytes(event(1, "A") + b"\n" + event(2, "B") + b"\n")
    out = ("-o", cluster.address(topic), "--kafka-option", "linger.ms=1", "-q")
    acep("run", "PATTERN SEQ(A a, B b) WITHIN 5", str(file), "--follow", "--until-idle", "0s", *out)
    parts = [follow(cluster.address(topic, partition=n), until_idle=0, time="kafka_time") for n in range(4)]
    assert [row["end"] for part in parts for row in rows(part)] == [2]


RULES = "RULE r ON PATTERN A a WITHIN 5 DO CALL x(a.ts) END"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("kafka://b:9/t?partition=0 --calls kafka://b:9/t", "ACEP-U013"),
        ("e.csv -o kafka://b:9/t --calls kafka://b:9/t", "ACEP-U017"),
        ("e.csv --changes kafka://b:9/t", "ACEP-U019"),
        ("e.csv -o kafka://b:9/t --format csv", "ACEP-U014"),
    ],
)
def test_topics_of_rules(tmp_path, monkeypatch, words, code):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("acep_approx.cli.runs.run.ProgramRun.sender", lambda *_: None)
    (tmp_path / "e.csv").write_text("ts,type\n1,A\n", encoding="utf-8")
    assert code in acep("run", RULES, *words.split(), code=2).stderr
