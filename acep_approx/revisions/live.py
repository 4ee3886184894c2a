"""Which event a row of a changelog is about: rows that insert, take back and update, in the order of their arrival."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from acep_approx.arrays import Ints
from acep_approx.events.changes import Op
from acep_approx.revisions.names import names_of
from acep_approx.run.events import Events
from acep_approx.run.left_out import DUPLICATE, UNKNOWN
from acep_approx.run.watermarks import NEVER

EventsAt = Callable[[int], Sequence[Events]]
"""Gives the events of a time that may still change, in parts."""


@dataclass
class Resolved:
    """What rows of a changelog come to.

    ``came``: the events that come; ``gone``: time and row of earlier events that go; ``rejected``: rows that were left
    out, each with the reason. Of events that came and went within these rows, ``passing`` is the number.
    """

    came: Events
    gone: list[tuple[int, int]] = field(default_factory=list)
    rejected: list[tuple[int, str]] = field(default_factory=list)
    passing: int = 0


class LiveEvents:
    """Knows which events there are that may still change.

    Parameters
    ----------
    id : str or None
        The column that names events. None: an event is named by its content.
    content : sequence of str
        The columns that make up the content.
    reach : int or None
        How many ticks lie between two events of a match at most; None: that is not known.
    """

    def __init__(self, id: str | None, content: Sequence[str], reach: int | None) -> None:  # noqa: A002  (what users call it)
        self._id = id
        self._content = tuple(content)
        self._reach = reach
        self._live: dict[Any, tuple[int, int, int]] = {}  # by id its time, its row and its number; see ``Events.tie``
        self._settled: dict[Any, tuple[int, int]] = {}  # time and number of the last one that does not change any more
        self.vacant: tuple[int, int] | None = None  # time and tie of what an update took away, until its new half comes

    def __len__(self) -> int:
        return len(self._live) + len(self._settled)

    def know(self, events: Events) -> None:
        """Take in events that are there, in order: of those that share an id only the last one may still change."""
        if self._id is None:
            return
        found = zip(events.tick.tolist(), events.arrival.tolist(), events.tie.tolist(), strict=True)
        names = names_of(events.data.column(self._id))
        if len(set(names)) < len(names) or not self._live.keys().isdisjoint(names):
            for name, event in zip(names, found, strict=True):
                if name in self._live:
                    self._settle(name, *self._live[name])
                self._live[name] = event
        else:
            self._live.update(zip(names, found, strict=True))

    def forget_all_but(self, parts: Sequence[Events]) -> None:
        """Know nothing but the events that are held, in order."""
        self._live, self._settled = {}, {}
        for events in parts:
            self.know(events)

    def _settle(self, name: Any, tick: int, _: int, number: int) -> None:
        """An event does not change any more: its id may name another one from now on."""
        if tick >= self._settled.get(name, (NEVER, -1))[0]:
            self._settled[name] = tick, number

    def _number(self, name: Any, watermark: int) -> int:
        """Which one a new event is of those that have its id and may stand in a match with it."""
        tick, number = self._settled.get(name, (NEVER, -1))
        return number + 1 if self._reach is None or tick >= watermark - self._reach else 0

    def resolve(self, rows: Events, ops: npt.NDArray[np.int8], watermark: Ints, at: EventsAt) -> Resolved:
        """Find out what rows come to.

        Parameters
        ----------
        rows : Events
            In the order in which they came; none is late.
        ops : int8 array
            What each does; see ``Op``.
        watermark : int64 array
            Before which nothing changes any more, as it was before each row.
        at : callable
            Looks up the events from before that may still change.

        Returns
        -------
        Resolved

        Complexity: Python looks at single rows only where events go, or come twice.
        """
        of_names = self._by_id(rows, ops) if self._id is not None else self._by_content(rows, ops, at)
        is_new = (ops == Op.INSERT) | (ops == Op.AFTER) | (ops == Op.UPDATE)
        tie = np.zeros_like(rows.tie) if self._id is not None else rows.tie.copy()
        gone: list[tuple[int, int]] = []
        rejected: list[tuple[int, str]] = []
        passing = 0
        names, delicate, find = of_names
        here: dict[Any, list[int]] = {}
        for row, op in zip(delicate, map(Op, ops[delicate].tolist()), strict=True):
            name = names[row]
            mine = here[name] = self._changeable(name, here.get(name, ()), rows, tie, int(watermark[row]))
            if op in (Op.INSERT, Op.AFTER):
                if self._id is not None and (mine or find(name, int(watermark[row])) is not None):
                    is_new[row] = False
                    rejected.append((row, DUPLICATE))
                    continue
                mine.append(row)
                if self._id is not None:
                    tie[row] = self._number(name, int(watermark[row]))
                elif op == Op.AFTER:
                    if self.vacant is not None and self.vacant[0] == rows.tick[row]:
                        tie[row] = self.vacant[1]
                    self.vacant = None
                continue
            old = find(name, int(watermark[row]))
            if old is not None:
                self._live.pop(name, None)
                gone.append(old[:2])
                vacant = old[0], old[2]
            elif mine:
                first = mine.pop(0)
                is_new[first] = False
                passing += 1
                vacant = int(rows.tick[first]), int(tie[first])
            elif op == Op.UPDATE:  # of what is not there, or will not change any more: it inserts
                vacant = 0, self._number(name, int(watermark[row]))
            else:
                rejected.append((row, UNKNOWN))
                continue
            if op == Op.UPDATE:
                tie[row] = vacant[1]
                mine.append(row)
            elif op == Op.BEFORE and self._id is None:
                self.vacant = vacant
        came = Events(rows.tick, rows.arrival, tie, rows.data).where(is_new)
        self.know(came)
        return Resolved(came, gone, rejected, passing)

    def _changeable(self, name: Any, mine: Sequence[int], rows: Events, number: Ints, watermark: int) -> list[int]:
        """Those of some rows, which all came, that may still change."""
        for one in mine:
            if rows.tick[one] < watermark:
                self._settle(name, int(rows.tick[one]), one, int(number[one]))
        return [one for one in mine if rows.tick[one] >= watermark]

    def _by_id(self, rows: Events, ops: npt.NDArray[np.int8]) -> Any:
        """The name of each row, the rows that are looked at one by one, and how an event from before is found."""
        names = names_of(rows.data.column(self._id))
        comes = (ops == Op.INSERT) | (ops == Op.AFTER)
        going = np.flatnonzero(~comes).tolist()
        wanted = {names[row] for row in going}
        coming = [names[row] for row in np.flatnonzero(comes).tolist()] if going else names
        once = set(coming)
        wanted |= (once & self._live.keys()) | (once & self._settled.keys())
        if len(once) < len(coming):
            wanted |= {name for name, times in Counter(coming).items() if times > 1}

        def find(name: Any, watermark: int) -> tuple[int, int, int] | None:
            found = self._live.get(name)
            if found is not None and found[0] < watermark:
                self._settle(name, *self._live.pop(name))
                return None
            return found

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
        columns = [[_same(value) for value in events.data.column(name).to_pylist()] for name in self._content]
        return [repr(row) for row in zip(*columns, strict=True)] if columns else [""] * len(events)


def _same(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value
