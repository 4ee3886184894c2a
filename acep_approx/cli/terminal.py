"""What people see: messages, errors and bars on stderr, tables on stdout; and queries read from the command line."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from acep_approx.cli import process
from acep_approx.cli.logs import ProgressLog, StageLog, phase
from acep_approx.errors import (
    CappedCountWarning,
    FewPointsWarning,
    ManyKeysWarning,
    ManyMatchesWarning,
    NeedlessHistoryWarning,
    NoLearningWarning,
    TextOrderWarning,
    UnseenTypeWarning,
    UsageError,
)
from acep_approx.shell import quoted
from acep_approx.visible import printable
from history.places import place_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID


def console(**how: Any) -> Console:
    """A console that prints text as it is, without markup, and shows characters that a terminal would obey."""
    from rich.console import Console

    made = Console(highlight=False, markup=False, emoji=False, **how)
    plain = made.render_str  # all texts go through it, those of tables too, before they are measured
    made.render_str = lambda text, **how: plain(printable(text), **how)  # type: ignore[method-assign]
    made.on_broken_pipe = _no_reader  # type: ignore[method-assign]
    return made


def _no_reader() -> None:
    """Go on raising ``BrokenPipeError``, where rich ends the process as if it had failed."""
    raise  # noqa: PLE0704  (rich calls it while it handles one)


def words() -> Console:
    """A console on stderr that does not wrap, so that carets stay below their piece."""
    return console(stderr=True, soft_wrap=True)


def say(text: str) -> None:
    """Print a line of words on stderr, without rich, which takes longer to import than most commands to read a file."""
    try:
        sys.stderr.write(f"{printable(text)}\n")
        sys.stderr.flush()
    except OSError:  # words must not end a run: these are lost, and so is what comes after them
        process.mute(sys.stderr.fileno())


def tell(text: str = "") -> None:
    """Print lines for people, or JSON, on stdout."""
    sys.stdout.write(f"{printable(text)}\n")


def rows_out() -> BinaryIO:
    """Standard output for rows of results: bytes as they are, but on a terminal, where they must not give commands."""
    out: BinaryIO = sys.stdout.buffer
    return cast("BinaryIO", _ShownRows(out)) if sys.stdout.isatty() else out


class _ShownRows:
    """Rows as UTF-8 on their way to a terminal. JSON says the same, CSV shows what is in it."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def write(self, rows: Any) -> int:
        """Rows, whole ones."""
        return self._out.write(printable(str(memoryview(rows), "utf-8", "replace")).encode())

    def flush(self) -> None:
        """To the terminal."""
        self._out.flush()


@contextmanager
def said(log: str) -> Iterator[None]:
    """Print the warnings of a log on stderr."""
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: say(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger(log)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def show_error(text: str) -> None:
    """Print an error on stderr, the word ``error`` in red."""
    from rich.text import Text

    try:
        words().print(Text.assemble(("error", "bold red"), " ", printable(text)))
    except OSError:
        process.mute(sys.stderr.fileno())


EVENTS = (".csv", ".tsv", ".parquet", ".pq", ".jsonl", ".ndjson")
"""Ends of names that files of queries do not have."""
OURS = (
    CappedCountWarning,
    FewPointsWarning,
    ManyKeysWarning,
    ManyMatchesWarning,
    NeedlessHistoryWarning,
    NoLearningWarning,
    TextOrderWarning,
    UnseenTypeWarning,
)
"""Warnings that are told in words."""


@contextmanager
def warnings_in_words() -> Iterator[None]:
    """Print our own warnings on stderr like errors, without a place in the code; others as Python does."""
    with warnings.catch_warnings():
        for ours in OURS:
            warnings.simplefilter("always", ours)

        def show(message: Warning | str, category: type[Warning], *where: Any, **_more: Any) -> None:
            if issubclass(category, OURS):
                say(f"warning {message}")
            else:
                say(warnings.formatwarning(message, category, *where[:2]).rstrip())

        warnings.showwarning = show
        yield


def amount(number: int, thing: str) -> str:
    """A number of things in words.

    Examples
    --------
    >>> amount(1, "match"), amount(1200, "match"), amount(0, "row"), amount(2, "query")
    ('1 match', '1,200 matches', '0 rows', '2 queries')
    """
    return f"{number:,} {thing if number == 1 else plural(thing)}"


def plural(thing: str) -> str:
    """The word for several."""
    return f"{thing[:-1]}ies" if thing.endswith("ry") else f"{thing}es" if thing.endswith("ch") else f"{thing}s"


def first_of(names: Sequence[str], most: int, others: str = " and {:,} others") -> str:
    """The first of some names, and how many more there are.

    Examples
    --------
    >>> first_of(["a", "b", "c"], 2), first_of(["a", "b"], 2)
    ('a, b and 1 others', 'a, b')
    """
    return ", ".join(names[:most]) + (others.format(len(names) - most) if len(names) > most else "")


@contextmanager
def progress_bar(label: str, *, enabled: bool) -> Iterator[EventBar]:
    """A progress bar on stderr, gone when done.

    Parameters
    ----------
    label : str
        What is going on.
    enabled : bool
        Without, or where stderr is no terminal, nothing is shown.

    Yields
    ------
    EventBar
        Give it ``total`` when known, and ``done`` as the callback.
    """
    with phase(label):
        if not (enabled and sys.stderr.isatty()):
            yield EventBar(lambda _done, _total: None)
            return
        with _bar(label, "{task.completed:,.0f} events") as (bar, task):
            yield EventBar(lambda done, total: bar.update(task, completed=done, total=total))


@contextmanager
def _bar(label: str, progress: str, total: float | None = None) -> Iterator[tuple[Progress, TaskID]]:
    from rich import progress as bars

    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.TextColumn(progress),
        bars.TimeElapsedColumn(),
    )
    with bars.Progress(*columns, console=words(), transient=True) as bar:
        yield bar, bar.add_task(label, total=total)


class EventBar:
    """How far a command is, in events.

    Parameters
    ----------
    show : callable
        Shows the numbers (done, total or None).

    Attributes
    ----------
    total : int or None
        Events there are, where known.
    """

    def __init__(self, show: Callable[[int, int | None], None]) -> None:
        self.total: int | None = None
        self._show = show
        self._log = ProgressLog()

    def done(self, events: int) -> None:
        """Report that so many events are done."""
        self._show(events, self.total)
        self._log.done(events)


@contextmanager
def stages(*, enabled: bool) -> Iterator[Callable[[str, float], None]]:
    """A bar on stderr for work in stages, gone when done.

    Yields
    ------
    callable
        Call it with what is being done, and how much of it all is done, from 0 to 1.
    """
    if not (enabled and words().is_terminal):
        yield StageLog().done
        return
    with _bar("reading", "[progress.percentage]{task.percentage:>3.0f}%", total=1.0) as (bar, task):
        log = StageLog()

        def done(stage: str, share: float) -> None:
            bar.update(task, description=stage, completed=share)
            log.done(stage, share)

        yield done


def read_query(argument: str) -> str:
    """The text of a query given on the command line.

    Parameters
    ----------
    argument : str
        The query itself, the path of a file that holds it, or ``@`` and such a path.

    Returns
    -------
    str

    Raises
    ------
    UsageError
        ``ACEP-U010``: there is no such file, or it cannot be read; ``ACEP-U127``: the shell has taken the query apart;
        ``ACEP-U128``: this is a file of events.
    """
    if argument.strip("'\"").upper() in ("PATTERN", "SELECT", "RULE", "TABLE"):
        raise UsageError(
            f"of the query there is only its first word, {argument}: the shell has taken it apart",
            code="ACEP-U127",
            hint="put the query into quotes: acep run 'PATTERN SEQ(A a, B b) WITHIN 9 s' FILE; in Windows into \"...\"",
        )
    if argument.lower().removesuffix(".gz").endswith(EVENTS):
        raise UsageError(
            f"{argument!r} stands in the place of the query, and its name is that of a file of events",
            code="ACEP-U128",
            hint="the query comes first, then the events: acep run QUERY FILE; or see what is in it: acep look FILE",
        )
    if argument.startswith("@"):
        return read_text(Path(argument[1:]))
    path = Path(argument)
    is_word = len(argument.split()) == 1 and "(" not in argument  # a query has blanks: WITHIN ...
    looks_like_path = bool(path.suffix) and is_word
    is_file = os.path.isfile(argument)  # noqa: PTH113  (no error where it is longer than a name can be)
    return read_text(path) if looks_like_path or is_file else argument


def read_text(path: Path) -> str:
    """What is in a file of queries.

    Raises
    ------
    UsageError
        ``ACEP-U010``: it is not there, cannot be read, is a folder, or no text.
    """
    try:
        return place_of(path).read_text(encoding="utf-8-sig")  # without the mark that some editors put first
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(
            f"the query cannot be read from {str(path)!r}: {reason}",
            code="ACEP-U010",
            hint=f"all queries of a folder run together: --queries {quoted(str(path))}"
            if path.is_dir()
            else "give the path of a text file, or the query itself in quotes",
        ) from error
