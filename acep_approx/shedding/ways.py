"""Search ends of matches, or follow runs: which of the two a run inside a budget does, and when it changes over.

What the past says decides at the beginning; afterwards what comes of it does, at fixed numbers of events. Nothing that
has begun is lost: whoever is to take over first sees the events of a whole window while the other still answers.

Source: ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from acep_approx.engines.search.searches import WITHOUT_LIMIT, Searches
from acep_approx.kernels.search.end_search import ALL, ANY, LATEST
from acep_approx.ranges import TICK, finite, number_in
from acep_approx.training.searching import Rung

if TYPE_CHECKING:
    from acep_approx.engines.runs.load_shedder import Results
    from acep_approx.planning.planner import Plan
    from acep_approx.shedding.load import Load
    from acep_approx.training.pricing import Prices
    from acep_approx.training.searching import SearchCost

LEAST_PIECE, LEAST_STRETCH, MOST_STRETCH = 1 << 10, 1 << 12, 1 << 16
"""A run is written down after so many events at least, and looks which way is better after so many, if a window has
passed as well. Both grow with the events so far, up to a limit."""
PART, PART_OF_POOR = 4, 8
"""They grow to such a part of the events so far: where too few ends are searched it is looked more often."""
LEAST_ENDS = 32
"""Events that can end a match, below which a stretch says nothing."""
BETTER = 0.1
"""Runs are followed at first only if they promise more than a search by this share of what it finds: replays at a
fixed price find more than runs that keep a bound. A run that searches changes over for this share of all points."""
FIRST_REST, MOST_REST = 8, 1024
"""Windows after which searching is tried once more; each time it had to be given up, twice as many."""
FAR, TINY = 2**62, 1e-9
WHOLE_PAYS = 0.5
"""Of each match point the latest start is looked for where that took less than so much of the budget in the past;
without a limit ends of matches are searched where it took less than so much of the exact run's work."""


@dataclass
class Ways:
    """Which of the two ways answers, and whether the other one gets ready to take over.

    Parameters
    ----------
    how : Searches
    cost : SearchCost
        What searching took in the past.
    prices : Prices
        What following runs found there.
    ratio, full_work : float
        What part of the run-steps of listing all matches the exact run takes, and how many that are per event.
    found : float
        Which share of the match points of the past searching would have found within the budget.

    Attributes
    ----------
    searches : bool
        Whether ends are searched; else runs are followed.
    gets_ready : bool
        Whether the other way sees the events, too, so that it can take over.
    ends, unsearched, unlisted : int
        Events that can end a match since the stream began, those of which the budget left it open, and those of which
        it left open whether they end more matches than those that were listed.
    """

    how: Searches
    cost: SearchCost
    prices: Prices
    ratio: float
    full_work: float
    found: float
    searches: bool
    gets_ready: bool = False
    _ready_at: int = 0
    _rest_until: int = 0
    _rest: int = FIRST_REST
    _part: int = PART
    _looked_at: int | None = None
    _granted: float = 0.0
    _seen: list[int] = field(default_factory=lambda: [0, 0, 0])
    ends: int = 0
    unsearched: int = 0
    unlisted: int = 0

    @classmethod
    def of(cls, load: Load, plan: Plan, results: Results) -> Self | None:
        """The ways of a run that is asked for such results; None: there is one way, runs are followed."""
        known, load = load.history, replace(load, drops=results == "points")
        full, budget = load.steps_per_event, load.budget
        if known is None or known.search_ is None or full is None or plan.registers is None:
            return None
        if load.policy not in (None, "history") or budget.unit == "runs":
            return None
        if results == "matches" and (budget.is_unlimited or not plan.paths_are_all):
            return None
        cost, found, rate = known.search_, 1.0, full
        rung = Rung(WITHOUT_LIMIT, 0.0, 1.0)
        if budget.is_unlimited:
            pays = cost.whole < WHOLE_PAYS * full
        else:
            granted = budget.amount if budget.unit == "steps/event" else load.share * full
            rate = granted * (1 - load.audit_share)
            rung, found = cost.best(rate, load.most_saved)
            pays = found > 0 and (1 + BETTER) * found > known.prices_.recall(load.share_of_listing)
            if results == "matches":
                pays &= rate < full  # else following lists all of them
        wanted = ALL if results == "matches" else LATEST if cost.whole < WHOLE_PAYS * rate else ANY
        return cls(cost.searches(plan.paths, rung, wanted), cost, known.prices_, load.ratio, full, found, pays)

    @property
    def has_searched(self) -> bool:
        """Whether ends are searched now, or were before."""
        return self.searches or self.gets_ready or self._rest > FIRST_REST

    def left_of_piece(self, events: int) -> int:
        """How many events may come next, after so many, until it is written down where the run stands."""
        piece = self._stretch_after(events, LEAST_PIECE)
        return piece - events % piece

    def _stretch_after(self, events: int, least: int) -> int:
        """How many events the stretch has that begins after so many, or that these lie in."""
        return min(max((1 << events.bit_length()) // self._part, least), MOST_STRETCH)

    def note(self, ends: int, known: int, tests: int, unlisted: int) -> None:
        """Add what came of a batch, see ``SearchesOrRuns``."""
        self._seen = [one + more for one, more in zip(self._seen, (ends, known, tests), strict=True)]
        self.ends, self.unsearched, self.unlisted = (
            self.ends + ends, self.unsearched + ends - known, self.unlisted + unlisted
        )  # fmt: skip

    def look(self, events: int, tick: int, window: int, granted: float) -> None:
        """Look, at the end of a stretch, whether the other way should take over.

        Parameters
        ----------
        events : int
            That have come by now.
        tick : int
            Of the last event.
        window : int
            In ticks.
        granted : float
            Run-steps granted so far.
        """
        if events % self._stretch_after(events, LEAST_STRETCH):
            return
        self._part = PART if self.unsearched <= BETTER * self.ends else PART_OF_POOR
        if self._looked_at is None:
            self._ready_at = tick + window
            self._begin_stretch(tick, granted)
        elif self.gets_ready:
            if tick > self._ready_at:
                self.searches, self.gets_ready = not self.searches, False
                self._begin_stretch(tick, granted)
        elif tick - self._looked_at > window:
            if self.searches and self._seen[0] >= LEAST_ENDS and self._is_poor(granted - self._granted):
                self._rest_until = min(tick + (self._rest + 1) * window, FAR - 1)
                self._rest = min(2 * self._rest, MOST_REST)
                self._get_ready(tick, window)
            elif not self.searches and self._rest > FIRST_REST and tick > self._rest_until:
                self._get_ready(tick, window)
            self._begin_stretch(tick, granted)

    def _begin_stretch(self, tick: int, granted: float) -> None:
        self._looked_at, self._granted, self._seen = tick, granted, [0, 0, 0]

    def _get_ready(self, tick: int, window: int) -> None:
        self.gets_ready, self._ready_at = True, tick + window

    def _is_poor(self, granted: float) -> bool:
        """Whether runs would find more: by the share of the ends that could be searched, and what these took."""
        ends, searched, tests = self._seen
        share = searched / ends
        if share > 1 - BETTER:
            return False
        needed = tests / max(share, 1e-3)  # what searching them all would take, about
        full = needed * self.full_work / max(self.cost.all_tests, TINY)  # and following all runs
        return self.prices.recall(min(granted / max(full, TINY), 1.0) * self.ratio) > share + BETTER

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """What must be kept to go on elsewhere, as JSON."""
        return {
            "searches": [self.searches, self.gets_ready],
            "ticks": [self._ready_at, self._rest_until, self._rest],
            "looked": self._looked_at,
            "part": self._part,
            "seen": [self._granted, *self._seen],
            "ends": [self.ends, self.unsearched, self.unlisted],
        }

    def restore(self, saved: dict[str, Any] | None) -> None:
        """Go on from what ``snapshot`` gave; None: of a run that knew of no other way, its runs go on at first."""
        if saved is None:
            self.gets_ready, self.searches = self.searches, False
            return
        self.searches, self.gets_ready = map(bool, saved["searches"])
        numbers = [number_in("ways", number, -FAR, FAR) for number in saved["ticks"]]
        self._ready_at, self._rest_until, self._rest = numbers
        self._part = PART_OF_POOR if saved.get("part") == PART_OF_POOR else PART
        self._looked_at = None if saved["looked"] is None else number_in("ways", saved["looked"], -TICK, TICK)
        finite("ways", *saved["seen"])
        self._granted, *self._seen = saved["seen"]
        ends = [*saved["ends"], 0][:3]  # states of before have two
        self.ends, self.unsearched, self.unlisted = (number_in("ways", number, 0, FAR) for number in ends)
