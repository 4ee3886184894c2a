"""The push interface of streams whose events may be late, revised and taken back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from numbers import Integral
from typing import Any, Self

import numpy as np
import pyarrow as pa

from acep_approx.archive import Scope
from acep_approx.arguments import checked as public
from acep_approx.diagrams.fragments import bounded, never_raises, plain, soft, tiles, title, view
from acep_approx.diagrams.text_layout import one_line
from acep_approx.errors import DataError, expect
from acep_approx.events.changes import find_op
from acep_approx.events.columns import missing_column
from acep_approx.events.source import Source
from acep_approx.events.time import ticks
from acep_approx.events.usable_rows import pushed
from acep_approx.matching.execution import Execution, checked_options
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.state import MATCHER, saved
from acep_approx.matching.stream_side import StreamSide
from acep_approx.planning.planner import Plan
from acep_approx.ranges import COUNT, number_in
from acep_approx.revisions.names import check_ids
from acep_approx.revisions.request import Revisions
from acep_approx.revisions.stream import PROGRESSED, RevisedStream, RevisionCounts
from acep_approx.run.left_out import REASONS, LeftOut
from acep_approx.run.run import Run
from acep_approx.run.watermarks import NEVER, Held
from acep_approx.timeline.picture import moment_text

CHANGES = ("inserted", "retracted")


class RevisedMatcher(Run):
    """Runs one query over a stream whose events may be late, revised and taken back; made by ``Query.matcher``.

    Parameters
    ----------
    plan : Plan
    revisions : Revisions
        How events may come late and change.
    **options
        As for ``Matcher``: ``output``, ``time``, ``key``, ``type``, ``unit``, ``merge``, ``bind``.

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
        self.execution.is_stamped = self._is_shown_at_once
        self.rows = 0
        self.stream: RevisedStream | None = None
        self.left_out = LeftOut()

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

    @property
    def _is_shown_at_once(self) -> bool:
        """Whether results are those of a plain run but for the numbers of rows: nothing else of events is shown."""
        plan, asked = self.plan, self.asked
        is_by_rows = not self.execution.bind_by and not plan.query.outputs and plan.cel is None
        return asked.is_final and not asked.is_changelog and is_by_rows and not plan.is_count_window

    @property
    def stage(self) -> Execution:
        """What the events go through, once they are in order."""
        return self.execution

    @property
    def arrived(self) -> int:
        """How many rows were pushed so far."""
        return self.rows

    def reads(self, names: Sequence[str]) -> list[str]:
        """Which columns of an input are read, of these names: all only where rows are taken back by their content."""
        stream, asked = self.stream, self.asked
        assert stream is not None, "there are columns"
        wanted = {*stream.columns, stream.op, asked.source, asked.sequence, *PROGRESSED}
        return [name for name in names if stream.is_by_content or name in wanted]

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
        source = self._opened(events)
        if not len(source.schema):
            return self._nothing()
        stream = self.stream or self._bind(source)
        source.use(stream.pipeline.roles.read_in(stream.pipeline.columns))
        data = stream.read(source)
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
        if not self.stream.punctuate(tick, where):
            of_what = "" if where is None else f" for {where}"
            raise DataError(
                f"the watermark{of_what} cannot go back to {tick}; the watermark of the stream is {self.watermark}",
                code="ACEP-D072",
                hint="a watermark only rises: give a later time",
            )
        return self.stream.moved()

    def expect(self, source: int) -> None:
        """Let the watermark wait for the first row of a source, if it is not known yet; not before the first push."""
        assert self.stream is not None, "the columns are known"
        self.stream.watermarks.expect(source)

    def expect_no_more(self, source: int) -> pa.Table:
        """Let the watermark not wait for a source that has sent nothing; returns what that makes final."""
        assert self.stream is not None, "the columns are known"
        if not self.stream.watermarks.expect_no_more(source):
            return self._nothing()
        return self.stream.moved()

    def state_bytes(self) -> bytes:
        """The state as bytes, to go on later or elsewhere with ``Query.from_state``.

        Raises
        ------
        DataError
            ``ACEP-D045``: an error stopped it in the middle of a batch.

        Complexity: O(keys + events held); taking it up runs the events held once more.
        """
        mine = Scope(self.header())
        self.left_out.save(mine.sub("left out"))
        if self.stream is None:
            return self._packed(mine, None)
        side = self.stream.pipeline.stream
        side.check_whole()
        self.stream.save(mine.sub("stream"))
        with self.stream.run.at_base():
            return self._packed(mine, side)

    def header(self) -> dict[str, Any]:
        """What a state holds of it beside the stream, as JSON."""
        return {
            "asked": self.asked.header(),
            "options": self.execution.options(),
            "changes": self.changes,
            "rows": self.rows,
        }

    def _packed(self, mine: Scope, side: StreamSide | None) -> bytes:
        scope = saved(self.plan, {}, side)
        scope.parts["revisions"] = mine
        return MATCHER.pack(scope)

    @classmethod
    def from_saved(cls, plan: Plan, state: Scope) -> Self:
        """What ``state_bytes`` was called on; see ``Query.from_state``.

        Raises
        ------
        Exception
            What ``ranges.reading`` takes for damage.
        """
        asked, options = cls.made_with(state)
        made = cls(plan, asked, **options)
        made.go_on(state)
        return made

    @staticmethod
    def made_with(state: Scope) -> tuple[Revisions, dict[str, Any]]:
        """How events may be late and change, and the options, that the matcher of a state was made with."""
        head = state.parts["revisions"].head
        return Revisions(**head["asked"]), checked_options(head["options"])

    def go_on(self, state: Scope) -> None:
        """Go on from a state, before anything was pushed."""
        mine = state.parts["revisions"]
        self.rows = mine.number("rows")
        self.changes = {name: number_in(name, mine.head["changes"][name], 0, COUNT) for name in CHANGES}
        self.left_out.load(mine.parts["left out"])
        if "stream" in mine.parts:
            stream = mine.parts["stream"]
            self.execution.take(state)
            self.stream = RevisedStream(self.execution, self.asked, stream.head["names"], stream.head["op"])
            self.stream.load(stream)

    def finish(self, *, ended: bool = True) -> pa.Table:
        """The stream has ended: nothing is late, changes or goes any more; see ``Execution.finish``."""
        self.malformed.finish()
        if self.stream is None:
            return self._nothing()
        self.stream.pipeline.stream.ends = ended
        self.stream.watermarks.close()
        return self.stream.moved(is_over=True)

    @property
    def unclosed(self) -> int:
        """How many results waited for the end of their window when it was finished, though more events may come."""
        return self.execution.unclosed

    # --- a push ---------------------------------------------------------------------------------------------

    def _bind(self, source: Source) -> RevisedStream:
        asked, schema = self.asked, source.schema
        pipeline = source.settle(self.execution.bind)
        read = {*pipeline.columns, *(name for name in (asked.id, asked.source, asked.sequence) if name is not None)}
        for name in sorted(read):
            if name not in schema.names:
                raise missing_column(name, schema.names)
        check_ids(asked.id, schema)
        op = None if isinstance(asked.op, bool) else find_op(schema.names, asked.op, read)
        self.stream = RevisedStream(self.execution, asked, source.readable.names, op)
        return self.stream

    def _take_in(self, data: pa.RecordBatch, stream: RevisedStream) -> pa.Table:
        rows = stream.rows(data, self.rows)
        if stream.follows(rows):
            self.rows += len(rows.events)
            self.changes["inserted"] += len(rows.events)
            return stream.take(rows.events, ())
        before = stream.watermarks.advance(rows.events.tick, rows.source, rows.sequence, rows.is_mark)
        self.rows += len(before)
        rejects = stream.late(rows, before)
        found = stream.resolved(rows, before, rejects)
        self.changes["inserted"] += len(found.came) + found.passing
        self.changes["retracted"] += len(found.gone) + found.passing
        places = np.array(sorted(rejects), np.int64)
        self.left_out.add(data, places, [rejects[place] for place in places.tolist()], rows.events.arrival)
        return stream.take(found.came, found.gone)

    def _nothing(self) -> pa.Table:
        return self.stream.changelog.nothing() if self.stream is not None else pa.table({})


def _tick_of(time: Any, pipeline: Pipeline) -> int:
    if isinstance(time, Integral) and not isinstance(time, bool):
        return int(time)
    if pipeline.is_time:
        expect("tick", time, (str, datetime), "a time: as text, as a datetime, or in microseconds")
        return int(ticks(pa.array([time]))[0])
    expect("tick", time, Integral, "a whole number, as the times of the events are")
    return int(time)
