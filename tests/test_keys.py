import datetime as dt
import math
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx.errors import DataError
from acep_approx.events import integer_keys
from acep_approx.events import keys as key_codes
from acep_approx.events.keys import FEW, KeyCodes
from acep_approx.jit import kernel as jit
from tests import tiers_forced
from tests.cases import cases, examples
from tests.patience import calls


def test_slots_in_order_of_first_event():
    keys = KeyCodes()
    assert keys.encode([pa.array(["b", "a", "b"])]).tolist() == [0, 1, 0]
    assert keys.encode([pa.array(["c", "a"])]).tolist() == [2, 1]
    assert len(keys) == keys.capacity == 3
    assert keys.value(2) == ("c",)


def test_order_does_not_depend_on_the_dictionary():
    column = pa.DictionaryArray.from_arrays(pa.array([2, None, 0, 2]), pa.array(["x", "unused", "y"]))
    keys = KeyCodes()
    assert keys.encode([column]).tolist() == [0, -1, 1, 0]
    assert len(keys) == 2


def test_dictionary_with_repeated_and_null_values():
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["x", "x", None]))
    assert KeyCodes().encode([column]).tolist() == [0, 0, -1]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, None, 2], pa.int16()),
        pa.array([1, None, 2], pa.uint64()),
        pa.array(["x", None, "y"]),
        pa.array(["x", None, "y"], pa.large_string()),
        pa.array([True, None, False]),
        pa.array([dt.date(2020, 1, 1), None, dt.date(1900, 1, 1)]),
        pa.array([dt.date(2020, 1, 1), None, dt.date(1900, 1, 1)], pa.date64()),
        pa.array([10, None, 20], pa.timestamp("ns", tz="UTC")),
        pa.array([1.5, None, -2.0]),
        pa.array(["x", None, "y"]).dictionary_encode(),
    ],
)
def test_types_and_round_trip(values):
    keys = KeyCodes()
    slots = keys.encode([values])
    assert slots.tolist() == [0, -1, 1]
    back = KeyCodes.from_state(keys.to_state())
    for k in (keys, back):
        (out,) = k.values(slots)
        assert out.to_pylist() == values.to_pylist()
        assert k.encode([values]).tolist() == [0, -1, 1]
    assert out.type in (values.type, pa.string())


def test_nan_is_one_key():
    keys = KeyCodes()
    assert keys.encode([pa.array([math.nan, 1.0, math.nan])]).tolist() == [0, 1, 0]
    assert KeyCodes.from_state(keys.to_state()).encode([pa.array([1.0, math.nan])]).tolist() == [1, 0]


def test_composite():
    keys = KeyCodes()
    columns = [
        pa.array([1, 1, 2, None, 1]),
        pa.array(["x", "y", "x", "x", "x"]),
        pa.array([True] * 4 + [None]),
    ]
    assert keys.encode(columns).tolist() == [0, 1, 2, -1, -1]
    assert keys.value(1) == (1, "y", True)
    assert [c.to_pylist() for c in keys.values(np.array([2, -1, 2]))] == [
        [2, None, 2],
        ["x", None, "x"],
        [True, None, True],
    ]
    assert KeyCodes.from_state(keys.to_state()).encode(columns).tolist() == [0, 1, 2, -1, -1]


def test_all_null_and_empty():
    keys = KeyCodes()
    assert keys.encode([pa.nulls(2)]).tolist() == [-1, -1]
    assert keys.encode([pa.array([], pa.string())]).tolist() == []
    assert keys.encode([pa.array([None, None], pa.string())]).tolist() == [-1, -1]
    assert len(KeyCodes.from_state(KeyCodes().to_state())) == 0
    assert keys.encode([pa.array([], pa.string())]).tolist() == []


def test_release():
    keys = KeyCodes()
    keys.encode([pa.array(list("abcd"))])
    keys.release([2, 0])
    assert len(keys) == 2
    assert keys.capacity == 4
    with pytest.raises(LookupError):
        keys.value(2)
    with pytest.raises(LookupError):
        keys.release([2])
    assert keys.encode([pa.array(["b", "a", "c", "e"])]).tolist() == [1, 0, 2, 4]
    keys.release(np.arange(5)[keys.encode([pa.array(list("abcde"))])])
    assert len(keys) == 0


def test_errors():
    for column in (pa.array([[[1]]]), pa.array([[{"a": 1}]]), pa.array([{"a": 1}]), pa.array([b"x"])):
        with pytest.raises(DataError) as caught:
            KeyCodes().encode([column])
        assert caught.value.code == "ACEP-D030"
    keys = KeyCodes()
    keys.encode([pa.array([1])])
    with pytest.raises(DataError, match="int64") as caught:
        keys.encode([pa.array(["x"])])
    assert caught.value.code == "ACEP-D031"


@examples(100)
@given(
    st.lists(st.tuples(st.sampled_from("abcd") | st.none(), st.integers(0, 3)), max_size=30),
    st.integers(1, 7),
    st.data(),
)
def test_same_as_a_dict_in_any_split_with_state_saved_between(rows, size, data):
    keys, naive, free = KeyCodes(), {}, []
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        columns = [pa.array([a for a, _ in part], pa.string()), pa.array([b for _, b in part], pa.int8())]
        if data.draw(st.booleans()):
            columns[0] = columns[0].dictionary_encode()
        expected = []
        for key in part:
            if key[0] is None:
                expected.append(-1)
                continue
            if key not in naive:
                free.sort()
                naive[key] = free.pop(0) if free else len(naive)
            expected.append(naive[key])
        assert keys.encode(columns).tolist() == expected
        for slot in data.draw(st.sets(st.sampled_from(sorted(naive.values())))) if naive else ():
            keys.release([slot])
            free.append(slot)
            naive = {k: s for k, s in naive.items() if s != slot}
        used = set(naive.values())
        free = [s for s in range(max(used, default=-1) + 1) if s not in used]
        keys = KeyCodes.from_state(keys.to_state())
        assert len(keys) == len(naive)


@pytest.mark.parametrize("size", [1, FEW, FEW + 1, 50])
def test_few_events_are_numbered_as_many(size):
    dice = np.random.default_rng(size)
    texts = pa.array([None if i == 0 else f"k{i}" for i in dice.integers(0, 9, 400)])
    columns = [
        texts.dictionary_encode(),
        pa.array(dice.choice([0.5, 2.0, math.nan], 400), mask=dice.random(400) < 0.1),
        pa.array(dice.integers(0, 3, 400)).cast(pa.timestamp("us", "UTC")),
        pa.array(dice.random(400) < 0.5),
    ]
    for chosen in [*([column] for column in columns), columns]:
        whole, parts = KeyCodes(), KeyCodes()
        slots = [parts.encode([column.slice(at, size) for column in chosen]) for at in range(0, 400, size)]
        assert np.concatenate(slots).tolist() == whole.encode(chosen).tolist()
        assert str(parts.to_state().to_pydict()) == str(whole.to_state().to_pydict())


def test_a_million_keys():
    many = cases(1_000_000, 200_000)
    column = pa.array([f"key{i}" for i in range(many)])
    keys = KeyCodes()
    slots = [keys.encode([column.slice(i, 100_000)]) for i in range(0, many, 100_000)]
    again = keys.encode([column])
    assert np.array_equal(np.concatenate(slots), np.arange(many))
    assert np.array_equal(again, np.arange(many))


@pytest.mark.parametrize("number", [1000, 100_000])
def test_a_new_key_costs_a_few_calls_and_a_known_one_none(number):
    column = pa.array([f"key{i}" for i in range(number)])
    keys = KeyCodes()
    assert calls(lambda: keys.encode([column])) <= 4 * number + 300
    assert calls(lambda: keys.encode([column])) <= 300


@pytest.mark.parametrize("rows", [8, 200])
@pytest.mark.parametrize("others", [0, 1])
def test_both_zeros_are_one_key(rows: int, others: int) -> None:
    """Though both come for the first time, in one batch."""
    keys = KeyCodes()
    columns = [pa.array([0.0, -0.0] * (rows // 2)), *(pa.array(["p"] * rows) for _ in range(others))]
    assert keys.encode(columns).tolist() == [0] * rows
    assert len(keys) == 1


@examples(60)
@given(st.lists(st.lists(st.integers(-1, 9), min_size=FEW + 1, max_size=FEW + 9), min_size=1, max_size=5), st.data())
def test_batches_of_one_dictionary_are_encoded_like_others(batches, data):
    values, fast, slow = pa.array([f"v{n}" for n in range(10)]), KeyCodes(), KeyCodes()
    for codes in batches:
        indices = pa.array([None if code < 0 else code for code in codes], pa.int32())
        column = pa.DictionaryArray.from_arrays(indices, values)
        assert fast.encode([column]).tolist() == slow.encode([column.dictionary_decode()]).tolist()
        gone = [slot for slot in fast.used().tolist() if data.draw(st.booleans())]
        fast.release(gone)
        slow.release(gone)
    assert fast.to_state().equals(slow.to_state())


def test_dictionaries_that_look_alike_are_told_apart():
    keys, codes = KeyCodes(), pa.array([0, 1] * FEW, pa.int32())
    both = pa.array(["a", "b", "c"])
    for values, wanted in ((both[:2], [0, 1]), (both[1:], [1, 2]), (both[:2], [0, 1]), (pa.array(["d", "a"]), [3, 0])):
        assert keys.encode([pa.DictionaryArray.from_arrays(codes, values)]).tolist()[:2] == wanted


@given(
    batches=st.lists(st.lists(st.integers(-3, 9) | st.sampled_from([2**62, -(2**63), 2**31]), max_size=40), max_size=6),
    is_interpreted=st.booleans(),
    seed=st.integers(0, 99),
)
@examples(200)
def test_whole_numbers_get_the_slots_that_other_keys_get(batches, is_interpreted, seed):
    dice = Random(seed)
    with pytest.MonkeyPatch.context() as patch, tiers_forced.tier(lambda: is_interpreted):
        patch.setattr(jit.Kernel, "if_compiled", lambda kernel, *args: kernel(*args))
        patch.setattr(integer_keys, "FIRST_SIZE", 4)
        ours, expected = KeyCodes(), KeyCodes()
        for batch in batches:
            column = pa.array(batch, pa.int64())
            patch.setattr(key_codes, "FEW", 0)
            patch.setattr(key_codes, "MANY", 0)
            found = ours.encode([column])
            patch.setattr(key_codes, "MANY", 10**9)
            assert found.tolist() == expected.encode([column]).tolist()
            gone = [slot for slot in expected.used().tolist() if dice.random() < 0.3]
            for one in (ours, expected):
                one.release(gone)
