"""From the text of a file of rules to its tree: `parse_rules`, and one method for each rule of `rules.lark`."""
# ruff: noqa: D102, ARG002  the methods are documented by rules.lark, and all take (parts, span)

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, cast, get_args

from acep_approx.arguments import checked
from acep_approx.errors import QueryError
from acep_approx.query.assemble import Assembler, did_you_mean, span_of, unquote
from acep_approx.query.kept import parser
from acep_approx.query.limits import refuse_deep_text, refuse_deep_tree, refuse_long_text, refuse_many_words
from acep_approx.query.parser import LEADING, finish_query, refuse_calls, refuse_equivalences
from acep_approx.query.rules.messages import EXAMPLE, NO_SCAN, explain_rules
from acep_approx.query.rules.syntax import (
    Action,
    Assign,
    Call,
    Column,
    Holds,
    Places,
    Rule,
    RuleFile,
    Table,
    Write,
    expressions,
)
from acep_approx.query.syntax import Aggregate, Attribute, Constant, Expression, Index, Parameter, Pattern, Read, Span

if TYPE_CHECKING:
    from lark import Token


TYPES: tuple[str, ...] = get_args(Holds)
"""What a column can hold, as it is written."""
_OTHER_TYPES = {
    **dict.fromkeys(("integer", "bigint", "smallint", "long", "number", "int64"), "int"),
    **dict.fromkeys(("double", "real", "decimal", "numeric", "float64"), "float"),
    **dict.fromkeys(("string", "str", "varchar", "char"), "text"),
    "boolean": "bool",
    **dict.fromkeys(("timestamp", "datetime", "date"), "time"),
}


_NAMED_KEY = re.compile(r"[^\W\d]\w*\s*\.\s*\w")


class RulesAssembler(Assembler):
    """Builds the tree of one table or one rule of a file.

    Parameters
    ----------
    text : str
        The whole file: all positions refer to it.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._without_column: dict[Span, Read] = {}

    # --- tables -------------------------------------------------------------------------------------------

    def table(self, parts: list[Any], span: Span) -> Table:
        name, *rest = parts
        columns = tuple(part for part in rest if isinstance(part, Column))
        keys = [part for part in rest if isinstance(part, tuple)]
        if len(keys) > 1:
            hint = "a key of two columns is written KEY (a, b)"
            raise self.fault("ACEP-R004", f"the table {str(name)!r} has two keys", keys[1][1], hint)
        places: list[tuple[str, Span]] = [("name", span_of(name))]
        for names, place in keys:
            places += [("KEY", place), *((f"KEY {unquote(one)}", span_of(one)) for one in names)]
        key = tuple(unquote(one) for names, _ in keys for one in names)
        is_static = getattr(rest[-1], "type", "") == "STATIC"
        return Table(str(name), columns, key, is_static, span, tuple(places))

    def column(self, parts: list[Any], span: Span) -> Column:
        name, written, *default = parts
        holds = written.lower()
        if holds not in TYPES:
            near = f"did you mean `{_OTHER_TYPES[holds]}`? " if holds in _OTHER_TYPES else did_you_mean(holds, TYPES)
            hint = near + "types are " + ", ".join(TYPES)
            message = f"no type {str(written)!r}"
            if holds in ("default", "key"):
                message, hint = f"the column {unquote(name)!r} has no type", f"write {name} text {written.upper()} ..."
            raise self.fault("ACEP-R006", message, span_of(written), hint)
        return Column(unquote(name), cast("Holds", holds), _default(default, holds), span)

    def key(self, parts: list[Token], span: Span) -> tuple[list[Token], Span]:
        return parts, span

    # --- rules --------------------------------------------------------------------------------------------

    def rule(self, parts: list[Any], span: Span) -> Rule:
        name, pattern, *rest = parts
        query = finish_query(self, cast("Pattern", pattern), is_regex=False)
        when: Expression | None = next((part[0] for part in rest if isinstance(part, list)), None)
        each, actions = next((part for part in rest if isinstance(part, tuple)), ("match", ()))
        for expression in () if when is None else (when,):
            refuse_equivalences(self, expression)
        for action in actions:
            for expression in expressions(action):
                refuse_equivalences(self, expression)
        for place in self._without_column:
            hint = "name a column, store.t[key].level, or ask whether there is a row: EXISTS store.t[key]"
            raise self.fault("ACEP-R021", "a read names a column of the row", place, hint)
        return Rule(str(name), query, when, each, actions, span, (("name", span_of(name)),))

    def pattern_query(self, parts: list[Any], span: Span) -> Pattern:
        self.end = span[1]
        return super().pattern_query(parts, span)

    def worth(self, parts: list[Any], span: Span) -> None:
        hint = "leave WORTH out"
        message = "WORTH says how a budget is shared among rules, and rules cannot be run under a budget yet"
        raise self.fault("ACEP-R025", message, span, hint)

    def publish(self, parts: list[Token], span: Span) -> None:
        hint = "leave PUBLISH out: the matches have the name of the rule; streams are published by queries of a set"
        raise self.fault("ACEP-R025", "a rule publishes no stream", span, hint)

    def parameter(self, parts: list[Token], span: Span) -> Parameter:
        hint = "write a constant, or keep the value in a table: store.limits[a.id].low"
        raise self.fault("ACEP-Q085", f"the parameter {parts[0]} has no value: rules are no templates", span, hint)

    def does(self, parts: list[Any], span: Span) -> tuple[str, tuple[Action, ...]]:
        each = parts.pop(0) if isinstance(parts[0], str) else "match"
        return each, tuple(parts)

    def each(self, parts: list[Token], span: Span) -> str:
        return str(parts[0]).lower()

    # --- actions ------------------------------------------------------------------------------------------

    def write(self, parts: list[Any], span: Span) -> Write:
        kind, table, *rest = parts
        sets = next((part for part in rest if isinstance(part, list)), [])
        key, at = next((part for part in rest if isinstance(part, tuple)), ((), None))
        places: Places = (("table", span_of(table)), *((f"SET {one.column}", place) for one, place in sets))
        if at is not None:
            places = (*places, ("AT", at))
        return Write(kind.lower(), str(table), key, tuple(one for one, _ in sets), span, places)

    sets = Assembler.when

    def assign(self, parts: list[Any], span: Span) -> tuple[Assign, Span]:
        return Assign(unquote(parts[0]), parts[1], span), span_of(parts[0])

    def row(self, parts: list[Expression], span: Span) -> tuple[tuple[Expression, ...], Span]:
        return tuple(parts), span

    def calling(self, parts: list[Any], span: Span) -> Call:
        return Call(str(parts[0]), tuple(parts[1:]), span)

    # --- reads --------------------------------------------------------------------------------------------

    def read(self, parts: list[Any], span: Span) -> Read:
        table, *rest = parts
        column = unquote(rest.pop()) if rest and getattr(rest[-1], "type", "") in ("FIELD", "QUOTED") else None
        at = rest.pop()[0] if rest and isinstance(rest[-1], list) else None
        found = Read(str(table), tuple(rest), column, at, span)
        if column is None:
            self._without_column[span] = found
        return found

    def aggregate(self, parts: list[Token], span: Span) -> Aggregate:
        if parts[1].lower() == "store" and len(parts) == 3 and parts[2].type != "INDEX":
            raise self.fault("ACEP-R025", f"{parts[0].lower()} is over the events of a variable", span, NO_SCAN)
        return super().aggregate(parts, span)

    def index(self, variable: str, token: Token, name: str) -> Index:
        try:
            return super().index(variable, token, name)
        except QueryError as error:
            if _NAMED_KEY.search(token) and not token.upper().endswith(".LEN]"):
                error.hint = f"to read a table write store.{variable}{token}.{name}"
            raise

    def exists(self, parts: list[Read], span: Span) -> Read:
        read = parts[0]
        if read.column is not None:
            value = self.text[slice(*read.span)]
            hint = f"write EXISTS {value[: value.rindex(']') + 1]}, or {value} IS NOT NULL"
            raise self.fault("ACEP-R021", "EXISTS asks for a row, not for a column", span, hint)
        del self._without_column[read.span]
        return dataclasses.replace(read, span=span)

    def at(self, parts: list[Token], span: Span) -> list[Attribute]:
        """The event in a list, so that it is not taken for a part of the key."""
        variable = str(parts[0])
        if len(parts) == 1:
            return [Attribute(variable, None, "", span_of(parts[0]))]
        place = (span_of(parts[0])[0], span_of(parts[1])[1])
        inside = "".join(parts[1][1:-1].split()).lower()
        if inside in ("", "..i-1"):
            hint = f"write {variable}[1], {variable}[i] or {variable}[{variable}.LEN]"
            raise self.fault("ACEP-R022", "AT names one event", place, hint)
        return [Attribute(variable, self.index(variable, parts[1], ""), "", place)]


def _default(parts: list[Constant], holds: str) -> Constant | None:
    """A whole number is one of all numbers: 0 for a column of floats is 0.0."""
    if not parts:
        return None
    value = parts[0].value
    if holds == "float" and isinstance(value, int) and not isinstance(value, bool):
        return Constant(float(value), parts[0].span)
    return parts[0]


_BEGINNING = re.compile(r"(?:TABLE|RULE)\s+(?!WITHIN\b)[\w`]", re.IGNORECASE)


def is_rules(text: str) -> bool:
    r"""Whether a text begins like a file of rules, not like a query.

    Parameters
    ----------
    text : str

    Examples
    --------
    >>> is_rules("-- hygiene\ntable status (hcw text, key (hcw))"), is_rules("PATTERN SEQ(RULE a, TABLE b) WITHIN 5")
    (True, False)
    """
    begin = LEADING.match(text)
    return _BEGINNING.match(text, begin.end() if begin is not None else 0) is not None


@checked
def parse_rules(text: str) -> RuleFile:
    """Read a file of rules.

    Names, keys and types are not looked at: `acep_approx.query.rules.checks.check_rules` does that.

    Parameters
    ----------
    text : str
        Tables and rules, in any order. Rules run in the order of the text.

    Returns
    -------
    RuleFile
        The tree. All positions, those of the rules' queries too, are in ``text``.

    Raises
    ------
    QueryError
        The text is no file of rules (ACEP-Q001 to Q018, ACEP-R001 to R025).
    LimitError
        It is too long (ACEP-Q020, Q023) or nested too deep (ACEP-Q021).

    Examples
    --------
    >>> file = parse_rules('''
    ... TABLE status (hcw text, level text DEFAULT 'safe', KEY (hcw))
    ... RULE warn ON
    ...   PATTERN SEQ(EXIT a, ENTER b) WHERE [hcw] AND store.status[b.hcw].level = 'safe' WITHIN 45 s
    ... DO UPDATE status SET level = 'warning' AT (b.hcw) END''')
    >>> file.tables[0].is_total, file.rules[0].actions[0].table
    (True, 'status')
    """
    refuse_long_text(text)
    begin = LEADING.match(text)
    if begin is not None and begin.end() == len(text):
        raise QueryError("there is no rule", code="ACEP-R001", hint=EXAMPLE, text=text.strip() and text)
    refuse_deep_text(text)
    refuse_many_words(text)
    parts = [_assembled(tree, text) for tree in _trees(text)]
    tables = tuple(part for part in parts if isinstance(part, Table))
    return RuleFile(tables, tuple(part for part in parts if isinstance(part, Rule)), text)


def _trees(text: str) -> list[Any]:
    from lark import UnexpectedInput

    try:
        return list(parser("rules").parse(text, start="rules").children)
    except UnexpectedInput as error:
        raise explain_rules(text, error) from None


def _refuse_words(tree: Any, assembler: RulesAssembler) -> None:
    """A word of the language before a bracket that reads like a call: something is missing before it."""
    for call in tree.find_data("call"):
        token, word = call.children[0], call.children[0].upper()
        if word == "AT":
            message, hint = "a value is missing before AT", "write SET level = 'safe' AT (b.hcw)"
        elif word == "EXISTS":
            message, hint = "EXISTS asks for a row of a table", "write EXISTS store.status[b.hcw]"
        else:
            continue
        raise assembler.fault("ACEP-Q001", message, span_of(token), hint)


def _assembled(tree: Any, text: str) -> Table | Rule:
    assembler = RulesAssembler(text)
    _refuse_words(tree, assembler)
    refuse_calls(tree, text)
    part: Table | Rule = assembler.assemble(tree)
    if isinstance(part, Rule):
        inside = (expression for action in part.actions for expression in expressions(action))
        for expression in (*inside, *(() if part.when is None else (part.when,))):
            refuse_deep_tree(expression, text)
    return part
