import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx.errors import DataError
from acep_approx.events import columns
from acep_approx.events.columns import CODED, encode_text, text_codes
from acep_approx.events.roles import Roles
from acep_approx.events.source import open_source
from acep_approx.events.stream import read_events
from acep_approx.jit import kernel as jit
from tests import tiers_forced
from tests.cases import examples

TIME = Roles(time="ts")
TEXTS = ["", "A", "GOOG", "user000017", "user000071", "ab" * 9, "é" * 40]


def stream(events, roles=TIME, **kwargs):
    return list(read_events(open_source(events), roles, **kwargs))


def test_batches_are_numbered_and_have_ticks():
    table = pa.table({"ts": [1, 1, 2, 5], "x": ["a", None, "b", "a"]})
    batches = stream(table, Roles(time="ts", unit="ms"), batch_rows=3)
    assert [(b.first_row, b.ticks.tolist(), len(b)) for b in batches] == [
        (0, [1000, 1000, 2000], 3),
        (3, [5000], 1),
    ]
    assert batches[0].data.schema.names == ["ts", "x"]
    assert batches[0].data.column("x").type == CODED
    assert text_codes(batches[0].data.column("x")).tolist() == [0, -1, 1]


def test_columns():
    table = pa.table({"ts": [1], "x": ["a"], "y": [2.5]})
    (batch,) = stream(table, columns=["y"])
    assert (batch.data.schema.names, batch.ticks.tolist()) == (["y"], [1])
    (batch,) = stream(table, columns=[])
    assert (batch.data.num_columns, len(batch)) == (0, 1)


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_unsorted_is_refused_with_the_row(rows):
    with pytest.raises(DataError, match="row 3: time runs backwards, from 5 to 4") as caught:
        stream(pa.table({"ts": [1, 2, 5, 4, 3]}), batch_rows=rows)
    assert (caught.value.code, caught.value.row) == ("ACEP-D007", 3)
    assert "--sort" in caught.value.hint


def test_unsorted_timestamps_are_shown_as_times():
    with pytest.raises(DataError, match=r"from 1970-01-01T00:00:05\+00:00 to 1970-01-01T00:00:01\+00:00"):
        stream(pa.table({"ts": [5, 1]}), Roles(time="ts", unit="s"))
    with pytest.raises(DataError, match="us to "):
        stream(pa.table({"ts": [2**59, 1]}), Roles(time="ts", unit="us"))


def test_null_time_is_refused_with_the_row_of_the_whole_input():
    for sort in (False, True):
        with pytest.raises(DataError) as caught:
            stream(pa.table({"ts": [1, 2, None]}), batch_rows=2, sort=sort)
        assert (caught.value.code, caught.value.row) == ("ACEP-D004", 2)


@examples(60)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abc") | st.none())),
    st.integers(1, 7),
    st.integers(1, 7),
)
def test_sorting_is_stable(rows, chunk, size):
    table = pa.table(
        {"ts": pa.array([t for t, _ in rows], pa.int64()), "x": pa.array([x for _, x in rows], pa.string())}
    )
    table = table.append_column("n", pa.array(range(len(rows)), pa.int64()))
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=chunk))
    batches = stream(reader, sort=True, batch_rows=size)
    expected = sorted(range(len(rows)), key=lambda i: rows[i][0])
    assert [n for b in batches for n in b.data.column("n").to_pylist()] == expected
    assert [x for b in batches for x in b.data.column("x").to_pylist()] == [rows[i][1] for i in expected]
    assert [t for b in batches for t in b.ticks.tolist()] == [rows[i][0] for i in expected]
    assert [b.first_row for b in batches] == list(range(0, len(rows), size))


def test_no_events():
    for sort in (False, True):
        assert stream(pa.table({"ts": pa.array([], pa.int64())}), sort=sort) == []


def test_dictionaries():
    big = pa.DictionaryArray.from_arrays(pa.array([500, 3], pa.int64()), pa.array([str(i) for i in range(1000)]))
    assert encode_text(big).dictionary.to_pylist() == ["500", "3"]
    small = pa.DictionaryArray.from_arrays(pa.array([1, None], pa.uint8()), pa.array(["x", "y"], pa.large_string()))
    assert encode_text(small).type == CODED
    assert encode_text(small).to_pylist() == ["y", None]
    assert encode_text(pa.array([7, 7]).dictionary_encode()).type == pa.int64()
    for layout in (pa.large_string(), pa.string_view()):
        assert encode_text(pa.array(["a", None]).cast(layout)).type == CODED
    sliced = encode_text(pa.array(["q", "a", None, "b"])).slice(1)
    assert text_codes(sliced).tolist() == [1, -1, 2]


@given(
    texts=st.lists(
        st.one_of(
            st.text(max_size=3), st.sampled_from(["", "A", "GOOG", "user000017", "user000071", "ab" * 9, "é" * 40])
        ),
        min_size=1,
        max_size=60,
    ),
    cut=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    room=st.sampled_from([4, 16, 1024]),
)
@examples(400)
def test_texts_are_coded_as_arrow_does_it(texts, cut, room):
    whole = pa.array(texts * 3, pa.string())
    column = whole[cut[0] : len(whole) - cut[1]]
    for is_interpreted in (tiers_forced.always, tiers_forced.never):
        with pytest.MonkeyPatch.context() as patch, tiers_forced.tier(is_interpreted):
            patch.setattr(columns, "_MANY", 0)
            patch.setattr(columns, "_MOST_DISTINCT", room)
            patch.setattr(jit.Kernel, "if_compiled", lambda kernel, *args: kernel(*args))
            coded = encode_text(column)
        coded.validate(full=True)
        assert coded.equals(column.dictionary_encode())


def test_strings_of_parquet_and_only_the_columns_asked_for(tmp_path):
    n = 5000
    table = pa.table({"ts": range(n), "x": [str(i % 7) for i in range(n)], "z": ["much text"] * n})
    pq.write_table(table, tmp_path / "e.parquet", row_group_size=1000)
    batches = stream(tmp_path / "e.parquet", columns=["x"], batch_rows=700)
    assert {b.data.schema.names == ["x"] for b in batches} == {True}
    assert [x for b in batches for x in b.data.column("x").to_pylist()] == table["x"].to_pylist()
    assert np.array_equal(np.concatenate([b.ticks for b in batches]), np.arange(n))


def test_rows_are_counted_over_several_files(tmp_path):
    (tmp_path / "1.csv").write_text("ts,x\n1,a\n2,b\n")
    (tmp_path / "2.csv").write_text("ts,x\n3,a\n1,b\n")
    with pytest.raises(DataError) as caught:
        stream(tmp_path)
    assert caught.value.row == 3
    assert [b.ticks.tolist() for b in stream(tmp_path, sort=True)] == [[1, 1, 2, 3]]
