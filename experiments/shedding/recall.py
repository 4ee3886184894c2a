"""How much of the exact answer each policy finds inside a load budget: the learned history against all others.

    python -m experiments.shedding.recall [--light] [--published] [--quick] [--seeds N] [--only NAME,...]
        [--policies NAME,...] [--out FILE]

Twelve workloads with 30 to 4,500 run-steps per event (``shedding.heavy``); ``--light``: nine with fewer
(``shedding.workloads``). Each policy learns from the part of a stream before its middle and is measured on the part
behind it, by the match points that it finds. Its scores come from the first six tenths of the past, its price from the
rest; the history then learns the rest too. A budget is a share of the run-steps that listing all matches takes after
lossless merging, the same for all; work on shedding passes is inside it. Ours run as users run them, by
``Query.match_within``; the others are given to the same engine, with its dominance (or, with ``--published``,
without). The clairvoyant knows all matches to come, and is asked on light workloads only.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from acep_approx import HistoryGraph, Matcher, Query, compile_query
from acep_approx.engines.runs.load_shedder import FixedLoad
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.worth import DOMINATED, Allowance, Worth
from acep_approx.planning.planner import MERGING
from acep_approx.shedding.load import RESERVE_EVENTS, RESERVE_SHARE
from acep_approx.training.past import Past
from acep_approx.training.policies import LEARNED, worth_of
from acep_approx.training.pricing import Prices, learn_prices
from acep_approx.training.trace import Tracer
from experiments.shedding import clairvoyant as shed_clairvoyant
from experiments.shedding import comparators as shed_comparators
from experiments.shedding import future as shed_future
from experiments.shedding import metrics as shed_metrics
from experiments.shedding.heavy import HEAVY, HEAVY_GENERATED, heavy_workloads
from experiments.shedding.workloads import GENERATED, QUERIES, Workload, workloads
from history import fit_scheme

BUDGETS = (0.02, 0.05, 0.10, 0.20)
SEEDS = 5
CLAIRVOYANT = "clairvoyant"
OURS = tuple(sorted(LEARNED))
LISTING = "equal,chain"
"""Merging that loses no match of a listing: what its exact run takes is what a budget is a share of."""
BATCH = 1 << 16
BY_LOT = 1e-3
LEAST_GAIN = 1e-3
"""Of the best: what a policy holds for worthless is kept by lot while there is room."""
CLOSE, EASY = 0.02, 0.2
"""Recall by which a policy may be ahead; a workload where ``random`` finds more at 10% is left out of ratios."""
MEASURES = {"points": "match points", "bundles": "bundles"}


@dataclass(frozen=True)
class Result:
    """One run: what was found of the exact answer, and what it took."""

    workload: str
    policy: str
    budget: float
    seed: int
    points: float
    bundles: float
    work: float
    seconds: float
    exact_seconds: float


@dataclass(frozen=True)
class Found:
    """Match points of a run: rows of the stream; run-steps, and CPU seconds."""

    rows: shed_metrics.Ints
    steps: int
    seconds: float


class Measured:
    """A workload with its exact answer, and what the policies learn from the part that comes before.

    Parameters
    ----------
    workload : Workload
    published : bool, default False
        Whether the other policies are as they were published, without dominance.
    """

    def __init__(self, workload: Workload, *, published: bool = False) -> None:
        self.workload = workload
        self.published = published
        self.query: Query = compile_query(workload.query, engine="runs")
        self.unit = {"unit": workload.unit} if workload.unit else {}
        matcher = Matcher(self.query.plan, output="points", merge=LISTING, **self.unit)
        begun = time.process_time()
        tables = [matcher.push(events) for events in self._batches()]
        self.points = pa.concat_tables([*tables, matcher.finish()])
        seconds = time.process_time() - begun
        progress = matcher.progress
        self.relevant, self.events = progress.relevant, progress.events
        self.exact = Found(self.points["row"].to_numpy(), progress.steps, seconds)
        assert matcher.pipeline is not None, "it has been pushed"
        self.window = matcher.pipeline.window

    def _batches(self) -> Iterator[pa.Table]:
        events = self.workload.test
        return (events.slice(first, BATCH) for first in range(0, max(len(events), 1), BATCH))

    # --- ours -----------------------------------------------------------------------------------------------

    @cached_property
    def history(self) -> HistoryGraph:
        """What our policies have learned."""
        return HistoryGraph(self.query).fit(self.workload.train, **self.unit)

    def ours(self, policy: str, budget: float, seed: int) -> Found:
        """As a user runs it."""
        known = self.history
        begun = time.process_time()
        some = self.query.match_within(
            self.workload.test,
            f"{100 * budget:g}%",
            history=known,
            policy=policy,
            audit=0,
            seed=seed,
            full_work=self.exact.steps / self.events,
            **self.unit,
        )
        rows = some.points()["row"].to_numpy()
        return Found(rows, some.record().work, time.process_time() - begun)

    # --- others ---------------------------------------------------------------------------------------------

    @cached_property
    def _past(self) -> Past:
        return Past(self.query.plan, self.workload.train, dict(self.unit))

    @cached_property
    def _tracer(self) -> Tracer:
        return Tracer(self.query.plan, self._past.schema, self._past.roles)

    @cached_property
    def _trace(self) -> shed_comparators.Trace:
        """What the others learn from: the longest trace of the first six tenths."""
        tracer, (_, cut) = self._tracer, self._past.cut()
        traces = [trace for batch in self._past.batches(0, cut) for trace in tracer.push(batch)]
        return max([*traces, *tracer.finish()], key=lambda trace: len(trace.place))

    def worth(self, policy: str) -> Worth:
        """What runs are worth by another policy."""
        scheme = fit_scheme(self._tracer.remembered.places, self._past.window, self._trace)
        gain, cost = shed_comparators.POLICIES[policy](self._trace, scheme)
        gain = np.maximum(gain, LEAST_GAIN * gain.max(initial=0.0) + 1e-9)
        automaton = self.query.plan.registers
        assert automaton is not None
        found = replace(worth_of(automaton, scheme, gain, cost), dominated=1.0 if self.published else DOMINATED)
        return replace(found, spread=BY_LOT, coin_per_run=True) if policy == "random" else found

    def prices(self, worth: Worth) -> Prices:
        """What budgets cost with it."""
        _, cut = self._past.cut()
        return learn_prices(self.query.plan, worth, list(self._past.batches(cut)), self._past.bind)

    def others(self, worth: Worth, prices: Prices, budget: float, seed: int) -> Found:
        """The same engine with what runs are worth by another policy."""
        rate = budget * self.exact.steps / self.relevant
        allowance = Allowance(
            rate=rate,
            price=prices.price(budget),
            elasticity=prices.elasticity(budget),
            reserve=RESERVE_EVENTS * rate,
            reserve_share=RESERVE_SHARE,
            seed=seed,
        )
        shedding = Shedding(worth, allowance)
        begun = time.process_time()
        merge = LISTING if self.published else ",".join(MERGING)
        matcher = Matcher(self.query.plan, output="points", merge=merge, shedding=FixedLoad(shedding), **self.unit)
        tables = [matcher.push(events) for events in self._batches()]
        rows = pa.concat_tables([*tables, matcher.finish()])["row"].to_numpy()
        steps = matcher.progress.steps + int(shedding.on_passes)
        return Found(rows, steps, time.process_time() - begun)

    # --- what came of it ------------------------------------------------------------------------------------

    def judged(self, policy: str, budget: float, seed: int, found: Found) -> Result:
        """Recall and cost of a run; that no match point is wrong, and the bound was kept, is checked."""
        work = found.steps / self.exact.steps
        assert work <= budget + 1e-9, "the bound was passed"
        assert np.isin(found.rows, self.exact.rows).all(), "a match point that is none"
        recall = shed_metrics.recalls_of_points(self.points, found.rows, self.window)
        seconds, exact_seconds = found.seconds, self.exact.seconds
        return Result(self.workload.name, policy, budget, seed, *recall, work, seconds, exact_seconds)


def measure(
    workload: Workload, policies: Sequence[str], seeds: Sequence[int], *, published: bool = False
) -> Iterator[Result]:
    """Run all policies on the second part of a stream at all budgets."""
    measured = Measured(workload, published=published)
    for policy in policies:
        if policy == CLAIRVOYANT:
            yield from _knowing(measured)
            continue
        worth = measured.worth(policy) if policy not in OURS else None
        prices = measured.prices(worth) if worth is not None else Prices()
        for budget in BUDGETS:
            for seed in seeds:
                if worth is None:
                    found = measured.ours(policy, budget, seed)
                else:
                    found = measured.others(worth, prices, budget, seed)
                yield measured.judged(policy, budget, seed, found)


def _knowing(measured: Measured) -> Iterator[Result]:
    """What one finds who knows all matches to come: the engine is not asked, it could not know."""
    workload, plan = measured.workload, measured.query.plan
    assert plan.registers is not None
    exact = shed_metrics.exact(Matcher(plan, unit=workload.unit), workload.test)
    trie = shed_clairvoyant.prefixes(exact.answer)
    pipeline = Matcher(plan, unit=workload.unit).bind(workload.test.schema)
    meets = shed_future.meets(pipeline, plan.registers, workload.test, trie)
    for budget in BUDGETS:
        begun = time.process_time()
        kept = shed_clairvoyant.clairvoyant(exact.answer, trie, meets, budget * exact.steps)
        rows = shed_metrics.points(exact.answer.take(kept.matches))[0]
        yield measured.judged(CLAIRVOYANT, budget, 0, Found(rows, kept.steps, time.process_time() - begun))


def main() -> None:
    """Measure, print the tables, and keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--light", action="store_true", help="the workloads with little load, and the clairvoyant")
    parser.add_argument("--published", action="store_true", help="the others as published, without dominance")
    parser.add_argument("--quick", action="store_true", help="generated streams only, few policies, one seed")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--only", default="", help="names of workloads, with commas")
    parser.add_argument("--policies", default="", help="names of policies, with commas")
    parser.add_argument("--out", type=Path, help="write all numbers here, as JSON lines, as they come")
    asked = parser.parse_args()
    generated = GENERATED if asked.light else HEAVY_GENERATED
    names = asked.only.split(",") if asked.only else list(QUERIES if asked.light else HEAVY)
    policies = (*OURS, *shed_comparators.POLICIES, *((CLAIRVOYANT,) if asked.light else ()))
    policies = tuple(asked.policies.split(",")) if asked.policies else policies
    if asked.quick:
        names, asked.seeds = [name for name in names if name in generated], 1
    console = Console()
    results: list[Result] = []
    for make in workloads(names) if asked.light else heavy_workloads(names):
        first = make(1)
        mine: list[Result] = []
        if first.name in generated:  # another stream for each seed
            for seed in range(asked.seeds):
                mine += measure(make(seed + 1), policies, [seed], published=asked.published)
        else:
            mine += measure(first, policies, range(asked.seeds), published=asked.published)
        for quality in MEASURES:
            console.print(_table(first.name, quality, mine))
        if asked.out:
            with asked.out.open("a", encoding="utf-8") as lines:
                lines.writelines(json.dumps(asdict(result)) + "\n" for result in mine)
        results += mine
    _judge(results, console)


def _table(workload: str, quality: str, results: list[Result]) -> Table:
    """Mean recall with least and most over seeds, by policy and budget."""
    table = Table(title=f"{workload}: recall of {MEASURES[quality]}")
    table.add_column("policy")
    for budget in BUDGETS:
        table.add_column(f"{budget:.0%}", justify="right")
    table.add_column("work", justify="right")
    table.add_column("CPU time at 10%", justify="right")
    for policy in dict.fromkeys(r.policy for r in results):
        cells = []
        for budget in BUDGETS:
            some = [getattr(r, quality) for r in results if (r.policy, r.budget) == (policy, budget)]
            cells.append(f"{np.mean(some):.2f} [{min(some):.2f}-{max(some):.2f}]")
        mine = [r for r in results if r.policy == policy]
        used = np.mean([r.work / r.budget for r in mine])
        share = np.median([r.seconds / r.exact_seconds for r in mine if r.budget == 0.10])
        table.add_row(policy, *cells, f"{used:.0%}", f"{share:.0%}")
    return table


def mean_points(results: list[Result]) -> dict[tuple[str, str, float], float]:
    """Mean recall of match points by workload, policy and budget."""
    keys = dict.fromkeys((r.workload, r.policy, r.budget) for r in results)
    return {key: float(np.mean([r.points for r in results if (r.workload, r.policy, r.budget) == key])) for key in keys}


def _judge(results: list[Result], console: Console) -> None:
    """The numbers that the history is judged by."""
    known = mean_points(results)
    names = list(dict.fromkeys(r.workload for r in results))
    policies = list(dict.fromkeys(r.policy for r in results))
    for policy in policies:
        mean = {budget: np.mean([known[n, policy, budget] for n in names]) for budget in BUDGETS}
        means = ", ".join(f"{budget:.0%} {recall:.2f}" for budget, recall in mean.items())
        console.print(f"{policy}, mean recall of match points: {means}")
    others = [policy for policy in policies if policy not in (*OURS, CLAIRVOYANT)]
    if "history" not in policies:
        return
    for other in others:
        behind = [(known[n, other, b] - known[n, "history", b], n, b) for n in names for b in BUDGETS]
        worst = max(behind)
        wins = sum(lead > CLOSE for lead, _, _ in behind)
        console.print(
            f"{other}: ahead of history by more than {CLOSE} in {wins} of {len(behind)}; "
            f"worst {worst[0]:+.2f} ({worst[1]}, {worst[2]:.0%})"
        )
    hard = [n for n in names if known.get((n, "random", 0.10), 1.0) <= EASY]
    for other in ("markov", "random"):
        if other in policies and hard:
            ratios = [(known[n, "history", 0.10] + 0.01) / (known[n, other, 0.10] + 0.01) for n in hard]
            mean = np.exp(np.mean(np.log(ratios)))
            console.print(f"history / {other} at 10%, geometric mean over {len(hard)} workloads: {mean:.2f}")


if __name__ == "__main__":
    main()
