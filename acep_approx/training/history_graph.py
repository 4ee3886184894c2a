"""What was learned from the past of one query: the history graph with the prices of budgets, as users hold it.

While a job runs it may be refreshed. Nothing that happens to a version stops a job that has had a good one: the last
good one serves, and a warning says so.

Source: Li and Ge, PVLDB 2016, Definition 4 (the graph). The values, prices and the hold-out are ours.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy as np

from acep_approx.arguments import checked
from acep_approx.diagrams.fragments import drawn, never_raises, soft, table, tiles, title, view
from acep_approx.diagrams.graph import Edge, Graph, Node
from acep_approx.diagrams.text_layout import one_line
from acep_approx.engines.runs.worth import Worth
from acep_approx.errors import UsageError, expect
from acep_approx.events.counts import counted
from acep_approx.events.time import LIMIT
from acep_approx.planning.compiled import CompiledQuery
from acep_approx.planning.planner import Plan, plan
from acep_approx.ranges import COUNT
from acep_approx.training.exact_work import ExactWork, learn_exact_work
from acep_approx.training.few_points import warn_of_few
from acep_approx.training.needless import warn_of_needless_history
from acep_approx.training.past import PORTION, Past, portions
from acep_approx.training.policies import (
    BY_MAPS,
    LEARNED,
    OVERLAP,
    beside_others,
    policy_named,
    raised,
    random_lineages,
    worth_of,
)
from acep_approx.training.pricing import PricePoint, Prices
from acep_approx.training.promise import Part, Promises
from acep_approx.training.searching import SearchCost, learn_search
from acep_approx.training.training import (
    Counted,
    OnProgress,
    Reading,
    Tried,
    count_past,
    read_by,
    try_readings,
)
from history.checking import finite_column, require, values_of
from history.coverage.groups import sketch_error
from history.errors import HistoryError
from history.graph import MOST_BUNDLES
from history.graph import Graph as History
from history.places import place_of
from history.store import damaged, is_history, nothing_at, pointed, written
from history.store import load as stored_history
from history.store import save as store_history
from history.values import Values, fit_values, with_counts
from history.versions import versions

Measure = Callable[["HistoryGraph", Part], Promises]
"""Says what a history promises, by the end of a past that it has not learned from."""


class HistoryGraph:
    """Learns from past events which partial matches of a query are worth keeping.

    Parameters
    ----------
    query : CompiledQuery
        A compiled query. Of one that the cells engine answers exactly no run uses a history: it says so
        (``NeedlessHistoryWarning``), and learns for the same query compiled with ``engine="runs"``.
    gap : int or "window", default -1
        Match points at most so many ticks apart are one bundle; "window" is the paper's Definition 3. -1: each is
        one of its own (bundles of a dense stream run together, and one bundle tells nothing).
    most_bundles : int, default 65,536
        The latest ones that match maps are about.

    Attributes
    ----------
    plan : Plan
        Of the query, for the runs engine.
    graph_ : history.graph.Graph
        Vertices, edges, bundles and match maps.
    overlap_ : float
        Share of its match points that a run is taken to lose beside a later one; found by replays.
    prices_ : Prices
        What replays of the end of the past did at several prices: work, match points.
    promises_ : Promises or None
        What runs inside budgets found there, by what was learned from the events before; None: nobody has measured.
    steps_per_event_ : float
        Run-steps per event of the exact run, after lossless merging.
    work_ : ExactWork or None
        How the run-steps of exact runs follow from the events; None where it was learned by an earlier version.
    search_ : SearchCost or None
        What it costs to search backwards for match points, and in which order; None where that cannot be done, or
        costs more than four times the exact run, or the history was learned by an earlier version.
    events_, points_ : int
        Events and match points seen.
    learned_ : rl.Values or None
    learned_overlap_ : float64 array, shape (places,)
        What runs are worth by a learner that has refreshed this history while a stream ran, and what share of it they
        lose beside later ones.

    Examples
    --------
    >>> from acep_approx import compile_query
    >>> query = compile_query("PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN 20")
    >>> events = [{"ts": t, "type": "ABC"[t % 3], "x": t * 7 % 10} for t in range(300)]
    >>> known = HistoryGraph(query).fit(events)
    >>> known.events_, known.points_ > 0, known.steps_per_event_ > 1
    (300, True, True)
    """

    @checked
    def __init__(self, query: CompiledQuery, *, gap: int | str = -1, most_bundles: int = MOST_BUNDLES) -> None:
        if not isinstance(getattr(query, "plan", None), Plan):
            expect("the query", query, (), "a compiled one: compile_query(text)")
        if query.plan.registers is None:
            warn_of_needless_history(query.plan)
        query.plan.refuse_unbounded("a history")
        if gap != "window" and not (isinstance(gap, Integral) and abs(gap) <= LIMIT):
            raise UsageError(f"gap is {gap!r:.80}", code="ACEP-U162", hint="give a number of ticks, or 'window'")
        if not 0 < most_bundles <= LIMIT:
            raise UsageError(f"most_bundles is {most_bundles}", code="ACEP-U162", hint="keep one bundle at least")
        self.query = query
        self.plan = query.plan if query.plan.registers is not None else plan(query.plan.query, "runs")
        self.gap = gap
        self.most_bundles = most_bundles
        self.events_ = self.points_ = 0
        self.steps_per_event_ = self.overlap_ = 0.0
        self.prices_ = Prices()
        self.promises_: Promises | None = None
        self.version_ = 0
        self.work_: ExactWork | None = None
        self.search_: SearchCost | None = None
        self.learned_: Values | None = None
        self.learned_overlap_ = np.zeros(0)
        self._steps = 0
        self._window = -1
        self._worth: dict[str, tuple[tuple[object, ...], Worth]] = {}  # by policy: what it is of, and what it is

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002  (as scikit-learn asks)
        """What it was made with, by name: ``sklearn.base.clone`` makes one that has learned nothing of it."""
        return {"query": self.query, "gap": self.gap, "most_bundles": self.most_bundles}

    def set_params(self, **params: Any) -> Self:
        """Change what it was made with; what was learned is gone.

        Raises
        ------
        UsageError
            ``ACEP-U053``: there is no such parameter.
        """
        known = self.get_params()
        for name in params.keys() - known.keys():
            raise UsageError(f"there is no parameter {name!r}", code="ACEP-U053", hint=f"there are {', '.join(known)}")
        vars(self).clear()
        type(self).__init__(self, **known | params)
        return self

    @property
    def is_fitted(self) -> bool:
        """Whether anything was learned yet."""
        return hasattr(self, "graph_")

    @property
    def says_nothing(self) -> bool:
        """Whether runs are kept at random: a learner found that what was known no longer holds."""
        return self.learned_ is not None and self.learned_.is_level

    def __repr__(self) -> str:
        query = one_line(str(self.query))
        if not self.is_fitted:
            return f"<HistoryGraph of {query!r}, which has not learned anything yet>"
        return f"<HistoryGraph of {query!r}, learned from {self.events_:,} events with {self.points_:,} match points>"

    @never_raises
    def _repr_html_(self) -> str:
        return history_view(self)

    # --- learning -------------------------------------------------------------------------------------------

    @checked
    def fit(
        self,
        events: Any,
        *,
        on_progress: OnProgress | None = None,
        portion_events: int = PORTION,
        measure: Measure | None = None,
        **roles: Any,
    ) -> Self:
        """Learn from past events, and forget what was learned before.

        Parameters
        ----------
        events : what ``Query.match`` takes
            In order of time.
        on_progress : callable, optional
            Called with what is being done and how much of it, from 0 to 1.
        portion_events : int, default 131,072
            Events that are counted together where the query has a key; see ``training.past``.
        measure : callable, optional
            Runs inside budgets over the end of the past with what was learned from the events before, and gives
            ``promises_``: ``shedding.promising.promised``, as ``acep train`` does.
        **roles : str
            ``time``, ``key``, ``type``, ``unit``: as for ``Query.match``.

        Returns
        -------
        HistoryGraph
            Itself.

        Raises
        ------
        UsageError
            ``ACEP-U046``: no event of the past begins a match.

        Notes
        -----
        The past is cut in time: of what its first six tenths teach, the reading is kept that finds most of the rest,
        and its recall there is what ``prices_`` says. Then all of the past is learned from, and prices are set anew.
        Of a long past the reading is tried on its end alone: learned from 2**20 events, and judged on 2**18.

        The same events in the same order give the same history, however they are stored. A past of 2**18 events or more
        is counted in portions, each of the events of some keys, as it is on Spark (``spark.training``).
        Complexity: an exact run over the past with lineage, one over the events that are tried, and about 110
        cheaper ones over those that are held out.
        """
        self.__dict__.pop("graph_", None)
        self.learned_ = None
        tell = on_progress or (lambda _what, _share: None)
        past = Past(self.plan, events, roles)
        tried = try_readings(self.plan, past, self.integer_gap(past.window), self.most_bundles, tell)
        number = portions(self.plan, len(past), portion_events)
        return self.take(tried, count_past(self.plan, past, tried.blank, number, tried.begun), past, tell, measure)

    def take(
        self, tried: Tried, counted: Counted, past: Past, on_progress: OnProgress, measure: Measure | None = None
    ) -> Self:
        """Take over what was tried on the end of a past, and counted in all of it; then set prices, and measure."""
        self.learned_ = self.promises_ = None
        self._window = past.window
        self.events_ = self.points_ = self._steps = 0
        self._add(counted)
        warn_of_few(self.points_, stacklevel=4)
        on_progress("setting prices", 0.9)
        before, reading = tried.settled(self.plan, counted.graph, past)
        self._read(counted.graph, reading)
        self.work_ = learn_exact_work(self.plan, past, self.steps_per_event_)
        self.search_ = learn_search(self.plan, past, self.steps_per_event_)
        if measure is not None and self.points_:
            on_progress("trying budgets", 0.95)
            known = copy(self)
            known._read(tried.before, before)
            self.promises_ = measure(known, tried.part(self.plan, past))
        on_progress("learned", 1.0)
        return self

    def _read(self, graph: History, reading: Reading) -> None:
        self.graph_ = read_by(graph, reading.values, reading.cost_power)
        self.overlap_, self.prices_ = reading.overlap, reading.prices

    @checked
    def partial_fit(self, events: Any, *, portion_events: int = PORTION, **roles: Any) -> Self:
        """Learn from more past events, which follow those learned from before; buckets and prices stay.

        What a learner has found goes on: it counts for 20 visits of each vertex beside those of these events.
        Complexity: one exact run with lineage.
        """
        if not self.is_fitted:
            return self.fit(events, portion_events=portion_events, **roles)
        past = Past(self.plan, events, roles)
        self.same_window(past.window)
        number = portions(self.plan, len(past), portion_events)
        before = self.graph_
        self._add(count_past(self.plan, past, before, number))
        if self.learned_ is not None:
            self.learned_ = with_counts(self.learned_, before, self.graph_)
        return self

    def _add(self, counted: Counted) -> None:
        self.graph_ = counted.graph
        self.events_ += counted.events
        self.points_ += counted.points
        self._steps += counted.steps
        self.steps_per_event_ = self._steps / max(self.events_, 1)

    @property
    def window(self) -> int:
        """The window that it is of, in ticks; below 0 before anything was learned."""
        return self._window

    def integer_gap(self, window: int) -> int:
        """The gap between bundles, in ticks."""
        return window if self.gap == "window" else int(self.gap)

    def take_window(self, window: int) -> None:
        """What is known is of this window, in ticks."""
        self._window = window
        self._steps = round(self.steps_per_event_ * self.events_)

    # --- what was learned -----------------------------------------------------------------------------------

    def values(self) -> Values:
        """What the runs of each vertex are worth; shape (vertices,)."""
        if self.learned_ is not None:
            return self.learned_
        return fit_values(self.graph_)

    @checked
    def worth(self, policy: str = "history") -> Worth:
        """What runs are worth by a policy, for the engine; worked out once."""
        of = self.graph_, self.graph_.counts, self.overlap_, self.learned_, self.learned_overlap_
        known = self._worth.get(policy)
        if known is None or any(one is not other for one, other in zip(known[0], of, strict=True)):
            known = of, self._worth_by(policy)
            self._worth = {**self._worth, policy: known}  # a copy of this history has its own
        return known[1]

    def _worth_by(self, policy: str) -> Worth:
        automaton = self.plan.registers
        assert automaton is not None
        if self.learned_ is None or policy not in LEARNED:
            return policy_named(policy)(automaton, self.graph_, self.overlap_)
        if self.learned_.is_level:
            return random_lineages(automaton)
        gain, cost = raised(self.learned_.gain), self.learned_.cost
        if policy == "scores":
            return worth_of(automaton, self.graph_.scheme, gain, cost)
        worth = worth_of(automaton, self.graph_.scheme, gain, cost, OVERLAP)
        if policy == "coverage":
            return beside_others(worth, automaton, self.graph_, BY_MAPS)
        return replace(worth, overlap=self.learned_overlap_)

    # --- keeping --------------------------------------------------------------------------------------------

    def fingerprint(self, window: int) -> str:
        """What must be the same for a history to be of use: the query without its output, and the window in ticks."""
        return f"{self.plan.fingerprint()}-{window}"

    def check(self, plan: Plan, window: int) -> None:
        """Refuse to rank the runs of another query.

        Raises
        ------
        UsageError
            ``ACEP-U036``: nothing was learned yet; ``ACEP-U037``: of another query or window.
        """
        if not self.is_fitted:
            raise UsageError("this history has not learned anything yet", code="ACEP-U036", hint="call fit(events)")
        mine, wanted = self.fingerprint(self._window), f"{plan.fingerprint()}-{window}"
        if mine != wanted:
            raise UsageError(
                f"the history is of query {mine}, and this is query {wanted} (fingerprint and window in ticks)",
                code="ACEP-U037",
                hint="learn a history of this query with acep train",
            )

    def same_window(self, window: int) -> None:
        """Refuse events of which the window has another number of ticks (``ACEP-U037``)."""
        if window != self._window:
            raise UsageError(
                f"the history is of a window of {self._window} ticks, and these events give one of {window}",
                code="ACEP-U037",
                hint="give all events times of one unit",
            )

    @checked
    def save(self, path: str | os.PathLike[str], *, new_version: bool = False) -> Path:
        """Write the history to a directory: a readable manifest, Parquet and npz; nothing is ever overwritten.

        Parameters
        ----------
        path : path
            A new or empty directory, or with ``new_version`` that of a history of the same query.
        new_version : bool, default False
            Add a version to the history that is there; it is the one that is loaded from then on.

        Returns
        -------
        Path
            The directory of the version.

        Raises
        ------
        UsageError
            ``ACEP-U036``: nothing was learned yet.
        HistoryError
            Something is there already (ACEP-H005, ACEP-H006), or a history of another query (ACEP-H002).
        """
        expect("the path of a history", path, (str, os.PathLike), "the path of a directory")
        self.check(self.plan, self._window)
        notes = {
            "query": str(self.query),
            "events": self.events_,
            "points": self.points_,
            "steps_per_event": self.steps_per_event_,
            "gap": self.gap,
            "overlap": self.overlap_,
            "sketch_error": sketch_error(self.graph_),
            "prices": [[replay.price, replay.steps, replay.points] for replay in self.prices_.replays],
            "stretches": [list(replay.stretches) for replay in self.prices_.replays],
        }
        if self.work_ is not None:
            notes["work"] = self.work_.as_json()
        if self.search_ is not None:
            notes["search"] = self.search_.as_json()
        if self.promises_ is not None:
            notes["promises"] = self.promises_.as_json()
        return store_history(
            self.graph_, path, self.fingerprint(self._window), new_version=new_version, notes=notes,
            learned={**vars(self.learned_), "overlap": self.learned_overlap_} if self.learned_ is not None else None,
        )  # fmt: skip

    @classmethod
    @checked
    def load(cls, path: str | os.PathLike[str], query: CompiledQuery, *, version: int | None = None) -> Self:
        """Read the history of a query.

        Parameters
        ----------
        path : path
            Where ``save`` wrote it.
        query : CompiledQuery
        version : int, optional
            Default: the latest.

        Raises
        ------
        HistoryError
            There is none (ACEP-H001), of another query (ACEP-H002, with both fingerprints), of a format that this
            version cannot read (ACEP-H003), damaged (ACEP-H004).
        """
        expect("the path of a history", path, (str, os.PathLike), "the path of a directory")
        if not is_history(path):
            raise nothing_at(path, mine=query.plan.known_as)
        stored = stored_history(path, version=version)
        graph, notes = stored.graph, stored.notes
        window = graph.scheme.window
        try:
            gap: int | str = notes["gap"]
            require(gap == "window" or type(gap) is int, f"gap is {gap!r}")
            known = cls(query, gap=gap, most_bundles=graph.most_bundles)
            if stored.fingerprint != known.fingerprint(window):
                stored_history(path, known.fingerprint(window), version=version)  # refuses, and says why
            known.graph_, known.version_, known._window = graph, stored.version, window
            known._take_notes(notes)
            known._take_learned(stored.learned)
        except (ValueError, LookupError, TypeError, OverflowError) as error:
            raise damaged(path, f"version {stored.version}: {error}") from error
        except UsageError as error:
            if error.code != "ACEP-U162":
                raise  # it is about the query
            raise damaged(path, f"version {stored.version}: {error.message}") from error
        return known

    def _take_notes(self, notes: dict[str, Any]) -> None:
        """Take over what ``save`` wrote down beside the graph.

        Raises
        ------
        ValueError, LookupError, TypeError
            It is not that.
        """
        automaton, none = self.plan.registers, np.zeros(0)
        assert automaton is not None
        worth_of(automaton, self.graph_.scheme, none, none)  # refuses places and features of another query
        self.events_, self.points_ = (_number(notes, name, int) for name in ("events", "points"))
        self.steps_per_event_, self.overlap_ = (_number(notes, name, float) for name in ("steps_per_event", "overlap"))
        self._steps = round(self.steps_per_event_ * self.events_)
        kinds = {"price": float, "steps": int, "points": int}
        replays = [dict(zip(kinds, replay, strict=True)) for replay in notes["prices"]]
        made = [PricePoint(*(_number(replay, name, kind) for name, kind in kinds.items())) for replay in replays]
        require(made and made[0].price == 0 and (made[0].steps or len(made) == 1), "there is no price of the exact run")
        stretches = notes.get("stretches", [[]] * len(made))  # versions of before have none
        self.prices_ = Prices(tuple(_in_stretches(made, stretches)))
        if "work" in notes:  # versions of before have none
            self.work_ = ExactWork.from_json(notes["work"], len(automaton.places))
        if "search" in notes:  # neither have they, nor histories of queries that cannot be searched so
            self.search_ = SearchCost.from_json(notes["search"], self.plan.paths)
        if "promises" in notes:  # versions of before have none
            self.promises_ = Promises.from_json(notes["promises"])

    def _take_learned(self, learned: dict[str, Any]) -> None:
        """Take over what a learner has found, if one has; raises as ``_take_notes`` does."""
        if not learned:
            return
        scheme = self.graph_.scheme
        overlap = finite_column("overlap", learned["overlap"], len(scheme.places))
        self.learned_, self.learned_overlap_ = values_of(learned, scheme.vertices), overlap


def _in_stretches(replays: list[PricePoint], stretches: list[list[int]]) -> Iterator[PricePoint]:
    """Replays with the match points of each stretch of the past."""
    for replay, counts in zip(replays, stretches, strict=True):
        yield replace(replay, stretches=tuple(_number({"stretches": count}, "stretches", int) for count in counts))


def _number(notes: dict[str, Any], name: str, type_: type) -> Any:
    """A number of the notes: a count, or any that is finite."""
    value = notes[name]
    is_one = type(value) in (int, type_) and math.isfinite(value) and (type_ is float or 0 <= value < COUNT)
    require(is_one, f"{name} is {value!r}")
    return type_(value)  # a long whole number is none that numpy reckons with


# --- in a notebook ------------------------------------------------------------------------------------------------

LEAST = 0.005
"""Ways that a smaller share of the completions took are left out."""
MOST_PRICES = 8


def history_view(known: Any) -> str:
    """Numbers, states and ways, and what was found at which share of the work."""
    query = " ".join(str(known.query).split())
    if not known.is_fitted:
        return view(title("A history that has not learned anything yet"), soft(query), soft("fit(events) learns."))
    numbers = (
        (f"{known.events_:,}", "events learned from"),
        (f"{known.points_:,}", "match points in them"),
        (f"{known.steps_per_event_:,.3g}", "run-steps per event of the exact run"),
    )
    told = "A way is as thick as the share of the completions that took it; a state says what became of its runs."
    return view(title("History"), soft(query), tiles(numbers), drawn(history_graph(known.graph_)), soft(told),
                _prices(known.prices_) if known.promises_ is None else _promised(known.promises_))  # fmt: skip


def history_graph(history: History) -> Graph:
    """The history with all vertices of a place as one: a few states that a person can read.

    Parameters
    ----------
    history : history.graph.Graph

    Returns
    -------
    Graph
        From the start over the places that were visited to the match.
    """
    scheme, counts = history.scheme, history.counts
    size = len(scheme.places)
    place = np.repeat(scheme.place_of_group, scheme.cells)
    visits, led, reached, started, completed = (
        np.bincount(place, weights=column, minlength=size)
        for column in (counts.visits, counts.led, counts.reached, counts.started, counts.completed)
    )
    passed = np.zeros((size, size))
    np.add.at(passed, (place[counts.source], place[counts.target]), counts.passed)
    total = max(float(completed.sum()), 1.0)
    nodes = [Node("start", "start", is_start=True)]
    for number, one in enumerate(scheme.places):
        if visits[number]:
            errors = f", {counted(one.errors, 'error')}" if one.errors else ""
            share, gain = led[number] / visits[number], reached[number] / visits[number]
            notes = (f"{visits[number]:,.0f} visits", f"{share:.1%} led to a match", f"{gain:.3g} match points each")
            name = f"{one.state}{errors}"
            nodes.append(Node(f"p{number}", f"{name}: {', '.join(notes)}", name=name, notes=notes))
    flows = [("start", f"p{i}", started[i]) for i in range(size)]
    flows += [(f"p{i}", f"p{j}", passed[i, j]) for i in range(size) for j in range(size) if i != j]
    flows += [(f"p{i}", "match", completed[i]) for i in range(size)]
    edges = [Edge(a, b, f"{n / total:.0%}", weight=min(n / total, 1.0)) for a, b, n in flows if n >= LEAST * total]
    return Graph("history", [*nodes, Node("match", "match", "end")], edges)


def _promised(promises: Promises) -> str:
    """What runs inside budgets found in the end of the past."""
    rows = [
        [one.output, f"{one.share:.0%}", f"{one.recall:.0%}", f"{one.low:.0%} to {one.high:.0%}"]
        for one in promises.rows
    ]
    told = f"runs over {promises.measured:,} events behind {promises.trained:,} that were learned from"
    return table(["output", "budget", "match points found", "95 of 100 times"], rows, told, (1, 2, 3))


def _prices(prices: Prices) -> str:
    """At which share of the work which share of the match points was found, in the end of the past."""
    known = sorted(zip(prices.shares.tolist(), prices.recalls.tolist(), strict=True), reverse=True)
    chosen = known if len(known) <= MOST_PRICES else known[:: -(-len(known) // MOST_PRICES)]
    if len(known) < 2:
        return ""
    rows = [[f"{share:.1%}", f"{recall:.1%}"] for share, recall in chosen]
    return table(["share of the work", "match points found"], rows, "replays of the end of the past", (0, 1))


# --- the newest version of one that is refreshed while a job runs -------------------------------------------------

log = logging.getLogger("acep_approx.history")
OTHER_QUERY = "ACEP-H002"


@dataclass
class _LoadedVersion:
    """What this process has of one history: the last good version, and what it has warned of."""

    history: HistoryGraph | None = None
    version: int = 0
    written: int = -1
    warned: set[int] = field(default_factory=set)


_held: dict[tuple[Path, str], _LoadedVersion] = {}
_lock = Lock()


def newest(path: str | os.PathLike[str], query: CompiledQuery) -> HistoryGraph:
    """The version of a history that holds, loaded once in each process.

    Parameters
    ----------
    path : path
        Directory of the history.
    query : CompiledQuery
        That it is wanted for.

    Returns
    -------
    HistoryGraph
        The same object until the version changes; not to be changed. Where the version that holds is damaged, missing
        or of another format: the last good one that this process had, else the newest older one that can be read.

    Raises
    ------
    HistoryError
        There is none (ACEP-H001), of another query (ACEP-H002), none of its versions can be read (ACEP-H003,
        ACEP-H004).

    Notes
    -----
    Of each version that cannot be read the logger ``acep_approx.history`` warns once. It is tried again with the next
    call: on a shared file system it may only be late. Complexity: two small reads; O(history) for a new version.
    """
    home = place_of(path).resolve()
    with _lock:
        held = _held.setdefault((home, query.plan.fingerprint()), _LoadedVersion())
        return _newest(home, query, held)


def _newest(home: Path, query: CompiledQuery, held: _LoadedVersion) -> HistoryGraph:
    wanted = 0
    try:
        wanted = pointed(home)
        if held.history is None or (wanted, written(home, wanted)) != (held.version, held.written):
            _load(home, query, wanted, held)
    except (HistoryError, OSError) as error:
        _refuse_other_query(error)
        if held.history is None:
            _load_older(home, query, wanted, held, error)
        if wanted not in held.warned:
            held.warned.add(wanted)
            words = f"{error.code}: {error.message}" if isinstance(error, HistoryError) else str(error)
            log.warning("%s; version %d is used instead", words, held.version)
    assert held.history is not None
    return held.history


def _load(home: Path, query: CompiledQuery, version: int, held: _LoadedVersion) -> None:
    when = written(home, version)
    held.history = HistoryGraph.load(home, query, version=version)
    held.version, held.written = version, when


def _load_older(home: Path, query: CompiledQuery, wanted: int, held: _LoadedVersion, reason: Exception) -> None:
    """Hold the newest version before ``wanted`` (0: of all) that can be read, or the oldest one after it.

    There is none before it where a pointer is so stale that the version was deleted since.
    """
    if not home.is_dir() or not versions(home):
        HistoryGraph.load(home, query)  # refuses, and says why
    there = versions(home)
    before = [version for version in there if not wanted or version < wanted]
    after = [version for version in reversed(there) if wanted and version > wanted]
    for version in before + after:
        try:
            return _load(home, query, version, held)
        except (HistoryError, OSError) as error:
            _refuse_other_query(error)
    raise reason


def _refuse_other_query(error: Exception) -> None:
    if isinstance(error, HistoryError) and error.code == OTHER_QUERY:
        raise error
