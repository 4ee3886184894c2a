"""Counters of shedders, as the metrics of a shard have them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from acep_approx.budget.budget import Budget
from acep_approx.engines.runs.worth import REASONS
from acep_approx.shedding.purse import Purse
from acep_approx.shedding.shedder import Shedder
from acep_approx.spark.worker.audited import ENDS, GROUPS, audit_so_far
from acep_approx.spark.worker.program import Numbers

GROWING = (
    "events", "relevant", "without_key", "steps", "on_passes", "bound", "points", "audited", "kept", "shed", "spent",
    "audited_in", "kept_in", "cells", "squares", "given_up", "ends",
)  # fmt: skip
"""Counters that tell what happened since they were read last; the others tell how it is now."""


def counters_of(shedders: Iterable[Shedder], budget: Budget) -> Numbers:
    """Where the counters of engines stand that shed inside one budget, added up.

    ``budget`` is that of all of them. Of prices, versions and ways to audit it is the largest.
    """
    is_timed = budget.unit == "ms/batch"
    found = dict(_NONE)
    for shedder in shedders:
        arena = shedder.arena
        one = audit_so_far(shedder) | {
            "shed": arena.counts.sum(axis=0),
            "on_passes": arena.on_passes + (shedder.audit_work or 0),
            "bound": shedder.granted + shedder.audit_granted,
            "left": max(arena.left, 0.0) if is_timed else 0.0,  # of a batch, after which it is gone
            "points": shedder.metrics.found,
            "price": arena.price,
            "version": shedder.version,
            "spent": shedder.seconds,
        }
        found = {name: max(found[name], one[name]) if name in LARGEST else found[name] + one[name] for name in found}
    return found | {"granted": budget.amount / 1e3 if is_timed else 0.0}


def counters_together(events: int, purse: Purse | None) -> Numbers:
    """Where the counters of many queries, or of rules, stand that have seen so many events and share a budget, or none.

    Which events matter to some of them is not counted.
    """
    found: Numbers = {"events": events, "relevant": events, "without_key": 0, "steps": 0, "live": 0}
    if purse is None:
        return found
    piece = purse.piece()
    found |= {"steps": piece.work, "live": piece.live}
    return found | counters_of(purse.accounts, purse.load.budget) | {"on_passes": 0}


LARGEST = ("price", "version", "audit")
_NONE: Numbers = {
    **dict.fromkeys(("on_passes", "bound", "left", "points", "price", "version", "spent", "audit"), 0),
    **dict.fromkeys(("audited", "kept", "cells", "squares", "given_up"), 0),
    "shed": np.zeros(len(REASONS), np.int64),
    "audited_in": np.zeros(GROUPS, np.int64),
    "kept_in": np.zeros(GROUPS, np.int64),
    "ends": np.zeros(ENDS, np.float64),
}


def between(before: Numbers, now: Numbers) -> Numbers:
    """What happened between two readings, as ``ShardMetrics`` has it."""
    found = now | {name: now[name] - before[name] for name in GROWING if name in now}
    if "shed" not in now:
        return found
    found["steps"] += round(found.pop("on_passes"))  # over runs, and on the cohort beside them
    left = found.pop("left")
    found["bound"] = found["steps"] + round(left) if left or before["left"] else round(found["bound"])
    return {name: tuple(value.tolist()) if isinstance(value, np.ndarray) else value for name, value in found.items()}
