"""The history that a learner leaves behind: what was known before, what the cohort showed, what runs are worth now.

Source: ours; see ``learner``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from acep_approx.training.pricing import LEAST_SHARE, PricePoint, Prices, first_price

if TYPE_CHECKING:
    from acep_approx.engines.runs.worth import Worth
    from acep_approx.learning.learner import Learner
    from acep_approx.training.history_graph import HistoryGraph

PRICES = 24
"""Prices at which it is said what would be kept."""


def refresh(known: HistoryGraph, learner: Learner, events: int, points: int, steps_per_event: float) -> None:
    """Bring a history up to date with what a learner has found.

    Its graph goes on: see ``live_graph``. What was learned ranks runs, at prices of its own, if it ranked those of the
    stream; else the history does as before.

    Parameters
    ----------
    known : HistoryGraph
        The one that the learner began with, or an empty one.
    learner : Learner
    events, points : int
        Seen by the run, and found.
    steps_per_event : float
        Run-steps per event of the exact run, as far as is known.
    """
    assert learner.ranking is not None
    known.graph_ = learner.live.now()
    known.events_ += events
    known.points_ += points
    known.steps_per_event_ = steps_per_event
    if learner.known is None:
        known.learned_, known.learned_overlap_ = learner.ranking.values, learner.ranking.overlap
        known.prices_ = _prices(learner, events, steps_per_event)
    known.take_window(learner.scheme.window)


def _prices(learner: Learner, events: int, steps_per_event: float) -> Prices:
    """What would be kept at several prices, by the tests that the learner still has; how much is found is unknown.

    Of runs that were shed no tests are known, so what would be kept at the lowest price is less than the full work.
    """
    if learner.is_random:
        return _prices_at_random(learner.worth(), events, steps_per_event)
    score, steps = learner.demand()
    if not len(score):
        return Prices()
    order = np.argsort(-score, kind="stable")
    at = np.unique((np.geomspace(1, len(order), PRICES) - 1).astype(np.int64))
    kept = np.cumsum(steps[order])
    some = [PricePoint(float(score[order[i]]), round(float(kept[i]) * events), 0) for i in at if score[order[i]] > 0]
    full = max(float(kept[-1]), steps_per_event)
    return Prices((PricePoint(0.0, round(full * events), 0), *sorted(some, key=lambda replay: replay.price)))


def _prices_at_random(worth: Worth, events: int, steps_per_event: float) -> Prices:
    """Where runs are kept at random, a share of them takes that share of the work."""
    shares = np.geomspace(1, LEAST_SHARE, PRICES).tolist()
    some = [PricePoint(first_price(worth, share), round(share * steps_per_event * events), 0) for share in shares]
    return Prices((PricePoint(0.0, round(steps_per_event * events), 0), *some))
