"""Each workload done in three ways, ours and both yardsticks, and whether they find the same matches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx import compile_query
from acep_approx.arrays import Ints, places
from experiments.peers import loops as peers_loops
from experiments.peers import plain as peers_plain
from experiments.peers.workloads import BARS_APART, LETTERS_APART, RISING, STOCK_APART, VALUES, WORKLOADS, Workload

LETTERS = ("A", "B", "C", "D")


@dataclass(frozen=True)
class Rows:
    """Matches by the rows of their events, all one behind the other.

    Attributes
    ----------
    length : array of int
        How many events each match has.
    events : array of int
        Those of the first match, in the order of the pattern, then those of the second.
    """

    length: Ints
    events: Ints

    @classmethod
    def of_tuples(cls, matches: Sequence[tuple[int, ...]]) -> Rows:
        """From what plain Python finds."""
        length = np.fromiter(map(len, matches), np.int64, len(matches))
        return cls(length, np.fromiter(chain.from_iterable(matches), np.int64, length.sum()))

    @classmethod
    def of_parts(cls, parts: Sequence[peers_loops.Part]) -> Rows:
        """From columns, one for each variable."""
        lengths = [np.ones(events.size, np.int64) if length is None else length for length, events in parts]
        total = np.sum(lengths, axis=0)
        first = np.cumsum(total) - total
        joined = np.empty(total.sum(), np.int64)
        for length, (_, events) in zip(lengths, parts, strict=True):
            joined[places(first, length)] = events
            first = first + length
        return cls(total, joined)

    @classmethod
    def of_table(cls, table: pa.Table, variables: Sequence[str]) -> Rows:
        """From our table."""
        return cls.of_parts([_part(table.column(variable)) for variable in variables])

    def __len__(self) -> int:
        return self.length.size

    def same(self, other: Rows) -> bool:
        """Whether both are the same matches, each as often, in whatever order."""
        if not np.array_equal(np.sort(self.length), np.sort(other.length)):
            return False
        return all(np.array_equal(self._of_length(n), other._of_length(n)) for n in np.unique(self.length))

    def _of_length(self, length: int) -> Ints:
        """The matches of so many events, in the order of their events."""
        first = (np.cumsum(self.length) - self.length)[self.length == length]
        table: Ints = self.events[first[:, np.newaxis] + np.arange(length)]
        return table[np.lexsort(table.T[::-1])]


def _part(column: pa.ChunkedArray) -> peers_loops.Part:
    if pa.types.is_list(column.type):
        return pc.list_value_length(column).to_numpy().astype(np.int64), pc.list_flatten(column).to_numpy()
    return None, column.to_numpy()


@dataclass(frozen=True)
class Yardsticks:
    """What a workload is held against, each with the columns of the stream that it takes, and the window.

    Attributes
    ----------
    label : str
        What the one in plain Python does.
    plain, prepare : callable
        The one in plain Python; what gives a pass of the loop.
    columns : tuple of str
        What both take.
    codes : tuple of str
        The loop gets types as their places among these, and -1 for others.
    window : int
    """

    label: str
    plain: Callable[..., Any]
    prepare: Callable[..., Callable[[], Any]]
    columns: tuple[str, ...]
    codes: tuple[str, ...]
    window: int

    def lists(self, events: pa.Table) -> list[list[Any]]:
        """The columns for plain Python; each type is one object, as where a programmer reads them from a file."""
        lists = {name: events.column(name).to_pylist() for name in self.columns}
        return [[*map(sys.intern, some)] if name == "type" else some for name, some in lists.items()]

    def arrays(self, events: pa.Table) -> list[Any]:
        """The columns for the loop."""
        arrays = {name: events.column(name) for name in self.columns}
        if "type" in arrays:
            arrays["type"] = pc.index_in(arrays["type"], pa.array(self.codes)).fill_null(-1).cast(pa.int64())
        return [column.to_numpy() for column in arrays.values()]


_letters = partial(Yardsticks, columns=("type",), codes=LETTERS, window=LETTERS_APART)
_stock = partial(Yardsticks, columns=("symbol", "price", "volume"), codes=(), window=STOCK_APART)
_QUADRUPLES = _letters("list", peers_plain.list_quadruples, peers_loops.prepare_quadruples)

_BARS = Yardsticks(
    "list", peers_plain.list_rising, peers_loops.prepare_rising, ("type", "ts", "peak"), (RISING,), BARS_APART
)


def _compared(plain: Callable[..., Any], low: int, high: int, rise: int) -> Yardsticks:
    """Those of W2 with conditions; see ``compared_quadruples``."""
    return _letters("list", plain, partial(peers_loops.prepare_compared, low, high, rise), columns=("type", "x"))


YARDSTICKS = {
    "W2-20": _QUADRUPLES,
    "W2-10": _QUADRUPLES,
    "W2-50": _QUADRUPLES,
    "W2-10-equal": _compared(peers_plain.list_equal, 0, 0, -VALUES),
    "W2-10-less": _compared(peers_plain.list_less, 1, VALUES, -VALUES),
    "W2-10-both": _compared(peers_plain.list_both, 0, 0, 1),
    "W2-10-count": _letters("count", peers_plain.count_quadruples, peers_loops.prepare_counted_quadruples),
    "W2K": _letters("list", peers_plain.list_closures, peers_loops.prepare_closures),
    "W2K-count": _letters("count", peers_plain.count_closures, peers_loops.prepare_counted_closures),
    "W1-contiguity": _stock("scan", peers_plain.scan_contiguity, peers_loops.prepare_contiguous),
    "W1-next": _stock("scan", peers_plain.scan_next_match, peers_loops.prepare_next_match),
    "W3": _BARS,
    "W3-short": _BARS,
}


class Contest:
    """A workload with all that is prepared before anything is measured.

    That all ways find the same matches is looked at when it is made, which also compiles what there is to compile.

    Parameters
    ----------
    name : str
        Of the workload.
    divided_by : int, default 1
        So many times fewer events than usual.

    Attributes
    ----------
    matches : int
        How many there are.

    Raises
    ------
    AssertionError
        A yardstick finds other matches than the engine.
    """

    def __init__(self, name: str, divided_by: int = 1) -> None:
        self.workload: Workload = WORKLOADS[name]
        self.yardsticks = YARDSTICKS[name]
        self.events = self.workload.stream(self.workload.events // divided_by)
        self._query = compile_query(self.workload.text)
        self._lists = self.yardsticks.lists(self.events)
        arrays = self.yardsticks.arrays(self.events)
        if self.workload.variables:
            expected = Rows.of_tuples(self.plain())
            room = len(expected), expected.events.size
            self.loop = self.yardsticks.prepare(*arrays, self.yardsticks.window, *room)
            self.matches = len(expected)
            assert Rows.of_table(self.ours(), self.workload.variables).same(expected), f"{name}: ours are others"
            assert Rows.of_parts(self.loop()).same(expected), f"{name}: the loop finds others"
        else:
            self.loop = self.yardsticks.prepare(*arrays, self.yardsticks.window)
            self.matches = self.ours()
            counted = self.plain(), self.loop()
            assert counted == (self.matches, self.matches), f"{name}: {counted} by the yardsticks, ours {self.matches}"

    def ours(self) -> Any:
        """A table of the matches, or their number: from events in memory, with texts for types."""
        found = self._query.match(self.events)
        return found.to_arrow() if self.workload.variables else len(found)

    def plain(self) -> Any:
        """Tuples of rows, or their number, from lists."""
        return self.yardsticks.plain(*self._lists, self.yardsticks.window)
