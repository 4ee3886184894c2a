"""Holds two recordings against each other."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.recordings.stable import stable

LINES_SHOWN = 30
CHARACTERS_SHOWN = 400


@dataclass(frozen=True)
class Difference:
    """A case that is not the same in both recordings."""

    name: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        shown = [line[:CHARACTERS_SHOWN] for line in self.lines[:LINES_SHOWN]]
        if len(self.lines) > LINES_SHOWN:
            shown.append(f"... {len(self.lines) - LINES_SHOWN} more lines")
        return "\n".join([f"##### {self.name}", *shown, ""])


def names(folder: Path) -> set[str]:
    """The cases of a recording."""
    return {str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.txt")}


def differences(old: Path, new: Path) -> Iterator[Difference]:
    """All cases that differ, or are in one of the recordings only."""
    for name in sorted(names(old) | names(new)):
        one, other = (folder / f"{name}.txt" for folder in (old, new))
        if not (one.exists() and other.exists()):
            yield Difference(name, (f"only in {old if one.exists() else new}",))
            continue
        texts = [stable(path.read_text(encoding="utf-8"), {}) for path in (one, other)]
        if texts[0] != texts[1]:
            before, after = (text.splitlines() for text in texts)
            yield Difference(name, tuple(difflib.unified_diff(before, after, "old", "new", lineterm="", n=2)))


def patterns(expected: Path | None) -> list[str]:
    """Names of cases that may differ, from a file: a pattern with ``*`` on each line; ``#`` begins a comment."""
    lines = expected.read_text(encoding="utf-8").splitlines() if expected else []
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def compare(old: Path, new: Path, expected: Path | None = None) -> int:
    """Print what differs and was not expected; how many cases that are."""
    awaited = patterns(expected)
    found = list(differences(old, new))
    met = {pattern for pattern in awaited if any(fnmatch.fnmatchcase(one.name, pattern) for one in found)}
    surprising = [one for one in found if not any(fnmatch.fnmatchcase(one.name, pattern) for pattern in awaited)]
    for one in surprising:
        print(one)
    for pattern in sorted(set(awaited) - met):
        print(f"expected, but nothing differs: {pattern}")
    print(_summary(len(names(old) | names(new)), found, surprising))
    return len(surprising)


def _summary(cases: int, found: Sequence[Difference], surprising: Sequence[Difference]) -> str:
    expected = len(found) - len(surprising)
    return f"{cases:,} cases: {len(surprising)} differ" + (f", {expected} more as expected" if expected else "")
