"""What the arc logs hold of one key, copied: to go back to where the key stood, or to go on in another engine.

Source: ours. See ``engines.runs.key_store``, which does the same for runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from acep_approx.arrays import Ints
from acep_approx.automaton.determinize import Vector
from acep_approx.engines.engine import does_not_fit
from acep_approx.kernels.cells.detect import NEVER
from acep_approx.kernels.cells.layout import ENTRY_COLUMNS

Move = tuple[int, int, int]


@dataclass(frozen=True)
class Numbering:
    """What the numbers of states and logs stand for: each engine gives them as it comes upon states and arcs.

    ``moves`` and ``resets`` give the number of the log of an arc (source, label, target), and of a guarded state. All
    three only grow, so copies share them with the engine.
    """

    vectors: list[Vector]
    moves: dict[Move, int]
    resets: dict[int, int]

    def __len__(self) -> int:
        return len(self.moves) + len(self.resets)

    def is_of(self, labels: int) -> bool:
        """Whether it can be that of a query with so many labels: nothing of it is an index before."""
        states = len(self.vectors)
        fits = sorted([*self.moves.values(), *self.resets.values()]) == list(range(len(self)))
        fits = fits and all(0 <= s < states and -1 <= v < labels and 0 <= t < states for s, v, t in self.moves)
        return fits and all(0 <= state < states for state in self.resets)


@dataclass(frozen=True)
class LogsOfKey:
    """A copy of the arc logs of one key; ``ArcLogs.fork`` makes it, ``ArcLogs.put`` brings it back.

    ``latest`` is by state; ``lengths`` says how many entries there are of each log, ``entries`` has them one log after
    the other.
    """

    latest: Ints
    lengths: Ints
    entries: Ints
    numbering: Numbering

    def check_size(self) -> None:
        """Refuse a copy whose parts do not fit together.

        Raises
        ------
        DataError
            ``ACEP-D047``
        """
        fits = self.latest.size <= len(self.numbering.vectors) and self.lengths.size <= len(self.numbering)
        fits = fits and bool((self.lengths >= 0).all())
        if not fits or ENTRY_COLUMNS * int(self.lengths.sum()) != self.entries.size:
            raise does_not_fit("logs")

    def check(self, labels: int) -> None:
        """Refuse a copy of another engine that cannot be of this query; nothing of it is an index before.

        Raises
        ------
        DataError
            ``ACEP-D047``
        """
        self.check_size()
        if not self.numbering.is_of(labels):
            raise does_not_fit("logs")


def numbers_in(there: Numbering, add_vector: Callable[[Vector], int], copy: LogsOfKey) -> tuple[Ints, Ints]:
    """The numbers that the states and logs of a copy have in another engine; those that hold something are made."""
    here = copy.numbering
    states, logs = np.full(len(here.vectors), -1), np.full(len(here), -1)

    def state(number: int) -> int:
        if states[number] < 0:
            states[number] = add_vector(here.vectors[number])
        return int(states[number])

    for number in np.flatnonzero(copy.latest > NEVER).tolist():
        state(number)
    filled = set(np.flatnonzero(copy.lengths).tolist())
    for (source, label, target), log in here.moves.items():
        if log in filled:
            logs[log] = there.moves.setdefault((state(source), label, state(target)), len(there))
    for guarded, log in here.resets.items():
        if log in filled:
            logs[log] = there.resets.setdefault(state(guarded), len(there))
    return states, logs
