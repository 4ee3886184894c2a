"""A query imports no pandas, and pyarrow knows pandas as before once somebody does."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from acep_approx.events.columns import from_python, to_list
from tests.processes import imported, python

HERE = """
from datetime import UTC, datetime
from acep_approx import compile_query
query = compile_query("PATTERN SEQ(A a, B b, C c) WHERE [key] AND c.x > a.x AND b.x % 3 != 1 AND a.t = 'u' "
                      "WITHIN 9 s ERRORS 1")
def event(i, ts, key="k"):
    return {"ts": ts, "type": "ABC"[i % 3], "key": key, "x": 7 * i % 11, "y": i / 2, "t": "u"}
"""
DICTS = "events = [event(i, datetime.fromtimestamp(i, UTC)) for i in range(8)]\n"
FILES = """
import json, tempfile
events = tempfile.mkdtemp() + "/events.jsonl"
with open(events, "w") as file:
    file.writelines(json.dumps(event(i, f"2024-05-01T08:00:0{i}Z")) + "\\n" for i in range(8))
"""
MANY_KEYS = FILES.replace("event(i, f", "event(i, key=f'k{i % 70}', ts=f").replace("0{i}Z", "{i // 9:02}Z").replace(
    "range(8)", "range(300)"
)
ASKED = "matches = query.match(events); assert len(list(matches)) == len(matches) == matches.to_arrow().num_rows\n"
HIDDEN = "from acep_approx import without_pandas; without_pandas.leave_pandas_out()\n"
SHOWN = """
import threading
import pandas as pd, pyarrow as pa
shown = [
    pa.array(pd.Series([1.5, None])), pa.array([pd.NaT, None, pd.Timestamp(5)], from_pandas=True),
    pa.array([pd.NA, 1], from_pandas=True), pa.array([pd.Timedelta(5)]), pa.array(pd.Categorical(["a", "b", "a"])),
    pa.Table.from_pandas(pd.DataFrame({"a": [1, 2]}, index=[5, 6])), pa.table(pd.DataFrame({"a": [1.5]})),
    pa.table({"a": [1, None]}).to_pandas(), pa.scalar(5, pa.timestamp("ns", "UTC")).as_py(),
    pa.array([pd.DateOffset(days=1)]).to_pandas(), pa.array(pd.Series(pd.to_datetime(["2020-01-01"], utc=True))),
]
print(*shown, *map(type, shown), type(pa.lib._pandas_api))
"""


@pytest.mark.parametrize("events", [DICTS, FILES, MANY_KEYS], ids=["dicts", "file", "many keys"])
def test_a_query_imports_no_pandas(events):
    found = imported(HERE + events + ASKED)
    assert "pyarrow" in found
    assert "pandas" not in found


def test_pandas_that_is_imported_later_is_known_as_if_it_had_been_first():
    later = python("-c", HERE + DICTS + ASKED + SHOWN, ACEP_JIT="0")
    first = python("-c", SHOWN)
    assert later.returncode == 0, later.stderr
    assert later.stdout == first.stdout


@pytest.mark.parametrize(
    "wanted",
    [
        "repr(pa.scalar(5, pa.timestamp('ns', 'UTC')).as_py())",
        "repr(pa.array([5], pa.duration('ns')).to_pylist())",
        "type(pa.table({'a': pa.array([1], pa.int64())}).to_pandas())",
        "pa.array([1, None])",
        "pa.table(type('Table', (), {'__arrow_c_stream__': pa.table({'a': pa.nulls(1)}).__arrow_c_stream__})())",
    ],
)
def test_what_pyarrow_makes_of_pandas_is_as_before(wanted):
    shown = f"import sys, pyarrow as pa; print({wanted}, 'pandas' in sys.modules)"
    assert python("-c", HIDDEN + shown).stdout == python("-c", shown).stdout != ""


def test_a_frame_is_matched_after_a_query_without_pandas():
    program = (
        "import pandas\nframe = query.match(pandas.DataFrame(events))\n"
        "assert list(frame) == list(query.match(events)) != []\n"
    )
    done = python("-c", HERE + DICTS + ASKED + program, ACEP_JIT="0")
    assert done.returncode == 0, done.stderr


def test_a_thread_that_imports_pandas_at_the_same_time_is_noticed():
    """It comes in between, when pyarrow has looked."""
    program = (
        "import sys, threading; from acep_approx import without_pandas as w\n"
        "make = w._Asking\n"
        "def asked(watch):\n"
        "    thread = threading.Thread(target=watch.find_spec, args=['pandas']); thread.start(); thread.join()\n"
        "    return make(watch)\n"
        "w._Asking = asked\n"
    )
    done = python("-c", program + HIDDEN + SHOWN)
    assert done.returncode == 0, done.stderr
    assert done.stdout == python("-c", SHOWN).stdout


@pytest.mark.parametrize("fault", ["del pa.lib._pandas_api", "pa.lib._pandas_api = Other()"])
def test_another_pyarrow_is_left_as_it_is(fault):
    """One without the object, or with one that does not forget."""
    program = (
        "import sys, pyarrow as pa\nclass Other:\n    have_pandas = False\n"
        f"kept = pa.lib._pandas_api\n{fault}\n{HIDDEN}pa.lib._pandas_api = kept\n"
        "assert not [finder for finder in sys.meta_path if 'Watch' in str(finder)]\n"
    )
    done = python("-c", program + SHOWN)
    assert done.returncode == 0, done.stderr
    assert done.stdout == python("-c", SHOWN).stdout


KINDS = (
    *([1, -5, 2**62], [2**63], [2**64, 1], [1.5, math.nan, -0.0], ["", "é"], ["\ud800"], [True, False], [None]),
    *([datetime(2020, 1, 1, 5, 6, 7, 8), datetime.min, datetime.max], [datetime(2020, 1, 1, tzinfo=UTC)]),  # noqa: DTZ001, DTZ901
    *([datetime(2020, 1, 1, tzinfo=ZoneInfo(zone))] for zone in ("UTC", "Europe/Rome")),
    *([b"x"], [date(2020, 1, 1)], [[1]], [{"a": 1}], [timedelta(1)], [Decimal("1.5")]),
)


def told(call, *given):
    """What a function gives, or says."""
    try:
        found = call(*given)
    except (ArithmeticError, TypeError, ValueError) as error:
        return type(error), str(error)
    return (found.type, repr(found.to_pylist())) if isinstance(found, pa.Array) else repr(found)


def test_values_of_python_become_the_columns_that_pyarrow_makes_of_them():
    choice = random.Random(5)
    for _ in range(2000):
        kinds = sum(choice.sample(KINDS, choice.choice([1, 1, 2])), [None] * choice.randrange(2))
        values = choice.choices(kinds, k=choice.randrange(5))
        assert told(from_python, values) == told(pa.array, values), values


def test_times_with_a_zone_become_the_times_of_python_that_pyarrow_makes_of_them():
    choice = random.Random(3)
    zones = [None, "UTC", "Europe/Rome", "+02:30", "-11:00"]
    types = [pa.timestamp(unit, zone) for unit in ("s", "ms", "us") for zone in zones]
    for _ in range(500):
        numbers = [choice.choice([None, 0, -1, choice.choice([1, -1]) * 10 ** choice.randrange(19)]) for _ in range(3)]
        column = pa.array(numbers, pa.int64()).cast(choice.choice(types))
        assert told(to_list, column) == told(lambda column: column.to_pylist(), column), column
