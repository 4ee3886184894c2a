"""What users give a template as constants: each value of each type in each place is taken rightly, or an AcepError."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from acep_approx import AcepError, QuerySet, compile_query, compile_rules

DAY = dt.datetime(2024, 1, 1)  # noqa: DTZ001  the column has no zone either
EVENTS = [
    {
        "ts": n,
        "type": type_,
        "x": n,
        "s": "ab"[n % 2],
        "b": n % 2 == 0,
        "t": DAY + dt.timedelta(n),
        "d": dt.date(2024, 1, 1 + n),
    }
    for n, type_ in enumerate("ABABCAB")
]
PLACES = {
    "number": "PATTERN A a WHERE a.x > :p WITHIN 5",
    "text": "PATTERN A a WHERE a.s = :p WITHIN 5",
    "truth": "PATTERN A a WHERE a.b = :p WITHIN 5",
    "time": "PATTERN A a WHERE a.t >= :p WITHIN 5",
    "day": "PATTERN A a WHERE a.d >= :p WITHIN 5",
    "across": "PATTERN SEQ(A a, B b) WHERE a.x + :p < b.x WITHIN 5",
    "shown": "PATTERN A a WITHIN 5 RETURN :p AS p",
    "negation": "PATTERN SEQ(A a, ~(B b)) WHERE b.x > :p WITHIN 5",
    "window": "PATTERN SEQ(A a, B b) WITHIN :p",
    "events": "PATTERN SEQ(A a, B b) WITHIN :p events",
    "filter": "SELECT x FROM FILTER{x > :p} A",
    "result": "SELECT x, :p AS p FROM A",
    "fold": "SELECT n FROM (SELECT *, 0 AS n FROM A) FOLD{, , $.n + :p AS n} B",
    "duration": "SELECT x FROM FILTER{DUR < :p}(A NEXT B)",
    "cel window": "SELECT x_1 FROM A NEXT B WITHIN :p",
    "automaton": "PATTERN AUTOMATON (a -> b ON A t WHEN t.x > :p FINAL b) WITHIN 5",
}
NO_CONSTANTS = [None, float("nan"), float("inf"), [1], {"a": 1}, b"x", Decimal("1.5"), dt.time(1), dt.timedelta(1)]
CONSTANTS = [
    1,
    -1,
    0,
    1.9,
    2.0,
    True,
    "3",
    "2024-01-02",
    DAY,
    dt.date(2024, 1, 3),
    dt.datetime(2024, 1, 3, tzinfo=dt.UTC),
    2**62,
    -(2**63),
    2**63,
    10**30,
    1e300,
]


def outcome(template, table):
    """Rows per query, of a set and of one restored from its state; or the code of the error."""
    try:
        desk = QuerySet()
        desk.add_many(template, table, id="q")
        again = QuerySet.from_state(desk.state_bytes())
        found = {name: some.num_rows for name, some in desk.match(EVENTS).items()}
        assert {name: some.num_rows for name, some in again.match(EVENTS).items()} == found
    except AcepError as error:
        return error.code
    return found.get("q[0]", 0)


@pytest.mark.parametrize("place", PLACES)
def test_every_value_in_every_place(place):
    for value in CONSTANTS:
        found = outcome(PLACES[place], [{"p": value}])
        assert isinstance(found, int) or found in {
            "ACEP-U070",
            "ACEP-U064",
            "ACEP-Q045",
            "ACEP-Q061",
            "ACEP-Q062",
            "ACEP-Q065",
            "ACEP-Q908",
            "ACEP-Q909",
            "ACEP-D018",
            "ACEP-D201",
        }, (value, found)
    for value in NO_CONSTANTS:
        infinite = "ACEP-Q045" if "window" in place or place == "events" else "ACEP-U070"
        assert outcome(PLACES[place], [{"p": value}]) == (infinite if value == float("inf") else "ACEP-U070"), value


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        ("window", "3", "ACEP-U070"),
        ("window", True, "ACEP-U070"),
        ("window", DAY, "ACEP-U070"),
        ("window", 1.9, "ACEP-Q045"),
        ("window", -1, "ACEP-Q045"),
        ("window", 2.0, 3),
        ("events", 1.5, "ACEP-Q045"),
        ("cel window", 1.9, "ACEP-Q045"),
        ("cel window", -1, "ACEP-Q045"),
        ("cel window", 1, 3),
        ("number", DAY, "ACEP-Q061"),
        ("number", "3", "ACEP-Q061"),
        ("text", DAY, "ACEP-Q061"),
        ("text", 1, "ACEP-Q061"),
        ("time", 1, "ACEP-Q061"),
        ("time", DAY + dt.timedelta(2), 2),
        ("day", dt.date(2024, 1, 3), 2),
        ("time", dt.datetime(2024, 1, 3, tzinfo=dt.UTC), 2),
        ("shown", DAY, "ACEP-U070"),
        ("result", DAY, "ACEP-U070"),
        ("automaton", 1, "ACEP-U064"),
    ],
)
def test_a_value_of_another_type_than_its_place(place, value, expected):
    assert outcome(PLACES[place], [{"p": value}]) == expected


def test_times_are_those_of_a_text_in_the_query():
    for moment in (DAY + dt.timedelta(2), DAY + dt.timedelta(2, 1)):
        alone = compile_query(PLACES["time"].replace(":p", f"'{moment.isoformat()}'")).match(EVENTS)
        assert outcome(PLACES["time"], [{"p": moment}]) == len(alone)
    for column in (pa.array([1], pa.timestamp("ns")), pa.array([2**62], pa.timestamp("s"))):
        assert outcome(PLACES["time"], pa.table({"p": column})) == "ACEP-U070"
    assert outcome(PLACES["time"], pa.table({"p": pa.array([DAY], pa.timestamp("us", "Europe/Berlin"))})) == 3


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1], pa.int8()),
        pa.array([1], pa.uint64()),
        pa.array([1.0], pa.float32()),
        pa.array([1]).dictionary_encode(),
        pa.array([1.0]).cast(pa.float16()),
    ],
)
def test_columns_of_any_numbers(column):
    for place, expected in (("number", 2), ("window", 3), ("cel window", 3), ("across", 2)):
        assert outcome(PLACES[place], pa.table({"p": column})) == expected


def test_rows_are_named():
    for bad, code, words in (
        ([{"p": 1}, {"p": None}], "ACEP-U070", "row 1"),
        ([{"q": 1}], "ACEP-U070", "no column 'p'"),
        ([{"p": 1, "id": "u"}, {"p": 2, "id": None}], "ACEP-U070", "'id'"),
    ):
        with pytest.raises(AcepError, match=words) as caught:
            QuerySet().add_many(PLACES["number"], bad)
        assert caught.value.code == code


def test_a_template_without_parameters_has_a_query_for_each_row():
    desk = QuerySet()
    assert len(desk.add_many("PATTERN A a WITHIN 5", [{"p": 1}, {"p": 2}])) == 2


@pytest.mark.parametrize(
    "text", [*PLACES.values(), "ab DEFINE a AS x > :p WITHIN 5", "PATTERN A a WHERE a.x > 5 AND a.x < :c0 WITHIN 5"]
)
def test_a_parameter_without_a_value_is_refused_everywhere(text):
    for refuses in (compile_query, QuerySet().add):
        with pytest.raises(AcepError) as caught:
            refuses(text)
        assert caught.value.code in {"ACEP-Q085", "ACEP-Q001"}


def test_rules_are_no_templates():
    with pytest.raises(AcepError, match="ACEP-Q085"):
        compile_rules("TABLE t (k int, KEY (k))\nRULE r ON PATTERN A a WITHIN :w DO UPSERT t AT (1) END")
