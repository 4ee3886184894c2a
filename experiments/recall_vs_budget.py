"""How much of the exact answer each policy finds inside a load budget: the learned history against all others.

    python -m experiments.recall_vs_budget [--quick] [--seeds N] [--only T7,S4,...] [--out FILE]

Each policy learns from the first half of a stream (its scores from the first six tenths of that, its price from the
rest; the history then learns the rest too) and is measured on the second half. A budget is a share of the exact run's
run-steps after lossless merging, the same for all; work on shedding passes is inside it. The clairvoyant knows the
second half.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from acep_approx import HistoryGraph, Matcher, Query, compile_query
from acep_approx.engines.runs.load_shedder import FixedLoad
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.worth import Allowance, Worth
from acep_approx.planning.planner import Plan
from acep_approx.shedding.shedder import RESERVE_EVENTS, RESERVE_SHARE
from acep_approx.training.past import Past
from acep_approx.training.policies import POLICIES, worth_of
from acep_approx.training.pricing import Prices, learn_prices
from acep_approx.training.trace import Tracer
from experiments import shed_clairvoyant, shed_comparators, shed_future, shed_metrics
from experiments.shed_workloads import QUERIES, REAL, Workload, load, workloads
from history import fit_scheme

BUDGETS = (0.02, 0.05, 0.10, 0.20, 0.50)
SEEDS = 5
CLAIRVOYANT = "clairvoyant"
OURS = ("history", "scores")
BY_LOT = 1e-3
LEAST_GAIN = 1e-3
"""Of the best: what a policy holds for worthless is kept by lot while there is room."""


@dataclass(frozen=True)
class Result:
    """One run: what was found of the exact answer, and what it took."""

    workload: str
    policy: str
    budget: float
    seed: int
    points: float
    bundles: float
    matches: float
    work: float
    seconds: float
    exact_seconds: float


class Learned:
    """What the policies learn from the first half of a stream.

    Parameters
    ----------
    workload : Workload
    query : Query
    """

    def __init__(self, workload: Workload, query: Query) -> None:
        plan = query.plan
        assert plan.registers is not None
        self.plan, self.automaton = plan, plan.registers
        unit = {"unit": workload.unit} if workload.unit else {}
        self.past = Past(plan, workload.train, dict(unit))
        _, cut = self.past.cut()
        self.known = HistoryGraph(query).fit(workload.train, **unit)
        tracer = Tracer(plan, self.past.schema, self.past.roles)
        traces = [trace for batch in self.past.batches(0, cut) for trace in tracer.push(batch)] + list(tracer.finish())
        self.held_out = list(self.past.batches(cut))
        self.trace = max(traces, key=lambda trace: len(trace.place))  # the comparators learn from one
        self.scheme = fit_scheme(tracer.remembered.places, self.past.window, self.trace)

    def worth(self, policy: str) -> Worth:
        """What runs are worth by a policy."""
        if policy in OURS:
            return POLICIES[policy](self.automaton, self.known.graph_, self.known.overlap_)
        gain, cost = shed_comparators.POLICIES[policy](self.trace, self.scheme)
        gain = np.maximum(gain, LEAST_GAIN * gain.max(initial=0.0) + 1e-9)
        found = worth_of(self.automaton, self.scheme, gain, cost)
        return replace(found, spread=BY_LOT, coin_per_run=True) if policy == "random" else found

    def prices(self, worth: Worth) -> Prices:
        """What budgets cost with it."""
        return learn_prices(self.plan, worth, self.held_out, self.past.bind)


def measure(workload: Workload, policies: Sequence[str], seeds: Sequence[int]) -> Iterator[Result]:
    """Run all policies on the second half of a stream at all budgets."""
    query = compile_query(workload.query, engine="runs")
    plan = query.plan
    begun = time.perf_counter()
    exact = shed_metrics.exact(Matcher(plan, unit=workload.unit), workload.test)
    exact_seconds = time.perf_counter() - begun
    counted = Matcher(plan, unit=workload.unit)
    counted.push(workload.test)
    relevant = counted.progress.relevant
    learned = Learned(workload, query)
    for policy in policies:
        if policy == CLAIRVOYANT:
            yield from _knowing(workload, plan, exact)
            continue
        worth = learned.worth(policy)
        prices = learned.known.prices_ if policy == "history" else learned.prices(worth)
        for budget in BUDGETS:
            rate = budget * exact.steps / relevant
            price = prices.price(budget)
            for seed in seeds:
                allowance = Allowance(
                    rate=rate, price=price, reserve=RESERVE_EVENTS * rate, reserve_share=RESERVE_SHARE, seed=seed
                )
                shedding = Shedding(worth, allowance)
                begun = time.perf_counter()
                matcher = Matcher(plan, unit=workload.unit, shedding=FixedLoad(shedding))
                found = shed_metrics.exact(matcher, workload.test)
                seconds = time.perf_counter() - begun
                work = (found.steps + shedding.on_passes) / exact.steps
                assert work <= budget + 1e-9, "the bound was passed"
                assert shed_metrics.precision(found.answer, exact.answer) == 1, "a match that is none"
                recall = shed_metrics.recalls(found.answer, exact.answer, exact.window)
                yield Result(workload.name, policy, budget, seed, *recall, work, seconds, exact_seconds)


def _knowing(workload: Workload, plan: Plan, exact: shed_metrics.Exact) -> Iterator[Result]:
    """What one finds who knows all matches to come: the engine is not asked, it could not know."""
    assert plan.registers is not None
    trie = shed_clairvoyant.prefixes(exact.answer)
    pipeline = Matcher(plan, unit=workload.unit).bind(workload.test.schema)
    meets = shed_future.meets(pipeline, plan.registers, workload.test, trie)
    for budget in BUDGETS:
        begun = time.perf_counter()
        kept = shed_clairvoyant.clairvoyant(exact.answer, trie, meets, budget * exact.steps)
        seconds = time.perf_counter() - begun
        recall = shed_metrics.recalls(exact.answer.take(kept.matches), exact.answer, exact.window)
        yield Result(workload.name, CLAIRVOYANT, budget, 0, *recall, kept.steps / exact.steps, seconds, seconds)


def main() -> None:
    """Measure, print the tables, and keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="generated streams only, few policies, one seed")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--only", default="", help="names of workloads, with commas")
    parser.add_argument("--policies", default="", help="names of policies, with commas")
    parser.add_argument("--out", type=Path, help="write all numbers here, as JSON lines")
    asked = parser.parse_args()
    names = asked.only.split(",") if asked.only else list(QUERIES)
    policies = (*OURS, *shed_comparators.POLICIES, CLAIRVOYANT)
    policies = tuple(asked.policies.split(",")) if asked.policies else policies
    if asked.quick:
        names, asked.seeds = [name for name in names if name not in REAL], 1
    ready, left_out = workloads(names)
    console = Console()
    for reason in left_out:
        console.print(reason, style="yellow")
    results: list[Result] = []
    for make in ready:
        first = make()
        seeds = range(asked.seeds)
        if first.name in REAL:
            results += measure(first, policies, seeds)
        else:  # another stream for each seed
            for seed in seeds:
                results += measure(load(first.name, seed + 1), policies, [seed])
        for quality in ("points", "bundles", "matches"):
            console.print(_table(first.name, quality, [r for r in results if r.workload == first.name]))
    if asked.out:
        asked.out.write_text("".join(json.dumps(asdict(result)) + "\n" for result in results), encoding="utf-8")
    _judge(results, console)


def _table(workload: str, quality: str, results: list[Result]) -> Table:
    """Mean recall with least and most over seeds, by policy and budget."""
    table = Table(title=f"{workload}: recall of {'match points' if quality == 'points' else quality}")
    table.add_column("policy")
    for budget in BUDGETS:
        table.add_column(f"{budget:.0%}", justify="right")
    table.add_column("work", justify="right")
    table.add_column("time at 10%", justify="right")
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
    return {
        key: float(np.mean([r.points for r in results if (r.workload, r.policy, r.budget) == key])) for key in keys
    }


def _judge(results: list[Result], console: Console) -> None:
    """The numbers that the history is judged by."""
    known = mean_points(results)
    names = list(dict.fromkeys(r.workload for r in results))
    policies = list(dict.fromkeys(r.policy for r in results))
    for budget in BUDGETS:
        if CLAIRVOYANT in policies and "history" in policies:
            ratios = [known[n, "history", budget] / max(known[n, CLAIRVOYANT, budget], 1e-9) for n in names]
            console.print(f"history / clairvoyant at {budget:.0%}: mean {np.mean(ratios):.2f}")
    for other in policies:
        if other in ("history", CLAIRVOYANT):
            continue
        behind = [(known[n, other, b] - known[n, "history", b], n, b) for n in names for b in BUDGETS]
        worst = max(behind)
        wins = sum(lead > 0.02 for lead, _, _ in behind)
        console.print(
            f"{other}: ahead of history by more than 0.02 in {wins} of {len(behind)}; "
            f"worst {worst[0]:+.2f} ({worst[1]}, {worst[2]:.0%})"
        )
    hard = [n for n in names if known.get((n, "random", 0.10), 1.0) < 0.5]
    for other in ("markov", "random"):
        if other in policies and hard:
            ratios = [known[n, "history", 0.10] / max(known[n, other, 0.10], 1e-3) for n in hard]
            mean = np.exp(np.mean(np.log(np.maximum(ratios, 1e-3))))
            console.print(f"history / {other} at 10%, geometric mean over {len(hard)} workloads: {mean:.2f}")


if __name__ == "__main__":
    main()
