"""What a stream means that is late, revised and taken back: obvious code over lists and dicts. Tests only.

A schedule says what is pushed, when time is known to have passed, and when the matcher is saved and restored. The model
says which events are live then, which rows are left out and why, where the watermark stands, and which events are
matched. It shares nothing with the package; what comes of the events is left to ``query.match``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from tests.rich_worlds import COLUMNS, Row

MEANS = {
    **dict.fromkeys(("+I", "INSERT", "insert", "c", "r", "+1", "1"), "insert"),
    **dict.fromkeys(("-D", "DELETE", "delete", "d", "-1"), "delete"),
    **dict.fromkeys(("-U", "UPDATE_BEFORE", "update_preimage"), "before"),
    **dict.fromkeys(("+U", "UPDATE_AFTER", "update_postimage"), "after"),
    "u": "replace",
    "watermark": "watermark",
}
"""What the codes of changes mean."""


@dataclass(frozen=True)
class Held:
    """A live event: the number of its row, its place among ties, its values."""

    number: int
    place: int
    row: Row


@dataclass
class Model:
    """What has come of the rows so far.

    Parameters
    ----------
    delay : int or None
        How much later than the newest event an event may come.
    emit : str or int
        "final", "early", or how far beyond the watermark is speculated.
    id, op : str or None
        Columns.

    Attributes
    ----------
    live : list of Held
        Inserted and not taken back, in the order of their coming.
    left_out : list
        (number of the row, reasons that may be given); where a retraction names an event before the watermark, that may
        be forgotten already, so there are two.
    changes : list
        (+1 or -1, event): what was done to ``live``, in this order.
    """

    delay: int | None = None
    emit: str | int = "early"
    id: str | None = None
    op: str | None = None
    has_begun: bool = False
    rows: int = 0
    newest: int | None = None
    punctuated: int | None = None
    live: list[Held] = field(default_factory=list)
    left_out: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    changes: list[tuple[int, Held]] = field(default_factory=list)
    vacated: Held | None = None

    def push(self, rows: Sequence[Row]) -> None:
        """Take in rows; each sees the watermark that those before it made."""
        self.has_begun = True
        for row in rows:
            kind = MEANS[str(row[self.op])] if self.op else "insert"
            reasons = self.take(kind, row)
            if reasons:
                self.left_out.append((self.rows, reasons))
            if kind != "watermark":
                self.newest = row["ts"] if self.newest is None else max(self.newest, row["ts"])
            self.rows += 1

    def punctuate(self, tick: int) -> bool:
        """Time has passed; False where it runs backwards, or no columns are known yet, and nothing is done."""
        if self.is_late(tick) or not self.has_begun:
            return False
        self.punctuated = tick
        return True

    def take(self, kind: str, row: Row) -> tuple[str, ...]:
        """Do what one row says; returns why it is left out."""
        vacated, self.vacated = self.vacated, None
        if kind == "watermark":
            return () if self.punctuate(row["ts"]) else ("backwards",)
        if self.is_late(row["ts"]):
            return ("late",)
        if kind in ("insert", "after"):
            if self.op and self.id and any(held.row[self.id] == row[self.id] for held in self.changeable()):
                return ("duplicate",)
            takes_place = kind == "after" and vacated is not None and vacated.row["ts"] == row["ts"]
            self.insert(row, vacated.place if takes_place and vacated else self.rows)
            return ()
        found = [held for held in self.changeable() if self.is_named(held, row)]
        if not found and kind == "replace":  # nothing to replace: it just comes
            self.insert(row, self.rows)
            return ()
        if not found:
            is_settled = any(self.is_named(held, row) for held in self.live)
            return ("late", "unknown") if is_settled else ("unknown",)
        self.live.remove(found[0])
        self.changes.append((-1, found[0]))
        if kind == "before":
            self.vacated = found[0]
        if kind == "replace":
            self.insert(row, found[0].place if found[0].row["ts"] == row["ts"] else self.rows)
        return ()

    def insert(self, row: Row, place: int) -> None:
        """One more live event."""
        self.live.append(Held(self.rows, place, row))
        self.changes.append((+1, self.live[-1]))

    def changeable(self) -> list[Held]:
        """The live events that are not settled: a change of them is not late."""
        return [held for held in self.live if not self.is_late(held.row["ts"])]

    def is_named(self, held: Held, row: Row) -> bool:
        """Whether a retraction means this event."""
        if self.id:
            return bool(held.row[self.id] == row[self.id])
        return all(frozen(value) == frozen(row[name]) for name, value in held.row.items() if name != self.op)

    def is_late(self, tick: int) -> bool:
        """Whether a time is before the watermark."""
        return self.watermark is not None and tick < self.watermark

    @property
    def watermark(self) -> int | None:
        """No event before it is let in any more."""
        known = [] if self.punctuated is None else [self.punctuated]
        if self.delay is not None and self.newest is not None:
            known.append(self.newest - self.delay)
        return max(known, default=None)

    @property
    def horizon(self) -> float:
        """Events before it are matched."""
        if self.emit == "early":
            return math.inf
        if self.watermark is None:
            return -math.inf
        return self.watermark + (self.emit if isinstance(self.emit, int) else 0)

    def ordered(self, before: float = math.inf) -> list[Held]:
        """The live events before a time, in the order of the stream."""
        return sorted((held for held in self.live if held.row["ts"] < before), key=self.order)

    def order(self, held: Held) -> tuple[Any, ...]:
        """What the stream is sorted by: nulls come last."""
        if not self.id:
            return held.row["ts"], held.place
        name = held.row[self.id]
        return held.row["ts"], name is None, 0 if name is None else name, held.place

    def label(self, held: Held) -> Any:
        """What stands for an event in the output."""
        return held.row[self.id] if self.id else held.number


def frozen(value: Any) -> Any:
    """A value that can be counted: lists as tuples, and what is not a number is equal to itself."""
    if isinstance(value, list | tuple):
        return tuple(map(frozen, value))
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


# --- what was put out -------------------------------------------------------------------------------------------------


class Ledger:
    """The sum of all that was put out so far.

    Parameters
    ----------
    has_ids : bool
        Whether ``match_id`` tells matches apart: not where events are bound that have no id.
    is_telling : bool
        Whether a row tells which match it is: not what RETURN shows of it, nor points, of which two may look the same.

    Attributes
    ----------
    net : Counter of tuple
        How often each row is there.
    columns : list of str
        Of the tables, but for ``op`` and ``match_id``; empty before there were any.
    """

    def __init__(self, *, has_ids: bool = True, is_telling: bool = True) -> None:
        self.net: Counter[tuple[Any, ...]] = Counter()
        self.columns: list[str] = []
        self.has_ids, self.is_telling = has_ids, is_telling
        self._named: Counter[tuple[str, tuple[Any, ...]]] = Counter()
        self._id_of: dict[tuple[Any, ...], str] = {}

    def take(self, table: pa.Table) -> None:
        """Add up one table; asserts that it takes back first, only what is there, and nothing that it puts out."""
        if not table.num_columns:
            return
        self.columns = [name for name in table.column_names if name not in ("op", "match_id")]
        rows = [(tuple(frozen(row[name]) for name in self.columns), row) for row in table.to_pylist()]
        if "op" not in table.column_names:
            self.net.update(shown for shown, _ in rows)
            return
        ops = [row["op"] for _, row in rows]
        assert set(ops) <= {"+I", "-D"}, ops
        assert ops == sorted(ops, key="-D+I".index), "something is taken back after something was put out"
        taken, put = (
            Counter((row["match_id"], shown) for shown, row in rows if row["op"] == op) for op in ("-D", "+I")
        )
        back = taken.keys() & put.keys()
        if self.is_telling:
            back |= {shown for _, shown in taken} & {shown for _, shown in put}
        assert not back, f"taken back and put out at once: {back}"
        assert taken <= self._named, f"taken back, and was not there: {taken - self._named}"
        self._named = self._named - taken + put
        self.net = Counter()
        for (_, shown), times in self._named.items():
            self.net[shown] += times
        self._check_ids(put)

    def _check_ids(self, put: Counter[tuple[str, tuple[Any, ...]]]) -> None:
        assert all(re.fullmatch("[0-9a-f]{32}", name) for name, _ in put), put
        if not self.has_ids:
            return
        names = Counter(name for name, _ in self._named)
        assert max(names.values(), default=1) == 1, f"an id of several rows: {self._named}"
        for name, shown in put if self.is_telling else ():
            assert self._id_of.setdefault(shown, name) == name, f"{shown} had another id before"


# --- schedules --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A push of some rows, ``punctuate(tick)``, or a restart (neither rows nor tick)."""

    rows: tuple[Row, ...] | None = None
    tick: int | None = None


@dataclass(frozen=True)
class Schedule:
    """A query, how a matcher is made for it, and what befalls it; then the stream ends.

    ``asks_op`` is the argument ``op=`` of the matcher; the column has the name ``op``.
    """

    seed: int
    text: str
    steps: tuple[Step, ...]
    engine: str = "auto"
    output: str = "matches"
    delay: int | None = None
    emit: str | int = "early"
    id: str | None = None
    op: str | None = None
    asks_op: str | None = None
    merge: str | None = None
    is_id_text: bool = False
    is_op_number: bool = False

    def options(self) -> dict[str, Any]:
        """The arguments of ``query.matcher``."""
        given = {"watermark": self.delay, "id": self.id, "op": self.asks_op, "merge": self.merge}
        return {"output": self.output, "emit": self.emit} | {n: v for n, v in given.items() if v is not None}

    def model(self) -> Model:
        """The model of it, of which nothing has been pushed."""
        return Model(self.delay, self.emit, self.id, self.op)

    def table(self, rows: Sequence[Row], *, has_op: bool = True) -> pa.Table:
        """Rows as columns."""
        kinds = COLUMNS | {"id": pa.string() if self.is_id_text else pa.int64()}
        if self.op and has_op:
            kinds |= {self.op: pa.int64() if self.is_op_number else pa.string()}
        return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()})

    def __str__(self) -> str:
        lines = [self.text, f"engine={self.engine!r} {self.options()}"]
        for step in self.steps:
            lines += [f"punctuate({step.tick})"] if step.tick is not None else []
            lines += ["push", *(f"  {row}" for row in step.rows)] if step.rows is not None else []
            lines += ["restart"] if step == Step() else []
        return "\n".join(lines)


def smallest(schedule: Schedule, fails: Callable[[Schedule], bool]) -> Schedule:
    """A schedule that fails like this one, of which no step and no row can be left out."""
    for smaller in smaller_schedules(schedule):
        if fails(smaller):
            return smallest(smaller, fails)
    return schedule


def smaller_schedules(schedule: Schedule) -> Iterator[Schedule]:
    """Schedules with less: half of the steps, one step, or one row."""
    steps = schedule.steps
    for size in (len(steps) // 2, 1):
        for at in range(0, len(steps), size) if size else ():
            yield replace(schedule, steps=(*steps[:at], *steps[at + size :]))
    for at, step in enumerate(steps):
        for i in range(len(step.rows or ())):
            less = Step((*step.rows[:i], *step.rows[i + 1 :])) if step.rows else step
            yield replace(schedule, steps=(*steps[:at], less, *steps[at + 1 :]))
