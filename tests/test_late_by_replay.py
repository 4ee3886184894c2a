"""A late event by copy, put and replay gives what the sorted stream gives, and costs no more than it must."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import compile_query
from acep_approx.engines.batches import Grouped
from acep_approx.engines.cells import listing
from acep_approx.engines.cells.arclogs import ArcLogs
from acep_approx.engines.cells.cells import Cells
from tests.cases import cases
from tests.engine_driver import Driver
from tests.engines import one_list
from tests.late_key import Found, LateKey

WINDOW = 60
RUNS = {
    "skip till any": "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN 60",
    "a negation between": "PATTERN SEQ(A a, ~(B n), C c) WHERE c.x >= a.x WITHIN 60 ERRORS 1",
    "skip till next": "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { a[i].x >= a[i-1].x } WITHIN 60",
    "contiguity": "PATTERN SEQ(A a, B+ b[], C c) WHERE partition_contiguity { c.x >= a.x } WITHIN 60",
}
CELLS = {
    "points, a negation": "PATTERN SEQ(A a, ~(B n), C c, D d) WITHIN 60 ERRORS 1",
    "points, a repetition": "PATTERN SEQ(A a, B+ b[], C c) WITHIN 60",
    "matches, a negation": "PATTERN SEQ(A a, ~(B n), C c, D d) WITHIN 60 ERRORS 1",
    "matches, a repetition": "PATTERN SEQ(A a, B+ b[], C c) WITHIN 60",
}
NAME = 1 << 20


class OfRuns:
    """The runs of one key, driven event by event."""

    def __init__(self, query: str, events: pa.Table) -> None:
        self._driver = Driver(compile_query(query, engine="runs"), events)
        self._number = {row: number for number, row in enumerate(self._driver.grouped.row.tolist())}

    def run(self, event: int, place: int) -> Found:
        """What an event completes; one that no letter holds on takes a place, and nothing else."""
        if event not in self._number:
            return []
        some = self._driver.events([self._number[event]])
        some.place[:] = place
        return sorted(self._driver.found_in(some))

    def fork(self) -> Any:
        """A copy of the runs of the key."""
        return self._driver.engine.fork(0)

    def put(self, copy: Any) -> None:
        """Bring a copy back."""
        self._driver.engine.put(0, copy)


class OfCells:
    """One key of a cells engine; a place is a time with the name of the event: a late one has its own in between."""

    def __init__(self, query: str, events: pa.Table, engine: Cells | ArcLogs, key: int) -> None:
        self._engine, self._key, self._now = engine, key, 0
        self._ticks, types = events.column("ts").to_pylist(), events.column("type").to_pylist()
        letters = compile_query(query).automaton.letters
        self._masks = [sum(1 << j for j, one in enumerate(letters) if one.type == type_) for type_ in types]
        engine.set_classes([*range(1 << len(letters))])
        engine.reserve(key + 1)

    def run(self, event: int, _: int) -> Found:
        """What an event completes: the point, or matches by ids."""
        self._now = self._ticks[event]
        words = self._key, self._now, self._masks[event], event, event, self._now * NAME + event, event
        some = Grouped(*(np.array([word]) for word in words))
        if isinstance(self._engine, Cells):
            return self._engine.detect(some.slot, some.tick, some.cls).tolist()
        hits = self._engine.update(some, some.tick - WINDOW)
        found = listing.listed(self._engine, hits, some, one_list(self._engine.determinised.automaton), 1000)
        return [(one.begin.tolist(), (one.lists[0][1] % NAME).tolist(), one.labels.tolist()) for one in found]

    def fork(self) -> Any:
        """A copy of the key."""
        floor = [self._now - WINDOW] if isinstance(self._engine, ArcLogs) else []
        return self._engine.fork(self._key, *floor)

    def put(self, copy: Any) -> None:
        """Bring a copy back."""
        self._engine.put(self._key, copy)


def stream(dice: Random, events: int) -> pa.Table:
    """Random events of four types, of which no query asks for one."""
    ticks = np.cumsum([dice.randrange(1, 6) for _ in range(events)])
    rows = [{"ts": int(tick), "type": dice.choice("AABBCCD"), "x": dice.randrange(9)} for tick in ticks]
    return pa.Table.from_pylist(rows)


def keys_of(kind: str, events: pa.Table) -> list[LateKey]:
    """The keys of one engine, which go back each on its own."""
    if kind in RUNS:
        engines: list[OfRuns | OfCells] = [OfRuns(RUNS[kind], events)]
    else:
        plan = compile_query(CELLS[kind], engine="cells").plan
        engine = (Cells if kind.startswith("points") else ArcLogs)(plan.automaton, WINDOW)
        engines = [OfCells(CELLS[kind], events, engine, key) for key in range(2)]
    return [LateKey(one, events.column("ts").to_pylist().__getitem__, WINDOW) for one in engines]


@pytest.mark.parametrize("kind", [*RUNS, *CELLS])
def test_a_late_event_gives_what_the_sorted_stream_gives(kind: str) -> None:
    """However late events come, what each event completes is in the end what it completes in order."""
    dice = Random(kind)
    found = 0
    for _ in range(cases(50, 4)):
        events = stream(dice, 120)
        ticks = events.column("ts").to_pylist()
        arrival = sorted(range(len(ticks)), key=lambda i: ticks[i] + dice.choice((0, 0, 0, 0, 20, 150)))
        late, (in_order, *_) = keys_of(kind, events), keys_of(kind, events)
        for event in range(len(ticks)):
            assert in_order.push(event) == 0
        allowed = 0
        for event in arrival:
            (since,) = {one.push(event) for one in late}
            in_window = sum(ticks[event] <= ticks[e] <= ticks[event] + WINDOW for e in range(len(ticks)))
            allowed += 2 * min(since + 1, in_window) if since else 0
        for one in late:
            assert one.found == in_order.found
            assert 0 < one.replayed <= allowed
        found += sum(map(len, in_order.found.values()))
    assert found
