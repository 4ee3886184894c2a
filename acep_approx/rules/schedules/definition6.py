"""Definition 6: whether a history of reads and writes is one that the order of the stream allows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from acep_approx.rules.schedules.locks import Unit, by_row
from acep_approx.rules.schedules.transactions import Item, Operation, Stamp, Values

Broken = Literal["write too late", "writes out of order", "read too late", "read after own write", "wrong value"]
RULES: dict[Broken, int] = {
    "write too late": 1,
    "writes out of order": 2,
    "read too late": 3,
    "read after own write": 4,
    "wrong value": 3,
}
"""The parts of Definition 6. A wrong value is (3) in a store with versions, where the order of reading is free."""


class Anomaly(NamedTuple):
    """Two operations that were done in the wrong order.

    Attributes
    ----------
    name : str
        What is wrong, by the names of Examples 2 and 3.
    first : Operation or None
        What was done before; None where the value is wrong and nothing should have been written before.
    then : Operation
        What was done behind it, and shows it.
    """

    name: Broken
    first: Operation | None
    then: Operation

    @property
    def rule(self) -> int:
        """Which part of Definition 6 is broken."""
        return RULES[self.name]


@dataclass
class _Unit:
    """What was done so far to what is locked as a whole: the operations with the greatest stamps."""

    read: Operation | None = None
    write: Operation | None = None


@dataclass
class _Written:
    """All writes of an item, in the order of the stream."""

    stamps: list[Stamp] = field(default_factory=list)
    writes: list[Operation] = field(default_factory=list)


def anomalies(
    history: Iterable[Operation],
    *,
    versions: bool = False,
    rows: Values | None = None,
    lock: Callable[[Item], Unit] = by_row,
) -> list[Anomaly]:
    """What breaks Definition 6 in a history.

    The order of the stream is (time, arrival), and so are parts 1 to 3 meant here; it settles part 4, too: a read sees
    what earlier transactions wrote, and nothing of its own.

    Parameters
    ----------
    history : iterable of Operation
        In the order in which they were done.
    versions : bool
        Whether the store has versions. Then a read may be done behind a later write (3), if its value is that of the
        last write before it, as the proof of Lemma 1 has it: this is tested in the place of the order.
    rows : mapping of Item to object, optional
        What the store held at first; for values alone.
    lock : callable
        Operations on one unit are held against each other; by table if locks are.

    Returns
    -------
    list of Anomaly
        In the order of the history; empty if it is right. Each operation is shown once at most for each part.

    Examples
    --------
    Example 2: at time 2 a reader finds what was written at 10.

    >>> light = Item("status", "ann")
    >>> late = [Operation("write", Stamp(10, 1), light, "red"), Operation("read", Stamp(2, 0), light, "red")]
    >>> anomalies(late)[0].name
    'read too late'
    """
    done = list(history)
    wrong = list(_values(done, rows or {})) if versions else []
    units: dict[Unit, _Unit] = {}
    for operation in done:
        unit = units.setdefault(lock(operation.item), _Unit())
        if operation.kind == "read":
            if not versions:
                wrong += _order_of_read(unit, operation)
            if unit.read is None or unit.read.stamp < operation.stamp:
                unit.read = operation
        else:
            wrong += _order_of_write(unit, operation)
            if unit.write is None or unit.write.stamp < operation.stamp:
                unit.write = operation
    return wrong


def _order_of_read(unit: _Unit, read: Operation) -> list[Anomaly]:
    if unit.write is None or unit.write.stamp < read.stamp:
        return []
    own = unit.write.stamp == read.stamp
    return [Anomaly("read after own write" if own else "read too late", unit.write, read)]


def _order_of_write(unit: _Unit, write: Operation) -> list[Anomaly]:
    wrong = []
    if unit.read is not None and write.stamp < unit.read.stamp:
        wrong.append(Anomaly("write too late", unit.read, write))
    if unit.write is not None and write.stamp < unit.write.stamp:
        wrong.append(Anomaly("writes out of order", unit.write, write))
    return wrong


def _values(done: list[Operation], rows: Values) -> Iterable[Anomaly]:
    written: dict[Item, _Written] = {}
    for write in sorted((one for one in done if one.kind == "write"), key=lambda one: one.stamp):
        here = written.setdefault(write.item, _Written())
        here.stamps.append(write.stamp)
        here.writes.append(write)
    for read in done:
        if read.kind == "read":
            here = written.get(read.item, _Written())
            place = bisect_left(here.stamps, read.stamp)
            last = here.writes[place - 1] if place else None
            wanted = rows.get(read.item) if last is None else last.value
            if read.value != wanted:
                yield Anomaly("wrong value", last, read)
