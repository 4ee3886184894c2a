"""The steps of learning a history: try readings on the end of the past, count all of it, set prices.

Here and on Spark they are the same functions; there, portions of the past are counted in different processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from acep_approx.errors import UsageError
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.planning.planner import Plan
from acep_approx.training.choosing import Reading, choose, read_by
from acep_approx.training.past import Past
from acep_approx.training.policies import history as by_history
from acep_approx.training.pricing import learn_prices
from acep_approx.training.trace import Tracer
from history.fitting import fit_scheme
from history.graph import Graph
from history.trace import Trace
from history.vectors import Place, Scheme

READINGS = WITH_FEATURES, WITH_PAIRS, WITH_CONTEXT, WITHOUT_FEATURES = (
    "with features", "with pairs", "with context", "without features",
)  # fmt: skip
"""Whether vertices tell apart what runs remember, differences and sums of it, also in which context they were made, or
nothing; the first wins a tie."""
HOLDS = 0.8
"""Of what a reading found of events it had not seen, it must find so much once it has seen them."""
DAY = 86_400_000_000
"""Ticks, where they are times."""
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

    def joined(self, other: Counted) -> Counted:
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
    graph = Graph(blank.scheme, blank.gap, blank.most_bundles)
    points, last = 0, -1
    for trace in _traces(tracer, batches):
        points, last = _more_points(trace, points, last)
        graph.observe(trace)
    return Counted(graph, tracer.progress.events, points, tracer.progress.steps)


def count_past(plan: Plan, past: Past, blank: Graph, number: int) -> Counted:
    """Run over a past, portion by portion.

    Parameters
    ----------
    plan : Plan
    past : Past
    blank : Graph
        What counts are added to; not changed.
    number : int
        Of portions.
    """
    found = Counted(blank)
    for batches in past.portions(number):
        found = found.joined(count_portion(plan, past.schema, past.roles, blank_of(blank), batches))
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
    """

    readings: tuple[Reading, ...]
    blank: Graph
    held_out: list[EventBatch]

    def settled(self, plan: Plan, graph: Graph, past: Past) -> Reading:
        """The reading that is kept once all of the past was learned from, with what budgets cost then.

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
                return replace(reading, prices=reading.prices.at(prices))
        return max(found, key=lambda reading: reading.recall)


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

    Complexity: an exact run with lineage, then see ``choosing.choose``.
    """
    first, cut = past.cut()
    held_out = list(past.batches(cut))
    tracer = Tracer(plan, past.schema, past.roles)
    graphs: dict[str, Graph] = {}
    points, last = 0, -1
    on_progress("learning", 0.0)
    for trace in _traces(tracer, past.batches(first, cut or len(past))):
        points, last = _more_points(trace, points, last)
        graphs = graphs or _blanks(tracer, trace, gap, most_bundles)
        for graph in graphs.values():
            graph.observe(trace)
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
    trace = next(_traces(tracer, past.batches(first)))  # what is held out helps to find the buckets in the end
    return Tried(found, Graph(_scheme(found[0].name, tracer, trace), gap, most_bundles), held_out)


def _blanks(tracer: Tracer, trace: Trace, gap: int, most_bundles: int) -> dict[str, Graph]:
    """Histories of nothing, one for each of the readings whose vertices are not those of one before."""
    found: dict[str, Graph] = {}
    for name in READINGS:
        scheme = _scheme(name, tracer, trace)
        if all(scheme != graph.scheme for graph in found.values()):
            found[name] = Graph(scheme, gap, most_bundles)
    return found


def _scheme(name: str, tracer: Tracer, trace: Trace) -> Scheme:
    """The vertices of a reading, its buckets learned from a trace."""
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
