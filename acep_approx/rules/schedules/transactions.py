"""Stream transactions: what one event reads of a shared store, and what it may write to it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
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
