"""Times as people write them: understood, said, and never guessed between days and months."""

# ruff: noqa: DTZ001, DTZ007  (times without a zone are what this is about)

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep_approx import HistoryGraph, QuerySet, compile_query
from acep_approx.errors import DataError, UsageError
from acep_approx.events import open_source, ticks
from acep_approx.events.time_formats import KNOWN, TimeFormat, guesses, parse_times
from acep_approx.profiling import look
from tests.command_line import acep

QUERY = "PATTERN SEQ(A a, B b) WITHIN 10 min"
MOMENT = datetime(2013, 1, 31, 17, 45, tzinfo=UTC)


def micros(moment):
    return int(moment.timestamp()) * 1_000_000


def write(path, *times, header="when,type"):
    path.write_text(header + "\n" + "".join(f'"{time}",{"AB"[n % 2]}\n' for n, time in enumerate(times)))
    return path


def failure(call, kind=DataError):
    with pytest.raises(kind) as caught:
        call()
    return caught.value


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2013-01-31 17:45:00,000", "%Y-%m-%d %H:%M:%S"),
        ("2013/01/31 17:45:00.000", "%Y/%m/%d %H:%M:%S"),
        ("31.01.2013 17:45", "%d.%m.%Y %H:%M"),
        ("31-01-2013 17:45", "%d-%m-%Y %H:%M"),
        ("31/01/2013 17:45:00", "%d/%m/%Y %H:%M:%S"),
        ("01/31/2013 5:45 PM", "%m/%d/%Y %I:%M %p"),
        ("1/31/2013, 5:45:00 pm", "%m/%d/%Y, %I:%M:%S %p"),
        ("31 Jan 2013 17:45:00", "%d %b %Y %H:%M:%S"),
        ("31-JAN-2013 17:45:00", "%d-%b-%Y %H:%M:%S"),
        ("January 31, 2013 17:45", "%b %d, %Y %H:%M"),
        ("Thu Jan 31 17:45:00 2013", "%a %b %d %H:%M:%S %Y"),
        ("[31/Jan/2013:18:45:00 +0100]", "[%d/%b/%Y:%H:%M:%S %z]"),
        ("Thu, 31 Jan 2013 12:45:00 -0500", "%a, %d %b %Y %H:%M:%S %z"),
        ("Thu, 31 Jan 2013 17:45:00 GMT", "%a, %d %b %Y %H:%M:%S %z"),
        ("20130131T174500", "%Y%m%dT%H%M%S"),
        ("20130131T174500Z", "%Y%m%dT%H%M%S%z"),
        ("2013-01-31 17:45:00 UTC", "%Y-%m-%d %H:%M:%S %z"),
    ],
)
def test_common_formats_are_understood_everywhere(tmp_path, text, written):
    assert guesses(pa.array([text])) == [written]
    assert ticks(pa.array([text])).tolist() == [micros(MOMENT)]
    source = open_source(write(tmp_path / "e.csv", text))
    assert {name: found.text for name, found in source.understood.times.items()} == {"when": written}
    assert source.notes[0].startswith(f"times of when as {written}")
    assert ("first" in source.notes[0]) == (text[:2] in ("31", "01", "1/") and "Jan" not in text and "JAN" not in text)
    (batch,) = source.batches(["when"])
    assert ticks(batch.column("when")).tolist() == [micros(MOMENT)]


@pytest.mark.parametrize("text", ["10.1.2.3", "31.02.2013", "build 2013.01.31-7", "N31/2", "+49 1234 5678"])
def test_what_is_no_time_stays_text(tmp_path, text):
    assert guesses(pa.array([text])) == []
    assert open_source(write(tmp_path / "e.csv", text)).schema.field("when").type == pa.string()


def test_every_known_format_reads_what_is_written_in_it():
    moments = [datetime(2013, 11, 30, 17, 45, 9), datetime(1999, 1, 13, 0, 5, 59), datetime(2024, 12, 31, 12, 0, 0)]
    for number, known in enumerate([*KNOWN[::3], *KNOWN[-14:]]):
        words = known.replace("%z", "+0000").replace("%Z", "GMT")
        texts = [moment.strftime(words) for moment in moments]
        assert number % 7 or known.replace("%Z", "%z") in guesses(pa.array(texts)), (known, texts)
        read = parse_times(pa.array(texts), TimeFormat(known, year=2013)).cast(pa.int64()).to_pylist()
        for text, value in zip(texts, read, strict=True):
            has_year = "%Y" in known or "%y" in known
            again = datetime.strptime(text if has_year else f"2013 {text}", words if has_year else f"%Y {words}")
            assert value == micros(again.replace(tzinfo=UTC)), (known, text)


def test_seconds_may_have_fractions_which_are_rounded_down():
    column = pa.array(["31.01.2013 17:45:00", "31.01.2013 17:45:00.5", "31.01.2013 17:45:00,1234567"])
    assert (ticks(column) - micros(MOMENT)).tolist() == [0, 500_000, 123_456]


def test_days_and_months_are_never_guessed(tmp_path):
    for text in ("01/02/2013 17:45", "01.02.2013 17:45", "01-02-2013 17:45"):
        path = write(tmp_path / "e.csv", text, text)
        day_first, month_first = guesses(pa.array([text]))
        assert open_source(path).understood.open_times == {"when": [day_first, month_first]}
        query = compile_query(QUERY)
        error = failure(lambda: query.match(path, time="when").to_arrow())  # noqa: B023
        assert error.code == "ACEP-D032"
        assert error.__cause__ is not error
        assert day_first in error.message
        assert month_first in error.message
        assert f"--time-format {day_first!r}" in error.hint
        for said in (day_first, month_first):
            assert len(query.match(path, time="when", time_format=said)) == 1
        asked = (QUERY, str(path), "--time", "when")
        assert "ACEP-D032" in acep("run", *asked, code=4).stderr
        done = acep("run", *asked, "--time-format", month_first, "--format", "jsonl")
        assert '"start": "2013-01-02T17:45:00Z"' in done.stdout
        assert f"times of when as {month_first}" in done.stderr


def test_what_was_decided_holds(tmp_path, monkeypatch):
    monkeypatch.setattr("acep_approx.events.reading.text.BLOCK_BYTES", 64)
    path = write(tmp_path / "e.csv", "31/01/2013", "01/02/2013", "01/02/2013", "02/13/2013", "03/02/2013")
    assert failure(lambda: list(open_source(path).batches())).code == "ACEP-D020"
    source = open_source(path, on_malformed="skip")
    days = [row["when"].day for batch in source.batches() for row in batch.to_pylist()]
    assert (days, source.malformed.count) == ([31, 1, 1, 3], 1)
    assert "'when' holds times, %d/%m/%Y" in source.malformed.reasons[0]


def test_files_that_do_not_tell_follow_those_that_do(tmp_path):
    first, second = write(tmp_path / "1.csv", "05/01/2013"), write(tmp_path / "2.csv", "31/01/2013")
    rows = [row["when"] for batch in open_source([first, second]).batches() for row in batch.to_pylist()]
    assert rows == [datetime(2013, 1, 5), datetime(2013, 1, 31)]
    third = write(tmp_path / "3.csv", "02/13/2013")
    assert failure(lambda: open_source([second, third])).code == "ACEP-D036"


def test_a_format_that_is_said_must_be_that_of_a_column(tmp_path):
    path = write(tmp_path / "e.csv", "31/01/2013")
    error = failure(lambda: open_source(path, time_format="%d.%m.%Y"))
    assert (error.code, "31/01/2013" in error.message) == ("ACEP-D033", True)
    for wrong in ("%Q", "%d", "%d %d %m", "%d/%m/%Y %I:%M", "%d/%m/%Y %p"):
        assert failure(lambda: open_source(path, time_format=wrong), UsageError).code == "ACEP-U117"  # noqa: B023
    assert failure(lambda: TimeFormat(zone="Europe/Atlantis"), UsageError).code == "ACEP-U118"
    path = write(tmp_path / "m.csv", "31/01/2013", "?", "01/02/2013")
    source = open_source(path, time_format="%d/%m/%Y", on_malformed="skip")
    assert sum(batch.num_rows for batch in source.batches()) == 2


def test_a_year_that_is_missing_is_asked_for(tmp_path):
    path = write(tmp_path / "e.csv", "Jan 31 17:45:00", "Jan 31 17:46:00")
    query = compile_query(QUERY)
    assert failure(lambda: query.match(path, time="when").to_arrow()).code == "ACEP-D035"
    done = acep("run", QUERY, str(path), "--time", "when", "--time-year", "2013", "--format", "jsonl")
    assert '"start": "2013-01-31T17:45:00Z"' in done.stdout
    assert "from 2013 on" in done.stderr


def test_local_times_of_a_zone(tmp_path):
    vienna = TimeFormat(zone="Europe/Vienna")
    for text in ("2013-01-31 18:45:00", "31.01.2013 18:45"):
        assert ticks(pa.array([text]), format=vienna).tolist() == [micros(MOMENT)]
        (batch,) = open_source(write(tmp_path / "e.csv", text), time_format=vienna).batches()
        assert batch.column("when").to_pylist() == [MOMENT]
    with_zone = pa.array(["2013-01-31 17:45:00Z", "2013-01-31 18:45:00"])
    assert ticks(with_zone, format=vienna).tolist() == [micros(MOMENT)] * 2
    naive = pa.array([datetime(2013, 1, 31, 18, 45)])
    assert ticks(naive, format=vienna).tolist() == [micros(MOMENT)]
    for twice in ("2013-10-27 02:30:00", "2013-03-31 02:30:00"):
        error = failure(lambda: ticks(pa.array([twice]), format=vienna))  # noqa: B023
        assert error.code == "ACEP-D034"
        assert "occurs twice or never" in error.message
        path = write(tmp_path / "e.csv", "2013-10-27 01:30:00", twice)
        assert " occurs " in failure(lambda: list(open_source(path, time_format=vienna).batches())).message  # noqa: B023
    done = acep("run", QUERY, str(write(tmp_path / "v.csv", "31.01.2013 18:45", "31.01.2013 18:46")), "--time", "when",
                "--time-zone", "Europe/Vienna", "--format", "jsonl")
    assert '"start": "2013-01-31T17:45:00Z"' in done.stdout


def test_numbers_as_text_have_a_unit():
    assert ticks(pa.array(["1359654300", " 1359654301 "]), "s").tolist() == [1359654300000000, 1359654301000000]
    assert ticks(pa.array(["1359654300.5"]), "s").tolist() == [1359654300500000]
    error = failure(lambda: ticks(pa.array(["1", "x"]), "s"))
    assert (error.code, error.row) == ("ACEP-D006", 1)


EVENTS = [{"when": "13/01/2013 10:00", "type": "A"}, {"when": "13/01/2013 10:05", "type": "B"}]
LATER = [{"when": "02/03/2013 10:00", "type": "A"}, {"when": "02/03/2013 10:05", "type": "B"}]


@pytest.mark.parametrize("kind", ["dicts", "table", "frame", "parquet"])
def test_events_in_memory_too(tmp_path, kind):
    table = pa.Table.from_pylist(EVENTS + LATER)
    pq.write_table(table, tmp_path / "e.parquet")
    events = {"dicts": EVENTS + LATER, "table": table, "frame": pd.DataFrame(EVENTS + LATER)}
    events["parquet"] = tmp_path / "e.parquet"
    query = compile_query(QUERY)
    found = query.match(events[kind], time="when")
    assert [match.start.month for match in found] == [1, 3]
    assert [match.start.month for match in query.match(LATER, time="when", time_format="%m/%d/%Y %H:%M")] == [2]
    why = query.why(events[kind], around="2013-03-02T10:02", time="when", time_format="%d/%m/%Y %H:%M")
    assert "no match" not in str(why)


def test_a_matcher_keeps_the_format_in_its_state():
    query = compile_query(QUERY)
    matcher = query.matcher(time="when", time_format="%d/%m/%Y %H:%M")
    assert matcher.push(EVENTS[:1]).num_rows == 0
    again = query.from_state(matcher.state_bytes())
    assert again.push(EVENTS[1:]).num_rows == 1
    assert again.push(LATER).num_rows == 1
    unsaid = query.matcher(time="when")
    unsaid.push(EVENTS)
    assert failure(lambda: unsaid.push(LATER)).code == "ACEP-D032"


def test_sets_and_histories_know_formats():
    desk = QuerySet(time="when", time_format="%d/%m/%Y %H:%M")
    desk.add(QUERY, id="q")
    desk.push(EVENTS)
    again = QuerySet.from_state(desk.state_bytes())
    again.push(LATER)
    found = {id_: table.num_rows for id_, table in again.finish().items()}
    assert found == {"q": 1}
    moments = [(day, minute) for day in range(1, 29) for minute in (0, 1)]
    days = [{"when": f"{day:02}/01/2013 10:0{minute}", "type": "AB"[minute]} for day, minute in moments]
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 10 min", engine="runs")
    history = HistoryGraph(query).fit(days, time="when", time_format="%d/%m/%Y %H:%M")
    assert history.events_ == len(days)


def test_values_in_two_orders_are_told_with_the_first_that_does_not_fit(tmp_path):
    path = write(tmp_path / "e.csv", "31/01/2013", "01/31/2013")
    error = failure(lambda: compile_query(QUERY).match(path, time="when").to_arrow())
    assert (error.code, error.row, "as %d/%m/%Y" in error.message) == ("ACEP-D006", 1, True)


def test_numbers_have_no_format():
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 5")
    error = failure(lambda: query.match([{"ts": 1, "type": "A"}], time_format="%d/%m/%Y").to_arrow(), UsageError)
    assert error.code == "ACEP-U124"


def test_a_column_whose_times_are_not_sure_is_named_where_the_time_is_looked_for(tmp_path):
    path = tmp_path / "orders.csv"
    for text, says in (
        ("01.11.2026 08:00\n02.11.2026 08:05\n", "--time-format '%d.%m.%Y %H:%M' or --time-format '%m.%d.%Y %H:%M'"),
        ("Nov 1 08:00:00\nNov 2 08:05:00\n", "--time-year, such as 2013"),
    ):
        path.write_text("when\n" + text)
        with pytest.raises(DataError, match="the times of 'when' ") as caught:
            compile_query("PATTERN SEQ(ANY a, ANY b) WITHIN 3 d").match(path).points()
        assert (caught.value.code, says in caught.value.hint) == ("ACEP-D001", True)
        seen = look(path)
        if "--time-year" in says:  # that of the file's last change is taken, and said
            assert "--time-year" in str(seen)
        else:
            assert seen.time.why in caught.value.hint
            assert says in seen.first.lacks
