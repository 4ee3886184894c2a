"""Queries that come as many: they are in the set as each by itself would be, and cost little."""

from __future__ import annotations

import gc
import tracemalloc
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import DataError, QueryError, QuerySet, UsageError, compile_query
from acep_approx.query.parameters import with_values
from acep_approx.query.parser import parse
from acep_approx.query.printer import to_text
from acep_approx.subscriptions.graph import FEW, Numbered
from tests.cases import cases

Rows = list[dict[str, Any]]
UP = "PATTERN SEQ(A a, A b) WHERE b.x > a.x WITHIN 9 RETURN b.x AS x PUBLISH Up"
TEMPLATES = (
    "PATTERN SEQ(A a, B b) WHERE a.x > :p AND b.x > :q WITHIN 6",
    "PATTERN SEQ(A a, B b) WHERE [k] AND a.x >= :p AND b.x > :q + a.x WITHIN 9",
    "PATTERN SEQ(Up u, B b) WHERE u.x > :p AND b.x > :q WITHIN 9",
    "PATTERN SEQ(A a, B b) WHERE a.x > :p AND b.x > :q WITHIN 6 RETURN b.x AS x PUBLISH Up",
)
LOW = "PATTERN SEQ(A a, B b) WHERE b.x > :low WITHIN 5"


def stream(dice: Random, rows: int, late: int) -> Rows:
    """Events that are out of order by up to ``late``."""
    return [
        {"ts": 2 * at + dice.randrange(late + 1), "type": dice.choice("AB"), "k": dice.choice("uv"), "x": at * 7 % 10}
        for at in range(rows)
    ]


class Pair:
    """A set whose queries of a template are noticed, and one in which each runs by itself."""

    def __init__(self, dice: Random, late: int) -> None:
        self.dice = dice
        self.desks = [QuerySet(reorder=late, output="points") for _ in range(2)]

    def add(self) -> None:
        """Add some queries, as texts in turns or as a table; kinds of constants differ from time to time."""
        dice, many = self.dice, self.desks[0]
        for _ in range(dice.choice((1, 2, 3))):
            template = dice.choice(TEMPLATES)
            rows = [{"p": dice.randrange(9), "q": dice.choice((0, 3, 5))} for _ in range(dice.choice((1, 1, 2, 5)))]
            if dice.randrange(4) == 0:
                rows = [row | {"q": row["q"] + 0.5} for row in rows]
            texts = [to_text(with_values(parse(template), row)) for row in rows]
            try:
                if dice.randrange(2):
                    many.add_many(template, rows)
                else:
                    for text in texts:
                        many.add(text)
            except UsageError as error:
                with pytest.raises(UsageError) as other:
                    self.desks[1].add(compile_query(texts[0]), id=f"q{self.desks[1]._running.graph.ids_given + 1}")
                assert error.code == other.value.code  # it names one of those that read
                many._running.graph.ids_given = self.desks[1]._running.graph.ids_given
            else:
                for text in texts:
                    self.desks[1].add(compile_query(text))

    def remove(self) -> None:
        """Remove a query, with what reads it."""
        gone = self.dice.choice(list(self.desks[0]))
        told = []
        for desk in self.desks:
            try:
                desk.remove(gone)
                told.append("")
            except UsageError as error:
                told.append(str(error))
                desk.remove(gone, cascade=True)
        assert told[0] == told[1]

    def held_against(self) -> None:
        """Both say the same of themselves."""
        one, other = self.desks
        assert list(one) == list(other)
        assert (len(one), one.levels(), one.streams()) == (len(other), other.levels(), other.streams())
        assert [*one.plans()] == [*other.plans()]

    def save(self) -> None:
        """Go on from states."""
        self.desks = [QuerySet.from_state(desk.state_bytes()) for desk in self.desks]

    def both(self, method: str, *given: Any) -> Rows:
        """The results of both, which are the same."""
        first, second = (getattr(desk, method)(*given) for desk in self.desks)
        assert list(first) == list(second)
        assert first.to_arrow().to_pylist() == second.to_arrow().to_pylist()
        for id_ in first:
            assert first[id_].to_pylist() == second[id_].to_pylist()
        rows: Rows = first.to_arrow().to_pylist()
        return rows


@pytest.mark.parametrize("part", range(4))
def test_they_are_as_each_by_itself(part: int) -> None:
    """Queries come and go while events wait, out of order; sets are saved, and run over whole inputs in between."""
    found = 0
    for seed in range(part, 100, 4):
        if seed >= cases(100, 8) and found > 300:
            break
        dice = Random(seed)
        late = dice.choice((0, 3, 8))
        pair, events = Pair(dice, late), stream(dice, 70, late)
        for desk in pair.desks:
            desk.add(UP)
        while events:
            for _ in range(dice.randrange(3)):
                pair.add()
            while dice.randrange(3) and len(pair.desks[0]):
                pair.remove()
            pair.held_against()
            if dice.randrange(6) == 0:
                pair.save()
            if dice.randrange(6) == 0:
                pair.both("match", sorted(events[:40], key=lambda event: event["ts"]))
            size = dice.choice((1, 3, 9))
            found += len(pair.both("push", events[:size]))
            events = events[size:]
        found += len(pair.both("finish"))
    assert found > 300


def test_what_is_told_of_readers_and_publishers() -> None:
    desk = QuerySet()
    desk.add_many(LOW.replace("B b", "Up b"), [{"low": 1}, {"low": 2}], id="r")
    assert desk.levels() == {0: ["r[0]", "r[1]"]}
    desk.add("PATTERN A a WHERE a.x > 3 WITHIN 5 RETURN a.x AS x PUBLISH Up", id="up")
    assert desk.levels() == {1: ["r[0]", "r[1]"], 0: ["up"]}
    assert desk.streams() == {"Up": (["up"], ["r[0]", "r[1]"])}
    with pytest.raises(UsageError, match=r"U063.*read by 'r\[0\]', 'r\[1\]'"):
        desk.remove("up")
    desk.push([{"ts": ts, "type": "A", "x": ts} for ts in range(9)])
    desk.remove("r[0]")
    desk.add("PATTERN A a WITHIN 5 RETURN a.x AS x PUBLISH Middle", id="middle")
    with pytest.raises(UsageError, match=r"U062.*'r\[1\]' reads 'Up' and runs already"):
        desk.add("PATTERN Middle m WITHIN 5 RETURN m.x AS x PUBLISH Up")
    desk.remove("up", cascade=True)
    assert [*desk] == ["middle"]


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ([{"id": "a", "low": 1}, {"id": "b", "low": 2}, {"id": "a", "low": 3}], "U060.*'a' already"),
        ([{"id": "a", "low": 1}, {"id": "one", "low": 3}], "U060.*'one' already"),
        ([{"id": f"n{at % 10_005}", "low": at} for at in range(10_006)], "U060.*'n0' already"),
        ([{"id": "a", "low": 1}, {"id": "b", "low": None}, {"id": "one", "low": 3}], "U070.*no value in row 1"),
    ],
)  # fmt: skip
def test_none_was_added_where_one_is_wrong(table: Rows, error: str) -> None:
    desk = QuerySet(output="points")
    desk.add(LOW.replace(":low", "3"), id="one")
    with pytest.raises(UsageError, match=error):
        desk.add_many(LOW, table)
    assert list(desk) == ["one"]
    assert desk.levels() == {0: ["one"]}
    desk.add_many(LOW, [{"id": "a", "low": 1}, {"id": "b", "low": 2}])
    events = [{"ts": ts, "type": name, "x": 3} for ts, name in enumerate("AB")]
    assert list(desk.match(events)) == ["a", "b"]


def test_rows_of_any_kind() -> None:
    """What no table of constants holds runs by itself, and the rows around it do not."""
    events = [{"ts": ts, "type": name, "x": 4, "s": "v"} for ts, name in enumerate("AB")]
    tables: dict[str, Any] = {
        "small": pa.table({"low": pa.array([3, 5], pa.int8())}),
        "large": pa.table({"low": pa.array([2**63 - 1, 3], pa.uint64())}),
        "float": pa.table({"low": pa.array([3.5, 4.5], pa.float32())}),
        "names": pa.table({"low": pa.array(["u", "v"]).dictionary_encode()}),
    }
    expected = {"small": [0], "large": [1], "float": [0], "names": [1]}
    for name, table in tables.items():
        desk = QuerySet()
        desk.add_many(LOW.replace("x > :low", "s = :low") if name == "names" else LOW, table, id="n")
        assert list(desk.match(events)) == [f"n[{at}]" for at in expected[name]], name
    desk = QuerySet()
    with pytest.raises(QueryError, match="Q008"):
        desk.add_many(LOW, pa.table({"low": pa.array([3, 2**63], pa.uint64())}))
    assert not len(desk)


def test_a_template_without_parameters() -> None:
    desk = QuerySet()
    desk.add_many(LOW.replace(":low", "3"), [{"id": "a"}, {"id": "b"}])
    assert list(desk.match([{"ts": ts, "type": name, "x": 4} for ts, name in enumerate("AB")])) == ["a", "b"]


def test_what_add_many_gives() -> None:
    """Subscriptions of the queries that were added, whatever became of these since."""
    desk = QuerySet()
    made = desk.add_many(LOW, [{"low": low} for low in range(5)], id="n")
    assert (len(made), made[-1].id, [one.id for one in made[1:3]]) == (5, "n[4]", ["n[1]", "n[2]"])
    assert str(made[:2]) == "[<Subscription 'n[0]'>, <Subscription 'n[1]'>]"
    told: list[int] = []
    assert made[1].on_match(lambda table: told.append(table.num_rows)) is desk.subscription("n[1]") is made[1]
    with pytest.raises(IndexError):
        made[5]
    events = [{"ts": ts, "type": name, "x": 2} for ts, name in enumerate("ABB")]
    desk.match(events)
    assert told == [2]
    desk.remove("n[1]")
    desk.add_many(LOW, [{"low": 0, "id": "n[1]"}])
    desk.match(events)
    assert told == [2]


def test_queries_that_do_not_fit_are_told_each() -> None:
    desk = QuerySet()
    desk.add_many(LOW.replace("b.x", "b.y"), [{"low": 1}, {"low": 2}], id="wrong")
    desk.add_many(LOW, [{"low": 1}, {"low": "u"}, {"low": "v"}][:1] * 2, id="right")
    desk.add_many(LOW, [{"low": "u"}, {"low": "v"}], id="text")
    events = [{"ts": ts, "type": name, "x": 2} for ts, name in enumerate("AB")]
    misfits: dict[str, str] = {}
    found = list(desk.batches(events, on_misfit=lambda id_, error: misfits.update({id_: error.code})))
    assert [*misfits] == ["wrong[0]", "wrong[1]", "text[0]", "text[1]"]
    assert [id_ for some in found for id_ in some] == ["right[0]", "right[1]"]
    with pytest.raises((DataError, QueryError)):
        desk.match(events)


@pytest.mark.parametrize("way", ["a table", "texts"])
def test_an_idle_query_of_a_template_costs_little(way: str) -> None:
    """Hundreds of bytes: what they have in common stands once."""
    nowhere = [{"ts": ts, "type": "C", "x": 0} for ts in range(3)]

    def held(queries: int) -> int:
        gc.collect()
        tracemalloc.start()
        desk = QuerySet(output="points")
        if way == "texts":
            for low in range(queries):
                desk.add(LOW.replace(":low", str(low)))
        else:
            desk.add_many(LOW, pa.table({"low": np.arange(queries)}))
        desk.push(nowhere)
        desk.finish()
        gc.collect()
        size = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert len(desk) == queries
        return size

    held(10)
    assert (held(700) - held(10)) / 700 < 400


def test_numbers_are_found_among_those_that_are_gone() -> None:
    known: Numbered[str] = Numbered()
    known.add(range(0, 20 * FEW, 2), map(str, range(10 * FEW)), "one")
    dice = Random(1)
    left = {2 * at: str(at) for at in range(10 * FEW)}
    for number in dice.sample([*left], 9 * FEW):
        assert known.pop(number) == (left.pop(number), "one")
        assert known.id(number) is None
    assert [*known] == [(number, id_, "one") for number, id_ in left.items()]
    assert known.of(np.array([*left])) == ([*left.values()], ["one"] * len(left))
    some = [*left][::2]
    assert known.give([*some, 1, 20 * FEW], "one", "other") == len(some)
    assert known.give(some, "one", "other") == 0
    assert {number for number, _, owner in known if owner == "other"} == {*some}
