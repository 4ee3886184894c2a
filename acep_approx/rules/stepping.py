"""Circles of rules, run in the order of the stream: as many events together as cannot depend on one another.

Letters and columns are made for some events at once, as if nothing were written among them (``Ahead``). That holds
until an event names a row which was written since: from there on they are made again. So each event is tested with what
it must see, and nothing that was run is ever taken back.

Source: single-event-initiated execution, Wang et al., PVLDB 4(10) 2011, section 5.1. To make columns ahead, and to run
events together that name different rows, is ours.

Letters hold until an event reads a row that was written since. Of many rules the event that completes a match says
which row is written. So it is known beforehand which events can be run together: those none of which reads what another
one may write.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Ints
from acep_approx.events.stream import EventBatch
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.query.syntax import Expression
from acep_approx.rules.compiled import CompiledRule
from acep_approx.rules.doubt import TableDoubt
from acep_approx.rules.firing import Firing, OfBatch, OfEvents, Statement
from acep_approx.rules.log import TableLog
from acep_approx.rules.matched import Moment
from acep_approx.rules.stages import Detector, Found
from acep_approx.rules.unsure import Unsure

NEVER = -1
Named = tuple[str, tuple[Expression, ...]]
"""A table, and what names a row of it."""


@dataclass(frozen=True)
class Expected:
    """What a rule of a circle may write that is read in it, and whether the event that completes a match says where."""

    firing: Firing
    statements: list[Statement]
    is_known: bool

    @classmethod
    def of(cls, firing: Firing, tables: Collection[str]) -> Expected:
        """That of a rule, of which these tables are read."""
        rule, statements = firing.rule, [one for one in firing.statements if one.write.table in tables]
        is_known = not rule.is_late and all(rule.names_row(one.write) for one in statements)
        return cls(firing, statements, is_known)


class Readers:
    """Which events name which rows, of a detector: of each key by which a table is read.

    Parameters
    ----------
    detector : Detector
    """

    def __init__(self, detector: Detector) -> None:
        self.detector = detector
        self._by_key: dict[Named, tuple[int, set[str | None]]] = {}
        for number, read in enumerate(detector.reads):
            types = self._by_key.setdefault((read.table, read.keys), (number, set()))[1]
            for rule in detector.rules:
                types |= rule.types_reading(read)

    def all(self, rows: list[Ints]) -> dict[Named, Ints]:
        """The rows that events name, by key; ``rows`` are those of each column that is read."""
        return {key: rows[number] for key, (number, _) in self._by_key.items()}

    def that_matter(self, rows: list[Ints], batch: StreamBatch) -> list[tuple[str, Ints]]:
        """The same with their tables; negative for events of which no column that is read plays a role."""
        found = []
        for (table, _), (number, types) in self._by_key.items():
            own = rows[number]
            if None not in types:
                names, codes = batch.computed.truths.types
                own = np.where(np.array([*(name in types for name in names), False])[codes], own, NEVER)
            found.append((table, own))
        return found


class Ahead:
    """Some events with their letters and columns, made as if no event of theirs wrote what another one reads.

    Parameters
    ----------
    readers : Readers
    expected : mapping of int to Expected
        Of the rules that write in the circle.
    events : EventBatch
    rows : list of numpy.ndarray of int64
        Per column that is read the rows that the events name.
    """

    def __init__(
        self, readers: Readers, expected: Mapping[int, Expected], events: EventBatch, rows: list[Ints]
    ) -> None:
        self._detector = detector = readers.detector
        self._events = events
        self._batch: StreamBatch = detector.stream.begin(events, detector.derived(events, rows))
        self._rows = readers.that_matter(rows, self._batch)
        for pipeline in detector.pipelines:
            pipeline.prepare(self._batch)
        detector.stream.is_within = True
        self._fresh = len(events)
        self._classes = [self._batch.here(self._batch.computed.classes[one.preparer]) for one in detector.pipelines]
        self._named = {read.name: own for read, own in zip(detector.reads, rows, strict=True)}
        self._matters = [_counted(one, self._batch) for one in detector.pipelines]
        self._stops: list[Ints] = [np.array([len(events)])]
        self._writes: dict[str, list[tuple[Ints, Ints]]] = {}
        self._of = OfBatch(events, detector.stream.roles, readers.all(rows))
        for number, (rule, pipeline) in enumerate(zip(detector.rules, detector.pipelines, strict=True)):
            if rule.number in expected:
                may_complete = _may_complete(rule, pipeline, self._batch)
                if (watch := detector.watches[number]) is not None:
                    unsure = watch.readings.may_matter(self._batch)
                    may_complete = may_complete | watch.may_complete(self._batch, self._classes[number], unsure)
                self._expect(may_complete, expected[rule.number], self._of)
        self._written = self._last_written()

    def _expect(self, may_complete: Bools, expected: Expected, of: OfBatch) -> None:
        """Learn which rows a rule may write for which events; behind events of which this is not known is a stop."""
        if expected.is_known and not expected.statements:
            return
        at = np.flatnonzero(may_complete)
        if not expected.is_known:
            self._stops.append(at + 1)
            return
        for one in expected.statements:
            rows = expected.firing.row_of(one, OfEvents(of, at))
            self._writes.setdefault(one.write.table, []).append((at, rows))

    def _last_written(self) -> Ints:
        """Of each event the last one before it that may write what it reads."""
        last = np.full(len(self._events), NEVER)
        for table, named in self._rows:
            if table in self._writes:
                at, rows = (np.concatenate(parts) for parts in zip(*self._writes[table], strict=True))
                last = np.maximum(last, last_before(named, at, rows))
        return last

    def stops(self, found: Found) -> Ints:
        """Where to stop at the latest: behind each event of which it is not known what it may write; rising.

        Others are before events that come after windows which have closed.
        """
        waiting = [one for some in found.waiting.values() for one in some]
        stops = [*self._stops, *((one.of.place - 2 * self._events.first_row + 1) // 2 for one in waiting)]
        rising = np.unique(np.concatenate(stops))
        return rising[(rising > 0) & (rising <= len(self._events))]

    def until(self, first: int, last: int) -> int:
        """How far events from ``first`` on can be run together, at most up to ``last``."""
        blocked = self._written[first:last] >= first
        return first + int(blocked.argmax()) if blocked.any() else last

    def fresh_before(self, at: int, written: Mapping[str, Ints]) -> int:
        """The first event from ``at`` on that may read what was written since: its letters must be made again."""
        for table, rows in self._rows:
            if table in written:
                stale = np.isin(rows[at : self._fresh], written[table])
                self._fresh = at + int(stale.argmax()) if stale.any() else self._fresh
        return self._fresh

    def watched(self, first: int, last: int) -> list[Unsure | None]:
        """Which events read what is in doubt, rule by rule; before they are run."""
        piece = self._batch.piece(first, last - first)
        rows = {name: own[first:last] for name, own in self._named.items()}
        return [None if watch is None else watch.unsure(piece, rows) for watch in self._detector.watches]

    def take(self, first: int, last: int, unsure: list[Unsure | None]) -> None:
        """Note what may be missed, after they were run; ``unsure`` is what ``watched`` gave."""
        piece = self._batch.piece(first, last - first)
        rows = {key: own[first:last] for key, own in self._of.rows.items()}
        of = replace(self._of, batch=self._events.slice(first, last - first), rows=rows)
        for watch, classes, some in zip(self._detector.watches, self._classes, unsure, strict=True):
            if watch is not None and some is not None:
                watch.take(piece, classes[first:last], some, of)

    def run(self, first: int, last: int) -> Iterator[tuple[int, pa.Table]]:
        """Run events; those that play no role for a rule are passed over, where nothing is granted for them."""
        piece = self._batch.piece(first, last - first)
        for number, (pipeline, matters) in enumerate(zip(self._detector.pipelines, self._matters, strict=True)):
            if matters is None or matters[last] > matters[first]:
                for table in pipeline.run_piece(piece):
                    yield number, table


def last_before(named: Ints, at: Ints, rows: Ints) -> Ints:
    """Of each event the last one before it that may write the row which it names; -1 where there is none.

    Parameters
    ----------
    named : int64, shape (events,)
        The row that each event names; negative where it names none.
    at, rows : int64, shape (writes,)
        Which events may write, and which rows; in any order.

    Complexity: O((events + writes) log writes).

    Examples
    --------
    >>> import numpy as np
    >>> last_before(np.array([7, 8, 7, 7, -1]), np.array([2, 0, 4]), np.array([7, 7, -1])).tolist()
    [-1, -1, 0, 2, -1]
    """
    events = len(named)
    writes = np.concatenate(([NEVER], np.sort((rows * events + at)[rows >= 0])))
    found = writes[np.searchsorted(writes, named * events + np.arange(events)) - 1]
    return np.where((found >= 0) & (found // events == named), found % events, NEVER)


def _counted(pipeline: Pipeline, batch: StreamBatch) -> Ints | None:
    """How many of the first events play a role for a rule; None where it must see all."""
    if pipeline.sees_all or pipeline.engine.load_shedder is not None:
        return None
    return np.concatenate(([0], np.cumsum(pipeline.preparer.is_relevant(batch))))


def _may_complete(rule: CompiledRule, pipeline: Pipeline, batch: StreamBatch) -> Bools:
    """Of each event whether it may complete a match; all where windows may close with any event."""
    preparer = pipeline.preparer
    if rule.is_late and rule.plan.is_count_window:
        return np.ones(len(batch), np.bool_)
    completes = np.array([bool(mask & rule.last_letters) for mask in preparer.classes])
    return completes[batch.here(batch.computed.classes[preparer])]


FAR = 2**62
LEAST_AHEAD, MOST_AHEAD = 16, 4096
"""Fewest and most events whose letters are made at once."""


class SteppingStage:
    """Parts of rules that wait for one another in a circle: in the order of the stream, transaction by transaction.

    Parameters
    ----------
    detector : Detector, optional
        Of those that detect in the circle.
    firings : list of Firing
        Of those that fire in it, in the order of the file.
    logs : list of TableLog
        Of the tables that are read in it.
    wanted : list of numpy.ndarray of bool
        Per table the columns that the reads are computed from.
    doubts : list of TableDoubt, optional
        Of those of the tables that may be in doubt.
    """

    def __init__(
        self,
        detector: Detector | None,
        firings: list[Firing],
        logs: list[TableLog],
        wanted: list[Bools],
        doubts: Sequence[TableDoubt] = (),
    ) -> None:
        self.detector = detector
        self._firings = firings
        tables = {log.rows.table.name for log in logs}
        self._expected = {firing.rule.number: Expected.of(firing, tables) for firing in firings}
        self._readers = None if detector is None else Readers(detector)
        self._in_turn = any(firing.rule.when_reads or firing.rule.late_reads for firing in firings)
        self._logs = [*zip(logs, wanted, strict=True)]
        self._doubts = doubts
        watches = [] if detector is None else [watch for watch in detector.watches if watch is not None]
        self._shedders = [*filter(None, (watch.pipeline.engine.load_shedder for watch in watches))]
        # what waits for the end of a window leaves tables in doubt from the event on at which it was missed
        self._one_by_one = any(watch.rule.is_late and watch.writes for watch in watches)
        self._ahead = LEAST_AHEAD

    def run(self, batch: EventBatch, moment: Moment, found: Found) -> None:
        """Run a batch."""
        if self._readers is not None:
            rows, first = self._readers.detector.rows(batch), 0
            for shedder in self._shedders:
                shedder.begin_batch(len(batch))
            while first < len(batch):
                part = batch.slice(first, min([self._ahead, *(one.most_events for one in self._shedders)]))
                done = self._part(self._readers, part, [own[first : first + len(part)] for own in rows], moment, found)
                self._ahead = min(max(2 * done, LEAST_AHEAD), MOST_AHEAD)
                first += done
        self._fire(FAR, moment, found)  # without detector, and windows that the last event has closed
        self._bring_back()

    def close(self, before: int | None, moment: Moment, found: Found) -> None:
        """What waited for windows that end before a tick; for all windows where it is None."""
        if self.detector is not None:
            found.wait(self.detector.close(before, moment))
        self._fire(FAR, moment, found)
        self._bring_back()

    def _bring_back(self) -> None:
        for log, _ in self._logs:
            log.bring_back()
        for doubt in self._doubts:
            doubt.bring_back()

    def _part(self, readers: Readers, part: EventBatch, rows: list[Ints], moment: Moment, found: Found) -> int:
        """Run events up to the first that reads what was written among them; gives how many were run."""
        detector, begun = readers.detector, time.perf_counter()
        self._close_windows(detector, part, 0, moment, found)
        self._bring_up((2 * part.first_row + 1, 0, 0))
        self._written()
        ahead = Ahead(readers, self._expected, part, rows)
        stops, first, fresh = ahead.stops(found), 0, len(part)
        while first < len(part):
            if first:
                self._close_windows(detector, part, first, moment, found)
                fresh = ahead.fresh_before(first, self._written())
                if fresh == first:
                    break
            last = min(int(stops[np.searchsorted(stops, first, side="right")]), fresh)
            if (waits := detector.waits_until) is not None:
                last = min(last, max(first + 1, int(np.searchsorted(part.ticks, waits))))
            last = first + 1 if self._one_by_one else ahead.until(first, last)
            for doubt in self._doubts:
                doubt.do_before(2 * (part.first_row + first) + 1, 0, 0)
            unsure = ahead.watched(first, last)
            found.wait(detector.matched(ahead.run(first, last), moment))
            ahead.take(first, last, unsure)
            self._fire(2 * (part.first_row + last) - 1, moment, found)
            first = last
        detector.stream.end(int(part.ticks[first - 1]))
        for pipeline in detector.pipelines if self._shedders else ():
            if (shedder := pipeline.engine.load_shedder) is not None:
                shedder.end_piece(part.slice(0, first), pipeline.progress, time.perf_counter() - begun)
        return first

    def _written(self) -> dict[str, Ints]:
        noted = ((log.rows.table.name, log.take_noted()) for log, _ in self._logs)
        return {name: rows for name, rows in noted if rows is not None}

    def _close_windows(self, detector: Detector, part: EventBatch, at: int, moment: Moment, found: Found) -> None:
        """What windows cause that have closed before an event."""
        waits, tick = detector.waits_until, int(part.ticks[at])
        if waits is not None and waits <= tick:
            tables = [(n, table) for n, one in enumerate(detector.pipelines) for table in one.pass_time(tick)]
            found.wait(detector.matched(tables, moment))
        self._fire(2 * (part.first_row + at), moment, found)

    def _bring_up(self, to: tuple[int, int, int]) -> None:
        for doubt in self._doubts:  # first: they ask the logs what stood where before
            doubt.do_before(*to)
        for log, wanted in self._logs:
            log.do_before(*to, wanted)

    def _fire(self, place: int, moment: Moment, found: Found) -> None:
        """Fire for all matches whose transactions have at most this place."""
        if self._in_turn:
            self._take_turns(place, moment, found)
            return
        for firing in self._firings:
            for some in found.due(firing.rule.number, place):
                found.take(firing.rule.number, firing.fire(some, moment))

    def _take_turns(self, place: int, moment: Moment, found: Found) -> None:
        """The same, one transaction after the other: what one writes decides which matches of the next one act."""
        mine = [firing.rule.number for firing in self._firings]
        while waiting := [one for rule in mine for one in found.waiting.get(rule, ())]:
            now = min((int(one.of.place[0]), int(one.of.tick[0]), int(one.of.start[0])) for one in waiting)
            if now[0] > place:
                return
            self._bring_up(now)
            for firing in self._firings:
                for some in found.due(firing.rule.number, *now):
                    found.take(firing.rule.number, firing.fire(some, moment))
