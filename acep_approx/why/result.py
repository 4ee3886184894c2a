"""What ``Query.why`` answers, and what is said where a query found nothing: as data, in words, in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from acep_approx.diagrams.fragments import never_raises, table, title, view
from acep_approx.visible import aligned, escape, printable, visible


class Answer(ABC):
    """For an answer that is a dataclass: in words, as data, and in a notebook."""

    @abstractmethod
    def text(self) -> str:
        """The answer in words."""

    @abstractmethod
    def parts(self) -> Iterator[str]:
        """What a notebook shows, one below the other."""

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values, as for JSON."""
        held: Any = self
        return asdict(held)

    def __str__(self) -> str:
        return self.text()

    @never_raises
    def _repr_html_(self) -> str:
        return view(*self.parts())


@dataclass(frozen=True)
class Why(Answer):
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
        return printable("\n".join([self.headline, *aligned(self.table()), *self.lines]))

    def parts(self) -> Iterator[str]:
        """The headline, the events, and line by line what came and what would have helped."""
        yield title(self.headline, "good" if self.matched else "bad")
        if rows := self.table():
            yield table(rows[0], rows[1:], numbers=[i for i, name in enumerate(rows[0]) if name == "row"])
        yield from _lines(self.lines)

    def __repr__(self) -> str:
        return f"<Why: {visible(self.headline)}>"


def text_of(value: Any) -> str:
    """A value for people."""
    return "-" if value is None else visible(str(value))


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


@dataclass(frozen=True)
class NoMatch(Answer):
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
        rows = []
        for one in self.steps:
            events, passed = ("" if number is None else f"{number:,}" for number in (one.events, one.passed))
            rows.append([one.variable, one.type or "any", events, f"{one.fitting:,}", passed])
        return [["step", "type", "events", "fit", "passed"], *rows] if rows else []

    @property
    def more(self) -> tuple[str, ...]:
        """What is said below the headline."""
        helps = (f"it would match with {', or '.join(self.helps)}",) if self.helps else ()
        return (*self.lines, *helps)

    def text(self) -> str:
        """All of it in words."""
        furthest = ("", self.furthest.text()) if self.furthest is not None else ()
        return printable("\n".join([self.headline, *aligned(self.table(), texts=2), *self.more, *furthest]))

    def parts(self) -> Iterator[str]:
        """The headline, how many events came to each step, what would make a match, and the furthest partial match."""
        yield title(self.headline, "good" if self.reason == "found" else "bad")
        if rows := self.table():
            yield table(rows[0], rows[1:], numbers=(2, 3, 4))
        yield from _lines(self.more)
        if self.furthest is not None:
            yield from self.furthest.parts()


# --- in a notebook ----------------------------------------------------------------------------------------------


def _lines(lines: Sequence[str]) -> Iterator[str]:
    """Lines as paragraphs; those that are indented are what the one before them leads to."""
    under: list[str] = []
    for line in [*lines, ""]:
        if line.startswith("  "):
            under.append(f"<li>{escape(line.strip())}</li>")
            continue
        if under:
            yield f"<ul>{''.join(under)}</ul>"
            under = []
        if line:
            yield f"<p>{escape(line)}</p>"
