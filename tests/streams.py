"""Short streams, written as a line of text."""

from __future__ import annotations

from typing import Any


def rows_of(text: str) -> list[dict[str, Any]]:
    """Events from a line like ``0 A 5, 1 B``: tick, type, and x."""
    fields = [part.split() for part in text.split(",")]
    return [{"ts": int(t), "type": kind, "x": int(x[0]) if x else None} for t, kind, *x in fields]
