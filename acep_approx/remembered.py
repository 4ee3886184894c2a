"""What was made of an object that does not change, to be used again as long as the object lives."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar
from weakref import finalize

Value = TypeVar("Value")

MOST = 16
"""Values that are kept for each object."""


class Remembered(Generic[Value]):
    """Values by an object and a key; by the object itself, not by what it equals: to compare large ones takes long.

    Examples
    --------
    >>> class Thing: ...
    >>> remembered, thing = Remembered(), Thing()
    >>> remembered.put(thing, "key", 5)
    >>> remembered.get(thing, "key"), remembered.get(Thing(), "key")
    (5, None)
    """

    def __init__(self) -> None:
        self._of: dict[int, dict[Hashable, Value]] = {}

    def get(self, thing: object, key: Hashable) -> Value | None:
        """The value that was put; None where there is none."""
        known = self._of.get(id(thing))
        return None if known is None else known.get(key)

    def put(self, thing: object, key: Hashable, value: Value) -> None:
        """Keep a value, which nobody changes, as long as the object lives; not where there are many."""
        known = self._of.get(id(thing))
        if known is None:
            known = self._of[id(thing)] = {}
            finalize(thing, self._of.pop, id(thing), None).atexit = False
        if len(known) < MOST:
            known[key] = value
