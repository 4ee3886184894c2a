"""What is said on stderr where a run found nothing: which step no event passed, and the command that shows more."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from acep_approx.cli.options.choices import ResultKind
from acep_approx.cli.options.groups import given_options
from acep_approx.cli.terminal import progress_bar, say
from acep_approx.errors import AcepError

if TYPE_CHECKING:
    from acep_approx.cli.write import Results
    from acep_approx.why.no_match.result import NoMatch

STDIN = "-"
SHOWN = 10
"""Queries or rules without a match that are named."""


def found_nothing(results: Results, output: ResultKind) -> bool:
    """Whether a run has no match; of partial matches that is not known."""
    if output is ResultKind.COUNT:
        return not results.matches
    return output is not ResultKind.PARTIAL and not results.rows and not results.is_cut


def say_no_match(context: typer.Context, look: Callable[[], NoMatch], *, is_gone: bool = False) -> None:
    """Say why a run found nothing.

    Parameters
    ----------
    context : typer.Context
        Of the command that ran.
    look : callable
        Finds out why; the events may be read again. If it fails, so much is said: the run itself was right.
    is_gone : bool
        Whether the events can be read only once.
    """
    try:
        with progress_bar("no match: looking why", enabled=True):
            found = look()
    except (AcepError, OSError) as error:
        say(f"no match; why there is none could not be found out: {error}")
        return
    say(found.headline)
    for line in found.more:
        say(f"  {line}")
    if found.reason == "no events":
        return
    if STDIN in context.params["inputs"]:
        say("to ask more, keep the events in a file: ... | tee events.csv | acep run ... - ; acep why QUERY events.csv")
    elif is_gone:
        say("to ask more, keep the events in a file: acep why QUERY FILE")
    else:
        say(f"to see more: {why_command(context, found)}")


def say_no_match_so_far(place: str) -> None:
    """Say that a run over events that are still being written has found nothing, and how to ask why.

    Parameters
    ----------
    place : str
        Where the events come from.
    """
    if Path(place).exists():
        say(f"no match so far; acep why QUERY {shlex.quote(place)} says which step no event passed")
    else:
        say("no match so far; to ask why, keep the events in a file: acep why QUERY FILE")


def say_silent(names: list[str], thing: str) -> None:
    """Say which of many queries or rules have no match."""
    if names:
        more = f", and {len(names) - SHOWN:,} others" if len(names) > SHOWN else ""
        say(f"{thing} without a match: {', '.join(names[:SHOWN])}{more}")


def why_command(context: typer.Context, found: NoMatch) -> str:
    """The command that shows the place of the furthest partial match, with the options that the run was given."""
    words = ["acep", "why", *_texts(context.params["query"]), *_texts(context.params["inputs"])]
    given = given_options(context)
    for option in _options_of_why(context):
        name = str(option.name)
        value = context.params.get(name)
        if name not in given or option.param_type_name == "argument":
            continue
        words += [option.opts[0]] if value is True else [w for text in _texts(value) for w in (option.opts[0], text)]
    key = found.key or {}
    for name, value in key.items():
        words += ["--key", str(value) if len(key) == 1 else f"{name}={value}"]
    return shlex.join([*words, *(("--around", found.around) if found.around else ())])


def _options_of_why(context: typer.Context) -> list[Any]:
    assert context.parent is not None, "acep has commands"
    return list(context.parent.command.commands["why"].params)  # type: ignore[attr-defined]


def _texts(value: Any) -> list[str]:
    """A value, or several, as they are written."""
    return [str(getattr(one, "value", one)) for one in (value if isinstance(value, list | tuple) else [value])]
