"""What a history promises for runs inside budgets: they are run as users run them, over events it has not learned from.

The same load shedder with the same bound, reserve and audit, over the same events gives the same match points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from acep_approx.arrays import Ints
from acep_approx.budget.budget import Budget
from acep_approx.engines.runs.load_shedder import LoadShedder
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.worth import Allowance
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.kinds import POINTS
from acep_approx.planning.planner import MERGING
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import Shedder
from acep_approx.training.pricing import MERGE, Noting
from acep_approx.training.promise import OUTPUTS, SHARES, STRETCHES, Part, Promise, Promises, intervals

if TYPE_CHECKING:
    from acep_approx.training.history_graph import HistoryGraph

MERGES = dict(zip(OUTPUTS, (MERGE, ",".join(MERGING)), strict=True))
"""Merging that is lossless for each output: where matches are listed, runs that others dominate have matches too."""


@dataclass(frozen=True)
class ExactRun:
    """The exact run of one output over a part of a past: what shares of the work are shares of.

    Attributes
    ----------
    steps : int
        Run-steps.
    rows, cells : int64 arrays, shape (points,)
        Rows of the match points, in order, and the cell of each; see ``pricing.PricePoint``.
    """

    steps: int
    rows: Ints
    cells: Ints


def promised(known: HistoryGraph, part: Part) -> Promises:
    """Run inside each budget over the end of the past, and hold what was found against the exact run.

    Parameters
    ----------
    known : HistoryGraph
        What was learned from the events before.
    part : Part

    Returns
    -------
    Promises
        Complexity: an exact run over the part for each output, and one run inside each budget.
    """
    exact = {output: exact_run(part, output) for output in OUTPUTS}
    asked = [(output, share) for output in OUTPUTS for share in SHARES]
    runs = [_inside(known, part, share, output) for output, share in asked]
    of = exact[OUTPUTS[0]]
    found = np.array([np.isin(of.rows, rows) for rows, _ in runs])
    ends = intervals(found, of.cells, (of.rows - part.first_row) * STRETCHES // max(part.events, 1))
    promises = [
        Promise(share, output, steps / max(part.events, 1), float(is_found.sum()) / max(len(of.rows), 1), *interval)
        for (output, share), (_, steps), is_found, interval in zip(asked, runs, found, ends, strict=True)
    ]
    per_event = tuple(run.steps / max(part.events, 1) for run in exact.values())
    return Promises(part.trained, part.events, len(of.rows), per_event, tuple(promises))


def exact_run(part: Part, output: str) -> ExactRun:
    """The exact run of an output over a part."""
    noting = Noting(Shedding(None, Allowance()))
    rows, matcher = _rows(part, output, noting)
    assert matcher.pipeline is not None, "it is bound"
    _, noted, cells = noting.found(matcher.pipeline.window)
    return ExactRun(matcher.progress.steps, rows, cells[np.isin(noted, rows)])  # conditions on matches drop some


def _inside(known: HistoryGraph, part: Part, share: float, output: str) -> tuple[Ints, int]:
    """Rows of the match points that a run inside a budget finds, and its run-steps, with passes and audit."""
    made = Shedder(part.plan, Load(Budget(100 * share, "%"), known), audits_beside=True)
    rows, matcher = _rows(part, output, made)
    return rows, matcher.progress.steps + int(made.arena.on_passes) + (made.audit_work or 0)


def _rows(part: Part, output: str, shedding: LoadShedder) -> tuple[Ints, Execution]:
    """Rows of the match points that a run finds, in order."""
    matcher = Execution(part.plan, output=POINTS, merge=MERGES[output], shedding=shedding)
    part.bind(matcher)
    found = [np.zeros(0, np.int64)]
    for batch in part.batches:
        found += [table["row"].to_numpy() for table in matcher.run(batch)]
    found.append(matcher.finish()["row"].to_numpy())
    return np.unique(np.concatenate(found)), matcher
