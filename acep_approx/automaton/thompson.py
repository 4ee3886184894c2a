"""Thompson's construction: the pattern as a graph of epsilon moves and letter moves.

Source: Li and Ge, PVLDB 10(4) 2016, Figure 1 (after Thompson 1968). Deviations: ``x+`` is one copy of ``x`` with a
back edge (the paper writes it as ``xx*``), bounded repeats are copies, and a negation is an epsilon move that
carries a guard. Size is linear in the expanded pattern.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from acep_approx.query.syntax import Absent, Atom, Choice, Pattern, Repeat, Sequence


@dataclass(frozen=True)
class Move:
    """A move to node ``target``: a letter move where ``atom`` is set, else an epsilon move with a guard."""

    target: int
    atom: Atom | None = None
    guard: frozenset[int] = frozenset()


@dataclass
class Thompson:
    """``moves[node]`` lists the moves out of a node; one start and one end."""

    moves: list[list[Move]] = field(default_factory=list)
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
    graph = Thompson()

    def node() -> int:
        graph.moves.append([])
        return len(graph.moves) - 1

    def link(source: int, target: int) -> None:
        graph.moves[source].append(Move(target))

    def copies(part: Pattern, entry: int, count: int) -> int:
        for _ in range(count):
            entry = fragment(part, entry)
        return entry

    def repeat(tree: Repeat, entry: int) -> int:
        if tree.most is None:
            entry = copies(tree.part, entry, max(tree.least - 1, 0))
            head = node()
            link(entry, head)
            tail = fragment(tree.part, head)
            leave = node()
            link(tail, head)
            link(tail, leave)
            if tree.least == 0:
                link(head, leave)
            return leave
        entry = copies(tree.part, entry, tree.least)
        leave = node()
        for _ in range(tree.most - tree.least):
            link(entry, leave)
            entry = fragment(tree.part, entry)
        link(entry, leave)
        return leave

    def fragment(tree: Pattern, entry: int) -> int:
        """Add the moves of ``tree`` from node ``entry`` on; returns the node where it ends."""
        if isinstance(tree, Atom):
            leave = node()
            graph.moves[entry].append(Move(leave, atom=tree))
            return leave
        if isinstance(tree, Absent):
            leave = node()
            graph.moves[entry].append(Move(leave, guard=frozenset(guard_letter(a) for a in tree.options)))
            return leave
        if isinstance(tree, Sequence):
            for part in tree.parts:
                entry = fragment(part, entry)
            return entry
        if isinstance(tree, Choice):
            leave = node()
            for option in tree.options:
                inner = node()
                link(entry, inner)
                link(fragment(option, inner), leave)
            return leave
        return repeat(tree, entry)

    graph.start = node()
    graph.end = fragment(pattern, graph.start)
    return graph
