"""The matches that a page holds, and their events.

All matches, or some of each number of errors, evenly over the stream. Events are read once more, and only those that
are shown are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.automaton.algebra import attribute_of
from acep_approx.errors import AcepError
from acep_approx.events.columns import can_be_text, integers, readable
from acep_approx.events.counts import said
from acep_approx.events.roles import Roles
from acep_approx.events.source import BATCH_ROWS, Source
from acep_approx.events.stream import as_they_come, read_events
from acep_approx.events.writing.tables import gathered_table, plain_text
from acep_approx.pages.explorer import EventShown, MatchShown
from acep_approx.results.explorer.explorable import Explorable, by_rows, keys_of
from acep_approx.why.of_algebra import Chains, Run
from acep_approx.why.place import find_places, tick_text

MOST_MATCHES, MOST_EVENTS = 2_000, 40
"""Matches of a page, and events of each."""
LISTED, KEPT = 5_000_000, 20_000
"""Of up to ``LISTED`` matches a page chooses from all; up to ``KEPT`` are kept in memory while it chooses."""
OWN = ("errors", "start", "end", "missing", "times")
"""Columns of matches that are not values of the query's."""
RUNS = 100
"""Runs that are followed for each result."""


@dataclass(frozen=True)
class Listing:
    """Some of the matches of a query.

    Attributes
    ----------
    matches : list of MatchShown
        In the order of results.
    columns : tuple of str
        Names of their values.
    note : str
        How they were chosen; empty where all are there.
    """

    matches: list[MatchShown]
    columns: tuple[str, ...]
    note: str


def listing(found: Explorable, total: int, query: int = 0, most: int = MOST_MATCHES) -> Listing:
    """Choose matches.

    Parameters
    ----------
    found : Explorable
    total : int
        How many there are.
    query : int
        Number of the query on the page.
    most : int
        Most matches.

    Complexity: lists all matches once where there are at most ``KEPT``, twice where there are at most ``LISTED``; else
    the first ones. Memory for those chosen and a number for each, or for all of up to ``KEPT``.
    """
    is_first = total > LISTED or (found.question.limit is not None and found.question.limit < total)
    number = min(most, total if found.question.limit is None else found.question.limit)
    plain = by_rows(found)
    if not is_first and total <= KEPT:
        every = gathered_table(plain.tables())
        chosen = spread(errors_of(every), number)
        rows, seen = every.take(pa.array(chosen)), every.num_rows
    else:
        chosen = np.arange(number) if is_first else spread(np.concatenate(list(map(errors_of, plain.tables()))), number)
        rows, seen = _rows(plain, chosen, is_first=is_first)
    if found.plan.query.is_algebra:
        columns, values = value_columns(rows, keys_of(found))
    elif found.plan is plain.plan:
        columns, values = (), []
    else:
        # with what RETURN asks for, where it says that of each match
        returned, mine = _rows(found.asking(bind=None, limit=None), chosen, is_first=is_first)
        # matches of an automaton whose registers are equal are one result: these cannot be told apart by number
        is_apart = not found.plan.query.is_machine if is_first else mine == seen
        columns, values = value_columns(returned, keys_of(found)) if is_apart else ((), [])
    named = () if found.plan.query.is_algebra else (*found.plan.automaton.shown, "events")
    names = [name for name in named if name in rows.column_names]
    matches = list(shown(rows, query, rows.column_names[: len(keys_of(found))], names, values))
    note = ""
    if len(matches) < total:
        some = "the first ones" if is_first else "some of each number of errors, evenly over the stream"
        note = f"The table holds {len(matches):,} of {said(total)} matches: {some}. The bars count all match points."
    return Listing(matches, columns, note)


def _rows(found: Explorable, chosen: Ints, *, is_first: bool) -> tuple[pa.Table, int]:
    """The matches of some numbers, and how many there were; where these are the first ones, no others are found."""
    tables, seen = [], 0
    with closing(found.tables()) as coming:  # type: ignore[type-var]
        for table in coming:
            low, high = np.searchsorted(chosen, [seen, seen + table.num_rows])
            tables.append(table.take(pa.array(chosen[low:high] - seen)))
            seen += table.num_rows
            if is_first and seen and high == len(chosen):
                break
    return gathered_table(tables), seen


def errors_of(table: pa.Table) -> Ints:
    """The errors of each match; of results that have none 0."""
    if "errors" not in table.column_names:
        return np.zeros(table.num_rows, np.int64)
    return integers(table, "errors")


def value_columns(table: pa.Table, keys: Sequence[str]) -> tuple[tuple[str, ...], list[tuple[str | None, ...]]]:
    """Names of the columns that hold values of the query's, and these by row."""
    names = tuple(name for name in table.column_names[len(keys) :] if name not in OWN)
    columns = [texts(table.column(name)) for name in names]
    return names, list(zip(*columns, strict=True)) if columns else []


def shown(
    table: pa.Table,
    query: int,
    keys: Sequence[str | None],
    names: Sequence[str],
    values: Sequence[tuple[str | None, ...]],
) -> Iterator[MatchShown]:
    """Rows of a table of matches as a page shows them.

    Parameters
    ----------
    table : pyarrow.Table
    query : int
        Number of the query on the page.
    keys : sequence of str or None
        The columns of the keys; None: it has no such key.
    names : sequence of str
        The columns of the variables.
    values : sequence
        Other values by row; empty: there are none.
    """
    starts, ends = (table.column(name).cast(pa.int64()).to_pylist() for name in ("start", "end"))
    key = [[None] * table.num_rows if name is None else texts(table.column(name)) for name in keys]
    keyed: list[tuple[str | None, ...]] = list(zip(*key, strict=True)) if key else [()] * table.num_rows
    rows = table.select([n for n in ("missing", *names) if n in table.column_names]).to_pylist()
    together = zip(errors_of(table).tolist(), starts, ends, keyed, rows or [{}] * table.num_rows, strict=True)
    for at, (errors, start, end, mine, row) in enumerate(together):
        bound = []
        for name in names:
            value, variable = row[name], "" if name == "events" else name
            places = value if isinstance(value, list) else [] if value is None else [value]
            bound += [(variable, place) for place in places]
        events, hidden = bounded(sorted(bound, key=lambda item: item[1]))
        cells = values[at] if values else ()
        yield MatchShown(query, errors, start, end, mine, tuple(row.get("missing") or ()), events, hidden, cells)


def bounded(bound: Sequence[tuple[str, int]]) -> tuple[tuple[tuple[str, int], ...], int]:
    """Variables with rows, of many the first and the last ones; and how many these are less."""
    if len(bound) <= MOST_EVENTS:
        return tuple(bound), 0
    half = MOST_EVENTS // 2
    return (*bound[:half], *bound[-half:]), len(bound) - 2 * half


def spread(kinds: Ints, most: int) -> Ints:
    """Places of at most ``most`` items: rare kinds whole, the others evenly.

    Parameters
    ----------
    kinds : numpy.ndarray of int64
        The kind of each item.
    most : int
        Not negative.

    Returns
    -------
    numpy.ndarray of int64
        In order. The same for the same arguments.

    Examples
    --------
    >>> spread(np.array([0, 0, 0, 0, 1, 0, 0, 0, 0]), 4).tolist()
    [0, 2, 4, 6]
    >>> spread(np.array([0, 1]), 9).tolist()
    [0, 1]
    """
    if len(kinds) <= most:
        return np.arange(len(kinds))
    names, counts = np.unique(kinds, return_counts=True)
    chosen, left = [], most
    for place, kind in enumerate(np.argsort(counts, kind="stable").tolist()):
        share = min(int(counts[kind]), left // (len(names) - place))
        if share:
            mine = np.flatnonzero(kinds == names[kind])
            chosen.append(mine[np.arange(share) * len(mine) // share])
        left -= share
    places: Ints = np.sort(np.concatenate(chosen)) if chosen else np.zeros(0, np.int64)
    return places


def with_events(found: Explorable, chosen: Listing, most: int, *, is_time: bool) -> Listing:
    """The results with the events that they were derived from, as far as they are found.

    Parameters
    ----------
    found : Explorable
        Of a query in CEL.
    chosen : Listing
    most : int
        Results whose events are looked for, evenly over all.
    is_time : bool
        Whether ticks are real time.

    Complexity: reads the events once; of each result those within two windows are kept, and ``RUNS`` runs followed.
    """
    numbers = spread(np.zeros(len(chosen.matches), np.int64), min(most, len(chosen.matches))).tolist()
    ends = [chosen.matches[number].end for number in numbers]
    asked = [(tick_text(end, is_time=True) if is_time else end, None) for end in ends]
    try:
        places = find_places(found.plan, found.source, asked, found.question.roles, sort=found.question.sort)
    except AcepError:  # the page is right without them
        return chosen
    matches = list(chosen.matches)
    for number, place in zip(numbers, places, strict=True):
        match, chains = matches[number], Chains(place)
        chains.left = RUNS
        runs = [*chains.results(match.start, match.end)]
        run = next((one for one in runs if _values(one, chosen.columns) == match.values), None)
        if run is not None:
            rows = [("", int(place.rows[at])) for at in dict.fromkeys(at for _, at in run.path)]
            events, hidden = bounded(rows)
            matches[number] = replace(match, events=events, hidden=hidden)
    known = sum(bool(match.events) for match in matches)
    told = "" if known == len(matches) else f"The events of {known:,} of {len(matches):,} results are shown."
    return replace(chosen, matches=matches, note=" ".join(filter(None, (chosen.note, told))))


def _values(run: Run, columns: tuple[str, ...]) -> tuple[str | None, ...]:
    """The values of a result as a page shows them."""
    held = {attribute_of(register): value for register, value in run.values.items()}
    return tuple(texts(pa.chunked_array([pa.array([held[name].as_py()], held[name].type)]))[0] for name in columns)


# --- events ---------------------------------------------------------------------------------------------

MOST_COLUMNS, LONGEST = 6, 120
"""Columns shown that no query names, and characters of a value."""


@dataclass(frozen=True)
class EventColumns:
    """Which values of events are shown.

    Attributes
    ----------
    names : tuple of str
        For people: attributes as queries name them, then other columns.
    columns : tuple of str
        Their columns.
    used : int
        The first so many are those that queries name.
    """

    names: tuple[str, ...]
    columns: tuple[str, ...]
    used: int

    @classmethod
    def of(cls, roles: Roles, schema: pa.Schema, named: Iterable[str], hidden: Iterable[str]) -> EventColumns:
        """Those that are named, and some others of the input.

        Parameters
        ----------
        roles : Roles
        schema : pyarrow.Schema
        named : iterable of str
            Attributes; those that are no column are left out.
        hidden : iterable of str
            Attributes that are shown elsewhere: the keys.
        """
        away = {roles.time, roles.type, *map(roles.column, hidden)}
        used = [n for n in dict.fromkeys(named) if roles.column(n) in schema.names and roles.column(n) not in away]
        taken = away | set(map(roles.column, used))
        others = [name for name in readable(schema).names if name not in taken and can_be_text(schema.field(name).type)]
        names = (*used, *others[:MOST_COLUMNS])
        columns = (*map(roles.column, used), *others[:MOST_COLUMNS])
        return cls(names, columns, len(used))


def events_at(
    source: Source, roles: Roles, rows: Ints, shown: EventColumns, *, sort: bool, is_in_order: bool = True
) -> dict[int, EventShown]:
    """The events of some rows.

    Parameters
    ----------
    source : Source
        Read until the last of them.
    roles : Roles
    rows : numpy.ndarray of int64
        As results name them, in order, all different.
    shown : EventColumns
    sort : bool
        Whether events are sorted by time first.
    is_in_order : bool
        Whether they must come in order of time.

    Complexity: reads the columns shown; memory for the rows.
    """
    found: dict[int, EventShown] = {}
    if not len(rows):
        return found
    types = () if roles.type is None else (roles.type,)
    columns = tuple(dict.fromkeys([*types, *shown.columns]))
    if is_in_order:
        batches = read_events(source, roles, columns=columns, sort=sort)
    else:
        batches = as_they_come(source, roles, list(columns), BATCH_ROWS, 0)
    for batch in batches:
        numbers = source.late.original(np.arange(batch.first_row, batch.first_row + len(batch)))
        places = np.flatnonzero(np.isin(numbers, rows, assume_unique=True))
        if len(places):
            data = batch.data.take(pa.array(places))
            read = [texts(data.column(name)) for name in (*types, *shown.columns)]
            kinds = read.pop(0) if types else [None] * len(places)
            cells = zip(*read, strict=True) if read else iter([()] * len(places))
            ticks = batch.ticks[places].tolist()
            for row, tick, kind, values in zip(numbers[places].tolist(), ticks, kinds, cells, strict=True):
                found[row] = EventShown(tick, kind, tuple(values))
        if len(found) == len(rows):
            break
    return found


def in_time_order(matches: list[MatchShown], events: Mapping[int, EventShown]) -> list[MatchShown]:
    """The matches with their events in order of time, whatever their numbers; those that are not known stay."""
    return [
        replace(match, events=tuple(sorted(match.events, key=lambda bound: events[bound[1]].tick)))
        if all(row in events for _, row in match.events)
        else match
        for match in matches
    ]


def texts(column: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """Values for people."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    type_ = column.type
    if pa.types.is_dictionary(type_):
        column = column.cast(type_.value_type)
    if pa.types.is_struct(column.type):
        values: list[str | None] = [None if value is None else str(value) for value in column.to_pylist()]
    else:
        values = plain_text(column, ", ").to_pylist()
    return [value if value is None or len(value) <= LONGEST else value[: LONGEST - 1] + "…" for value in values]
