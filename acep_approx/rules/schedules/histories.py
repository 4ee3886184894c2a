"""Histories of reads and writes: how one is made step by step, and whether the order of the stream allows it.

The latter is Definition 6. Steps are for tests that choose them at random, and for simulations.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from acep_approx.rules.schedules.scheduler import Scheduler
from acep_approx.rules.schedules.transactions import Item, Operation, Stamp, Transaction, Unit, Values, by_row


class Steps:
    """The operations of one transaction, under a scheduler: all its reads, then what it decides to write.

    Parameters
    ----------
    transaction : Transaction
        It has begun.
    scheduler : Scheduler
        It is asked, and does what it grants.
    history : list of Operation
        What was done is put at its end.
    """

    def __init__(self, transaction: Transaction, scheduler: Scheduler, history: list[Operation]) -> None:
        self.transaction = transaction
        self.scheduler = scheduler
        self.history = history
        self.seen: dict[Item, object] = {}
        self._reads = list(dict.fromkeys(transaction.reads))
        self._writes: dict[Item, object] = {}
        if not self._reads:
            self._decide()

    @property
    def reads(self) -> list[Item]:
        """What it has yet to read."""
        return self._reads

    @property
    def writes(self) -> list[Item]:
        """What it has yet to write; nothing before all is read."""
        return list(self._writes)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do but to finish, and that may be done."""
        return not self._reads and not self._writes and self.scheduler.may_start(self.transaction)

    def granted(self) -> list[Item]:
        """What may be done now, of what is next."""
        if not self.scheduler.may_start(self.transaction):
            return []
        may = self.scheduler.may_read if self._reads else self.scheduler.may_write
        return [item for item in self._reads or self._writes if may(self.transaction, item)]

    def do(self, item: Item) -> Operation:
        """Do the read or the write of an item, which was granted."""
        stamp = self.transaction.stamp
        if self._reads:
            self._reads.remove(item)
            value = self.seen[item] = self.scheduler.read(self.transaction, item)
            done = Operation("read", stamp, item, value)
            if not self._reads:
                self._decide()
        else:
            value = self._writes.pop(item)
            self.scheduler.write(self.transaction, item, value)
            done = Operation("write", stamp, item, value)
        self.history.append(done)
        return done

    def _decide(self) -> None:
        self._writes = dict(self.transaction.decide(self.seen))


def run_in_order(transactions: Iterable[Transaction], scheduler: Scheduler) -> list[Operation]:
    """Run transactions one after the other: what every other schedule has to agree with.

    Parameters
    ----------
    transactions : iterable of Transaction
        In the order of the stream.
    scheduler : Scheduler
        Any.

    Returns
    -------
    list of Operation
        The history.

    Examples
    --------
    >>> from acep_approx.rules import Item, SingleEvent, Stamp, Transaction
    >>> light = Item("status", "ann")
    >>> red = Transaction(Stamp(10, 0), reads=(light,), writes=(light,), decide=lambda seen: {light: "red"})
    >>> look = Transaction(Stamp(15, 1), reads=(light,))
    >>> for done in run_in_order([red, look], SingleEvent({light: "green"})):
    ...     print(done.kind, done.stamp.ts, done.value)
    read 10 green
    write 10 red
    read 15 red
    """
    history: list[Operation] = []
    for transaction in transactions:
        scheduler.begin(transaction)
        steps = Steps(transaction, scheduler, history)
        while not steps.is_done:
            steps.do(steps.granted()[0])
        scheduler.finish(transaction)
    return history


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
            if not versions and unit.write is not None and unit.write.stamp >= operation.stamp:
                is_own = unit.write.stamp == operation.stamp
                wrong.append(Anomaly("read after own write" if is_own else "read too late", unit.write, operation))
            if unit.read is None or unit.read.stamp < operation.stamp:
                unit.read = operation
        else:
            if unit.read is not None and operation.stamp < unit.read.stamp:
                wrong.append(Anomaly("write too late", unit.read, operation))
            if unit.write is not None and operation.stamp < unit.write.stamp:
                wrong.append(Anomaly("writes out of order", unit.write, operation))
            if unit.write is None or unit.write.stamp < operation.stamp:
                unit.write = operation
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
