"""Histories of a set of queries: the set is run exactly over a past, and what each engine was shown is learned from.

The pairs of a template are events as others are: with the constants of their queries as columns, and the query as a
key. So what is learned of a template is what its queries have in common; that of a query which is new is the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.budget.audit import mixed
from acep_approx.budget.budget import Budget
from acep_approx.engines.batches import Grouped
from acep_approx.events.columns import to_arrow
from acep_approx.events.reading.widening import one_table
from acep_approx.events.stream import EventBatch
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.kinds import POINTS
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.planning.compiled import CompiledQuery
from acep_approx.shedding.load import Load
from acep_approx.shedding.purse import Purse
from acep_approx.shedding.refreshed import plan_of_history
from acep_approx.shedding.shedder import Shedder
from acep_approx.subscriptions.templates.pair_runs import NUMBER
from acep_approx.training.histories import Histories
from acep_approx.training.history_graph import HistoryGraph
from acep_approx.training.training import OnProgress

MOST_PAIRS = 1 << 20
"""Pairs of a template that are kept: where there are more, those of fewer queries."""
WHOLE = 1 << 31


class Recorder(Shedder):
    """Sheds nothing, and keeps what its engine is shown.

    Attributes
    ----------
    shown : list of pyarrow.RecordBatch
        Events, or pairs.
    pairs : int
        How many in all.
    """

    def __init__(self, *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        self.shown: list[pa.RecordBatch] = []
        self._ticks: list[Ints] = []
        self._kept: list[Ints] = []
        self.pairs = 0
        self._share = WHOLE
        self._names: tuple[str, ...] = ()

    def begin_piece(self, batch: EventBatch, events: Grouped) -> None:
        """Keep the events of a piece."""
        super().begin_piece(batch, events)
        self.shown.append(batch.data)

    def begin_pairs(self, events: int, whose: Ints, pairs: StreamBatch | None = None) -> None:
        """Keep pairs."""
        super().begin_pairs(events, whose, pairs)
        if pairs is None:
            return
        self.pairs += len(whose)
        if not self._names:
            schema, roles = self._columns
            self._names = Execution(self.plan, output=POINTS).bind(schema, roles).columns
        at = np.flatnonzero(mixed(np.int64(1), whose) < self._share)
        places = to_arrow(at)
        own = {name: pairs.column(name) for name in self._names if name != NUMBER}
        columns = {NUMBER: to_arrow(whose[at])} | {name: column.take(places) for name, column in own.items()}
        self.shown.append(pa.RecordBatch.from_pydict(columns))
        self._ticks.append(pairs.ticks[at])
        self._kept.append(whose[at])
        if sum(map(len, self._kept)) > MOST_PAIRS:
            self._keep_fewer()

    def _keep_fewer(self) -> None:
        self._share //= 2
        for number, whose in enumerate(self._kept):
            at = np.flatnonzero(mixed(np.int64(1), whose) < self._share)
            self.shown[number] = self.shown[number].take(to_arrow(at))
            self._ticks[number], self._kept[number] = self._ticks[number][at], whose[at]

    def learned(self, gap: int | str) -> HistoryGraph | None:
        """A history of what was shown; None where there was nothing."""
        if not sum(batch.num_rows for batch in self.shown):
            return None
        plan, (_, roles) = plan_of_history(self.plan, self.window, is_time=self.has_times), self._columns
        table = one_table(self.shown)
        if self.charges_births:
            table = table.take(to_arrow(np.argsort(np.concatenate(self._ticks), kind="stable")))
        # a column that another query of the set asks for is not among those that this engine is shown
        columns = {name: getattr(roles, name) for name in ("time", "type", "start", "key")}
        named: dict[str, Any] = {name: column for name, column in columns.items() if column in table.column_names}
        if roles.unit is not None:
            named["unit"] = roles.unit
        known = HistoryGraph(CompiledQuery(plan), gap=gap)
        known.fit(table, **named)
        if self.charges_births:  # so far it knows run-steps per pair, without births
            listing, done = known.steps_per_event_ * self.pairs, self._seen[1] / replace(self.load, history=known).ratio
            known.steps_per_event_ = max(listing, done) / max(self._events, 1)
        return known


class RecordingPurse(Purse):
    """Grants all, and keeps what engines are shown."""

    shedder_of = Recorder

    def __init__(self) -> None:
        super().__init__(Load(Budget(100.0, "%"), audit=0.0))

    def learned(self, gap: int | str, on_progress: OnProgress) -> Histories:
        """What was learned from all of that."""
        learned: dict[str, HistoryGraph] = {}
        for number, (shedder, account) in enumerate(self.accounts.items()):
            assert isinstance(shedder, Recorder), "it made it"
            on_progress(f"learning {account.name!r:.40}", number / len(self.accounts))
            known = shedder.learned(gap) if shedder.known_as not in learned else None
            if known is not None:
                learned[shedder.known_as] = known
        return Histories(learned)
