"""From a query's tree to its automaton, in which states that have the same future are merged.

Merging gives fewer cells, and fewer states when the automaton is determinised. Two states are merged when the same arcs
leave them and they accept alike; that may make other states alike, so it is repeated until nothing changes. (From fine
to coarse every round is right, and few are needed; the coarsest bisimulation would merge a little more where alike
states form circles, and take a round per step of a long chain.) The language does not change: every test against the
oracle runs on merged automata.

Between the two stands the pattern as a graph of epsilon moves and letter moves. Source: Thompson's construction as in
Li and Ge, PVLDB 10(4) 2016, Figure 1 (after Thompson 1968). Deviations: ``x+`` is one copy of ``x`` with a back edge
(the paper writes it as ``xx*``), bounded repeats are copies, ``ALL`` has a copy of
each part for each set of others before it, and a negation is an epsilon move that carries a guard.
Size is linear in the expanded pattern.

``reach`` is the skip closure: from every state, which letter can be consumed next, and what is skipped on the way. It
replaces the recursive ``propagate`` of the paper (Algorithm 1), which does not end where epsilon moves form a cycle
(nested stars): here each node is visited once per cost and guard. A negation is tested only where both its neighbours
are bound: once a letter is skipped on the way from one bound event to the next, the guards on that way are void, as
predicates over missing events are not tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

from acep_approx.automaton.automaton import START, Arc, Automaton, Component, Final, Letter
from acep_approx.automaton.letters import asked_by, unbound, untrue
from acep_approx.errors import UnsupportedError
from acep_approx.query.checks import lightest
from acep_approx.query.shape import (
    atoms,
    is_static,
    kleene_variables,
    negated_sequences,
    negated_variables,
    negation_windows,
    variables,
    walk,
)
from acep_approx.query.syntax import (
    Absent,
    AllOf,
    Atom,
    Either,
    Expression,
    Pattern,
    QuerySyntax,
    Repeat,
    Sequence,
    Spaced,
    Strategy,
)


@dataclass(frozen=True)
class Move:
    """A move to node ``target``: a letter move where ``atom`` is set, else an epsilon move with a guard.

    ``again`` is the number of the repetition of which this epsilon move starts another round; 0 for none. ``over`` is a
    repetition that prefers something, and ends here.
    """

    target: int
    atom: Atom | None = None
    guard: frozenset[int] = frozenset()
    again: int = 0
    over: Repeat | None = None


@dataclass
class Thompson:
    """``moves[node]`` lists the moves out of a node; one start and one end.

    ``inside[node]`` holds the repetitions and the parts with a word for their gap that the letter move into ``node``
    lies in, by their numbers, outermost first (nothing for other nodes). ``before`` gives per number the strategy of
    the gap before a part that has a word, ``between`` that of the gaps between rounds, ``preferring`` the repetitions
    that prefer something, ``until`` what ends them.
    """

    moves: list[list[Move]] = field(default_factory=list)
    inside: list[tuple[int, ...]] = field(default_factory=list)
    before: dict[int, Strategy] = field(default_factory=dict)
    between: dict[int, Strategy] = field(default_factory=dict)
    preferring: dict[int, Repeat] = field(default_factory=dict)
    until: dict[int, Absent] = field(default_factory=dict)
    start: int = 0
    end: int = 0

    @property
    def has_words(self) -> bool:
        """Whether it must be known of which repetition a way begins another round."""
        return bool(self.before or self.between or self.preferring or self.until)


GuardLetter = Callable[[Atom, bool], int]
"""Gives a number for a negated atom; other ones where it is negated since the start of the partition."""


def build_thompson(pattern: Pattern, guard_letter: GuardLetter) -> Thompson:
    """Build the graph of ``pattern``.

    Parameters
    ----------
    pattern : Pattern
        The tree of the pattern, within the size limits that ``query.checks`` states.
    guard_letter : callable
        See ``GuardLetter``.

    Returns
    -------
    Thompson
        With one letter move per occurrence of an atom in the expanded pattern.
    """
    return _Builder(guard_letter).build(pattern)


class _Builder:
    """Adds the nodes and moves of one pattern; ``_around`` are the numbers around what is built, outermost first."""

    def __init__(self, guard_letter: GuardLetter) -> None:
        self._guard_letter = guard_letter
        self._graph = Thompson()
        self._around: list[int] = []
        self._numbers = 0

    def build(self, pattern: Pattern) -> Thompson:
        self._graph.start = self._node()
        self._graph.end = self._fragment(pattern, self._graph.start)
        return self._graph

    def _node(self) -> int:
        self._graph.moves.append([])
        self._graph.inside.append(())
        return len(self._graph.moves) - 1

    def _link(self, source: int, target: int, again: int = 0, over: int = 0) -> None:
        self._graph.moves[source].append(Move(target, again=again, over=self._graph.preferring.get(over)))

    def _next_round(self, entry: int, again: int) -> int:
        head = self._node()
        self._link(entry, head, again)
        return head

    def _fragment(self, tree: Pattern, entry: int) -> int:  # noqa: PLR0911  one for each kind of node
        """Add the moves of ``tree`` from node ``entry`` on; returns the node where it ends."""
        if isinstance(tree, Atom):
            leave = self._node()
            self._graph.moves[entry].append(Move(leave, atom=tree))
            self._graph.inside[leave] = tuple(self._around)
            return leave
        if isinstance(tree, Absent):
            leave = self._node()
            far = NEXT_ONLY if tree.directly else 0
            letters = [self._guard_letter(atom, tree.since_start) + far for atom in tree.options]
            guard = frozenset(letters[-1:] if tree.in_order else letters)
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
        if isinstance(tree, Spaced):
            self._graph.before[self._enter()] = tree.strategy
            leave = self._fragment(tree.part, entry)
            self._around.pop()
            return leave
        if isinstance(tree, AllOf):
            return self._all_of(tree.parts, entry)
        assert isinstance(tree, Repeat), "patterns of other languages have compilers of their own"
        return self._repeat(tree, entry)

    def _all_of(self, parts: tuple[Pattern, ...], entry: int) -> int:
        """A node for each set of parts that are done, from none to all; bit ``i`` of its number is part ``i``."""
        after = [entry, *(self._node() for _ in range(2 ** len(parts) - 1))]
        for done, node in enumerate(after):
            for i, part in enumerate(parts):
                if not done >> i & 1:
                    self._link(self._fragment(part, node), after[done | 1 << i])
        return after[-1]

    def _enter(self) -> int:
        self._numbers += 1
        self._around.append(self._numbers)
        return self._numbers

    def _repeat(self, tree: Repeat, entry: int) -> int:
        if tree.most == 1 and tree.prefers is None:
            return self._bounded(tree, entry, 1, 0)
        number, most = self._enter(), tree.most
        if tree.prefers is not None:
            self._graph.preferring[number] = tree
        if tree.between is not None:
            self._graph.between[number] = tree.between
        if tree.until is not None:
            self._graph.until[number] = tree.until
        leave = self._endless(tree, entry, number) if most is None else self._bounded(tree, entry, most, number)
        self._around.pop()
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
        self._link(tail, leave, over=number)
        if tree.least == 0:
            self._link(head, leave, over=number)
        return leave

    def _bounded(self, tree: Repeat, entry: int, most: int, number: int) -> int:
        entry = self._copies(tree.part, entry, tree.least, number)
        leave = self._node()
        for i in range(tree.least, most):
            self._link(entry, leave, over=number)
            entry = self._fragment(tree.part, self._next_round(entry, number if i else 0))
        self._link(entry, leave, over=number)
        return leave


NEXT_ONLY, SINCE_START = 1 << 16, 1 << 17
"""Added to numbers in a guard: of a letter that only the next event may not have, and of one that no event since the
start of the partition may have had. The latter are not letters of the automaton: the first event of a match asks.
"""
NO_GUARD: frozenset[int] = frozenset()
NO_REPEAT: frozenset[Repeat] = frozenset()


@dataclass(frozen=True)
class Way:
    """A way to ``node`` that consumes nothing: what it costs, which variables it skips, which guards it passes.

    ``again`` is the outermost repetition around the origin of which the way starts another round; 0 for none. ``over``
    holds those that prefer something and end on the way.
    """

    node: int
    cost: int = 0
    guard: frozenset[int] = NO_GUARD
    skipped: tuple[str, ...] = ()
    again: int = 0
    over: frozenset[Repeat] = NO_REPEAT


def reach(graph: Thompson, origin: int, errors: int, weight: Callable[[Atom], int]) -> Iterator[Way]:
    """Nodes that can be reached from ``origin`` without consuming an event.

    Yields
    ------
    Way
        In order of cost, ``cost <= errors``. Of the ways that skip nothing those with the fewest guards, with another
        round if there is such, and of the ways that skip something the cheapest. Where gaps have words, for each round
        that they start.

    Complexity: O((moves) x (distinct guards)) for cost 0, O(moves log moves) for the rest.
    """
    best: dict[tuple[int, bool], list[Way]] = {}  # having paid lifts the guards to come: its own place
    around = frozenset(graph.inside[origin])
    queue = [(0, 0, 0, Way(origin))]
    pushed = 0
    while queue:
        _, _, _, way = heappop(queue)
        known = best.setdefault((way.node, way.cost > 0), [])
        if any(o.cost <= way.cost and o.guard <= way.guard and _starts(o, way, graph) for o in known):
            continue
        known.append(way)
        yield way
        for move in graph.moves[way.node]:
            onward = _after(way, move, weight, around, keeps=graph.has_words)
            if onward.cost <= errors:
                pushed += 1
                heappush(queue, (onward.cost, len(onward.guard), pushed, onward))


def _starts(one: Way, other: Way, graph: Thompson) -> bool:
    """Whether a way stands for another one as far as rounds go: where no gap has a word, any round is as good."""
    if graph.has_words:
        return (one.again, one.over) == (other.again, other.over)
    return other.again in (one.again, 0)


def _after(way: Way, move: Move, weight: Callable[[Atom], int], around: frozenset[int], *, keeps: bool) -> Way:
    """A way and one more move. Where it skips something it ``keeps`` which round it starts only if a word may ask."""
    again = min((number for number in (way.again, move.again) if number in around), default=0)
    over = way.over | {move.over} if move.over else way.over
    if move.atom:
        cost, skipped = way.cost + weight(move.atom), (*way.skipped, move.atom.variable)
        return Way(move.target, cost, NO_GUARD, skipped, again if keeps else 0, over)
    if way.cost:
        return Way(move.target, way.cost, NO_GUARD, way.skipped, again if keeps else 0, over)
    return Way(move.target, 0, way.guard | move.guard, way.skipped, again, over)


def word_of(graph: Thompson, origin: int, target: int, again: int) -> Strategy | None:
    """The word for the gap before the letter move into ``target`` on a way from ``origin``; None where there is none.

    The word of the repetition of which it is another round, or else of the innermost part that the way has entered. A
    repetition around both that starts another round is entered once more, with all that is in it.
    """
    if again in graph.between and again in graph.inside[target]:
        return graph.between[again]
    entered = _entered(graph, origin, target, again)
    return next((graph.before[number] for number in reversed(entered) if number in graph.before), None)


def _entered(graph: Thompson, origin: int, target: int, again: int) -> tuple[int, ...]:
    before, after = graph.inside[origin], graph.inside[target]
    if again in after:
        return after[after.index(again) + 1 :]
    return tuple(number for number in after if number not in before)


def rounds_begun(graph: Thompson, origin: int, target: int, again: int) -> frozenset[Repeat]:
    """The repetitions that prefer something of which a way begins a round that need not be.

    Another round, or the first one where there need be none.
    """
    found = {graph.preferring.get(number) for number in _entered(graph, origin, target, again)}
    begun = {tree for tree in found if tree is not None and tree.least == 0}
    if again in graph.preferring and again in graph.inside[target]:
        begun.add(graph.preferring[again])
    return frozenset(begun)


# --- the automaton ----------------------------------------------------------------------------------------

MAX_LETTERS = 64
MAX_ARCS = 20_000
MAX_WAYS = 100_000
"""Entries of the skip closure: nodes that can be reached from a state without consuming an event."""
MAX_WAYS_TO_ONE = 400
"""Of these from one state to one node: they differ in the negations that they pass."""


_SMALLER = "use smaller repeats, fewer optional parts or a smaller k"


def compile_automaton(query: QuerySyntax) -> Automaton:
    """Compile the pattern, the predicates on single events, and the error allowance.

    Predicates across events take no part: ``registers`` places them.

    Parameters
    ----------
    query : QuerySyntax
        Already checked (``query.checks.check``).

    Returns
    -------
    Automaton
        Without two states of the same future.

    Raises
    ------
    LimitError
        More than ``MAX_LETTERS`` distinct letters, ``MAX_ARCS`` arcs or ``MAX_WAYS`` entries of the closure.

    Complexity: O(states x moves that k skips can reach).

    Examples
    --------
    >>> from acep_approx.query import parse
    >>> automaton = compile_automaton(parse("PATTERN SEQ(A a, B b) WITHIN 5 ERRORS 1"))
    >>> automaton.size, len(automaton.arcs), [f.cost for f in automaton.finals]
    (3, 3, [1, 0])
    """
    letters = _Letters(query, negated=negated_variables(query.pattern))
    graph = build_thompson(query.pattern, letters.guard)
    raw = _automaton_of(graph, query, letters)
    return merge_equal_futures(raw)


@dataclass
class _Letters:
    """Numbers the distinct letters as they are met; keeps the conditions of each variable."""

    query: QuerySyntax
    letters: dict[Letter, int] = field(default_factory=dict)
    negated: frozenset[str] = frozenset()
    conditions: dict[str, list[Expression]] = field(default_factory=dict)
    dynamic: set[str] = field(default_factory=set)
    apart: set[str] = field(default_factory=set)  # variables whose negations only complete matches are tested with
    known: dict[tuple[str | None, str], int] = field(default_factory=dict)
    unseen: list[Letter] = field(default_factory=list)

    def __post_init__(self) -> None:
        for definition in self.query.definitions:
            self.conditions.setdefault(definition.letter, []).append(definition.condition)
        for predicate in self.query.predicates:
            if is_static(predicate):
                (variable,) = variables(predicate)
                self.conditions.setdefault(variable, []).append(unbound(predicate))
            else:
                self.dynamic |= variables(predicate)
        self.apart = (self.dynamic & self.negated) | negation_windows(self.query.pattern).keys()
        self.apart.update(*negated_sequences(self.query.pattern))

    def index(self, atom: Atom) -> int:
        if (atom.type, atom.variable) in self.known:
            return self.known[atom.type, atom.variable]
        self.known[atom.type, atom.variable] = index = self._number(self._letter(atom), atom)
        return index

    def _letter(self, atom: Atom) -> Letter:
        negated = atom.variable if atom.variable in self.apart else None
        return Letter(atom.type, tuple(self.conditions.get(atom.variable, ())), negated)

    def until(self, atom: Atom, ending: Absent) -> int:
        """The letter of an atom that is none of some others, which end the repetition that it would go on."""
        letter = self._letter(atom)
        for other in ending.options:
            if None in (atom.type, other.type) or atom.type == other.type:
                letter = replace(letter, conditions=(*letter.conditions, untrue(asked_by(self._letter(other)))))
        return self._number(letter, atom)

    def guard(self, atom: Atom, since_start: bool) -> int:
        """The letter of a negated atom; from ``SINCE_START`` on, one of those of which none came since the start."""
        if not since_start:
            return self.index(atom)
        letter = self._letter(atom)
        if letter not in self.unseen:
            self.unseen.append(letter)
        self._refuse_many(len(self.unseen), atom)
        return SINCE_START + self.unseen.index(letter)

    def first(self, atom: Atom, guard: frozenset[int]) -> int:
        """The letter of an atom that a match begins with, behind the negations since the start in ``guard``."""
        unseen = [self.unseen[number - SINCE_START] for number in sorted(guard) if number >= SINCE_START]
        if self.query.at_start:
            unseen = [Letter(None)]
        return self._number(replace(self._letter(atom), unseen=tuple(unseen)), atom) if unseen else self.index(atom)

    def _number(self, letter: Letter, atom: Atom) -> int:
        index = self.letters.setdefault(letter, len(self.letters))
        self._refuse_many(index + 1, atom)
        return index

    def _refuse_many(self, number: int, atom: Atom) -> None:
        if number > MAX_LETTERS:
            message = f"the pattern asks for more than {MAX_LETTERS} different kinds of events"
            hint = "split the pattern, or ask for fewer combinations of type and conditions"
            raise self.query.too_large("ACEP-Q903", message, number, MAX_LETTERS, atom.span, hint)


def _automaton_of(graph: Thompson, query: QuerySyntax, letters: _Letters) -> Automaton:
    weights, kleene = dict(query.weights), kleene_variables(query.pattern)

    def weight(atom: Atom) -> int:
        return weights.get(atom.variable, 1)

    moves = [(node, i, move.atom) for node, out in enumerate(graph.moves) for i, move in enumerate(out) if move.atom]
    state_of = {(node, i): number for number, (node, i, _) in enumerate(moves, start=1)}
    labels: dict[str, int] = {"": 0} if query.is_regex else {}
    for atom in () if query.is_regex else atoms(query.pattern):
        if atom.variable not in letters.negated:
            labels.setdefault(atom.variable, len(labels))
    origins = [graph.start, *(graph.moves[node][i].target for node, i, _ in moves)]
    arcs: list[Arc] = []
    finals: list[Final] = []
    ways = 0
    for source, origin in enumerate(origins):
        known = len(arcs)
        over: frozenset[Repeat] = NO_REPEAT
        ends: list[Final] = []
        here: dict[int, int] = {}
        for way in reach(graph, origin, query.errors, weight):
            ways += 1
            refuse_many(query, "ways to go on without an event", ways, MAX_WAYS, "ACEP-Q911")
            here[way.node] = here.get(way.node, 0) + 1
            refuse_many(query, "ways past negations to one event", here[way.node], MAX_WAYS_TO_ONE, "ACEP-Q911")
            is_end = way.node == graph.end and source != START  # a match has an event
            if is_end and not any(final.guard <= way.guard for final in ends):
                _refuse_near(query, any(j >= NEXT_ONLY for j in way.guard))
                ends.append(Final(source, way.cost, way.guard, way.skipped))
            over |= way.over if way.node == graph.end and not way.cost else NO_REPEAT
            for i, move in enumerate(graph.moves[way.node]):
                if move.atom:
                    label = labels["" if query.is_regex else move.atom.variable]
                    letter = letters.index(move.atom) if source else letters.first(move.atom, way.guard)
                    guard = frozenset(number for number in way.guard if number < SINCE_START)
                    arc = Arc(source, state_of[way.node, i], letter, label, way.cost, guard, way.skipped)
                    arc = _ended(arc, graph, letters, way, move)
                    arcs.append(_with_gap(arc, graph, query.strategy, origin, way, move))
                    refuse_many(query, "arcs", len(arcs), MAX_ARCS, "ACEP-Q904")
        if graph.preferring and source != START:
            arcs[known:] = preferring(query, arcs[known:], over)
        finals += ends
    return Automaton(
        size=len(origins),
        errors=query.errors,
        letters=tuple(letters.letters),
        variables=tuple(labels),
        arcs=tuple(arcs),
        finals=tuple(finals),
        names=("start", *(atom.variable for _, _, atom in moves)),
        components=tuple(
            Component(atom.variable, atom.type, atom.variable in kleene, atom.variable in letters.negated)
            for atom in atoms(query.pattern)
        ),
    )


def _refuse_near(query: QuerySyntax, is_wrong: object) -> None:
    """Refuse a negation of the next event where no event of the match need stand before it, or behind it."""
    if is_wrong:
        found = next(node for node in walk(query.pattern) if isinstance(node, Absent) and node.directly)
        hint = "leave the word out: ~(N n) may also stand first or last"
        message = "a negation of the next event stands between two events of the match"
        raise query.fault("ACEP-Q095", message, found.span, hint, UnsupportedError)


def _ended(arc: Arc, graph: Thompson, letters: _Letters, way: Way, move: Move) -> Arc:
    """An arc with what must not come before its event, by negations and by what ends a repetition."""
    until = graph.until.get(way.again) if way.again in graph.inside[move.target] else None
    if until is not None and move.atom is not None:
        ending = frozenset(letters.index(atom) for atom in until.options) if not way.cost else NO_GUARD
        arc = replace(arc, letter=letters.until(move.atom, until), guard=arc.guard | ending)
    near = frozenset(j - NEXT_ONLY for j in arc.guard if j >= NEXT_ONLY)
    if not near:
        return arc
    _refuse_near(letters.query, arc.source == START)
    return replace(arc, guard=frozenset(j for j in arc.guard if j < NEXT_ONLY), near=near)


def _with_gap(arc: Arc, graph: Thompson, strategy: Strategy, origin: int, way: Way, move: Move) -> Arc:
    """An arc with what may lie in the gap before its event; before the first event of a match nothing is asked."""
    if arc.source == START:
        return arc
    target = move.target
    gap = word_of(graph, origin, target, way.again) or strategy
    # only with this strategy it matters which arcs start another round
    again = gap == "skip_till_next_match" and way.cost == 0 and way.again in graph.inside[target]
    if again or gap != strategy:
        arc = replace(arc, again=again, gap=gap if gap != strategy else None)
    if not graph.preferring:
        return arc
    begun = rounds_begun(graph, origin, target, way.again)
    first = {tree for tree in begun - way.over if tree.prefers == "GREEDY"}
    first |= {tree for tree in way.over - begun if tree.prefers == "RELUCTANT"}
    return replace(arc, first_for=frozenset(first) if not arc.cost else NO_REPEAT, after_in=(begun ^ way.over) - first)


def preferring(query: QuerySyntax, arcs: list[Arc], over: frozenset[Repeat]) -> list[Arc]:
    """The arcs that leave one state, each with the repetitions in which it goes before others, or waits for them.

    Parameters
    ----------
    query : QuerySyntax
    arcs : list of Arc
    over : frozenset of Repeat
        The repetitions after which the pattern may end there.

    Raises
    ------
    UnsupportedError
        ``ACEP-Q921``: nothing follows the repetition. ``ACEP-Q922``: what goes first depends on a negation, or on
        rounds that may be empty.
    """
    first = NO_REPEAT.union(*(arc.first_for for arc in arcs))
    after = NO_REPEAT.union(*(arc.after_in for arc in arcs))
    for tree in sorted(over & (first | after), key=lambda tree: tree.span):
        word = tree.prefers
        message = f"{word} is about what follows the repetition, and the pattern may end there"
        hint = "MAXIMAL lists no match that a longer one contains"
        hint = hint if word == "GREEDY" else f"the fewest rounds are enough: leave {word} and the others out"
        raise query.fault("ACEP-Q921", message, tree.span, hint, UnsupportedError)
    for tree in sorted(first & after, key=lambda tree: tree.span):
        if tree.most is not None and tree.most > 1 and lightest(tree.part, {}) == 0:  # nobody knows which round it is
            message = f"{tree.prefers} counts rounds up to {tree.most}, and those of this repetition may be empty"
            hint = "let a round have one event at least: no ? and * around all of it"
            raise query.fault("ACEP-Q922", message, tree.span, hint, UnsupportedError)
    for arc in arcs:
        for tree in arc.first_for & after if arc.guard or arc.near else ():
            message = f"{tree.prefers} does not go together with a negation or UNTIL between rounds"
            hint = "let the negation stand between two events of one round, or leave the word out"
            raise query.fault("ACEP-Q922", message, tree.span, hint, UnsupportedError)
    return [replace(arc, first_for=arc.first_for & after, after_in=arc.after_in & first) for arc in arcs]


def refuse_many(query: QuerySyntax, what: str, given: int, limit: int, code: str, hint: str = _SMALLER) -> None:
    """Refuse a pattern whose automaton has more of something than there may be."""
    if given > limit:
        message = f"the automaton of this pattern has more than {limit:,} {what}"
        raise query.too_large(code, message, given, limit, query.pattern.span, hint)


def merge_equal_futures(automaton: Automaton) -> Automaton:
    """The automaton with states of the same future merged; the start stays alone.

    Complexity: O(rounds x arcs); the rounds are as many as the longest chain of merged states.
    """
    number = list(range(automaton.size))
    while True:
        merged = _merged(automaton, number)
        if len(set(merged)) == len(set(number)):
            return _renumbered(automaton, number)
        number = merged


def _merged(automaton: Automaton, number: list[int]) -> list[int]:
    leaves: list[set[object]] = [set() for _ in range(automaton.size)]
    for arc in automaton.arcs:
        leaves[arc.source].add((arc.letter, arc.label, number[arc.target], arc.cost, arc.guard, *_kind(arc)))
    for final in automaton.finals:
        leaves[final.state].add((final.cost, final.guard))
    seen: dict[object, int] = {}
    return [seen.setdefault((s == START, frozenset(leaves[s])), len(seen)) for s in range(automaton.size)]


def _kind(arc: Arc) -> tuple[object, ...]:
    return arc.again, arc.gap, arc.first_for, arc.after_in, arc.near


def _renumbered(automaton: Automaton, number: list[int]) -> Automaton:
    """The automaton over the new numbers; what leaves a new state is what left the first of its old states."""
    order = {old: new for new, old in enumerate(dict.fromkeys(number))}
    number = [order[n] for n in number]
    first = {number[state]: state for state in reversed(range(automaton.size))}
    names: list[list[str]] = [[] for _ in order]
    for state, name in enumerate(automaton.names):
        names[number[state]].append(name)
    arcs = (
        replace(arc, source=number[arc.source], target=number[arc.target])
        for arc in automaton.arcs
        if first[number[arc.source]] == arc.source
    )
    finals = {
        replace(final, state=number[final.state])
        for final in automaton.finals
        if first[number[final.state]] == final.state
    }
    return replace(
        automaton,
        size=len(order),
        arcs=tuple(_undominated(arcs)),
        finals=tuple(sorted(finals, key=lambda f: (f.state, f.cost, sorted(f.guard)))),
        names=tuple("|".join(dict.fromkeys(group)) for group in names),
    )


def _undominated(arcs: Iterable[Arc]) -> list[Arc]:
    """Without the arcs that another arc between the same states makes needless (cheaper, fewer guards).

    What is left of arcs for free starts another round if any of them did.
    """
    groups: dict[object, list[Arc]] = {}
    for arc in sorted(arcs, key=lambda a: (a.source, a.target, a.letter, a.label, a.cost, len(a.guard))):
        kept = groups.setdefault((arc.source, arc.target, arc.letter, arc.label, *_kind(arc)[1:]), [])
        better = [i for i, other in enumerate(kept) if other.cost <= arc.cost and other.guard <= arc.guard]
        if not better:
            kept.append(arc)
        elif arc.again:
            kept[better[0]] = replace(kept[better[0]], again=True)
    return [arc for kept in groups.values() for arc in kept]
