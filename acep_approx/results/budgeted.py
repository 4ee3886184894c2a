"""Matches found inside a load budget, and what the run did as plain data: its work, what was shed, its recall.

Under a budget one run stands for others that lead to the same match points, so few of the matches of each are listed.
To ``expand`` them, the regions before the match points that were found are matched again, exactly.
Source: approximate proxy match, Li and Ge, PVLDB 2016, section 3.3; a reconstruction (docs/how-it-works/paper.md).
Definition 3 says that a found region is enumerated afterwards, and section 3.2 how it grows: "we could extend t on both
sides of the stream (forward and backward) by w at a time, and do a match in the local area of t until an extension
resulted in no more matches". That finds the rest of each match bundle, also the match points that the run has missed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from acep_approx.arguments import checked
from acep_approx.arrays import Ints
from acep_approx.budget.ledger import Bundle, HistoryPath, Learning, PathStep, RunRecord
from acep_approx.diagrams.fragments import never_raises
from acep_approx.engines.engine import NO_WORDS
from acep_approx.errors import UsageError
from acep_approx.events.source import Source
from acep_approx.events.stream import EventBatch, read_events
from acep_approx.events.time import tick_unit
from acep_approx.learning.online import learning_table, summary
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.bind import bound_names
from acep_approx.matching.outputs.kinds import BARE, KINDS, MATCHES, POINTS, OutputKind
from acep_approx.matching.outputs.tables import joined
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.renumber import renumbered, row_columns
from acep_approx.planning.planner import Plan
from acep_approx.results.matches import Matches
from acep_approx.results.question import Question
from acep_approx.shedding.load import Load
from acep_approx.shedding.metrics import Metrics, left_open_table, shed_by_state, shed_table
from acep_approx.shedding.refreshed import refreshed
from acep_approx.shedding.shedder import Shedder, shedder
from acep_approx.training.history_graph import HistoryGraph
from history.bundles import Bundles, chain
from history.coverage.proxy import regions

if TYPE_CHECKING:
    from acep_approx.budget.audit import RecallEstimate
    from acep_approx.planning.compiled import CompiledQuery


@dataclass
class Expansion:
    """What it took to expand what a budget found; outside of that budget.

    Attributes
    ----------
    rounds : int
        Times that regions were extended by a window on both sides; the last one found no more.
    events, steps : int
        Events that were matched again, and run-steps of that, over all rounds and the listing.
    """

    rounds: int = 0
    events: int = 0
    steps: int = 0


@dataclass(frozen=True)
class Again:
    """A stream that can be read again.

    Parameters
    ----------
    matcher : callable
        Makes an exact matcher of an output, bound to the columns of the events.
    batches : callable
        The events, once more.
    cost : Expansion
        Is added to.
    """

    matcher: Callable[[OutputKind], Execution]
    batches: Callable[[], Iterable[EventBatch]]
    cost: Expansion

    def run(self, output: OutputKind, first: Ints, last: Ints) -> tuple[pa.Table, Ints]:
        """What an exact run over the events of some regions finds, and the rows in the stream of these events.

        Parameters
        ----------
        output : str
        first, last : int64 arrays
            First and last tick of each region; disjoint and in order.
        """
        matcher = self.matcher(output)
        assert matcher.pipeline is not None
        tables, rows, seen = [matcher.pipeline.nothing()], [np.zeros(0, np.int64)], 0
        for batch in self.batches():
            inside = _inside(batch.ticks, first, last)
            if len(inside):
                rows.append(batch.first_row + inside)
                tables += matcher.run(EventBatch(seen, batch.ticks[inside], batch.data.take(pa.array(inside))))
                seen += len(inside)
        found = joined([*tables, *matcher.pipeline.finish()], matcher.pipeline.nothing().schema)
        self.cost.events += seen
        self.cost.steps += matcher.progress.steps
        return found, np.concatenate(rows)


def ticks_of(found: pa.Table) -> Ints:
    """When matches, or match points, end."""
    ends: Ints = found["end"].combine_chunks().cast(pa.int64()).to_numpy(zero_copy_only=False)
    return ends


def _inside(ticks: Ints, first: Ints, last: Ints) -> Ints:
    if not len(first):
        return np.zeros(0, np.int64)
    region = np.searchsorted(first, ticks, side="right") - 1
    return np.flatnonzero((region >= 0) & (ticks <= last[np.maximum(region, 0)]))


def whole_bundles(again: Again, ticks: Ints, window: int, late: int) -> Ints:
    """The match points of all bundles that have one of some match points, over all keys together.

    Parameters
    ----------
    again : Again
    ticks : int64 array
        Times of the match points that were found.
    window : int
        In ticks.
    late : int
        Ticks behind a region that must be seen to know its matches: a window where a negation ends the pattern, else 0.

    Returns
    -------
    int64 array
        Ticks, in order. Complexity: a round for each window by which a bundle grows; each reads the stream, and matches
        the events less than two windows before and one behind the match points that the round before has found.
    """
    known = new = np.unique(ticks)
    while len(new):
        again.cost.rounds += 1
        _, first, last = regions(new + window, 2 * window)  # [t - w, t + w]
        found, _ = again.run(BARE, first - window, last + late)
        ends = np.unique(ticks_of(found))
        new = np.setdiff1d(ends[_inside(ends, first, last)], known)
        known = np.union1d(known, new)
    return known


def expanded(again: Again, ticks: Ints, window: int, late: int) -> tuple[pa.Table, Ints]:
    """Every match that ends at one of some times, and the rows in the stream of the events that its rows count.

    Parameters
    ----------
    again : Again
    ticks : int64 array
        Times of the match points that were found.
    window, late : int
        As for ``whole_bundles``.

    Complexity: an exact run over the events at most a window before a match point (and a window after it, where a
    negation at the end must be waited for).
    """
    _, first, last = regions(ticks, window)
    found, stream = again.run(MATCHES, first, last + late)
    return found.filter(pa.array(np.isin(ticks_of(found), ticks))), stream


SHOWN_PATHS = 40
"""Paths of the history that a report shows."""


class ShownRecord(RunRecord):
    """A record that draws itself in a notebook."""

    @never_raises
    def _repr_html_(self) -> str:
        from acep_approx.results.views import record_view

        return record_view(self)


class BudgetedRun:
    """What came of a run inside a load budget, so far or of the last one; of matches, and of what is pushed.

    Attributes
    ----------
    load : Load
        What it was to do.
    shedder : Shedder or None
        None: the cells engine answers, or nothing ran yet.
    pipeline : Pipeline or None
        None: no columns were seen yet.
    """

    plan: Plan
    load: Load
    shedder: Shedder | None
    pipeline: Pipeline | None
    progress: Any
    seconds = 0.0
    """How long the run took so far."""
    weight = 1.0
    """What a match point counts for, beside those of others: nobody shares the budget."""

    @property
    def window(self) -> int:
        """The window in ticks, or in events; 0 where no columns were seen yet."""
        return self.pipeline.window if self.pipeline is not None else 0

    @property
    def _is_time(self) -> bool:
        """Whether ticks are microseconds since 1970."""
        if self.pipeline is None or self.plan.is_count_window:
            return False
        schema, roles = self.pipeline.schema, self.pipeline.roles
        return tick_unit(schema.field(roles.time).type, roles.unit) is not None

    def _learned(self) -> Learning | None:
        online = self.shedder.online if self.shedder is not None else None
        return summary(online) if online is not None else None

    def learning(self) -> pa.Table:
        """When runs were scored anew, and by what: one row each time.

        Returns
        -------
        pyarrow.Table
            See ``learned.learning_table``; without rows where nothing was learned. More is in ``record().learning``.
        """
        return learning_table(self._learned(), is_time=self._is_time)

    @checked
    def refreshed(self, query: CompiledQuery) -> HistoryGraph | None:
        """The history as it was learned up to now.

        Parameters
        ----------
        query : CompiledQuery
            The query that is run.

        Returns
        -------
        HistoryGraph or None
            A new one; None as long as nothing was learned.
        """
        if self.shedder is None:
            return None
        return refreshed(self.shedder, type(query)(self.load.plan_of(query.plan)), self.progress.events)

    @checked
    def report(self, path: str | Path, source: str = "") -> None:
        """Write the record as one self-contained HTML page (``ACEP-U013``: over a file that is read)."""
        from acep_approx.pages.budget.page import write_report

        write_report(self.record(source), path)

    def _recall(self) -> RecallEstimate | None:
        """The estimated recall; None where there was no audit."""
        return self.shedder.recall() if self.shedder is not None else None

    def _push_p99(self) -> float | None:
        """How long a push takes at most, in 99 of 100 cases; None where nothing is pushed."""
        return None

    def _left_out(self) -> dict[str, int]:
        """Events that were not matched, by their names in ``RunRecord``."""
        return {"without_key": self.progress.without_key}

    @checked
    def record(self, source: str = "") -> RunRecord:
        """What the run did: work against the bound, what was shed, recall, what was learned.

        Parameters
        ----------
        source : str
            Name of the input, for people.
        """
        known, done = self.load.history, self.shedder
        learned, found = self._learned(), done.metrics if done else Metrics()
        ticks = found.points.tick
        order = np.argsort(ticks, kind="stable")
        return ShownRecord(
            query=str(self.plan.query.text).strip(),
            source=source,
            budget=str(self.load.budget),
            bound=done.bound_in_words() if done else "the cells engine answers exactly, and sheds nothing",
            policy=self.load.policy_words if learned else self.load.policy_name,
            seed=self.load.seed,
            is_time=self._is_time,
            begin=found.begin,
            pieces=found.pieces,
            shed=shed_by_state(done.arena) if done and self.pipeline else (),
            recall=self._recall(),
            point_ticks=ticks[order],
            point_errors=found.points.errors[order],
            bundles=_bundles(ticks[order], self.window),
            paths=_paths(known) if known else (),
            seconds=self.seconds,
            learning=learned,
            full_work=done.full_work() if done and self.pipeline else None,
            past_work=done.load.steps_per_event if done and done.exact_work is not None else None,
            exact_seconds=done.exact_seconds() if done and self.pipeline else None,
            audit_work=done.audit_work if done else None,
            ends=done.ways.ends if done and done.ways else 0,
            unsearched=done.ways.unsearched if done and done.ways else 0,
            unlisted=done.ways.unlisted if done and done.ways else 0,
            most_kept=self.progress.most_kept,
            push_p99=self._push_p99(),
            **self._left_out(),
        )


def _paths(known: HistoryGraph) -> list[HistoryPath]:
    scheme = known.graph_.scheme
    return [
        HistoryPath([PathStep.of(scheme.describe(v), scheme.window) for v in path.vertices], path.count, path.share)
        for path in known.graph_.strongest_paths(SHOWN_PATHS)
    ]


def _bundles(ticks: Ints, window: int) -> list[Bundle]:
    """Chains of match points at most a window apart (of all keys together, for a picture)."""
    number = len(ticks)
    single = Bundles(ticks, ticks, np.zeros(number, np.str_), np.arange(number), np.ones(number, np.int64))
    chained, _ = chain(single, window, number)
    columns = (chained.first.tolist(), chained.last.tolist(), chained.points.tolist())
    return [Bundle(*row) for row in zip(*columns, strict=True)]


# --- matches inside a budget --------------------------------------------------------------------------------


class BudgetedMatches(Matches, BudgetedRun):
    """The matches that a load budget can buy; see ``Matches``, and ``record`` for what it cost.

    Parameters
    ----------
    question, source
        As for ``Matches``.
    load : Load
        The budget, and how it is spent.

    Notes
    -----
    Every match is one of the exact answer; some may be missing. Its errors are the least of the ways to it that were
    found; with NON OVERLAP a match may be reported that follows one that was missed. Where the cells engine answers,
    nothing is shed: its work does not depend on how many partial matches there are.

    Attributes
    ----------
    expansion : Expansion
        What the last call of ``expanded`` took.
    """

    warns_of_many = False  # the budget limits them

    def __init__(self, question: Question, source: Source, load: Load) -> None:
        super().__init__(question, source)
        self.load = load
        load.check(question.plan)
        self.shedder: Shedder | None = None
        self._asked: OutputKind | None = None
        self.pipeline: Pipeline | None = None
        self._logged: list[pa.Table] = []
        self._ends: list[Ints] = []  # of the match points, where these were asked for
        self.expansion = Expansion()

    def _matcher(self, question: Question, kind: OutputKind) -> Execution:
        refuse_output(kind)
        self.shedder, self._asked = shedder(question.plan, self.load), kind
        return question.execution(kind, self.shedder)

    def _tables_of(self, matcher: Execution, pipeline: Pipeline) -> Iterator[pa.Table]:
        self.pipeline, self._logged, self._ends = pipeline, [], []
        begun = time.perf_counter()
        for table in super()._tables_of(matcher, pipeline):
            self._take_log()
            if self._asked in (POINTS, BARE):
                self._ends.append(ticks_of(table))
            if self.shedder is not None and not self.source.reusable:  # a stream, which may have no end
                self.shedder.forget()
            yield table
        self._take_log()
        if self.shedder is not None:
            self.shedder.finish()
        self.seconds = time.perf_counter() - begun

    def _take_log(self) -> None:
        """Tables of what was shed; the keys of its slots are still known now."""
        if self.load.logs_shed and self.pipeline is not None:
            log, ends = self.pipeline.engine.logged(), self.pipeline.engine.left_open()
            if len(log):
                self._logged.append(shed_table(log, self.pipeline))
            if len(ends):
                self._logged.append(left_open_table(ends, self.pipeline))

    @never_raises
    def _repr_html_(self) -> str:
        from acep_approx.results.views import budgeted_view

        return budgeted_view(self)

    def shed(self) -> pa.Table:
        """The runs shed by the last call that found matches: one row each; see ``metrics.shed_table``.

        Where ends of matches were searched: the events of which the budget left open whether a match ends there
        (``metrics.left_open_table``).

        Raises
        ------
        UsageError
            ``ACEP-U039``: it was not asked for when the matches were.
        """
        if not self.load.logs_shed:
            raise UsageError(
                "the runs that are shed were not written down", code="ACEP-U039", hint="ask for them with log_shed=True"
            )
        if not self._logged:
            if self.pipeline is None or self.pipeline.engine.shedding is None:
                return pa.table({})
            return left_open_table(NO_WORDS.reshape(0, 3), self.pipeline)
        return renumbered(pa.concat_tables(self._logged), ["row"], self.source.late.original)

    @checked
    def expanded(self, *, bundles: bool = False) -> pa.Table:
        """All matches that end when a match point does which ``points`` finds, not only those whose runs were kept.

        Unless ``points`` was the last call that found matches, it is called first. Then the events are read once more,
        and those at most a window before such a point are matched exactly; that work is not part of the budget:
        ``expansion`` says what it was. Columns as for ``to_arrow``.

        Parameters
        ----------
        bundles : bool, default False
            Whether to go on, by a window on both sides, until no more match points come: then all matches of the whole
            match bundles are listed, also at match points that the budget missed. One reading more for each window by
            which a bundle grows.

        Raises
        ------
        UsageError
            ``ACEP-U047``: windows of events have no times to look at again; ``ACEP-U151``: more events may follow
            (``ended=False``); ``ACEP-U103``: the events can be read only once.

        Complexity: see ``expand.expanded``.
        """
        registers = self.plan.registers
        if registers is None:
            return self.to_arrow()
        if not self.question.ended:  # it looks at parts of the stream, each to its end
            raise UsageError(
                "ended=False and expanded() do not go together", code="ACEP-U151", hint="leave one of them out"
            )
        if self.plan.is_count_window:
            raise UsageError(
                "matches of a window of events cannot be expanded",
                code="ACEP-U047",
                hint="use a window of time, or list all matches without a budget",
            )
        if not self.source.reusable:
            raise UsageError(
                "these events can be read only once, and expanding reads them twice",
                code="ACEP-U103",
                hint="give a list, a table or a file",
            )
        if self._asked not in (POINTS, BARE):
            self.points()
        if self.shedder is None or self.pipeline is None:  # no columns, no events
            return pa.table({})
        ticks = np.concatenate(self._ends)
        window, self.expansion = self.pipeline.window, Expansion()
        again, late = Again(self._bound_again, self._read_again, self.expansion), window * registers.waits
        if bundles:
            ticks = whole_bundles(again, ticks, window, late)
        found, stream = expanded(again, ticks, window, late)
        columns = row_columns(self.plan, MATCHES, bound_names(self.question.bind, self.plan.query))
        return renumbered(found, columns, lambda rows: self.source.late.original(stream[rows]))

    def _bound_again(self, output: OutputKind) -> Execution:
        question = self.question if output.binds else replace(self.question, bind=None)
        matcher = question.execution(output)
        matcher.bind(self.source.schema)
        return matcher

    def _read_again(self) -> Iterator[EventBatch]:
        pipeline = self._bound_again(MATCHES).pipeline
        assert pipeline is not None
        return read_events(self.source, pipeline.roles, columns=pipeline.columns, sort=self.question.sort)

    def _left_out(self) -> dict[str, int]:
        late, malformed = self.source.late.count, self.source.malformed.count
        return {"late": late, "malformed": malformed, **super()._left_out()}

    @property
    def exact(self) -> Matches:
        """The same matches without a budget."""
        exact = Matches(replace(self.question, limit=None, on_progress=None), self.source)
        exact.has_warned = self.has_warned
        return exact

    def page_sections(self) -> Iterator[str]:
        """How the budget was spent: of the last call that found matches; without one, ``points`` is called."""
        from acep_approx.pages.budget.page import budget_sections

        if self.pipeline is None:
            self.points()
        yield from budget_sections(self.record())

    @property
    def asked_by(self) -> tuple[str, str]:
        """The method of a query that finds them, and its arguments behind the events, as code."""
        load, names = self.load, ("policy", "audit", "seed", "learns", "full_work")
        given = {name: value for name in names if (value := getattr(load, name)) != getattr(Load, name)}
        more = "".join(f", {name.replace('learns', 'learn')}={value!r}" for name, value in given.items())
        known = "" if load.history is None else ", history=known"
        return "match_within", f", {str(load.budget)!r}{known}{more}"

    @checked
    def report(self, path: str | Path, source: str = "") -> None:
        """Write the record as one self-contained HTML page (``ACEP-U013``: over a file that is read)."""
        from acep_approx.events.writing.outfile import refuse_input

        refuse_input(Path(path), "the report", self.source.paths)
        super().report(path, source)


def refuse_output(kind: str) -> None:
    """Refuse what cannot be had inside a budget (``ACEP-U038``)."""
    if KINDS[kind].needs_all:
        raise UsageError(
            f"the output {kind!r} is about all partial matches, and a budget sheds some",
            code="ACEP-U038",
            hint="leave the budget out, or ask for matches, points or counts",
        )
