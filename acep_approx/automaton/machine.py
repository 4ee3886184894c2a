"""From an automaton written by hand to the register automaton that the engines run.

Source: Chandramouli, Goldstein and Maier, PVLDB 3(1) 2010, Definitions 1 and 2, appendices D (ignorable arcs)
and E (negation at the end). Deviations: EPSILON arcs are folded into others; a run that ignores an
event stays as it is, and its match ends at the event consumed last; events that are missing (``ERRORS``) are ours.
Oracle: ``tests/naive_afa.py``.

Ways that consume no event, EPSILON arcs and arcs that are skipped, are folded into the arcs around them. Which events
are passed over decides how: as long as no state on the way passes over more than the one where it begins, the way is
taken *late*, together with the arc behind it. Otherwise a run of its own waits at its end from the moment on when its
beginning is reached. Source: the same, section 2.2 (next-ID relation of an epsilon arc). Deviations: the paper runs
them one by one; skipped arcs are ours (Li and Ge, PVLDB 10(4) 2016, section 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from heapq import heappop, heappush
from typing import Any

from acep_approx.automaton.automaton import START, Arc, Automaton, Component, Final, Letter
from acep_approx.automaton.compile import MAX_ARCS, MAX_LETTERS, MAX_WAYS, MAX_WAYS_TO_ONE, NO_GUARD, refuse_many
from acep_approx.automaton.letters import asked_by, unbound, untrue
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import Binding, Call, Held, Own, Register, Resolved
from acep_approx.automaton.states import EVERYTHING, NO_EVENT, NOTHING, Computed, Ignore, State, Step
from acep_approx.automaton.substitution import Substitution, Values, parts_of
from acep_approx.errors import UnsupportedError
from acep_approx.query.checks_machine import repeated_variables, weight_of
from acep_approx.query.shape import conjuncts, replaced, walk, with_expressions, with_operands
from acep_approx.query.syntax import (
    Binary,
    Constant,
    Expression,
    FunctionCall,
    Machine,
    MachineArc,
    QuerySyntax,
    RegisterValue,
    UserFunction,
)

# --- ways that consume no event ---------------------------------------------------------------------------

Rules = frozenset[tuple[str | None, Expression | None]]
"""What a state passes over: types (None: any) and conditions on event and registers."""
ALL: Rules = frozenset({(None, None)})


@dataclass(frozen=True)
class Way:
    """A way to ``state`` that consumes nothing: its cost, what it asks of the registers, and what becomes of these.

    ``checks`` and ``values`` are about the registers at its beginning; registers that are not in ``values`` stay.
    ``parts`` says how many parts these expressions have.
    """

    state: str
    cost: int = 0
    checks: tuple[Expression, ...] = ()
    values: tuple[tuple[str, Expression], ...] = ()
    skipped: tuple[str, ...] = ()
    parts: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether it neither tests nor changes a register."""
        return not self.checks and not self.values


@dataclass(frozen=True)
class Ways:
    """Where a run can get from one state without an event.

    ``late`` are the ways that can wait until they are needed, the one that stays first. ``early`` are those that need a
    run of their own from the beginning on.
    """

    late: tuple[Way, ...]
    early: tuple[Way, ...]


def within(one: Rules, other: Rules, way: Way) -> bool:
    """Whether all that one state passes over, the other does, too; False also where that is not plain to see.

    ``way`` leads from one of them to the other: rules that read registers which it changes say different things.
    """
    changed = {name for name, _ in way.values}
    same = not changed or not any(
        isinstance(node, RegisterValue) and node.name in changed for _, when in one if when for node in walk(when)
    )
    return other >= ALL or (one <= other and same)


@dataclass
class Limits(Substitution):
    """What the ways of one automaton, and the expressions on them, may add up to, counted while they are made."""

    ways: int = 0

    def count_way(self, way: Way) -> None:
        """Count a way, and the parts that it carries along."""
        self.ways += 1
        if self.ways > MAX_WAYS:
            self.refuse("ways to go on without an event", self.ways, MAX_WAYS, "ACEP-Q911")
        self.count(way.parts)


def ways_from(query: QuerySyntax, machine: Machine, rules: Mapping[str, Rules], origin: str, limits: Limits) -> Ways:
    """The ways from a state that consume nothing.

    Parameters
    ----------
    query : QuerySyntax
        Says how much may be skipped.
    machine : Machine
        Of the query; no circle of EPSILON arcs changes registers.
    rules : mapping of str to Rules
        Per state what it passes over.
    origin : str
    limits : Limits
        Raises if there are too many, or if their expressions grow too large.

    Complexity: O(ways x arcs out of a state + ways to one state ** 2).
    """
    weights = dict(query.weights)
    late, early = list[Way](), list[Way]()
    known: dict[tuple[str, str], _Known] = {}
    waiting = [(0, 0, Way(origin), origin)]
    found = 1
    while waiting:  # cheap ways first: no way is known that a cheaper one makes needless
        _, _, way, base = heappop(waiting)
        if not known.setdefault((way.state, base), _Known()).add(way, limits):
            continue
        if base == origin:
            late.append(way)
        elif base == way.state:
            early.append(way)
        for arc in machine.leaving.get(way.state, ()):
            cost = weight_of(arc, weights) if arc.kind == "on" else 0
            if arc.kind == "timeout" or way.cost + cost > query.errors:
                continue
            onward = _onward(way, arc, cost, limits)
            limits.count_way(onward)
            found += 1
            is_late = within(rules[onward.state], rules[base], onward)
            heappush(waiting, (onward.cost, found, onward, base if is_late else onward.state))
    return Ways(tuple(late), tuple(early))


def _onward(way: Way, arc: MachineArc, cost: int, writing: Substitution) -> Way:
    if arc.kind == "on":
        skipped = (*way.skipped, arc.variable or arc.type or "event")
        return replace(way, state=arc.target, cost=way.cost + cost, skipped=skipped)
    if arc.when is None and not arc.sets:
        return replace(way, state=arc.target)
    values = dict(way.values)
    checks = tuple(writing.written(check, values) for check in conjuncts(arc.when))
    kept = tuple(dict.fromkeys((*way.checks, *checks)))
    changed = writing.after(values, arc)
    moved = tuple((name, value) for name, value in changed.items() if value != RegisterValue(name))
    return Way(arc.target, way.cost, kept, moved, way.skipped, parts_of((*kept, *changed.values())))


class _Known:
    def __init__(self) -> None:
        self.count = 0
        self.checks: dict[Expression, int] = {}
        self.by_values: dict[tuple[tuple[str, Expression], ...], list[int]] = {}

    def add(self, way: Way, limits: Limits) -> bool:
        """Record a way unless one is known that does the same and asks for less; none known costs more."""
        asked = 0
        for check in way.checks:
            asked |= 1 << self.checks.setdefault(check, len(self.checks))
        alike = self.by_values.setdefault(way.values, [])
        if any(one & asked == one for one in alike):
            return False
        alike.append(asked)
        self.count += 1
        if self.count > MAX_WAYS_TO_ONE:
            what = "ways from one state to another without an event"
            limits.refuse(what, self.count, MAX_WAYS_TO_ONE, "ACEP-Q911")
        return True


# --- the whole automaton ----------------------------------------------------------------------------------

HIDDEN = ""
"""The variable of events that are consumed and not shown."""
_WRITTEN = "each EPSILON arc writes its SET into what comes behind it: let an arc ON an event set some of the registers"


@dataclass(frozen=True)
class _Taken:
    """An event that is consumed, or passed over on the way to another state, and what comes before and behind it."""

    source: int
    type: str | None
    checks: tuple[Expression, ...]
    values: dict[str, Expression]
    variable: str
    cost: int
    skipped: tuple[str, ...]


@dataclass
class _Compiler:
    query: QuerySyntax
    machine: Machine
    letters: dict[Letter, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    number: dict[str, int] = field(default_factory=dict)
    ignores: list[Ignore] = field(default_factory=list)
    arcs: list[Arc] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    finals: dict[Final, None] = field(default_factory=dict)
    transfers: list[dict[str, Expression]] = field(default_factory=list)
    ends_made: dict[str, int] = field(default_factory=dict)
    alike: dict[tuple[Any, ...], int] = field(default_factory=dict)

    # --- what is known before -------------------------------------------------------------------------------

    @cached_property
    def limits(self) -> Limits:
        return Limits(self._refuse)

    @cached_property
    def registers(self) -> dict[str, Register]:
        return {one.name: Register("computed", one.name, holds=one.holds) for one in self.machine.registers}

    @cached_property
    def variables(self) -> tuple[str, ...]:
        named = dict.fromkeys(arc.variable or HIDDEN for arc in self.machine.arcs if arc.kind == "on")
        return (*(name for name in named if name), *([HIDDEN] if HIDDEN in named or self.moves_silently else []))

    @cached_property
    def rules(self) -> dict[str, Rules]:
        """Per state what its runs pass over."""
        found: dict[str, Rules] = {}
        for state in dict.fromkeys(state for arc in self.machine.arcs for state in (arc.source, arc.target)):
            mine = [rule for rule in self.machine.ignores if state in rule.states]
            asked = frozenset(
                self.taken_by_none(state) if rule.otherwise else (rule.type, rule.when and unbound(rule.when))
                for rule in mine
            )
            found[state] = ALL if asked >= ALL else asked
        return found

    def taken_by_none(self, state: str) -> tuple[None, Expression | None]:
        """``OTHERWISE`` as a rule: that no arc of a state consumes the event."""
        arcs = [arc for arc in self.arcs_from(state) if arc.kind == "on"]
        open_to = [(*asked_by(Letter(arc.type)), *conjuncts(arc.when and unbound(arc.when))) for arc in arcs]
        return None, _all_of(tuple(map(untrue, open_to))) if arcs else None

    @cached_property
    def only_otherwise(self) -> frozenset[str]:
        """States that pass over what their arcs do not consume, and nothing else: their arcs tell the engine so."""
        kinds: dict[str, set[bool]] = {}
        for rule in self.machine.ignores:
            for state in rule.states:
                kinds.setdefault(state, set()).add(rule.otherwise)
        return frozenset(state for state, found in kinds.items() if found == {True})

    @cached_property
    def ways(self) -> dict[str, Ways]:
        return {state: ways_from(self.query, self.machine, self.rules, state, self.limits) for state in self.rules}

    @cached_property
    def starts(self) -> tuple[Way, ...]:
        """The ways from the start: before the first event nothing is passed over, so all can wait."""
        nothing = dict.fromkeys(self.rules, frozenset[tuple[str | None, Expression | None]]())
        return ways_from(self.query, self.machine, nothing, self.machine.start, self.limits).late

    @cached_property
    def silent(self) -> dict[str, list[Way]]:
        """Per state the ways that its runs take when they pass an event over which the end of the way does not."""
        return {
            state: [way for way in ways.early if not within(self.rules[state], self.rules[way.state], way)]
            for state, ways in self.ways.items()
            if self.rules[state]
        }

    @property
    def moves_silently(self) -> bool:
        return any(self.silent.values())

    @cached_property
    def reached_silently(self) -> set[str]:
        return {way.state for ways in self.silent.values() for way in ways}

    def _refuse(self, what: str, given: int, limit: int, code: str) -> None:
        hint = _WRITTEN if code == "ACEP-Q120" else "use fewer EPSILON arcs or a smaller k"
        refuse_many(self.query, what, given, limit, code, hint)

    def written(self, expression: Expression, values: Values) -> Expression:
        return self.limits.written(expression, values)

    # --- states ---------------------------------------------------------------------------------------------

    def compile(self) -> RegisterAutomaton:
        self.add_state(self.machine.start, EVERYTHING)
        initial = {one.name: one.initial for one in self.machine.registers}
        for way in self.starts:
            values = {**initial, **{name: self.written(value, initial) for name, value in way.values}}
            checks = tuple(self.written(check, initial) for check in way.checks)
            self.leave(START, replace(way, checks=checks), values)
        waiting = list(self.number)
        for state in waiting:  # grows while it runs
            known = len(self.number)
            self.go_on(state)
            waiting += list(self.number)[known:]
        return self.finished()

    def add_state(self, name: str, ignore: Ignore) -> int:
        self.names.append(name)
        self.ignores.append(ignore)
        return len(self.names) - 1

    def body(self, state: str) -> int:
        """The number of the state in which runs wait that go on."""
        if state not in self.number:
            self.number[state] = self.add_state(state, self.ignore_of(state))
            if state not in self.reached_silently:
                for way in self.ends(state):
                    if way.is_plain and state == way.state:
                        self.finals[Final(self.number[state])] = None
                    elif way.is_plain:
                        self.finals[Final(self.number[state], way.cost, skipped=way.skipped)] = None
        return self.number[state]

    def ends(self, state: str) -> list[Way]:
        """The late ways from a state to final states."""
        return [way for way in self.ways[state].late if way.state in self.machine.finals]

    def go_on(self, state: str) -> None:
        """What runs at a state do."""
        source = self.number[state]
        same = {name: RegisterValue(name) for name in self.registers}
        for way in self.ways[state].late:
            self.leave(source, way, {**same, **dict(way.values)})
        if state in self.only_otherwise:
            self.inhibit(state)
        for way in self.silent.get(state, ()):
            for type_, when in sorted(self.rules[state], key=repr):
                checks = (*conjuncts(when), *way.checks)
                values = {**same, **dict(way.values)}
                taken = _Taken(source, type_, checks, values, HIDDEN, way.cost, way.skipped)
                self.add_step(taken, self.silent_target(way))

    def silent_target(self, way: Way) -> int:
        if any(arc.kind == "timeout" for end in self.ways[way.state].late for arc in self.arcs_from(end.state)):
            message = f"runs that ignore events go on to {way.state} without one, and {way.state} has a TIMEOUT: "
            message += "both do not go together yet"
            hint = "let both states ignore the same events"
            raise self.query.fault("ACEP-Q914", message, self.machine.span, hint, UnsupportedError)
        return self.body(way.state)

    def arcs_from(self, state: str) -> Iterator[MachineArc]:
        return iter(self.machine.leaving.get(state, ()))

    # --- steps ----------------------------------------------------------------------------------------------

    def leave(self, source: int, way: Way, values: Values) -> None:
        """The steps that consume an event at the end of a way."""
        for arc in self.arcs_from(way.state):
            if arc.kind != "on":
                continue
            asked = conjuncts(arc.when and unbound(arc.when))
            checks = (*way.checks, *(self.written(check, values) for check in asked))
            onward = self.limits.after(values, arc, unbound)
            taken = _Taken(source, arc.type, checks, onward, arc.variable or HIDDEN, way.cost, way.skipped)
            for entry in (Way(arc.target), *self.ways[arc.target].early):
                self.enter(taken, entry)

    def enter(self, taken: _Taken, entry: Way) -> None:
        """The steps into the end of a way behind an event: to go on there, and to end there."""
        taken = self.along(taken, entry)
        if taken.cost > self.query.errors:
            return
        state = entry.state
        is_silent = state in self.reached_silently
        ends = self.ends(state)
        goes_on = any(arc.kind == "on" for way in self.ways[state].late for arc in self.arcs_from(way.state))
        if goes_on or self.silent.get(state) or (not is_silent and any(way.is_plain for way in ends)):
            self.add_step(taken, self.body(state))
        for way in ends:
            if is_silent or not way.is_plain:
                self.end(self.along(taken, way), f"{state} ends", NO_GUARD)
        for way in self.ways[state].late:
            for arc in self.arcs_from(way.state):
                if arc.kind == "timeout":
                    self.end(self.after_timeout(self.along(taken, way), arc), f"{state} waits", self.not_ignored(state))

    def along(self, taken: _Taken, way: Way) -> _Taken:
        """What a consumed event makes, and then a way without one."""
        values = {**taken.values, **{name: self.written(value, taken.values) for name, value in way.values}}
        checks = (*taken.checks, *(self.written(check, taken.values) for check in way.checks))
        skipped = (*taken.skipped, *way.skipped)
        return replace(taken, checks=checks, values=values, cost=taken.cost + way.cost, skipped=skipped)

    def after_timeout(self, taken: _Taken, arc: MachineArc) -> _Taken:
        checks = (*taken.checks, *(self.written(check, taken.values) for check in conjuncts(arc.when)))
        return replace(taken, checks=checks, values=self.limits.after(taken.values, arc))

    def end(self, taken: _Taken, name: str, guard: frozenset[int]) -> None:
        """A step to a state of which only the match remains."""
        if taken.cost > self.query.errors:
            return
        key = f"{name} {sorted(guard)}"
        if key not in self.ends_made:
            self.ends_made[key] = self.add_state(name, NO_EVENT)
            self.finals[Final(self.ends_made[key], 0, guard)] = None
        self.add_step(taken, self.ends_made[key])

    def inhibit(self, state: str) -> None:
        """Let no run at a state pass over an event that an arc of it consumes, wherever that leads."""
        source = self.number[state]
        for arc in self.arcs_from(state):
            if arc.kind == "on":
                letter, checks = self.tested(arc.type, conjuncts(arc.when and unbound(arc.when)))
                mine = [
                    number
                    for number, step in enumerate(self.steps)
                    if (step.source, step.letter, step.checks) == (source, letter, checks)
                ]
                for number in mine:
                    self.steps[number] = replace(self.steps[number], inhibits=True)
                if not mine:
                    nothing = Binding(HIDDEN, NOTHING)
                    self.steps.append(Step(None, source, None, letter, nothing, checks, frozenset(), inhibits=True))

    def tested(self, type_: str | None, checks: Iterable[Expression]) -> tuple[int, tuple[Resolved, ...]]:
        """The letter that an event must have for some conditions to hold, and what is left to be asked."""
        by_event, others = list[Expression](), list[Expression]()
        for check in checks:
            (by_event if _is_static(check) else others).append(check)
        letter = self.letter(Letter(type_, tuple(dict.fromkeys(by_event))))
        return letter, tuple(map(self.resolved, others))

    def add_step(self, taken: _Taken, target: int) -> None:
        self.limits.count(1 + parts_of((*taken.checks, *taken.values.values())))
        letter, checks = self.tested(taken.type, taken.checks)
        is_first = taken.source == START
        kept = {one.name: one.initial if is_first else RegisterValue(one.name) for one in self.machine.registers}
        changed = {name: value for name, value in taken.values.items() if value != kept[name]}
        label = self.variables.index(taken.variable)
        arc = Arc(taken.source, target, letter, label, taken.cost, skipped=taken.skipped)
        moves = {self.registers[name]: self.resolved(value) for name, value in changed.items()}
        binding = Binding(taken.variable, NOTHING)
        step = Step(len(self.arcs), taken.source, target, letter, binding, checks, frozenset(), False, moves=moves)
        alike = self.alike.setdefault((replace(step, arc=None), tuple(moves.items())), len(self.arcs))
        if alike < len(self.arcs):  # the same by another way: the cheaper one counts
            self.arcs[alike] = min(self.arcs[alike], arc, key=lambda one: one.cost)
            return
        if len(self.arcs) >= MAX_ARCS:
            self._refuse("arcs", len(self.arcs) + 1, MAX_ARCS, "ACEP-Q904")
        self.arcs.append(arc)
        self.steps.append(step)
        self.transfers.append(changed)

    # --- letters, conditions --------------------------------------------------------------------------------

    def letter(self, letter: Letter) -> int:
        number = self.letters.setdefault(letter, len(self.letters))
        if number >= MAX_LETTERS:
            self._refuse("different kinds of events", number + 1, MAX_LETTERS, "ACEP-Q903")
        return number

    def ignore_of(self, state: str) -> Ignore:
        rules = self.rules[state]
        if rules >= ALL or state in self.only_otherwise:
            return EVERYTHING
        if not rules:
            return NO_EVENT
        letters, others = set[int](), list[tuple[int, Letter, tuple[Expression, ...]]]()
        for type_, when in sorted(rules, key=repr):
            parts = conjuncts(when)
            letter = Letter(type_, tuple(part for part in parts if _is_static(part)))
            dynamic = tuple(part for part in parts if not _is_static(part))
            letters.add(self.letter(letter))
            others.append((self.letter(letter), letter, dynamic))
        if not any(dynamic for *_, dynamic in others):
            return Ignore(frozenset(letters))
        if len(others) == 1:
            return Ignore(frozenset(letters), tuple(self.resolved(check) for check in others[0][2]))
        options = [_all_of((*asked_by(letter), *dynamic)) for _, letter, dynamic in others]
        return Ignore(frozenset(letters), (self.resolved(reduce(lambda a, b: Binary("OR", a, b), options)),))

    def not_ignored(self, state: str) -> frozenset[int]:
        """The letter of the events that end a run which waits at a state."""
        if self.rules[state] >= ALL:  # none: a letter that holds on no event, so that the match waits all the same
            return frozenset({self.letter(Letter(None, (Constant(value=False),)))})
        conditions = []
        for type_, when in sorted(self.rules[state], key=repr):
            asked = _all_of((*asked_by(Letter(type_)), *((when,) if when is not None else ())))
            conditions.append(untrue([asked]))
        return frozenset({self.letter(Letter(None, tuple(conditions)))})

    def resolved(self, node: Expression) -> Resolved:
        if isinstance(node, RegisterValue):
            return Held(self.registers[node.name])
        if isinstance(node, Constant):
            return node
        if _is_static(node):
            return Own(node)
        if isinstance(node, FunctionCall):
            return self.called(node)
        return with_operands(node, self.resolved)

    def called(self, call: FunctionCall) -> Call:
        arguments = tuple(self.resolved(argument) for argument in call.arguments)
        for argument, written in zip(arguments, call.arguments, strict=True):
            if not isinstance(argument, Own | Held | Constant):
                message = f"an argument of {call.name} is computed from registers"
                hint = "an argument is a register, a constant, or about the event alone: keep it in a register first"
                raise self.query.fault("ACEP-Q915", message, written.span, hint, UnsupportedError)
        return Call(call.name, arguments)

    # --- the whole ------------------------------------------------------------------------------------------

    def finished(self) -> RegisterAutomaton:
        repeated = repeated_variables(self.machine) | {HIDDEN}
        types: dict[str, set[str | None]] = {}
        for arc in self.machine.arcs:
            types.setdefault(arc.variable or HIDDEN, set()).add(arc.type)
        automaton = Automaton(
            size=len(self.names),
            errors=self.query.errors,
            letters=tuple(self.letters),
            variables=self.variables,
            arcs=tuple(self.arcs),
            finals=tuple(self.finals),
            names=tuple(self.names),
            components=tuple(
                Component(name, next(iter(types[name])) if len(types.get(name, ())) == 1 else None, name in repeated)
                for name in self.variables
            ),
        )
        needs_neighbours = any(ignore.needs_neighbours for ignore in self.ignores[1:])
        result = RegisterAutomaton(
            self.query,
            automaton,
            letters=list(automaton.letters),
            states=[State(number) for number in range(len(self.names))],
            ignores=self.ignores,
            counted="partition" if needs_neighbours else "nothing",
            steps=self.steps,
            final_checks=[() for _ in self.names],
            computed=tuple(Computed(self.registers[one.name], one.initial) for one in self.machine.registers),
            transfers=tuple(self.transfers),
        )
        result.complete()
        return result


def compile_machine(query: QuerySyntax) -> RegisterAutomaton:
    """Compile an automaton written by hand.

    Parameters
    ----------
    query : QuerySyntax
        Already checked (``query.checks.check``); its pattern is a ``Machine``.

    Raises
    ------
    LimitError
        More than ``MAX_LETTERS`` kinds of events, ``MAX_ARCS`` arcs or ``MAX_WAYS`` ways without an event.
    UnsupportedError
        ``ACEP-Q914``, ``ACEP-Q915``: what cannot be run yet.

    Complexity: O(arcs x ways without an event before and behind them).

    Examples
    --------
    >>> from acep_approx.query import parse
    >>> text = "AUTOMATON (REGISTERS n = 0 a -> a ON A SET n = n + 1 a -> b EPSILON WHEN n = 2 FINAL b)"
    >>> machine = compile_machine(parse(f"PATTERN {text} WITHIN 5"))
    >>> machine.automaton.size, len(machine.steps)
    (3, 4)
    """
    machine = query.pattern
    assert isinstance(machine, Machine)
    return _Compiler(query, _with_functions(machine, {one.name: one for one in query.functions})).compile()


def _with_functions(machine: Machine, functions: Mapping[str, UserFunction]) -> Machine:

    def known(node: Expression) -> Expression | None:
        if not isinstance(node, FunctionCall):
            return None
        arguments = tuple(replaced(argument, known) for argument in node.arguments)
        return replace(node, arguments=arguments, function=functions[node.name])

    return with_expressions(machine, lambda one: replaced(one, known))


def _is_static(expression: Expression) -> bool:
    return not any(isinstance(node, RegisterValue) for node in walk(expression))


def _all_of(conditions: tuple[Expression, ...]) -> Expression:
    return reduce(lambda a, b: Binary("AND", a, b), conditions) if conditions else Constant(value=True)
