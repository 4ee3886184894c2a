"""Tells a matcher which partitions of a Kafka topic have messages, so that the watermark waits for them.

Each partition is a source. Without this, the first messages to arrive, all from one partition, could make older
messages of the other partitions late.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from acep_approx.events.live.source import LiveSource
from acep_approx.events.reading.widening import stacked
from acep_approx.events.source import Source
from acep_approx.run.run import Feed


class Waiting(Protocol):
    """A matcher, or a set, that lets its watermark wait for sources."""

    def expect(self, source: int) -> None:
        """Wait for the first row of a source, if it is not known yet."""

    def expect_no_more(self, source: int) -> Any:
        """Do not wait any more for a source that has sent nothing; what that makes final, or None."""


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

    def pass_on(self, matcher: Waiting) -> Any:
        """Let a matcher wait, or wait no more; what that makes final, if it tells that at once."""
        if self.is_over:
            return matcher.expect_no_more(self.partition)
        matcher.expect(self.partition)
        return None


class PartitionFeed(Feed):
    """Pushes events into a matcher, or a set, whose sources are partitions, and lets it wait for them."""

    def push(self, batch: pa.RecordBatch, source: Source) -> Any:
        """The results of the batch that a source gave last."""
        run: Any = self.run
        if not isinstance(source, LiveSource):
            return run.push(batch)
        news = source.partition_news()
        begun = [Wait(run.arrived, number, is_over=False) for number in sorted(news.begun)]
        for wait in begun:
            wait.pass_on(run)
        found = run.push(batch)
        ended = [Wait(run.arrived, number, is_over=True) for number in sorted(news.ended)]
        more = [wait.pass_on(run) for wait in ended]
        if source.kept is not None:
            self.waits += begun + ended
        tables = [table for table in more if table is not None and table.num_rows]
        if not tables:
            return found
        return stacked([found, *tables] if found.num_rows else tables)
