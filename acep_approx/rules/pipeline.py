"""A rule on its way through a batch: its query in a pipeline that shows for each match what its actions need."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Ints
from acep_approx.automaton.automaton import Automaton
from acep_approx.engines.columns import Listed
from acep_approx.events.columns import to_arrow
from acep_approx.events.roles import Roles
from acep_approx.matching.choice import Shown, Way
from acep_approx.matching.outputs.bind import BoundEvents
from acep_approx.matching.outputs.completed import CompletedMatches
from acep_approx.matching.outputs.of_runs import RunListing
from acep_approx.matching.outputs.recent import Recent
from acep_approx.matching.outputs.returns import ReturnColumns
from acep_approx.matching.outputs.tables import NO_REGISTERS, BindingColumns
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.stream_side import StreamSide
from acep_approx.query.syntax import ReturnItem
from acep_approx.rules.compiled import HIDDEN, CompiledRule

KNOWN = 3 * HIDDEN + "known"
"""The column that says when a match became known: in windows of events a row, else a tick; or ``AT_ONCE``."""
AT_ONCE = -(2**62)
"""It did not wait: where no two may overlap only those wait that a negation at the end may still exclude."""


class KnownMatches(RunListing):
    """Lists matches with the moment at which each became known."""

    def _table(self, found: CompletedMatches, known: Ints) -> pa.Table:
        return super()._table(found, known).append_column(KNOWN, to_arrow(known))

    def _waited_table(self, found: CompletedMatches, known: Ints, waited: Bools) -> pa.Table:
        return self._table(found, np.where(waited, known, AT_ONCE))


def rule_pipeline(stream: StreamSide, rule: CompiledRule, made_by: Way | None = None) -> Pipeline:
    """Return the query of a rule on its stream, with hidden columns beside its results.

    Where matches are listed these are ``" a"`` for a variable ``a``, the rows of its events; ``"  0"``, ``"  1"`` and
    so on for the leaves of the actions; and ``KNOWN`` where a negation at the end makes them wait. Where only match
    points are wanted the events of the batch have all that.

    Parameters
    ----------
    stream : StreamSide
    rule : CompiledRule
    made_by : Way, optional
        As for ``Pipeline``.
    """
    shown = Shown(
        KnownMatches if rule.is_late else RunListing,
        partial(RuleColumns, hidden=rule.hidden, roles=stream.roles),
        tuple(stream.roles.column(leaf.name) for leaf in rule.leaves if leaf.name is not None),
    )
    return Pipeline(stream, rule.plan, "matches" if rule.lists else "points", shown=shown, made_by=made_by)


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
