"""Times that only the order of the events tells whole: years of syslog, the hour that clocks pass twice; letters."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import compile_query, look
from acep_approx.errors import DataError, UsageError
from acep_approx.events import TimeFormat, follow, infer_roles, open_source
from acep_approx.events.stream import read_events
from acep_approx.events.time_formats import parse_alone
from acep_approx.events.times_in_order import TimesInOrder

BERLIN = TimeFormat(zone="Europe/Berlin")
NIGHT = ["2024-10-27 01:59:00", "2024-10-27 02:30:00", "2024-10-27 02:10:00", "2024-10-27 03:01:00"]
IN_UTC = ["2024-10-26 23:59", "2024-10-27 00:30", "2024-10-27 01:10", "2024-10-27 02:01"]
SYSLOG = TimeFormat("%b %d %H:%M:%S", year=2021)


def at(*when):
    return datetime(*when)  # noqa: DTZ001  (as logs have it)


def syslog(times):
    return "".join(f"{time:%b %e %H:%M:%S} sw1 sshd[1]: x\n" for time in times)


def read(path, written, **layout):
    source = open_source(path, time_format=written, **layout)
    return [row["time"] for batch in source.batches() for row in batch.to_pylist()]


def in_parts(values, written, cuts):
    """As ``read`` has it, in parts, each by an object that was saved in between."""
    state, found = {}, []
    for part in np.split(np.array(values), cuts):
        order = TimesInOrder.of(state)
        column = parse_alone(pa.array(part.tolist(), pa.string()), written)
        found += order.resolved("t", column, written).cast(pa.int64()).to_pylist()
        state = order.state
    TimesInOrder.of(state).finish()
    return found


# --- years ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", range(20))
def test_years_go_on_in_any_split(case):
    rng = np.random.default_rng(case)
    time, times = at(int(rng.integers(2018, 2024)), 11, 20), []
    for _ in range(60):
        time += timedelta(days=float(rng.exponential(20)))
        late = timedelta(days=float(rng.uniform(0, 5))) if rng.random() < 0.3 else timedelta()
        times.append((time - late).replace(microsecond=0))
    written = TimeFormat("%b %d %H:%M:%S", year=times[0].year)
    texts = [f"{time:%b %d %H:%M:%S}" for time in times]
    expected = [int(time.replace(tzinfo=UTC).timestamp() * 10**6) for time in times]
    assert in_parts(texts, written, []) == expected
    assert in_parts(texts, written, sorted(rng.integers(0, 60, 5))) == expected


def test_a_log_over_new_year_of_files_standard_input_and_live(tmp_path):
    times = [at(2021, 12, 31, 23, 59, 58), at(2022, 1, 1, 0, 0, 1), at(2022, 1, 1, 0, 0, 3)]
    whole = tmp_path / "s.log"
    whole.write_text(syslog(times))
    assert read(whole, SYSLOG, line_format="syslog") == times
    packed = tmp_path / "s.log.gz"
    packed.write_bytes(gzip.compress(syslog(times).encode()))
    assert read(packed, SYSLOG, line_format="syslog") == times
    parts = [tmp_path / "1.log", tmp_path / "2.log"]
    parts[0].write_text(syslog(times[:1]))
    parts[1].write_text(syslog(times[1:]))
    assert read(parts, SYSLOG, line_format="syslog") == times
    growing = tmp_path / "g.log"
    growing.write_text(syslog(times[:2]))
    first = follow(growing, until_idle=0, line_format="syslog", time_format=SYSLOG)
    found = [row["time"] for batch in first.batches() for row in batch.to_pylist()]
    growing.write_text(syslog(times))
    later = follow(growing, until_idle=0, line_format="syslog", time_format=SYSLOG, resumed=first.place())
    found += [row["time"] for batch in later.batches() for row in batch.to_pylist()]
    assert found == times


def test_small_disorder_at_new_year_does_not_jump_twice(tmp_path):
    times = [at(2022, 1, 1), at(2021, 12, 31, 23), at(2022, 1, 1, 1), at(2022, 3, 1)]
    path = tmp_path / "s.log"
    path.write_text(syslog(times))
    assert read(path, TimeFormat(year=2022), line_format="syslog") == times


def test_a_leap_day_in_the_next_year(tmp_path):
    times = [at(2023, 12, 31), at(2024, 2, 29), at(2024, 3, 1), at(2024, 12, 31), at(2025, 3, 1)]
    path = tmp_path / "s.log"
    path.write_text(syslog(times))
    assert read(path, TimeFormat(year=2023), line_format="syslog") == times
    with pytest.raises(DataError, match="February 29 does not occur in 2023") as refused:
        read(path, TimeFormat(year=2022), line_format="syslog")
    assert refused.value.code == "ACEP-D121"


def test_dicts_and_tables_without_a_year():
    events = [{"ts": text, "type": kind} for text, kind in (("Dec 31 23:59:59", "A"), ("Jan 1 00:00:01", "B"))]
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 5 s")
    for given in (events, pa.Table.from_pylist(events)):
        (match,) = query.match(given, time_format=SYSLOG)
        assert (match.start.year, match.end.year) == (2021, 2022)


# --- the hour that clocks pass twice --------------------------------------------------------------------------------


def ticks_of(source, written, **how):
    roles = infer_roles(source.schema, time="time", time_format=written)
    return [int(tick) for batch in read_events(source, roles, **how) for tick in batch.ticks]


def forms(tmp_path, texts):
    path = tmp_path / "in.csv"
    path.write_text("time,n\n" + "".join(f"{text},{row}\n" for row, text in enumerate(texts)))
    slashes = tmp_path / "other.csv"
    slashes.write_text(path.read_text().replace("2024-10-", "2024/10/"))
    table = pa.table({"time": texts})
    return [path, slashes, table, table.to_pylist(), pa.table({"time": pa.array(texts).cast(pa.timestamp("us"))})]


def test_the_order_tells_which_of_two_hours_it_is(tmp_path):
    expected = [int(datetime.fromisoformat(f"{text}+00:00").timestamp() * 10**6) for text in IN_UTC]
    for form in forms(tmp_path, NIGHT):
        for rows in (1, 1000):
            assert ticks_of(open_source(form, time_format=BERLIN), BERLIN, batch_rows=rows) == expected


@pytest.mark.parametrize("texts", [NIGHT[:2], [NIGHT[0], NIGHT[1], NIGHT[3]], NIGHT[1:2]])
def test_where_the_order_does_not_tell_it_is_asked_for(tmp_path, texts):
    for form in forms(tmp_path, texts):
        with pytest.raises(DataError) as refused:
            ticks_of(open_source(form, time_format=BERLIN), BERLIN)
        assert refused.value.code == "ACEP-D034"
        assert "02:30:00" in refused.value.message
        for fold in ("earlier", "later", "order"):
            assert f"{fold}" in refused.value.hint
            said = TimeFormat(zone="Europe/Berlin", fold=fold)
            night = ticks_of(open_source(form, time_format=said), said)[texts.index(NIGHT[1])]
            assert datetime.fromtimestamp(night / 10**6, UTC).hour == (1 if fold == "later" else 0)


@pytest.mark.parametrize(
    "texts", [["2024-10-27 02:40:00", "2024-10-27 02:39:30", "2024-10-27 03:00:00"], [NIGHT[3], NIGHT[0], *NIGHT]]
)
def test_the_order_of_events_that_are_in_no_order_tells_nothing(tmp_path, texts):
    for form in forms(tmp_path, texts):
        source = open_source(form, time_format=BERLIN)
        with pytest.raises(DataError) as refused:
            ticks_of(source, BERLIN, sort=True)
        assert refused.value.code == "ACEP-D034"


@pytest.mark.parametrize("case", range(20))
def test_a_dense_stream_over_the_night_in_any_split(case):
    rng = np.random.default_rng(case)
    begin = int(at(2024, 10, 26, 22).replace(tzinfo=UTC).timestamp())
    seconds = begin + np.sort(rng.integers(0, 5 * 3600, 300))
    zone = ZoneInfo("Europe/Berlin")
    texts = [f"{datetime.fromtimestamp(int(second), zone):%Y-%m-%d %H:%M:%S}" for second in seconds]
    written = TimeFormat("%Y-%m-%d %H:%M:%S", zone="Europe/Berlin")
    expected = (seconds * 10**6).tolist()
    assert in_parts(texts, written, []) == expected
    assert in_parts(texts, written, sorted(rng.integers(0, 300, 6))) == expected


def test_a_live_run_goes_on_in_the_hour(tmp_path):
    path = tmp_path / "in.csv"
    lines = [f"{text},A\n" for text in NIGHT]
    path.write_text("time,type\n" + "".join(lines[:3]))
    first = follow(path, until_idle=0, time_format=BERLIN)
    found = [row["time"] for batch in first.batches() for row in batch.to_pylist()]
    with path.open("a") as file:
        file.write("2024-10-27 02:20:00,A\n" + lines[3])
    later = follow(path, until_idle=0, time_format=BERLIN, resumed=first.place())
    found += [row["time"] for batch in later.batches() for row in batch.to_pylist()]
    assert [f"{time:%Y-%m-%d %H:%M}" for time in found] == [*IN_UTC[:3], "2024-10-27 01:20", IN_UTC[3]]


def test_there_is_no_other_way_to_tell_them_apart():
    with pytest.raises(UsageError, match="ACEP-U210"):
        TimeFormat(fold="first")


def test_years_and_clocks_together(tmp_path):
    path = tmp_path / "s.log"
    times = [at(2023, 10, 29, 2, 30), at(2023, 10, 29, 2, 10), at(2024, 1, 1), at(2024, 6, 1)]
    path.write_text(syslog(times))
    found = read(path, TimeFormat(zone="Europe/Berlin", year=2023), line_format="syslog")
    assert [f"{time:%Y-%m-%d %H:%M}" for time in found] == [
        *("2023-10-29 00:30", "2023-10-29 01:10", "2023-12-31 23:00", "2024-05-31 22:00")
    ]


# --- zones by letters -----------------------------------------------------------------------------------------------


def lettered(tmp_path, *texts):
    path = tmp_path / "in.csv"
    path.write_text("log_time,type\n" + "".join(f"{text},A\n" for text in texts))
    return path


def times_of(path, written):
    return [row["log_time"] for batch in open_source(path, time_format=written).batches() for row in batch.to_pylist()]


@pytest.mark.parametrize("text", [None, "%Y-%m-%d %H:%M:%S %Z"])
def test_letters_are_those_of_the_zone_that_is_said(tmp_path, text):
    path = lettered(tmp_path, "2024-11-03 01:50:00.123 EDT", "2024-11-03 01:05:00.500 EST", "2024-11-03 06:06:00 UTC")
    found = times_of(path, TimeFormat(text, zone="America/New_York"))
    assert [f"{time:%H:%M:%S.%f}" for time in found] == ["05:50:00.123000", "06:05:00.500000", "06:06:00.000000"]
    china = lettered(tmp_path, "2019-07-26 10:04:05.148 CST")
    assert [f"{time:%H:%M}" for time in times_of(china, TimeFormat(text, zone="Asia/Shanghai"))] == ["02:04"]
    (tick,) = ticks_of(open_source([{"time": "2019-07-26 10:04:05 CST"}]), TimeFormat(text, zone="Asia/Shanghai"))
    assert datetime.fromtimestamp(tick / 10**6, UTC).hour == 2


def test_letters_are_never_guessed(tmp_path):
    path = lettered(tmp_path, "2019-07-26 10:04:05.148 CST")
    with pytest.raises(DataError, match="say which one is meant, by --time-zone"):
        compile_query("PATTERN SEQ(ANY a, ANY b) WITHIN 3 d").match(path).points()
    assert "--time-zone" in str(look(path))
    with pytest.raises(DataError, match="ACEP-D122"):
        times_of(path, TimeFormat("%Y-%m-%d %H:%M:%S %Z"))
    with pytest.raises(DataError, match="ACEP-D122"):
        ticks_of(open_source([{"time": "2019-07-26 10:04:05 CST"}]), None)


def test_letters_of_another_zone_are_refused(tmp_path):
    path = lettered(tmp_path, "2024-07-01 01:50:00 EST")
    with pytest.raises(DataError, match="EST is not what America/New_York is called at that time"):
        times_of(path, TimeFormat("%Y-%m-%d %H:%M:%S %Z", zone="America/New_York"))
    (time,) = times_of(path, TimeFormat("%Y-%m-%d %H:%M:%S EST", zone="Etc/GMT+5"))
    assert time.hour == 6
