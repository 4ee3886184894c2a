"""How a history is used: which of its readings finds most on a part of the past that it was not learned from.

Two things cannot be told from counts alone: whether the features of runs tell anything about later events or only about
those learned from, and how much of what a run leads to a later run reaches as well. Both are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from acep_approx.events.stream import EventBatch
from acep_approx.matching.execution import Execution
from acep_approx.planning.planner import Plan
from acep_approx.training.policies import MEASURED
from acep_approx.training.policies import history as by_history
from acep_approx.training.pricing import PricePoint, Prices, learn_prices
from history.graph import Graph

OVERLAPS = (MEASURED, 0.95, 0.7, 0.0)
"""Shares of its match points that a run loses beside a later one; 0: each run by itself."""
SHARES = (0.02, 0.05, 0.1, 0.2, 0.5)
"""Budgets that a reading should do well at, on average."""
FIRST_REPLAYS, ALL_REPLAYS = 9, 16


@dataclass(frozen=True)
class Reading:
    """A way to use a history.

    Attributes
    ----------
    name : str
        Which of the graphs.
    overlap : float
        See ``policies.worth_of``.
    prices : Prices
        What replays with it found.
    """

    name: str
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

    Complexity: for each graph and overlap up to 9 runs over ``held_out``, of which most do little; then 7 more.
    """
    assert plan.registers is not None
    readings: list[Reading] = []
    known: tuple[PricePoint, ...] = ()
    for name, graph in graphs.items():
        for overlap in OVERLAPS:
            worth = by_history(plan.registers, graph, overlap)
            prices = learn_prices(plan, worth, held_out, bind, known=known, most=FIRST_REPLAYS)
            known = prices.replays[:1]  # the exact one is the same for all
            readings.append(Reading(name, overlap, prices))
            if on_progress:
                on_progress(len(readings) / (len(graphs) * len(OVERLAPS) + 1))
    best = max(readings, key=lambda reading: reading.recall)
    worth = by_history(plan.registers, graphs[best.name], best.overlap)
    prices = learn_prices(plan, worth, held_out, bind, known=best.prices.replays, most=ALL_REPLAYS)
    return Reading(best.name, best.overlap, prices)
