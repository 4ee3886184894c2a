"""Which event a row of a changelog is about: rows that insert, take back and update, in the order of their arrival."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.arrays import Bools, Ints
from acep_approx.events.changes import Op
from acep_approx.events.columns import to_arrow
from acep_approx.revisions.events import Events
from acep_approx.revisions.watermarks import NEVER

LATE, UNKNOWN, DUPLICATE = "late", "unknown", "duplicate"
EventsAt = Callable[[int], Sequence[Events]]
"""Gives the events of a time that may still change, in parts."""


@dataclass
class Resolved:
    """What rows of a changelog come to.

    ``is_new``: of each row whether it is an event that comes; ``tie``: their order among events of one time; ``gone``:
    time and row of earlier events that go; ``rejected``: rows that were left out, each with the reason. Of events that
    came and went within these rows, ``passing`` is the number.
    """

    is_new: Bools
    tie: Ints
    gone: list[tuple[int, int]]
    rejected: list[tuple[int, str]]
    passing: int = 0


class LiveEvents:
    """Knows which events there are that may still change.

    Parameters
    ----------
    id : str or None
        The column that names events. None: an event is named by its content.
    content : sequence of str
        The columns that make up the content.
    """

    def __init__(self, id: str | None, content: Sequence[str]) -> None:  # noqa: A002  (what users call it)
        self._id = id
        self._content = tuple(content)
        self._live: dict[Any, tuple[int, int]] = {}  # by id its time and its row
        self.vacant: tuple[int, int] | None = None  # time and tie of what an update took away, until its new half comes

    def __len__(self) -> int:
        return len(self._live)

    def know(self, events: Events) -> None:
        """Take in events that are there."""
        if self._id is not None:
            found = zip(events.tick.tolist(), events.arrival.tolist(), strict=True)
            self._live.update(zip(_plain(events.data.column(self._id)), found, strict=True))

    def forget(self, watermark: int) -> None:
        """Events before the watermark will not change any more."""
        self._live = {name: found for name, found in self._live.items() if found[0] >= watermark}

    def resolve(self, rows: Events, ops: npt.NDArray[np.int8], watermark: Ints, at: EventsAt) -> Resolved:
        """Find out what rows come to.

        Parameters
        ----------
        rows : Events
            In the order in which they came; none is late.
        ops : int8 array
            What each does; see ``Op``.
        watermark : int64 array
            As it was before each.
        at : callable
            Looks up the events from before that may still change.

        Returns
        -------
        Resolved

        Complexity: Python looks at single rows only where events go, or come twice.
        """
        of_names = self._by_id(rows, ops) if self._id is not None else self._by_content(rows, ops, at)
        is_new = (ops == Op.INSERT) | (ops == Op.AFTER) | (ops == Op.UPDATE)
        made = Resolved(is_new, rows.tie.copy(), [], [])
        names, delicate, find = of_names
        here: dict[Any, list[int]] = {}
        for row, op in zip(delicate, map(Op, ops[delicate].tolist()), strict=True):
            name = names[row]
            mine = here.setdefault(name, [])
            if op in (Op.INSERT, Op.AFTER):
                is_here = any(rows.tick[one] >= watermark[row] for one in mine)
                if self._id is not None and (is_here or find(name, int(watermark[row])) is not None):
                    made.is_new[row] = False
                    made.rejected.append((row, DUPLICATE))
                    continue
                mine.append(row)
                if op == Op.AFTER:
                    if self.vacant is not None and self.vacant[0] == rows.tick[row]:
                        made.tie[row] = self.vacant[1]
                    self.vacant = None
                continue
            old = find(name, int(watermark[row]))
            if old is not None:
                self._live.pop(name, None)
                made.gone.append(old[:2])
                vacant = old[0], old[2]
            elif mine and rows.tick[mine[0]] >= watermark[row]:
                first = mine.pop(0)
                made.is_new[first] = False
                made.passing += 1
                vacant = int(rows.tick[first]), int(made.tie[first])
            elif op != Op.UPDATE:  # an update of what is not there, or will not change any more, inserts
                made.rejected.append((row, UNKNOWN))
                continue
            if op == Op.UPDATE:
                mine.append(row)
            elif op == Op.BEFORE:
                self.vacant = vacant
        self.know(rows.where(made.is_new))
        return made

    def _by_id(self, rows: Events, ops: npt.NDArray[np.int8]) -> Any:
        """The name of each row, the rows that are looked at one by one, and how an event from before is found."""
        names = _plain(rows.data.column(self._id))
        comes = (ops == Op.INSERT) | (ops == Op.AFTER)
        going = np.flatnonzero(~comes).tolist()
        wanted = {names[row] for row in going}
        coming = [names[row] for row in np.flatnonzero(comes).tolist()] if going else names
        once = set(coming)
        wanted |= once & self._live.keys()
        if len(once) < len(coming):
            wanted |= {name for name, times in Counter(coming).items() if times > 1}

        def find(name: Any, watermark: int) -> tuple[int, int, int] | None:
            tick, arrival = self._live.get(name, (NEVER, -1))
            return None if tick < watermark or tick == NEVER else (tick, arrival, -1)

        delicate = [row for row, name in enumerate(names) if name in wanted] if wanted else []
        return names, delicate, find

    def _by_content(self, rows: Events, ops: npt.NDArray[np.int8], at: EventsAt) -> Any:
        """The same, for events that have no ids."""
        going = np.flatnonzero((ops == Op.DELETE) | (ops == Op.BEFORE))
        ticks = np.unique(rows.tick[going])
        is_after = ops == Op.AFTER
        some = np.flatnonzero(np.isin(rows.tick, ticks) | is_after) if len(going) or self.vacant is not None else going
        names: dict[int, Any] = dict(zip(some.tolist(), self._contents(rows.take(some)), strict=True))
        wanted = {names[row] for row in going.tolist()}
        before: dict[Any, list[tuple[int, int, int]]] = {}
        for tick in ticks.tolist():
            for part in at(tick):
                described = zip(self._contents(part), part.arrival.tolist(), part.tie.tolist(), strict=True)
                for name, arrival, tie in described:
                    if name in wanted:
                        before.setdefault(name, []).append((tick, arrival, tie))

        def find(name: Any, watermark: int) -> tuple[int, int, int] | None:
            held = before.get(name)
            return None if not held or held[0][0] < watermark else held.pop(0)

        delicate = [row for row in some.tolist() if names[row] in wanted or ops[row] == Op.AFTER]
        return names, delicate, find

    def _contents(self, events: Events) -> list[str]:
        """What stands in the events, as text: the same for equal values of any type of numbers."""
        columns = [[_same(value) for value in _plain(events.data.column(name))] for name in self._content]
        return [repr(row) for row in zip(*columns, strict=True)] if columns else [""] * len(events)


def _plain(column: pa.Array) -> list[Any]:
    return column.to_pylist()  # type: ignore[no-any-return]


def _same(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def rejected_table(data: pa.RecordBatch, rows: Ints, reasons: Sequence[str], arrival: Ints) -> pa.Table:
    """Rows that were left out, as a table: the reason, the number of the row, then what stands in it."""
    fixed = []
    for name in ("reason", "row"):
        free = name
        while free in data.schema.names:
            free += "_"
        fixed.append(free)
    columns = [pa.array(reasons, pa.string()), to_arrow(arrival[rows]), *data.take(to_arrow(rows)).columns]
    return pa.table(columns, names=[*fixed, *data.schema.names])
