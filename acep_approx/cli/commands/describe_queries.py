"""``acep check --queries`` and ``acep explain --queries``: which queries are right, and who feeds whom."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from acep_approx.cli.options.queries import FolderOptions
from acep_approx.cli.query_folder import Folder, many, read_folder
from acep_approx.cli.terminal import tell
from acep_approx.errors import UsageError

SHOWN = 5
"""Queries of a level, or of a stream, that are named."""


def check_folder_of_queries(
    options: FolderOptions,
    roles: dict[str, Any],
    input: str | None,  # noqa: A002
    reading: dict[str, Any],
) -> None:
    """Check the queries of a folder, against events if there are some.

    Raises
    ------
    AcepError
        With ``--strict``: some are wrong.
    typer.Exit
        With the code of the first wrong query.
    """
    assert options.queries is not None, "it was given"
    folder = read_folder(options.queries, strict=False, **roles)
    if input is not None:
        from acep_approx.events.source import open_source

        folder.desk.check(open_source(input, **reading, on_malformed="skip").schema, folder.misfit)
    if options.strict:
        folder.refuse()
    folder.tell_wrong()
    misfits = sum(one.is_misfit for one in folder.wrong)
    tell(f"{many(len(folder.desk) - misfits)} right and can be run")
    endless = [id_ for id_, plans in folder.desk.plans().items() if any(plan.is_unbounded for plan in plans)]
    if endless:
        tell(f"warning: there is no window in {_named(endless)}: what waits there may stay for ever")
    if folder.wrong:
        tell(f"{many(len(folder.wrong))} wrong")
        raise typer.Exit(folder.exit_code)


def explain_folder_of_queries(options: FolderOptions, format: str) -> None:  # noqa: A002  (the option's name)
    """Show who feeds whom among the queries of a folder, in words or drawn; as ``air`` their automata.

    Raises
    ------
    UsageError
        ``ACEP-U064``: another format.
    """
    assert options.queries is not None, "it was given"
    if format == "json":
        raise UsageError(
            f"--format {format} and --queries do not go together yet",
            code="ACEP-U064",
            hint="explain one query at a time, or choose text, svg, mermaid, dot or air",
        )
    folder = read_folder(options.queries, strict=options.strict)
    folder.tell_wrong()
    if format in ("text", "air"):
        tell("\n".join(_lines(folder, options.queries)) if format == "text" else _airs(folder))
    else:
        tell(folder.desk.graph(format))
    if folder.wrong:
        raise typer.Exit(folder.exit_code)


def _airs(folder: Folder) -> str:
    """The automata of the queries in CEL, by the ids of these."""
    from acep_approx.planning.explain_algebra import air

    some = {id_: plans for id_, plans in folder.desk.plans().items() if plans[-1].query.is_algebra}
    return json.dumps({id_: [air(one) for one in plans] for id_, plans in some.items()}, indent=2, ensure_ascii=False)


def _lines(folder: Folder, path: Path) -> list[str]:
    desk = folder.desk
    lines = [f"{len(desk):,} queries in {path}"]
    for level, ids in sorted(desk.levels().items()):
        what = "see the events of the stream" if level == 0 else "see them, and what levels below publish"
        lines.append(f"level {level}: {_named(ids)} {what}")
    for stream, (publishers, readers) in desk.streams().items():
        lines.append(f"{stream}: published by {_named(publishers)}; read by {_named(readers) if readers else 'none'}")
    return lines


def _named(ids: list[str]) -> str:
    shown = ", ".join(ids[:SHOWN])
    return shown if len(ids) <= SHOWN else f"{shown} and {len(ids) - SHOWN:,} others"
