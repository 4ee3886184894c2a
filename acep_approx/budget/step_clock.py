"""How long an event and a run-step take on this machine, measured while a run goes on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from acep_approx.ranges import finite

EVENT_SECONDS, STEP_SECONDS = 3e-7, 1e-8
"""What is assumed before anything was measured."""
FORGET = 0.9
"""What a piece still counts for when the next one is measured."""
LEAST_PIECES, MOST_ALIKE = 8, 0.99
"""Pieces from which on times are told, and how much alike (a squared cosine) their loads may be."""
PRIOR = 1e-6
"""How much the assumption counts for, beside one piece."""


@dataclass
class StepClock:
    """Least squares of seconds on events and run-steps, over the last pieces of the stream.

    Both are at least a twentieth of what is assumed: a clock that jumps must not make work free.

    Examples
    --------
    >>> clock = StepClock()
    >>> for steps in (0, 10_000, 200_000):
    ...     clock.observe(1000, steps, 1000 * 2e-6 + steps * 5e-9)
    >>> round(clock.event_seconds * 1e6, 1), round(clock.step_seconds * 1e9, 1)
    (2.0, 5.0)
    """

    event_seconds: float = EVENT_SECONDS
    step_seconds: float = STEP_SECONDS
    pieces: int = 0
    _products: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros((2, 2)), repr=False)
    _answers: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(2), repr=False)

    def observe(self, events: int, steps: int, seconds: float) -> None:
        """A piece of the stream took so long. Complexity: O(1)."""
        row = np.array([events, steps], np.float64)
        self.pieces += 1
        self._products = FORGET * self._products + np.outer(row, row)
        self._answers = FORGET * self._answers + row * seconds
        assumed = np.array([EVENT_SECONDS, STEP_SECONDS])
        ridge = np.diag(PRIOR * np.diag(self._products) + 1.0)
        found = np.linalg.solve(self._products + ridge, self._answers + ridge @ assumed)
        self.event_seconds, self.step_seconds = np.maximum(found, assumed / 20).tolist()

    @property
    def is_known(self) -> bool:
        """Whether events and run-steps can be told apart: by enough pieces of different load."""
        (events, both), (_, steps) = self._products
        return self.pieces >= LEAST_PIECES and both**2 < MOST_ALIKE * events * steps

    def snapshot(self) -> list[float]:
        """All that was measured, as JSON."""
        measured = [*self._products.ravel().tolist(), *self._answers.tolist()]
        return [self.event_seconds, self.step_seconds, *measured]

    @classmethod
    def restored(cls, saved: list[float]) -> StepClock:
        """What ``snapshot`` gave."""
        finite("clock", *saved)
        products, answers = np.array(saved[2:6]).reshape(2, 2), np.array(saved[6:])
        return cls(saved[0], saved[1], 0, products, answers)

    def steps_in(self, seconds: float, events: int) -> float:
        """Run-steps that fit into ``seconds`` beside what ``events`` take in any case; at least 0."""
        return max(seconds - events * self.event_seconds, 0.0) / self.step_seconds
