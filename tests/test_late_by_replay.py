"""A late event by copy, put and replay gives what the sorted stream gives, and costs no more than it must."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import compile_query
from tests.cases import cases
from tests.engine_driver import Driver
from tests.late_key import Found, LateKey

WINDOW = 60
RUNS = {
    "skip till any": "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN 60",
    "a negation between": "PATTERN SEQ(A a, ~(B n), C c) WHERE c.x >= a.x WITHIN 60 ERRORS 1",
    "skip till next": "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { a[i].x >= a[i-1].x } WITHIN 60",
    "contiguity": "PATTERN SEQ(A a, B+ b[], C c) WHERE partition_contiguity { c.x >= a.x } WITHIN 60",
}


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


def stream(dice: Random, events: int) -> pa.Table:
    """Random events of four types, of which no query asks for one."""
    ticks = np.cumsum([dice.randrange(1, 6) for _ in range(events)])
    rows = [{"ts": int(tick), "type": dice.choice("AABBCCD"), "x": dice.randrange(9)} for tick in ticks]
    return pa.Table.from_pylist(rows)


@pytest.mark.parametrize("kind", RUNS)
def test_a_late_event_gives_what_the_sorted_stream_gives(kind: str) -> None:
    """However late events come, what each event completes is in the end what it completes in order."""
    dice = Random(kind)
    found = 0
    for _ in range(cases(50)):
        events = stream(dice, 120)
        ticks = events.column("ts").to_pylist()
        arrival = sorted(range(len(ticks)), key=lambda i: ticks[i] + dice.choice((0, 0, 0, 0, 20, 150)))
        late, in_order = (LateKey(OfRuns(RUNS[kind], events), ticks.__getitem__, WINDOW) for _ in range(2))
        for event in range(len(ticks)):
            assert in_order.push(event) == 0
        allowed = 0
        for event in arrival:
            since = late.push(event)
            in_window = sum(ticks[event] <= ticks[e] <= ticks[event] + WINDOW for e in range(len(ticks)))
            allowed += 2 * min(since + 1, in_window) if since else 0
        assert late.found == in_order.found
        assert 0 < late.replayed <= allowed
        found += sum(map(len, late.found.values()))
    assert found
