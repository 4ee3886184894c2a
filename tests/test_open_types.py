"""The type of a column is open until a value comes: nulls first, or nothing but nulls, and any split gives the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from acep_approx import DataError, Query, QueryError, compile_query
from acep_approx.cli.main import app
from tests.cases import cases, examples
from tests.rich_worlds import RichWorld, Row, rich_worlds
from tests.runs_engine import MERGES, compiled
from tests.smaller_worlds import holds_for
from tests.worlds import World, worlds

OUTPUTS = ("matches", "points", "counts", "partial")
ENGINES = ("auto", "runs")


# --- random worlds ----------------------------------------------------------------------------------------------------


def poorer(rows: tuple[Row, ...], dice: Random) -> tuple[Row, ...]:
    """The events with columns that begin with nulls, or have no value at all, and with whole numbers for floats."""
    changed = [dict(row) for row in rows]
    for name in ("x", "y", "s", "g", "type"):
        nulls = dice.choice((0, 0, 1, 2, 4, len(rows))) if name != "type" else dice.choice((0, 0, 0, 1, len(rows)))
        for row in changed[:nulls]:
            row[name] = None
    for row in changed[: dice.randint(0, len(rows))]:
        if row["y"] is not None and row["y"] == row["y"] // 1:
            row["y"] = int(row["y"])
    return tuple(changed)


def pushed(query: Query, pieces: list[list[Row]], options: dict[str, Any], dice: Random | None) -> list[Row]:
    """What a matcher gives for lists of dicts; with dice, its state is now and then saved and restored."""
    matcher = query.matcher(**options)
    found = []
    for piece in pieces:
        found += matcher.push(piece).to_pylist()
        if dice and dice.randrange(2):
            matcher = query.from_state(matcher.state_bytes())
    return sorted(found + matcher.finish().to_pylist(), key=repr)


def split(rows: tuple[Row, ...], dice: Random) -> list[list[Row]]:
    """The events in pieces, some of them empty; each dict may leave out what it has no value for."""
    cuts = sorted(dice.randint(0, len(rows)) for _ in range(dice.randrange(6)))
    pieces = [list(rows[i:j]) for i, j in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    return [
        [{k: v for k, v in row.items() if v is not None or not n or dice.randrange(3)} for row in piece]
        for n, piece in enumerate([p for p in pieces if p] or [[]])
    ]


def rows_of(world: World) -> tuple[Row, ...]:
    """The events of a world of ``worlds`` as dicts."""
    return tuple({"ts": e.tick, "type": e.type, "x": e.values["x"], "g": e.values["g"]} for e in world.events)


@examples(600, shrink=False)
@given(rich_worlds(), st.sampled_from(MERGES), st.randoms(use_true_random=True))
def test_runs_give_the_same_whenever_values_come(world: RichWorld, merge: str, random: Random) -> None:
    """Split, with saved states in between, as the typed table at once."""
    seed = random.random()

    def check(world: RichWorld) -> None:
        query, dice = compiled(world), Random(seed)
        if query is None:
            return
        poor = replace(world, rows=poorer(world.rows, dice))
        options = {"output": dice.choice(OUTPUTS), "merge": merge}
        if options["output"] == "matches" and dice.randrange(2):
            options["bind"] = ["x", "s"]
        whole = query.matcher(**options)
        expected = [*whole.push(poor.table()).to_pylist(), *whole.finish().to_pylist()]
        pieces = split(poor.rows, dice)
        assert pushed(query, pieces, options, dice) == sorted(expected, key=repr), (poor.rows, pieces, options)

    holds_for(world, check)


@examples(300, shrink=False)
@given(worlds(), st.sampled_from(ENGINES), st.randoms(use_true_random=True))
def test_both_engines_give_the_same_whenever_values_come(world: World, engine: str, dice: Random) -> None:
    """What the cells engine can run, too."""
    query = compile_query(world.text, engine=engine)
    rows = rows_of(world)
    poor = [dict(row) for row in rows]
    for name in ("x", "g"):
        for row in poor[: dice.choice((0, 1, 3, len(rows)))]:
            row[name] = None
    options = {"output": dice.choice(OUTPUTS)}
    whole = query.matcher(**options)
    types = {"ts": pa.int64(), "type": pa.string(), "x": pa.int64(), "g": pa.string()}
    table = pa.table({name: pa.array([row[name] for row in poor], type_) for name, type_ in types.items()})
    expected = [*whole.push(table).to_pylist(), *whole.finish().to_pylist()]
    assert pushed(query, split(tuple(poor), dice), options, dice) == sorted(expected, key=repr)


# --- queries of which runs hold values of all kinds, while their types come -------------------------------------------

START = datetime(2020, 1, 1, tzinfo=UTC)
HELD = (
    "SEQ(A a, B b) WHERE b.y > a.y",
    "SEQ(A a, B b) WHERE b.y = a.y",
    "SEQ(A a, B b, C c) WHERE c.y - a.y > b.y * 2 OR b.y IS NULL",
    "SEQ(A+ a[], B b) WHERE b.y < sum(a[].y)",
    "SEQ(A+ a[], B b) WHERE b.y <= max(a[].y) AND avg(a[].y) >= 1",
    "SEQ(A+ a[], B b) WHERE a[i].y >= a[i-1].y AND min(a[].y) < b.y",
    "SEQ(A a, B b) WHERE a.s = b.s",
    "SEQ(A a, B b) WHERE a.s < b.s OR b.s = 'v' AND a.y > 0",
    "SEQ(A+ a[], B b) WHERE min(a[].s) <= b.s OR max(a[].s) = 'w'",
    "SEQ(A a, B b) WHERE a.t < b.t OR a.s = 'v' AND b.y >= a.y",
    "SEQ(A a, B b) WHERE a.t < b.t OR a.t > '2020-01-01T00:00:02' AND b.s = a.s",
    "SEQ(A+ a[], B b) WHERE max(a[].t) <= b.t",
    "SEQ(A a, B b, C c) WHERE [n] AND (c.y > a.y OR c.s != a.s)",
    "SEQ(A a, B b) WHERE skip_till_next_match { [s] AND b.y != a.y }",
    "SEQ(A a, ~(C c), B b) WHERE c.y > a.y AND b.flag = a.flag",
    "SEQ(A a, B b, ~(C c)) WHERE c.s = a.s AND [n]",
    "SEQ(A a, B b) WHERE b.flag = a.flag OR b.y > a.y RETURN a.y + b.y AS y, a.s AS s, b.t AS t, b.flag AS flag",
)


def later(dice: Random, rows: int, *kinds: Callable[[], Any]) -> list[Any]:
    """Values of kinds that follow one another: first of one kind, from some row on also of the next."""
    places = sorted(dice.choice((0, 1, 2, 4, 6, rows)) for _ in kinds[1:])
    last = [sum(place <= row for place in places) for row in range(rows)]
    return [None if dice.randrange(6) == 0 else kinds[dice.randint(max(n - 1, 0), n)]() for n in last]


def events_of_all_kinds(dice: Random) -> list[Row]:
    """Events of columns whose types are open at first, and become wider."""
    rows = dice.choice((6, 8, 10, 12))
    whole, nothing = (lambda: dice.randrange(4)), (lambda: None)
    half = lambda: dice.randrange(8) / 2  # noqa: E731
    seconds = lambda: START + timedelta(seconds=dice.randrange(6))  # noqa: E731
    columns = {
        "y": later(dice, rows, nothing, whole, half),
        "s": later(dice, rows, nothing, lambda: dice.choice("uvwx")),
        "t": later(dice, rows, nothing, seconds),
        "n": later(dice, rows, nothing, lambda: 1, lambda: 1.0),
        "flag": later(dice, rows, nothing, lambda: dice.randrange(2) == 0),
    }
    ticks = sorted(dice.randrange(12) for _ in range(rows))
    named = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return [{"ts": tick, "type": dice.choice("AABBC"), **row} for tick, row in zip(ticks, named, strict=True)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("pattern", HELD)
def test_what_runs_hold_goes_on_with_wider_types(pattern: str, engine: str) -> None:
    """One by one, and with saved states in between, as all at once."""
    condition, _, returned = pattern.partition(" RETURN ")
    found, worlds = 0, cases(25, 4)
    for seed in range(25):
        if seed >= worlds and found > 1:
            break
        dice = Random(seed)
        rows = events_of_all_kinds(dice)
        text = f"PATTERN {condition} WITHIN {dice.choice(('5', '9', '4 events'))}"
        query = compile_query(text + (f" RETURN {returned}" if returned else ""), engine=engine)
        options = {"output": dice.choice(OUTPUTS), "merge": dice.choice(MERGES)}
        expected = pushed(query, [rows], options, None)
        pieces = [[row] for row in rows] if seed % 2 else split(tuple(rows), dice)
        assert pushed(query, pieces, options, dice if seed % 3 else None) == expected, (rows, options)
        found += len(expected)
    assert found >= max(2, worlds // 5)


def test_times_become_finer() -> None:
    """What a run holds in microseconds is compared with nanoseconds."""
    query = compile_query("PATTERN SEQ(A a, A b) WHERE b.t > a.t WITHIN 9")
    matcher, found = query.matcher(), []
    for tick, (second, unit) in enumerate([(2, "us"), (1, "ns"), (3, "ns"), (2, "us")]):
        time = START.replace(tzinfo=None) + timedelta(seconds=second)
        piece = pa.table({"ts": [tick], "type": ["A"], "t": pa.array([time], pa.timestamp(unit))})
        found += [(row["a"], row["b"]) for row in matcher.push(piece).to_pylist()]
    assert sorted(found) == [(0, 2), (1, 2), (1, 3)]


def test_texts_are_numbered_anew() -> None:
    """A constant is a text while the type of a column is open, and a time when it has come."""
    condition = "min(a[].t) < '2020-02-01' AND max(a[].s) >= 'k' AND b.s = min(a[].s)"
    query = compile_query(f"PATTERN SEQ(A+ a[], B b) WHERE {condition} WITHIN 9")
    time = START + timedelta(days=1)
    rows = [("A", "k", None), ("A", "k", time), ("B", "k", time)]
    matcher = query.matcher()
    pushed = [matcher.push([{"ts": i, "type": t, "s": s, "t": m}]).num_rows for i, (t, s, m) in enumerate(rows)]
    assert pushed == [0, 0, 2]


# --- one case each ----------------------------------------------------------------------------------------------------

RISING = compile_query("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 180")


def one(ts: int, type_: str, **values: Any) -> list[Row]:
    """A batch of one event."""
    return [{"ts": ts, "type": type_, **values}]


def rows_found(query: Query, pieces: list[Any], *, restart: bool = False) -> list[tuple[int, int]]:
    """The rows of the matches a, b."""
    matcher, found = query.matcher(), []
    for piece in pieces:
        found += [(row["a"], row["b"]) for row in matcher.push(piece).to_pylist()]
        if restart:
            matcher = query.from_state(matcher.state_bytes())
    return found


@pytest.mark.parametrize("restart", [False, True])
def test_columns_that_begin_with_nulls_when_pushed(restart: bool) -> None:
    """It was a segmentation fault: programs for text ran on floats."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE a.p > b.q WITHIN 180")
    pieces = [one(1, "C", p=None, q=None), one(2, "A", p=5.0, q=None), one(3, "B", p=None, q=2.0)]
    assert rows_found(query, pieces, restart=restart) == [(1, 2)]


@pytest.mark.parametrize(
    "values", [(3, None, 4), (None, 3, 4), (3, 2.5, 3.5), (None, 2.5, 3), ("u", None, "v"), (None, None, None)]
)
def test_nulls_and_whole_numbers_first(values: tuple[Any, ...]) -> None:
    """One by one as together: in dicts, frames and tables, also where the column is left out."""
    rows = [{"ts": i, "type": "AAB"[i], "x": x} for i, x in enumerate(values)]
    whole = rows_found(RISING, [rows])
    assert rows_found(RISING, [[row] for row in rows], restart=True) == whole
    assert rows_found(RISING, [pd.DataFrame([row]) for row in rows]) == whole
    assert rows_found(RISING, [pa.Table.from_pylist([row]) for row in rows]) == whole
    without = [rows[0], *({k: v for k, v in row.items() if v is not None} for row in rows[1:])]
    assert rows_found(RISING, [[row] for row in without]) == whole


@pytest.mark.parametrize("first", [{}, {"x": None}])
def test_many_nulls_first(first: Row) -> None:
    """More than one chunk of dicts without a value, or without the name."""
    rows = [{"ts": i, "type": "A", **first} for i in range(20_000)]
    rows += [*one(20_000, "A", x=3), *one(20_001, "B", x=3.5)]
    assert [(m["a"], m["b"]) for m in RISING.match(rows)] == [(20_000, 20_001)]
    assert len(RISING.match(rows)) == RISING.match(rows).points().num_rows == 1


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_values_after_the_first_block(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Types become wider within a file, whatever the blocks, and rows that cannot be read are still told."""
    monkeypatch.setattr("acep_approx.events.reading.text.BLOCK_BYTES", 32)
    values = [None] * 9 + ["3", "3.5", "4", '"oops"', "5"]
    if suffix == "csv":
        text = "ts,type,x\n" + "".join(f"{i},{'AB'[i % 2]},{x or ''}\n" for i, x in enumerate(values))
    else:
        text = "".join(f'{{"ts":{i},"type":"{"AB"[i % 2]}","x":{x or "null"}}}\n' for i, x in enumerate(values))
    path = tmp_path / f"late.{suffix}"
    path.write_text(text, encoding="utf-8")
    assert len(RISING.match(path, on_malformed="skip")) == 2
    with pytest.raises(DataError, match="ACEP-D020"):
        len(RISING.match(path))
    path.write_text(text.replace('"oops"', "" if suffix == "csv" else "null"), encoding="utf-8")
    matches = RISING.match(path, sort=True)
    assert matches.to_arrow().num_rows == 2
    assert "1 fails" not in str(RISING.why(path, around=10))


@pytest.mark.parametrize(
    ("pieces", "code"),
    [
        ([one(1, "A", x=3), one(2, "B", x="k")], "ACEP-D024"),
        ([one(1, "A", x=3.5), one(2, "B", x=2**53 + 1)], "ACEP-D024"),
        ([one(1, "A", x=2**53 + 1), one(2, "B", x=2.5)], "ACEP-D024"),
        ([pa.Table.from_pylist(one(1, "A", x=3)), pa.Table.from_pylist(one(2, "B"))], "ACEP-D002"),
        ([one(1, "A", x=3), one(START, "B", x=4)], "ACEP-D024"),
        ([one(1, "A", x=None), one(2, "B", x="k"), one(3, "B", x=True)], "ACEP-D024"),
    ],
)
@pytest.mark.parametrize("restart", [False, True])
def test_types_that_do_not_go_together(pieces: list[Any], code: str, restart: bool) -> None:
    """Refused, and the matcher is as it was: it goes on with events that fit."""
    matcher = RISING.matcher()
    for piece in pieces[:-1]:
        matcher.push(piece)
        if restart:
            matcher = RISING.from_state(matcher.state_bytes())
    before = matcher.state_bytes()
    with pytest.raises(DataError, match=code):
        matcher.push(pieces[-1])
    assert matcher.state_bytes() == before
    matcher.push(one(9, "B", x=None))


def test_a_key_that_changes_its_type() -> None:
    """Whole numbers become floats and are the same keys; text is refused with the code for keys."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE [n] WITHIN 9")
    pieces = [one(1, "A", n=None), one(2, "A", n=1), one(3, "B", n=1.0), one(4, "B", n=2.5)]
    assert rows_found(query, pieces, restart=True) == [(1, 2)]
    with pytest.raises(DataError, match="ACEP-D031"):
        rows_found(query, [*pieces, one(5, "B", n="1")])


def test_a_condition_is_checked_when_the_type_comes() -> None:
    """While it is open nothing can be said against it."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x AND b.x > 3 WITHIN 9")
    matcher = query.matcher()
    matcher.push(one(1, "A", x=None))
    with pytest.raises(QueryError, match="ACEP-Q061"):
        matcher.push(one(2, "A", x="k"))


@pytest.mark.parametrize("policy", [None, "random"])
def test_types_come_inside_a_budget(policy: str | None) -> None:
    """The books go on; where something was learned of the values before it is refused."""
    rows = [{"ts": i, "type": "AB"[i % 2], "x": None if i < 11_000 else i % 7} for i in range(12_000)]
    query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 20", engine="runs")
    exact = query.match(rows).points().num_rows
    assert query.match_within(rows, "1000 steps/event", audit=0, policy=policy).points().num_rows == exact > 0
    some = query.match_within(rows, "0.02 steps/event", audit=0, policy=policy)
    assert 0 < some.points().num_rows < exact
    assert some.record().work <= 0.02 * len(rows)
    with pytest.raises(DataError, match="ACEP-D024"):
        query.match_within(rows, "3 steps/event", learn=True).points()


def test_parquet_is_written_though_the_type_comes_late(tmp_path: Path) -> None:
    """The command line writes one schema: the widest."""
    rows = "".join(f'{{"ts":{i},"type":"A","x":{x}}}\n' for i, x in enumerate(["null"] * 5 + ["3", "2.5"]))
    (tmp_path / "e.jsonl").write_text(rows, encoding="utf-8")
    found = tmp_path / "found.parquet"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("acep_approx.events.reading.text.BLOCK_BYTES", 32)
        args = ["run", "PATTERN A a WITHIN 5 RETURN a.x AS x", str(tmp_path / "e.jsonl"), "-o", str(found), "-q"]
        assert CliRunner().invoke(app, args).exit_code == 0
    assert pq.read_table(found).column("x").to_pylist() == [None] * 5 + [3.0, 2.5]


def test_why_where_types_come_late() -> None:
    """The key is compared in the type that it has got; bytes are texts here, too."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE [n] AND b.x > a.x AND a.s = 'k' WITHIN 5")
    rows = [{"ts": i, "type": "A", "n": None, "x": None, "s": None} for i in range(10_100)]
    rows += [{"ts": 10_100 + i, "type": "AB"[i], "n": 7, "x": 2.5 + i, "s": "k"} for i in range(2)]
    assert "no match" not in str(query.why(rows, around=10_100, key=7))
    with pytest.raises(DataError, match="ACEP-D050"):
        query.why(rows, around=10_100, key=8)
    with pytest.raises(DataError, match="ACEP-D050"):
        query.why(rows[:5], around=3, key=7)
    table = pa.Table.from_pylist(rows[-2:])
    table = table.set_column(4, "s", [[b"k", b"k"]]).set_column(1, "type", [[b"A", b"B"]])
    assert "no match" not in str(query.why(table, around=10_100, key=7))
