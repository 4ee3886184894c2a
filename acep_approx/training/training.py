"""Learning a history: try ways to read it on the end of the past, count all of the past, set prices.

What cannot be told from counts alone is tried on a part of the past that was not learned from: whether the features of
runs tell anything about later events or only about those learned from, whether values come from means or from paths,
how much of what a run leads to a later run reaches as well, and how much its run-steps count. Not all combinations are.

Here and on Spark they are the same functions; there, portions of the past are counted in different processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Floats, Ints
from acep_approx.engines.search.searches import DAY
from acep_approx.errors import UsageError
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.matching.execution import Execution
from acep_approx.planning.planner import Plan
from acep_approx.training.past import Past
from acep_approx.training.policies import AGREE, BY_MAPS, BY_RUNS, MEASURED, joins
from acep_approx.training.policies import history as by_history
from acep_approx.training.pricing import PricePoint, Prices, learn_prices
from acep_approx.training.promise import Part
from acep_approx.training.trace import Tracer
from history.fitting import fit_scheme
from history.graph import Graph
from history.trace import Trace
from history.vectors import Place, Scheme, ValuesBy

OVERLAPS = (0.9, BY_MAPS, 0.0)
"""Shares of its match points that a run loses beside a later one, or how they follow from the past; 0: each run by
itself."""
MORE_OVERLAPS = (MEASURED, BY_RUNS, 0.7)
"""Those that are tried with the best of the others alone."""
AGREEING, MORE_AGREEING = (AGREE + 0.9,), (AGREE + 0.7, AGREE + 0.98)
"""The same where later events must be equal to what runs remember."""
VALUES: tuple[ValuesBy, ...] = ("paths", "means")
COST_POWERS = (1.0, 0.0)
"""By which power of its run-steps the gain of a run is divided. A run need not be kept to its end, and the longer it
may still live, the more others it covers: so it may be worth more than its gain per run-step."""
BETWEEN = 0.5
SHARES = (0.02, 0.05, 0.1, 0.2)
"""Budgets that a reading should do well at, on average."""
FIRST_REPLAYS, ALL_REPLAYS = 7, 16
"""Of a reading that is tried, and of the one that is kept."""
NEXT_BEST = 3
"""Readings that can take the place of the best one."""
FEW_POINTS = 30
"""Match points below which a past is warned of, and below which neither of its parts tells which reading is better: too
few to learn a reading that tells much apart, or to judge it."""
WAITING = 2
"""Traces that are kept until there are so many match points: each may be large."""
MARGIN = 0.005
"""Recall by which a reading must be better, and no less than one match point."""
CHANCE = 1.0
"""Standard errors by which it must be better: of many readings some find more by chance. (Two of them
refused readings that found far more.)"""
MIDDLE = 0.1
"""A budget at whose price, as another reading has it, replays begin."""
MOST_SHARE = 0.25
"""Of the work, up to which readings are compared; prices of the best one are looked for beyond."""


@dataclass(frozen=True)
class Reading:
    """A way to use a history.

    Attributes
    ----------
    name : str
        Which of the graphs.
    values : {"means", "paths", "index"}
        See ``history.values``.
    overlap : float
        See ``policies.worth_of``.
    cost_power : float
        See ``history.Scheme``.
    prices : Prices
        What replays with it found.
    found : float64 array, shape (points,)
        How much of each match point was found, on average over ``SHARES``: from 0 to 1.
    """

    name: str
    values: ValuesBy
    overlap: float
    cost_power: float
    prices: Prices
    found: Floats = field(default_factory=lambda: np.zeros(0), compare=False, repr=False)

    @property
    def recall(self) -> float:
        """Mean recall over ``SHARES``."""
        return float(np.mean([self.prices.recall(share) for share in SHARES]))

    def is_better(self, other: Reading, cells: Ints) -> bool:
        """Whether it finds more than another one, and by more than chance allows; ``cells``: of the match points.

        Both are asked for the same match points, so only those tell that one finds and the other does not. Match points
        of one cell share what befalls them: their differences are added up. If nothing but chance made these sums,
        their sum would be off by the root of their squares (the standard error).
        """
        gained = self.found - other.found
        chance = float(np.sqrt((np.bincount(cells, gained) ** 2).sum()))
        return bool(gained.sum() > max(MARGIN * len(gained), 1.0, CHANCE * chance))


def choose(
    plan: Plan,
    graphs: Mapping[str, Graph],
    held_out: Sequence[EventBatch],
    bind: Callable[[Execution], None],
    on_progress: Callable[[float], None] | None = None,
    *,
    points: int = FEW_POINTS,
) -> tuple[Reading, ...]:
    """The reading that finds most of the match points of ``held_out``, over several budgets; then the next best ones.

    The others are of the same graph.

    First the first and the last graph are tried, with values by paths and by means, with and without the weight of
    run-steps, each with three overlaps; then the best of these with the other graphs, by the index of a stopping
    problem, with half that weight, and with other overlaps. The one that was tried first is kept unless another is
    better by more than chance allows; where too few match points were learned from, or are to be found, no other is
    tried.

    Parameters
    ----------
    plan : Plan
    graphs : mapping of str to Graph
        The same past, with different vertices; the first wins a tie.
    held_out : sequence of EventBatch
        Events that follow those learned from.
    bind : callable
        Binds a matcher to their columns.
    on_progress : callable, optional
        Called with the share of the work that is done.
    points : int, default 30
        Match points of the events learned from.

    Complexity: up to 6 runs over ``held_out`` for each reading, of which most do little; then 9 more.
    """
    trials = _Trials(plan, graphs, held_out, bind, on_progress or (lambda _: None))
    first, last = (names := tuple(graphs))[0], names[-1]
    assert plan.registers is not None
    agreeing = AGREEING if joins(plan.registers) is not None else ()
    overlaps = (*OVERLAPS, *agreeing)
    for name, values, power, overlap in product(dict.fromkeys((first, last)), VALUES, COST_POWERS, overlaps):
        trials.try_one(Reading(name, values, overlap, power, Prices()))
        if min(points, trials.points) < FEW_POINTS:
            return (trials.priced(trials.best),)
    trials.vary(trials.best, "name", tuple(graphs))
    trials.vary(replace(trials.best, cost_power=1.0), "values", ("index",))
    trials.vary(trials.best, "cost_power", (BETWEEN,) if trials.best.values != "index" else ())
    trials.vary(trials.best, "overlap", MORE_AGREEING if trials.best.overlap > AGREE else MORE_OVERLAPS)
    best = trials.best
    others = sorted((one for one in trials.of(best.name) if one != best), key=lambda one: one.recall, reverse=True)
    return trials.priced(best), *others[:NEXT_BEST]


class _Trials:
    def __init__(
        self,
        plan: Plan,
        graphs: Mapping[str, Graph],
        held_out: Sequence[EventBatch],
        bind: Callable[[Execution], None],
        tell: Callable[[float], None],
    ) -> None:
        self.plan, self.graphs, self.held_out, self.bind, self.tell = plan, graphs, held_out, bind, tell
        self.best: Reading
        self._tried: dict[tuple[str, str, float, float], Reading] = {}
        self._exact: tuple[PricePoint, ...] = ()  # the exact run is the same for all

    def vary(self, reading: Reading, what: str, choices: Sequence[str] | Sequence[float]) -> None:
        """Try a reading with other choices of one of its attributes."""
        for choice in choices:
            self.try_one(replace(reading, **{what: choice}))  # type: ignore[arg-type]

    def try_one(self, reading: Reading) -> None:
        """Try a reading, if it was not yet; the best one so far stays unless it is better."""
        name = reading.name, reading.values, reading.overlap, reading.cost_power
        if name in self._tried:
            return
        prices = self.prices(reading, self._exact, FIRST_REPLAYS, MOST_SHARE)
        if prices.are_far_apart(SHARES):  # a reading whose prices are near one another need not be a bad one
            prices = self.prices(reading, prices.replays, ALL_REPLAYS, MOST_SHARE)
        self._exact = prices.replays[:1]
        found = np.asarray(np.mean([prices.found(share) for share in SHARES], axis=0), np.float64)
        reading = replace(reading, prices=prices.bare(), found=found)
        if not self._tried or reading.is_better(self.best, self._exact[0].cells):
            self.best = reading
        self._tried[name] = reading
        to_try = 2 * len(OVERLAPS) * len(COST_POWERS) * len(VALUES) + len(self.graphs) + len(MORE_OVERLAPS)
        self.tell(min(len(self._tried) / to_try, 1.0))

    def of(self, name: str) -> list[Reading]:
        """Those of one graph."""
        return [reading for reading in self._tried.values() if reading.name == name]

    @property
    def points(self) -> int:
        """Match points of the events that readings are judged on."""
        return self._exact[0].points

    def priced(self, reading: Reading) -> Reading:
        """A reading with more replays."""
        return replace(reading, prices=self.prices(reading, reading.prices.replays, ALL_REPLAYS))

    def prices(self, reading: Reading, known: Sequence[PricePoint], most: int, most_share: float = 0.5) -> Prices:
        """What replays with a reading find."""
        assert self.plan.registers is not None
        graph = read_by(self.graphs[reading.name], reading.values, reading.cost_power)
        worth = by_history(self.plan.registers, graph, reading.overlap)
        is_alike = bool(self._tried) and reading.cost_power == self.best.cost_power
        begin = self.best.prices.price(MIDDLE) if is_alike else None
        return learn_prices(
            self.plan,
            worth,
            self.held_out,
            self.bind,
            known=known,
            begin=begin,
            most=most,
            most_share=most_share,
        )


def read_by(graph: Graph, values: ValuesBy, cost_power: float) -> Graph:
    """The same counts, of which values are worked out in some way."""
    scheme = replace(graph.scheme, values=values, cost_power=cost_power)
    return Graph(scheme, graph.gap, graph.most_bundles, graph.counts)


# --- learning -----------------------------------------------------------------------------------------------

READINGS = WITH_FEATURES, WITH_PAIRS, WITH_CONTEXT, WITHOUT_FEATURES = (
    "with features", "with pairs", "with context", "without features",
)  # fmt: skip
"""Whether vertices tell apart what runs remember, differences and sums of it, also in which context they were made, or
nothing; the first wins a tie."""
HOLDS = 0.8
"""Of what a reading found of events it had not seen, it must find so much once it has seen them."""
OnProgress = Callable[[str, float], None]
"""Called with what is being done and how much of it, from 0 to 1."""


@dataclass(frozen=True)
class Counted:
    """What exact runs over some of the past found.

    Attributes
    ----------
    graph : Graph
    events, points, steps : int
        Events, match points and run-steps.
    """

    graph: Graph
    events: int = 0
    points: int = 0
    steps: int = 0

    def merge(self, other: Counted) -> Counted:
        """Both as one, in any order; they must be of different portions."""
        return Counted(
            self.graph.merge(other.graph),
            self.events + other.events,
            self.points + other.points,
            self.steps + other.steps,
        )


def count_portion(plan: Plan, schema: pa.Schema, roles: Roles, blank: Graph, batches: Iterable[EventBatch]) -> Counted:
    """Run over a portion of the past, and count what it holds.

    Parameters
    ----------
    plan : Plan
    schema : pyarrow.Schema
    roles : Roles
    blank : Graph
        A history of nothing; not changed.
    batches : iterable of EventBatch
        The events of the portion, numbered from 0, each batch but the last of ``BATCH_ROWS``.

    Complexity: one exact run with lineage.
    """
    tracer = Tracer(plan, schema, roles)
    return _counted(Tracing(tracer, _traces(tracer, batches)), blank)


@dataclass(frozen=True)
class Tracing:
    """A run over some of the past that is going on: what traces it, and the traces that are still to be counted."""

    tracer: Tracer
    traces: Iterator[Trace]


def _counted(tracing: Tracing, blank: Graph) -> Counted:
    graph, points, last = blank_of(blank), 0, -1
    for trace in tracing.traces:
        points, last = _more_points(trace, points, last)
        graph.observe(trace)
    progress = tracing.tracer.progress
    return Counted(graph, progress.events, points, progress.steps)


def count_past(plan: Plan, past: Past, blank: Graph, number: int, begun: Tracing | None = None) -> Counted:
    """Run over a past, portion by portion.

    Parameters
    ----------
    plan : Plan
    past : Past
    blank : Graph
        What counts are added to; not changed.
    number : int
        Of portions.
    begun : Tracing, optional
        A run over all of these events together that is going on: where there is one portion it is gone on with.
    """
    found = Counted(blank)
    if number == 1 and begun is not None:
        return found.merge(_counted(begun, blank))
    for batches in past.portions(number):
        found = found.merge(count_portion(plan, past.schema, past.roles, blank, batches))
    return found


def blank_of(graph: Graph) -> Graph:
    """A history of nothing, of the kind of another."""
    return Graph(graph.scheme, graph.gap, graph.most_bundles)


@dataclass(frozen=True)
class Tried:
    """What trying readings on the end of the past has shown.

    Attributes
    ----------
    readings : tuple of Reading
        The one that found most, and the next best ones with the same vertices.
    blank : Graph
        A history of nothing, with its vertices.
    held_out : list of EventBatch
        What it was judged on.
    before : Graph
        What was learned from the events before those.
    trained : int
        How many these are.
    begun : Tracing or None
        The run over all of the past whose first trace has told the vertices; None if it is one over its end.
    """

    readings: tuple[Reading, ...]
    blank: Graph
    held_out: list[EventBatch]
    before: Graph
    trained: int
    begun: Tracing | None = field(default=None, compare=False, repr=False)

    def part(self, plan: Plan, past: Past) -> Part:
        """What promises are measured on."""
        first = self.held_out[0].first_row if self.held_out else 0
        batches = [replace(batch, first_row=batch.first_row - first) for batch in self.held_out]
        return Part(plan, batches, past.bind, self.trained)

    def settled(self, plan: Plan, graph: Graph, past: Past) -> tuple[Reading, Reading]:
        """The reading that is kept once all of the past was learned from, as it was tried, and with the prices of then.

        The graph has now seen what was held out. A reading that finds less of that than before does not bear other
        counts: the next best one takes its place.
        """
        assert plan.registers is not None
        found: list[Reading] = []
        for reading in self.readings:
            worth = by_history(plan.registers, read_by(graph, reading.values, reading.cost_power), reading.overlap)
            known = reading.prices.replays[:1]  # the exact run is the same for all
            prices = learn_prices(plan, worth, self.held_out, past.bind, known=known)
            found.append(replace(reading, prices=prices.bare()))
            if found[-1].recall >= HOLDS * reading.recall:
                return reading, replace(reading, prices=reading.prices.at(prices))
        best = max(range(len(found)), key=lambda number: found[number].recall)
        return self.readings[best], found[best]


def try_readings(plan: Plan, past: Past, gap: int, most_bundles: int, on_progress: OnProgress) -> Tried:
    """Learn from a part of the past, and see which reading of it finds most of what comes next.

    Parameters
    ----------
    plan : Plan
    past : Past
        Or its end.
    gap, most_bundles : int
        As for ``history.Graph``.
    on_progress : callable

    Raises
    ------
    UsageError
        ``ACEP-U046``: no event begins a match.

    Complexity: an exact run with lineage, then see ``choose``.
    """
    first, cut = past.cut()
    held_out = list(past.batches(cut))
    tracer = Tracer(plan, past.schema, past.roles)
    counting = _Counting(tracer, gap, most_bundles)
    on_progress("learning", 0.0)
    for trace in _traces(tracer, past.batches(first, cut or len(past))):
        counting.observe(trace)
    graphs, points = counting.graphs, counting.points
    if not graphs:
        raise UsageError(
            "there is nothing to learn from: no event of the past begins a match",
            code="ACEP-U046",
            hint="give a past with events of the first variable's type, or a longer one",
        )
    found = choose(
        plan, graphs, held_out, past.bind, lambda done: on_progress("choosing", 0.2 + 0.5 * done), points=points
    )
    on_progress("learning", 0.7)
    tracer = Tracer(plan, past.schema, past.roles)
    traces = _traces(tracer, past.batches(first))
    trace = next(traces)  # what is held out helps to find the buckets in the end
    name = found[0].name
    blank = Graph(_scheme(name, tracer, trace), gap, most_bundles)
    begun = None if first or past.skipped else Tracing(tracer, chain([trace], traces))
    return Tried(found, blank, held_out, graphs[name], (cut or len(past)) - first, begun)


class _Counting:
    """Counts what traces hold, with the vertices of each reading whose vertices are not those of one before.

    Up to ``FEW_POINTS`` match points none but the first reading is tried, and a short past may have no more. So the
    first traces wait for the others until there are that many, or too many traces to be kept.

    Attributes
    ----------
    graphs : dict of str to Graph
        By reading; empty before the first trace.
    points : int
        Match points so far.
    """

    def __init__(self, tracer: Tracer, gap: int, most_bundles: int) -> None:
        self._tracer, self._gap, self._most_bundles = tracer, gap, most_bundles
        self.graphs: dict[str, Graph] = {}
        self.points, self._last = 0, -1
        self._waiting: list[Trace] = []
        self._others_wait = True

    def observe(self, trace: Trace) -> None:
        """Count one more trace."""
        self.points, self._last = _more_points(trace, self.points, self._last)
        if not self.graphs:
            self._add(READINGS[0], trace)
        for graph in self.graphs.values():
            graph.observe(trace)
        if self._others_wait:
            self._waiting.append(trace)
            if self.points >= FEW_POINTS or len(self._waiting) > WAITING:
                self._begin_others()

    def _add(self, name: str, trace: Trace) -> None:
        scheme = _scheme(name, self._tracer, trace)
        if all(scheme != graph.scheme for graph in self.graphs.values()):
            self.graphs[name] = Graph(scheme, self._gap, self._most_bundles)

    def _begin_others(self) -> None:
        for name in READINGS[1:]:
            self._add(name, self._waiting[0])
        for graph in list(self.graphs.values())[1:]:
            for trace in self._waiting:
                graph.observe(trace)
        self._others_wait, self._waiting = False, []


def _scheme(name: str, tracer: Tracer, trace: Trace) -> Scheme:
    places, window = tracer.remembered.places, tracer.pipeline.window
    if name == WITH_FEATURES:
        return fit_scheme(places, window, trace)
    if name == WITH_PAIRS:
        return fit_scheme(places, window, trace, pairs=tracer.remembered.pairs())
    if name == WITH_CONTEXT:
        return fit_scheme(places, window, trace, day=DAY if tracer.has_times else 0)
    return Scheme(tuple(Place(state, errors) for state, errors in places), window)


def _more_points(trace: Trace, points: int, last: int) -> tuple[int, int]:
    """Match points with those of one more trace, and the last row of any; those near a border are in two traces."""
    return points + int((trace.point_row > last).sum()), max(last, int(trace.point_row.max(initial=-1)))


def _traces(tracer: Tracer, batches: Iterable[EventBatch]) -> Iterator[Trace]:
    for batch in batches:
        yield from tracer.push(batch)
    yield from tracer.finish()
