"""A query over a stream that may still change, inside a load budget: what is run again is paid from the same budget.

A replay meets the prices that the events met at first, so it sheds the same runs. What it costs is taken from what is
left; where that does not suffice it sheds more. What was put out before stays as long as it is sure to hold: matches
that bind no event which was taken back, where further events take no match away; else those that a change cannot reach.
So after each push all that is put out is part of the exact answer, and the bound holds, replays inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.archive import Scope
from acep_approx.arrays import Bools, Ints
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.events.columns import to_numpy
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.renumber import renumbered
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.ranges import COUNT, TICK, check, number_in
from acep_approx.revisions.changelog import Changed, Changelog
from acep_approx.revisions.price_log import PriceLog
from acep_approx.revisions.replay import Replay
from acep_approx.revisions.segments import PlacedEvents, Segment, slots_in
from acep_approx.run.events import Events
from acep_approx.run.watermarks import ENDED, NEVER

SHORT = 64
"""Fewest events that a segment begins with: what is run again from its beginning on has a price."""
NOT_REACHED = 2**62
"""Later than every tick."""


class ReplayWithinBudget(Replay):
    """Runs one query over the tail of a stream, inside a load budget.

    Parameters
    ----------
    pipeline, changelog, id
        As for ``Replay``; the pipeline sheds.
    """

    runs_all_again = False

    def __init__(self, pipeline: Pipeline, changelog: Changelog, id: str | None = None) -> None:  # noqa: A002
        super().__init__(pipeline, changelog, id)
        self._arena.notes.keep(self._arena.worth)
        self._log = PriceLog()
        self._completed: list[Ints] = []  # places of the events that have completed a match
        self._gone = 0  # events that are taken back with the change at hand
        self._moved: list[tuple[Ints, Ints]] = []  # places of events, before and after they were given anew
        self._first: Ints = np.zeros(0, np.int64)  # per slot the first and the last tick that changes
        self._last: Ints = np.zeros(0, np.int64)
        self._is_monotone = _is_monotone(pipeline)
        self._is_local = self._reach < ENDED and not self._is_whole
        self._saved: tuple[list[Any], pa.RecordBatch, pa.RecordBatch] | None = None

    @property
    def _arena(self) -> Shedding:
        arena = self.pipeline.engine.shedding
        assert arena is not None, "it sheds"
        return arena

    # --- running --------------------------------------------------------------------------------------------

    def change(self, events: Events, removed: tuple[Ints, Ints]) -> Changed:
        """Take in a change of the stream; to a budget of time it is one batch, however it is run."""
        shedder, notes = self.pipeline.engine.load_shedder, self._arena.notes
        assert shedder is not None, "it sheds"
        self._gone = len(removed[1])
        shedder.begin_batch(len(events) + self._gone)
        notes.is_begun = True
        try:
            return super().change(events, removed)
        finally:
            notes.is_begun = False

    def _run_new(self, events: PlacedEvents, batch: StreamBatch) -> list[pa.Table]:
        progress, arena = self.pipeline.progress, self._arena
        before = progress.steps + arena.on_passes
        tables = super()._run_new(events, batch)
        self._note_completed()
        taken = progress.steps + arena.on_passes - before
        self._log.note(events.place, arena.notes.of_batch, arena.notes.versions, taken)
        return tables

    def _note_completed(self) -> None:
        if len(more := self._arena.notes.take_completed()):
            self._completed.append(more)

    def _completing(self) -> Ints:
        """The places of the events that have completed a match."""
        if len(self._completed) != 1:
            self._completed = [np.concatenate([np.zeros(0, np.int64), *self._completed])]
        return self._completed[0]

    def _insert(self, late: Events, slot: Ints) -> dict[int, list[PlacedEvents]]:
        shedder, progress = self.pipeline.engine.load_shedder, self.pipeline.progress
        assert shedder is not None, "it sheds"
        shedder.grant_late(len(late), self._gone)
        progress.events += len(late)
        progress.relevant += int((slot >= 0).sum())
        return super()._insert(late, slot)

    def _run_segment(self, number: int, events: PlacedEvents) -> list[pa.Table]:
        notes, progress = self._arena.notes, self.pipeline.progress
        counted = progress.events, progress.relevant
        notes.again = self._log.prices(events.place, self._arena.price)
        notes.is_new = ~np.isin(events.place, self._completing())
        try:
            return super()._run_segment(number, events)
        finally:
            self._note_completed()
            notes.again = None
            progress.events, progress.relevant = counted

    def _run_old(self, events: PlacedEvents, batch: StreamBatch) -> list[pa.Table]:
        """At the prices that they met at first, and by what runs were worth then."""
        arena, notes, tables = self._arena, self._arena.notes, list[pa.Table]()
        prices, is_new = notes.again, notes.is_new
        assert prices is not None, "they are run once more"
        version = self._log.versions(events.place, notes.version)
        ends = [*(np.flatnonzero(version[1:] != version[:-1]) + 1).tolist(), len(events)]
        for first, last in pairwise([0, *ends]):
            notes.again, notes.is_new = prices[first:last], is_new[first:last]
            with arena.once_more(int(version[first])):
                tables += self.pipeline.run(batch.piece(first, last - first))
        return tables

    # --- what stays though it is not found again ------------------------------------------------------------

    def _run_again(self, touched: dict[int, list[PlacedEvents]], changed: Changed) -> None:
        slots = max(self.pipeline.key_slots.slots, 1)
        self._first, self._last = np.full(slots, NOT_REACHED), np.full(slots, NEVER)
        for events in (part for some in touched.values() for part in some):
            mine = events.slot >= 0
            np.minimum.at(self._first, events.slot[mine], events.tick[mine])
            np.maximum.at(self._last, events.slot[mine], events.tick[mine])
        if self._is_monotone and not any(map(len, self.tail.removed)):
            touched = self._affordable(touched)
        if touched:
            super()._run_again(touched, changed)

    def _affordable(self, touched: dict[int, list[PlacedEvents]]) -> dict[int, list[PlacedEvents]]:
        """Of late events those of the keys whose replay should fit into what is left, the cheapest ones first.

        The others are shed: matches without them stay what they were, and so do the runs.
        """
        cost = np.zeros(len(self._last))
        for segment in self.tail.segments[min(touched) :]:
            events = segment.events
            mine = events.where(events.slot >= 0)
            is_reached = segment.since <= self._last[mine.slot] + self._reach
            np.add.at(cost, mine.slot[is_reached], self._log.steps(mine.place[is_reached]))
        slots = np.flatnonzero(self._last > NEVER)
        slots = slots[np.argsort(cost[slots], kind="stable")]
        fits = np.zeros(len(cost), np.bool_)
        fits[slots[np.cumsum(cost[slots]) <= self._arena.left]] = True
        kept = {number: [part.where(fits[part.slot]) for part in some] for number, some in touched.items()}
        return {number: [part for part in some if len(part)] for number, some in kept.items() if any(map(len, some))}

    @property
    def _least(self) -> int:
        return min(super()._least, SHORT)

    def _run_active(self, number: int, active: Bools, changed: Changed) -> None:
        gone, came = len(changed.gone), len(changed.came)
        super()._run_active(number, active, changed)
        new = changed.came[came:]
        for old in changed.gone[gone:]:
            lost = self._changelog.not_among(old, new)
            held = lost.filter(pa.array(self._holds(lost)))
            self.tail.segments[number].add_results([held])
            changed.came.append(held)

    def _holds(self, results: pa.Table) -> Bools:
        """Which results of before are matches, or match points, of the stream as it is now, whatever a replay finds."""
        if self._lets_wait or not results.num_rows:  # what waits may be there twice
            return np.zeros(results.num_rows, np.bool_)
        slot, end = slots_in(results), _ticks(results, "end")
        holds = np.zeros(results.num_rows, np.bool_)
        if self._is_local:
            start = _ticks(results, "start") if "start" in results.column_names else end - self.pipeline.window
            reach = self.pipeline.window
            holds |= (start - reach > self._last[slot]) | (end + reach < self._first[slot])
        if self._is_monotone:
            holds |= self._binds_none(results, [part.place for part in self.tail.removed])
        return holds

    def _binds_none(self, results: pa.Table, removed: Sequence[Ints]) -> Bools:
        """Which results bind none of some events."""
        gone = np.concatenate([np.zeros(0, np.int64), *removed])
        if not self.pipeline.output.binds:  # a match point may have other matches than that which it shows
            return np.full(results.num_rows, not len(gone))
        binds = np.zeros(results.num_rows, np.bool_)
        for name in self._changelog.places if len(gone) else ():
            column = results.column(name).combine_chunks()
            if pa.types.is_list(column.type):
                row = np.repeat(np.arange(len(column)), to_numpy(column.value_lengths()))
                binds[row[np.isin(to_numpy(column.flatten()), gone)]] = True
            else:
                binds |= np.isin(to_numpy(column.fill_null(-1)), gone)
        return ~binds

    # --- places ---------------------------------------------------------------------------------------------

    def _move(self, segment: Segment, places: Ints) -> None:
        before = segment.events.place
        self._log.move(before, places)
        known = self._completing()
        self._completed = [known[~np.isin(known, before)], places[np.isin(before, known)]]
        self._moved.append((before, places))
        super()._move(segment, places)

    def _place_anew(self, first: int, gap: int) -> None:
        """As before; but what was put out stays what it was, with the events at their new places."""
        segments = self.tail.segments[first:]
        results, waiting = [segment.results for segment in segments], self._waiting
        self._moved = []
        super()._place_anew(first, gap)
        before, after = (np.concatenate(side) for side in zip(*self._moved, strict=True))

        def place(old: Ints) -> Ints:
            at = np.minimum(np.searchsorted(before, old), len(before) - 1)
            return np.where(before[at] == old, after[at], old) if len(before) else old

        for segment, tables in zip(segments, results, strict=True):
            segment.results = [renumbered(table, self._changelog.places, place) for table in tables]
        self._waiting = [renumbered(table, self._changelog.places, place) for table in waiting]

    def settle(self, watermark: int) -> None:
        """No event before ``watermark`` will come or go: let go of what only they would have needed."""
        base = self.tail.base_place
        super().settle(watermark)
        if self.tail.base_place > base:
            self._log.forget(self.tail.base_place)
            self._arena.notes.forget(self._log.versions_met)
            known = self._completing()
            self._completed = [known[known > self.tail.base_place]]

    # --- state ----------------------------------------------------------------------------------------------

    def save(self, scope: Scope) -> None:
        """Save the prices, and what was put out: a replay may find other matches."""
        segments = self.tail.segments
        numbers = [
            [one.since, one.before, len(one), sum(table.num_rows for table in one.results)] for one in segments
        ]
        mine = scope.sub("budget", {"segments": numbers})
        self._log.save(mine)
        mine.put("completed", self._completing())
        for name, tables in (("results", [t for one in segments for t in one.results]), ("waiting", self._waiting)):
            mine.put(name, pa.concat_tables([self.pipeline.nothing(), *tables]).combine_chunks())

    def load(self, scope: Scope) -> None:
        """Take over what ``save`` saved, before ``take_up``."""
        mine = scope.parts["budget"]
        self._log.load(mine)
        check("version", good=set(self._log.versions_met.tolist()) <= self._arena.notes.worths.keys())
        self._completed = [mine.array("completed")]
        schema = self.pipeline.nothing().schema
        tables = [mine.batch("results"), mine.batch("waiting")]
        check("results", good=all(table.schema.equals(schema) for table in tables))
        self._saved = mine.head["segments"], tables[0], tables[1]

    def take_up(self, header: dict[str, int], passed: PlacedEvents, events: PlacedEvents) -> None:
        """Go on from a state: the tail is run once more, at the prices of before; it was paid for then."""
        assert self._saved is not None, "load first"
        super().take_up(header, passed, events.slice(0, 0))
        segments, results, waiting = self._saved
        self._saved, self._waiting = None, [pa.Table.from_batches([waiting])]
        _, slot = self._prepared(events, events.place, self._before)
        placed = PlacedEvents.of(events, events.place, slot)
        first = shown = 0
        with self.pipeline.engine.unpaid():
            for since, before, number, rows in segments:
                for name, value in (("before", before), ("events", number), ("results", rows)):
                    number_in(name, value, 0, COUNT)
                self._take_up_segment(number_in("since", since, NEVER, TICK), before, placed.slice(first, number))
                self.tail.segments[-1].add_results([pa.Table.from_batches([results.slice(shown, rows)])])
                first, shown = first + number, shown + rows
        self.pipeline.engine.report(self.pipeline.progress)
        check("segments", good=first == len(events) and shown == results.num_rows)
        last = self.tail.segments[-1].since if segments else NEVER  # all events of the last segment may have gone
        self.head = max(int(events.tick[-1]) if len(events) else NEVER, last)

    def _take_up_segment(self, since: int, before: int, events: PlacedEvents) -> None:
        segments = self.tail.segments
        if segments and self._lets_wait:
            list(self.pipeline.pass_time(since))
        snapshot = self._snapshot(since if segments else NEVER)
        segments.append(Segment(since, snapshot, before, [events]))
        self._run_segment(len(segments) - 1, events)
        self._before, self._since = before + len(events), len(events)


def _is_monotone(pipeline: Pipeline) -> bool:
    """Whether a further event takes no match away, and changes none."""
    automaton, output = pipeline.plan.registers, pipeline.output
    if automaton is None or automaton.automaton.errors or automaton.has_words or automaton.counted != "nothing":
        return False
    guards = [arc.guard for arc in automaton.automaton.arcs] + [final.guard for final in automaton.automaton.finals]
    has_guards = bool(automaton.negations) or any(guards)
    is_passive = all(map(automaton.is_passive, range(len(automaton.states))))
    is_shown_alike = output.binds or output.is_point
    chooses = pipeline.preparer.is_count or not pipeline.plan.query.selection.is_all
    return is_passive and is_shown_alike and not (has_guards or chooses or pipeline.plan.looks_to_the_start)


def _ticks(results: pa.Table, name: str) -> Ints:
    found: Ints = to_numpy(results.column(name).combine_chunks())
    return found
