"""What is asked of matches to explore them: those of a query, within a budget or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeVar

import pyarrow as pa

from acep_approx.engines.progress import RunProgress
from acep_approx.errors import UsageError
from acep_approx.events.source import Source
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.kinds import OutputKind
from acep_approx.planning.planner import Plan, plan
from acep_approx.results.question import Question
from acep_approx.shell import quoted
from acep_approx.why.result import NoMatch


class Explorable(Protocol):
    """The part of ``results.matches.Matches`` that is used; see there."""

    question: Question
    plan: Plan
    source: Source
    progress: RunProgress
    has_warned: bool

    def asking(self, **changes: Any) -> Self:
        """The same, asked for otherwise."""

    def count_by_errors(self) -> dict[int, int]:
        """Matches by number of errors."""

    def points(self) -> pa.Table:
        """Match points."""

    def tables(self) -> Iterator[pa.Table]:
        """Matches."""

    @property
    def exact(self) -> Explorable:
        """The same matches without a budget; themselves, where there is none."""

    @property
    def asked_by(self) -> tuple[str, str]:
        """The method that finds them, with its arguments."""

    def no_match(self) -> NoMatch:
        """Why there is no match."""

    def page_sections(self) -> Iterator[str]:
        """What the page has besides."""

    def begun(self, kind: OutputKind) -> Execution:
        """What runs the query once."""

    def found_by(self, matcher: Execution) -> Iterator[pa.Table]:
        """The results of what has begun."""


Any_ = TypeVar("Any_", bound=Explorable)


@dataclass(frozen=True)
class PageLabels:
    """What a page calls things.

    Attributes
    ----------
    title : str
        Empty: the number of matches.
    source : str
        Name of the input, for people; empty: none is told.
    explanation : tuple of str
        A few sentences of explanation.
    command : str
        The command that makes the page; empty where it was made from Python.
    events : str
        What stands for the events in the call of Python; empty: there is no such call.
    ask : str
        The command that asks about a place, without the place, e.g. ``acep why q.acep events.csv``; empty: by Python.
    notes : tuple of str
        What else is to be known to make the page again.
    facts : tuple of (str, str)
        What else became of the events and the results, in words.
    """

    title: str = ""
    source: str = ""
    explanation: tuple[str, ...] = ()
    command: str = ""
    events: str = "events"
    ask: str = ""
    notes: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, source: str, title: str) -> Self:
        """Those of a page made from Python."""
        return cls(title=title, source=source)

    def asking(self, place: str, key: Mapping[str, Any], *, is_time: bool) -> str:
        """How to ask why there is no match at a place: the command, or the call; empty: it cannot be asked."""
        if self.ask:
            parts = [str(*key.values())] if len(key) == 1 else [f"{name}={value}" for name, value in key.items()]
            around, *keys = (text if text in ("TIME", "VALUE") else quoted(text) for text in (place, *parts))
            return " ".join([self.ask, "--around", around, *(f"--key {one}" for one in keys)])
        if not self.events:
            return ""
        around = repr(place) if is_time else place
        keyed = f", key={dict(key)!r}" if key else ""
        return f"print(query.why({self.events}, around={around}{keyed}))"


def by_rows(found: Any_) -> Any_:
    """The same matches, shown by variables and rows, whatever RETURN and ``bind`` ask for."""
    found = found.asking(bind=None, limit=None)
    if not found.plan.query.outputs:
        return found
    engine = "runs" if found.plan.engine == "runs" else "auto"
    return found.asking(plan=plan(replace(found.plan.query, outputs=()), engine))


def reread(source: Source) -> Source:
    """Events that can be read several times, as a page does: where they come once, they are read, and kept.

    Raises
    ------
    UsageError
        ``ACEP-U150``: they have come, and were not kept.
    """
    if source.is_used_up:
        raise UsageError(
            "these events can be read only once, and have been: a page reads them several times",
            code="ACEP-U150",
            hint="ask for the page first: it keeps them for all else; or give a file, a table or a list",
        )
    if source.reusable:
        return source
    late = source.late.file
    if source.kept is None:
        source.keep()
        source.late.file = None  # who reads them in order finds which are late
        for _ in source.batches():
            pass
    again = source.again()
    again.late.file = late if source.late.file is None else None
    return again


def said_left_out(late: int, malformed: int, without_key: int = 0) -> list[tuple[str, str]]:
    """What is said of the events that were left out; nothing where there were none.

    Examples
    --------
    >>> said_left_out(late=3, malformed=0, without_key=1)
    [('left out', '3 late, 1 without key')]
    """
    counts = {"late": late, "could not be read": malformed, "without key": without_key}
    words = ", ".join(f"{number:,} {name}" for name, number in counts.items() if number)
    return [("left out", words)] if words else []


def keys_of(found: Explorable) -> list[str]:
    """The attributes by which the query splits its events."""
    return [one.name for one in found.plan.query.equivalences]
