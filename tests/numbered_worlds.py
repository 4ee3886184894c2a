"""Worlds by their numbers: the runs engine is held against brute force on those that its mutants are shown."""

from __future__ import annotations

from random import Random

from acep_approx.query.parser import parse
from tests.cases import FULL
from tests.rich_worlds import Dice, RichWorld, rich_world, stream

MERGEABLE = (
    "PATTERN SEQ(A a, A b, B c) WHERE b.x > a.x AND c.x < a.x WITHIN 4",
    "PATTERN SEQ(ANY a, ANY b) WHERE b.x > a.x WITHIN 3",
    "PATTERN SEQ(ANY a, ANY b) WHERE b.y < a.y WITHIN 4",
    "PATTERN SEQ(ANY+ a[], ANY b) WHERE a[i].x >= a[i-1].x AND b.x < a[1].x WITHIN 3",
    "PATTERN SEQ(ANY a, ANY b, ANY c) WHERE c.x = a.x AND b.x != a.x WITHIN 4",
    "PATTERN SEQ(ANY a, ANY b, ANY c) WHERE c.x = a.x AND c.y > b.y WITHIN 5",
    "PATTERN SEQ(ANY+ a[], B b) WHERE count(a[]) > 2 WITHIN 2",
)
"""Queries that merge runs, drop dominated ones or let runs expire, which few random queries do on short streams."""


def numbers(many: int) -> list[int]:
    """The numbers below ``many``, but of the odd ones, whose worlds share a few queries, a quarter."""
    return [number for number in range(many) if FULL or number % 2 == 0 or number % 8 == 1]


def numbered_world(number: int) -> RichWorld:
    """The even ones are over the whole language, the odd ones merge."""
    dice = Random(number)
    world = rich_world(dice, chooses=False)
    if number % 2:
        text = dice.choice(MERGEABLE)
        world = RichWorld(parse(text), text, stream(Dice(dice)))
    return world
