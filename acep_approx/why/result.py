"""What ``Query.why`` answers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from acep_approx.diagrams.fragments import never_raises
from acep_approx.visible import printable, visible


@dataclass(frozen=True)
class Why:
    """The answer.

    Attributes
    ----------
    around : str
        The time that was asked for.
    key : dict
        The values of the equivalence attributes.
    matched : bool
        Whether there is a match.
    errors : int
        Of the match, or of the partial match so far.
    missing : tuple of str
        Variables without event, of a match.
    events : tuple of dict
        Events of the match or of the furthest partial match: variable, row, time, type, and attributes of the query.
    why : str
        Why it came no further: as in ``Matches.partial``; empty for a match, and where nothing began.
    awaited : tuple of dict
        Per variable that could have come next what came: see ``waiting.Awaited``.
    helps : tuple of str
        What would have made a match, each on its own.
    lines : tuple of str
        All this in words.
    """

    around: str
    key: dict[str, Any]
    matched: bool
    errors: int = 0
    missing: tuple[str, ...] = ()
    events: tuple[dict[str, Any], ...] = ()
    why: str = ""
    awaited: tuple[dict[str, Any], ...] = ()
    helps: tuple[str, ...] = ()
    headline: str = ""
    lines: tuple[str, ...] = ()

    @property
    def more(self) -> tuple[str, ...]:
        """What is said below the headline and the table."""
        return self.lines

    def table(self) -> list[list[str]]:
        """The events as a table of texts, its header first; empty where there are none."""
        if not self.events:
            return []
        names = [n for n in self.events[0] if any(event[n] not in (None, "") for event in self.events)]
        return [names, *([text_of(event[n]) for n in names] for event in self.events)]

    def text(self) -> str:
        """The answer in words."""
        rows = self.table()
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
        shown = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return printable("\n".join([self.headline, *(f"  {line}" for line in shown), *self.lines]))

    @never_raises
    def _repr_html_(self) -> str:
        from acep_approx.why.views import why_view

        return why_view(self)

    def __repr__(self) -> str:
        return f"<Why: {visible(self.headline)}>"

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values, as for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return self.text()


def text_of(value: Any) -> str:
    """A value for people."""
    return "-" if value is None else visible(str(value))
