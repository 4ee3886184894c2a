"""How many run-steps an exact run would take, known from the events alone, as they come.

A share of the exact run's work cannot be granted by what the past took for an event: the present may have other keys,
more events in a window, or fewer that begin a match. To know the work exactly one would have to do it. So it is told
from numbers that cost nothing: of each key, about how many events of the last window can be bound to a variable.

    run-steps of an event at a place = factor * (product of these numbers) ^ power

The product is over the variable that was bound last at the place, and those of which runs still hold values there:
others make no more runs, as equal ones are merged. Factor and power of each place are learned from the past
(``training.exact_work``). Where it is known how many runs an event would be tested with (``first_pools``), the law is
held against that while the stream runs, and corrected. Places further on often follow the number of these runs better
than those numbers, as many of them at once make many of the others: then the law is corrected there, too. Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from acep_approx.arrays import Floats, Ints, extended
from acep_approx.automaton.automaton import START
from acep_approx.engines.batches import Grouped, RunEvents
from acep_approx.engines.runs.first_pools import FirstPools
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.runs.tables import RunTables
from acep_approx.kernels.runs import expected as kernel
from acep_approx.kernels.runs.pools import NEVER
from acep_approx.kernels.runs.saved import SPAN
from acep_approx.ranges import TICK, check, finite, number_in


class Fed(NamedTuple):
    """How run-steps at a place follow from how many runs of one bound event there are.

        factor * (product of the place) ^ product * runs ^ power / (product of the places of these runs) ^ counted

    So either from these runs alone, or from by how much they are more, or fewer, than the product would have.
    """

    factor: float = 0.0
    product: float = 0.0
    power: float = 1.0
    counted: float = 0.0


@dataclass(frozen=True)
class WorkLaw:
    """How the run-steps of an exact run follow from what is measured of events.

    Parameters
    ----------
    factors : tuple of float
        For each place the run-steps of an event that is tested there, for one unit. That of the first place is 0,
        unless a try to begin a run is a run-step.
    powers : tuple of float
        For each place by which power of the product these grow, above 0.
    within : tuple of float, optional
        For each place what a run within a budget that misses nothing takes, as a share of these: it looks at more runs
        that can do no more than another, or at fewer.
    fed : tuple of Fed, optional
        For each place how its run-steps follow from the number of runs of one bound event; with factor 0 where that
        does not tell more.
    """

    factors: tuple[float, ...]
    powers: tuple[float, ...]
    within: tuple[float, ...] = ()
    fed: tuple[Fed, ...] = ()

    def times(self, more: float) -> WorkLaw:
        """The same law with all run-steps multiplied by ``more``."""
        fed = tuple(one._replace(factor=more * one.factor) for one in self.fed)
        return replace(self, factors=tuple(more * factor for factor in self.factors), fed=fed)

    def with_births(self, times: float) -> WorkLaw:
        """The law of a template: tests take ``times`` as many run-steps, and each try to begin a run takes one more."""
        return replace(self, factors=(1.0, *(times * factor for factor in self.factors[1:])))

    def steps(self, measured: Measured) -> Floats:
        """The run-steps of each event."""
        return sum(self.by_place(measured), np.zeros(len(measured.tests)))

    @property
    def fed_places(self) -> tuple[int, ...]:
        """Places whose run-steps are told by the number of runs of one bound event."""
        return tuple(place for place, fed in enumerate(self.fed) if fed.factor > 0)

    def looked_at(self, met: Met) -> Floats:
        """The run-steps of events at each place, as far as the runs of one bound event tell; shape (events, places)."""
        found = (met.runs * met.tests).astype(np.float64)
        for place in self.fed_places:
            found[:, place] = self.fed[place].factor * met.units(place, self.fed[place])
        return found

    def by_place(self, measured: Measured) -> list[Floats]:
        """The run-steps of each event at each place."""
        return [
            factor * measured.units(place, power) if factor > 0 else np.zeros(len(measured.tests))
            for place, (factor, power) in enumerate(zip(self.factors, self.powers, strict=True))
        ]


class Measured(NamedTuple):
    """Of each event at how many groups of steps it is tested in each place, and the logarithm of the product there.

    Shape of both (events, places).
    """

    tests: Ints
    logs: Floats

    def units(self, place: int, power: float) -> Floats:
        """What events take at a place, in units of the factor."""
        units: Floats = np.exp(power * self.logs[:, place])
        return units * self.tests[:, place]


class Met(NamedTuple):
    """What some events meet: at how many groups of steps each is tested in each place, and the logarithms there.

    ``runs``: of one bound event, by place; ``counted``: the logarithm of the product at the places of these.
    """

    tests: Ints
    logs: Floats
    runs: Ints
    counted: Floats

    @classmethod
    def of(cls, measured: Measured, at: Ints, runs: Ints, first: Sequence[int]) -> Met:
        """What those of the measured events meet that were looked ``at``; ``first``: the places of such runs."""
        logs = measured.logs[at]
        return cls(measured.tests[at], logs, runs, np.logaddexp.reduce(logs[:, list(first)], axis=1))

    def units(self, place: int, fed: Fed) -> Floats:
        """What events take at a place, in units of the factor."""
        alone = self.runs.sum(axis=1)
        logs = fed.product * self.logs[:, place] + fed.power * np.log(np.maximum(alone, 1)) - fed.counted * self.counted
        units: Floats = np.where(alone > 0, np.exp(np.minimum(logs, MOST_LOG)), 0.0) * self.tests[:, place]
        return units


class Picked(NamedTuple):
    """Events that an engine must get, by their places, and what the law says of each, and of all others together."""

    at: Ints
    steps: Floats
    others: float


class WorkMeter:
    """Measures the events of a stream by what they would take.

    Parameters
    ----------
    tables : RunTables
        Of the query.
    window : int, optional
        In ticks, where it is not that of the query.
    """

    def __init__(self, tables: RunTables, window: int | None = None) -> None:
        self.tables, self.window = tables, tables.window if window is None else window
        automaton = tables.automaton
        bound: dict[int, set[str]] = {}  # by state, the variables of the steps that lead there
        self._letters: dict[str, int] = {}  # by variable, those of the events that can be bound to it, as bits
        for step in automaton.steps:
            if step.target is not None:
                name = step.binding.variable or f" {step.letter}"  # machines have no variables
                bound.setdefault(step.target, set()).add(name)
                self._letters[name] = self._letters.get(name, 0) | 1 << step.letter
        numbers = {name: number for number, name in enumerate(self._letters)}
        self._counted = np.zeros((len(numbers), len(tables.pools)))  # which variables count at which place
        for place, pool in enumerate(tables.pools):
            held = {register.variable for register in automaton.live[pool.state]}
            for name in (held | bound.get(pool.state, set())) & numbers.keys():
                self._counted[numbers[name], place] = 1.0
        self._seen = kernel.Seen(np.zeros(0, np.int64), np.zeros(0))
        self._begun = np.zeros(0, np.int64)
        self._asked: kernel.Asked
        self._tests = np.zeros((0, len(tables.pools)), np.int64)

    def measure(self, events: Grouped | RunEvents) -> Measured:
        """Measure events; those of a key come in order of time. Complexity: O(events x places x variables)."""
        self._know_classes()
        size, variables = len(events.slot), len(self._letters)
        logs = np.zeros(size * variables)
        self._know_slots(events.slot)
        if size:
            kernel.count_recent(events.slot, events.tick, events.cls, self._asked, self._seen, logs)
        tests = self._tests[events.cls]
        begins = np.flatnonzero(tests[:, START])
        np.maximum.at(self._begun, events.slot[begins], events.tick[begins])
        return Measured(tests, logs.reshape(size, variables) @ self._counted)

    def pick(self, slot: Ints, tick: Ints, cls: Ints, law: WorkLaw, engine: Runs | None) -> Picked:
        """Measure events, those of a key together and in order of time, and pick those that an engine must get.

        The others meet no run, and begin none: what is noted of them, as the pace of their key, is noted here. All of
        them where no ``engine`` is given. Complexity: O(events x places x variables).
        """
        self._know_classes()
        self._know_slots(slot)
        if engine is None:
            spans = np.ones(len(self._seen.last) * SPAN, np.int64)  # as if all had runs
            standing = kernel.Standing(spans, np.zeros(0), np.zeros(1, np.int64), self._begun)
        else:
            engine.put_away()
            windows = np.array([engine.window]) if engine.windows is None else engine.windows
            standing = kernel.Standing(engine.store.spans, engine.store.pace, windows, self._begun)
        counted = np.ascontiguousarray(self._counted.T, np.int64).ravel()
        asked = kernel.Law(np.array(law.factors), np.array(law.powers), counted, self._tests.ravel())
        at, steps = np.empty(len(slot), np.int64), np.empty(len(slot) + 1)
        many = kernel.pick_events(slot, tick, cls, self._asked, self._seen, asked, standing, at, steps)
        return Picked(at[:many], steps[:many], float(steps[-1]))

    def _know_slots(self, slot: Ints) -> None:
        """Make room for what is known of keys."""
        slots, known, variables = int(slot.max(initial=-1)) + 1, len(self._seen.last), len(self._letters)
        if slots > known:
            room = max(slots, 2 * known)
            counts = np.zeros(room * variables)
            counts[: known * variables] = self._seen.counts
            self._seen = kernel.Seen(extended(self._seen.last, room, NEVER), counts)
        if slots > len(self._begun):
            self._begun = extended(self._begun, max(slots, 2 * len(self._begun)), NEVER)

    def begun(self, slots: Ints) -> Ints:
        """The tick of the last event of each key that begins a run if none is shed; ``NEVER`` where there was none."""
        found = np.full(len(slots), NEVER)
        known = slots < len(self._begun)
        found[known] = self._begun[slots[known]]
        return found

    def _know_classes(self) -> None:
        """Look up what classes of events do, where some were found since."""
        classes, places = self.tables.classes, len(self.tables.pools)
        if len(self._tests) != len(classes):
            self._tests = np.zeros((len(classes), places), np.int64)
            for number, mask in enumerate(classes):
                for pool in self.tables.tested(mask):
                    self._tests[number, pool] += 1
            window = min(max(self.window, 0), TICK)
            binds = [[bool(mask & letters) for letters in self._letters.values()] for mask in classes]
            self._asked = kernel.Asked(np.array(binds, np.int64).ravel(), len(self._letters), window)

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> list[list[float]]:
        """What must be kept to go on elsewhere, as JSON."""
        return [self._seen.last.tolist(), self._seen.counts.tolist(), self._begun.tolist()]

    def restore(self, saved: list[list[float]]) -> None:
        """Go on from what ``snapshot`` gave.

        Raises
        ------
        DamagedError
        """
        last, counts = np.array(saved[0], np.int64), np.array(saved[1], np.float64)
        check("last", good=bool(((last == NEVER) | (abs(last) <= TICK)).all()))
        check("counts", good=len(counts) == len(last) * len(self._letters) and bool((counts >= 0).all()))
        check("counts", good=bool(np.isfinite(counts).all()))
        self._seen = kernel.Seen(last, counts)
        self._begun = np.array(saved[2] if len(saved) > 2 else [], np.int64)  # states of before have none
        check("begun", good=bool(((self._begun == NEVER) | (abs(self._begun) <= TICK)).all()))


MOST_LOG = 60.0
"""No product comes there."""
LEAST_BLOCK, MOST_BLOCK, PART = 64, 8192, 16
"""Events of the stream after which a law is corrected, however it arrives: a sixteenth of those so far, about."""
LOOKS = 8
"""Looks in a block, as a rule: more where the law says that there is more to do. Each takes tens of microseconds."""
ENOUGH = 8.0
"""Looks that weigh as much as what was known before."""
RECENT = 8
"""Blocks whose looks tell of now."""
FEEDS = 2.0
"""Places further on are corrected alike where the first ones take half of the work, one over this, or more; else less:
runs that are merged at first, or come more often, lead to fewer, or more, of the others."""
TELLS = 256
"""Run-steps of blocks in which the run missed nothing that count for as much as the law: fewer tell little."""
CATCH_UP, MOST_LESS, MOST_MORE = 2, 0.5, 0.25
"""Blocks in which what was stated too high or too low is made up for, and by which share of each at most."""
LEAST_EACH, LEAST_CHANCE = 1e-3, 1 / 256
"""Run-steps for which there is a look, and the chance of one, at least: what the law says nothing of is seen, too."""
UNIT, MOST_STEPS = 1024.0, float(1 << 32)
"""Parts of a run-step that are counted: sums of whole numbers do not depend on the order. An event has not as many."""
MOST_COUNTED = 1 << 160
"""No sum of these comes there."""


def _counted(steps: Floats) -> Ints:
    found: Ints = np.rint(np.minimum(steps, MOST_STEPS) * UNIT).astype(np.int64)
    return found


def block_after(events: int) -> int:
    """How many events the block has that begins after so many, or that these lie in."""
    return min(max((1 << events.bit_length()) // PART, LEAST_BLOCK), MOST_BLOCK)


class Done(NamedTuple):
    """What a run that sheds has done at the end of a piece: its run-steps, up to which tick.

    ``gone``: runs that were shed, and tests that were left out; ``lost``: the tick at which a run was shed last.
    """

    steps: int
    tick: int
    gone: int
    lost: int

    def missed_nothing(self, begun: Done, window: int) -> bool:
        """Whether nothing was missed since it had ``begun``: neither then nor for a window before it."""
        return self.gone == begun.gone and begun.lost < begun.tick - window

    def since(self, begun: Done) -> Done:
        """The same; where tests were left out since it had ``begun``, that is as if runs were shed now."""
        return self if self.gone == begun.gone else self._replace(lost=self.tick)


class Correction:
    """By which factor a law is off at each place, as far as looks at first places tell.

    And as far as the run itself tells: where it has shed nothing for a window, it does what the exact run does, or as
    much of that as it did in the past.

    Parameters
    ----------
    places : int
    first : tuple of int
        The places that looks tell of.
    usual : float
        Run-steps that an event is taken to bring.
    within : tuple of float, optional
        See ``WorkLaw``.

    Attributes
    ----------
    rates : float64 array, shape (places,)
        What the law is multiplied with until the next block begins.
    """

    def __init__(self, places: int, first: tuple[int, ...], usual: float, within: tuple[float, ...] = ()) -> None:
        self._first, self._within = list(first), np.array(within)
        self._each = usual * LEAST_BLOCK / LOOKS  # run-steps at these places for which there is a look
        self.rates = np.ones(places)
        self._told = [0] * places  # by the law, in this block
        self._seen = [0] * (3 * places)  # in this block: run-steps, those of the law there, the squares of these
        self._sums = np.zeros((2, places))  # in all blocks, by the law, and as was stated
        self._looked = np.zeros((2, 3, places))  # as seen, in all blocks and of late
        # in blocks in which nothing was missed, all of them and those of late: what was done, and that by the law
        self._whole = np.zeros((2, 1 + places))
        self._late = np.zeros(places)  # by the law, of late

    def tell(self, by_place: Sequence[Floats]) -> None:
        """The law tells this of some events."""
        for place, steps in enumerate(by_place):
            self._told[place] += int(_counted(steps).sum())

    def chances(self, by_place: Sequence[Floats]) -> Floats:
        """With which chance each event is looked at: by what the law says, so that all looks tell as much."""
        told = sum((by_place[place] for place in self._first), np.zeros(len(by_place[0])))
        return np.clip(told / self._each, LEAST_CHANCE, 1.0)

    def look(self, seen: Floats, by_place: Sequence[Floats]) -> None:
        """Some events would take that, where the law says that; shape of both (events, places)."""
        chances = self.chances(by_place)
        for place in self._first:
            told = _counted(by_place[place] / chances)
            squares = sum(steps * steps for steps in told.tolist())
            for number, more in enumerate((_counted(seen[:, place] / chances).sum(), told.sum(), squares)):
                self._seen[3 * place + number] += int(more)

    def end_block(self, events: int, done: int | None = None) -> None:
        """So many events have come by now; ``done``: run-steps in this block, where the run has missed nothing."""
        block = np.array(self._told, np.float64)
        for sums in (self._looked, self._whole):
            sums[1] *= 1 - 1 / RECENT
        self._looked += np.array(self._seen, np.float64).reshape(-1, 3).T
        if done is not None and len(self._within):
            self._whole += done * UNIT, *block
        self._told, self._seen = [0] * len(block), [0] * len(self._seen)
        self._sums += block, self.rates * block
        self._late = (1 - 1 / RECENT) * self._late + block
        told, stated = self._sums
        off_in_all = self._off(np.ones(len(told)), self._looked[0])
        off = self._off(off_in_all, self._looked[1])
        self.rates = off * self._shown(self._whole[1], off, self._late)
        work = float(np.dot(off_in_all, told)) * self._shown(self._whole[0], off_in_all, told)
        blocks = events / block_after(events)
        lacks = (work - float(stated.sum())) * blocks / max(work * CATCH_UP, 1.0)
        self.rates *= 1 + min(max(lacks, -MOST_LESS), MOST_MORE)
        self._each = max(float(told[self._first].sum()) / UNIT / blocks / LOOKS, LEAST_EACH)

    def _shown(self, whole: Floats, off: Floats, told: Floats) -> float:
        """How many times what is expected it is, by blocks in which nothing was missed, where these are the most.

        They have less to do than others, as a rule, and a law that is right in all may be too high there. ``off``: how
        many times what the law has ``told`` is expected.
        """
        done, exact = float(whole[0]), off * whole[1:]
        as_run = float(np.dot(exact, self._within)) if len(self._within) else 0.0
        times = (done + TELLS * UNIT) / (as_run + TELLS * UNIT)
        part = float(exact.sum()) / max(float(np.dot(off, told)), 1.0)
        return float(times ** min(max(2 * part - 1, 0.0), 1.0))

    def _off(self, known: Floats, looked: Floats) -> Floats:
        """How many times what the law says it is, by looks beside what was ``known`` before."""
        off, first = known.copy(), self._first
        seen, said, squares = looked[:, first]
        looks = said * said / np.maximum(squares, 1.0)  # as many of one size would tell as much
        off[first] = (looks * seen / np.maximum(said, 1.0) + ENOUGH * off[first]) / (looks + ENOUGH)
        told = self._sums[0]
        alone, others = float(told[first].sum()), [place for place in range(len(told)) if place not in first]
        work = float(np.dot(off[first], told[first]))
        if work > 0:
            off[others] = (work / alone) ** min(FEEDS * work / (work + float(told[others].sum())), 1.0)
        return off

    def snapshot(self) -> dict[str, Any]:
        """What must be kept to go on elsewhere, as JSON."""
        numbers = {"each": np.array([self._each]), "rates": self.rates, "sums": self._sums, "looked": self._looked}
        numbers |= {"whole": self._whole, "late": self._late}
        words = {"told": self._told, "seen": self._seen}
        return {**{name: array.ravel().tolist() for name, array in numbers.items()}, **words}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave.

        Raises
        ------
        DamagedError
        """
        places = len(self.rates)
        for name, size in {"rates": 1, "sums": 2, "looked": 6, "told": 1, "seen": 3}.items():
            finite("correction", *saved[name], *saved["each"])
            check("correction", good=len(saved[name]) == size * places and min(saved[name]) >= 0)
        for word in (*saved["told"], *saved["seen"]):
            number_in("correction", word, 0, MOST_COUNTED)
        if len(saved.get("whole", [])) == self._whole.size:  # states of before have others
            finite("correction", *saved["whole"], *saved["late"])
            check("correction", good=min(saved["whole"]) >= 0 and len(saved["late"]) == places)
            self._whole = np.array(saved["whole"], np.float64).reshape(self._whole.shape)
            self._late = np.array(saved["late"], np.float64)
        (self._each,) = saved["each"]
        check("correction", good=self._each > 0)
        self._told, self._seen = list(saved["told"]), list(saved["seen"])
        self.rates = np.array(saved["rates"], np.float64)
        self._sums = np.array(saved["sums"], np.float64).reshape(2, places)
        self._looked = np.array(saved["looked"], np.float64).reshape(2, 3, places)


class ExpectedWork:
    """What the exact run takes, of the events so far.

    Parameters
    ----------
    meter : WorkMeter
        Of the run that sheds.
    law : WorkLaw
    usual : float
        Run-steps that an event is taken to bring.
    pools : FirstPools, optional
        What the law is corrected by.

    Attributes
    ----------
    steps : float
        Run-steps of all events so far.
    pools : FirstPools or None
        None: there is nothing to correct the law by.
    """

    def __init__(self, meter: WorkMeter, law: WorkLaw, usual: float, pools: FirstPools | None = None) -> None:
        self.meter, self.law, self.usual = meter, law, usual
        self.steps = 0.0
        self._is_corrected = pools is not None
        self.pools = pools if pools is not None and pools.places else None
        places = () if self.pools is None else tuple(sorted({*self.pools.places, *law.fed_places}))
        self._correction = Correction(len(meter.tables.pools), places, usual, law.within)
        self._by_place: list[Floats] = []  # of the events of this piece
        self._measured: Measured
        self._begun: Done | None = None  # what was done when this block began

    def of(self, events: Grouped, *, is_corrected: bool = True) -> Floats:
        """How many usual events each of these stands for; ``is_corrected``: whether the law is."""
        if not is_corrected and (self._correction.rates == 1.0).all():
            return self.pick(events.slot, events.tick, events.cls, None).steps
        self._measured = self.meter.measure(events)
        self._by_place = self.law.by_place(self._measured)
        if self._is_corrected:
            self._correction.tell(self._by_place)
        steps = np.zeros(len(events.row))
        for rate, some in zip(self._correction.rates.tolist(), self._by_place, strict=True):
            steps += rate * some
        self.steps += float(steps.sum())
        return steps / self.usual

    def pick(self, slot: Ints, tick: Ints, cls: Ints, engine: Runs | None) -> Picked:
        """The events that an engine must get, with how many usual events each stands for; see ``WorkMeter.pick``."""
        picked = self.meter.pick(slot, tick, cls, self.law, engine)
        self.steps += float(picked.steps.sum()) + picked.others
        return Picked(picked.at, picked.steps / self.usual, picked.others / self.usual)

    def look(self, events: RunEvents) -> None:
        """Look at what some events of this piece would be tested with."""
        if self.pools is not None:
            at, seen = self.pools.look(events, self._correction.chances(self._by_place))
            found = self.law.looked_at(Met.of(self._measured, at, seen, self.pools.places))
            self._correction.look(found, [some[at] for some in self._by_place])

    @staticmethod
    def most_events(events: int) -> int:
        """How many events may come next, after so many, before a block ends."""
        return block_after(events) - events % block_after(events)

    def rebind(self, tables: RunTables) -> None:
        """Go on with columns of wider types."""
        self.meter.tables = tables
        if self.pools is not None:
            self.pools.rebind(tables)

    def end_block(self, events: int, done: Done) -> None:
        """A block ends with so many events of the stream, and the run has done that."""
        if not self._is_corrected:
            return
        begun, self._begun = self._begun, done if self._begun is None else done.since(self._begun)
        is_whole = begun is not None and done.missed_nothing(begun, self.meter.window)
        self._correction.end_block(events, done.steps - begun.steps if begun is not None and is_whole else None)

    def snapshot(self) -> dict[str, Any]:
        """What must be kept to go on elsewhere, as JSON."""
        pools = None if self.pools is None else self.pools.snapshot()
        return {
            "steps": self.steps,
            "seen": self.meter.snapshot(),
            "correction": self._correction.snapshot(),
            "pools": pools,
            "begun": None if self._begun is None else list(self._begun),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave.

        Raises
        ------
        DamagedError
        """
        finite("steps", saved["steps"])
        self.steps = saved["steps"]
        self.meter.restore(saved["seen"])
        if saved.get("correction") is not None:  # states of before have none
            self._correction.restore(saved["correction"])
        if len(saved.get("begun") or ()) == len(Done._fields):  # nor this, or another one
            self._begun = Done(*(number_in("begun", number, NEVER, MOST_COUNTED) for number in saved["begun"]))
        if self.pools is not None and saved.get("pools") is not None:
            self.pools.restore(saved["pools"])
