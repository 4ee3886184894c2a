"""Rules on a shared store: what patterns read of it, what their matches write, and in which order that may happen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from history.lazy import lazy

if TYPE_CHECKING:
    from acep_approx.rules.schedules.definition6 import anomalies
    from acep_approx.rules.schedules.locks import QueryRule, StoreAccess, by_row, by_table, insert_locks
    from acep_approx.rules.schedules.protocols import LowWaterMark, SingleEvent, TwoPhase
    from acep_approx.rules.schedules.steps import Steps, run_in_order
    from acep_approx.rules.schedules.transactions import Item, Operation, Stamp, Transaction
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "acep_approx.rules.schedules.definition6": "anomalies",
            "acep_approx.rules.schedules.locks": "QueryRule StoreAccess by_row by_table insert_locks",
            "acep_approx.rules.schedules.protocols": "LowWaterMark SingleEvent TwoPhase",
            "acep_approx.rules.schedules.steps": "Steps run_in_order",
            "acep_approx.rules.schedules.transactions": "Item Operation Stamp Transaction",
        },
    )

__all__ = [
    "Item",
    "LowWaterMark",
    "Operation",
    "QueryRule",
    "SingleEvent",
    "Stamp",
    "Steps",
    "StoreAccess",
    "Transaction",
    "TwoPhase",
    "anomalies",
    "by_row",
    "by_table",
    "insert_locks",
    "run_in_order",
]
