"""From lark's parse tree to the tree of `syntax`: one method for each rule of the grammar.

What the grammar lets pass because a better message can be given here is refused here: brackets with a wrong
index, negations of more than single events, units that do not exist.
"""
# ruff: noqa: D102, ARG002  the methods of Assembler are documented by grammar.lark, and all take (parts, span)

from __future__ import annotations

import dataclasses
import difflib
import math
import re
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

from acep_approx.query.functions import named
from acep_approx.query.shape import all_of, children, choice_of, replaced, sequence_of, with_expressions
from acep_approx.query.syntax import (
    CONTIGUITY,
    GAP_WORDS,
    HOLDS,
    KINDS,
    LISTS_ALL,
    MICROSECONDS,
    NO_SPAN,
    PREFERENCES,
    Absent,
    Aggregate,
    AllOf,
    Apply,
    ArcKind,
    Assignment,
    Atom,
    Attribute,
    Between,
    Binary,
    Constant,
    Definition,
    Either,
    Equivalence,
    Expression,
    FunctionCall,
    IgnoreRule,
    In,
    Index,
    IsNull,
    Lasting,
    Machine,
    MachineArc,
    MachineRegister,
    Parameter,
    Pattern,
    RegisterValue,
    Repeat,
    ReturnItem,
    Selection,
    Sequence,
    Skip,
    SkipTo,
    Spaced,
    Span,
    Strategy,
    Unary,
    Window,
    Written,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from lark import Token, Tree

    from acep_approx.errors import QueryError


def _rest(parts: list[Any]) -> tuple[str | None, Expression | None, tuple[Assignment, ...]]:
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


UNITS = {
    **dict.fromkeys(("us", "microsecond", "microseconds"), "us"),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("s", "sec", "second", "seconds"), "s"),
    **dict.fromkeys(("min", "minute", "minutes"), "min"),
    **dict.fromkeys(("h", "hour", "hours"), "h"),
    **dict.fromkeys(("d", "day", "days"), "d"),
    **dict.fromkeys(("week", "weeks"), "week"),
    **dict.fromkeys(("event", "events"), "events"),
    **dict.fromkeys(("tick", "ticks"), "ticks"),
}
"""Every spelling of a unit, and the one that stands in the tree."""

_SKIPS: dict[str, SkipTo] = {
    "TO_NEXT_ROW": "next row",
    "PAST_LAST_ROW": "past last row",
    "TO_FIRST": "first",
    "TO_LAST": "last",
}
_BOUNDS: dict[str, tuple[int, int | None]] = {"+": (1, None), "*": (0, None), "?": (0, 1)}
_LASTING = re.compile(r"(.*?)\s*([a-z]+)", re.IGNORECASE | re.DOTALL)
_SYNONYMS = {"==": "=", "<>": "!="}
_LARGEST_WHOLE = 2**63
_INDEXES: dict[str, Index] = {"1": "first", "i": "current", "i-1": "previous"}


@dataclasses.dataclass
class Clauses:
    """What follows the pattern, as written; None and empty where a clause is missing."""

    window: Window | None = None
    strategy: Strategy | None = None
    condition: Expression | None = None
    covered: list[Token] = dataclasses.field(default_factory=list)
    is_simultaneous: bool = False
    errors: int = 0
    weights: list[tuple[str, int]] = dataclasses.field(default_factory=list)
    at_start: bool = False
    selection: Selection = LISTS_ALL
    outputs: tuple[ReturnItem, ...] = ()
    definitions: tuple[Definition, ...] = ()
    publish: str | None = None
    places: list[tuple[str, Span]] = dataclasses.field(default_factory=list)


class Assembler(Written):
    """Builds the tree of one text.

    Parameters
    ----------
    text : str
        The whole query: all positions refer to it.
    calls : bool, default False
        Whether functions that are called may be the user's in the place of those of the language, as in automata
        written by hand.

    Attributes
    ----------
    clauses_read : Clauses
        Filled by the rules of the clauses.
    marked : list of tokens
        Variables written with ``[]`` in the pattern.
    lasting_parts : list of (Pattern, Window)
        The parts of the pattern that have a window of their own, and these.
    end : int
        Where the query ends in the text.
    given : tuple of str or None
        The names of the user's functions; None: it is not known which there are.
    """

    def __init__(self, text: str, *, calls: bool = False) -> None:
        self.text = text
        self.calls = calls
        self.given: tuple[str, ...] | None = None
        self.clauses_read = Clauses()
        self.marked: list[Token] = []
        self.lasting_parts: list[tuple[Pattern, Window]] = []
        self.end = len(text.rstrip())

    def assemble(self, tree: Tree[Token]) -> Any:
        """Build what a parse tree stands for, from the leaves up and without recursion."""
        made: dict[int, Any] = {}
        for node in tree.iter_subtrees():
            parts = [made[id(child)] if hasattr(child, "children") else child for child in node.children]
            span = NO_SPAN if node.meta.empty else (node.meta.start_pos, node.meta.end_pos)
            made[id(node)] = getattr(self, str(node.data))(parts, span)
        return made[id(tree)]

    def note_place(self, name: str, span: Span) -> None:
        """Note where something stands that is no node of its own."""
        self.clauses_read.places.append((name, span))

    # --- patterns -----------------------------------------------------------------------------------------

    def pattern_query(self, parts: list[Any], span: Span) -> Pattern:
        return cast("Pattern", parts[0])

    def choice(self, parts: list[Pattern], span: Span) -> Pattern:
        return choice_of(parts, span)

    def sequence(self, parts: list[Pattern], span: Span) -> Pattern:
        return sequence_of(parts, span)

    def all_of(self, parts: list[Pattern], span: Span) -> Pattern:
        return all_of(parts, span)

    def group(self, parts: list[Any], span: Span) -> Any:
        return dataclasses.replace(parts[0], span=span)

    def repeat(self, parts: list[Any], span: Span) -> Repeat:
        part, (least, most), *words = parts
        return Repeat(part, least, most, span, **self._rounds(words))

    @staticmethod
    def _rounds(words: list[Any]) -> dict[str, Any]:
        """What stands behind a quantifier, by the fields of the repetition; it is taken out of the words."""
        found: dict[str, Any] = {}
        while words and getattr(words[0], "type", "").startswith(("BETWEEN", "PREFERS")):
            word = words.pop(0).upper()
            found |= {"between": GAP_WORDS[word]} if word in GAP_WORDS else {"prefers": PREFERENCES[word]}
        if words and isinstance(words[0], Absent):
            found["until"] = words.pop(0)
        return found

    def spaced(self, parts: list[Any], span: Span) -> Spaced:
        word, part = parts
        return Spaced(GAP_WORDS[word.upper()], part, span)

    def absent(self, parts: list[Pattern], span: Span) -> Absent:
        given = part = parts[0]
        directly: Strategy | None = None
        if isinstance(given, Spaced) and given.strategy in CONTIGUITY.values():
            part, directly = given.part, given.strategy
        in_order = isinstance(part, Sequence) and directly is None
        options = children(part) if isinstance(part, Either) or in_order else (part,)
        for option in options:
            if not isinstance(option, Atom):
                raise self.fault(
                    "ACEP-Q012",
                    f"only single events and sequences of them can be negated, this is {_KINDS[type(option)]}",
                    option.span,
                    "write one ~(T x) for each event that must be missing, ~(A a | B b) for several types, "
                    "or ~(A a, B b) for one after the other",
                )
        found = tuple(option for option in options if isinstance(option, Atom))
        return Absent(found, span, in_order=in_order, directly=directly)

    until = absent

    def absent_since_start(self, parts: list[Pattern], span: Span) -> Absent:
        return dataclasses.replace(self.absent(parts, span), since_start=True)

    def absent_within(self, parts: list[Any], span: Span) -> Absent:
        return dataclasses.replace(self.absent(parts[:1], span), within=parts[1])

    def lasting_part(self, parts: list[Any], span: Span) -> Pattern:
        part: Pattern = dataclasses.replace(parts[0], span=span)
        self.lasting_parts.append((part, parts[1]))
        return part

    def component(self, parts: list[Any], span: Span) -> Pattern:
        asked, *rest = parts
        bounds = rest.pop(0) if isinstance(rest[0], tuple) else None
        rounds = self._rounds(rest)
        name, *index = rest
        if index:
            self.marked.append(name)
            if _inside(index[0]):
                hint = f"write {name}[]; conditions on single events belong in WHERE"
                raise self.fault("ACEP-Q009", f"{index[0]} has no meaning in a pattern", span_of(index[0]), hint)
        atom = Atom(asked[0], str(name), span)
        return atom if bounds is None else Repeat(atom, bounds[0], bounds[1], span, **rounds)

    def type(self, parts: list[Token], span: Span) -> list[str | None]:
        """The type in a list, so that it is not taken for bounds."""
        token = parts[0]
        if token.type == "ANY":
            return [None]
        return [unquote(token) if token.type == "STRING" else str(token)]

    def quantifier(self, parts: list[Token], span: Span) -> tuple[int, int | None]:
        if parts[0] in _BOUNDS:
            return _BOUNDS[parts[0]]
        numbers = [int(self._number(token)) for token in parts if token.type == "INT"]
        if len(numbers) == 2:
            return numbers[0], numbers[1]
        return numbers[0], None if "," in parts else numbers[0]

    rounds = letter_quantifier = quantifier

    def letter(self, parts: list[Token], span: Span) -> Atom:
        letter = str(parts[0])
        defined = any(definition.letter == letter for definition in self.clauses_read.definitions)
        return Atom(None if defined else letter, letter, span)

    # --- clauses ------------------------------------------------------------------------------------------

    def clauses(self, parts: list[Any], span: Span) -> Clauses:
        return self.clauses_read

    def where(self, parts: list[Any], span: Span) -> None:
        for part in parts:
            if getattr(part, "type", None) == "STRATEGY":
                self.clauses_read.strategy = part.lower()
            elif isinstance(part, list):
                self.clauses_read.covered = part
            else:
                self.clauses_read.condition = part

    def covered(self, parts: list[Token], span: Span) -> list[Token]:
        return [token for token in parts if token.type == "NAME"]

    def within(self, parts: list[Window], span: Span) -> None:
        self.clauses_read.window = parts[0]

    def window(self, parts: list[Any], span: Span) -> Window:
        given, *unit = parts
        parameter = given if isinstance(given, Parameter) else None
        amount = given[0] if parameter is None else 0
        if not unit:
            return Window(amount, "ticks", span, parameter=parameter)
        if unit[0].lower() not in UNITS:
            raise self.fault(
                "ACEP-Q007",
                f"no such unit {str(unit[0])!r}",
                span_of(unit[0]),
                near_unit(unit[0], (*UNITS, "simultaneous")) + "units are us, ms, s, min, h, d, week and events",
            )
        return Window(amount, UNITS[unit[0].lower()], span, parameter=parameter)

    def simultaneous(self, parts: list[Any], span: Span) -> None:
        self.clauses_read.is_simultaneous = True
        self.note_place("SIMULTANEOUS", span)

    def signed(self, parts: list[Token], span: Span) -> tuple[int | float, Span]:
        number = self._number(parts[-1])
        return (-number if len(parts) == 2 else number), span

    def errors(self, parts: list[Any], span: Span) -> None:
        _, (amount, place), *weights = parts
        if not isinstance(amount, int):
            hint = "ERRORS k is the number of events that may be missing"
            raise self.fault("ACEP-Q008", f"ERRORS needs a whole number, not {amount}", place, hint)
        self.clauses_read.errors = amount
        self.note_place("ERRORS", place)
        for name, weight, place in weights:
            self.clauses_read.weights.append((name, weight))
            self.note_place(f"WEIGHTS {name}", place)

    def weight(self, parts: list[Any], span: Span) -> tuple[str, int, Span]:
        name, (amount, place) = parts
        if not isinstance(amount, int):
            hint = "a weight is a whole number from 1: the cost of missing that event"
            raise self.fault("ACEP-Q038", f"the weight of {name} is {amount}", place, hint)
        return str(name), amount, span

    def at_start(self, parts: list[Any], span: Span) -> None:
        self.clauses_read.at_start = True
        self.note_place("AT START", span)

    def non_overlap(self, parts: list[Any], span: Span) -> None:
        self._select("NON OVERLAP", span, skip=Skip("past last row", None, span))

    def maximal(self, parts: list[Any], span: Span) -> None:
        self._select("MAXIMAL", span, maximal=True)

    def first_match(self, parts: list[Any], span: Span) -> None:
        self._select("FIRST MATCH", span, first=True)

    def skip(self, parts: list[Token], span: Span) -> None:
        to = _SKIPS[parts[0].type]
        variable = str(parts[1]) if len(parts) > 1 else None
        self._select("AFTER MATCH SKIP", span, skip=Skip(to, variable, span_of(parts[-1])))

    def consume(self, parts: list[Any], span: Span) -> None:
        self._select("CONSUME", span, consume=True)

    def every(self, parts: list[Window], span: Span) -> None:
        self._select("EVERY", span, every=parts[0])

    def _select(self, name: str, span: Span, **chosen: Any) -> None:
        self.clauses_read.selection = dataclasses.replace(self.clauses_read.selection, **chosen)
        self.note_place(name, span)

    def outputs(self, parts: list[ReturnItem], span: Span) -> None:
        self.clauses_read.outputs = tuple(parts)

    def output(self, parts: list[Any], span: Span) -> ReturnItem:
        return ReturnItem(unquote(parts[1]), parts[0], span)

    def register_output(self, parts: list[Token], span: Span) -> ReturnItem:
        return ReturnItem(str(parts[0]), Attribute(None, None, str(parts[0]), span), span)

    def publish(self, parts: list[Token], span: Span) -> None:
        self.clauses_read.publish = unquote(parts[0]) if parts[0].type == "STRING" else str(parts[0])
        self.note_place("PUBLISH", span)

    def define(self, parts: list[Any], span: Span) -> None:
        self.clauses_read.definitions = tuple(parts[1:])
        self.note_place("DEFINE", span_of(parts[0]))

    def definition(self, parts: list[Any], span: Span) -> Definition:
        return Definition(str(parts[0]), parts[1], span)

    # --- automata written by hand -------------------------------------------------------------------------

    def machine(self, parts: list[Any], span: Span) -> Machine:
        registers: tuple[MachineRegister, ...] = parts.pop(0) if isinstance(parts[0], tuple) else ()
        arcs = tuple(part for part in parts if isinstance(part, MachineArc))
        if not arcs:
            hint = "write at least one arc: q0 -> q1 ON Tick t"
            raise self.fault("ACEP-Q074", "the automaton has no arc", span, hint)
        ignores = tuple(part for part in parts if isinstance(part, IgnoreRule))
        finals = tuple(state for part in parts if isinstance(part, list) for state in part)
        names = frozenset(register.name for register in registers)
        machine = Machine(registers, arcs, ignores, finals, span)
        return with_expressions(machine, lambda expression: with_register_values(expression, names))

    def register(self, parts: list[Any], span: Span) -> MachineRegister:
        name, *rest = parts
        declared = HOLDS[rest.pop(0).upper()] if rest and getattr(rest[0], "type", "") == "HOLDS" else None
        initial = rest[0] if rest else Constant(None)
        own = KINDS.get(type(initial.value))
        holds = declared or own
        if holds is None:
            hint = f"write {name} INT, FLOAT, TEXT, BOOLEAN, TIME or DURATION, or begin with a value: {name} = 0"
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

    def when(self, parts: list[Any], span: Span) -> list[Any]:
        return parts

    def moves(self, parts: list[Any], span: Span) -> tuple[Any, ...]:
        return tuple(parts)

    registers = moves

    def assignment(self, parts: list[Any], span: Span) -> Assignment:
        return Assignment(str(parts[0]), parts[1], span)

    def ignore(self, parts: list[Any], span: Span) -> IgnoreRule:
        states = tuple(str(part) for part in parts if getattr(part, "type", "") == "WORD")
        type_, variable = next((part for part in parts if isinstance(part, tuple)), (None, None))
        when = next((part[0] for part in parts if isinstance(part, list)), None)
        otherwise = any(getattr(part, "type", "") == "OTHERWISE" for part in parts)
        return IgnoreRule(states, type_, variable, when, span, otherwise)

    def asked(self, parts: list[Any], span: Span) -> tuple[str | None, str | None]:
        return parts[0][0], str(parts[1]) if len(parts) == 2 else None

    def finals(self, parts: list[Token], span: Span) -> list[str]:
        for part in parts:
            self.note_place(f"FINAL {part}", span_of(part))
        return [str(part) for part in parts]

    def call(self, parts: list[Any], span: Span) -> FunctionCall | Apply:
        name = named(parts[0])
        is_own = self.calls and (self.given is None or parts[0] in self.given)
        if name is not None and not is_own:
            return Apply(name, tuple(parts[1:]), span)
        return FunctionCall(str(parts[0]), tuple(parts[1:]), span=span)

    # --- expressions --------------------------------------------------------------------------------------

    def binary(self, parts: list[Any], span: Span) -> Binary:
        left, sign, right = parts
        return Binary(_SYNONYMS.get(sign, sign.upper()), left, right, span)

    def unary(self, parts: list[Any], span: Span) -> Expression:
        sign, operand = parts
        # A literal with a minus is a negative number; with brackets, -(5), it stays what it is. A group's
        # span starts at its bracket, which tells the two apart.
        if sign == "-" and isinstance(operand, Constant) and self.text[operand.span[0]] in "0123456789.":
            return Constant(-cast("int | float", operand.value), span)
        return Unary(sign.upper(), operand, span)

    def unary_number(self, parts: list[Token], span: Span) -> Constant:
        return Constant(-self._number(parts[1]), span)

    def contained(self, parts: list[Any], span: Span) -> Expression:
        """What is in a list of constants; values of events are compared one by one."""
        operand, *values = parts
        negated = getattr(values[0], "type", None) == "NOT" and bool(values.pop(0))
        constants = tuple(value for value in values if isinstance(value, Constant))
        if len(constants) == len(values):
            return In(operand, constants, negated, span)
        tests: list[Expression] = [In(operand, constants, negated=False, span=span)] if constants else []
        tests += [Binary("=", operand, value, span) for value in values if not isinstance(value, Constant)]
        found = reduce(lambda one, other: Binary("OR", one, other, span), tests)
        return Unary("NOT", found, span) if negated else found

    def member(self, parts: list[Any], span: Span) -> Expression:
        item, *negated, several = parts
        found = Apply("IN", (item, several), span)
        return Unary("NOT", found, span) if negated else found

    def like(self, parts: list[Any], span: Span) -> Expression:
        text, *negated, word, pattern = parts
        found = Apply(word.upper(), (text, pattern), span)
        return Unary("NOT", found, span) if negated else found

    def case(self, parts: list[Any], span: Span) -> Apply:
        return Apply("CASE", tuple(parts) if len(parts) % 2 else (*parts, Constant(None, (span[1], span[1]))), span)

    def between(self, parts: list[Any], span: Span) -> Between:
        operand, *middle, low, _, high = parts
        return Between(operand, low, high, bool(middle), span)

    def is_null(self, parts: list[Any], span: Span) -> IsNull:
        return IsNull(parts[0], len(parts) == 3, span)

    def plain_constant(self, parts: list[Token], span: Span) -> Constant:
        token = parts[0]
        match token.type:
            case "NUMBER":
                return Constant(self._number(token), span)
            case "STRING":
                return Constant(unquote(token), span)
        return Constant({"TRUE": True, "FALSE": False, "NULL": None}[token.type], span)

    def lasting(self, parts: list[Token], span: Span) -> Lasting:
        number, unit = cast("re.Match[str]", _LASTING.fullmatch(parts[0])).groups()
        amount = float(number) if not number.isdigit() else int(number[-30:])
        found = Lasting(amount, UNITS[unit.lower()], span)
        if not amount * MICROSECONDS[found.unit] < _LARGEST_WHOLE:
            raise self.fault("ACEP-Q008", "the duration is too long", span, "microseconds are counted with 64 bits")
        return found

    def parameter(self, parts: list[Token], span: Span) -> Parameter:
        return Parameter(parts[0][1:], span)

    def equivalence(self, parts: list[Token], span: Span) -> Any:
        """One for each attribute: ``[a, b]`` is ``[a] AND [b]``."""
        inner = [span] if len(parts) == 1 else map(span_of, parts)
        found: list[Any] = [Equivalence(unquote(token), place) for token, place in zip(parts, inner, strict=True)]
        return reduce(lambda one, other: Binary("AND", one, other, span), found)

    def attribute(self, parts: list[Token], span: Span) -> Attribute:
        if len(parts) == 1:
            return Attribute(None, None, unquote(parts[0]), span)
        variable, name = str(parts[0]), unquote(parts[-1])
        index = self.index(variable, parts[1], name) if len(parts) == 3 else None
        return Attribute(variable, index, name, span)

    def index(self, variable: str, token: Token, name: str) -> Index:
        """What an index in square brackets says; ``name`` is the attribute behind it."""
        inside = _inside(token)
        if inside.lower() in _INDEXES:
            return _INDEXES[inside.lower()]
        whose, dot, length = inside.partition(".")
        if dot and length.upper() == "LEN" and whose == variable:
            return "last"
        if re.fullmatch("[0-9]{1,9}", inside) and (number := int(inside)):
            return number if number > 1 else "first"
        if not inside or inside.startswith(".."):
            hint = f"use it inside an aggregate, for example max({variable}[{inside}].{name})"
            raise self.fault("ACEP-Q009", f"{variable}[{inside}] names several events", span_of(token), hint)
        hint = f"use {variable}[1], {variable}[2], {variable}[i], {variable}[i-1] or {variable}[{variable}.LEN]"
        raise self.fault("ACEP-Q009", f"no such index {token}", span_of(token), hint)

    def aggregate(self, parts: list[Token], span: Span) -> Aggregate:
        function, variable, *rest = (part for part in parts if part.type != "DISTINCT")
        index = rest.pop(0) if rest and rest[0].type == "INDEX" else None
        name = unquote(rest[0]) if rest else None
        function, inside = function.lower(), None if index is None else _inside(index).lower()
        distinct = "DISTINCT " if len(parts) > 2 and parts[1].type == "DISTINCT" else ""
        example = f"{distinct}{variable}[].{name or 'price'}"
        first = re.fullmatch(r"\.\.([0-9]{1,9})", inside or "")
        upto = int(first[1]) if first else 0
        if inside == "i-1":
            hint = f"for all events before a[i] write {function}({example.replace('[]', '[..i-1]')})"
        elif distinct and function != "count":
            hint = f"only count takes DISTINCT: write {function}({example.removeprefix(distinct)})"
        elif (name is None and (function != "count" or distinct)) or (inside not in ("", "..i-1") and not upto):
            is_plain = function == "count" and not distinct
            hint = f"write {function}({variable}[])" if is_plain else f"write {function}({example})"
        else:
            function = "count distinct" if distinct else function
            return Aggregate(function, str(variable), name, inside == "..i-1", span, upto=upto or None)
        raise self.fault("ACEP-Q010", f"{self.text[slice(*span)]} is no aggregate over events", span, hint)

    # --- numbers ------------------------------------------------------------------------------------------

    def _number(self, token: Token) -> int | float:
        whole = token.isdigit()
        digits = token.lstrip("0") or "0"
        number = (int(digits) if len(digits) <= 19 else math.inf) if whole else float(token)
        if number > _LARGEST_WHOLE if whole else math.isinf(number):
            raise self.fault("ACEP-Q008", "the number is too large", span_of(token), "whole numbers have 64 bits")
        return number


_KINDS: dict[type, str] = {
    Repeat: "a repetition",
    Absent: "a negation within a negation",
    Either: "a choice",
    Sequence: "a sequence",
    Spaced: "a part with a word for the gap before it",
    AllOf: "an ALL",
}


def unquote(token: str) -> str:
    """The text within single quotes or backticks, doubled quotes made single; other text as it is.

    Parameters
    ----------
    token : str
        As it stands in the query.

    Returns
    -------
    str
        What it means.

    Examples
    --------
    >>> unquote("'it''s'"), unquote("`dep time`"), unquote("price")
    ("it's", 'dep time', 'price')
    """
    quote = token[0]
    return token[1:-1].replace(quote * 2, quote) if quote in "'`" else str(token)


def near_unit(word: str, known: Any) -> str:
    """As ``did_you_mean``, for units of time; an ``m`` is rather a minute than a millisecond."""
    if word.lower() in ("m", "mn", "mins"):
        return "did you mean `min`? "
    if word.lower() in ("w", "wk", "wks"):
        return "did you mean `week`? "
    if compound := re.fullmatch(r"(h|min|d|s)\d+\w*", word, re.IGNORECASE):
        return f"a window is one number and one unit, so 1 h 30 min is 90 min (there is more behind `{compound[1]}`); "
    return did_you_mean(word.lower(), known)


def did_you_mean(word: str, known: Any) -> str:
    """``"did you mean `price`? "``, or nothing when no known word is near.

    Parameters
    ----------
    word : str
        What was written.
    known : iterable of str
        What could have been meant.

    Returns
    -------
    str
        The beginning of a hint.
    """
    names = list(known)
    near = [name for name in names if name.lower() == word.lower() or name.lower().endswith(f".{word.lower()}")]
    near = near or difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`? " if near else ""


def no_variable(query: Written, name: str, known: Collection[str], span: Span) -> QueryError:
    """The error for a name that is no variable of the pattern (``ACEP-Q030``), to be raised by the caller."""
    hint = did_you_mean(name, known) + f"variables are {', '.join(sorted(known)) or 'none'}"
    return query.fault("ACEP-Q030", f"no variable {str(name)!r} in the pattern", span, hint)


def span_of(token: Token) -> Span:
    """Where a word stands."""
    return cast("int", token.start_pos), cast("int", token.end_pos)


def _inside(index: Token) -> str:
    return "".join(index[1:-1].split())
