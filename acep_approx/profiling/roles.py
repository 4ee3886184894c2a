"""Which column is the time, the type, the key, why, and how to say otherwise.

The type and the key are chosen together: by their names, else by how regularly events of a key follow one another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Floats, Ints
from acep_approx.errors import DataError
from acep_approx.events.columns import can_be_told_apart, decoded, plain_type, to_numpy
from acep_approx.events.keys import can_be_key
from acep_approx.events.roles import OTHER_TIME_NAMES, TIME_NAMES, TYPE_NAMES, Roles, infer_roles, is_number
from acep_approx.events.time_formats import TimeFormat, are_iso
from acep_approx.profiling.columns import ColumnScan, plain_values, unit_of
from acep_approx.profiling.formatting import options
from acep_approx.shell import option_of, quoted

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
    is_named = roles.time.lower() in (*TIME_NAMES, *OTHER_TIME_NAMES)
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


# --- the type and the key -----------------------------------------------------------------------------------------

SAMPLE = 20_000
"""Events that are looked at for each key."""
FEW = 8
"""Pairs of events that tell half of what many tell."""
SHUFFLES = 2
"""Other orders that the order of the events is compared with."""
TYPE_LIKE = re.compile(
    r"type|event|kind|action|activity|status|state|level|severity|method|operation|category|name|code|art$|verb|phase|"
    r"vorgang|ereignis|aktion|aktivit|schritt|zustand",
    re.I,
)
KEY_LIKE = re.compile(
    r"(^|_|\b)(id|key|uuid|guid|user|client|customer|kunde|session|host|ip|src|dst|addr\w*|device|machine|sensor|account|konto|"
    r"order|case|box|bike|car|vehicle|patient|ticker|symbol|server|node|station|number|nr|no|tail|flight|trip|thread|pid|"
    r"player|team|match|visitor|request|trace|job|worker|room|item|product|sku|name|ticket|kunden\w*|auftrag\w*|bestell\w*|"
    r"ger(ä|ae)t\w*|maschine|benutzer|nutzer|sitzung|fall)s?($|_|\b)|(?<=[a-z])(Id|ID|Key|id)$",
    re.I,
)
"""Names that people give to such columns."""
MOST_TYPES = 200
"""A column with more different values is hardly one of types."""
SMALL = 20
"""Rows of a file in which types may occur less than twice."""
LOOKED_AT = 300_000
"""Events whose order is looked at."""
TRIED = 8
"""Columns that are tried as types, and as keys."""
WEIGHT = 12.0
"""What it weighs that types follow one another regularly within keys: more than a name."""
LINKING = 1.0
"""What it weighs that keys have events of several types: one whose events are all of one type links nothing."""
SURE = 1.0
"""How much better a choice is than the next one where it is no guess; a name alone weighs more."""


@dataclass(frozen=True)
class Regularity:
    """What the order of events tells of two columns as type and key.

    Attributes
    ----------
    order : float
        How much less uncertain the next type is for who knows the one before, in the order of the events, than in any
        other order of the same events of each key: 0 (not at all) to 1.
    several : float
        Share of the keys of several events that hold several types.
    recurring : float
        In what share of the keys a type occurs, on average over the events.
    repeats : float
        Share of the events that are of the type of the one before, within a key.
    pairs : int
        Events that follow one of the same key.
    """

    order: float
    several: float
    recurring: float
    repeats: float
    pairs: int

    @property
    def strength(self) -> float:
        """How much this speaks for the two columns, 0 to 1; little of few events."""
        order = max(self.order, 0.0) * (1 - self.repeats) * self.several * self.recurring
        return order * self.pairs / (self.pairs + FEW)


class KeyOrder:
    """The events of each value of a column, in order of time; of many events those of some values.

    Parameters
    ----------
    codes : numpy.ndarray of int64
        The value of each event, in order of time; -1: none.
    """

    def __init__(self, codes: Ints) -> None:
        rows = np.flatnonzero(codes >= 0)
        if len(rows) > SAMPLE:
            counts = np.bincount(codes[rows])  # any values, as long as they have few events
            order = np.random.default_rng(17).permutation(len(counts))
            before = np.cumsum(counts[order]) - counts[order]
            rows = rows[np.isin(codes[rows], order[before < SAMPLE])][:SAMPLE]
        rows = rows[np.argsort(codes[rows], kind="stable")]
        self._rows, self._keys = rows, codes[rows]
        self._is_next = self._keys[1:] == self._keys[:-1]
        random = np.random.default_rng(17)
        self._others = [np.lexsort((random.random(len(rows)), self._keys)) for _ in range(SHUFFLES)]

    def regularity(self, codes: Ints) -> Regularity | None:
        """How regularly the values of another column follow one another; None where no event follows another.

        Events without a value count as one more type.
        """
        types = codes[self._rows] + 1
        if not self._is_next.any():
            return None
        entropy, width = _entropy(np.bincount(types)), int(types.max()) + 1
        other = np.mean([self._certainty(types[order]) for order in self._others])
        _, of_keys = np.unique(self._keys, return_inverse=True)
        sizes = np.bincount(of_keys)
        held = np.unique(of_keys * width + types)
        kinds = np.bincount(held // width, minlength=len(sizes))
        keys_of_type = np.bincount(held % width, minlength=width)
        return Regularity(
            order=float(self._certainty(types) - other) / entropy if entropy else 0.0,
            several=float((kinds > 1)[sizes > 1].mean()),
            recurring=float(keys_of_type[types].mean()) / len(sizes),
            repeats=float((types[1:] == types[:-1])[self._is_next].mean()),
            pairs=int(self._is_next.sum()),
        )

    def _certainty(self, types: Ints) -> float:
        """The mutual information of a type and the next one, in bits."""
        before, after = types[:-1][self._is_next], types[1:][self._is_next]
        _, pairs = np.unique(before * (int(types.max()) + 1) + after, return_counts=True)
        return _entropy(np.bincount(before)) + _entropy(np.bincount(after)) - _entropy(pairs)


def _entropy(counts: Ints) -> float:
    shares: Floats = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


@dataclass(frozen=True)
class Merit:
    """How well a column would do in a role, by itself and together with the best one for the other role, and why."""

    points: float
    why: str
    together: float = 0.0

    @property
    def points_together(self) -> float:
        """What it is worth in a role, with the best one for the other role."""
        return self.points + self.together

    def with_(self, found: Regularity | None) -> Merit:
        """The same with what is known of the two together."""
        return self if found is None else replace(self, together=WEIGHT * found.strength)


@dataclass(frozen=True)
class Pair:
    """The columns of the type and of the key, as far as there are any."""

    type: str | None
    key: str | None


Merits = dict[str, Merit]
Found = Mapping[tuple[str, str], Regularity]
"""How regular columns are, as ``(type, key)``."""


class TypeAndKey:
    """The columns that can be the type or the key.

    Parameters
    ----------
    columns : sequence of ColumnScan
    rows : int
        Number of events.
    time : str or None
        The column of the times, which is neither.
    head : (pyarrow.Table, numpy.ndarray of int64)
        The first events, and their times.
    """

    def __init__(
        self, columns: Sequence[ColumnScan], rows: int, time: str | None, head: tuple[pa.Table, Ints]
    ) -> None:
        self._columns = [column for column in columns if column.name != time]
        self._rows = rows
        self._head = head

    def roles(
        self, roles: Roles | None, given: Mapping[str, str | None]
    ) -> tuple[RoleFound, RoleFound, Pair | None]:
        """The type and the key: what was said, or what names tell, and else what the events tell.

        Then those that would do about as well, if that is not sure.
        """
        taken = Pair(given["type"] or (roles.type if roles else None), given["key"] or (roles.key if roles else None))
        types, keys = self._merits(_as_type, taken), self._merits(_as_key, taken)
        found = self._regularities([taken.type] if taken.type else [*types], [taken.key] if taken.key else [*keys])
        ranked = _best(taken, types, keys, found)
        best, second = ranked[0], ranked[1] if len(ranked) > 1 else None
        if taken.type is None and best.type is not None and not _is_likely(types[best.type], found, best):
            types, second = {}, None  # such as the number of a sensor, or what it measures
            keys = {name: merit for name, merit in keys.items() if merit.points > SURE}
            best = Pair(None, taken.key or next(iter(keys), None))
        types = {name: merit.with_(found.get((name, best.key or ""))) for name, merit in types.items()}
        keys = {name: merit.with_(found.get((best.type or "", name))) for name, merit in keys.items()}
        why = {role: "you said so" if given[role] else "by its name" for role in ("type", "key")}
        why_type = f"no column is called {', '.join(TYPE_NAMES)}"
        if taken.type is not None:
            why_type = why["type"]
            count = next((column.values.count for column in self._columns if column.name == taken.type), 0)
            if count > max(MOST_TYPES, self._rows // 3):
                why_type += f"; but it has {count:,} different values: are these types?"
            elif count == 1 and self._rows > 1:
                why_type += "; but all events have the same one"
        why_key = "no column is called key" if taken.key is None else why["key"]
        return (
            RoleFound("type", taken.type, why_type, _ranked(types, "type", best)),
            RoleFound("key", taken.key, why_key, _ranked(keys, "key", best)),
            second,
        )

    def _merits(self, judge: Callable[[ColumnScan, int], Merit | None], taken: Pair) -> Merits:
        """What speaks for each column that fits and plays no role, the best first."""
        others = (column for column in self._columns if column.name not in (taken.type, taken.key))
        fit = {column.name: merit for column in others if (merit := judge(column, self._rows)) is not None}
        return dict(sorted(fit.items(), key=lambda item: -item[1].points))

    def _regularities(self, types: list[str], keys: list[str]) -> Found:
        table, ticks = self._head
        types, keys = types[:TRIED], keys[:TRIED]
        if not types or not keys or not table.num_rows:
            return {}
        order = np.argsort(ticks[:LOOKED_AT], kind="stable")
        codes = {name: _codes(table.column(name).slice(0, LOOKED_AT))[order] for name in {*types, *keys}}
        found = {}
        for key in keys:
            events = KeyOrder(codes[key])
            regular = {type_: events.regularity(codes[type_]) for type_ in types if type_ != key}
            found.update({(type_, key): one for type_, one in regular.items() if one is not None})
        return found


def _is_likely(merit: Merit, found: Found, pair: Pair) -> bool:
    """Whether something speaks for a column as the type: what it is and is called, or what follows what."""
    return merit.with_(found.get((pair.type or "", pair.key or ""))).points_together > 0


def _best(taken: Pair, types: Merits, keys: Merits, found: Found) -> list[Pair]:
    """The two columns that go together best, of which some are taken already; and the next best if that is close."""

    def points(pair: tuple[str, str]) -> float:
        merits = (side[name].points for side, name in zip((types, keys), pair, strict=True) if name in side)
        return sum(merits) + WEIGHT * found[pair].strength + LINKING * found[pair].several

    if found:
        ranked = sorted(found, key=points, reverse=True)
        return [Pair(*pair) for pair in ranked[:2] if points(ranked[0]) - points(pair) < SURE]
    type_ = taken.type or next(iter(types), None)
    return [Pair(type_, taken.key or next((name for name in keys if name != type_), None))]


def _ranked(merits: Merits, role: str, best: Pair) -> tuple[Candidate, ...]:
    """The columns that fit a role, the best first, without the best for the other role."""
    first, other = (best.type, best.key) if role == "type" else (best.key, best.type)
    ranked = sorted(merits, key=lambda name: (name != first, -merits[name].points - merits[name].together))
    found = [name for name in ranked if name != other]
    found = [name for name in found if name == first or merits[name].points > 0] or found[:1]
    return tuple(Candidate(name, merits[name].why, f"{option_of(role)} {quoted(name)}") for name in found[:OTHERS])


def _codes(column: pa.ChunkedArray) -> Ints:
    plain = plain_values(pa.chunked_array([decoded(chunk) for chunk in column.chunks]).combine_chunks())
    if not can_be_told_apart(plain.type):
        return np.full(len(plain), -1)
    codes = pc.fill_null(plain.dictionary_encode().indices, -1)
    return to_numpy(codes).astype(np.int64)


def _as_type(column: ColumnScan, rows: int) -> Merit | None:
    """How well a column would do as the type, and why; None: not at all."""
    type_, count = plain_type(column.type), column.values.count
    is_label = pa.types.is_string(type_) or pa.types.is_integer(type_) or pa.types.is_boolean(type_)
    most = 2 * rows // 3 if rows <= SMALL else rows // 2
    if not (column.is_counted and is_label and 2 <= count <= min(MOST_TYPES, most)) or 2 * column.missing > rows:
        return None
    points = 3.0 * bool(TYPE_LIKE.search(column.name)) - 2.0 * bool(KEY_LIKE.search(column.name))
    points += 2.0 * pa.types.is_string(type_) - 1.0 * pa.types.is_boolean(type_) - count / 50
    return Merit(points, f"{count} different values")


def _as_key(column: ColumnScan, rows: int) -> Merit | None:
    type_, count = plain_type(column.type), column.values.count
    present = rows - column.missing
    fits = column.is_counted and can_be_key(type_) and not (pa.types.is_floating(type_) or pa.types.is_temporal(type_))
    if not fits or pa.types.is_boolean(type_) or count < 2 or present < 2 * count:
        return None
    per_key = present / count
    points = 4.0 * bool(KEY_LIKE.search(column.name)) - 3.0 * bool(TYPE_LIKE.search(column.name))
    points += 1.0 if pa.types.is_string(type_) else -2.0
    points += min(np.log10(count), 3.0) - 2.0 * (count < 4)
    about = "" if column.values.is_exact else "about "
    each = f"{per_key:,.0f}" if per_key >= 10 else f"{per_key:.1f}"
    return Merit(float(points), f"{about}{count:,} different values, {about}{each} rows for each")
