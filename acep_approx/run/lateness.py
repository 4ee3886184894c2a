"""What is asked of a stream whose events may come late: how long others wait for them, and how far each source is."""

from __future__ import annotations

from dataclasses import dataclass
from types import NoneType

from acep_approx.errors import UsageError, expect
from acep_approx.planning.durations import Duration, check_duration, in_ticks
from acep_approx.run.order import Wait
from acep_approx.run.watermarks import Watermarks


@dataclass(frozen=True)
class Lateness:
    """How late events may come.

    Parameters
    ----------
    watermark : str or int, optional
        How much later than the newest event an event may come: ``"10 s"``; a bare number is in ticks. Default: only
        punctuations say how far the stream is.
    source : str, optional
        The column that says where an event comes from: each source has a watermark of its own, and the least counts.
    sequence : str, optional
        The column with numbers without gaps, which tell what is still to come.
    idle : str or int, optional
        A source that is so far behind the others does not hold the watermark back.
    called : str
        How errors call the watermark.

    Raises
    ------
    UsageError
        ``ACEP-U055``: what does not go together; ``ACEP-U056``: not a length of time.
    """

    watermark: Duration | None = None
    source: str | None = None
    sequence: str | None = None
    idle: Duration | None = None
    called: str = "watermark"

    def __post_init__(self) -> None:
        for name in ("source", "sequence"):
            expect(name, getattr(self, name), (str, NoneType), "the name of a column")
        for name in ("watermark", "idle"):
            if getattr(self, name) is not None:
                check_duration(self.called if name == "watermark" else name, getattr(self, name))
        if self.idle is not None and self.source is None:
            raise UsageError(
                "idle= is about sources, and no column says where events come from",
                code="ACEP-U055",
                hint="add source='COLUMN' (--source COLUMN)",
            )

    def wait(self, *, is_time: bool) -> Wait:
        """How long events wait, where ticks are times or not.

        Raises
        ------
        DataError
            ``ACEP-D073``: a length of time has a unit and the times have none, or the other way round.
        """
        lengths = ((self.called, self.watermark), ("idle", self.idle))
        delay, idle = (None if given is None else in_ticks(name, given, is_time=is_time) for name, given in lengths)
        by = {"by_source": self.source is not None, "by_sequence": self.sequence is not None}
        return Wait(Watermarks(delay, idle=idle, **by), self.source, self.sequence)
