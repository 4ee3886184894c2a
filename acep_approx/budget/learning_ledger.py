"""What a run that learned writes down about it: plain data, for the report, the terminal and tables.

Nothing heavy is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Rescoring:
    """Where a run stood when it said anew what runs are worth; counted from the beginning.

    Attributes
    ----------
    tick : int
        Tick of the last event before.
    events, points : int
        Events so far, and match points found so far.
    tests : int
        Tests of live runs that were sampled so far.
    work, explored : int
        Run-steps so far, and those of them that the cohort took.
    alarms : int
        Drift alarms so far, with those that were raised now.
    """

    tick: int
    events: int
    points: int
    tests: int
    work: int
    explored: int
    alarms: int


@dataclass(frozen=True)
class Drift:
    """A change of the stream that was noticed.

    Attributes
    ----------
    tick : int
        Of the error that made it plain.
    state : str
        Name of the state at which what was foretold no longer fits.
    errors : int
        Errors so far, of the runs there.
    what : str
        What was foretold, in words: ``whether tests pass``.
    """

    tick: int
    state: str
    errors: int
    what: str

    @property
    def where(self) -> str:
        """State, errors if there are any, and what was foretold."""
        return f"{place_words(self.state, self.errors)}: {self.what}"


@dataclass(frozen=True)
class Tenth:
    """Chances foretold in a tenth of the range from 0 to 1, against what became of the runs.

    Attributes
    ----------
    foretold, reached : float
        Mean chance to lead to a match point, and share that led to one.
    cases : int
        How many match vectors of runs of the cohort.
    """

    foretold: float
    reached: float
    cases: int


@dataclass(frozen=True)
class Score:
    """A point of the learning curve.

    Attributes
    ----------
    tick : int
        When the outcomes were known.
    brier : float
        Their mean squared error, from 0 (right) to 1.
    cases : int
        How many they were.
    """

    tick: int
    brier: float
    cases: int


@dataclass(frozen=True)
class SelectedFeature:
    """One thing by which the runs of a state are told apart.

    Attributes
    ----------
    state : str
    errors : int
    feature : str
        What the runs remember: ``price of a``; or ``pace``, how often events of their key came of late.
    ranges : sequence of str
        Its buckets in words.
    """

    state: str
    errors: int
    feature: str
    ranges: Sequence[str]


@dataclass(frozen=True)
class Learning:
    """What a run learned, from what, and at what cost.

    Attributes
    ----------
    tests : int
        Tests of live runs that were sampled.
    revalued : sequence of Rescoring
        In order; empty where too little was seen.
    alarms : sequence of Drift
        In order.
    tenths : sequence of Tenth
        Those with cases, rising.
    scores : sequence of Score
        The learning curve, in order of ticks.
    features : sequence of SelectedFeature
        What told runs apart at the end.
    explored, given_up : int
        Run-steps that the cohort took; how often it was given up because it had no more of them.
    explores : float
        Share of the budget that was the cohort's.
    seconds : float
        How long learning took, cohort included.
    """

    tests: int
    revalued: Sequence[Rescoring] = field(default=(), repr=False)
    alarms: Sequence[Drift] = ()
    tenths: Sequence[Tenth] = ()
    scores: Sequence[Score] = field(default=(), repr=False)
    features: Sequence[SelectedFeature] = ()
    explored: int = 0
    given_up: int = 0
    explores: float = 0.0
    seconds: float = 0.0

    @property
    def cases(self) -> int:
        """Outcomes that chances were held against."""
        return sum(tenth.cases for tenth in self.tenths)

    @property
    def brier(self) -> float | None:
        """Mean squared error of all chances foretold; None without cases."""
        return mean_score(self.scores)

    @property
    def plain_brier(self) -> float | None:
        """The score of who foretells the share of all cases that reached a match point, each time; None without cases.

        Examples
        --------
        >>> Learning(9, tenths=[Tenth(0.1, 0.0, 50), Tenth(0.5, 0.6, 50)]).plain_brier
        0.21
        """
        if not self.cases:
            return None
        share = sum(tenth.reached * tenth.cases for tenth in self.tenths) / self.cases
        return share * (1 - share)


def mean_score(scores: Sequence[Score]) -> float | None:
    """The Brier score of several points of the curve together; None without any.

    Examples
    --------
    >>> mean_score([Score(5, 0.1, 30), Score(9, 0.2, 10)]), mean_score([])
    (0.125, None)
    """
    cases = sum(score.cases for score in scores)
    return sum(score.brier * score.cases for score in scores) / cases if cases else None


def place_words(state: str, errors: int) -> str:
    """A state with a number of errors, for people.

    Examples
    --------
    >>> place_words("a b", 0), place_words("a", 1), place_words("a", 2)
    ('a b', 'a, 1 error', 'a, 2 errors')
    """
    return state + (f", {errors} error{'' if errors == 1 else 's'}" if errors else "")
