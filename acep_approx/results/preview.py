"""The first results of a question, for a display: a bounded part of the events is read, and nothing changes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from acep_approx.events.stream import read_events

if TYPE_CHECKING:
    from acep_approx.events.source import Source
    from acep_approx.matching.execution import Execution

MOST_EVENTS, MOST_SECONDS, PIECE = 200_000, 2.0, 20_000
"""A display reads no more events, and takes no more time; between pieces of so many it looks at the clock."""


@dataclass(frozen=True)
class Preview:
    """What was found in the beginning of the events, or in all of them.

    Attributes
    ----------
    points : pyarrow.Table
    matches : pyarrow.Table
        The first few.
    events : int
        How many were read.
    is_all : bool
        Whether these were all.
    """

    points: pa.Table
    matches: pa.Table
    events: int
    is_all: bool


def preview(points: Execution, matches: Execution | None, source: Source, most: int, *, sort: bool) -> Preview | None:
    """Run a question over the beginning of its events.

    Parameters
    ----------
    points : Execution
        A fresh one, for match points.
    matches : Execution, optional
        A fresh one, for matches.
    source : Source
        Can be read several times. What it remembers of its last pass stays, and files for rows that are left out are
        not written.
    most : int
        Matches that are wanted.
    sort : bool
        Sort the events first: then all are read, if there are not too many.

    Returns
    -------
    Preview or None
        None: there are no columns, or too many events to sort.
    """
    if not len(source.schema) or (sort and (source.rows is None or source.rows > MOST_EVENTS)):
        return None
    mine = source.beside()
    pipeline = points.bind(mine.schema)
    found, first = [pipeline.nothing()], [] if matches is None else [matches.bind(mine.schema).nothing()]
    begun, is_all, wanted = time.perf_counter(), True, most
    with source.looked_at():  # its reader knows of rows that cannot be read
        for batch in read_events(mine, pipeline.roles, sort=sort, batch_rows=PIECE):
            if points.progress.events >= MOST_EVENTS or time.perf_counter() - begun > MOST_SECONDS:
                is_all = False
                break
            found += points.run(batch)
            if matches is not None and wanted > 0:
                for table in matches.run(batch):
                    first.append(table.slice(0, wanted))
                    wanted -= first[-1].num_rows
    if is_all:
        found.append(points.finish())
        if matches is not None and wanted > 0:
            first.append(matches.finish().slice(0, wanted))
    return Preview(_joined(found), _joined(first), points.progress.events, is_all)


def _joined(tables: list[pa.Table]) -> pa.Table:
    filled = [table for table in tables if table.num_rows] or tables[:1]
    return pa.concat_tables(filled, promote_options="permissive") if filled else pa.table({})
