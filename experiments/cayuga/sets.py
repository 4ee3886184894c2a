"""Experiments of ``cayuga`` with templates: how many queries, how skewed, how long, with which constants.

Each function measures, and gives the rows of its table. Sets are held against single queries before the clock runs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx import QuerySet, compile_query
from experiments.report import Row
from experiments.speed.many_workload import (
    FIRST,
    SYMBOLS,
    TEMPLATE,
    Constants,
    check,
    constants,
    desk_of,
    desk_of_shapes,
    hot_constants,
    only_asked,
    seconds_alone,
    shape_constants,
    shapes,
    stream,
    timed,
)

HIDDEN = TEMPLATE.replace("a.symbol = :s", ":zero + a.symbol = :s")
"""The same queries, in a form that no index is made for."""
JOINED = """
    PATTERN SEQ(Stock a, Stock b, Stock c)
    WHERE [q] AND a.price > a.p AND b.price > a.f * a.price AND c.volume > a.v AND c.ts - a.ts <= a.w WITHIN 30000
"""
"""The same for events that were joined with the table of constants."""
MOST_PAIRS, MOST_JOINED = 20_000_000, 2_000_000
"""Pairs of an event and a query that are tried without an index, and that are joined, at most."""
FEWEST = 3 * FIRST
CHECKED = 20_000


@dataclass(frozen=True)
class Asked:
    """How much is measured: ``most`` queries; ``data``: the folder of real streams."""

    events: int
    rounds: int
    most: int
    data: Path

    @property
    def sizes(self) -> list[int]:
        """Numbers of queries: powers of ten."""
        return [10**n for n in range(1, 10) if 10**n <= self.most]

    @property
    def some(self) -> int:
        """Queries where their number is not what is looked at."""
        return max(self.most // 10, 10)


def without_joins(joined: pa.Table) -> int:
    """Match points of events that were joined with the table of constants."""
    return compile_query(JOINED).match(joined).points().num_rows  # type: ignore[no-any-return]


def by_join(data: pa.Table, rows: Constants) -> tuple[float, int]:
    """Seconds and points of joining events with the table of constants, and one query with ``[q]`` as key."""
    table = pa.Table.from_pylist([{"symbol": row["s"], "q": n} | row for n, row in enumerate(rows)]).drop_columns("s")
    events = data.set_column(1, "type", data.column("type").cast(pa.string()))
    begun = time.process_time()
    points = without_joins(events.join(table, "symbol", join_type="inner").sort_by("ts"))
    return time.process_time() - begun, points


# --- 1 ----------------------------------------------------------------------------------------------------------------


def queries(asked: Asked) -> list[Row]:
    """More and more queries: with the index, without, joined with the constants, and each by itself."""
    data = stream(asked.events)
    rows: list[Row] = []
    alone = seconds_alone(TEMPLATE, constants(3), data) / asked.events
    for count in asked.sizes:
        table = constants(count)
        check(TEMPLATE, table, data.slice(0, CHECKED))
        begun = time.process_time()
        desk_of(TEMPLATE, table)
        row: Row = {"queries": count, "adding": time.process_time() - begun}
        row["rate"], row["points"] = timed(lambda table=table: desk_of(TEMPLATE, table), data, asked.rounds)
        row["alone"] = 1 / (alone * count)
        row["gain"] = row["rate"] / row["alone"]
        rows.append(row | _tried(data, table))
    return rows


def _tried(data: pa.Table, table: Constants) -> Row:
    """The rates without an index and by a join, where they do not take too long."""
    row: Row = {}
    count, hidden = len(table), [one | {"zero": 0} for one in table]
    if FEWEST * count <= MOST_PAIRS * 2:
        part = data.slice(0, max(FEWEST, MOST_PAIRS // count))
        check(HIDDEN, hidden, part.slice(0, FEWEST), 2)
        row["hidden"] = timed(lambda: desk_of(HIDDEN, hidden), part, 1)[0]
    if FEWEST * count <= MOST_JOINED * SYMBOLS // 10:
        part = data.slice(0, max(FEWEST, min(data.num_rows, MOST_JOINED * SYMBOLS // count)))
        by_join(part.slice(0, FEWEST), table[:10])  # kernels are compiled
        taken, points = by_join(part, table)
        row["join"] = part.num_rows / taken
        found = desk_of(TEMPLATE, table).match(part).rows
        assert found == points, f"{count} queries: {found} points, {points} by a join"
    return row


# --- 2 ----------------------------------------------------------------------------------------------------------------


def skew(asked: Asked) -> list[Row]:
    """Hot symbols, of the queries, of the events, of both; all constants different, or few of them."""
    rows: list[Row] = []
    for exponent in (0.0, 0.5, 1.0, 1.5):
        row: Row = {"skew": exponent}
        cases = {"of_queries": (exponent, 0.0), "of_events": (0.0, exponent), "of_both": (exponent, exponent)}
        for name, (of_queries, of_events) in cases.items():
            data = stream(asked.events, skew=of_events)
            table = _rare(constants(asked.some, skew=of_queries))
            check(TEMPLATE, table, data.slice(0, CHECKED // 4))
            row[name], row["points"] = timed(lambda table=table: desk_of(TEMPLATE, table), data, asked.rounds)
        table = hot_constants(asked.some, exponent)
        check(TEMPLATE, table, data.slice(0, CHECKED // 4))
        row["few_values"] = timed(lambda table=table: desk_of(TEMPLATE, table), data, asked.rounds)[0]
        symbols = [one["s"] for one in table]
        shares = np.arange(1, SYMBOLS + 1) ** -exponent
        row["of_symbol"] = float(np.bincount(symbols, minlength=SYMBOLS) @ shares / shares.sum())
        rows.append(row)
    return rows


def _rare(table: Constants) -> Constants:
    """The same with volumes that hardly any event has."""
    volumes = np.random.default_rng(5).integers(200_000, 600_000, len(table)).tolist()
    return [row | {"v": volume} for row, volume in zip(table, volumes, strict=True)]


# --- 3 ----------------------------------------------------------------------------------------------------------------


def rising(steps: int) -> str:
    """A price that rises, step by step, by factors of each query."""
    names = [f"a{n}" for n in range(1, steps + 1)]
    turns = [f"{b}.price > :f{n} * {a}.price" for n, (a, b) in enumerate(pairwise(names), 2)]
    tests = " AND ".join(["[symbol]", "a1.symbol = :s", "a1.price > :p", *turns])
    return f"PATTERN SEQ({', '.join(f'Stock {name}' for name in names)}) WHERE {tests} WITHIN :w"


def steps(asked: Asked) -> list[Row]:
    """Patterns of one to six steps."""
    data, dice = stream(asked.events), np.random.default_rng(4)
    rows: list[Row] = []
    factors = dice.uniform(1.01, 1.04, (asked.some, 7))
    for count in range(1, 7):
        table = [
            {"s": row["s"], "p": row["p"], "w": 10_000} | {f"f{n}": float(some[n]) for n in range(2, count + 1)}
            for row, some in zip(constants(asked.some), factors, strict=True)
        ]
        text = rising(count)
        check(text, table, data.slice(0, CHECKED))
        rate, points = timed(lambda text=text, table=table: desk_of(text, table), data, asked.rounds)
        alone = seconds_alone(text, table, data) * asked.some
        rows.append({"steps": count, "rate": rate, "points": points, "gain": rate * alone / asked.events})
    return rows


# --- 4 ----------------------------------------------------------------------------------------------------------------

FEW_SYMBOLS = 100
STATIC = {
    "=": "a.symbol = :s",
    "=, >": "a.symbol = :s AND a.price > :p",
    "=, >, >": "a.symbol = :s AND a.price > :p AND a.volume > :u",
    "=, >, >, <": "a.symbol = :s AND a.price > :p AND a.volume > :u AND a.price < :q",
    "> (rare)": "a.volume > :t",
    ">": "a.volume > :u",
    "> and <": "a.price > :p AND a.price < :q",
    ">, > and <": "a.volume > :u AND a.price > :p AND a.price < :q",
}


def static(asked: Asked) -> list[Row]:
    """What the first step asks of one event: equalities and ranges, one or several."""
    count = max(asked.most // 100, 10)
    data, dice = stream(asked.events, FEW_SYMBOLS), np.random.default_rng(6)
    low = dice.uniform(60, 160, count)
    columns = {
        "s": dice.integers(0, FEW_SYMBOLS, count),
        "p": low,
        "q": 1.02 * low,
        "u": dice.integers(80_000, 160_000, count),
        "t": dice.integers(160_000, 320_000, count),
        "v": dice.integers(200_000, 600_000, count),
        "f": dice.uniform(1.01, 1.05, count),
        "w": dice.integers(1_000, 3_000, count),
    }
    table: Constants = pa.table(columns).to_pylist()
    rows: list[Row] = []
    for name, tests in STATIC.items():
        text = (
            f"PATTERN SEQ(Stock a, Stock b, Stock c) WHERE [symbol] AND {tests} AND b.price > :f * a.price "
            "AND c.volume > :v WITHIN :w"
        )
        mine = only_asked(text, table)
        check(text, mine, data.slice(0, CHECKED))
        rate, points = timed(lambda text=text, mine=mine: desk_of(text, mine), data, asked.rounds)
        rows.append({"tests": name, "hits": _hits(tests, columns, data), "rate": rate, "points": points})
    return rows


def _hits(tests: str, columns: dict[str, Any], data: pa.Table) -> float:
    """Queries that an event could begin, the mean over some events."""
    some = data.slice(data.num_rows // 2, 500)
    holds = np.ones((some.num_rows, len(columns["s"])), bool)
    compare = {"=": np.equal, ">": np.greater, "<": np.less}
    for test in tests.split(" AND "):
        own, op, constant = test.split(" ")
        values = some.column(own.removeprefix("a.")).to_numpy()
        holds &= compare[op](values[:, None], columns[constant.removeprefix(":")][None, :])
    return float(holds.sum() / some.num_rows)


# --- 6 ----------------------------------------------------------------------------------------------------------------


def templates(asked: Asked) -> list[Row]:
    """The same number of queries in more and more templates."""
    data, rows = stream(asked.events), list[Row]()
    for count in (1, 10, 100, 1_000, 5_000):
        each = asked.some // count
        if not each:
            break
        for number, text in enumerate(shapes(min(count, 3))):
            check(text, only_asked(text, shape_constants(each, number)), data.slice(0, CHECKED), 2)
        row: Row = {"templates": count, "each": each}

        def ready(count: int = count, each: int = each, row: Row = row) -> QuerySet:
            begun = time.process_time()
            desk = desk_of_shapes(count, each)
            row["adding"] = time.process_time() - begun
            return desk

        row["rate"], row["points"] = timed(ready, data, asked.rounds)
        rows.append(row)
    return rows


# --- 8 ----------------------------------------------------------------------------------------------------------------

NEXT_TEXT = "SELECT price_1 AS low, price FROM FILTER{price > 100}(Stock) NEXT{$2.symbol = $1.symbol} Stock WITHIN %d"
UP_TEXT = "PATTERN Stock a WHERE a.price > 100 WITHIN 1 RETURN a.symbol AS symbol, a.price AS price PUBLISH Up"
READS_UP = "PATTERN Up u WHERE u.price > 150 WITHIN 1"


def ties(asked: Asked) -> list[Row]:
    """More and more events at one time."""
    rows: list[Row] = []
    whole = stream(asked.events)
    for size in (1, 10, 100, 1_000, 10_000):
        if size * 10 > asked.events:
            break
        data = whole.set_column(0, "ts", pa.array(np.arange(asked.events) // size))
        table = [row | {"w": row["w"] // size} for row in constants(asked.some)]
        check(TEMPLATE, table, data.slice(0, CHECKED))
        row: Row = {"size": size}
        row["rate"], row["points"] = timed(lambda table=table: desk_of(TEMPLATE, table), data, asked.rounds)
        text = NEXT_TEXT % max(10_000 // size, 1)
        row["next"], per_event = timed(lambda text=text: _desk(text), data, asked.rounds)
        found = compile_query(text).match(data).to_arrow().num_rows
        assert round(per_event * asked.events) == found, f"{size} a time: {found} results of NEXT alone"
        row["published"], _ = timed(lambda: _desk(UP_TEXT, READS_UP), data, asked.rounds)
        rows.append(row)
    return rows


def _desk(*texts: str) -> QuerySet:
    desk = QuerySet(time="ts")
    for text in texts:
        desk.add(text)
    return desk
