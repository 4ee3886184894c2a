"""A circle of rules on its way through a batch: the kernel finds what completes matches, then these are listed.

Before the kernel everything is columns, and after it again. Source: what is found is that of SEI, Wang, Rundensteiner
and Ellison, PVLDB 4(10) 2011, section 5.1: one event at a time. Deviations: matches are listed for a whole batch, once
it is known which class each event had for each rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Ints
from acep_approx.events.columns import encode_text
from acep_approx.events.stream import EventBatch
from acep_approx.kernels.rules import lockstep as out
from acep_approx.kernels.rules.lockstep import (
    HIT_ERRORS,
    HIT_EVENT,
    HIT_START,
    Circle,
    Events,
    Out,
    Store,
    lockstep,
    number_events,
)
from acep_approx.matching.outputs.output import Points
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.rules.firing import Firing, Known, OfBatch
from acep_approx.rules.lockstep.arenas import NONE, CellArena, TableArena
from acep_approx.rules.lockstep.classes import JointClasses, Member
from acep_approx.rules.lockstep.questions import Acts, Live, Operands, Prepared, Questions
from acep_approx.rules.matched import Matched, Moment, matched
from acep_approx.rules.pipeline import KernelRule
from acep_approx.rules.stages import Detector, Found
from acep_approx.rules.words import from_words


@dataclass(frozen=True)
class Ran:
    """What came of a batch.

    Attributes
    ----------
    of : list of int64, shape (hits, HIT)
        Per rule its hits, in the order of events.
    classes : dict of int to numpy.ndarray
        Per rule whose matches are listed the class of each event.
    saw : dict of str to (words, ok)
        What was read of the columns that results show, by event.
    numbers : dict of int to numpy.ndarray
        Per rule with a window of events the number of each within its key.
    prepared : Prepared
    """

    of: list[Ints]
    classes: dict[int, Ints]
    saw: dict[str, tuple[Ints, Bools]]
    numbers: dict[int, Ints]
    prepared: Prepared


class Loop:
    """Runs the rules of a circle over batches.

    Parameters
    ----------
    rules : sequence of KernelRule
        In their order.
    live : mapping of str to Live
        The columns that they read and write, by name.
    acts : Acts
    arena : TableArena
        Has the tables of these columns.
    """

    def __init__(
        self, rules: Sequence[KernelRule], live: Mapping[str, Live], acts: Acts, arena: TableArena
    ) -> None:
        self.rules = rules
        self._live = live
        self._acts = acts
        self._tables = arena
        self._cells = CellArena()
        self._known_rules = 0, np.zeros(0, np.int64)
        self._made: tuple[tuple[object, ...], Circle] | None = None
        self._questions = Questions(live, arena, arena.tables[0].texts)
        self._begin()

    def _begin(self) -> None:
        names = frozenset(self._live)
        self._members = [Member.made(number, one, names) for number, one in enumerate(self.rules)]
        self._joint = JointClasses(self._members)
        self._key_columns = [*dict.fromkeys(one.pipeline.key_slots.columns for one in self.rules)]
        needed = {name for one in self.rules for name in one.pipeline.recent.columns}
        self._shown = [name for name in self._live if name in needed]
        self._listed = [number for number, one in enumerate(self.rules) if one.lists]
        self._counting = [n for n, one in enumerate(self.rules) if one.pipeline.preparer.is_count]

    def run(self, events: StreamBatch, given: OfBatch, rows: Sequence[Ints]) -> Ran:
        """Run a batch.

        Parameters
        ----------
        events : StreamBatch
            In the types of the stream.
        given : OfBatch
            The same as they came.
        rows : sequence of numpy.ndarray of int64
            The rows that events name: the columns of ``Live.rows_of``.
        """
        if self._joint.is_stale:
            self._begin()
        for one in self.rules:
            one.take_keys(events)
        joint = self._joint.of(events.computed.truths)
        for one in self.rules:
            one.take_classes()
        at = [self._joint.finishing(member, joint) for member in self._members]
        prepared = self._acts.prepared(given, at)
        tests = [*self._joint.tests]
        asked = partial(self._joint.asked_for, joint)
        operands = self._questions.operands(tests, len(events), events.column, asked)
        self._tables.fit()
        numbers = {n: _numbers(self.rules[n], events) for n in self._counting}
        seen = self._events(events, joint, rows, operands, [*numbers.values()])
        made = self._kernel(seen, operands, prepared)
        hits = made.hits[: made.made[0] * out.HIT].reshape(-1, out.HIT)
        classes = dict(zip(self._listed, made.classes.reshape(-1, len(events)), strict=True))
        words, ok = made.words.reshape(-1, len(events)), made.ok.reshape(-1, len(events))
        saw = {name: (words[n], ok[n]) for n, name in enumerate(self._shown)}
        of = [hits[hits[:, out.HIT_RULE] == number] if len(hits) else hits for number in range(len(self.rules))]
        return Ran(of, classes, saw, numbers, prepared)

    def known(self, member: int, ran: Ran, given: OfBatch) -> Known:
        """What the statements of a rule take from the events that complete its matches."""
        hits = ran.of[member]
        return self._acts.known(member, ran.prepared, hits[:, out.HIT_PLACE], hits[:, out.HIT_ACTS] != 0, given)

    def _events(
        self,
        events: StreamBatch,
        joint: Sequence[Ints],
        rows: Sequence[Ints],
        operands: Operands,
        numbers: Sequence[Ints],
    ) -> Events:
        by_key = {columns: events.slots(columns) for columns in self._key_columns}
        words = operands.words
        return Events(
            _joined(joint), _joined([*by_key.values()]), _joined([events.ticks, *numbers]), _joined(rows), words,
            words.view(np.float64), operands.ok, len(events), len(joint)
        )  # fmt: skip

    def _kernel(self, events: Events, operands: Operands, prepared: Prepared) -> Out:
        size, rules = events.size, len(self.rules)
        detection = self._cells.fit([one.cells for one in self.rules])
        shown, listed = self._shown, len(self._listed)
        room = sum(map(len, prepared.at))
        made = Out(
            np.empty((room + 1) * out.HIT, np.int64), np.zeros(1, np.int64), np.zeros(rules, np.int64),
            np.zeros(listed * size, np.int64), np.empty(len(shown) * size, np.int64),
            np.empty(len(shown) * size, np.bool_),
        )  # fmt: skip
        store = Store(
            self._tables.rows, self._acts.wanted(self._tables), self._acts.statements, prepared.writes,
            self._acts.undo(len(prepared.writes.row)), self._acts.scratch,
        )  # fmt: skip
        lockstep(events, self._circle(operands, prepared), detection, store, made)
        return made

    def _circle(self, operands: Operands, prepared: Prepared) -> Circle:
        """What the kernel is told of the rules; made anew where a part of it is."""
        tests, lists = self._questions.records([*self._joint.tests], operands)
        parts = tests, lists, self._joint.arrays(), self._rules()
        at = [self._tables.at(table) for table in self._acts.tables]
        statements = [number for pair in zip(at, prepared.first, strict=True) for number in pair]
        if self._made is None or any(one is not other for one, other in zip(self._made[0], parts, strict=True)):
            if extra := [number for name in self._shown for number in self._questions.shown(name)]:
                tests = np.concatenate((tests, np.array(extra, np.int64)))
            numbers = np.arange(len(self._shown)) + len(self._joint.tests)
            self._made = parts, Circle(parts[3], NONE, *parts[2], tests, lists, numbers)
        return self._made[1]._replace(statements=np.array(statements, np.int64))

    def _rules(self) -> Ints:
        if self._known_rules[0] == self._cells.version:
            return self._known_rules[1]
        by_key = self._key_columns
        records: list[int] = []
        clocks = listed = 0
        for number, one in enumerate(self.rules):
            pipeline = one.pipeline
            is_count = pipeline.preparer.is_count
            clocks += is_count
            records += [by_key.index(pipeline.key_slots.columns), clocks * is_count, pipeline.window]
            records += [self._cells.tables_at[number], number * out.OFFSETS, self._cells.cells_at[number]]
            records += [self._acts.first[number], listed if one.lists else -1]
            listed += one.lists
        records += [0] * out.STATEMENTS + [len(self._acts.tables), -1]
        self._known_rules = self._cells.version, np.array(records, np.int64)
        return self._known_rules[1]


def _numbers(rule: KernelRule, events: StreamBatch) -> Ints:
    """In a window of events, the number of each event within its slot."""
    seen, numbers = rule.pipeline.preparer.counters, np.zeros(len(events), np.int64)
    if rule.lists:  # they are counted once more when events are grouped
        seen = seen.copy()
    number_events(events.slots(rule.pipeline.key_slots.columns), seen, numbers)
    return numbers


def _joined(columns: Sequence[Ints]) -> Ints:
    """Columns one after the other, which kernels may change as far as they know."""
    if len(columns) == 1:
        if columns[0].flags.carray and columns[0].dtype == np.int64:
            return columns[0]
        return np.require(columns[0], np.int64, ("C", "W"))
    return np.concatenate(columns) if columns else np.zeros(0, np.int64)


class LockstepStage:
    """Parts of rules that wait for one another in a circle, run in one kernel.

    Parameters
    ----------
    detector : Detector
        With the pipelines of the rules of ``loop``.
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
        if not ran.saw:
            return events
        columns = dict(zip(events.data.schema.names, events.data.columns, strict=True))
        for name, (words, ok) in ran.saw.items():
            live = self._live[name]
            columns[name] = encode_text(from_words(words, ok, live.holds, live.log.rows.texts))
        data = pa.RecordBatch.from_pydict(columns)
        return StreamBatch(EventBatch(events.first_row, events.ticks, data), events.computed)

    def _matches(self, number: int, events: StreamBatch, ran: Ran, moment: Moment) -> Matched | None:
        one, hits = self._loop.rules[number], ran.of[number]
        pipeline = one.pipeline
        if one.lists:
            table = pipeline.joined(one.run_classes(events, ran.classes[number]))
            if not table.num_rows:
                return None
        else:
            pipeline.progress.events += len(events)
            if not len(hits):
                return None
            ticks, hits = ran.numbers.get(number, events.ticks), np.ascontiguousarray(hits.T)
            at = hits[HIT_EVENT]
            slot = events.slots(pipeline.key_slots.columns)[at]
            points = Points(slot, events.first_row + at, ticks[at], hits[HIT_START], hits[HIT_ERRORS])
            table = one.points.table(points, at, events)
        return matched(one.rule, table, pipeline.waits, moment)
