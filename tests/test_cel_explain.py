"""What is said of queries in CEL: the plan in words, warnings, drawings, and their automata as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from acep_approx import UsageError, compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.automaton.words import computes, thresholds
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.runs.step_code import NOTHING
from acep_approx.planning.explain import air
from tests.air_machine import AirMachine
from tests.cases import cases
from tests.cayuga_examples import EXAMPLES
from tests.cel_runs import found
from tests.cel_worlds import cel_world
from tests.command_line import acep

FALLING = "SELECT price_1 AS high, price AS low FROM Stock FOLD{$2.name = $.name, $2.price < $.price, } Stock"
RISING = (
    "SELECT price_1 AS low, price AS high FROM FILTER{price > 83}(Stock NEXT{$2.price > $1.price} Stock) WITHIN 9 s"
)


def section(text: str, label: str) -> list[str]:
    """The lines of a section."""
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith(f"{label} "))
    rest = lines[first + 1 :]
    more = next((number for number, line in enumerate(rest) if not line.startswith("   ")), len(rest))
    return [line[9:] for line in lines[first : first + 1 + more]]


# --- words --------------------------------------------------------------------------------------------------------


def test_states_and_edges_are_told_in_the_words_of_the_query() -> None:
    text = compile_query(f"{FALLING} WITHIN 10 min").explain()
    assert section(text, "states") == [
        "start",
        "  forward to q1: Stock; price = price, $.name = name, $.price = price",
        "q1 (FOLD) waits for Stock; remembers $.name, $.price, start, price",
        "  filter: stays there, unless $2.name = $.name",
        "  rebind q1: $2.name = $.name and $2.price < $.price; price = $1.price, $.name = $2.name, $.price = $2.price",
        "  forward to end: $2.name = $.name and $2.price < $.price; high = $1.price, low = $2.price",
        "  kill: ends at $2.name = $.name, unless $2.price < $.price",
        "end: results have high, low",
    ]
    split = "split by name, which every operator asks to be the same: a run meets only events of its own"
    assert section(text, "streams") == ["Stock: name, price", split]
    assert section(text, "window") == ["results last at most 10 min"]
    assert section(text, "memory")[0].startswith("bounded by the window")
    assert "advice" not in text
    assert "`" not in text.partition("\n\n")[2]


def test_a_filter_above_next_ends_what_it_refuses() -> None:
    states = section(compile_query(RISING).explain(), "states")
    assert "  filter: stays there, unless $2.price > $1.price" in states
    assert "  forward to end: $2.price > 83 and $2.price > $1.price; low = $1.price, high = $2.price" in states
    assert "  kill: ends at $2.price > $1.price, unless $2.price > 83" in states


def test_how_long_it_lasts_is_told_as_it_is_written() -> None:
    text = compile_query("SELECT * FROM FILTER{DUR >= 10 min}(Stock NEXT{$1.name = $2.name} Stock)").explain()
    assert "  forward to end: $1.name = $2.name and DUR >= 10 min; " in text


def test_thresholds_are_told() -> None:
    """What is said of them is what the engine does."""
    work = section(compile_query(RISING).explain(), "work")
    waits = "of the runs at q1 an event of Stock looks at only those that it can take by $2.price > $1.price"
    assert work[-1] == f"{waits}, if these are numbers"
    bound = compile_query("FROM Stock NEXT{$2.price > 1.05 * $1.price} Stock WITHIN 5").explain()
    assert "looks at only those that it can take by $2.price > 1.05 * $1.price" in section(bound, "work")[-1]
    computed = compile_query("FROM Stock NEXT{$2.price > 2 * $1.price} Stock WITHIN 5").explain()
    assert section(computed, "work")[-1] == "of the runs at q1 an event of Stock looks at all"
    assert "advice   $2.price > 2 * $1.price is computed for each run at q1" in computed
    number = 0
    for seed in range(cases(1500, 150)):
        world = cel_world(seed, subqueries=False, intervals=False)
        matcher = Matcher(compile_query(world.text).plan)
        matcher.push(world.table.drop_columns("start"))
        assert matcher.pipeline is not None
        engine, registers = matcher.pipeline.engine, matcher.pipeline.plan.registers
        assert isinstance(engine, Runs)
        assert registers is not None
        for pool in engine.tables.pools:
            said = thresholds(registers, pool.state) if 0 < pool.state < len(registers.states) - 1 else ()
            numbers = [one for one in said if "g" not in one and not computes(registers, pool.state)]
            assert not numbers or pool.waits_for != NOTHING, (world.text, said)
            number += bool(numbers)
    assert number > 10


# --- warnings -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [FALLING, "FROM Stock NEXT Stock", "FROM (SELECT x FROM A NEXT A) FOLD{, , } A"])
def test_what_nothing_ends_is_warned_of(text: str) -> None:
    query = compile_query(text)
    assert query.plan.is_unbounded
    assert "advice   there is no window: a run that waits at q1 for" in query.explain()
    assert section(query.explain(), "memory")[0].startswith("not bounded")
    assert "warning    there is no window" in acep("check", text).stdout


@pytest.mark.parametrize("text", [f"{FALLING} WITHIN 5", "SELECT * FROM FILTER{DUR < 9}(A NEXT A)", "SELECT x FROM A"])
def test_what_ends_is_not_warned_of(text: str) -> None:
    assert "no window" not in compile_query(text).explain()
    assert "warning" not in acep("check", text).stdout


def test_a_pattern_is_not_warned_of() -> None:
    assert "warning" not in acep("check", "PATTERN SEQ(A a, B b) WITHIN 5").stdout


# --- drawings -----------------------------------------------------------------------------------------------------


def test_drawings_tell_edges_apart() -> None:
    query = compile_query(FALLING)
    mermaid = query.explain("mermaid")
    assert '  s1 -.->|"filter: unless $2.name = $.name"| s1' in mermaid
    assert '  s1 ==>|"rebind: $2.name = $.name and $2.price #lt; $.price / ' in mermaid
    assert (
        '  s1 -->|"forward: $2.name = $.name and $2.price #lt; $.price / high = $1.price, low = $2.price"| s2'
        in mermaid
    )
    assert '  s1 --x|"kill: $2.name = $.name unless $2.price #lt; $.price"| s3' in mermaid
    dot = query.explain("dot").splitlines()
    styles = {
        kind: next(line for line in dot if f'"{kind}: ' in line and "s1 ->" in line) for kind in ("filter", "rebind")
    }
    assert "style=dotted" in styles["filter"]
    assert "style=bold" in styles["rebind"]
    data = json.loads(query.explain("json"))
    assert data["arcs"][1]["tests"] == ["$2.name = $.name", "$2.price < $.price"]
    assert data["registers"][1] == ["$.name", "$.price", "start", "price"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_of_the_paper_are_drawn(name: str) -> None:
    query = compile_query(EXAMPLES[name])
    for form in ("text", "mermaid", "dot", "json", "air"):
        assert query.explain(form)


# --- AIR ----------------------------------------------------------------------------------------------------------


def test_air_has_states_schemas_and_edges() -> None:
    said = json.loads(compile_query(f"{FALLING} WITHIN 10 min PUBLISH Low").explain("air"))
    assert said["window"] == {"amount": 10, "unit": "min"}
    assert (said["publish"], said["schema"], said["streams"]) == ("Low", ["high", "low"], {"Stock": ["name", "price"]})
    start, waiting, end = said["states"]
    assert [edge["kind"] for edge in waiting["edges"]] == ["filter", "rebind", "forward", "kill"]
    assert waiting["schema"] == ["name", "price", "$.name", "$.price"]
    assert (waiting["operator"], waiting["input"], end["edges"]) == ("FOLD", "Stock", [])
    assert start["edges"][0]["sets"] == {"name": "name", "price": "price", "$.name": "name", "$.price": "price"}
    assert json.loads(compile_query(RISING).explain("air"))["states"][1]["bounds"] == ["$2.price > $1.price"]
    again = compile_query(f"{FALLING} WITHIN 10 min PUBLISH Low").explain("air")
    assert json.loads(again) == said


def test_air_means_what_the_query_means() -> None:
    """The JSON is run, on random queries and streams with ties, intervals and NULL: the engine finds the same."""
    number = 0
    for seed in range(cases(400)):
        world = cel_world(seed, subqueries=False, intervals=seed % 2 == 0)
        starts: dict[str, Any] = {"start": "start"} if seed % 2 == 0 else {}
        table = world.table if starts else world.table.drop_columns("start")
        matcher = Matcher(compile_query(world.text, within="7" if seed % 3 == 0 else None).plan, **starts)
        results = matcher.push(table)
        if matcher.pipeline is None:
            continue
        events = [{"start": row["ts"], **row} for row in table.to_pylist()]
        data = json.loads(json.dumps(air(matcher.pipeline.plan)))
        machine = AirMachine(data, table.schema)
        expected = found(results)
        assert machine.results(events) == expected, (seed, world.text)
        number += expected.total()
    assert number > 4 * cases(400)


def test_air_is_of_queries_in_cel() -> None:
    with pytest.raises(UsageError, match="ACEP-U075"):
        compile_query("PATTERN SEQ(A a, B b) WITHIN 5").explain("air")
    assert "ACEP-U075" in acep("explain", "ab WITHIN 5", "--format", "air", code=2).stderr


def test_air_of_what_is_not_known_yet_says_so(tmp_path: Path) -> None:
    """A query of a set that makes no sense for the attributes which its streams are taken to have."""
    (tmp_path / "late.cel").write_text("FROM B NEXT P NEXT{x != $1.r} P", encoding="utf-8")
    (tmp_path / "pair.cel").write_text("SELECT x, y AS r FROM A PUBLISH P", encoding="utf-8")
    said = json.loads(acep("explain", "--queries", str(tmp_path), "--format", "air").stdout)
    (late,), (pair,) = said["late"], said["pair"]
    assert (late["states"], late["streams"], late["schema"]) == ([], None, None)
    assert late["query"].startswith("SELECT *\nFROM B NEXT P NEXT{")
    assert pair["schema"] == ["x", "r"]
    assert "warning: there is no window in late" in acep("check", "--queries", str(tmp_path)).stdout


def test_air_of_a_folder(tmp_path: Path) -> None:
    """By the ids of its queries; one that is several automata has several."""
    (tmp_path / "falling.cel").write_text(FALLING, encoding="utf-8")
    (tmp_path / "pairs.cel").write_text("FROM A NEXT (A NEXT A) WITHIN 5", encoding="utf-8")
    (tmp_path / "other.acep").write_text("PATTERN SEQ(A a, B b) WITHIN 5", encoding="utf-8")
    said = json.loads(acep("explain", "--queries", str(tmp_path), "--format", "air").stdout)
    assert {id_: len(automata) for id_, automata in said.items()} == {"falling": 1, "pairs": 2}
    assert said["falling"] == [json.loads(compile_query(FALLING).explain("air"))]
    assert said["pairs"][0]["publish"] == said["pairs"][1]["states"][1]["input"]
    assert "ACEP-U064" in acep("explain", "--queries", str(tmp_path), "--format", "json", code=2).stderr
    assert "warning: there is no window in falling" in acep("check", "--queries", str(tmp_path)).stdout
