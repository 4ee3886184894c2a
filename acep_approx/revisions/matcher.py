"""The push interface of streams whose events may be late, revised and taken back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.archive import Scope
from acep_approx.arguments import checked as public
from acep_approx.arrays import Bools, Ints
from acep_approx.diagrams.fragments import bounded, never_raises, plain, soft, tiles, title, view
from acep_approx.diagrams.text_layout import one_line
from acep_approx.errors import DataError, expect
from acep_approx.events.changes import Op, find_op, ops_of
from acep_approx.events.columns import missing_column
from acep_approx.events.reading.memory import DICTS_PER_CHUNK
from acep_approx.events.reading.widening import one_table
from acep_approx.events.source import Source
from acep_approx.events.time import ticks
from acep_approx.events.usable_rows import pushed
from acep_approx.matching.execution import Execution, checked_options
from acep_approx.matching.pipeline import Pipeline
from acep_approx.planning.planner import Plan
from acep_approx.ranges import COUNT, number_in
from acep_approx.revisions.final import FinalRun
from acep_approx.revisions.names import check_ids
from acep_approx.revisions.replay import Replay
from acep_approx.revisions.request import Revisions
from acep_approx.revisions.state import packed, take_up
from acep_approx.revisions.stream import RevisedStream, RevisionCounts, set_up
from acep_approx.run.events import Events
from acep_approx.run.left_out import BACKWARDS, LATE, REASONS, LeftOut
from acep_approx.run.order import numbers_of
from acep_approx.run.run import Run
from acep_approx.run.watermarks import ENDED, NEVER, Held
from acep_approx.timeline.picture import moment_text

CHANGES = ("inserted", "retracted")
PROGRESSED = ("mz_progressed", "progressed")


class RevisedMatcher(Run):
    """Runs one query over a stream whose events may be late, revised and taken back; made by ``Query.matcher``.

    Parameters
    ----------
    plan : Plan
    revisions : Revisions
        How events may come late and change.
    **options
        As for ``Matcher``: ``output``, ``time``, ``key``, ``type``, ``unit``, ``merge``, ``bind``.

    Attributes
    ----------
    final_rows : list of numpy.ndarray of int64, or None
        A list, set before the first push where results are final: no query is run, and the numbers of the rows that
        can change no more are put there, in order of time.

    Notes
    -----
    Source: Chandramouli, Goldstein, Maier, PVLDB 3(1) 2010, sections 2.4, 5.1, 5.3, 5.4 and C.
    See ``docs/how-it-works/disorder.md`` for what is theirs and what is ours. After each push the sum of all that was
    put out is what ``Query.match`` finds in the sorted stream of the events that were inserted and not retracted, up
    to the horizon: the watermark with ``emit="final"``, everything with ``"early"``. No row is taken back and put out
    again in one push.
    """

    def __init__(self, plan: Plan, asked: Revisions, **options: Any) -> None:
        asked.check_language(plan.query)
        self.plan = plan
        self.asked = asked
        self.changes = dict.fromkeys(CHANGES, 0)
        self.execution = Execution(plan, **options, is_raw=True)
        self.rows = 0
        self.stream: RevisedStream | None = None
        self.left_out = LeftOut()
        self.final_rows: list[Ints] | None = None

    @never_raises
    def _repr_html_(self) -> str:
        numbers = [(f"{self.rows:,}", "rows so far"), (f"{self.held_events:,}", "events held: they may still change")]
        counts = vars(self.revisions).items()
        numbers += [(f"{number:,}", name.replace("_", " ")) for name, number in counts if number]
        told = "Nothing has moved the watermark yet."
        if self.watermark is not None:
            told = f"The watermark is at {moment_text(self.watermark, is_time=self.is_time)}."
        query = plain(bounded(str(self.plan.query.text)))
        head = title("Live run of a query whose events may be late or change")
        return view(head, query, tiles(numbers), soft(told))

    def __repr__(self) -> str:
        query = one_line(self.plan.query.text)
        return f"<RevisedMatcher of {query!r}: {self.rows:,} rows, {self.held_events:,} events held>"

    # --- what users ask -------------------------------------------------------------------------------------

    @property
    def revisions(self) -> RevisionCounts:
        """What became of the rows so far."""
        return RevisionCounts(**self.changes, **{reason: self.left_out.counts[reason] for reason in REASONS})

    @property
    def watermark(self) -> int | None:
        """The tick before which no event is taken in any more; None where nothing has moved it yet."""
        reached = NEVER if self.stream is None else self.stream.watermarks.current
        return None if reached == NEVER else reached

    @property
    def is_time(self) -> bool:
        """Whether ticks are times: microseconds since 1970."""
        return self.stream is not None and self.stream.pipeline.is_time

    @property
    def held_events(self) -> int:
        """Events that are held because they, or others beside them, may still change."""
        return 0 if self.stream is None else self.stream.held

    @property
    def holding(self) -> Held:
        """What holds the watermark back: of several sources those that are furthest behind, and those that are idle."""
        return Held() if self.stream is None else self.stream.watermarks.holding()

    def rejected(self) -> pa.Table:
        """The rows that were left out since the last call: why, the number of the row, then what stands in it.

        Returns
        -------
        pyarrow.Table
            ``reason`` is ``late``, ``unknown`` (takes back what is not there), ``duplicate`` (inserts what is there)
            or ``backwards`` (a punctuation before the watermark).
        """
        return self.left_out.take()

    def push(self, events: Any) -> pa.Table:
        """Take in rows, in the order in which they come, and return what changes.

        Parameters
        ----------
        events : table, frame or reader of any library, record batches, or iterable of dicts
            The next rows.

        Returns
        -------
        pyarrow.Table
            The columns of the output. Unless only final results are put out, and with ``changelog=True`` always, ``op``
            (``+I`` or ``-D``) and ``match_id`` stand behind them, and what is taken back comes first.

        Raises
        ------
        DataError
            A missing column or a wrong type; ``ACEP-D070``: an op that nobody knows. Nothing of the push is taken in.
            ``ACEP-D045``: an error stopped it in the middle of a batch before.
        """
        source = self._opened(events, self.execution)
        if not len(source.schema):
            return self._nothing()
        stream = self.stream or self._bind(source)
        source.use(stream.pipeline.roles.read_in(stream.pipeline.columns))
        data = self._read(source, stream)
        if not data.num_rows:
            return self._nothing()
        return pushed(lambda rows: self._take_in(rows, stream), data, source, self.rows)

    @public
    def punctuate(self, tick: int | str | datetime, where: str | None = None) -> pa.Table:
        """No event before ``tick`` will come any more: put out what that makes final.

        Parameters
        ----------
        tick : int, str or datetime
            A time as the events have it: ticks (of real times microseconds), or a time as text or object.
        where : str, optional
            Only of the events that satisfy this, such as ``"exchange = 'NYSE'"``. Of a ``source`` it moves the
            watermark of that source; else results become final once no letter of the pattern can come any more.

        Raises
        ------
        DataError
            ``ACEP-D072``: the watermark has passed this time.
        """
        if self.stream is None:
            raise DataError(
                "the watermark cannot move before the first event: the columns are not known yet",
                code="ACEP-D072",
                hint="push events first",
            )
        tick = _tick_of(tick, self.stream.pipeline)
        if not self._punctuated(self.stream, tick, where):
            of_what = "" if where is None else f" for {where}"
            raise DataError(
                f"the watermark{of_what} cannot go back to {tick}; the watermark of the stream is {self.watermark}",
                code="ACEP-D072",
                hint="a watermark only rises: give a later time",
            )
        return self._settled(self.stream, self._moved(self.stream, ()))

    def expect(self, source: int) -> None:
        """Let the watermark wait for the first row of a source, if it is not known yet; not before the first push."""
        assert self.stream is not None, "the columns are known"
        self.stream.watermarks.expect(source)

    def expect_no_more(self, source: int) -> pa.Table:
        """Let the watermark not wait for a source that has sent nothing; returns what that makes final."""
        assert self.stream is not None, "the columns are known"
        if not self.stream.watermarks.expect_no_more(source):
            return self._nothing()
        return self._settled(self.stream, self._moved(self.stream, ()))

    def state_bytes(self) -> bytes:
        """The state as bytes, to go on later or elsewhere with ``Query.from_state``.

        Raises
        ------
        DataError
            ``ACEP-D045``: an error stopped it in the middle of a batch.

        Complexity: O(keys + events held); taking it up runs the events held once more.
        """
        mine = Scope(
            {
                "asked": self.asked.header(),
                "options": self.execution.options(),
                "changes": self.changes,
                "rows": self.rows,
            }
        )
        self.left_out.save(mine.sub("left out"))
        return packed(self.plan, mine, self.stream)

    @classmethod
    def from_saved(cls, plan: Plan, saved: Scope) -> Self:
        """What ``state_bytes`` was called on; see ``Query.from_state``.

        Raises
        ------
        Exception
            What ``ranges.reading`` takes for damage.
        """
        mine = saved.parts["revisions"]
        made = cls(plan, Revisions(**mine.head["asked"]), **checked_options(mine.head["options"]))
        made.rows = mine.number("rows")
        made.changes = {name: number_in(name, mine.head["changes"][name], 0, COUNT) for name in CHANGES}
        made.left_out.load(mine.parts["left out"])
        if "stream" in mine.parts:
            stream = mine.parts["stream"]
            made.execution.take(saved)
            made.stream = set_up(made.execution, made.asked, tuple(stream.head["names"]), stream.head["op"])
            take_up(made.stream, stream)
        return made

    def finish(self) -> pa.Table:
        """The stream has ended: nothing is late, changes or goes any more."""
        self.malformed.finish()
        if self.stream is None:
            return self._nothing()
        self.stream.watermarks.close()
        tables = self._moved(self.stream, ())
        tables += self.stream.run.finish()
        return self._settled(self.stream, tables)

    # --- a push ---------------------------------------------------------------------------------------------

    def _bind(self, source: Source) -> RevisedStream:
        """Set up for the columns of the first rows."""
        asked, schema = self.asked, source.schema
        pipeline = source.settle(self.execution.bind)
        read = {*pipeline.columns, *(name for name in (asked.id, asked.source, asked.sequence) if name is not None)}
        for name in sorted(read):
            if name not in schema.names:
                raise missing_column(name, schema.names)
        self._check_ids(schema)
        op = None if isinstance(asked.op, bool) else find_op(schema.names, asked.op, read)
        self.stream = set_up(self.execution, asked, tuple(source.readable.names), op)
        return self.stream

    def _check_ids(self, schema: pa.Schema) -> None:
        if self.asked.id is not None:
            check_ids(self.asked.id, schema.field(self.asked.id).type)

    def _read(self, source: Source, stream: RevisedStream) -> pa.RecordBatch:
        """All rows of a push as one batch."""
        asked = self.asked
        must = {*stream.needed, *(name for name in (stream.op, asked.source, asked.sequence) if name is not None)}
        source.expect(must)
        names = source.schema.names
        for name in sorted(must - set(names)):
            raise missing_column(name, names)
        op = find_op(names, None, must) if stream.op is None and asked.op is None else None
        if op is not None:
            raise DataError(
                f"the column {op!r}, which says what rows do, was not there at first: all rows were taken to insert",
                code="ACEP-D075",
                hint=f"give {op!r} from the first push on, or say that no column says what rows do: --op none "
                "(op=False)",
            )
        self._check_ids(source.schema)
        read = [name for name in names if name in must or name in source.readable.names]
        batches = [batch for batch in source.batches(read) if batch.num_rows]
        if not batches:
            return pa.RecordBatch.from_pylist([], schema=source.schema)
        if len(batches) == 1:
            return batches[0]
        return one_table(batches).combine_chunks().to_batches()[0]

    def _take_in(self, data: pa.RecordBatch, stream: RevisedStream) -> pa.Table:
        pipeline, asked = stream.pipeline, self.asked
        pipeline.stream.check_whole()
        ops = self._ops(data, stream)
        roles = pipeline.roles
        tick = ticks(data.column(roles.time), roles.unit, first_row=self.rows, format=roles.time_format)
        arrival = np.arange(self.rows, self.rows + len(tick))
        events = Events(tick, arrival, arrival, self._kept_columns(data, stream))
        self._fit(events, stream)
        is_mark = None if ops is None else ops == Op.WATERMARK
        sequence = None if asked.sequence is None else numbers_of(data.column(asked.sequence), asked.sequence)
        source = None if asked.source is None else data.column(asked.source)
        before = stream.watermarks.advance(tick, source, sequence, is_mark)
        self.rows += len(tick)
        rejects = self._late(tick, before, is_mark)
        if stream.closed.has_parts:
            rejects |= dict.fromkeys(np.flatnonzero(stream.closed.late(tick, data)).tolist(), LATE)
        gone: list[tuple[int, int]] = []
        passing = 0
        if rejects or ops is not None:
            kept = np.ones(len(tick), np.bool_) if ops is None else ops != Op.WATERMARK
            kept[list(rejects)] = False
            which = np.flatnonzero(kept)
            events = events if len(which) == len(kept) else events.take(which)
        if ops is not None:
            passed = np.maximum(before[which], stream.closed.reached)
            found = stream.live.resolve(events, ops[which], passed, stream.events_at)
            rejects |= {int(which[row]): reason for row, reason in found.rejected}
            gone, passing = found.gone, found.passing
            events = Events(events.tick, events.arrival, found.tie, events.data).where(found.is_new)
        self._note(data, rejects, arrival, inserted=len(events) + passing, retracted=len(gone) + passing)
        if stream.closed.has_parts:  # what lies before cannot play a role
            events = events.where(events.tick >= stream.closed.reached)
        stream.waiting.add(events)
        return self._settled(stream, self._moved(stream, gone))

    def _ops(self, data: pa.RecordBatch, stream: RevisedStream) -> npt.NDArray[np.int8] | None:
        """What each row does; None where all insert."""
        if stream.op is None:
            return None
        progressed = next((data.column(name) for name in PROGRESSED if name in data.schema.names), None)
        ops = ops_of(data.column(stream.op), stream.op, self.rows, progressed)
        if self.asked.id is None and (ops == Op.UPDATE).any():
            row = int(np.argmax(ops == Op.UPDATE))
            raise DataError(
                f"row {self.rows + row}: an update in one row does not say which event it updates",
                code="ACEP-D071",
                hint="name the column of the ids of events: id='COLUMN' (--id COLUMN)",
                row=self.rows + row,
            )
        return ops

    @staticmethod
    def _kept_columns(data: pa.RecordBatch, stream: RevisedStream) -> pa.RecordBatch:
        """The columns that are needed later; of those that only content is made of, nulls where they are missing."""
        there = set(data.schema.names)
        arrays = [data.column(n) if n in there else pa.nulls(data.num_rows) for n in stream.columns]
        return pa.RecordBatch.from_arrays(arrays, names=list(stream.columns))

    @staticmethod
    def _fit(events: Events, stream: RevisedStream) -> None:
        """Refuse columns of types that do not go together with those before, while nothing has changed yet."""
        pipeline, schema = stream.pipeline, events.data.schema
        if stream.fitting is not None and stream.fitting.equals(schema):
            return
        batch = events.batch(pipeline.columns, int(events.arrival[0]))
        stream.fitting = schema if pipeline.stream.fit(batch) is batch else None

    @staticmethod
    def _late(tick: Ints, before: Ints, is_mark: Bools | None) -> dict[int, str]:
        """The rows whose time the watermark has passed, and why they are left out."""
        behind = np.flatnonzero(tick < before).tolist()
        return {row: BACKWARDS if is_mark is not None and is_mark[row] else LATE for row in behind}

    def _note(self, data: pa.RecordBatch, rejects: dict[int, str], arrival: Ints, **counts: int) -> None:
        """Count, and keep what is left out."""
        self.changes = {name: self.changes[name] + number for name, number in counts.items()}
        rows = np.array(sorted(rejects), np.int64)
        self.left_out.add(data, rows, [rejects[row] for row in rows.tolist()], arrival)

    def _moved(self, stream: RevisedStream, gone: Sequence[tuple[int, int]]) -> list[pa.Table]:
        """Run what lies before the horizon now, and take back what is gone."""
        watermark = stream.final
        horizon = min(watermark + stream.beyond, ENDED) if stream.beyond < ENDED else ENDED
        tick, arrival = np.array(gone, np.int64).reshape(-1, 2).T
        if len(gone):
            here = np.isin(arrival, stream.waiting.remove(arrival))
            tick, arrival = tick[~here], arrival[~here]
        due = stream.waiting.due(horizon)
        if isinstance(stream.run, FinalRun):
            assert not len(arrival), "what the watermark has passed does not change"
            if self.final_rows is not None:
                self.final_rows += [events.arrival for events in due]
                return []
            tables = [table for events in due for table in stream.run.run(events)]
            return tables + (stream.run.pass_time(watermark) if watermark > NEVER else [])
        if not due and not len(arrival):
            return []
        whole = Events.joined(due) if due else stream.no_events()
        return [self._changed(stream, stream.run, whole, (tick, arrival))]

    @staticmethod
    def _changed(stream: RevisedStream, run: Replay, due: Events, removed: tuple[Ints, Ints]) -> pa.Table:
        return stream.changelog.table(run.change(due, removed), run.tail)

    def _settled(self, stream: RevisedStream, tables: list[pa.Table]) -> pa.Table:
        watermark = stream.final
        if watermark > NEVER:
            stream.run.settle(watermark)
        if stream.op is not None and len(stream.live) > 2 * self.held_events + DICTS_PER_CHUNK:
            stream.live.forget_all_but(stream.held_parts())
        whole = [table for table in tables if table.num_rows]
        if not whole:
            return self._nothing()
        return whole[0] if len(whole) == 1 else pa.concat_tables(whole, promote_options="permissive")

    def _nothing(self) -> pa.Table:
        return self.stream.changelog.nothing() if self.stream is not None else pa.table({})

    def _punctuated(self, stream: RevisedStream, tick: int, where: str | None) -> bool:
        """Move the watermark: of all events, of a source, or of the events that satisfy a condition."""
        if where is None:
            return stream.watermarks.punctuate(tick)
        of_source = stream.closed.value_of(where, self.asked.source) if self.asked.source is not None else ()
        return stream.watermarks.punctuate(tick, *of_source) if of_source else stream.closed.close(where, tick)


def _tick_of(time: Any, pipeline: Pipeline) -> int:
    """A time that a user gives, in ticks."""
    if isinstance(time, Integral) and not isinstance(time, bool):
        return int(time)
    if pipeline.is_time:
        expect("tick", time, (str, datetime), "a time: as text, as a datetime, or in microseconds")
        return int(ticks(pa.array([time]))[0])
    expect("tick", time, Integral, "a whole number, as the times of the events are")
    return int(time)
