"""Late events: refused, or left out, counted and written down; the others match as if there were none."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from acep_approx import compile_query
from acep_approx.cli.main import app
from acep_approx.errors import AcepError, DataError, UsageError
from acep_approx.events.late import LateEvents
from acep_approx.events.roles import Roles
from acep_approx.events.source import open_source
from acep_approx.events.stream import read_events
from acep_approx.matching.renumber import row_columns
from tests.cases import examples

QUERIES = {
    "cells": "PATTERN SEQ(A a, B b, C c) WITHIN 6 ERRORS 1",
    "regex": "a(b|c)+a WITHIN 5",
    "runs": "PATTERN SEQ(A a, B+ b[], C c) WHERE b[i].x >= b[i-1].x AND c.x > a.x WITHIN 8 ERRORS 1",
    "strict": "PATTERN SEQ(A a, B b) WHERE strict_contiguity { a.x <= b.x } WITHIN 8",
    "partition": "PATTERN SEQ(A a, B b) WHERE partition_contiguity { [k] } WITHIN 8",
    "events": "PATTERN SEQ(A a, B b, A c) WHERE a.x <= c.x WITHIN 4 events",
    "negation": "PATTERN SEQ(A a, B b, ~(C c)) WHERE a.x < b.x WITHIN 4",
    "return": "PATTERN SEQ(A a, B b) WITHIN 4 RETURN a.x AS first, b.n AS last",
}
one = st.tuples(st.integers(0, 25), st.sampled_from("ABC"), st.integers(0, 3))
rows = st.lists(one, min_size=12, max_size=30) | st.lists(one, max_size=4)


def stream(drawn, *, lower=False):
    """Events in disorder, each with its number ``n``."""
    ahead = 0
    events = []
    for n, (tick, name, x) in enumerate(drawn):
        ahead = max(ahead, n // 2)
        # about half of the times go on, the others lie anywhere
        ts = ahead + tick % 3 if tick % 2 else tick
        events.append({"ts": ts, "type": name.lower() if lower else name, "x": x, "k": x % 2, "n": n})
    return events


def without_late(events):
    """The naive way: pass over each event that is older than one before it."""
    kept, late, latest = [], [], None
    for event in events:
        if latest is not None and event["ts"] < latest:
            late.append(event)
        else:
            kept.append(event)
            latest = event["ts"]
    return kept, late


def in_parts(events, size):
    """A reader of batches of ``size`` events."""
    table = pa.Table.from_pylist(events)
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=size))


def original(value, numbers):
    """Row numbers of the stream without late events as those of the whole one."""
    if isinstance(value, list):
        return [original(inner, numbers) for inner in value]
    return None if value is None else numbers[value]


def with_rows(table, columns, numbers):
    """A table as dicts, with the row numbers of the whole stream."""
    return [
        {name: original(value, numbers) if name in columns else value for name, value in row.items()}
        for row in table.to_pylist()
    ]


OUTPUTS = {
    "matches": ("to_arrow", "matches"),
    "points": ("points", "points"),
    "counts": ("counts", "counts"),
    "partial": ("partial", "partial"),
}


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("name", QUERIES)
@examples(8)
@given(drawn=rows, size=st.integers(1, 9))
def test_matches_are_those_of_the_stream_without_the_late_events(name, output, drawn, size):
    events = stream(drawn, lower=name == "regex")
    kept, late = without_late(events)
    if not kept:
        return
    query = compile_query(QUERIES[name])
    method, kind = OUTPUTS[output]
    matches = query.match(in_parts(events, size), on_late="skip")
    found = getattr(matches, method)()
    expected = getattr(query.match(pa.Table.from_pylist(kept)), method)()
    numbers = [event["n"] for event in kept]
    assert found.schema == expected.schema
    assert found.to_pylist() == with_rows(expected, row_columns(query.plan, kind), numbers)
    assert matches.source.late.count == len(late)
    assert matches.progress.events == len(kept)


def test_the_worlds_of_this_file_have_late_events_and_matches_after_them():
    """So that the tests above say something."""
    generator = np.random.default_rng(1)
    late, matches = 0, 0
    for _ in range(20):
        drawn = [(int(t), "ABC"[int(i)], int(x)) for t, i, x in generator.integers(0, (26, 3, 4), (30, 3))]
        found = compile_query(QUERIES["runs"]).match(stream(drawn), on_late="skip")
        rows_of_last = [match.values["c"] for match in found if match.values["c"] is not None]
        first = without_late(stream(drawn))[1][0]["n"]
        late += found.source.late.count
        matches += sum(row > first for row in rows_of_last)
    assert late > 100
    assert matches > 20


@examples(25)
@given(drawn=rows, size=st.integers(1, 9))
def test_compressed_output_has_the_rows_of_the_whole_stream(drawn, size):
    events = stream(drawn)
    if not events:
        return
    query = compile_query(QUERIES["cells"])
    packed = query.match(in_parts(events, size), on_late="skip").compressed()
    listed = query.match(events, on_late="skip").to_arrow().to_pylist()
    assert sorted(map(str, packed.expand().to_pylist())) == sorted(map(str, listed))
    bound = {event["n"] for event in without_late(events)[0]}
    assert {row for row in packed.links.column("row").to_pylist() if row is not None} <= bound
    assert set(packed.hits.column("row").to_pylist()) == {match["c"] for match in listed if match["c"] is not None} | {
        match["b"] for match in listed if match["c"] is None
    }


@examples(40)
@given(drawn=rows, size=st.integers(1, 9), is_kept=st.booleans())
def test_reading_numbers_the_others_without_gaps_and_knows_the_gaps(tmp_path_factory, drawn, size, is_kept):
    events = stream(drawn)
    if not events:
        return
    file = tmp_path_factory.mktemp("late") / "late.jsonl" if is_kept else None
    source = open_source(in_parts(events, size), on_late="skip", late=file)
    kept, late = without_late(events)
    batches = list(read_events(source, Roles(time="ts"), columns=["n"], batch_rows=size))
    seen = [(batch.first_row + i, n) for batch in batches for i, n in enumerate(batch.data.column("n").to_pylist())]
    assert seen == list(enumerate(event["n"] for event in kept))
    assert [tick for batch in batches for tick in batch.ticks.tolist()] == [event["ts"] for event in kept]
    assert source.late.original(np.arange(len(kept))).tolist() == [event["n"] for event in kept]
    assert source.late.count == len(late)
    assert len(source.late.reasons) == min(len(late), 5)
    if file is not None:
        written = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        assert written == [{"row": event["n"], **event} for event in late]


def test_no_columns_but_the_time_asked_for():
    source = open_source([{"ts": 2}, {"ts": 1}, {"ts": 3}], on_late="skip")
    assert [batch.ticks.tolist() for batch in read_events(source, Roles(time="ts"), columns=[])] == [[2, 3]]


def test_late_events_are_refused_where_nothing_else_is_said():
    for options in ({}, {"on_late": "refuse"}):
        with pytest.raises(DataError, match="row 1: time runs backwards, from 2 to 1") as caught:
            list(compile_query("ab WITHIN 5").match([{"ts": 2, "type": "a"}, {"ts": 1, "type": "b"}], **options))
        assert caught.value.code == "ACEP-D007"
        assert "on_late='skip'" in caught.value.hint
    matcher = compile_query("ab WITHIN 5").matcher()
    matcher.push([{"ts": 2, "type": "a"}])
    with pytest.raises(DataError, match="ACEP-D007"):
        matcher.push([{"ts": 1, "type": "b"}])


def test_each_pass_counts_anew_and_the_reasons_say_when():
    moment = datetime(2024, 5, 1, 8, tzinfo=UTC)
    events = [{"ts": moment + timedelta(minutes=m), "type": "a"} for m in (0, 9, *range(8), 9)]
    matches = compile_query("aa WITHIN 1 h").match(events, on_late="skip")
    for _ in range(2):
        assert len(matches) == 3
        assert matches.source.late.count == 8
        assert len(matches.source.late.reasons) == 5
    assert matches.source.late.reasons[1] == (
        "row 3: time runs backwards, from 2024-05-01T08:09:00+00:00 to 2024-05-01T08:01:00+00:00"
    )


def test_progress_counts_late_events_as_done():
    events = [{"ts": ts, "type": "a"} for ts in (1, 3, 2, 4)]
    done = []
    compile_query("aa WITHIN 2").match(events, on_late="skip", on_progress=done.append).to_arrow()
    assert done == [4]


def test_budgets_pass_over_late_events_too():
    query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 40")
    events = [{"ts": t - 7 * (t % 5 == 3), "type": "AB"[t % 2], "x": t * 7 % 11} for t in range(60)]
    exact = {tuple(match.values.values()) for match in query.match(events, on_late="skip")}
    some = {tuple(m.values.values()) for m in query.match_within(events, "3 steps/event", audit=0, on_late="skip")}
    assert some
    assert some < exact


def test_why_passes_over_late_events_and_says_their_rows():
    query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5")
    events = [{"ts": ts, "type": kind, "x": 1} for ts, kind in ((1, "A"), (0, "C"), (2, "A"), (3, "B"))]
    answer = query.why(events, around=3, on_late="skip")
    assert "row 3, 3" in "\n".join(answer.lines)
    with pytest.raises(DataError, match="ACEP-D007"):
        query.why(events, around=3)
    with pytest.raises(UsageError, match="ACEP-U115"):
        query.why(events, around=3, on_late="skip", sort=True)


# --- files ----------------------------------------------------------------------------------------------------

TIMES = [datetime(2024, 5, 1, 8, tzinfo=UTC) + timedelta(minutes=m) for m in (0, 60, 30 + 0.5 / 60, 10)]
TABLE = pa.table(
    {
        "ts": pa.array(TIMES, pa.timestamp("us", "UTC")),
        "type": pa.array(["A", "B", 'a "B", so', None]).dictionary_encode(),
        "price": [1.0, 2.0, float("nan"), 2.5],
        "tags": [["x"], [], ['say "hi"', None], None],
        "place": [{"at": 1}, None, {"at": 2}, None],
        "raw": [b"a", b"b", b"\xff", None],
    }
)
A_THEN_B = compile_query("PATTERN SEQ(A a, B b) WITHIN 2 h")


def test_files_hold_all_columns_whatever_the_query_reads(tmp_path):
    for name in ("late.jsonl", "late.CSV", "late.parquet", "late"):
        matches = A_THEN_B.match(TABLE, on_late="skip", late=tmp_path / name)
        assert [match.values for match in matches] == [{"a": 0, "b": 1}]
    lines = (tmp_path / "late.jsonl").read_text(encoding="utf-8").splitlines()
    first = {"row": 2, "ts": "2024-05-01T08:30:00.5Z", "type": 'a "B", so', "price": None}
    assert [json.loads(line) for line in lines] == [
        {**first, "tags": ['say "hi"', None], "place.at": 2, "raw": "b'\\xff'"},
        {"row": 3, "ts": "2024-05-01T08:10:00Z", "price": 2.5} | dict.fromkeys(["type", "tags", "place.at", "raw"]),
    ]
    assert (tmp_path / "late").read_bytes() == (tmp_path / "late.jsonl").read_bytes()
    written = pq.read_table(tmp_path / "late.parquet")
    assert written.column("row").to_pylist() == [2, 3]
    flat = TABLE.set_column(4, "place.at", pa.array([1, None, 2, None]))  # objects are columns
    expected = flat.slice(2).set_column(1, "type", TABLE.column("type").cast(pa.string()).slice(2))
    assert written.drop_columns("row").schema == expected.schema
    assert str(written.drop_columns("row").to_pylist()) == str(expected.to_pylist())  # nan is not nan
    with (tmp_path / "late.CSV").open(newline="", encoding="utf-8") as file:
        header, *found = csv.reader(file)
    assert header == ["row", *flat.column_names]
    assert found[0][:3] == ["2", "2024-05-01T08:30:00.5Z", 'a "B", so']
    assert found[1] == ["3", "2024-05-01T08:10:00Z", "", "2.5", "", "", ""]


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_a_file_can_be_read_and_be_late_again(tmp_path, suffix):
    events = [{"ts": ts, "type": "A", "x": ts * 10} for ts in (5, 3, 4, 1, 6)]
    first, second = tmp_path / f"1.{suffix}", tmp_path / f"2.{suffix}"
    A = compile_query("PATTERN SEQ(A a, A b) WITHIN 2")
    assert [match.values for match in A.match(events, on_late="skip", late=first)] == [{"a": 0, "b": 4}]
    assert [match.values for match in A.match(first, on_late="skip", late=second)] == [{"a": 0, "b": 1}]
    (again,) = [event for batch in open_source(second).batches() for event in batch.to_pylist()]
    assert again == {"row_": 2, "row": 3, "ts": 1, "type": "A", "x": 10}


def test_a_file_without_late_events(tmp_path):
    events = [{"ts": 1, "type": "A"}, {"ts": 1, "type": "B"}]
    for name in ("late.jsonl", "late.csv", "late.parquet"):
        (tmp_path / name).write_text("old")
        matches = compile_query("PATTERN SEQ(A a, B b) WITHIN 2").match(events, on_late="skip", late=tmp_path / name)
        assert len(matches.to_arrow()) == 1
        assert (matches.source.late.count, matches.source.late.reasons) == (0, [])
    assert (tmp_path / "late.jsonl").read_text() == ""
    assert (tmp_path / "late.csv").read_text() == "row,ts,type\n"
    assert pq.read_table(tmp_path / "late.parquet").column_names == ["row", "ts", "type"]


def test_many_late_events_make_few_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr("acep_approx.events.writing.tables.ROWS", 100)
    source = open_source(pa.table({"ts": [1000, *range(250)]}), on_late="skip", late=tmp_path / "late.parquet")
    assert sum(map(len, read_events(source, Roles(time="ts"), batch_rows=20))) == 1
    written = pq.ParquetFile(tmp_path / "late.parquet")
    assert [written.metadata.row_group(i).num_rows for i in range(written.num_row_groups)] == [119, 100, 31]
    assert written.read().column("row").to_pylist() == list(range(1, 251))


def test_rows_are_those_of_rows_that_can_be_read(tmp_path):
    (tmp_path / "e.csv").write_text("ts,type\n1,A\n5,B,?\n3,A\n2,B\n4,B\n")
    late = tmp_path / "late.csv"
    matches = compile_query("PATTERN SEQ(A a, B b) WITHIN 9").match(
        tmp_path / "e.csv", on_malformed="skip", on_late="skip", late=late
    )
    assert [match.values for match in matches] == [{"a": 1, "b": 3}, {"a": 0, "b": 3}]
    assert late.read_text() == "row,ts,type\n2,2,B\n"
    assert (matches.source.malformed.count, matches.source.late.count) == (1, 1)


# --- what does not go together --------------------------------------------------------------------------------


def code_of(**options):
    """The code that ``Query.match`` refuses these options with."""
    with pytest.raises(AcepError) as caught:
        compile_query("ab WITHIN 5").match([{"ts": 1, "type": "a"}], **options).to_arrow()
    return caught.value.code


def test_wrong_options(tmp_path):
    file = tmp_path / "x.jsonl"
    assert code_of(on_late="ignore") == "ACEP-U113"
    assert code_of(late=file) == "ACEP-U114"
    assert code_of(on_late="skip", late=tmp_path / "x.txt") == "ACEP-U018"
    assert code_of(on_late="skip", late=tmp_path / "no" / "x.csv") == "ACEP-U114"
    assert code_of(on_late="skip", sort=True) == "ACEP-U115"
    assert code_of(on_late="skip", late=file, on_malformed="skip", rejects=tmp_path / "." / "x.jsonl") == "ACEP-U114"
    assert not file.exists()
    assert LateEvents("refuse").check(sort=True) is None


def test_the_input_is_not_overwritten(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_text('{"ts": 1, "type": "a"}\n')
    with pytest.raises(UsageError, match="ACEP-U114"):
        compile_query("ab WITHIN 5").match(tmp_path, on_late="skip", late=path)
    assert path.read_text()


# --- the command line -----------------------------------------------------------------------------------------


@pytest.fixture
def mixed(tmp_path, monkeypatch) -> str:
    """A file with two late events, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    lines = ["ts,type,note", "1,A,", "4,A,", "2,B,lost", "3,B,", "5,B,"]
    Path("mixed.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "mixed.csv"


def acep(*arguments: str, code: int = 0):
    """Run ``acep`` and check its exit code."""
    result = CliRunner().invoke(app, ["run", "PATTERN SEQ(A a, B b) WITHIN 9", *arguments])
    assert result.exit_code == code, result.stderr
    return result


def test_late_events_on_the_command_line(mixed):
    refused = acep(mixed, code=4)
    assert "ACEP-D007" in refused.stderr
    assert "--on-late skip" in refused.stderr
    result = acep(mixed, "--on-late", "skip", "--late", "late.csv", "--bind", "row")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(match["a"], match["b"]) for match in found] == [(1, 4), (0, 4)]
    assert "3 events read, 3 relevant" in result.stderr
    assert "2 events left out that came late; row 2: time runs backwards, from 4 to 2" in result.stderr
    assert Path("late.csv").read_text(encoding="utf-8") == "row,ts,type,note\n2,2,B,lost\n3,3,B,\n"
    assert "came late" not in acep(mixed, "--on-late", "skip", "--quiet").stderr
    assert "came late" not in acep(mixed, "--sort").stderr


def test_wrong_options_on_the_command_line(mixed):
    skip = ["--on-late", "skip"]
    assert "ACEP-U114" in acep(mixed, "--late", "late.csv", code=2).stderr
    assert "ACEP-U115" in acep(mixed, *skip, "--sort", code=2).stderr
    assert "ACEP-U018" in acep(mixed, *skip, "--late", "late.txt", code=2).stderr
    assert "ACEP-U013" in acep(mixed, *skip, "--late", mixed, code=2).stderr
    assert "ACEP-U017" in acep(mixed, *skip, "--late", "x.csv", "-o", "x.csv", code=2).stderr
    acep(mixed, "--on-late", "ignore", code=2)
    assert sorted(path.name for path in Path().iterdir()) == [mixed]


def test_why_on_the_command_line(mixed):
    arguments = ["why", "PATTERN SEQ(B a, A b) WITHIN 9", mixed, "--around", "4"]
    assert "ACEP-D007" in CliRunner().invoke(app, arguments).stderr
    answer = CliRunner().invoke(app, [*arguments, "--on-late", "skip"])
    assert answer.exit_code == 0, answer.stderr
    assert "no match" in answer.stdout


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_late_events_whose_types_come_late(suffix: str, tmp_path: Path) -> None:
    """The file has all values, though the first chunk of events has none."""
    events = [{"ts": i, "type": "A", "x": None, "s": None} for i in range(10_001)]
    events += [{"ts": 3, "type": "A", "x": x, "s": s} for x, s in ((7, None), (2.5, "late"))]
    path = tmp_path / f"late.{suffix}"
    matches = compile_query("PATTERN A a WHERE a.x > 1 WITHIN 5").match(events, on_late="skip", late=path)
    assert len(matches) == 0
    found = [(row["x"], row["s"]) for batch in open_source(path).batches() for row in batch.to_pylist()]
    assert found == [(7, None), (2.5, "late")]
