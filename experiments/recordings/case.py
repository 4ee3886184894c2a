"""A case of a recording: a name, and the lines that are played one after the other in a folder of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

LONGEST_NAME = 110
THEN = " ;; "
"""Between the lines of one case."""


@dataclass(frozen=True)
class Case:
    """Lines that are played in one folder.

    Parameters
    ----------
    name : str
        ``GROUP/WORDS``: where its recording lies.
    lines : tuple of str
        Words of ``acep``; or ``@append FILE TEXT``, ``@copy A B``, ``@remove A``, ``@call NAME``. A command that ends
        with ``< FILE`` has this file on standard input, through a pipe.
    """

    name: str
    lines: tuple[str, ...]


def cases(group: str, texts: Iterable[str]) -> Iterator[Case]:
    """Cases from lines of text, each named after its own words."""
    seen: dict[str, int] = {}
    for text in texts:
        words = re.sub(r"[^\w.+=%-]+", "_", text).strip("_")[:LONGEST_NAME]
        seen[words] = seen.get(words, 0) + 1
        name = words if seen[words] == 1 else f"{words}~{seen[words]}"
        yield Case(f"{group}/{name}", tuple(text.split(THEN)))


def lines_of(text: str) -> list[str]:
    """The lines of a table, without empty ones and those that begin with ``#``."""
    return [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
