"""One stream whose events may be late or change: what a matcher has once it knows the columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acep_approx.matching.execution import Execution
from acep_approx.matching.pipeline import Pipeline
from acep_approx.revisions.changelog import Changelog
from acep_approx.revisions.closed import ClosedParts
from acep_approx.revisions.final import FinalRun
from acep_approx.revisions.live import LiveEvents
from acep_approx.revisions.replay import Replay
from acep_approx.revisions.request import Revisions
from acep_approx.run.events import Events
from acep_approx.run.waiting import Waiting
from acep_approx.run.watermarks import Watermarks


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


@dataclass
class RevisedStream:
    """What a matcher has once the columns of the events are known.

    ``names`` are the columns of the first rows, ``needed`` those that all rows must have, ``columns`` those that are
    kept of events; ``beyond``: how far beyond the watermark events are run; ``fitting``: columns that need no
    conversion. ``is_by_content``: whether rows that take events back name them by all that stands in them.
    """

    pipeline: Pipeline
    names: tuple[str, ...]
    needed: tuple[str, ...]
    columns: tuple[str, ...]
    op: str | None
    is_by_content: bool
    watermarks: Watermarks
    beyond: int
    changelog: Changelog
    run: Replay | FinalRun
    live: LiveEvents
    closed: ClosedParts
    waiting: Waiting
    fitting: pa.Schema | None = None

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

    def no_events(self) -> Events:
        """None, with the columns that are kept."""
        none = np.zeros(0, np.int64)
        data = pa.RecordBatch.from_arrays([pa.nulls(0)] * len(self.columns), list(self.columns))
        return Events(none, none, none, data)

    def held_parts(self) -> list[Events]:
        """The events that are held, in order but for those that are not run yet."""
        in_tail = [part for segment in self.run.tail.segments for part in segment.parts]
        return [*self.run.tail.passed, *in_tail, *self.waiting.parts]

    @property
    def held(self) -> int:
        """Events that are held because they, or others beside them, may still change."""
        return self.run.tail.held + len(self.waiting)


def set_up(execution: Execution, asked: Revisions, names: tuple[str, ...], op: str | None) -> RevisedStream:
    """Begin with events of these columns, of which ``op`` says what a row does."""
    pipeline = execution.pipeline
    assert pipeline is not None, "bind first"
    is_time = pipeline.is_time
    changelog = Changelog(pipeline, execution.bind_by, asked.id, is_changelog=asked.is_changelog)
    is_by_content = op is not None and asked.id is None
    needed = tuple(dict.fromkeys((*pipeline.columns, *changelog.needed, *((asked.id,) if asked.id else ()))))
    run = FinalRun(pipeline, changelog) if asked.is_final else Replay(pipeline, asked.id)
    run.tail.has_twins = op is None and asked.id is not None and asked.is_changelog
    return RevisedStream(
        pipeline=pipeline,
        names=names,
        needed=needed,
        columns=names if is_by_content else needed,
        op=op,
        is_by_content=is_by_content,
        watermarks=asked.wait(is_time=is_time).watermarks,
        beyond=asked.beyond(is_time=is_time),
        changelog=changelog,
        run=run,
        live=LiveEvents(
            asked.id,
            [name for name in names if name not in (op, asked.sequence)],
            None if pipeline.preparer.is_count else pipeline.window,
        ),
        closed=ClosedParts(pipeline.plan, pipeline.roles, names),
        waiting=Waiting(() if asked.id is None else (asked.id,)),
    )
