"""Words of commands that a user copies into a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from acep_approx.masks import masked
from acep_approx.visible import printable, visible

_BYTE = re.compile("[\udc80-\udcff]")
"""What Python has for the bytes of a file's name that are no text."""


def quoted(text: str) -> str:
    r"""A word of a command of the shell; in double quotes where it has single ones and nothing else is in the way.

    Examples
    --------
    >>> print(quoted("a b"), quoted("SEQ('start trip' a)"), quoted("it's $5"))
    'a b' "SEQ('start trip' a)" 'it'"'"'s $5'
    >>> print(quoted("a\x1bb"))
    $'a\x1bb'
    """
    if visible(text.replace("\n", "")) != text.replace("\n", ""):
        return _with_escapes(text)
    return f'"{text}"' if "'" in text and not set(text) & set('"$`\\!') else shlex.quote(text)


def _with_escapes(text: str) -> str:
    """A word in which characters that a terminal would obey are written as ``bash`` and ``zsh`` read them."""
    plain = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
    raw = _BYTE.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", plain)
    return f"$'{printable(raw)}'"


def command_of(words: Iterable[str]) -> str:
    """Words as one line, in which the passwords of addresses are masked.

    Examples
    --------
    >>> print(command_of(["acep", "why", "SEQ('in' a)", "doors.csv"]))
    acep why "SEQ('in' a)" doors.csv
    """
    return " ".join(quoted(masked(word)) for word in words)


OPTIONS = {"format": "--input-format", "key": "--key-column"}
"""Options that are not called as the arguments in Python are."""


def option_of(argument: str) -> str:
    """Return the option of ``acep run`` that stands for an argument of ``Query.match``.

    Examples
    --------
    >>> option_of("key"), option_of("time_zone")
    ('--key-column', '--time-zone')
    """
    return OPTIONS.get(argument) or f"--{argument.replace('_', '-')}"
