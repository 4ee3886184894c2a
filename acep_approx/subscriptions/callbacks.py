"""What a user holds of a query that was added: who is told of its results, and how often that failed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, overload

import pyarrow as pa

from acep_approx.errors import expect

Callback = Callable[[pa.Table], Any]
_LOG = logging.getLogger(__name__)


class Subscription:
    """A query of a set.

    Attributes
    ----------
    id : str
    failures : int
        How often something that was to be told of results failed.
    last_error : Exception or None
        With what, the last time.
    """

    def __init__(self, id: str, number: int, listening: dict[int, Subscription]) -> None:  # noqa: A002
        self.id = id
        self._number, self._listening = number, listening
        self.failures = 0
        self.last_error: Exception | None = None
        self.callbacks: list[Callback] = []

    def on_match(self, callback: Callback) -> Subscription:
        """Call a function with the results of this query, once for each batch that has some.

        Parameters
        ----------
        callback : callable
            Takes a ``pyarrow.Table``. If it raises an exception, that is counted (``failures``, ``last_error``) and
            logged, and matching goes on.

        Returns
        -------
        Subscription
            Itself, so that several can be added in a row.
        """
        expect("the callback", callback, Callable, "a function of an Arrow table")  # type: ignore[arg-type]
        self.callbacks.append(callback)
        self._listening[self._number] = self
        return self

    def tell(self, table: pa.Table) -> None:
        """Call all functions that were given."""
        for callback in self.callbacks:
            try:
                callback(table)
            except Exception as error:  # noqa: BLE001  whatever it is, matching goes on
                self.failures += 1
                self.last_error = error
                _LOG.warning("a function that was told of results of %r failed: %r", self.id, error)

    def __repr__(self) -> str:
        return f"<Subscription {self.id!r}>"


class Subscriptions(Sequence[Subscription]):
    """Subscriptions of queries that were added together, each made when it is asked for."""

    def __init__(
        self, ids: Sequence[str], numbers: Sequence[int], make: Callable[[str, int], Subscription]
    ) -> None:
        self._ids, self._numbers, self._make = ids, numbers, make

    @overload
    def __getitem__(self, at: int) -> Subscription: ...

    @overload
    def __getitem__(self, at: slice) -> Subscriptions: ...

    def __getitem__(self, at: int | slice) -> Subscription | Subscriptions:
        if isinstance(at, slice):
            return Subscriptions(self._ids[at], self._numbers[at], self._make)
        return self._make(self._ids[at], self._numbers[at])

    def __len__(self) -> int:
        return len(self._ids)

    def __repr__(self) -> str:
        return repr([*self])
