"""What one can do with a compiled query: match events, or push them batch by batch, here or on Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acep_approx.api.event_options import EventOptions
from acep_approx.api.pushed_query import PushedQuery
from acep_approx.arguments import checked
from acep_approx.diagrams.fragments import never_raises
from acep_approx.events.time_formats import TimeFormat
from acep_approx.matching.choice import OutputKind
from acep_approx.matching.execution import check_key_idle
from acep_approx.matching.outputs.bind import bound_names
from acep_approx.planning.durations import Duration
from acep_approx.planning.planner import MERGING, merging
from acep_approx.results.matches import Matches
from acep_approx.revisions.request import refuse_on_spark

if TYPE_CHECKING:
    from acep_approx.budget.budget import Budget
    from acep_approx.results.budgeted import BudgetedMatches
    from acep_approx.spark.plan.matcher import SparkMatcher
    from acep_approx.training.history_graph import HistoryGraph
    from acep_approx.why.result import NoMatch, Why


class Query(PushedQuery):
    """A compiled query; made by ``compile_query``."""

    @never_raises
    def _repr_html_(self) -> str:
        from acep_approx.api.views import query_view

        return query_view(self)

    @checked
    def match(
        self,
        events: Any,
        *,
        time: str | None = None,
        key: str | None = None,
        type: str | None = None,  # noqa: A002  (the word of the query language)
        unit: str | None = None,
        start: str | None = None,
        time_format: str | TimeFormat | None = None,
        sort: bool = False,
        limit: int | None = None,
        on_progress: Callable[[int], None] | None = None,
        format: str | None = None,  # noqa: A002  (as in open_source)
        on_malformed: str = "refuse",
        rejects: str | Path | None = None,
        on_late: str = "refuse",
        late: str | Path | None = None,
        merge: str = ",".join(MERGING),
        bind: str | Sequence[str] | None = None,
        key_idle: Duration | None = None,
    ) -> Matches:
        """Find the matches in some events; lazily, nothing is read yet.

        Parameters
        ----------
        events : path, table, frame or reader of any library, record batches, or iterable of dicts
            Ordered by (time, arrival), or see ``sort`` and ``on_late``.
        time, key, type : str, optional
            Columns that play these roles; inferred from names and types where not given.
        unit : {"ns", "us", "ms", "s"}, optional
            Unit of a time column of numbers. Default: plain ticks.
        start : str, optional
            Column that says when an event began; ``time`` says when it ended. For queries in CEL: others do not read
            it. Default: events begin when they end.
        time_format : str or TimeFormat, optional
            How times of text are written, such as ``"%d/%m/%Y %H:%M"``, and with ``TimeFormat`` the zone of times that
            have none. Default: as the values show, and UTC.
        sort : bool, default False
            Sort by time first; takes memory for the whole input.
        limit : int, optional
            List at most so many matches.
        on_progress : callable, optional
            Called after each batch with the number of events done.
        format, on_malformed, rejects
            How files are read; see ``events.source.open_source``.
        on_late, late
            What happens to events that come late: ``"refuse"``, or ``"skip"``, and the file that gets them then; see
            ``events.late.LateEvents``, which is ``source.late`` of the matches. Row numbers stay those of the input.
        merge : str, default "equal,pareto,chain"
            Which lossless mergings the runs engine uses; "none" for none.
        bind : str or sequence of str, optional
            Columns of the events: what stands for a bound event in the results, in the place of its row number. Of one
            column its value; of several a struct.
        key_idle : str or int, optional
            How long a key may have no event, such as ``"1 h"``, or 5 in ticks: then it is dropped, its stream ends, and
            a later event of it begins a new one. Default: keys are kept as long as a window may hold an event of
            theirs; one that counts events may for ever.

        Returns
        -------
        Matches

        Raises
        ------
        DataError
            When the events are read: a missing column, a wrong type, time that runs backwards.
        UsageError
            Options that do not go together.

        Examples
        --------
        >>> from acep_approx import compile_query
        >>> query = compile_query("PATTERN SEQ(A a, B b) WITHIN 5")
        >>> events = [{"ts": 1, "type": "A", "id": "x7"}, {"ts": 3, "type": "B", "id": "x9"}]
        >>> [m.values for m in query.match(events, bind="id")]
        [{'a': 'x7', 'b': 'x9'}]
        """
        merging(merge)  # a wrong name is told before anything is read
        bound_names(bind, self.plan.query)
        if key_idle is not None:
            check_key_idle(self.plan, "matches", key_idle)
        how = EventOptions(
            time=time,
            key=key,
            type=type,
            unit=unit,
            start=start,
            time_format=time_format,
            format=format,
            on_malformed=on_malformed,
            rejects=rejects,
            on_late=on_late,
            late=late,
        )
        options = {"merge": merge, "bind": bind, "key_idle": key_idle, **how.roles}
        return Matches(self.plan, how.open(events), options, sort=sort, limit=limit, on_progress=on_progress)

    @checked
    def match_within(
        self,
        events: Any,
        budget: str | Budget,
        *,
        history: HistoryGraph | str | Path | None = None,
        policy: str | None = None,
        audit: float = 0.05,
        seed: int = 0,
        log_shed: bool = False,
        learn: bool = False,
        full_work: float | None = None,
        **options: Any,
    ) -> BudgetedMatches:
        """Find the matches that a load budget can buy.

        Parameters
        ----------
        events
            As for ``match``.
        budget : str or Budget
            ``"20%"`` of the full work (which a history knows), ``"5000 steps/event"``, ``"200 runs"``,
            ``"2 ms/batch"`` or ``"100k events/s"``.
        history : HistoryGraph or path, optional
            What was learned from the past: it ranks which partial matches to keep.
        policy : str, optional
            "history" (default where there is one), "coverage", "scores", "random", "oldest" (default without),
            "most-advanced".
        audit : float, default 0.05
            Share of the budget that goes to a protected cohort, from which recall is estimated; 0: no estimate.
        seed : int, default 0
            Of the cohort, and of coins.
        log_shed : bool, default False
            Whether ``shed()`` can list what was shed.
        learn : bool, default False
            Whether what partial matches are worth is learned while the stream runs, from the history on or from
            nothing. ``refreshed(query)`` gives the history as it was learned.
        full_work : float, optional
            Run-steps per event of the exact run: what a share is of, where no history knows it.
        **options
            As for ``match``.

        Returns
        -------
        BudgetedMatches
            ``Matches`` with ``record()``, ``report(path)`` and ``shed()``. Each match is one of the exact answer.

        Raises
        ------
        UsageError, HistoryError
            Not a budget or a policy; no history, or one of another query.

        Examples
        --------
        >>> from acep_approx import compile_query
        >>> query = compile_query("PATTERN SEQ(A a, A b, B c) WHERE b.x > a.x AND c.x > b.x WITHIN 40")
        >>> events = [{"ts": t, "type": "AAB"[t % 3], "x": t * 7 % 11} for t in range(600)]
        >>> some = query.match_within(events, "2 steps/event", audit=0)
        >>> len(some.to_arrow()) < len(query.match(events).to_arrow())
        True
        >>> some.record().work <= 2 * 600
        True
        """
        from acep_approx.results.budgeted import BudgetedMatches

        how = {"audit": audit, "seed": seed, "logs_shed": log_shed, "learns": learn, "full_work": full_work}
        load = self._load(budget, history, policy, **how)
        return BudgetedMatches.of(self.match(events, **options), load)

    @checked
    def why(
        self,
        events: Any,
        *,
        around: Any = None,
        key: Any = None,
        key_column: str | None = None,
        time: str | None = None,
        type: str | None = None,  # noqa: A002  (the word of the query language)
        unit: str | None = None,
        start: str | None = None,
        time_format: str | TimeFormat | None = None,
        sort: bool = False,
        format: str | None = None,  # noqa: A002  (as in open_source)
        on_malformed: str = "refuse",
        on_late: str = "refuse",
    ) -> Why | NoMatch:
        """Find out why there is a match around a time, or why there is none; or why the whole stream has none.

        Parameters
        ----------
        events
            As for ``match``.
        around : datetime, str or int, optional
            A match is there if it begins at or before this time and ends at or after it. Default: the first match of
            the stream is shown, or, where it has none, which step no event passed, and how far it came.
        key : any
            The values of the equivalence attributes: of the only one, or a dict. None for a query without.
        key_column, time, type : str, optional
            Columns that play these roles (``key`` of ``match`` is ``key_column`` here).
        unit, start, time_format, sort, format, on_malformed, on_late
            As for ``match``.

        Returns
        -------
        Why or NoMatch
            ``print`` shows it in words. A ``NoMatch`` only where no time was given, and there is no match.

        Raises
        ------
        UsageError, DataError
            A key or a time that is not there; ``ACEP-U130``: a key without a time.

        Examples
        --------
        >>> from acep_approx import compile_query
        >>> query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5")
        >>> print(query.why([{"ts": 1, "type": "A", "x": 4}, {"ts": 3, "type": "B", "x": 2}], around=3))
        no match at 3; the furthest partial match has 1 event
          variable  row  time  type  x
          a         0    1     A     4
        the stream ended before its window closed
        waited for b (B): 1 came within the window, none fits
          1 fails b.x > a.x; nearest: 2 > 4 (row 1, 3)
        it would match with
          no condition b.x > a.x
        """
        from acep_approx.why.answer import explain, explain_stream

        how = EventOptions(
            time=time,
            key=key_column,
            type=type,
            unit=unit,
            start=start,
            time_format=time_format,
            format=format,
            on_malformed=on_malformed,
            on_late=on_late,
        )
        source, options = how.open(events), how.roles
        if around is None:
            return explain_stream(self.plan, source, key, options, sort=sort)
        return explain(self.plan, source, around, key, options, sort=sort)

    @checked
    def spark(
        self,
        *,
        time: str | None = None,
        key: str | None = None,
        type: str | None = None,  # noqa: A002  (the word of the query language)
        unit: str | None = None,
        id: str | None = None,  # noqa: A002  (what users call it)
        bind: str | Sequence[str] | None = None,
        output: OutputKind = "matches",
        shards: int | None = None,
        watermark: str | None = None,
        budget: str | Budget | None = None,
        history: str | Path | None = None,
        learn: bool = False,
        policy: str | None = None,
        audit: float = 0.05,
        seed: int = 0,
        full_work: float | None = None,
        key_idle: Duration | None = None,
        on_malformed: str = "refuse",
        **revising: Any,
    ) -> SparkMatcher:
        """A function from Spark DataFrames of events to DataFrames of matches, batch and streaming.

        Parameters
        ----------
        time, key, type, unit
            As for ``match``.
        id : str, optional
            Column that names an event: it stands for the events of a match, and orders events of the same time.
        bind : str or sequence of str, optional
            Columns that stand for an event instead. Default: ``id``, or else those that the query reads.
        output : {"matches", "points", "counts"}, default "matches"
        shards : int, optional
            Groups of keys that are matched together. Default: ``spark.sql.shuffle.partitions`` for streams; Spark
            chooses for batch.
        watermark : str, optional
            How late events of a stream may come, such as "10 seconds", where it has no watermark of its own.
        budget : str or Budget, optional
            Of the whole job; default: every match is found.
        history : path, optional
            Where every worker can read it. Streams take its newest version with each micro-batch.
        learn : bool, default False
            Whether the history is refreshed while a stream runs: ``acep_approx.spark.start`` adds new versions to it.
            It may be empty to begin with.
        policy, audit, seed, full_work
            As for ``match_within``.
        key_idle : str or int, optional
            As for ``match``.
        on_malformed : str
            ``"refuse"`` (default): an event whose time is too large, has a fraction or is no time is an error.
            ``"skip"``: it is left out and counted, as events without a time always are.
        **revising
            How events may be late or change, as for ``matcher``: refused, not on Spark yet.

        Returns
        -------
        SparkMatcher
            For ``events.transform(...)``.

        Raises
        ------
        UsageError
            Not a budget; ``ACEP-U055``: what Spark cannot do yet.

        Examples
        --------
        >>> from acep_approx import compile_query
        >>> matcher = compile_query("PATTERN SEQ(A a, B b) WHERE [user] WITHIN 5 min").spark(time="ts", id="id")
        >>> # matches = events.transform(matcher)
        """
        from acep_approx.budget.budget import Budget
        from acep_approx.events.reading.malformed import MalformedRows
        from acep_approx.spark.plan.matcher import SparkMatcher
        from acep_approx.spark.worker.job import Spending

        refuse_on_spark(revising)
        spending = None
        if budget is not None:
            spending = Spending(
                Budget.parse(budget),
                None if history is None else str(Path(history).absolute()),
                policy=policy,
                audit=audit,
                seed=seed,
                full_work=full_work,
                learns=learn,
            )
        return SparkMatcher(
            self,
            {"time": time, "key": key, "type": type, "unit": unit},
            id=id,
            bind=bind if bind is None or isinstance(bind, str) else tuple(bind),
            output=output,
            shards=shards,
            watermark=watermark,
            spending=spending,
            key_idle=key_idle,
            skips=MalformedRows(on_malformed).policy == "skip",
        )
