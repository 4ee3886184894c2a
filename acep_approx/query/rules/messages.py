"""What a reader is told when a file of rules does not parse."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from acep_approx.errors import QueryError
from acep_approx.query.assemble import did_you_mean
from acep_approx.query.messages import could_stand, expected, explain, mistake, unexpected

if TYPE_CHECKING:
    from lark import UnexpectedInput


EXAMPLE = "write one, for example RULE warn ON PATTERN SEQ(EXIT a, ENTER b) WITHIN 45 s DO CALL badge(b.hcw) END"
CLAUSES = (
    *("PATTERN", "WHERE", "WITHIN", "SIMULTANEOUS", "ERRORS", "NON OVERLAP", "RETURN", "WHEN", "FOR EACH", "DO", "END"),
)
"""What a rule is made of, in its order."""

_STARTS = {"_TABLE", "_RULE"}
_ACTIONS = {"UPDATE", "UPSERT", "DELETE", "_CALL"}
_OURS = {"_WHEN", "_FOR", "_DO", *_STARTS}
_CLAUSE_WORDS = {*(word.split()[0] for word in CLAUSES), "WEIGHTS", "WORTH", "PUBLISH"}
_OF_VALUES = {"_STORE", "_EXISTS", "CALLED"}
_HIDDEN = {"_PUBLISH", "DEFINE", "_WORTH"}
"""What the grammar accepts for a better message."""
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
    """The text is a file, and no query."""
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
        return "types have no length: write text" if found == "(" else _after_column(found)
    if possible <= {"COMMA", "RPAR"} and found == "DEFAULT":
        return "a column has one default"
    if possible == {"FIELD"} and found in (",", ")"):
        return "a column has a name and a type: level text"
    if possible >= {"STRING", "NUMBER", "TRUE", "MINUS"} and "NAME" not in possible:
        if _DEFAULT.search(before):
            return "a default is a constant, such as 'safe', 0 or TRUE"
        return "IN lists constants; compare with other values by = and OR"
    return None


def _after_column(found: str) -> str | None:
    near = did_you_mean(found, ("DEFAULT", "KEY"))
    return near.strip() or "columns are separated by `,`"


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
