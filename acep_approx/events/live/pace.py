"""When a live input has ended, and what is done between its batches."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from acep_approx.errors import UsageError

POLL = 0.1
"""Seconds between two looks whether there is more."""
_LENGTH = re.compile(r"(\d+(?:\.\d+)?) *(ms|s|min|h)", re.ASCII)
_SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def seconds(name: str, given: str | float) -> float:
    """A length of time by the clock, in seconds.

    Parameters
    ----------
    name : str
        Of what is given, for the message.
    given : str or float
        ``"500 ms"``, ``"10 s"``, ``"1.5 min"``, ``"1 h"``; or seconds.

    Raises
    ------
    UsageError
        ``ACEP-U142``: it is none.

    Examples
    --------
    >>> seconds("until_idle", "1.5 min"), seconds("until_idle", 0)
    (90.0, 0.0)
    """
    if isinstance(given, int | float) and not isinstance(given, bool) and given >= 0:
        return float(given)
    found = _LENGTH.fullmatch(given.strip()) if isinstance(given, str) else None
    if found is None:
        raise UsageError(
            f"{name} is {given!r}", code="ACEP-U142", hint="it is a length of time: '500 ms', '10 s', '5 min' or '1 h'"
        )
    return float(found[1]) * _SECONDS[found[2]]


class Pace:
    """Says when a live input has ended, and calls back wherever all that was given has been run.

    Parameters
    ----------
    until_idle : float, optional
        Seconds without anything new after which the input has ended. Default: it ends when ``stop`` is called.

    Attributes
    ----------
    on_border : callable or None
        Called between two batches, and while nothing comes: what was given before has been run, and its results have
        been taken.

    Examples
    --------
    >>> pace = Pace(until_idle=0)
    >>> pace.is_over()
    True
    >>> Pace().is_over()
    False
    """

    def __init__(self, until_idle: float | None = None) -> None:
        self.until_idle = until_idle
        self.on_border: Callable[[], None] | None = None
        self._is_stopped = False
        self._since: float | None = None

    def stop(self) -> None:
        """The input ends at the next border; may be called from a handler of signals, or another thread."""
        self._is_stopped = True

    @property
    def is_stopped(self) -> bool:
        """Whether ``stop`` was called."""
        return self._is_stopped

    def border(self) -> None:
        """All that was given has been run."""
        if self.on_border is not None:
            self.on_border()

    def heard(self) -> None:
        """Something new has come."""
        self._since = None

    def is_over(self) -> bool:
        """Nothing more is there now: whether that is the end."""
        if self._is_stopped:
            return True
        if self._since is None:
            self._since = time.monotonic()
        return self.until_idle is not None and time.monotonic() - self._since >= self.until_idle

    def wait(self, seconds: float = POLL) -> None:
        """Let some time pass before the next look."""
        time.sleep(seconds)
