"""``acep run QUERY INPUT``: one query over events in order of time; exactly, or within a budget."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from acep_approx.cli.metrics import tell_query
from acep_approx.cli.no_match import found_nothing, say_no_match
from acep_approx.cli.options.arrivals import REVISING
from acep_approx.cli.options.groups import command_line
from acep_approx.cli.options.matching import BudgetOptions, LearningOptions, ReportOptions
from acep_approx.cli.options.output import Format, ResultKind, format_of
from acep_approx.cli.options.together import CHECKPOINTS, refuse
from acep_approx.cli.runs.page import PageRequest
from acep_approx.cli.runs.request import RunRequest
from acep_approx.cli.runs.run import ProgramRun
from acep_approx.cli.runs.spending import SavingOne, check_budget, home_of
from acep_approx.cli.summary import say_budget, say_expansion, say_how_read, say_summary, say_unclosed
from acep_approx.cli.terminal import say

if TYPE_CHECKING:
    import pyarrow as pa

    from acep_approx.api import Query
    from acep_approx.revisions.request import Revisions

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
        if not any(name in request.asked for name in REVISING):
            refuse(request.asked, {"events in order": ""})
        revisions = None
        if request.waits("late events of a query"):
            revisions = options.revisions.asked(request.inputs)
        form = output.form()
        output.check(form, is_expanded=options.spending.expand)
        check_budget(request)
        page = request.page
        from acep_approx.api import compile_query

        query = compile_query(request.text, **options.matching.replaced, engine=options.matching.engine.value)
        return cls(query, form, revisions, page)


class QueryRun(ProgramRun):
    """A run of one query."""

    def __init__(self, request: RunRequest, program: QueryProgram) -> None:
        super().__init__(request)
        self.program, self.query = program, program.query
        self.form, self.page = program.form, program.page

    @property
    def keys(self) -> tuple[str, ...]:
        """The attributes by which the query tells events apart."""
        return tuple(one.name for one in self.query.syntax.equivalences)

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

    def prepare_saving(self) -> SavingOne:
        """What saves what is learned; refused where it could not."""
        learning = self.options.learning
        self._saving = SavingOne(self.query, home_of(self.request), learning.save_every)
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
            say_budget(run, name, command_line(self.request.context, without=(*SPENDING, *CHECKPOINTS)))
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
