"""Samples tests for a learner that is elsewhere: a shard that matches one batch gives its training sample away.

So one learner learns for all shards (``refresher``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from acep_approx.engines.runs.load_shedder import WHOLE_BATCH
from acep_approx.learning.sample_size import Shares
from acep_approx.learning.sampler import Sampler
from acep_approx.learning.sampling import SampleReader
from acep_approx.learning.training_sample import samples_to_bytes

if TYPE_CHECKING:
    from acep_approx.engines.batches import RunEvents
    from acep_approx.engines.runs.shedding import Shedding
    from acep_approx.events.stream import EventBatch
    from acep_approx.learning.learner import Learner
    from acep_approx.shedding.beside import Beside

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

    def bind(self, arena: Shedding, beside: Beside, new_learner: Callable[[], Learner]) -> None:  # noqa: ARG002
        """Sample the tests of this arena, where there is anything to be learned.

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
            self._beside.push(batch, self._latest, rate)
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
