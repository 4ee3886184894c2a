"""Rows for the tables of rules: every type of column against every type of value is taken rightly, or ACEP-R110."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep_approx import AcepError, compile_rules
from tests.command_line import acep

HOLDS = ("int", "float", "text", "bool", "time")
TEXT = "TABLE t (id {key}, v {holds}{default}, KEY (id))\nRULE r ON PATTERN A a WITHIN 1 DO UPSERT t AT ({of}) END"
DAY = dt.datetime(2024, 1, 2)  # noqa: DTZ001
VALUES = {
    "whole": pa.array([1, None]),
    "small": pa.array([1], pa.int8()),
    "unsigned": pa.array([1], pa.uint64()),
    "large": pa.array([2**63], pa.uint64()),
    "inexact": pa.array([2**53 + 1]),
    "lowest": pa.array([-(2**63)]),
    "float": pa.array([1.0]),
    "fraction": pa.array([1.5]),
    "nan": pa.array([float("nan")]),
    "infinite": pa.array([float("inf")]),
    "beyond": pa.array([1e19]),
    "half": pa.array(np.array([1.5], np.float16)),
    "decimal": pa.array([Decimal("2")]),
    "decimals": pa.array([Decimal("2.5")]),
    "digits": pa.array([Decimal("1234567890123456789")]),
    "text": pa.array(["x"]),
    "number": pa.array(["3"]),
    "empty": pa.array([""]),
    "long text": pa.array(["x"], pa.large_string()),
    "view": pa.array(["x"], pa.string_view()),
    "coded": pa.array(["x"]).dictionary_encode(),
    "bytes": pa.array([b"x"]),
    "no text": pa.array([b"\xff"]),
    "truth": pa.array([True]),
    "moment": pa.array([DAY]),
    "zone": pa.array([DAY], pa.timestamp("us", "Europe/Berlin")),
    "fine": pa.array([1], pa.timestamp("ns")),
    "far": pa.array([2**62], pa.timestamp("s")),
    "day": pa.array([19000], pa.date32()),
    "iso": pa.array(["2024-01-02T03:00:00+01:00"]),
    "iso day": pa.array(["2024-01-02"]),
    "of day": pa.array([1], pa.time32("s")),
    "length": pa.array([1], pa.duration("s")),
    "list": pa.array([[1]]),
    "object": pa.array([{"a": 1}]),
    "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    "null": pa.nulls(1),
}
TWO = dt.datetime(2024, 1, 2, 2)  # noqa: DTZ001
TAKEN = {
    "int": {
        "whole": 1,
        "small": 1,
        "unsigned": 1,
        "inexact": 2**53 + 1,
        "lowest": -(2**63),
        "float": 1,
        "nan": None,
        "decimal": 2,
        "digits": 1234567890123456789,
        "null": None,
    },
    "float": {
        "whole": 1.0,
        "small": 1.0,
        "unsigned": 1.0,
        "large": 2.0**63,
        "lowest": -(2.0**63),
        "float": 1.0,
        "fraction": 1.5,
        "nan": None,
        "infinite": float("inf"),
        "beyond": 1e19,
        "half": 1.5,
        "decimal": 2.0,
        "decimals": 2.5,
        "null": None,
    },
    "text": {
        "whole": "1",
        "small": "1",
        "unsigned": "1",
        "large": str(2**63),
        "inexact": str(2**53 + 1),
        "lowest": str(-(2**63)),
        "text": "x",
        "number": "3",
        "empty": "",
        "long text": "x",
        "view": "x",
        "coded": "x",
        "bytes": "x",
        "iso": "2024-01-02T03:00:00+01:00",
        "iso day": "2024-01-02",
        "null": None,
    },
    "bool": {"truth": True, "null": None},
    "time": {"moment": DAY, "zone": DAY, "day": dt.datetime(2022, 1, 8), "iso": TWO, "iso day": DAY, "null": None},  # noqa: DTZ001
}


def rules(holds="int", key="text", default=""):
    of = {"text": "'z'", "int": "9", "float": "9.5", "bool": "TRUE", "time": "a.t"}[key]
    return compile_rules(TEXT.format(holds=holds, key=key, default=default, of=of))


def loaded(holds, column, key=None):
    """What a column of values becomes, or the code of the error."""
    table = pa.table({"id": key if key is not None else pa.array([f"k{n}" for n in range(len(column))]), "v": column})
    try:
        return rules(holds).start(store={"t": table}).store["t"].to_pylist()[0]["v"]
    except AcepError as error:
        return error.code


@pytest.mark.parametrize("holds", HOLDS)
@pytest.mark.parametrize("what", VALUES)
def test_every_value_in_every_column(holds, what):
    expected = TAKEN[holds].get(what, "ACEP-R110")
    found = loaded(holds, VALUES[what])
    if expected == "ACEP-R110" and what == "object":  # objects are columns of their own
        assert found == "ACEP-R110"
    else:
        assert found == expected


@pytest.mark.parametrize("key", HOLDS)
@pytest.mark.parametrize("what", VALUES)
def test_every_value_as_a_key(key, what):
    table = pa.table({"id": VALUES[what], "v": pa.array([1] * len(VALUES[what]))})
    expected = TAKEN[key].get(what, "ACEP-R110")
    if expected is None or (what == "whole" and "whole" in TAKEN[key]):
        expected = "ACEP-R111"  # a key is never NULL
    try:
        found = rules("int", key).start(store={"t": table}).store["t"].to_pylist()[0]["id"]
    except AcepError as error:
        found = error.code
    assert found == expected


def test_columns_that_do_not_fit():
    for rows, code in (
        ([{"id": "p"}], "ACEP-R110"),
        ([{"v": 1}], "ACEP-R110"),
        ([{"id": "p", "v": 1}, {"id": "p", "v": 2}], "ACEP-R111"),
        ([{"id": "p", "v": 1, "more": 2}], None),
    ):
        if code is None:
            assert rules().start(store={"t": rows}).store["t"].to_pylist() == [{"id": "p", "v": 1}]
            continue
        with pytest.raises(AcepError) as caught:
            rules().start(store={"t": rows})
        assert caught.value.code == code
    with pytest.raises(AcepError, match="'w'"):  # not the DEFAULT of v, in silence
        rules(default=" DEFAULT 0").start(store={"t": [{"id": "p", "w": 1}]})


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(("value", "is_right"), [(7, True), ("x", False), (1.5, False), (True, False), (None, True)])
def test_tables_on_the_command_line(tmp_path, monkeypatch, form, value, is_right):
    monkeypatch.chdir(tmp_path)
    Path("r.acep").write_text(TEXT.format(holds="int", key="text", default="", of="'z'"), encoding="utf-8")
    Path("e.jsonl").write_text('{"ts": 1, "type": "A"}\n', encoding="utf-8")
    row = {"id": "p", "v": value}
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist([row]), "t.parquet")
    elif form == "jsonl":
        Path("t.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    else:
        Path("t.csv").write_text(f"id,v\np,{'' if value is None else str(value).lower()}\n", encoding="utf-8")
    found = acep("run", "@r.acep", "e.jsonl", "--table", f"t=t.{form}", code=0 if is_right else 4)
    assert ("ACEP-R110" in found.stderr) is not is_right
