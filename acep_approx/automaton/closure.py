"""The skip closure: from every state, which letter can be consumed next, and what is skipped on the way.

Replaces the recursive ``propagate`` of Li and Ge (PVLDB 10(4) 2016, Algorithm 1), which does not end where
epsilon moves form a cycle (nested stars): here each node is visited once per cost and guard.

A negation is tested only where both its neighbours are bound: once a letter is skipped on the way from one bound
event to the next, the guards on that way are void (DESIGN: predicates over missing events are not tested).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from acep_approx.automaton.thompson import Move, Thompson
from acep_approx.query.syntax import Atom

NO_GUARD: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Way:
    """A way to ``node`` that consumes nothing: what it costs, which variables it skips, which guards it passes.

    ``again`` holds the repetitions around the origin of which the way starts another round.
    """

    node: int
    cost: int = 0
    guard: frozenset[int] = NO_GUARD
    skipped: tuple[str, ...] = ()
    again: frozenset[int] = NO_GUARD


def reach(graph: Thompson, origin: int, errors: int, weight: Callable[[Atom], int]) -> Iterator[Way]:
    """Nodes that can be reached from ``origin`` without consuming an event.

    Yields
    ------
    Way
        In order of cost, ``cost <= errors``. Of the ways that skip nothing those with the fewest guards and the most
        new rounds, and of the ways that skip something the cheapest.

    Complexity: O((moves) x (distinct guards)) for cost 0, O(moves log moves) for the rest.
    """
    best: dict[tuple[int, bool], list[Way]] = {}  # having paid lifts the guards to come: its own place
    around = graph.inside[origin]
    queue = [(0, 0, 0, Way(origin))]
    pushed = 0
    while queue:
        _, _, _, way = heappop(queue)
        if not _is_new(best.setdefault((way.node, way.cost > 0), []), way):
            continue
        yield way
        for move in graph.moves[way.node]:
            onward = _after(way, move, weight, around)
            if onward.cost <= errors:
                pushed += 1
                heappush(queue, (onward.cost, len(onward.guard), pushed, onward))


def _after(way: Way, move: Move, weight: Callable[[Atom], int], around: frozenset[int]) -> Way:
    """``way`` and one more move."""
    if move.atom:
        return Way(move.target, way.cost + weight(move.atom), NO_GUARD, (*way.skipped, move.atom.variable))
    if way.cost:
        return Way(move.target, way.cost, NO_GUARD, way.skipped)
    again = way.again | ({move.again} & around)
    return Way(move.target, 0, way.guard | move.guard, way.skipped, again)


def _is_new(known: list[Way], way: Way) -> bool:
    """Record ``way`` unless a known one is at least as good."""
    if any(o.cost <= way.cost and o.guard <= way.guard and o.again >= way.again for o in known):
        return False
    known.append(way)
    return True
