"""The metrics of a shard: what happened in a micro-batch, in numbers that can be added up over shards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from acep_approx.engines.progress import RunProgress
from acep_approx.engines.runs.worth import REASONS
from acep_approx.matching.execution import Execution
from acep_approx.shedding.shedder import Shedder

Numbers = dict[str, Any]


@dataclass(frozen=True)
class ShardMetrics:
    """What happened in a shard during one micro-batch.

    ``events`` matched, of them ``relevant`` to a letter and ``without_key``; ``late`` and ``malformed`` (no time) ones
    left out; ``waiting`` for the watermark. ``matches`` are rows put out, ``points`` match points inside a budget.
    ``steps`` run-steps of the ``bound`` that was granted; ``live`` runs; ``shed`` runs by reason, in the order of
    ``engines.runs.worth.REASONS``; ``price`` from which on runs are kept, ``weight`` of the
    shard in the budget; ``audited`` match points of the protected cohort and
    those of them that were found without protection (``kept``); ``version`` of the history, 0 without; ``seconds``
    that the step took, those of it that runs were matched (``spent``), and what a budget ``granted`` of these.
    """

    events: int = 0
    relevant: int = 0
    matches: int = 0
    points: int = 0
    late: int = 0
    malformed: int = 0
    without_key: int = 0
    waiting: int = 0
    steps: int = 0
    bound: int = 0
    live: int = 0
    audited: int = 0
    kept: int = 0
    version: int = 0
    shed: tuple[int, ...] = (0,) * len(REASONS)
    price: float = 0.0
    weight: float = 1.0
    seconds: float = 0.0
    spent: float = 0.0
    granted: float = 0.0


@dataclass(frozen=True)
class Counters:
    """Where the counters of a matcher stand: two of them tell what happened in between.

    ``granted`` run-steps, those ``left`` of a batch, after which they are gone (of other budgets 0), and those
    ``on_passes`` over runs and on the cohort beside it; ``points``, and those ``audited`` and ``kept``, since the
    shedder was made; the others are of the whole stream.
    """

    progress: RunProgress
    shed: tuple[int, ...] = (0,) * len(REASONS)
    on_passes: float = 0.0
    granted: float = 0.0
    left: float = 0.0
    points: int = 0
    audited: int = 0
    kept: int = 0
    price: float = 0.0
    version: int = 0
    spent: float = 0.0
    granted_seconds: float = 0.0

    @classmethod
    def of(cls, matcher: Execution) -> Self:
        """How they stand now."""
        progress, shedder = RunProgress(**vars(matcher.progress)), matcher.shedding
        if not isinstance(shedder, Shedder):
            return cls(progress)
        sample, arena = shedder.audited(), shedder.arena
        return cls(
            progress,
            tuple(arena.counts.sum(axis=0).tolist()),
            arena.on_passes + shedder.beside.steps,
            shedder.granted + shedder.beside.quota,
            max(arena.left, 0.0) if shedder.load.budget.unit == "ms/batch" else 0.0,
            len(shedder.metrics.points),
            int(sample.points.sum()) if sample else 0,
            int(sample.found.sum()) if sample else 0,
            arena.price,
            shedder.version,
            shedder.seconds,
            shedder.load.budget.amount / 1e3 if shedder.load.budget.unit == "ms/batch" else 0.0,
        )

    def since(self, before: Counters) -> Numbers:
        """What happened since another reading, as ``ShardMetrics`` has it."""
        now, then = self.progress, before.progress
        steps = now.steps - then.steps + round(self.on_passes - before.on_passes)
        return {
            "events": now.events - then.events,
            "relevant": now.relevant - then.relevant,
            "without_key": now.without_key - then.without_key,
            "points": self.points - before.points,
            "steps": steps,
            "bound": steps + round(self.left) if self.left or before.left else round(self.granted - before.granted),
            "live": now.live,
            "audited": self.audited - before.audited,
            "kept": self.kept - before.kept,
            "version": self.version,
            "shed": tuple(a - b for a, b in zip(self.shed, before.shed, strict=True)),
            "price": self.price,
            "spent": self.spent - before.spent,
            "granted": self.granted_seconds,
        }
