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
from acep_approx.events.reading.widening import stacked
from acep_approx.planning.compiled import CompiledQuery
from acep_approx.training.history_graph import HistoryGraph


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

    @checked
    def fit(self, events: Any, *, store: Mapping[str, Any] | None = None, **roles: Any) -> Self:
        """Run the rules exactly over past events, and learn what became of their partial matches.

        Parameters
        ----------
        events : as for ``RuleSet.run``
            In order of time.
        store : mapping of str to table, optional
            The rows that tables begin with: as they were when the past began.
        **roles
            ``time``, ``key``, ``type``, ``unit``: as for ``RuleSet.start``.

        Returns
        -------
        RuleHistory
            Itself. What is read of tables stands in the events that it learns from.

        Raises
        ------
        RuleError, DataError
            As for ``RuleSet.run``; ``UsageError`` ``ACEP-U046``: no event of the past begins a match.
        """
        seen: dict[str, list[pa.Table]] = {}
        with self.rules.start(store=store, **roles) as run:
            execution = run.stage.execution
            execution.on_reads = lambda rule, table: seen.setdefault(rule, []).append(table)
            run.push(events)
        self._graphs = {}
        for rule in filter(sheds, self.rules.program.rules):
            graph = HistoryGraph(CompiledQuery(rule.plan))
            self._graphs[rule.name] = graph.fit(stacked(seen.get(rule.name, [pa.table({})])), **roles)
        return self

    @checked
    def save(self, path: str | Path, *, new_version: bool = False) -> Path:
        """Write the histories to a folder: one of its own for each rule; ``new_version`` as for ``HistoryGraph.save``.

        Raises
        ------
        UsageError
            ``ACEP-U036``: nothing was learned yet.
        HistoryError
            Something is there already, or a history of other rules.
        """
        folder = Path(path)
        if not self:
            raise UsageError("this history has not learned anything yet", code="ACEP-U036", hint="call fit(events)")
        for name, graph in self.items():
            graph.save(folder / name, new_version=new_version)
        return folder

    @classmethod
    @checked
    def load(cls, path: str | Path, rules: RuleSet) -> RuleHistory:
        """Read the histories of rules.

        Raises
        ------
        HistoryError
            A rule has none there (``ACEP-H001``), or one of another query (``ACEP-H002``).
        """
        made = cls(rules)
        made._graphs = dict(known_of(Path(path), rules.program))
        return made
