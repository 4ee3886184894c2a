"""The group that a run is born in stays its group, also where it depends on the event that made it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.engines.runs.load_shedder import FixedLoad
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.worth import Allowance, Worth
from acep_approx.kernels.runs import scores
from acep_approx.training.policies import worth_of
from acep_approx.training.trace import AHEAD, PACE_NAME
from history import Feature, Place, Scheme

QUERY = compile_query("PATTERN SEQ(A a, B b, C c, D d) WHERE [k] AND d.x > a.x AND c.x <> b.x WITHIN 80")
FEATURES = {
    "ahead": Feature(f"x of a{AHEAD}", "int", edges=(-5.0, 0.0, 5.0)),
    "pace": Feature(PACE_NAME, "float", edges=(2.0, 4.0)),
}


def stream(events: int = 600) -> pa.Table:
    rng = np.random.default_rng(4)
    letter = np.array(list("ABCD"))[rng.choice(4, events, p=[0.3, 0.3, 0.3, 0.1])]
    return pa.table(
        {"ts": np.arange(events), "type": letter, "k": rng.integers(0, 2, events), "x": rng.integers(0, 20, events)}
    )


def worth_by(feature: Feature) -> Worth:
    """Runs are told apart at the second state, by one feature; what they are worth is arbitrary."""
    automaton = QUERY.plan.registers
    assert automaton is not None
    places = (Place(state, errors, (feature,) if state == "b" else ()) for state, errors in places_of())
    scheme = Scheme(tuple(places), 80)
    rng = np.random.default_rng(1)
    return worth_of(automaton, scheme, rng.exponential(size=scheme.vertices), np.ones(scheme.vertices), 0.5)


def places_of() -> list[tuple[str, int]]:
    automaton = QUERY.plan.registers
    assert automaton is not None
    names = ["start", "a", "b", "c", "d"]
    return [(names[state], errors) for state, errors in automaton.places]


@pytest.mark.parametrize("name", FEATURES)
def test_a_run_that_is_shed_later_has_the_group_it_was_born_in(name: str) -> None:
    shedding = Shedding(
        worth_by(FEATURES[name]), Allowance(rate=3.0, price=0.05, reserve=3.0), logs_births=True, logs_shed=True
    )
    matcher = Matcher(QUERY.plan, merge="none", shedding=FixedLoad(shedding))
    matcher.push(stream())
    assert matcher.pipeline is not None
    engine = matcher.pipeline.engine
    assert isinstance(engine, Runs)
    log = engine.logged()
    born = log[:, scores.LOG_REASON] == scores.BORN
    known = {_run(row): row[scores.LOG_GROUP] for row in log[born].tolist()}
    later = [row for row in log[~born].tolist() if row[scores.LOG_TICK] > row[scores.LOG_LAST] and _run(row) in known]
    assert len({row[scores.LOG_GROUP] for row in later}) > 3
    for row in later:
        assert known[_run(row)] == row[scores.LOG_GROUP]


def _run(row: list[int]) -> tuple[int, ...]:
    """State, key, and the events that a run began and went on with, as far as that tells it from others."""
    at = (scores.LOG_POOL, scores.LOG_SLOT, scores.LOG_START, scores.LOG_LAST, scores.LOG)
    return tuple(row[word] for word in at)
