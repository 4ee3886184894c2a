"""What each choice of ERRORS, window and budget finds, learned on the first part of a past and measured on the last.

What to choose of that is recommended, with reasons in words. Its limits are ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from acep_approx.budget.budget import Budget
from acep_approx.budget.ledger import LIGHT
from acep_approx.diagrams.fragments import never_raises
from acep_approx.errors import DataError, UsageError
from acep_approx.events.counts import is_at_least, said
from acep_approx.events.reading.widening import one_table
from acep_approx.events.roles import Roles, infer_roles
from acep_approx.events.source import Source, open_source
from acep_approx.events.stream import read_events
from acep_approx.events.time import tick_unit
from acep_approx.matching.execution import Execution
from acep_approx.query.printer import to_text
from acep_approx.results.budgeted import BudgetedMatches
from acep_approx.results.question import Question
from acep_approx.shedding.load import Load
from acep_approx.training.history_graph import HistoryGraph
from acep_approx.training.promise import Truth, intervals
from acep_approx.visible import aligned, printable

if TYPE_CHECKING:
    from acep_approx.planning.compiled import CompiledQuery
    from acep_approx.planning.planner import Plan


TRAINED = 0.7
"""Share of the past, its beginning, that is learned from."""
PREFIX = 0.1
"""Share of the past, its beginning, on which a choice is tried first."""
PIECE = 512
"""Events after which it is looked whether the work, or the number of matches, is too much."""
MOST_MATCHES = 10_000_000
"""Matches in the last part beyond which a choice is too much."""

Compile = Callable[[int | None, str | None], "CompiledQuery"]
"""Compiles the query for the runs engine with other ERRORS and another WITHIN; None: as they are."""
Elsewhere = Callable[[Sequence["CompiledQuery"], "PastTable", "HowTried"], Sequence["Trial"]]
"""Tries all choices at once, each as ``tried`` does."""


@dataclass(frozen=True)
class Trial:
    """What one choice of ERRORS and WITHIN finds, and what it costs.

    Attributes
    ----------
    errors : int
    within : str
        As written in the query.
    points, matches : int
        In the last part of the past, found by the exact run; matches are 0 where only points were asked for.
    steps : float
        Run-steps per event of the exact run over the last part; of a skipped choice over what was looked at.
    work, recalls : tuple of float
        Per budget the share of the exact run's work done, and of its match points found.
    exact_seconds : float
        How long the exact run over the last part took.
    seconds : tuple of float
        How long it took inside each budget.
    skipped : str
        Why it was not tried; empty if it was.
    intervals : tuple of (float, float)
        Per budget where the recall of a stretch like the last part lies, in 95 of 100 cases; see ``promise.intervals``.
    """

    errors: int
    within: str
    points: int = 0
    matches: int = 0
    steps: float = 0.0
    work: tuple[float, ...] = ()
    recalls: tuple[float, ...] = ()
    skipped: str = ""
    exact_seconds: float = field(default=0.0, compare=False)
    seconds: tuple[float, ...] = field(default=(), compare=False)
    intervals: tuple[tuple[float, float], ...] = ()

    def recall_words(self, number: int) -> str:
        """The recall inside a budget, and where it lies in 95 of 100 cases.

        Examples
        --------
        >>> Trial(0, "10 s", 100, recalls=(0.7,), intervals=((0.61, 0.78),)).recall_words(0)
        '70% (61 to 78%)'
        """
        if not self.points:
            return "-"
        low, high = self.intervals[number] if self.intervals else (1.0, 1.0)
        return f"{self.recalls[number]:.0%}" + (f" ({100 * low:.0f} to {high:.0%})" if low < high else "")


@dataclass(frozen=True)
class Tuning:
    """All choices that were tried.

    Attributes
    ----------
    budgets : tuple of Budget
        In the order given.
    trials : tuple of Trial
        Rising windows, for each rising errors.
    trained, measured : int
        Events that were learned from, and that recall was measured on.
    """

    budgets: tuple[Budget, ...]
    trials: tuple[Trial, ...]
    trained: int
    measured: int

    def table(self) -> list[list[str]]:
        """The choices as a table of texts, its header first."""
        header = ["WITHIN", "ERRORS", "match points", "matches", "run-steps per event"]
        rows = [[*header, *(f"recall at {budget}" for budget in self.budgets)]]
        for trial in self.trials:
            row = [trial.within, str(trial.errors)]
            if trial.skipped:
                row += ["-", "-", f"left out: {trial.skipped}", *("-" for _ in self.budgets)]
            else:
                row += [f"{trial.points:,}", said(trial.matches) if trial.matches else "-", f"{trial.steps:,.3g}"]
                row += [trial.recall_words(number) for number in range(len(trial.recalls))]
            rows.append(row)
        return rows

    def __str__(self) -> str:
        return printable("\n".join([*aligned(self.table(), texts=1), str(self.advice)]))

    @property
    def advice(self) -> Advice:
        """What is recommended, and why; see ``advise``."""
        return advise(self)

    @never_raises
    def _repr_html_(self) -> str:
        from acep_approx.results.views import tuning_view

        return tuning_view(self)


@dataclass(frozen=True)
class PastTable:
    """A past in memory, in order, cut in two.

    Attributes
    ----------
    first, last : pyarrow.Table
        What is learned from, and what is measured on.
    roles : Roles
    """

    first: pa.Table
    last: pa.Table
    roles: Roles

    @classmethod
    def read(cls, source: Source, *, sort: bool = False, **roles: str | None) -> PastTable:
        """Read all events.

        Raises
        ------
        DataError
            ``ACEP-D060``: there are fewer than 10 events.
        """
        found = infer_roles(source.schema, **roles)
        batches = [batch.data for batch in read_events(source, found, sort=sort)]
        table = one_table(batches) if batches else pa.table({})
        if table.num_rows < 10:
            raise DataError(f"a past of {table.num_rows} events cannot be tuned on", code="ACEP-D060")
        cut = round(TRAINED * table.num_rows)
        return cls(table.slice(0, cut), table.slice(cut), found)

    @property
    def named(self) -> dict[str, Any]:
        """The roles as ``Query.match`` takes them."""
        return {name: getattr(self.roles, name) for name in ("time", "key", "type", "unit", "time_format")}


def tune(
    compiled: Compile,
    past: PastTable,
    *,
    errors: Sequence[int | None] = (None,),
    within: Sequence[str | None] = (None,),
    budgets: Sequence[str | float | Budget] = ("5%", "10%", "20%", "50%"),
    output: Literal["counts", "points"] = "counts",
    most_steps: float = 20_000.0,
    seed: int = 0,
    on_progress: Callable[[str, float], None] | None = None,
    elsewhere: Elsewhere | None = None,
) -> Tuning:
    """Try all choices of errors and windows, with all budgets.

    Parameters
    ----------
    compiled : callable
        See ``Compile``.
    past : PastTable
        A history is learned from its first part; recall is measured on its last part, which nothing was learned from.
    errors, within : sequence, optional
        None: as in the query. Where the load of one is too much, larger ones are left out.
    budgets : sequence of str
    output : {"counts", "points"}, default "counts"
        Whether matches are asked for, or match points alone, which takes less work.
    most_steps : float, default 20,000
        Run-steps per event beyond which a choice is too much, in any 512 events of the first tenth of the past.
    seed : int, default 0
    on_progress : callable, optional
        Called with what is being done, and the share of all choices that are done.
    elsewhere : callable, optional
        Tries the choices, e.g. ``spark.past.tuning.on_spark``. Default: one after the other, here, without those of
        which it is known that they are too much.

    Returns
    -------
    Tuning
        The same for the same arguments, wherever the choices were tried.

    Raises
    ------
    UsageError
        ``ACEP-U043``: a budget of time, of which two runs may find different matches; ``ACEP-U073``: no window.

    Complexity: per choice about five exact runs over the past, and one per budget over its last part.
    """
    parsed = tuple(map(Budget.parse, budgets))
    for budget in parsed:
        refuse_clock(budget)
    unit = tick_unit(past.first.schema.field(past.roles.time).type, past.roles.unit)
    grid = [[compiled(number, window) for number in errors] for window in within]  # all are right before work begins
    for row in grid:
        row[0].plan.refuse_unbounded("a load budget")
        row.sort(key=lambda query: query.plan.automaton.errors)
    grid.sort(key=lambda row: row[0].plan.window_ticks(unit))
    how = HowTried(parsed, output, most_steps, seed)
    queries = [query for row in grid for query in row]
    if elsewhere and on_progress:
        on_progress(f"{len(queries)} choices at once", 0.0)
    ready = elsewhere(queries, past, how) if elsewhere else None
    trials: list[Trial] = []
    for place, query in enumerate(queries):
        asked = _asked(query)
        if on_progress and not elsewhere:
            on_progress(f"ERRORS {asked.errors} WITHIN {asked.within}", place / len(queries))
        above = trials[-len(errors) :][:1]
        less = [*trials[-1:], *above] if place % len(errors) else above
        trials.append(_skipped(asked, less) or (ready[place] if ready else tried(query, past, how)))
    return Tuning(parsed, tuple(trials), past.first.num_rows, past.last.num_rows)


def refuse_clock(budget: Budget) -> None:
    """Refuse a budget with which two runs may differ (``ACEP-U043``)."""
    if budget.needs_clock:
        raise UsageError(
            f"a budget of {budget} depends on the clock, so two runs may shed differently",
            code="ACEP-U043",
            hint="say it in work: '20%', '5000 steps/event' or '200 runs'",
        )


def _asked(query: CompiledQuery) -> Trial:
    return Trial(query.plan.automaton.errors, to_text(query.plan.query.window))


def _skipped(asked: Trial, less: Sequence[Trial]) -> Trial | None:
    """A choice at least as heavy as one that was too much."""
    for one in less:
        if one.skipped:
            is_first = one.steps > 0
            return replace(asked, skipped=f"as ERRORS {one.errors} WITHIN {one.within}" if is_first else one.skipped)
    return None


@dataclass(frozen=True)
class HowTried:
    """What is the same for all choices; see ``tune``."""

    budgets: tuple[Budget, ...]
    output: Literal["counts", "points"]
    most_steps: float
    seed: int


def tried(query: CompiledQuery, past: PastTable, how: HowTried) -> Trial:
    """Learn and measure one choice: a function of its arguments alone, so it can be called anywhere."""
    asked = _asked(query)
    all_rows = past.first.num_rows + past.last.num_rows
    heaviest = _load(query.plan, past.first.slice(0, max(int(PREFIX * all_rows), PIECE)), past, how)
    if heaviest > how.most_steps:
        return replace(asked, steps=heaviest, skipped=f"{heaviest:,.0f} run-steps per event")
    exact = Execution(query.plan, output=how.output, **past.named)
    tables, matches, begun = [], 0, time.perf_counter()
    for table in _run(exact, past.last):
        tables.append(table)
        matches += sum(table.column("matches").to_pylist()) if exact.output.by_errors else 0
        if matches > MOST_MATCHES:
            steps = exact.progress.steps / max(exact.progress.events, 1)
            return replace(asked, steps=steps, skipped=f"over {MOST_MATCHES:,} matches")
    exact_seconds = time.perf_counter() - begun
    assert exact.pipeline is not None, "it has run"
    truth = Truth.of(tables, exact.pipeline.window, past.last.num_rows)
    known = HistoryGraph(query).fit(past.first, **past.named)
    work, found, seconds = [], [], []
    for budget in how.budgets:
        question = Question(plan=query.plan, roles=past.named)
        some = BudgetedMatches(question, open_source(past.last), Load(budget, known, seed=how.seed))
        begun = time.perf_counter()
        rows = (some.counts() if exact.output.by_errors else some.points())["row"].to_numpy()
        seconds.append(time.perf_counter() - begun)
        found.append(truth.found(rows))
        work.append(some.record().work / max(exact.progress.steps, 1))
    steps = exact.progress.steps / past.last.num_rows
    recalls = tuple(float(one.sum()) / max(len(truth), 1) for one in found)
    ends = [
        (1.0, 1.0) if budget.is_unlimited else one
        for budget, one in zip(how.budgets, intervals(np.array(found), truth), strict=True)
    ]
    return replace(
        asked, points=len(truth), matches=matches, steps=steps, work=tuple(work), recalls=recalls,
        exact_seconds=exact_seconds, seconds=tuple(seconds), intervals=tuple(ends),
    )  # fmt: skip


def _run(matcher: Execution, events: pa.Table) -> Iterable[pa.Table]:
    """The tables of results; piece by piece, so that one can stop between."""
    pipeline = matcher.bind(events.schema)
    source = open_source(events)
    for batch in read_events(source, pipeline.roles, columns=pipeline.columns, batch_rows=PIECE):
        yield from matcher.run(batch)
        yield pipeline.nothing()  # the work of this piece is known now
    yield from pipeline.finish()


def _load(plan: Plan, events: pa.Table, past: PastTable, how: HowTried) -> float:
    """Run-steps per event of the heaviest piece; stops at one that is too heavy."""
    matcher = Execution(plan, output=how.output, **past.named)
    heaviest, steps, seen = 0.0, 0, 0
    for _ in _run(matcher, events):
        if matcher.progress.events > seen:
            heaviest = max(heaviest, (matcher.progress.steps - steps) / (matcher.progress.events - seen))
            steps, seen = matcher.progress.steps, matcher.progress.events
            if heaviest > how.most_steps:
                break
    return heaviest


# --- what to choose -----------------------------------------------------------------------------------------

ENOUGH = 0.9
"""Recall that a recommended budget should have."""
WORTH = 0.05
"""By what share match points must grow for one more error, or a longer window, to be recommended."""
EXPLODES = 10.0
"""How many times more matches one more error may bring."""


@dataclass(frozen=True)
class Advice:
    """What to choose, and why.

    Attributes
    ----------
    errors, within, budget : int, str, str, optional
        None: the past does not tell.
    reasons : tuple of str
        Sentences.
    """

    errors: int | None
    within: str | None
    budget: str | None
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        if self.within is None:
            return "\n  ".join(["no recommendation", *self.reasons])
        budget = f"a budget of {self.budget}" if self.budget else "no budget"
        return "\n  ".join([f"recommended: ERRORS {self.errors} WITHIN {self.within}, {budget}", *self.reasons])


def advise(tuning: Tuning) -> Advice:
    """Recommend a window, errors and a budget.

    Returns
    -------
    Advice
        The longest window, then the most errors, such that each step on the way there brings 5% more match points, and
        no error ten times more matches; then the budget of the least work with a recall of 90%; none where the exact
        run is so little work that no budget saves time. These limits are ours.

    Examples
    --------
    >>> from acep_approx import Budget
    >>> from acep_approx.results import Trial, Tuning
    >>> trials = [Trial(0, "10 s", 100, 150, steps=18.0, work=(0.2, 0.5), recalls=(0.7, 0.95)),
    ...           Trial(1, "10 s", 102, 900, steps=30.0, work=(0.2, 0.5), recalls=(0.8, 0.92))]
    >>> advice = advise(Tuning((Budget.parse("20%"), Budget.parse("50%")), tuple(trials), 700, 300))
    >>> advice.errors, advice.within, advice.budget
    (0, '10 s', '50%')
    >>> for reason in advice.reasons:
    ...     print(reason)
    ERRORS 0: with 1, match points grow by 2% only (100 to 102), and run-steps per event from 18 to 30
    budget 50%: it is the least work that finds 90% of the match points; it finds 95%
    """
    tried = [trial for trial in tuning.trials if not trial.skipped]
    if not tried:
        return Advice(None, None, None, ("even the least ERRORS and WITHIN are too much load: raise the limit",))
    if not any(trial.points for trial in tried):
        why = "the last part of the past has no match point: there is nothing to choose by"
        return Advice(None, None, None, (why,))
    least = tuning.trials[0].errors
    window, why_window = _furthest([t for t in tuning.trials if t.errors == least], "within")
    chosen, why_errors = _furthest([t for t in tuning.trials if t.within == window.within], "errors")
    if chosen.steps < LIGHT:
        load = f"the exact run takes {chosen.steps:,.3g} run-steps per event"
        budget, why_budget = None, [f"no budget: {load}, and below {LIGHT:g} a budget saves no time"]
    else:
        budget, why_budget = _cheapest(chosen, tuning.budgets)
    return Advice(chosen.errors, chosen.within, budget, (*why_window, *why_errors, *why_budget))


def _furthest(trials: Sequence[Trial], of: Literal["errors", "within"]) -> tuple[Trial, list[str]]:
    """The last choice of a rising row to which each step is worth it, and why not the next one."""
    chosen = trials[0]
    for after in trials[1:]:
        why = _stops(chosen, after, is_error=of == "errors")
        if why:
            return chosen, [f"{of.upper()} {getattr(chosen, of)}: with {getattr(after, of)}, {why}"]
        chosen = after
    if len(trials) > 1:
        grown = f"match points grow from {trials[0].points:,} to {chosen.points:,} on the way there"
        steps = f"run-steps per event {_steps(trials[0], chosen)}"
        return chosen, [f"{of.upper()} {getattr(chosen, of)}: {grown}, and {steps}"]
    return chosen, []


def _stops(before: Trial, after: Trial, *, is_error: bool) -> str:
    """Why a step is not worth it; empty if it is."""
    if after.skipped:
        return f"it is too much: {after.skipped}"
    if after.points < (1 + WORTH) * before.points:
        share = f"{after.points / before.points - 1:.0%}" if before.points else "0%"
        return (
            f"match points grow by {share} only ({before.points:,} to {after.points:,}), and run-steps per event "
            f"{_steps(before, after)}"
        )
    if is_error and before.matches and after.matches > EXPLODES * before.matches:
        grown = f"{said(before.matches)} to {said(after.matches)}"
        many = f"there are {after.matches / before.matches:,.0f} times as many matches ({grown})"
        if is_at_least(after.matches):
            many = f"the number of matches grows from {grown}"
        return f"{many} at {after.points / before.points:.1f} times the match points"
    return ""


def _steps(before: Trial, after: Trial) -> str:
    return f"from {before.steps:,.3g} to {after.steps:,.3g}"


def _cheapest(chosen: Trial, budgets: Sequence[Budget]) -> tuple[str | None, list[str]]:
    """The budget of the least work whose recall is enough, else that of the most recall."""
    if not chosen.recalls or not chosen.points:
        return None, []
    order = sorted(range(len(budgets)), key=lambda i: (chosen.work[i], i))
    for i in order:
        if chosen.recalls[i] >= ENOUGH:
            why = f"it is the least work that finds {ENOUGH:.0%} of the match points; it finds {chosen.recall_words(i)}"
            return str(budgets[i]), [f"budget {budgets[i]}: {why}"]
    best = max(order, key=lambda i: chosen.recalls[i])
    why = f"none finds {ENOUGH:.0%} of the match points; this one finds most, {chosen.recall_words(best)}"
    return str(budgets[best]), [f"budget {budgets[best]}: {why}"]
