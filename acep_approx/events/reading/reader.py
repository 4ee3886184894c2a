"""What every kind of input offers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa


class Reader(Protocol):
    """Events to read: what ``Source`` and the readers around others ask for."""

    rows: int | None
    reusable: bool

    @property
    def schema(self) -> pa.Schema:
        """The columns; below ``FlatEvents`` they may hold objects."""
        ...

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns that exist, in batches of at most ``batch_rows``."""
        ...
