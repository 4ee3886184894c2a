"""A live run inside a load budget whose events may be late, change or be taken back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from acep_approx.api.budgeted_matcher import BudgetedMatcher
from acep_approx.api.live_run import query_feed
from acep_approx.api.spending import go_on, known_history, load_of, load_of_state, put_in_order, spent
from acep_approx.budget.audit import RecallEstimate
from acep_approx.errors import UsageError
from acep_approx.events.reading.widening import stacked
from acep_approx.matching.outputs.kinds import MATCHES, POINTS
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.state import MATCHER
from acep_approx.results.budgeted import BudgetedMatches, BudgetedRun, refuse_output
from acep_approx.results.question import Reading
from acep_approx.revisions.matcher import RevisedMatcher
from acep_approx.revisions.replay import Replay
from acep_approx.revisions.request import REVISING, Revisions
from acep_approx.run.watermarks import NEVER
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import shedder

if TYPE_CHECKING:
    from acep_approx.archive import Scope
    from acep_approx.budget.budget import Budget
    from acep_approx.budget.ledger import RunRecord
    from acep_approx.engines.progress import RunProgress
    from acep_approx.events.source import Source
    from acep_approx.planning.compiled import CompiledQuery
    from acep_approx.planning.planner import Plan
    from acep_approx.training.history_graph import HistoryGraph


class BudgetedRevisedMatcher(RevisedMatcher, BudgetedRun):
    """Runs one query inside a load budget over a stream that may change; made by ``Query.matcher(budget=...)``.

    Parameters
    ----------
    plan : Plan
    asked : Revisions
        How events may come late and change.
    load : Load
        The budget, and how it is spent.
    **options
        As for ``RevisedMatcher``.

    Notes
    -----
    After each push the sum of all that was put out is part of what the same run without a budget would have put out,
    and no more run-steps were taken than granted: what a late event, or one that is taken back, makes run again is paid
    from the same budget. Each event is granted for once, when it is first taken in. Match points are counted once,
    when they are first found. Where results may be taken back there is no audit, so recall is not known; what is
    learned, is learned of events that come in order, when they come.
    """

    def __init__(self, plan: Plan, asked: Revisions, load: Load, **options: Any) -> None:
        refuse_output(options.get("output", MATCHES))
        load.check(plan)
        if not asked.is_final:
            load = replace(load, audit=0.0)
        self.load = load
        self.shedder = shedder(plan, load, in_order=False)
        super().__init__(plan, asked, shedding=self.shedder, **options)

    @property
    def pipeline(self) -> Pipeline | None:  # type: ignore[override]
        """None: no columns were seen yet."""
        return self.execution.pipeline

    @property
    def progress(self) -> RunProgress:
        """Numbers of events seen so far."""
        return self.execution.progress

    # --- while it runs --------------------------------------------------------------------------------------

    def push(self, events: Any) -> pa.Table:
        """Take in rows, and return what changes as far as the budget can buy it; see ``RevisedMatcher``."""
        with self._noted():
            return super().push(events)

    def punctuate(self, tick: int | str | datetime, where: str | None = None) -> pa.Table:
        """No event before ``tick`` will come any more; see ``RevisedMatcher``."""
        with self._noted():
            return super().punctuate(tick, where)

    def finish(self, *, ended: bool = True) -> pa.Table:
        """The stream has ended; see ``RevisedMatcher``."""
        with self._noted():
            found = super().finish(ended=ended)
        if self.shedder is not None:
            self.shedder.finish()
        return found

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Write down what a call took, and where the run stands then."""
        begun = time.perf_counter()
        yield
        run = None if self.stream is None else self.stream.run
        if self.shedder is not None:
            if isinstance(run, Replay) and run.head > NEVER:
                self.shedder.note_change(run.head, self.progress)
            self.shedder.forget()
        self.seconds += time.perf_counter() - begun

    def _recall(self) -> RecallEstimate | None:
        if self.asked.is_final or self.shedder is None:
            return super()._recall()
        reason = "there is no audit where results may be taken back (emit=)"
        return RecallEstimate(None, None, None, points=0, cells=0, reason=reason)

    def _left_out(self) -> dict[str, int]:
        return {"late": self.revisions.late, "malformed": self.malformed.count, **super()._left_out()}

    # --- state ----------------------------------------------------------------------------------------------

    def header(self) -> dict[str, Any]:
        """What a state holds of it beside the stream, as JSON."""
        return {**super().header(), "spending": spent(self)}

    @classmethod
    def taken_up(cls, plan: Plan, saved: Scope, history: HistoryGraph | None = None) -> Self:
        """Go on from a state; see ``Query.from_state``.

        Raises
        ------
        DataError
            ``ACEP-D048``: it needs its history.
        """
        spending = saved.parts["revisions"].head["spending"]
        asked, options = cls.made_with(saved)
        made = cls(plan, asked, load_of_state(plan, spending, history), **options)
        go_on(made, spending)
        made.go_on(saved)
        return made


def taken_up_within(
    query: CompiledQuery, saved: Scope, history: HistoryGraph | str | Path | None
) -> BudgetedMatcher | BudgetedRevisedMatcher:
    """The run inside a load budget whose state this is, of a query with the plan that it had."""
    kind = BudgetedRevisedMatcher if "revisions" in saved.parts else BudgetedMatcher
    known = known_history(query, history)
    with MATCHER.reading():
        return kind.taken_up(query.plan, saved, known)


# --- a whole input --------------------------------------------------------------------------------------------


class BudgetedChangelog:
    """What a run inside a load budget puts out of a whole input, and takes back; made by ``Query.match_within``.

    The events are run when results are asked for, anew each time, in the pieces in which they are read: what comes and
    goes within one is not seen.

    Parameters
    ----------
    query : Query
    source : Source
        The events in the order in which they came. Can be read again.
    options : dict
        As for ``Query.matcher``, with a budget.
    ended : bool
        Whether the stream ends with the events.

    Examples
    --------
    >>> from acep_approx import compile_query
    >>> query = compile_query("PATTERN SEQ(A a, ~(N n), B b) WHERE b.x > a.x WITHIN 9")
    >>> events = [{"ts": t, "type": k, "x": t} for t, k in ((1, "A"), (4, "B"), (2, "N"))]
    >>> out = query.match_within(events, "90 steps/event", emit="early")
    >>> out.to_arrow().num_rows, out.record().work <= out.record().allowed
    (0, True)
    """

    def __init__(self, query: Any, source: Source, options: dict[str, Any], *, ended: bool = True) -> None:
        self.query, self.source, self.options, self.ended = query, source, options, ended
        self.matcher: BudgetedRevisedMatcher | None = None

    def tables(self, output: str = MATCHES) -> Iterator[pa.Table]:
        """The rows of each piece of the input; ``output``: ``"matches"`` or ``"points"``."""
        feed = query_feed(self.query, self.options | {"output": output}, None)
        feed.ended = self.ended
        for found in feed.results(self.source):
            self.matcher = feed.run  # type: ignore[assignment]
            yield found

    def to_arrow(self) -> pa.Table:
        """The changelog of the matches: ``op`` says what is put out (``+I``) or taken back (``-D``)."""
        return self._all(MATCHES)

    def points(self) -> pa.Table:
        """The changelog of the match points."""
        return self._all(POINTS)

    def _all(self, output: str) -> pa.Table:
        found = [*self.tables(output)]
        return stacked(found) if found else pa.table({})

    def __len__(self) -> int:
        return int(self.to_arrow().num_rows)

    def record(self, source: str = "") -> RunRecord:
        """What the run did that was asked for last; see ``BudgetedMatches.record``."""
        return self._run().record(source)

    def report(self, path: str | Path, source: str = "") -> None:
        """Write the record as one self-contained HTML page."""
        self._run().report(path, source)

    def refreshed(self, query: CompiledQuery) -> HistoryGraph | None:
        """The history as that run has learned it; see ``BudgetedMatches.refreshed``."""
        return self._run().refreshed(query)

    def learning(self) -> pa.Table:
        """When runs were scored anew, and by what; see ``BudgetedMatches.learning``."""
        return self._run().learning()

    def _run(self) -> BudgetedRevisedMatcher:
        if self.matcher is None:
            self.to_arrow()
        if self.matcher is None:  # no columns, no events
            self.matcher = self.query.matcher(**self.options)
        assert self.matcher is not None, "it was made"
        return self.matcher


def within(
    query: Any,
    events: Any,
    budget: str | float | Budget,
    log_shed: bool,
    spending: dict[str, Any],
    options: dict[str, Any],
) -> BudgetedMatches | BudgetedChangelog:
    """What a load budget can buy of a whole input; see ``Query.match_within``.

    Parameters
    ----------
    query, events, budget, log_shed
    spending : dict
        How the budget is spent, as for ``Query.matcher``.
    options : dict
        As for ``Query.match``, and of ``Revisions``.

    Raises
    ------
    UsageError
        ``ACEP-U055``: what does not go with a changelog.
    """
    asked = {name: value for name in (REVISING | {"id"}) & options.keys() if (value := options.pop(name)) is not None}
    revisions = Revisions(**asked) if asked else None
    if revisions is None or (revisions.is_final and not revisions.is_changelog):
        learns, how = spending.pop("learn"), dict(spending)
        history, policy = how.pop("history"), how.pop("policy")
        load = load_of(query, budget, history, policy, learns=learns, logs_shed=log_shed, **how)
        exact = type(query)(load.plan_of(query.plan)).match(events, **options)
        return BudgetedMatches(exact.question, put_in_order(exact, revisions) if revisions else exact.source, load)
    reading = Reading(**{one.name: options.pop(one.name) for one in fields(Reading) if one.name in options})
    ended = options.pop("ended", True)
    for name in [*(options.keys() - {"merge", "bind", "key_idle"}), *(["log_shed"] if log_shed else [])]:
        raise UsageError(
            f"{name}= does not go with emit= and changelog=: a changelog is put out as events come",
            code="ACEP-U055",
            hint="leave it out, or ask for final results: watermark= alone",
        )
    options |= asked | {"budget": budget, **spending} | {k: v for k, v in reading.roles.items() if v is not None}
    return BudgetedChangelog(query, reading.open(events), options, ended=ended)
