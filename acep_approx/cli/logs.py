"""The option ``--log`` of all commands: what the package logs, as plain lines with times, on stderr or in a file."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from acep_approx.cli.options.groups import GENERAL
from acep_approx.errors import UsageError
from acep_approx.masks import masked
from acep_approx.visible import printable

ROOT = "acep_approx"
LEVELS = ("debug", "info", "warning", "error")
LINE = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
EVERY = 5.0
"""Seconds between two lines about progress."""
LOG = logging.getLogger("acep_approx.progress")


Log = Annotated[
    list[str] | None,
    typer.Option(
        "--log",
        metavar="LEVEL|FILE",
        show_default=False,
        help="Log what is done: debug, info, warning or error, or to which FILE; with both give it twice. By default "
        "info, on stderr.",
        rich_help_panel=GENERAL,
    ),
]


def logged(command: Callable[..., None]) -> Callable[..., None]:
    """The command with ``--log``.

    Parameters
    ----------
    command : callable
        As Typer takes it.
    """
    hints = get_type_hints(command, include_extras=True)
    signature = inspect.signature(command)
    own = [
        one.replace(annotation=hints[one.name] if isinstance(one.annotation, str) else one.annotation)
        for one in signature.parameters.values()
    ]
    asked = inspect.Parameter("log", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Log)

    @wraps(command)
    def with_log(*, log: list[str] | None = None, **options: Any) -> None:
        with logging_to(log or []):
            command(**options)

    with_log.__signature__ = inspect.Signature([*own, asked])  # type: ignore[attr-defined]
    return with_log


@contextmanager
def logging_to(asked: Sequence[str]) -> Iterator[None]:
    """Write the log of the package while a command runs.

    Parameters
    ----------
    asked : sequence of str
        Levels and files, as for ``--log``; nothing: nothing is written.

    Raises
    ------
    UsageError
        ``ACEP-U133``: two levels or two files; ``ACEP-U134``: the file cannot be written.
    """
    if not asked:
        yield
        return
    level, file = _level_and_file(asked)
    try:
        handler = _LogOnStderr() if file is None else _LogFile(file, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UsageError(
            f"the log cannot be written to {str(file)!r}: {error.strerror}",
            code="ACEP-U134",
            hint=f"name another file; a level is one of {', '.join(LEVELS)}",
        ) from error
    lines = _Lines(LINE)
    lines.default_time_format = "%Y-%m-%dT%H:%M:%S"
    lines.default_msec_format = "%s.%03d"
    handler.setFormatter(lines)
    logger = logging.getLogger(ROOT)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        handler.close()


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Log how long a part of a command takes."""
    begun = time.perf_counter()
    yield
    LOG.info("%s took %.2f s", name, time.perf_counter() - begun)


class ProgressLog:
    """Logs now and then how many events are done."""

    def __init__(self) -> None:
        self._begun = self._last = time.monotonic()

    def done(self, events: int) -> None:
        """So many are done."""
        now = time.monotonic()
        if now - self._last >= EVERY:
            self._last = now
            LOG.info("%s events done, %s events/s", f"{events:,}", f"{events / (now - self._begun):,.0f}")


class StageLog:
    """Logs the stages of work as they begin."""

    def __init__(self) -> None:
        self._stage = ""

    def done(self, stage: str, share: float) -> None:
        """Of all the work so much is done, and this is being done."""
        if stage != self._stage:
            self._stage = stage
            LOG.info("%s: %.0f%% done", stage, 100 * share)


class _Lines(logging.Formatter):
    """Lines without the secrets that other programs put into their messages; no message begins another line."""

    def format(self, record: logging.LogRecord) -> str:
        """As ``logging`` asks."""
        return printable(masked(super().format(record))).replace("\n", "\n    ")


def _level_and_file(asked: Sequence[str]) -> tuple[str, Path | None]:
    levels = [one.lower() for one in asked if one.lower() in LEVELS]
    files = [Path(one) for one in asked if one.lower() not in LEVELS]
    if len(levels) > 1 or len(files) > 1:
        raise UsageError(
            f"--log names two {'levels' if len(levels) > 1 else 'files'}: {', '.join(asked)}",
            code="ACEP-U133",
            hint=f"name one level ({', '.join(LEVELS)}), one file, or one of each",
        )
    return (levels or ["info"])[0], files[0] if files else None


class _LogFile(logging.FileHandler):
    """A log that cannot be written ends the run."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802
        """As ``logging`` asks, while the error is handled."""
        raise  # noqa: PLE0704


class _LogOnStderr(logging.StreamHandler):  # type: ignore[type-arg]
    """Lines that are lost where nobody can read them."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """As ``logging`` asks."""
