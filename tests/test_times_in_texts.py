"""Times that come as texts, as JSON has them: ``to_time``, and the time of the events where a time is asked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from random import Random

import pyarrow as pa
import pytest

from acep_approx import AcepError, QueryError, compile_query
from acep_approx.query.shape import all_expressions, of_expressions, replaced, walk
from acep_approx.query.syntax import Aggregate, Apply, Attribute, Expression
from tests.cases import cases
from tests.rich_conditions import TIMES
from tests.rich_worlds import world_of
from tests.runs_engine import MERGES, agrees, agrees_in_any_split
from tests.timed_worlds import TimedWorld, timed_world

ZONES = (UTC, timezone(timedelta(hours=2)), timezone(timedelta(hours=-5, minutes=-30)), None)


def written(time: datetime | None, dice: Random) -> str | None:
    """A time without a zone, which is in UTC, as a text in one of several ways."""
    if time is None:
        return None
    zone = dice.choice(ZONES)
    shown = time if zone is None else time.replace(tzinfo=UTC).astimezone(zone)
    return shown.isoformat(dice.choice("T ")).replace("+00:00", dice.choice(("Z", "+00:00")))


def world_of_texts(seed: int) -> TimedWorld:
    """A world with conditions on times that are texts.

    Raises
    ------
    QueryError
        A condition has an index that cannot stand there, or an aggregate of times.
    """
    world, dice = timed_world(seed), Random(seed)

    def read(node: Expression) -> Expression | None:
        return Apply("to_time", (node,)) if isinstance(node, Attribute) and node.name in TIMES else None

    for expression in all_expressions(world.query):
        if any(isinstance(node, Aggregate) and node.name in TIMES for node in walk(expression)):
            raise QueryError("an aggregate of texts", code="ACEP-Q062")
    query = of_expressions(world.query, lambda expression: replaced(expression, read))
    rows = [row | {name: written(row[name], dice) for name in TIMES} for row in world.rows]
    made = world_of(query, rows)
    return TimedWorld(made.query, made.text, made.rows, pa.string())


@pytest.mark.parametrize("part", range(3))
def test_worlds_as_by_brute_force(part: int) -> None:
    """Texts of times with zones and without, in any split."""
    tried = 0
    for seed in range(part, cases(1200, 90), 3):
        try:
            world = world_of_texts(seed)
        except QueryError:
            continue
        agrees(world)
        agrees_in_any_split(world, MERGES[seed % len(MERGES)], Random(seed))
        tried += 1
    assert tried > cases(1200, 90) // 8


QUERIES = (
    "SEQ(A a, B b) WHERE b.ts - a.ts <= 5 s WITHIN 30 s RETURN b.ts - a.ts AS d, b.ts + 1 h AS t, second(b.ts) AS s",
    "SEQ(A a, B b, C c) WHERE c.ts > b.ts + 2 s AND minute(a.ts) < 2 AND [k] WITHIN 1 min ERRORS 1",
    "SEQ(A a, B+ b[]) WHERE b[i].ts - b[i-1].ts < 9 s AND a.ts BETWEEN b[1].ts - 4 s AND b[1].ts WITHIN 20 s",
    "SEQ(A a, B b) WHERE skip_till_next_match { least(a.ts + 3 s, b.ts) = b.ts } WITHIN 9 s",
    "AUTOMATON (REGISTERS t TIME x -> y ON A a SET t = {a.ts} y -> z ON B b WHEN b.ts - t < 6 s FINAL z) WITHIN 9 s",
)


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("engine", ["auto", "runs"])
def test_the_time_of_the_events_is_a_time_where_one_is_asked_for(text: str, engine: str) -> None:
    """As if the column had been of times; batch by batch, too."""
    query = compile_query(f"PATTERN {text.replace('{a.ts}', 'a.ts')}", engine=engine)
    of_texts = compile_query(f"PATTERN {text.replace('{a.ts}', 'to_time(a.ts)')}", engine=engine)
    found = 0
    for seed in range(cases(60, 5)):
        dice = Random(seed)
        times = [datetime(2024, 5, 1) + timedelta(seconds=at) for at in sorted(dice.choices(range(60), k=25))]  # noqa: DTZ001
        columns = {"type": dice.choices("ABC", k=25), "k": dice.choices((1, 2), k=25)}
        typed = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), **columns})
        texts = pa.table({"ts": [written(time, dice) for time in times], **columns})
        expected = query.match(typed).to_arrow()
        assert of_texts.match(texts).to_arrow().equals(expected)
        matcher = of_texts.matcher()
        pushed = [matcher.push(texts.slice(first, 6)) for first in range(0, 25, 6)]
        assert pa.concat_tables([*pushed, matcher.finish()]).equals(expected)
        found += len(expected)
    assert found > 5


ROWS = [
    {"ts": "2024-05-01T08:00:00Z", "type": "A", "seen": "2024-05-01T09:59:59.5+02:00"},
    {"ts": "2024-05-01T08:00:04Z", "type": "B", "seen": "soon"},
]


def test_a_text_stays_a_text_where_none_is_asked_for() -> None:
    conditions = "a.ts LIKE '%:00Z' AND b.ts > a.ts AND b.ts - a.ts < 5 s"
    assert len(compile_query(f"PATTERN SEQ(A a, B b) WHERE {conditions} WITHIN 1 h").match(ROWS)) == 1


def test_a_text_that_is_no_time_is_an_error_where_it_matters() -> None:
    """Not where an event of another type has it."""
    found = compile_query("PATTERN SEQ(A a, B b) WHERE to_time(a.seen) < a.ts WITHIN 1 h RETURN to_time(a.seen) AS t")
    assert found.match(ROWS).to_arrow()["t"].to_pylist() == [datetime(2024, 5, 1, 7, 59, 59, 500_000, UTC)]
    with pytest.raises(AcepError) as caught:
        compile_query("PATTERN SEQ(A a, B b) WHERE to_time(b.seen) > a.ts WITHIN 1 h").match(ROWS).to_arrow()
    assert caught.value.code == "ACEP-D006"
    assert "'soon'" in str(caught.value)


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ("b.seen - a.ts < 1 s", "to_time(b.seen)"),
        ("a.ts + 1 s > b.seen", "to_time(b.seen)"),
        ("hour(b.seen) = 2", "hour(to_time(b.seen))"),
        ("max(b[].ts) - a.ts < 1 s", "compares texts"),
    ],
)
def test_hints_say_how_a_text_becomes_a_time(condition: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        compile_query(f"PATTERN SEQ(A a, B+ b[]) WHERE {condition} WITHIN 1 h").match(ROWS).to_arrow()
    assert hint in str(caught.value.hint)
