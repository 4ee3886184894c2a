"""The books of learning: what a shedder's learner and cohort know, as plain data and as a table."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from acep_approx.budget.learning_ledger import Drift, Learning, Revaluation, Score, Tenth, Told, mean_score
from acep_approx.events.time import to_datetime
from acep_approx.learning.learner import Learner
from acep_approx.shedding.shedder import Shedder
from history.vectors import Scheme
from rl.drift import Alarm

WHAT = {"tests": "whether tests pass", "cohort": "whether runs lead to a match point"}
"""What an alarm is about."""


def lessons(done: Shedder) -> Learning | None:
    """What a run has learned so far; None where it does not learn.

    Complexity: O(pieces + groups).
    """
    learner, cohort = done.learner, done.cohort
    if learner is None:
        return None
    chance = 1 / cohort.weight if cohort is not None else 1.0
    return Learning(
        tests=learner.looking.rows,
        revalued=done.revalued,
        alarms=[_drift(alarm, learner.scheme) for alarm in learner.alarms],
        tenths=list(_tenths(learner, chance)),
        scores=list(_scores(learner, chance)),
        told=list(_told(learner.scheme)),
        explored=cohort.steps if cohort is not None else 0,
        given_up=cohort.given_up if cohort is not None else 0,
        explores=done.explores,
        seconds=done.learning_seconds,
    )


def _drift(alarm: Alarm, scheme: Scheme) -> Drift:
    place = scheme.places[alarm.place]
    return Drift(alarm.tick, place.state, place.errors, WHAT[alarm.what])


def _tenths(learner: Learner, chance: float) -> Iterator[Tenth]:
    columns = learner.updater.calibration.reliability()
    for foretold, reached, weight in zip(*(column.tolist() for column in columns), strict=True):
        if weight > 0:
            yield Tenth(foretold, reached, round(weight * chance))


def _scores(learner: Learner, chance: float) -> Iterator[Score]:
    known = learner.updater.calibration
    ticks, briers = known.curve()
    for tick, brier, weight in zip(ticks.tolist(), briers.tolist(), known.curve_weight.tolist(), strict=True):
        yield Score(tick, brier, round(weight * chance))


def _told(scheme: Scheme) -> Iterator[Told]:
    """Features of all places but the one where nothing has begun."""
    for place in scheme.places[1:]:
        for feature in place.features:
            ranges = [feature.words(bucket) for bucket in range(feature.buckets)]
            yield Told(place.state, place.errors, feature.name, ranges)


def lessons_table(learned: Learning | None, *, is_time: bool) -> pa.Table:
    """One row for each time that runs were revalued.

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
        ``tests`` looked at, ``work`` and ``explored``, run-steps of all and of the cohort; since the row before:
        ``cases``, fates of the cohort, ``brier``, the score of what was foretold for them (null without), and
        ``alarms``, where drift was noticed.
    """
    revalued = learned.revalued if learned is not None else []
    ticks = np.array([one.tick for one in revalued], np.int64)
    columns: dict[str, pa.Array] = {"at": to_datetime(ticks) if is_time else pa.array(ticks)}
    for name in ("events", "points", "tests", "work", "explored"):
        columns[name] = pa.array([getattr(one, name) for one in revalued], pa.int64())
    new = list(news(learned)) if learned is not None else []
    columns["cases"] = pa.array([sum(score.cases for score in scores) for scores, _ in new], pa.int64())
    columns["brier"] = pa.array([mean_score(scores) for scores, _ in new], pa.float64())
    columns["alarms"] = pa.array([[alarm.where for alarm in alarms] for _, alarms in new], pa.list_(pa.string()))
    return pa.table(columns)


def news(learned: Learning) -> Iterator[tuple[list[Score], list[Drift]]]:
    """What was new each time that runs were revalued: points of the curve, and alarms."""
    first = Revaluation(-(2**63), 0, 0, 0, 0, 0, 0)
    for before, now in pairwise([first, *learned.revalued]):
        scores = [score for score in learned.scores if before.tick < score.tick <= now.tick]
        yield scores, list(learned.alarms[before.alarms : now.alarms])
