"""One query over events that are still being written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from acep_approx.api.live_run import Checkpointing, LiveRun
from acep_approx.api.matcher import Matcher
from acep_approx.errors import UsageError
from acep_approx.events.live.kafka_address import PARTITION, is_address
from acep_approx.events.live.source import LiveSource
from acep_approx.events.reading.layout import Layout
from acep_approx.events.source import Source
from acep_approx.revisions.matcher import PROGRESSED, RevisedMatcher
from acep_approx.revisions.partitions import Partitions
from acep_approx.revisions.request import REVISING


@dataclass
class LiveQuery:
    """One query over live events.

    Parameters
    ----------
    query : Query
    options : dict
        Of ``Query.matcher``.
    keeps_whole : bool
        Whether all columns are read, since rows that are left out are written.

    Attributes
    ----------
    partitions : Partitions or None
        Those of a topic for which the watermark waits, where events may be late.
    """

    query: Any
    options: dict[str, Any]
    keeps_whole: bool = False

    def __post_init__(self) -> None:
        self.matcher = self._fresh()
        self.partitions: Partitions | None = None

    def _fresh(self) -> Matcher | RevisedMatcher:
        made: Matcher | RevisedMatcher = self.query.matcher(**self.options)
        return made

    def asked(self) -> dict[str, Any]:
        """What was asked for; the query itself stands in the state."""
        given = {name: value for name, value in self.options.items() if value is not None}
        return {"options": {name: _plain(value) for name, value in sorted(given.items())}}

    def taken_up(self, state: bytes) -> None:
        """Go on from a state."""
        self.matcher = self.query.from_state(state, history=self.options.get("history"))

    def bind(self, source: LiveSource) -> pa.Table | None:
        """Get ready for the columns of the events."""

        def bound(schema: pa.Schema) -> tuple[Matcher | RevisedMatcher, pa.Table] | None:
            if not len(schema):
                return None
            matcher = self._fresh()
            return matcher, matcher.push(schema.empty_table())

        found = source.settle(bound)
        if found is None:
            return None
        self.matcher, nothing = found
        return nothing

    def columns(self, names: Sequence[str]) -> list[str]:
        """Those that the query reads."""
        return list(names) if self.keeps_whole else columns_read(self.matcher, names)

    def use(self, source: LiveSource) -> None:
        """Tell the input which column is the time."""
        use_times(self.matcher, source)
        if isinstance(self.matcher, RevisedMatcher):
            self.partitions = Partitions(self.matcher, source)

    @property
    def arrived(self) -> int:
        """How many events were pushed, also by the runs before."""
        matcher = self.matcher
        return matcher.rows if isinstance(matcher, RevisedMatcher) else matcher.progress.events

    def push(self, batch: pa.RecordBatch) -> pa.Table:
        """The results of more events."""
        return (self.partitions or self.matcher).push(batch)

    def finish(self) -> pa.Table:
        """The stream has ended."""
        return self.matcher.finish()

    def state(self) -> bytes:
        """Where it stands."""
        return self.matcher.state_bytes()

    @property
    def rejected(self) -> Callable[[], pa.Table] | None:
        """Gives the rows that were left out since it was asked last."""
        return None if isinstance(self.matcher, Matcher) else self.matcher.rejected


def follow_query(
    query: Any,
    place: str | Path,
    checkpointing: Checkpointing,
    reading: dict[str, Any],
    options: dict[str, Any],
    **more: Any,
) -> LiveRun:
    """A query over live events; see ``Query.follow``.

    Of a topic of Kafka each partition is a source of its own, unless ``source=`` says otherwise.
    """
    written = {name: value for name, value in options.items() if name in Layout.__dataclass_fields__ and name != "time"}
    reading = {"time": options.get("time")} | reading | written
    options = {name: value for name, value in options.items() if name not in written or name == "time_format"}
    revising = {name for name in REVISING if options.get(name) is not None}
    if revising and is_address(place) and "source" not in revising:
        options = options | {"source": PARTITION}
    if not revising and reading.get("late") is not None:
        raise UsageError(
            "late= is of use where events may be late only",
            code="ACEP-U139",
            hint="say how late: --watermark '10 s' (watermark= in Python)",
        )
    runs = LiveQuery(query, options, keeps_whole=reading.get("late") is not None)
    return LiveRun(place, runs, checkpointing, {**reading, "is_in_order": not revising}, **more)


def use_times(matcher: Matcher | RevisedMatcher, source: Source) -> None:
    """Tell an input which column is the time for a matcher that knows the columns."""
    pipeline = matcher.execution.pipeline if isinstance(matcher, RevisedMatcher) else matcher.pipeline
    assert pipeline is not None, "there are columns"
    source.use(pipeline.roles.read_in(pipeline.columns))


def columns_read(matcher: Matcher | RevisedMatcher, names: Sequence[str]) -> list[str]:
    """Which columns of an input a matcher reads that knows them: all only where rows are taken back by their content.

    Parameters
    ----------
    matcher : Matcher or RevisedMatcher
    names : sequence of str
        The columns that there are.
    """
    if isinstance(matcher, RevisedMatcher):
        stream, asked = matcher.stream, matcher.asked
        assert stream is not None, "there are columns"
        if stream.is_by_content:
            return list(names)
        wanted = {*stream.columns, stream.op, asked.source, asked.sequence, *PROGRESSED}
    else:
        assert matcher.pipeline is not None, "there are columns"
        wanted = {*matcher.pipeline.columns, matcher.pipeline.roles.time}
    return [name for name in names if name in wanted]


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) else str(value)
