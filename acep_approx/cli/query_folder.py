"""A folder of queries: its files, cut into texts; and a set made of them, where a wrong one does not stop the others.

A text ends at ``;``, which plays no role in quotes and comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acep_approx.cli.terminal import amount, read_text, say, show_error
from acep_approx.errors import AcepError, QueryError, UsageError
from acep_approx.subscriptions.versions import read_version, weight_of
from history.places import place_of
from history.versions import has_versions

if TYPE_CHECKING:
    import pyarrow as pa

    from acep_approx.api import QuerySet
    from acep_approx.results.explorer.many_queries import AskedQuery

SUFFIXES = (".acep", ".cel")
TABLES = (".parquet", ".csv")
SHOWN = 20
"""Wrong queries that are told one by one."""
_PIECE = re.compile(r"""(?:'[^']*(?:'|\Z)|`[^`]*(?:`|\Z)|--[^\n]*|[^;'`-]|-(?!-))*""")
_ID = re.compile(r"^\s*--\s*id:\s*(\S+)\s*$", re.MULTILINE | re.IGNORECASE)
_BLANK = re.compile(r"(?:\s|--[^\n]*)*")


@dataclass(frozen=True)
class QueryPiece:
    """One text of a file.

    ``start`` is where it begins in ``whole``, the text of the file.
    """

    file: Path
    id: str
    text: str
    start: int
    whole: str

    @property
    def weight(self) -> str | float:
        """What its match points count for: a number, or a column of its table."""
        return weight_of(self.text)

    @property
    def table(self) -> Path | None:
        """The file with the constants of a template."""
        found = (self.file.with_suffix(suffix) for suffix in TABLES)
        return next((path for path in found if path.exists()), None)


class WrongQueriesError(AcepError):
    """Some queries of a folder are wrong, and none is run.

    Parameters
    ----------
    number : int
        How many; they were told.
    exit_code : int
        That of the first one.
    """

    def __init__(self, number: int, exit_code: int) -> None:
        super().__init__(
            f"{many(number)} wrong, and nothing is run: --strict",
            code="ACEP-Q931",
            hint="repair them, or leave out --strict: then the others run",
        )
        self.exit_code = exit_code


def many(queries: int) -> str:
    """A number of queries in words, and what they do."""
    return f"{amount(queries, 'query')} {'is' if queries == 1 else 'are'}"


@dataclass
class WrongQuery:
    """A query that cannot be run, and why."""

    where: str
    error: AcepError
    is_misfit: bool = False
    """Whether it is right, and does not fit the events."""


@dataclass
class Folder:
    """The queries of a folder.

    Attributes
    ----------
    desk : QuerySet
        Those that are right.
    wrong : list of WrongQuery
    misfits : set of str
        The ids of those that do not fit the events.
    """

    desk: QuerySet
    wrong: list[WrongQuery] = field(default_factory=list)
    misfits: set[str] = field(default_factory=set)
    _reported: int = 0
    _pieces: dict[str, QueryPiece] = field(default_factory=dict)

    def add(self, piece: QueryPiece) -> None:
        """Take in a text, or note what is wrong with it."""
        weight: Any = piece.weight
        try:
            if piece.table is None:
                self.desk.add(piece.text, id=piece.id, weight=weight)
                self._pieces[piece.id] = piece
            else:
                made = self.desk.add_many(piece.text, str(piece.table), id=piece.id, weight=weight)
                self._pieces.update((one.id, piece) for one in made)
        except AcepError as error:
            self.wrong.append(WrongQuery(str(piece.file), _in_file(error, piece)))

    def misfit(self, id: str, error: AcepError) -> None:  # noqa: A002  (what users call it)
        """Note that a query does not fit the columns of the events."""
        piece = self._pieces[id]
        self.wrong.append(WrongQuery(f"{piece.file}: {id}", _in_file(error, piece), is_misfit=True))
        self.misfits.add(id)

    def leave_out_misfits(self, schema: pa.Schema, *, strict: bool) -> None:
        """Take queries out that do not fit the columns of the events, and tell them; ``strict``: run nothing then."""
        before = set(self.misfits)
        self.desk.check(schema, self.misfit)
        if strict:
            self.refuse()
        for id_ in self.misfits - before:
            if id_ in self.desk:
                self.desk.remove(id_, cascade=True)
        self.tell_wrong()

    @property
    def exit_code(self) -> int:
        """0, or that of the first wrong query."""
        return self.wrong[0].error.exit_code if self.wrong else 0

    def refuse(self) -> None:
        """Run nothing if a query is wrong: all are told, the first one as the error."""
        if self.wrong:
            self.tell_wrong()
            raise WrongQueriesError(len(self.wrong), self.exit_code)

    def asked(self) -> dict[str, AskedQuery]:
        """The queries that run, by id, as a page shows them."""
        from acep_approx.results.explorer.many_queries import asked_of

        known = {id(piece): asked_of(piece.text) for piece in {id(one): one for one in self._pieces.values()}.values()}
        return {id_: known[id(piece)] for id_, piece in self._pieces.items()}

    def tell_wrong(self) -> None:
        """Tell which queries are wrong that were not told yet, each with its file and the place in it.

        Of those of one file with the same error, as all rows of a template may have, the first is told.
        """
        new, self._reported = self.wrong[self._reported :], len(self.wrong)
        alike: dict[tuple[str, str], list[WrongQuery]] = {}
        for one in new:
            alike.setdefault((one.where.partition(": ")[0], str(one.error)), []).append(one)
        told = [*alike.values()][:SHOWN]
        for first, *others in told:
            show_error(f"{first.where}: {first.error}")
            if others:
                have = "has" if len(others) == 1 else "have"
                say(f"  {amount(len(others), 'more query')} of this file {have} the same error")
        if left := len(new) - sum(map(len, told)):
            say(f"and {left:,} others")


def split_texts(whole: str) -> Iterator[tuple[int, str]]:
    r"""The texts between semicolons, each with where it begins; those of blanks and comments are left out.

    Examples
    --------
    >>> [(at, text.strip()) for at, text in split_texts("ab WITHIN 5; -- c; d\nPATTERN 'x;' a WITHIN 5 ;\n")]
    [(0, 'ab WITHIN 5'), (12, "-- c; d\nPATTERN 'x;' a WITHIN 5")]
    """
    at = 0
    while at <= len(whole):
        found = _PIECE.match(whole, at)
        assert found is not None, "it matches the empty text"
        text = found[0]
        blank = _BLANK.match(text)
        if blank is not None and blank.end() < len(text):
            yield at, text
        at = found.end() + 1


def pieces(folder: Path) -> Iterator[QueryPiece]:
    """Return all texts of a folder: of its files, in the order of their names, or of its newest version.

    Raises
    ------
    UsageError
        ``ACEP-U068``: there is no such folder, or no query in it; ``ACEP-U010``: a file cannot be read.
    """
    folder = place_of(folder)
    if has_versions(folder):
        version = read_version(folder)
        for one in version.queries:
            yield QueryPiece(folder / version.name, one.id, one.text, 0, one.text)
        return
    there = folder.glob("*") if folder.is_dir() else ()
    files = sorted(path for path in there if path.suffix in SUFFIXES and not path.is_dir())
    if not files:
        what = "has no files *.acep or *.cel" if folder.is_dir() else "is no folder"
        raise UsageError(
            f"{str(folder)!r} {what}", code="ACEP-U068", hint="name a folder with queries: --queries FOLDER"
        )
    yield from pieces_of(files)


def pieces_of(files: Iterable[Path]) -> Iterator[QueryPiece]:
    """Return all texts of some files.

    Raises
    ------
    UsageError
        ``ACEP-U010``: a file cannot be read.
    """
    for file in files:
        whole = read_text(file)
        found = list(split_texts(whole))
        for number, (start, text) in enumerate(found, 1):
            named = _ID.search(text)
            default = file.stem if len(found) == 1 else f"{file.stem}:{number}"
            yield QueryPiece(file, named[1] if named else default, text, start, whole)


def read_folder(folder: Path, *, strict: bool, **options: Any) -> Folder:
    """A set of the queries of a folder.

    Parameters
    ----------
    folder : Path
    strict : bool
        Whether a wrong query is refused at once, after all wrong ones were told.
    **options
        Of ``QuerySet``.

    Raises
    ------
    AcepError
        With ``strict`` the error of the first wrong query; ``ACEP-U068``: there are no queries.
    """
    from acep_approx.api import QuerySet

    made = Folder(QuerySet(**options))
    for piece in pieces(folder):
        made.add(piece)
    if strict:
        made.refuse()
    return made


def _in_file(error: AcepError, piece: QueryPiece) -> AcepError:
    if isinstance(error, QueryError) and error.text == piece.text:
        error.text = piece.whole
        error.start += piece.start
        error.end += piece.start
    return error
