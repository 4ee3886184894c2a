"""Discrete events: a virtual clock, cores that work, and threads that wait for something to be so."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush


@dataclass(frozen=True, slots=True)
class Work:
    """A core is needed for so long."""

    time: float


@dataclass(frozen=True, slots=True)
class Delay:
    """So long passes, without a core."""

    time: float


@dataclass(frozen=True, slots=True)
class Until:
    """Goes on when something holds; it is asked again whenever something named in ``topics`` has changed."""

    holds: Callable[[], bool]
    topics: tuple[Hashable, ...]


Life = Generator[Work | Delay | Until, None, None]
"""What a thread does, one need after the other."""


class Clock:
    """Virtual time, and cores: first come, first served. Deterministic: what is at one time is in the order of asking.

    Attributes
    ----------
    now : float
        The time.
    waits : int
        How often something did not hold at once.
    busy : float
        What all cores have worked.
    """

    def __init__(self, cores: int) -> None:
        self.now = 0.0
        self.waits = 0
        self.busy = 0.0
        self._agenda: list[tuple[float, int, Life, bool]] = []
        # time, a number, a thread, whether it gives its core back
        self._count = 0
        self._free = cores
        self._ready: deque[tuple[float, Life]] = deque()
        self._waiting: dict[int, tuple[Until, Life]] = {}
        self._by_topic: dict[Hashable, dict[int, None]] = {}

    def start(self, life: Life) -> None:
        """Start a thread now."""
        self._at(self.now, life)

    def run(self) -> None:
        """Until nothing is left to do."""
        while self._agenda:
            self.now, _, life, has_worked = heappop(self._agenda)
            if has_worked:
                self._free += 1
                if self._ready:
                    self._work(*self._ready.popleft())
            self._go_on(life)
        assert not self._waiting, "somebody waits for ever"

    def changed(self, topics: Iterable[Hashable]) -> None:
        """Ask those again who wait for these; they go on in the order in which they began to wait."""
        numbers = sorted({number for topic in topics for number in self._by_topic.get(topic, ())})
        for number in numbers:
            need, life = self._waiting[number]
            if need.holds():
                del self._waiting[number]
                for topic in need.topics:
                    del self._by_topic[topic][number]
                    if not self._by_topic[topic]:
                        del self._by_topic[topic]
                self._at(self.now, life)

    def _at(self, time: float, life: Life, *, has_worked: bool = False) -> None:
        self._count += 1
        heappush(self._agenda, (time, self._count, life, has_worked))

    def _go_on(self, life: Life) -> None:
        for need in life:
            if isinstance(need, Work):
                self._work(need.time, life)
                return
            if isinstance(need, Delay):
                self._at(self.now + need.time, life)
                return
            if not need.holds():
                self._wait(need, life)
                return

    def _wait(self, need: Until, life: Life) -> None:
        self.waits += 1
        self._count += 1
        self._waiting[self._count] = need, life
        for topic in need.topics:
            self._by_topic.setdefault(topic, {})[self._count] = None

    def _work(self, time: float, life: Life) -> None:
        if not self._free:
            self._ready.append((time, life))
            return
        self._free -= 1
        self.busy += time
        self._at(self.now + time, life, has_worked=True)
