"""What the past says of rules: a history for each rule that can shed, learned from an exact run of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from acep_approx.api.rule_budget import plans_of, sheds
from acep_approx.arguments import checked
from acep_approx.errors import UsageError
from acep_approx.events.reading.widening import one_table
from acep_approx.events.source import open_source
from acep_approx.planning.compiled import CompiledQuery
from acep_approx.training.few_points import warning_once
from acep_approx.training.histories import Histories, kept_promises
from acep_approx.training.history_graph import HistoryGraph
from acep_approx.training.shared_promise import Ran, SharedPromises, ends_in
from acep_approx.training.training import OnProgress
from history.places import place_of

if TYPE_CHECKING:
    from acep_approx.budget.budget import Budget
    from acep_approx.results.shared_tuning import CutPast, SharedTuning
    from acep_approx.rules.program import Program


class RuleHistory(Histories, Mapping[str, HistoryGraph]):
    """Learns from the past which partial matches of rules are worth keeping: a history for each rule that can shed.

    ``save`` writes them to a folder, each to one of its own with the name of the rule.

    Parameters
    ----------
    rules : RuleSet

    Attributes
    ----------
    promises_ : SharedPromises or None
        What runs inside budgets find, measured on the end of the past; None: nobody has measured.

    Examples
    --------
    >>> from acep_approx import compile_rules
    >>> rules = compile_rules('''
    ... TABLE alarms (id int, n int DEFAULT 0, KEY (id))
    ... RULE rise ON PATTERN SEQ(A a, B b) WHERE b.x > a.x AND store.alarms[b.id].n < 5 WITHIN 20
    ... DO UPDATE alarms SET n = old.n + 1 AT (b.id) END''')
    >>> events = [{"ts": t, "type": "AAB"[t % 3], "x": t * 7 % 11, "id": t % 40} for t in range(300)]
    >>> known = RuleHistory(rules).fit(events)
    >>> [*known], known["rise"].events_
    (['rise'], 300)
    """

    def __init__(self, rules: TunableRules) -> None:
        super().__init__()
        self.rules = rules

    def __getitem__(self, rule: str) -> HistoryGraph:
        return self._learned[rule]

    def __repr__(self) -> str:
        return f"<RuleHistory of {', '.join(self) or 'no rules yet'}>"

    @property
    def names(self) -> list[str]:
        """The rules that can shed: each has a history, once something was learned."""
        return [*plans_of(self.rules.program)]

    @checked
    def fit(
        self,
        events: Any,
        *,
        store: Mapping[str, Any] | None = None,
        on_progress: OnProgress | None = None,
        **roles: Any,
    ) -> Self:
        """Run the rules exactly over past events, and learn what became of their partial matches.

        Parameters
        ----------
        events : as for ``RuleSet.run``
            In order of time.
        store : mapping of str to table, optional
            The rows that tables begin with: as they were when the past began.
        on_progress : callable, optional
            As for ``HistoryGraph.fit``, rule after rule.
        **roles
            ``time``, ``key``, ``type``, ``unit``: as for ``RuleSet.start``.

        Returns
        -------
        RuleHistory
            Itself. What is read of tables stands in the events that it learns from.

        Raises
        ------
        RuleError, DataError
            As for ``RuleSet.run``; ``UsageError`` ``ACEP-U046``: no event of the past begins a match of any rule. Where
            that is so of some rules, these have no history.
        """
        self.check()
        seen: dict[str, list[pa.RecordBatch]] = {}
        with self.rules.start(store=store, **roles) as run:
            execution = run.stage.execution
            execution.on_reads = lambda rule, batch: seen.setdefault(rule, []).append(batch.data)
            run.push(events)
        self._learned, nothing = {}, None
        with warning_once() as points:
            for rule in filter(sheds, self.rules.program.rules):
                graph = HistoryGraph(CompiledQuery(rule.plan))
                own = one_table(seen[rule.name]) if rule.name in seen else pa.table({})
                try:
                    graph.fit(own, on_progress=on_progress, **roles)
                except UsageError as error:
                    if error.code != "ACEP-U046":
                        raise
                    nothing = error  # nothing begins a match of this rule: it has no history
                else:
                    self._learned[rule.name] = graph
                    points[rule.name] = graph.points_
        if nothing is not None and not self:
            raise nothing
        return self

    def check(self) -> None:
        """Refuse to learn where there is nothing to learn (``ACEP-U046``)."""
        if not self.names:
            raise UsageError(
                "no rule has partial matches, so there is nothing to learn",
                code="ACEP-U046",
                hint="run the rules without a history: a budget changes nothing",
            )

    @classmethod
    @checked
    def load(cls, path: str | Path, rules: TunableRules) -> RuleHistory:  # type: ignore[override]
        """Read the histories of rules.

        Raises
        ------
        HistoryError
            No rule has one there (``ACEP-H001``), or one is of another query (``ACEP-H002``).
        """
        made = cls(rules)
        made._learned = Histories(folder=path).read(plans_of(rules.program))._learned
        made.promises_ = kept_promises(place_of(path))
        return made


class TunableRules:
    """The part of ``RuleSet`` that learns from the past, and is tuned on it."""

    program: Program

    if TYPE_CHECKING:

        def start(self, **options: Any) -> Any: ...  # noqa: D102

    @checked
    def train(
        self,
        past: Any,
        *,
        store: Mapping[str, Any] | None = None,
        on_progress: OnProgress | None = None,
        sort: bool = False,
        **roles: Any,
    ) -> RuleHistory:
        """Learn from past events which partial matches of the rules are worth keeping, as ``acep train`` does.

        As ``RuleHistory(rules).fit(past)``; then runs inside budgets over the last 40%, by what the events before them
        taught, say what such runs find.

        Parameters
        ----------
        past
            As for ``run``.
        store : mapping of str to table, optional
            The rows that tables begin with: as they were when the past began.
        on_progress : callable, optional
            As for ``HistoryGraph.fit``.
        sort : bool, default False
            Sort by time first.
        **roles
            ``time``, ``key``, ``type``, ``unit``: as for ``start``.

        Returns
        -------
        RuleHistory
            Its ``promises_`` say what budgets find.

        Raises
        ------
        UsageError
            ``ACEP-U046``: there is nothing to learn.

        Examples
        --------
        >>> from acep_approx import compile_rules
        >>> rules = compile_rules("RULE rise ON PATTERN SEQ(A a, A b, B c) WHERE b.x > a.x AND c.x > b.x WITHIN 40")
        >>> past = [{"ts": t, "type": "AAB"[t % 3], "x": t * 7 % 11} for t in range(600)]
        >>> promises = rules.train(past).promises_
        >>> promises.names, promises.trained, [row.budget for row in promises.rows]
        (('rise',), 360, ['2%', '5%', '10%', '20%', '50%'])
        """
        from acep_approx.results.shared_tuning import PROMISED

        known, tell = RuleHistory(self), on_progress or _nothing
        known.check()
        cut = _cut(past, roles, sort=sort)
        known.fit(cut.whole, store=store, on_progress=tell, **roles)
        known.promises_ = self._promised(cut, PROMISED, store, roles, {}, tell)
        return known

    @checked
    def tune(
        self,
        past: Any,
        *,
        store: Mapping[str, Any] | None = None,
        budgets: Sequence[str | float | Budget] | None = None,
        shed: str = "protect",
        seed: int = 0,
        on_progress: OnProgress | None = None,
        sort: bool = False,
        **roles: Any,
    ) -> SharedTuning:
        """Try budgets that all rules share on past events, as ``acep tune`` does.

        Histories are learned from the first 60% of them; what budgets find is measured on the rest, which begins with
        the tables as they were then.

        Parameters
        ----------
        past, store, on_progress, sort, **roles
            As for ``train``.
        budgets : sequence of str, float or Budget, optional
            As for ``match_within``; none of time. Default: 2%, 5%, 10%, 20%, 50%, as ``train`` promises.
        shed : {"protect", "alike"}, default "protect"
            As for ``start``.
        seed : int, default 0

        Returns
        -------
        SharedTuning
            What is found inside each budget of the matches of an exact run: of all rules, by ``WORTH``, and of those
            that miss most. ``advice`` recommends a budget.

        Raises
        ------
        UsageError
            ``ACEP-U043``: a budget of time; ``ACEP-U046``: there is nothing to learn.
        DataError
            ``ACEP-D060``: too few events.

        Examples
        --------
        >>> from acep_approx import compile_rules
        >>> rules = compile_rules("RULE rise ON PATTERN SEQ(A a, A b, B c) WHERE b.x > a.x AND c.x > b.x WITHIN 40")
        >>> past = [{"ts": t, "type": "AAB"[t % 3], "x": t * 7 % 11} for t in range(600)]
        >>> tuning = rules.tune(past, budgets=["20%", "50%"])
        >>> [row.budget for row in tuning.trials[0].promises.rows]
        ['20%', '50%']
        """
        from acep_approx.results.shared_tuning import SharedTrial, SharedTuning, parsed

        asked, tell = parsed(budgets), on_progress or _nothing
        RuleHistory(self).check()
        cut = _cut(past, roles, sort=sort)
        found = self._promised(cut, asked, store, roles, {"shed": shed, "seed": seed}, tell)
        trials = (SharedTrial(None, None, found),)
        return SharedTuning(asked, trials, cut.first.num_rows, cut.last.num_rows, "rules")

    def _promised(
        self,
        past: CutPast,
        budgets: Sequence[Budget],
        store: Mapping[str, Any] | None,
        roles: dict[str, Any],
        how: dict[str, Any],
        tell: OnProgress,
    ) -> SharedPromises | None:
        from acep_approx.results.shared_tuning import measured

        with self.start(store=store, **roles) as run:
            run.push(past.first)
            rows = {name: table.to_arrow() for name, table in run.store.items()}
        weights = {rule.name: rule.rule.worth for rule in self.program.rules}
        learn = partial(RuleHistory(self).fit, past.first, store=store, **roles)
        return measured(past, learn, partial(self._ran, past.last, rows, roles | how), weights, budgets, tell)

    def _ran(self, events: pa.Table, store: Mapping[str, Any], how: dict[str, Any], budget: Budget, known: Any) -> Ran:
        """What a run inside a budget finds of each rule."""
        with self.start(store=store, budget=budget, history=known, **how) as run:
            found = [run.push(events), run.finish()]
            pipelines = run.stage.execution.bound.pipelines
            windows = {rule.name: pipelines[rule.number].window for rule in self.program.rules}
            work = run.record().work
        names = [rule.name for rule in self.program.rules]
        tables = {name: pa.concat_tables(ends_in(one[name]) for one in found) for name in names}
        return Ran(tables, windows, work)


def _cut(past: Any, roles: dict[str, Any], *, sort: bool) -> CutPast:
    from acep_approx.results.shared_tuning import CutPast

    return CutPast.read(open_source(past, time=roles.get("time")), sort=sort, **roles)


def _nothing(what: str, share: float) -> None:
    """Whoever asked for no progress is told none."""
