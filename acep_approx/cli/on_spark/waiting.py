"""Signs of life while Spark takes its time: a bar with a clock on a terminal, else a line every now and then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import Self

from acep_approx.cli.terminal import say, stages, words

EVERY = 15.0
"""Seconds without a line, at most, where there is no terminal."""


class Pulse:
    """Says what is going on whenever nothing was said for some time.

    Parameters
    ----------
    what : str
        What is going on.
    enabled : bool, default True
        Without, and on a terminal, nothing is said: there something else moves.
    """

    def __init__(self, what: str, *, enabled: bool = True) -> None:
        self._what, self._begun = what, monotonic()
        self._heard, self._is_over = Event(), False
        self._thread = Thread(target=self._beat, name="signs of life", daemon=True)
        self._speaks = enabled and not words().is_terminal

    def now(self, what: str) -> None:
        """Something else is going on now."""
        self._what = what

    def said(self, what: str) -> None:
        """A line was printed, and something else is going on now."""
        self._what, self._begun = what, monotonic()
        self._heard.set()

    def _beat(self) -> None:
        while True:
            if not self._heard.wait(EVERY):
                say(f"... {self._what}, {monotonic() - self._begun:.0f} s so far")
            elif self._is_over:
                return
            else:
                self._heard.clear()

    def __enter__(self) -> Self:
        if self._speaks:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._heard.set()
        if self._speaks:
            self._thread.join()


@contextmanager
def waiting(what: str, *, enabled: bool = True) -> Iterator[Callable[[str, float], None]]:
    """Say what is going on, and show that it goes on.

    Parameters
    ----------
    what : str
    enabled : bool, default True
        Without, nothing is said.

    Yields
    ------
    callable
        Call it with what is being done, and how much of it all is done, from 0 to 1.
    """
    if enabled:
        say(f"{what} ...")
    with stages(enabled=enabled) as bar, Pulse(what, enabled=enabled) as pulse:
        bar(what, 0.0)

        def tell(stage: str, share: float) -> None:
            bar(stage, share)
            pulse.now(f"{stage}, {share:.0%}")

        yield tell
