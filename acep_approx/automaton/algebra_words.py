"""The automaton of a query in CEL in the words of the query: its states, and their filter, rebind, forward edges.

Source: Demers et al., CIDR 2007, section 3.1. A run that takes no edge of its state dies; ours are told when by *kill*
edges, and what the paper calls a filter edge is that none of the others inhibits: a run stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from acep_approx.automaton.algebra import BEGAN, CAME, attribute_of
from acep_approx.automaton.algebra_values import Ticks, leaves, operands, rewritten
from acep_approx.automaton.automaton import START
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import Held, Own, Register, Resolved
from acep_approx.automaton.states import Step
from acep_approx.automaton.transfers import Began, Now
from acep_approx.query.cel.printer import expression_text
from acep_approx.query.cel.syntax import DURATION, FIRST, LAST, SECOND
from acep_approx.query.shape import replaced, walk
from acep_approx.query.syntax import Attribute, Binary, Expression, Lasting

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
        waits_for = next((stream_of(registers, step) for step in registers.steps if step.source == number), None)
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
        asked.setdefault(stream_of(registers, step), {}).update(dict.fromkeys(_read(registers, step)))
    return {stream: tuple(names) for stream, names in asked.items()}


def edges(registers: RegisterAutomaton, number: int) -> Iterator[Edge]:
    """The edges out of a state, the filter edge first."""
    mine = [step for step in registers.steps if step.source == number]
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
    mine = [step for step in registers.steps if step.source == number]
    shared = [check for check in mine[0].checks if all(check in step.checks for step in mine)] if mine else []
    return tuple(words(check, SECOND) for check in shared if _is_threshold(check, computed=computed))


def computes(registers: RegisterAutomaton, number: int) -> bool:
    """Whether conditions compute for each run at a state: the engine holds no bounds where that may overflow."""
    checks = [check for step in registers.steps if step.source == number for check in step.checks]
    return any(_computes(check) for check in checks)


def conditions(registers: RegisterAutomaton, step: Step) -> tuple[str, ...]:
    """What a step asks of run and event, as the query would write it; the stream is not among it."""
    side = side_of(step)
    of_event = [Own(one) for one in registers.letters[step.letter].conditions]
    return tuple(dict.fromkeys(words(check, side) for check in (*of_event, *step.checks)))


def words(node: Resolved, side: str | None) -> str:
    """What a run and an event are asked, or give; attributes of the event are those of ``side``."""
    return expression_text(_expression(node, side))


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
            yield register_words(register), words(value, side)


def _read(registers: RegisterAutomaton, step: Step) -> Iterator[str]:
    """The attributes of the event that a step reads: in conditions, and for what it sets that is asked for later."""
    kept = [] if step.target is None else [step.moves[one] for one in registers.live[step.target] if one in step.moves]
    found = [*map(Own, registers.letters[step.letter].conditions), *step.checks, *kept]
    for own in (leaf for node in found for leaf in leaves(node) if isinstance(leaf, Own)):
        yield from (leaf.name for leaf in walk(own.value) if isinstance(leaf, Attribute))


def _expression(node: Resolved, side: str | None) -> Expression:
    """A resolved expression as one of CEL."""
    expression: Expression = rewritten(node, lambda part: _said(part, side))
    return expression


def _said(node: Resolved, side: str | None) -> Expression | None:
    """What a part of a resolved expression is called; None where its parts have names of their own."""
    match node:
        case Binary(op="-", left=Now(), right=began) if began == Began() or _is_time(began):
            return Attribute(None, None, DURATION)
        case Ticks(written=Lasting() as written):
            return written
        case Own(value=value):
            return replaced(value, lambda leaf: _of(side, leaf.name) if isinstance(leaf, Attribute) else None)
        case Held(register=register):
            return register.says or _held(attribute_of(register))
        case Now() | Began():
            return _of(side, "t1" if isinstance(node, Now) else "t0")
    return None


def _held(name: str) -> Attribute:
    """What a run holds: of its first input, or of the last iteration of FOLD."""
    is_last = name.startswith(f"{LAST}.")
    return _of(LAST, name.removeprefix(f"{LAST}.")) if is_last else _of(FIRST, name)


def _of(side: str | None, name: str) -> Attribute:
    """An attribute of the first input, the second, or the last iteration; a time of the run is just ``$1.t1``."""
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


def _is_time(node: Resolved) -> bool:
    return isinstance(node, Held) and attribute_of(node.register) in TIMES
