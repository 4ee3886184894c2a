"""The page of a run: where it goes, and what it says about how it was made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acep_approx.cli.options.input import QuestionInputOptions, RunInputOptions
from acep_approx.events.live.kafka_address import is_address, parse_address

if TYPE_CHECKING:
    from acep_approx.events.source import Source
    from acep_approx.results.explorer.explorable import Explorable, PageLabels
    from acep_approx.results.explorer.many_queries import GatheredMatches

_SAME = (*(one.name for one in fields(QuestionInputOptions)), "errors", "within")
ASKED = {name: f"--{name.replace('_', '-')}" for name in _SAME} | {"key": "--key-column"}
"""Options that ``acep why`` has as well, and what they are called there."""


@dataclass(frozen=True)
class PageRequest:
    """A page that is to be written.

    Attributes
    ----------
    file : Path
    inputs : list of str
    command : str
        The one that makes it.
    ask : str
        The one that asks about a place, without the place; empty where nobody can be asked.
    """

    file: Path
    inputs: list[str]
    command: str
    ask: str = ""

    @property
    def labels(self) -> PageLabels:
        """What the page calls things."""
        from acep_approx.results.explorer.explorable import PageLabels

        events: Any = self.inputs[0] if len(self.inputs) == 1 else self.inputs
        names = ", ".join(map(_name, self.inputs[:3])) + (", ..." if len(self.inputs) > 3 else "")
        if "-" in self.inputs:
            notes = ("The events came on standard input: give them again.",)
            return PageLabels(source=names, command=self.command, events="", ask=self.ask, notes=notes)
        if any(map(is_address, self.inputs)):
            return PageLabels(source=names, command=self.command, events="")
        return PageLabels(source=names, command=self.command, events=repr(events), ask=self.ask)

    def gathered(
        self,
        gathered: GatheredMatches,
        options: RunInputOptions,
        source: Source,
        alone: Callable[[str], str | None] | None,
        more: Iterable[str] = (),
        before: int = 0,
    ) -> None:
        """Make the page of matches that were gathered.

        Parameters
        ----------
        gathered : GatheredMatches
        options : RunInputOptions
        source : Source
            The events; those that can be read only once were kept.
        alone : callable or None
            Gives the text of a query, where it finds the same by itself. None: events are put in order on the way.
        more : iterable of str
            Further sections, as HTML.
        before : int
            Events of earlier runs of the same stream.
        """
        from acep_approx.api.compile import compile_query
        from acep_approx.pages.explorer import explorer_page
        from acep_approx.pages.shell import write_page
        from acep_approx.results.explorer.many_queries import RereadEvents

        opened = source.again(before)
        gathered.late += source.late.count

        def matches_of(name: str) -> Explorable | None:
            text = None if alone is None else alone(name)
            return None if text is None else compile_query(text).match(opened, sort=options.sort, **options.roles)

        again = RereadEvents(opened, options.roles, options.sort, matches_of, is_in_order=alone is not None)
        write_page(explorer_page(gathered.explored(again, self.labels), more), self.file)

    def write(self, found: Explorable, facts: Iterable[tuple[str, str]] | None = None) -> None:
        """Make the page of some matches.

        Parameters
        ----------
        found : Explorable
            Of events that can be read only once: these were kept.
        facts : iterable of (str, str), optional
            What became of the events, where they were late or changed: nobody can be asked about these again.
        """
        from acep_approx.pages.shell import write_page
        from acep_approx.results.explorer.explorable import reread
        from acep_approx.results.explorer.explore import page_text

        labels = self.labels if facts is None else replace(self.labels, events="", ask="", facts=tuple(facts))
        found.source = reread(found.source)
        write_page(page_text(found, labels), self.file)


def _name(place: str) -> str:
    if place == "-":
        return "standard input"
    return f"the topic {parse_address(place).topic}" if is_address(place) else Path(place).name
