"""Choosing by coverage: how much each rule covers, what sketches lose, how long a union takes, what proxies save.

``python -m experiments.shedding.coverage`` prints one table per claim of docs/how-it-works/coverage.md, over several
seeds (mean and, where it matters, the range), on match maps that are made up: bundles come in clusters, clusters have
very different sizes (Zipf), and an item leads to a share of one or two clusters. Large clusters have many items, as
busy parts of a stream have many runs, so maps overlap. Times are CPU time of this process.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from statistics import mean

import numpy as np
from bitarray import bitarray
from rich.console import Console

from experiments.report import of_texts
from history.coverage import CountedMap, FoldedMap, HashedMap, Swap, coverage, lazy_greedy, missed, own_count, proxies
from history.coverage.selection import Choice
from history.coverage.sketch import Sketch, bitmap

SIZES = ((500, 1_000, 20), (500, 1_000, 50), (2_000, 10_000, 50), (2_000, 10_000, 200))
"""Items, bundles, budget: those of the first trials that made us choose coverage."""
SKETCHED = ((500, 1_000, 20), (2_000, 10_000, 50), (2_000, 10_000, 200), (500, 100_000, 20), (500, 100_000, 50))
console = Console(width=140)


def made_up_maps(items: int, bundles: int, seed: int) -> list[bitarray]:
    """Match maps of ``items`` items over ``bundles`` bundles in about ``sqrt(bundles)`` clusters."""
    dice = np.random.default_rng(seed)
    clusters = int(bundles**0.5)
    popular = 1 / np.arange(1, clusters + 1)
    popular /= popular.sum()
    cluster_of = dice.choice(clusters, bundles, p=popular)
    members = [np.flatnonzero(cluster_of == cluster) for cluster in range(clusters)]
    maps = []
    for _ in range(items):
        ids = [
            members[cluster][dice.random(len(members[cluster])) < dice.uniform(0.1, 0.7)]
            for cluster in dice.choice(clusters, dice.integers(1, 3), p=popular)
        ]
        maps.append(bitmap(np.concatenate(ids), bundles))
    return maps


def swapped(maps: Sequence[bitarray], budget: int) -> Swap:
    """Items one by one in the order of their numbers."""
    swap = Swap(budget)
    for item, bundles in enumerate(maps):
        swap.offer(item, bundles)
    return swap


def timed(work: Callable[[], object]) -> tuple[object, float]:
    """What a call returns, and its CPU seconds."""
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def spread(values: Sequence[float]) -> str:
    """Mean and range."""
    return f"{mean(values):.3f} ({min(values):.3f}-{max(values):.3f})"


def rules(seeds: int, largest: int) -> None:
    """Coverage of each rule as a share of what lazy greedy covers."""
    table = of_texts(
        "covered, as a share of what lazy greedy covers",
        ("items, bundles, budget", "lazy greedy ms", "own count", "swap", "swap ms", "random"),
    )
    for items, bundles, budget in (size for size in SIZES if size[1] <= largest):
        shares: dict[str, list[float]] = {"own count": [], "swap": [], "random": [], "ms": [], "swap ms": []}
        for seed in range(seeds):
            maps = made_up_maps(items, bundles, seed)
            best, spent = timed(lambda maps=maps, budget=budget: lazy_greedy(maps, budget=budget))
            online, online_spent = timed(lambda maps=maps, budget=budget: swapped(maps, budget))
            assert isinstance(best, Choice)
            assert isinstance(online, Swap)
            some = np.random.default_rng(seed).choice(items, budget, replace=False).tolist()
            shares["own count"].append(own_count(maps, budget=budget).covered / best.covered)
            shares["swap"].append(online.covered / best.covered)
            shares["random"].append(coverage(maps, some) / best.covered)
            shares["ms"].append(spent * 1e3)
            shares["swap ms"].append(online_spent * 1e3)
        table.add_row(
            f"{items:,}, {bundles:,}, {budget}",
            f"{mean(shares['ms']):.1f}",
            spread(shares["own count"]),
            spread(shares["swap"]),
            f"{mean(shares['swap ms']):.1f}",
            spread(shares["random"]),
        )
    console.print(table)


def kinds(bundles: int) -> dict[str, Callable[[bitarray, int], bitarray | Sketch]]:
    """Sketches of about a tenth of ``bundles`` bits; folded ones as their bits, which choose the same."""
    tenth = bundles // 10
    precision = max(int(np.log2(tenth / 8)), 4)
    return {
        "folded, all": lambda m, seed: FoldedMap.of(m, bits=tenth, seed=seed).bits,
        "folded, a tenth": lambda m, seed: FoldedMap.of(m, bits=tenth, share=0.1, seed=seed).bits,
        "HyperLogLog": lambda m, seed: CountedMap.of(m, precision=precision, seed=seed),
        "MinHash": lambda m, seed: HashedMap.of(m, permutations=tenth // 32, seed=seed + 1),
    }


def sketched(seeds: int, largest: int) -> None:
    """What greedy covers when it only sees sketches of a tenth of the memory, against greedy over exact maps."""
    columns = ("folded, a tenth, no refill", *kinds(1000), "random")
    table = of_texts(
        "lost by greedy over sketches of a tenth of the memory (share of what exact greedy covers)",
        ("items, bundles, budget", *columns),
    )
    for items, bundles, budget in (size for size in SKETCHED if size[1] <= largest):
        lost: dict[str, list[float]] = {name: [] for name in columns}
        for seed in range(seeds):
            maps = made_up_maps(items, bundles, seed)
            best = lazy_greedy(maps, budget=budget).covered
            for name, make in kinds(bundles).items():
                seen = [make(bundles_of, seed) for bundles_of in maps]
                chosen = lazy_greedy(seen, budget=budget, refill=True).items
                lost[name].append(1 - coverage(maps, chosen) / best)
                if name == "folded, a tenth":
                    chosen = lazy_greedy(seen, budget=budget).items
                    lost[columns[0]].append(1 - coverage(maps, chosen) / best)
            some = np.random.default_rng(seed).choice(items, budget, replace=False).tolist()
            lost["random"].append(1 - coverage(maps, some) / best)
        table.add_row(f"{items:,}, {bundles:,}, {budget}", *map(spread, lost.values()))
    console.print(table)


def unions(seeds: int) -> None:
    """Error of the count of a union and time of a union with its count, by number of bundles in it."""
    table = of_texts(
        "union of two maps and its count: relative error (root mean square, stated), microseconds",
        ("bundles", "exact", "FoldedMap 8,192 bits", "HashedMap 128", "CountedMap 2^10"),
    )
    for bundles in (1_000, 10_000, 100_000):
        left, right = np.arange(bundles * 2 // 3), np.arange(bundles // 3, bundles)
        share = min(1.0, 12_000 / bundles)
        pairs: dict[str, Callable[[int], tuple[Sketch, Sketch]]] = {
            "folded": lambda seed, ids=(left, right), share=share: tuple(
                FoldedMap.of(part, bits=8192, share=share, seed=seed) for part in ids
            ),
            "hashed": lambda seed, ids=(left, right): tuple(HashedMap.of(part, seed=seed + 1) for part in ids),
            "counted": lambda seed, ids=(left, right): tuple(CountedMap.of(part, seed=seed) for part in ids),
        }
        cells = [f"0, {per_call(bitmap(left, bundles), bitmap(right, bundles), exact_union):.2f}"]
        for make in pairs.values():
            made = [make(seed) for seed in range(seeds * 4)]
            errors = [one.union(other).count() / bundles - 1 for one, other in made]
            spent = per_call(*made[0], lambda one, other: one.union(other).count())
            found = float(np.sqrt(np.mean(np.square(errors))))
            cells.append(f"{found:.1%} ({made[0][0].error(bundles):.1%}), {spent:.1f}")
        table.add_row(f"{bundles:,}", *cells)
    console.print(table)


def exact_union(one: bitarray, other: bitarray) -> float:
    """Number of bundles in a union of exact maps."""
    return (one | other).count()


def per_call(one: object, other: object, work: Callable[..., object], calls: int = 2000) -> float:
    """CPU microseconds of a call."""

    def repeat() -> None:
        for _ in range(calls):
            work(one, other)

    return timed(repeat)[1] / calls * 1e6


def represented(seeds: int) -> None:
    """How many items proxies make superfluous, and what that loses."""
    table = of_texts(
        "proxies, larger maps first (500 items, 1,000 bundles)",
        ("measure", "theta", "stand for themselves", "missed by a represented item, mean", "worst", "lost"),
    )
    for measure in ("containment", "jaccard"):
        for theta in (0.5, 0.6, 0.7, 0.8, 0.9):
            own, average, worst, lost = [], [], [], []
            for seed in range(seeds):
                maps = made_up_maps(500, 1000, seed)
                order = sorted(range(500), key=lambda item, maps=maps: (-maps[item].count(), item))
                proxy = proxies(maps, theta, order, measure)
                shares = missed(maps, proxy)
                other = proxy != np.arange(500)
                own.append(1 - other.mean())
                average.append(float(shares[other].mean()) if other.any() else 0.0)
                worst.append(float(shares.max()))
                lost.append(1 - coverage(maps, np.unique(proxy).tolist()) / coverage(maps, range(500)))
            columns = [f"{mean(values):.3f}" for values in (own, average, worst, lost)]
            table.add_row(measure, f"{theta}", *columns)
    console.print(table)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, few bundles: that it runs, not how well")
    seeds, largest = (1, 1_000) if parser.parse_args().quick else (5, 100_000)
    rules(seeds, largest)
    sketched(min(seeds, 3), largest)
    unions(seeds)
    represented(seeds)


if __name__ == "__main__":
    main()
