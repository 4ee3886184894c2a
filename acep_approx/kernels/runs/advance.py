"""The kernel of the runs engine: events in, runs advanced, completed matches recorded.

Runs live in pools, one per state and number of errors, as columns: start, lineage, registers. For each event the pools
that can react are gone through in blocks; what a step makes of a block is put behind the runs of its target pool, and
becomes part of it when the event is done: so no event is used twice. It can stop before any block and go on there.

Source: Agrawal et al., SIGMOD 2008, section 5.2 (basic algorithm, merging of equivalent runs). Deviations: columns
instead of objects; the ignore edge is no work; a link keeps its own start, so no version numbers are needed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from acep_approx.kernels.jit import block_kernel, inline, ix
from acep_approx.kernels.runs.children import make_children, runs_in_place
from acep_approx.kernels.runs.ends import end_event_in, record_hits
from acep_approx.kernels.runs.layout import (
    ARC_BITS,
    ASK,
    CLASS_FIRST,
    COLUMNS_AT,
    CONTIGUOUS,
    DONE,
    DONE_STEPS,
    EVENT,
    EVENT_COLUMNS,
    EXPIRED,
    GROW_BUCKETS,
    GROW_HITS,
    GROW_LINKS,
    GROW_POOL,
    GROW_STORE,
    GUARD_LETTERS,
    GUARDS,
    GUARDS_FIRST,
    HASHED_NOW,
    HIT,
    HITS,
    HITS_BEFORE,
    KEEPS_LINEAGE,
    LIMIT,
    LINK,
    LINKS,
    LIVE,
    LOG_FULL,
    LOGGED,
    MADE,
    MERGED,
    MOVES,
    NEXT,
    NO_LINEAGE,
    NON_OVERLAP,
    NOW_AT,
    OFFSET,
    PEAK,
    PHASE,
    POOLS,
    PROBES,
    SAMPLE_FULL,
    SCRATCH,
    SHEDS,
    SLOT,
    SOURCE,
    SOURCE_WORDS,
    SOURCES,
    STAMP,
    STATE,
    STATES,
    STEP,
    STEPS,
    STOPPED,
    STORED,
    STRATEGY,
    TARGETS,
    TARGETS_FIRST,
    TEMPORARIES,
    TOO_LARGE,
    WINDOW,
)
from acep_approx.kernels.runs.passes import end_shedding, log_room, make_room
from acep_approx.kernels.runs.pools import (
    AGE,
    BASE,
    CHILDREN,
    COLUMNS,
    FIELDS,
    HEAD,
    IS_STALE,
    KEPT,
    OLDEST,
    POOL,
    RANK,
    REST,
    ROOM,
    RUNS,
    SMALL_POOL,
    SWEEP_EVERY,
    candidates,
    drop_expired,
    index_runs,
)
from acep_approx.kernels.runs.sample import (
    AT_ONCE,
    choose_event,
    is_sampled,
    lacks_sample_room,
    note_left_out,
    note_tests,
)
from acep_approx.kernels.runs.saved import load_runs, save_runs, save_words
from acep_approx.kernels.runs.scores import (
    ENTRY,
    LOGS,
    SAMPLE,
    SAMPLE_ENTRY,
    SAMPLE_NOW,
    UNTESTED,
    admit,
    charge,
    find_newest,
    left,
    mark_of_event,
    note_pace,
)
from acep_approx.kernels.runs.vm import BLOCK, run_program

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

@inline
def change_key(
    key: int, header: Ints, pools: Ints, words: Ints, stored: Ints, places: Ints, index: Ints, count: int,
) -> int:  # fmt: skip
    """Save the runs of the key at hand and bring in those of ``key``."""
    if header[SLOT] >= 0:
        for pool in range(1, count):
            if pools[ix(pool * POOL + RUNS)] > 0:
                header[LIVE] -= drop_expired(pool * POOL, pools, words, index, header[EXPIRED])
        needed = save_words(pools, count)
        if header[STORED] + needed > stored.size:
            header[ASK] = needed
            return GROW_STORE
        header[STORED] = save_runs(header[SLOT], header[STORED], pools, count, words, stored, places)
        header[SLOT] = -1
    lacking = load_runs(key, pools, count, words, stored, places, index)
    if lacking >= 0:
        header[ASK] = lacking
        return GROW_POOL
    header[SLOT] = key
    return DONE


@inline
def begin_event(
    header: Ints, tables: Ints, shape: Ints, pools: Ints, words: Ints, index: Ints, cls: int, rank: int, low: int,
) -> None:  # fmt: skip
    """Note where the runs of each pool in question end: what comes behind are children of this event."""
    strategy = shape[STRATEGY]
    at = shape[TARGETS_FIRST] + cls
    for i in range(tables[ix(at)], tables[ix(at + 1)]):
        p = tables[ix(shape[TARGETS] + i)] * POOL
        if strategy == CONTIGUOUS and pools[ix(p + RANK)] != rank - 1:
            pools[ix(p + RUNS)] = 0
            pools[ix(p + HEAD)] = 0
        runs = pools[ix(p + RUNS)]
        if pools[ix(p + OLDEST)] < low and runs > 0:
            head, base = pools[ix(p + HEAD)], pools[ix(p + BASE)]
            while head < runs and words[ix(base + head)] < low:
                head += 1
            pools[ix(p + HEAD)] = head
            pools[ix(p + AGE)] += 1
            if pools[ix(p + AGE)] >= SWEEP_EVERY or runs <= SMALL_POOL:
                header[LIVE] -= drop_expired(p, pools, words, index, low)
                runs = pools[ix(p + RUNS)]
        if pools[ix(p + IS_STALE)] and pools[ix(p + REST)] == 0:
            index_runs(p, pools, words, index)
        pools[ix(p + CHILDREN)] = runs
        pools[ix(p + KEPT)] = 0 if strategy == CONTIGUOUS else runs
    header[STAMP] += 1
    header[HASHED_NOW] = 0
    header[HITS_BEFORE] = header[HITS]
    header[PHASE] = 1
    header[SOURCE] = tables[ix(shape[CLASS_FIRST] + cls)]
    header[OFFSET] = 0


@inline
def lacks_room(
    header: Ints, tables: Ints, shape: Ints, pools: Ints, links: Ints, buckets: Ints, first: int, count: int, n: int,
) -> int:  # fmt: skip
    """What must grow before a block of ``n`` runs takes ``count`` steps: several may lead to one pool."""
    for s in range(first, first + count):
        t = tables[ix(shape[STEPS] + s * STEP)] * POOL
        if pools[ix(t + RUNS)] + n * count > pools[ix(t + ROOM)]:
            header[ASK] = t // POOL
            return GROW_POOL
    if shape[KEEPS_LINEAGE] != NO_LINEAGE and (header[LINKS] + n * count) * LINK > links.size:
        header[ASK] = n * count
        return GROW_LINKS
    if 2 * (header[HASHED_NOW] + n * count) > buckets.size // 2:
        header[ASK] = 4 * (header[HASHED_NOW] + n * count)
        return GROW_BUCKETS
    return DONE


@inline
def run_block(
    header: Ints, tables: Ints, shape: Ints, pools: Ints, words: Ints, floats: Floats, mask: Ints, stay: Ints,
    chosen: Ints, links: Ints, owner: Ints, buckets: Ints, ranks: Ints, shed: Ints, worth: Floats, sample: Ints,
    pool: int, first: int, count: int, base: int, room: int, offset: int, n: int, low: int, has_old: bool, removes: int,
    now: int, row: int, key: int,
) -> int:  # fmt: skip
    """Take the steps of a source with ``n`` of its runs; returns 1 where an integer passed 64 bits."""
    keeps, strategy, temporaries = shape[KEEPS_LINEAGE], shape[STRATEGY], shape[TEMPORARIES]
    starts, before, registers = base + offset, base + room + offset, base + COLUMNS * room + offset
    if removes:
        for j in range(n):
            stay[ix(j)] = strategy == NEXT
    for s in range(first, first + count):
        step = shape[STEPS] + s * STEP
        in_place = tables[ix(step + 11)]
        if has_old:  # they must have no children: where runs branch, those would be as many as the runs that are young
            for j in range(n):
                mask[ix(j)] = words[ix(starts + j)] >= low
        else:
            for j in range(n):
                mask[ix(j)] = 1
        m = 0
        for part in range(3):  # checks, guards, updates
            at = step + 2 + 2 * part
            if tables[ix(at + 1)] > 0 and run_program(
                tables, tables[ix(at)], tables[ix(at + 1)], words, floats, ranks, registers, room, temporaries, mask, n
            ):
                return 1
            if part == 0 and removes and strategy == NEXT and tables[ix(step + 10)]:
                for j in range(n):
                    stay[ix(j)] &= 1 - mask[ix(j)]
            elif part == 1:
                if in_place and keeps == NO_LINEAGE:
                    for j in range(n):
                        m += mask[ix(j)]
                else:
                    for j in range(n):
                        chosen[ix(m)] = j
                        m += mask[ix(j)]
                if m == 0:
                    break
        moves, fields = shape[MOVES] + 2 * tables[ix(step + 8)], tables[ix(step + 9)]
        if shape[SHEDS] and is_sampled(shed, pool, tables[ix(step)], m):
            note_tests(
                tables, shape, pools, words, mask, shed, worth, sample, pool, step, m, moves, fields, base, room,
                offset, n, low, now, row, key,
            )  # fmt: skip
        if m == 0:
            continue
        header[MADE] += m
        link, here = header[LINKS], (row << ARC_BITS) | tables[ix(step + 1)]
        target = tables[ix(step)]
        if in_place:
            runs_in_place(
                tables, words, links, owner, moves, fields, starts, before, registers, room, temporaries, chosen, mask,
                m, n, link, here, keeps, key,
            )  # fmt: skip
            if removes:
                for j in range(n):
                    stay[ix(j)] |= mask[ix(j)]
        else:
            merged = make_children(
                tables, words, pools, links, owner, buckets, header[STAMP] * shape[POOLS], target * POOL, moves, fields,
                starts, before, registers, room, temporaries, chosen, m, link, here, keeps, key, target,
            )  # fmt: skip
            header[MERGED] += merged
            header[HASHED_NOW] += m - merged
        if keeps != NO_LINEAGE:
            header[LINKS] = link + m
    return 0


@inline
def keep_staying(
    pools: Ints, words: Ints, p: int, stay: Ints, chosen: Ints, offset: int, n: int,
) -> None:  # fmt: skip
    """Close the gaps that runs of a block leave which have gone on."""
    base, room, kept = pools[ix(p + BASE)], pools[ix(p + ROOM)], pools[ix(p + KEPT)]
    m = 0
    for j in range(n):
        chosen[ix(m)] = j
        m += stay[ix(j)]
    if m < n or kept < offset:
        for f in range(COLUMNS + pools[ix(p + FIELDS)]):
            to, source = base + f * room + kept, base + f * room + offset
            for q in range(m):
                words[ix(to + q)] = words[ix(source + chosen[ix(q)])]
    pools[ix(p + KEPT)] = kept + m


@block_kernel
def advance(
    slot: Ints, tick: Ints, cls: Ints, row: Ints, rank: Ints, columns: Ints, header: Ints, tables: Ints, shape: Ints,
    pools: Ints, words: Ints, floats: Floats, mask: Ints, stay: Ints, chosen: Ints, links: Ints, owner: Ints,
    hits: Ints, guards: Ints, stored: Ints, places: Ints, buckets: Ints, index: Ints, ranks: Ints, shed: Ints,
    worth: Floats, lookup: Ints, log: Ints, sample: Ints, pace: Floats,
) -> int:  # fmt: skip
    """Run grouped events from where ``header`` says.

    Returns
    -------
    int
        DONE, STOPPED (the limit of run-steps), TOO_LARGE (an integer passed 64 bits), or which array must grow or be
        emptied (``header[ASK]`` says by how much, or which pool): then call again.
    """
    events, pool_count, letters = slot.size, shape[POOLS], shape[GUARD_LETTERS]
    while header[EVENT] < events:
        e = header[EVENT]
        now, key, kind = tick[ix(e)], slot[ix(e)], cls[ix(e)]
        low = now - shape[WINDOW]
        if header[PHASE] == 0:
            if header[SLOT] != key:
                status = change_key(key, header, pools, words, stored, places, index, pool_count)
                if status != DONE:
                    return status
                if shape[SHEDS]:
                    find_newest(shape, pools, words, shed)
            # the scalars of this event
            words[0] = row[ix(e)]
            for g in range(letters):
                words[ix(1 + g)] = guards[ix(key * letters + g)]
            for c in range(shape[EVENT_COLUMNS]):
                words[ix(shape[COLUMNS_AT] + c)] = columns[ix(c * events + e)]
            if shape[SHEDS]:
                if header[LOGGED] + log_room(pools, shape, shed) > log.size:
                    header[ASK] = log_room(pools, shape, shed)
                    return LOG_FULL
                note_pace(shape, worth, pace, now, key)
                make_room(
                    header, tables, shape, pools, words, floats, links, index, shed, worth, lookup, log, kind, now,
                    row[ix(e)], key,
                )  # fmt: skip
                words[ix(shape[NOW_AT])] = now
                words[ix(shape[NOW_AT] + 1)] = mark_of_event(shape, shed, now, key)
                choose_event(shed, row[ix(e)])
            words[ix(pools[ix(BASE)])] = now  # the pool of the start holds one run, which has bound nothing
            begin_event(header, tables, shape, pools, words, index, kind, rank[ix(e)], low)
        if header[PHASE] == 1:
            last = tables[ix(shape[CLASS_FIRST] + kind + 1)]
            while header[SOURCE] < last:
                at = shape[SOURCES] + SOURCE_WORDS * header[SOURCE]
                pool, first, count = tables[ix(at)], tables[ix(at + 1)], tables[ix(at + 2)]
                probe, removes = tables[ix(at + 3)], tables[ix(at + 4)]
                p, offset = pool * POOL, header[OFFSET]
                runs = pools[ix(p + CHILDREN)] if pool > 0 else 1
                if removes and offset == 0:
                    pools[ix(p + KEPT)] = 0
                has_old = pool > 0 and pools[ix(p + OLDEST)] < low
                if probe < 0:
                    offset = max(offset, pools[ix(p + HEAD)])
                while offset < runs:
                    n = min(BLOCK, runs - offset)
                    if pool > 0 and header[LIMIT] >= 0:
                        n = min(n, header[LIMIT] - header[DONE_STEPS])
                        if n <= 0:
                            header[OFFSET] = offset
                            return STOPPED
                    status = lacks_room(header, tables, shape, pools, links, buckets, first, count, n)
                    if status != DONE:
                        header[OFFSET] = offset
                        return status
                    if shape[SHEDS] and shed[SAMPLE] > 0:
                        if lacks_sample_room(shed, sample, n * count + 2 * AT_ONCE):
                            header[OFFSET] = offset
                            header[ASK] = (BLOCK * count + 2 * AT_ONCE) * shed[SAMPLE_ENTRY]
                            return SAMPLE_FULL
                        if probe >= 0 and offset == 0 and shed[SAMPLE_NOW]:
                            step = shape[STEPS] + first * STEP
                            note_left_out(
                                tables, pools, words, shed, worth, sample, pool, step, low, now, row[ix(e)], key
                            )  # fmt: skip
                    base, room, at = pools[ix(p + BASE)], pools[ix(p + ROOM)], offset
                    if probe >= 0:
                        base, room, at = shape[SCRATCH], BLOCK, 0
                        scalars = shape[PROBES] + probe
                        n = candidates(p, pools, words, index, tables, scalars, offset, n, low, base, chosen)
                        if shape[SHEDS] and n > left(worth):
                            shed[UNTESTED] += n - int(left(worth))
                            n = int(left(worth))
                        if n == 0:
                            break
                    if run_block(
                        header, tables, shape, pools, words, floats, mask, stay, chosen, links, owner, buckets, ranks,
                        shed, worth, sample, pool, first, count, base, room, at, n, low, has_old, removes, now,
                        row[ix(e)], key,
                    ):  # fmt: skip
                        header[OFFSET] = offset
                        return TOO_LARGE
                    if pool > 0:
                        header[DONE_STEPS] += n
                        if shape[SHEDS]:
                            charge(shed, worth, words, pools, p, base, room, at, n)
                        if removes:
                            keep_staying(pools, words, p, stay, chosen, offset, n)
                    offset += n
                header[SOURCE] += 1
                header[OFFSET] = 0
            header[PHASE] = 2
            header[SOURCE] = tables[ix(shape[TARGETS_FIRST] + kind)]
        # the event is done: children become runs
        last = tables[ix(shape[TARGETS_FIRST] + kind + 1)]
        while header[SOURCE] < last:
            pool = tables[ix(shape[TARGETS] + header[SOURCE])]
            children, runs = pools[ix(pool * POOL + CHILDREN)], pools[ix(pool * POOL + RUNS)]
            if runs > children:
                if shape[KEEPS_LINEAGE] != NO_LINEAGE and (header[LINKS] + runs - children) * LINK > links.size:
                    header[ASK] = runs - children
                    return GROW_LINKS
                if shape[SHEDS] and shed[LOGS]:
                    header[ASK] = 2 * (runs - children) * shed[ENTRY] + log_room(pools, shape, shed)
                    if header[LOGGED] + header[ASK] > log.size:
                        return LOG_FULL
                ends = tables[ix(shape[STATES] + pool * STATE + 2)]
                if (header[HITS] + (runs - children) * ends) * HIT > hits.size:
                    header[ASK] = (runs - children) * ends
                    return GROW_HITS
                if ends > 0 and record_hits(
                    header, tables, shape, pools, words, floats, ranks, mask, hits, pool, children, runs, e
                ):
                    return TOO_LARGE
                if shape[SHEDS] and tables[ix(shape[STATES] + pool * STATE)]:
                    runs = admit(
                        header, shape, pools, words, floats, links, shed, worth, lookup, log, pool, children, runs, now,
                        row[ix(e)], key,
                    )  # fmt: skip
                    pools[ix(pool * POOL + RUNS)] = runs
            end_event_in(
                header, tables, shape, pools, words, floats, links, owner, index, pool, children, runs, now,
                rank[ix(e)], key,
            )  # fmt: skip
            header[SOURCE] += 1
        header[PEAK] = max(header[PEAK], header[LIVE])
        if shape[NON_OVERLAP] and header[HITS] > header[HITS_BEFORE]:
            for pool in range(1, pool_count):
                if pools[ix(pool * POOL + RUNS)] > 0:
                    header[LIVE] -= drop_expired(pool * POOL, pools, words, index, now + 1)
        if shape[SHEDS]:
            end_shedding(
                header, tables, shape, pools, words, floats, links, index, shed, worth, lookup, log, kind, now,
                row[ix(e)], key,
            )  # fmt: skip
        header[EXPIRED] = low
        at = shape[GUARDS_FIRST] + kind
        for i in range(tables[ix(at)], tables[ix(at + 1)]):
            guards[ix(key * letters + tables[ix(shape[GUARDS] + i)])] = row[ix(e)]
        header[PHASE] = 0
        header[EVENT] += 1
    return DONE
