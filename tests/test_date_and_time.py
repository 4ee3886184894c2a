"""A date and a time of day in two columns, and units of times that cannot be right."""

import datetime as dt
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from acep_approx import QuerySet, compile_query
from acep_approx.errors import AcepError, DataError
from acep_approx.events import open_source
from acep_approx.events.date_and_time import refuse_day_alone
from acep_approx.events.roles import infer_roles
from acep_approx.events.time_formats import TimeFormat
from acep_approx.profiling import look
from tests.command_line import acep

QUERY = compile_query("PATTERN SEQ(A a, B b) WITHIN 2 h")
ROWS = [("2024-01-01", "17:45", "B"), ("2024-01-02", "08:00", "A"), ("2024-01-02", "09:00:10.25", "B")]
DICTS = [dict(zip(("date", "time", "type"), row, strict=True)) for row in ROWS]
START, END = (dt.datetime(2024, 1, 2, *rest, tzinfo=dt.UTC) for rest in ((8, 0), (9, 0, 10, 250_000)))


def _csv(folder: Path, header="date,time,type", rows=ROWS, separator=","):
    file = folder / "events.csv"
    file.write_text("\n".join([header.replace(",", separator), *(separator.join(row) for row in rows)]) + "\n")
    return str(file)


def _span(matches):
    (found,) = matches.to_arrow().select(["start", "end"]).to_pylist()
    return found["start"], found["end"]


def _typed():
    return pa.table(
        {
            "Date": [dt.date.fromisoformat(day) for day, _, _ in ROWS],
            "Time": [dt.time(17, 45), dt.time(8), dt.time(9, 0, 10, 250_000)],
            "type": [kind for _, _, kind in ROWS],
        }
    )


@pytest.mark.parametrize("time", [None, "date+time"])
def test_a_file(tmp_path, time):
    file = _csv(tmp_path)
    assert _span(QUERY.match(file, time=time)) == (START, END)
    assert open_source(file).schema.names == ["date", "time", "type", "date+time"]


@pytest.mark.parametrize("events", [DICTS, pa.Table.from_pylist(DICTS), _typed(), pl.from_arrow(_typed())], ids=str)
def test_objects(events):
    assert _span(QUERY.match(events)) == (START, END)


@pytest.mark.parametrize(
    ("header", "days", "clocks"),
    [
        ("Datum,Uhrzeit,type", ["01.01.2024", "02.01.2024", "31.01.2024"], ["5:45 PM", "12:00 AM", "12:30 p.m."]),
        ("datum,zeit,type", ["2024-01-01", "2024-01-02", "2024-01-31"], ["17:45", "0:00:00", "12:30:00,000"]),
        ("DATE,TIME,type", ["2024/01/01", "2024/01/02", "2024/01/31"], ["17:45:00.000", "00:00", "12:30"]),
    ],
)
def test_how_they_are_written(tmp_path, header, days, clocks):
    source = open_source(_csv(tmp_path, header, [*zip(days, clocks, "BAB", strict=True)], ";"))
    name = "+".join(header.split(",")[:2])
    (batch,) = source.batches([name])
    assert [f"{when.as_py():%m-%d %H:%M}" for when in batch.column(0)] == ["01-01 17:45", "01-02 00:00", "01-31 12:30"]
    assert f"time = {name.replace('+', ' + ')}" in source.notes


def test_any_two_columns_if_they_are_said(tmp_path):
    file = _csv(tmp_path, "on,at,type")
    assert _span(QUERY.match(file, time="on+at")) == (START, END)
    with pytest.raises(DataError) as caught:
        QUERY.match(file, time="on+time").to_arrow()
    assert caught.value.code == "ACEP-D002"


def test_a_column_that_has_the_name_wins():
    rows = [{**row, "date+time": at} for at, row in enumerate(DICTS)]
    matches = compile_query("PATTERN SEQ(A a, B b) WITHIN 2").match(rows, time="date+time")
    assert matches.to_arrow().select(["start", "end"]).to_pylist() == [{"start": 1, "end": 2}]


def test_what_is_said_wins(tmp_path):
    assert _span(QUERY.match(_csv(tmp_path), time="date"))[0] == dt.datetime(2024, 1, 2, tzinfo=dt.UTC)


def test_a_time_of_its_own_wins():
    rows = [{"ts": at, **row} for at, row in enumerate(DICTS)]
    assert "date+time" not in open_source(rows).schema.names


def test_dates_with_times_of_their_own_are_not_joined(tmp_path):
    rows = [("2024-01-01T10:00:00", "17:45", "A"), ("2024-01-02T11:00:00", "08:00", "B")]
    assert "date+time" not in open_source(_csv(tmp_path, rows=rows)).schema.names


def test_zones():
    matches = QUERY.match(DICTS, time_format=TimeFormat(zone="Europe/Vienna"))
    assert _span(matches)[0] == START - dt.timedelta(hours=1)


@pytest.mark.parametrize(
    ("place", "value"), [("time", "25:00"), ("time", "noon"), ("time", "13:00 PM"), ("date", "never")]
)
def test_values_that_are_none(place, value):
    with pytest.raises(DataError) as caught:
        QUERY.match([*DICTS[:2], {**DICTS[2], place: value}], time="date+time").to_arrow()
    assert caught.value.code == "ACEP-D086"
    assert "row 2" in caught.value.message


@pytest.mark.parametrize(
    ("rows", "row", "column"),
    [
        ([*ROWS[:2], ("2024-01-02", "n/a", "B")], 2, "time"),
        ([("never", "08:00", "A"), *ROWS[1:]], 0, "date"),
        ([ROWS[1], ("2024-01-02 10:00", "08:00", "A")], 1, "date"),
    ],
)
def test_a_wrong_value_among_right_ones_is_told_as_half_of_a_time(tmp_path, rows, row, column):
    with pytest.raises(DataError) as caught:
        QUERY.match(_csv(tmp_path, rows=rows)).to_arrow()
    assert (caught.value.code, caught.value.row) == ("ACEP-D086", row)
    assert f"in column {column!r}" in caught.value.message
    assert "date + time" in caught.value.hint


def test_rows_are_numbered_with_those_that_have_no_time():
    events = [DICTS[0], {**DICTS[1], "time": None}, {**DICTS[2], "date": "never"}]
    with pytest.raises(DataError, match="row 1: the event has no time"):
        QUERY.match(events, time="date+time").to_arrow()
    found = QUERY.match(events, time="date+time", on_malformed="skip")
    assert not len(found)
    assert "events, row 2: never in column 'date' is no day" in found.source.malformed.reasons[1]


@pytest.mark.parametrize("time", ["time", None])
def test_two_columns_that_are_not_joined_are_hinted_at(tmp_path, time):
    rows = [("never", "17:45", "A"), ("ever", "18:00", "B")] if time is None else ROWS
    file = _csv(tmp_path, rows=[(day, f"{clock} PM", kind) for day, clock, kind in rows])
    with pytest.raises(DataError) as caught:
        QUERY.match(file, time=time).to_arrow()
    assert (caught.value.code, "--time date+time" in caught.value.hint) == ("ACEP-D006", True)


def test_rows_that_lack_one_have_no_time():
    with pytest.raises(DataError) as caught:
        QUERY.match([*DICTS, {"date": "2024-01-03", "time": None, "type": "A"}]).to_arrow()
    assert caught.value.code == "ACEP-D004"


def test_a_matcher_and_its_state():
    matcher = QUERY.matcher()
    assert not matcher.push(DICTS[:2]).num_rows
    assert QUERY.from_state(matcher.state_bytes()).push(DICTS[2:]).num_rows == 1


@pytest.mark.parametrize("options", [{}, {"watermark": "1 h"}], ids=str)
def test_events_that_come_one_by_one(options):
    matcher = QUERY.matcher(**options)
    tables = [*(matcher.push([row]) for row in DICTS), matcher.finish()]
    assert sum(table.num_rows for table in tables) == 1


def test_a_set_with_events_one_by_one():
    desk = QuerySet()
    desk.add(QUERY, id="q")
    found = [*(desk.push([row]) for row in DICTS), desk.finish()]
    assert sum(table.num_rows for tables in found for table in tables.values()) == 1


def test_a_matcher_that_was_told():
    matcher = QUERY.matcher(time="on+at")
    rows = [{"on": row["date"], "at": row["time"], "type": row["type"]} for row in DICTS]
    assert sum(matcher.push([row]).num_rows for row in rows) == 1


def test_sets_and_live_files(tmp_path):
    file = _csv(tmp_path, rows=[*ROWS[:2], ("2024-01-02", "09:00:10", "B")])
    desk = QuerySet(time="date+time")
    desk.add("PATTERN SEQ(A a, B b) WITHIN 2 h", id="q")
    assert desk.match(file)["q"].num_rows == 1
    assert sum(table.num_rows for table in QUERY.follow(file, until_idle=0, time="date+time")) == 1


def test_look_takes_them():
    seen = look(DICTS)
    assert seen.time.column == "date+time"
    assert seen.first.matches == 1


@pytest.mark.parametrize("command", ["run", "why", "check"])
def test_commands_agree(tmp_path, command):
    file = _csv(tmp_path)
    done = acep(command, str(QUERY), *(["--input"] if command == "check" else []), file)
    assert "time = date + time" in done.stderr


def test_standard_input_says_how():
    rows = b"Datum,Zeit,type\n2024-01-01 00:00:00,5 PM,A\n"
    assert "--time Datum+Zeit" in acep("run", str(QUERY), "-", stdin=rows).stderr


def test_where_they_are_not_joined():
    schema = pa.schema([("date", pa.date32()), ("time", pa.string()), ("type", pa.string())])
    with pytest.raises(AcepError) as caught:
        infer_roles(schema, time="date+time")
    assert caught.value.code == "ACEP-D085"
    days = pa.schema([("date", pa.date32()), ("zeit", pa.string())])
    with pytest.raises(AcepError) as caught:
        refuse_day_alone(days, infer_roles(days), None)
    assert caught.value.code == "ACEP-D085"
    refuse_day_alone(days, infer_roles(days, time="date"), "date")


def _numbers(folder: Path, *numbers: int) -> str:
    file = folder / "numbers.csv"
    file.write_text("ts,type\n" + "".join(f"{number},A\n" for number in numbers))
    return str(file)


SECONDS = (1_700_000_000, 1_700_000_060)
UNITS = {"s": SECONDS, "ms": [n * 10**3 for n in SECONDS], "us": [n * 10**6 for n in SECONDS]}


@pytest.mark.parametrize(
    ("right", "said"),
    [
        *((right, None) for right in UNITS),
        *(("s", said) for said in ("s", "ms", "us")),
        *(("ms", "us"), ("us", "us"), ("us", "ns")),
    ],
)
def test_a_unit_that_cannot_be_right(tmp_path, right, said):
    query = f"PATTERN SEQ(A a, A b) WITHIN {'5' if said is None else '5 s'}"
    done = acep("run", query, _numbers(tmp_path, *UNITS[right]), *(["--unit", said] if said else []))
    assert done.stderr.count(f"--unit {right}\n") == (right != said)
    assert done.stderr.count("is the unit of the times right?") == (right != said)


@pytest.mark.parametrize("numbers", [(1, 60), (0, 1_700_000_000), (-5, 5), (315_600_000, 315_700_000)])
@pytest.mark.parametrize("unit", [[], ["--unit", "s"]])
def test_other_numbers_are_left_alone(tmp_path, numbers, unit):
    query = f"PATTERN SEQ(A a, A b) WITHIN {'5 s' if unit else '5'}"
    assert "is the unit" not in acep("run", query, _numbers(tmp_path, *numbers), *unit).stderr


@pytest.mark.parametrize("odd", [0, 10**15])
def test_all_times_count_not_those_at_the_borders(tmp_path, odd):
    file = _numbers(tmp_path, SECONDS[0], odd, SECONDS[1])
    assert "is the unit" not in acep("run", "PATTERN SEQ(A a, A b) WITHIN 5", file, "--sort").stderr
    assert "is the unit" not in acep("run", "PATTERN SEQ(A a, A b) WITHIN 5", file, "--on-late", "skip").stderr
