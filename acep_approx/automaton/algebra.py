"""From a query in CEL, the left-associated part of one, to the register automaton that the engines run.

A run is an instance of Cayuga: it waits at a state for the next event of a stream, and its registers are the
attributes of what came so far. NEXT takes a run forward with the first event on which its condition is TRUE; FOLD takes
it back to its state (rebind) and forward, and a *kill step* takes away what would not go on.

Source: Demers et al., CIDR 2007, sections 2.2 and 3.1. Deviations: filter edges are tests of the steps, or nothing at
all, as runs stay where they are; the rest of FOLD's first condition is a kill step. The formal semantics stand in a
paper that we do not have. Oracle: ``tests/naive_cel.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NoReturn

from acep_approx.automaton.automaton import START, Arc, Automaton, Component, Final, Letter
from acep_approx.automaton.compile import MAX_ARCS, MAX_LETTERS
from acep_approx.automaton.registers import MAX_STATES, RegisterAutomaton
from acep_approx.automaton.resolve import Binding, Held, Own, Register, Resolved
from acep_approx.automaton.states import EVERYTHING, NOTHING, Began, Now, State, Step
from acep_approx.automaton.substitution import Substitution, parts_of
from acep_approx.query.cel.names import Schemas, renaming, schema_of
from acep_approx.query.cel.syntax import (
    DURATION,
    FIRST,
    LAST,
    SECOND,
    Algebra,
    CelQuery,
    Filter,
    Fold,
    Next,
    Select,
    Stream,
)
from acep_approx.query.shape import conjuncts, operands, replaced, walk, with_operands
from acep_approx.query.syntax import (
    Attribute,
    Binary,
    Constant,
    Expression,
    IsNull,
    Lasting,
    Parameter,
    QuerySyntax,
    Unary,
)

Values = Mapping[str, Resolved]
"""What attributes are, by their names."""
_ARITHMETIC = ("+", "-", "*", "%")


def leaves(node: Resolved) -> Iterator[Resolved]:
    """What a node reads of a run and an event: ``Own``, ``Held``, ``Now`` and ``Began``, in the order of the text."""
    if isinstance(node, Own | Held | Now | Began):
        yield node
        return
    for part in operands(node):
        yield from leaves(part)


@dataclass(frozen=True, eq=False)
class Ticks(Constant):
    """A length of time in ticks, with how the query writes it."""

    written: Lasting | None = None


def substituted(expression: Expression, scope: Mapping[str, Values], ticks: Callable[[Lasting], int]) -> Resolved:
    """An expression with what attributes are in their places.

    Parameters
    ----------
    expression : Expression
        Its attributes are decorated.
    scope : mapping of str to Values
        By decorator what its attributes are.
    ticks : callable
        Gives the ticks of a length of time.

    Returns
    -------
    Resolved
        What is about the current event alone is one ``Own``.
    """
    match expression:
        case Attribute(variable=side, name=name):
            return scope[str(side)][name]
        case Lasting():
            return Ticks(ticks(expression), written=expression)
        case Parameter(name=name):  # a column of the current event, which its query brings
            return Own(Attribute(None, None, f":{name}"))
    return gathered(with_operands(expression, lambda part: substituted(part, scope, ticks)))


def with_bounds(conditions: Sequence[Expression]) -> tuple[tuple[Expression, ...], dict[str, Expression]]:
    """Conditions of NEXT in which what is computed of the first input and compared with the second has a name.

    So it is computed once, when a run comes to wait, and runs wait for an event beyond it. Only numbers with fractions
    are: whole ones may pass 64 bits, which is told when they are compared.

    Parameters
    ----------
    conditions : sequence of Expression
        Their attributes are decorated.

    Returns
    -------
    conditions : tuple of Expression
    bounds : dict of str to Expression
        What the names stand for; no attribute can have them.
    """
    bounds: dict[str, Expression] = {}

    def named(one: Expression, other: Expression) -> Expression:
        has_fraction = any(isinstance(node, Constant) and isinstance(node.value, float) for node in walk(one))
        if not isinstance(one, Binary) or not has_fraction or _sides(one) != {FIRST} or _sides(other) != {SECOND}:
            return one
        name = f"$bound{len(bounds)}"
        bounds[name] = one
        return Attribute(FIRST, None, name, span=one.span)

    found: list[Expression] = []
    for condition in conditions:
        if isinstance(condition, Binary) and condition.op in ("<", "<=", ">", ">="):
            left, right = condition.left, condition.right
            found.append(replace(condition, left=named(left, right), right=named(right, left)))
        else:
            found.append(condition)
    return tuple(found), bounds


def _sides(expression: Expression) -> set[str | None]:
    return {node.variable for node in walk(expression) if isinstance(node, Attribute)}


def of_one_event(expression: Expression, scope: Mapping[str, Values]) -> Expression:
    """An expression with values of one event in the places of attributes, which are of the kinds that these have.

    Lengths of time are numbers of ticks.
    """

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Lasting):
            return Constant(0, node.span)
        if not isinstance(node, Attribute):
            return None
        return replace(like(scope[str(node.variable)][node.name])[0], span=node.span)

    return replaced(expression, change)


def gathered(node: Resolved) -> Resolved:
    """A node as one value of the current event, if all that it reads is one."""
    parts = operands(node)
    if not any(isinstance(part, Own) for part in parts) or not all(isinstance(part, Own | Constant) for part in parts):
        return node
    return Own(with_operands(node, lambda part: part.value if isinstance(part, Own) else part))


def like(node: Resolved) -> tuple[Expression, ...]:  # noqa: PLR0911  one for each kind of node
    """Expressions on single events whose values are of the kind that ``node`` has: the widest of them.

    Examples
    --------
    >>> price, half = Own(Attribute(None, None, "price")), Constant(0.5)
    >>> like(Binary("*", price, half)) == (price.value, half)
    True
    """
    match node:
        case Own(value=value):
            return (value,)
        case Held(register=register):
            return register.like or (Constant(0),)
        case Constant():
            return (node,)
        case Now() | Began():
            return (Constant(0),)
        case Unary(op="-", operand=operand):
            return like(operand)
        case Binary(op=op, left=left, right=right) if op in _ARITHMETIC:
            return _united(like(left), like(right))
        case Binary(op="/"):
            return (Constant(0.5),)
    return (Constant(value=True),)


BEGAN = "$start"
"""The register that holds the tick at which a run began; no attribute can have its name."""
CAME = "$came"
"""The register that holds the tick at which a run came to its state."""
TicksOf = Callable[[Lasting], int]
"""How many ticks a length of time is."""
Shows = Literal["all", "start", "nothing"]
_SHOWN: dict[Shows, int | None] = {"all": None, "start": 1, "nothing": 0}


@dataclass(frozen=True)
class Output:
    """The events that a part of a query puts out, before they are.

    An event of the stream ``type`` makes a run at ``source`` put out one, if ``checks`` are TRUE of both. ``values``
    are its attributes, and ``began`` the tick at which it begins; it ends with the event.
    """

    source: int
    type: str
    checks: tuple[Resolved, ...]
    values: Values
    began: Resolved


@dataclass
class _Compiler:
    syntax: QuerySyntax
    schemas: Schemas
    ticks: TicksOf
    has_intervals: bool
    longest: Expression | None
    letters: dict[Letter, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=lambda: ["start"])
    steps: list[Step] = field(default_factory=list)
    arcs: list[Arc] = field(default_factory=list)
    kills: list[Step] = field(default_factory=list)
    asked: dict[Expression, None] = field(default_factory=dict)
    writing: Substitution = field(init=False)

    def __post_init__(self) -> None:
        self.writing = Substitution(self.refuse)

    def compile(self, query: CelQuery, shows: Shows) -> RegisterAutomaton:
        found = self.output(query.select)
        end = self.add_state("end")
        shown = self.enter(found, end)
        self.inhibit()
        automaton = Automaton(
            size=len(self.names),
            errors=0,
            letters=tuple(self.letters),
            variables=("",),
            arcs=tuple(self.arcs),
            finals=(Final(end),),
            names=tuple(self.names),
            components=tuple(Component("", letter.type) for letter in self.letters),
        )
        result = RegisterAutomaton(
            replace(self.syntax, predicates=tuple(self.asked)),
            automaton,
            letters=list(self.letters),
            states=[State(number) for number in range(len(self.names))],
            ignores=[EVERYTHING] * len(self.names),
            steps=self.steps,
            final_checks=[() for _ in self.names],
            shown=tuple(shown[name] for name in (BEGAN, *found.values)[: _SHOWN[shows]]),
        )
        result.complete()
        return result

    # --- streams --------------------------------------------------------------------------------------------

    def output(self, node: Algebra) -> Output:
        """What a node puts out; its states and steps are made on the way."""
        match node:
            case Stream(name=name):
                values = {one: Own(Attribute(None, None, one)) for one in schema_of(node, self.schemas)}
                return Output(START, name, (), values, Began())
            case Filter(condition=condition, source=source):
                found = self.output(source)
                return replace(found, checks=(*found.checks, *self.filters(condition, found)))
            case Select(items=items, source=source):
                found = self.output(source)
                scope = {FIRST: found.values}
                values = {one.name: self.value(one.value, scope) for one in items}  # type: ignore[union-attr]
                return replace(found, values=values)
            case Next():
                return self.next(node)
            case Fold():
                return self.fold(node)

    def filters(self, condition: Expression, found: Output) -> tuple[Resolved, ...]:
        """What FILTER asks of an output, which may be how long it lasts."""
        lasts = Binary("-", Now(), found.began)  # type: ignore[arg-type]
        return self.tests(conjuncts(condition), {FIRST: {**found.values, DURATION: lasts}})

    def next(self, node: Next) -> Output:
        left, right = self.output(node.left), self.output(node.right)
        state = self.add_state(right.type)
        asked, bounds = with_bounds(conjuncts(node.condition))
        moved = {name: self.value(bound, {FIRST: left.values}) for name, bound in bounds.items()}
        kept = self.registers(state, {name: like(value) for name, value in left.values.items()})
        for name, value in moved.items():
            kept[name] = Register("computed", f"q{state}.{name}", like=like(value), says=bounds[name])
        self.enter(left, state, kept, {**left.values, **moved})
        here = {name: Held(kept[name]) for name in left.values}
        held = {**here, **{name: Held(kept[name]) for name in moved}}
        checks = self.seen(kept, right)
        checks += self.tests(asked, {FIRST: held, SECOND: right.values})
        self.kill(state, right.type, checks)
        renamed = renaming(node, tuple(left.values), tuple(right.values))
        values = {renamed[name]: value for name, value in here.items()} | dict(right.values)
        return Output(state, right.type, checks, values, Held(kept[BEGAN]))

    def fold(self, node: Fold) -> Output:
        left, right = self.output(node.left), self.output(node.right)
        state = self.add_state(right.type)
        changing = [name for name in left.values if name in right.values or name in {a.name for a in node.aggregates}]
        first = {name: left.values[name] for name in left.values}
        last = {_last(name): left.values[name] for name in changing}
        kinds = {name: like(value) for name, value in {**first, **last}.items()}
        while True:  # until no iteration makes fractions of whole numbers any more
            kept = self.registers(state, kinds)
            now = {name: Held(kept[_last(name) if name in changing else name]) for name in first}
            scope = {FIRST: {name: Held(kept[name]) for name in first}, SECOND: right.values, LAST: now}
            new = {one.name: self.value(one.value, scope) for one in node.aggregates}
            moved = {_last(name): {**right.values, **new}[name] for name in changing}
            wider = {**kinds, **{name: _united(kinds[name], like(value)) for name, value in moved.items()}}
            if wider == kinds:
                break
            kinds = wider
        self.enter(left, state, kept, {**first, **last})
        looked_at = self.seen(kept, right) + self.tests(conjuncts(node.filter), scope)
        checks = looked_at + self.tests(conjuncts(node.rebind), scope)
        self.kill(state, right.type, looked_at)
        renamed = renaming(node, tuple(left.values), tuple(right.values))
        values = {renamed[name]: value for name, value in scope[FIRST].items()} | dict(right.values) | new
        found = Output(state, right.type, checks, values, Held(kept[BEGAN]))
        self.enter(found, state, kept, {**scope[FIRST], **moved})
        return found

    def seen(self, kept: Mapping[str, Register], right: Output) -> tuple[Resolved, ...]:
        """What is asked of an event before conditions: what its stream asks, and that it began after the run came."""
        after = Binary("<", Held(kept[CAME]), Began())  # type: ignore[arg-type]
        return ((after,) if self.has_intervals else ()) + right.checks

    # --- conditions -----------------------------------------------------------------------------------------

    def value(self, expression: Expression, scope: Mapping[str, Values]) -> Resolved:
        self.count(expression, scope)
        self.asked[IsNull(of_one_event(expression, scope), negated=False)] = None
        return substituted(expression, scope, self.ticks)

    def tests(self, conditions: Sequence[Expression], scope: Mapping[str, Values]) -> tuple[Resolved, ...]:
        for one in conditions:
            self.count(one, scope)
        self.asked |= {of_one_event(one, scope): None for one in conditions}
        return tuple(substituted(one, scope, self.ticks) for one in conditions)

    def count(self, expression: Expression, scope: Mapping[str, Values]) -> None:
        """Count the parts that an expression has with what attributes are in their places."""
        self.writing.count_written(
            expression, lambda node: scope[str(node.variable)][node.name] if isinstance(node, Attribute) else None
        )

    def letter(self, type_: str, checks: tuple[Resolved, ...]) -> tuple[int, tuple[Resolved, ...]]:
        """The letter of events that may pass some checks, and those of them that it does not decide."""
        checks = tuple(dict.fromkeys(checks))
        own = tuple(check.value if isinstance(check, Own) else check for check in checks if _is_of_event(check))
        letter, rest = Letter(type_, own), tuple(check for check in checks if not _is_of_event(check))
        if letter not in self.letters and len(self.letters) >= MAX_LETTERS // 2:
            letter, rest = Letter(type_), checks
        if letter not in self.letters and len(self.letters) >= MAX_LETTERS:
            self.refuse("streams and conditions on one event", MAX_LETTERS + 1, MAX_LETTERS, "ACEP-Q903")
        return self.letters.setdefault(letter, len(self.letters)), rest

    # --- states and steps -----------------------------------------------------------------------------------

    def add_state(self, waits_for: str) -> int:
        if len(self.names) >= MAX_STATES:
            self.refuse("operators", MAX_STATES + 1, MAX_STATES, "ACEP-Q905")
        self.names.append(waits_for if waits_for == "end" else f"q{len(self.names)}: waits for {waits_for}")
        return len(self.names) - 1

    def registers(self, state: int, kinds: Mapping[str, tuple[Expression, ...]]) -> dict[str, Register]:
        """The registers of a state: of its attributes, of when its runs began, and when they came there."""
        self.writing.count(parts_of(one for kind in kinds.values() for one in kind))
        own = {name: Register("computed", f"q{state}.{name}", like=kind) for name, kind in kinds.items()}
        return own | {name: Register("computed", f"q{state}.{name}", holds="int") for name in (BEGAN, CAME)}

    def enter(
        self,
        found: Output,
        state: int,
        kept: dict[str, Register] | None = None,
        values: Values | None = None,
    ) -> dict[str, Register]:
        """The step with which what is put out comes to a state; returns the registers there, by their attributes."""
        values = found.values if values is None else values
        if kept is None:
            kept = self.registers(state, {name: like(value) for name, value in values.items()})
        moves = {kept[name]: value for name, value in {**values, BEGAN: found.began, CAME: Now()}.items()}
        letter, checks = self.letter(found.type, (*found.checks, *self.in_time(found)))
        if len(self.arcs) >= MAX_ARCS:
            self.refuse("operators", MAX_ARCS + 1, MAX_ARCS, "ACEP-Q904")
        self.writing.count(parts_of((*checks, *moves.values())))
        arc = Arc(found.source, state, letter, 0, again=found.source == state)
        number = len(self.arcs)
        self.arcs.append(arc)
        binding = Binding("", NOTHING)
        self.steps.append(
            Step(number, found.source, state, letter, binding, checks, frozenset(), inhibits=False, moves=moves)
        )
        return kept

    def in_time(self, found: Output) -> tuple[Resolved, ...]:
        """That the first event is not longer than the window by itself: the window is looked at with later events."""
        if found.source != START or not self.has_intervals or self.longest is None:
            return ()
        longest = substituted(self.longest, {}, self.ticks)
        return (Binary("<=", Binary("-", Now(), found.began), longest),)  # type: ignore[arg-type]

    def kill(self, state: int, type_: str, checks: tuple[Resolved, ...]) -> None:
        """Let runs leave a state on an event that passes some checks, whether they go on or not."""
        letter, rest = self.letter(type_, checks)
        self.kills.append(Step(None, state, None, letter, Binding("", NOTHING), rest, frozenset(), inhibits=True))

    def inhibit(self) -> None:
        """Let steps take runs away that ask what a kill step asks, and keep the kill steps that none stands in for."""
        for kill in self.kills:
            mine = [(n, step) for n, step in enumerate(self.steps) if step.source == kill.source]
            alike = [n for n, step in mine if _asks(step) == _asks(kill)]
            if alike:
                self.steps[alike[0]] = replace(self.steps[alike[0]], inhibits=True)
            else:
                self.steps.append(kill)

    def refuse(self, what: str, given: int, limit: int, code: str) -> NoReturn:
        hint = "publish a part of it, and read the stream of that name"
        raise self.syntax.too_large(code, f"the query has more than {limit:,} {what}", given, limit, hint=hint)


def compile_algebra(
    query: CelQuery,
    schemas: Schemas,
    syntax: QuerySyntax,
    ticks: TicksOf,
    *,
    has_intervals: bool = False,
    longest: Expression | None = None,
    shows: Shows = "all",
) -> RegisterAutomaton:
    """Compile a query in CEL that is left-associated.

    Parameters
    ----------
    query : CelQuery
        With resolved names; the right operands of NEXT and FOLD are streams, with FILTERs around them at most.
    schemas : mapping of str to tuple of str
        The attributes of the streams that it reads.
    syntax : QuerySyntax
        What the rest of the engine knows of the query: its window, and that it is SIMULTANEOUS.
    ticks : callable
        Gives the ticks of a length of time.
    has_intervals : bool, default False
        Whether events begin before they end: then one that began before a run came to its state is not for that run.
    longest : Expression, optional
        The window in ticks, a constant or of a parameter; None: there is none.
    shows : {"all", "start", "nothing"}, default "all"
        What of results runs keep to the end. Runs that differ in nothing else are merged.

    Returns
    -------
    RegisterAutomaton
        ``shown`` are the tick at which a result began, then its attributes. The predicates of its ``query`` are all
        conditions and values, as if they were about one event: their types can be checked.

    Raises
    ------
    LimitError
        Too many operators, or conditions.

    Complexity: O(operators x attributes).
    """
    return _Compiler(syntax, schemas, ticks, has_intervals, longest).compile(query, shows)


def attribute_of(register: Register) -> str:
    """The attribute that a register of a state holds.

    Examples
    --------
    >>> attribute_of(Register("computed", "q2.price"))
    'price'
    """
    return register.variable.partition(".")[2]


def _last(name: str) -> str:
    return f"{LAST}.{name}"


def _united(some: tuple[Expression, ...], others: tuple[Expression, ...]) -> tuple[Expression, ...]:
    return tuple(dict.fromkeys((*some, *others)))


def _is_of_event(check: Resolved) -> bool:
    return isinstance(check, Own | Constant)


def _asks(step: Step) -> tuple[int, frozenset[Resolved]]:
    return step.letter, frozenset(step.checks)
