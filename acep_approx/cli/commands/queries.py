"""``acep queries``: add queries to a folder with versions, remove them, and list them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from acep_approx.cli.query_folder import Folder, QueryPiece, pieces, pieces_of
from acep_approx.cli.query_folder import many as in_words
from acep_approx.cli.terminal import amount, first_of, say, tell
from acep_approx.errors import UsageError
from acep_approx.shell import command_of
from acep_approx.subscriptions.versions import KeptQuery, Version, change, read_version
from history.places import place_of
from history.versions import has_versions

NAMED = 5
"""Queries that a line names."""


class Action(StrEnum):
    """What is done with the queries of a folder."""

    ADD = "add"
    REMOVE = "remove"
    LIST = "list"


class ListForm(StrEnum):
    """How queries are listed."""

    TABLE = "table"
    JSONL = "jsonl"


FOR_ADD, FOR_LIST = "With add", "With list"


def queries(
    action: Annotated[
        Action, typer.Argument(metavar="ACTION", help="add, remove or list.", show_default=False)
    ],
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A folder of queries with versions.", show_default=False)
    ],
    named: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE|ID", help="With add: files *.acep and *.cel; with remove: ids.", show_default=False
        ),
    ] = None,
    *,
    id: Annotated[  # noqa: A002  (the option's name)
        str | None,
        typer.Option(
            metavar="NAME", help="The id of the query, if there is only one to add.", rich_help_panel=FOR_ADD
        ),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Put queries in the place of those with the same ids.", rich_help_panel=FOR_ADD),
    ] = False,
    version: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, show_default=False, help="List this version; by default the newest.",
            rich_help_panel=FOR_LIST,
        ),
    ] = None,
    format: Annotated[  # noqa: A002  (the option's name)
        ListForm, typer.Option(help="List the queries as a table, or as JSON lines.", rich_help_panel=FOR_LIST)
    ] = ListForm.TABLE,
) -> None:
    """Add queries to FOLDER, remove them, or list them; each change is a new version of the folder.

    acep run --queries FOLDER takes the newest version. A job on Spark that reads a stream takes each new version while
    it runs.

    A file holds one query or several, with ; between them. A query is called as its file, or as a line of it says:
    -- id: name. Nothing is written if a query is wrong.
    """
    given = [name for name, value in (("--id", id), ("--replace", replace)) if value]
    if action is not Action.ADD and given:
        raise _misplaced(given[0], Action.ADD)
    if action is not Action.LIST and (version is not None or format is not ListForm.TABLE):
        raise _misplaced("--format" if version is None else "--version", Action.LIST)
    folder = place_of(folder)
    if action is Action.ADD:
        _add(folder, named or [], id, replace=replace)
    elif action is Action.REMOVE:
        _remove(folder, named or [])
    elif named:
        raise UsageError(f"list takes one folder, and {named[0]!r} is one more", code="ACEP-U230", hint="leave it out")
    else:
        _list(folder, version, format)


def _misplaced(option: str, action: Action) -> UsageError:
    return UsageError(f"{option} goes with acep queries {action} only", code="ACEP-U230", hint="leave it out")


# --- add --------------------------------------------------------------------------------------------------------------


def _add(home: Path, files: Sequence[str], name: str | None, *, replace: bool) -> None:
    """Add the queries of some files.

    Raises
    ------
    UsageError
        ``ACEP-U060``: an id is there already; ``ACEP-U063``: a query to be replaced is read by others; ``ACEP-U230``:
        no file, or one id for several queries; as ``pieces_of`` and ``change``.
    typer.Exit
        A query is wrong: it was told, and nothing was written.
    """
    if not files:
        hint = f"name them: acep queries add {home} FILE.acep"
        raise UsageError("there are no files to add", code="ACEP-U230", hint=hint)
    texts = _texts([*pieces_of(map(place_of, files))], name)
    if not texts:
        hint = "write a query into it, such as PATTERN SEQ(A a, B b) WITHIN 5 min"
        raise UsageError(f"there is no query in {first_of(files, NAMED)}", code="ACEP-U230", hint=hint)

    def added(before: Version) -> list[KeptQuery]:
        taken = [one.id for one in before.queries if one.id in texts]
        if taken and not replace:
            again = command_of(["acep", "queries", "add", str(home), *files, "--replace"])
            raise UsageError(
                f"{str(home)!r} has a query {taken[0]!r} already", code="ACEP-U060", hint=f"replace it: {again}"
            )
        stay = [*_without(home, before, taken)]
        new = [KeptQuery(id_, before.number + 1, text) for id_, text in texts.items()]
        _check_together([*stay, *new])
        return [*stay, *new]

    after = change(home, added)
    say(f"version {after.number} of {home}: {_in_all(after)}, added {first_of([*texts], NAMED)}")


def _texts(some: Sequence[QueryPiece], name: str | None) -> dict[str, str]:
    """Return the texts of new queries by their ids: of a template one for each row of its table."""
    from acep_approx.api import QuerySet

    if name is not None and (len(some) != 1 or some[0].table is not None):
        raise UsageError(
            f"--id {name} is the id of one query, and the files have {amount(len(some), 'query')}"
            + (", one of them with a table" if any(one.table is not None for one in some) else ""),
            code="ACEP-U230",
            hint="write the id before each query: -- id: NAME",
        )
    made = Folder(QuerySet())
    for piece in some:
        made.add(piece if name is None else QueryPiece(piece.file, name, piece.text, piece.start, piece.whole))
    _refuse_wrong(made)
    own = {piece.id if name is None else name: piece.text.strip() for piece in some if piece.table is None}
    return {id_: own[id_] if id_ in own else _of_template(made, id_) for id_ in made.desk}


def _of_template(made: Folder, id_: str) -> str:
    """Return the text of a query of a template with its constants, and its weight where it has one."""
    graph = made.desk.stage.graph
    weight = graph.weights.get(graph.shown(id_)[0])
    return ("" if weight is None else f"-- weight: {weight!r}\n") + made.desk.text(id_)


def _check_together(some: Sequence[KeptQuery]) -> None:
    """Refuse queries that cannot run together, such as those whose streams would form a circle."""
    from acep_approx.api import QuerySet

    made = Folder(QuerySet())
    for one in some:
        made.add(QueryPiece(Path(one.id), one.id, one.text, 0, one.text))
    _refuse_wrong(made)


def _refuse_wrong(made: Folder) -> None:
    if made.wrong:
        made.tell_wrong()
        say(f"{in_words(len(made.wrong))} wrong, so nothing was added")
        raise typer.Exit(made.exit_code)


# --- remove -----------------------------------------------------------------------------------------------------------


def _remove(home: Path, ids: Sequence[str]) -> None:
    """Remove queries.

    Raises
    ------
    UsageError
        ``ACEP-U060``: there is no such query; ``ACEP-U063``: others read what one publishes; ``ACEP-U230``: no id.
    """
    if not ids:
        hint = f"name the queries: acep queries remove {home} ID; acep queries list {home} shows their ids"
        raise UsageError("there are no ids of queries to remove", code="ACEP-U230", hint=hint)
    read_version(home)  # a folder without versions is refused, and no new one made

    def left(before: Version) -> list[KeptQuery]:
        there = {one.id for one in before.queries}
        if unknown := [one for one in ids if one not in there]:
            raise UsageError(
                f"{str(home)!r} has no query {unknown[0]!r}",
                code="ACEP-U060",
                hint=f"see which it has: acep queries list {home}",
            )
        return [*_without(home, before, ids)]

    after = change(home, left)
    say(f"version {after.number} of {home}: {_in_all(after)}, removed {first_of([*dict.fromkeys(ids)], NAMED)}")


def _without(home: Path, before: Version, ids: Sequence[str]) -> Iterator[KeptQuery]:
    """Yield the queries but for some, unless one that stays reads what only these publish."""
    from acep_approx.api import QuerySet

    made = Folder(QuerySet())
    for one in before.queries if ids else ():
        made.add(QueryPiece(Path(one.id), one.id, one.text, 0, one.text))
    for id_ in ids:
        if id_ not in made.desk:
            continue
        if read_by := [one for one in made.desk.stage.graph.removal(id_, cascade=True) if one not in ids]:
            raise UsageError(
                f"{id_!r} cannot go, because its stream is read by {first_of(read_by, NAMED)}",
                code="ACEP-U063",
                hint=f"remove them together: {command_of(['acep', 'queries', 'remove', str(home), id_, *read_by])}",
            )
        made.desk.remove(id_, cascade=True)
    yield from (one for one in before.queries if one.id not in ids)


# --- list -------------------------------------------------------------------------------------------------------------


def _list(home: Path, number: int | None, format: ListForm) -> None:  # noqa: A002  (the option's name)
    if has_versions(home) or number not in (None, 1):
        version = read_version(home, number)
    else:  # the files of a plain folder are version 1, and the only one
        version = Version("", 1, tuple(KeptQuery(one.id, 1, one.text.strip()) for one in pieces(home)))
    if format is ListForm.JSONL:
        for one in version.queries:
            line = {"version": version.number, "id": one.id, "since": one.since, "text": one.text}
            tell(json.dumps(line, ensure_ascii=False))
        return
    from rich.table import Table

    from acep_approx.cli.tables import show

    shown = Table(header_style="bold")
    for heading in ("id", "since", "text"):
        shown.add_column(heading, justify="right" if heading == "since" else "left")
    for one in version.queries:
        shown.add_row(one.id, str(one.since), " ".join(one.text.split()))
    tell(f"version {version.number}: {_in_all(version)}")
    if version.queries:
        show(shown)


def _in_all(version: Version) -> str:
    return amount(len(version.queries), "query")
