"""A cache of what was made from an object that does not change, as long as the object lives."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar
from weakref import finalize

Value = TypeVar("Value")

MOST = 16
"""The most values that are kept for each object."""


class ObjectCache(Generic[Value]):
    """Values by object and key. An object is told by its identity: comparing large ones would take long.

    Examples
    --------
    >>> class Thing: ...
    >>> cache, thing = ObjectCache(), Thing()
    >>> cache.put(thing, "key", 5)
    >>> cache.get(thing, "key"), cache.get(Thing(), "key")
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
