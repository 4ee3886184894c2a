"""What the past says of rules: a history for each rule that can shed, learned from an exact run of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from acep_approx.api.rule_budget import known_of, sheds
from acep_approx.api.rule_set import RuleSet
from acep_approx.arguments import checked
from acep_approx.errors import UsageError
from acep_approx.events.reading.widening import one_table
from acep_approx.planning.compiled import CompiledQuery
from acep_approx.training.history_graph import HistoryGraph
from acep_approx.training.training import OnProgress


class RuleHistory(Mapping[str, HistoryGraph]):
    """Learns from the past which partial matches of rules are worth keeping: a history for each rule that can shed.

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
        self.rules = rules
        self._graphs: dict[str, HistoryGraph] = {}

    def __getitem__(self, rule: str) -> HistoryGraph:
        return self._graphs[rule]

    def __iter__(self) -> Iterator[str]:
        return iter(self._graphs)

    def __len__(self) -> int:
        return len(self._graphs)

    def __repr__(self) -> str:
        return f"<RuleHistory of {', '.join(self) or 'no rules yet'}>"

    @property
    def names(self) -> list[str]:
        """The rules that can shed: each has a history, once something was learned."""
        return [rule.name for rule in filter(sheds, self.rules.program.rules)]

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
        seen: dict[str, list[pa.RecordBatch]] = {}
        with self.rules.start(store=store, **roles) as run:
            execution = run.stage.execution
            execution.on_reads = lambda rule, batch: seen.setdefault(rule, []).append(batch.data)
            run.push(events)
        self._graphs, nothing = {}, None
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
                self._graphs[rule.name] = graph
        if nothing is not None and not self:
            raise nothing
        return self

    @checked
    def save(self, path: str | Path, *, new_version: bool = False) -> dict[str, Path]:
        """Write the histories to a folder: one of its own for each rule; ``new_version`` as for ``HistoryGraph.save``.

        Returns
        -------
        dict of str to Path
            By rule the directory of the version.

        Raises
        ------
        UsageError
            ``ACEP-U036``: nothing was learned yet.
        HistoryError
            Something is there already, or a history of other rules.
        """
        if not self:
            raise UsageError("this history has not learned anything yet", code="ACEP-U036", hint="call fit(events)")
        return {name: graph.save(Path(path) / name, new_version=new_version) for name, graph in self.items()}

    @classmethod
    @checked
    def load(cls, path: str | Path, rules: RuleSet) -> RuleHistory:
        """Read the histories of rules.

        Raises
        ------
        HistoryError
            No rule has one there (``ACEP-H001``), or one is of another query (``ACEP-H002``).
        """
        made = cls(rules)
        made._graphs = dict(known_of(Path(path), rules.program))
        return made
