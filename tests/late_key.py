"""A key whose events come late: saved copies, and the events after them run once more.

A sketch of what disorder and revisions will stand on (Chandramouli et al., PVLDB 3(1) 2010, section 5.1).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Found = Sequence[Any]


class Engine(Protocol):
    """One key of an engine: events are named by their ids, places are given by who drives it."""

    def run(self, event: int, place: int) -> Found:
        """What an event completes."""

    def fork(self) -> Any:
        """A copy of the runs of the key."""

    def put(self, copy: Any) -> None:
        """Bring a copy back."""


@dataclass
class Saved:
    """A copy after so many events, when the next one got this place."""

    events: int
    place: int
    copy: Any


class LateKey:
    """Runs the events of one key in the order in which they come, as if they came in order of time.

    Parameters
    ----------
    engine : Engine
    tick_of : callable
        Id of an event to its time; no two are equal.
    window : int
        In ticks.
    """

    def __init__(self, engine: Engine, tick_of: Callable[[int], int], window: int) -> None:
        self._engine, self._tick_of, self._window = engine, tick_of, window
        self._events: list[int] = []
        self._place = 0
        self._saved = [Saved(0, 0, engine.fork())]
        self.found: dict[int, Found] = {}
        self.replayed = 0

    def push(self, event: int) -> int:
        """Take in an event; returns how many came before it that are later."""
        at = bisect_right(self._events, self._tick_of(event), key=self._tick_of)
        late = len(self._events) - at
        self._events.insert(at, event)
        if late:
            self._replay(at)
        else:
            self._run(event)
            self._save(len(self._events))
        return late

    def _run(self, event: int) -> None:
        self.found[event] = self._engine.run(event, self._place)
        self._place += 1

    def _save(self, events: int) -> None:
        self._saved.append(Saved(events, self._place, self._engine.fork()))
        kept = self._saved[:1]
        for one, following in zip(self._saved[1:], self._saved[2:], strict=False):  # the older, the fewer
            apart = len(self._events) - following.events
            in_window = self._tick_of(self._events[following.events - 1]) - self._tick_of(self._events[kept[-1].events])
            if following.events - kept[-1].events > apart or in_window > self._window:
                kept.append(one)
        self._saved = [*kept, *self._saved[1:][-1:]]

    def _replay(self, at: int) -> None:
        """From the newest copy before a change until no run is left that began before it."""
        head = Saved(len(self._events), self._place, self._engine.fork())
        before = [saved for saved in self._saved if saved.events <= at]
        closes = self._tick_of(self._events[at]) + self._window
        end = bisect_right(self._events, closes, key=self._tick_of)
        after = [Saved(s.events + 1, s.place, s.copy) for s in self._saved if s.events >= end]
        self._engine.put(before[-1].copy)
        self._place, self._saved = before[-1].place, before
        for number in range(before[-1].events, end):
            self._run(self._events[number])
            self.replayed += 1
            if number >= at:
                self._saved.append(Saved(number + 1, self._place, self._engine.fork()))
        self._saved += after
        if end < len(self._events):
            self._engine.put(head.copy)
            self._place = head.place
