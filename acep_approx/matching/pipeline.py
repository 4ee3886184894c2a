"""One query on events of one schema: the way of a batch, from columns through the engine to tables of results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.columns import missing_column
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.events.time import tick_unit
from acep_approx.matching.arclogs import ArcLogs
from acep_approx.matching.cells import Cells
from acep_approx.matching.outputs import Counts, Listing, Output, Points, Stamps
from acep_approx.matching.planner import Plan
from acep_approx.matching.prepare import Preparer
from acep_approx.matching.recent import Recent
from acep_approx.matching.returns import ReturnColumns
from acep_approx.matching.tables import BindingColumns
from acep_approx.query.shape import kleene_variables, walk
from acep_approx.query.syntax import Attribute
from acep_approx.query.types import check_types, kinds

Ints = npt.NDArray[np.int64]
OutputKind = Literal["matches", "points", "counts"]

SWEEP = 4096
"""Keys beyond which silent ones are looked for."""


@dataclass
class Progress:
    """What has been seen so far.

    ``events`` in all, ``relevant`` to a letter, ``without_key`` (an equivalence attribute is NULL), and the ``keys``
    that have state.
    """

    events: int = 0
    relevant: int = 0
    without_key: int = 0
    keys: int = 0


class Pipeline:
    """Runs batches of events through the engine that a plan and an output ask for.

    Parameters
    ----------
    plan : Plan
    output : {"matches", "points", "counts"}
    schema : pyarrow.Schema
        Of the events.
    roles : Roles
        Which columns are time, key and type.
    state_cap : int
        Most determinised states for listing and counting.

    Attributes
    ----------
    columns : tuple of str
        Columns of the events that must be in each batch.
    window : int
        In ticks, or in events for a count window.

    Raises
    ------
    DataError, QueryError
        A column is missing or has the wrong type.
    """

    def __init__(self, plan: Plan, output: OutputKind, schema: pa.Schema, roles: Roles, state_cap: int) -> None:
        check_types(plan.query, _kinds(schema, roles))
        unit = tick_unit(schema.field(roles.time).type, roles.unit)
        self.plan = plan
        self.schema = schema
        self.roles = roles
        self.window = plan.window_ticks(unit)
        self.preparer = Preparer(plan, roles)
        self.recent = Recent(schema, ())
        self.engine: Cells | ArcLogs
        self._output: Output
        stamps = Stamps(self.preparer, schema, is_time=unit is not None)
        if output == "points":
            self.engine = Cells(plan.automaton, self.window)
            self._output = Points(self.engine, stamps)
        elif output == "counts":
            self.engine = ArcLogs(plan.automaton, self.window, cap=state_cap)
            self._output = Counts(self.engine, stamps)
        else:
            self.engine = ArcLogs(plan.automaton, self.window, cap=state_cap)
            self._output = self._listing(self.engine, stamps)
        self.columns = self._columns()
        self.engine.set_classes(self.preparer.classes)
        self.engine.reserve(max(self.preparer.slots, 1))
        self._swept = 0

    def _listing(self, engine: ArcLogs, stamps: Stamps) -> Listing:
        query = self.plan.query
        returns = ReturnColumns(query.outputs, self.roles)
        self.recent = Recent(self.schema, returns.needed)
        taken = set(self.preparer.key_columns) & set(self.plan.automaton.variables)
        if taken and not returns:
            raise DataError(
                f"{min(taken)!r} is a variable and a key column: the result would have two columns of that name",
                code="ACEP-D043",
                hint="choose another name for the variable",
            )
        bindings = BindingColumns(self.plan.automaton, kleene_variables(query.pattern), is_regex=query.is_regex)
        return Listing(engine, stamps, bindings, returns, self.recent)

    def _columns(self) -> tuple[str, ...]:
        reader = self.preparer.letters
        read = [a.name for c in reader.conditions for a in walk(c) if isinstance(a, Attribute)]
        names = [self.roles.time, *self.preparer.key_columns, *map(self.roles.column, read), *self.recent.columns]
        if reader.needs_type:
            names.append(self.roles.column("type"))
        for name in names:
            if name not in self.schema.names:
                raise missing_column(name, self.schema.names)
        return tuple(dict.fromkeys(names))

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""
        return self._output.nothing()

    def run(self, batch: EventBatch, progress: Progress) -> Iterator[pa.Table]:
        """Run a batch; results come as they are made, and must all be taken before the next batch."""
        known = len(self.preparer.classes)
        events = self.preparer.prepare(batch)
        if len(self.preparer.classes) > known:
            self.engine.set_classes(self.preparer.classes)
        self.engine.reserve(self.preparer.slots)
        progress.events += len(batch)
        progress.relevant += len(events.row)
        progress.without_key = self.preparer.without_key
        yield from self._output.run(events, batch, self._floors(batch))
        self._sweep(int(batch.ticks[-1]))
        progress.keys = max(len(self.preparer.keys), 1)

    def _floors(self, batch: EventBatch) -> Ints:
        """Starts from which on entries may still be asked for while this batch is listed; per slot or for all."""
        if not self.preparer.is_count:
            return np.array([int(batch.ticks[0]) - self.window])
        floors = np.zeros(self.engine.slots, np.int64)
        known = min(self.engine.slots, self.preparer.counters.size)
        floors[:known] = self.preparer.counters[:known] - len(batch) - self.window
        return floors

    def _sweep(self, now: int) -> None:
        """Free the slots of keys that have been silent for longer than the window."""
        keys = self.preparer.keys
        if self.preparer.is_count or len(keys) < 2 * self._swept + SWEEP:
            return
        used = keys.used()
        silent = used[self.engine.newest()[used] < now - self.window]
        keys.release(silent)
        self.engine.clear(silent)
        self._swept = len(keys)


def _kinds(schema: pa.Schema, roles: Roles) -> dict[str, Any]:
    """Kinds of the columns by the names that a query can use."""
    known = kinds(schema)
    for name, column in (("ts", roles.time), ("key", roles.key), ("type", roles.type)):
        if column is not None:
            known[name] = known[column]
    return known
