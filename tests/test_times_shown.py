"""Times in results are times: with a unit as without, in every output and form, and no table cuts them off."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from rich.table import Table

from acep_approx import QuerySet, compile_query, compile_rules
from acep_approx.cli.tables import show
from acep_approx.events.reading.widening import stacked
from acep_approx.events.time import shown_times, ticks
from acep_approx.events.time_formats import TimeFormat
from acep_approx.events.writing.tables import csv_lines, json_lines, plain_text, with_times_as_text
from tests.command_line import acep

BEGIN = 1_714_550_400
UTC = pa.timestamp("us", tz="UTC")
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def events(unit: str | None, kind: pa.DataType | None = None) -> pa.Table:
    """A stream whose times are timestamps, or numbers of a unit."""
    seconds = [BEGIN + 60 * n for n in range(12)]
    if unit is None:
        ts = pa.array(seconds, pa.timestamp("s", tz="UTC")).cast(UTC)
    else:
        ts = pa.array([second * PER_SECOND[unit] for second in seconds]).cast(kind or pa.int64())
    rest = {"type": ["ABBC"[n % 4] for n in range(12)], "user": [n % 2 for n in range(12)], "x": [*range(12)]}
    return pa.table({"ts": ts, **rest})


QUERY = "PATTERN SEQ(A a, B+ b[], C c) WITHIN 10 min ERRORS 1"
UNFINISHED = "PATTERN SEQ(A a, C c, B b) WITHIN 90 s"
RETURNS = """ RETURN a.ts AS one, first(b[].ts) AS earliest, max(b[].ts) AS latest, b[1].ts AS second, c.x AS x,
    count(b[]) AS n"""
OUTPUTS = {
    "matches": lambda table, **how: compile_query(QUERY).match(table, **how).to_arrow(),
    "points": lambda table, **how: compile_query(QUERY).match(table, **how).points(),
    "counts": lambda table, **how: compile_query(QUERY).match(table, **how).counts(),
    "partial": lambda table, **how: compile_query(UNFINISHED).match(table, **how).partial(),
    "bundles": lambda table, **how: compile_query(QUERY).match(table, **how).bundles(),
    "hits": lambda table, **how: compile_query(QUERY).match(table, **how).compressed().hits,
    "links": lambda table, **how: compile_query(QUERY).match(table, **how).compressed().links,
    "events": lambda table, **how: compile_query(QUERY).match(table, **how).events(),
    "bind": lambda table, **how: compile_query(QUERY).match(table, bind="ts", **how).to_arrow(),
    "bind points": lambda table, **how: compile_query(QUERY).match(table, bind="ts", **how).points(),
    "bind several": lambda table, **how: compile_query(QUERY).match(table, bind=["x", "ts"], **how).to_arrow(),
    "RETURN": lambda table, **how: compile_query(QUERY + RETURNS).match(table, **how).to_arrow(),
    "runs": lambda table, **how: compile_query(QUERY + RETURNS, engine="runs").match(table, **how).to_arrow(),
    "pushed": lambda table, **how: compile_query(QUERY + RETURNS).matcher(**how).push(table),
    "revised": lambda table, **how: _revised(table, **how),
    "shed": lambda table, **how: _shed(table, **how),
    "cel": lambda table, **how: compile_query("SELECT * FROM FILTER{x > 3}(A)").match(table, **how).to_arrow(),
    "set": lambda table, **how: _set(table, **how).drop_columns("query"),
    "all of a set": lambda table, **how: _all_of_set(table, **how),
    "changes": lambda table, **how: _rules(table, **how).changes["seen"],
    "rule": lambda table, **how: _rules(table, **how)["noted"],
}


def _revised(table: pa.Table, **how: Any) -> pa.Table:
    matcher = compile_query(QUERY + RETURNS).matcher(watermark="1 min", emit="early", **how)
    return matcher.push(table).drop_columns("match_id")


def _shed(table: pa.Table, **how: Any) -> pa.Table:
    query = compile_query("PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN 10 min")
    some = query.match_within(table, "1 runs", audit=0, log_shed=True, **how)
    some.to_arrow()
    return some.shed()


def _desk(**how: Any) -> QuerySet:
    desk = QuerySet(**how)
    desk.add(f"{QUERY} RETURN a.ts AS began, c.x AS x PUBLISH Got", id="first")
    again = "PATTERN Got g WHERE g.began = g.start WITHIN 1 min RETURN g.began AS b, g.ts AS t, g.start AS s"
    desk.add(again, id="second")
    return desk


def _set(table: pa.Table, **how: Any) -> pa.Table:
    return _desk(**how).match(table)["second"]


def _all_of_set(table: pa.Table, **how: Any) -> pa.Table:
    return _desk(**how).match(table).to_arrow()


def _rules(table: pa.Table, **how: Any) -> Any:
    rules = compile_rules("""
TABLE seen (who int, n int DEFAULT 0, KEY (who))
RULE noted ON PATTERN SEQ(A a, B b) WITHIN 1 min RETURN a.ts AS at DO UPDATE seen SET n = old.n + 1 AT (a.user) END
""")
    return rules.start(**how).push(table)


@pytest.mark.parametrize("output", OUTPUTS)
def test_with_a_unit_results_are_those_of_timestamps(output):
    wanted = OUTPUTS[output](events(None))
    assert wanted.num_rows
    for unit in PER_SECOND:
        found = OUTPUTS[output](events(unit), unit=unit)
        assert found.schema.types == wanted.schema.types, unit
        assert found.to_pylist() == wanted.to_pylist(), unit


@pytest.mark.parametrize("how", [{"bind": ["ts", "x"]}, {"id": "ts"}, {}])
def test_spark_is_told_of_the_same_columns(how):
    text = QUERY if how else QUERY + RETURNS
    wanted = compile_query(text).spark(time="ts", **how).job(events(None).schema).results
    for unit in PER_SECOND:
        found = compile_query(text).spark(time="ts", unit=unit, **how).job(events(unit).schema).results
        assert found == wanted


def test_without_a_unit_numbers_stay_numbers():
    table = events("s")
    query = QUERY.replace("10 min", "600")
    found = compile_query(query + RETURNS).match(table).to_arrow()
    for name in ("start", "end", "one", "earliest", "latest", "second"):
        assert found.schema.field(name).type == pa.int64(), name
    assert compile_query(query).match(table, bind="ts").points().schema.field("ts").type == pa.int64()


def test_conditions_and_sums_compute_with_the_numbers():
    query = compile_query("PATTERN SEQ(A a, C c) WHERE c.ts - a.ts <= 180 WITHIN 10 min RETURN c.ts - a.ts AS took")
    found = query.match(events("s"), unit="s").to_arrow()
    assert found["took"].to_pylist() == [180, 180, 180]


def test_missing_events_have_no_time():
    found = compile_query(QUERY).match(events("s"), unit="s", bind="ts").to_arrow()
    gone = [row["c"] for row in found.to_pylist() if "c" in row["missing"]]
    assert gone
    assert set(gone) == {None}


def test_nanoseconds_are_rounded_down_as_they_are_in_start_and_end():
    table = events("ns").set_column(0, "ts", pa.array([n * 10**9 + 1999 for n in range(12)]))
    query = compile_query("PATTERN A a WITHIN 1 min RETURN a.ts AS t, a.ts + 0 AS number")
    found = query.match(table, unit="ns").to_arrow()
    assert found["t"].to_pylist() == found["start"].to_pylist()
    assert found["number"].to_pylist() == [1999, 4 * 10**9 + 1999, 8 * 10**9 + 1999]


@pytest.mark.parametrize(
    ("column", "unit"),
    [
        (pa.array([1, None, 3], pa.int32()), "s"),
        (pa.array([1.25, None, 3e9]), "s"),
        (pa.array([1.5, -2.5]), "us"),
        (pa.array([2**63 + 5, 1], pa.uint64()), "ns"),
        (pa.array([None, None], pa.int64()), "ms"),
        (pa.nulls(2), "s"),
        (pa.array([], pa.int64()), "s"),
        (pa.array([-5, 7], pa.int64()), "ns"),
    ],
)
def test_times_of_numbers_are_their_ticks(column, unit):
    shown = shown_times(column, unit)
    assert shown.type == UTC
    wanted = ticks(column.drop_null(), unit).tolist() if column.null_count < len(column) else []
    assert shown.drop_null().cast(pa.int64()).to_pylist() == wanted
    assert shown.is_null().to_pylist() == column.is_null().to_pylist()


# --- times that have a type of their own ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "type_",
    [pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us", "Asia/Tokyo"), UTC],
)
def test_what_return_shows_is_what_the_column_holds(type_):
    moments = pa.array([0, None, 86_400_000, 172_800_000], pa.timestamp("ms"))
    column = moments.cast(pa.int64()).cast(pa.timestamp("ms", getattr(type_, "tz", None))).cast(type_)
    table = pa.table({"n": range(4), "type": ["A"] * 4, "v": column})
    text = "PATTERN A+ a[] WITHIN 5 RETURN a[1].v AS one, max(a[].v) AS most, last(a[].v) AS latest"
    found = compile_query(text).match(table, time="n").to_arrow()
    bound = compile_query("PATTERN A a WITHIN 5").match(table, time="n", bind="v").to_arrow()
    assert [found.schema.field(name).type for name in ("one", "most", "latest")] == [type_] * 3
    assert bound.schema.field("a").type == type_
    assert found["most"].to_pylist()[-1] == column[3].as_py()
    assert set(found["one"].to_pylist()) == set(bound["a"].to_pylist())


def test_days_are_days_in_every_form():
    day = pa.table({"day": pa.array([0, 1], pa.date32()), "type": ["A", "B"]})
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 2 days RETURN a.day AS a, b.ts AS b")
    found = query.match(day, time="day").to_arrow()
    assert bytes(csv_lines(found.select(["a", "b"]))) == b"1970-01-01,1970-01-02\n"
    assert json.loads(bytes(json_lines(found)))["b"] == "1970-01-02"


# --- all times of a result are of one kind ----------------------------------------------------------------------

COLUMNS = {
    "no zone": (lambda times: times.cast(pa.timestamp("ns")), None, {}),
    "seconds without zone": (lambda times: times.cast(pa.timestamp("s")), None, {}),
    "a zone": (lambda times: times.cast(pa.timestamp("ms", "Asia/Tokyo")), "Asia/Tokyo", {}),
    "UTC": (lambda times: times, "UTC", {}),
    "no zone, and one is said": (lambda times: times.cast(pa.timestamp("us")), "UTC", {"zone": "Europe/Vienna"}),
    "text": (lambda times: as_text(times), "UTC", {}),
    "text, and a zone is said": (lambda times: as_text(times), "UTC", {"zone": "Asia/Tokyo"}),
    "a number": (lambda times: times.cast(pa.int64()), "UTC", {"unit": "us"}),
}


def as_text(times: pa.Array) -> pa.Array:
    return pc.strftime(times.cast(pa.timestamp("s")))


def zones(type_: pa.DataType) -> set[str | None]:
    """The zones of all times in a type; those that have none are None."""
    if pa.types.is_timestamp(type_):
        return {type_.tz}
    return {zone for place in range(type_.num_fields) for zone in zones(type_.field(place).type)}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("output", sorted({*OUTPUTS} - {"events"}))  # these are the events as they are
def test_all_times_have_the_zone_of_the_events(output, kind):
    make, zone, how = COLUMNS[kind]
    table = events(None)
    table = table.set_column(0, "ts", make(table["ts"].combine_chunks()))
    found = OUTPUTS[output](table, time="ts", **_how(how))
    assert found.num_rows
    of_columns = [zones(field.type) for field in found.schema]
    assert set().union(*of_columns) == {zone}


def _how(how: dict[str, str]) -> dict[str, Any]:
    return {"time_format": TimeFormat(zone=how["zone"])} if "zone" in how else how


@pytest.mark.parametrize("zone", [None, "Europe/Vienna"])
def test_a_result_can_be_joined_with_the_frame_that_it_comes_from(zone):
    pd = pytest.importorskip("pandas")
    times = pd.to_datetime(["2024-05-01 08:00", "2024-05-01 08:05", "2024-05-01 08:07"])
    frame = pd.DataFrame({"ts": times.tz_localize(zone), "type": ["A", "B", "C"], "x": [1, 2, 3]})
    found = compile_query("PATTERN SEQ(A a, C c) WITHIN 10 min RETURN c.ts AS at").match(frame).to_pandas()
    assert found.merge(frame, left_on="start", right_on="ts")["x"].tolist() == [1]
    assert found.merge(frame, left_on="at", right_on="ts")["x"].tolist() == [3]
    assert found["at"].tolist() == found["end"].tolist()


def test_times_in_tables_of_rules_are_like_those_of_the_events():
    rules = """TABLE seen (who int, latest time, KEY (who))
RULE noted ON PATTERN A a WITHIN 1 min DO UPDATE seen SET latest = a.ts AT (a.user); CALL tell(a.ts) END"""
    for zone in (None, "Asia/Tokyo"):
        table = events(None)
        table = table.set_column(0, "ts", table["ts"].cast(pa.timestamp("us", zone)))
        found = compile_rules(rules).start().push(table)
        (changes,) = found.changes.values()
        assert {str(changes.schema.field(name).type.tz) for name in ("time", "latest")} == {str(zone)}
        assert changes["time"].to_pylist() == changes["latest"].to_pylist()
        assert found.calls.schema.field("time").type.tz == zone


def test_a_stream_whose_times_get_a_zone_goes_on():
    matcher = compile_query("PATTERN SEQ(A a, C c) WITHIN 10 min RETURN a.ts AS at").matcher(time="ts")
    table = events(None)
    without = table.set_column(0, "ts", table["ts"].cast(pa.timestamp("us")))
    first, second = matcher.push(without.slice(0, 6)), matcher.push(table.slice(6))
    assert (first.schema.field("start").type.tz, second.schema.field("start").type.tz) == (None, "UTC")
    assert stacked([first, second]).schema.field("start").type == UTC


# --- forms ------------------------------------------------------------------------------------------------------


def test_times_are_written_alike_wherever_they_stand():
    moment = dt.datetime(2024, 5, 1, 8, 0, 0, 250_000, dt.UTC)
    text = "2024-05-01T08:00:00.25Z"
    column = pa.array([moment], UTC)
    for wrapped, written in (
        (column, text),
        (pa.array([[moment, None], None], pa.list_(UTC)).slice(0, 1), [text, None]),
        (pa.array([{"t": moment, "n": 1}, None]).slice(0, 1), {"t": text, "n": 1}),
        (pa.array([[{"t": [moment]}]]), [{"t": [text]}]),
        (pa.array([[moment]], pa.list_(UTC, 1)), [text]),
    ):
        (line,) = bytes(json_lines(pa.table({"v": wrapped}))).decode().splitlines()
        assert json.loads(line) == {"v": written}
        if not isinstance(written, str):
            assert with_times_as_text(wrapped).to_pylist() == [written]
    assert plain_text(column, ";").to_pylist() == [text]
    both = pa.array([[moment, moment]], pa.list_(UTC))
    assert bytes(csv_lines(pa.table({"v": both}))).decode() == f"{text};{text}\n"


def test_nested_times_that_are_null_or_sliced():
    lists = pa.array([[0, 1], None, [], [2, None]], pa.list_(pa.timestamp("s"))).slice(1)
    assert with_times_as_text(lists).to_pylist() == [None, [], ["1970-01-01T00:00:02", None]]
    structs = pa.array([{"t": 0}, None, {"t": 2}], pa.struct([("t", pa.timestamp("s"))])).slice(1)
    assert with_times_as_text(structs).to_pylist() == [None, {"t": "1970-01-01T00:00:02"}]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "table"])
def test_the_command_line(tmp_path, form):
    file = tmp_path / "events.parquet"
    pq.write_table(events("s"), file)
    out = tmp_path / f"out.{form}"
    options = ["--unit", "s", "--format", form, *(["-o", str(out)] if form == "parquet" else [])]
    text = "PATTERN SEQ(A a, C c) WITHIN 10 min RETURN a.ts AS t"
    said = acep("run", text, str(file), *options).stdout
    if form == "parquet":
        assert pq.read_table(out).schema.field("t").type == UTC
    elif form == "csv":
        first = next(csv.DictReader(io.StringIO(said)))
        assert (first["t"], first["start"]) == ("2024-05-01T08:00:00Z",) * 2
    elif form == "jsonl":
        first = json.loads(said.splitlines()[0])
        assert (first["t"], first["start"]) == ("2024-05-01T08:00:00Z",) * 2
    else:
        assert "2024-05-01T08:00:00Z" in said


# --- tables on the terminal -------------------------------------------------------------------------------------

TIMES = [f"2024-05-01T08:0{n}:00.123456Z" for n in range(3)]
WORDS = ["a text of many words", "short", "verylongwordwithoutanyblanksinit"]


def shown(width: int, whole: tuple[int, ...] = (0, 1)) -> tuple[str, str]:
    """A table at some width, and its texts without the frame, column by column."""
    table = Table()
    for name in ("start", "end", "words", "n"):
        table.add_column(name)
    for time, word in zip(TIMES, WORDS, strict=True):
        table.add_row(time, time, word, "12345678")
    out = Console(file=io.StringIO(), width=width, force_terminal=False, color_system=None)
    show(table, whole, to=out)
    text = out.file.getvalue()
    columns = zip(*[line.split("│")[1:-1] for line in text.splitlines() if line.startswith("│")], strict=True)
    return text, "\n".join("".join("".join(cell.split()) for cell in column) for column in columns)


@pytest.mark.parametrize("width", [200, 120, 90, 70, 50, 49, 48, 40, 20, 5])
def test_nothing_is_cut_off(width, capsys):
    text, cells = shown(width)
    assert "…" not in text
    everything = shown(1000)[1]
    assert cells == everything
    said = capsys.readouterr().err
    is_wide = max(map(len, text.splitlines())) > width
    assert is_wide == ("go on below" in said)
    assert is_wide == (width < 45)


def test_times_stay_whole_while_there_is_room():
    text, _ = shown(90)
    assert all(text.count(time) == 2 for time in TIMES)
    assert WORDS[2] not in text
    assert not any(time in shown(50)[0] for time in TIMES)


def test_a_file_has_no_edge(tmp_path):
    file = tmp_path / "events.parquet"
    pq.write_table(events("s"), file)
    names = [f"{letter}_{n}" for n in range(20) for letter in "ac"]
    outputs = ", ".join(f"{name[0]}.ts AS {name}" for name in names)
    query = f"PATTERN SEQ(A a, C c) WITHIN 10 min RETURN {outputs}"
    said = acep("run", query, str(file), "--unit", "s", "--format", "table").stdout
    row = next(line for line in said.splitlines() if "2024" in line)
    assert row.count("2024-05-01T08:") == 42


def narrow(width: int, header: list[str], *rows: list[str]) -> str:
    """A table in a narrow terminal; all of its columns are rather not broken."""
    table = Table()
    for name in header:
        table.add_column(name)
    for row in rows:
        table.add_row(*row)
    out = Console(file=io.StringIO(), width=width, force_terminal=False, color_system=None)
    show(table, range(len(header)), out)
    return out.file.getvalue()


def test_times_that_have_no_room_are_broken_behind_the_day():
    row = ["2024-05-01T08:00:00Z", "2024-05-01T08:06:00Z", "a", "(missing)"]
    text = narrow(60, ["start", "end", "missing", "b"], row)
    assert "│ 2024-05-01T │ 2024-05-01T │" in text
    assert "│ 08:00:00Z   │ 08:06:00Z   │" in text
    assert "│ 2024-05-01T08:00:00Z │" in narrow(90, ["start", "end", "missing", "b"], row)


def test_empty_columns_make_room_for_times():
    row = ["2024-05-01T08:00:00Z", "2024-05-01T08:06:00Z", ""]
    assert "missing" in narrow(70, ["start", "end", "missing"], row)
    text = narrow(50, ["start", "end", "missing"], row)
    assert "missing" not in text
    assert "│ 2024-05-01T08:00:00Z │ 2024-05-01T08:06:00Z │" in text
