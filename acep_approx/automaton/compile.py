"""From a query's tree to its automaton."""

from __future__ import annotations

from dataclasses import dataclass, field

from acep_approx.automaton.automaton import Arc, Automaton, Component, Final, Letter
from acep_approx.automaton.closure import reach
from acep_approx.automaton.letters import unbound
from acep_approx.automaton.reduce import merge_equal_futures
from acep_approx.automaton.thompson import Thompson, build_thompson
from acep_approx.errors import LimitError
from acep_approx.query.predicates import is_static, variables
from acep_approx.query.shape import atoms, kleene_variables, negated_variables
from acep_approx.query.syntax import Atom, Expression, QuerySyntax

MAX_LETTERS = 64
MAX_ARCS = 20_000
MAX_WAYS = 100_000
"""Entries of the skip closure: nodes that can be reached from a state without consuming an event."""
MAX_WAYS_TO_ONE = 400
"""Of these from one state to one node: they differ in the negations that they pass."""


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
            raise LimitError(
                f"the pattern asks for more than {MAX_LETTERS} different kinds of events",
                code="ACEP-Q903",
                given=index + 1,
                limit=MAX_LETTERS,
                hint="split the pattern, or ask for fewer combinations of type and conditions",
                text=self.query.text,
                start=atom.span[0],
                end=atom.span[1],
            )
        return index


def _automaton_of(graph: Thompson, query: QuerySyntax, letters: _Letters) -> Automaton:
    """One state per letter move, arcs and finals from the skip closure."""
    weights = dict(query.weights)
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
            _refuse_many(query, "ways to go on without an event", ways, MAX_WAYS, "ACEP-Q911")
            here[way.node] = here.get(way.node, 0) + 1
            _refuse_many(query, "ways past negations to one event", here[way.node], MAX_WAYS_TO_ONE, "ACEP-Q911")
            if way.node == graph.end and not any(final.guard <= way.guard for final in ends):
                ends.append(Final(source, way.cost, way.guard, way.skipped))
            for i, move in enumerate(graph.moves[way.node]):
                if move.atom:
                    label = labels["" if query.is_regex else move.atom.variable]
                    target = state_of[way.node, i]
                    again = takes and bool(way.again & graph.inside[move.target])
                    letter = letters.index(move.atom)
                    arcs.append(Arc(source, target, letter, label, way.cost, way.guard, way.skipped, again))
                    _refuse_many(query, "arcs", len(arcs), MAX_ARCS, "ACEP-Q904")
        finals += ends
    return Automaton(
        size=len(origins),
        errors=query.errors,
        letters=tuple(letters.letters),
        variables=tuple(labels),
        arcs=tuple(arcs),
        finals=tuple(finals),
        names=("start", *(atom.variable for _, _, atom in moves)),
        components=_components(query),
    )


def _components(query: QuerySyntax) -> tuple[Component, ...]:
    kleene, negated = kleene_variables(query.pattern), negated_variables(query.pattern)
    return tuple(
        Component(atom.variable, atom.type, atom.variable in kleene, atom.variable in negated)
        for atom in atoms(query.pattern)
    )


def _refuse_many(query: QuerySyntax, what: str, given: int, limit: int, code: str) -> None:
    if given > limit:
        raise LimitError(
            f"the automaton of this pattern has more than {limit:,} {what}",
            code=code,
            given=given,
            limit=limit,
            hint="use smaller repeats, fewer optional parts or a smaller k",
            text=query.text,
            start=query.pattern.span[0] if query.text else 0,
            end=query.pattern.span[1] if query.text else 0,
        )
