"""One learner for all shards of a job: learns from their training samples, and makes new versions of the history.

It is the learner of a run on one machine (``learning.learner``); the samples are those of other processes
(``learning.online``). What runs are worth and the prices of budgets go into the new version; shards take it up by
themselves (``training.history_graph``).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.events.roles import Roles
from acep_approx.learning.cohort import Outcomes
from acep_approx.learning.judging import Verdict
from acep_approx.learning.learner import Learner, learner_of, learner_to_bytes
from acep_approx.learning.online import MOST_TESTS, refresh
from acep_approx.learning.training_sample import SampledTests, Shares, TrainingSample, samples_from_bytes
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.kinds import BARE
from acep_approx.planning.compiled import CompiledQuery
from acep_approx.ranges import check, finite, reading
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import Shedder
from acep_approx.training.history_graph import HistoryGraph
from rl.drift import Alarm
from rl.records import Events

EVERY = 4
"""A version is made after so many batches and windows in any case: a change may go unnoticed."""
MOST_SLOTS = 16
"""Parts of a batch, at most, that are learned from one after the other."""
MOST_TEXTS = 200_000
"""Texts that rows point to, before those that none points to any more are forgotten."""


@dataclass(frozen=True)
class MadeAt:
    """After which batch and tick the last version was made."""

    batch: int = -1
    tick: int = 0


class Refresher:
    """Learns from the tests of all shards, batch by batch.

    Parameters
    ----------
    query : CompiledQuery
    schema : pyarrow.Schema
        Of the events.
    roles : Roles
        Of its columns.
    load : Load
        That of the whole job: its budget, and the history that it began with.
    most_tests : int, default 5000
        Tests that are sampled in a batch, over all shards, about.
    knows_work : bool, default True
        Whether what the load says of the exact run is known, and no guess.

    Attributes
    ----------
    learner : Learner or None
        None where there is nothing to learn: all of the work may be done, or windows are moments.
    batch : int
        The last one that was processed; -1: none.
    events, points : int
        Seen and found so far.
    shares : Shares or None
        Of the next batch, for all shards; None before the first one.

    Notes
    -----
    Two jobs that take the same batches learn the same, whatever the order in which shards are named in a batch, but for
    drift detectors after a restart.
    """

    def __init__(
        self,
        query: CompiledQuery,
        schema: pa.Schema,
        roles: Roles,
        load: Load,
        *,
        most_tests: int = MOST_TESTS,
        knows_work: bool = True,
    ) -> None:
        self.query = query
        self.load, self._knows_work = load, knows_work
        self.most_tests = most_tests
        self.batch = -1
        self.events = self.points = 0
        self.shares: Shares | None = None
        self._made = MadeAt()
        self._counts: dict[str, Any] = {"versions": 0, "refused": 0, "broken": 0}
        self._begins_anew = False  # what was known no longer holds, and no version says so yet
        self._has_learned = False  # what runs are worth has changed, and no version says so yet
        shedder = Shedder(query.plan, replace(load, learns=True))
        Execution(query.plan, output=BARE, shedding=shedder).bind(schema, roles)
        self.learner = shedder.online.learner if shedder.online is not None else None

    @property
    def alarms(self) -> Sequence[Alarm]:
        """Of drift, so far."""
        return self.learner.alarms if self.learner is not None else ()

    @property
    def verdict(self) -> Verdict:
        """What learning has come to so far."""
        learner = self.learner
        if learner is None or learner.is_random:
            known = Verdict()
        else:
            by = "learned" if learner.known is None else "history"
            known = Verdict(by, learner.tally.gained, learner.tally.lost)
        return replace(known, **self._counts)

    def process(self, batch: int, samples: Sequence[bytes]) -> None:
        """Learn from the training samples of a batch.

        Parameters
        ----------
        batch : int
            Its number; one that is not above ``batch`` was processed before, and changes nothing.
        samples : sequence of bytes
            What ``Shedder.training_sample`` gave, in any order; empty ones are left out.

        Complexity: O(tests log tests).
        """
        if batch <= self.batch:
            return
        self.batch = batch
        learner, shards = self.learner, [samples_from_bytes(raw) for raw in sorted(samples) if raw]
        if learner is None or not shards:
            return
        # as many events as in this batch are taken to come with the next one
        ahead = max(int(sum(part.events.total for parts in shards for part in parts)), 1)
        events, points, since = self.events, self.points, learner.updater.statistics.tick
        for number, parts in enumerate(_slots(shards)):
            if number and learner.is_due():
                self._has_learned |= learner.learn()
            sample = _joined(learner, parts)
            size, found = (round(_course(shards, since, sample.events.tick, of)) for of in ("size", "points"))
            waiting = events + size - self.events
            held_until = learner.check_promise(waiting, points + found, sample.events.tick, len(shards))
            self.events += sample.size
            self.points += sample.points
            if held_until is not None:
                self._begins_anew = True
                self._counts["broken"] += 1
            learner.process(sample, sample.outcomes, held_until, notices=not self._begins_anew)
            learner.sample_size.adapt(sample, ahead, self.most_tests)
        if self._begins_anew:  # shards are told only now
            learner.takes_over(self.points)
        self.shares = learner.sample_size.shares
        if len(learner.reader.texts) > MOST_TEXTS:
            learner.forget_texts()

    def is_due(self) -> bool:
        """Whether another version is wanted: as for a learner, every few batches and windows, or the last is wrong."""
        learner = self.learner
        if learner is None or not learner.sample_size.rows:
            return False
        if self._begins_anew or self._has_learned:
            return True
        tick, window = learner.updater.statistics.tick, learner.scheme.window
        is_long_ago = self.batch >= self._made.batch + EVERY and tick >= self._made.tick + EVERY * window
        is_old = is_long_ago and learner.versions > 0 and not learner.is_random
        return learner.is_due() or (is_old and learner.has_news())

    def refreshed(self) -> HistoryGraph:
        """What is known by now, to be saved as a new version.

        Complexity: see ``rl.updater.Updater.values``; every now and then it is also asked which features tell.
        """
        assert self.learner is not None, "there is nothing to learn"
        if not (self._begins_anew or self._has_learned) or self.learner.is_due():
            self.learner.learn()
        self._begins_anew = self._has_learned = False
        self._counts["versions"] += 1
        self._counts["refused"] += self.learner.known is not None
        self._made = MadeAt(self.batch, self.learner.updater.statistics.tick)
        known = self.load.history
        made = copy(known) if known is not None else HistoryGraph(self.query)
        said = self.load.steps_per_event if self._knows_work else None
        full = said or float(self.learner.demand()[1].sum())
        refresh(made, self.learner, self.events, self.points, full)
        return made

    # --- state ----------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """All that it has learned, but for the drift detectors; to go on after a restart."""
        header = {
            "batch": self.batch, "events": self.events, "points": self.points, "made": vars(self._made),
            "begins anew": self._begins_anew, "has learned": self._has_learned,
            "counts": self._counts,
        }  # fmt: skip
        shares = [self.shares.share, self.shares.passed] if self.shares is not None else None
        return learner_to_bytes(self.learner, {**header, "shares": shares})

    def restore(self, raw: bytes) -> None:
        """Go on from what ``to_bytes`` gave, by one of the same query, columns and budget.

        Raises
        ------
        ValueError
            These are not such bytes.
        """
        header = learner_of(raw, self.learner)
        with reading(lambda: ValueError("these bytes are not those of a learner")):
            batch, events, points = header["batch"], header["events"], header["points"]
            made, shares, counts = MadeAt(**header["made"]), header["shares"], header["counts"]
            finite("counts", batch, events, points, made.batch, made.tick, *counts.values())
            check("counts", good=counts.keys() <= self._counts.keys())
            if shares is not None:
                shares = Shares(shares[0], tuple(shares[1]))
                finite("shares", shares.share, *shares.passed)
                check("shares", good=shares.are_shares)
        self.batch, self.events, self.points, self._made, self.shares = batch, events, points, made, shares
        self._begins_anew, self._has_learned = header["begins anew"], header["has learned"]
        self._counts |= counts


def _slots(shards: Sequence[Sequence[TrainingSample]]) -> list[list[TrainingSample]]:
    """The samples of all shards in order of time, in parts of about as many events.

    There are as many parts as samples of the shard that has most of them: where each has one they are learned from at
    once. Complexity: O(samples log samples).
    """
    samples = sorted((sample for samples in shards for sample in samples), key=lambda sample: sample.events.tick)
    most = min(max(map(len, shards)), MOST_SLOTS)
    size = np.array([sample.size for sample in samples])
    slot = ((np.cumsum(size) - size / 2) / size.sum() * most).astype(np.int64)
    return [[samples[at] for at in np.flatnonzero(slot == each).tolist()] for each in np.unique(slot).tolist()]


def _course(shards: Sequence[Sequence[TrainingSample]], since: int, tick: int, of: str) -> float:
    """How many events (``size``) or match points (``points``) of a batch came up to a tick, over all shards.

    Samples of one shard are longer than those of another: of one that has not ended yet a part is taken.
    """
    total = 0.0
    for samples in shards:
        ticks = [sample.events.tick for sample in samples]
        seen = np.cumsum([0] + [getattr(sample, of) for sample in samples])
        total += float(np.interp(tick, [min(since, ticks[0]), *ticks], seen))
    return total


def _joined(learner: Learner, parts: Sequence[TrainingSample]) -> TrainingSample:
    """The samples of several shards as one: tests in order of time."""
    tests = SampledTests.joined([learner.reader.adopt(part.tests, part.texts) for part in parts])
    by_key = [part.events.by_key for part in parts if part.events.by_key is not None]
    return TrainingSample(
        tests[np.argsort(tests.tick, kind="stable")],
        Events(
            tick=max(*(part.events.tick for part in parts), learner.updater.statistics.tick),
            counts=np.sum([part.events.counts for part in parts], axis=0),
            total=sum(part.events.total for part in parts),
            by_key=np.sum(by_key, axis=0) if by_key else None,
        ),
        size=sum(part.size for part in parts),
        population=sum(part.population for part in parts),
        passes=np.sum([part.passes for part in parts], axis=0),
        points=sum(part.points for part in parts),
        texts=learner.reader.texts,
        outcomes=Outcomes([trace for part in parts for trace in part.outcomes.traces], parts[0].outcomes.weight),
    )
