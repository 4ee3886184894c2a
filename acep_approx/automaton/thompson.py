"""The pattern as a graph of epsilon moves and letter moves, and the ways through it that consume nothing.

Source: Thompson's construction as in Li and Ge, PVLDB 10(4) 2016, Figure 1 (after Thompson 1968). Deviations: ``x+`` is
one copy of ``x`` with a back edge (the paper writes it as ``xx*``), bounded repeats are copies, and a negation is an
epsilon move that carries a guard. Size is linear in the expanded pattern.

``reach`` is the skip closure: from every state, which letter can be consumed next, and what is skipped on the way. It
replaces the recursive ``propagate`` of the paper (Algorithm 1), which does not end where epsilon moves form a cycle
(nested stars): here each node is visited once per cost and guard. A negation is tested only where both its neighbours
are bound: once a letter is skipped on the way from one bound event to the next, the guards on that way are void, as
predicates over missing events are not tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from acep_approx.query.syntax import Absent, Atom, Either, Pattern, Repeat, Sequence


@dataclass(frozen=True)
class Move:
    """A move to node ``target``: a letter move where ``atom`` is set, else an epsilon move with a guard.

    ``again`` is the number of the repetition of which this epsilon move starts another round; 0 for none.
    """

    target: int
    atom: Atom | None = None
    guard: frozenset[int] = frozenset()
    again: int = 0


@dataclass
class Thompson:
    """``moves[node]`` lists the moves out of a node; one start and one end.

    ``inside[node]`` holds the repetitions that the letter move into ``node`` lies in (nothing for other nodes).
    """

    moves: list[list[Move]] = field(default_factory=list)
    inside: list[frozenset[int]] = field(default_factory=list)
    start: int = 0
    end: int = 0


def build_thompson(pattern: Pattern, guard_letter: Callable[[Atom], int]) -> Thompson:
    """Build the graph of ``pattern``.

    Parameters
    ----------
    pattern : Pattern
        The tree of the pattern, within the size limits that ``query.checks`` states.
    guard_letter : callable
        Gives the letter index of a negated atom.

    Returns
    -------
    Thompson
        With one letter move per occurrence of an atom in the expanded pattern.
    """
    return _Builder(guard_letter).build(pattern)


class _Builder:
    """Adds the nodes and moves of one pattern; ``_rounds`` are the repetitions being built, outermost first."""

    def __init__(self, guard_letter: Callable[[Atom], int]) -> None:
        self._guard_letter = guard_letter
        self._graph = Thompson()
        self._rounds: list[int] = []
        self._repeats = 0

    def build(self, pattern: Pattern) -> Thompson:
        self._graph.start = self._node()
        self._graph.end = self._fragment(pattern, self._graph.start)
        return self._graph

    def _node(self) -> int:
        self._graph.moves.append([])
        self._graph.inside.append(frozenset())
        return len(self._graph.moves) - 1

    def _link(self, source: int, target: int, again: int = 0) -> None:
        self._graph.moves[source].append(Move(target, again=again))

    def _next_round(self, entry: int, again: int) -> int:
        head = self._node()
        self._link(entry, head, again)
        return head

    def _fragment(self, tree: Pattern, entry: int) -> int:
        """Add the moves of ``tree`` from node ``entry`` on; returns the node where it ends."""
        if isinstance(tree, Atom):
            leave = self._node()
            self._graph.moves[entry].append(Move(leave, atom=tree))
            self._graph.inside[leave] = frozenset(self._rounds) - {0}
            return leave
        if isinstance(tree, Absent):
            leave = self._node()
            guard = frozenset(self._guard_letter(atom) for atom in tree.options)
            self._graph.moves[entry].append(Move(leave, guard=guard))
            return leave
        if isinstance(tree, Sequence):
            for part in tree.parts:
                entry = self._fragment(part, entry)
            return entry
        if isinstance(tree, Either):
            leave = self._node()
            for option in tree.options:
                inner = self._node()
                self._link(entry, inner)
                self._link(self._fragment(option, inner), leave)
            return leave
        assert isinstance(tree, Repeat), "patterns of other languages have compilers of their own"
        return self._repeat(tree, entry)

    def _repeat(self, tree: Repeat, entry: int) -> int:
        self._repeats += 1
        number = self._repeats if tree.most != 1 else 0
        self._rounds.append(number)
        most = tree.most
        leave = self._endless(tree, entry, number) if most is None else self._bounded(tree, entry, most, number)
        self._rounds.pop()
        return leave

    def _copies(self, part: Pattern, entry: int, count: int, number: int) -> int:
        for i in range(count):
            entry = self._fragment(part, self._next_round(entry, number if i else 0))
        return entry

    def _endless(self, tree: Repeat, entry: int, number: int) -> int:
        entry = self._copies(tree.part, entry, max(tree.least - 1, 0), number)
        head = self._next_round(entry, number if tree.least > 1 else 0)
        tail = self._fragment(tree.part, head)
        leave = self._node()
        self._link(tail, head, number)
        self._link(tail, leave)
        if tree.least == 0:
            self._link(head, leave)
        return leave

    def _bounded(self, tree: Repeat, entry: int, most: int, number: int) -> int:
        entry = self._copies(tree.part, entry, tree.least, number)
        leave = self._node()
        for i in range(tree.least, most):
            self._link(entry, leave)
            entry = self._fragment(tree.part, self._next_round(entry, number if i else 0))
        self._link(entry, leave)
        return leave


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
