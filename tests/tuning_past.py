"""A past to tune a query on."""

from __future__ import annotations

from random import Random

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE [key] AND b.x > a.x AND c.x < b.x WITHIN 30"


def make_events(number: int, seed: int = 0) -> list[dict]:
    """Events of three keys at random times."""
    random, now, events = Random(seed), 0, []
    for _ in range(number):
        now += random.randrange(3)
        events.append({"ts": now, "type": random.choice("AABC"), "key": random.choice("uvw"), "x": random.random()})
    return events
