"""What a part of a stream shows a learner that is elsewhere: tests, as they were written down, in bytes.

A shard that matches one batch with a load budget writes down some tests of its runs and gives them away, so that one
learner learns for all shards (``refreshing``). The tests themselves travel, and not sums of them: they are few whatever
the rate of events, put together they are what one learner would have seen, without any rounding, drift is noticed by
their times, and it can be asked of them which features tell. Ours.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from acep_approx.engines.runs.worth import Allowance
from acep_approx.kernels.runs.scores import FACTOR
from acep_approx.learning.learner import Brought, Seen
from acep_approx.learning.rows import Rows, rows_of, rows_to_bytes
from acep_approx.learning.sampling import Reader
from acep_approx.shedding.shedder import Load, Shedder, _first_price
from acep_approx.training.policies import lots
from history.files import read_json, replace_file
from rl.records import Events

if TYPE_CHECKING:
    from acep_approx.engines.batches import RunEvents
    from acep_approx.engines.progress import Progress
    from acep_approx.engines.runs.lineage import Hits
    from acep_approx.engines.runs.tables import RunTables
    from acep_approx.events.stream import EventBatch
    from acep_approx.planning.planner import Plan

Floats = npt.NDArray[np.float64]
MOST_TESTS = 5_000
"""Tests that are written down in a batch, over all shards, about."""
UNKNOWN_STEPS = 100.0
"""Run-steps that an event is taken to bring where neither budget nor history say."""
FILE = "shares.json"


@dataclass(frozen=True)
class Shares:
    """Of which share of the events tests are written down.

    Attributes
    ----------
    share : float
        For any tests.
    passed : tuple of float
        For passed ones, by the place that they lead to.
    """

    share: float
    passed: tuple[float, ...]

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write ``shares.json``; who reads sees the one before or this one."""
        replace_file(Path(folder) / FILE, json.dumps(vars(self)).encode())

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self | None:
        """What ``save`` wrote; None where there is none, or it is not whole."""
        try:
            found = read_json(Path(folder) / FILE)
            made = cls(float(found["share"]), tuple(map(float, found["passed"])))
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            return None
        return made if all(0 < share <= 1 for share in (made.share, *made.passed)) else None


@dataclass(frozen=True)
class Observation:
    """What was seen of a part of a stream.

    Attributes
    ----------
    seen : Seen
        Tests, events that they may be of, and how many events there were.
    texts : list of str
        That rows point to.
    brought : Brought
        How many tests there were.
    points : int
        Match points found.
    """

    seen: Seen
    texts: Sequence[str]
    brought: Brought
    points: int

    def to_bytes(self) -> bytes:
        """As an Arrow stream: columns of the tests, the rest as JSON in the metadata. Complexity: O(rows)."""
        records, brought = self.seen.events, self.brought
        header = {
            "tick": records.tick, "letters": records.counts.tolist(), "relevant": records.total,
            "size": self.seen.size, "points": self.points, "tests": brought.tests, "passes": brought.passes.tolist(),
            "texts": list(self.texts),
        }  # fmt: skip
        return rows_to_bytes(self.seen.rows, header)

    @classmethod
    def of(cls, raw: bytes) -> Self:
        """What ``to_bytes`` wrote."""
        rows, header = rows_of(raw)
        records = Events(header["tick"], np.array(header["letters"], np.float64), header["relevant"])
        passes = np.array(header["passes"], np.float64)
        brought = Brought(len(rows), int(records.total), header["tests"], passes)
        return cls(Seen(rows, records, header["size"]), header["texts"], brought, header["points"])



class Observer(Shedder):
    """Sheds one batch of one shard, and writes down tests; the learner is elsewhere.

    Where there is no history yet, nor a policy, runs are kept by lot.

    Parameters
    ----------
    plan : Plan
    load : Load
        Without ``learns``.
    shares : Shares, optional
        Default: so that about 5000 tests are written down, if an event brings as many as the budget grants.
    shards : int, default 1
        How many share the tests that are written down in a batch, where ``shares`` are not given.
    """

    def __init__(self, plan: Plan, load: Load, shares: Shares | None = None, shards: int = 1) -> None:
        super().__init__(plan, load)
        self.shares = shares
        self.shards = shards
        self.reader: Reader
        self._read: list[Rows] = []
        self._letters = np.zeros(0)
        self._relevant = self._size = self._tick = 0

    def bind(self, tables: RunTables) -> None:
        """Get ready for the pools of a query."""
        super().bind(tables)
        self.reader = Reader(tables)
        self._letters = np.zeros(len(tables.automaton.letters))

    def _first_allowance(self, window: int) -> Allowance:
        """What may be done, and by lot where nothing is known."""
        if self.load.history is not None or self.load.policy is not None or self.load.budget.is_unlimited:
            return super()._first_allowance(window)
        assert self.plan.registers is not None
        self.worth = lots(self.plan.registers)
        return replace(super()._first_allowance(window), price=_first_price(self.worth, self._share()))

    @property
    def _writes(self) -> bool:
        return self.worth is not None and self.tables.window > 0  # else there is nothing to be learned

    def begin_batch(self, events: int) -> None:
        """Choose how closely to look, once it is known how much comes."""
        super().begin_batch(events)
        if not self._writes:
            return
        if self.shares is None or len(self.shares.passed) != len(self.tables.pools):
            brought = (self._rate or UNKNOWN_STEPS) * events * self.shards
            share = min(MOST_TESTS / 2 / max(brought, 1.0), 1.0)
            self.shares = Shares(share, (share,) * len(self.tables.pools))
        self.sample_tests(self.shares.share, np.array(self.shares.passed))

    def note_hits(self, events: RunEvents, hits: Hits) -> None:
        """Count the events that runs are tested with, too."""
        super().note_hits(events, hits)
        self._letters += self.reader.letters(self.tables.classes, events.cls)
        self._relevant += len(events.cls)

    def end_piece(self, batch: EventBatch, progress: Progress, seconds: float) -> None:
        """Read what was written down before texts are forgotten."""
        super().end_piece(batch, progress, seconds)
        self._size += len(batch)
        self._tick = int(batch.ticks[-1])
        if self.tables.scalars.columns.texts.has_many:
            self._take()

    def _take(self) -> None:
        if self._writes and self.shares is not None:
            passed = np.array(self.shares.passed)
            self._read.append(self.reader.read(self.take_sample(), self.shares.share, passed, self.keys_now()))

    def observed(self) -> bytes:
        """What was seen of the batch; empty where nothing is to be learned from it.

        Complexity: O(tests that were written down).
        """
        self._take()
        if not self._read or not self._size:
            return b""
        assert self.shares is not None
        rows, self._read = Rows.joined(self._read), []
        records = Events(self._tick, self._letters, float(self._relevant))
        passed = np.array(self.shares.passed)
        brought = Brought.by(rows, self.reader.target(rows), self._relevant, self.shares.share, passed)
        points = sum(map(len, self.points.row))
        return Observation(Seen(rows, records, self._size), self.reader.texts, brought, points).to_bytes()

    # --- state ----------------------------------------------------------------------------------------------

    def header(self) -> dict[str, Any]:
        """Beside what a shedder keeps, of which version the price is."""
        return {**super().header(), "version": self._version}

    def go_on(self, header: dict[str, Any]) -> None:
        """Go on; where the version is another one its price is right as it is."""
        super().go_on(header)
        if header.get("version", self._version) != self._version:
            self.floats[FACTOR] = 1.0

    @property
    def _version(self) -> int:
        return self.load.history.version_ if self.load.history is not None else 0
