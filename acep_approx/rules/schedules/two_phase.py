"""S2PL, *strict two-phase locking* in the order of the stream (section 5.2)."""

from __future__ import annotations

from collections.abc import Callable

from acep_approx.rules.schedules.locking import Locking
from acep_approx.rules.schedules.locks import Unit, by_row
from acep_approx.rules.schedules.scheduler import Held
from acep_approx.rules.schedules.stores import OneVersion
from acep_approx.rules.schedules.transactions import Item, Stamp, Transaction, Values


class TwoPhase(Locking):
    """Locks on one version: a read waits for the writers before it, a write for the readers and writers before it.

    Parameters
    ----------
    rows, lock, in_order
        See :class:`~acep_approx.rules.schedules.scheduler.Scheduler`. Out of order, events are buffered and sorted.
    whole : bool
        Whether a transaction starts when it has all its locks. The paper can be read both ways; its Example 4 says
        that a lock is delayed, not the transaction.
    """

    def __init__(
        self,
        rows: Values | None = None,
        *,
        lock: Callable[[Item], Unit] = by_row,
        in_order: bool = True,
        whole: bool = False,
    ) -> None:
        super().__init__(rows, lock=lock, in_order=in_order)
        self.whole = whole
        self._store = OneVersion(self.rows)

    def may_start(self, transaction: Transaction) -> bool:
        """Whether all before it are known; if it starts with all its locks, whether it has them."""
        if not super().may_start(transaction):
            return False
        return not self.whole or (
            all(self.may_read(transaction, item) for item in transaction.reads)
            and all(self.may_write(transaction, item) for item in transaction.writes)
        )

    def may_write(self, transaction: Transaction, item: Item) -> bool:
        """Whether no earlier transaction has any lock, and all events before it are known."""
        if not super().may_write(transaction, item):
            return False
        reader = self.read_locks.least(item)
        return reader is None or transaction.stamp <= reader

    def final(self) -> dict[Item, object]:
        """The values of the store, by what was written so far."""
        return self._store.final()

    def held(self) -> Held:
        """One version of each item, all locks, and events that wait to be sorted."""
        return Held(len(self._store), self.locks(), len(self._early))

    def _value(self, item: Item, stamp: Stamp) -> object:  # noqa: ARG002
        return self._store.read(item)

    def _put(self, item: Item, value: object, stamp: Stamp) -> None:  # noqa: ARG002
        self._store.write(item, value)
