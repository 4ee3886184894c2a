"""AT START and ~(B b) SINCE START: random worlds against brute force, keys that go, sets, late events, Spark."""

from __future__ import annotations

from collections import Counter
from random import Random

import pyarrow as pa
import pytest

from acep_approx import QuerySet, compile_query
from acep_approx.errors import DataError, QueryError
from acep_approx.query.builder import absent, event, seq
from acep_approx.query.parser import parse
from acep_approx.query.printer import to_text
from acep_approx.spark.plan.flow import matching
from tests.cases import cases
from tests.match_tables import bindings, counted, least, per_point
from tests.naive import match_points
from tests.naive_selection import reported_matches
from tests.rich_worlds import RichWorld
from tests.runs_engine import MERGES, agrees, agrees_in_any_split, chooses_as_brute_force, pushed
from tests.spark_cases import numbered, rows
from tests.start_worlds import start_world

HEARTBEATS = (("x", 0), ("y", 5), ("x", 10), ("x", 40), ("y", 41))


def beats(*some: tuple[str, int]) -> pa.Table:
    """Heartbeats of devices."""
    return pa.table({"ts": [tick for _, tick in some], "type": ["hb"] * len(some), "id": [name for name, _ in some]})


def starts(query: str, table: pa.Table, **options: object) -> list[int]:
    """When the matches begin that a query finds."""
    return [match.start for match in compile_query(query).match(table, **options)]


# --- against brute force ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(4))
def test_worlds_as_by_brute_force(part: int) -> None:
    """By runs: listed, counted and detected; in any split, over restarts."""
    tried = 0
    for seed in range(part, cases(4000, 79), 4):
        world = start_world(seed)
        if world is not None:
            agrees(world)
            agrees_in_any_split(world, MERGES[seed % len(MERGES)], Random(seed))
            tried += 1
    assert tried > 3


def test_worlds_in_which_clauses_choose() -> None:
    """MAXIMAL and those that go by the order: of the matches that begin at the start."""
    for seed in range(cases(1000, 33)):
        world = start_world(seed, chooses=True)
        if world is not None:
            chooses_as_brute_force(world, MERGES[seed % len(MERGES)], Random(seed))


def by_cells(world: RichWorld, dice: Random) -> bool:
    """Whether the cells can run it, where they find what brute force does."""
    try:
        query = compile_query(world.text, engine="cells")
    except QueryError as error:
        assert error.code == "ACEP-Q900"
        return False
    expected, table = reported_matches(world.query, world.rows, world.expected()), world.table()
    cuts = sorted(dice.randint(0, table.num_rows) for _ in range(3))
    batches = [table.slice(i, j - i) for i, j in zip([0, *cuts], [*cuts, table.num_rows], strict=True)]
    for some, saves in (([table], None), (batches, dice)):
        assert bindings(pushed(query, some, "matches", "equal", saves), world.query) == expected
        assert least(pushed(query, some, "points", "equal", saves)) == match_points(expected)
        assert counted(pushed(query, some, "counts", "equal", saves)) == per_point(expected)
    return True


def test_cells_as_by_brute_force() -> None:
    """What is asked of the start of a partition is asked of one event alone."""
    tried = 0
    for seed in range(cases(6000, 198)):
        world = start_world(seed, chooses=seed % 3 == 0)
        tried += world is not None and by_cells(world, Random(seed))
    assert tried > 6


# --- partitions -------------------------------------------------------------------------------------------------------


def test_devices_that_fall_silent_at_once() -> None:
    """The first heartbeat of y is its last for 20 s; that of x is not. Without keys there is one partition."""
    table = beats(*HEARTBEATS)
    assert starts("PATTERN SEQ(hb a, ~(hb n)) WHERE [id] WITHIN 20 AT START", table) == [5]
    assert starts("PATTERN SEQ(hb a, ~(hb n)) WITHIN 4 AT START", table) == [0]
    assert starts("PATTERN SEQ(~(hb n) SINCE START, hb a, hb b) WHERE [id] WITHIN 15", table) == [0]


def test_an_event_that_no_letter_asks_for_is_the_first_all_the_same() -> None:
    """Whatever its type is, and whatever its conditions are."""
    table = pa.table({"ts": [1, 2, 3], "type": ["X", "A", "A"], "x": [None, 1, 2]})
    assert starts("PATTERN A a WITHIN 5 AT START", table) == []
    assert starts("PATTERN SEQ(~(X n) SINCE START, A a) WHERE n.x = 1 WITHIN 5", table) == [2, 3]
    assert starts("PATTERN SEQ(~(A n) SINCE START, A a) WHERE n.x = 1 WITHIN 5", table) == [2]


def test_keys_that_are_silent_are_not_forgotten() -> None:
    """Far more keys than are kept at first, each twice, with more than a window between: none starts once more."""
    keys = 20_000
    table = pa.table({"ts": range(2 * keys), "type": ["A"] * (2 * keys), "k": [*range(keys), *range(keys)]})
    matcher = compile_query("PATTERN A a WHERE [k] WITHIN 1 AT START").matcher(output="points")
    found = sum(matcher.push(table.slice(at, 4000)).num_rows for at in range(0, 2 * keys, 4000))
    assert found == keys


@pytest.mark.parametrize("engine", ["cells", "runs"])
def test_a_key_that_was_dropped_starts_once_more(engine: str) -> None:
    """With key_idle, the stream of a key ends, and what comes next is the first event of another partition."""
    query = compile_query("PATTERN A a WHERE [k] WITHIN 1 AT START", engine=engine)
    table = pa.table({"ts": [0, 1, 5, 30, 31, 60], "type": ["A"] * 6, "k": ["u", "v", "u", "u", "u", "v"]})
    for size in (1, 2, 6):
        matcher = query.matcher(key_idle=10)
        found = [matcher.push(table.slice(at, size)) for at in range(0, 6, size)]
        assert pa.concat_tables([*found, matcher.finish()])["start"].to_pylist() == [0, 1, 30, 60]


def test_queries_in_a_set_that_differ_in_constants() -> None:
    """They do not run as one."""
    desk = QuerySet()
    for least_x in range(3):
        desk.add(f"PATTERN SEQ(A a, B b) WHERE a.x > {least_x} WITHIN 9 AT START", id=str(least_x))
    table = pa.table({"ts": range(4), "type": list("ABAB"), "x": [2, 0, 9, 0]})
    assert [desk.match(table)[str(number)].num_rows for number in range(3)] == [2, 2, 0]


@pytest.mark.parametrize("seed", range(2))
def test_shards_of_spark(seed: int) -> None:
    """Each holds whole partitions: batch as here."""
    tried = 0
    for number in range(40 * seed, 40 * (seed + 1)):
        world = start_world(number)
        case = numbered(str(number), world.text, world.table()) if world is not None and world.rows else None
        if case is None:
            continue
        for shards in (1, 3):
            job, shard_of = case.job(shards), case.shard_of(shards)
            found: Counter[str] = Counter()
            for shard in range(shards):
                mine = case.events.select(job.schema.names).filter(pa.array(shard_of == shard))
                batches = iter(mine.to_batches(max_chunksize=3))
                found += sum((rows(pa.Table.from_batches([made])) for made in matching(job)(batches)), Counter())
            assert found == case.expected(), world.text
        tried += 1
    assert tried > 0


# --- late events, states, why -----------------------------------------------------------------------------------------


def test_late_events_within_the_watermark() -> None:
    """Results that are final know the first event; what may be taken back is refused."""
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 9 AT START")
    events = pa.table({"ts": [5, 6, 4, 7, 30], "type": ["A", "B", "A", "B", "B"]})
    matcher = query.matcher(watermark=3)
    tables = [matcher.push(events.slice(at, 1)) for at in range(5)]
    assert pa.concat_tables([*tables, matcher.finish()])["start"].to_pylist() == [4, 4]
    with pytest.raises(QueryError, match="ACEP-Q925"):
        query.matcher(watermark=3, emit="early")


def test_a_damaged_state_is_refused() -> None:
    """A number that no run can have written."""
    query = compile_query("PATTERN A a WITHIN 9 AT START")
    matcher = query.matcher()
    matcher.push(pa.table({"ts": [1], "type": ["B"]}))
    matcher.pipeline.preparer.since_start._seen[0] = 2
    with pytest.raises(DataError):
        query.from_state(matcher.state_bytes())


def test_why_there_is_none() -> None:
    """Without a time it is told; at a time it cannot be told yet, and is refused."""
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 9 AT START")
    events = [{"ts": 1, "type": "X"}, {"ts": 2, "type": "A"}, {"ts": 3, "type": "B"}]
    assert "AT START" in str(query.match(events).no_match())
    with pytest.raises(QueryError, match="ACEP-Q924"):
        query.why(events, around=3)


# --- the language -----------------------------------------------------------------------------------------------------


def test_the_builder_and_the_printer_say_the_same() -> None:
    """And none of the words is reserved."""
    first = absent(event("login", "n"), since_start=True)
    built = seq(first, event("pay", "a"), event("START", "b")).within(5).at_start().maximal().syntax()
    text = "PATTERN SEQ(~(login n) SINCE START, pay a, START b)\nWITHIN 5\nAT START\nMAXIMAL"
    assert to_text(built) == text
    assert parse(text) == built == parse(text.lower().replace("seq", "SEQ").replace(", start b", ", START b"))
    assert parse("PATTERN SEQ(at start, since since) WHERE start.at = since.start WITHIN 5").predicates
    assert to_text(event("A", "a").at_start().within(5).syntax()).endswith("AT START")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SEQ(A a, ~(B b) SINCE START, C c) WITHIN 5", "ACEP-Q086"),
        ("(SEQ(~(B b) SINCE START, C c) | D d) WITHIN 5", "ACEP-Q086"),
        ("SEQ(~(B b) SINCE START, C c) WHERE b.x = c.x WITHIN 5", "ACEP-Q087"),
        ("AUTOMATON (q -> r ON A a FINAL r) WITHIN 5 AT START", "ACEP-Q088"),
        ("A a WITHIN 5 SIMULTANEOUS AT START", "ACEP-Q053"),
        ("SEQ(~(B b) SINCE START, C c) WITHIN 5 SIMULTANEOUS", "ACEP-Q053"),
        ("~(B b) SINCE START WITHIN 5", "ACEP-Q035"),
        ("A a WITHIN 5 MAXIMAL AT START", "ACEP-Q006"),
    ],
)
def test_what_is_refused(text: str, code: str) -> None:
    """With a code."""
    with pytest.raises(QueryError) as caught:
        compile_query(f"PATTERN {text}")
    assert caught.value.code == code


def test_a_budget_is_not_audited_by_parts_of_the_stream() -> None:
    """A part of the stream has another first event: what is found of it would be no match."""
    dice = Random(1)
    columns = {"ts": range(3000), "type": dice.choices("AB", k=3000), "x": dice.choices(range(5), k=3000)}
    table = pa.table(columns | {"k": [i // 6 for i in range(3000)]})
    text = "PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x WITHIN 5"
    for clause, is_audited in (("", True), (" AT START", False)):
        query = compile_query(text + clause)
        found = query.match_within(table, "3 steps/event", audit=0.5)
        assert set(found.points()["row"].to_pylist()) <= set(query.match(table).points()["row"].to_pylist())
        assert (found.shedder.exact_audit is not None) is is_audited
