"""Notice that the stream has changed: river's ADWIN on the errors of each place.

Source: ADWIN, Bifet and Gavalda, SDM 2007 (adaptive windowing): a window of errors that is cut wherever the means of
its two parts differ by more than chance. What it is fed with is ours: the squared error of a chance p less the
p (1 - p) that it has where p is true (the terms of Spiegelhalter's z, Statistics in Medicine 5, 1986). The squared
error alone also changes when the model gets better, or the outcome easier to foretell; this is 0 on average as long as
the model is right, whatever it foretells. ADWIN's bound takes errors from [0, 1]; these are from [-1/8, 1].
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from history.arrays import Bools, Floats, Ints

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
        held = [(key, one._helper.__getstate__()) for key, one in self._at.items()]
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
            self._detector(what, place)._helper.__setstate__(content)

    def _detector(self, what: What, place: int) -> ADWIN:
        if (what, place) not in self._at:
            from river.drift import ADWIN  # it loads scikit-learn and pandas, which takes longer than all of ours

            self._at[what, place] = ADWIN(delta=self.delta, clock=EVERY)  # type: ignore[no-untyped-call]
        return self._at[what, place]


def _try_out(content: bytes, delta: float) -> None:
    """Have a detector of this state take some errors: river does not look whether its numbers fit together, and panics.

    Raises
    ------
    ValueError
        It does.
    """
    tried = Detectors(delta)._detector("tests", 0)
    try:
        tried._helper.__setstate__(content)
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
