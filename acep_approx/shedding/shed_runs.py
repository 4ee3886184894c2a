"""The runs that were shed: how many of each state; and one by one what they were, and the terms of their score."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Floats, Ints
from acep_approx.automaton.words import register_text, state_names
from acep_approx.budget.audit import mixed
from acep_approx.budget.learning_ledger import place_words
from acep_approx.budget.ledger import Shed
from acep_approx.engines.runs.programs import register_kind
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.worth import REASONS
from acep_approx.events.time import tick_unit, to_datetime
from acep_approx.kernels.runs import scores as kernel
from acep_approx.kernels.runs.pools import seed_word
from acep_approx.kernels.runs.vm import NULL
from acep_approx.matching.pipeline import Pipeline

REASON, POOL, ID, TICK, SLOT = kernel.LOG_REASON, kernel.LOG_POOL, kernel.LOG_ID, kernel.LOG_TICK, kernel.LOG_SLOT
START, LAST, SCORE, PRICE = kernel.LOG_START, kernel.LOG_LAST, kernel.LOG_SCORE, kernel.LOG_PRICE
COVERED, GROUP = kernel.LOG_COVERED, kernel.LOG_GROUP


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
        to come; ``coin``, 1 or a little less, which breaks ties; ``score``, (gain - covered) / cost * coin; ``price``;
        and ``vertex``, its match vector in the history. Those shed for the bound by the dozen have no score.
        Complexity: linear.
    """
    engine = pipeline.engine
    assert isinstance(engine, Runs)
    shedding, tables = engine.shedding, engine.tables
    gain, covered, cost, vertex = terms(log, shedding, engine)
    score, price = (np.ascontiguousarray(log[:, column]).view(np.float64) for column in (SCORE, PRICE))
    is_weighed = score > 0
    states = state_names(tables.automaton)
    names = [states[pool.state] for pool in tables.pools]
    keys = pipeline.preparer.keys.texts()
    columns: dict[str, Any] = {}
    if pipeline.preparer.key_columns:
        columns["key"] = [keys[slot] if slot < len(keys) else "" for slot in log[:, SLOT].tolist()]
    columns["state"] = pa.array(names).take(pa.array(log[:, POOL]))
    columns["errors"] = pa.array([pool.errors for pool in tables.pools]).take(pa.array(log[:, POOL]))
    columns |= {name: _times(log[:, at], pipeline) for name, at in (("start", START), ("last", LAST), ("at", TICK))}
    columns["row"] = log[:, ID]
    columns["reason"] = pa.array(REASONS).take(pa.array(log[:, REASON]))
    columns["remembers"] = _registers(log, engine)
    columns |= {"gain": gain, "covered": covered, "cost": cost, "coin": coins(log, shedding)}
    columns |= {"score": pa.array(score, mask=~is_weighed), "price": pa.array(price, mask=~is_weighed)}
    columns["vertex"] = vertex
    return pa.table(columns)


def terms(log: Ints, shedding: Shedding, engine: Runs) -> tuple[Floats, Floats, Floats, Ints]:
    """Gain, covered gain, cost and vertex of each run as the kernel looked them up; without a worth 0, 0, 1 and -1."""
    gain, cost = np.zeros(len(log)), np.ones(len(log))
    covered = np.ascontiguousarray(log[:, COVERED]).view(np.float64)
    vertex = np.full(len(log), -1, np.int64)
    worth = shedding.worth
    if worth is None:
        return gain, covered, cost, vertex
    parts, times, window = worth.remaining, len(worth.since) + 1, engine.window
    late = np.searchsorted(np.array(worth.since, np.int64), log[:, TICK] - log[:, LAST], side="left")
    left = np.maximum(log[:, START] + window - log[:, TICK], 0) * parts // (window + 1)
    vertex = (log[:, GROUP] * parts + left) * times + late
    vertex = np.where(vertex < len(worth.gain), vertex, -1)  # features may have changed since it was shed
    gain, cost = np.where(vertex >= 0, worth.gain[vertex], 0.0), np.where(vertex >= 0, worth.cost[vertex], 1.0)
    return gain, covered, cost, vertex


def coins(log: Ints, shedding: Shedding) -> Floats:
    """What the coin of each run leaves of its score; without a worth, 1."""
    worth = shedding.worth
    if worth is None:
        return np.ones(len(log))
    hashed = mixed(mixed(np.int64(seed_word(shedding.allowance.seed) + 1), log[:, START]), log[:, SLOT])
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
    return texts[word] if kind == "text" and 0 <= word < len(texts) else str(word)
