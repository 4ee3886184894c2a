"""Runs that search ends of matches in the place of following runs: with any orders, in any split, restarted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa

from acep_approx import Matcher, Query, QueryError, compile_query
from acep_approx.automaton.paths import Path
from acep_approx.engines.runs.load_shedder import FixedLoad, Results
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.worth import Allowance
from acep_approx.engines.search.end_search import EndSearch
from acep_approx.engines.search.searches import Searches
from acep_approx.events.source import open_source
from acep_approx.events.stream import EventBatch, read_events
from acep_approx.kernels.search.end_search import LATEST
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.kinds import BARE, OutputKind

QUERY = "PATTERN SEQ(A a, B b, A c) WHERE [g] AND b.x > a.x AND c.y = a.y WITHIN 60"
PATTERNS = (
    "SEQ(A a, B b, A c)",
    "SEQ(A a, (B b | A d), B c)",
    "SEQ(A a, B+ b[], A c)",
    "SEQ(A a, ~(B n), A b, B c)",
    "SEQ(A a, B? b, A c)",
)
CONDITIONS = (
    "b.x > a.x",
    "c.x = a.x",
    "c.x <= b.x AND a.x != c.x",
    "a.x + b.x > c.x",
    "b.x >= a.x AND c.x > b.x",
    "b.x = a.x AND c.x = b.x",
    "abs(b.x - a.x) < 1 AND c.x BETWEEN b.x - 1 AND b.x",
)
LONG = (
    "PATTERN SEQ(A a, B b, A c) WHERE b.x > a.x AND c.s = a.s WITHIN 90",
    "PATTERN SEQ(A a, B b, A c) WHERE [s] AND c.y < b.y AND b.y < a.y WITHIN 200 ERRORS 1",
    "PATTERN SEQ(A a, B b, C c) WHERE [s] AND c.x > b.x AND c.x > a.x WITHIN 40 events",
    "PATTERN SEQ(A a, B b, A c, C d) WHERE b.s = a.s AND d.s = b.s AND c.y <= b.y AND d.y < c.y WITHIN 100 ERRORS 1",
    "PATTERN SEQ(A a, B b, A c) WHERE abs(b.y - a.y) <= 1 AND c.y > b.y AND c.y < b.y + 2 WITHIN 90 ERRORS 1",
    "PATTERN SEQ(A a, B b, C c) WHERE [s] AND (b.x - a.x) * (b.x - a.x) + abs(c.y - b.y) < 3 WITHIN 40 events",
    "PATTERN SEQ(A a, B b, A c, C d) WHERE d.s = a.s AND c.s = b.s AND c.y > a.y + 1 WITHIN 60",
)


def stream(events: int, seed: int, *, rises_at: float = 1.0, times: int = 30) -> pa.Table:
    """Random events; from a share of them on so many times as many come in a tick."""
    dice, now, rows = Random(seed), 0.0, []
    for number in range(events):
        now += 1.0 if number < rises_at * events else 1 / times
        rows.append({"ts": int(now), "type": dice.choice("AABC"), "g": dice.choice("pq"),
                     "x": dice.randrange(9), "y": dice.randrange(20)})  # fmt: skip
    return pa.Table.from_pylist(rows)


def some_orders(known: Iterable[Path], random: Random, wanted: int = LATEST) -> Searches:
    """Searches in some order of each path."""
    some = tuple(known)
    orders = tuple(tuple(random.sample(range(len(path) - 1), len(path) - 1)) for path in some)
    return Searches(some, orders, wanted)


class SearchingLoad(FixedLoad):
    """Lets an engine search; default: without any limit."""

    def __init__(self, searches: Searches, **allowed: Any) -> None:
        super().__init__(Shedding(None, Allowance(**allowed)))
        self.searches = searches

    def search_for(self, results: Results) -> Searches | None:
        """In the same way for whatever there may be."""
        return self.searches


@dataclass
class Turning:
    """A run changes over many times; each time the other way gets ready for more than a window."""

    turns: Random
    window: int
    searches: bool = False
    gets_ready: bool = False
    ready_at: int = 0

    def note(self, ends: int, known: int, tests: int, unlisted: int) -> None:
        """Does not matter."""

    def look(self, tick: int) -> None:
        """Between two batches; ``tick``: of the last event."""
        if self.gets_ready and tick > self.ready_at:
            self.searches, self.gets_ready = not self.searches, False
        elif not self.gets_ready and self.turns.random() < 0.3:
            self.gets_ready, self.ready_at = True, tick + self.window


def listed(text: str) -> Query | None:
    """A query whose matches can be searched for; None where that cannot be."""
    try:
        query = compile_query(text, engine="runs")
    except QueryError:
        return None
    return query if query.plan.paths_are_all else None


def forward_listed(query: Query, table: pa.Table) -> pa.Table:
    """The matches of the exact run that follows runs."""
    matcher = Matcher(query.plan)
    matcher.may_search = False
    return pa.concat_tables([matcher.push(table), matcher.finish()])


def batches_of(query: Query, table: pa.Table, **roles: Any) -> tuple[Execution, list[EventBatch]]:
    """An execution of ``query`` that is bound, for its columns, and the events as it reads them."""
    matcher = Execution(query.plan, output=BARE, **roles)
    pipeline = matcher.bind(table.schema)
    return matcher, list(read_events(open_source(table), pipeline.roles, columns=pipeline.columns))


def backward(
    query: Query,
    table: pa.Table,
    searches: Searches,
    cuts: Random | None = None,
    output: OutputKind = BARE,
    **allowed: Any,
) -> pa.Table:
    """What a search finds; with ``cuts`` in any split, and restarted between batches."""
    matcher = Execution(query.plan, output=output, shedding=SearchingLoad(searches, **allowed))
    matcher.bind(table.schema)
    assert matcher.pipeline is not None
    assert isinstance(matcher.pipeline.engine, EndSearch)
    nothing, found = matcher.pipeline.nothing(), []
    for batch in batches_of(query, table)[1]:
        first = 0
        while first < len(batch):
            last = len(batch) if cuts is None else cuts.randint(first + 1, len(batch))
            found += matcher.run(batch.slice(first, last - first))
            first = last
            if cuts is not None and cuts.random() < 0.5:
                state, load = matcher.state_bytes(), SearchingLoad(searches, **allowed)
                matcher = Execution.from_state(query.plan, state, load)
    return pa.concat_tables([nothing, *found, matcher.finish()])


def made_tests(query: Query, table: pa.Table, searches: Searches) -> int:
    """How many tests a search makes."""
    matcher, tests = Execution(query.plan, output=BARE, shedding=SearchingLoad(searches)), 0
    matcher.bind(table.schema)
    assert matcher.pipeline is not None
    engine = matcher.pipeline.engine
    assert isinstance(engine, EndSearch)
    for batch in batches_of(query, table)[1]:
        list(matcher.run(batch))
        tests += engine.tests
    return tests


def turned(query: Query, table: pa.Table, searches: Searches, dice: Random, output: OutputKind = BARE) -> pa.Table:
    """What is found by a run that changes over between batches, many times, and is restarted in between."""
    load, turning, ways, found = SearchingLoad(searches), Turning(dice, 60), set(), []
    load.ways = turning
    matcher = Execution(query.plan, output=output, shedding=load)
    matcher.bind(table.schema)
    (batch,) = batches_of(query, table)[1]
    first = 0
    while first < len(batch):
        piece = batch.slice(first, dice.randint(1, 90))
        found += matcher.run(piece)
        turning.look(int(piece.ticks[-1]))
        ways.add((turning.searches, turning.gets_ready))
        first += len(piece)
        if dice.random() < 0.1:
            state, again = matcher.state_bytes(), SearchingLoad(searches)
            again.ways = turning
            matcher = Execution.from_state(query.plan, state, again)
    assert len(ways) == 4, "each way answers, and gets ready, at some time"
    return pa.concat_tables(found)


def forward(query: Query, table: pa.Table, **roles: Any) -> pa.Table:
    """The match points of the exact run that follows runs."""
    matcher, batches = batches_of(query, table, **roles)
    assert matcher.pipeline is not None
    found = [table for batch in batches for table in matcher.run(batch)]
    return pa.concat_tables([matcher.pipeline.nothing(), *found])
