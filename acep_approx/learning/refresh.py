"""The history that a learner leaves behind: what was known before, what the cohort showed, what runs are worth now.

Source: ours; see ``learner``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from bitarray.util import zeros

from acep_approx.training.pricing import PricePoint, Prices
from history.bundles import chain
from history.graph import Graph

if TYPE_CHECKING:
    from acep_approx.learning.learner import Learner
    from acep_approx.training.history_graph import HistoryGraph
    from history.values import Values
    from rl.exploration import CohortCounts

PRICES = 24
"""Prices at which it is said what would be kept."""


def refresh(known: HistoryGraph, learner: Learner, events: int, points: int, steps_per_event: float) -> None:
    """Bring a history up to date with what a learner has found.

    Where drift made the learner forget what was known before, the history forgets it as well. Counts of the cohort are
    estimates of all runs (see ``rl.CohortCounts``), rounded; edges are those of before.

    Parameters
    ----------
    known : HistoryGraph
        One of the same query; it may be empty.
    learner : Learner
        One that has valued runs.
    events, points : int
        Seen by the run, and found.
    steps_per_event : float
        Run-steps per event of the exact run, as far as is known.
    """
    assert learner.values is not None
    is_same = known.is_fitted and learner.known is not None
    before = known.graph_ if is_same else Graph(learner.scheme, known.integer_gap(learner.scheme.window))
    known.graph_ = _joined(before, learner.cohort, learner.values)
    known.learned_ = learner.values
    known.learned_overlap_ = learner.overlap
    known.events_ = events + (known.events_ if is_same else 0)
    known.points_ = points + (known.points_ if is_same else 0)
    known.steps_per_event_ = steps_per_event
    known.prices_ = _prices(learner, events, steps_per_event)
    known.take_window(learner.scheme.window)


def _joined(before: Graph, cohort: CohortCounts, values: Values) -> Graph:
    """A graph with the counts of before and those of the cohort."""
    graph = Graph(before.scheme, before.gap, before.most_bundles)
    old = before.counts
    graph.counts = counts = replace(old)
    counts.visits = old.visits + np.rint(cohort.visits).astype(np.int64)
    counts.reached = old.reached + np.rint(cohort.points).astype(np.int64)
    counts.led = old.led + np.rint(cohort.led).astype(np.int64)
    counts.cost = old.cost + np.rint(cohort.visits * values.cost)
    split = len(old.bundles)
    columns = ("first", "last", "slot", "row", "points")
    both = type(old.bundles)(
        *(np.concatenate([getattr(old.bundles, name), getattr(cohort.bundles, name)]) for name in columns)
    )
    counts.bundles, place = chain(both, before.gap, before.most_bundles)
    counts.maps = {}
    for maps, places in ((old.maps, place[:split]), (cohort.maps(), place[split:])):
        for vertex, bits in maps.items():
            found = counts.maps.setdefault(vertex, zeros(len(counts.bundles), endian="big"))
            for bit in bits.search(1):
                if places[bit] >= 0:
                    found[int(places[bit])] = 1
    ends = place[:split][old.ends_bundle]
    counts.ends_vertex, counts.ends_bundle, counts.ends = (
        column[ends >= 0] for column in (old.ends_vertex, ends, old.ends)
    )
    return graph


def _prices(learner: Learner, events: int, steps_per_event: float) -> Prices:
    """What would be kept at several prices, by the tests that the learner still has; how much is found is unknown.

    Of runs that were shed no tests are known, so what would be kept at the lowest price is less than the full work.
    """
    score, steps = learner.demand()
    if not len(score):
        return Prices()
    order = np.argsort(-score, kind="stable")
    at = np.unique((np.geomspace(1, len(order), PRICES) - 1).astype(np.int64))
    kept = np.cumsum(steps[order])
    some = [PricePoint(float(score[order[i]]), round(float(kept[i]) * events), 0) for i in at if score[order[i]] > 0]
    full = max(float(kept[-1]), steps_per_event)
    return Prices((PricePoint(0.0, round(full * events), 0), *sorted(some, key=lambda replay: replay.price)))
