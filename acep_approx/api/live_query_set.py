"""A set of queries over events that are still being written."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from acep_approx.events.live.source import LiveSource


class SteppedSet(Protocol):
    """What a set of queries does, as far as a live run asks for it."""

    @property
    def arrived(self) -> int:
        """How many events were pushed."""
        ...

    def push(self, events: Any) -> Any:
        """The results of more events."""
        ...

    def use(self, source: LiveSource) -> None:
        """Tell an input which column is the time."""
        ...

    def finish(self) -> Any:
        """The stream has ended."""
        ...

    def state_bytes(self) -> bytes:
        """Where it stands."""
        ...

    def take_up(self, state: bytes) -> None:
        """Go on from a state of the same queries."""
        ...

    def fresh_state(self) -> bytes:
        """Where it stands before any event: which queries there are, and how they read events."""
        ...


@dataclass
class LiveQuerySet:
    """A set over live events.

    Parameters
    ----------
    desk : QuerySet
    on_schema : callable, optional
        Told of the columns before the first event is pushed.
    """

    desk: SteppedSet
    on_schema: Callable[[pa.Schema], None] | None = None
    rejected: Callable[[], pa.Table] | None = None

    def asked(self) -> dict[str, Any]:
        """Which queries there are."""
        return {"queries": hashlib.sha256(self.desk.fresh_state()).hexdigest()[:16]}

    def taken_up(self, state: bytes) -> None:
        """Go on from a state."""
        self.desk.take_up(state)

    def bind(self, source: LiveSource) -> Any:
        """Get ready for the columns of the events."""
        schema = source.schema
        if not len(schema):
            return None
        if self.on_schema is not None:
            self.on_schema(schema)
        return self.desk.push(schema.empty_table())

    def columns(self, names: Sequence[str]) -> list[str]:
        """All of them: queries may come that read others."""
        return list(names)

    def use(self, source: LiveSource) -> None:
        """Tell the input which column is the time."""
        self.desk.use(source)

    @property
    def arrived(self) -> int:
        """How many events were pushed, also by the runs before."""
        return self.desk.arrived

    def push(self, batch: pa.RecordBatch) -> Any:
        """The results of more events."""
        return self.desk.push(batch)

    def finish(self) -> Any:
        """The stream has ended."""
        return self.desk.finish()

    def state(self) -> bytes:
        """Where it stands."""
        return self.desk.state_bytes()
