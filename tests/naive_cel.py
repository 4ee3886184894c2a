"""What CEL means, by brute force over bags of events. It shares nothing with the package but the resolved tree.

The meaning of FILTER, NEXT and FOLD, literally (``docs/reference/cel.md``):

* an event has an interval ``t0 <= t1`` and attributes; *x before e* where ``x.t1 < e.t0``;
* ``FILTER{p}(S)``: where ``p`` is TRUE, of TRUE, FALSE and NULL; ``DUR`` is ``t1 - t0``;
* ``R NEXT{p} S``: for each ``r``, of the ``e`` with r before e and ``p(r, e)``, all those of the least ``t1``;
* ``R FOLD{p1, p2, agg} S``: ``x := r``; next are all ``e`` of the least ``t1`` with x before e and ``p1``.
  Where ``p2``: an output, which is also the next ``x``. Otherwise this branch ends;
* one output for each derivation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from acep_approx.query.cel.syntax import Algebra, CelQuery, Filter, Fold, Next, Select, Star, Stream
from acep_approx.query.syntax import Attribute, Expression, Lasting, Window
from tests.naive_expressions import value_of

Values = dict[str, Any]
MOST = 5_000
"""Events of a stream: a FOLD over many events at one time has exponentially many."""


class Event(NamedTuple):
    """An event: when it begins and ends, and its attributes."""

    t0: int
    t1: int
    values: Values


class TooManyEvents(Exception):
    """A stream has more than `MOST` events."""


def run(query: CelQuery, events: Mapping[str, Sequence[Event]], ticks: Mapping[str, int] | None = None) -> list[Event]:
    """The results of one resolved query, one for each derivation; ``ticks`` says how many a unit of time has."""
    return run_all([query], events, ticks)[0]


def run_all(
    queries: Sequence[CelQuery], events: Mapping[str, Sequence[Event]], ticks: Mapping[str, int] | None = None
) -> list[list[Event]]:
    """The results of each of several resolved queries that read what others of them publish."""
    world = _World(queries, events, {"ticks": 1, **(ticks or {})})
    return [world.results(query) for query in queries]


def published(
    queries: Sequence[CelQuery], events: Mapping[str, Sequence[Event]], ticks: Mapping[str, int] | None = None
) -> dict[str, list[Event]]:
    """All streams that the queries and their subqueries publish."""
    world = _World(queries, events, {"ticks": 1, **(ticks or {})})
    return {name: world.stream(name) for name in world.publishers}


def bag(events: Sequence[Event]) -> Counter[tuple[Any, ...]]:
    """Events as a bag: equal for equal events in any order."""
    return Counter((one.t0, one.t1, tuple(sorted(one.values.items()))) for one in events)


class _Row(dict[Any, Any]):
    """The values of the attributes of an expression, by their nodes."""

    def __init__(self, sides: Mapping[str, Values], ticks: Mapping[str, int]) -> None:
        super().__init__()
        self.sides, self.ticks = sides, ticks

    def __missing__(self, node: Any) -> Any:
        if isinstance(node, Lasting):
            return node.amount * self.ticks[node.unit]
        assert isinstance(node, Attribute)
        assert node.variable is not None
        return self.sides[node.variable][node.name]


class _World:
    """Streams and who publishes them; each is computed once, when it is first read."""

    def __init__(
        self, queries: Sequence[CelQuery], events: Mapping[str, Sequence[Event]], ticks: Mapping[str, int]
    ) -> None:
        self.events, self.ticks = events, ticks
        self.publishers: dict[str, Callable[[], list[Event]]] = {}
        self.known: dict[str, list[Event]] = {}
        for query in queries:
            for select in selects(query.select.source):
                self._publish(select.publish, lambda select=select: self.select(select))  # type: ignore[misc]
            self._publish(query.select.publish, lambda query=query: self._within(query))  # type: ignore[misc]

    def _publish(self, name: str | None, make: Callable[[], list[Event]]) -> None:
        if name is not None:
            assert name not in self.publishers, f"two publish {name}"
            assert name not in self.events, f"{name} is in the data"
            self.publishers[name] = make

    def results(self, query: CelQuery) -> list[Event]:
        return self._within(query) if query.select.publish is None else self.stream(query.select.publish)

    def _within(self, query: CelQuery) -> list[Event]:
        assert not query.errors
        found = self.select(query.select)
        if query.window is None:
            return found
        longest = length(query.window, self.ticks)
        return [one for one in found if one.t1 - one.t0 <= longest]

    def stream(self, name: str) -> list[Event]:
        if name not in self.publishers:
            return list(self.events.get(name, ()))
        if name not in self.known:
            make = self.publishers[name]
            self.publishers[name] = _circle
            self.known[name] = make()
            self.publishers[name] = make
        return self.known[name]

    def of(self, node: Algebra) -> list[Event]:
        found = []
        for event in self._events(node):
            found.append(event)
            if len(found) > MOST:
                raise TooManyEvents
        return found

    def _events(self, node: Algebra) -> Iterator[Event]:
        match node:
            case Stream(name=name):
                yield from self.stream(name)
            case Filter():
                yield from self.filter(node)
            case Next():
                yield from self.next(node)
            case Fold():
                yield from self.fold(node)
            case Select(publish=None):
                yield from self.select(node)
            case Select(publish=name):
                yield from self.stream(str(name))

    # --- the operators ------------------------------------------------------------------------------------------

    def filter(self, node: Filter) -> Iterator[Event]:
        for event in self.of(node.source):
            values = {**event.values, "DUR": event.t1 - event.t0}
            if self.true(node.condition, {"$1": values}):
                yield event

    def next(self, node: Next) -> Iterator[Event]:
        left, right = self.of(node.left), self.of(node.right)
        for first in left:
            for event in nearest(
                e for e in right if first.t1 < e.t0 and self.true(node.condition, {"$1": first.values, "$2": e.values})
            ):
                common = set(first.values) & set(event.values)
                kept = {f"{name}_1" if common else name: value for name, value in first.values.items()}
                yield Event(first.t0, event.t1, {**kept, **event.values})

    def fold(self, node: Fold) -> Iterator[Event]:
        left, right = self.of(node.left), self.of(node.right)
        for first in left:
            yield from self.iterations(node, first, first, right)

    def iterations(self, node: Fold, first: Event, last: Event, right: list[Event]) -> Iterator[Event]:
        """What follows ``last``, the event of the iteration before."""

        def sides(event: Event) -> dict[str, Values]:
            return {"$1": first.values, "$2": event.values, "$": last.values}

        for event in nearest(e for e in right if last.t1 < e.t0 and self.true(node.filter, sides(e))):
            if not self.true(node.rebind, sides(event)):
                continue
            new = {one.name: self.value(one.value, sides(event)) for one in node.aggregates}
            again = set(event.values) | set(new)
            kept = {f"{name}_1" if name in again else name: value for name, value in first.values.items()}
            yield Event(first.t0, event.t1, {**kept, **event.values, **new})
            following = Event(first.t0, event.t1, {**last.values, **event.values, **new})
            yield from self.iterations(node, first, following, right)

    def select(self, node: Select) -> list[Event]:
        found = []
        for event in self.of(node.source):
            values = {}
            for item in node.items:
                assert not isinstance(item, Star), "resolve the query first"
                values[item.name] = self.value(item.value, {"$1": event.values})
            found.append(Event(event.t0, event.t1, values))
        return found

    # --- expressions --------------------------------------------------------------------------------------------

    def value(self, expression: Expression, sides: Mapping[str, Values]) -> Any:
        return value_of(expression, _Row(sides, self.ticks))

    def true(self, condition: Expression | None, sides: Mapping[str, Values]) -> bool:
        return condition is None or self.value(condition, sides) is True


def nearest(events: Iterator[Event]) -> list[Event]:
    """All of the least ``t1``."""
    found = list(events)
    return [one for one in found if one.t1 == min(other.t1 for other in found)]


def selects(node: Algebra) -> Iterator[Select]:
    """The subqueries of a tree."""
    match node:
        case Select(source=source):
            yield node
            yield from selects(source)
        case Filter(source=source):
            yield from selects(source)
        case Next(left=left, right=right) | Fold(left=left, right=right):
            yield from selects(left)
            yield from selects(right)


def length(window: Window, ticks: Mapping[str, int]) -> float:
    """A window in ticks."""
    return window.amount * ticks[window.unit]


def _circle() -> list[Event]:
    raise ValueError("streams read each other in a circle")
