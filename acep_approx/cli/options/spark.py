"""Work on Spark: on which cluster, as a stream or not, and what does not go with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from acep_approx.cli.options.choices import ResultKind
from acep_approx.cli.options.groups import given_options
from acep_approx.cli.options.input import NOT_ON_SPARK
from acep_approx.errors import UsageError

OUTPUTS = {ResultKind.MATCHES: "matches", ResultKind.POINTS: "points", ResultKind.COUNT: "counts"}
"""What a run on Spark can put out, in the words of ``Query.spark``."""


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
            help="The cluster, e.g. 'local[4]', spark://host:7077; by default as spark-submit says, else this machine.",
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


@dataclass(frozen=True)
class RunSparkOptions(SparkOptions):
    """Whether the work is done on Spark, where, and how it is split."""

    shards: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="How many groups of keys are matched side by side; by default up to Spark."
        ),
    ] = None


@dataclass(frozen=True)
class StreamOptions:
    """A folder whose files grow in number, matched as a stream."""

    panel = "Streams on Spark"

    stream: Annotated[
        bool, typer.Option("--stream", help="Match a folder that gets new files, into the folder of -o, with --spark.")
    ] = False
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where the state is kept; after a stop the same command goes on from there. With --follow too.",
        ),
    ] = None
    trigger: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="How often new files are looked for; by default as often as possible."),
    ] = None
    until_done: Annotated[bool, typer.Option("--until-done", help="Stop when all that is there is done.")] = False


SPARK_ONLY = ("master", "shards", "stream")
STREAM_ONLY = ("watermark", "checkpoint", "trigger", "until_done", "metrics_port", "late", "learn")
ALSO_HERE = ("watermark", "late", "learn", "checkpoint", "metrics_port")
"""Options that a run here knows too."""
BATCH_ONLY = {
    "limit": "a stream is written as it comes",
    "format": "a stream is written as Parquet",
}
HERE_ONLY = {
    "merge": "leave it out: it changes no result",
    "start": "leave it out, or leave out --spark",
    "sort": "leave it out: on Spark events are always put in order",
    **dict.fromkeys(NOT_ON_SPARK, "write Parquet first, or leave out --spark"),
    "rejects": "leave it out: rows left out are counted; with --stream, --late FOLDER has them",
    "on_late": "leave it out: a batch is put in order, and a stream leaves late events out",
    "save": "leave it out: what --learn learns becomes a new version of --history",
    "save_every": "leave it out: with --learn a stream saves as soon as there is something new",
    "learn_log": "leave it out, or leave out --spark",
    "report": "leave it out, or leave out --spark",
    "page": "leave it out, or leave out --spark",
    "shed": "leave it out, or leave out --spark",
    "expand": "leave it out, or leave out --spark",
    "emit": "leave it out: on Spark results are put out when they are final",
    "changelog": "leave it out: on Spark results are put out when they are final",
    "op": "leave out the rows that take events back, or --spark",
    "source": "leave it out: on Spark one watermark is that of all sources",
    "sequence": "leave it out, or leave out --spark",
    "idle": "leave it out, or leave out --spark",
    "flush": "leave it out: workers write files",
}
"""Options of a run here that have no meaning on Spark, and what to do."""


def check_options(context: typer.Context, output: ResultKind, *, spark: bool, stream: bool) -> None:
    """Refuse options of ``acep run`` that do not go together.

    Parameters
    ----------
    context : typer.Context
        Of the command; knows which options were given.
    output : ResultKind
    spark, stream : bool

    Raises
    ------
    UsageError
        ``ACEP-S037``, ``ACEP-S071``: an option that is for Spark, or for streams, without them; ``ACEP-S072``: one
        that does not go with them.
    """
    given = given_options(context)
    for name, option in given.items():
        _check_option(name, option, spark=spark, stream=stream)
    if spark and output not in OUTPUTS:
        raise UsageError(
            f"--output {output.value} does not go with --spark",
            code="ACEP-S072",
            hint=f"choose {', '.join(OUTPUTS)}, or leave out --spark",
        )
    if stream and output is ResultKind.COUNT:
        raise UsageError(
            "--output count does not go with --stream",
            code="ACEP-S072",
            hint="count the rows that were written, or those of --output points",
        )
    if "trigger" in given and "until_done" in given:
        raise UsageError("--trigger does not go with --until-done", code="ACEP-S072", hint="leave one of them out")


def _check_option(name: str, option: str, *, spark: bool, stream: bool) -> None:
    if not spark and name in (*SPARK_ONLY, *STREAM_ONLY) and name not in ALSO_HERE:
        code = "ACEP-S037" if name == "master" else "ACEP-S071"
        raise UsageError(f"{option} is of use with --spark only", code=code, hint="add --spark, or leave it out")
    if spark and not stream and name in STREAM_ONLY:
        raise UsageError(
            f"on Spark {option} is of use with --stream only", code="ACEP-S071", hint="add --stream, or leave it out"
        )
    if spark and name in HERE_ONLY:
        raise UsageError(f"{option} does not go with --spark", code="ACEP-S072", hint=HERE_ONLY[name])
    if stream and name in BATCH_ONLY:
        raise UsageError(f"{option} does not go with --stream", code="ACEP-S072", hint=BATCH_ONLY[name])
