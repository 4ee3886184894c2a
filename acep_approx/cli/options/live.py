"""Events that are still being written: what is asked for, and what does not go with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acep_approx.cli.options.choices import Format, OnLate, ResultKind
from acep_approx.cli.options.groups import given_options
from acep_approx.cli.options.input import LAYOUT, RunInputOptions
from acep_approx.cli.options.output import OutputOptions, format_of
from acep_approx.errors import UsageError
from acep_approx.events.live.kafka_address import PARTITION, is_address

if TYPE_CHECKING:
    from acep_approx.cli.options.revisions import RevisionOptions


@dataclass(frozen=True)
class LiveOptions:
    """How a run lasts."""

    panel = "Live input"

    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="INPUT is a file that grows, or a folder in which files appear: go on until Ctrl-C. INPUT may also be "
            "kafka://BROKER/TOPIC, and behind it what is asked for: ?group=NAME, &from=beginning or &from=end, "
            "&partition=0,1.",
        ),
    ] = False
    until_idle: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="End when nothing has come for so long: '5 s'; 0 s: at the end of the file."),
    ] = None
    kafka_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A setting of the client of Kafka (librdkafka), or @FILE with such lines; can be repeated.",
        ),
    ] = None

    def is_live(self, inputs: list[str] | None) -> bool:
        """Whether events are read that are still being written."""
        return self.follow or any(map(is_address, inputs or []))


LASTING = ("until_idle", "checkpoint", "checkpoint_every", "kafka_option")
"""Options that are of use with live input only; two of them have another use beside rules or on Spark."""
NEVER = {
    "sort": "leave it out; of events that are late by so much at most: --watermark '10 s'",
    "expand": "leave it out: it reads the events twice",
    "spark": "leave --follow out: --stream matches a folder that gets new files",
}
"""Options that do not go with live input, and what to do."""
ON_KAFKA = NEVER | {"spark": "leave --spark out; a job in Python reads a topic by spark.readStream.format('kafka')"}
"""The same of a topic."""
LIVE_TOO = frozenset(("checkpoint_every", "finish"))
"""Options of rules that live input knows, too."""
NO_CHECKPOINT = {
    "limit": "leave one of them out",
    "budget": "leave one of them out; from Python: query.follow(..., budget=..., checkpoint=...)",
}
"""Options that do not go with a checkpoint, and what to do."""
KEPT = (ResultKind.MATCHES, ResultKind.POINTS, ResultKind.PARTIAL)
"""What a run with a checkpoint can put out."""


def check_live(
    context: typer.Context,
    options: LiveOptions,
    inputs: list[str] | None,
    source: RunInputOptions,
    output: OutputOptions,
    *,
    is_rules: bool = False,
) -> bool:
    """Refuse what cannot be done with live input, or only with it, before any work is done.

    Returns
    -------
    bool
        Whether the input is live.

    Raises
    ------
    UsageError
        ``ACEP-U138``: what does not go together; ``ACEP-U139``: what is of use with live input only; ``ACEP-U140``:
        there are several inputs.
    """
    given = given_options(context)
    if "flush" in given:
        _check_flush(output)
    if not options.is_live(inputs):
        _check_plain(given, is_rules=is_rules)
        return False
    mine = "--follow" if options.follow else "kafka://"
    _refuse_beside(mine, ON_KAFKA if any(map(is_address, inputs or [])) else NEVER, given)
    if inputs is not None and len(inputs) > 1:
        raise UsageError(
            f"{len(inputs)} inputs cannot be followed at once",
            code="ACEP-U140",
            hint="name one file, one topic, or a folder, whose files follow one another",
        )
    if "kafka_option" in given and not is_address((inputs or [""])[0]):
        raise UsageError(
            "--kafka-option is of use with a topic of Kafka only", code="ACEP-U139", hint="leave it out, or name kafka://..."
        )
    if output.output is ResultKind.COMPRESSED:
        raise apart("--output compressed", mine, "choose matches, points or partial")
    _check_form(output, mine)
    if "checkpoint" in given:
        if is_rules:
            raise apart("--checkpoint", "rules", "say --store FILE: it keeps all that they need to go on")
        _check_checkpoint(given, source, output)
    elif not is_rules:
        for name in ("checkpoint_every", "finish"):
            if name in given:
                raise UsageError(
                    f"{given[name]} is of use with --checkpoint only", code="ACEP-U139", hint="add --checkpoint FOLDER"
                )
    return True


def _check_plain(given: dict[str, str], *, is_rules: bool) -> None:
    for name in LASTING:
        has_other_use = (name == "checkpoint" and "spark" in given) or (name == "checkpoint_every" and is_rules)
        if name not in given or has_other_use:
            continue
        hint = "add --follow, with a file or a folder; --until-idle '0 s' ends it when all has been read"
        if name == "kafka_option":
            hint = "name a topic: kafka://BROKER:9092/TOPIC"
        raise UsageError(f"{given[name]} is of use with live input only", code="ACEP-U139", hint=hint)


def _check_checkpoint(given: dict[str, str], source: RunInputOptions, output: OutputOptions) -> None:
    _refuse_beside("--checkpoint", NO_CHECKPOINT, given)
    if output.output not in KEPT:
        hint = f"choose {', '.join(KEPT)}, or leave --checkpoint out"
        raise apart(f"--output {output.output.value}", "--checkpoint", hint)
    if source.on_late is OnLate.SKIP:
        raise apart("--on-late skip", "--checkpoint", "say --watermark '0 s': late events are left out, too")
    if source.late is not None and format_of(source.late) is Format.PARQUET:
        raise apart(f"--late {source.late}", "--checkpoint", "name it .jsonl or .csv: rows are added as they come")


def _refuse_beside(mine: str, others: dict[str, str], given: dict[str, str]) -> None:
    for name, hint in others.items():
        if name in given:
            raise apart(given[name], mine, hint)


def _check_form(output: OutputOptions, mine: str) -> None:
    form = output.format or (None if output.file is None or output.file.is_dir() else _form_of(output))
    if form in (Format.TABLE, Format.PARQUET):
        raise apart(f"--format {form.value}", mine, "results are written as they come: choose jsonl or csv")


def _form_of(output: OutputOptions) -> Format | None:
    """The format that the name of the output says, where it says one: rules write to a folder."""
    assert output.file is not None, "there is one"
    return format_of(output.file) if output.file.suffix else None


def _check_flush(output: OutputOptions) -> None:
    form = output.format or (None if output.file is None else _form_of(output))
    if form in (Format.TABLE, Format.PARQUET) or output.output is ResultKind.COMPRESSED:
        shown = "--output compressed" if form is None else f"--format {form.value}"
        raise apart(shown, "--flush", "choose jsonl or csv, which are written row by row")


def apart(option: str, mine: str, hint: str) -> UsageError:
    """The error that something does not go with live input (``ACEP-U138``)."""
    return UsageError(f"{option} does not go with {mine}", code="ACEP-U138", hint=hint)


def by_partition(asked: RevisionOptions, inputs: list[str]) -> RevisionOptions:
    """What is said of late events: of a topic each partition is a source of its own, unless others are named."""
    if asked.source is not None or not any(map(is_address, inputs)):
        return asked
    return replace(asked, source=PARTITION)


def plainly(source: RunInputOptions, **kept: Any) -> RunInputOptions:
    """The options of an input that is open already: how it is read was said then."""
    from acep_approx.cli.options.choices import OnMalformed

    plain: dict[str, Any] = {"input_format": None, "on_malformed": OnMalformed.REFUSE, "on_late": OnLate.REFUSE}
    return replace(source, **plain | dict.fromkeys(("rejects", "late", *LAYOUT)) | kept)
