"""Many queries that differ in constants, on one stream: events per second, against each query by itself.

    python -m experiments.bench_many [--queries 1000 10000 100000] [--events 300000]

The template: a stock is above a price, then above a multiple of that, then a large volume is traded; each query has a
stock, both prices, a volume and a window of its own. Match points; reading is left out. Times are CPU times.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pyarrow as pa

from acep_approx import QuerySet, compile_query

TEMPLATE = """
    PATTERN SEQ(Stock a, Stock b, Stock c)
    WHERE [symbol] AND a.symbol = :s AND a.price > :p AND b.price > :f * a.price AND c.volume > :v WITHIN :w
"""
SYMBOLS = 1000


def stream(events: int) -> pa.Table:
    """Prices that walk, a thousand symbols in any order."""
    dice = np.random.default_rng(1)
    symbol, price = dice.integers(0, SYMBOLS, events), np.empty(events)
    order, steps = np.argsort(symbol, kind="stable"), np.exp(dice.normal(0, 0.02, events))
    for at in np.split(order, np.searchsorted(symbol[order], np.arange(1, SYMBOLS))):
        price[at] = 100 * np.cumprod(steps[at])
    volume = np.exp(dice.normal(10, 0.8, events)).astype(np.int64)
    types = pa.DictionaryArray.from_arrays(np.zeros(events, np.int32), ["Stock"])
    return pa.table({"ts": np.arange(events), "type": types, "symbol": symbol, "price": price, "volume": volume})


def constants(queries: int) -> list[dict[str, float]]:
    """Constants of all queries, spread evenly."""
    dice = np.random.default_rng(2)
    table = {
        "s": dice.integers(0, SYMBOLS, queries),
        "p": dice.uniform(80, 160, queries),
        "f": dice.uniform(1.01, 1.05, queries),
        "v": dice.integers(8_000, 40_000, queries),
        "w": dice.integers(10_000, 30_000, queries),
    }
    return pa.table(table).to_pylist()  # type: ignore[no-any-return]


def seconds_alone(data: pa.Table, queries: int = 3) -> float:
    """What one query takes by itself."""
    texts = []
    for row in constants(queries):
        text = TEMPLATE
        for name, value in row.items():
            text = text.replace(f":{name}", str(value))
        texts.append(compile_query(text))
    texts[0].match(data.slice(0, 1000)).points()
    begun = time.process_time()
    for query in texts:
        query.match(data).points()
    return (time.process_time() - begun) / queries


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--events", type=int, default=300_000)
    args = parser.parse_args()
    data = stream(args.events)
    alone = seconds_alone(data)
    print(f"{'queries':>9} {'adding':>9} {'first push':>11} {'events/s':>11} {'points/event':>13} {'alone / set':>12}")
    for queries in args.queries:
        desk, rows = QuerySet(time="ts", output="points"), constants(queries)
        begun = time.process_time()
        desk.add_many(TEMPLATE, rows)
        adding = time.process_time() - begun
        begun = time.process_time()
        found = desk.push(data.slice(0, 1000)).rows
        first = time.process_time() - begun
        begun = time.process_time()
        for at in range(1000, args.events, 131_072):
            found += desk.push(data.slice(at, 131_072)).rows
        taken = time.process_time() - begun
        rate, ratio = (args.events - 1000) / taken, alone * queries / taken
        per_event = found / args.events
        print(f"{queries:>9,} {adding:>7.2f} s {first:>9.2f} s {rate:>11,.0f} {per_event:>13.2f} {ratio:>11,.0f}x")


if __name__ == "__main__":
    main()
