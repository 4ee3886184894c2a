"""A load budget at work: what the engine may do from event to event, and what came of it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from acep_approx.automaton.words import state_names
from acep_approx.budget.audit import AuditSample, RecallEstimate
from acep_approx.budget.audit import Cohort as Cells
from acep_approx.budget.budget import Budget
from acep_approx.budget.learning_ledger import Revaluation, place_words
from acep_approx.budget.ledger import Piece, Shed
from acep_approx.budget.pace import Calibration
from acep_approx.engines.runs.shedding import Shedding, type_too_late
from acep_approx.engines.runs.worth import REASONS, WITHOUT_END, Allowance, Worth
from acep_approx.errors import UsageError, expect
from acep_approx.learning.exact_sample import Cohort
from acep_approx.learning.learner import LEAST_PRICE, Learner
from acep_approx.training.policies import LEARNED, lots, policy_named
from rl.records import Lineages

if TYPE_CHECKING:
    import pyarrow as pa

    from acep_approx.engines.batches import RunEvents
    from acep_approx.engines.progress import Progress
    from acep_approx.engines.runs.lineage import Hits
    from acep_approx.engines.runs.tables import RunTables
    from acep_approx.events.roles import Roles
    from acep_approx.events.stream import EventBatch
    from acep_approx.planning.planner import Plan
    from acep_approx.training.history_graph import HistoryGraph
    from history.trace import Trace

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
    learns : bool, default False
        Whether what runs are worth is learned while the stream runs, from the history on or from nothing. The audit is
        then a cohort that is matched beside the run (``cohort.Cohort``).
    full_work : float, optional
        Run-steps per event of the exact run: what a share is of, where no history knows.
    """

    budget: Budget
    history: HistoryGraph | None = None
    policy: str | None = None
    audit: float = 0.05
    seed: int = 0
    logs_shed: bool = False
    learns: bool = False
    full_work: float | None = None

    def __post_init__(self) -> None:
        expect("audit", self.audit, Real, "a share from 0 to below 1")
        expect("seed", self.seed, Integral, "a whole number")
        expect("full_work", self.full_work, (Real, NoneType), "a number above 0")
        expect("policy", self.policy, (str, NoneType), "the name of one")
        if not 0 <= self.audit < 1:
            raise UsageError(
                f"the audit is {self.audit} of the budget", code="ACEP-U033", hint="it lies from 0 to below 1"
            )
        policy_named(self.policy_name)
        if self.learns and self.policy not in (None, "history"):
            raise UsageError(
                f"the policy {self.policy!r} ranks runs by what cannot be learned",
                code="ACEP-U048",
                hint="leave --policy out, or do not learn",
            )
        if self.full_work is not None and not 0 < self.full_work < math.inf:
            raise UsageError(
                f"the full work is {self.full_work} run-steps per event",
                code="ACEP-U050",
                hint="it is a number above 0: what the exact run takes, as acep run says at its end",
            )

    @property
    def steps_per_event(self) -> float | None:
        """Run-steps per event of the exact run, where they are known."""
        if self.full_work is not None or self.history is None:
            return self.full_work
        return self.history.steps_per_event_

    @property
    def policy_name(self) -> str:
        """The policy asked for, or the default."""
        return self.policy or ("history" if self.history is not None else "oldest")

    @property
    def policy_words(self) -> str:
        """The policy, for people."""
        if not self.learns:
            return self.policy_name
        return ("history" if self.history is not None else "random") + ", then what was learned"


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
    revalued : list of Revaluation
        When what is learned has changed what runs are worth.
    """

    def __init__(self, plan: Plan, load: Load) -> None:
        super().__init__(None, Allowance(), logs_shed=load.logs_shed)
        self.plan = plan
        self.load = load
        self.pieces: list[Piece] = []
        self.points = Points()
        self.calibration = Calibration()
        self.cells: Cells | None = None
        self.cohort: Cohort | None = None
        self.explores = 0.0  # share of the budget that is the cohort's
        self.purse = 0.0  # run-steps that the cohort was granted
        self.learner: Learner | None = None
        self.begin: int | None = None
        self._rate = 0.0  # run-steps per event of the stream
        self._seen = (0, 0)  # relevant events and run-steps at the end of the last piece
        self.learning_seconds = 0.0
        self._traces: list[Trace] = []  # of the cohort, that the learner was not shown yet
        self._not_shown = 0  # events
        self.revalued: list[Revaluation] = []
        self._found = self._events = 0

    # --- setting up -----------------------------------------------------------------------------------------

    def bind(self, tables: RunTables) -> None:
        """Now that the columns are known: look up what runs are worth and what may be done."""
        known = self.load.history
        if known is not None:
            known.check(self.plan, tables.window)
        policy = policy_named(self.load.policy_name)
        if not self.load.budget.is_unlimited:
            self.worth = known.worth(self.load.policy_name) if known else policy(tables.automaton, None, 0.0)
            if self.load.learns and tables.window > 0:  # within one moment nothing is known before it is over
                self.worth = self.worth if known else lots(tables.automaton)
                self.learner = self._learner(tables, known)
        self.allowance = self._first_allowance(tables.window)
        super().bind(tables)
        if self.learner is not None:
            self._look_at(self.learner)

    def rebind(self, tables: RunTables) -> None:
        """Go on with columns of wider types; refused where it learns (``ACEP-D024``)."""
        if self.learner is not None:
            raise type_too_late("what is being learned")
        super().rebind(tables)

    def _learner(self, tables: RunTables, known: HistoryGraph | None) -> Learner:
        if known is None:
            return Learner(tables)
        assert self.worth is not None
        promise = known.points_ / max(known.events_, 1) * known.prices_.recall(self._share())
        return Learner(tables, known.graph_.scheme, known.values(), self.worth.overlap, promise)

    def begin_stream(self, schema: pa.Schema, roles: Roles) -> None:
        """These columns come."""
        self._columns = schema, roles

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
            share = audit / 2 if self.load.learns else audit  # so that what cells cost can be saved up
            self.cells = Cells(share, max(EPOCH_WINDOWS * window, 1), window, self.load.seed)
            if self.load.learns and budget.unit != "runs" and self._has_cells():
                self.cohort, self.explores = Cohort(self.plan, *self._columns, self.cells), self.load.audit
        is_audited = not self.load.learns
        base = Allowance(
            price=price,
            audit=audit * is_audited,
            audit_share=self.load.audit * is_audited,
            epoch=max(EPOCH_WINDOWS * window, 1),
            seed=self.load.seed,
        )
        if budget.unit == "runs":
            return replace(base, runs=int(budget.amount))
        if budget.unit == "%":
            full = self.load.steps_per_event
            assert full is not None
            self._rate = budget.amount / 100 * full * (1 - self.explores)
            return replace(base, rate=self._rate, reserve=RESERVE_EVENTS * self._rate, reserve_share=RESERVE_SHARE)
        if budget.unit == "steps/event":
            self._rate = budget.amount * (1 - self.explores)
            return replace(base, rate=self._rate, most=budget.amount, reserve=budget.amount / 4)
        return replace(base, rate=0.0, reserve=1.0)  # the clock says more when a batch comes

    def _has_cells(self) -> bool:
        """Whether a part of the stream can be matched by itself, and tells at once what its matches are."""
        automaton = self.plan.registers
        assert automaton is not None
        is_loose = automaton.query.strategy not in ("strict_contiguity", "partition_contiguity")
        return is_loose and not (self.plan.is_count_window or automaton.needs_filter or automaton.has_late_ends)

    def _share(self) -> float:
        """What share of the full work the budget is, as far as that is known."""
        budget, full = self.load.budget, self.load.steps_per_event
        if budget.unit == "%":
            if full is None:
                raise full_work_unknown(budget)
            return min(budget.amount / 100, 1.0)
        if budget.unit == "steps/event" and full:
            return min(budget.amount / full, 1.0)
        return UNKNOWN_SHARE

    # --- while it runs --------------------------------------------------------------------------------------

    def begin_batch(self, events: int) -> None:
        """Budgets of time are turned into run-steps, as far as is known how long these take."""
        budget = self.load.budget
        if budget.unit == "ms/batch":
            steps = self.calibration.steps_in(budget.amount / 1e3, events) * (1 - self.explores)
            self.grant(-max(self.left, 0.0) / 0.9)  # what the last batch did not use is gone
            self._rate = steps / events
            self.allow(replace(self.allowance, rate=self._rate, most=WITHOUT_END, reserve=RESERVE_SHARE * steps))
        elif budget.unit == "events/s":
            self._keep_up()

    def _keep_up(self) -> None:
        a_second = self.load.budget.amount
        self._rate = self.calibration.steps_in(1 / a_second, 1) * (1 - self.explores)
        most = self._rate * a_second * SAVED_SECONDS
        self.allow(replace(self.allowance, rate=self._rate, most=most, reserve=most / 4))

    def note_hits(self, events: RunEvents, hits: Hits) -> None:
        """Remember match points, and whether the policy alone would have found them."""
        if self.learner is not None:
            self.learner.count(events.cls)
            self._shown = events
        if not len(hits):
            return
        event, place = np.unique(hits.event, return_inverse=True)
        if self.cohort is not None:
            self.cohort.note_found(events.row[event])
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
        spare = self.spare
        if self._rate > 0:
            self.grant(self._rate * (len(batch) - (progress.relevant - relevant)))
        if self.load.budget.needs_clock:
            self.calibration.observe(len(batch), progress.steps - steps, seconds)
            if self.load.budget.unit == "events/s":
                self._keep_up()
        if self.learner is not None:
            self._not_shown += len(batch)
            if progress.relevant > relevant:
                self._learn(self.learner, batch, spare)
        if self.begin is None:
            self.begin = int(batch.ticks[0])
        self._events = progress.events
        work = progress.steps + int(self.on_passes) + (self.cohort.steps if self.cohort else 0)
        self.pieces.append(
            Piece(
                tick=int(batch.ticks[-1]),
                events=progress.events,
                work=work,
                bound=int(self.granted + self.purse) if self._rate > 0 else work,
                live=progress.live,
                price=self.price,
                shed=int(self.counts.sum()),
                points=self._found,
            )
        )
        if self.learner is not None and len(self.learner.refreshes) > len(self.revalued):
            self.revalued.append(self._revaluation(self.learner, self.pieces[-1]))

    def _revaluation(self, learner: Learner, piece: Piece) -> Revaluation:
        """What runs have just been revalued by."""
        return Revaluation(
            tick=piece.tick,
            events=piece.events,
            points=piece.points,
            tests=learner.looking.rows,
            work=piece.work,
            explored=self.cohort.steps if self.cohort else 0,
            alarms=len(learner.alarms),
        )

    def _learn(self, learner: Learner, batch: EventBatch, spare: float) -> None:
        """Show the learner what was seen, if it is worth it, and ask it for what runs are worth if enough is new."""
        begun = time.perf_counter()
        self._explore(batch)
        if self._not_shown >= learner.most_events or self.tables.scalars.columns.texts.has_many:
            fates, self._traces = self._fates(learner, self._traces), []
            learner.look(self.take_sample(), self.keys_now(), self._not_shown, int(batch.ticks[-1]), fates, self._found)
            self._not_shown = 0
            if learner.is_due():
                self._revalue(learner, spare)
            self._look_at(learner)
        self.learning_seconds += time.perf_counter() - begun

    def _revalue(self, learner: Learner, spare: float) -> None:
        worth, price = learner.revalue(self.allowance.price * self.factor, self._rate, spare)
        if self.load.budget.unit == "runs":  # places are taken until there are none
            price = LEAST_PRICE
        self.allow(replace(self.allowance, price=price / self.factor))
        self.revalue(worth)

    def _explore(self, batch: EventBatch) -> None:
        """Match the cohort's part of a piece."""
        if self.cohort is None:
            return
        self.purse += self._rate * len(batch) * self.explores / (1 - self.explores)
        seen, left = self._shown, self.purse - self.cohort.steps
        self._traces += self.cohort.push(batch, seen.slot, seen.row, seen.tick, self.keys_now(), left)

    def _fates(self, learner: Learner, traces: Iterable[Trace]) -> Lineages:
        found = [Lineages.none()]
        if self.cohort is None:
            return found[0]
        for trace in traces:
            self.cohort.compare(trace)
            fates, visits = self.cohort.fates(trace, learner.scheme)
            learner.reach(trace, visits, fates.vertex)
            found.append(fates)
        return Lineages(*(np.concatenate([getattr(one, f.name) for one in found]) for f in fields(Lineages)))

    def finish(self) -> None:
        """The stream has ended: what became of the rest of the cohort."""
        if self.learner is not None and self.cohort is not None:
            self.learner.add_fates(self._fates(self.learner, [*self._traces, *self.cohort.finish()]))
            self._traces = []

    def _look_at(self, learner: Learner) -> None:
        self.sample_tests(learner.looking.share, learner.looking.passed)
        self.most_events = learner.most_events

    # --- state ----------------------------------------------------------------------------------------------

    def header(self) -> dict[str, Any]:
        """What must be kept to go on elsewhere, as JSON: not the books.

        Raises
        ------
        UsageError
            ``ACEP-U052``: it learns, and what it has learned is not in its state.
        """
        if self.learner is not None:
            raise UsageError(
                "a run that learns cannot be saved: what it is learning would be lost",
                code="ACEP-U052",
                hint="run without learning, and refresh the history from the tests that runs write down",
            )
        return {
            **super().header(),
            "seen": self._seen,
            "found": self._found,
            "clock": self.calibration.header() if self.load.budget.needs_clock else None,
        }

    def go_on(self, header: dict[str, Any]) -> None:
        """Go on from what ``header`` gave; with another version of the history, or another budget, as may be."""
        super().go_on(header)
        relevant, steps = header["seen"]
        self._seen, self._found = (relevant, steps), header["found"]
        if header["clock"] is not None:
            self.calibration = Calibration.of(header["clock"])

    # --- what came of it ------------------------------------------------------------------------------------

    def shed(self) -> list[Shed]:
        """Runs shed by state and reason, those of the first states first."""
        assert self.plan.registers is not None
        tables = self.tables
        found, states = [], state_names(tables.automaton)
        for pool, row in zip(tables.pools, self.counts.tolist(), strict=True):
            name = place_words(states[pool.state], pool.errors)
            found += [Shed(name, reason, runs) for reason, runs in zip(REASONS, row, strict=True) if runs]
        return found

    def recall(self) -> RecallEstimate | None:
        """Estimated recall of match points; None where nothing is shed on purpose or no audit was asked for."""
        if self.cohort is not None:
            beside = self.cohort.sample
            return replace(beside, outside=self._found - int(beside.found.sum())).estimate()
        sample = self.audited()
        return sample.estimate() if sample is not None else None

    def audited(self) -> AuditSample | None:
        """What the audit saw of the match points found since this shedder was made; None where nothing is audited.

        Samples are added by ``AuditSample.combine``: those of later batches, and of parts of a stream that run with
        another seed each. Parts of one seed have the same cells, for keys are known by their slots.
        """
        if self.cells is None or self.learner is not None:
            return None
        cells = self.cells.cells(self.points.joined("slot"), self.points.joined("tick"))
        audited = cells >= 0
        kept = self.points.joined("is_kept").astype(np.bool_)
        return AuditSample.of(cells[audited], kept[audited], int((~audited).sum()))

    def full_work(self) -> float:
        """Run-steps per event of the exact run: as was given, else as the cohort suggests, else as the learner does."""
        known = self.load.steps_per_event
        if known is not None:
            return known
        assert self.learner is not None
        if self.cohort is not None and self.cohort.steps and self._events:
            share = self.cohort.cells.share * (1 + self.cohort.cells.window / self.cohort.cells.epoch)
            return self.cohort.steps / share / self._events
        return float(self.learner.demand()[1].sum())

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
        hint="learn one with acep train and give it with --history, say the full work, in run-steps per event, with "
        "--full-work (full_work=), or grant '5000 steps/event', '200 runs', '2 ms/batch' or '100k events/s'",
    )


def shedder(plan: Plan, load: Load | None) -> Shedder | None:
    """What a run of ``plan`` sheds with; None where it does not: no budget, or an engine that needs none."""
    return Shedder(plan, load) if load is not None and plan.registers is not None else None
