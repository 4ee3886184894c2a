"""What is said where a query found nothing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from acep_approx.diagrams.fragments import never_raises
from acep_approx.visible import printable
from acep_approx.why.result import Why

HEADER = ("step", "type", "events", "fit", "passed")


@dataclass(frozen=True)
class Step:
    """A variable of the pattern.

    Attributes
    ----------
    variable, type : str
        As the query names them; the type is None where any will do.
    events : int or None
        Of this type; None: not counted, as the input could be read only once.
    fitting : int
        Of these the events that meet the conditions on single events.
    passed : int or None
        Events that complete a match of the pattern up to here; None: not known.
    failed : tuple of dict
        The conditions on single events: ``condition``, the number ``failing``, and the ``nearest`` values.
    """

    variable: str
    type: str | None
    events: int | None
    fitting: int
    passed: int | None = None
    failed: tuple[dict[str, Any], ...] = ()

    def row(self) -> list[str]:
        """The step as texts."""
        events, passed = ("" if number is None else f"{number:,}" for number in (self.events, self.passed))
        return [self.variable, self.type or "any", events, f"{self.fitting:,}", passed]


@dataclass(frozen=True)
class NoMatch:
    """Why a query found nothing: the first step of its pattern that no event passed.

    Attributes
    ----------
    events : int
        Events that were looked at.
    is_cut : bool
        Whether there are more: what is said is about the first ones.
    steps : tuple of Step
        The variables in the order of the pattern.
    step : tuple of str
        The variables of the first step that no event passed; empty where it could not be found.
    reason : str
        What kept the events out: "no events", "type", "condition" (of single events), "key" (no key has all of them),
        "order", "window", "together" (conditions on several events, negations, the strategy), "too much" (too many
        partial matches to say), "unknown" (the events are gone), or
        "found": there are matches, which the run did not look for, or shed.
    headline : str
        The same in a sentence.
    lines : tuple of str
        More to it.
    helps : tuple of str
        What would make a match, each on its own.
    around : str
        The time of the furthest partial match, to ask ``Query.why`` about; empty where there is none.
    key : dict
        Its key.
    furthest : Why or None
        What ``Query.why`` says about it, where that was asked for.
    """

    events: int
    is_cut: bool
    reason: str
    headline: str
    steps: tuple[Step, ...] = ()
    step: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()
    around: str = ""
    key: dict[str, Any] | None = None
    furthest: Why | None = None

    def table(self) -> list[list[str]]:
        """The steps as a table of texts, its header first; empty where there are none."""
        if not self.steps:
            return []
        return [list(HEADER), *(step.row() for step in self.steps)]

    @property
    def more(self) -> tuple[str, ...]:
        """What is said below the headline."""
        helps = (f"it would match with {', or '.join(self.helps)}",) if self.helps else ()
        return (*self.lines, *helps)

    def text(self) -> str:
        """All of it in words."""
        rows = self.table()
        widths = [max(len(row[i]) for row in rows) for i in range(len(HEADER))] if rows else []
        shown = [
            "  ".join(cell.ljust(width) if i < 2 else cell.rjust(width) for i, (cell, width) in enumerate(cells))
            for cells in (list(zip(row, widths, strict=True)) for row in rows)
        ]
        furthest = ("", self.furthest.text()) if self.furthest is not None else ()
        return printable("\n".join([self.headline, *(f"  {line.rstrip()}" for line in shown), *self.more, *furthest]))

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values, as for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return self.text()

    @never_raises
    def _repr_html_(self) -> str:
        from acep_approx.why.views import no_match_view

        return no_match_view(self)
