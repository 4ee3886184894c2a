"""Slips in a query that are plain enough to be repaired: the text as it was meant, for a hint."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from acep_approx.query.foreign.conditions import NAMES, UNITS, parts, quoted
from acep_approx.query.printer import field_name

_QUOTED = r"'(?:[^']|'')*'|`[^`]*`"
_ABSENT = "that no event comes in between is written with ~: SEQ(A a, ~(B b), C c)"
_FIELD = r"\w+(?:\[[^\]]*\])?\.(?:\w+|`[^`]*`)"
_STRATEGY = r"skip_till_any_match|skip_till_next_match|partition_contiguity|strict_contiguity"
_CLAUSE = r"WITHIN|SIMULTANEOUS|ERRORS|MAXIMAL|FIRST\s+MATCH|NON\s+OVERLAP|AFTER\s+MATCH|CONSUME|RETURN|PUBLISH"


@dataclass(frozen=True)
class Repair:
    """A slip, and its repair.

    Attributes
    ----------
    mend : callable
        The text without it.
    reason : str
        What is said of it; empty: what is said anyway is right.
    """

    mend: Callable[[str], str]
    reason: str = ""


def _outside(sign: str, by: str | Callable[[re.Match[str]], str]) -> Callable[[str], str]:
    """Puts something else for a sign, but not within quotes."""
    pattern = re.compile(f"({_QUOTED})|{sign}", re.IGNORECASE)

    def mend(text: str) -> str:
        return pattern.sub(lambda found: found[0] if found[1] else by(found) if callable(by) else by, text)

    return mend


def _replaced(sign: str, by: str | Callable[[re.Match[str]], str]) -> Callable[[str], str]:
    """Puts something else for a sign, wherever it stands."""
    pattern = re.compile(sign, re.IGNORECASE)
    return lambda text: pattern.sub(by, text)


def _in_pattern(sign: str, by: str) -> Callable[[str], str]:
    """The same, between PATTERN and the clause that follows."""
    mend_part = re.compile(sign, re.IGNORECASE)

    def mend(text: str) -> str:
        end = re.search(rf"\b(?:WHERE|{_CLAUSE})\b", text, re.IGNORECASE)
        place = end.start() if end else len(text)
        return mend_part.sub(by, text[:place]) + text[place:]

    return mend


def _keyed(found: re.Match[str]) -> str:
    return " AND ".join(f"[{field_name(name)}]" for name in parts(found["keys"]))


def _with_key(text: str) -> str:
    """A clause that names a key, as a condition."""
    sign = re.compile(r"\s+(?:PARTITION\s+BY|GROUP\s+BY|BY)\s+(?P<keys>[\w.]+(?:\s*,\s*[\w.]+)*)", re.IGNORECASE)
    found = sign.search(text)
    if found is None:
        return text
    rest = text[: found.start()] + text[found.end() :]
    where = re.search(r"\bWHERE\s+", rest, re.IGNORECASE)
    if where:
        return f"{rest[: where.end()]}{_keyed(found)} AND {rest[where.end() :]}"
    within = re.search(r"\s+WITHIN\b", rest, re.IGNORECASE)
    return f"{rest[: within.start()]} WHERE {_keyed(found)}{rest[within.start() :]}" if within else text


def _with_strategy(text: str) -> str:
    """A strategy among the conditions, or conditions behind its braces: it stands first, and all of them in braces."""
    found = re.search(rf"\bWHERE\b(?P<said>.*?)(?=\b(?:{_CLAUSE})\b|$)", text, re.IGNORECASE | re.DOTALL)
    strategy = found and re.search(rf"\b({_STRATEGY})\b(?!\s*\()", found["said"], re.IGNORECASE)
    if not found or not strategy:
        return text
    said = found["said"]
    others = [said[: strategy.start()], said[strategy.end() :].replace("{", " ").replace("}", " ")]
    stripped = [re.sub(r"^\s*AND\b|\bAND\s*$", "", one.strip(), flags=re.IGNORECASE).strip() for one in others]
    inside = " AND ".join(one for one in stripped if one)
    return f"{text[: found.start()]}WHERE {strategy[1]} {{ {inside} }} {text[found.end() :]}"


def _with_filters(text: str) -> str:
    """Conditions within the parts of a pattern, in WHERE."""
    sign = re.compile(r"\s+WHERE\s+([^,()]+?)(?=\s*[,)])", re.IGNORECASE)
    begun = re.search(r"\bSEQ\s*\(", text, re.IGNORECASE)
    end = re.search(r"\)\s*(?=WITHIN\b|WHERE\b)", text, re.IGNORECASE)
    if not begun or not end or begun.end() > end.start():
        return text
    inner = text[begun.end() : end.start() + 1]
    said = [found[1] for found in sign.finditer(inner)]
    rest = text[end.end() :]
    if not said:
        return text
    more = re.match(r"WHERE\s+", rest, re.IGNORECASE)
    behind = f" AND {rest[more.end() :]}" if more else f" {rest}"
    return f"{text[: begun.end()]}{sign.sub('', inner)} WHERE {' AND '.join(said)}{behind}"


def _with_names(text: str) -> str:
    """Names for the parts of a pattern that have only a type."""
    begun = re.search(r"\bSEQ\s*\(", text, re.IGNORECASE)
    end = re.search(rf"\)\s*(?=\b(?:WHERE|{_CLAUSE})\b)", text, re.IGNORECASE)
    if not begun or not end or begun.end() > end.start():
        return text
    inner = text[begun.end() : end.start()]
    free = (name for name in NAMES if not re.search(rf"\b{name}\b", text))
    named = []
    for part in parts(inner):
        bare = re.fullmatch(r"(\w+|'[^']*'|\*)([+*?]|\{[\d,]+\})?", part)
        many = "[]" if bare and bare[2] not in (None, "?") else ""
        kind = bare and f"{'ANY' if bare[1] == '*' else bare[1]}{bare[2] or ''}"
        named.append(f"{kind} {next(free, 'x')}{many}" if bare else part)
    return f"{text[: begun.end()]}{', '.join(named)}{text[end.start() :]}"


def _moved(text: str) -> str:
    """WHERE ahead of WITHIN."""
    found = re.fullmatch(r"(.*?)\s+(WITHIN\s+\d+(?:\.\d+)?(?:\s*\w+)?)\s+(WHERE\s.*)", text, re.IGNORECASE | re.DOTALL)
    return f"{found[1]} {found[3]} {found[2]}" if found else text


def _span(found: re.Match[str]) -> str:
    """A time of day as a length: ``00:10:00`` is ``600 s``."""
    hours, minutes, seconds = int(found[2]), int(found[3]), int(found[4] or 0)
    total = 3600 * hours + 60 * minutes + seconds
    return f"WITHIN {total // 60} min" if total % 60 == 0 else f"WITHIN {total} s"


def _compound(found: re.Match[str]) -> str:
    """``1h30m`` as one number and one unit."""
    sizes = {"d": 86_400, "h": 3600, "min": 60, "s": 1}
    found_pieces = re.findall(r"(\d+)\s*([a-z]+)", found[2], re.IGNORECASE)
    pieces = [(int(number), UNITS.get(unit.lower())) for number, unit in found_pieces]
    if any(unit not in sizes for _, unit in pieces):
        return found[0]
    total = sum(number * sizes[unit] for number, unit in pieces if unit)
    unit = next(name for name, size in sizes.items() if total % size == 0)
    return f"WITHIN {total // sizes[unit]} {unit}"


def _as_its_name(found: re.Match[str]) -> str:
    """``a.user`` as an output: ``a.user AS user``."""
    return f" {found[1]} AS {found[1].rpartition('.')[2]}"


def _without_keys(text: str) -> str:
    """What is returned without the keys of the query: ``WHERE [user] ... RETURN user, b.x``; the rest has its names."""
    returned = re.search(r"\s*\bRETURN\s+([^()]+?)\s*$", text, re.IGNORECASE)
    if returned is None:
        return text
    keys = {key.strip() for found in re.findall(r"\[([\w\s,]+)\]", text) for key in found.split(",")}
    outputs = [one.strip() for one in returned[1].split(",")]
    others = [re.sub(rf"^({_FIELD})$", _as_its_name, one).strip() for one in outputs if one not in keys]
    if len(others) == len(outputs):
        return text
    return text[: returned.start()] + (f" RETURN {', '.join(others)}" if others else "")


_SEPARATED = "parts of a sequence are separated by `,`, as in SEQ(A a, B b)"
_TYPE_FIRST = "the type comes first, then the name: A a"
_KEY = "that all events have the same value is a condition: WHERE [key]"
_LENGTH = "a length is a number and a unit"
_MATCHES = "a regular expression is a function: matches(a.name, 'x.*')"
_MATCHED = r"matches(\1, \2)"
_ROWS = "a match is one row; --output events (event_tables() in Python) gives a row for each of its events"
_STAR = "the columns that the query names are shown without RETURN; --bind adds others"
REPAIRS = (
    Repair(_in_pattern(r"\s*(?:->|=>|>>|\bfollowed\s*by\b|\bthen\b)\s*", ", "), _SEPARATED),
    Repair(_in_pattern(r"\s*;\s*", ", ")),
    Repair(_in_pattern(r"\b([^\W\d]\w*)\s*[:=]\s*(\w+|'[^']*')", r"\2 \1"), _TYPE_FIRST),
    Repair(_in_pattern(r"(?<=[\w'])\s+AS\s+(?=\w)", " "), _TYPE_FIRST),
    Repair(_in_pattern(r"\bevery\s+(?=\w)", ""), "every match is listed anyway: leave `every` out"),
    Repair(_in_pattern(r"(?:\bNOT\s+|!\s*)\(?\s*(\w+)\s+(\w+)\s*\)?(?=\s*[,)])", r"~(\1 \2)"), _ABSENT),
    Repair(_in_pattern(r"\b(\w+)\s+(\w+)([+*?]|\{[\d,]+\})(?=\s*[,)])", r"\1\3 \2[]")),
    Repair(_with_names),
    Repair(_outside(r"^\s*EVENT\b(?=\s+(?:SEQ\b|\())", "PATTERN"), "EVENT of SASE is PATTERN here"),
    Repair(_outside(r"^(?=\s*SEQ\s*\()", "PATTERN "), "a query with types starts with PATTERN"),
    Repair(_outside(r"&&", " AND ")),
    Repair(_outside(r"\|\|", " OR ")),
    Repair(_replaced(r'"([^"]*)"', lambda found: quoted(found[0]))),
    Repair(_outside(r"(?<=\))\s*AND\b(?=.*\bWITHIN\b)", " WHERE"), "conditions stand behind WHERE"),
    Repair(_with_strategy, "a strategy stands first, and the conditions in its braces"),
    Repair(_with_key, _KEY),
    Repair(_with_filters, "conditions stand behind the pattern, in WHERE"),
    Repair(_moved),
    Repair(_outside(r"\bIN\s*\[([^\]]*)\]", lambda found: f"IN ({found[2]})"), "a list of values stands in ( )"),
    Repair(_outside(r"\bIS\s+(TRUE|FALSE)\b", lambda found: f"= {found[2]}"), "IS is for NULL alone"),
    Repair(_outside(r"\b(BETWEEN\s+\S+)\s+TO\b", lambda found: f"{found[2]} AND"), "a range is BETWEEN 3 AND 5"),
    Repair(_replaced(rf"({_FIELD})\s*(?:=~|\bREGEXP?\b|\bRLIKE\b)\s*('[^']*')", _MATCHED), _MATCHES),
    Repair(_replaced(r"\bINTERVAL\s*'(\d+)'\s*(\w+)", r"\1 \2"), _LENGTH),
    Repair(_replaced(r"\bWITHIN\s*['(]\s*(\d+(?:\.\d+)?\s*\w*)\s*[')]", r"WITHIN \1"), _LENGTH),
    Repair(_outside(r"\bWITHIN\s+(\d+):(\d\d)(?::(\d\d))?", _span), _LENGTH),
    Repair(_outside(r"\bWITHIN\s+(\d+\s*[a-z]+\s*\d+\s*[a-z]+)", _compound)),
    Repair(_outside(r"\bWITHIN\s+(\d+)\s*m\b", lambda found: f"WITHIN {found[2]} min")),
    Repair(_outside(r"\bMAXSPAN\s*=?\s*", "WITHIN "), "the longest time that a match may take is WITHIN"),
    Repair(_outside(r"\s*;\s*$", ""), "a text holds one query, without a semicolon"),
    Repair(_outside(r"\s+(?:ALL\s+ROWS|ONE\s+ROW)\s+PER\s+MATCH\b", ""), _ROWS),
    Repair(_outside(r"\bPAST\s+LAST\s+EVENT\b", "PAST LAST ROW")),
    Repair(_outside(r"(?<=\bRETURN)\s+\*", ""), _STAR),
    Repair(_outside(r"\bSELECT\b(?!.*\bFROM\b)", "RETURN"), "what a match shows stands behind RETURN"),
    Repair(_without_keys, "a key is shown without RETURN"),
    Repair(_replaced(rf"(?:(?<=RETURN)|(?<=,))\s*({_FIELD})(?=\s*(?:,|$))", _as_its_name)),
)
"""Some of them lead to texts that can be read, together or alone."""


def repaired(text: str) -> Iterator[tuple[str, str]]:
    """Texts that may have been meant, with what is to be said of them: one repair alone, then several.

    Examples
    --------
    >>> next(repaired("PATTERN SEQ(A a -> B b) WITHIN 5"))[0]
    'PATTERN SEQ(A a, B b) WITHIN 5'
    """
    useful = [place for place, repair in enumerate(REPAIRS) if repair.mend(text) != text]
    seen = {text}
    for chain in (*(REPAIRS[place : place + 1] for place in useful), *(REPAIRS[place:] for place in useful)):
        made, reasons = text, []
        for repair in chain:
            before, made = made, repair.mend(made)
            if made != before and repair.reason:
                reasons.append(repair.reason)
            if made not in seen:
                seen.add(made)
                yield _tidy(made), "; ".join(dict.fromkeys(reasons))


def _tidy(text: str) -> str:
    """Without the blanks and the empty clauses that repairs leave."""
    text = re.sub(r"\s+RETURN\s*$", "", text, flags=re.IGNORECASE)
    return "\n".join(re.sub(r"(?<=\S) {2,}", " ", line).strip() for line in text.strip().split("\n"))
