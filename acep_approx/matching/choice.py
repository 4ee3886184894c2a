"""Which engine, and which output, a query gets: one row for each pair that there is.

A plan says whether the cells can run a query, or runs must; what is asked for says what is put out. How the two come
together stands in ``WAYS``, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import pyarrow as pa

from acep_approx.automaton.algebra import Shows
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import dynamic_conditions, leaves
from acep_approx.engines.cells.arclogs import ArcLogs
from acep_approx.engines.cells.cells import Cells
from acep_approx.engines.maximal.best import BestCells
from acep_approx.engines.maximal.engine import MaximalCells
from acep_approx.engines.runs.event_columns import EventColumns
from acep_approx.engines.runs.hidden import NO_OPTIONS, RunOptions
from acep_approx.engines.runs.load_shedder import LoadShedder, Results
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.search.end_search import EndSearch
from acep_approx.engines.search.exact_ways import ExactSearch
from acep_approx.kernels.search.end_search import ALL, LATEST
from acep_approx.matching.outputs.best import BestCellPoints, BestColumns
from acep_approx.matching.outputs.bind import BoundEvents
from acep_approx.matching.outputs.completed import Finder
from acep_approx.matching.outputs.kinds import BARE, COMPRESSED, COUNTS, MATCHES, PARTIAL, POINTS, TRACE, OutputKind
from acep_approx.matching.outputs.of_algebra import AlgebraCounts, AlgebraResults
from acep_approx.matching.outputs.of_cells import CellCounts, CellListing, CellPoints
from acep_approx.matching.outputs.of_maximal import MaximalCounts, MaximalListing, MaximalPoints, WalkedMatches
from acep_approx.matching.outputs.of_runs import RunCounts, RunListing, RunOutput, RunPoints
from acep_approx.matching.outputs.output import Output, Stamps
from acep_approx.matching.outputs.recent import Recent
from acep_approx.matching.outputs.registers import MachineMatches
from acep_approx.matching.outputs.returns import ReturnColumns
from acep_approx.matching.outputs.tables import BindingColumns
from acep_approx.matching.outputs.verify import Verifier
from acep_approx.matching.prepare import Preparer
from acep_approx.matching.stream_side import StreamSide
from acep_approx.matching.tracing.compressed import RunShared, SharedRuns, compressed_plan
from acep_approx.matching.tracing.partial import RunPartial, TracedRuns, partial_plan
from acep_approx.matching.tracing.traced import RunTrace, Traced, traced_plan
from acep_approx.planning.planner import Plan


@dataclass(frozen=True)
class Shown:
    """What tables of matches show, and what is read of events for it; rules show more than other queries.

    Attributes
    ----------
    listing : type of RunListing
        Lists the matches of runs.
    bindings : callable
        Makes the columns of what matches bind: takes what ``BindingColumns`` does.
    reads : tuple of str
        Columns that are read beside those that the query asks for.
    """

    listing: type[RunListing] = RunListing
    bindings: Callable[..., BindingColumns] = BindingColumns
    reads: tuple[str, ...] = ()


PLAIN = Shown()


@dataclass
class Parts:
    """What there is of a query before it has an engine: a row of ``WAYS`` makes an output of it.

    ``every`` is the length of EVERY, 0 where a query has none, ``spans`` has the windows of negations by variable; they
    and the window are in ticks.
    ``recent`` and ``engine_columns`` are made anew for outputs that keep events, or read values of them.
    ``may_search``: whether match points may be found backwards without a budget, too.
    """

    plan: Plan
    stream: StreamSide
    schema: pa.Schema
    window: int
    every: int
    spans: Mapping[str, int]
    preparer: Preparer
    events: BoundEvents
    stamps: Stamps
    recent: Recent
    state_cap: int
    merging: frozenset[str]
    shedding: LoadShedder | None
    shown: Shown
    may_search: bool

    def arc_logs(self) -> ArcLogs:
        """The engine that lists and counts where cells can run the query."""
        return ArcLogs(self.plan.automaton, self.window, cap=self.state_cap)

    def best(self) -> BestColumns | None:
        """The columns of match points about their best matches; None where nothing has a name."""
        query, is_raw = self.plan.query, self.stamps.is_raw
        if query.is_regex or self.plan.cel is not None:
            return None
        returns = ReturnColumns(() if is_raw else query.outputs, self.stream.roles)
        bindings = BindingColumns(self.plan.automaton, returns, self.events, is_regex=False)
        return BestColumns(bindings, is_raw=is_raw, returns=bool(query.outputs))

    def bindings(self) -> BindingColumns:
        """The columns of what matches bind.

        Raises
        ------
        DataError
            ``ACEP-D043``: a variable has the name of a key.
        """
        query, roles, is_raw = self.plan.query, self.stream.roles, self.stamps.is_raw
        returns = ReturnColumns(() if is_raw else query.outputs, roles)
        if not (returns or is_raw):  # who puts raw results out looks for himself
            self.events.check_apart(self.plan.automaton.shown, self.preparer.key_columns)
        return self.shown.bindings(self.plan.automaton, returns, self.events, is_regex=query.is_regex)


@dataclass(frozen=True)
class Way:
    """How an output is made.

    Attributes
    ----------
    make : callable
        Makes it, with its engine.
    may_grow : bool
        Whether large pieces of a batch may be run at once: not where something is kept, or planned, for each piece.
    shows : {"all", "start", "nothing"}
        What is asked of the results of a query in CEL; the start, as it tells when they leave the window.
    """

    make: Callable[[Parts], Output]
    may_grow: bool = True
    shows: Shows = "all"


@dataclass(frozen=True)
class ByRuns:
    """An output of the runs engine.

    Attributes
    ----------
    output : callable
        Makes it of the engine, a finder, stamps, recent events and, where it ``binds``, the columns of bindings.
    engine : type of Runs
    binds : {"all", "best", "nothing"}
        Whether tables show what matches bind, or something of the best match.
    lists : {"always", "late", "never"}
        Whether links are kept to list matches by; "late": where some conditions are left for complete matches, or
        something of the best match is shown.
    merges : bool
        Whether runs may be merged.
    counts_merged : bool
        Whether hits say how many runs they stand for.
    searches : {"points", "matches", "nothing"}
        Which results may be found by searching backwards, in the place of following runs.
    """

    output: Callable[..., RunOutput]
    engine: type[Runs] = Runs
    binds: Literal["all", "best", "nothing"] = "nothing"
    lists: Literal["always", "late", "never"] = "always"
    merges: bool = True
    counts_merged: bool = False
    searches: Results | Literal["nothing"] = "nothing"

    def __call__(self, parts: Parts) -> Output:
        """Make it."""
        registers = parts.plan.registers
        assert registers is not None, "runs have registers"
        bindings = parts.bindings() if self.binds == "all" else None
        best = parts.best() if self.binds == "best" else None
        shows_best = best is not None and best.needs_match
        engine = self._engine(parts, registers, shows_best=shows_best)
        machine = MachineMatches(registers, parts.stream.roles, parts.schema)
        wanted = bindings.needed if bindings is not None else parts.events.names
        if best is not None:
            wanted = (*wanted, *best.needed)
        conditions = [*registers.filters, *(c for some in registers.negations.values() for c in some)]
        named = [parts.stream.roles.column(leaf.name) for c in conditions for leaf in leaves(c.expression) if leaf.name]
        parts.recent = Recent(parts.schema, tuple(dict.fromkeys([*wanted, *named, *machine.needed])))
        verifier = Verifier(parts.stream.roles, parts.recent)
        finder = Finder(registers, engine, verifier, machine, parts.every, parts.spans)
        output: Callable[..., RunOutput] = parts.shown.listing if self.output is RunListing else self.output
        shown = [] if self.binds == "nothing" else [bindings or best]
        made = output(engine, finder, parts.stamps, parts.recent, *shown)
        made.roles = parts.stream.roles if parts.plan.cel is not None else None
        return made

    def _engine(self, parts: Parts, registers: RegisterAutomaton, *, shows_best: bool) -> Runs:
        shedding, functions = parts.shedding, parts.plan.query.functions
        if shedding is not None:
            shedding.arena.keys_now = lambda: parts.preparer.keys
            shedding.begin_stream(parts.schema, parts.stream.roles)
        lists = self.lists == "always" or (self.lists == "late" and (registers.needs_list or shows_best))
        options, finds_best = NO_OPTIONS, shows_best and not registers.needs_filter
        budgeted: dict[str, Any] = {} if shedding is None else {"shedding": shedding, "finds_best": finds_best}
        charges = shedding is not None and shedding.charges_births
        if self.counts_merged or functions or charges:
            own = {one.name: one for one in functions}
            options = RunOptions(own, counts_merged=self.counts_merged, charges_births=charges)
        return self._engine_class(parts, lists=lists)(
            registers,
            EventColumns(parts.schema, parts.stream.roles.column, parts.stream.texts),
            parts.window,
            parts.merging if self.merges else frozenset(),
            keeps_lineage=lists,
            is_count=parts.preparer.is_count,
            options=options,
            **budgeted,
        )

    def _engine_class(self, parts: Parts, *, lists: bool) -> Callable[..., Runs]:
        """Runs, or what searches for match points backwards, where it is known to pay, or may turn out to."""
        shedding = parts.shedding
        if shedding is not None:
            known = None if self.searches == "nothing" else shedding.search_for(self.searches)
            return self.engine if known is None else partial(EndSearch, known)
        may_change = parts.may_search and not parts.preparer.is_count
        # of two matches with the same start both ways may find another one
        if may_change and self.searches == "points" and not lists and parts.plan.paths:
            return partial(ExactSearch, parts.plan.paths, LATEST)
        if may_change and self.searches == "matches" and parts.plan.paths_are_all:
            return partial(ExactSearch, parts.plan.paths, ALL)
        return self.engine


def cell_listing(parts: Parts, kind: Callable[..., CellListing] = CellListing) -> CellListing:
    """Lists matches without runs; ``kind`` takes what ``CellListing`` does."""
    bindings = parts.bindings()
    parts.recent = Recent(parts.schema, bindings.needed)
    return kind(parts.arc_logs(), parts.stamps, bindings, parts.recent)


def cell_points(parts: Parts) -> CellPoints:
    """Detects; where points show something of a match, it is found as well."""
    best = parts.best()
    if best is None or not best.needs_match:
        return CellPoints(Cells(parts.plan.automaton, parts.window), parts.stamps, names_missing=best is not None)
    parts.recent = Recent(parts.schema, best.needed)
    return BestCellPoints(BestCells(parts.plan.automaton, parts.window), parts.stamps, best, parts.recent)


@dataclass(frozen=True)
class ByWalks:
    """An output of maximal matches where the cells can run the query.

    Attributes
    ----------
    output : callable
        Makes it, as for ``ByRuns``.
    binds : {"all", "best", "nothing"}
        As of ``ByRuns``.
    """

    output: Callable[..., RunOutput]
    binds: Literal["all", "best", "nothing"] = "nothing"

    def __call__(self, parts: Parts) -> Output:
        """Make it."""
        registers = parts.plan.registers_of_walks
        shown = parts.bindings() if self.binds == "all" else parts.best() if self.binds == "best" else None
        roles, conditions = parts.stream.roles, dynamic_conditions(parts.plan.query)
        named = [roles.column(leaf.name) for c in conditions for leaf in leaves(c.expression) if leaf.name]
        wanted = dict.fromkeys([*(shown.needed if shown else ()), *parts.events.names, *named])
        parts.recent = Recent(parts.schema, tuple(wanted))
        engine = MaximalCells(parts.plan.automaton, parts.window, is_count=parts.preparer.is_count)
        machine = MachineMatches(registers, roles, parts.schema)
        finder = WalkedMatches(registers, engine, Verifier(roles, parts.recent), machine, parts.every)
        return self.output(engine, finder, parts.stamps, parts.recent, *([] if self.binds == "nothing" else [shown]))


WAYS: dict[tuple[str, OutputKind], Way] = {
    ("cells", MATCHES): Way(cell_listing),
    ("cells", POINTS): Way(cell_points),
    ("cells", BARE): Way(lambda parts: CellPoints(Cells(parts.plan.automaton, parts.window), parts.stamps)),
    ("cells", COUNTS): Way(lambda parts: CellCounts(parts.arc_logs(), parts.stamps)),
    ("maximal", MATCHES): Way(ByWalks(MaximalListing, binds="all")),
    ("maximal", POINTS): Way(ByWalks(MaximalPoints, binds="best")),
    ("maximal", BARE): Way(ByWalks(MaximalPoints)),
    ("maximal", COUNTS): Way(ByWalks(MaximalCounts)),
    ("runs", MATCHES): Way(ByRuns(RunListing, binds="all", searches="matches")),
    ("runs", POINTS): Way(ByRuns(RunPoints, binds="best", lists="late", searches="points")),
    ("runs", BARE): Way(ByRuns(RunPoints, lists="late", searches="points")),
    ("runs", COUNTS): Way(ByRuns(RunCounts)),
    ("runs", PARTIAL): Way(ByRuns(RunPartial, TracedRuns, binds="all", merges=False)),
    ("runs", COMPRESSED): Way(ByRuns(RunShared, SharedRuns, binds="all"), may_grow=False),
    ("runs", TRACE): Way(ByRuns(RunTrace, Traced), may_grow=False),
    ("algebra", MATCHES): Way(ByRuns(AlgebraResults, lists="never", counts_merged=True)),
    ("algebra", POINTS): Way(ByRuns(RunPoints, lists="never"), shows="nothing"),
    ("algebra", BARE): Way(ByRuns(RunPoints, lists="never"), shows="nothing"),
    ("algebra", COUNTS): Way(ByRuns(AlgebraCounts, lists="never", counts_merged=True), shows="start"),
    ("algebra", TRACE): Way(ByRuns(RunTrace, Traced), may_grow=False),
}
"""By who runs a query (the cells, runs, or runs as the algebra of CEL) and what is asked for."""
PLANNED: Mapping[OutputKind, Callable[[Plan], Plan]] = {
    PARTIAL: partial_plan,
    COMPRESSED: compressed_plan,
    TRACE: traced_plan,
}
"""Outputs that do not take a plan as it is: by runs, and not of each query."""


def planned(plan: Plan, output: OutputKind) -> Plan:
    """The plan by which an output is made.

    Raises
    ------
    QueryError, UsageError
        There is none.
    """
    return PLANNED[output](plan) if output in PLANNED else plan


def way(plan: Plan, output: OutputKind) -> Way:
    """How an output is made by a plan that ``planned`` gave."""
    if plan.cel is not None:
        return WAYS["algebra", output]
    if plan.walks_maximal:
        return WAYS["maximal", output]
    return WAYS["cells" if plan.registers is None else "runs", output]
