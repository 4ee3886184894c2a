"""A stream and queries for tests in which many queries, or rules, share a load budget."""

from __future__ import annotations

from random import Random
from typing import Any

Rows = list[dict[str, Any]]
ONE = "PATTERN SEQ(A a, A b, B c) WHERE b.x > a.x AND c.x > b.x WITHIN 40"
TWO = "PATTERN SEQ(A a, B b, C c) WHERE [k] AND b.x <> a.x AND c.x <> b.x WITHIN 60"
MANY = "PATTERN SEQ(A a, A b, B c) WHERE a.x > :p AND b.x <> a.x AND c.x <> a.x + b.x WITHIN 40"


def stream(seed: int, rows: int = 240, step: int = 2) -> Rows:
    """Events in order of time with ties, many of them at the edges of constants."""
    dice, tick, found = Random(seed), 0, []
    for _ in range(rows):
        tick += dice.randrange(step + 1)
        found.append({"ts": tick, "type": dice.choice("AABBC"), "k": dice.choice("uv"), "x": dice.randrange(9)})
    return found
