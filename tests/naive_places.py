"""What can come next in a pattern, read off its tree. Tests only: no automaton, no closure, no positions.

A *place* is the rest of the pattern: parts that are still to come, and the repetitions around them, innermost first.
There is only one of each, so that they are compared by what they are and not by their parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from acep_approx.query.shape import atoms, negated_variables
from acep_approx.query.syntax import (
    Absent,
    AllOf,
    Atom,
    Either,
    Pattern,
    QuerySyntax,
    Repeat,
    Sequence,
    Spaced,
    Strategy,
)


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
    def need_not_be(self) -> bool:
        """Whether the round under way, begun since the last bound event, could have been left out."""
        return self.again or (not self.holds_last and self.tree.least == 0)

    @property
    def may_go_on(self) -> bool:
        """Whether another round is allowed."""
        return self.tree.most is None or self.begun < self.tree.most

    def next_round(self) -> Loop:
        """The same repetition, one round on."""
        begun = self.begun + 1 if self.tree.most is not None else min(self.begun + 1, self.tree.least)
        return Loop(self.tree, begun, self.holds_last, self.again or self.holds_last, self.may_stop)

    def after_letter(self, *, bound: bool) -> Loop:
        """The same repetition after a letter: no round is idle any more; a bound one is the last bound event."""
        return Loop(self.tree, self.begun, bound or self.holds_last, self.again and not bound)


@dataclass(frozen=True)
class Leave:
    """Where a part ends that has a word for the gap before it."""


Parts = tuple[Pattern | Loop | Leave, ...]


@dataclass(frozen=True, eq=False)
class Place:
    """The rest of a pattern; ``Places`` makes it."""

    parts: Parts


Gap = frozenset[tuple[tuple[Atom, ...], Strategy | None]] | None
"""The negations between two bound events, of one event or of a sequence; None where a letter is missing between them:
that voids them. With a strategy those that only the next event can break, of the stream or of the partition.
"""


Repeats = frozenset[Repeat]


class Step(NamedTuple):
    """One way from a place to the next bound event: the atom that binds it, and the place after it.

    ``atom`` is None at the end of the pattern. ``cost`` is the weight of the letters missing on the way. ``takes``: the
    step begins another round of a repetition that holds the event before and the event after it. ``strategy`` is that
    of the gap between the two. ``over`` are the repetitions that end on the way, ``begun`` those of which it begins a
    round that need not be: another one, or the first of a repetition that may have none. No event of ``until`` may be
    the one that is bound.
    """

    atom: Atom | None
    place: Place
    cost: int
    gap: Gap
    takes: bool
    strategy: Strategy
    over: Repeats = frozenset()
    begun: Repeats = frozenset()
    until: frozenset[Atom] = frozenset()


class Places:
    """The steps from the places of one query."""

    def __init__(self, query: QuerySyntax) -> None:
        self._weights = dict(query.weights)
        self._strategy = query.strategy
        self._negated = negated_variables(query.pattern)
        self._places: dict[Parts, Place] = {}
        self._known: dict[tuple[Place, int], tuple[Step, ...]] = {}
        self._to_come: dict[Place, frozenset[str]] = {}
        self.start = self._place((query.pattern,))

    def _place(self, parts: Parts) -> Place:
        return self._places.setdefault(parts, Place(parts))

    def steps(self, place: Place, budget: int) -> tuple[Step, ...]:
        """All steps from a place, also to the end, with missing letters up to a budget."""
        known = self._known.get((place, budget))
        if known is None:
            known = tuple(dict.fromkeys(self._walk(place.parts, budget, 0, frozenset(), (), frozenset())))
            self._known[place, budget] = known
        return known

    def _walk(
        self, place: Parts, budget: int, cost: int, gap: Gap, words: tuple[Strategy, ...], over: Repeats
    ) -> Iterator[Step]:
        """``words`` are those of parts entered since the last bound event and not left, outermost first."""
        if not place:
            yield Step(None, self._place(()), cost, gap, takes=False, strategy=self._strategy, over=over)
            return
        head, rest = place[0], place[1:]
        match head:
            case Atom(variable=variable):
                again = [part.tree.between for part in rest if isinstance(part, Loop) and part.again]
                strategy = next((word for word in (*again, *words[-1:]) if word), self._strategy)
                loops = [part.tree for part in rest if isinstance(part, Loop) and part.need_not_be]
                begun = frozenset[Repeat]().union(*map(preferring, loops))
                after = self._place(after_letter(rest, bound=True))
                until = self._until(rest)
                absent = gap if gap is None else gap | {((atom,), None) for atom in until}
                yield Step(head, after, cost, absent, bool(again), strategy, over, begun, until)
                cost += self._weights.get(variable, 1)
                if cost <= budget:
                    yield from self._walk(after_letter(rest, bound=False), budget, cost, None, words, over)
            case Spaced(strategy=word, part=part):
                yield from self._walk((part, Leave(), *rest), budget, cost, gap, (*words, word), over)
            case Leave():
                yield from self._walk(rest, budget, cost, gap, words[:-1], over)
            case Absent(options=options, directly=directly):
                none = [options] if head.in_order else [(option,) for option in options]
                gap = None if gap is None else gap | {(atoms, directly) for atoms in none}
                yield from self._walk(rest, budget, cost, gap, words, over)
            case Sequence(parts=parts):
                yield from self._walk((*parts, *rest), budget, cost, gap, words, over)
            case Either(options=options):
                for option in options:
                    yield from self._walk((option, *rest), budget, cost, gap, words, over)
            case AllOf(parts=parts):
                for part in parts:
                    others = tuple(other for other in parts if other is not part)
                    following = (part, *((AllOf(others),) if others else ()), *rest)
                    yield from self._walk(following, budget, cost, gap, words, over)
            case Repeat():
                yield from self._walk((Loop(head), *rest), budget, cost, gap, words, over)
            case Loop() if not head.is_idle:
                if head.may_stop:
                    yield from self._walk(rest, budget, cost, gap, words, over | preferring(head.tree))
                if head.may_go_on:
                    yield from self._walk((head.tree.part, head.next_round(), *rest), budget, cost, gap, words, over)

    @staticmethod
    def _until(rest: Parts) -> frozenset[Atom]:
        """What ends the repetitions around a letter of which it begins another round."""
        again = [part.tree.until for part in rest if isinstance(part, Loop) and part.again]
        return frozenset(atom for until in again if until for atom in until.options)

    def still_to_come(self, place: Place) -> frozenset[str]:
        """The variables that can be bound from a place on, by the shape of the pattern alone."""
        if place not in self._to_come:
            parts = [part.tree.part if isinstance(part, Loop) else part for part in events_of(place)]
            self._to_come[place] = frozenset(atom.variable for part in parts for atom in atoms(part)) - self._negated
        return self._to_come[place]


@lru_cache(maxsize=256)
def places_of(query: QuerySyntax) -> Places:
    """The places of a query; known from one partition, and one stream, to the next."""
    return Places(query)


def events_of(place: Place) -> list[Pattern | Loop]:
    """The parts of a place that can hold events: a repetition only if it may go on."""
    parts = [part for part in place.parts if not isinstance(part, Leave)]
    return [part for part in parts if not isinstance(part, Loop) or part.may_go_on]


def preferring(tree: Repeat) -> Repeats:
    """The repetition, if it is greedy or reluctant."""
    return frozenset({tree} if tree.prefers else ())


def after_letter(parts: Parts, *, bound: bool) -> Parts:
    """The parts of a place after a letter."""
    return tuple(part.after_letter(bound=bound) if isinstance(part, Loop) else part for part in parts)
