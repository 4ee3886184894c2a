"""What is said of live input where something is wrong with it, or with what was asked: codes, exit codes and hints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acep_approx.errors import EXIT_TEMPORARY, DataError
from acep_approx.events import follow
from acep_approx.events.live.kafka import Topic
from tests.command_line import acep

QUERY = "PATTERN SEQ(A a, B b) WITHIN 30 s"
END = ("--until-idle", "0 s")


def event(second, kind, **more):
    return json.dumps({"ts": f"2024-05-01T08:00:{second:02}Z", "type": kind, "box": 7, **more}).encode()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


MISTAKES = {
    "attribute": ("PATTERN SEQ(A a, B b) WHERE a.bix > 1 WITHIN 30 s", (), 3, "ACEP-Q060"),
    "key": ("PATTERN SEQ(A a, B b) WHERE [bix] WITHIN 30 s", (), 3, "ACEP-Q060"),
    "comparison": ("PATTERN SEQ(A a, B b) WHERE a.box > 'x' WITHIN 30 s", (), 3, "ACEP-Q061"),
    "window": ("PATTERN SEQ(A a, B b) WITHIN 30", (), 3, "ACEP-Q907"),
    "time": (QUERY, ("--time", "tss"), 4, "ACEP-D002"),
    "type": (QUERY, ("--type", "typ"), 4, "ACEP-D002"),
}


WAYS = ("watermark", "count", "queries", "rules")
"""To run it beside that of one query alone."""


@pytest.mark.parametrize(
    ("mistake", "of"), [*((one, "query") for one in MISTAKES), *(("attribute", one) for one in WAYS)]
)
def test_a_query_that_cannot_be_settled_ends_as_over_a_file(cluster, topic, here, mistake, of):
    query, more, code, name = MISTAKES[mistake]
    events = [event(1, "A"), event(2, "B")]
    cluster.send(topic, events)
    text = b"".join(one + b"\n" for one in events)
    (here / "e.jsonl").write_bytes(text)
    words = {"queries": ("--queries", "q"), "rules": ("r.acep",)}.get(of, (query,))
    (here / "q").mkdir()
    (here / "q" / "one.acep").write_text(query, encoding="utf-8")
    (here / "r.acep").write_text(f"RULE r ON {query}", encoding="utf-8")
    more += {"watermark": ("--watermark", "1 s"), "count": ("--output", "count")}.get(of, ())
    for place in (
        ("e.jsonl",),
        ("-",),
        ("e.jsonl", "--follow", *END),
        (cluster.address(topic, partition=0), *END),
    ):
        told = acep("run", *words, *place, *more, stdin=text, code=code)
        assert name in told.stderr
        assert "ACEP-D059" not in told.stderr


def test_a_field_with_the_name_of_a_column_is_not_waited_for(cluster, topic):
    """No later message takes it away."""
    cluster.send(topic, [event(1, "A", kafka_key="x")])
    query = "PATTERN SEQ(A a, B b) WHERE a.bix > 1 WITHIN 30 s"
    assert "ACEP-D059" in acep("run", query, cluster.address(topic, partition=0), code=4).stderr


def test_partitions_are_the_sources_that_may_be_idle(cluster, topic):
    cluster.send(topic, [event(1, "A"), event(2, "B"), event(59, "A")], partition=1)
    cluster.send(topic, [event(1, "C")], partition=2)
    run = ("run", QUERY, cluster.address(topic), *END, "--idle", "10 s")
    for more in ((), ("--watermark", "1 s")):
        assert "1 match" in acep(*run, *more).stderr


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_byte_order_mark_is_no_fault(cluster, topic, place):
    events = [event(1, "A"), event(2, "B"), event(3, "B")]
    events[place] = b"\xef\xbb\xbf" + events[place]
    cluster.send(topic, events)
    assert "2 matches" in acep("run", QUERY, cluster.address(topic, partition=0), *END).stderr


@pytest.mark.parametrize(
    "option",
    [
        ("--input-format", "csv"),
        ("--input-format", "parquet"),
        ("--input-format", "lines"),
        ("--delimiter", ";"),
        ("--columns", "ts,type"),
        ("--decimal", ","),
        ("--encoding", "latin-1"),
        ("--line-format", "{time} {type}"),
    ],
)
def test_what_is_said_of_files_is_refused_of_messages(option):
    told = acep("run", QUERY, "kafka://localhost:9/topic", *END, *option, code=2).stderr
    assert f"ACEP-U121: {option[0]}" in told
    assert "kcat" in told


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_json_may_be_said_of_messages(cluster, topic, form):
    cluster.send(topic, [event(1, "A"), event(2, "B")])
    address = cluster.address(topic, partition=0)
    assert "1 match" in acep("run", QUERY, address, *END, "--input-format", form, "--encoding", "utf8").stderr


def test_times_of_messages_come_out_as_they_were_written(cluster, topic):
    cluster.send(topic, [event(1, "A"), event(2, "B", ts="2024-05-01T08:00:02.500Z")], timestamp=1_700_000_000_000)
    told = acep("run", QUERY, cluster.address(topic, partition=0), *END, "--output", "events").stdout
    rows = [json.loads(line) for line in told.splitlines()]
    assert [row["ts"] for row in rows] == ["2024-05-01T08:00:01Z", "2024-05-01T08:00:02.500Z"]
    assert {row["kafka_time"] for row in rows} == {"2023-11-14T22:13:20Z"}


# --- where a row stands -------------------------------------------------------------------------------------------

TICKS = "PATTERN SEQ(A a, B b) WITHIN 5"
WRITES = "TABLE t (box int, n int, KEY (box)) RULE r ON " + TICKS + " DO UPSERT t SET n = b.x * 4 AT (b.box) END"
LATE = [(1, "A", {}), (3, "B", {}), (2, "B", {})]
CHANGES = ("--watermark", "1", "--op", "op")
WRONG = {  # what is run, options, events behind a first message that is none, the code, and which of them is wrong
    "late": ((TICKS,), (), LATE, "ACEP-D007", 3),
    "late, counted": ((TICKS,), ("--output", "count"), LATE, "ACEP-D007", 3),
    "late, budget": ((TICKS,), ("--budget", "100 runs"), LATE, "ACEP-D007", 3),
    "late, queries": (("--queries", "q"), (), LATE, "ACEP-D007", 3),
    "late, rules": ((f"RULE r ON {TICKS}",), (), LATE, "ACEP-D007", 3),
    "action": ((WRITES,), (), [(1, "A", {}), (3, "B", {"x": 2**62})], "ACEP-R101", 2),
    "action, late": ((WRITES,), ("--on-late", "skip"), [*LATE, (4, "B", {"x": 2**62})], "ACEP-R101", 4),
    "change": ((TICKS,), CHANGES, [(1, "A", {"op": "c"}), (2, "B", {"op": "z"})], "ACEP-D070", 2),
    "update": ((TICKS,), CHANGES, [(1, "A", {"op": "c"}), (2, "B", {"op": "u"})], "ACEP-D071", 2),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_errors_about_a_row_name_partition_and_offset(cluster, topic, here, wrong):
    words, more, events, code, offset = WRONG[wrong]
    (here / "q").mkdir()
    (here / "q" / "one.acep").write_text(TICKS, encoding="utf-8")
    x = {"x": 1} if "action" in wrong else {}
    values = [b"none", *(event(0, kind, **{"ts": ts, **x, **fields}) for ts, kind, fields in events)]
    cluster.send(topic, values, partition=2)
    address = cluster.address(topic, partition=2)
    told = acep("run", *words, address, *END, "--on-malformed", "skip", *more, code=4).stderr
    assert f"{code}: {topic}[2], offset {offset}: " in told


def test_late_messages_that_are_left_out_are_named(cluster, topic):
    cluster.send(topic, [event(0, kind, ts=ts) for ts, kind, _ in LATE], partition=1)
    told = acep("run", TICKS, cluster.address(topic, partition=1), *END, "--on-late", "skip").stderr
    assert f"1 event left out that came late; {topic}[1], offset 2: time runs backwards" in told


@pytest.mark.parametrize("of", ["query", "queries"])
def test_after_a_stop_the_numbers_go_on(cluster, topic, here, of):
    """Rows are counted from the begin of the stream, offsets stand for themselves."""
    (here / "q").mkdir()
    (here / "q" / "one.acep").write_text(TICKS, encoding="utf-8")
    words = ("--queries", "q") if of == "queries" else (TICKS,)
    run = ("run", *words, cluster.address(topic, partition=1), *END, "--checkpoint", "cp", "-o", "found.jsonl")
    run += ("--on-malformed", "skip")
    cluster.send(topic, [b"none", event(0, "A", ts=1), event(0, "B", ts=2)], partition=1)
    acep(*run)
    cluster.send(topic, [event(0, "A", ts=3), b"none", event(0, "B", ts=2)], partition=1)
    assert f"ACEP-D007: {topic}[1], offset 5: " in acep(*run, code=4).stderr


@pytest.mark.parametrize("first", [b"none", b"[1]", b"{}x"])
def test_a_first_message_that_is_none_is_named(cluster, topic, first):
    cluster.send(topic, [None, first, event(1, "A")], partition=1)
    told = acep("run", QUERY, cluster.address(topic, partition=1), *END, code=4).stderr
    assert f"ACEP-D020: {topic}[1], offset 1: " in told


def test_of_a_topic_without_one_object_it_says_so(cluster, topic):
    cluster.send(topic, [b"none"], partition=1)
    told = acep("run", QUERY, cluster.address(topic, partition=1), *END, "--on-malformed", "skip", code=4).stderr
    assert "ACEP-D021" in told
    assert "kcat" in told
    assert "--input-format" not in told


def test_the_time_of_the_broker_is_taken_only_where_it_is_named(cluster, topic):
    """A first message without a time does not make it the time of all."""
    cluster.send(topic, [b'{"type": "A"}', event(1, "A"), event(2, "B")], partition=1)
    run = ("run", QUERY, cluster.address(topic, partition=1), *END)
    told = acep(*run, "--on-malformed", "skip")
    assert '"start": "2024-05-01T08:00:01Z"' in told.stdout
    assert f"{topic}[1], offset 0: the event has no time" in told.stderr
    assert "2 matches" in acep(*run, "--time", "kafka_time").stderr
    cluster.send(topic, [b'{"type": "A"}'], partition=2)
    alone = acep("run", QUERY, cluster.address(topic, partition=2), *END, code=4).stderr
    assert "--time kafka_time" in alone


@pytest.mark.parametrize("more", [("--output", "events"), ("--output", "count"), ("--on-late", "skip")])
def test_where_no_event_comes_it_says_so(here, more):
    (here / "e.jsonl").write_bytes(b"")
    told = acep("run", TICKS, "e.jsonl", "--follow", *END, *more).stderr
    assert "no match: there was no event to match" in told
    assert "to_arrow" not in told


# --- exit codes ---------------------------------------------------------------------------------------------------


def test_a_broker_that_does_not_answer_is_temporary(monkeypatch):
    monkeypatch.setattr("acep_approx.events.live.kafka.ANSWER", 0.3)
    told = acep("run", QUERY, "kafka://localhost:9/topic", *END, code=EXIT_TEMPORARY).stderr
    assert "ACEP-D058: no broker of localhost:9 answers" in told
    with pytest.raises(DataError) as caught:
        follow("kafka://localhost:9/topic")
    assert caught.value.is_temporary


def test_a_partition_that_is_not_there_is_not_temporary(cluster, topic):
    assert "ACEP-D058" in acep("run", QUERY, cluster.address(topic, partition=9), *END, code=4).stderr


class Said:
    """An error of the client."""

    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        return self._name

    def str(self) -> str:
        return self._name

    def retriable(self) -> bool:
        return False


@pytest.mark.parametrize(
    ("before", "name", "passes"),
    [
        ((), "_TRANSPORT", True),
        ((), "_TIMED_OUT", True),
        ((), "LEADER_NOT_AVAILABLE", True),
        ((), "TOPIC_AUTHORIZATION_FAILED", False),
        ((), "UNKNOWN_TOPIC_OR_PART", False),
        (("_AUTHENTICATION", "_ALL_BROKERS_DOWN"), "_TRANSPORT", False),
        (("_SSL",), "_TRANSPORT", False),
        (("_RESOLVE", "_ALL_BROKERS_DOWN"), "_TRANSPORT", True),
    ],
)
def test_which_errors_of_the_client_pass(cluster, topic, before, name, passes, monkeypatch):
    source = follow(cluster.address(topic, partition=0))
    read: Topic = source._live._topic
    for one in before:
        read._on_error(Said(one))
    assert read._unreadable(Said(name)).is_temporary == passes
    source.close()


# --- hints --------------------------------------------------------------------------------------------------------


def test_no_hint_says_what_cannot_be_done_with_a_topic(cluster, topic, here):
    cluster.send(topic, [event(3, "A"), event(1, "B")])
    address = cluster.address(topic, partition=0)
    late = acep("run", QUERY, address, *END, code=4).stderr
    assert "ACEP-D007" in late
    assert "--watermark '10 s'" in late
    assert "acep look" not in late
    assert "--sort" not in late
    (here / "q").mkdir()
    (here / "q" / "one.acep").write_text(QUERY, encoding="utf-8")
    assert "--reorder '10 s'" in acep("run", "--queries", "q", address, *END, code=4).stderr
    assert "--on-late skip" in acep("run", f"RULE r ON {QUERY}", address, *END, code=4).stderr
    spark = acep("run", QUERY, address, "--spark", "--checkpoint", "c", code=2).stderr
    assert "--follow" not in spark
    assert "add --stream" in spark
    for command in ("look", "why", "check"):
        words = {"look": (address,), "why": (QUERY, address), "check": (QUERY, "--input", address)}[command]
        told = acep(command, *words, code=2).stderr
        assert "ACEP-U140" in told
        assert "kcat" in told
    assert "kafka://BROKER" in acep("run", QUERY, "e.csv", "--kafka-option", "a=b", code=2).stderr


@pytest.mark.parametrize(
    ("place", "repair"),
    [
        ("kafka://localhost:9/out", "go results alone"),
        ("KAFKA://localhost:9/out", "go results alone"),
        ("dbfs://bucket/found.jsonl", "copy it there"),
        ("file:///srv/found.jsonl", "/srv/found.jsonl"),
        ("https://host/found.csv", "copy it there"),
    ],
)
@pytest.mark.parametrize("option", ["-o", "--late", "--rejects", "--checkpoint", "--page"])
def test_no_output_is_an_address(here, option, place, repair):
    Path("e.csv").write_text("ts,type\n1,A\n", encoding="utf-8")
    more = {"--late": ("--watermark", "1"), "--rejects": ("--on-malformed", "skip")}.get(option, ())
    more += {"--checkpoint": ("--follow", *END)}.get(option, ())
    if option == "-o" and "kafka" in place.lower():
        return  # which is a place for results
    told = acep("run", "PATTERN SEQ(A a, B b) WITHIN 5", "e.csv", option, place, *more, code=2).stderr
    assert "ACEP-U170" in told
    assert repair in told


@pytest.mark.parametrize(
    ("place", "repair"),
    [("kafka:/localhost:9/topic", "kafka://BROKER:9092/TOPIC"), ("pulsar://localhost/topic", "| acep run QUERY -")],
)
def test_other_addresses_of_messages(place, repair):
    assert repair in acep("run", QUERY, place, code=4).stderr


def test_the_scheme_is_read_in_any_case(cluster, topic):
    cluster.send(topic, [event(1, "A"), event(2, "B")])
    address = cluster.address(topic, partition=0).replace("kafka://", "Kafka://")
    assert "1 match" in acep("run", QUERY, address, *END).stderr


@pytest.mark.parametrize(
    ("more", "names"),
    [
        (("--watermark", "5 s"), "--watermark 5"),
        (("--key-idle", "5 s"), "--key-idle 5"),
        (("--watermark", "5", "--emit", "2 s"), "--emit 2"),
    ],
)
def test_hints_name_options_beside_what_python_calls_them(here, more, names):
    Path("e.csv").write_text("ts,type,box\n1,A,1\n", encoding="utf-8")
    query = "PATTERN SEQ(A a, B b) WHERE [box] WITHIN 5"
    told = acep("run", query, "e.csv", *more, code=4).stderr
    assert "ACEP-D073" in told
    assert names in told
