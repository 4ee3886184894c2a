"""Queries in CEL in a set, in every way that must not matter, held against brute force."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from acep_approx import DataError, QuerySet
from acep_approx.query.cel.shape import streams
from acep_approx.query.cel.syntax import CelQuery
from tests.cel_runs import Bag, found, shuffled, split
from tests.cel_worlds import CelWorld
from tests.naive_cel import Event, TooManyEvents, bag, published, run, run_all

REFUSED = "refused"
"""Instead of a difference: a query reads streams whose attributes of one name have types that do not go together."""


def again(random_: random.Random, desk: QuerySet) -> QuerySet:
    """The set, or one that goes on from its state."""
    return QuerySet.from_state(desk.state_bytes()) if random_.random() < 0.4 else desk


def disagreement(seed: int, world: CelWorld, *, intervals: bool, output: Any = "matches") -> str:
    """What a set finds otherwise than brute force; empty if nothing."""
    try:
        expected = run_all(world.queries(), world.events)
    except TooManyEvents:
        return ""
    random_ = random.Random(seed)
    table = shuffled(random_, world.table if intervals else world.table.drop_columns("start"))
    desk = QuerySet(start="start" if intervals else None, output=output)
    for place in random_.sample(range(len(world.texts)), len(world.texts)):
        desk.add(world.texts[place], id=str(place))
    results: dict[str, list[pa.Table]] = {str(place): [] for place in range(len(world.texts))}
    try:
        for part in split(random_, table):
            _note(results, desk.push(part))
            desk = again(random_, desk)
        _note(results, desk.finish())
    except DataError as error:
        if error.code == "ACEP-D082":
            return REFUSED
        raise
    for place, text in enumerate(world.texts):
        if told := _told(output, expected[place], results[str(place)]):
            return f"{world.texts}\n{table.to_pylist()}\n{text}\n{told}"
    return ""


def _note(results: dict[str, list[pa.Table]], some: Any) -> None:
    for name, rows in some.items():
        results[name].append(rows.drop_columns("query"))


def _told(output: str, expected: Sequence[Event], tables: Sequence[pa.Table]) -> str:
    """How results differ from events; empty if they do not."""
    rows = [row for table in tables for row in table.to_pylist()]
    if output == "matches":
        mine: Bag = Counter()
        for table in tables:
            mine += found(table)
        wanted = bag(expected)
        return "" if mine == wanted else f"missing {wanted - mine}\nmore {mine - wanted}"
    if output == "counts":
        ends = Counter(event.t1 for event in expected)
        counts: Counter[int] = Counter()
        for row in rows:
            counts[row["end"]] += row["matches"]
        return "" if counts == ends else f"counts {counts}, not {ends}"
    return "" if {row["end"] for row in rows} == {event.t1 for event in expected} else f"points {rows}"


# --- queries that come and go -----------------------------------------------------------------------------------


@dataclass
class _Life:
    """From which tick on a query sees events, and from which one it does not any more."""

    since: float = float("inf")
    until: float = float("inf")


def comings_and_goings(seed: int, world: CelWorld) -> str:
    """What a set finds otherwise than brute force while queries come and go; empty if nothing."""
    random_ = random.Random(seed)
    queries, table = world.queries(), world.table
    feeds = [_feeding(queries, place) for place in range(len(queries))]
    lives = [_Life() for _ in queries]
    desk = QuerySet(start="start")
    results: dict[str, list[pa.Table]] = {str(place): [] for place in range(len(queries))}
    ticks = sorted(set(table["ts"].to_pylist()))
    cuts = sorted(random_.sample(ticks, min(len(ticks), random_.randrange(1, 5))))
    try:
        for begin, end in zip([ticks[0] - 1, *cuts], [*cuts, ticks[-1] + 1], strict=True):
            _change(random_, desk, world.texts, lives, feeds, begin)
            part = table.filter((pa.compute.field("ts") >= begin) & (pa.compute.field("ts") < end))
            for some in split(random_, part) if part.num_rows else ():
                _note(results, desk.push(some))
                desk = again(random_, desk)
        _note(results, desk.finish())
        events = _alone(queries, world, lives)
    except TooManyEvents:
        return ""
    except DataError as error:
        if error.code == "ACEP-D082":
            return REFUSED
        raise
    for place, text in enumerate(world.texts):
        if told := _told("matches", events[place], results[str(place)]):
            return f"{world.texts}\n{lives}\n{table.to_pylist()}\n{text}\n{told}"
    return ""


def _feeding(queries: Sequence[CelQuery], place: int) -> set[int]:
    """The queries whose streams one reads, and those that feed these."""
    publishers = {name: other for other in range(place) for name in published([queries[other]], {})}
    direct = {publishers[name] for name in streams(queries[place].select) if name in publishers}
    return direct.union(*(_feeding(queries, other) for other in direct))


def _change(
    random_: random.Random,
    desk: QuerySet,
    texts: Sequence[str],
    lives: Sequence[_Life],
    feeds: Sequence[set[int]],
    tick: int,
) -> None:
    """Let queries go, with those that read them, and others come, with those that they read."""
    if len(desk) and random_.random() < 0.4:
        gone = random_.choice([*desk])
        desk.remove(gone, cascade=True)
        for place, life in enumerate(lives):
            if life.since <= tick < life.until and str(place) not in desk:
                life.until = tick
    new = [place for place, life in enumerate(lives) if life.since > tick]
    wanted = set(random_.sample(new, random_.randrange(len(new) + 1)))
    wanted |= {other for place in wanted for other in feeds[place]}
    coming = [place for place in new if place in wanted and all(lives[one].until > tick for one in feeds[place])]
    for place in random_.sample(coming, len(coming)):
        lives[place].since = tick
        desk.add(texts[place], id=str(place))


def _alone(queries: Sequence[CelQuery], world: CelWorld, lives: Sequence[_Life]) -> list[list[Event]]:
    """The results of each query over the events of its life, those that others publish among them."""
    known = {name: list(events) for name, events in world.events.items()}
    results = []
    for query, life in zip(queries, lives, strict=True):
        seen = {name: list(_within(events, life)) for name, events in known.items()}
        results.append(run(query, seen))
        known |= published([query], seen)
    return results


def _within(events: Sequence[Event], life: _Life) -> Iterator[Event]:
    return (event for event in events if life.since <= event.t1 < life.until)
