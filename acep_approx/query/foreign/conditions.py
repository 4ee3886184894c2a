"""Conditions of other languages in the words of ours: signs, quotes, and whose attribute a name is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from acep_approx.query.printer import field_name

_TOKEN = re.compile(
    r"""(?P<ours>[^\W\d]\w*\[[^\]]*\]\.(?:\w+|`[^`]*`))|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<name>[^\W\d][\w@]*(?:\.[\w@]+)*)|(?P<sign>==|&&|\|\||!=|<>|<=|>=|!)"""
    r"""|(?P<rest>\s+|\d+(?:\.\d+)?|.)""",
    re.DOTALL,
)
_WORDS = frozenset(("and", "or", "not", "in", "like", "is", "null", "true", "false", "between"))
_SIGNS = {"==": "=", "&&": "AND", "||": "OR", "!": "NOT "}
NAMES = "abcdefghjklmnopqrstuvwxyz"
"""Variables for what has no name of its own; ``i`` is an index."""
UNITS = {
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds", "millis", "ofmillis"), "ms"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds", "ofseconds"), "s"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes", "ofminutes"), "min"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours", "ofhours"), "h"),
    **dict.fromkeys(("d", "day", "days", "ofdays"), "d"),
}
"""Units of other languages, which mean minutes by ``m``."""


def quoted(text: str) -> str:
    r"""A text in the quotes of ours, whatever quotes it has.

    Examples
    --------
    >>> quoted('"a b"'), quoted("a b")
    ("'a b'", "'a b'")
    """
    inner = text[1:-1].replace('\\"', '"').replace("''", "'") if text[:1] in ("'", '"') else text
    return "'" + inner.replace("'", "''") + "'"


def length(amount: str, unit: str) -> str:
    """A window: ``length("5", "m")`` is ``5 min``; empty where there is no such unit."""
    known = UNITS.get(unit.lower())
    return f"{amount} {known}" if known else ""


def condition(text: str, attribute: Callable[[str], str]) -> str:
    """A condition in our words; ``attribute`` says what a name means. Attributes with an index are ours already.

    Examples
    --------
    >>> condition('name == "x" && e1.price >= 3', lambda name: name if "." in name else f"e2.{name}")
    "e2.name = 'x' AND e1.price >= 3"
    """
    made = []
    for found in _TOKEN.finditer(text):
        kind, word = found.lastgroup, found[0]
        if kind == "text":
            made.append(quoted(word))
        elif kind == "sign":
            made.append(_SIGNS.get(word, word))
        elif kind == "name" and word.lower() in _WORDS:
            made.append(word.upper())
        elif kind == "name" and not re.match(r"\s*\(", text[found.end() :]):
            made.append(attribute(word))
        else:
            made.append(word)
    return " ".join("".join(made).split())


def attribute_of(own: str, known: dict[str, str]) -> Callable[[str], str]:
    """What a name means in a condition on ``own``: another variable's attribute, or one of its own.

    Parameters
    ----------
    own : str
        The variable, as it stands here.
    known : dict
        Names of variables as they were written, with what they are called here.
    """

    def meant(name: str) -> str:
        first, _, rest = name.partition(".")
        return f"{known[first]}.{field_name(rest)}" if rest and first in known else f"{own}.{field_name(name)}"

    return meant


def parts(text: str, separator: str = ",") -> Iterator[str]:
    """Pieces of a text between separators that stand in no brackets and no quotes.

    Examples
    --------
    >>> list(parts("a, f(b, c), 'd, e'"))
    ['a', 'f(b, c)', "'d, e'"]
    """
    depth, begin, quote = 0, 0, ""
    for place, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        elif depth == 0 and text.startswith(separator, place):
            yield text[begin:place].strip()
            begin = place + len(separator)
    yield text[begin:].strip()


def query(pattern: str, conditions: list[str], window: str, *, strategy: str = "", more: str = "") -> str:
    """A text of ours from its pieces; those that are empty are left out."""
    where = " AND ".join(f"({one})" if re.search(r"\bOR\b", one) else one for one in conditions if one)
    if strategy:
        where = f"{strategy} {{{where}}}" if where else strategy
    clauses = (f"PATTERN {pattern}", f"WHERE {where}" if where else "", f"WITHIN {window or '1 h'}", more)
    return " ".join(clause for clause in clauses if clause)
