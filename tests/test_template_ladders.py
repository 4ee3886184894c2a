"""Events that are run as they are found give what each query of a template finds alone; the engine can always go on."""

from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import QuerySet, compile_query
from acep_approx.kernels import ladders as kernel
from acep_approx.kernels import pairs
from acep_approx.kernels.runs.vm import NULL
from acep_approx.matching import keyed_events
from acep_approx.subscriptions.templates import classes, ladders
from acep_approx.subscriptions.templates.ladders import Ladders
from tests.cases import FULL, cases, examples
from tests.noticing import first_noticed
from tests.template_worlds import events, members, text_of

TEMPLATES = {
    "times, rising": "PATTERN SEQ(A a, B b) WHERE [k] AND a.x > :p AND b.y > :f * a.y WITHIN :w",
    "times, falling": "PATTERN SEQ(A a, B b, C c) WHERE b.y <= a.y * :f AND c.x >= :p WITHIN :w",
    "plus": "PATTERN SEQ(A a, A b) WHERE [k] AND b.y + :f >= a.y WITHIN :w",
    "minus": "PATTERN SEQ(A a, A b) WHERE [k] AND b.y - :f < a.y WITHIN :w",
    "minus the event": "PATTERN SEQ(A a, A b) WHERE [k] AND :f - b.y < a.y WITHIN :w",
    "whole numbers, rising": "PATTERN SEQ(A a, A b, B c) WHERE a.x < b.x AND c.x > :p WITHIN :w",
    "whole numbers, falling": "PATTERN SEQ(A a, B b) WHERE [k] AND b.x <= a.x WITHIN :w",
    "whole numbers times a fraction": "PATTERN SEQ(A a, B b) WHERE [k] AND b.x > :f * a.x WITHIN :w",
    "fractions times a whole number": "PATTERN SEQ(A a, B b) WHERE [k] AND a.y * :p <= b.x WITHIN :w",
    "two tests of one register": "PATTERN SEQ(A a, B b) WHERE b.y > a.y AND b.x >= a.y AND a.x > :p WITHIN 12",
    "no register": "PATTERN SEQ(A a, B b, C c) WHERE a.x > :p AND b.x < :q WITHIN :w",
    "a register at each step": "PATTERN SEQ(A a, A b, A c) WHERE b.x >= a.x AND c.y < :f * b.y WITHIN :w",
    "either begins": "PATTERN SEQ((A a | B b), C c) WHERE [k] AND a.x > :p AND b.x < :q WITHIN :w",
    "either ends": "PATTERN SEQ(A a, (B b | C c)) WHERE [k] AND b.x > :p AND c.x < :q WITHIN :w",
    "any number between": "PATTERN SEQ(A a, A+ b[], B c) WHERE [k] AND b[i].x > :p WITHIN :w",
    "any number ends": "PATTERN SEQ(A a, B+ b[]) WHERE [k] AND b[i].x > :p WITHIN :w",
    "one event": "PATTERN SEQ(A a) WHERE [k] AND a.x > :p WITHIN :w",
}
OF_THE_ENGINE = {
    "carried on": "PATTERN SEQ(A a, B b, C c) WHERE [k] AND c.x > a.x AND b.x > :p WITHIN :w",
    "two registers": "PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x AND b.y > a.y AND a.x > :p WITHIN :w",
    "equal": "PATTERN SEQ(A a, B b) WHERE [k] AND b.x = a.x AND a.x > :p WITHIN :w",
    "only one way asks": "PATTERN SEQ(A a, (B b | C c)) WHERE [k] AND b.x > a.x AND a.x > :p WITHIN :w",
    "whole numbers that may be too large": "PATTERN SEQ(A a, B b) WHERE [k] AND b.x > :p * a.x WITHIN :w",
    "errors": "PATTERN SEQ(A a, B b, C c) WHERE [k] AND c.x > :p WITHIN :w ERRORS 1",
    "next": "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [k] AND b.x > :p } WITHIN :w",
    "non overlap": "PATTERN SEQ(A a, B b) WHERE [k] AND b.x > :p WITHIN :w NON OVERLAP",
    "simultaneous": "PATTERN SEQ(A a, B b) WHERE [k] AND b.x > :p WITHIN :w SIMULTANEOUS",
    "more than a test": "PATTERN SEQ(A a, B b) WHERE [k] AND (a.x > :p OR a.y > :f) WITHIN :w",
}


@pytest.fixture(autouse=True)
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladders, "FIRST_ROOM", 1)


def constants(dice: Random, queries: int, template: str) -> list[dict[str, Any]]:
    """Those that a template asks for."""
    ways: dict[str, Any] = {
        "p": lambda: dice.randrange(-1, 4),
        "q": lambda: dice.randrange(0, 5),
        "f": lambda: dice.choice([-1.0, 0.0, 0.5, 1.0, 1.5]),
        "w": lambda: dice.randrange(0, 25),
    }
    return [{name: way() for name, way in ways.items() if f":{name}" in template} for _ in range(queries)]


def disagreement(name: str, seed: int) -> int:
    """How many points there were; queries come and go, it is interrupted, and the engine runs some of the batches."""
    template, dice = TEMPLATES[name], Random(f"{name} {seed}")
    data, first = events(dice, 200), constants(dice, 12, template)
    together, apart = QuerySet(output="points"), QuerySet(output="points")
    together.add_many(template, first, id="m")
    for number, row in enumerate(first):
        apart.add(compile_query(text_of(template, row)), id=f"m[{number}]")
    found, step, is_new = 0, dice.choice([8, 25, 70]), False
    for at in range(0, len(data), step):
        for row in constants(dice, dice.choice([0, 1, 3]), template) if at else []:
            (made,) = together.add_many(template, [row], id=f"at {at} {len(together)}")
            apart.add(compile_query(text_of(template, row)), id=made.id)
        if dice.random() < 0.4:
            gone = dice.choice([*together])
            together.remove(gone)
            apart.remove(gone)
        for member in members(together) if at and not is_new else []:
            if dice.random() < 0.3:
                member.runs.ladders = None
            else:
                member.runs.know_ladders()
                assert member.runs.ladders is not None
        results = [desk.push(data.slice(at, step)) for desk in (together, apart)]
        rows = [Counter(map(str, one.to_arrow().to_pylist())) for one in results]
        assert rows[0] == rows[1], (seed, at)
        assert results[0].to_arrow().column("end").to_pylist() == results[1].to_arrow().column("end").to_pylist()
        found += results[0].rows
        is_new = dice.random() < 0.3
        if is_new:
            together = QuerySet.from_state(together.state_bytes())
    return found


@pytest.mark.parametrize("name", TEMPLATES)
def test_what_is_found_is_what_each_query_finds_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = 0
    for seed in range(60):
        if seed >= cases(60, 1) and found > 100:  # the first shows every mutant
            break
        monkeypatch.setattr(classes, "FEWEST", 1000 if seed % 2 else 4)
        found += disagreement(name, seed)
    assert found > 100


@pytest.mark.parametrize("name", OF_THE_ENGINE)
def test_what_the_engine_must_run(name: str) -> None:
    desk, template = QuerySet(output="points"), OF_THE_ENGINE[name]
    desk.add_many(template, constants(Random(1), 12, template))
    desk.push(events(Random(2), 50))
    assert [member.runs.ladders for member in members(desk)] == [None]


@pytest.mark.parametrize("output", ["matches", "counts"])
def test_the_engine_runs_all_that_asks_for_more_than_the_latest_start(output: Any) -> None:
    desk, template = QuerySet(output=output), TEMPLATES["times, rising"]
    desk.add_many(template, constants(Random(1), 12, template))
    desk.push(events(Random(2), 50))
    assert [member.runs.ladders for member in members(desk)] == [None]


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, A b, A c) WHERE [k] AND b.x > :f * a.x AND c.y < :g * b.y WITHIN :w",
        "PATTERN SEQ(A a, A b, A c) WHERE [k] AND b.x <= a.x AND c.x >= b.x AND c.y > :f WITHIN :w",
    ],
)
def test_all_short_streams(text: str) -> None:
    """Each of them is a key of its own."""
    values, ticks = [None, 1.0, 2.0, 3.0], [0, 0, 1, 3, 3]
    streams = list(product(values, repeat=len(ticks)))
    data = pa.table(
        {
            "ts": [tick for tick in ticks for _ in streams],
            "type": ["A"] * len(ticks) * len(streams),
            "k": [k for _ in ticks for k in range(len(streams))],
            **{name: [stream[at] for at in range(len(ticks)) for stream in streams] for name in ("x", "y")},
        }
    )
    names = [name for name in "fgw" if f":{name}" in text]
    rows = [dict(zip("fgw", row, strict=True)) for row in product([0.5, 1.0], [1.0, 2.0], [0, 1, 3])]
    rows = [{name: row[name] for name in names} for row in rows]
    desk = QuerySet(output="points")
    desk.add_many(text, rows)
    result, found = desk.match(data), 0
    for number, row in enumerate(rows):
        alone = compile_query(text_of(text, row)).match(data).points()
        mine = result[f"q{number + 1}"].select(alone.column_names)
        assert sorted(map(str, mine.to_pylist())) == sorted(map(str, alone.to_pylist())), row
        found += alone.num_rows
    assert found > 500


def test_types_that_widen() -> None:
    """Whole numbers become fractions: the engine, or the ladders, go on with the runs of the other."""
    for name in ("whole numbers, falling", "whole numbers times a fraction"):
        template = TEMPLATES[name]
        desk, rows = QuerySet(output="points"), constants(Random(4), 6, template)
        desk.add_many(template, rows)
        dice = Random(3)
        some = [{"ts": t, "type": dice.choice("AB"), "k": "k", "x": dice.randrange(9)} for t in range(60)]
        some[30:] = [{**event, "x": event["x"] + 0.5} for event in some[30:]]
        results = [*(desk.push(some[at : at + 10]) for at in range(0, 60, 10)), desk.finish()]
        found = Counter(str(row) for result in results for row in result.to_arrow().to_pylist())
        alone = QuerySet(output="points")
        for number, row in enumerate(rows):
            alone.add(compile_query(text_of(template, row)), id=f"q{number + 1}")
        assert found == Counter(map(str, alone.match(some).to_arrow().to_pylist()))
        assert found


def test_all_that_can_lack_room_does(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, find = set(), kernel.find_points

    def noted(*arrays: Any) -> int:
        status = find(*arrays)
        seen.add(int(status))
        return status

    monkeypatch.setattr(kernel, "find_points", noted)
    lacking = {pairs.OUT_FULL, pairs.SLOTS_FULL, kernel.SPANS_FULL, kernel.LADDERS_FULL, kernel.STORE_FULL}
    for seed in range(10):
        for name in ("times, rising", "whole numbers, rising"):
            if FULL or not lacking <= seen:
                disagreement(name, seed)
    assert seen == {pairs.DONE} | lacking


# --- the ladder by itself ---------------------------------------------------------------------------------------------

RUNS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6) | st.none()), max_size=12)


def ladder(kind: int, runs: list[tuple[int, int | None]]) -> tuple[kernel.Moves, kernel.Ladders]:
    none, word = np.zeros(0, np.int64), np.zeros(2 * len(runs) + 2, np.int64)
    moves = kernel.Moves(none, none, np.array([0, 1, kind, 1]), none)
    made = kernel.Ladders(
        len(runs) + 1, np.zeros(2 * len(runs) + 2, np.int64), word, word.view(np.float64), np.zeros(2, np.int64), none
    )
    many = 0
    for start, value in runs:
        word_, x = NULL if value is None else value, float("nan") if value is None else float(value)
        many += kernel.put(moves, made, 1, start, word_, x)
    assert many == made.size[1]
    return moves, made


@pytest.mark.parametrize("kind", [kernel.INT, kernel.FLOAT, kernel.NO_REGISTER])
@given(runs=RUNS)
@examples(500)
def test_a_ladder_has_what_no_other_run_can_do_better(kind: int, runs: list[tuple[int, int | None]]) -> None:
    _, made = ladder(kind, runs)
    base, size = made.room, int(made.size[1])
    values = (made.float_ if kind == kernel.FLOAT else made.word)[base : base + size].tolist()
    there = list(zip(made.start[base : base + size].tolist(), values, strict=True))
    if kind == kernel.NO_REGISTER:
        assert [start for start, _ in there] == [max(start for start, _ in runs)][: len(runs)] if runs else not there
        return
    some = {(start, value) for start, value in runs if value is not None}
    best = {(s, v) for s, v in some if not any(t >= s and u <= v and (t, u) != (s, v) for t, u in some)}
    assert there == sorted(best)


# --- wrong variants ---------------------------------------------------------------------------------------------------


def differs(seed: int) -> bool:
    with np.errstate(over="ignore"):
        for name in ("times, falling", "minus", "whole numbers, rising", "whole numbers times a fraction"):
            disagreement(name, seed)
    return False


@pytest.mark.parametrize("mutant", ["or equal", "signs", "sides", "whole numbers as bits", "one window"])
def test_wrong_words_are_noticed(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right, points = ladders._in_words, Ladders.points

    def wrong(*parts: Any) -> ladders.Moves:
        moves = right(*parts)
        tests, pools, values = moves.words.tests, moves.words.pools, moves.words.values
        if mutant == "or equal":
            tests[kernel.TEST_OR_EQUAL :: kernel.TEST] ^= 1
        elif mutant == "signs":
            pools[kernel.POOL_SIGN :: kernel.POOL] *= -1
        elif mutant == "sides":
            way = values[:: kernel.VALUE]
            way[:] = np.where(way == kernel.MINUS, kernel.MINUS_EVENT, way)
        return moves

    monkeypatch.setattr(ladders, "_in_words", wrong)
    if mutant == "whole numbers as bits":
        monkeypatch.setattr(keyed_events, "_as_floats", lambda words: words)
    elif mutant == "one window":
        monkeypatch.setattr(Ladders, "points", lambda self, *given: points(self, *given[:-1], None))
    assert first_noticed(differs, 20) >= 0


@pytest.mark.parametrize("mutant", ["", "oldest", "newest alone", "all pass", "too old", "no key matters"])
def test_wrong_kernels_are_noticed(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel as plain Python, with a part exchanged."""
    put, passing, climb = kernel.put, kernel.passing, kernel.climb

    def newest_alone(moves: Any, runs: kernel.Ladders, pool: int, *run: Any) -> int:
        before = int(runs.size[pool])
        runs.size[pool] = 0
        return put(moves, runs, pool, *run) - before

    def never_too_old(control: Any, moves: Any, given: kernel.Given, *more: Any) -> int:
        return climb(control, moves, given._replace(window=np.full_like(given.window, 10**6)), *more)

    monkeypatch.setattr(kernel, "find_points", getattr(kernel.find_points, "__wrapped__", kernel.find_points))
    if mutant == "oldest":
        monkeypatch.setattr(kernel, "passing", lambda *given: min(1, passing(*given)))
    elif mutant == "newest alone":
        monkeypatch.setattr(kernel, "put", newest_alone)
    elif mutant == "all pass":
        monkeypatch.setattr(kernel, "passing", lambda *given: int(given[2].size[given[0].steps[given[4] + 1]]))
    elif mutant == "no key matters":
        monkeypatch.setattr(pairs, "matters", lambda *given: bool(given[2].head[given[3]] >= 0))
    elif mutant == "too old":
        monkeypatch.setattr(kernel, "climb", never_too_old)
    assert (first_noticed(differs, 3 if mutant else 1) >= 0) == bool(mutant)
