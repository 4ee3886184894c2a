"""Whether chances come true: Brier score, reliability, learning curve, from the outcomes of the cohort.

Source: Brier, Monthly Weather Review 78, 1950; reliability diagrams as in Murphy and Winkler, Applied Statistics 26,
1977. Outcomes are weighted by one by the chance to be in the cohort (Horvitz and Thompson 1952), so the score is that
of all runs and not only of those that were kept.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from history.arrays import Bools, Floats, Ints
from history.checking import check_column

BINS = 10
"""Bins of the chance, of equal width."""

_SUMS = ("weight", "foretold", "reached", "curve_weight", "curve_error")


class Calibration:
    """Chances that were foretold, against what became of the runs. Nothing fades; all sums add up.

    Attributes
    ----------
    weight, foretold, reached : float64 array, shape (10,)
        By tenths of the chance: sum of weights, of weighted chances, of weights of those that led to a match point.
    curve_tick : int64 array, shape (observations,)
        Ticks at which outcomes were learned, rising.
    curve_weight, curve_error : float64 array, shape (observations,)
        Sums of their weights, and of their weighted squared errors.

    Examples
    --------
    >>> known = Calibration()
    >>> known.add(60, np.array([0.1, 0.9]), np.array([False, True]), np.ones(2))
    >>> known.add(90, np.array([0.6]), np.array([False]), np.ones(1))
    >>> round(known.brier, 3), [line.round(2).tolist() for line in known.curve()]
    (0.127, [[60, 90], [0.01, 0.36]])
    """

    def __init__(self) -> None:
        self.weight, self.foretold, self.reached = np.zeros((3, BINS))
        self.curve_tick = np.zeros(0, np.int64)
        self.curve_weight, self.curve_error = np.zeros((2, 0))

    def add(self, tick: int, chance: Floats, reached: Bools, weight: Floats) -> None:
        """Add outcomes.

        Parameters
        ----------
        tick : int
            When they were learned.
        chance : float64 array, shape (outcomes,)
            What was foretold, from 0 to 1.
        reached : bool array, shape (outcomes,)
            Whether the run led to a match point.
        weight : float64 array, shape (outcomes,)
            One by the chance to be in the cohort.
        """
        if not len(chance):
            return
        at = np.minimum((chance * BINS).astype(np.int64), BINS - 1)
        for name, values in (("weight", weight), ("foretold", weight * chance), ("reached", weight * reached)):
            setattr(self, name, getattr(self, name) + np.bincount(at, weights=values, minlength=BINS))
        error = (weight * (reached - chance) ** 2).sum()
        self._extend(np.array([tick], np.int64), np.array([weight.sum()]), np.array([error]))

    @property
    def brier(self) -> float:
        """Mean squared error of the chance; NaN without outcomes."""
        weight = self.curve_weight.sum()
        return float(self.curve_error.sum() / weight) if weight > 0 else float("nan")

    def reliability(self) -> tuple[Floats, Floats, Floats]:
        """By tenths: mean chance foretold, share that reached a match point, weight; means are NaN without outcomes."""
        nothing = np.full(BINS, np.nan)
        foretold, reached = (
            np.divide(sums, self.weight, out=nothing.copy(), where=self.weight > 0)
            for sums in (self.foretold, self.reached)
        )
        return foretold, reached, self.weight.copy()

    def curve(self) -> tuple[Ints, Floats]:
        """Ticks, and the Brier score of what was learned at each: the learning curve."""
        return self.curve_tick.copy(), self.curve_error / self.curve_weight

    def merge(self, other: Calibration) -> Calibration:
        """Both together; outcomes that were learned at the same tick become one point of the curve."""
        merged = Calibration()
        for part in (self, other):
            merged.weight, merged.foretold, merged.reached = (
                merged.weight + part.weight,
                merged.foretold + part.foretold,
                merged.reached + part.reached,
            )
            merged._extend(part.curve_tick, part.curve_weight, part.curve_error)
        return merged

    def to_arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """As arrays by name."""
        return {name: getattr(self, name).copy() for name in ("curve_tick", *_SUMS)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[np.generic]]) -> Calibration:
        """What ``to_arrays`` wrote.

        Raises
        ------
        ValueError
            It is not that.
        """
        made = cls()
        made.curve_tick = check_column("curve_tick", arrays["curve_tick"], "int64", least=None)
        for name in _SUMS:
            size = len(made.curve_tick) if name.startswith("curve") else BINS
            setattr(made, name, check_column(name, arrays[name], "float64", size))
        return made

    def _extend(self, tick: Ints, weight: Floats, error: Floats) -> None:
        ticks, at = np.unique(np.concatenate([self.curve_tick, tick]), return_inverse=True)
        self.curve_tick = ticks
        for name, more in (("curve_weight", weight), ("curve_error", error)):
            both = np.concatenate([getattr(self, name), more])
            setattr(self, name, np.bincount(at, weights=both, minlength=len(ticks)).astype(np.float64))
