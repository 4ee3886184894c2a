"""How a line of a log is written: a regular expression with named groups, a template, or a name of a common one."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.errors import UsageError
from acep_approx.events.time_formats import TimeFormat

_TIME = (
    r"\d{4}[-/]\d\d[-/]\d\d(?:T| +)\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)? ?(?:Z|UTC|[+-]\d\d:?\d\d)?"
    r"|\d{1,2}[./-]\w{2,3}[./-]\d{4}[ :,]+\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?[AaPp][Mm])?(?: [+-]\d{4})?"
    r"|[A-Z][a-z]{2} +\d{1,2} +\d\d:\d\d:\d\d"
    r"|[A-Z][a-z]{2},? +[A-Z][a-z]{2} +\d{1,2} +\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: [A-Z+-][A-Z\d]{1,4})? \d{4}"
    r"|\d{1,2}[-./]\d{1,2}(?:[-./]\d\d)? +\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?"
    r"|\d{8}[ -]+\d\d:\d\d(?::\d\d(?:[.,:]\d{1,9})?)?"
)
"""Times as they stand in logs: some have blanks in them."""
_ZONE = r"(?: (?:Z|[A-Z]{3,5}))?"
TIMES = ("time", "ts", "timestamp", "datetime", "event_time")
DAYS = ("date", "datum")
"""Names of a template that stand for a time, and for a day."""
_APACHE = (
    r"(?P<host>\S+) \S+ (?P<user>\S+) \[(?P<time>[^\]]+)\] "
    r'"(?:(?P<method>[A-Z]+) (?P<path>\S+)(?: (?P<protocol>[^" ]+))?|[^"]*)"'
    r" (?P<status>\d{3}) (?P<size>\d+|-)"
)
_AGENT = r' "(?P<referer>(?:[^"\\]|\\.)*)" "(?P<agent>(?:[^"\\]|\\.)*)"'
READY = {
    "common": _APACHE,
    "combined": _APACHE + _AGENT,
    "apache": _APACHE + f"(?:{_AGENT})?.*",
    "syslog": (
        r"(?:<(?P<priority>\d{1,3})>)?(?P<time>[A-Z][a-z]{2} +\d{1,2} +\d\d:\d\d:\d\d) +(?P<host>\S+) +"
        r"(?P<app>[^\s:\[]+)(?:\[(?P<pid>\d+)\])?: ?(?P<message>.*)"
    ),
    "syslog5424": (
        r"<(?P<priority>\d{1,3})>\d+ (?P<time>\S+) (?P<host>\S+) (?P<app>\S+) (?P<pid>\S+) (?P<kind>\S+) "
        r"(?:-|(?P<data>\[.*?\])) ?(?P<message>.*)"
    ),
}
"""Formats by name. ``apache`` takes the lines of ``common`` and of ``combined``."""
TOLD = ("apache", "syslog", "syslog5424")
"""Those that lines are tried with."""
TOLD_BY = 5
"""Lines that are tried."""
_PIECE = re.compile(r"\{(\w+)\}")


def line_pattern(given: str, said: TimeFormat | None = None) -> str:
    r"""A format of lines as a regular expression with named groups, which RE2 reads.

    Parameters
    ----------
    given : str
        A name of ``READY``; or a template such as ``{time} [{level}] {message}``; or a regular expression with groups
        ``(?P<name>...)``. It stands for the whole line.
    said : TimeFormat, optional
        How the times are written, as far as it is said; for a template.

    Raises
    ------
    UsageError
        ``ACEP-U120``: it is none of them, or no regular expression of RE2, or two groups have one name.

    Examples
    --------
    >>> line_pattern("{host} [{level}] {message}")
    '(?P<host>\\S+)[ \\t]+\\[(?P<level>[^\\]]*)\\][ \\t]+(?P<message>.*)'
    """
    found = READY.get(given)
    if found is None:
        found = given if "(?P<" in given else _of_template(given, said)
    try:
        names = [field.name for field in pc.extract_regex(pa.nulls(1, pa.string()), pattern=found).type]
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        raise _no_format(given, str(error)) from error
    if twice := [name for name in names if names.count(name) > 1]:
        raise _no_format(given, f"two groups are named {twice[0]!r}")
    return found


def likely_line_format(start: bytes) -> str:
    r"""The name of the format that all of the first lines of a log have; empty where there is none.

    Examples
    --------
    >>> likely_line_format(b"Mar 28 09:30:00 web sshd[7]: accepted\nMar 28 09:31:00 web cron: done\n")
    'syslog'
    """
    lines = [line.decode(errors="replace") for line in start.splitlines()[:TOLD_BY] if line.strip()]
    fitting = (name for name in TOLD if all(re.fullmatch(READY[name], line) for line in lines))
    return next(fitting, "") if lines else ""


def _of_template(given: str, said: TimeFormat | None) -> str:
    names = _PIECE.findall(given)
    if not names:
        raise _no_format(given, "nothing in it has a name")
    is_day = said is not None and said.text is not None and not re.search("%[HITR]", said.text)
    time = _time_of(names, is_day=is_day)
    pattern, place = "", 0
    for found in _PIECE.finditer(given):
        pattern += _between(given[place : found.start()])
        place = found.end()
        text = _text_before(given[place : place + 1])
        if found[1] == time and said is not None and said.text is not None:
            text = said.pattern
        elif found[1].lower() in (*TIMES, *DAYS):
            text = _time_before(text)
        pattern += f"(?P<{found[1]}>{text})"
    return pattern + _between(given[place:])


def _time_of(names: list[str], *, is_day: bool) -> str | None:
    """The name that stands for the time; of a day and a time of day for the day, if it is said how days are written."""
    days, times = ([name for name in names if name.lower() in known] for known in (DAYS, TIMES))
    return next(iter([*(days if is_day else []), *times, *days]), None)


def _between(text: str) -> str:
    """What stands between names: as many blanks as there are, where it has one."""
    return re.sub(r"(?:\\ |\\\t)+", r"[ \\t]+", re.escape(text))


def _text_before(after: str) -> str:
    """Text up to what follows."""
    if not after:
        return ".*"
    return rf"[^{re.escape(after)}]*" if after in "]\")'|;,>" else r"\S+"


def _time_before(text: str) -> str:
    """A time as times look; else text with a digit in it, at its begin where a blank ends it."""
    digits = r"[\[(<\"']?[+-]?\d\S*" if text == r"\S+" else rf"{text}\d{text}"
    return f"(?:{_TIME}){_ZONE}|{digits}"


def _no_format(given: str, reason: str) -> UsageError:
    return UsageError(
        f"{given!r} is no format of lines: {reason}",
        code="ACEP-U120",
        hint=f"write {', '.join(READY)}; or a template '{{time}} {{level}} {{message}}'; "
        r"or a regular expression with groups such as '(?P<host>\S+) (?P<message>.*)'",
    )
