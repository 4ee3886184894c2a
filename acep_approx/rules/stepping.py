"""Circles of rules, run in the order of the stream: as many events together as cannot depend on one another.

Letters and columns are made for some events at once, as if nothing were written among them (``ahead``). That holds
until an event names a row which was written since: from there on they are made again. So each event is tested with what
it must see, and nothing that was run is ever taken back.

Source: single-event-initiated execution, Wang et al., PVLDB 4(10) 2011, section 5.1. To make columns ahead, and to run
events together that name different rows, is ours.
"""

from __future__ import annotations

import numpy as np

from acep_approx.arrays import Bools, Ints
from acep_approx.events.stream import EventBatch
from acep_approx.rules.ahead import Ahead, Expected, Readers
from acep_approx.rules.firing import Firing
from acep_approx.rules.log import TableLog
from acep_approx.rules.matched import Moment
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
        tables = {log.rows.table.name for log in logs}
        self._expected = {firing.rule.number: Expected.of(firing, tables) for firing in firings}
        self._readers = None if detector is None else Readers(detector)
        self._in_turn = any(firing.rule.when_reads or firing.rule.late_reads for firing in firings)
        self._logs = [*zip(logs, wanted, strict=True)]
        self._ahead = LEAST_AHEAD

    def run(self, batch: EventBatch, moment: Moment, found: Found) -> None:
        """Run a batch."""
        if self._readers is not None:
            rows, first = self._readers.detector.rows(batch), 0
            while first < len(batch):
                part = batch.slice(first, self._ahead)
                done = self._part(self._readers, part, [own[first : first + len(part)] for own in rows], moment, found)
                self._ahead = min(max(2 * done, LEAST_AHEAD), MOST_AHEAD)
                first += done
        self._fire(FAR, moment, found)  # without detector, and windows that the last event has closed
        for log, _ in self._logs:
            log.bring_back()

    def close(self, before: int | None, moment: Moment, found: Found) -> None:
        """What waited for windows that end before a tick; for all windows where it is None."""
        if self.detector is not None:
            found.wait(self.detector.close(before, moment))
        self._fire(FAR, moment, found)
        for log, _ in self._logs:
            log.bring_back()

    def _part(self, readers: Readers, part: EventBatch, rows: list[Ints], moment: Moment, found: Found) -> int:
        """Run events up to the first that reads what was written among them; gives how many were run."""
        detector = readers.detector
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
            last = ahead.until(first, last)
            found.wait(detector.matched(ahead.run(first, last), moment))
            self._fire(2 * (part.first_row + last) - 1, moment, found)
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
        self._fire(2 * (part.first_row + at), moment, found)

    def _bring_up(self, to: tuple[int, int, int]) -> None:
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
