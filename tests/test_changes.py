"""What a row of a stream of changes does: the column that says it, and the codes that it holds."""

from __future__ import annotations

import re
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from acep_approx.errors import DataError, UsageError
from acep_approx.events.changes import CODES, Op, find_op, ops_of
from tests.cases import cases
from tests.patience import calls

MEANING = {
    **dict.fromkeys(["+I", "INSERT", "insert", "c", "r", "+1", "1"], Op.INSERT),
    **dict.fromkeys(["-D", "DELETE", "delete", "d", "-1"], Op.DELETE),
    **dict.fromkeys(["-U", "UPDATE_BEFORE", "update_preimage"], Op.BEFORE),
    **dict.fromkeys(["+U", "UPDATE_AFTER", "update_postimage"], Op.AFTER),
    "u": Op.UPDATE,
    "watermark": Op.WATERMARK,
}
"""Written down once more, from the manuals of those who write them."""


def with_spare_values(texts):
    """As an encoder may write it: values that no row has, one twice, and NULL as a value."""
    values = ["nothing", *MEANING, "+I", None]
    places = [len(values) - 1 if text is None else values.index(text) for text in texts]
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.int16()), pa.array(values))


ENCODINGS = {
    "plain": pa.array,
    "large": lambda texts: pa.array(texts, pa.large_string()),
    "view": lambda texts: pa.array(texts, pa.string()).cast(pa.string_view()),
    "dictionary": lambda texts: pa.array(texts, pa.string()).dictionary_encode(),
    "spare": with_spare_values,
    "bytes": lambda texts: pa.array([None if text is None else text.encode() for text in texts], pa.binary()),
    "slice": lambda texts: pa.array(["?", None, *texts, "?"])[2:-1].dictionary_encode(),
    "slice of a dictionary": lambda texts: pa.array(["?", None, *texts, "?"]).dictionary_encode()[2:-1],
}


# --- the codes ------------------------------------------------------------------------------------------------


def test_all_codes_are_those_of_the_manuals():
    assert {text: op for op, texts in CODES.items() for text in texts} == MEANING


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_texts_mean_what_they_mean_in_any_encoding(encoding):
    for seed in range(cases(50)):
        random = Random(seed)
        texts = random.choices(list(MEANING), k=random.randrange(40))
        found = ops_of(ENCODINGS[encoding](texts), "op")
        assert found.dtype == np.int8
        assert found.tolist() == [MEANING[text] for text in texts]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_progress_is_a_punctuation_whatever_the_code(encoding):
    for seed in range(cases(50)):
        random = Random(seed)
        progress = random.choices([True, False, None], k=random.randrange(40))
        texts = [random.choice([*MEANING, *([None] * bool(is_one))]) for is_one in progress]
        found = ops_of(ENCODINGS[encoding](texts), "op", progressed=pa.array(progress, pa.bool_()))
        said = [Op.WATERMARK if is_one else MEANING[text] for text, is_one in zip(texts, progress, strict=True)]
        assert found.tolist() == said


@pytest.mark.parametrize("type_", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()])
@pytest.mark.parametrize("is_coded", [False, True])
def test_numbers(type_, is_coded):
    column = pa.array([1, -1, -1, None, 1], type_)
    column = column.dictionary_encode() if is_coded else column
    progress = pa.array([False, False, None, True, False])
    assert ops_of(column, "mz_diff", progressed=progress).tolist() == [0, 1, 1, 5, 0]
    assert ops_of(column[:3], "mz_diff", progressed=pa.nulls(3)).tolist() == [0, 1, 1]


@pytest.mark.parametrize("type_", [pa.uint8(), pa.uint64()])
def test_numbers_without_a_sign(type_):
    assert ops_of(pa.array([1, 1], type_), "mz_diff").tolist() == [0, 0]
    with pytest.raises(DataError, match="says 255"):
        ops_of(pa.array([1, 255], type_), "mz_diff")


def test_no_rows():
    for type_ in (pa.string(), pa.int64(), pa.null(), pa.dictionary(pa.int32(), pa.string())):
        assert ops_of(pa.array([], type_), "op").tolist() == []
    assert ops_of(pa.nulls(2), "op", progressed=pa.array([True, True])).tolist() == [5, 5]


def test_single_rows_are_not_touched():
    for texts in (list(MEANING), list(MEANING) * 1000):
        for encode in (pa.array, ENCODINGS["dictionary"]):
            column = encode(texts)
            assert calls(lambda column=column: ops_of(column, "op")) < 300


# --- what is no code ------------------------------------------------------------------------------------------


def refused(column, name="op", **more):
    """The error for a column."""
    with pytest.raises(DataError) as caught:
        ops_of(column, name, **more)
    assert caught.value.code == "ACEP-D070"
    return caught.value


@pytest.mark.parametrize("encoding", sorted(set(ENCODINGS) - {"spare"}))
def test_the_first_unknown_code_is_named(encoding):
    for seed in range(cases(50)):
        random = Random(seed)
        texts = random.choices([*MEANING, "upsert", None], k=random.randrange(1, 20))
        wrong = [place for place, text in enumerate(texts) if text not in MEANING]
        column = ENCODINGS[encoding](texts)
        if not wrong:
            ops_of(column, "op")
            continue
        error = refused(column, first_row=100)
        assert error.row == 100 + wrong[0]
        said = "does not say what it does" if texts[wrong[0]] is None else "says 'upsert', which is no known code"
        assert error.message.startswith(f"row {error.row}: column 'op' {said}")
        assert set(re.findall(r"[\w+-]+", error.message)) >= set(MEANING)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("Insert", "'insert'"),
        ("I", "'+I'"),
        ("-d", "'-D'"),
        ("UPDATE_PREIMAGE", "'update_preimage'"),
        ("deleted", "'delete'"),
        ("U", "'u'"),
        (" +U ", "'+U'"),
    ],
)
def test_what_was_meant(text, hint):
    assert refused(pa.array(["+I", text])).hint == f"did you mean {hint}?"


def test_debezium_has_rows_that_are_no_events():
    assert "leave such rows out" in refused(pa.array(["c", "t"])).hint
    assert "leave such rows out" in refused(pa.array(["m"])).hint


def test_the_case_counts():
    for text in MEANING:
        if text.swapcase() not in MEANING:
            refused(pa.array([text.swapcase()]))


@pytest.mark.parametrize("value", [2, -3, 0, 257, 2**63 - 1, "2", "+2", "-7", "0", 2.0])
def test_an_event_comes_or_goes_once_in_a_row(value):
    error = refused(pa.array([type(value)(1), value]), "mz_diff")
    assert error.row == 1
    assert f"column 'mz_diff' says {value}, but in one row an event comes or goes once: 1 or -1" in error.message
    assert "one row for each time" in error.hint


@pytest.mark.parametrize("value", [1.5, float("inf")])
def test_fractions_are_no_codes(value):
    assert f"says '{value}'" in refused(pa.array([1.0, value])).message


def test_nulls_say_nothing():
    for column in (pa.array([1, None]), pa.array([1.0, float("nan")]), pa.array(["r", None])):
        error = refused(column)
        assert error.row == 1
        assert "(null)" in error.message
    assert refused(pa.nulls(1)).row == 0
    assert refused(pa.array([None, 1, None]), progressed=pa.array([True, False, False])).row == 2


@pytest.mark.parametrize(
    "column", [pa.array([True]), pa.array([["insert"]]), pa.array([1], pa.timestamp("us")), pa.array([{"op": "c"}])]
)
def test_types_that_say_nothing(column):
    assert f"is of type {column.type}" in refused(column).message


def test_progress_is_true_or_false():
    assert "of type int64" in refused(pa.array(["c"]), progressed=pa.array([1])).message


def test_bytes_that_are_no_texts():
    with pytest.raises(DataError) as caught:
        ops_of(pa.array([b"\xff"]), "op")
    assert caught.value.code == "ACEP-D025"


# --- the column -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "op", "read", "found"),
    [
        (["ts", "op"], None, [], "op"),
        (["ts", "mz_diff", "_change_type", "__op", "op"], None, [], "op"),
        (["ts", "mz_diff", "_change_type", "__op"], None, [], "__op"),
        (["ts", "mz_diff", "_change_type"], None, [], "_change_type"),
        (["ts", "mz_diff"], None, ["ts"], "mz_diff"),
        (["ts", "op"], None, ["ts", "op"], None),
        (["ts", "op", "mz_diff"], None, ["op"], "mz_diff"),
        (["ts", "OP", "_op"], None, [], None),
        (["ts", "op", "kind"], "kind", [], "kind"),
        (["ts", "op"], "op", ["op"], "op"),
        ([], None, [], None),
    ],
)
def test_the_column_that_says_it(names, op, read, found):
    assert find_op(names, op, set(read)) == found


def test_a_column_that_is_not_there():
    with pytest.raises(DataError, match="did you mean 'kind'") as caught:
        find_op(["ts", "kind"], "kid", ())
    assert caught.value.code == "ACEP-D002"
    with pytest.raises(UsageError) as wrong:
        find_op(["ts", "kind"], 5, ())
    assert wrong.value.code == "ACEP-U053"
