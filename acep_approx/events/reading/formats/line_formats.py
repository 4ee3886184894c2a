"""How a line of a log is written: a regular expression with named groups, a template, or a name of a common one."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.errors import UsageError

_TIME = (
    r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)? ?(?:Z|UTC|[+-]\d\d:?\d\d)?"
    r"|\d{1,2}[./-]\w{2,3}[./-]\d{4}[ :,]+\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?[AaPp][Mm])?(?: [+-]\d{4})?"
    r"|[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d"
    r"|\S+"
)
"""Times as they stand in logs: some have blanks in them."""
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
        r"(?:<(?P<priority>\d{1,3})>)?(?P<time>[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d) (?P<host>\S+) "
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


def line_pattern(given: str) -> str:
    r"""A format of lines as a regular expression with named groups, which RE2 reads.

    Parameters
    ----------
    given : str
        A name of ``READY``; or a template such as ``{time} [{level}] {message}``; or a regular expression with groups
        ``(?P<name>...)``. It stands for the whole line.

    Raises
    ------
    UsageError
        ``ACEP-U120``: it is none of them, or no regular expression of RE2, or two groups have one name.

    Examples
    --------
    >>> line_pattern("{host} [{level}] {message}")
    '(?P<host>\\S+)\\ \\[(?P<level>[^\\]]*)\\]\\ (?P<message>.*)'
    """
    found = READY.get(given)
    if found is None:
        found = given if "(?P<" in given else _of_template(given)
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


def _of_template(given: str) -> str:
    names = _PIECE.findall(given)
    if not names:
        raise _no_format(given, "nothing in it has a name")
    pattern, place = "", 0
    for found in _PIECE.finditer(given):
        pattern += re.escape(given[place : found.start()])
        place = found.end()
        pattern += f"(?P<{found[1]}>{_piece(found[1], given[place : place + 1])})"
    return pattern + re.escape(given[place:])


def _piece(name: str, after: str) -> str:
    """What a name of a template stands for: text up to what follows."""
    if not after:
        return ".*"
    if after in "]\")'|;,>":
        return rf"[^{re.escape(after)}]*"
    return _TIME if name in ("time", "ts", "timestamp") else r"\S+"


def _no_format(given: str, reason: str) -> UsageError:
    return UsageError(
        f"{given!r} is no format of lines: {reason}",
        code="ACEP-U120",
        hint=f"write {', '.join(READY)}; or a template '{{time}} {{level}} {{message}}'; "
        r"or a regular expression with groups such as '(?P<host>\S+) (?P<message>.*)'",
    )
