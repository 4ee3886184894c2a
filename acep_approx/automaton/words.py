"""Letters, registers and conditions in words, for plans and drawings; of queries in CEL in the words of the query.

Source of the edges of CEL: Demers et al., CIDR 2007, section 3.1. A run that takes no edge of its state dies; ours are
told when by *kill* edges, and what the paper calls a filter edge is that none of the others inhibits: a run stays where
it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from acep_approx.automaton.algebra import BEGAN, CAME, Ticks, attribute_of, leaves
from acep_approx.automaton.automaton import START, Arc, Automaton, Letter
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import Binding, Call, Held, Own, Register, Resolved
from acep_approx.automaton.states import EVERYTHING, NO_EVENT, PLACE, Began, Neighbour, Now, State, Step
from acep_approx.query.cel.printer import expression_text
from acep_approx.query.cel.syntax import DURATION, FIRST, LAST, SECOND
from acep_approx.query.functions import FUNCTIONS
from acep_approx.query.printer import to_text
from acep_approx.query.shape import atoms, operands, replaced, walk
from acep_approx.query.syntax import (
    WORD_FOR,
    Aggregate,
    Apply,
    Attribute,
    Binary,
    Expression,
    FunctionCall,
    Index,
    Lasting,
    Strategy,
)

EdgeKind = Literal["filter", "rebind", "forward", "kill"]
TIMES = {BEGAN: "start", CAME: "time of the last event"}
"""Registers that are no attributes, as people say it."""


@dataclass(frozen=True)
class Edge:
    """What an event can do to a run at a state.

    ``conditions`` must all be TRUE of run and event; where ``unless`` has some, not all of these. ``sets`` are the
    attributes at the target, with what they become. A ``kill`` has no target: the run is gone.
    """

    kind: EdgeKind
    target: int | None
    conditions: tuple[str, ...]
    unless: tuple[str, ...] = ()
    sets: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Place:
    """A state: the operator whose first input waits there (None at the start and the end), and for which stream.

    ``schema`` are the attributes that its runs have, ``kept`` those that something later asks for.
    """

    name: str
    operator: Literal["NEXT", "FOLD"] | None
    waits_for: str | None
    schema: tuple[str, ...]
    kept: tuple[str, ...]


def places(registers: RegisterAutomaton) -> list[Place]:
    """The states of the automaton of a query in CEL."""
    folds = {step.source for step in registers.steps if step.source == step.target}
    schemas: dict[int, dict[str, None]] = {}
    for step in registers.steps:
        if step.target is not None:
            attributes = [register for register in step.moves if register.says is None]
            schemas.setdefault(step.target, {}).update(dict.fromkeys(map(attribute_of, attributes)))
    last = len(registers.states) - 1
    found = []
    for number, live in enumerate(registers.live):
        waits_for = next((stream_of(registers, step) for step in registers.leaving(number)), None)
        inner = START < number < last
        found.append(
            Place(
                name="start" if number == START else "end" if number == last else f"q{number}",
                operator=("FOLD" if number in folds else "NEXT") if inner else None,
                waits_for=waits_for if inner else None,
                schema=tuple(name for name in schemas.get(number, {}) if name not in TIMES),
                kept=tuple(register_words(register) for register in live),
            )
        )
    return found


def stream_of(registers: RegisterAutomaton, step: Step) -> str:
    """The stream whose events a step takes."""
    return str(registers.letters[step.letter].type)


def streams_read(registers: RegisterAutomaton) -> dict[str, tuple[str, ...]]:
    """The streams that events are taken of, with the attributes that are asked of each."""
    asked: dict[str, dict[str, None]] = {}
    for step in registers.steps:
        kept = () if step.target is None else registers.live[step.target]
        moves = [step.moves[one] for one in kept if one in step.moves]
        mine = asked.setdefault(stream_of(registers, step), {})
        for node in (*map(Own, registers.letters[step.letter].conditions), *step.checks, *moves):
            for own in (leaf.value for leaf in leaves(node) if isinstance(leaf, Own)):
                mine.update({leaf.name: None for leaf in walk(own) if isinstance(leaf, Attribute)})
    return {stream: tuple(names) for stream, names in asked.items()}


def edges(registers: RegisterAutomaton, number: int) -> Iterator[Edge]:
    """The edges out of a state, the filter edge first."""
    mine = registers.leaving(number)
    kills = [conditions(registers, step) for step in mine if step.inhibits]
    if number != START and mine:
        for asked in dict.fromkeys(kills):
            yield Edge("filter", number, (), unless=asked)
    for step in mine:
        if step.target is not None:
            kind: EdgeKind = "rebind" if step.target == number else "forward"
            yield Edge(kind, step.target, conditions(registers, step), sets=tuple(sets_of(step)))
    for step in mine:
        if step.target is None:
            asked = conditions(registers, step)
            goes_on = [conditions(registers, other) for other in mine if other.target is not None]
            beside = [tuple(one for one in some if one not in asked) for some in goes_on if set(asked) <= set(some)]
            yield Edge("kill", None, asked, unless=beside[0] if beside else ())


def kept_sets(registers: RegisterAutomaton, edge: Edge) -> list[tuple[str, str]]:
    """What an edge sets that something later asks for."""
    if edge.target is None:
        return []
    kept = {register_words(register) for register in registers.live[edge.target]}
    return [(name, value) for name, value in edge.sets if name in kept]


def thresholds(registers: RegisterAutomaton, number: int, *, computed: bool = False) -> tuple[str, ...]:
    """The comparisons by which runs at a state wait for an event beyond a threshold of theirs.

    All edges share them, and they hold an attribute of the run against a value of the event: ``$2.price > $1.limit``.
    With ``computed`` those that compute with attributes of the run first: ``$2.price > 1.05 * $1.price``.
    """
    mine = registers.leaving(number)
    shared = [check for check in mine[0].checks if all(check in step.checks for step in mine)] if mine else []
    return tuple(cel_text(check, SECOND) for check in shared if _is_threshold(check, computed=computed))


def computes(registers: RegisterAutomaton, number: int) -> bool:
    """Whether conditions compute for each run at a state: the engine holds no bounds where that may overflow."""
    return any(_computes(check) for step in registers.leaving(number) for check in step.checks)


def conditions(registers: RegisterAutomaton, step: Step) -> tuple[str, ...]:
    """What a step asks of run and event, as the query would write it; the stream is not among it."""
    side = side_of(step)
    of_event = [Own(one) for one in registers.letters[step.letter].conditions]
    return tuple(dict.fromkeys(cel_text(check, side) for check in (*of_event, *step.checks)))


def cel_text(node: Resolved, side: str | None) -> str:
    """What a run and an event are asked, or give; attributes of the event are those of ``side``."""
    return expression_text(replaced(node, lambda part: _said(part, side)))


def register_words(register: Register) -> str:
    """What a register of a state holds: ``price``, ``$.price`` in the last iteration of FOLD.

    Examples
    --------
    >>> register_words(Register("computed", "q2.$.price")), register_words(Register("computed", "q2.$start"))
    ('$.price', 'start')
    """
    name = attribute_of(register)
    return TIMES.get(name, name) if register.says is None else expression_text(register.says)


def side_of(step: Step) -> str | None:
    """The decorator of the attributes of the event that a step takes: none where it is the first."""
    return None if step.source == START else SECOND


def sets_of(step: Step) -> Iterator[tuple[str, str]]:
    """The attributes at the target of a step, with what they become."""
    side = side_of(step)
    for register, value in step.moves.items():
        if attribute_of(register) not in TIMES:
            yield register_words(register), cel_text(value, side)


def _said(node: Resolved, side: str | None) -> Expression | None:  # noqa: PLR0911  one for each kind of node
    """What a part of a resolved expression is called; None where its parts have names of their own."""
    match node:
        case Binary(op="-", left=Now(), right=Began()):
            return Attribute(None, None, DURATION)
        case Binary(op="-", left=Now(), right=Held(register=register)) if attribute_of(register) in TIMES:
            return Attribute(None, None, DURATION)
        case Ticks(written=Lasting() as written):
            return written
        case Own(value=value):
            return replaced(value, lambda leaf: _of(side, leaf.name) if isinstance(leaf, Attribute) else None)
        case Held(register=register):
            name = attribute_of(register)
            side = LAST if name.startswith(f"{LAST}.") else FIRST
            return register.says or _of(side, name.removeprefix(f"{LAST}."))
        case Now() | Began():
            return _of(side, "t1" if isinstance(node, Now) else "t0")
    return None


def _of(side: str | None, name: str) -> Attribute:
    return Attribute(side, None, {BEGAN: "t0", CAME: "t1"}.get(name, name))


def _is_threshold(check: Resolved, *, computed: bool) -> bool:
    if not isinstance(check, Binary) or check.op not in ("<", "<=", ">", ">="):
        return False
    for one, other in ((check.left, check.right), (check.right, check.left)):
        held = {type(leaf) for leaf in leaves(other)}
        if isinstance(one, Own) and held == {Held}:
            return isinstance(other, Held) != computed
    return False


def _computes(node: Resolved) -> bool:
    if isinstance(node, Own | Held):
        return False
    return (isinstance(node, Binary) and node.op in ("+", "-", "*")) or any(map(_computes, operands(node)))


KINDS = {
    "value": "{of} of {variable}",
    "first": "first {of} of {variable}[]",
    "last": "last {of} of {variable}[]",
    "count": "number of {variable}[]",
    "counted": "number of {variable}[] that have {of}",
    "sum": "sum of {of} of {variable}[]",
    "min": "min {of} of {variable}[]",
    "max": "max {of} of {variable}[]",
    "least": "least {of} of {variable}[]",
    "greatest": "greatest {of} of {variable}[]",
    "computed": "{variable}",
}


def letter_text(letter: Letter) -> str:
    """A letter for people: ``DEP and delay_min > 15``."""
    parts = [letter.type or "ANY", *(to_text(condition) for condition in letter.conditions)]
    parts += [
        "first of its partition" if unseen == Letter(None) else f"no {letter_text(unseen)} since the start"
        for unseen in letter.unseen
    ]
    return " and ".join(parts)


def arc_text(automaton: Automaton, arc: Arc, tests: tuple[str, ...] = ()) -> str:
    """What an arc asks of an event, and of the run where there are ``tests``; what is missing on the way."""
    text = " and ".join([letter_text(automaton.letters[arc.letter]), *tests])
    if arc.guard:
        text += f" if no {letters_text(automaton, arc.guard)} {'before' if arc.source == START else 'since'}"
    if arc.cost:
        text += f" [{' '.join(arc.skipped)} missing: +{arc.cost}]"
    return text


def letters_text(automaton: Automaton, letters: frozenset[int]) -> str:
    """Some letters, one after the other."""
    return ", ".join(letter_text(automaton.letters[j]) for j in sorted(letters))


def register_text(register: Register) -> str:
    """What a register holds.

    Examples
    --------
    >>> register_text(Register("last", "a", Attribute(None, None, "price")))
    'last price of a[]'
    """
    if register == PLACE:
        return "place of the last event"
    if register.kind == "computed" and "." in register.variable:
        return register_words(register)
    of = "" if register.of is None else to_text(register.of)
    if register.of is not None and not isinstance(register.of, Attribute):
        of = f"({of})"
    text = KINDS[register.kind].format(of=of, variable=register.variable)
    return text.replace("[]", f"[..{register.upto}]") if register.upto else text


def state_names(registers: RegisterAutomaton) -> list[str]:
    """Per state the variable bound last; where several states share it, also what else tells them apart.

    Complexity: O(states x variables).
    """
    alike: dict[int, list[frozenset[str]]] = {}
    others: dict[int, set[object]] = {}
    for state in registers.states:
        alike.setdefault(state.position, []).append(state.bound)
        others.setdefault(state.position, set()).add((state.gap, state.after_in, state.near))
    differing = {
        position: frozenset().union(*bound) - bound[0].intersection(*bound) for position, bound in alike.items()
    }
    names = []
    for state in registers.states:
        some = differing[state.position]
        known, unknown = ", ".join(sorted(some & state.bound)), ", ".join(sorted(some - state.bound))
        name = registers.automaton.names[state.position]
        if len(others[state.position]) > 1:
            name += f" before {WORD_FOR[registers.strategy_of(state.gap)]}"
        if state.near:
            name += f" without {' or '.join(letter_text(registers.letters[j]) for j in sorted(state.near))} next"
        for tree in sorted(state.after_in, key=repr):
            rounds = ", ".join(f"{atom.variable}[]" for atom in atoms(tree))
            name += f" without another {rounds}" if tree.prefers == "GREEDY" else f" with another {rounds}"
        names.append(name + (f" with {known}" if known else "") + (f" without {unknown}" if unknown else ""))
    return names


def strategy_of(registers: RegisterAutomaton) -> Strategy | None:
    """The strategy that runs follow at every state; None where there is no such."""
    states = range(1, len(registers.states))
    if registers.has_words:
        return None
    if all(registers.ignores[state] == NO_EVENT for state in states):
        return "strict_contiguity" if registers.counted == "stream" else "partition_contiguity"
    is_by_hand = bool(registers.transfers)
    kills = any(step.inhibits and (step.target is None or is_by_hand) for step in registers.steps)
    if kills or any(registers.ignores[state] != EVERYTHING for state in states):
        return None
    return "skip_till_any_match" if all(map(registers.is_passive, states)) else "skip_till_next_match"


def ignore_text(registers: RegisterAutomaton, number: int) -> str:
    """Which events the runs at a state pass over."""
    ignore = registers.ignores[number]
    named = [letter_text(registers.letters[j]) for j in sorted(ignore.letters or ())]
    what = "every event" if ignore.letters is None else " or ".join(named) if named else "no event"
    if registers.transfers and any(step.inhibits for step in registers.leaving(number)):
        what = "every event that no arc takes"
    nothing = Binding(None, registers.states[number].bound)
    return " and ".join([what, *_texts(ignore.checks, nothing, registers)])


def step_tests(registers: RegisterAutomaton, step: Step) -> tuple[str, ...]:
    """The conditions that a step tests, as the query would write them."""
    if registers.query.is_algebra:
        return tuple(dict.fromkeys(cel_text(check, side_of(step)) for check in step.checks))
    return _texts(step.checks, step.binding, registers)


def step_moves(registers: RegisterAutomaton, step: Step) -> tuple[str, ...]:
    """What becomes of registers that have names."""
    if registers.query.is_algebra:
        return tuple(f"{name} = {value}" for name, value in sets_of(step))
    if not registers.transfers or step.arc is None:
        return ()
    return tuple(f"{name} = {to_text(value)}" for name, value in registers.transfers[step.arc].items())


def end_tests(registers: RegisterAutomaton, number: int) -> tuple[str, ...]:
    """The conditions that are tested when a match ends at a state."""
    state: State = registers.states[number]
    return _texts(registers.final_checks[number], Binding(None, state.bound), registers)


def _texts(checks: tuple[Resolved, ...], binding: Binding, registers: RegisterAutomaton) -> tuple[str, ...]:
    kleene = registers.automaton.kleene
    return tuple(dict.fromkeys(to_text(_expression(check, binding, kleene)) for check in checks))


def _expression(node: Resolved, binding: Binding, kleene: frozenset[str]) -> Expression:

    def said(part: Resolved) -> Expression | None:
        match part:
            case Own(value=value):
                return _qualified(value, str(binding.variable), kleene)
            case Held():
                return _held(part, binding, kleene)
            case Neighbour():
                return Attribute(None, None, "next")
            case Call(name=name, arguments=arguments):
                given = tuple(_expression(one, binding, kleene) for one in arguments)
                return Apply(name, given) if name in FUNCTIONS else FunctionCall(name, given)
            case Binary(op="/", left=Held()):
                total: Any = part.left
                if part.right == replace(total, register=replace(total.register, kind="counted")):
                    return _held(replace(total, register=replace(total.register, kind="avg")), binding, kleene)
        return None

    return replaced(node, said)


def _held(value: Held, binding: Binding, kleene: frozenset[str]) -> Expression:
    register = value.register
    variable, of = register.variable, register.of
    is_own = variable == binding.variable
    if register.kind == "computed":
        return Attribute(None, None, variable)
    if of is not None and register.kind in ("value", "least", "greatest"):
        return _qualified(of, variable, kleene)
    if of is not None and register.kind in ("first", "last") and not register.upto:
        return _at(of, variable, "first" if register.kind == "first" else "previous" if is_own else "last")
    name = of.name if isinstance(of, Attribute) else None
    function = "count" if register.kind == "counted" else register.kind
    prior = is_own and not (value.updated or register.upto)
    return Aggregate(function, variable, name, prior, upto=register.upto or None)


def _at(node: Expression, variable: str, index: Index) -> Expression:
    def owned(leaf: Expression) -> Expression | None:
        return replace(leaf, variable=variable, index=index) if isinstance(leaf, Attribute) else None

    return replaced(node, owned)


def _qualified(node: Expression, variable: str, kleene: frozenset[str]) -> Expression:
    def owned(leaf: Expression) -> Expression | None:
        if isinstance(leaf, Attribute):
            return replace(leaf, variable=variable, index="current" if variable in kleene else None)
        return leaf if isinstance(leaf, FunctionCall) else None

    return replaced(node, owned)
