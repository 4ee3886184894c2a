"""How much of the exact answer learners find in synthetic worlds where the true values of runs are known.

    python -m experiments.learning.world [--seeds 6] [--slots 1440] [--rank chance] [--quick]

In the worlds ``rates`` and ``conditions`` a learner has to find the productive keys; in ``bursts`` the factored model
is wrong, and the residual has to help. At most B runs are live after each slot, the best by what the learner holds them
for. Recall is that of match points in the second half, against the run that sheds nothing; with drift, all keys have
changed when it begins. All but the true values spend a twentieth of the budget on the cohort. No ranking of single runs
is the best there is, as runs of a key share match points: true values with all chances to pass halved, which prefer
runs that are far on, show how much hangs on that and has nothing to do with learning.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from experiments.learning.baselines import EventRates, MonteCarlo, TabularTD
from experiments.learning.keys import KINDS, WINDOW, World, chart, world
from experiments.learning.lanes import NODES, Lane, Lanes, Seen, full, vertices
from rl import Chart, Events, Lineages, Tests, Updater, Values
from rl.model import fit_model
from rl.statistics import Statistics
from rl.updater import HALF_LIFE
from rl.values import solve

Floats = npt.NDArray[np.float64]

BUDGETS = (6, 12, 20, 30)
SEEDS = 6
SLOTS = 48 * WINDOW
REFRESH = 3
"""Windows between two times that runs are ranked anew; learners are shown what they see after every one."""
EXPLORED = 0.05
"""Share of a budget for the cohort."""
TRUE, HALVED, OURS = "true values", "true, halved", "factored + residual"
REFERENCES = {TRUE: 1.0, HALVED: 0.5}
"""What learns nothing, and the factor at the true chances to pass that it ranks by."""
BASELINES = ("TD(0)", "Monte Carlo", "event rates")
TOLERANCE = 0.02
WIDTH = 110


class Factored:
    """The factored model, without the residual."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        self.statistics = Statistics(chart, HALF_LIFE * chart.scheme.window)

    def observe(self, events: Events, tests: Tests, lineages: Lineages) -> None:
        """Add events and tests."""
        del lineages
        self.statistics.add(events, tests)

    def values(self) -> Values:
        """Those of the model."""
        return solve(self.chart, fit_model(self.chart, self.statistics).hazards(self.chart))


LEARNERS: dict[str, Callable[[Chart], Updater | Factored | TabularTD | MonteCarlo | EventRates]] = {
    OURS: Updater,
    "factored": Factored,
    "TD(0)": TabularTD,
    "Monte Carlo": MonteCarlo,
    "event rates": EventRates,
}


@dataclass(frozen=True)
class Result:
    """Recall of one learner in one stream."""

    kind: str
    drifts: bool
    learner: str
    budget: int
    seed: int
    recall: float


def results(kind: str, seeds: int, slots: int, rank: str, learners: Sequence[str]) -> Iterator[Result]:
    """All that is found in one kind of world.

    Parameters
    ----------
    kind : str
        One of ``KINDS``.
    seeds : int
        Streams, each with and without drift.
    slots : int
        Of each; an even number of windows.
    rank : {"chance", "gain"}
        What runs are ranked by.
    learners : sequence of str
        Keys of ``LEARNERS``; the references come first, anyway.
    """
    scheme = [(seed, drifts) for drifts in (False, True) for seed in range(seeds)]
    worlds = [world(kind, seed, slots, drifts=drifts) for seed, drifts in scheme]
    exact = run([Lane(each, NODES) for each in worlds], TRUE, rank)
    live = exact.live / slots
    for learner in (*REFERENCES, *learners):
        share = 0.0 if learner in REFERENCES else EXPLORED
        # a coin spares a key for two epochs
        lanes = [
            Lane(each, budget, share * budget / (2 * live[number]), scheme[number][0])
            for (number, each), budget in product(enumerate(worlds), BUDGETS)
        ]
        done = run(lanes, learner, rank)
        for lane, ((number, (seed, drifts)), budget) in enumerate(product(enumerate(scheme), BUDGETS)):
            recall = done.found[lane, 1] / max(int(exact.found[number, 1]), 1)
            yield Result(kind, drifts, learner, budget, seed, float(recall))


def run(lanes: Sequence[Lane], learner: str, rank: str) -> Lanes:
    """All slots of some lanes, with a learner for each, or by one of the references."""
    automaton, factor = chart(), REFERENCES.get(learner)
    if factor is not None:
        worlds = {id(lane.world): lane.world for lane in lanes}
        tables = {at: [true_values(of, half, rank, factor) for half in range(2)] for at, of in worlds.items()}
        halves = [np.stack([tables[id(lane.world)][half] for lane in lanes]) for half in range(2)]
        done = Lanes(lanes, automaton, full(), halves[0], is_shown=False)
    else:
        learned = [LEARNERS[learner](automaton) for _ in lanes]
        unlearned = getattr(learned[0].values(), rank)
        done = Lanes(lanes, automaton, vertices(automaton), np.tile(unlearned, (len(lanes), 1)), is_shown=True)
    slots = lanes[0].world.slots
    for slot in range(slots):
        if factor is not None and slot == slots // 2:
            done.values = halves[1]
        done.step(slot)
        if factor is None and (slot + 1) % WINDOW == 0:
            for number, (each, seen) in enumerate(zip(learned, done.seen(slot), strict=True)):
                show(each, seen)
                if (slot + 1) % (REFRESH * WINDOW) == 0:
                    done.values[number] = getattr(each.values(), rank)
    return done


def true_values(of: World, half: int, rank: str, factor: float) -> Floats:
    """The true values of a half if chances to pass were so many times what they are, flat."""
    chance, gain = replace(of, passing=factor * of.passing).true_values(half)
    return (chance if rank == "chance" else gain).ravel()


def show(learner: Updater | Factored | TabularTD | MonteCarlo | EventRates, seen: Seen) -> None:
    """Give a learner what it needs: for two of the baselines that is more than a learner in earnest is shown."""
    if isinstance(learner, TabularTD):
        learner.observe(seen.events, seen.tests, seen.cohort, seen.moves)
    else:
        is_mc = isinstance(learner, MonteCarlo)
        learner.observe(seen.events, seen.tests, seen.everything if is_mc else seen.cohort)


def table(kind: str, drifts: bool, found: Sequence[Result]) -> Table:
    """Learner by budget: mean [min-max] of the recalls."""
    made = Table(title=f"{kind}, {'drift' if drifts else 'stationary'}: match-point recall, second half")
    made.add_column("learner", no_wrap=True)
    for budget in BUDGETS:
        made.add_column(f"{budget} runs", justify="right", no_wrap=True)
    for learner in dict.fromkeys(each.learner for each in found):
        cells = []
        for budget in BUDGETS:
            some = recalls(found, kind, drifts, learner, budget)
            cells.append(f"{np.mean(some):.2f} [{min(some):.2f}-{max(some):.2f}]")
        made.add_row(learner, *cells)
    return made


def recalls(found: Sequence[Result], kind: str, drifts: bool, learner: str, budget: int) -> list[float]:
    """Of all seeds."""
    wanted = (kind, drifts, learner, budget)
    return [each.recall for each in found if (each.kind, each.drifts, each.learner, each.budget) == wanted]


def verdicts(found: Sequence[Result]) -> Iterator[tuple[bool, str]]:
    """Whether ours is never more than 0.02 below the best baseline, and whether any seed locked in, with words."""
    worst, locked = (np.inf, ""), []
    learners = list(dict.fromkeys(each.learner for each in found))
    for kind, drifts, budget in sorted({(each.kind, each.drifts, each.budget) for each in found}):
        where = f"{kind}, {'drift' if drifts else 'stationary'}, {budget} runs"
        means = {}
        for learner in learners:
            some = recalls(found, kind, drifts, learner, budget)
            means[learner] = float(np.mean(some))
            locked += [f"{learner} ({where}: {one:.2f})" for one in some if one < means[learner] / 2]
        best = max(BASELINES, key=means.__getitem__)
        worst = min(worst, (means[OURS] - means[best], f"{where}, against {best}"))
    yield worst[0] >= -TOLERANCE, f"{OURS} less the best baseline, at worst: {worst[0]:+.3f} ({worst[1]})"
    ours = [one for one in locked if one.startswith(f"{OURS} (")]
    yield not ours, f"{OURS}: {len(ours)} seeds below half of the mean{': ' if ours else ''}{', '.join(ours)}"
    others = {learner: sum(one.startswith(f"{learner} (") for one in locked) for learner in learners}
    counted = ", ".join(f"{learner} {others[learner]}" for learner in learners if learner != OURS)
    yield True, f"seeds below half of the mean among the others: {counted}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print all tables and verdicts; 1 if one of them fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--slots", type=int, default=SLOTS)
    parser.add_argument("--rank", choices=("chance", "gain"), default="chance")
    parser.add_argument("--quick", action="store_true", help="one seed, few slots")
    options = parser.parse_args(arguments)
    seeds, slots = (1, 4 * WINDOW) if options.quick else (options.seeds, options.slots)
    console, found, begun = Console(width=WIDTH), list[Result](), time.perf_counter()
    for kind in KINDS:
        found += results(kind, seeds, slots, options.rank, list(LEARNERS))
        for drifts in (False, True):
            here = [each for each in found if each.kind == kind and each.drifts == drifts]
            console.print(table(kind, drifts, here))
    judged = list(verdicts(found))
    for is_right, words in judged:
        console.print(f"{'yes' if is_right else 'NO '} {words}", style=None if is_right else "red")
    console.print(f"{time.perf_counter() - begun:.0f} s")
    return int(not all(is_right for is_right, _ in judged))


if __name__ == "__main__":
    raise SystemExit(main())
