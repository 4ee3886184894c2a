"""Learns from the past how many run-steps an exact run takes, by numbers of events that are known without running it.

Source: ours; see ``engines.runs.expected_work`` for what is learned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, replace
from typing import Any, NamedTuple, Self

import numpy as np

from acep_approx.arrays import Floats, Ints
from acep_approx.automaton.automaton import START
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.runs.expected_work import WorkLaw, WorkMeter
from acep_approx.engines.runs.first_pools import FirstPools
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
MOST_PLAIN = 1.0
"""The highest power where no run comes back to its place: no more runs can be made than values can be put together."""
FED_POWERS, FED = tuple(np.arange(0.25, 3.1, 0.25).tolist()), 1.0
"""Powers of the number of runs of one bound event, and the usual one; no more than events that are bound, for the same
reason."""
LOOKS = 1 << 14
"""After so many events of the past at each of which it was looked how many such runs there are, at every second one
of the next ones, and so on."""
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
    for numbers in saved:
        finite("work", *numbers)
        check("work", good=len(numbers) == places and min(numbers) >= 0)
    law = WorkLaw(*(tuple(numbers) for numbers in saved))  # histories of before know less
    check("work", good=0 < min(law.powers) <= max(law.powers) <= max(POWERS))
    check("work", good=max(law.fed_powers, default=0.0) <= max(FED_POWERS))
    return law


def learn_exact_work(plan: Plan, past: Past, usual: float) -> ExactWork:
    """Learn what exact runs take.

    Parameters
    ----------
    plan : Plan
    past : Past
    usual : float
        Run-steps per event of it, about.

    Complexity: four exact runs over the end of the past, without lineage.
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
    assert plan.registers is not None
    measuring = _Measuring()
    matcher = Execution(plan, output=BARE, merge=merge, shedding=measuring)
    past.bind(matcher)
    for batch in batches:
        _run(matcher, [batch])
        measuring.end_stretch(_engine(matcher).tested)
    law, steps = measuring.law(), float(matcher.progress.steps)
    if not steps:
        return law, steps
    first = batches[0].first_row - past.skipped
    if _has_loop(plan.registers):  # what a run does hangs on how events come: none tells what another one does
        exact = float(_tested(plan, past, first, merge, ranks=False).sum())
        return law.times(exact / steps), exact
    within, exact = _tested(plan, past, first, merge, ranks=True), measuring.tested
    return replace(law, within=tuple(np.where(exact > 0, within / np.maximum(exact, 1), 1.0).tolist())), steps


def _tested(plan: Plan, past: Past, first: int, merge: str, *, ranks: bool) -> Ints:
    """The run-steps at each place of a run over whole batches of the past, from one event on.

    ``ranks``: it finds runs that can do no more than another as one within a budget does.
    """
    shedding = FixedLoad(Shedding(None, Allowance(), ranks_dominated=ranks))
    matcher = Execution(plan, output=BARE, merge=merge, shedding=shedding)
    past.bind(matcher)
    _run(matcher, past.batches(first))
    return _engine(matcher).tested


def _engine(matcher: Execution) -> Runs:
    assert matcher.pipeline is not None
    engine = matcher.pipeline.engine
    assert isinstance(engine, Runs), "nobody else sheds"
    return engine


def _run(matcher: Execution, batches: Iterable[EventBatch]) -> None:
    for batch in batches:
        for _ in matcher.run(batch):
            pass


def _has_loop(automaton: RegisterAutomaton) -> bool:
    """Whether runs come back to their place: then these stand in no order, and run-steps depend on how events come.

    Runs that are too old are tested until they are swept out, which is when another key comes, or once in a while.
    """
    return any(step.source == step.target for step in automaton.steps)


class _Measuring(FixedLoad):
    """Sheds nothing; notes for each stretch the run-steps at each place, and what each power expects there."""

    def __init__(self) -> None:
        super().__init__(Shedding(None, Allowance()))
        self.bind = self._bind
        self._meter: WorkMeter
        self._tables: RunTables
        self._pools: FirstPools
        self._stretches: list[_Stretch] = []
        self._now: _Stretch
        self._looks = 0

    def _bind(self, tables: RunTables) -> None:
        self.arena.bind(tables)
        self._tables, self._meter, self._pools = tables, WorkMeter(tables), FirstPools(tables)
        self.engines_beside = (self._pools.engine,)
        self._now = self._no_stretch()

    def _no_stretch(self) -> _Stretch:
        many = len(self._tables.pools)
        units, fed = np.zeros((many, len(POWERS))), np.zeros((many, len(FED_POWERS)))
        return _Stretch(np.zeros(many, np.int64), units, fed)

    def note_hits(self, events: RunEvents, hits: Hits) -> None:  # noqa: ARG002  (what they complete does not matter)
        """Note what is expected of these events."""
        measured = self._meter.measure(events)
        for place in range(1, len(self._tables.pools)):
            self._now.units[place] += [measured.units(place, power).sum() for power in POWERS]
        if self._pools.places:
            chance = 0.5 ** (self._looks // LOOKS)
            at, runs = self._pools.look(events, np.full(len(events.row), chance))
            self._looks += len(at)
            tests = self._meter.tests_of(events.cls[at]).T / chance
            alone = runs.sum(axis=1).astype(np.float64)
            self._now.fed[:] += np.array([tests @ alone**power for power in FED_POWERS]).T

    def end_stretch(self, tested: Ints) -> None:
        """A stretch is over; ``tested``: run-steps at each place so far."""
        self._stretches.append(self._now._replace(tested=tested))
        self._now = self._no_stretch()

    @property
    def tested(self) -> Ints:
        """Run-steps at each place."""
        return self._stretches[-1].tested

    def law(self) -> WorkLaw:
        """What fits best to each place."""
        found = [self._law_of(place) for place in range(len(self._tables.pools))]
        factors, powers, fed, fed_powers = (tuple(numbers) for numbers in zip(*found, strict=True))
        return WorkLaw(factors, powers, (), fed, fed_powers)

    def _law_of(self, place: int) -> tuple[float, float, float, float]:
        """Factor and power that fit best to a place; and those by runs of one bound event, where these fit better."""
        steps = np.diff([0, *(float(stretch.tested[place]) for stretch in self._stretches)])
        usual = DROPPED if self._tables.drops and self._tables.pools[place].front else KEPT
        if not steps.any():
            return 0.0, usual, 0.0, FED
        has_loop = _has_loop(self._tables.automaton)
        units = np.array([stretch.units[place] for stretch in self._stretches]).T
        plain = _best(steps, units, POWERS, usual, max(POWERS) if has_loop else MOST_PLAIN)
        if not self._pools.places or place in self._pools.places:
            return plain.factor, plain.power, 0.0, FED
        units = np.array([stretch.fed[place] for stretch in self._stretches]).T
        fed = _best(steps, units, FED_POWERS, FED, max(FED_POWERS) if has_loop else self._bound(place))
        return plain.factor, plain.power, fed.factor if fed.misfit < plain.misfit else 0.0, fed.power

    def _bound(self, place: int) -> int:
        """How many events runs of a place have bound at least."""
        bound, reached = 0, {START, None}
        while self._tables.pools[place].state not in reached:
            bound += 1
            reached |= {step.target for step in self._tables.automaton.steps if step.source in reached}
        return bound


class _Stretch(NamedTuple):
    """Of a stretch the run-steps at each place up to its end, and what each power makes of its events there.

    ``units``: of what variables can be bound to, ``fed``: of the runs of one bound event.
    """

    tested: Ints
    units: Floats
    fed: Floats


class _Fit(NamedTuple):
    """By how much a law is off, with the power and the factor for which that is least."""

    misfit: float
    power: float
    factor: float


def _best(steps: Floats, units: Floats, powers: Sequence[float], usual: float, most: float) -> _Fit:
    return min(
        _Fit(_misfit(steps, some) + TRUST * (power - usual) ** 2, power, _factor(steps, some))
        for power, some in zip(powers, units, strict=True)
        if power <= most
    )


def _factor(steps: Floats, units: Floats) -> float:
    return float(steps.sum() / max(units.sum(), 1e-9))


def _misfit(steps: Floats, units: Floats) -> float:
    """By how much stretches are off, by logarithms; those with more work count for more."""
    expected = units * _factor(steps, units)
    some, least = (steps > 0) | (expected > 0), max(LEAST * float(steps.mean()), 1e-9)
    off, weight = np.log((steps[some] + least) / (expected[some] + least)), np.sqrt(expected[some])
    mean = float(weight.mean()) if len(weight) else 0.0
    return float((weight * off**2).sum() / mean) if mean > 0 else 0.0
