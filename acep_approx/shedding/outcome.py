"""What a shedder can tell of its run: recall, what the exact run takes, and what the budget came to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from acep_approx.budget.audit import AuditCells, AuditSample, RecallEstimate
from acep_approx.budget.budget import granted_beside
from acep_approx.budget.evidence import Evidence, Expected
from acep_approx.engines.runs.worth import BY_ANOTHER, REASONS
from acep_approx.matching.binding import has_times
from acep_approx.shedding.exact_audit import ExactAudit, estimated
from acep_approx.shedding.load import Load, bound_in_words
from acep_approx.training.expecting import expected, promised

if TYPE_CHECKING:
    import pyarrow as pa

    from acep_approx.engines.runs.expected_work import ExpectedWork
    from acep_approx.engines.runs.shedding import Shedding
    from acep_approx.events.roles import Roles
    from acep_approx.learning.cohort import Beside
    from acep_approx.learning.online import Observer, OnlineLearning, RecordedLearning
    from acep_approx.planning.planner import Plan
    from acep_approx.shedding.metrics import Metrics
    from acep_approx.shedding.timing import StepClock
    from acep_approx.shedding.ways import Ways

ANY_RECALL = 2.0
"""What a promise is worth that says nothing of recall: from 0 to 1 all is as likely."""


class Outcome:
    """The part of ``Shedder`` that tells what came of a run."""

    if TYPE_CHECKING:
        load: Load
        arena: Shedding
        metrics: Metrics
        beside: Beside
        online: OnlineLearning | None
        observer: Observer | RecordedLearning | None
        exact_audit: ExactAudit | None
        exact_work: ExpectedWork | None
        cells: AuditCells | None
        clock: StepClock
        plan: Plan
        charges_births: bool
        ways: Ways | None
        _events: int
        _pairs: int
        _seen: tuple[int, int]
        _rate: float
        _columns: tuple[pa.Schema, Roles]

        @property
        def _aside(self) -> Beside | ExactAudit: ...
        @property
        def explores(self) -> float: ...  # noqa: D102
        @property
        def granted(self) -> float: ...  # noqa: D102

    @property
    def has_searched(self) -> bool:
        """Whether ends of matches were searched, in the place of following runs."""
        return self.ways is not None and self.ways.has_searched

    def recall(self) -> RecallEstimate | None:
        """Estimated recall of match points; None where nothing is shed on purpose or no audit was asked for."""
        if self.cells is None and self._sheds_nothing:
            return RecallEstimate(1.0, 1.0, 1.0, 0, 0, self.metrics.found)
        if self.exact_audit is not None:
            return estimated(self.metrics.found, self._events, self.exact_audit, self._expected())
        known, sample = self.beside.recall(self.metrics.found), self.audited()
        return self._by_marks(sample) if known is None and sample is not None else known

    def _by_marks(self, sample: AuditSample) -> RecallEstimate:
        """By runs that were protected; of a template what the past promises speaks, too.

        The past was run as if match points of all queries counted for the same: where they do not, it tells how many
        there are, and not which share of them is found.
        """
        past = self._expected() if self.charges_births else None
        if past is None:
            return sample.estimate()
        if self.arena.weights.size > 1:
            past = replace(past, recall=0.5, worth=ANY_RECALL)
        return Evidence(self.metrics.found, self._pairs, past, None, sample).estimate()

    @property
    def _sheds_nothing(self) -> bool:
        """Whether all match points were found for certain: where one run can do all that another can, none is lost."""
        audits = self.exact_audit is not None or self.beside.cohort is not None
        return audits and not self.arena.untested and not self.arena.counts[:, : REASONS.index(BY_ANOTHER)].any()

    def _expected(self) -> Expected | None:
        """What the history leads to expect of runs that take as much of the work."""
        known, full = self.load.history, self.full_work()
        if known is None or self.load.policy_name != "history" or self.load.learns or not self._events:
            return None
        if self.has_searched:
            return None  # what it leads to expect is about runs
        done = (self._seen[1] + self.arena.on_passes) / self._events
        share = min(done / full, 1.0) if full else self.load.share
        past = expected(known.prices_, share * self.load.ratio, known.points_ / max(known.events_, 1))
        if past is None or known.promises_ is None:
            return past
        return promised(past, known.promises_.of("points" if self.load.drops else "matches"), share)

    @property
    def audit_work(self) -> int | None:
        """Run-steps of the cells that are matched beside the run; None where runs are marked instead, or none are."""
        return None if self._aside is self.beside and self.beside.cohort is None else self._aside.steps

    @property
    def audit_granted(self) -> float:
        """Run-steps granted so far for what is matched beside the run."""
        return self._aside.quota

    def audited(self) -> AuditSample | None:
        """What the audit saw of the match points found since this shedder was made; None where nothing is audited.

        Where a cohort is matched beside the run: what that saw since the stream began.
        """
        if self.beside.cohort is not None:
            return self.beside.cohort.sample
        return self.metrics.audited(self.cells) if self.cells is not None else None

    def training_sample(self) -> bytes:
        """What a learner that is elsewhere can learn from; empty where there is none, or nothing to be learned."""
        return self.observer.training_sample(len(self.metrics.points)) if self.observer is not None else b""

    def full_work(self) -> float | None:
        """Run-steps per event of the exact run up to here: as was given, else as is told; None where nobody knows."""
        known = self.load.steps_per_event
        if self.exact_work is not None and self._events:
            known = self.exact_work.steps / self._events
        if known is None and self.online is not None:
            known = self.online.full_work(self._events)
            of_cohort = self.beside.full_work(self._events) is not None
            if known is not None and self.charges_births and not of_cohort:  # it is per pair, without births
                known = (known + 1) * self.shown_per_event
        is_all = self._events > 0 and not self.arena.counts.any() and not self.arena.untested
        return self._seen[1] / self._events if known is None and is_all else known

    def exact_seconds(self) -> float | None:
        """How long the exact run would have taken up to here; None where this one does not tell."""
        work = self.full_work()
        if work is None or self.has_searched or not self.clock.is_known:
            return None
        return self._events * (self.clock.event_seconds + work * self.clock.step_seconds)

    def bound_in_words(self) -> str:
        """What the budget comes to."""
        rate = self._rate if self.exact_work is None else self.granted / max(self._events, 1)
        words, audit = bound_in_words(self.load.budget, rate), granted_beside(rate, 1, self.explores)
        if self.load.horizon is not None and not self.load.budget.is_unlimited:
            words += f", partial matches no older than {self.load.horizon}"
        return f"{words}, and {audit:,.3g} for the audit" if audit else words

    @property
    def events_shown(self) -> int:
        """Events so far; of a template pairs of an event and a query."""
        return self._pairs if self.charges_births else self._events

    @property
    def shown_per_event(self) -> float:
        """How many of these come with an event."""
        return self._pairs / max(self._events, 1) if self._pairs else 1.0

    @property
    def has_times(self) -> bool:
        """Whether ticks are microseconds."""
        return has_times(self.plan, *self._columns)

    @property
    def version(self) -> int:
        """Of the history; 0 without."""
        return self.load.history.version_ if self.load.history is not None else 0
