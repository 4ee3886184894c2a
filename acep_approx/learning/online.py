"""Learning while the stream runs: samples tests for a learner, matches a cohort beside the run, scores runs anew.

The shards of a job sample tests for the one learner of all (``shedding.refresher``). A shard that is shown a large
micro-batch also goes on learning within it, from where the learner of the job stood before, so that a change of the
stream need not wait for the end of it. What it learns by itself ends with the micro-batch. Ours.
"""

from __future__ import annotations

import os
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from acep_approx.budget.ledger import Drift, Learning, Piece, Rescoring, Score, SelectedFeature, Tenth, mean_score
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.runs.load_shedder import WHOLE_BATCH
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.worth import Worth
from acep_approx.events.stream import EventBatch
from acep_approx.events.time import to_datetime
from acep_approx.learning.cohort import Beside, Outcomes
from acep_approx.learning.learner import Learner, learner_of, learner_to_bytes
from acep_approx.learning.sampling import Sampler, SampleReader
from acep_approx.learning.training_sample import Shares, TrainingSample, samples_to_bytes
from acep_approx.ranges import COUNT, finite, number_in
from acep_approx.training.pricing import LEAST_PRICE, LEAST_SHARE, PricePoint, Prices, first_price
from history.places import place_of
from history.vectors import Scheme
from rl.drift import Alarm

if TYPE_CHECKING:
    from acep_approx.training.history_graph import HistoryGraph


class OnlineLearning:
    """Learns what runs are worth from the run that sheds them.

    Parameters
    ----------
    arena : Shedding
        Of the engine; bound.
    learner : Learner
    beside : Beside
        What is matched exactly beside the run.
    counts_runs : bool, default False
        Whether the budget is a number of runs: then places are taken until there are none.

    Attributes
    ----------
    rescored : list of Rescoring
        When what is learned has changed what runs are worth.
    seconds : float
        How long learning took.
    """

    def __init__(
        self,
        arena: Shedding,
        learner: Learner,
        beside: Beside,
        *,
        counts_runs: bool = False,
    ) -> None:
        self.arena = arena
        self.learner = learner
        self.beside = beside
        self.counts_runs = counts_runs
        self.rescored: list[Rescoring] = []
        self.seconds = 0.0
        self.sampler = Sampler(arena, learner.reader)
        self.sampler.sample(learner.sample_size.shares)
        self._latest: RunEvents | None = None
        self._waiting = self._found = 0  # events since it last did, and match points by then

    @property
    def most_events(self) -> int:
        """As many as the learner lets pass before it looks."""
        return self.learner.events_to_look

    def take_share(self, share: float, promised: tuple[float, bool] | None) -> None:
        """From here on the budget of the run is this share of the full work; see ``Learner.take_share``."""
        self.learner.take_share(share, promised, self._waiting)

    def count(self, events: RunEvents) -> None:
        """These events come, that runs are tested with."""
        self.sampler.count(events)
        self.beside.count(events)
        self._latest = events

    def end_piece(
        self,
        batch: EventBatch,
        rate: float,
        spare: float,
        found: int,
        *,
        is_relevant: bool,
        shown: int | None = None,
    ) -> None:
        """A piece of the stream is done: let the learner process what was sampled, if it is worth it.

        Parameters
        ----------
        batch : EventBatch
        rate : float
            Run-steps that are granted per event.
        spare : float
            See ``Shedding.spare``: as it was before the piece was paid for.
        found : int
            Match points so far.
        is_relevant : bool
            Whether any of its events has a letter.
        shown : int, optional
            How many events the engine was shown, to which ``rate`` is. Default: those of the batch.
        """
        shown = len(batch) if shown is None else shown
        self._waiting += shown
        if not is_relevant:
            return
        begun = time.perf_counter()
        if self._latest is not None:  # None: all events that it looks at came late so far
            self.beside.push(batch, self._latest, rate, shown)
        learner, tick = self.learner, int(batch.ticks[-1])
        held_until = learner.check_promise(self._waiting, found, tick)
        has_many = self.arena.tables.scalars.columns.texts.has_many
        if held_until is not None or has_many or self._waiting >= learner.most_events:
            self._learn(tick, rate, spare, found, held_until)
        if held_until is not None:
            worth = learner.worth()  # runs are kept at random from here on
            self._take_up(worth, first_price(worth, learner.share))
        self.seconds += time.perf_counter() - begun

    def _learn(self, tick: int, rate: float, spare: float, found: int, held_until: int | None) -> None:
        learner, arena = self.learner, self.arena
        sample, outcomes = self._take(tick, found)
        learner.process(sample, outcomes, held_until)
        learner.sample_size.adapt(sample, learner.relevant_ahead)
        if learner.is_due():
            rescored = learner.rescore(arena.usual_price, rate, spare)
            if rescored is not None:
                self._take_up(*rescored)
        self.sampler.sample(learner.sample_size.shares)

    def _take(self, tick: int, found: int) -> tuple[TrainingSample, Outcomes]:
        sample = self.sampler.take(self._waiting, tick, found - self._found)
        self._waiting, self._found = 0, found
        return sample, self.beside.outcomes()

    def _take_up(self, worth: Worth, price: float) -> None:
        arena = self.arena
        if self.counts_runs:
            price = LEAST_PRICE
        arena.allow(replace(arena.allowance, price=price / arena.followed, elasticity=1.0))
        arena.rescore(worth)
        self.learner.keep_ranking(arena.notes.version, arena.notes.worths)

    def read_texts(self) -> None:
        """Read what was sampled before many texts are forgotten."""
        if self.arena.tables.scalars.columns.texts.has_many:
            self.sampler.read()

    def note(self, piece: Piece) -> None:
        """Write down where the run stands, if runs have just been scored anew."""
        if len(self.learner.refreshes) > len(self.rescored):
            self.rescored.append(
                Rescoring(
                    tick=piece.tick,
                    events=piece.events,
                    points=piece.points,
                    tests=self.learner.sample_size.rows,
                    work=piece.work,
                    explored=self.beside.steps,
                    alarms=len(self.learner.alarms),
                )
            )

    def finish(self) -> None:
        """The stream has ended: what became of the rest of the cohort."""
        self.beside.finish()
        self.learner.add_outcomes(self.beside.outcomes())

    def full_work(self, events: int) -> float | None:
        """Run-steps per event of the exact run, after so many events: by the cohort, else by the learner if it can."""
        known = self.beside.full_work(events)
        if known is not None or self.learner.ranking is None:
            return known
        return float(self.learner.demand()[1].sum())

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """What must be kept to go on elsewhere, as JSON.

        Complexity: O(tests that are kept + history graph + open windows of the cohort).
        """
        parts = {
            "sampled": self.sampler.to_bytes(),  # before the learner: it may know new texts then
        }
        header = {
            "rescored": [asdict(one) for one in self.rescored],
            "waiting": self._waiting,
            "found": self._found,
            "price": self.arena.allowance.price,
            "elasticity": self.arena.allowance.elasticity,
            "version": self.arena.notes.version,
        }
        parts["learner"] = learner_to_bytes(self.learner, header)
        return {name: b64encode(part).decode() for name, part in parts.items()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave, by one that has just been made for the same query and columns.

        Call it before the arena is restored: runs are worth what they were.

        Raises
        ------
        ValueError
            It was another query, or other features.
        """
        parts = {name: b64decode(part) for name, part in saved.items()}
        header = learner_of(parts["learner"], self.learner)
        self.sampler.restore(parts["sampled"])
        self._waiting, self._found = (number_in(name, header[name], 0, COUNT) for name in ("waiting", "found"))
        self.rescored = [Rescoring(**one) for one in header["rescored"]]
        for one in self.rescored:
            finite("rescored", *vars(one).values())
        finite("price", header["price"], header["elasticity"])
        notes = self.arena.notes
        notes.version = number_in("version", header.get("version", 0), 0, COUNT)  # states of before have none
        notes.worths |= {number: self.learner.worth_by(ranking) for number, ranking in self.learner.before.items()}
        if self.learner.refreshes:
            self.arena.rescore(self.learner.worth())
            price, elasticity = header["price"], header["elasticity"]
            self.arena.allow(replace(self.arena.allowance, price=price, elasticity=elasticity))


# --- the shards of a job ------------------------------------------------------------------------------------------

MOST_TESTS = 5_000
"""Tests that are written down in a batch, over all shards, about."""
UNKNOWN_STEPS = 100.0
"""Run-steps that an event is taken to bring where neither budget nor history say."""


class Observer:
    """Takes the training sample of one batch of one shard; what runs are worth stays as it is.

    Parameters
    ----------
    shares : Shares, optional
        Default: so that about 5000 tests are written down, if an event brings as many as the budget grants.
    shards : int, default 1
        How many share the tests that are written down in a batch, where ``shares`` are not given.

    Attributes
    ----------
    most_events : int
        As many as a piece of the stream may have.
    has_rescored : bool
        Whether runs are worth something else by now than when the batch began.
    """

    most_events = WHOLE_BATCH
    has_rescored = False

    def __init__(self, shares: Shares | None = None, shards: int = 1) -> None:
        self.shares = shares
        self.shards = shards
        self._sampler: Sampler | None = None
        self._size = self._tick = 0
        self._beside: Beside
        self._latest: RunEvents

    def bind(
        self,
        arena: Shedding,
        beside: Beside,
        new_learner: Callable[[], Learner],  # noqa: ARG002
    ) -> Observer | RecordedLearning:
        """Sample the tests of this arena, where there is anything to be learned; gives what observes it.

        Parameters
        ----------
        arena : Shedding
        beside : Beside
            Its cohort.
        new_learner : callable
            Makes a learner of this run that has seen nothing yet; not needed here.
        """
        self._beside = beside
        if arena.worth is not None and arena.tables.window > 0:
            self._sampler = Sampler(arena, SampleReader(arena.tables))
        return self

    def begin_batch(self, events: int, rate: float, found: int, before: int) -> None:  # noqa: ARG002
        """Choose how large the sample is to be, now that it is known how many events come.

        Parameters
        ----------
        events : int
            That come.
        rate : float
            Run-steps that are granted to the run per event.
        found, before : int
            Match points of the shard up to here, and its events; not needed here.
        """
        if self._sampler is None:
            return
        pools = len(self._sampler.arena.tables.pools)
        if self.shares is None or len(self.shares.passed) != pools:
            brought = (rate or UNKNOWN_STEPS) * events * self.shards
            share = min(MOST_TESTS / 2 / max(brought, 1.0), 1.0)
            self.shares = Shares(share, (share,) * pools)
        self._sampler.sample(self.shares)

    def count(self, events: RunEvents) -> None:
        """These events come, that runs are tested with."""
        self._latest = events
        if self._sampler is not None:
            self._sampler.count(events)

    def end_piece(
        self,
        batch: EventBatch,
        rate: float,
        spare: float,  # noqa: ARG002
        found: int,  # noqa: ARG002
        *,
        is_relevant: bool,
    ) -> None:
        """Match the cohort's part of a piece, and read what was written down before texts are forgotten.

        Parameters
        ----------
        batch : EventBatch
        rate : float
            Run-steps that are granted to the run per event.
        spare : float
            See ``Shedding.spare``: as it was before the piece was paid for; not needed here.
        found : int
            Match points so far; likewise.
        is_relevant : bool
            Whether any of the events has a letter.
        """
        if is_relevant:
            self._beside.push(batch, self._latest, rate, len(batch))
        self._size += len(batch)
        self._tick = int(batch.ticks[-1])
        if self._sampler is not None and self._sampler.arena.tables.scalars.columns.texts.has_many:
            self._sampler.read()

    def training_sample(self, points: int) -> bytes:
        """The samples of the batch, in which so many match points were found; empty where nothing is to be learned.

        Complexity: O(tests that were written down).
        """
        if self._sampler is None or not self._size:
            return b""
        sample = self._sampler.take(self._size, self._tick, points)
        return samples_to_bytes([replace(sample, outcomes=self._beside.outcomes())])


# --- learning within a batch --------------------------------------------------------------------------------

LEARNER = "learner.bin"
"""File of the control folder: the learner of the whole job after the latest micro-batch."""
WITHIN = 4_096
"""Events of a shard in a micro-batch from which on it learns within it. Of fewer it learns little that the next version
would not tell it, and reading the learner takes some 30 ms."""
LEAST_PART = 0.25
"""A shard is held to this part at least of the match points per event that the whole job promises."""


def learner_file(control: str | os.PathLike[str]) -> bytes | None:
    """What the driver wrote of its learner; None where there is nothing yet."""
    try:
        return (place_of(control) / LEARNER).read_bytes()
    except OSError:
        return None


class ShardLearning(Observer):
    """Learns within a batch of one shard, and takes its training samples.

    Parameters
    ----------
    saved : bytes or None
        What ``Refresher.to_bytes`` gave after the batch before. None: nothing was learned yet. Where they cannot be
        read, or were written after the current batch, which is done again, the shard is an ``Observer`` and no more.
    batch : int or None
        Number of the batch, where it is known.
    shares, shards
        As for ``Observer``.
    """

    def __init__(self, saved: bytes | None, batch: int | None, shares: Shares | None = None, shards: int = 1) -> None:
        super().__init__(shares, shards)
        self._saved, self._batch = saved, batch

    def bind(self, arena: Shedding, beside: Beside, new_learner: Callable[[], Learner]) -> Observer | RecordedLearning:
        """Go on from what was learned, where it can be read."""
        super().bind(arena, beside, new_learner)
        if self._sampler is None:
            return self
        learner, job = new_learner(), (0, 0)
        if self._saved is not None:
            try:
                header = learner_of(self._saved, learner)
                batch, *seen = (number_in(name, header[name], -1, COUNT) for name in ("batch", "events", "points"))
            except (KeyError, ValueError):
                return self
            if self._batch is not None and batch >= self._batch:
                return self
            job = seen[0], seen[1]
        return RecordedLearning(arena, learner, beside, job, self.shards)


class RecordedLearning(OnlineLearning):
    """Online learning of a shard that keeps its training samples, to give them away.

    Parameters
    ----------
    arena, learner, beside
        As for ``OnlineLearning``.
    job : (int, int)
        Events and match points of the whole job before the batch, as far as the learner knows.
    shards : int
        How many the job has.
    """

    def __init__(self, arena: Shedding, learner: Learner, beside: Beside, job: tuple[int, int], shards: int) -> None:
        super().__init__(arena, learner, beside, counts_runs=arena.allowance.runs >= 0)
        self._job, self._shards = job, shards
        self._samples: list[TrainingSample] = []
        self._elsewhere = 0  # match points of other shards, and of this one before: what the learner knows of them
        self._now = (0, 0)  # tick and match points at the end of the last piece
        self._begun = len(learner.refreshes)

    @property
    def has_rescored(self) -> bool:
        """Whether runs are worth something else by now than when it was made."""
        return len(self.learner.refreshes) > self._begun

    def begin_batch(self, events: int, rate: float, found: int, before: int) -> None:  # noqa: ARG002
        """Hold what was learned to the match points of this shard: it may have fewer than the others.

        Parameters
        ----------
        events, rate
            As for ``Observer``; not needed here.
        found, before : int
            Match points of the shard up to here, and its events.
        """
        of_all, all_found = self._job
        if self._shards > 1:
            part = found * of_all / (before * all_found) if before and all_found else 0.0
            self.learner.promise.rate *= min(max(part, LEAST_PART), 1.0)
        self._elsewhere, self._found = all_found - found, all_found

    def end_piece(
        self,
        batch: EventBatch,
        rate: float,
        spare: float,
        found: int,
        *,
        is_relevant: bool,
        shown: int | None = None,
    ) -> None:
        """A piece of the stream is done: as for ``OnlineLearning``, with the match points of this shard."""
        self._now = int(batch.ticks[-1]), found + self._elsewhere
        super().end_piece(batch, rate, spare, found + self._elsewhere, is_relevant=is_relevant, shown=shown)

    def training_sample(self, points: int) -> bytes:  # noqa: ARG002
        """The samples of the batch, piece by piece; empty where nothing was seen. Complexity: O(tests written down)."""
        if self._waiting:
            self._take(*self._now)
        return samples_to_bytes(self._samples) if self._samples else b""

    def _take(self, tick: int, found: int) -> tuple[TrainingSample, Outcomes]:
        """What was seen since the last call, which is kept with no more texts than it points to."""
        sample, outcomes = super()._take(tick, found)
        few = SampleReader(self.arena.tables)
        tests = few.adopt(sample.tests, sample.texts)
        self._samples.append(replace(sample, tests=tests, texts=few.texts, outcomes=outcomes))
        return sample, outcomes


# --- what a run has learned ---------------------------------------------------------------------------------------

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
        known.promises_ = None  # they are about what was known before
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
        features=[
            SelectedFeature(place.state, place.errors, feature.name, [*map(feature.words, range(feature.buckets))])
            for place in places
            for feature in place.features
        ],
        explored=online.beside.steps,
        given_up=cohort.given_up if cohort is not None else 0,
        explores=online.beside.explores,
        seconds=online.seconds,
    )


def _drift(alarm: Alarm, scheme: Scheme) -> Drift:
    place = scheme.places[alarm.place]
    return Drift(alarm.tick, place.state, place.errors, WHAT[alarm.what])


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
