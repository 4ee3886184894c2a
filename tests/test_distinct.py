"""count(DISTINCT ...) and stddev: random worlds against brute force, exact values, and MAXIMAL that lists no others."""

from __future__ import annotations

import statistics
from dataclasses import replace
from datetime import datetime
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import compile_query
from acep_approx.errors import QueryError
from acep_approx.matching.outputs.aggregates import aggregate
from acep_approx.planning.growing import only_grows
from acep_approx.query.parser import parse
from acep_approx.query.printer import to_text
from acep_approx.query.shape import atoms, kleene_variables, negated_variables
from acep_approx.query.syntax import Aggregate, Attribute, Binary, Constant, Expression, Selection
from tests.cases import cases
from tests.match_tables import bindings, counted, least, per_point
from tests.naive import match_points
from tests.naive_selection import reported_matches
from tests.rich_conditions import COMPARISONS
from tests.rich_worlds import Dice, RichWorld, rich_world, world_of
from tests.runs_engine import MERGES, agrees, agrees_in_any_split, pushed

FUNCTIONS = ("count distinct", "count distinct", "stddev")


def aggregated(dice: Dice, variable: str) -> Expression:
    """A condition with one of the aggregates of a Kleene variable, of all events or of those before."""
    function, is_prior = dice.pick(FUNCTIONS), dice.chance(4)
    name = dice.pick(("x", "y", "ts") if function == "stddev" else ("x", "y", "s", "type", "ts"))
    found = Aggregate(function, variable, name, is_prior)
    own: Expression = Attribute(variable, "current", "x") if is_prior else Constant(dice.pick((1, 2, 0, 0.5)))
    return Binary(dice.pick(COMPARISONS), found, own)


def aggregating(seed: int) -> RichWorld | None:
    """A world with such a condition; None: nothing in it is repeated."""
    random = Random(seed)
    world, dice = rich_world(random, chooses=False), Dice(random)
    query = world.query
    kleene = sorted(kleene_variables(query.pattern) - negated_variables(query.pattern))
    if query.is_regex or not kleene:
        return None
    others = query.predicates if dice.chance(2) else ()
    return world_of(replace(query, predicates=(*others, aggregated(dice, dice.pick(kleene)))), world.rows)


@pytest.mark.parametrize("part", range(4))
def test_worlds_as_by_brute_force(part: int) -> None:
    """Listed, counted and detected; in any split, over restarts."""
    tried = 0
    for seed in range(part, cases(4000, 95), 4):
        world = aggregating(seed)
        if world is not None:
            agrees(world)
            agrees_in_any_split(world, MERGES[seed % len(MERGES)], Random(seed))
            tried += 1
    assert tried > 2


# --- MAXIMAL ----------------------------------------------------------------------------------------------------------

GROWING = (
    ("count distinct", ">="),
    ("count distinct", ">"),
    ("count", ">="),
    ("max", ">"),
    ("max", ">="),
    ("min", "<"),
    ("min", "<="),
)


def growing(seed: int) -> RichWorld | None:
    """A world with MAXIMAL and conditions that more events do not break; None: none can be so."""
    random = Random(seed)
    world, dice = rich_world(random, chooses=False), Dice(random)
    asked = Selection(maximal=True, first=dice.chance(4))
    query = replace(world.query, selection=asked, strategy="skip_till_any_match")
    if query.is_regex:
        return None
    conditions = []
    for variable in sorted({atom.variable for atom in atoms(query.pattern)} & kleene_variables(query.pattern)):
        function, op = dice.pick(GROWING)
        sides = Aggregate(function, variable, dice.pick(("x", "y")), False), Constant(dice.pick((1, 2, 1, 0)))
        mirrored = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
        conditions.append(dice.pick((Binary(op, *sides), Binary(mirrored[op], *sides[::-1]))))
    if not conditions or not all(only_grows(query, one) for one in conditions):
        return None
    return world_of(replace(query, predicates=tuple(conditions)), world.rows)


def test_maximal_matches_are_tested_alone() -> None:
    """As by brute force, which tests all matches and then looks which are maximal; in any split, over restarts."""
    tried = found = 0
    for seed in range(cases(20_000, 356)):
        world = growing(seed)
        if world is None:
            continue
        try:
            query = compile_query(world.text, engine="cells")
        except QueryError as error:  # a negation before the first or after the last event
            assert error.code == "ACEP-Q900"
            continue
        assert query.plan.walks_maximal
        tried += 1
        table, dice = world.table(), Random(seed)
        expected = reported_matches(world.query, world.rows, world.expected())
        found += len(expected)
        matches = query.match(table)
        assert list(bindings(matches.to_arrow(), world.query).items()) == list(expected.items()), world.text
        assert least(matches.points()) == match_points(expected)
        assert counted(matches.counts()) == per_point(expected)
        cuts = sorted(dice.randint(0, table.num_rows) for _ in range(3))
        batches = [table.slice(i, j - i) for i, j in zip([0, *cuts], [*cuts, table.num_rows], strict=True)]
        for output in ("matches", "points", "counts"):
            whole = pushed(query, [table], output, "equal", None)
            assert pushed(query, batches, output, "equal", dice).to_pylist() == whole.to_pylist()
    assert tried > 6
    assert found > 2


@pytest.mark.parametrize("more", ["", "skip_till_next_match"])
def test_many_failed_logins_are_one_match(more: str) -> None:
    """A thousand failures from seven hosts, then a success: one match, in the time that the events take."""
    rows = 1001
    table = pa.table(
        {
            "ts": range(rows),
            "type": ["fail"] * (rows - 1) + ["ok"],
            "ip": [f"10.0.0.{i % 7}" for i in range(rows)],
        }
    )

    def hosts(least: int) -> list[int]:
        asked = f"count(DISTINCT f[].ip) >= {least}"
        where = f"{more} {{{asked}}}" if more else asked
        text = f"PATTERN SEQ(fail{{10,}} f[], ok s) WHERE {where} WITHIN 2000 MAXIMAL"
        found = compile_query(f"{text} RETURN count(DISTINCT f[].ip) AS hosts").match(table)
        return [match.values["hosts"] for match in found]

    assert hosts(5) == [7]
    assert hosts(8) == []


def test_one_that_more_events_can_break_is_refused_beside_maximal() -> None:
    """The hint says what can be written."""
    with pytest.raises(QueryError, match="ACEP-Q919") as caught:
        compile_query("PATTERN SEQ(A+ f[], B s) WHERE count(DISTINCT f[].ip) < 5 WITHIN 9 MAXIMAL")
    assert "skip_till_next_match" in str(caught.value.hint)


# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([1, 2, 2, None, 1, 3]), [2, 2]),
        (pa.array([0.0, -0.0, 1.5, 1.5, None, 1.5]), [2, 1]),
        (pa.array(["u", "v", "u", "u", None, "u"]), [2, 1]),
        (pa.array([True, False, True, None, None, None]), [2, 0]),
        (pa.array([datetime(2024, 1, 1 + day) for day in (0, 1, 0, 2, 2, 2)]), [2, 1]),  # noqa: DTZ001
        (pa.nulls(6, pa.int64()), [0, 0]),
    ],
)
def test_different_values_of_any_kind(values: pa.Array, expected: list[int]) -> None:
    """Of lists of three, an empty one between them."""
    assert aggregate("count distinct", values, np.array([3, 0, 3])).to_pylist() == [expected[0], 0, expected[1]]


@pytest.mark.parametrize("far", [0, 10**6, 2**53, 2**62])
def test_large_values_lose_no_digits(far: int) -> None:
    """Against exact fractions: each of n terms is rounded a few times, and the sum is off by less than 4 n of 2^-53."""
    dice = Random(far)
    for size in (2, 3, 5, 100):
        values = [far + dice.randrange(-50, 50) for _ in range(size)]
        found = aggregate("stddev", pa.array(values), np.array([size])).to_pylist()[0]
        assert found == pytest.approx(statistics.stdev(values), rel=4 * size * 2**-53, abs=0)
    floats = [float(far) + 0.1] * 3
    assert aggregate("stddev", pa.array(floats), np.array([3])).to_pylist() == [0.0]


def test_spread_of_few_values() -> None:
    """NULL for fewer than two values; NULLs are none, and infinities have no mean."""
    values = pa.array([1.0, None, 3.0, 5.0, float("inf"), 1.0, None])
    found = aggregate("stddev", values, np.array([1, 1, 2, 2, 0, 1])).to_pylist()
    assert found == [None, None, 2**0.5, None, None, None]
    wide = pa.array([-(2**63) + 1, 2**63 - 1])
    assert aggregate("stddev", wide, np.array([2])).to_pylist()[0] == pytest.approx(2**64 / 2**0.5)


# --- the language -----------------------------------------------------------------------------------------------------


def test_words_are_not_reserved() -> None:
    """A variable may be called DISTINCT, and stddev is one, too, unless a bracket follows."""
    where = "count(distinct[].x) > count(DISTINCT distinct[].x) AND stddev.x = 1"
    text = f"PATTERN SEQ(A+ distinct[], B stddev) WHERE {where}"
    query = parse(f"{text} WITHIN 5 RETURN stddev(distinct[].x) AS stddev")
    first = query.predicates[0]
    assert (first.left.function, first.right.function) == ("count", "count distinct")
    assert parse(to_text(query)) == query


@pytest.mark.parametrize(
    ("condition", "code", "hint"),
    [
        ("count(DISTINCT a[]) > 1", "ACEP-Q010", "count(DISTINCT a[].price)"),
        ("sum(DISTINCT a[].x) > 1", "ACEP-Q010", "write sum(a[].x)"),
        ("stddev(DISTINCT a[].x) > 1", "ACEP-Q010", "write stddev(a[].x)"),
        ("stddev(a.x) > 1", "ACEP-Q010", "write stddev(a[].price)"),
        ("stdev(a[].x) > 1", "ACEP-Q011", "`stddev`"),
    ],
)
def test_mistakes_say_what_to_write(condition: str, code: str, hint: str) -> None:
    """With the code, and a repair."""
    with pytest.raises(QueryError) as caught:
        parse(f"PATTERN A+ a[] WHERE {condition} WITHIN 5")
    assert caught.value.code == code
    assert hint in str(caught.value.hint)


def test_only_numbers_have_a_spread() -> None:
    """Of texts it is refused."""
    query = compile_query("PATTERN SEQ(A+ a[], B b) WHERE stddev(a[].s) > 1 WITHIN 5")
    with pytest.raises(QueryError, match="no stddev of it"):
        query.match(pa.table({"ts": [1], "type": ["A"], "s": ["u"]})).to_arrow()
