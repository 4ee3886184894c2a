"""Lines for the hint of an error, from the events: columns that could have a role, the one cell that is no number."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import pyarrow.compute as pc

from acep_approx.cli.options.input import SourceOptions
from acep_approx.errors import AcepError
from acep_approx.shell import quoted
from acep_approx.visible import visible

LOOKED_AT = 1_000
"""Rows that are looked at for a role."""
SEARCHED = 1_000_000
"""Rows that are searched for a value that is no number."""
MOSTLY = 0.9
"""Share of the values that are numbers, from which on others are strays."""
_AS_NUMBER = re.compile(r"--column-type (.+?)=float \(")
NAMED = 4
"""Columns that are named."""


def candidates(error: AcepError, inputs: Sequence[str], given: Mapping[str, Any]) -> str:
    """Lines for the hint of an error that a role is in no column; empty where the input cannot be looked at.

    Parameters
    ----------
    error : AcepError
        ``ACEP-D001`` (no time), ``ACEP-D008`` (no key, no type), or ``ACEP-Q061`` (a column of numbers that is text).
    inputs : sequence of str
        Files.
    given : mapping
        The arguments of the command, with those that say how files are read.
    """
    if as_number := _AS_NUMBER.search(error.hint or ""):
        return _stray(as_number[1], inputs, given)
    named = next((role for role in ("key", "type") if f"uses {role!r}" in error.message), None)
    role = "time" if error.code == "ACEP-D001" else named
    source = _options(given)
    if role is None or source is None:
        return ""
    from acep_approx.profiling.profile import look

    try:
        seen = look(list(inputs), **(source.roles | source.reading), rows=LOOKED_AT)
    except AcepError:
        return ""  # the error itself says enough
    values = {column.name: ", ".join(column.examples[:2]) for column in seen.columns}
    found = {"time": seen.time, "key": seen.key, "type": seen.type}[role].others[:NAMED]
    lines = [f"{one.option}  ({one.why}: {visible(values[one.column])})" for one in found]
    return "".join(f"\n  {'or: ' if number else 'try:'}  {line}" for number, line in enumerate(lines))


def _options(given: Mapping[str, Any]) -> SourceOptions | None:
    """How files are read, by the arguments of a command; None: it reads none."""
    names = [field.name for field in fields(SourceOptions)]
    return SourceOptions(**{name: given[name] for name in names}) if given.keys() >= {*names} else None


def _stray(column: str, inputs: Sequence[str], given: Mapping[str, Any]) -> str:
    """Lines about the first value that is no number, in a column where most are; empty if many are none."""
    source = _options(given)
    if source is None:
        return ""
    from acep_approx.events.columns import decoded
    from acep_approx.events.source import open_source
    from acep_approx.matching.fitting import are_numbers

    texts, strays, stray, row = 0, 0, "", 0
    try:
        for batch in open_source(list(inputs), **source.reading, on_malformed="skip").batches([column]):
            values = decoded(batch.column(0))
            places = pc.indices_nonzero(pc.invert(pc.fill_null(are_numbers(values), True)))
            if len(places) and not strays:
                place = places[0].as_py()
                stray, row = visible(values[place].as_py()), texts + place
            texts, strays = texts + len(values), strays + len(places)
            if texts >= SEARCHED:
                break
    except AcepError:
        return ""
    if not strays or strays > (1 - MOSTLY) * texts:
        return ""
    rest = f"{strays:,} of {texts:,} values of {column!r} {'is no number' if strays == 1 else 'are no numbers'}"
    return (
        f"\n  why:  {rest}; the first is {stray!r}, in row {row} (from 0)\n"
        f"  try:  --null {quoted(stray)}  (it stands for nothing)\n"
        f"  or:   --column-type {quoted(column)}=float --on-malformed skip  (leaves such rows out)"
    )
