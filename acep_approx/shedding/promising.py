"""What a history promises for runs inside budgets: they are run as users run them, over events it has not learned from.

The same load shedder with the same bound, reserve and audit, over the same events gives the same match points.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.budget.budget import Budget
from acep_approx.engines.engine import NO_WORDS
from acep_approx.engines.runs.load_shedder import LoadShedder
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.kinds import MATCHES, POINTS, OutputKind
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import Shedder
from acep_approx.shedding.ways import Ways
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
    are_alike = known.search_ is None and len({steps for _, steps in exact.values()}) == 1
    for output, share in asked:
        is_known = are_alike and len(runs) >= len(SHARES)
        runs.append(runs[-len(SHARES)] if is_known else _inside(known, part, share, output))
    found = np.array([truth.found(rows) for rows, _ in runs])
    promises = [
        Promise(share, output, steps / max(part.events, 1), float(is_found.sum()) / max(len(truth), 1), *ends)
        for (output, share), (_, steps), is_found, ends in zip(asked, runs, found, intervals(found, truth), strict=True)
    ]
    per_event = tuple(steps / max(part.events, 1) for _, steps in exact.values())
    return Promises(part.trained, part.events, len(truth), per_event, tuple(promises))


def exact_run(part: Part, output: str) -> tuple[Truth, int]:
    """The exact run of an output over a part: its match points, and the run-steps that shares are shares of."""
    matcher = _bound(part, output)
    tables = [*_tables(part, matcher)]
    assert matcher.pipeline is not None, "it is bound"
    return Truth.of(tables, matcher.pipeline.window, part.events), matcher.progress.steps


def _inside(known: HistoryGraph, part: Part, share: float, output: str) -> tuple[Ints, int]:
    """Rows of the match points that a run inside a budget finds, and its run-steps, with passes and audit."""
    load, is_points = Load(Budget(100 * share, "%"), known), output == "points"
    lists = not is_points and Ways.of(load, part.plan, "matches") is not None
    made = Shedder(part.plan, load, audits_beside=True, may_search=is_points or lists)
    matcher = _bound(part, output, made, MATCHES if lists else POINTS)
    rows = [NO_WORDS]
    for table in _tables(part, matcher):
        rows += [] if lists else [table["row"].to_numpy()]
    made.finish()  # what the audit does at the end
    found = made.metrics.points.row if lists else np.concatenate(rows)
    return found, matcher.progress.steps + int(made.arena.on_passes) + (made.audit_work or 0)


def _bound(part: Part, output: str, shedding: LoadShedder | None = None, shows: OutputKind = POINTS) -> Execution:
    """An execution for the columns of a part; where runs are followed, match points stand for matches."""
    matcher = Execution(part.plan, output=shows, merge=MERGES[output], shedding=shedding)
    part.bind(matcher)
    return matcher


def _tables(part: Part, matcher: Execution) -> Iterator[pa.Table]:
    """What is found in a part."""
    for batch in part.batches:
        yield from matcher.run(batch)
    yield matcher.finish()
