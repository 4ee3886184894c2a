"""What a history promises for runs inside budgets: they are run as users run them, over events it has not learned from.

The same load shedder with the same bound, reserve and audit, over the same events gives the same match points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.budget.budget import Budget
from acep_approx.engines.runs.load_shedder import LoadShedder
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.kinds import POINTS
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import Shedder
from acep_approx.training.pricing import LISTED, POINTED
from acep_approx.training.promise import OUTPUTS, SHARES, Part, Promise, Promises, Truth, intervals

if TYPE_CHECKING:
    from acep_approx.training.history_graph import HistoryGraph

MERGES = dict(zip(OUTPUTS, (LISTED, POINTED), strict=True))
"""Merging that is lossless for each output."""


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
    truth, _ = exact[OUTPUTS[0]]
    asked = [(output, share) for output in OUTPUTS for share in SHARES]
    runs: list[tuple[Ints, int]] = []
    for output, share in asked:
        is_alike = len(runs) >= len(SHARES) and len({steps for _, steps in exact.values()}) == 1
        runs.append(runs[-len(SHARES)] if is_alike else _inside(known, part, share, output))
    found = np.array([truth.found(rows) for rows, _ in runs])
    promises = [
        Promise(share, output, steps / max(part.events, 1), float(is_found.sum()) / max(len(truth), 1), *ends)
        for (output, share), (_, steps), is_found, ends in zip(asked, runs, found, intervals(found, truth), strict=True)
    ]
    per_event = tuple(steps / max(part.events, 1) for _, steps in exact.values())
    return Promises(part.trained, part.events, len(truth), per_event, tuple(promises))


def exact_run(part: Part, output: str) -> tuple[Truth, int]:
    """The exact run of an output over a part: its match points, and the run-steps that shares are shares of."""
    matcher, tables = _run(part, output)
    assert matcher.pipeline is not None, "it is bound"
    return Truth.of(tables, matcher.pipeline.window, part.events), matcher.progress.steps


def _inside(known: HistoryGraph, part: Part, share: float, output: str) -> tuple[Ints, int]:
    """Rows of the match points that a run inside a budget finds, and its run-steps, with passes and audit."""
    load, is_points = Load(Budget(100 * share, "%"), known), output == "points"
    made = Shedder(part.plan, load, audits_beside=True, may_search=is_points)
    matcher, tables = _run(part, output, made)
    made.finish()  # what the audit does at the end
    rows = np.concatenate([table["row"].to_numpy() for table in tables])
    return rows, matcher.progress.steps + int(made.arena.on_passes) + (made.audit_work or 0)


def _run(part: Part, output: str, shedding: LoadShedder | None = None) -> tuple[Execution, list[pa.Table]]:
    """A run over a part, and the match points that it finds."""
    matcher = Execution(part.plan, output=POINTS, merge=MERGES[output], shedding=shedding)
    part.bind(matcher)
    tables = [table for batch in part.batches for table in matcher.run(batch)]
    return matcher, [*tables, matcher.finish()]
