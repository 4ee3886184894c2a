"""What a run has learned: what its learner and its cohort know, as plain data and as a table."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from acep_approx.budget.learning_ledger import Drift, Learning, Rescoring, Score, SelectedFeature, Tenth, mean_score
from acep_approx.events.time import to_datetime
from acep_approx.learning.learner import Learner
from acep_approx.shedding.online import OnlineLearning
from history.vectors import Scheme
from rl.drift import Alarm

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
    chance = 1 / cohort.weight if cohort is not None else 1.0
    return Learning(
        tests=learner.sample_size.rows,
        revalued=online.rescored,
        alarms=[_drift(alarm, learner.scheme) for alarm in learner.alarms],
        tenths=list(_tenths(learner, chance)),
        scores=list(_scores(learner, chance)),
        features=list(_selected(learner.scheme)),
        explored=online.beside.steps,
        given_up=cohort.given_up if cohort is not None else 0,
        explores=online.beside.explores,
        seconds=online.seconds,
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


def _selected(scheme: Scheme) -> Iterator[SelectedFeature]:
    """Features of all places but the one where nothing has begun."""
    for place in scheme.places[1:]:
        for feature in place.features:
            ranges = [feature.words(bucket) for bucket in range(feature.buckets)]
            yield SelectedFeature(place.state, place.errors, feature.name, ranges)


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
