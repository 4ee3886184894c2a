"""Which column plays which role, why, and how to say otherwise; and which could, where none is taken."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.columns import plain_type, to_numpy
from acep_approx.events.keys import can_be_key
from acep_approx.events.roles import TIME_NAMES, TYPE_NAMES, Roles, infer_roles, is_number
from acep_approx.events.time_formats import TimeFormat
from acep_approx.looking.columns import ColumnScan, plain_values
from acep_approx.looking.times import unit_of
from acep_approx.looking.words import options, quoted

TIME_LIKE = re.compile(
    r"(^|_|\b)(ts|time|timestamp|date|datetime|when|zeit\w*|datum|created|at|epoch|clock)($|_|\b)", re.I
)
TYPE_LIKE = re.compile(
    r"type|event|kind|action|activity|status|state|level|severity|method|operation|category|name|code|art$|verb|phase",
    re.I,
)
KEY_LIKE = re.compile(
    r"(^|_|\b)(id|key|uuid|guid|user|client|customer|kunde|session|host|ip|src|dst|addr\w*|device|machine|sensor|account|konto|"
    r"order|case|box|bike|car|vehicle|patient|ticker|symbol|server|node|station|number|nr|no|tail|flight|trip|thread|pid|"
    r"player|team|match|visitor|request|trace|job|worker|room|item|product|sku|name)s?($|_|\b)|(?<=[a-z])(Id|ID|Key|id)$"
)
"""Names that people give to such columns."""
MOST_TYPES = 200
"""A column with more different values is hardly one of types."""
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


def time_role(roles: Roles | None, given: str | None, batch: pa.RecordBatch) -> RoleFound:
    """The column of the times, from the columns and the first events."""
    others = _times_among(batch, roles.time if roles else None)
    if roles is None:
        why = f"no column is called {', '.join(TIME_NAMES[:4])}, ... and can be a time"
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
        if why is not None:
            rank, reason, unit = why
            if rank == COUNTER and taken is not None:
                continue
            option = " ".join(map(quoted, options({"time": name} | ({"unit": unit} if unit else {}))))
            found.append((rank - bool(TIME_LIKE.search(name)) * 2, Candidate(name, reason, option, unit)))
    found.sort(key=lambda item: item[0])
    return tuple(candidate for _, candidate in found[:OTHERS])


def _as_time(name: str, column: pa.Array) -> tuple[int, str, str | None] | None:
    """How well a column would do as the time (0: best), why, and the unit to say."""
    type_ = plain_type(column.type)
    if pa.types.is_timestamp(type_):
        return 0, "times", None
    if pa.types.is_date(type_):
        return 1, "dates", None
    unit = unit_of(column)
    if unit is not None:
        return 1, f"numbers that are times between 1990 and 2100 as {unit}", unit
    if pa.types.is_string(type_):
        return (1, "texts that are times", None) if _are_times(column) else None
    return _as_number(name, column) if is_number(type_) and not column.null_count else None


def _as_number(name: str, column: pa.Array) -> tuple[int, str, str | None] | None:
    """The same of a column of numbers that are no times since 1970."""
    type_ = plain_type(column.type)
    values = to_numpy(plain_values(column))
    steps = np.diff(values.astype(np.float64))
    if (steps >= 0).all() and (steps > 0).any():
        return COUNTER, "numbers that never fall", None if pa.types.is_integer(type_) else "s"
    return (2, "numbers, by its name", None) if TIME_LIKE.search(name) else None


def _are_times(column: pa.Array) -> bool:
    texts = plain_values(column).drop_null().slice(0, 100)
    if not len(texts):
        return False
    for zone in (None, "UTC"):
        try:
            texts.cast(pa.timestamp("ns", tz=zone))
        except pa.ArrowInvalid:
            continue
        return True
    return False


def type_role(roles: Roles | None, given: str | None, columns: Sequence[ColumnScan], rows: int) -> RoleFound:
    """The column of the types, from all columns; ``rows`` is the number of events."""
    taken = given or (roles.type if roles else None)
    others = _ranked(columns, (taken, roles.time if roles else None), lambda column: _as_type(column, rows), "type")
    if taken is None:
        return RoleFound("type", None, f"no column is called {', '.join(TYPE_NAMES)}", others)
    why = "you said so" if given else "by its name"
    return RoleFound("type", taken, why + _doubt(columns, taken, rows), others)


def _doubt(columns: Sequence[ColumnScan], taken: str, rows: int) -> str:
    """What speaks against a column of types."""
    (count,) = (column.values.count for column in columns if column.name == taken)
    if count > max(MOST_TYPES, rows // 3):
        return f"; but it has {count:,} different values: are these types?"
    return "; but all events have the same one" if count == 1 and rows > 1 else ""


def key_role(
    roles: Roles | None, given: str | None, columns: Sequence[ColumnScan], rows: int, taken: Sequence[str | None]
) -> RoleFound:
    """The column of the keys; ``taken`` are those that play other roles."""
    column = given or (roles.key if roles else None)
    others = _ranked(columns, (column, *taken), lambda one: _as_key(one, rows), "key")
    if column is None:
        return RoleFound("key", None, "no column is called key", others)
    return RoleFound("key", column, "you said so" if given else "by its name", others)


def _ranked(
    columns: Sequence[ColumnScan],
    left_out: Sequence[str | None],
    judge: Callable[[ColumnScan], tuple[float, str] | None],
    role: str,
) -> tuple[Candidate, ...]:
    """The columns that a judge finds fit, the best first."""
    found = [(judged, column) for column in columns if column.name not in left_out and (judged := judge(column))]
    found.sort(key=lambda item: -item[0][0])
    found = [item for item in found if item[0][0] > 0] or found[:1]
    return tuple(Candidate(c.name, why, f"--{role} {quoted(c.name)}") for (_, why), c in found[:OTHERS])


def _as_type(column: ColumnScan, rows: int) -> tuple[float, str] | None:
    """How well a column would do as the type, and why; None: not at all."""
    type_, count = plain_type(column.type), column.values.count
    is_label = pa.types.is_string(type_) or pa.types.is_integer(type_) or pa.types.is_boolean(type_)
    if (
        not (column.is_counted and is_label and 2 <= count <= MOST_TYPES)
        or 2 * column.missing > rows
        or 2 * count > rows
    ):
        return None
    merit = 3.0 * bool(TYPE_LIKE.search(column.name)) - 2.0 * bool(KEY_LIKE.search(column.name))
    merit += 2.0 * pa.types.is_string(type_) - 1.0 * pa.types.is_boolean(type_) - count / 50
    return merit, f"{count} different values"


def _as_key(column: ColumnScan, rows: int) -> tuple[float, str] | None:
    """How well a column would do as the key, and why."""
    type_, count = plain_type(column.type), column.values.count
    present = rows - column.missing
    fits = column.is_counted and can_be_key(type_) and not (pa.types.is_floating(type_) or pa.types.is_temporal(type_))
    if not fits or pa.types.is_boolean(type_) or count < 2 or present < 2 * count:
        return None
    per_key = present / count
    merit = 4.0 * bool(KEY_LIKE.search(column.name)) - 3.0 * bool(TYPE_LIKE.search(column.name))
    merit += 1.0 if pa.types.is_string(type_) else -3.0
    merit += min(np.log10(count), 3.0) - 2.0 * (count < 4)
    about = "" if column.values.is_exact else "about "
    each = f"{per_key:,.0f}" if per_key >= 10 else f"{per_key:.1f}"
    return float(merit), f"{about}{count:,} different values, {about}{each} rows for each"
