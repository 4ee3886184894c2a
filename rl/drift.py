"""Whether what is foretold comes true: drift, which is noticed at once, and calibration, which is added up.

Drift: river's ADWIN on the errors of each place. Source: ADWIN, Bifet and Gavalda, SDM 2007 (adaptive windowing): a
window of errors that is cut wherever the means of its two parts differ by more than chance. What it is fed with is
ours: the squared error of a chance p less the p (1 - p) that it has where p is true (the terms of Spiegelhalter's z,
Statistics in Medicine 5, 1986). The squared error alone also changes when the model gets better, or the outcome easier
to foretell; this is 0 on average as long as the model is right, whatever it foretells. ADWIN's bound takes errors from
[0, 1]; these are from [-1/8, 1].

Calibration: Brier score, reliability and learning curve, from the outcomes of the cohort. Source: Brier, Monthly
Weather Review 78, 1950; reliability diagrams as in Murphy and Winkler, Applied Statistics 26, 1977. Outcomes are
weighted by one by the chance to be in the cohort (Horvitz and Thompson 1952), so the score is that of all runs and not
only of those that were kept.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from history.arrays import Bools, Floats, Ints
from history.checking import check_column

if TYPE_CHECKING:
    from river.drift import ADWIN

DELTA = 1e-4
"""Chance of a false alarm, if errors are independent. They are not quite: what is learned changes which runs are kept,
and so what is tested. ADWIN's usual 0.002 gave alarms on streams without a change."""
EVERY = 4
"""Errors of a place after which it is looked for a change again."""

TRIED = 64
"""How often four errors are shown to a detector of a state before it is trusted."""

What = Literal["tests", "cohort", "promise"]
_WHAT = get_args(What)


@dataclass(frozen=True, order=True)
class Alarm:
    """A place where predictions no longer fit.

    Parameters
    ----------
    tick : int
        Of the error that made it plain.
    place : int
        Number of the place.
    what : {"tests", "cohort", "promise"}
        Whose predictions: whether tests pass, whether runs of the cohort lead to a match point, or how many match
        points were promised (that is of all places: the first one stands for them).
    """

    tick: int
    place: int
    what: What


class Detectors:
    """One detector for each place and kind of error.

    Parameters
    ----------
    delta : float, default 0.0001
        ADWIN's level: chance of a false alarm, if errors are independent.

    Examples
    --------
    >>> dice = np.random.default_rng(3)
    >>> passed = np.concatenate([dice.random(2000) < 0.1, dice.random(2000) < 0.25])
    >>> errors = excess(np.full(4000, 0.1), passed)
    >>> alarms = Detectors().feed("tests", np.arange(4000), np.ones(4000, np.int64), errors)
    >>> [(2000 < alarm.tick < 2500, alarm.place, alarm.what) for alarm in alarms][:1]
    [(True, 1, 'tests')]
    """

    def __init__(self, delta: float = DELTA) -> None:
        self.delta = delta
        self._at: dict[tuple[What, int], ADWIN] = {}

    def feed(self, what: What, tick: Ints, place: Ints, error: Floats) -> list[Alarm]:
        """Take errors.

        Parameters
        ----------
        what : {"tests", "cohort"}
            Whose they are.
        tick, place : int64 array, shape (errors,)
            When and where, in any order: they are taken in that of tick and place. Of errors of the same tick and
            place only the mean is taken: runs that are tested by one event pass or fail together, so that they are no
            more evidence than one run, and would look like a change.
        error : float64 array, shape (errors,)
            See ``excess``.

        Returns
        -------
        list of Alarm
            In order.

        Complexity: O(errors log errors), and 1 microsecond for each tick and place.
        """
        alarms = []
        for when, where, mean in _means(tick, place, error):
            detector = self._detector(what, where)
            detector.update(mean)  # type: ignore[no-untyped-call]
            if detector.drift_detected:
                alarms.append(Alarm(when, where, what))
        return alarms

    def to_json(self) -> list[list[Any]]:
        """All of them; those are left out whose state river does not give away as bytes, and begin anew."""
        held = [(key, _numbers_of(one).__getstate__()) for key, one in self._at.items()]
        return [[*key, b64encode(state).decode()] for key, state in held if isinstance(state, bytes)]

    def restore(self, saved: list[list[Any]]) -> None:
        """Take over what ``to_json`` gave.

        Raises
        ------
        ValueError
            It is not that.
        """
        self._at = {}
        for what, place, held in saved:
            if what not in _WHAT or type(place) is not int:
                raise ValueError("no such detector")
            content = b64decode(held)
            _try_out(content, self.delta)
            _numbers_of(self._detector(what, place)).__setstate__(content)

    def _detector(self, what: What, place: int) -> ADWIN:
        if (what, place) not in self._at:
            from river.drift import ADWIN  # it loads scikit-learn and pandas, which takes longer than all of ours

            self._at[what, place] = ADWIN(delta=self.delta, clock=EVERY)  # type: ignore[no-untyped-call]
        return self._at[what, place]


def _numbers_of(detector: ADWIN) -> Any:
    """What holds the numbers of a detector, in Rust: river gives them away, and takes them, nowhere else."""
    return detector._helper


def _try_out(content: bytes, delta: float) -> None:
    """Have a detector of this state take some errors: river does not look whether its numbers fit together, and panics.

    Raises
    ------
    ValueError
        It does.
    """
    tried = Detectors(delta)._detector("tests", 0)
    try:
        _numbers_of(tried).__setstate__(content)
        for error in (0.0, 1.0, 0.25, -0.125) * TRIED:
            tried.update(error)  # type: ignore[no-untyped-call]
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":  # which is no Exception
            raise ValueError("the state of a drift detector is damaged") from error
        raise


def excess(chance: Floats, came: Bools) -> Floats:
    """Squared errors of some chances, less what they are on average where the chances are true.

    Examples
    --------
    >>> excess(np.array([0.5, 0.1, 0.1]), np.array([True, True, False])).round(2).tolist()
    [0.0, 0.72, -0.08]
    """
    return np.asarray((came - chance) ** 2 - chance * (1 - chance), np.float64)


def _means(tick: Ints, place: Ints, error: Floats) -> Iterator[tuple[int, int, float]]:
    """The mean error of each tick and place. Sorted before it is summed up: it must not depend on who saw them."""
    order = np.lexsort((error, place, tick))
    tick, place, error = tick[order], place[order], error[order]
    first = np.flatnonzero(np.r_[True, (np.diff(tick) != 0) | (np.diff(place) != 0)][: len(tick)])
    mean = np.add.reduceat(error, first) / np.diff(first, append=len(tick)) if len(first) else error
    yield from zip(tick[first].tolist(), place[first].tolist(), mean.tolist(), strict=True)


# --- calibration --------------------------------------------------------------------------------------------

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
