"""Logs of servers whose lines of ``#`` say how they are written: W3C extended (IIS, CloudFront), and Zeek."""

from __future__ import annotations

import re
from dataclasses import dataclass

from acep_approx.errors import DataError

_FIELDS = re.compile(rb"(?m)^#[Ff]ields:?[ \t]+(\S.*?)[ \t\r]*$")
_LINE = re.compile(rb"(?m)^#.*$")
_TYPES = re.compile(rb"(?m)^#types[ \t]+(\S.*?)[ \t\r]*$")
_UNSET = re.compile(rb"(?m)^#unset_field[ \t]+(\S+)")
_SEPARATOR = re.compile(rb"(?m)^#separator +(?:\\x([0-9A-Fa-f]{2})|(.))")
_NUMBERS = ("bool", "count", "int", "port", "double", "interval", "time")
"""Types of Zeek whose values are no texts."""


@dataclass(frozen=True)
class Directives:
    """What they say.

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
    ahead, row = _ahead(data)
    found = _FIELDS.search(ahead)
    if found is None:
        return None
    said = _SEPARATOR.search(ahead)
    if said is not None:
        delimiter = bytes([int(said[1], 16)]) if said[1] else said[2]
    else:
        delimiter = b"\t" if b"\t" in (row or found[1]) else b" "
    names = _names(found[1])
    if row and len(names) > 1 and delimiter not in row:  # a comment above rows of another kind
        return None
    kinds = _TYPES.search(ahead)
    pairs = zip(names, _names(kinds[1]) if kinds else (), strict=False)
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


def _ahead(data: bytes) -> tuple[bytes, bytes]:
    """The lines ahead of the first row, and that row."""
    found = re.search(rb"(?m)^[^#\r\n].*", data)
    return (data, b"") if found is None else (data[: found.start()], found.group())


def _names(line: bytes) -> tuple[str, ...]:
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
        names = _names(found[1])
        if names != known:
            at = line + data.count(b"\n", 0, found.start())
            raise DataError(
                f"{name}, line {at}: the columns change: {' '.join(names)}; before they were {' '.join(known)}",
                code="ACEP-D120",
                hint="split the file there, and name the parts, which go together as several files: "
                "csplit -z -f part- -b %02d.log FILE '/^#Fields/' '{*}'",
            )
    return _LINE.sub(b"", data)
