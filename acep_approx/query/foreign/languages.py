"""Recognise queries in other languages, and translate them: EQL, Flink CEP, Esper, Siddhi, Splunk, SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from acep_approx.query.foreign.conditions import NAMES, attribute_of, condition, length, parts, query, quoted
from acep_approx.query.foreign.match_recognize import match_recognize
from acep_approx.query.printer import field_name, is_name


@dataclass(frozen=True)
class Language:
    """Another language.

    Attributes
    ----------
    name : str
    sign : re.Pattern
        What tells it, in a text that is none of ours; its match is what is pointed at.
    translated : callable
        Queries of ours that say the same, the one that says most first.
    about : str
        What one has to know beside.
    is_sure : bool
        Whether the sign leaves no doubt, so that nothing is said of the words of ours that were expected.
    """

    name: str
    sign: re.Pattern[str]
    translated: Callable[[str], Iterator[str]]
    about: str = ""
    is_sure: bool = True


@dataclass(frozen=True)
class Step:
    """A part of a sequence.

    Attributes
    ----------
    type : str
        As a pattern has it: a name, a text in quotes, or ``ANY``.
    name : str
        The variable.
    condition : str
        In our words.
    quantifier : str
    is_absent : bool
        Whether no such event may come.
    """

    type: str
    name: str
    condition: str = ""
    quantifier: str = ""
    is_absent: bool = False

    def __str__(self) -> str:
        many = "[]" if self.quantifier not in ("", "?") else ""
        said = f"{self.type}{self.quantifier} {self.name}{many}"
        return f"~({said})" if self.is_absent else said


def type_name(word: str) -> str:
    """A type as a pattern has it, in quotes where it is no plain word."""
    return word if is_name(word) else quoted(word)


def sequence(steps: list[Step]) -> str:
    """The pattern of some steps."""
    return f"SEQ({', '.join(map(str, steps))})" if len(steps) > 1 else str(steps[0])


# --- EQL ----------------------------------------------------------------------------------------------------------

_ITEM = re.compile(
    r"(?P<no>!)?\[\s*(?P<type>[\w.\"]+)\s+where\s+(?P<said>[^\]]*)\](?:\s+by\s+(?P<by>[\w.@]+(?:\s*,\s*[\w.@]+)*))?"
    r"(?:\s+with\s+runs\s*=\s*(?P<runs>\d+))?",
    re.IGNORECASE,
)


def _eql(text: str) -> Iterator[str]:
    head, *until = re.split(r"\buntil\b", text, maxsplit=1, flags=re.IGNORECASE)
    begun = head[: head.index("[")] if "[" in head else head
    by = re.search(r"\bby\s+([\w.@]+(?:\s*,\s*[\w.@]+)*)", begun.rstrip("!"), re.IGNORECASE)
    span = re.search(r"\bmaxspan\s*=\s*(\d+)\s*(\w+)", begun, re.IGNORECASE)
    steps, keys, joined = [], [f"[{field_name(one)}]" for one in parts(by[1])] if by else [], []
    for name, item in zip(NAMES, _ITEM.finditer(head), strict=False):
        steps.append(_eql_step(item, name))
        if item["by"] and not item["no"]:
            joined.append([f"{name}.{field_name(one)}" for one in parts(item["by"])])
    if not steps:
        return
    of_all = {tuple(one.partition(".")[2] for one in some) for some in joined}
    if len(of_all) == 1:
        keys += [f"[{one}]" for one in of_all.pop()]
    else:
        keys += [f"{one} = {other}" for some in joined[1:] for one, other in zip(joined[0], some, strict=False)]
    if until and (end := _ITEM.search(until[0])):
        ends = [_eql_step(end, f"z{number}", is_absent=True) for number in range(1, len(steps))]
        steps = [step for pair in zip(steps, [*ends, None], strict=True) for step in pair if step is not None]
    window = length(span[1], span[2]) if span else ""
    for conditions in ([step.condition for step in steps], []):
        yield query(sequence(steps), [*keys, *conditions], window)


def _eql_step(item: re.Match[str], name: str, *, is_absent: bool = False) -> Step:
    word, runs = item["type"].strip('"'), int(item["runs"] or 1)
    said = item["said"].strip()
    about = "" if said.lower() == "true" else condition(said, attribute_of(f"{name}[i]" if runs > 1 else name, {}))
    kind = "ANY" if word.lower() == "any" else type_name(word)
    return Step(kind, name, about, f"{{{runs}}}" if runs > 1 else "", is_absent or item["no"] is not None)


# --- Esper and Siddhi: names, types and filters between arrows ----------------------------------------------------

_FILTERED = re.compile(
    r"(?P<no>not\s+)?(?:every\s+)?(?:(?P<name>\w+)\s*=\s*)?(?P<type>[\w.]+)\s*(?:[(\[](?P<said>.*?)[)\]])?\s*"
    r"(?P<count><\s*(?P<least>\d+)?\s*(?::\s*(?P<most>\d*))?\s*>|[+*?])?(?:\s+for\s+.*)?$",
    re.IGNORECASE | re.DOTALL,
)
_WITHIN = re.compile(r"\btimer\s*:\s*within\s*\(\s*(\d+)\s*(\w*)\s*\)|\bwithin\s+(\d+)\s*(\w+)", re.IGNORECASE)


def _arrows(pattern: str, window: str) -> Iterator[str]:
    pieces, names = [], {}
    for number, piece in enumerate(re.split(r"->", pattern)):
        bare = re.sub(r"^\s*every(-distinct\s*\([^)]*\))?\s*", "", piece.strip(), flags=re.IGNORECASE)
        if bare.lstrip().startswith("("):
            bare = bare.strip()[1:]
        bare = bare.strip().removesuffix(")" * max(0, bare.count(")") - bare.count("(")))
        item = _FILTERED.match(bare)
        if item is None:
            return
        name = item["name"] or NAMES[number]
        names[name] = name
        pieces.append((item, name))
    steps = []
    for item, name in pieces:
        said = ", ".join(parts(item["said"] or "")).replace(", ", " and ")
        count = item["count"] or ""
        if count.startswith("<"):
            most = item["most"] if ":" in count else item["least"]
            count = f"{{{item['least'] or 1}}}" if most == item["least"] else f"{{{item['least'] or 1},{most or ''}}}"
        own = f"{name}[i]" if count not in ("", "?") else name
        about = condition(said, attribute_of(own, names)) if said else ""
        steps.append(Step(type_name(item["type"]), name, about, count, item["no"] is not None))
    for conditions in ([step.condition for step in steps], []):
        yield query(sequence(steps), conditions, window)


def _window(text: str) -> str:
    found = _WITHIN.search(text)
    return length(found[1] or found[3], found[2] or found[4] or "s") if found else ""


def _esper(text: str) -> Iterator[str]:
    _, _, inner = text.partition("[")
    inner = inner.rpartition("]")[0] or inner
    yield from _arrows(re.split(r"\bwhere\s+timer\b", inner, flags=re.IGNORECASE)[0].strip(), _window(text))


def _siddhi(text: str) -> Iterator[str]:
    inner = re.split(r"\bfrom\b", text, maxsplit=1, flags=re.IGNORECASE)[1]
    inner = re.split(r"\b(?:within\s+\d|select\b|insert\b)", inner, maxsplit=1, flags=re.IGNORECASE)[0]
    yield from _arrows(inner, _window(text))


# --- Flink CEP ----------------------------------------------------------------------------------------------------

_METHOD = re.compile(r"\b(begin|next|followedBy|followedByAny|notNext|notFollowedBy)\s*\(\s*\"(\w+)\"[^)]*\)")
_EQUALS = re.compile(r"(?:equals\s*\(\s*|==\s*)\"([^\"]+)\"")
_COUNTS = re.compile(r"\.(oneOrMore|timesOrMore|times|optional)\s*\(\s*(\d*)\s*(?:,\s*(\d+))?\s*\)")
_SPAN = re.compile(r"\.within\s*\(.*?(?:Time|Duration)\.(\w+)\s*\(\s*(\d+)", re.DOTALL)


def _flink(text: str) -> Iterator[str]:
    found = list(_METHOD.finditer(text))
    ends = [*(one.start() for one in found[1:]), len(text)]
    steps = []
    for one, end in zip(found, ends, strict=True):
        said = text[one.end() : end]
        equal, count = _EQUALS.search(said), _COUNTS.search(said)
        steps.append(
            Step(type_name(equal[1]) if equal else "ANY", one[2], "", _flink_count(count), one[1].startswith("not"))
        )
    if not steps:
        return
    ways = {one[1] for one in found[1:]}
    strategy = "skip_till_next_match" if "followedBy" in ways else ""
    strategy = "strict_contiguity" if ways and ways <= {"next", "notNext"} else strategy
    span = _SPAN.search(text)
    yield query(sequence(steps), [], length(span[2], span[1]) if span else "", strategy=strategy)


def _flink_count(found: re.Match[str] | None) -> str:
    if found is None:
        return ""
    most = f",{found[3]}" if found[3] else ""
    return {"oneOrMore": "+", "optional": "?", "timesOrMore": f"{{{found[2]},}}"}.get(found[1], f"{{{found[2]}{most}}}")


# --- Splunk, SQL, and sequences without a word before them --------------------------------------------------------


def _splunk(text: str) -> Iterator[str]:
    said = re.search(r"\btransaction\s+([\w.,\s]+?)(?=\s+\w+\s*=|\s*\||\s*$)", text)
    if said is None:
        return
    ends = [re.search(rf"\b{word}\s*=\s*(\"[^\"]*\"|[\w.]+)", text) for word in ("startswith", "endswith")]
    kinds = [quoted(end[1]) if end else "ANY" for end in ends]
    span = re.search(r"\bmaxspan\s*=\s*(\d+)\s*(\w+)", text)
    keys = [f"[{field_name(one)}]" for one in re.split(r"[\s,]+", said[1].strip())]
    yield query(f"SEQ({kinds[0]} a, {kinds[1]} b)", keys, length(span[1], span[2]) if span else "")


def _select(text: str) -> Iterator[str]:
    said = re.search(r"\bwhere\b(.*?)(?:\b(?:group|order|limit|having)\b|;|$)", text, re.IGNORECASE | re.DOTALL)
    if said is not None:
        yield query("ANY a", [condition(said[1], attribute_of("a", {}))], "1 s")


_BETWEEN = r"\s*(?:->|=>|,|\bthen\b|\bfollowed\s+by\b)\s*"
_PART = r"(?:'[^']*'|[^\W\d][\w.-]*)(?:\s+(?!then\b|followed\b|within\b)[^\W\d]\w*)?"
_BARE = re.compile(rf"\s*{_PART}(?:{_BETWEEN}{_PART})+\s*(?:within\s+(\d+)\s*(\w+)\s*)?$", re.IGNORECASE)


def _bare(text: str) -> Iterator[str]:
    found = _BARE.match(text)
    if found is None:
        return
    words = re.split(r"\bwithin\b", text, maxsplit=1, flags=re.IGNORECASE)[0]
    steps = []
    for name, part in zip(NAMES, re.split(_BETWEEN, words.strip(), flags=re.IGNORECASE), strict=False):
        kind, _, given = part.strip().rpartition(" ")
        steps.append(Step(type_name((kind or given).strip("'")), given if kind else name))
    yield query(sequence(steps), [], length(found[1], found[2]) if found[1] else "10 s")


def _nothing(_: str) -> Iterator[str]:
    return iter(())


def _language(name: str, sign: str, translated: Callable[[str], Iterator[str]], about: str = "") -> Language:
    return Language(name, re.compile(sign, re.IGNORECASE), translated, about)


_STEPS = "events that come one after the other are PATTERN SEQ(A a, B b) WHERE [key] WITHIN 5 min"
_CONDITIONS = "conditions stand in WHERE, and are of a variable: a.price > 10"
_SQL = r"\bSELECT\b(?=.*\bFROM\b.*\b(?:WHERE|GROUP|ORDER|HAVING|JOIN|LIMIT)\b)"
LANGUAGES = (
    _language("MATCH_RECOGNIZE", r"\bMATCH_RECOGNIZE\b", match_recognize, _CONDITIONS),
    _language("EQL", r"^\s*(?:sequence|sample)\b(?=[^\[]*!?\[)", _eql, _CONDITIONS),
    _language("Flink CEP", r"\bPattern\s*\.\s*(?:<\w+>\s*)?begin\b", _flink, _CONDITIONS),
    _language("EPL of Esper", r"\bfrom\s+pattern\b", _esper, _CONDITIONS),
    _language("Siddhi", r"\bfrom\s+(?:every\s|\w+\s*=)(?=.*->|.*\bselect\b)", _siddhi, _CONDITIONS),
    _language("SPL of Splunk", r"^\s*(?:index\s*=|search\s+\S+=)|\|\s*transaction\b", _splunk, _STEPS),
    _language("KQL", r"^\s*\w+\s*\|\s*(?:where|summarize|extend|project|scan)\b", _nothing, _STEPS),
    replace(_language("SQL", _SQL, _select, _STEPS), is_sure=False),
    replace(_language("a sequence without PATTERN", rf"^{_BARE.pattern}", _bare, _STEPS), is_sure=False),
)
"""The more telling signs stand first."""


def language_of(text: str) -> tuple[Language, re.Match[str]] | None:
    """The other language that a text is in, and where that shows; None: in none that is known.

    Examples
    --------
    >>> language, _ = language_of("sequence by id with maxspan=5m [login where ok == false] [buy where price > 3]")
    >>> print(language.name, next(language.translated(_.string)), sep=": ")
    EQL: PATTERN SEQ(login a, buy b) WHERE [id] AND a.ok = FALSE AND b.price > 3 WITHIN 5 min
    """
    flat = text.replace("\n", " ")
    for language in LANGUAGES:
        if found := language.sign.search(flat):
            return language, found
    return None
