"""Lengths of time in the words of Spark; users write them in the same words as for a run on one machine."""

from __future__ import annotations

import re

from acep_approx.errors import DataError, UsageError
from acep_approx.planning.durations import Duration, check_duration, in_ticks

_PART = r"(?:\d+(?:\.\d+)?\s+seconds?|\d+\s+(?:year|month|week|day|hour|minute|millisecond|microsecond)s?)"
_OF_SPARK = re.compile(rf"(?:interval\s+)?{_PART}(?:\s+{_PART})*", re.IGNORECASE)
"""Such as ``1 minute 30 seconds``, which only Spark reads."""


def check_watermark(given: Duration) -> None:
    """Refuse a watermark that is no length of time (``ACEP-U056``)."""
    if not _only_of_spark("watermark", given):
        check_duration("watermark", given)


def delay(given: Duration, *, is_time: bool) -> str:
    """Return the delay of a watermark, as Spark reads it.

    Parameters
    ----------
    given : str or int
        Such as ``"10 s"``, or a number of ticks; also a length of time that only Spark reads.
    is_time : bool
        Whether times are real. Spark takes plain ticks for milliseconds.

    Returns
    -------
    str
        In whole milliseconds, rounded up, because Spark's watermarks have no smaller unit.

    Raises
    ------
    UsageError
        ``ACEP-U056``: it is no length of time.
    DataError
        ``ACEP-D073``: it has no unit, and times are real.

    Examples
    --------
    >>> delay("1500 us", is_time=True), delay(5, is_time=False), delay("1 minute 30 seconds", is_time=True)
    ('2 milliseconds', '5 milliseconds', '1 minute 30 seconds')
    """
    if _only_of_spark("watermark", given):
        return str(given)
    if not is_time:
        try:
            return f"{in_ticks('watermark', given, is_time=False)} milliseconds"
        except DataError:  # it has a unit: Spark has one for these ticks, too
            pass
    return _milliseconds("watermark", given)


def interval(given: str) -> str:
    """Return the time between two micro-batches, as Spark reads it.

    Raises
    ------
    UsageError
        ``ACEP-U056``: it is no length of time with a unit.

    Examples
    --------
    >>> interval("1.5 s"), interval("interval 1 minute")
    ('1500 milliseconds', 'interval 1 minute')
    """
    if _only_of_spark("trigger", given):
        return given
    try:
        return _milliseconds("trigger", given)
    except DataError as error:
        hint = f"write --trigger '{given} s' (trigger= in Python)"
        raise UsageError(f"trigger is {given!r}, which has no unit", code="ACEP-U056", hint=hint) from error


def _milliseconds(name: str, given: Duration) -> str:
    return f"{-(-in_ticks(name, given, is_time=True) // 1000)} milliseconds"


def _only_of_spark(name: str, given: Duration) -> bool:
    try:
        check_duration(name, given)
    except UsageError:
        return isinstance(given, str) and _OF_SPARK.fullmatch(given.strip()) is not None
    return False
