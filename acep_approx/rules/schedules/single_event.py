"""SEI, *single event initiated*: one event at a time, until nothing is left to do for it (section 5.1)."""

from __future__ import annotations

from collections.abc import Callable

from acep_approx.rules.schedules.locks import Stamps, Unit, by_row
from acep_approx.rules.schedules.scheduler import Held, Scheduler
from acep_approx.rules.schedules.stores import OneVersion
from acep_approx.rules.schedules.transactions import Item, Stamp, Transaction, Values


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
