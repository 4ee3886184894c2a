"""What a transaction has yet to do, step by step: for tests that choose steps at random, and for simulations."""

from __future__ import annotations

from collections.abc import Iterable

from acep_approx.rules.schedules.scheduler import Scheduler
from acep_approx.rules.schedules.transactions import Item, Operation, Transaction


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
