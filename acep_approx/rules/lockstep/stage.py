"""A circle of rules on its way through a batch: the kernel finds what completes matches, then these are listed.

Source: what is found is that of SEI, Wang, Rundensteiner and Ellison, PVLDB 4(10) 2011, section 5.1: one event at a
time. Deviations: matches are listed for a whole batch, once it is known which class each event had for each rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.events.columns import encode_text
from acep_approx.events.stream import EventBatch
from acep_approx.kernels.rules.lockstep import HIT_ERRORS, HIT_EVENT, HIT_START
from acep_approx.matching.outputs.of_cells import Points
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.rules.firing import Firing
from acep_approx.rules.lockstep.loop import Loop, Ran
from acep_approx.rules.lockstep.pipeline import LockstepPipeline
from acep_approx.rules.lockstep.questions import Live
from acep_approx.rules.matched import Matched, Moment, matched
from acep_approx.rules.stages import Detector, Found
from acep_approx.rules.values import OfBatch
from acep_approx.rules.words import from_words


class LockstepStage:
    """Parts of rules that wait for one another in a circle, run in one kernel.

    Parameters
    ----------
    detector : Detector
        With pipelines of the kind ``LockstepPipeline``.
    firings : sequence of Firing
        Of the same rules.
    live : mapping of str to Live
        The columns that the rules read and write, by name.
    loop : Loop
    """

    def __init__(self, detector: Detector, firings: Sequence[Firing], live: Mapping[str, Live], loop: Loop) -> None:
        self.detector = detector
        self._firings = firings
        self._live = live
        self._loop = loop

    def run(self, batch: EventBatch, moment: Moment, found: Found) -> None:
        """Run a batch."""
        stream, rows = self.detector.stream, self.detector.rows(batch)
        shown = [name for name in self._live if name in stream.derived]
        nothing = {name: pa.nulls(len(batch), stream.schema.field(name).type) for name in shown}
        events = stream.begin(batch, self.detector.derived(batch, rows, nothing))
        stream.is_within = True
        named = {read.name: own for read, own in zip(self.detector.reads, rows, strict=True)}
        columns: dict[int, Ints] = {one.rows_of: named[name] for name, one in self._live.items()}
        by_key = {(read.table, read.keys): named[read.name] for read in self.detector.reads}
        given = OfBatch(batch, stream.roles, by_key)
        ran = self._loop.run(events, given, [columns[number] for number in sorted(columns)])
        seen = self._with_reads(events, ran)
        for number, firing in enumerate(self._firings):
            some = self._matches(number, seen, ran, moment)
            if some is not None:
                known = self._loop.known(number, ran, given)
                found.take(firing.rule.number, firing.fire(some, moment, known))
        stream.end(int(events.ticks[-1]))

    def close(self, before: int | None, moment: Moment, found: Found) -> None:  # noqa: ARG002
        """Nothing waits; keys that are silent are forgotten."""
        if before is not None:
            for _ in self.detector.close(before, moment):
                pass

    def _with_reads(self, events: StreamBatch, ran: Ran) -> StreamBatch:
        """The events with the columns that results show."""
        if not ran.saw:
            return events
        columns = dict(zip(events.data.schema.names, events.data.columns, strict=True))
        for name, (words, ok) in ran.saw.items():
            live = self._live[name]
            columns[name] = encode_text(from_words(words, ok, live.holds, live.log.rows.texts))
        data = pa.RecordBatch.from_pydict(columns)
        return StreamBatch(EventBatch(events.first_row, events.ticks, data), events.computed)

    def _matches(self, number: int, events: StreamBatch, ran: Ran, moment: Moment) -> Matched | None:
        """The matches of a rule in order; None where there are none."""
        pipeline = self.detector.pipelines[number]
        assert isinstance(pipeline, LockstepPipeline), "it was made for this"
        hits = ran.of[number]
        if pipeline.lists:
            table = pipeline.joined(pipeline.run_classes(events, ran.classes[number]))
            if not table.num_rows:
                return None
        else:
            pipeline.progress.events += len(events)
            if not len(hits):
                return None
            table = self._points(pipeline, events, hits, ran.numbers.get(number, events.ticks))
        return matched(pipeline.rule, table, pipeline.window, moment)

    def _points(self, pipeline: LockstepPipeline, events: StreamBatch, hits: Ints, ticks: Ints) -> pa.Table:
        """Hits as results."""
        hits = np.ascontiguousarray(hits.T)
        at = hits[HIT_EVENT]
        slot = events.slots(pipeline.key_slots.columns)[at]
        points = Points(slot, hits[HIT_ERRORS], hits[HIT_START], ticks[at], at, events.first_row + at)
        return pipeline.points.table(points, events)
