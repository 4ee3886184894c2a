"""Events in the tables and frames of other libraries: the answer is that of the Arrow table, whatever they come in."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import HistoryGraph, QuerySet, compile_query, compile_rules
from acep_approx.errors import AcepError, DataError, UsageError
from acep_approx.events import open_source
from acep_approx.events.reading import fetched
from tests.cases import examples
from tests.processes import imported

EVENTS = pa.table({
    "ts": pa.array([minute * 60 for minute in range(40)], pa.timestamp("s")).cast(pa.timestamp("us")),
    "type": ["ABCA"[n % 4] for n in range(40)],
    "user": ["ann" if n % 3 else "bob" for n in range(40)],
    "x": [n * 7 % 11 for n in range(40)],
})  # fmt: skip
QUERY = "PATTERN SEQ(A a, B b) WHERE [user] AND b.x != a.x WITHIN 10 min ERRORS 1"
RULES = """
TABLE seen (who text, n int DEFAULT 0, KEY (who))
RULE count ON PATTERN A a WITHIN 1 min DO UPDATE seen SET n = old.n + 1 AT (a.user) END
"""


class Hands:
    """A table of some library that has nothing but its Arrow stream."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


class HandsAgain(Hands):
    """One that knows its length."""

    def __len__(self) -> int:
        return self._table.num_rows


class HandsArray:
    """One that is a single batch."""

    def __init__(self, table: pa.Table) -> None:
        self._batch = table.combine_chunks().to_batches()[0]

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._batch.__arrow_c_array__(requested_schema)


def relation(table: pa.Table) -> Any:
    connection = duckdb.connect()
    connection.register("events", table)
    return connection.sql("SELECT * FROM events")


def unnamed(table: pa.Table) -> pd.DataFrame:
    return table.to_pandas().set_index("ts").rename_axis(None)


AGAIN: dict[str, Callable[[pa.Table], Any]] = {
    "table": lambda table: table,
    "batches": lambda table: table.to_batches(max_chunksize=7),
    "tables": lambda table: [table.slice(0, 5), table.slice(5)],
    "polars": pl.from_arrow,
    "lazy polars": lambda table: pl.from_arrow(table).lazy(),
    "pandas": lambda table: table.to_pandas(),
    "pandas with a named index": lambda table: table.to_pandas().set_index("ts"),
    "pandas with an index without a name": unnamed,
    "duckdb": relation,
    "dataset": ds.dataset,
    "numpy": lambda table: table.to_pandas().to_records(index=False),
    "a stream that can be asked again": HandsAgain,
    "an Arrow array": HandsArray,
    "a source": open_source,
}
ONCE: dict[str, Callable[[pa.Table], Any]] = {
    "reader": lambda table: table.to_reader(max_chunksize=7),
    "batches one after the other": lambda table: iter(table.to_batches(max_chunksize=7)),
    "a stream": Hands,
}
ALL = AGAIN | ONCE
OUTPUTS: dict[str, Callable[[Any], Any]] = {
    "matches": lambda events: compile_query(QUERY).match(events).to_arrow(),
    "points": lambda events: compile_query(QUERY).match(events).points(),
    "bind": lambda events: compile_query(QUERY).match(events, bind=["ts", "user"]).to_arrow(),
    "counts": lambda events: compile_query(QUERY).match(events).count_by_errors(),
    "partial": lambda events: compile_query(QUERY, errors=0).match(events).partial(),
    "sorted": lambda events: compile_query(QUERY).match(events, sort=True).to_arrow(),
    "budget": lambda events: compile_query(QUERY).match_within(events, "200 runs", audit=0).to_arrow(),
    "pushed": lambda events: compile_query(QUERY).matcher().push(events),
    "revised": lambda events: compile_query(QUERY).matcher(watermark="1 min").push(events),
    "why": lambda events: str(compile_query(QUERY).why(events, around="1970-01-01T00:20:00", key="ann")),
    "learned": lambda events: HistoryGraph(compile_query(QUERY)).fit(events).points_,
    "set": lambda events: _of_set().match(events)["one"],
    "pushed set": lambda events: _of_set().push(events)["one"],
    "rules": lambda events: compile_rules(RULES).run(events).store["seen"].to_arrow(),
    "pushed rules": lambda events: compile_rules(RULES).start().push(events)["count"],
}


def _of_set() -> QuerySet:
    desk = QuerySet()
    desk.add(QUERY, id="one")
    return desk


@pytest.fixture(scope="module")
def expected():
    return {name: output(EVENTS) for name, output in OUTPUTS.items()}


@pytest.mark.parametrize("kind", ALL)
def test_the_answer_is_that_of_the_table(kind, expected):
    for name, output in OUTPUTS.items():
        found = output(ALL[kind](EVENTS))
        assert found == expected[name], name
        assert getattr(found, "num_rows", 1), name


@pytest.mark.parametrize("kind", ALL)
def test_what_can_be_read_again_is(kind):
    events = ALL[kind](EVENTS)
    source = open_source(events)
    assert source.schema.names == EVENTS.column_names
    assert source.reusable == (kind in AGAIN)
    assert source.rows in (EVENTS.num_rows, None)
    part = pa.Table.from_batches(source.batches(["x", "type"], batch_rows=3))
    assert part.column_names == ["x", "type"]
    assert part["x"].to_pylist() == EVENTS["x"].to_pylist()
    assert {batch.num_rows for batch in part.to_batches()} <= {1, 2, 3}
    if source.reusable:
        assert sum(batch.num_rows for batch in source.batches()) == EVENTS.num_rows
    else:
        with pytest.raises(UsageError, match="only once") as caught:
            source.batches()
        assert caught.value.code == "ACEP-U103"


@pytest.mark.parametrize("kind", ["polars", "lazy polars", "duckdb", "dataset", "pandas", "batches"])
def test_tables_of_rules_begin_with_rows_of_any_kind(kind):
    rows = pa.table({"who": ["ann", "bob"], "n": [5, 7]})
    run = compile_rules(RULES).start(store={"seen": AGAIN[kind](rows)})
    assert run.store["seen"].to_pylist() == rows.to_pylist()


def test_no_library_is_loaded_for_what_is_not_its_own():
    found = imported("""
from acep_approx import compile_query
compile_query('PATTERN SEQ(A a, B b) WITHIN 5').match([{'ts': 1, 'type': 'A'}]).to_arrow()""")
    assert "pyarrow" in found
    assert not found & {"polars", "duckdb"}


# --- columns that are not asked for -----------------------------------------------------------------------------


def test_a_lazy_frame_computes_only_the_columns_of_the_query():
    frame = pl.from_arrow(EVENTS).lazy().with_columns(
        pl.col("x").map_batches(lambda _: 1 // 0, return_dtype=pl.Int64).alias("wrong")
    )  # fmt: skip
    query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 10 min")
    assert query.match(frame).to_arrow() == query.match(EVENTS).to_arrow()
    with pytest.raises(DataError, match="ZeroDivisionError") as caught:
        query.match(frame, bind="wrong").to_arrow()
    assert caught.value.code == "ACEP-D067"


def test_a_relation_computes_only_the_columns_of_the_query():
    connection = duckdb.connect()
    connection.register("events", EVENTS)
    wrong = connection.sql("SELECT *, CAST(type AS INT) AS wrong FROM events")
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 10 min")
    assert query.match(wrong).to_arrow() == query.match(EVENTS).to_arrow()
    with pytest.raises(DataError, match="ConversionException") as caught:
        query.match(wrong, bind="wrong").to_arrow()
    assert caught.value.code == "ACEP-D067"


def test_a_relation_is_let_go_when_enough_was_read():
    connection = duckdb.connect()
    many = connection.sql("SELECT range AS ts, 'A' AS type FROM range(500000)")
    assert len(compile_query("PATTERN A a WITHIN 5").match(many, limit=2).to_arrow()) == 2
    assert connection.sql("SELECT 42").fetchall() == [(42,)]


@pytest.mark.parametrize("most", [0, 64 << 20])
@pytest.mark.parametrize("made", ["table", "registered", "temporary", "frame in Python", "objects"])
def test_duckdb_reads_matches_on_the_connection_of_their_events(made, most, monkeypatch):
    monkeypatch.setattr(fetched, "IN_MEMORY", most)
    connection = duckdb.connect()
    here = EVENTS  # noqa: F841  (DuckDB reads it)
    if made == "registered":
        connection.register("events", EVENTS)
    elif made in ("table", "temporary"):
        connection.execute(f"CREATE {'TEMP' if made == 'temporary' else ''} TABLE events AS FROM here")
    text = "PATTERN SEQ(A a, B b) WITHIN 10 min RETURN a.x AS one, b.x AS other"
    chosen = "FROM here" if "Python" in made else "FROM events"
    if made == "objects":
        text, chosen = text.replace(".x", ".o.x"), "SELECT ts, type, user, {'x': x} AS o FROM here"
    query, relation = compile_query(text), connection.sql(chosen)
    wanted = compile_query(text.replace(".o.x", ".x")).match(EVENTS).to_arrow()
    found = query.match(relation)
    for _ in range(2):
        rows = connection.sql("SELECT count(*), sum(one), sum(other) FROM found").fetchall()
        assert rows == [(wanted.num_rows, *(sum(wanted[name].to_pylist()) for name in ("one", "other")))]
    assert pa.table(connection.sql("FROM found").to_arrow_table()).num_rows == wanted.num_rows
    assert found.to_arrow() == wanted
    assert found.points().num_rows
    bought = query.match_within(relation, "200 runs", audit=0)
    assert connection.sql("SELECT count(*) FROM bought").fetchall() == [(len(bought.to_arrow()),)]


def test_a_relation_without_rows_has_no_matches_for_duckdb():
    connection = duckdb.connect()
    none = connection.sql("SELECT range AS ts, 'A' AS type FROM range(0)")
    found = compile_query("PATTERN SEQ(A a, B b) WITHIN 5").match(none)  # noqa: F841  (DuckDB reads it)
    assert connection.sql("FROM found").fetchall() == []


def test_names_of_columns_are_names_and_no_patterns():
    odd = EVENTS.rename_columns(["ts", "type", 'a "user"', "^x.*$"])
    for kind in ("polars", "lazy polars", "duckdb", "dataset"):
        source = open_source(AGAIN[kind](odd))
        found = pa.Table.from_batches(source.batches(["^x.*$", 'a "user"']))
        assert found.column_names == ["^x.*$", 'a "user"']
        assert found["^x.*$"].to_pylist() == EVENTS["x"].to_pylist()


def test_a_dataset_of_files_reads_only_what_is_asked_for(tmp_path):
    pq.write_table(EVENTS.slice(0, 15), tmp_path / "a.parquet")
    pq.write_table(EVENTS.slice(15), tmp_path / "b.parquet")
    assert OUTPUTS["matches"](ds.dataset(tmp_path)) == OUTPUTS["matches"](EVENTS)
    missing = ds.dataset(tmp_path)
    (tmp_path / "b.parquet").unlink()
    with pytest.raises(DataError) as caught:
        OUTPUTS["matches"](missing)
    assert caught.value.code == "ACEP-D067"


# --- the index of pandas ----------------------------------------------------------------------------------------


def test_the_index_is_the_time_only_where_no_column_is():
    frame = unnamed(EVENTS)
    assert open_source(frame).schema.names[0] == "ts"
    assert open_source(frame.assign(time=range(40))).schema.names == ["type", "user", "x", "time"]
    taken = frame.assign(TS=True, sent=frame.index, stored=frame.index)
    assert open_source(taken).schema.names == ["time", "type", "user", "x", "TS", "sent", "stored"]


def test_an_index_with_a_name_goes_before_other_times():
    frame = EVENTS.to_pandas().set_index("ts").rename_axis("at")
    frame["stored"] = frame["sent"] = frame.index[::-1]
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 10 min")
    assert query.match(frame).to_arrow() == query.match(EVENTS).to_arrow()
    with pytest.raises(DataError) as caught:
        query.match(frame.reset_index()).to_arrow()
    assert caught.value.code == "ACEP-D001"


def test_an_index_with_a_zone_is_the_same_instant():
    frame = unnamed(EVENTS)
    zoned = frame.tz_localize("UTC").tz_convert("Asia/Tokyo")
    found = OUTPUTS["matches"](zoned)
    assert str(found.schema.field("start").type.tz) == "Asia/Tokyo"
    assert found.cast(OUTPUTS["matches"](frame).schema) == OUTPUTS["matches"](frame)


# --- record batches ---------------------------------------------------------------------------------------------


def test_batches_of_several_types_become_wider_and_lack_columns():
    first = pa.record_batch({"ts": [1, 2], "x": pa.array([1, None], pa.int32())})
    second = pa.record_batch({"ts": [3], "x": [2.5]})
    third = pa.record_batch({"ts": [4]})
    rows = [{"ts": 1, "x": 1}, {"ts": 2, "x": None}, {"ts": 3, "x": 2.5}, {"ts": 4, "x": None}]
    source = open_source([first, second, third])
    assert source.schema == pa.schema([("ts", pa.int64()), ("x", pa.float64())])
    assert [row for batch in source.batches() for row in batch.to_pylist()] == rows
    once = open_source(iter([first, second, third]))
    assert [row for batch in once.batches() for row in batch.to_pylist()] == rows


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ([pa.record_batch({"ts": ["2"]})], "'ts' is int64 so far, and string in batch 1"),
        ([pa.record_batch({"ts": [2], "y": [1]})], "batch 1 has the columns y"),
        ([{"ts": 1}], "item 1 is no record batch"),
    ],
)
def test_batches_that_do_not_go_together(others, words):
    first = pa.record_batch({"ts": [1]})
    is_column = "columns y" in words
    with pytest.raises(DataError, match=words) as caught:
        list(open_source(iter([first, *others]) if is_column else [first, *others]).batches())
    assert caught.value.code == "ACEP-D066"


def test_no_columns():
    for events in (pa.array([1, 2]), pa.chunked_array([[1, 2]]), pl.Series("x", [1])):
        with pytest.raises(UsageError, match="without columns") as caught:
            open_source(events)
        assert caught.value.code == "ACEP-U146"


def test_how_an_open_source_is_read_was_said_before():
    source = open_source(EVENTS)
    with pytest.raises(UsageError, match="on_late") as caught:
        compile_query(QUERY).match(source, on_late="skip")
    assert caught.value.code == "ACEP-U147"


def test_numpy_in_the_other_order_of_bytes():
    records = np.array([(1, b"A", 2.5), (2, b"B", 3.5)], [("ts", ">i8"), ("type", "S1"), ("x", ">f4")])
    found = compile_query("PATTERN SEQ(A a, B b) WITHIN 5 RETURN b.x AS x").match(records).to_arrow()
    assert found["x"].to_pylist() == [3.5]


def test_frames_without_rows():
    for kind in ("polars", "lazy polars", "duckdb", "dataset", "pandas", "numpy"):
        assert OUTPUTS["matches"](AGAIN[kind](EVENTS.slice(0, 0))).num_rows == 0, kind


# --- types ------------------------------------------------------------------------------------------------------

DAY = dt.date(2024, 5, 1)
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "decimal": (pa.decimal128(10, 2), [Decimal("1.50"), None, Decimal("2.25")]),
    "date": (pa.date32(), [DAY, None, DAY]),
    "zone": (pa.timestamp("us", "Europe/Berlin"), [dt.datetime(2024, 5, 1, tzinfo=dt.UTC), None, None]),
    "text": (pa.string(), ["x", None, "y"]),
    "large text": (pa.large_string(), ["x", None, "y"]),
    "text view": (pa.string_view(), ["x", None, "y"]),
    "coded": (pa.dictionary(pa.uint32(), pa.string_view()), ["x", None, "x"]),
    "bytes": (pa.binary(), [b"x", None, b"y"]),
    "bytes view": (pa.binary_view(), [b"x", None, b"y"]),
    "coded bytes": (pa.dictionary(pa.uint32(), pa.binary_view()), [b"x", None, b"x"]),
    "null": (pa.null(), [None, None, None]),
    "unsigned": (pa.uint64(), [2**64 - 1, None, 3]),
    "lists of structs": (pa.list_(pa.struct([("a", pa.string_view())])), [[{"a": "x"}], None, [{"a": None}]]),
    "lists": (pa.large_list(pa.string_view()), [["x"], None, []]),
    "array": (pa.list_(pa.binary_view(), 1), [[b"x"], None, [b"y"]]),
    "runs": (pa.run_end_encoded(pa.int32(), pa.int64()), [1, None, 1]),
    "time of day": (pa.time64("us"), [dt.time(1), None, dt.time(2)]),
    "duration": (pa.duration("us"), [dt.timedelta(1), None, dt.timedelta(2)]),
}


def _typed(name: str) -> pa.Table:
    type_, values = COLUMNS[name]
    if pa.types.is_dictionary(type_):
        column = pa.DictionaryArray.from_arrays(
            pa.array([None if value is None else 0 for value in values], type_.index_type),
            pa.array(values[:1], type_.value_type),
        )
    elif pa.types.is_run_end_encoded(type_):
        column = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3], pa.int32()), pa.array(values, type_.value_type))
    elif pa.types.is_fixed_size_list(type_):
        column = pa.FixedSizeListArray.from_arrays(
            pa.array([b"x", b"", b"y"], pa.binary_view()), type=type_, mask=pa.array([False, True, False])
        )
    else:
        column = pa.array(values, type_)
    return pa.table({"ts": [1, 2, 3], "type": ["A", "A", "A"], "v": column})


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_every_type_are_shown(name):
    table, values = _typed(name), COLUMNS[name][1]
    query = compile_query("PATTERN A a WITHIN 5")
    for sort in (False, True):
        assert query.match(table, bind="v", sort=sort).to_arrow()["a"].to_pylist() == values
    null = compile_query("PATTERN A a WHERE a.v IS NULL WITHIN 5")
    if name != "unsigned":
        assert null.match(table).to_arrow()["a"].to_pylist() == [row for row in range(3) if values[row] is None]
    try:
        through = pl.from_arrow(table)
    except Exception:  # noqa: BLE001  polars does not know it
        return
    assert query.match(through, bind="v").to_arrow()["a"].to_pylist() == values


@pytest.mark.parametrize("kind", [kind for kind in ALL if not kind.startswith(("numpy", "pandas"))])
def test_fields_of_structs_are_columns(kind):
    type_ = pa.struct([("a", pa.string()), ("b", pa.struct([("c", pa.int64())]))])
    values = pa.array([{"a": "x", "b": {"c": 1}}, None, {"a": "y", "b": None}], type_)
    table = pa.table({"ts": pa.array([1, 2, 3], pa.timestamp("s")), "type": ["A"] * 3, "v": values})
    query = compile_query("PATTERN A a WHERE a.v.a != 'z' WITHIN 5 s RETURN a.v.a AS a, a.v.b.c AS c")
    found = query.match(ALL[kind](table)).to_arrow()
    assert found.select(["a", "c"]).to_pylist() == [{"a": "x", "c": 1}, {"a": "y", "c": None}]


def test_whole_numbers_of_128_bits_are_told():
    frame = pl.DataFrame({"ts": [1], "type": ["A"], "v": pl.Series([1], dtype=pl.Int128)})
    with pytest.raises(DataError, match="cannot be read") as caught:
        open_source(frame)
    assert caught.value.code == "ACEP-D067"


@given(st.data())
@examples(10)
def test_any_columns_in_any_frame(data):
    rows = data.draw(st.integers(1, 8))
    kinds = {
        pl.Int64: st.integers(-(2**40), 2**40),
        pl.UInt8: st.integers(0, 255),
        pl.Float64: st.floats(allow_nan=False, width=32),
        pl.Boolean: st.booleans(),
        pl.String: st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3),
        pl.Categorical: st.sampled_from("xyz"),
        pl.Enum(["x", "y"]): st.sampled_from("xy"),
        pl.Date: st.dates(),
        pl.Datetime("us", "UTC"): st.integers(0, 2**32).map(lambda s: dt.datetime.fromtimestamp(s, dt.UTC)),
    }
    dtype = data.draw(st.sampled_from([*kinds]))
    values = data.draw(st.lists(st.none() | kinds[dtype], min_size=rows, max_size=rows))
    frame = pl.DataFrame({
        "ts": range(rows), "type": ["A", "B"] * (rows // 2) + ["A"] * (rows % 2), "v": pl.Series(values, dtype=dtype)
    })  # fmt: skip
    dicts = frame.to_dicts()
    query = compile_query("PATTERN SEQ(A a, B b) WHERE b.v = a.v OR a.v IS NULL WITHIN 5")
    ways = [lambda events: query.match(events).to_arrow(), lambda events: query.match(events, bind="v").to_arrow()]
    for answer in ways:
        wanted = _outcome(answer, dicts)
        table = frame.to_arrow()
        for events in (frame, frame.lazy(), table, [table.slice(0, 1), table.slice(1)]):
            assert _outcome(answer, events) == wanted


def _outcome(answer: Callable[[Any], pa.Table], events: Any) -> Any:
    try:
        return answer(events).to_pylist()
    except AcepError as error:
        return error.code
