"""A load budget at work: what the engine may do from event to event, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from acep_approx.automaton.words import state_name
from acep_approx.budget.audit import AuditSample, Cohort, RecallEstimate
from acep_approx.budget.budget import Budget
from acep_approx.budget.calibration import Calibration
from acep_approx.budget.ledger import Piece, Shed
from acep_approx.budget.policies import LEARNED, policy_named
from acep_approx.errors import UsageError
from acep_approx.matching.shedding import REASONS, WITHOUT_END, Allowance, Shedding, Worth

if TYPE_CHECKING:
    from acep_approx.budget.history_graph import HistoryGraph
    from acep_approx.events.stream import EventBatch
    from acep_approx.matching.lineage import Hits
    from acep_approx.matching.pipeline import Progress
    from acep_approx.matching.planner import Plan
    from acep_approx.matching.run_tables import RunTables
    from acep_approx.matching.runs import RunEvents

Ints = npt.NDArray[np.int64]
RESERVE_SHARE = 0.03
"""Share of what was granted so far that is held back for times of higher load."""
RESERVE_EVENTS = 1024
EPOCH_WINDOWS = 4
UNKNOWN_SHARE = 0.2
"""What share of the full work a budget is taken for where no history knows the full work."""
SAVED_SECONDS = 0.1
"""What may be saved up of a budget in events per second."""


@dataclass(frozen=True)
class Load:
    """What a user asks for when a run must not do all of the work.

    Parameters
    ----------
    budget : Budget
    history : HistoryGraph, optional
        What was learned from the past.
    policy : str, optional
        See ``policies.POLICIES``; default ``history`` where there is one, else ``oldest``.
    audit : float, default 0.05
        Share of the budget that goes to a protected cohort, from which recall is estimated; 0: no estimate.
    seed : int, default 0
        Of the cohort, and of coins.
    logs_shed : bool, default False
        Whether each run that is shed is written down.
    """

    budget: Budget
    history: HistoryGraph | None = None
    policy: str | None = None
    audit: float = 0.05
    seed: int = 0
    logs_shed: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.audit < 1:
            raise UsageError(
                f"the audit is {self.audit} of the budget", code="ACEP-U033", hint="it lies from 0 to below 1"
            )
        policy_named(self.policy_name)

    @property
    def policy_name(self) -> str:
        """The policy asked for, or the default."""
        return self.policy or ("history" if self.history is not None else "oldest")


@dataclass
class Points:
    """Match points found: parallel columns, one row each."""

    row: list[Ints] = field(default_factory=list)
    tick: list[Ints] = field(default_factory=list)
    slot: list[Ints] = field(default_factory=list)
    errors: list[Ints] = field(default_factory=list)
    is_kept: list[npt.NDArray[np.bool_]] = field(default_factory=list)

    def joined(self, name: str) -> Ints:
        """A column as one array."""
        parts = getattr(self, name)
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)


class Shedder(Shedding):
    """Sheds by a policy inside a budget, and keeps the books.

    Parameters
    ----------
    plan : Plan
        With registers: only the runs engine sheds.
    load : Load

    Attributes
    ----------
    pieces : list of Piece
        Where the run stood after each piece of the stream.
    points : Points
    calibration : Calibration
        How long an event and a run-step take here.
    """

    def __init__(self, plan: Plan, load: Load) -> None:
        super().__init__(None, Allowance(), logs_shed=load.logs_shed)
        self.plan = plan
        self.load = load
        self.pieces: list[Piece] = []
        self.points = Points()
        self.calibration = Calibration()
        self.cohort: Cohort | None = None
        self.begin: int | None = None
        self._rate = 0.0  # run-steps per event of the stream
        self._seen = (0, 0)  # relevant events and run-steps at the end of the last piece
        self._found = 0

    # --- setting up -----------------------------------------------------------------------------------------

    def bind(self, tables: RunTables) -> None:
        """Now that the columns are known: look up what runs are worth and what may be done."""
        known = self.load.history
        if known is not None:
            known.check(self.plan, tables.window)
        policy = policy_named(self.load.policy_name)
        if not self.load.budget.is_unlimited:
            self.worth = policy(
                tables.automaton, known.graph_ if known else None, known.overlap_ if known else 0.0
            )
        self.allowance = self._first_allowance(tables.window)
        super().bind(tables)

    def _first_allowance(self, window: int) -> Allowance:
        budget = self.load.budget
        if budget.is_unlimited:
            return Allowance()
        share = self._share()
        known = self.load.history
        is_learned = known is not None and self.load.policy_name in LEARNED
        price = known.prices_.price(share) if known and is_learned else _first_price(self.worth, share)
        audit = self.load.audit * share / (1 + 1 / EPOCH_WINDOWS)  # runs that begin a window before are protected too
        if audit > 0:
            self.cohort = Cohort(audit, max(EPOCH_WINDOWS * window, 1), window, self.load.seed)
        base = Allowance(
            price=price,
            audit=audit,
            audit_share=self.load.audit,
            epoch=max(EPOCH_WINDOWS * window, 1),
            seed=self.load.seed,
        )
        if budget.unit == "runs":
            return replace(base, runs=int(budget.amount))
        if budget.unit == "%":
            assert known is not None
            self._rate = budget.amount / 100 * known.steps_per_event_
            return replace(base, rate=self._rate, reserve=RESERVE_EVENTS * self._rate, reserve_share=RESERVE_SHARE)
        if budget.unit == "steps/event":
            self._rate = budget.amount
            return replace(base, rate=self._rate, most=self._rate, reserve=self._rate / 4)
        return replace(base, rate=0.0, reserve=1.0)  # the clock says more when a batch comes

    def _share(self) -> float:
        """What share of the full work the budget is, as far as that is known."""
        budget, known = self.load.budget, self.load.history
        if budget.unit == "%":
            if known is None:
                raise full_work_unknown(budget)
            return min(budget.amount / 100, 1.0)
        if budget.unit == "steps/event" and known is not None and known.steps_per_event_ > 0:
            return min(budget.amount / known.steps_per_event_, 1.0)
        return UNKNOWN_SHARE

    # --- while it runs --------------------------------------------------------------------------------------

    def begin_batch(self, events: int) -> None:
        """Budgets of time are turned into run-steps, as far as is known how long these take."""
        budget = self.load.budget
        if budget.unit == "ms/batch":
            steps = self.calibration.steps_in(budget.amount / 1e3, events)
            self.grant(-max(self.left, 0.0) / 0.9)  # what the last batch did not use is gone
            self._rate = steps / events
            self.allow(replace(self.allowance, rate=self._rate, most=WITHOUT_END, reserve=RESERVE_SHARE * steps))
        elif budget.unit == "events/s":
            self._keep_up()

    def _keep_up(self) -> None:
        a_second = self.load.budget.amount
        self._rate = self.calibration.steps_in(1 / a_second, 1)
        most = self._rate * a_second * SAVED_SECONDS
        self.allow(replace(self.allowance, rate=self._rate, most=most, reserve=most / 4))

    def note_hits(self, events: RunEvents, hits: Hits) -> None:
        """Remember match points, and whether the policy alone would have found them."""
        if not len(hits):
            return
        event, place = np.unique(hits.event, return_inverse=True)
        least = np.full(len(event), np.iinfo(np.int64).max)
        np.minimum.at(least, place, hits.errors)
        is_kept = np.zeros(len(event), np.bool_)
        np.logical_or.at(is_kept, place, hits.mark < 2)
        self.points.row.append(events.row[event])
        self.points.tick.append(events.tick[event])
        self.points.slot.append(events.slot[event])
        self.points.errors.append(least)
        self.points.is_kept.append(is_kept)
        self._found += len(event)

    def end_piece(self, batch: EventBatch, progress: Progress, seconds: float) -> None:
        """Grant what events without a letter are entitled to, look at the clock, and write the ledger."""
        relevant, steps = self._seen
        self._seen = progress.relevant, progress.steps
        if self._rate > 0:
            self.grant(self._rate * (len(batch) - (progress.relevant - relevant)))
        if self.load.budget.needs_clock:
            self.calibration.observe(len(batch), progress.steps - steps, seconds)
            if self.load.budget.unit == "events/s":
                self._keep_up()
        if self.begin is None:
            self.begin = int(batch.ticks[0])
        work = progress.steps + int(self.on_passes)
        self.pieces.append(
            Piece(
                tick=int(batch.ticks[-1]),
                events=progress.events,
                work=work,
                bound=int(self.granted) if self._rate > 0 else work,
                live=progress.live,
                price=self.price,
                shed=int(self.counts.sum()),
                points=self._found,
            )
        )

    # --- what came of it ------------------------------------------------------------------------------------

    def shed(self) -> list[Shed]:
        """Runs shed by state and reason, those of the first states first."""
        assert self.plan.registers is not None
        tables = self.tables
        found = []
        for pool, row in zip(tables.pools, self.counts.tolist(), strict=True):
            name = state_name(tables.automaton, pool.state) + (f", {pool.errors} missing" if pool.errors else "")
            found += [Shed(name, reason, runs) for reason, runs in zip(REASONS, row, strict=True) if runs]
        return found

    def recall(self) -> RecallEstimate | None:
        """Estimated recall of match points; None where nothing is shed on purpose or no audit was asked for."""
        if self.cohort is None:
            return None
        cells = self.cohort.cells(self.points.joined("slot"), self.points.joined("tick"))
        audited = cells >= 0
        kept = self.points.joined("is_kept").astype(np.bool_)
        return AuditSample.of(cells[audited], kept[audited], int((~audited).sum())).estimate()

    def bound_in_words(self) -> str:
        """What the budget comes to."""
        budget = self.load.budget
        if budget.is_unlimited:
            return "no limit: nothing is shed"
        if budget.unit == "runs":
            return f"at most {int(budget.amount):,} live runs"
        if budget.unit == "steps/event":
            return f"at most {self._rate:,.12g} run-steps for an event"
        per_event = f"{self._rate:,.3g} run-steps per event"
        if budget.unit == "%":
            return f"{per_event}, saved up without end"
        return f"{per_event} at the end, by the clock"


def _first_price(worth: Worth | None, share: float) -> float:
    """A price to begin with where none was learned: that of the best share of all vertices, and of the coins."""
    if worth is None:
        return 0.0
    best = float(np.quantile(worth.gain / worth.cost, 1 - share))
    return max(best, 1e-9) * worth.spread / (worth.spread + share)


def full_work_unknown(budget: Budget) -> UsageError:
    """The error of a share of nobody knows what."""
    return UsageError(
        f"{budget} of the full work: nobody knows the full work without a history",
        code="ACEP-U034",
        hint="learn one with acep train and give it with --history, or say '5000 steps/event', '200 runs', "
        "'2 ms/batch' or '100k events/s'",
    )


def shedder(plan: Plan, load: Load | None) -> Shedder | None:
    """What a run of ``plan`` sheds with; None where it does not: no budget, or an engine that needs none."""
    return Shedder(plan, load) if load is not None and plan.registers is not None else None
