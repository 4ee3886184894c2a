"""``acep run --queries``: many queries over one input, their results as one stream of rows."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import typer

from acep_approx.cli.metrics import tell_events
from acep_approx.cli.no_match import SilentOnes
from acep_approx.cli.query_folder import read_folder
from acep_approx.cli.runs.lasting import asked_of, checkpointing_of, is_pushed, reading_of, say_going_on, say_tombstones
from acep_approx.cli.runs.page import PageRequest
from acep_approx.cli.runs.request import RunRequest
from acep_approx.cli.runs.run import ProgramRun
from acep_approx.cli.summary import say_dropped, say_found, say_how_read, say_left_out, say_malformed
from acep_approx.cli.terminal import amount, say

if TYPE_CHECKING:
    import pyarrow as pa

    from acep_approx.results.explorer.many_queries import GatheredMatches

SHOWN = 5
"""Queries that the summary names, those with the most results first."""


class SetRun(ProgramRun):
    """A run of the queries of a folder.

    Attributes
    ----------
    folder : Folder
    by_query : Counter of str
        How many results each query has.
    gathered : GatheredMatches or None
        The matches, for a page.

    Raises
    ------
    UsageError
        What does not go together, or cannot be written where it was said.
    """

    def __init__(self, request: RunRequest) -> None:
        super().__init__(request)
        self.page, self.form = request.page, self.output.form()
        self.output.check(self.form, is_expanded=False)
        self.by_query: Counter[str] = Counter()
        self.gathered: GatheredMatches | None = None
        self.gathers = self.page is not None

    def open(self) -> None:
        """Read the queries, and open the input; with ``--strict`` wrong queries are refused."""
        many = self.options.many
        assert many.queries is not None, "it was given"
        more: dict[str, Any] = {"reorder": many.reorder, "stamp": many.stamp, "key_idle": self.options.keys.key_idle}
        more |= self.roles | {"strict": many.strict, "output": self.output.output.pushed}
        self.folder = read_folder(many.queries, **more)
        self.folder.tell_wrong()
        if self.gathers:
            from acep_approx.results.explorer.many_queries import GatheredMatches

            self.gathered = GatheredMatches(self.folder.asked())
        if is_pushed(self.request):
            how = checkpointing_of(self.request) | reading_of(self.request) | {"also_asked": asked_of(self.request)}
            self.follow(self.folder.desk.follow(self.request.inputs[0], on_schema=self._leave_out, **how))
            return
        self.source = self.opened()
        if many.strict:
            self.folder.desk.check(self.source.schema, self.folder.misfit)
            self.folder.refuse()
        if self.gathers and many.stamp:
            self._stamp()
        self.kept(self.source)

    def _stamp(self) -> None:
        """Give events the time of the clock where they have none, which is kept: it is not the same again."""
        from acep_approx.events.source import Source
        from acep_approx.events.stamped import StampedEvents

        source = self.source
        self.source = Source(
            StampedEvents(source, self.roles["time"] or "ts", self.roles["unit"]), source.malformed, source.late
        )
        self.source.reusable = False

    def _leave_out(self, schema: pa.Schema) -> None:
        """Take queries out that do not fit the columns, once these are known."""
        folder, misfits = self.folder, list[str]()

        def misfit(id_: str, error: Any) -> None:
            misfits.append(id_)
            folder.misfit(id_, error)

        folder.desk.check(schema, misfit)
        if self.options.many.strict:
            folder.refuse()
        for id_ in misfits:
            if id_ in folder.desk:
                folder.desk.remove(id_, cascade=True)
        folder.tell_wrong()

    def tell(self) -> None:
        """Tell how many events were read."""
        if self.live_run is None:
            tell_events(self.source, lambda: self.events)
        else:
            source, desk = self.live_run.source, self.folder.desk
            tell_events(source, lambda: source.given, lambda: desk.late_count)

    # --- results --------------------------------------------------------------------------------------------------

    def tables(self) -> Generator[pa.Table]:
        """The results; the first table of a whole input has rows, if any has."""
        if self.live_run is not None:
            for found in self.live_run.results():
                self._take(found)
                yield found.to_arrow()
            return
        counts: Counter[tuple[str, int]] = Counter()
        is_empty, counts_only = True, self.output.output.is_count
        options: dict[str, Any] = {"sort": self.options.source.sort, "on_misfit": self.folder.misfit}
        for found in self.folder.desk.batches(self.source, on_progress=self.progressed, **options):
            table = found.to_arrow()
            if counts_only:
                for row in table.select(["query", "errors", "values"]).to_pylist():
                    counts[row["query"], row["errors"]] += json.loads(row["values"])["matches"]
                continue
            self._take(found)
            if table.num_rows:
                is_empty = False
                yield table
        if counts_only:
            yield self._counted(counts)
        elif is_empty:
            yield table.slice(0, 0)

    def _take(self, found: Any) -> None:
        """Count what a batch has brought, and gather it for a page."""
        for id_, rows in found.items():
            self.by_query[id_] += rows.num_rows
            if self.gathered is not None:
                self.gathered.take(id_, rows)

    def _counted(self, counts: Counter[tuple[str, int]]) -> pa.Table:
        """The matches of each query by number of errors."""
        import pyarrow as pa

        from acep_approx.cli.write import with_at_least
        from acep_approx.matching.outputs.tables import warn_at_least

        for (id_, _), matches in counts.items():
            self.by_query[id_] += matches
        columns = {
            "query": pa.array([id_ for id_, _ in counts], pa.string()),
            "errors": pa.array([errors for _, errors in counts], pa.int64()),
        }
        warn_at_least(counts.values())
        return with_at_least(columns, counts.values())

    @property
    def title(self) -> str:
        """What results are called in a table."""
        return self.output.output.value

    def show(self) -> None:
        """Show the table, and which queries turned out not to fit the events."""
        super().show()
        sys.stdout.flush()
        if self.live_run is None:
            self.folder.tell_wrong()

    # --- words ----------------------------------------------------------------------------------------------------

    def say(self, seconds: float) -> None:
        """Say what was read, which queries have the most results, and which have none."""
        desk, source, key_idle = self.folder.desk, self.source, self.options.keys.key_idle
        if self.live_run is None:
            say_how_read(source)
        events = self.events if self.live_run is None else self.live_run.source.given
        say(f"{amount(events, 'event')} read, {_in_words(len(desk))}; {seconds:.2f} s")
        self._say_found()
        if self.live_run is None:
            if not self.results.is_cut:
                self._say_silent()
            say_left_out(source)
        if self._late:
            say(f"{amount(self._late, 'event')} left out that came late")
        say_dropped(desk.keys_dropped_in_match if self.live_run is None else desk.keys_dropped, key_idle)
        if self.live_run is not None:
            say_malformed(source.malformed)
            say_tombstones(self.live_run.source)
            say_going_on(self.request)

    @property
    def _late(self) -> int:
        """Events that came later than ``--reorder`` allows."""
        desk = self.folder.desk
        return desk.late_in_match if self.live_run is None else desk.late_count

    def _say_found(self) -> None:
        if not self.output.output.is_count:
            say_found(self.results, self.output.output.thing)
        if self.by_query:
            from acep_approx.events.counts import said

            most = ", ".join(f"{id_} {said(number)}" for id_, number in self.by_query.most_common(SHOWN))
            more = f", and {len(self.by_query) - SHOWN:,} others" if len(self.by_query) > SHOWN else ""
            say(f"{_in_words(len(self.by_query))} with results: {most}{more}")

    def _say_silent(self) -> None:
        """Say which queries have no match, and of the first ones why."""
        desk, request, many = self.folder.desk, self.request, self.options.many
        silent = [id_ for id_ in desk if not self.by_query[id_]]
        reasons = {
            id_: f"it reads {stream}, which other queries publish: {', '.join(publishers[:SHOWN])}"
            for stream, (publishers, readers) in desk.streams().items()
            for id_ in readers
        }
        ones = SilentOnes(silent, "query", desk.text, request.context, request.inputs, reasons)
        is_sorted = self.options.source.sort or many.reorder is not None
        ones.say(None if many.stamp else self.source, sort=is_sorted, **self.roles)

    # --- the page and the end -------------------------------------------------------------------------------------

    def write_page(self, page: PageRequest) -> None:
        """Make the page of the matches that were gathered."""
        assert self.gathered is not None, "it is asked for"
        self.gathered.late = self._late
        before = 0
        if self.live_run is not None:
            kept = self.source.kept
            before = self.folder.desk.arrived - (kept.seen if kept else 0)
        page.gathered(self.gathered, self.options.source, self.source, self._alone(), before=before)

    def _alone(self) -> Callable[[str], str | None] | None:
        """What gives the text of a query, unless it reads what others publish; None: events come out of order."""
        if self.options.many.reorder is not None:
            return None
        desk = self.folder.desk
        readers = {id_ for _, ids in desk.streams().values() for id_ in ids}
        return lambda id_: None if id_ in readers or id_ not in desk else desk.text(id_)

    def end(self) -> None:
        """End with the code of the first query that was left out, if there is one."""
        if self.folder.wrong:
            say(f"{_in_words(len(self.folder.wrong))} left out, as reported above")
            raise typer.Exit(self.folder.exit_code)


def _in_words(number: int) -> str:
    """A number of queries in words."""
    return "1 query" if number == 1 else f"{number:,} queries"
