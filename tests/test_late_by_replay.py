"""A late event by fork, put and replay: what is known after it is what the sorted stream gives.

The newest copy of the key from before it is put back, and what came after it is run once more, until no run can have
begun at or before it; then the key stands where it stood. Copies lie closer together the newer they are.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest

from acep_approx.automaton.compile import compile_automaton
from acep_approx.engines.batches import Grouped
from acep_approx.engines.cells.arclogs import ArcLogs
from acep_approx.engines.cells.cells import Cells
from acep_approx.query.parser import parse

KEYS, EVENTS = 2, 150
NAME = 1 << 20


class Event(NamedTuple):
    """An event of a key: events of one tick are in the order of their ids."""

    tick: int
    id: int
    type: str


class ByCells:
    """Match points, or matches listed by ids; ``run`` takes the next event of a key, and says what it completes.

    Places are ticks with ids: a late event has one between its neighbours.
    """

    def __init__(self, text: str, window: int, *, lists: bool) -> None:
        automaton = compile_automaton(parse(f"{text} WITHIN {window}"))
        self.window, self.lists = window, lists
        self.letters, self.classes = automaton.letters, [*range(1 << len(automaton.letters))]
        self.one = ArcLogs(automaton, window) if lists else Cells(automaton, window)
        self.one.set_classes(self.classes)
        self.one.reserve(KEYS)

    def run(self, key: int, event: Event) -> Any:
        mask = sum(1 << j for j, letter in enumerate(self.letters) if letter.type == event.type)
        place = event.tick * NAME + event.id
        columns = [np.array([word]) for word in (key, event.tick, mask, 0, event.id, place)]
        if isinstance(self.one, Cells):
            return self.one.detect(*columns[:3]).tolist()
        hits = self.one.update(Grouped(*columns), columns[1] - self.window)
        found = []
        for listed in self.one.listed(hits, Grouped(*columns), 1000):
            parts = (np.split(column, listed.offset[1:-1]) for column in (listed.id % NAME, listed.label))
            found += [(ids.tolist(), labels.tolist()) for ids, labels in zip(*parts, strict=True)]
        return found

    def fork(self, key: int, tick: int) -> Any:
        return self.one.fork(key, tick - self.window) if isinstance(self.one, ArcLogs) else self.one.fork(key)

    def put(self, key: int, copy: Any) -> None:
        self.one.put(key, copy)


@dataclass
class Key:
    """The events of a key in order, what each completes, and copies of the key before some of them."""

    engine: Any
    key: int
    events: list[Event] = field(default_factory=list)
    found: dict[int, Any] = field(default_factory=dict)
    copies: dict[int, Any] = field(default_factory=dict)
    replayed: int = 0
    allowed: int = 0

    def push(self, event: Event) -> None:
        """Take in an event, late or not."""
        at, window = bisect_right(self.events, event), self.engine.window
        after = self.events[at:]
        self.events.insert(at, event)
        if not after:
            self._run(at)
            return
        head = self.engine.fork(self.key, self.events[-1].tick)
        end = bisect_right(self.events, (event.tick + window, NAME))
        begin = max(place for place in self.copies if place <= at)
        self.engine.put(self.key, self.copies[begin])
        old = sorted(place for place in self.copies if place > at)
        later = {place + 1: self.copies[place] for place in old if place >= end}
        self.copies = {place: copy for place, copy in self.copies.items() if place <= at}
        for place in range(begin, end):
            self._run(place, saves=place <= at + 1 or place - 1 in old)
        self.copies |= later
        if end < len(self.events):
            self.engine.put(self.key, head)
        self.replayed += end - begin - 1
        self.allowed += 2 * min(len(after), max(end - at, 2 * window))

    def _run(self, place: int, *, saves: bool = True) -> None:
        """Run an event, after a copy of what is before it."""
        event, before = self.events[place], self.events[max(place - 1, 0)]
        if saves:  # a later event may come in between, with the time of the one before
            self.copies[place] = self.engine.fork(self.key, before.tick)
        self.found[event.id] = self.engine.run(self.key, event)
        self._thin()

    def _thin(self) -> None:
        """Let go of copies where those beside them are near enough: as near as the end, or within a window."""
        places = sorted(self.copies)
        for before, this, after in zip(places, places[1:], places[2:], strict=False):
            near = min(len(self.events) - after, self.engine.window // 2)
            if this in self.copies and after - before <= near and before in self.copies:
                del self.copies[this]


KINDS = {
    "points": lambda text, window: ByCells(text, window, lists=False),
    "matches": lambda text, window: ByCells(text, window, lists=True),
}
QUERIES = {
    "sequence": "PATTERN SEQ(A a, B b, C c)",
    "negation": "PATTERN SEQ(A a, ~(C n), B b, D d)",
    "repetition": "PATTERN SEQ(A a, B+ b[], D d)",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", range(3))
def test_late_events_give_what_the_sorted_stream_gives(kind: str, query: str, seed: int) -> None:
    dice, window = Random(seed), 20
    stream = [Event(i // 2, i, dice.choice("ABCDE")) for i in range(EVENTS)]
    delayed = {e.id: dice.choice((1, 5, 20, 100)) if dice.randrange(5) == 0 else 0 for e in stream}
    live, straight = (KINDS[kind](QUERIES[query], window) for _ in range(2))
    keys = [Key(live, number) for number in range(KEYS)]
    for event in sorted(stream, key=lambda e: e.id + delayed[e.id]):
        for one in keys:
            one.push(event)
    wanted = {event.id: straight.run(0, event) for event in stream}
    assert any(wanted.values())
    for one in keys:
        assert {i: found for i, found in one.found.items() if found} == {i: f for i, f in wanted.items() if f}
        assert 0 < one.replayed <= one.allowed
