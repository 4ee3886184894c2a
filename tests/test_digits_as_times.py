"""Numbers that are times written as digits: 20240331, 20240328093000; and fractions behind any sign."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep_approx import compile_query, look
from acep_approx.errors import DataError, UsageError
from acep_approx.events import TimeFormat
from acep_approx.events.source import open_source
from acep_approx.events.time import likely_digits, ticks

DAYS = [(20240331, "A"), (20240401, "B")]
SECONDS = [(20240328093000, "A"), (20240328093100, "B")]
MINUTES = [(202403280930, "A"), (202403280931, "B")]
FINE = [(20240328093000500, "A"), (20240328093100000, "B")]
QUERY = compile_query("PATTERN SEQ(A a, B b) WITHIN 1 d")


def written(folder, kind, rows):
    path = folder / f"in.{kind}"
    if kind == "csv":
        path.write_text("ts,type\n" + "".join(f"{ts},{type_}\n" for ts, type_ in rows))
    elif kind == "jsonl":
        path.write_text("".join(json.dumps({"ts": ts, "type": type_}) + "\n" for ts, type_ in rows))
    else:
        pq.write_table(pa.table({"ts": [ts for ts, _ in rows], "type": [type_ for _, type_ in rows]}), path)
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("rows", "text"), [(DAYS, "%Y%m%d"), (SECONDS, "%Y%m%d%H%M%S"), (MINUTES, "%Y%m%d%H%M"), (FINE, "%Y%m%d%H%M%S%f")]
)
def test_a_format_is_for_columns_of_numbers_too(tmp_path, kind, rows, text):
    path = written(tmp_path, kind, rows)
    (match,) = QUERY.match(path, time_format=text)
    assert match.values == {"a": 0, "b": 1}
    assert match.start.year == 2024
    events = [{"ts": ts, "type": type_} for ts, type_ in rows]
    (of_dicts,) = QUERY.match(events, time_format=text)
    assert (of_dicts.start, of_dicts.end) == (match.start, match.end)
    pushed = QUERY.matcher(time_format=text).push(events)
    assert pushed.column("start").to_pylist() == [match.start]


def test_digits_with_fractions_and_a_zone():
    vienna = TimeFormat("%Y%m%d%H%M%S", zone="Europe/Vienna")
    found = ticks(pa.array([20240328093000.25]), "%Y%m%d%H%M%S", format=vienna)
    assert found.tolist() == ticks(pa.array(["2024-03-28T08:30:00.25Z"])).tolist()


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_without_a_format_look_and_a_run_say_so(tmp_path, kind):
    path = written(tmp_path, kind, DAYS)
    assert "--time-format %Y%m%d" in str(look(path))
    source = open_source(path)
    assert not [*compile_query("PATTERN SEQ(A a, B b) WITHIN 5").match(source)]
    assert source.likely_digits == "%Y%m%d"
    with pytest.raises(Exception, match="holds plain integers") as refused:
        [*QUERY.match(path)]
    assert "--time-format %Y%m%d" in refused.value.hint


def test_numbers_that_count_are_no_digits():
    assert likely_digits(1_700_000_000, 1_700_000_999, None) is None
    assert likely_digits(20241331, 20241332, None) is None
    assert likely_digits(20240331 * 10**6, 20240401 * 10**6, "s") == "%Y%m%d"


def test_a_format_that_is_not_of_digits_does_not_go_with_numbers():
    with pytest.raises(UsageError, match="ACEP-U124"):
        [*QUERY.match(pa.table({"ts": [20240331], "type": ["A"]}), time_format="%Y-%m-%d")]


def test_texts_of_digits_name_their_format():
    with pytest.raises(DataError) as refused:
        ticks(pa.array(["20240328093000"]))
    assert "--time-format %Y%m%d%H%M%S" in refused.value.hint


@pytest.mark.parametrize("times", [("93000", "93005"), ('"093000"', '"093005"'), ("093000", "093005")])
def test_a_date_and_a_time_of_day_of_digits_are_joined(tmp_path, times):
    path = tmp_path / "in.csv"
    path.write_text(f"date,time,type\n20240331,{times[0]},A\n20240331,{times[1]},B\n")
    (match,) = QUERY.match(path, time="date+time")
    assert match.start.isoformat() == "2024-03-31T09:30:00+00:00"
    assert match.end.isoformat() == "2024-03-31T09:30:05+00:00"


@pytest.mark.parametrize("sign", [*":,._ ", ""])
def test_a_fraction_stands_behind_any_sign(sign):
    text = f"%Y%m%d-%H:%M:%S{sign}%f"
    found = ticks(pa.array([f"20251125-09:09:51{sign}290"]), format=TimeFormat(text))
    assert found.tolist() == ticks(pa.array(["2025-11-25T09:09:51.29Z"])).tolist()


def test_a_fraction_needs_its_second():
    with pytest.raises(UsageError, match="%f stands behind %S"):
        TimeFormat("%Y%m%d %f")
