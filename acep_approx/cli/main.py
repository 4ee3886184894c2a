"""The program ``acep``: its commands, and what users see when something goes wrong.

Nothing heavy is imported before a command runs, so that ``acep --help`` answers at once.
"""

from __future__ import annotations

import errno
import logging
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import UnsupportedOperation
from typing import Annotated, Any, NoReturn, cast

import typer
from typer.core import TyperCommand, TyperGroup

from acep_approx import __version__
from acep_approx.cli import process
from acep_approx.cli.commands.demo import demo
from acep_approx.cli.commands.describe import check, explain
from acep_approx.cli.commands.look import look
from acep_approx.cli.commands.package import package, warm
from acep_approx.cli.commands.queries import queries
from acep_approx.cli.commands.replay import replay
from acep_approx.cli.commands.run import run
from acep_approx.cli.commands.train import train
from acep_approx.cli.commands.tune import tune
from acep_approx.cli.commands.why import why
from acep_approx.cli.logs import logged
from acep_approx.cli.options.groups import GENERAL, take_plain_values
from acep_approx.cli.process import end_compiler
from acep_approx.cli.terminal import read_query, said, say, show_error, warnings_in_words
from acep_approx.errors import EXIT_TEMPORARY, AcepError, UsageError, is_temporary
from acep_approx.events.live.kafka_address import is_address
from acep_approx.masks import masked
from acep_approx.query.rules.parser import is_rules
from acep_approx.shell import command_of
from acep_approx.visible import printable
from history.errors import HistoryError

USAGE = cast("type[typer.BadParameter]", typer.BadParameter.__mro__[1])
"""What Typer raises where a command is not used as it must be."""
LOG = logging.getLogger("acep_approx")
OF_TYPER: tuple[type[Exception], ...] = (typer.BadParameter.__mro__[2], typer.Abort, typer.Exit)
"""What typer says by an exception: the base of all wrong usage, whichever click it stands on, and the ends of a run."""
EXIT_INTERRUPTED = 130
EXIT_CODES = {
    0: "ok",
    1: "failed",
    2: "wrong usage",
    3: "the query is wrong or cannot be run",
    4: "the data is wrong",
    EXIT_TEMPORARY: "temporary trouble, the same command may go well later",
    EXIT_INTERRUPTED: "interrupted",
}
EPILOG = (
    "First steps:  [cyan]acep demo[/cyan], or with your own events [cyan]acep look FILE[/cyan]\n\n"
    "Exit codes:  " + ", ".join(f"{number} {meaning}" for number, meaning in EXIT_CODES.items())
)


class Commands(TyperGroup):
    """The commands; turns errors into a message and an exit code."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options of the program itself, in the panel that commands have for theirs."""
        params: list[Any] = super().get_params(ctx)
        for option in params:
            option.rich_help_panel = GENERAL
        take_plain_values(params)
        return params

    def main(self, *args: Any, **more: Any) -> Any:
        """Run the program, also where what Typer itself prints cannot be written."""
        try:
            try:
                return super().main(*args, **more)
            finally:
                sys.stdout.flush()
        except OSError as error:
            ended = error.__context__
            code = getattr(ended, "code", getattr(ended, "exit_code", 0))
            if code:  # that was to be said, or is said already
                _mute_stdout()
                sys.exit(code)
            try:
                _refused(error)
            except typer.Exit as end:
                sys.exit(end.exit_code)
        except SystemExit as end:
            if end.code == 1 and _is_of_closed_pipe(end):  # as rich and Typer end
                _mute_stdout()
                sys.exit(0)
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            with said("acep_approx.outfile"), said("acep_approx.waiting"), warnings_in_words():
                return super().invoke(ctx)
        except USAGE as error:
            error.message = printable(masked(error.message))
            raise
        except OSError as error:  # e.g. the disk is full
            _refused(error)
        except UnicodeEncodeError as error:
            failed = UsageError(
                f"{error.object!r:.80} is no text: it holds bytes that are not UTF-8, or half of a character",
                code="ACEP-U191",
                hint="write it in UTF-8; the name of a file can be changed: mv OLD NEW",
            )
            show_error(str(failed))
            raise typer.Exit(failed.exit_code) from error
        except (AcepError, HistoryError) as error:
            show_error(str(error))
            raise typer.Exit(exit_code(error)) from error
        except KeyboardInterrupt as error:
            end_compiler()
            say("interrupted")
            raise typer.Exit(EXIT_INTERRUPTED) from error
        except OF_TYPER:
            raise
        except Exception as error:
            raise typer.Exit(_report_internal(error)) from error


SHOWN_BY_LOOK = frozenset(
    (
        *(f"ACEP-D{number:03}" for number in (1, 2, 3, 4, 5, 6, 7, 8, 9)),
        *("ACEP-U101", "ACEP-Q060", "ACEP-Q061", "ACEP-Q062", "ACEP-Q907", "ACEP-Q908"),
    )
)
"""Errors whose reason one sees when one looks at the columns: their names, types, roles, times and their order."""
SHOWN = {"ACEP-D007": "how many events come late, and by how much"}
"""What is shown, where it is not the columns."""


def _for_late_events(given: Mapping[str, Any]) -> str:
    """What a run that lasts can do about events that come late: it cannot sort them."""
    if given.get("queries"):
        return "wait for events that are late by so much: --reorder '10 s'"
    if given.get("query") and is_rules(read_query(given["query"])):
        return "leave out what comes late: --on-late skip"
    return "wait for events that are late by so much: --watermark '10 s'"


def point_to_look(error: AcepError, given: Mapping[str, Any]) -> None:
    """Add to the hint of an error that ``acep look`` shows what is in the input.

    Parameters
    ----------
    error : AcepError
    given : mapping
        The arguments of the command.
    """
    inputs = list(given.get("inputs") or ())
    if given.get("queries") and given.get("query"):  # then all that is named is input
        inputs.insert(0, given["query"])
    if error.code == "ACEP-D007" and (given.get("follow") or given.get("checkpoint") or any(map(is_address, inputs))):
        error.hint = _for_late_events(given)
    is_log = error.code == "ACEP-D012" and "--line-format" in (error.hint or "").partition("like a log")[2]
    if not (error.code in SHOWN_BY_LOOK or is_log) or not inputs or "-" in inputs or "rows" in given:
        return
    if any(map(is_address, inputs)):  # which has no end
        return
    what = SHOWN.get(error.code, "its columns, and what they are taken for")
    shows = f"acep look {command_of(inputs)} shows {what}"
    if error.code in ("ACEP-D001", "ACEP-D008", "ACEP-Q061"):
        from acep_approx.cli.candidates import candidates

        error.hint = (error.hint or "") + candidates(error, inputs, given)
    error.hint = f"{error.hint}\n  see:  {shows}" if error.hint else shows


class Command(TyperCommand):
    """A command whose own help shows ``--help`` beside the other options that all commands have.

    What is wrong with the columns of its input becomes clear from ``acep look``.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """Its options, which take most values as they are."""
        params: list[Any] = super().get_params(ctx)
        take_plain_values(params)
        return params

    def invoke(self, ctx: Any) -> Any:
        """Run it."""
        from acep_approx.cli.options.places import check_places

        try:
            check_places(ctx.params)
            return super().invoke(ctx)
        except AcepError as error:
            point_to_look(error, ctx.params)
            raise

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, also those that are spelled as they were once."""
        from acep_approx.cli.options.older import respelled

        params = self.get_params(ctx)
        takes_events = any(param.name in ("inputs", "past") for param in params)
        args, notes = respelled(args, {name for param in params for name in param.opts}, takes_events=takes_events)
        for note in notes:
            say(note)
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def get_help_option(self, ctx: Any) -> Any:
        """The option ``--help``."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.rich_help_panel = GENERAL
        return option


app = typer.Typer(
    name="acep",
    cls=Commands,
    help="Approximate complex event matching: every match of a pattern in a stream, with up to k events missing.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def exit_code(error: AcepError | HistoryError) -> int:
    """Of the class of an error, or of what passes."""
    return EXIT_TEMPORARY if is_temporary(error) else error.exit_code


def _report_internal(error: Exception) -> int:
    """Say that acep has failed, and nobody else; the exit code."""
    LOG.debug("internal error", exc_info=error)
    kind = f"{type(error).__name__}: {error}"
    if isinstance(error, MemoryError):
        failed = AcepError(f"the system refuses: not enough memory: {error}".rstrip(": "), code="ACEP-E001")
    else:
        failed = AcepError(
            f"acep itself has failed, by no fault of yours: {kind:.500}",
            code="ACEP-E002",
            hint="please report it, with the command and what it says with --log debug",
        )
    show_error(str(failed))
    return failed.exit_code


def _mute_stdout() -> None:
    """Let what is still buffered go nowhere."""
    with suppress(UnsupportedOperation):  # it is no file of the system, as in a program that calls this one
        process.mute(sys.stdout.fileno())


def _refused(error: OSError) -> NoReturn:
    """End where the system refuses something; where a reader of our output, e.g. ``head``, has had enough, quietly."""
    _mute_stdout()
    if isinstance(error, BrokenPipeError):
        raise typer.Exit(0) from error
    what = "standard output is closed" if error.errno == errno.EBADF else f"the system refuses: {error}"
    failed = AcepError(what, code="ACEP-E001", passes=is_temporary(error))
    show_error(str(failed))
    raise typer.Exit(exit_code(failed)) from error


def _is_of_closed_pipe(error: BaseException | None) -> bool:
    return error is not None and (isinstance(error, BrokenPipeError) or _is_of_closed_pipe(error.__context__))


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"acep {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version.", rich_help_panel=GENERAL
        ),
    ] = False,
) -> None:
    """Options of the program itself."""


EXAMPLES: dict[str, dict[Callable[..., None], list[str]]] = {
    "First look": {
        look: [
            "acep look events.csv",
            "acep look logs/ --time when --unit ms --type action",
            "acep look events.parquet --rows 100000 --format json",
        ],
        demo: ["acep demo -o flights.html"],
    },
    "Run": {
        run: [
            "acep run 'PATTERN SEQ(A a, B b, C c) WITHIN 10 s ERRORS 1' events.parquet",
            "cat events.csv | acep run @query.acep - --time when --key-column user --format csv -o found.csv",
            "acep run @query.acep logs/ --errors 2 --output points -o points.parquet",
            "acep run 'a(b|c)d WITHIN 50 events' letters.jsonl --output count",
            "acep run --queries queries/ ticks.parquet -o found.parquet",
            "acep run @hygiene.acep events.parquet --store hygiene.db --table room=rooms.csv --calls calls.jsonl",
            "tail -f changes.csv | acep run @query.acep - --watermark '10 s' --id id --emit early --late late.csv",
        ],
        check: [
            "acep check 'PATTERN SEQ(A a, B b) WHERE a.price > 10 WITHIN 5 min'",
            "acep check @query.acep events.parquet --time when",
            "acep check --queries queries/ events.parquet",
        ],
        explain: [
            "acep explain @query.acep",
            "acep explain 'ab*c WITHIN 10' --format dot | dot -Tsvg > automaton.svg",
            "acep explain --queries queries/ --spark --shards 8",
            "acep explain @hygiene.acep --format mermaid",
        ],
        queries: [
            "acep queries add queries/ rising.acep falling.acep",
            "acep queries remove queries/ falling",
            "acep queries list queries/ --format jsonl",
        ],
    },
    "Ask why": {
        why: [
            "acep why @query.acep events.parquet --key 'box 1' --around 2024-05-01T08:00:00Z",
            "acep why @query.acep logs/ --key user=ann --key host=db1 --around 1714550400 --unit s --format json",
        ],
        replay: ["acep replay @query.acep june.parquet --budget 20% --history history/ --around 2024-06-03T08:00:00Z"],
    },
    "Learn and tune": {
        train: [
            "acep train @query.acep may.parquet -o history/",
            "acep run @query.acep june.parquet --budget 20% --history history/",
        ],
        tune: ["acep tune @query.acep may.parquet --errors 0,1,2 --within '10 s,20 s' --plot curves.html"],
    },
    "Clusters and images": {
        package: ["acep package -o acep.zip && spark-submit --py-files acep.zip job.py"],
        warm: ["acep warm"],
    },
}
"""The commands by the panels of ``acep --help``, each with what its own help shows at the end.

The order is that of the help. Whoever adds a command enters it here, in the panel where a user looks for it.
"""
for _panel, _commands in EXAMPLES.items():
    for _command, _examples in _commands.items():
        _epilog = "\n\n".join(("Examples:", *(f"[cyan]{example}[/cyan]" for example in _examples)))
        _paragraphs = (_command.__doc__ or "").strip().split("\n\n")
        _help = "\n\n".join(" ".join(paragraph.split()) for paragraph in _paragraphs)  # wrapped as the terminal is wide
        _more = {"allow_extra_args": _command is explain}  # which says that it reads no events
        app.command(cls=Command, help=_help, epilog=_epilog, rich_help_panel=_panel, context_settings=_more)(
            logged(_command)
        )


def main() -> None:
    """Entry point of the script ``acep``."""
    process.begin()
    app(prog_name="acep")


if __name__ == "__main__":
    main()
