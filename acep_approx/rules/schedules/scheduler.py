"""The three schedulers of stream transactions: one event at a time, two-phase locking, and the low-water-mark.

What all of them share: which transactions are open, how far the stream is known, and who may be asked what. Those with
locks insert them ahead, and grant reads alike; they differ in how they write.

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

from abc import ABC, abstractmethod
from collections.abc import Callable
from heapq import heappop, heappush
from typing import NamedTuple

from acep_approx.errors import DataError
from acep_approx.rules.schedules.transactions import (
    FIRST,
    Item,
    LockTable,
    OneVersion,
    Stamp,
    Stamps,
    Transaction,
    Unit,
    Values,
    Versions,
    by_row,
)


class Held(NamedTuple):
    """What a scheduler keeps at a moment.

    Attributes
    ----------
    versions : int
        Values of the store, of all versions.
    locks : int
        Locks that are held or wanted.
    buffered : int
        Events that wait for a punctuation or for their turn, without locks.
    """

    versions: int
    locks: int
    buffered: int


class Scheduler(ABC):
    """Decides when operations of transactions may be done; deterministic, and without threads.

    The caller brings transactions (:meth:`begin`), asks (:meth:`may_read`, :meth:`may_write`), does what was granted
    (:meth:`read`, :meth:`write`), in any order that it likes, and says when a transaction has nothing more to do
    (:meth:`finish`). A transaction reads before it writes.

    Parameters
    ----------
    rows : mapping of Item to object, optional
        What the store holds at first.
    lock : callable
        What is locked as a whole: :func:`~acep_approx.rules.by_row`, or :func:`~acep_approx.rules.by_table`.
    in_order : bool
        Whether events come in order of time. If not, :meth:`punctuate` says how far the stream is known: there
        will be no event with a time before it. An event at its time may come: its arrival is later.

    Attributes
    ----------
    read_locks, write_locks : LockTable
        Those that are held, and those that wait, where the scheduler has locks.
    """

    def __init__(
        self, rows: Values | None = None, *, lock: Callable[[Item], Unit] = by_row, in_order: bool = True
    ) -> None:
        self.rows: Values = rows or {}
        self.store: OneVersion | Versions = OneVersion(self.rows)
        self.lock = lock
        self.in_order = in_order
        self.known = FIRST.ts
        """The most recent punctuation; in a stream in order the time of the last event."""
        self._last = FIRST
        self._open = Stamps()
        self._early: list[tuple[Stamp, Transaction]] = []
        self._wrote: set[Stamp] = set()
        self.read_locks = LockTable(lock)
        self.write_locks = LockTable(lock)

    # --- what the caller says -----------------------------------------------------------------------------------

    def begin(self, transaction: Transaction) -> None:
        """An event has arrived: open its transaction.

        Parameters
        ----------
        transaction : Transaction
            Its stamp is above all before; in a stream out of order its arrival is.

        Raises
        ------
        DataError
            ``ACEP-D007``: its time was over already.
        ValueError
            Arrivals are not numbered upwards.
        """
        stamp = transaction.stamp
        if stamp.ts < self.known:
            raise DataError(
                f"event {stamp.arrival} is late: its time is {stamp.ts}, and the stream is known up to {self.known}",
                code="ACEP-D007",
                hint="sort the events, or punctuate later: Scheduler(in_order=False)",
            )
        is_behind = stamp > self._last if self.in_order else stamp.arrival > self._last.arrival
        if not is_behind:
            raise ValueError(f"arrivals are numbered upwards, and {stamp} comes after {self._last}")
        self._last = stamp
        self._open.add(stamp)
        self._came(transaction)
        self.punctuate(stamp.ts if self.in_order else self.known)

    def punctuate(self, ts: int) -> None:
        """No event will come with a time before ``ts``; what is earlier than a punctuation before says nothing."""
        self.known = max(self.known, ts)
        while self._early and self._early[0][0].ts <= self.known:
            self._admit(heappop(self._early)[1])

    def finish(self, transaction: Transaction) -> None:
        """A transaction has done all that it does: its locks are released.

        Raises
        ------
        RuntimeError
            It might not start yet: then nothing of it was done.
        """
        if not self.may_start(transaction):
            raise RuntimeError(f"{transaction.stamp} may not start yet, and so not end")
        self._open.remove(transaction.stamp)
        self._wrote.discard(transaction.stamp)
        self._release(transaction)

    # --- what the caller asks -----------------------------------------------------------------------------------

    def may_start(self, transaction: Transaction) -> bool:
        """Whether anything may be done for an event yet, such as a step of a pattern, without the store."""
        return transaction.stamp.ts <= self.known

    @abstractmethod
    def may_read(self, transaction: Transaction, item: Item) -> bool:
        """Whether a transaction may read an item now."""

    @abstractmethod
    def may_write(self, transaction: Transaction, item: Item) -> bool:
        """Whether a transaction may write an item now."""

    def read(self, transaction: Transaction, item: Item) -> object:
        """The value of an item for a transaction; None if it is not there.

        Raises
        ------
        RuntimeError
            It may not read it now, or has written before.
        """
        if transaction.stamp in self._wrote:
            raise RuntimeError(f"{transaction.stamp} reads {item} after it wrote: it would see itself")
        if item not in transaction.reads or not self.may_read(transaction, item):
            raise RuntimeError(f"{transaction.stamp} may not read {item} now")
        return self._value(item, transaction.stamp)

    def write(self, transaction: Transaction, item: Item, value: object) -> None:
        """Set the value of an item.

        Raises
        ------
        RuntimeError
            It may not write it now.
        """
        if item not in transaction.writes or not self.may_write(transaction, item):
            raise RuntimeError(f"{transaction.stamp} may not write {item} now")
        self._wrote.add(transaction.stamp)
        self.store.write(item, value, transaction.stamp)

    # --- to look at ---------------------------------------------------------------------------------------------

    def final(self) -> dict[Item, object]:
        """The values of the store, by what was written so far."""
        return self.store.final()

    def held(self) -> Held:
        """What is kept at this moment."""
        return Held(len(self.store), self.locks(), self.buffered())

    def locks(self) -> int:
        """How many locks are held or wait."""
        return len(self.read_locks) + len(self.write_locks)

    def buffered(self) -> int:
        """How many events wait for a punctuation or for their turn, without locks."""
        return len(self._early)

    # --- what each scheduler does in its own way ----------------------------------------------------------------

    def _came(self, transaction: Transaction) -> None:
        """Buffer and sort (appendix F): an event waits until all before it are known."""
        heappush(self._early, (transaction.stamp, transaction))

    def _admit(self, transaction: Transaction) -> None:  # noqa: B027
        """Insert the locks of a transaction, if it has some; those before it have theirs."""

    def _release(self, transaction: Transaction) -> None:  # noqa: B027
        """Release them."""

    def _value(self, item: Item, stamp: Stamp) -> object:
        return self.store.read(item, stamp)


class Locking(Scheduler):
    """Locks of a transaction are inserted all at once, when it begins, and released when it ends.

    Since a transaction waits for earlier ones alone, there is no deadlock.
    See :class:`~acep_approx.rules.schedules.scheduler.Scheduler` for the parameters.
    """

    def may_read(self, transaction: Transaction, item: Item) -> bool:
        """Whether no earlier transaction has a write lock, and all events before it are known."""
        if transaction.stamp.ts > self.known:
            return False
        writer = self.write_locks.least(item)
        return writer is None or transaction.stamp <= writer

    def may_write(self, transaction: Transaction, item: Item) -> bool:
        """Whether its own write lock is the first one, and all events before it are known."""
        return transaction.stamp.ts <= self.known and self.write_locks.least(item) == transaction.stamp

    def _admit(self, transaction: Transaction) -> None:
        self.read_locks.insert(transaction.stamp, transaction.reads)
        self.write_locks.insert(transaction.stamp, transaction.writes)

    def _release(self, transaction: Transaction) -> None:
        self.read_locks.release(transaction.stamp, transaction.reads)
        self.write_locks.release(transaction.stamp, transaction.writes)


class SingleEvent(Scheduler):
    """One event at a time, in the order of the stream; there are no locks, and one version.

    See :class:`~acep_approx.rules.schedules.scheduler.Scheduler` for its parameters; ``lock`` changes nothing.
    """

    def may_start(self, transaction: Transaction) -> bool:
        """Whether all before it are known, and have ended."""
        return super().may_start(transaction) and self._open.least() == transaction.stamp

    def may_read(self, transaction: Transaction, item: Item) -> bool:  # noqa: ARG002
        """Whether it is its turn."""
        return self.may_start(transaction)

    def may_write(self, transaction: Transaction, item: Item) -> bool:  # noqa: ARG002
        """Whether it is its turn."""
        return self.may_start(transaction)

    def buffered(self) -> int:
        """Those that wait for a punctuation, or for their turn."""
        early = super().buffered()
        return early + max(len(self._open) - early - 1, 0)


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
        self.store: Versions = Versions(self.rows, keeps_all=keeps_all)

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
