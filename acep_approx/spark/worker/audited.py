"""What a shard has seen of its recall, as sums: Spark adds them up over shards and micro-batches.

The cells of an audit are put into groups by their ids, so that a cell has the same group in all micro-batches. Groups
are a sample of clusters as cells are, with fewer degrees of freedom (the delete-a-group jackknife; Kott, Journal of
Official Statistics 2001). What is known of ends of matches are sums by themselves (``EndSample``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from acep_approx.budget.audit import AuditSample
from acep_approx.budget.evidence import EndSample

if TYPE_CHECKING:
    from acep_approx.shedding.shedder import Shedder

GROUPS = 32
"""Groups of cells; an interval by so many is 4% wider than by any number of cells."""
ENDS = len(vars(EndSample()))
CELLS, NO_ENDS, BY_ENDS, BY_SEARCH = 1, 2, 3, 4
"""How a shard is audited: cells in its runs; beside them, where ends cannot be tried, or where they can; as it searches
ends. 0: not at all."""


def audit_so_far(shedder: Shedder) -> dict[str, Any]:
    """Return the sums since a shedder was made, or since the stream began: two readings tell what came in between.

    Returns
    -------
    dict
        Numbers and arrays, as ``ShardMetrics`` has them: ``audited`` and ``kept`` match points, in all and by group of
        cells; ``cells`` with any, and the ``squares`` of their match points; cells ``given_up``; ``ends`` as the fields
        of ``EndSample``; ``audit``: how.
    """
    exact, cohort = shedder.exact_audit, shedder.beside.cohort
    sample = exact.cells.sample if exact is not None else shedder.audited() or AuditSample.none()
    ends = exact.sample if exact is not None else None
    how = 0 if shedder.cells is None and cohort is None else CELLS
    if exact is not None:
        how = NO_ENDS if ends is None else BY_SEARCH if shedder.has_searched else BY_ENDS
    given_up = exact.cells.lost if exact is not None else cohort.given_up if cohort is not None else 0
    group = sample.cells % GROUPS
    return {
        "audited": int(sample.points.sum()),
        "kept": int(sample.found.sum()),
        "audited_in": np.bincount(group, sample.points, GROUPS).astype(np.int64),
        "kept_in": np.bincount(group, sample.found, GROUPS).astype(np.int64),
        "cells": len(sample.cells),
        "squares": int(sample.points @ sample.points),
        "given_up": given_up,
        "ends": np.array([*vars(ends or EndSample()).values()], np.float64),
        "audit": how,
    }
