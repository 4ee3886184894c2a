"""The determinised automaton: every match is found by exactly one path, so it is listed once.

A state is a vector ``(state, guard) -> least err`` over the automaton. It moves in two ways: an event that is
*bound* (a class of events and the label it is bound to), and an event that only *passes* and breaks a guard.
States are made when they are first needed, up to a cap.

Source: subset construction with weights; event classes after CORE (Bucchi et al., PVLDB 15(9) 2022); the err
vectors, the labels and the passing moves are ours.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from copy import copy

from acep_approx.automaton.automaton import START, Automaton
from acep_approx.errors import LimitError

MAX_DETERMINISED = 20_000
AHEAD = 20_000
"""Moves made ahead in one go; beyond, moves are made only when the stream asks for them."""
ARCS_AHEAD = 50_000
"""Arcs looked at for them in one go, or an eighth of all before: wide states have few moves made ahead."""

Node = tuple[int, frozenset[int]]
Vector = tuple[tuple[Node, int], ...]
NO_GUARD: frozenset[int] = frozenset()


class Determinised:
    """A growing table of determinised states; state 0 is the start.

    Parameters
    ----------
    automaton : Automaton
        Without guards at the start or at the end.
    cap : int, default MAX_DETERMINISED
        Most states that may be made.

    Attributes
    ----------
    classes : list of int
        Event classes seen so far: bit j is set when letter j holds.
    err : list of int
        Per state the err of a match that ends there, -1 where none does.
    continues : list of bool
        Per state whether any event could still be bound after it.
    bound : dict
        ``(state, class) -> [(label, target), ...]``, one target per label.
    passed : dict
        ``(state, class) -> target``, only where passing breaks a guard; -1 where nothing is left.
    looked_at : int
        Arcs that were looked at to make the moves.
    """

    def __init__(self, automaton: Automaton, *, cap: int = MAX_DETERMINISED) -> None:
        self.automaton = automaton
        self.cap = cap
        self.classes: list[int] = []
        self.err: list[int] = []
        self.continues: list[bool] = []
        self.bound: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self.passed: dict[tuple[int, int], int] = {}
        self.vectors: list[Vector] = []
        self._numbers: dict[Vector, int] = {}
        self._outgoing: dict[Node, list[tuple[int, int, int, int]]] = {}
        for arc in automaton.arcs:
            move = arc.letter, arc.label, arc.target, arc.cost
            self._outgoing.setdefault((arc.source, arc.guard), []).append(move)
        self.looked_at = 0  # arcs, so far
        self._accepts = {final.state: final.cost for final in reversed(automaton.finals) if not final.guard}
        self._guards = automaton.guards
        self._guards_of: dict[int, list[frozenset[int]]] = {}
        for state, guard in self._outgoing:
            if guard:
                self._guards_of.setdefault(state, []).append(guard)
        nodes = {*self._outgoing, *((state, NO_GUARD) for state in range(automaton.size))}
        in_order = sorted(nodes, key=lambda node: (node[0], sorted(node[1])))
        self._place = {node: place for place, node in enumerate(in_order)}
        self.add_vector((((START, NO_GUARD), 0),))

    def __len__(self) -> int:
        return len(self.vectors)

    def copied(self) -> Determinised:
        """Another one with the same states and moves, which grows by itself."""
        other = copy(self)
        for name in ("classes", "err", "continues", "bound", "passed", "vectors", "_numbers"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def add_classes(self, masks: Sequence[int]) -> None:
        """Take notice of more event classes; explores what they lead to."""
        self.classes.extend(masks)
        self._explore([START])

    def make(self, states: Sequence[int], cls: int) -> None:
        """Make the moves of ``states`` over ``cls``, which the stream asks for, and some ahead."""
        for state in states:
            self._resolve(state, cls)
        self._explore(states)

    def _explore(self, origins: Sequence[int]) -> None:
        """Make moves over all classes ahead of what the stream asks for, those of ``origins`` first.

        Stops after ``AHEAD`` new moves or ``ARCS_AHEAD`` arcs, or when half the cap is used: the other half is for what
        the stream asks for.
        """
        most_moves = len(self.bound) + AHEAD
        most_arcs = self.looked_at + max(ARCS_AHEAD, self.looked_at // 8)
        queue = deque([*origins, *range(len(self))])
        done: set[int] = set()
        while queue:
            state = queue.popleft()
            if state in done:
                continue
            if len(self.bound) >= most_moves or self.looked_at >= most_arcs or 2 * len(self) >= self.cap:
                return
            done.add(state)
            for cls in range(len(self.classes)):
                queue.extend(self._resolve(state, cls))

    def _resolve(self, state: int, cls: int) -> list[int]:
        """Make the moves of ``state`` over ``cls``; returns the states they lead to."""
        if (state, cls) not in self.bound:
            self.bound[state, cls] = self._bind(state, self.classes[cls])
            left = self._pass(state, self.classes[cls])
            if left is not None:
                self.passed[state, cls] = left
        targets = [target for _, target in self.bound[state, cls]]
        left = self.passed.get((state, cls), -1)
        return [*targets, left] if left >= 0 else targets

    def _bind(self, state: int, mask: int) -> list[tuple[int, int]]:
        best: dict[int, dict[int, int]] = {}
        most = self.automaton.errors
        for node, err in self.vectors[state]:
            moves = self._outgoing.get(node, ())
            self.looked_at += len(moves)
            for letter, label, target, cost in moves:
                total = err + cost
                if mask >> letter & 1 and total <= most:
                    reached = best.setdefault(label, {})
                    if total < reached.get(target, most + 1):
                        reached[target] = total
        return [(label, self.add_vector(self._vector(reached))) for label, reached in sorted(best.items())]

    def _pass(self, state: int, mask: int) -> int | None:
        """The state after an event of ``mask`` passes unbound; None where it changes nothing."""
        broken = {letter for letter in self._guards if mask >> letter & 1}
        if not broken:
            return None
        left = tuple((node, err) for node, err in self.vectors[state] if not node[1] & broken)
        if len(left) == len(self.vectors[state]):
            return None
        return self.add_vector(left) if left else -1

    def _vector(self, reached: dict[int, int]) -> Vector:
        nodes = {(s, NO_GUARD): e for s, e in reached.items()}
        for s, e in reached.items():
            nodes.update({(s, guard): e for guard in self._guards_of.get(s, ())})
        return tuple(sorted(nodes.items(), key=lambda item: self._place[item[0]]))

    def add_vector(self, vector: Vector) -> int:
        """Number of the state with this vector; made if it is new."""
        if vector in self._numbers:
            return self._numbers[vector]
        if len(self.vectors) >= self.cap:
            raise LimitError(
                f"listing the matches of this pattern needs more than {self.cap} determinised states",
                code="ACEP-Q905",
                given=self.cap + 1,
                limit=self.cap,
                hint="ask for points or bundles instead (always possible), or use fewer optional parts, or a smaller k",
            )
        self._numbers[vector] = number = len(self.vectors)
        self.vectors.append(vector)
        self.continues.append(
            any(e + cost <= self.automaton.errors for node, e in vector for *_, cost in self._outgoing.get(node, ()))
        )
        totals = [e + self._accepts[s] for (s, guard), e in vector if not guard and s in self._accepts and s != START]
        least = min(totals, default=self.automaton.errors + 1)
        self.err.append(least if least <= self.automaton.errors else -1)
        return number
