"""The options of ``spark()``, which queries, sets and rules share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from acep_approx.budget.budget import Budget, refuse_without
from acep_approx.events.reading.malformed import MalformedRows
from acep_approx.matching.outputs.bind import Bind, Wide
from acep_approx.planning.durations import Duration
from acep_approx.spark.plan.matcher import SparkMatcher
from acep_approx.spark.worker.program import Program, Turn
from acep_approx.spark.worker.spending import Spending
from history.places import place_of


def spark_matcher(
    program: Program,
    roles: dict[str, Any],
    *,
    id: str | None = None,  # noqa: A002  (what users call it)
    bind: Bind = None,
    shards: int | None = None,
    watermark: Duration | None = None,
    on_malformed: str = "refuse",
    **spending: Any,
) -> SparkMatcher:
    """What finds the matches of a program on Spark; all options are those of ``Query.spark``.

    Raises
    ------
    UsageError
        Not a budget; ``ACEP-U040``: how a budget is spent, where there is none.
    """
    return SparkMatcher(
        program,
        roles,
        id=id,
        bind=bind if bind is None or isinstance(bind, str | Wide) else tuple(bind),
        shards=shards,
        watermark=watermark,
        spending=_spending(**spending),
        skips=MalformedRows(on_malformed).policy == "skip",
    )


def _spending(
    *,
    budget: str | float | Budget | None = None,
    history: str | Path | None = None,
    learn: bool = False,
    policy: str | None = None,
    audit: float = 0.05,
    seed: int = 0,
    full_work: float | None = None,
) -> Spending | None:
    if budget is None:
        given = {"history": history, "policy": policy, "full_work": full_work, "learn": learn or None}
        refuse_without({name: value for name, value in given.items() if value is not None})
        return None
    where = None if history is None else str(place_of(history).absolute())
    how: dict[str, Any] = {"policy": policy, "audit": audit, "seed": seed, "full_work": full_work, "learns": learn}
    return Spending(Budget.parse(budget), where, **how)


def spending_in(spending: Spending, turn: Turn, shards: int = 1, parts: int = 1) -> dict[str, Any]:
    """The part of a budget that a shard has, as the arguments of a run here.

    What the exact run of the whole job takes is taken for the same in each of its parts, if nobody knows more.
    """
    is_there = spending.history is not None and not (spending.learns and not place_of(spending.history).exists())
    return {
        "budget": turn.part_of(spending, shards),
        "history": spending.history if is_there else None,
        "policy": spending.policy,
        "audit": spending.audit,
        "seed": spending.seed + turn.shard,
        "full_work": None if spending.full_work is None else spending.full_work / parts,
        "learn": spending.learns,
    }
