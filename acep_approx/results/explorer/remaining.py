"""The events that remain of a stream whose events are late, change or are taken back, as a page reads them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.events.kept_events import Renumbered
from acep_approx.events.reading.widening import one_table
from acep_approx.events.source import Source
from acep_approx.revisions.final import FinalRun
from acep_approx.revisions.matcher import RevisedMatcher
from acep_approx.revisions.partitions import Wait
from acep_approx.run.events import Events


class _Order(FinalRun):
    """Takes down in which order events come to be final, and finds nothing in them."""

    def __init__(self, like: FinalRun) -> None:
        super().__init__(like.pipeline, like._changelog)
        self.rows: list[Ints] = []

    def run(self, events: Events) -> list[pa.Table]:
        self.rows.append(events.arrival)
        return []

    def pass_time(self, tick: int) -> list[pa.Table]:  # noqa: ARG002  (as its base has it)
        return []

    def finish(self) -> list[pa.Table]:
        return []


def remaining(matcher: RevisedMatcher, source: Source, waits: Sequence[Wait] = ()) -> Source:
    """The events that were there in the end, in order of time; their numbers are those of their rows.

    Parameters
    ----------
    matcher : RevisedMatcher
        A fresh one of final results, which knows how rows may be late and change. It is used up.
    source : Source
        All rows, in the order in which they came. Can be read again.
    waits : sequence of Wait
        For partitions of a topic; ascending.

    Notes
    -----
    Final results are what a query finds in these: see ``RevisedMatcher``.

    Complexity: reads the rows twice; memory for those that remain.
    """
    if not len(source.schema):  # no columns, no events
        return source
    matcher.push(source.schema.empty_table())
    stream = matcher.stream
    assert stream is not None, "there are columns"
    assert isinstance(stream.run, FinalRun), "results are final"
    order = _Order(stream.run)
    stream.run = order
    first, still = int(source.late.original(np.zeros(1, np.int64))[0]), list(waits)
    for batch in source.batches():
        _push(matcher, batch, first, still)
        first += batch.num_rows
        matcher.rejected()
    matcher.finish()
    rows = np.concatenate([np.zeros(0, np.int64), *order.rows])
    late = Renumbered(lambda places: source.late.original(rows[places]))
    op = stream.op
    return source.instead(lambda plain: _taken(plain, rows, op), late)


def _push(matcher: RevisedMatcher, batch: pa.RecordBatch, first: int, waits: list[Wait]) -> None:
    """Push rows, the first of which has a number; of the waits those are taken away that begin or end among them."""
    done = 0
    while waits and waits[0].row < first + batch.num_rows:
        wait = waits.pop(0)
        rows = max(wait.row - first - done, 0)
        matcher.push(batch.slice(done, rows))
        done += rows
        wait.pass_on(matcher)
    matcher.push(batch.slice(done))


def _taken(source: Source, rows: Ints, op: str | None) -> pa.Table:
    """Rows of a source, in the order given, without the column that said what they do."""
    names = [name for name in source.readable.names if name != op]
    wanted, first = np.sort(rows), 0
    taken: list[pa.RecordBatch] = []
    for batch in source.batches(names):
        low, high = np.searchsorted(wanted, [first, first + batch.num_rows])
        if low < high:
            taken.append(batch.take(pa.array(wanted[low:high] - first)))
        first += batch.num_rows
    if not taken:
        return source.schema.empty_table().select(names)
    return one_table(taken).take(pa.array(np.searchsorted(wanted, rows)))
