"""Runs whose lineage is given away: the output of the runs engine that ``Matches.compressed`` is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints, extended
from acep_approx.engines.batches import Grouped
from acep_approx.engines.runs.lineage import Hits
from acep_approx.engines.runs.runs import Runs
from acep_approx.errors import DataError, UsageError
from acep_approx.kernels.runs import layout
from acep_approx.kernels.runs import shared as kernel_shared
from acep_approx.matching.outputs.completed import Finder
from acep_approx.matching.outputs.of_runs import RunOutput
from acep_approx.matching.outputs.output import Stamps
from acep_approx.matching.outputs.recent import Recent
from acep_approx.matching.outputs.tables import BindingColumns
from acep_approx.matching.tracing.compressed import NONE, Compressed, Links, Spelling
from acep_approx.planning.planner import Plan, plan
from acep_approx.query.shape import walk
from acep_approx.query.syntax import RegisterValue

HIT_COLUMNS = ("errors", "end", "row", "since", "start", "link")


def compressed_plan(wanted: Plan) -> Plan:
    """The plan that compressed output is made with: by the runs engine.

    Raises
    ------
    UsageError
        ``ACEP-U007``: what the links spell would not be the matches.
    """
    registers = wanted.registers
    if wanted.query.is_algebra:
        raise UsageError(
            "compressed output and a query in CEL do not go together: it shows matches by their events, and results in "
            "CEL name none",
            code="ACEP-U007",
            hint="list the results: equal ones are one row, with their number in the column times",
        )
    reads_registers = any(isinstance(n, RegisterValue) for o in wanted.query.outputs for n in walk(o.value))
    has_hidden = not wanted.query.is_regex and "" in wanted.automaton.variables
    if reads_registers or has_hidden:
        raise UsageError(
            "the matches of this query cannot be kept compressed: "
            + ("RETURN reads registers" if reads_registers else "some of their events are not shown"),
            code="ACEP-U007",
            hint="list the matches",
        )
    if wanted.query.non_overlap or (registers is not None and registers.needs_filter):
        why = "NON OVERLAP chooses among them" if wanted.query.non_overlap else "conditions are tested on each of them"
        raise UsageError(
            f"the matches of this query cannot be kept compressed: {why} when they are complete",
            code="ACEP-U007",
            hint="list the matches; `explain` says which conditions are tested on complete matches",
        )
    return wanted if registers is not None else plan(wanted.query, "runs")


class SharedRuns(Runs):
    """Runs of which the links that hits reach are given away, each once, with numbers that stay.

    Attributes
    ----------
    shared : numpy.ndarray of int64
        Per link of the engine the number it was given away with; -1 for none.
    given : int
        Links given away so far.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.shared = np.zeros(0, np.int64)
        self.given = 0
        self.labels = np.array([arc.label for arc in self.automaton.automaton.arcs] or [0], np.int64)

    def share(self, hit: Ints, since: Ints) -> Links:
        """The links that hits reach and that have not been given away; afterwards ``shared`` has their numbers.

        Parameters
        ----------
        hit, since : numpy.ndarray of int64
            Per hit its link and the earliest start inside its window.

        Complexity: O(links held).
        """
        used = int(self.control[layout.LINKS])
        self.shared = extended(self.shared, used, NONE)
        need = np.full(used, kernel_shared.NOBODY, np.int64)
        kernel_shared.reach(hit, since, self.links, self.shared, need)
        new = np.flatnonzero((need != kernel_shared.NOBODY) & (self.shared < 0))
        self.shared[new] = self.given + np.arange(len(new))
        self.given += len(new)
        words = self.links[: layout.LINK * used].reshape(-1, layout.LINK)[new]
        here = words[:, layout.LINK_HERE]
        is_event = here >= 0
        number = np.append(self.shared, NONE)  # links that lead nowhere any more have no number
        return Links(
            id=np.where(is_event, here >> layout.ARC_BITS, NONE),
            arc=np.where(is_event, here & layout.ARC_MASK, NONE),
            before=number[words[:, layout.LINK_BEFORE].clip(NONE)],
            other=number[words[:, layout.LINK_OTHER].clip(NONE)],
            start=words[:, layout.LINK_START],
            latest=words[:, layout.LINK_LATEST],
        )

    def _compact(self, floors: Ints) -> None:
        super()._compact(floors)
        self.shared = self.shared[self._number[: len(self.shared)] >= 0]


class RunShared(RunOutput):
    """Hits, batch by batch: key, errors, end, row, since, start, link; their links are gathered on the way."""

    def __init__(
        self,
        engine: SharedRuns,
        finder: Finder,
        stamps: Stamps,
        recent: Recent,
        bindings: BindingColumns,
    ) -> None:
        super().__init__(engine, finder, stamps, recent)
        self._shared = engine
        self._bindings = bindings
        self._links: list[Links] = []
        self._events: list[tuple[Ints, Ints, pa.Table]] = []
        taken = sorted(set(stamps.preparer.shown_columns) & set(HIT_COLUMNS))
        if taken:
            raise DataError(
                f"the key column {taken[0]!r} has the name of a column of the result",
                code="ACEP-D043",
                hint="rename it in the events",
            )

    @property
    def _keeps_recent(self) -> bool:
        return True

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the hits."""
        none = np.zeros(0, np.int64)
        return self._hits(none, none, none, none, none, none)

    def _results(self, events: Grouped, hits: Hits) -> Iterator[pa.Table]:
        if not len(hits):
            return
        tick = events.tick[hits.event]
        links = self._shared.share(hits.link, tick - self.engine.window)
        self._links.append(links)
        places = np.flatnonzero(np.isin(self.recent.ids, np.unique(links.id)))
        data = self.recent.data.take(places) if self.recent.columns else self.recent.data
        self._events.append((self.recent.ids[places], self.recent.ticks[places], data))
        numbers = self._shared.shared[hits.link]
        yield self._hits(events.slot[hits.event], hits.errors, events.id[hits.event], tick, hits.start, numbers)

    def _hits(self, slot: Ints, errors: Ints, ids: Ints, tick: Ints, start: Ints, link: Ints) -> pa.Table:
        return pa.table(
            {
                **self.stamps.keys(slot),
                "errors": errors,
                "end": self._ticks(ids, tick),
                "row": ids,
                "since": self._stamp(tick - self.engine.window),
                "start": self._stamp(start),
                "link": link,
            }
        )

    def _stamp(self, ticks: Ints) -> pa.Array:
        """Starts: times, or numbers of events within their partition in count windows."""
        return pa.array(ticks) if self._is_count else self.stamps.time(ticks)

    def compressed(self, hits: pa.Table) -> Compressed:
        """All that was found, ``hits`` being the tables given so far."""
        links = Links(*(_joined([getattr(part, f.name) for part in self._links]) for f in fields(Links)))
        names, labels = pa.array(self._bindings.automaton.variables, pa.string()), self._shared.labels
        variables = np.where(links.arc < 0, NONE, labels[links.arc])
        columns = {
            "link": np.arange(len(links.id)),
            "row": _optional(links.id),
            "variable": pa.DictionaryArray.from_arrays(_optional(variables).cast(pa.int32()), names),
            "before": _optional(links.before),
            "other": _optional(links.other),
            "start": self._stamp(links.start),
            "latest": self._stamp(links.latest),
        }
        spelling = Spelling(
            links=links,
            labels=labels,
            known=self._known(),
            stamps=self.stamps,
            bindings=self._bindings,
            is_ambiguous=self.finder.automaton.is_ambiguous,
            is_machine=bool(self.finder.automaton.transfers),
        )
        return Compressed(hits, pa.table(columns), spelling)

    def _known(self) -> Recent:
        """The events that links bind, each once."""
        known = Recent(self.recent.data.schema, self.recent.columns)
        known.ids, first = np.unique(_joined([ids for ids, _, _ in self._events]), return_index=True)
        known.ticks = _joined([ticks for _, ticks, _ in self._events])[first]
        if self._events and self.recent.columns:
            parts = [data.cast(known.data.schema) for _, _, data in self._events]
            known.data = pa.concat_tables(parts).take(first)
        return known


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _optional(column: Ints) -> pa.Array:
    return pa.array(column, mask=column < 0)
