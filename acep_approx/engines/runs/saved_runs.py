"""Saved runs of an engine: whether they are as it can have written them, and how those of the current key are taken up.

Nothing of them is an index before it was checked.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from acep_approx.arrays import Ints
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import Register
from acep_approx.engines.runs.event_columns import CODED, EventColumns
from acep_approx.engines.runs.hidden import DOMINATED, GONE, GROUP, MARK
from acep_approx.engines.runs.key_store import saved_pools
from acep_approx.engines.runs.pool_arena import PoolArena
from acep_approx.engines.runs.programs import register_kind
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.tables import RunTables
from acep_approx.kernels.runs import layout, saved
from acep_approx.kernels.runs import pools as kp
from acep_approx.kernels.runs.saved import ANY, GROUPS, fit
from acep_approx.ranges import COUNT, Range, check, check_arrays, check_range

STAMPS = 1 << 44
"""Events that a run can have seen; children of an event are told apart by this number times that of the pools."""
CONTROL = {
    layout.DONE_STEPS: COUNT,
    layout.MADE: COUNT,
    layout.MERGED: COUNT,
    layout.LIVE: COUNT,
    layout.PEAK: COUNT,
    layout.SHED: COUNT,
    layout.STAMP: STAMPS,
}
"""What words of the header must be below; they count from 0."""
AT_REST = (layout.EVENT, layout.PHASE, layout.SOURCE, layout.OFFSET, layout.HITS, layout.CALLED, layout.LOGGED)
"""Words of the header that are 0 between two batches."""
COUNTED = (kp.TRIED, kp.JOINED, kp.REST, kp.TESTED, kp.AGE, kp.COUNTED)
"""Words of a pool that count from 0."""
SMALL = {MARK: 4, DOMINATED: 2, GONE: 2}
"""What hidden columns are below, where that is known."""


class Checked(Protocol):
    """The parts of an engine of runs that say what its saved arrays can be."""

    automaton: RegisterAutomaton
    tables: RunTables
    arena: PoolArena
    is_count: bool
    sheds: bool
    columns: EventColumns
    shedding: Shedding | None


def check_saved(engine: Checked, arrays: dict[str, Ints]) -> None:
    """Refuse arrays that this engine cannot have written.

    Raises
    ------
    DamagedError

    Complexity: O(words).
    """
    slots = arrays["spans"].size // saved.SPAN
    pools, links = len(engine.tables.pools), arrays["links"].size // layout.LINK
    guards = layout.GUARD * len(engine.tables.guard_letters)
    ranges = {
        "control": Range(layout.HEADER),
        "pools": Range(pools * kp.POOL),
        "links": Range(links * layout.LINK),
        "owner": Range(links * engine.is_count, 0, slots),
        "stored": Range(),
        "spans": Range(slots * saved.SPAN),
        "guards": Range(slots * guards),
        "pace": Range(2 * slots * engine.sheds),
    }
    check_arrays(arrays, ranges)
    _check_control(arrays["control"], slots, links, arrays["stored"].size)
    _check_links(engine, arrays["links"].reshape(-1, layout.LINK))
    check("pace", good=np.isfinite(arrays["pace"].view(np.float64)).all())
    _check_spans(arrays["spans"].reshape(-1, saved.SPAN), arrays["stored"].size)
    fields, limits = engine.arena.fields.copy(), _limits(engine).ravel()
    stamp = 0 if engine.shedding is None else engine.shedding.stamp
    check("stored", good=fit(arrays["spans"], arrays["stored"], fields, limits, links, stamp))
    _check_current(engine, arrays)


def _check_control(control: Ints, slots: int, links: int, stored: int) -> None:
    for word, end in CONTROL.items():
        check_range("control", control[word : word + 1], 0, end)
    check("control", good=not control[list(AT_REST)].any())
    check("control", good=-1 <= control[layout.SLOT] < slots)
    check("control", good=(control[layout.LINKS], control[layout.STORED]) == (links, stored))


def _check_links(engine: Checked, links: Ints) -> None:
    """Links lead to lower numbers: who follows them comes to an end."""
    here, before, other, *_ = links.T
    number = np.arange(len(links))
    check("links", good=((before >= -2) & (before < number) & (other >= -1) & (other < number)).all())
    arcs = max(len(engine.automaton.automaton.arcs), 1)
    check("links", good=((here == -1) | ((here >= 0) & ((here & layout.ARC_MASK) < arcs))).all())


def _check_spans(spans: Ints, stored: int) -> None:
    """What is stored is that of one key after the other, whatever their order."""
    begin, length, _ = spans.T
    check("spans", good=((begin >= 0) & (length >= 0) & (begin <= stored) & (length <= stored)).all())
    held = np.flatnonzero(length)
    held = held[np.argsort(begin[held], kind="stable")]
    ends = begin[held] + length[held]
    check("spans", good=np.array_equal(np.append(begin[held], stored), np.append(0, ends)))


def _limits(engine: Checked) -> Ints:
    """Per pool and column behind start and link what its words are below, or ``ANY``."""
    pools, hidden, texts = engine.tables.pools, engine.tables.hidden, len(engine.columns.texts)
    limits = np.full((len(pools), max(1, *(pool.fields for pool in pools))), ANY)
    groups = [] if engine.shedding is None else engine.shedding.groups
    for number, pool in enumerate(pools):
        live: list[Register] = list(engine.automaton.live[pool.state])
        for column, register in enumerate(live):
            if register_kind(register, engine.columns) in CODED:
                limits[number, column] = texts
        for column, one in enumerate(hidden, len(live)):
            limits[number, column] = GROUPS - groups[number] if one is GROUP else SMALL.get(one, ANY)
    return limits


def _check_current(engine: Checked, arrays: dict[str, Ints]) -> None:
    """The words of the pools, and of the key that is current: its runs are among those saved."""
    rows, slot = arrays["pools"].reshape(-1, kp.POOL), int(arrays["control"][layout.SLOT])
    check_range("pools", rows[:, COUNTED], 0, COUNT)
    if slot < 0:
        return
    begin, length, _ = arrays["spans"].reshape(-1, saved.SPAN)[slot].tolist()
    runs = np.zeros(len(rows), np.int64)
    for each in saved_pools(arrays["stored"], begin, begin + length, engine.arena.fields):
        runs[each.pool] = each.runs
    check("pools", good=np.array_equal(rows[1:, kp.RUNS], runs[1:]))
    check_range("pools", rows[1:, WITHIN_RUNS], 0, COUNT)


OF_ALL_KEYS = (kp.TRIED, kp.JOINED, kp.REST, kp.TESTED)
OF_KEY = (kp.RUNS, kp.CHILDREN, kp.FRESH, kp.KEPT, kp.HEAD, kp.LAST_PLACE, kp.OLDEST, kp.AGE, kp.COUNTED)
"""Words of a pool that say how it stands, whichever key is current, and with this key."""
WITHIN_RUNS = (kp.CHILDREN, kp.FRESH, kp.KEPT, kp.HEAD)
"""Those that say which runs: they may be of runs that have left, for which there is no room any more."""


def take_up(before: Ints, span: Ints, stored: Ints, pools: Ints, words: Ints) -> None:
    """Bring the saved runs of the current key back into pools that have room for them.

    Parameters
    ----------
    before : int64 array, shape (pools * POOL,)
        The words of the pools when the runs were saved.
    span : int64 array, shape (SPAN,)
        Where the runs of the key are in ``stored``; of length 0 where no key is current.
    stored, pools, words : int64 arrays
        Of the engine. Indexes must be made anew.

    Complexity: O(runs of the key).
    """
    table, old = pools.reshape(-1, kp.POOL), before.reshape(-1, kp.POOL)
    table[:, OF_ALL_KEYS] = old[:, OF_ALL_KEYS]
    if not len(span):
        return
    table[1:, OF_KEY] = old[1:, OF_KEY]
    table[1:, WITHIN_RUNS] = np.minimum(old[1:, WITHIN_RUNS], old[1:, [kp.RUNS]])
    at, end = int(span[0]), int(span[0] + span[1])
    while at < end:
        pool, runs = int(stored[at]) & saved.POOL_MASK, int(stored[at + 1])
        base, room = int(table[pool, kp.BASE]), int(table[pool, kp.ROOM])
        columns = kp.COLUMNS + int(table[pool, kp.FIELDS])
        at += saved.SAVED
        block = stored[at : at + columns * runs].reshape(columns, runs)
        words[base : base + columns * room].reshape(columns, room)[:, :runs] = block
        at += columns * runs
