"""The net law for automata written by hand: however events come, all that was put out adds up to the plain answer.

Random machines in the schedules that ``revised_streams`` makes for queries; what is live, and what the plain answer is,
``revised_model`` and ``revised_answers`` say.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import compile_query
from acep_approx.errors import DataError, UnsupportedError
from acep_approx.query.syntax import Machine
from tests.afa_worlds import FUNCTIONS, afa_world, shortened, stream
from tests.cases import cases
from tests.revised_answers import plain
from tests.revised_model import Ledger, Schedule, smallest
from tests.revised_streams import CODES, SPECULATED, Writer, arriving, cut, named
from tests.rich_worlds import Dice, Row

WORLDS, CHUNKS = cases(1000, 60), 10
ONE = os.environ.get("ACEP_SCHEDULE")
MOST_ROWS = 100
"""Of output, in the whole stream."""
SHRINKING = 30
"""Seconds."""

# --- schedules --------------------------------------------------------------------------------------------------------


def afa_schedule(seed: int) -> Schedule:
    """A random machine, and events that come late, are revised or taken back."""
    dice = Dice(Random(seed))
    world = afa_world(seed, most_rows=MOST_ROWS)
    rows = list(world.rows)
    for _ in range(dice.pick((0, 0, 1, 2))):
        begin, more = rows[-1]["ts"] + dice.pick((0, 1, 4, 20)), stream(dice)
        rows += [{**row, "ts": begin + row["ts"] - more[0]["ts"]} for row in more]
    rows = list(shortened(world.query, tuple(rows), MOST_ROWS))
    codes = None if dice.chance(5) else dice.pick(CODES)
    made = Schedule(
        seed,
        world.text,
        (),
        output=dice.pick(("matches", "matches", "matches", "points", "counts")),
        delay=dice.pick((None, None, None, 0, 1, 3, 10)),
        emit=dice.pick(SPECULATED),
        id=dice.pick((None, "id", "id")),
        merge=dice.pick((None, None, "none", "equal")),
        is_id_text=dice.chance(2),
    )
    if codes:
        asks = dice.pick((None, "op", "change"))
        made = replace(made, op=asks or "op", asks_op=asks, is_op_number=codes.insert == (1,))
    writer = Writer(dice, made, codes, dice.pick((2, 4, 8)))
    writer.write(arriving(named(tuple(rows), made, dice), dice))
    return replace(made, steps=tuple(cut(writer.said, dice)))


def net_law(asked: Schedule) -> str:
    """Runs a schedule; after each step all that was put out must be the plain answer. Returns why it is refused."""
    try:
        query = compile_query(asked.text, functions=FUNCTIONS)
        matcher: Any = query.matcher(**asked.options())
    except UnsupportedError as error:
        return str(error).splitlines()[0]
    model, left_out = asked.model(), list[int]()
    rows = [row for step in asked.steps for row in step.rows or ()]
    ledger = ledger_of(asked, query.syntax.pattern, has_outputs=bool(query.syntax.outputs), rows=rows)
    for number, step in enumerate([*asked.steps, None]):
        if step is None:
            ledger.take(matcher.finish())
        elif step.tick is not None:
            ledger.take(punctuated(matcher, step.tick, is_right=model.punctuate(step.tick)))
        elif step.rows is not None:
            ledger.take(matcher.push(asked.table(step.rows)))
            model.push(step.rows)
        else:
            matcher = query.from_state(matcher.state_bytes())
        left_out += sorted(row["row"] for row in matcher.rejected().to_pylist())
        columns, expected = plain(asked, query, model, is_over=step is None)
        more, fewer = ledger.net - expected, expected - ledger.net
        assert not more | fewer, f"after step {number} too much: {more}, missing: {fewer}"
        assert not ledger.columns or not columns or ledger.columns == columns
        assert step is None or matcher.watermark == model.watermark
    assert left_out == [number for number, _ in model.left_out]
    return ""


def ledger_of(asked: Schedule, machine: Any, *, has_outputs: bool, rows: list[Row]) -> Ledger:
    """A ledger: two matches look the same where they consume events that are not shown, or show only values."""
    assert isinstance(machine, Machine)
    has_ids = not asked.id or bool(asked.op) or all(row["id"] is not None for row in rows)
    shows_all = not any(arc.kind == "on" and arc.variable is None for arc in machine.arcs)
    is_telling = asked.output == "matches" and not has_outputs and shows_all
    return Ledger(has_ids=has_ids, is_telling=is_telling and has_ids)


def punctuated(matcher: Any, tick: int, *, is_right: bool) -> pa.Table:
    """Time passes, or is refused where it runs backwards."""
    if is_right:
        return matcher.punctuate(tick)
    with pytest.raises(DataError) as caught:
        matcher.punctuate(tick)
    assert caught.value.code == "ACEP-D072"
    return pa.table({})


# --- the law ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(CHUNKS))
def test_net_law(part: int) -> None:
    """Random machines, disorder, changes, watermarks, splits and restarts; every output."""
    refused: Counter[str] = Counter()
    seeds = (range(WORLDS) if ONE is None else [int(ONE)])[part::CHUNKS]
    for seed in seeds:
        refused[holds(afa_schedule(seed))] += 1
    assert refused.total() - refused[""] <= 0.15 * len(seeds), refused


def holds(asked: Schedule) -> str:
    """Check a schedule; where the check fails, show its seed, and a smallest schedule that fails too."""
    try:
        return net_law(asked)
    except Exception as error:
        until = time.monotonic() + SHRINKING

        def fails(smaller: Schedule) -> bool:
            try:
                net_law(smaller)
            except Exception:  # noqa: BLE001  whatever it is, a smaller one shows it better
                return time.monotonic() < until
            return False

        error.add_note(f"{smallest(asked, fails)}\nrepeat it: ACEP_SCHEDULE={asked.seed} pytest {__file__}")
        raise


def test_schedules_hold_what_they_should() -> None:
    """Restarts, retractions, time that passes, rows left out; machines that wait, count, ignore and return."""
    seen: Counter[str] = Counter()
    for seed in range(150):
        asked = afa_schedule(seed)
        model = asked.model()
        for step in asked.steps:
            seen["restart"] += step.rows is None and step.tick is None
            if step.tick is not None:
                seen["time passes"] += model.punctuate(step.tick)
            model.push(step.rows or ())
        seen["taken back"] += sum(sign < 0 for sign, _ in model.changes)
        seen["left out"] += len(model.left_out)
        seen[f"emit {asked.emit}"] += 1
        words = ("TIMEOUT", "EPSILON", "REGISTERS", "IGNORE", "RETURN", "ERRORS", " events", "WHERE [g]")
        seen.update(word for word in words if word in asked.text)
    least = {"restart": 50, "time passes": 50, "taken back": 100, "left out": 100, "emit early": 50, "emit final": 20}
    least |= {"TIMEOUT": 15, "EPSILON": 15, "REGISTERS": 90, "IGNORE": 90, "RETURN": 50, "ERRORS": 40, " events": 30}
    assert not {what: (seen[what], times) for what, times in least.items() if seen[what] < times}
