"""``MATCH_RECOGNIZE`` of SQL as a query of ours: its rows stand one behind the other, and a match is the longest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from acep_approx.query.foreign.conditions import condition, length, parts, query
from acep_approx.query.printer import field_name

_CLAUSE = (
    r"PARTITION\s+BY|ORDER\s+BY|MEASURES|ONE\s+ROW\s+PER\s+MATCH|ALL\s+ROWS\s+PER\s+MATCH|AFTER\s+MATCH|PATTERN|SUBSET|"
    r"DEFINE|WITHIN"
)
_CLAUSES = re.compile(rf"\b({_CLAUSE})\b", re.IGNORECASE)
_SYMBOL = re.compile(r"\s*(?:(\w+)|([()|]))\s*(\{[^}]*\}|[+*?])?\??")
_CALL = re.compile(r"\b(PREV|FIRST|LAST)\s*\(\s*([\w.]+)\s*(?:,\s*1\s*)?\)", re.IGNORECASE)
_INTERVAL = re.compile(r"INTERVAL\s*'(\d+)'\s*(\w+)", re.IGNORECASE)
SKIP = "MAXIMAL AFTER MATCH SKIP PAST LAST ROW"
"""What lists the matches that SQL lists by default."""


@dataclass
class _Rows:
    """The symbols of a pattern, in order, with their quantifiers."""

    pattern: str
    quantifiers: dict[str, str]

    @classmethod
    def read(cls, text: str) -> _Rows | None:
        """Read what stands behind PATTERN; None: more than symbols, brackets and alternatives."""
        made, quantifiers, place, is_behind = "", {}, 0, False
        text = text.strip()
        while place < len(text):
            found = _SYMBOL.match(text, place)
            if found is None:
                return None
            name, sign, quantifier = found[1], found[2], found[3] or ""
            made += ", " if is_behind and (name or sign == "(") else ""
            if name:
                is_many = quantifier not in ("", "?")
                quantifiers[name] = quantifier
                made += f"ANY{quantifier} {name}{'[]' if is_many else ''}"
            else:
                made += {"(": "(", ")": f"){quantifier}", "|": " | "}[sign]
            is_behind, place = bool(name) or sign == ")", found.end()
        return cls(f"SEQ{made}" if made.startswith("(") and made.endswith(")") else made, quantifiers)

    def is_many(self, name: str) -> bool:
        return self.quantifiers.get(name, "") not in ("", "?")

    def before(self, name: str) -> str | None:
        """The symbol before one, if an event of it is always there."""
        names = list(self.quantifiers)
        place = names.index(name) - 1
        found = names[place] if place >= 0 else None
        return found if found and self.quantifiers[found][:1] not in ("*", "?") else None

    def last(self, name: str, attribute: str) -> str:
        """An attribute of the last row of a symbol."""
        row = f"{name}[{name}.LEN]" if self.is_many(name) else name
        return f"{row}.{field_name(attribute)}"


def match_recognize(text: str) -> Iterator[str]:
    """Queries of ours that say the same, the one that says most first; they may have to be completed.

    Parameters
    ----------
    text : str
        A query with ``MATCH_RECOGNIZE (...)``.

    Examples
    --------
    >>> inner = "PARTITION BY s PATTERN (A B+) DEFINE B AS B.price < PREV(B.price)"
    >>> print(next(match_recognize(f"SELECT * FROM t MATCH_RECOGNIZE ({inner})")).split(" WITHIN")[0])
    PATTERN SEQ(ANY A, ANY+ B[]) WHERE partition_contiguity {[s] AND B[i].price < B[i-1].price AND B[1].price < A.price}
    """
    clauses = _clauses(text)
    rows = _Rows.read(clauses.get("PATTERN", ""))
    if rows is None or not rows.quantifiers:
        return
    keys = [f"[{field_name(name.rpartition('.')[2])}]" for name in parts(clauses.get("PARTITION BY", "")) if name]
    window = _INTERVAL.search(clauses.get("WITHIN", ""))
    span = length(window[1], window[2]) if window else ""
    strategy = "partition_contiguity" if keys else "strict_contiguity"
    defined = [*_definitions(clauses.get("DEFINE", ""), rows)]
    outputs = ", ".join(_outputs(clauses.get("MEASURES", ""), rows))
    for conditions, returned in ((defined, outputs), (defined, ""), ([], "")):
        more = f"{SKIP} RETURN {returned}" if returned else SKIP
        yield query(rows.pattern, [*keys, *conditions], span, strategy=strategy, more=more)


def _clauses(text: str) -> dict[str, str]:
    """What stands behind each word of ``MATCH_RECOGNIZE``."""
    begun = re.search(r"MATCH_RECOGNIZE\s*\(", text, re.IGNORECASE)
    inner = text[begun.end() :] if begun else ""
    depth = 1
    for place, sign in enumerate(inner):
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            inner = inner[:place]
            break
    found = list(_CLAUSES.finditer(inner))
    ends = [*(one.start() for one in found[1:]), len(inner)]
    said = (inner[one.end() : end].strip() for one, end in zip(found, ends, strict=True))
    return {" ".join(one[1].upper().split()): text for one, text in zip(found, said, strict=True)}


def _definitions(text: str, rows: _Rows) -> Iterator[str]:
    for piece in parts(text):
        found = re.fullmatch(r"(\w+)\s+AS\s+(.+)", piece, re.IGNORECASE | re.DOTALL)
        if found is None or found[1] not in rows.quantifiers:
            continue
        yield _said(found[2], found[1], rows, is_first=False)
        if rows.is_many(found[1]) and re.search(r"\bPREV\s*\(", found[2], re.IGNORECASE):
            yield _said(found[2], found[1], rows, is_first=True)


def _said(text: str, own: str, rows: _Rows, *, is_first: bool) -> str:
    """The condition of a symbol; ``is_first``: on the first of its rows, whose row before is of another symbol."""
    many = rows.is_many(own)
    here = f"{own}[{'1' if is_first else 'i'}]" if many else own
    before = rows.before(own)

    def called(found: re.Match[str]) -> str:
        name, attribute = _split(found[2], own, rows)
        word = found[1].upper()
        if word == "PREV" and many and not is_first:
            return f"{own}[i-1].{attribute}"
        if word == "PREV":
            return rows.last(before, attribute) if before else found[0]
        if word == "FIRST" and rows.is_many(name):
            return f"{name}[1].{attribute}"
        return f"{here}.{attribute}" if name == own else rows.last(name, attribute)

    def meant(name: str) -> str:
        symbol, attribute = _split(name, own, rows)
        return f"{here}.{field_name(attribute)}" if symbol == own else rows.last(symbol, attribute)

    return condition(_CALL.sub(called, text), meant)


def _split(name: str, own: str, rows: _Rows) -> tuple[str, str]:
    """A symbol and its attribute; a bare attribute is of the symbol that is defined."""
    symbol, _, attribute = name.partition(".")
    return (symbol, attribute) if attribute and symbol in rows.quantifiers else (own, name)


def _outputs(text: str, rows: _Rows) -> Iterator[str]:
    first = next(iter(rows.quantifiers))

    def called(call: re.Match[str]) -> str:
        symbol, attribute = _split(call[2], first, rows)
        if call[1].upper() == "FIRST" and rows.is_many(symbol):
            return f"{symbol}[1].{attribute}"
        return rows.last(symbol, attribute)

    for piece in parts(text):
        found = re.fullmatch(r"(.+?)\s+AS\s+(\w+)", piece, re.IGNORECASE | re.DOTALL)
        if found is not None:
            value = condition(_CALL.sub(called, found[1]), lambda name: rows.last(*_split(name, first, rows)))
            yield f"{value} AS {found[2]}"
