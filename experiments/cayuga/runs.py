"""Experiments of ``cayuga`` with partial matches, published streams, and queries that come and go.

Each function measures, and gives the rows of its table. What is compared has found the same.
"""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx import Matcher, QuerySet, compile_query
from experiments.cayuga.sets import Asked
from experiments.report import Row
from experiments.speed.many_workload import CHUNK, ENOUGH, FIRST, TEMPLATE, Constants, constants, desk_of, stream, timed

# --- 5 ----------------------------------------------------------------------------------------------------------------

LOW, REACHED = 100.0, 106.0
"""Least price that a run waits at, and the price of the few events that reach the lowest runs."""
PART = 2_000
"""Events that are pushed at a time."""
TURN = "b.price > 1.05 * a.price"
PATTERN = f"PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) {{ {TURN} }} WITHIN 100000000 RETURN a.g AS g"
PATTERN_SAME = PATTERN.replace(TURN, "b.g = a.g")
PATTERN_KEY = PATTERN.replace(TURN, "[g]")
NEXT = "SELECT g_1 AS g FROM A NEXT{$2.price > 1.05 * $1.price} B"
NEXT_SAME = "SELECT g_1 AS g FROM A NEXT{$2.g = $1.g} B"
FOLD_SAME = "SELECT g, price FROM A FOLD{$2.g = $.g, $2.price < $.price, } B"
WAYS: dict[str, tuple[str, str]] = {
    "pattern": (PATTERN, "equal,chain"),
    "pattern_scan": (PATTERN, "equal"),
    "next": (NEXT, "auto"),
    "same_pattern": (PATTERN_SAME, "equal,chain"),
    "same_pattern_scan": (PATTERN_SAME, "equal"),
    "key_pattern": (PATTERN_KEY, "equal,chain"),
    "next_same": (NEXT_SAME, "auto"),
    "fold_same": (FOLD_SAME, "auto"),
}


def waiting_events(runs: int, events: int) -> tuple[pa.Table, pa.Table]:
    """Events that begin runs, each with a ``g`` of its own, and events of which one in a hundred ends some."""
    dice = np.random.default_rng(runs)
    begin = _events(np.arange(runs), "A", np.arange(runs), dice.uniform(LOW, 2 * LOW, runs))
    hits = dice.random(events) < 0.01
    g = np.where(hits, dice.integers(0, runs, events), -1)
    return begin, _events(runs + np.arange(events), "B", g, np.where(hits, REACHED, dice.uniform(90, 105, events)))


def _events(ts: np.ndarray, kind: str, g: np.ndarray, price: np.ndarray) -> pa.Table:
    return pa.table({"ts": ts, "type": pa.array([kind]).take(np.zeros(len(ts), int)), "g": g, "price": price})


def waited(text: str, merge: str, begin: pa.Table, events: pa.Table) -> tuple[float, int]:
    """CPU time per event in us, the median of as many parts as do not take too long; results of the first part."""
    query = compile_query(text)
    matcher: Any = query.matcher() if merge == "auto" else Matcher(query.plan, merge=merge)
    found = sum(matcher.push(begin.slice(first, CHUNK)).num_rows for first in range(0, begin.num_rows, CHUNK))
    each: list[float] = []
    spent = 0.0
    for first in range(0, events.num_rows, PART):
        part = events.slice(first, PART)
        begun = time.process_time()
        some = matcher.push(part).num_rows
        spent += time.process_time() - begun
        each.append(1e6 * (time.process_time() - begun) / part.num_rows)
        found += some if not first else 0
        if spent > ENOUGH:
            break
    return statistics.median(each), found


def waiting(asked: Asked) -> list[Row]:
    """More and more runs that wait: for an event beyond a threshold, or with a value of their own."""
    rows: list[Row] = []
    for runs in (size for size in asked.sizes if size >= 100):
        row: Row = {"runs": runs}
        begin, events = waiting_events(runs, asked.events)
        counts: dict[str, int] = {}
        for name, (text, merge) in WAYS.items():
            waited(text, merge, begin.slice(0, 10), events.slice(0, 100))  # kernels are compiled
            row[name], counts[name] = waited(text, merge, begin, events)
        assert counts["pattern"] == counts["pattern_scan"] == counts["next"], counts
        assert counts["same_pattern"] == counts["key_pattern"] == counts["next_same"], counts
        rows.append(row)
    return rows


# --- 7 ----------------------------------------------------------------------------------------------------------------

SHOWN = "RETURN {0}.symbol AS symbol, {0}.price AS price"


def chain(depth: int, least: float) -> list[str]:
    """Queries of which each reads what the one before publishes; all but the first pass everything on."""
    texts = [f"PATTERN Stock a WHERE a.price > {least} WITHIN 1 {SHOWN.format('a')}"]
    texts += [f"PATTERN Level{n} u WHERE u.price > 0 WITHIN 1 {SHOWN.format('u')}" for n in range(1, depth)]
    return [f"{text} PUBLISH Level{n}" if n < depth else text for n, text in enumerate(texts, 1)]


def published(asked: Asked) -> list[Row]:
    """Streams of streams: longer chains, and more and more queries that read one stream."""
    data, rows = stream(asked.events), list[Row]()
    price = data.column("price").to_numpy()
    least = float(np.quantile(price, 0.9))
    for depth in (1, 2, 4, 8):
        texts = chain(depth, least)
        rate, per_event = timed(lambda texts=texts: _desk_of(texts), data, asked.rounds)
        passed = int((price > least).sum())
        assert round(per_event * asked.events) == depth * passed, f"chain of {depth}"
        rows.append({"what": f"chain of {depth}", "queries": depth, "rate": rate, "read": passed * (depth - 1)})
    texts = [chain(2, least)[0]]
    for readers in (size for size in (1, 10, 100, 1_000, 10_000) if size <= asked.some):
        limits = np.quantile(price, np.linspace(0.999, 1, readers)).tolist()  # few results for each

        def ready(limits: list[float] = limits) -> QuerySet:
            desk = _desk_of(texts)
            desk.add_many("PATTERN Level1 u WHERE u.price > :p WITHIN 1", [{"p": limit} for limit in limits], id="r")
            return desk

        rate, per_event = timed(ready, data, asked.rounds)
        wanted = passed + sum(int((price > limit).sum()) for limit in limits)
        assert round(per_event * asked.events) == wanted, f"{readers} readers"
        name = f"{readers:,} reader{'s' * (readers > 1)}"
        rows.append({"what": name, "queries": readers + 1, "rate": rate, "read": passed})
    return rows


def _desk_of(texts: list[str]) -> QuerySet:
    desk = QuerySet(time="ts")
    for text in texts:
        desk.add(text)
    return desk


# --- 9 ----------------------------------------------------------------------------------------------------------------


def changes(asked: Asked) -> list[Row]:
    """Queries that come and go while the stream runs: so many for each push of a thousand events."""
    rows: list[Row] = []
    for standing in (asked.some, asked.most):
        data = stream(max(asked.events, 10 * FIRST))
        for count in (0, 1, 10, 100):
            seconds, points = _changed(standing, count, data)
            pushes, total = len(seconds), float(np.sum(seconds))
            rows.append(
                {
                    "standing": standing,
                    "changes": 2 * count,
                    "rate": pushes * FIRST / total,
                    "changes_rate": 2 * count * pushes / total or None,
                    "middle": 1e3 * float(np.quantile(seconds, 0.5)),
                    "late": 1e3 * float(np.quantile(seconds, 0.99)),
                    "points": points,
                }
            )
    return rows


def _changed(standing: int, count: int, data: pa.Table) -> tuple[list[float], int]:
    """Seconds of each push with its changes, and the points of all queries."""
    rows = constants(standing + count * data.num_rows // FIRST)
    desk = desk_of(TEMPLATE, rows[:standing])
    new, oldest = iter(rows[standing:]), iter(range(1, len(rows)))
    seconds, found = [], desk.push(data.slice(0, FIRST)).rows
    for first in range(FIRST, data.num_rows - FIRST + 1, FIRST):
        part = data.slice(first, FIRST)
        begun = time.process_time()
        if count:
            desk.add_many(TEMPLATE, [next(new) for _ in range(count)])
            for _ in range(count):
                desk.remove(f"q{next(oldest)}")
        found += desk.push(part).rows
        seconds.append(time.process_time() - begun)
    assert len(desk) == standing
    return seconds, found + desk.finish().rows


def check_changes(rows: Constants, data: pa.Table) -> int:
    """Hold queries that come and go, one with each push, against each by itself over its part; gives the points."""
    desk, pushes = QuerySet(time="ts", output="points"), data.num_rows // len(rows)
    here: Counter[str] = Counter()
    for number, row in enumerate(rows):
        desk.add_many(TEMPLATE, [row], id=f"n{number}")
        if number > 1:
            desk.remove(f"n{number - 2}[0]")
        here.update(_points(desk.push(data.slice(number * pushes, pushes))))
    here.update(_points(desk.finish()))
    total = 0
    for number, row in enumerate(rows):
        part = data.slice(number * pushes, 2 * pushes if number < len(rows) - 1 else pushes)
        alone = desk_of(TEMPLATE, [row]).match(part).rows
        assert here[f"n{number}[0]"] == alone, f"query {number}: {here[f'n{number}[0]']} points, alone {alone}"
        total += alone
    return total


def _points(found: Any) -> Counter[str]:
    return Counter({name: table.num_rows for name, table in found.items()})


# --- 10 ---------------------------------------------------------------------------------------------------------------


def held(ready: Callable[[], Any]) -> int:
    """Bytes of Python, numpy and Arrow that something holds."""
    gc.collect()
    arrow = pa.total_allocated_bytes()
    tracemalloc.start()
    made = ready()
    gc.collect()
    size: int = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes() - arrow
    tracemalloc.stop()
    del made
    return size


def bytes_each(ready: Callable[[int], Any], count: int) -> float:
    """Bytes for each of many; those for one are taken off, as they are for all."""
    ready(1)  # what is kept for ever
    return (held(lambda: ready(count)) - held(lambda: ready(1))) / (count - 1)


def memory(asked: Asked) -> list[Row]:
    """Bytes of a query for which nothing has come, of one that is live, and of a partial match."""
    table = pa.Table.from_pylist([row | {"p": 0.0} for row in constants(asked.most)])
    events = stream(FIRST)
    once = events.set_column(2, "symbol", pa.array(np.arange(FIRST)))
    nowhere = events.slice(0, 10).set_column(2, "symbol", pa.array([-1] * 10))

    def of_template(some: pa.Table) -> Callable[[int], QuerySet]:
        def ready(count: int) -> QuerySet:
            desk = QuerySet(time="ts", output="points")
            desk.add_many(TEMPLATE, table.slice(0, count))
            desk.push(some)
            desk.pass_time(FIRST)
            return desk

        return ready

    def alone(count: int) -> QuerySet:
        desk = QuerySet(time="ts", output="points")
        for number in range(count):
            desk.add(f"PATTERN Stock a WHERE a.price > {number} WITHIN 1 PUBLISH Of{number}")
        desk.push(nowhere)
        return desk

    def runs(count: int) -> Any:
        matcher = compile_query(PATTERN).matcher(output="points")
        begin = waiting_events(count, 1)[0]
        for first in range(0, count, FIRST):
            matcher.push(begin.slice(first, FIRST))
        return matcher

    idle, live = (bytes_each(of_template(some), asked.most) for some in (nowhere, once))
    few = max(asked.most // 1000, 5)
    return [
        {"what": "a query of a template, idle", "count": asked.most, "bytes": idle},
        {"what": "the same with one partial match", "count": asked.most, "bytes": live},
        {"what": "a query that runs by itself, idle", "count": few, "bytes": bytes_each(alone, few)},
        {"what": "a partial match of one query", "count": asked.most, "bytes": bytes_each(runs, asked.most)},
    ]
