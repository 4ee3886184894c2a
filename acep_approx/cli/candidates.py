"""Which columns could play a role that none plays, with values of them and the option to type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from acep_approx.cli.options.input import SourceOptions
from acep_approx.errors import AcepError
from acep_approx.visible import visible

LOOKED_AT = 1_000
"""Rows that are looked at."""
NAMED = 4
"""Columns that are named."""


def candidates(error: AcepError, inputs: Sequence[str], given: Mapping[str, Any]) -> str:
    """Lines for the hint of an error that a role is in no column; empty where the input cannot be looked at.

    Parameters
    ----------
    error : AcepError
        ``ACEP-D001`` (no time) or ``ACEP-D008`` (no key, no type).
    inputs : sequence of str
        Files.
    given : mapping
        The arguments of the command, with those that say how files are read.
    """
    named = next((role for role in ("key", "type") if f"uses {role!r}" in error.message), None)
    role = "time" if error.code == "ACEP-D001" else named
    names = [field.name for field in fields(SourceOptions)]
    if role is None or not given.keys() >= {*names}:
        return ""
    from acep_approx.profiling.profile import look

    source = SourceOptions(**{name: given[name] for name in names})
    try:
        seen = look(list(inputs), **(source.roles | source.reading), rows=LOOKED_AT)
    except AcepError:
        return ""  # the error itself says enough
    values = {column.name: ", ".join(column.examples[:2]) for column in seen.columns}
    found = {"time": seen.time, "key": seen.key, "type": seen.type}[role].others[:NAMED]
    lines = [f"{one.option}  ({one.why}: {visible(values[one.column])})" for one in found]
    return "".join(f"\n  {'or: ' if number else 'try:'}  {line}" for number, line in enumerate(lines))
