"""Learning from the past of a set of queries, and what budgets that they share would find."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from numbers import Integral
from types import NoneType
from typing import TYPE_CHECKING, Any, Self, cast

import pyarrow as pa

from acep_approx.api.compile import compile_query
from acep_approx.arguments import checked
from acep_approx.errors import UsageError, expect
from acep_approx.matching.outputs.kinds import OutputName
from acep_approx.query.printer import to_text

if TYPE_CHECKING:
    from acep_approx.budget.budget import Budget
    from acep_approx.events.source import Source
    from acep_approx.results.shared_tuning import CutPast, SharedTuning
    from acep_approx.shedding.purse import Purse
    from acep_approx.subscriptions.members import Member
    from acep_approx.subscriptions.running import Misfit, Running
    from acep_approx.training.histories import Histories
    from acep_approx.training.shared_promise import Ran, SharedPromises
    from acep_approx.training.training import OnProgress

    Result = tuple[Member, pa.Table]


class TunableSet:
    """The part of ``QuerySet`` that learns from the past, and is tuned on it."""

    _running: Running
    output: OutputName

    if TYPE_CHECKING:

        def __init__(self, **options: Any) -> None: ...
        def __iter__(self) -> Iterator[str]: ...
        def _batches(self, running: Running, events: Any, **reading: Any) -> Iterator[list[Result]]: ...
        def _stamped(self, source: Source) -> Source: ...

    @checked
    def train(
        self,
        past: Any,
        *,
        gap: int | str = -1,
        on_progress: OnProgress | None = None,
        on_misfit: Misfit | None = None,
        sort: bool = False,
        **reading: Any,
    ) -> Histories:
        """Learn from past events which partial matches of the queries are worth keeping, for ``match_within``.

        Then runs inside budgets over the last 40%, by what the events before them taught, say what such runs find.

        Parameters
        ----------
        past
            As for ``match``.
        gap : int or "window", default -1
            As for ``HistoryGraph``.
        on_progress : callable, optional
            Called with what is being done and how much of it, from 0 to 1.
        on_misfit : callable, optional
            As for ``batches``.
        sort : bool, default False
            Sort by time first.
        **reading
            As for ``match``.

        Returns
        -------
        Histories
            One history for each query that runs by itself, and one for each template: ``save`` keeps them. Their
            ``promises_`` say what budgets find.

        Notes
        -----
        Complexity: an exact run of the set, and for each history what ``HistoryGraph.fit`` takes; about as much again,
        and a run inside each of five budgets, for the promises. Of a template at most 1,048,576 pairs of events and
        queries are learned from.

        Examples
        --------
        >>> from acep_approx import QuerySet
        >>> desk = QuerySet(output="points")
        >>> low = desk.add("PATTERN SEQ(A a, A b, B c) WHERE b.x > a.x AND c.x > b.x WITHIN 40", id="low")
        >>> events = [{"ts": t, "type": "AAB"[t % 3], "x": t * 7 % 11} for t in range(600)]
        >>> known = desk.train(events[:300])
        >>> known, known.promises_.measured
        (<Histories of 1 part>, 120)
        >>> desk.match_within(events[300:], "20%", history=known).rows > 0
        True
        """
        from acep_approx.results.shared_tuning import PROMISED

        tell = on_progress or _nothing
        cut = self._cut(past, sort=sort, **reading)
        known = self._learned(cut.whole, gap, tell, on_misfit)
        known.promises_ = self._promised(cut, PROMISED, gap, 0, tell)
        return known

    @checked
    def tune(
        self,
        past: Any,
        *,
        errors: Sequence[int | None] | None = None,
        within: Sequence[str | None] | None = None,
        query: str | None = None,
        budgets: Sequence[str | float | Budget] | None = None,
        seed: int = 0,
        on_progress: OnProgress | None = None,
        on_misfit: Misfit | None = None,
        sort: bool = False,
        **reading: Any,
    ) -> SharedTuning:
        """Try budgets that all queries share on past events, and errors and windows, as ``acep tune --queries`` does.

        Histories are learned from the first 60% of them; what budgets find is measured on the rest.

        Parameters
        ----------
        past
            As for ``match``; 10 events at least.
        errors : sequence of int, optional
            Numbers for ERRORS. Default: those of the queries.
        within : sequence of str, optional
            Windows, such as ``["10 s", "20 s"]``. Default: those of the queries.
        query : str, optional
            The id of the only query that gets these; the others stay as they are. Default: all queries but those in
            CEL get them.
        budgets : sequence of str, float or Budget, optional
            As for ``match_within``; none of time. Default: 2%, 5%, 10%, 20%, 50%, as ``train`` promises.
        seed : int, default 0
        on_progress, on_misfit, sort, **reading
            As for ``train``.

        Returns
        -------
        SharedTuning
            What is found inside each budget: of all queries, by weight, and of those that miss most. ``advice``
            recommends a budget.

        Raises
        ------
        UsageError
            ``ACEP-U043``: a budget of time; ``ACEP-U060``: there is no such query; ``ACEP-U073``: a query without a
            window.
        DataError
            ``ACEP-D060``: too few events.

        Examples
        --------
        >>> from acep_approx import QuerySet
        >>> desk = QuerySet(output="points")
        >>> low = desk.add("PATTERN SEQ(A a, A b, B c) WHERE b.x > a.x AND c.x > b.x WITHIN 40", id="low")
        >>> events = [{"ts": t, "type": "AAB"[t % 3], "x": t * 7 % 11} for t in range(600)]
        >>> tuning = desk.tune(events, budgets=["20%", "50%"])
        >>> [trial.promises.names for trial in tuning.trials], tuning.trained
        ([('low',)], 360)

        Complexity: for each choice an exact run over the past, what it takes to learn from 60% of it, and a run inside
        each budget over the rest.
        """
        from acep_approx.results.shared_tuning import SharedTrial, SharedTuning, parsed

        asked, tell = parsed(budgets), on_progress or _nothing
        expect("query", query, (str, NoneType), "the id of a query")
        choices = [(number, window) for window in within or [None] for number in errors or [None]]
        sets = [self._varied(number, window, query) for number, window in choices]
        cut = self._cut(past, sort=sort, **reading)
        trials = []
        for at, ((number, window), one) in enumerate(zip(choices, sets, strict=True)):
            part = partial(_part_of, tell, at, len(choices))
            one._check_fit(cut.first.schema, _no_misfit if at and on_misfit is not None else on_misfit)
            trials.append(SharedTrial(number, window, one._promised(cut, asked, -1, seed, part)))
        return SharedTuning(asked, tuple(trials), cut.first.num_rows, cut.last.num_rows, varied=query)

    # --- how it is done ---------------------------------------------------------------------------------------------

    def _check_fit(self, schema: pa.Schema, on_misfit: Misfit | None) -> None:
        """Tell of the queries that do not fit the columns, which are left out. Default: it is an error."""
        running = self._running.fresh()
        running.on_misfit = on_misfit
        running.begin(schema)

    def _cut(self, past: Any, *, sort: bool, **reading: Any) -> CutPast:
        from acep_approx.events.source import open_source
        from acep_approx.results.shared_tuning import CutPast

        wanted = self._running.wanted
        for name in ("on_progress", "ended"):
            reading.pop(name, None)
        source = self._stamped(open_source(past, **{"time": wanted["time"]} | reading))
        waits = self._running.lateness is not None  # late events come in their order to the queries, too
        return CutPast.read(source, sort=sort or waits, **wanted)

    def _learned(
        self, past: pa.Table, gap: int | str, on_progress: OnProgress, on_misfit: Misfit | None = None
    ) -> Histories:
        from acep_approx.shedding.set_past import RecordingPurse

        purse = RecordingPurse()
        for _ in self._batches(self._in_order(purse), past, on_misfit=on_misfit):
            pass
        return purse.learned(gap, on_progress)

    def _promised(
        self, past: CutPast, budgets: Sequence[Budget], gap: int | str, seed: int, on_progress: OnProgress
    ) -> SharedPromises | None:
        from acep_approx.results.shared_tuning import measured

        graph = self._running.graph
        weights = {id_: graph.weights.get(number, 1.0) for number, id_, _ in graph.numbered}
        learn = partial(self._learned, past.first, gap, _nothing, _no_misfit)
        return measured(past, learn, partial(self._ran, past.last, seed), weights, budgets, on_progress)

    def _ran(self, events: pa.Table, seed: int, budget: Budget, known: Histories | None) -> Ran:
        """What a run inside a budget finds of each query; nobody is told of its results."""
        from acep_approx.shedding.load import Load
        from acep_approx.shedding.purse import Purse
        from acep_approx.training.shared_promise import Ran, ends_in

        purse = Purse(Load(budget, seed=seed), known)
        purse.check(purse.plan_of(entry.plan, entry.horizon) for entry in self._running.graph)
        running, parts = self._in_order(purse), dict[str, list[pa.Table]]()
        for some in self._batches(running, events, on_misfit=_no_misfit):
            for id_, table in running.found(iter(some)).items():
                parts.setdefault(id_, []).append(ends_in(table))
        members = {} if running.levels is None else running.levels.members
        windows = {
            id_: members[entry.number].pipeline.window
            for _, id_, entry in running.graph.numbered
            if entry.number in members
        }
        tables = {id_: pa.concat_tables(some, promote_options="permissive") for id_, some in parts.items()}
        return Ran(tables, windows, purse.piece().work)

    def _in_order(self, purse: Purse) -> Running:
        """The same queries before any event, which come in order."""
        running = self._running.fresh(lambda: purse)
        running.lateness = None
        return running

    def _varied(self, errors: int | None, within: str | None, query: str | None) -> Self:
        """The same set with other ERRORS and another WITHIN; of one query, or of all that can have them."""
        expect("each of errors", errors, (Integral, NoneType), "whole numbers")
        expect("each of within", within, (str, NoneType), "texts such as '10 s' or '50 events'")
        ids = [*self]
        if query is not None and query not in ids:
            known = f"queries are {', '.join(ids):.200}"
            raise UsageError(f"there is no query {query!r:.60}", code="ACEP-U060", hint=known)
        if errors is None and within is None:
            return self
        graph, wanted = self._running.graph, self._running.wanted
        weights = {id_: graph.weights.get(number, 1.0) for number, id_, _ in graph.numbered}
        made = type(self)(output=self.output, key_idle=self._running.key_idle, **wanted)
        whole: Any = self
        for id_ in ids:
            text = whole.text(id_)
            if query in (None, id_) and (query is not None or compile_query(text).plan.cel is None):
                text = to_text(compile_query(text, errors=errors, within=within).plan.query)
            cast("Any", made).add(text, id=id_, weight=weights.get(id_, 1.0))
        return made


def _nothing(what: str, share: float) -> None:
    """Whoever asked for no progress is told none."""


def _no_misfit(id_: str, error: Any) -> None:
    """Who does not fit was told of before."""


def _part_of(tell: Callable[[str, float], None], at: int, choices: int, what: str, share: float) -> None:
    tell(what, (at + share) / choices)
