"""What a run has learned: the history that its learner leaves behind, and the same as plain data and as a table.

Source: ours; see ``learner``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from acep_approx.budget.ledger import Drift, Learning, Rescoring, Score, SelectedFeature, Tenth, mean_score
from acep_approx.events.time import to_datetime
from acep_approx.learning.learner import Learner
from acep_approx.learning.online import OnlineLearning
from acep_approx.training.pricing import LEAST_SHARE, PricePoint, Prices, first_price
from history.vectors import Feature, Place, Scheme
from rl.drift import Alarm

if TYPE_CHECKING:
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
    if learner.is_random:  # a share of the runs takes that share of the work
        worth, shares = learner.worth(), np.geomspace(1, LEAST_SHARE, PRICES).tolist()
        some = [PricePoint(first_price(worth, share), round(share * steps_per_event * events), 0) for share in shares]
        return Prices((PricePoint(0.0, round(steps_per_event * events), 0), *some))
    score, steps = learner.demand()
    if not len(score):
        return Prices()
    order = np.argsort(-score, kind="stable")
    at = np.unique((np.geomspace(1, len(order), PRICES) - 1).astype(np.int64))
    kept = np.cumsum(steps[order])
    some = [PricePoint(float(score[order[i]]), round(float(kept[i]) * events), 0) for i in at if score[order[i]] > 0]
    full = max(float(kept[-1]), steps_per_event)
    return Prices((PricePoint(0.0, round(full * events), 0), *sorted(some, key=lambda replay: replay.price)))


WHAT = {
    "tests": "whether tests pass",
    "cohort": "whether runs lead to a match point",
    "promise": "how many match points come",
}
"""What an alarm is about."""


def summary(online: OnlineLearning) -> Learning:
    """What a run has learned so far.

    Complexity: O(pieces + groups).
    """
    learner, cohort = online.learner, online.beside.cohort
    known = learner.updater.calibration
    tenths = zip(*(column.tolist() for column in known.reliability()), strict=True)
    curve = zip(*(column.tolist() for column in (*known.curve(), known.curve_weight)), strict=True)
    places = learner.scheme.places[1:]  # in the first nothing has begun
    chance = 1 / cohort.weight if cohort is not None else 1.0
    return Learning(
        tests=learner.sample_size.rows,
        revalued=online.rescored,
        alarms=[_drift(alarm, learner.scheme) for alarm in learner.alarms],
        tenths=[Tenth(foretold, reached, round(n * chance)) for foretold, reached, n in tenths if n > 0],
        scores=[Score(tick, brier, round(n * chance)) for tick, brier, n in curve],
        features=[_selected(place, feature) for place in places for feature in place.features],
        explored=online.beside.steps,
        given_up=cohort.given_up if cohort is not None else 0,
        explores=online.beside.explores,
        seconds=online.seconds,
    )


def _drift(alarm: Alarm, scheme: Scheme) -> Drift:
    place = scheme.places[alarm.place]
    return Drift(alarm.tick, place.state, place.errors, WHAT[alarm.what])


def _selected(place: Place, feature: Feature) -> SelectedFeature:
    ranges = [feature.words(bucket) for bucket in range(feature.buckets)]
    return SelectedFeature(place.state, place.errors, feature.name, ranges)


def learning_table(learned: Learning | None, *, is_time: bool) -> pa.Table:
    """One row for each time that runs were scored anew.

    Parameters
    ----------
    learned : Learning or None
        None: no rows.
    is_time : bool
        Whether ticks are microseconds since 1970.

    Returns
    -------
    pyarrow.Table
        ``at`` (time of the last event before: timestamp or int64); so far: ``events``, match ``points`` found,
        ``tests`` sampled, ``work`` and ``explored``, run-steps of all and of the cohort; since the row before:
        ``cases``, outcomes of the cohort, ``brier``, the score of what was foretold for them (null without), and
        ``alarms``, where drift was noticed.
    """
    rescored = learned.revalued if learned is not None else []
    ticks = np.array([one.tick for one in rescored], np.int64)
    columns: dict[str, pa.Array] = {"at": to_datetime(ticks) if is_time else pa.array(ticks)}
    for name in ("events", "points", "tests", "work", "explored"):
        columns[name] = pa.array([getattr(one, name) for one in rescored], pa.int64())
    new = list(news(learned)) if learned is not None else []
    columns["cases"] = pa.array([sum(score.cases for score in scores) for scores, _ in new], pa.int64())
    columns["brier"] = pa.array([mean_score(scores) for scores, _ in new], pa.float64())
    columns["alarms"] = pa.array([[alarm.where for alarm in alarms] for _, alarms in new], pa.list_(pa.string()))
    return pa.table(columns)


def news(learned: Learning) -> Iterator[tuple[list[Score], list[Drift]]]:
    """What was new each time that runs were scored anew: points of the curve, and alarms."""
    first = Rescoring(-(2**63), 0, 0, 0, 0, 0, 0)
    for before, now in pairwise([first, *learned.revalued]):
        scores = [score for score in learned.scores if before.tick < score.tick <= now.tick]
        yield scores, list(learned.alarms[before.alarms : now.alarms])
