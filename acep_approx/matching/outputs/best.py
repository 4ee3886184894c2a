"""What match points show beside themselves: what is missing of the best match of each, and what RETURN asks for.

The best match is the first of those that its event completes, in the order of matches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.engines.batches import Grouped
from acep_approx.engines.columns import Listed
from acep_approx.engines.maximal.best import BestCells
from acep_approx.events.stream import EventBatch
from acep_approx.matching.outputs.of_cells import CHUNK, CellPoints
from acep_approx.matching.outputs.output import Points, Stamps
from acep_approx.matching.outputs.recent import Recent
from acep_approx.matching.outputs.tables import BOUND, NO_REGISTERS, REGISTER, BindingColumns, nothing_missing


class BestColumns:
    """Makes the columns of match points that tell of their best matches.

    Parameters
    ----------
    bindings : BindingColumns
    is_raw : bool
        Whether RETURN is left for later: then the events that a match binds are shown in its place.
    returns : bool
        Whether the query has RETURN.

    Attributes
    ----------
    needs_match : bool
        Whether they depend on the match: something can be missing, or RETURN asks for something.
    needed : tuple of str
        Columns of the events that are asked for.
    """

    def __init__(self, bindings: BindingColumns, *, is_raw: bool, returns: bool) -> None:
        self.bindings = bindings
        self.needs_match = returns or bindings.automaton.errors > 0
        self.needed = bindings.returns.needed
        self._is_raw = is_raw
        self.shows_events = returns or is_raw

    def of(
        self,
        listed: Listed,
        errors: Ints,
        recent: Recent,
        registers: Mapping[str, pa.Array] = NO_REGISTERS,
        arcs: Ints | None = None,
    ) -> dict[str, pa.Array]:
        """The columns of matches, one for each match point; see ``BindingColumns.described``."""
        missing = {"missing": self.bindings.missing(listed, errors, arcs)}
        if not self.shows_events:
            return missing
        shown = self.bindings.shown(listed, recent, registers)
        if self._is_raw:
            shown = {name if name.startswith(REGISTER) else BOUND + name: column for name, column in shown.items()}
        return missing | shown


class BestCellPoints(CellPoints):
    """Match points, each with what its best match shows."""

    engine: BestCells

    def __init__(self, engine: BestCells, stamps: Stamps, best: BestColumns, recent: Recent) -> None:
        super().__init__(engine, stamps)
        self._best = best
        self._recent = recent

    def run(self, events: Grouped, batch: EventBatch, floors: Ints) -> Iterator[pa.Table]:
        """One table; see ``Stamps.points``."""
        if self._recent.columns:
            self._recent.add(events, batch)
        yield from super().run(events, batch, floors)
        if len(batch):
            self._forget(batch)

    def more(self, points: Points) -> dict[str, pa.Array]:
        """What the best match of each shows."""
        some = np.arange(len(points.row)) if self._best.shows_events else np.flatnonzero(points.errors)
        errors, start = points.errors[some], points.start[some]
        found = self.engine.best(points.slot[some], points.row[some], errors, start)
        listed = Listed.of(self._best.bindings.placement, some, start, found.offset, found.id, found.label)
        columns = self._best.of(listed, errors, self._recent)
        if len(some) == len(points.row):
            return columns
        number = np.full(len(points.row), len(some))
        number[some] = np.arange(len(some))
        whole = pa.concat_arrays([columns["missing"], nothing_missing(1)])
        return {"missing": whole.take(pa.array(number))}

    def _forget(self, batch: EventBatch) -> None:
        """Let go of events that have left their windows."""
        preparer, window = self.stamps.preparer, self.engine.window
        last = int(batch.ticks[-1])
        self.engine.drop_before(preparer.counters - window if preparer.is_count else last - window)
        if not self._recent.columns or not self.forgets:
            return
        if not preparer.is_count:
            self._recent.drop_before(last - window)
        elif len(self._recent.ids) > 4 * len(batch) + CHUNK:
            self._recent.keep_only(self.engine.held.id)
