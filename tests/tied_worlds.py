"""Worlds with SIMULTANEOUS: any query it can stand in, streams with many events at one time, and shuffles of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from random import Random

from acep_approx.query.syntax import QuerySyntax, Window
from tests.rich_worlds import Dice, RichWorld, Row, rich_world, stream, world_of


def tied_world(random: Random) -> RichWorld:
    """The world that comes of a seed: most events have others at their time."""
    dice = Dice(random)
    return world_of(simultaneous(rich_world(random, non_overlap=False).query, dice), tied(stream(dice), dice))


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
