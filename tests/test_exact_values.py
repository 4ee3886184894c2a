"""Values stay what they are: long whole numbers, decimals, and texts that other tools write as bytes."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep_approx import AcepError, DataError, compile_query

SAME_KEY = "PATTERN SEQ(A a, A b) WHERE [id] WITHIN 50"
EQUAL = "PATTERN SEQ(A a, A b) WHERE a.id = b.id WITHIN 50"
ENGINES = ("auto", "runs")


def matched(text: str, events: Any, engine: str = "auto") -> list[tuple[int, int]]:
    """The rows of the matches a, b."""
    return [(match["a"], match["b"]) for match in compile_query(text, engine=engine).match(events)]


def table(ids: Any, type_: pa.DataType) -> pa.Table:
    """Events with such identifiers."""
    return pa.table({"ts": range(len(ids)), "type": ["A"] * len(ids), "id": pa.array(ids, type_)})


# --- whole numbers of more than 64 bits in text files -----------------------------------------------------------------

LONG = ("12345678901234567890", "12345678901234567891", "12345678901234567890")


def written(folder: Path, suffix: str, ids: tuple[str, ...]) -> Path:
    """A file of events with identifiers as they stand there."""
    path = folder / f"events.{suffix}"
    if suffix == "csv":
        path.write_text("ts,type,id\n" + "".join(f"{i},A,{id_}\n" for i, id_ in enumerate(ids)), encoding="utf-8")
    else:
        lines = (f'{{"ts":{i},"type":"A","id":{id_}}}\n\n' for i, id_ in enumerate(ids))
        path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("query", [SAME_KEY, EQUAL])
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@pytest.mark.parametrize("block", [1 << 20, 16])
def test_long_whole_numbers_are_kept(
    query: str, suffix: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As text: two of them are equal only if all of their digits are."""
    monkeypatch.setattr("acep_approx.events.reading.text.BLOCK_BYTES", block)
    assert matched(query, written(tmp_path, suffix, LONG)) == [(0, 2)]
    assert matched(query, written(tmp_path, suffix, ("5", "9007199254740993", "9007199254740992"))) == []


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@pytest.mark.parametrize("ids", [("1.5", LONG[0], LONG[1]), ("2.5", "9007199254740993", "9007199254740992")])
def test_long_whole_numbers_among_fractions_are_refused(suffix: str, ids: tuple[str, ...], tmp_path: Path) -> None:
    """A float would round them; or the rows are left out, and counted."""
    path = written(tmp_path, suffix, ids)
    with pytest.raises(DataError, match=f"ACEP-D020.*line [2-4].*{ids[1]} exactly"):
        matched(EQUAL, path)
    matches = compile_query(EQUAL).match(path, on_malformed="skip")
    assert matches.to_arrow().num_rows == 0
    assert matches.source.malformed.count >= 1
    assert len(compile_query("PATTERN A a WITHIN 1").match(path)) == 3  # what is not read is not checked


def test_long_whole_numbers_after_short_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The column has its type already: it becomes text as written in CSV; of JSON, rows that do not fit it are told."""
    monkeypatch.setattr("acep_approx.events.reading.text.BLOCK_BYTES", 32)
    ids = ("1", "2", "3", "4", *LONG)
    assert matched(SAME_KEY, written(tmp_path, "csv", (*ids, "04"))) == [(4, 6)]
    with pytest.raises(DataError, match="ACEP-D020"):
        matched(SAME_KEY, written(tmp_path, "jsonl", ids))


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_large_floats_are_floats(suffix: str, tmp_path: Path) -> None:
    """Numbers that are written as floats, or that floats hold exactly."""
    path = written(tmp_path, suffix, ("1e300", "1e300", "18014398509481984", "1.5"))
    assert matched(EQUAL, path) == [(0, 1)]


# --- numbers in memory ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_unsigned_numbers(engine: str) -> None:
    """As keys they are exact; conditions refuse those that do not fit 64 bits with a sign."""
    large = table([2**64 - 1, 2**64 - 2, 2**64 - 1], pa.uint64())
    assert matched(SAME_KEY, large, engine) == [(0, 2)]
    assert matched(SAME_KEY, large.to_pandas(), engine) == [(0, 2)]
    with pytest.raises(DataError, match="ACEP-D201"):
        matched(EQUAL, large, engine)
    assert matched(EQUAL, table([5, 6, 5], pa.uint64()), engine) == [(0, 2)]


@pytest.mark.parametrize("engine", ENGINES)
def test_decimals(engine: str) -> None:
    """Conditions compute with floats: digits that would be lost are refused, whatever the type allows."""
    few = [Decimal("12.1"), Decimal("12.10001"), Decimal("12.1")]
    assert matched(EQUAL, table(few, pa.decimal128(10, 5)), engine) == [(0, 2)]
    assert matched(EQUAL, table(few, pa.decimal128(38, 18)), engine) == [(0, 2)]
    assert matched(EQUAL, table([Decimal("1E20"), None, Decimal("1E20")], pa.decimal128(38, 2)), engine) == [(0, 2)]
    for many in ([Decimal(id_) for id_ in LONG], [Decimal("0.1234567890123456"), Decimal("0.1234567890123457")]):
        with pytest.raises(DataError, match="ACEP-D202"):
            matched(EQUAL, table(many, pa.decimal128(38, 18 if many[0] < 1 else 0)), engine)
    with pytest.raises(DataError, match="ACEP-D030"):
        matched(SAME_KEY, table([Decimal(id_) for id_ in LONG], pa.decimal128(38, 0)), engine)


@pytest.mark.parametrize("ids", [[2**64, 2**64 + 1], [2**53 + 1, 0.5], [0.5, 2**53 + 1]])
def test_numbers_of_python_that_nothing_holds(ids: list[Any]) -> None:
    """Refused, in one chunk or in the next one, as dicts and in a frame."""
    rows = [{"ts": i, "type": "A", "id": id_} for i, id_ in enumerate(ids)]
    with pytest.raises(DataError, match="ACEP-D018"):
        matched(SAME_KEY, rows)
    with pytest.raises(DataError, match="ACEP-D018"):
        matched(SAME_KEY, pd.DataFrame(rows, dtype=object))


# --- bytes ------------------------------------------------------------------------------------------------------------

BYTES = (
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
    pa.binary(1),
    pa.dictionary(pa.int8(), pa.binary()),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int8(), pa.large_string()),
)


def coded(type_: pa.DataType, values: list[str | None]) -> pa.Array:
    """Texts in some layout."""
    if pa.types.is_dictionary(type_):
        return coded(type_.value_type, values).dictionary_encode()
    is_bytes = "binary" in str(type_)
    return pa.array([v.encode() if is_bytes and v is not None else v for v in values], type_)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("type_", BYTES, ids=str)
def test_texts_in_every_layout(type_: pa.DataType, engine: str, tmp_path: Path) -> None:
    """As types of events, keys and attributes; in memory, pushed, and from Parquet."""
    texts = coded(type_, ["k", "j", None, "k"])
    events = pa.table({"ts": range(4), "type": texts, "id": texts})
    queries = {
        "PATTERN SEQ(k a, k b) WITHIN 9": [(0, 3)],
        "PATTERN SEQ(k a, j b) WHERE a.type = 'k' AND b.id != a.id WITHIN 9": [(0, 1)],
        "PATTERN SEQ(ANY a, ANY b) WHERE [id] WITHIN 9": [(0, 3)],
        "PATTERN SEQ(ANY a, ANY b) WHERE b.id = a.id AND b.id IN ('k', 'x') WITHIN 9": [(0, 3)],
        "PATTERN SEQ(ANY a, ANY b) WHERE b.id > a.id WITHIN 9": [(1, 3)],
    }
    path = tmp_path / "events.parquet"
    pq.write_table(events, path)
    for text, expected in queries.items():
        assert matched(text, events, engine) == matched(text, path, engine) == expected, text
        matcher = compile_query(text, engine=engine).matcher()
        pushed = [row for i in range(4) for row in matcher.push(events.slice(i, 1)).to_pylist()]
        assert [(row["a"], row["b"]) for row in pushed] == expected, text
    returned = compile_query("PATTERN SEQ(k a, j b) WITHIN 9 RETURN a.type AS type, b.id = a.id AS same", engine=engine)
    assert returned.match(events).to_arrow().to_pylist()[0]["type"] == "k"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("column", ["type", "id"])
def test_bytes_that_are_no_text(column: str, engine: str) -> None:
    """Refused where the query reads them as text; shown as they are where it only shows them."""
    events = pa.table({"ts": [1, 2], "type": ["A", "A"], "id": ["x", "x"], "raw": [b"\xff", b"\xfe"]})
    events = events.set_column(events.column_names.index(column), column, [[b"A", b"\xff"]])
    for text in ("PATTERN SEQ(A a, A b) WHERE a.id = b.id WITHIN 9", "PATTERN SEQ(A a, A b) WHERE [id] WITHIN 9"):
        with pytest.raises(DataError, match=f"ACEP-D025.*'{column}'"):
            matched(text, events, engine)
    plain = events.set_column(events.column_names.index(column), column, [["A", "A"]])
    query = compile_query("PATTERN SEQ(A a, A b) WITHIN 9", engine=engine)
    assert query.match(plain, bind="raw").to_arrow().column("b").to_pylist() == [b"\xfe"]


def test_types_of_events_that_are_no_texts() -> None:
    """A type of several values is refused, not passed over."""
    events = pa.table({"ts": [1], "type": [{"name": "A"}]})
    with pytest.raises(AcepError, match="ACEP-"):
        compile_query("PATTERN A a WITHIN 9").match(events, type="type").to_arrow()
