"""What schedulers with locks share: both insert them ahead, and grant reads alike. They differ in how they write."""

from __future__ import annotations

from collections.abc import Callable

from acep_approx.rules.schedules.locks import LockTable, Unit, by_row
from acep_approx.rules.schedules.scheduler import Scheduler
from acep_approx.rules.schedules.transactions import Item, Transaction, Values


class Locking(Scheduler):
    """Locks of a transaction are inserted all at once, when it begins, and released when it ends.

    Since a transaction waits for earlier ones alone, there is no deadlock.
    See :class:`~acep_approx.rules.schedules.scheduler.Scheduler` for the parameters.

    Attributes
    ----------
    read_locks, write_locks : LockTable
        Those that are held, and those that wait.
    """

    def __init__(
        self, rows: Values | None = None, *, lock: Callable[[Item], Unit] = by_row, in_order: bool = True
    ) -> None:
        super().__init__(rows, lock=lock, in_order=in_order)
        self.read_locks = LockTable(lock)
        self.write_locks = LockTable(lock)

    def may_read(self, transaction: Transaction, item: Item) -> bool:
        """Whether no earlier transaction has a write lock, and all events before it are known."""
        if transaction.stamp.ts > self.known:
            return False
        writer = self.write_locks.least(item)
        return writer is None or transaction.stamp <= writer

    def may_write(self, transaction: Transaction, item: Item) -> bool:
        """Whether its own write lock is the first one, and all events before it are known."""
        return transaction.stamp.ts <= self.known and self.write_locks.least(item) == transaction.stamp

    def locks(self) -> int:
        """How many locks are held or wait."""
        return len(self.read_locks) + len(self.write_locks)

    def _admit(self, transaction: Transaction) -> None:
        self.read_locks.insert(transaction.stamp, transaction.reads)
        self.write_locks.insert(transaction.stamp, transaction.writes)

    def _release(self, transaction: Transaction) -> None:
        self.read_locks.release(transaction.stamp, transaction.reads)
        self.write_locks.release(transaction.stamp, transaction.writes)
