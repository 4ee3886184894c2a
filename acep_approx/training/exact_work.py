"""Learns from the past how many run-steps an exact run takes, by numbers of events that are known without running it.

Source: ours; see ``engines.runs.expected_work`` for what is learned.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, replace
from typing import Any, NamedTuple, Self

import numpy as np

from acep_approx.arrays import Floats, Ints
from acep_approx.automaton.automaton import START
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.runs.expected_work import Fed, Met, WorkLaw, WorkMeter
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
MOST, MOST_PLAIN = max(POWERS), 1.0
"""The highest power; and that where no run comes back to its place: no more runs can be made than events can be put
together."""
RUNS, FEW = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0), 0.1
"""Powers of the number of runs of one bound event, no more than events that are bound, for the same reason; and how
much it counts that these are low."""
LESS, NOTHING = 0.9, 1.0
"""So much less must a law by these runs be off as one without them; where both are off by less than that, none is."""
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


def _law_of(saved: list[Any], places: int) -> WorkLaw:
    factors, powers, *more = saved
    within, fed = more or ([], [])  # histories of before have none
    finite("work", *factors, *powers, *within, *(number for one in fed for number in one))
    check("work", good=len(factors) == len(powers) == places and min(factors) >= 0)
    check("work", good=0 < min(powers) <= max(powers) <= MOST)
    check("work", good=len(within) in (0, places) and min(within, default=0) >= 0)
    law = WorkLaw(tuple(factors), tuple(powers), tuple(within), tuple(Fed(*one) for one in fed))
    check("work", good=len(fed) in (0, places) and all(min(one) >= 0 and max(one[1:]) <= max(RUNS) for one in law.fed))
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
        whole = float(_tested(plan, past, first, merge, ranks=False).sum())
        return law.times(whole / steps), whole
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
        self._ways: list[Fed] = []
        self._others: list[int] = []  # places that are not of runs of one bound event, where there are such

    def _bind(self, tables: RunTables) -> None:
        self.arena.bind(tables)
        self._tables, self._meter, self._pools = tables, WorkMeter(tables), FirstPools(tables)
        self.engines_beside = (self._pools.engine,)
        first = self._pools.places
        self._others = [place for place in range(1, len(tables.pools)) if first and place not in first]
        usual = self._usual(first[0]) if first else KEPT
        alone = [Fed(1.0, 0.0, power, 0.0) for power in RUNS]
        self._ways = [*alone, *(Fed(1.0, power, runs, usual * runs) for power in POWERS for runs in RUNS)]
        self._now = self._no_stretch()

    def _usual(self, place: int) -> float:
        """The power where the past says nothing."""
        return DROPPED if self._tables.drops and self._tables.pools[place].front else KEPT

    def _no_stretch(self) -> _Stretch:
        many = len(self._tables.pools)
        units, fed = np.zeros((many, len(POWERS))), np.zeros((many, len(self._ways)))
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
            met = Met.of(measured, at, runs, self._pools.places)
            for place in self._others:
                self._now.fed[place] += [met.units(place, way).sum() / chance for way in self._ways]

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
        factors, powers, fed = (tuple(numbers) for numbers in zip(*found, strict=True))
        return WorkLaw(factors, powers, (), fed)

    def _law_of(self, place: int) -> tuple[float, float, Fed]:
        """Factor and power that fit best to a place; and what fits better, by the runs of one bound event."""
        steps = np.diff([0, *(float(stretch.tested[place]) for stretch in self._stretches)])
        usual, has_loop = self._usual(place), _has_loop(self._tables.automaton)
        if not steps.any():
            return 0.0, usual, Fed()
        most, units = MOST if has_loop else MOST_PLAIN, np.array([one.units[place] for one in self._stretches]).T
        plain = min(
            (_misfit(steps, some) + TRUST * (power - usual) ** 2, power, _factor(steps, some))
            for power, some in zip(POWERS, units, strict=True)
            if power <= most
        )
        most_runs, units = self._bound(place), np.array([one.fed[place] for one in self._stretches]).T
        fed = min(
            (_misfit(steps, some) + TRUST * (way.product - usual) ** 2 + FEW * way.power**2, way, _factor(steps, some))
            for way, some in zip(self._ways, units, strict=True)
            if way.product <= most and (has_loop or way.power <= most_runs)
        )
        is_better = place in self._others and fed[0] + NOTHING < LESS * (plain[0] + NOTHING)
        return plain[2], plain[1], fed[1]._replace(factor=fed[2]) if is_better else Fed()

    def _bound(self, place: int) -> int:
        """How many events runs of a place have bound at least."""
        bound, reached = 0, {START, None}
        while self._tables.pools[place].state not in reached:
            bound += 1
            reached |= {step.target for step in self._tables.automaton.steps if step.source in reached}
        return bound


class _Stretch(NamedTuple):
    """Of a stretch the run-steps at each place up to its end, and what each power makes of its events there.

    ``units``: of what variables can be bound to, ``fed``: each way of the runs of one bound event.
    """

    tested: Ints
    units: Floats
    fed: Floats


def _factor(steps: Floats, units: Floats) -> float:
    return float(steps.sum() / max(units.sum(), 1e-9))


def _misfit(steps: Floats, units: Floats) -> float:
    """By how much stretches are off, by logarithms; those with more work count for more."""
    expected = units * _factor(steps, units)
    some, least = (steps > 0) | (expected > 0), max(LEAST * float(steps.mean()), 1e-9)
    off, weight = np.log((steps[some] + least) / (expected[some] + least)), np.sqrt(expected[some])
    mean = float(weight.mean()) if len(weight) else 0.0
    return float((weight * off**2).sum() / mean) if mean > 0 else 0.0
