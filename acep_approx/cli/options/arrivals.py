"""How events come: still being written, late, updated or taken back."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acep_approx.events.live.kafka_address import PARTITION, is_address

if TYPE_CHECKING:
    from acep_approx.revisions.request import Revisions


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
            "&partition=0,1, &headers=NAME.",
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

    schema: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A file of events whose columns and types the messages of a topic have; by default those of the first "
            "messages.",
        ),
    ] = None

    @property
    def lasting(self) -> dict[str, Any]:
        """The arguments of ``events.follow`` that no other input knows."""
        return {"until_idle": self.until_idle, "kafka": self.kafka_option or (), "schema": self.schema}


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

    def asked(self, inputs: list[str]) -> Revisions:
        """What was asked for; of a topic each partition is a source of its own, unless others are named.

        Raises
        ------
        UsageError
            ``ACEP-U055``: what does not go together; ``ACEP-U056``: not a length of time.
        """
        from acep_approx.revisions.request import Revisions

        options: dict[str, Any] = {name: value for name, value in vars(self).items() if value is not None}
        if any(map(is_address, inputs)):
            options = {"source": PARTITION} | options
        if self.op == NO_OP:
            options["op"] = False
        return Revisions(**options | {"changelog": self.changelog or None})


REVISING = tuple(field.name for field in fields(RevisionOptions) if field.name != "id")
"""Options that say that events may be late or change; ``--id`` does not say so by itself."""


def may_be_late(asked: Collection[str]) -> bool:
    """Whether a run that was asked for these options took events in any order, as commands that sort them do."""
    return any(name in asked for name in (*REVISING, "reorder"))
