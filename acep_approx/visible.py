r"""Characters that a terminal or a page would obey, in the place of showing them, as something that people see.

Values, names of columns and files, and queries come from strangers. An escape sequence among them could set the title
or the clipboard of a terminal, a bidirectional mark could turn a line around, a line break could make a line of
its own.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence

_OBEYED = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e007f"
)
"""Control characters but line breaks and tabs; marks of direction and without a width; halves of characters."""
_HALF = re.compile(r"[\ud800-\udfff]")
_IN_TEXT = re.compile(f"[{_OBEYED}]")
_IN_VALUE = re.compile(rf"[\t\n{_OBEYED}]|\\+(?=x[01][0-9a-f]|u[0-9a-f]{{4}})")


def printable(text: str) -> str:
    r"""Lines in which what a terminal would obey is shown as in a string of Python: ``\x1b``, ``\u202e``.

    Line breaks and tabs stay. A text of JSON still says the same: it has none of the first 32 characters, and the
    others are shown as JSON writes them.

    Examples
    --------
    >>> print(printable("a\x1b]52;c;eA==\x07 b\x9b31m\n\u202ec"))
    a\x1b]52;c;eA==\x07 b\u009b31m
    \u202ec
    """
    return text if text.isprintable() else _IN_TEXT.sub(_shown, text)


def visible(text: str) -> str:
    r"""A name or a value in one line; a backslash is doubled where it would look like what stands for a character.

    Examples
    --------
    >>> print(visible("a\nb"), visible("a\\x0ab"), visible("C:\\new\\data"))
    a\x0ab a\\x0ab C:\new\data
    """
    return text if text.isprintable() and "\\" not in text else _IN_VALUE.sub(_shown, text)


def broken_at(text: str) -> int | None:
    r"""Where a text holds half of a character, which no file can; such are also bytes of a name that are not UTF-8.

    Examples
    --------
    >>> broken_at("日本"), broken_at("a\udcff")
    (None, 1)
    """
    found = None if text.isascii() else _HALF.search(text)
    return None if found is None else found.start()


def escape(text: str) -> str:
    """A text for HTML and SVG, where XML takes no control characters."""
    return html.escape(printable(text))


def columns(text: str) -> int:
    """How many columns of a terminal a text of one line takes.

    Examples
    --------
    >>> columns("abc"), columns("日本"), columns("e\u0301")
    (3, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(one: str) -> int:
    if unicodedata.category(one) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(one) in "WF" else 1


def _shown(found: re.Match[str]) -> str:
    if found[0][0] == "\\":
        return found[0] * 2
    return json.dumps(found[0])[1:-1] if found[0] >= "\x7f" else f"\\x{ord(found[0]):02x}"


def aligned(rows: Sequence[Sequence[str]], texts: int | None = None) -> Iterator[str]:
    """Give rows as lines; the columns behind the first ``texts`` are numbers, to the right.

    Examples
    --------
    >>> list(aligned([["type", "events"], ["A", "10"]], texts=1))
    ['  type  events', '  A         10']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        left = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        right = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        cells = left if texts is None else [*left[:texts], *right[texts:]]
        yield f"  {'  '.join(cells).rstrip()}"
