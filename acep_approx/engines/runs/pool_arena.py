"""The arrays that the runs of the current key live in: a table of pools, the words of their columns, and indexes.

Functions that the kernel asks for are called with runs that stand here, before these take steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.engines.runs import membership
from acep_approx.engines.runs.event_columns import Kind, Texts
from acep_approx.engines.runs.programs import MAX_TEMPORARIES, Operand
from acep_approx.engines.runs.step_code import NOTHING
from acep_approx.engines.runs.tables import RunTables
from acep_approx.kernels.runs import layout, records, vm, waiting
from acep_approx.kernels.runs import pools as kp
from acep_approx.query.evaluate import plain_result

FIRST_ROOM = 64


class PoolArena:
    """Pools that grow, one per state and number of errors.

    Parameters
    ----------
    tables : RunTables

    Attributes
    ----------
    table : int64 array, shape (pools * POOL,)
        See ``kernels.runs.pools``.
    words : int64 array
        Scalars and temporary columns first, then the columns of each pool.
    """

    def __init__(self, tables: RunTables) -> None:
        self.tables = tables
        self.table = self._first_table()
        self.words: Ints = np.zeros(int(tables.pools_at + self._widths(self.rows).sum()), np.int64)
        self._index = np.zeros(0, np.int64)
        self._buckets = np.full(2 * 4096, -1, np.int64)
        self._write_constants()
        self.index_all()

    def _first_table(self) -> Ints:
        rows = np.zeros((len(self.tables.pools), kp.POOL), np.int64)
        for number, pool in enumerate(self.tables.pools):
            rows[number, kp.ROOM] = FIRST_ROOM if number else 1  # what has bound nothing
            rows[number, [kp.MERGE, kp.FIELDS, kp.ALIKE]] = pool.merge, pool.fields, pool.alike
            rows[number, [kp.OLDEST, kp.IS_PROBED]] = -kp.NEVER, pool.is_probed
            rows[number, kp.WAITS_FOR] = pool.waits_for
            rows[number, kp.KEYS] = len(pool.keys)
            rows[number, kp.KEY : kp.KEY + len(pool.keys)] = pool.keys
        self._set_bases(rows)
        rows[0, [kp.RUNS, kp.CHILDREN]] = 1
        return rows.ravel()

    @staticmethod
    def _widths(rows: Ints) -> Ints:
        """Words that each pool takes."""
        widths: Ints = rows[:, kp.ROOM] * (kp.COLUMNS + rows[:, kp.FIELDS])
        return widths

    def _set_bases(self, rows: Ints) -> None:
        rows[:, kp.BASE] = self.tables.pools_at + np.concatenate(([0], np.cumsum(self._widths(rows))[:-1]))

    def _write_constants(self) -> None:
        constants = self.tables.scalars.constants
        self.words[self.tables.constants_at :][: len(constants)] = constants
        start, room = self.table[[kp.BASE, kp.ROOM]]
        self.words[start + room : start + 2 * room] = -1  # no lineage

    @property
    def rows(self) -> Ints:
        """The table, a row per pool."""
        return self.table.reshape(-1, kp.POOL)

    @property
    def fields(self) -> Ints:
        """Per pool its columns behind start and link."""
        fields: Ints = self.rows[:, kp.FIELDS]
        return fields

    @property
    def held(self) -> int:
        """Words of all runs, but for the start."""
        rows = self.rows[1:]
        return int(((kp.COLUMNS + rows[:, kp.FIELDS]) * rows[:, kp.RUNS]).sum())

    def record(self) -> records.Pools:
        """What kernels take."""
        return records.Pools(self.table, self.words, self.words.view(np.float64), self._index, self._buckets)

    def grow(self, number: int) -> None:
        """Double the room of a pool."""
        moved = self.table.copy().reshape(-1, kp.POOL)
        moved[number, kp.ROOM] *= 2
        self._set_bases(moved)
        words = np.zeros(int(self.tables.pools_at + self._widths(moved).sum()), np.int64)
        words[: self.tables.pools_at] = self.words[: self.tables.pools_at]
        kp.grow_pool(self.table, moved.ravel(), self.words, words)
        self.table, self.words = moved.ravel(), words
        self.index_all()

    def grow_buckets(self, wanted: int, stamp: int) -> None:
        """Make room to remember so many children of the current event, whose lowest stamp is ``stamp``."""
        self._buckets = np.full(2 << max(2 * wanted - 1, 1).bit_length(), -1, np.int64)
        kp.hash_again(self.record(), stamp)

    def index_all(self) -> None:
        """Make indexes with room for all runs that the pools can hold."""
        rows, at = self.rows, 0
        for number, pool in enumerate(self.tables.pools):
            room = int(rows[number, kp.ROOM])
            rows[number, [kp.INDEX, kp.INDEX_SIZE]] = at, 2 * room if pool.across else 0
            at += 3 * room + 1 if pool.across else 0
            rows[number, [kp.BOUNDS, kp.BOUNDED]] = at, 0
            at += -(-room // waiting.PART) if pool.waits_for != NOTHING else 0
        self._index = np.zeros(max(at, 1), np.int64)
        for number, pool in enumerate(self.tables.pools):
            if pool.across:
                kp.index_again(self.record(), number)


def call_functions(arena: PoolArena, control: Ints) -> None:
    """Call the functions of the current source, over columns of the current block, and let the kernel go on.

    Raises
    ------
    DataError
        ``ACEP-D203``: a result that is not as long as the block.

    Complexity: O(runs of the block x arguments), and what the functions take.
    """
    tables, words = arena.tables, arena.words
    source, n = int(control[layout.SOURCE]), int(control[layout.ASK])
    place = tables.tables[tables.shape[layout.SOURCES] + source * layout.SOURCE_WORDS + layout.SOURCE_POOL]
    pool = arena.rows[place]
    first, room = int(pool[kp.BASE] + control[layout.OFFSET]), int(pool[kp.ROOM])

    texts = tables.scalars.columns.texts

    def column(operand: Operand) -> Ints:
        if operand.place == vm.SCALAR:
            return np.full(n, words[tables.scalars.address(operand.number)])
        at = first + (kp.COLUMNS + operand.number) * room
        return words[at : at + n].copy()

    for number in tables.calls_of_sources[source]:
        called = tables.scalars.calls[number]
        at = tables.temporaries_at + (MAX_TEMPORARIES + 1 + number) * vm.BLOCK
        if called.name == membership.NAME:
            item, several = called.arguments
            words[at : at + n] = membership.members(column(item), item.kind, column(several), texts.values)
            continue
        function = tables.options.functions[called.name]
        result = function.compute(*(_argument(column(one), one.kind, texts) for one in called.arguments))
        values, is_known = plain_result(function, result, n)
        if function.holds == "text":
            words[at : at + n] = texts.encode(pa.array(values, pa.string(), mask=~is_known))
        elif function.holds == "float":
            words[at : at + n] = values.view(np.int64)
        else:
            words[at : at + n] = np.where(is_known, values.astype(np.int64), vm.NULL)
    control[layout.CALLED] = 1


def _argument(words: Ints, kind: Kind, texts: Texts) -> npt.NDArray[Any]:
    """Words of the block machine as functions get them: whole numbers with NULL among them as floats."""
    if kind == "float":
        return words.view(np.float64)
    is_null = words == vm.NULL
    if kind == "text":
        values = texts.values
        return np.array([None if word == vm.NULL else values[word] for word in words.tolist()], object)
    if kind in ("time", "duration"):
        return words.view("datetime64[us]" if kind == "time" else "timedelta64[us]")  # its NaT is our NULL
    if kind == "truth" and not is_null.any():
        return words.astype(np.bool_)
    return np.where(is_null, np.nan, words) if is_null.any() else words
