"""Circles of rules, run in the order of the stream: up to the next event that may complete a match, and what it causes.

Letters and columns are made for some events at once, as if nothing were written among them. That holds until an event
names a row which was written since: from there on they are made again. So each event is tested with what it must see,
and nothing that was run is ever taken back.

Source: single-event-initiated execution, Wang et al., PVLDB 4(10) 2011, section 5.1. To make columns ahead is ours.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Ints
from acep_approx.events.stream import EventBatch
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.rules.firing import Firing
from acep_approx.rules.log import TableLog
from acep_approx.rules.matched import Matched, Moment
from acep_approx.rules.pipeline import RulePipeline
from acep_approx.rules.stages import Detector, Found

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
    """

    def __init__(
        self, detector: Detector | None, firings: list[Firing], logs: list[TableLog], wanted: list[Bools]
    ) -> None:
        self.detector = detector
        self._firings = firings
        self._logs = [*zip(logs, wanted, strict=True)]
        self._ahead = LEAST_AHEAD

    def run(self, batch: EventBatch, moment: Moment, found: Found) -> None:
        """Run a batch."""
        if self.detector is None:
            self._take_turns((FAR, 0, 0), moment, found)
        else:
            rows, first = self.detector.rows(batch), 0
            while first < len(batch):
                part = batch.slice(first, self._ahead)
                done = self._part(self.detector, part, [own[first : first + len(part)] for own in rows], moment, found)
                self._ahead = min(max(2 * done, LEAST_AHEAD), MOST_AHEAD)
                first += done
            self._take_turns((FAR, 0, 0), moment, found)  # windows that the last event has closed
        for log, _ in self._logs:
            log.bring_back()

    def close(self, before: int | None, moment: Moment, found: Found) -> None:
        """What waited for windows that end before a tick; for all windows where it is None."""
        if self.detector is not None:
            found.wait(self.detector.close(before, moment))
        self._take_turns((FAR, 0, 0), moment, found)
        for log, _ in self._logs:
            log.bring_back()

    def _part(self, detector: Detector, part: EventBatch, rows: list[Ints], moment: Moment, found: Found) -> int:
        """Run events up to the first that reads what was written among them; gives how many were run."""
        self._close_windows(detector, part, 0, moment, found)
        self._bring_up((2 * part.first_row + 1, 0, 0))
        self._written()
        ahead = Ahead(detector, part, rows)
        cuts, first, fresh = ahead.cuts(found), 0, len(part)
        while first < len(part):
            if first:
                self._close_windows(detector, part, first, moment, found)
                fresh = ahead.fresh_before(first, self._written())
                if fresh == first:
                    break
            last = min(int(cuts[np.searchsorted(cuts, first, side="right")]), fresh)
            if (waits := detector.waits_until) is not None:
                last = min(last, max(first + 1, int(np.searchsorted(part.ticks, waits))))
            found.wait(detector.matched(ahead.run(first, last), moment))
            self._take_turns((2 * (part.first_row + last) - 1, FAR, FAR), moment, found)
            first = last
        detector.stream.end(int(part.ticks[first - 1]))
        return first

    def _written(self) -> dict[str, Ints]:
        """The rows that were written since the last call, by table."""
        noted = ((log.rows.table.name, log.take_noted()) for log, _ in self._logs)
        return {name: rows for name, rows in noted if rows is not None}

    def _close_windows(self, detector: Detector, part: EventBatch, at: int, moment: Moment, found: Found) -> None:
        """What windows cause that have closed before an event."""
        waits, tick = detector.waits_until, int(part.ticks[at])
        if waits is not None and waits <= tick:
            tables = [(n, table) for n, one in enumerate(detector.pipelines) for table in one.pass_time(tick)]
            found.wait(detector.matched(tables, moment))
        self._take_turns((2 * (part.first_row + at), FAR, FAR), moment, found)

    def _bring_up(self, to: tuple[int, int, int]) -> None:
        for log, wanted in self._logs:
            log.do_before(*to, wanted)

    def _take_turns(self, limit: tuple[int, int, int], moment: Moment, found: Found) -> None:
        """Fire for all matches up to a transaction, one transaction after the other."""
        mine = [firing.rule.number for firing in self._firings]
        while waiting := [one for rule in mine for one in found.waiting.get(rule, ())]:
            now = min((int(one.of.place[0]), int(one.of.tick[0]), int(one.of.start[0])) for one in waiting)
            if now > limit:
                return
            self._bring_up(now)
            for firing in self._firings:
                due, rest = _split(found.waiting.pop(firing.rule.number, []), now)
                if rest:
                    found.waiting[firing.rule.number] = rest
                for some in due:
                    found.take(firing.rule.number, firing.fire(some, moment))


class Ahead:
    """Some events with their letters and columns, made as if no event of theirs wrote what another one reads.

    Parameters
    ----------
    detector : Detector
    events : EventBatch
    rows : list of numpy.ndarray of int64
        Per column that is read the rows that the events name.
    """

    def __init__(self, detector: Detector, events: EventBatch, rows: list[Ints]) -> None:
        self._detector, self._events = detector, events
        self._rows = [*zip((read.table for read in detector.reads), rows, strict=True)]
        self._batch: StreamBatch = detector.stream.begin(events, detector.derived(events, rows))
        for pipeline in detector.pipelines:
            pipeline.prepare(self._batch)
        detector.stream.is_within = True
        self._fresh = len(events)
        self._matters = [_counted(one, self._batch) for one in detector.pipelines]

    def cuts(self, found: Found) -> Ints:
        """Where to stop: behind each event that may complete a match, before those that come after closed windows."""
        ends = [np.flatnonzero(_may_complete(one, self._batch)) + 1 for one in self._detector.pipelines]
        waiting = [one for some in found.waiting.values() for one in some]
        ends += [(one.of.place - 2 * self._events.first_row + 1) // 2 for one in waiting]
        cuts = np.unique(np.concatenate([*ends, [len(self._events)]]))
        return cuts[(cuts > 0) & (cuts <= len(self._events))]

    def fresh_before(self, at: int, written: dict[str, Ints]) -> int:
        """The first event from ``at`` on that may read what was written since: its letters must be made again."""
        for table, rows in self._rows:
            if table in written:
                stale = np.isin(rows[at : self._fresh], written[table])
                self._fresh = at + int(stale.argmax()) if stale.any() else self._fresh
        return self._fresh

    def run(self, first: int, last: int) -> Iterator[tuple[int, pa.Table]]:
        """Run events; those that play no role for a rule are passed over."""
        piece = self._batch.piece(first, last - first)
        for number, (pipeline, matters) in enumerate(zip(self._detector.pipelines, self._matters, strict=True)):
            if matters is None or matters[last] > matters[first]:
                for table in pipeline.run_piece(piece):
                    yield number, table


def _counted(pipeline: RulePipeline, batch: StreamBatch) -> Ints | None:
    """How many of the first events play a role for a rule; None where it must see all."""
    if pipeline.sees_all:
        return None
    return np.concatenate(([0], np.cumsum(pipeline.preparer.is_relevant(batch))))


def _may_complete(pipeline: RulePipeline, batch: StreamBatch) -> Bools:
    """Of each event whether it may complete a match; all where windows may close with any event."""
    rule, preparer = pipeline.rule, pipeline.preparer
    if rule.is_late and rule.plan.is_count_window:
        return np.ones(len(batch), np.bool_)
    completes = np.array([bool(mask & rule.last_letters) for mask in preparer.classes])
    return completes[batch.here(batch.computed.classes[preparer])]


def _split(waiting: list[Matched], now: tuple[int, int, int]) -> tuple[list[Matched], list[Matched]]:
    """Matches of a transaction, and of later ones."""
    due, rest = [], []
    for one in waiting:
        of = one.of
        n = 0
        while n < len(one) and (of.place[n], of.tick[n], of.start[n]) == now:
            n += 1
        if n:
            due.append(one.take(np.arange(n)) if n < len(one) else one)
        if n < len(one):
            rest.append(one.take(np.arange(n, len(one))))
    return due, rest
