"""Events that come late, are updated or taken back: what is asked for, and what does not go with it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acep_approx.cli.options.budget import ExpandedBudgetOptions, LearningOptions, ReportOptions
from acep_approx.cli.options.choices import OnLate, ResultKind
from acep_approx.cli.options.groups import given_options
from acep_approx.cli.options.input import RunInputOptions
from acep_approx.cli.options.output import format_of
from acep_approx.errors import UsageError

if TYPE_CHECKING:
    from acep_approx.revisions.request import Revisions

OUTPUTS = {ResultKind.MATCHES: "matches", ResultKind.POINTS: "points", ResultKind.COUNT: "counts"}
"""What can be put out where events may be late or change, in the words of ``Query.matcher``."""
NO_OP = "none"
"""What ``--op`` says where no column says what rows do."""


@dataclass(frozen=True)
class RevisionOptions:
    """How events may come late and change, and when results are put out."""

    panel = "Late and revised events"

    watermark: Annotated[
        str | None,
        typer.Option(
            metavar="DELAY",
            help="How late events may come: '10 s', or 5 in ticks. Later ones are left out, and go to --late FILE. "
            "Results are put out when nothing can change them any more. With --stream too.",
        ),
    ] = None
    emit: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN",
            help="final (the default); early: put results out at once, and take them back (-D) where events change "
            "them; or how far beyond the watermark that is done, e.g. '2 s'.",
        ),
    ] = None
    changelog: Annotated[
        bool,
        typer.Option(
            "--changelog",
            help="Add the columns op (+I, or -D for what is taken back) and match_id; by default unless all is final.",
        ),
    ] = False
    op: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="What a row does: insert, delete, +I, -D, -U, +U, c, u, d, watermark, ...; by default the column op, "
            "__op, _change_type or mz_diff, if there is one; none: all rows insert.",
        ),
    ] = None
    id: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="What names an event: it stands for it in results, says which one a row takes back, and orders those "
            "of the same time. With --spark too.",
        ),
    ] = None
    source: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Where an event comes from: each source has a watermark of its own, and the least one counts.",
        ),
    ] = None
    sequence: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Numbers without gaps: up to the first that is missing all has come."),
    ] = None
    idle: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="A source so far behind the others does not hold the watermark back."),
    ] = None

    def first(self, context: typer.Context) -> str | None:
        """The first option given that says that events may be late or change; None: they are plain events."""
        given = given_options(context)
        return next((given[name] for name in REVISING if name in given), None)

    def asked(self) -> Revisions:
        """What was asked for.

        Raises
        ------
        UsageError
            ``ACEP-U055``: what does not go together; ``ACEP-U056``: not a length of time.
        """
        from acep_approx.revisions.request import Revisions

        options: dict[str, Any] = {name: value for name, value in vars(self).items() if value is not None}
        if self.op == NO_OP:
            options["op"] = False
        return Revisions(**options | {"changelog": self.changelog or None})


REVISING = tuple(field.name for field in fields(RevisionOptions) if field.name != "id")
"""Options that say that events may be late or change; ``--id`` does not say so by itself."""
OF_BUDGETS = [
    field.name for group in (ExpandedBudgetOptions, LearningOptions, ReportOptions) for field in fields(group)
]
APART = dict.fromkeys(OF_BUDGETS, "leave one of them out") | {
    "key_idle": "leave one of them out; keys are dropped of events in order: see --sort, and --reorder with --queries",
    "sort": "leave it out: events are put in order of time as far as they may be late"
}
"""Options that do not go with it, and what to do."""


def check_id(context: typer.Context, *, spark: bool) -> None:
    """Refuse ``--id`` where it says nothing (``ACEP-S071``)."""
    given = given_options(context)
    if "id" in given and not spark and not any(name in given for name in REVISING):
        raise UsageError(
            "--id is of use with --spark only, or where events may be late or change",
            code="ACEP-S071",
            hint="add --spark, --watermark, --emit or --op; or show a column of the events: --bind COLUMN",
        )


def check_revisions(
    context: typer.Context, options: RevisionOptions, source: RunInputOptions, output: ResultKind
) -> Revisions | None:
    """Refuse what cannot be done where events may be late or change, before any work is done.

    Parameters
    ----------
    context : typer.Context
        Of the command; knows which options were given.
    options : RevisionOptions
    source : RunInputOptions
    output : ResultKind

    Returns
    -------
    Revisions or None
        What was asked for; None where nothing was.

    Raises
    ------
    UsageError
        ``ACEP-U055``: what does not go together; ``ACEP-U056``: not a length of time; ``ACEP-U018``: late
        events cannot go to that file.
    """
    mine = options.first(context)
    if mine is None:
        return None
    given = given_options(context)
    for name in APART:
        if name in given:
            raise _apart(given[name], mine, APART[name])
    if output not in OUTPUTS:
        raise _apart(f"--output {output.value}", mine, f"choose {', '.join(OUTPUTS)}, or leave out {mine}")
    if output is ResultKind.COUNT and options.changelog:
        raise _apart("--output count", "--changelog", "leave one of them out: what counts is what remains at the end")
    if "on_late" in given and source.on_late is OnLate.REFUSE:
        raise _apart("--on-late refuse", mine, "leave it out: late events are counted, and --late FILE writes them")
    if source.late is not None:
        format_of(source.late)
    return options.asked()


def _apart(option: str, mine: str, hint: str) -> UsageError:
    return UsageError(f"{option} does not go with {mine}", code="ACEP-U055", hint=hint)
