"""Counters of shedders, as the metrics of a shard have them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from acep_approx.budget.budget import Budget
from acep_approx.engines.runs.worth import REASONS
from acep_approx.shedding.shedder import Shedder
from acep_approx.spark.worker.program import Numbers

GROWING = (
    "events", "relevant", "without_key", "steps", "on_passes", "bound", "points", "audited", "kept", "shed", "spent",
)  # fmt: skip
"""Counters that tell what happened since they were read last; the others tell how it is now."""


def counters_of(shedders: Iterable[Shedder], budget: Budget) -> Numbers:
    """Where the counters of engines stand that shed inside one budget, added up.

    ``budget`` is that of all of them. Of prices and versions it is the largest.
    """
    found: Numbers = {"shed": np.zeros(len(REASONS), np.int64), "price": 0.0, "version": 0}
    found |= dict.fromkeys(("on_passes", "bound", "left", "points", "audited", "kept", "spent"), 0)
    is_timed = budget.unit == "ms/batch"
    for shedder in shedders:
        sample, arena = shedder.audited(), shedder.arena
        found["shed"] = found["shed"] + arena.counts.sum(axis=0)
        found["on_passes"] += arena.on_passes + shedder.beside.steps
        found["bound"] += shedder.granted + shedder.beside.quota
        found["left"] += max(arena.left, 0.0) if is_timed else 0.0  # of a batch, after which it is gone
        found["points"] += len(shedder.metrics.points)
        found["audited"] += int(sample.points.sum()) if sample else 0
        found["kept"] += int(sample.found.sum()) if sample else 0
        found["price"], found["version"] = max(found["price"], arena.price), max(found["version"], shedder.version)
        found["spent"] += shedder.seconds
    return found | {"granted": budget.amount / 1e3 if is_timed else 0.0}


def between(before: Numbers, now: Numbers) -> Numbers:
    """What happened between two readings, as ``ShardMetrics`` has it."""
    found = now | {name: now[name] - before[name] for name in GROWING if name in now}
    if "shed" not in now:
        return found
    found["steps"] += round(found.pop("on_passes"))  # over runs, and on the cohort beside them
    left = found.pop("left")
    found["bound"] = found["steps"] + round(left) if left or before["left"] else round(found["bound"])
    return found | {"shed": tuple(found["shed"].tolist())}
