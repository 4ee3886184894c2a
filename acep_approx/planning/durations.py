"""Lengths of time that are asked for beside a query: their texts, and what they are in ticks of the events."""

from __future__ import annotations

from acep_approx.errors import AcepError, DataError, UsageError
from acep_approx.events.time import LIMIT
from acep_approx.query.parser import parse_window
from acep_approx.query.syntax import MICROSECONDS

Duration = str | int
"""Such as ``"10 s"``; a bare number is in ticks."""


def in_ticks(name: str, given: Duration, *, is_time: bool) -> int:
    """The length of time that was given for an argument, in ticks.

    Raises
    ------
    UsageError
        ``ACEP-U056``: it is none.
    DataError
        ``ACEP-D073``: it has a unit and the times have none, or the other way round.
    """
    amount, unit = _window(name, given)
    if (unit == "ticks") == is_time:
        option = f"--{name.replace('_', '-')}"
        plain = f"write {option} {amount:g} ({name}= in Python), or say what times count: --unit (unit=)"
        what = "has no unit, and the times of the events are real" if is_time else "has a unit, and times have none"
        raise DataError(
            f"{name}={given!r} {what}",
            code="ACEP-D073",
            hint=f"write {option} '{amount:g} s' ({name}= in Python)" if is_time else plain,
        )
    return min(round(amount) if unit == "ticks" else round(amount * MICROSECONDS[unit]), LIMIT)


def check_duration(name: str, given: Duration) -> None:
    """Refuse what is no length of time (``ACEP-U056``)."""
    _window(name, given)


def _window(name: str, given: Duration) -> tuple[float, str]:
    try:
        if not isinstance(given, bool):
            window = parse_window(str(given))
            is_whole = window.unit != "ticks" or float(window.amount).is_integer()
            if window.unit != "events" and window.amount >= 0 and is_whole:
                return float(window.amount), window.unit
    except AcepError:
        pass
    words = "'final', 'early', or a length of time" if name == "emit" else "a length of time"
    raise UsageError(f"{name} is {given!r}", code="ACEP-U056", hint=f"it is {words}: '10 s', or 5 in ticks")
