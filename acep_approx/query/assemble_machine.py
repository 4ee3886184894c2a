"""From lark's parse tree to the tree of an automaton written by hand: one method for each rule of the grammar."""
# ruff: noqa: D102, ARG002  the methods are documented by grammar.lark, and all take (parts, span)

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, cast

from acep_approx.query.shape import replaced
from acep_approx.query.syntax import (
    ArcKind,
    Assignment,
    Attribute,
    Constant,
    Expression,
    FunctionCall,
    IgnoreRule,
    Machine,
    MachineArc,
    MachineRegister,
    RegisterValue,
    Span,
)

if TYPE_CHECKING:
    from lark import Token

    from acep_approx.errors import QueryError

HOLDS = {"INT": "int", "FLOAT": "float", "TEXT": "text", "BOOLEAN": "truth", "TIME": "time"}
"""What a register can be declared to hold, and its kind in the tree."""
_OF_CONSTANTS: dict[type, str] = {bool: "truth", int: "int", float: "float", str: "text"}


class MachineRules:
    """The part of ``Assembler`` that is about ``AUTOMATON (...)``."""

    def fault(self, code: str, message: str, span: Span, hint: str | None = None) -> QueryError:
        raise NotImplementedError

    def note_place(self, name: str, span: Span) -> None:
        raise NotImplementedError

    def machine(self, parts: list[Any], span: Span) -> Machine:
        registers: tuple[MachineRegister, ...] = parts.pop(0) if isinstance(parts[0], tuple) else ()
        arcs = [part for part in parts if isinstance(part, MachineArc)]
        if not arcs:
            hint = "write at least one arc: q0 -> q1 ON Tick t"
            raise self.fault("ACEP-Q074", "the automaton has no arc", span, hint)
        names = frozenset(register.name for register in registers)
        return Machine(
            registers,
            tuple(_with_registers(arc, names) for arc in arcs),
            tuple(_with_registers(part, names) for part in parts if isinstance(part, IgnoreRule)),
            tuple(state for part in parts if isinstance(part, list) for state in part),
            span,
        )

    def registers(self, parts: list[MachineRegister], span: Span) -> tuple[MachineRegister, ...]:
        return tuple(parts)

    def register(self, parts: list[Any], span: Span) -> MachineRegister:
        name, *rest = parts
        declared = HOLDS[rest.pop(0).upper()] if rest and getattr(rest[0], "type", "") == "HOLDS" else None
        initial = rest[0] if rest else Constant(None)
        own = _OF_CONSTANTS.get(type(initial.value))
        holds = declared or own
        if holds is None:
            hint = f"write {name} INT, FLOAT, TEXT, BOOLEAN or TIME, or begin with a value: {name} = 0"
            raise self.fault("ACEP-Q075", f"it is not said what the register {str(name)!r} holds", span, hint)
        if own not in (None, holds) and (own, holds) not in (("int", "float"), ("text", "time")):
            hint = f"begin with a value of that kind, or leave it out: {name} is NULL then"
            raise self.fault("ACEP-Q075", f"the register {str(name)!r} cannot hold {initial.value!r}", span, hint)
        if (own, holds) == ("int", "float"):
            initial = Constant(float(initial.value or 0), initial.span)
        return MachineRegister(str(name), holds, initial, span)

    def arc(self, parts: list[Any], span: Span) -> MachineArc:
        source, target, asked, *rest = parts
        variable, when, sets = _rest(rest)
        return MachineArc(str(source), str(target), "on", asked[0], variable, when, sets, span)

    def silent_arc(self, parts: list[Any], span: Span) -> MachineArc:
        source, target, kind, *rest = parts
        _, when, sets = _rest(rest)
        way: ArcKind = "timeout" if kind.type == "TIMEOUT" else "epsilon"
        return MachineArc(str(source), str(target), way, None, None, when, sets, span)

    def when(self, parts: list[Expression], span: Span) -> list[Expression]:
        return parts

    def moves(self, parts: list[Assignment], span: Span) -> tuple[Assignment, ...]:
        return tuple(parts)

    def assignment(self, parts: list[Any], span: Span) -> Assignment:
        return Assignment(str(parts[0]), parts[1], span)

    def ignore(self, parts: list[Any], span: Span) -> IgnoreRule:
        states = tuple(str(part) for part in parts if getattr(part, "type", "") == "WORD")
        type_, variable = next((part for part in parts if isinstance(part, tuple)), (None, None))
        when = next((part[0] for part in parts if isinstance(part, list)), None)
        return IgnoreRule(states, type_, variable, when, span)

    def asked(self, parts: list[Any], span: Span) -> tuple[str | None, str | None]:
        return parts[0][0], str(parts[1]) if len(parts) == 2 else None

    def finals(self, parts: list[Token], span: Span) -> list[str]:
        for part in parts:
            self.note_place(f"FINAL {part}", (cast("int", part.start_pos), cast("int", part.end_pos)))
        return [str(part) for part in parts]

    def call(self, parts: list[Any], span: Span) -> FunctionCall:
        return FunctionCall(str(parts[0]), tuple(parts[1:]), span=span)


def _rest(parts: list[Any]) -> tuple[str | None, Expression | None, tuple[Assignment, ...]]:
    """The variable, the condition and the moves of an arc, where they are there."""
    variable = next((str(part) for part in parts if getattr(part, "type", "") == "NAME"), None)
    when = next((part[0] for part in parts if isinstance(part, list)), None)
    return variable, when, next((part for part in parts if isinstance(part, tuple)), ())


def with_register_values(expression: Expression, registers: frozenset[str]) -> Expression:
    """``expression`` where bare names of registers are these.

    Parameters
    ----------
    expression : Expression
    registers : frozenset of str
        Their names.
    """

    def value(node: Expression) -> Expression | None:
        if isinstance(node, Attribute) and node.variable is None and node.name in registers:
            return RegisterValue(node.name, node.span)
        return None

    return replaced(expression, value)


def _with_registers(part: Any, names: frozenset[str]) -> Any:
    """An arc or a rule whose expressions know which names are registers."""
    when = part.when and with_register_values(part.when, names)
    if isinstance(part, IgnoreRule):
        return dataclasses.replace(part, when=when)
    sets = tuple(dataclasses.replace(one, value=with_register_values(one.value, names)) for one in part.sets)
    return dataclasses.replace(part, when=when, sets=sets)
