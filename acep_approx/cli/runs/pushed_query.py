"""One query whose events are pushed: they are late, updated or taken back, or they are still being written.

Results go out as they become known. Live runs write checkpoints, and a stop is no end.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
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
    say_unclosed,
)
from acep_approx.cli.terminal import amount, say

if TYPE_CHECKING:
    import pyarrow as pa

    from acep_approx.run.run import Feed


class PushedRun(QueryRun):
    """A run of one query whose events are pushed."""

    feed: Feed

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
        saving, spending = self.prepare_saving(), options.spending
        if spending.budget is not None:
            given |= {"budget": spending.budget, "learn": options.learning.learn, **spending.given()}
        self._on_progress = saving.after(self.progressed)
        from acep_approx.api.live_run import Checkpointing, follow_query, query_feed

        request, late = self.request, options.source.late
        if not is_pushed(request):
            self.source = self.kept(self.opened(is_in_order=False))
            self.feed = query_feed(self.query, given, late)
            self.feed.ended = not options.source.open_end
            return
        reading = reading_of(request) | ({} if late is None else {"late": late})
        lasting = Checkpointing(**checkpointing_of(request))
        live_run = follow_query(self.query, request.inputs[0], lasting, reading, given, asked_of(request))
        self.feed = live_run.feed
        self.feed.ended = not options.source.open_end
        self.follow(live_run)

    @property
    def matcher(self) -> Any:
        """What finds the matches: one that knows the columns, once there are any."""
        return self.feed.run

    @property
    def budgeted(self) -> Any:
        """What knows how the budget was spent."""
        return self.matcher

    def tell(self) -> None:
        """Tell what is done."""
        if self.program.revisions is None:
            tell_query(self.source, lambda: self.matcher.progress)
        else:
            tell_events(self.source, lambda: self.matcher.arrived, lambda: self.matcher.revisions.late)

    # --- results --------------------------------------------------------------------------------------------------

    def tables(self) -> Generator[pa.Table]:
        """The results as they come, or how many there are at the end."""
        if self.output.output.is_count:
            yield self._counted()
        elif self.live_run is not None:
            source = self.live_run.source
            yield from self._noted(self.live_run.results(), lambda: source.given)
        else:
            yield from self._found()

    def _counted(self) -> pa.Table:
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
        from acep_approx.matching.unseen import warn_of_unseen_types

        with closing(self.feed):
            yield from self._noted(self.feed.results(self.source), lambda: self.matcher.arrived)
        if self.matcher.revisions.inserted:
            warn_of_unseen_types(self.matcher.plan.automaton, self.matcher.execution.types_seen)

    def _noted(self, results: Iterator[pa.Table], events: Callable[[], int]) -> Generator[pa.Table]:
        """Results as they come; after those of each batch it is seen to what is learned, and how far the run is."""
        for found in results:
            yield found
            if self.options.learning.learn:
                self._saving.matches = self.matcher
            self._on_progress(events())

    # --- words ----------------------------------------------------------------------------------------------------

    def say(self, seconds: float) -> None:
        """Say what was read and found, and whether it can go on."""
        if self.live_run is None:
            self._say_read(seconds)
            say_how_read(self.source)
            say_left_out(self.source)
            say_unclosed(self.matcher.unclosed, self.output.output)
            if found_nothing(self.results, self.output.output) and not self.matcher.unclosed:
                self._say_nothing()
            self._say_holding()
            return
        say_how_read(self.source)
        self._say_read(seconds)
        if self.program.revisions is not None:
            self._say_holding()
        say_left_out(self.source)
        say_tombstones(self.live_run.source)
        say_unclosed(self.matcher.unclosed, self.output.output)
        if found_nothing(self.results, self.output.output) and not self.live_run.goes_on:
            say_no_match_so_far(self.request.inputs[0])
        say_going_on(self.request)
        lasts = self.options.stream.checkpoint is not None and not self.options.rules.finish
        if lasts and getattr(self.matcher, "waits_until", None) is not None:
            say("matches may wait for windows to close: --finish says that no more events will come")

    def _say_holding(self) -> None:
        matcher = self.matcher
        say_holding(matcher.holding, is_by_source=matcher.asked.source is not None, is_time=matcher.is_time)

    def _say_read(self, seconds: float) -> None:
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
            before = self.matcher.arrived - (kept.seen if kept else 0)
        ended = not self.options.source.open_end
        more: dict[str, Any] = {"bind": self.output.bound, "ended": ended, **self.roles}
        if self.program.revisions is None:
            page.write(self._again(source.again(before), more | {"key_idle": self.options.keys.key_idle}))
            return
        from acep_approx.cli.summary import facts_of
        from acep_approx.revisions.remaining import remaining

        final: Any = self.query.matcher(
            **self.program.revisions.header() | {"emit": "final", "changelog": None}, **self.roles
        )
        there = remaining(final, source.again(before), self.feed.waits)
        matches = self._again(there, more)
        matches.has_warned = True  # the run has
        page.write(matches, facts_of(self.matcher, self.results))

    def _again(self, events: Any, more: dict[str, Any]) -> Any:
        """The matches of a whole input, within the budget, if there is one."""
        spending = self.options.spending
        if spending.budget is None:
            return self.query.match(events, **more)
        return self.query.match_within(events, spending.budget, **spending.given(), **more)
