"""Random traces, and what a history must have counted of them, by dicts and loops. Shares nothing with ``history``
but its scheme."""

from __future__ import annotations

from collections import Counter

import numpy as np

from history.trace import Trace
from history.vectors import Feature, Place, Scheme

WINDOW = 40
SLOTS = ("ibm", "", "sun")
TEXTS = ("red", "green", "blue", "grey")
SCHEME = Scheme(
    (
        Place("a", 0, (Feature("x", "float", edges=(0.0, 2.0)), Feature("key", "text", groups={"red": 0, "blue": 1}))),
        Place("a b", 0),
        Place("a b", 1, (Feature("colour", "text", groups={"green": 0, "grey": 0, "red": 1}),)),
    ),
    WINDOW,
)


def random_trace(seed: int, births: int = 30, points: int = 12, row: int = 0) -> Trace:
    """A trace whose lineages and masks make no sense, but are of the right form. Its points begin at a row."""
    rng = np.random.default_rng(seed)
    visits = births * 3
    tick = rng.integers(0, 200, births)
    birth = np.concatenate([np.arange(births), rng.integers(0, births, visits - births)])
    parent = np.array([rng.integers(-1, visit) if visit else -1 for visit in range(visits)])
    first_point = rng.integers(0, points + 1, visits)
    mask = [
        int(rng.integers(0, 2**64, dtype=np.uint64)) & ((1 << min(points - int(first), 64)) - 1)
        for first in first_point
    ]
    x = np.where(rng.random(births) < 0.1, np.nan, rng.normal(1, 2, births))
    return Trace(
        place=rng.integers(0, 3, births),
        tick=tick,
        start=tick - rng.integers(0, WINDOW, births),
        slot=rng.integers(0, 3, births),
        columns=("x", "colour"),
        kinds=("float", "text"),
        values=(x, rng.integers(-1, 4, births).astype(np.float64)),
        key=rng.integers(-1, 4, births),
        texts=TEXTS,
        birth=birth,
        remaining=rng.integers(0, WINDOW + 1, visits),
        since=rng.choice([0, 1, 2, 3, 9, 10, 11, 40], visits),
        parent=parent,
        first_point=first_point,
        mask=np.where(rng.random(visits) < 0.5, np.array(mask, np.uint64), np.uint64(0)),
        cost=rng.integers(0, 50, visits).astype(np.float64),
        point_row=row + np.sort(rng.choice(10 * points, points, replace=False)),
        point_tick=np.sort(rng.integers(0, 200, points)),
        point_slot=rng.integers(0, 3, points),
        end_visit=rng.integers(0, visits, births),
        end_point=rng.integers(0, points, births),
        slots=SLOTS,
    )


def naive_group(place: Place, trace: Trace, birth: int) -> int:
    """The group of a birth, feature by feature."""
    group = 0
    for feature in place.features:
        if feature.name == "x":
            x = trace.values[0][birth]
            bucket = 3 if np.isnan(x) else sum(edge <= x for edge in feature.edges)
        else:
            code = int((trace.key if feature.name == "key" else trace.values[1])[birth])
            others = max(feature.groups.values()) + 1
            bucket = others if code < 0 else feature.groups.get(TEXTS[code], others)
        group = group * feature.buckets + bucket
    return group


def naive_vertex(trace: Trace, visit: int) -> int:
    """The vertex of a visit, counted up from 0."""
    birth = int(trace.birth[visit])
    place = int(trace.place[birth])
    ahead = sum(np.prod([f.buckets for f in other.features], dtype=int) for other in SCHEME.places[:place])
    part = int(trace.remaining[visit]) * 8 // (WINDOW + 1)
    since = int(trace.since[visit])
    late = 0 if since == 0 else 1 if since <= WINDOW / 16 else 2 if since <= WINDOW / 4 else 3
    return int(((ahead + naive_group(SCHEME.places[place], trace, birth)) * 8 + part) * 4 + late)


def naive_bundles(traces: list[Trace], gap: int, most: int) -> dict[tuple[int, int], int]:
    """Position in the ring of the bundle of each match point (trace, number), where it is still there."""
    points = sorted(
        (SLOTS[trace.point_slot[n]], int(trace.point_tick[n]), int(trace.point_row[n]), t, n)
        for t, trace in enumerate(traces)
        for n in range(len(trace.point_row))
    )
    chains: list[list[tuple[str, int, int, int, int]]] = []
    for point in points:
        before = chains[-1][-1] if chains else None
        if before and before[0] == point[0] and point[1] - before[1] <= gap:
            chains[-1].append(point)
        else:
            chains.append([point])
    chains.sort(key=lambda chain: (chain[0][1], chain[0][0], chain[0][2]))
    kept = chains[max(0, len(chains) - most) :]
    return {(t, n): place for place, chain in enumerate(kept) for _, _, _, t, n in chain}


def naive_counts(traces: list[Trace], gap: int, most: int) -> dict[str, object]:
    """All that a history counts, as counters and sets."""
    found: dict[str, Counter] = {
        name: Counter()
        for name in ("visits", "reached", "led", "cost", "started", "completed", "moves", "passed", "ends")
    }
    maps: dict[int, set[int]] = {}
    ring = naive_bundles(traces, gap, most)
    for t, trace in enumerate(traces):
        vertex = [naive_vertex(trace, visit) for visit in range(len(trace.birth))]
        for visit, at in enumerate(vertex):
            mask, first = int(trace.mask[visit]), int(trace.first_point[visit])
            reached = [first + bit for bit in range(64) if mask >> bit & 1]
            found["visits"][at] += 1
            found["reached"][at] += len(reached)
            found["led"][at] += bool(reached)
            found["cost"][at] += int(trace.cost[visit])
            if trace.parent[visit] >= 0:
                found["moves"][vertex[trace.parent[visit]], at] += 1
            maps.setdefault(at, set()).update(ring[t, point] for point in reached if (t, point) in ring)
        for visit, point in zip(trace.end_visit.tolist(), trace.end_point.tolist(), strict=True):
            found["completed"][vertex[visit]] += 1
            if (t, point) in ring:
                found["ends"][vertex[visit], ring[t, point]] += 1
            while trace.parent[visit] >= 0:
                found["passed"][vertex[trace.parent[visit]], vertex[visit]] += 1
                visit = int(trace.parent[visit])
            found["started"][vertex[visit]] += 1
    plain: dict[str, object] = {name: {k: v for k, v in counter.items() if v} for name, counter in found.items()}
    return {**plain, "maps": {at: bundles for at, bundles in maps.items() if bundles}}
