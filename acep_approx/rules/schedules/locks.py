"""Lock tables: for each unit that can be locked, which transactions hold or want a lock, and the first of them.

Which locks an event needs is known by its type, before any query has looked at it: Algorithm 1, InsertLock.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from acep_approx.rules.schedules.transactions import Item, Stamp

Unit = Hashable
"""What is locked as a whole: a table, or a row."""


def by_row(item: Item) -> Unit:
    """A lock for each row: the key of the row must be known from the event."""
    return item


def by_table(item: Item) -> Unit:
    """One lock for all rows of a table."""
    return item.table


class Stamps:
    """A set of stamps that knows its least one: ``add``, ``remove`` and ``least`` in O(log n), amortised."""

    def __init__(self) -> None:
        self._heap: list[Stamp] = []
        self._there: set[Stamp] = set()

    def __len__(self) -> int:
        return len(self._there)

    def __iter__(self) -> Iterator[Stamp]:
        return iter(self._there)

    def add(self, stamp: Stamp) -> None:
        """Put a stamp in."""
        self._there.add(stamp)
        heappush(self._heap, stamp)

    def remove(self, stamp: Stamp) -> None:
        """Take a stamp out."""
        self._there.remove(stamp)

    def least(self) -> Stamp | None:
        """The least stamp, None if there is none."""
        while self._heap and self._heap[0] not in self._there:
            heappop(self._heap)
        return self._heap[0] if self._heap else None


class LockTable:
    """The locks of one kind, by unit: ``xLockQueue`` or ``sLockQueue`` of Algorithm 2.

    Parameters
    ----------
    lock : callable
        The unit of an item: :func:`by_row` or :func:`by_table`.
    """

    def __init__(self, lock: Callable[[Item], Unit]) -> None:
        self.lock = lock
        self._queues: dict[Unit, Stamps] = {}

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def insert(self, stamp: Stamp, items: Iterable[Item]) -> None:
        """Locks of a transaction on the units of some items, one for each."""
        for unit in {self.lock(item) for item in items}:
            if unit not in self._queues:
                self._queues[unit] = Stamps()
            self._queues[unit].add(stamp)

    def release(self, stamp: Stamp, items: Iterable[Item]) -> None:
        """Take these locks away; a unit without locks takes no memory."""
        for unit in {self.lock(item) for item in items}:
            self._queues[unit].remove(stamp)
            if not self._queues[unit]:
                del self._queues[unit]

    def least(self, item: Item) -> Stamp | None:
        """The first transaction in the order of the stream with a lock on the unit of an item; None: there is none."""
        queue = self._queues.get(self.lock(item))
        return None if queue is None else queue.least()

    def holders(self, item: Item) -> list[Stamp]:
        """All transactions with a lock on the unit of an item, in the order of the stream; to look at."""
        queue = self._queues.get(self.lock(item))
        return [] if queue is None else sorted(queue)


class StoreAccess(NamedTuple):
    """What of the store a query reads, or a rule writes.

    Attributes
    ----------
    table : str
        Name of the table.
    key : str, optional
        The attribute of the *triggering event* that says which row; None for a table of one row. A row that an
        earlier event of the match names is not known when the locks are inserted: lock such a table as a whole.
    """

    table: str
    key: str | None = None


@dataclass(frozen=True)
class QueryRule:
    """A pattern query with the rule that its output triggers (*query-rule pair*, appendix G.1).

    Attributes
    ----------
    name : str
        To be told apart.
    types : tuple of str
        Types of events that the query consumes, the accepting type among them.
    accepting : str
        Type of the last event of its pattern.
    reads : tuple of StoreAccess
        What the query asks of the store.
    writes : tuple of StoreAccess
        What the rule may write; nothing if there is no rule.
    """

    name: str
    types: tuple[str, ...]
    accepting: str
    reads: tuple[StoreAccess, ...] = ()
    writes: tuple[StoreAccess, ...] = ()


def insert_locks(
    event: Mapping[str, object], pairs: Iterable[QueryRule], type_of: str = "type"
) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """What an event reads, and what it may write: its read locks and its write locks.

    A write lock for each item that a rule writes whose query ends with this type; a read lock for each item that a
    query reads which consumes this type, at whichever event of its pattern it asks for it.

    Parameters
    ----------
    event : mapping of str to object
        Its attributes.
    pairs : iterable of QueryRule
        All queries with their rules.
    type_of : str
        The attribute that is the type.

    Returns
    -------
    tuple of two tuples of Item
        Without duplicates, in the order of the pairs.

    Examples
    --------
    >>> status = (StoreAccess("status", "hcw"),)
    >>> warn = QueryRule("warn", ("EXIT", "SANITIZE", "ENTER"), "ENTER", reads=status, writes=status)
    >>> insert_locks({"type": "ENTER", "hcw": "ann"}, [warn])
    ((Item(table='status', key='ann'),), (Item(table='status', key='ann'),))
    >>> insert_locks({"type": "EXIT", "hcw": "ann"}, [warn])
    ((Item(table='status', key='ann'),), ())
    """
    reads: dict[Item, None] = {}
    writes: dict[Item, None] = {}
    for pair in pairs:
        if event[type_of] in pair.types:
            reads |= dict.fromkeys(_items(pair.reads, event))
        if event[type_of] == pair.accepting:
            writes |= dict.fromkeys(_items(pair.writes, event))
    return tuple(reads), tuple(writes)


def _items(accesses: Iterable[StoreAccess], event: Mapping[str, object]) -> list[Item]:
    return [Item(table, None if key is None else event[key]) for table, key in accesses]
