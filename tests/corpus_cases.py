"""The cases of the corpus: what each file of ``corpus/`` holds."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from acep_approx.query.parser import parse
from acep_approx.query.printer import to_text

Case = dict[str, Any]
FOLDER = Path(__file__).parent / "corpus"
NAMED: dict[str, Case] = {
    f"{path.stem}: {case['name']}": case
    for path in sorted(FOLDER.glob("*.toml"))
    for case in tomllib.loads(path.read_text())["case"]
}


def value_of(text: str) -> int | float | str:
    """A whole number, a number with a fraction, or a text."""
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?\d+\.\d+", text) else text


def events_of(case: Case) -> pa.Table:
    """The events of a case: ts, type, and their attributes; x and g are always there."""
    rows: list[dict[str, Any]] = []
    for word in case["events"].split():
        found = re.fullmatch(r"(-?\d+):(\w+)(?:\{(.*)\})?", word)
        assert found, word
        pairs = [pair.split("=") for pair in found[3].split(",")] if found[3] else []
        rows.append({"ts": int(found[1]), "type": found[2]} | {name: value_of(text) for name, text in pairs})
    attributes = dict.fromkeys(name for row in rows for name in row if name not in ("ts", "type"))
    fields = [("ts", pa.int64()), ("type", pa.string())]
    fields += [(name, column_type([row[name] for row in rows if name in row])) for name in attributes]
    fields += [(name, type_) for name, type_ in (("x", pa.int64()), ("g", pa.string())) if name not in attributes]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def column_type(values: list[Any]) -> pa.DataType:
    """Whole numbers, numbers, or texts."""
    kinds = {type(value) for value in values}
    if str in kinds:
        assert kinds == {str}, values
        return pa.string()
    return pa.float64() if float in kinds else pa.int64()


def listing(case: Case) -> str:
    """The query without its RETURN, which would hide what the variables are bound to."""
    return to_text(replace(parse(case["query"]), outputs=()))
