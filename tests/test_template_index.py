"""The index over constants finds every query that an event may begin a run of, whenever it was made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from acep_approx import QuerySet, compile_query
from acep_approx.kernels import pairs as kernel
from acep_approx.matching.keyed_events import KeyedEvents
from acep_approx.subscriptions.templates import pairing
from acep_approx.subscriptions.templates.pair_runs import in_order
from acep_approx.subscriptions.templates.pairing import Pairing
from tests.cases import cases
from tests.template_worlds import EDGES, KEYS, events, members, text_of

TEMPLATES = {
    "below": "PATTERN SEQ(A a, B b) WHERE [k] AND a.x < :p AND b.y > a.y WITHIN :w",
    "at most": "PATTERN SEQ(A a, B b) WHERE [k] AND a.x <= :p WITHIN :w",
    "above, turned": "PATTERN SEQ(A a, B b) WHERE [k] AND :p < a.x WITHIN :w",
    "at least": "PATTERN SEQ(A a, B b) WHERE a.x >= :p AND b.x = a.x WITHIN :w",
    "between": "PATTERN SEQ(A a, B b) WHERE [k] AND a.x > :p AND a.x < :q AND a.y <= :f WITHIN :w",
    "fractions": "PATTERN SEQ(A a, B b) WHERE [k] AND a.y >= :f AND a.y < :g WITHIN :w",
    "equal": "PATTERN SEQ(A a, B b) WHERE [k] AND a.x = :p AND b.x >= :q WITHIN :w",
    "equal fractions": "PATTERN SEQ(A a, B b) WHERE [k] AND a.y = :f WITHIN :w",
    "of the key": "PATTERN SEQ(A a, B b) WHERE [k] AND a.k = :k AND b.x > :p WITHIN :w",
    "of one of two keys": "PATTERN SEQ(A a, B b) WHERE [k] AND [x] AND a.k = :k AND b.y > a.y WITHIN :w",
    "two begin": "PATTERN SEQ((A a | C c), B b) WHERE [k] AND a.k = :k AND c.x > :p WITHIN :w",
    "two begin by the key": "PATTERN SEQ((A a | C c), B b) WHERE [k] AND a.k = :k AND c.k = :k WITHIN :w",
    "beside an int and a fraction": "PATTERN SEQ(A a, B b) WHERE [k] AND a.x > :p AND a.y > :p AND b.x >= :p WITHIN :w",
    "times of a key": "PATTERN SEQ(A a, B b) WHERE partition_contiguity { [k] AND a.k = :k } WITHIN :w SIMULTANEOUS",
    "together": "PATTERN SEQ(A a, B b) WHERE [k] AND a.k = :k AND b.x > :p WITHIN :w SIMULTANEOUS",
}  # fmt: skip


def constants(dice: Random, queries: int, few_keys: int) -> list[dict[str, Any]]:
    return [
        {
            "p": dice.randrange(-2, 7),
            "q": dice.randrange(-2, 7),
            "f": dice.choice(EDGES),
            "g": dice.choice(EDGES),
            "k": f"k{dice.randrange(few_keys)}",
            "w": dice.randrange(0, 25),
        }
        for _ in range(queries)
    ]


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("output", ["matches", "points"])
def test_what_the_index_finds_is_what_each_query_finds_alone(name: str, output: Any) -> None:
    for seed in range(cases(15, 3)):
        dice = Random(f"{name} {seed}")
        data, rows = events(dice, 100), constants(dice, 12, dice.choice([3, KEYS]))
        desk = QuerySet(output=output)
        desk.add_many(TEMPLATES[name], rows)
        step, found = dice.choice([1000, 50, 7]), Counter[str]()
        for at in range(0, len(data), step):
            found += Counter(map(str, desk.push(data.slice(at, step)).to_arrow().to_pylist()))
        found += Counter(map(str, desk.finish().to_arrow().to_pylist()))
        assert members(desk)
        apart = QuerySet(output=output)
        for number, row in enumerate(rows):
            apart.add(compile_query(text_of(TEMPLATES[name], row)), id=f"q{number + 1}")  # runs by itself
        assert found == Counter(map(str, apart.match(data).to_arrow().to_pylist())), seed


def test_queries_come_one_by_one_beside_the_index_and_rows_are_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(cases(20, 3)):
        dice = Random(seed)
        monkeypatch.setattr(pairing, "LATE_SHARE", dice.choice([0.01, 1]))
        data, template = events(dice, 240), TEMPLATES[dice.choice(["of the key", "between", "fractions", "two begin"])]
        together, apart, texts = QuerySet(output="points"), QuerySet(output="points"), dict[str, str]()
        first = constants(dice, 20, 5)
        for at in range(0, len(data), 4):
            rows = first if at == 0 else constants(dice, dice.choice([0, 1, 1, 2]), KEYS)
            for row in rows:
                made = together.add(text_of(template, row))
                texts[made.id] = text_of(template, row)
                apart.add(compile_query(texts[made.id]), id=made.id)
            if dice.random() < 0.5 and len(together) > 5:
                gone = dice.choice([*together])
                together.remove(gone)
                apart.remove(gone)
            results = [
                Counter(map(str, desk.push(data.slice(at, 4)).to_arrow().to_pylist())) for desk in (together, apart)
            ]
            assert results[0] == results[1], (seed, at)
        assert 1 <= len(members(together)) <= 8  # -0.0 is another outline than 0.0, and so are 0 and 0.0


def test_what_comes_alone_is_run_with_the_next_of_its_outline() -> None:
    desk = QuerySet()
    for number in range(5):
        desk.add(f"PATTERN SEQ(A a, B b) WHERE a.x > {number} WITHIN 5")
        desk.push([{"ts": number, "type": "A", "x": 1}])
    (member,) = members(desk)
    assert sorted(member.table.numbers[member.table.is_there]) == [1, 2, 3]  # the last one waits for the open epoch


def test_queries_that_come_late_are_tried_beside_the_index_until_they_are_many() -> None:
    desk = QuerySet(output="points")
    text = "PATTERN SEQ(A a, B b) WHERE [k] AND a.k = {} WITHIN 5"
    for number in range(500):
        desk.add(text.format(number))
    desk.push([{"ts": t, "type": "A", "k": 0} for t in range(2)])
    assert members(desk)[0].runs.pairing._queries.late.size == 0
    late, found = [], 0
    for number in range(500, 520):
        desk.add(text.format(number))
        found += desk.push([{"ts": 2 * number + i, "type": name, "k": number} for i, name in enumerate("AB")]).rows
        late.append(members(desk)[0].runs.pairing._queries.late.size)
    assert found + desk.finish().rows == 20
    assert max(late) == 500 * pairing.LATE_SHARE
    assert late.count(0) > 1


def test_only_the_events_of_keys_that_constants_name_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where results show attributes of events."""
    seen: list[int] = []
    find = Pairing.find

    def counted(self: Pairing, events: KeyedEvents, *rest: Any) -> Any:
        seen.append(len(events.literal))
        return find(self, events, *rest)

    monkeypatch.setattr(Pairing, "find", counted)
    desk = QuerySet()
    desk.add_many("PATTERN SEQ(A a, A b) WHERE [k] AND a.k = :k WITHIN 100 RETURN b.k AS c", [{"k": 3}, {"k": 5}])
    found = desk.match([{"ts": t, "type": "A", "k": t % 20} for t in range(200)])
    assert found.rows == 2 * (9 + 8 + 7 + 6 + 5)  # each has ten events, twenty apart: pairs of one to five steps
    assert seen == [20]


@pytest.mark.parametrize("output", ["points", "counts", "matches"])
def test_a_query_that_comes_late_begins_on_its_key(output: Any) -> None:
    """It is tried beside the index; no query asked for its key before."""
    text = "PATTERN SEQ(A a, B b) WHERE [k] AND a.k = :k AND b.x > a.x WITHIN 9"
    desk = QuerySet(output=output)
    desk.add_many(text, [{"k": k} for k in range(150)])
    desk.push([{"ts": ts, "type": "A", "k": ts, "x": 0} for ts in range(3)])
    late = desk.add_many(text, [{"k": 999}])[0].id
    found = desk.push([{"ts": ts, "type": "AB"[ts % 2], "k": 999, "x": ts} for ts in range(10, 15)])
    assert found.rows == len(found[late]) == (3 if output == "matches" else 2)


def test_orders_are_those_of_lexsort() -> None:
    dice = np.random.default_rng(1)
    for rows in (0, 1, 500):
        for wide in (1, 3, 1 << 40):
            keys = [dice.integers(-wide, wide, rows) for _ in range(3)]
            assert in_order(*keys).tolist() == np.lexsort(keys).tolist()


@pytest.mark.parametrize("mutant", ["an edge left out", "one too few", "late ones forgotten", "below for above"])
def test_mutants_are_noticed(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be found wrong without the index of thresholds being right at its edges."""
    sorted_, indexed = pairing._sorted, pairing._indexed
    if mutant == "an edge left out":
        monkeypatch.setattr(pairing, "_sorted", lambda *args: tuple(a[1:] for a in sorted_(*args)))
    elif mutant == "one too few":
        monkeypatch.setattr(pairing, "_sorted", lambda *args: tuple(a[:-1] for a in sorted_(*args)))
    elif mutant == "late ones forgotten":
        monkeypatch.setattr(kernel.Queries, "_replace", lambda self, **_: self)
    else:
        monkeypatch.setattr(pairing, "ORDERED", {op: pairing.ORDERED[{"<": ">", ">": "<", "<=": ">=", ">=": "<="}[op]]
                                               for op in pairing.ORDERED})  # fmt: skip
        monkeypatch.setattr(pairing, "_indexed", indexed)
    tests: tuple[Callable[[], None], ...] = (
        lambda: test_what_the_index_finds_is_what_each_query_finds_alone("between", "points"),
        lambda: test_what_the_index_finds_is_what_each_query_finds_alone("below", "points"),
        lambda: test_queries_come_one_by_one_beside_the_index_and_rows_are_used_again(monkeypatch),
    )
    assert any(map(fails, tests))


def fails(test: Callable[[], None]) -> bool:
    try:
        test()
    except AssertionError:
        return True
    return False
