"""Algorithm 1, InsertLock: which locks an event needs, by its type, before any query has looked at it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from acep_approx.rules.schedules.transactions import Item


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
