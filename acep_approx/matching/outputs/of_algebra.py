"""What queries in CEL put out: the attributes of each result, its interval, and how many derivations it has.

Results are registers of the runs that completed them: no lineage is kept, so that a query without a window keeps
nothing of events that no run needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints, zeros
from acep_approx.automaton.algebra import attribute_of
from acep_approx.automaton.resolve import Register
from acep_approx.engines.batches import Grouped
from acep_approx.engines.runs.event_columns import Kind
from acep_approx.engines.runs.lineage import Hits
from acep_approx.engines.runs.programs import register_kind, types_like
from acep_approx.events.carried import in_order
from acep_approx.events.time import in_type
from acep_approx.kernels.runs.vm import NULL
from acep_approx.matching.outputs.of_runs import RunCounts, RunOutput
from acep_approx.matching.outputs.tables import sums, warn_at_least
from acep_approx.query.syntax import Attribute

ROW = " row"
"""The column by which results are put in order; no attribute has its name, as none has a blank there."""


class Ends(NamedTuple):
    """Results as columns: ``row``, ``slot`` and ``tick`` of the event that completes each, and how many ``times``."""

    row: Ints
    slot: Ints
    tick: Ints
    times: Ints


class AlgebraResults(RunOutput):
    """Results: their attributes, ``start``, ``end``, ``times``; one row for equal ones that an event completes."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The attributes of the results."""
        return tuple(attribute_of(register) for register in self.finder.automaton.shown[1:])

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""
        none = np.zeros(0, np.int64)
        return self._table_of(Ends(none, none, none, none), np.zeros((0, len(self.finder.automaton.shown)), np.int64))

    def _results(self, events: Grouped, hits: Hits) -> Iterator[pa.Table]:
        if len(hits):
            row, slot, words = events.row[hits.event], events.slot[hits.event], hits.shown
            order = np.lexsort((*words.T, slot, row))
            sorted_ = np.column_stack((row, slot, words))[order]
            first = np.flatnonzero(np.append(True, (sorted_[1:] != sorted_[:-1]).any(axis=1)))
            at = order[first]
            times = sums(hits.times[order], first)
            warn_at_least([int(times.max())])
            yield self._table_of(Ends(row[at], slot[at], events.tick[hits.event[at]], times), words[at])

    def _table_of(self, ends: Ends, words: Ints) -> pa.Table:
        """Results, in order of the events that complete them, then of their columns."""
        shown = zip(self.names, self.finder.automaton.shown[1:], words[:, 1:].T, strict=True)
        keys = self.stamps.keys(ends.slot)
        attributes = {name: self._column(register, held) for name, register, held in shown}
        interval = {"start": self.stamps.time(words[:, 0]), "end": self.stamps.time(ends.tick)}
        found = pa.table({**keys, **attributes, **interval, "times": pa.array(ends.times)})
        order = [(name, "ascending") for name in (ROW, *keys, "start", *attributes)]
        by = pa.table({ROW: ends.row, **{name: in_order(found.column(name).combine_chunks()) for name, _ in order[1:]}})
        return found.take(pc.sort_indices(by, sort_keys=order))

    def _column(self, register: Register, words: Ints) -> pa.Array:
        """What a register held in some runs, in the type of the columns that it was taken of."""
        columns = self.engine.columns
        kind, wanted = register_kind(register, columns), types_like(register, columns)
        if kind == "null":
            return pa.nulls(len(words))
        if kind == "other":
            return columns.texts.carried(words, wanted[0])
        values = self._values(kind, words)
        if len(wanted) == 1 and all(isinstance(one, Attribute) for one in register.like):
            (type_,) = wanted
            values = values if pa.types.is_decimal(type_) else in_type(values, type_)
        return values

    def _values(self, kind: Kind, words: Ints) -> pa.Array:
        if kind == "float":
            floats = np.ascontiguousarray(words).view(np.float64)
            return pa.array(floats, mask=np.isnan(floats))
        is_null = words == NULL
        if kind == "text":
            codes, place = np.unique(words[~is_null], return_inverse=True)
            known = self.engine.columns.texts.values
            texts = pa.array([known[code] for code in codes.tolist()], pa.string())
            places = np.zeros(len(words), np.int64)
            places[~is_null] = place
            return texts.take(pa.array(places, mask=is_null))
        if kind == "truth":
            return pa.array(words == 1, mask=is_null)
        found = pa.array(words, mask=is_null)
        if kind in ("time", "duration"):
            unit = self.engine.columns.unit
            return found.cast(pa.timestamp(unit) if kind == "time" else pa.duration(unit))
        return found


class AlgebraCounts(RunCounts):
    """How many results each event completes: errors (none), end, row, matches, at_least."""

    def _results(self, events: Grouped, hits: Hits) -> Iterator[pa.Table]:
        if len(hits):
            row, slot = events.row[hits.event], events.slot[hits.event]
            order = np.lexsort((slot, row))
            is_new = (np.diff(row[order]) != 0) | (np.diff(slot[order]) != 0)
            first = np.flatnonzero(np.append(True, is_new))
            matches, at = sums(hits.times[order], first), order[first]
            ids, end = self.recent.ids_of(row[at]), self.stamps.time(events.tick[hits.event[at]])
            yield self.stamps.counts(slot[at], zeros(len(at)), end, ids, self.recent.take, matches)
