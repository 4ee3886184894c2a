"""Queries in CEL in a set, in every way that must not matter, held against brute force."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from acep_approx import DataError, QuerySet, compile_query
from acep_approx.query.cel.names import resolved
from acep_approx.query.cel.parser import parse_cel
from acep_approx.query.cel.syntax import CelQuery, streams
from tests.cel_runs import Bag, found, shuffled, split
from tests.cel_worlds import SCHEMAS, CelWorld
from tests.naive_cel import Event, TooManyEvents, bag, published, run, run_all
from tests.sets_worlds import bag as rows_bag
from tests.sets_worlds import fed

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


# --- queries in CEL among patterns --------------------------------------------------------------------------------

PUBLISHING = {
    "M0": "PATTERN SEQ(A a, B b) WHERE b.x >= a.x WITHIN 6 RETURN a.g AS g, b.x AS u PUBLISH M0",
    "M1": "PATTERN A a WHERE a.y > 0 WITHIN 3 RETURN a.g AS g, a.y AS u PUBLISH M1",
    "M2": "PATTERN SEQ(B b, ~(A n), B c) WITHIN 8 RETURN c.x AS u PUBLISH M2",
}
"""Patterns whose matches are streams of these attributes."""
BETWEEN = {
    "C0": "SELECT u_1 AS u, x FROM M0 NEXT{$2.x >= u} A PUBLISH C0",
    "C1": "SELECT u_1 AS v, u FROM M0 NEXT{$1.g = $2.g} M1 PUBLISH C1",
    "C2": "SELECT g, u, n FROM (SELECT *, 0 AS n FROM M1) FOLD{$2.g = $.g, $2.u >= $.u, $.n + 1 AS n} M0 PUBLISH C2",
    "C3": "SELECT x, u FROM A NEXT{} (M2 NEXT{} (B NEXT{} M2)) WITHIN 12 PUBLISH C3",
}
READING = {
    "R0": "PATTERN SEQ(C0 c, B b) WHERE b.x >= c.u WITHIN 5 RETURN c.u AS c, b.x AS d",
    "R1": "PATTERN SEQ(A a, C1 c) WITHIN 0 RETURN c.v AS c, a.x AS d",
    "R2": "PATTERN SEQ(C2 c, C3 e) WITHIN 9 RETURN c.n AS c, e.x AS d",
    "R3": "PATTERN SEQ(C3 c, ~(A n), C0 e) WITHIN 9 RETURN c.start AS c, e.u AS d",
}


def among_patterns(seed: int, world: CelWorld) -> str:
    """What queries in CEL find otherwise than brute force that read patterns, and patterns that read them."""
    random_ = random.Random(seed)
    texts = PUBLISHING | BETWEEN | READING
    table = shuffled(random_, world.table)
    desk = QuerySet(start="start")
    for name in random_.sample([*texts], len(texts)):
        desk.add(texts[name], id=name)
    order = [name for _, names in sorted(desk.levels().items()) for name in names]
    results: dict[str, list[pa.Table]] = {name: [] for name in texts}
    for part in split(random_, table):
        _note(results, desk.push(part))
        desk = again(random_, desk)
    last = desk.finish()
    _note(results, last)
    patterns = {name: compile_query(text).match(table).to_arrow() for name, text in PUBLISHING.items()}
    events = {**world.events, **{name: _events(rows) for name, rows in patterns.items()}}
    try:
        wanted = run_all(_resolved(BETWEEN.values()), events)
    except TooManyEvents:
        return ""
    for name, expected in zip(BETWEEN, wanted, strict=True):
        if told := _told("matches", expected, results[name]):
            return f"{texts[name]}\n{table.to_pylist()}\n{told}"
    nothing = {name: last[name].slice(0, 0).drop_columns("query") for name in BETWEEN}
    streams_ = {name: _repeated([*results[name], nothing[name]]) for name in BETWEEN}
    for name, text in READING.items():
        read = [one for one in order if one in BETWEEN and one in text]
        alone = fed(text, table.drop_columns("start"), [(one, streams_[one]) for one in read])
        mine = [row for rows in results[name] for row in rows.to_pylist()]
        if rows_bag(mine) != rows_bag(alone.to_pylist()):
            return f"{text}\n{table.to_pylist()}\n{mine}\nnot {alone.to_pylist()}"
    return ""


def _resolved(texts: Iterable[str]) -> list[CelQuery]:
    schemas = {**SCHEMAS, "M0": ("g", "u"), "M1": ("g", "u"), "M2": ("u",)}
    return [resolved(parse_cel(text), schemas) for text in texts]


def _events(rows: pa.Table) -> list[Event]:
    """Matches as events."""
    found = []
    for row in rows.to_pylist():
        values = {name: value for name, value in row.items() if name not in ("errors", "start", "end", "missing")}
        found.append(Event(row["start"], row["end"], values))
    return found


def _repeated(tables: Sequence[pa.Table]) -> pa.Table:
    """Each result as often as it was derived."""
    rows = pa.concat_tables(tables)
    times = rows["times"].to_pylist()
    return rows.drop_columns("times").take(
        pa.array([at for at, number in enumerate(times) for _ in range(number)], pa.int64())
    )
