"""What a purse knows of an engine: its part of the budget, and what one more run-step finds there.

The past says how match points grow with the run-steps that an engine takes. How many there are it says less well: a
query that found eight in the past may find thousands now. So what it says is held against what was found so far.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from acep_approx.budget.ledger import Piece
from acep_approx.shedding.shedder import Shedder
from acep_approx.training.histories import told

PAST_EVENTS = 512
"""Events that what the past took of an event counts for, beside what those so far are told to take."""
BELIEVED = 8.0
"""Match points that the past counts for, beside those that were found."""
TIMES, CHANCE, LEAST_EXPECTED, MOST = 3.0, 6.0, 0.05, 100.0
"""From so many times what was expected, and some by chance, on the past is not believed; the least to expect, and how
many times that may have been found."""
SOME, LEAST_TIMES = 0.02, 0.25
"""Share of its exact run from which on it matters that an engine finds less, and how much that matters at most."""


@dataclass(eq=False)
class Account:
    """What a purse knows of an engine.

    Attributes
    ----------
    shedder : Shedder
        Sheds for it.
    name : str
        For people.
    weight : float
        What a match point of it counts for, beside those of others.
    part : float
        Its part of the budget, as a multiple of what its own work is entitled to.
    size : float
        Run-steps per event of its exact run, as far as they are known.
    """

    shedder: Shedder
    name: str = ""
    weight: float = 1.0
    part: float = 1.0
    size: float = 1.0

    @cached_property
    def history(self) -> dict[str, Any] | None:
        """What a state holds of the history that it has."""
        known = self.shedder.load.history
        return None if known is None else told(known)

    @property
    def piece(self) -> Piece | None:
        """Where it stood at the end of the last piece of the stream."""
        pieces = self.shedder.metrics.pieces
        return pieces[-1] if pieces else None

    @property
    def present(self) -> float:
        """Run-steps per event of the exact run, by the events so far alone if these tell."""
        tells = self.shedder.exact_work is not None and self.piece is not None
        return self.size if not tells else self.shedder.full_work() or 0.0

    def marginal(self, share: float) -> float:
        """Match points that one more run-step finds at a share of its exact run, by weight."""
        known = self.shedder.load.history
        assert known is not None, "all have learned one"
        return self.weight * known.prices_.marginal(share * self.shedder.load.ratio) * self._more_than_expected

    @property
    def _more_than_expected(self) -> float:
        """How many times the match points that its past led to expect of the run-steps so far it has found.

        Fewer say less, as match points come in bursts: by the root, and nothing where next to nothing was done.
        """
        known, piece, ratio = self.shedder.load.history, self.piece, self.shedder.load.ratio
        if known is None or piece is None:
            return 1.0
        exact, past = self.size * max(piece.events, 1), known.prices_.replays[0].steps * ratio
        share = min(piece.work / exact, 1.0)
        expected = known.prices_.best_found(share * ratio) * exact / max(past, 1.0)
        if piece.points > TIMES * expected + CHANCE:  # the past is of no use
            return min(piece.points / max(expected, LEAST_EXPECTED), MOST)
        times = (piece.points + BELIEVED) / (expected + BELIEVED)
        return times if times > 1 else max(math.sqrt(times), LEAST_TIMES) if share > SOME else 1.0


def present_work(shedder: Shedder) -> float | None:
    """Run-steps per event of the exact run, by the past and the events so far; in numbers that no split changes."""
    known = replace(shedder.load, full_work=None).steps_per_event
    if shedder.exact_work is not None and shedder.metrics.pieces:
        events, present, past = shedder.metrics.pieces[-1].events, shedder.full_work() or 0.0, known or 0.0
        known = (PAST_EVENTS * past + events * present) / (PAST_EVENTS + events)
    return None if known is None else float(f"{known:.6g}")
