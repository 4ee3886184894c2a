"""Streams, templates and constants for ``speed.many`` and ``cayuga``, and how sets of queries are timed and checked."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx import QuerySet, compile_query
from acep_approx.arrays import Ints

TEMPLATE = """
    PATTERN SEQ(Stock a, Stock b, Stock c)
    WHERE [symbol] AND a.symbol = :s AND a.price > :p AND b.price > :f * a.price AND c.volume > :v WITHIN :w
"""
"""A stock is above a price, then above a multiple of that, then a large volume is traded."""
SYMBOLS = 1000
FIRST, CHUNK = 1000, 131_072
"""Events that are pushed before the clock runs, and at a time from then on."""
ENOUGH = 2.0
"""Seconds after which a measurement is not repeated once more."""
Constants = list[dict[str, Any]]


def stream(events: int, symbols: int = SYMBOLS, skew: float = 0.0, seed: int = 1) -> pa.Table:
    """Prices that walk, each symbol by itself, in any order; ``skew``: how often symbols come, as 1/rank^skew."""
    dice = np.random.default_rng(seed)
    symbol, price = ranks(events, symbols, skew, dice), np.empty(events)
    order, steps = np.argsort(symbol, kind="stable"), np.exp(dice.normal(0, 0.02, events))
    for at in np.split(order, np.searchsorted(symbol[order], np.arange(1, symbols))):
        price[at] = 100 * np.cumprod(steps[at])
    volume = np.exp(dice.normal(10, 0.8, events)).astype(np.int64)
    types = pa.DictionaryArray.from_arrays(np.zeros(events, np.int32), ["Stock"])
    return pa.table({"ts": np.arange(events), "type": types, "symbol": symbol, "price": price, "volume": volume})


def ranks(count: int, most: int, skew: float, dice: np.random.Generator) -> Ints:
    """Numbers below ``most``, each as often as 1/(1 + number)^skew says."""
    weights = np.arange(1, most + 1) ** -skew
    return dice.choice(most, count, p=weights / weights.sum())


def constants(queries: int, symbols: int = SYMBOLS, skew: float = 0.0) -> Constants:
    """Constants of ``TEMPLATE``, spread evenly; symbols as often as 1/rank^skew."""
    dice = np.random.default_rng(2)
    table = {
        "s": ranks(queries, symbols, skew, dice),
        "p": dice.uniform(80, 160, queries),
        "f": dice.uniform(1.01, 1.05, queries),
        "v": dice.integers(8_000, 40_000, queries),
        "w": dice.integers(10_000, 30_000, queries),
    }
    return pa.table(table).to_pylist()  # type: ignore[no-any-return]


def hot_constants(queries: int, skew: float = 1.0, values: int = 8) -> Constants:
    """Constants of hot symbols for ``TEMPLATE``: all others are one of a few values, and few volumes are so large."""
    dice = np.random.default_rng(3)
    table: dict[str, np.ndarray] = {"s": ranks(queries, SYMBOLS, skew, dice)}
    for name, least, most in (("p", 80.0, 160.0), ("f", 1.01, 1.05), ("v", 200_000, 600_000), ("w", 10_000, 30_000)):
        some = np.linspace(least, most, values).astype(type(least))
        table[name] = some[dice.integers(0, values, queries)]
    return pa.table(table).to_pylist()  # type: ignore[no-any-return]


_BETWEEN = (("price", "price", ">"), ("price", "price", "<"), ("volume", "volume", ">"), ("volume", "volume", "<"))


def shapes(count: int) -> Iterator[str]:
    """Templates with constants of one symbol each, different in what they compare; five thousand at most."""
    tests = [f"{name} {op} :{name[0]}{{n}}" for name, op in product(("price", "volume"), ("<", "<=", ">", ">=", "<>"))]
    turns = [f"{name} {op} :f * a.{name}" for name, op in product(("price", "volume"), ("<", "<=", ">", ">=", "<>"))]
    more = ("", *(f" AND b.{name} {op} a.{other}" for name, other, op in _BETWEEN))
    for between, first, turn, last in islice(product(more, tests, turns, tests), count):
        yield (
            f"PATTERN SEQ(Stock a, Stock b, Stock c) WHERE [symbol] AND a.symbol = :s AND a.{first.format(n=1)} "
            f"AND b.{turn} AND c.{last.format(n=2)}{between} WITHIN :w"
        )


def shape_constants(queries: int, seed: int) -> Constants:
    """Constants for any of ``shapes``; matches are rare."""
    dice = np.random.default_rng(seed)
    table = {
        "s": dice.integers(0, SYMBOLS, queries),
        "p1": dice.uniform(90, 110, queries),
        "v1": dice.integers(20_000, 25_000, queries),
        "f": dice.uniform(0.98, 1.02, queries),
        "p2": dice.uniform(90, 110, queries),
        "v2": dice.integers(20_000, 25_000, queries),
        "w": dice.integers(1_000, 3_000, queries),
    }
    return pa.table(table).to_pylist()  # type: ignore[no-any-return]


def only_asked(template: str, rows: Constants) -> Constants:
    """Of constants those that a template has parameters for."""
    names = [name for name in rows[0] if re.search(rf":{name}\b", template)]
    return [{name: row[name] for name in names} for row in rows]


def filled(template: str, row: dict[str, Any]) -> str:
    """The text of one query of a template."""
    for name in sorted(row, key=len, reverse=True):
        value = row[name]
        template = template.replace(f":{name}", f"'{value}'" if isinstance(value, str) else str(value))
    return template


# --- measuring --------------------------------------------------------------------------------------------------------


def desk_of(template: str, rows: Constants, **asked: Any) -> QuerySet:
    """A set of the queries of one template; match points, if nothing else is asked."""
    desk = QuerySet(time="ts", **{"output": "points", **asked})
    desk.add_many(template, rows)
    return desk


def desk_of_shapes(templates: int, each: int) -> QuerySet:
    """Templates that differ in what they compare, some queries each; match points."""
    desk = QuerySet(time="ts", output="points")
    for number, text in enumerate(shapes(templates)):
        desk.add_many(text, only_asked(text, shape_constants(each, number)))
    return desk


def pushed(desk: QuerySet, data: pa.Table, chunk: int = CHUNK) -> tuple[float, int]:
    """Seconds of the process for a stream behind its first events, and the results of all of it."""
    found = desk.push(data.slice(0, FIRST)).rows
    begun = time.process_time()
    for at in range(FIRST, data.num_rows, chunk):
        found += desk.push(data.slice(at, chunk)).rows
    taken = time.process_time() - begun
    return taken, found + desk.finish().rows


def timed(make: Any, data: pa.Table, rounds: int = 3, chunk: int = CHUNK) -> tuple[float, float]:
    """Events per second of what ``make`` gives, the best of some rounds, and results per event."""
    best, found, spent = float("inf"), 0, 0.0
    for _ in range(rounds):
        taken, found = pushed(make(), data, chunk)
        best, spent = min(best, taken), spent + taken
        if spent > ENOUGH:
            break
    return (data.num_rows - FIRST) / best, found / data.num_rows


def seconds_alone(template: str, rows: Constants, data: pa.Table, queries: int = 3) -> float:
    """What one query takes by itself, the mean of some."""
    made = [compile_query(filled(template, row)) for row in rows[:queries]]
    made[0].match(data.slice(0, FIRST)).points()
    begun = time.process_time()
    for query in made:
        query.match(data).points()
    return (time.process_time() - begun) / len(made)


def check(template: str, rows: Sequence[dict[str, Any]], data: pa.Table, queries: int = 10) -> int:
    """Hold a set against some of its queries by themselves on a part of a stream; gives how many points they have."""
    desk = desk_of(template, list(rows), key=None)
    table = desk.match(data).to_arrow()
    here = Counter(table.column("query").to_pylist())
    most = [int(name[1:]) - 1 for name, _ in here.most_common(queries // 2)]
    some = [*most, *range(queries - len(most))]
    points = 0
    for number in dict.fromkeys(at for at in some if at < len(rows)):
        alone = compile_query(filled(template, rows[number])).match(data).points().num_rows
        assert here[f"q{number + 1}"] == alone, f"query {number}: {here[f'q{number + 1}']} points, alone {alone}"
        points += alone
    return points
