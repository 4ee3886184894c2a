"""Times and durations in queries: random worlds against brute force, and what users write and read."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

import pyarrow as pa
import pytest

from acep_approx import afa_function, compile_query, compile_rules
from acep_approx.errors import DataError, QueryError
from acep_approx.events.writing.tables import csv_lines, json_lines
from acep_approx.query.parser import parse, parse_condition, parse_window
from acep_approx.query.printer import to_text
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Lasting, Window
from tests.cases import cases
from tests.runs_engine import MERGES, agrees, agrees_in_any_split
from tests.timed_worlds import timed_world


@pytest.mark.parametrize("part", range(4))
def test_worlds_with_times_as_by_brute_force(part: int) -> None:
    """Listed, counted and detected; in any split, over restarts."""
    tried = 0
    for seed in range(part, cases(1200, 160), 4):
        try:
            world = timed_world(seed)
        except QueryError:  # it has an index where none can stand
            continue
        agrees(world)
        agrees_in_any_split(world, MERGES[seed % len(MERGES)], Random(seed))
        tried += 1
    assert tried > cases(1200, 160) // 8


EVENTS = pa.table(
    {
        "ts": pa.array([0, 5, 100, 101], pa.timestamp("s", "UTC")),
        "type": ["A", "B", "B", "C"],
        "due": pa.array([7, 7, None, 200], pa.timestamp("ms")),
    }
)
NUMBERS = pa.table({"ts": [0, 5, 100, 101], "type": ["A", "B", "B", "C"]})
ABC = "PATTERN SEQ(A a, B b, C c)"


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("b.ts - a.ts <= 10 s", 1),
        ("b.ts - a.ts <= 10 s AND c.ts - b.ts > 1.6 min", 0),
        ("c.ts - b.ts < 2 seconds", 1),
        ("(c.ts - a.ts) / 2 >= 50.5 s", 2),
        ("(c.ts - a.ts) / (b.ts - a.ts) = 20.2", 1),
        ("b.ts - a.ts BETWEEN 1 min AND 1 week", 1),
        ("-(a.ts - b.ts) * 20 = c.ts - 1 s - a.ts", 1),
        ("b.ts + 96 s = c.ts", 1),
        ("b.due - a.due = 0 s", 1),
        ("b.due - a.due IS NULL", 1),
        ("a.ts - '1970-01-01' = 0 s", 2),
        ("a.due - a.ts = 7 ms AND a.due - a.ts < 0.2 h", 2),
    ],
)
def test_conditions_on_durations(condition: str, found: int) -> None:
    query = compile_query(f"{ABC} WHERE {condition} WITHIN 5 min")
    assert len(query.match(EVENTS)) == found
    fine = EVENTS.set_column(0, "ts", EVENTS["ts"].cast(pa.timestamp("ns", "UTC")))
    assert len(query.match(fine)) == found


def test_durations_are_returned_and_written() -> None:
    query = compile_query(
        f"{ABC} WITHIN 5 min RETURN c.ts - a.ts AS took, a.ts - c.ts - 1 d AS early, a.ts + 1.5 h AS due"
    )
    found = query.match(EVENTS).to_arrow().select(["took", "early", "due"])
    assert found.schema.types == [pa.duration("us"), pa.duration("us"), pa.timestamp("us", "UTC")]
    assert csv_lines(found.slice(0, 1)).to_pybytes() == b"00:01:41,-24:01:41,1970-01-01T01:30:00Z\n"
    assert json_lines(found.slice(0, 1).select([0])).to_pybytes() == b'{"took": "00:01:41"}\n'
    lists = pa.table({"all": pa.array([[1, None, 90_000_500]], pa.list_(pa.duration("us")))})
    assert json_lines(lists).to_pybytes() == b'{"all": ["00:00:00.000001", null, "00:01:30.0005"]}\n'


def test_registers_hold_times_and_durations() -> None:
    text = """PATTERN AUTOMATON (
  REGISTERS since TIME, took DURATION
  q0 -> q1 ON A a SET since = a.ts
  q1 -> q2 ON B b WHEN b.ts - since <= 10 s SET took = b.ts - since
  q2 -> s ON C c WHEN c.ts - since > 10 s
  IGNORE q1, q2
  FINAL s
)
WITHIN 5 min
RETURN took, took * 2 AS twice"""
    assert to_text(parse(text)) == text
    rows = compile_query(text).match(EVENTS).to_arrow()
    assert rows["took"].to_pylist() == [timedelta(seconds=5)]
    assert rows["twice"].to_pylist() == [timedelta(seconds=10)]
    with pytest.raises(QueryError, match="ACEP-Q913"):
        compile_query(text.replace("DURATION", "FLOAT")).match(EVENTS).to_arrow()


def test_functions_of_the_users_take_and_give_durations() -> None:
    @afa_function(version=1, returns=timedelta)
    def half(length):
        return length / 2

    text = """PATTERN AUTOMATON (
  REGISTERS took DURATION, part DURATION
  q0 -> q1 ON A a SET took = a.ts - '1969-12-31T23:59:52'
  q1 -> q2 ON B b WHEN half(took) = 4 s SET part = half(took)
  IGNORE q1
  FINAL q2
)
WITHIN 10 s
RETURN part"""
    found = compile_query(text, functions=(half,)).match(EVENTS).to_arrow()
    assert found["part"].to_pylist() == [timedelta(seconds=4)]


def test_tables_of_rules_hold_numbers_of_a_unit() -> None:
    text = """TABLE seen (type text, last time DEFAULT '1969-01-01', gap float DEFAULT 0, KEY (type))
RULE counted ON
  PATTERN B b WHERE b.ts - store.seen[b.type].last >= 1 min WITHIN 1 s
DO UPDATE seen SET gap = (b.ts - old.last) / 1 d, last = b.ts AT (b.type)
END"""
    assert compile_rules(text).run(EVENTS)["counted"].num_rows == 2
    with pytest.raises(QueryError, match="ACEP-R010") as error:
        compile_rules(text.replace(" / 1 d", "")).run(EVENTS)
    assert "numbers of a unit" in str(error.value.hint)


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("hour(a.ts) = 7 AND minute(a.ts) = 30 AND second(a.ts) = 5", {"UTC"}),
        ("hour(a.ts) = 9", {"Europe/Berlin"}),
        ("HOUR(a.ts + 1 h) >= 20 AND day(a.ts) = 30", {"Pacific/Honolulu"}),
        ("year(a.ts) = 2024 AND month(a.ts) = 3 AND day(a.ts) = 31 AND weekday(a.ts) = 7", {"UTC", "Europe/Berlin"}),
        ("hour(b.ts) = hour(a.ts) AND minute(b.ts) > minute(a.ts)", {"UTC", "Europe/Berlin", "Pacific/Honolulu"}),
    ],
)
def test_parts_of_times_are_those_of_the_zone_of_the_column(condition: str, found: set[str]) -> None:
    query = compile_query(f"PATTERN SEQ(A a, B b) WHERE {condition} WITHIN 1 h RETURN hour(b.ts) - hour(a.ts) AS hours")
    times = pa.array([datetime(2024, 3, 31, 7, 30, 5), datetime(2024, 3, 31, 7, 45)], pa.timestamp("us"))  # noqa: DTZ001
    for zone in ("UTC", "Europe/Berlin", "Pacific/Honolulu"):
        events = pa.table({"ts": times.cast(pa.timestamp("us", zone)), "type": ["A", "B"]})
        rows = query.match(events).to_arrow()
        assert rows["hours"].to_pylist() == [0] * (zone in found), zone


@pytest.mark.parametrize(("unit", "size"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_parts_of_times_that_are_numbers(unit: str, size: int) -> None:
    events = pa.table({"ts": [1_711_870_205 * size, 1_711_871_100 * size], "type": ["A", "B"]})
    text = (
        "PATTERN SEQ(A a, B b) WHERE hour(a.ts) = 7 AND minute(b.ts - 1 min) = 44 WITHIN 1 h RETURN second(a.ts) AS s"
    )
    query = compile_query(text)
    assert query.match(events, unit=unit).to_arrow()["s"].to_pylist() == [5]
    matcher = query.matcher(unit=unit)
    matcher.push(events.slice(0, 1))
    matcher.push(events.slice(1).append_column("more", pa.array([1.5])))
    with pytest.raises(QueryError, match="--unit s") as error:
        query.match(events).to_arrow()
    assert error.value.code == "ACEP-Q173"


def test_units_may_still_name_states_and_types() -> None:
    machine = (
        "PATTERN AUTOMATON (REGISTERS n = 0 q0 -> s ON A a WHEN a.x > 10 s -> d ON A b WHEN b.x > 5 FINAL d) WITHIN 5"
    )
    assert not any(isinstance(node, Lasting) for node in walk(parse(machine).pattern.arcs[0].when))
    assert to_text(parse_condition("a.x > 10 AND s.h IN (1, 2)")[1][1]) == "s.h IN (1, 2)"
    assert parse_window("2 weeks") == Window(2, "week")
    assert to_text(parse("PATTERN A a WITHIN 1 week").window) == "1 week"


def test_times_that_are_numbers() -> None:
    asked = f"{ABC} WHERE b.ts - a.ts <= 10 s WITHIN 300"
    with pytest.raises(QueryError, match="--unit s") as error:
        compile_query(asked).match(NUMBERS).to_arrow()
    assert error.value.code == "ACEP-Q061"
    seconds = compile_query(f"{asked} s RETURN c.ts - a.ts AS took")
    assert seconds.match(NUMBERS, unit="s").to_arrow()["took"].to_pylist() == [101]
    assert len(seconds.match(NUMBERS, unit="ms")) == 2
    halves = compile_query(f"{ABC} WHERE b.ts - a.ts <= 5.5 s WITHIN 300 s")
    assert len(halves.match(NUMBERS, unit="s")) == 1
    matcher = seconds.matcher(unit="s")
    matcher.push(NUMBERS.slice(0, 2))
    again = seconds.from_state(matcher.state_bytes())
    assert again.push(NUMBERS.slice(2)).num_rows + again.finish().num_rows == 1


def test_what_passes_64_bits() -> None:
    query = compile_query(f"{ABC} WHERE (c.ts - a.ts) * 1e30 > 1 s WITHIN 5 min")
    with pytest.raises(DataError, match="ACEP-D201"):
        query.match(EVENTS).to_arrow()
    with pytest.raises(QueryError, match="ACEP-Q008"):
        compile_query(f"{ABC} WHERE c.ts - a.ts < 1e30 weeks WITHIN 5 min")


@pytest.mark.parametrize("wrong", ["a.ts + b.ts > 1 s", "a.ts * 2 > b.ts", "1 s - a.ts < 2 s", "2 / (b.ts - a.ts) > 1"])
def test_what_is_no_duration(wrong: str) -> None:
    with pytest.raises(QueryError, match="ACEP-Q062"):
        compile_query(f"{ABC} WHERE {wrong} WITHIN 5 min").match(EVENTS).to_arrow()
