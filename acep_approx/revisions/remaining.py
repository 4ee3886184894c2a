"""The events that remain of a stream whose events are late, change or are taken back, as a page reads them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.events.kept_events import Renumbered
from acep_approx.events.reading.widening import one_table
from acep_approx.events.source import Source
from acep_approx.matching.pipeline import Pipeline
from acep_approx.revisions.changelog import Changelog
from acep_approx.revisions.final import FinalRun
from acep_approx.revisions.matcher import RevisedMatcher
from acep_approx.revisions.partitions import Wait
from acep_approx.run.events import Events


class Numbered(FinalRun):
    """Runs no query: keeps the numbers of the rows that can change no more, in order of time."""

    def __init__(self, pipeline: Pipeline, changelog: Changelog) -> None:
        super().__init__(pipeline, changelog)
        self.rows: list[Ints] = []

    def take(self, due: Sequence[Events], gone: tuple[Ints, Ints], watermark: int) -> list[pa.Table]:  # noqa: ARG002
        """Keep the numbers of events that are due."""
        self.rows += [events.arrival for events in due]
        return []


def remaining(matcher: RevisedMatcher, source: Source, waits: Sequence[Wait] = ()) -> Source:
    """The events that were there in the end, in order of time; their numbers are those of their rows.

    Parameters
    ----------
    matcher : RevisedMatcher
        A fresh one of final results, which knows how rows may be late and change. It is used up, and runs no query.
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
    assert matcher.stream is not None, "the columns are known"
    matcher.stream.run = final = Numbered(matcher.stream.pipeline, matcher.stream.changelog)
    first, still = int(source.late.original(np.zeros(1, np.int64))[0]), list(waits)
    for batch in source.batches():
        done = 0
        while still and still[0].row < first + batch.num_rows:  # it begins or ends among these rows
            wait = still.pop(0)
            number = max(wait.row - first - done, 0)
            matcher.push(batch.slice(done, number))
            done += number
            wait.pass_on(matcher)
        matcher.push(batch.slice(done))
        first += batch.num_rows
        matcher.rejected()
    matcher.finish()
    rows, op = np.concatenate([np.zeros(0, np.int64), *final.rows]), matcher.stream.op
    late = Renumbered(lambda places: source.late.original(rows[places]))
    return source.instead(lambda plain: _taken(plain, rows, op), late)


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
