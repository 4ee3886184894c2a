"""What the model misses: TD(0) at single vertices, as the fixed point that it would come to.

Source: Sutton and Barto, Reinforcement Learning, 2nd edition, section 6.3: batch TD(0) comes to the values of the
maximum-likelihood model of the process (certainty equivalence). So instead of stepping towards them row by row, which
depends on the order of rows and on a step size, we count at each vertex and solve. Ours: shrinking towards the factored
model, and that only the chance of a step is learned vertex by vertex; time passes by the clock, and children are the
model's.

A run that was shed has no further rows. That is the cut of the return: what it would have done is bootstrapped from the
values of its vertex, and never counted as a failure.
"""

from __future__ import annotations

import numpy as np

from history.values import Values
from rl.chart import Chart
from rl.model import LEAST, Model, weight_of_pass
from rl.statistics import Statistics
from rl.values import Hazards, solve

PSEUDO_VISITS, PSEUDO_PASSES = 10.0, 3.0
"""Rows, and passed tests, at the hazard of the model that are added to those of each vertex."""


def corrected(chart: Chart, statistics: Statistics, model: Model) -> Hazards:
    """The model's hazards, corrected vertex by vertex by what was seen there.

    Parameters
    ----------
    chart : Chart
        Places and steps.
    statistics : Statistics
        The sums.
    model : Model
        What they are shrunk towards.

    Returns
    -------
    Hazards
        (passed + 3 w) / (time + 3 w / (selectivity * rate)) * share for each pair of step and vertex, where time is the
        sum of ``seen / rate``, and w is how many passed tests one stands for: shrunk as if 3 more had been looked at
        that came at the model's pace. Tests are shrunk by 10 rows.

    Complexity: O(pairs).
    """
    pairs = statistics.pairs
    group = chart.group_of_vertex[pairs.vertex]
    share, rate = model.share[chart.letter[pairs.step], group], model.rate[group]
    prior = PSEUDO_PASSES * weight_of_pass(statistics)[pairs.step]
    foretold = np.maximum(model.selectivity.ravel()[pairs.kind], LEAST) * rate
    passing = share * (statistics.passed + prior) / (statistics.ticks + prior / foretold)
    looked = np.divide(statistics.rows, statistics.seen, out=np.zeros(len(pairs)), where=statistics.seen > 0)
    some = PSEUDO_VISITS * model.tested.ravel()[pairs.kind]
    testing = share * (looked * statistics.tested + some) / (looked * statistics.ticks + PSEUDO_VISITS / rate)
    return Hazards(passing, testing, model.children)


def residual(chart: Chart, statistics: Statistics, model: Model) -> Values:
    """Values of the corrected hazards less those of the model: what is missed by treating all times alike.

    Parameters and complexity as for ``corrected`` and, twice, ``solve``.
    """
    mine, plain = solve(chart, corrected(chart, statistics, model)), solve(chart, model.hazards(chart))
    return Values(mine.gain - plain.gain, mine.cost - plain.cost, mine.chance - plain.chance)
