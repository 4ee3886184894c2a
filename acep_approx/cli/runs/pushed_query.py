"""One query whose events are pushed: they are late, updated or taken back, or they are still being written.

Results go out as they become known. Live runs write checkpoints, and a stop is no end.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from acep_approx.cli.metrics import tell_events, tell_query
from acep_approx.cli.no_match import found_nothing, say_no_match, say_no_match_so_far
from acep_approx.cli.runs.lasting import (
    asked_of,
    checkpointing_of,
    is_pushed,
    reading_of,
    say_going_on,
    say_tombstones,
)
from acep_approx.cli.runs.page import PageRequest
from acep_approx.cli.runs.query import QueryRun
from acep_approx.cli.summary import (
    say_changes,
    say_dropped,
    say_found,
    say_holding,
    say_how_read,
    say_left_out,
    say_rows,
)
from acep_approx.cli.terminal import amount, say

if TYPE_CHECKING:
    import pyarrow as pa

    from acep_approx.events.late import Sink

class PushedRun(QueryRun):
    """A run of one query whose events are pushed."""

    runs: Any
    """A ``LiveQuery``."""

    def open(self) -> None:
        """Open the input, and make a matcher; or take up a run that was stopped."""
        options, revisions = self.options, self.program.revisions
        asked = {} if revisions is None else revisions.header()
        if self.output.output.is_count:  # what remains at the end is the same, and nothing is matched twice
            asked |= {"emit": "final", "changelog": None}
        else:
            self.is_changelog = revisions is not None and revisions.is_changelog
        asked |= {"merge": options.matching.merge, "key_idle": options.keys.key_idle}
        given = {name: value for name, value in asked.items() if value is not None}
        given |= {"output": self.output.output.pushed, "bind": self.output.bound, **self.roles}
        if is_pushed(self.request):
            self._follow(given)
            return
        from acep_approx.api.live_run import LiveQuery

        self.source = self.kept(self.opened(is_in_order=False))
        self.runs = LiveQuery(self.query, given, keeps_whole=options.source.late is not None)

    def _follow(self, given: dict[str, Any]) -> None:
        from acep_approx.api.live_run import Checkpointing, follow_query

        request, late = self.request, self.options.source.late
        reading = reading_of(request) | ({} if late is None else {"late": late})
        checkpointing = Checkpointing(**checkpointing_of(request))
        asked = asked_of(request)
        self.follow(follow_query(self.query, request.inputs[0], checkpointing, reading, given, also_asked=asked))
        assert self.live_run is not None, "it is followed"
        self.runs = self.live_run.runs

    @property
    def matcher(self) -> Any:
        """What finds the matches: one that knows the columns, once there are any."""
        return self.runs.matcher

    def tell(self) -> None:
        """Tell what is done."""
        if self.program.revisions is None:
            tell_query(self.source, lambda: self.matcher.progress)
        else:
            tell_events(self.source, lambda: self.matcher.rows, lambda: self.matcher.revisions.late)

    # --- results --------------------------------------------------------------------------------------------------

    def tables(self) -> Generator[pa.Table]:
        """The results as they come, or how many there are at the end."""
        if self.output.output.is_count:
            yield self._counted()
        elif self.live_run is not None:
            yield from self.live_run.results()
        else:
            yield from self._found()

    def _counted(self) -> pa.Table:
        """How many matches there are when all events have come, by their number of errors."""
        from acep_approx.cli.write import count_table
        from acep_approx.matching.outputs.tables import warn_at_least
        from acep_approx.results.matches import add_counts

        counts = dict.fromkeys(range(self.query.plan.automaton.errors + 1), 0)
        for table in self._found():
            if table.num_rows:
                add_counts(counts, table)
        warn_at_least(counts.values())
        return count_table(counts)

    def _found(self) -> Generator[pa.Table]:
        """The results of a whole input as they come; the first table is empty and shows the columns."""
        from acep_approx.events.usable_rows import pushed
        from acep_approx.matching.unseen import warn_of_unseen_types

        source, runs = self.source, self.runs
        nothing = runs.bind(source)
        if nothing is None:  # no columns, no events
            return
        yield nothing
        runs.use(source)
        with self._left_out() as sink:
            for batch in source.batches(runs.columns(source.schema.names)):
                found = pushed(runs.push, batch, source, runs.arrived)
                rejected = self.matcher.rejected()  # they are not to gather
                if sink is not None and rejected.num_rows:
                    sink.write(rejected)
                yield found
                self.progressed(runs.arrived)
        yield runs.finish()
        if self.matcher.revisions.inserted:
            warn_of_unseen_types(self.matcher.plan.automaton, self.matcher.execution.types_seen)

    @contextmanager
    def _left_out(self) -> Iterator[Sink | None]:
        """Where rows that are left out go to, if they are to be kept."""
        import numpy as np
        import pyarrow as pa

        from acep_approx.events.late import open_sink
        from acep_approx.run.left_out import rejected_table

        if self.options.source.late is None:
            yield None
            return
        none, schema = np.zeros(0, np.int64), self.source.schema
        columns = rejected_table(pa.RecordBatch.from_pylist([], schema=schema), none, [], none).schema
        sink = open_sink(self.options.source.late, columns)
        try:
            yield sink
        finally:
            sink.close()

    # --- words ----------------------------------------------------------------------------------------------------

    def say(self, seconds: float) -> None:
        """Say what was read and found, and whether it can go on."""
        if self.live_run is None:
            self._say_read(seconds)
            say_how_read(self.source)
            say_left_out(self.source)
            if found_nothing(self.results, self.output.output):
                self._say_nothing()
            say_holding(self.matcher)
            return
        say_how_read(self.source)
        self._say_read(seconds)
        if self.program.revisions is not None:
            say_holding(self.matcher)
        say_left_out(self.source)
        say_tombstones(self.live_run.source)
        if found_nothing(self.results, self.output.output) and not self.live_run.goes_on:
            say_no_match_so_far(self.request.inputs[0])
        say_going_on(self.request)
        lasts = self.options.stream.checkpoint is not None and not self.options.rules.finish
        if lasts and getattr(self.matcher, "waits_until", None) is not None:
            say("matches may wait for windows to close: --finish says that no more events will come")

    def _say_read(self, seconds: float) -> None:
        """Say what was read, what became of it, and what was found."""
        kind = self.output.output
        if self.program.revisions is not None:
            say_rows(self.matcher, self.options.source.late, seconds)
            if not kind.is_count:
                say_changes(self.results, kind.thing)
            return
        assert self.live_run is not None, "it follows its input"
        say(f"{amount(self.live_run.source.given, 'event')} read; {seconds:.2f} s")
        say_found(self.results, kind.thing)
        without = self.matcher.progress.without_key
        if without:
            say(f"{amount(without, 'event')} left out: no value for the key")
        if self.matcher.pipeline is not None:
            say_dropped(self.matcher.pipeline.stream.keys_dropped, self.options.keys.key_idle)

    def _say_nothing(self) -> None:
        """Say why there is no match, where all rows are events that stay."""
        matcher = self.matcher
        takes_back = matcher.stream is not None and matcher.stream.op is not None
        if takes_back or not self.source.reusable:
            say("no match; to see why, run the query over the events that remain, as a file in order of time")
            return
        plain = self.options.source.reading | {"rejects": None, "on_late": "refuse", "late": None}
        again = self.query.match(self.request.inputs, sort=True, **self.roles, **plain)
        say_no_match(self.request.context, again.no_match)

    # --- the page -------------------------------------------------------------------------------------------------

    def write_page(self, page: PageRequest) -> None:
        """Make the page of what came since the run began, as if the stream ended here."""
        source, before, kept = self.source, 0, self.source.kept
        if self.live_run is not None:
            before = self.runs.arrived - (kept.seen if kept else 0)
        if self.program.revisions is None:
            more = {"bind": self.output.bound, "key_idle": self.options.keys.key_idle, **self.roles}
            page.write(self.query.match(source.again(before), **more))
            return
        from acep_approx.cli.summary import facts_of
        from acep_approx.revisions.remaining import remaining

        final: Any = self.query.matcher(
            **self.program.revisions.header() | {"emit": "final", "changelog": None}, **self.roles
        )
        waits = self.runs.partitions.waits if self.runs.partitions else ()
        there = remaining(final, source.again(before), waits)
        matches = self.query.match(there, bind=self.output.bound, **self.roles)
        matches.has_warned = True  # the run has
        page.write(matches, facts_of(self.matcher, self.results))
