"""How many run-steps an exact run would take, known from the events alone, as they come.

A share of the exact run's work cannot be granted by what the past took for an event: the present may have other keys,
more events in a window, or fewer that begin a match. To know the work exactly one would have to do it. So it is told
from numbers that cost nothing: of each key, about how many events of the last window brought a run to a place.

    run-steps of an event = factor * places it is tested at * (mean number of events that brought runs) ^ power

The mean is the geometric one over the places from which runs go on to others. Factor and power are learned from the
past (``training.exact_work``). Source: ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from acep_approx.arrays import Floats, Ints, extended
from acep_approx.automaton.automaton import START
from acep_approx.engines.batches import Grouped, RunEvents
from acep_approx.engines.runs.tables import RunTables
from acep_approx.kernels.runs import expected as kernel
from acep_approx.kernels.runs.pools import NEVER
from acep_approx.ranges import TICK, check, finite

ALL = (1 << 64) - 1
"""A class of events that all letters hold on."""


@dataclass(frozen=True)
class WorkLaw:
    """How the run-steps of an exact run follow from what is measured of events.

    Parameters
    ----------
    factor : float
        Run-steps for one unit.
    power : float
        From 0 (an event takes the same whatever came before) to 1.5.
    """

    factor: float
    power: float

    def steps(self, measured: Measured) -> Floats:
        """The run-steps of each event."""
        return self.factor * measured.to(self.power)


class Measured(NamedTuple):
    """Of each event at how many places it is tested, and the mean number of events that brought runs."""

    tests: Ints
    mean: Floats

    def to(self, power: float) -> Floats:
        """The run-steps of each, in units of the factor."""
        found: Floats = np.where(self.mean > 0, np.where(self.mean > 0, self.mean, 1.0) ** power, 0.0)
        return self.tests * found


class WorkMeter:
    """Measures the events of a stream by what they would take.

    Parameters
    ----------
    tables : RunTables
        Of the query.
    """

    def __init__(self, tables: RunTables) -> None:
        self.tables = tables
        self._places = _places_of(tables)
        self._seen = kernel.Seen(np.zeros(0, np.int64), np.zeros(0))
        self._asked: kernel.Asked
        self._tests = np.zeros(0, np.int64)

    def measure(self, events: Grouped | RunEvents) -> Measured:
        """Measure events; those of a key come in order of time. Complexity: O(events x places)."""
        self._know_classes()
        size, places = len(events.slot), len(self._places)
        mean = np.zeros(size)
        slots, known = int(events.slot.max(initial=-1)) + 1, len(self._seen.last)
        if slots > known:
            room = max(slots, 2 * known)
            counts = np.zeros(room * places)
            counts[: known * places] = self._seen.counts
            self._seen = kernel.Seen(extended(self._seen.last, room, NEVER), counts)
        if size:
            kernel.count_recent(events.slot, events.tick, events.cls, self._asked, self._seen, mean)
        return Measured(self._tests[events.cls], mean)

    def _know_classes(self) -> None:
        """Look up what classes of events do, where some were found since."""
        classes = self.tables.classes
        if len(self._tests) != len(classes):
            ways = [self.tables.ways(mask) for mask in classes]
            brings = [[any(place in ends for _, ends in some) for place in self._places] for some in ways]
            self._tests = np.array([sum(pool != START for pool, _ in some) for some in ways], np.int64)
            window = min(max(self.tables.window, 0), TICK)
            self._asked = kernel.Asked(np.array(brings, np.int64).ravel(), len(self._places), window)

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> list[list[float]]:
        """What must be kept to go on elsewhere, as JSON."""
        return [self._seen.last.tolist(), self._seen.counts.tolist()]

    def restore(self, saved: list[list[float]]) -> None:
        """Go on from what ``snapshot`` gave.

        Raises
        ------
        DamagedError
        """
        last, counts = np.array(saved[0], np.int64), np.array(saved[1], np.float64)
        check("last", good=bool(((last == NEVER) | (abs(last) <= TICK)).all()))
        check("counts", good=len(counts) == len(last) * len(self._places) and bool((counts >= 0).all()))
        check("counts", good=bool(np.isfinite(counts).all()))
        self._seen = kernel.Seen(last, counts)


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


def _places_of(tables: RunTables) -> list[int]:
    """The pools from which runs go on to others that are tested; where there are none, all that are tested."""
    ways = [(pool, ends) for pool, ends in tables.ways(ALL) if pool != START]
    tested = {pool for pool, _ in ways}
    return sorted({pool for pool, ends in ways if tested & set(ends)} or tested)
