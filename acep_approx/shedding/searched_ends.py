"""The audit of a search: some of the ends that it had no tests for are drawn at random, and searched all the same.

The run keeps the events of the window, so an end takes as many tests as it would have taken there. Which ends are drawn
is left to chance, and how many are drawn does not depend on what is found. Run-steps that are not used are saved up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from acep_approx.budget.evidence import EndSample
from acep_approx.engines.runs.shedding import OpenEnds
from acep_approx.ranges import COUNT, finite, number_in

AT_MOST = 0.75
"""Share of the run-steps left that the ends of one piece may take: one end may take far more than all others."""
ENOUGH = 1.5
"""For each end that is drawn so many times the tests that it should take must be left."""
RUN_WEIGHS = 4.0
"""What the run took for an end counts as if so many ends that were tried had taken that."""


class SearchedEnds:
    """Searches ends that a run had no tests for.

    Parameters
    ----------
    seed : int
        Another one draws other ends.

    Attributes
    ----------
    quota, steps : float, int
        Run-steps granted, and done, so far.
    sample : EndSample
    """

    def __init__(self, seed: int) -> None:
        self.quota, self.steps = 0.0, 0
        self.sample = EndSample()
        self._seed, self._begun = seed, 0

    def try_some(self, ends: OpenEnds) -> None:
        """Search some of the open ends of a piece, drawn at random: as many as there are run-steps for."""
        left = self.quota - self.steps
        each = max((self.steps + RUN_WEIGHS * ends.each) / (self._begun + RUN_WEIGHS), 1.0)
        number, most = min(ends.number, int(AT_MOST * left / (ENOUGH * each))), int(AT_MOST * left)
        if number <= 0:
            self.sample = self.sample.combine(EndSample(ends.number))
            return
        dice = np.random.default_rng((self._seed % 2**64, self.sample.open))  # seeds may be below 0
        is_point, steps = ends.search(dice.permutation(ends.number)[:number], most)
        given_up = int(len(is_point) < number)
        self.steps, self._begun = self.steps + steps, self._begun + len(is_point) + given_up
        portion = EndSample.of(ends.number, len(is_point), int(is_point.sum()), given_up)
        self.sample = self.sample.combine(portion)

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """What must be kept to go on elsewhere, as JSON."""
        return {"counts": [self.quota, self.steps, self._begun], "sample": list(vars(self.sample).values())}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave."""
        self.quota, *counts = saved["counts"]
        finite("counts", self.quota)
        self.steps, self._begun = (number_in("counts", count, 0, COUNT) for count in counts)
        self.sample = EndSample.restored(saved["sample"])
