"""What a run under a budget writes down about itself: plain data, for the report and for the terminal.

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
    from acep_approx.budget.learning_ledger import Learning


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
    """

    tick: int
    events: int
    work: int
    bound: int
    live: int
    price: float
    shed: int
    points: int


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


@dataclass(frozen=True)
class RunRecord:
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
        Run-steps per event of the exact run, as far as known.
    exact_seconds : float, optional
        How long that would take, by what events and run-steps took here; None where this run does not tell.
    audit_work : int, optional
        Run-steps that the audit took; None where they are not told apart.
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
    exact_seconds: float | None = None
    audit_work: int | None = None

    def __repr__(self) -> str:
        work = f"{self.work:,} of {self.allowed:,} run-steps, {self.shed_runs:,} runs shed"
        of = f" of {self.source}" if self.source else ""
        return f"<RunRecord{of} under a budget of {self.budget}: {work}, {self.found:,} match points>"

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
        """Match points found; ``point_ticks`` may be the latest of them only."""
        return self.pieces[-1].points if self.pieces else 0

    @property
    def shed_runs(self) -> int:
        """Runs shed, for whatever reason."""
        return sum(shed.runs for shed in self.shed)
