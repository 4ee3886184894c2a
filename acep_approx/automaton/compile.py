"""From a query's tree to its automaton, in which states that have the same future are merged.

Merging gives fewer cells, and fewer states when the automaton is determinised. Two states are merged when the same arcs
leave them and they accept alike; that may make other states alike, so it is repeated until nothing changes. (From fine
to coarse every round is right, and few are needed; the coarsest bisimulation would merge a little more where alike
states form circles, and take a round per step of a long chain.) The language does not change: every test against the
oracle runs on merged automata.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from acep_approx.automaton.automaton import START, Arc, Automaton, Component, Final, Letter
from acep_approx.automaton.letters import unbound
from acep_approx.automaton.thompson import Thompson, build_thompson, reach
from acep_approx.query.shape import atoms, is_static, kleene_variables, negated_variables, variables
from acep_approx.query.syntax import Atom, Expression, QuerySyntax

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
    graph = build_thompson(query.pattern, letters.index)
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
    known: dict[tuple[str | None, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for definition in self.query.definitions:
            self.conditions.setdefault(definition.letter, []).append(definition.condition)
        for predicate in self.query.predicates:
            if is_static(predicate):
                (variable,) = variables(predicate)
                self.conditions.setdefault(variable, []).append(unbound(predicate))
            else:
                self.dynamic |= variables(predicate)

    def index(self, atom: Atom) -> int:
        if (atom.type, atom.variable) not in self.known:
            self.known[atom.type, atom.variable] = self._number(atom)
        return self.known[atom.type, atom.variable]

    def _number(self, atom: Atom) -> int:
        negated = atom.variable if atom.variable in self.dynamic & self.negated else None
        letter = Letter(atom.type, tuple(self.conditions.get(atom.variable, ())), negated)
        index = self.letters.setdefault(letter, len(self.letters))
        if index >= MAX_LETTERS:
            message = f"the pattern asks for more than {MAX_LETTERS} different kinds of events"
            hint = "split the pattern, or ask for fewer combinations of type and conditions"
            raise self.query.too_large("ACEP-Q903", message, index + 1, MAX_LETTERS, atom.span, hint)
        return index


def _automaton_of(graph: Thompson, query: QuerySyntax, letters: _Letters) -> Automaton:
    """One state per letter move, arcs and finals from the skip closure."""
    weights, kleene = dict(query.weights), kleene_variables(query.pattern)
    takes = query.strategy == "skip_till_next_match"  # only there it matters which arcs start another round

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
        ends: list[Final] = []
        here: dict[int, int] = {}
        for way in reach(graph, origin, query.errors, weight):
            ways += 1
            refuse_many(query, "ways to go on without an event", ways, MAX_WAYS, "ACEP-Q911")
            here[way.node] = here.get(way.node, 0) + 1
            refuse_many(query, "ways past negations to one event", here[way.node], MAX_WAYS_TO_ONE, "ACEP-Q911")
            if way.node == graph.end and not any(final.guard <= way.guard for final in ends):
                ends.append(Final(source, way.cost, way.guard, way.skipped))
            for i, move in enumerate(graph.moves[way.node]):
                if move.atom:
                    label = labels["" if query.is_regex else move.atom.variable]
                    target = state_of[way.node, i]
                    again = takes and bool(way.again & graph.inside[move.target])
                    letter = letters.index(move.atom)
                    arcs.append(Arc(source, target, letter, label, way.cost, way.guard, way.skipped, again))
                    refuse_many(query, "arcs", len(arcs), MAX_ARCS, "ACEP-Q904")
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
    """Number the states by what leaves them, where ``number`` already tells which targets are alike."""
    leaves: list[set[object]] = [set() for _ in range(automaton.size)]
    for arc in automaton.arcs:
        leaves[arc.source].add((arc.letter, arc.label, number[arc.target], arc.cost, arc.guard, arc.again))
    for final in automaton.finals:
        leaves[final.state].add((final.cost, final.guard))
    seen: dict[object, int] = {}
    return [seen.setdefault((s == START, frozenset(leaves[s])), len(seen)) for s in range(automaton.size)]


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
    groups: dict[tuple[int, int, int, int], list[Arc]] = {}
    for arc in sorted(arcs, key=lambda a: (a.source, a.target, a.letter, a.label, a.cost, len(a.guard))):
        kept = groups.setdefault((arc.source, arc.target, arc.letter, arc.label), [])
        better = [i for i, other in enumerate(kept) if other.cost <= arc.cost and other.guard <= arc.guard]
        if not better:
            kept.append(arc)
        elif arc.again:
            kept[better[0]] = replace(kept[better[0]], again=True)
    return [arc for kept in groups.values() for arc in kept]
