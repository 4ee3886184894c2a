"""``a[2].x``, ``sum(a[..3].x)``: events of a Kleene variable by their numbers, in conditions and in RETURN."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from acep_approx import QueryError, compile_query
from acep_approx.query import parse, to_text
from acep_approx.query.syntax import Attribute
from tests.cases import cases
from tests.rich_worlds import Dice, RichWorld, rich_world, stream
from tests.runs_engine import MERGES, agrees, agrees_in_any_split, chooses_as_brute_force

PATTERNS = (
    "SEQ(ANY+ a[], B b)",
    "SEQ(A a, B? b){1,3}",
    "SEQ(B b, A{2,} a[])",
    "(A a | B b){2,4}",
    "SEQ(A* a[], ~(C n), B b)",
)
CONDITIONS = (
    "a[2].x > b.x",
    "a[3].x >= a[2].x",
    "a[i].x <= a[2].x",
    "b.x < a[i].x + a[2].x",
    "a[a.LEN].x != a[2].x",
    "a[2].x > 1",
    "sum(a[].x) > a[2].x + a[3].x",
    "lower(a[2].s) = b.s",
    "a[2].x IS NULL",
    "sum(a[..2].x) > b.x",
    "a[i].x <= max(a[..2].x)",
    "avg(a[..3].y) >= a[a.LEN].y OR last(a[..2].x) = 1",
)


def test_conditions_on_them() -> None:
    """As by brute force: one that names an event that a match has not is void."""
    texts = [
        f"PATTERN {pattern} WHERE {strategy} {{ {condition} }} WITHIN 7 ERRORS {errors}"
        for pattern, condition, strategy, errors in product(
            PATTERNS,
            CONDITIONS,
            ("skip_till_any_match", "skip_till_next_match", "partition_contiguity"),
            (0, 1),
        )
    ]
    ran = 0
    for seed, text in enumerate(Random(3).sample(texts, cases(len(texts), 38))):
        try:
            compile_query(text)
        except QueryError as error:
            assert error.code in ("ACEP-Q900", "ACEP-Q040", "ACEP-Q033", "ACEP-Q098"), text
            continue
        ran += 1
        assert to_text(parse(to_text(parse(text)))) == to_text(parse(text))
        agrees(RichWorld(parse(text), text, stream(Dice(Random(seed)))))
    assert ran > 6


def test_in_any_mixture() -> None:
    """With other conditions, keys, weights and what is listed; in any split."""
    found = 0
    for seed in range(cases(6000, 118)):
        world = rich_world(Random(seed), chooses=seed % 3 == 1, calls=True)
        if not any(end in world.text for end in ("[2]", "[3]", "..2]", "..3]")):
            continue
        found += 1
        merge, dice = MERGES[seed % 3], Random(seed)
        if seed % 3 == 0:
            agrees(world)
        elif seed % 3 == 1:
            chooses_as_brute_force(world, merge, dice)
        else:
            agrees_in_any_split(world, merge, dice)
    assert found > 3


@pytest.mark.parametrize("engine", ["cells", "runs"])
@pytest.mark.parametrize("output", ["matches", "points"])
def test_what_is_returned(engine: str, output: str) -> None:
    """NULL where a match has no such event."""
    returned = "a[2].x AS two, a[3].s AS three, a[2].x + b.x AS both, sum(a[..2].x) AS sum"
    text = f"PATTERN SEQ(ANY+ a[], B b) WITHIN 4 RETURN {returned}"
    query = compile_query(text, engine=engine)  # type: ignore[arg-type]
    for seed in range(20):
        world = RichWorld(parse(text), text, stream(Dice(Random(seed))))
        matches = query.match(world.table())
        shown = matches.to_arrow() if output == "matches" else matches.points()
        listed = compile_query(text.partition(" RETURN")[0]).match(world.table()).to_arrow().to_pylist()
        if output == "points":
            listed = [match for at, match in enumerate(listed) if match["end"] not in {m["end"] for m in listed[:at]}]
            shown = shown.slice(0, 0) if len({row["ts"] for row in world.rows}) < len(world.rows) else shown
            listed = listed if shown.num_rows else []
        for row, match in zip(shown.to_pylist(), listed, strict=True):
            events = [world.rows[at] for at in match["a"]]
            two, three = (events[at] if len(events) > at else dict.fromkeys("xs") for at in (1, 2))
            b = world.rows[match["b"]]["x"]
            assert (row["two"], row["three"]) == (two["x"], three["s"])
            known = [event["x"] for event in events[:2] if event["x"] is not None]
            assert row["sum"] == (sum(known) if len(events) > 1 and known else None)
            assert row["both"] == (None if None in (two["x"], b) else two["x"] + b)


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("a[0].x > 1", "ACEP-Q009"),
        ("a[-1].x > 1", "ACEP-Q009"),
        ("a[1234567890].x > 1", "ACEP-Q009"),
        ("a[4].x > 1", "ACEP-Q098"),
        ("sum(a[..4].x) > 1", "ACEP-Q098"),
        ("sum(a[..0].x) > 1", "ACEP-Q010"),
        ("sum(b[..2].x) > 1", "ACEP-Q034"),
        ("a[..2].x > 1", "ACEP-Q009"),
        ("b[2].x > 1", "ACEP-Q033"),
        ("c[99999].x > b.x", "ACEP-Q905"),
        ("lower(c[2].s) = lower(c[3].s) AND contains(c[2].s, c[3].s)", "ACEP-Q172"),
        ("coalesce(lower(c[2].s), 'x') = upper(concat(c[2].s, c[3].s))", "ACEP-Q011"),
    ],
)
def test_mistakes(condition: str, code: str) -> None:
    """With a hint."""
    with pytest.raises(QueryError) as caught:
        compile_query(f"PATTERN SEQ(A{{2,3}} a[], B b, C+ c[]) WHERE {condition} WITHIN 9")
    assert caught.value.code == code
    assert caught.value.hint


def test_the_first_has_one_name() -> None:
    """``a[1]`` and ``a[01]`` are the first event."""
    query = parse("PATTERN SEQ(A+ a[], B b) WHERE a[01].x = a[1].x AND a[ 2 ].x = 2 WITHIN 9")
    assert query.predicates[0].left == query.predicates[0].right == Attribute("a", "first", "x")  # type: ignore[union-attr]
    assert query.predicates[1].left == Attribute("a", 2, "x")  # type: ignore[union-attr]


def test_why_and_explain_name_them() -> None:
    """The state in which the second event is known, and the condition that failed."""
    query = compile_query("PATTERN SEQ(A{2,} a[], B b) WHERE b.x > a[2].x WITHIN 9")
    assert "remembers x of a[2]" in query.explain()
    assert "a with a[2]" in compile_query("PATTERN SEQ(A+ a[], B b) WHERE b.x > a[2].x WITHIN 9").explain()
    events = [{"ts": at, "type": type_, "x": x} for at, (type_, x) in enumerate([("A", 1), ("A", 5), ("B", 3)])]
    assert "b.x > a[2].x" in str(query.why(events))
