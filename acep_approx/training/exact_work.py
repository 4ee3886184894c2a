"""Learns from the past how many run-steps an exact run takes, by numbers of events that are known without running it.

Source: ours; see ``engines.runs.expected_work`` for what is learned.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, replace
from typing import Any, NamedTuple, Self

import numpy as np

from acep_approx.arrays import Floats, Ints
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.runs.expected_work import WorkLaw, WorkMeter
from acep_approx.engines.runs.lineage import Hits
from acep_approx.engines.runs.load_shedder import FixedLoad
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.tables import RunTables
from acep_approx.engines.runs.worth import Allowance
from acep_approx.events.stream import EventBatch
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.kinds import BARE
from acep_approx.planning.planner import Plan
from acep_approx.ranges import check, finite
from acep_approx.training.past import Past
from acep_approx.training.pricing import LISTED, POINTED

LEAST_EVENTS, MOST_EVENTS, MOST_WORK = 1 << 17, 1 << 20, 1 << 24
"""Events, at the end of the past, that it is learned from: as many as take so many run-steps, but at least, and at
most, as many as these: where an event takes few, few say little."""
STRETCH = 1024
"""Events whose work is held against what was expected of them together."""
POWERS = tuple(np.arange(0.1, 1.4, 0.15).round(2).tolist())
KEPT, DROPPED, TRUST = 1.0, 0.55, 2.0
"""The power where the past says nothing: of places where runs are kept, and of those where some that can do no more
than another are dropped; how much that counts for beside what the past says."""
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

    def with_births(self, times: float) -> Self:
        """See ``WorkLaw.with_births``."""
        return self._replace(listed=self.listed.with_births(times), pointed=self.pointed.with_births(times))

    def as_json(self) -> dict[str, Any]:
        """It as plain data."""
        return {"listed": astuple(self.listed), "pointed": astuple(self.pointed), "ratio": self.ratio}

    @classmethod
    def from_json(cls, saved: dict[str, Any], places: int) -> Self:
        """What ``as_json`` gave, of a query with so many places.

        Raises
        ------
        ValueError, TypeError, LookupError
            It cannot be that.
        """
        ratio = saved["ratio"]
        finite("work", ratio)
        check("work", good=0 < ratio <= 1)
        return cls(_law_of(saved["listed"], places), _law_of(saved["pointed"], places), ratio)


def _law_of(saved: list[list[float]], places: int) -> WorkLaw:
    factors, powers = saved
    finite("work", *factors, *powers)
    check("work", good=len(factors) == len(powers) == places and min(factors) >= 0)
    check("work", good=0 < min(powers) <= max(powers) <= max(POWERS))
    return WorkLaw(tuple(factors), tuple(powers))


def learn_exact_work(plan: Plan, past: Past, usual: float) -> ExactWork:
    """Learn what exact runs take.

    Parameters
    ----------
    plan : Plan
    past : Past
    usual : float
        Run-steps per event of it, about.

    Complexity: two exact runs over the end of the past, without lineage.
    """
    most = int(min(max(MOST_WORK / max(usual, 1.0), LEAST_EVENTS), MOST_EVENTS))
    first = max(len(past) - most, past.cut()[0])  # where only the end of a past is at hand, it begins there
    batches = [one for batch in past.batches(first) for one in _stretches(batch)]
    (listed, all_steps), (pointed, steps) = (_law(plan, past, batches, merge) for merge in (LISTED, POINTED))
    return ExactWork(listed, pointed, min(steps / max(all_steps, 1.0), 1.0) or 1.0)


def _stretches(batch: EventBatch) -> list[EventBatch]:
    return [batch.slice(first, STRETCH) for first in range(0, len(batch), STRETCH)]


def _law(plan: Plan, past: Past, batches: list[EventBatch], merge: str) -> tuple[WorkLaw, float]:
    """The law of an exact run, and the run-steps that it took."""
    measuring = _Measuring()
    matcher = Execution(plan, output=BARE, merge=merge, shedding=measuring)
    past.bind(matcher)
    for batch in batches:
        _run(matcher, [batch])
        assert matcher.pipeline is not None
        engine = matcher.pipeline.engine
        assert isinstance(engine, Runs), "nobody else sheds"
        measuring.end_stretch(engine.tested)
    found = [measuring.law_of(place) for place in range(measuring.places)]
    law = WorkLaw(*(tuple(numbers) for numbers in zip(*found, strict=True)))
    steps = float(matcher.progress.steps)
    if not _has_loop(plan) or not steps:
        return law, steps
    whole = Execution(plan, output=BARE, merge=merge)
    past.bind(whole)
    _run(whole, past.batches(batches[0].first_row - past.skipped))
    times = whole.progress.steps / steps
    return replace(law, factors=tuple(times * factor for factor in law.factors)), times * steps


def _run(matcher: Execution, batches: Iterable[EventBatch]) -> None:
    for batch in batches:
        for _ in matcher.run(batch):
            pass


def _has_loop(plan: Plan) -> bool:
    """Whether runs come back to their place: then these stand in no order, and run-steps depend on how events come.

    Runs that are too old are tested until they are swept out, which is when another key comes, or once in a while.
    """
    assert plan.registers is not None
    return any(step.source == step.target for step in plan.registers.steps)


class _Measuring(FixedLoad):
    """Sheds nothing; notes for each stretch the run-steps at each place, and what each power expects there."""

    def __init__(self) -> None:
        super().__init__(Shedding(None, Allowance()))
        self.bind = self._bind
        self._meter: WorkMeter
        self._tables: RunTables
        self._units: list[Floats] = []
        self._steps: list[Ints] = []
        self._now: Floats = np.zeros(0)

    def _bind(self, tables: RunTables) -> None:
        self.arena.bind(tables)
        self._tables, self._meter = tables, WorkMeter(tables)
        self._now = np.zeros((len(tables.pools), len(POWERS)))

    @property
    def places(self) -> int:
        """How many places there are."""
        return len(self._tables.pools)

    def note_hits(self, events: RunEvents, hits: Hits) -> None:  # noqa: ARG002  (what they complete does not matter)
        """Note what is expected of these events."""
        measured = self._meter.measure(events)
        for place in range(1, self.places):
            self._now[place] += [measured.units(place, power).sum() for power in POWERS]

    def end_stretch(self, tested: Ints) -> None:
        """A stretch is over; ``tested``: run-steps at each place so far."""
        self._units.append(self._now)
        self._steps.append(tested)
        self._now = np.zeros_like(self._now)

    def law_of(self, place: int) -> tuple[float, float]:
        """Factor and power that fit best to a place."""
        steps = np.diff([0, *(float(tested[place]) for tested in self._steps)])
        usual = DROPPED if self._tables.drops and self._tables.pools[place].front else KEPT
        if not steps.any():
            return 0.0, usual
        units = np.array([stretch[place] for stretch in self._units]).T
        number = min(range(len(POWERS)), key=lambda n: _misfit(steps, units[n]) + TRUST * (POWERS[n] - usual) ** 2)
        return _factor(steps, units[number]), POWERS[number]


def _factor(steps: Floats, units: Floats) -> float:
    return float(steps.sum() / max(units.sum(), 1e-9))


def _misfit(steps: Floats, units: Floats) -> float:
    """By how much stretches are off, by logarithms; those with more work count for more."""
    expected = units * _factor(steps, units)
    some, least = (steps > 0) | (expected > 0), max(LEAST * float(steps.mean()), 1e-9)
    off, weight = np.log((steps[some] + least) / (expected[some] + least)), np.sqrt(expected[some])
    mean = float(weight.mean()) if len(weight) else 0.0
    return float((weight * off**2).sum() / mean) if mean > 0 else 0.0
