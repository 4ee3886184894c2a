"""A rule on its way through a batch: its query in a pipeline that shows for each match what its actions need.

A rule of a circle has cells beside, which a kernel of several rules detects with: its pipeline lists what that finds.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Ints
from acep_approx.automaton.automaton import Automaton
from acep_approx.engines.cells.arclogs import ArcLogs
from acep_approx.engines.cells.cells import Cells
from acep_approx.engines.columns import Listed
from acep_approx.engines.runs.load_shedder import LoadShedder
from acep_approx.events.columns import to_arrow
from acep_approx.events.roles import Roles
from acep_approx.matching.choice import Parts, Shown, Way, cell_listing
from acep_approx.matching.outputs.bind import Bind, BoundEvents, bound_where_shown
from acep_approx.matching.outputs.kinds import BARE, MATCHES
from acep_approx.matching.outputs.matches import CompletedMatches
from acep_approx.matching.outputs.of_cells import CellListing, CellPoints
from acep_approx.matching.outputs.of_runs import RunListing
from acep_approx.matching.outputs.output import Output, Stamps
from acep_approx.matching.outputs.recent import Recent
from acep_approx.matching.outputs.returns import ReturnColumns
from acep_approx.matching.outputs.tables import NO_REGISTERS, BindingColumns
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.matching.stream_side import StreamSide
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Attribute, ReturnItem
from acep_approx.rules.compiled import HIDDEN, CompiledRule

KNOWN = 3 * HIDDEN + "known"
"""The column that says when a match became known: in windows of events a row, else a tick; or ``AT_ONCE``."""
AT_ONCE = -(2**62)
"""It did not wait: where clauses go by the order, only those wait that a negation at the end may still exclude."""


class KnownMatches(RunListing):
    """Lists matches with the moment at which each became known."""

    def _table(self, found: CompletedMatches, known: Ints) -> pa.Table:
        return super()._table(found, known).append_column(KNOWN, to_arrow(known))

    def _waited_table(self, found: CompletedMatches, known: Ints, waited: Bools) -> pa.Table:
        return self._table(found, np.where(waited, known, AT_ONCE))


def rule_pipeline(
    stream: StreamSide,
    rule: CompiledRule,
    bind: Bind = None,
    made_by: Way | None = None,
    shedding: LoadShedder | None = None,
) -> Pipeline:
    """Return the query of a rule on its stream, with hidden columns beside its results.

    Where matches are listed these are ``" a"`` for a variable ``a``, the rows of its events; ``"  0"``, ``"  1"`` and
    so on for the leaves of the actions; and ``KNOWN`` where a negation at the end makes them wait. Where only match
    points are wanted the events of the batch have all that.

    Parameters
    ----------
    stream : StreamSide
    rule : CompiledRule
    bind : str, sequence of str or Wide, optional
        What stands for events in the matches that are listed.
    made_by, shedding : optional
        As for ``Pipeline``.
    """
    shown = Shown(
        KnownMatches if rule.is_late else RunListing,
        partial(RuleColumns, hidden=rule.hidden, roles=stream.roles),
        tuple(stream.roles.column(leaf.name) for leaf in rule.leaves if leaf.name is not None),
    )
    bound = bound_where_shown(bind, rule.plan.query) if rule.lists else ()
    kind = MATCHES if rule.lists else BARE
    return Pipeline(stream, rule.plan, kind, shedding=shedding, bind=bound, shown=shown, made_by=made_by)


class RuleColumns(BindingColumns):
    """The columns of matches, with those that the actions need.

    Parameters
    ----------
    automaton, returns, events, is_regex
        As for ``BindingColumns``.
    hidden : tuple of ReturnItem
        What else is computed of the events of each match.
    roles : Roles
    """

    def __init__(
        self,
        automaton: Automaton,
        returns: ReturnColumns,
        events: BoundEvents,
        *,
        is_regex: bool,
        hidden: tuple[ReturnItem, ...],
        roles: Roles,
    ) -> None:
        super().__init__(automaton, returns, events, is_regex=is_regex)
        self._hidden = ReturnColumns(hidden, roles, as_computed=True)

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns of the events that are asked for."""
        return tuple(dict.fromkeys((*super().needed, *self._hidden.needed)))

    def shown(
        self, listed: Listed, recent: Recent, registers: Mapping[str, pa.Array] = NO_REGISTERS
    ) -> dict[str, pa.Array]:
        """What users see, and what they do not."""
        bound = self.columns(listed)
        shown = super().shown(listed, recent, registers)
        rows = {HIDDEN + name: column for name, column in bound.items()}
        return {**shown, **rows, **self._hidden.columns(bound, recent, registers, len(listed))}


# --- rules of a circle that a kernel runs ------------------------------------------------------------------------


class DetectedListing(CellListing):
    """Lists the matches of what has been detected by cells, which stand beside the engine."""

    def __init__(
        self, cells: Cells, engine: ArcLogs, stamps: Stamps, bindings: BindingColumns, recent: Recent
    ) -> None:
        super().__init__(engine, stamps, bindings, recent)
        self._cells = cells

    def newest(self) -> Ints:
        """Per key slot the latest start of any run, in the engine and in the cells."""
        listed, detected = self.engine.newest(), self._cells.newest()
        both = min(len(listed), len(detected))
        return np.maximum(listed[:both], detected[:both])

    def clear(self, slots: Ints) -> None:
        """Forget the runs of some key slots."""
        super().clear(slots)
        self._cells.clear(slots)

    def arrays(self) -> dict[str, Ints]:
        """The state of what is not in the engine, as arrays."""
        return super().arrays() | self._cells.arrays(np.zeros(0, np.int64))

    def restore(self, arrays: dict[str, Ints]) -> None:
        """Take over a state."""
        super().restore(arrays)
        cells = self._cells
        cells.restore({"slots": arrays["cells"].size // cells.stride}, arrays, self.stamps.preparer.classes)


class KernelRule:
    """A rule whose events are classified, and run through its cells, by a kernel of several rules.

    Parameters
    ----------
    stream : StreamSide
    rule : CompiledRule
    bind : str, sequence of str or Wide, optional

    Attributes
    ----------
    pipeline : Pipeline
        Lists its matches.
    lists : bool
        Whether matches are listed; else what the kernel finds is all that is asked.
    cells : Cells
        Where the rule stands; the engine of the pipeline, where nothing is listed.
    points : CellPoints
        Puts what the kernel finds into tables then.
    """

    def __init__(self, stream: StreamSide, rule: CompiledRule, bind: Bind = None) -> None:
        self.rule = rule
        self.lists = rule.lists
        self.pipeline = rule_pipeline(stream, rule, bind, Way(self._output))

    def _output(self, parts: Parts) -> Output:
        self.cells = Cells(parts.plan.automaton, parts.window)
        self.points = CellPoints(self.cells, parts.stamps)
        if not self.lists:
            return self.points
        self.cells.set_classes(parts.preparer.classes)
        self.cells.reserve(max(parts.preparer.key_slots.slots, 1))
        return cell_listing(parts, partial(DetectedListing, self.cells))

    def take_keys(self, batch: StreamBatch) -> None:
        """Learn the keys of a batch, and make room for them."""
        pipeline = self.pipeline
        pipeline.preparer.read_keys(batch)
        pipeline.engine.reserve(pipeline.key_slots.slots)
        self.cells.reserve(pipeline.key_slots.slots)

    def take_classes(self) -> None:
        """Take notice of classes that were found."""
        classes = self.pipeline.preparer.classes
        if len(self.cells.classes) < len(classes):
            self.cells.set_classes(classes)
            if self.lists:
                self.pipeline.engine.set_classes(classes)

    def run_classes(self, batch: StreamBatch, classes: Ints) -> list[pa.Table]:
        """List the matches of a batch whose events have these classes."""
        pipeline = self.pipeline
        if not pipeline.preparer.is_count and not classes.any():
            pipeline.progress.events += len(batch)
            return []
        batch.computed.classes[pipeline.preparer] = classes
        return [*pipeline.run(batch)]


def shown_by(rule: CompiledRule) -> set[str]:
    """The attributes of events that the results of a rule show."""
    nodes = (node for output in rule.plan.query.outputs for node in walk(output.value))
    return {node.name for node in nodes if isinstance(node, Attribute)}
