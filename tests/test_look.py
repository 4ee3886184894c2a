"""``acep look``: what is in somebody's events, what the columns are taken for, and a first query that has matches."""

from __future__ import annotations

import io
import json
import shlex
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from acep_approx import compile_query, look
from acep_approx.cli.commands.look import show
from acep_approx.errors import DataError, UsageError
from acep_approx.events.source import open_source
from acep_approx.events.time import plausible_unit
from acep_approx.events.time_formats import TimeFormat
from acep_approx.profiling.columns import EXACT, GAPS, DistinctValues
from acep_approx.profiling.seen import sections
from tests.command_line import acep

SHOP = """when_ms,user_id,action,amount,country
1700000000000,u1,login,,DE
1700000060000,u2,login,,FR
1700000120000,u1,view,,DE
1700000180000,u1,buy,3.5,DE
1700000240000,u2,view,,FR
1700000300000,u2,buy,7,FR
1700003900000,u1,login,,DE
1700003960000,u1,view,,DE
1700003990000,u1,buy,1.25,DE
"""


@pytest.fixture
def shop(tmp_path):
    """A shop's events with names that nobody told us."""
    path = tmp_path / "shop events.csv"
    path.write_text(SHOP)
    return path


def run_as_printed(command: str, matches: int) -> None:
    """The command that was printed finds as many matches as was said."""
    words = shlex.split(command)
    assert words[:2] == ["acep", "run"]
    counted = acep(*words[1:], "--output", "count").stdout.splitlines()
    assert sum(json.loads(line)["matches"] for line in counted) == matches > 0


def test_columns_are_described(shop):
    columns = {column.name: column for column in look(shop).columns}
    assert columns["amount"].missing == 6
    assert (columns["amount"].least, columns["amount"].most) == ("1.25", "7.0")
    assert (columns["user_id"].distinct, columns["user_id"].is_exact) == (2, True)
    assert columns["action"].frequent == (("login", 3), ("view", 3), ("buy", 3))
    assert columns["country"].examples == ("DE", "FR")


def test_roles_are_proposed_with_the_options_that_take_them(shop):
    seen = look(shop)
    assert [role.column for role in (seen.time, seen.type, seen.key)] == [None, None, None]
    assert [role.others[0].option for role in (seen.time, seen.type, seen.key)] == [
        "--time when_ms --unit ms",
        "--type action",
        "--key-column user_id",
    ]


def test_roles_that_are_taken_say_why():
    seen = look([{"ts": 1, "type": "A", "key": "x"}, {"ts": 2, "type": "B", "key": "x"}])
    assert [(role.column, role.why) for role in (seen.time, seen.type, seen.key)] == [
        ("ts", "by its name"),
        ("type", "by its name"),
        ("key", "by its name"),
    ]
    said = look([{"a": 1, "b": "A", "c": "x"}, {"a": 2, "b": "B", "c": "x"}], time="a", type="b", key="c")
    assert {role.why for role in (said.time, said.type, said.key)} == {"you said so"}


def test_the_first_query_runs_on_this_very_file(shop):
    first = look(shop).first
    assert first.text == "PATTERN SEQ(login a, view b, buy c) WHERE [user_id] WITHIN 5 min"
    assert first.options == {"unit": "ms", "time": "when_ms", "type": "action"}
    assert "--unit ms" in first.command
    run_as_printed(first.command, first.matches)


def test_the_first_query_from_python(shop):
    import pyarrow.csv

    table = pyarrow.csv.read_csv(shop)
    first = look(table).first
    assert first.command == ""
    found = eval(first.code, {"compile_query": compile_query, "events": table})
    assert len(found) == first.matches == 3


def test_the_time_of_numbers_is_never_assumed(shop):
    text = str(look(shop))
    assert "As milliseconds since 1970 they are the times below: say --unit ms" in text
    assert "2023-11-14 22:13:20 as ms; the year 55,841 as s" in text
    assert "plain numbers" not in str(look(shop, time="when_ms", unit="ms"))


@pytest.mark.parametrize(
    ("number", "unit"),
    [
        (1_700_000_000, "s"),
        (1.7e9, "s"),
        (1_700_000_000_000, "ms"),
        (17 * 10**14, "us"),
        (17 * 10**17, "ns"),
        (5, None),
    ],
)
def test_units_that_are_plausible(number, unit):
    assert plausible_unit(number, number) == unit


def test_late_events_are_counted_and_the_command_sorts(tmp_path):
    path = tmp_path / "late.jsonl"
    events = [(1, "A"), (5, "B"), (2, "A"), (3, "B"), (9, "A"), (9, "B")]
    path.write_text("".join(json.dumps({"ts": ts, "type": kind}) + "\n" for ts, kind in events))
    seen = look(path)
    assert (seen.times.late, seen.times.latest, seen.times.ties, seen.times.is_reversed) == (2, "3", 2, False)
    assert "2 events are older than one before them, by 3 at most. Say --sort, or --watermark '5'" in str(seen)
    assert "--sort" in seen.first.command
    run_as_printed(seen.first.command, seen.first.matches)


def test_the_newest_first():
    seen = look([{"ts": ts, "type": "AB"[ts % 2]} for ts in range(9, 0, -1)])
    assert seen.times.is_reversed
    assert "the newest comes first: say sort=True" in str(seen)


def test_gaps_and_distances():
    times = [0, 10, 20, 30, 500, 510, 520, 9000]
    times_seen = look([{"ts": ts, "type": "A"} for ts in times]).times
    assert [(gap.length, gap.after) for gap in times_seen.gaps] == [("8,480", "520"), ("470", "30")]
    assert times_seen.typical == "10"
    assert len(look([{"ts": ts} for ts in range(50)]).times.gaps) == 0 < GAPS


def test_rows_that_cannot_be_read_are_counted(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("ts,type\n1,A\n2,B\nB\n3,A,9\n4,B\n")
    seen = look(path)
    assert (seen.rows, seen.malformed) == (3, 2)
    assert "bad.csv, line 4" in seen.reasons[0]
    assert "--on-malformed skip" in seen.first.command
    run_as_printed(seen.first.command, seen.first.matches)


def test_numbers_that_are_read_as_text(tmp_path):
    path = tmp_path / "junk.csv"
    path.write_text("ts,type\n1,A\n2,B\nnone,B\n")
    seen = look(path)
    line = f"{path}, line 4: column 'ts' holds times as numbers, and 'none' is none; "
    assert seen.reasons == (line + "if it stands for no value: --null none",)
    assert (seen.first.matches, seen.first.options) == (1, {"on_malformed": "skip"})
    texts = [{"ts": "1", "type": "A"}, {"ts": "2", "type": "A"}]
    assert "row 0: '1' is not an ISO-8601 time; the times are numbers: say what they count" in look(texts).first.lacks
    assert look(texts, unit="s").first.matches == 1


def test_many_values_that_are_no_times():
    seen = look(pa.table({"ts": ["soon"] * 5000 + [None] * 10}))
    assert (seen.times, seen.first.lacks.split(" rows")[0]) == (None, "at least 1,010")


def test_types_of_several_lines():
    seen = look([{"ts": i, "type": "A\nB" if i % 2 else "it's"} for i in range(9)])
    found = eval(seen.first.code, {"compile_query": compile_query, "events": [{"ts": 1, "type": "it's"}]})
    assert found.source.rows == 1
    assert seen.first.matches > 0


def test_rows_without_a_time_are_told_of():
    seen = look([{"ts": 1, "type": "A"}, {"ts": None, "type": "B"}, {"ts": 2, "type": "B"}])
    assert (seen.times.unreadable, seen.first.matches) == (1, 1)
    assert seen.first.options == {"on_malformed": "skip"}
    seen = look([{"ts": 1, "type": "A"}, {"ts": None, "type": "B"}, {"ts": None, "type": "B"}])
    assert "2 rows have no time that can be read, and a run stops at the first: row 1: the event" in seen.first.lacks


def test_mixed_date_formats_are_counted_not_guessed(tmp_path):
    path = tmp_path / "mixed.csv"
    path.write_text("ts,type\n2024-05-01,A\n01.05.2024,B\n2024-05-02,A\n")
    seen = look(path)
    assert seen.malformed + seen.times.unreadable == 1


def test_many_values_are_an_estimate_and_said_to_be():
    numbers = pa.table({"ts": pa.array(range(40_000)), "name": pa.array([f"n{i}" for i in range(40_000)])})
    column = look(numbers).columns[1]
    assert not column.is_exact
    assert 38_000 <= column.distinct <= 42_000
    assert "about" in str(look(numbers))


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string(), pa.timestamp("ns"), pa.decimal128(12, 0)])
def test_estimates_are_close_whatever_the_type(kind):
    values = DistinctValues()
    for start in range(0, 60_000, 20_000):
        part = pa.array(np.arange(start, start + 30_000)).cast(pa.int64() if pa.types.is_decimal(kind) else kind)
        part = part.cast(kind) if not pa.types.is_decimal(kind) else pa.array([*map(int, part.to_pylist())], kind)
        values.add(part, pa.array(np.ones(len(part), np.int64)))
    assert not values.is_exact
    assert abs(values.count - 70_000) < 0.06 * 70_000


def test_few_values_are_counted():
    values = DistinctValues()
    values.add(pa.array(range(EXACT)), pa.array([1] * EXACT))
    assert (values.count, values.is_exact) == (EXACT, True)


def test_only_the_first_rows(tmp_path):
    path = tmp_path / "many.csv"
    path.write_text("ts,type\n" + "".join(f"{i},{'AB'[i % 2]}\n" for i in range(100)))
    seen = look(path, rows=10)
    assert (seen.rows, seen.is_all) == (10, False)
    assert "the first 10 rows (there are more)" in str(seen)
    assert look(path, rows=100).is_all
    with pytest.raises(UsageError, match="ACEP-U126"):
        look(path, rows=0)


def test_a_column_that_is_not_there(shop):
    with pytest.raises(DataError, match="ACEP-D002"):
        look(shop, time="wen_ms")


NASTY = {
    "nothing": ([], "there are no events"),
    "one row": ([{"ts": 1, "type": "A"}], "at least two events"),
    "no time": ([{"name": "a"}, {"name": "b"}], "no column can be the time"),
    "only texts": ([{"ts": "soon", "type": "A"}, {"ts": "later", "type": "B"}], "2 rows have no time"),
    "one of each": ([{"ts": 1, "type": "A"}, {"ts": 2, "type": "B"}], ""),
    "no type": ([{"ts": i, "x": i * 7 % 5} for i in range(20)], ""),
    "nothing but times": ([{"ts": i} for i in range(20)], ""),
    "no key": ([{"ts": i, "type": "ABC"[i % 3]} for i in range(20)], ""),
    "keys with one row": ([{"ts": i, "type": "AB"[i % 2], "key": i} for i in range(20)], ""),
    "duplicates": ([{"ts": 1, "type": "A", "key": 1}] * 20, ""),
    "two times": ([{"start": f"2024-01-0{i}", "end": f"2024-01-0{i + 1}", "type": "A"} for i in range(1, 8)], ""),
    "huge numbers": ([{"ts": 10**18 + i, "type": "A", "x": 2**62} for i in range(9)], ""),
    "too large": ([{"ts": 2**63 - 9 + i, "type": "A"} for i in range(9)], "9 rows have no time"),
    "fractions": ([{"ts": i / 4, "type": "AB"[i % 2]} for i in range(9)], ""),
    "wide": ([{"ts": i, **{f"c{j}": i * j for j in range(300)}} for i in range(9)], ""),
    "nested": ([{"ts": i, "type": "A", "tags": ["a"], "more": {"b": i}} for i in range(9)], ""),
    "odd names": ([{"ts": i, "event type": "A 'x'", "user id": 7} for i in range(9)], ""),
    "truths": ([{"ts": i, "type": bool(i % 2)} for i in range(9)], ""),
    "only nulls": ([{"ts": i, "type": None, "x": None} for i in range(9)], ""),
    "words of queries": ([{"ts": i, "type": ("WITHIN", "seq", "ANY")[i % 3]} for i in range(9)], ""),
    "times of Python": ([{"ts": datetime(2024, 1, 1, i, tzinfo=UTC), "type": "A"} for i in range(9)], ""),
}


@pytest.mark.parametrize("name", NASTY)
def test_nasty_events(name):
    events, lacks = NASTY[name]
    seen = look(events)
    assert seen.rows == len(events)
    assert (lacks in seen.first.lacks) if lacks else seen.first.matches > 0, seen.first
    assert json.dumps(seen.to_dict(), default=str)
    assert "It cannot be drawn" not in seen._repr_html_()


def test_a_file_with_a_header_only(tmp_path):
    path = tmp_path / "empty.csv"
    path.write_text("ts,type\n")
    seen = look(path)
    assert (seen.rows, seen.first.lacks) == (0, "there are no events")


def test_parquet_with_dictionaries(tmp_path):
    path = tmp_path / "events.parquet"
    kinds = pa.array(["A", "B", None] * 30).dictionary_encode()
    pq.write_table(pa.table({"ts": pa.array(range(90), pa.timestamp("ns")), "type": kinds}), path)
    seen = look([path])
    assert seen.types == (("A", 30), ("B", 30))
    run_as_printed(seen.first.command, seen.first.matches)


def test_how_files_are_written(tmp_path):
    (tmp_path / "a.csv").write_text("ts;type\n1;A\n")
    (tmp_path / "b.jsonl").write_text('{"ts": 2, "type": "B"}\n')
    both, one = look(tmp_path), look(tmp_path / "a.csv", delimiter=";")
    assert both.understood[:2] == ("2 files, the first of them CSV", "delimiter ';' (semicolon)")
    assert one.understood[0] == "CSV"
    assert both.size == sum(path.stat().st_size for path in tmp_path.iterdir())


def test_how_files_are_written_goes_into_the_command(tmp_path):
    path = tmp_path / "days.csv"
    path.write_text("03/04/2024|A\n04/04/2024|B\n")
    seen = look(path, columns=["ts", "type"], delimiter="|", time_format="%d/%m/%Y")
    assert seen.first.command.endswith("--columns ts,type --delimiter '|' --time-format %d/%m/%Y")
    run_as_printed(seen.first.command, seen.first.matches)
    found = eval(seen.first.code, {"compile_query": compile_query, "open_source": open_source})
    assert len(found) == seen.first.matches


def test_many_numbers_at_one_time_are_not_paired():
    same = pa.table({"ts": pa.array([5] * 30_000), "x": pa.array(range(30_000))})
    assert "x" not in look(same).first.text
    assert "b.x > a.x" in look(pa.table({"ts": range(30_000), "x": range(30_000)})).first.text


def test_bytes_that_are_texts():
    table = pa.table({"ts": range(9), "type": pa.array([b"A", b"B", b"C"] * 3), "raw": pa.array([b"\xff"] * 9)})
    seen = look(table)
    assert seen.types == (("A", 3), ("B", 3), ("C", 3))
    assert (seen.columns[2].distinct, seen.first.matches) == (None, 3)


def test_keys_that_cannot_be_keys():
    keys = pa.array([1, 2] * 5).cast(pa.decimal128(38, 0))
    assert "cannot be a key" in look(pa.table({"ts": range(10), "type": ["A", "B"] * 5, "key": keys})).first.lacks


def test_the_command_prints_all_in_full(shop):
    printed = acep("look", str(shop)).stdout
    for text in ("shop events.csv: 9 rows", "when_ms", "--type action", "largest gaps: 1 h after", "run it:"):
        assert text in printed
    command, *_ = (line.strip() for line in printed.splitlines() if line.strip().startswith("acep run"))
    run_as_printed(command, 3)


def test_the_command_as_data(shop):
    seen = json.loads(acep("look", str(shop), "--rows", "6", "--format", "json").stdout)
    assert (seen["rows"], seen["is_all"]) == (6, False)
    assert seen["first"]["matches"] == 2


def test_standard_input():
    printed = acep("look", "-", "--time", "when_ms", "--unit", "ms", stdin=SHOP.encode()).stdout
    assert "-: 9 rows" in printed
    assert "feed the same input to:" in printed
    assert "acep run 'PATTERN SEQ(login a, view b, buy c) WHERE [user_id] WITHIN 5 min' - --time when_ms" in printed


def test_what_can_be_read_once_is_read_once():
    seen = look({"ts": ts, "type": "AB"[ts % 2]} for ts in range(10))
    assert (seen.rows, seen.first.matches > 0) == (10, True)


def test_frames_of_any_library():
    import pandas as pd
    import polars as pl

    events = {"user": ["a", "b"] * 10, "kind": ["x", "y", "z", "x"] * 5}
    hours = pd.date_range("2024-01-01", periods=20, freq="h")
    for frame in (pd.DataFrame(events, index=hours), pl.DataFrame({"ts": list(range(20)), **events}).lazy()):
        seen = look(frame)
        found = eval(seen.first.code, {"compile_query": compile_query, "events": frame})
        assert len(found) == seen.first.matches > 0


def test_a_source_that_is_open():
    assert look(open_source([{"ts": 1, "type": "A"}, {"ts": 2, "type": "B"}])).first.matches == 1


def test_progress_is_told():
    told = []
    look(pa.table({"ts": range(10)}), on_progress=told.append)
    assert told == [10]


def test_html_needs_no_network_and_escapes():
    page = look([{"ts": 1, "type": "<script>"}, {"ts": 2, "type": "B"}])._repr_html_()
    assert "<script>" not in page
    assert "http" not in page
    assert "It cannot be drawn" not in page


def test_a_key_of_measures_is_not_proposed():
    seen = look([{"ts": i, "type": "AB"[i % 2], "price": i % 5, "user": f"u{i % 3}"} for i in range(60)])
    assert [other.column for other in seen.key.others] == ["user"]


def test_stdout_is_text_of_any_width(shop):
    sink = io.StringIO()
    print(look(shop), file=sink)
    assert max(map(len, sink.getvalue().splitlines())) > 80


def test_a_narrow_terminal_gets_fewer_examples_and_no_broken_names(monkeypatch):
    rows = [
        {"created_at": f"2025-02-03T07:00:0{i}", "payload.action": f"a long action {i}", "actor": "Ann", "size": i}
        for i in range(9)
    ]
    seen = look(pa.Table.from_pylist(rows))
    wide, narrow = (next(s for s in sections(seen, width) if s.header) for width in (200, 80))
    assert "missing" not in wide.header  # nothing is
    assert [len(text.split(", ")) for text in wide.column("examples")] == [3, 3, 1, 3]
    assert [len(text.split(", ")) for text in narrow.column("examples")] == [1, 1, 1, 3]

    written = Console(file=io.StringIO(), width=80, force_terminal=True, no_color=True, markup=False)
    monkeypatch.setattr("rich.console.Console", lambda **_: written)
    show(seen)
    assert "payload.action" in written.file.getvalue()


# --- more queries, and how they are said --------------------------------------------------------------------------


def readings(path, *, with_key: bool = True):
    """Readings of three sensors every ten seconds, of which some do not come, and some are high."""
    random = np.random.default_rng(5)
    rows = ["at,sensor,value" if with_key else "at,value"]
    for at in range(0, 6000, 10):
        for sensor in ("s1", "s2", "s3")[: 3 if with_key else 1]:
            if random.random() < 0.03:
                continue
            value = 20 + random.integers(0, 50) / 10 + (40 if random.random() < 0.02 else 0)
            when = datetime.fromtimestamp(1_700_000_000 + at, UTC).isoformat()
            rows.append(f"{when},{sensor},{value:.1f}" if with_key else f"{when},{value:.1f}")
    path.write_text("\n".join(rows))
    return path


@pytest.mark.parametrize("with_key", [True, False])
def test_events_without_types_get_conditions_absence_and_errors(tmp_path, with_key):
    seen = look(readings(tmp_path / "readings.csv", with_key=with_key))
    assert (seen.type.best, seen.key.best) == (None, "sensor" if with_key else None)
    assert "b.value > a.value" in seen.first.text
    absent, gaps, jumps, errors = seen.more
    assert "SEQ(ANY a, ~(ANY n))" in absent.text
    assert "b.ts - a.ts > 15 s" in gaps.text
    assert "contiguity" in gaps.text
    assert "AS gap" in gaps.text
    assert "b.value - a.value >=" in jumps.text
    assert errors.text.endswith("ERRORS 1 MAXIMAL")
    assert all(("[sensor]" in query.text) == with_key for query in seen.more)
    for query in (seen.first, *seen.more):
        run_as_printed(query.command, query.matches)


def test_readings_that_all_come_are_said_to_end():
    seen = look([{"ts": at, "x": at % 7} for at in range(100)])
    assert [query.matches for query in seen.more if "~" in query.text] == [1]
    assert not any("AS gap" in query.text for query in seen.more)


def test_events_with_types_get_errors_and_what_is_not_followed(shop):
    seen = look(shop)
    errors = seen.more[0]
    assert errors.text.endswith("ERRORS 1 MAXIMAL RETURN c.ts - a.ts AS took")
    run_as_printed(errors.command, errors.matches)
    lost = SHOP + "1700004000000,u3,login,,DE\n1700004900000,u1,view,,DE\n"
    shop.write_text(lost)
    (_, absent) = look(shop).more
    assert absent.text == "PATTERN SEQ(login a, ~(buy n)) WHERE [user_id] WITHIN 5 min"
    run_as_printed(absent.command, 1)


def test_numbers_and_names_of_things_are_no_types():
    random = np.random.default_rng(3)
    rows = [{"ts": at, "sensor": "abc"[at % 3], "n": float(random.random())} for at in range(300)]
    assert look(rows).type.best is None
    assert look([{"ts": at, "n": int(random.integers(0, 50))} for at in range(300)]).key.best is None


def test_what_to_say_of_values_of_python_is_arguments(shop):
    import pyarrow.csv

    late = pyarrow.csv.read_csv(shop).take([0, 2, 1, *range(3, 9)])
    text = str(look(late))
    assert "time='when_ms', unit='ms'" in text
    assert "type='action'" in text
    assert "sort=True, or watermark='" in text
    assert "--" not in text
    assert "acep run" not in text
    assert "time=" not in str(look(shop)).replace(look(shop).first.code, "")


LOGS = {
    "syslog": ["Mar 28 09:30:00 web sshd[4]: No", "Mar 28 09:30:05 web cron[7]: done", "Mar 28 09:31:00 web sshd: x"],
    "apache": [
        f'1.2.3.4 - - [28/Mar/2024:09:30:0{n} +0000] "{method} /x HTTP/1.1" 200 5'
        for n, method in enumerate(["GET", "GET", "PUT"])
    ],
    "{time} {level} [{thread}] {logger} - {message}": [
        f"2024-03-28 09:30:0{n},123 {level} [main] a.B - it is" for n, level in enumerate(["INFO", "INFO", "ERROR"])
    ],
    "{time} [{level}] {message}": [f"2024-03-28T09:30:0{n}Z [{it}] x" for n, it in enumerate(["info", "info", "warn"])],
    "{time} {level} {message}": [f"2024-03-28T09:30:0{n}Z {level} a: b" for n, level in enumerate(["W", "W", "E"])],
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_a_log_in_a_known_format_is_read_without_a_word(tmp_path, name):
    path = tmp_path / "x.log"
    path.write_text("\n".join(LOGS[name]) + "\n")
    seen = look(path)
    assert (seen.rows, seen.malformed) == (3, 0)
    assert shlex.split(seen.first.command)[4:6] == ["--line-format", name]
    assert ("--time-year" in seen.first.command) == (name == "syslog")
    assert f"must be told: {shlex.join(['--line-format', name])}" in str(seen)
    assert f"acep look {path} shows" in acep("run", "PATTERN A a WITHIN 5 s", str(path), code=4).stderr
    run_as_printed(seen.first.command, seen.first.matches)
    found = eval(
        seen.first.code, {"compile_query": compile_query, "open_source": open_source, "TimeFormat": TimeFormat}
    )
    assert len(found) == seen.first.matches


def test_lines_without_a_level_are_no_known_log(tmp_path):
    path = tmp_path / "x.log"
    path.write_text("2024-03-28 09:30:00 hello there\n2024-03-28 09:30:01 and there\n")
    with pytest.raises(DataError, match="cannot be told"):
        look(path)
