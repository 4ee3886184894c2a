import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from acep_approx.errors import DataError
from acep_approx.events.time import LIMIT, tick_unit, ticks, to_datetime

SECOND = 1_000_000


def code_of(values, unit=None, **kwargs):
    with pytest.raises(DataError) as caught:
        ticks(values if isinstance(values, pa.Array) else pa.array(values), unit, **kwargs)
    return caught.value.code, caught.value.row


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("tz", [None, "UTC", "America/New_York"])
def test_timestamps(unit, tz):
    column = pa.array([-1, 0, 1], pa.timestamp("s", tz="UTC")).cast(pa.timestamp(unit, tz="UTC"))
    column = (
        column.cast(pa.timestamp(unit, tz=tz)) if tz else column.cast(pa.int64()).cast(pa.timestamp(unit))
    )
    assert ticks(column).tolist() == [-SECOND, 0, SECOND]


def test_dates():
    for type_ in (pa.date32(), pa.date64()):
        assert ticks(pa.array([dt.date(1970, 1, 2)], type_)).tolist() == [86_400 * SECOND]


@pytest.mark.parametrize("type_", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64()])
@pytest.mark.parametrize(("unit", "factor"), [(None, 1), ("us", 1), ("ms", 1000), ("s", SECOND)])
def test_integers(type_, unit, factor):
    assert ticks(pa.array([0, 3, 100], type_), unit).tolist() == [0, 3 * factor, 100 * factor]


def test_nanoseconds_round_down():
    assert ticks(pa.array([-1, 0, 999, 1000, 1999]), "ns").tolist() == [-1, 0, 0, 1, 1]
    assert ticks(pa.array([-1, 1999], pa.int64()).cast(pa.timestamp("ns"))).tolist() == [-1, 1]
    assert ticks(pa.array([2**64 - 1], pa.uint64()), "ns").tolist() == [(2**64 - 1) // 1000]
    assert ticks(pa.array([5], pa.int8()), "ns").tolist() == [0]


def test_int64_is_not_copied():
    column = pa.array(np.arange(1000))
    assert np.shares_memory(ticks(column), np.from_dlpack(column))
    stamps = column.cast(pa.timestamp("us"))
    assert np.shares_memory(ticks(stamps), np.from_dlpack(column))


def test_floats():
    assert ticks(pa.array([1.5, -0.25]), "s").tolist() == [1_500_000, -250_000]
    assert ticks(pa.array([1500.0]), "ns").tolist() == [2]
    assert ticks(pa.array([3.0, 4.0])).tolist() == [3, 4]
    assert code_of([1.0, 1.5], first_row=10) == ("ACEP-D006", 11)
    assert code_of([1.0, float("nan")], "s") == ("ACEP-D004", 1)
    assert code_of([1.0, float("inf")], "s") == ("ACEP-D005", 1)


def test_nulls():
    assert code_of([1, None], first_row=5) == ("ACEP-D004", 6)
    assert code_of(pa.nulls(2)) == ("ACEP-D004", 0)
    assert ticks(pa.nulls(0)).tolist() == []


@pytest.mark.parametrize("sign", [1, -1])
def test_limit(sign):
    assert ticks(pa.array([sign * (LIMIT - 1)])).tolist() == [sign * (LIMIT - 1)]
    assert code_of([0, sign * LIMIT]) == ("ACEP-D005", 1)
    seconds = LIMIT // SECOND
    assert ticks(pa.array([sign * seconds]), "s").tolist() == [sign * seconds * SECOND]
    assert code_of([sign * (seconds + 1)], "s") == ("ACEP-D005", 0)
    assert code_of([sign * 2**62], "s") == ("ACEP-D005", 0)


def test_limit_of_unsigned():
    assert code_of(pa.array([2**64 - 1], pa.uint64())) == ("ACEP-D005", 0)


def test_text():
    column = pa.array(["1970-01-01", "1970-01-01T00:00:01", "1970-01-01 00:00:01.25"])
    for same in (column, column.cast(pa.large_string()), column.dictionary_encode()):
        assert ticks(same).tolist() == [0, SECOND, 1_250_000]
    assert ticks(pa.array(["1970-01-01T00:00:00.123456789"])).tolist() == [123_456]
    assert ticks(pa.array(["1500-01-01"])).tolist() == [-14_831_769_600 * SECOND]


def test_text_with_and_without_zones_may_be_mixed():
    column = pa.array(["1970-01-01T01:00:00+01:00", "1970-01-01T00:00:01", "1970-01-01T00:00:02Z"])
    assert ticks(column).tolist() == [0, SECOND, 2 * SECOND]


def test_text_that_is_no_time():
    assert code_of(["1970-01-01", "01/02/1970"], first_row=100) == ("ACEP-D006", 101)
    mixed = ["1970-01-01T00:00Z", "1970-01-01", "1970-01-01T00:00Z", "yesterday", "1970-01-01T25:00Z"]
    assert code_of(mixed) == ("ACEP-D006", 3)


@pytest.mark.parametrize("column", [pa.array([True]), pa.array([[1]]), pa.array([b"x"])])
def test_other_types(column):
    assert code_of(column)[0] == "ACEP-D003"


def test_tick_unit():
    assert tick_unit(pa.int32(), None) is None
    assert tick_unit(pa.float64(), None) is None
    for type_, unit in [
        (pa.int32(), "s"),
        (pa.timestamp("ns"), None),
        (pa.date32(), None),
        (pa.string(), None),
    ]:
        assert tick_unit(type_, unit) == "us"


def test_back_to_datetime():
    back = to_datetime(np.array([1_500_000, -1]))
    assert back.type == pa.timestamp("us", tz="UTC")
    assert ticks(back).tolist() == [1_500_000, -1]
