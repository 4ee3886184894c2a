"""The register automaton: the automaton with what its runs must remember, and the conditions that its arcs test.

A state is a position of the pattern together with which of the variables bound so far later conditions will name, and
how many events of them where they are named by their numbers (``a[3]``), so that a condition about a missing event is
left out when the query is compiled and costs nothing when it runs.
Registers are live at a state when something that can come after it may read them; runs that agree in the live ones
have the same future.

Source: Agrawal et al., SIGMOD 2008, sections 3.2 (placing conditions), 5.2.1 (computation state) and 5.2.2 (masks).
Deviations: liveness is computed by data flow over arcs, because the states form no chain; missing events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from acep_approx.automaton.automaton import START, Arc, Automaton, Final, Letter
from acep_approx.automaton.compile import MAX_ARCS, MAX_LETTERS
from acep_approx.automaton.letters import asked_by, untrue
from acep_approx.automaton.resolve import (
    Binding,
    Condition,
    Held,
    Own,
    Register,
    Resolved,
    calls,
    checks_of,
    dynamic_conditions,
    held,
    negation_conditions,
)
from acep_approx.automaton.states import (
    EVERYTHING,
    NO_EVENT,
    NOTHING,
    PLACE,
    Computed,
    Counted,
    Ignore,
    Neighbour,
    State,
    Step,
)
from acep_approx.errors import LimitError, UnsupportedError
from acep_approx.query.shape import gap_words, negated_sequences, walk
from acep_approx.query.syntax import (
    LISTS_ALL,
    NON_OVERLAP,
    Absent,
    Expression,
    QuerySyntax,
    Repeat,
    Strategy,
)

MAX_STATES = 4096
MAX_MOVES = 100_000
"""Entries of the table of moves: for each step out of a state and number of errors one, and one per value moved."""
IGNORES: dict[Strategy, Ignore] = {
    "skip_till_any_match": EVERYTHING,
    "skip_till_next_match": EVERYTHING,
    "partition_contiguity": NO_EVENT,
    "strict_contiguity": NO_EVENT,
}
"""What each strategy lets runs ignore, at the states before such gaps."""
COUNTED: dict[Strategy, Counted] = {"partition_contiguity": "partition", "strict_contiguity": "stream"}


@dataclass
class RegisterAutomaton:
    """States, steps and liveness for one query.

    ``ignores`` says per state which events its runs pass over, ``counted`` which events tell whether one came between.

    ``letters`` are those of the automaton, and more where a condition on one event is for one arc (``a[1].x > 3``).
    ``places`` are the states and errors that can be reached, the start first.
    ``final_checks[state]`` are tested when a match ends there. ``filters`` are conditions that complete matches are
    tested with; ``late_guards`` the letters of negations that only complete matches can be tested with; ``negations``
    per negated variable the conditions that compare it with other events. ``computed`` are the registers that have no
    kind of their own: steps compute them. ``transfers`` say per arc what becomes of registers that have names, by these
    and the current event, in the language of queries: for RETURN. ``shown`` are the registers that results show: runs
    keep them to the end, and no lineage is needed to find them.
    """

    query: QuerySyntax
    automaton: Automaton
    letters: list[Letter] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    ignores: list[Ignore] = field(default_factory=list)
    counted: Counted = "nothing"
    steps: list[Step] = field(default_factory=list)
    live: list[tuple[Register, ...]] = field(default_factory=list)
    final_checks: list[tuple[Resolved, ...]] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)
    filters: tuple[Condition, ...] = ()
    late_guards: frozenset[int] = frozenset()
    negations: dict[str, tuple[Condition, ...]] = field(default_factory=dict)
    computed: tuple[Computed, ...] = ()
    transfers: tuple[Mapping[str, Expression], ...] = ()
    shown: tuple[Register, ...] = ()

    def complete(self) -> None:
        """Find out which registers are live where, and which states can be reached, once all else is there.

        Raises
        ------
        LimitError
            More than ``MAX_MOVES`` moves.

        Complexity: O(steps x registers), mostly.
        """
        if self.computed:
            self.steps = [step.computing(self.computed) for step in self.steps]
        self.live = _liveness(self)
        self.places = _places(self)

    @cached_property
    def finals(self) -> list[list[int]]:
        """Per state the numbers of the finals at its position, where matches end at it."""
        by_position: dict[int, list[int]] = {}
        for number, final in enumerate(self.automaton.finals):
            by_position.setdefault(final.state, []).append(number)
        return [by_position.get(state.position, []) if state.ends else [] for state in self.states]

    @cached_property
    def steps_from(self) -> list[list[int]]:
        """Per state the numbers of the steps that leave it."""
        found: list[list[int]] = [[] for _ in self.states]
        for number, step in enumerate(self.steps):
            found[step.source].append(number)
        return found

    def leaving(self, state: int) -> list[Step]:
        """The steps that leave a state."""
        return [self.steps[number] for number in self.steps_from[state]]

    @property
    def has_words(self) -> bool:
        """Whether gaps have strategies of their own, repetitions prefer something, or some event must not come next."""
        return any(state.gap is not None or state.after_in or state.near for state in self.states)

    def strategy_of(self, gap: Strategy | None) -> Strategy:
        """The strategy of a gap, as arcs and states have it: None is that of the query."""
        return gap or self.query.strategy

    def is_passive(self, state: int) -> bool:
        """Whether no event takes runs away from a state: what they can do only adds."""
        ignore = self.ignores[state]
        return ignore == EVERYTHING and not any(step.inhibits for step in self.leaving(state))

    def repeats(self, state: int) -> bool:
        """Whether runs at a state can come back to it.

        Complexity: O(steps).
        """
        seen, waiting = set[int](), [state]
        while waiting:
            for step in self.leaving(waiting.pop()):
                if step.target == state:
                    return True
                if step.target is not None and step.target not in seen:
                    seen.add(step.target)
                    waiting.append(step.target)
        return False

    def is_ignored_everywhere(self, mask: int) -> bool:
        """Whether an event with these letters changes nothing, whichever runs there are, and begins none.

        Where the events of the whole stream are counted, each of them takes part in that.
        """
        letters = {step.letter for step in self.steps} | self.automaton.guards | self.late_guards
        ignores = [self.ignores[state] for state in {step.source for step in self.steps} - {START}]
        is_asked = any(mask >> letter & 1 for letter in letters)
        if self.counted == "stream" or is_asked:
            return False
        return all(ignore.passes(mask) and not ignore.checks for ignore in ignores)

    def leads_to(self, step: Step, errors: int) -> tuple[int, int] | None:
        """The state and errors that runs with ``errors`` come to; None for a kill step, and beyond k."""
        if step.target is None or step.arc is None:
            return None
        errors += self.automaton.arcs[step.arc].cost
        return (step.target, errors) if errors <= self.automaton.errors else None

    @property
    def negated_sequences(self) -> list[tuple[str, ...]]:
        """The variables of each negation of a sequence, in its order."""
        return negated_sequences(self.query.pattern)

    @property
    def is_simultaneous(self) -> bool:
        """Whether events of one tick cannot follow one another."""
        return self.query.is_simultaneous

    @cached_property
    def has_late_ends(self) -> bool:
        """Whether a negation at the end makes matches wait for the end of the window."""
        return any(final.guard for final in self.automaton.finals)

    @property
    def waits(self) -> bool:
        """Whether matches can wait for the end of the window: a larger one may come, or what a negation excludes."""
        return self.has_late_ends or self.query.selection.maximal

    @property
    def needs_list(self) -> bool:
        """Whether only a list tells which matches there are: they are tested once more, or chosen among."""
        return self.needs_filter or self.query.selection not in (LISTS_ALL, NON_OVERLAP)

    @property
    def needs_filter(self) -> bool:
        """Whether complete matches must be tested once more."""
        guards = any(arc.guard and (arc.source == START or arc.guard & self.late_guards) for arc in self.automaton.arcs)
        return bool(self.filters) or guards or self.has_late_ends

    @cached_property
    def is_ambiguous(self) -> bool:
        """Whether one binding can be reached in several ways, so that it must be kept from being listed twice."""
        seen = set()
        for arc in self.automaton.arcs:
            if (arc.source, arc.label) in seen:
                return True
            seen.add((arc.source, arc.label))
        ends: dict[int, Final] = {}
        return any(ends.setdefault(final.state, final) is not final for final in self.automaton.finals)


def compile_registers(query: QuerySyntax, automaton: Automaton) -> RegisterAutomaton:
    """Place the conditions of a query on the arcs of its automaton.

    Parameters
    ----------
    query : QuerySyntax
    automaton : Automaton
        Of that query.

    Raises
    ------
    LimitError
        More than ``MAX_STATES`` states or ``MAX_ARCS`` arcs (too many variables that may or may not be bound), or
        ``MAX_MOVES`` moves.
    UnsupportedError
        skip_till_next_match with a condition that compares every pair of two sets of events.

    Complexity: O(arcs between states x conditions on their variables).
    """
    return _Compiler(query, automaton).compile()


class _Compiler:
    def __init__(self, query: QuerySyntax, automaton: Automaton) -> None:
        self.query = query
        self.automaton = automaton
        self.result = RegisterAutomaton(query, automaton, list(automaton.letters), [State(START)])
        self.conditions = dynamic_conditions(query)
        self.filters: dict[Condition, None] = {}
        self.leaving: list[list[int]] = [[] for _ in range(automaton.size)]
        for number, arc in enumerate(automaton.arcs):
            self.leaving[arc.source].append(number)
        # per variable the conditions that an event of it can decide
        self.touched = {
            name: [c for c in self.conditions if name in c.names or c.whole] for name in (*automaton.variables, "")
        }
        self.to_come = self._variables_to_come()
        self.relevant = self._relevant_variables()
        self.has_numbers = any(condition.needs - condition.names for condition in self.conditions)
        self.gaps = self._gaps_after()
        self.is_taken = {(arc.source, arc.gap) for arc in automaton.arcs if arc.again and arc.cost == 0}

    def compile(self) -> RegisterAutomaton:
        result = self.result
        result.negations = negation_conditions(self.query)
        letters = enumerate(self.automaton.letters)
        result.late_guards = frozenset(i for i, letter in letters if letter.negated is not None)
        number = {result.states[0]: 0}
        steps, leading = 0, []
        for state in result.states:  # grows while it runs; what the steps test costs more, and comes when all fit
            leading.append([*self._leading(state)])
            for _, target in leading[-1]:
                if target not in number:
                    if len(number) >= MAX_STATES:
                        raise self._too_many("states", len(number) + 1, MAX_STATES)
                    number[target] = len(result.states)
                    result.states.append(target)
                steps += 1
                if steps > MAX_ARCS:
                    raise self._too_many("arcs", steps, MAX_ARCS)
        for source, state in enumerate(result.states):
            for arc, target in leading[source]:
                result.steps.append(self._step(source, state, arc, number[target]))
            result.steps += self._kills(source, state)
        result.ignores = [IGNORES[result.strategy_of(state.gap)] for state in result.states]
        result.counted = self._counted()
        result.final_checks = [self._final_checks(state) for state in result.states]
        result.filters = tuple(self.filters)
        result.complete()
        return result

    def _variables_to_come(self) -> list[frozenset[str]]:
        asked: frozenset[str] = NOTHING.union(*(condition.whole for condition in self.conditions))
        found = [NOTHING] * self.automaton.size
        for arc in self.automaton.arcs:
            found[arc.source] |= asked & {self._variable(arc)}
        return self._carried_back(found)

    def _carried_back(self, found: list[frozenset[str]]) -> list[frozenset[str]]:
        """Per position what holds there or at any position that can come after it."""
        backward = sorted(self.automaton.arcs, key=lambda arc: arc.source, reverse=True)  # mostly one round
        changed = True
        while changed:
            changed = False
            for arc in backward:
                if not found[arc.target] <= found[arc.source]:
                    found[arc.source] |= found[arc.target]
                    changed = True
        return found

    def _relevant_variables(self) -> list[frozenset[str]]:
        found = [NOTHING] * self.automaton.size
        for final in self.automaton.finals:
            for condition in self.conditions:
                if condition.whole & self.to_come[final.state]:
                    found[final.state] |= condition.needs
        for arc in self.automaton.arcs:
            for condition in self.touched[self._variable(arc)]:
                if self._variable(arc) in condition.names or condition.whole & self.to_come[arc.source]:
                    found[arc.source] |= condition.needs
        return self._carried_back(found)

    def _variable(self, arc: Arc) -> str:
        return self.automaton.variables[arc.label] if self.automaton.variables else ""

    def _leading(self, state: State) -> Iterator[tuple[int, State]]:
        """The arcs that leave a state, each with the states that it leads to: one for each kind of gap behind it."""
        mine = _gap_of(state)
        for number in self.leaving[state.position]:
            arc = self.automaton.arcs[number]
            if _gap_of(arc) == mine:
                binding = Binding(self._variable(arc), state.bound)
                binds = binding.binds if self.has_numbers else {str(binding.variable)}
                bound = (state.bound | binds) & self.relevant[arc.target]
                for gap in self.gaps[arc.target]:
                    yield number, State(arc.target, bound, *gap, ends=gap == self.gaps[arc.target][0])

    def _gaps_after(self) -> list[tuple[Gap, ...]]:
        """Per position the kinds of gaps before the events that can come next; one where none can."""
        found: list[dict[Gap, None]] = [{} for _ in range(self.automaton.size)]
        for arc in self.automaton.arcs:
            found[arc.source][_gap_of(arc)] = None
        return [tuple(sorted(gaps, key=_order)) or ((None, NO_REPEAT, NO_LETTERS),) for gaps in found]

    def _counted(self) -> Counted:
        """Which events tell whether one came between: those of the whole stream, or of the partition."""
        inner = (arc.gap for arc in self.automaton.arcs if arc.source != START)
        found = {COUNTED[gap] for gap in map(self.result.strategy_of, inner) if gap in COUNTED}
        negations = (node.directly for node in walk(self.query.pattern) if isinstance(node, Absent))
        found |= {COUNTED[directly] for directly in negations if directly is not None}
        if len(found) > 1 and self.query.equivalences:
            of_stream = [span for gap, span in gap_words(self.query.pattern) if gap in COUNTED]
            message = "with [attribute] the gaps of a query count events of the stream, or of the key, not both"
            hint = "use one of STRICT (strict_contiguity) and CONTIGUOUS (partition_contiguity)"
            raise self.query.fault("ACEP-Q920", message, of_stream[0], hint, UnsupportedError)
        return "stream" if "stream" in found else "partition" if found else COUNTED.get(self.query.strategy, "nothing")

    def _step(self, source: int, state: State, number: int, target: int) -> Step:
        arc = self.automaton.arcs[number]
        variable = self._variable(arc)
        binding = Binding(variable, state.bound)
        checks = self._checks(state, arc, binding)
        for first in self._before(state):
            checks += self._not_open(first, state, self.automaton.letters[arc.letter])
        letter, checks = self._with_own(self.result.letters, arc.letter, checks)
        return Step(
            arc=number,
            source=source,
            target=target,
            letter=letter,
            binding=binding,
            checks=tuple(checks),
            guard=NO_LETTERS if arc.source == START else arc.guard - self.result.late_guards,
            inhibits=self._inhibits(arc),
        )

    def _inhibits(self, arc: Arc) -> bool:
        """Whether events that an arc takes cannot be passed over, in gaps of its kind."""
        passes_all = self.result.strategy_of(arc.gap) == "skip_till_any_match"
        may_inhibit = not passes_all and arc.cost == 0 and arc.source != START
        return may_inhibit and (arc.again or (arc.source, arc.gap) not in self.is_taken)

    # --- repetitions that prefer something ---

    def _before(self, state: State) -> list[Arc]:
        """The arcs that go before those that leave a state."""
        if not state.after_in:
            return []
        leaving = [self.automaton.arcs[number] for number in self.leaving[state.position]]
        return [arc for arc in leaving if arc.first_for & state.after_in]

    def _beside(self, state: State) -> list[Arc]:
        """The arcs from other states of a position by which events cannot be passed over in a gap that is NEXT."""
        if self.result.strategy_of(state.gap) != "skip_till_next_match":
            return []
        leaving = [self.automaton.arcs[number] for number in self.leaving[state.position]]
        beside = (arc for arc in leaving if arc.gap == state.gap and _gap_of(arc) != _gap_of(state))
        return [arc for arc in beside if self._inhibits(arc)]

    def _kills(self, source: int, state: State) -> Iterator[Step]:
        """Steps by which runs at a state end at an event that an arc takes which goes first.

        So they do where it may not be passed over in gaps of their kind, and its arc leaves another state for the
        repetitions that it waits in.
        """
        first = self._before(state)
        for arc in (*first, *(arc for arc in self._beside(state) if arc not in first)):
            binding = Binding(self._variable(arc), state.bound)
            checks = [*self._checks(state, arc, binding), *(self._is_near(arc) if arc in first else [])]
            letter, checks = self._with_own(self.result.letters, arc.letter, checks)
            yield Step(None, source, None, letter, binding, tuple(checks), NO_LETTERS, inhibits=True)
        for number in sorted(state.near):
            nothing = Binding(None, state.bound)
            yield Step(None, source, None, number, nothing, (Neighbour(Held(PLACE)),), NO_LETTERS, inhibits=True)

    def _is_near(self, arc: Arc) -> list[Resolved]:
        """What is asked of an arc over a gap in which nothing may lie."""
        return [Neighbour(Held(PLACE))] if self.result.strategy_of(arc.gap) in COUNTED else []

    def _not_open(self, arc: Arc, state: State, other: Letter) -> list[Resolved]:
        """Tests that an arc that goes first does not take the event, which is one of another letter."""
        letter = self.automaton.letters[arc.letter]
        if None not in (letter.type, other.type) and letter.type != other.type:
            return []
        parts = [Own(one) for one in asked_by(letter)]
        parts += self._checks(state, arc, Binding(self._variable(arc), state.bound)) + self._is_near(arc)
        if all(isinstance(part, Own) for part in parts):
            return [Own(untrue([part.value for part in parts]))]
        return [untrue(parts)]

    def _too_many(self, what: str, given: int, limit: int) -> LimitError:
        message = f"the conditions of this query need more than {limit:,} {what}"
        hint = "fewer of the variables that conditions name may be missing or optional: lower ERRORS"
        if any(least > 1 for condition in self.conditions for least in condition.least.values()):
            hint = "there is a state for each event of a repetition up to a[k]: use a smaller k, or lower ERRORS"
        return self.query.too_large("ACEP-Q905", message, given, limit, hint=hint)

    @staticmethod
    def _with_own(letters: list[Letter], number: int, checks: list[Resolved]) -> tuple[int, list[Resolved]]:
        """Conditions on the event alone become a letter of their own, which is tested once per event."""
        own = tuple(check.value for check in checks if isinstance(check, Own))
        base = letters[number]
        letter = replace(base, conditions=base.conditions + own)
        if not own or (letter not in letters and len(letters) >= MAX_LETTERS):
            return number, checks
        if letter not in letters:
            letters.append(letter)
        return letters.index(letter), [check for check in checks if not isinstance(check, Own)]

    def _checks(self, state: State, arc: Arc, binding: Binding) -> list[Resolved]:
        """What must hold when ``arc`` binds an event; what registers cannot decide goes to the filters."""
        found: list[Resolved] = []
        bound = state.bound | binding.binds
        for condition in self.touched[str(binding.variable)]:
            before = condition.is_decided(state.bound, self.to_come[arc.source])
            after = condition.is_decided(bound, self.to_come[arc.target])
            if not after or (before and not self._matters(condition, binding)):
                continue
            is_late = condition.whole & self.to_come[arc.source] or not (before or condition.needs <= state.bound)
            again = condition.each if is_late else NOTHING
            checks = checks_of(condition, binding, again)
            if checks is None:
                self._leave_to_filter(condition, inhibits=self._chooses(arc))
            else:
                found += checks
        return found

    def _chooses(self, arc: Arc) -> bool:
        """Whether it must be known at once that an arc takes an event: others depend on it."""
        is_next = self.result.strategy_of(arc.gap) == "skip_till_next_match"
        return (is_next and self._inhibits(arc)) or bool(arc.first_for)

    @staticmethod
    def _matters(condition: Condition, binding: Binding) -> bool:
        if binding.variable not in condition.names:
            return False
        return binding.variable in condition.each or binding.is_first

    def _final_checks(self, state: State) -> tuple[Resolved, ...]:
        found: list[Resolved] = []
        to_come = self.to_come[state.position]
        if not state.ends or not any(final.state == state.position for final in self.automaton.finals):
            return ()
        for condition in self.conditions:
            if condition.needs <= state.bound and condition.whole & to_come:
                checks = checks_of(condition, Binding(None, state.bound), condition.each)
                if checks is None or any(map(calls, checks)):  # nothing is called once a match is complete
                    self._leave_to_filter(condition, inhibits=False)
                else:
                    found += checks
        return tuple(found)

    def _leave_to_filter(self, condition: Condition, *, inhibits: bool) -> None:
        if inhibits:
            message = "skip_till_next_match cannot choose the next event by a condition on all events of a repetition"
            hint = "compare with one event (a[1], a[i-1], a[a.LEN]) or with max(a[].x) or min(a[].x), or "
            hint += "choose by skip_till_any_match"
            raise self.query.fault("ACEP-Q900", message, condition.expression.span, hint, UnsupportedError)
        self.filters[condition] = None


NO_LETTERS: frozenset[int] = frozenset()
NO_REPEAT: frozenset[Repeat] = frozenset()
Gap = tuple[Strategy | None, frozenset[Repeat], frozenset[int]]
"""What arcs of one kind share: the strategy of their gap, where they wait for others, what must not come next."""


def _gap_of(one: Arc | State) -> Gap:
    return one.gap, one.after_in, one.near


def _order(gap: Gap) -> tuple[str, list[str], list[int]]:
    return str(gap[0]), sorted(map(repr, gap[1])), sorted(gap[2])




def _liveness(result: RegisterAutomaton) -> list[tuple[Register, ...]]:
    live: list[set[Register]] = [set() for _ in result.states]
    for number, checks in enumerate(result.final_checks):
        live[number] |= {h.register for check in checks for h in held(check)}
    for number, ends in enumerate(result.finals):
        live[number] |= set(result.shown) if ends else set()
    for number, ignore in enumerate(result.ignores):
        live[number] |= {h.register for check in ignore.checks for h in held(check)}
    for step in result.steps:
        if step.guard:
            live[step.source].add(PLACE)
        for check in step.checks:
            live[step.source] |= step.reads(check)
    leading = [(step, step.target, dict[Register, frozenset[Register]]()) for step in reversed(result.steps)]
    changed = True
    while changed:
        changed = False
        for step, target, known in leading:  # mostly one round
            for register in live[target] - known.keys() if target is not None else ():
                known[register] = step.reads(step.after(register))
            wanted = frozenset().union(*known.values())
            if not wanted <= live[step.source]:
                live[step.source] |= wanted
                changed = True
    return [tuple(sorted(registers, key=repr)) for registers in live]


def _places(result: RegisterAutomaton) -> list[tuple[int, int]]:
    order = [(START, 0)]
    known = set(order)
    moves = 0
    for state, errors in order:  # grows while it runs
        for step in result.leaving(state):
            target = result.leads_to(step, errors)
            if target is None:
                continue
            moves += 1 + len(result.live[target[0]])
            if moves > MAX_MOVES:
                message = f"the moves of the runs need more than {MAX_MOVES:,} entries of a table"
                hint = "use a smaller k, smaller repeats, or conditions across fewer events"
                raise result.query.too_large("ACEP-Q912", message, moves, MAX_MOVES, hint=hint)
            if target not in known:
                known.add(target)
                order.append(target)
    return order
