"""The three schedulers of stream transactions: one event at a time, two-phase locking, and the low-water-mark.

SEI, *single event initiated* (section 5.1), does for one event all that is to be done before the next begins. S2PL is
*strict two-phase locking* in the order of the stream (section 5.2). LWM, *low-water-mark*, has write locks and
versions, both with the place in the stream as their stamp (section 5.3, Algorithm 2 and Definition 8, with appendix F
for disorder).

Different here in LWM: stamps are (time, arrival). In the paper they are times, and a read at
``ts = lwm`` is granted since it may be of the writer's own transaction; where two
events have one time it may also be of the later event, and then reads too early (Proposition 3 wants ``ts < lwm``).
With arrivals ``stamp = lwm`` is the own transaction and no other. For the same reason ``ts = mrp`` is right for
punctuations: what still comes at this time arrives later. And versions are collected; the paper keeps them all.
"""

from __future__ import annotations

from collections.abc import Callable

from acep_approx.rules.schedules.locks import Stamps, Unit, by_row
from acep_approx.rules.schedules.scheduler import Held, Locking, Scheduler
from acep_approx.rules.schedules.transactions import Item, OneVersion, Stamp, Transaction, Values, Versions


class SingleEvent(Scheduler):
    """One event at a time, in the order of the stream; there are no locks, and one version.

    See :class:`~acep_approx.rules.schedules.scheduler.Scheduler` for its parameters; ``lock`` changes nothing.
    """

    def __init__(
        self, rows: Values | None = None, *, lock: Callable[[Item], Unit] = by_row, in_order: bool = True
    ) -> None:
        super().__init__(rows, lock=lock, in_order=in_order)
        self._store = OneVersion(self.rows)
        self._queue = Stamps()

    def may_start(self, transaction: Transaction) -> bool:
        """Whether all before it have ended."""
        return self._queue.least() == transaction.stamp

    def may_read(self, transaction: Transaction, item: Item) -> bool:  # noqa: ARG002
        """Whether it is its turn."""
        return self.may_start(transaction)

    def may_write(self, transaction: Transaction, item: Item) -> bool:  # noqa: ARG002
        """Whether it is its turn."""
        return self.may_start(transaction)

    def final(self) -> dict[Item, object]:
        """The values of the store, by what was written so far."""
        return self._store.final()

    def held(self) -> Held:
        """One version of each item, and events that wait for their turn."""
        return Held(len(self._store), 0, len(self._early) + max(len(self._queue) - 1, 0))

    def _admit(self, transaction: Transaction) -> None:
        self._queue.add(transaction.stamp)

    def _release(self, transaction: Transaction) -> None:
        self._queue.remove(transaction.stamp)

    def _value(self, item: Item, stamp: Stamp) -> object:  # noqa: ARG002
        return self._store.read(item)

    def _put(self, item: Item, value: object, stamp: Stamp) -> None:  # noqa: ARG002
        self._store.write(item, value)


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


class LowWaterMark(Locking):
    """Many versions: a read waits while its stamp is beyond the low-water mark, a write while it is not the mark.

    Readers never hold up writers: an earlier reader still finds its version. Nothing waits for a read lock.

    Parameters
    ----------
    rows, lock, in_order
        See :class:`~acep_approx.rules.schedules.scheduler.Scheduler`. Events that come out of order get their locks
        at once, and wait for the punctuation only where they read or write.
    keeps_all : bool
        Whether all versions are kept for ever, as in the paper.
    """

    def __init__(
        self,
        rows: Values | None = None,
        *,
        lock: Callable[[Item], Unit] = by_row,
        in_order: bool = True,
        keeps_all: bool = False,
    ) -> None:
        super().__init__(rows, lock=lock, in_order=in_order)
        self.store = Versions(self.rows, keeps_all=keeps_all)

    def low_water_mark(self, item: Item) -> Stamp | None:
        """The least stamp of the write locks on the unit of an item (Definition 8); None if there are none."""
        return self.write_locks.least(item)

    def may_start(self, transaction: Transaction) -> bool:  # noqa: ARG002
        """Always: patterns need not wait, only operations on the store."""
        return True

    def punctuate(self, ts: int) -> None:
        """No event will come with a time before ``ts``."""
        super().punctuate(ts)
        self._collect()

    def final(self) -> dict[Item, object]:
        """The last version of each item."""
        return self.store.final()

    def held(self) -> Held:
        """All versions and all locks; no event is buffered."""
        return Held(len(self.store), self.locks(), 0)

    def _came(self, transaction: Transaction) -> None:
        self._admit(transaction)

    def _release(self, transaction: Transaction) -> None:
        super()._release(transaction)
        self._collect()

    def _collect(self) -> None:
        """Let go the versions below what any open transaction, or one to come, may read."""
        coming = Stamp(self.known, self._last.arrival + 1)
        first = self._open.least()
        self.store.collect(coming if first is None or coming < first else first)

    def _value(self, item: Item, stamp: Stamp) -> object:
        return self.store.read(item, stamp)

    def _put(self, item: Item, value: object, stamp: Stamp) -> None:
        self.store.write(item, value, stamp)
