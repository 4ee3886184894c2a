"""What a run under a budget writes down about itself: plain data, for the report, the terminal and tables.

Nothing heavy is imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from acep_approx.budget.audit import RecallEstimate


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


# --- a run --------------------------------------------------------------------------------------------------

LIGHT = 10.0
"""Run-steps per event of the exact run below which no budget can save time: shedding takes as much (measured)."""


@dataclass(frozen=True)
class Piece:
    """Where a run stood at the end of a piece of the stream.

    Attributes
    ----------
    tick : int
        Tick of the last event of the piece.
    events : int
        Events so far.
    work, bound : int
        Run-steps done so far, and allowed so far.
    live : int
        Live runs.
    price : float
        Least score, gain per run-step, with which a run was kept.
    shed : int
        Runs shed so far.
    points : int
        Match points found so far.
    kept : int
        Events that are kept, where ends of matches are searched.
    open_ends : int
        Ends so far that the budget left open.
    """

    tick: int
    events: int
    work: int
    bound: int
    live: int
    price: float
    shed: int
    points: int
    kept: int = 0
    open_ends: int = 0


@dataclass(frozen=True)
class Shed:
    """How many runs of a state were shed for one reason.

    Attributes
    ----------
    state : str
        Name of the state, for people.
    reason : str
        Why, in a few words: ``below the price at birth``.
    runs : int
        How many.
    """

    state: str
    reason: str
    runs: int


@dataclass(frozen=True)
class Bundle:
    """A chain of match points, each at most one window after the one before (Definition 3).

    Attributes
    ----------
    first, last : int
        Ticks of its first and last match point.
    points : int
        How many match points it has.
    """

    first: int
    last: int
    points: int


@dataclass(frozen=True)
class PathStep:
    """A vertex on a path of the history, in words.

    Attributes
    ----------
    state : str
        Name of the state.
    errors : int
        Errors so far.
    details : str
        The rest of the match vector: what remains of the window, the time since the last event, the registers.
    """

    state: str
    errors: int
    details: str = ""

    @classmethod
    def of(cls, described: Mapping[str, Any], window: int) -> PathStep:
        """A vertex as ``history.vectors.Scheme.describe`` gives it.

        Parameters
        ----------
        described : mapping
            state, errors; remaining: [least, most] in ticks; features: a range in words for each name.
        window : int
            The window of the query, in ticks.

        Returns
        -------
        PathStep
            The rest of the window as a share of it.

        Examples
        --------
        >>> described = {"state": "a b", "errors": 1, "remaining": [50, 62], "features": {"a.v": "3 to 5"}}
        >>> PathStep.of(described, window=100)
        PathStep(state='a b', errors=1, details='50-62% left, a.v 3 to 5')
        """
        least, most = (round(100 * ticks / max(window, 1)) for ticks in described["remaining"])
        left = f"{least}-{most}%" if least < most else f"{least}%"
        features = (f"{name} {words}" for name, words in described["features"].items())
        return cls(described["state"], described["errors"], ", ".join((f"{left} left", *features)))


@dataclass(frozen=True)
class HistoryPath:
    """A way through the history graph that led to matches.

    Attributes
    ----------
    steps : sequence of PathStep
        Its vertices, the first event's first.
    count : float
        How many completions of the past took it; not whole where it follows from the edges of the graph.
    share : float
        The same as a share of all completions of the past.
    """

    steps: Sequence[PathStep]
    count: float
    share: float


class SpentRecord:
    """What the records of all runs inside a budget have in common: where they stood at the end."""

    budget: str
    pieces: Sequence[Piece]
    begin: int | None
    is_time: bool
    seconds: float | None
    full_work: float | None
    past_work: float | None
    exact_seconds: float | None = None

    @property
    def has_one_price(self) -> bool:
        """Whether there is one price, below which runs are shed."""
        return True

    @property
    def is_light(self) -> bool:
        """Whether the exact run is known to be so little work that no budget can save time."""
        return self.full_work is not None and self.full_work < LIGHT

    @property
    def events(self) -> int:
        """Events matched."""
        return self.pieces[-1].events if self.pieces else 0

    @property
    def work(self) -> int:
        """Run-steps done."""
        return self.pieces[-1].work if self.pieces else 0

    @property
    def allowed(self) -> int:
        """Run-steps that were allowed."""
        return self.pieces[-1].bound if self.pieces else 0

    @property
    def found(self) -> int:
        """Match points found."""
        return self.pieces[-1].points if self.pieces else 0

    @property
    def shed_runs(self) -> int:
        """Runs shed, for whatever reason."""
        return self.pieces[-1].shed if self.pieces else 0


@dataclass(frozen=True)
class RunRecord(SpentRecord):
    """One run under a budget, as the report shows it.

    Attributes
    ----------
    query : str
        Text of the query.
    source : str
        Name of the input.
    budget : str
        The budget as the user wrote it.
    bound : str
        What it comes to, in words: ``at most 5,000 run-steps per event, 50,000 saved up``.
    policy : str
        Name of the policy.
    seed : int
        Of the policy and of the audit.
    is_time : bool
        Whether ticks are microseconds since 1970; else they are plain numbers.
    begin : int, optional
        Tick of the first event; else the pictures begin with the end of the first piece.
    pieces : sequence of Piece
        In order.
    shed : sequence of Shed
        At most one for each state and reason.
    recall : RecallEstimate, optional
        From the audit.
    point_ticks, point_errors : sequence of int, or numpy.ndarray of int64
        Tick and least number of errors of each match point found; equally long. Of a run without end the latest.
    bundles : sequence of Bundle
        Of these match points.
    paths : sequence of HistoryPath
        The history's strongest paths, strongest first; empty without a history.
    late, malformed, without_key : int
        Events that were not matched, because they came too late, could not be read, or have no key.
    seconds : float, optional
        How long the run took.
    learning : Learning, optional
        What it learned; None where it did not.
    full_work : float, optional
        Run-steps per event of the exact run, as far as known: what percentages are of.
    past_work : float, optional
        What it took in the past, where ``full_work`` is what is expected of the events that came.
    exact_seconds : float, optional
        How long that would take, by what events and run-steps took here; None where this run does not tell.
    audit_work : int, optional
        Run-steps that the audit took; None where they are not told apart.
    ends, unsearched, unlisted, most_kept : int
        Where ends of matches were searched backwards: events that can end a match, those of which the budget left open
        whether they do, those of which it left open whether they end more matches than were listed, and the most events
        that were kept at once.
    push_p99 : float, optional
        How long a push took at most, in 99 of 100 cases, in seconds; of the latest ones of a stream that is pushed.
    """

    query: str
    source: str
    budget: str
    bound: str
    policy: str
    seed: int = 0
    is_time: bool = False
    begin: int | None = None
    pieces: Sequence[Piece] = field(default=(), repr=False)
    shed: Sequence[Shed] = ()
    recall: RecallEstimate | None = None
    point_ticks: Sequence[int] | npt.NDArray[np.int64] = field(default=(), repr=False)
    point_errors: Sequence[int] | npt.NDArray[np.int64] = field(default=(), repr=False)
    bundles: Sequence[Bundle] = field(default=(), repr=False)
    paths: Sequence[HistoryPath] = ()
    late: int = 0
    malformed: int = 0
    without_key: int = 0
    seconds: float | None = None
    learning: Learning | None = None
    full_work: float | None = None
    past_work: float | None = None
    exact_seconds: float | None = None
    audit_work: int | None = None
    ends: int = 0
    unsearched: int = 0
    unlisted: int = 0
    most_kept: int = 0
    push_p99: float | None = None

    def __repr__(self) -> str:
        work = f"{self.work:,} of {self.allowed:,} run-steps, {self.shed_runs:,} runs shed"
        of = f" of {self.source}" if self.source else ""
        return f"<RunRecord{of} under a budget of {self.budget}: {work}, {self.found:,} match points>"

    @property
    def shed_runs(self) -> int:
        """Runs shed, for whatever reason."""
        return sum(shed.runs for shed in self.shed)
