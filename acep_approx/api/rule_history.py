"""What the past says of rules: a history for each rule that can shed, learned from an exact run of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from acep_approx.api.rule_budget import plans_of, sheds
from acep_approx.api.rule_set import RuleSet
from acep_approx.arguments import checked
from acep_approx.errors import UsageError
from acep_approx.events.reading.widening import stacked
from acep_approx.planning.compiled import CompiledQuery
from acep_approx.training.histories import Histories
from acep_approx.training.history_graph import HistoryGraph
from acep_approx.training.training import OnProgress


class RuleHistory(Histories, Mapping[str, HistoryGraph]):
    """Learns from the past which partial matches of rules are worth keeping: a history for each rule that can shed.

    ``save`` writes them to a folder, each to one of its own with the name of the rule.

    Parameters
    ----------
    rules : RuleSet

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

    def __init__(self, rules: RuleSet) -> None:
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
        if not self.names:
            raise UsageError(
                "no rule has partial matches, so there is nothing to learn",
                code="ACEP-U046",
                hint="run the rules without a history: a budget changes nothing",
            )
        seen: dict[str, list[pa.Table]] = {}
        with self.rules.start(store=store, **roles) as run:
            execution = run.stage.execution
            execution.on_reads = lambda rule, table: seen.setdefault(rule, []).append(table)
            run.push(events)
        self._learned, nothing = {}, None
        for rule in filter(sheds, self.rules.program.rules):
            graph = HistoryGraph(CompiledQuery(rule.plan))
            try:
                graph.fit(stacked(seen.get(rule.name, [pa.table({})])), on_progress=on_progress, **roles)
            except UsageError as error:
                if error.code != "ACEP-U046":
                    raise
                nothing = error  # nothing begins a match of this rule: it has no history
            else:
                self._learned[rule.name] = graph
        if nothing is not None and not self:
            raise nothing
        return self

    @classmethod
    @checked
    def load(cls, path: str | Path, rules: RuleSet) -> RuleHistory:  # type: ignore[override]
        """Read the histories of rules.

        Raises
        ------
        HistoryError
            No rule has one there (``ACEP-H001``), or one is of another query (``ACEP-H002``).
        """
        made = cls(rules)
        made._learned = Histories(folder=path).read(plans_of(rules.program))._learned
        return made
