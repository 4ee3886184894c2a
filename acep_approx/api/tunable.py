"""Learning from past events: a history with its promises; what other errors, windows and budgets would find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal

from acep_approx.arguments import checked, refuse_unknown
from acep_approx.budget.budget import refuse_without
from acep_approx.errors import UsageError, expect
from acep_approx.matching.outputs.kinds import STREAMED
from acep_approx.planning.changed import check_horizon, replanned, until
from acep_approx.planning.compiled import CompiledQuery

if TYPE_CHECKING:
    from acep_approx.budget.budget import Budget
    from acep_approx.results.tuning import Tuning
    from acep_approx.training.history_graph import HistoryGraph


SPENDING = ("history", "policy", "audit", "seed", "learn", "full_work", "horizon")
"""Arguments that say how a budget is spent."""


class TunableQuery(CompiledQuery):
    """A compiled query that can learn from past events, and be tuned on them."""

    @checked
    def explain(
        self,
        format: str = "text",  # noqa: A002  (as on the command line)
        *,
        budget: str | float | Budget | None = None,
        output: str = "matches",
        **spending: Any,
    ) -> str:
        r"""The plan as text, or the automaton as a diagram; with a budget, what it comes to.

        Parameters
        ----------
        format : {"text", "mermaid", "dot", "svg", "json", "air"}, default "text"
            ``svg``: a picture that needs nothing else, light and dark.
            ``air``: of a query in CEL its states and edges, with schemas and conditions, as JSON.
        budget : str or Budget, optional
            Say also what the exact run is expected to take, what is granted, and what such budgets found in the past:
            numbers where a history has them. With ``"text"`` only.
        output : {"matches", "points", "counts"}
            What the run is to put out.
        **spending
            With a budget: ``history``, ``policy``, ``audit``, ``seed``, ``learn``, ``full_work`` and ``horizon``, as
            for ``match_within``.

        Raises
        ------
        UsageError
            ``ACEP-U003``: there is no such format; ``ACEP-U075``: ``air`` of a query that is not in CEL; ``ACEP-U040``:
            how a budget is spent, where there is none, or in a drawing; ``ACEP-U001``: no such output; as for
            ``match_within``.

        Examples
        --------
        >>> from acep_approx import compile_query
        >>> query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5")
        >>> print(*query.explain(budget="10%", full_work=50).splitlines()[-4:], sep="\n")
        budget   10% of the exact run, policy oldest, seed 0
                 the exact run: 50 run-steps per event as was said
                 granted: 5 run-steps per event
                 0.05 of it is for the audit, which estimates recall; 0.1 for choosing among partial matches
        """
        if budget is None or format != "text":
            refuse_without(spending | ({} if budget is None else {"budget": budget}))
            return super().explain(format)
        expect("output", output, str, ", ".join(STREAMED))
        if output not in STREAMED:
            hint = f"choose {', '.join(STREAMED)}"
            raise UsageError(f"there is no output {output!r:.60} within a budget", code="ACEP-U001", hint=hint)
        from acep_approx.api.spending import load_of
        from acep_approx.planning.explain import section
        from acep_approx.shedding.foreseen import of_query

        refuse_unknown("explain", spending, SPENDING)
        how = {"history": None, "policy": None, "learns": spending.pop("learn", False), **spending}
        load = load_of(self, budget, **how)
        lines = of_query(load, load.plan_of(self.plan), points=output == "points")
        return "\n".join([super().explain(), *section("budget", lines)])

    @checked
    def train(
        self,
        past: Any,
        *,
        gap: int | str = -1,
        horizon: str | None = None,
        on_progress: Callable[[str, float], None] | None = None,
        **reading: Any,
    ) -> HistoryGraph:
        """Learn from past events which partial matches are worth keeping, as ``acep train`` does.

        As ``HistoryGraph(query).fit(past)``; then runs inside budgets over the last 40%, by what the events before them
        taught, say what such runs find.

        Parameters
        ----------
        past
            As for ``match``.
        gap : int or "window", default -1
            As for ``HistoryGraph``.
        horizon : str, optional
            As for ``match_within``: what is learned is of use with the same one.
        on_progress : callable, optional
            Told what is being done, and how much of it, from 0 to 1.
        **reading
            ``time``, ``key``, ``type``, ``unit``, ``format``, ``sort`` and the like: as for ``match``.

        Returns
        -------
        HistoryGraph
            Its ``promises_`` say what budgets find, each with an interval, and on which events that was measured.

        Raises
        ------
        UsageError
            ``ACEP-U053``: there is no such argument. ``ACEP-U046``: no event of the past begins a match;
            ``ACEP-U073``: no window, and no horizon; ``ACEP-U221``: a window and a horizon.

        Examples
        --------
        >>> from acep_approx import compile_query
        >>> query = compile_query("PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN 20")
        >>> past = [{"ts": t, "type": "ABC"[t % 3], "x": t * 7 % 10} for t in range(2000)]
        >>> promises = query.train(past).promises_
        >>> promises.trained, promises.measured, [one.share for one in promises.of("points")]
        (1200, 800, [0.02, 0.05, 0.1, 0.2, 0.5])

        Complexity: as ``HistoryGraph.fit``; for each output an exact run over the last 40%, and one inside each budget.
        """
        from acep_approx.results.question import Reading
        from acep_approx.shedding.promising import promised
        from acep_approx.training.history_graph import HistoryGraph

        _refuse_others(reading, {*Reading.__dataclass_fields__, "sort"}, "train")
        query = self
        if horizon is not None:
            check_horizon(self.plan, horizon)
            query = type(self)(until(self.plan, horizon))
        return HistoryGraph(query, gap=gap).fit(past, on_progress=on_progress, measure=promised, **reading)

    @checked
    def tune(
        self,
        past: Any,
        *,
        errors: Sequence[int | None] | None = None,
        within: Sequence[str | None] | None = None,
        budgets: Sequence[str | float | Budget] = ("5%", "10%", "20%", "50%"),
        output: Literal["counts", "points"] = "counts",
        most_steps: float = 20_000.0,
        seed: int = 0,
        on_progress: Callable[[str, float], None] | None = None,
        sort: bool = False,
        **reading: Any,
    ) -> Tuning:
        """Try errors, windows and budgets on past events, as ``acep tune`` does.

        A history is learned from the first 70% of them; what budgets find is measured on the rest.

        Parameters
        ----------
        past
            As for ``match``; 10 events at least.
        errors : sequence of int, optional
            Numbers for ERRORS. Default: that of the query.
        within : sequence of str, optional
            Windows, such as ``["10 s", "20 s"]``. Default: that of the query.
        budgets : sequence of str, float or Budget
            As for ``match_within``; none of time.
        output : {"counts", "points"}, default "counts"
            What the runs to come will put out; points take less work than matches.
        most_steps : float, default 20,000
            Leave out what takes more run-steps per event.
        seed : int, default 0
        on_progress : callable, optional
            Told what is being done, and the share of all choices that are done.
        sort : bool, default False
            Sort by time first.
        **reading
            ``time``, ``key``, ``type``, ``unit``, ``format`` and the like: as for ``match``.

        Returns
        -------
        Tuning
            ``advice`` of it recommends a choice; ``trials`` has them all.

        Raises
        ------
        UsageError
            ``ACEP-U053``: there is no such argument. ``ACEP-U043``: a budget of time; ``ACEP-U073``: no window.
        DataError
            ``ACEP-D060``: too few events.

        Examples
        --------
        >>> from acep_approx import compile_query
        >>> query = compile_query("PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN 20")
        >>> past = [{"ts": t, "type": "ABC"[t % 3], "x": t * 7 % 10} for t in range(2000)]
        >>> tuning = query.tune(past, errors=[0, 1], budgets=[0.2, 0.5])
        >>> [(trial.errors, trial.within, len(trial.recalls)) for trial in tuning.trials]
        [(0, '20', 2), (1, '20', 2)]
        >>> tuning.advice.within
        '20'

        Complexity: per choice about five exact runs over the past, and one per budget over its last part.
        """
        from acep_approx.results.question import Reading
        from acep_approx.results.tuning import PastTable
        from acep_approx.results.tuning import tune as try_all

        def compiled(errors: int | None, within: str | None) -> TunableQuery:
            expect("each of errors", errors, (Integral, NoneType), "whole numbers")
            expect("each of within", within, (str, NoneType), "texts such as '10 s' or '50 events'")
            return type(self)(replanned(self.plan, errors, within, "runs"))

        _refuse_others(reading, {*Reading.__dataclass_fields__}, "tune")
        how = Reading(**reading)
        return try_all(
            compiled,
            PastTable.read(how.open(past), sort=sort, **how.roles),
            errors=[*(() if errors is None else errors)] or [None],
            within=[*(() if within is None else within)] or [None],
            budgets=budgets,
            output=output,
            most_steps=most_steps,
            seed=seed,
            on_progress=on_progress,
        )


def _refuse_others(reading: dict[str, Any], known: set[str], call: str) -> None:
    if unknown := sorted(reading.keys() - known):
        what = f"there is no argument {unknown[0]!r} of {call}"
        raise UsageError(what, code="ACEP-U053", hint=f"see help(acep_approx.Query.{call})")
