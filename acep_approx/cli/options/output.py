"""What is put out, in which form, and to which file; no file is written over another."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from acep_approx.cli.options.groups import GENERAL
from acep_approx.errors import UsageError
from acep_approx.events.live.kafka_address import KafkaAddress, is_address, parse_target
from acep_approx.events.writing.outfile import JDBC
from history.places import is_remote, is_stored, place_of

if TYPE_CHECKING:
    from acep_approx.matching.outputs.bind import Bind


class ResultKind(StrEnum):
    """What ``acep run`` puts out; what a row of it is, what stands above a table, and how ``Query.matcher`` calls it.

    What has no name there is found in whole inputs only.
    """

    MATCHES = "matches", "match", "matches", "matches"
    EVENTS = "events", "event", "events"
    POINTS = "points", "point", "points", "points"
    BUNDLES = "bundles", "bundle", "bundles"
    COUNT = "count", "", "matches", "counts"
    PARTIAL = "partial", "partial match", "partial matches", "partial"
    COMPRESSED = "compressed", "hit", "compressed"

    thing: str
    heading: str
    pushed: str

    def __new__(cls, name: str, thing: str, heading: str, pushed: str = "") -> ResultKind:
        """Make it of its row."""
        made = str.__new__(cls, name)
        made._value_ = name
        made.thing, made.heading, made.pushed = thing, heading, pushed
        return made

    @property
    def is_count(self) -> bool:
        """Whether it is numbers of matches, and no rows that come one by one."""
        return self is ResultKind.COUNT


class Format(StrEnum):
    """How results are written."""

    TABLE = "table"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


def _silence(quiet: bool) -> bool:
    """Kernels are compiled wherever they are first called: what says so is a log."""
    logging.getLogger("acep_approx.kernels").setLevel(logging.ERROR if quiet else logging.NOTSET)
    return quiet


Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        callback=_silence,
        help="Say nothing on stderr unless something is wrong.",
        rich_help_panel=GENERAL,
    ),
]
COMPRESSED_FILES = ("hits.parquet", "links.parquet")
"""What compressed output is written to, in its folder."""
ROW = "row"
"""What ``--bind`` is told to show row numbers."""
SHOWN = 20
"""Rows that a table shows by default."""
SUFFIXES = {
    "": Format.JSONL,  # e.g. /dev/null
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".json": Format.JSONL,
    ".csv": Format.CSV,
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
}
"""Formats of output files by the ends of their names, as for input."""


@dataclass(frozen=True)
class OutputOptions:
    """What ``acep run`` puts out."""

    panel = "Output"

    file: Annotated[
        Path | None,
        typer.Option(
            "-o",
            metavar="FILE",
            parser=place_of,
            help="Write to a file, not to stdout; to a folder if compressed. With --queries a folder gets a file for "
            "each query. Or to a topic, kafka://..., and with --stream to a table of a database, jdbc:...",
        ),
    ] = None
    output: Annotated[
        ResultKind,
        typer.Option(
            metavar="KIND",
            help="matches; events, a row for each event of a match; points, the events that complete a match; bundles, "
            "chains of points; count, of the matches; partial, what nearly matched; compressed, all matches by what "
            "they share. -o names the file.",
        ),
    ] = ResultKind.MATCHES
    format: Annotated[
        Format | None,
        typer.Option(
            metavar="FORMAT",
            help="table, jsonl, csv or parquet; by default as FILE is called, else table on a terminal, else jsonl.",
        ),
    ] = None
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=0, help=f"Stop after N rows; by default {SHOWN} in a table.")
    ] = None
    bind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Show this column of the events of a match, not those that the query names; can be repeated. "
            "row: their row numbers alone.",
        ),
    ] = None
    flush: Annotated[
        bool,
        typer.Option(
            "--flush",
            help="Write results to -o FILE as they come, not under another name first. Live input does so anyway.",
        ),
    ] = False

    metrics_port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=0,
            max=65535,
            help="Serve the numbers of the run for Prometheus on this port, to this machine; 0: a free one.",
        ),
    ] = None

    @property
    def topic(self) -> KafkaAddress | None:
        """The topic that results go to.

        Raises
        ------
        UsageError
            ``ACEP-U136``: its address is not as it must be.
        """
        return parse_target(str(self.file)) if is_topic(self.file) else None

    @property
    def bound(self) -> Bind:
        """What stands for events, as ``Query.match`` takes it."""
        from acep_approx.matching.outputs.bind import Wide

        if self.bind == [ROW]:
            return None
        if self.output in (ResultKind.MATCHES, ResultKind.PARTIAL):
            return Wide(tuple(self.bind or ()))
        return self.bind[0] if self.bind and len(self.bind) == 1 else self.bind

    @property
    def bound_with_rows(self) -> Bind:
        """The same, with the row numbers beside, for a page."""
        from acep_approx.matching.outputs.bind import Wide

        bound = self.bound
        return replace(bound, keeps_rows=True) if isinstance(bound, Wide) else bound

    def form(self) -> Format:
        """How results are written: as said, or as the name of the file says, or as suits the terminal.

        Raises
        ------
        UsageError
            ``ACEP-U018``: the name of the file does not say; ``ACEP-U019``: compressed output has no folder.
        """
        if self.output is ResultKind.COMPRESSED:
            if self.file is None or is_topic(self.file) or self.format not in (None, Format.PARQUET):
                raise UsageError(
                    "compressed output is two Parquet files in a folder",
                    code="ACEP-U019",
                    hint="name a folder: -o FOLDER",
                )
            return Format.PARQUET
        if self.topic is not None:
            return self._form_of_messages()
        if self.format is not None:
            return self.format
        if self.file is not None:
            return Format.JSONL if is_folder(self.file) else format_of(self.file)
        return Format.TABLE if sys.stdout.isatty() else Format.JSONL

    def _form_of_messages(self) -> Format:
        if self.format in (None, Format.JSONL):
            return Format.JSONL
        raise UsageError(
            f"messages are written as JSON, not as {self.format.value}",
            code="ACEP-U014",
            hint="leave --format out, or name a file",
        )

    def check(self, form: Format, *, is_expanded: bool) -> None:
        """Refuse options that do not go together.

        Parameters
        ----------
        form : Format
            How results are written.
        is_expanded : bool
            Whether matches are listed that a budget did not find.

        Raises
        ------
        UsageError
            ``ACEP-U011``, ``ACEP-U014``: such a form cannot go there; ``ACEP-U015``, ``ACEP-U054``: there are no rows
            to stop after, or no matches to list.
        """
        if form is Format.PARQUET and self.file is None:
            raise UsageError("Parquet cannot be written to stdout", code="ACEP-U011", hint="name a file: -o FILE")
        if form is Format.TABLE and self.file is not None:
            raise UsageError(
                "a table is for reading on the terminal, not for a file",
                code="ACEP-U014",
                hint="use --format jsonl, csv or parquet with -o",
            )
        kind = self.output
        if kind in (ResultKind.COUNT, ResultKind.COMPRESSED) and self.limit is not None:
            raise UsageError(f"--limit means nothing for --output {kind.value}", code="ACEP-U015", hint="leave it out")
        if is_expanded and kind is not ResultKind.MATCHES:
            raise UsageError(
                f"--expand lists matches, not {kind.value}", code="ACEP-U054", hint="leave one of them out"
            )

    def most_rows(self, form: Format) -> int | None:
        """How many rows are put out at most."""
        return SHOWN if self.limit is None and form is Format.TABLE else self.limit


@dataclass(frozen=True)
class PageOptions:
    """Whether a run is shown as a page."""

    panel = OutputOptions.panel

    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a page of HTML too, at the end: where matches lie in time, their events, what nearly matched "
            "and why not.",
        ),
    ] = None


def format_of(file: Path) -> Format:
    """The format of an output file, told from its name.

    Raises
    ------
    UsageError
        ``ACEP-U018``: it cannot be told.
    """
    if (suffix := file.suffix.lower()) not in SUFFIXES:
        raise UsageError(
            f"the format of {str(file)!r} cannot be told from its name",
            code="ACEP-U018",
            hint="say it: --format jsonl, csv or parquet",
        )
    return SUFFIXES[suffix]


def is_topic(file: Path | None) -> bool:
    """Whether ``-o`` names a topic of Kafka.

    Examples
    --------
    >>> is_topic(place_of("kafka://broker:9092/found")), is_topic(Path("found"))
    (True, False)
    """
    return file is not None and is_address(str(file))


def is_table(file: Path | None) -> bool:
    """Whether ``-o`` names a table of a database."""
    return file is not None and str(file).startswith(JDBC)


def is_folder(file: Path | None) -> bool:
    """Whether ``-o`` names a folder for several files: it is one, or is not there and has no ending.

    Of addresses the name tells, without its store.

    Examples
    --------
    >>> is_folder(Path("found")), is_folder(Path("found.parquet")), is_folder(Path("/dev/null"))
    (True, False, False)
    """
    if file is None or is_topic(file):
        return False
    if is_remote(file):  # Spark may be the only one that can look
        return not file.suffix
    return file.is_dir() or not (file.suffix or file.exists())


def check_folder(file: Path | None) -> None:
    """Refuse to write into a folder that is not there (``ACEP-U016``)."""
    if file is not None and not is_stored(file) and not file.parent.is_dir():
        raise UsageError(
            f"there is no folder {str(file.parent)!r} for {file.name!r}", code="ACEP-U016", hint="name another FILE"
        )
