"""How a history is used: which of its readings finds most on a part of the past that it was not learned from.

What cannot be told from counts alone is tried: whether the features of runs tell anything about later events or only
about those learned from, whether values come from means or from paths, and how much of what a run leads to a later run
reaches as well. Not all combinations are: one thing is varied at a time, from the best reading so far.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from acep_approx.events.stream import EventBatch
from acep_approx.matching.execution import Execution
from acep_approx.planning.planner import Plan
from acep_approx.training.policies import BY_MAPS, BY_RUNS, MEASURED
from acep_approx.training.policies import history as by_history
from acep_approx.training.pricing import PricePoint, Prices, learn_prices
from history.graph import Graph
from history.vectors import ValuesBy

OVERLAPS = (MEASURED, BY_RUNS, BY_MAPS, 0.95, 0.7, 0.0)
"""Shares of its match points that a run loses beside a later one, or how they follow from the past; 0: each run by
itself."""
SHARES = (0.02, 0.05, 0.1, 0.2, 0.5)
"""Budgets that a reading should do well at, on average."""
FIRST_REPLAYS, ALL_REPLAYS = 9, 16
"""Of a reading that is tried, and of the one that is kept."""
MARGIN = 0.005
"""Recall that another graph must find more: by chance one of several does a little better."""
MIDDLE = 0.1
"""A budget at whose price, as another reading has it, replays begin."""


@dataclass(frozen=True)
class Reading:
    """A way to use a history.

    Attributes
    ----------
    name : str
        Which of the graphs.
    values : {"means", "paths"}
        See ``history.values.fit_values``.
    overlap : float
        See ``policies.worth_of``.
    prices : Prices
        What replays with it found.
    """

    name: str
    values: ValuesBy
    overlap: float
    prices: Prices

    @property
    def recall(self) -> float:
        """Mean recall over ``SHARES``."""
        return float(np.mean([self.prices.recall(share) for share in SHARES]))


def choose(
    plan: Plan,
    graphs: Mapping[str, Graph],
    held_out: Sequence[EventBatch],
    bind: Callable[[Execution], None],
    on_progress: Callable[[float], None] | None = None,
) -> Reading:
    """The reading that finds most of the match points of ``held_out``, over several budgets.

    First all overlaps are tried with the first graph and values by paths, then means, then the other graphs, and in the
    end all overlaps again, if something else than the first graph and paths was better.

    Parameters
    ----------
    plan : Plan
    graphs : mapping of str to Graph
        The same past, with different vertices; the first wins a tie.
    held_out : sequence of EventBatch
        Events that follow those learned from.
    bind : callable
        Binds a matcher to their columns.
    on_progress : callable, optional
        Called with the share of the work that is done.

    Complexity: up to 9 runs over ``held_out`` for each reading, of which most do little; then 7 more.
    """
    trials = _Trials(plan, graphs, held_out, bind, on_progress or (lambda _: None))
    first = next(iter(graphs))
    for overlap in OVERLAPS:
        trials.try_one(first, "paths", overlap)
    trials.try_one(first, "means", trials.best.overlap)
    for name in graphs:
        trials.try_one(name, trials.best.values, trials.best.overlap)
    for overlap in OVERLAPS:
        trials.try_one(trials.best.name, trials.best.values, overlap)
    best = trials.best
    return replace(best, prices=trials.prices(best, known=best.prices.replays, most=ALL_REPLAYS))


class _Trials:
    """Readings that were tried, each once, and the best of them."""

    def __init__(
        self,
        plan: Plan,
        graphs: Mapping[str, Graph],
        held_out: Sequence[EventBatch],
        bind: Callable[[Execution], None],
        tell: Callable[[float], None],
    ) -> None:
        self.plan, self.graphs, self.held_out, self.bind, self.tell = plan, graphs, held_out, bind, tell
        self.best: Reading
        self._tried: list[tuple[str, str, float]] = []
        self._exact: tuple[PricePoint, ...] = ()  # the exact run is the same for all

    def try_one(self, name: str, values: ValuesBy, overlap: float) -> None:
        """Try a reading, if it was not yet; the best one so far wins a tie, or if another graph is hardly better."""
        if (name, values, overlap) in self._tried:
            return
        blank = Reading(name, values, overlap, Prices())
        reading = replace(blank, prices=self.prices(blank, known=self._exact, most=FIRST_REPLAYS))
        self._exact = reading.prices.replays[:1]
        least = 0.0 if not self._tried or name == self.best.name else MARGIN
        if not self._tried or reading.recall > self.best.recall + least:
            self.best = reading
        self._tried.append((name, values, overlap))
        self.tell(min(len(self._tried) / (2 * len(OVERLAPS) + len(self.graphs)), 1.0))

    def prices(self, reading: Reading, known: Sequence[PricePoint], most: int) -> Prices:
        """What replays with a reading find."""
        assert self.plan.registers is not None
        worth = by_history(self.plan.registers, read_by(self.graphs[reading.name], reading.values), reading.overlap)
        begin = self.best.prices.price(MIDDLE) if self._tried else None
        return learn_prices(self.plan, worth, self.held_out, self.bind, known=known, begin=begin, most=most)


def read_by(graph: Graph, values: ValuesBy) -> Graph:
    """The same counts, of which values are worked out in some way."""
    found = Graph(replace(graph.scheme, values=values), graph.gap, graph.most_bundles)
    found.counts = graph.counts
    return found
