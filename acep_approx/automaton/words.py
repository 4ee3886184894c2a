"""Letters, registers and conditions in words, for plans and drawings."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from acep_approx.automaton.algebra_words import register_words, sets_of, side_of, words
from acep_approx.automaton.automaton import START, Arc, Automaton, Letter
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import Binding, Call, Held, Own, Register, Resolved
from acep_approx.automaton.states import EVERYTHING, NO_EVENT, State, Step
from acep_approx.automaton.transfers import PLACE
from acep_approx.query.printer import to_text
from acep_approx.query.syntax import Aggregate, Attribute, Binary, Expression, FunctionCall, Strategy

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
    return KINDS[register.kind].format(of=of, variable=register.variable)


def state_names(registers: RegisterAutomaton) -> list[str]:
    """Per state the variable bound last; where several states share it, also what else tells them apart.

    Complexity: O(states x variables).
    """
    alike: dict[int, list[frozenset[str]]] = {}
    for state in registers.states:
        alike.setdefault(state.position, []).append(state.bound)
    differing = {
        position: frozenset().union(*bound) - bound[0].intersection(*bound) for position, bound in alike.items()
    }
    names = []
    for state in registers.states:
        some = differing[state.position]
        known, unknown = ", ".join(sorted(some & state.bound)), ", ".join(sorted(some - state.bound))
        name = registers.automaton.names[state.position]
        names.append(name + (f" with {known}" if known else "") + (f" without {unknown}" if unknown else ""))
    return names


def strategy_of(registers: RegisterAutomaton) -> Strategy | None:
    """The strategy that runs follow at every state; None where there is no such."""
    states = range(1, len(registers.states))
    if all(registers.ignores[state] == NO_EVENT for state in states):
        return "strict_contiguity" if registers.counted == "stream" else "partition_contiguity"
    kills = any(step.target is None for step in registers.steps)
    if kills or any(registers.ignores[state] != EVERYTHING for state in states):
        return None
    return "skip_till_any_match" if all(map(registers.is_passive, states)) else "skip_till_next_match"


def ignore_text(registers: RegisterAutomaton, number: int) -> str:
    """Which events the runs at a state pass over."""
    ignore = registers.ignores[number]
    named = [letter_text(registers.letters[j]) for j in sorted(ignore.letters or ())]
    what = "every event" if ignore.letters is None else " or ".join(named) if named else "no event"
    nothing = Binding(None, registers.states[number].bound)
    return " and ".join([what, *_texts(ignore.checks, nothing, registers)])


def step_tests(registers: RegisterAutomaton, step: Step) -> tuple[str, ...]:
    """The conditions that a step tests, as the query would write them."""
    if registers.query.is_algebra:
        return tuple(dict.fromkeys(words(check, side_of(step)) for check in step.checks))
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
    """A resolved condition as one of the query language."""
    if isinstance(node, Own):
        return _qualified(node.value, str(binding.variable), kleene)
    if isinstance(node, Held):
        return _held(node, binding, kleene)
    if isinstance(node, Call):
        return FunctionCall(node.name, tuple(_expression(one, binding, kleene) for one in node.arguments))
    rebuilt: Any = node
    if isinstance(node, Binary) and node.op == "/" and isinstance(rebuilt.left, Held):
        total = rebuilt.left
        if rebuilt.right == replace(total, register=replace(total.register, kind="counted")):
            return _held(replace(total, register=replace(total.register, kind="avg")), binding, kleene)
    for part in fields(node):
        value = getattr(node, part.name)
        if is_dataclass(value) and not isinstance(value, type):
            rebuilt = replace(rebuilt, **{part.name: _expression(value, binding, kleene)})
    result: Expression = rebuilt
    return result


def _held(value: Held, binding: Binding, kleene: frozenset[str]) -> Expression:
    register = value.register
    variable, of = register.variable, register.of
    is_own = variable == binding.variable
    if register.kind == "computed":
        return Attribute(None, None, variable)
    if of is not None and register.kind in ("value", "least", "greatest"):
        return _qualified(of, variable, kleene)
    name = of.name if isinstance(of, Attribute) else None
    if name is not None and register.kind == "first":
        return Attribute(variable, "first", name)
    if name is not None and register.kind == "last":
        return Attribute(variable, "previous" if is_own else "last", name)
    function = "count" if register.kind == "counted" else register.kind
    return Aggregate(function, variable, name, prior=is_own and not value.updated)


def _qualified(node: Expression, variable: str, kleene: frozenset[str]) -> Expression:
    """``node`` with its attributes taken of ``variable``."""
    if isinstance(node, Attribute):
        return replace(node, variable=variable, index="current" if variable in kleene else None)
    rebuilt: Any = node
    for part in fields(node):
        value = getattr(node, part.name)
        if is_dataclass(value) and not isinstance(value, type):
            rebuilt = replace(rebuilt, **{part.name: _qualified(value, variable, kleene)})  # type: ignore[arg-type]
    result: Expression = rebuilt
    return result
