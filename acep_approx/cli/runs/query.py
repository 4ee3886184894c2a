"""``acep run QUERY INPUT``: one query over events in order of time; exactly, or within a budget."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from acep_approx.cli.metrics import tell_query
from acep_approx.cli.no_match import found_nothing, say_no_match
from acep_approx.cli.on_spark.batch import folder_form
from acep_approx.cli.options.arrivals import REVISING
from acep_approx.cli.options.groups import command_line
from acep_approx.cli.options.matching import BudgetOptions, LearningOptions, ReportOptions
from acep_approx.cli.options.output import Format, ResultKind, check_folder, format_of, is_folder
from acep_approx.cli.options.together import refuse
from acep_approx.cli.runs.page import PageRequest
from acep_approx.cli.runs.request import RunRequest
from acep_approx.cli.runs.run import ProgramRun
from acep_approx.cli.summary import say_budget, say_expansion, say_how_read, say_summary, say_unclosed
from acep_approx.cli.terminal import amount, say
from acep_approx.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from acep_approx.api import Query
    from acep_approx.learning.online import OnlineLearning
    from acep_approx.results.budgeted import BudgetedRun
    from acep_approx.revisions.request import Revisions

LOG = logging.getLogger("acep_approx.checkpoint")
SPENDING = (BudgetOptions.panel, LearningOptions.panel, ReportOptions.panel)
"""Panels of options that a run without a budget has not."""


@dataclass(frozen=True)
class QueryProgram:
    """One query, compiled, and what was asked for beside it, after all checks.

    Attributes
    ----------
    query : Query
    form : Format
        How results are written.
    revisions : Revisions or None
        How events may be late or change; None: they come in order and stay.
    page : PageRequest or None
    """

    query: Query
    form: Format
    revisions: Revisions | None
    page: PageRequest | None

    @classmethod
    def of(cls, request: RunRequest) -> Self:
        """What was asked for.

        Raises
        ------
        UsageError
            What does not go together, or cannot be written where it was said.
        QueryError
            The query is wrong.
        """
        options, output = request.options, request.output
        live_too = ("checkpoint_every", "finish") if request.is_live else ()
        refuse({name: option for name, option in request.asked.items() if name not in live_too}, {"no rules": ""})
        is_on_spark, is_streamed = options.spark.spark, options.stream.stream
        _check_spark(request)
        revisions = None
        if not is_on_spark and request.waits("late events of a query"):
            revisions = options.revisions.asked(request.inputs)
        is_by_workers = is_on_spark and output.file is not None and (is_streamed or is_folder(output.file))
        form = folder_form(output, is_new=not is_streamed) if is_by_workers else output.form()
        output.check(form, is_expanded=options.spending.expand)
        check_budget(request)
        page = request.page
        from acep_approx.api import compile_query

        query = compile_query(request.text, **options.matching.replaced, engine=options.matching.engine.value)
        return cls(query, form, revisions, page)


def _check_spark(request: RunRequest) -> None:
    is_on_spark, is_streamed = request.options.spark.spark, request.options.stream.stream
    kinds = {"batch on Spark": "--stream"} if is_on_spark and not is_streamed else {}
    kinds |= dict.fromkeys(["Spark"] if is_on_spark else ["no cluster", "here"], "--spark")
    if is_streamed:
        kinds["stream on Spark"] = "--stream"
    refuse(request.asked, kinds)
    if "trigger" in request.asked:
        refuse(request.asked, {"trigger": "--trigger"})
    if not is_on_spark and not any(name in request.asked for name in REVISING):
        refuse(request.asked, {"events in order": ""})


class QueryRun(ProgramRun):
    """A run of one query."""

    def __init__(self, request: RunRequest, program: QueryProgram) -> None:
        super().__init__(request)
        self.program, self.query = program, program.query
        self.form, self.page = program.form, program.page

    @property
    def names_columns(self) -> bool:
        """Whether rows show of events what the query names, as nobody has said otherwise."""
        from acep_approx.matching.outputs.bind import Wide, bound_names

        is_wide = isinstance(bound_names(self.output.bound, self.query.plan.query), Wide)
        return is_wide and not self.output.bind and self.results.rows > 0


    # --- a budget -------------------------------------------------------------------------------------------------

    @property
    def budgeted(self) -> Any:
        """What knows how the budget was spent."""
        raise NotImplementedError

    def prepare_saving(self) -> Saving:
        """What saves what is learned; refused where it could not."""
        learning = self.options.learning
        self._saving = Saving(self.query, home_of(self.request), learning.save_every)
        if learning.save is not None:
            self._saving.check()
        return self._saving

    def conclude(self) -> None:
        """Say what the budget was spent on; write what is to be written about it, and save what was learned."""
        from acep_approx.cli.write import write

        if self.options.spending.budget is None:
            return
        run, learning, report = self.budgeted, self.options.learning, self.options.reports.report
        name = ", ".join(self.request.inputs)
        if not self.request.quiet:
            say_budget(run, name, command_line(self.request.context, without=SPENDING))
        if report is not None:
            run.report(report, name)
        if learning.learn_log is not None:
            write([run.learning()], format_of(learning.learn_log), learning.learn_log)
        if learning.learn:
            self._saving.matches = run
            self._saving.finish(quiet=self.request.quiet)


class PlainRun(QueryRun):
    """A run of one query over events in order of time, to their end."""

    def open(self) -> None:
        """Open the input, and get ready to match it."""
        learning, saving = self.options.learning, self.prepare_saving()
        events = self.kept(self.opened())
        more: dict[str, Any] = {"sort": self.options.source.sort, "bind": self.output.bound}
        more |= {"merge": self.options.matching.merge, "key_idle": self.options.keys.key_idle}
        more |= self.roles | {"on_progress": saving.after(self.progressed)}
        more |= {"ended": not self.options.source.open_end}
        spending = self.options.spending
        self.matches: Any
        if spending.budget is None:
            self.matches = self.query.match(events, **more)
        else:
            more |= {"log_shed": self.options.reports.shed is not None, "learn": learning.learn}
            self.matches = self.query.match_within(events, spending.budget, **spending.given(), **more)
        if learning.learn:
            saving.matches = self.matches
        self.source = self.matches.source

    def tell(self) -> None:
        """Tell what is done."""
        tell_query(self.source, lambda: self.matches.progress)

    def put_out(self) -> None:
        """Write the results, compressed ones to a folder."""
        if self.output.output is ResultKind.COMPRESSED and self.output.file is not None:
            from acep_approx.cli.write import write_compressed

            self.results = write_compressed(self.matches.compressed(), self.output.file)
        else:
            super().put_out()

    def tables(self) -> Generator[pa.Table]:
        """The results."""
        from acep_approx.cli.write import count_table

        matches, kind, spending = self.matches, self.output.output, self.options.spending
        if spending.expand:
            yield matches.expanded(bundles=spending.whole_bundles)
        elif kind is ResultKind.MATCHES:
            yield from matches.tables()
        elif kind is ResultKind.EVENTS:
            yield from matches.event_tables()
        elif kind is ResultKind.POINTS:
            yield from matches.point_tables()
        elif kind is ResultKind.BUNDLES:
            yield matches.bundles()
        elif kind is ResultKind.PARTIAL:
            yield from matches.partial_tables()
        else:
            yield count_table(matches.count_by_errors())

    def say(self, seconds: float) -> None:
        """Say what was read and found, or why nothing was."""
        matches, kind = self.matches, self.output.output
        say_how_read(self.source)
        say_summary(matches, self.results, kind, seconds, self.options.keys.key_idle)
        say_unclosed(matches.unclosed, kind)
        if found_nothing(self.results, kind) and not matches.unclosed:
            if matches.progress.keys_dropped:
                say("of the same run without --key-idle:")
            if self.source.reusable or matches.progress.events:
                say_no_match(self.request.context, matches.no_match, is_gone=not self.source.reusable)
            else:
                say("no match: there was no event to match")

    def conclude(self) -> None:
        """Say what the budget was spent on; write what is to be written about it, and save what was learned."""
        from acep_approx.cli.write import write

        if self.options.spending.budget is None:
            return
        super().conclude()
        if not self.request.quiet:
            say_expansion(self.matches.expansion)
        if (shed := self.options.reports.shed) is not None:
            write([self.matches.shed()], format_of(shed), shed)

    @property
    def budgeted(self) -> Any:
        """What knows how the budget was spent."""
        return self.matches

    def write_page(self, page: PageRequest) -> None:
        """Make the page of the matches."""
        page.write(self.matches)


# --- a budget, and what is learned on the way ------------------------------------------------------------------------


def check_budget(request: RunRequest) -> None:
    """Refuse options that need a budget, and files that cannot be written, before any work is done.

    Raises
    ------
    UsageError
        ``ACEP-U040``: such an option without ``--budget``; ``ACEP-U049``: one that needs ``--learn`` without it, or
        nowhere to save to; ``ACEP-U030``: not a budget; ``ACEP-U016``: a folder that is not there; ``ACEP-U018``: a
        table whose name does not say its format.
    """
    spending, learning, reports = request.options.spending, request.options.learning, request.options.reports
    if spending.budget is None:
        refuse(request.asked, {"no budget": "--budget"})
        return
    if not learning.learn:
        refuse(request.asked, {"nothing learned": "--learn"})
    if learning.save_every is not None and home_of(request) is None:
        raise UsageError("--save-every has nowhere to save to", code="ACEP-U049", hint="name a folder: --save DIR")
    if not spending.expand:
        refuse(request.asked, {"nothing expanded": "--expand"})
    tables = (reports.shed, learning.learn_log)
    for file in (reports.report, *tables):
        check_folder(file)
    spending.check()
    for table in tables:
        if table is not None:
            format_of(table)


def home_of(request: RunRequest) -> Path | None:
    """Where what is learned is saved."""
    return request.options.learning.save or request.options.spending.history


class Saving:
    """Saves what a run learns, at its end and every so many batches.

    Parameters
    ----------
    query : Query
        The query that is run.
    home : Path or None
        Where to; None: nowhere.
    every : int, optional
        Batches between two times; default: only at the end.

    Attributes
    ----------
    matches : BudgetedRun or None
        The run; to be set before it begins.
    folder : Path or None
        The last version that was written.
    """

    def __init__(self, query: Query, home: Path | None, every: int | None = None) -> None:
        self.query, self.home, self.every = query, home, every
        self.matches: BudgetedRun | None = None
        self.folder: Path | None = None
        self._batches = self._saved = self._rescored = 0

    def check(self) -> None:
        """Refuse a place that cannot be written to, before anything is learned.

        Raises
        ------
        HistoryError
            A history of another query (``ACEP-H002``) or a damaged one (``ACEP-H004``), or something else
            (``ACEP-H006``).
        """
        from acep_approx.training.history_graph import HistoryGraph
        from history.store import check_free, is_history

        if self.home is None or self.query.plan.registers is None:
            return
        if is_history(self.home):
            HistoryGraph.load(self.home, self.query)
        else:
            check_free(self.home)

    def after(self, show: Callable[[int], None]) -> Callable[[int], None]:
        """What is to be called after each batch: shows how many events are done, and saves if it is time."""

        def done(events: int) -> None:
            show(events)
            self._batches += 1
            is_time = self.every is not None and self._batches % self.every == 0
            if is_time and self._times > self._rescored:  # else there is nothing new
                self._save()

        return done

    def finish(self, *, quiet: bool) -> None:
        """The run has ended: save what it learned, and say where, or why not."""
        if self._times == 0:
            text = self._nothing()
        elif self.home is None:
            text = "what was learned is not saved: --save DIR keeps it"
        else:
            self._save()
            assert self.folder is not None
            versions = f", after {amount(self._saved - 1, 'version')} on the way" if self._saved > 1 else ""
            text = f"what was learned is in {self.folder} (version {int(self.folder.name[1:])}{versions})"
        if not quiet:
            say(text)

    @property
    def _online(self) -> OnlineLearning | None:
        shedder = self.matches.shedder if self.matches is not None else None
        return shedder.online if shedder is not None else None

    @property
    def _times(self) -> int:
        """How often it was worked out so far what runs are worth."""
        online = self._online
        return online.learner.versions if online is not None else 0

    def _save(self) -> None:
        assert self.matches is not None
        assert self.home is not None
        known = self.matches.refreshed(self.query)
        assert known is not None
        self.folder = known.save(self.home, new_version=True)
        LOG.info("what was learned so far is saved in %s", self.folder)
        self._saved, self._rescored = self._saved + 1, self._times

    def _nothing(self) -> str:
        online = self._online
        if online is None:
            return "there was nothing to learn: where nothing is shed, no partial match needs a value"
        tests = amount(online.learner.sample_size.rows, "test")
        saved = "" if self.home is None else ", and nothing saved"
        return f"nothing was learned{saved}: {tests} seen, and runs were never rescored"
