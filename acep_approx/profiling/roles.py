"""Which column is the time, why, and how to say otherwise; what is said of a column that plays a role."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.columns import plain_type, to_numpy
from acep_approx.events.roles import TIME_NAMES, Roles, infer_roles, is_number
from acep_approx.events.time_formats import TimeFormat, are_iso
from acep_approx.profiling.columns import plain_values
from acep_approx.profiling.formatting import options
from acep_approx.profiling.times import unit_of
from acep_approx.shell import quoted

TIME_LIKE = re.compile(
    r"(^|_|\b)(ts|time|timestamp|date|datetime|when|zeit\w*|datum|created|at|epoch|clock)($|_|\b)", re.I
)
"""Names that people give to times."""
COUNTER = 3
"""How numbers rank as times that only rise: anything may count so."""
OTHERS = 5
"""Columns that are named beside the one that is taken."""


@dataclass(frozen=True)
class Candidate:
    """A column that could play a role.

    Attributes
    ----------
    column : str
    why : str
    option : str
        What to write to take it.
    unit : str or None
        Of a time of numbers: what they count, as far as that is plausible.
    """

    column: str
    why: str
    option: str
    unit: str | None = None


@dataclass(frozen=True)
class RoleFound:
    """Which column plays a role.

    Attributes
    ----------
    role : str
        ``time``, ``type`` or ``key``.
    column : str or None
        The one that is taken without an option, or that was said; None: there is none.
    why : str
        Why it is taken, or why none is.
    others : tuple of Candidate
        Columns that could, the likeliest first.
    """

    role: str
    column: str | None
    why: str
    others: tuple[Candidate, ...] = ()

    @property
    def best(self) -> str | None:
        """The column that is taken, or else the likeliest."""
        return self.column or (self.others[0].column if self.others else None)


def taken_roles(
    schema: pa.Schema, given: dict[str, str | None], unit: str | None, time_format: TimeFormat | None
) -> Roles | None:
    """The roles as a run takes them; None where no column is recognised as the time.

    Raises
    ------
    DataError
        ``ACEP-D002``, ``ACEP-D003``, ``ACEP-D009``: what was said does not fit.
    UsageError
        ``ACEP-U101``: a unit for a column that has its own; ``ACEP-U124``: a format of times for numbers.
    """
    try:
        return infer_roles(schema, **given, unit=unit, time_format=time_format)
    except DataError as error:
        if error.code == "ACEP-D001":
            return None
        raise


def time_role(
    roles: Roles | None, given: str | None, batch: pa.RecordBatch, unsure: tuple[()] | tuple[str, str]
) -> RoleFound:
    """The column of the times, from the columns and the first events; ``unsure`` as ``open_times`` says."""
    others = _times_among(batch, roles.time if roles else None)
    if roles is None:
        why = next(iter(unsure), None) or f"no column is called {', '.join(TIME_NAMES[:4])}, ... and can be a time"
        return RoleFound("time", None, why, others)
    if given is not None:
        return RoleFound("time", given, "you said so", others)
    is_named = roles.time.lower() in TIME_NAMES
    return RoleFound("time", roles.time, "by its name" if is_named else "the only column of times", others)


def _times_among(batch: pa.RecordBatch, taken: str | None) -> tuple[Candidate, ...]:
    """Other columns that hold times, or numbers that never fall."""
    found = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        why = None if name == taken else _as_time(name, column)
        if why is None or (why[0] == COUNTER and taken is not None):
            continue
        rank, reason, unit = why
        option = " ".join(map(quoted, options({"time": name} | ({"unit": unit} if unit else {}))))
        found.append((rank - bool(TIME_LIKE.search(name)) * 2, Candidate(name, reason, option, unit)))
    found.sort(key=lambda item: item[0])
    return tuple(candidate for _, candidate in found[:OTHERS])


def _as_time(name: str, column: pa.Array) -> tuple[int, str, str | None] | None:
    """How well a column would do as the time (0: best), why, and the unit to say."""
    type_ = plain_type(column.type)
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        return (0, "times", None) if pa.types.is_timestamp(type_) else (1, "dates", None)
    unit = unit_of(column)
    if unit is not None:
        return 1, f"numbers that are times between 1990 and 2100 as {unit}", unit
    if pa.types.is_string(type_):
        texts = plain_values(column).drop_null().slice(0, 100)
        return (1, "texts that are times", None) if len(texts) and are_iso(texts, "ns") else None
    if not is_number(type_) or column.null_count:
        return None
    values = to_numpy(plain_values(column))  # numbers that are no times since 1970
    steps = np.diff(values.astype(np.float64))
    if (steps >= 0).all() and (steps > 0).any():
        return COUNTER, "numbers that never fall", None if pa.types.is_integer(type_) else "s"
    return (2, "numbers, by its name", None) if TIME_LIKE.search(name) else None
