"""What came of a run inside a budget: match points, pieces of the stream, what was audited, and runs that were shed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Floats, Ints
from acep_approx.automaton.words import register_text, state_names
from acep_approx.budget.audit import AuditCells, AuditSample, mixed
from acep_approx.budget.ledger import Piece, Shed, place_words
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.runs.event_columns import CODED
from acep_approx.engines.runs.lineage import Hits
from acep_approx.engines.runs.programs import register_kind
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.tables import RunTables
from acep_approx.engines.runs.worth import REASONS, Worth
from acep_approx.events.time import shown_type, tick_unit
from acep_approx.kernels.runs import scores as kernel
from acep_approx.kernels.runs.pools import seed_word
from acep_approx.kernels.runs.vm import NULL
from acep_approx.matching.pipeline import Pipeline
from acep_approx.query.parameters import MARK
from acep_approx.ranges import TICK, finite, number_in
from history.arrays import Columns


@dataclass(frozen=True)
class MatchPoints(Columns):
    """Match points found: parallel columns, one row each."""

    row: Ints
    tick: Ints
    slot: Ints
    errors: Ints
    is_kept: Bools

    @classmethod
    def none(cls) -> Self:
        """None yet."""
        none = np.zeros(0, np.int64)
        return cls(none, none, none, none, np.zeros(0, np.bool_))

    def audited(self, cells: AuditCells) -> AuditSample:
        """What the audit saw of them."""
        of = cells.cells(self.slot, self.tick)
        is_audited = of >= 0
        return AuditSample.of(of[is_audited], self.is_kept[is_audited], int((~is_audited).sum()))


MOST_POINTS, MOST_PIECES = 1 << 16, 1 << 12
"""Match points, and pieces of the stream, that are remembered where a run has no end."""


@dataclass
class Metrics:
    """What came of a run.

    Attributes
    ----------
    found : int
        Match points found since the stream began.
    pieces : list of Piece
        Where the run stood after each piece of the stream.
    begin : int or None
        Tick of the first event.
    before : AuditSample
        What the audit saw of match points that are forgotten, or were found before this was made.
    """

    found: int = 0
    pieces: list[Piece] = field(default_factory=list)
    begin: int | None = None
    before: AuditSample = field(default_factory=AuditSample.none)
    _parts: list[MatchPoints] = field(default_factory=lambda: [MatchPoints.none()])

    @property
    def points(self) -> MatchPoints:
        """Match points found since this was made, but for those that were forgotten."""
        if len(self._parts) > 1:
            self._parts = [MatchPoints.joined(self._parts)]
        return self._parts[0]

    def add_points(self, events: RunEvents, hits: Hits) -> Ints:
        """Add the match points of a piece, and whether the policy alone would have found them; gives their rows."""
        event, place = np.unique(hits.event, return_inverse=True)
        least = np.full(len(event), np.iinfo(np.int64).max)
        np.minimum.at(least, place, hits.errors)
        is_kept = np.zeros(len(event), np.bool_)
        np.logical_or.at(is_kept, place, hits.mark < 2)
        self._parts.append(MatchPoints(events.id[event], events.tick[event], events.slot[event], least, is_kept))
        self.found += len(event)
        return events.row[event]

    def add_piece(self, ticks: Ints, piece: Piece) -> None:
        """A piece of the stream is done; ``ticks`` are those of its events."""
        if self.begin is None:
            self.begin = int(ticks[0])
        self.pieces.append(piece)

    def add_work(self, steps: int) -> None:
        """Work that was done behind the last piece."""
        if steps:
            self.pieces[-1] = replace(self.pieces[-1], work=self.pieces[-1].work + steps)

    def audited(self, cells: AuditCells) -> AuditSample:
        """What the audit saw of the match points found since this was made, and of those before that it was told of.

        Samples are added by ``AuditSample.combine``: those of later batches, and of parts of a stream that run with
        another seed each. Parts of one seed have the same cells, for keys are known by their slots.
        """
        return self.before.combine(self.points.audited(cells))

    def forget(self, cells: AuditCells | None) -> None:
        """Of many match points and pieces remember the latest points, with what the audit saw, and every other piece.

        Complexity: O(points), once for as many more.
        """
        if sum(map(len, self._parts)) > 2 * MOST_POINTS:
            if cells is not None:
                self.before = self.before.combine(self.points[:-MOST_POINTS].audited(cells))
            self._parts = [self.points[-MOST_POINTS:]]
        if len(self.pieces) > 2 * MOST_PIECES:
            self.pieces = [*self.pieces[1:-1:2], self.pieces[-1]]

    def snapshot(self, cells: AuditCells | None) -> dict[str, Any]:
        """What goes on elsewhere, as JSON: what the audit saw, when the stream began and where the run stands.

        The match points themselves stay here.
        """
        sample = self.audited(cells) if cells is not None else self.before
        columns = (sample.cells, sample.found, sample.points)
        return {
            "begin": self.begin,
            "last": [vars(piece) for piece in self.pieces[-1:]],
            "sample": [column.tolist() for column in columns],
            "outside": sample.outside,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave."""
        self.pieces = [Piece(**piece) for piece in saved["last"]]
        for piece in self.pieces:
            finite("last", *vars(piece).values())
        self.begin = None if saved["begin"] is None else number_in("begin", saved["begin"], -TICK, TICK)
        self.before = AuditSample.restored(saved["sample"], saved["outside"])


LEFT_OPEN = "no tests left"
"""The reason why an event was not searched that can end a match."""


# --- runs that were shed ------------------------------------------------------------------------------------


def shed_by_state(shedding: Shedding) -> list[Shed]:
    """How many were shed by state and reason, those of the first states first."""
    found, states = [], state_names(shedding.tables.automaton)
    for pool, row in zip(shedding.tables.pools, shedding.counts.tolist(), strict=True):
        name = place_words(states[pool.state], pool.errors)
        found += [Shed(name, reason, runs) for reason, runs in zip(REASONS, row, strict=True) if runs]
    return found


def shed_table(log: Ints, pipeline: Pipeline) -> pa.Table:
    """What was logged, in words.

    Parameters
    ----------
    log : int64 array, shape (runs, words)
        See ``kernels.runs.scores.LOG``.
    pipeline : Pipeline
        The one that logged it, with the same keys still.

    Returns
    -------
    pyarrow.Table
        ``key`` (where there are keys), ``state`` and ``errors``, ``start`` and ``last`` (times of its first and its
        last event; numbers within the partition in a count window), ``at`` and ``row``, the event before or at which it
        was shed; ``reason``; ``remembers``, its registers in words; the terms of its score: ``gain``, match points that
        it may still lead to; ``covered``, those of them that a run which is kept reaches as well; ``cost``, run-steps
        to come, to the power of 1, 1/2 or 0 that the history ranks by; ``coin``, 1 or a little less, which breaks ties;
        ``beside``, what is left of its score beside a run that can do all that it can, 1/256, or 1 where there is none;
        ``weight``, what a match point of its key counts for, 1 but for queries of a template; ``score``, (gain -
        covered) / cost * coin * beside * weight; ``price``; ``vertex``, its match vector in the history, or -1; and
        ``rescored``, how often runs had been scored anew by then. Where all runs of a state were gone through,
        scores are known to an eighth of an octave, and ``covered`` follows from them. Those shed for the bound by the
        dozen have no score, nor have those that the audit protects and the bound has no room for.
        Complexity: linear.
    """
    shedding = pipeline.engine.shedding
    assert shedding is not None, "it has shed"
    tables = shedding.tables
    states = state_names(tables.automaton)
    names = [states[pool.state] for pool in tables.pools]
    columns: dict[str, Any] = _keys(log[:, kernel.LOG_SLOT], pipeline)
    columns["state"] = pa.array(names).take(pa.array(log[:, kernel.LOG_POOL]))
    columns["errors"] = pa.array([pool.errors for pool in tables.pools]).take(pa.array(log[:, kernel.LOG_POOL]))
    for name, at in (("start", kernel.LOG_START), ("last", kernel.LOG_LAST), ("at", kernel.LOG_TICK)):
        columns[name] = _times(log[:, kernel.LOG_SLOT], log[:, at], pipeline)
    columns["row"] = log[:, kernel.LOG_ID]
    columns["reason"] = pa.array(REASONS).take(pa.array(log[:, kernel.LOG_REASON]))
    columns["remembers"] = _registers(log, tables)
    terms = _terms(log, shedding, windows_of_slots(pipeline, log[:, kernel.LOG_SLOT]))
    columns |= {name: terms[name] for name in ("gain", "covered", "cost", "coin", "beside", "weight")}
    is_scored = terms["score"] > 0
    columns |= {name: pa.array(terms[name], mask=~is_scored) for name in ("score", "price")}
    return pa.table(columns | {"vertex": terms["vertex"], "rescored": log[:, kernel.LOG_WORTH]})


def left_open_table(ends: Ints, pipeline: Pipeline) -> pa.Table:
    """Events that can end a match, for which a search had no tests left, as further rows of ``shed_table``.

    Parameters
    ----------
    ends : int64 array, shape (ends, 3)
        See ``Engine.left_open``.
    pipeline : Pipeline
        The one that left them open, with the same keys still.

    Returns
    -------
    pyarrow.Table
        Columns as in ``shed_table``: ``key``, ``at`` and ``row`` say which event it is, ``reason`` is ``LEFT_OPEN``; no
        run was shed, so the others are null.
    """
    shedding = pipeline.engine.shedding
    assert shedding is not None, "it has a budget"
    slots, ticks, ids = ends.T
    columns = {**_keys(slots, pipeline), "at": _times(slots, ticks, pipeline), "row": ids}
    none = shed_table(np.zeros((0, shedding.entry), np.int64), pipeline)
    return pa.concat_tables([none, pa.table(columns | {"reason": [LEFT_OPEN] * len(ends)})], promote_options="default")


def _keys(slots: Ints, pipeline: Pipeline) -> dict[str, pa.Array]:
    """The column of the keys; none where there are none."""
    key_columns, keys = pipeline.preparer.key_columns, pipeline.preparer.keys.texts()
    if key_columns and key_columns[0].startswith(MARK):  # the query of a template, which stands in a column of its own
        key_columns, keys = key_columns[1:], [text.partition(" | ")[2] for text in keys]
    texts = [keys[slot] if slot < len(keys) else "" for slot in slots.tolist()]
    return {"key": pa.array(texts, pa.string())} if key_columns else {}


def _times(slots: Ints, ticks: Ints, pipeline: Pipeline) -> pa.Array:
    """Times, as results show them; in a window of events numbers within the partition."""
    roles = pipeline.roles
    type_ = pipeline.schema.field(roles.time).type
    is_time = tick_unit(type_, roles.unit) is not None and not pipeline.preparer.is_count
    times = shown_type(type_, roles.time_format) if is_time else pa.int64()
    return pa.array(pipeline.preparer.positions(slots, ticks)).view(times)


def windows_of_slots(pipeline: Pipeline, slots: Ints) -> Ints:
    """The windows of the queries that are behind some key slots, in ticks: those of a template may have one each."""
    windows = pipeline.engine.windows
    return np.full(len(slots), pipeline.window) if windows is None else windows[slots]


def _terms(log: Ints, shedding: Shedding, windows: Ints) -> dict[str, Floats | Ints]:
    """The terms of each run's score as the kernel looked them up; without a worth 0, 0, 1, 1, 1, its weight and -1."""
    found: dict[str, Floats | Ints] = {
        "gain": np.zeros(len(log)),
        "covered": _as_floats(log[:, kernel.LOG_COVERED]),
        "cost": np.ones(len(log)),
        "coin": np.ones(len(log)),
        "beside": np.ones(len(log)),
        "weight": shedding.weights[np.minimum(log[:, kernel.LOG_SLOT], len(shedding.weights) - 1)],
        "vertex": np.full(len(log), -1, np.int64),
        "score": _as_floats(log[:, kernel.LOG_SCORE]),
        "price": _as_floats(log[:, kernel.LOG_PRICE]),
    }
    for number, worth in enumerate((*shedding.earlier, shedding.worth)):
        some = np.flatnonzero(log[:, kernel.LOG_WORTH] == number)
        if worth is not None:
            vertex = _vertices(log[some], worth, windows[some])
            found["vertex"][some] = -1 if worth.scheme is None else vertex
            found["gain"][some], found["cost"][some] = worth.gain[vertex], worth.cost[vertex]
            found["coin"][some] = _coins(log[some], worth, shedding.allowance.seed)
            found["beside"][some] = np.where(log[some, kernel.LOG_DOMINATED] > 0, worth.dominated, 1.0)
    by_bin = log[:, kernel.LOG_COVERED] == kernel.NOT_KNOWN
    is_protected = by_bin & (log[:, kernel.LOG_MARK] != kernel.NORMAL)  # the highest bin, whatever its score
    per_point = found["coin"] * found["beside"] * found["weight"] / found["cost"]
    most = found["gain"] * per_point  # the lowest bin begins at 0
    found["score"] = np.where(by_bin, np.minimum(found["score"], most), found["score"]) * ~is_protected
    left = np.maximum(found["gain"] - found["score"] / np.where(per_point > 0, per_point, 1.0), 0.0)
    found["covered"] = np.where(by_bin, left * ~is_protected, found["covered"])
    return found


def _as_floats(words: Ints) -> Floats:
    return np.ascontiguousarray(words).view(np.float64)


def _vertices(log: Ints, worth: Worth, windows: Ints) -> Ints:
    parts, times = worth.remaining, len(worth.since) + 1
    start, last, now = log[:, kernel.LOG_START], log[:, kernel.LOG_LAST], log[:, kernel.LOG_TICK]
    late = np.searchsorted(np.array(worth.since, np.int64), now - last, side="left")
    left = np.maximum(start + windows - now, 0) * parts // (windows + 1)
    found: Ints = (log[:, kernel.LOG_GROUP] * parts + left) * times + late
    return found


def _coins(log: Ints, worth: Worth, seed: int) -> Floats:
    """What the coin of each run leaves of its score."""
    hashed = mixed(mixed(np.int64(seed_word(seed) + 1), log[:, kernel.LOG_START]), log[:, kernel.LOG_SLOT])
    if worth.coin_per_run:
        hashed = mixed(hashed, log[:, kernel.LOG_LAST])
    return worth.spread / (worth.spread + (hashed & 0xFFFF) / 65536.0)


def _registers(log: Ints, tables: RunTables) -> list[str]:
    names: list[list[tuple[str, str]]] = []
    columns = tables.scalars.columns
    for pool in tables.pools:
        live = tables.automaton.live[pool.state]
        names.append([(register_text(register), register_kind(register, columns)) for register in live])
    texts = columns.texts.values
    words = []
    for row in log.tolist():
        some = []
        for number, (name, kind) in enumerate(names[row[kernel.LOG_POOL]]):
            some.append(f"{name} {_value(row[kernel.LOG + number], kind, texts)}")
        words.append(", ".join(some))
    return words


def _value(word: int, kind: str, texts: list[str]) -> str:
    if kind == "float":
        return f"{np.array([word]).view(np.float64)[0]:.6g}"
    if word == NULL:
        return "NULL"
    return texts[word] if kind in CODED and 0 <= word < len(texts) else str(word)
