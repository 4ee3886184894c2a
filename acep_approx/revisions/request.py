"""What is asked of a matcher whose events may be late or change: durations, columns, and what does not go together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import NoneType
from typing import Any

from acep_approx.arguments import LATENESS
from acep_approx.errors import UsageError, expect
from acep_approx.matching.outputs.kinds import STREAMED
from acep_approx.planning.durations import Duration, check_duration, in_ticks
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Absent, QuerySyntax
from acep_approx.run.lateness import Lateness
from acep_approx.run.watermarks import ENDED

REVISING = frozenset((*LATENESS, "emit", "op", "changelog"))
"""Arguments that say that events may be late or change."""


@dataclass(frozen=True)
class Revisions(Lateness):
    """How events may come late and change.

    Parameters
    ----------
    watermark, source, sequence, idle
        See ``Lateness``.
    emit : str or int, default "final"
        When a result is put out: ``"final"``, when nothing can change it any more; ``"early"``, at once; or how far
        beyond the watermark events are taken in, such as ``"2 s"``. The paper calls it sigma.
    id : str, optional
        The column that names events.
    op : str, optional
        The column that says what a row does. Default: found by its name. False: all rows insert.
    changelog : bool, optional
        Whether results have the columns ``op`` and ``match_id``. Default: where some may be taken back.

    Raises
    ------
    UsageError
        ``ACEP-U055``: what does not go together; ``ACEP-U056``: not a length of time; ``ACEP-U053``: ``changelog`` is
        neither True nor False.
    """

    emit: Duration = "final"
    id: str | None = None
    op: str | bool | None = None
    changelog: bool | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.emit, str) or self.emit not in ("final", "early"):
            check_duration("emit", self.emit)
        for name in ("id", "op"):
            if name != "op" or self.op is not False:
                expect(name, getattr(self, name), (str, NoneType), "the name of a column")
        super().__post_init__()
        expect("changelog", self.changelog, (bool, NoneType), "True or False")
        if self.changelog is False and not self.is_final:
            raise _apart(
                "what is put out before it is final may be taken back, and without a changelog nothing would say so",
                "leave out changelog=, or emit=",
            )

    @property
    def is_final(self) -> bool:
        """Whether nothing that is put out is ever taken back."""
        return self.emit == "final"

    @property
    def is_changelog(self) -> bool:
        """Whether results have the columns ``op`` and ``match_id``."""
        return not self.is_final if self.changelog is None else self.changelog

    @staticmethod
    def check(output: str, others: Mapping[str, object]) -> None:
        """Refuse what cannot be combined yet: other arguments that are given.

        Raises
        ------
        UsageError
            ``ACEP-U055``
        """
        for name, value in others.items():
            if value is not None:
                raise _apart(
                    f"{name}= and a stream whose events may be late or change do not go together yet",
                    f"leave out {name}=, or watermark=, emit=, op=, source=, sequence=, idle= and changelog=",
                )
        if output not in STREAMED:
            raise _apart(
                f"output={output!r} and a stream whose events may be late or change do not go together yet",
                f"choose one of {', '.join(STREAMED)}",
            )

    def check_language(self, query: QuerySyntax) -> None:
        """Refuse to take back results of a query in CEL: they name no events by which they could be found.

        Nor can those be taken back that depend on what came first: nobody keeps all events since then.

        Raises
        ------
        UsageError
            ``ACEP-U055``
        QueryError
            ``ACEP-Q925``.
        """
        starts = [part.span for part in walk(query.pattern) if isinstance(part, Absent) and part.since_start]
        if (query.at_start or starts) and not self.is_final:
            clause = "AT START" if query.at_start else "SINCE START"
            message = f"{clause} and emit= do not go together: a late event could be the first of its partition"
            hint = "leave out emit=: with a watermark, results are put out when they are final"
            raise query.fault("ACEP-Q925", message, starts[0] if starts else query.place(clause), hint)
        if query.is_algebra and (self.is_changelog or not self.is_final):
            raise _apart(
                f"{'emit=' if not self.is_final else 'changelog='} and a query in CEL do not go together yet: its "
                "results name no events, so nothing could say which of them is taken back",
                "leave it out: with watermark= results are put out when they are final",
            )

    def beyond(self, *, is_time: bool) -> int:
        """How far beyond the watermark events are run, in ticks.

        Raises
        ------
        DataError
            ``ACEP-D073``: it has a unit and the times have none, or the other way round.
        """
        if self.emit in ("final", "early"):
            return 0 if self.is_final else ENDED
        return in_ticks("emit", self.emit, is_time=is_time)

    def header(self) -> dict[str, Any]:
        """As JSON."""
        return {name: value for name, value in asdict(self).items() if name != "called"}


ON_SPARK = ("emit", "changelog")
"""What jobs on Spark can do of it, beside a watermark for all events."""


def refuse_on_spark(given: Mapping[str, object]) -> None:
    """Refuse what only runs here can do yet.

    Raises
    ------
    UsageError
        ``ACEP-U055``; ``ACEP-U053``: there is no such argument.
    """
    for name in given.keys() - {*ON_SPARK}:
        if name not in REVISING:
            raise UsageError(f"there is no argument {name!r}", code="ACEP-U053", hint="see help(Query.spark)")
        raise _apart(
            f"{name}= and Spark do not go together yet",
            "run it here, with matcher(); on Spark events may be late by watermark=, and are left out beyond it",
        )


def _apart(what: str, hint: str) -> UsageError:
    return UsageError(what, code="ACEP-U055", hint=hint)
