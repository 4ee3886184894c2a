"""What runs parts of rules over a batch: who detects together, and stages without a circle, each over a whole batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools, Ints
from acep_approx.events.stream import EventBatch, earliest
from acep_approx.kernels.rules.sweep import Reads
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.stream_batch import ColumnOf
from acep_approx.matching.stream_side import StreamSide
from acep_approx.query.evaluate import as_key
from acep_approx.query.syntax import Attribute
from acep_approx.rules.compiled import CompiledRule, ReadColumn
from acep_approx.rules.firing import Calls, Fired, Firing, OfBatch
from acep_approx.rules.log import TableLog, places_of_events
from acep_approx.rules.losses import Watch
from acep_approx.rules.matched import NONE, Matched, Moment, matched
from acep_approx.rules.words import ARROW


@dataclass
class Found:
    """What has come of a batch so far: matches that are still to fire, results and calls, by rule."""

    waiting: dict[int, list[Matched]] = field(default_factory=dict)
    results: dict[int, list[pa.Table]] = field(default_factory=dict)
    calls: list[Calls] = field(default_factory=list)

    def take(self, rule: int, fired: Fired) -> None:
        """Note what came of firing."""
        self.results.setdefault(rule, []).append(fired.table)
        self.calls += fired.calls

    def wait(self, matches: Iterable[tuple[int, Matched]]) -> None:
        """Take in matches by rule, which are still to fire."""
        for rule, some in matches:
            self.waiting.setdefault(rule, []).append(some)

    def due(self, rule: int, place: int, tick: int = NONE, start: int = NONE) -> Iterator[Matched]:
        """Take matches of a rule away whose transactions are at most this one, in order."""
        rest = []
        for one in self.waiting.pop(rule, []):
            n = one.of.until(place, tick, start)
            if n:
                yield one.take(np.arange(n)) if n < len(one) else one
            if n < len(one):
                rest.append(one.take(np.arange(n, len(one))))
        if rest:
            self.waiting[rule] = rest


class Detector:
    """Rules that detect together: one side of a stream, with a pipeline for each.

    Parameters
    ----------
    rules : list of CompiledRule
    stream : StreamSide
    logs : mapping of str to TableLog
        By table.
    reads : list of ReadColumn
        What their events get from the store.
    pipelines : list of Pipeline
        Of the rules, on the stream.
    watches : list of Watch or None
        Inside a load budget: of each rule what it may have missed, if it may.
    """

    def __init__(
        self,
        rules: list[CompiledRule],
        stream: StreamSide,
        logs: Mapping[str, TableLog],
        reads: list[ReadColumn],
        pipelines: list[Pipeline],
        watches: list[Watch | None],
    ) -> None:
        self.rules = rules
        self.watches = watches
        self.stream = stream
        self.pipelines = pipelines
        self._logs = logs
        self.reads = reads
        of_key = {(read.table, read.keys): read for read in reads}
        self._named = [*of_key.values()]  # one read of each key of a table
        numbers = {key: number for number, key in enumerate(of_key)}
        self._key_of = [numbers[read.table, read.keys] for read in reads]

    def rows(self, batch: EventBatch) -> list[Ints]:
        """For each column that is read the rows of the table that the events name."""
        of, made = ColumnOf(batch.data, self.stream.roles), list[Ints]()

        def column(leaf: Attribute) -> pa.Array:
            return of(leaf.name)

        for read in self._named:
            asked = partial(self._reads, read, batch)
            keys = [as_key(key, column, len(batch), asked) for key in read.keys]
            made.append(self._logs[read.table].rows.row_of(keys))
        return [made[number] for number in self._key_of]

    def _reads(self, read: ReadColumn, batch: EventBatch) -> Bools:
        """Of which events of a batch a column that is read may play a role: their types say so."""
        types = set[str | None]().union(*(rule.types_reading(read) for rule in self.rules))
        if None in types:
            return np.ones(len(batch), np.bool_)
        column = batch.data.column(self.stream.roles.column("type")).cast(pa.string())
        found: Bools = pc.is_in(column, value_set=pa.array(types, pa.string())).to_numpy(zero_copy_only=False)
        return found

    def run(self, batch: EventBatch, rows: list[Ints], moment: Moment) -> Iterator[tuple[int, Matched]]:
        """Run events whose reads name these rows; gives matches by rule."""
        if any(self.watches):
            yield from self.matched(self._watched(batch, rows), moment)
        else:
            yield from self.matched(self.stream.run(batch, self.derived(batch, rows)), moment)

    def _watched(self, events: EventBatch, rows: list[Ints]) -> Iterator[tuple[int, pa.Table]]:
        """The results of all pipelines, each of which is watched on its way."""
        batch = self.stream.begin(events, self.derived(events, rows))
        named = {read.name: own for read, own in zip(self.reads, rows, strict=True)}
        of = OfBatch(events, self.stream.roles, {})
        for number, (pipeline, watch) in enumerate(zip(self.pipelines, self.watches, strict=True)):
            pipeline.prepare(batch)
            self.stream.is_within = True
            classes = batch.here(batch.computed.classes[pipeline.preparer])  # who runs them may let go of them
            for table in pipeline.run(batch):
                yield number, table
            if watch is not None:
                watch.take(batch, classes, watch.unsure(batch, named), of)
        self.stream.end(int(batch.ticks[-1]))

    def derived(
        self, batch: EventBatch, rows: list[Ints], known: Mapping[str, pa.Array] | None = None
    ) -> dict[str, pa.Array]:
        """What events whose reads name these rows get from the store; of some columns this is ``known``."""
        found = dict(known or {})
        if len(found) == len(self.stream.derived):
            return found
        place, none = places_of_events(batch.first_row, len(batch)), np.zeros(len(batch), np.int64)
        for read, own in zip(self.reads, rows, strict=True):
            if read.name in self.stream.derived and read.name not in found:
                found[read.name] = self._logs[read.table].read(read.column, Reads(place, none, none, own))
        return found

    def as_read(self, batch: EventBatch) -> dict[str, pa.Array]:
        """What the events of a batch have read, column by column, once all that is written in it is known."""
        place, none = places_of_events(batch.first_row, len(batch)), np.zeros(len(batch), np.int64)
        return {
            read.name: self._logs[read.table].read(read.column, Reads(place, none, none, own))
            for read, own in zip(self.reads, self.rows(batch), strict=True)
        }

    def close(self, before: int | None, moment: Moment) -> Iterator[tuple[int, Matched]]:
        """What waited for windows that end before a tick; for all windows where it is None."""
        if before is not None:
            yield from self.matched(self.stream.pass_time(before), moment)
            return
        tables = ((n, table) for n, pipeline in enumerate(self.pipelines) for table in pipeline.finish())
        yield from self.matched(tables, moment)

    def matched(self, tables: Iterable[tuple[int, pa.Table]], moment: Moment) -> Iterator[tuple[int, Matched]]:
        """Results of pipelines by number as matches by rule, in order."""
        parts: dict[int, list[pa.Table]] = {}
        for number, table in tables:
            if table.num_rows:
                parts.setdefault(number, []).append(table)
        for number, some in parts.items():
            rule, pipeline = self.rules[number], self.pipelines[number]
            yield rule.number, matched(rule, pipeline.joined(some), pipeline.waits, moment)

    @property
    def waits_until(self) -> int | None:
        """The tick that ``pass_time`` must be given for the next match that waits; None where none does."""
        return earliest(one.waits_until for one in self.pipelines)


def reads_of(rules: list[CompiledRule]) -> list[ReadColumn]:
    """The columns that the events of some rules get from the store."""
    return [*dict.fromkeys(read for rule in rules for read in rule.reads)]


def derived_types(reads: list[ReadColumn], logs: Mapping[str, TableLog]) -> dict[str, pa.DataType]:
    """The types of these columns."""
    types = {}
    for read in reads:
        column = None if read.column is None else logs[read.table].rows.table.column(read.column)
        types[read.name] = pa.bool_() if column is None else ARROW[column.holds]
    return types


class BatchStage:
    """Parts of rules none of which waits for another: each over the whole batch."""

    def __init__(self, detector: Detector | None, firings: list[Firing]) -> None:
        self.detector = detector
        self._firings = firings

    def run(self, batch: EventBatch, moment: Moment, found: Found) -> None:
        """Run a batch."""
        if self.detector is not None:
            found.wait(self.detector.run(batch, self.detector.rows(batch), moment))
        self._fire(moment, found)

    def close(self, before: int | None, moment: Moment, found: Found) -> None:
        """What waited for windows that end before a tick; for all windows where it is None."""
        if self.detector is not None:
            found.wait(self.detector.close(before, moment))
        self._fire(moment, found)

    def _fire(self, moment: Moment, found: Found) -> None:
        for firing in self._firings:
            for some in found.waiting.pop(firing.rule.number, []):
                found.take(firing.rule.number, firing.fire(some, moment))
