"""The whole stream, or its first part, as one place to ask about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.events.reading.widening import one_table
from acep_approx.events.source import Source
from acep_approx.events.stream import read_events
from acep_approx.events.time import tick_unit
from acep_approx.matching.execution import Execution
from acep_approx.matching.pipeline import Pipeline
from acep_approx.planning.planner import Plan
from acep_approx.why.place import StreamPlace, columns_asked, unified


@dataclass(frozen=True)
class WholeStream:
    """The events from the first one on, and whether there are more of them."""

    place: StreamPlace
    is_cut: bool


def whole_stream(
    plan: Plan, source: Source, options: Mapping[str, Any], *, sort: bool = False, most: int | None = None
) -> WholeStream | None:
    """Read the first events of a source, of all keys.

    Parameters
    ----------
    plan : Plan
    source : Source
    options : mapping
        ``time``, ``key``, ``type``, ``unit`` and ``start``, as for ``Execution``.
    sort : bool
        Sort the events by time first.
    most : int, optional
        So many events at most. Default: all.

    Returns
    -------
    WholeStream or None
        None: there are no events.

    Complexity: memory for the columns that the query names.
    """
    if not len(source.schema):
        return None
    pipeline = Execution(plan, **options).bind(source.schema)
    columns = columns_asked(pipeline)
    parts: list[pa.RecordBatch] = []
    ticks: list[Ints] = []
    seen = 0
    for batch in read_events(source, pipeline.roles, columns=columns, sort=sort):
        fitted = pipeline.stream.fit(batch)
        parts.append(fitted.data)
        ticks.append(fitted.ticks)
        seen += len(fitted)
        if most is not None and seen > most:
            break
    if not parts:
        return None
    table = unified(one_table(parts)).combine_chunks()
    return _whole(pipeline, source, table, np.concatenate(ticks), most)


def _whole(pipeline: Pipeline, source: Source, table: pa.Table, ticks: Ints, most: int | None) -> WholeStream:
    is_cut = most is not None and len(ticks) > most
    if is_cut:
        table, ticks = table.slice(0, most), ticks[:most]
    roles = pipeline.roles
    is_time = tick_unit(source.schema.field(roles.time).type, roles.unit) is not None
    rows = source.late.original(np.arange(len(ticks), dtype=np.int64))
    mine, last = np.ones(len(ticks), np.bool_), int(ticks[-1])
    plan, window = pipeline.plan, pipeline.window
    return WholeStream(StreamPlace(plan, roles, last, window, is_time, {}, table, rows, ticks, mine, last), is_cut)
