"""Work on Spark: on which cluster, and as a stream or not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from acep_approx.cli.options.input import NOT_ON_SPARK, SourceOptions
from acep_approx.errors import UsageError
from history.places import place_of


@dataclass(frozen=True)
class SparkOptions:
    """Whether the work is done on Spark, and where."""

    panel = "Spark"

    spark: Annotated[
        bool, typer.Option("--spark", help="Do the work on Spark: here, or on the cluster of --master.")
    ] = False
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The cluster, e.g. 'local[4]', spark://host:7077, sc://host:15002 (Spark Connect); by default as "
            "spark-submit says, else this machine.",
        ),
    ] = None

    def check(self) -> None:
        """Refuse a cluster for work that is not done on Spark (``ACEP-S037``)."""
        if self.master is not None and not self.spark:
            raise UsageError(
                "--master is of use with --spark only", code="ACEP-S037", hint="add --spark, or leave it out"
            )


@dataclass(frozen=True)
class OrderedSparkOptions(SparkOptions):
    """The same, and what orders events of the same time."""

    id: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="What names an event, and orders those of the same time; by default their content."
        ),
    ] = None


Shards = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="How many groups of keys are matched side by side; by default up to Spark, or that of the checkpoint.",
    ),
]


@dataclass(frozen=True)
class RunSparkOptions(SparkOptions):
    """Whether the work is done on Spark, where, and how it is split."""

    shards: Shards = None


@dataclass(frozen=True)
class SplitOptions:
    """How work would be split on Spark."""

    panel = "Spark"

    spark: Annotated[bool, typer.Option("--spark", help="Show also how the work is split on Spark, and why.")] = False
    shards: Shards = None


@dataclass(frozen=True)
class StreamOptions:
    """A folder whose files grow in number, or a topic, matched as a stream."""

    panel = "Streams on Spark"

    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Match a folder that gets new files, or topics, into the folder or topic of -o, with --spark.",
        ),
    ] = False
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=place_of,
            help="Where the state is kept; after a stop the same command goes on from there. With --follow too.",
        ),
    ] = None
    trigger: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="How often new files are looked for, e.g. '10 s'; by default as often as possible."
        ),
    ] = None
    at_once: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Events in a micro-batch, about; a micro-batch has one file at least."
        ),
    ] = 100_000
    until_done: Annotated[bool, typer.Option("--until-done", help="Stop when all that is there is done.")] = False

def refuse_how_written(source: SourceOptions) -> None:
    """Refuse to say on Spark how text files, or their times, are written (``ACEP-S023``): there it is found out."""
    given = next((name for name in NOT_ON_SPARK if getattr(source, name) is not None), None)
    if given is not None:
        raise UsageError(
            f"--{given.replace('_', '-')} does not go with --spark",
            code="ACEP-S023",
            hint="write Parquet first, or leave out --spark",
        )
