"""Load budgets on the command line: which options go together, and what is said and written afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acep_approx.cli.learning import Saving
from acep_approx.cli.options import format_of
from acep_approx.cli.terminal import say, words
from acep_approx.errors import UsageError

if TYPE_CHECKING:
    from acep_approx.api import Query
    from acep_approx.results.budgeted import BudgetedMatches


@dataclass(frozen=True)
class Asked:
    """What was asked for with ``--budget`` and the options that need it.

    Parameters
    ----------
    budget, policy : str, optional
    history, report, shed : Path, optional
        What was learned from the past; files for the page and for the runs that were shed.
    audit, full_work : float, optional
    seed : int, optional
    learn, expand : bool, default False
    save, learn_log : Path, optional
        Where what is learned goes, and when it was.
    save_every : int, optional
        Batches.
    """

    budget: str | None = None
    history: Path | None = None
    policy: str | None = None
    audit: float | None = None
    seed: int | None = None
    report: Path | None = None
    shed: Path | None = None
    full_work: float | None = None
    learn: bool = False
    save: Path | None = None
    save_every: int | None = None
    learn_log: Path | None = None
    expand: bool = False

    def check(self) -> None:
        """Refuse options that need a budget, and files that cannot be written, before any work is done.

        Raises
        ------
        UsageError
            ``ACEP-U040``: such an option without ``--budget``; ``ACEP-U049``: one that needs ``--learn`` without it,
            or nowhere to save to; ``ACEP-U030``: not a budget; ``ACEP-U016``: a folder that is not there.
        """
        values = {name.replace("_", "-"): value for name, value in vars(self).items() if name != "budget"}
        given = [name for name, value in values.items() if value is not None and value is not False]
        if self.budget is None:
            if given:
                raise UsageError(
                    f"--{given[0]} is about a load budget, and there is none",
                    code="ACEP-U040",
                    hint="say how much may be done: --budget '20%', '5000 steps/event', '200 runs' or '2 ms/batch'",
                )
            return
        self._check_learning()
        for file in (self.report, self.shed, self.learn_log):
            check_folder(file)

        from acep_approx.budget.budget import Budget

        Budget.parse(self.budget)

    def _check_learning(self) -> None:
        for name in ("save", "save_every", "learn_log"):
            if getattr(self, name) is not None and not self.learn:
                raise UsageError(
                    f"--{name.replace('_', '-')} is about what a run learns, and this one does not",
                    code="ACEP-U049",
                    hint="add --learn, or leave it out",
                )
        if self.save_every is not None and self.home is None:
            raise UsageError("--save-every has nowhere to save to", code="ACEP-U049", hint="name a folder: --save DIR")

    @property
    def home(self) -> Path | None:
        """Where what is learned is saved."""
        return self.save or self.history

    def options(self) -> dict[str, Any]:
        """The arguments of ``Query.match_within`` behind the budget."""
        names = ("history", "policy", "audit", "seed", "full_work")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return given | {"log_shed": self.shed is not None, "learn": self.learn}


def check_folder(file: Path | None) -> None:
    """Refuse to write into a folder that is not there (``ACEP-U016``)."""
    if file is not None and not file.parent.is_dir():
        raise UsageError(
            f"there is no folder {str(file.parent)!r} for {file.name!r}", code="ACEP-U016", hint="name another FILE"
        )


def conclude(matches: BudgetedMatches, asked: Asked, source: str, saving: Saving, *, quiet: bool) -> None:
    """Say what the budget was spent on; write the page and the tables that were asked for, and save what was learned.

    Parameters
    ----------
    matches : BudgetedMatches
        After its matches were found.
    asked : Asked
    source : str
        Name of the input.
    saving : Saving
    quiet : bool
        Only write.
    """
    from acep_approx.cli.write import write
    from acep_approx.report.lines import summary

    record = matches.record(source)
    if not quiet and matches.plan.registers is None:
        say(f"budget of {record.budget}: {record.bound}")
    elif not quiet:
        say(f"budget of {record.budget}, policy {record.policy}, seed {record.seed}")
        for line in summary(record):
            say(line)
    if asked.report is not None:
        matches.report(asked.report, source)
    if asked.shed is not None:
        write([matches.shed()], format_of(asked.shed), asked.shed)
    if asked.learn_log is not None:
        write([matches.learning()], format_of(asked.learn_log), asked.learn_log)
    if asked.learn:
        saving.finish(quiet=quiet)


def learned_query(text: str, *, errors: int | None = None, within: str | None = None) -> Query:
    """A query for the engine that sheds, which is the only one that learns."""
    from acep_approx.api import compile_query

    return compile_query(text, errors=errors, within=within, engine="runs")


@contextmanager
def stages(*, enabled: bool) -> Iterator[Callable[[str, float], None]]:
    """A bar on stderr for work in stages, gone when done.

    Yields
    ------
    callable
        Call it with what is being done, and how much of it all is done, from 0 to 1.
    """
    console = words()
    if not (enabled and console.is_terminal):
        yield lambda _stage, _share: None
        return
    from rich import progress as bars

    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.TaskProgressColumn(),
        bars.TimeElapsedColumn(),
    )
    with bars.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading", total=1.0)
        yield lambda stage, share: bar.update(task, description=stage, completed=share)


def show_table(header: list[str], rows: list[list[str]], texts: int = 0) -> None:
    """Print a table for people on stdout; the first ``texts`` columns stand to the left, numbers to the right."""
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = 10_000  # a file has no edge
    table = Table(header_style="bold")
    for number, name in enumerate(header):
        table.add_column(name, justify="left" if number < texts else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
