"""From the text of a file of rules to its tree, a method for each rule of `rules.lark`; what is said where it fails."""
# ruff: noqa: D102, ARG002  the methods are documented by rules.lark, and all take (parts, span)

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast, get_args

from acep_approx.arguments import checked
from acep_approx.errors import QueryError
from acep_approx.query.assemble import Assembler, did_you_mean, span_of, unquote
from acep_approx.query.kept import parsed
from acep_approx.query.limits import refuse_deep_tree, refuse_large_text
from acep_approx.query.messages import SELECTIONS, could_stand, expected, explain, mistake, unexpected
from acep_approx.query.parser import (
    LEADING,
    MOST_KEPT,
    finish_query,
    refuse_calls,
    refuse_equivalences,
    refuse_like,
)
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
    from lark import Token, UnexpectedInput


EXAMPLE = "write one, for example RULE warn ON PATTERN SEQ(EXIT a, ENTER b) WITHIN 45 s DO CALL badge(b.hcw) END"
CLAUSES = (
    *("PATTERN", "WHERE", "WITHIN", "SIMULTANEOUS", "ERRORS", "AT START", *SELECTIONS),
    *("RETURN", "WHEN", "FOR EACH", "DO", "END"),
)
"""What a rule is made of, in its order."""

_STARTS = {"_TABLE", "_RULE"}
_ACTIONS = {"UPDATE", "UPSERT", "DELETE", "_CALL"}
_OURS = {"_WHEN", "_FOR", "_DO", *_STARTS}
_CLAUSE_WORDS = {*(word.split()[0] for word in CLAUSES), "WEIGHTS", "WORTH", "PUBLISH"}
_OF_VALUES = {"_STORE", "_EXISTS", "CALLED"}
_HIDDEN = {"_PUBLISH", "DEFINE", "_WORTH"}
"""What the grammar accepts for a better message, and what few rules have."""
_TYPE_WORDS = {"PRIMARY", "NOT", "NULL", "UNIQUE", "REFERENCES", "CHECK"}
_SCANS = {"SELECT", "JOIN", "FROM", "COUNT"}

NO_SCAN = "a rule reads one row by its key: store.status[b.hcw].level; tables are not scanned, joined or aggregated"
_AGGREGATED = re.compile(r"\b(count|sum|min|max|avg|first|last)\s*\(\s*store\s*\.\s*\w+\s*$", re.IGNORECASE)
_WITHOUT_KEY = re.compile(r"\bstore\s*\.\s*(\w+)\s*$", re.IGNORECASE)
_EXISTS = re.compile(r"\bEXISTS\s*\(?\s*$", re.IGNORECASE)
_AS_NAME = re.compile(r"(?:\b(?:WHEN|WHERE|AND|OR|NOT)|[-+*/%=<>(,])\s*(DO|FOR|RULE|TABLE|WHEN|END)\s*$", re.IGNORECASE)
_SELECTED = re.compile(r"\b(SELECT|FROM|JOIN)\s*$", re.IGNORECASE)
_AT_EVENT = re.compile(r"\bAT\s+(\w+)\s*$", re.IGNORECASE)
_BEFORE_COLUMNS = re.compile(r"\bTABLE\s*(\w+\s*)?\(?\s*$", re.IGNORECASE)
_NO_TYPE = re.compile(r"[(,]\s*\w+\s+DEFAULT\s*$", re.IGNORECASE)
_DEFAULT = re.compile(r"\bDEFAULT\s*$", re.IGNORECASE)
_ACTION = re.compile(r"\b(UPDATE|UPSERT|DELETE|CALL|THEN)\s*$", re.IGNORECASE)
_IF = re.compile(r"\bIF\s*$", re.IGNORECASE)
_BEFORE_KEY = re.compile(r"\bAT\s*\(?\s*$", re.IGNORECASE)
_DELETE_FROM = re.compile(r"\bDELETE\s+FROM\s*$", re.IGNORECASE)
_SET_OF = re.compile(r"\bSET\s+([^;]*,)?\s*(\w+)\s*$", re.IGNORECASE)


def explain_rules(text: str, error: UnexpectedInput) -> QueryError:
    """Turn lark's error into one for the reader of a file of rules.

    Parameters
    ----------
    text : str
        The whole file.
    error : lark.UnexpectedInput
        What lark raised.

    Returns
    -------
    QueryError
        The codes of queries, and ACEP-R025 for what rules cannot do.
    """
    token = getattr(error, "token", None)
    if token is None:
        return explain(text, error)
    possible = could_stand(error)
    possible -= {"PARAMETER", *(_OF_VALUES if "NAME" in possible else ())}
    if token.type == "$END":
        return _in_words(_early_end(text, possible))
    start, stop, found = token.start_pos or 0, token.end_pos or 0, str(token)
    before, after = text[:start], text[stop:]
    hint = next((hint for find in _HINTS if (hint := find(found.upper(), before, possible)) is not None), None)
    if hint is not None:
        code = "ACEP-R025" if hint in _REFUSED else "ACEP-Q006" if hint.startswith("each clause") else "ACEP-Q001"
        known: tuple[str, str | None] = (code, hint)
    else:
        known = mistake(found, before, after, possible - _OURS | ({"$END"} if possible & _OURS else set()))
    return _in_words(unexpected(text, (start, stop), _named(possible - _HIDDEN or possible, before), known))


def _in_words(error: QueryError) -> QueryError:
    error.message = error.message.replace("the end of the query", "the end of the text").replace("SEMICOLON", "`;`")
    error.args = (error.message,)
    return error


def _named(possible: set[str], before: str) -> set[str]:
    """A word behind a dot is an attribute, elsewhere the name of a table, a column, a rule or a function."""
    if "FIELD" not in possible or before.rstrip().endswith("."):
        return possible
    return possible - {"FIELD", "QUOTED"} | {"WORD"}


def _early_end(text: str, possible: set[str]) -> QueryError:
    end = len(text.rstrip())
    hint = None
    if "RPAR" in possible or "RSQB" in possible:
        hint = "a bracket is still open"
    elif possible & {"_END", "_DO"} == {"_DO"} and "_FOR" not in possible:
        hint = "FOR EACH says how often the actions are run: FOR EACH MATCH DO CALL badge END"
    elif "_END" in possible or possible >= _ACTIONS:
        hint = "END closes a rule with actions: DO CALL badge END"
    elif possible == {"_ON", "_WORTH"}:
        hint = _NO_ON
    elif possible == {"_PATTERN"}:
        hint = "a rule is about a pattern: RULE warn ON PATTERN SEQ(EXIT a, ENTER b) WITHIN 45 s"
    message = f"the text ends too early; expected {expected(_named(possible - {'$END', *_HIDDEN}, text))}"
    return QueryError(message, code="ACEP-Q002", hint=hint, text=text, start=end, end=end)


# --- frequent mistakes: each function knows those of one part of a file, and gives a hint or None -----------------


def _of_files(found: str, _: str, possible: set[str]) -> str | None:
    if not possible <= {*_STARTS, "STATIC", "$END"}:
        return None
    if found == ";":
        return "no sign stands behind a table or a rule"
    if found in ("PATTERN", "SELECT", "FROM", "ON"):
        return "a query stands in a rule: RULE warn ON PATTERN SEQ(EXIT a, ENTER b) WITHIN 45 s"
    if found in ("CREATE", "STATIC"):
        return "a table is written TABLE room (id text, ward text, KEY (id)) STATIC"
    near = did_you_mean(found, ("TABLE", "RULE", *(("STATIC",) if "STATIC" in possible else ())))
    return near.strip() or "a file has tables, TABLE name (...), and rules, RULE name ON PATTERN ..."


def _of_tables(found: str, before: str, possible: set[str]) -> str | None:  # noqa: PLR0911  one for each mistake
    if _BEFORE_COLUMNS.search(before) and (possible == {"LPAR"} or "_KEY" in possible or found == "("):
        return "a table is written TABLE status (hcw text, level text DEFAULT 'safe', KEY (hcw))"
    if _NO_TYPE.search(before) and "_DEFAULT" in possible:
        return "a column has a name and a type: level text"
    if found in ("RULE", "TABLE") and "RPAR" in possible:
        return "a bracket is still open"
    if found == "KEY" or (found in _TYPE_WORDS and "_DEFAULT" in possible):
        return "the key stands behind the columns: TABLE status (hcw text, level text, KEY (hcw))"
    if "_DEFAULT" in possible:
        if found == "(":
            return "types have no length: write text"
        return did_you_mean(found, ("DEFAULT", "KEY")).strip() or "columns are separated by `,`"
    if possible <= {"COMMA", "RPAR"} and found == "DEFAULT":
        return "a column has one default"
    if possible == {"FIELD"} and found in (",", ")"):
        return "a column has a name and a type: level text"
    if possible >= {"STRING", "NUMBER", "TRUE", "MINUS"} and "NAME" not in possible and _DEFAULT.search(before):
        return "a default is a constant, such as 'safe', 0 or TRUE"
    return None


def _of_heads(found: str, _: str, possible: set[str]) -> str | None:
    if possible == {"_PATTERN"}:
        return _NO_CEL if found in ("SELECT", "FROM") else did_you_mean(found, ("PATTERN",)).strip() or _NO_REGEX
    if possible == {"_ON", "_WORTH"}:
        return _NO_ON
    if possible in ({"_EACH"}, {"MATCH", "POINT"}):
        return "write FOR EACH MATCH, or FOR EACH POINT"
    return None


def _of_actions(found: str, before: str, possible: set[str]) -> str | None:  # noqa: PLR0911, PLR0912  one for each mistake
    if possible == _ACTIONS:
        if found in ("END", ";"):
            return "`;` stands between two actions, and not behind the last"
        if found in ("INSERT", "MERGE", "REPLACE"):
            return "UPSERT makes a row where there is none: UPSERT status SET level = 'safe' AT (b.hcw)"
        if found in _SCANS:
            return NO_SCAN
        return did_you_mean(found, ("UPDATE", "UPSERT", "DELETE", "CALL")).strip() or (
            "actions are UPDATE, UPSERT, DELETE, and CALL name(...)"
        )
    if possible == {"_EQUAL"} and (named := _SET_OF.search(before)):
        if found == "(" and named[2].upper() == "AT":
            return "SET gives columns values: SET level = 'safe', n = old.n + 1 AT (b.hcw)"
        if found in ("+", "-", "*", "/"):
            return f"write SET {named[2]} = old.{named[2]} {found} 1"
        if found == ".":
            return f"SET names a column alone: SET level = ..., not {named[2]}.level"
        return "SET gives columns values: SET level = 'safe'"
    if _DELETE_FROM.search(before):
        return "write DELETE status AT (b.hcw)"
    if _BEFORE_KEY.search(before) and (possible == {"LPAR"} or found == ")"):
        return "the key stands in brackets: AT (b.hcw)"
    if "_AT" in possible and "_SET" in possible and found[0] in ".[":
        return "an action names the table alone, and its row by AT: UPDATE status SET level = 'safe' AT (b.hcw)"
    if found == "SET" and "_END" in possible:
        return "SET stands before AT: UPDATE status SET level = 'safe' AT (b.hcw)"
    if "_AT" in possible and "RSQB" not in possible and found == "WHERE":
        return "an action names its row by the key: AT (b.hcw); conditions stand in WHEN"
    if "_END" in possible and found in ("UPDATE", "UPSERT", "DELETE", "CALL"):
        return "actions are separated by `;`"
    if "_END" in possible and "COMMA" not in possible and found in ("RULE", "TABLE", "END"):
        return "END closes a rule with actions: DO CALL badge END"
    return None


def _of_reads(found: str, before: str, possible: set[str]) -> str | None:  # noqa: PLR0911  one for each mistake
    if _SELECTED.search(before) and "AND" in possible:
        return NO_SCAN
    if found == "." and "RSQB" in possible and (named := _AT_EVENT.search(before)):
        return f"AT names an event, and not an attribute of it: AT {named[1]}"
    if _AGGREGATED.search(before) or (found in _SCANS and "FUNCTION" in possible):
        return NO_SCAN
    if found == "." and (read := _WITHOUT_KEY.search(before)):
        return f"a read names a row by its key: store.{read[1]}[b.hcw].level"
    if found.startswith("[") and (read := _WITHOUT_KEY.search(before)):
        return "a read names a row by its key, and a column: store.status[b.hcw].level"
    if _EXISTS.search(before):
        return "EXISTS asks for a row of a table: EXISTS store.status[b.hcw]"
    if found == "]" and "FUNCTION" in possible:
        return "the key of a row stands in the brackets: store.status[b.hcw].level"
    if found in _SCANS and "AND" in possible:
        return NO_SCAN
    return None


def _of_clauses(found: str, before: str, possible: set[str]) -> str | None:  # noqa: PLR0911  one for each mistake
    if "AND" in possible and (word := _AS_NAME.search(before)):
        return f"a condition or a value is missing before {word[1].upper()}"
    if "_DO" in possible and (found in ("UPDATE", "UPSERT", "DELETE", "CALL") or _ACTION.search(before)):
        return "actions stand between DO and END: DO CALL badge(b.hcw) END"
    if "_DO" in possible and (found == "IF" or _IF.search(before)):
        return "what is asked before the actions are run stands in WHEN"
    if "_DO" in possible and "OR" in possible and found in (",", ";", "&", "|"):
        return "conditions are joined by AND or OR"
    if before.upper().rstrip().endswith(" WORTH"):
        return "WORTH stands behind the name: RULE warn WORTH 5 ON PATTERN ..."
    if found not in _CLAUSE_WORDS:
        return None
    if {"RPAR", "RSQB", "RBRACE"} & possible and possible & {"OR", "COMMA"}:
        return "a bracket is still open"
    if not possible & {*_OURS, "_END", "_ON"}:
        return None
    if found == "WORTH":
        return "WORTH stands behind the name: RULE warn WORTH 5 ON PATTERN ..."
    if found == "WEIGHTS":
        return "WEIGHTS follows the number of errors: ERRORS 1 WEIGHTS (b = 2)"
    return "each clause stands once, in this order: " + ", ".join(CLAUSES)


_NO_CEL = "a rule has a pattern, RULE warn ON PATTERN ...: matches of CEL name no events that actions could write"
_NO_REGEX = "a rule's query begins with PATTERN: bare regular expressions have no variables that actions could name"
_NO_ON = "a rule begins RULE name ON PATTERN ..."
_REFUSED = (NO_SCAN, _NO_CEL, _NO_REGEX)
_HINTS: tuple[Callable[[str, str, set[str]], str | None], ...] = (
    *(_of_files, _of_tables, _of_heads, _of_actions, _of_reads, _of_clauses),
)


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
        name, *rest = parts
        worth = rest.pop(0) if isinstance(rest[0], float) else 1.0
        pattern = rest.pop(0)
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
        return Rule(str(name), query, when, each, actions, worth, span, (("name", span_of(name)),))

    def pattern_query(self, parts: list[Any], span: Span) -> Pattern:
        self.end = span[1]
        return super().pattern_query(parts, span)

    def worth(self, parts: list[tuple[int | float, Span]], span: Span) -> float:
        ((number, place),) = parts
        if not 0 < number < math.inf:
            hint = "write a number above 0: RULE warn WORTH 5 ON PATTERN ..."
            raise self.fault("ACEP-R027", f"a rule is WORTH {number}", place, hint)
        return float(number)

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
    refuse_large_text(text)
    return (_kept if len(text) <= MOST_KEPT else _parsed)(text)


def _parsed(text: str) -> RuleFile:
    begin = LEADING.match(text)
    if begin is not None and begin.end() == len(text):
        raise QueryError("there is no rule", code="ACEP-R001", hint=EXAMPLE, text=text.strip() and text)
    trees = parsed("rules", text, "rules", lambda error: explain_rules(text, error)).children
    parts = [_assembled(tree, text) for tree in trees]
    tables = tuple(part for part in parts if isinstance(part, Table))
    return RuleFile(tables, tuple(part for part in parts if isinstance(part, Rule)), text)


_kept = lru_cache(maxsize=64)(_parsed)
"""A file that was checked is often run next. Nothing changes a tree."""


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
    refuse_calls(tree, text, ())
    refuse_like(tree, text)
    part: Table | Rule = assembler.assemble(tree)
    if isinstance(part, Rule):
        inside = (expression for action in part.actions for expression in expressions(action))
        for expression in (*inside, *(() if part.when is None else (part.when,))):
            refuse_deep_tree(expression, text)
    return part
