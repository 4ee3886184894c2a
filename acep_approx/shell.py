"""Words of commands that a user copies into a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from acep_approx.masks import masked


def quoted(text: str) -> str:
    """A word of a command of the shell; in double quotes where it has single ones and nothing else is in the way.

    Examples
    --------
    >>> print(quoted("a b"), quoted("SEQ('start trip' a)"), quoted("it's $5"))
    'a b' "SEQ('start trip' a)" 'it'"'"'s $5'
    """
    return f'"{text}"' if "'" in text and not set(text) & set('"$`\\!') else shlex.quote(text)


def command_of(words: Iterable[str]) -> str:
    """Words as one line, in which the passwords of addresses are masked.

    Examples
    --------
    >>> print(command_of(["acep", "why", "SEQ('in' a)", "doors.csv"]))
    acep why "SEQ('in' a)" doors.csv
    """
    return " ".join(quoted(masked(word)) for word in words)
