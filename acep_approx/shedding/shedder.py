"""A load budget at work: what the engine may do from event to event."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Floats, Ints
from acep_approx.budget.audit import AuditCells
from acep_approx.budget.budget import Budget
from acep_approx.budget.ledger import Piece
from acep_approx.engines.batches import Grouped, RunEvents
from acep_approx.engines.progress import RunProgress
from acep_approx.engines.runs.expected_work import Done, ExpectedWork, WorkMeter, block_after
from acep_approx.engines.runs.first_pools import FirstPools
from acep_approx.engines.runs.lineage import Hits
from acep_approx.engines.runs.load_shedder import MOST_AT_ONCE, WHOLE_BATCH, CallOrder, HoldsTexts, Results
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.runs.shedding import Shedding, type_too_late
from acep_approx.engines.runs.tables import RunTables
from acep_approx.engines.runs.worth import WITHOUT_END, Allowance
from acep_approx.engines.search.searches import Searches
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.jit import tiers
from acep_approx.kernels.runs.scores import ADAPT
from acep_approx.learning.cohort import Beside, Cohort
from acep_approx.learning.judging import POOR, Promise, Ranking, patience
from acep_approx.learning.learner import Learner
from acep_approx.learning.online import Observer, OnlineLearning, RecordedLearning
from acep_approx.learning.shown_later import BesidePairs, BesideReads
from acep_approx.matching.shared_load import PairsShown, Picked
from acep_approx.planning.planner import Plan
from acep_approx.ranges import finite
from acep_approx.shedding.by_query import PointsByQuery
from acep_approx.shedding.exact_audit import ExactAudit
from acep_approx.shedding.load import (
    RESERVE_SHARE,
    Load,
    audited_cells,
    epoch_of,
    first_allowance,
    first_worth,
    learned_price,
    reserve_for,
    spending,
)
from acep_approx.shedding.metrics import Metrics
from acep_approx.shedding.outcome import Outcome
from acep_approx.shedding.timing import StepClock
from acep_approx.shedding.ways import Ways
from acep_approx.subscriptions.published import FIRST_ID
from acep_approx.subscriptions.templates.pair_runs import NUMBER
from acep_approx.training.needless import warn_of_no_learning
from acep_approx.training.policies import LEARNED

if TYPE_CHECKING:
    from acep_approx.training.history_graph import HistoryGraph

COHORT, BESIDE = 0.5, 4.0
"""How many of the cells that the budget would pay for are chosen: of a cohort half, so that what it costs can be saved
up; cells that are only asked for their match points cost less than the full work, and wait until enough is saved up."""
FASTER = 4
"""The price of a template goes so many times as fast as that of a single query at most: an event is many pairs."""
SAVED_SECONDS = 0.1
"""What may be saved up of a budget in events per second."""


class Shedder(Outcome):
    """Sheds by a policy inside a budget; see ``LoadShedder`` for the order of the calls.

    Parameters
    ----------
    plan : Plan
        With registers: only the runs engine sheds.
    load : Load
    observer : Observer, optional
        Samples tests for a learner that is elsewhere; then without ``load.learns``. Where there is neither a history
        yet nor a policy, runs are kept at random.

    Attributes
    ----------
    arena : Shedding
        What the kernel sheds by.
    metrics : Metrics
        What came of it.
    beside : Beside
        The cohort that is matched beside it where something learns, or nothing.
    online : OnlineLearning or None
        What is learned on the way.
    clock : StepClock
        How long an event and a run-step take here.
    cells : AuditCells or None
        Where runs are protected from being shed.
    exact_work : ExpectedWork or None
        What the exact run takes, where a share is of the present load.
    charges_births : bool
        Whether a try to begin a run is a run-step.
    keeps_metrics : bool
        Whether its state has what came of it so far.
    known_as : str
        What its history is found by.
    part : float
        Of a purse, as a multiple of what its own work is entitled to.
    stood : tuple of (float, float, int)
        Run-steps done and granted, and runs shed, when the parts of the purse moved last.
    before_batch : callable or None
        Is called before each batch.
    by_query : PointsByQuery
        Match points of many queries that it sheds for.
    window : int
        The longest of its queries, in ticks, where each may have its own; 0: that of the plan.
    looks_at : {"events", "reads", "pairs", "nothing"}
        What can be matched beside it, where it learns: the events, once it is known what they have read of tables, as
        may be, or pairs of an event and a query.
    """

    charges_births = keeps_metrics = False
    looks_at = "events"
    known_as = ""
    part = 1.0
    stood: tuple[float, float, int] = (0.0, 0.0, 0)
    keeps_order = True
    """What is saved up is there for all keys: were events grouped, who comes first would depend on how they arrived."""

    def __init__(
        self,
        plan: Plan,
        load: Load,
        observer: Observer | None = None,
        *,
        audits_beside: bool = False,
        may_search: bool = False,
    ) -> None:
        self.plan = plan
        self.load = load
        self.ways: Ways | None = None
        self._may_search = may_search
        self._unbound = observer
        self.observer: Observer | RecordedLearning | None = observer
        self.arena = Shedding(None, Allowance(), logs_shed=load.logs_shed, ranks_dominated=True)
        self.metrics = Metrics()
        self.beside = Beside(self.arena)
        self.online: OnlineLearning | None = None
        self.exact_audit: ExactAudit | None = None
        self.audits_beside = audits_beside
        self.clock = StepClock()
        if load.budget.needs_clock:
            tiers.compiled_first()  # interpreted it would shed nearly everything
        self.cells: AuditCells | None = None
        self._order = CallOrder()
        self._columns: tuple[pa.Schema, Roles]
        self._rate = 0.0  # run-steps per event of the stream
        self._seen = (0, 0)  # relevant events and run-steps at the end of the last piece
        self._on_passes = 0.0  # run-steps that choosing among runs had taken by then
        self._events = 0
        self.seconds = 0.0  # that its pieces took, since it was made
        self._of_piece = 0.0  # run-steps per event of this piece
        self.exact_work: ExpectedWork | None = None
        self._waiting = 0  # events behind the last one that the engine got: they are granted for with the next
        self._ahead = (0.0, 0)  # seconds and events that are left of a batch with a budget of time
        self._is_bound = False
        self.before_batch: Callable[[], None] | None = None
        self._whose: Ints | None = None  # the queries of pairs
        self.window = self._pairs = 0  # pairs so far
        self._of_pairs = (0, 0.0)  # pairs of this piece, and run-steps granted for them
        self.by_query = PointsByQuery()

    # --- setting up -----------------------------------------------------------------------------------------

    def begin_stream(self, schema: pa.Schema, roles: Roles) -> None:
        """These columns come."""
        self._order.check("begin_stream")
        self._columns = schema, roles

    def search_for(self, results: Results) -> Searches | None:
        """Choose how ends are searched for such results; None: runs are followed only."""
        if self.ways is None and self._may_search:
            self.ways = Ways.of(self.load, self.plan, results)
        return None if self.ways is None else self.ways.how

    def bind(self, tables: RunTables) -> None:
        """Now that the columns are known: look up what runs are worth and what may be done."""
        self._order.check("bind")
        load = self.load = replace(self.load, drops=tables.exact_drops)
        if load.history is not None:
            window = load.history.window if self.charges_births else tables.window  # each query may have its own
            load.history.check(self.plan, window)
        learns = load.learns and tables.window > 0 and not load.budget.is_unlimited  # a moment is over at once
        has_cohort, explores = learns or self.observer is not None, 0.0
        if not load.budget.is_unlimited:
            is_random = learns or (self.observer is not None and load.policy is None)
            first = self._first_load() if learns else load
            worth = first_worth(first, tables.automaton, is_random=is_random)
            explores = self._choose_cells(tables.window, learns=learns, has_cohort=has_cohort)
            self.arena.worth = worth
            marks = self.cells is not None
            self.arena.allowance = first_allowance(first, worth, tables.window, explores, marks=marks)
            if load.budget.unit in ("%", "steps/event"):
                self._rate = self.arena.allowance.rate
            self._measure_by(tables)
        self.arena.sees_all = has_cohort
        self.arena.bind(tables)
        if load.budget.unit in ("runs", "steps/event"):
            self.arena.wait()  # nobody knows whether the budget will ever be short
        self._is_bound = True
        if learns:
            counts_runs = load.budget.unit == "runs"
            self.online = OnlineLearning(self.arena, self._learner(tables), self.beside, counts_runs=counts_runs)
        if self._unbound is not None:
            self.observer = self._unbound.bind(self.arena, self.beside, lambda: self._learner(tables))

    def _measure_by(self, tables: RunTables) -> None:
        """Let shares be of the present load, where it can be told from the events."""
        law, full = self.load.law, self.load.steps_per_event
        if self.load.budget.unit == "%" and law is not None and full:
            known, pools = self.load.history, None
            if not (self.charges_births or self.has_searched):
                pools = FirstPools(tables)
            window = known.window if known is not None and self.charges_births else tables.window
            self.exact_work = ExpectedWork(WorkMeter(tables, window), law, full, pools)

    def _choose_cells(self, window: int, *, learns: bool, has_cohort: bool) -> float:
        """Choose what is audited, and how; gives the share of the budget that is not the run's."""
        load, automaton = self.load, self.plan.registers
        assert automaton is not None
        # a part of the stream must be matched by itself, and tell at once what its matches are
        is_whole = not (self.plan.is_count_window or self.plan.looks_to_the_start)
        is_certain = is_whole and not (automaton.needs_filter or automaton.waits)
        has_cells = automaton.counted == "nothing" and is_certain
        can_be_beside = self.looks_at != "nothing" and window > 0 and load.budget.unit != "runs" and has_cells
        if not (learns or (can_be_beside and (has_cohort or self.audits_beside))):
            self.cells = audited_cells(load, window, load.audit)
            return 0.0
        audit = load.audit if has_cohort else load.audit_share
        cells = audited_cells(load, window, audit, COHORT if has_cohort else BESIDE)
        if cells is None or not can_be_beside:
            return 0.0
        if has_cohort:
            self.beside = self._beside(Cohort(self.plan, *self._columns, cells), audit)
        else:
            full = (load.steps_per_event or 0.0) / load.ratio * replace(load, drops=True).ratio
            arena = None if self.has_searched else self.arena
            self.exact_audit = ExactAudit(self.plan, self._columns, cells, audit, full, arena)
        return audit

    def _beside(self, cohort: Cohort, audit: float) -> Beside:
        if self.looks_at == "pairs":
            return BesidePairs(self.arena, cohort, audit, number=NUMBER)
        return (BesideReads if self.looks_at == "reads" else Beside)(self.arena, cohort, audit)

    def show(self, batch: EventBatch) -> None:
        """What the events of a batch have read of tables is known now; it stands in columns of them."""
        if isinstance(self.beside, BesideReads):
            self.beside.show(batch)

    def rebind(self, tables: RunTables) -> None:
        """Go on with columns of wider types; refused where it learns (``ACEP-D024``)."""
        self._order.check("rebind")
        if self.online is not None:
            raise type_too_late("what is being learned")
        if self.exact_audit is not None:
            self.exact_audit.rebind()
        if self.exact_work is not None:
            self.exact_work.rebind(tables)
        self.arena.rebind(tables)

    def _first_load(self) -> Load:
        """By which runs are ranked until something is learned: without a history that says nothing."""
        load, known = self.load, self.load.history
        if known is None or not load.steps_per_event or not known.says_nothing:
            return load
        return replace(load, history=None, full_work=load.steps_per_event)

    def _learner(self, tables: RunTables) -> Learner:
        known, worth = self.load.history, self.arena.worth
        if known is None:
            return Learner(tables)
        assert worth is not None
        if self._first_load().history is None:
            return Learner(tables, known.graph_)
        rate, is_poor = self._promised(known)
        promise = Promise(rate, patience(known.graph_.counts.bundles), tables.window, is_poor=is_poor)
        ranking = Ranking(known.graph_.scheme, known.values(), worth.overlap)
        return Learner(tables, known.graph_, ranking, worth, promise, self._share_of_run)

    @property
    def price_is_learned(self) -> bool:
        """Whether what it sheds by is match points per run-step: as a history says, or what was learned since."""
        if self.online is not None:
            return not self.online.learner.is_random
        return self.load.history is not None and self.load.policy_name in LEARNED

    @property
    def _share_of_run(self) -> float:
        """The share of the full work that is for the run itself."""
        return self.load.share * (1 - self.explores)

    def _promised(self, known: HistoryGraph) -> tuple[float, bool]:
        """Match points per event that a history promises within the budget, and whether these are few."""
        recall = known.prices_.recall(self._share_of_run * self.load.ratio)
        return known.points_ / max(known.events_, 1) * recall, recall < POOR

    def take(self, budget: Budget, full_work: float | None = None) -> None:
        """From here on this is its budget, in the unit of before: a purse shares one among several engines.

        What was granted before stays, for events too that are granted for with the next one. ``full_work``: run-steps
        per event of the exact run, where no history of its own knows them.
        """
        taken = replace(self.load, budget=budget, full_work=full_work)
        if taken == self.load:
            return
        self.load = taken
        if not self._is_bound or budget.is_unlimited or budget.needs_clock:
            return  # it is looked up when the columns are known, or when a batch comes
        self.arena.grant(self._rate * self._waiting)
        self._waiting = 0
        if full_work is not None:
            self.exact_work = None  # it was said
        if self.exact_work is not None and taken.steps_per_event:
            self.exact_work.usual = taken.steps_per_event
        allowance, price = spending(self.load, self.arena.allowance, self.explores), learned_price(self.load)
        if self.exact_work is not None and self._events:
            allowance = self._holding_back(self.exact_work, allowance)
        if self.online is not None:
            known = self.load.history
            self.online.take_share(self._share_of_run, None if known is None else self._promised(known))
            price = None if self.online.learner.refreshes else price  # what is learned has prices of its own
        self.arena.allow(allowance if price is None else replace(allowance, price=price))
        if budget.unit in ("%", "steps/event"):
            self._rate = allowance.rate

    # --- while it runs --------------------------------------------------------------------------------------

    @property
    def most_events(self) -> int:
        """As many as the learner lets pass before it looks, and as are left until the law of work is corrected."""
        learning = self.observer or self.online
        most = WHOLE_BATCH if learning is None else learning.most_events
        if self.ways is not None:
            most = min(most, self.ways.left_of_piece(self._events))
        if self.ways is None or not self.ways.searches:
            most = min(most, MOST_AT_ONCE)
        if self.exact_work is None or self.has_searched:
            return most
        return min(most, self.exact_work.most_events(self._events))

    @property
    def engines_beside(self) -> Sequence[HoldsTexts]:
        """Those that know what the exact run takes at first places."""
        work = self.exact_work
        return () if work is None or work.pools is None else (work.pools.engine,)

    @property
    def _aside(self) -> Beside | ExactAudit:
        return self.exact_audit or self.beside

    @property
    def explores(self) -> float:
        """Share of the budget that is not the run's but the cohort's."""
        return self._aside.explores

    def begin_batch(self, events: int) -> None:
        """Budgets of time are turned into run-steps, as far as is known how long these take."""
        self._order.check("begin_batch")
        if self.before_batch is not None:
            self.before_batch()
        budget, arena = self.load.budget, self.arena
        arena.notes.begin_batch(events)
        if arena.notes.is_begun or arena.notes.again is not None:  # what is run once more is paid from what is left
            return
        if budget.unit == "ms/batch":
            arena.grant(self._rate * self._waiting)
            self._waiting = 0
            arena.take_back()  # what the last batch did not use is gone
            self._ahead = budget.amount / 1e3, events
            arena.grant(RESERVE_SHARE * self._steps_ahead())  # without any the price would rise as if it ran short
            self._keep_time()
        elif budget.unit == "events/s":
            self._keep_up()
        if self.observer is not None:
            self.observer.begin_batch(events, self._rate, self.metrics.found, self._events)

    def _keep_time(self) -> None:
        """Grant as many run-steps as the clock says that there is time for, to the events that are left of a batch.

        What was granted before and is not used yet is part of them. So a batch ends in time though the clock was wrong.
        """
        arena, steps, events = self.arena, self._steps_ahead(), self._ahead[1] + self._waiting
        if events > 0:
            self._rate = max(steps - arena.unused, 0.0) / events
            arena.allow(replace(arena.allowance, rate=self._rate, most=WITHOUT_END, reserve=RESERVE_SHARE * steps))

    def _steps_ahead(self) -> float:
        return self.clock.steps_in(*self._ahead) * (1 - self.explores)

    def _keep_up(self) -> None:
        a_second = self.load.budget.amount
        self._rate = self.clock.steps_in(1 / a_second, 1) * (1 - self.explores)
        most = self._rate * a_second * SAVED_SECONDS
        self.arena.allow(replace(self.arena.allowance, rate=self._rate, most=most, reserve=most / 4))

    def begin_piece(self, batch: EventBatch, events: Grouped) -> None:
        """Each event of the stream is granted for at the next one that the engine gets, itself included.

        What other queries publish grants nothing.
        """
        self._order.check("begin_piece")
        places, self._of_piece = events.at, self._rate
        self.arena.notes.begin_piece(len(batch), places)
        self.arena.begin_piece(events.row)
        if self.arena.notes.again is not None:
            return
        if self.exact_work is not None:
            self.arena.stands_for = worth = self.exact_work.of(events, is_corrected=not self.has_searched)
            self._of_piece = self._rate * float(worth.sum()) / max(len(batch), 1)
            return
        arrived = np.arange(1, len(batch) + 1) if batch.ids is None else np.cumsum(batch.ids < FIRST_ID)
        stands_for = np.zeros(len(batch))
        found = np.sort(places)
        stands_for[found] = np.diff(arrived[found], prepend=-self._waiting)
        self.arena.stands_for = stands_for[places]
        self._waiting += int(arrived[-1:].sum() - stands_for.sum())

    def pick(self, slot: Ints, tick: Ints, cls: Ints, engine: Runs) -> Picked:
        """The pairs that an engine must get, of those that come next: the others meet no run, and begin none.

        Where that can be told, pairs are granted for by what they take in the exact run, and what the others take is
        shared out among those that the engine gets.
        """
        (shown, granted), work, size = self._of_pairs, self.exact_work, len(slot)
        if work is None:
            self._of_pairs = shown + size, granted
            return Picked(np.arange(size), np.ones(size))
        sees_all = self.online is not None or self.observer is not None or self.beside.cohort is not None
        at, worth, others = work.pick(slot, tick, cls, None if sees_all else engine)
        self._of_pairs = shown + size, granted + self._rate * (float(worth.sum()) + others)
        if not len(at):
            self.arena.grant(self._rate * others)
        return Picked(at, worth + others / max(len(at), 1))

    def begin_pairs(self, events: int, whose: Ints, pairs: PairsShown | None = None) -> None:
        """So many events of the stream come, as picked pairs: each is granted for once.

        By all of these in equal parts, or, where that can be told, by what they take in the exact run.

        ``whose``: the number of the query of each pair, -1 where nobody knows; ``pairs``: None where there are none.
        """
        self._order.check("begin_piece")
        self._whose, arena = whose, self.arena
        if pairs is not None:
            arena.stands_for = pairs.worth
            if isinstance(self.beside, BesidePairs):
                self.beside.begin_pairs(pairs.columns)
        if events and len(whose):  # not by each of hundreds of pairs: a price would be far off before work follows it
            arena.adapts = ADAPT * min(FASTER * events / len(whose), 1.0)
        if self.exact_work is not None:
            return
        self._waiting += events
        if len(whose):
            if self._rate > 0:
                arena.rate = self._rate * self._waiting / len(whose)
            self._of_pairs = self._of_pairs[0], self._of_pairs[1] + self._rate * self._waiting
            self._waiting = 0

    def begun(self, slots: Ints) -> Ints | None:
        """The tick of the last event that begins a run of each slot if none is shed.

        None where it does not matter: what is granted does not hang on which slots there are.
        """
        return None if self.exact_work is None else self.exact_work.meter.begun(slots)

    def know_window(self, window: int) -> None:
        """The longest window of the queries that are keys is known now: what is audited lies in cells of four."""
        self.window = max(self.window, window)
        if self.load.learns and self.online is None:
            warn_of_no_learning(self.plan)
        if self.cells is not None and window > self.cells.window:
            self.cells = audited_cells(self.load, window, self.load.audit)
            self.arena.allow(replace(self.arena.allowance, epoch=epoch_of(window)))

    def weigh_keys(self, weights: Floats) -> None:
        """What a match point counts for, by the slot of its key; the last one is that of all further slots."""
        self.arena.weigh_keys(weights)

    def note_hits(self, events: RunEvents, hits: Hits) -> None:
        """Remember match points, and whether the policy alone would have found them."""
        self._order.check("note_hits")
        if self.arena.notes.again is None:
            for other in (self.online, self.observer, self.exact_audit):
                if other is not None:
                    other.count(events)
            if self.exact_work is not None and not self.has_searched:  # then nobody asks what the law was off by
                self.exact_work.look(events)
        hits = hits.where(self.arena.notes.first_completed(hits.event, events.row))  # the others were counted then
        if not len(hits):
            return
        rows = self.metrics.add_points(events, hits)
        self._aside.note_found(np.unique(hits.event) if self.charges_births else rows)
        if self._whose is not None:
            self.by_query.add(self._whose, events, hits, self.cells)

    def end_piece(self, batch: EventBatch, progress: RunProgress, seconds: float) -> None:
        """Look at the clock, and write down what came of it."""
        self._order.check("end_piece")
        relevant, steps = self._seen
        spare = self.arena.spare
        passes, self._on_passes = self._on_passes, self.arena.on_passes
        self.clock.observe(len(batch), progress.steps - steps + round(self._on_passes - passes), seconds)
        self.seconds += seconds
        self.arena.notes.end_piece()
        is_again = self.arena.notes.again is not None
        if self.load.budget.unit == "ms/batch":
            self._ahead = self._ahead[0] - seconds, self._ahead[1] - (0 if is_again else len(batch))
            self._keep_time()
        if is_again:
            self._seen = relevant, progress.steps
            return
        self._seen, self._events = (progress.relevant, progress.steps), progress.events
        self._end_block(int(batch.ticks[-1]), progress)
        if self.load.budget.unit == "events/s":
            self._keep_up()
        is_relevant, shown, found = progress.relevant > relevant, len(batch), self.metrics.found
        if self.charges_births:
            shown = self._take_pairs()
            is_relevant = shown > 0
        if self.online is not None:
            self.online.end_piece(batch, self._of_piece, spare, found, is_relevant=is_relevant, shown=shown)
        if self.exact_audit is not None:
            self.exact_audit.end_piece(
                batch, self._of_piece, self.arena.tables.classes, is_relevant=is_relevant,
                is_certain=self._sheds_nothing, searched=self.arena.open_ends,
            )  # fmt: skip
        piece = self._piece(int(batch.ticks[-1]), progress)
        self.metrics.add_piece(batch.ticks, piece)
        if self.online is not None:
            self.online.note(piece)
        if self.observer is not None:
            self.observer.end_piece(batch, self._of_piece, spare, self.metrics.found, is_relevant=is_relevant)

    def _end_block(self, tick: int, progress: RunProgress) -> None:
        """Let the law of the exact run's work learn from what was done, or look which way is better."""
        work, arena = self.exact_work, self.arena
        if self.ways is not None and not self.plan.is_count_window:
            self.ways.look(self._events, tick, arena.tables.window, arena.granted)
        if work is None or self.has_searched or self._events % block_after(self._events):
            return
        gone = progress.shed + arena.untested
        work.end_block(self._events, Done(progress.steps, tick, gone, arena.lost_at))
        arena.allow(self._holding_back(work, arena.allowance))

    def _holding_back(self, work: ExpectedWork, allowance: Allowance) -> Allowance:
        """An allowance with what should be left of it by the present load: the past may have had another one."""
        times = work.steps / self._events / work.usual
        return replace(allowance, reserve=reserve_for(times * allowance.rate, self.arena.granted))

    def _take_pairs(self) -> int:
        """How many pairs the piece had; what each was granted is known then."""
        shown, granted = self._of_pairs
        self._of_pairs, self._pairs = (0, 0.0), self._pairs + shown
        self._of_piece = granted / max(shown, 1)
        return shown

    def grant_late(self, events: int, gone: int) -> None:
        """So many events come between others, and so many go: those are granted for as those that come in order are.

        The time of a batch is for all of its rows, also for those that take events back.
        """
        if self.online is not None:
            self.online.read_texts()
        rows: float = events + gone if self.load.budget.unit == "ms/batch" else events
        if self.exact_work is not None and self._events:
            rows *= self.exact_work.steps / self._events / self.exact_work.usual
        self.arena.grant(self.arena.allowance.rate * rows)

    def note_change(self, tick: int, progress: RunProgress) -> None:
        """Write down where it stands once what changed was run again; ``tick``: of the last event so far."""
        self._events = progress.events
        piece = self._piece(tick, progress)
        if self.metrics.pieces[-1:] != [piece]:
            self.metrics.add_piece(np.array([tick]), piece)

    @property
    def granted(self) -> float:
        """Run-steps granted so far, those for the last events of no interest included."""
        return self.arena.granted + self._rate * self._waiting

    def _piece(self, tick: int, progress: RunProgress) -> Piece:
        arena = self.arena
        work = progress.steps + int(arena.on_passes) + (self.audit_work or 0)
        return Piece(
            tick=tick,
            events=progress.events,
            work=work,
            bound=int(self.granted + self._aside.quota) if self._rate > 0 else work,
            live=progress.live,
            price=arena.price,
            shed=int(arena.counts.sum()),
            points=self.metrics.found,
            kept=progress.kept,
            open_ends=0 if self.ways is None else self.ways.unsearched,
        )

    def pause(self) -> None:
        """The run is saved now, and may go on elsewhere."""
        if self.exact_audit is not None:
            done = self.exact_audit.steps
            self.exact_audit.pause()
            self.metrics.add_work(self.exact_audit.steps - done)

    def finish(self) -> None:
        """The stream has ended."""
        if self.online is not None:
            self.online.finish()
        if self.exact_audit is not None:
            done = self.exact_audit.steps
            self.exact_audit.finish()
            self.metrics.add_work(self.exact_audit.steps - done)

    def forget(self) -> None:
        """A run without end does not remember all of its match points; see ``Metrics.forget``."""
        self.metrics.forget(self.cells)

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """What must be kept to go on elsewhere, as JSON: not the metrics, but what it has learned."""
        self._order.check("snapshot")
        saved = {
            **self.arena.snapshot(),
            "seen": self._seen,
            "events": self._events,
            "waiting": self._waiting,
            "pairs": [self._pairs, *self._of_pairs],
            "found": self.metrics.found,
            "clock": self.clock.snapshot() if self.load.budget.needs_clock else None,
            "exact work": None if self.exact_work is None else self.exact_work.snapshot(),
            "held back": [self.arena.allowance.rate, self.arena.allowance.reserve],
        }
        if self.ways is not None:
            saved["ways"] = self.ways.snapshot()
        if self.beside.cohort is not None:
            saved["beside"] = self.beside.snapshot()
        if self.online is not None:
            saved["online"] = self.online.snapshot()
        if self.exact_audit is not None:
            saved["exact cells"] = self.exact_audit.snapshot()
        if self.keeps_metrics:
            so_far, by_query = self.metrics.snapshot(self.cells), self.by_query.snapshot()
            has = {"amount": self.load.budget.amount, "full_work": self.load.full_work, "part": self.part}
            saved |= {"has": has, "stood": self.stood, "so_far": so_far, "by_query": by_query}
        if self.observer is None:
            return saved
        return {**saved, "prices": None if self.observer.has_rescored else self._prices}  # None: of no version

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave; with another version of the history, or another budget, as may be."""
        self._order.check("restore")
        if self.keeps_metrics:
            has = saved["has"]
            finite("has", *saved["stood"], *(number for number in has.values() if number is not None))
            work, granted, shed = saved["stood"]
            self.part, self.stood = has["part"], (work, granted, shed)
            self.take(Budget(has["amount"], self.load.budget.unit), has["full_work"])
            self.metrics.restore(saved["so_far"])
            self.by_query.restore(saved["by_query"])
        if self.ways is not None:
            self.ways.restore(saved.get("ways"))
            if self.exact_audit is not None and self.has_searched:
                self.exact_audit.forget_runs()
        if "beside" in saved:
            self.beside.restore(saved["beside"])
        if self.online is not None and "online" in saved:
            self.online.restore(saved["online"])
        if self.exact_audit is not None and "exact cells" in saved:
            self.exact_audit.restore(saved["exact cells"])
        self.arena.restore(saved)
        relevant, steps = saved["seen"]
        finite("seen", relevant, steps, saved["waiting"], saved["found"], saved.get("events", 0))
        self._seen, self._waiting, self.metrics.found = (relevant, steps), saved["waiting"], saved["found"]
        self._on_passes = self.arena.on_passes
        self._events = saved.get("events", 0)  # states of before do not know it
        pairs, of_piece, granted = saved.get("pairs", (0, 0, 0.0))  # nor these
        finite("pairs", pairs, of_piece, granted)
        self._pairs, self._of_pairs = pairs, (of_piece, granted)
        if self.exact_work is not None and saved.get("exact work") is not None:  # states of before have none
            self.exact_work.restore(saved["exact work"])
            rate, reserve = saved.get("held back", (0.0, 0.0))
            finite("held back", rate, reserve)
            if rate > 0:  # of the share that it was then
                reserve *= self.arena.allowance.rate / rate
                self.arena.allow(replace(self.arena.allowance, reserve=reserve))
        if saved["clock"] is not None:
            self.clock = StepClock.restored(saved["clock"])
        if self.observer is not None and saved.get("prices", self._prices) != self._prices:
            self.arena.trust_price()

    @property
    def _prices(self) -> int:
        """Tells prices of a version from those of another: a version may go on ranking runs as the one before did."""
        return zlib.crc32(repr(self.load.history.prices_).encode()) if self.load.history is not None else 0



def shedder(plan: Plan, load: Load | None, *, in_order: bool = True) -> Shedder | None:
    """What a run of ``plan`` sheds with; None where it does not: no budget, or an engine that needs none.

    ``in_order``: whether no event comes, or goes, between others: then ends of matches may be searched.
    """
    if load is None or plan.registers is None:
        return None
    return Shedder(plan, load, audits_beside=True, may_search=in_order)
