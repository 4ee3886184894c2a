"""The page of a run: where it goes, and what it says about how it was made."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from acep_approx.cli.exact_command import command_line
from acep_approx.cli.options.input import RunInputOptions
from acep_approx.cli.options.output import OutputOptions, check_file, check_folder
from acep_approx.errors import UsageError

if TYPE_CHECKING:
    from acep_approx.results.exploring.found import Found, Labels


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
        cls, context: typer.Context, options: PageOptions, inputs: list[str], others: dict[str, Path | None]
    ) -> Self | None:
        """What was asked for; None: no page.

        Parameters
        ----------
        context : typer.Context
            Of the command.
        options : PageOptions
        inputs : list of str
        others : dict of str to Path or None
            What else is written, and where.

        Raises
        ------
        UsageError
            ``ACEP-U151``: of standard input; ``ACEP-U013``, ``ACEP-U016``, ``ACEP-U017``: it cannot be written there.
        """
        file = options.page
        if file is None:
            return None
        if "-" in inputs:
            raise UsageError(
                "a page reads the events several times, and standard input comes once",
                code="ACEP-U151",
                hint="save the events to a file, and name that",
            )
        check_folder(file)
        check_file(file, others, inputs)
        return cls(file, inputs, command_line(context))

    def asking(self, query: str, source: RunInputOptions) -> Self:
        """The same, with how to ask about a place."""
        given = {"--time": source.time, "--key-column": source.key, "--type": source.type, "--start": source.start}
        given["--unit"] = None if source.unit is None else source.unit.value
        given["--input-format"] = None if source.input_format is None else source.input_format.value
        words = [word for name, value in given.items() if value is not None for word in (name, value)]
        words += ["--sort"] if source.sort else []
        words += [w for name in ("on_malformed", "on_late") for w in _skipping(name, source)]
        return replace(self, ask=shlex.join(["acep", "why", query, *self.inputs, *words]))

    @property
    def labels(self) -> Labels:
        """What the page calls things."""
        from acep_approx.results.exploring.found import Labels

        events: Any = self.inputs[0] if len(self.inputs) == 1 else self.inputs
        names = ", ".join(Path(name).name for name in self.inputs[:3]) + (", ..." if len(self.inputs) > 3 else "")
        return Labels(source=names, command=self.command, events=repr(events), ask=self.ask)

    def write(self, found: Found) -> None:
        """Make the page of some matches."""
        from acep_approx.results.exploring.explore import page_text

        self.save(page_text(found, self.labels))

    def save(self, text: str) -> None:
        """Write the page (``ACEP-U012``: it cannot be written)."""
        from acep_approx.cli.rows_file import refusing
        from acep_approx.pages.shell import write_page

        with refusing(self.file):
            write_page(text, self.file)


def _skipping(name: str, source: RunInputOptions) -> list[str]:
    value = getattr(source, name).value
    return [f"--{name.replace('_', '-')}", value] if value == "skip" else []
