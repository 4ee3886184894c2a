"""Long streams, many keys, odd input: what small worlds do not reach."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import CappedCountWarning, DataError, LimitError, QueryError, UsageError, compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.automaton import determinize
from acep_approx.events.reading.python_objects import open_object
from acep_approx.events.roles import Roles
from acep_approx.events.source import Source, Times
from acep_approx.events.stream import read_events
from acep_approx.matching.outputs import of_cells
from acep_approx.run.few import FewEvents
from tests.cases import FULL, cases
from tests.naive import Event, all_matches


def stream(rows: int, letters: str, *, seed: int = 0, keys: int = 0) -> pa.Table:
    """Uniform random letters, one per tick."""
    rng = np.random.default_rng(seed)
    columns = {"ts": np.arange(rows), "type": np.array(list(letters))[rng.integers(0, len(letters), rows)]}
    if keys:
        columns["key"] = rng.integers(0, keys, rows)
    return pa.table(columns)


# --- long streams --------------------------------------------------------------------------------------------


def test_long_stream_agrees_with_brute_force_by_windows() -> None:
    """Logs that grow, wrap and are compacted many times still hold exactly the window."""
    rows = 3000 if FULL else 1200
    events = stream(rows, "abcx")
    query = compile_query("ab+c WITHIN 6 ERRORS 1")
    found = {tuple(m["events"]): m.errors for m in query.match(events)}
    types = events["type"].to_pylist()
    expected = {}
    for start in range(0, rows, 20):
        piece = [Event(i, types[i]) for i in range(start, min(start + 27, rows))]
        for bound, err in all_matches(query.syntax, piece).items():
            if bound[0][0] < 20:
                expected[tuple(start + i for i, _ in bound)] = err
    assert found == expected


@pytest.mark.parametrize("text", ["abcd WITHIN 40 ERRORS 1", "a(b|c)+d WITHIN 20", "abcd WITHIN 40 events"])
def test_state_is_bounded_by_the_window(text: str) -> None:
    """Ten times the stream takes no more state."""
    matcher = compile_query(text).matcher(output="counts")
    sizes = []
    for batch in stream(200_000, "abcdexyz").to_batches(max_chunksize=1000):
        matcher.push(batch)
        sizes.append(len(matcher.state_bytes()))
    assert max(sizes[100:]) <= 1.5 * max(sizes[:20])


def test_recent_events_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """RETURN keeps only events that a run can still point to, in time and in count windows."""
    monkeypatch.setattr(of_cells, "CHUNK", 1000)
    for window in ("50", "50 events"):
        query = compile_query(f"PATTERN SEQ(a a, b b) WITHIN {window} RETURN b.ts - a.ts AS gap")
        matcher = query.matcher()
        for batch in stream(100_000, "abxyz").to_batches(max_chunksize=500):
            gaps = matcher.push(batch)["gap"].to_numpy()
            assert gaps.min() >= 1
            assert gaps.max() <= 50
        assert len(matcher.pipeline.recent.ids) < 5000


def test_matches_longer_than_every_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A match of 300 events: the stack grows, and the output grows beyond its chunk."""
    monkeypatch.setattr(of_cells, "CHUNK", 16)
    events = pa.table({"ts": range(301), "type": ["a"] * 300 + ["b"]})
    query = compile_query("a{300}b WITHIN 1000")
    assert query.match(events).to_arrow()["events"].to_pylist() == [list(range(301))]
    assert len(query.match(events)) == 1


def test_counts_grow_far_beyond_what_could_be_listed() -> None:
    """Match points stay few and exact where matches explode."""
    events = pa.table({"ts": range(21), "type": ["a"] * 20 + ["b"]})
    query = compile_query("a+b WITHIN 100")
    assert len(query.match(events)) == 2**20 - 1
    events = pa.table({"ts": range(51), "type": ["a"] * 50 + ["b"]})
    assert len(query.match(events)) == 2**50 - 1
    assert compile_query("a+b WITHIN 100 ERRORS 1").match(events).count_by_errors() == {
        0: 2**50 - 1,
        1: 2**50 - 1 + 1,  # all choices of a without b; b alone
    }
    assert query.match(events).points().num_rows == 1
    events = pa.table({"ts": range(81), "type": ["a"] * 80 + ["b"]})
    with pytest.warns(CappedCountWarning):
        assert len(query.match(events)) == 2**63 - 1, "counts stop growing there"
    assert query.match(events).counts().to_pylist() == [
        {"errors": 0, "end": 80, "row": 80, "matches": 2**63 - 1, "at_least": True}
    ]
    assert query.matcher(output="counts").push(events.slice(30)).column("at_least").to_pylist() == [False]
    events = pa.table({"ts": range(90), "type": ["a"] * 80 + ["b"] * 10})
    with pytest.warns(CappedCountWarning):
        assert query.match(events).count_by_errors() == {0: 10 * (2**63 - 1)}, "sums do not overflow"
    assert query.match(events, limit=10).to_arrow().num_rows == 10


# --- keys ----------------------------------------------------------------------------------------------------


def test_a_million_keys() -> None:
    """Every key has its own runs; keys that fell silent give their slots back. By default a fifth of them come."""
    keys = cases(1_000_000, 200_000)
    ts = np.concatenate((np.arange(keys), np.arange(keys) + 10))
    order = np.argsort(ts, kind="stable")
    key = np.concatenate((np.arange(keys), np.arange(keys)))[order]
    type_ = np.repeat(["a", "b"], keys)[order]
    query = compile_query("PATTERN SEQ(a a, b b) WHERE [key] WITHIN 10")
    events = pa.table({"ts": ts[order], "key": key, "type": pa.array(type_).dictionary_encode()})
    for output in ("points", "counts"):
        matcher = query.matcher(output=output)
        found = sum(matcher.push(batch).num_rows for batch in events.to_batches(max_chunksize=keys // 10))
        assert found == keys
        assert matcher.progress.keys < 0.4 * keys


def test_silent_keys_do_not_disturb_keys_that_take_their_slots() -> None:
    """A slot that is used again starts empty."""
    query = compile_query("PATTERN SEQ(a a, b b) WHERE [key] WITHIN 5")
    matcher = query.matcher()
    for i in range(30):
        first = pa.table({"ts": [i * 100] * 1000, "key": range(i * 1000, i * 1000 + 1000), "type": ["a"] * 1000})
        others = range(i * 1000 + 500, i * 1000 + 1500)
        later = pa.table({"ts": [i * 100 + 50] * 1000, "key": others, "type": ["b"] * 1000})
        assert matcher.push(first).num_rows == 0
        assert matcher.push(later).num_rows == 0
    assert matcher.progress.keys < 10_000


def test_several_equivalences_and_null_keys() -> None:
    """Events match only where all attributes agree; NULL agrees with nothing, and is counted."""
    events = [
        {"ts": 1, "type": "A", "u": 1, "v": "x"},
        {"ts": 2, "type": "A", "u": 1, "v": None},
        {"ts": 3, "type": "B", "u": 1, "v": "y"},
        {"ts": 4, "type": "B", "u": 1, "v": "x"},
        {"ts": 5, "type": "B", "u": 1, "v": None},
    ]
    matches = compile_query("PATTERN SEQ(A a, B b) WHERE [u] AND [v] WITHIN 9").match(events)
    assert [(m["a"], m["b"], m.key) for m in matches] == [(0, 3, {"u": 1, "v": "x"})]
    assert matches.progress.without_key == 2


def test_the_key_role_and_its_column() -> None:
    """[key] means the column that plays the key."""
    events = pa.table({"when": [1, 2], "kind": ["A", "B"], "tail": ["n1", "n1"]})
    matches = compile_query("PATTERN SEQ(A a, B b) WHERE [key] WITHIN 9").match(events, time="when", key="tail")
    assert matches.to_arrow().column_names == ["tail", "errors", "start", "end", "missing", "a", "b"]


# --- determinised states ---------------------------------------------------------------------------------------


def test_states_are_made_while_the_stream_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """More states than are explored ahead: the kernel asks for them and goes on."""
    monkeypatch.setattr(determinize, "AHEAD", 20)
    text = "(a|b)*a(a|b){6} WITHIN 9"
    events = stream(300, "ab")
    matcher = compile_query(text).matcher(output="counts")
    total = sum(matcher.push(events)["matches"].to_pylist())
    assert len(matcher.pipeline.engine.determinised) > 120
    matcher = compile_query(text).matcher(output="counts")
    parts = 0
    for batch in events.to_batches(max_chunksize=7):
        parts += sum(matcher.push(batch)["matches"].to_pylist())
        matcher = compile_query(text).from_state(matcher.state_bytes())
    assert parts == total


def test_many_event_classes_are_explored_once() -> None:
    """Twelve conditions that overlap: thousands of classes, and no time that grows with their square."""
    rng = np.random.default_rng(5)
    events = pa.table({"ts": np.arange(60_000), **{f"x{i}": rng.random(60_000) for i in range(12)}})
    parts = ", ".join(f"ANY v{i}" for i in range(12))
    conditions = " AND ".join(f"v{i}.x{i} > 0.8" for i in range(12))
    query = compile_query(f"PATTERN SEQ({parts}) WHERE {conditions} WITHIN 30 ERRORS 1")
    matcher = query.matcher(output="counts")
    ends = matcher.push(events)["row"].to_pylist()
    assert len(matcher.pipeline.preparer.classes) > 1000
    assert sorted(set(ends)) == query.match(events).points()["row"].to_pylist()


def test_the_state_cap_is_an_honest_error() -> None:
    """Listing gives up with both numbers; points still work."""
    query = compile_query("(a|b)*a(a|b){9} WITHIN 15")
    events = stream(400, "ab")
    with pytest.raises(LimitError, match="more than 200 determinised states") as caught:
        Matcher(query.plan, state_cap=200).push(events)
    assert (caught.value.code, caught.value.given, caught.value.limit) == ("ACEP-Q905", 201, 200)
    assert query.match(events).points().num_rows > 100


# --- odd input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("empty", [[], pa.table({"ts": pa.array([], pa.int64()), "type": pa.array([], pa.string())})])
def test_no_events(empty: object) -> None:
    """No events: no matches, no crash."""
    matches = compile_query("ab WITHIN 5").match(empty)
    assert len(matches) == 0
    assert list(matches) == []
    assert matches.points().num_rows == 0


def test_pushing_nothing_and_irrelevant_events() -> None:
    """Empty batches and events no letter wants leave the state as it is."""
    matcher = compile_query("ab WITHIN 5").matcher()
    schema = pa.schema([("ts", pa.int64()), ("type", pa.string())])
    assert matcher.push(schema.empty_table()).num_rows == 0
    matcher.push([{"ts": 1, "type": "a"}])
    matcher.push([{"ts": 2, "type": "zzz"}])
    matcher.push(schema.empty_table())
    assert matcher.push([{"ts": 6, "type": "b"}]).num_rows == 1


def test_time_must_not_run_backwards_between_batches() -> None:
    """The offending row is named."""
    matcher = compile_query("ab WITHIN 5").matcher()
    matcher.push([{"ts": 1, "type": "a"}, {"ts": 7, "type": "a"}])
    with pytest.raises(DataError, match="backwards") as caught:
        matcher.push([{"ts": 6, "type": "b"}])
    assert caught.value.row == 2
    with pytest.raises(DataError, match="row 3: time runs backwards"):
        matcher.push([{"ts": 8, "type": "b"}, {"ts": 7, "type": "b"}])


def test_what_was_found_before_a_wrong_batch_is_not_lost() -> None:
    rows = 131_072 + 10
    times = np.arange(rows)
    times[-1] = 0
    kinds = np.where(np.arange(rows) % 40_000 == 1, "A", np.where(np.arange(rows) % 40_000 == 2, "B", "x"))
    matcher = compile_query("PATTERN SEQ(A a, B b) WITHIN 5").matcher()
    with pytest.raises(DataError) as caught:
        matcher.push(pa.table({"ts": times, "type": kinds}))
    assert caught.value.code == "ACEP-D007"
    assert isinstance(caught.value.found, pa.Table)
    assert caught.value.found.column("b").to_pylist() == [2, 40_002, 80_002, 120_002]
    assert matcher.progress.events == 131_072
    with pytest.raises(DataError) as caught:
        matcher.push([{"ts": 0, "type": "A"}])
    assert caught.value.found is None


def test_missing_column() -> None:
    """The columns that are there are listed."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE a.price > 1 WITHIN 5")
    with pytest.raises(QueryError, match="price"):
        query.match([{"ts": 1, "type": "A", "prize": 1}]).to_arrow()
    with pytest.raises((DataError, QueryError), match="key"):
        compile_query("PATTERN SEQ(A a, B b) WHERE [key] WITHIN 5").match([{"ts": 1, "type": "A"}]).to_arrow()
    with pytest.raises(DataError, match="type"):
        query.match([{"ts": 1, "price": 1}]).to_arrow()


def test_wrong_type() -> None:
    """A comparison of text with a number is refused before anything runs."""
    with pytest.raises(QueryError, match="price"):
        compile_query("a WITHIN 5 DEFINE a AS price > 1").match([{"ts": 1, "price": "x"}]).to_arrow()


def test_nan_is_null() -> None:
    """NaN satisfies no comparison, and IS NULL."""
    events = pa.table({"ts": [1, 2], "x": [float("nan"), 2.0]})
    assert compile_query("a WITHIN 5 DEFINE a AS x <> 2").match(events).points().num_rows == 0
    assert compile_query("a WITHIN 5 DEFINE a AS x IS NULL").match(events).points()["row"].to_pylist() == [0]


def test_units_must_fit_the_time_column() -> None:
    """Real time wants a unit; plain integers want none, or to be told what they count."""
    times = pa.table({"ts": pa.array([0, 1_500_000], pa.timestamp("us")), "type": ["a", "b"]})
    plain = pa.table({"ts": [0, 1500], "type": ["a", "b"]})
    assert len(compile_query("ab WITHIN 2 s").match(times)) == 1
    assert len(compile_query("ab WITHIN 1500 ms").match(times)) == 1
    assert len(compile_query("ab WITHIN 1499 ms").match(times)) == 0
    assert len(compile_query("ab WITHIN 2 s").match(plain, unit="ms")) == 1
    assert len(compile_query("ab WITHIN 1 s").match(plain, unit="ms")) == 0
    with pytest.raises(QueryError, match="has no unit"):
        compile_query("ab WITHIN 2").match(times).to_arrow()
    with pytest.raises(QueryError, match="plain integers"):
        compile_query("ab WITHIN 2 s").match(plain).to_arrow()
    with pytest.raises(LimitError, match="longer than time"):
        compile_query("ab WITHIN 99999999999999 d").match(times).to_arrow()


def test_types_that_are_not_text() -> None:
    """Event types may be numbers: a type in a query is their text."""
    events = pa.table({"ts": [1, 2], "type": [7, 8]})
    assert len(compile_query("PATTERN SEQ('7' a, '8' b) WITHIN 5").match(events)) == 1


def test_readers_can_be_read_once() -> None:
    """The second reading says so, instead of finding nothing."""
    matches = compile_query("ab WITHIN 5").match({"ts": i, "type": t} for i, t in enumerate("ab"))
    assert len(list(matches)) == 1
    with pytest.raises(UsageError):
        list(matches)
    with pytest.raises(TypeError, match="count_by_errors"):
        len(matches)
    again = compile_query("ab WITHIN 5").match({"ts": i, "type": t} for i, t in enumerate("ab"))
    assert again.count_by_errors() == {0: 1}


def test_names_of_result_columns_are_taken() -> None:
    """A variable cannot be called like a column of the result."""
    with pytest.raises(QueryError, match="'missing' is taken") as caught:
        compile_query("PATTERN SEQ(A missing, B b) WITHIN 5")
    assert caught.value.code == "ACEP-Q901"
    query = compile_query("PATTERN SEQ(A u, B b) WHERE [u] WITHIN 5")
    with pytest.raises(DataError, match="two columns"):
        query.match([{"ts": 1, "type": "A", "u": 1}]).to_arrow()


def test_limits_and_outputs_are_checked() -> None:
    """Arguments that make no sense."""
    query = compile_query("ab WITHIN 5")
    with pytest.raises(UsageError, match="limit is -1"):
        query.match([], limit=-1)
    with pytest.raises(UsageError, match="no output 'pictures'"):
        query.matcher(output="pictures")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no format 'gif'"):
        query.explain("gif")


# --- state ---------------------------------------------------------------------------------------------------


def test_a_state_belongs_to_its_query() -> None:
    """Another query, other bytes, another format: refused, with both fingerprints."""
    query = compile_query("ab WITHIN 5")
    matcher = query.matcher()
    matcher.push([{"ts": 1, "type": "a"}])
    state = matcher.state_bytes()
    with pytest.raises(DataError, match=query.automaton.fingerprint()):
        compile_query("ac WITHIN 5").from_state(state)
    with pytest.raises(DataError, match="window"):
        compile_query("ab WITHIN 6").from_state(state)
    with pytest.raises(DataError, match="not the state"):
        query.from_state(b"rubbish")
    assert query.from_state(state).push([{"ts": 3, "type": "b"}]).num_rows == 1


def test_a_fresh_state_can_be_saved() -> None:
    """Before the first batch there is nothing but the options."""
    query = compile_query("ab WITHIN 5 s")
    matcher = query.from_state(query.matcher(time="at", unit="s").state_bytes())
    assert matcher.push([{"at": 1, "type": "a"}, {"at": 6, "type": "b"}]).num_rows == 1


# --- returns -------------------------------------------------------------------------------------------------


def test_return_reaches_back_over_batches() -> None:
    """Values of events of earlier batches; NULL where the event is missing."""
    query = compile_query(
        "PATTERN SEQ(A a, B b, C c) WITHIN 9 ERRORS 1 WEIGHTS (a = 2, c = 2) "
        "RETURN a.name AS first, b.x AS middle, c.x - a.x AS gain, 1 + 1 AS two"
    )
    matcher = query.matcher()
    matcher.push([{"ts": 1, "type": "A", "x": 5, "name": "n1"}, {"ts": 2, "type": "B", "x": 6, "name": "n2"}])
    rows = matcher.push([{"ts": 4, "type": "C", "x": 9, "name": "n3"}]).select(["first", "middle", "gain", "two"])
    assert sorted(rows.to_pylist(), key=str) == [
        {"first": "n1", "middle": 6, "gain": 4, "two": 2},
        {"first": "n1", "middle": None, "gain": 4, "two": 2},
    ]


def test_missing_names_what_a_broken_negation_made_necessary() -> None:
    """The way without errors is closed by the X, so a Kleene iteration must be missing: it is named."""
    query = compile_query("PATTERN SEQ(A a, ~(X x), B* b[], C c) WITHIN 9 ERRORS 1 WEIGHTS (a = 2, c = 2)")
    events = [{"ts": i, "type": t} for i, t in enumerate("AXCAC")]
    found = {(m["a"], m["c"]): (m.errors, m.missing) for m in query.match(events)}
    assert found[0, 2] == (1, ("b",))
    assert found[3, 4] == (0, ())


def test_a_push_without_results_has_the_columns_that_results_have_by_now() -> None:
    """Types become wider while nothing is found."""
    matcher = compile_query("PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.x AS x").matcher()
    nothing = [matcher.push([{"ts": ts, "type": "A", "x": x}]) for ts, x in enumerate([None, 1, 2, 1.5])]
    found = matcher.push([{"ts": 4, "type": "B", "x": 0}])
    assert [str(table.schema.field("x").type) for table in nothing] == ["null", "int64", "int64", "double"]
    assert found.schema.equals(nothing[-1].schema)
    assert matcher.finish().schema.equals(found.schema)


def test_a_few_events_become_the_batch_that_the_general_way_makes() -> None:
    """The short way gives the same batch, or leaves it to the general one: for whatever is wrong or odd."""
    odd = [True, None, 2.5, float("nan"), "A", "\ud800", 1 << 60, -(1 << 60), 1 << 70, {"x": 1}, [1], np.int64(3)]
    values = [*odd, *(["A", "B", 7, 7.0, 2.5] * 6)]
    dice, short, kinds = np.random.default_rng(1), 0, set()
    few, roles = FewEvents(), [Roles("ts"), Roles("ts", unit="ms"), Roles("ts", unit="ns"), Roles("ts", start="x")]
    for number in range(2000):
        mine = roles[number // 100 % 4]
        events = [
            {"ts": int(ts), **{name: values[dice.integers(len(values))] for name in ("type", "x")}}
            for ts in dice.integers(0, 3, dice.integers(1, 4)).cumsum() - (number % 7 == 0)
        ]
        if number % 11 == 0:
            events[0]["ts"] = values[dice.integers(len(values))]
        if number % 13 == 0:
            events[0] = {"\ud800" if number % 2 else 5: 1} | events[0]
        read, given = ("ts", "type", "x")[: dice.integers(1, 4)], events
        if number % 2:
            with suppress(pa.ArrowException, OverflowError, ValueError, TypeError, IndexError):
                parts = events, [event | {"ts": event["ts"] + 9} for event in events]
                given = pa.concat_tables(map(pa.Table.from_pylist, parts)).slice(number % 3)
                given = given.set_column(1, "type", given["type"].dictionary_encode()) if number % 3 else given
                given = given.combine_chunks().to_batches()[0] if number % 5 else given
        shape = few.shape(given, mine)
        batch = None if shape is None else few.batch(shape, given, mine, read, 7)
        if batch is None:
            continue
        short += 1
        source = Source(open_object(iter(given) if given is events else given), times=Times("ts"))
        assert shape is not None
        assert all(shape.schema.field(name).equals(source.schema.field(name)) for name in read)
        others = [*read_events(source, mine, columns=read, first_row=7)]
        assert all(batch.data.schema.equals(other.data.schema) for other in others)
        assert batch.first_row == others[0].first_row == 7
        assert batch.ticks.tolist() == [tick for other in others for tick in other.ticks.tolist()]
        assert repr(batch.data.to_pylist()) == repr([row for other in others for row in other.data.to_pylist()])
        kinds.add((type(given), len(others)))
    assert short > 200
    assert kinds == {(list, 1), (pa.RecordBatch, 1), (pa.Table, 1), (pa.Table, 2)}


def test_dicts_that_are_pushed_one_by_one_and_those_that_are_read() -> None:
    """Wider types, missing columns, nested values and errors are the same by both ways."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 20")
    events: list[dict[str, object]] = [
        {"ts": 1, "type": "A", "x": 1}, {"ts": 2, "type": "B", "x": 2.5}, {"ts": 3, "type": "A"},
        {"ts": 4, "type": "B", "x": None}, {"ts": 5, "x": 3, "type": "B", "y": {"z": 1}},
        {"ts": 6, "type": "C", "x": 4}, {"ts": 6, "type": "B", "x": 1 << 40},
    ]  # fmt: skip
    one_by_one, general = query.matcher(), query.matcher()
    for event in events:
        assert one_by_one.push([event]).equals(general.push(iter([event])))
    assert one_by_one.state_bytes() == general.state_bytes()
    for wrong in ({"ts": 5, "type": "A", "x": 1}, {"ts": 9, "type": "A", "x": "?"}, {"ts": None, "type": "A", "x": 1}):
        told = []
        for matcher in (one_by_one, general):
            with pytest.raises(DataError) as caught:
                matcher.push([wrong] if matcher is one_by_one else iter([wrong]))
            told.append((caught.value.code, str(caught.value)))
        assert told[0] == told[1]


USED = (
    "ab+c WITHIN 6 ERRORS 1",
    "PATTERN SEQ(A a, ~(X x), B+ b[], C c) WITHIN 9",
    "PATTERN SEQ(A a, ~(X x), B+ b[], C c) WHERE b[i].n > a.n AND c.n >= b.n + 1 WITHIN 9",
    "PATTERN SEQ(A a, B b, C c) WHERE a.n < b.n AND c.key != a.key AND c.n > 2 WITHIN 12",
    "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { a.name < b.name AND b.name != 'k3' } WITHIN 12",
)


@pytest.mark.parametrize("output", ["matches", "points"])
@pytest.mark.parametrize("text", USED)
def test_tables_that_were_made_before_are_those_that_would_be_made(text: str, output: str) -> None:
    """A query that has run on other streams leaves the state that a new one leaves, whatever it met before."""
    used, letters = compile_query(text), "ABCX" if "PATTERN" in text else "abcx"
    for seed in range(12):
        events = stream(60, letters[seed % 3 :] + letters[: seed % 4], seed=seed, keys=3)
        numbers = np.random.default_rng(seed).integers(0, 9, 60)
        events = events.append_column("n", pa.array(numbers * (1 if seed % 2 else 0.5)))
        events = events.append_column("name", pa.array([f"k{number}" for number in numbers % 5]))
        matchers = [query.matcher(output=output) for query in (used, compile_query(text))]
        for first in range(0, 60, 7 + seed):
            found = [matcher.push(events.slice(first, 7 + seed)) for matcher in matchers]
            assert found[0].equals(found[1])
        assert matchers[0].state_bytes() == matchers[1].state_bytes()


def test_tables_are_not_those_of_names_that_mean_other_columns() -> None:
    """The same query over the same columns, of which another one is the key."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE a.key < b.key WITHIN 9")
    events = pa.table({"ts": [1, 2, 3], "type": list("AAB"), "x": [1, 2, 3], "y": [3, 2, 2]})
    assert [query.match(events, key=key).to_arrow().num_rows for key in ("x", "y", "x")] == [2, 0, 2]
