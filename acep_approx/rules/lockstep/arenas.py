"""Tables of several rules one after the other in the same arrays, so that one kernel can reach them all.

Whose arrays they were sees its own part of them, and goes on as before; what has grown is put together anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from acep_approx.arrays import Ints
from acep_approx.engines.cells.cells import Cells
from acep_approx.kernels.rules.lockstep import Detection
from acep_approx.kernels.rules.rows import DEFAULTS, ROWS, SIZES, WORDS, Rows, Statements
from acep_approx.rules.table import TableRows

NONE = np.zeros(0, np.int64)


def begins(sizes: Sequence[int]) -> list[int]:
    """Where each of several parts begins, once they stand one after the other."""
    return [*accumulate(sizes, initial=0)][:-1]


class TableArena:
    """Tables of the store in the same arrays.

    Attributes
    ----------
    tables : list of TableRows
    version : int
        Is another one whenever a table has another place.
    """

    def __init__(self) -> None:
        self.tables: list[TableRows] = []
        self.version = 0
        self._words = NONE

    def add(self, table: TableRows) -> None:
        """Take in one more table, if it is not in."""
        if table not in self.tables:
            self.tables.append(table)

    def fit(self) -> None:
        """Put the tables together, if one has got arrays of its own."""
        if all(table.words.base is self._words for table in self.tables):
            return
        self.version += 1
        parts = [table.rows for table in self.tables]
        self._words, self._ok, self._present = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("words", "ok", "present")
        )
        self._sizes = np.concatenate([part.sizes for part in parts]).reshape(-1, SIZES)
        self._sizes[:, WORDS] = begins([part.words.size for part in parts])
        self._sizes[:, ROWS] = begins([part.present.size for part in parts])
        self._sizes[:, DEFAULTS] = begins([part.default_ok.size for part in parts])
        self._default_words = np.concatenate([part.default_words for part in parts])
        self._default_ok = np.concatenate([part.default_ok for part in parts])
        for table, (columns, room, _, words, rows, _) in zip(self.tables, self._sizes.tolist(), strict=True):
            table.words = self._words[words : words + columns * room]
            table.ok = self._ok[words : words + columns * room]
            table.present = self._present[rows : rows + room]

    @property
    def rows(self) -> Rows:
        """All tables as kernels see them; valid until one has more keys."""
        sizes = self._sizes.reshape(-1)
        return Rows(self._words, self._ok, self._present, sizes, self._default_words, self._default_ok, 0)

    def at(self, table: TableRows) -> int:
        """Where the sizes of a table begin."""
        return SIZES * self.tables.index(table)


class CellArena:
    """The automata of several rules, and where each stands, in the same arrays.

    Attributes
    ----------
    cells_at, tables_at : list of int
        Where the cells and the detection tables of each begin.
    version : int
        Is another one whenever one of them has another place.
    """

    def __init__(self) -> None:
        self._cells = self._words = self._offsets = NONE
        self._known: list[Ints] = []
        self.version = 0
        self.cells_at: list[int] = []
        self.tables_at: list[int] = []

    def fit(self, engines: Sequence[Cells]) -> Detection:
        """Put what has changed together; gives all of it as the kernel sees it."""
        if any(one.cells.base is not self._cells for one in engines):
            self.version += 1
            sizes = [one.cells.size for one in engines]
            self._cells = np.concatenate([one.cells for one in engines])
            self.cells_at = begins(sizes)
            for one, first, size in zip(engines, self.cells_at, sizes, strict=True):
                one.cells = self._cells[first : first + size]
        tables = [one.tables.words for one in engines]
        if [*map(id, tables)] != [*map(id, self._known)]:
            self.version += 1
            self._known = tables
            self.tables_at = begins([part.size for part in tables])
            self._words = np.concatenate(tables)
            self._offsets = np.concatenate([one.tables.offsets for one in engines])
            self._fresh = np.zeros(max(one.scratch for one in engines), np.int64)
        return Detection(self._words, self._offsets, self._cells, self._fresh)


def joined_statements(parts: Sequence[Statements]) -> tuple[Statements, list[int]]:
    """The statements of several tables, and the number of the first of each."""
    at = begins([part.kind.size for part in parts])
    assignments = begins([part.column.size for part in parts])
    instructions = begins([part.program.size // 2 for part in parts])
    first = [part.first[:-1] + begin for part, begin in zip(parts, assignments, strict=True)]
    code = [part.code[:-1] + begin for part, begin in zip(parts, instructions, strict=True)]
    columns, program = (np.concatenate([getattr(part, name) for part in parts]) for name in ("column", "program"))
    ends = np.array([columns.size]), np.array([program.size // 2])
    together = Statements(
        np.concatenate([part.kind for part in parts]),
        np.concatenate([*first, ends[0]]),
        columns,
        np.concatenate([*code, ends[1]]),
        program,
    )
    return together, at
