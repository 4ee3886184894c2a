"""Schedules short and dense enough to reach all paths of revisions, and a check that the net law holds on them.

Where segments and free places are few, some dozen events reach what takes thousands of them otherwise: ``small``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from acep_approx import Query, compile_query
from acep_approx.engines.cells.arclogs import ArcLogs
from acep_approx.engines.runs.runs import Runs
from acep_approx.errors import DataError
from acep_approx.matching import stream_side
from acep_approx.revisions import final, replay, segments, stream
from acep_approx.run import waiting
from tests.revised_answers import plain
from tests.revised_model import Ledger, Schedule
from tests.revised_streams import (
    CODES,
    RETURNING,
    SPECULATED,
    TWELVE,
    Writer,
    arriving,
    cut,
    matches_of,
    named,
    schedule,
)
from tests.rich_worlds import COLUMNS, Dice, Row

# --- small constants --------------------------------------------------------------------------------------------------

SMALL = (
    (replay, "PIECE", 8),
    (replay, "LEAST_PIECE", 4),
    (replay, "WORDS_PER_EVENT", 10**6),
    (segments, "GAP", 3),
    (segments, "PARTS", 2),
    (waiting, "APART", 4),
    (final, "MANY", 4),
    (stream, "DICTS_PER_CHUNK", 4),
    (stream_side, "SWEEP", 2),
)


@contextmanager
def small() -> Iterator[None]:
    """Segments of a few events, few free places between them; engines drop what they can before each batch."""
    advance, update = Runs.advance, ArcLogs.update

    def advance_compact(self: Runs, batch: Any, floors: Any, deadline: float | None = None) -> bool:
        if self.keeps_lineage:
            self._compact(floors)
        return advance(self, batch, floors, deadline)

    def update_compact(self: ArcLogs, batch: Any, floors: Any) -> Any:
        if self.arena.size:
            self.live_places(floors)
        return update(self, batch, floors)

    with ExitStack() as stack:
        for owner, name, value in SMALL:
            stack.enter_context(patch.object(owner, name, value))
        stack.enter_context(patch.object(Runs, "advance", advance_compact))
        stack.enter_context(patch.object(ArcLogs, "update", update_compact))
        yield


# --- schedules --------------------------------------------------------------------------------------------------------

QUERIES = (
    *TWELVE,
    *RETURNING,
    "PATTERN SEQ(A a, C c, ~(B b)) WHERE [g] AND b.x > a.x WITHIN 5 ERRORS 1",
    "PATTERN SEQ(A a, B b, ~(C c)) WHERE [g] WITHIN 4 events",
    "PATTERN SEQ(A a, B b, ~(C c)) WITHIN 6 NON OVERLAP",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE [g] AND sum(b[].x) > 3 WITHIN 6 events",
    "PATTERN SEQ(A a, ~(C c), B b) WHERE c.x > a.x WITHIN 6",
    "PATTERN SEQ(A a, B b) WHERE [g] AND b.x > a.x WITHIN 6 NON OVERLAP",
    "PATTERN SEQ(ANY a, ANY b) WHERE strict_contiguity WITHIN 4",
    "PATTERN SEQ(~(C c), A a) WHERE c.x > a.x WITHIN 3 events",
    "PATTERN SEQ(A a, B b, ~(C c)) WHERE [g] AND c.x > a.x WITHIN 4 events",
    "PATTERN SEQ(A a, B b) WHERE [g] AND b.x >= a.x WITHIN 2",
    "A(B|C)+A WITHIN 5",
)
CHOOSING = (
    "PATTERN SEQ(A a, B+ b[]) WHERE [g] WITHIN 6 MAXIMAL",
    "PATTERN SEQ(A a, B b, C c) WHERE [g] WITHIN 5 events ERRORS 1 MAXIMAL",
    "PATTERN SEQ(A a, B{1,4} b[], ~(C c)) WITHIN 4 MAXIMAL AFTER MATCH SKIP TO LAST b",
    "PATTERN SEQ(A a, B b, C? c) WHERE [g] WITHIN 6 ERRORS 1 MAXIMAL FIRST MATCH CONSUME",
    "PATTERN SEQ(A a, B b, ~(C c)) WHERE [g] WITHIN 5 AFTER MATCH SKIP TO FIRST b EVERY 3",
    "PATTERN SEQ(A a, ANY b) WHERE [g] WITHIN 3 FIRST MATCH EVERY 9",
    "PATTERN SEQ(A a, B b, ~(C c)) WHERE [g] WITHIN 4 events CONSUME",
    "PATTERN SEQ(A a, B b, ~(C c)) WITHIN 5 FIRST MATCH",
)
"""Queries with clauses that say which matches are listed: of schedules below 0."""


MOST_MATCHES = 300
"""Of all events of a schedule; it has fewer events where there would be more."""


def lively(seed: int, queries: tuple[str, ...] = QUERIES) -> Schedule:
    """Some dozen events of one of some queries, in small pushes; keys come and go, many events are changed."""
    dice = Dice(Random(seed))
    tick, rows = 0, []
    later, keys = dice.pick(((0, 0, 1), (0, 1, 1, 2), (1, 1, 2, 8))), dice.pick((4, 20, 10**9))
    for _ in range(dice.pick((12, 25, 40, 60))):
        tick += dice.pick(later)
        key = f"{tick // keys}{dice.pick('pq')}"
        values: Row = {"ts": tick, "type": dice.pick("AABBC"), "x": dice.pick(range(5)), "y": 0.5, "g": key}
        rows.append({**dict.fromkeys(COLUMNS), **values, "s": dice.pick(("u", "v", None))})
    text = queries[seed % len(queries)]
    while matches_of(text, "auto", tuple(rows)) > MOST_MATCHES:
        rows = rows[: len(rows) * 2 // 3]
    codes = None if dice.chance(8) else dice.pick(CODES[:7])
    made = Schedule(
        seed,
        text,
        (),
        output=dice.pick(("matches", "matches", "points", "counts")),
        delay=dice.pick((None, 3, 6, 12)),
        emit=dice.pick(SPECULATED),
        id=dice.pick((None, "id")),
        merge=dice.pick((None, None, "none")),
        op="op" if codes else None,
        is_id_text=dice.chance(2),
    )
    writer = Writer(dice, made, codes, dice.pick((3, 6)))
    writer.write(arriving(named(tuple(rows), made, dice), dice))
    return replace(made, steps=tuple(cut(writer.said, dice, dice.pick((1, 2, 5, 9)), dice.pick((8, 25, 10**9)))))


RARE = (120, 122, 214, 238, 1380)
"""Schedules that show what few others do: other ones once there are other ``QUERIES``."""
ONCE_WRONG = (778, 800)
"""Schedules that once showed mistakes of the package."""


@dataclass(frozen=True)
class Told:
    """A schedule, its query, and what the model says after each step and in the end: columns, rows, rows left out."""

    asked: Schedule
    query: Query
    answers: tuple[tuple[list[str], Counter[tuple[Any, ...]]], ...]
    left_out: tuple[int, ...]


@cache
def told(seed: int) -> Told:
    """The schedule of a seed: from 0 on every other one is of a random query."""
    asked = lively(-seed, CHOOSING) if seed < 0 else schedule(seed) if seed % 2 else lively(seed // 2)
    query, model = compile_query(asked.text, engine=asked.engine), asked.model()
    answers, before = [], None
    for step in (*asked.steps, None):
        if step is not None and step.tick is not None:
            model.punctuate(step.tick)
        elif step is not None and step.rows is not None:
            model.push(step.rows)
        now = [one.number for one in model.ordered()], model.horizon, model.watermark, step is None
        answers.append(plain(asked, query, model, is_over=step is None) if now != before else answers[-1])
        before = now
    return Told(asked, query, tuple(answers), tuple(number for number, _ in model.left_out))


def check(seed: int) -> None:
    """Runs a schedule with small constants; after each step all that was put out must be the plain answer."""
    known = told(seed)
    asked = known.asked
    rows = [row for step in asked.steps for row in step.rows or ()]
    has_ids = not asked.id or bool(asked.op) or all(row["id"] is not None for row in rows)
    is_telling = asked.output == "matches" and not known.query.syntax.outputs and has_ids
    ledger, left_out = Ledger(has_ids=has_ids, is_telling=is_telling), []
    with small():
        running: Any = known.query.matcher(**asked.options())
        for step, (columns, expected) in zip((*asked.steps, None), known.answers, strict=True):
            if step is None:
                ledger.take(running.finish())
            elif step.tick is not None:
                ledger.take(punctuated(running, step.tick))
            elif step.rows is not None:
                ledger.take(running.push(asked.table(step.rows)))
            else:
                running = known.query.from_state(running.state_bytes())
            left_out += sorted(row["row"] for row in running.rejected().to_pylist())
            assert ledger.net == expected, (ledger.net - expected, expected - ledger.net)
            assert not columns or not ledger.columns or columns == ledger.columns
    assert left_out == list(known.left_out)


def punctuated(running: Any, tick: int) -> pa.Table:
    """Time passes, or is refused where it runs backwards: what comes of it says whether that was right."""
    try:
        return running.punctuate(tick)
    except DataError as error:
        assert error.code == "ACEP-D072", error
        return pa.table({})
