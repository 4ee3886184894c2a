"""Files of text that grow: which one is read, how far, and which one comes after it; its whole lines as they come.

The files of a folder follow one another in the order of their names; the file of a path may be replaced.
"""

from __future__ import annotations

import errno
import hashlib
import io
import logging
import os
import time
from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from acep_approx.errors import DataError, UsageError
from acep_approx.events.blocks import (
    BLOCK_BYTES,
    BYTE_ORDER_MARK,
    FIRST_BYTES,
    LONGEST_ROW,
    Block,
    checked,
    last_line_end,
    too_long,
    unreadable,
)
from acep_approx.events.live.text import LiveReading, LiveText
from acep_approx.events.reading.decoding import MARKS, PARQUET
from acep_approx.events.reading.decoding import SUFFIXES as COMPRESSED
from acep_approx.events.reading.files import format_of
from acep_approx.events.reading.formats.csv import CsvFormat
from acep_approx.events.reading.formats.csv_headers import LOOKED_AT, find_header
from acep_approx.events.reading.formats.json import JsonFormat
from acep_approx.events.reading.formats.json_documents import is_whole_document
from acep_approx.events.reading.formats.readings import TextFormat
from acep_approx.shell import quoted
from history.files import NO_LINK, open_plain

SETTLED = 2_000_000_000
"""Nanoseconds after which a change in a folder gives it another time, however coarse its clock is."""
NOT_PLAIN = (errno.EINVAL, errno.ENXIO, errno.ELOOP, errno.EISDIR, errno.ENODEV)
"""What the system says of a name behind which there is no file to be read."""
LOG = logging.getLogger("acep_approx.live")
MARK = 1024
"""Bytes at the beginning, and before the place reached, by which a file is known again."""


def is_followed(name: str) -> bool:
    """Whether a file of a followed folder is read, by its name: no hidden file, no Parquet, none that is compressed."""
    path = Path(name)
    is_text = format_of(path) not in (None, "parquet") and path.suffix not in COMPRESSED
    return is_text and name[0] not in "._"


def would_be_followed(folder: Path, file: Path) -> bool:
    """Whether a file that is to be written would be one of a followed folder, by its name or behind links."""
    root = os.path.realpath(folder)
    places = (Path(os.path.realpath(file.parent), file.name), Path(os.path.realpath(file)))
    return Path(root).is_dir() and any(str(place.parent) == root and is_followed(place.name) for place in places)


class FollowedFolder:
    """Which file comes after another one.

    Parameters
    ----------
    path : Path

    Notes
    -----
    A look costs as much as there are names; there is one only where the time of the folder says that something was
    changed in it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._root = path.resolve()
        self._known: set[str] = set()
        self._passed: set[str] = set()  # names that are not those of files to read
        self._links_out: set[str] = set()
        self._waiting: list[str] = []  # from the last to the next
        self._stamp: tuple[int, int, int] | None = None
        self._has_looked = False
        self._is_settled = True

    def after(self, name: str) -> str | None:
        """The first file that comes after this one, which is the one that is read; None: there is none yet."""
        status = self.path.stat()
        stamp = status.st_dev, status.st_ino, status.st_mtime_ns
        if stamp != self._stamp:
            is_old = time.time_ns() - status.st_mtime_ns > SETTLED
            self._look(name)
            self._stamp = stamp if is_old and self._is_settled else None
        while self._waiting and self._waiting[-1] <= name:
            self._waiting.pop()
        return self._waiting[-1] if self._waiting else None

    def forget(self, name: str) -> None:
        """A file was gone before it was read: should it come back, it is new."""
        self._known.discard(name)
        if self._waiting and self._waiting[-1] == name:
            self._waiting.pop()
        self._stamp = None

    def real(self, name: str) -> Path:
        """The file behind a name: itself, or that to which a link within the folder leads."""
        path = self.path / name
        return path.resolve() if path.is_symlink() and self._leads_inside(name) else path

    def _look(self, name: str) -> None:
        new = sorted(self._new_names())
        if self._has_looked and name:
            for late in new:
                if late < name:
                    LOG.warning("%s is not read: its name comes before %s, which is read already", late, name)
        self._has_looked = True
        self._known.update(new)
        if new:
            self._waiting = sorted([*self._waiting, *new], reverse=True)

    def _new_names(self) -> Iterator[str]:
        self._is_settled = True
        with os.scandir(self.path) as entries:
            for entry in entries:
                name = entry.name
                if name in self._known or name in self._passed:
                    continue
                if not is_followed(name):
                    self._passed.add(name)
                elif self._leads_inside(name) if entry.is_symlink() else entry.is_file(follow_symlinks=False):
                    yield name

    def _leads_inside(self, name: str) -> bool:
        try:
            file = (self.path / name).resolve(strict=True)
        except (OSError, RuntimeError):  # nowhere yet, or in a circle; it may lead somewhere later
            self._is_settled = False
            return False
        if file.is_relative_to(self._root):
            self._links_out.discard(name)
            return file.is_file()
        if name not in self._links_out:
            self._links_out.add(name)
            so_far = len(self._links_out)
            LOG.warning("%s is not read: it is a link that leads out of %s (%d so far)", name, self.path, so_far)
        return False


@dataclass(frozen=True)
class FilePosition:
    """How far a file was read.

    Parameters
    ----------
    name : str
        Its name within its folder.
    device, inode : int
        The numbers by which the system tells the file from others.
    offset : int
        Bytes that were read, up to the end of a row.
    line : int
        The number of the next line, from 1.
    head, tail : str
        Digests of its first bytes, and of the last ones before the offset.
    """

    name: str
    device: int
    inode: int
    offset: int
    line: int
    head: str
    tail: str

    @classmethod
    def of(cls, name: str, file: BinaryIO, offset: int, line: int) -> FilePosition:
        """The place in an open file."""
        status = os.fstat(file.fileno())
        head, tail = _marks(file, offset)
        return cls(name, status.st_dev, status.st_ino, offset, line, head, tail)

    def is_in(self, file: BinaryIO) -> bool:
        """Whether a file is the one that was read, or has the same content up to here."""
        status = os.fstat(file.fileno())
        if status.st_size < self.offset or _marks(file, self.offset) != (self.head, self.tail):
            return False
        return self.offset > 0 or (status.st_dev, status.st_ino) == (self.device, self.inode)


def _marks(file: BinaryIO, offset: int) -> tuple[str, str]:
    size = min(offset, MARK)
    pieces = (os.pread(file.fileno(), size, at) for at in (0, offset - size))
    head, tail = (hashlib.sha256(piece).hexdigest()[:16] for piece in pieces)
    return head, tail


class FollowedPath:
    """The bytes of a path as they come, over files that take one another's place.

    Parameters
    ----------
    path : Path
        A file, which need not be there yet, or a folder: its files of text follow one another in the order of their
        names, each to its end.
    place : FilePosition, optional
        Where to go on. Default: at the beginning.

    Raises
    ------
    DataError
        ``ACEP-D010``: there is no such folder; ``ACEP-D061``: the file of ``place`` is not there any more;
        ``ACEP-D055``: it is no text; ``ACEP-D150``: it was rewritten in place; ``ACEP-D190``: it is no file,
        such as a pipe.

    Notes
    -----
    A file that is replaced (renamed, and a new one made) is read to its end first, then the new one from its beginning.
    One that is cut off to less than was read of it begins anew; what stood behind the place reached is lost then. A
    file that is rewritten in place, to more than was read, is known by its first bytes and by those before the place
    reached (``ACEP-D150``); nobody can say which rows are missing then. What else is changed in it, and files of
    a folder that were read to their end, are not looked at.
    """

    def __init__(self, path: Path, place: FilePosition | None = None) -> None:
        self.path = path
        self._is_folder = path.is_dir()
        if not self._is_folder and not path.parent.is_dir():
            raise DataError(f"{path}: there is no such folder", code="ACEP-D010", hint="check the path")
        self._file: BinaryIO | None = None
        self._name = "" if self._is_folder else path.name
        self._folder = FollowedFolder(path) if self._is_folder else None
        self._done = ""  # the last file of the folder that was read
        self._at = 0  # bytes given
        self._head = self._tail = b""  # the first of them, and the last
        self._has_waited = False
        self.offset = 0
        self.line = 1
        if place is not None:
            self._go_to(place)

    @property
    def name(self) -> str:
        """The path of the file that is read, for messages."""
        return str(self.path / self._name if self._is_folder else self.path)

    @property
    def lag(self) -> int | None:
        """Bytes of the file that are there and not read yet."""
        return None if self._file is None else max(0, os.fstat(self._file.fileno()).st_size - self.offset)

    def more(self) -> bytes:
        """What is there now behind what was given, up to 4 MiB."""
        if self._file is None and not self._open_first():
            return b""
        assert self._file is not None, "it was opened"
        known = len(self._tail)
        try:
            found = os.pread(self._file.fileno(), BLOCK_BYTES + known, self._at - known)
        except OSError as error:
            raise unreadable(self.name, error) from error
        if len(found) < known:  # it was cut off
            return b""
        if found[:known] != self._tail:
            raise self._rewritten()
        data = found[known:]
        if self._at == 0 and data.startswith((PARQUET, *MARKS.values())):
            raise DataError(
                f"{self.name}: only files of text can be followed",
                code="ACEP-D055",
                hint="write CSV or JSON lines, not compressed; or read the file when it is whole, without --follow",
            )
        self._at += len(data)
        self._head += data[: MARK - len(self._head)]
        self._tail = (self._tail + data[-MARK:])[-MARK:]
        return data

    def passed(self, size: int, lines: int) -> None:
        """So many bytes, which are so many lines, have been read."""
        self.offset += size
        self.line += lines

    def place(self) -> FilePosition | None:
        """How far it was read; None where there was no file yet."""
        if self._file is None:
            return None
        self._check()
        return FilePosition.of(self._name, self._file, self.offset, self.line)

    def _check(self) -> None:
        assert self._file is not None, "it was opened"
        for known, at in ((self._head, 0), (self._tail, self._at - len(self._tail))):
            found = os.pread(self._file.fileno(), len(known), at)
            if found != known and os.fstat(self._file.fileno()).st_size >= self._at:
                raise self._rewritten()

    def _rewritten(self) -> DataError:
        return DataError(
            f"{self.name}: it was rewritten in place, and does not hold any more what was read up to byte "
            f"{self._at:,}: nobody can say which rows are missing",
            code="ACEP-D150",
            hint="let rows be added to it; or write another file, and then give it this name, which is noticed: "
            f"mv NEW {quoted(self.name)}. Then start again, with another checkpoint",
        )

    def has_next(self) -> bool:
        """Whether another file has taken the place of this one, which may have grown up to then."""
        if self._file is None:
            return False
        if self._folder is not None:
            self._check()
            return self._folder.after(self._name) is not None
        status = os.fstat(self._file.fileno())
        if status.st_size < self._at:
            return True
        self._check()
        try:
            now = self.path.stat()
        except FileNotFoundError:  # it was renamed, and the new one is not there yet
            return False
        except OSError as error:  # such as links in a circle
            raise unreadable(self.name, error) from error
        return (now.st_dev, now.st_ino) != (status.st_dev, status.st_ino)

    def go_on(self) -> None:
        """Begin with the next file."""
        assert self._file is not None, "there is a next one"
        name = self._name if self._folder is None else self._folder.after(self._name)
        if name is None:
            return
        self._done = self._name
        if self._folder is not None:
            LOG.warning("%s has been read; going on with %s", self.name, name)
        elif os.fstat(self._file.fileno()).st_size < self._at:
            LOG.warning("%s was cut off; it is read from its beginning", self.name)
        else:
            LOG.warning("%s was replaced; going on with the new file", self.name)
        self._begin(name)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    # --- files ------------------------------------------------------------------------------------------------

    def _begin(self, name: str) -> bool:
        self.close()
        self._name = name
        self._at = self.offset = 0
        self._head = self._tail = b""
        self.line = 1
        try:
            if self._folder is None:
                self._file = open_plain(self.path)  # which is never waited for
            else:
                self._file = open_plain(self._folder.real(name), os.O_RDONLY | NO_LINK)  # none that is elsewhere
        except FileNotFoundError:
            if self._folder is not None:
                self._folder.forget(name)
            return False
        except OSError as error:
            if error.errno in NOT_PLAIN:
                raise DataError(
                    f"{self.name}: this is no file, but a pipe, a device, a folder or a link that leads away",
                    code="ACEP-D190",
                    hint="let files of text stand there; what comes through a pipe is matched without --follow",
                ) from error
            raise unreadable(self.name, error) from error
        return True

    def _open_first(self) -> bool:
        name = self._name if self._folder is None else self._folder.after(self._done)
        is_there = name is not None and self._begin(name)
        if not is_there and not self._has_waited:
            self._has_waited = True
            what = "there is no file in it yet" if self._is_folder else "there is no such file yet"
            LOG.warning("%s: %s; waiting", self.path, what)
        return is_there

    def _go_to(self, place: FilePosition) -> None:
        folder = self.path if self._is_folder else self.path.parent
        others = [] if self._is_folder else sorted(path.name for path in folder.glob(f"{self.path.name}*"))
        is_rewritten = False
        for name in [place.name, *others]:
            path = folder / name
            if not path.is_file():
                continue
            with open_plain(path) as file:
                is_it = place.is_in(file)
                status = os.fstat(file.fileno())
            if is_it:
                if name != place.name:
                    self._check_alone(path)
                self._file, self._name = open_plain(path), place.name
                self._at, self.offset, self.line = place.offset, place.offset, place.line
                size = min(self._at, MARK)
                self._head, self._tail = (os.pread(self._file.fileno(), size, at) for at in (0, self._at - size))
                return
            is_same = (status.st_dev, status.st_ino) == (place.device, place.inode)
            is_rewritten |= is_same and status.st_size >= place.offset
        if is_rewritten:
            self._at = place.offset
            raise self._rewritten()
        raise DataError(
            f"{self.name}: the file that was read up to byte {place.offset:,} is not there any more: what came behind "
            "that place would be missing",
            code="ACEP-D061",
            hint="put it back, under a name that begins with the old one; or begin anew with another checkpoint",
        )

    def _check_alone(self, old: Path) -> None:
        """Refuse to go on where the file was replaced more than once: nobody knows the order of those between."""
        known = {old.name, self.path.name}
        since = old.stat().st_mtime_ns
        between = [
            path.name
            for path in old.parent.glob(f"{self.path.name}*")
            if path.is_file() and path.name not in known and path.stat().st_mtime_ns > since
        ]
        if between:
            raise DataError(
                f"{self.path}: it was replaced more than once since it was read: {', '.join(sorted(between))}",
                code="ACEP-D061",
                hint="put those files together, behind what was read, in the place of the old one; or begin anew",
            )


def to_json(place: FilePosition | None) -> dict[str, Any] | None:
    """A place as JSON."""
    return None if place is None else asdict(place)


def from_json(saved: Any) -> FilePosition | None:
    """What ``to_json`` gave.

    Raises
    ------
    ValueError
        It is something else.
    """
    if saved is None:
        return None
    nothing = FilePosition("", 0, 0, 0, 1, "", "")
    kinds = {name: type(value) for name, value in asdict(nothing).items()}
    if not isinstance(saved, dict) or {name: type(value) for name, value in saved.items()} != kinds:
        raise ValueError("not the place in a file")
    place = replace(nothing, **saved)
    if place.offset < 0 or place.line < 1 or Path(place.name).name != place.name:
        raise ValueError("not a place in a file")
    return place


class GrowingText(LiveText):
    """The rows of a file that grows, or of the files of a folder; see ``LiveText`` and ``FollowedPath``.

    Parameters
    ----------
    followed : FollowedPath
    format, reading
        As for ``LiveText``.

    Notes
    -----
    A line counts once it has its end. What stands behind the last line end of a file counts, too, when another file
    takes its place; else it waits, and is told when the run ends.
    """

    def __init__(
        self,
        followed: FollowedPath,
        format: TextFormat,  # noqa: A002  (the word of the public interface)
        reading: LiveReading,
    ) -> None:
        super().__init__(followed.name, format, reading)
        self.is_one_file = False
        self._files = followed
        self._header = "" if reading.resumed is None else str(reading.resumed.place["header"])
        if self._header and isinstance(format, CsvFormat):  # it may be that of a later file
            self._takes_header(Block(1, self._header.encode()), format)

    @property
    def paths(self) -> list[Path]:
        """The file that is read."""
        return [Path(self._files.name)]

    @property
    def lag(self) -> tuple[int, str] | None:
        """How much is there that was not read yet, and in what it is counted."""
        behind = self._files.lag
        return None if behind is None else (behind, "byte")

    def _pieces(self) -> Generator[Block]:
        files, rest, is_replaced = self._files, b"", False
        line = files.line
        while True:
            if not self.pace.is_stopped and (data := files.more()):
                self.pace.heard()
                rest, line, block = self._cut(rest + data, line)
                if block is not None:
                    yield block
            elif is_replaced:  # and all that was written to it up to then has been read
                if rest:
                    yield self._checked(Block(line, rest))
                files.go_on()
                rest, line, is_replaced = b"", 1, False
                self._name = files.name
            elif files.has_next():
                if self.is_one_file:
                    raise UsageError(
                        f"{self._name} was replaced, and the run knows by their number which events it has seen",
                        code="ACEP-U145",
                        hint="with --store let all events stand in one file that only grows; or leave --store out",
                    )
                is_replaced = True
            elif self.pace.is_over():
                if rest:
                    LOG.warning("%s, line %d has no end yet, and was not read", files.name, line)
                return
            else:
                if files.lag is not None:
                    self._say_waiting()
                self.pace.border()
                self.pace.wait()

    def _cut(self, data: bytes, line: int) -> tuple[bytes, int, Block | None]:
        if line == 1 and isinstance(self._format, JsonFormat) and is_whole_document(data):
            raise DataError(
                f"{self._name}: a JSON document cannot be followed: it is whole only when its last bracket is written",
                code="ACEP-D055",
                hint="write an object on each line (.jsonl); or read the file when it is whole, without --follow",
            )
        cut = last_line_end(data, self._format.quotes)
        if not cut and len(data) > LONGEST_ROW:
            raise too_long(self._name, line)
        if not cut:
            return data, line, None
        whole = data[:cut]
        return data[cut:], line + whole.count(b"\n"), self._checked(Block(line, whole))

    def _checked(self, block: Block) -> Block:
        return checked(block, self._name) if self._malformed.policy == "refuse" else block

    def close(self) -> None:
        """Let go of the file."""
        self._files.close()

    def _is_new(self, piece: Block) -> bool:
        return piece.line == 1

    def _taken(self, piece: Block) -> None:
        self._files.passed(len(piece.data), piece.data.count(b"\n"))

    def _place(self) -> dict[str, Any]:
        return {"kind": "file", "file": to_json(self._files.place()), "header": self._header}

    def _body(self, piece: Block) -> Block:
        """The rows of a piece: the header of a file that takes the place of another one must have the same columns."""
        if piece.line != 1:
            return self._format.after_header(piece)
        piece = Block(1, piece.data.removeprefix(BYTE_ORDER_MARK))
        if isinstance(self._format, CsvFormat) and self._header and not self._takes_header(piece, self._format):
            return piece
        body = self._format.after_header(piece)
        self._header = self._ahead(piece, body.line - piece.line).decode()
        return body

    def _ahead(self, piece: Block, lines: int) -> bytes:
        """The lines of the header with the first row below it, by which they are understood as they are now."""
        rows = self._format.rows(piece.data[: piece.data.rfind(b"\n", 0, FIRST_BYTES) + 1])
        for number in range(lines, min(len(rows), lines + LOOKED_AT) + 1):
            head = b"".join(rows[:number])
            if self._format.after_header(Block(1, head)).data.strip():
                return head
        return b"".join(islice(io.BytesIO(piece.data), lines))

    def _all_pieces(self) -> Iterator[Block]:
        waiting = self._waiting
        if len(waiting) > 1:  # of one file, whose header may stand in several of them
            self._waiting = [Block(waiting[0].line, b"".join(piece.data for piece in waiting))]
        return super()._all_pieces()

    def _takes_header(self, piece: Block, format: CsvFormat) -> bool:  # noqa: A002
        """Whether a new file begins with a header; its columns may stand in another order."""
        assert format.header is not None, "a file was read before"
        if format.header.directives is not None:  # its lines of # are checked wherever they stand
            return True
        known = set(format.header.names)
        try:
            header = find_header(piece.data, self._name, format.header.delimiter, None)
        except DataError:  # its first line looks like an event
            header = None
        if header is not None and set(header.names) == known - {""} and header.lines == piece.data.count(b"\n"):
            header = replace(header, names=[*header.names, *{""} & known], is_spaced=format.header.is_spaced)
        new = set() if header is None else set(header.names)
        if header is None or not known & new:
            LOG.warning("%s has no header; its columns are taken to be those of the file before", self._name)
            return False
        if known - {""} != new - {""}:
            raise DataError(
                f"{self._name}: the new file has other columns: {', '.join(sorted(new ^ known))} only in one of them",
                code="ACEP-D056",
                hint="begin anew with the new file, or give it the columns of the one before",
            )
        format.header = header  # what was decided of the columns stays
        return True
