"""From raw results that go and come to a changelog: what really changed, in words that users know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools, Ints
from acep_approx.errors import DataError
from acep_approx.events.columns import to_arrow, to_numpy
from acep_approx.kernels.words import Letters, Words, add_words, fold_numbers, pair_off, write_words
from acep_approx.matching.outputs.bind import BoundEvents, Wide
from acep_approx.matching.outputs.output import SLOT, Stamps
from acep_approx.matching.outputs.returns import ReturnColumns
from acep_approx.matching.outputs.tables import BOUND, ENDS, REGISTER
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.renumber import renumbered, renumbered_column
from acep_approx.revisions.names import NULL, mixed, words_of, words_of_ids, words_of_whole
from acep_approx.revisions.segments import Lookup, Tail

INSERT, DELETE = "+I", "-D"
NO_SEEDS = np.zeros(2, np.uint64)
NO_PLACES = np.zeros(0, np.int64)
ADDED = ("op", "match_id")
"""Columns of a changelog behind those of the results."""
NOT_COMPARED = ("missing", "position")
"""Columns of raw results that follow from the others, or that a change far away moves."""


@dataclass
class Changed:
    """Raw results that are taken back, and those that come; rows that are in both have not changed.

    ``new``: those of events that come behind all others, which are put out last.
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
        # results that differ may be shown alike where events change, or where not all that tells them apart is shown
        self._may_look_alike = id is not None or self._is_algebra or bool(self._returns)
        self._of_best = tuple(name for name in raw if name.startswith(BOUND))  # what match points are read of, no more
        if binds and not (self._is_algebra or self._returns):
            self._events.check_apart(self._variables, pipeline.preparer.key_columns)
        seed = blake2b(f"{pipeline.plan.fingerprint()} {pipeline.output}".encode(), digest_size=16).digest()
        self._seeds = np.frombuffer(seed, np.uint64).copy()
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
        high, low = _hashes(arrays_of(results.select(names)), results.num_rows)
        there = [_hashes(arrays_of(table.select(names)), table.num_rows) for table in others if table.num_rows]
        if not there:
            return results
        others_high, others_low = (np.concatenate(side) for side in zip(*there, strict=True))
        return results.filter(pa.array(~(np.isin(high, others_high) & np.isin(low, others_low))))

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""
        self._know()
        if self._nothing is None:
            none = self._pipeline.nothing()
            self._nothing = self._table(arrays_of(none), 0, 0, Tail()) if self._pipeline.stamps.is_raw else none
        return self._nothing

    def came(self, raw: pa.Table, tail: Tail) -> pa.Table:
        """Raw results that come, and will not go."""
        self._know()
        return self._table(arrays_of(raw), 0, raw.num_rows, tail)

    def in_rows(self, stamped: pa.Table, tail: Tail) -> pa.Table:
        """Results that show all but the rows of events: these have places."""
        if tail.in_order * tail.gap > tail.last_place:
            return stamped
        places = self._places(arrays_of(stamped.select(self._variables)), self._variables)
        lookup = Lookup(tail.parts(), places, self._schema, tail)
        return renumbered(stamped, self._variables, lookup.arrivals)

    def table(self, changed: Changed, tail: Tail) -> pa.Table:
        """What changed: first what is taken back, then what came."""
        self._know()
        whole = self._joined([*changed.gone, *changed.came, *changed.new])
        gone, rows, raw = sum(table.num_rows for table in changed.gone), whole.num_rows, arrays_of(whole)
        if gone:
            stays = not_shared(raw, gone, rows)
            whole = pa.RecordBatch.from_arrays([*raw.values()], names=[*raw]).take(to_arrow(np.flatnonzero(stays)))
            gone, rows, raw = int(stays[:gone].sum()), whole.num_rows, dict(zip(raw, whole.columns, strict=True))
        return self._table(raw, gone, rows, tail)

    def _know(self) -> None:
        """Take over the types that the columns have got by now."""
        if self._schema is not self._pipeline.schema:
            self._schema, self._nothing = self._pipeline.schema, None
            self._events.know(self._schema)
            self._stamps.know(self._schema)

    def _joined(self, tables: Sequence[pa.Table]) -> pa.Table:
        whole = [table for table in tables if table.num_rows]
        if not whole:
            return self._pipeline.nothing()
        return pa.concat_tables(whole) if len(whole) > 1 else whole[0]

    def _table(self, raw: Arrays, gone: int, rows: int, tail: Tail) -> pa.Table:
        is_known = not self.needed and tail.in_order * tail.gap > tail.last_place  # no event is looked up
        places = NO_PLACES if is_known else self._places(raw, self.places)
        lookup = Lookup(tail.parts() if len(places) else (), places, self._schema, tail)
        columns = self._columns(raw, rows, lookup)
        if not self._is_changelog:
            return pa.table(columns)
        if taken := columns.keys() & set(ADDED):
            raise DataError(
                f"{min(taken)!r} is a column of the results and of the changelog",
                code="ACEP-D043",
                hint="choose another name for the variable, the output or the key",
            )
        ops = _texts((DELETE * gone + INSERT * (rows - gone)).encode(), len(INSERT))
        words = self._words(raw, rows, lookup)
        letters = np.empty(32 * rows, np.uint8)
        for piece in write_words.pieces(rows):
            write_words(words[0][piece], words[1][piece], self._seeds, letters[32 * piece.start :])
        table = pa.table({**columns, "op": ops, "match_id": _texts(letters, 32)})
        return _without_pairs(table, words[0], gone) if self._may_look_alike else table

    def _places(self, raw: Arrays, names: Sequence[str]) -> Ints:
        return np.concatenate([NO_PLACES, *(_values(raw[name]) for name in names)])

    def _columns(self, raw: Arrays, rows: int, lookup: Lookup) -> dict[str, pa.Array]:
        if self._is_algebra:  # attributes may have any name, and stand for no events
            times = {name: self._stamps.time(to_numpy(raw[name])) for name in ("start", "end")}
            return {name: times.get(name, column) for name, column in raw.items() if name != SLOT}
        columns = dict(self._stamps.keys(to_numpy(raw[SLOT])))
        for name, column in raw.items():
            if name in ("start", "end"):
                columns[name] = self._stamps.time(to_numpy(column))
            elif name not in (SLOT, "position", *self._named) and not name.startswith((REGISTER, BOUND)):
                columns[name] = column
            elif name == "row":
                columns |= self._row(column, lookup, columns)
        if self._pipeline.output.binds or (self._of_best and self._returns):
            columns |= self._shown(raw, rows, lookup)
        return columns

    def _row(self, places: pa.Array, lookup: Lookup, others: dict[str, pa.Array]) -> dict[str, pa.Array]:
        values = to_numpy(places)
        if self._events.names:
            return self._events.column(values, lookup.take, list(others))
        return {"row": to_arrow(lookup.arrivals(values))}

    def _shown(self, raw: Arrays, rows: int, lookup: Lookup) -> dict[str, pa.Array]:
        bound = {name.removeprefix(BOUND): raw[name] for name in self._of_best or self._variables}
        if self._returns:
            registers = {name.removeprefix(REGISTER): raw[name] for name in raw if name.startswith(REGISTER)}
            return self._returns.columns(bound, lookup, registers, rows)
        if self._events.names:
            return self._events.columns(bound, lookup)
        return {name: renumbered_column(column, lookup.arrivals) for name, column in bound.items()}

    # --- ids ------------------------------------------------------------------------------------------------

    def _words(self, raw: Arrays, rows: int, lookup: Lookup) -> tuple[Words, Words]:
        """Two words for each result, of which its id is made: of what it binds, by the names of events, and of when."""
        output, seeds = self._pipeline.output, self._seeds
        high, low = (np.full(rows, seed) for seed in seeds)
        places = self._places(raw, self._named)
        _add(self._names(places, lookup), [_rows_of(raw[name]) for name in self._named], (high, low))
        with np.errstate(over="ignore"):
            for name in raw if output.binds else ():
                if name.startswith(REGISTER):
                    words = words_of(raw[name])
                    high, low = mixed(high + words[0]), mixed(low + words[1])
            for name in ("start", "end") if output.binds else ("end",):
                _fold(raw[name], seeds, (high, low))
            if output.by_errors:
                _fold(raw["errors"], NO_SEEDS, (high, low))
        return high, low

    def _names(self, places: Ints, lookup: Lookup) -> tuple[Words, Words]:
        """Two words that stand for each event: for its id, and which one it is of those that have it.

        Without ids for the number of its row. Where nothing looks at ids for the time, too: then nothing changes it.
        """
        if self._id is None:
            return words_of_whole(lookup.arrivals(places))
        high, low = words_of_ids(lookup.take(self._id, places, np.zeros(len(places), np.bool_)))
        if lookup.has_twins:
            time, number = lookup.ticks(places), lookup.twins(self._id, places)
            high, low = high + mixed(time.astype(np.uint64) ^ NULL), low + mixed(time.astype(np.uint64))
        else:
            number = lookup.ties(places)
        more = number.astype(np.uint64)
        return high + more * NULL, low + mixed(more)


Arrays = Mapping[str, pa.Array]
"""The columns of raw results, each in one piece."""


def arrays_of(raw: pa.Table) -> dict[str, pa.Array]:
    """The columns of raw results."""
    parts = raw.to_batches()
    if len(parts) > 1:
        parts = raw.combine_chunks().to_batches()
    columns = parts[0].columns if parts else [column.combine_chunks() for column in raw.columns]
    return dict(zip(raw.column_names, columns, strict=True))


def _texts(letters: bytes | Letters, each: int) -> pa.Array:
    """A column of texts of ``each`` letters, which stand one after the other."""
    offsets = np.arange(0, len(letters) + 1, each, dtype=np.int32)
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(letters))


def _without_pairs(table: pa.Table, word: Words, gone: int) -> pa.Table:
    """A changelog without rows that go and come again alike: an update may leave what is shown of a match as it was.

    Complexity: O(rows); Python looks only at matches that go and come. Their ids are made of ``word``, and more.
    """
    both = np.intersect1d(word[:gone], word[gone:])
    if not len(both):
        return table
    went, came = np.flatnonzero(np.isin(word[:gone], both)), gone + np.flatnonzero(np.isin(word[gone:], both))
    shown = table.drop_columns(["op"])
    waiting: dict[str, list[int]] = {}
    for place, row in zip(went.tolist(), shown.take(to_arrow(went)).to_pylist(), strict=True):
        waiting.setdefault(repr(row), []).append(place)
    pairs: list[int] = []
    for place, row in zip(came.tolist(), shown.take(to_arrow(came)).to_pylist(), strict=True):
        if waiting.get(repr(row)):
            pairs += (waiting[repr(row)].pop(), place)
    return table.take(to_arrow(np.delete(np.arange(table.num_rows), pairs))) if pairs else table


def not_shared(columns: Arrays, gone: int, rows: int) -> Bools:
    """Of raw results, those that go before those that come, which are not in both: as often as both have them.

    Complexity: O(n). Rows are held against each other by hashes of 128 bits.
    """
    first, following = np.full(1 << (2 * gone).bit_length(), -1), np.empty(gone, np.int64)
    stays = np.ones(rows, np.bool_)
    pair_off(*_hashes(columns, rows), gone, first, following, stays)
    return stays


def _hashes(columns: Arrays, rows: int) -> tuple[Words, Words]:
    """Two hashes of each row of integers and lists of integers."""
    compared = [name for name in columns if name not in NOT_COMPARED]
    numbers = [columns[name] for name in compared if not name.startswith(REGISTER)]
    others = [columns[name] for name in compared if name.startswith(REGISTER)]
    sums = np.zeros(rows, np.uint64), np.zeros(rows, np.uint64)
    values = np.concatenate([np.zeros(0, np.int64), *map(_values, numbers)])
    words = [words_of_whole(values), *map(words_of, others)]
    high, low = (np.concatenate(half) for half in zip(*words, strict=True))
    _add((high, low), [*map(_rows_of, numbers), *([np.arange(rows)] * len(others))], sums)
    return sums


def _add(words: tuple[Words, Words], rows: Sequence[Ints], sums: tuple[Words, Words]) -> None:
    """Add the words of what stands in some columns to the sums of rows, by ``rows`` of each; a row may come often."""
    salt, row = np.repeat(_salts(len(rows)), [*map(len, rows)]), np.concatenate([np.zeros(0, np.int64), *rows])
    for piece in add_words.pieces(len(row)):
        add_words(words[0][piece], words[1][piece], row[piece], salt[piece], *sums)


def _fold(values: pa.Array, seeds: Words, words: tuple[Words, Words]) -> None:
    """Take one number of each row into its two words."""
    numbers = to_numpy(values).astype(np.int64)
    for piece in fold_numbers.pieces(len(numbers)):
        fold_numbers(numbers[piece], seeds, words[0][piece], words[1][piece])


@cache
def _salts(columns: int) -> Words:
    return mixed(np.arange(1, columns + 1, dtype=np.uint64))


def _values(column: pa.Array) -> Ints:
    """The values of a column of integers, without nulls; of lists their items."""
    if pa.types.is_list(column.type):
        column = column.flatten()
    values: Ints = to_numpy(column.drop_null() if column.null_count else column)
    return values


def _rows_of(column: pa.Array) -> Ints:
    """The row of each value: of lists of their items, else without nulls."""
    if pa.types.is_list(column.type):
        return np.repeat(np.arange(len(column)), to_numpy(column.value_lengths()))
    return np.flatnonzero(to_numpy(pc.is_valid(column))) if column.null_count else np.arange(len(column))
