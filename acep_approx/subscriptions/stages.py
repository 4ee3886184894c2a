"""Sets in two stages: what queries of the first publish is passed on to those of the second (see ``run.passing``).

The second set knows the queries of the first, as it must know what they publish; it takes their results out of what is
passed on, in the place of running them. A set that runs as one meets the same events in the same order: see
``published.merged``. Ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.engines.columns import Listed
from acep_approx.events.columns import to_arrow, to_numpy
from acep_approx.events.reading.widening import common_type
from acep_approx.events.stream import EventBatch
from acep_approx.matching.choice import Shown
from acep_approx.matching.outputs.recent import Recent
from acep_approx.matching.outputs.tables import NO_REGISTERS, BindingColumns
from acep_approx.run.passing import AN_EVENT, MAKER, OWN, column_of
from acep_approx.subscriptions.graph import NUMBER
from acep_approx.subscriptions.published import START, Publishing

COMPLETED_BY = " row"
"""The column of results that says which event completed each; no attribute has its name, as none has a blank there."""


class _PlacedColumns(BindingColumns):
    """The columns of matches, with the row of the last event that each binds."""

    def shown(
        self, listed: Listed, recent: Recent, registers: Mapping[str, pa.Array] = NO_REGISTERS
    ) -> dict[str, pa.Array]:
        """What users see, and what they do not."""
        last = np.full(len(listed), AN_EVENT)
        for ids in listed.single:
            np.maximum(last, ids, out=last)
        for offsets, ids in listed.lists:
            has = np.flatnonzero(np.diff(offsets))
            last[has] = np.maximum(last[has], np.maximum.reduceat(ids, offsets[:-1][has])) if len(has) else last[has]
        return {**super().shown(listed, recent, registers), COMPLETED_BY: to_arrow(last)}


PLACED = Shown(bindings=_PlacedColumns)
"""How results are shown that are passed on."""


def columns_of(results: Sequence[pa.Schema], attributes: Sequence[str]) -> pa.Schema:
    """The columns of the results of queries that publish one stream, as far as they are of its events."""
    types: dict[str, pa.DataType] = {}
    for name in dict.fromkeys([START, "end", *attributes]):
        types[name] = pa.null()
        for known in results:
            wider = common_type(types[name], known.field(name).type)
            assert wider is not None, "who reads the stream was refused otherwise"
            types[name] = wider
    return pa.schema([*types.items()])


class Given:
    """A batch of what another set has passed on.

    Parameters
    ----------
    batch : EventBatch

    Attributes
    ----------
    events : EventBatch
        The events among its rows, under the numbers of these rows.
    """

    def __init__(self, batch: EventBatch) -> None:
        self._number = to_numpy(batch.data.column(MAKER)).astype(np.int64)
        self._batch = batch
        at = np.flatnonzero(self._number == AN_EVENT)
        names = [name for name in batch.data.schema.names if not name.startswith(OWN)]
        data = batch.data.select(names).take(to_arrow(at))
        self.events = EventBatch(batch.first_row, batch.ticks[at], data, batch.first_row + at)

    def results(self, publishing: Publishing, numbers: Ints, known: pa.Schema) -> pa.Table:
        """The results of some queries that are published, in order and in the types that these have."""
        stream, data = str(publishing.entry.publish), self._batch.data
        at = to_arrow(np.flatnonzero(np.isin(self._number, numbers)))
        names = [START, "end", *publishing.attributes]
        shown = {name: data.column(column_of(stream, name)).take(at) for name in dict.fromkeys(names)}
        columns = {name: column.cast(known.field(name).type) for name, column in shown.items()}
        return pa.table({NUMBER: data.column(MAKER).take(at), **columns})
