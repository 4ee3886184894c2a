"""A template with a table of constants gives what each of its queries gives alone."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx.api.query import Query
from acep_approx.archive import Scope
from acep_approx.errors import QueryError, UnsupportedError
from acep_approx.events.roles import infer_roles
from acep_approx.events.source import open_source
from acep_approx.events.stream import read_events
from acep_approx.matching.state import restored_stream, save_stream
from acep_approx.matching.stream_side import StreamSide
from acep_approx.planning.planner import plan
from acep_approx.query.parameters import with_values
from acep_approx.query.parser import parse
from acep_approx.query.printer import to_text
from acep_approx.results.matches import Matches
from acep_approx.subscriptions.templates.literals import Literals
from acep_approx.subscriptions.templates.member import TemplateSide
from acep_approx.subscriptions.templates.query_table import QueryTable
from acep_approx.subscriptions.templates.template import Template
from tests.cases import cases
from tests.rich_worlds import rich_world
from tests.template_worlds import read_as_parsed

KINDS: dict[str, Any] = {"s": "text", "p": "int", "f": "float", "w": "int"}
TEMPLATES = {
    "cells, a key that a constant equals": ("SEQ(A a, B b) WHERE [k] AND a.k = :s AND a.x > :p WITHIN 9", "sp"),
    "a window of each query": ("SEQ(A a, B b) WHERE [k] AND a.k = :s AND b.y > :f*a.y WITHIN :w", "sfw"),
    "no key": ("SEQ(A a, B b, C c) WHERE a.k = :s AND b.x > a.x AND c.x >= :p WITHIN :w", "spw"),
    "next, Kleene": (
        "SEQ(A a, B+ b[], C c) WHERE skip_till_next_match { [k] AND a.x > :p AND b[i].y > :f * a.y } WITHIN 12", "pf"),
    "partition": ("SEQ(A a, B b) WHERE partition_contiguity { [k] AND b.x > :p } WITHIN 12", "p"),
    "strict": ("SEQ(A a, B b) WHERE strict_contiguity { a.x > :p } WITHIN 12", "p"),
    "negation": ("SEQ(A a, ~C c, B b) WHERE [k] AND c.x > :p WITHIN 9", "p"),
    "errors": ("SEQ(A a, B b, C c) WHERE [k] AND b.x > :p WITHIN 8 ERRORS 1 WEIGHTS (a=2)", "p"),
    "simultaneous": ("SEQ(A a, B b) WHERE [k] AND b.x > a.x + :p WITHIN 8 SIMULTANEOUS", "p"),
    "or, non overlap": ("SEQ(A a, B b) WHERE [k] AND (a.x > :p OR a.y < :f) WITHIN :w NON OVERLAP", "pfw"),
    "return": ("SEQ(A a, B b) WHERE [k] AND a.x > :p WITHIN 9 RETURN a.y AS u, b.x AS v", "p"),
    "a product of the event": ("SEQ(A a, B b) WHERE a.x * 2 > :p AND b.y <= :f AND b.k = a.k WITHIN :w", "pfw"),
    "fractions against whole numbers": ("SEQ(A a, B b) WHERE [k] AND a.x > :f AND b.y > :p WITHIN 9", "fp"),
    "one constant": ("SEQ(A a, B b, C c) WHERE a.k = :s AND b.k = :s AND c.k = :s AND b.x > a.x WITHIN :w", "sw"),
    "cells, one constant": ("SEQ(A a, B+ b[]) WHERE :s = a.k AND b[i].k = :s AND b[i].x > :p WITHIN 9 ERRORS 1", "sp"),
    "strict, one constant": ("SEQ(A a, B b) WHERE strict_contiguity { a.k = :s AND b.k = :s } WITHIN 9", "s"),
    "either begins": ("SEQ((A a | B b), C c) WHERE [k] AND a.k = :s AND b.x > :p WITHIN 7", "sp"),
}  # fmt: skip


LITERAL = re.compile(r"(?<![\w.'{\[:])\d+(?![\w.'}\]])")


def events(seed: int, rows: int) -> pa.Table:
    """Ties, NULLs, and keys that are silent for long."""
    dice = Random(seed)

    def some(value: Any) -> Any:
        return None if dice.random() < 0.04 else value

    columns = {
        "ts": [i // 2 for i in range(rows)],
        "type": [dice.choice("ABCD") for _ in range(rows)],
        "k": [some(dice.choice("uvw") if i % 200 < 120 else "q") for i in range(rows)],
        "x": [some(dice.randrange(10)) for _ in range(rows)],
        "y": [some(dice.random() * 10) for _ in range(rows)],
    }
    return pa.table(columns)


def constants(seed: int, queries: int, names: str) -> pa.Table:
    dice = Random(seed)
    ways = {
        "s": lambda: dice.choice("uvwzq"),
        "p": lambda: dice.randrange(10),
        "f": lambda: dice.choice([0.5, 1.0, 1.5, 4.0]),
        "w": lambda: dice.randrange(0, 30),
    }
    return pa.table({name: [ways[name]() for _ in range(queries)] for name in names})


def member_on(text: str, data: pa.Table, output: Any, names: str) -> TemplateSide:
    template = Template.of(parse(f"PATTERN {text}"))
    assert template is not None
    side = StreamSide(data.schema, infer_roles(data.schema))
    member = TemplateSide(side, template, QueryTable({name: KINDS[name] for name in names}), output)
    member.join()
    return member


def rows_of(table: pa.Table) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in table.to_pylist())


def table_of(matches: Matches, output: str) -> pa.Table:
    return {"points": matches.points, "counts": matches.counts, "matches": matches.to_arrow}[output]()


def alone(text: str, values: dict[str, Any], data: pa.Table, output: str, number: int) -> pa.Table:
    found = table_of(Query(plan(with_values(parse(f"PATTERN {text}"), values))).match(data), output)
    return found.add_column(0, "query", pa.array([number] * found.num_rows, pa.int64()))


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("output", ["points", "counts", "matches"])
def test_a_template_is_each_of_its_queries_alone(name: str, output: str) -> None:
    text, names = TEMPLATES[name]
    data, table = events(len(name), 320), constants(len(output), 12, names)
    expected = [row for i, one in enumerate(table.to_pylist()) for row in rows_of(alone(text, one, data, output, i))]
    assert expected
    for split in (1000, 41, 1):
        member = member_on(text, data, output, names)
        member.table.add(np.arange(12), table)
        member.set_up()
        side, found = member.stream, []
        for batch in read_events(open_source(data), side.roles, columns=side.columns, batch_rows=split):
            found += [row for _, part in side.run(batch) for row in rows_of(part)]
        assert sorted(found) == sorted(expected), (name, output, split)


@pytest.mark.parametrize("name", ["cells, a key that a constant equals", "a window of each query", "no key"])
def test_queries_come_and_go(name: str) -> None:
    """Each query sees its part of the stream, and rows of the table are used again."""
    text, names = TEMPLATES[name]
    data, table = events(7, 900), constants(3, 30, names)
    member = member_on(text, data, "points", names)
    side, dice = member.stream, Random(5)
    life: dict[int, list[int]] = {}
    found: list[str] = []
    for number, batch in enumerate(read_events(open_source(data), side.roles, columns=side.columns, batch_rows=30)):
        if number < 30:
            member.table.add(np.array([number]), table.slice(number, 1))
            life[number] = [number * 30, 900]
        if number % 3 == 2:
            gone = dice.choice([one for one, (_, end) in life.items() if end == 900])
            member.table.remove(gone)
            life[gone][1] = number * 30
        found += [row for _, part in side.run(batch) for row in rows_of(part)]
    expected = []
    for number, (first, end) in life.items():
        part = alone(text, table.slice(number, 1).to_pylist()[0], data.slice(first, end - first), "points", number)
        row = part.column_names.index("row")
        shifted = pa.array([value + first for value in part.column("row").to_pylist()], pa.int64())
        expected += rows_of(part.set_column(row, "row", shifted))
    assert sorted(found) == sorted(expected)
    assert np.flatnonzero(member.table.is_there).max() < 25  # rows of those that went


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("output", ["points", "counts", "matches"])
def test_a_restart_is_no_interruption(name: str, output: str) -> None:
    text, names = TEMPLATES[name]
    data, table = events(len(name) + 1, 320), constants(len(output), 12, names)
    whole, again = (member_on(text, data, output, names) for _ in range(2))
    for member in (whole, again):
        member.table.add(np.arange(12), table)
        member.set_up()
    batches = list(read_events(open_source(data), whole.stream.roles, columns=whole.stream.columns, batch_rows=64))
    for number, batch in enumerate(batches):
        if number in (1, 3):
            scope = Scope()
            again.save(scope.sub("member"))
            save_stream(again.stream, scope.sub("stream"))
            side = restored_stream(scope.parts["stream"], scope.words)
            again = TemplateSide(side, again.template, QueryTable(again.table.kinds), again.output)
            again.join()
            again.restore(scope.parts["member"])
        if number == 2:
            for member in (whole, again):
                member.table.remove(5)
        found, after = ([row for _, part in one.stream.run(batch) for row in rows_of(part)] for one in (whole, again))
        assert sorted(found) == sorted(after), (name, output, number)


def test_the_constant_that_all_events_have_is_a_key() -> None:
    """Unless other events matter, too: for a letter that asks for none, or for neighbours."""
    keys = {name: member_on(text, events(1, 20), "points", names) for name, (text, names) in TEMPLATES.items()}
    implied = {name: member.template.plan.implied_key for name, member in keys.items()}
    assert {name for name, key in implied.items() if key == "k"} == {"one constant", "cells, one constant"}
    assert set(implied.values()) == {None, "k"}


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(A a, B b) WHERE a.x > :p WITHIN 5 events",
        "SEQ(A a, B b, ~C c) WHERE a.x > :p WITHIN 5",
        "SEQ(A a, B b) WHERE a.x > :p WITHIN 5 RETURN :p AS p",
        "SEQ(A+ a[], B+ b[]) WHERE b[i].x % a[i].x = :p WITHIN 5",
        "SEQ(A a, B b) WHERE :p > 3 AND b.x > 0 WITHIN 5",
    ],
)
def test_what_is_no_template(text: str) -> None:
    assert Template.of(parse(f"PATTERN {text}")) is None


def test_texts_are_read_as_if_each_was_parsed() -> None:
    """Against the parser, on the queries of the random worlds, each with its numbers and strings changed."""
    texts = (to_text(rich_world(Random(seed), seed % 5 == 0, calls=True).query) for seed in range(cases(400, 80)))
    assert read_as_parsed(texts, LITERAL, 4) > 100


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("PATTERN SEQ(A a, B b) WHERE b.x > 3 AND a.s = 'it''s' AND b.y IN (1, 2) WITHIN 5 s ERRORS 1", [3, "it's", 5]),
        ("PATTERN SEQ(A a, B b) WHERE b.s LIKE 'x%' AND substr(b.s, 2) = 'y' AND round(b.x, 1) > abs(b.y - 3) WITHIN 4",
         ["y", 3, 4]),
        ("PATTERN SEQ('q 1' a, B{2,3} b[]) WHERE a.x > -4.5 AND b[1].x > 2 -- 7\n WITHIN 7 events", [-4.5, 2]),
        ("PATTERN SEQ(A a, B b) WHERE a.`x 1` != 4 AND NOT (b.x = 2.0 OR b.t) WITHIN 2.5 s", []),
    ],
)
def test_which_literals_are_parameters(text: str, values: list[Any]) -> None:
    read = Literals().read(text)
    assert list(read.values.values()) == values
    assert with_values(read.syntax, read.values) == parse(text)


def test_a_number_that_is_too_large_is_refused_in_a_known_outline() -> None:
    known = Literals()
    known.read("PATTERN SEQ(A a, B b) WHERE b.x > 3 WITHIN 5")
    with pytest.raises(QueryError, match="too large"):
        known.read("PATTERN SEQ(A a, B b) WHERE b.x > 99999999999999999999 WITHIN 5")


def test_random_templates_are_each_of_their_queries_alone() -> None:
    """Random queries of the whole language, with all their constants as parameters, and other constants beside them."""
    made, names = 0, {int: "int", float: "float", str: "text"}
    for seed in range(cases(1500, 140)):
        dice = Random(seed)
        world = rich_world(dice, dice.random() < 0.2, calls=True)
        read = Literals().read(world.text)
        try:
            plan(world.query)
        except UnsupportedError:  # refused as it is
            continue
        template = None if world.query.is_regex else Template.of(read.syntax)
        if template is None or not read.values:
            continue
        data, output = world.table(), dice.choice(["points", "counts", "matches"])
        kinds: dict[str, Any] = {name: names[type(value)] for name, value in read.values.items()}
        rows = [read.values, *({n: _near(dice, v) for n, v in read.values.items()} for _ in range(3))]
        expected = []
        try:
            for number, row in enumerate(rows):
                found = table_of(Query(plan(with_values(read.syntax, row))).match(data), output)
                expected += rows_of(found.add_column(0, "query", pa.array([number] * found.num_rows, pa.int64())))
            side = StreamSide(data.schema, infer_roles(data.schema))
            member = TemplateSide(side, template, QueryTable(kinds), output)  # type: ignore[arg-type]
        except QueryError:  # a string that a time is compared with: such queries are run one by one
            continue
        member.join()
        member.table.add(np.arange(4), pa.Table.from_pylist(rows))
        member.set_up()
        batches = read_events(open_source(data), side.roles, columns=side.columns, batch_rows=dice.choice([2, 5, 100]))
        got = [row for batch in batches for _, part in side.run(batch) for row in rows_of(part)]
        assert sorted(got) == sorted(expected), (seed, world.text, output)
        made += 1
    assert made > cases(1500, 140) // 5


def _near(dice: Random, value: Any) -> Any:
    if isinstance(value, str):
        return dice.choice(["u", "v", "w", value])
    return max(value + dice.randrange(-2, 3), 0)
