"""A compiled query whose events are pushed, or come as they are written: matchers, live runs, saved states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, overload

from acep_approx.api.event_options import EventOptions
from acep_approx.api.matcher import Matcher
from acep_approx.arguments import checked
from acep_approx.errors import DataError, UsageError, expect
from acep_approx.events.reading.malformed import PushedRows
from acep_approx.events.time_formats import TimeFormat
from acep_approx.matching.pipeline import OutputKind
from acep_approx.planning.compiled import CompiledQuery
from acep_approx.planning.durations import Duration
from acep_approx.planning.planner import MERGING
from acep_approx.revisions.request import REVISING, Revisions

if TYPE_CHECKING:
    from acep_approx.api.budgeted_matcher import BudgetedMatcher
    from acep_approx.api.live_run import LiveRun
    from acep_approx.budget.budget import Budget
    from acep_approx.revisions.matcher import RevisedMatcher
    from acep_approx.shedding.load import Load
    from acep_approx.training.history_graph import HistoryGraph


class PushedQuery(CompiledQuery):
    """What ``Query`` can do with events that are pushed."""

    @overload
    def matcher(self, *, budget: str | Budget, **options: Any) -> BudgetedMatcher: ...

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
        output: OutputKind = "matches",
        time: str | None = None,
        key: str | None = None,
        type: str | None = None,  # noqa: A002  (the word of the query language)
        unit: str | None = None,
        start: str | None = None,
        time_format: str | TimeFormat | None = None,
        merge: str = ",".join(MERGING),
        bind: str | Sequence[str] | None = None,
        id: str | None = None,  # noqa: A002  (what users call it)
        key_idle: Duration | None = None,
        budget: str | Budget | None = None,
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
            ``changelog``; see ``Revisions``. With a budget: ``history``, ``policy``, ``audit``, ``seed``, ``learn`` and
            ``full_work``, as for ``match_within``.

        Returns
        -------
        Matcher
            With a budget a ``BudgetedMatcher``: it has ``record()``, ``report(path)``, ``refreshed(query)`` and
            ``learning()`` too. Where events may be late or change a ``RevisedMatcher``, whose results are final, or a
            changelog.

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
        events = EventOptions(time=time, key=key, type=type, unit=unit, start=start, time_format=time_format)
        options: dict[str, Any] = {"output": output, "merge": merge, "bind": bind, **events.roles}
        asked = {name: value for name in REVISING & more.keys() if (value := more.pop(name)) is not None}
        revisions = Revisions(id=id, **asked) if asked else None
        if revisions is not None:
            revisions.check(output, {"budget": budget, "key_idle": key_idle} | more)
        says_what = bool(self.plan.query.outputs) or self.plan.query.is_algebra
        is_shown = not says_what or output in ("points", "counts")
        options |= {"bind": id if bind is None and is_shown else bind}
        options |= {} if key_idle is None else {"key_idle": key_idle}
        malformed = PushedRows(on_malformed, rejects)
        made = self._made(budget, revisions, options, more)
        made.malformed = malformed
        return made

    def _made(
        self, budget: str | Budget | None, revisions: Revisions | None, options: dict[str, Any], more: dict[str, Any]
    ) -> Matcher | RevisedMatcher:
        if budget is not None:
            return self._matcher_within(budget, options, **more)
        for name in more:
            raise UsageError(
                f"{name}= is about a load budget, and there is none",
                code="ACEP-U040",
                hint="say how much may be done: budget='20%', '5000 steps/event', '200 runs' or '2 ms/batch'",
            )
        if revisions is not None:
            from acep_approx.revisions.matcher import RevisedMatcher

            return RevisedMatcher(self.plan, revisions, **options)
        return Matcher(self.plan, **options)

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
        **options: Any,
    ) -> LiveRun:
        r"""Run over events that are still being written: a file that grows, a folder, or a topic of Kafka.

        Parameters
        ----------
        place, until_idle, format, on_malformed, rejects, kafka
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
        from acep_approx.api.live_query import follow_query
        from acep_approx.api.live_run import Checkpointing

        reading: dict[str, Any] = {"until_idle": until_idle, "format": format, "kafka": kafka}
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
        saved = MATCHER.unpack(state, of=meaning(self.plan))
        if "revisions" in saved.parts:
            from acep_approx.revisions.matcher import RevisedMatcher

            with MATCHER.reading():
                return RevisedMatcher.from_saved(self.plan, saved)
        if "spending" in saved.head["caller"]:
            from acep_approx.api.budgeted_matcher import BudgetedMatcher

            known = self._known(history)
            with MATCHER.reading():
                return BudgetedMatcher.taken_up(self.plan, saved, known)
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
        budget: str | Budget,
        options: dict[str, Any],
        *,
        history: HistoryGraph | str | Path | None = None,
        policy: str | None = None,
        audit: float = 0.05,
        seed: int = 0,
        learn: bool = False,
        full_work: float | None = None,
    ) -> BudgetedMatcher:
        """A matcher inside a load budget."""
        from acep_approx.api.budgeted_matcher import BudgetedMatcher

        how = {"audit": audit, "seed": seed, "learns": learn, "full_work": full_work}
        return BudgetedMatcher(self.plan, self._load(budget, history, policy, **how), **options)

    def _load(
        self, budget: str | Budget, history: HistoryGraph | str | Path | None, policy: str | None, **how: Any
    ) -> Load:
        """What is asked for when a run must not do all of the work."""
        from acep_approx.budget.budget import Budget
        from acep_approx.shedding.load import Load

        given = Budget.parse(budget)
        if self.plan.registers is None:  # nothing is shed, so nothing is asked of a history
            history, policy = None, None
        return Load(given, self._known(history), policy=policy, **how)

    def _known(self, history: HistoryGraph | str | Path | None) -> HistoryGraph | None:
        """A history that is given as itself, or by its path."""
        from acep_approx.training.history_graph import HistoryGraph

        expect("history", history, (HistoryGraph, str, Path, NoneType), "a HistoryGraph, or the path of one")
        return HistoryGraph.load(history, self) if isinstance(history, str | Path) else history
