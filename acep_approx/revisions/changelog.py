"""From raw results that go and come to a changelog: what really changed, in words that users know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.errors import DataError
from acep_approx.events.columns import to_arrow, to_numpy
from acep_approx.matching.outputs.bind import BoundEvents, Wide
from acep_approx.matching.outputs.output import SLOT, Stamps
from acep_approx.matching.outputs.returns import ReturnColumns
from acep_approx.matching.outputs.tables import BOUND, ENDS, REGISTER
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.renumber import renumbered
from acep_approx.revisions.names import NULL, Words, mixed, words_of, words_of_ids
from acep_approx.revisions.segments import Lookup, Tail, slots_in

INSERT, DELETE = "+I", "-D"
ADDED = ("op", "match_id")
"""Columns of a changelog behind those of the results."""
NOT_COMPARED = ("missing", "position")
"""Columns of raw results that follow from the others, or that a change far away moves."""


@dataclass
class Changed:
    """Raw results that are taken back, and those that come; rows that are in both have not changed.

    ``new``: results that come and cannot have been there before.
    """

    gone: list[pa.Table] = field(default_factory=list)
    came: list[pa.Table] = field(default_factory=list)
    new: list[pa.Table] = field(default_factory=list)


class Changelog:
    """Puts raw results out, each with what happened to it.

    Parameters
    ----------
    pipeline : Pipeline
        A raw one.
    bind : tuple of str or Wide
        Columns that stand for events in the results; none for the numbers of their rows.
    id : str, optional
        The column that names events.
    is_changelog : bool
        Whether results have the columns ``ADDED``.

    Raises
    ------
    DataError
        ``ACEP-D043``: a column of the results has the name of one of these.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        bind: tuple[str, ...] | Wide,
        id: str | None,  # noqa: A002
        *,
        is_changelog: bool,
    ) -> None:
        self._pipeline = pipeline
        self._id = id
        self._is_changelog = is_changelog
        self._schema = pipeline.schema
        self._nothing: pa.Table | None = None
        query, is_time = pipeline.plan.query, pipeline.is_time
        self._events = BoundEvents(bind, pipeline.schema, pipeline.roles, query, is_time=is_time)
        self._stamps = Stamps(pipeline.preparer, pipeline.schema, self._events, is_time=is_time)
        self._returns = ReturnColumns(query.outputs, pipeline.roles)
        binds = pipeline.output.binds
        self._is_algebra = query.is_algebra and binds
        shown = ("events",) if query.is_regex else pipeline.plan.automaton.shown
        raw = pipeline.nothing().column_names
        self._variables: Sequence[str] = shown if binds else ("row",)  # they hold places
        self._named = (*self._variables, *(name for name in ENDS if name in raw))
        self._of_best = tuple(name for name in raw if name.startswith(BOUND))  # what match points are read of, no more
        if binds and not (self._is_algebra or self._returns):
            self._events.check_apart(self._variables, pipeline.preparer.key_columns)
        self._seed = blake2b(f"{pipeline.plan.fingerprint()} {pipeline.output}".encode(), digest_size=16).digest()
        self.nothing()  # refuses names before anything is run

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns of the events that results are made of."""
        ids = (self._id,) if self._id is not None and self._is_changelog else ()
        return (*(self._returns.needed or self._events.names), *ids)

    @property
    def places(self) -> tuple[str, ...]:
        """The columns of raw results that hold places of events."""
        return (*self._named, *self._of_best)

    def not_among(self, results: pa.Table, others: Sequence[pa.Table]) -> pa.Table:
        """The raw results that others have not: matches by the events that they bind, points by their event."""
        output = self._pipeline.output
        is_match = (*self._pipeline.nothing().drop_columns(["errors"]).column_names,) if output.binds else ()
        names = is_match or (SLOT, "row", *(("errors",) if output.by_errors else ()))
        high, low = _hashes(results.select(names))
        there = [_hashes(table.select(names)) for table in others if table.num_rows]
        if not there:
            return results
        others_high, others_low = (np.concatenate(side) for side in zip(*there, strict=True))
        return results.filter(pa.array(~(np.isin(high, others_high) & np.isin(low, others_low))))

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""
        self._know()
        if self._nothing is None:
            none = self._pipeline.nothing()
            self._nothing = self._table(none, none, Tail())
        return self._nothing

    def table(self, changed: Changed, tail: Tail) -> pa.Table:
        """What changed: first what is taken back, then what came."""
        self._know()
        gone, came = self._joined(changed.gone), self._joined(changed.came)
        if gone.num_rows:
            gone, came = difference(gone, came)
        return self._table(gone, self._joined([came, *changed.new]), tail)

    def _know(self) -> None:
        """Take over the types that the columns have got by now."""
        if self._schema is not self._pipeline.schema:
            self._schema, self._nothing = self._pipeline.schema, None
            self._events.know(self._schema)
            self._stamps.know(self._schema)

    def _joined(self, tables: Sequence[pa.Table]) -> pa.Table:
        whole = [table for table in tables if table.num_rows]
        if len(whole) > 1:
            return pa.concat_tables(whole).combine_chunks()
        return whole[0] if whole else self._pipeline.nothing()

    def _table(self, gone: pa.Table, came: pa.Table, tail: Tail) -> pa.Table:
        raw = pa.concat_tables([gone, came]).combine_chunks() if gone.num_rows else came
        is_known = not self.needed and tail.in_order * tail.gap > tail.last_place  # no event is looked up
        places = self._places(raw, self.places) if not is_known else np.zeros(0, np.int64)
        lookup = Lookup(tail.parts() if len(places) else (), places, self._schema, tail)
        columns = self._columns(raw, lookup)
        if not self._is_changelog:
            return pa.table(columns)
        if taken := columns.keys() & set(ADDED):
            raise DataError(
                f"{min(taken)!r} is a column of the results and of the changelog",
                code="ACEP-D043",
                hint="choose another name for the variable, the output or the key",
            )
        ops = pa.DictionaryArray.from_arrays(
            to_arrow(np.repeat([0, 1], [gone.num_rows, came.num_rows])), pa.array([DELETE, INSERT])
        ).dictionary_decode()
        table = pa.table({**columns, "op": ops, "match_id": self._ids(raw, lookup)})
        return _without_pairs(table, gone.num_rows)

    def _places(self, raw: pa.Table, names: Sequence[str]) -> Ints:
        parts = [_values(raw.column(name).combine_chunks()) for name in names]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def _columns(self, raw: pa.Table, lookup: Lookup) -> dict[str, pa.Array]:
        if self._is_algebra:  # attributes may have any name, and stand for no events
            times = {name: self._stamps.time(to_numpy(raw.column(name).combine_chunks())) for name in ("start", "end")}
            shown = [name for name in raw.column_names if name != SLOT]
            return {name: times.get(name, raw.column(name).combine_chunks()) for name in shown}
        columns = dict(self._stamps.keys(slots_in(raw)))
        for name in raw.column_names:
            column = raw.column(name).combine_chunks()
            if name in ("start", "end"):
                columns[name] = self._stamps.time(to_numpy(column))
            elif name not in (SLOT, "position", *self._named) and not name.startswith((REGISTER, BOUND)):
                columns[name] = column
            elif name == "row":
                columns |= self._row(column, lookup, columns)
        if self._pipeline.output.binds or (self._of_best and self._returns):
            columns |= self._shown(raw, lookup)
        return columns

    def _row(self, places: pa.Array, lookup: Lookup, others: dict[str, pa.Array]) -> dict[str, pa.Array]:
        values = to_numpy(places)
        if self._events.names:
            return self._events.column(values, lookup.take, list(others))
        return {"row": to_arrow(lookup.arrivals(values))}

    def _shown(self, raw: pa.Table, lookup: Lookup) -> dict[str, pa.Array]:
        variables = self._of_best or self._variables
        bound = {name.removeprefix(BOUND): raw.column(name).combine_chunks() for name in variables}
        if self._returns:
            registers = {
                name.removeprefix(REGISTER): raw.column(name).combine_chunks()
                for name in raw.column_names
                if name.startswith(REGISTER)
            }
            return self._returns.columns(bound, lookup, registers, raw.num_rows)
        if self._events.names:
            return self._events.columns(bound, lookup)
        table = renumbered(pa.table(bound), self._variables, lookup.arrivals)
        return {name: table.column(name).combine_chunks() for name in self._variables}

    # --- ids ------------------------------------------------------------------------------------------------

    def _ids(self, raw: pa.Table, lookup: Lookup) -> pa.Array:
        """The id of each result: 128 bits of what it binds, by the names of the events, and of when, as hexadecimal."""
        high, low = self._words(raw, lookup)
        digits = np.stack([high, low], axis=1).astype(">u8").tobytes().hex()
        offsets = np.arange(0, len(digits) + 1, 32, dtype=np.int32)
        return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(digits.encode()))

    def _words(self, raw: pa.Table, lookup: Lookup) -> tuple[Words, Words]:
        seeds = np.frombuffer(self._seed, np.uint64)
        sums = [np.full(raw.num_rows, seed) for seed in seeds]
        names = self._names(self._places(raw, self._named), lookup)
        at = 0
        with np.errstate(over="ignore"):
            for number, name in enumerate(self._named):
                column = raw.column(name).combine_chunks()
                row = _rows_of(column)
                mine = slice(at, at + len(row))
                at += len(row)
                for half in (0, 1):
                    word = mixed(names[half][mine] + mixed(np.full(1, number + 1, np.uint64)))
                    _add(sums[half], row, word, is_list=pa.types.is_list(column.type))
            for name in raw.column_names if self._pipeline.output.binds else ():
                if name.startswith(REGISTER):
                    words = words_of(raw.column(name).combine_chunks())
                    sums = [mixed(one + two) for one, two in zip(sums, words, strict=True)]
            for name in ("start", "end") if self._pipeline.output.binds else ("end",):
                times = to_numpy(raw.column(name).combine_chunks()).astype(np.uint64)
                sums = [mixed(one + mixed(times ^ seed)) for one, seed in zip(sums, seeds, strict=True)]
            if self._pipeline.output.by_errors:
                errors = to_numpy(raw.column("errors").combine_chunks()).astype(np.uint64)
                sums = [mixed(one + mixed(errors)) for one in sums]
            return mixed(sums[0]), mixed(sums[1] ^ seeds[0])

    def _names(self, places: Ints, lookup: Lookup) -> tuple[Words, Words]:
        """Two words that stand for each event: for its id, and which one it is of those that have it.

        Without ids for the number of its row. Where nothing looks at ids for the time, too: then nothing changes it.
        """
        if self._id is None:
            values = lookup.arrivals(places).astype(np.uint64)
            return mixed(values), mixed(values ^ NULL)
        high, low = words_of_ids(lookup.take(self._id, places, np.zeros(len(places), np.bool_)))
        if lookup.has_twins:
            time, number = lookup.ticks(places), lookup.twins(self._id, places)
            high, low = high + mixed(time.astype(np.uint64) ^ NULL), low + mixed(time.astype(np.uint64))
        else:
            number = lookup.ties(places)
        more = number.astype(np.uint64)
        return high + more * NULL, low + mixed(more)


def _without_pairs(table: pa.Table, gone: int) -> pa.Table:
    """A changelog without rows that go and come again alike: an update may leave what is shown of a match as it was.

    Complexity: O(rows); Python looks only at matches that go and come.
    """
    ids = table.column("match_id")
    both = pc.is_in(ids.slice(gone), value_set=ids.slice(0, gone)) if 0 < gone < table.num_rows else None
    if both is None or not pc.any(both).as_py():
        return table
    came = gone + np.flatnonzero(to_numpy(both.combine_chunks()))
    went = np.flatnonzero(to_numpy(pc.is_in(ids.slice(0, gone), value_set=ids.take(to_arrow(came))).combine_chunks()))
    shown = table.drop_columns(["op"])
    waiting: dict[str, list[int]] = {}
    for place, row in zip(went.tolist(), shown.take(to_arrow(went)).to_pylist(), strict=True):
        waiting.setdefault(repr(row), []).append(place)
    pairs: list[int] = []
    for place, row in zip(came.tolist(), shown.take(to_arrow(came)).to_pylist(), strict=True):
        if waiting.get(repr(row)):
            pairs += (waiting[repr(row)].pop(), place)
    return table.take(to_arrow(np.delete(np.arange(table.num_rows), pairs))) if pairs else table


def difference(gone: pa.Table, came: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Two tables of raw results without the rows that they share: as often as both have them.

    Complexity: O(n log n). Rows are held against each other by hashes of 128 bits.
    """
    first = [np.concatenate(pair) for pair in zip(_hashes(gone), _hashes(came), strict=True)]
    order = np.lexsort(first)
    high, low = first[0][order], first[1][order]
    begins = np.append(True, (high[1:] != high[:-1]) | (low[1:] != low[:-1]))
    group = np.cumsum(begins) - 1
    is_old = order < gone.num_rows
    old, new = np.bincount(group[is_old], minlength=group[-1] + 1), np.bincount(group[~is_old], minlength=group[-1] + 1)
    shared = np.minimum(old, new)
    kept = []
    for side, before in ((is_old, 0), (~is_old, gone.num_rows)):
        mine = group[side]
        rank = np.arange(len(mine)) - np.searchsorted(mine, mine, side="left")
        kept.append(np.sort(order[side][rank >= shared[mine]]) - before)
    return gone.take(to_arrow(kept[0])), came.take(to_arrow(kept[1]))


def _hashes(table: pa.Table) -> tuple[Words, Words]:
    """Two hashes of each row of integers and lists of integers."""
    sums = [np.zeros(table.num_rows, np.uint64) for _ in range(2)]
    with np.errstate(over="ignore"):
        for number, name in enumerate(table.column_names):
            if name in NOT_COMPARED:
                continue
            column = table.column(name).combine_chunks()
            if name.startswith(REGISTER):
                words, row = words_of(column), np.arange(len(column))
            else:
                values, row = _values(column).astype(np.uint64), _rows_of(column)
                words = values, values ^ NULL
            for half in (0, 1):
                word = mixed(mixed(words[half]) + np.uint64(number + 1) * NULL)
                _add(sums[half], row, word, is_list=pa.types.is_list(column.type))
    return sums[0], sums[1]


def _add(sums: Words, row: Ints, values: Words, *, is_list: bool) -> None:
    """Add to the sums of rows, which come more than once where they are lists."""
    if is_list:
        np.add.at(sums, row, values)
    elif len(row) == len(sums):
        sums += values
    else:
        sums[row] += values


def _values(column: pa.Array) -> Ints:
    """The values of a column of integers, without nulls; of lists their items."""
    values: Ints = to_numpy(column.flatten() if pa.types.is_list(column.type) else column.drop_null())
    return values


def _rows_of(column: pa.Array) -> Ints:
    """The row of each value: of lists of their items, else without nulls."""
    if pa.types.is_list(column.type):
        return np.repeat(np.arange(len(column)), to_numpy(column.value_lengths()))
    return np.flatnonzero(to_numpy(pc.is_valid(column))) if column.null_count else np.arange(len(column))
