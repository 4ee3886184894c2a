"""``acep run`` over events that are late, updated or taken back: results are put out as they become known."""

from __future__ import annotations

import sys
import time as clock
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, cast

from acep_approx.cli.metrics import freeze, tell_events, tell_results
from acep_approx.cli.no_match import found_nothing, say_no_match
from acep_approx.cli.options.choices import Format, ResultKind
from acep_approx.cli.options.revisions import OUTPUTS
from acep_approx.cli.process import hide_pandas
from acep_approx.cli.runs.query_run import QueryRun
from acep_approx.cli.runs.revised_summary import Changes, facts_of, say_changes, say_holding, say_rows
from acep_approx.cli.summary import SINGULAR, say_how_read, say_malformed, say_unit
from acep_approx.cli.terminal import EventBar, progress_bar, say

if TYPE_CHECKING:
    import pyarrow as pa

    from acep_approx.cli.write import Results
    from acep_approx.events.late import Sink
    from acep_approx.events.source import Source
    from acep_approx.revisions.matcher import RevisedMatcher
    from acep_approx.revisions.partitions import Partitions


def run_revised(job: QueryRun) -> None:
    """Read the events, put out what is found and what is taken back of it, and say what became of them.

    Parameters
    ----------
    job : QueryRun

    Raises
    ------
    AcepError
        As a run over plain events; ``ACEP-D070`` and others: a row that makes no sense as a change.
    """
    hide_pandas()
    from acep_approx.cli.write import Results, print_table, write

    begun = clock.perf_counter()
    kind, is_table = job.output.output, job.form is Format.TABLE
    is_seen = not is_table and job.output.file is None and sys.stdout.isatty()  # rows and a bar would mix
    changes, shown = Changes(), []
    with progress_bar("matching", enabled=not (job.quiet or is_seen)) as progress:
        feed = _Feed(job)
        progress.total = feed.source.rows
        tell_events(feed.source, lambda: feed.matcher.rows, lambda: feed.matcher.revisions.late)
        with closing(feed.counts(progress) if kind is ResultKind.COUNT else feed.tables(progress)) as tables:
            results = Results(tables, job.output.most_rows(job.form))
            tell_results(results, are_matches=kind is ResultKind.MATCHES and not feed.revisions.is_changelog)
            is_changelog = feed.revisions.is_changelog and kind is not ResultKind.COUNT
            counted = changes.counted(results) if is_changelog else results
            if is_table:
                shown = list(counted)
            else:
                write(counted, job.form, job.output.file, flush=job.output.flush)
    freeze()
    if is_table:
        print_table(shown, "matches" if kind is ResultKind.COUNT else kind.value)
    sys.stdout.flush()
    if not job.quiet:
        _summarise(feed, results, changes, clock.perf_counter() - begun)
    if job.page is not None:
        page_of_remaining(job, feed.source, facts_of(feed.matcher, changes), partitions=feed.partitions)


def page_of_remaining(
    job: QueryRun,
    source: Source,
    facts: list[tuple[str, str]],
    before: int = 0,
    partitions: Partitions | None = None,
) -> None:
    """Make the page of the events that are there in the end, in order of time; ``before`` rows came in earlier runs."""
    from acep_approx.revisions.remaining import remaining

    assert job.page is not None, "it is asked for"
    assert job.revisions is not None, "it is asked for"
    roles: dict[str, Any] = job.source.roles
    matcher = job.query.matcher(**job.revisions.header() | {"emit": "final", "changelog": None}, **roles)
    there = remaining(cast("RevisedMatcher", matcher), source.again(before), partitions.waits if partitions else ())
    matches = job.query.match(there, bind=job.output.bound, **roles)
    matches.has_warned = True  # the run has
    job.page.write(matches, facts)


def _summarise(feed: _Feed, results: Results, changes: Changes, seconds: float) -> None:
    kind = feed.job.output.output
    say_rows(feed.matcher, feed.job.source.late, seconds)
    if kind is not ResultKind.COUNT:
        say_changes(results, changes, SINGULAR[kind])
    say_how_read(feed.source)
    say_unit(feed.source)
    say_malformed(feed.source.malformed)
    if found_nothing(results, kind):
        _say_nothing(feed)
    say_holding(feed.matcher)


def _say_nothing(feed: _Feed) -> None:
    """Say why there is no match, where all rows are events that stay."""
    job, matcher = feed.job, feed.matcher
    takes_back = matcher.stream is not None and matcher.stream.op is not None
    if takes_back or not feed.source.reusable:
        say("no match; to see why, run the query over the events that remain, as a file in order of time")
        return
    plain = job.source.reading | {"rejects": None, "on_late": "refuse", "late": None}
    say_no_match(job.context, job.query.match(job.inputs, sort=True, **job.source.roles, **plain).no_match)


class _Feed:
    """Pushes the events, batch by batch, into a matcher.

    Parameters
    ----------
    job : QueryRun

    Attributes
    ----------
    source : Source
        Where they come from.
    matcher : RevisedMatcher
        One that knows their columns, once there are any.
    """

    def __init__(self, job: QueryRun) -> None:
        from acep_approx.events.source import open_source

        plain = job.source.reading | {"on_late": "refuse", "late": None}  # the matcher knows what is late
        assert job.revisions is not None, "it is asked for"
        self.job, self.revisions = job, job.revisions
        self.source: Source = open_source(job.inputs, **plain)
        if job.page is not None:
            self.source.keep()
        self.matcher = self._fresh()
        self.partitions: Partitions | None = None

    def tables(self, progress: EventBar) -> Generator[pa.Table]:
        """The results as they come; the first table is empty and shows the columns."""
        from acep_approx.api.live_run import use_times
        from acep_approx.events.usable_rows import pushed
        from acep_approx.matching.unseen import warn_of_unseen_types
        from acep_approx.revisions.partitions import Partitions

        bound = self.source.settle(self._bound)
        if bound is None:  # no columns, no events
            return
        self.matcher, nothing = bound
        yield nothing
        use_times(self.matcher, self.source)
        self.partitions = Partitions(self.matcher, self.source)
        with self._left_out() as sink:
            for batch in self.source.batches(self._columns()):
                found = pushed(self.partitions.push, batch, self.source, self.matcher.rows)
                rejected = self.matcher.rejected()  # they are not to gather
                if sink is not None and rejected.num_rows:
                    sink.write(rejected)
                yield found
                progress.done(self.matcher.rows)
        yield self.matcher.finish()
        if self.matcher.revisions.inserted:
            warn_of_unseen_types(self.matcher.plan.automaton, self.matcher.execution.types_seen)

    def counts(self, progress: EventBar) -> Generator[pa.Table]:
        """How many matches there are when all events have come, by their number of errors."""
        from acep_approx.cli.write import count_table
        from acep_approx.matching.outputs.counted import warn_at_least
        from acep_approx.results.matches import add_counts

        counts = dict.fromkeys(range(self.job.query.plan.automaton.errors + 1), 0)
        for table in self.tables(progress):
            if table.num_rows:
                add_counts(counts, table)
        warn_at_least(counts.values())
        yield count_table(counts)

    def _fresh(self) -> RevisedMatcher:
        """A matcher that knows no columns yet."""
        job, kind = self.job, self.job.output.output
        asked = self.revisions.header()
        if kind is ResultKind.COUNT:  # what remains at the end is the same, and nothing is matched twice
            asked |= {"emit": "final", "changelog": None}
        more = {"output": OUTPUTS[kind], "merge": job.merge, "bind": job.output.bound}
        return cast("RevisedMatcher", job.query.matcher(**asked, **more, **job.source.roles))

    def _bound(self, schema: pa.Schema) -> tuple[RevisedMatcher, pa.Table] | None:
        """A matcher that knows the columns, and an empty table of results; None where there are no columns."""
        if not len(schema):
            return None
        matcher = self._fresh()
        return matcher, matcher.push(schema.empty_table())

    def _columns(self) -> list[str]:
        """The columns that are read: all of them only where rows are written down, or taken back by their content."""
        from acep_approx.api.live_run import columns_read

        names = self.source.schema.names
        return list(names) if self.job.source.late is not None else columns_read(self.matcher, names)

    @contextmanager
    def _left_out(self) -> Iterator[Sink | None]:
        """Where rows that are left out go to, if they are to be kept."""
        import numpy as np
        import pyarrow as pa

        from acep_approx.events.late import open_sink
        from acep_approx.run.left_out import rejected_table

        if self.job.source.late is None:
            yield None
            return
        none, schema = np.zeros(0, np.int64), self.source.schema
        columns = rejected_table(pa.RecordBatch.from_pylist([], schema=schema), none, [], none).schema
        sink = open_sink(self.job.source.late, columns)
        try:
            yield sink
        finally:
            sink.close()
