"""Small streams, and a query that lists what can be shed."""

from __future__ import annotations

import random

LISTED = "PATTERN SEQ(A a, B+ b[], C? c, D d) WHERE [k] AND a.x < d.x WITHIN 12"


def world(seed: int, rows: int = 18) -> list[dict[str, object]]:
    dice = random.Random(seed)
    ticks = sorted(dice.randrange(rows) for _ in range(rows))
    return [
        {"ts": tick, "type": dice.choice("AABBCDD"), "k": dice.choice("pq"), "x": dice.randrange(4)} for tick in ticks
    ]
