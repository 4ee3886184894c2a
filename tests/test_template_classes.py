"""Queries that share their runs find what each finds alone, whenever they come and go."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import DataError, QuerySet, compile_query
from acep_approx.archive import Scope
from acep_approx.query.parser import parse
from acep_approx.subscriptions.templates import classes
from acep_approx.subscriptions.templates.classes import Classes, _ending_letter
from acep_approx.subscriptions.templates.query_table import QueryTable
from acep_approx.subscriptions.templates.template import Template
from tests.cases import cases
from tests.template_worlds import events, members, text_of

TEMPLATES = {
    "window and end": "PATTERN SEQ(A a, B b) WHERE [k] AND a.k = :k AND b.x > :p WITHIN :w",
    "window alone": "PATTERN SEQ(A a, B b) WHERE [k] AND a.x > :p AND b.y > a.y WITHIN :w",
    "end alone": "PATTERN SEQ(A a, A b, B c) WHERE a.x < b.x AND c.x <= :p AND c.x >= :q WITHIN 15",
    "end, below": "PATTERN SEQ(A a, B b) WHERE [k] AND a.y >= :g AND b.y < :f AND b.x > a.x WITHIN 15",
    "of runs too": "PATTERN SEQ(A a, B b, B c) WHERE [k] AND b.x > a.x + :q AND c.x < :p WITHIN :w",
    "Kleene before": "PATTERN SEQ(A a, A+ b[], B c) WHERE [k] AND b[i].x > :q AND c.x > :p WITHIN :w",
}
APART = {
    "negation": "PATTERN SEQ(A a, ~C n, B b) WHERE [k] AND n.x > :q AND b.x > :p WITHIN :w",
    "one constant twice": "PATTERN SEQ(A a, B b) WHERE [k] AND a.x > :p AND b.x > :p WITHIN 9",
    "errors": "PATTERN SEQ(A a, B b, C c) WHERE [k] AND c.x > :p WITHIN :w ERRORS 1",
    "next": "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [k] AND b.x > :p } WITHIN :w",
    "non overlap": "PATTERN SEQ(A a, B b) WHERE [k] AND b.x > :p WITHIN :w NON OVERLAP",
    "Kleene at the end": "PATTERN SEQ(A a, B+ b[]) WHERE [k] AND b[i].x > :p WITHIN 9",
    "two ends": "PATTERN SEQ(A a, (B b | C c)) WHERE [k] AND b.x > :p WITHIN 9",
    "one event": "PATTERN SEQ(A a) WHERE [k] AND a.x > :p WITHIN 9",
    "simultaneous": "PATTERN SEQ(A a, B b) WHERE [k] AND b.x > :p WITHIN :w SIMULTANEOUS",
    "equal": "PATTERN SEQ(A a, B b) WHERE [k] AND b.x = :p WITHIN 9",
}


@pytest.fixture(autouse=True)
def few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classes, "FEWEST", 4)


def constants(dice: Random, queries: int) -> list[dict[str, Any]]:
    """Few different ones, so that queries are alike."""
    return [
        {
            "p": dice.randrange(-1, 4),
            "q": dice.choice([-1, 1]),
            "f": dice.choice([0.25, 0.5, 3.0]),
            "g": dice.choice([0.0, 0.5]),
            "k": f"k{dice.randrange(3)}",
            "w": dice.randrange(0, 25),
        }
        for _ in range(queries)
    ]


def shares(desk: QuerySet) -> bool:
    return any(member.classes is not None for member in members(desk))


def disagreement(name: str, template: str, seed: int) -> tuple[bool, int]:
    """Whether runs were shared, and how many points; queries come and go, and it is interrupted."""
    dice = Random(f"{name} {seed}")
    data, first = events(dice, 160), constants(dice, 20)
    together, apart = QuerySet(output="points"), QuerySet(output="points")
    together.add_many(template, [{name: row[name] for name in row if f":{name}" in template} for row in first], id="m")
    for number, row in enumerate(first):
        apart.add(compile_query(text_of(template, row)), id=f"m[{number}]")
    found, was_shared = 0, False
    for at in range(0, len(data), 16):
        for row in constants(dice, dice.choice([0, 1, 3])) if at else []:
            names = {name: row[name] for name in row if f":{name}" in template}
            (made,) = together.add_many(template, [names], id=f"at {at} {len(together)}")
            apart.add(compile_query(text_of(template, row)), id=made.id)
        if dice.random() < 0.5:
            gone = dice.choice([*together])
            together.remove(gone)
            apart.remove(gone)
        results = [desk.push(data.slice(at, 16)) for desk in (together, apart)]
        rows = [Counter(map(str, one.to_arrow().to_pylist())) for one in results]
        assert rows[0] == rows[1], (seed, at)
        found += results[0].rows
        was_shared = shares(together)
        if dice.random() < 0.3:
            together = QuerySet.from_state(together.state_bytes())
    rows = [Counter(map(str, desk.finish().to_arrow().to_pylist())) for desk in (together, apart)]
    assert rows[0] == rows[1], seed
    return was_shared, found


@pytest.mark.parametrize("name", TEMPLATES)
def test_queries_that_share_runs_find_what_each_finds_alone(name: str) -> None:
    found = 0
    for seed in range(40):
        if seed >= cases(40, 2) and found > 100:  # the first two show every mutant
            break
        was_shared, points = disagreement(name, TEMPLATES[name], seed)
        assert was_shared
        found += points
    assert found > 100


@pytest.mark.parametrize("name", APART)
def test_queries_that_cannot_share_runs_do_not(name: str) -> None:
    for seed in range(cases(10, 2)):
        was_shared, _ = disagreement(name, APART[name], seed)
        assert not was_shared


def test_queries_that_differ_in_what_begins_do_not_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classes, "FEWEST", 64)
    text = "PATTERN SEQ(A a, B b) WHERE a.x = :s AND b.x > :p WITHIN :w"
    for few, is_shared in ((100, False), (5, True)):
        desk = QuerySet(output="points")
        desk.add_many(text, [{"s": i % few, "p": i, "w": 9} for i in range(100)])
        desk.push([{"ts": t, "type": "A", "x": t} for t in range(3)])
        assert shares(desk) == is_shared


def test_matches_and_counts_are_run_for_each_query() -> None:
    for output in ("matches", "counts"):
        desk = QuerySet(output=output)  # type: ignore[arg-type]
        desk.add_many("PATTERN SEQ(A a, B b) WHERE b.x > :p WITHIN :w", [{"p": 1, "w": w} for w in range(20)])
        desk.push([{"ts": t, "type": "A", "x": t} for t in range(3)])
        assert not shares(desk)


@pytest.mark.parametrize("text", [*TEMPLATES.values()])
def test_the_letter_that_ends_all_matches(text: str) -> None:
    template = Template.of(parse(text))
    assert template is not None
    ending = _ending_letter(template)
    assert ending is not None
    assert template.plan.letters[ending].type == "B"


def test_a_state_with_wrong_classes_is_refused() -> None:
    data = events(Random(1), 40)
    desk = QuerySet(output="points")
    desk.add_many(TEMPLATES["window and end"], [{"k": "k1", "p": i % 3, "w": i} for i in range(12)])
    desk.push(data)
    (member,) = members(desk)
    assert member.classes is not None
    good = Scope()
    member.classes.save(good)
    for name, wrong in (("of", [7]), ("of", [-1]), ("since", None)):
        kept = good.arrays[name]
        scope = Scope(good.head, {**good.arrays, name: kept[:-1] if wrong is None else np.array(wrong * len(kept))})
        table = QueryTable(member.table.kinds)
        table.restore(member.table.to_state())
        with pytest.raises(DataError, match="ACEP-D040"):
            Classes(member.classes.loose, table).restore(scope)


def test_a_query_that_comes_to_a_class_sees_nothing_that_began_before() -> None:
    desk = QuerySet(output="points")
    text = "PATTERN SEQ(A a, B b) WHERE b.x > :p WITHIN :w"
    desk.add_many(text, [{"p": 5, "w": 3} for _ in range(8)])
    rows = [{"ts": t, "type": name, "x": 9} for t, name in enumerate("AABBAB")]
    assert desk.push(rows[:2]).rows == 0
    (late,) = desk.add_many(text, [{"p": 5, "w": 100}], id="late")
    found = pa.concat_tables([desk.push(rows[2:])[late.id], desk.finish()[late.id]])
    assert found.select(["start", "end"]).to_pylist() == [{"start": 4, "end": 5}]


@pytest.mark.parametrize("mutant", ["the first window", "since forgotten", "narrowest", "any letter ends"])
def test_mutants_are_noticed(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if mutant == "the first window":
        monkeypatch.setattr(QueryTable, "widen", lambda *_: None)
    elif mutant == "since forgotten":
        take = Classes.take
        monkeypatch.setattr(Classes, "take", lambda self, rows, since: take(self, rows, classes.NEVER))
    elif mutant == "narrowest":
        widest = classes.Loose.widest.fget  # type: ignore[attr-defined]
        turned = {np.fmin: np.fmax, np.fmax: np.fmin}
        monkeypatch.setattr(classes.Loose, "widest", property(lambda s: {n: turned[w] for n, w in widest(s).items()}))
    else:
        monkeypatch.setattr(classes, "_ending_letter", lambda _: 0)
    names = ("window and end", "of runs too", "window alone")
    assert any(is_wrong(name, seed) for seed in range(10) for name in names)


def is_wrong(name: str, seed: int) -> bool:
    try:
        disagreement(name, TEMPLATES[name], seed)
    except AssertionError:
        return True
    return False
