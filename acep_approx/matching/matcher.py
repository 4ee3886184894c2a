"""The push interface: batches of events in, tables of results out; the state can be saved and restored between any two.

The state is plain arrays and a JSON header, never pickle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.automaton.determinize import MAX_DETERMINISED
from acep_approx.errors import DataError, UsageError
from acep_approx.events.roles import Roles, infer_roles
from acep_approx.events.source import open_source
from acep_approx.events.stream import EventBatch, read_events
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
"""Key slots beyond which silent keys are looked for."""


@dataclass
class Progress:
    """What a matcher has seen.

    ``events`` in all, ``relevant`` to a letter, ``without_key`` (an equivalence attribute is NULL), and the ``keys``
    that have state.
    """

    events: int = 0
    relevant: int = 0
    without_key: int = 0
    keys: int = 0


class Matcher:
    """Runs one query over a stream of batches.

    Parameters
    ----------
    plan : Plan
    output : {"matches", "points", "counts"}, default "matches"
        List every match; only the events that complete one; or how many each of these completes.
    time, key, type : str, optional
        Columns that play these roles; inferred from the first batch where not given.
    unit : str, optional
        Unit of a time column of numbers: ns, us, ms or s. Default: plain ticks.
    state_cap : int, default MAX_DETERMINISED
        Most determinised states for listing.

    Notes
    -----
    The same events give the same results in any split into batches. Events must be ordered by (time, arrival), over
    batch borders too.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        output: OutputKind = "matches",
        time: str | None = None,
        key: str | None = None,
        type: str | None = None,  # noqa: A002  (the word of the query language)
        unit: str | None = None,
        state_cap: int = MAX_DETERMINISED,
    ) -> None:
        if output not in ("matches", "points", "counts"):
            raise UsageError(
                f"there is no output {output!r}", code="ACEP-U001", hint="choose matches, points or counts"
            )
        self.plan = plan
        self.output_kind: OutputKind = output
        self.progress = Progress()
        self.wanted = {"time": time, "key": key, "type": type, "unit": unit}
        self.state_cap = state_cap
        self.last_tick: int | None = None
        self._swept = 0
        self.roles: Roles | None = None

    # --- setting up, once the columns are known ---------------------------------------------------------------

    def bind(self, schema: pa.Schema, roles: Roles | None = None) -> None:
        """Check the query against the columns and set the engine up.

        Raises
        ------
        DataError, QueryError
            A column is missing or has the wrong type.
        """
        self.schema = schema
        self.roles = roles or infer_roles(schema, **self.wanted)
        check_types(self.plan.query, self._kinds(schema))
        time_type = schema.field(self.roles.time).type
        self.tick_unit = tick_unit(time_type, self.roles.unit)
        self.window = self.plan.window_ticks(self.tick_unit)
        self.preparer = Preparer(self.plan, self.roles)
        stamps = Stamps(self.preparer, schema, is_time=self.tick_unit is not None)
        self.engine: Cells | ArcLogs
        self._output: Output
        if self.output_kind == "points":
            self.engine = Cells(self.plan.automaton, self.window)
            self._output = Points(self.engine, stamps)
        else:
            self.engine = logs = ArcLogs(self.plan.automaton, self.window, cap=self.state_cap)
            if self.output_kind == "counts":
                self._output = Counts(logs, stamps)
            else:
                returns = ReturnColumns(self.plan.query.outputs, self.roles)
                self.recent = Recent(schema, returns.needed)
                bindings = BindingColumns(
                    self.plan.automaton, kleene_variables(self.plan.query.pattern), is_regex=self.plan.query.is_regex
                )
                self._output = Listing(logs, stamps, bindings, returns, self.recent)
        self.engine.set_classes(self.preparer.classes)
        self.engine.reserve(max(self.preparer.slots, 1))
        self.columns = self._columns(schema)

    def _kinds(self, schema: pa.Schema) -> dict[str, Any]:
        """Kinds of the columns by the names that a query can use."""
        assert self.roles is not None
        known = kinds(schema)
        for name in ("ts", "key", "type"):
            column = {"ts": self.roles.time, "key": self.roles.key, "type": self.roles.type}[name]
            if column is not None:
                known[name] = known[column]
        return known

    def _columns(self, schema: pa.Schema) -> tuple[str, ...]:
        """Columns of the events that this query reads."""
        assert self.roles is not None
        reader = self.preparer.letters
        names = [self.roles.time, *self.preparer.key_columns]
        if reader.needs_type:
            names.append(self.roles.column("type"))
        names += [self.roles.column(a.name) for c in reader.conditions for a in walk(c) if isinstance(a, Attribute)]
        if self.output_kind == "matches":
            names += self.recent.columns
        taken = set(self.preparer.key_columns) & set(self.plan.automaton.variables)
        if taken and self.output_kind == "matches" and not self.plan.query.outputs:
            raise DataError(
                f"{min(taken)!r} is a variable and a key column: the result would have two columns of that name",
                code="ACEP-D043",
                hint="choose another name for the variable",
            )
        for name in names:
            if name not in schema.names:
                raise DataError(
                    f"there is no column {name!r}",
                    code="ACEP-D002",
                    hint="the columns are " + ", ".join(schema.names),
                )
        return tuple(dict.fromkeys(names))

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""
        return self._output.nothing()

    def state_bytes(self) -> bytes:
        """The state as bytes, to go on later or elsewhere; see ``matching.state`` for the layout."""
        from acep_approx.matching.state import state_bytes

        return state_bytes(self)

    # --- running ----------------------------------------------------------------------------------------------

    def push(self, events: Any) -> pa.Table:
        """Run more events and return the results that they complete.

        Parameters
        ----------
        events : pyarrow table, record batch or reader, pandas.DataFrame, or iterable of dicts
            The next events of the stream.

        Returns
        -------
        pyarrow.Table
            As documented for the output; in order of the events that complete the matches.
        """
        source = open_source(events)
        if self.roles is None:
            self.bind(source.schema)
        assert self.roles is not None
        tables = [self.nothing()]
        for batch in read_events(source, self.roles, columns=self.columns):
            tables += self.run(batch)
        return pa.concat_tables(tables)

    def run(self, batch: EventBatch) -> Iterator[pa.Table]:
        """Run one batch; results come as they are made. All of them must be taken before the next batch."""
        rows = len(batch.ticks)
        if rows == 0:
            return
        batch = EventBatch(self.progress.events, batch.ticks, batch.data)
        self._check_order(batch)
        known = len(self.preparer.classes)
        events = self.preparer.prepare(batch)
        if len(self.preparer.classes) > known:
            self.engine.set_classes(self.preparer.classes)
        self.engine.reserve(self.preparer.slots)
        self.progress.events += rows
        self.progress.relevant += len(events.row)
        self.progress.without_key = self.preparer.without_key
        yield from self._output.run(events, batch, self._floors(batch))
        self.last_tick = int(batch.ticks[-1])
        self._sweep()

    def _check_order(self, batch: EventBatch) -> None:
        first = int(batch.ticks[0])
        if self.last_tick is not None and first < self.last_tick:
            raise DataError(
                f"time runs backwards from one batch to the next: {first} after {self.last_tick}",
                code="ACEP-D007",
                row=batch.first_row,
                hint="push events in order of time",
            )

    def _floors(self, batch: EventBatch) -> Ints:
        """Starts from which on entries may still be asked for while this batch is listed; per slot or for all."""
        if not self.preparer.is_count:
            return np.array([int(batch.ticks[0]) - self.window])
        floors = np.zeros(self.engine.slots, np.int64)
        known = min(self.engine.slots, self.preparer.counters.size)
        floors[:known] = self.preparer.counters[:known] - len(batch.ticks) - self.window
        return floors

    def _sweep(self) -> None:
        """Free the slots of keys that have been silent for longer than the window."""
        self.progress.keys = max(len(self.preparer.keys), 1)
        if self.preparer.is_count or len(self.preparer.keys) < 2 * self._swept + SWEEP or self.last_tick is None:
            return
        latest = self.engine.newest()[: self.preparer.slots]
        used = self.preparer.keys.used()
        silent = used[latest[used] < self.last_tick - self.window]
        self.preparer.keys.release(silent)
        self.engine.clear(silent)
        self._swept = len(self.preparer.keys)
