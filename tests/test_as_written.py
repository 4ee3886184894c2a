"""Texts of files stay what they are: numbers only where all come back as written, times of JSON as texts."""

from __future__ import annotations

import gzip
import io
import json
import random
import sys

import pyarrow as pa
import pytest

from acep_approx import compile_query
from acep_approx.errors import AcepError, DataError
from acep_approx.events import open_source
from acep_approx.events.live.source import follow
from acep_approx.events.reading import text as reading
from acep_approx.events.reading.formats.as_written import may_differ
from tests.cases import cases

PAIRS = compile_query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5 RETURN a.id AS one, b.id AS other")


def types(path, **how):
    return {field.name: str(field.type) for field in open_source(path, **how).schema}


@pytest.mark.parametrize(
    ("first", "second", "type_"),
    [
        ("7", "12", "int64"),
        ("-7", "0", "int64"),
        ("1.50", "1.5", "double"),
        ("1.5e-07", "2.0", "double"),
        ("1e-05", "2.0", "double"),
        ("007", "7", "string"),
        ("-007", "7", "string"),
        ("00.5", "7", "string"),
        ("+4366", "4366", "string"),
        ("+1.5", "1.5", "string"),
        ("-0", "0", "string"),
        ("0x1F", "31", "string"),
        ("7E590003", "7E590004", "string"),
        ("1e5", "100000", "string"),
        ("-1E5", "1.5", "string"),
        ("1.5e-999", "1.5", "string"),
        ("inf", "1.5", "string"),
        ("-Infinity", "1.5", "string"),
        ("12345678901234567890", "1", "string"),
        ('"501"', "501", "string"),
        ('"1.5"', "1.5", "string"),
        ("true", "false", "bool"),
        ("True", "False", "bool"),
        ("true", "True", "string"),
        ("true", "1", "string"),
        ("08:30:00", "09:30:00", "time32[s]"),
        ("08:30", "08:30:00", "string"),
    ],
)
def test_a_column_holds_numbers_if_all_come_back_as_written(tmp_path, first, second, type_):
    file = tmp_path / "in.csv"
    for rows in ((first, second), (second, first)):
        file.write_text("ts,id\n" + "".join(f"{ts},{text}\n" for ts, text in enumerate(rows)))
        assert types(file)["id"] == type_
        if type_ == "string":
            texts = [text.strip('"') for text in rows]
            assert [row["id"] for batch in open_source(file).batches() for row in batch.to_pylist()] == texts


def test_numbers_of_times_are_times_however_they_are_written(tmp_path):
    file = tmp_path / "in.csv"
    file.write_text('ts,type\n"0001",A\n+2,B\n')
    assert len(compile_query("PATTERN SEQ(A a, B b) WITHIN 5").match(file)) == 1
    file.write_text('when,type\n"0001",A\n0002,B\n')
    assert len(compile_query("PATTERN SEQ(A a, B b) WITHIN 5").match(file, time="when")) == 1


def test_lines_of_a_log_follow_the_same_rule(tmp_path):
    file = tmp_path / "in.log"
    file.write_text("1 A 007 true\n2 B 7 true\n")
    found = types(file, line_format="{ts} {type} {id} {truth}")
    assert found == {"ts": "int64", "type": "string", "id": "string", "truth": "bool"}
    file.write_text("1 A 7 true\n2 B 12 True\n")
    assert types(file, line_format="{ts} {type} {id} {truth}")["truth"] == "string"


def test_a_later_number_that_does_not_come_back_is_never_another_number(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK_BYTES", 8)
    file = tmp_path / "in.csv"
    file.write_text("ts,type,x\n1,A,7.5\n2,B,8.5\n3,B,007\n")
    query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5")
    with pytest.raises(DataError, match=r"line 4: column 'x' is double .*'007' would not come back .*x=text"):
        len(query.match(file))
    assert len(query.match(file, on_malformed="skip")) == 1


WHOLE = ("7", "007", "+7", "0x7", "-0", "12345678901234567890", '"7"', "8", "")


@pytest.mark.parametrize("seed", range(cases(40, 14)))
def test_ids_after_whole_numbers_become_texts_without_a_loss(tmp_path, monkeypatch, seed):
    dice = random.Random(seed)
    rows = [(ts, dice.choice("AB"), dice.choice(WHOLE)) for ts in range(dice.randint(4, 30))]
    data = ("ts,type,id\n" + "".join(f"{ts},{kind},{text}\n" for ts, kind, text in rows)).encode()
    file = tmp_path / "in.csv"
    file.write_bytes(data)
    whole = outcome(file)
    assert whole is not None
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert outcome("-") == whole
    assert outcome(follow(file, until_idle=0)) == whole
    monkeypatch.setattr(reading, "BLOCK_BYTES", 8)
    assert outcome(file) == whole
    log = tmp_path / "in.log"
    log.write_text("".join(f"{ts} {kind} {text or '-'}\n" for ts, kind, text in rows if text not in ('"7"', "0x7")))
    lines = open_source(log, line_format="{ts} {type} {id}")
    monkeypatch.setattr(reading, "BLOCK_BYTES", 1 << 22)
    assert outcome(lines) == outcome(open_source(log, line_format="{ts} {type} {id}"))


def test_numbers_that_are_compared_never_become_texts(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK_BYTES", 8)
    file = tmp_path / "in.csv"
    file.write_text("ts,type,x\n1,A,7\n2,B,8\n3,B,007\n")
    query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5")
    with pytest.raises(DataError, match=r"row 2: column 'x' was whole numbers so far, and '007' .*") as raised:
        list(query.match(file))
    assert raised.value.code == "ACEP-D110"
    assert "--column-type x=int" in str(raised.value.hint)
    assert len(list(query.match(open_source(file, column_types="x=int")))) == 1


NASTY = ["7", "007", "+7", "8", "-0", "0", "1.5", "1.50", "1e3", "1000", "", "NA", "x", "0x7", '"7"', "True"]


def outcome(events):
    """The pairs that are found, with the ids as texts; None where a value is refused."""
    try:
        return sorted((str(m.values["one"]), str(m.values["other"])) for m in PAIRS.match(events))
    except AcepError as error:
        assert error.code in ("ACEP-D020", "ACEP-D031", "ACEP-D024", "ACEP-D016"), error
        return None


@pytest.mark.parametrize("seed", range(cases(40, 14)))
def test_any_way_to_read_gives_the_same_pairs_or_is_refused(tmp_path, monkeypatch, seed):
    dice = random.Random(seed)
    texts = dice.sample(NASTY, dice.randint(1, 4))
    rows = [(ts, dice.choice("AB"), dice.choice(texts)) for ts in range(dice.randint(2, 12))]
    data = ("ts,type,id\n" + "".join(f"{ts},{kind},{text}\n" for ts, kind, text in rows)).encode()
    file = tmp_path / "in.csv"
    file.write_bytes(data)
    whole = outcome(file)
    assert whole is not None
    nulls = {"": None, "NA": None}
    dicts = [{"ts": ts, "type": kind, "id": nulls.get(text, text.strip('"'))} for ts, kind, text in rows]
    if not any(text in ("1.50", "1.5") for _, _, text in rows):  # decimals are numbers however many zeros they have
        assert whole == outcome(dicts) or {text.lower() for _, _, text in rows} <= {"true", ""}
    (tmp_path / "in.csv.gz").write_bytes(gzip.compress(data))
    assert outcome(tmp_path / "in.csv.gz") == whole
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert outcome("-") in (None, whole)
    assert outcome(follow(file, until_idle=0)) in (None, whole)
    monkeypatch.setattr(reading, "BLOCK_BYTES", 8)
    assert outcome(file) in (None, whole)


TIMES = [
    *("2024-10-27T00:59:00Z", "2024-10-27T00:59:00.5Z", "2024-10-27 00:59:00Z", "2024-10-27T05:59:00+05:00"),
    *("2024-10-27T05:59:00.25+0530", "2024-10-27T00:59:00", "2024-10-27 00:59", "2024-10-27", "2024-02-29T12:00:00Z"),
    *("2024-03-31T02:30:00Z", "2024-03-31T02:30:00+01:00", "2024-10-27T02:30:00Z"),
]


@pytest.mark.parametrize("zone", [None, "Europe/Berlin", "America/New_York"])
@pytest.mark.parametrize("text", TIMES)
def test_times_of_json_are_those_of_csv_and_of_dicts(tmp_path, monkeypatch, text, zone):
    from acep_approx.events import TimeFormat

    written = None if zone is None else TimeFormat(zone=zone)
    query = compile_query("PATTERN A a WITHIN 1 min RETURN a.ts AS t, a.n.at AS n")
    rows = [{"ts": text, "type": "A", "n": {"at": text}}]
    found = list(query.match(rows, time_format=written))
    assert found[0].values == {"t": found[0].start, "n": text}
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "in.jsonl").write_text(lines)
    (tmp_path / "in.json").write_text(json.dumps(rows))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    live = follow(tmp_path / "in.jsonl", until_idle=0, time_format=written)
    opened = [open_source(path, time_format=written) for path in (tmp_path / "in.jsonl", tmp_path / "in.json", "-")]
    for events in [*opened, live]:
        others = list(query.match(events, time_format=written))
        assert [(one.start, one.end, one.values) for one in others] == [(m.start, m.end, m.values) for m in found]
    (tmp_path / "in.csv").write_text(f"ts,type\n{text},A\n")
    plain = compile_query("PATTERN A a WITHIN 1 min").match(tmp_path / "in.csv", time_format=written)
    assert [one.start for one in plain] == [one.start for one in found]


def test_files_of_csv_and_of_json_have_their_times_as_texts(tmp_path):
    (tmp_path / "1.csv").write_text("ts,type\n2024-10-27T00:59:00Z,A\n")
    (tmp_path / "2.jsonl").write_text('{"ts":"2024-10-27T00:59:01Z","type":"B"}\n')
    assert len(compile_query("PATTERN SEQ(A a, B b) WITHIN 1 min").match(tmp_path)) == 1
    assert open_source(tmp_path).schema.field("ts").type == pa.string()


def test_a_type_that_looks_like_a_date_stays_the_text(tmp_path):
    file = tmp_path / "in.jsonl"
    file.write_text('{"ts":1,"type":"2024-01-01"}\n{"ts":2,"type":"2024-01-02"}\n')
    assert len(compile_query("PATTERN SEQ('2024-01-01' a, '2024-01-02' b) WITHIN 5").match(file)) == 1


PLAIN = ["7", "-7", "0", "0.5", "-0.5", "abc", "2024-01-01", '"abc"', "a7e5", "", "12.5e3"]
BAD = ["007", "-007", "+7", "-0", "0x7", "7E5", "-7e5", '"7"', '"-7"', " 7", "1.5e-999", "1e400"]


@pytest.mark.parametrize("rows", [1, 3, 300, 30_000])
def test_the_quick_look_overlooks_nothing_and_seldom_is_wrong(rows):
    dice = random.Random(rows)
    lines = [f"{dice.choice(PLAIN)},{dice.choice(PLAIN)}" for _ in range(rows)]
    assert not may_differ(("\n".join(lines) + "\n").encode(), b",")
    for text in BAD:
        for place in (0, rows // 2, rows - 1):
            for line in (f"{text},x", f"x,{text}"):
                others = [*lines[:place], line, *lines[place + 1 :]]
                assert may_differ("\n".join(others).encode(), b",")
