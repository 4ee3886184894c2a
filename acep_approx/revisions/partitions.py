"""Tells a matcher which partitions of a Kafka topic have messages, so that the watermark waits for them.

Each partition is a source. Without this, the first messages to arrive, all from one partition, could make older
messages of the other partitions late.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from acep_approx.events.live.kafka_address import PARTITION
from acep_approx.events.live.source import LiveSource
from acep_approx.events.source import Source
from acep_approx.revisions.matcher import RevisedMatcher


@dataclass(frozen=True)
class Wait:
    """From when on the watermark waited for a partition that had sent nothing, or waited no more.

    Parameters
    ----------
    row : int
        Rows with lower numbers came before.
    partition : int
    is_over : bool
        Whether nothing waits any more.
    """

    row: int
    partition: int
    is_over: bool

    def pass_on(self, matcher: RevisedMatcher) -> pa.Table | None:
        """Let a matcher wait, or wait no more; what that makes final."""
        if self.is_over:
            return matcher.expect_no_more(self.partition)
        matcher.expect(self.partition)
        return None


class Partitions:
    """Pushes events, and lets the matcher wait for partitions. Other events are just pushed.

    Parameters
    ----------
    matcher : RevisedMatcher
        Knows the columns.
    source : Source
        Where the events come from.

    Attributes
    ----------
    waits : list of Wait
        All so far, where the source keeps its events to be read again.
    """

    def __init__(self, matcher: RevisedMatcher, source: Source) -> None:
        self.waits: list[Wait] = []
        self._matcher = matcher
        self._source = source if isinstance(source, LiveSource) and matcher.asked.source == PARTITION else None

    def push(self, batch: pa.RecordBatch) -> pa.Table:
        """The results of more events."""
        matcher = self._matcher
        if self._source is None:
            return matcher.push(batch)
        news = self._source.partition_news()
        begun = [Wait(matcher.rows, number, is_over=False) for number in sorted(news.begun)]
        for wait in begun:
            wait.pass_on(matcher)
        found = matcher.push(batch)
        ended = [Wait(matcher.rows, number, is_over=True) for number in sorted(news.ended)]
        more = [wait.pass_on(matcher) for wait in ended]
        if self._source.kept is not None:
            self.waits += begun + ended
        tables = [table for table in (found, *more) if table is not None and table.num_rows]
        return pa.concat_tables(tables, promote_options="permissive") if len(tables) > 1 else (tables or [found])[0]
