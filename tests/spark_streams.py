"""Random events of two keys, and queries on them that need different keys, or none."""

from __future__ import annotations

from random import Random

import pyarrow as pa


def stream(number: int, seed: int) -> pa.Table:
    """Events of two keys, with ties in time."""
    dice = Random(seed)
    return pa.table({
        "ts": pa.array(sorted(dice.randrange(1, number) for _ in range(number)), pa.int64()),
        "user": [f"u{dice.randrange(5)}" for _ in range(number)],
        "shop": [f"s{dice.randrange(3)}" for _ in range(number)],
        "type": [dice.choice("ABC") for _ in range(number)],
        "x": [dice.randrange(9) for _ in range(number)],
        "id": pa.array(range(number), pa.int64()),
    })  # fmt: skip


QUERIES = {
    "by user": "PATTERN SEQ(A a, B b) WHERE [user] AND b.x > a.x WITHIN 20",
    "by both": "PATTERN SEQ(A a, B b, C c) WHERE [user] AND [shop] AND b.x > a.x WITHIN 20",
    "by shop": "PATTERN SEQ(A a, B b, C c) WHERE [shop] AND b.x > a.x + 3 WITHIN 9 RETURN a.x AS ax, c.x AS user",
    "by nothing": "PATTERN SEQ(A a, B b, ~(C c)) WHERE b.x > a.x + 6 WITHIN 5",
    "neighbours": "PATTERN SEQ(A a, B b) WHERE strict_contiguity { [user] } WITHIN 5",
    "up": "PATTERN SEQ(A a, B b) WHERE [user] AND b.x > a.x WITHIN 9 RETURN a.user AS user, b.x AS p PUBLISH Up",
    "twice up": "PATTERN SEQ(Up a, Up b) WHERE [user] AND b.p > a.p WITHIN 20",
    "low": "PATTERN SEQ(A a, B b) WHERE [user] AND b.x < a.x WITHIN 9 RETURN b.x AS p PUBLISH Low",
    "after low": "PATTERN SEQ(Low a, Low b) WHERE b.p > a.p + 5 WITHIN 3",
    "high": "PATTERN C c WHERE c.x > 7 WITHIN 1",
    "cel": "SELECT x FROM FILTER {x > 6} A",
}
