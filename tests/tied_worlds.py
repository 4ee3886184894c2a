"""Worlds with SIMULTANEOUS: any query it can stand in, streams with many events at one time, and shuffles of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from random import Random

from acep_approx.query.parser import parse
from acep_approx.query.syntax import QuerySyntax, Window
from tests.rich_worlds import Dice, RichWorld, Row, rich_world, stream, world_of

CHOOSY = (
    "PATTERN SEQ(A a, ANY b) WHERE skip_till_next_match { b.x > a.x } WITHIN 5 SIMULTANEOUS",
    "PATTERN SEQ(ANY a, ANY b, ANY c) WHERE skip_till_next_match { b.x >= a.x AND c.x < b.x } WITHIN 8 SIMULTANEOUS",
    "PATTERN SEQ(ANY+ a[], B b) WHERE skip_till_next_match { a[i].x > a[i-1].x } WITHIN 8 SIMULTANEOUS",
)
"""Queries of which some events at one time take runs away and others do not, which few random queries are."""


def tied_world(random: Random) -> RichWorld:
    """The world that comes of a seed: most events have others at their time."""
    dice = Dice(random)
    if dice.chance(6):
        return world_of(parse(dice.pick(CHOOSY)), tied(stream(dice), dice))
    return world_of(simultaneous(rich_world(random, chooses=False).query, dice), tied(stream(dice), dice))


def simultaneous(query: QuerySyntax, dice: Dice) -> QuerySyntax:
    """A query with SIMULTANEOUS, in a window of time."""
    return replace(query, is_simultaneous=True, window=Window(dice.pick((3, 5, 2, 8, 1, 0)), "ticks"))


def tied(rows: tuple[Row, ...], dice: Dice) -> tuple[Row, ...]:
    """The rows at other times: one, two or three of them at each."""
    tick, left, found = dice.pick((0, 1, -3)), 0, []
    for row in rows:
        if left == 0:
            tick, left = tick + dice.pick((1, 1, 1, 2, 3)), dice.pick((1, 2, 2, 3))
        left -= 1
        found.append({**row, "ts": tick})
    return tuple(found)


def shuffled(rows: tuple[Row, ...], random: Random) -> tuple[tuple[Row, ...], list[int]]:
    """The rows in another order within each tick, and where each of them stood before."""
    order: list[int] = []
    for _, numbers in groupby(range(len(rows)), key=lambda number: rows[number]["ts"]):
        tick = list(numbers)
        random.shuffle(tick)
        order += tick
    return tuple(rows[number] for number in order), order
