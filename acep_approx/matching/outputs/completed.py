"""From hits to matches: listed, tested once more where registers could not decide, each once, and in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields

import numpy as np

from acep_approx.arrays import Bools, Ints
from acep_approx.automaton.lengths import followed_letters, with_letters
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.engines.batches import Grouped
from acep_approx.engines.columns import Listed, Placement
from acep_approx.engines.runs.lineage import (
    Bound,
    Hits,
    WaysCounter,
    chosen,
    first_of_equal,
    firsts_of_equal,
    listed,
    spelled,
)
from acep_approx.engines.runs.runs import Runs
from acep_approx.kernels.runs.layout import ARC_BITS, ARC_MASK, LINK, LINK_HERE, LINKS
from acep_approx.matching.outputs.guard_log import Gaps
from acep_approx.matching.outputs.known import FAR, KnownMatches
from acep_approx.matching.outputs.matches import CompletedMatches
from acep_approx.matching.outputs.maximal import contained
from acep_approx.matching.outputs.registers import MachineMatches
from acep_approx.matching.outputs.verify import Bindings, Verifier
from acep_approx.query.syntax import NON_OVERLAP

CHUNK = 1 << 18
"""Bound events that are listed at a time."""
HITS_AT_ONCE = 4096
SLOT_BITS = 32
"""Labels stay below so many bits."""


class Finder(KnownMatches):
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
    spans : mapping of str to int, optional
        The windows of negations that have one of their own, by variable, in ticks.
    """

    def __init__(
        self,
        automaton: RegisterAutomaton,
        engine: Runs,
        verifier: Verifier,
        machine: MachineMatches,
        every: int = 0,
        spans: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(automaton, engine.window, verifier.recent, machine, every, is_count=engine.is_count)
        letters, own = enumerate(automaton.automaton.letters), spans or {}
        self.spans = {j: own[str(letter.negated)] for j, letter in letters if letter.negated in own}
        self.waits_for = min(engine.window, waits_for(automaton, self.spans))
        self.engine = engine
        self.verifier = verifier
        self._is_late = np.array([bool(final.guard) for final in automaton.automaton.finals], np.bool_)
        self._followed = followed_letters(automaton.automaton)
        self._is_ambiguous = automaton.is_ambiguous or machine.hidden is not None
        self._simple = not automaton.needs_filter and not self._is_ambiguous
        self._ways = WaysCounter()

    @property
    def slots(self) -> int:
        """Key slots that there is room for."""
        return self.engine.slots

    @property
    def asks_ticks(self) -> bool:
        """Whether negations ask for the times of the events that matches bind."""
        return super().asks_ticks or bool(self.spans)

    @property
    def finds_one(self) -> bool:
        """Whether one match per event is enough: no other is asked for, or all runs of its partition end with it."""
        is_enough = self.selection == NON_OVERLAP or (self.finds_best and self.selection.is_all)
        return is_enough and not self.automaton.needs_filter

    @property
    def counts_alone(self) -> bool:
        """Whether matches can be counted without being listed: each way along the links is one."""
        return self._simple and self.selection.is_all

    def count(self, events: Grouped, hits: Hits) -> Ints:
        """Number of matches per hit, where ``counts_alone``."""
        lows = self.engine.lows(events.tick[hits.event], events.slot[hits.event])
        return self._ways.count(self.engine.links, hits.link, lows)

    @property
    def lists_alone(self) -> bool:
        """Whether each way along the links is a match of which nothing else is asked than its events and its ends.

        Links have the ids of these, too: else they are those of rows.
        """
        is_plain = not self.machine and not self.automaton.transfers and not len(self.recent.rows)
        return is_plain and self.counts_alone and not self.log.letters

    def listed(self, events: Grouped, hits: Hits, placement: Placement, expected: int) -> Iterator[Listed]:
        """The matches of some hits as columns, where ``lists_alone``; what they say of labels is said of arcs."""
        lows = self.engine.lows(events.tick[hits.event], events.slot[hits.event])
        return listed(self.engine.links, hits, lows, self.labels, placement, CHUNK, expected)

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

    def _closing(self, limit: Ints | int, *, together: bool) -> CompletedMatches:
        """The matches that waited, and whose windows end before ``limit``."""
        over = self._is_over(self.waiting, limit, together=together)
        closing = self.waiting.take(np.flatnonzero(over))
        self.waiting = self.waiting.take(np.flatnonzero(~over))
        if self.automaton.has_late_ends:
            closing = self._once(closing.take(np.flatnonzero(~self._ends_badly(closing))))
            if self.selection.maximal and len(closing):  # all that these contain is complete
                both = CompletedMatches.joined([closing, self.waiting])
                left = np.flatnonzero(~self._contained(both, np.arange(len(closing))))
                closing, self.waiting = both.take(left[left < len(closing)]), both.take(left[left >= len(closing)])
        return closing

    def _freed(self) -> CompletedMatches:
        """Matches that need not wait, and of those that wait none that are other ways to read one of these."""
        if self.selection.maximal or not self.selection.depends_on_order:
            return super()._freed()
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
        can_be: Bools = with_letters(self.log.classes, self._followed)[classes]
        return can_be

    def _contained(self, found: CompletedMatches, which: Ints) -> Bools:
        """Which matches are contained in one of some of them."""
        return contained(which, found.slot, *self.before.events(found))

    def _allowed(self, found: CompletedMatches) -> CompletedMatches:
        """Without those that the matches listed before exclude."""
        if not self.selection.depends_on_order:
            return found
        return found.take(self.before.chosen(found, is_count=self.is_count))

    # --- listing --------------------------------------------------------------------------------------------

    def _listed(self, events: Grouped, hits: Hits) -> Iterator[CompletedMatches]:
        if self.finds_one:
            spells = bool(self.machine) or bool(self.automaton.transfers)
            best, bound = chosen(self.links(), hits, self.labels, spells=spells)
            yield self._found(events, best, bound)
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
        for bound in spelled(self.links(), hits, lows, self.labels, chunk):
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
            good[self._broken(letter, bindings, self._gaps(found, letter))] = False
        return found.take(np.flatnonzero(good))

    def _gaps(self, found: CompletedMatches, letter: int) -> Gaps:
        """Where no event of a letter may lie before the last event of a match."""
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
        if (span := self.spans.get(letter)) is not None:
            ticks = self.recent.ticks[self.recent.find(found.id)]
            since = np.where(is_first, np.maximum(since, ticks[place] - span), since)
            until = np.where(is_first, until, np.minimum(until, ticks[place - 1] + span))
        return Gaps(match, found.slot[match], low, row[place], since, until)

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
            if (span := self.spans.get(letter)) is not None:
                until = np.minimum(until, found.tick[match] + span)
            gaps = Gaps(match, found.slot[match], found.end[match], all_rows, since, until)
            bad[self._broken(letter, bindings, gaps)] = True
        return bad

    def _broken(self, letter: int, bindings: Bindings, gaps: Gaps) -> Ints:
        """The matches in whose gaps an event of ``letter``, or a sequence, lies that satisfies its conditions."""
        gap, events = self.log.found(letter, gaps)
        match = gaps.match[gap]
        conditions = self.log.conditions[letter]
        if conditions:
            ids = {name: self.recent.ids_of(self.log.row[event]) for name, event in events.items()}
            match = match[self.verifier.qualifies(conditions, bindings, match, ids)]
        return match


def waits_for(automaton: RegisterAutomaton, spans: Mapping[int, int]) -> int:
    """How long after its last event a match can be excluded, however it is read; ``FAR`` where the window says it.

    Larger matches, which MAXIMAL waits for, come in the whole window.
    """
    at_end = {letter for final in automaton.automaton.finals for letter in final.guard}
    is_short = at_end and at_end <= spans.keys() and not automaton.query.selection.maximal
    return max(spans[letter] for letter in at_end) if is_short else FAR


def _whole_events(event: Ints, size: int) -> Iterator[tuple[int, int]]:
    """Parts of about ``size`` hits that do not cut the hits of one event apart."""
    first = 0
    while first < len(event):
        last = min(first + size, len(event))
        while last < len(event) and event[last] == event[last - 1]:
            last += 1
        yield first, last
        first = last
