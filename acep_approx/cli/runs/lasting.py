"""Input of a run: whole, or still being written. Then a run ends cleanly when it is told to, and says how far it is."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from acep_approx.cli.metrics import is_served, tell
from acep_approx.cli.options.input import OnLate
from acep_approx.cli.process import end_compiler
from acep_approx.cli.runs.request import RunRequest
from acep_approx.cli.terminal import amount, say

if TYPE_CHECKING:
    from acep_approx.events.live.source import LiveSource
    from acep_approx.events.source import Source

LOGS = "acep_approx.live"
EVERY = 5.0
"""Seconds between two lines at least."""


def is_pushed(request: RunRequest) -> bool:
    """Whether a run is pushed live events, so that it can go on after a stop."""
    options = request.options
    kind, on_late = request.output.output, options.source.on_late
    is_told = bool(kind.pushed) and not kind.is_count  # the rest is counted or joined at the end
    is_logged = options.reports.shed is not None and options.many.queries is None  # what is shed is kept to the end
    return request.is_live and is_told and on_late is OnLate.REFUSE and not is_logged


def open_input(request: RunRequest, *, is_in_order: bool = True) -> Source:
    """The input of a run that asks for its events; what is still being written, too, to its end.

    Parameters
    ----------
    request : RunRequest
    is_in_order : bool
        Whether events must come in order of time; else who takes them knows what is late.
    """
    from acep_approx.events.source import open_source

    reading = request.options.source.reading
    if not is_in_order:
        reading |= {"on_late": "refuse", "late": None}
    if not request.is_live:
        return open_source(request.inputs, **reading)

    from acep_approx.events.live.source import follow
    from acep_approx.events.writing.outfile import GrowingFile

    source = follow(
        request.inputs[0],
        is_in_order=is_in_order,
        is_one_file=request.options.rules.store is not None,  # it knows events by their number
        opens=GrowingFile,
        **reading,
        **request.options.live.lasting,
    )
    is_shown = request.quiet or sys.stderr.isatty()  # there a bar moves
    source.pace.on_border = Progress(source, str, quiet=is_shown)
    return source


def reading_of(request: RunRequest) -> dict[str, Any]:
    """How live events are read by those who know themselves what is late, in the words of ``events.follow``."""
    reading = request.options.source.reading | request.options.live.lasting
    return {name: value for name, value in reading.items() if name not in ("on_late", "late")}


def checkpointing_of(request: RunRequest) -> dict[str, Any]:
    """How a live run lasts, in the words of ``Checkpointing``."""
    rules = request.options.rules
    every = {} if rules.checkpoint_every is None else {"checkpoint_every": rules.checkpoint_every}
    return {"checkpoint": request.options.stream.checkpoint, "finish": rules.finish, **every}


def asked_of(request: RunRequest) -> dict[str, Any]:
    """What must be the same for a run to go on: where its results go, and in which form."""
    output = request.output
    topic = output.topic  # wherever its brokers are
    where = f"topic {topic.topic}" if topic is not None else None if output.file is None else str(output.file)
    return {"-o": where, "--format": output.form().value, "--output": output.output.value}


def say_going_on(request: RunRequest) -> None:
    """Say what a checkpoint is for."""
    checkpoint = request.options.stream.checkpoint
    if checkpoint is not None and not request.options.rules.finish:
        say(f"the same command goes on from the checkpoint in {checkpoint}")


def say_tombstones(source: LiveSource) -> None:
    """Say how many messages had no value, if there were any."""
    if source.tombstones:
        say(f"{amount(source.tombstones, 'message')} left out: no value (tombstones)")


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
        end_compiler()
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
        tell("BEHIND", lambda: self._behind)

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
