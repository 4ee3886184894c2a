"""What is read: the events, how they are written, and what their columns mean."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from history.places import place_of


class InputFormat(StrEnum):
    """How events are written in files."""

    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"
    JSON = "json"
    LINES = "lines"


class OnMalformed(StrEnum):
    """What happens to rows that cannot be read."""

    REFUSE = "refuse"
    SKIP = "skip"


class OnLate(StrEnum):
    """What happens to events that come late."""

    REFUSE = "refuse"
    SKIP = "skip"


class Unit(StrEnum):
    """Units of a time column of numbers."""

    NS = "ns"
    US = "us"
    MS = "ms"
    S = "s"


Inputs = Annotated[
    list[str],
    typer.Argument(
        show_default=False,
        metavar="INPUT",
        help="Files of Parquet, CSV or JSON lines, folders of them, or - for stdin.",
    ),
]
PAST = typer.Argument(show_default=False, metavar="PAST", help="Past events, oldest first; read as by acep run.")
PastInputs = Annotated[list[str], PAST]
TrainInputs = Annotated[list[str] | None, PAST]

TYPED = ("column_type", "null", "thousands")
"""What columns of text files hold, as far as it is said."""
LAYOUT = ("delimiter", "columns", "decimal", "encoding", "line_format", *TYPED)
"""How text files are written: options that are arguments of ``open_source``."""
HOW_WRITTEN = (*LAYOUT, "time_format", "time_zone", "time_year", "time_fold")
"""The same, and how their times are."""
NOT_ON_SPARK = tuple(name for name in HOW_WRITTEN if name not in TYPED)
"""Of these what is found out on Spark."""


@dataclass(frozen=True)
class SourceOptions:
    """The format of the events, and the roles of their columns."""

    panel = "Input"

    time: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The times; by default ts, time, ...; of two columns: date+time."),
    ] = None
    key: Annotated[
        str | None,
        typer.Option("--key-column", metavar="COLUMN", help="What 'key' means in the query; by default key."),
    ] = None
    type: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The event types; by default type, event_type, event or kind.")
    ] = None
    unit: Annotated[Unit | None, typer.Option(help="What a time column of numbers counts; by default plain ticks.")] = (
        None
    )
    input_format: Annotated[
        InputFormat | None, typer.Option(help="By default from the name, or else from the first lines.")
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option(metavar="SIGN", help="Between values of CSV: a character, or tab; by default from the lines."),
    ] = None
    columns: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="Names of the columns of CSV without a header line.")
    ] = None
    decimal: Annotated[
        str | None, typer.Option(metavar="SIGN", help="Before the fraction of numbers of CSV: a point or a comma.")
    ] = None
    encoding: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of text files: latin-1, cp1252, ...; by default UTF-8.")
    ] = None
    line_format: Annotated[
        str | None,
        typer.Option(metavar="FORMAT", help="Of lines of a log: apache, syslog, '{time} {level} {message}', a regex."),
    ] = None
    column_type: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=TYPE", help="What columns hold: text, int, float or bool."),
    ] = None
    null: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Stands for null in text files, in the place of NA, null and others."),
    ] = None
    thousands: Annotated[
        str | None, typer.Option(metavar="SIGN", help="Between the thousands of numbers, as in 9,000.")
    ] = None
    time_format: Annotated[
        str | None,
        typer.Option(metavar="FORMAT", help="How times are written: '%d/%m/%Y %H:%M'; by default from the values."),
    ] = None
    time_zone: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of times that have none, such as Europe/Vienna; by default UTC."),
    ] = None
    time_year: Annotated[
        int | None, typer.Option(metavar="YEAR", help="Of the first time where they have none, as in lines of syslog.")
    ] = None
    time_fold: Annotated[
        str | None,
        typer.Option(
            metavar="WHICH",
            help="Of a local time that occurs twice: earlier, later, or order (the first one until times go back).",
        ),
    ] = None

    @property
    def roles(self) -> dict[str, Any]:
        """The arguments of ``Query.match`` and others that say what columns mean."""
        return {"time": self.time, "key": self.key, "type": self.type, "unit": self.unit} | self._times

    @property
    def reading(self) -> dict[str, Any]:
        """The arguments of ``open_source``."""
        given = {name: getattr(self, name) for name in LAYOUT if name not in TYPED and getattr(self, name) is not None}
        time = {} if self.time is None else {"time": self.time}
        return {"format": self.input_format} | time | given | self.typed | self._times

    @property
    def on_spark(self) -> dict[str, Any]:
        """The arguments of ``read_files`` of Spark."""
        return {"format": self.input_format, "time": self.time} | self.typed

    @property
    def typed(self) -> dict[str, Any]:
        """Of them what says what columns of text files hold."""
        said = {"column_types": self.column_type, "null": self.null, "thousands": self.thousands}
        return {name: value for name, value in said.items() if value}

    @property
    def _times(self) -> dict[str, Any]:
        said = self.time_format, self.time_zone, self.time_year, self.time_fold
        if not any(word is not None for word in said):
            return {}
        from acep_approx.events.time_formats import TimeFormat

        return {"time_format": TimeFormat(*said)}


@dataclass(frozen=True)
class IntervalOptions(SourceOptions):
    """The same, where events may begin before they end."""

    start: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="When events began, for queries in CEL: the time is when they ended. By default they begin then, too.",
        ),
    ] = None

    @property
    def roles(self) -> dict[str, Any]:
        """The arguments of ``Query.match`` and others that say what columns mean."""
        return super().roles | ({} if self.start is None else {"start": self.start})


@dataclass(frozen=True)
class InputOptions(SourceOptions):
    """How events are read."""

    sort: Annotated[bool, typer.Option("--sort", help="Sort the events by time first; takes memory for all.")] = False
    on_malformed: Annotated[
        OnMalformed, typer.Option(help="Stop at a row that cannot be read or has no time, or leave such rows out.")
    ] = OnMalformed.REFUSE
    on_late: Annotated[
        OnLate, typer.Option(help="Stop at an event older than one before it, or leave such events out.")
    ] = OnLate.REFUSE

    @property
    def reading(self) -> dict[str, Any]:
        """The arguments of ``open_source``."""
        return super().reading | {"on_malformed": self.on_malformed, "on_late": self.on_late}


@dataclass(frozen=True)
class QuestionInputOptions(InputOptions, IntervalOptions):
    """The same for questions about results, which may be of events that begin before they end."""


@dataclass(frozen=True)
class RunInputOptions(InputOptions, IntervalOptions):
    """The same, whether others may follow, and where to put what is left out."""

    open_end: Annotated[
        bool,
        typer.Option(
            "--open-end",
            help="More events follow INPUT, elsewhere: of matches that wait for their window to close, as of an "
            "absence at the end, say how many there are, and do not put them out.",
        ),
    ] = False

    rejects: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write rows left out to FILE; with --on-malformed skip.")
    ] = None
    late: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=place_of,
            help="Write late events to FILE; with --on-late skip, --watermark or --reorder. With --stream, a folder.",
        ),
    ] = None

    @property
    def reading(self) -> dict[str, Any]:
        """The arguments of ``open_source``."""
        return super().reading | {"rejects": self.rejects, "late": self.late}
