"""One stream whose events may be late or change: what a matcher has once it knows the columns.

Parts of it may be punctuated: of the events that satisfy a condition no earlier ones will come. Source: Chandramouli,
Goldstein, Maier, PVLDB 3(1) 2010, appendix F.2 (predicated punctuations). Theirs also lets go of partial matches all of
whose paths to the end need such events; ours waits until all letters of a pattern are closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.archive import Scope
from acep_approx.arrays import Bools, Ints
from acep_approx.automaton.automaton import Letter
from acep_approx.automaton.letters import Truths
from acep_approx.errors import DataError, QueryError
from acep_approx.events.changes import Op, find_op, ops_of
from acep_approx.events.columns import missing_column
from acep_approx.events.reading.memory import DICTS_PER_CHUNK
from acep_approx.events.reading.widening import one_table, stacked
from acep_approx.events.roles import Roles
from acep_approx.events.source import BATCH_ROWS, Source
from acep_approx.events.time import ticks
from acep_approx.matching.execution import Execution
from acep_approx.planning.planner import Plan
from acep_approx.query.parser import parse_condition
from acep_approx.query.shape import conjuncts, variables, walk
from acep_approx.query.syntax import Attribute, Binary, Constant, Expression
from acep_approx.ranges import COUNT, HIGHEST, LOWEST, TICK, Range, check, number_in
from acep_approx.revisions.changelog import Changelog
from acep_approx.revisions.final import FinalRun
from acep_approx.revisions.live import LiveEvents, Resolved
from acep_approx.revisions.names import check_ids
from acep_approx.revisions.replay import Replay
from acep_approx.revisions.request import Revisions
from acep_approx.revisions.segments import PlacedEvents
from acep_approx.revisions.within_budget import ReplayWithinBudget
from acep_approx.run.events import Events, with_all
from acep_approx.run.left_out import BACKWARDS, LATE
from acep_approx.run.order import numbers_of
from acep_approx.run.waiting import Waiting
from acep_approx.run.watermarks import ENDED, NEVER, Watermarks

Part = frozenset[Expression]
NONE = np.zeros(0, np.int64)
PROGRESSED = ("mz_progressed", "progressed")


class ClosedParts:
    """How far the parts of a stream are that were punctuated.

    Parameters
    ----------
    plan : Plan
    roles : Roles
    names : sequence of str
        The columns of the events.
    """

    def __init__(self, plan: Plan, roles: Roles, names: Sequence[str]) -> None:
        self._roles = roles
        self._names = names
        self._ticks: dict[str, tuple[Part, int]] = {}  # by the text of the condition
        # where all events are counted, those that no letter holds on play a role, too
        all_count = plan.counted != "nothing" or plan.is_count_window or plan.looks_to_the_start
        self._letters = None if all_count else [_part_of(letter) for letter in plan.letters]

    def close(self, where: str, tick: int) -> bool:
        """No event before ``tick`` that satisfies a condition will come; False if that was known for a later time."""
        part = self.part(where)
        known = self._ticks.get(where)
        if known is not None and tick < known[1]:
            return False
        self._ticks[where] = part, tick
        return True

    def part(self, where: str) -> Part:
        """The conditions of a text, which must all hold.

        Raises
        ------
        QueryError
            It is no condition on one event alone: ``ACEP-Q923``.
        DataError
            ``ACEP-D002``: there is no such column.
        """
        keys, found = parse_condition(where)
        if keys or any(variables(one) for one in found):
            raise QueryError(
                f"where={where!r} is not about one event alone",
                code="ACEP-Q923",
                text=where,
                start=0,
                end=len(where),
                hint="name columns without variables, as in where=\"type = 'A'\"",
            )
        for leaf in (leaf for one in found for leaf in walk(one) if isinstance(leaf, Attribute)):
            if self._roles.column(leaf.name) not in self._names:
                raise missing_column(leaf.name, self._names)
        same = {self._roles.time: "ts", self._roles.key: "key", self._roles.type: "type"}
        return frozenset(_renamed(part, same) for one in found for part in conjuncts(one))

    def value_of(self, where: str, column: str) -> tuple[Any, ...]:
        """The value that a condition gives a column, if that is all it says; else nothing."""
        part = self.part(where)
        if len(part) != 1:
            return ()
        (one,) = part
        if isinstance(one, Binary) and one.op == "=" and one.left == Attribute(None, None, column):
            return (one.right.value,) if isinstance(one.right, Constant) else ()
        return ()

    @property
    def has_parts(self) -> bool:
        """Whether there are any."""
        return bool(self._ticks)

    def late(self, tick: Ints, data: pa.RecordBatch) -> Bools:
        """Which events come after it was said that none of their kind would."""
        late = np.zeros(len(tick), np.bool_)
        truths = Truths(len(tick), lambda name: data.column(self._roles.column(name)))
        for part, closed in self._ticks.values():
            behind = tick < closed
            if behind.any():
                late |= truths.all_hold(part, behind)
        return late

    @property
    def reached(self) -> int:
        """Before this tick no event will come that a letter of the pattern holds on."""
        if not self._ticks or self._letters is None:
            return NEVER
        return min(
            max([tick for part, tick in self._ticks.values() if part <= letter], default=NEVER)
            for letter in self._letters
        )

    def header(self) -> list[tuple[str, int]]:
        """As JSON."""
        return [(where, tick) for where, (_, tick) in self._ticks.items()]

    def restore(self, header: list[tuple[str, int]]) -> None:
        """Take over what ``header`` gave."""
        for where, tick in header:
            self.close(where, number_in("closed", tick, -COUNT, COUNT))


def _part_of(letter: Letter) -> Part:
    """What holds on every event of a letter."""
    known = {part for condition in letter.conditions for part in conjuncts(condition)}
    if letter.type is not None:
        known.add(Binary("=", Attribute(None, None, "type"), Constant(letter.type)))
    return frozenset(known)


def _renamed(condition: Expression, names: dict[str | None, str]) -> Expression:
    """A comparison with a column under the name of its role, as letters have it."""
    if isinstance(condition, Binary) and isinstance(condition.left, Attribute) and condition.left.name in names:
        return Binary(condition.op, Attribute(None, None, names[condition.left.name]), condition.right)
    return condition


@dataclass
class RevisionCounts:
    """What became of the rows so far.

    ``inserted`` and ``retracted`` events; rows left out because they were ``late``, took back an event that was
    ``unknown``, inserted one that was there (``duplicate``), or were a punctuation that went ``backwards``.
    """

    inserted: int = 0
    retracted: int = 0
    late: int = 0
    unknown: int = 0
    duplicate: int = 0
    backwards: int = 0

    @property
    def rejected(self) -> int:
        """Rows left out."""
        return self.late + self.unknown + self.duplicate + self.backwards


@dataclass(frozen=True)
class Rows:
    """Rows that can be taken in.

    ``data`` has all columns, ``events`` those that are kept of an event. ``ops`` says what each row does, None: all
    insert; ``source`` and ``sequence`` are as for ``Watermarks``.
    """

    data: pa.RecordBatch
    events: Events
    ops: npt.NDArray[np.int8] | None
    source: pa.Array | None
    sequence: Ints | None

    @property
    def is_mark(self) -> Bools | None:
        """Which rows are punctuations; None where none is."""
        return None if self.ops is None else self.ops == Op.WATERMARK


class RevisedStream:
    """What a matcher has once the columns of the events are known: their order, and the query that runs.

    Parameters
    ----------
    execution : Execution
        It is bound, and has run nothing.
    asked : Revisions
    names : sequence of str
        The columns of the first rows.
    op : str or None
        The column that says what a row does.

    Attributes
    ----------
    needed, columns : tuple of str
        The columns that all rows must have, and those that are kept of events.
    is_by_content : bool
        Whether rows that take events back name them by all that stands in them.
    watermarks : Watermarks
    beyond : int
        How far beyond the watermark events are run.
    run : Replay or FinalRun
    none : Events
        None, with the columns that are kept.
    """

    def __init__(self, execution: Execution, asked: Revisions, names: Sequence[str], op: str | None) -> None:
        pipeline = execution.pipeline
        assert pipeline is not None, "bind first"
        self.pipeline, self.asked, self.names, self.op = pipeline, asked, tuple(names), op
        self.changelog = Changelog(pipeline, execution.bind_by, asked.id, is_changelog=asked.is_changelog)
        self.is_by_content = op is not None and asked.id is None
        ids = () if asked.id is None else (asked.id,)
        self.needed = tuple(dict.fromkeys((*pipeline.columns, *self.changelog.needed, *ids)))
        self.columns = self.names if self.is_by_content else self.needed
        self.run: Replay | FinalRun
        if asked.is_final:
            self.run = FinalRun(pipeline, self.changelog)
        else:
            runs = Replay if pipeline.engine.shedding is None else ReplayWithinBudget
            self.run = runs(pipeline, self.changelog, asked.id)
        self.run.tail.has_twins = op is None and asked.id is not None and asked.is_changelog
        self.watermarks = asked.wait(is_time=pipeline.is_time).watermarks
        self.beyond = asked.beyond(is_time=pipeline.is_time)
        content = [name for name in names if name not in (op, asked.sequence)]
        self.live = LiveEvents(asked.id, content, None if pipeline.preparer.is_count else pipeline.window)
        self.closed = ClosedParts(pipeline.plan, pipeline.roles, names)
        self.waiting = Waiting(ids)
        nothing = np.zeros(0, np.int64)
        data = pa.RecordBatch.from_arrays([pa.nulls(0)] * len(self.columns), list(self.columns))
        self.none = Events(nothing, nothing, nothing, data)
        self._fitting: pa.Schema | None = None  # columns that need no conversion
        self._must = {*self.needed, *(name for name in (op, asked.source, asked.sequence) if name is not None)}
        self._read: tuple[pa.Schema | None, list[str]] = None, []  # columns of the last push, and those that were read

    @property
    def final(self) -> int:
        """Before this tick nothing changes any more that the pattern asks for."""
        return max(self.watermarks.current, self.closed.reached)

    def events_at(self, tick: int) -> list[Events]:
        """The events of a time that may still change."""
        found: list[Events] = []
        tail = self.run.tail
        if tail.segments:
            events = tail.segments[int(tail.segment_of(np.array([tick]))[0])].events
            first, last = np.searchsorted(events.tick, [tick, tick + 1])
            found.append(events.slice(int(first), int(last - first)))
        return found + self.waiting.at(tick)

    @property
    def held(self) -> int:
        """Events that are held because they, or others beside them, may still change."""
        return self.run.tail.held + len(self.waiting)

    # --- rows -----------------------------------------------------------------------------------------------

    def read(self, source: Source) -> pa.RecordBatch:
        """All rows of a push as one batch.

        Raises
        ------
        DataError
            A column is missing, or its values cannot be read; ``ACEP-D075``: the column that says what rows do comes
            late; ``ACEP-D151``: ids that are no single values.
        """
        source.expect(self._must)
        read = self._read_of(source)
        batches = [batch for batch in source.batches(read, max(BATCH_ROWS, source.rows or 0)) if batch.num_rows]
        if not batches:
            return pa.RecordBatch.from_pylist([], schema=source.schema)
        if len(batches) == 1:
            return batches[0]
        return one_table(batches).combine_chunks().to_batches()[0]

    def _read_of(self, source: Source) -> list[str]:
        """The columns that are read, of a push whose columns are right: looked at where they are not those before."""
        schema, asked, must = source.schema, self.asked, self._must
        if self._read[0] is not None and schema.equals(self._read[0]):
            return self._read[1]
        names = schema.names
        for name in sorted(must - set(names)):
            raise missing_column(name, names)
        op = find_op(names, None, must) if self.op is None and asked.op is None else None
        if op is not None:
            raise DataError(
                f"the column {op!r}, which says what rows do, was not there at first: all rows were taken to insert",
                code="ACEP-D075",
                hint=f"give {op!r} from the first push on, or say that no column says what rows do: --op none "
                "(op=False)",
            )
        check_ids(asked.id, schema)
        readable = set(source.readable.names)
        self._read = schema, [name for name in names if name in must or name in readable]
        return self._read[1]

    def rows(self, data: pa.RecordBatch, first_row: int) -> Rows:
        """Rows as they are taken in, numbered from ``first_row`` on; what cannot be is refused before anything changes.

        Raises
        ------
        DataError
            What stands in a column cannot be a time, a number of a sequence or an op, or its type does not go together
            with those before; ``ACEP-D045``: an error stopped it in the middle of a batch before.
        """
        self.pipeline.stream.check_whole()
        ops, asked, roles = self._ops(data, first_row), self.asked, self.pipeline.roles
        tick = ticks(data.column(roles.time), roles.unit, first_row=first_row, format=roles.time_format)
        arrival = np.arange(first_row, first_row + len(tick))
        kept = with_all(data, [*self.columns])  # of columns that only content is made of some may be missing
        events = Events(tick, arrival, arrival, kept)
        if self._fitting is None or not self._fitting.equals(events.data.schema):
            batch = events.batch(self.pipeline.columns, first_row)
            self._fitting = events.data.schema if self.pipeline.stream.fit(batch) is batch else None
        sequence = None if asked.sequence is None else numbers_of(data.column(asked.sequence), asked.sequence)
        return Rows(data, events, ops, None if asked.source is None else data.column(asked.source), sequence)

    def _ops(self, data: pa.RecordBatch, first_row: int) -> npt.NDArray[np.int8] | None:
        """What each row does; None where all insert."""
        if self.op is None:
            return None
        progressed = next((data.column(name) for name in PROGRESSED if name in data.schema.names), None)
        ops = ops_of(data.column(self.op), self.op, first_row, progressed)
        if self.asked.id is None and (ops == Op.UPDATE).any():
            row = first_row + int(np.argmax(ops == Op.UPDATE))
            raise DataError(
                f"row {row}: an update in one row does not say which event it updates",
                code="ACEP-D071",
                hint="name the column of the ids of events: id='COLUMN' (--id COLUMN)",
                row=row,
            )
        return ops

    # --- order ----------------------------------------------------------------------------------------------

    def follows(self, rows: Rows) -> bool:
        """Whether rows, which are taken in then, are events in order that all insert, and none of them is late."""
        return rows.ops is None and not self.closed.has_parts and self.watermarks.follow(rows.events.tick)

    def late(self, rows: Rows, before: Ints) -> dict[int, str]:
        """The rows whose time the watermark ``before`` them has passed, and why they are left out."""
        tick, is_mark = rows.events.tick, rows.is_mark
        behind = np.flatnonzero(tick < before).tolist()
        late = {row: BACKWARDS if is_mark is not None and is_mark[row] else LATE for row in behind}
        if self.closed.has_parts:
            late |= dict.fromkeys(np.flatnonzero(self.closed.late(tick, rows.data)).tolist(), LATE)
        return late

    def resolved(self, rows: Rows, before: Ints, rejects: dict[int, str]) -> Resolved:
        """What rows come to that are not left out; ``rejects`` gets those that take back or insert in vain."""
        events, ops = rows.events, rows.ops
        if not rejects and ops is None:
            return Resolved(events)
        kept = np.ones(len(events), np.bool_) if ops is None else ops != Op.WATERMARK
        kept[list(rejects)] = False
        which = np.flatnonzero(kept)
        events = events if len(which) == len(kept) else events.take(which)
        if ops is None:
            return Resolved(events)
        found = self.live.resolve(events, ops[which], np.maximum(before[which], self.closed.reached), self.events_at)
        rejects |= {int(which[row]): reason for row, reason in found.rejected}
        return found

    # --- running --------------------------------------------------------------------------------------------

    def take(self, came: Events, gone: Sequence[tuple[int, int]]) -> pa.Table:
        """Take in events that come, and those that go, by their time and row; gives what changes."""
        if self.closed.has_parts:  # what lies before cannot play a role
            came = came.where(came.tick >= self.closed.reached)
        self.waiting.add(came)
        return self.moved(gone)

    def moved(self, gone: Sequence[tuple[int, int]] = (), *, is_over: bool = False) -> pa.Table:
        """Run what lies before the horizon now, and take back what is gone; gives what changes."""
        watermark = self.final
        horizon = min(watermark + self.beyond, ENDED) if self.beyond < ENDED else ENDED
        tick = arrival = NONE
        if len(gone):
            tick, arrival = np.array(gone, np.int64).T
            here = np.isin(arrival, self.waiting.remove(arrival))
            tick, arrival = tick[~here], arrival[~here]
        tables = self.run.take(self.waiting.due(horizon) or [self.none], (tick, arrival), watermark)
        if is_over:
            tables += self.run.finish()
        if watermark > NEVER:
            self.run.settle(watermark)
        if self.op is not None and len(self.live) > 2 * self.held + DICTS_PER_CHUNK:
            in_tail = [part for segment in self.run.tail.segments for part in segment.parts]
            self.live.forget_all_but([*self.run.tail.passed, *in_tail, *self.waiting.parts])
        whole = [table for table in tables if table.num_rows]
        if not whole:
            return self.changelog.nothing()
        return whole[0] if len(whole) == 1 else stacked(whole)

    def punctuate(self, tick: int, where: str | None) -> bool:
        """Move the watermark: of all events, of a source, or of those that satisfy a condition. False: it goes back."""
        if where is None:
            return self.watermarks.punctuate(tick)
        of_source = self.closed.value_of(where, self.asked.source) if self.asked.source is not None else ()
        return self.watermarks.punctuate(tick, *of_source) if of_source else self.closed.close(where, tick)

    # --- state ----------------------------------------------------------------------------------------------

    def save(self, scope: Scope) -> None:
        """Keep where the order stands, and the events that are held; the query has a state of its own."""
        scope.head |= {
            "names": self.names,
            "op": self.op,
            "watermarks": self.watermarks.header(),
            "closed": self.closed.header(),
            "vacant": self.live.vacant,
            "run": self.run.header(),
        }
        self.run.save(scope)
        tail = self.run.tail
        in_tail = [part for segment in tail.segments for part in segment.parts]
        _save(scope, "waiting", Events.joined(self.waiting.parts or [self.none]))
        for name, parts in (("passed", tail.passed), ("tail", in_tail)):
            none = PlacedEvents.of(self.none, self.none.tick, self.none.tick)
            _save(scope, name, PlacedEvents.joined([part for part in parts if len(part)] or [none]))

    def load(self, scope: Scope) -> None:
        """Go on from what ``save`` kept, before anything was pushed.

        Raises
        ------
        DamagedError, DataError
            The parts of the state do not fit together.
        """
        head = scope.head
        check("op", good=isinstance(head["op"], str | None))
        self.watermarks = Watermarks.restore(head["watermarks"])
        self.closed.restore(head["closed"])
        if head["vacant"]:
            tick, tie = head["vacant"]
            self.live.vacant = number_in("vacant", tick, -TICK, TICK), number_in("vacant", tie, LOWEST, HIGHEST)
        passed, tail, waiting = (_load(scope, name) for name in ("passed", "tail", "waiting"))
        for events in (passed, tail, waiting):
            check("columns", good=events.data.schema.names == list(self.columns))
        self.waiting.add(Events(waiting.tick, waiting.arrival, waiting.tie, waiting.data))
        self.run.load(scope)
        self.run.take_up(head["run"], passed, tail)
        if self.op is not None:
            self.live.forget_all_but((passed, tail, waiting))


COLUMNS = ("tick", "arrival", "tie", "place")


def _save(scope: Scope, name: str, events: Events) -> None:
    columns = {column: getattr(events, column) for column in COLUMNS if hasattr(events, column)}
    scope.sub(name, arrays=columns).put("data", events.data)


def _load(scope: Scope, name: str) -> PlacedEvents:
    kept = scope.parts[name]
    columns: dict[str, Ints] = {column: kept.array(column) for column in COLUMNS if column in kept.arrays}
    data, place = kept.batch("data"), columns.get("place", columns["tick"])
    events = Events(kept.array("tick", Range(low=-TICK, end=TICK)), columns["arrival"], columns["tie"], data)
    check("columns", good={len(events.tick), len(events.arrival), len(events.tie), len(place)} == {data.num_rows})
    if name != "waiting":
        check("order", good=(events.tick[1:] >= events.tick[:-1]).all() and (place[1:] > place[:-1]).all())
    return PlacedEvents.of(events, place, np.full(len(events), -1))
