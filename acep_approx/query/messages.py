"""What a reader is told when a text does not parse: what was found and expected, and the likely mistake."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from acep_approx.errors import QueryError
from acep_approx.query.assemble import did_you_mean
from acep_approx.query.functions import CALLED
from acep_approx.query.syntax import GAP_WORDS

if TYPE_CHECKING:
    from lark import UnexpectedInput

    from acep_approx.query.syntax import Span, Strategy

SELECTIONS = ("MAXIMAL", "FIRST MATCH", "NON OVERLAP", "AFTER MATCH SKIP", "CONSUME", "EVERY")
CLAUSES = (
    *("PATTERN", "WHERE", "WITHIN", "SIMULTANEOUS", "ERRORS", "WEIGHTS", "AT START", *SELECTIONS),
    *("RETURN", "DEFINE", "PUBLISH"),
)
FUNCTIONS = ("count", "sum", "min", "max", "avg", "first", "last")
"""Aggregates whose names no function of the user's can have; ``stddev`` is another one."""
STRATEGIES: tuple[Strategy, ...] = (
    *("skip_till_any_match", "skip_till_next_match", "partition_contiguity", "strict_contiguity"),
)
RESERVED = frozenset(
    (*CLAUSES, "SEQ", "ANY", "AS", "AND", "OR", "NOT", "IN", "BETWEEN", "IS", "NULL", "TRUE", "FALSE")
) - {"SIMULTANEOUS", "AT START", *SELECTIONS, "PUBLISH"}
"""Words that cannot name a type (unless quoted), a variable or an unqualified attribute."""

_SELECTING = {"_MAXIMAL", "_FIRST_MATCH", "_NON", "_AFTER_MATCH_SKIP", "_CONSUME", "_EVERY"}
_CLAUSE_TERMINALS = {"_WHERE", "_WITHIN", "_SIMULTANEOUS", "ERRORS", "_AT_START", *_SELECTING}
_CLAUSE_TERMINALS |= {"_RETURN", "DEFINE", "_PUBLISH"}
_VALUE = {
    *("NUMBER", "LASTING", "STRING", "NAME", "QUOTED", "FUNCTION", "STDDEV", "_CASE"),
    *("TRUE", "FALSE", "NULL", "MINUS", "LPAR", "LSQB"),
}
_COMPONENT = {"TILDE", "LPAR", "_SEQ", "_ALL", "ANY", "NAME", "STRING"}
_QUANTIFIER = {"PLUS", "STAR", "QMARK", "LBRACE"}
_OPERATOR = {"PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "COMPARISON", "_IN", "_BETWEEN", "_IS", "NOT", "LIKE"}
# A set of terminals that stand for one thing, the terminal that gives the set away, and the words for it.
_GROUPS = (
    (_COMPONENT, "TILDE", "a component such as `Type a`"),
    (_VALUE | {"NOT", "STRATEGY"}, "FUNCTION", "a value such as `a.price` or 3"),
    (_OPERATOR, "COMPARISON", "a comparison such as `= 3`"),
    (_OPERATOR, "PERCENT", "an operator"),
    (_QUANTIFIER, "QMARK", "a quantifier such as `+`"),
)
_EXTRA = {"GAP", "BETWEEN", "BETWEEN_OF_ONE", "PREFERS", "PREFERS_OF_ONE", "_UNTIL"}
_WORDS = {
    "$END": "the end of the query",
    "NAME": "a name",
    "FIELD": "the name of an attribute",
    "FIELDS": "the name of an attribute",
    "WORD": "a name",
    "LETTER": "a letter",
    "INDEX": "`[]`",
    "INT": "a whole number",
    "NUMBER": "a number",
    "LASTING": "a duration",
    "STRING": "a string",
    "STRATEGY": "a strategy",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "COMMA": "`,`",
    "VBAR": "`|`",
    "DOT": "`.`",
    "_EQUAL": "`=`",
    "_NON": "NON OVERLAP",
    "_AT_START": "AT START",
    "_SINCE_START": "SINCE START",
    "_FIRST_MATCH": "FIRST MATCH",
    "_AFTER_MATCH_SKIP": "AFTER MATCH SKIP",
    "TO_NEXT_ROW": "TO NEXT ROW",
    "PAST_LAST_ROW": "PAST LAST ROW",
    "TO_FIRST": "TO FIRST",
    "TO_LAST": "TO LAST",
    "MINUS": "`-`",
    "PLUS": "`+`",
    "STAR": "`*`",
    "SLASH": "`/`",
    "PERCENT": "`%`",
    "TILDE": "`~`",
    "HOLDS": "INT, FLOAT, TEXT, BOOLEAN, TIME or DURATION",
    "SOURCE": "an arc such as `a -> b`",
    "_ARROW": "`->`",
    "CALLED": "a function",
}
OTHER_NAMES = {"mean": "avg", "average": "avg", "total": "sum", "len": "length", "substring": "substr"}
OTHER_NAMES |= {"std": "stddev", "stdev": "stddev", "stddev_samp": "stddev"}
_CALL = re.compile(rf"\b({'|'.join(FUNCTIONS)})\s*\(\s*(\w+\s*(\[[^\]]*\])?(\s*\.\s*\w+)?\s*)?$", re.IGNORECASE)
_UNKNOWN = {"ACEP-Q011": "function", "ACEP-Q018": "strategy"}
_OVERLAP = re.compile(r"\s+OVERLAP\b", re.IGNORECASE)
LAST_WORD = re.compile(r"([^\W\d]\w*)\s*$")
_STRATEGY_FIRST = re.compile(r"\bWHERE\s+([^\W\d]\w*)\s*(?:\([^()]*\)\s*)?(?:\{[^{}]*\}\s*)?$", re.IGNORECASE)
_ERRORS = re.compile(r"\bERRORS\s*$", re.IGNORECASE)
_AFTER_PART = re.compile(r"\bPATTERN\b(?!.*\bWHERE\b).*[(,|]\s*$", re.IGNORECASE | re.DOTALL)
NO_EVENT = "that no event comes in between is written with ~: SEQ(A a, ~(B b), C c)"
_AFTER_IN = re.compile(r"\bIN\s*$", re.IGNORECASE)
_IN_ALL = re.compile(r"\bALL\s*\((?!.*\bWHERE\b)[^()]*$", re.IGNORECASE | re.DOTALL)
_ALTERNATIVE = "a choice within ALL stands in brackets: ALL((A a | B b), C c)"
HOW_MANY = "say how many events may be missing: ERRORS 1"
SURE = 0.75
"""How near a word of a bare regular expression must be to a clause to be taken for it."""
_READ = re.compile(r"\bstore\s*\.\s*\w+\s*\[[^\[\]]*\]?$|\bEXISTS\s+store$", re.IGNORECASE)


def explain(text: str, error: UnexpectedInput, end: int | None = None) -> QueryError:
    """Turn lark's error into one for the reader of the query.

    Parameters
    ----------
    text : str
        The whole query.
    error : lark.UnexpectedInput
        What lark raised; its positions refer to ``text``.
    end : int, optional
        Where the part that was parsed ends; default the end of the text.

    Returns
    -------
    QueryError
        ACEP-Q001 (unexpected word), Q002 (ends too early), Q003 (unexpected character), Q004 (open quote),
        Q006 (clause out of order), Q010 (aggregate), Q011 (unknown function) or Q018 (unknown strategy).
    """
    token = getattr(error, "token", None)
    if token is None:
        return _character(text, error.pos_in_stream or 0)
    possible = could_stand(error) - {"PARAMETER"}  # where one can stand, a constant can: who means one knows
    if token.type == "$END":
        return _early_end(text, len(text) if end is None else end, possible)
    start, stop, found = token.start_pos, token.end_pos, str(token)
    if token.type == "SOURCE" and "NAME" in possible:  # the name is right, and what comes behind it is not
        start = text.index("->", stop)
        stop, found, possible = start + 1, "-", possible - {"NAME"} or possible
    read = _READ.search(text, 0, stop)
    if read is not None:
        start, message = read.start(), "a query reads no tables"
        hint = "tables are read by rules, which stand in files of their own: give the file to acep run (compile_rules "
        hint += "in Python)"
        return QueryError(message, code="ACEP-R024", hint=hint, text=text, start=start, end=stop)
    return unexpected(text, (start, stop), possible, mistake(found, text[:start], text[stop:], possible))


def could_stand(error: UnexpectedInput) -> set[str]:
    """The terminals that could stand where lark met another one, but for words that nothing needs."""
    return set(getattr(error, "accepts", None) or error.expected) - _EXTRA or {"$END"}


def unexpected(text: str, span: Span, possible: set[str], mistake: tuple[str, str | None]) -> QueryError:
    """An error at a word that cannot stand where it does.

    Parameters
    ----------
    text : str
        The whole text.
    span : Span
        The word.
    possible : set of str
        The terminals that could stand there.
    mistake : tuple of str and str
        The code, and a hint.
    """
    (start, stop), (code, hint) = span, mistake
    found = text[start:stop] if stop - start <= 40 else text[start : start + 37] + "..."
    message = f"unexpected `{found}`; expected {expected(possible)}"
    word = LAST_WORD.search(text, 0, start)
    if word and code in _UNKNOWN:  # the mistake is the word before the bracket
        message, start, stop = f"no {_UNKNOWN[code]} {word[1]!r}", *word.span(1)
    return QueryError(message, code=code, hint=hint, text=text, start=start, end=stop)


def expected(possible: set[str]) -> str:
    """Names of terminals, in the words of a reader: ``"`,`, `)` or WITHIN"``.

    Parameters
    ----------
    possible : set of str
        Terminals of the grammar.

    Returns
    -------
    str
        A list for a sentence.
    """
    left, words = set(possible), []
    for group, sign, description in _GROUPS:
        if sign in left:
            words.append(description)
            left -= group
    words += sorted({_WORDS.get(name, name.lstrip("_")) for name in left})
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def _character(text: str, start: int) -> QueryError:
    sign = text[start]
    code, end, hint = "ACEP-Q003", start + 1, None
    if sign in "'`":
        code, end = "ACEP-Q004", text.find("\n", start) if "\n" in text[start:] else len(text)
        message = f"the quote {sign} is never closed"
        hint = f"close it with {sign}; a quote within is written twice: {sign * 2}"
    else:
        message = f"unexpected character {sign!r}"
    if sign == '"':
        closing = text.find('"', start + 1)
        end = closing + 1 if closing > 0 else end
        hint = f"strings stand in single quotes: '{text[start + 1 : closing] if closing > 0 else 'text'}'"
    elif sign == "@":
        end = start + len("@") + len(re.split(r"\W", text[start + 1 :], maxsplit=1)[0])
        hint = f"a name with other signs stands in backticks: `{text[start:end]}`; ts is the time of any event: a.ts"
    elif sign == "&":
        end, hint = start + (2 if text[start : start + 2] == "&&" else 1), "write AND"
    elif sign == "!" and _AFTER_PART.search(text, 0, start):
        hint = NO_EVENT
    elif sign == "!":
        hint = "write NOT, or != for `is not equal`"
    elif sign == ";":
        hint = "a text holds one query, without a semicolon; parts of SEQ are separated by `,`"
    return QueryError(message, code=code, hint=hint, text=text, start=start, end=end)


def _early_end(text: str, end: int, possible: set[str]) -> QueryError:
    end = len(text[:end].rstrip())
    hint = None
    if _ERRORS.search(text, 0, end):
        hint = HOW_MANY
    elif "RPAR" in possible or "RBRACE" in possible:
        hint = "a bracket is still open"
    elif "_AS" in possible:
        hint = "every output needs a name: RETURN a.price AS price"
    elif possible == {"NAME"}:
        hint = "a component is a type and a variable: `Shelf a`"
    message = f"the query ends too early; expected {expected(possible - {'$END'})}"
    return QueryError(message, code="ACEP-Q002", hint=hint, text=text, start=end, end=end)


def mistake(found: str, before: str, after: str, possible: set[str]) -> tuple[str, str | None]:  # noqa: PLR0911  one for each mistake
    """The code of an unexpected word, and a hint when the mistake is a frequent one.

    Parameters
    ----------
    found : str
        The word.
    before, after : str
        The text around it.
    possible : set of str
        The terminals that could stand there.
    """
    if possible == {"_OVERLAP"}:
        return "ACEP-Q001", "the clause is two words: NON OVERLAP"
    if found == ")" and before.count("(") <= before.count(")"):
        return "ACEP-Q001", "there is no open bracket for it to close"
    if hint := _about_strategy(found, before, possible) or _frequent(found, before, after, possible):
        return "ACEP-Q001", hint
    near = did_you_mean(found.upper(), [*CLAUSES, *(["AND", "OR"] if "OR" in possible else [])])
    word = LAST_WORD.search(before)
    clause = "NON OVERLAP" if found.upper() == "NON" and _OVERLAP.match(after) else found.upper()
    if clause in CLAUSES:
        return _misplaced_clause(clause, before, possible)
    if near and "PATTERN" not in before.upper() and not get_close_matches(found.upper(), CLAUSES, cutoff=SURE):
        near = ""
    if near and found.upper() not in RESERVED and (_CLAUSE_TERMINALS | {"OR", "_WEIGHTS"}) & possible:
        return "ACEP-Q001", near.strip()
    if word and possible <= _CLAUSE_TERMINALS | {"$END"} and did_you_mean(word[1].upper(), CLAUSES):
        return "ACEP-Q001", did_you_mean(word[1].upper(), CLAUSES).strip()  # WITHIN 5 EROR 1: read as a unit
    if found == "(" and word and "COMPARISON" in possible and word[1].upper() not in RESERVED:
        return "ACEP-Q011", functions_hint(word[1], CALLED)
    if _CALL.search(before):
        hint = "an aggregate takes the events of one variable: count(a[]), avg(a[].price), max(a[..i-1].price)"
        return "ACEP-Q010", hint
    if found == "{" and word and "COMPARISON" in possible:
        return "ACEP-Q018", did_you_mean(word[1].lower(), STRATEGIES) + "strategies are " + ", ".join(STRATEGIES)
    if "SOURCE" in possible and re.match(r"\s*[-=]+>?\s*\w", after):
        return "ACEP-Q001", "an arc is written with `->`: q0 -> q1 ON Tick t"
    if {"VBAR", "LETTER", "TILDE", "QMARK"} & possible or possible == {"NAME"}:
        return "ACEP-Q001", _pattern_mistake(found, before, possible)
    return "ACEP-Q001", _expression_mistake(found, before, after, possible)


def functions_hint(word: str, called: tuple[str, ...]) -> str:
    """Which functions there are, aggregates and those that are ``called``, where a word names none."""
    name, known = word.lower(), (*FUNCTIONS, "stddev", *called)
    meant = OTHER_NAMES.get(name)
    near = f"did you mean `{meant}`? " if meant in known else did_you_mean(name, known)
    given = "; from Python a function of your own can be given: compile_query(..., functions=[...])"
    return near + "functions are " + ", ".join(known) + (given if called else "")


def strategy_meant(word: str) -> Strategy | None:
    """The strategy that a word names, or nearly names."""
    near = get_close_matches(word.lower(), STRATEGIES, n=1, cutoff=0.85)
    return next((strategy for strategy in STRATEGIES if strategy in near), None)


def _about_strategy(found: str, before: str, possible: set[str]) -> str | None:
    """A hint where a strategy does not stand ahead of the conditions, or these not in its braces."""
    first, last = _STRATEGY_FIRST.search(before), LAST_WORD.search(before)
    word = found
    if found.upper() in ("AND", "OR") and first:
        word = first[1]
    elif found in "{(" and last and "COMPARISON" in possible and last[1].lower() in STRATEGIES:
        word = last[1]
    strategy = strategy_meant(word)
    return strategy and f"a strategy stands first, and the conditions in its braces: WHERE {strategy} {{ CONDITIONS }}"


def _frequent(found: str, before: str, after: str, possible: set[str]) -> str | None:  # noqa: PLR0911  one for each mistake
    """A hint on what people write who come from other languages, or whose data have other names than programs."""
    is_part = "TILDE" in possible and _AFTER_PART.search(before) is not None
    if is_part and found.upper() in ("NOT", "!"):
        return NO_EVENT
    if found == "~" and (word := LAST_WORD.search(before)) and word[1].upper() in GAP_WORDS:
        return f"a negation has no gap: write {word[1]} before the event that comes next, or ~(STRICT B b)"
    if is_part and found == "*":
        return "an event of any type is written Any: SEQ(Any a, Any b)"
    if is_part and found[0].isdigit():
        return f"a type that is no word stands in quotes: '{found}' a"
    if _ERRORS.search(before):
        return HOW_MANY
    if found == "," and re.search(r"\d$", before) and re.match(r"\d", after):
        return "the fraction of a number stands behind a point: 1.5"
    if found == "," and "OR" in possible and "_AS" not in possible:
        return "conditions are joined by AND or OR"
    if found.upper() in ("LIMIT", "ORDER", "GROUP") and "$END" in possible:
        return f"{found} is not in the language; acep run has --limit, and other tools sort and count its rows"
    return _quoted_name(found, before, after, possible)


def _quoted_name(found: str, before: str, after: str, possible: set[str]) -> str | None:
    """A hint where a name has signs or blanks that no word has."""
    rest = re.match(r"[^\],()]*", found + after)
    begun = re.search(r"\[([^\[\],]*)$", before)
    if begun is not None and rest is not None and "RSQB" in possible:
        return f"a name that is more than one word stands between `...`: [`{begun[1]}{rest[0].rstrip()}`]"
    field = re.search(r"\.(\w+ )$", before)
    if field is not None and found[0].isalpha() and re.match(r"\s*[=<>!]", after):
        return f"conditions are joined by AND or OR; a name of several words stands between `...`: `{field[1]}{found}`"
    kind = re.search(r"[(,|]\s*(\w+(?: \w+)?)\s*$", before)
    if kind is None or "TILDE" in possible or not _AFTER_PART.search(before[: kind.start(1)]):
        return None
    if " " in kind[1] and found[0].isalpha() and re.match(r"\s*[),|]", after):  # Order Placed a
        return f"parts are separated by `,`; a type of several words stands in quotes: '{kind[1]}' {found}"
    rest = re.match(r"([^\s(),|]+)\s+(\w+)", found + after)
    if rest is not None and found[0] in "-/:.":
        return f"a type that is no word stands in quotes: '{kind[1]}{rest[1]}' {rest[2]}"
    return None


def _misplaced_clause(clause: str, before: str, possible: set[str]) -> tuple[str, str]:
    if "RPAR" in possible or "RBRACE" in possible:
        return "ACEP-Q001", "a bracket is still open"
    if clause == "WEIGHTS":
        return "ACEP-Q006", "WEIGHTS follows the number of errors: ERRORS 1 WEIGHTS (b = 2)"
    if _CLAUSE_TERMINALS & possible or possible <= {"$END", "COMMA", "NAME", *_OPERATOR, "AND", "OR"}:
        order = ", ".join(clause for clause in CLAUSES if clause != "WEIGHTS")
        return "ACEP-Q006", f"each clause stands once, in this order: {order}"
    if before.rstrip().upper().endswith("PATTERN"):
        return "ACEP-Q001", "say what to look for: PATTERN SEQ(Shelf a, Exit b)"
    if "TILDE" not in possible and "FUNCTION" in possible:
        return "ACEP-Q001", f"a condition or a value is missing before {clause}"
    return "ACEP-Q001", f"{clause} is a reserved word; as a type, quote it: '{clause}' a"


def _pattern_mistake(found: str, before: str, possible: set[str]) -> str | None:  # noqa: PLR0911  one for each mistake
    component = re.search(r"([\w']+)\s+(\w+)\s*(\[\])?\s*$", before)
    if found.upper() in RESERVED and "LETTER" not in possible:
        return f"{found} is a reserved word; as a type, quote it: '{found}' a; as a variable, take another name"
    if "LETTER" in possible or re.fullmatch(r"[~\[\]^.$\\]", found):
        return "a bare regular expression has letters and ( ) | + * ? {m,n}; for types write PATTERN"
    if found[0] in "+*?{" and component:
        sign = found if found != "{" else "{2,3}"
        return f"the quantifier follows the type: `{component[1]}{sign} {component[2]}[]`"
    if found[0] in "+*?{":
        return "one quantifier each; for a repetition of a repetition use brackets: ((A a)+)*"
    if found in ",)|" and ("NAME" in possible and "TILDE" not in possible):
        return "a component is a type and a variable: `Shelf a`"
    if "COMMA" in possible and (found[0].isalpha() or found[0] in "_'~("):
        return "parts of a sequence are separated by `,`"
    if found in ("-", "->", ">", "&", "AND"):
        return "parts of a sequence are separated by `,`: SEQ(A a, B b)"
    return None


def _expression_mistake(found: str, before: str, after: str, possible: set[str]) -> str | None:  # noqa: PLR0911  one for each mistake
    if found.startswith(("<", ">", "=")) and before.endswith(("=", "<", ">")):
        wrong = before[-1] + found
        return f"write {wrong[::-1]} instead of {wrong}" if wrong in ("=>", "=<") else "write one comparison sign"
    if found == "|":
        return _ALTERNATIVE if _IN_ALL.search(before) else "write OR"
    if found[0] in "<>=!" and "AND" in possible:
        return "comparisons do not chain: write a.x < b.x AND b.x < c.x"
    if "_AS" in possible:
        return "every output needs a name: RETURN a.price AS price"
    if "AND" in possible and (found[0].isalnum() or found[0] in "_'([`"):
        return "conditions are joined by AND or OR"
    if found.upper() in RESERVED and "NAME" in possible:
        return f"{found} is a reserved word; write an attribute of that name as a.{found} or `{found}`"
    if "INT" in possible and not after.startswith("}"):
        return "repetitions are written {2}, {2,} or {2,3}"
    if found == ")" and "NUMBER" in possible and before.rstrip().endswith("("):
        return "the list may not be empty"
    if _AFTER_IN.search(before):
        return f"values stand in brackets: IN ({found}); a list is an attribute: b.ip IN a.ips"
    return None
