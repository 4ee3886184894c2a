"""The table function of SQL: the same matches as here, and wrong calls are refused before anything runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from pyspark.sql import Row
from pyspark.sql.types import StructType
from pyspark.sql.udtf import AnalyzeArgument

from acep_approx import AcepError, DataError, QueryError, UsageError, compile_query
from acep_approx.spark.plan.sql import MatchTable, register
from acep_approx.spark.setup.failures import clear_errors

pytestmark = pytest.mark.xdist_group("spark")

QUERY = "PATTERN SEQ(A a, B+ b[], C c) WHERE [user] AND c.x > a.x WITHIN 20 s ERRORS 1"
SCHEMA = "ts timestamp, type string, user string, x double, id long"
BEGIN = datetime(2024, 3, 1, tzinfo=UTC)


def make_events(number: int, seed: int = 0) -> list[dict]:
    """Events of four users, with ties in time and parts of seconds."""
    random, now, events = Random(seed), BEGIN, []
    for i in range(number):
        now += timedelta(milliseconds=random.choice((0, 1, 700, 2500)))
        user = random.choice(("ann", "bob", "cy", "dee"))
        events.append({"ts": now, "type": random.choice("ABCD"), "user": user, "x": random.random(), "id": i})
    return events


EVENTS = make_events(300)


def expected(query: str, events: list[dict]) -> list[dict]:
    """What the local matcher finds, events by their ids, which are their rows."""
    return in_order(compile_query(query).match(events).to_arrow().to_pylist())


def utc(rows: list[Row]) -> list[dict]:
    """Rows of Spark, whose times are those of this machine, without a zone."""
    return in_order([row.asDict() for row in rows])


def in_order(rows: list[dict]) -> list[dict]:
    for row in rows:
        row.update({name: value.astimezone(UTC) for name, value in row.items() if isinstance(value, datetime)})
    return sorted(rows, key=repr)


@pytest.fixture(scope="module")
def sql(spark):
    register(spark)
    Random(5).shuffle(shuffled := list(EVENTS))
    spark.createDataFrame(shuffled, SCHEMA).createOrReplaceTempView("events")

    def run(text: str) -> list[Row]:
        with clear_errors():
            return spark.sql(text).collect()

    return run


@pytest.mark.parametrize("partition", ["user", "pmod(hash(user), 2)"])
def test_matches_are_those_found_here(sql, partition):
    found = sql(
        f"SELECT * FROM acep_match(TABLE(events) PARTITION BY {partition} ORDER BY (ts, id), '{QUERY}', id => 'id')"
    )
    assert utc(found) == expected(QUERY, EVENTS)
    assert len(found) > 100


def test_without_an_id_matches_hold_the_columns_of_their_events(sql):
    query = "PATTERN SEQ(A a, C c) WHERE [user] AND c.x > a.x WITHIN 3 s"
    rows = sql(
        f"SELECT a.x, c.x AS later FROM acep_match(TABLE(events) PARTITION BY user ORDER BY (ts, id), '{query}')"
    )
    wanted = [(EVENTS[m["a"]]["x"], EVENTS[m["c"]]["x"]) for m in expected(query, EVENTS)]
    assert sorted(map(tuple, rows)) == sorted(wanted)


def test_return_names_the_columns(sql):
    query = "PATTERN SEQ(A a, C c) WHERE [user] WITHIN 3 s RETURN c.x - a.x AS gain, a.ts AS since"
    rows = sql(f"SELECT * FROM acep_match(TABLE(events) PARTITION BY user ORDER BY (ts, id), '{query}')")
    assert utc(rows) == expected(query, EVENTS)


def test_a_budget_finds_some_of_them(sql):
    call = "TABLE(events) WITH SINGLE PARTITION ORDER BY (ts, id)"
    found = sql(f"SELECT * FROM acep_match({call}, '{QUERY}', id => 'id', budget => '1 steps/event')")
    everything = expected(QUERY, EVENTS)
    assert 0 < len(found) < len(everything)
    assert all(row in everything for row in utc(found))


def test_rows_out_of_order_are_refused_with_advice(sql):
    with pytest.raises(DataError, match="ORDER BY") as caught:
        sql(f"SELECT * FROM acep_match(TABLE(events) PARTITION BY user ORDER BY (ts DESC), '{QUERY}')")
    assert caught.value.code == "ACEP-D007"


def test_a_wrong_query_is_refused_before_anything_runs(spark, sql):
    call = "TABLE(events) PARTITION BY user ORDER BY (ts), 'PATTERN SEQ(A a, B b) WITHIN 3 parsec'"
    with pytest.raises(QueryError, match=r"\^") as caught, clear_errors():
        spark.sql(f"SELECT * FROM acep_match({call})")  # no action, such as collect, is needed
    assert "parsec" in str(caught.value)


# --- without Spark ----------------------------------------------------------------------------------------------


def told(text: str, schema: str = SCHEMA, **options: str) -> object:
    """What ``analyze`` says of a call."""
    table = AnalyzeArgument(StructType.fromDDL(schema), None, True, False)
    texts = {name: AnalyzeArgument("string", value, False, True) for name, value in {"query": text, **options}.items()}
    return MatchTable.analyze(table, **texts)


def test_the_columns_are_known_before():
    analysed = told("PATTERN SEQ(A a, B+ b[]) WITHIN 3 s", id="id")
    names = "start timestamp, end timestamp, missing array<string>, a bigint, b array<bigint>"
    assert analysed.schema.simpleString() == StructType.fromDDL(f"errors bigint, {names}").simpleString()
    assert {column.alias for column in analysed.select} == {"ts", "type", "id"}


@pytest.mark.parametrize(
    ("text", "options", "kind", "code"),
    [
        ("PATTERN SEQ(A a", {}, QueryError, None),
        ("PATTERN SEQ(A a, B b) WHERE a.y > 1 WITHIN 3 s", {}, AcepError, None),
        (QUERY, {"budget": "some"}, UsageError, None),
        (QUERY, {"history": "somewhere"}, UsageError, "ACEP-S038"),
        (QUERY, {"nothing": "1"}, UsageError, "ACEP-S038"),
        (None, {}, UsageError, "ACEP-S038"),
        (QUERY, {"time": "when"}, DataError, None),
        (QUERY, {"id": "name"}, DataError, None),
    ],
)
def test_wrong_calls_are_refused(text, options, kind, code):
    with pytest.raises(kind) as caught:
        told(text, **options)
    assert code is None or caught.value.code == code


def test_something_else_than_a_table():
    with pytest.raises(UsageError, match="no table"):
        MatchTable.analyze(AnalyzeArgument("string", "x", False, True), AnalyzeArgument("string", QUERY, False, True))
