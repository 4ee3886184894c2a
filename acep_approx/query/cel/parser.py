"""From text to the tree of a query in CEL, with one method for each rule of `cel.lark`; what is said where it fails."""
# ruff: noqa: D102, ARG002  the methods are documented by cel.lark, and all take (parts, span)

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from acep_approx.arguments import checked
from acep_approx.errors import QueryError
from acep_approx.query.assemble import UNITS, Assembler, did_you_mean, near_unit, span_of, unquote
from acep_approx.query.cel.syntax import (
    CLAUSES,
    FIRST,
    INTERNAL,
    LAST,
    OPERATORS,
    RESERVED,
    SECOND,
    CelQuery,
    Filter,
    Fold,
    Next,
    Select,
    Star,
    Stream,
    expressions,
    nodes,
    refuse_deep,
)
from acep_approx.query.kept import parsed
from acep_approx.query.limits import refuse_deep_tree, refuse_large_text
from acep_approx.query.messages import LAST_WORD, could_stand, expected, explain
from acep_approx.query.parser import MOST_KEPT, as_meant, refuse_like
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Attribute, Binary, Expression, Lasting, ReturnItem, Span, Window

if TYPE_CHECKING:
    from lark import Token, UnexpectedInput


_TERMINALS = {"_SELECT", "_FROM", "_WITHIN", "ERRORS", "_PUBLISH", "_FILTER", "_NEXT", "_FOLD"}
_VALUE = {"NUMBER", "STRING", "NAME", "QUOTED", "TRUE", "FALSE", "NULL", "MINUS", "LPAR", "DECORATOR"}
_VALUE |= {"PARAMETER", "NOT"}
_STREAM = {"NAME", "STRING", "LPAR", "_FILTER"}
_CONTINUES = {"SLASH", "PERCENT", "COMPARISON", "_IN", "_BETWEEN", "_IS", "LIKE", "AND", "OR"}


def explain_cel(text: str, error: UnexpectedInput) -> QueryError:
    """Turn lark's error into one for the reader of a query in CEL.

    Parameters
    ----------
    text : str
        The whole query.
    error : lark.UnexpectedInput
        What lark raised.

    Returns
    -------
    QueryError
        ACEP-Q001 (unexpected word), Q002 (ends too early), Q003 (unexpected character) or Q004 (open quote).
    """
    token = getattr(error, "token", None)
    if token is None:
        return explain(text, error)
    possible = could_stand(error)
    if token.type == "$END":
        end = len(text.rstrip())
        message = f"the query ends too early; expected {_words(possible - {'$END'})}"
        hint = "a bracket is still open" if {"RPAR", "RBRACE"} & possible else None
        return QueryError(message, code="ACEP-Q002", hint=hint, text=text, start=end, end=end)
    start, stop, found = token.start_pos or 0, token.end_pos or 0, str(token)
    hint = _hint(found, text[:start], possible)
    message = f"unexpected `{found}`; expected {_words(possible)}"
    return QueryError(message, code="ACEP-Q001", hint=hint, text=text, start=start, end=stop)


def _words(possible: set[str]) -> str:
    left, words = set(possible), []
    if "DECORATOR" in left:
        words.append("a value such as price or $1.price")
        left -= _VALUE
    elif left >= _STREAM:
        words.append("a stream such as Stock or FILTER{price > 3}(Stock)")
        left -= _STREAM
    if _CONTINUES & left:
        words.append("an operator")
        left -= _CONTINUES | {"PLUS", "MINUS", "STAR", "NOT"}
        left -= {"NAME"} if "NAME" in left else set()  # the unit behind a number
    if not left:
        return " or ".join(words)
    rest = expected(left)
    return ", ".join(words) + (" or " if " or " not in rest else ", ") + rest if words else rest


def _hint(found: str, before: str, possible: set[str]) -> str | None:  # noqa: PLR0911, PLR0912  one for each mistake
    word = LAST_WORD.search(before)
    upper = found.upper()
    if found == ")" and before.count("(") <= before.count(")"):
        return "there is no open bracket for it to close"
    if found == "(" and word and "COMPARISON" in possible:
        return "CEL has no functions: FOLD computes aggregates, as in FOLD{, , $.cnt + 1 AS cnt}"
    if found == "." and word:
        return f"attributes have no variable here: write {word[1]} alone, or decorate it, as in $1.price"
    if upper in ("WHERE", "RETURN", "PATTERN"):
        return "CEL has FILTER{..}, NEXT{..} and FOLD{..} behind FROM, and SELECT before it"
    if upper in CLAUSES and ("RPAR" in possible or "RBRACE" in possible):
        return "a bracket is still open"
    if upper in CLAUSES and possible & {"_FROM", "$END"}:
        return "each clause stands once, in this order: SELECT, FROM, WITHIN, ERRORS, PUBLISH"
    if found == "{" and word and did_you_mean(word[1].upper(), OPERATORS):
        return did_you_mean(word[1].upper(), OPERATORS).strip()
    near = did_you_mean(upper, [*CLAUSES, *OPERATORS])
    if near and upper not in RESERVED and _TERMINALS & possible:
        return near.strip()
    if possible == {"COMMA"} or ("COMMA" in possible and found == "}"):
        return "FOLD has three parts, and each may be empty: FOLD{$2.name = $.name, , $.cnt + 1 AS cnt}"
    if found[0] in "<>=≤≥≠!" and "AND" in possible and not re.search(r"\d\s+\w+\s*$", before):
        return "comparisons do not chain: write $1.x < $2.x AND $2.x < 5"
    if upper in RESERVED and "NAME" in possible:
        return f"{found} is a reserved word: quote a stream of that name as '{found}', an attribute as `{found}`"
    if possible >= {"_NEXT", "_FOLD"} and (found[0].isalnum() or found[0] in "_'(,"):
        return "streams are put together by NEXT{..} or FOLD{..}"
    if "AND" in possible and (found[0].isalnum() or found[0] in "_'(`$<>=≤≥≠!"):
        return "conditions are joined by AND or OR"
    return None


_SIGNS = {"≥": ">=", "≤": "<=", "≠": "!="}


# --- trees ------------------------------------------------------------------------------------------------


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

    def subquery(self, parts: list[Any], span: Span) -> Select:
        select, *publish = parts
        return replace(cast("Select", select), publish=publish[0] if publish else None, span=span)

    def select(self, parts: list[Any], span: Span) -> Select:
        items, source = parts if len(parts) == 2 else ((Star(),), parts[0])
        for node in (node for item in items if isinstance(item, ReturnItem) for node in walk(item.value)):
            if isinstance(node, Attribute) and node.variable is not None:  # the attributes of its one input have names
                hint = f"write {node.name}, or {node.name}_1 for what NEXT and FOLD rename"
                raise self.fault("ACEP-Q102", f"{node.variable} cannot stand in SELECT", node.span, hint)
        return Select(items, source, span=span)

    items = Assembler.moves

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

    condition = Assembler.when

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
        if decorator not in (FIRST, INTERNAL, SECOND, LAST):
            place = span[0], span[0] + len(decorator)
            hint = "$1 is the first input, $2 the second, $ the last iteration of FOLD"
            raise self.fault("ACEP-Q101", f"no such decorator {decorator}", place, hint)
        return Attribute(decorator, None, name, span)

    def lasting(self, parts: list[Token], span: Span) -> Lasting:
        number, unit = parts
        short = UNITS.get(unit.lower())
        if short in (None, "events"):
            known = [name for name, stands_for in UNITS.items() if stands_for != "events"]
            hint = near_unit(unit, known) + "units are us, ms, s, min, h, d, week and ticks"
            raise self.fault("ACEP-Q007", f"no such unit of time {str(unit)!r}", span_of(unit), hint)
        return Lasting(self._number(number), str(short), span)


_BEGINS = re.compile(r"(?:\s++|--[^\n]*+)*+(?:SELECT|FROM)\b", re.IGNORECASE)


def is_cel(text: str) -> bool:
    r"""Whether a text is a query in CEL: its first word, behind blanks and comments, is SELECT or FROM.

    Parameters
    ----------
    text : str
        Any query.

    Examples
    --------
    >>> is_cel("-- all quotes\nselect * FROM Stock"), is_cel("PATTERN SEQ(A a, B b) WITHIN 5")
    (True, False)
    """
    return bool(_BEGINS.match(text))


@checked
def parse_cel(text: str) -> CelQuery:
    """Read a query in CEL.

    Names are not looked at: `acep_approx.query.cel.names.resolved` does that.

    Parameters
    ----------
    text : str
        A query that starts with SELECT or FROM.

    Returns
    -------
    CelQuery
        The tree, with positions in ``text``.

    Raises
    ------
    QueryError
        The text is no query in CEL (ACEP-Q001 to Q008, Q100, Q101, Q110).
    LimitError
        It is too long (ACEP-Q020, Q023) or nested too deep (ACEP-Q021).

    Source
    ------
    Demers et al., CIDR 2007, section 2.2; WITHIN and ERRORS are ours.

    Examples
    --------
    >>> query = parse_cel("SELECT Price AS p FROM FILTER{Name = 'IBM'}(Stock) PUBLISH Ibm WITHIN 10 min")
    >>> query.select.publish, query.select.items[0].name, query.window.amount
    ('Ibm', 'p', 10)
    """
    try:
        return _kept(text) if len(text) <= MOST_KEPT else _parsed(text)
    except QueryError as error:
        raise as_meant(error, text) from None


def _parsed(text: str) -> CelQuery:
    refuse_large_text(text)
    tree = parsed("cel", text, "cel", lambda error: explain_cel(text, error))
    refuse_like(tree, text)
    query = cast("CelQuery", CelAssembler(text).assemble(tree))
    refuse_deep(query)
    for node in nodes(query.select):
        for expression in expressions(node):
            refuse_deep_tree(expression, text)
    return query


_kept = lru_cache(maxsize=256)(_parsed)
