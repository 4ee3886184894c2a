"""The runs engine without what stands around it: events go in, matches as tuples come out; runs can be copied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx import Query
from acep_approx.arrays import Ints
from acep_approx.automaton.letters import LetterReader
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.runs.event_columns import EventColumns
from acep_approx.engines.runs.hidden import NO_OPTIONS, RunOptions
from acep_approx.engines.runs.lineage import spelled
from acep_approx.engines.runs.load_shedder import LoadShedder
from acep_approx.engines.runs.runs import Runs
from acep_approx.events.roles import infer_roles
from acep_approx.events.stream import EventBatch
from acep_approx.matching.prepare import Preparer
from acep_approx.matching.stream_side import StreamSide
from acep_approx.planning.planner import MERGING

Found = tuple[Any, ...]
"""A match: slot, errors, then the ids of its events with the numbers of their variables."""


class Driver:
    """Runs the events of a table through engines of one query.

    Parameters
    ----------
    query : Query
        For the runs engine.
    table : pyarrow.Table
        In order of time; columns ``ts`` and ``type``.
    registers : RegisterAutomaton, optional
        What is run; default: that of the query.
    options : RunOptions, optional
    lists : bool, default True
        Whether matches are listed; else hits are given, with the latest start.
    shedding : LoadShedder, optional
    merging : sequence of str, optional
        Default: all.
    """

    def __init__(
        self,
        query: Query,
        table: pa.Table,
        registers: RegisterAutomaton | None = None,
        options: RunOptions = NO_OPTIONS,
        *,
        lists: bool = True,
        shedding: LoadShedder | None = None,
        merging: Sequence[str] = MERGING,
    ) -> None:
        self.merging = merging
        self.plan, self.options, self.lists, self.shedding = query.plan, options, lists, shedding
        self.registers = registers or query.plan.registers
        assert self.registers is not None
        roles = infer_roles(table.schema)
        self._stream = StreamSide(table.schema, roles)
        keys = tuple(roles.column(equivalence.name) for equivalence in query.plan.query.equivalences)
        self.preparer = Preparer(query.plan, self._stream.slots_of(keys))
        self.preparer.letters = LetterReader(self.registers.letters)
        self.window = query.plan.window_ticks(None)
        ticks = np.array(table.column("ts").to_pylist(), np.int64)
        data = table.combine_chunks().to_batches()[0]
        self._batch = self._stream.batch(EventBatch(first_row=0, ticks=ticks, data=data))
        self.preparer.read(self._batch)
        self.grouped = self.preparer.grouped(self._batch)
        self.engine = self.another()

    def another(self) -> Runs:
        """One more engine for the same query; afterwards the one that is driven."""
        self.engine = Runs(
            self.registers,
            EventColumns(self._stream.schema, self._stream.roles.column, self._stream.texts),
            self.window,
            frozenset(self.merging),
            keeps_lineage=self.lists,
            is_count=self.preparer.is_count,
            shedding=self.shedding,
            options=self.options,
        )
        self.engine.set_classes(self.preparer.classes)
        self.engine.reserve(max(self.preparer.key_slots.slots, 1))
        return self.engine

    def of_slot(self, slot: int) -> Ints:
        """The numbers of the grouped events of a key."""
        return np.flatnonzero(self.grouped.slot == slot)

    def events(self, which: Sequence[int] | Ints) -> RunEvents:
        """Some of the grouped events."""
        some = np.asarray(which, np.int64)
        slot, tick, cls, row, id_, place = (
            getattr(self.grouped, name)[some] for name in ("slot", "tick", "cls", "row", "id", "place")
        )
        columns = [self._batch.words(expression)[row] for expression in self.engine.columns.expressions]
        words = np.array(columns, np.int64).reshape(len(columns), len(row))
        return RunEvents(slot, tick, tick, cls, row, id_, place, words)

    def run(self, which: Sequence[int] | Ints) -> list[Found]:
        """Run some of the grouped events; what they complete, sorted."""
        return sorted(self.found_in(self.events(which)))

    def found_in(self, events: RunEvents) -> Iterator[Found]:
        """Run events; what they complete."""
        engine = self.engine
        engine.begin()
        floors = np.full(engine.slots if engine.is_count else 1, -(2**61), np.int64)
        if not engine.is_count and len(events.tick):
            floors[0] = int(events.tick.min()) - self.window
        assert engine.advance(events, floors)
        hits = engine.hits(events)
        if not self.lists:
            columns = events.slot[hits.event], hits.errors, events.id[hits.event], hits.start, hits.times
            yield from zip(*(column.tolist() for column in columns), strict=True)
            return
        labels = np.array([arc.label for arc in engine.automaton.automaton.arcs], np.int64)
        lows = engine.lows(events.tick[hits.event], events.slot[hits.event])
        for bound in spelled(engine.links, hits, lows, labels, 1 << 16):
            for m, hit in enumerate(bound.hit.tolist()):
                part = slice(bound.offset[m], bound.offset[m + 1])
                ids, names = bound.id[part].tolist(), labels[bound.arc[part]].tolist()
                head = int(events.slot[hits.event[hit]]), int(hits.errors[hit])
                yield (*head, *zip(ids, names, strict=True))
