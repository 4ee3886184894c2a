"""Whole numbers at the limit of 64 bits, zeros to divide by, NaN, infinities and shifts give the same in each tier.

Python does not wrap around, and raises errors where a processor gives infinity or no number: each such place has a case
of its own, as a query where a user can get there.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest

from acep_approx import HistoryGraph, QuerySet, compile_query, compile_rules
from acep_approx.errors import RuleError
from acep_approx.jit.compiling import BARE
from acep_approx.kernels import arithmetic, pairs, words
from acep_approx.kernels.arithmetic import MOST
from acep_approx.kernels.runs.vm import LARGEST
from acep_approx.revisions.names import mixed
from tests.cases import FULL
from tests.one_reading import learned
from tests.tiers_forced import EVENTS, assert_same

LOWEST = -(2**63)
NAN, INF = math.nan, math.inf

# --- the helpers ------------------------------------------------------------------------------------------------------

WHOLE = (0, 1, -1, 2, -2, 3, 7, -7, 2**31, 2**32 + 1, -(2**33), 2**62, -(2**62), LARGEST - 1, LARGEST, -LARGEST, LOWEST)
WHOLE += (7**2 * 73, LARGEST // (7**2 * 73), -(LARGEST // 73), 3037000500, -3037000499)
FLOATS = (0.0, -0.0, 1.0, -1.5, 1e308, -1e308, 5e-324, INF, -INF, NAN, -NAN)


def both(helper: Callable[..., Any], *args: Any) -> Any:
    """What a helper gives, bit by bit, which must be the same compiled."""
    with np.errstate(all="ignore"):
        plain = helper(*args)
    made = COMPILED.setdefault(helper, numba.njit(**BARE)(helper))(*args)
    assert repr_of(made) == repr_of(plain), (helper.__name__, args)
    return plain


COMPILED: dict[Any, Any] = {}


def repr_of(value: float | bool) -> bytes | int:
    """All bits."""
    return struct.pack("d", value) if isinstance(value, float) else int(value)


def test_whether_results_pass_64_bits() -> None:
    for a, b in product(WHOLE, WHOLE):
        for helper, exact in (
            (arithmetic.sum_passes, a + b),
            (arithmetic.difference_passes, a - b),
            (arithmetic.product_passes, a * b),
        ):
            assert both(helper, a, b) == (not LOWEST <= exact <= LARGEST), (helper.__name__, a, b)


def test_words_are_shifted_and_hashed() -> None:
    for word in WHOLE:
        for by in (0, 1, 31, 62, 63):
            wrapped = (word << by) % 2**64
            assert both(arithmetic.shifted, word, by) % 2**64 == wrapped
        assert 0 <= both(arithmetic.hashed, word, 1024) < 1024


def test_words_of_rows() -> None:
    """They wrap around; results are named by them, so that they must stay what they are."""
    value, row = np.array([0, 1, -1, LOWEST, LARGEST, 10**15]), np.array([0, 1, 0, 1, 0, 1])
    salt, seed = np.full(6, 2**64 - 1, np.uint64), np.array([2**63 + 1, 7], np.uint64)
    found = []
    for way in ("interpreted", "compiled"):
        high, low = np.zeros(6, np.uint64), np.zeros(6, np.uint64)
        getattr(words.words_of_numbers, way)(value, high, low)
        assert high.tolist() == mixed(value.astype(np.uint64)).tolist()
        sums, letters = (np.ones(2, np.uint64), np.ones(2, np.uint64)), np.zeros(64, np.uint8)
        getattr(words.add_words, way)(high, low, row, salt, *sums)
        getattr(words.fold_numbers, way)(value[3:5], seed, *sums)
        getattr(words.write_words, way)(*sums, seed, letters)
        stays = np.ones(6, np.bool_)
        twice = np.tile(high[:3], 2)
        getattr(words.pair_off, way)(twice, twice, 2, np.full(4, -1), np.zeros(2, np.int64), stays)
        found.append((high.tolist(), low.tolist(), *(half.tolist() for half in sums), bytes(letters), stays.tolist()))
    assert found[0] == found[1]
    last = zip(mixed(sums[0]).tolist(), mixed(sums[1] ^ seed[0]).tolist(), strict=True)
    assert bytes(letters).decode() == "".join(f"{high:016x}{low:016x}" for high, low in last)
    assert found[0][5] == [False, False, True, False, False, True]


def test_quotients_by_zero_and_what_is_no_number() -> None:
    for x, y in product(FLOATS, FLOATS):
        both(arithmetic.divided, x, y)
    assert [arithmetic.divided(x, 0.0) for x in (1.0, -1.0)] == [INF, -INF]
    assert arithmetic.divided(1.0, -0.0) == -INF
    for x in FLOATS:
        assert x != x or both(arithmetic.number, x) == x
    assert both(arithmetic.number, -NAN) != 0


@pytest.mark.parametrize("window", [0, 9, 2**39, 2**40, 2**59 + 1, 2**60])
def test_parts_of_windows(window: int) -> None:
    for parts in (1, 2, 7, 8, 4096):
        for left in {0, 1, window // 3, window // 2, window - 1, window}:
            if left >= 0:
                assert both(arithmetic.part_of, left, window, parts) == left * parts // (window + 1)


# --- conditions -------------------------------------------------------------------------------------------------------


def events(*rows: tuple[Any, ...], kind: Any = None) -> pa.Table:
    """Events with a type and ``x``, one a tick."""
    types, values = zip(*rows, strict=True)
    return pa.table({"ts": range(len(rows)), "type": types, "x": pa.array(values, kind)})


def found(text: str, table: pa.Table, **options: Any) -> Any:
    """What a query gives in each tier, the state in the middle included."""

    def run() -> list[Any]:
        query = compile_query(text, engine="runs")
        matcher, half = query.matcher(**options), table.num_rows // 2
        first = matcher.push(table.slice(0, half))
        return [first, matcher.state_bytes(), matcher.push(table.slice(half)), matcher.finish(), vars(matcher.progress)]

    return assert_same(run)


HUGE = (2**62, 2**62 + 1, LARGEST, -LARGEST, -(2**62), 3, -1, 0, None, 3037000500)


@pytest.mark.parametrize("sign", ["+", "-", "*", "%"])
@pytest.mark.parametrize("x", HUGE)
def test_arithmetic_on_whole_numbers(sign: str, x: int | None) -> None:
    """Where a number passes 64 bits there is the same error, and only where the run is still in question."""
    for rest in ((2**62, 5, 0), (LARGEST, -LARGEST, 2)):
        table = events(("A", x), ("A", rest[0]), ("B", rest[1]), ("B", rest[2]), kind=pa.int64())
        found(f"PATTERN SEQ(A a, B b) WHERE a.x {sign} b.x > 3 WITHIN 9", table)
        found(f"PATTERN SEQ(A a, B b) WHERE b.x > a.x AND a.x {sign} b.x <> 3 WITHIN 9", table)


@pytest.mark.parametrize("how", ["sum", "min", "max", "count", "avg"])
@pytest.mark.parametrize("kind", [pa.int64(), pa.float64()])
def test_aggregates(how: str, kind: pa.DataType) -> None:
    values: dict[Any, tuple[Any, ...]] = {
        pa.int64(): (2**62, 5, None, 2**62 - 1, -LARGEST, 9),
        pa.float64(): (0.0, -0.0, NAN, None, INF, -INF),
    }
    for few in (values[kind], values[kind][::-1], values[kind][2:], values[kind][:2]):
        table = events(*(("A", x) for x in few), ("B", few[0]), ("B", few[-1]), kind=kind)
        found(f"PATTERN SEQ(A+ a[], B b) WHERE b.x >= {how}(a[].x) WITHIN 20", table)
        found(f"PATTERN SEQ(A+ a[], B b) WHERE {how}(a[..i-1].x) <= a[i].x AND b.x <> a[1].x WITHIN 20", table)


@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "%"])
def test_arithmetic_on_floats(sign: str) -> None:
    """Infinities, NaN, zeros of both signs, and zeros to divide by: each pair is a key of its own."""
    values = (0.0, -0.0, 1.5, -2.5, INF, -INF, NAN, 1e308, None)
    pairs_of = [(x, y) for x in values for y in values]
    rows = [{"type": "A", "x": x, "k": k} for k, (x, _) in enumerate(pairs_of)]
    rows += [{"type": "B", "x": y, "k": k} for k, (_, y) in enumerate(pairs_of)]
    table = pa.Table.from_pylist([{"ts": ts, **row} for ts, row in enumerate(rows)])
    found(f"PATTERN SEQ(A a, B b) WHERE [k] AND a.x {sign} b.x < 3 WITHIN 900", table)
    found(f"PATTERN SEQ(A a, B b) WHERE a.k = b.k AND (a.x {sign} b.x > 3 OR a.x {sign} b.x IS NULL) WITHIN 900", table)


def test_what_is_no_number_is_kept_with_the_same_bits() -> None:
    """Registers are compared bit by bit where runs are merged, and processors differ in the sign of NaN."""
    text = """PATTERN AUTOMATON (
      REGISTERS r = 0.0
      q0 -> q1 ON A a SET r = a.x
      q1 -> q1 ON A a SET r = r {} -a.x
      q1 -> q2 ON B b WHEN b.x > r OR r IS NULL
      FINAL q2
    ) WITHIN 20"""
    table = events(*(("A", x) for x in (INF, INF, NAN, None, -INF, 0.0)), ("B", 1.0), kind=pa.float64())
    for sign in "+-*/%":
        found(text.format(sign), table)


# --- the limits of times, counts and budgets --------------------------------------------------------------------------


@pytest.mark.parametrize("first", [-(2**60) + 1, -(10**15), 2**60 - 30])
@pytest.mark.parametrize("engine", ["auto", "runs"])
def test_times_at_their_limits(first: int, engine: Any) -> None:
    rows = [{"ts": first + i, "type": "ABAC"[i % 4], "x": i % 3} for i in range(24)]
    for within in (5, 2**60):
        for errors in ("", " ERRORS 1"):
            query = compile_query(f"PATTERN SEQ(A a, B b, C c) WHERE [x] WITHIN {within}{errors}", engine=engine)
            assert_same(lambda query=query: [query.match(rows).to_arrow(), query.match(rows).points()])


HUGE_BUDGET = f"1{'0' * 30} steps/event"
STEPS = "PATTERN SEQ(A a, B b) WHERE b.x >= a.x WITHIN {}"


def dense(rows: int, first: int = 0, apart: int = 1) -> pa.Table:
    """Many events of two types."""
    ts = [first + apart * i for i in range(rows)]
    return pa.table({"ts": ts, "type": ["AAB"[i % 3] for i in range(rows)], "x": [i * 7 % 11 for i in range(rows)]})


@pytest.mark.parametrize("budget", [HUGE_BUDGET, "0.01 steps/event", "2 steps/event", "9 runs", "0 runs"])
@pytest.mark.parametrize("first", [-(10**9), 0])
def test_budgets(budget: str, first: int) -> None:
    """The largest ones, next to none, and streams that begin before time 0: there is no pace before the first event."""
    query, table = compile_query(STEPS.format(40), engine="runs"), dense(150, first)
    assert_same(lambda: [query.match_within(table, budget).to_arrow(), repr(query.match_within(table, budget))])


@pytest.mark.parametrize("policy", ["oldest", "random"])
def test_the_largest_budget_sheds_what_a_large_one_sheds(policy: str) -> None:
    """As a whole number of 64 bits what is left of it would be below zero."""
    query, table = compile_query(STEPS.format(40), engine="runs"), dense(150)
    few, many = (query.match_within(table, budget, policy=policy) for budget in ("100000 steps/event", HUGE_BUDGET))
    assert many.to_arrow().equals(few.to_arrow())


@pytest.mark.parametrize("within", [256, 2**60 - 1])
def test_a_history_of_many_match_points(within: int, tmp_path: Path) -> None:
    """A set of match points is a mask of 64 bits: what lies further ahead leaves it. Windows may be the widest."""
    query, table = compile_query(STEPS.format(within), engine="runs"), dense(220, apart=max(within // 256, 1))

    def run() -> Any:
        history = learned(HistoryGraph(query), table)
        return [query.match_within(table, "40%", history=history, audit=0.5).to_arrow()]

    assert_same(run)


@pytest.mark.filterwarnings("ignore::acep_approx.CappedCountWarning")
@pytest.mark.parametrize("engine", ["auto", "runs"])
def test_counts_at_the_limit(engine: Any) -> None:
    rows = [{"ts": i, "type": "AB"[i == 79]} for i in range(80)]
    query = compile_query("PATTERN SEQ(A+ a[], B b) WITHIN 100", engine=engine)

    assert_same(lambda: query.match(rows).counts())
    assert query.match(rows).counts()["matches"].to_pylist() == [MOST]


def test_counts_of_many_match_points() -> None:
    """They are counted in several calls as long as they are interpreted, each with hits that are numbered anew."""
    query, rows = compile_query("ab|cd WITHIN 50"), [{"ts": i, "type": one} for i, one in enumerate("acbbdcbbd" * 4)]
    assert EVENTS == 3, "the third hit of each of the first two calls is a d"
    assert_same(lambda: query.match(rows).counts())


# --- queries that differ in constants ---------------------------------------------------------------------------------


def test_constants_below_zero_are_found() -> None:
    """They are looked up in a hash table of words without a sign."""
    rows = [{"ts": i, "type": "AB"[i % 2], "x": (-3, -LARGEST, 5, LARGEST, 0, -1)[i // 2 % 6]} for i in range(30)]

    def run() -> Any:
        desk = QuerySet()
        values = (-3, -LARGEST, 5, LARGEST, 0, -1, 77, -77)
        desk.add_many("PATTERN SEQ(A a, B b) WHERE a.x = :p AND b.x = :p WITHIN 4", [{"p": p} for p in values])
        return desk.match(rows).to_arrow()

    assert_same(run)


def test_the_hash_table_of_words() -> None:
    values = np.array([*range(-20, 20), LOWEST, LARGEST, -LARGEST])
    tables = []
    for run in (pairs.fill_hash.interpreted, pairs.fill_hash.compiled):
        table = np.zeros(128 * pairs.HASH_ENTRY, np.int64)
        run(table, values, np.arange(len(values)), np.arange(len(values)) + 1)
        tables.append(table.tolist())
    assert tables[0] == tables[1]


# --- rules ------------------------------------------------------------------------------------------------------------

TABLE = "TABLE t (k text, n int DEFAULT 1, f float DEFAULT 0.5, KEY (k))"
ENDS = (2**62, LARGEST, LOWEST, -1, 0, 3, 3037000500)


def written(setting: str, stored: dict[str, Any], rows: list[dict[str, Any]]) -> Any:
    """What a rule writes into the only row of a table, event by event and all at once, in each tier."""
    rules = compile_rules(f"{TABLE}\nRULE r ON PATTERN A a WITHIN 1 DO UPSERT t SET {setting} AT (a.k) END")
    columns = {"k": ["p"], "n": pa.array([stored["n"]], pa.int64()), "f": pa.array([stored["f"]], pa.float64())}
    batch = pa.Table.from_pylist([{"ts": i, "type": "A", "k": "p", **row} for i, row in enumerate(rows)])

    def pushed(parts: list[pa.Table]) -> Any:
        running = rules.start(store={"t": pa.table(columns)})
        try:
            for part in parts:
                running.push(part)
        except RuleError as error:
            return str(error), running.store["t"].to_arrow()
        running.finish()
        return running.store["t"].to_arrow()

    return assert_same(lambda: [pushed([batch]), pushed([batch.slice(i, 1) for i in range(len(rows))])])


@pytest.mark.parametrize("sign", ["+", "-", "*", "%"])
def test_rules_write_whole_numbers(sign: str) -> None:
    """A write that passes 64 bits fails alike."""
    for x, y in product(cases_of(ENDS), ENDS):
        written(f"n = old.n {sign} a.y", {"n": x, "f": 0.0}, [{"y": y}])
    written(f"n = -(old.n {sign} a.y)", {"n": LOWEST, "f": 0.0}, [{"y": 1}, {"y": None}, {"y": -1}, {"y": 0}])


@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "%"])
def test_rules_write_floats(sign: str) -> None:
    values = (0.0, -0.0, -2.5, INF, -INF, 1e308, NAN)
    for x in cases_of(values):
        written(f"f = old.f {sign} a.y", {"n": 0, "f": x}, [{"y": y} for y in values])
        written(f"n = old.f {sign} a.y", {"n": 0, "f": x}, [{"y": 0.5}, {"y": INF}])


def cases_of(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """All values; two of them where tests are to be quick."""
    return values if FULL else values[1:3]
