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
from acep_approx.automaton.automaton import START
from acep_approx.budget.audit import mixed
from acep_approx.budget.budget import Budget
from acep_approx.engines.batches import Grouped
from acep_approx.engines.runs.expected_work import WorkMeter
from acep_approx.events.columns import to_arrow
from acep_approx.events.reading.widening import one_table
from acep_approx.events.stream import EventBatch
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.kinds import POINTS
from acep_approx.matching.shared_load import PairsShown
from acep_approx.planning.compiled import CompiledQuery
from acep_approx.shedding.load import Load
from acep_approx.shedding.purse import Purse
from acep_approx.shedding.refreshed import plan_of_history
from acep_approx.shedding.shedder import Shedder
from acep_approx.subscriptions.templates.pair_runs import NUMBER
from acep_approx.training.few_points import warning_once
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
    pairs, births : int
        How many in all, and how many of them are tries to begin a run.
    """

    def __init__(self, *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        self.shown: list[pa.RecordBatch] = []
        self._pairs_shown: list[Grouped] = []
        self._kept: list[Ints] = []
        self.pairs = self.births = 0
        self._share = WHOLE
        self._names: tuple[str, ...] = ()

    def begin_piece(self, batch: EventBatch, events: Grouped) -> None:
        """Keep the events of a piece."""
        super().begin_piece(batch, events)
        self.shown.append(batch.data)

    def begin_pairs(self, events: int, whose: Ints, pairs: PairsShown | None = None) -> None:
        """Keep pairs."""
        super().begin_pairs(events, whose, pairs)
        if pairs is None:
            return
        whose = np.where(whose < 0, pairs.events.slot, whose)  # of queries that share their runs
        self.pairs += len(whose)
        self.births += self._births_of(pairs.events)
        if not self._names:
            schema, roles = self._columns
            self._names = Execution(self.plan, output=POINTS).bind(schema, roles).columns
        at = np.flatnonzero(mixed(np.int64(1), whose) < self._share)
        places = to_arrow(at)
        own = {name: pairs.columns.column(name) for name in self._names if name != NUMBER}
        columns = {NUMBER: to_arrow(whose[at])} | {name: column.take(places) for name, column in own.items()}
        self.shown.append(pa.RecordBatch.from_pydict(columns))
        self._pairs_shown.append(_some(pairs.events, at))
        self._kept.append(whose[at])
        if sum(map(len, self._kept)) > MOST_PAIRS:
            self._keep_fewer()

    def _births_of(self, pairs: Grouped) -> int:
        """How many of them are tries to begin a run."""
        tables = self.arena.tables
        begins = np.array([START in tables.tested(mask) for mask in tables.classes], np.int64)
        return int(begins[pairs.cls].sum())

    def _keep_fewer(self) -> None:
        self._share //= 2
        for number, whose in enumerate(self._kept):
            at = np.flatnonzero(mixed(np.int64(1), whose) < self._share)
            self.shown[number] = self.shown[number].take(to_arrow(at))
            self._pairs_shown[number], self._kept[number] = _some(self._pairs_shown[number], at), whose[at]

    def learned(self, gap: int | str) -> HistoryGraph | None:
        """A history of what was shown; None where there was nothing."""
        if not sum(batch.num_rows for batch in self.shown):
            return None
        plan, (_, roles) = plan_of_history(self.plan, self.window, is_time=self.has_times), self._columns
        table = one_table(self.shown)
        if self.charges_births:
            ticks = np.concatenate([some.tick for some in self._pairs_shown])
            table = table.take(to_arrow(np.argsort(ticks, kind="stable")))
        # a column that another query of the set asks for is not among those that this engine is shown
        columns = {name: getattr(roles, name) for name in ("time", "type", "start", "key")}
        named: dict[str, Any] = {name: column for name, column in columns.items() if column in table.column_names}
        if roles.unit is not None:
            named["unit"] = roles.unit
        known = HistoryGraph(CompiledQuery(plan), gap=gap)
        known.fit(table, **named)
        if self.charges_births:
            self._tell_of_all(known)
        return known

    def _tell_of_all(self, known: HistoryGraph) -> None:
        """Let a history know the run-steps of an event: so far it knows those of a pair, without births.

        There, the window of each query was the longest of them. So what is expected of the pairs is held against what
        they took.
        """
        load = replace(self.load, history=known, full_work=None)
        law = load.law
        known.steps_per_event_ = self._seen[1] / load.ratio / max(self._events, 1)
        if known.work_ is None or law is None:
            return
        meter = WorkMeter(self.arena.tables, known.window)
        expected = sum(float(law.steps(meter.measure(some)).sum()) for some in self._pairs_shown)
        expected *= self.pairs / sum(map(len, self._kept))
        known.work_ = known.work_.with_births((self._seen[1] - self.births) / expected if expected > 0 else 1.0)


def _some(pairs: Grouped, at: Ints) -> Grouped:
    return Grouped(*(column[at] for column in vars(pairs).values()))


class RecordingPurse(Purse):
    """Grants all, and keeps what engines are shown."""

    shedder_of, is_exact = Recorder, False

    def __init__(self) -> None:
        super().__init__(Load(Budget(100.0, "%"), audit=0.0))

    def learned(self, gap: int | str, on_progress: OnProgress) -> Histories:
        """What was learned from all of that."""
        learned: dict[str, HistoryGraph] = {}
        with warning_once() as points:
            for number, (shedder, account) in enumerate(self.accounts.items()):
                assert isinstance(shedder, Recorder), "it made it"
                on_progress(f"learning {account.name!r:.40}", number / len(self.accounts))
                known = shedder.learned(gap) if shedder.known_as not in learned else None
                if known is not None:
                    learned[shedder.known_as] = known
                    points[account.name] = known.points_
        return Histories(learned)
