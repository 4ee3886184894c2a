"""What is run: a query, a folder of queries, or a file of rules."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from acep_approx.cli.terminal import read_query
from acep_approx.errors import UsageError
from acep_approx.query.rules.parser import is_rules
from history.places import place_of


class WhichFirst(StrEnum):
    """Which rules get of a load budget first."""

    PROTECT = "protect"
    ALIKE = "alike"


QUERIES = (".acep", ".cel", ".txt")
"""Ends of the names of files that hold queries."""


def query_files(incomplete: str) -> list[str]:
    """The files that ``@`` and the beginning of a path may mean; without ``@`` none: the shell has files itself.

    Parameters
    ----------
    incomplete : str
        What was typed so far.
    """
    if not incomplete.startswith("@"):
        return []
    folder, slash, beginning = incomplete[1:].rpartition("/")
    try:
        found = sorted(Path(folder + slash or ".").iterdir())
    except OSError:
        return []
    ends = [(path.name, "/" if path.is_dir() else "") for path in found if path.is_dir() or path.suffix in QUERIES]
    is_shown = [(name, end) for name, end in ends if name.startswith(beginning) and not name.startswith(".")]
    return [f"@{folder}{slash}{name}{end}" for name, end in is_shown]


QueryText = Annotated[
    str,
    typer.Argument(
        show_default=False,
        metavar="QUERY",
        help="The query, or a file that holds it (also as @FILE).",
        autocompletion=query_files,
    ),
]
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
CheckInputs = Annotated[
    list[str] | None,
    typer.Argument(
        show_default=False,
        metavar="INPUT",
        help="Events to hold the names and types against: files, folders, or - for stdin; see acep look.",
    ),
]


@dataclass(frozen=True)
class FolderOptions:
    """Queries in files."""

    panel = "Many queries"

    queries: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Take the queries of this folder: its newest version (acep queries), or its files *.acep and *.cel, "
            "with ; between queries. A query is called as its file, or as the line before it says: -- id: name. "
            "NAME.acep beside NAME.parquet (or .csv) is a template with :parameters and its table, a row for each "
            "query.",
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


@dataclass(frozen=True)
class RuleOptions:
    """The store of rules, and what comes of rules beside matches."""

    panel = "Active rules"

    store: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep the tables in this file of SQLite, and all that is needed to go on. If it is there, the run "
            "goes on from its last checkpoint and leaves out what it has seen of INPUT. By default in memory.",
        ),
    ] = None
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FILE", help="The rows that a table begins with; can be repeated."),
    ] = None
    checkpoint_every: Annotated[
        str | None,
        typer.Option(
            metavar="N|TIME",
            help="With --store: write a checkpoint after N events; by default a batch. With --checkpoint: write one so "
            "often; by default '10 s'.",
        ),
    ] = None
    finish: Annotated[
        bool,
        typer.Option(
            "--finish",
            help="With --store or --checkpoint: no more events will come, so what waits for the end of a window is "
            "decided now.",
        ),
    ] = False
    changes: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            parser=place_of,
            help="Write what was written to each table to a file of this folder. With --stream also to tables of a "
            "database, jdbc:...",
        ),
    ] = None
    calls: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=place_of,
            help="Write the calls of CALL to FILE, as JSON lines, or to a topic, kafka://...",
        ),
    ] = None
    mirror: Annotated[
        Path | None,
        typer.Option(
            metavar="ADDRESS",
            parser=place_of,
            help="With --stream: keep the tables as they stand in a database, jdbc:...",
        ),
    ] = None
    shed_rules: Annotated[
        WhichFirst | None,
        typer.Option(
            metavar="WAY",
            help="With --budget: protect (default): what a rule finds counts for more as others read what it writes; "
            "or alike: it counts for itself alone.",
        ),
    ] = None


Tables = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=FILE",
        help="The rows that a table began with; can be repeated.",
        rich_help_panel=RuleOptions.panel,
    ),
]
"""The rows of the tables of rules when a past began."""
RULES_ONLY = tuple(field.name for field in fields(RuleOptions))
"""Options of rules; ``--checkpoint-every`` and ``--finish`` are of use with live input, too."""


def read_one_query(argument: str, command: str) -> str:
    """The text of a query for a command that takes no rules; see ``read_query``.

    Raises
    ------
    UsageError
        ``ACEP-U132``: it is a file of rules.
    """
    text = read_query(argument)
    if is_rules(text):
        raise UsageError(
            f"these are rules, and {command} takes one query"
            if argument == text
            else f"{argument.removeprefix('@')!r} is a file of rules, and {command} takes one query",
            code="ACEP-U132",
            hint="give it the pattern of one rule, what stands behind its ON, if that reads no table; "
            "acep run, acep train and acep explain take the rules as they are",
        )
    return text


def needed(name: str) -> UsageError:
    """The error that an argument is not there (``ACEP-U069``)."""
    hint = "name files of events, or - for stdin" if name == "INPUT" else "give a query, or a folder: --queries FOLDER"
    return UsageError(f"the argument {name} is missing", code="ACEP-U069", hint=hint)
