"""The public names as a user writes them.

``tests/test_typing.py`` has mypy check what they give, and runs what needs no Spark.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_type

import pandas as pd
import polars as pl
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from acep_approx import (
    AcepError,
    Budget,
    HistoryGraph,
    Match,
    Matcher,
    Matches,
    Query,
    QueryError,
    absent,
    compile_query,
    either,
    event,
    seq,
)
from acep_approx.results import BudgetedMatches
from acep_approx.revisions import RevisedMatcher
from acep_approx.spark import SparkMatcher, session, start

EVENTS: list[dict[str, Any]] = [{"ts": 1, "type": "A", "x": 2.5}, {"ts": 2, "type": "B", "x": 3.5}]


def queries() -> Query:
    """A text, and the builder."""
    assert_type(compile_query("PATTERN SEQ(A a, B b) WITHIN 5", errors=1, within="7", engine="runs"), Query)
    built = (
        seq(event("A", "a").plus(), either(event("B", "b"), event("C", "c")), absent(event("D", "d")))
        .where("b.x > a.x")
        .within(5)
        .errors(1, {"b": 2})
    )
    query = compile_query(built)
    assert_type(str(query), str)
    assert_type(query.explain("mermaid"), str)
    return query


def matches(query: Query) -> Matches:
    """All at once: one by one, as columns, counted."""
    found = query.match(EVENTS, limit=10)
    assert_type(found, Matches)
    assert_type(len(found), int)
    for match in found:
        assert_type(match, Match)
        assert_type(match.errors, int)
        assert_type(match.missing, tuple[str, ...])
        assert_type(match.key, dict[str, Any])
    assert_type(found.count_by_errors(), dict[int, int])
    assert_type(found[0], Match)
    assert_type(found[:2], list[Match])
    assert_type(found.head(3), Matches)
    assert_type(bool(found), bool)
    assert_type(found.events().num_rows, Any)
    assert_type(found[0].events().num_rows, Any)
    assert_type(found.to_pandas(), pd.DataFrame)
    assert_type(found.to_polars(), pl.DataFrame)
    assert_type(found.to_arrow().num_rows, Any)
    assert_type(found.points().column_names, Any)
    assert_type(found.page(), str)
    return found


def stream(query: Query) -> None:
    """Batch by batch, over a restart."""
    matcher = query.matcher(output="points", time="ts", bind=["x"])
    assert_type(matcher, Matcher)
    matcher.push(EVENTS)
    state = matcher.state_bytes()
    assert_type(state, bytes)
    again = query.from_state(state)
    assert_type(again, Matcher | RevisedMatcher)
    again.finish()


def revisions(query: Query) -> None:
    """Events that are late or change."""
    matcher = query.matcher(watermark="10 s", emit="early", id="id")
    assert_type(matcher, RevisedMatcher)
    assert_type(matcher.held_events, int)
    assert_type(matcher.watermark, int | None)


def budget(query: Query, folder: Path) -> None:
    """Within a budget, with a history."""
    history = HistoryGraph(query).fit(EVENTS)
    assert_type(history, HistoryGraph)
    assert_type(history.save(folder), Path)
    known = HistoryGraph.load(folder, query)
    assert_type(known, HistoryGraph)
    assert_type(Budget.parse("20%"), Budget)
    some = query.match_within(EVENTS, Budget.parse("20%"), history=known, audit=0.1)
    assert_type(some, BudgetedMatches)
    assert_type(some.refreshed(query), HistoryGraph | None)
    some.report(folder / "page.html")


def on_spark(query: Query, folder: Path) -> None:
    """A batch, and a stream."""
    spark = session("local[2]", **{"spark.driver.memory": "2g"})
    assert_type(spark, SparkSession)
    matcher = query.spark(id="x", shards=2, watermark="5 seconds", budget="20%", history=folder)
    assert_type(matcher, SparkMatcher)
    assert_type(matcher(spark.read.parquet(str(folder))), DataFrame)
    running = start(matcher, spark.readStream.parquet(str(folder)), to=folder, checkpoint=folder)
    assert_type(running, StreamingQuery)


def mistakes(text: str) -> str | None:
    """Every error has a code."""
    try:
        compile_query(text)
    except QueryError as error:
        assert_type(error.start, int)
        return error.code
    except AcepError as error:
        assert_type(error.hint, str | None)
        return error.code
    return None
