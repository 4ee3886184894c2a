"""``acep check --queries`` and ``acep explain --queries``: which queries are right, and who feeds whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from acep_approx.cli.options.queries import FolderOptions
from acep_approx.cli.query_folder import Folder, many, read_folder

SHOWN = 5
"""Queries of a level, or of a stream, that are named."""


def check_folder_of_queries(options: FolderOptions, source: dict[str, Any], input: str | None, format: Any) -> None:  # noqa: A002
    """Check the queries of a folder, against events if there are some.

    Raises
    ------
    AcepError
        With ``--strict``: some are wrong.
    typer.Exit
        With the code of the first wrong query.
    """
    assert options.queries is not None, "it was given"
    folder = read_folder(options.queries, strict=False, **source)
    if input is not None:
        from acep_approx.events.source import open_source

        folder.desk.check(open_source(input, format=format, on_malformed="skip").schema, folder.misfit)
    if options.strict:
        folder.refuse()
    folder.tell_wrong()
    misfits = sum(one.is_misfit for one in folder.wrong)
    typer.echo(f"{many(len(folder.desk) - misfits)} right and can be run")
    if folder.wrong:
        typer.echo(f"{many(len(folder.wrong))} wrong")
        raise typer.Exit(folder.exit_code)


def explain_folder_of_queries(options: FolderOptions) -> None:
    """Show on which level the queries of a folder run, and who reads what others publish."""
    assert options.queries is not None, "it was given"
    folder = read_folder(options.queries, strict=options.strict)
    folder.tell_wrong()
    typer.echo("\n".join(_lines(folder, options.queries)))
    if folder.wrong:
        raise typer.Exit(folder.exit_code)


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
