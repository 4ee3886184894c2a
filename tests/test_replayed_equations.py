"""What ``acep replay`` prints of a score is an equation that holds to the digits shown, for all runs that were shed."""

from __future__ import annotations

from collections import Counter
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from acep_approx import HistoryGraph, Query, compile_query
from acep_approx.engines.runs.worth import REASONS
from acep_approx.results import shed_replay
from acep_approx.results.shed_replay import in_words
from acep_approx.shedding import metrics
from tests.cases import cases
from tests.shed_equations import check, stream
from tests.shed_streams import LISTED, world

RISING = "PATTERN SEQ(A a, B b, C c) WHERE [k] AND b.x > a.x AND c.x > b.x WITHIN 60"
MISSING = "PATTERN SEQ(A a, B b, C c, D d) WHERE b.x > a.x AND d.x > c.x WITHIN 40 ERRORS 1"
QUERIES = {"rising": RISING, "missing": MISSING, "listed": LISTED}
BUDGETS = ("4%", "30%", "3 steps/event", "40 steps/event", "12 runs")
POLICIES = ("history", "coverage", "scores", "random", "oldest", "most-advanced")
TRIED = [(budget, policy) for place, budget in enumerate(BUDGETS) for policy in ("history", POLICIES[1 + place])]


@cache
def learned(name: str) -> tuple[Query, HistoryGraph]:
    """A query with a history, which nothing changes."""
    query = compile_query(QUERIES[name], engine="runs")
    past = world(3, 400) if name == "listed" else stream(1)
    known = HistoryGraph(query).fit(past)
    known.search_ = None  # partial matches are followed
    return query, known


@pytest.mark.parametrize("output", ["matches", "points"])
def test_every_equation_holds(output: str) -> None:
    checked: Counter[str] = Counter()
    for seed in range(cases(8, 1)):
        for name, budget, policy in ((name, budget, policy) for name in QUERIES for budget, policy in TRIED):
            query, known = learned(name)
            events = world(50 + seed, 300) if name == "listed" else stream(50 + seed, 500)
            more = {"history": known, "policy": policy, "log_shed": True, "seed": seed}
            some = query.match_within(events, budget, **more)
            for _ in some.tables() if output == "matches" else some.point_tables():
                pass
            for run in some.shed().to_pylist():
                if check(run, dict(in_words(run, some))):
                    checked[run["reason"]] += 1
                    checked["dominated"] += run["beside"] < 1
    known_reasons = REASONS if output == "matches" else REASONS[:-1]  # in points they are dropped without loss
    assert all(checked[reason] for reason in known_reasons), checked
    assert (checked["dominated"] > 100) == (output == "matches"), checked


def read_otherwise(**words: int) -> SimpleNamespace:
    """Names of words of the log as ``metrics`` reads it, of which some are other ones."""
    return SimpleNamespace(**{**vars(metrics.kernel), **words})


MUTANTS = {
    "a run that dominates is not seen": (metrics, "kernel", read_otherwise(LOG_DOMINATED=metrics.kernel.LOG_WORTH)),
    "scores of bins are taken as they are": (metrics, "kernel", read_otherwise(NOT_KNOWN=-2)),
    "coins are all alike": (metrics, "_coins", lambda log, *_: np.ones(len(log))),
    "all terms have four digits": (shed_replay, "MOST_DIGITS", 5),
}
"""Ways to show a score that are wrong."""


@pytest.mark.parametrize("mutant", MUTANTS)
def test_wrong_equations_are_noticed(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query, known = learned("rising")
    some = [
        query.match_within(stream(51, 500), budget, history=known, log_shed=True, policy=policy)
        for budget, policy in (("30%", "history"), ("4%", "history"), ("30%", "most-advanced"))
    ]
    monkeypatch.setattr(*MUTANTS[mutant])
    with pytest.raises(AssertionError):  # noqa: PT012  (what is wrong is seen in one of them)
        for one in some:
            one.to_arrow()
            for run in one.shed().to_pylist():
                check(run, dict(in_words(run, one)))
