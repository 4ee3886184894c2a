import pyarrow as pa
import pytest

from acep_approx.errors import DataError, UsageError
from acep_approx.events.roles import Roles, infer_roles

INT, TEXT, STAMP = pa.int64(), pa.string(), pa.timestamp("us")


def schema(**columns):
    return pa.schema(list(columns.items()))


@pytest.mark.parametrize(
    "name", ["ts", "time", "timestamp", "event_time", "datetime", "date", "Time", "TIMESTAMP"]
)
def test_time_is_found_by_name(name):
    assert infer_roles(schema(x=INT, **{name: INT})).time == name


def test_names_are_tried_in_order_and_only_if_they_can_be_a_time():
    assert infer_roles(schema(date=STAMP, ts=INT)).time == "ts"
    assert infer_roles(schema(time=pa.time32("s"), date=STAMP)).time == "date"


def test_the_only_timestamp_column_is_the_time():
    assert infer_roles(schema(x=INT, when=STAMP)).time == "when"
    with pytest.raises(DataError, match="no column is recognised") as caught:
        infer_roles(schema(begin=STAMP, end=STAMP))
    assert caught.value.code == "ACEP-D001"
    assert "--time" in str(caught.value)
    assert "begin, end" in caught.value.message


def test_type_and_key():
    roles = infer_roles(schema(ts=INT, key=INT, kind=TEXT, event=pa.dictionary(pa.int8(), TEXT)))
    assert roles == Roles(time="ts", key="key", type="event", unit=None)
    floats = infer_roles(schema(ts=INT, type=pa.float64(), key=pa.float16()))  # whole numbers with NULL among them
    assert (floats.type, floats.key) == ("type", "key")
    assert infer_roles(schema(ts=INT, type=pa.list_(INT), key=pa.list_(INT), kind=TEXT)) == Roles("ts", None, "kind")
    assert infer_roles(schema(ts=INT, a=INT), key="a", type="a") == Roles("ts", "a", "a", None)


@pytest.mark.parametrize("role", ["time", "key", "type"])
def test_missing_column_is_named_with_the_columns_and_a_suggestion(role):
    with pytest.raises(DataError, match=r"no column 'prise'; the columns are: ts, Price") as caught:
        infer_roles(schema(ts=INT, Price=INT), **{role: "prise"})
    assert caught.value.code == "ACEP-D002"
    assert caught.value.hint == "did you mean 'Price'?"


def test_type_that_cannot_be_time():
    with pytest.raises(DataError, match="bool") as caught:
        infer_roles(schema(x=pa.bool_()), time="x")
    assert caught.value.code == "ACEP-D003"


def test_units():
    assert infer_roles(schema(ts=INT), unit="ms").unit == "ms"
    with pytest.raises(UsageError, match="parsec") as caught:
        infer_roles(schema(ts=INT), unit="parsec")
    assert caught.value.code == "ACEP-U102"
    for type_ in (STAMP, pa.date32()):
        with pytest.raises(UsageError, match="has its own") as caught:
            infer_roles(schema(ts=type_), unit="s")
        assert caught.value.code == "ACEP-U101"


def test_role_words_mean_the_roles():
    roles = Roles(time="when", key="user", type="what")
    assert [roles.column(n) for n in ("ts", "key", "type", "when", "x")] == [
        "when",
        "user",
        "what",
        "when",
        "x",
    ]
    with pytest.raises(DataError, match="'key'") as caught:
        Roles(time="ts").column("key")
    assert caught.value.code == "ACEP-D008"


@pytest.mark.parametrize(
    ("time", "type_", "key"),
    [
        ("@timestamp", "event.action", "trace.id"),
        ("eventTime", "eventName", "case_id"),
        ("created_at", "event_name", "correlation_id"),
        ("_time", "Activity", "Case ID"),
        ("time:timestamp", "concept:name", "case:concept:name"),
    ],
)
def test_names_of_other_tools_are_known(time, type_, key):
    columns = {time: TEXT, "x": INT, type_: TEXT, key: INT}
    assert infer_roles(schema(**columns)) == Roles(time, key, type_)
    ours = columns | {"ts": INT, "type": TEXT, "key": INT}
    assert infer_roles(schema(**ours)) == Roles("ts", "key", "type")
    assert infer_roles(schema(when=STAMP, **dict.fromkeys(columns, TEXT))).time == "when"
