"""Rules on a shared store: what patterns read of it, what their matches write, and in which order that may happen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from history.lazy import lazy

if TYPE_CHECKING:
    from acep_approx.rules.schedules.histories import Steps, anomalies, run_in_order
    from acep_approx.rules.schedules.scheduler import LowWaterMark, SingleEvent, TwoPhase
    from acep_approx.rules.schedules.transactions import (
        Item,
        Operation,
        QueryRule,
        Stamp,
        StoreAccess,
        Transaction,
        by_row,
        by_table,
        insert_locks,
    )
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "acep_approx.rules.schedules.histories": "Steps anomalies run_in_order",
            "acep_approx.rules.schedules.scheduler": "LowWaterMark SingleEvent TwoPhase",
            "acep_approx.rules.schedules.transactions": "Item Operation QueryRule Stamp StoreAccess Transaction by_row "
            "by_table insert_locks",
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
