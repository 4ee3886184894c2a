"""The history graph of a run that learns: it goes on from what was known, forgets by age, and takes in the cohort.

Source: that history is updated while the stream runs is Li and Ge's, PVLDB 2016, section 5; how is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from acep_approx.arrays import Floats
from acep_approx.learning.sampling import SampleReader
from acep_approx.learning.training_sample import SampledTests
from acep_approx.ranges import COUNT, TICK, check, finite, number_in
from history.checking import scheme_of
from history.counting import Counts, count, join
from history.graph import Graph
from history.regrouping import faded, regrouped, since
from history.tables import pack, unpack
from history.trace import Trace
from history.vectors import Scheme

MOST_WAITING = 16
"""Parts that are counted, and joined to the rest together: to join is what takes time."""
NEVER = -(1 << 62)


class LiveGraph:
    """A history graph while a stream runs.

    Parameters
    ----------
    graph : Graph
        What was known before; it is not changed.
    half_life : float
        Ticks after which what was counted counts half, where as much has come since: a history gets no thinner by
        age alone. Bundles stay as long as the ring has room for them.

    Attributes
    ----------
    half_life : float
    visits : int
        Of the cohort, that were taken in.
    """

    def __init__(self, graph: Graph, half_life: float) -> None:
        self.half_life = half_life
        self.visits = 0
        self._graph = graph
        self._tick: int | None = None  # of which the counts are
        self._latest: int | None = None
        self._waiting: list[Counts] = []
        self._since = NEVER  # bundles that lie before are let go

    @property
    def scheme(self) -> Scheme:
        """Its vertices."""
        return self._graph.scheme

    def add(self, trace: Trace) -> None:
        """Take in what became of some runs, in which nothing was shed; each visit counts once.

        Complexity: that of ``history.counting.count``; every 16th time that of ``history.counting.join``.
        """
        graph = self._graph
        self._waiting.append(since(count(graph.scheme, trace, graph.gap, graph.most_bundles), self._since))
        self.visits += len(trace.birth)
        if len(self._waiting) >= MOST_WAITING:
            self._settle()

    def pass_time(self, tick: int) -> None:
        """The stream has come to a tick."""
        if self._tick is None:
            self._tick = tick
        self._latest = tick

    def forget(self, tick: int, left: Floats) -> None:
        """The stream has changed: bundles from before a tick go, and ``left`` of the counts, for each place, stay."""
        self._settle()
        graph, self._since = self._graph, tick
        counts = faded(graph.counts, graph.scheme, left[graph.scheme.place_of_group])
        self._graph = self._of(since(counts, tick))

    def move(self, scheme: Scheme, shares: Sequence[Floats]) -> None:
        """Vertices are other ones from here on; see ``history.regrouping.regrouped``."""
        if scheme == self._graph.scheme:
            return
        self._settle()
        self._graph = self._of(regrouped(self._graph.counts, self._graph.scheme, scheme, shares), scheme)

    def now(self) -> Graph:
        """The graph as it is by now. Complexity: that of ``history.counting.join``."""
        graph = self._graph
        known, added = (sum(int(some.visits.sum()) for some in part) for part in ([graph.counts], self._waiting))
        age = self._latest - self._tick if self._tick is not None and self._latest is not None else 0
        # less is left with age, but not less than new counts make up for
        left = float(np.clip(1 - added / max(known, 1), 2.0 ** (-age / self.half_life), 1.0))
        counts = faded(graph.counts, graph.scheme, np.full(graph.scheme.groups, left))
        parts = self._waiting
        while len(parts) > 1:  # small ones first
            parts = [self._joined(parts[at : at + 2]) for at in range(0, len(parts), 2)]
        return self._of(self._joined([counts, *parts]))

    def save(self) -> dict[str, Any]:
        """All of it, for ``load``: counts are those of the graph, and of what waits to be joined."""
        counts = [pack(self._of(counts)) for counts in (self._graph.counts, *self._waiting)]
        return {
            "scheme": self.scheme.to_json(),
            "counts": {str(number): np.frombuffer(part, np.uint8) for number, part in enumerate(counts)},
            "half_life": self.half_life,
            "visits": self.visits,
            "since": self._since,
            "tick": self._tick,
            "latest": self._latest,
        }

    def load(self, saved: dict[str, Any]) -> None:
        """Take over what ``save`` gave, of the same query."""
        blank = Graph(scheme_of(saved["scheme"], self.scheme), self._graph.gap, self._graph.most_bundles)
        counts = saved["counts"]
        parts = [unpack(counts[str(number)].tobytes(), blank) for number in range(len(counts))]
        self._graph, self._waiting = parts[0], [part.counts for part in parts[1:]]
        finite("half_life", saved["half_life"])
        check("half_life", good=saved["half_life"] > 0)
        self.half_life = saved["half_life"]
        self.visits = number_in("visits", saved["visits"], 0, COUNT)
        self._since = number_in("since", saved["since"], NEVER, TICK)
        self._tick, self._latest = (
            None if saved[name] is None else number_in(name, saved[name], -TICK, TICK) for name in ("tick", "latest")
        )

    def _settle(self) -> None:
        self._graph, self._waiting, self._tick = self.now(), [], self._latest

    def _of(self, counts: Counts, scheme: Scheme | None = None) -> Graph:
        return Graph(scheme or self.scheme, self._graph.gap, self._graph.most_bundles, counts)

    def _joined(self, parts: Sequence[Counts]) -> Counts:
        """Counts of some parts; a match point that two of them know is one."""
        found, *others = parts
        for other in others:
            found = join(found, other, self._graph.gap, self._graph.most_bundles)
        if others and self._graph.gap < 0:
            found.bundles.points = np.ones_like(found.bundles.points)
        return found


# --- vertices that are cut into other groups ----------------------------------------------------------------

PSEUDO = 1.0
"""Tests at the share of the whole place that are added to those of each old group."""


def group_shares(reader: SampleReader, tests: SampledTests, before: Scheme, after: Scheme) -> list[Floats]:
    """For each place, which share of the runs of an old group falls into each of the new ones.

    Parameters
    ----------
    reader : SampleReader
    tests : SampledTests
        Tests that were kept: of what their runs and children remembered, both groups are known.
    before, after : Scheme

    Returns
    -------
    list of float64 arrays, shape (groups before, groups after)
        Rows add up to 1. An old group that no test was seen of has the shares of its place.

    Complexity: O(tests · features).
    """
    target = reader.target(tests)
    passed = np.flatnonzero(tests.passed > 0)
    sides = [
        (tests.source, tests.key, tests.values),
        (target[passed], tests.key[passed], tests.children[:, passed]),
    ]
    shares = []
    for number, (old, new) in enumerate(zip(before.places, after.places, strict=True)):
        if old == new:
            shares.append(np.eye(old.groups))
            continue
        seen = np.zeros((old.groups, new.groups))
        for at, key, values in sides:
            here = np.flatnonzero(at == number)
            np.add.at(seen, tuple(reader.group(key, values, place, here) for place in (old, new)), 1.0)
        everything = seen.sum(axis=0) + 1 / seen.shape[1]  # to the shares of all old groups together they are shrunk
        few = seen + PSEUDO * everything / everything.sum()
        shares.append(few / few.sum(axis=1, keepdims=True))
    return shares
