"""What a purse knows of an engine: its part of the budget, and what one more run-step finds there.

The past says how match points grow with the run-steps that an engine takes. How many there are it says less well: a
query that found eight in the past may find thousands now. So what it says is held against what was found so far.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from acep_approx.arrays import Floats
from acep_approx.budget.ledger import Piece
from acep_approx.shedding.shedder import Shedder
from acep_approx.training.histories import told

PAST_EVENTS = 512
"""As many events the work of the past counts for, beside the work of the events so far."""
BELIEVED = 8.0
"""As many match points the past counts for, beside those that were found."""
TIMES, CHANCE, LEAST_EXPECTED, MOST = 3.0, 6.0, 0.05, 100.0
"""The past is not believed where so many times as much was found as expected, and so many match points more, which may
be chance. Then at least so much was expected, and at most so many times that was found."""
BINS, GRID, LEAST_SHARE = 2, 96, 1e-6
"""Bins of weights for each time that they double; and how often, and how far down, a past is looked up."""
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
    weights : float64 array
        What a match point of each of its queries counts for, beside those of others.
    part : float
        Its part of the budget, as a multiple of what its own work is entitled to.
    size : float
        Run-steps per event of its exact run, as far as they are known.
    """

    shedder: Shedder
    name: str = ""
    weights: Floats = field(default_factory=lambda: np.ones(1))
    part: float = 1.0
    size: float = 1.0

    @property
    def weight(self) -> float:
        """The mean of its weights."""
        return float(self.weights.mean())

    def weigh(self, weights: Floats) -> None:
        """From here on match points count for this."""
        if not np.array_equal(weights, self.weights):
            self.weights = weights
            for known in ("_by_share", "_bins"):
                vars(self).pop(known, None)

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
    def _so_far(self) -> float | None:
        """Run-steps per event of the exact run, by the events so far alone; None where these do not tell."""
        if self.shedder.exact_work is None or self.piece is None:
            return None
        return self.shedder.full_work() or 0.0

    @property
    def present(self) -> float:
        """Run-steps per event of the exact run, by the events so far alone if these tell."""
        so_far = self._so_far
        return self.size if so_far is None else so_far

    @property
    def expected(self) -> float | None:
        """Run-steps per event of the exact run, by the past and the events so far; in numbers that no split changes."""
        known, so_far, piece = replace(self.shedder.load, full_work=None).steps_per_event, self._so_far, self.piece
        if so_far is not None and piece is not None:
            known = (PAST_EVENTS * (known or 0.0) + piece.events * so_far) / (PAST_EVENTS + piece.events)
        return None if known is None else float(f"{known:.6g}")

    def marginal(self, share: float) -> float:
        """Match points that one more run-step finds at a share of its exact run, by weight."""
        shares, marginals, _ = self._by_share
        asked = np.log(max(share, LEAST_SHARE))
        found = float(np.exp(np.interp(asked, np.log(np.maximum(shares, LEAST_SHARE)), np.log(marginals))))
        return self.weight * found * self._more_than_expected

    @cached_property
    def _bins(self) -> tuple[Floats, Floats]:
        """The weights of its queries beside their mean, as logarithms, and how many of them have each."""
        bins, place = np.unique(np.rint(BINS * np.log2(self.weights / self.weight)), return_inverse=True)
        return bins, np.bincount(place) / len(place)

    @cached_property
    def _by_share(self) -> tuple[Floats, Floats, Floats]:
        """Rising shares of its exact run, with what one more run-step finds there, and the match points found.

        Where queries have weights, those of the dearest are served first: of a query that counts for twice as much, as
        much is done as if the price were half of it.
        """
        known, ratio = self.shedder.load.history, self.shedder.load.ratio
        assert known is not None, "all have learned one"
        bins, part = self._bins
        times = np.exp2(bins / BINS)
        high, low = (known.prices_.marginal(share) for share in (0.0, 1.0))
        marginals = np.geomspace(1.001 * high * times.max(), 0.999 * low * times.min(), GRID)
        each = known.prices_.share_at(marginals[:, None] / times)
        found = known.prices_.best_found(each) @ part
        return np.minimum(each @ part / ratio, 1.0), marginals, found

    @property
    def _more_than_expected(self) -> float:
        """How many times the match points that its past led to expect of the run-steps so far it has found.

        Fewer say less, as match points come in bursts: by the root, and nothing where next to nothing was done.
        """
        known, piece, ratio = self.shedder.load.history, self.piece, self.shedder.load.ratio
        if known is None or piece is None:
            return 1.0
        exact, past = self.size * max(piece.events, 1), known.prices_.replays[0].steps * ratio
        (shares, _, found), share = self._by_share, min(piece.work / exact, 1.0)
        first = int(np.argmax(shares > 0))  # before that as much for each run-step
        expected = float(np.interp(share, np.append(0.0, shares[first:]), np.append(0.0, found[first:])))
        expected *= exact / max(past, 1.0)
        if piece.points > TIMES * expected + CHANCE:  # the past is of no use
            return min(piece.points / max(expected, LEAST_EXPECTED), MOST)
        times = (piece.points + BELIEVED) / (expected + BELIEVED)
        return times if times > 1 else max(math.sqrt(times), LEAST_TIMES) if share > SOME else 1.0
