"""Files of rules in the place of a query; and what does not go with them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from acep_approx.cli.options.choices import ResultKind
from acep_approx.cli.options.groups import given_options
from acep_approx.cli.options.input import HOW_WRITTEN
from acep_approx.cli.options.live import LIVE_TOO
from acep_approx.cli.terminal import read_query
from acep_approx.errors import UsageError
from acep_approx.query.rules.parser import is_rules


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
        typer.Option(metavar="FOLDER", help="Write what was written to each table to a file of this folder."),
    ] = None
    calls: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the calls of CALL to FILE, as JSON lines.")
    ] = None


RULES_ONLY = ("store", "table", "checkpoint_every", "finish", "changes", "calls")
WITH_RULES = frozenset(
    (
        *(*RULES_ONLY, "query", "inputs", "file", "output", "format", "page", "quiet", "log", "metrics_port"),
        *("time", "key", "type", "unit"),
        *("input", "input_format", "sort", "on_malformed", "rejects", "on_late", "late"),
        *HOW_WRITTEN,
        *("follow", "until_idle", "flush", "kafka_option"),
    )
)
"""Arguments and options that go with a file of rules."""


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
            "acep run and acep explain take the rules as they are",
        )
    return text


def events_between(given: str | None) -> int:
    """After how many events a store writes a checkpoint.

    Raises
    ------
    UsageError
        ``ACEP-U142``: ``--checkpoint-every`` is no number of events.
    """
    if given is None:
        return 1
    if not (given.isascii() and given.isdigit() and int(given)):
        raise UsageError(
            f"--checkpoint-every is {given!r}", code="ACEP-U142", hint="with --store it is a number of events: 10000"
        )
    return int(given)


def refuse_without_rules(context: typer.Context, *, is_live: bool = False) -> None:
    """Refuse what is of use with rules only, where there is one query; live input knows some of it, too.

    Raises
    ------
    UsageError
        ``ACEP-U064``: both are named.
    """
    for name, option in given_options(context).items():
        if name in RULES_ONLY and not (is_live and name in LIVE_TOO):
            raise UsageError(
                f"{option} is of use with a file of rules only, and this is a query",
                code="ACEP-U064",
                hint="leave it out; a file of rules begins with TABLE or RULE",
            )


def check_rules(context: typer.Context, output: ResultKind = ResultKind.MATCHES) -> None:
    """Refuse what does not go with rules yet.

    Raises
    ------
    UsageError
        ``ACEP-U064``: both are named.
    """
    for name, option in given_options(context).items():
        if name not in WITH_RULES:
            raise apart(option, "leave it out")
    if output is not ResultKind.MATCHES:
        raise apart(f"--output {output.value}", "leave it out: FOR EACH POINT gives the points of a rule")


def apart(option: str, hint: str) -> UsageError:
    """The error that something does not go with rules yet (``ACEP-U064``)."""
    return UsageError(f"{option} and active rules do not go together yet", code="ACEP-U064", hint=hint)
