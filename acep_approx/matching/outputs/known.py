"""Complete matches as they become known: put in order, chosen among, and kept where they wait.

A negation at the end of a pattern makes matches wait until their window has closed, and so does MAXIMAL.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from acep_approx.arrays import Bools, Ints
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.engines.batches import Grouped
from acep_approx.engines.columns import Listed, Placement
from acep_approx.engines.runs.lineage import Hits
from acep_approx.matching.outputs.guard_log import LOGGED, GuardLog
from acep_approx.matching.outputs.matches import NO_MATCHES, CompletedMatches
from acep_approx.matching.outputs.recent import Recent
from acep_approx.matching.outputs.registers import MachineMatches
from acep_approx.matching.outputs.selection import ListedBefore
from acep_approx.ranges import COUNT, Range, check, check_arrays

RowOf = Callable[[Ints, Ints], Ints]
FAR = 2**62


class KnownMatches(ABC):
    """Puts matches in order, and lists those that the clauses of the query leave.

    Parameters
    ----------
    automaton : RegisterAutomaton
    window : int
        In ticks, or in events for a count window.
    is_count : bool
        Whether it counts events.
    recent : Recent
        The events that matches name.
    machine : MachineMatches
        What tells matches apart beside their events.
    every : int, default 0
        The length of EVERY in ticks of time.

    Attributes
    ----------
    waiting : CompletedMatches
        Those that wait for the end of their window.
    held : CompletedMatches
        Those that are listed, and wait for the others of their event: see ``by_event``.
    before : ListedBefore
        What is known of those that were listed.
    by_event : bool
        Whether the matches of one event must come together.
    finds_best : bool
        Whether of the matches of one event only the first is asked for.
    waits_for : int
        So long after its last event a match is known at the latest, at most the window.
    shares_events : bool
        Whether an event can be in several key slots: where many queries run as one.
    """

    def __init__(
        self,
        automaton: RegisterAutomaton,
        window: int,
        recent: Recent,
        machine: MachineMatches,
        every: int = 0,
        *,
        is_count: bool,
    ) -> None:
        self.automaton = automaton
        self.window = window
        self.is_count = is_count
        self.recent = recent
        self.machine = machine
        machine.recent = recent
        self.selection = automaton.query.selection
        self.is_simultaneous = automaton.is_simultaneous
        self.by_event = self.shares_events = self.finds_best = False
        self.waits_for = window
        self.waiting = self.held = self._unhindered = NO_MATCHES
        self.log = GuardLog(automaton)
        arcs, variables = automaton.automaton.arcs, automaton.automaton.variables
        self.labels = np.array([arc.label for arc in arcs] or [0], np.int64)
        self.before = ListedBefore(self.selection, every, self.labels, variables, self.recent)
        self.before.hidden = machine.hidden

    @property
    def asks_ticks(self) -> bool:
        """Whether negations ask for the times of the events that matches bind."""
        return self.is_simultaneous

    @property
    def counts_alone(self) -> bool:
        """Whether matches can be counted without being listed."""
        return False

    def count(self, events: Grouped, hits: Hits) -> Ints:
        """Number of matches per hit, where ``counts_alone``."""
        raise NotImplementedError

    @property
    def lists_alone(self) -> bool:
        """Whether matches can be listed as columns at once."""
        return False

    def listed(self, events: Grouped, hits: Hits, placement: Placement, expected: int) -> Iterator[Listed]:
        """The matches of some hits as columns, where ``lists_alone``; so many are ``expected``."""
        raise NotImplementedError

    @property
    @abstractmethod
    def slots(self) -> int:
        """Key slots that there is room for."""

    @abstractmethod
    def found(self, events: Grouped, hits: Hits) -> Iterator[CompletedMatches]:
        """The matches that a batch completes, in order.

        Where matches may wait all are kept back; ``closed`` gives them.
        """

    @abstractmethod
    def _closing(self, limit: Ints | int, *, together: bool) -> CompletedMatches:
        """The matches that waited, and whose windows end before ``limit``; ``together``: as for ``_is_over``."""

    def _freed(self) -> CompletedMatches:
        """Matches that need not wait."""
        freed, self._unhindered = self._unhindered, NO_MATCHES
        return freed

    def closed(self, limit: Ints | int, row_of: RowOf | None = None) -> tuple[CompletedMatches, Ints, Bools]:
        """Matches that are known by now: their window ends before ``limit``, or they need not wait.

        Parameters
        ----------
        limit : int or int64, shape (slots,)
            For all slots, or for each.
        row_of : callable, optional
            In count windows: gives for slots, and numbers of events in them, the rows of these.

        Returns
        -------
        CompletedMatches
            In order: as they became known, then by errors, later start, end.
        numpy.ndarray of int64
            When each became known: a tick; in count windows a row, ``FAR`` at the end of the stream.
        numpy.ndarray of bool
            Which of them waited.
        """
        together = self._closes_together
        unhindered = self._freed()
        closing = self._closing(limit, together=together)
        waited = np.arange(len(unhindered) + len(closing)) >= len(unhindered)
        ready = CompletedMatches.joined([unhindered, closing])
        ready, known, waited = self._in_order(ready, waited, limit, row_of, together=together)
        if self.selection.depends_on_order:
            kept = self.before.chosen(ready, is_count=self.is_count)
            ready, known, waited = ready.take(kept), known[kept], waited[kept]
        if not self.by_event or self.selection.is_all or self.before.one_per_event:
            return ready, known, waited
        return self._with_event(ready, waited, limit, row_of)

    def _with_event(
        self, ready: CompletedMatches, waited: Bools, limit: Ints | int, row_of: RowOf | None
    ) -> tuple[CompletedMatches, Ints, Bools]:
        """What ``closed`` gives where the matches of one event must come together: when all of them are known."""
        waits = waited | (not self.selection.maximal)  # of maximal matches all of one event wait, or none
        held = CompletedMatches.joined([self.held, ready.take(np.flatnonzero(waits))])
        over = self._is_over(held, limit, together=True)
        self.held = held.take(np.flatnonzero(~over))
        at_once = ready.take(np.flatnonzero(~waits))
        ready = CompletedMatches.joined([at_once, held.take(np.flatnonzero(over))])
        return self._in_order(ready, np.arange(len(ready)) >= len(at_once), limit, row_of, together=True)

    def _is_over(self, found: CompletedMatches, limit: Ints | int, *, together: bool) -> Bools:
        """Whether windows end before ``limit``; ``together``: those of all matches that end with the same event."""
        end = self.known_at(found, together=together)
        is_over: Bools = end < (limit[found.slot] if isinstance(limit, np.ndarray) else limit)
        return is_over

    @property
    def _closes_together(self) -> bool:
        """Whether matches of one event wait for one another: where all are listed they do so from the beginning."""
        return self.by_event and self.selection.is_all

    @property
    def waits_until(self) -> int | None:
        """The limit with which ``closed`` gives the next match that waits; None where none does, but for rows."""
        waiting = self.known_at(self.waiting, together=self._closes_together)
        ends = np.concatenate((waiting, self.known_at(self.held, together=True)))
        return int(ends.min()) + 1 if len(ends) else None

    def known_at(self, found: CompletedMatches, *, together: bool = False) -> Ints:
        """The tick with which all has come that can exclude a match; ``together``: all that end with its event."""
        last = found.tick + self.waits_for
        return last if together else np.minimum(last, found.start + self.window)

    def _in_order(
        self, found: CompletedMatches, waited: Bools, limit: Ints | int, row_of: RowOf | None, *, together: bool
    ) -> tuple[CompletedMatches, Ints, Bools]:
        """Matches in their order, when each became known, and which have waited."""
        moment = np.where(waited, self.known_at(found, together=together), found.tick)
        known = moment
        if row_of is not None:  # the numbers of events of two partitions cannot be compared
            known = np.where(waited, FAR, found.end)
            if isinstance(limit, np.ndarray):
                known[waited] = row_of(found.slot[waited], moment[waited])
        keys = [found.end, -found.start, found.errors, found.end * ~waited, waited, moment, known]
        falls = _falls(keys)
        falls[waited[1:] != waited[:-1]] = False
        is_merged = row_of is None and not falls.any()  # both parts are in order: then the time tells
        order = np.argsort(known, kind="stable") if is_merged else np.lexsort(keys)
        return found.take(order), known[order], waited[order]

    def forget(self, floor: Ints | int) -> None:
        """Let go of events before ``floor`` (per slot, or for all)."""
        self.log.forget(floor)
        self.before.forget(floor)

    @property
    def waits_in(self) -> Ints:
        """The slots of matches that wait."""
        return np.concatenate((self.waiting.slot, self.held.slot))

    # --- state ----------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Ints]:
        """The state as arrays."""
        waiting = {
            f"{name}_{f.name}": getattr(getattr(self, name), f.name)
            for name in ("waiting", "held")
            for f in fields(CompletedMatches)
        }
        log = {f"log_{name}": getattr(self.log, name) for name in LOGGED}
        return {**waiting, **log, **self.before.arrays()}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take over a state; the engine has its own already.

        Raises
        ------
        DamagedError
            It is not as it can have been written.
        """
        slots, logged = self.slots, arrays["log_slot"].size
        ranges = {f"log_{name}": Range(logged) for name in LOGGED} | {"log_slot": Range(logged, 0, slots)}
        check_arrays(arrays, ranges)
        self.waiting, self.held = (self._restored(arrays, name) for name in ("waiting", "held"))
        for name in LOGGED:
            setattr(self.log, name, arrays[f"log_{name}"])
        self.before.restore(arrays, slots)

    def _restored(self, arrays: dict[str, Any], name: str) -> CompletedMatches:
        inner = self.automaton.automaton
        mine = {f.name: arrays[f"{name}_{f.name}"] for f in fields(CompletedMatches)}
        matches, bound, offset = mine["slot"].size, mine["id"].size, mine["offset"]
        ranges = {f.name: Range(matches) for f in fields(CompletedMatches)} | {
            "slot": Range(matches, 0, self.slots),
            "errors": Range(matches, 0, inner.errors + 1),
            "final": Range(matches, 0, max(len(inner.finals), 1)),
            "offset": Range(matches + 1, 0, bound + 1),
            "id": Range(bound, 0, COUNT),
            "arc": Range(bound, 0, self.labels.size),
        }
        check_arrays(mine, ranges)
        check(name, good=offset[0] == 0 and offset[-1] == bound and (offset[1:] >= offset[:-1]).all())
        return CompletedMatches(**mine)


def _falls(keys: list[Any]) -> Bools:
    """Tell which rows should stand before the row in front of them; the last of ``keys`` is compared first."""
    falls = np.zeros(max(len(keys[0]) - 1, 0), np.bool_)
    for key in keys:
        falls = (key[:-1] > key[1:]) | ((key[:-1] == key[1:]) & falls)
    return falls


def no_row(slot: Ints, number: Ints) -> Ints:  # noqa: ARG001  (as of ``Neighbours.row_of``)
    """The rows of events that do not come."""
    return np.full(len(slot), FAR)
