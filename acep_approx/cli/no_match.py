"""What is said on stderr where a run found nothing: which step no event passed, and the command that shows more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from acep_approx.cli.options.arrivals import may_be_late
from acep_approx.cli.options.groups import given_options, option_words, texts_of
from acep_approx.cli.options.output import ResultKind
from acep_approx.cli.terminal import first_of, plural, progress_bar, say
from acep_approx.errors import AcepError
from acep_approx.shell import command_of, quoted

if TYPE_CHECKING:
    from acep_approx.cli.runs.request import RunRequest
    from acep_approx.cli.write import Results
    from acep_approx.events.source import Source
    from acep_approx.why.result import NoMatch

STDIN = "-"
SHOWN = 10
"""Queries or rules without a match that are named."""
EXPLAINED = 3
"""Of these it is said why."""
LOOKED_AT = 200_000
"""Events that are looked at for each."""
OF_ANSWERS = "format"
"""The option that both commands have, and that means another thing in ``acep why``: how its answer is written."""


def found_nothing(results: Results, output: ResultKind) -> bool:
    """Whether a run has no match; of partial matches that is not known."""
    if output.is_count:
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
    say(headline_of(found))
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


def headline_of(found: NoMatch) -> str:
    """What is said first of a run that put no match out; there may be some."""
    return f"{found.headline}: this run did not put them out" if found.reason == "found" else found.headline


def say_no_match_so_far(place: str) -> None:
    """Say that a run over events that are still being written has found nothing, and how to ask why.

    Parameters
    ----------
    place : str
        Where the events come from.
    """
    if Path(place).exists():
        say(f"no match so far; acep why QUERY {quoted(place)} says which step no event passed")
    else:
        say("no match so far; to ask why, keep the events in a file: acep why QUERY FILE")


def say_silent(
    request: RunRequest,
    names: list[str],
    thing: str,
    text_of: Callable[[str], str],
    reasons: Mapping[str, str],
    source: Source | None,
    **options: Any,
) -> None:
    """Say which queries or rules have no match, and of the first ones which step no event passed.

    Parameters
    ----------
    request : RunRequest
        What was run.
    names : list of str
        Those without a match.
    thing : {"query", "rule"}
    text_of : callable
        The text of a query by its name.
    reasons : mapping of str to str
        What is said of some in the place of what the events tell.
    source : Source or None
        The events, which are read again for each; None, or one that can be read only once: nothing is said of why.
    **options
        ``sort`` and the roles of columns, as for ``Query.match``.
    """
    if not names:
        return
    things = plural(thing) if len(names) > 1 else thing
    say(f"{things} without a match: {first_of(names, SHOWN, ', and {:,} others')}")
    if source is None or not source.reusable:
        return
    with progress_bar("no match: looking why", enabled=True):
        found = [
            (name, reasons[name] if name in reasons else _why(text_of(name), source, options))
            for name in names[:EXPLAINED]
        ]
    for name, why in found:
        say(f"  {name}: {why if isinstance(why, str) else headline_of(why).removeprefix('no match: ')}")
    asked = next(((name, why) for name, why in found if not isinstance(why, str)), None)
    if asked is not None:
        name, answer = asked
        on_one_line = " ".join(text_of(name).split("\n"))
        command = why_command(request.context, answer, (on_one_line, request.inputs))
        say(f"to see more{' of ' + name if len(names) > 1 else ''}: {command}")


def _why(text: str, source: Source, options: dict[str, Any]) -> NoMatch | str:
    from acep_approx.api.compile import compile_query

    try:
        return compile_query(text).match(source, **options).no_match(most=LOOKED_AT)
    except (AcepError, OSError) as error:
        return f"why could not be found out: {error.message if isinstance(error, AcepError) else error}"


def why_command(context: typer.Context, found: NoMatch, asked: tuple[str, list[str]] | None = None) -> str:
    """The command that shows the place of the furthest partial match, with the options that the run was given.

    ``asked`` are the query and the inputs, where the command was not given them so.
    """
    query, inputs = (context.params["query"], context.params["inputs"]) if asked is None else asked
    words = ["acep", "why", *texts_of(query), *texts_of(inputs)]
    given = given_options(context)
    assert context.parent is not None, "acep has commands"
    if may_be_late(given):  # the run put them in order
        words.append("--sort")
        given = {name: spelled for name, spelled in given.items() if name not in ("sort", "on_late")}
    for option in context.parent.command.commands["why"].params:  # type: ignore[attr-defined]
        if option.name in given and option.name != OF_ANSWERS and option.param_type_name != "argument":
            words += option_words(option.opts[0], context.params[option.name])
    key = found.key or {}
    for name, value in key.items():
        words += ["--key", str(value) if len(key) == 1 else f"{name}={value}"]
    return command_of([*words, *(("--around", found.around) if found.around else ())])
