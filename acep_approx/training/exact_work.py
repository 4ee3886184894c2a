"""Learns from the past how many run-steps an exact run takes, by numbers of events that are known without running it.

Source: ours; see ``engines.runs.expected_work`` for what is learned.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import NamedTuple, Self

import numpy as np

from acep_approx.arrays import Floats
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.runs.expected_work import WorkLaw, WorkMeter
from acep_approx.engines.runs.lineage import Hits
from acep_approx.engines.runs.load_shedder import FixedLoad
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.tables import RunTables
from acep_approx.engines.runs.worth import Allowance
from acep_approx.events.stream import EventBatch
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.kinds import BARE
from acep_approx.planning.planner import Plan
from acep_approx.ranges import check, finite
from acep_approx.training.past import Past

LISTED, POINTED = "equal,chain", "equal,pareto,chain"
"""How runs are merged without loss where all matches are listed, and where only match points are asked for."""
MOST = 1 << 17
"""Events, at the end of the past, that it is learned from."""
STRETCH = 1024
"""Events whose work is held against what was expected of them together."""
POWERS = tuple(np.arange(0.0, 1.6, 0.15).round(2).tolist())
USUAL, TRUST = 0.9, 2.0
"""The power where the past says nothing, and how much that counts for beside what it says."""
LEAST = 0.02
"""Share of the mean work of a stretch that is added to each: one without work would count without end."""


class ExactWork(NamedTuple):
    """What exact runs take where all matches are listed, and where only match points are asked for.

    There, runs that can do no more than another are dropped: ``ratio`` is the share of the run-steps that is left.
    """

    listed: WorkLaw
    pointed: WorkLaw
    ratio: float

    def law(self, *, drops: bool) -> WorkLaw:
        """That of an output that drops such runs, or does not."""
        return self.pointed if drops else self.listed

    def as_json(self) -> list[float]:
        """It as plain numbers."""
        return [*astuple(self.listed), *astuple(self.pointed), self.ratio]

    @classmethod
    def from_json(cls, saved: list[float]) -> Self:
        """What ``as_json`` gave.

        Raises
        ------
        ValueError, TypeError
            It cannot be that.
        """
        finite("work", *saved)
        factor, power, other_factor, other_power, ratio = saved
        check("work", good=min(factor, other_factor) >= 0 and 0 < ratio <= 1)
        check("work", good=0 <= min(power, other_power) <= max(power, other_power) <= max(POWERS))
        return cls(WorkLaw(factor, power), WorkLaw(other_factor, other_power), ratio)


def learn_exact_work(plan: Plan, past: Past) -> ExactWork:
    """Learn what exact runs take.

    Parameters
    ----------
    plan : Plan
    past : Past

    Complexity: two exact runs over the end of the past, without lineage.
    """
    first = max(len(past) - MOST, 0)
    batches = [one for batch in past.batches(first) for one in _stretches(batch)]
    listed, pointed = (_work(plan, past, batches, merge) for merge in (LISTED, POINTED))
    ratio = float(pointed.steps.sum() / max(listed.steps.sum(), 1.0))
    return ExactWork(listed.law(), pointed.law(), min(ratio, 1.0) or 1.0)


def _stretches(batch: EventBatch) -> list[EventBatch]:
    return [batch.slice(first, STRETCH) for first in range(0, len(batch), STRETCH)]


@dataclass(frozen=True)
class _Work:
    """Of stretches of the past: the run-steps of an exact run, and for each power what was expected of them."""

    steps: Floats
    expected: dict[float, Floats]

    def law(self) -> WorkLaw:
        """The law that fits best."""
        power = min(POWERS, key=self._misfit)
        return WorkLaw(self._factor(power), power)

    def _factor(self, power: float) -> float:
        return float(self.steps.sum() / max(self.expected[power].sum(), 1e-9))

    def _misfit(self, power: float) -> float:
        """By how much stretches are off, by logarithms; those with more work count for more."""
        expected = self.expected[power] * self._factor(power)
        some, least = (self.steps > 0) | (expected > 0), max(LEAST * float(self.steps.mean()), 1e-9)
        off, weight = np.log((self.steps[some] + least) / (expected[some] + least)), np.sqrt(expected[some])
        mean = float(weight.mean()) if len(weight) else 0.0
        total = float((weight * off**2).sum() / mean) if mean > 0 else 0.0
        return total + TRUST * (power - USUAL) ** 2


def _work(plan: Plan, past: Past, batches: list[EventBatch], merge: str) -> _Work:
    measuring = _Measuring()
    matcher = Execution(plan, output=BARE, merge=merge, shedding=measuring)
    past.bind(matcher)
    steps, expected, done = [], [], 0
    for batch in batches:
        for _ in matcher.run(batch):
            pass
        steps.append(matcher.progress.steps - done)
        done += steps[-1]
        expected.append(measuring.take())
    return _Work(np.array(steps, np.float64), dict(zip(POWERS, np.array(expected).T, strict=True)))


class _Measuring(FixedLoad):
    """Sheds nothing, and notes for each power what is expected of the events."""

    def __init__(self) -> None:
        super().__init__(Shedding(None, Allowance()))
        self.bind = self._bind
        self._meter: WorkMeter
        self._expected = np.zeros(len(POWERS))

    def _bind(self, tables: RunTables) -> None:
        self.arena.bind(tables)
        self._meter = WorkMeter(tables)

    def note_hits(self, events: RunEvents, hits: Hits) -> None:  # noqa: ARG002  (what they complete does not matter)
        """Note what these events were expected to take."""
        measured = self._meter.measure(events)
        self._expected += [measured.to(power).sum() for power in POWERS]

    def take(self) -> Floats:
        """What was noted since the last call; shape (powers,)."""
        found, self._expected = self._expected, np.zeros(len(POWERS))
        return found
