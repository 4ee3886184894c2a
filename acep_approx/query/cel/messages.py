"""What a reader is told when a text in CEL does not parse."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from acep_approx.errors import QueryError
from acep_approx.query.assemble import did_you_mean
from acep_approx.query.messages import expected, explain

if TYPE_CHECKING:
    from lark import UnexpectedInput

CLAUSES = ("SELECT", "FROM", "WITHIN", "ERRORS", "PUBLISH")
OPERATORS = ("FILTER", "NEXT", "FOLD")
RESERVED = frozenset((*CLAUSES, *OPERATORS, "AS", "AND", "OR", "NOT", "IN", "BETWEEN", "IS", "NULL", "TRUE", "FALSE"))
"""Words that cannot name a stream or an attribute unless they are quoted."""

_TERMINALS = {"_SELECT", "_FROM", "_WITHIN", "ERRORS", "_PUBLISH", "_FILTER", "_NEXT", "_FOLD"}
_VALUE = {"NUMBER", "STRING", "NAME", "QUOTED", "TRUE", "FALSE", "NULL", "MINUS", "LPAR", "DECORATOR"}
_VALUE |= {"PARAMETER", "NOT"}
_STREAM = {"NAME", "STRING", "LPAR", "_FILTER"}
_LAST_WORD = re.compile(r"([^\W\d]\w*)\s*$")
_CONTINUES = {"SLASH", "PERCENT", "COMPARISON", "_IN", "_BETWEEN", "_IS", "AND", "OR"}


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
    possible = set(getattr(error, "accepts", None) or error.expected) or {"$END"}
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
    """What could stand there, in the words of a reader."""
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
    """What helps where the mistake is a frequent one."""
    word = _LAST_WORD.search(before)
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
