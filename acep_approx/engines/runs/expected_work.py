"""How many run-steps an exact run would take, known from the events alone, as they come.

A share of the exact run's work cannot be granted by what the past took for an event: the present may have other keys,
more events in a window, or fewer that begin a match. To know the work exactly one would have to do it. So it is told
from numbers that cost nothing: of each key, about how many events of the last window can be bound to a variable.

    run-steps of an event at a place = factor * (product of these numbers) ^ power

The product is over the variable that was bound last at the place, and those of which runs still hold values there:
others make no more runs, as equal ones are merged. Factor and power of each place are learned from the past
(``training.exact_work``). Source: ours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from acep_approx.arrays import Floats, Ints, extended
from acep_approx.automaton.automaton import START
from acep_approx.engines.batches import Grouped, RunEvents
from acep_approx.engines.runs.tables import RunTables
from acep_approx.kernels.runs import expected as kernel
from acep_approx.kernels.runs.pools import NEVER
from acep_approx.ranges import TICK, check, finite


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
    """

    factors: tuple[float, ...]
    powers: tuple[float, ...]

    def with_births(self, times: float) -> WorkLaw:
        """The law of runs that take so many times the run-steps, and one for each try to begin a run."""
        return replace(self, factors=(1.0, *(times * factor for factor in self.factors[1:])))

    def steps(self, measured: Measured) -> Floats:
        """The run-steps of each event."""
        found = np.zeros(len(measured.tests))
        for place, (factor, power) in enumerate(zip(self.factors, self.powers, strict=True)):
            if factor > 0:
                found += factor * measured.units(place, power)
        return found


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
        slots, known = int(events.slot.max(initial=-1)) + 1, len(self._seen.last)
        if slots > known:
            room = max(slots, 2 * known)
            counts = np.zeros(room * variables)
            counts[: known * variables] = self._seen.counts
            self._seen = kernel.Seen(extended(self._seen.last, room, NEVER), counts)
        if size:
            kernel.count_recent(events.slot, events.tick, events.cls, self._asked, self._seen, logs)
        tests = self._tests[events.cls]
        if slots > len(self._begun):
            self._begun = extended(self._begun, max(slots, 2 * len(self._begun)), NEVER)
        begins = np.flatnonzero(tests[:, START])
        np.maximum.at(self._begun, events.slot[begins], events.tick[begins])
        return Measured(tests, logs.reshape(size, variables) @ self._counted)

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


class ExpectedWork:
    """What the exact run takes, of the events so far.

    Parameters
    ----------
    meter : WorkMeter
    law : WorkLaw
    usual : float
        Run-steps that an event is taken to bring.

    Attributes
    ----------
    steps : float
        Run-steps of all events so far.
    """

    def __init__(self, meter: WorkMeter, law: WorkLaw, usual: float) -> None:
        self.meter, self.law, self.usual = meter, law, usual
        self.steps = 0.0

    def of(self, events: Grouped) -> Floats:
        """How many usual events each of these stands for."""
        steps = self.law.steps(self.meter.measure(events))
        self.steps += float(steps.sum())
        return steps / self.usual

    def snapshot(self) -> dict[str, Any]:
        """What must be kept to go on elsewhere, as JSON."""
        return {"steps": self.steps, "seen": self.meter.snapshot()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave.

        Raises
        ------
        DamagedError
        """
        finite("steps", saved["steps"])
        self.steps = saved["steps"]
        self.meter.restore(saved["seen"])
