"""The page of a run: where it goes, and what it says about how it was made."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from acep_approx.cli.exact_command import command_line
from acep_approx.cli.options.groups import given_options
from acep_approx.cli.options.input import QuestionInputOptions, RunInputOptions
from acep_approx.cli.options.output import OutputOptions, check_file, check_folder
from acep_approx.errors import UsageError

if TYPE_CHECKING:
    from acep_approx.results.explorer.explorable import Explorable, PageLabels
    from acep_approx.results.explorer.many_queries import GatheredMatches


APART = {
    "stamp": "leave one of them out: events that get the time of the clock are not found again",
    "reorder": "leave one of them out; or sort the events first: --sort",
    "store": "leave one of them out: a page is of a run from its beginning",
}
"""Options that do not go with a page, and what to do."""


_SAME = (*(one.name for one in fields(QuestionInputOptions)), "errors", "within")
ASKED = {name: f"--{name.replace('_', '-')}" for name in _SAME} | {"key": "--key-column"}
"""Options that ``acep why`` has as well, and what they are called there."""
WRITTEN = {
    "file": "results",
    "report": "the report",
    "shed": "shed runs",
    "learn_log": "the learning log",
    "late": "late events",
    "rejects": "rejected rows",
    "calls": "calls",
}
"""Options that name what else is written, and what that is."""


@dataclass(frozen=True)
class PageOptions:
    """Whether a run is shown as a page."""

    panel = OutputOptions.panel

    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a page of HTML too: where matches lie in time, their events, what nearly matched and why not.",
        ),
    ] = None


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

    @classmethod
    def of(
        cls,
        context: typer.Context,
        options: PageOptions,
        inputs: list[str],
        *,
        query: str = "",
    ) -> Self | None:
        """What was asked for; None: no page.

        Parameters
        ----------
        context : typer.Context
            Of the command.
        options : PageOptions
        inputs : list of str
        query : str
            As it was given; empty: there are many, and nobody can be asked why one has no match.

        Raises
        ------
        UsageError
            ``ACEP-U151``: of standard input; ``ACEP-U152``: what does not go with a page; ``ACEP-U013``,
            ``ACEP-U016``, ``ACEP-U017``: it cannot be written there.
        """
        file = options.page
        if file is None:
            return None
        given = given_options(context)
        for name, hint in APART.items():
            if name in given:
                raise UsageError(f"{given[name]} does not go with --page", code="ACEP-U152", hint=hint)
        if "-" in inputs:
            raise UsageError(
                "a page reads the events several times, and standard input comes once",
                code="ACEP-U151",
                hint="save the events to a file, and name that",
            )
        check_folder(file)
        written = {name: context.params.get(name) for name in WRITTEN}
        check_file(file, {WRITTEN[name]: path for name, path in written.items()}, inputs)
        ask = shlex.join(["acep", "why", query, *inputs, *_reading(context)]) if query else ""
        return cls(file, inputs, command_line(context), ask)

    @property
    def labels(self) -> PageLabels:
        """What the page calls things."""
        from acep_approx.results.explorer.explorable import PageLabels

        events: Any = self.inputs[0] if len(self.inputs) == 1 else self.inputs
        names = ", ".join(Path(name).name for name in self.inputs[:3]) + (", ..." if len(self.inputs) > 3 else "")
        return PageLabels(source=names, command=self.command, events=repr(events), ask=self.ask)

    def gathered(self, gathered: GatheredMatches, source: RunInputOptions, more: Iterable[str] = ()) -> None:
        """Make the page of matches that were gathered, with more sections, as HTML."""
        from acep_approx.events.source import open_source
        from acep_approx.pages.explorer.page import explorer_page
        from acep_approx.results.explorer.many_queries import RereadEvents

        again = RereadEvents(open_source(self.inputs, **source.reading), source.roles, source.sort)
        self.save(explorer_page(gathered.explored(again, self.labels), more))

    def write(self, found: Explorable) -> None:
        """Make the page of some matches."""
        from acep_approx.results.explorer.explore import page_text

        self.save(page_text(found, self.labels))

    def save(self, text: str) -> None:
        """Write the page (``ACEP-U012``: it cannot be written)."""
        from acep_approx.cli.rows_file import refusing
        from acep_approx.pages.shell import write_page

        with refusing(self.file):
            write_page(text, self.file)


def _reading(context: typer.Context) -> Iterator[str]:
    """The options that say how events are read, as ``acep why`` has them."""
    given = given_options(context)
    for name in ASKED:
        if name in given:
            value = context.params[name]
            yield ASKED[name]
            if value is not True:
                yield str(getattr(value, "value", value))
