"""What is read: the query, the events, and what their columns mean."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from acep_approx.cli.options.choices import InputFormat, OnLate, OnMalformed, Unit

QueryText = Annotated[
    str, typer.Argument(show_default=False, metavar="QUERY", help="The query, or a file that holds it (also as @FILE).")
]
Inputs = Annotated[
    list[str],
    typer.Argument(
        show_default=False,
        metavar="INPUT",
        help="Files of Parquet, CSV or JSON lines, folders of them, or - for stdin.",
    ),
]
PastInputs = Annotated[
    list[str],
    typer.Argument(show_default=False, metavar="PAST", help="Past events, oldest first; read as by acep run."),
]


@dataclass(frozen=True)
class SourceOptions:
    """The format of the events, and the roles of their columns."""

    panel = "Input"

    time: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The times, which order the events; by default ts, time, timestamp, ..."),
    ] = None
    key: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="What 'key' means in the query; by default key.")
    ] = None
    type: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The event types; by default type, event_type, event or kind.")
    ] = None
    unit: Annotated[Unit | None, typer.Option(help="What a time column of numbers counts; by default plain ticks.")] = (
        None
    )
    input_format: Annotated[
        InputFormat | None, typer.Option(help="By default told from names, and of stdin from its first bytes.")
    ] = None

    @property
    def roles(self) -> dict[str, Any]:
        """The arguments of ``Query.match`` and others that say what columns mean."""
        return {"time": self.time, "key": self.key, "type": self.type, "unit": self.unit}


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
        OnMalformed, typer.Option(help="Stop at a row that cannot be read, or leave such rows out.")
    ] = OnMalformed.REFUSE
    on_late: Annotated[
        OnLate, typer.Option(help="Stop at an event older than one before it, or leave such events out.")
    ] = OnLate.REFUSE

    @property
    def reading(self) -> dict[str, Any]:
        """The arguments of ``open_source``."""
        return {"format": self.input_format, "on_malformed": self.on_malformed, "on_late": self.on_late}


@dataclass(frozen=True)
class KeyedInputOptions(InputOptions):
    """The same for commands whose ``--key`` is a value."""

    key: Annotated[
        str | None,
        typer.Option("--key-column", metavar="COLUMN", help="What 'key' means in the query; by default key."),
    ] = None


@dataclass(frozen=True)
class QuestionInputOptions(KeyedInputOptions, IntervalOptions):
    """The same for questions about results, which may be of events that begin before they end."""


@dataclass(frozen=True)
class RunInputOptions(InputOptions, IntervalOptions):
    """The same, and where to put what is left out."""

    rejects: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write rows left out to FILE; with --on-malformed skip.")
    ] = None
    late: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write late events to FILE; with --on-late skip, or --watermark. With --stream, a folder.",
        ),
    ] = None

    @property
    def reading(self) -> dict[str, Any]:
        """The arguments of ``open_source``."""
        return super().reading | {"rejects": self.rejects, "late": self.late}
