"""``acep run --queries``: many queries over one input, their results as one stream of rows."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import typer

from acep_approx.arguments import LATENESS
from acep_approx.cli.metrics import tell_events
from acep_approx.cli.no_match import say_silent
from acep_approx.cli.options.input import OnLate
from acep_approx.cli.options.output import check_folder, format_of, is_folder
from acep_approx.cli.options.together import refuse
from acep_approx.cli.query_folder import read_folder
from acep_approx.cli.runs.lasting import asked_of, checkpointing_of, is_pushed, reading_of, say_going_on, say_tombstones
from acep_approx.cli.runs.page import PageRequest
from acep_approx.cli.runs.request import RunRequest
from acep_approx.cli.runs.run import ProgramRun
from acep_approx.cli.runs.spending import SavingMany, check_budget, home_of
from acep_approx.cli.summary import (
    LATE,
    say_budget_of_set,
    say_dropped,
    say_found,
    say_holding,
    say_how_read,
    say_left_out,
    say_malformed,
    say_rejected,
    say_unclosed,
)
from acep_approx.cli.terminal import amount, first_of, say
from acep_approx.events.live.kafka_address import PARTITION, is_address

if TYPE_CHECKING:
    import pyarrow as pa

    from acep_approx.subscriptions.results import Found
    from acep_approx.subscriptions.running import Standing

SHOWN = 5
"""Queries that the summary names, those with the most results first."""
IN_NAMES = "".join(map(chr, range(33, 127))).translate(dict.fromkeys(map(ord, "/\\%")))
"""Characters of ids that the names of their files have as they are."""



class SetRun(ProgramRun):
    """A run of the queries of a folder.

    Attributes
    ----------
    folder : Folder
    by_query : Counter of str
        How many results each query has.

    Raises
    ------
    UsageError
        What does not go together, or cannot be written where it was said.
    """

    def __init__(self, request: RunRequest) -> None:
        super().__init__(request)
        refuse(request.asked, {"set here": "--queries"})
        if "watermark" in request.asked:
            refuse(request.asked, {"watermark of a set": "--watermark"})
        self._has_watermark = request.waits()
        self._waits = self._has_watermark or self.options.many.reorder is not None
        self._late = self.options.source.late if self._waits else None
        self.page, self.form = request.page, self.output.form()
        self.output.check(self.form, is_expanded=False)
        check_budget(request)
        learning = self.options.learning
        self._saving = SavingMany(home_of(request), learning.save_every)
        if learning.save is not None:
            self._saving.check()
        self._done = self._saving.after(self.progressed)
        self._place = self.output.file if is_folder(self.output.file) else None
        check_folder(self._place)
        self._mine = ""  # of the query whose results are next, where each has a file
        self.by_query: Counter[str] = Counter()

    def open(self) -> None:
        """Read the queries, and open the input; with ``--strict`` wrong queries are refused."""
        many = self.options.many
        assert many.queries is not None, "it was given"
        more: dict[str, Any] = {"reorder": many.reorder, "stamp": many.stamp, "key_idle": self.options.keys.key_idle}
        more |= {name: getattr(self.options.revisions, name) for name in LATENESS}
        if self._waits and more["source"] is None and any(map(is_address, self.request.inputs)):
            more["source"] = PARTITION
        more |= self.roles | {"strict": many.strict, "output": self.output.output.pushed}
        if self.options.spending.budget is not None:
            shed = self.options.reports.shed is not None
            more |= {"budget": self.options.spending.budget, "log_shed": shed} | self.options.spending.given()
            more["learn"] = self.options.learning.learn
        more |= {"bind": self.output.bound_with_rows if self.page is not None else self.output.bound}
        self.folder = read_folder(many.queries, **more)
        self.folder.tell_wrong()
        if self.options.learning.learn:
            self._saving.purse = lambda: self.folder.desk.purse
        if self._place is not None:
            from acep_approx.cli.options.places import check_places

            written = {f"results of {id_}": self._file(id_) for id_ in self.folder.desk}
            check_places(self.request.context.params, written)
        if self.page is not None:
            from acep_approx.results.explorer.many_queries import GatheredMatches

            self.gathered = GatheredMatches(self.folder.asked())
        if is_pushed(self.request):
            how = checkpointing_of(self.request) | reading_of(self.request) | {"also_asked": asked_of(self.request)}
            how |= {"late": self.options.source.late}
            self.follow(self.folder.desk.follow(self.request.inputs[0], on_schema=self._leave_out, **how))
            assert self.live_run is not None, "it was taken up"
            self.live_run.feed.ended = not self.options.source.open_end
            return
        if self._late is not None:  # the set leaves late events out, and writes them
            skipping = replace(self.options.source, on_late=OnLate.SKIP)
            self.request = replace(self.request, options=replace(self.options, source=skipping))
        self.source = self.opened()
        if many.strict:
            self.folder.desk.check(self.source.schema, self.folder.misfit)
            self.folder.refuse()
        if self.page is not None and many.stamp:
            from acep_approx.events.stream import stamped

            self.source = stamped(self.source, self.roles["time"], self.roles["unit"])
            self.source.reusable = False  # times of the clock are kept: they are not the same again
        self.kept(self.source)

    def _leave_out(self, schema: pa.Schema) -> None:
        """Take queries out that do not fit the columns, once these are known."""
        self.folder.leave_out_misfits(schema, strict=self.options.many.strict)

    def tell(self) -> None:
        """Tell how many events were read."""
        run, late = self.live_run, lambda: self._standing.late
        if run is None:
            tell_events(self.source, lambda: self.events, late if self._waits else None)
        else:
            tell_events(run.source, lambda: run.source.given, late)

    # --- results --------------------------------------------------------------------------------------------------

    def tables(self) -> Generator[pa.Table]:
        """The results; the first table of a whole input has rows, if any has."""
        if self.live_run is not None:
            for found in self.live_run.results():
                self._take(found)
                yield from self._tables_of(found)
                self._done(self.live_run.source.given)
                if self._late is None:
                    self.folder.desk.late()  # they are not to gather
            return
        from acep_approx.cli.write import COUNTED

        counts: Counter[tuple[str, int]] = Counter()
        is_empty, counts_only = True, self.output.output.is_count
        options: dict[str, Any] = {"sort": self.options.source.sort, "on_misfit": self.folder.misfit}
        options["ended"] = not self.options.source.open_end
        for found in self.folder.desk.batches(self.source, on_progress=self._done, **options):
            if counts_only:
                for row in found.table().select(["query", *COUNTED]).to_pylist() if found else []:
                    counts[row["query"], row["errors"]] += row["matches"]
                continue
            self._take(found)
            for table in self._tables_of(found):
                is_empty = False
                yield table
        if self._late is not None:
            from acep_approx.events.late import LateEvents

            self.source.late = LateEvents()  # who reads the events again need not know
        if counts_only:
            yield from self._counted(counts)
        elif self._place is not None:
            from acep_approx.matching.outputs.bind import without_rows

            for id_ in self.folder.desk:  # those without results have files, too
                self._mine = id_
                yield without_rows(found[id_].drop_columns("query").slice(0, 0))
        elif is_empty:
            yield found.table()

    def _tables_of(self, found: Found) -> Iterator[pa.Table]:
        """The results of a batch, if there are any: one table, or one for each query that has a file."""
        if self._place is None:
            if found.rows:
                yield found.table()
            return
        from acep_approx.matching.outputs.bind import without_rows

        for self._mine, table in found.items():
            yield without_rows(table.drop_columns("query"))

    def write(self, opens: Callable[[Path], Any] | None) -> None:
        """Write the results to a file, or to one for each query."""
        if self._place is None:
            super().write(opens)
            return
        from acep_approx.cli.write import RowsFiles

        def opener(name: str) -> Callable[[Path], Any] | None:
            return opens if self.live_run is None else self.live_run.outputs.opener(f"results of {name}")

        with RowsFiles(self._place, self.form, opener, len(self.folder.desk)) as files:
            for id_ in self.folder.desk if self.live_run is not None else ():
                files.open(id_, self._file(id_))  # what a run that was broken off wrote after its checkpoint goes
            for table in self.results:
                files.open(self._mine, self._file(self._mine)).write(table)

    def _file(self, id_: str) -> Path:
        """The file of the results of a query."""
        assert self._place is not None, "there are several files"
        return self._place / f"{quote(id_, safe=IN_NAMES)}.{self.form.value}"

    def _take(self, found: Any) -> None:
        from acep_approx.matching.outputs.bind import as_rows

        for id_, rows in found.items():
            self.by_query[id_] += rows.num_rows
            if self.gathered is not None:
                self.gathered.take(id_, as_rows(rows))

    def _counted(self, counts: Counter[tuple[str, int]]) -> Iterator[pa.Table]:
        import pyarrow as pa

        from acep_approx.cli.write import count_table, with_at_least
        from acep_approx.matching.outputs.tables import warn_at_least

        for (id_, _), matches in counts.items():
            self.by_query[id_] += matches
        warn_at_least(counts.values())
        if self._place is None:
            columns = {
                "query": pa.array([id_ for id_, _ in counts], pa.string()),
                "errors": pa.array([errors for _, errors in counts], pa.int64()),
            }
            yield with_at_least(columns, counts.values())
            return
        for id_ in self.folder.desk:
            self._mine = id_
            yield count_table({errors: number for (one, errors), number in counts.items() if one == id_})

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
        source, standing = self.source, self._standing
        if self.live_run is None:
            say_how_read(source)
        events = self.events if self.live_run is None else self.live_run.source.given
        say(f"{amount(events, 'event')} read, {amount(len(self.folder.desk), 'query')}; {seconds:.2f} s")
        self._say_found()
        say_unclosed(standing.unclosed, self.output.output)
        if self.live_run is None:
            if not self.results.is_cut:
                self._say_silent()
            say_left_out(source)
        if self._has_watermark or self._late is not None:
            say_rejected({LATE: standing.late}, self._late)
            by_source = self.options.revisions.source is not None or any(map(is_address, self.request.inputs))
            say_holding(standing.holding, is_by_source=by_source, is_time=standing.is_time)
        elif standing.late:
            say(f"{amount(standing.late, 'event')} left out that came late")
        say_dropped(standing.keys_dropped, self.options.keys.key_idle)
        if self.live_run is not None:
            say_malformed(source.malformed)
            say_tombstones(self.live_run.source)
            say_going_on(self.request)

    def conclude(self) -> None:
        """Say what the budget was spent on, and write what was shed."""
        if self.options.spending.budget is None:
            return
        from acep_approx.cli.write import is_table, write, write_report

        desk, shed, report = self.folder.desk, self.options.reports.shed, self.options.reports.report
        if not self.request.quiet:
            say_budget_of_set(desk.record(), has_rows=is_table(report))
        if report is not None:
            write_report(desk.record(", ".join(self.request.inputs)), report)
        if shed is not None:
            write([desk.shed()], format_of(shed), shed)
        learning = self.options.learning
        if learning.learn_log is not None:
            write([desk.learning()], format_of(learning.learn_log), learning.learn_log)
        if learning.learn:
            self._saving.finish(quiet=self.request.quiet)

    @property
    def _standing(self) -> Standing:
        desk = self.folder.desk
        return desk.standing_in_match if self.live_run is None else desk.standing

    def _say_found(self) -> None:
        if not self.output.output.is_count:
            say_found(self.results, self.output.output.thing)
        if self.by_query:
            from acep_approx.events.counts import said

            most = [f"{id_} {said(number)}" for id_, number in self.by_query.most_common()]
            say(f"{amount(len(most), 'query')} with results: {first_of(most, SHOWN, ', and {:,} others')}")

    def _say_silent(self) -> None:
        desk = self.folder.desk
        silent = [id_ for id_ in desk if not self.by_query[id_] and id_ not in self.folder.misfits]
        reasons = {
            id_: f"it reads {stream}, which other queries publish: {', '.join(publishers[:SHOWN])}"
            for stream, (publishers, readers) in desk.streams().items()
            for id_ in readers
        }
        source, is_sorted = None if self.options.many.stamp else self.source, self.options.source.sort or self._waits
        say_silent(self.request, silent, "query", desk.text, reasons, source, sort=is_sorted, **self.roles)

    # --- the page and the end -------------------------------------------------------------------------------------

    def write_page(self, page: PageRequest) -> None:
        """Make the page of the matches that were gathered."""
        assert self.gathered is not None, "it is asked for"
        self.gathered.late = self._standing.late
        before = 0
        if self.live_run is not None:
            kept = self.source.kept
            before = self.folder.desk.arrived - (kept.seen if kept else 0)
        more: list[str] = []
        if self.options.spending.budget is not None:
            from acep_approx.pages.budget.shared import shared_sections

            more = [*shared_sections(self.folder.desk.record())]
        page.gathered(self.gathered, self.options.source, self.source, self._alone(), more, before)

    def _alone(self) -> Callable[[str], str | None] | None:
        """What gives the text of a query, unless it reads what others publish; None: events come out of order."""
        if self._waits:
            return None
        desk = self.folder.desk
        readers = {id_ for _, ids in desk.streams().values() for id_ in ids}
        return lambda id_: None if id_ in readers or id_ not in desk else desk.text(id_)

    def end(self) -> None:
        """End with the code of the first query that was left out, if there is one."""
        if self.folder.wrong:
            say(f"{amount(len(self.folder.wrong), 'query')} left out, as reported above")
            raise typer.Exit(self.folder.exit_code)
