"""What one can do with a compiled query: match events, or push them batch by batch, live or on Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from acep_approx.api.matcher import Matcher
from acep_approx.api.tunable import TunableQuery
from acep_approx.arguments import checked
from acep_approx.diagrams.fragments import never_raises
from acep_approx.errors import DataError, expect
from acep_approx.events.reading.malformed import PushedRows
from acep_approx.events.time_formats import TimeFormat
from acep_approx.matching.outputs.bind import Bind, Wide
from acep_approx.matching.outputs.kinds import KINDS, OutputName
from acep_approx.planning.durations import Duration
from acep_approx.planning.planner import MERGING
from acep_approx.results.beginning import Lookout
from acep_approx.results.matches import Matches
from acep_approx.results.question import Question, Reading
from acep_approx.revisions.request import REVISING, Revisions, refuse_on_spark

if TYPE_CHECKING:
    from acep_approx.api.budgeted_matcher import BudgetedMatcher
    from acep_approx.api.budgeted_revisions import BudgetedChangelog, BudgetedRevisedMatcher
    from acep_approx.api.live_run import LiveRun
    from acep_approx.budget.budget import Budget
    from acep_approx.results.budgeted import BudgetedMatches
    from acep_approx.revisions.matcher import RevisedMatcher
    from acep_approx.spark.plan.matcher import SparkMatcher
    from acep_approx.spark.worker.program import Program
    from acep_approx.training.history_graph import HistoryGraph
    from acep_approx.why.result import NoMatch, Why


class Query(TunableQuery):
    """A compiled query; made by ``compile_query``."""

    @overload
    def matcher(
        self, *, budget: str | float | Budget, watermark: str | int, **options: Any
    ) -> BudgetedRevisedMatcher: ...

    @overload
    def matcher(self, *, budget: str | float | Budget, emit: str | int, **options: Any) -> BudgetedRevisedMatcher: ...

    @overload
    def matcher(self, *, budget: str | float | Budget, **options: Any) -> BudgetedMatcher: ...

    @overload
    def matcher(self, *, watermark: str | int, **options: Any) -> RevisedMatcher: ...

    @overload
    def matcher(self, *, emit: str | int, **options: Any) -> RevisedMatcher: ...

    @overload
    def matcher(self, *, op: str, **options: Any) -> RevisedMatcher: ...

    @overload
    def matcher(self, *, sequence: str, **options: Any) -> RevisedMatcher: ...

    @overload
    def matcher(self, *, changelog: bool, **options: Any) -> RevisedMatcher: ...

    @overload
    def matcher(self, **options: Any) -> Matcher: ...

    @checked
    def matcher(
        self,
        *,
        output: OutputName = "matches",
        time: str | None = None,
        key: str | None = None,
        type: str | None = None,  # noqa: A002  (the word of the query language)
        unit: str | None = None,
        start: str | None = None,
        time_format: str | TimeFormat | None = None,
        merge: str = ",".join(MERGING),
        bind: Bind = None,
        id: str | None = None,  # noqa: A002  (what users call it)
        key_idle: Duration | None = None,
        budget: str | float | Budget | None = None,
        on_malformed: str = "refuse",
        rejects: str | Path | None = None,
        **more: Any,
    ) -> Matcher | RevisedMatcher:
        """A matcher to push batches into: a live run, which can be saved and taken up again.

        Parameters
        ----------
        output, time, key, type, unit, start, time_format, merge, bind, key_idle
            See ``Matcher``.
        id : str, optional
            The column that names an event: it stands for the events of a match, unless ``bind`` says otherwise.
            Default: the number of its row, in order of arrival.
        budget : str or Budget, optional
            The load budget of the run; default: every match is found.
        on_malformed : str
            ``"refuse"`` (default): a row without a time that can be used is an error. ``"skip"``: it is left out and
            counted in ``malformed.count`` of the matcher, which says why in ``malformed.reasons``.
        rejects : str or Path, optional
            With ``"skip"``: file that gets the rows left out, as JSON lines.
        **more
            Where events may be late or change: ``watermark``, ``emit``, ``op``, ``source``, ``sequence``, ``idle`` and
            ``changelog``; see ``Revisions``. With a budget: ``history``, ``policy``, ``audit``, ``seed``, ``learn``,
            ``full_work`` and ``horizon``, as for ``match_within``.

        Returns
        -------
        Matcher
            With a budget a ``BudgetedMatcher``: it has ``record()``, ``report(path)``, ``refreshed(query)`` and
            ``learning()`` too. Where events may be late or change a ``RevisedMatcher``, whose results are final, or a
            changelog; with both a ``BudgetedRevisedMatcher``.

        Raises
        ------
        UsageError, HistoryError
            Not a budget or a policy; no history, or one of another query; ``ACEP-U040``: how a budget is spent, where
            there is none; ``ACEP-U055``: what cannot be combined; ``ACEP-U056``: not a length of time.

        Examples
        --------
        >>> from acep_approx import compile_query
        >>> matcher = compile_query("ab WITHIN 5").matcher()
        >>> matcher.push([{"ts": 1, "type": "a"}]).num_rows
        0
        >>> saved = matcher.state_bytes()
        >>> matcher = compile_query("ab WITHIN 5").from_state(saved)
        >>> matcher.push([{"ts": 2, "type": "b"}]).column("events").to_pylist()
        [[0, 1]]
        """
        events = Reading(time=time, key=key, type=type, unit=unit, start=start, time_format=time_format)
        options: dict[str, Any] = {"output": output, "merge": merge, "bind": bind, **events.roles}
        asked = {name: value for name in REVISING & more.keys() if (value := more.pop(name)) is not None}
        revisions = Revisions(id=id, **asked) if asked else None
        if revisions is not None:
            revisions.check(output, {"key_idle": key_idle})
        says_what = bool(self.plan.query.outputs) or self.plan.query.is_algebra
        is_shown = not says_what or (output in KINDS and KINDS[output].is_point)
        if isinstance(bind, Wide):
            bind = replace(bind, id=id)
        options |= {"bind": id if bind is None and is_shown else bind}
        options |= {} if key_idle is None else {"key_idle": key_idle}
        malformed = PushedRows(on_malformed, rejects)
        made = self._made(budget, revisions, options, more)
        made.malformed = malformed
        return made

    def _made(
        self,
        budget: str | float | Budget | None,
        revisions: Revisions | None,
        options: dict[str, Any],
        more: dict[str, Any],
    ) -> Matcher | RevisedMatcher:
        if budget is not None:
            return self._matcher_within(budget, revisions, options, **more)
        if more:
            from acep_approx.budget.budget import refuse_without

            refuse_without(more)
        if revisions is not None:
            from acep_approx.revisions.matcher import RevisedMatcher

            revised = RevisedMatcher(self.plan, revisions, **options)
            Lookout.set(revised.execution)
            return revised
        matcher = Matcher(self.plan, **options)
        Lookout.set(matcher)
        return matcher

    @checked
    def follow(
        self,
        place: str | Path,
        *,
        until_idle: str | float | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: str | float = "10 s",
        finish: bool = False,
        format: str | None = None,  # noqa: A002  (as in open_source)
        on_malformed: str = "refuse",
        rejects: str | Path | None = None,
        late: str | Path | None = None,
        kafka: Mapping[str, object] | Sequence[str] = (),
        schema: str | Path | None = None,
        **options: Any,
    ) -> LiveRun:
        r"""Run over events that are still being written: a file that grows, a folder, or a topic of Kafka.

        Parameters
        ----------
        place, until_idle, format, on_malformed, rejects, kafka, schema
            As for ``events.follow``.
        checkpoint : str or Path, optional
            A folder that keeps where the run stands: the same call goes on from there. Default: nowhere.
        checkpoint_every : str or float, default "10 s"
            How often that is written; at the end, too.
        finish : bool, default False
            With a checkpoint: when the input has ended no more events will come, so what waits for the end of a window
            is decided. Without a checkpoint that is so in any case.
        late : str or Path, optional
            With ``watermark`` and the like: the file that gets events that are left out.
        **options
            As for ``matcher``; and how text files are written, such as ``delimiter``, as for ``open_source``.

        Returns
        -------
        LiveRun
            Iterate over it: each table has the results of the events that came together. ``stop()`` ends it.

        Raises
        ------
        UsageError, DataError
            As ``events.follow`` and ``matcher``; ``ACEP-D062`` to ``ACEP-D065``, ``ACEP-U143``, ``ACEP-U144``: the
            checkpoint cannot be used.

        Notes
        -----
        Results that were not dealt with when a run was stopped come once more; none is lost.

        Examples
        --------
        >>> import tempfile
        >>> from acep_approx import compile_query
        >>> folder = Path(tempfile.mkdtemp())
        >>> events, query = folder / "events.csv", compile_query("PATTERN SEQ(A a, B b) WITHIN 5")
        >>> for more in ("ts,type\n1,A\n", "3,B\n"):
        ...     with events.open("a") as file:
        ...         _ = file.write(more)
        ...     for table in query.follow(events, until_idle=0, checkpoint=folder / "where"):
        ...         print(table.to_pylist())
        [{'errors': 0, 'start': 1, 'end': 3, 'missing': [], 'a': 0, 'b': 1}]
        """
        from acep_approx.api.live_run import Checkpointing, follow_query

        reading: dict[str, Any] = {"until_idle": until_idle, "format": format, "kafka": kafka, "schema": schema}
        reading |= {"on_malformed": on_malformed, "rejects": rejects, "late": late}
        return follow_query(self, place, Checkpointing(checkpoint, checkpoint_every, finish), reading, options)

    @checked
    def from_state(
        self,
        state: bytes,
        *,
        history: HistoryGraph | str | Path | None = None,
        on_malformed: str = "refuse",
        rejects: str | Path | None = None,
    ) -> Matcher | RevisedMatcher:
        """The matcher that ``Matcher.state_bytes`` was called on, to go on with.

        Parameters
        ----------
        state : bytes
        history : HistoryGraph or path, optional
            The history of a run inside a load budget, which is not in its state; a later version of it will do. What
            the run itself has learned is in the state.
        on_malformed, rejects
            As for ``matcher``; no state holds them.

        Raises
        ------
        DataError
            Not a state, or a state of another query; ``ACEP-D044``: of a run without a budget, where a history is
            given; ``ACEP-D048``: of a run with a history, where none is given.
        """
        malformed = PushedRows(on_malformed, rejects)
        made = self._taken_up(state, history)
        made.malformed = malformed
        return made

    def _taken_up(self, state: bytes, history: HistoryGraph | str | Path | None) -> Matcher | RevisedMatcher:
        from acep_approx.matching.state import MATCHER, meaning

        expect("the state", state, (bytes, bytearray, memoryview), "the bytes that state_bytes() gave")
        plan = self.plan
        if plan.is_unbounded:
            from acep_approx.api.spending import plan_then

            plan = plan_then(plan, MATCHER.unpack(state))
        saved = MATCHER.unpack(state, of=meaning(plan))
        is_revised = "revisions" in saved.parts
        if "spending" in (saved.parts["revisions"].head if is_revised else saved.head["caller"]):
            from acep_approx.api.budgeted_revisions import taken_up_within

            return taken_up_within(type(self)(plan), saved, history)
        if is_revised:
            from acep_approx.revisions.matcher import RevisedMatcher

            with MATCHER.reading():
                return RevisedMatcher.from_saved(self.plan, saved)
        if history is not None:
            raise DataError(
                "the state is of a run without a load budget, which has no use for a history",
                code="ACEP-D044",
                hint="leave the history out, or begin anew with matcher(budget=...)",
            )
        with MATCHER.reading():
            return Matcher.from_saved(self.plan, saved)

    @checked
    def _matcher_within(
        self,
        budget: str | float | Budget,
        revisions: Revisions | None,
        options: dict[str, Any],
        *,
        history: HistoryGraph | str | Path | None = None,
        policy: str | None = None,
        audit: float = 0.05,
        seed: int = 0,
        learn: bool = False,
        full_work: float | None = None,
        horizon: str | None = None,
    ) -> BudgetedMatcher | BudgetedRevisedMatcher:
        from acep_approx.api.budgeted_matcher import BudgetedMatcher
        from acep_approx.api.budgeted_revisions import BudgetedRevisedMatcher
        from acep_approx.api.spending import load_of

        how = {"audit": audit, "seed": seed, "learns": learn, "full_work": full_work}
        load = load_of(self, budget, history, policy, horizon, **how)
        if revisions is not None:
            return BudgetedRevisedMatcher(load.plan_of(self.plan), revisions, load, **options)
        return BudgetedMatcher(load.plan_of(self.plan), load, **options)

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
        bind: Bind = None,
        key_idle: Duration | None = None,
        ended: bool = True,
    ) -> Matches:
        """Find the matches in some events; lazily, nothing is read yet but a DuckDB relation.

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
        bind : str, sequence of str or Wide, optional
            Columns of the events: what stands for a bound event in the results, in the place of its row number. Of one
            column its value; of several a struct; ``Wide()`` gives each value a column of its own, as ``table`` of the
            matches does.
        key_idle : str or int, optional
            How long a key may have no event, such as ``"1 h"``, or 5 in ticks: then it is dropped, its stream ends, and
            a later event of it begins a new one. Default: keys are kept as long as a window may hold an event of
            theirs; one that counts events may for ever.
        ended : bool, default True
            Whether the stream ends with these events. If it goes on, what waits for a window that later events may lie
            in is not given, such as an absence at the end: ``unclosed`` of the matches counts it.

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
        reading = Reading(
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
        question = Question(
            plan=self.plan,
            roles=reading.roles,
            merge=merge,
            bind=bind,
            key_idle=key_idle,
            sort=sort,
            limit=limit,
            on_progress=on_progress,
            ended=ended,
        )
        return Matches(question, reading.open(events)).fetched()

    @overload
    def match_within(
        self, events: Any, budget: str | float | Budget, *, emit: str | int, **options: Any
    ) -> BudgetedChangelog: ...

    @overload
    def match_within(self, events: Any, budget: str | float | Budget, **options: Any) -> BudgetedMatches: ...

    @checked
    def match_within(
        self,
        events: Any,
        budget: str | float | Budget,
        *,
        history: HistoryGraph | str | Path | None = None,
        policy: str | None = None,
        audit: float = 0.05,
        seed: int = 0,
        log_shed: bool = False,
        learn: bool = False,
        full_work: float | None = None,
        horizon: str | None = None,
        **options: Any,
    ) -> BudgetedMatches | BudgetedChangelog:
        """Find the matches that a load budget can buy.

        Parameters
        ----------
        events
            As for ``match``.
        budget : str or Budget
            ``"20%"`` of the full work, ``"5000 steps/event"``, ``"200 runs"``, ``"2 ms/batch"`` or ``"100k events/s"``.
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
            Whether ``shed()`` can list it.
        learn : bool, default False
            Whether what partial matches are worth is learned as the stream runs; ``refreshed(query)`` has it.
        full_work : float, optional
            Run-steps per event of the exact run: what a share is of, where no history knows it.
        horizon : str, optional
            Of a query in CEL without a window: how long a partial match is worth keeping, such as ``"10 min"``. Below
            100% older ones are shed, and shares are of the run that keeps all others; 100% is exact.
        **options
            As for ``match``. Where events may be late or change also ``id``, ``watermark`` and the like, as for
            ``matcher``: matched are the events that remain. With ``emit`` or ``changelog``: the changelog.

        Returns
        -------
        BudgetedMatches
            ``Matches`` with ``record()``, ``report(path)`` and ``shed()``. Each match is one of the exact answer. With
            ``emit`` or ``changelog`` a ``BudgetedChangelog``.

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
        >>> len(some.to_arrow()) < len(query.match(events).to_arrow()), some.record().work <= 2 * 600
        (True, True)
        """
        from acep_approx.api.budgeted_revisions import within

        spending = {"history": history, "policy": policy, "audit": audit, "seed": seed, "full_work": full_work}
        return within(self, events, budget, log_shed, spending | {"learn": learn, "horizon": horizon}, options)

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
            the stream, or of the key, is shown, or, where it has none, which step no event passed, and how far it came.
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
            A key or a time that is not there; ``ACEP-U130``: a query whose key says little without a time.

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

        reading = Reading(
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
        source, options = reading.open(events), reading.roles
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
        bind: Bind = None,
        output: OutputName | Literal["bundles"] = "matches",
        shards: int | None = None,
        watermark: Duration | None = None,
        budget: str | float | Budget | None = None,
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
        bind : str, sequence of str or Wide, optional
            Columns that stand for an event instead. Default: ``id``, or else those that the query reads.
        output : {"matches", "points", "counts", "bundles"}, default "matches"
            Of a stream counts come with each micro-batch: add them up. Bundles come once no match point can join them.
        shards : int, optional
            Groups of keys that are matched together. Default: ``spark.sql.shuffle.partitions`` for streams; Spark
            chooses for batch.
        watermark : str or int, optional
            How late events of a stream may come, such as "10 s" or a number of ticks, as for ``matcher``, where the
            stream has no watermark of its own.
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
            ``emit`` and ``changelog``, as for ``matcher``: results of a stream may be put out before they are final.
            What else ``matcher`` takes of events that are late or change is refused.

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
        from acep_approx.api.on_spark.options import spark_matcher
        from acep_approx.spark.worker.bundled import BundlesProgram
        from acep_approx.spark.worker.early import EarlyProgram
        from acep_approx.spark.worker.query import QueryProgram

        refuse_on_spark(revising)
        program: Program
        if revising:
            program = EarlyProgram(self, output=output, key_idle=key_idle, **revising)
        elif output == "bundles":
            program = BundlesProgram(self, key_idle=key_idle)
        else:
            program = QueryProgram(self, output=output, key_idle=key_idle)
        return spark_matcher(
            program,
            {"time": time, "key": key, "type": type, "unit": unit},
            id=id,
            bind=bind,
            shards=shards,
            watermark=watermark,
            on_malformed=on_malformed,
            budget=budget,
            history=history,
            learn=learn,
            policy=policy,
            audit=audit,
            seed=seed,
            full_work=full_work,
        )
