"""From lark's parse tree of a CEL query to its tree: one method for each rule of `cel.lark`."""
# ruff: noqa: D102, ARG002  the methods are documented by cel.lark, and all take (parts, span)

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from acep_approx.query.assemble import UNITS, Assembler, near_unit, unquote
from acep_approx.query.cel.syntax import (
    FIRST,
    LAST,
    SECOND,
    Algebra,
    CelQuery,
    Filter,
    Fold,
    Next,
    Select,
    Star,
    Stream,
)
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Attribute, Binary, Expression, Lasting, ReturnItem, Span, Window

if TYPE_CHECKING:
    from lark import Token

INTERNAL = "$"
"""What the names of streams begin with that no text can say."""
_SIGNS = {"≥": ">=", "≤": "<=", "≠": "!="}


class CelAssembler(Assembler):
    """Builds the tree of one text in CEL."""

    # --- clauses ------------------------------------------------------------------------------------------

    def cel(self, parts: list[Any], span: Span) -> CelQuery:
        select, *clauses = parts
        window: Window | None = None
        errors = 0
        for clause in clauses:
            match clause:
                case Window():
                    window = clause
                case int():
                    errors = clause
                case _:
                    select = replace(select, publish=clause)
        return CelQuery(select, window, errors, self.text)

    def cel_within(self, parts: list[Window], span: Span) -> Window:
        window = parts[0]
        if window.unit == "events":
            hint = "give it as a time: WITHIN 10 min"
            raise self.fault("ACEP-Q112", "a window of CEL cannot count events", window.span, hint)
        if window.amount < 0 or (window.unit == "ticks" and window.amount != int(window.amount)):
            hint = "a window is 0 or longer, and a whole number where it has no unit"
            raise self.fault("ACEP-Q045", f"a window of {window.amount} {window.unit}", window.span, hint)
        return window

    def cel_errors(self, parts: list[Any], span: Span) -> int:
        _, (amount, place) = parts
        if not isinstance(amount, int) or amount < 0:
            hint = "ERRORS k is the number of events that may be missing"
            raise self.fault("ACEP-Q008", f"ERRORS needs a whole number from 0, not {amount}", place, hint)
        return amount

    def cel_publish(self, parts: list[str], span: Span) -> str:
        return parts[0]

    def subquery(self, parts: list[Any], span: Span) -> Select:
        select, *publish = parts
        return replace(cast("Select", select), publish=publish[0] if publish else None, span=span)

    def select(self, parts: list[Any], span: Span) -> Select:
        items, source = parts if len(parts) == 2 else ((Star(),), parts[0])
        for item in items:
            self._refuse_decorators(item)
        return Select(items, source, span=span)

    def _refuse_decorators(self, item: ReturnItem | Star) -> None:
        """SELECT has one input, whose attributes have names of their own."""
        for node in () if isinstance(item, Star) else walk(item.value):
            if isinstance(node, Attribute) and node.variable is not None:
                hint = f"write {node.name}, or {node.name}_1 for what NEXT and FOLD rename"
                raise self.fault("ACEP-Q102", f"{node.variable} cannot stand in SELECT", node.span, hint)

    def items(self, parts: list[ReturnItem | Star], span: Span) -> tuple[ReturnItem | Star, ...]:
        return tuple(parts)

    def star(self, parts: list[Token], span: Span) -> Star:
        return Star(span)

    def item(self, parts: list[Any], span: Span) -> ReturnItem:
        value, *name = parts
        if name:
            return ReturnItem(unquote(name[0]), value, span)
        if isinstance(value, Attribute):
            return ReturnItem(value.name, value, span)
        hint = f"add AS and a name: {self.text[slice(*span)]} AS total"
        raise self.fault("ACEP-Q100", "what is computed needs a name", span, hint)

    # --- streams ------------------------------------------------------------------------------------------

    def stream(self, parts: list[str], span: Span) -> Stream:
        return Stream(parts[0], span)

    def stream_name(self, parts: list[Token], span: Span) -> str:
        name = unquote(parts[0])
        if not name or name.startswith(INTERNAL):
            hint = "a name that is empty, or begins with $, is none that a query can use"
            raise self.fault("ACEP-Q110", f"a stream cannot have the name {name!r}", span, hint)
        return name

    def in_brackets(self, parts: list[Algebra], span: Span) -> Algebra:
        return replace(parts[0], span=span)

    def filter(self, parts: list[Any], span: Span) -> Filter:
        condition, source = parts
        if condition[0] is None:
            raise self.fault("ACEP-Q001", "FILTER has no condition", span, "write FILTER{price > 3}(Stock)")
        return Filter(condition[0], source, span)

    def next(self, parts: list[Any], span: Span) -> Next:
        left, *condition, right = parts
        return Next(left, condition[0][0] if condition else None, right, span)

    def fold(self, parts: list[Any], span: Span) -> Fold:
        left, (chosen, rebind, aggregates), right = parts
        return Fold(left, chosen, rebind, aggregates, right, span)

    def condition(self, parts: list[Expression], span: Span) -> list[Expression | None]:
        """In a list, so that it is not taken for an operand."""
        return [parts[0]]

    def no_condition(self, parts: list[Any], span: Span) -> list[Expression | None]:
        return [None]

    def fold_parts(self, parts: list[Any], span: Span) -> tuple[Any, Any, tuple[ReturnItem, ...]]:
        chosen, rebind, *aggregates = parts
        return chosen, rebind, aggregates[0] if aggregates else ()

    def fold_filter(self, parts: list[Expression], span: Span) -> Expression | None:
        return parts[0] if parts else None

    fold_rebind = fold_filter

    def aggregates(self, parts: list[ReturnItem | Star], span: Span) -> tuple[ReturnItem, ...]:
        for part in parts:
            if isinstance(part, Star):
                hint = "all attributes are kept anyway; aggregates are $.cnt + 1 AS cnt"
                raise self.fault("ACEP-Q001", "* is no aggregate", part.span, hint)
        return tuple(part for part in parts if isinstance(part, ReturnItem))

    # --- expressions --------------------------------------------------------------------------------------

    def binary(self, parts: list[Any], span: Span) -> Binary:
        left, sign, right = parts
        return super().binary([left, _SIGNS.get(sign, sign), right], span)

    def attribute(self, parts: list[Token], span: Span) -> Attribute:
        if len(parts) == 1:
            return Attribute(None, None, unquote(parts[0]), span)
        decorator, name = str(parts[0]), unquote(parts[1])
        if decorator not in (FIRST, SECOND, LAST):
            place = span[0], span[0] + len(decorator)
            hint = "$1 is the first input, $2 the second, $ the last iteration of FOLD"
            raise self.fault("ACEP-Q101", f"no such decorator {decorator}", place, hint)
        return Attribute(decorator, None, name, span)

    def lasting(self, parts: list[Token], span: Span) -> Lasting:
        number, unit = parts
        short = UNITS.get(unit.lower())
        if short in (None, "events"):
            place = unit.start_pos or 0, unit.end_pos or 0
            known = [name for name, stands_for in UNITS.items() if stands_for != "events"]
            hint = near_unit(unit, known) + "units are us, ms, s, min, h, d and ticks"
            raise self.fault("ACEP-Q007", f"no such unit of time {str(unit)!r}", place, hint)
        return Lasting(self._number(number), str(short), span)
