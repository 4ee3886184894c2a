"""Many queries, from a folder, in the place of one; and what does not go with them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from acep_approx.cli.completion import query_files
from acep_approx.cli.options.choices import ResultKind
from acep_approx.cli.options.groups import given_options
from acep_approx.cli.options.input import HOW_WRITTEN
from acep_approx.errors import UsageError

OneQuery = Annotated[
    str | None,
    typer.Argument(
        show_default=False,
        metavar="QUERY",
        help="The query, or a file that holds it (also as @FILE); none with --queries.",
        autocompletion=query_files,
    ),
]
RunInputs = Annotated[
    list[str] | None,
    typer.Argument(
        show_default=False,
        metavar="INPUT",
        help="Files of Parquet, CSV or JSON lines, folders of them, or - for stdin.",
    ),
]
OUTPUTS = {ResultKind.MATCHES: "matches", ResultKind.POINTS: "points", ResultKind.COUNT: "counts"}
"""What a run of many queries can put out, in the words of ``QuerySet``."""


@dataclass(frozen=True)
class FolderOptions:
    """Queries in files."""

    panel = "Many queries"

    queries: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Take the queries of this folder: its files *.acep and *.cel, with ; between queries. A query is "
            "called as its file, or as the line before it says: -- id: name. NAME.acep beside NAME.parquet (or .csv) "
            "is a template with :parameters and its table, a row for each query.",
        ),
    ] = None
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Run nothing if a query is wrong; by default it is reported, the others run."),
    ] = False


@dataclass(frozen=True)
class QueriesOptions(FolderOptions):
    """Queries in files that run together."""

    reorder: Annotated[
        str | None,
        typer.Option(
            metavar="DELAY",
            help="Events may come out of order by so much: '5 s', or 5 in ticks. They wait, and are put in order.",
        ),
    ] = None
    stamp: Annotated[
        bool, typer.Option("--stamp", help="Events without a time get that of the clock when they are read.")
    ] = False


WITH_QUERIES = frozenset(
    (
        *("queries", "strict", "reorder", "stamp", "file", "output", "format", "limit", "page", "query", "inputs"),
        "metrics_port",
        *("quiet", "log", "key_idle"),
        *("time", "key", "type", "unit", "start"),
        *("input", "input_format", "sort", "on_malformed", "rejects", "on_late", "late"),
        *HOW_WRITTEN,
        *("follow", "until_idle", "flush", "kafka_option", "checkpoint", "checkpoint_every", "finish"),
    )
)
"""Arguments and options that go with ``--queries``."""
ONLY_WITH = ("strict", "reorder", "stamp")


def check_queries(context: typer.Context, options: FolderOptions, output: ResultKind = ResultKind.MATCHES) -> None:
    """Refuse what does not go with a folder of queries, or is of use with one only.

    Raises
    ------
    UsageError
        ``ACEP-U064``: both are named; ``ACEP-U180``: there are more arguments than the query.
    """
    if context.args:
        raise UsageError(
            f"there is an argument behind the query: {context.args[0]!r:.60}",
            code="ACEP-U180",
            hint="the query is one argument, in quotes; acep check takes events by --input FILE, acep explain none",
        )
    given = given_options(context)
    if options.queries is None:
        for name in ONLY_WITH:
            if name in given:
                raise UsageError(
                    f"{given[name]} is of use with --queries only", code="ACEP-U064", hint="add --queries FOLDER"
                )
        return
    for name, option in given.items():
        if name not in WITH_QUERIES:
            raise _apart(option, "leave it out, or run the query by itself: acep run QUERY")
    if output not in OUTPUTS:
        raise _apart(f"--output {output.value}", f"choose {', '.join(OUTPUTS)}")


def refuse_one_query(query: str | None, hint: str) -> None:
    """Refuse a query beside a folder of them.

    Raises
    ------
    UsageError
        ``ACEP-U064``.
    """
    if query is not None:
        raise UsageError(f"{query!r} and --queries do not go together", code="ACEP-U064", hint=hint)


def needed(name: str) -> UsageError:
    """The error that an argument is not there (``ACEP-U069``)."""
    hint = "name files of events, or - for stdin" if name == "INPUT" else "give a query, or a folder: --queries FOLDER"
    return UsageError(f"the argument {name} is missing", code="ACEP-U069", hint=hint)


def _apart(option: str, hint: str) -> UsageError:
    return UsageError(f"{option} and --queries do not go together yet", code="ACEP-U064", hint=hint)
