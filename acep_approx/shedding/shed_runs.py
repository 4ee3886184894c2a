"""The runs that were shed: how many of each state; and one by one what they were, and the terms of their score."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Floats, Ints
from acep_approx.automaton.words import register_text, state_names
from acep_approx.budget.audit import mixed
from acep_approx.budget.ledger import Shed, place_words
from acep_approx.engines.runs.event_columns import CODED
from acep_approx.engines.runs.programs import register_kind
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.worth import REASONS, Worth
from acep_approx.events.time import tick_unit, to_datetime
from acep_approx.kernels.runs import scores as kernel
from acep_approx.kernels.runs.pools import seed_word
from acep_approx.kernels.runs.vm import NULL
from acep_approx.matching.pipeline import Pipeline

REASON, POOL, ID, TICK, SLOT = kernel.LOG_REASON, kernel.LOG_POOL, kernel.LOG_ID, kernel.LOG_TICK, kernel.LOG_SLOT
BY_PASS = (kernel.TOO_OLD_PRICE, kernel.BOUND)
START, LAST, SCORE, PRICE = kernel.LOG_START, kernel.LOG_LAST, kernel.LOG_SCORE, kernel.LOG_PRICE
COVERED, GROUP, WORTH = kernel.LOG_COVERED, kernel.LOG_GROUP, kernel.LOG_WORTH


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
        ``score``, (gain - covered) / cost * coin; ``price``; ``vertex``, its match vector in the history, or -1; and
        ``rescored``, how often runs had been scored anew by then. Where all runs of a state were gone through, scores
        are known to an eighth of an octave, and ``covered`` follows from them. Those shed for the bound by the dozen
        have no score.
        Complexity: linear.
    """
    engine = pipeline.engine
    assert isinstance(engine, Runs)
    shedding, tables = engine.shedding, engine.tables
    states = state_names(tables.automaton)
    names = [states[pool.state] for pool in tables.pools]
    keys = pipeline.preparer.keys.texts()
    columns: dict[str, Any] = {}
    if pipeline.preparer.key_columns:
        columns["key"] = [keys[slot] if slot < len(keys) else "" for slot in log[:, SLOT].tolist()]
    columns["state"] = pa.array(names).take(pa.array(log[:, POOL]))
    columns["errors"] = pa.array([pool.errors for pool in tables.pools]).take(pa.array(log[:, POOL]))
    for name, at in (("start", START), ("last", LAST), ("at", TICK)):
        columns[name] = _times(pipeline.preparer.positions(log[:, SLOT], log[:, at]), pipeline)
    columns["row"] = log[:, ID]
    columns["reason"] = pa.array(REASONS).take(pa.array(log[:, REASON]))
    columns["remembers"] = _registers(log, engine)
    terms = _terms(log, shedding, engine.window)
    columns |= {name: terms[name] for name in ("gain", "covered", "cost", "coin")}
    is_scored = terms["score"] > 0
    columns |= {name: pa.array(terms[name], mask=~is_scored) for name in ("score", "price")}
    return pa.table(columns | {"vertex": terms["vertex"], "rescored": log[:, WORTH]})


def _terms(log: Ints, shedding: Shedding, window: int) -> dict[str, Floats | Ints]:
    """The terms of each run's score as the kernel looked them up; without a worth 0, 0, 1, 1 and -1."""
    found: dict[str, Floats | Ints] = {
        "gain": np.zeros(len(log)),
        "covered": _as_floats(log[:, COVERED]),
        "cost": np.ones(len(log)),
        "coin": np.ones(len(log)),
        "vertex": np.full(len(log), -1, np.int64),
        "score": _as_floats(log[:, SCORE]),
        "price": _as_floats(log[:, PRICE]),
    }
    for number, worth in enumerate((*shedding.earlier, shedding.worth)):
        some = np.flatnonzero(log[:, WORTH] == number)
        if worth is not None:
            vertex = _vertices(log[some], worth, window)
            found["vertex"][some] = -1 if worth.scheme is None else vertex
            found["gain"][some], found["cost"][some] = worth.gain[vertex], worth.cost[vertex]
            found["coin"][some] = _coins(log[some], worth, shedding.allowance.seed)
    score, by_pass = found["score"], np.isin(log[:, REASON], BY_PASS)
    left = found["gain"] - score * found["cost"] / found["coin"]
    found["covered"] = np.where(by_pass & (score > 0), np.maximum(left, 0.0), found["covered"])
    return found


def _as_floats(words: Ints) -> Floats:
    return np.ascontiguousarray(words).view(np.float64)


def _vertices(log: Ints, worth: Worth, window: int) -> Ints:
    parts, times = worth.remaining, len(worth.since) + 1
    late = np.searchsorted(np.array(worth.since, np.int64), log[:, TICK] - log[:, LAST], side="left")
    left = np.maximum(log[:, START] + window - log[:, TICK], 0) * parts // (window + 1)
    found: Ints = (log[:, GROUP] * parts + left) * times + late
    return found


def _coins(log: Ints, worth: Worth, seed: int) -> Floats:
    """What the coin of each run leaves of its score."""
    hashed = mixed(mixed(np.int64(seed_word(seed) + 1), log[:, START]), log[:, SLOT])
    if worth.coin_per_run:
        hashed = mixed(hashed, log[:, LAST])
    return worth.spread / (worth.spread + (hashed & 0xFFFF) / 65536.0)


def _times(ticks: Ints, pipeline: Pipeline) -> Any:
    unit = tick_unit(pipeline.schema.field(pipeline.roles.time).type, pipeline.roles.unit)
    if unit is None or pipeline.preparer.is_count:
        return pa.array(ticks)
    return to_datetime(ticks)


def _registers(log: Ints, engine: Runs) -> list[str]:
    """What each run remembers, in words."""
    names: list[list[tuple[str, str]]] = []
    for pool in engine.tables.pools:
        live = engine.automaton.live[pool.state]
        names.append([(register_text(register), register_kind(register, engine.columns)) for register in live])
    texts = engine.columns.texts.values
    words = []
    for row in log.tolist():
        some = []
        for number, (name, kind) in enumerate(names[row[POOL]]):
            some.append(f"{name} {_value(row[kernel.LOG + number], kind, texts)}")
        words.append(", ".join(some))
    return words


def _value(word: int, kind: str, texts: list[str]) -> str:
    if kind == "float":
        return f"{np.array([word]).view(np.float64)[0]:.6g}"
    if word == NULL:
        return "NULL"
    return texts[word] if kind in CODED and 0 <= word < len(texts) else str(word)
