"""A live run on the command line: it ends cleanly when it is told to, and says now and then how far it is."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

import typer

from acep_approx.cli.metrics import is_served, tell_behind
from acep_approx.cli.terminal import amount, say

if TYPE_CHECKING:
    from acep_approx.events.live.source import LiveSource

EVERY = 5.0
"""Seconds between two lines at least."""


@contextmanager
def ends_cleanly(stop: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C, or a signal to end, stop a run at its next border; the second one breaks it off.

    Parameters
    ----------
    stop : callable
        Called once.

    Raises
    ------
    typer.Exit
        At the end, with 128 and the number of the signal, if there was one: 130 after Ctrl-C.
    """
    caught: list[int] = []

    def handler(number: int, _: FrameType | None) -> None:
        caught.append(number)
        if len(caught) > 1:
            raise KeyboardInterrupt
        stop()

    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
    if caught:
        raise typer.Exit(128 + caught[0])


class Progress:
    """Says how far a live run is, if it is further than when it was said last.

    Parameters
    ----------
    source : LiveSource
    found : callable
        Gives what was found so far, in words.
    quiet : bool
        Whether nothing is said.
    """

    def __init__(self, source: LiveSource, found: Callable[[], str], *, quiet: bool) -> None:
        self._source, self._found, self._quiet = source, found, quiet
        self._said = time.monotonic()
        self._given = 0
        self._behind: int | None = None
        tell_behind(lambda: self._behind)

    def __call__(self) -> None:
        """All that was given has been run."""
        if is_served():
            self._behind = (self._source.lag or (None,))[0]
        now = time.monotonic()
        if self._quiet or now - self._said < EVERY or self._source.given == self._given:
            return
        self._said, self._given = now, self._source.given
        say(", ".join(filter(None, (amount(self._given, "event"), self._found(), behind(self._source.lag)))))


def behind(lag: tuple[int, str] | None) -> str:
    """How much was not read yet, in words.

    Examples
    --------
    >>> behind((1200, "byte")), behind((0, "message"))
    ('1,200 bytes behind', 'nothing behind')
    """
    if lag is None:
        return ""
    number, thing = lag
    return f"{amount(number, thing)} behind" if number else "nothing behind"
