"""Schedules whose ids are used again and again: what a schedule says, with few ids for many events. Tests only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from acep_approx import compile_query
from acep_approx.errors import DataError
from tests.revised_answers import plain
from tests.revised_model import Ledger, Schedule, Step
from tests.revised_streams import schedule
from tests.rich_worlds import Row


def reused(seed: int, ids: int) -> Schedule:
    """The schedule of a seed with so few ids, where it has some."""
    made = schedule(seed)
    numbers: dict[Any, Any] = {}

    def few(row: Row) -> Row:
        number = numbers.setdefault(row["id"], len(numbers) % ids)
        return {**row, "id": f"e{number}" if made.is_id_text else number}

    steps = tuple(step if step.rows is None else Step(tuple(map(few, step.rows))) for step in made.steps)
    return replace(made, id="id", steps=steps)


def holds(asked: Schedule) -> int:
    """Runs a schedule: after each step the sum is the plain answer, and no two results that stand share a match id.

    Returns
    -------
    int
        How many rows the end has more than there are with other ids of events.
    """
    query, model = compile_query(asked.text, engine=asked.engine), asked.model()
    matcher: Any = query.matcher(**asked.options())
    ledger = Ledger(is_telling=False)
    left_out: list[tuple[int, tuple[str, ...]]] = []
    for step in (*asked.steps, None):
        if step is None:
            ledger.take(matcher.finish())
        elif step.tick is not None:
            try:
                ledger.take(matcher.punctuate(step.tick))
            except DataError as error:
                assert error.code == "ACEP-D072", error
            model.punctuate(step.tick)
        elif step.rows is not None:
            ledger.take(matcher.push(asked.table(step.rows)))
            model.push(step.rows)
        else:
            matcher = query.from_state(matcher.state_bytes())
        left_out += [(row["row"], (row["reason"],)) for row in by_row(matcher.rejected())]
        _, expected = plain(asked, query, model, is_over=step is None)
        assert ledger.net == expected, (step, ledger.net - expected, expected - ledger.net)
    assert [row for row, _ in left_out] == [row for row, _ in model.left_out]
    assert all(reason in may for (_, (reason,)), (_, may) in zip(left_out, model.left_out, strict=True))
    return sum(ledger.net.values()) - len(ledger.net)


def by_row(table: pa.Table) -> list[dict[str, Any]]:
    """Rows that were left out, in the order in which they came."""
    return sorted(table.to_pylist(), key=lambda row: row["row"]) if table.num_rows else []
