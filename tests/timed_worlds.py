"""Random worlds whose events have times beside their ticks, and conditions on these."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random

import pyarrow as pa

from tests.rich_conditions import TIMES, Names, about_times
from tests.rich_worlds import Dice, RichWorld, rich_world, with_conditions, world_of

START = datetime(2024, 1, 1)  # noqa: DTZ001  times without a zone
GAPS = (0, 500, 1000, 1500, 2000, 3000, 3_600_000)


@dataclass(frozen=True)
class TimedWorld(RichWorld):
    """A world whose events have columns of times, beside the ticks that say when they came."""

    kind: pa.DataType = pa.timestamp("us")  # noqa: RUF009  (it is immutable)

    def table(self) -> pa.Table:
        """The stream as columns."""
        found = super().table()
        for name in TIMES:
            found = found.append_column(name, pa.array([row[name] for row in self.rows], self.kind))
        return found


def timed_world(seed: int) -> TimedWorld:
    """A world with conditions on times; seldom with others."""
    random = Random(seed)
    dice = Dice(random)
    world = rich_world(random, chooses=False)
    query, rows = world.query, [dict(row) for row in world.rows]
    predicates = with_conditions(query, dice, lambda names: about_times(dice.pick, names))
    definitions = tuple(
        replace(one, condition=about_times(dice.pick, Names((None,), ()))) if dice.chance(2) else one
        for one in query.definitions
    )
    for row in rows:
        for name in TIMES:
            gap = timedelta(milliseconds=dice.pick(GAPS))
            row[name] = None if dice.chance(8) else START + timedelta(seconds=row["ts"]) + gap
    found = world_of(replace(query, predicates=predicates, definitions=definitions), rows)
    return TimedWorld(found.query, found.text, found.rows, pa.timestamp(dice.pick(("us", "ns", "ms"))))
