"""The automaton of a query in CEL in the words of the query: its states, and their filter, rebind, forward edges.

Source: Demers et al., CIDR 2007, section 3.1. A run that takes no edge of its state dies; ours are told when by *kill*
edges, and what the paper calls a filter edge is that none of the others inhibits: a run stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from acep_approx.automaton.algebra import BEGAN, CAME, attribute_of
from acep_approx.automaton.algebra_values import Ticks, rewritten
from acep_approx.automaton.automaton import START
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import Held, Own, Register, Resolved
from acep_approx.automaton.states import Step
from acep_approx.automaton.transfers import Began, Now
from acep_approx.query.cel.printer import expression_text
from acep_approx.query.cel.syntax import DURATION, FIRST, LAST, SECOND
from acep_approx.query.shape import replaced
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
            schemas.setdefault(step.target, {}).update(dict.fromkeys(map(attribute_of, step.moves)))
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
            yield Edge(kind, step.target, conditions(registers, step), sets=tuple(_sets(step)))
    for step in mine:
        if step.target is None:
            asked = conditions(registers, step)
            goes_on = [conditions(registers, other) for other in mine if other.target is not None]
            beside = [tuple(one for one in some if one not in asked) for some in goes_on if set(asked) <= set(some)]
            yield Edge("kill", None, asked, unless=beside[0] if beside else ())


def conditions(registers: RegisterAutomaton, step: Step) -> tuple[str, ...]:
    """What a step asks of run and event, as the query would write it; the stream is not among it."""
    side = None if step.source == START else SECOND
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
    return TIMES.get(name, name)


def _sets(step: Step) -> Iterator[tuple[str, str]]:
    side = None if step.source == START else SECOND
    for register, value in step.moves.items():
        if attribute_of(register) not in TIMES:
            yield attribute_of(register), words(value, side)


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
            name = attribute_of(register)
            is_last = name.startswith(f"{LAST}.")
            return _of(LAST, name.removeprefix(f"{LAST}.")) if is_last else _of(FIRST, name)
        case Now() | Began():
            return _of(side, "t1" if isinstance(node, Now) else "t0")
    return None


def _of(side: str | None, name: str) -> Attribute:
    """An attribute of the first input, the second, or the last iteration; a time of the run is just ``$1.t1``."""
    return Attribute(side, None, {BEGAN: "t0", CAME: "t1"}.get(name, name))


def _is_time(node: Resolved) -> bool:
    return isinstance(node, Held) and attribute_of(node.register) in TIMES
