"""Stream transactions: what one event reads of a shared store, what it may write to it, and what is kept of the store.

The store has one version of each item, or all that some transaction may still read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Literal, NamedTuple


class Stamp(NamedTuple):
    """The place of a transaction in the stream: that of its event.

    Attributes
    ----------
    ts : int
        Application time of the event.
    arrival : int
        Its number in the order in which events came. It decides between events of one time, for the paper only says
        that their order is up to the application (Definition 6, 4).
    """

    ts: int
    arrival: int


class Item(NamedTuple):
    """One row of a shared table.

    Attributes
    ----------
    table : str
        Name of the table.
    key : hashable
        Which row; None for a table of one row.
    """

    table: str
    key: Hashable = None


Values = Mapping[Item, object]
"""Values of items; an item that is not there is None."""


def nothing(seen: Values) -> Values:  # noqa: ARG001
    """What a transaction writes that only reads."""
    return {}


@dataclass(frozen=True, eq=False)
class Transaction:
    """All that one event causes (Definition 7): it reads, decides, and writes.

    Attributes
    ----------
    stamp : Stamp
        Its place; no two transactions have the same.
    reads : tuple of Item
        What it reads, each as it is before this transaction.
    writes : tuple of Item
        What it may write. Which of these it does is known when it has read.
    decide : callable
        Gets the values that were read, by item, and gives those to write; their items are some of ``writes``.
    """

    stamp: Stamp
    reads: tuple[Item, ...] = ()
    writes: tuple[Item, ...] = ()
    decide: Callable[[Values], Values] = nothing


class Operation(NamedTuple):
    """A read or a write that was done; a history is a list of them, in the order in which they were done."""

    kind: Literal["read", "write"]
    stamp: Stamp
    item: Item
    value: object


FIRST = Stamp(-(2**63), -1)
"""The stamp of what was loaded: before all transactions."""


class Version(NamedTuple):
    """A value, and the transaction that wrote it."""

    stamp: Stamp
    value: object


class OneVersion:
    """A store that knows the present alone: a read gives what was written last, whoever wrote it."""

    def __init__(self, rows: Values) -> None:
        self._rows = dict(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def read(self, item: Item, before: Stamp) -> object:  # noqa: ARG002
        """The value of an item."""
        return self._rows.get(item)

    def write(self, item: Item, value: object, stamp: Stamp) -> None:  # noqa: ARG002
        """Put a value in the place of the one before."""
        self._rows[item] = value

    def final(self) -> dict[Item, object]:
        """All values."""
        return dict(self._rows)


class Versions:
    """A store that knows what was before: a read gets the last version that was written before its own stamp.

    The paper keeps all versions for ever. Here a version goes when the one behind it is older than the *horizon*, the
    first transaction that may still read: no reader will ask for it. O(log n) for each write.

    Parameters
    ----------
    rows : mapping of Item to object
        What is loaded.
    keeps_all : bool
        Whether nothing goes, as in the paper.
    """

    def __init__(self, rows: Values, *, keeps_all: bool = False) -> None:
        self._of = {item: deque([Version(FIRST, value)]) for item, value in rows.items()}
        self._replaced: list[tuple[Stamp, int, Item]] = []
        self._writes = 0
        self._count = len(self._of)
        self._keeps_all = keeps_all

    def __len__(self) -> int:
        """How many versions there are, of all items."""
        return self._count

    def read(self, item: Item, before: Stamp) -> object:
        """The last version of an item that a transaction before a stamp wrote; None if there is none."""
        versions = self._of.get(item, ())
        place = bisect_left(versions, before, key=lambda version: version.stamp)
        return versions[place - 1].value if place else None

    def write(self, item: Item, value: object, stamp: Stamp) -> None:
        """Add the version of a transaction; writes of one item come in the order of the stream."""
        versions = self._of.setdefault(item, deque())
        if versions and versions[-1].stamp == stamp:
            versions[-1] = Version(stamp, value)
            return
        if versions and not self._keeps_all:
            # numbered, since items need not have an order
            heappush(self._replaced, (stamp, self._writes, item))
        self._writes += 1
        self._count += 1
        versions.append(Version(stamp, value))

    def collect(self, horizon: Stamp) -> int:
        """Let go what no transaction from a stamp on can read; gives how many versions."""
        gone = 0
        while self._replaced and self._replaced[0][0] < horizon:
            self._of[heappop(self._replaced)[2]].popleft()
            gone += 1
        self._count -= gone
        return gone

    def versions(self, item: Item) -> list[Version]:
        """The versions of an item, the oldest first; to look at."""
        return list(self._of.get(item, ()))

    def final(self) -> dict[Item, object]:
        """The last version of each item."""
        return {item: versions[-1].value for item, versions in self._of.items()}


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
