"""What the runs engine puts out: listed matches, match points, or counts, as Arrow tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Ints, firsts
from acep_approx.engines.batches import Grouped, RunEvents
from acep_approx.engines.columns import Listed
from acep_approx.engines.engine import NO_WORDS
from acep_approx.engines.runs.lineage import Hits
from acep_approx.engines.runs.runs import Runs
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.matching.outputs.best import BestColumns
from acep_approx.matching.outputs.known import KnownMatches, no_row
from acep_approx.matching.outputs.matches import NO_MATCHES, CompletedMatches
from acep_approx.matching.outputs.output import NO_BATCH, Completed, Output, Points, Stamps
from acep_approx.matching.outputs.recent import Recent
from acep_approx.matching.outputs.tables import ENDS, BindingColumns, nothing_missing, sums
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.matching.tick_places import TickPlaces
from acep_approx.query.syntax import Expression
from acep_approx.ranges import COUNT

END_OF_STREAM = 2**62
MANY_ROWS = 1 << 16
"""Rows that are kept, in count windows, before it is looked which of them something still points to."""


class TooManyStepsError(Exception):
    """A run was given up: it took more run-steps than it was allowed."""


class RunOutput(Output):
    """Runs batches and turns what they complete into tables; the base of the three outputs.

    Parameters
    ----------
    engine : Runs
    finder : KnownMatches
    stamps : Stamps
    recent : Recent
        Events that results or late conditions may still ask for.
    bindings : BindingColumns, optional
        The columns of what matches bind, where tables show it.
    """

    def __init__(
        self,
        engine: Runs,
        finder: KnownMatches,
        stamps: Stamps,
        recent: Recent,
        bindings: BindingColumns | None = None,
    ) -> None:
        self.engine = engine
        self.finder = finder
        self.stamps = stamps
        self.recent = recent
        if bindings is not None:
            self.bindings = bindings
        finder.by_event = self.groups
        self._kept = 0
        self._neighbours = Neighbours.none()
        automaton = finder.automaton
        self.tick_places = (
            TickPlaces(by_partition=automaton.counted == "partition") if automaton.is_simultaneous else None
        )
        self.is_strict = automaton.counted == "stream"

    engine: Runs
    finder: KnownMatches
    bindings: BindingColumns

    roles: Roles | None = None
    """Where it matters when events began: the columns that say it."""

    _gives_up = False
    """Whether a run ends where the engine's limit of run-steps stops it."""

    @property
    def _is_count(self) -> bool:
        return self.stamps.preparer.is_count

    def run(self, events: Grouped, batch: StreamBatch, floors: Ints) -> Iterator[pa.Table]:
        """Run grouped events and give their results, in order of the rows that complete them."""
        if self._keeps_recent or batch.ids is not None:
            self.recent.add(events, batch)
        self.finder.log.classes = self.stamps.preparer.classes
        if self._needs_neighbours:
            self._neighbours = Neighbours.of(batch, self.stamps)
        hits = self._advanced(events, batch, floors)
        yield from self._results(events, hits)
        yield from self._closed(self._now(batch))
        self._forget(batch)

    def pass_time(self, tick: int) -> Iterator[pa.Table]:
        """What waited for windows that end before ``tick``, which the stream has reached."""
        if not self._is_count:
            yield from self._closed(tick)

    @property
    def waits_until(self) -> int | None:
        """The tick that ``pass_time`` must be given for the next match that waits; None where none does."""
        return None if self._is_count else self.finder.waits_until

    def finish(self) -> Iterator[pa.Table]:
        """What was still waiting at the end of the stream."""
        yield from self._closed(END_OF_STREAM)

    def end_keys(self, slots: Ints) -> Iterator[pa.Table]:
        """What waited in slots of keys whose streams have ended; nothing of them is held any more."""
        if not len(self.slots()):
            return
        limit = np.full(self.engine.slots, -END_OF_STREAM)
        limit[slots] = END_OF_STREAM
        yield from self._closed(limit, is_end=True)
        self.finder.forget(limit)

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""
        return self._table(NO_MATCHES, NO_MATCHES.end)

    def as_if_ended(self) -> list[pa.Table]:
        """What ``finish`` would give if the stream ended now; it waits on."""
        finder = self.finder
        if not finder.automaton.waits:
            return []
        waiting, held, before = finder.waiting, finder.held, finder.before.copied()
        tables = [table for table in self.finish() if table.num_rows]
        finder.waiting, finder.held = waiting, held
        finder.before.take_over(before)
        return tables

    def know(self, schema: pa.Schema) -> None:
        """The columns of the events have got wider types."""
        self.finder.machine.check(schema)

    def share_events(self) -> None:
        """An event can be in several key slots: many queries run as one."""
        self.finder.shares_events = True

    def give_up_after(self, steps: int) -> None:
        """Let ``run`` raise ``TooManyStepsError`` when the engine has taken so many run-steps."""
        self.engine.limit = min(steps, COUNT)
        self._gives_up = True

    def go_by_key(self) -> None:
        """Let what is remembered of times be of each key, so that one key can be brought back without the others."""
        if self.tick_places is not None and self.finder.automaton.counted != "stream":
            self.tick_places = TickPlaces(by_partition=True)

    def _advanced(self, events: Grouped, batch: StreamBatch, floors: Ints) -> Hits:
        run_events = self._run(events, batch, floors)
        hits = self.engine.hits(run_events)
        if self.engine.load_shedder is not None:
            self.engine.load_shedder.note_hits(run_events, hits)
        return hits

    def _run(self, events: Grouped, batch: StreamBatch, floors: Ints) -> RunEvents:
        self.engine.begin()
        expressions, at = self.engine.columns.expressions, events.at
        place = events.place
        if self.tick_places is not None:
            place = self.tick_places.of(batch.slots(self.stamps.preparer.key_columns), batch.ticks)[at]
        words = np.empty((len(expressions), len(at)), np.int64)
        for number, expression in enumerate(expressions):
            read = partial(self._is_read, len(batch), events, expression)
            np.take(batch.words(expression, read), at, out=words[number])
        start = events.tick if self.roles is None else batch.starts(self.roles)[at]
        run_events = RunEvents(events.slot, events.tick, start, events.cls, events.row, events.id, place, words)
        while not self.engine.advance(run_events, floors):
            if self._gives_up:
                raise TooManyStepsError
        return run_events

    def _is_read(self, rows: int, events: Grouped, expression: Expression) -> Bools:
        """Tell for each event of a batch whether the engine reads the value of an expression."""
        read = np.zeros(rows, np.bool_)
        read[events.at] = self.engine.tables.is_read(expression)[events.cls]
        return read

    def _results(self, events: Grouped, hits: Hits) -> Iterator[pa.Table]:
        for found in self.finder.found(events, hits):
            if len(found):
                yield self._table(found, self._moments(found))

    def _moments(self, found: CompletedMatches) -> Ints:
        """When matches became known that do not wait: with their last event, in each key slot."""
        return found.end * (int(found.slot.max()) + 1) + found.slot if self.finder.shares_events else found.end

    def _closed(self, limit: Ints | int, *, is_end: bool = False) -> Iterator[pa.Table]:
        """What waited for windows that end before ``limit`` (per slot, or for all).

        ``is_end``: the streams of some keys have ended, and no event in their slots says when.
        """
        if self.finder.automaton.waits:
            row_of = no_row if is_end else self._neighbours.row_of
            found, known, waited = self.finder.closed(limit, row_of if self._is_count else None)
            if len(found):
                yield self._waited_table(found, known, waited)

    def _table(self, found: CompletedMatches, known: Ints) -> pa.Table:
        """Matches, in order, of which those with the same number in ``known`` became known together."""
        raise NotImplementedError

    def _waited_table(self, found: CompletedMatches, known: Ints, waited: Bools) -> pa.Table:
        """The same where they may have ``waited``: those that have come behind others that became known then."""
        is_later = (known[1:] != known[:-1]) | (waited[1:] != waited[:-1])
        return self._table(found, np.concatenate(([0], np.cumsum(is_later))))

    # --- state ----------------------------------------------------------------------------------------------

    def slots(self) -> Ints:
        """Key slots that something still waits in, though they may have no runs."""
        return np.concatenate((self.finder.waits_in, self.finder.log.slot))

    def newest(self) -> Ints:
        """Per key slot the latest start of any run, or until when EVERY keeps its matches from being listed."""
        newest = super().newest()
        if self.finder.selection.every is None:
            return newest
        return np.maximum(newest, self.finder.before.in_force_until(len(newest)))

    def clear(self, slots: Ints) -> None:
        """Forget the runs of some key slots, and which matches of theirs were listed."""
        super().clear(slots)
        self.finder.before.clear(slots)

    def arrays(self) -> dict[str, Ints]:
        """The state of what is not in the engine, as arrays."""
        return {**self.finder.arrays(), **(self.tick_places.arrays() if self.tick_places else {})}

    def restore(self, arrays: dict[str, Ints]) -> None:
        """Take over a state; the engine has its own already, and so have the recent events.

        Raises
        ------
        DamagedError
            It is not as it can have been written.
        """
        self.finder.restore(arrays)
        if self.tick_places:
            self.tick_places.restore(arrays)

    # --- events that may still be asked for -----------------------------------------------------------------

    @property
    def _keeps_recent(self) -> bool:
        """Whether results or late conditions ask for columns, or for times: of windows of events, of negations.

        Where ids do not say in which order events came they do so, too.
        """
        asks_ticks = self._is_count or bool(self.finder.log.letters and self.finder.asks_ticks)
        return bool(self.recent.columns) or asks_ticks or bool(len(self.recent.rows))

    @property
    def _needs_neighbours(self) -> bool:
        """Whether it is asked which events of a batch follow one another in their partitions."""
        return self._is_count and self.finder.automaton.waits

    def _now(self, batch: EventBatch) -> Ints | int:
        """The tick up to which the stream is known; in count windows the number of the last event, per slot."""
        counters = self.stamps.preparer.counters
        return counters if self._is_count else int(batch.ticks[-1])

    def _forget(self, batch: EventBatch) -> None:
        if self._is_count:
            self.finder.forget(self.stamps.preparer.counters - 1 - self.engine.window)
            if self.forgets and self._keeps_recent and len(self.recent.ids) > 2 * self._kept + MANY_ROWS:
                self.recent.keep_only(self.reachable(NO_WORDS))
                self._kept = len(self.recent.ids)
        elif len(batch.ticks):
            floor = int(batch.ticks[-1]) - self.engine.window
            self.finder.forget(floor)
            if self.forgets and self._keeps_recent:  # points and counts wait for all matches of their event
                starts = np.concatenate((self.finder.waiting.start, self.finder.held.start))
                self.recent.drop_before(min(floor, int(starts.min(initial=floor))))

    def reachable(self, floors: Ints) -> Ints:  # noqa: ARG002  (links that left their windows are gone)
        """All events that something still points to."""
        finder = self.finder
        logged = self.recent.ids_of(finder.log.row)
        return np.concatenate((self.engine.ids(), logged, finder.waiting.id, finder.held.id))

    def _ticks(self, ids: Ints, known: Ints) -> pa.Array:
        """Times of events: the ticks ``known``, unless these are numbers of events."""
        return self.stamps.time(self._known_ticks(ids, known))

    def _known_ticks(self, ids: Ints, known: Ints) -> Ints:
        return self.recent.ticks[self.recent.find(ids)] if self._is_count else known


class RunListing(RunOutput):
    """Every match, listed once: key, errors, start, end, missing, then the variables (or what RETURN asks for)."""

    _per_hit = 2.0
    """Matches of a hit, as of the last batch."""

    def _results(self, events: Grouped, hits: Hits) -> Iterator[pa.Table]:
        if not self.finder.lists_alone:
            yield from super()._results(events, hits)
        elif len(hits):
            yield from self._listed(events, hits)

    def _listed(self, events: Grouped, hits: Hits) -> Iterator[pa.Table]:
        """The tables of ``_results``, from columns that the walk has written."""
        labels, placement = self.finder.labels, replace(self.bindings.placement, keeps_first=self._is_count)
        ends = self._known_ticks(events.id[hits.event], events.tick[hits.event])
        completed, matches = Completed(events.slot[hits.event], hits.errors, ends), 0
        for listed in self.finder.listed(events, hits, placement, int(self._per_hit * len(hits))):
            matches += len(listed)
            start = self._known_ticks(listed.first, listed.start)
            shown, errors = replace(listed, labels=labels[listed.labels]), completed.errors_of(listed)
            described = self.bindings.described(shown, errors, self.recent)
            yield self.stamps.matches(completed, listed, start, errors, described)
        self._per_hit = 1.1 * matches / len(hits)

    def _table(self, found: CompletedMatches, known: Ints) -> pa.Table:  # noqa: ARG002
        labels, placement = self.finder.labels[found.arc], self.bindings.placement
        listed = Listed.of(placement, found.end, found.start, found.offset, found.id, labels)
        registers = self.finder.machine.values(found.offset, found.id, found.arc)
        names_ends = self.stamps.is_raw and self.finder.machine.hidden is not None
        arcs = found.arc if self.finder.automaton.transfers else None
        ends = zip(ENDS, (listed.first, self.recent.ids_of(found.end)), strict=True) if names_ends else ()
        return pa.table(
            {
                **self.stamps.keys(found.slot),
                "errors": pa.array(found.errors),
                "start": self._ticks(listed.first, found.start),
                "end": self._ticks(self.recent.ids_of(found.end), found.tick),
                **self.bindings.described(listed, found.errors, self.recent, registers, arcs),
                **{name: pa.array(ids) for name, ids in ends},
            }
        )


def ended(events: Grouped, hits: Hits) -> CompletedMatches:
    """Hits as matches of which only the ends are known."""
    none = np.zeros(len(hits) + 1, np.int64)
    return CompletedMatches(
        slot=events.slot[hits.event],
        end=events.row[hits.event],
        tick=events.tick[hits.event],
        start=hits.start,
        errors=hits.errors,
        final=hits.final,
        offset=none,
        id=none[:0],
        arc=none[:0],
    )


class RunPoints(RunOutput):
    """Match points: key, errors (the least), start (the latest at that), end, row; then what their best matches show.

    In a count window instead of start: span, in events, and position, the number of the event in its partition.
    ``best``: makes the last columns, where there are any.
    """

    groups = True

    def __init__(
        self, engine: Runs, finder: KnownMatches, stamps: Stamps, recent: Recent, best: BestColumns | None = None
    ) -> None:
        super().__init__(engine, finder, stamps, recent)
        self._best_columns = best
        finder.finds_best = best is not None and best.needs_match

    @property
    def points_engine(self) -> Runs | None:
        """The engine that tells match points without a list of matches; None where matches are listed."""
        return None if self.engine.keeps_lineage else self.engine

    def points(self, events: Grouped, batch: StreamBatch, floors: Ints) -> Points:
        """Run grouped events and give the points that they make, slot by slot; not where matches are listed."""
        assert not self.engine.keeps_lineage, "then points are those of matches"
        run_events = self._run(events, batch, floors)
        if self.engine.load_shedder is not None:
            self.engine.load_shedder.note_hits(run_events, self.engine.hits(run_events))
        event, errors, start = self.engine.best_hits()
        self._forget(batch)
        return Points(events.slot[event], events.row[event], events.tick[event], start, errors)

    def _results(self, events: Grouped, hits: Hits) -> Iterator[pa.Table]:
        parts = self.finder.found(events, hits) if self.engine.keeps_lineage else [ended(events, hits)]
        best = [part.take(self._best(part, self._moments(part))) for part in parts if len(part)]
        found = CompletedMatches.joined(best)
        if len(found):
            yield self._table(found, self._moments(found))

    @staticmethod
    def _best(found: CompletedMatches, known: Ints) -> Ints:
        order = np.lexsort((-found.start, found.errors, found.end, known))
        return order[firsts(known[order], found.end[order])]

    def _table(self, found: CompletedMatches, known: Ints) -> pa.Table:
        best = found.take(self._best(found, known))
        return self._points_table(Points(best.slot, best.end, best.tick, best.start, best.errors), self._more(best))

    def _more(self, found: CompletedMatches) -> dict[str, pa.Array]:
        """What the matches show of which the events of all are known if anything depends on these."""
        if self._best_columns is None or not self._best_columns.needs_match:
            return self._constant(len(found))
        labels, placement = self.finder.labels[found.arc], self._best_columns.bindings.placement
        listed = Listed.of(placement, found.end, found.start, found.offset, found.id, labels)
        registers = self.finder.machine.values(found.offset, found.id, found.arc)
        arcs = found.arc if self.finder.automaton.transfers else None
        return self._best_columns.of(listed, found.errors, self.recent, registers, arcs)

    def points_table(self, points: Points) -> pa.Table:
        """Points as a table, where there is a ``points_engine``: then their columns depend on no match."""
        return self._points_table(points, self._constant(len(points.row)))

    def _constant(self, points: int) -> dict[str, pa.Array]:
        return {"missing": nothing_missing(points)} if self._best_columns is not None else {}

    def _points_table(self, points: Points, more: dict[str, pa.Array]) -> pa.Table:
        ids = self.recent.ids_of(points.row)
        return self.stamps.points(points, self._ticks(ids, points.tick), ids, self.recent.take, more)


class RunCounts(RunOutput):
    """How many matches each match point completes, by number of errors: key, errors, end, row, matches, at_least."""

    groups = True

    def _results(self, events: Grouped, hits: Hits) -> Iterator[pa.Table]:
        if self.finder.counts_alone:
            parts = [(ended(events, hits), self.finder.count(events, hits))] if len(hits) else []
        else:  # parts are summed as they come: memory for all matches of an event is not needed
            listed = (part for part in self.finder.found(events, hits) if len(part))
            parts = [self._summed(part, self._moments(part), np.ones(len(part), np.int64)) for part in listed]
        found = CompletedMatches.joined([part for part, _ in parts])
        if len(found):
            matches = np.concatenate([numbers for _, numbers in parts])
            yield self._counted(*self._summed(found, self._moments(found), matches))

    @staticmethod
    def _summed(found: CompletedMatches, known: Ints, matches: Ints) -> tuple[CompletedMatches, Ints]:
        """One of the matches of each event and number of errors, and how many there are."""
        order = np.lexsort((found.errors, found.end, known))
        first = firsts(known[order], found.end[order], found.errors[order])
        return found.take(order[first]), sums(matches[order], first)

    def _table(self, found: CompletedMatches, known: Ints) -> pa.Table:
        return self._counted(*self._summed(found, known, np.ones(len(found), np.int64)))

    def _counted(self, found: CompletedMatches, matches: Ints) -> pa.Table:
        ids, take = self.recent.ids_of(found.end), self.recent.take
        return self.stamps.counts(found.slot, found.errors, self._ticks(ids, found.tick), ids, take, matches)


UNKNOWN = 2**62
"""When something comes that has not come yet."""


class Neighbours:
    """All events of a batch, also those that no letter holds on, by slot.

    Parameters
    ----------
    batch : EventBatch
    slot : numpy.ndarray of int64
        Per event; -1 where it is in no partition.
    counters : numpy.ndarray of int64
        Events per slot so far, this batch included; empty where windows are of time.
    """

    def __init__(self, batch: EventBatch, slot: Ints, counters: Ints) -> None:
        self.first_row = batch.first_row
        self._rows = batch.rows
        self._ticks = batch.ticks
        self._order = np.argsort(slot, kind="stable")[int((slot < 0).sum()) :]  # by slot, then by row
        self._slot = slot[self._order]
        self._counters = counters

    @classmethod
    def none(cls) -> Neighbours:
        """No events."""
        empty = np.zeros(0, np.int64)
        return cls(NO_BATCH, empty, empty)

    @classmethod
    def of(cls, batch: StreamBatch, stamps: Stamps) -> Neighbours:
        """The events of a batch that ``preparer`` has just seen."""
        preparer = stamps.preparer
        counters = preparer.counters if preparer.is_count else np.zeros(0, np.int64)
        return cls(batch, batch.slots(preparer.key_columns), counters)

    def last_at(self, tick: Ints) -> Ints:
        """The last rows up to some ticks: of this batch, or the one before it."""
        return self.first_row + np.searchsorted(self._ticks, tick, side="right") - 1

    def in_stream(self, slot: Ints, last: Ints) -> Ints:
        """When the event after row ``last`` came: its tick, or how many of ``slot`` came before it."""
        found = np.full(len(last), UNKNOWN)
        place = last + 1 - self.first_row
        known = np.flatnonzero(place < len(self._ticks))
        place = place[known]
        if not self._counters.size:
            found[known] = self._ticks[place]
            return found
        # an event of another slot comes when the next one of this slot would
        size, mine = len(self._ticks), slot[known]
        ahead = np.searchsorted(self._slot * size + self._order, mine * size + place)
        found[known] = self._counters[mine] - (np.searchsorted(self._slot, mine, side="right") - ahead)
        return found

    def in_partition(self, slot: Ints, last: Ints) -> Ints:
        """When the first event of ``slot`` after row ``last`` came: its tick, or its number."""
        found = np.full(len(last), UNKNOWN)
        size = len(self._ticks) + 1
        place = np.searchsorted(
            self._slot * size + self._order, slot * size + (last - self.first_row).clip(-1), side="right"
        )
        known = np.flatnonzero(place < len(self._order))
        known = known[self._slot[place[known]] == slot[known]]
        place = place[known]
        found[known] = self._numbers(place) if self._counters.size else self._ticks[self._order[place]]
        return found

    def _numbers(self, place: Ints) -> Ints:
        """The numbers within their slots of the events at some places of the order by slot."""
        slot = self._slot[place]
        return self._counters[slot] - (np.searchsorted(self._slot, slot, side="right") - place)

    def row_of(self, slot: Ints, number: Ints) -> Ints:
        """The rows of the events of these numbers within their slots; they are in this batch."""
        place = np.searchsorted(self._slot, slot, side="right") - (self._counters[slot] - number)
        return self._order[place] + self.first_row if self._rows is None else self._rows[self._order[place]]
