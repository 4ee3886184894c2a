"""Automata written by hand take part in all that other queries do: budgets with a history, why, drawings, functions."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import DataError, HistoryGraph, QueryError, UsageError, afa_function, compile_query

pytestmark = pytest.mark.usefixtures("one_reading")

SHAPES = """PATTERN AUTOMATON (
  REGISTERS level = 0, patterns = 0
  q0 -> q1 ON Tick t WHEN t.change < -0.6
  q1 -> q1 ON Tick t WHEN t.change < 0 SET level = level + 1
  q1 -> q2 ON Tick t WHEN t.change < 0 SET level = level + 1
  q2 -> q2 ON Tick t WHEN t.change > 0 SET level = level - 1
  q2 -> q1 ON Tick t WHEN t.change > 0 AND patterns < 2 SET level = level - 1, patterns = patterns + 1
  q2 -> done ON Tick t WHEN t.change > 0 AND level = 1 SET level = 0
  IGNORE q1, q2 WHEN change = 0
  FINAL done
) WHERE [symbol] WITHIN 40 RETURN patterns, count(t[]) AS ticks"""
JUMPS = """PATTERN AUTOMATON (
  REGISTERS last = 0.0
  q0 -> q1 ON Tick t WHEN gap(t.change, 0.0) > 0.4 SET last = t.change
  q1 -> q1 ON Tick t WHEN gap(t.change, last) > 0.8 SET last = t.change
  q1 -> q2 ON Tick t WHEN t.change = 0
  IGNORE q1 WHEN gap(change, last) <= 0.8
  FINAL q2
) WHERE [symbol] WITHIN 20 RETURN last"""


@afa_function(version=1, returns=float)
def gap(left: Any, right: Any) -> Any:
    """The distance of two numbers."""
    return np.abs(left - right)


@pytest.fixture(scope="module")
def ticks() -> pa.Table:
    """Prices of two symbols that go up and down."""
    dice = Random(5)
    changes = (-1.0, 1.0, 0.0, -0.5, 0.5)
    return pa.Table.from_pylist([
        {"ts": ts, "type": "Tick", "symbol": dice.choice("ab"), "change": dice.choice(changes)} for ts in range(4000)
    ])  # fmt: skip


def rows(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows of a table of matches, as often as each is there."""
    return Counter(tuple(str(value) for value in row.values()) for row in table.to_pylist())


def test_a_budget_with_a_history_finds_a_part_of_the_exact_answer(ticks: pa.Table) -> None:
    """No wrong match, fewer run-steps, and more for the budget than without what was learned."""
    query = compile_query(SHAPES)
    exact = rows(query.match(ticks).to_arrow())
    history = HistoryGraph(query).fit(ticks.slice(0, 2000))
    found = rows(query.match_within(ticks, "40%", history=history).to_arrow())
    assert 0 < found.total() < exact.total()
    assert not found - exact
    assert rows(query.match_within(ticks, "100000 steps/event", history=history).to_arrow()) == exact


def test_functions_see_columns_and_say_the_same_in_any_split(ticks: pa.Table) -> None:
    """Also under a budget, and after a restart."""
    query = compile_query(JUMPS, functions=[gap])
    exact = rows(query.match(ticks).to_arrow())
    assert exact.total() > 100
    matcher = query.matcher()
    parts = [matcher.push(ticks.slice(0, 1111)), matcher.push(ticks.slice(1111, 2))]
    matcher = query.from_state(matcher.state_bytes())
    parts += [matcher.push(ticks.slice(1113)), matcher.finish()]
    assert rows(pa.concat_tables(parts)) == exact
    within = query.matcher(budget="1 steps/event")
    assert not rows(pa.concat_tables([within.push(ticks), within.finish()])) - exact


def test_a_saved_state_asks_for_the_version_of_a_function(ticks: pa.Table) -> None:
    """A function that gives other values makes another query."""
    matcher = compile_query(JUMPS, functions=[gap]).matcher()
    matcher.push(ticks.slice(0, 100))
    other = afa_function(version=2, returns=float, name="gap")(lambda left, right: left - right)
    with pytest.raises(DataError, match="D042"):
        compile_query(JUMPS, functions=[other]).from_state(matcher.state_bytes())


def test_explained_drawn_and_answered(ticks: pa.Table) -> None:
    """What is said of them names states, registers and moves."""
    query = compile_query(SHAPES)
    assert "of a run, q1 -> q2: level = level + 1" in query.explain()
    assert "level = level - 1" in query.explain("mermaid")
    assert "q2: level, patterns" in query.explain("dot")
    matched = next(iter(query.match(ticks)))
    around = (matched.start + matched.end) // 2
    assert query.why(ticks, around=around, key=matched.key["symbol"]).matched
    first = ticks.slice(0, 1)
    assert not query.why(first, around=0, key=first.column("symbol")[0].as_py()).matched


def test_what_cannot_be_combined_is_refused_by_name(ticks: pa.Table) -> None:
    """With codes."""
    with pytest.raises(UsageError, match="RETURN reads registers"):
        compile_query(SHAPES).match(ticks).compressed()
    with pytest.raises(QueryError, match="Q053"):
        compile_query("PATTERN AUTOMATON (a -> b ON A FINAL b) WITHIN 5 SIMULTANEOUS")
    with pytest.raises(QueryError, match="Q081"):
        compile_query("PATTERN AUTOMATON (a -> b ON A b -> c TIMEOUT FINAL c) WITHIN 5 NON OVERLAP")


@pytest.mark.xdist_group("spark")
def test_spark_finds_the_same(spark: Any, ticks: pa.Table) -> None:
    """With functions, which travel with the query."""
    for query in (compile_query(SHAPES), compile_query(JUMPS, functions=[gap])):
        there = spark.createDataFrame(ticks.to_pandas()).transform(query.spark(time="ts")).toPandas()
        columns = query.match(ticks).to_arrow().column_names
        names = [name for name in columns if name in there.columns and name != "missing"]
        here = query.match(ticks).to_arrow().select(names)
        assert Counter(map(str, there[names].itertuples(index=False, name=None))) == Counter(
            str(tuple(row.values())) for row in here.to_pylist()
        )
