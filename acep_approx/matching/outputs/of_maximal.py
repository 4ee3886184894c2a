"""Maximal matches of what the cells can run: listed without the others, in order, each once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import dynamic_conditions
from acep_approx.engines.batches import Grouped
from acep_approx.engines.maximal.engine import MaximalCells, MaximalMatches
from acep_approx.engines.maximal.held import Held
from acep_approx.engines.order import MOST, groups, scratch
from acep_approx.engines.runs.lineage import Hits
from acep_approx.events.stream import EventBatch, earliest
from acep_approx.kernels.order import Found, Limits, sort_matches
from acep_approx.matching.outputs.known import KnownMatches
from acep_approx.matching.outputs.matches import CompletedMatches
from acep_approx.matching.outputs.of_runs import RunCounts, RunListing, RunOutput, RunPoints
from acep_approx.matching.outputs.registers import MachineMatches
from acep_approx.matching.outputs.verify import Bindings, Verifier
from acep_approx.matching.stream_batch import StreamBatch

if TYPE_CHECKING:
    from acep_approx.engines.runs.runs import Runs


class WalkedMatches(KnownMatches):
    """Takes the matches of ``MaximalCells``, of which none is in another."""

    def __init__(
        self,
        automaton: RegisterAutomaton,
        engine: MaximalCells,
        verifier: Verifier,
        machine: MachineMatches,
        every: int,
    ) -> None:
        super().__init__(automaton, engine.window, verifier.recent, machine, every, is_count=engine.is_count)
        self.engine = engine
        self._verifier = verifier
        self._conditions = dynamic_conditions(automaton.query)
        inner = automaton.automaton
        costs = [(final.cost, number, final.state) for number, final in enumerate(inner.finals)]
        best = {state: number for _, number, state in sorted(costs, reverse=True)}
        self._final_of = np.array([best.get(arc.target, 0) for arc in inner.arcs], np.int64)

    @property
    def slots(self) -> int:
        """Key slots that there is room for."""
        return self.engine.slots

    def found(self, events: Grouped, hits: Hits) -> Iterator[CompletedMatches]:  # noqa: ARG002
        """None yet: ``closed`` gives those of the batch, too."""
        self._unhindered = self._completed(*self.engine.at_once(), waited=False)
        return iter(())

    def _closing(self, limit: Ints | int, *, together: bool) -> CompletedMatches:  # noqa: ARG002
        return self._completed(*self.engine.closed(limit), waited=True)

    def _completed(self, events: Held, found: MaximalMatches, *, waited: bool) -> CompletedMatches:
        found = self._verified(events, in_order(events, found, self.labels, by_start=waited))
        first, last = found.id[found.offset[:-1]], found.id[found.offset[1:] - 1]
        return CompletedMatches(
            slot=events.slot[last],
            end=events.row[last],
            tick=events.tick[last],
            start=events.tick[first],
            errors=found.errors,
            final=self._final_of[found.arc[found.offset[1:] - 1]],
            offset=found.offset,
            id=events.id[found.id],
            arc=found.arc,
        )

    def _verified(self, events: Held, found: MaximalMatches) -> MaximalMatches:
        """The matches for which the conditions hold: each holds for a match if it does for one that this contains."""
        if not self._conditions or not len(found):
            return found
        variables = self.automaton.automaton.variables
        bindings = Bindings(variables, found.offset, events.id[found.id], self.labels[found.arc])
        good = np.ones(len(found), np.bool_)
        for condition in self._conditions:
            good = self._verifier.holds(condition, bindings, good)
        return found.take(np.flatnonzero(good))

    @property
    def waits_in(self) -> Ints:
        """The slots of matches that wait, or may."""
        return np.concatenate((super().waits_in, self.engine.pending_slots()))


def in_order(events: Held, found: MaximalMatches, labels: Ints, *, by_start: bool = False) -> MaximalMatches:
    """Put matches in order: by the events that complete them, errors, later start, later events.

    ``by_start``: by the ticks of their first events, then errors, then the events that complete them: the order in
    which matches become known that have waited.
    """
    if not len(found):
        return found
    first, last = found.id[found.offset[:-1]], found.id[found.offset[1:] - 1]
    lanes, places = int(found.errors.max()) + 1, len(events)
    is_later = (np.diff(events.tick, prepend=0) != 0) | (np.diff(events.slot, prepend=-1) != 0)
    first = np.maximum.accumulate(np.where(is_later, np.arange(places), 0))[first]  # the first one of its tick
    place = (first * lanes + found.errors) * places + last if by_start else last * lanes + found.errors
    order = _order(place)
    if not by_start:
        row = events.row[last[order]]  # the places of events are in order of rows only within a slot
        order = order[_order(row)]
    found, place = _taken(found, order), place[order]
    start = events.tick[found.id[found.offset[:-1]]]
    written = Found(np.arange(len(found)), start, found.offset, events.row[found.id], found.arc)
    sorted_ = scratch(len(found))
    sort_matches(written, len(found), groups(place, found.errors), labels, Limits(MOST, 1, 0), sorted_)
    return _taken(found, sorted_.order)


def _order(place: Ints) -> Ints:
    """Sort places; it is fast if they are nearly sorted."""
    is_sorted = bool((place[1:] >= place[:-1]).all())
    return np.arange(len(place)) if is_sorted else np.argsort(place, kind="stable")


def _taken(found: MaximalMatches, order: Ints) -> MaximalMatches:
    return found if (order[1:] > order[:-1]).all() else found.take(order)


class _OfMaximal(RunOutput):
    """Outputs of ``MaximalCells``."""

    finder: WalkedMatches

    def __init__(self, engine: MaximalCells, *parts: Any) -> None:
        super().__init__(cast("Runs", engine), *parts)  # of which it needs what both have

    def _advanced(self, events: Grouped, batch: StreamBatch, floors: Ints) -> Hits:  # noqa: ARG002
        self.finder.engine.add(events)
        none = np.zeros(0, np.int64)
        return Hits(none, none, none, none, none, none, none, none)

    @property
    def waits_until(self) -> int | None:
        """The tick that ``pass_time`` must be given for the next match that waits, or may; None where none does."""
        first, start = super().waits_until, self.finder.engine.first_pending()
        ends = None if start is None or self._is_count else start + self.engine.window + 1
        return earliest((first, ends))

    def as_if_ended(self) -> list[pa.Table]:
        """What ``finish`` would give if the stream ended now; it waits on."""
        engine = self.finder.engine
        done = engine.done.copy()
        tables = super().as_if_ended()
        engine.done = done
        return tables

    def _forget(self, batch: EventBatch) -> None:
        super()._forget(batch)
        if len(batch):
            now = self._now(batch)
            self.finder.engine.drop_before((now - 1 if isinstance(now, np.ndarray) else now) - 2 * self.engine.window)


class MaximalListing(_OfMaximal, RunListing):
    """Every maximal match, listed once."""


class MaximalPoints(_OfMaximal, RunPoints):
    """The events that complete maximal matches."""


class MaximalCounts(_OfMaximal, RunCounts):
    """How many maximal matches each event completes, by errors."""
