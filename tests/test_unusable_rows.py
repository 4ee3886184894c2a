"""Rows without a time that can be used: each kind of run leaves them out, as if they were not there, or says where."""

import io
import json
import re
import sys
from itertools import accumulate
from pathlib import Path
from shutil import rmtree
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep_approx import QuerySet, compile_query, compile_rules
from acep_approx.errors import DataError
from acep_approx.events import TimeFormat
from acep_approx.spark.sources.files import read_batches
from acep_approx.spark.worker.shard import Shard
from tests.command_line import acep

SKIP = {"on_malformed": "skip"}
DAYS = [f"2024-03-{day:02} 10:00:00" for day in range(1, 10)]
PLAIN = list(range(1, 10))
VIENNA = {"time_format": TimeFormat(zone="Europe/Vienna")}
SYSLOG = {"time_format": TimeFormat("%b %d %H:%M:%S", year=2023)}
KINDS = {  # good times, those that are none, options
    "numbers": (PLAIN, [None, 1.5, 9e300, -1e19], {}),
    "seconds": (PLAIN, [None, 9e300], {"unit": "s"}),
    "iso": (DAYS, [None, "soon", "2024-02-30 10:00", "28/03/2024 10:00", "2024-03-01 25:00"], {}),
    "formatted": ([f"{day}/03/2024" for day in range(13, 22)], [None, "40/03/2024", "tomorrow"], {}),
    "local": (DAYS, [None, "2024-03-31 02:30:00", "-"], VIENNA),
    "digits": ([20240301 + day for day in range(9)], [None, 20241301, 5], {"time_format": "%Y%m%d"}),
    "syslog": ([f"Mar {day:02} 10:00:00" for day in range(1, 10)], [None, "Feb 29 10:00:00", "Feb 30 10:00"], SYSLOG),
}
TYPES = "ABABBABAB"


def mixed(kind):
    """Good and wrong rows, in turn: their times, types, and which of them are good."""
    good, wrong, options = KINDS[kind]
    rows = []
    for place, (time, type_) in enumerate(zip(good, TYPES, strict=True)):
        rows.append((time, type_, True))
        if place:
            rows.append((wrong[place % len(wrong)], type_, False))
    return rows, options


def csv(rows):
    values = [["" if value is None else str(value) for value in row.values()] for row in dicts_of(rows)]
    return "".join(",".join(row) + "\n" for row in [["ts", "type", "p", "op"], *values])


def jsonl(rows):
    return "".join(json.dumps(row) + "\n" for row in dicts_of(rows))


def dicts_of(rows):
    numbers = accumulate(int(is_good) for _, _, is_good in rows)
    return [
        {"ts": time, "type": type_, "p": number, "op": "+I"}
        for number, (time, type_, _) in zip(numbers, rows, strict=True)
    ]


def only_good(rows):
    return [row for row in rows if row[2]]


def line_of(row):
    return json.loads(row)["line"]


def query(kind):
    return compile_query("PATTERN SEQ(A a, B b) WITHIN " + ("3" if kind == "numbers" else "3 days"))


def of_matches(matches):
    return [(match.start, match.end, match.values) for match in matches]


def of_tables(tables):
    return [row for table in tables for row in table.to_pylist()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_files(kind, form, tmp_path):
    rows, options = mixed(kind)
    write = {"csv": csv, "jsonl": jsonl}[form]
    file, clean, rejects = tmp_path / f"some.{form}", tmp_path / f"clean.{form}", tmp_path / "rejects.jsonl"
    file.write_text(write(rows))
    clean.write_text(write(only_good(rows)))
    expected = query(kind).match(clean, **options)
    found = query(kind).match(file, **options, **SKIP, rejects=rejects)
    assert of_matches(found) == of_matches(expected) != []
    lines = file.read_text().splitlines()
    wrong = [line for line, row in zip(lines[form == "csv" :], rows, strict=True) if not row[2]]
    told = [json.loads(line) for line in rejects.read_text().splitlines()]
    told.sort(key=lambda one: one["line"])  # those that do not fit the type of a column are told first
    assert [one["text"] for one in told] == wrong
    assert [lines[one["line"] - 1] for one in told] == wrong
    assert found.source.malformed.count == len(wrong)
    with pytest.raises(DataError) as caught:
        list(query(kind).match(file, **options))
    assert f"{file}, line " in str(caught.value)
    assert "--on-malformed skip" in caught.value.hint


@pytest.mark.parametrize("kind", KINDS)
def test_followed_at_every_split(kind, tmp_path):
    """Each restart goes past them, with counts and rejects as if there had been none."""
    rows, options = mixed(kind)
    file, rejects, clean = tmp_path / "some.csv", tmp_path / "rejects.jsonl", tmp_path / "clean.csv"
    clean.write_text(csv(only_good(rows)))
    expected = of_tables(query(kind).follow(clean, until_idle=0, **options))
    lines = csv(rows).splitlines(keepends=True)
    for step in (1, 5) if kind in ("numbers", "iso") else (4,):
        found = []
        file.write_text("".join(lines[:2]))
        for end in [*range(2, len(lines), step), len(lines)]:
            with file.open("a") as more:
                more.write("".join(lines[len(file.read_text().splitlines()) : end]))
            where = {"until_idle": 0, "checkpoint": tmp_path / f"where{step}"}
            run = query(kind).follow(file, **where, **options, **SKIP, rejects=rejects, finish=end == len(lines))
            found += of_tables(run)
        assert found == expected
        told = [json.loads(line)["line"] for line in sorted(rejects.read_text().splitlines(), key=line_of)]
        assert told == [place for place, row in enumerate(rows, 2) if not row[2]]
        assert run.source.malformed.count == len(told)


@pytest.mark.parametrize("kind", KINDS)
def test_objects(kind):
    rows, options = mixed(kind)
    clean = only_good(rows)
    expected = of_matches(query(kind).match(dicts_of(clean), **options))
    dicts = dicts_of(rows)
    frame = pd.DataFrame(dicts)
    table = pa.Table.from_pylist(dicts)
    for events in (frame, dicts, table, table.to_batches(max_chunksize=3), iter(dicts)):
        found = query(kind).match(events, **options, **SKIP)
        assert of_matches(found) == expected != []
        assert found.source.malformed.count == len(rows) - len(clean)
        assert found.source.malformed.reasons[0].startswith("events, row 2: ")


RULES = """
TABLE seen (id text, n int DEFAULT 0, KEY (id))
RULE count ON PATTERN B b WITHIN 1 DO UPDATE seen SET n = old.n + 1 AT (b.type) END
RULE pair ON PATTERN SEQ(A a, B b) WITHIN 3
"""


WITHOUT_TIME = r"(line|row) \d.*: the time 1.5 is not a whole number"


def rules_of(events, **options):
    out = compile_rules(RULES).run(events, reading=options)
    return {name: out[name].to_pylist() for name in ("count", "pair")}


def queries_of(events, **options):
    return desk_of().match(events, **options).to_arrow().to_pylist()


def desk_of(**options):
    desk = QuerySet(**options)
    desk.add("PATTERN SEQ(A a, B b) WITHIN 3", id="pair")
    desk.add("SELECT * FROM FILTER {p > 4} (B)", id="b")
    return desk


def cel_of(events, **options):
    query = compile_query("SELECT * FROM FILTER {p > 4} (B)")
    return query.match(events, **options).to_arrow().to_pylist()


def budgeted(events, **options):
    return query("numbers").match_within(events, budget="100%", **options).to_arrow().to_pylist()


RUNS = {
    "list": lambda events, **options: of_matches(query("numbers").match(events, **options)),
    "sorted": lambda events, **options: of_matches(query("numbers").match(events, sort=True, **options)),
    "late": lambda events, **options: of_matches(query("numbers").match(events, on_late="skip", **options)),
    "points": lambda events, **options: query("numbers").match(events, **options).points().to_pylist(),
    "counts": lambda events, **options: query("numbers").match(events, **options).count_by_errors(),
    "events": lambda events, **options: query("numbers").match(events, **options).events().to_pylist(),
    "budget": budgeted,
    "cel": cel_of,
    "queries": queries_of,
    "rules": rules_of,
}


@pytest.mark.parametrize("run", RUNS)
def test_runs(run, tmp_path, monkeypatch):
    """Files of each kind, some of them as one, and standard input."""
    rows, _ = mixed("numbers")
    clean = RUNS[run](dicts_of(only_good(rows)))
    assert clean
    (tmp_path / "a.csv").write_text(csv(rows))
    (tmp_path / "one.csv").write_text("".join(csv(rows).splitlines(keepends=True)[:6]))
    (tmp_path / "two.jsonl").write_text("".join(jsonl(rows).splitlines(keepends=True)[5:]))
    pq.write_table(pa.Table.from_pylist(dicts_of(rows)), tmp_path / "a.parquet", row_group_size=4)
    several = [tmp_path / "one.csv", tmp_path / "two.jsonl"]
    for events in (tmp_path / "a.csv", tmp_path / "a.parquet", several, dicts_of(rows)):
        assert RUNS[run](events, **SKIP) == clean
        with pytest.raises(DataError, match=WITHOUT_TIME):
            RUNS[run](events)
    text = io.BytesIO(csv(rows).encode())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=text))
    assert RUNS[run]("-", **SKIP) == clean


PUSHED = {
    "matcher": lambda **options: query("numbers").matcher(**options),
    "within a budget": lambda **options: query("numbers").matcher(budget="100%", **options),
    "watermark": lambda **options: query("numbers").matcher(watermark=3, **options),
    "changelog": lambda **options: query("numbers").matcher(op="op", id="p", **options),
    "queries": lambda **options: desk_of(**options),
    "reordered": lambda **options: desk_of(reorder=3, **options),
    "rules": lambda **options: compile_rules(RULES).start(**options),
}


def outcome(found):
    if hasattr(found, "to_pylist"):
        return found.to_pylist()
    return found.to_arrow().to_pylist() if hasattr(found, "to_arrow") else found["pair"].to_pylist()


@pytest.mark.parametrize("kind", PUSHED)
def test_pushed(kind, tmp_path):
    rows, _ = mixed("numbers")
    clean, pushes = PUSHED[kind](), PUSHED[kind]
    expected = [row for event in dicts_of(only_good(rows)) for row in outcome(clean.push([event]))]
    expected += outcome(clean.finish())
    assert expected
    for size in (1, 4, len(rows)):
        rejects = tmp_path / "rejects.jsonl"
        run, dicts = pushes(**SKIP, rejects=rejects), dicts_of(rows)
        found = [row for at in range(0, len(rows), size) for row in outcome(run.push(dicts[at : at + size]))]
        found += outcome(run.finish())
        assert sorted(map(str, found)) == sorted(map(str, expected))
        assert run.malformed.count == len(rejects.read_text().splitlines()) == len(rows) - len(only_good(rows))
    with pytest.raises(DataError, match=WITHOUT_TIME) as caught:
        pushes().push(dicts_of(rows))
    assert "on_malformed='skip'" in caught.value.hint


def test_not_one_row_can_be_used(tmp_path):
    """That is an error, as it is when not one row can be read: not the rows are wrong."""
    file = tmp_path / "some.csv"
    file.write_text("ts,type\nsoon,A\nlater,B\n")
    for events in (file, [{"ts": "soon", "type": "A"}]):
        with pytest.raises(DataError, match=r"not one row can be used; .*'soon' is not an ISO-8601 time") as caught:
            list(query("iso").match(events, **SKIP))
        assert caught.value.code == "ACEP-D140"
    run = query("iso").follow(file, until_idle=0, **SKIP)  # others may come
    assert (of_tables(run), run.source.malformed.count) == ([], 2)


def test_an_event_that_ends_before_it_begins(tmp_path):
    file = tmp_path / "some.csv"
    file.write_text("begin,ts,type,p\n1,2,B,5\n4,3,B,5\n,4,B,5\n3,5,B,5\n")
    query = compile_query("SELECT * FROM FILTER {p > 4} (B)")
    found = query.match(file, start="begin", **SKIP)
    assert len(found.to_arrow()) == 2
    assert [reason.partition(", ")[2] for reason in found.source.malformed.reasons] == [
        "line 3: the event ends before it begins",
        "line 4: the event has no time (null or NaN)",
    ]
    with pytest.raises(DataError, match=r"some.csv, line 3: the event ends before it begins: '4,3,B,5'"):
        query.match(file, start="begin").to_arrow()


def test_stamped_events_may_lack_a_time_but_have_no_other(tmp_path):
    """Neither are rows without a time left out there, nor is another time taken for none."""
    file = tmp_path / "some.jsonl"
    events = [{"ts": "2020-01-01T00:00", "type": "A"}, {"ts": "soon", "type": "B"}, {"ts": None, "type": "B"}]
    file.write_text("".join(json.dumps(event) + "\n" for event in events))
    for run in ("push", "match", "follow"):
        desk = QuerySet(stamp=True, **(SKIP if run == "push" else {}))
        desk.add("PATTERN B b WITHIN 1 day", id="b")
        if run == "follow":
            live = desk.follow(file, until_idle=0, **SKIP)
            found, malformed = [row for one in live for row in one.to_arrow().to_pylist()], live.source.malformed
            assert malformed.reasons == [f"{file}, line 2: 'soon' is not an ISO-8601 time"]
        elif run == "push":
            found, malformed = outcome(desk.push(events)) + outcome(desk.finish()), desk.malformed
            assert malformed.count == 1
        else:
            found = outcome(desk.match(file, **SKIP))
        assert len(found) == 1


@pytest.mark.parametrize("split", [1, 2, 3, 100])
def test_days_that_a_year_does_not_have(split):
    """What the order of the events tells of the others does not depend on them, in any split."""
    days = ["Dec 31", "Feb 29", "Jan 01", "Feb 28", "Feb 29", "Feb 29", "Mar 01", "Aug 01", "Jan 02"]
    days += ["Feb 29", "Mar 02"]
    events = pa.table({"ts": [f"{day} 10:00:00" for day in days], "type": ["A"] * len(days)})
    options = {"time_format": TimeFormat("%b %d %H:%M:%S", year=2022)}
    found = compile_query("PATTERN A a WITHIN 1 s").match(events.to_batches(max_chunksize=split), **options, **SKIP)
    years = " ".join(match.start.isoformat()[:10] for match in found)
    assert years == "2022-12-31 2023-01-01 2023-02-28 2023-03-01 2023-08-01 2024-01-02 2024-02-29 2024-03-02"
    assert found.source.malformed.count == 3


@pytest.mark.parametrize("first", [b"", b"\xff,A\n"])
def test_rows_that_are_not_utf8(first, tmp_path, monkeypatch):
    """A byte that is none stops a run as well; what it stands in is left out, but for a header."""
    head, rows = b"ts,type\n", [b"1,A\n", b"\xe9,B\n", b"2,caf\xe9\n", b"3,B\n", b'4,"x\n\xff"\n', b"5,B\n"]
    whole, file = head + first + b"".join(rows), tmp_path / "some.csv"
    file.write_bytes(whole)
    found = query("numbers").match(file, **SKIP)
    expected = [{"a": 0, "b": 1}]
    assert [match.values for match in found] == expected
    lines = [3, 4, 6] if not first else [2, 4, 5, 7]
    reasons = [reason.partition(", ")[2] for reason in found.source.malformed.reasons]
    found_bytes = ["ff", "e9", "e9", "ff"][-len(lines) :]
    told = [f"line {line}: byte 0x{byte} is not UTF-8" for line, byte in zip(lines, found_bytes, strict=True)]
    assert reasons == told
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(whole)))
    assert [match.values for match in query("numbers").match("-", **SKIP)] == expected
    values, rejects = [], tmp_path / "rejects.jsonl"
    file.write_bytes(head)
    for row in [first, *rows]:
        file.write_bytes(file.read_bytes() + row)
        run = query("numbers").follow(file, until_idle=0, checkpoint=tmp_path / "where", **SKIP, rejects=rejects)
        values += [(row["a"], row["b"]) for row in of_tables(run)]
    assert values == [(0, 1)]
    assert [line_of(row) for row in rejects.read_text().splitlines()] == lines
    file.write_bytes(b"ts,typ\xe9\n1,A\n")
    with pytest.raises(DataError, match="ACEP-D014"):
        query("numbers").match(file, **SKIP).to_arrow()


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("once", [True, False])
def test_dicts_that_do_not_go_together(first, once):
    """Neither what stands in the first one, nor what does not fit the others, matters to these."""
    wrong = [{"ts": 2, "type": 7}, "ts", {"ts": "soon", "type": "B"}, {1: 2}, {"ts": 2**70, "type": "B"}]
    good = [{"ts": ts, "type": type_} for ts, type_ in ((1, "A"), (2, "B"), (3, "A"), (5, "B"))]
    events = [*wrong, *good] if first else [good[0], *wrong, *good[1:]]
    expected = of_matches(query("numbers").match(good))
    found = query("numbers").match(iter(events) if once else events, **SKIP)
    assert of_matches(found) == expected != []
    reasons = found.source.malformed.reasons
    places = [f"events, row {row + (not first)}" for row in range(len(wrong))]
    assert [reason.partition(":")[0] for reason in reasons] == places
    assert "so far, and 7 does not fit" in reasons[0]
    matcher = query("numbers").matcher(**SKIP)
    pushed = [(row["a"], row["b"]) for row in matcher.push(events).to_pylist()]
    assert pushed == [tuple(values.values()) for _, _, values in expected]
    assert matcher.malformed.count == len(wrong)
    with pytest.raises(DataError, match=r"ACEP-D018|ACEP-D023"):
        query("numbers").match(events).to_arrow()


@pytest.mark.parametrize("kind", ["numbers", "seconds"])
def test_shards_of_spark(kind):
    """They leave out events without a time in any case, and others that have none that can be used if asked."""
    rows, options = mixed(kind)
    table = pa.Table.from_pylist(dicts_of(rows))
    matcher = query(kind).spark(id="p", on_malformed="skip", **options)
    job = matcher.job(table.schema)
    found = Shard(job).process_sorted(table)
    clean = Shard(job).process_sorted(pa.Table.from_pylist(dicts_of(only_good(rows)), schema=table.schema))
    assert found.results.to_pylist() == clean.results.to_pylist() != []
    assert found.metrics.malformed == found.left_out.num_rows == len(rows) - len(only_good(rows))
    assert set(found.left_out.column("reason").to_pylist()) == {"no time"}
    refusing = query(kind).spark(id="p", **options).job(table.schema)
    with pytest.raises(DataError, match=r"ACEP-D00[56].*") as caught:
        Shard(refusing).process_sorted(table)
    assert "--on-malformed skip" in caught.value.hint


def test_rows_that_spark_cannot_read(tmp_path):
    """Each is an event of nulls, which has no time: so it is left out, and counted."""
    file = tmp_path / "some.csv"
    file.write_text("ts,type\n1,A\n2\n3,B\n4,B,5\n")
    schema = pa.schema([("ts", pa.int64()), ("type", pa.string())])
    read = pa.Table.from_batches(read_batches(str(file), SKIP, schema)).to_pylist()
    nothing = {"ts": None, "type": None}
    assert read == [{"ts": 1, "type": "A"}, {"ts": 3, "type": "B"}, nothing, nothing]


@pytest.mark.parametrize("of", ["query", "watermark", "queries", "rules"])
def test_on_the_command_line(of, tmp_path, monkeypatch):
    """A run stops at such a row, and names the option; with that it goes on from its checkpoint, or its store."""
    monkeypatch.chdir(tmp_path)
    rows, _ = mixed("numbers")
    lines = csv(rows).splitlines(keepends=True)
    Path("all.acep").write_text(RULES if of == "rules" else "PATTERN SEQ(A a, B b) WITHIN 3")
    Path("some").mkdir()
    Path("some/pair.acep").write_text("PATTERN SEQ(A a, B b) WITHIN 3")
    words = ["--queries", "some"] if of == "queries" else ["all.acep"]
    follow = ["--follow", "--until-idle", "0s", *(["--watermark", "3"] if of == "watermark" else [])]
    skip = ["--rejects", "bad.jsonl", "--on-malformed", "skip"]
    follow += ["--store", "here.db", "-o", "found"] if of == "rules" else ["--checkpoint", "where", "-o", "found.jsonl"]
    told = {}
    for name, given in (("clean.csv", csv(only_good(rows)).splitlines(keepends=True)), ("some.csv", lines)):
        for path in map(Path, ("here.db", "where", "found", "bad.jsonl", "found.jsonl")):
            rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        for end in (2, 6, len(given)):
            Path(name).write_text("".join(given[:end]))
            if name == "some.csv" and end > 2:
                stopped = acep("run", *words, name, *follow, code=4)
                assert re.search(r"some.csv, line \d+: the (time|event) ", stopped.stderr)
                assert "--on-malformed skip" in stopped.stderr
            acep("run", *words, name, *follow, *skip, *(["--finish"] if end == len(given) else []))
        found = Path("found/pair.jsonl" if of == "rules" else "found.jsonl").read_text()
        told[name] = [json.loads(line) for line in found.splitlines()]
    assert told["some.csv"] == told["clean.csv"] != []
    rejected = [line_of(row) for row in Path("bad.jsonl").read_text().splitlines()]
    assert rejected == [place for place, row in enumerate(rows, 2) if not row[2]]
