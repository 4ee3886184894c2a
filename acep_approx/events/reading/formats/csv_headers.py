"""The first lines of a CSV file: what stands between values, which lines are ahead of the header, and the names.

In logs of servers lines of ``#`` say how they are written: W3C extended (IIS, CloudFront), and Zeek.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice

from acep_approx.errors import DataError
from acep_approx.events.blocks import FIRST_BYTES, quoted_rows
from acep_approx.events.columns import refuse_many, refuse_twins

_FIELDS = re.compile(rb"(?m)^#[Ff]ields:?[ \t]+(\S.*?)[ \t\r]*$")
_LINE = re.compile(rb"(?m)^#.*$")
_TYPES = re.compile(rb"(?m)^#types[ \t]+(\S.*?)[ \t\r]*$")
_UNSET = re.compile(rb"(?m)^#unset_field[ \t]+(\S+)")
_SEPARATOR = re.compile(rb"(?m)^#separator +(?:\\x([0-9A-Fa-f]{2})|(.))")
_NUMBERS = ("bool", "count", "int", "port", "double", "interval", "time")
"""Types of Zeek whose values are no texts."""
DELIMITERS = (",", ";", "\t", "|")
"""What is looked for, the most common first."""
LOOKED_AT = 20
"""Rows below the header that are looked at."""
TITLES = 12
"""Lines of a title ahead of the header, at most."""
_VALUE = re.compile(r"[+-]?\d+([.,]\d+)*([eE][+-]?\d+)?|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\b.*")
_EXCEL = re.compile(rb"sep=(.)\r?\n", re.IGNORECASE)


@dataclass(frozen=True)
class Directives:
    """What lines of ``#`` say of the columns.

    Parameters
    ----------
    names : tuple of str
        Of the columns.
    delimiter : str
    null : str
        What stands for null.
    texts : tuple of str
        Columns that hold texts, also where all of these look like numbers.
    """

    names: tuple[str, ...]
    delimiter: str
    null: str
    texts: tuple[str, ...] = ()


def directives_of(data: bytes, name: str) -> Directives | None:
    r"""What the lines ahead of the first row say; None where none of them names the columns.

    Parameters
    ----------
    data : bytes
        Whole lines.
    name : str
        File name for messages.

    Examples
    --------
    >>> directives_of(b"#Version: 1.0\n#Fields: date time c-ip\n2024-03-28\t09:30:00\t1.2.3.4\n", "u.log")
    Directives(names=('date', 'time', 'c-ip'), delimiter='\t', null='-', texts=())
    >>> directives_of(b"# a comment\nts,type\n", "a.csv")
    """
    first = re.search(rb"(?m)^[^#\r\n].*", data)
    ahead, row = (data, b"") if first is None else (data[: first.start()], first.group())
    found = _FIELDS.search(ahead)
    if found is None:
        return None
    said = _SEPARATOR.search(ahead)
    if said is not None:
        delimiter = bytes([int(said[1], 16)]) if said[1] else said[2]
    else:
        delimiter = b"\t" if b"\t" in (row or found[1]) else b" "
    names = _words(found[1])
    if row and len(names) > 1 and delimiter not in row:  # a comment above rows of another kind
        return None
    kinds = _TYPES.search(ahead)
    pairs = zip(names, _words(kinds[1]) if kinds else (), strict=False)
    unset = _UNSET.search(ahead)
    if len(set(names)) < len(names):
        raise DataError(
            f"{name}: two columns have one name: {' '.join(names)}",
            code="ACEP-D015",
            hint="name them: --columns a,b,c (columns=[...] of open_source)",
        )
    return Directives(
        names,
        delimiter.decode("latin-1"),
        unset[1].decode() if unset else "-",
        tuple(column for column, kind in pairs if kind not in _NUMBERS),
    )


def _words(line: bytes) -> tuple[str, ...]:
    return tuple(line.decode().split())


def without_directives(data: bytes, known: tuple[str, ...], name: str, line: int) -> bytes:
    r"""Rows without the lines of ``#`` among them, which a server writes again when it starts; blank lines stay.

    Raises
    ------
    DataError
        ``ACEP-D120``: one of them names other columns than those before.

    Examples
    --------
    >>> without_directives(b"#Fields: a b\n1 2\n#Date: x\n3 4\n", ("a", "b"), "u.log", 1)
    b'\n1 2\n\n3 4\n'
    """
    if not (data.startswith(b"#") or b"\n#" in data):
        return data
    for found in _FIELDS.finditer(data):
        names = _words(found[1])
        if names != known:
            at = line + data.count(b"\n", 0, found.start())
            raise DataError(
                f"{name}, line {at}: the columns change: {' '.join(names)}; before they were {' '.join(known)}",
                code="ACEP-D120",
                hint="split the file there, and name the parts, which go together as several files: "
                "csplit -z -f part- -b %02d.log FILE '/^#Fields/' '{*}'",
            )
    return _LINE.sub(b"", data)


@dataclass(frozen=True)
class Header:
    """What the first lines of a CSV file say.

    Parameters
    ----------
    names : list of str
        Of the columns; the last is empty where each row ends with a delimiter.
    delimiter : str
    lines : int
        Ahead of the first row of values.
    skipped : int
        Of these, comments, blank ones, and titles.
    rivals : str
        Other delimiters that would do as well as the comma.
    is_spaced : bool
        Whether a space follows each delimiter (``ts, type``), which belongs to no value.
    directives : Directives, optional
        What lines of ``#`` say, where these name the columns: such lines are no rows wherever they stand.
    """

    names: list[str]
    delimiter: str
    lines: int
    skipped: int
    rivals: str = ""
    is_spaced: bool = False
    directives: Directives | None = None


def find_header(data: bytes, name: str, delimiter: str | None, columns: list[str] | None) -> Header:
    """Read the first lines.

    Parameters
    ----------
    data : bytes
        Whole lines, with some rows of values if there are any.
    name : str
        File name for messages.
    delimiter : str or None
        None: the only one that the header and the rows below agree on, else a comma.
    columns : list of str or None
        Names of columns, where there is no header.

    Raises
    ------
    DataError
        ``ACEP-D015``: no header, or two columns of one name; ``ACEP-D026``: values stand in the place of the header.
    """
    if (said := directives_of(data, name)) is not None:
        return Header(columns or [*said.names], delimiter or said.delimiter, lines=0, skipped=0, directives=said)
    skipped, comment, start = 0, b"", 0
    excel = _EXCEL.match(data)
    if excel:
        delimiter, skipped, start = delimiter or excel[1].decode(), 1, excel.end()
    for line in io.BytesIO(data[start:]):
        if line.strip() and not line.startswith(b"#"):
            break
        comment = line if line.strip() else comment
        skipped, start = skipped + 1, start + len(line)
    if columns is None:
        title = _title(data[start:], delimiter)
        skipped, start = skipped + title.count(b"\n"), start + len(title)
    rest = data[start:]
    rivals = ""
    if delimiter is None:
        delimiter, *others = _fitting(rest)
        rivals = "".join(others)
    is_spaced = _is_spaced(rest, delimiter, LOOKED_AT if columns else 2)  # a first event waits for no other
    rest = without_spaces(rest, delimiter) if is_spaced else rest
    rows = _fields(rest, delimiter)
    found = partial(Header, delimiter=delimiter, skipped=skipped, rivals=rivals, is_spaced=is_spaced)
    if columns is not None:
        is_said = bool(rows) and [text.strip() for text in rows[0]] == columns
        return found(_as_wide(columns, rows), lines=skipped + is_said)
    names, lines = _names(rest, name, delimiter)
    below = rows[1:]
    if comment and (hidden := _hidden_header(comment, [names, *below], delimiter)):
        return found(_checked(hidden, name), lines=skipped, skipped=skipped - 1)
    if names and below and _are_values(names, below[0]):
        raise DataError(
            f"{name}: there is no header: the first line looks like an event ({delimiter.join(names):.60})",
            code="ACEP-D026",
            hint="name the columns: --columns ts,type,price (columns=[...] of open_source), or add a line of names",
        )
    return found(_checked(_as_wide(names, below), name), lines=skipped + lines)


def _is_spaced(data: bytes, delimiter: str, most: int) -> bool:
    """Whether each value but the first of a row begins with a space, in the first rows that have any."""
    sign = delimiter.encode()
    rows = (row for row in quoted_rows(data, sign + b" ") if row.strip(sign + b"\r\n "))
    begins = [
        {row[found.end(1) : found.end(1) + 1] for found in _ahead_of_values(delimiter).finditer(row) if found[1]}
        - {sign, b"\r", b"\n", b""}
        for row in islice(rows, most)
    ]
    return bool(begins) and all(signs == {b" "} for signs in begins) and not delimiter.isspace()


def without_spaces(data: bytes, delimiter: str) -> bytes:
    r"""Rows without the spaces ahead of values; those within quotes stay.

    Examples
    --------
    >>> without_spaces(b'ts, name\n1, "a, b"\n2,  c d\n', ",")
    b'ts,name\n1,"a, b"\n2,c d\n'
    """
    return _ahead_of_values(delimiter).sub(rb"\1\2", data)


@lru_cache(maxsize=16)
def _ahead_of_values(delimiter: str) -> re.Pattern[bytes]:
    """The begin of a value: behind it spaces, and the whole value if it is quoted, so that none is looked for in it."""
    return re.compile(rb"(?m)(^|" + re.escape(delimiter.encode()) + rb') *("(?:[^"]|"")*")?')


def _title(data: bytes, delimiter: str | None) -> bytes:
    """Lines such as ``Account 7;;;`` ahead of the header, where nothing but the lines below them can be the header.

    These have the width of most rows, a name for each column, and more than twice as many as any line above has values.
    """
    data = data[:FIRST_BYTES]
    lines = data.splitlines(keepends=True)[: TITLES + 1]
    for sign in DELIMITERS if delimiter is None else (delimiter,):
        filled: list[int] = []
        end = 0
        for line in lines:
            rows = _fields(data[end:], sign) if line.strip() else []
            if rows and (names := _names_of_columns(rows)):
                if filled and 2 * max(filled) < len(names):
                    return data[:end]
                break
            filled.append(sum(bool(text.strip()) for row in _fields(line, sign) for text in row))
            end += len(line)
    return b""


def _names_of_columns(rows: list[list[str]]) -> list[str]:
    (first, *below) = [[text.strip() for text in row] for row in rows]
    agreeing = sum(len(row) == len(first) for row in below)
    names = first if first[-1] else first[:-1]  # rows may end with a delimiter
    is_named = all(names) and len(set(names)) == len(names) > 1 and not any(map(_is_value, names))
    return names if is_named and below and 2 * agreeing > len(below) else []


def likely_delimiter(data: bytes) -> str:
    r"""The only delimiter that the header and most rows below agree on; a comma if there is none, or more than one.

    Examples
    --------
    >>> likely_delimiter(b"ts;price\n1;2,5"), likely_delimiter(b"ts\n1"), likely_delimiter(b"a|b;c\n1|2;3")
    (';', ',', ',')
    """
    return _fitting(data)[0]


def _fitting(data: bytes) -> list[str]:
    found = []
    for delimiter in DELIMITERS:
        first, *others = [len(row) for row in _fields(data, delimiter)] or [0]
        agreeing = sum(first <= width <= first + 1 for width in others)
        if first > 1 and agreeing * 2 >= len(others):
            found.append(delimiter)
    return found if len(found) == 1 else [",", *(delimiter for delimiter in found if delimiter != ",")]


def looks_like_events(data: bytes, delimiter: str) -> bool:
    """Whether there is no header: the first row holds values, as the one below it does."""
    first, *others = _fields(data, delimiter) or [[]]
    return bool(first and others) and _are_values(first, others[0])


def _fields(data: bytes, delimiter: str) -> list[list[str]]:
    rows = (row for row in quoted_rows(data, delimiter.encode()) if row.strip())
    texts = [row.decode(errors="replace") for row in islice(rows, LOOKED_AT + 1)]
    try:
        return [row for row in csv.reader(texts, delimiter=delimiter, skipinitialspace=True) if row]
    except csv.Error:
        return []


def _names(rest: bytes, name: str, delimiter: str) -> tuple[list[str], int]:
    reader = csv.reader((line.decode() for line in io.BytesIO(rest)), delimiter=delimiter)
    try:
        names = next((row for row in reader if any(row)), [])
    except csv.Error as error:
        raise DataError(
            f"{name}: the header cannot be read: {error}", code="ACEP-D015", hint="lines must end with LF or CR LF"
        ) from error
    return [text.strip() for text in names], reader.line_num


def _hidden_header(comment: bytes, rows: list[list[str]], delimiter: str) -> list[str]:
    """A header that is written as a comment (``#ts,type``), if the last one is such."""
    rows_of_comment = _fields(comment.lstrip(b"# "), delimiter)
    hidden = [text.strip() for row in rows_of_comment for text in row]
    fits = len(hidden) == len(rows[0]) > 1 and all(hidden)
    return hidden if fits and any(map(_is_value, rows[0])) and not any(map(_is_value, hidden)) else []


def _are_values(first: list[str], second: list[str]) -> bool:
    pairs = list(zip(first, second, strict=False))
    return any(map(_is_value, first)) and not any(_is_value(below) and not _is_value(above) for above, below in pairs)


def _is_value(text: str) -> bool:
    return _VALUE.fullmatch(text.strip()) is not None


def _as_wide(names: list[str], below: list[list[str]]) -> list[str]:
    """The names, and one without a name where each row ends with a delimiter, and the header does not."""
    widths = Counter(len(row) for row in below)
    is_longer = bool(below) and set(widths) == {len(names) + 1} and not any(row[-1] for row in below)
    return [*names, ""] if is_longer else names


def _checked(names: list[str], name: str) -> list[str]:
    refuse_many(names, name)
    refuse_twins(names, name)
    return names
