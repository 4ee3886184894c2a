"""A cohort that is matched beside a run, for a share of its budget."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from acep_approx.budget.budget import granted_beside
from acep_approx.learning.outcomes import Outcomes
from acep_approx.ranges import finite

if TYPE_CHECKING:
    from acep_approx.engines.batches import RunEvents
    from acep_approx.engines.runs.shedding import Shedding
    from acep_approx.events.stream import EventBatch
    from acep_approx.learning.exact_sample import Cohort
    from history.trace import Trace


class Beside:
    """Matches a cohort beside a run.

    Parameters
    ----------
    arena : Shedding
        Of the engine.
    cohort : Cohort, optional
        None: there is none, and all of this does nothing.
    explores : float, default 0
        Share of the budget that is the cohort's.

    Attributes
    ----------
    quota : float
        Run-steps that it was granted.
    """

    def __init__(self, arena: Shedding, cohort: Cohort | None = None, explores: float = 0.0) -> None:
        self.arena = arena
        self.cohort = cohort
        self.explores = explores
        self.quota = 0.0
        self._traces: list[Trace] = []  # what became of it, that nobody has taken yet

    @property
    def steps(self) -> int:
        """Run-steps that it took."""
        return self.cohort.steps if self.cohort is not None else 0

    def push(self, batch: EventBatch, events: RunEvents, rate: float) -> None:
        """Match the cohort's part of a piece; ``rate`` run-steps per event are granted to the run."""
        if self.cohort is None:
            return
        self.quota += granted_beside(rate, len(batch), self.explores)
        left = self.quota - self.cohort.steps
        self._take(self.cohort.push(batch, events.slot, events.row, events.tick, self.arena.keys_now(), left))

    def finish(self) -> None:
        """The stream has ended."""
        if self.cohort is not None:
            self._take(self.cohort.finish())

    def _take(self, traces: Iterable[Trace]) -> None:
        """Take what became of the cohort, as long as it knows the rows of its events."""
        assert self.cohort is not None
        for trace in traces:
            self.cohort.compare(trace)
            self._traces.append(self.cohort.whole(trace))

    def outcomes(self) -> Outcomes:
        """What became of it since the last call."""
        traces, self._traces = self._traces, []
        return Outcomes(traces, self.cohort.weight if self.cohort is not None else 1.0)

    def full_work(self, events: int) -> float | None:
        """Run-steps per event of the exact run, after so many events; None: the cohort does not tell."""
        if self.cohort is None or not self.cohort.steps or not events:
            return None
        cells = self.cohort.cells
        return self.cohort.steps / (cells.share * (1 + cells.window / cells.epoch)) / events

    def snapshot(self) -> dict[str, Any]:
        """What must be kept to go on elsewhere, as JSON. Complexity: O(open windows + match points of the cohort)."""
        cohort = self.cohort.to_bytes() if self.cohort is not None else b""
        parts = {"outcomes": Outcomes(self._traces).to_bytes(), "cohort": cohort}
        return {"quota": self.quota, **{name: b64encode(part).decode() for name, part in parts.items()}}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave."""
        finite("quota", saved["quota"])
        self.quota = saved["quota"]
        self._traces = list(Outcomes.from_bytes(b64decode(saved["outcomes"])).traces)
        if self.cohort is not None and saved["cohort"]:
            self.cohort.restore(b64decode(saved["cohort"]))
