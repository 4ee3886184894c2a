"""From hits to matches: listed, tested once more where registers could not decide, each once, and in order.

A negation at the end of a pattern makes matches wait here until their window has closed, and so does MAXIMAL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from acep_approx.arrays import Bools, Ints, places
from acep_approx.automaton.automaton import START
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.engines.batches import Grouped
from acep_approx.engines.runs.lineage import (
    Bound,
    Hits,
    WaysCounter,
    chosen,
    first_of_equal,
    firsts_of_equal,
    listed,
)
from acep_approx.engines.runs.runs import Runs
from acep_approx.kernels.runs.layout import ARC_BITS, ARC_MASK, LINK, LINK_HERE, LINKS
from acep_approx.matching.outputs.matches import NO_MATCHES, CompletedMatches
from acep_approx.matching.outputs.maximal import Followers, contained
from acep_approx.matching.outputs.registers import MachineMatches
from acep_approx.matching.outputs.selection import ListedBefore
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
    """

    def __init__(
        self, automaton: RegisterAutomaton, engine: Runs, verifier: Verifier, machine: MachineMatches, every: int = 0
    ) -> None:
        self.automaton = automaton
        self.engine = engine
        self.verifier = verifier
        self.recent = verifier.recent
        self.machine = machine
        machine.recent = self.recent
        self.window = engine.window
        self.selection = automaton.query.selection
        self.is_simultaneous = automaton.is_simultaneous
        self.by_event = False  # whether the matches of one event must come together
        self.shares_events = False  # whether an event can be in several key slots: where many queries run as one
        self.waiting = self.held = self._unhindered = NO_MATCHES
        self.log = GuardLog(automaton)
        arcs, variables = automaton.automaton.arcs, automaton.automaton.variables
        self.labels = np.array([arc.label for arc in arcs] or [0], np.int64)
        self.before = ListedBefore(self.selection, every, self.labels, variables, self.recent)
        self.before.hidden = machine.hidden
        self._followers = Followers(automaton.automaton)
        self._is_late = np.array([bool(final.guard) for final in automaton.automaton.finals], np.bool_)
        self._is_ambiguous = automaton.is_ambiguous or machine.hidden is not None
        self._simple = not automaton.needs_filter and not self._is_ambiguous
        self._ways = WaysCounter()

    @property
    def finds_one(self) -> bool:
        """Whether one match per event is enough, because all runs of its partition end with it."""
        return self.selection == NON_OVERLAP and not self.automaton.needs_filter

    @property
    def counts_alone(self) -> bool:
        """Whether matches can be counted without being listed: each way along the links is one."""
        return self._simple and self.selection.is_all

    def count(self, events: Grouped, hits: Hits) -> Ints:
        """Number of matches per hit, where ``counts_alone``."""
        lows = self.engine.lows(events.tick[hits.event], events.slot[hits.event])
        return self._ways.count(self.engine.links, hits.link, lows)

    def found(self, events: Grouped, hits: Hits) -> Iterator[CompletedMatches]:
        """The matches that a batch completes, in order.

        Where matches may wait all are kept back; ``closed`` gives them.
        """
        if self.log.letters:
            self.log.add(events)
        kept = []
        for part in self._listed(events, hits):
            ready = part if self._simple else self._verified(part)
            if self.automaton.has_late_ends:  # which of equal matches is good will be known when the window closes
                kept.append(ready)
            elif len(ready):
                once = self._once(ready)
                if self.selection.maximal:
                    kept.append(once)
                else:
                    yield self._allowed(once)
        if not kept:
            return
        waiting = CompletedMatches.joined([self.waiting, *kept])
        if self.automaton.has_late_ends:
            self.waiting = waiting
            return
        new = np.arange(len(self.waiting), len(waiting))
        left = np.flatnonzero(~self._contained(waiting, new))
        waits = (left < len(self.waiting)) | self._can_be_followed(events, waiting.take(left))
        self.waiting, self._unhindered = waiting.take(left[waits]), waiting.take(left[~waits])

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
        together = self.by_event and self.selection.is_all
        unhindered = self._freed()
        over = self._is_over(self.waiting, limit, together=together)
        closing = self.waiting.take(np.flatnonzero(over))
        self.waiting = self.waiting.take(np.flatnonzero(~over))
        if self.automaton.has_late_ends:
            closing = self._once(closing.take(np.flatnonzero(~self._ends_badly(closing))))
            if self.selection.maximal and len(closing):  # all that these contain is complete
                both = CompletedMatches.joined([closing, self.waiting])
                left = np.flatnonzero(~self._contained(both, np.arange(len(closing))))
                closing, self.waiting = both.take(left[left < len(closing)]), both.take(left[left >= len(closing)])
        waited = np.arange(len(unhindered) + len(closing)) >= len(unhindered)
        ready = CompletedMatches.joined([unhindered, closing])
        ready, known, waited = self._in_order(ready, waited, limit, row_of, together=together)
        if self.selection.depends_on_order:
            kept = self.before.chosen(ready, is_count=self.engine.is_count)
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
        end = (found.tick if together else found.start) + self.window
        is_over: Bools = end < (limit[found.slot] if isinstance(limit, np.ndarray) else limit)
        return is_over

    def _in_order(
        self, found: CompletedMatches, waited: Bools, limit: Ints | int, row_of: RowOf | None, *, together: bool
    ) -> tuple[CompletedMatches, Ints, Bools]:
        """Matches in their order, when each became known, and which have waited."""
        moment = np.where(waited, (found.tick if together else found.start) + self.window, found.tick)
        known = moment
        if row_of is not None:  # the numbers of events of two partitions cannot be compared
            known = np.where(waited, FAR, found.end)
            if isinstance(limit, np.ndarray):
                known[waited] = row_of(found.slot[waited], moment[waited])
        order = np.lexsort((found.end, -found.start, found.errors, found.end * ~waited, waited, moment, known))
        return found.take(order), known[order], waited[order]

    def _freed(self) -> CompletedMatches:
        """Matches that need not wait, and of those that wait none that are other ways to read one of these."""
        if self.selection.maximal:
            freed, self._unhindered = self._unhindered, NO_MATCHES
            return freed
        if not self.selection.depends_on_order:
            return NO_MATCHES
        at_once, decided = self._at_once(self.waiting)
        freed = self.waiting.take(np.flatnonzero(at_once))
        self.waiting = self.waiting.take(np.flatnonzero(~decided))
        return freed

    def _at_once(self, found: CompletedMatches) -> tuple[Bools, Bools]:
        """Which matches are reported without waiting: where no way with a negation at the end has fewer errors.

        And which of all are ways to read one of these.
        """
        is_late = self._is_late[found.final]
        if is_late.all() or not self._is_ambiguous:
            return ~is_late, ~is_late
        # of equal matches the first is the one with the fewest errors, and with as many one that need not wait
        errors, labels = 2 * found.errors + is_late, self.labels[found.arc]
        first = firsts_of_equal(errors, found.offset, found.id, labels)
        return ~is_late & (first == np.arange(len(found))), ~is_late[first]

    def _can_be_followed(self, events: Grouped, found: CompletedMatches) -> Bools:
        """Whether the last event of each match, if it is one of ``events``, can be followed by another one."""
        order = np.lexsort((events.row, events.slot))
        rows = np.unique(events.row)

        def place(slot: Ints, row: Ints) -> Ints:
            return slot * (len(rows) + 1) + np.searchsorted(rows, row)

        at = np.searchsorted(place(events.slot, events.row)[order], place(found.slot, found.end))
        classes = events.cls[order[at.clip(max=len(order) - 1)]]
        can_be: Bools = self._followers.of(self.log.classes)[classes]
        return can_be

    def _contained(self, found: CompletedMatches, which: Ints) -> Bools:
        """Which matches are contained in one of some of them."""
        return contained(which, found.slot, *self.before.events(found))

    def _allowed(self, found: CompletedMatches) -> CompletedMatches:
        """Without those that the matches listed before exclude."""
        if not self.selection.depends_on_order:
            return found
        return found.take(self.before.chosen(found, is_count=self.engine.is_count))

    def forget(self, floor: Ints | int) -> None:
        """Let go of events before ``floor`` (per slot, or for all)."""
        self.log.forget(floor)
        self.before.forget(floor)

    @property
    def waits_in(self) -> Ints:
        """The slots of matches that wait."""
        return np.concatenate((self.waiting.slot, self.held.slot))

    # --- listing --------------------------------------------------------------------------------------------

    def _listed(self, events: Grouped, hits: Hits) -> Iterator[CompletedMatches]:
        if self.finds_one:
            best, bound = chosen(self.links(), hits, self.labels)
            yield CompletedMatches.joined([self._found(events, best, one) for one in bound])
            return
        if self.selection.is_all and not (self._is_ambiguous or self.automaton.has_late_ends):
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
        slots, logged = self.engine.slots, arrays["log_slot"].size
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
            "slot": Range(matches, 0, self.engine.slots),
            "errors": Range(matches, 0, inner.errors + 1),
            "final": Range(matches, 0, max(len(inner.finals), 1)),
            "offset": Range(matches + 1, 0, bound + 1),
            "id": Range(bound, 0, COUNT),
            "arc": Range(bound, 0, self.labels.size),
        }
        check_arrays(mine, ranges)
        check(name, good=offset[0] == 0 and offset[-1] == bound and (offset[1:] >= offset[:-1]).all())
        return CompletedMatches(**mine)


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
