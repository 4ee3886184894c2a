"""The events of matches as rows: all columns of the input, with whose event each is, and the missing ones in between.

One run over the events, as for listing: they are kept while they are in the window, as with ``bind``, so that it works
where events can be read only once. Results found elsewhere, by a set, by rules, or live, name events by row numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arguments import checked
from acep_approx.arrays import Bools, Ints
from acep_approx.errors import UsageError
from acep_approx.events.columns import encode_text, to_arrow, to_numpy
from acep_approx.events.late import LateEvents
from acep_approx.events.reading.memory import REFUSED
from acep_approx.events.reading.widening import one_table
from acep_approx.events.source import open_source
from acep_approx.planning.planner import Plan
from acep_approx.results.match import Match

ROW = " row"
"""The column of row numbers on the way; no name of the query language has a blank."""
OWN = ("match", "variable", "missing", "row")
"""Columns of the result before those of the events; with ``_`` behind where the events have a column of this name."""
Listed = Iterator[tuple[pa.Table, pa.Table]]
"""Tables of matches, each with the table of its events; in each matches are numbered anew."""


def showing_events(plan: Plan) -> Plan:
    """The plan with events in the place of what RETURN asks for; its matches are the same.

    Raises
    ------
    UsageError
        ``ACEP-U148``: results of queries in CEL name no events.
    """
    if plan.query.is_algebra:
        raise UsageError(
            "the results of a query in CEL name no events",
            code="ACEP-U148",
            hint="say with SELECT which attributes results have, or ask `why`",
        )
    return replace(plan, query=replace(plan.query, outputs=()))


def listed(tables: Iterable[pa.Table], plan: Plan, late: LateEvents) -> Listed:
    """Tables of matches with their events.

    Parameters
    ----------
    tables : iterable of pyarrow.Table
        Matches, with structs in the places of events: ``ROW`` first, then their columns.
    plan : Plan
        As ``showing_events`` gives it.
    late : LateEvents
        Those that are not counted in the row numbers.
    """
    variables = (None,) if plan.query.is_regex else plan.automaton.shown
    for table in tables:
        yield table, _rows(table, variables, late)


def numbered(pairs: Listed) -> Iterator[pa.Table]:
    """The events of all matches, which are numbered in order."""
    first = 0
    for table, events in pairs:
        yield events.set_column(0, events.column_names[0], pc.add(events.column(0), first))
        first += table.num_rows


def of_match(pairs: Listed, match: Match) -> pa.Table:
    """The events of the match of this number.

    Raises
    ------
    UsageError
        ``ACEP-U148``: there is another match there.
    """
    first = 0
    for table, events in pairs:
        place = match.number - first
        first += table.num_rows
        if place >= table.num_rows:
            continue
        own = table.slice(place, 1).to_pylist()[0]
        found = (own["errors"], own["start"], own["end"], tuple(own.get("missing") or ()))
        if found == (match.errors, match.start, match.end, match.missing):
            chosen = events.filter(pc.equal(events.column(0), place))
            return chosen.set_column(0, events.column_names[0], pa.array([match.number] * len(chosen), pa.int64()))
    raise UsageError(
        f"match {match.number} was not found again: the events have changed, or a budget of time has bought others",
        code="ACEP-U148",
        hint="ask for the events of all matches at once: matches.events()",
    )


def _rows(table: pa.Table, variables: tuple[str | None, ...], late: LateEvents) -> pa.Table:
    """The events of a table of matches, in order of time; a missing one behind the one before it in the pattern."""
    bound = [_bound(table.column(name or "events").combine_chunks()) for name in variables]
    match, place = _missing(table, variables)
    matched = np.concatenate([*(one[0] for one in bound), match])
    places = np.concatenate([*(np.full(len(one[0]), p) for p, one in enumerate(bound)), place])
    data = pa.concat_arrays([*(one[1] for one in bound), pa.nulls(len(match), bound[0][1].type)])
    is_missing = np.arange(len(matched)) >= len(matched) - len(match)
    rows = to_numpy(pc.fill_null(data.field(0), -1))
    order = np.lexsort((is_missing, places, matched))  # as in the pattern
    order = order[np.lexsort((_before(rows[order], is_missing[order], matched[order]), matched[order]))]
    rows, is_missing = rows[order], is_missing[order]
    if late.renumbers:
        rows = late.original(rows)
    names = pa.array(variables, pa.string()).take(pa.array(places[order]))
    own = [to_arrow(matched[order]), names, pa.array(is_missing), to_arrow(rows, ~is_missing)]
    events = [field.name for field in data.type][1:]
    columns = [*own, *data.take(pa.array(order)).flatten()[1:]]
    return pa.table(columns, [*(free_name(name, events) for name in OWN), *events])


def _bound(column: pa.Array) -> tuple[Ints, pa.StructArray]:
    """The events in the column of a variable, and of which matches they are."""
    if pa.types.is_list(column.type):
        return to_numpy(pc.list_parent_indices(column)).astype(np.int64), column.flatten()
    return np.flatnonzero(to_numpy(column.is_valid())), column.drop_null()


def _missing(table: pa.Table, variables: tuple[str | None, ...]) -> tuple[Ints, Ints]:
    """The matches that lack events, and the places of the variables that these would have; one each."""
    if "missing" not in table.column_names or not table.num_rows:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    column = table.column("missing").combine_chunks()
    places = pc.index_in(column.flatten(), pa.array(variables, pa.string()))
    return to_numpy(pc.list_parent_indices(column)).astype(np.int64), to_numpy(places).astype(np.int64)


def _before(rows: Ints, is_missing: Bools, matched: Ints) -> Ints:
    """The rows; of a missing event that of the last one before it in its match, or -1: all in order of the pattern."""
    at = np.maximum.accumulate(np.where(is_missing, -1, np.arange(len(rows)))) if len(rows) else rows
    return np.where((at >= 0) & (matched[at] == matched), rows[at], -1)


def free_name(name: str, taken: list[str]) -> str:
    """The name, with as many ``_`` behind it as it takes to be no other column."""
    while name in taken:
        name += "_"
    return name


@checked
def events_at(events: Any, rows: Any, **reading: Any) -> pa.Table:
    """The events of some row numbers, with all columns.

    Parameters
    ----------
    events : as for ``Query.match``
        The input that the rows count, in its order.
    rows : column of a result, or sequence of int
        Row numbers, or lists of them; nulls are left out.
    **reading
        How files are read; see ``open_source``.

    Returns
    -------
    pyarrow.Table
        ``row`` (int64; ``row_`` where the events have such a column), then the columns of the events. In order, each
        once.

    Raises
    ------
    UsageError
        ``ACEP-U148``: there is no such row.

    Complexity: reads the events up to the last row once; memory for what is found.

    Examples
    --------
    >>> from acep_approx import QuerySet
    >>> events = [{"ts": 1, "type": "A", "x": 5}, {"ts": 2, "type": "C", "x": 6}, {"ts": 3, "type": "B", "x": 7}]
    >>> desk = QuerySet()
    >>> _ = desk.add("PATTERN SEQ(A a, B b) WITHIN 5", id="ab")
    >>> found = desk.match(events)["ab"]
    >>> events_at(events, found["b"]).to_pylist()
    [{'row': 2, 'ts': 3, 'type': 'B', 'x': 7}]
    """
    wanted, source = _numbers(rows), open_source(events, **reading)
    parts, first = [], 0
    for batch in source.batches(source.readable.names) if len(wanted) else ():
        mine = wanted[np.searchsorted(wanted, first) : np.searchsorted(wanted, first + batch.num_rows)]
        if len(mine):
            columns = [encode_text(column).take(to_arrow(mine - first)) for column in batch.columns]
            parts.append(pa.RecordBatch.from_arrays(columns, names=batch.schema.names))
        first += batch.num_rows
        if first > wanted[-1]:
            break
    if len(wanted) and (wanted[-1] >= first or wanted[0] < 0):
        wrong = int(wanted[-1] if wanted[-1] >= first else wanted[0])
        raise UsageError(
            f"there is no row {wrong} in {first:,} events", code="ACEP-U148", hint="give the events that were matched"
        )
    table = one_table(parts).cast(source.readable) if parts else source.readable.empty_table()
    return table.add_column(0, free_name("row", source.schema.names), to_arrow(wanted))


def _numbers(rows: Any) -> Ints:
    column = rows.combine_chunks() if isinstance(rows, pa.ChunkedArray) else rows
    try:
        column = column if isinstance(column, pa.Array) else pa.array(column)
    except (*REFUSED, LookupError) as error:  # such as of a frame, which has no items by number
        raise UsageError(
            f"rows is {rows!r:.80}: {error}", code="ACEP-U148", hint="give the column of a variable, or whole numbers"
        ) from error
    while pa.types.is_list(column.type):
        column = column.flatten()
    if pa.types.is_null(column.type):
        return np.zeros(0, np.int64)
    if not pa.types.is_integer(column.type):
        raise UsageError(
            f"values of type {column.type} are no row numbers",
            code="ACEP-U148",
            hint="give the column of a variable, found without bind or RETURN",
        )
    try:
        found: Ints = np.unique(to_numpy(pc.drop_null(column).cast(pa.int64())))
    except pa.ArrowInvalid as error:
        raise UsageError(
            f"there is no such row: {error}", code="ACEP-U148", hint="give the events that were matched"
        ) from error
    return found
