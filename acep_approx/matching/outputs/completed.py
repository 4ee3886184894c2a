"""From hits to matches: listed, tested once more where registers could not decide, each once, and in order.

A negation at the end of a pattern makes matches wait here until their window has closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from acep_approx.arrays import Bools, Ints, Ragged, extended, places
from acep_approx.automaton.automaton import START
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.engines.batches import Grouped
from acep_approx.engines.runs.lineage import Bound, Hits, WaysCounter, chosen, first_of_equal, listed
from acep_approx.engines.runs.runs import Runs
from acep_approx.kernels.runs import lineage as kernel_lineage
from acep_approx.kernels.runs.layout import ARC_BITS, ARC_MASK, LINK, LINK_HERE, LINKS
from acep_approx.matching.outputs.registers import MachineMatches
from acep_approx.matching.outputs.verify import Bindings, Verifier
from acep_approx.query.syntax import NON_OVERLAP
from acep_approx.ranges import COUNT, Range, check, check_arrays

LOGGED = ("slot", "row", "tick", "mask")


class GuardLog:
    """The events of the window that negations ask for and the kernel does not test.

    Attributes
    ----------
    letters : list of int
        Those of negations at the start, at the end, or with conditions on other events.
    on_arcs, on_finals : dict
        Per letter whether an arc, or a final, has to be tested for it.
    """

    def __init__(self, automaton: RegisterAutomaton) -> None:
        inner = automaton.automaton
        late = automaton.late_guards
        at_start = {j for arc in inner.arcs if arc.source == START for j in arc.guard}
        at_end = {j for final in inner.finals for j in final.guard}
        self.letters = sorted(at_start | at_end | (late & inner.guards))
        self.on_arcs = {
            j: np.array([j in arc.guard and (arc.source == START or j in late) for arc in inner.arcs], np.bool_)
            for j in self.letters
        }
        self.on_finals = {j: np.array([j in final.guard for final in inner.finals], np.bool_) for j in self.letters}
        negations = automaton.negations
        self.conditions = {j: negations.get(str(inner.letters[j].negated), ()) for j in self.letters}
        self.classes: list[int] = []
        self.slot, self.row, self.tick, self.mask = (np.zeros(0, np.int64) for _ in range(4))

    def add(self, events: Grouped) -> None:
        """Take in a batch; sorted by slot, then by row."""
        wanted = sum(1 << j for j in self.letters)
        masks = np.array([mask & wanted for mask in self.classes], np.uint64).view(np.int64)[events.cls]
        some = np.flatnonzero(masks)
        slot = np.concatenate((self.slot, events.slot[some]))
        row = np.concatenate((self.row, events.row[some]))
        order = np.lexsort((row, slot))
        self.slot, self.row = slot[order], row[order]
        self.tick = np.concatenate((self.tick, events.tick[some]))[order]
        self.mask = np.concatenate((self.mask, masks[some]))[order]

    def between(self, letter: int, slot: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """Pairs (gap, event) of a letter, the event's slot being the gap's and its row between low and high."""
        mine = np.flatnonzero((self.mask >> letter) & 1)
        # one number per event that is ordered as (slot, row): rows as their places among all rows
        rows = np.sort(self.row[mine])
        place = self.slot[mine] * (len(rows) + 2) + np.searchsorted(rows, self.row[mine]) + 1
        first = np.searchsorted(place, slot * (len(rows) + 2) + np.searchsorted(rows, low, side="right"), side="right")
        last = np.searchsorted(place, slot * (len(rows) + 2) + np.searchsorted(rows, high, side="left"), side="right")
        count = (last - first).clip(0)
        gap = np.repeat(np.arange(len(slot)), count)
        return gap, mine[places(first, count)]

    def forget(self, floor: Ints | int) -> None:
        """Let go of events with ticks before ``floor`` (per slot, or for all)."""
        keep = np.flatnonzero(self.tick >= (floor[self.slot] if isinstance(floor, np.ndarray) else floor))
        if len(keep) < len(self.row):
            for name in LOGGED:
                setattr(self, name, getattr(self, name)[keep])


RowOf = Callable[[Ints, Ints], Ints]
CHUNK = 1 << 18
"""Bound events that are listed at a time."""
HITS_AT_ONCE = 4096
FAR = 2**62
SLOT_BITS = 32
"""Labels stay below so many bits."""


@dataclass(frozen=True)
class CompletedMatches(Ragged):
    """Matches as columns; match ``m`` binds ``id[offset[m] : offset[m + 1]]`` by the arcs ``arc``, earliest first.

    ``end`` is the row that completes it, ``tick`` that row's tick, ``start`` the tick of its first event (both are
    numbers within the partition in count windows).
    """

    slot: Ints
    end: Ints
    tick: Ints
    start: Ints
    errors: Ints
    final: Ints
    offset: Ints
    id: Ints
    arc: Ints


class Finder:
    """Makes matches of hits.

    Parameters
    ----------
    automaton : RegisterAutomaton
    engine : Runs
    verifier : Verifier
        Sees all events in question.
    machine : MachineMatches
        What tells matches apart beside their events.
    """

    def __init__(
        self, automaton: RegisterAutomaton, engine: Runs, verifier: Verifier, machine: MachineMatches
    ) -> None:
        self.automaton = automaton
        self.engine = engine
        self.verifier = verifier
        self.recent = verifier.recent
        self.machine = machine
        machine.recent = self.recent
        self.window = engine.window
        self.non_overlap = automaton.query.selection == NON_OVERLAP
        self.is_simultaneous = automaton.is_simultaneous
        self.by_event = False  # whether the matches of one event must come together
        self.finds_best = False  # whether of the matches of one event only the first is asked for
        self.shares_events = False  # whether an event can be in several key slots: where many queries run as one
        self.waiting = CompletedMatches.joined([])
        self.log = GuardLog(automaton)
        self.last_end = np.full(1, -1, np.int64)
        arcs = automaton.automaton.arcs
        self.labels = np.array([arc.label for arc in arcs] or [0], np.int64)
        self._is_late = np.array([bool(final.guard) for final in automaton.automaton.finals], np.bool_)
        self._is_ambiguous = automaton.is_ambiguous or machine.hidden is not None
        self._simple = not automaton.needs_filter and not self._is_ambiguous
        self._ways = WaysCounter()

    @property
    def finds_one(self) -> bool:
        """Whether one match per event is enough: no other is asked for, or all runs of its partition end with it."""
        return (self.non_overlap or self.finds_best) and not self.automaton.needs_filter

    @property
    def counts_alone(self) -> bool:
        """Whether matches can be counted without being listed: each way along the links is one."""
        return self._simple and not self.non_overlap

    def count(self, events: Grouped, hits: Hits) -> Ints:
        """Number of matches per hit, where ``counts_alone``."""
        lows = self.engine.lows(events.tick[hits.event], events.slot[hits.event])
        return self._ways.count(self.engine.links, hits.link, lows)

    def found(self, events: Grouped, hits: Hits) -> Iterator[CompletedMatches]:
        """The matches that a batch completes, in order.

        Matches with a negation at their end are kept back; ``closed`` gives them.
        """
        if self.log.letters:
            self.log.add(events)
        late = []
        for part in self._listed(events, hits):
            ready = part if self._simple else self._verified(part)
            if self.automaton.has_late_ends:  # which of equal matches is good will be known when the window closes
                late.append(ready)
            elif len(ready):
                once = self._once(ready)
                yield once.take(self._apart(once)) if self.non_overlap else once
        if late:
            self.waiting = CompletedMatches.joined([self.waiting, *late])

    def closed(self, limit: Ints | int, row_of: RowOf | None = None) -> tuple[CompletedMatches, Ints, Bools]:
        """Matches that waited and whose window has closed: it ends before ``limit`` (per slot, or for all).

        Where no two may overlap, all but those that ``_at_once`` finds wait.

        Parameters
        ----------
        limit : int or int64, shape (slots,)
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
        waiting = self.waiting
        together = self.by_event and not self.non_overlap
        end_of_window = (waiting.tick if together else waiting.start) + self.window
        over = end_of_window < (limit[waiting.slot] if isinstance(limit, np.ndarray) else limit)
        at_once = self._at_once(waiting) if self.non_overlap else np.zeros(len(waiting), np.bool_)
        unhindered = waiting.take(np.flatnonzero(at_once))
        ready = waiting.take(np.flatnonzero(over & ~at_once))
        self.waiting = waiting.take(np.flatnonzero(~over & ~at_once))
        ready = self._once(ready.take(np.flatnonzero(~self._ends_badly(ready))))
        waited = np.arange(len(unhindered) + len(ready)) >= len(unhindered)
        ready = CompletedMatches.joined([unhindered, ready])
        last = ready.tick if together else ready.start
        moment = np.where(waited, last + self.window, ready.tick)
        known = moment
        if row_of is not None:  # the numbers of events of two partitions cannot be compared
            known = np.where(waited, FAR, ready.end)
            if isinstance(limit, np.ndarray):
                known[waited] = row_of(ready.slot[waited], moment[waited])
        order = np.lexsort((ready.end, -ready.start, ready.errors, ready.end * ~waited, waited, moment, known))
        ready, known, waited = ready.take(order), known[order], waited[order]
        if not self.non_overlap:
            return ready, known, waited
        kept = self._apart(ready)
        return ready.take(kept), known[kept], waited[kept]

    def _at_once(self, found: CompletedMatches) -> Bools:
        """Which matches are reported without waiting: where no way with a negation at the end has fewer errors.

        The other ways of one that was reported wait on: it overlaps them.
        """
        is_late = self._is_late[found.final]
        if is_late.all() or not self._is_ambiguous:
            return ~is_late
        # of equal matches the first is the one with the fewest errors, and with as many one that need not wait
        return ~is_late & first_of_equal(2 * found.errors + is_late, found.offset, found.id, self.labels[found.arc])

    def forget(self, floor: Ints | int) -> None:
        """Let go of events before ``floor`` (per slot, or for all)."""
        self.log.forget(floor)

    # --- listing --------------------------------------------------------------------------------------------

    def _listed(self, events: Grouped, hits: Hits) -> Iterator[CompletedMatches]:
        if self.finds_one:
            spells = bool(self.machine) or bool(self.automaton.transfers)
            best, bound = chosen(self.links(), hits, self.labels, spells=spells)
            yield self._found(events, best, bound)
            return
        if not (self._is_ambiguous or self.non_overlap or self.automaton.has_late_ends):
            yield from self._lists(events, hits, CHUNK)
            return
        for first, last in _whole_events(hits.event, HITS_AT_ONCE):
            some = Hits(*(getattr(hits, f.name)[first:last] for f in fields(Hits)))
            yield CompletedMatches.joined(list(self._lists(events, some, CHUNK >> 4)))

    def _lists(self, events: Grouped, hits: Hits, chunk: int) -> Iterator[CompletedMatches]:
        if not len(hits):
            return  # as after most events that are pushed alone
        lows = self.engine.lows(events.tick[hits.event], events.slot[hits.event])
        for bound in listed(self.links(), hits, lows, self.labels, chunk):
            yield self._found(events, hits, bound)

    def links(self) -> Ints:
        """The links of the engine with rows in the places of ids: these do not say which event came first."""
        links = self.engine.links
        if not len(self.recent.rows):
            return links
        links = links.copy()
        here = links[LINK_HERE : LINK * int(self.engine.control[LINKS]) : LINK]
        here[here >= 0] = (self.recent.rows_of(here[here >= 0] >> ARC_BITS) << ARC_BITS) | (here[here >= 0] & ARC_MASK)
        return links

    def _found(self, events: Grouped, hits: Hits, bound: Bound) -> CompletedMatches:
        event = hits.event[bound.hit]
        return CompletedMatches(
            slot=events.slot[event],
            end=events.row[event],
            tick=events.tick[event],
            start=bound.start,
            errors=hits.errors[bound.hit],
            final=hits.final[bound.hit],
            offset=bound.offset,
            id=self.recent.ids_of(bound.id),
            arc=bound.arc,
        )

    def _once(self, found: CompletedMatches) -> CompletedMatches:
        if not self._is_ambiguous or not len(found):
            return found
        offset, ids, label = found.offset, found.id, self.labels[found.arc]
        if self.machine:
            offset, ids, label = self.machine.told_apart(offset, ids, found.arc, label, found.end)
        if self.shares_events:
            label = label + (np.repeat(found.slot, np.diff(offset)) << SLOT_BITS)
        keep = first_of_equal(found.errors, offset, ids, label)
        kept = found.take(np.flatnonzero(keep))
        return kept.take(np.lexsort((kept.errors, kept.end)))

    def _apart(self, found: CompletedMatches) -> Ints:
        """The matches that do not overlap one that was reported before; they come in the order of report."""
        if len(found) and self.last_end.size <= found.slot.max():
            self.last_end = extended(self.last_end, 2 * int(found.slot.max()) + 2, -1)
        keep = np.zeros(len(found), np.bool_)
        first_row = self.recent.rows_of(found.id[found.offset[:-1]])
        kernel_lineage.not_overlapping(found.slot, first_row, found.end, self.last_end, keep)
        return np.flatnonzero(keep)

    # --- testing --------------------------------------------------------------------------------------------

    def _bindings(self, found: CompletedMatches) -> Bindings:
        return Bindings(self.automaton.automaton.variables, found.offset, found.id, self.labels[found.arc])

    def _verified(self, found: CompletedMatches) -> CompletedMatches:
        """Without the matches that a condition or a negation before their last event excludes."""
        if not self.automaton.needs_filter or not len(found):
            return found
        bindings = self._bindings(found)
        good = np.ones(len(found), np.bool_)
        for condition in self.automaton.filters:
            good = self.verifier.holds(condition, bindings, good)
        for letter in self.log.letters:
            match, low, high, since, until = self._gaps(found, letter)
            good[self._broken(letter, found, bindings, match, low, high, since, until)] = False
        return found.take(np.flatnonzero(good))

    def _gaps(self, found: CompletedMatches, letter: int) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """Where no event of a letter may lie: match, row before, row after, earliest and latest tick."""
        guarded = self.log.on_arcs[letter][found.arc]
        place = np.flatnonzero(guarded)
        match = np.repeat(np.arange(len(found)), np.diff(found.offset))[place]
        is_first = place == found.offset[match]
        row = self.recent.rows_of(found.id)
        low = np.where(is_first, -1, row[place - 1])
        since, until = np.where(is_first, found.tick[match] - self.window, -FAR), np.full(len(match), FAR)
        if self.is_simultaneous:  # strictly between in time
            ticks = self.recent.ticks[self.recent.find(found.id)]
            since, until = np.where(is_first, since, ticks[place - 1] + 1), ticks[place] - 1
        return match, low, row[place], since, until

    def _ends_badly(self, found: CompletedMatches) -> Bools:
        """Whether an event that a negation at the end excludes came before the window closed."""
        bad = np.zeros(len(found), np.bool_)
        if not len(found):
            return bad
        bindings = self._bindings(found)
        for letter in self.log.letters:
            match = np.flatnonzero(self.log.on_finals[letter][found.final])
            all_rows, since = np.full(len(match), FAR), found.tick[match] + self.is_simultaneous
            until = found.start[match] + self.window
            bad[self._broken(letter, found, bindings, match, found.end[match], all_rows, since, until)] = True
        return bad

    def _broken(
        self,
        letter: int,
        found: CompletedMatches,
        bindings: Bindings,
        match: Ints,
        low: Ints,
        high: Ints,
        since: Ints,
        until: Ints,
    ) -> Ints:
        """The matches in whose gaps an event of ``letter`` lies that satisfies its conditions."""
        gap, event = self.log.between(letter, found.slot[match], low, high)
        tick = self.log.tick[event]
        inside = (tick >= since[gap]) & (tick <= until[gap])
        gap, event = gap[inside], event[inside]
        conditions = self.log.conditions[letter]
        if conditions:
            variable = str(self.automaton.automaton.letters[letter].negated)
            ids = self.recent.ids_of(self.log.row[event])
            gap = gap[self.verifier.qualifies(conditions, bindings, match[gap], variable, ids)]
        return match[gap]

    # --- state ----------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Ints]:
        """The state as arrays."""
        waiting = {f"waiting_{f.name}": getattr(self.waiting, f.name) for f in fields(CompletedMatches)}
        log = {f"log_{name}": getattr(self.log, name) for name in LOGGED}
        return {**waiting, **log, "last_end": self.last_end}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take over a state; the engine has its own already.

        Raises
        ------
        DamagedError
            It is not as it can have been written.
        """
        slots, inner = self.engine.slots, self.automaton.automaton
        matches, bound = arrays["waiting_slot"].size, arrays["waiting_id"].size
        ranges = {f"waiting_{f.name}": Range(matches) for f in fields(CompletedMatches)} | {
            "waiting_slot": Range(matches, 0, slots),
            "waiting_errors": Range(matches, 0, inner.errors + 1),
            "waiting_final": Range(matches, 0, max(len(inner.finals), 1)),
            "waiting_offset": Range(matches + 1, 0, bound + 1),
            "waiting_id": Range(bound, 0, COUNT),
            "waiting_arc": Range(bound, 0, self.labels.size),
        }
        logged = arrays["log_slot"].size
        ranges |= {f"log_{name}": Range(logged) for name in LOGGED} | {"log_slot": Range(logged, 0, slots)}
        check_arrays(arrays, ranges | {"last_end": Range(min(arrays["last_end"].size, 2 * slots + 2), -1)})
        offset = arrays["waiting_offset"]
        check("waiting", good=offset[0] == 0 and offset[-1] == bound and (offset[1:] >= offset[:-1]).all())
        self.waiting = CompletedMatches(**{f.name: arrays[f"waiting_{f.name}"] for f in fields(CompletedMatches)})
        for name in LOGGED:
            setattr(self.log, name, arrays[f"log_{name}"])
        self.last_end = arrays["last_end"]


def no_row(slot: Ints, number: Ints) -> Ints:  # noqa: ARG001  (as of ``Neighbours.row_of``)
    """The rows of events that do not come."""
    return np.full(len(slot), FAR)


def _whole_events(event: Ints, size: int) -> Iterator[tuple[int, int]]:
    """Parts of about ``size`` hits that do not cut the hits of one event apart."""
    first = 0
    while first < len(event):
        last = min(first + size, len(event))
        while last < len(event) and event[last] == event[last - 1]:
            last += 1
        yield first, last
        first = last
