"""``acep run``: a program is compiled, its input opened, results go out, and it is said in words what came of it.

What is the same for all kinds of programs, and for whole and live input, stands here. What depends on the kind stands
in a subclass: ``query.py``, ``pushed_query.py``, ``queries.py``, ``rules.py``.
"""

from __future__ import annotations

import sys
import time as clock
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from acep_approx.cli.metrics import freeze, tell_results
from acep_approx.cli.options.output import Format, ResultKind
from acep_approx.cli.process import hide_pandas
from acep_approx.cli.runs.lasting import LOGS, Progress, ends_cleanly, open_input, say_tombstones
from acep_approx.cli.runs.page import PageRequest
from acep_approx.cli.runs.request import RunRequest
from acep_approx.cli.terminal import EventBar, amount, progress_bar, said, say

if TYPE_CHECKING:
    import pyarrow as pa

    from acep_approx.api.live_run import LiveRun
    from acep_approx.cli.write import Results
    from acep_approx.events.live.kafka_address import KafkaAddress
    from acep_approx.events.live.kafka_writer import TopicWriter
    from acep_approx.events.source import Source
    from acep_approx.results.explorer.many_queries import GatheredMatches

AnySource = TypeVar("AnySource", bound="Source")


class ProgramRun(ABC):
    """A run of a program.

    Parameters
    ----------
    request : RunRequest
        What does not go with the program is refused, before anything is read.

    Attributes
    ----------
    form : Format
        How results are written.
    page : PageRequest or None
        The page that is to be written.
    source : Source
        Where events come from, once it is open.
    live_run : LiveRun or None
        What pushes them, where they are still being written and the run can go on after a stop.
    bar : EventBar
        Is told how far the run is.
    events : int
        How far that is.
    results : Results
        What was put out.
    is_changelog : bool
        Whether results may be taken back.
    lasting : ExitStack
        What ends with the run.
    gathered : GatheredMatches or None
        The matches of several queries or rules, for a page, however few rows are put out.
    messages : TopicWriter or None
        What sends results to a topic.
    """

    label = "matching"
    """What is going on, beside the bar."""
    form: Format
    page: PageRequest | None
    source: Source
    results: Results
    live_run: LiveRun | None = None
    is_changelog = False
    gathered: GatheredMatches | None = None
    messages: TopicWriter | None = None

    def __init__(self, request: RunRequest) -> None:
        self.request, self.options, self.output = request, request.options, request.output
        self.roles: dict[str, Any] = request.options.source.roles
        self.bar = EventBar(lambda _done, _total: None)
        self.events = 0
        self.lasting = ExitStack()
        self.shown: list[pa.Table] = []

    # --- what a kind of program brings ----------------------------------------------------------------------------

    @abstractmethod
    def open(self) -> None:
        """Open the input."""

    @abstractmethod
    def tell(self) -> None:
        """Tell what is done, to those who ask for numbers."""

    @abstractmethod
    def tables(self) -> Generator[pa.Table]:
        """The results as a stream of tables; the first one shows the columns."""

    @abstractmethod
    def say(self, seconds: float) -> None:
        """Say on stderr what came of it."""

    def conclude(self) -> None:  # noqa: B027  (most kinds write nothing)
        """Write what is to be written about the run."""

    @abstractmethod
    def write_page(self, page: PageRequest) -> None:
        """Make its page."""

    def end(self) -> None:  # noqa: B027  (most kinds just end)
        """End with the exit code that is due."""

    def connect(self) -> None:
        """Find the topic that results go to, if they do, before anything is read."""
        if (topic := self.output.topic) is not None:
            self.messages = self.sender(topic, self.keys)

    def sender(self, topic: KafkaAddress, keys: tuple[str, ...]) -> TopicWriter:
        """Return what sends rows to a topic for as long as the run lasts."""
        from acep_approx.events.live.kafka_address import settings
        from acep_approx.events.live.kafka_writer import TopicWriter

        given = settings(self.options.live.kafka_option or ())
        return self.lasting.enter_context(TopicWriter(topic, given, keys))

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns of results whose values are the keys of messages."""
        return ()

    @property
    def names_columns(self) -> bool:
        """Whether rows show of events what the query names, as nobody has said otherwise."""
        return False

    @property
    def title(self) -> str:
        """What results are called in a table."""
        return self.output.output.heading

    # --- what all do alike ----------------------------------------------------------------------------------------

    def opened(self, *, is_in_order: bool = True) -> Source:
        """The input, to be read to its end (see ``open_input``)."""
        source = open_input(self.request, is_in_order=is_in_order)
        if self.request.is_live:
            self.last(source)
        return source

    def follow(self, live_run: LiveRun) -> None:
        """Take up a run that pushes live events."""
        self.live_run = live_run
        self.last(live_run)
        self.source = self.kept(live_run.source)

    def last(self, live: Any) -> None:
        """Let Ctrl-C end a live input, or what pushes it; it is closed when the run ends."""
        self.lasting.enter_context(closing(live))
        self.lasting.enter_context(ends_cleanly(live.stop))

    def kept(self, source: AnySource) -> AnySource:
        """An input that is open now; its events are kept where a page needs them again."""
        if self.page is not None:
            source.keep()
        return source

    def progressed(self, events: int) -> None:
        """So many events are done."""
        self.events = events
        self.bar.done(events)

    def put_out(self) -> None:
        """Write the results as they come, or gather them for a table on the terminal."""
        from acep_approx.cli.write import Results

        with closing(self.tables()) as tables:
            self.results = Results(tables, self.output.most_rows(self.form), is_changelog=self.is_changelog)
            are_matches = self.output.output is ResultKind.MATCHES and not self.is_changelog
            tell_results(self.results, are_matches=are_matches)
            opens = self._opens()
            if self.form is Format.TABLE:
                self.shown = list(self.results)
            else:
                self.write(opens)
            if self.gathered is not None and self.live_run is None:
                deque(tables, maxlen=0)

    def write(self, opens: Callable[[Path], Any] | None) -> None:
        """Write the results to their file or topic, or to stdout; ``opens`` opens a file that is read as it grows."""
        from acep_approx.cli.write import write

        if self.messages is not None:  # all of a table are there before the run goes on, and so before a checkpoint
            for table in self.results:
                self.messages.write(table)
            return
        write(self.results, self.form, self.output.file, opens=opens)

    def _opens(self) -> Callable[[Path], Any] | None:
        from acep_approx.events.writing.outfile import GrowingFile

        if self.live_run is None:
            return GrowingFile if self.output.flush else None
        thing, results = self.output.output.thing, self.results
        found = Progress(self.live_run.source, lambda: amount(results.rows, thing), quiet=self.request.quiet)
        self.live_run.on_border = found
        if self.live_run.goes_on and not self.request.quiet:
            say(f"going on from the checkpoint in {self.options.stream.checkpoint}")
        return self.live_run.outputs.opener("results")

    def show(self) -> None:
        """Show what was gathered for the terminal."""
        if self.form is Format.TABLE:
            from acep_approx.cli.write import print_table

            print_table(self.shown, self.title)

    def progress(self) -> AbstractContextManager[EventBar]:
        """A bar that says how far it is, unless lines do so, or rows would mix with it."""
        if self.live_run is not None:
            return nullcontext(self.bar)
        is_seen = self.form is not Format.TABLE and self.output.file is None and sys.stdout.isatty()
        return progress_bar(self.label, enabled=not (self.request.quiet or is_seen))


def run(started: ProgramRun) -> None:
    """Run a program: put out what is found, and say what came of it.

    Raises
    ------
    AcepError
        The query or the events are wrong, or something cannot be written.
    typer.Exit
        With 130 after Ctrl-C while the input is live; with the code of the first query that was left out.
    """
    begun, request = clock.perf_counter(), started.request
    hide_pandas()
    with said(LOGS), started.lasting:
        started.connect()
        started.open()
        with started.progress() as started.bar:
            started.bar.total = started.source.rows
            started.tell()
            started.put_out()
        freeze()
        started.show()
        sys.stdout.flush()
        if not request.quiet:
            started.say(clock.perf_counter() - begun)
            if started.names_columns and sys.stderr.isatty():
                say("shown of events: their time, and what the query names; row numbers: --bind row")
        started.conclude()
        if started.page is not None:
            started.write_page(started.page)
        if request.is_live and started.live_run is None and not request.quiet:
            say_tombstones(cast("Any", started.source))
    started.end()
