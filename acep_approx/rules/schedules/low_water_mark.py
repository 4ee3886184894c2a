"""LWM, *low-water-mark*: write locks and versions, both with the place in the stream as their stamp (section 5.3).

Source: Algorithm 2 and Definition 8, with appendix F for disorder. Different here: stamps are (time, arrival). In the
paper they are times, and a read at ``ts = lwm`` is granted since it may be of the writer's own transaction; where two
events have one time it may also be of the later event, and then reads too early (Proposition 3 wants ``ts < lwm``).
With arrivals ``stamp = lwm`` is the own transaction and no other. For the same reason ``ts = mrp`` is right for
punctuations: what still comes at this time arrives later. And versions are collected; the paper keeps them all.
"""

from __future__ import annotations

from collections.abc import Callable

from acep_approx.rules.schedules.locking import Locking
from acep_approx.rules.schedules.locks import Unit, by_row
from acep_approx.rules.schedules.scheduler import Held
from acep_approx.rules.schedules.stores import Versions
from acep_approx.rules.schedules.transactions import Item, Stamp, Transaction, Values


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
