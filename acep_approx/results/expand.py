"""All matches at the match points that a budgeted run found: the regions before them are matched again, exactly.

Under a budget one run stands for others that lead to the same match points, so few of the matches of each are listed.
Source: approximate proxy match, Li and Ge, PVLDB 2016, section 3.3; a reconstruction (docs/paper.md). Definition 3 says
that a found region is enumerated afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.events.stream import EventBatch
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.tables import joined
from acep_approx.matching.renumber import renumbered, row_columns
from history.coverage.proxy import regions


def expanded(
    matcher: Execution, batches: Iterable[EventBatch], ticks: Ints, window: int, original: Callable[[Ints], Ints]
) -> pa.Table:
    """Every match that ends at one of some times.

    Parameters
    ----------
    matcher : Execution
        Exact, with the output "matches", bound to the columns of the events and used for nothing else.
    batches : iterable of EventBatch
        The events, once more.
    ticks : int64 array
        Times of the match points that were found.
    window : int
        In ticks.
    original : callable
        Gives the row of the input of a row of the stream.

    Complexity: an exact run over the events at most a window before a match point (and a window after it, where a
    negation at the end must be waited for).
    """
    assert matcher.pipeline is not None
    assert matcher.plan.registers is not None
    _, first, last = regions(ticks, window)
    last = last + window * matcher.plan.registers.has_late_ends
    tables, rows, seen = [matcher.pipeline.nothing()], [np.zeros(0, np.int64)], 0
    for batch in batches:
        region = np.searchsorted(first, batch.ticks, side="right") - 1
        inside = (
            np.flatnonzero((region >= 0) & (batch.ticks <= last[np.maximum(region, 0)])) if len(first) else region[:0]
        )
        if len(inside):
            rows.append(batch.first_row + inside)
            tables += matcher.run(EventBatch(seen, batch.ticks[inside], batch.data.take(pa.array(inside))))
            seen += len(inside)
    found = joined([*tables, *matcher.pipeline.finish()], matcher.pipeline.nothing().schema)
    wanted = pa.array(np.unique(ticks))
    found = found.filter(pc.is_in(found["end"].combine_chunks().cast(pa.int64()), wanted))
    stream = np.concatenate(rows)
    return renumbered(found, row_columns(matcher.plan, "matches"), lambda some: original(stream[some]))
