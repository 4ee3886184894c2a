"""Results of queries in CEL: rows, types, times; long streams; and that wrong variants of the engine are noticed."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import CappedCountWarning, compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.errors import AcepError
from acep_approx.kernels.runs import layout
from acep_approx.matching.pipeline import Pipeline
from tests.cases import cases
from tests.cel_mutants import MUTANTS
from tests.cel_runs import pushed
from tests.plain_python import plainly

WORLDS = cases(3_000, 72)
PRICES = [
    {"ts": tick, "type": "Stock", "name": name, "price": price}
    for tick, name, price in ((1, "IBM", 90), (2, "IBM", 85), (3, "Dell", 20), (4, "IBM", 95), (5, "IBM", 80))
]
FALLING = "SELECT price_1 AS high, price AS low FROM Stock FOLD{$2.name = $.name, $2.price < $.price, } Stock"


@pytest.mark.parametrize("mutant", [pytest.param(m.__name__, marks=pytest.mark.slow) for m in MUTANTS[1:]])
def test_a_mutant_is_noticed(mutant: str) -> None:
    """Random queries tell a wrong variant from the right one, in a process of its own, as plain Python."""
    assert plainly("tests.cel_mutants", "noticed", mutant, WORLDS) >= 0


# --- rows ---------------------------------------------------------------------------------------------------------


def test_results_are_rows_and_derivations() -> None:
    found = compile_query(FALLING).match(PRICES)
    rows = [{"high": 90, "low": 85, "start": 1, "end": 2, "times": 1}]
    rows += [{"high": 95, "low": 80, "start": 4, "end": 5, "times": 1}]
    assert found.to_arrow().to_pylist() == rows
    assert len(found) == len(list(found)) == 2
    first = next(iter(found))
    assert (first.start, first.end, first.values) == (1, 2, {"high": 90, "low": 85})
    assert found.points()["end"].to_pylist() == [2, 5]
    assert found.counts()["matches"].to_pylist() == [1, 1]


def test_equal_results_are_one_row_with_their_number() -> None:
    events = [{"ts": 1, "type": "A", "x": 1}] * 3 + [{"ts": 2, "type": "B", "x": 5}]
    found = compile_query("SELECT x_1, x FROM A NEXT B").match(events)
    assert found.to_arrow().to_pylist() == [{"x_1": 1, "x": 5, "start": 1, "end": 2, "times": 3}]
    assert len(found) == len(list(found)) == sum(found.counts()["matches"].to_pylist()) == 3


def test_attributes_have_the_types_of_their_columns() -> None:
    day = pa.scalar(20_000, pa.int32()).cast(pa.date32())
    schema = {
        "ts": pa.timestamp("ms", "UTC"), "type": pa.string(), "small": pa.int8(), "part": pa.float32(),
        "flag": pa.bool_(), "text": pa.dictionary(pa.int32(), pa.string()), "day": pa.date32(),
    }  # fmt: skip
    row = [1_000, "A", 7, 0.5, True, "yes", day.as_py()]
    columns = {name: pa.array([value, value], type_) for (name, type_), value in zip(schema.items(), row, strict=True)}
    query = compile_query("SELECT *, small + 1 AS more, part * 2 AS twice FROM A")
    found = query.match(pa.table(columns)).to_arrow().drop_columns(["start", "end"])
    types = [pa.int8(), pa.float32(), pa.bool_(), pa.string(), pa.date32(), pa.int64(), pa.float64(), pa.int64()]
    assert found.schema.types == types
    values = {"small": 7, "part": 0.5, "flag": True, "text": "yes", "day": day.as_py(), "more": 8, "twice": 1.0}
    assert found.to_pylist() == [{**values, "times": 1}] * 2


def test_an_aggregate_of_whole_numbers_may_become_one_of_fractions() -> None:
    text = "SELECT total FROM (SELECT *, 0 AS total FROM Stock) FOLD{, , $.total + $2.price / 2 AS total} Stock"
    found = compile_query(text).match(PRICES[:3]).to_arrow()
    assert found["total"].to_pylist() == [42.5, 52.5, 10.0]


@pytest.mark.parametrize("text", ["SELECT * FROM FILTER{name > 3}(Stock)", "SELECT price + name AS x FROM Stock"])
def test_types_are_checked_where_they_are_known(text: str) -> None:
    with pytest.raises(AcepError, match="ACEP-Q06") as found:
        compile_query(text).match(PRICES).to_arrow()
    assert "name" in str(found.value)


def test_names_are_looked_up_in_the_data() -> None:
    with pytest.raises(AcepError, match="ACEP-Q103"):
        compile_query("SELECT * FROM FILTER{prise > 3}(Stock)").match(PRICES).to_arrow()


def test_types_become_wider_while_a_stream_runs() -> None:
    matcher = compile_query("SELECT x_1, x, both FROM (SELECT *, 0 AS both FROM A) FOLD{, , $.both + $2.x AS both} A")
    live = matcher.matcher()
    assert live.push([{"ts": 1, "type": "A", "x": 1}]).num_rows == 0
    found = live.push([{"ts": 2, "type": "A", "x": 2.5}])
    assert found["both"].to_pylist() == [2.5]
    assert found["x_1"].to_pylist() == [1.0]


# --- time ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["FROM A NEXT{$2.x = 7} A WITHIN 10", "SELECT * FROM FILTER{DUR <= 10}(A NEXT{$2.x = 7} A)"]
)
def test_a_window_or_a_filter_of_durations_lets_runs_go(text: str) -> None:
    events = [{"ts": tick, "type": "A", "x": tick % 3} for tick in range(3000)]
    matcher = compile_query(text).matcher()
    for first in range(0, 3000, 100):
        matcher.push(events[first : first + 100])
    assert matcher.progress.live < 200


def test_real_time_has_units() -> None:
    moments = pa.array([0, 30_000_000, 90_000_000], pa.timestamp("us", "UTC"))
    table = pa.table({"ts": moments, "type": ["A"] * 3, "x": [1, 2, 3]})
    short = compile_query("SELECT x_1, x FROM FILTER{DUR <= 30 s}(A NEXT A)").match(table).to_arrow()
    assert short["x"].to_pylist() == [2]
    with pytest.raises(AcepError, match="ACEP-Q908"):
        compile_query("SELECT * FROM FILTER{DUR <= 30 s}(Stock)").match(PRICES).to_arrow()


def test_events_have_a_start() -> None:
    table = pa.table({"type": ["A", "B", "B"], "from": [1, 1, 2], "ts": [1, 3, 4]})
    query = compile_query("SELECT * FROM A NEXT B")
    assert query.match(table, start="from").to_arrow().to_pylist() == [{"start": 1, "end": 4, "times": 1}]
    assert query.matcher(start="from").push(table)["end"].to_pylist() == [4]
    wrong = table.set_column(1, "from", pa.array([1, 5, 2]))
    with pytest.raises(AcepError, match=r"ACEP-D090.*row 1"):
        query.match(wrong, start="from").to_arrow()
    moments = table.set_column(1, "from", pa.array([0, 0, 0], pa.timestamp("us")))
    with pytest.raises(AcepError, match="ACEP-D003"):
        query.match(moments, start="from").to_arrow()


# --- many events --------------------------------------------------------------------------------------------------


def many(rows: int, seed: int) -> pa.Table:
    random_ = Random(seed)
    ticks = sorted(random_.randrange(rows) for _ in range(rows))
    names, values = [random_.choice("pqrs") for _ in ticks], [random_.randrange(1000) for _ in ticks]
    return pa.table({"ts": ticks, "type": [random_.choice("AAB") for _ in ticks], "g": names, "x": values})


def test_pools_grow_and_no_links_are_kept() -> None:
    """An unbounded query on a long stream: the same in any split, and no trace of events that no run needs."""
    text = "SELECT g, x_1, x FROM FILTER{x > 990}(A NEXT{$1.g = $2.g AND $2.x > $1.x + 600} A)"
    plan, table = compile_query(text).plan, many(20_000, 1)
    matcher = Matcher(plan)
    whole = matcher.push(table)
    assert whole.num_rows > 50
    assert isinstance(matcher.pipeline, Pipeline)
    assert int(matcher.pipeline.engine.control[layout.LINKS]) == 0  # type: ignore[union-attr]
    assert matcher.progress.live > 2000
    assert pushed(Random(2), plan, table).equals(whole)


@pytest.mark.parametrize("operator", ["<=", ">"])
def test_chains_of_next_are_skip_till_next_match(operator: str) -> None:
    """CEL = SASE+ where both can say it: each event goes on with the next one that fits."""
    condition = f"$1.g = $2.g AND $2.x {operator} $1.x"
    renamed = f"(SELECT g, x_1 AS a, x FROM A NEXT{{{condition}}} A)"
    cel = f"SELECT a_1 AS a, x_1 AS b, x AS c FROM {renamed} NEXT{{{condition}}} B WITHIN 400"
    sase = (
        "PATTERN SEQ(A a, A b, B c) WHERE skip_till_next_match { "
        f"b.g = a.g AND c.g = b.g AND b.x {operator} a.x AND c.x {operator} b.x }} WITHIN 400 SIMULTANEOUS "
        "RETURN a.x AS a, b.x AS b, c.x AS c"
    )
    table = many(2000, 3)
    ours, theirs = (compile_query(text).match(table).to_arrow() for text in (cel, sase))
    assert sum(ours["times"].to_pylist()) == theirs.num_rows > 300
    assert _rows(ours) == _rows(theirs)


def _rows(table: pa.Table) -> list[Any]:
    names = ("start", "end", "a", "b", "c")
    times = table["times"].to_pylist() if "times" in table.column_names else [1] * table.num_rows
    rows = zip(*(table[name].to_pylist() for name in names), strict=True)
    return sorted(row for row, again in zip(rows, times, strict=True) for _ in range(again))


# --- what stands around it ----------------------------------------------------------------------------------------


def test_the_cells_cannot_answer_it() -> None:
    with pytest.raises(AcepError, match="ACEP-Q900"):
        compile_query("FROM A", engine="cells")


def test_a_state_is_of_its_query() -> None:
    matcher = compile_query(FALLING).matcher()
    matcher.push(PRICES[:4])
    state = matcher.state_bytes()
    again = compile_query(FALLING).from_state(state)
    assert isinstance(again, Matcher)
    assert again.push(PRICES[4:]).to_pylist() == [{"high": 95, "low": 80, "start": 4, "end": 5, "times": 1}]
    with pytest.raises(AcepError, match="ACEP-D042"):
        compile_query("FROM Stock NEXT Stock").from_state(state)


def test_derivations_that_cannot_be_counted_do_not_overflow() -> None:
    source = "A"
    for _ in range(40):
        source = f"(SELECT k FROM {source} FOLD{{,,}} A)"
    events = [{"ts": tick, "type": "A", "k": 1} for tick in range(150)]
    found = compile_query(f"SELECT k FROM {source} PUBLISH T").match(events)
    counts = found.counts()
    assert counts["matches"].to_pylist()[-1] == 2**63 - 1
    assert counts["at_least"].to_pylist() == [number == 2**63 - 1 for number in counts["matches"].to_pylist()]
    with pytest.warns(CappedCountWarning):
        times = found.to_arrow()["times"].to_pylist()
    assert max(times) == 2**63 - 1
    assert min(times) == 1
