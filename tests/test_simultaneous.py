"""SIMULTANEOUS in the engine: as by brute force, in all outputs, in any split, in any order of events at one time."""

from __future__ import annotations

from functools import cache
from itertools import product
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acep_approx import compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.automaton.resolve import dynamic_conditions
from acep_approx.engines.runs.load_shedder import FixedLoad
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.worth import Allowance
from acep_approx.kernels.runs import layout
from acep_approx.query.parser import parse
from tests.cases import FULL, cases, examples
from tests.match_tables import bindings, reports
from tests.naive import Binding, expected_matches
from tests.naive_partial import expected_partials
from tests.rich_worlds import RichWorld, Row
from tests.runs_engine import MERGES, agrees, agrees_in_any_split, compiled, pushed
from tests.runs_mutants import SHOWN_BY
from tests.smaller_worlds import holds_for
from tests.tied_worlds import shuffled, tied_world

STRATEGIES = ("skip_till_any_match", "skip_till_next_match", "partition_contiguity", "strict_contiguity")
TIED = st.randoms(use_true_random=True)


# --- by brute force ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(4))
def test_listed_counted_and_detected_as_by_brute_force(part: int) -> None:
    """Matches with their least err, in order; counts by err; match points with their least err.

    Worlds that show mutants are among them, whatever their number.
    """
    for number in (*range(cases(2400, 80)), *sorted({*SHOWN_BY.values()}))[part::4]:
        holds_for(tied_world(Random(number)), agrees)


@settings(examples(600, shrink=False), max_examples=cases(600, 20))
@given(TIED, st.sampled_from(MERGES))
def test_any_split_and_any_restart_give_the_same(random: Random, merge: str) -> None:
    """Batches cut anywhere, also within a time, and a state saved and restored between them, change nothing."""
    seed = random.random()
    holds_for(tied_world(random), lambda world: agrees_in_any_split(world, merge, Random(seed)))


@settings(examples(300, shrink=False), max_examples=cases(300, 12))
@given(TIED, st.sampled_from(MERGES))
def test_the_order_of_events_at_one_time_plays_no_role(random: Random, merge: str) -> None:
    seed = random.random()

    def check(world: RichWorld) -> None:
        query = compiled(world)
        if query is None:
            return
        rows, before = shuffled(world.rows, Random(seed))
        other = RichWorld(world.query, world.text, rows)
        first = bindings(query.match(world.table(), merge=merge).to_arrow(), world.query)
        second = bindings(query.match(other.table(), merge=merge).to_arrow(), world.query)
        assert renamed(second, before) == renamed(first, list(range(len(rows))))

    holds_for(tied_world(random), check)


def renamed(matches: dict[Binding, int], before: list[int]) -> dict[Binding, int]:
    """Matches with other names of their events."""
    return {tuple(sorted((before[row], variable) for row, variable in bound)): err for bound, err in matches.items()}


# --- small worlds, all of them ----------------------------------------------------------------------------------------

Stream = tuple[tuple[tuple[str, int], int], ...]
LETTERS = (("A", 1), ("A", 2), ("B", 2))
STREAMS = [
    tuple(zip(letters, (0, *(sum(steps[:i]) for i in range(1, n))), strict=True))
    for n in range(1, 5)
    for letters in product(LETTERS, repeat=n)
    for steps in product((0, 1), repeat=n - 1)
]
"""Up to four events, each at the time of the one before it or later."""
SHARES = 1 if FULL else 5
"""A query sees all streams of up to two events, and a share of the others, each query another one."""
PATTERNS = {
    "SEQ(A a, B b)": ("", "b.x > a.x"),
    "SEQ(A+ a[], B b)": ("", "a[i].x > a[i-1].x"),
    "SEQ(A a, ~(B n), A b)": ("", "n.x > a.x"),
    "SEQ(~(B n), A a, ANY b)": ("",),
    "SEQ(A a, ANY b, ~(B n))": ("", "n.x > a.x"),
    "SEQ(A a, ANY* b[], A c)": ("", "c.x != a.x"),
    "SEQ((A a | B b)+, A c)": ("",),
    "SEQ(A a, (A c | B b))": ("",),
}
QUICK = ("SEQ(A+ a[], B b)", "SEQ(A a, ~(B n), A b)")


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "pattern", [pytest.param(one, marks=() if one in QUICK else pytest.mark.slow) for one in PATTERNS]
)
def test_every_stream(pattern: str, strategy: str) -> None:
    """Each stream has a key of its own; under strict contiguity they come one after the other."""
    shares = [table_of(share, is_apart=strategy == "strict_contiguity") for share in range(SHARES)]
    queries = product(PATTERNS[pattern], (0, 1))
    for number, (condition, errors) in enumerate(queries, STRATEGIES.index(strategy)):
        streams, rows, table = shares[number % SHARES]
        where = " AND ".join(part for part in ("[g]", condition) if part)
        text = f"PATTERN {pattern} WHERE {strategy} {{ {where} }} WITHIN 2 SIMULTANEOUS ERRORS {errors}"
        query = parse(text)
        found: list[dict[Binding, int]] = [{} for _ in streams]
        for bound, err in bindings(compile_query(text).match(table).to_arrow(), query).items():
            found[rows[bound[0][0]]["g"]][tuple((rows[row]["at"], variable) for row, variable in bound)] = err
        for s, stream in enumerate(streams):
            alone = [{"ts": tick, "type": kind, "x": x, "g": s} for (kind, x), tick in stream]
            assert found[s] == expected_matches(query, alone), (text, stream)


@cache
def table_of(share: int, *, is_apart: bool) -> tuple[list[Stream], list[Row], pa.Table]:
    """A share of the streams, their events, and these as a table."""
    streams = [stream for s, stream in enumerate(STREAMS) if len(stream) <= 2 or s % SHARES == share]
    rows = [
        {"ts": 100 * s + tick if is_apart else tick, "type": kind, "x": x, "g": s, "at": at}
        for s, stream in enumerate(streams)
        for at, ((kind, x), tick) in enumerate(stream)
    ]
    rows.sort(key=lambda row: row["ts"])
    return streams, rows, pa.Table.from_pylist(rows)


# --- other outputs ----------------------------------------------------------------------------------------------------


@settings(examples(600, shrink=False), max_examples=cases(600, 24))
@given(TIED)
def test_partial_matches_as_by_brute_force(random: Random) -> None:
    seed = random.random()

    def check(world: RichWorld) -> None:
        query = compiled(world)
        if query is None or query.plan.registers.filters:
            return
        table, dice = world.table(), Random(seed)
        cut = dice.randint(0, table.num_rows)
        whole = query.match(table).partial()
        parts = pushed(query, [table.slice(0, cut), table.slice(cut)], "partial", "equal", dice)
        assert parts.to_pylist() == whole.to_pylist()
        if all(one.expression in world.query.predicates for one in dynamic_conditions(world.query)):
            expected, found = expected_partials(world.query, world.rows), reports(whole, world.query)
            assert found.keys() == expected.keys()
            assert all(report in expected[first] for first, report in found.items())

    holds_for(tied_world(random), check)


@settings(examples(400, shrink=False), max_examples=cases(400, 16))
@given(TIED, st.sampled_from(MERGES))
def test_compressed_matches_spell_what_is_listed(random: Random, merge: str) -> None:
    def check(world: RichWorld) -> None:
        query = compiled(world)
        if query is not None and not query.plan.registers.needs_filter:
            compressed = query.match(world.table(), merge=merge).compressed()
            assert bindings(compressed.expand(), world.query) == world.expected()

    holds_for(tied_world(random), check)


@settings(examples(200, shrink=False), max_examples=cases(200, 10))
@given(TIED, st.sampled_from(MERGES))
def test_inside_a_budget_every_match_is_a_match(random: Random, merge: str) -> None:
    """And the bound holds between any two events."""
    rate = Allowance(rate=random.choice((0.5, 2, 9)), price=1.0, reserve=1.0)
    allowance = rate if random.random() < 0.5 else Allowance(runs=random.randrange(5))

    def check(world: RichWorld) -> None:
        query = compiled(world)
        if query is None:
            return
        shedding = Shedding(None, allowance)
        matcher = Matcher(query.plan, merge=merge, shedding=FixedLoad(shedding))
        parts = []
        for at in range(len(world.rows)):
            parts.append(matcher.push(world.table().slice(at, 1)))
            engine = matcher.pipeline.engine
            if allowance.runs >= 0:
                assert engine.control[layout.LIVE] <= allowance.runs
            else:
                assert engine.work()[0] + shedding.on_passes <= shedding.granted + 1e-6
        found = bindings(pa.concat_tables([*parts, matcher.finish()]), world.query) if parts else {}
        expected = world.expected()
        assert all(expected.get(bound, 99) <= err for bound, err in found.items())

    holds_for(tied_world(random), check)
