"""What can come next in a pattern, read off its tree. Tests only: no automaton, no closure, no positions.

A *place* is the rest of the pattern: parts that are still to come, and the repetitions around them, innermost first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from acep_approx.query.shape import atoms, negated_variables
from acep_approx.query.syntax import Absent, Atom, Either, Pattern, QuerySyntax, Repeat, Sequence


@dataclass(frozen=True)
class Loop:
    """A repetition around a place: what remains of it when the round under way is over.

    ``begun`` is its number of rounds so far, as far as it matters. ``holds_last``: the last bound event lies in it.
    ``again``: another round has begun since that event. ``is_idle``: the round under way is one more than needed, and
    has no letter yet; a round without letters is no round.
    """

    tree: Repeat
    begun: int = 0
    holds_last: bool = False
    again: bool = False
    is_idle: bool = False

    @property
    def may_stop(self) -> bool:
        """Whether there are rounds enough."""
        return self.begun >= self.tree.least

    @property
    def may_go_on(self) -> bool:
        """Whether another round is allowed."""
        return self.tree.most is None or self.begun < self.tree.most

    def next_round(self) -> Loop:
        """The same repetition, one round on."""
        begun = self.begun + 1 if self.tree.most is not None else min(self.begun + 1, self.tree.least)
        return replace(self, begun=begun, again=self.again or self.holds_last, is_idle=self.may_stop)


Place = tuple[Pattern | Loop, ...]
Gap = frozenset[Atom] | None
"""The negations between two bound events; None where a letter is missing between them, which voids them."""


@dataclass(frozen=True)
class Step:
    """One way from a place to the next bound event: the atom that binds it, and the place after it.

    ``atom`` is None at the end of the pattern. ``cost`` is the weight of the letters missing on the way. ``takes``: the
    step begins another round of a repetition that holds the event before and the event after it.
    """

    atom: Atom | None
    place: Place
    cost: int
    gap: Gap
    takes: bool


class Places:
    """The steps from the places of one query."""

    def __init__(self, query: QuerySyntax) -> None:
        self.start: Place = (query.pattern,)
        self._weights = dict(query.weights)
        self._negated = negated_variables(query.pattern)
        self._known: dict[tuple[Place, int], tuple[Step, ...]] = {}

    def steps(self, place: Place, budget: int) -> tuple[Step, ...]:
        """All steps from a place, also to the end, with missing letters up to a budget."""
        if (place, budget) not in self._known:
            self._known[place, budget] = tuple(dict.fromkeys(self._walk(place, budget, 0, frozenset())))
        return self._known[place, budget]

    def _walk(self, place: Place, budget: int, cost: int, gap: Gap) -> Iterator[Step]:
        if not place:
            yield Step(None, (), cost, gap, takes=False)
            return
        head, rest = place[0], place[1:]
        match head:
            case Atom(variable=variable):
                takes = any(isinstance(part, Loop) and part.again for part in rest)
                yield Step(head, after_letter(rest, bound=True), cost, gap, takes)
                cost += self._weights.get(variable, 1)
                if cost <= budget:
                    yield from self._walk(after_letter(rest, bound=False), budget, cost, None)
            case Absent(options=options):
                yield from self._walk(rest, budget, cost, None if gap is None else gap | frozenset(options))
            case Sequence(parts=parts):
                yield from self._walk((*parts, *rest), budget, cost, gap)
            case Either(options=options):
                for option in options:
                    yield from self._walk((option, *rest), budget, cost, gap)
            case Repeat():
                yield from self._walk((Loop(head), *rest), budget, cost, gap)
            case Loop() if not head.is_idle:
                if head.may_stop:
                    yield from self._walk(rest, budget, cost, gap)
                if head.may_go_on:
                    yield from self._walk((head.tree.part, head.next_round(), *rest), budget, cost, gap)

    def still_to_come(self, place: Place) -> frozenset[str]:
        """The variables that can be bound from a place on, by the shape of the pattern alone."""
        parts = [part.tree.part if isinstance(part, Loop) else part for part in place if may_come(part)]
        return frozenset(atom.variable for part in parts for atom in atoms(part)) - self._negated


def may_come(part: Pattern | Loop) -> bool:
    """Whether a part of a place can hold events: a repetition only if it may go on."""
    return not isinstance(part, Loop) or part.may_go_on


def after_letter(place: Place, *, bound: bool) -> Place:
    """A place after a letter: no round around it is idle any more; a bound one is the last bound event from now on."""
    return tuple(
        part
        if not isinstance(part, Loop)
        else replace(part, is_idle=False, holds_last=True, again=False)
        if bound
        else replace(part, is_idle=False)
        for part in place
    )
