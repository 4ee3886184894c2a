"""The program ``acep``: its commands, and what users see when something goes wrong.

Nothing heavy is imported before a command runs, so that ``acep --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from acep_approx import __version__
from acep_approx.cli.commands.check import check
from acep_approx.cli.commands.demo import demo
from acep_approx.cli.commands.explain import explain
from acep_approx.cli.commands.package import package
from acep_approx.cli.commands.replay import replay
from acep_approx.cli.commands.run import run
from acep_approx.cli.commands.train import train
from acep_approx.cli.commands.tune import tune
from acep_approx.cli.commands.why import why
from acep_approx.cli.terminal import said, say, show_error, warnings_in_words
from acep_approx.errors import AcepError
from history.errors import HistoryError

EXIT_INTERRUPTED = 130
EPILOG = (
    "First steps:  [cyan]acep demo[/cyan]\n\n"
    "Exit codes:  0 ok, 1 failed, 2 wrong usage, 3 the query is wrong or cannot be run, 4 the data is wrong, "
    "130 interrupted"
)


class Commands(TyperGroup):
    """The commands; turns errors into a message and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            with said("acep_approx.outfile"), warnings_in_words():
                return super().invoke(ctx)
        except BrokenPipeError as error:  # the reader of our output, e.g. `head`, has had enough: no failure
            _mute_stdout()
            raise typer.Exit(0) from error
        except OSError as error:  # e.g. the disk is full
            _mute_stdout()
            failed = AcepError(f"the system refuses: {error}", code="ACEP-E001")
            show_error(str(failed))
            raise typer.Exit(failed.exit_code) from error
        except (AcepError, HistoryError) as error:
            show_error(str(error))
            raise typer.Exit(error.exit_code) from error
        except KeyboardInterrupt as error:
            say("interrupted")
            raise typer.Exit(EXIT_INTERRUPTED) from error


app = typer.Typer(
    name="acep",
    cls=Commands,
    help="Approximate complex event matching: every match of a pattern in a stream, with up to k events missing.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _mute_stdout() -> None:
    """Let what is still buffered go nowhere, or Python would complain at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"acep {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of the program itself."""


app.command(
    epilog="[cyan]acep run 'PATTERN SEQ(A a, B b, C c) WITHIN 10 s ERRORS 1' events.parquet[/cyan]\n\n"
    "[cyan]cat events.csv | acep run @query.acep - --time when --key user --format csv -o found.csv[/cyan]\n\n"
    "[cyan]acep run @query.acep logs/ --errors 2 --output points -o points.parquet[/cyan]\n\n"
    "[cyan]acep run 'a(b|c)d WITHIN 50 events' letters.jsonl --output count[/cyan]"
)(run)
app.command(
    epilog="[cyan]acep check 'PATTERN SEQ(A a, B b) WHERE a.price > 10 WITHIN 5 min'[/cyan]\n\n"
    "[cyan]acep check @query.acep --input events.parquet --time when[/cyan]"
)(check)
app.command(
    epilog="[cyan]acep explain @query.acep[/cyan]\n\n"
    "[cyan]acep explain 'ab*c WITHIN 10' --format dot | dot -Tsvg > automaton.svg[/cyan]"
)(explain)
app.command(
    epilog="[cyan]acep why @query.acep events.parquet --key 'box 1' --around 2024-05-01T08:00:00Z[/cyan]\n\n"
    "[cyan]acep why @query.acep logs/ --key user=ann --key host=db1 --around 1714550400 --unit s --format json[/cyan]"
)(why)
app.command(
    epilog="[cyan]acep train @query.acep may.parquet -o history/[/cyan]\n\n"
    "[cyan]acep run @query.acep june.parquet --budget 20% --history history/[/cyan]"
)(train)
app.command(
    epilog="[cyan]acep tune @query.acep may.parquet --errors 0,1,2 --within '10 s,20 s' --plot curves.html[/cyan]"
)(tune)
app.command(
    epilog="[cyan]acep replay @query.acep june.parquet --budget 20% --history history/ --at 2024-06-03T08:00:00Z[/cyan]"
)(replay)
app.command(epilog="[cyan]acep package -o acep.zip && spark-submit --py-files acep.zip job.py[/cyan]")(package)
app.command(epilog="[cyan]acep demo --output flights.html[/cyan]")(demo)


def main() -> None:
    """Entry point of the script ``acep``."""
    app(prog_name="acep")


if __name__ == "__main__":
    main()
